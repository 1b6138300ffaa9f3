"""Dual coordinate descent, pass by pass, until no row is far from its optimum.

Each pass is a loop of `textnb.bayes.native.descent`, which has the objective, and describes its
arrays: ``ridge``, ``squares``, ``state``, ``bounds``. A problem has a dual for each row, a number
>= 0. It is solved alone, or in one of the `LANES` of a loop that solves several at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from textnb.bayes.forms import Floats
from textnb.runtime.progress import current_progress

# The number of problems with the same rows that are solved at once.
LANES = 4
# The first state of the random numbers that order the rows: any number but 0 would do.
_SEED = 0x9E3779B97F4A7C15
# The number of bytes in a line of the processor's cache.
_CACHE_LINE = 64


@dataclass(frozen=True, eq=False)
class DualPoint:
    """Where the descent ended.

    Attributes
    ----------
    weights : float64 (n_features,)
        For rows that are not multiplied by the scale.
    bias : float
    duals : float64 (n_rows,)
        At least 0. Weights and bias follow from them.
    passes : int
        The number of passes over the rows.
    converged : bool
        Whether the duals are within the tolerance.
    """

    weights: Floats
    bias: float
    duals: Floats
    passes: int
    converged: bool


def descend(
    loops: Any, rows: sp.csr_array, scale: Floats, y: Floats, cost: Floats, tolerance: float,
    max_passes: int, start: Floats | None = None, *, passes_before: int = 0,
    shown_max_passes: int | None = None,
) -> DualPoint:
    """The weights that minimise the squared hinge loss, to a tolerance.

    Parameters
    ----------
    loops : module
        `textnb.bayes.native.descent`, compiled.
    rows : csr_array of float64 (n_rows, n_features)
    scale : float64 (n_features,)
        The factor by which the values of each feature are multiplied.
    y : float64 (n_rows,)
        -1 or 1.
    cost : float64 (n_rows,)
        The factor of each row's loss, at least 0. A row whose cost is 0 has a dual of 0.
    tolerance : float
        The descent ends when the largest projected gradient of a dual exceeds the smallest by no
        more than this, as in LIBLINEAR.
    max_passes : int
    start : float64 (n_rows,), optional
        Duals to start from, each at least 0, e.g. from a solution of nearly the same rows.
    passes_before : int
        The number of earlier passes, for the line of progress.
    shown_max_passes : int, optional
        The maximum number of passes that the line of progress shows; default ``max_passes``.
    """
    n_rows, n_features = rows.shape
    has_cost = cost > 0
    ridge = np.divide(0.5, cost, out=np.zeros(n_rows), where=has_cost)
    # For each feature, its weight, and after it its squared scale.
    state = np.zeros(2 * n_features)
    np.multiply(scale, scale, out=state[1::2])
    # ``squares`` are the squared lengths of rows, which the loop computes. ``bounds`` are the
    # gradient above which a row is put aside, and the largest and the smallest one of the pass.
    bias, squares, bounds = np.zeros(1), np.zeros(n_rows), np.zeros(3)
    matrix = rows.indptr, rows.indices, rows.data
    duals = np.zeros(n_rows)
    if start is not None:
        duals[has_cost] = start[has_cost]
        # Writes the weights and the bias that follow from the duals.
        loops.begin(*matrix, y, duals, state, bias)
    order = np.flatnonzero(has_cost).astype(np.int32)
    seed = np.array([_SEED], dtype=np.uint64)
    n_active, passes, converged, progress = len(order), 0, not len(order), current_progress()
    bounds[0] = np.inf
    while passes < max_passes and not converged:
        passes += 1
        progress.step(f"pass {passes_before + passes} of at most {shown_max_passes or max_passes}")
        all_were_active = n_active == len(order)
        n_active = loops.descend(
            *matrix, y, ridge, squares, order, n_active, seed, duals, state, bias, bounds)
        largest, smallest = bounds[1:]
        # In the next pass, a row with a dual of 0 is put aside if its gradient is above the largest
        # one of this pass.
        bounds[0] = largest if largest > 0 else np.inf
        if largest - smallest <= tolerance:
            converged = all_were_active
            # All rows are active again: one that was put aside may move now.
            n_active, bounds[0] = len(order), np.inf
    return DualPoint(state[::2].copy(), float(bias[0]), duals, passes, converged)


def descend_together(
    loops: Any, rows: sp.csr_array, scales: Sequence[Floats], ys: Sequence[Floats],
    costs: Sequence[Floats], tolerance: float, max_passes: int, starts: Sequence[Floats | None],
    shown_max_passes: int | None = None,
) -> list[DualPoint]:
    """The solutions of several problems with the same rows, each as by `descend`.

    All problems share one order of rows, so that a pass reads each row once. So the duals of a
    problem differ from those of `descend`, within the tolerance. They do not depend on the other
    problems.

    Parameters
    ----------
    loops, rows, tolerance, max_passes, shown_max_passes
        As in `descend`.
    scales, ys, costs, starts : sequence
        One for each problem. There are at most `LANES` problems, and the same rows have a cost of 0
        in all of them.
    """
    n_rows, n_features = rows.shape
    n_lanes = len(ys)
    has_cost = costs[0] > 0
    # For each feature, its weight in each lane, and after these its squared scale in each lane.
    state = _zeros_in_cache_lines(n_features, 2 * LANES)
    # A row does not move in a lane where its ridge is negative.
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
    # ``bounds`` are the largest gradient of the pass in each lane, and the smallest. ``moves`` is
    # memory for the loop.
    seed, moves, bounds = np.array([_SEED], dtype=np.uint64), np.zeros(LANES), np.zeros((2, LANES))
    passes = np.zeros(LANES, dtype=np.int64)
    unsolved, progress = np.arange(LANES) < (n_lanes if len(order) else 0), current_progress()
    while unsolved.any() and passes.max() < max_passes:
        passes[unsolved] += 1
        progress.step(f"pass {passes.max()} of at most {shown_max_passes or max_passes}")
        loops.descend_lanes(*matrix, y, ridge, squares, order, seed, duals, state, bias, moves,
                            bounds)
        solved = unsolved & (bounds[0] - bounds[1] <= tolerance)
        ridge[:, solved] = -1.0
        unsolved &= ~solved
    return [DualPoint(state[:, lane].copy(), float(bias[lane]), duals[:, lane].copy(),
                      int(passes[lane]), not unsolved[lane]) for lane in range(n_lanes)]


def _zeros_in_cache_lines(n_rows: int, n_columns: int) -> Floats:
    """Zeros whose rows begin where cache lines do, if each row fills a number of lines."""
    size, line_size = n_rows * n_columns, _CACHE_LINE // np.float64().nbytes
    buffer = np.zeros(size + line_size)
    # The number of values before the next cache line begins.
    n_before = -buffer.ctypes.data % _CACHE_LINE // np.float64().nbytes
    return buffer[n_before:n_before + size].reshape(n_rows, n_columns)
