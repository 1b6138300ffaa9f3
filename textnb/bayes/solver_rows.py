"""Rows as the linear solver reads them: the columns that rows share, and those of one row alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.losses import LOSSES


@dataclass(frozen=True, eq=False)
class SolverRows:
    """Rows as the solver reads them.

    Attributes
    ----------
    shared : csr_array of float64 (n_rows, n_shared)
        Columns that two or more rows hold, the most frequent first, so that they share cache lines.
    columns : int64 (n_shared,)
        Their indices among all columns.
    row, column : int64 (n_own,)
        Place of each value in a column that only one row holds.
    value : float64 (n_own,)
    n_features : int
    """

    shared: sp.csr_array
    columns: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: Floats
    n_features: int

    @classmethod
    def of(cls, rows: sp.csr_array, loss: str) -> SolverRows:
        """The rows of a matrix.

        Parameters
        ----------
        rows : csr_array (n_rows, n_features)
            One entry per cell. It is not changed.
        loss : {"hinge", "log"}
            The loss of the solver.
        """
        holders = np.bincount(rows.indices, minlength=rows.shape[1])
        min_holders = 2 if LOSSES[loss].absorbs_own_features else 1
        order = np.argsort(-holders, kind="stable")
        columns = order[:np.count_nonzero(holders >= min_holders)]
        place = np.full(rows.shape[1], -1, dtype=np.int64)
        place[columns] = np.arange(len(columns))
        places = place[rows.indices]
        inside = places >= 0
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        ends = np.concatenate([[0], np.cumsum(np.bincount(row[inside], minlength=rows.shape[0]))])
        index = np.int32 if max(rows.nnz, *rows.shape) < 2**31 else np.int64
        shared = sp.csr_array(
            (rows.data[inside].astype(np.float64), places[inside].astype(index),
             ends.astype(index)), shape=(rows.shape[0], len(columns)))
        outside = ~inside
        return cls(shared, columns, row[outside], rows.indices[outside].astype(np.int64),
                   rows.data[outside].astype(np.float64), rows.shape[1])
