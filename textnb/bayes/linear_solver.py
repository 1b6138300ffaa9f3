"""A linear model of one class against the rest, at the optimum of its objective.

    |v|² / 2 + bias² / 2 + Σ cost_i · loss(y_i (x_i∘scale · v + bias)),    weights = scale∘v

This is LIBLINEAR's objective on the rows times ``scale``. As in LIBLINEAR with
``intercept_scaling=1``, the intercept is penalised. ``x∘scale`` is the row x times the scale,
feature by feature, and ``y_i`` is 1 or -1. The product is never stored: vectors are scaled before
rows are multiplied with them. For the squared hinge, the solver has no weight for a feature that
only one row holds: its best weight has a closed form, and has the effect of a smaller cost.

The solver is Newton's method [1]_ on the rows within the margin. Each step is a linear system with
one unknown per such row. Conjugate gradients solve it until the duality gap is a tenth of what the
step can gain, which is how much it can lower the objective. For the squared hinge, if the package
was compiled, dual coordinate descent [2]_ comes first: it is several times as quick with a loose
tolerance, and Newton's method with a tight one. The descent lets other threads run, and every sum
has a fixed order, so a solution has the same bits for any number of threads.

References
----------
.. [1] S. S. Keerthi, D. DeCoste (2005). A modified finite Newton method for fast solution of large
   scale linear SVMs. Journal of Machine Learning Research 6.
.. [2] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan (2008). A dual coordinate
   descent method for large-scale linear SVM. ICML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.dual_descent import LANES, DualPoint, descend, descend_together
from textnb.bayes.forms import Floats
from textnb.bayes.losses import LOSSES, Loss
from textnb.bayes.solver_rows import Scales, SolverRows
from textnb.runtime.native import SOLVER, load_usable
from textnb.runtime.progress import current_progress

# Conjugate gradients end when this share of what a Newton step can gain is left.
_CG_SHARE = 0.1
# The maximum number of steps of conjugate gradients, and of a line search.
_MAX_CG_STEPS, _MAX_SEARCH_STEPS = 5000, 50
# A line search ends when the slope is this share of the slope at its start.
_SLOPE_SHARE = 1e-3
# With a smaller tolerance, Newton's method is quicker than coordinate descent.
_LOOSE_TOL = 1e-2
# Descent ends when the largest projected gradient exceeds the smallest by at most this times the
# tolerance. Then accuracy on held-out rows is that of the optimum; with twice this, it is lower.
_RANGE_FACTOR = 50.0
# With fewer stored values there is no descent: Newton's method is quick enough, and gives the same
# solution, up to rounding, for a row of weight two as for that row twice, and in any order of rows.
_MIN_DESCENT_VALUES = 1 << 17
# Newton's method continues if descent needs more passes than this, e.g. because C is large.
_MAX_PASSES = 50
# If rows cost much, a Newton step takes as long as many passes, so more passes are allowed.
_HEAVY_FACTOR = 5
# At a tolerance of 0.01, a solution may still have this share of |v|² / 2 to gain. The share falls
# with the square of the tolerance, as the possible gain falls with the square of the gradient.
_GAIN_SHARE = 0.01
# A gain below this share of the penalty, which is part of the objective, is lost in rounding.
_ROUNDING = 2.0**-52
# For `_GAIN_SHARE`, this share of bias² / 2 is added to |v|² / 2, which may be 0.
_BIAS_SHARE = 1e-12
# If no row costs more, losses are near the optimal losses as soon as margins are.
MAX_LIGHT_COST = 1.0
# Newton's method reaches larger costs in steps of this factor. In one step, its first quadratic
# models would hold nearly every row, and be too steep for conjugate gradients.
_COST_FACTOR = 100.0


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """The weights of one class against the rest.

    Attributes
    ----------
    rows : SolverRows
    shared : float64 (n_shared,)
        Weights of the shared columns, which several rows hold, for rows without the scale.
    scales : Scales
    y : float64 (n_rows,)
        -1 or 1.
    intercept : float
    duals : float64 (n_rows,)
        The dual of each row, at least 0: its cost times minus the slope of its loss. A start for a
        solution of nearly the same rows.
    n_iter : int
        The number of passes over the rows plus the number of Newton steps.
    converged : bool
        Whether the solution is within the tolerance, or as near to the optimum as rounding allows.
    """

    rows: SolverRows
    shared: Floats
    scales: Scales
    y: Floats
    intercept: float
    duals: Floats
    n_iter: int
    converged: bool

    @property
    def weights(self) -> Floats:
        """One weight per term, with those of extra columns folded in: float64 (n_terms,)."""
        weights = np.zeros(self.rows.n_features)
        self._write_all(weights)
        return weights if self.rows.extra is None else self.rows.extra.fold(weights)

    def write_weights(self, column: Floats) -> None:
        """Write `weights` into an array of zeros, without another array if there are many terms."""
        if self.rows.extra is None:
            self._write_all(column)
        else:
            column[:] = self.weights

    def _write_all(self, column: Floats) -> None:
        """Write the weights of all columns, extra ones too, into an array of zeros."""
        column[self.rows.columns] = self.shared
        # Weights of columns that only one row holds are not stored, as each class has many of them.
        scale = self.scales.of_own(self.rows)
        own_weights = scale * (scale * self.rows.value) * (self.duals * self.y)[self.rows.row]
        # Most are 0, as most rows are beyond the margin.
        places = np.flatnonzero(own_weights)
        column[self.rows.column[places]] = own_weights[places]


@dataclass(frozen=True)
class LinearSolver:
    """Solves for one class against the rest.

    Attributes
    ----------
    loss : {"hinge", "log"}
        Squared hinge, or logistic.
    tol : float
        As in LIBLINEAR, Newton's method ends when the gradient's length is at most ``tol`` times
        its length where all weights are 0, times the share of the rarer side, the class or the
        rest. Coordinate descent ends when the projected gradients of the duals differ by at most
        ``50 · tol``. Newton's method continues from there if ``tol < 0.01``, or if 50 passes are
        not enough.

        If some rows cost much more than others, they dominate the gradient at zero, and small
        errors of their margins are large losses. So the gain of Newton's next step must also be
        small compared with the penalty of the weights: a hundredth of it at the default tolerance.
        The same holds for the duality gap of descent if a row costs more than 1.
    max_iter : int
        The maximum number of passes, and of Newton steps; of passes five times as many if a row
        costs more than 1.
    """

    loss: str = "hinge"
    tol: float = 1e-2
    max_iter: int = 100

    def classes_at_once(self, rows: SolverRows) -> int:
        """The number of classes for which `solve` is quickest per class."""
        return 1 if self._compiled_loops(rows.shared) is None else LANES

    def solve(
        self, rows: SolverRows, positives: Sequence[NDArray[np.bool_]], costs: Sequence[Floats],
        scales: Sequence[Scales],
        duals: Sequence[Floats | None] | None = None,
        weights: Sequence[tuple[Floats, float] | None] | None = None,
    ) -> list[LinearSolution]:
        """Solve for several classes of the same rows, each against the rest.

        Parameters
        ----------
        rows : SolverRows
            Prepared for this loss.
        positives : sequence of bool (n_rows,)
            The rows of each class: at most `classes_at_once` arrays, each with both values.
        costs : sequence of float64 (n_rows,)
            C times the weights of the rows, each >= 0.
        scales : sequence of Scales
        duals : sequence of float64 (n_rows,), optional
            Duals to start from, e.g. from solutions of nearly the same rows.
        weights : sequence of (float64 (n_shared,), float) or None, optional
            Weights of the shared columns, and intercepts, to start from instead. By default,
            Newton's method starts from a multiple of the scale, e.g. naive Bayes.
        """
        problems = [self._problem(rows, *args)
                    for args in zip(positives, costs, scales, strict=True)]
        duals, weights = duals or [None for _ in problems], weights or [None for _ in problems]
        starts = [None if weights_and_bias is None else problem.at(*weights_and_bias)
                  for problem, weights_and_bias in zip(problems, weights, strict=True)]
        loops = self._compiled_loops(rows.shared)
        descents: list[DualPoint | None] = [None] * len(problems)
        if loops is not None and (None in starts or not self._is_tight):
            descents = [*self._descend(loops, problems, [
                start_duals if start is None else problem.duals(start)
                for problem, start_duals, start in zip(problems, duals, starts, strict=True)])]
        return [self._finish(*args) for args in zip(problems, descents, duals, starts, strict=True)]

    def _problem(
        self, rows: SolverRows, positive: NDArray[np.bool_], cost: Floats, scales: Scales
    ) -> _Problem:
        y = np.where(positive, 1.0, -1.0)
        own_values = scales.of_own(rows) * rows.value
        squares = np.bincount(rows.row, weights=own_values * own_values, minlength=len(y))
        # See `Loss.absorbs_own_features`; for other losses, rows have no own values.
        reduced_cost = cost / (1.0 + 2.0 * cost * squares)
        return _Problem(rows, rows.shared, scales, y, reduced_cost, LOSSES[self.loss])

    def _compiled_loops(self, rows: sp.csr_array) -> Any | None:
        """`textnb.bayes.native.descent`, if it is compiled and quicker for these rows."""
        can_descend = self.loss == "hinge" and rows.nnz >= _MIN_DESCENT_VALUES
        kernel = load_usable(SOLVER).kernel if can_descend else None
        return None if kernel is None else kernel.descent

    @property
    def _is_tight(self) -> bool:
        return self.tol < _LOOSE_TOL

    def _descend(
        self, loops: Any, problems: list[_Problem], duals: list[Floats | None]
    ) -> list[DualPoint]:
        tolerance = _RANGE_FACTOR * max(self.tol, _LOOSE_TOL)
        max_passes = min(self.max_iter, _MAX_PASSES)
        # If these passes are not enough, `_descend_further` or Newton's method continues.
        shown_max_passes = self._max_passes(max(problem.cost.max() for problem in problems))
        if len(problems) == 1:
            descents = [problems[0].descend(
                loops, tolerance, max_passes, duals[0], shown_max_passes=shown_max_passes)]
        else:
            descents = descend_together(
                loops, problems[0].rows, [problem.scale for problem in problems],
                [problem.y for problem in problems], [problem.cost for problem in problems],
                tolerance, max_passes, duals, shown_max_passes)
        return [self._descend_further(loops, problem, descent)
                for problem, descent in zip(problems, descents, strict=True)]

    def _max_passes(self, max_cost: float) -> int:
        return self.max_iter * (1 if max_cost <= MAX_LIGHT_COST else _HEAVY_FACTOR)

    def _descend_further(self, loops: Any, problem: _Problem, descent: DualPoint) -> DualPoint:
        """If rows cost much, descend until the losses are near the optimal losses."""
        if problem.cost.max() <= MAX_LIGHT_COST:
            return descent
        tol, max_passes = max(self.tol, _LOOSE_TOL), self._max_passes(problem.cost.max())
        tolerance = _RANGE_FACTOR * tol
        while not (is_near := problem.is_near(descent, tol)) and descent.passes < max_passes:
            tolerance *= 0.5 if descent.converged else 1.0
            further = problem.descend(
                loops, tolerance, max_passes - descent.passes, descent.duals,
                passes_before=descent.passes, shown_max_passes=max_passes)
            descent = replace(further, passes=descent.passes + further.passes)
        return replace(descent, converged=is_near)

    def _finish(
        self, problem: _Problem, descent: DualPoint | None, duals: Floats | None,
        start: _Point | None,
    ) -> LinearSolution:
        """The solution, by Newton's method if descent did not find it."""
        if descent is not None and descent.converged and not self._is_tight:
            return problem.solution(
                descent.weights, descent.bias, descent.duals, descent.passes, converged=True)
        # Passes of descent count as steps, but those beyond _MAX_PASSES are extra.
        extra_passes = 0 if descent is None else max(descent.passes - _MAX_PASSES, 0)
        end = _newton(problem, self._start(problem, descent, duals, start), self.tol,
                      self.max_iter + extra_passes)
        return problem.solution(problem.scale * end.point.v, end.point.bias,
                                problem.duals(end.point), end.steps, end.converged)

    def _start(
        self, problem: _Problem, descent: DualPoint | None, duals: Floats | None,
        start: _Point | None,
    ) -> _State:
        """The state from which Newton's method begins."""
        if descent is not None:
            return _State.at(problem.at(descent.weights, descent.bias), descent.passes)
        if start is None and duals is not None:
            start = problem.of_duals(duals)
        # Squares of larger weights, such as those of a changed model file, could overflow.
        if start is None or not np.abs(np.r_[start.bias, start.v, start.scores]).max() < 1e100:
            return _approach(problem, max(self.tol, _LOOSE_TOL), self.max_iter)
        return _State.at(start)


