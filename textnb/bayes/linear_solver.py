"""A linear model of one class against the rest, at the optimum of its objective.

    |v|² / 2 + bias² / 2 + Σ cost_i · loss(y_i (x_i∘scale · v + bias)),    weights = scale∘v

That is LIBLINEAR's objective on the rows times ``scale``, and the intercept is penalised as there
(``intercept_scaling=1``). ``x∘scale`` is the row x times the scale, feature by feature, and
``y_i`` is 1 or -1. The rows are never multiplied: the scale is a factor of the products with
vectors. Under the squared hinge, the solver has no weight for a feature that only one row holds:
its best weight, given all others, has a closed form, and the row then has a smaller cost.

The solver is Newton's method [1]_ on the rows within the margin. Each step is a system with one
unknown per such row, solved by conjugate gradients until its duality gap is a tenth of what the
step can gain. For the squared hinge, if the package was compiled, dual coordinate descent [2]_
comes first: it is several times as quick if the tolerance is loose, and Newton's method if it is
tight. The loops let other threads run, and every sum has a fixed order: a solution has the same
bits whatever other threads do.

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
from textnb.runtime.native import SOLVER, usable
from textnb.runtime.progress import line

# Conjugate gradients end when this share of what a Newton step can gain is left.
_CG_SHARE = 0.1
# The largest number of conjugate gradients in a step, and of steps of a search along a line.
_MAX_PRODUCTS = 5000
_MAX_TRIALS = 50
# A search along a line ends when the slope is this share of the slope where it began.
_SLOPE_SHARE = 1e-3
# Below this tolerance Newton's method is quicker than coordinate descent.
_LOOSE = 1e-2
# Descent ends when projected gradients are at most this times the tolerance apart: accuracy on
# held-out rows is then that of the optimum, and with twice as much it is lower.
_RANGE = 50.0
# With fewer stored values Newton's method is quick enough. Its steps are the same, to rounding, for
# a row of weight two and for that row twice, and in any order of the rows.
_MIN_VALUES = 1 << 17
# Newton's method goes on if descent needs more passes than this, e.g. because C is large.
_MAX_PASSES = 50
# If rows cost much, a Newton step takes as long as many passes, so that this many times more passes
# are allowed.
_HEAVY_FACTOR = 5
# At a tolerance of 0.01, this share of |v|² / 2 may be left to gain. The share falls with the
# square of the tolerance, as the possible gain falls with the square of the gradient.
_GAIN_SHARE = 0.01
# A gain of a smaller share of the penalty, and so of the objective, is lost in rounding.
_ROUNDING = 2.0**-52
# A gain of this share of bias² / 2 does not count.
_BIAS_SHARE = 1e-12
# If no row costs more, losses are near those of the optimum as soon as margins are.
MAX_LIGHT = 1.0
# Newton's method approaches larger costs by this factor at a time. At once, its first quadratic
# models would hold nearly every row, and be too steep for conjugate gradients.
_COST_FACTOR = 100.0


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """The weights of one class against the rest.

    Attributes
    ----------
    rows : SolverRows
    shared : float64 (n_shared,)
        Weights of the columns that several rows hold. They multiply the rows without the scale.
    scales : Scales
    y : float64 (n_rows,)
        -1 or 1.
    intercept : float
    duals : float64 (n_rows,)
        How much each row pulls, at least 0: a start for a solution of nearly the same rows.
    n_iter : int
        Passes over the rows, and Newton steps.
    converged : bool
        Whether it came below the tolerance, or as near to the optimum as rounding allows.
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
        """One weight per term: float64 (n_terms,)."""
        weights = np.zeros(self.rows.n_features)
        self._put_all(weights)
        return weights if self.rows.parts is None else self.rows.parts.fold(weights)

    def put(self, column: Floats) -> None:
        """Write one weight per term into an array of zeros."""
        if self.rows.parts is None:
            self._put_all(column)
        else:
            column[:] = self.weights

    def _put_all(self, column: Floats) -> None:
        """Write the weights of all columns, of terms and of parts, into an array of zeros."""
        column[self.rows.columns] = self.shared
        # Weights of columns that one row holds. They are computed only here, because there are many
        # for each class.
        scale = self.scales.of_own(self.rows)
        own = scale * (scale * self.rows.value) * (self.duals * self.y)[self.rows.row]
        # Most are 0, as most rows are beyond the margin.
        places = np.flatnonzero(own)
        column[self.rows.column[places]] = own[places]


