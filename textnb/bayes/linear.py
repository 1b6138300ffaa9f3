"""How `NBLinear` learns from rows: counts, weights, a temperature.

    counts -> feature map -> times |log-count ratio| ** power, class by class -> solver -> weights

With `Sharing`, rows have extra columns, for subwords and vectors, after the columns of terms. When
the solver has ended, their weights are folded into the weights of the terms.

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
    count_by_column,
    weigh_by_column,
    without_zeros,
)
from textnb.bayes.forms import Floats, log_posterior
from textnb.bayes.label_calibration import label_sigmoids
from textnb.bayes.label_thresholds import steady_threshold
from textnb.bayes.labels import Labels
from textnb.bayes.learned import Learned, LeftOutScores, WarmStart
from textnb.bayes.linear_solver import MAX_LIGHT_COST, LinearSolution, LinearSolver
from textnb.bayes.losses import LOSSES
from textnb.bayes.ratio import document_statistics
from textnb.bayes.ratio_scales import RatioScales
from textnb.bayes.sharing import ExtraColumns, Sharing
from textnb.bayes.solver_rows import SolverRows
from textnb.bayes.temperature import best_sigmoids, best_temperature
from textnb.errors import DataError, ParameterError
from textnb.runtime.caller import warn_caller
from textnb.runtime.memory import check_fits_in_memory
from textnb.runtime.progress import Size, current_progress
from textnb.runtime.threads import map_in_threads

# The maximum of C, the inverse of the regularisation's strength, times the weight of a row. Beyond
# it, rounding errors are larger than the regularisation, and weights would be noise.
MAX_COST = 1e10
# With larger values, squares and their sums would overflow.
_MAX_VALUE = 1e30
# The minimum number of held-out rows to fit a temperature on.
_MIN_HELD_OUT = 20
# The number of folds, each of which is scored by a model of the other folds.
_FOLDS = 3
# The shares of the suggested weight of vectors that `choose_vector_weight` tries.
_VECTOR_SHARES = (0.0, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """Rows that are ready to learn from: they do not depend on C, l, power and class_weight.

    Models that differ only in these parameters may learn from the same prepared rows.

    Attributes
    ----------
    statistics : Counts
        The number of rows of each class that hold each term.
    rows : SolverRows
        The rows after the feature map; ``shared`` are the columns that two or more rows hold.
    """

    statistics: Counts
    rows: SolverRows

    @classmethod
    def of(
        cls, model: Any, counts: sp.csr_array, labels: Labels,
        weight: Floats | None = None, binary: bool = False, sharing: Sharing | None = None,
    ) -> PreparedRows:
        """Count and prepare rows; the parameters are those of `learn_and_calibrate`."""
        current_progress().begin("preparing rows")
        statistics = document_statistics(counts, labels, weight)
        if len(statistics.classes) < 2 and not labels.is_multilabel:
            raise DataError("a linear model tells classes apart: the number of classes in the data "
                            "has to be greater than one; got one class: "
                            f"{statistics.classes.tolist()}")
        check_fits_in_memory(len(statistics.classes), statistics.n_features, bytes_per_count=16,
                             name="counts and weights", log_size=True)
        features = model.feature_map(statistics, binary)
        extra = None if sharing is None else sharing.extra_columns(counts, features, weight=weight)
        return cls(statistics, _solver_rows(model, counts, features, extra=extra))

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes."""
        return self.statistics.nbytes + self.rows.nbytes

    def learn(self, model: Any, labels: Labels) -> Learned:
        """The weights, for a model with the same feature map and loss."""
        return _fit(model, self, labels, weight=None, binary=False)[0]


