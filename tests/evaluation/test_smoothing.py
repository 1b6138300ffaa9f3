"""The smoothing path, and the `l` that "auto" stands for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import textnb
from tests.oracles.scikit_learn import expected_failures
from textnb import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    DataError,
    MultinomialNB,
    NBLogisticRegression,
    ParameterError,
    TextClassifier,
    describe_model,
    held_out,
    leave_one_out,
    smoothing_path,
)
from textnb.bayes.choice import GRID, SmoothingResult, best_smoothing, measure_smoothing
from textnb.bayes.labels import Labels
from textnb.bayes.leave_one_out import LeftOut
from textnb.errors import ModelFileError
from textnb.evaluation.novelty import UNVERIFIED
from textnb.storage.textmodel import read_model, write_model

KINDS: list[Any] = [MultinomialNB, BernoulliNB, ComplementNB]
every = pytest.mark.parametrize("kind", KINDS)
NEWS = pl.DataFrame({
    "text": ["aa aa bb", "aa cc", "bb bb dd", "dd cc", "aa bb dd", "aa ee", "dd dd", "bb", "ee aa"],
    "label": ["x", "x", "y", "y", "y", "x", "y", "z", "x"]})


def measure(l: float, scores: Any, codes: Any, countable: Any = None) -> SmoothingResult:
    labels = Labels.of_codes(np.arange(scores.shape[1]), codes)
    some = np.ones(len(codes), dtype=bool) if countable is None else countable
    return measure_smoothing(l, LeftOut(scores, labels, some, np.ones(len(codes))))


def of_two_words(n: int = 12) -> pl.DataFrame:
    return pl.DataFrame({"text": ["aa aa", "aa bb", "bb", "bb aa"] * n,
                         "label": ["x", "x", "y", "y"] * n})


# The path


@every
def test_the_path_is_leave_one_out_at_each_l(kind: Any) -> None:
    path = smoothing_path(TextClassifier(kind()).fit(NEWS), NEWS, [10, 0.1, 1.0])
    assert path.table["l"].to_list() == [0.1, 1.0, 10.0]
    assert (path.method, path.documents, path.excluded) == ("leave-one-out", 9, 1)
    counted = np.array(NEWS["label"] != "z")
    for row in path.table.iter_rows(named=True):
        held = leave_one_out(TextClassifier(kind(l=row["l"])).fit(NEWS), NEWS)
        assert row["accuracy"] == held.accuracy
        assert row["log_loss"] == pytest.approx(held.take(counted).log_loss, rel=1e-12)


@pytest.mark.parametrize("settings", [{}, {"min_df": 2}, {"binary": True}, {"max_features": 3}],
                         ids=repr)
@every
def test_the_path_on_a_test_set_is_held_out_at_each_l(kind: Any, settings: dict[str, Any]) -> None:
    test = pl.DataFrame({"text": ["aa bb", "dd", "cc ff", "aa aa"], "label": ["x", "y", "z", "w"]})
    path = smoothing_path(TextClassifier(kind(), **settings).fit(NEWS), test=test)
    assert path.table["l"].to_list() == list(GRID)
    assert (path.method, path.documents, path.excluded) == (UNVERIFIED, 4, 1)
    for row in path.table.iter_rows(named=True):
        held = held_out(TextClassifier(kind(l=row["l"]), **settings).fit(NEWS), test)
        assert row["accuracy"] == held.accuracy
        assert row["log_loss"] == pytest.approx(held.take(np.arange(3)).log_loss, rel=1e-12)


def test_the_calibrated_loss_is_the_least_of_all_temperatures() -> None:
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(300, 3)) * 8, rng.integers(0, 3, 300)
    scores[np.arange(300), codes] += 6
    found = measure(1.0, scores, codes)

    def losses(temperature: float) -> Any:
        cold = scores / temperature
        return (np.log(np.exp(cold - cold.max(axis=1, keepdims=True)).sum(axis=1))
                + cold.max(axis=1) - cold[np.arange(300), codes])

    grid = np.geomspace(found.temperature / 3, found.temperature * 3, 2001)
    assert found.calibrated_log_loss == pytest.approx(min(losses(t).mean() for t in grid), abs=1e-6)
    own = losses(found.temperature)
    assert found.log_loss == pytest.approx(losses(1.0).mean(), rel=1e-12)
    assert found.standard_error == pytest.approx(own.std() / np.sqrt(300), rel=1e-9)
    doubled = measure(1.0, scores * 2, codes)
    assert doubled.temperature == pytest.approx(2 * found.temperature, rel=1e-3)


def test_without_smoothing_losses_are_infinite_and_it_is_not_the_best() -> None:
    path = smoothing_path(TextClassifier().fit(NEWS), NEWS, [0, 1.0])
    none = path.table.row(0, named=True)
    assert (none["log_loss"], none["calibrated_log_loss"]) == (np.inf, np.inf)
    assert (none["temperature"], none["standard_error"]) == (None, None)
    assert path.best == 1.0
    with pytest.raises(DataError, match="add a value above 0 to the grid"):
        smoothing_path(TextClassifier().fit(NEWS), NEWS, [0])
    assert json.loads(json.dumps(path.to_dict()))["best"] == 1.0


def test_the_best_is_the_smoothest_within_one_standard_error() -> None:
    def at(l: float, loss: float, accuracy: float = 0.9) -> SmoothingResult:
        return SmoothingResult(l, 0.0, accuracy, 1.0, loss, 0.01, 1000)

    path = [at(0.1, 0.305), at(0.5, 0.3), at(1.0, 0.31, 0.95), at(2.0, 0.3101), at(4.0, 0.4, 0.95)]
    assert best_smoothing(path) == 1.0
    assert best_smoothing(path[:2]) == 0.5
    assert best_smoothing(path, probabilistic=False) == 4.0


def test_where_all_are_right_the_smoothest_is_the_best() -> None:
    frame = pl.DataFrame({"text": ["aa bb", "cc", "cc dd", "aa"] * 50,
                          "label": ["x", "y", "y", "x"] * 50})
    path = smoothing_path(TextClassifier().fit(frame), frame)
    assert path.table["accuracy"].to_list() == [1.0] * len(GRID)
    assert path.best == 10.0


@pytest.mark.parametrize("grid", [[], [-1.0], [1.0, 1], "auto", [True], [np.inf], 1.0, [None]])
def test_a_grid_that_is_none_is_refused(grid: Any) -> None:
    with pytest.raises(ParameterError, match="grid must be one or more different finite numbers"):
        smoothing_path(TextClassifier().fit(NEWS), NEWS, grid)


def test_one_of_frame_and_test_is_given() -> None:
    model = TextClassifier().fit(NEWS)
    for given in ({}, {"frame": NEWS, "test": NEWS}):
        with pytest.raises(ParameterError, match="one of them"):
            smoothing_path(model, **given)


def test_a_test_set_that_tells_nothing_is_refused() -> None:
    model = TextClassifier().fit(NEWS)
    with pytest.raises(DataError, match="knows none of the labels"):
        smoothing_path(model, test=NEWS.with_columns(label=pl.lit("w")))
    with pytest.raises(DataError, match="has no rows"):
        smoothing_path(model, test=NEWS.head(0))
    with pytest.raises(DataError, match="null in row 0"):
        smoothing_path(model, test=NEWS.with_columns(label=pl.lit(None, dtype=pl.String)))


def test_a_model_that_can_not_leave_out_says_so() -> None:
    for model in (TextClassifier(max_features=2), TextClassifier(ComplementNB(norm=True)),
                  TextClassifier(NBLogisticRegression())):
        with pytest.raises(ParameterError, match="k folds"):
            smoothing_path(model.fit(NEWS), NEWS)


# "auto"


@every
def test_auto_is_the_best_of_the_path(kind: Any, tmp_path: Path) -> None:
    model = TextClassifier(kind(l="auto")).fit(NEWS)
    path = smoothing_path(model, NEWS)
    assert model.estimator_.l_ == path.best
    assert model.estimator_.l == model.get_params()["estimator__l"] == "auto"
    fixed = TextClassifier(kind(l=path.best)).fit(NEWS)
    assert np.array_equal(fixed.linear_form().weights, model.linear_form().weights)
    NEWS.write_parquet(tmp_path / "news.parquet")
    for source in (NEWS.lazy(), tmp_path / "news.parquet", NEWS.reverse()):
        assert TextClassifier(kind(l="auto")).fit(source).estimator_.l_ == path.best
    listed = TextClassifier(kind(l="auto")).fit(NEWS["text"].to_list(), NEWS["label"].to_list())
    assert listed.estimator_.l_ == path.best


@every
def test_on_matrices_it_is_chosen_by_refits_of_the_same_columns(kind: Any) -> None:
    counts = TextClassifier().fit(NEWS).transform(NEWS)
    y = NEWS["label"].to_numpy()
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


def test_fractions_are_left_out_too() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.random((40, 6)) / 3, np.arange(40) % 2
    X[y == 1, 0] += 1.0
    for kind in (MultinomialNB, ComplementNB):
        model = kind(l="auto").fit(X, y)
        assert model.l_ == kind(l="auto").fit(sp.csr_array(X), y).l_
        assert model.score(X, y) > 0.9


@every
def test_what_was_chosen_is_kept(kind: Any) -> None:
    model = TextClassifier(kind(l="auto")).fit(NEWS)
    chosen = model.estimator_.l_
    model.partial_fit(of_two_words())
    assert model.estimator_.l_ == chosen
    model.forget(of_two_words())
    assert model.estimator_.l_ == chosen
    both = model + TextClassifier(kind(l="auto")).fit(NEWS)
    assert both.estimator_.l_ == chosen
    matrix = kind(l="auto").fit([[2, 0], [0, 1], [1, 0], [0, 2]], ["x", "y", "x", "y"])
    assert matrix.partial_fit([[1, 1]], ["y"]).l_ == matrix.l_
    assert model.fit(of_two_words()).estimator_.l_ == TextClassifier(kind(l="auto")).fit(
        of_two_words()).estimator_.l_


def test_models_of_different_choices_do_not_add() -> None:
    one = TextClassifier(MultinomialNB(l="auto")).fit(NEWS)
    other = TextClassifier(MultinomialNB(l="auto")).fit(of_two_words())
    assert one.estimator_.l_ != other.estimator_.l_
    with pytest.raises(ParameterError, match="differ in the l that was chosen"):
        one + other


@every
def test_a_model_file_holds_what_was_chosen(kind: Any, tmp_path: Path) -> None:
    model = TextClassifier(kind(l="auto")).fit(NEWS)
    model.save(tmp_path / "auto.textnb")
    again = textnb.load(tmp_path / "auto.textnb")
    assert isinstance(again, TextClassifier)
    assert again.estimator_.l == "auto"
    assert again.estimator_.l_ == model.estimator_.l_
    assert np.array_equal(again.linear_form().weights, model.linear_form().weights)
    assert np.array_equal(again.linear_form().intercept, model.linear_form().intercept)
    again.save(tmp_path / "again.textnb")
    assert (tmp_path / "again.textnb").read_bytes() == (tmp_path / "auto.textnb").read_bytes()
    assert describe_model(again)["chosen"] == {"l": model.estimator_.l_}
    assert "chosen" not in describe_model(TextClassifier(kind()).fit(NEWS))


@pytest.mark.parametrize("l", [None, -1.0, "auto", float("inf"), 1, True])
def test_a_model_file_without_a_fit_choice_is_refused(l: Any, tmp_path: Path) -> None:
    TextClassifier(MultinomialNB(l="auto")).fit(NEWS).save(tmp_path / "auto.textnb")
    manifest, arrays = read_model(tmp_path / "auto.textnb", 1 << 30)
    if l is None:
        del manifest["l"]
    else:
        manifest["l"] = "Infinity" if l == float("inf") else l
    write_model(tmp_path / "bad.textnb", manifest, arrays)
    with pytest.raises(ModelFileError):
        textnb.load(tmp_path / "bad.textnb")


@pytest.mark.parametrize(("act", "told"), [
    (lambda: TextClassifier(NBLogisticRegression(l="auto")).fit(NEWS), "alone choose it by 'auto'"),
    (lambda: CategoricalNB(l="auto").fit([[0], [1]], [0, 1]), "belongs to MultinomialNB"),
    (lambda: ComplementNB(l="auto", norm=True).fit([[0], [1]], [0, 1]), "norm=False"),
    (lambda: MultinomialNB(l="best").fit([[0], [1]], [0, 1]), "l must be a finite number"),
    (lambda: MultinomialNB(l="auto").partial_fit([[0], [1]], [0, 1], classes=[0, 1]),
     "call fit first"),
    (lambda: TextClassifier(MultinomialNB(l="auto")).partial_fit(NEWS), "call fit first"),
    (lambda: MultinomialNB(l="auto").fit([[0], [1]], [0, 1], sample_weight=[1, 2]), "no weights"),
])
def test_where_auto_can_not_be_it_says_so(act: Callable[[], Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        act()


@pytest.mark.parametrize(("frame", "told"), [
    (NEWS.filter(pl.col("label") == "x"), "there is one class"),
    (NEWS.unique("label", maintain_order=True), "no class has two"),
    (NEWS[:1], "takes two or more"),
    (NEWS.head(0), "no rows"),
])
def test_documents_that_can_not_tell_are_refused(frame: pl.DataFrame, told: str) -> None:
    with pytest.raises(DataError, match=told):
        TextClassifier(MultinomialNB(l="auto")).fit(frame)


def test_a_size_limit_holds_the_terms() -> None:
    model = TextClassifier(MultinomialNB(l="auto"), max_features=3).fit(NEWS)
    matrix = MultinomialNB(l="auto").fit(model.transform(NEWS), NEWS["label"].to_numpy())
    assert model.estimator_.l_ == matrix.l_


def refused(estimator: Any) -> dict[str, str]:
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
def test_scikit_learn_takes_a_model_that_chooses(
    estimator: Any, check: Callable[[Any], None]
) -> None:
    check(estimator)


# Accuracy on real corpora


@every
def test_it_is_near_the_best_of_three_on_sms(
    kind: Any, corpus: Callable[[str], pl.LazyFrame]
) -> None:
    frame = corpus("sms_spam").collect()
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(
        np.zeros(frame.height), frame["label"].to_numpy())
    found: dict[Any, list[float]] = {l: [] for l in ("auto", 1.0, 0.1, 0.01)}
    for train, test in folds:
        for l, accuracies in found.items():
            model = TextClassifier(kind(l=l)).fit(frame[train])
            accuracies.append(model.score(frame[test]))
    mean = {l: float(np.mean(accuracies)) for l, accuracies in found.items()}
    assert mean.pop("auto") >= max(mean.values()) - 0.005


@every
def test_it_is_near_the_best_of_three_on_r8(
    kind: Any, corpus: Callable[[str], pl.LazyFrame]
) -> None:
    frame = corpus("r8")
    train, test = (frame.filter(pl.col("split") == name).collect() for name in ("train", "test"))
    accuracy = {l: TextClassifier(kind(l=l)).fit(train).score(test)
                for l in ("auto", 1.0, 0.1, 0.01)}
    assert accuracy.pop("auto") >= max(accuracy.values()) - 0.005
