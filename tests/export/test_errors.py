"""What is refused, and in which words: exports, damaged and hostile bundles, engines that fail."""

import io
import json
import os
import re
import shutil
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import textnb
from tests.export.run import resealed
from tests.export.tables import SPLITTING
from textnb import ExportError, ModelFileError, ParameterError, TextClassifier, verify_export
from textnb.export.bundle import bundle_of
from textnb.export.golden import target_rows
from textnb.export.portable import Words, words_of
from textnb.export.targets import program
from textnb.export.targets.base import EngineMissing
from textnb.export.targets.known import TARGETS

NEWS = pl.DataFrame({
    "text": ["Rangers win the cup", "cup final tonight", "shares fall on rate fears",
             "bank shares and the rate", "new film opens", "the film of the cup final"],
    "label": ["sport", "sport", "money", "money", "arts", "arts"]})
TABLE = pl.DataFrame({"a": [1.0, 2.0, 4.0, 8.0], "label": ["x", "x", "y", "y"]})
DECISION = textnb.Decision({"arts": -2.5, "money": 0.5, "sport": 2.5}, None, {"documents": 59})
CALIBRATION = textnb.Calibration(1.5, 0.25, 4, "leave-one-out")


def plain(estimator=None, labels=None):
    frame = NEWS if labels is None else NEWS[:len(labels)].with_columns(label=pl.Series(labels))
    return TextClassifier(estimator).fit(frame)


def chosen():
    return plain().set_calibration(CALIBRATION).set_decision(DECISION)


def lists():
    return plain(labels=[["x", "y"], ["y"], [], ["x"]])


def table(estimator, feature="a"):
    return textnb.TableClassifier(estimator).fit(TABLE.rename({"a": feature}))


# Exports: a model, what is asked for, and the error.
REFUSED: list[tuple[Callable[[], Any], dict[str, Any], type[Exception], str]] = [
    (plain, {"to": "jsn"}, ParameterError, "unknown value 'jsn' - did you mean 'json'"),
    (lambda: plain(textnb.MultinomialNB(l=0)), {"to": "json"}, ExportError,
     "weights are infinite .*train with l > 0"),
    (plain, {"to": "json", "reads": "text"}, ExportError, "is given the tokens, not texts"),
    *((lambda: TextClassifier(tokenizer=textnb.Tokenizer(keep=("symbols", "emoji"))).fit(NEWS),
       {"to": to, "reads": "text"}, ExportError, "keep=") for to in ("sql-sqlite", "onnx")),
    (lambda: table(textnb.QuadraticDiscriminantAnalysis()), {"to": "json"}, ExportError,
     "is not linear; what can be exported"),
    (lambda: table(textnb.GaussianNB(shared_variance=True)), {"to": "json", "top": 1},
     ParameterError, "features can't be pruned"),
    (plain, {"to": "json", "precision": "float16"}, ParameterError, "precision"),
    (lambda: table(textnb.LinearDiscriminantAnalysis()), {"to": "json", "precision": "int8"},
     ExportError, "weights of features"),
    (plain, {"to": "parquet", "positive": "sport"}, ParameterError,
     "positive is for a model of two classes, and this has 3"),
    *((lambda: plain(labels=[1, 0]), {"to": "json", "positive": other}, ParameterError,
       "positive: unknown value") for other in (True, 1.0)),
    *((lambda labels=labels: plain(labels=labels), {"to": "json", "positive": str(labels[0])},
       ParameterError, f"positive: unknown value '{labels[0]}' of type str, not ")
      for labels in ([1, 0], [True, False])),
    (lambda: plain(labels=["x", "y"]), {"to": "liblinear"}, ExportError,
     r"^liblinear: .*one weight per term.*\(positive='y'\)"),
    (lists, {"to": "liblinear"}, ExportError, "liblinear: it answers with one class"),
    (lists, {"to": "python", "positive": "x"}, ParameterError, "positive is for one label"),
    (lists, {"to": "python", "answers": "decision"}, ExportError,
     "lists of labels have no decision beside"),
    *((lambda name=name: table(textnb.LinearDiscriminantAnalysis(), name), {"to": "polars"},
       ExportError, "rename it and train again") for name in ("scores", "predicted")),
    *((lambda name=name: TextClassifier(text=[name]).fit(NEWS.rename({"text": name})),
       {"to": "polars"}, ExportError, f"text column '{name}' has the name")
      for name in ("scores", "predicted")),
    (lambda: plain(labels=[["x", "y"], ["x"]]), {"to": "json"}, ExportError,
     "every document has the label 'x'"),
    (chosen, {"to": "csv", "answers": "probability"}, ExportError,
     "csv: it answers with scores, and not with probability; export to one of python, .* onnx"),
    (plain, {"to": "python", "answers": "decision"}, ExportError, "the model has no decision"),
    (chosen, {"to": "python", "answers": "decision", "top": 2}, ExportError, "no decision"),
    (chosen, {"to": "python", "answers": "probability", "top": 2}, ExportError,
     "held with all terms"),
    (chosen, {"to": "python", "answers": "chances"}, ParameterError, "answers")]


