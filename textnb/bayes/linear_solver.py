"""A linear model of one class against the rest, at the optimum of its objective.

    |v|² / 2 + bias² / 2 + Σ cost_i · loss(y_i (x_i∘scale · v + bias)),    weights = scale∘v

That is LIBLINEAR's objective on the rows times ``scale``, and the intercept is penalised as there
(``intercept_scaling=1``). The rows are never multiplied: the scale is a factor of the products with
vectors. Under the squared hinge, a feature that only one row holds costs nothing: its best weight,
given all others, has a closed form, and the row then has a smaller cost.

Newton's method [1]_ on the rows within the margin. Each step is a system with one unknown per such
row, solved by conjugate gradients until its duality gap is a tenth of what the step can gain. Under
the squared hinge, where the package was compiled, dual coordinate descent [2]_ comes first: it is
several times as quick where the tolerance is loose, and Newton's method where it is tight. The
loops let other threads run, and every sum has a fixed order: a solution has the same bits whatever
other threads do.

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

# The part of the possible gain of a Newton step that conjugate gradients may leave.
_CG_SHARE = 0.1
# The largest number of conjugate gradients in a step, and of steps of a search along a line.
_MAX_PRODUCTS = 5000
_MAX_TRIALS = 50
# The slope along a line, relative to where the search begins, at which it ends.
_SLOPE_SHARE = 1e-3
# Below this tolerance Newton's method is quicker than coordinate descent.
_LOOSE = 1e-2
# How far apart projected gradients may be, for a tolerance: accuracy on held-out rows is then that
# of the optimum, and at twice as much it is lower.
_RANGE = 50.0
# With fewer values Newton's method is quick enough. Its steps are the same, to rounding, for a row
# of weight two and for that row twice, and in any order of the rows.
_MIN_VALUES = 1 << 17
# Rows that descent can't learn in this number of passes (e.g. if C is large) are left to Newton's
# method.
_MAX_PASSES = 50
# If rows cost much, a Newton step takes as long as many passes: this many times more passes then.
_HEAVY_FACTOR = 5
# What may be left to gain at a tolerance of 0.01, as a share of |v|² / 2. It falls with the square
# of the tolerance, as what is left does with the square of the gradient.
_GAIN_SHARE = 0.01
# A gain of a smaller share of the penalty, and so of the objective, is lost in rounding.
_ROUNDING = 2.0**-52
# A gain of this share of bias² / 2 does not count.
_BIAS_SHARE = 1e-12
# Where rows cost no more than this, margins near those of the optimum are losses near its own.
MAX_LIGHT = 1.0
# Costs beyond this are approached by this factor at a time. At once, the first models of Newton's
# method would hold nearly every row, and be too steep for conjugate gradients.
_COST_FACTOR = 100.0


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """What a solver found.

    Attributes
    ----------
    rows : SolverRows
    shared : float64 (n_shared,)
        Weights of the columns that two rows hold, of the rows without the scale.
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
        """Put one weight per term into an array of zeros."""
        if self.rows.parts is None:
            self._put_all(column)
        else:
            column[:] = self.weights

    def _put_all(self, column: Floats) -> None:
        """Put the weights of all columns, of terms and of parts, into an array of zeros."""
        column[self.rows.columns] = self.shared
        # Computed only here, as there are many, and as many classes.
        scale = self.scales.of_own(self.rows)
        alone = scale * (scale * self.rows.value) * (self.duals * self.y)[self.rows.row]
        # Most rows are beyond the margin, and the columns that they alone hold have no weight.
        places = np.flatnonzero(alone)
        column[self.rows.column[places]] = alone[places]