@dataclass(frozen=True)
class LinearSolver:
    """The optimum for one class against the rest.

    Attributes
    ----------
    loss : {"hinge", "log"}
        Squared hinge, or logistic.
    tol : float
        Newton's method ends when the gradient's length is at most ``tol`` times that at zero,
        times the share of the rarer of the two sides, as LIBLINEAR's does. Coordinate descent
        ends when the projected gradients of the duals are at most ``50 · tol`` apart. Newton's
        method goes on from there if ``tol < 0.01``, or if 50 passes are not enough.

        Rows that cost much more than others are nearly all of the gradient at zero, and small
        errors of their margins are large losses. So the gain of Newton's next step must also be
        small beside the penalty of the weights, whatever rows cost: a hundredth of it at the
        default tolerance. So must descent's duality gap, if a row costs more than 1.
    max_iter : int
        Largest number of passes, and of Newton steps; five times as many passes if a row costs more
        than 1.
    """

    loss: str = "hinge"
    tol: float = 1e-2
    max_iter: int = 100

    def classes_at_once(self, rows: SolverRows) -> int:
        """How many classes `solve` solves together in less time than one after the other."""
        return 1 if self._compiled_loops(rows.shared) is None else LANES

    def solve(
        self, rows: SolverRows, positives: Sequence[NDArray[np.bool_]], costs: Sequence[Floats],
        scales: Sequence[Scales],
        duals: Sequence[Floats | None] | None = None,
        weights: Sequence[tuple[Floats, float] | None] | None = None,
    ) -> list[LinearSolution]:
        """The weights of the optimum of several classes of the same rows, each against the rest.

        Parameters
        ----------
        rows : SolverRows
            Prepared for this loss.
        positives : sequence of bool (n_rows,)
            At most `classes_at_once` of them. Both values must occur.
        costs : sequence of float64 (n_rows,)
            C times the weights of the rows, each >= 0.
        scales : sequence of Scales
        duals : sequence of float64 (n_rows,), optional
            To start from: those of solutions of nearly the same rows.
        weights : sequence of (float64 (n_shared,), float) or None, optional
            To start from instead: weights of the shared columns, and intercepts. Without either,
            Newton's method starts from a multiple of the scale. If the scale is a log-count ratio,
            that is naive Bayes.
        """
        problems = [self._problem(rows, *each)
                    for each in zip(positives, costs, scales, strict=True)]
        duals, weights = duals or [None for _ in problems], weights or [None for _ in problems]
        points = [None if start is None else problem.at(*start)
                  for problem, start in zip(problems, weights, strict=True)]
        loops = self._compiled_loops(rows.shared)
        descents: list[DualPoint | None] = [None] * len(problems)
        if loops is not None and not (self._is_tight and all(p is not None for p in points)):
            descents = [*self._descend(loops, problems, [
                own if point is None else problem.duals(point)
                for problem, own, point in zip(problems, duals, points, strict=True)])]
        return [self._finish(*each) for each in zip(problems, descents, duals, points, strict=True)]

    def _problem(
        self, rows: SolverRows, positive: NDArray[np.bool_], cost: Floats,
        scales: Scales,
    ) -> _Problem:
        y = np.where(positive, 1.0, -1.0)
        own = scales.of_own(rows) * rows.value
        squares = np.bincount(rows.row, weights=own * own, minlength=len(y))
        # The squared hinge of a row whose own features have their best weights.
        reduced = cost / (1.0 + 2.0 * cost * squares)
        return _Problem(rows, rows.shared, scales, y, reduced, LOSSES[self.loss])

    def _compiled_loops(self, rows: sp.csr_array) -> Any | None:
        by_descent = self.loss == "hinge" and rows.nnz >= _MIN_VALUES
        kernel = usable(SOLVER).kernel if by_descent else None
        return None if kernel is None else kernel.descent

    @property
    def _is_tight(self) -> bool:
        return self.tol < _LOOSE

    def _descend(
        self, loops: Any, problems: list[_Problem], duals: list[Floats | None]
    ) -> list[DualPoint]:
        range_, max_passes = _RANGE * max(self.tol, _LOOSE), min(self.max_iter, _MAX_PASSES)
        # If these passes are not enough, more of them follow, or Newton's method.
        limit = self._max_passes(max(problem.cost.max() for problem in problems))
        if len(problems) == 1:
            descents = [problems[0].descend(loops, range_, max_passes, duals[0], limit=limit)]
        else:
            descents = descend_together(
                loops, problems[0].rows, [each.scale for each in problems],
                [each.y for each in problems], [each.cost for each in problems], range_,
                max_passes, duals, limit)
        return [self._descend_further(loops, *each)
                for each in zip(problems, descents, strict=True)]

    def _max_passes(self, cost: float) -> int:
        return self.max_iter * (1 if cost <= MAX_LIGHT else _HEAVY_FACTOR)

    def _descend_further(self, loops: Any, problem: _Problem, descent: DualPoint) -> DualPoint:
        """If rows cost much, descend until the losses are near those of the optimum."""
        if problem.cost.max() <= MAX_LIGHT:
            return descent
        tol, max_passes = max(self.tol, _LOOSE), self._max_passes(problem.cost.max())
        range_ = _RANGE * tol
        while not (is_near := problem.is_near(descent, tol)) and descent.passes < max_passes:
            range_ *= 0.5 if descent.converged else 1.0
            further = problem.descend(loops, range_, max_passes - descent.passes, descent.duals,
                                      before=descent.passes, limit=max_passes)
            descent = replace(further, passes=descent.passes + further.passes)
        return replace(descent, converged=is_near)

    def _finish(
        self, problem: _Problem, descent: DualPoint | None, duals: Floats | None,
        point: _Point | None,
    ) -> LinearSolution:
        """The solution, by Newton's method if descent did not find it."""
        if descent is not None and descent.converged and not self._is_tight:
            return problem.solution(
                descent.weights, descent.bias, descent.duals, descent.passes, True)
        # Passes of descent count as steps, but only the first of them.
        extra_passes = 0 if descent is None else max(descent.passes - _MAX_PASSES, 0)
        end = _newton(problem, self._start(problem, descent, duals, point), self.tol,
                      self.max_iter + extra_passes)
        return problem.solution(problem.scale * end.point.v, end.point.bias,
                                problem.duals(end.point), end.steps, end.converged)

    def _start(
        self, problem: _Problem, descent: DualPoint | None, duals: Floats | None,
        point: _Point | None,
    ) -> _State:
        """The state from which Newton's method begins."""
        if descent is not None:
            return _State.at(problem.at(descent.weights, descent.bias), descent.passes)
        if point is None and duals is not None:
            point = problem.of_duals(duals)
        if point is None:
            return _approach(problem, max(self.tol, _LOOSE), self.max_iter)
        return _State.at(point)