@pytest.mark.parametrize(("model", "settings", "error", "message"), REFUSED)
def test_what_can_not_be_exported_says_why_and_leaves_nothing(model, settings, error, message,
                                                              tmp_path):
    with pytest.raises(error, match=message):
        textnb.export_model(model(), tmp_path / "out", **settings)
    assert not list(tmp_path.iterdir())


# Bundles that somebody changed, under checksums that are right again


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """A bundle with nothing but weights, one with all answers, and one with a feature map."""
    folder = tmp_path_factory.mktemp("bundles")
    models = {"plain": (plain(), "json"), "chosen": (chosen(), "python"),
              "mapped": (plain(textnb.TfidfComplementNB()), "json")}
    return {name: textnb.export_model(model, folder / name, to).path
            for name, (model, to) in models.items()}


@pytest.fixture
def bundle(request, bundles, tmp_path):
    """A copy of a bundle, of the plain one unless a test says otherwise."""
    given = getattr(request.node, "callspec", None)
    name = given.params.get("of", "plain") if given else "plain"
    return Path(shutil.copytree(bundles[name], tmp_path / "out"))


def other(of, **changes):
    return [pytest.param(of, {key: value}, message, id=f"{key}-{value!r:.30}")
            for key, pairs in changes.items() for value, message in pairs]


UNSOUND = "is not a sound textnb bundle"


@pytest.mark.parametrize(("of", "change", "message"), [
    *other("plain", format=[("other", "not of format")],
           version=[(4, "Upgrade with"), (3, "version and multilabel do not match"),
                    ("1", "not of version 1 to 3"),
                    (0, "not of version 1 to 3")],
           above=[(float("inf"), "Infinity is not a number"), (-1, "above")],
           tokenizer=[(None, "no tokenizer"), ({"pattern": "("}, "not a valid regular"),
                      ({"surprise": 1}, "no setting 'surprise'")],
           classes=[({"type": "string", "labels": ["x", "x"]}, "its labels have duplicates"),
                    ({"type": "string", "labels": [1, 2, 3]}, "not of their type"),
                    ({"type": "float", "labels": [1.5]}, "float"),
                    ({"type": "string", "labels": []}, "not of their type"),
                    ({"type": "string", "labels": ["arts", "money", "sport"], "order": [2, 1, 0]},
                     "newer textnb: it has the name of classes 'order'")],
           reads=[("minds", "reads 'minds'")],
           intercept=[([1.0], "not one per output"), ("abc", "intercepts are not numbers")],
           positive=[("arts", "not found|unable to find")],
           target=[("nothing", "target 'nothing' is unknown"), (["x"], "target is not a name")],
           columns=[([], "columns"), (None, "columns")],
           newer=[(None, "newer textnb: it has the name in form.json 'newer'")]),
    *other("mapped", version=[(4, "Upgrade")], above=[(0.0, "not that of its feature map")],
           features=[({"steps": [{"step": "squared"}]}, "unknown value 'squared'"),
                     (None, UNSOUND),
                     ({"steps": [{"step": "idf", "weights": [1.0]}]}, "has 1 numbers")]),
    *other("chosen",
           calibration=[(3, UNSOUND), ({}, UNSOUND), ([], UNSOUND),
                        ({**CALIBRATION.to_dict(), "temperature": 0}, UNSOUND),
                        ({**CALIBRATION.to_dict(), "temperature": "1"}, UNSOUND),
                        ({**CALIBRATION.to_dict(), "temperature": 3.1},
                         "gives another (probability|decision)")],
           decision=[("sport", UNSOUND), ({}, UNSOUND),
                     ({**DECISION.to_dict(), "positive": "smap"}, UNSOUND),
                     *(({**DECISION.to_dict(), "thresholds": [
                         first, {"label": "money", "log_odds": 1}, {"label": "sport", "log_odds": 1}
                     ]}, UNSOUND) for first in (
                         {"label": "sport", "log_odds": 1}, {"label": "arts", "log_odds": "often"},
                         {"label": ["arts"], "log_odds": 1.0}))])])
