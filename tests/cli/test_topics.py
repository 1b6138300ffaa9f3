"""Lists of labels on the command line: each verb accepts them, or raises an error."""

import json
import warnings
from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.cli.conftest import json_of
from textnb import Decision, TextClassifier
from textnb.cli.main import VERBS
from textnb.workflow.samples import topics


def news(rows, seed):
    return topics(rows, seed).select(
        text=pl.concat_str("title", "description", separator=" "), label="topics")


NEWS, TEST = news(150, 0), news(60, 1)
MODEL = TextClassifier().fit(NEWS)
LABELS = MODEL.classes_.tolist()
AS_TEXT = ("--read", "label_separator=,")


@pytest.fixture
def files(folder):
    NEWS.write_parquet("news.parquet")
    TEST.write_ndjson("tested.ndjson")
    for name, frame in (("news.csv", NEWS), ("tested.csv", TEST)):
        frame.with_columns(pl.col("label").list.join(", ")).write_csv(name)
    MODEL.save("topics.textnb")
    return folder


def bytes_of(name):
    return Path(name).read_bytes()


def test_lists_texts_and_columns_of_labels_give_the_same_model(run, files):
    ran = run("train", "news.parquet", "-o", "lists.textnb").checked()
    assert "4 labels" in ran.err
    run("train", "news.csv", *AS_TEXT, "-o", "texts.textnb").checked()
    NEWS.with_columns(pl.col("label").list.contains(name).alias(name) for name in LABELS).drop(
        "label").write_csv("wide.csv")
    columns = ["--read", f"label_columns={','.join(LABELS)}"]
    run("train", "wide.csv", *columns, "-o", "columns.textnb").checked()
    for name in ("lists", "texts", "columns"):
        assert bytes_of(f"{name}.textnb") == bytes_of("topics.textnb")
    ran = run("test", "topics.textnb", "wide.csv", *columns).checked()
    assert ran.out == run("test", "topics.textnb", "news.csv", *AS_TEXT).checked().out


def test_updates_are_exact_and_diff_compares_models(run, files):
    ran = run("update", "topics.textnb", "tested.csv", *AS_TEXT, "-o", "more.textnb").checked()
    assert "4 labels" in ran.err
    more = TextClassifier().fit(pl.concat([NEWS, TEST]))
    more.save("whole.textnb")
    assert bytes_of("more.textnb") == bytes_of("whole.textnb")
    run("forget", "more.textnb", "tested.ndjson").checked()
    assert bytes_of("more.textnb") == bytes_of("topics.textnb")
    two = ("diff", "topics.textnb", "whole.textnb", "tested.ndjson")
    expected = textnb.compare_models(MODEL, more, TEST)
    output = run(*two).checked().out
    assert f"{expected.differing} of {TEST.height} decisions flipped" in output
    assert f"terms that moved most: {LABELS[0]}" in output
    assert json_of(run, *two)["flipped"] == expected.flipped.to_dicts()


def test_predictions_are_lists_and_in_csv_joined_strings(run, files):
    expected = MODEL.predict(TEST)["predicted"]
    run("predict", "topics.textnb", "tested.ndjson", "-o", "out.parquet", "--top-k", "2").checked()
    assert pl.read_parquet("out.parquet")["predicted"].to_list() == expected.to_list()
    run("predict", "topics.textnb", "tested.csv", "-o", "out.csv").checked()
    assert pl.read_csv("out.csv")["predicted"].fill_null("").to_list() == [
        "; ".join(labels) for labels in expected]


def test_measures_equal_those_of_python(run, files):
    expected = textnb.evaluate(MODEL, TEST).to_dict()
    for words in (["tested.ndjson"], ["tested.csv", *AS_TEXT]):
        answer = json_of(run, "test", "topics.textnb", *words)
        assert answer.items() >= json.loads(json.dumps(expected)).items()
        assert "micro F1" in run("test", "topics.textnb", *words).checked().out
    rows = {"text": ["aa", "bb"], "label": [["zinc"], [LABELS[0]]]}
    pl.DataFrame(rows).write_parquet("zinc.parquet")
    ran = run("test", "topics.textnb", "zinc.parquet", "--format", "json").checked()
    assert json.loads(ran.out)["unknown_labels"] == ["zinc"]
    assert "does not know the labels 'zinc'" in ran.err