def _solver_rows(
    model: Any, counts: sp.csr_array, features: FeatureMap,
    chosen: NDArray[np.bool_] | None = None, rows_with_term: NDArray[np.int64] | None = None,
    extra: ExtraColumns | None = None,
) -> SolverRows:
    rows = SolverRows.of(counts, model.loss, features, chosen, rows_with_term, extra)
    largest = max(np.max(values, initial=0.0) for values in (rows.shared.data, rows.value))
    if not largest <= _MAX_VALUE:
        raise DataError(f"features must be finite and at most {_MAX_VALUE:g}; one is {largest:g}. "
                        "Scale the rows down, or take unit_length=True")
    return rows


def _fit(
    model: Any, prepared: PreparedRows, labels: Labels, weight: Floats | None, binary: bool,
    start: WarmStart | None = None, counts_more_rows: bool = False,
) -> tuple[Learned, dict[int, sp.csr_array]]:
    """What is learned, and the duals of each class, from which a solver may begin again.

    The duals are numbers >= 0, one for each row, and most are 0: see `LinearSolution`.
    ``counts_more_rows`` is whether the statistics also count rows that are not in ``prepared``.
    """
    statistics = prepared.statistics
    classes = statistics.classes
    problems = _Problems.of(
        model, prepared.rows, labels, weight, statistics if counts_more_rows else None)
    weights, intercept = np.zeros((statistics.n_features, len(classes))), problems.intercept
    duals, n_iter = dict[int, sp.csr_array](), 0
    start_weights = None if start is None else [
        start.weights_for(classes.tolist()[k], problems.rows.columns) for k in problems.positives]
    for k, solution in problems.solve("fitting", weights=start_weights):
        solution.write_weights(weights[:, k])
        intercept[k] = solution.intercept
        duals[k] = sp.csr_array(solution.duals[None, :])
        n_iter = max(n_iter, solution.n_iter)
    form = model.form_of_weights(statistics, weights, intercept, binary=binary)
    return Learned(statistics, form, n_iter), duals


def refit_sample(
    model: Any, start: WarmStart, counts: sp.csr_array, labels: Labels,
    statistics: Counts, binary: bool,
) -> Learned:
    """Learn the weights again from a sample of the rows that were counted.

    Ratios and the feature map come from the counts of all rows. So the optimum is the same as for
    all rows, if the sample has all rows whose dual is above 0.

    Parameters
    ----------
    model : NBLinear
    start : WarmStart
    counts : csr_array (n_rows, n_terms)
    labels : Labels
        Labels of these rows, among all classes.
    statistics : Counts
        Counts of all rows.
    binary : bool
        As in `learn_and_calibrate`.
    """
    counts = without_zeros(canonical(counts))
    prepared = PreparedRows(statistics, _solver_rows(
        model, counts, model.feature_map(statistics, binary)))
    return _fit(model, prepared, labels, weight=None, binary=binary, start=start,
                counts_more_rows=True)[0]


