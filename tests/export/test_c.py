"""The C export, compiled by gcc and clang: the model's own bits, no warning, no byte beyond."""

from __future__ import annotations

import math
import random
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.docs.test_pages import ROOT, blocks
from tests.export.test_code import (
    HOSTILE,
    KEEPING,
    NOT_PORTABLE,
    TEXTS,
    TOKENIZERS,
    check,
    every_character,
    texts,
    trained,
)
from tests.tiers import examples
from textnb import (
    Calibration,
    ComplementNB,
    Decision,
    ExportError,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    TableClassifier,
    TextClassifier,
    Tokenizer,
    export_model,
    verify_export,
)
from textnb.bayes.forms import Floats
from textnb.export.bundle import Bundle, bundle_of
from textnb.export.golden import probabilities, rows_of
from textnb.export.targets import c
from textnb.export.targets.base import EngineMissing, TargetRows
from textnb.export.targets.c import C, compile_program, read_answers

Corpus = Callable[[str], pl.LazyFrame]

STRICT = ["-std=c99", "-O3", "-Wall", "-Wextra", "-Werror", "-pedantic"]
CHECKED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
FUZZ = Path(__file__).with_name("c_fuzz.c")
ALL_KINDS = Tokenizer(keep=("emoji", "symbols", "abbreviations", "punctuation"))
CHANGED = Tokenizer(normalize="NFKC", strip_accents="unicode", ngram_range=(1, 2))
PREFIXED = Tokenizer(analyzer="char_wb", ngram_range=(1, 4), field_prefix=("more",))
KEPT = ["C++ c# U.S. É.Ü. $5.50 €3,000. 10% 1.5.5%% what?! ☕ x😀y", "1." * 300 + "a" * 300 + "++"]


