"""Counts terms per class batch by batch, with expressions or with the kernel.

Both give the same counts. Labels are codes that count up from 0, in the order of their first use.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.sparse_table import SparseCounts, is_sparse, may_be_sparse
from textnb.bayes.statistics import CountStatistics
from textnb.runtime.memory import check_room, has_room
from textnb.runtime.threads import run_in_threads
from textnb.text.byte_keys import begins_of
from textnb.text.compiled import Tables
from textnb.text.counted_cells import CountedCells, arranged, few_cells
from textnb.text.interner import Interner, code_expr, flat_codes, sorted_terms
from textnb.text.matrix import columns_of, merge_tokens
from textnb.text.native.kernel import Kernel
from textnb.text.term_counts import CountSpec, TermCounts

Ints = NDArray[np.int64]
# The least width of a table, and the number of labels up to which it applies.
_WIDE, _FEW_LABELS = 1 << 17, 32
_MOST_32 = 2**31 - 1


class Counting(Protocol):
    """Counts batches: `read` runs in threads, and `add` in order in the thread of the caller."""

    @property
    def threads(self) -> int: ...

    def __len__(self) -> int:
        """An upper bound of the number of terms."""

    def read(self, frame: pl.DataFrame, labels: Ints, rows: Ints | None = None) -> Any:
        """Read a batch, whose rows are sorted by label.

        Parameters
        ----------
        frame : DataFrame
        labels : int64 (n_labels,)
            They are sorted.
        rows : int64 (n_labels,), optional
            The row of each label, if rows have any number of labels. Each row counts in its labels,
            which count up from 1, and in the label 0. If not given, each row has one label.
        """

    def add(self, found: Any) -> None: ...

    def counts(self, classes: NDArray[Any], labels: Ints, class_count: Ints) -> TermCounts:
        """The counts; no batch can be read after this.

        Parameters
        ----------
        classes : (n_classes,)
            They are sorted.
        labels : int64 (n_classes,)
            The code of each class.
        class_count : int64 (n_classes,)
            Number of documents.
        """


class ExpressionCounting:
    """Counts with Polars' expressions, which use all threads by themselves."""

    # Two, so that one batch is read while another is added.
    threads = 2

    def __init__(self, spec: CountSpec) -> None:
        self._spec = spec
        self._words = Interner()
        self._codes = code_expr(spec.tokenizer, spec.text, self._words)
        self._table = _GrowingTable()
        self._frequency, self._occurrences = np.zeros((2, 0), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._words)

    def read(
        self, frame: pl.DataFrame, labels: Ints, rows: Ints | None = None
    ) -> tuple[pl.Series, Ints, Ints | None]:
        coded = frame.lazy().select(self._codes.alias("codes")).collect()
        return coded["codes"], labels, rows

    def add(self, found: tuple[pl.Series, Ints, Ints | None]) -> None:
        lengths, flat = flat_codes(found[0])
        self._words.note_codes(flat)
        above = self._spec.presence_above
        if above is None and not self._spec.keeps_documents:
            self._add(*found[1:], np.cumsum(lengths), flat)
            return
        counts = merge_tokens(lengths, flat, len(self._words))
        if self._spec.keeps_documents:
            self._frequency = add_at(self._frequency, counts.indices)
        if above is None:
            self._add(*found[1:], np.cumsum(lengths), flat)
        else:
            if self._spec.keeps_occurrences:
                self._occurrences = add_at(self._occurrences, flat)
            present = counts.data > above
            before = np.append(0, np.cumsum(present))
            self._add(*found[1:], before[counts.indptr[1:]], counts.indices[present])

    def _add(self, labels: Ints, rows: Ints | None, ends: Ints, columns: NDArray[Any]) -> None:
        if rows is not None:
            self._table.add(np.zeros(len(ends), dtype=np.int64), ends, columns)
            columns, ends = row_after_row(columns, begins_of(ends)[rows], ends[rows])
        self._table.add(labels, ends, columns)

    def counts(self, classes: NDArray[Any], labels: Ints, class_count: Ints) -> TermCounts:
        kept, terms = sorted_terms(self._words, self._spec.tokenizer)
        counts = self._table.values(labels, kept)
        del self._table
        documents, occurrences = [
            np.pad(sums, (0, len(self._words) - len(sums)))[kept] if wanted else None
            for sums, wanted in ((self._frequency, self._spec.keeps_documents),
                                 (self._occurrences, self._spec.keeps_occurrences))]
        return TermCounts(terms, CountStatistics(classes, class_count, counts),
                          documents, occurrences)


