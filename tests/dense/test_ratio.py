"""Log-count ratios by hand, and the linear model on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import textnb
from textnb import (
    DataError,
    LogCountRatio,
    NBLogisticRegression,
    ParameterError,
    TextClassifier,
    Tokenizer,
)

Array = NDArray[Any]
X = np.array([[2, 0, 1, 0], [1, 0, 0, 2], [0, 1, 0, 0], [0, 3, 1, 0], [0, 2, 2, 1], [1, 1, 0, 1]])
TWO = np.array(["neg", "neg", "pos", "pos", "pos", "neg"])
THREE = np.array(["a", "b", "c", "a", "b", "c"])


def by_hand(rows: Array, y: Array, label: str, l: float, binarize: bool) -> list[float]:
    """r = log((p / |p|₁) / (q / |q|₁)), p = l + Σ f of the class, q = l + Σ f of all others."""
    p, q = [l] * rows.shape[1], [l] * rows.shape[1]
    for row, own in zip(rows.tolist(), y, strict=True):
        for t, count in enumerate(row):
            (p if own == label else q)[t] += float(count > 0) if binarize else count
    return [math.log((a / sum(p)) / (b / sum(q))) for a, b in zip(p, q, strict=True)]


@pytest.mark.parametrize("binarize", [True, False])
@pytest.mark.parametrize("l", [0.5, 1.0])
@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array, sp.csc_array],
                         ids=["dense", "csr", "csc"])
def test_ratios_are_those_of_the_paper(binarize: bool, l: float, matrix: Any) -> None:
    two = LogCountRatio(l=l, binarize=binarize).fit(matrix(X), TWO)
    np.testing.assert_allclose(two.ratio_, [by_hand(X, TWO, "pos", l, binarize)], rtol=1e-12)
    three = LogCountRatio(l=l, binarize=binarize).fit(matrix(X), THREE)
    np.testing.assert_allclose(
        three.ratio_, [by_hand(X, THREE, k, l, binarize) for k in "abc"], rtol=1e-12)
    used = (X > 0) if binarize else X
    np.testing.assert_allclose(two.transform(matrix(X)).toarray(), used * two.ratio_)
    np.testing.assert_allclose(three.transform(matrix(X)).toarray(),
                               np.concatenate([used * r for r in three.ratio_], axis=1))


def test_a_ratio_in_numbers() -> None:
    # p = 1 + (0, 1), q = 1 + (1, 0): (1/3) / (2/3) and (2/3) / (1/3).
    assert np.exp(LogCountRatio().fit([[2, 0], [0, 1]], ["neg", "pos"]).ratio_).tolist() == [
        pytest.approx([0.5, 2.0])]


def solver_for(loss: str, settings: dict[str, Any]) -> Any:
    if loss == "hinge":
        return LinearSVC(max_iter=1000, random_state=0, **settings)
    return LogisticRegression(solver="liblinear", dual=True, max_iter=1000, random_state=0,
                              **settings)


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("binarize", [True, False])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_scores_are_the_solver_s_on_scaled_features(loss: Any, binarize: bool, C: float) -> None:
    used = ((X > 0) if binarize else X).astype(float)
    for y, positives in ((TWO, ["pos"]), (THREE, list("abc"))):
        model = NBLogisticRegression(loss=loss, C=C, binarize=binarize, tol=1e-4).fit(X, y)
        form = model.linear_form()
        for label in positives:
            r = np.array(by_hand(X, y, label, 1.0, binarize))
            solver = solver_for(loss, {"C": C, "tol": 1e-4}).fit(used * r, y == label)
            decision = solver.decision_function(used * r)
            k = model.classes_.tolist().index(label)
            np.testing.assert_allclose(
                model.predict_joint_log_proba(X)[:, k], decision, rtol=1e-9, atol=1e-12)
            # In the original terms: w∘r.
            np.testing.assert_allclose(form.weights[:, k], solver.coef_[0] * r, rtol=1e-9)
            np.testing.assert_allclose(form.intercept[k], solver.intercept_[0], rtol=1e-9)
        np.testing.assert_allclose(used @ form.weights + form.intercept,
                                   model.predict_joint_log_proba(X), rtol=1e-9, atol=1e-12)


def test_two_classes_have_a_logistic_posterior() -> None:
    model = NBLogisticRegression().fit(X, TWO)
    w, b = model.linear_form().binary("pos")
    np.testing.assert_allclose(model.predict_proba(X)[:, 1],
                               1 / (1 + np.exp(-((X > 0) @ w + b))), rtol=1e-9)
    assert not model.linear_form().weights[:, 0].any()
    np.testing.assert_allclose(model.coef_, [w])
    np.testing.assert_allclose(model.intercept_, [b])


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("beta", [0.0, 0.25, 1.0])
def test_weights_are_drawn_towards_their_mean_magnitude(y: Array, beta: float) -> None:
    plain = NBLogisticRegression(beta=1.0).fit(X, y)
    drawn = NBLogisticRegression(beta=beta).fit(X, y)
    for i, r in enumerate(plain.ratio_):
        k = 1 if len(plain.ratio_) == 1 else i
        w = plain.linear_form().weights[:, k] / r
        expected = ((1 - beta) * np.abs(w).mean() + beta * w) * r
        np.testing.assert_allclose(drawn.linear_form().weights[:, k], expected, rtol=1e-9)
    if beta == 0.0:
        # Naive Bayes in all but scale: weights are proportional to the ratios.
        share = drawn.linear_form().weights[:, 1] / drawn.ratio_[-1 if len(plain.ratio_) == 1
                                                                 else 1]
        np.testing.assert_allclose(share, share[0], rtol=1e-9)


@pytest.mark.parametrize("settings", [
    {"l": 0.0}, {"l": -1.0}, {"l": [1.0, 0.0, 1.0, 1.0]}, {"beta": -0.1}, {"beta": 1.1},
    {"loss": "square"}, {"C": 0.0}, {"C": float("inf")}, {"tol": 0.0}], ids=str)
def test_settings_out_of_range(settings: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        NBLogisticRegression(**settings).fit(X, TWO)


@pytest.mark.parametrize("kind", [LogCountRatio, NBLogisticRegression])
def test_what_it_refuses(kind: Any) -> None:
    with pytest.raises(ValueError, match="Negative values"):
        kind().fit(-X, TWO)
    with pytest.raises(DataError, match="greater than one; got one class"):
        kind().fit(X, ["x"] * 6)
    with pytest.raises(ParameterError, match="above 0"):
        kind(l=0.0).fit(X, TWO)


FRAME = pl.DataFrame({
    "text": ["good fine film", "bad dull film", "fine good good plot", "dull plot bad", "good",
             "a bad one"],
    "label": ["pos", "neg", "pos", "neg", "pos", "neg"]})


@pytest.mark.parametrize("settings", [
    {}, {"beta": 0.25, "loss": "hinge"}, {"binarize": False, "l": 0.5}], ids=str)
@pytest.mark.parametrize("labels", [["pos", "neg"] * 3, ["x", "y", "z"] * 2, [3, 1, 2] * 2],
                         ids=["two", "three", "numbers"])
def test_a_stored_model_scores_the_same_bits(
    tmp_path: Path, settings: dict[str, Any], labels: list[Any]
) -> None:
    frame = FRAME.with_columns(label=pl.Series(labels))
    model = TextClassifier(NBLogisticRegression(**settings)).fit(frame)
    model.save(tmp_path / "m.textnb")
    again = textnb.load(tmp_path / "m.textnb")
    assert isinstance(again, TextClassifier)
    texts = frame["text"].to_list()
    assert np.array_equal(again.predict_joint_log_proba(texts),
                          model.predict_joint_log_proba(texts))
    assert np.array_equal(again.estimator_.ratio_, model.estimator_.ratio_)
    assert again.estimator_.get_params() == model.estimator_.get_params()
    again.save(tmp_path / "again.textnb")
    assert (tmp_path / "again.textnb").read_bytes() == (tmp_path / "m.textnb").read_bytes()


def test_it_does_not_learn_in_batches() -> None:
    model = TextClassifier(NBLogisticRegression()).fit(FRAME)
    with pytest.raises(ParameterError):
        model.partial_fit(FRAME)


def test_newsgroups_by_date(corpus: Callable[[str], pl.LazyFrame]) -> None:
    frame = corpus("20newsgroups").collect()
    model = TextClassifier(NBLogisticRegression()).fit(frame.filter(split="train"))
    assert model.score(frame.filter(split="test")) >= 0.845


def test_reviews_by_words_and_pairs(corpus: Callable[[str], pl.LazyFrame]) -> None:
    frame = corpus("imdb").collect()
    model = TextClassifier(NBLogisticRegression(), min_df=2,
                           tokenizer=Tokenizer(ngram_range=(1, 2)))
    model.fit(frame.filter(split="train"))
    assert model.score(frame.filter(split="test")) >= 0.910
