"""How `textnb.bayes.counts.linear.Linear` learns from rows: counts, weights, a temperature.

    counts -> feature map -> times |log-count ratio| ** power, class by class -> solver -> weights

References
----------
.. [1] S. Wang, C. D. Manning (2012). Baselines and bigrams: simple, good sentiment and topic
   classification. ACL, section 2.1: the log-count ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.class_weight import class_weights
from textnb.bayes.event_model import Learned, LeftOutScores
from textnb.bayes.features import FeatureMap, canonical, without_zeros
from textnb.bayes.forms import Floats
from textnb.bayes.linear_solver import LinearSolution, LinearSolver
from textnb.bayes.parameters import MOST_COST
from textnb.bayes.ratio import document_statistics
from textnb.bayes.solver_rows import SolverRows
from textnb.bayes.statistics import CountStatistics, as_smoothing
from textnb.bayes.temperature import best_sigmoids, best_temperature
from textnb.bayes.warm_start import WarmStart
from textnb.errors import DataError, ParameterError
from textnb.runtime.caller import warn_caller
from textnb.runtime.memory import check_room
from textnb.runtime.threads import map_in_threads

# With larger values, squares and their sums would overflow.
_LARGEST = 1e30
# The least number of held-out rows that a temperature is fitted on.
_LEAST_HELD_OUT = 20


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
    return _fit(model, PreparedRows.of(model, counts, labels, weight, binary), labels, weight,
                binary)[0]


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """What is learned from, whatever ``C``, ``l``, ``power`` and ``class_weight`` are.

    Models that differ in these alone may learn from the same prepared rows, and have the same bits
    as without them.

    Attributes
    ----------
    statistics : CountStatistics
    features : csr_array (n_rows, n_terms)
        Rows after the feature map.
    rows : SolverRows
    """

    statistics: CountStatistics
    features: sp.csr_array
    rows: SolverRows

    @classmethod
    def of(
        cls, model: Any, counts: sp.csr_array, labels: NDArray[Any],
        weight: Floats | None = None, binary: bool = False,
    ) -> PreparedRows:
        statistics = _statistics(counts, labels, weight)
        check_room(len(statistics.classes), statistics.n_features, 16, "counts and weights",
                   log=True)
        features = model.feature_map(statistics, binary)
        return cls(statistics, *_features_and_rows(model, counts, features))

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return int(self.statistics.feature_count.nbytes + 2 * (
            self.features.data.nbytes + self.features.indices.nbytes))

    def learn(self, model: Any, labels: NDArray[Any]) -> Learned:
        """As `learn_from_rows`, for a model with the same feature map and loss."""
        return _fit(model, self, labels, None, False)[0]


def _features_and_rows(
    model: Any, counts: sp.csr_array, features: FeatureMap
) -> tuple[sp.csr_array, SolverRows]:
    rows = features.sparse(canonical(counts))
    _check_values(rows)
    return rows, SolverRows.of(rows, model.loss)


def _fit(
    model: Any, prepared: PreparedRows, labels: NDArray[Any], weight: Floats | None, binary: bool,
    start: WarmStart | None = None,
) -> tuple[Learned, list[Pulls]]:
    """What is learned, and how much each row pulls in the solution of each class."""
    statistics = prepared.statistics
    classes = statistics.classes
    problems = _Problems.of(model, prepared.features, prepared.rows, labels, weight,
                            statistics.feature_count.__getitem__)
    weights = np.zeros((statistics.n_features, len(classes)))
    intercept = np.zeros(len(classes))
    pulls, taken, converged = [], 0, True
    begin = None if start is None else [
        start.of(classes.tolist()[k], problems.rows.columns) for k in problems.positives]
    for k, found in problems.solve(points=begin):
        found.put(weights[:, k])
        intercept[k] = found.intercept
        pulls.append(Pulls.of(found.duals))
        taken, converged = max(taken, found.n_iter), converged and found.converged
    if not converged:
        _warn_of_tolerance(model)
    form = model.form_of_weights(statistics, weights, intercept, binary=binary)
    return Learned(statistics, form, taken), pulls


def learn_and_calibrate(
    model: Any, counts: sp.csr_array, labels: NDArray[Any], weight: Floats | None = None,
    binary: bool = False, start: WarmStart | None = None, left_out: bool = False,
) -> Learned:
    """As `learn_from_rows`, with a temperature that is fitted on held-out rows.

    There is none where ``held_out`` is 0, or where fewer than 20 rows would be held out, or rows of
    one class alone. With ``left_out``, all rows are scored by models of others, where no class is
    rare.
    """
    counts = without_zeros(canonical(counts))
    prepared = PreparedRows.of(model, counts, labels, weight, binary)
    learned, pulls = _fit(model, prepared, labels, weight, binary, start)
    del prepared
    parts = _divide(labels, model.held_out)
    if parts is None:
        return learned
    judge = parts == parts.max()
    if weight is not None and not weight[~judge].any():
        return learned
    scores = _scores_of_others(model, counts, labels, weight, judge, binary, pulls)
    if left_out and weight is None and _has_rows_in_each(labels, parts):
        learned = replace(learned, left_out=_scores_of_parts(
            model, counts, labels, parts, scores, binary, pulls))
    codes = np.searchsorted(learned.counts.classes, labels[judge])
    judged = np.ones(len(codes)) if weight is None else weight[judge]
    documents, method = int(judge.sum()), "rows held out by fit"
    if scores.shape[1] > 2:
        temperature, shift = best_sigmoids(scores, codes, judged)
        calibration = Calibration(
            temperature, 0.0, documents, method, link="sigmoid", shift=shift)
    else:
        calibration = Calibration(
            best_temperature(scores, codes, judged), 0.0, documents, method)
    return replace(learned, calibration=calibration)


def _has_rows_in_each(labels: NDArray[Any], parts: NDArray[np.int64]) -> bool:
    """Whether the rows outside each part are of all classes."""
    codes = np.unique(labels, return_inverse=True)[1]
    cells = np.zeros((int(codes.max()) + 1, int(parts.max()) + 1), dtype=np.int64)
    np.add.at(cells, (codes, parts), 1)
    return bool((cells.sum(axis=1, keepdims=True) > cells).all())


def _scores_of_parts(
    model: Any, counts: sp.csr_array, labels: NDArray[Any], parts: NDArray[np.int64],
    of_last: Floats, binary: bool, pulls: list[Pulls],
) -> LeftOutScores:
    """Scores of each part by a model of the others; those of the last part are known."""
    last = int(parts.max())
    scores = np.zeros((len(labels), of_last.shape[1]))
    scores[parts == last] = of_last
    for part in range(last):
        judge = parts == part
        scores[judge] = _scores_of_others(model, counts, labels, None, judge, binary, pulls)
    return LeftOutScores(scores, np.unique(labels, return_inverse=True)[1], last + 1)


def _scores_of_others(
    model: Any, counts: sp.csr_array, labels: NDArray[Any], weight: Floats | None,
    judge: NDArray[np.bool_], binary: bool, pulls: list[Pulls],
) -> Floats:
    """Scores of the rows to judge by a model of the others, which begins at the solution of all."""
    weight = None if weight is None else weight[~judge]
    learn, others = counts[~judge], counts[judge]
    holders = np.bincount(learn.indices, minlength=counts.shape[1])
    # As a new text's, the terms of a row that no other row holds are not known.
    others.data[holders[others.indices] == 0] = 0
    others.eliminate_zeros()
    classes, codes = np.unique(labels[~judge], return_inverse=True)
    totals = _statistics_of_columns(learn, codes, weight, holders)
    features = model.feature_map(totals, binary)
    judged = features.sparse(canonical(others))
    problems = _Problems.of(
        model, *_features_and_rows(model, learn, features), labels[~judge], weight)
    scores = np.zeros((judged.shape[0], len(classes)))
    starts = [pull.of_rows(~judge) for pull in pulls]
    for k, found in problems.solve(starts):
        scores[:, k] = judged @ found.weights + found.intercept
    return scores


@dataclass(frozen=True, eq=False)
class Pulls:
    """How much rows pull in a solution; most don't.

    Attributes
    ----------
    rows : int64 (n_pulling,)
    values : float64 (n_pulling,)
    n_rows : int
    """

    rows: NDArray[np.int64]
    values: Floats
    n_rows: int

    @classmethod
    def of(cls, duals: Floats) -> Pulls:
        rows = np.flatnonzero(duals)
        return cls(rows, duals[rows], len(duals))

    def of_rows(self, chosen: NDArray[np.bool_]) -> Floats:
        """float64 (n_chosen,)."""
        duals = np.zeros(self.n_rows)
        duals[self.rows] = self.values
        return duals[chosen]


@dataclass(frozen=True, eq=False)
class _Problems:
    """The classes against their rests, one problem each.

    Attributes
    ----------
    solver : LinearSolver
    rows : SolverRows
    codes : int64 (n_rows,)
    cost : float64 (n_rows,)
    scales : _Scales
    positives : sequence of int
        Of two classes the first scores 0, so that the margin is the second's.
    C : float
    """

    solver: LinearSolver
    rows: SolverRows
    codes: NDArray[np.int64]
    cost: Floats
    scales: _Scales
    positives: Sequence[int]
    C: float

    @classmethod
    def of(
        cls, model: Any, rows: sp.csr_array, prepared: SolverRows, labels: NDArray[Any],
        weight: Floats | None, counts_of: Callable[[int], NDArray[Any]] | None = None,
    ) -> _Problems:
        classes, codes = np.unique(labels, return_inverse=True)
        sizes = np.bincount(codes, weights=weight)
        of_class = class_weights(model.class_weight, classes, sizes)
        cost = np.full(len(labels), float(model.C)) if weight is None else model.C * weight
        if of_class is not None:
            cost = cost * of_class[codes]
        if not cost.max() <= MOST_COST:
            raise ParameterError(
                f"C times the weights of rows and classes must be at most {MOST_COST:g} (so little "
                f"regularisation is none); it is {cost.max():g}. Give smaller weights, or a "
                "smaller C")
        scales = _Scales(model, prepared, rows, codes, weight, of_class, counts_of)
        return cls(LinearSolver(model.loss, float(model.tol), int(model.max_iter)), prepared,
                   codes, cost, scales, [1] if len(classes) == 2 else range(len(classes)),
                   float(model.C))

    def solve(
        self, starts: Sequence[Floats] | None = None,
        points: Sequence[tuple[Floats, float] | None] | None = None,
    ) -> Iterator[tuple[int, LinearSolution]]:
        """The solutions, and of which class each is; from duals, or from weights."""
        def of(places: range) -> list[LinearSolution]:
            classes = [self.positives[place] for place in places]
            return self.solver.solve_classes(
                self.rows, [self.codes == k for k in classes], self.cost,
                [self.scales.of(k) for k in classes],
                None if starts is None else [starts[place] for place in places],
                None if points is None else [points[place] for place in places])

        blocks = even_blocks(len(self.positives), self.solver.classes_at_once(self.rows))
        solutions = chain.from_iterable(map_in_threads(of, blocks))
        for k, found in zip(self.positives, solutions, strict=True):
            if not (np.isfinite(found.shared).all() and np.isfinite(found.alone).all()
                    and np.isfinite(found.intercept)):
                raise ParameterError(f"C={self.C!r} is too large for these rows: the solver found "
                                     "weights that are no finite numbers. Take a smaller C")
            yield k, found


def even_blocks(size: int, most: int) -> list[range]:
    """Cut ``range(size)`` into the fewest blocks of at most ``most``, of nearly equal sizes.

    Examples
    --------
    >>> even_blocks(5, 4)
    [range(0, 2), range(2, 5)]
    """
    n_blocks = -(-size // most)
    ends = [size * block // n_blocks for block in range(n_blocks + 1)]
    return [range(a, b) for a, b in pairwise(ends)]


class _Scales:
    """|r| ** power of each class, r its log-count ratio to all others [1]_, one at a time.

    Only for the columns that the solver has; those that one row holds have the counts of that row.
    """

    def __init__(
        self, model: Any, prepared: SolverRows, rows: sp.csr_array, codes: NDArray[np.int64],
        weight: Floats | None, of_class: Floats | None,
        counts_of: Callable[[int], NDArray[Any]] | None,
    ) -> None:
        self._power = float(model.power)
        if not self._power:
            self._ones = np.ones(len(prepared.columns)), np.ones(len(prepared.column))
            return
        self._l = as_smoothing(model.l, rows.shape[1])
        self._prepared, self._codes, self._weight, self._of_class = (
            prepared, codes, weight, of_class)
        self._counts_of = counts_of or self._counter(rows)
        # What each row counts for.
        of_row = np.ones(len(codes)) if weight is None else weight
        self._of_row = of_row if of_class is None else of_row * of_class[codes]
        stored = np.diff(rows.indptr)
        every = np.repeat(self._of_row, stored)
        self._total: NDArray[Any] = np.bincount(
            rows.indices, weights=every, minlength=rows.shape[1])
        self._of_classes = np.bincount(codes, weights=self._of_row * stored)
        smoothing = np.broadcast_to(self._l, (rows.shape[1],)).sum()
        self._smoothing = float(smoothing)

    def of(self, k: int) -> tuple[Floats, Floats]:
        """float64 (n_shared,) and (n_own,)."""
        if not self._power:
            return self._ones
        columns, prepared = self._prepared.columns, self._prepared
        own: Floats = self._counts_of(k)[columns].astype(np.float64)
        if self._of_class is not None:
            own *= self._of_class[k]
        shared = self._scale(k, own, self._total[columns], self._smooth(columns))
        of_row = np.where(self._codes == k, self._of_row, 0.0)
        if not isinstance(self._l, float):
            alone = self._scale(k, of_row[prepared.row], self._of_row[prepared.row],
                                self._smooth(prepared.column))
        else:
            alone = self._scale(k, of_row, self._of_row, self._l)[prepared.row]
        return shared, alone

    def _scale(self, k: int, own: Floats, total: NDArray[Any], l: Any) -> Floats:
        # As `log_count_ratio`, in one logarithm per term. Sums of weights may leave rounding.
        ratio = (own + l) / (np.maximum(total - own, 0.0) + l)
        np.log(ratio, out=ratio)
        mass = self._of_classes[k]
        ratio += np.log((self._of_classes.sum() - mass + self._smoothing)
                        / (mass + self._smoothing))
        scale: Floats = np.abs(ratio, out=ratio)
        # A square root is several times as quick as a power.
        return np.sqrt(scale) if self._power == 0.5 else scale**self._power

    def _smooth(self, columns: NDArray[np.int64]) -> Any:
        return self._l if isinstance(self._l, float) else self._l[columns]

    def _counter(self, rows: sp.csr_array) -> Callable[[int], NDArray[Any]]:
        """Rows of a class that hold each term, counted when they are asked for."""
        def count(k: int) -> NDArray[Any]:
            own = np.flatnonzero(self._codes == k)
            of_class = rows[own]
            weights = (None if self._weight is None
                       else np.repeat(self._weight[own], np.diff(of_class.indptr)))
            return np.bincount(of_class.indices, weights=weights, minlength=rows.shape[1])

        return count


def _statistics_of_columns(
    counts: sp.csr_array, codes: NDArray[np.int64], weight: Floats | None,
    holders: NDArray[np.int64],
) -> CountStatistics:
    """Rows that hold each term, whatever their class, which is all that a feature map needs."""
    if weight is None:
        return CountStatistics(np.zeros(1, np.int64), np.array([len(codes)]), holders[None, :])
    held = np.bincount(counts.indices, weights=np.repeat(weight, np.diff(counts.indptr)),
                       minlength=counts.shape[1])
    return CountStatistics(np.zeros(1, np.int64), weight.sum(keepdims=True), held[None, :])


def _statistics(
    counts: sp.csr_array, labels: NDArray[Any], weight: Floats | None
) -> CountStatistics:
    """Rows of each class that hold each term."""
    statistics = document_statistics(counts, labels, weight)
    if len(statistics.classes) < 2:
        raise DataError("a linear model tells classes apart: the number of classes in the data has "
                        f"to be greater than one; got one class: {statistics.classes.tolist()}")
    return statistics


def _check_values(rows: sp.csr_array) -> None:
    largest = np.max(rows.data, initial=0.0)
    if not largest <= _LARGEST:
        raise DataError(f"features must be finite and at most {_LARGEST:g}; one is {largest:g}. "
                        "Scale the rows down, or take unit_length=True")


def _divide(labels: NDArray[Any], share: float) -> NDArray[np.int64] | None:
    """The part of each row: every n-th of each class, and of rare classes together.

    The last part is held out. None where its rows would be too few, or of one class. Each class
    keeps a row to be learned.
    """
    if not share:
        return None
    step = round(1.0 / share)
    _, codes = np.unique(labels, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    # The place of each row among those of its class.
    place = np.empty(len(codes), dtype=np.int64)
    place[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # A class of fewer rows than the step has no n-th row.
    rare = order[(sizes[codes[order]] < step) & (place[order] > 0)]
    place[rare] = np.arange(len(rare))
    parts: NDArray[np.int64] = place % step
    judge = parts == step - 1
    if judge.sum() < _LEAST_HELD_OUT or len(np.unique(codes[judge])) < 2:
        return None
    return parts


def _warn_of_tolerance(model: Any) -> None:
    from sklearn.exceptions import ConvergenceWarning

    warn_caller(f"the solver failed to converge to tol={model.tol:g} in max_iter={model.max_iter} "
                "passes and Newton steps: give more of them, or a larger tol", ConvergenceWarning)