def test_top_explain_and_describe_list_each_label(run, files):
    assert json_of(run, "top", "topics.textnb", "-k", "3") == MODEL.top(3).to_dicts()
    card = json_of(run, "describe", "topics.textnb")
    assert (card["multilabel"], card["training_rows"]) == (True, NEWS.height)
    counts = dict(NEWS["label"].explode().drop_nulls().value_counts().iter_rows())
    assert {row["label"]: row["rows"] for row in card["classes"]} == counts
    assert "4 labels" in run("describe", "topics.textnb").checked().out
    text = TEST["text"][0]
    labels = [LABELS[2], LABELS[0]]
    rows = json_of(run, "explain", "topics.textnb", text, "-c", labels[0], "-c", labels[1],
                   "-k", "2")["labels"]
    assert [row["label"] for row in rows] == labels
    for row in rows:
        score = MODEL.decision_function([text])[0, LABELS.index(row["label"])]
        assert row["score"] == pytest.approx(score)
        assert sum(part["contribution"] for part in row["parts"]) == pytest.approx(score)
        assert row["predicted"] == (score > row["threshold"])
    out = run("explain", "topics.textnb", text).checked().out
    assert [line.split()[0] for line in out.splitlines() if " is predicted: " in line] == (
        [label.split()[0] for label in MODEL.predict([text])[0]])
    assert "the answer rests on" in run("explain", "topics.textnb", "zebra").checked().err


@pytest.mark.parametrize(("goal", "settings"), [
    (["--by", "f1"], {"by": "f1"}),
    (["--by", "micro-f1", "--at-least", "1"], {"by": "micro-f1", "at_least": 1}),
    (["--costs", "1,5", "--at-most", "2"], {"costs": (1, 5), "at_most": 2})])
def test_thresholds_equal_those_of_python(run, files, goal, settings):
    scores = textnb.held_out(MODEL, TEST)
    rows = ["tested.csv", *AS_TEXT]
    if "f1" in goal:
        scores, rows = textnb.cross_validate(MODEL, NEWS), ["news.parquet", "--scored", "folds"]
    ran = run("threshold", "topics.textnb", *rows, *goal, "-o", "out.textnb").checked()
    expected = textnb.choose_class_thresholds(scores, **settings)
    assert textnb.load("out.textnb").decision_ == expected
    line = f"micro F1 {expected.evidence['micro_f1']:.4f}"
    assert line in ran.out
    assert line in run("describe", "out.textnb").checked().out


def test_training_says_the_range_of_the_thresholds_in_one_line(run, files):
    ran = run("train", "news.parquet", "--model", "nblinear", "-o", "x.textnb").checked()
    values = textnb.load("x.textnb").decision_.thresholds.values()
    assert (f"thresholds of {len(LABELS)} labels, scores from {min(values):.4g} to "
            f"{max(values):.4g} (textnb describe shows each)") in ran.err.splitlines()
    assert f"calibrated: a sigmoid for each of {len(LABELS)} labels (" in ran.err
    assert "where its score is above" not in ran.err


def test_a_precision_that_cannot_be_shown_is_reported(run, files):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        ran = run("threshold", "topics.textnb", "tested.ndjson", "--min-precision", "0.99")
    assert "These labels are never predicted" in ran.checked().err
    assert f"'{LABELS[0]}' never: a precision of" in ran.out
    assert textnb.load("topics.textnb").decision_.thresholds == dict.fromkeys(LABELS, float("inf"))


def test_min_and_max_labels_without_an_input_keep_the_thresholds(run, files):
    def thresholds():
        return textnb.load("topics.textnb").decision_.thresholds

    run("threshold", "topics.textnb", "--at-least", "1").checked()
    assert thresholds() == dict.fromkeys(LABELS, 0.0)
    expected = dict(zip(LABELS, [-0.5, 0.0, 0.5, 1.0], strict=True))
    textnb.load("topics.textnb").set_decision(Decision(expected)).save("topics.textnb")
    ran = run("threshold", "topics.textnb", "--at-least", "1", "--at-most", "1").checked()
    assert "at least 1 label and at most 1 label for each row" in ran.out
    assert "seen on" not in ran.out
    assert thresholds() == expected
    run("predict", "topics.textnb", "tested.ndjson", "-o", "out.parquet").checked()
    assert set(pl.read_parquet("out.parquet")["predicted"].list.len()) == {1}
    run("threshold", "topics.textnb", "--clear").checked()
    assert textnb.load("topics.textnb").decision_ is None