def learn_and_calibrate(
    model: Any, counts: sp.csr_array, labels: Labels, weight: Floats | None = None,
    binary: bool = False, start: WarmStart | None = None, left_out: bool = False,
    sharing: Sharing | None = None,
) -> Learned:
    """Learn the statistic of rows, the weights, and a temperature from held-out rows.

    There is no temperature if ``held_out`` is 0, or if fewer than 20 rows, or rows of only one
    class, would be held out. For lists of labels, each label's threshold and sigmoid are chosen on
    held-out rows instead.

    Parameters
    ----------
    model : NBLinear
        With checked parameters. Not imported here, as it imports this module.
    counts : csr_array (n_rows, n_terms)
    labels : Labels
    weight : float64 (n_rows,), optional
        Weights of the rows, in the counts and in the loss.
    binary : bool
        Whether a term counts once per row, even if the model counts occurrences.
    start : WarmStart, optional
        Weights from which the solver begins.
    left_out : bool
        Whether to keep out-of-fold scores of all rows. If each row has one label, they are kept
        only if the rows outside each fold have all classes.
    sharing : Sharing, optional
        What terms share: subwords and vectors, for which rows have extra columns.

    Raises
    ------
    DataError
        If there is one class, or a value is too large.
    """
    counts = without_zeros(canonical(counts))
    prepared = PreparedRows.of(model, counts, labels, weight, binary, sharing)
    learned, duals = _fit(model, prepared, labels, weight, binary, start)
    del prepared
    scorer = _OutOfFoldScorer(model, counts, labels, weight, binary, sharing, duals)
    if labels.is_multilabel:
        return _with_thresholds_and_sigmoids(learned, scorer, left_out)
    folds = _assign_folds(labels.codes, model.held_out)
    if folds is None:
        return learned
    last = int(folds.max())
    held_out = folds == last
    if weight is not None and not weight[~held_out].any():
        return learned
    scores = scorer.score(held_out)
    if left_out and weight is None and _no_fold_has_a_whole_class(folds, labels.codes):
        all_scores = scorer.score_folds(folds, last)
        all_scores[held_out] = scores
        learned = replace(learned, left_out=LeftOutScores(all_scores, labels.codes, last + 1))
    codes = labels.codes[held_out]
    weight = np.ones(len(codes)) if weight is None else weight[held_out]
    calibration = Calibration(documents=len(codes), method="rows held out by fit")
    if scores.shape[1] > 2:
        temperature, shift = best_sigmoids(scores, codes, weight)
        calibration = replace(calibration, temperature=temperature, link="sigmoid", shift=shift)
    else:
        calibration = replace(calibration, temperature=best_temperature(scores, codes, weight))
    return replace(learned, calibration=calibration)


def choose_vector_weight(
    model: Any, counts: sp.csr_array, labels: Labels, weight: Floats | None, binary: bool,
    sharing: Sharing,
) -> float:
    """Choose the smallest weight of vectors that is as good as the best.

    The choice is among three shares of the weight of ``sharing``. For each of them, two thirds of
    the rows are scored by models of the other rows. A weight is as good as the best if its log
    loss, at its best temperature, is higher by at most a standard error, and its error rate is
    higher than without vectors by at most a standard error. With lists of labels, or too few rows,
    the weight of ``sharing`` is returned.
    """
    if labels.is_multilabel:
        return sharing.vector_weight
    counts = without_zeros(canonical(counts))
    folds = _assign_folds(labels.codes, 1 / _FOLDS)
    if folds is None or (weight is not None and not all(
            weight[folds == fold].any() and weight[folds != fold].any()
            for fold in range(_FOLDS - 1))):
        return sharing.vector_weight
    # The last fold is not scored: two folds are enough to compare, and take less time.
    is_scored = folds < _FOLDS - 1
    codes, scored_weight = labels.codes[is_scored], None if weight is None else weight[is_scored]
    losses, errors = [], []
    for share in _VECTOR_SHARES:
        scorer = _OutOfFoldScorer(
            model, counts, labels, weight, binary,
            replace(sharing, vector_weight=share * sharing.vector_weight))
        scores = scorer.score_folds(folds, _FOLDS - 1)[is_scored]
        scores /= best_temperature(scores, codes, scored_weight)
        errors.append((scores.argmax(axis=1) != codes).astype(np.float64))
        losses.append(-log_posterior(scores)[np.arange(len(codes)), codes])
    # Share 0 is without vectors.
    is_good = _are_as_low(np.array(errors), k=0, weight=scored_weight)
    means = np.where(is_good, np.average(losses, axis=1, weights=scored_weight), np.inf)
    is_good &= _are_as_low(np.array(losses), k=int(np.argmin(means)), weight=scored_weight)
    return _VECTOR_SHARES[int(np.argmax(is_good))] * sharing.vector_weight


def _are_as_low(losses: Floats, k: int, weight: Floats | None) -> NDArray[np.bool_]:
    """Which models have a mean loss that exceeds that of model k by at most a standard error.

    ``losses`` is float64 (n_models, n_rows).
    """
    excess = losses - losses[k]
    return np.asarray(np.average(excess, axis=1, weights=weight) <= (
        excess.std(axis=1) / excess.shape[1] ** 0.5))


