"""The solver against LIBLINEAR at a tight tolerance, by hand, and with very unequal weights.

If rows or classes have much larger weights than others, the oracle is a trust-region method, whose
last gradient gives a lower bound of the objective.
"""

import threading
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from tests.bayes.samples import liblinear
from textnb import NBLinear
from textnb.bayes import linear_solver
from textnb.bayes.labels import Labels
from textnb.bayes.learned import WarmStart
from textnb.bayes.linear import learn_and_calibrate
from textnb.bayes.linear_solver import LinearSolver
from textnb.bayes.solver_rows import Scales, SolverRows

LOSSES = ("hinge", "log")
every_loss = pytest.mark.parametrize("loss", LOSSES)


@pytest.fixture(params=["as the size decides", "descent first"], autouse=True)
def _solvers(request, monkeypatch):
    if request.param == "descent first":
        monkeypatch.setattr(linear_solver, "_MIN_DESCENT_VALUES", 0)


class Objective:
    """``|v|² / 2 + bias² / 2 + Σ cost · loss`` of rows times a scale; the bias is last in v."""

    def __init__(self, rows, positive, cost, loss, scale=1.0):
        self.rows = np.column_stack([rows.toarray() * scale, np.ones(rows.shape[0])])
        self.y, self.cost, self.loss = np.where(positive, 1.0, -1.0), cost, loss
        self.scale = np.broadcast_to(scale, self.rows.shape[1] - 1)

    def of_unscaled(self, weights, bias):
        """The value for the weights of the unscaled features, as models have them."""
        v = np.divide(weights, self.scale, out=np.zeros(len(weights)), where=self.scale != 0)
        return self.value(np.append(v, bias))

    def value(self, v):
        margins = self.y * (self.rows @ v)
        losses = (np.maximum(1 - margins, 0) ** 2 if self.loss == "hinge"
                  else np.logaddexp(0, -margins))
        return 0.5 * v @ v + self.cost @ losses

    def gradient(self, v):
        margins = self.y * (self.rows @ v)
        slopes = -2 * np.maximum(1 - margins, 0) if self.loss == "hinge" else -expit(-margins)
        return v + self.rows.T @ (self.cost * slopes * self.y)

    def hessian(self, v):
        margins = self.y * (self.rows @ v)
        hess = 2.0 * (margins < 1) if self.loss == "hinge" else expit(margins) * expit(-margins)
        return np.eye(len(v)) + self.rows.T @ ((self.cost * hess)[:, None] * self.rows)

    def lower_bound(self):
        """A lower bound of all values: the objective is strongly convex with modulus 1."""
        v = minimize(self.value, np.zeros(self.rows.shape[1]), jac=self.gradient,
                     hess=self.hessian, method="trust-exact", options={"gtol": 1e-6}).x
        gradient = self.gradient(v)
        bound = self.value(v) - 0.5 * gradient @ gradient
        assert bound == pytest.approx(self.value(v), rel=1e-6)
        return bound

    def assert_solved(self, weights, bias, max_ratio=1.1):
        assert self.of_unscaled(weights, bias) <= max_ratio * self.lower_bound()


def some_rows(seed, n_rows=120, n_features=300):
    """Rows with many columns that only one row has, and labels that depend on them, with noise."""
    rng = np.random.default_rng(seed)
    rows = sp.random_array((n_rows, n_features), density=0.02, rng=rng, format="csr")
    rows = sp.csr_array(sp.hstack([rows, rng.random((n_rows, 4))], format="csr"))
    positive = rows @ rng.normal(size=n_features + 4) + 0.3 * rng.normal(size=n_rows) > 0.2
    return rows, np.asarray(positive), rng.uniform(-2.0, 2.0, n_features + 4)


def solve(solver, rows, positive, scale, cost=None, start=None):
    """The solution of one class against the rest, from weights of all columns."""
    prepared = SolverRows.of(rows, solver.loss) if sp.issparse(rows) else rows
    starts = None if start is None else [(start.weights[prepared.columns], start.intercept)]
    cost = np.ones(len(positive)) if cost is None else cost
    scales = [Scales(scale[prepared.columns], scale[prepared.column])]
    return solver.solve(prepared, [positive], [cost], scales, weights=starts)[0]


