"""How `NBLinear` learns from rows: counts, weights, a temperature.

    counts -> feature map -> times |log-count ratio| ** power, class by class -> solver -> weights

With `Sharing`, rows have columns of parts after those of terms; weights are folded at the end.

References
----------
.. [1] S. Wang, C. D. Manning (2012). Baselines and bigrams: simple, good sentiment and topic
   classification. ACL, section 2.1: the log-count ratio.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.class_weight import class_weights, weights_of_sides
from textnb.bayes.counts import Counts
from textnb.bayes.decision import Decision
from textnb.bayes.features import (
    FeatureMap,
    canonical,
    count_columns,
    weigh_columns,
    without_zeros,
)
from textnb.bayes.forms import Floats, log_posterior
from textnb.bayes.label_calibration import label_sigmoids
from textnb.bayes.label_thresholds import steady_threshold
from textnb.bayes.labels import Labels
from textnb.bayes.learned import Learned, LeftOutScores, WarmStart
from textnb.bayes.linear_solver import MAX_LIGHT, LinearSolution, LinearSolver
from textnb.bayes.losses import LOSSES
from textnb.bayes.ratio import document_statistics
from textnb.bayes.ratio_scales import RatioScales
from textnb.bayes.sharing import Shared, Sharing
from textnb.bayes.solver_rows import SolverRows
from textnb.bayes.temperature import best_sigmoids, best_temperature
from textnb.errors import DataError, ParameterError
from textnb.runtime.caller import warn_caller
from textnb.runtime.memory import check_room
from textnb.runtime.progress import Size, line
from textnb.runtime.threads import map_in_threads

# The largest C times the weight of a row. Beyond it, rounding is larger than what the
# regularisation says, and weights would be noise.
MAX_COST = 1e10
# With larger values, squares and their sums would overflow.
_MAX_VALUE = 1e30
# The minimum number of held-out rows to fit a temperature on.
_MIN_HELD_OUT = 20
# Parts of the rows, each of which is scored by what was learned from the others.
_FOLDS = 3
# Shares of the weight of vectors that are tried.
_SHARES = (0.0, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """The part of learning that does not depend on ``C``, ``l``, ``power`` and ``class_weight``.

    Models that differ only in these may learn from the same prepared rows, with the same bits.

    Attributes
    ----------
    statistics : Counts
    rows : SolverRows
        The rows after the feature map.
    """

    statistics: Counts
    rows: SolverRows

    @classmethod
    def of(
        cls, model: Any, counts: sp.csr_array, labels: Labels,
        weight: Floats | None = None, binary: bool = False, sharing: Sharing | None = None,
    ) -> PreparedRows:
        line().begin("preparing rows")
        statistics = _statistics(counts, labels, weight)
        check_room(len(statistics.classes), statistics.n_features, 16, "counts and weights",
                   log=True)
        features = model.feature_map(statistics, binary)
        parts = None if sharing is None else sharing.of_rows(counts, features, weight=weight)
        return cls(statistics, _solver_rows(model, counts, features, parts=parts))

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes."""
        return self.statistics.nbytes + self.rows.nbytes

    def learn(self, model: Any, labels: Labels) -> Learned:
        """The weights, for a model with the same feature map and loss."""
        return _fit(model, self, labels, None, False)[0]


def _solver_rows(
    model: Any, counts: sp.csr_array, features: FeatureMap,
    chosen: NDArray[np.bool_] | None = None, holders: NDArray[np.int64] | None = None,
    parts: Shared | None = None,
) -> SolverRows:
    rows = SolverRows.of(counts, model.loss, features, chosen, holders, parts)
    largest = max(np.max(values, initial=0.0) for values in (rows.shared.data, rows.value))
    if not largest <= _MAX_VALUE:
        raise DataError(f"features must be finite and at most {_MAX_VALUE:g}; one is {largest:g}. "
                        "Scale the rows down, or take unit_length=True")
    return rows


