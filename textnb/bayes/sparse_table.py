"""Tables of many classes and terms, of which little is stored: counts, and weights.

With thousands of classes most counts are 0. What is stored is where they are not:

    counts[k, t]  = S[k, t]
    weights[t, k] = shared[t] + default[k] + S[t, k]

The weights of most models are of this form: a class's weight for a term that it never had, a part
that all classes share, and an excess where a count is above 0. A table that needs more is made
dense, after a check that memory can hold it; so is any table that NumPy is given.

>>> import scipy.sparse as sp
>>> counts = SparseCounts(sp.csr_array(np.array([[3, 0], [0, 1]])))
>>> counts.sum(axis=0).tolist(), counts[0].tolist(), (counts + counts).nnz
([3, 1], [3, 0], 2)
>>> excess = sp.csr_array(np.array([[1.0, 0.0], [0.0, 2.0]]))
>>> weights = SparseWeights(excess, np.array([-1.0, -2.0]), np.array([0.5, 0.0]))
>>> np.asarray(weights).tolist()
[[0.5, -1.5], [-1.0, 0.0]]
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from textnb.bayes.read_only import read_only
from textnb.runtime.memory import check_room

# SciPy is imported where a table is sparse: a filter that scores one message starts without it.
if TYPE_CHECKING:
    import scipy.sparse as sp

Floats = NDArray[np.float64]
# A table of more cells than this is sparse if at most one in so many is stored. So the sizes of a
# model alone decide it, and the same counts have the same bits in each way of training.
LARGE, ONE_IN = 1 << 24, 16
# With fewer classes dense weights score faster.
MANY = 512


def is_sparse(n_classes: int, n_terms: int, n_stored: int) -> bool:
    """Whether counts of these sizes, and their weights, are sparse.

    Examples
    --------
    >>> is_sparse(10_000, 100_000, 10_000_000), is_sparse(20, 100_000, 100_000)
    (True, False)
    """
    return may_be_sparse(n_classes, n_terms) and n_stored * ONE_IN <= n_classes * n_terms


def cells_of(counts: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """The class, the term and the value of each count that is not 0, class by class."""
    row, column = counts.nonzero()
    return row, column, (
        counts.values if isinstance(counts, SparseCounts) else counts[row, column])


def table_of(
    row: NDArray[Any], column: NDArray[Any], count: NDArray[Any], shape: tuple[int, int]
) -> Any:
    """Counts (n_classes, n_terms) of distinct cells: an array, or SparseCounts, as sizes say."""
    if is_sparse(*shape, len(count)):
        return SparseCounts.of_cells(row, column, count, shape)
    dense = np.zeros(shape, dtype=count.dtype)
    dense[row, column] = count
    return dense


def may_be_sparse(n_classes: int, n_terms: int) -> bool:
    """Whether counts of these sizes are sparse where few of them are stored."""
    return n_classes >= MANY and n_classes * n_terms > LARGE


def as_sizes_say(counts: Any) -> Any:
    """The counts (n_classes, n_terms) as a table of their sizes is: an array, or SparseCounts."""
    if isinstance(counts, SparseCounts):
        return counts if is_sparse(*counts.shape, counts.nnz) else np.asarray(counts)
    n_classes, n_terms = counts.shape
    if isinstance(counts, np.ndarray):
        # Small tables, which are most, are not counted.
        few = may_be_sparse(n_classes, n_terms) and is_sparse(
            n_classes, n_terms, int(np.count_nonzero(counts)))
        return SparseCounts.of(counts) if few else counts
    return (as_sizes_say(SparseCounts.of(counts)) if may_be_sparse(n_classes, n_terms)
            else counts.toarray())


class SparseTable(NDArrayOperatorsMixin):
    """A table that NumPy may be given: it is then made dense, if there is room."""

    shape: tuple[int, int]
    ndim = 2
    # Of counts the classes are the rows, and of weights the columns.
    _classes, _what = 0, "their counts"

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def T(self) -> NDArray[Any]:
        """The transposed table, dense."""
        return np.asarray(self).T

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        check_room(self.shape[self._classes], self.shape[1 - self._classes], 8, self._what)
        dense = self._toarray()
        return dense if dtype is None else dense.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        dense = [np.asarray(each) if isinstance(each, SparseTable) else each for each in inputs]
        return getattr(ufunc, method)(*dense, **options)

    def tolist(self) -> list[Any]:
        rows: list[Any] = np.asarray(self).tolist()
        return rows

    def _toarray(self) -> NDArray[Any]:
        raise NotImplementedError


class SparseCounts(SparseTable):
    """Counts (n_classes, n_terms) that are mostly 0. It does not change.

    Parameters
    ----------
    rows : csr_array (n_classes, n_terms)
        Sorted, and without stored zeros.
    """

    def __init__(self, rows: sp.csr_array) -> None:
        self._rows = rows
        self.shape: tuple[int, int] = rows.shape
        _close(rows)

    @classmethod
    def of(cls, table: Any) -> SparseCounts:
        """The counts of a sparse matrix, whose repeated entries are added up."""
        import scipy.sparse as sp

        rows = sp.csr_array(table)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        if not rows.data.all():
            rows = rows.copy()
            rows.eliminate_zeros()
        return cls(rows)

    @classmethod
    def of_cells(
        cls, row: NDArray[Any], column: NDArray[Any], count: NDArray[Any], shape: tuple[int, int]
    ) -> SparseCounts:
        """The counts of these cells; those of a cell that is repeated are added up."""
        import scipy.sparse as sp

        return cls.of(sp.coo_array((count, (row, column)), shape=shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        kind: np.dtype[Any] = self._rows.dtype
        return kind

    @property
    def nnz(self) -> int:
        """The number of counts that are not 0."""
        return len(self._rows.data)

    @property
    def values(self) -> NDArray[Any]:
        """The counts that are not 0, in the order of `nonzero`."""
        values: NDArray[Any] = self._rows.data
        return values

    @property
    def nbytes(self) -> int:
        return int(self._rows.data.nbytes + self._rows.indices.nbytes + self._rows.indptr.nbytes)

    def nonzero(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The class and the term of each count that is not 0, class by class."""
        sizes = np.diff(self._rows.indptr)
        return np.repeat(np.arange(len(self)), sizes), self._rows.indices.astype(np.int64)

    def by_term(self) -> sp.csr_array:
        """The counts (n_terms, n_classes), term by term."""
        return self._rows.T.tocsr()

    def sum(self, axis: int | None = None, keepdims: bool = False) -> Any:
        """The sum of all, of each term (axis 0) or of each class (axis 1)."""
        if axis is None:
            return self._rows.data.sum()
        sums = np.asarray(self._rows.sum(axis=axis)).reshape(-1)
        return np.expand_dims(sums, axis) if keepdims else sums

    def max(self, axis: int | None = None, initial: Any = 0) -> Any:
        """The largest count, of all or along an axis; at least ``initial``."""
        if axis is None:
            return self._rows.data.max(initial=initial)
        row, column = self.nonzero()
        largest = np.full(self.shape[1 - axis], initial, dtype=self.dtype)
        np.maximum.at(largest, column if axis == 0 else row, self._rows.data)
        return largest

    def copy(self) -> NDArray[Any]:
        """A dense table that can be changed."""
        return np.asarray(self)

    def same(self, other: Any) -> bool:
        """Whether all counts are equal."""
        return isinstance(other, SparseCounts) and self.shape == other.shape and all(
            np.array_equal(getattr(self._rows, name), getattr(other._rows, name))
            for name in ("indptr", "indices", "data"))

    def scaled(self, factors: Floats) -> SparseCounts:
        """The counts of each class times a number."""
        rows = self._rows.astype(np.float64)
        rows.data *= np.repeat(factors, np.diff(rows.indptr))
        return SparseCounts.of(rows)

    def resized(self, n_classes: int, n_terms: int) -> SparseCounts:
        """The same counts in a table that is as large or larger."""
        if (n_classes, n_terms) == self.shape:
            return self
        import scipy.sparse as sp

        rows = self._rows
        indptr = np.pad(rows.indptr, (0, n_classes - len(self)), mode="edge")
        return SparseCounts.of(
            sp.csr_array((rows.data, rows.indices, indptr), shape=(n_classes, n_terms)))

    def spread(
        self, shape: tuple[int, int], rows: NDArray[Any] | None = None,
        columns: NDArray[Any] | None = None,
    ) -> SparseCounts:
        """The counts in a larger table: row i moves to ``rows[i]``, and so do columns."""
        row, column = self.nonzero()
        return SparseCounts.of_cells(
            row if rows is None else rows[row], column if columns is None else columns[column],
            self._rows.data, shape)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, SparseCounts):
            return SparseCounts.of(self._rows + other._rows)
        return super().__add__(other)

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, SparseCounts):
            return SparseCounts.of(self._rows - other._rows)
        return super().__sub__(other)

    def __getitem__(self, key: Any) -> Any:
        """A class's counts, dense; some classes or terms, sparse; a tile or single cells, dense."""
        if isinstance(key, tuple):
            rows, columns = key
            if isinstance(rows, (int, np.integer)):
                return self[rows][columns]
            if isinstance(columns, (int, np.integer)):
                columns = np.full(len(self), columns)
                return _cells(self._rows, np.arange(len(self)), columns)[rows]
            if not isinstance(rows, slice):
                return _cells(self._rows, rows, columns)
            if isinstance(columns, slice):
                return self._rows[rows][:, columns].toarray()
            return SparseCounts.of(self._rows[rows][:, _places(columns)])
        if isinstance(key, (int, np.integer)):
            begin, end = self._rows.indptr[range(len(self))[key]:][:2]
            dense = np.zeros(self.shape[1], dtype=self.dtype)
            dense[self._rows.indices[begin:end]] = self._rows.data[begin:end]
            return dense
        return SparseCounts.of(self._rows[key if isinstance(key, slice) else _places(key)])

    def _toarray(self) -> NDArray[Any]:
        dense: NDArray[Any] = self._rows.toarray()
        return dense