def _no_fold_has_a_whole_class(folds: NDArray[np.int64], codes: NDArray[np.int64]) -> bool:
    """Whether each class has rows outside of each fold."""
    n_rows = np.zeros((int(codes.max()) + 1, int(folds.max()) + 1), dtype=np.int64)
    np.add.at(n_rows, (codes, folds), 1)
    return bool((n_rows.sum(axis=1, keepdims=True) > n_rows).all())


def _with_thresholds_and_sigmoids(
    learned: Learned, scorer: _OutOfFoldScorer, left_out: bool
) -> Learned:
    """Choose each label's threshold, by F1, and its sigmoid, on held-out rows.

    Each third of the rows is scored by a model of the other rows. Without ``held_out``, or with too
    few rows, there are no thresholds and sigmoids.
    """
    labels, weight = scorer.labels, scorer.weight
    if not scorer.model.held_out or len(labels) < _FOLDS * _MIN_HELD_OUT:
        return learned
    folds = np.arange(len(labels)) % _FOLDS
    if weight is not None and not all(weight[folds != fold].any() for fold in range(_FOLDS)):
        return learned
    scores, actual = scorer.score_folds(folds, _FOLDS), labels.mask
    thresholds = {label: steady_threshold(scores[:, k], actual[:, k], weight)
                  for k, label in enumerate(labels.classes.tolist())}
    sigmoids = label_sigmoids(scores, actual, weight)
    return replace(
        learned, left_out=LeftOutScores(scores, actual, _FOLDS) if left_out else None,
        decision=Decision(thresholds, evidence={
            "by": "f1", "documents": len(labels), "scored": f"{_FOLDS} folds"}),
        calibration=Calibration(
            documents=len(labels), method=f"{_FOLDS} folds of fit", link="labels",
            sigmoids=tuple(map(tuple, sigmoids.tolist()))))


@dataclass(frozen=True, eq=False)
class _OutOfFoldScorer:
    """Scores some of the rows by a model that learns from all others.

    Attributes
    ----------
    model, counts, labels, weight, binary, sharing
        As in `learn_and_calibrate`.
    duals : dict of int to csr_array (1, n_rows), or None
        For each class, the duals of the solution for all rows, from which the solver begins.
    """

    model: Any
    counts: sp.csr_array
    labels: Labels
    weight: Floats | None
    binary: bool
    sharing: Sharing | None
    duals: dict[int, sp.csr_array] | None = None

    def score_folds(self, folds: NDArray[np.int64], n_folds: int) -> Floats:
        """Scores of the rows of the first ``n_folds`` folds; rows of the other folds have 0."""
        scores = np.zeros((len(self.labels), len(self.labels.classes)))
        for fold in range(n_folds):
            scores[folds == fold] = self.score(folds == fold)
        return scores

    def score(self, held_out: NDArray[np.bool_]) -> Floats:
        """Scores of the rows that are held out: float64 (n_held_out, n_classes)."""
        current_progress().begin("preparing to calibrate")
        model, counts, sharing = self.model, self.counts, self.sharing
        is_learned, unseen = ~held_out, counts[held_out]
        weight = None if self.weight is None else self.weight[is_learned]
        rows_with_term = count_by_column(counts, is_learned)
        # Terms that no other row has are unknown, as in new texts, unless they have vectors.
        is_known = rows_with_term > 0
        if sharing is not None and sharing.vectors is not None and sharing.has_vectors:
            is_known[sharing.vectors.columns] = True
        unseen.data[~is_known[unseen.indices]] = 0
        unseen.eliminate_zeros()
        labels = self.labels.of_rows(is_learned)
        features = model.feature_map(
            _statistics_of_columns(counts, is_learned, len(labels), weight, rows_with_term),
            self.binary)
        extra = None if sharing is None else sharing.extra_columns(
            counts, features, is_learned, weight)
        unseen = features.sparse(canonical(unseen))
        problems = _Problems.of(model, _solver_rows(
            model, counts, features, is_learned, rows_with_term, extra), labels, weight)
        scores = np.tile(problems.intercept, (unseen.shape[0], 1))
        # If rows cost much, the logistic loss is so steep near the solution for all rows that
        # Newton's method converges more slowly from there than from zero, or not at all.
        is_steep = model.loss == "log" and problems.cost.max() > MAX_LIGHT_COST
        duals = None if self.duals is None or is_steep else [
            self.duals[k].toarray()[0][is_learned] for k in problems.positives]
        for k, solution in problems.solve("calibrating", duals):
            scores[:, k] = unseen @ solution.weights + solution.intercept
        return scores


