"""Bundles: what is in them, how they are written and replaced, and which rows verify them."""

import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import textnb
from tests.export.run import checked, exported
from tests.export.test_errors import NEWS, plain
from tests.frames.writing import write_files
from tests.workflow.conftest import contents
from textnb import TextClassifier, Tokenizer, export_model, verify_export
from textnb.export import golden, reduce
from textnb.export.bundle import bundle_of
from textnb.export.targets.known import TARGETS

POINTS = pl.DataFrame({"a": [100.0, 101.5, 99.0, 104.0, 103.0], "b": [1.0, 2.0, 4.0, 7.0, 9.0],
                       "label": [True, True, False, False, False]})


def dense():
    return textnb.TableClassifier(textnb.LinearDiscriminantAnalysis()).fit(POINTS)


# Golden rows, and one's own


@pytest.mark.sweep(6)
@pytest.mark.parametrize(("model", "rows"), [(plain, NEWS), (dense, POINTS)])
@pytest.mark.parametrize("to", TARGETS)
def test_golden_rows_and_those_of_the_caller_verify(to, model, rows, tmp_path):
    positive = True if to == "liblinear" and model is dense else None
    path = exported(model(), tmp_path / "out", to, positive=positive)
    found = checked(path)
    assert found.passed
    bundle = bundle_of(model())
    assert found.rows == len(golden.vectors(bundle) if model is dense else golden.documents(bundle))
    assert found.largest_difference < 1e-9
    found = checked(path, rows)
    assert (found.rows, found.passed) == (rows.height, True)


def test_rows_in_every_form_that_predict_takes(tmp_path):
    path = export_model(plain(), tmp_path / "out", "json").path
    texts = NEWS["text"].to_list()
    NEWS.write_parquet(tmp_path / "news.parquet")
    for rows in (texts, NEWS["text"], NEWS.to_dicts(), NEWS.lazy(), tmp_path / "news.parquet"):
        found = verify_export(path, rows)
        assert (found.rows, found.passed) == (len(texts), True)


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_an_array_of_the_model_is_its_elements(shape, tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 4))
    frame = pl.DataFrame({
        "v": pl.Series(values.reshape(20, *shape), dtype=pl.Array(pl.Float64, shape)),
        "x": rng.normal(size=20), "label": [*"ab"] * 10})
    model = textnb.TableClassifier(textnb.LinearDiscriminantAnalysis()).fit(frame)
    export_model(model, tmp_path / "b.zip", "json")
    frame.write_parquet(tmp_path / "rows.parquet")
    elements = frame.select("x", *(pl.Series(f"v[{k}]", values[:, k]) for k in range(4)))
    for rows in (frame, tmp_path / "rows.parquet", elements):
        found = verify_export(tmp_path / "b.zip", rows)
        assert (found.rows, found.passed) == (20, True)


def test_golden_documents_hold_what_tokenizers_stumble_on_and_no_training_text(tmp_path):
    texts = ["a secret sentence of training", "another one of those"]
    export_model(TextClassifier().fit(texts, ["x", "y"]), tmp_path / "out", "json")
    table = pl.read_parquet(tmp_path / "out" / "golden.parquet")
    documents = table["text"].to_list()
    assert None in documents
    assert "" in documents
    held = "".join(text for text in documents if text)
    for hard in ("İ", "Σ", "\u0301", "हि", "中", "😀", "\t", "\n", "'", '"', "\\", "\x00", "1"):
        assert hard in held
    assert max(len(text) for text in documents if text) > 5000
    for sentence in texts:
        assert sentence not in held
    assert table["tokens"].list.contains("secret").any()
    for row in table.iter_rows(named=True):
        assert row["tokens"] == Tokenizer().tokens(row["text"] or "")


# The files


def test_the_files(tmp_path):
    model = TextClassifier(tokenizer=Tokenizer(ngram_range=(1, 2))).fit(NEWS)
    folder = export_model(model, tmp_path / "out", "json").path
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["README.md", "SHA256SUMS", "characters.json", "form.json", "golden.parquet",
                     "model.json", "weights.parquet"]
    form = json.loads((folder / "form.json").read_text())
    assert form["format"] == "textnb-bundle"
    assert form["version"] == 1
    assert form["classes"] == {"type": "string", "labels": ["arts", "money", "sport"]}
    assert form["intercept"] == model.linear_form().intercept.tolist()
    assert form["above"] is None
    assert form["tokenizer"] == model.tokenizer.to_dict()
    assert form["trained"]["documents"] == [2, 2, 2]
    assert form["trained"]["estimator"]["parameters"]["l"] == 1.0
    weights = pl.read_parquet(folder / "weights.parquet")
    assert weights.columns == ["term", "words", "0", "1", "2"]
    assert weights.row(by_predicate=pl.col("term") == "cup final")[1] == ["cup", "final"]
    assert np.array_equal(weights.select("0", "1", "2").to_numpy(), model.linear_form().weights)
    # The checksums are those that sha256sum --check reads.
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


