"""The data of a report, which need no extra: curves, mistakes, and what is odd about the rows."""

import re

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from tests.evaluation.report_page import FILMS, GOOD_OR_BAD
from textnb import HeldOut, MultinomialNB, NBLinear, TextClassifier
from textnb.evaluation.evaluate import evaluate_roc
from textnb.evaluation.roc import POINTS, thin_points
from textnb.report import data
from textnb.report.findings import findings
from textnb.runtime.display import names_of, visible


@pytest.mark.parametrize("classes", [3, 60])
def test_the_areas_of_curves_are_those_of_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    scores, actual = np.log(rng.dirichlet(np.ones(classes), 300)), np.arange(300) % (classes + 1)
    # Rows of the last are of no class that the model knows.
    held = HeldOut(np.arange(classes), scores, np.where(actual < classes, actual, -1),
                   np.ones(300), "")
    curves = data.compute_curves(held.classes.tolist(), held.actual, held.fair_odds)
    assert [curve.label for curve in curves] == list(range(classes))
    for k, curve in enumerate(curves):
        odds = scores[:, k] - np.log1p(-np.exp(scores[:, k]))
        assert curve.auc == pytest.approx(roc_auc_score(actual == k, odds), abs=1e-12)
        assert curve.average_precision == pytest.approx(
            average_precision_score(actual == k, odds), abs=1e-12)


def test_a_curve_agrees_with_evaluate_roc_on_impossible_rows():
    model = TextClassifier(MultinomialNB(l=0)).fit(FILMS[:4])
    frame = pl.DataFrame({"text": ["good bad", "good", "plot", "film"],
                          "label": ["pos", "pos", "neg", "neg"]})
    curves = data.score_rows(model, frame).curves
    assert [curve.auc for curve in curves] == [
        evaluate_roc(model, frame, label).auc for label in ("neg", "pos")]


def test_an_impossible_row_of_an_unknown_label_is_not_right():
    model = TextClassifier(MultinomialNB(l=0)).fit(FILMS[:4])
    scored = data.score_rows(
        model, pl.DataFrame({"text": ["good bad", "good"], "label": ["other", "pos"]}))
    assert scored.right.tolist() == [False, True]
    assert scored.right.mean() == scored.evaluation.accuracy


def test_a_thinned_curve_keeps_its_shape():
    x = np.sort(np.random.default_rng(2).random(20_000))
    y = x ** 0.1
    thin = thin_points(x, y)
    assert thin.height <= POINTS
    assert thin.rows()[0] == (x[0], y[0])
    assert thin.rows()[-1] == (x[-1], y[-1])
    assert np.abs(np.interp(x, thin["x"], thin["y"]) - y).max() < 2 / POINTS
    assert thin_points(np.array([1.0]), np.array([0.5])).rows() == [(1.0, 0.5)]


def test_a_histogram_counts_every_row():
    values = np.concatenate([np.random.default_rng(3).normal(0, 5, 1000), [np.inf, -np.inf, 1e9]])
    up = values > 0
    table = data.histogram(values, {"up": up, "down": ~up})
    counted = dict(table.group_by("group").agg(pl.col("documents").sum()).rows())
    assert counted == {"up": up.sum(), "down": (~up).sum()}
    assert ((table["high"] <= 0) | (table["low"] >= 0)).all()


def test_only_the_worst_mistakes_are_kept():
    model = TextClassifier().fit(GOOD_OR_BAD)
    counts = np.random.default_rng(4).permutation(9000) % 300
    test = pl.DataFrame({"text": ["good " * n for n in counts.tolist()], "label": ["neg"] * 9000})
    rows = [row for row, _ in data.wrong_answers(data.score_rows(model, test))]
    expected = np.argsort(-counts, kind="stable")[:data.MAX_MISTAKES]
    assert rows == expected.tolist()
    texts = data.rows_at(model, test, rows)
    assert [texts[row]["text"].count("good") for row in rows] == counts[expected].tolist()


# What is odd about the rows


def findings_of(model, frame, train=None):
    return [f"{kind}: {text}" for kind, text in findings(
        data.score_rows(model, frame), frame, train)]


@pytest.mark.filterwarnings("ignore::textnb.LearnedRowsWarning")
@pytest.mark.parametrize(("rows", "expected"), [
    ([("good", "zzz")], r"warning: The model does not know 1 label \(“zzz”\): counted as errors"),
    ([("", "pos"), (None, "neg"), (" \t", "neg")],
     r"warning: 3 documents without a text: "),
    ([("unheard", "pos")], r"warning: 1 document \(\d+\.\d %\) with a text but without any term"),
    ([("good film", "pos")], r"warning: 1 test document repeats an earlier one word for word \("),
    ([("good  FILM!", "neg")], r"earlier one word for word \(.+\), 1 of them with another label\."),
    ([("good film", "pos")] * 66, r"note: The classes are unbalanced \(69 documents against 3\)"),
], ids=["unknown", "blank", "silent", "copy", "conflict", "unbalanced"])
def test_odd_rows_are_said(rows, expected):
    model = TextClassifier().fit(FILMS)
    extra = pl.DataFrame(rows, orient="row", schema=FILMS.schema)
    said = findings_of(model, pl.concat([FILMS, extra]))
    assert len([text for text in said if re.match(f".*{expected}", text)]) == 1, said
    assert [text for text in findings_of(model, FILMS) if re.match(f".*{expected}", text)] == []