class CompiledCounting:
    """Counts with the kernel: each thread has its own table, and in the end they are added up."""

    def __init__(self, kernel: Kernel, spec: CountSpec) -> None:
        self._rows, self._spec = kernel.rows, spec
        above = spec.presence_above
        # The least count of a term with which a document counts; 0 if occurrences count.
        self._least = 0 if above is None else _count_above(above)
        self._both = above is not None or spec.keeps_documents
        self._tables = Tables(kernel, spec.tokenizer)
        self._sums: dict[int, _Sums] = {}
        # Each thread has counts of all classes and terms, so that many threads would take much
        # memory. The call starts Polars' threads, which an import must not do.
        self.threads = min(8, pl.thread_pool_size())

    def __len__(self) -> int:
        return len(self._tables)

    def read(self, frame: pl.DataFrame, labels: Ints, rows: Ints | None = None) -> None:
        with self._tables.take() as (number, table):
            codes, ends = table.add_texts(frame, self._spec.text)
            sums = self._sums.setdefault(number, _Sums(self._both)).widen(
                int(labels.max(initial=-1 if rows is None else 0)) + 1, len(table))
            sums.make_room(len(codes))
            begins, of_terms = begins_of(ends), sums.of_terms
            if rows is not None:
                self._add(sums, codes, begins, ends, np.zeros_like(ends), of_terms)
                begins, ends = begins[rows], ends[rows]
                # A document counts once among all of them.
                of_terms = np.zeros_like(of_terms)
            self._add(sums, codes, begins, ends, labels, of_terms)

    def _add(
        self, sums: _Sums, codes: NDArray[Any], begins: Ints, ends: Ints, labels: Ints,
        of_terms: Ints,
    ) -> None:
        if sums.cells is not None:
            self._add_cells(sums.cells, *row_after_row(codes, begins, ends), labels, of_terms)
        elif self._both:
            self._rows.add_presence(codes, begins, ends, labels, sums.counts, self._least,
                                    of_terms, sums.seen, sums.documents)
            sums.documents += len(ends)
        else:
            self._rows.add_counts(codes, begins, ends, labels, sums.counts)

    def _add_cells(
        self, cells: CountedCells, codes: NDArray[Any], ends: Ints, labels: Ints, of_terms: Ints
    ) -> None:
        """As `_add`, where the table is sparse."""
        if not self._both:
            cells.add(labels, ends, codes)
            return
        counts = merge_tokens(ends - begins_of(ends), codes, int(codes.max(initial=-1)) + 1)
        width = counts.shape[1]
        of_terms[0, :width] += np.bincount(counts.indices, minlength=width)
        if self._least:
            of_terms[1, :width] += np.bincount(codes, minlength=width)
            present = counts.data >= self._least
            before = np.append(0, np.cumsum(present))
            codes, ends = counts.indices[present], before[counts.indptr[1:]]
        cells.add(labels, ends, codes)

    def add(self, found: None) -> None:
        """Do nothing: `read` has added the batch."""

    def counts(self, classes: NDArray[Any], labels: Ints, class_count: Ints) -> TermCounts:
        whole, codes_of = self._tables.merge()
        order = whole.sort(whole.terms())
        columns = columns_of(order, len(whole))
        of_terms = np.zeros((2, len(order)), dtype=np.int64)
        tables = [(self._sums.pop(number).widen(0, len(codes)), columns[codes])
                  for number, codes in enumerate(codes_of)]
        strings: list[pl.Series] = []
        counts: Any = self._sparse_counts(tables, labels, len(order))
        if counts is not None:
            strings.append(whole.strings(order))
        else:
            check_room(len(labels), len(order), 8, "their counts")
            counts = np.zeros((len(labels), len(order)), dtype=np.int64)

            def add(place: int) -> None:
                label = int(labels[place])
                for own, column in tables:
                    # A thread may not have met a class that others have.
                    self._rows.add_columns(
                        counts[place:place + 1], own.counts[label:label + 1], column)

            run_in_threads([lambda: strings.append(whole.strings(order)),
                      *(partial(add, place) for place in range(len(labels)))])
        if self._both:
            for own, column in tables:
                self._rows.add_columns(of_terms, own.of_terms, column)
        documents, occurrences = of_terms
        return TermCounts(strings[0], CountStatistics(classes, class_count, counts),
                          documents if self._spec.keeps_documents else None,
                          occurrences if self._spec.keeps_occurrences else None)


    @staticmethod
    def _sparse_counts(
        tables: list[tuple[_Sums, NDArray[Any]]], labels: Ints, n_terms: int
    ) -> SparseCounts | None:
        """The counts, where the table of one thread is sparse or the whole one would be."""
        height = len(labels)
        if all(own.cells is None for own, _ in tables) and (
                not may_be_sparse(height, n_terms) or not is_sparse(height, n_terms, sum(
                    int(np.count_nonzero(own.counts)) for own, _ in tables))):
            return None
        total: SparseCounts | None = None
        for own, column in tables:
            cells = own.cells or CountedCells([SparseCounts.of(own.counts.astype(np.int64))])
            own.cells, own.counts = None, own.counts[:0]
            # A table is longer than its codes.
            found = cells.total(height, len(column))
            column = np.pad(column, (0, found.shape[1] - len(column)), constant_values=-1)
            part = arranged(found, labels, column, n_terms)
            total = part if total is None else total + part
        return total


