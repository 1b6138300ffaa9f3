"""Counts the terms of documents per class, batch by batch.

    frames -> term codes, by the kernel or by expressions -> a table of counts, labels x terms

Memory depends on the terms and one batch. Terms and labels are sorted at the end, so that the order
of their codes, which depends on threads, has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError
from textnb.runtime.memory import clear_memory_errors
from textnb.runtime.threads import map_in_threads
from textnb.text.compiled import kernel_for
from textnb.text.counting import CompiledCounting, Counting, ExpressionCounting, add_at
from textnb.text.interner import Interner
from textnb.text.term_counts import CountSpec, TermCounts

Ints = NDArray[np.int64]


def count_by_label(frames: Iterable[pl.DataFrame], spec: CountSpec) -> TermCounts:
    """Term counts per class; memory depends on the vocabulary and one batch.

    Parameters
    ----------
    frames : iterable of DataFrame
        Batches with the text and label columns.
    spec : CountSpec

    Raises
    ------
    DataError
        If a label is null (the row is named) or there are no rows.
    """
    counter = LabelCounter(spec)
    counter.read(frames)
    return counter.counts()


class LabelCounter:
    """Counts of the batches that were read so far; see `count_by_label`."""

    def __init__(self, spec: CountSpec, first_row: int = 0) -> None:
        self._spec = spec
        self._labels = Interner()
        self._class_count = np.zeros(0, dtype=np.int64)
        self._label_type: pl.DataType | None = None
        self._counting: Counting | None = None
        self.rows = first_row

    def read(self, frames: Iterable[pl.DataFrame]) -> None:
        """Count batches, with the kernel if it runs the tokenizer."""
        kernel = kernel_for(self._spec.tokenizer)
        counting: Counting = self._counting or (
            ExpressionCounting(self._spec) if kernel is None
            else CompiledCounting(kernel, self._spec))
        self._counting = counting
        with clear_memory_errors(lambda: self.size):
            self._read(counting, frames)

    def _read(self, counting: Counting, frames: Iterable[pl.DataFrame]) -> None:
        def count(frame: pl.DataFrame) -> tuple[pl.Series, Any]:
            labels = self._label_codes(frame)
            if labels.null_count():
                # The error names the row, whose number is known in this batch's turn.
                return labels, None
            # One class after the other, because the counts of one class fit into the cache.
            order = labels.arg_sort()
            return labels, counting.read(frame[order], labels.gather(order))

        for labels, found in map_in_threads(count, frames, threads=counting.threads):
            _check_labels(labels, self._spec.label, self.rows)
            self.rows += len(labels)
            codes = labels.to_numpy()
            self._labels.note_codes(codes)
            self._class_count = add_at(self._class_count, codes)
            counting.add(found)

    @property
    def size(self) -> tuple[int, int]:
        """The number of labels, and an upper bound of the number of terms."""
        return len(self._class_count), 0 if self._counting is None else len(self._counting)

    def counts(self) -> TermCounts:
        """The counts, sorted; no batch can be read after this."""
        if self._label_type is None or self._counting is None or not len(self._class_count):
            raise DataError.no_rows("the input")
        names = _as_labels(self._labels.strings(), self._label_type)
        order = names.arg_sort().cast(pl.Int64).to_numpy()
        with clear_memory_errors(lambda: self.size):
            counts = self._counting.counts(
                names.sort().to_numpy(), order, self._class_count[order])
        del self._counting
        return counts

    def _label_codes(self, frame: pl.DataFrame) -> pl.Series:
        self._label_type = frame.schema[self._spec.label]
        name = pl.col(self._spec.label).cast(pl.String).cast(self._labels.dtype)
        return frame.select(name.to_physical().cast(pl.Int64)).to_series()


def _as_labels(names: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Labels from their names: booleans, integers (as Int64), or strings."""
    if dtype == pl.Boolean:
        return names == "true"
    if not dtype.is_integer():
        return names
    narrow = names.cast(pl.Int64, strict=False)
    if narrow.null_count():
        raise DataError.label_beyond_int64(names.filter(narrow.is_null())[0])
    return narrow


def _check_labels(labels: pl.Series, column: str, first_row: int) -> None:
    if labels.null_count():
        row = first_row + int(labels.is_null().arg_true()[0])
        raise DataError.null_label(column, row)
