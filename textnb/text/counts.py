"""Counts the terms of documents per class, batch by batch.

    frames -> term codes, by the compiled kernel or by expressions
           -> a table of counts, labels x terms

Memory holds the counts of all terms, and one batch. Terms and labels are sorted at the end, so that
the order of their codes, which depends on threads, has no effect.

A document with a list of labels is counted for each label, and once more for the class of all
documents, which exists until the counts are made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.cells import put_into_zeros
from textnb.bayes.counts import Counts
from textnb.errors import DataError
from textnb.runtime.memory import explaining_memory_errors
from textnb.runtime.threads import map_in_threads
from textnb.text.counting import Counting, CountSpec, add_one_per_code
from textnb.text.expression_table import Interner

Ints = NDArray[np.int64]


def count_by_label(frames: Iterable[pl.DataFrame], spec: CountSpec) -> Counts:
    """Count terms per class; memory holds the counts of all terms, and one batch.

    Parameters
    ----------
    frames : iterable of DataFrame
        Batches with the text and label columns.
    spec : CountSpec

    Raises
    ------
    DataError
        If there are no rows, or a label is null or twice in a list (the row is named).
    """
    counter = LabelCounter(spec)
    counter.read(frames)
    return counter.counts()


class LabelCounter:
    """Counts batches, as `count_by_label`.

    Parameters
    ----------
    spec : CountSpec
    first_row : int
        The number of rows that other counters have read before, for errors that name a row.

    Attributes
    ----------
    n_rows : int
        The number of rows read so far, with those of other counters.
    """

    def __init__(self, spec: CountSpec, first_row: int = 0) -> None:
        self._spec = spec
        self._labels = Interner()
        self._class_count = np.zeros(0, dtype=np.int64)
        self._label_type: pl.DataType | None = None
        self._counting: Counting | None = None
        # With lists of labels, code 0 counts all documents, and the codes of labels begin at 1. So
        # this is also used as a number: the first code of a label.
        self._has_lists = False
        self.n_rows = self._first_row = first_row

    def read(self, frames: Iterable[pl.DataFrame]) -> None:
        """Count batches, with the kernel if it runs the tokenizer."""
        counting = self._counting = self._counting or Counting(self._spec)

        def count(frame: pl.DataFrame) -> tuple[int, pl.Series, Ints | None]:
            codes, rows = self._label_codes(frame[self._spec.label])
            if codes.null_count() or _row_with_repeated_label(codes, rows) is not None:
                # `check_labels` raises the error below, where the number of the row is known.
                return frame.height, codes, rows
            # One class after the other: the counts of a class may fit into the cache.
            order = codes.arg_sort()
            ordered_codes = codes.gather(order).to_numpy()
            if rows is None:
                counting.read(frame[order], ordered_codes)
            else:
                counting.read(frame, ordered_codes, rows[order.to_numpy()])
            return frame.height, codes, rows

        with explaining_memory_errors(lambda: self.size):
            for n_rows, codes, rows in map_in_threads(count, frames, threads=counting.threads):
                check_labels(codes, rows, self._spec.label, first_row=self.n_rows)
                self.n_rows += n_rows
                all_codes = codes.to_numpy()
                # The pool of labels has no code for all documents, so its codes begin at 0.
                self._labels.note_codes(all_codes - self._has_lists)
                if rows is not None:
                    # Code 0, once for each document.
                    all_codes = np.append(all_codes, np.zeros(n_rows, dtype=np.int64))
                self._class_count = add_one_per_code(self._class_count, all_codes)

    @property
    def size(self) -> tuple[int, int]:
        """The number of labels, and an upper bound of the number of terms."""
        n_terms = 0 if self._counting is None else len(self._counting)
        return max(0, len(self._class_count) - self._has_lists), n_terms

    def counts(self) -> Counts:
        """The counts, sorted; no batch can be read after this."""
        if self._label_type is None or self._counting is None or self.n_rows == self._first_row:
            raise DataError.no_rows("the input")
        names = _convert_labels(self._labels.strings(), self._label_type)
        codes = names.arg_sort().cast(pl.Int64).to_numpy() + self._has_lists
        classes = names.sort().to_numpy()
        with explaining_memory_errors(lambda: self.size):
            if not self._has_lists:
                counts = self._counting.counts(classes, codes, self._class_count[codes])
            else:
                # Class 0 has all documents; its counts become the totals of the other classes.
                codes = np.append(0, codes)
                numbers = np.arange(len(codes))
                with_all = self._counting.counts(numbers, codes, self._class_count[codes])
                is_total = with_all.codes == 0
                counts = replace(
                    with_all.without_classes(numbers[:1]), classes=classes,
                    rows=int(with_all.class_count[0]), total=put_into_zeros(
                        with_all.values[is_total], with_all.columns[is_total], with_all.n_features))
        del self._counting
        return counts

    def _label_codes(self, labels: pl.Series) -> tuple[pl.Series, Ints | None]:
        """As `each_label`, with codes instead of labels."""
        values, rows = each_label(labels)
        self._label_type, self._has_lists = values.dtype, rows is not None
        codes = values.cast(pl.String).cast(self._labels.dtype).to_physical().cast(pl.Int64)
        return codes + int(self._has_lists), rows


def each_label(labels: pl.Series) -> tuple[pl.Series, Ints | None]:
    """All labels of a column of lists, and the row of each; a null list becomes a null label.

    If the column has one label per row, the result is the column itself, and None.
    """
    if not isinstance(labels.dtype, pl.List):
        return labels, None
    lengths = labels.list.len().fill_null(1).cast(pl.Int64).to_numpy()
    return (labels.explode(empty_as_null=False, keep_nulls=True),
            np.repeat(np.arange(len(lengths)), lengths))


def _convert_labels(names: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Convert labels from strings to their type: booleans, integers (as Int64), or strings."""
    if dtype == pl.Boolean:
        return names == "true"
    if not dtype.is_integer():
        return names
    integers = names.cast(pl.Int64, strict=False)
    if integers.null_count():
        raise DataError.label_beyond_int64(names.filter(integers.is_null())[0])
    return integers


