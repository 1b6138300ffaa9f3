"""The solver against LIBLINEAR at a tight tolerance, and by hand."""

import threading
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from textnb.bayes import linear_solver
from textnb.bayes.linear_solver import LinearSolver
from textnb.bayes.solver_rows import SolverRows

LOSSES = ("hinge", "log")


@pytest.fixture(params=["as the size decides", "descent first"], autouse=True)
def _solvers(request, monkeypatch):
    if request.param == "descent first":
        monkeypatch.setattr(linear_solver, "_MIN_VALUES", 0)


def some_rows(seed, n_rows=120, n_features=300):
    """Rows with many columns that one row alone holds, and labels that they nearly tell."""
    rng = np.random.default_rng(seed)
    rows = sp.random_array((n_rows, n_features), density=0.02, rng=rng, format="csr")
    rows = sp.csr_array(sp.hstack([rows, rng.random((n_rows, 4))], format="csr"))
    positive = rows @ rng.normal(size=n_features + 4) + 0.3 * rng.normal(size=n_rows) > 0.2
    return rows, np.asarray(positive), rng.uniform(-2.0, 2.0, n_features + 4)


def solve(solver, rows, positive, cost, scale, start=None):
    """The solution of one class against the rest, from weights of all columns."""
    starts = None if start is None else [(start[0][rows.columns], start[1])]
    return solver.solve(rows, [positive], [cost],
                        [(scale[rows.columns], scale[rows.column])], starts=starts)[0]


def objective(rows, positive, cost, scale, weights, bias, loss):
    v = np.divide(weights, scale, out=np.zeros(len(scale)), where=scale != 0)
    margins = np.where(positive, 1, -1) * (rows @ weights + bias)
    losses = (np.maximum(1 - margins, 0) ** 2 if loss == "hinge" else np.logaddexp(0, -margins))
    return 0.5 * (v @ v + bias**2) + cost @ losses


def liblinear(loss, scaled, positive, C, weight):
    if loss == "hinge":
        model = LinearSVC(C=C, tol=1e-10, max_iter=10_000, dual=False)
    else:
        model = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, solver="liblinear")
    return model.fit(scaled, positive, sample_weight=weight)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_the_optimum_is_liblinears(loss, C):
    for seed in range(3):
        rows, positive, scale = some_rows(seed)
        weight = np.random.default_rng(seed).integers(1, 4, rows.shape[0]).astype(float)
        found = solve(LinearSolver(loss, 1e-10),
            SolverRows.of(rows, loss), positive, C * weight, scale)
        scaled = sp.csr_matrix(rows @ sp.diags_array(scale))
        expected = liblinear(loss, scaled, positive, C, weight)
        assert found.converged
        np.testing.assert_allclose(found.weights, scale * expected.coef_[0], rtol=0, atol=1e-6)
        np.testing.assert_allclose(found.intercept, expected.intercept_[0], rtol=0, atol=1e-6)


def test_one_feature_by_hand():
    # |v|²/2 + b²/2 + Σ (1 - y(2v x + b))² of x = 1, -1 and scale 2: b = 0, v/2 = 4 (1 - 2v),
    # so v = 8/17 and the weight 2v.
    rows = sp.csr_array(np.array([[1.0], [-1.0]]))
    found = solve(LinearSolver("hinge", 1e-12),
        SolverRows.of(rows, "hinge"), np.array([True, False]), np.ones(2), np.array([2.0]))
    np.testing.assert_allclose([found.weights[0], found.intercept], [16 / 17, 0], atol=1e-12)