def needs(program: str) -> str:
    found = shutil.which(program)
    # A launcher of compilers may be there without one.
    if found is None or subprocess.run(
            [found, "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"needs {program}: install it")
    return found


@pytest.fixture(params=["gcc", "clang"])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A compiler that the target uses too."""
    found = needs(request.param)
    monkeypatch.setenv("CC", found)
    return found


@pytest.fixture
def cc() -> str:
    return needs("cc")


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def scores_of_bytes(program: Path, bundle: Bundle, given: Sequence[bytes]) -> Floats:
    """What the compiled program answers to texts that may be no UTF-8."""
    records = b"".join(struct.pack("=3Q", 1, len(text), len(text)) + text for text in given)
    done = subprocess.run([program, "whole", program.with_name("model.bin")], input=records,
                          capture_output=True, check=True)
    scores: Floats = read_answers(bundle, done.stdout)["scores"]
    return scores


def expected(bundle: Bundle, given: Sequence[bytes]) -> Floats:
    decoded = [text.decode("utf-8", "replace") for text in given]
    return bundle.scores(bundle.counts(texts(decoded)))


def hostile(number: int) -> list[bytes]:
    """Texts of fragments, some of them cut or with another byte."""
    rng = random.Random(7)
    pieces = [word.encode() for text in [*TEXTS[:-4], *HOSTILE, *KEPT] if text and len(text) < 400
              for word in (text, *text.split())]
    pieces += [b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xe4\xb8", b"\xf0\x9f\x98",
               b"\xff"]
    found = []
    for _ in range(number):
        text = bytearray(b" ".join(rng.choices(pieces, k=rng.randrange(1, 9)))
                         if rng.random() < 0.5 else b"".join(rng.choices(pieces, k=4)))
        for _ in range(rng.randrange(3) if text else 0):
            text[rng.randrange(len(text))] = rng.randrange(256)
        if rng.random() < 0.3:
            codes = [rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)]
            text += "".join(chr(rng.choice(codes) ^ k) for k in range(8)).encode()
        found.append(bytes(text))
    return found


@pytest.mark.sweep(1)
@pytest.mark.parametrize("embedded", [True, False])
def test_it_compiles_without_a_warning(
    compiler: str, embedded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c, "_EMBEDDED", 1 << 20 if embedded else 0)
    bundle = bundle_of(trained(["x", "y", "z"]))
    check(C(), bundle, rows_of(bundle, texts(TEXTS)), tmp_path)
    assert (tmp_path / "model.bin").exists() is not embedded
    run(compiler, *STRICT, "-c", tmp_path / "model.c", "-o", tmp_path / "model.o")
    run(compiler, *STRICT, "-DRANDOM_INPUTS=1", "-I", tmp_path, "-c", FUZZ, "-o", tmp_path / "f.o")


@pytest.mark.sweep(3)
@pytest.mark.parametrize("tokenizer", [*TOKENIZERS, *KEEPING, ALL_KINDS])
def test_scores_are_the_models_bits(
    cc: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    bundle = bundle_of(trained(["x", "y"], tokenizer=tokenizer, binary=tokenizer == Tokenizer()))
    rows = rows_of(bundle, texts([*TEXTS, *KEPT]))
    found = check(C(), bundle, rows, tmp_path)
    assert (found.scores == bundle.scores(rows.values)).all()


@pytest.mark.sweep(1)
@pytest.mark.parametrize("reads", ["text", "terms", "features"])
@pytest.mark.parametrize("positive", [None, True])
def test_each_input_in_memory_that_is_watched(
    cc: str, reads: Any, positive: Any, tmp_path: Path
) -> None:
    if reads == "features":
        X = np.random.default_rng(3).normal(size=(60, 7)) + 1e6
        y = np.arange(60) % 2 == 0
        frame = pl.DataFrame(X + y[:, None]).with_columns(pl.Series("label", y))
        model: Any = TableClassifier(LinearDiscriminantAnalysis()).fit(frame)
        rows = TargetRows(X)
    else:
        model = trained([True, False], ComplementNB(), tokenizer=Tokenizer(ngram_range=(1, 3)))
    bundle = bundle_of(model, reads=reads, positive=positive)
    if reads != "features":
        rows = rows_of(bundle, texts(TEXTS))
    check(C(), bundle, rows, tmp_path)
    # Again, with every access checked.
    program = compile_program(tmp_path / "model.c", tmp_path, CHECKED)
    given = b"".join(c._records(bundle, rows))
    mode = "whole" if reads == "text" else reads
    checked = subprocess.run([program, mode], input=given, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr[-4000:].decode()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("number", [2000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tokenizer", [
    Tokenizer(ngram_range=(1, 2)), ALL_KINDS, Tokenizer(lowercase="tr"), CHANGED,
    Tokenizer(analyzer="char_wb", ngram_range=(2, 4), strip_accents="marks")])
def test_bytes_that_are_no_utf_8(
    cc: str, tokenizer: Tokenizer, number: int, tmp_path: Path
) -> None:
    given = hostile(number)
    bundle = bundle_of(trained(["x", "y", "z"], tokenizer=tokenizer))
    C().write(bundle, tmp_path / "model.c")
    program = compile_program(tmp_path / "model.c", tmp_path)
    assert (scores_of_bytes(program, bundle, given) == expected(bundle, given)).all()


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, "tr"])
def test_every_character_is_split_and_lowered(cc: str, lowercase: Any, tmp_path: Path) -> None:
    given = every_character()
    model = TextClassifier(tokenizer=Tokenizer(lowercase=lowercase, pattern=r"[\w\p{M}]{1,}")).fit(
        texts(given).with_columns(label=pl.Series([str(n % 2) for n in range(len(given))])))
    bundle = bundle_of(model)
    found = check(C(), bundle, rows := rows_of(bundle, texts(given)), tmp_path)
    assert (found.scores == bundle.scores(rows.values)).all()


def _trained(tokenizer: Tokenizer) -> TextClassifier:
    if not tokenizer.field_prefix:
        return trained(["x", "y", "z"], tokenizer=tokenizer)
    frame = texts(TEXTS[:-4] * 2).with_columns(more=pl.col("text").reverse())
    labels = pl.Series("label", [("x", "y", "z")[row % 3] for row in range(len(frame))])
    return TextClassifier(tokenizer=tokenizer, text=["text", "more"]).fit(
        frame.with_columns(labels))


@pytest.mark.sweep(2, 8)
@pytest.mark.parametrize("inputs", [1000, pytest.param(50_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tokenizer", [
    Tokenizer(ngram_range=(1, 2), lowercase="tr", stop_words=("GOOD", "mit")), ALL_KINDS, CHANGED,
    PREFIXED])
def test_damaged_models_read_nothing_beyond(
    compiler: str, tokenizer: Tokenizer, inputs: int, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = _trained(tokenizer)
    if tokenizer != ALL_KINDS:
        # With every part that a model may have.
        monkeypatch.setattr(c, "_SMALLER", 9.0)
        model.set_calibration(Calibration(3.0, 0.5))
        model.set_decision(Decision({"x": 0.5, "y": -1.0, "z": math.inf}))
    C().write(bundle_of(model), tmp_path / "model.c")
    run(compiler, "-std=c99", *CHECKED, f"-DRANDOM_INPUTS={inputs}", "-I", tmp_path, FUZZ,
        tmp_path / "model.c", "-o", tmp_path / "fuzz", "-lm")
    run(tmp_path / "fuzz")


@pytest.mark.slow
def test_a_fuzzer_finds_nothing(tmp_path: Path) -> None:
    clang = needs("clang")
    C().write(bundle_of(trained(["x", "y"], tokenizer=ALL_KINDS)), tmp_path / "model.c")
    command = [clang, "-std=c99", *CHECKED, "-fsanitize=fuzzer", "-I", tmp_path, FUZZ,
               tmp_path / "model.c", "-o", tmp_path / "fuzz", "-lm"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("clang has no libFuzzer here: install libclang-rt-dev")
    # Its peak of memory is inherited from the process of the tests, which may be of gigabytes.
    run(tmp_path / "fuzz", f"-runs={examples(5000)}", "-max_len=400", "-seed=1",
        "-rss_limit_mb=0", f"-artifact_prefix={tmp_path}/")


@pytest.mark.slow
def test_valgrind_finds_nothing(cc: str, tmp_path: Path) -> None:
    valgrind = needs("valgrind")
    C().write(bundle_of(trained(["x", "y"], tokenizer=Tokenizer(ngram_range=(1, 2)))),
              tmp_path / "model.c")
    program = compile_program(tmp_path / "model.c", tmp_path, ["-g", "-O1"])
    given = b"".join(struct.pack("=3Q", 1, len(text), len(text)) + text for text in hostile(300))
    done = subprocess.run([valgrind, "--error-exitcode=9", "--leak-check=full", program, "whole"],
                          input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:].decode()
    assert b"no leaks are possible" in done.stderr


def test_what_c_can_not_split_is_refused(tmp_path: Path) -> None:
    for tokenizer in NOT_PORTABLE:
        bundle = bundle_of(trained(["x", "y"], tokenizer=tokenizer), reads="text")
        with pytest.raises(ExportError):
            C().write(bundle, tmp_path / "model.c")
    assert not list(tmp_path.iterdir())


def test_a_bundle_is_verified_and_one_file_is_refused(cc: str, tmp_path: Path) -> None:
    model = trained(["x", "y"])
    assert verify_export(export_model(model, tmp_path / "out", "c").path).passed
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"model.c", "model.h"}
    assert verify_export(export_model(model, tmp_path / "out.zip", "c", top=5).path).passed
    with pytest.raises(ExportError, match=r"several files \(\.c, \.h, \.bin\): write them to a"):
        export_model(model, tmp_path / "model.c")
    assert not (tmp_path / "model.c").exists()


def test_a_changed_number_is_found(
    cc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c, "_EMBEDDED", 0)
    bundle = bundle_of(trained(["x", "y"]))
    C().write(bundle, tmp_path / "model.c")
    data = (tmp_path / "model.bin").read_bytes()
    (tmp_path / "model.bin").write_bytes(data[:-8] + bytes([data[-8] ^ 1]) + data[-7:])
    with pytest.raises(ExportError, match="or is damaged"):
        C().run(bundle, tmp_path / "model.c", rows_of(bundle, texts(["a"])))


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    bundle = bundle_of(trained(["x", "y"]))
    C().write(bundle, tmp_path / "model.c")
    with pytest.raises(EngineMissing, match="no C compiler 'no-such-compiler': install"):
        C().run(bundle, tmp_path / "model.c", rows_of(bundle, texts(["a"])))


def documented(tmp_path: Path) -> tuple[str, str]:
    """A model of politics and sport, and the examples of the documentation beside it."""
    model = TextClassifier().fit(
        ["parliament votes budget", "the team wins", "match and goal"], ["pol", "sport", "sport"])
    bundle = bundle_of(model)
    C().write(bundle, tmp_path / "model.c")
    for block in blocks((ROOT / "docs/how-to/exports.md").read_text("utf-8")):
        if block.language in ("c", "rust"):
            (tmp_path / block.file).write_text(block.text)
    rows = bundle.counts(texts(["Parliament votes on the budget"]))
    scores = bundle.scores(rows)
    assert scores[0, 0] > scores[0, 1]
    chance = probabilities(bundle, scores, rows)[0, 0]
    return f"pol {scores[0, 0]:.4f}", f" {chance:.4f}"


def test_the_documented_c_runs(compiler: str, tmp_path: Path) -> None:
    answer, chance = documented(tmp_path)
    run(compiler, *STRICT, tmp_path / "score.c", tmp_path / "model.c", "-o", tmp_path / "s", "-lm")
    assert run(tmp_path / "s") == f"{answer}{chance}\n"


def test_rust_links_it(cc: str, tmp_path: Path) -> None:
    rustc, ar, answer = needs("rustc"), needs("ar"), documented(tmp_path)[0]
    run(cc, "-std=c99", "-O2", "-c", tmp_path / "model.c", "-o", tmp_path / "model.o")
    run(ar, "rcs", tmp_path / "libmodel.a", tmp_path / "model.o")
    run(rustc, tmp_path / "score.rs", "-L", tmp_path, "-l", "static=model", "-l", "m", "-o",
        tmp_path / "s")
    assert run(tmp_path / "s") == f"{answer}\n"


@pytest.mark.parametrize("name", ["20newsgroups", "imdb", "zh_hotel", "indicnews_bengali"])
def test_whole_test_splits(cc: str, name: str, corpus: Corpus, tmp_path: Path) -> None:
    frame = corpus(name).collect()
    if "split" not in frame.columns:
        frame = frame.with_columns(split=pl.when(pl.int_range(pl.len()) % 3 == 0).then(
            pl.lit("test")).otherwise(pl.lit("train")))
    settings = {"tokenizer": Tokenizer(ngram_range=(1, 2))} if name == "zh_hotel" else {}
    model = TextClassifier(MultinomialNB(), min_df=2, **settings).fit(frame.filter(split="train"))
    bundle = bundle_of(model)
    rows = rows_of(bundle, frame.filter(split="test"))
    found = check(C(), bundle, rows, tmp_path)
    assert (found.scores == bundle.scores(rows.values)).all()


@pytest.mark.sweep(1)
@pytest.mark.parametrize("classes", [3, 4, 9])
def test_weights_by_cells_and_by_rows_are_the_same_bits(
    cc: str, classes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = [f"class {k}" for k in range(classes)]
    rng = random.Random(classes)
    written = [" ".join(rng.choice("abcdefg") * 2 + str(rng.randrange(k, 40 + 9 * k))
                        for _ in range(30)) for k in range(classes) for _ in range(12)]
    model = TextClassifier(MultinomialNB()).fit(
        texts(written).with_columns(label=pl.Series([name for name in labels for _ in range(12)])))
    bundle = bundle_of(model)
    rows = rows_of(bundle, texts([*written, "", "nothing of it"]))
    sizes = []
    for smaller in (0.0, 9.0):
        monkeypatch.setattr(c, "_SMALLER", smaller)
        found = check(C(), bundle, rows, tmp_path)
        assert (found.scores == bundle.scores(rows.values)).all()
        sizes.append(len(c.pack(bundle)))
    assert classes < 9 or sizes[1] < sizes[0]