@dataclass(frozen=True, eq=False)
class _Point:
    """A point of the objective: v, the weights divided by the scale; the bias; scores of rows."""

    v: Floats
    bias: float
    scores: Floats

    @property
    def penalty(self) -> float:
        return 0.5 * (_dot(self.v, self.v) + self.bias**2)

    def allowed_gain(self, tol: float) -> float:
        """The largest gain that a solution may leave: a small share of the weights' penalty.

        The penalty of the bias hardly counts: it may be nearly the whole penalty, but the bias only
        shows which side costs more.
        """
        weight_penalty = 0.5 * (_dot(self.v, self.v) + _BIAS_SHARE * self.bias**2)
        return _GAIN_SHARE * (tol / _LOOSE_TOL) ** 2 * weight_penalty


@dataclass(frozen=True, eq=False)
class _State:
    """The state of Newton's method.

    Attributes
    ----------
    point : _Point
    unknowns : float64 (n_rows,)
        The unknowns a_i of `_Model`, one per row, from which conjugate gradients start. After a
        step of full length, v is scale∘(rowsᵀ·unknowns).
    steps : int
    converged : bool
    """

    point: _Point
    unknowns: Floats
    steps: int
    converged: bool = False

    @classmethod
    def at(cls, point: _Point, steps: int = 0) -> _State:
        return cls(point, np.zeros(len(point.scores)), steps)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The objective of a class: ``rows`` are the shared columns of ``all_rows``, y is 1 or -1."""

    all_rows: SolverRows
    rows: sp.csr_array
    scales: Scales
    y: Floats
    cost: Floats
    loss: Loss

    @property
    def scale(self) -> Floats:
        return self.scales.shared

    def duals(self, point: _Point) -> Floats:
        """The dual of each row at a point: its cost times minus the slope of its loss."""
        slope, _ = self.loss.derivatives(self.y * point.scores)
        return -self.cost * slope

    def of_duals(self, duals: Floats) -> _Point:
        """The point whose weights and bias follow from the duals."""
        signed_duals = duals * self.y
        return self.at(self.scale**2 * (self.rows.T @ signed_duals), float(signed_duals.sum()))

    def solution(
        self, weights: Floats, bias: float, duals: Floats, n_iter: int, converged: bool
    ) -> LinearSolution:
        """The solution with these weights of the shared columns."""
        return LinearSolution(
            self.all_rows, weights, self.scales, self.y, bias, duals, n_iter, converged)

    def at(self, weights: Floats, bias: float) -> _Point:
        """The point of weights and a bias; v is 0 for a feature whose scale is 0."""
        v = np.divide(weights, self.scale, out=np.zeros(len(weights)), where=self.scale != 0)
        return _Point(v, float(bias), self.rows @ (self.scale * v) + bias)

    def gradient_at_zero(self) -> float:
        """The gradient's length where all weights are 0, times the share of the rarer side."""
        slope, _ = self.loss.derivatives(np.zeros(len(self.y)))
        signed_duals = -self.cost * slope * self.y
        gradient = self.scale * (self.rows.T @ signed_duals)
        share = min(float(np.mean(self.y > 0)), float(np.mean(self.y < 0)))
        return share * float(np.sqrt(_dot(gradient, gradient) + signed_duals.sum() ** 2))

    def is_near(self, descent: DualPoint, tol: float) -> bool:
        """Whether the duality gap of descent is within the gain that a solution may leave."""
        point = self.at(descent.weights, descent.bias)
        return self.gap(point, descent.duals) <= point.allowed_gain(tol)

    def descend(
        self, loops: Any, tolerance: float, max_passes: int, duals: Floats | None, **progress: int
    ) -> DualPoint:
        """Dual coordinate descent: see `textnb.bayes.dual_descent.descend`."""
        return descend(loops, self.rows, self.scale, self.y, self.cost, tolerance, max_passes,
                       duals, **progress)

    def gap(self, point: _Point, duals: Floats) -> float:
        """The duality gap of the squared hinge, at the point that follows from the duals.

        With d the duals and p = cost · (-slope) at the point, the objective is
        penalty + Σ p² / (4 cost), and its dual Σ d - Σ d² / (4 cost) - penalty.
        """
        has_cost = self.cost > 0
        p, d, cost = self.duals(point)[has_cost], duals[has_cost], self.cost[has_cost]
        losses = (p * p + d * d) / (4.0 * cost) - d
        return 2.0 * point.penalty + float(losses.sum())

    def capped(self, max_cost: float) -> _Problem:
        """The problem in which no row costs more than ``max_cost``."""
        return replace(self, cost=np.minimum(self.cost, max_cost))

    def multiple_of_scale(self) -> _Point:
        """About the best point whose v is one number v0 for all features: ten steps of Newton's
        method, or fewer, find x = (v0, bias) well enough for a start."""
        # The rows' scores for v0 = 1 and no bias.
        unit_scores = self.rows @ self.scale
        # At least 1, so that there is a solution without columns.
        penalty = np.array([max(len(self.scale), 1.0), 1.0])
        x, scores = np.zeros(2), np.zeros(len(self.y))
        for _ in range(10):
            slope, curvature = self.loss.derivatives(self.y * scores)
            signed_duals, row_hessian = -self.cost * slope * self.y, self.cost * curvature
            gradient = penalty * x - np.array(
                [_dot(signed_duals, unit_scores), float(signed_duals.sum())])
            # The Hessian is [[h00, h01], [h01, h11]].
            weighted_scores = row_hessian * unit_scores
            h00 = penalty[0] + _dot(weighted_scores, unit_scores)
            h01 = float(weighted_scores.sum())
            h11 = penalty[1] + float(row_hessian.sum())
            step = -np.array([h11 * gradient[0] - h01 * gradient[1],
                              h00 * gradient[1] - h01 * gradient[0]])
            step /= h00 * h11 - h01 * h01
            start_slope = float(gradient @ step)
            # The objective at zero is about the sum of the costs, so little is left to gain.
            if not -start_slope > 1e-4 * self.cost.sum():
                break
            score_change = step[0] * unit_scores + step[1]
            t = self.search(scores, score_change, float((penalty * x) @ step),
                            float((penalty * step) @ step), start_slope)
            x, scores = x + t * step, scores + t * score_change
        return _Point(np.full(len(self.scale), x[0]), float(x[1]), scores)

    def search(
        self, scores: Floats, change: Floats, product: float, square: float, start_slope: float
    ) -> float:
        """The multiple t of a direction at which the objective is almost lowest, from a point on.

        Parameters
        ----------
        scores, change : float64 (n_rows,)
            Scores at the point, and how they change along the direction.
        product, square : float
            The product of the point and the direction, and of the direction and itself.
        start_slope : float
            The objective's slope at the point, along the direction; negative.
        """
        margins, margin_change = self.y * scores, self.y * change
        weighted_change = self.cost * margin_change
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(_MAX_SEARCH_STEPS):
            loss_slope, loss_curvature = self.loss.derivatives(margins + t * margin_change)
            slope = product + t * square + _dot(weighted_change, loss_slope)
            if abs(slope) <= _SLOPE_SHARE * abs(start_slope):
                break
            low, high = (t, high) if slope < 0 else (low, t)
            t -= slope / (square + _dot(weighted_change * margin_change, loss_curvature))
            if not low < t < high:
                t = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
        return t