def test_probabilities_of_labels_are_calibrated(run, files):
    ran = run("calibrate", "topics.textnb", "news.parquet", "-o", "out.textnb").checked()
    assert "a sigmoid for each of 4 labels (5 folds, 150 documents)" in ran.out
    calibration = textnb.calibrate(TextClassifier().fit(NEWS), NEWS)
    assert textnb.load("out.textnb").calibration_ == calibration
    # Not the numbers of each label.
    line = next(line for line in run("describe", "out.textnb").checked().out.splitlines()
                if line.startswith("calibration"))
    assert line.split(maxsplit=1)[1].strip() == (
        "a sigmoid for each of 4 labels (5 folds, 150 documents)")
    output = json_of(run, "calibrate", "topics.textnb", "tested.csv", *AS_TEXT, "--held-out",
                     "--dry-run")
    assert output["log_loss"]["after"] < output["log_loss"]["before"]


@pytest.mark.parametrize(("words", "method"), [
    (["--folds", "3"], "labels that the models predict, 3 folds"),
    (["--leave-one-out"], "labels that the models predict, leave-one-out"),
    (["--online", "--set", "block=20"], "labels that the models predict, online, blocks of 20"),
    (["--smoothing", "1,0.1"], "leave-one-out")])
def test_validate_names_its_method(run, files, words, method):
    ran = run("validate", "topics.textnb", "news.parquet", *words).checked()
    assert method in ran.out
    assert run("validate", "topics.textnb", "news.csv", *AS_TEXT, *words).checked().out == ran.out
    if "--folds" in words:
        scores = textnb.cross_validate(MODEL, NEWS, folds=3)
        answer = json_of(run, "validate", "topics.textnb", "news.parquet", *words)
        assert answer["micro_f1"] == scores.measure()["micro_f1"]
        assert answer["documents"] == NEWS.height


def test_one_label_is_compared_with_the_rest(run, files):
    has, called = (pl.Series(lists).list.contains("Sports") for lists in (
        TEST["label"], MODEL.predict(TEST)["predicted"]))
    answer = json_of(run, "test", "topics.textnb", "tested.ndjson", "--positive", "Sports")
    assert answer["rates"].items() >= {
        "true_positives": (has & called).sum(), "false_positives": (~has & called).sum(),
        "false_negatives": (has & ~called).sum(), "true_negatives": (~has & ~called).sum()}.items()
    assert answer["roc_auc"] == textnb.evaluation.evaluate.evaluate_roc(MODEL, TEST, "Sports").auc
    assert answer["roc_auc"] == textnb.evaluation.evaluate.evaluate_roc(MODEL, TEST, "Sports").auc
    held = textnb.cross_validate(MODEL, NEWS)
    for words, scored in ((["--folds", "5"], held), (
            ["--online"], textnb.validate_online(MODEL, NEWS, None))):
        shown = json_of(run, "validate", "topics.textnb", "news.parquet", "--positive", "Sports",
                        *words)
        assert shown["rates"] == scored.evaluate().rates("Sports").to_dict()
        assert shown["roca"] == scored.roca("Sports")


def test_drift_names_labels(run, files):
    answer = json_of(run, "drift", "topics.textnb", "tested.ndjson", "--reference", "tested.ndjson")
    assert answer["verdict"] == "nothing drifted"
    measures = {one["name"]: one for one in answer["measures"]}
    assert {*measures["labels"]["reference"]} <= {*LABELS, "(none)"}


# The verbs that accept models of lists of labels, and those that read no model.
WITH_LISTS = {"train", "explain", "test", "predict", "top", "update", "forget", "merge", "describe",
              "export", "calibrate", "threshold", "validate", "diff", "drift", "mistakes", "next"}
WITHOUT_MODEL = {"mail", "run", "tune", "audit", "relabel", "duplicates", "samples", "verify"}
WITHOUT_LISTS = {"filter": ["topics.textnb", "--spam-class", "Sports"],
                 "serve": ["topics.textnb", "--spam-class", "Sports", "--listen", "s.sock"]}


def test_each_verb_is_tested_with_lists():
    assert {*VERBS} == WITH_LISTS | WITHOUT_MODEL | {*WITHOUT_LISTS}


@pytest.mark.parametrize("name", WITHOUT_LISTS)
def test_verbs_for_one_label_refuse_a_model_of_lists(run, files, name):
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    ran = run(name, *WITHOUT_LISTS[name], input=b"Subject: corn\n\ncorn\n")
    assert ran.code != 0
    assert "for one label per document" in ran.err
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before