def test_features_of_one_row_alone_by_hand():
    # Each row has one own feature of scaled value 2: v = 2·2(1 - 2v), so v = 4/9; b = 0.
    rows = sp.csr_array(np.eye(2))
    found = solve(LinearSolver("hinge", 1e-12),
        SolverRows.of(rows, "hinge"), np.array([True, False]), np.ones(2), np.full(2, 2.0))
    np.testing.assert_allclose(found.weights, [8 / 9, -8 / 9], atol=1e-12)
    np.testing.assert_allclose(found.intercept, 0, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_looser_tolerance_is_a_worse_objective_and_none_is_below_the_optimum(loss):
    rows, positive, scale = some_rows(7)
    cost = np.ones(rows.shape[0])
    values = []
    for tol in (1e-1, 1e-2, 1e-4, 1e-10):
        found = solve(LinearSolver(loss, tol), SolverRows.of(rows, loss), positive, cost, scale)
        values.append(objective(rows, positive, cost, scale, found.weights, found.intercept, loss))
    assert all(a >= b - 1e-9 for a, b in pairwise(values))
    assert values[1] <= 1.05 * values[-1]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_solution_of_fewer_rows_is_a_start(loss):
    rows, positive, scale = some_rows(3, n_rows=400)
    solver, cost = LinearSolver(loss, 1e-8), np.ones(400)
    few = solve(solver, SolverRows.of(rows[:390], loss), positive[:390], cost[:390], scale)
    whole = SolverRows.of(rows, loss)
    cold = solve(solver, whole, positive, cost, scale)
    warm = solve(solver, whole, positive, cost, scale, (few.weights, few.intercept))
    np.testing.assert_allclose(warm.weights, cold.weights, rtol=0, atol=1e-6)
    assert warm.n_iter <= cold.n_iter
    again = solve(solver, whole, positive, cost, scale, (cold.weights, cold.intercept))
    assert again.n_iter <= 1


def test_the_bits_are_the_same_whatever_runs_beside():
    rows, positive, scale = some_rows(5, n_rows=2000, n_features=3000)
    prepared, cost = SolverRows.of(rows, "hinge"), np.ones(2000)
    found = []

    def in_thread():
        found.append(solve(LinearSolver(), prepared, positive, cost, scale).weights)

    threads = [threading.Thread(target=in_thread) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(found[0], weights) for weights in found[1:])


def test_the_order_of_rows_changes_rounding_alone():
    rows, positive, scale = some_rows(6)
    order = np.random.default_rng(0).permutation(rows.shape[0])
    cost = np.ones(rows.shape[0])
    solver = LinearSolver(tol=1e-10)
    one = solve(solver, SolverRows.of(rows, "hinge"), positive, cost, scale)
    other = solve(solver, SolverRows.of(rows[order], "hinge"), positive[order], cost, scale)
    np.testing.assert_allclose(one.weights, other.weights, rtol=0, atol=1e-8)


def test_rows_without_features_and_scales_of_zero_have_a_solution():
    rows = sp.csr_array(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    for loss in LOSSES:
        found = solve(LinearSolver(loss, 1e-10),
            SolverRows.of(rows, loss), np.array([True, False, False]), np.ones(3), np.zeros(3))
        assert found.converged
        assert not found.weights.any()
        assert found.intercept < 0


def test_a_cost_of_zero_is_a_row_that_is_not_there():
    rows, positive, scale = some_rows(8)
    cost = np.ones(rows.shape[0])
    cost[50:] = 0.0
    for loss in LOSSES:
        solver = LinearSolver(loss, 1e-10)
        with_zero = solve(solver, SolverRows.of(rows, loss), positive, cost, scale)
        without = solve(solver, SolverRows.of(rows[:50], loss), positive[:50], cost[:50], scale)
        np.testing.assert_allclose(with_zero.weights, without.weights, rtol=0, atol=1e-6)


def test_steps_that_end_too_soon_are_no_convergence():
    rows, positive, scale = some_rows(9)
    found = solve(LinearSolver("hinge", 1e-12, max_iter=1),
        SolverRows.of(rows, "hinge"), positive, np.ones(rows.shape[0]), scale)
    assert not found.converged
    assert found.n_iter == 1