def _approach(problem: _Problem, tol: float, max_steps: int) -> _State:
    """The state from which Newton's method begins without earlier weights: if costs are large, near
    the optimum of smaller costs."""
    max_cost = _COST_FACTOR
    state = _State.at(problem.capped(max_cost).multiple_of_scale())
    while max_cost < problem.cost.max():
        state = _newton(problem.capped(max_cost), state, tol, max_steps)
        max_cost *= _COST_FACTOR
    return state


def _newton(problem: _Problem, start: _State, tol: float, max_steps: int) -> _State:
    """Newton's method: the optimum, unless ``max_steps`` steps are too few."""
    point, unknowns = start.point, start.unknowns.copy()
    tolerance = tol * problem.gradient_at_zero()
    progress = current_progress()
    for step in range(start.steps, max(max_steps, start.steps) + 1):
        progress.step(f"step {step + 1} of at most {max_steps}")
        slope, curvature = problem.loss.derivatives(problem.y * point.scores)
        active = np.flatnonzero(problem.cost * curvature > 0)
        model = _Model.of(problem, point, active, slope, curvature)
        gradient = point.v - problem.scale * (model.columns @ model.signed_duals)
        bias_gradient = point.bias - float(model.signed_duals.sum())
        square = _dot(gradient, gradient) + bias_gradient * bias_gradient
        is_flat, allowed_gain = bool(np.sqrt(square) <= tolerance), point.allowed_gain(tol)
        # The second derivative of the objective is at least 1, from the penalty. So no more than
        # half the square can be gained.
        if is_flat and 0.5 * square <= allowed_gain:
            return _State(point, unknowns, step, converged=True)
        if step >= max_steps and not is_flat:
            break
        minimum, is_minimum = model.minimum(unknowns[active], point)
        direction = problem.scale * (model.columns @ minimum) - point.v
        bias_direction = float(minimum.sum()) - point.bias
        start_slope = _dot(gradient, direction) + bias_gradient * bias_direction
        if is_flat and is_minimum and -start_slope <= allowed_gain:
            return _State(point, unknowns, step, converged=True)
        if not -start_slope > _ROUNDING * point.penalty:
            # The model's minimum is this point, up to rounding, if conjugate gradients found it.
            return _State(point, unknowns, step, is_minimum)
        if step >= max_steps:
            break
        score_change = problem.rows @ (problem.scale * direction) + bias_direction
        t = problem.search(
            point.scores, score_change, _dot(point.v, direction) + point.bias * bias_direction,
            _dot(direction, direction) + bias_direction**2, start_slope)
        point = _Point(point.v + t * direction, point.bias + t * bias_direction,
                       point.scores + t * score_change)
        unknowns *= 1.0 - t
        unknowns[active] += t * minimum
    return _State(point, unknowns, max(max_steps, start.steps))


