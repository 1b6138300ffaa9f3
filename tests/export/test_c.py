"""What is special to the C export: no warning, no byte beyond, texts that are no UTF-8.

`test_targets.py` and `test_every_plan.py` compare its answers with the model's, bit by bit.
"""

import math
import random
import shutil
import struct
import subprocess

import polars as pl
import pytest
from fuzzing.targets.c import SOURCE, text_of, write

import textnb
from tests.docs.test_pages import ROOT, blocks
from tests.export.run import agree
from tests.export.tables import LONG, PLANS, TEXTS, frame_of, learned_by_plan, trained
from textnb import Decision, ExportError, MultinomialNB, TextClassifier, export_model, verify_export
from textnb.bayes.forms import Floats
from textnb.export.bundle import bundle_of
from textnb.export.golden import probabilities, target_rows, vectors
from textnb.export.targets import c
from textnb.export.targets.base import TargetRows
from textnb.export.targets.c import C, compile_program, read_answers

STRICT = ["-std=c99", "-O3", "-Wall", "-Wextra", "-Werror", "-pedantic"]
CHECKED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def needs(program):
    found = shutil.which(program)
    # A launcher of compilers may be there without one.
    if found is None or subprocess.run(
            [found, "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"needs {program}: install it")
    return found


@pytest.fixture(params=["gcc", "clang"])
def compiler(request, monkeypatch):
    """A compiler that the target uses too."""
    found = needs(request.param)
    monkeypatch.setenv("CC", found)
    return found


@pytest.fixture
def cc():
    return needs("cc")


def run(*command, given=b''):
    """What a program prints; one that fails says why."""
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:].decode()
    return done.stdout.decode(errors="replace")


def bundle_in(folder, labels=('x', 'y', 'z'), **settings):
    """A bundle of the texts, and its files in a folder."""
    bundle = bundle_of(trained(labels, **settings))
    C().write(bundle, folder / "model.c")
    return bundle


def records(texts):
    return b"".join(struct.pack("=3Q", 1, len(text), len(text)) + text for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("embedded", [True, False])
def test_it_compiles_without_a_warning(compiler, embedded, tmp_path, monkeypatch):
    monkeypatch.setattr(c, "_MAX_EMBEDDED_BYTES", 1 << 20 if embedded else 0)
    agree("c", bundle_of(trained(["x", "y", "z"])), frame_of([*TEXTS, *LONG]), tmp_path)
    assert (tmp_path / "model.bin").exists() is not embedded
    run(compiler, *STRICT, "-c", tmp_path / "model.c", "-o", tmp_path / "model.o")
    write([bundle_in(tmp_path)], tmp_path)
    run(compiler, *STRICT, "-DRANDOM_INPUTS=1", "-I", tmp_path, "-c", SOURCE, "-o",
        tmp_path / "f.o")


@pytest.mark.slow
@pytest.mark.parametrize("reads", ["text", "terms", "features"])
@pytest.mark.parametrize("positive", [None, True])
def test_each_input_in_memory_that_is_watched(cc, reads, positive, tmp_path):
    if reads == "features":
        y = [True, False, True, True, False, False]
        frame = pl.DataFrame({"a": [1e6, 2.5, 4.0, 1.5, 0.0, -1e6],
                              "b": [3.0, 0.5, -1.0, 7.0, 1.0, 2.0], "label": y})
        model = textnb.TableClassifier(textnb.LinearDiscriminantAnalysis()).fit(frame)
        bundle = bundle_of(model, positive=positive)
        rows = TargetRows(vectors(bundle))
    else:
        model = trained([True, False], textnb.ComplementNB(), tokenizer=PLANS["triples"])
        bundle = bundle_of(model, reads, positive)
        rows = target_rows(bundle, frame_of([*TEXTS, *LONG]))
    C().write(bundle, tmp_path / "model.c")
    program = compile_program(tmp_path / "model.c", tmp_path, CHECKED)
    run(program, "whole" if reads == "text" else reads,
        given=b"".join(c._input_records(bundle, rows)))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("number", [2000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("plan", ["pairs", "kept", "tr", "nfkc", "char_wb"])
def test_bytes_that_are_no_utf_8(cc, plan, number, tmp_path):
    rng = random.Random(7)
    given = [b"\xff", *(text_of(rng) for _ in range(number))]
    bundle = bundle_in(tmp_path, tokenizer=PLANS[plan])
    program = compile_program(tmp_path / "model.c", tmp_path, ["-O3"])
    output = subprocess.run([program, "whole", tmp_path / "model.bin"], input=records(given),
                            capture_output=True, check=True).stdout
    decoded = [text.decode("utf-8", "replace") for text in given]
    scores: Floats = bundle.scores(bundle.counts(frame_of(decoded)))
    assert (read_answers(bundle, output)["scores"] == scores).all()


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [1000, 50_000])
@pytest.mark.parametrize("plan", ["stop words", "kept", "nfkc", "char_wb prefixes"])
def test_damaged_models_read_nothing_beyond(compiler, plan, inputs, tmp_path, monkeypatch):
    model = learned_by_plan(plan, MultinomialNB())
    if plan != "kept":
        # With every part that a model may have.
        monkeypatch.setattr(c, "_MAX_CELL_SHARE", 9.0)
        model.set_calibration(textnb.Calibration(3.0, 0.5))
        model.set_decision(Decision({"a": 0.5, "b": -1.0, "c": math.inf}))
    write([bundle_of(model)], tmp_path)
    run(compiler, "-std=c99", *CHECKED, f"-DRANDOM_INPUTS={inputs}", "-I", tmp_path, SOURCE,
        tmp_path / "model.c", "-o", tmp_path / "fuzz", "-lm")
    run(tmp_path / "fuzz")


@pytest.mark.slow
def test_valgrind_finds_nothing(cc, tmp_path):
    valgrind, rng = needs("valgrind"), random.Random(7)
    bundle_in(tmp_path, tokenizer=PLANS["pairs"])
    program = compile_program(tmp_path / "model.c", tmp_path, ["-g", "-O1"])
    done = subprocess.run([valgrind, "--error-exitcode=9", "--leak-check=full", program, "whole"],
                          input=records(text_of(rng) for _ in range(300)), capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stderr[-4000:].decode()
    assert b"no leaks are possible" in done.stderr


def test_a_bundle_is_verified_and_one_file_is_refused(cc, tmp_path):
    model = trained(["x", "y"])
    assert verify_export(export_model(model, tmp_path / "out", "c").path).passed
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"model.c", "model.h"}
    assert verify_export(export_model(model, tmp_path / "out.zip", "c", top=5).path).passed
    with pytest.raises(ExportError, match=r"several files \(\.c, \.h, \.bin\): write them to a"):
        export_model(model, tmp_path / "model.c")
    assert not (tmp_path / "model.c").exists()


def test_a_changed_number_is_found(cc, tmp_path, monkeypatch):
    monkeypatch.setattr(c, "_MAX_EMBEDDED_BYTES", 0)
    bundle = bundle_in(tmp_path)
    data = (tmp_path / "model.bin").read_bytes()
    (tmp_path / "model.bin").write_bytes(data[:-8] + bytes([data[-8] ^ 1]) + data[-7:])
    with pytest.raises(ExportError, match="or is damaged"):
        C().run(bundle, tmp_path / "model.c", target_rows(bundle, frame_of(["a"])))


def documented(tmp_path):
    """A model of politics and sport, and the examples of the documentation beside it."""
    model = TextClassifier().fit(
        ["parliament votes budget", "the team wins", "match and goal"], ["pol", "sport", "sport"])
    bundle = bundle_of(model)
    C().write(bundle, tmp_path / "model.c")
    for block in blocks((ROOT / "docs/how-to/exports.md").read_text("utf-8")):
        if block.language in ("c", "rust"):
            (tmp_path / block.file).write_text(block.text)
    rows = bundle.counts(frame_of(["Parliament votes on the budget"]))
    scores = bundle.scores(rows)
    assert scores[0, 0] > scores[0, 1]
    chance = probabilities(bundle, scores, rows)[0, 0]
    return f"pol {scores[0, 0]:.4f}", f" {chance:.4f}"


def test_the_documented_c_runs(compiler, tmp_path):
    answer, chance = documented(tmp_path)
    run(compiler, *STRICT, tmp_path / "score.c", tmp_path / "model.c", "-o", tmp_path / "s", "-lm")
    assert run(tmp_path / "s") == f"{answer}{chance}\n"


@pytest.mark.slow
def test_rust_links_it(cc, tmp_path):
    rustc, ar, answer = needs("rustc"), needs("ar"), documented(tmp_path)[0]
    run(cc, "-std=c99", "-O2", "-c", tmp_path / "model.c", "-o", tmp_path / "model.o")
    run(ar, "rcs", tmp_path / "libmodel.a", tmp_path / "model.o")
    run(rustc, tmp_path / "score.rs", "-L", tmp_path, "-l", "static=model", "-l", "m", "-o",
        tmp_path / "s")
    assert run(tmp_path / "s") == f"{answer}\n"


@pytest.mark.slow
@pytest.mark.parametrize("classes", [3, 4, 9])
def test_weights_by_cells_and_by_rows_are_the_same_bits(cc, classes, tmp_path, monkeypatch):
    rng = random.Random(classes)
    written = [" ".join(rng.choice("abcdefg") * 2 + str(rng.randrange(k, 40 + 9 * k))
                        for _ in range(30)) for k in range(classes) for _ in range(12)]
    model = TextClassifier(MultinomialNB()).fit(
        written, [f"class {k}" for k in range(classes) for _ in range(12)])
    bundle = bundle_of(model)
    sizes = []
    for smaller in (0.0, 9.0):
        monkeypatch.setattr(c, "_MAX_CELL_SHARE", smaller)
        agree("c", bundle, frame_of([*written, "", "nothing of it"]), tmp_path)
        sizes.append(len(c.pack(bundle)))
    assert classes < 9 or sizes[1] < sizes[0]