@every_loss
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_the_optimum_is_liblinears(loss, C):
    for seed in range(3):
        rows, positive, scale = some_rows(seed)
        weight = np.random.default_rng(seed).integers(1, 4, rows.shape[0]).astype(float)
        solution = solve(LinearSolver(loss, 1e-10), rows, positive, scale, C * weight)
        scaled = sp.csr_matrix(rows @ sp.diags_array(scale))
        expected = liblinear(loss, scaled, positive, C, weight)
        assert solution.converged
        np.testing.assert_allclose(solution.weights, scale * expected.coef_[0], rtol=0, atol=1e-6)
        np.testing.assert_allclose(solution.intercept, expected.intercept_[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize(("rows", "weights"), [
    # |v|²/2 + b²/2 + Σ (1 - y(2v x + b))² of x = 1, -1 and scale 2: b = 0, v/2 = 4 (1 - 2v),
    # so v = 8/17 and the weight 2v.
    ([[1.0], [-1.0]], [16 / 17]),
    # Each row has one own feature of scaled value 2: v = 2·2(1 - 2v), so v = 4/9; b = 0.
    ([[1.0, 0.0], [0.0, 1.0]], [8 / 9, -8 / 9])], ids=["one feature", "a feature of each row"])
def test_weights_by_hand(rows, weights):
    solution = solve(LinearSolver("hinge", 1e-12), sp.csr_array(np.array(rows)),
                     np.array([True, False]), np.full(len(weights), 2.0))
    np.testing.assert_allclose([*solution.weights, solution.intercept], [*weights, 0], atol=1e-12)


@every_loss
def test_a_smaller_tolerance_never_gives_a_larger_objective(loss):
    rows, positive, scale = some_rows(7)
    objective, values = Objective(rows, positive, np.ones(len(positive)), loss, scale), []
    for tol in (1e-1, 1e-2, 1e-4, 1e-10):
        solution = solve(LinearSolver(loss, tol), rows, positive, scale)
        values.append(objective.of_unscaled(solution.weights, solution.intercept))
    assert all(a >= b - 1e-9 for a, b in pairwise(values))
    assert values[1] <= 1.05 * values[-1]


@every_loss
def test_a_warm_start_from_fewer_rows_takes_fewer_iterations(loss):
    rows, positive, scale = some_rows(3, n_rows=400)
    solver = LinearSolver(loss, 1e-8)
    few = solve(solver, rows[:390], positive[:390], scale)
    cold = solve(solver, rows, positive, scale)
    warm = solve(solver, rows, positive, scale, start=few)
    np.testing.assert_allclose(warm.weights, cold.weights, rtol=0, atol=1e-6)
    assert warm.n_iter <= cold.n_iter
    assert solve(solver, rows, positive, scale, start=cold).n_iter <= 1


def test_concurrent_threads_get_the_same_bits():
    rows, positive, scale = some_rows(5, n_rows=2000, n_features=3000)
    prepared, solutions = SolverRows.of(rows, "hinge"), []
    threads = [threading.Thread(target=lambda: solutions.append(
        solve(LinearSolver(), prepared, positive, scale).weights)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(solutions[0], weights) for weights in solutions[1:])
    assert len(solutions) == 4


@every_loss
def test_another_order_of_rows_or_rows_of_cost_0_only_change_the_rounding(loss):
    rows, positive, scale = some_rows(6)
    solver, order = LinearSolver(loss, 1e-10), np.random.default_rng(0).permutation(120)
    one, other = (solve(solver, rows[at], positive[at], scale) for at in (slice(None), order))
    np.testing.assert_allclose(one.weights, other.weights, rtol=0, atol=1e-8)
    free = solve(solver, rows, positive, scale, np.where(np.arange(120) < 50, 1.0, 0.0))
    without = solve(solver, rows[:50], positive[:50], scale)
    np.testing.assert_allclose(free.weights, without.weights, rtol=0, atol=1e-6)


@every_loss
def test_rows_without_features_and_scales_of_zero_have_a_solution(loss):
    rows = sp.csr_array(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    solution = solve(LinearSolver(loss, 1e-10), rows, np.array([True, False, False]), np.zeros(3))
    assert solution.converged
    assert not solution.weights.any()
    assert solution.intercept < 0


def test_too_few_iterations_are_not_reported_as_convergence():
    solution = solve(LinearSolver("hinge", 1e-12, max_iter=1), *some_rows(9))
    assert not solution.converged
    assert solution.n_iter == 1


# Rows and classes with large or small weights


def some_texts(seed=0, n=250):
    """Counts of words that differ between two classes, one of which is rare; 5 % wrong labels."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.2
    wrong = labels ^ (rng.random(n) < 0.05)
    rates = rng.gamma(0.3, 1.0, (2, 60))
    return sp.csr_array(rng.poisson(rates[wrong.astype(int)] * 0.5)), np.where(labels, "b", "a")


COUNTS, LABELS = some_texts()
FACTORS = (1e-3, 1e-2, 0.1, 10.0, 1e2, 1e3, 1e4, 1e5)
every_factor = pytest.mark.parametrize("factor", FACTORS)
DRAW = np.random.default_rng(1).random(len(LABELS))
WEIGHTS = {
    "spread": 10 ** (8 * DRAW - 3), "all heavy": np.full(len(LABELS), 1e5),
    "some heavy": np.where(DRAW < 0.02, 1e5, 1.0), "most heavy": np.where(DRAW < 0.6, 1e5, 1.0),
    "some light": np.where(DRAW < 0.1, 1e-3, 1.0), "all light": np.full(len(LABELS), 1e-3),
    **{f"{factor} for {name}": np.where(label == LABELS, factor, 1.0) for factor in FACTORS
       for label, name in (("a", "the frequent class"), ("b", "the rare class"))}}


@pytest.mark.sweep(8)
@every_loss
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("settings", "max_ratio"), [
    ({}, 1.1), ({"tol": 1e-5, "max_iter": 1000}, 1.001)], ids=["default", "tight"])
def test_rows_of_any_weight_reach_the_loss_of_the_optimum(loss, weights, settings, max_ratio):
    model = NBLinear(power=0.0, loss=loss, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(COUNTS, LABELS, WEIGHTS[weights])
    Objective(model.feature_map_.sparse(COUNTS), LABELS == "b", WEIGHTS[weights], loss
              ).assert_solved(model.coef_[0], model.intercept_, max_ratio)


@every_loss
@every_factor
def test_scales_and_features_of_one_row_reach_the_optimum_too(loss, factor):
    rows, positive, scale = some_rows(2, n_rows=80, n_features=60)
    cost = np.where(positive, factor, 1.0)
    solution = solve(LinearSolver(loss), rows, positive, scale, cost)
    assert solution.converged
    Objective(rows, positive, cost, loss, scale).assert_solved(solution.weights, solution.intercept)


@every_loss
@every_factor
def test_labels_of_any_weight_reach_the_loss_of_the_optimum(loss, factor):
    counts, labels = some_texts(2)
    rng = np.random.default_rng(0)
    rows = np.append(np.flatnonzero(labels == "b"), np.flatnonzero(rng.random(len(labels)) < 0.1))
    codes = np.repeat([0, 1], [(labels == "b").sum(), len(rows) - (labels == "b").sum()])
    lists = Labels(np.array(["b", "c"]), rows, codes, len(labels), "sigmoid")
    model = NBLinear(power=0.0, loss=loss, held_out=0.0, class_weight={"b": factor, "c": factor})
    of_row = np.where(rng.random(len(labels)) < 0.5, 3.0, 1.0)
    form = learn_and_calibrate(model, counts, lists, of_row).form
    for k in range(2):
        cost = of_row * np.where(lists.has(k), factor, 1.0)
        Objective(form.features.sparse(counts), lists.has(k), cost, loss).assert_solved(
            form.weights[:, k], form.intercept[k])


@pytest.mark.sweep(3)
@every_loss
@every_factor
def test_a_warm_start_from_other_class_weights_reaches_the_optimum(loss, factor):
    counts, labels = some_texts(3)
    even = NBLinear(power=0.0, loss=loss, held_out=0.0)
    classes = Labels.of_classes(labels)
    of_even = even.learn_rows(counts, classes)
    start = WarmStart(of_even.form, np.arange(counts.shape[1]))
    model = NBLinear(**{**even.get_params(), "class_weight": {"b": factor}})
    cost = np.where(labels == "b", factor, 1.0)
    for counted in (None, of_even.counts):
        form = model.learn_rows(counts, classes, start=start, statistics=counted).form
        Objective(form.features.sparse(counts), labels == "b", cost, loss).assert_solved(
            form.weights[:, 1], form.intercept[1])


@pytest.mark.parametrize("_solvers", ["descent first"], indirect=True)
def test_descent_solves_heavy_rows_without_newton_steps(monkeypatch):
    if linear_solver.load_usable(linear_solver.SOLVER).kernel is None:
        pytest.skip("the solver is not compiled")
    monkeypatch.setattr(linear_solver, "_newton", None)
    model = NBLinear(power=0.0, C=1e3).fit(COUNTS, LABELS)
    Objective(model.feature_map_.sparse(COUNTS), LABELS == "b", np.full(len(LABELS), 1e3), "hinge"
              ).assert_solved(model.coef_[0], model.intercept_)


# Solvers that reach their limit of iterations


def fail_on_held_out_rows(monkeypatch):
    finish = LinearSolver._finish

    def not_converged(self, problem, result, duals, point):
        solution = finish(self, problem, result, duals, point)
        object.__setattr__(solution, "converged", duals is None)
        return solution

    monkeypatch.setattr(LinearSolver, "_finish", not_converged)


@pytest.mark.parametrize(("change", "learn", "words"), [
    (lambda patch: patch.setattr(linear_solver, "_MAX_CG_STEPS", 1),
     lambda: NBLinear(loss="log", class_weight={"b": 1e5}).fit(COUNTS, LABELS),
     "smaller weights of rows and classes"),
    (fail_on_held_out_rows,
     lambda: learn_and_calibrate(NBLinear(), COUNTS, Labels.of_classes(LABELS)),
     "failed to converge")], ids=["conjugate gradients", "the model of held-out rows"])
def test_a_solver_that_does_not_converge_warns(change, learn, words, monkeypatch):
    change(monkeypatch)
    with pytest.warns(ConvergenceWarning, match=words):
        learn()