@dataclass(frozen=True, eq=False)
class _Model:
    """The quadratic model of the objective at a point, for the rows where the loss is curved.

    There is an unknown a_i for each of these rows, and v is ``scale∘(rowsᵀ·a)``. The minimum solves
    ``(K + diag(1 / row_hessian)) a = target``, where K_ij is the product of the scaled rows i and
    j, plus 1 for the bias.

    Attributes
    ----------
    rows, columns : sparse float64 (n_active, n_shared) and its transpose
    squared_scale : float64 (n_shared,)
    signed_duals, row_hessian : float64 (n_active,)
        Minus the first derivative of ``cost · loss`` by the score of each row, and the second one.
    target : float64 (n_active,)
        The scores for which the quadratic losses are lowest.
    misses : float64 (n_active,)
        ``target`` minus the scores at the point.
    """

    rows: sp.csr_array
    columns: sp.csc_array
    squared_scale: Floats
    signed_duals: Floats
    row_hessian: Floats
    target: Floats
    misses: Floats

    @classmethod
    def of(
        cls, problem: _Problem, point: _Point, active: NDArray[np.int64], slope: Floats,
        curvature: Floats,
    ) -> _Model:
        rows = problem.rows if len(active) == len(problem.y) else problem.rows[active]
        cost, y = problem.cost[active], problem.y[active]
        signed_duals, row_hessian = -cost * slope[active] * y, cost * curvature[active]
        misses = np.divide(
            signed_duals, row_hessian, out=np.zeros(len(active)), where=row_hessian > 0)
        return cls(rows, rows.T, problem.scale**2, signed_duals, row_hessian,
                   point.scores[active] + misses, misses)

    def minimum(self, unknowns: Floats, point: _Point) -> tuple[Floats, bool]:
        """Unknowns that gain at least nine tenths of what the model can gain, and whether conjugate
        gradients found them within the maximum number of steps."""
        # The model's value at the point.
        value_at_point = point.penalty + 0.5 * _dot(self.row_hessian * self.misses, self.misses)
        ridge = 1.0 / self.row_hessian
        residual = self.target - (self._multiply(unknowns) + ridge * unknowns)
        # Conjugate gradients are preconditioned by the ridge.
        preconditioned = self.row_hessian * residual
        direction, square = preconditioned.copy(), _dot(preconditioned, residual)
        # A residual so much smaller than at the start is rounding.
        negligible = 1e-30 * square
        for _ in range(_MAX_CG_STEPS):
            if square <= negligible:
                return unknowns, True
            image = self._multiply(direction) + ridge * direction
            step = square / _dot(direction, image)
            unknowns = unknowns + step * direction
            residual -= step * image
            preconditioned = self.row_hessian * residual
            previous_square, square = square, _dot(preconditioned, residual)
            misses = residual + ridge * unknowns
            # aᵀ K a, which is |v|² + bias².
            norm = _dot(unknowns, self.target - misses)
            primal = 0.5 * (norm + _dot(self.row_hessian * misses, misses))
            # The minimum of the model is not below its dual.
            dual = _dot(unknowns, self.target) - 0.5 * (norm + _dot(ridge * unknowns, unknowns))
            if primal - dual <= _CG_SHARE * (value_at_point - dual):
                return unknowns, True
            direction *= square / previous_square
            direction += preconditioned
        return unknowns, False

    def _multiply(self, unknowns: Floats) -> Floats:
        """K · unknowns."""
        inner = self.columns @ unknowns
        inner *= self.squared_scale
        products: Floats = self.rows @ inner
        products += unknowns.sum()
        return products


def _dot(a: Floats, b: Floats) -> float:
    # Not by BLAS, whose threads would change the order of the sum.
    return float(np.einsum("i,i->", a, b))