def _fit(
    model: Any, prepared: PreparedRows, labels: Labels, weight: Floats | None, binary: bool,
    start: WarmStart | None = None, of_more_rows: bool = False,
) -> tuple[Learned, dict[int, DualCoefficients]]:
    """The weights and counts that are learned, and the dual coefficients of each class.

    ``of_more_rows`` is whether the statistics count rows that are not among those to learn.
    """
    statistics = prepared.statistics
    classes = statistics.classes
    problems = _Problems.of(
        model, prepared.rows, labels, weight, statistics if of_more_rows else None)
    weights, intercept = np.zeros((statistics.n_features, len(classes))), problems.intercept
    duals, n_iter = dict[int, DualCoefficients](), 0
    begin = None if start is None else [
        start.of(classes.tolist()[k], problems.rows.columns) for k in problems.positives]
    for k, solution in problems.solve("fitting", points=begin):
        solution.put(weights[:, k])
        intercept[k] = solution.intercept
        duals[k] = DualCoefficients.of(solution.duals)
        n_iter = max(n_iter, solution.n_iter)
    form = model.form_of_weights(statistics, weights, intercept, binary=binary)
    return Learned(statistics, form, n_iter), duals


def refit_sample(
    model: Any, start: WarmStart, counts: sp.csr_array, labels: Labels,
    statistics: Counts, binary: bool = False,
) -> Learned:
    """Learn the weights again from a sample of the rows that were counted.

    Ratios and the feature map are those of all rows, so that a sample that holds each row with a
    pull has their optimum.

    Parameters
    ----------
    model : NBLinear
    start : WarmStart
    counts : csr_array (n_rows, n_terms)
    labels : Labels
        Of all classes.
    statistics : Counts
        Of all rows.
    binary : bool
    """
    counts = without_zeros(canonical(counts))
    prepared = PreparedRows(statistics, _solver_rows(
        model, counts, model.feature_map(statistics, binary)))
    return _fit(model, prepared, labels, None, binary, start, of_more_rows=True)[0]


def learn_and_calibrate(
    model: Any, counts: sp.csr_array, labels: Labels, weight: Floats | None = None,
    binary: bool = False, start: WarmStart | None = None, left_out: bool = False,
    sharing: Sharing | None = None,
) -> Learned:
    """Learn the statistic of rows, the weights, and a temperature from held-out rows.

    There is none if ``held_out`` is 0, or if fewer than 20 rows, or rows of only one class, would
    be held out. With ``left_out``, all rows get out-of-fold scores, if no class is rare.
    For lists of labels, each label's threshold and sigmoid are chosen on held-out rows instead,
    which ``left_out`` keeps.

    Parameters
    ----------
    model : NBLinear
        Already checked. Not imported here, as it imports this module.
    counts : csr_array (n_rows, n_terms)
    labels : Labels
    weight : float64 (n_rows,), optional
        Weights of the rows, in the counts and in the loss.
    binary : bool
        Whether a term counts once per row, whatever the model says.
    start : WarmStart, optional
        Weights from which the solver begins.
    left_out : bool
    sharing : Sharing, optional
        Parts that terms share.

    Raises
    ------
    DataError
        If there is one class, or a value is too large.
    """
    counts = without_zeros(canonical(counts))
    prepared = PreparedRows.of(model, counts, labels, weight, binary, sharing)
    learned, duals = _fit(model, prepared, labels, weight, binary, start)
    del prepared
    if labels.link == "sigmoid":
        return _with_thresholds_and_sigmoids(
            model, learned, counts, labels, weight, binary, duals, sharing, left_out)
    parts = _divide(labels.codes, model.held_out)
    if parts is None:
        return learned
    judge = parts == parts.max()
    if weight is not None and not weight[~judge].any():
        return learned
    scores = _scores_of_others(model, counts, labels, weight, judge, binary, duals, sharing)
    if left_out and weight is None and _has_rows_in_each(labels.codes, parts):
        learned = replace(learned, left_out=_scores_of_parts(
            model, counts, labels, parts, scores, binary, duals, sharing))
    codes = labels.codes[judge]
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


