"""The smoothing path, and the `l` that "auto" stands for."""

import json

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import textnb
from tests.evaluation.documents import COUNTED, FEW
from tests.oracles.scikit_learn import expected_failures
from textnb import ComplementNB, MultinomialNB, TextClassifier, held_out, smoothing_path
from textnb.bayes.choice import GRID, SmoothingResult, best_smoothing, measure_smoothing
from textnb.bayes.labels import Labels
from textnb.bayes.leave_one_out import LeftOut
from textnb.evaluation.novelty import UNVERIFIED

every = pytest.mark.parametrize("kind", COUNTED)
TWO_WORDS = pl.DataFrame({"text": ["aa aa", "aa bb", "bb", "bb aa"] * 12,
                          "label": ["x", "x", "y", "y"] * 12})
TEST = pl.DataFrame({"text": ["aa bb", "dd", "cc ff", "aa aa"], "label": ["x", "y", "z", "w"]})


def measure(l, scores, codes, countable=None):
    labels = Labels.of_codes(np.arange(scores.shape[1]), codes)
    some = np.ones(len(codes), dtype=bool) if countable is None else countable
    return measure_smoothing(l, LeftOut(scores, labels, some, np.ones(len(codes))))


# The path


@pytest.mark.sweep(2)
@every
@pytest.mark.parametrize(("settings", "test", "method"), [
    ({}, None, "leave-one-out"),
    *((settings, TEST, UNVERIFIED) for settings in (
        {}, {"min_df": 2}, {"binary": True}, {"max_features": 3}))], ids=str)
def test_the_path_judges_a_fit_at_each_l(kind, settings, test, method):
    model = TextClassifier(kind(), **settings).fit(FEW)
    path = smoothing_path(model, FEW if test is None else None, test=test)
    assert path.table["l"].to_list() == list(GRID)
    rows = FEW if test is None else test
    assert (path.method, path.documents, path.excluded) == (method, rows.height, 1)
    judged = np.array(rows["label"] != ("z" if test is None else "w"))
    for row in path.table.iter_rows(named=True):
        fitted = TextClassifier(kind(l=row["l"]), **settings).fit(FEW)
        held = textnb.leave_one_out(fitted, FEW) if test is None else held_out(fitted, test)
        assert row["accuracy"] == held.accuracy
        assert row["log_loss"] == pytest.approx(held.take(judged).log_loss, rel=1e-12)


def test_a_path_is_in_order_of_l():
    path = smoothing_path(TextClassifier().fit(FEW), FEW, [10, 0.1, 1.0])
    assert path.table["l"].to_list() == [0.1, 1.0, 10.0]


def test_the_calibrated_loss_is_the_least_of_all_temperatures():
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(300, 3)) * 8, rng.integers(0, 3, 300)
    scores[np.arange(300), codes] += 6
    result = measure(1.0, scores, codes)

    def losses(temperature):
        cold = scores / temperature
        return (np.log(np.exp(cold - cold.max(axis=1, keepdims=True)).sum(axis=1))
                + cold.max(axis=1) - cold[np.arange(300), codes])

    grid = np.geomspace(result.temperature / 3, result.temperature * 3, 2001)
    least = min(losses(t).mean() for t in grid)
    assert result.calibrated_log_loss == pytest.approx(least, abs=1e-6)
    own = losses(result.temperature)
    assert result.log_loss == pytest.approx(losses(1.0).mean(), rel=1e-12)
    assert result.standard_error == pytest.approx(own.std() / np.sqrt(300), rel=1e-9)
    doubled = measure(1.0, scores * 2, codes)
    assert doubled.temperature == pytest.approx(2 * result.temperature, rel=1e-3)


def test_without_smoothing_losses_are_infinite_and_it_is_not_the_best():
    path = smoothing_path(TextClassifier().fit(FEW), FEW, [0, 1.0])
    none = path.table.row(0, named=True)
    assert (none["log_loss"], none["calibrated_log_loss"]) == (np.inf, np.inf)
    assert (none["temperature"], none["standard_error"]) == (None, None)
    assert json.loads(json.dumps(path.to_dict()))["best"] == path.best == 1.0


def test_the_best_is_the_smoothest_within_one_standard_error():
    path = [SmoothingResult(l, 0.0, accuracy, 1.0, loss, 0.01, 1000) for l, loss, accuracy in [
        (0.1, 0.305, 0.9), (0.5, 0.3, 0.9), (1.0, 0.31, 0.95), (2.0, 0.3101, 0.9),
        (4.0, 0.4, 0.95)]]
    assert best_smoothing(path) == 1.0
    assert best_smoothing(path[:2]) == 0.5
    assert best_smoothing(path, probabilistic=False) == 4.0


def test_where_all_are_right_the_smoothest_is_the_best():
    frame = pl.DataFrame({"text": ["aa bb", "cc", "cc dd", "aa"] * 50,
                          "label": ["x", "y", "y", "x"] * 50})
    path = smoothing_path(TextClassifier().fit(frame), frame)
    assert path.table["accuracy"].to_list() == [1.0] * len(GRID)
    assert path.best == 10.0