@dataclass(frozen=True, eq=False)
class _Point:
    """A point of the objective: v, which is the weights divided by the scale, and the bias.

    The margins are the scores of the rows there.
    """

    v: Floats
    bias: float
    margins: Floats

    @property
    def penalty(self) -> float:
        return 0.5 * (_dot(self.v, self.v) + self.bias**2)

    def allowed_gain(self, tol: float) -> float:
        """How much may be left to gain: little beside the penalty of the weights.

        The bias only shows which side costs more, but its penalty may be nearly the whole penalty.
        """
        weights = 0.5 * (_dot(self.v, self.v) + _BIAS_SHARE * self.bias**2)
        return _GAIN_SHARE * (tol / _LOOSE) ** 2 * weights


@dataclass(frozen=True, eq=False)
class _State:
    """How far Newton's method came.

    Attributes
    ----------
    point : _Point
    unknowns : float64 (n_rows,)
        One per row, from which conjugate gradients start: v is scale∘(rowsᵀ·unknowns) if no step
        was shortened.
    steps : int
    converged : bool
    """

    point: _Point
    unknowns: Floats
    steps: int
    converged: bool = False

    @classmethod
    def at(cls, point: _Point, steps: int = 0) -> _State:
        return cls(point, np.zeros(len(point.margins)), steps)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The objective on the shared columns: ``rows`` are those of ``all_rows``."""

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
        """How much each row pulls at a point."""
        slope, _ = self.loss.derivatives(self.y * point.margins)
        return -self.cost * slope

    def of_duals(self, duals: Floats) -> _Point:
        """The point to which rows with these duals pull."""
        pull = duals * self.y
        return self.at(self.scale**2 * (self.rows.T @ pull), float(pull.sum()))

    def solution(
        self, weights: Floats, bias: float, duals: Floats, n_iter: int, converged: bool
    ) -> LinearSolution:
        """The solution of weights of the shared columns."""
        return LinearSolution(
            self.all_rows, weights, self.scales, self.y, bias, duals, n_iter, converged)

    def at(self, weights: Floats, bias: float) -> _Point:
        """The point of weights and a bias; v is 0 for a feature whose scale is 0."""
        v = np.divide(weights, self.scale, out=np.zeros(len(weights)), where=self.scale != 0)
        return _Point(v, float(bias), self.rows @ (self.scale * v) + bias)

    def gradient_at_zero(self) -> float:
        """The gradient's length where all weights are 0, times the share of the rarer side."""
        slope, _ = self.loss.derivatives(np.zeros(len(self.y)))
        pull = -self.cost * slope * self.y
        gradient = self.scale * (self.rows.T @ pull)
        share = min(float(np.mean(self.y > 0)), float(np.mean(self.y < 0)))
        return share * float(np.sqrt(_dot(gradient, gradient) + pull.sum() ** 2))

    def is_near(self, descent: DualPoint, tol: float) -> bool:
        """Whether the losses of descent are near those of the optimum."""
        point = self.at(descent.weights, descent.bias)
        return self.gap(point, descent.duals) <= point.allowed_gain(tol)

    def descend(
        self, loops: Any, range_: float, max_passes: int, duals: Floats | None, **progress: int
    ) -> DualPoint:
        """Dual coordinate descent: see `textnb.bayes.dual_descent.descend`."""
        return descend(loops, self.rows, self.scale, self.y, self.cost, range_, max_passes, duals,
                       **progress)

    def gap(self, point: _Point, duals: Floats) -> float:
        """How far the squared hinge's objective is above its dual, at the point of the duals."""
        has_cost = self.cost > 0
        pulls, duals, cost = self.duals(point)[has_cost], duals[has_cost], self.cost[has_cost]
        losses = (pulls * pulls + duals * duals) / (4.0 * cost) - duals
        return 2.0 * point.penalty + float(losses.sum())

    def capped(self, max_cost: float) -> _Problem:
        """The problem in which no row costs more than ``max_cost``."""
        return replace(self, cost=np.minimum(self.cost, max_cost))

    def multiple_of_scale(self) -> _Point:
        """About the best v that is one number for all features, and its bias: Newton's method for
        these two unknowns."""
        # The rows' scores for v = 1.
        along = self.rows @ self.scale
        # At least 1, so that there is a solution without columns.
        penalty = np.array([max(len(self.scale), 1.0), 1.0])
        x, margins = np.zeros(2), np.zeros(len(self.y))
        for _ in range(10):
            slope, curvature = self.loss.derivatives(self.y * margins)
            pull, bend = -self.cost * slope * self.y, self.cost * curvature
            gradient = penalty * x - np.array([_dot(pull, along), float(pull.sum())])
            bent = bend * along
            cross = float(bent.sum())
            first = penalty[0] + _dot(bent, along)
            second = penalty[1] + float(bend.sum())
            step = -np.array([second * gradient[0] - cross * gradient[1],
                              first * gradient[1] - cross * gradient[0]])
            step /= first * second - cross * cross
            descent = float(gradient @ step)
            if not -descent > 1e-4 * self.cost.sum():
                break
            ahead = step[0] * along + step[1]
            t = self.search(margins, ahead, float((penalty * x) @ step),
                            float((penalty * step) @ step), descent)
            x, margins = x + t * step, margins + t * ahead
        return _Point(np.full(len(self.scale), x[0]), float(x[1]), margins)

    def search(
        self, margins: Floats, ahead: Floats, across: float, square: float, descent: float
    ) -> float:
        """How far to go along a line: to the minimum of the objective, nearly.

        Parameters
        ----------
        margins, ahead : float64 (n_rows,)
            Scores, and how they change along the line.
        across, square : float
            The product of the point and the direction, and the direction's square.
        descent : float
            The objective's slope at 0; negative.
        """
        start, change = self.y * margins, self.y * ahead
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(_MAX_TRIALS):
            slope, curvature = self.loss.derivatives(start + t * change)
            weighted = self.cost * change
            first = across + t * square + _dot(weighted, slope)
            if abs(first) <= _SLOPE_SHARE * abs(descent):
                break
            low, high = (t, high) if first < 0 else (low, t)
            t -= first / (square + _dot(weighted * change, curvature))
            if not low < t < high:
                t = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
        return t