@dataclass(frozen=True, eq=False)
class _Problems:
    """One problem for each class or label: to separate its rows from all others.

    Attributes
    ----------
    solver : LinearSolver
    rows : SolverRows
    labels : Labels
    cost : float64 (n_rows,)
        C times the weight of each row.
    side_weights : float64 (n_labels, 2) or None
        The class weights of the rows without and with each label.
    scales : RatioScales
    positives : sequence of int
        The classes that have a problem, of which they are the positive class.
    intercept : float64 (n_classes,)
        The intercepts of classes without a problem; for the others, solutions have them. The first
        of two classes scores 0, so that the margin is the score of the second. A label that no row
        has, or every row, has the best intercept of a model without weights, so that its scores are
        comparable in all folds.
    C : float
    """

    solver: LinearSolver
    rows: SolverRows
    labels: Labels
    cost: Floats
    side_weights: Floats | None
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
        class_weight = side_weights = None
        positives: Sequence[int]
        if labels.is_multilabel:
            side_weights = weights_of_sides(model.class_weight, labels, weight)
            positives = np.flatnonzero((sizes > 0) & (sizes < len(labels))).tolist()
            # The side on which all rows are, for a label without a problem: 1 if they have it.
            side = (sizes == len(labels)).astype(np.int64)
            total_cost = cost.sum() * (np.ones(n_classes) if side_weights is None else
                                       side_weights[np.arange(n_classes), side])
            intercept = (2.0 * side - 1.0) * LOSSES[model.loss].intercept_if_all_rows_agree(
                total_cost)
        else:
            class_weight = class_weights(model.class_weight, labels.classes,
                                         sizes if weight is None else labels.sums(weight))
            positives = [1] if n_classes == 2 else range(n_classes)
            intercept = np.zeros(n_classes)
        if class_weight is not None:
            cost = cost * class_weight[labels.codes]
        largest = cost.max() * (1.0 if side_weights is None else side_weights.max())
        if not largest <= MAX_COST:
            raise ParameterError(
                f"C times the weights of rows and classes must be at most {MAX_COST:g} (so little "
                f"regularisation is none); it is {largest:g}. Give smaller weights, or a smaller C")
        scales = RatioScales(model, rows, labels, weight, class_weight, side_weights, statistics)
        return cls(solver, rows, labels, cost, side_weights, scales, positives, intercept,
                   float(model.C))

    def _costs_for(self, k: int) -> Floats:
        if self.side_weights is None:
            return self.cost
        weight_without, weight_with = self.side_weights[k]
        return np.asarray(self.cost * np.where(self.labels.has(k), weight_with, weight_without))

    def solve(
        self, phase: str, duals: Sequence[Floats] | None = None,
        weights: Sequence[tuple[Floats, float] | None] | None = None,
    ) -> Iterator[tuple[int, LinearSolution]]:
        """Each class with its solution; a ConvergenceWarning if one is not within the tolerance.

        ``phase`` names the work in the line of progress. The solver begins from ``duals``, or from
        ``weights`` and intercepts.
        """
        def solve_block(block: range) -> list[LinearSolution]:
            classes = [self.positives[i] for i in block]
            return self.solver.solve(
                self.rows, [self.labels.has(k) for k in classes],
                [self._costs_for(k) for k in classes], [self.scales.compute(k) for k in classes],
                None if duals is None else [duals[i] for i in block],
                None if weights is None else [weights[i] for i in block])

        if not self.positives:
            return
        blocks = even_blocks(len(self.positives), self.solver.classes_at_once(self.rows))
        progress = current_progress()
        # If there is only one block, the line shows its passes instead of classes.
        progress.begin(phase, Size(len(self.positives)) if len(blocks) > 1 else None,
                       "label" if self.labels.is_multilabel else "class")
        solutions, n_unsolved = chain.from_iterable(map_in_threads(solve_block, blocks)), 0
        for k, solution in zip(self.positives, solutions, strict=True):
            if not (np.isfinite(solution.shared).all() and np.isfinite(solution.duals).all()
                    and np.isfinite(solution.intercept)):
                raise ParameterError(f"C={self.C!r} is too large for these rows: the solver found "
                                     "weights that are not finite. Take a smaller C")
            n_unsolved += not solution.converged
            if len(blocks) > 1:
                progress.advance(1)
            yield k, solution
        if n_unsolved:
            from sklearn.exceptions import ConvergenceWarning

            warn_caller(
                f"the solver failed to converge to tol={self.solver.tol:g} in max_iter="
                f"{self.solver.max_iter} passes and Newton steps: give more of them, a larger tol, "
                "or a smaller C or smaller weights of rows and classes", ConvergenceWarning)