# "auto"


@every
def test_auto_is_the_best_of_the_path(kind, tmp_path):
    model = TextClassifier(kind(l="auto")).fit(FEW)
    path = smoothing_path(model, FEW)
    assert model.estimator_.l_ == path.best
    assert model.estimator_.l == model.get_params()["estimator__l"] == "auto"
    fixed = TextClassifier(kind(l=path.best)).fit(FEW)
    assert np.array_equal(fixed.linear_form().weights, model.linear_form().weights)
    FEW.write_parquet(tmp_path / "news.parquet")
    for source in ([FEW.lazy()], [tmp_path / "news.parquet"], [FEW.reverse()],
                   [FEW["text"].to_list(), FEW["label"].to_list()]):
        assert TextClassifier(kind(l="auto")).fit(*source).estimator_.l_ == path.best


@pytest.mark.sweep(1)
@every
def test_on_matrices_it_is_chosen_by_refits_of_the_same_columns(kind):
    counts = TextClassifier().fit(FEW).transform(FEW)
    y = FEW["label"].to_numpy()
    model = kind(l="auto").fit(counts, y)
    assert kind(l="auto").fit(counts.toarray(), y).l_ == model.l_
    assert clone(model).get_params()["l"] == "auto"
    path = []
    for l in GRID:
        scores = np.full((len(y), 3), -np.inf)
        for row in range(len(y)):
            others = np.arange(len(y)) != row
            refit = kind(l=l).fit(counts[others], y[others])
            stay = np.isin(model.classes_, refit.classes_)
            scores[row, stay] = refit.predict_joint_log_proba(counts[[row]])[0]
        path.append(measure(l, scores, np.searchsorted(model.classes_, y), y != "z"))
    assert model.l_ == best_smoothing(path, kind is not ComplementNB)


def test_fractions_are_left_out_too_and_a_size_limit_holds_the_terms():
    rng = np.random.default_rng(1)
    X, y = rng.random((40, 6)) / 3, np.arange(40) % 2
    X[y == 1, 0] += 1.0
    for kind in (MultinomialNB, ComplementNB):
        model = kind(l="auto").fit(X, y)
        assert model.l_ == kind(l="auto").fit(sp.csr_array(X), y).l_
        assert model.score(X, y) > 0.9
    limited = TextClassifier(MultinomialNB(l="auto"), max_features=3).fit(FEW)
    matrix = MultinomialNB(l="auto").fit(limited.transform(FEW), FEW["label"].to_numpy())
    assert limited.estimator_.l_ == matrix.l_


@every
def test_what_was_chosen_is_kept_until_the_next_fit(kind):
    model = TextClassifier(kind(l="auto")).fit(FEW)
    chosen = model.estimator_.l_
    assert model.partial_fit(TWO_WORDS).estimator_.l_ == chosen
    assert model.forget(TWO_WORDS).estimator_.l_ == chosen
    assert (model + TextClassifier(kind(l="auto")).fit(FEW)).estimator_.l_ == chosen
    matrix = kind(l="auto").fit([[2, 0], [0, 1], [1, 0], [0, 2]], ["x", "y", "x", "y"])
    assert matrix.partial_fit([[1, 1]], ["y"]).l_ == matrix.l_
    assert model.fit(TWO_WORDS).estimator_.l_ == TextClassifier(kind(l="auto")).fit(
        TWO_WORDS).estimator_.l_


def refused(estimator):
    """What "auto" does not do: weigh rows, tell one class, or choose from a part of the rows."""
    checks = ("check_n_features_in_after_fitting", "check_estimators_partial_fit_n_features",
              "check_sample_weights_list", "check_sample_weights_not_overwritten",
              "check_sample_weight_equivalence_on_dense_data",
              "check_sample_weight_equivalence_on_sparse_data",
              "check_classifiers_one_label_sample_weights")
    return {**expected_failures(estimator),
            **dict.fromkeys(checks, "refused with a ParameterError")}


# The three share what chooses.
@pytest.mark.sweep(12)
@parametrize_with_checks([MultinomialNB(l="auto")], expected_failed_checks=refused)
def test_scikit_learn_takes_a_model_that_chooses(estimator, check):
    check(estimator)


# Accuracy on real corpora


@pytest.mark.parametrize("name", ["sms_spam", "r8"])
@every
def test_it_is_near_the_best_of_three(kind, corpus, name):
    frame = corpus(name).collect()
    if name == "r8":
        parts = [(frame.filter(split="train"), frame.filter(split="test"))]
    else:
        folds = StratifiedKFold(5, shuffle=True, random_state=0).split(
            np.zeros(frame.height), frame["label"].to_numpy())
        parts = [(frame[train], frame[test]) for train, test in folds]
    accuracy = {l: np.mean([TextClassifier(kind(l=l)).fit(train).score(test)
                            for train, test in parts]) for l in ("auto", 1.0, 0.1, 0.01)}
    assert accuracy.pop("auto") >= max(accuracy.values()) - 0.005