def _approach(problem: _Problem, tol: float, max_steps: int) -> _State:
    """Where Newton's method begins without earlier weights. If costs are large, that is near the
    optimum of smaller costs."""
    cap = _COST_FACTOR
    state = _State.at(problem.capped(cap).multiple_of_scale())
    while cap < problem.cost.max():
        state = _newton(problem.capped(cap), state, tol, max_steps)
        cap *= _COST_FACTOR
    return state


def _newton(problem: _Problem, start: _State, tol: float, max_steps: int) -> _State:
    """Newton's method: the optimum, unless ``max_steps`` steps are too few."""
    point, unknowns = start.point, start.unknowns.copy()
    tolerance = tol * problem.gradient_at_zero()
    progress = line()
    for step in range(start.steps, max(max_steps, start.steps) + 1):
        progress.step(f"step {step + 1} of at most {max_steps}")
        slope, curvature = problem.loss.derivatives(problem.y * point.margins)
        active = np.flatnonzero(problem.cost * curvature > 0)
        model = _Model.of(problem, point, active, slope, curvature)
        gradient = point.v - problem.scale * (model.columns @ model.pull)
        bias_gradient = point.bias - float(model.pull.sum())
        square = _dot(gradient, gradient) + bias_gradient * bias_gradient
        is_flat, allowed = bool(np.sqrt(square) <= tolerance), point.allowed_gain(tol)
        # The penalty's second derivative is 1, so that no more than half the square can be gained.
        if is_flat and 0.5 * square <= allowed:
            return _State(point, unknowns, step, True)
        if step >= max_steps and not is_flat:
            break
        minimum, is_minimum = model.minimum(unknowns[active], point)
        direction = problem.scale * (model.columns @ minimum) - point.v
        bias_direction = float(minimum.sum()) - point.bias
        descent = _dot(gradient, direction) + bias_gradient * bias_direction
        if is_flat and is_minimum and -descent <= allowed:
            return _State(point, unknowns, step, True)
        if not -descent > _ROUNDING * point.penalty:
            # The model's minimum is this point, to rounding, if conjugate gradients found it.
            return _State(point, unknowns, step, is_minimum)
        if step >= max_steps:
            break
        ahead = problem.rows @ (problem.scale * direction) + bias_direction
        t = problem.search(
            point.margins, ahead, _dot(point.v, direction) + point.bias * bias_direction,
            _dot(direction, direction) + bias_direction**2, descent)
        point = _Point(point.v + t * direction, point.bias + t * bias_direction,
                       point.margins + t * ahead)
        unknowns *= 1.0 - t
        unknowns[active] += t * minimum
    return _State(point, unknowns, max(max_steps, start.steps))


