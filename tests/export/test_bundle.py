"""Bundles: what is in them, what verifies, what is refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import corpora
from textnb import (
    BernoulliNB,
    ComplementNB,
    ExportError,
    GaussianNB,
    LinearDiscriminantAnalysis,
    ModelFileError,
    MultinomialNB,
    NBLogisticRegression,
    ParameterError,
    QuadraticDiscriminantAnalysis,
    SchemaError,
    SourceError,
    TableClassifier,
    TextClassifier,
    TextnbError,
    Tokenizer,
    export_model,
    verify_export,
)
from textnb.export import golden, reduce
from textnb.export.bundle import bundle_of
from textnb.export.targets import program
from textnb.files.archive import write_sums

DATA = ("json", "parquet", "csv", "npz")
NEWS = pl.DataFrame({
    "text": ["Rangers win the cup", "cup final tonight", "shares fall on rate fears",
             "bank shares and the rate", "new film opens", "the film of the cup final"],
    "label": ["sport", "sport", "money", "money", "arts", "arts"],
})


def model(estimator: Any = None, frame: pl.DataFrame = NEWS, **settings: Any) -> TextClassifier:
    return TextClassifier(estimator, **settings).fit(frame)


@pytest.mark.parametrize("to", DATA)
@pytest.mark.parametrize("estimator", [
    MultinomialNB(), BernoulliNB(l=0.1), ComplementNB(), NBLogisticRegression()],
    ids=lambda estimator: type(estimator).__name__)
def test_data_targets_score_as_the_form_does(to: str, estimator: Any, tmp_path: Path) -> None:
    fitted = model(estimator, tokenizer=Tokenizer(ngram_range=(1, 2)))
    export_model(fitted, tmp_path / "out", to)
    found = verify_export(tmp_path / "out")
    assert found.passed
    assert found.rows == len(golden.documents(bundle_of(fitted)))
    assert found.largest_difference < 1e-10
    # Rows of one's own.
    found = verify_export(tmp_path / "out", NEWS)
    assert (found.rows, found.passed) == (6, True)


@pytest.mark.parametrize("to", DATA)
def test_a_dense_form(to: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)) + 100.0
    frame = pl.DataFrame(x, schema=["a", "b", "c"]).with_columns(
        pl.Series("label", (x[:, 0] + x[:, 1] > 200).tolist()))
    fitted = TableClassifier(LinearDiscriminantAnalysis()).fit(frame)
    for positive in (None, True):
        export_model(fitted, tmp_path / "out", to, positive=positive)
        assert verify_export(tmp_path / "out").passed
        assert verify_export(tmp_path / "out", frame).passed
    weights = pl.read_parquet(tmp_path / "out" / "weights.parquet")
    assert weights.columns == ["feature", "w"]
    assert weights["feature"].to_list() == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["scores", "predicted"])
def test_a_feature_that_polars_would_mistake_is_refused(name: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({name: [1.0, 2.0, 7.0, 8.0], "label": ["a", "a", "b", "b"]})
    fitted = TableClassifier(LinearDiscriminantAnalysis(), features=[name]).fit(frame)
    with pytest.raises(ExportError, match="rename it and train again"):
        export_model(fitted, tmp_path / "out", "polars")


def test_the_files(tmp_path: Path) -> None:
    fitted = model(tokenizer=Tokenizer(ngram_range=(1, 2)))
    export_model(fitted, tmp_path / "out", "json")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["SHA256SUMS", "characters.json", "form.json", "golden.parquet", "model.json",
                     "weights.parquet"]
    form = json.loads((tmp_path / "out" / "form.json").read_text())
    assert form["format"] == "textnb-bundle"
    assert form["version"] == 1
    assert form["classes"] == {"type": "string", "labels": ["arts", "money", "sport"]}
    assert form["intercept"] == fitted.linear_form().intercept.tolist()
    assert form["above"] is None
    assert form["tokenizer"] == fitted.tokenizer.to_dict()
    assert form["trained"]["documents"] == [2, 2, 2]
    assert form["trained"]["estimator"]["parameters"]["l"] == 1.0
    weights = pl.read_parquet(tmp_path / "out" / "weights.parquet")
    assert weights.columns == ["term", "words", "0", "1", "2"]
    assert weights.row(by_predicate=pl.col("term") == "cup final")[1] == ["cup", "final"]
    assert np.array_equal(weights.select("0", "1", "2").to_numpy(), fitted.linear_form().weights)
    # The checksums are those that sha256sum --check reads.
    for line in (tmp_path / "out" / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest


def test_golden_documents_hold_what_tokenizers_stumble_on_and_no_training_text(
    tmp_path: Path,
) -> None:
    frame = pl.DataFrame({"text": ["a secret sentence of training", "another one of those"],
                          "label": ["x", "y"]})
    export_model(model(frame=frame), tmp_path / "out", "json")
    table = pl.read_parquet(tmp_path / "out" / "golden.parquet")
    texts = table["text"].to_list()
    assert None in texts
    assert "" in texts
    held = "".join(text for text in texts if text)
    for hard in ("İ", "Σ", "\u0301", "हि", "中", "😀", "\t", "\n", "'", '"', "\\", "\x00", "1"):
        assert hard in held
    assert max(len(text) for text in texts if text) > 5000
    for sentence in frame["text"]:
        assert sentence not in held
    assert table["tokens"].list.contains("secret").any()
    for row in table.iter_rows(named=True):
        assert row["tokens"] == Tokenizer().tokens(row["text"] or "")


def test_two_classes_as_one_w_and_b(tmp_path: Path) -> None:
    two = NEWS.filter(pl.col("label") != "arts")
    fitted = model(frame=two)
    w, b = fitted.linear_form().binary("sport")
    export_model(fitted, tmp_path / "out", "parquet", positive="sport")
    assert verify_export(tmp_path / "out").passed
    weights = pl.read_parquet(tmp_path / "out" / "weights.parquet")
    assert weights.columns == ["term", "w"]
    assert np.array_equal(weights["w"].to_numpy(), w)
    assert json.loads((tmp_path / "out" / "form.json").read_text())["intercept"] == [b]
    with pytest.raises(ParameterError, match="two classes"):
        export_model(model(), tmp_path / "other", "parquet", positive="sport")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["sms_spam", "spamassassin"])
def test_w_and_b_are_above_zero_exactly_where_the_positive_class_wins(
    corpus: Callable[[str], pl.LazyFrame], name: str
) -> None:
    if name == "spamassassin":
        if not corpora.available(name):
            pytest.skip("TEXTNB_CORPORA holds no SpamAssassin messages")
        frame = corpora.load(name).select("text", "label").collect()
    else:
        frame = corpus(name).collect()
    train, test = frame[::2], frame[1::2]
    for estimator in (MultinomialNB(), BernoulliNB(), ComplementNB()):
        fitted = TextClassifier(estimator).fit(train)
        w, b = fitted.linear_form().binary("spam")
        x = fitted.transform(test)
        if isinstance(estimator, BernoulliNB):
            x.data[:] = 1
        assert np.array_equal(x @ w + b > 0, fitted.predict(test)["predicted"] == "spam")


def test_an_archive_a_folder_and_a_single_file_verify_alike(tmp_path: Path) -> None:
    fitted = model()
    for path in ("out", "out.zip", "weights.csv"):
        export_model(fitted, tmp_path / path, "csv")
        assert verify_export(tmp_path / path).passed
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out", "out.zip", "weights.csv", "weights.csv.bundle.zip"]
    assert (tmp_path / "weights.csv").read_bytes() == (tmp_path / "out/model.csv").read_bytes()
    # A bundle may be replaced; the same model gives the same bytes.
    before = (tmp_path / "out.zip").read_bytes()
    export_model(fitted, tmp_path / "out.zip", "csv")
    assert (tmp_path / "out.zip").read_bytes() == before
    export_model(fitted, tmp_path / "out", "json")
    assert verify_export(tmp_path / "out").target == "json"
    (tmp_path / "weights.csv").write_text("else")
    with pytest.raises(ModelFileError, match=r"not the file of its bundle"):
        verify_export(tmp_path / "weights.csv")
    (tmp_path / "alone.csv").write_text("x")
    with pytest.raises(ExportError, match="no golden rows beside it"):
        verify_export(tmp_path / "alone.csv")


def test_nothing_but_a_bundle_is_replaced(tmp_path: Path) -> None:
    kept = tmp_path / "mine"
    kept.mkdir()
    (kept / "thesis.tex").write_text("years of work")
    with pytest.raises(SourceError, match="is there and is no bundle"):
        export_model(model(), kept, "json")
    assert [path.name for path in kept.iterdir()] == ["thesis.tex"]
    with pytest.raises(SourceError, match="no folder"):
        export_model(model(), tmp_path / "absent" / "out", "json")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_folder_that_holds_more_than_a_bundle_is_kept(tmp_path: Path) -> None:
    export_model(model(), tmp_path / "out", "json")
    (tmp_path / "out" / "NOTES.md").write_text("mine")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "form.json").write_text('{"title": "contact form"}')
    model().save(tmp_path / "m.zip")
    model().save(tmp_path / "m.json")
    (tmp_path / "app.py").write_text("print('mine')")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for name, to in (("out", "json"), ("site", "json"), ("m.zip", "json"), ("m.json", "json"),
                     ("app.py", "python")):
        with pytest.raises(SourceError, match=r"it is there and|beside the earlier export"):
            export_model(model(), tmp_path / name, to)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["-", "out.csv", "out.onnx"])
def test_names_that_mean_something_else_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TextnbError, match=r"standard output|another target's file"):
        export_model(model(), name, "json")
    assert not list(tmp_path.iterdir())


def test_a_killed_export_is_put_right_by_the_next(tmp_path: Path) -> None:
    export_model(model(), tmp_path / "out", "json")
    # As between the two renames.
    (tmp_path / "out").rename(tmp_path / ".out.textnb-old")
    (tmp_path / ".out.textnb-run").mkdir()
    with pytest.raises(ExportError):
        export_model(TextClassifier().fit(["good film", "bad film"], ["pos", "neg"]),
                     tmp_path / "out", "liblinear")
    export_model(model(), tmp_path / "out", "json")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_rows_in_every_form_that_predict_takes(tmp_path: Path) -> None:
    path = export_model(model(), tmp_path / "out", "json").path
    texts = NEWS["text"].to_list()
    NEWS.write_parquet(tmp_path / "news.parquet")
    for rows in (texts, NEWS["text"], NEWS.to_dicts(), NEWS.lazy(), tmp_path / "news.parquet"):
        found = verify_export(path, rows)
        assert (found.rows, found.passed) == (len(texts), True)


def test_a_single_file_and_its_bundle_change_together(tmp_path: Path) -> None:
    (tmp_path / "spam.py.bundle.zip").mkdir()
    (tmp_path / "spam.py").write_text("old")
    with pytest.raises(SourceError, match="it is a folder"):
        export_model(model(), tmp_path / "spam.py", "python")
    assert (tmp_path / "spam.py").read_text() == "old"


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_between_two_renames_loses_nothing(
    at: int, after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_model(model(), tmp_path / "out", "json")
    genuine, calls = os.rename, 0

    def rename(source: Any, target: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == at and not after:
            raise KeyboardInterrupt
        genuine(source, target)
        if calls == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        export_model(model(), tmp_path / "out", "csv")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert verify_export(tmp_path / "out").passed


def test_a_bundle_verifies_from_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export_model(model(), tmp_path / "out", "json")
    monkeypatch.chdir(tmp_path / "out")
    assert verify_export(".").passed
    with pytest.raises(SourceError, match="current folder"):
        export_model(model(), ".", "json")


def test_a_positive_class_has_the_type_of_the_labels(tmp_path: Path) -> None:
    fitted = model(frame=pl.DataFrame({"text": ["good", "bad"], "label": [1, 0]}))
    export_model(fitted, tmp_path / "out", "json", positive=fitted.classes_[1])
    assert verify_export(tmp_path / "out").passed
    for other in (True, 1.0, "1"):
        with pytest.raises(ParameterError, match="positive: unknown value"):
            export_model(fitted, tmp_path / "other", "json", positive=other)


def test_an_export_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_model(model(), tmp_path / "out", "json")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    def broken(folder: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("textnb.export.write.write_sums", broken)
    for path in ("out", "new", "new.zip"):
        with pytest.raises(KeyboardInterrupt):
            export_model(model(), tmp_path / path, "json")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


# Refusals


def test_what_can_not_leave_says_why(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"unknown value 'jsn' - did you mean 'json'"):
        export_model(model(), tmp_path / "out", "jsn")
    with pytest.raises(ExportError, match=r"weights are infinite .*train with l > 0"):
        export_model(model(MultinomialNB(l=0)), tmp_path / "out", "json")
    with pytest.raises(ExportError, match="is given the tokens, not texts"):
        export_model(model(), tmp_path / "out", "json", reads="text")
    table = pl.DataFrame({"a": [1.0, 2.0, 4.0, 8.0], "label": ["x", "x", "y", "y"]})
    with pytest.raises(ExportError, match="is not linear; what can be exported"):
        export_model(TableClassifier(QuadraticDiscriminantAnalysis()).fit(table),
                     tmp_path / "out", "json")
    export_model(TableClassifier(GaussianNB(shared_variance=True)).fit(table),
                 tmp_path / "out", "json")
    with pytest.raises(ParameterError, match="features can't be pruned"):
        export_model(TableClassifier(GaussianNB(shared_variance=True)).fit(table),
                     tmp_path / "out", "json", top=1)


def test_a_tokenizer_that_is_not_portable_says_so() -> None:
    bundle = bundle_of(model(tokenizer=Tokenizer(pattern="[a-z]+-?[a-z]+")))
    with pytest.raises(ExportError, match="not a run of one class"):
        bundle.words()


# Pruning


def test_pruning_keeps_what_moves_decisions_most(tmp_path: Path) -> None:
    fitted = model()
    bundle = bundle_of(fitted)
    smaller, report = reduce.keep_top(bundle, 5)
    weights = fitted.linear_form().weights
    spreads = weights.max(axis=1) - weights.min(axis=1)
    order = sorted(range(len(spreads)), key=lambda t: (-spreads[t], t))
    assert smaller.terms == tuple(fitted.vocabulary_[t] for t in sorted(order[:5]))
    assert report == {"kept": 5, "dropped": len(order) - 5}
    assert reduce.keep_top(bundle, len(order)) == (bundle, {"kept": len(order), "dropped": 0})

    assert export_model(fitted, tmp_path / "out", "json", top=5).pruned == report
    assert verify_export(tmp_path / "out").passed


# Damage


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    export_model(model(), tmp_path / "out.zip", "json")
    return tmp_path / "out.zip"


def rebuilt(path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """The archive with its members changed and its checksums right again."""
    with zipfile.ZipFile(path) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    change(members)
    members.pop("SHA256SUMS", None)
    members["SHA256SUMS"] = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in sorted(members.items())).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)


def test_every_truncation_is_seen(exported: Path) -> None:
    sound = exported.read_bytes()
    for length in [0, 1, *range(10, len(sound) - 1, max(1, len(sound) // 60)), len(sound) - 1]:
        exported.write_bytes(sound[:length])
        with pytest.raises(ModelFileError):
            verify_export(exported)


@pytest.mark.parametrize("name", ["form.json", "weights.parquet", "golden.parquet", "model.json"])
def test_a_flipped_byte_is_seen(tmp_path: Path, name: str) -> None:
    export_model(model(), tmp_path / "out", "json")
    path = tmp_path / "out" / name
    sound = path.read_bytes()
    for at in range(0, len(sound), max(1, len(sound) // 20)):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x40]) + sound[at + 1:])
        with pytest.raises(ModelFileError, match=f"the checksum of {name} differs"):
            verify_export(tmp_path / "out")
    path.unlink()
    with pytest.raises(ModelFileError, match=f"{name} is missing"):
        verify_export(tmp_path / "out")


@pytest.mark.parametrize(("key", "value", "message"), [
    ("format", "other", "not of format"),
    ("version", 4, "Upgrade with"),
    ("version", 3, "lists of labels"),
    ("version", "1", "not of version 1 to 3"),
    ("version", 0, "not of version 1 to 3"),
    ("above", float("inf"), "Infinity is not a number"),
    ("tokenizer", None, "no tokenizer"),
    ("classes", {"type": "string", "labels": ["x", "x"]}, "each once"),
    ("reads", "minds", "reads 'minds'"),
    ("intercept", [1.0], "not one per output"),
    ("intercept", "abc", "intercepts are not numbers"),
    ("above", -1, "above"),
    ("positive", "arts", "not found|unable to find"),
    ("target", "nothing", "target 'nothing' is unknown"),
    ("target", ["x"], "target is not a name"),
    ("classes", {"type": "string", "labels": [1, 2, 3]}, "not of their type"),
    ("classes", {"type": "float", "labels": [1.5]}, "float"),
    ("classes", {"type": "string", "labels": []}, "not of their type"),
    ("tokenizer", {"pattern": "("}, "capturing group"),
    ("tokenizer", {"surprise": 1}, "no setting 'surprise'"),
    ("columns", [], "columns"),
    ("columns", None, "columns"),
])
def test_a_hostile_form_is_refused(exported: Path, key: str, value: Any, message: str) -> None:
    def change(members: dict[str, bytes]) -> None:
        form = json.loads(members["form.json"])
        form[key] = value
        members["form.json"] = json.dumps(form).encode()

    rebuilt(exported, change)
    with pytest.raises((ModelFileError, ParameterError), match=message):
        verify_export(exported)


def table(content: bytes) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(content))


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("change", [
    lambda t: t.with_columns(pl.lit(float("nan")).alias("0")),
    lambda t: t.with_columns(pl.lit(float("inf")).alias("1")),
    lambda t: t.with_columns(pl.lit(None, dtype=pl.Float64).alias("1")),
    lambda t: t.drop("2"),
    lambda t: t.rename({"term": "word"}),
    lambda t: t.with_columns(pl.lit("twice").alias("term")),
    lambda t: t.with_columns(pl.lit("x").alias("0")),
])
def test_hostile_weights_are_refused(
    exported: Path, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> None:
    rebuilt(exported, lambda members: members.update(
        {"weights.parquet": parquet(change(table(members["weights.parquet"])))}))
    with pytest.raises(ModelFileError):
        verify_export(exported)


@pytest.mark.parametrize("change", [
    lambda t: t.head(0),
    lambda t: t.with_columns(scores=pl.lit([float("inf")] * 3, dtype=pl.List(pl.Float64))),
    lambda t: t.with_columns(scores=pl.lit([1.0], dtype=pl.List(pl.Float64))),
    lambda t: t.with_columns(scores=pl.lit(None, dtype=pl.List(pl.Float64))),
    lambda t: t.with_columns(scores=pl.lit("x")),
    lambda t: t.with_columns(label=pl.lit("nobody")),
    lambda t: t.with_columns(tokens=pl.lit("x")),
    lambda t: t.drop("tokens"),
    lambda t: t.drop("text"),
])
def test_hostile_golden_rows_are_refused(
    exported: Path, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> None:
    rebuilt(exported, lambda members: members.update(
        {"golden.parquet": parquet(change(table(members["golden.parquet"])))}))
    with pytest.raises(ModelFileError, match=r"golden\.parquet"):
        verify_export(exported)


def test_weights_that_contradict_the_golden_rows_are_refused(exported: Path) -> None:
    rebuilt(exported, lambda members: members.update({"weights.parquet": parquet(
        table(members["weights.parquet"]).with_columns(pl.lit(1e3).alias("0")))}))
    with pytest.raises(ModelFileError, match="give other scores"):
        verify_export(exported)


def test_every_file_of_a_bundle_is_named_and_plain(tmp_path: Path) -> None:
    export_model(model(), tmp_path / "out", "json")
    (tmp_path / "out" / "model.more").write_text("x")
    with pytest.raises(ModelFileError, match=r"does not name model\.more"):
        verify_export(tmp_path / "out")
    (tmp_path / "out" / "model.more").unlink()
    os.mkfifo(tmp_path / "out" / "model.pipe")
    with pytest.raises(ModelFileError, match=r"model\.pipe is not a plain file"):
        verify_export(tmp_path / "out")
    with pytest.raises(SourceError, match="a device or a pipe"):
        verify_export(tmp_path / "out" / "model.pipe")


def test_what_a_compiler_leaves_beside_a_bundle_is_no_part_of_it(tmp_path: Path) -> None:
    export_model(model(), tmp_path / "out", "python")
    for name in ("model.o", "score.c"):
        (tmp_path / "out" / name).write_text("x")
    (tmp_path / "out" / "__pycache__").mkdir()
    assert verify_export(tmp_path / "out").passed


def test_a_wrong_weight_is_found_by_the_golden_rows(exported: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        held = json.loads(members["model.json"])
        held["weights"] = [[weight + 1e-6 for weight in row] for row in held["weights"]]
        held["intercept"][0] += 100.0
        members["model.json"] = json.dumps(held).encode()

    rebuilt(exported, change)
    found = verify_export(exported)
    assert not found.passed
    assert len(found.wrong_scores) == found.rows
    assert found.wrong_labels[0][2] == "arts"
    assert found.largest_difference == pytest.approx(100.0, abs=1e-2)


@pytest.mark.parametrize("name", ["../outside", "/tmp/textnb-outside", "a/b", ".."])
def test_no_member_is_written_outside(exported: Path, name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(exported, "a") as packed:
        packed.writestr(name, "x")
    with pytest.raises(ModelFileError, match=re.escape(repr(name))):
        verify_export(exported)
    assert [path.name for path in tmp_path.iterdir()] == ["out.zip"]


def test_sizes_are_bounded_before_memory_is_taken(exported: Path) -> None:
    with pytest.raises(ModelFileError, match="more than the limit"):
        verify_export(exported, max_bytes=1000)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("form.json", b"0" * (64 << 20))
    exported.write_bytes(bomb.getvalue())
    with pytest.raises(ModelFileError, match="more than the limit"):
        verify_export(exported, max_bytes=32 << 20)


def test_members_that_no_checksum_names_are_not_unpacked(exported: Path) -> None:
    with zipfile.ZipFile(exported, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("model.txt", b"0" * (64 << 20))
    with pytest.raises(ModelFileError, match=r"SHA256SUMS does not name model\.txt"):
        verify_export(exported)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff" * 200])
def test_characters_that_no_reader_could_split_by_are_refused(
    content: bytes, tmp_path: Path
) -> None:
    folder = export_model(model(), tmp_path / "out", "json").path
    (folder / "characters.json").write_bytes(content)
    write_sums(folder)
    with pytest.raises(ModelFileError, match=r"not a sound textnb bundle: .*characters\.json"):
        verify_export(folder)


def test_rows_without_the_columns_are_told(tmp_path: Path) -> None:
    export_model(model(), tmp_path / "out", "json")
    for rows in (NEWS.rename({"text": "body"}), NEWS.lazy().rename({"text": "body"})):
        with pytest.raises(SchemaError, match=r"no column 'text'.*: rename yours"):
            verify_export(tmp_path / "out", rows)
    with pytest.raises(SchemaError, match="must be String"):
        verify_export(tmp_path / "out", NEWS.with_columns(text=pl.lit(1)))


def test_a_missing_bundle_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such bundle"):
        verify_export(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelFileError, match="SHA256SUMS"):
        verify_export(tmp_path / "empty")


MISBEHAVING = {
    "sleeps": ("import time; time.sleep(1000)", "did not end within 1 s"),
    "floods": ("while True: print('x' * 1000)", "wrote more than 1,000,000 bytes"),
    "fails": ("raise SystemExit('no licence')", "the engine failed: no licence"),
    "babbles": ("print('hello')", "answers can't be read"),
    "says little": ("print('{\"scores\": [1, 2, 3], \"label\": 0, \"probabilities\": []}')",
                    "answered 1 row of 3"),
    "says nothing": ("", "answered 0 rows"),
}


@pytest.mark.parametrize("how", MISBEHAVING)
def test_an_engine_that_misbehaves_is_told(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = MISBEHAVING[how]
    if how == "sleeps":
        # The others end by themselves, and on a busy machine a start alone may take a second.
        monkeypatch.setattr(program, "SECONDS", 1.0)
    monkeypatch.setattr(program, "MAX_BYTES", 1_000_000)
    export_model(model(), tmp_path / "out.zip", "python")
    rebuilt(tmp_path / "out.zip", lambda members: members.update({"model.py": code.encode()}))
    with pytest.raises(ExportError, match=said):
        verify_export(tmp_path / "out.zip")


@pytest.mark.parametrize(("to", "package"), [("sql-sqlite", "sqlite3"), ("sql-duckdb", "duckdb")])
@pytest.mark.parametrize(("script", "said"), [
    ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c;",
     "the engine failed: .*(?i:interrupt)"),
    ("SELECT 1;", "the engine failed"),
    ("this is no SQL", "the engine failed"),
])
def test_a_script_that_misbehaves_is_told(
    to: str, package: str, script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(package)
    monkeypatch.setattr(program, "SECONDS", 1.0)
    export_model(model(), tmp_path / "out.zip", to)
    rebuilt(tmp_path / "out.zip", lambda members: members.update({"model.sql": script.encode()}))
    with pytest.raises(ExportError, match=said):
        verify_export(tmp_path / "out.zip")
