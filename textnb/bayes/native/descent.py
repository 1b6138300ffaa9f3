"""Dual coordinate descent for the squared hinge loss, row by row [1]_.

It minimises over weights v and a bias b, of rows x that are scaled feature by feature,

    |v|² / 2 + b² / 2 + Σ cost_i · max(0, 1 - y_i ((x_i∘scale)·v + b))²

by the dual problem, which has one number >= 0 for each row: ``v = Σ dual_i y_i (x_i∘scale)``. The
rows are never multiplied by the scale. For each feature, ``state`` holds ``scale · v``, which is
the weight for rows that are not scaled, and after it ``scale²``: the weight changes by ``scale²``
times the change of ``dual_i y_i``, times the value of the row.

`descend` solves one problem. `descend_lanes` solves four problems with the same rows, which differ
in y, costs and scale: a row is read once for all four, and for each feature, ``state`` holds their
weights and squared scales in one line of the processor's cache. A lane is one of the four problems.

This file is Python that Cython compiles when the package is built; see `textnb.runtime.native`.

References
----------
.. [1] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan (2008). A dual coordinate
   descent method for large-scale linear SVM. ICML: algorithm 3 (shrinking).
"""

from __future__ import annotations

import cython

# The digest of the source that was compiled: see `textnb.runtime.native`.
SOURCE = TEXTNB_SOURCE.decode() if cython.compiled else ""  # noqa: F821 (declared in the .pxd)

Place = cython.typedef(cython.Py_ssize_t)
U64 = cython.typedef(cython.ulonglong)
Index = cython.fused_type(cython.int, cython.longlong)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _score(
    indices: cython.const[Index][::1], values: cython.const[cython.double][::1],
    state: cython.double[::1], begin: Place, end: Place,
) -> cython.double:
    """The product of a row with the weights, as two sums, which the processor adds to in parallel.
    """
    first: cython.double = 0.0
    second: cython.double = 0.0
    at: Place = begin
    while at + 1 < end:
        first += values[at] * state[2 * indices[at]]
        second += values[at + 1] * state[2 * indices[at + 1]]
        at += 2
    if at < end:
        first += values[at] * state[2 * indices[at]]
    return first + second


def begin(
    indptr: cython.const[Index][::1], indices: cython.const[Index][::1],
    values: cython.const[cython.double][::1], y: cython.const[cython.double][::1],
    duals: cython.const[cython.double][::1], state: cython.double[::1], bias: cython.double[::1],
) -> None:
    """Adds the weights of duals to ``state`` and ``bias``."""
    row: Place
    at: Place
    move: cython.double
    with cython.nogil:
        for row in range(y.shape[0]):
            if duals[row] != 0.0:
                move = duals[row] * y[row]
                bias[0] += move
                for at in range(indptr[row], indptr[row + 1]):
                    state[2 * indices[at]] += move * values[at] * state[2 * indices[at] + 1]


def descend(
    indptr: cython.const[Index][::1], indices: cython.const[Index][::1],
    values: cython.const[cython.double][::1], y: cython.const[cython.double][::1],
    ridge: cython.const[cython.double][::1], squares: cython.double[::1],
    order: cython.int[::1], active: Place, seed: cython.ulonglong[::1],
    duals: cython.double[::1], state: cython.double[::1], bias: cython.double[::1],
    bounds: cython.double[::1],
) -> int:
    """One pass over the active rows, in a new random order. Returns how many remain active.

    Parameters
    ----------
    ridge : float64 (n_rows,)
        1 / (2 · cost).
    squares : float64 (n_rows,)
        |x∘scale|² + 1 of each row; the 1 is for the bias. 0 if it is not computed yet.
    order : int32 (n_rows,)
        Indices of rows; the ``active`` first ones are active.
    seed : uint64 (1,)
        The state of the random numbers, not 0.
    bounds : float64 (3,)
        A row with a dual of 0 is put aside if its gradient is above the first value. The pass
        writes the largest and the smallest projected gradient into the other two.
    """
    at: Place
    other: Place
    place: Place
    row: cython.int
    number: U64 = seed[0]
    gradient: cython.double
    projected: cython.double
    before: cython.double
    move: cython.double
    largest: cython.double = -1e300
    smallest: cython.double = 1e300
    with cython.nogil:
        for at in range(active):
            # xorshift64 of Marsaglia (2003).
            number ^= number << 13
            if not cython.compiled:
                number &= 0xFFFFFFFFFFFFFFFF
            number ^= number >> 7
            number ^= number << 17
            if not cython.compiled:
                number &= 0xFFFFFFFFFFFFFFFF
            other = at + cython.cast(Place, (number >> 33) % cython.cast(U64, active - at))
            row = order[at]
            order[at] = order[other]
            order[other] = row
        at = 0
        while at < active:
            row = order[at]
            gradient = (y[row] * (_score(indices, values, state, indptr[row], indptr[row + 1])
                                  + bias[0]) - 1.0 + duals[row] * ridge[row])
            projected = gradient
            if duals[row] == 0.0:
                if gradient > bounds[0]:
                    active -= 1
                    order[at] = order[active]
                    order[active] = row
                    continue
                if gradient > 0.0:
                    projected = 0.0
            at += 1
            if projected > largest:
                largest = projected
            if projected < smallest:
                smallest = projected
            if projected > 1e-12 or projected < -1e-12:
                if squares[row] == 0.0:
                    squares[row] = 1.0
                    for place in range(indptr[row], indptr[row + 1]):
                        squares[row] += (values[place] * values[place]
                                         * state[2 * indices[place] + 1])
                before = duals[row]
                duals[row] = max(before - gradient / (squares[row] + ridge[row]), 0.0)
                move = (duals[row] - before) * y[row]
                bias[0] += move
                for place in range(indptr[row], indptr[row + 1]):
                    state[2 * indices[place]] += (
                        move * values[place] * state[2 * indices[place] + 1])
    seed[0] = number
    bounds[1], bounds[2] = largest, smallest
    return active