@dataclass(frozen=True)
class LinearSolver:
    """The optimum for one class against the rest.

    Attributes
    ----------
    loss : {"hinge", "log"}
        Squared hinge, or logistic.
    tol : float
        Newton's method ends where the gradient's length is at most ``tol`` times that at zero,
        times the share of the rarer of the two sides, as LIBLINEAR's does. Coordinate descent
        ends where the projected gradients of the duals are at most ``50 · tol`` apart; it stands
        alone where ``tol >= 0.01`` and 50 passes are enough. Else Newton's method goes on.

        Rows that cost much more than others are nearly all of the gradient at zero, and small
        errors of their margins are large losses. So what Newton's next step gains must also be
        little beside the penalty of the weights, whatever rows cost: a hundredth of it at the
        default tolerance. So must descent's duality gap, where a row costs more than 1.
    max_iter : int
        Largest number of passes, and of Newton steps; five times as many passes if a row costs more
        than 1.
    """

    loss: str = "hinge"
    tol: float = 1e-2
    max_iter: int = 100

    def classes_at_once(self, rows: SolverRows) -> int:
        """How many classes `solve` solves in less time than one after the other."""
        return 1 if self._loops(rows.shared) is None else LANES

    def solve(
        self, rows: SolverRows, positives: Sequence[NDArray[np.bool_]], costs: Sequence[Floats],
        scales: Sequence[Scales],
        duals: Sequence[Floats | None] | None = None,
        starts: Sequence[tuple[Floats, float] | None] | None = None,
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
            Those of solutions of nearly the same rows, to start from.
        starts : sequence of (float64 (n_shared,), float) or None, optional
            Their weights of the shared columns and their intercepts. Without either, and without
            descent, a multiple of the scale, which is naive Bayes where that is a log-count ratio.
        """
        problems = [self._problem(rows, *each)
                    for each in zip(positives, costs, scales, strict=True)]
        duals, starts = duals or [None for _ in problems], starts or [None for _ in problems]
        points = [None if start is None else problem.at(*start)
                  for problem, start in zip(problems, starts, strict=True)]
        loops = self._loops(rows.shared)
        ends: list[DualPoint | None] = [None] * len(problems)
        if loops is not None and not (self._tight and all(p is not None for p in points)):
            ends = [*self._descend(loops, problems, [
                d if p is None else problem.duals(p)
                for problem, d, p in zip(problems, duals, points, strict=True)])]
        return [self._finish(*each) for each in zip(problems, ends, duals, points, strict=True)]

    def _problem(
        self, rows: SolverRows, positive: NDArray[np.bool_], cost: Floats,
        scales: Scales,
    ) -> _Problem:
        y = np.where(positive, 1.0, -1.0)
        own = scales.of_own(rows) * rows.value
        squares = np.bincount(rows.row, weights=own * own, minlength=len(y))
        # What the best weights of a row's own features leave of its squared hinge.
        reduced = cost / (1.0 + 2.0 * cost * squares)
        return _Problem(rows, rows.shared, scales, y, reduced, LOSSES[self.loss])

    def _loops(self, rows: sp.csr_array) -> Any | None:
        by_descent = self.loss == "hinge" and rows.nnz >= _MIN_VALUES
        kernel = usable(SOLVER).kernel if by_descent else None
        return None if kernel is None else kernel.descent

    @property
    def _tight(self) -> bool:
        return self.tol < _LOOSE

    def _descend(
        self, loops: Any, problems: list[_Problem], starts: list[Floats | None]
    ) -> list[DualPoint]:
        end = _RANGE * max(self.tol, _LOOSE), min(self.max_iter, _MAX_PASSES)
        # What does not converge so soon goes on in another way.
        limit = self._max_passes(max(problem.cost.max() for problem in problems))
        if len(problems) == 1:
            descents = [_descend(loops, problems[0], *end, starts[0], limit=limit)]
        else:
            descents = descend_together(
                loops, problems[0].rows, [each.scale for each in problems],
                [each.y for each in problems], [each.cost for each in problems], *end, starts,
                limit)
        return [self._nearer(loops, *each) for each in zip(problems, descents, strict=True)]

    def _max_passes(self, cost: float) -> int:
        return self.max_iter * (1 if cost <= MAX_LIGHT else _HEAVY_FACTOR)

    def _nearer(self, loops: Any, problem: _Problem, descent: DualPoint) -> DualPoint:
        """If rows cost much, descent goes on until the losses are near those of the optimum."""
        if problem.cost.max() <= MAX_LIGHT:
            return descent
        tol, max_passes = max(self.tol, _LOOSE), self._max_passes(problem.cost.max())
        range_ = _RANGE * tol
        while not (near := problem.is_near(descent, tol)) and descent.passes < max_passes:
            range_ *= 0.5 if descent.converged else 1.0
            more = _descend(loops, problem, range_, max_passes - descent.passes, descent.duals,
                            before=descent.passes, limit=max_passes)
            descent = replace(more, passes=descent.passes + more.passes)
        return replace(descent, converged=near)

    def _finish(
        self, problem: _Problem, descent: DualPoint | None, duals: Floats | None,
        point: _Point | None,
    ) -> LinearSolution:
        """The solution, by Newton's method if descent did not find it."""
        if descent is not None and descent.converged and not self._tight:
            return problem.solution(
                descent.weights, descent.bias, descent.duals, descent.passes, True)
        more = 0 if descent is None else max(descent.passes - _MAX_PASSES, 0)
        end = _newton(problem, self._start(problem, descent, duals, point), self.tol,
                      self.max_iter + more)
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
        v is scale∘(rows'·unknowns) where every step went the whole way.
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
    """The objective on the shared columns."""

    whole: SolverRows
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
        pulls: Floats = -self.cost * slope
        return pulls

    def of_duals(self, duals: Floats) -> _Point:
        """The point to which the rows pull."""
        pull = duals * self.y
        return self.at(self.scale**2 * (self.rows.T @ pull), float(pull.sum()))

    def solution(
        self, weights: Floats, bias: float, duals: Floats, n_iter: int, converged: bool
    ) -> LinearSolution:
        """The solution of weights of the shared columns."""
        return LinearSolution(
            self.whole, weights, self.scales, self.y, bias, duals, n_iter, converged)

    def at(self, weights: Floats, bias: float) -> _Point:
        """The point of weights of the rows; 0 where a feature has no scale."""
        v = np.divide(weights, self.scale, out=np.zeros(len(weights)), where=self.scale != 0)
        return _Point(v, float(bias), self.rows @ (self.scale * v) + bias)

    def gradient_at_zero(self) -> float:
        """Its length, times the share of the rarer side."""
        slope, _ = self.loss.derivatives(np.zeros(len(self.y)))
        pull = -self.cost * slope * self.y
        gradient = self.scale * (self.rows.T @ pull)
        share = min(float(np.mean(self.y > 0)), float(np.mean(self.y < 0)))
        return share * float(np.sqrt(_dot(gradient, gradient) + pull.sum() ** 2))

    def is_near(self, descent: DualPoint, tol: float) -> bool:
        """Whether the losses of descent are near those of the optimum."""
        point = self.at(descent.weights, descent.bias)
        return self.gap(point, descent.duals) <= point.allowed_gain(tol)

    def gap(self, point: _Point, duals: Floats) -> float:
        """How far the squared hinge's objective is above its dual, at the point of the duals."""
        paid = self.cost > 0
        pulls, duals, cost = self.duals(point)[paid], duals[paid], self.cost[paid]
        losses = (pulls * pulls + duals * duals) / (4.0 * cost) - duals
        return 2.0 * point.penalty + float(losses.sum())

    def capped(self, max_cost: float) -> _Problem:
        """The problem in which no row costs more than ``max_cost``."""
        return replace(self, cost=np.minimum(self.cost, max_cost))

    def multiple_of_scale(self) -> _Point:
        """The best v that is the same number everywhere, and its bias, roughly: Newton in two
        dimensions."""
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


def _descend(
    loops: Any, problem: _Problem, range_: float, max_passes: int, start: Floats | None,
    **shown: int,
) -> DualPoint:
    return descend(loops, problem.rows, problem.scale, problem.y, problem.cost, range_, max_passes,
                   start, **shown)


def _approach(problem: _Problem, tol: float, max_steps: int) -> _State:
    """A start without earlier weights: near the optimum of smaller costs, if costs are large."""
    cap = _COST_FACTOR
    state = _State.at(problem.capped(cap).multiple_of_scale())
    while cap < problem.cost.max():
        state = _newton(problem.capped(cap), state, tol, max_steps)
        cap *= _COST_FACTOR
    return state


def _newton(problem: _Problem, start: _State, tol: float, max_steps: int) -> _State:
    """The optimum, unless ``max_steps`` steps are too few."""
    point, unknowns = start.point, start.unknowns.copy()
    tolerance = tol * problem.gradient_at_zero()
    shown = line()
    for step in range(start.steps, max(max_steps, start.steps) + 1):
        shown.step(f"step {step + 1} of at most {max_steps}")
        slope, curvature = problem.loss.derivatives(problem.y * point.margins)
        active = np.flatnonzero(problem.cost * curvature > 0)
        model = _Model.of(problem, point, active, slope, curvature)
        gradient = point.v - problem.scale * (model.columns @ model.pull)
        of_bias = point.bias - float(model.pull.sum())
        square = _dot(gradient, gradient) + of_bias * of_bias
        is_flat, allowed = bool(np.sqrt(square) <= tolerance), point.allowed_gain(tol)
        # The penalty alone bends the objective by 1.
        if is_flat and 0.5 * square <= allowed:
            return _State(point, unknowns, step, True)
        if step >= max_steps and not is_flat:
            break
        minimum, is_minimum = model.minimum(unknowns[active], point)
        direction = problem.scale * (model.columns @ minimum) - point.v
        bias_direction = float(minimum.sum()) - point.bias
        descent = _dot(gradient, direction) + of_bias * bias_direction
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
    """The quadratic model of the objective at a point, in the rows where the loss bends.

    With ``w = scale∘(rows'·a)``, its minimum solves ``(K + 1 / bend) a = target``, where K are the
    rows' products with each other, that of the bias among them.
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
        everything = len(active) == len(problem.y)
        rows = problem.rows if everything else problem.rows[active]
        cost, y = problem.cost[active], problem.y[active]
        pull, bend = -cost * slope[active] * y, cost * curvature[active]
        misses = np.divide(pull, bend, out=np.zeros(len(active)), where=bend > 0)
        return cls(rows, rows.T, problem.scale**2, pull, bend, point.margins[active] + misses,
                   misses)

    def minimum(self, unknowns: Floats, point: _Point) -> tuple[Floats, bool]:
        """Unknowns whose point gains nine tenths, or more, of what the model can gain.

        Also whether conjugate gradients came so far.
        """
        here = point.penalty + 0.5 * _dot(self.bend * self.misses, self.misses)
        ridge = 1.0 / self.bend
        rest = self.target - (self._products(unknowns) + ridge * unknowns)
        scaled = self.bend * rest
        direction, square = scaled.copy(), _dot(scaled, rest)
        enough = 1e-30 * square
        for _ in range(_MAX_PRODUCTS):
            if square <= enough:
                return unknowns, True
            image = self._products(direction) + ridge * direction
            length = square / _dot(direction, image)
            unknowns = unknowns + length * direction
            rest -= length * image
            scaled = self.bend * rest
            before, square = square, _dot(scaled, rest)
            # No point of the model is below its dual.
            misses = rest + ridge * unknowns
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
