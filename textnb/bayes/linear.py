"""How `textnb.bayes.counts.linear.Linear` learns from rows: counts, weights, a temperature.

    counts -> feature map -> times |log-count ratio| ** power, class by class -> solver -> weights

References
----------
.. [1] S. Wang, C. D. Manning (2012). Baselines and bigrams: simple, good sentiment and topic
   classification. ACL, section 2.1: the log-count ratio.
.. [2] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural networks.
   ICML, section 4.2: temperature scaling.
.. [3] B. Zadrozny, C. Elkan (2002). Transforming classifier scores into accurate multiclass
   probability estimates. KDD, section 5: one against the rest, normalised.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.class_weight import class_weights, with_class_weight
from textnb.bayes.event_model import Learned
from textnb.bayes.features import canonical, presence
from textnb.bayes.forms import Floats
from textnb.bayes.linear_solver import LinearSolution, LinearSolver, SolverRows
from textnb.bayes.ratio import presence_statistics
from textnb.bayes.statistics import CountStatistics, as_smoothing
from textnb.errors import DataError, ParameterError
from textnb.runtime.caller import warn_caller
from textnb.runtime.memory import check_room
from textnb.runtime.threads import map_in_threads

# With larger values, squares and their sums would overflow.
_LARGEST = 1e30
# The least number of held-out rows that a temperature is fitted on.
_LEAST_HELD_OUT = 20
# The largest 1 / T of the search.
_MOST_SURE = 1e6
_LARGEST_SHIFT = 100.0


def learn_from_rows(
    model: Any, counts: sp.csr_array, labels: NDArray[Any], weight: Floats | None = None,
    binary: bool = False,
) -> Learned:
    """Learn the statistic of rows, and the weights.

    Parameters
    ----------
    model : Linear
        Already checked. Not imported here, as it imports this module.
    counts : csr_array (n_rows, n_terms)
    labels : (n_rows,)
    weight : float64 (n_rows,), optional
        Weights of the rows, in the counts and in the loss.
    binary : bool
        Whether a term counts once per row, whatever the model says.

    Raises
    ------
    DataError
        If there is one class, or a value is too large.
    """
    statistics = _statistics(counts, labels, weight)
    classes = statistics.classes
    check_room(len(classes), statistics.n_features, 16, "counts and weights", log=True)
    rows = model.feature_map(statistics, binary).sparse(canonical(counts))
    _check_values(rows)
    of_class = class_weights(model.class_weight, classes, statistics.class_count)
    codes = np.searchsorted(classes, labels)
    cost = np.full(len(labels), float(model.C)) if weight is None else model.C * weight
    if of_class is not None:
        cost = cost * of_class[codes]
    prepared = SolverRows.of(rows, model.loss)
    del rows
    solver = LinearSolver(model.loss, float(model.tol), int(model.max_iter))
    scales = _Scales(model, statistics)

    def solve(k: int) -> LinearSolution:
        return solver.solve(prepared, codes == k, cost, scales.of(k))

    # Of two classes the first scores 0, so that the margin is the second's.
    positives = [1] if len(classes) == 2 else range(len(classes))
    weights = np.zeros((statistics.n_features, len(classes)))
    intercept = np.zeros(len(classes))
    taken, converged = 0, True
    for k, found in zip(positives, map_in_threads(solve, positives), strict=True):
        if not (np.isfinite(found.weights).all() and np.isfinite(found.intercept)):
            raise ParameterError(f"C={model.C!r} is too large for these rows: the solver found "
                                 "weights that are no finite numbers. Take a smaller C")
        weights[:, k], intercept[k] = found.weights, found.intercept
        taken, converged = max(taken, found.n_iter), converged and found.converged
    if not converged:
        _warn_of_tolerance(model)
    return Learned(statistics,
                   model.form_of_weights(statistics, weights, intercept, binary=binary), taken)


def learn_and_calibrate(
    model: Any, counts: sp.csr_array, labels: NDArray[Any], weight: Floats | None = None,
    binary: bool = False,
) -> Learned:
    """As `learn_from_rows`, with a temperature that is fitted on held-out rows.

    There is none where ``held_out`` is 0, where fewer than 20 rows would be held out, or none of a
    class.
    """
    learned = learn_from_rows(model, counts, labels, weight, binary)
    judge = _choose_held_out(labels, model.held_out)
    if judge is None:
        return learned
    own = None if weight is None else weight[~judge]
    if own is not None and not own.any():
        return learned
    first = learn_from_rows(model, counts[~judge], labels[~judge], own, binary)
    scores = first.form.scores(counts[judge])
    codes = np.searchsorted(learned.counts.classes, labels[judge])
    judged = np.ones(len(codes)) if weight is None else weight[judge]
    temperature = best_temperature(scores, codes, judged)
    calibration = Calibration(temperature, 0.0, int(judge.sum()), "rows held out by fit")
    if scores.shape[1] > 2:
        temperature, shift = best_sigmoids(scores, codes, judged, temperature)
        calibration = replace(calibration, temperature=temperature, link="sigmoid", shift=shift)
    return replace(learned, calibration=calibration)


def best_temperature(
    scores: Floats, codes: NDArray[np.int64], weight: Floats | None = None
) -> float:
    """The T that makes the labels most likely under ``softmax(scores / T)`` [2]_.

    One more label is assumed, which is any class with equal probability: without it, labels that
    are all right would give T = 0.

    Parameters
    ----------
    scores : float64 (n_rows, n_classes)
        Finite.
    codes : int64 (n_rows,)
        The class of each row.
    weight : float64 (n_rows,), optional

    Examples
    --------
    >>> scores = np.array([[1.0, 0.0]] * 4)
    >>> sure = best_temperature(scores, np.array([0, 0, 0, 0]))
    >>> less = best_temperature(scores, np.array([0, 0, 0, 1]))
    >>> round(sure, 3), round(less, 3)
    (0.455, 1.18)
    """
    scores = scores - scores.max(axis=1, keepdims=True)
    weight = np.ones(len(codes)) if weight is None else weight
    total = float(weight.sum())
    if not (scores < 0).any() or not total:
        return 1.0
    own = scores[np.arange(len(codes)), codes]
    share = 1.0 / (total + 1.0)
    wanted = (1.0 - share) * own + share * scores.mean(axis=1)

    def slope(inverse: float) -> float:
        powers = np.exp(inverse * scores)
        expected = (powers * scores).sum(axis=1) / powers.sum(axis=1)
        return float((weight * (expected - wanted)).sum())

    # The loss is convex in 1 / T: its slope rises.
    low, high = np.log(1.0 / _MOST_SURE), np.log(_MOST_SURE)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(float(np.exp(middle))) < 0 else (low, middle)
    return float(np.exp(-0.5 * (low + high)))


def best_sigmoids(
    scores: Floats, codes: NDArray[np.int64], weight: Floats, start: float = 1.0
) -> tuple[float, float]:
    """T and shift under which labels are most likely by normalised ``σ(score / T + shift)`` [3]_.

    One label more than there are is taken to be any class with equal chances, as in
    `best_temperature`.

    Parameters
    ----------
    scores : float64 (n_rows, n_classes)
        Finite: margins of each class against the rest.
    codes : int64 (n_rows,)
    weight : float64 (n_rows,)
    start : float
        Where the search for T begins.
    """
    from scipy.optimize import minimize

    total = float(weight.sum())
    if not total:
        return start, 0.0
    share = 1.0 / (total + 1.0)
    wanted = np.full(scores.shape, share / scores.shape[1])
    wanted[np.arange(len(codes)), codes] += 1.0 - share

    def loss(point: Floats) -> tuple[float, Floats]:
        slope = np.exp(point[0])
        inner = slope * scores + point[1]
        logs = -np.logaddexp(0.0, -inner)
        logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
        change = weight[:, None] * (np.exp(logs) - wanted) * np.exp(-np.logaddexp(0.0, inner))
        gradient = np.array([slope * (change * scores).sum(), change.sum()])
        return -float((weight[:, None] * wanted * logs).sum()) / total, gradient / total

    low, high = -np.log(_MOST_SURE), np.log(_MOST_SURE)
    begin = np.array([np.clip(-np.log(start), low, high), 0.0])
    found = minimize(loss, begin, jac=True, method="L-BFGS-B",
                     bounds=[(low, high), (-_LARGEST_SHIFT, _LARGEST_SHIFT)],
                     options={"ftol": 1e-14, "gtol": 1e-9, "maxiter": 500})
    return float(np.exp(-found.x[0])), float(found.x[1])


class _Scales:
    """|r| ** power of each class, r its log-count ratio to all others [1]_, one at a time."""

    def __init__(self, model: Any, statistics: CountStatistics) -> None:
        self._power = float(model.power)
        self._l = as_smoothing(model.l, statistics.n_features)
        self._counts = with_class_weight(statistics, model.class_weight).feature_count
        self._total = self._counts.sum(axis=0)

    def of(self, k: int) -> Floats:
        """float64 (n_terms,)."""
        if not self._power:
            return np.ones(len(self._total))
        # As `log_count_ratio`, in one logarithm per term. Sums of weights may leave rounding.
        own = self._counts[k]
        others = np.maximum(self._total - own, 0)
        ratio = (own + self._l) / (others + self._l)
        np.log(ratio, out=ratio)
        smoothing = float(np.broadcast_to(self._l, own.shape).sum())
        ratio += np.log((others.sum() + smoothing) / (own.sum() + smoothing))
        scale: Floats = np.abs(ratio, out=ratio)
        # A square root is several times as quick as a power.
        return np.sqrt(scale) if self._power == 0.5 else scale**self._power


def _statistics(
    counts: sp.csr_array, labels: NDArray[Any], weight: Floats | None
) -> CountStatistics:
    """Rows of each class that hold each term."""
    present = presence(counts, 0.0)
    if weight is None:
        statistics = presence_statistics(present, labels)
    else:
        statistics = CountStatistics.from_matrix(present, labels, sample_weight=weight)
    if len(statistics.classes) < 2:
        raise DataError("a linear model tells classes apart: the number of classes in the data has "
                        f"to be greater than one; got one class: {statistics.classes.tolist()}")
    return statistics


def _check_values(rows: sp.csr_array) -> None:
    largest = np.max(rows.data, initial=0.0)
    if not largest <= _LARGEST:
        raise DataError(f"features must be finite and at most {_LARGEST:g}; one is {largest:g}. "
                        "Scale the rows down, or take unit_length=True")


def _choose_held_out(labels: NDArray[Any], share: float) -> NDArray[np.bool_] | None:
    """Choose the rows that are held out: every n-th of each class; None where they, or those of a
    class, would be too few."""
    if not share:
        return None
    step = round(1.0 / share)
    _, codes = np.unique(labels, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    if sizes.min() < step or (sizes // step).sum() < _LEAST_HELD_OUT:
        return None
    # The place of each row among those of its class.
    place = np.empty(len(codes), dtype=np.int64)
    place[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    judge: NDArray[np.bool_] = place % step == step - 1
    return judge


def _warn_of_tolerance(model: Any) -> None:
    from sklearn.exceptions import ConvergenceWarning

    warn_caller(f"the solver failed to converge to tol={model.tol:g} in max_iter={model.max_iter} "
                "Newton steps: give more of them, or a larger tol", ConvergenceWarning)
