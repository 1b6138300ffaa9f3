"""Lists of labels on the command line."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sklearn.metrics import f1_score, hamming_loss
from sklearn.preprocessing import MultiLabelBinarizer

import textnb
from tests.classifier.test_multilabel import NEWS, TESTED, TOPICS
from tests.cli.conftest import Run
from textnb import TextClassifier
from textnb.cli.main import VERBS


@pytest.fixture
def files(folder: Path) -> Path:
    NEWS.write_parquet("news.parquet")
    TESTED.write_ndjson("tested.ndjson")
    for name, frame in (("news.csv", NEWS), ("tested.csv", TESTED)):
        frame.with_columns(pl.col("label").list.join(", ")).write_csv(name)
    TextClassifier().fit(NEWS).save("topics.textnb")
    return folder


def bytes_of(name: str) -> bytes:
    return Path(name).read_bytes()


def test_parquet_ndjson_and_csv_learn_the_same(run: Run, files: Path) -> None:
    run("train", "news.parquet", "-o", "one.textnb")
    run("train", "news.csv", "--read", "label_separator=,", "-o", "two.textnb")
    assert bytes_of("one.textnb") == bytes_of("two.textnb") == bytes_of("topics.textnb")
    result = run("train", "tested.ndjson", "-o", "three.textnb")
    assert "5 labels" in result.err


@pytest.mark.filterwarnings("always::textnb.errors.LearnedRowsWarning")
def test_columns_of_labels(run: Run, files: Path) -> None:
    names = sorted({name for labels in NEWS["label"] for name in labels})
    NEWS.with_columns(pl.col("label").list.contains(name).alias(name) for name in names).drop(
        "label").write_csv("wide.csv")
    columns = ["--read", f"label_columns={','.join(names)}"]
    run("train", "wide.csv", *columns, "-o", "one.textnb").checked()
    assert bytes_of("one.textnb") == bytes_of("topics.textnb")
    tested = run("test", "one.textnb", "wide.csv", *columns).checked()
    assert tested.out == run("test", "one.textnb", "news.parquet").checked().out
    assert "the model has probably learned these rows" in tested.err
    assert "does not go with" in run("train", "wide.csv", *columns, "--read", "label_separator=,",
                                       "-o", "two.textnb").checked(2).err
    assert "a column 'label' already" in run("train", "news.parquet", "--read", "label_columns=a",
                                             "-o", "two.textnb").checked(1).err


def test_update_forget_and_merge_are_exact(run: Run, files: Path) -> None:
    run("update", "topics.textnb", "tested.ndjson", "-o", "more.textnb")
    whole = TextClassifier().fit(pl.concat([NEWS, TESTED]))
    read = textnb.load("more.textnb")
    assert isinstance(read, TextClassifier)
    assert read.statistics_.equals(whole.statistics_)
    run("forget", "more.textnb", "tested.csv", "--read", "label_separator=,", "-o", "less.textnb")
    assert bytes_of("less.textnb") == bytes_of("topics.textnb")
    run("train", "tested.ndjson", "-o", "other.textnb")
    run("merge", "topics.textnb", "other.textnb", "-o", "both.textnb")
    assert bytes_of("both.textnb") == bytes_of("more.textnb")


def test_predictions_are_lists_and_in_csv_texts(run: Run, files: Path) -> None:
    expected = TextClassifier().fit(NEWS).predict(TESTED)["predicted"]
    run("predict", "topics.textnb", "tested.ndjson", "-o", "out.parquet", "--top-k", "2")
    assert pl.read_parquet("out.parquet")["predicted"].to_list() == expected.to_list()
    run("predict", "topics.textnb", "tested.csv", "-o", "out.csv")
    assert pl.read_csv("out.csv")["predicted"].fill_null("").to_list() == [
        "; ".join(labels) for labels in expected]


@pytest.mark.parametrize("name", ["tested.ndjson", "tested.csv"])
def test_measures_are_those_of_scikit_learn(run: Run, files: Path, name: str) -> None:
    more = ["--read", "label_separator=,"] if name.endswith("csv") else []
    found = json.loads(run("test", "topics.textnb", name, *more, "--format", "json").checked().out)
    model = TextClassifier().fit(NEWS)
    binarizer = MultiLabelBinarizer(classes=model.classes_.tolist())
    true = binarizer.fit_transform(TESTED["label"].to_list())
    said = binarizer.transform(model.predict(TESTED)["predicted"].to_list())
    assert found["micro_f1"] == pytest.approx(f1_score(true, said, average="micro"))
    assert found["macro_f1"] == pytest.approx(f1_score(true, said, average="macro"))
    assert found["example_f1"] == pytest.approx(
        f1_score(true, said, average="samples", zero_division=1.0))
    assert found["hamming_loss"] == pytest.approx(hamming_loss(true, said))
    assert found["subset_accuracy"] == pytest.approx((true == said).all(axis=1).mean())
    assert [row["documents"] for row in found["labels"]] == true.sum(axis=0).tolist()
    assert "micro F1" in run("test", "topics.textnb", name, *more).checked().out


def test_labels_that_the_model_does_not_know_are_missed(run: Run, files: Path) -> None:
    rows = {"text": ["aa", "bb"], "label": [["zinc"], ["corn"]]}
    pl.DataFrame(rows, schema=NEWS.schema).write_parquet("zinc.parquet")
    result = run("test", "topics.textnb", "zinc.parquet", "--format", "json")
    found = json.loads(result.out)
    assert found["unknown_labels"] == ["zinc"]
    assert "does not know the labels 'zinc'" in result.err


def test_top_ranks_each_label_against_its_rest(run: Run, files: Path) -> None:
    shown = json.loads(run("top", "topics.textnb", "-k", "3", "--format", "json").checked().out)
    own = TextClassifier().fit(NEWS.with_columns(
        label=pl.col("label").list.contains("corn"))).top(3, True)
    corn = [row for row in shown if row["class"] == "corn"]
    assert [row["term"] for row in corn] == own["term"].to_list()
    assert [row["z"] for row in corn] == own["z"].to_list()
    assert [row["weight"] for row in corn] == own["weight"].to_list()


def test_describe_counts_the_documents_of_each_label(run: Run, files: Path) -> None:
    card = json.loads(run("describe", "topics.textnb", "--format", "json").checked().out)
    assert card["multilabel"] is True
    assert card["training_rows"] == NEWS.height
    assert {row["label"]: row["rows"] for row in card["classes"]} == dict(
        NEWS["label"].explode().drop_nulls().value_counts().iter_rows())
    shares = {row["label"]: row["rows"] / NEWS.height for row in card["classes"]}
    assert {row["label"]: row["prior"] for row in card["classes"]} == pytest.approx(shares)
    assert "5 labels" in run("describe", "topics.textnb").checked().out
    TextClassifier(textnb.NBLinear()).fit(NEWS).save("linear.textnb")
    card = json.loads(run("describe", "linear.textnb", "--format", "json").checked().out)
    assert {row["prior"] for row in card["classes"]} == {None}


def test_explain_shows_what_decides_each_label(run: Run, files: Path) -> None:
    text = TESTED["text"][0]
    model = TextClassifier().fit(NEWS)
    shown = json.loads(run("explain", "topics.textnb", text, "-c", "wheat", "-c", "corn", "-k", "2",
                           "--format", "json").checked().out)["labels"]
    assert [row["label"] for row in shown] == ["wheat", "corn"]
    for row in shown:
        own = model.classes_.tolist().index(row["label"])
        score = model.decision_function([text])[0, own]
        assert row["score"] == pytest.approx(score)
        assert sum(part["contribution"] for part in row["parts"]) == pytest.approx(score)
        assert row["predicted"] == (score > row["threshold"])
    out = run("explain", "topics.textnb", text).checked().out
    assert [line.split()[0] for line in out.splitlines() if " is predicted: " in line] == (
        model.predict([text])[0])
    assert "the answer rests on" in run("explain", "topics.textnb", "zebra").checked().err
    assert "unknown value 'tin'" in run(
        "explain", "topics.textnb", "x", "-c", "tin").checked(2).err
    TextClassifier().fit(["aa", "bb"], ["a", "b"]).save("single.textnb")
    assert "lists of labels" in run("explain", "single.textnb", "aa", "-c", "a").checked(2).err


def test_rows_of_one_label_say_what_is_missing(run: Run, files: Path) -> None:
    for arguments in (["update", "topics.textnb", "news.csv", "-o", "out.textnb"],
                      ["test", "topics.textnb", "news.csv"]):
        result = run(*arguments).checked(1)
        assert "lists" in result.err
    result = run("train", "news.parquet", "--read", "label_separator=,", "-o",
    "o.textnb").checked(2)
    assert "labels in a text" in result.err
    result = run("train", "news.csv", "--read", "label_separator=; ", "-o", "o.textnb").checked(2)
    assert "one character" in result.err


def thresholds_of(name: str) -> dict[str, float]:
    read = textnb.load(name)
    assert isinstance(read, TextClassifier)
    assert read.decision_ is not None
    return dict(read.decision_.thresholds)


@pytest.mark.parametrize(("goal", "settings"), [
    (["--by", "f1"], {"by": "f1"}),
    (["--by", "micro-f1", "--at-least", "1"], {"by": "micro-f1", "at_least": 1}),
    (["--costs", "1,5", "--at-most", "2"], {"costs": (1, 5), "at_most": 2})])
def test_thresholds_are_those_of_python(
    run: Run, files: Path, goal: list[str], settings: dict[str, Any]
) -> None:
    model = TextClassifier().fit(NEWS)
    scores = {"held": (["tested.csv", "--read", "label_separator=,"], textnb.held_out(model,
    TESTED)),
              "folds": (["news.parquet", "--scored", "leave-one-out"],
                        textnb.cross_validate(model, NEWS))}
    for rows, held in scores.values():
        result = run("threshold", "topics.textnb", *rows, *goal, "-o", "out.textnb").checked()
        assert "micro F1" in result.out
        expected = textnb.choose_class_thresholds(held, **settings)
        read = textnb.load("out.textnb")
        assert isinstance(read, TextClassifier)
        assert read.decision_ == expected
        assert f"micro F1 {expected.evidence['micro_f1']:.4f}" in result.out
        assert "micro F1" in run("describe", "out.textnb").checked().out
    run("predict", "out.textnb", "tested.ndjson", "-o", "out.parquet")
    assert pl.read_parquet("out.parquet")["predicted"].to_list() == model.set_decision(
        expected).predict(TESTED)["predicted"].to_list()


def test_a_precision_that_cannot_be_shown_is_told(run: Run, files: Path) -> None:
    goal = ["--min-precision", "0.9"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = run("threshold", "topics.textnb", "tested.ndjson", *goal).checked()
    assert "these labels are never predicted" in result.err
    assert "'corn' never: its precision can't be shown" in result.out
    assert set(thresholds_of("topics.textnb").values()) == {float("inf")}


def test_numbers_of_labels_without_rows_keep_the_thresholds(run: Run, files: Path) -> None:
    run("threshold", "topics.textnb", "--at-least", "1").checked()
    assert thresholds_of("topics.textnb") == dict.fromkeys(
        ["corn", "grain", "money", "trade", "wheat"], 0.0)
    run("threshold", "topics.textnb", "tested.ndjson", "--by", "f1").checked()
    before = thresholds_of("topics.textnb")
    result = run("threshold", "topics.textnb", "--at-least", "1", "--at-most", "1").checked()
    assert "at least 1 label and at most 1 label for each row" in result.out
    assert "seen on" not in result.out
    assert thresholds_of("topics.textnb") == before
    run("predict", "topics.textnb", "tested.ndjson", "-o", "out.parquet")
    assert set(pl.read_parquet("out.parquet")["predicted"].list.len()) == {1}
    run("threshold", "topics.textnb", "--clear").checked()
    read = textnb.load("topics.textnb")
    assert isinstance(read, TextClassifier)
    assert read.decision_ is None


BAD_GOALS: dict[str, tuple[list[str], str]] = {
    "a class": (["tested.ndjson", "--costs", "1,5", "--class", "corn"], "--class is for one label"),
    "false positives": (["tested.ndjson", "--max-false-positives", "0.1", "--class", "corn"],
                        "--class is for one label"),
    "two goals": (["tested.ndjson", "--by", "f1", "--costs", "1,5"], "got --by and --costs"),
    "no rows": (["--by", "f1"], "name an INPUT"),
    "no goal": (["tested.ndjson", "--at-least", "1"], "give one of"),
    "too few": (["--at-least", "2", "--at-most", "1"], "--at-most must be --at-least or more"),
    "another measure": (["tested.ndjson", "--by", "accuracy"], "accuracy"),
}


@pytest.mark.parametrize("name", BAD_GOALS)
def test_goals_that_labels_do_not_have(run: Run, files: Path, name: str) -> None:
    before = bytes_of("topics.textnb")
    arguments, message = BAD_GOALS[name]
    assert message in run("threshold", "topics.textnb", *arguments).checked(2).err
    assert bytes_of("topics.textnb") == before


@pytest.mark.parametrize("goal", [["--by", "f1"], ["--min-precision", "0.9", "--at-most", "1"]])
def test_goals_of_lists_are_refused_for_one_label(
    run: Run, files: Path, goal: list[str]
) -> None:
    TextClassifier().fit(["aa", "bb"], ["a", "b"]).save("one.textnb")
    result = run("threshold", "one.textnb", "tested.ndjson", *goal).checked(2)
    assert "is for lists of labels" in result.err


def test_probabilities_of_labels_are_calibrated(run: Run, files: Path) -> None:
    result = run("calibrate", "topics.textnb", "news.parquet", "-o", "out.textnb").checked()
    assert "a sigmoid for each of 5 labels (5 folds, 150 documents)" in result.out
    model = TextClassifier().fit(NEWS)
    calibration = textnb.calibrate(model, NEWS)
    read = textnb.load("out.textnb")
    assert isinstance(read, TextClassifier)
    assert read.calibration_ == calibration
    run("predict", "out.textnb", "tested.ndjson", "--probability", "-o", "out.parquet")
    expected = model.set_calibration(calibration).predict(TESTED, probability=True)
    assert pl.read_parquet("out.parquet")["probability"].to_list() == expected[
        "probability"].to_list()
    shown = json.loads(run("calibrate", "topics.textnb", "tested.csv", "--read",
    "label_separator=,",
                           "--held-out", "--dry-run", "--format", "json").checked().out)
    assert shown["log_loss"]["after"] < shown["log_loss"]["before"]
    assert "--length is for one label" in run(
        "calibrate", "topics.textnb", "news.parquet", "--no-length").checked(2).err


def test_diff_tells_which_labels_rows_gain_and_lose(run: Run, files: Path) -> None:
    run("update", "topics.textnb", "tested.ndjson", "-o", "later.textnb").checked()
    shown = run("diff", "topics.textnb", "later.textnb", "tested.ndjson").checked().out
    expected = textnb.compare_models(
        textnb.load("topics.textnb"), textnb.load("later.textnb"), TESTED)
    assert f"{expected.differing} of {TESTED.height} decisions flipped" in shown
    assert expected.differing
    assert "terms that moved most: corn" in shown
    assert "added" in shown
    found = json.loads(run("diff", "topics.textnb", "later.textnb", "tested.ndjson", "--format",
                           "json").checked().out)
    assert found["flipped"] == expected.flipped.to_dicts()


def test_diff_shows_the_classes_that_drifted_most(run: Run, folder: Path) -> None:
    rows = pl.DataFrame({"text": [f"word{k:02}" for k in range(30)],
                         "label": [f"c{k:02}" for k in range(30)]})
    rows.write_csv("rows.csv")
    rows.tail(3).write_csv("more.csv")
    run("train", "rows.csv", "-o", "a.textnb").checked()
    run("update", "a.textnb", "more.csv", "-o", "b.textnb").checked()
    shown = run("diff", "a.textnb", "b.textnb").checked().out
    assert "the 20 of 30 that drifted" in shown
    assert all(f"most: c{k}" in shown for k in (27, 28, 29))
    assert shown.count("terms that moved most") <= 20
    found = json.loads(run("diff", "a.textnb", "b.textnb", "--format", "json").checked().out)
    assert len(found["classes"]) == 30


# The verbs that know lists of labels, and those that read no model.
KNOWING = {"train", "explain", "test", "predict", "top", "update", "forget", "merge", "describe",
           "export", "calibrate", "threshold", "validate", "diff", "drift"}
WITHOUT_MODEL = {"mail", "run", "tune", "duplicates", "verify"}
REFUSING: dict[str, list[str]] = {
    "filter": ["topics.textnb", "--spam-class", "corn"],
    "serve": ["topics.textnb", "--spam-class", "corn", "--listen", "s.sock"],
}


def test_validate_scores_each_row_by_others(run: Run, files: Path) -> None:
    shown = run("validate", "topics.textnb", "news.parquet", "--folds", "3").checked()
    assert "labels that the models predict, 3 folds" in shown.out
    found = json.loads(run("validate", "topics.textnb", "news.parquet", "--folds", "3", "--format",
                           "json").checked().out)
    held = textnb.cross_validate(textnb.load(files / "topics.textnb"), NEWS, folds=3)
    assert found["micro_f1"] == held.measure()["micro_f1"]
    assert found["documents"] == NEWS.height
    assert run("validate", "topics.textnb", "news.csv", "--read", "label_separator=,", "--folds",
               "3").checked().out == shown.out
    shown = run("validate", "topics.textnb", "news.parquet", "--leave-one-out").checked().out
    assert "labels that the models predict, leave-one-out" in shown
    shown = run("validate", "topics.textnb", "news.parquet", "--online", "--set",
                "block=20").checked()
    assert "labels that the models predict, online, blocks of 20" in shown.out
    shown = run("validate", "topics.textnb", "news.parquet", "--smoothing", "1,0.1").checked().out
    assert "leave-one-out" in shown
    error = run("validate", "topics.textnb", "news.parquet", "--positive", "corn").checked(2).err
    assert "--positive is for one label per document" in error


def test_each_verb_knows_lists_or_refuses_them() -> None:
    assert {*VERBS} == KNOWING | WITHOUT_MODEL | {*REFUSING}


@pytest.mark.parametrize("name", REFUSING)
def test_verbs_that_do_not_know_lists_refuse_the_model(run: Run, files: Path, name: str) -> None:
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    result = run(name, *REFUSING[name], input=b"Subject: corn\n\ncorn\n")
    assert result.code != 0
    assert "for one label per document" in result.err
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_columns_and_a_separator_exclude_each_other_for_every_verb(run: Run, files: Path) -> None:
    for verb in ("update", "test"):
        ran = run(verb, "topics.textnb", "tested.ndjson", "--read", "label_separator=,", "--read",
                  "label_columns=a")
        assert "label_columns does not go with --read label_separator" in ran.checked(2).err


def test_drift_of_lists_names_labels(run: Run, files: Path) -> None:
    found = json.loads(run("drift", "topics.textnb", "tested.ndjson", "--reference",
                           "tested.ndjson", "--format", "json").checked().out)
    assert found["verdict"] == "nothing drifted"
    labels = {one["name"]: one for one in found["measures"]}["labels"]["reference"]
    assert {*labels} <= {*TOPICS, "(none)"}


def test_an_export_is_verified_on_rows(run: Run, files: Path) -> None:
    run("export", "topics.textnb", "--to", "sql-sqlite", "-o", "topics.sql").checked()
    assert "0 labels differ" in run("verify", "topics.sql", "tested.ndjson").checked().out