def even_blocks(size: int, max_size: int) -> list[range]:
    """Cut ``range(size)`` into the fewest blocks of at most ``max_size``, of nearly equal sizes.

    Examples
    --------
    >>> even_blocks(5, 4)
    [range(0, 2), range(2, 5)]
    """
    n_blocks = -(-size // max_size)
    ends = [size * block // n_blocks for block in range(n_blocks + 1)]
    return [range(begin, end) for begin, end in pairwise(ends)]


def _statistics_of_columns(
    counts: sp.csr_array, chosen: NDArray[np.bool_], n_rows: int, weight: Floats | None,
    rows_with_term: NDArray[np.int64],
) -> Counts:
    """How many of the chosen rows hold each term, as counts of one class, for a feature map.

    ``rows_with_term`` has these numbers. With ``weight``, float64 (n_rows,), the weights of the
    chosen rows are added up instead.
    """
    if weight is None:
        return Counts.from_table(np.zeros(1, np.int64), np.array([n_rows]), rows_with_term[None, :])
    term_sums = weigh_by_column(counts[chosen], weight)
    return Counts.from_table(np.zeros(1, np.int64), weight.sum(keepdims=True), term_sums[None, :])


def _assign_folds(codes: NDArray[np.int64], share: float) -> NDArray[np.int64] | None:
    """Assign rows to 1 / share folds: the rows of each class to one fold after the other.

    The last fold never has all rows of a class. The result is None if the last fold would have too
    few rows, or rows of only one class.
    """
    if not share:
        return None
    n_folds = round(1.0 / share)
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    # The number of each row among the rows of its class.
    number = np.empty(len(codes), dtype=np.int64)
    number[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # A class with fewer rows than folds would have no row in the last fold. So the rows of all such
    # classes are numbered together, but the first of each class stays in the first fold.
    rare = order[(sizes[codes[order]] < n_folds) & (number[order] > 0)]
    number[rare] = np.arange(len(rare))
    folds: NDArray[np.int64] = number % n_folds
    held_out = folds == n_folds - 1
    if held_out.sum() < _MIN_HELD_OUT or len(np.unique(codes[held_out])) < 2:
        return None
    return folds