COMMANDS = {
    "json": "`model.json` is data, for a JSON reader", "parquet": "`weights.parquet` is data",
    "csv": "a CSV reader", "npz": "NumPy", "python": "python model.py < rows.ndjson",
    "javascript": "node model.mjs < rows.ndjson", "c": "cc -std=c99 -O3 program.c model.c -lm",
    "sql-duckdb": "duckdb my.db < model.sql",
    "sql-postgres": "psql -v ON_ERROR_STOP=1 -f model.sql",
    "sql-sqlite": "sqlite3 -bail my.db < model.sql", "polars": "python model.py rows.parquet",
    "sql-clickhouse": "clickhouse-client --queries-file model.sql",
    "onnx": "Its input is `terms`", "liblinear": "liblinear-predict rows.svmlight model.model"}


@pytest.mark.sweep(5)
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_bundle_says_how_it_is_used(target, tmp_path):
    if target.name == "onnx":
        pytest.importorskip("onnx")
    model = TextClassifier().fit(NEWS)
    folder = export_model(model, tmp_path / "out", target.name).path
    text = (folder / "README.md").read_text("utf-8")
    assert "3 classes (`arts`, `money`, `sport`)" in text
    assert target.name in COMMANDS, "add to COMMANDS how the README says that the file is used"
    assert COMMANDS[target.name] in text
    assert "textnb verify ." in text
    named = set(re.findall(r"model\.[a-z]+", text)) - {"model.h", "model.bin"}
    assert all((folder / name).exists() for name in named)
    export_model(model, folder, target.name)
    assert (folder / "README.md").read_text("utf-8") == text


def test_a_readme_of_the_user_is_not_replaced(tmp_path):
    folder = export_model(plain(), tmp_path / "out", "json").path
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(line for line in sums.read_text().splitlines(keepends=True)
                            if "README" not in line))
    (folder / "README.md").write_text("mine")
    assert textnb.verify_export(folder).passed, "as in a bundle of an earlier release"
    with pytest.raises(textnb.TextnbError, match=r"it holds 'README\.md', which would be lost"):
        export_model(plain(), folder, "json")


def test_two_classes_as_one_w_and_b(tmp_path):
    model = TextClassifier().fit(NEWS.filter(pl.col("label") != "arts"))
    w, b = model.linear_form().binary("sport")
    export_model(model, tmp_path / "out", "parquet", positive="sport")
    assert verify_export(tmp_path / "out").passed
    weights = pl.read_parquet(tmp_path / "out" / "weights.parquet")
    assert weights.columns == ["term", "w"]
    assert np.array_equal(weights["w"].to_numpy(), w)
    assert json.loads((tmp_path / "out" / "form.json").read_text())["intercept"] == [b]
    # A positive class may be NumPy's; features are called so.
    export_model(dense(), tmp_path / "dense", "python", positive=dense().classes_[1])
    assert verify_export(tmp_path / "dense", POINTS).passed
    weights = pl.read_parquet(tmp_path / "dense" / "weights.parquet")
    assert weights.columns == ["feature", "w"]
    assert weights["feature"].to_list() == ["a", "b"]


def test_pruning_keeps_what_moves_decisions_most(tmp_path):
    model = plain()
    bundle = bundle_of(model)
    smaller, report = reduce.keep_top(bundle, 5)
    weights = model.linear_form().weights
    spreads = weights.max(axis=1) - weights.min(axis=1)
    order = sorted(range(len(spreads)), key=lambda t: (-spreads[t], t))
    assert smaller.terms == tuple(model.vocabulary_[t] for t in sorted(order[:5]))
    assert report == {"kept": 5, "dropped": len(order) - 5}
    assert reduce.keep_top(bundle, len(order)) == (bundle, {"kept": len(order), "dropped": 0})
    assert export_model(model, tmp_path / "out", "json", top=5).pruned == report
    assert verify_export(tmp_path / "out").passed


