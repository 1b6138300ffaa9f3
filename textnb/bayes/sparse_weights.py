"""Weights of many classes and terms, of which few are stored.

    weights[t, k] = shared[t] + default[k] + excess[t, k]

``shared`` is the part that all classes share. The excess is 0 for a term that a class never had,
and is not stored there. `textnb.bayes.sparse_forms` derives the three parts.

>>> cells = np.array([1, 2]), np.array([0, 1], dtype=np.int32), np.array([1.0, 2.0])
>>> weights = SparseWeights(*cells, np.array([-1.0, -2.0]), np.array([0.5, 0.0]))
>>> np.asarray(weights).tolist()
[[0.5, -1.5], [-1.0, 0.0]]
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.cells import Ints, concatenate_ranges, find_keys
from textnb.bayes.read_only import read_only
from textnb.bayes.sparse_rows import Floats, SparseRows
from textnb.runtime.memory import check_fits_in_memory

# SciPy is imported in functions that need it: `textnb filter`, for one message, starts without it.
if TYPE_CHECKING:
    import scipy.sparse as sp


class SparseWeights:
    """Weights (n_terms, n_classes), most of which are one number per term plus one per class.

    ``np.asarray`` makes a dense array of them, if memory has room for it.

    Parameters
    ----------
    ends : int64 (n_terms,)
        The number of cells, which are the excesses that are stored, up to the end of each term.
    codes : int32 (n_cells,)
        The class of each cell, ascending within a term.
    excess : float64 (n_cells,)
        The excess of a weight over the sum of its two numbers.
    default : float64 (n_classes,)
        The number of each class.
    shared : float64 (n_terms,), optional
        The number of each term; by default 0.
    """

    dtype = np.dtype(np.float64)
    ndim = 2

    def __init__(
        self, ends: Ints, codes: NDArray[np.int32], excess: Floats, default: Floats,
        shared: Floats | None = None,
    ) -> None:
        self._ends, self._codes, self._excess = (
            read_only(array) for array in (ends, codes, excess))
        self._default, self._shared = read_only(default), read_only(shared)
        self.shape = len(ends), len(default)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        check_fits_in_memory(self.shape[1], self.shape[0], bytes_per_count=8, name="their weights")
        dense = self[np.arange(len(self))]
        return dense if dtype is None else dense.astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> Floats:
        """Weights of some terms; with ``[terms, classes]``, of pairs of a term and a class; or with
        ``[:, k]``, of a class."""
        if isinstance(key, tuple):
            terms, classes = np.broadcast_arrays(
                np.arange(len(self))[key[0]] if isinstance(key[0], slice) else key[0], key[1])
            weights: Floats = self._excess_of_pairs(terms, classes) + self._default[classes]
            return weights if self._shared is None else weights + self._shared[terms]
        terms = np.asarray(key)
        begins, ends = self._begins[terms], self._ends[terms]
        weights = np.zeros((len(terms), self.shape[1]))
        cells = concatenate_ranges(begins, ends)
        weights[np.repeat(np.arange(len(terms)), ends - begins), self._codes[cells]] = (
            self._excess[cells])
        weights += self._default
        return weights if self._shared is None else weights + self._shared[terms][:, None]

    def _excess_of_pairs(self, terms: NDArray[Any], classes: NDArray[Any]) -> Floats:
        if not len(self._excess):
            return np.zeros(len(terms))
        places = find_keys(self._keys, terms.astype(np.int64) * self.shape[1] + classes)
        return np.where(places >= 0, self._excess[places], 0.0)

    def product(self, rows: Any) -> Floats:
        """The product of rows with the weights: float64 (n_rows, n_classes).

        Of the excess, only what is stored for the terms of a row is read. One row needs no SciPy,
        and its bits are the same.

        Parameters
        ----------
        rows : csr_array or SparseRows (n_rows, n_terms)
        """
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        lengths = np.bincount(row, weights=rows.data, minlength=rows.shape[0])
        scores: Floats = np.multiply.outer(lengths, self._default)
        if self._shared is not None:
            scores += np.bincount(row, weights=rows.data * self._shared[rows.indices],
                                  minlength=rows.shape[0])[:, None]
        if rows.shape[0] == 1:
            scores[0] += self._excess_sums(rows.indices, rows.data)
            return scores
        sums = (rows.to_csr() if isinstance(rows, SparseRows) else rows) @ self._matrix
        if sums.nnz:
            scores += sums.toarray()
        return scores

    def _excess_sums(self, terms: Ints, values: Floats) -> Floats:
        """The sum of the excess of one row's terms times their values: float64 (n_classes,)."""
        sums = np.zeros(self.shape[1])
        for term, value in zip(terms.tolist(), values.tolist(), strict=True):
            stored = slice(self._begins[term], self._ends[term])
            sums[self._codes[stored]] += value * self._excess[stored]
        return sums

    def against_rest(self, terms: Ints, k: int | Ints) -> Floats:
        """Weights of terms for class k, minus the mean of their weights for the other classes.

        If k is an array, it has a class for each term.
        """
        # ``shared`` is the same for all classes, so the difference does not have it.
        default, excess = self._default, self._excess_of_pairs(
            terms, np.broadcast_to(k, terms.shape))
        mean_of_others = (default.sum() - default[k] + self._total_excess[terms] - excess) / (
            self.shape[1] - 1)
        return np.asarray(default[k] + excess - mean_of_others)

    @cached_property
    def _begins(self) -> Ints:
        return np.asarray(self._ends - np.diff(self._ends, prepend=0))

    @cached_property
    def _keys(self) -> Ints:
        terms = np.repeat(np.arange(len(self)), self._ends - self._begins)
        return np.asarray(terms * self.shape[1] + self._codes)

    @cached_property
    def _matrix(self) -> sp.csr_array:
        import scipy.sparse as sp

        return sp.csr_array((self._excess, self._codes, np.append(0, self._ends)), shape=self.shape)

    @cached_property
    def _total_excess(self) -> Floats:
        return np.asarray(self._matrix.sum(axis=1)).reshape(-1)