def check_complete(counts: Counts, spec: CountSpec) -> None:
    """Raise DataError if counts that the settings need are missing, or contradict each other."""
    if spec.keeps_documents and counts.document_frequency is None:
        raise DataError("document frequencies are missing")
    if spec.keeps_occurrences and counts.occurrences is None:
        raise DataError("occurrences are missing")
    # A sum of weights may exceed an equal one in its last bits, if it was added in another order.
    max_value = counts.class_count * (1.0 + 1e-9) if counts.has_weights else counts.class_count
    if spec.presence_above is not None and (counts.values > max_value[counts.codes]).any():
        raise DataError("a term is in more documents than its class has")
    if counts.totals_are_too_small or (counts.is_multilabel and spec.presence_above is not None
                                        and (counts.total_counts > counts.n_rows).any()):
        raise DataError("a label has more documents, or more of a term, than all labels together")


def _row_with_repeated_label(labels: pl.Series, rows: Ints | None) -> int | None:
    """The row of a list that holds a label twice; None if there is none.

    ``labels`` has the codes of labels, and ``rows`` the row of each of them.
    """
    if rows is None or not len(rows):
        return None
    codes = labels.to_numpy()
    n_codes = int(codes.max()) + 1
    # One number for each pair of row and label.
    pairs = np.sort(rows * n_codes + codes)
    repeated = np.flatnonzero(pairs[1:] == pairs[:-1])
    return int(pairs[repeated[0]] // n_codes) if len(repeated) else None


def _null_in_list(column: str, row: int) -> DataError:
    """The error for a list of labels that is null, or holds a null."""
    return DataError.with_advice(
        f"the list of labels in row {row} (counted from 0) of the column {column!r} is null or "
        "holds a null. An empty list says that there is no label: ",
        f"frame.with_columns(pl.col({column!r}).list.drop_nulls().fill_null([]))",
        f"write such lists without nulls; --where '{column} IS NOT NULL' drops null lists")


def check_labels(labels: pl.Series, rows: Ints | None, column: str, first_row: int) -> None:
    """Raise DataError for a null label, or one that is twice in a list; its row is named.

    Parameters
    ----------
    labels : Series
        Labels or their codes.
    rows : int64 (n_labels,), or None
        The row of each label, as from `each_label`.
    column : str
        The name of the label column.
    first_row : int
        The number of the batch's first row.
    """
    if labels.null_count():
        number = int(labels.is_null().arg_true()[0])
        row = first_row + (number if rows is None else int(rows[number]))
        raise (DataError.null_label if rows is None else _null_in_list)(column, row)
    row_in_batch = _row_with_repeated_label(labels, rows)
    if row_in_batch is not None:
        raise DataError(
            f"the list of labels in row {first_row + row_in_batch} (counted from 0) of the column "
            f"{column!r} holds a label twice; make it .list.unique()")
