"""Dual coordinate descent: compiled and uncompiled, against Newton's method, and its starts.

`scripts/kernel --check` runs this with the bounds of all arrays checked.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from tests.bayes.test_linear_solver import objective, solve
from tests.native_sources import source, with_views
from textnb.bayes import linear_solver
from textnb.bayes.dual_descent import descend, descend_together
from textnb.bayes.linear_solver import LinearSolver
from textnb.bayes.solver_rows import SolverRows
from textnb.errors import ParameterError
from textnb.runtime import native
from textnb.runtime.native import SOLVER, Build, build, usable

needs_compiler = pytest.mark.skipif(
    build(SOLVER).kernel is None, reason=f"the solver is not compiled: {build(SOLVER).reason}")


def problem(seed, n_rows=60, n_features=40):
    rng = np.random.default_rng(seed)
    rows = sp.csr_array(sp.random_array((n_rows, n_features), density=0.15, rng=rng, format="csr"))
    y = np.where(rows @ rng.normal(size=n_features) + 0.3 * rng.normal(size=n_rows) > 0, 1.0, -1.0)
    return rows, rng.uniform(-2.0, 2.0, n_features), y, rng.uniform(0.5, 2.0, n_rows)


def compiled_descent():
    kernel = usable(SOLVER).kernel
    return kernel and kernel.descent


def uncompiled():
    """The loops as Python runs them: arrays are memoryviews, whose bounds are checked."""
    pytest.importorskip("cython", reason="the uncompiled source needs Cython")
    module = source("bayes/native/descent.py")
    assert module.SOURCE == ""
    return SimpleNamespace(**{name: with_views(getattr(module, name)) for name in (
        "begin", "descend", "begin_lanes", "descend_lanes")})


@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
def test_uncompiled_it_has_the_bits_that_it_has_compiled(wide):
    loops, starts = uncompiled(), (None, np.random.default_rng(0).uniform(0.0, 1.0, 60))
    for seed, start in enumerate(starts):
        rows, scale, y, cost = problem(seed)
        if wide:
            rows = sp.csr_array((rows.data, rows.indices.astype(np.int64),
                                 rows.indptr.astype(np.int64)), shape=rows.shape)
        python = descend(loops, rows, scale, y, cost, 1e-3, 100, start)
        assert python.converged
        if build(SOLVER).kernel is not None:
            compiled = descend(build(SOLVER).kernel.descent, rows, scale, y, cost, 1e-3, 100, start)
            assert np.array_equal(python.weights, compiled.weights)
            assert np.array_equal(python.duals, compiled.duals)
            assert (python.bias, python.passes) == (compiled.bias, compiled.passes)


def test_it_finds_the_optimum_and_its_weights_are_those_of_the_duals():
    loops = compiled_descent() or uncompiled()
    for seed in range(3):
        rows, scale, y, cost = problem(seed)
        found = descend(loops, rows, scale, y, cost, 1e-9, 5000)
        assert found.converged
        pull = found.duals * y
        np.testing.assert_allclose(found.weights, scale**2 * (rows.T @ pull), atol=1e-12)
        np.testing.assert_allclose(found.bias, pull.sum(), atol=1e-12)
        best = objective(rows, y > 0, cost, scale, found.weights, found.bias, "hinge")
        # At the optimum the primal's objective is that of the dual.
        dual = found.duals.sum() - 0.5 * ((found.weights / scale) @ (found.weights / scale)
                                          + found.bias**2) - (found.duals**2 / (4 * cost)).sum()
        assert best == pytest.approx(dual, rel=1e-8)
        rng = np.random.default_rng(seed)
        for _ in range(5):
            other = found.weights + 1e-3 * rng.normal(size=len(scale)) * scale
            assert objective(rows, y > 0, cost, scale, other, found.bias, "hinge") > best


def test_duals_of_nearly_the_same_rows_are_a_start():
    loops = compiled_descent() or uncompiled()
    rows, scale, y, cost = problem(4)
    found = descend(loops, rows, scale, y, cost, 1e-6, 5000)
    again = descend(loops, rows, scale, y, cost, 1e-6, 5000, found.duals)
    assert again.passes <= 2 < found.passes
    np.testing.assert_allclose(again.weights, found.weights, atol=1e-6)
    few = descend(loops, rows[:55], scale, y[:55], cost[:55], 1e-6, 5000, found.duals[:55])
    cold = descend(loops, rows[:55], scale, y[:55], cost[:55], 1e-6, 5000)
    np.testing.assert_allclose(few.weights, cold.weights, atol=1e-5)
    assert few.passes < cold.passes


def test_rows_that_cost_nothing_and_too_few_passes():
    loops = compiled_descent() or uncompiled()
    rows, scale, y, cost = problem(5)
    cost[50:] = 0.0
    found = descend(loops, rows, scale, y, cost, 1e-6, 5000)
    assert not found.duals[50:].any()
    alone = descend(loops, rows[:50], scale, y[:50], cost[:50], 1e-6, 5000)
    assert np.array_equal(found.weights, alone.weights)
    assert not descend(loops, rows, scale, y, cost, 1e-9, 1).converged
    nothing = descend(loops, rows, scale, y, np.zeros(60), 1e-6, 10)
    assert nothing.converged
    assert not nothing.weights.any()


def problems(n, seed=7):
    """Problems of the same rows: scales, y and costs of each."""
    rows, *first = problem(seed)
    rng = np.random.default_rng(seed)
    more = [(rng.uniform(-2.0, 2.0, rows.shape[1]), rng.choice([-1.0, 1.0], rows.shape[0]),
             rng.uniform(0.5, 2.0, rows.shape[0])) for _ in range(n - 1)]
    return rows, *zip(first, *more, strict=True)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_several_problems_at_once_have_the_optimum_of_each(n):
    loops = compiled_descent() or uncompiled()
    rows, scales, ys, costs = problems(n)
    for starts in ([None] * n, [None, *[np.full(60, 0.5)] * (n - 1)]):
        together = descend_together(loops, rows, scales, ys, costs, 1e-9, 5000, starts)
        assert len(together) == n
        for found, scale, y, cost in zip(together, scales, ys, costs, strict=True):
            alone = descend(loops, rows, scale, y, cost, 1e-9, 5000)
            assert found.converged
            np.testing.assert_allclose(found.weights, alone.weights, rtol=0, atol=1e-7)
            np.testing.assert_allclose(found.bias, alone.bias, rtol=0, atol=1e-7)
            np.testing.assert_allclose(found.duals, alone.duals, rtol=0, atol=1e-7)
            pull = found.duals * y
            np.testing.assert_allclose(found.weights, scale**2 * (rows.T @ pull), atol=1e-12)


def test_a_problem_has_the_same_bits_whatever_problems_are_beside_it():
    loops = compiled_descent() or uncompiled()
    rows, scales, ys, costs = problems(4)
    whole = descend_together(loops, rows, scales, ys, costs, 1e-3, 100, [None] * 4)
    assert len({found.passes for found in whole}) > 1
    for some in ([0, 1], [3, 2, 0]):
        found = descend_together(loops, rows, *([each[k] for k in some] for each in (
            scales, ys, costs)), 1e-3, 100, [None] * len(some))
        for k, each in zip(some, found, strict=True):
            assert np.array_equal(each.weights, whole[k].weights)
            assert (each.bias, each.passes) == (whole[k].bias, whole[k].passes)


@needs_compiler
def test_uncompiled_several_problems_have_the_bits_that_they_have_compiled():
    rows, scales, ys, costs = problems(3)
    starts = [None, np.full(60, 0.25), None]
    python, compiled = (descend_together(loops, rows, scales, ys, costs, 1e-3, 100, starts)
                        for loops in (uncompiled(), build(SOLVER).kernel.descent))
    for one, other in zip(python, compiled, strict=True):
        assert np.array_equal(one.weights, other.weights)
        assert np.array_equal(one.duals, other.duals)
        assert (one.bias, one.passes) == (other.bias, other.passes)


def test_several_problems_where_rows_cost_nothing_or_passes_are_few():
    loops = compiled_descent() or uncompiled()
    rows, scales, ys, costs = problems(3)
    for cost in costs:
        cost[50:] = 0.0
    found = descend_together(loops, rows, scales, ys, costs, 1e-3, 100, [None] * 3)
    alone = descend_together(loops, rows[:50], scales, [y[:50] for y in ys],
                             [cost[:50] for cost in costs], 1e-3, 100, [None] * 3)
    for one, other in zip(found, alone, strict=True):
        assert np.array_equal(one.weights, other.weights)
        assert not one.duals[50:].any()
    few = descend_together(loops, rows, scales, ys, costs, 1e-9, 1, [None] * 3)
    assert not any(each.converged for each in few)
    nothing = descend_together(loops, rows, scales, ys, [np.zeros(60)] * 3, 1e-3, 9, [None] * 3)
    assert all(each.converged and not each.weights.any() for each in nothing)


@needs_compiler
@pytest.mark.parametrize("tol", [1e-2, 1e-10])
def test_without_the_compiled_loops_the_optimum_is_the_same(tol, monkeypatch):
    monkeypatch.setattr(linear_solver, "_MIN_VALUES", 0)
    rows, scale, y, cost = problem(6, n_rows=300, n_features=200)
    found = []
    for asked in ("on", "off"):
        monkeypatch.setenv("TEXTNB_KERNEL", asked)
        found.append(solve(LinearSolver("hinge", tol),
            SolverRows.of(rows, "hinge"), y > 0, cost, scale))
    one, other = (objective(rows, y > 0, cost, scale, each.weights, each.intercept, "hinge")
                  for each in found)
    assert one == pytest.approx(other, rel=0.03 if tol == 1e-2 else 1e-10)
    if tol < 1e-2:
        np.testing.assert_allclose(found[0].weights, found[1].weights, atol=1e-6)


def test_the_environment_decides(monkeypatch):
    monkeypatch.setenv("TEXTNB_KERNEL", "off")
    assert compiled_descent() is None
    monkeypatch.setenv("TEXTNB_KERNEL", "maybe")
    with pytest.raises(ParameterError, match="TEXTNB_KERNEL"):
        compiled_descent()
    monkeypatch.setattr(native, "build", lambda package: Build(None, "no compiler"))
    monkeypatch.setenv("TEXTNB_KERNEL", "on")
    with pytest.raises(ParameterError, match="is not compiled: no compiler"):
        compiled_descent()
    monkeypatch.delenv("TEXTNB_KERNEL")
    assert compiled_descent() is None


@needs_compiler
def test_what_was_compiled_from_another_source_is_not_used(monkeypatch):
    monkeypatch.setattr(native, "digest", lambda package, module: "another")
    modules, reason = build.__wrapped__(SOLVER)
    assert modules is None
    assert reason.startswith("it was compiled from another descent.py: install textnb again")
