"""Rows as the linear solver reads them: columns that several rows hold apart from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.features import IDENTITY, FeatureMap, count_by_column, row_blocks
from textnb.bayes.forms import Floats
from textnb.bayes.losses import LOSSES
from textnb.bayes.sharing import ExtraColumns


@dataclass(frozen=True, eq=False)
class SolverRows:
    """Rows as the linear solver reads them.

    Attributes
    ----------
    shared : csr_array of float64 (n_rows, n_shared)
        The shared columns, which two or more rows hold; all columns, for a loss without
        ``absorbs_own_features``. The most frequent come first, so that they share cache lines.
    columns : int64 (n_shared,)
        The indices of the shared columns among all columns.
    row, column, value : (n_own,)
        The values in columns that only one row holds, and their places.
    n_features : int
        The number of all columns: of terms, and extra columns.
    extra : ExtraColumns or None
    """

    shared: sp.csr_array
    columns: NDArray[np.int64]
    row: NDArray[Any]
    column: NDArray[Any]
    value: Floats
    n_features: int
    extra: ExtraColumns | None = None

    @classmethod
    def of(
        cls, rows: sp.csr_array, loss: str, features: FeatureMap = IDENTITY,
        chosen: NDArray[np.bool_] | None = None, rows_with_term: NDArray[np.int64] | None = None,
        extra: ExtraColumns | None = None,
    ) -> SolverRows:
        """The rows of a matrix, after a feature map, which is applied to some rows at a time.

        Parameters
        ----------
        rows : csr_array (n_rows, n_features)
            One entry per cell, and no zeros. It is not changed.
        loss : {"hinge", "log"}
            The loss of the solver.
        features : FeatureMap
        chosen : bool (n_rows,), optional
            The rows to take, if not all.
        rows_with_term : int64 (n_features,), optional
            The number of these rows that hold each term, if it is known.
        extra : ExtraColumns, optional
            Columns after those of the terms.
        """
        # The number of rows that hold each column.
        n_holding = count_by_column(rows, chosen) if rows_with_term is None else rows_with_term
        if extra is not None:
            n_holding = np.concatenate([n_holding, extra.rows_with_column])
        n_features = len(n_holding)
        min_holding = 2 if LOSSES[loss].absorbs_own_features else 1
        columns = np.argsort(-n_holding, kind="stable")[:np.count_nonzero(n_holding >= min_holding)]
        n_stored = int(n_holding.sum())
        index_type = np.int32 if max(n_stored, rows.shape[0], n_features) < 2**31 else np.int64
        shared_index = np.full(n_features, -1, dtype=index_type)
        shared_index[columns] = np.arange(len(columns))
        max_shared = int(n_holding[columns].sum())
        max_own = n_stored - max_shared
        del n_holding
        # Values and columns of the shared columns; rows, columns and values of the others.
        shared = np.empty(max_shared), np.empty(max_shared, dtype=index_type)
        own = (np.empty(max_own, dtype=index_type), np.empty(max_own, dtype=index_type),
               np.empty(max_own))
        sizes: list[NDArray[Any]] = [np.zeros(1, dtype=index_type)]
        n_shared = n_own = 0
        for before, block in row_blocks(rows, chosen):
            mapped = features.map_rows(block)
            if extra is not None:
                mapped = extra.widen(mapped)
            indices = shared_index[mapped.indices]
            is_shared = indices >= 0
            row = np.repeat(np.arange(block.shape[0]), np.diff(mapped.indptr))
            sizes.append(np.bincount(row[is_shared], minlength=block.shape[0]))
            n_shared = _put(shared, n_shared, mapped.data[is_shared], indices[is_shared])
            is_own = ~is_shared
            n_own = _put(
                own, n_own, row[is_own] + before, mapped.indices[is_own], mapped.data[is_own])
        # The arrays are longer than needed if the feature map made zeros, which are not stored.
        ends = np.cumsum(np.concatenate(sizes), dtype=index_type)
        matrix = sp.csr_array(
            (shared[0][:n_shared], shared[1][:n_shared], ends), shape=(len(ends) - 1, len(columns)))
        return cls(matrix, columns, row=own[0][:n_own], column=own[1][:n_own],
                   value=own[2][:n_own], n_features=n_features, extra=extra)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(self.shared.data.nbytes + self.shared.indices.nbytes + self.columns.nbytes
                   + self.row.nbytes + self.column.nbytes + self.value.nbytes)


@dataclass(frozen=True, eq=False)
class Scales:
    """Finite factors by which the solver multiplies columns, for one class.

    Attributes
    ----------
    shared : float64 (n_shared,)
        The factors of the shared columns.
    own : float64 (n_own,) or (n_rows,)
        The factors of the columns that only one row holds: for each column, or with ``by_row`` for
        each row.
    by_row : bool
        Whether all columns that only the same row holds have one factor.
    """

    shared: Floats
    own: Floats
    by_row: bool = False

    def of_own(self, rows: SolverRows) -> Floats:
        """The factor of each column that only one row holds: float64 (n_own,)."""
        return self.own[rows.row] if self.by_row else self.own


def _put(arrays: tuple[NDArray[Any], ...], begin: int, *values: NDArray[Any]) -> int:
    """Write values into each array from ``begin`` on, and return where they end."""
    end = begin + len(values[0])
    for array, array_values in zip(arrays, values, strict=True):
        array[begin:end] = array_values
    return end
