"""Measures against scikit-learn's, and what becomes of labels and rows that fit no class."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from tests.tiers import examples
from textnb import (
    BernoulliNB,
    DataError,
    MultinomialNB,
    SchemaError,
    SourceError,
    TableClassifier,
    TextClassifier,
    evaluate,
)
from textnb.evaluation.metrics import evaluation

CLASSES = ["a", "b", "c", "d"]
# Each class has a word of its own, so that a text can be written for any prediction.
MODEL = TextClassifier().fit(pl.DataFrame(
    {"text": [f"word{name}" for name in CLASSES], "label": CLASSES}))
# Without smoothing, the words of two classes in one text rule out every class.
STRICT = TextClassifier(MultinomialNB(l=0)).fit(pl.DataFrame(
    {"text": ["aa", "bb"], "label": ["a", "b"]}))


def frame_of(actual: list[Any], predicted: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"text": [f"word{name}" for name in predicted], "label": actual},
                        schema_overrides={"text": pl.String})


def table_of(actual: list[Any], predicted: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({"actual": actual, "predicted": predicted}).group_by(
        "actual", "predicted").len("n")


def nulls_as_zero(values: pl.Series) -> list[float]:
    return values.fill_null(0.0).to_list()


def check_against_sklearn(result: Any, actual: list[str], predicted: list[str]) -> None:
    names = sorted(set(actual) | set(predicted))
    precision, recall, f1, support = sklearn_metrics.precision_recall_fscore_support(
        actual, predicted, labels=names, zero_division=0.0)
    per_class = result.per_class
    assert per_class["class"].to_list() == names
    np.testing.assert_allclose(nulls_as_zero(per_class["precision"]), precision, rtol=1e-12)
    np.testing.assert_allclose(nulls_as_zero(per_class["recall"]), recall, rtol=1e-12)
    np.testing.assert_allclose(nulls_as_zero(per_class["f1"]), f1, rtol=1e-12)
    assert per_class["documents"].to_list() == support.tolist()
    # Undefined is null, and nothing else is.
    assert per_class["precision"].is_null().to_list() == [x not in predicted for x in names]
    assert per_class["recall"].is_null().to_list() == [name not in actual for name in names]
    assert result.accuracy == pytest.approx(
        sklearn_metrics.accuracy_score(actual, predicted), rel=1e-12)
    assert result.macro_f1 == pytest.approx(
        sklearn_metrics.f1_score(actual, predicted, labels=names, average="macro",
                                 zero_division=0.0), rel=1e-12)
    pairs = Counter(zip(actual, predicted, strict=True))
    assert result.confusion[:, :-1].tolist() == [[pairs[a, p] for p in names] for a in names]
    assert result.confusion.dtype == np.int64
    assert result.documents == len(actual)


# Against scikit-learn

LABELS = st.sampled_from([*CLASSES, "stranger", "", "[bold]"])
PAIRS = st.lists(st.tuples(LABELS, st.sampled_from(CLASSES)), min_size=1, max_size=40)


@given(PAIRS)
@settings(max_examples=examples(60), deadline=None)
def test_evaluate_measures_as_sklearn_does(pairs: list[tuple[str, str]]) -> None:
    actual, predicted = [list(side) for side in zip(*pairs, strict=True)]
    assume(set(actual) & set(CLASSES))
    result = evaluate(MODEL, frame_of(actual, predicted))
    check_against_sklearn(result, actual, predicted)
    assert result.unknown_labels == sorted(set(actual) - set(CLASSES))
    assert result.impossible == 0


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=60))
@settings(max_examples=examples(100), deadline=None)
def test_a_table_of_counts_measures_as_sklearn_does(pairs: list[tuple[str, str]]) -> None:
    actual, predicted = [list(side) for side in zip(*pairs, strict=True)]
    assume(set(actual) & set(predicted))
    known = pl.Series(sorted(set(predicted)))
    result = evaluation(table_of(actual, predicted), known)
    check_against_sklearn(result, actual, predicted)
    assert result.unknown_labels == sorted(set(actual) - set(predicted))


@given(PAIRS, st.randoms(use_true_random=False))
@settings(max_examples=examples(25), deadline=None)
def test_the_order_of_rows_changes_nothing(pairs: list[tuple[str, str]], random: Any) -> None:
    assume({actual for actual, _ in pairs} & set(CLASSES))
    shuffled = list(pairs)
    random.shuffle(shuffled)
    first, second = (
        evaluate(MODEL, frame_of([a for a, _ in rows], [p for _, p in rows])).to_dict()
        for rows in (pairs, shuffled))
    assert first == second


def test_counts_weigh_as_rows_do() -> None:
    many = pl.DataFrame({"actual": ["a", "a", "b"], "predicted": ["a", "b", "b"],
                         "n": [3_000_000_000, 1_000_000_000, 4_000_000_000]})
    few = many.with_columns(n=pl.Series([3, 1, 4]))
    large, small = (evaluation(pairs, pl.Series(["a", "b"])) for pairs in (many, few))
    assert large.documents == 8_000_000_000
    assert large.accuracy == small.accuracy == 0.875
    assert large.confusion.tolist() == (small.confusion * 1_000_000_000).tolist()
    assert large.per_class.drop("documents").equals(small.per_class.drop("documents"))


# The worked example


def test_the_worked_example() -> None:
    # Rows are predicted classes, columns actual ones.
    table = [[10, 0, 0], [0, 7, 5], [0, 3, 5]]
    names = ["one", "two", "zero"]
    pairs = pl.DataFrame(
        [(names[actual], names[predicted], table[predicted][actual])
         for predicted in range(3) for actual in range(3) if table[predicted][actual]],
        schema=["actual", "predicted", "n"], orient="row")
    result = evaluation(pairs, pl.Series(names))
    rounded = result.per_class.with_columns(pl.col("precision", "recall", "f1").round(3))
    assert rounded.rows() == [("one", 1.0, 1.0, 1.0, 10), ("two", 0.583, 0.7, 0.636, 10),
                              ("zero", 0.625, 0.5, 0.556, 10)]
    assert result.per_class["precision"].to_list() == [1.0, 7 / 12, 5 / 8]
    assert result.per_class["f1"].to_list() == pytest.approx([1.0, 7 / 11, 5 / 9], rel=1e-15)
    assert round(result.macro_f1, 3) == 0.731
    assert result.macro_f1 == pytest.approx((1 + 7 / 11 + 5 / 9) / 3, rel=1e-15)
    assert result.accuracy == pytest.approx(22 / 30, rel=1e-15)
    assert round(result.accuracy, 3) == 0.733
    # Here rows are actual classes; the last column is that of impossible rows.
    assert result.confusion.tolist() == [[10, 0, 0, 0], [0, 7, 3, 0], [0, 5, 5, 0]]
    assert result.documents == 30


# Rows and labels that fit no class


def test_unknown_labels_are_errors_and_are_listed() -> None:
    result = evaluate(MODEL, frame_of(["a", "x", "b", "x", "w"], ["a", "a", "b", "b", "b"]))
    assert result.unknown_labels == ["w", "x"]
    assert result.accuracy == 2 / 5
    strangers = result.per_class.filter(pl.col("class").is_in(["w", "x"]))
    assert strangers.select("recall", "precision", "documents").rows() == [
        (0.0, None, 1), (0.0, None, 2)]


def test_labels_that_are_all_unknown_are_refused() -> None:
    # A wrong column, most likely.
    told = "the model knows none of the labels, such as 'x'; its classes are 'a', 'b', 'c', 'd'"
    with pytest.raises(DataError, match=told):
        evaluate(MODEL, frame_of(["x", "y"], ["a", "a"]))


def test_impossible_rows_are_errors_and_are_counted() -> None:
    frame = pl.DataFrame({"text": ["aa", "aa bb", "bb", "bb aa", "bb"],
                          "label": ["a", "a", "b", "b", "a"]})
    result = evaluate(STRICT, frame)
    assert result.impossible == 2
    assert result.documents == 5
    assert result.accuracy == 2 / 5
    assert result.confusion.tolist() == [[1, 1, 1], [0, 1, 1]]
    # An impossible row is missed by its class and taken by none.
    assert result.per_class["recall"].to_list() == [1 / 3, 1 / 2]
    assert result.per_class["precision"].to_list() == [1.0, 1 / 2]


def test_every_row_may_be_impossible() -> None:
    result = evaluate(STRICT, pl.DataFrame({"text": ["aa bb"], "label": ["a"]}))
    assert (result.accuracy, result.macro_f1, result.impossible) == (0.0, 0.0, 1)
    assert result.per_class.rows() == [("a", None, 0.0, 0.0, 1)]
    assert result.confusion.tolist() == [[0, 1]]


def test_a_term_that_every_document_of_a_class_held_is_required_without_smoothing() -> None:
    model = TextClassifier(BernoulliNB(l=0)).fit(pl.DataFrame(
        {"text": ["aa", "bb"], "label": ["a", "b"]}))
    result = evaluate(model, pl.DataFrame({"text": ["aa", ""], "label": ["a", "b"]}))
    assert (result.accuracy, result.impossible) == (0.5, 1)


@pytest.mark.parametrize("lazy", [False, True])
def test_a_null_label_is_refused_and_its_row_named(lazy: bool) -> None:
    frame = frame_of(["a", "b", None, "a", None], ["a", "b", "a", "a", "a"])
    with pytest.raises(DataError, match=r"label column 'label' is null in row 2 \(counted from 0"):
        evaluate(MODEL, frame.lazy() if lazy else frame)


def test_an_empty_label_is_a_label() -> None:
    assert evaluate(MODEL, frame_of(["", "a"], ["a", "a"])).unknown_labels == [""]


@pytest.mark.parametrize("lazy", [False, True])
def test_no_rows_are_refused(lazy: bool) -> None:
    frame = frame_of(["a"], ["a"]).clear()
    with pytest.raises(DataError, match="the test set has no rows"):
        evaluate(MODEL, frame.lazy() if lazy else frame)


def test_a_missing_column_is_named() -> None:
    frame = frame_of(["a"], ["a"])
    with pytest.raises(SchemaError, match="no column 'label'"):
        evaluate(MODEL, frame.rename({"label": "class"}))
    with pytest.raises(SchemaError, match="no column 'text'"):
        evaluate(MODEL, frame.rename({"text": "body"}))
    with pytest.raises(SchemaError, match="it is Float64"):
        evaluate(MODEL, frame.with_columns(label=pl.lit(1.5)))
    with pytest.raises(SourceError, match="no such file"):
        evaluate(MODEL, "no-such-file.parquet")


def test_a_null_text_is_an_empty_one() -> None:
    texts = pl.DataFrame({"text": [None, ""], "label": ["a", "a"]})
    assert evaluate(MODEL, texts).accuracy == 1.0


# Label types


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.Int64, pl.String])
def test_integer_labels_compare_whatever_column_they_come_in(dtype: Any) -> None:
    train = pl.DataFrame({"text": ["aa", "bb", "cc"], "label": [1, 2, 30]})
    model = TextClassifier().fit(train)
    frame = pl.DataFrame({"text": ["aa", "bb", "bb"],
                          "label": pl.Series([1, 2, 7]).cast(dtype)})
    result = evaluate(model, frame)
    assert result.accuracy == 2 / 3
    assert result.unknown_labels == [7]
    assert result.per_class["class"].to_list() == [1, 2, 7]


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["x", "b", "a"]), pl.String])
def test_categories_compare_as_strings(dtype: Any) -> None:
    frame = frame_of(["a", "b", "x"], ["a", "b", "b"]).with_columns(pl.col("label").cast(dtype))
    result = evaluate(MODEL, frame)
    assert result.accuracy == 2 / 3
    assert result.per_class["class"].to_list() == ["a", "b", "x"]


@pytest.mark.parametrize("labels", [[True, False, True], ["true", "False", "TRUE"]])
def test_boolean_labels_compare(labels: list[Any]) -> None:
    model = TextClassifier().fit(["yes", "no"], [True, False])
    result = evaluate(model, pl.DataFrame({"text": ["yes", "no", "no"], "label": labels}))
    assert result.accuracy == 2 / 3
    assert result.per_class["class"].to_list() == [False, True]


@pytest.mark.parametrize("known", [[1, 2], [True, False]])
def test_a_label_of_another_type_is_named(known: list[Any]) -> None:
    model = TextClassifier().fit(["aa", "bb"], known)
    frame = pl.DataFrame({"text": ["aa", "bb"], "label": [str(known[0]), "spam"]})
    with pytest.raises(DataError, match=r"'label'.*spam"):
        evaluate(model, frame)


# The result as a value


def test_the_result_is_ready_for_json() -> None:
    frame = pl.DataFrame({"text": ["aa", "aa bb"], "label": ["a", "x"]})
    told = evaluate(STRICT, frame).to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told == {
        "documents": 2, "accuracy": 0.5, "macro_f1": 0.5, "impossible": 1, "unknown_labels": ["x"],
        "textless": 0,
        "classes": [
            {"class": "a", "precision": 1.0, "recall": 1.0, "f1": 1.0, "documents": 1},
            {"class": "x", "precision": None, "recall": 0.0, "f1": 0.0, "documents": 1}],
        "confusion": [[1, 0, 0], [0, 0, 1]],
        "novelty": {"verdict": "unknown", "rows": 1, "expected": 0.0, "found": 0,
                    "share_learned": None},
    }


def test_progress_counts_the_rows() -> None:
    seen: list[int] = []
    evaluate(MODEL, frame_of(["a"] * 30, ["b"] * 30), progress=seen.append)
    assert sum(seen) == 30


def test_accuracy_is_the_score_of_the_classifier() -> None:
    frame = frame_of(["a", "b", "x", "c"], ["a", "b", "b", "d"])
    assert evaluate(MODEL, frame).accuracy == MODEL.score(frame) == 0.5


def test_a_classifier_of_tables_is_measured_too() -> None:
    train = pl.DataFrame({"x": [0.0, 0.1, 0.2, 1.0, 1.1, 1.2], "label": list("aaabbb")})
    model = TableClassifier(features=["x"]).fit(train)
    frame = pl.DataFrame({"x": [0.0, 1.0, 1.0, 0.1], "label": ["a", "a", "b", "z"]})
    result = evaluate(model, frame)
    check_against_sklearn(result, ["a", "a", "b", "z"], ["a", "b", "b", "a"])
    assert result.unknown_labels == ["z"]
    with pytest.raises(DataError, match="the test set has no rows"):
        evaluate(model, frame.clear())
    with pytest.raises(SchemaError, match="no column 'x'"):
        evaluate(model, frame.drop("x"))


def test_a_real_corpus_measures_as_sklearn_does(
    corpus: Callable[[str], pl.LazyFrame]
) -> None:
    rows = corpus("r8")
    test = rows.filter(pl.col("split") == "test")
    model = TextClassifier().fit(rows.filter(pl.col("split") == "train"))
    answered = model.predict(test).collect()
    result = evaluate(model, test)
    check_against_sklearn(result, answered["label"].to_list(), answered["predicted"].to_list())
    assert round(result.accuracy, 4) == 0.9516