def test_a_hostile_form_is_refused(bundle, of, change, message):
    form = json.loads((bundle / "form.json").read_text("utf-8"))
    (bundle / "form.json").write_text(json.dumps({**form, **change}), "utf-8")
    with pytest.raises((ModelFileError, ParameterError), match=message):
        verify_export(resealed(bundle))


Change = Callable[[pl.DataFrame], pl.DataFrame]


@pytest.mark.parametrize(("file", "change", "message"), [
    *(("weights.parquet", change, message) for change, message in [
        (lambda t: t.with_columns(pl.lit(float("nan")).alias("0")), "a weight is not finite"),
        (lambda t: t.with_columns(pl.lit(float("inf")).alias("1")), "a weight is not finite"),
        (lambda t: t.with_columns(pl.lit(None, pl.Float64).alias("1")), "a weight is not finite"),
        (lambda t: t.drop("2"), "not found|unable to find"),
        (lambda t: t.rename({"term": "word"}), "not found|unable to find"),
        (lambda t: t.with_columns(pl.lit("twice").alias("term")), "terms are not distinct"),
        (lambda t: t.with_columns(pl.lit("x").alias("0")), UNSOUND),
        (lambda t: t.with_columns(pl.lit(1e3).alias("0")), "give other scores")]),
    *(("golden.parquet", change, r"golden\.parquet") for change in [
        lambda t: t.head(0),
        lambda t: t.with_columns(scores=pl.lit([float("inf")] * 3, dtype=pl.List(pl.Float64))),
        lambda t: t.with_columns(scores=pl.lit([1.0], dtype=pl.List(pl.Float64))),
        lambda t: t.with_columns(scores=pl.lit(None, dtype=pl.List(pl.Float64))),
        lambda t: t.with_columns(scores=pl.lit("x")),
        lambda t: t.with_columns(label=pl.lit("nobody")),
        lambda t: t.with_columns(tokens=pl.lit("x")),
        lambda t: t.drop("tokens"), lambda t: t.drop("text")])])
def test_hostile_tables_are_refused(bundle, file, change, message):
    change(pl.read_parquet(bundle / file)).write_parquet(bundle / file)
    with pytest.raises(ModelFileError, match=message):
        verify_export(resealed(bundle))


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff" * 200])
def test_characters_that_no_reader_could_split_by_are_refused(content, bundle):
    (bundle / "characters.json").write_bytes(content)
    with pytest.raises(ModelFileError, match=rf"{UNSOUND}: .*characters\.json"):
        verify_export(resealed(bundle))