def begin_lanes(
    indptr: cython.const[Index][::1], indices: cython.const[Index][::1],
    values: cython.const[cython.double][::1], y: cython.const[cython.double][:, ::1],
    duals: cython.const[cython.double][:, ::1], state: cython.double[:, ::1],
    bias: cython.double[::1],
) -> None:
    """As `begin`, for four problems."""
    row: Place
    at: Place
    lane: Place
    move: cython.double
    with cython.nogil:
        for row in range(y.shape[0]):
            for lane in range(4):
                if duals[row, lane] != 0.0:
                    move = duals[row, lane] * y[row, lane]
                    bias[lane] += move
                    for at in range(indptr[row], indptr[row + 1]):
                        state[indices[at], lane] += (
                            move * values[at] * state[indices[at], lane + 4])


def descend_lanes(
    indptr: cython.const[Index][::1], indices: cython.const[Index][::1],
    values: cython.const[cython.double][::1], y: cython.const[cython.double][:, ::1],
    ridge: cython.const[cython.double][:, ::1], squares: cython.double[:, ::1],
    order: cython.int[::1], seed: cython.ulonglong[::1], duals: cython.double[:, ::1],
    state: cython.double[:, ::1], bias: cython.double[::1], moves: cython.double[::1],
    bounds: cython.double[:, ::1],
) -> None:
    """One pass over the rows for four problems, in a new random order.

    Other than in `descend`, no row is put aside: nearly always, one of the problems needs it.

    Parameters
    ----------
    y, ridge, squares, duals : float64 (n_rows, 4)
        ``ridge`` is 1 / (2 · cost), or negative if the dual of this row must not change in a lane:
        the row has no cost, or the problem is solved. ``squares`` as in `descend`, computed for all
        lanes at once.
    order : int32 (n_ordered,)
        Indices of rows.
    state : float64 (n_features, 8)
        The weights of the four lanes, then their squared scales.
    moves : float64 (4,)
        Scratch space.
    bounds : float64 (2, 4)
        The pass writes the largest and the smallest projected gradient of each lane into it.
    """
    n_rows: Place = order.shape[0]
    at: Place
    other: Place
    place: Place
    lane: Place
    feature: Place
    row: cython.int
    number: U64 = seed[0]
    value: cython.double
    gradient: cython.double
    before: cython.double
    # The sums of the four lanes: variables, unlike arrays, stay in registers.
    a: cython.double
    b: cython.double
    c: cython.double
    d: cython.double
    moved: cython.bint
    with cython.nogil:
        for lane in range(4):
            bounds[0, lane] = -1e300
            bounds[1, lane] = 1e300
        for at in range(n_rows):
            # xorshift64 of Marsaglia (2003).
            number ^= number << 13
            if not cython.compiled:
                number &= 0xFFFFFFFFFFFFFFFF
            number ^= number >> 7
            number ^= number << 17
            if not cython.compiled:
                number &= 0xFFFFFFFFFFFFFFFF
            other = at + cython.cast(Place, (number >> 33) % cython.cast(U64, n_rows - at))
            row = order[at]
            order[at] = order[other]
            order[other] = row
        for at in range(n_rows):
            row = order[at]
            a = bias[0]
            b = bias[1]
            c = bias[2]
            d = bias[3]
            for place in range(indptr[row], indptr[row + 1]):
                value, feature = values[place], indices[place]
                a += value * state[feature, 0]
                b += value * state[feature, 1]
                c += value * state[feature, 2]
                d += value * state[feature, 3]
            moves[0] = a
            moves[1] = b
            moves[2] = c
            moves[3] = d
            moved = False
            for lane in range(4):
                gradient = (y[row, lane] * moves[lane] - 1.0
                            + duals[row, lane] * ridge[row, lane])
                moves[lane] = 0.0
                if ridge[row, lane] < 0.0:
                    continue
                if duals[row, lane] == 0.0 and gradient > 0.0:
                    gradient = 0.0
                if gradient > bounds[0, lane]:
                    bounds[0, lane] = gradient
                if gradient < bounds[1, lane]:
                    bounds[1, lane] = gradient
                if gradient > 1e-12 or gradient < -1e-12:
                    if squares[row, 0] == 0.0:
                        a = 1.0
                        b = 1.0
                        c = 1.0
                        d = 1.0
                        for place in range(indptr[row], indptr[row + 1]):
                            value, feature = values[place] * values[place], indices[place]
                            a += value * state[feature, 4]
                            b += value * state[feature, 5]
                            c += value * state[feature, 6]
                            d += value * state[feature, 7]
                        squares[row, 0] = a
                        squares[row, 1] = b
                        squares[row, 2] = c
                        squares[row, 3] = d
                    before = duals[row, lane]
                    duals[row, lane] = max(
                        before - gradient / (squares[row, lane] + ridge[row, lane]), 0.0)
                    moves[lane] = (duals[row, lane] - before) * y[row, lane]
                    moved = True
            if moved:
                a = moves[0]
                b = moves[1]
                c = moves[2]
                d = moves[3]
                bias[0] += a
                bias[1] += b
                bias[2] += c
                bias[3] += d
                for place in range(indptr[row], indptr[row + 1]):
                    value, feature = values[place], indices[place]
                    state[feature, 0] += a * value * state[feature, 4]
                    state[feature, 1] += b * value * state[feature, 5]
                    state[feature, 2] += c * value * state[feature, 6]
                    state[feature, 3] += d * value * state[feature, 7]
    seed[0] = number
