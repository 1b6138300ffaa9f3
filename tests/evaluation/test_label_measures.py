"""Measures of lists of labels are those of scikit-learn, also where scores come in blocks."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.metrics import (
    average_precision_score,
    coverage_error,
    f1_score,
    label_ranking_average_precision_score,
    ndcg_score,
)
from sklearn.preprocessing import MultiLabelBinarizer

import textnb
from tests.classifier.test_multilabel import NEWS, TESTED, TOPICS
from textnb import Decision, NBLinear, TextClassifier
from textnb.evaluation import evaluate as evaluate_module
from textnb.evaluation.labels import LabelEvaluation, rank_labels


def evaluate(model: TextClassifier, frame: pl.DataFrame) -> LabelEvaluation:
    result = textnb.evaluate(model, frame)
    assert isinstance(result, LabelEvaluation)
    return result


@pytest.mark.parametrize("n_labels", [1, 2, 4, 9])
@pytest.mark.parametrize("ties", [False, True])
def test_the_order_is_measured_as_scikit_learn_does(n_labels: int, ties: bool) -> None:
    draw = np.random.default_rng(n_labels)
    scores = draw.integers(0, 4, (50, n_labels)).astype(float) if ties else draw.normal(
        size=(50, n_labels))
    true = (draw.random((50, n_labels)) < 0.4).astype(np.int64)
    true[:, 0] = draw.random(50) < 0.5
    # The entries of a row need not be in the order of its columns.
    matrix = sp.csr_array(true)
    matrix.indices, matrix.data = matrix.indices.copy(), matrix.data.copy()
    for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        matrix.indices[start:end] = matrix.indices[start:end][::-1]
    found = rank_labels(lambda: iter(np.split(scores, [7, 7, 30])), matrix)
    own = true.sum(axis=1) > 0
    if n_labels > 1:
        assert found.coverage_error == pytest.approx(coverage_error(true[own], scores[own]))
        # Places instead of scores: of equal scores the first label comes first.
        places = -np.argsort(np.argsort(-scores[own], axis=1, kind="stable"), axis=1)
        assert found.first["ndcg"].to_list() == pytest.approx([
            ndcg_score(true[own], places, k=k) for k in found.first["k"]])
    assert found.label_ranking_average_precision == pytest.approx(
        label_ranking_average_precision_score(true[own], scores[own]))
    best = np.argsort(-scores[own], axis=1, kind="stable")
    assert found.first.select("k", "precision").rows() == [
        (k, pytest.approx(np.take_along_axis(true[own], best[:, :k], axis=1).mean()))
        for k in (1, 3, 5) if k <= n_labels]
    np.testing.assert_allclose(found.average_precision, [
        average_precision_score(true[:, k], scores[:, k]) for k in range(n_labels)])


@pytest.mark.parametrize("estimator", [None, NBLinear()])
def test_blocks_of_a_model_are_measured_as_one(
    monkeypatch: pytest.MonkeyPatch, estimator: Any
) -> None:
    model = TextClassifier(estimator, min_df=2).fit(NEWS)
    model.set_calibration(textnb.calibrate(model, NEWS))
    monkeypatch.setattr(evaluate_module, "_CELLS", 7 * len(TOPICS))
    result = evaluate(model, TESTED)
    true = MultiLabelBinarizer(classes=TOPICS).fit_transform(TESTED["label"].to_list())
    predicted = model.predict(TESTED)["predicted"].to_list()
    said = MultiLabelBinarizer(classes=TOPICS).fit_transform(predicted)
    odds, own = model.decision_function(TESTED), true.sum(axis=1) > 0
    assert result.micro_f1 == pytest.approx(f1_score(true, said, average="micro"))
    assert result.coverage_error == pytest.approx(coverage_error(true[own], odds[own]))
    np.testing.assert_allclose(result.labels["average_precision"], [
        average_precision_score(true[:, k], odds[:, k]) for k in range(len(TOPICS))])
    first = [label[0]["label"] for label in model.predict(TESTED, top=1)["top"]]
    assert result.ranking["precision"][0] == np.mean([
        label in own for label, own in zip(first, TESTED["label"], strict=True) if len(own)])
    pairs: Counter[tuple[str, str | None]] = Counter()
    for has, given in zip(TESTED["label"].to_list(), predicted, strict=True):
        missed, wrong = {*has} - {*given}, {*given} - {*has}
        pairs.update(product(missed, wrong or {None}))
    assert {(a, b): n for a, b, n in result.confused.rows()} == pairs
    assert result.confused["documents"].is_sorted(descending=True)


def test_held_out_scores_are_measured_as_rows_are() -> None:
    model = TextClassifier().fit(NEWS).set_decision(Decision(dict.fromkeys(TOPICS, 0.5)))
    ours, theirs = textnb.held_out(model, TESTED).evaluate(model.decision_), evaluate(model, TESTED)
    # Only rows tell of empty texts, and whether they are new.
    of_rows = {"textless": 0, "novelty": None}
    assert ours.to_dict() | of_rows == theirs.to_dict() | of_rows


def test_labels_without_a_row_or_a_model() -> None:
    model = TextClassifier(textnb.MultinomialNB(l=0.01)).fit(pl.DataFrame({
        "text": ["aa", "bb", "bb", "cc"], "label": [["a"], ["b"], ["b"], ["c"]]}))
    result = evaluate(model, pl.DataFrame({
        "text": ["aa", "bb", "bb"], "label": [["a", "z"], ["a"], []]}))
    # c has no row and is not predicted: it counts nowhere. b has none and is predicted: its F1 is
    # 0. z, which the model does not know, is missed.
    rows = {row.pop("label"): row for row in result.labels.to_dicts()}
    assert rows["a"]["f1"] == pytest.approx(2 / 3)
    assert rows["b"] == {"documents": 0, "predicted": 2, "precision": 0.0, "recall": None,
                         "f1": 0.0, "average_precision": None}
    assert rows["c"] == {"documents": 0, "predicted": 0, "precision": None, "recall": None,
                         "f1": None, "average_precision": None}
    assert rows["z"] == {"documents": 1, "predicted": 0, "precision": None, "recall": 0.0,
                         "f1": 0.0, "average_precision": None}
    assert result.macro_f1 == pytest.approx((2 / 3 + 0 + 0) / 3)
    # z comes last of four labels in the first document, and a last of those known in the second.
    assert result.coverage_error == pytest.approx((4 + 3) / 2)
    assert result.confused.rows() == [("a", "b", 1), ("z", None, 1)]
    assert "LabelEvaluation(3 documents, 4 labels" in result._repr_html_()


def test_no_document_with_a_label_has_no_order() -> None:
    model = TextClassifier().fit(NEWS)
    result = evaluate(model, pl.DataFrame({"text": ["unheard"], "label": [[]]}))
    assert result.to_dict()["coverage_error"] is None
    assert np.isnan(result.label_ranking_average_precision)


def test_labels_of_which_none_is_known() -> None:
    others = TESTED.with_columns(label=pl.lit(["zinc"]))
    with pytest.raises(textnb.DataError, match="knows none of the labels, such as 'zinc'"):
        textnb.evaluate(TextClassifier().fit(NEWS), others)