def choose_vector_weight(
    model: Any, counts: sp.csr_array, labels: Labels, weight: Floats | None, binary: bool,
    sharing: Sharing,
) -> float:
    """The smallest share of the weight of vectors that is as good as the best.

    Two thirds of the rows are scored by what was learned from the others, with each weight. A
    smaller weight is as good if it loses no more than a standard error in log loss, at the
    temperature that is best for it. So must what it loses in accuracy, beside no vectors.
    With lists of labels, the weight stays.
    """
    if labels.link == "sigmoid":
        return sharing.vector_weight
    counts = without_zeros(canonical(counts))
    parts = _divide(labels.codes, 1 / _FOLDS)
    if parts is None or (weight is not None and not all(
            weight[parts == part].any() and weight[parts != part].any()
            for part in range(_FOLDS - 1))):
        return sharing.vector_weight
    # The last part is only learned from: two say enough, in less time.
    judged = parts < _FOLDS - 1
    codes, weight_of = labels.codes[judged], None if weight is None else weight[judged]
    losses, wrong = [], []
    for share in _SHARES:
        tried = replace(sharing, vector_weight=share * sharing.vector_weight)
        scores = np.zeros((len(labels), len(labels.classes)))
        for part in range(_FOLDS - 1):
            scores[parts == part] = _scores_of_others(
                model, counts, labels, weight, parts == part, binary, None, tried)
        scores = scores[judged]
        scores /= best_temperature(
            scores, codes, np.ones(len(codes)) if weight_of is None else weight_of)
        wrong.append((scores.argmax(axis=1) != codes).astype(np.float64))
        losses.append(-log_posterior(scores)[np.arange(len(codes)), codes])
    good = _are_near(np.array(wrong), 0, weight_of)
    mean = np.where(good, np.average(losses, axis=1, weights=weight_of), np.inf)
    good &= _are_near(np.array(losses), int(np.argmin(mean)), weight_of)
    return _SHARES[int(np.argmax(good))] * sharing.vector_weight


def _are_near(losses: Floats, place: int, weight: Floats | None) -> NDArray[np.bool_]:
    """Whether losses of rows exceed those of one of them by no more than a standard error."""
    more = losses - losses[place]
    near: NDArray[np.bool_] = np.average(more, axis=1, weights=weight) <= (
        more.std(axis=1) / more.shape[1] ** 0.5)
    return near


def _has_rows_in_each(codes: NDArray[np.int64], parts: NDArray[np.int64]) -> bool:
    """Whether the rows outside each part are of all classes."""
    cells = np.zeros((int(codes.max()) + 1, int(parts.max()) + 1), dtype=np.int64)
    np.add.at(cells, (codes, parts), 1)
    return bool((cells.sum(axis=1, keepdims=True) > cells).all())


def _scores_of_parts(
    model: Any, counts: sp.csr_array, labels: Labels, parts: NDArray[np.int64],
    of_last: Floats, binary: bool, duals: dict[int, DualCoefficients], sharing: Sharing | None,
) -> LeftOutScores:
    """Scores of each part by a model of the others; those of the last part are known."""
    last = int(parts.max())
    scores = np.zeros((len(labels), of_last.shape[1]))
    scores[parts == last] = of_last
    for part in range(last):
        judge = parts == part
        scores[judge] = _scores_of_others(
            model, counts, labels, None, judge, binary, duals, sharing)
    return LeftOutScores(scores, labels.codes, last + 1)


def _with_thresholds_and_sigmoids(
    model: Any, learned: Learned, counts: sp.csr_array, labels: Labels,
    weight: Floats | None, binary: bool, duals: dict[int, DualCoefficients],
    sharing: Sharing | None, left_out: bool,
) -> Learned:
    """The thresholds with which each label has the best F1 on held-out rows, and its probabilities.

    Each third of the rows is scored by what was learned from the others. Without ``held_out``, or
    with too few rows, there are none.
    """
    if not model.held_out or len(labels) < _FOLDS * _MIN_HELD_OUT:
        return learned
    scores = np.empty((len(labels), len(labels.classes)))
    for fold in range(_FOLDS):
        judge = np.arange(len(labels)) % _FOLDS == fold
        if weight is not None and not weight[~judge].any():
            return learned
        scores[judge] = _scores_of_others(
            model, counts, labels, weight, judge, binary, duals, sharing)
    thresholds = {label: steady_threshold(scores[:, k], labels.has(k), weight)
                  for k, label in enumerate(labels.classes.tolist())}
    has = np.stack([labels.has(k) for k in range(scores.shape[1])], axis=1)
    sigmoids = label_sigmoids(scores, has, weight)
    return replace(
        learned, left_out=LeftOutScores(scores, has, _FOLDS) if left_out else None,
        decision=Decision(thresholds, evidence={
            "by": "f1", "documents": len(labels), "scored": f"{_FOLDS} folds"}),
        calibration=Calibration(
            documents=len(labels), method=f"{_FOLDS} folds of fit", link="labels",
            sigmoids=tuple(map(tuple, sigmoids.tolist()))))