def test_an_archive_a_folder_and_a_single_file_verify_alike(tmp_path):
    model = plain()
    for path in ("out", "out.zip", "weights.csv"):
        export_model(model, tmp_path / path, "csv")
        assert verify_export(tmp_path / path).passed
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out", "out.zip", "weights.csv", "weights.csv.bundle.zip"]
    assert (tmp_path / "weights.csv").read_bytes() == (tmp_path / "out/model.csv").read_bytes()
    # A bundle may be replaced; the same model gives the same bytes.
    before = (tmp_path / "out.zip").read_bytes()
    export_model(model, tmp_path / "out.zip", "csv")
    assert (tmp_path / "out.zip").read_bytes() == before
    export_model(model, tmp_path / "out", "json")
    assert verify_export(tmp_path / "out").target == "json"
    (tmp_path / "weights.csv").write_text("else")
    with pytest.raises(textnb.ModelFileError, match=r"not the file of its bundle"):
        verify_export(tmp_path / "weights.csv")


def test_what_a_compiler_leaves_beside_a_bundle_is_no_part_of_it(tmp_path):
    export_model(plain(), tmp_path / "out", "python")
    for name in ("model.o", "score.c"):
        (tmp_path / "out" / name).write_text("x")
    (tmp_path / "out" / "__pycache__").mkdir()
    assert verify_export(tmp_path / "out").passed


# What is replaced, and what stays


@pytest.fixture(scope="module")
def files_of_mine(tmp_path_factory):
    """Files and folders that are no bundles, or more than that."""
    folder = write_files(tmp_path_factory.mktemp("mine"), {
        "mine/thesis.tex": "years of work", "site/form.json": '{"title": "contact form"}',
        "spam.py": "print('mine')", "app.py": "print('mine')"})
    (folder / "spam.py.bundle.zip").mkdir()
    for name in ("m.zip", "m.json"):
        plain().save(folder / name)
    export_model(plain(), folder / "out", "json")
    (folder / "out/NOTES.md").write_text("mine")
    export_model(plain(), folder / "bundle", "json")
    return folder


@pytest.mark.parametrize(("name", "to", "message"), [
    ("mine", "json", "is there and is not a bundle"), ("site", "json", "it is there"),
    ("out", "json", "beside the earlier export"), ("m.zip", "json", "it is there"),
    ("m.json", "json", "it is there"), ("app.py", "python", "it is there"),
    ("spam.py", "python", "it is a folder"), ("absent/out", "json", "no folder"),
    (".", "json", "current folder"), ("-", "json", "standard output"),
    ("out.csv", "json", "another target's file"), ("out.onnx", "json", "another target's file")])
def test_nothing_but_a_bundle_is_replaced(name, to, message, files_of_mine, monkeypatch):
    monkeypatch.chdir(files_of_mine / "bundle" if name == "." else files_of_mine)
    before = contents(files_of_mine)
    with pytest.raises(textnb.TextnbError, match=message):
        export_model(plain(), name, to)
    assert contents(files_of_mine) == before


def test_a_bundle_verifies_from_within(files_of_mine, monkeypatch):
    monkeypatch.chdir(files_of_mine / "bundle")
    assert verify_export(".").passed


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_between_two_renames_loses_nothing(at, after, tmp_path, monkeypatch):
    export_model(plain(), tmp_path / "out", "json")
    genuine, calls = os.rename, 0

    def rename(source, target):
        nonlocal calls
        calls += 1
        if calls == at and not after:
            raise KeyboardInterrupt
        genuine(source, target)
        if calls == at:
            raise KeyboardInterrupt

    # As where the system can't exchange two names.
    monkeypatch.setattr("textnb.files.replace._exchange", lambda *_: False)
    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        export_model(plain(), tmp_path / "out", "csv")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert verify_export(tmp_path / "out").passed


@pytest.mark.parametrize("name", ["weights.parquet", "golden.parquet", "README.md"])
def test_an_error_of_a_disk_names_the_export(name, tmp_path, monkeypatch):
    genuine = Path.open

    def fail(path, *arguments, **options):
        if path.name == name:
            raise OSError(5, "Input/output error")
        return genuine(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(textnb.SourceError, match=r"^can't write '.*out': Input/output error$"):
        export_model(plain(), tmp_path / "out", "python")
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_file_says_that_its_bundle_is_there(tmp_path, monkeypatch):
    genuine = os.replace

    def fail(source, target):
        if os.path.basename(target) == "model.py":
            raise OSError(5, "Input/output error")
        genuine(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(textnb.SourceError, match=r"model.py.bundle.zip' is written: can't write"):
        export_model(plain(), tmp_path / "model.py", "python")