@dataclass(frozen=True, eq=False)
class _Model:
    """The quadratic model of the objective at a point, for the rows where the loss is curved.

    There is an unknown a_i for each of these rows, and v is ``scale∘(rowsᵀ·a)``. The minimum solves
    ``(K + 1 / bend) a = target``, where K has the products of each two scaled rows, plus 1 for the
    bias.

    Attributes
    ----------
    rows, columns : sparse float64 (n_active, n_shared) and its transpose
    squared_scale : float64 (n_shared,)
    pull, bend : float64 (n_active,)
        Less the slope of each row's loss, and its curvature, both times the row's cost.
    target : float64 (n_active,)
        The scores for which the quadratic losses are lowest.
    misses : float64 (n_active,)
        How far the scores are from them.
    """

    rows: sp.csr_array
    columns: sp.csc_array
    squared_scale: Floats
    pull: Floats
    bend: Floats
    target: Floats
    misses: Floats

    @classmethod
    def of(
        cls, problem: _Problem, point: _Point, active: NDArray[np.int64], slope: Floats,
        curvature: Floats,
    ) -> _Model:
        rows = problem.rows if len(active) == len(problem.y) else problem.rows[active]
        cost, y = problem.cost[active], problem.y[active]
        pull, bend = -cost * slope[active] * y, cost * curvature[active]
        misses = np.divide(pull, bend, out=np.zeros(len(active)), where=bend > 0)
        return cls(rows, rows.T, problem.scale**2, pull, bend, point.margins[active] + misses,
                   misses)

    def minimum(self, unknowns: Floats, point: _Point) -> tuple[Floats, bool]:
        """Unknowns that gain nine tenths, or more, of what the model can gain.

        Also whether conjugate gradients found such unknowns.
        """
        here = point.penalty + 0.5 * _dot(self.bend * self.misses, self.misses)
        ridge = 1.0 / self.bend
        residual = self.target - (self._products(unknowns) + ridge * unknowns)
        scaled = self.bend * residual
        direction, square = scaled.copy(), _dot(scaled, residual)
        negligible = 1e-30 * square
        for _ in range(_MAX_PRODUCTS):
            if square <= negligible:
                return unknowns, True
            image = self._products(direction) + ridge * direction
            length = square / _dot(direction, image)
            unknowns = unknowns + length * direction
            residual -= length * image
            scaled = self.bend * residual
            before, square = square, _dot(scaled, residual)
            # The model is nowhere below the value of its dual.
            misses = residual + ridge * unknowns
            norm = _dot(unknowns, self.target - misses)
            primal = 0.5 * (norm + _dot(self.bend * misses, misses))
            dual = _dot(unknowns, self.target) - 0.5 * (norm + _dot(ridge * unknowns, unknowns))
            if primal - dual <= _CG_SHARE * (here - dual):
                return unknowns, True
            direction *= square / before
            direction += scaled
        return unknowns, False

    def _products(self, unknowns: Floats) -> Floats:
        inner = self.columns @ unknowns
        inner *= self.squared_scale
        products: Floats = self.rows @ inner
        products += unknowns.sum()
        return products


def _dot(a: Floats, b: Floats) -> float:
    # Not by BLAS, whose threads would change the order of the sum.
    return float(np.einsum("i,i->", a, b))