class _Sums:
    """Counts per label and code, and sums per code: see `native.rows.add_presence`.

    With many labels and codes, of which few are together, ``cells`` has the counts.
    """

    def __init__(self, per_code: bool) -> None:
        # int32 takes half the memory of int64, and has half the cache misses.
        self.counts: NDArray[Any] = np.zeros((2, 1024), dtype=np.int32)
        self.cells: CountedCells | None = None
        self._most = 0
        width = 1024 if per_code else 0
        self.of_terms, self.seen = np.zeros((2, 2, width), dtype=np.int64)
        self.documents = 0

    def widen(self, labels: int, codes: int) -> _Sums:
        """Make the arrays large enough for this number of labels and codes."""
        if self.cells is None and (labels > len(self.counts) or codes > self.counts.shape[1]):
            self.cells = few_cells(self.counts, labels, codes)
            if self.cells is not None:
                self.counts = self.counts[:0, :0].copy()
        if self.cells is None:
            self._widen_counts(labels, codes)
        if self.seen.size:
            self.of_terms = widen(self.of_terms, 2, codes)
            self.seen = widen(self.seen, 2, codes)
        return self

    def _widen_counts(self, labels: int, codes: int) -> None:
        # A wide table from the start is faster than copies of a growing one. If more labels come
        # than expected, its unused part is given up.
        least = _WIDE if max(labels, len(self.counts)) <= _FEW_LABELS else 0
        used = self.counts if labels <= len(self.counts) else self.counts[:, :max(codes, least)]
        self.counts = widen(used, labels, codes, least)

    def make_room(self, more: int) -> None:
        """Make sure that no count can overflow when this number of terms is added."""
        self._most += more
        if self._most > _MOST_32 and self.counts.dtype == np.int32:
            self.counts = self.counts.astype(np.int64)


def _count_above(limit: float) -> int:
    """The least count above 0 that is above the limit."""
    most = 2**62
    return max(1, int(limit) + 1) if -1 <= limit < most else (1 if limit < 0 else most)


