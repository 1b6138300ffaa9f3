"""Rows of counts as three arrays, and their product with weights, without SciPy.

Scoring needs nothing else, and importing SciPy takes longer than scoring a small file.

>>> rows = SparseRows(np.array([2, 1, 1]), np.array([0, 2, 1]), np.array([0, 2, 2, 3]), 3)
>>> (rows @ np.array([[1.0, 0.5], [0.0, 2.0], [3.0, 0.0]])).tolist()
[[5.0, 1.0], [0.0, 0.0], [0.0, 2.0]]
>>> rows.sum(axis=1).tolist()
[3, 0, 1]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.cells import concatenate_ranges

# SciPy is imported only where its matrices are made.
if TYPE_CHECKING:
    import scipy.sparse as sp

Floats = NDArray[np.float64]
# A function that adds the product of rows and weights to ``sums``. Its arguments are (values,
# columns, indptr, weights, sums).
AddWeights = Callable[[NDArray[Any], NDArray[Any], NDArray[Any], Floats, Floats], None]


class SparseRows:
    """Rows of a sparse matrix: sorted columns, one entry per cell.

    Parameters
    ----------
    data : (n_stored,)
        int32, int64 or float64.
    indices : int32 or int64 (n_stored,)
        The column of each value.
    indptr : int32 or int64 (n_rows + 1,)
        Row i holds the values from indptr[i] to indptr[i + 1]; indptr[0] is 0.
    width : int
        Number of columns.
    add_weights : callable, optional
        The compiled loop of products. Without it, SciPy multiplies if there are several rows.
    """

    __slots__ = ("_add_weights", "data", "indices", "indptr", "shape")

    def __init__(
        self, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], width: int,
        add_weights: AddWeights | None = None,
    ) -> None:
        self.data, self.indices, self.indptr = data, indices, indptr
        self.shape = len(indptr) - 1, width
        self._add_weights = add_weights

    @classmethod
    def of(cls, matrix: sp.csr_array) -> SparseRows:
        """The rows of a SciPy matrix, with which they share arrays."""
        return cls(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])

    @classmethod
    def of_row(cls, columns: NDArray[Any], values: NDArray[Any], width: int) -> SparseRows:
        """One row, from its sorted columns and their values."""
        return cls(values, columns, np.array([0, len(columns)]), width)

    @property
    def nnz(self) -> int:
        """Number of stored values."""
        return len(self.data)

    def __matmul__(self, weights: Floats) -> Floats:
        """The product with weights, float64 (n_columns, n_classes): float64 (n_rows, n_classes).

        Each row is added up in the order of its columns, so the bits are the same as SciPy's.
        """
        if self.shape[1] != len(weights):
            raise ValueError(f"{self.shape[1]} columns, and weights of {len(weights)}")
        sums = np.zeros((self.shape[0], weights.shape[1]))
        if self._add_weights is not None:
            self._add_weights(
                self.data, self.indices, self.indptr, np.ascontiguousarray(weights), sums)
        elif self.shape[0] > 1:
            return np.asarray(self.to_csr() @ weights)
        elif self.nnz:
            # Unlike `sum`, a cumulative sum has a fixed order.
            sums[0] = (self.data[:, None] * weights[self.indices]).cumsum(axis=0)[-1]
        return sums

    def __getitem__(self, chosen: slice | NDArray[Any]) -> SparseRows:
        """Some of the rows: a slice without a step, a mask, or indices."""
        if isinstance(chosen, slice):
            start, stop, step = chosen.indices(self.shape[0])
            if step != 1:
                raise ValueError("rows are cut without a step")
            begin, end = self.indptr[start], self.indptr[max(start, stop)]
            return self._like(self.data[begin:end], self.indices[begin:end],
                              self.indptr[start:max(start, stop) + 1] - begin)
        rows = np.arange(self.shape[0])[chosen]
        begins, ends = self.indptr[rows], self.indptr[rows + 1]
        indptr = np.concatenate([[0], np.cumsum(ends - begins)]).astype(self.indptr.dtype)
        entries = concatenate_ranges(begins, ends)
        return self._like(self.data[entries], self.indices[entries], indptr)

    def with_values(self, data: NDArray[Any]) -> SparseRows:
        """The same rows with other values in the same places."""
        return self._like(data, self.indices, self.indptr)

    def select(self, keep: NDArray[np.bool_]) -> SparseRows:
        """The rows with some of their values, by a mask of the values."""
        if keep.all():
            return self
        n_before = np.zeros(len(keep) + 1, dtype=self.indptr.dtype)
        np.cumsum(keep, out=n_before[1:])
        return self._like(self.data[keep], self.indices[keep], n_before[self.indptr])

    def sum(self, axis: int) -> NDArray[Any]:
        """The sum of each row (axis 1), with the same bits as SciPy's: int64 or float64."""
        if axis != 1:
            raise ValueError(f"rows are added up along axis 1, not {axis}")
        dtype = np.int64 if self.data.dtype.kind in "iu" else np.float64
        sums = np.zeros(self.shape[0], dtype=dtype)
        has_values = np.flatnonzero(np.diff(self.indptr))
        if len(has_values):
            sums[has_values] = np.add.reduceat(self.data, self.indptr[has_values], dtype=dtype)
        return sums

    def to_csr(self) -> sp.csr_array:
        """The rows as a SciPy matrix, which shares the arrays."""
        import scipy.sparse as sp

        rows = sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape)
        rows.has_canonical_format = True
        return rows

    def _like(self, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any]) -> SparseRows:
        return SparseRows(data, indices, indptr, self.shape[1], self._add_weights)
