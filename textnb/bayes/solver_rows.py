"""Rows as the linear solver reads them: the columns that rows share, and those of one row alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.features import IDENTITY, FeatureMap, count_columns, row_blocks
from textnb.bayes.forms import Floats
from textnb.bayes.losses import LOSSES
from textnb.bayes.sharing import Shared


@dataclass(frozen=True, eq=False)
class SolverRows:
    """Rows as the linear solver reads them.

    Attributes
    ----------
    shared : csr_array of float64 (n_rows, n_shared)
        Columns that two or more rows hold; for a loss that does not absorb the features of single
        rows, all columns. The most frequent come first, so that they share cache lines.
    columns : int64 (n_shared,)
        Their indices among all columns.
    row, column : int32 or int64 (n_own,)
        The place of each value in a column that only one row holds.
    value : float64 (n_own,)
        These values.
    n_features : int
        The number of all columns: those of terms, and of their parts and vectors.
    parts : Shared or None
        What terms share.
    """

    shared: sp.csr_array
    columns: NDArray[np.int64]
    row: NDArray[Any]
    column: NDArray[Any]
    value: Floats
    n_features: int
    parts: Shared | None = None

    @classmethod
    def of(
        cls, rows: sp.csr_array, loss: str, features: FeatureMap = IDENTITY,
        chosen: NDArray[np.bool_] | None = None, holders: NDArray[np.int64] | None = None,
        parts: Shared | None = None,
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
        holders : int64 (n_features,), optional
            The number of these rows that hold each feature; without it, it is counted.
        parts : Shared, optional
            What makes columns of parts and vectors, after those of the terms.
        """
        holders = count_columns(rows, chosen) if holders is None else holders
        if parts is not None:
            holders = np.concatenate([holders, parts.holders])
        n_features = len(holders)
        min_holders = 2 if LOSSES[loss].absorbs_own_features else 1
        columns = np.argsort(-holders, kind="stable")[:np.count_nonzero(holders >= min_holders)]
        n_stored = int(holders.sum())
        index = np.int32 if max(n_stored, rows.shape[0], n_features) < 2**31 else np.int64
        place = np.full(n_features, -1, dtype=index)
        place[columns] = np.arange(len(columns))
        n_shared = int(holders[columns].sum())
        n_own = n_stored - n_shared
        del holders
        shared = np.empty(n_shared), np.empty(n_shared, dtype=index)
        own = np.empty(n_own, dtype=index), np.empty(n_own, dtype=index), np.empty(n_own)
        sizes: list[NDArray[Any]] = [np.zeros(1, dtype=index)]
        n_shared = n_own = 0
        for before, block in row_blocks(rows, chosen):
            mapped = features.map_rows(block)
            if parts is not None:
                mapped = parts.widen(mapped)
            places = place[mapped.indices]
            is_shared = places >= 0
            row = np.repeat(np.arange(block.shape[0]), np.diff(mapped.indptr))
            sizes.append(np.bincount(row[is_shared], minlength=block.shape[0]))
            n_shared = _put(shared, n_shared, mapped.data[is_shared], places[is_shared])
            is_own = ~is_shared
            n_own = _put(
                own, n_own, row[is_own] + before, mapped.indices[is_own], mapped.data[is_own])
        # The arrays are longer than needed if the map made zeros, which are not stored.
        ends = np.cumsum(np.concatenate(sizes), dtype=index)
        matrix = sp.csr_array(
            (shared[0][:n_shared], shared[1][:n_shared], ends), shape=(len(ends) - 1, len(columns)))
        return cls(
            matrix, columns, own[0][:n_own], own[1][:n_own], own[2][:n_own], n_features, parts)

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
        Of the columns that several rows hold.
    own : float64 (n_own,) or (n_rows,)
        Of the columns that one row holds: one for each column, or with ``by_row`` one for each row.
    by_row : bool
    """

    shared: Floats
    own: Floats
    by_row: bool = False

    def of_own(self, rows: SolverRows) -> Floats:
        """The factor of each column that one row holds: float64 (n_own,)."""
        return self.own[rows.row] if self.by_row else self.own


def _put(arrays: tuple[NDArray[Any], ...], begin: int, *values: NDArray[Any]) -> int:
    """Write values into their arrays from a place on, and return the place after them."""
    end = begin + len(values[0])
    for array, part in zip(arrays, values, strict=True):
        array[begin:end] = part
    return end
