"""Counts terms per class, batch by batch, in tables (labels x term codes).

The compiled kernel or Polars expressions convert terms to integer codes; both give the same counts.
Labels are codes too: 0, 1, 2 and so on, in the order of their first use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.cells import (
    Cells,
    cells_of,
    cells_of_keys,
    concatenate_ranges,
    is_sparse,
    may_be_sparse,
    sum_by_key,
)
from textnb.bayes.counts import Counts
from textnb.runtime.memory import check_fits_in_memory, fits_in_memory
from textnb.runtime.threads import run_in_threads
from textnb.text.compiled import Tables, usable_kernel
from textnb.text.matrix import columns_of_codes, csr_of_codes
from textnb.text.tokens import TextColumns, Tokenizer
from textnb.text.utf8 import begins_of
from textnb.text.vocabulary import Limits

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
# Tables of up to `_FEW_LABELS` labels start with `_MIN_WIDTH` codes: they would soon grow so wide.
_MIN_WIDTH, _FEW_LABELS = 1 << 17, 32
_MAX_INT32 = 2**31 - 1
# Up to this number of cells, a dense table counts faster than a list of cells that are not 0.
_MAX_DENSE_CELLS = 1 << 26
# A cell's key in such a list is code << _LABEL_BITS | label.
_LABEL_BITS = 32
# At the end, columns are put in the order of the terms: in blocks of this number of cells or, if
# counts are lists of cells, in this number of shares of the terms.
_CELLS_PER_BLOCK, _N_SHARES = 1 << 18, 8


@dataclass(frozen=True)
class CountSpec:
    """What to count: the columns, the tokens, and the totals of each term.

    Attributes
    ----------
    tokenizer : Tokenizer
    text : str or sequence of str
        The text columns.
    label : str
        The label column.
    limits : Limits
        Limits on terms. They apply after counting; here they say which totals are needed.
    presence_above : float or None
        None to count occurrences; a number to count the documents in which a term occurs more
        often than this.
    binary : bool
        Whether limits such as ``max_features`` also count a term once per document.
    """

    tokenizer: Tokenizer
    text: TextColumns
    label: str
    limits: Limits = Limits()
    presence_above: float | None = None
    binary: bool = False

    @property
    def keeps_documents(self) -> bool:
        """Whether document frequencies are kept, because limits need them."""
        return self.limits.need_document_frequency

    @property
    def keeps_occurrences(self) -> bool:
        """Whether occurrences are kept beside counts of documents, to rank terms by them."""
        return self.presence_above is not None and not self.binary

    @property
    def min_count(self) -> int:
        """The minimum count for which a term is present; 0 if occurrences are counted."""
        if self.presence_above is None:
            return 0
        # The kernel takes an int64, and no term occurs 2**62 times in a document.
        return int(min(max(0.0, self.presence_above), 2**62)) + 1


class Counting:
    """Counts batches; several threads may call `read`, each with its own tables."""

    def __init__(self, spec: CountSpec) -> None:
        kernel = usable_kernel()
        # The compiled functions of `textnb.text.native.rows`, or None.
        self._spec, self._row_functions = spec, None if kernel is None else kernel.rows
        self._tables = Tables(kernel, spec.tokenizer)
        self._sums: dict[int, _Sums] = {}
        # At most 8, as each thread has a table of all labels and terms. This is not a constant of
        # the module: `thread_pool_size` starts Polars' threads, which an import must not do.
        # Without a kernel, few threads are enough; with one there is no such limit.
        n_threads = self._tables.threads
        self.threads = min(8, pl.thread_pool_size()) if n_threads is None else n_threads

    def __len__(self) -> int:
        """An upper bound of the number of terms: several threads may count the same term."""
        return len(self._tables)

    def read(self, frame: pl.DataFrame, labels: Ints, rows: Ints | None = None) -> None:
        """Count a batch.

        Parameters
        ----------
        frame : DataFrame
        labels : int64 (n_labels,)
            In ascending order. Without ``rows``, each row of the frame has one label.
        rows : int64 (n_labels,), optional
            For lists of labels: the row of each label. These labels begin at 1, because label 0
            counts all rows.
        """
        with self._tables.take() as (number, table):
            codes, ends = table.add_texts(frame, self._spec.text)
            sums = self._sums.setdefault(number, _Sums(self._spec, self._row_functions))
            # With lists of labels there is label 0, even if no row has a label.
            sums.widen(int(labels.max(initial=-1 if rows is None else 0)) + 1, len(table))
            sums.prevent_overflow(len(codes))
            begins = begins_of(ends)
            if rows is None:
                sums.add(codes, begins, ends, labels)
            else:
                sums.add(codes, begins, ends, np.zeros_like(ends))
                # The totals of terms have these rows already, as all rows have label 0.
                sums.add(codes, begins[rows], ends[rows], labels, with_totals=False)

    def counts(self, classes: NDArray[Any], labels: Ints, class_count: Ints) -> Counts:
        """The counts; no batch can be read after this.

        Parameters
        ----------
        classes : (n_classes,)
            Sorted.
        labels : int64 (n_classes,)
            The label code of each class.
        class_count : int64 (n_classes,)
            The number of documents of each class.
        """
        table, new_codes = self._tables.merge()
        # The codes of the terms, in the order of the terms.
        order = table.sort(table.terms())
        n_terms, columns = len(order), columns_of_codes(order, len(table))
        # For each thread, its sums and the column of each of its codes: the place of the term in
        # `order`, or -1.
        tables = [(self._sums.pop(number), columns[new_codes[number]]) for number in [*self._sums]]
        # Strings of terms, which one thread makes while others add up tables.
        terms: list[pl.Series] = []
        if any(sums.cells is not None for sums, _ in tables):
            terms.append(table.strings(order))
            cells = _add_cells(tables, labels, n_terms)
        else:
            cells = _add_tables(tables, labels, n_terms, lambda: terms.append(table.strings(order)))
        documents, occurrences = _sum_totals(tables, n_terms)
        return Counts(classes, class_count, *cells, terms=terms[0],
                      document_frequency=documents if self._spec.keeps_documents else None,
                      occurrences=occurrences if self._spec.keeps_occurrences else None)


class _Sums:
    """A thread's counts per label and term code, and totals per code: documents and occurrences.

    Counts are a dense table or, if that would be mostly 0, a list ``cells`` of arrays of sorted
    keys, each with their counts. The arrays are merged when the later ones together are larger than
    the first, so that merging costs little for any number of batches.
    """

    def __init__(self, spec: CountSpec, row_functions: Any) -> None:
        self._row_functions, self._min_count = row_functions, spec.min_count
        self._has_totals = spec.presence_above is not None or spec.keeps_documents
        # int32 halves memory and cache misses; `prevent_overflow` changes to int64 in time.
        self.counts: NDArray[Any] = np.zeros((2, 1024), dtype=np.int32)
        self.cells: list[tuple[Ints, NDArray[Any]]] | None = None
        # The number of tokens so far; no count is higher.
        self._n_tokens = 0
        # `totals` has the documents and the occurrences of each code. The kernel writes to `_seen`
        # the last document that held each code, and the code's occurrences there.
        self.totals, self._seen = np.zeros((2, 2, 1024 if self._has_totals else 0), dtype=np.int64)
        self._n_documents = 0

    def widen(self, labels: int, codes: int) -> None:
        """Make the arrays large enough for this number of labels and codes."""
        if self.cells is None and (labels > len(self.counts) or codes > self.counts.shape[1]):
            if self._is_sparse(max(labels, len(self.counts)), max(codes, self.counts.shape[1])):
                self.to_cells()
            else:
                self._widen_counts(labels, codes)
        if self._has_totals:
            self.totals, self._seen = widen(self.totals, 2, codes), widen(self._seen, 2, codes)

    def _is_sparse(self, labels: int, codes: int) -> bool:
        """Whether a table of this size should become a list of its cells that are not 0."""
        # Counting the cells that are not 0 takes time, so it comes last.
        if not may_be_sparse(labels, codes) or not is_sparse(
                labels, codes, int(np.count_nonzero(self.counts))):
            return False
        # 64 bytes for a cell of 4 or 8, as several threads have tables, and tables grow by half.
        return labels * codes > _MAX_DENSE_CELLS or not fits_in_memory(64 * labels * codes)

    def _widen_counts(self, labels: int, codes: int) -> None:
        # A wide table from the start saves copies of a growing one. A table that gets more labels
        # loses its spare columns first, because each new label would have them too.
        min_width = _MIN_WIDTH if max(labels, len(self.counts)) <= _FEW_LABELS else 0
        old = self.counts if labels <= len(self.counts) else self.counts[:, :max(codes, min_width)]
        self.counts = widen(old, labels, codes, min_width)

    def prevent_overflow(self, tokens: int) -> None:
        """Change counts to int64 if adding this number of tokens might overflow int32."""
        self._n_tokens += tokens
        if self._n_tokens > _MAX_INT32 and self.counts.dtype == np.int32:
            self.counts = self.counts.astype(np.int64)

    def add(
        self, codes: NDArray[Any], begins: Ints, ends: Ints, labels: Ints, with_totals: bool = True
    ) -> None:
        """Count the codes of documents per label and, if ``with_totals``, in the totals."""
        if self.cells is None and self._row_functions is not None:
            if self._has_totals:
                self._row_functions.add_presence(
                    codes, begins, ends, labels, self.counts, self._min_count,
                    self.totals if with_totals else np.zeros_like(self.totals), self._seen,
                    self._n_documents)
                self._n_documents += len(ends)
            else:
                self._row_functions.add_counts(codes, begins, ends, labels, self.counts)
            return
        codes, ends = concatenate_rows(codes, begins, ends)
        if self._has_totals:
            codes, ends = self._add_totals(codes, ends, with_totals)
        label_of_code = np.repeat(labels, ends - begins_of(ends))
        if self.cells is None:
            places = label_of_code * self.counts.shape[1] + codes
            np.add.at(self.counts.reshape(-1), places, self.counts.dtype.type(1))
        elif len(codes):
            keys, counts = np.unique(
                (codes.astype(np.int64) << _LABEL_BITS) | label_of_code, return_counts=True)
            self.cells.append((keys, counts.astype(self.counts.dtype)))
            if sum(len(keys) for keys, _ in self.cells[1:]) > len(self.cells[0][0]):
                keys, counts = _merge_cells(self.cells)
                self.cells = [(keys, counts.astype(self.counts.dtype))]

    def _add_totals(
        self, codes: NDArray[Any], ends: Ints, with_totals: bool
    ) -> tuple[NDArray[Any], Ints]:
        """Add to the totals; return the codes to count per label, and the end of each document.

        If presence is counted, the codes are those of present terms, once per document.
        """
        counts = csr_of_codes(ends - begins_of(ends), codes, int(codes.max(initial=0)) + 1)
        width = counts.shape[1]
        if with_totals:
            self.totals[0, :width] += np.bincount(counts.indices, minlength=width)
            self.totals[1, :width] += np.bincount(codes, minlength=width)
        if not self._min_count:
            return codes, ends
        is_present = counts.data >= self._min_count
        return counts.indices[is_present], np.append(0, np.cumsum(is_present))[counts.indptr[1:]]

    def to_cells(self) -> None:
        """Replace the table by a list of its cells that are not 0."""
        if self.cells is None:
            ends, labels, values = cells_of(self.counts)
            codes = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
            self.cells = [((codes << _LABEL_BITS) | labels, values)]
            # An empty table, which still says the type of counts.
            self.counts = self.counts[:0, :0].copy()


def _sum_totals(tables: list[tuple[_Sums, Codes]], n_terms: int) -> Ints:
    """The documents and the occurrences of each term, over all threads: (2, n_terms).

    ``tables`` has each thread's sums, and the column of each of its codes, or -1.
    """
    totals = np.zeros((2, n_terms), dtype=np.int64)
    for sums, columns in tables:
        # The array is empty if there are no totals.
        codes = np.flatnonzero(columns[:sums.totals.shape[1]] >= 0)
        totals[:, columns[codes]] += sums.totals[:, codes]
    return totals


def _add_tables(
    tables: list[tuple[_Sums, Codes]], labels: Ints, n_terms: int, meanwhile: Callable[[], None]
) -> Cells:
    """The cells of all terms, in the order of these labels, from the tables of all threads.

    ``tables`` has each thread's sums, and the column of each of its codes, or -1. While threads add
    up blocks of terms, one of them calls ``meanwhile``.
    """
    # For each table, the code of each term; -1 if the table lacks it.
    codes_of_tables, n_rows = [], int(labels.max(initial=-1)) + 1
    for sums, columns in tables:
        sums.widen(n_rows, len(columns))
        has_column = np.flatnonzero(columns >= 0)
        codes = np.full(n_terms, -1, dtype=np.int32)
        codes[columns[has_column]] = has_column
        codes_of_tables.append(codes)
    terms_per_block = max(1, _CELLS_PER_BLOCK // max(1, len(labels)))
    blocks: dict[int, Cells] = {}

    def add_block(start: int) -> None:
        total = np.zeros((n_rows, min(terms_per_block, n_terms - start)), dtype=np.int64)
        for (sums, _), codes in zip(tables, codes_of_tables, strict=True):
            block = codes[start:start + terms_per_block]
            counts, is_missing = sums.counts[:n_rows].take(block, axis=1), block < 0
            if is_missing.any():
                counts[:, is_missing] = 0
            total += counts
        blocks[start] = cells_of(total[labels])

    starts = range(0, max(1, n_terms), terms_per_block)
    run_in_threads([meanwhile, *(partial(add_block, start) for start in starts)])
    return _concatenate_cells([blocks[start] for start in starts])


def _add_cells(tables: list[tuple[_Sums, Codes]], labels: Ints, n_terms: int) -> Cells:
    """The cells as from `_add_tables`, if some of the sums are lists of cells."""
    class_of_label = np.full(int(labels.max(initial=-1)) + 1, -1)
    class_of_label[labels] = np.arange(len(labels))
    # Each table's keys become column * number of classes + class, in the order of the result.
    cells: list[tuple[Ints, NDArray[Any]]] = []
    for sums, columns in tables:
        sums.to_cells()
        while sums.cells:
            keys, counts = sums.cells.pop()
            classes = class_of_label[keys & ((1 << _LABEL_BITS) - 1)]
            # Codes without a column (-1) get negative keys, which no share includes.
            cells.append((columns[keys >> _LABEL_BITS] * np.int64(len(labels)) + classes, counts))

    def add_share(begin: int, end: int) -> Cells:
        min_key, end_key = begin * len(labels), end * len(labels)
        masks = [(keys >= min_key) & (keys < end_key) for keys, _ in cells]
        share = [(keys[mask] - min_key, counts[mask])
                 for (keys, counts), mask in zip(cells, masks, strict=True)]
        return cells_of_keys(*_merge_cells(share), n_features=end - begin, n_classes=len(labels))

    # A share of the terms at a time, to bound memory.
    bounds = [n_terms * share // _N_SHARES for share in range(_N_SHARES + 1)]
    return _concatenate_cells([add_share(begin, end) for begin, end in pairwise(bounds)])


def _merge_cells(arrays: list[tuple[Ints, NDArray[Any]]]) -> tuple[Ints, NDArray[Any]]:
    """The keys of all arrays, sorted, and the sum of the counts of each."""
    return sum_by_key(*(np.concatenate(each) for each in zip(*arrays, strict=True)))


def _concatenate_cells(blocks: list[Cells]) -> Cells:
    """Concatenate the cells of consecutive terms."""
    ends, codes, values = zip(*blocks, strict=True)
    # The last begin is the end of all cells; no block begins there.
    begins = np.cumsum([0, *map(len, values)])
    return (np.concatenate([each + begin for each, begin in zip(ends, begins, strict=False)]),
            np.concatenate(codes), np.concatenate(values).astype(np.int64, copy=False))


def concatenate_rows(codes: NDArray[Any], begins: Ints, ends: Ints) -> tuple[NDArray[Any], Ints]:
    """The codes of these rows, concatenated, and the end of each row.

    Examples
    --------
    >>> codes, ends = concatenate_rows(
    ...     np.array([5, 6, 7]), np.array([2, 0, 2]), np.array([3, 2, 3]))
    >>> codes.tolist(), ends.tolist()
    ([7, 5, 6, 7], [1, 3, 4])
    """
    new_ends = np.cumsum(ends - begins)
    if len(ends) and new_ends[-1] == len(codes) and np.array_equal(new_ends, ends):
        return codes, ends
    return codes[concatenate_ranges(begins, ends)], new_ends


def add_one_per_code(counts: Ints, codes: NDArray[Any]) -> Ints:
    """A copy of the counts, plus 1 for each of these codes; it is longer if there are new codes."""
    larger = np.bincount(codes, minlength=len(counts))
    larger[:len(counts)] += counts
    return larger


def widen(counts: NDArray[Any], rows: int, columns: int, min_width: int = 0) -> NDArray[Any]:
    """A table with at least this number of rows and columns.

    A table that must grow gets half more than it needs, so that new labels or terms in each batch
    do not copy it each time. Spare cells that are never written take no memory.
    """
    old_rows, old_columns = counts.shape
    if rows <= old_rows and columns <= old_columns:
        return counts
    new_columns = max(columns * 3 // 2, min_width) if columns > old_columns else old_columns
    new_rows = rows * 3 // 2 if rows > old_rows else old_rows
    # Spare cells only if memory allows: old and new table exist at the same time.
    if not fits_in_memory(new_rows * new_columns * counts.itemsize):
        new_rows, new_columns = max(rows, old_rows), max(columns, old_columns)
        # Twice, because at the end the counts are copied into the order of the terms.
        check_fits_in_memory(new_rows, new_columns, 2 * counts.itemsize, name="their counts")
    larger = np.zeros((new_rows, new_columns), dtype=counts.dtype)
    larger[:old_rows, :old_columns] = counts
    return larger