def test_few_rows_missing_classes_and_impossible_rows_are_said():
    said = findings_of(TextClassifier().fit(FILMS), FILMS[:2])
    assert ("warning: 1 class with fewer than 20 test documents (“pos”): their figures are rough. "
            "Test more of them.") in said
    said += findings_of(TextClassifier(MultinomialNB(l=0)).fit(FILMS[:4]), FILMS)
    for part in ("note: 1 class of the model without a test document (“neg”)",
                 "warning: All documents have one label",
                 "2 classes learned from fewer than 10 documents",
                 "warning: 1 document impossible under every class"):
        assert any(part in text for text in said), part


def test_copies_of_training_rows_are_said_with_the_accuracy_without_them():
    train = pl.DataFrame({"text": ["good film", "bad film"], "label": ["pos", "neg"]})
    test = pl.DataFrame({"text": ["Good film!", "bad film", "good", "bad", "good good"],
                         "label": ["pos", "pos", "pos", "neg", "neg"]})
    model = TextClassifier().fit(train)
    said = [text for text in findings_of(model, test, train) if "repeat a training row" in text]
    # Of the three others, "good good" is wrong.
    assert said == [
        "warning: 2 test documents repeat a training row word for word (40.0 %), 1 of them with "
        "another label: the figures show in part what was learned by heart. Without them, accuracy "
        "is 66.7 %."]
    assert any("No test document" in text for text in findings_of(model, test[2:], train))
    assert any("Not checked" in text for text in findings_of(model, test))


@pytest.mark.filterwarnings("ignore::textnb.LearnedRowsWarning")
def test_few_copies_are_a_note():
    test = pl.concat([FILMS[:1], pl.DataFrame({
        "text": [f"good {n}x" for n in range(199)], "label": ["pos"] * 199})])
    said = findings_of(TextClassifier().fit(FILMS), test, FILMS)
    assert [text for text in said if "repeats a training row" in text] == [
        "note: 1 test document repeats a training row word for word (0.5 %). Without them, "
        "accuracy is 100 %."]


@pytest.mark.parametrize(("estimator", "label", "ways"), [
    (MultinomialNB(), str, "`textnb tune` or NBLinear (`--model nblinear`)"),
    (NBLinear(), str, "`textnb tune`"),
    (MultinomialNB(), list, "`textnb tune`, NBLinear (`--model nblinear`) or a threshold for each "
     "label (`textnb threshold --by f1`)"),
], ids=["classes", "linear", "lists"])
def test_labels_that_are_never_right_are_said_with_what_may_find_them(estimator, label, ways):
    names = ["a", "b", "rare"]
    as_label = (lambda name: [name]) if label is list else str
    train = pl.DataFrame({"text": ["aa x", "bb y", "rr"] * 9,
                          "label": [as_label(name) for name in names] * 9})
    test = pl.DataFrame({"text": ["aa x", "bb y", "aa"],
                         "label": [as_label(name) for name in names]})
    said = findings_of(TextClassifier(estimator).fit(train), test)
    assert (f"warning: 1 of 3 {'labels' if label is list else 'classes'} is never answered rightly "
            f"(“rare”): try {ways}.") in said


def test_a_large_calibration_error_asks_for_calibration():
    train = pl.DataFrame({"text": ["aa " * 50, "bb " * 50], "label": ["a", "b"]})
    test = pl.DataFrame({"text": ["aa " * 50, "bb " * 50] * 5,
                         "label": ["a", "b"] * 4 + ["b", "a"]})
    said = findings_of(TextClassifier().fit(train), test)
    assert ("next step: The calibration error is 0.200: probabilities are off by 20.0 % on "
            "average. Calibrate the model (`textnb calibrate`) before you rely on them.") in said
    kinds = [text.split(":")[0] for text in said]
    assert kinds == sorted(kinds, key=["warning", "next step", "note"].index)


# Names


def test_names_differ_where_labels_do():
    labels = ["a" * 40, "a" * 41, "a\u200b", "a\u200c", "a ", "a", "", "(empty)"]
    names = names_of(labels)
    assert len(set(names)) == len(labels)
    assert max(map(len, names)) < 40


@pytest.mark.parametrize(("text", "shown"), [
    ("a\tb\r\nc", "a b c"), ("\u202eabc", "⟨U+202E⟩abc"), ("a\u2028b", "a b"),
    ("ক্\u200dষ", "ক্\u200dষ"), ("\ufffe\x1b[31m", "⟨U+FFFE⟩⟨U+001B⟩[31m"), ("é😀", "é😀")])
def test_invisible_characters_are_named(text, shown):
    assert visible(text) == shown
