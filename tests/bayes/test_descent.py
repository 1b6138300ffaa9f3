"""Dual coordinate descent: compiled and uncompiled, of one problem and of several at once.

`scripts/kernel --check` runs this with the bounds of all arrays checked.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from tests.bayes.samples import with_wide_indices
from tests.bayes.test_linear_solver import Objective, solve
from tests.native_sources import source, with_views
from textnb.bayes import linear_solver
from textnb.bayes.dual_descent import descend, descend_together
from textnb.bayes.linear_solver import LinearSolver
from textnb.runtime import native
from textnb.runtime.native import SOLVER, load_compiled, load_usable

COMPILED = load_compiled(SOLVER)
needs_compiler = pytest.mark.skipif(
    COMPILED.kernel is None, reason=f"the solver is not compiled: {COMPILED.reason}")
# None: one problem, by the loops for one; or so many at once.
numbers = pytest.mark.parametrize("n", [None, 1, 2, 3, 4])


def compiled_descent():
    kernel = load_usable(SOLVER).kernel
    return kernel and kernel.descent


def uncompiled():
    """The loops as Python runs them: arrays are memoryviews, whose bounds are checked."""
    pytest.importorskip("cython", reason="the uncompiled source needs Cython")
    module = source("bayes/native/descent.py")
    assert module.SOURCE == ""
    return SimpleNamespace(**{name: with_views(getattr(module, name)) for name in (
        "begin", "descend", "begin_lanes", "descend_lanes")})


@pytest.fixture(scope="module")
def loops():
    return compiled_descent() or uncompiled()


def some_rows(seed, n_rows=60, n_features=40):
    rng = np.random.default_rng(seed)
    rows = sp.csr_array(sp.random_array((n_rows, n_features), density=0.15, rng=rng, format="csr"))
    y = np.where(rows @ rng.normal(size=n_features) + 0.3 * rng.normal(size=n_rows) > 0, 1.0, -1.0)
    return rows, y


def problems(n, seed=7, **sizes):
    """Rows, and the scale, y and cost of each of n problems; the first y is of the rows."""
    rows, y = some_rows(seed, **sizes)
    rng, (n_rows, n_features) = np.random.default_rng(seed), rows.shape
    return rows, [(rng.uniform(-2.0, 2.0, n_features), rng.choice([-1.0, 1.0], n_rows) if k else y,
                   rng.uniform(0.5, 2.0, n_rows)) for k in range(n)]


def solutions(loops, rows, parts, tol, most, starts=None, n=None):
    """Each problem's, by itself if n is None."""
    starts = [None] * len(parts) if starts is None else starts
    if n is None:
        return [descend(loops, rows, *part, tol, most, start)
                for part, start in zip(parts, starts, strict=True)]
    return descend_together(loops, rows, *zip(*parts, strict=True), tol, most, starts)


def assert_same_bits(found, expected, rows=slice(None)):
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one.weights, other.weights)
        assert np.array_equal(one.duals[rows], other.duals[rows])
        assert (one.bias, one.passes) == (other.bias, other.passes)


@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("n", [None, 3])
def test_uncompiled_it_has_the_bits_that_it_has_compiled(wide, n):
    rows, parts = problems(n or 2)
    rows = with_wide_indices(rows) if wide else rows
    starts = [None, np.random.default_rng(0).uniform(0.0, 1.0, 60), None][:len(parts)]
    python = solutions(uncompiled(), rows, parts, 1e-3, 100, starts, n)
    assert all(found.converged for found in python)
    if COMPILED.kernel is not None:
        assert_same_bits(
            python, solutions(COMPILED.kernel.descent, rows, parts, 1e-3, 100, starts, n))


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_the_optimum(loops, seed):
    rows, [(scale, y, cost)] = problems(1, seed)
    [found] = solutions(loops, rows, [(scale, y, cost)], 1e-9, 5000)
    assert found.converged
    objective = Objective(rows, y > 0, cost, "hinge", scale)
    best = objective.of_unscaled(found.weights, found.bias)
    # At the optimum the primal's objective is that of the dual.
    dual = found.duals.sum() - 0.5 * ((found.weights / scale) @ (found.weights / scale)
                                      + found.bias**2) - (found.duals**2 / (4 * cost)).sum()
    assert best == pytest.approx(dual, rel=1e-8)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        other = found.weights + 1e-3 * rng.normal(size=len(scale)) * scale
        assert objective.of_unscaled(other, found.bias) > best