def test_a_step_of_a_later_release_is_refused(bundle):
    characters = json.loads((bundle / "characters.json").read_text())
    (bundle / "characters.json").write_text(json.dumps({**characters, "stem": "english"}))
    with pytest.raises(ModelFileError, match=r"it has the name in characters\.json 'stem'"):
        verify_export(resealed(bundle))


def test_a_wrong_weight_is_found_by_the_golden_rows(bundle):
    held = json.loads((bundle / "model.json").read_text("utf-8"))
    held["weights"] = [[weight + 1e-6 for weight in row] for row in held["weights"]]
    held["intercept"][0] += 100.0
    (bundle / "model.json").write_text(json.dumps(held), "utf-8")
    found = verify_export(resealed(bundle))
    assert not found.passed
    assert len(found.wrong_scores) == found.rows
    assert found.wrong_labels[0][2] == "arts"
    assert found.largest_difference == pytest.approx(100.0, abs=1e-2)


# Damage


@pytest.mark.parametrize("name", ["form.json", "weights.parquet", "golden.parquet", "model.json"])
def test_a_flipped_byte_and_a_missing_file_are_seen(bundle, name):
    path = bundle / name
    sound = path.read_bytes()
    for at in range(0, len(sound), max(1, len(sound) // 20)):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x40]) + sound[at + 1:])
        with pytest.raises(ModelFileError, match=f"the checksum of {name} differs"):
            verify_export(bundle)
    path.unlink()
    with pytest.raises(ModelFileError, match=f"{name} is missing"):
        verify_export(bundle)


def test_every_file_of_a_bundle_is_named_and_plain(bundle):
    (bundle / "model.more").write_text("x")
    with pytest.raises(ModelFileError, match=r"does not name model\.more"):
        verify_export(bundle)
    (bundle / "model.more").unlink()
    os.mkfifo(bundle / "model.pipe")
    with pytest.raises(ModelFileError, match=r"model\.pipe is not a plain file"):
        verify_export(bundle)
    with pytest.raises(textnb.SourceError, match="a device or a pipe"):
        verify_export(bundle / "model.pipe")


def test_a_missing_bundle_is_named(tmp_path):
    with pytest.raises(textnb.SourceError, match="no such bundle"):
        verify_export(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelFileError, match="SHA256SUMS"):
        verify_export(tmp_path / "empty")
    (tmp_path / "alone.csv").write_text("x")
    with pytest.raises(ExportError, match="no golden rows beside it"):
        verify_export(tmp_path / "alone.csv")


@pytest.fixture
def archive(tmp_path):
    return textnb.export_model(plain(), tmp_path / "out.zip", "json").path


def test_every_truncation_is_seen(archive):
    sound = archive.read_bytes()
    for length in [0, 1, *range(10, len(sound) - 1, max(1, len(sound) // 60)), len(sound) - 1]:
        archive.write_bytes(sound[:length])
        with pytest.raises(ModelFileError):
            verify_export(archive)


@pytest.mark.parametrize(("name", "content", "message"), [
    *((name, b"x", re.escape(repr(name)))
      for name in ("../outside", "/tmp/textnb-outside", "a/b", "..")),
    ("model.txt", b"0" * (64 << 20), r"SHA256SUMS does not name model\.txt")])
def test_no_other_member_of_an_archive_is_unpacked(archive, name, content, message, tmp_path):
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, content)
    with pytest.raises(ModelFileError, match=message):
        verify_export(archive)
    assert [path.name for path in tmp_path.iterdir()] == ["out.zip"]


def test_sizes_are_bounded_before_memory_is_taken(archive):
    with pytest.raises(ModelFileError, match="more than the limit"):
        verify_export(archive, max_bytes=1000)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("form.json", b"0" * (64 << 20))
    archive.write_bytes(bomb.getvalue())
    with pytest.raises(ModelFileError, match="more than the limit"):
        verify_export(archive, max_bytes=32 << 20)


def test_rows_without_the_columns_are_refused(bundles):
    for rows in (NEWS.rename({"text": "body"}), NEWS.lazy().rename({"text": "body"})):
        with pytest.raises(textnb.SchemaError, match=r"no column 'text'.*: rename yours"):
            verify_export(bundles["plain"], rows)
    with pytest.raises(textnb.SchemaError, match="must be String"):
        verify_export(bundles["plain"], NEWS.with_columns(text=pl.lit(1)))


# Engines


@pytest.mark.parametrize(("target", "message"), [
    ("sql-duckdb", r"pip install 'textnb\[duckdb\]'"), ("sql-sqlite", r"SQLite 3\.38"),
    ("sql-postgres", r"pip install 'textnb\[postgres\]'"),
    ("sql-clickhouse", r"pip install 'textnb\[clickhouse\]'"), ("javascript", "Node"),
    ("c", "no C compiler 'no-such-compiler': install"), ("onnx", r"pip install 'textnb\[onnx\]'"),
    ("liblinear", "apt-get install liblinear-tools")])
def test_an_engine_that_is_not_installed_is_named(target, message, tmp_path, monkeypatch):
    for module in ("duckdb", "psycopg", "chdb", "onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 30, 0))
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("PATH", "")
    bundle = bundle_of(plain(), "terms")
    with pytest.raises(EngineMissing, match=message):
        TARGETS[target].run(bundle, tmp_path / "model", target_rows(bundle, NEWS))
    if target == "onnx":
        with pytest.raises(ExportError, match=message):
            TARGETS[target].write(bundle, tmp_path / "model.onnx")


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c;"


@pytest.mark.sweep(5)
@pytest.mark.parametrize(("to", "code", "message"), [
    ("python", "import time; time.sleep(1000)", "did not end within 1 s"),
    ("python", "while True: print('x' * 1000)", "wrote more than 1,000,000 bytes"),
    ("python", "raise SystemExit('no licence')", "the engine failed: no licence"),
    ("python", "print('hello')", "answers can't be read"),
    ("python", "print('{\"scores\": [1, 2, 3], \"label\": 0, \"probabilities\": []}')",
     "answered 1 row of 3"),
    ("python", "", "answered 0 rows"),
    *((to, *rest) for to in ("sql-sqlite", "sql-duckdb") for rest in [
        (ENDLESS, "the engine failed: .*(?i:interrupt)"), ("SELECT 1;", "the engine failed"),
        ("this is no SQL", "the engine failed")])])
def test_an_engine_that_misbehaves_is_stopped_and_named(to, code, message, tmp_path, monkeypatch):
    if to == "sql-duckdb":
        pytest.importorskip("duckdb")
    if code == ENDLESS or "sleep" in code:
        # The others end by themselves, and on a busy machine a start alone may take a second.
        monkeypatch.setattr(program, "MAX_SECONDS", 1.0)
    monkeypatch.setattr(program, "MAX_OUTPUT_BYTES", 1_000_000)
    path = textnb.export_model(plain(), tmp_path / "out", to).path
    next(path.glob("model.*")).write_text(code)
    with pytest.raises(ExportError, match=message):
        verify_export(resealed(path))


@dataclass(frozen=True)
class MoreWords(Words):
    """Words with a setting that no target knows."""

    max_length: int | None = None


@pytest.mark.parametrize("to", [to for to in SPLITTING if to != "polars"])
def test_a_new_setting_of_words_is_refused_until_a_target_knows_it(to, tmp_path, monkeypatch):
    def more(plan, columns):
        words = words_of(plan, columns)
        return MoreWords(**{field.name: getattr(words, field.name) for field in fields(words)},
                         max_length=4)

    monkeypatch.setattr("textnb.export.bundle.words_of", more)
    with pytest.raises(ExportError, match="max_length=4: this target does not execute it"):
        textnb.export_model(plain(), tmp_path / "model", to=to, reads="text")
    assert not list(tmp_path.iterdir())
