"""The data of a report, which need no extra: curves, mistakes, and what is odd about the rows."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from textnb import (
    Calibration,
    ComplementNB,
    Decision,
    HeldOut,
    LearnedRowsWarning,
    MultinomialNB,
    TextClassifier,
    evaluate,
)
from textnb.evaluation.evaluate import evaluate_roc
from textnb.report import data as report_data
from textnb.report.findings import findings
from textnb.report.text import names_of, visible

FILMS = pl.DataFrame({
    "text": ["good film", "good plot", "bad film", "bad plot", "good bad", "plot"],
    "label": ["pos", "pos", "neg", "neg", "pos", "neg"]})


@pytest.mark.parametrize("labels", [["b", "a"], [3, 1], [True, False]])
def test_the_evaluation_is_that_of_evaluate(labels: list[Any]) -> None:
    train = FILMS.with_columns(pl.col("label").replace_strict(["pos", "neg"], labels))
    model = TextClassifier().fit(train)
    for frame in (train, train.lazy()):
        found = report_data.score_rows(model, frame)
        assert found.evaluation.to_dict() == evaluate(model, frame).to_dict()


def test_many_classes_have_their_areas_too() -> None:
    rng, classes = np.random.default_rng(0), 60
    scores, actual = np.log(rng.dirichlet(np.ones(classes), 300)), np.arange(300) % classes
    held = HeldOut(np.arange(classes), scores, actual, np.ones(300), "")
    found = report_data.curves(held.classes.tolist(), held.actual, held.fair_odds)
    odds = held.fair_odds
    assert [curve.label for curve in found] == list(range(classes))
    assert [curve.auc for curve in found] == pytest.approx(
        [roc_auc_score(actual == k, odds[:, k]) for k in range(classes)], abs=1e-12)


def test_the_areas_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    scores, actual = np.log(rng.dirichlet([1, 1, 1], 200)), rng.integers(-1, 3, 200)
    held = HeldOut(np.array(["a", "b", "c"]), scores, actual, np.ones(200), "")
    found = report_data.curves(held.classes.tolist(), held.actual, held.fair_odds)
    assert [curve.label for curve in found] == ["a", "b", "c"]
    for k, curve in enumerate(found):
        odds = scores[:, k] - np.log1p(-np.exp(scores[:, k]))
        assert curve.auc == pytest.approx(roc_auc_score(actual == k, odds), abs=1e-12)
        assert curve.average_precision == pytest.approx(
            average_precision_score(actual == k, odds), abs=1e-12)


def test_a_curve_agrees_with_evaluate_roc_on_impossible_rows() -> None:
    model = TextClassifier(MultinomialNB(l=0)).fit(FILMS[:4])
    frame = pl.DataFrame({"text": ["good bad", "good", "plot", "film"],
                          "label": ["pos", "pos", "neg", "neg"]})
    found = report_data.score_rows(model, frame).curves
    for curve in found:
        assert curve.auc == evaluate_roc(model, frame, curve.label).auc
    assert len(found) == 2


def test_thinning_keeps_the_shape() -> None:
    rng = np.random.default_rng(2)
    x = np.sort(rng.random(20_000))
    y = x ** 0.1
    kept = report_data.thin_points(x, y)
    assert kept.height <= report_data.POINTS
    assert kept.rows()[0] == (x[0], y[0])
    assert kept.rows()[-1] == (x[-1], y[-1])
    between = np.interp(x, kept["x"], kept["y"])
    assert np.abs(between - y).max() < 2 / report_data.POINTS
    assert report_data.thin_points(np.array([1.0]), np.array([0.5])).rows() == [(1.0, 0.5)]


def test_a_histogram_counts_every_row() -> None:
    values = np.concatenate([np.random.default_rng(3).normal(0, 5, 1000), [np.inf, -np.inf, 1e9]])
    up = values > 0
    table = report_data.histogram(values, {"up": up, "down": ~up})
    counted = dict(table.group_by("group").agg(pl.col("documents").sum()).rows())
    assert counted == {"up": up.sum(), "down": (~up).sum()}
    assert ((table["high"] <= 0) | (table["low"] >= 0)).all()


def test_only_so_many_mistakes_are_kept() -> None:
    model = TextClassifier().fit(pl.DataFrame({"text": ["good", "bad"], "label": ["pos", "neg"]}))
    counts = np.random.default_rng(4).permutation(9000) % 300
    test = pl.DataFrame({"text": ["good " * n for n in counts.tolist()],
                         "label": ["neg"] * 9000})
    found = report_data.score_rows(model, test)
    expected = np.argsort(-counts, kind="stable")[:report_data.MISTAKES]
    rows = [row for row, _, _ in report_data.wrong_answers(found)]
    assert rows == expected.tolist()
    texts = report_data.rows_at(model, test, rows)
    assert [texts[row]["text"].count("good") for row in rows] == counts[expected].tolist()


def test_a_decision_by_hand() -> None:
    model = TextClassifier().fit(["good", "bad"], ["pos", "neg"])
    # Log-odds of pos are n log 2 for n times "good": 3 of them reach log 8.
    model.set_decision(Decision({"neg": 0.0, "pos": float(np.log(7.9))}, positive="pos"))
    test = pl.DataFrame({"text": ["good good good", "good good good", "good", "good good", "bad"],
                         "label": ["pos", "neg", "pos", "neg", "neg"]})
    scored = report_data.score_rows(model, test)
    assert scored.answers.tolist() == [1, 1, -1, -1, 0]
    assert scored.rates(1).to_dict() == report_data.Rates(1, 1, 1, 2).to_dict()
    decided = evaluate(model, test).decided
    assert decided is not None
    assert (decided["answered"], decided["right"]) == (3, 2)


def test_only_probabilities_are_compared_with_right_answers() -> None:
    model = TextClassifier().fit(FILMS)
    plain = report_data.score_rows(model, FILMS).reliability
    assert list(plain) == [report_data.UNCALIBRATED]
    model.set_calibration(Calibration(0.5, 0.0, 9, "by hand"))
    both = report_data.score_rows(model, FILMS).reliability
    assert list(both) == ["calibrated", report_data.UNCALIBRATED]
    other = report_data.score_rows(TextClassifier(ComplementNB()).fit(FILMS), FILMS)
    assert not other.has_probabilities
    assert other.reliability == {}


# What is odd about the rows


def found_in(model: Any, frame: pl.DataFrame, train: Any = None) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearnedRowsWarning)
        scored = report_data.score_rows(model, frame)
    return [f"{kind}: {text}" for kind, text in findings(scored, frame, train)]


@pytest.mark.parametrize(("rows", "expected"), [
    ([("good", "zzz")], r"warning: The model does not know 1 label \(“zzz”\): counted as errors"),
    ([("", "pos"), (None, "neg"), (" \t", "neg")],
     r"warning: 3 documents without a text: "),
    ([("unheard", "pos")], r"warning: 1 document \(\d+\.\d %\) with a text but without any term"),
    ([("good film", "pos")], r"warning: 1 test document repeats an earlier one word for word \("),
    ([("good  FILM!", "neg")], r"earlier one word for word \(.+\), 1 of them with another label\."),
    ([("good film", "pos")] * 66, r"note: The classes are unbalanced \(69 documents against 3\)"),
], ids=["unknown", "blank", "silent", "copy", "conflict", "unbalanced"])
def test_odd_rows_are_told(rows: list[tuple[str | None, str]], expected: str) -> None:
    model = TextClassifier().fit(FILMS)
    extra = pl.DataFrame(rows, orient="row", schema=FILMS.schema)
    told = found_in(model, pl.concat([FILMS, extra]))
    assert len([text for text in told if re.match(f".*{expected}", text)]) == 1, told
    assert [text for text in found_in(model, FILMS) if re.match(f".*{expected}", text)] == []


def test_few_rows_and_missing_classes_are_told() -> None:
    told = found_in(TextClassifier().fit(FILMS), FILMS[:2])
    assert ("warning: 1 class with fewer than 20 test documents (“pos”): their figures are rough. "
            "Test more of them.") in told
    assert any(text.startswith("note: 1 class of the model without a test document (“neg”)")
               for text in told)
    assert any(text.startswith("warning: All documents have one label") for text in told)
    assert any("2 classes learned from fewer than 10 documents" in text for text in told)


def test_impossible_rows_are_told() -> None:
    model = TextClassifier(MultinomialNB(l=0)).fit(FILMS[:4])
    told = found_in(model, FILMS)
    assert any(text.startswith("warning: 1 document impossible under every class") for text in told)


def test_leakage_is_told_with_what_is_left_without_it() -> None:
    train = pl.DataFrame({"text": ["good film", "bad film"], "label": ["pos", "neg"]})
    test = pl.DataFrame({"text": ["Good film!", "bad film", "good", "bad", "good good"],
                         "label": ["pos", "pos", "pos", "neg", "neg"]})
    model = TextClassifier().fit(train)
    told = [text for text in found_in(model, test, train) if "repeat a training row" in text]
    # Of the three others, "good good" is wrong.
    assert told == [
        "warning: 2 test documents repeat a training row word for word (40.0 %), 1 of them with "
        "another label: the figures show in part what was learned by heart. Without them, accuracy "
        "is 66.7 %."]
    assert any("No test document" in text for text in found_in(model, test[2:], train))
    assert any("Not checked" in text for text in found_in(model, test))


# Names


def test_names_differ_where_labels_do() -> None:
    labels = ["a" * 40, "a" * 41, "a\u200b", "a\u200c", "a ", "a", "", "(empty)"]
    names = names_of(labels)
    assert len(set(names)) == len(labels)
    assert max(map(len, names)) < 40


@pytest.mark.parametrize(("text", "shown"), [
    ("a\tb\r\nc", "a b c"), ("\u202eabc", "⟨U+202E⟩abc"), ("a\u2028b", "a b"),
    ("ক্\u200dষ", "ক্\u200dষ"), ("\ufffe\x1b[31m", "⟨U+FFFE⟩⟨U+001B⟩[31m"), ("é😀", "é😀")])
def test_invisible_characters_are_named(text: str, shown: str) -> None:
    assert visible(text) == shown