def _scores_of_others(
    model: Any, counts: sp.csr_array, labels: Labels, weight: Floats | None,
    judge: NDArray[np.bool_], binary: bool, duals: dict[int, DualCoefficients] | None,
    sharing: Sharing | None,
) -> Floats:
    """Scores of the rows to judge by a model of the others.

    It begins at the solution of all, if the duals of that are known.
    """
    line().begin("preparing to calibrate")
    learn, others = ~judge, counts[judge]
    weight = None if weight is None else weight[learn]
    holders = count_columns(counts, learn)
    # As a new text's, the terms of a row that no other row holds are not known, without a vector.
    known = holders > 0
    if sharing is not None and sharing.vectors is not None and sharing.has_vectors:
        known[sharing.vectors.columns] = True
    others.data[~known[others.indices]] = 0
    others.eliminate_zeros()
    own = labels.of_rows(learn)
    features = model.feature_map(
        _statistics_of_columns(counts, learn, len(own), weight, holders), binary)
    parts = None if sharing is None else sharing.of_rows(counts, features, learn, weight)
    judged = features.sparse(canonical(others))
    del others
    problems = _Problems.of(model, _solver_rows(
        model, counts, features, learn, holders, parts), own, weight)
    scores = np.tile(problems.intercept, (judged.shape[0], 1))
    # Where rows cost much, the logistic loss is so steep beside the optimum of all rows that
    # Newton's method converges sooner from zero, and may not converge at all from there.
    is_steep = model.loss == "log" and problems.cost.max() > MAX_LIGHT
    starts = None if duals is None or is_steep else [
        duals[k].of_rows(learn) for k in problems.positives]
    for k, solution in problems.solve("calibrating", starts):
        scores[:, k] = judged @ solution.weights + solution.intercept
    return scores