def row_after_row(
    codes: NDArray[Any], begins: Ints, ends: Ints
) -> tuple[NDArray[Any], Ints]:
    """The codes of these rows, one row after the other, and where each ends.

    Examples
    --------
    >>> codes, ends = row_after_row(
    ...     np.array([5, 6, 7]), np.array([2, 0, 2]), np.array([3, 2, 3]))
    >>> codes.tolist(), ends.tolist()
    ([7, 5, 6, 7], [1, 3, 4])
    """
    own = np.cumsum(ends - begins)
    if np.array_equal(own, ends):
        return codes, ends
    places = np.arange(own[-1] if len(own) else 0) + np.repeat(
        begins - begins_of(own), ends - begins)
    return codes[places], own


def add_at(counts: Ints, codes: NDArray[Any]) -> Ints:
    """Add 1 to the count of each of these codes; the result is long enough for new codes."""
    more = np.bincount(codes, minlength=len(counts))
    more[:len(counts)] += counts
    return more


def widen(counts: NDArray[Any], rows: int, columns: int, least: int = 0) -> NDArray[Any]:
    """A table of at least this number of rows and columns, and half as many more of either.

    Where each batch brings new labels, a table that grew by these alone would be copied with each
    batch. What is never written takes no memory.
    """
    have_rows, have_columns = counts.shape
    if rows <= have_rows and columns <= have_columns:
        return counts
    width = max(columns * 3 // 2, least) if columns > have_columns else have_columns
    height = rows * 3 // 2 if rows > have_rows else have_rows
    # The new one, in addition to the old one, which is copied.
    if not has_room(height * width * counts.itemsize):
        height, width = max(rows, have_rows), max(columns, have_columns)
        # Twice, because in the end they are copied once more, in the order of the terms.
        check_room(height, width, 2 * counts.itemsize, "their counts")
    larger = np.zeros((height, width), dtype=counts.dtype)
    larger[:have_rows, :have_columns] = counts
    return larger


class _GrowingTable:
    """int64 counts (rows x columns) that grow in both directions."""

    def __init__(self) -> None:
        self._counts = np.zeros((2, 1024), dtype=np.int64)
        self._cells: CountedCells | None = None

    def add(self, rows: Ints, ends: Ints, columns: NDArray[Any]) -> None:
        """Count the columns of each row, up to its end; rows are sorted."""
        if not len(columns):
            return
        height, width = int(rows.max()) + 1, int(columns.max()) + 1
        if self._cells is None and (height > len(self._counts) or width > self._counts.shape[1]):
            self._cells = few_cells(self._counts, height, width)
        if self._cells is not None:
            self._counts = self._counts[:0, :0].copy()
            self._cells.add(rows, ends, columns)
            return
        self._counts = widen(self._counts, height, width)
        last = np.flatnonzero(np.append(rows[1:] != rows[:-1], True))
        begin = 0
        for row, end in zip(rows[last].tolist(), ends[last].tolist(), strict=True):
            counts, own = self._counts[row], columns[begin:end]
            if len(own) * 8 > len(counts):
                counts += np.bincount(own, minlength=len(counts))
            else:
                np.add.at(counts, own, 1)
            begin = end

    def values(self, rows: Ints, columns: Ints) -> Ints | SparseCounts:
        """The counts of these rows and columns, in their order."""
        if self._cells is not None:
            found = self._cells.total(len(rows), int(columns.max(initial=-1)) + 1)
            place_of = np.full(found.shape[1], -1)
            place_of[columns] = np.arange(len(columns))
            return arranged(found, rows, place_of, len(columns))
        check_room(len(rows), len(columns), 8, "their counts")
        have_rows, have_columns = self._counts.shape
        values = np.zeros((len(rows), len(columns)), dtype=np.int64)
        inside = columns < have_columns
        places = slice(None) if inside.all() else inside
        for place, row in enumerate(rows.tolist()):
            # A label has no row if its documents hold no term.
            if row < have_rows:
                values[place, places] = self._counts[row, columns[places]]
        return values
