"""Dual coordinate descent, pass by pass, until no row is far from its optimum.

The loops are those of `textnb.bayes.native.descent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from textnb.bayes.forms import Floats
from textnb.runtime.progress import line

# The number of problems of the same rows that are solved at once.
LANES = 4
_SEED = 0x9E3779B97F4A7C15
# The number of bytes in a line of the processor's cache.
_CACHE_LINE = 64


@dataclass(frozen=True, eq=False)
class DualPoint:
    """Where the descent ended.

    Attributes
    ----------
    weights : float64 (n_features,)
        They multiply the rows themselves, which are not scaled.
    bias : float
    duals : float64 (n_rows,)
        At least 0. The weights follow from them.
    passes : int
    converged : bool
    """

    weights: Floats
    bias: float
    duals: Floats
    passes: int
    converged: bool


def descend(
    loops: Any, rows: sp.csr_array, scale: Floats, y: Floats, cost: Floats, tolerance: float,
    max_passes: int, start: Floats | None = None, *, before: int = 0, limit: int | None = None,
) -> DualPoint:
    """The weights that minimise the squared hinge loss, to a tolerance.

    Parameters
    ----------
    loops : module
        `textnb.bayes.native.descent`, compiled.
    rows : csr_array of float64 (n_rows, n_features)
    scale : float64 (n_features,)
    y : float64 (n_rows,)
        -1 or 1.
    cost : float64 (n_rows,)
        Rows that cost nothing have a dual of 0.
    tolerance : float
        The descent ends when the projected gradients of the duals are not farther apart than this,
        as LIBLINEAR's does.
    max_passes : int
        Largest number of passes.
    start : float64 (n_rows,), optional
        Duals to start from, each at least 0: those of a solution of nearly the same rows.
    before : int
        The number of earlier passes, for the line of progress.
    limit : int, optional
        The largest number of passes that this line shows, if it is not ``max_passes``.
    """
    n_rows, n_features = rows.shape
    has_cost = cost > 0
    ridge = np.divide(0.5, cost, out=np.zeros(n_rows), where=has_cost)
    state = np.zeros(2 * n_features)
    np.multiply(scale, scale, out=state[1::2])
    bias, squares, bounds = np.zeros(1), np.zeros(n_rows), np.zeros(3)
    matrix = rows.indptr, rows.indices, rows.data
    duals = np.zeros(n_rows)
    if start is not None:
        duals[has_cost] = start[has_cost]
        loops.begin(*matrix, y, duals, state, bias)
    order = np.flatnonzero(has_cost).astype(np.int32)
    seed = np.array([_SEED], dtype=np.uint64)
    active, passes, converged, progress = len(order), 0, not len(order), line()
    bounds[0] = np.inf
    while passes < max_passes and not converged:
        passes += 1
        progress.step(f"pass {before + passes} of at most {limit or max_passes}")
        all_are_active = active == len(order)
        active = loops.descend(
            *matrix, y, ridge, squares, order, active, seed, duals, state, bias, bounds)
        largest, smallest = bounds[1:]
        bounds[0] = largest if largest > 0 else np.inf
        if largest - smallest <= tolerance:
            converged = all_are_active
            # All rows are active again: one that was put aside may move now.
            active, bounds[0] = len(order), np.inf
    return DualPoint(state[::2].copy(), float(bias[0]), duals, passes, converged)


def descend_together(
    loops: Any, rows: sp.csr_array, scales: Sequence[Floats], ys: Sequence[Floats],
    costs: Sequence[Floats], tolerance: float, max_passes: int, starts: Sequence[Floats | None],
    limit: int | None = None,
) -> list[DualPoint]:
    """The solutions of several problems of the same rows, each as by `descend`.

    Each row is read once for all of them, and they share one order of rows. So a problem's duals
    differ from those of `descend`, within the tolerance, but do not depend on the other problems.

    Parameters
    ----------
    loops, rows, tolerance, max_passes, limit
        As of `descend`.
    scales, ys, costs, starts : sequence
        One for each problem, of which there are at most `LANES`. Rows that cost nothing are the
        same in all of them.
    """
    n_rows, n_features = rows.shape
    n_lanes = len(ys)
    has_cost = costs[0] > 0
    state = _aligned(n_features, 2 * LANES)
    # Lanes without a problem don't move.
    y, ridge = np.ones((n_rows, LANES)), np.full((n_rows, LANES), -1.0)
    duals, squares = np.zeros((n_rows, LANES)), np.zeros((n_rows, LANES))
    for lane in range(n_lanes):
        np.multiply(scales[lane], scales[lane], out=state[:, LANES + lane])
        y[:, lane] = ys[lane]
        np.divide(0.5, costs[lane], out=ridge[:, lane], where=has_cost)
        start = starts[lane]
        if start is not None:
            duals[has_cost, lane] = start[has_cost]
    matrix, bias = (rows.indptr, rows.indices, rows.data), np.zeros(LANES)
    if duals.any():
        loops.begin_lanes(*matrix, y, duals, state, bias)
    order = np.flatnonzero(has_cost).astype(np.int32)
    seed, moves, bounds = np.array([_SEED], dtype=np.uint64), np.zeros(LANES), np.zeros((2, LANES))
    passes = np.zeros(LANES, dtype=np.int64)
    unsolved, progress = np.arange(LANES) < (n_lanes if len(order) else 0), line()
    while unsolved.any() and passes.max() < max_passes:
        passes[unsolved] += 1
        progress.step(f"pass {passes.max()} of at most {limit or max_passes}")
        loops.descend_lanes(*matrix, y, ridge, squares, order, seed, duals, state, bias, moves,
                            bounds)
        solved = unsolved & (bounds[0] - bounds[1] <= tolerance)
        ridge[:, solved] = -1.0
        unsolved &= ~solved
    return [DualPoint(state[:, lane].copy(), float(bias[lane]), duals[:, lane].copy(),
                      int(passes[lane]), not unsolved[lane]) for lane in range(n_lanes)]


def _aligned(n_rows: int, n_columns: int) -> Floats:
    """Zeros, each row of which begins where a line of the cache does."""
    size = n_rows * n_columns
    buffer = np.zeros(size + _CACHE_LINE // 8)
    first = -buffer.ctypes.data % _CACHE_LINE // 8
    return buffer[first:first + size].reshape(n_rows, n_columns)