class SparseWeights(SparseTable):
    """Weights (n_terms, n_classes), most of which are a sum of one number per term and per class.

    Parameters
    ----------
    excess : csr_array (n_terms, n_classes)
        What a weight is above that sum. Sorted.
    default : float64 (n_classes,)
        Of each class.
    shared : float64 (n_terms,), optional
        Of each term, for all classes; by default 0.
    """

    dtype = np.dtype(np.float64)
    _classes, _what = 1, "their weights"

    def __init__(self, excess: sp.csr_array, default: Floats, shared: Floats | None = None) -> None:
        self._excess, self._default, self._shared = excess, read_only(default), read_only(shared)
        self.shape: tuple[int, int] = excess.shape
        _close(excess)

    @property
    def nbytes(self) -> int:
        shared = 0 if self._shared is None else self._shared.nbytes
        return int(self._excess.data.nbytes + self._excess.indices.nbytes
                   + self._excess.indptr.nbytes + self._default.nbytes + shared)

    def product(self, rows: Any) -> Floats:
        """The product of rows with the weights: float64 (n_rows, n_classes).

        Only the weights that are stored for the terms of a row are visited.

        Parameters
        ----------
        rows : csr_array (n_rows, n_terms)
        """
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        # One after the other, as in `product_of_one`, on which a sum of floats depends.
        lengths = np.bincount(row, weights=rows.data, minlength=rows.shape[0])
        scores: Floats = np.multiply.outer(lengths, self._default)
        if self._shared is not None:
            scores += np.bincount(row, weights=rows.data * self._shared[rows.indices],
                                  minlength=rows.shape[0])[:, None]
        found = rows @ self._excess
        if found.nnz:
            scores += found.toarray()
        return scores

    def product_of_one(self, columns: NDArray[np.int64], values: Floats) -> Floats:
        """The product of one row, without SciPy: float64 (n_classes,)."""
        row = np.zeros(len(values), dtype=np.int64)
        scores: Floats = np.bincount(row, weights=values, minlength=1) * self._default
        if self._shared is not None:
            scores += np.bincount(row, weights=values * self._shared[columns], minlength=1)
        excess, found = self._excess, np.zeros(self.shape[1])
        for term, value in zip(columns.tolist(), values.tolist(), strict=True):
            stored = slice(excess.indptr[term], excess.indptr[term + 1])
            found[excess.indices[stored]] += value * excess.data[stored]
        scores += found
        return scores

    def against_rest(self, terms: NDArray[np.int64], k: int | NDArray[np.int64]) -> Floats:
        """Weights of terms for a class, less the mean of their weights for the other classes.

        With an array of as many classes as terms, each term has its own.
        """
        n_classes = self.shape[1]
        default, own = self._default, _cells(
            self._excess, terms, np.broadcast_to(k, terms.shape))
        others = (default.sum() - default[k] + self._excess_of_terms[terms] - own) / (n_classes - 1)
        difference: Floats = default[k] + own - others
        return difference

    @cached_property
    def _excess_of_terms(self) -> Floats:
        return np.asarray(self._excess.sum(axis=1)).reshape(-1)

    @cached_property
    def _by_class(self) -> sp.csc_array:
        return self._excess.tocsc()

    def __getitem__(self, key: Any) -> Floats:
        """Weights of some terms, of one class, or single ones: dense."""
        found: Floats
        if isinstance(key, (int, np.integer)):
            found = self[[key]][0]
            return found
        if not isinstance(key, tuple):
            terms = _places(key) if not isinstance(key, slice) else np.arange(len(self))[key]
            part = SparseWeights(self._excess[terms], self._default,
                                 None if self._shared is None else self._shared[terms])
            return np.asarray(part)
        terms, classes = key
        if isinstance(classes, (int, np.integer)):
            column = self._by_class
            begin, end = column.indptr[range(self.shape[1])[classes]:][:2]
            weights = np.zeros(len(self))
            weights[column.indices[begin:end]] = column.data[begin:end]
            weights += self._default[classes]
            if self._shared is not None:
                weights += self._shared
            found = weights[terms]
            return found
        if isinstance(terms, slice) or isinstance(classes, slice):
            found = np.asarray(self)[key]
            return found
        terms, classes = np.broadcast_arrays(terms, classes)
        found = _cells(self._excess, terms, classes) + self._default[classes]
        return found if self._shared is None else found + self._shared[terms]

    def _toarray(self) -> Floats:
        dense: Floats = self._excess.toarray()
        dense += self._default
        if self._shared is not None:
            dense += self._shared[:, None]
        return dense


def _close(table: sp.csr_array) -> None:
    for name in ("data", "indices", "indptr"):
        setattr(table, name, read_only(getattr(table, name)))


def _places(chosen: Any) -> NDArray[Any]:
    chosen = np.asarray(chosen)
    return np.flatnonzero(chosen) if chosen.dtype.kind == "b" else chosen.astype(np.int64)


def _cells(table: sp.csr_array, rows: Any, columns: Any) -> NDArray[Any]:
    """Single cells, one for each pair of a row and a column: (n_pairs,)."""
    import scipy.sparse as sp

    if not len(rows):
        return np.zeros(0, dtype=table.dtype)
    # The older class, as the new one has answered such a key in several ways.
    cells = sp.csr_matrix((table.data, table.indices, table.indptr), shape=table.shape)
    return np.asarray(cells[_places(rows), _places(columns)]).reshape(-1)