@numbers
def test_several_problems_have_the_optimum_of_each_and_the_weights_of_their_duals(loops, n):
    rows, parts = problems(n or 1)
    alone = solutions(loops, rows, parts, 1e-9, 5000)
    for starts in ([None] * len(parts), [None, *[np.full(60, 0.5)] * (len(parts) - 1)]):
        found = solutions(loops, rows, parts, 1e-9, 5000, starts, n)
        for one, other, (scale, y, _) in zip(found, alone, parts, strict=True):
            assert one.converged
            for name in ("weights", "bias", "duals"):
                np.testing.assert_allclose(getattr(one, name), getattr(other, name),
                                           rtol=0, atol=1e-7)
            pull = one.duals * y
            np.testing.assert_allclose(one.weights, scale**2 * (rows.T @ pull), atol=1e-12)
            np.testing.assert_allclose(one.bias, pull.sum(), atol=1e-12)


def test_duals_of_nearly_the_same_rows_are_a_start(loops):
    rows, [(scale, y, cost)] = problems(1, 4)
    found = descend(loops, rows, scale, y, cost, 1e-6, 5000)
    again = descend(loops, rows, scale, y, cost, 1e-6, 5000, found.duals)
    assert again.passes <= 2 < found.passes
    np.testing.assert_allclose(again.weights, found.weights, atol=1e-6)
    fewer = rows[:55], scale, y[:55], cost[:55], 1e-6, 5000
    few, cold = descend(loops, *fewer, found.duals[:55]), descend(loops, *fewer)
    np.testing.assert_allclose(few.weights, cold.weights, atol=1e-5)
    assert few.passes < cold.passes


def test_a_problem_has_the_same_bits_whatever_problems_are_beside_it(loops):
    rows, parts = problems(4)
    whole = solutions(loops, rows, parts, 1e-3, 100, n=4)
    assert len({found.passes for found in whole}) > 1
    for some in ([0, 1], [3, 2, 0]):
        assert_same_bits(solutions(loops, rows, [parts[k] for k in some], 1e-3, 100, n=len(some)),
                         [whole[k] for k in some])


@numbers
def test_rows_that_cost_nothing_and_too_few_passes(loops, n):
    rows, parts = problems(n or 1)
    for _, _, cost in parts:
        cost[50:] = 0.0
    found = solutions(loops, rows, parts, 1e-3, 100, n=n)
    fewer = [(scale, y[:50], cost[:50]) for scale, y, cost in parts]
    assert_same_bits(found, solutions(loops, rows[:50], fewer, 1e-3, 100, n=n), slice(50))
    assert not any(each.duals[50:].any() for each in found)
    assert not any(each.converged for each in solutions(loops, rows, parts, 1e-9, 1, n=n))
    free = [(scale, y, np.zeros(60)) for scale, y, _ in parts]
    assert all(each.converged and not each.weights.any()
               for each in solutions(loops, rows, free, 1e-3, 9, n=n))


@needs_compiler
@pytest.mark.parametrize(("tol", "near"), [(1e-2, 0.03), (1e-10, 1e-10)])
def test_without_the_compiled_loops_the_optimum_is_the_same(tol, near, monkeypatch):
    monkeypatch.setattr(linear_solver, "_MIN_DESCENT_VALUES", 0)
    rows, [(scale, y, cost)] = problems(1, 6, n_rows=300, n_features=200)
    found = []
    for asked in ("on", "off"):
        monkeypatch.setenv("TEXTNB_KERNEL", asked)
        found.append(solve(LinearSolver("hinge", tol), rows, y > 0, scale, cost))
    objective = Objective(rows, y > 0, cost, "hinge", scale)
    one, other = (objective.of_unscaled(each.weights, each.intercept) for each in found)
    assert one == pytest.approx(other, rel=near)
    if tol < 1e-2:
        np.testing.assert_allclose(found[0].weights, found[1].weights, atol=1e-6)


@needs_compiler
def test_what_was_compiled_from_another_source_is_not_used(monkeypatch):
    monkeypatch.setattr(native, "digest", lambda package, module: "another")
    modules, reason = load_compiled.__wrapped__(SOLVER)
    assert modules is None
    assert reason.startswith("it was compiled from another descent.py: install textnb again")