@dataclass(frozen=True, eq=False)
class DualCoefficients:
    """How much rows pull in a solution: most have 0.

    Attributes
    ----------
    rows : int64 (n_above_0,)
    values : float64 (n_above_0,)
    n_rows : int
    """

    rows: NDArray[np.int64]
    values: Floats
    n_rows: int

    @classmethod
    def of(cls, duals: Floats) -> DualCoefficients:
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
    labels : Labels
    cost : float64 (n_rows,)
    of_sides : float64 (n_labels, 2) or None
        The weights of the rows without and with each label.
    scales : RatioScales
    positives : sequence of int
        The classes that have a problem.
    intercept : float64 (n_classes,)
        Of classes that have none. Of two classes the first scores 0, so that the margin is the
        second's; labels of no row, or of all, have the optimum of the intercept alone, so that
        scores of held-out rows are comparable with those of a model that has such a label.
    C : float
    """

    solver: LinearSolver
    rows: SolverRows
    labels: Labels
    cost: Floats
    of_sides: Floats | None
    scales: RatioScales
    positives: Sequence[int]
    intercept: Floats
    C: float

    @classmethod
    def of(
        cls, model: Any, rows: SolverRows, labels: Labels, weight: Floats | None,
        statistics: Counts | None = None,
    ) -> _Problems:
        cost = np.full(len(labels), float(model.C)) if weight is None else model.C * weight
        solver = LinearSolver(model.loss, float(model.tol), int(model.max_iter))
        n_classes, sizes = len(labels.classes), labels.sizes
        of_class = of_sides = None
        positives: Sequence[int]
        if labels.link == "sigmoid":
            of_sides = weights_of_sides(model.class_weight, labels, weight)
            positives = np.flatnonzero((sizes > 0) & (sizes < len(labels))).tolist()
            side = (sizes == len(labels)).astype(np.int64)
            paid = cost.sum() * (np.ones(n_classes) if of_sides is None else
                                 of_sides[np.arange(n_classes), side])
            intercept = (2.0 * side - 1.0) * LOSSES[model.loss].margin_of_one_side(paid)
        else:
            of_class = class_weights(model.class_weight, labels.classes,
                                     sizes if weight is None else labels.sums(weight))
            positives = [1] if n_classes == 2 else range(n_classes)
            intercept = np.zeros(n_classes)
        if of_class is not None:
            cost = cost * of_class[labels.codes]
        _check_cost(cost.max() * (1.0 if of_sides is None else of_sides.max()))
        scales = RatioScales(model, rows, labels, weight, of_class, of_sides, statistics)
        return cls(solver, rows, labels, cost, of_sides, scales, positives, intercept,
                   float(model.C))

    def _cost_of(self, k: int) -> Floats:
        if self.of_sides is None:
            return self.cost
        rest, own = self.of_sides[k]
        cost: Floats = self.cost * np.where(self.labels.has(k), own, rest)
        return cost

    def solve(
        self, phase: str, starts: Sequence[Floats] | None = None,
        points: Sequence[tuple[Floats, float] | None] | None = None,
    ) -> Iterator[tuple[int, LinearSolution]]:
        """Each solution with its class, started from duals or from weights.

        ``phase`` is what a line of progress calls it.
        A ConvergenceWarning is given if one is not within the tolerance.
        """
        def of(places: range) -> list[LinearSolution]:
            classes = [self.positives[place] for place in places]
            return self.solver.solve(
                self.rows, [self.labels.has(k) for k in classes],
                [self._cost_of(k) for k in classes], [self.scales.compute(k) for k in classes],
                None if starts is None else [starts[place] for place in places],
                None if points is None else [points[place] for place in places])

        if not self.positives:
            return
        blocks = even_blocks(len(self.positives), self.solver.classes_at_once(self.rows))
        shown = line()
        # The passes of one block are its progress; their number is not known before.
        shown.begin(phase, Size(len(self.positives)) if len(blocks) > 1 else None,
                    "label" if self.labels.link == "sigmoid" else "class")
        solutions, unsolved = chain.from_iterable(map_in_threads(of, blocks)), 0
        for k, solution in zip(self.positives, solutions, strict=True):
            if not (np.isfinite(solution.shared).all() and np.isfinite(solution.duals).all()
                    and np.isfinite(solution.intercept)):
                raise ParameterError(f"C={self.C!r} is too large for these rows: the solver found "
                                     "weights that are not finite. Take a smaller C")
            unsolved += not solution.converged
            if len(blocks) > 1:
                shown.advance(1)
            yield k, solution
        if unsolved:
            self._warn_of_tolerance()

    def _warn_of_tolerance(self) -> None:
        from sklearn.exceptions import ConvergenceWarning

        warn_caller(
            f"the solver failed to converge to tol={self.solver.tol:g} in max_iter="
            f"{self.solver.max_iter} passes and Newton steps: give more of them, a larger tol, or "
            "a smaller C or smaller weights of rows and classes", ConvergenceWarning)


def _check_cost(largest: float) -> None:
    if not largest <= MAX_COST:
        raise ParameterError(
            f"C times the weights of rows and classes must be at most {MAX_COST:g} (so little "
            f"regularisation is none); it is {largest:g}. Give smaller weights, or a smaller C")


def even_blocks(size: int, max_size: int) -> list[range]:
    """Cut ``range(size)`` into the fewest blocks of at most ``max_size``, of nearly equal sizes.

    Examples
    --------
    >>> even_blocks(5, 4)
    [range(0, 2), range(2, 5)]
    """
    n_blocks = -(-size // max_size)
    ends = [size * block // n_blocks for block in range(n_blocks + 1)]
    return [range(a, b) for a, b in pairwise(ends)]


def _statistics_of_columns(
    counts: sp.csr_array, chosen: NDArray[np.bool_], n_rows: int, weight: Floats | None,
    holders: NDArray[np.int64],
) -> Counts:
    """Chosen rows that hold each term, whatever their class: all that a feature map needs."""
    if weight is None:
        return Counts.from_table(np.zeros(1, np.int64), np.array([n_rows]), holders[None, :])
    held = weigh_columns(counts[chosen], weight)
    return Counts.from_table(np.zeros(1, np.int64), weight.sum(keepdims=True), held[None, :])


def _statistics(
    counts: sp.csr_array, labels: Labels, weight: Floats | None
) -> Counts:
    """Rows of each class that hold each term."""
    statistics = document_statistics(counts, labels, weight)
    if len(statistics.classes) < 2 and labels.link == "softmax":
        raise DataError("a linear model tells classes apart: the number of classes in the data has "
                        f"to be greater than one; got one class: {statistics.classes.tolist()}")
    return statistics


def _divide(codes: NDArray[np.int64], share: float) -> NDArray[np.int64] | None:
    """The part of each row: every n-th of each class, and of rare classes together.

    The last part is held out. None if its rows would be too few, or of one class. Each class
    keeps a row to be learned.
    """
    if not share:
        return None
    step = round(1.0 / share)
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
    if judge.sum() < _MIN_HELD_OUT or len(np.unique(codes[judge])) < 2:
        return None
    return parts
