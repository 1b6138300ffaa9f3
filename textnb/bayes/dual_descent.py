"""Dual coordinate descent, pass by pass, until no row is far from its optimum.

The loops are those of `textnb.bayes.native.descent`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from textnb.bayes.forms import Floats


@dataclass(frozen=True, eq=False)
class DualPoint:
    """Where the descent ended.

    Attributes
    ----------
    weights : float64 (n_features,)
        Of the rows without the scale.
    bias : float
    duals : float64 (n_rows,)
        At least 0. The weights are theirs.
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
    most: int, start: Floats | None = None,
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
        It ends where the projected gradients of the duals are not farther apart than this, as
        LIBLINEAR's descent does.
    most : int
        Most passes.
    start : float64 (n_rows,), optional
        Duals to start from, each at least 0: those of a solution of nearly the same rows.
    """
    n_rows, n_features = rows.shape
    paid = cost > 0
    ridge = np.divide(0.5, cost, out=np.zeros(n_rows), where=paid)
    state = np.zeros(2 * n_features)
    np.multiply(scale, scale, out=state[1::2])
    bias, squares, bounds = np.zeros(1), np.zeros(n_rows), np.zeros(3)
    matrix = rows.indptr, rows.indices, rows.data
    duals = np.zeros(n_rows)
    if start is not None:
        duals[paid] = start[paid]
        loops.begin(*matrix, y, duals, state, bias)
    order = np.flatnonzero(paid).astype(np.int32)
    seed = np.array([0x9E3779B97F4A7C15], dtype=np.uint64)
    active, passes, converged = len(order), 0, not len(order)
    bounds[0] = np.inf
    while passes < most and not converged:
        passes += 1
        everything = active == len(order)
        active = loops.descend(
            *matrix, y, ridge, squares, order, active, seed, duals, state, bias, bounds)
        largest, smallest = bounds[1:]
        bounds[0] = largest if largest > 0 else np.inf
        if largest - smallest <= tolerance:
            converged = everything
            # Rows that were put aside may matter again.
            active, bounds[0] = len(order), np.inf
    return DualPoint(state[::2].copy(), float(bias[0]), duals, passes, converged)
