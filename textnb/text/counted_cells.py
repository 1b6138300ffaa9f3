"""Counts of many labels and codes, as the cells alone that are not 0.

A batch is a small sparse table, and tables of like sizes are added up: each count is copied a few
times, however many batches there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.sparse_table import SparseCounts, is_sparse, may_be_sparse
from textnb.runtime.memory import has_room
from textnb.text.byte_keys import begins_of

Ints = NDArray[np.int64]
# A table of up to so many cells is counted in faster, whether or not its counts end as sparse ones.
_DENSE = 1 << 26


def few_cells(table: NDArray[Any], rows: int, columns: int) -> CountedCells | None:
    """The cells of a table that would grow to this size; None if it is better kept dense."""
    rows, columns = max(rows, table.shape[0]), max(columns, table.shape[1])
    if not may_be_sparse(rows, columns) or not is_sparse(
            rows, columns, int(np.count_nonzero(table))):
        return None
    # With room for the tables of several threads, which grow by half.
    if rows * columns <= _DENSE and has_room(64 * rows * columns):
        return None
    return CountedCells([SparseCounts.of(table.astype(np.int64))])


class CountedCells:
    """int64 counts (labels x codes) that grow in both directions.

    Parameters
    ----------
    tables : list of SparseCounts

    Examples
    --------
    >>> cells = CountedCells()
    >>> cells.add(np.array([0, 2]), np.array([2, 3]), np.array([1, 1, 0]))
    >>> cells.add(np.array([2]), np.array([2]), np.array([0, 3]))
    >>> cells.total(3, 4)._toarray().tolist()
    [[0, 2, 0, 0], [0, 0, 0, 0], [2, 0, 0, 1]]
    """

    def __init__(self, tables: list[SparseCounts] | None = None) -> None:
        self._tables = tables or []

    def add(self, labels: Ints, ends: Ints, codes: NDArray[Any]) -> None:
        """Count the codes of each label, up to its end."""
        if not len(codes):
            return
        row = np.repeat(labels, ends - begins_of(ends))
        self._tables.append(SparseCounts.of_cells(
            row, codes, np.ones(len(codes), dtype=np.int64),
            (int(labels.max()) + 1, int(codes.max()) + 1)))
        while len(self._tables) > 1 and 2 * self._tables[-1].nnz > self._tables[-2].nnz:
            self._tables.append(_sum(self._tables.pop(), self._tables.pop()))

    def total(self, labels: int, codes: int) -> SparseCounts:
        """The counts of these numbers of labels and codes, or of more."""
        nothing = np.zeros(0, dtype=np.int64)
        total = SparseCounts.of_cells(nothing, nothing, nothing, (labels, codes))
        while self._tables:
            total = _sum(total, self._tables.pop())
        return total


def arranged(counts: SparseCounts, rows: Ints, columns: Ints, width: int) -> SparseCounts:
    """The counts of these labels, in this order; code i moves to ``columns[i]``, if it is not -1.

    Examples
    --------
    >>> cells = CountedCells()
    >>> cells.add(np.array([0, 1]), np.array([2, 3]), np.array([1, 1, 0]))
    >>> arranged(cells.total(2, 2), np.array([1, 0]), np.array([-1, 2]), 3)._toarray().tolist()
    [[0, 0, 0], [0, 0, 2]]
    """
    place = np.full(max(len(counts), int(rows.max(initial=-1)) + 1), -1)
    place[rows] = np.arange(len(rows))
    row, column = counts.nonzero()
    row, column = place[row], columns[column]
    kept = (row >= 0) & (column >= 0)
    return SparseCounts.of_cells(row[kept], column[kept], counts.values[kept], (len(rows), width))


def _sum(a: SparseCounts, b: SparseCounts) -> SparseCounts:
    rows, columns = max(len(a), len(b)), max(a.shape[1], b.shape[1])
    total: SparseCounts = a.resized(rows, columns) + b.resized(rows, columns)
    return total
