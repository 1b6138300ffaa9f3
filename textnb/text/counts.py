"""Documents to counts per class, batch by batch.

    frames -> token codes (Polars) -> a table of counts (NumPy), labels x terms

Memory is set by the terms and one batch. Terms and labels are in order at the end alone: the pools'
order, which depends on threads, never shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError
from textnb.text.matrix import Interner, flat_codes, interning, merge_tokens, sorted_terms
from textnb.text.tokens import TextColumns, Tokenizer
from textnb.threads import in_threads

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LabelledCounts:
    """Counts per class of all the terms that were seen.

    Attributes
    ----------
    terms : polars.Series of String, sorted
    labels : polars.Series, sorted: String, Int64 or Boolean
    class_count : int64 (n_classes,)
        Documents.
    feature_count : int64 (n_classes, n_terms)
        Occurrences, or documents that hold the term where presence was counted.
    document_frequency : int64 (n_terms,) or None
        Documents that hold the term, where it was asked for.
    occurrences : int64 (n_terms,) or None
        Occurrences over all classes, where presence was counted.
    """

    terms: pl.Series
    labels: pl.Series
    class_count: Ints
    feature_count: Ints
    document_frequency: Ints | None
    occurrences: Ints | None


def count_by_label(
    frames: Iterable[pl.DataFrame],
    tokenizer: Tokenizer,
    text: TextColumns,
    label: str,
    *,
    presence_above: float | None = None,
    document_frequency: bool = False,
) -> LabelledCounts:
    """Term counts per class, batch by batch: memory is set by the vocabulary and one batch.

    Parameters
    ----------
    frames : iterable of DataFrame
        Batches with the text and label columns.
    tokenizer : Tokenizer
    text : str or sequence of str
    label : str
    presence_above : float, optional
        Count the documents in which a term occurs more often than this, instead of occurrences.
    document_frequency : bool
        Also count the documents that hold each term.

    Raises
    ------
    DataError
        If a label is null (the row is named) or there are no rows.
    """
    counter = LabelCounter(tokenizer, text, label, presence_above, document_frequency)
    counter.read(frames)
    return counter.counts()


class LabelCounter:
    """Counts of the batches that were read so far; see `count_by_label`."""

    def __init__(
        self, tokenizer: Tokenizer, text: TextColumns, label: str,
        presence_above: float | None, document_frequency: bool, first_row: int = 0,
    ) -> None:
        self._tokenizer, self._label = tokenizer, label
        self._above, self._counts_documents = presence_above, document_frequency
        self._words, self._labels = Interner(), Interner()
        self._codes = interning(tokenizer, text, self._words)
        self._table = _GrowingTable()
        self._class_count = np.zeros(0, dtype=np.int64)
        self._frequency, self._occurrences = np.zeros((2, 0), dtype=np.int64)
        self._label_type: pl.DataType | None = None
        self.rows = first_row

    def read(self, frames: Iterable[pl.DataFrame]) -> None:
        for coded in in_threads(self._encoded, frames, threads=1):
            self._add(coded)

    @property
    def size(self) -> tuple[int, int]:
        """How many labels, and how many terms."""
        return len(self._labels), len(self._words)

    def counts(self) -> LabelledCounts:
        """The counts, in order; nothing can be read after that."""
        if self._label_type is None or not len(self._labels):
            raise DataError.no_rows("the input")
        kept, terms = sorted_terms(self._words, self._tokenizer)
        n_words = len(self._words)
        counts = self._table.values(len(self._labels), n_words)
        del self._table
        names = _typed(self._labels.strings(), self._label_type)
        order = names.arg_sort().to_numpy()
        return LabelledCounts(
            terms=terms,
            labels=names.sort(),
            class_count=_padded(self._class_count, len(names))[order],
            feature_count=counts[np.ix_(order, kept)],
            document_frequency=(_padded(self._frequency, n_words)[kept]
                                if self._counts_documents else None),
            occurrences=(None if self._above is None
                         else _padded(self._occurrences, n_words)[kept]),
        )

    def _encoded(self, frame: pl.DataFrame) -> pl.DataFrame:
        self._label_type = frame.schema[self._label]
        name = pl.col(self._label).cast(pl.String).cast(self._labels.dtype)
        return frame.lazy().select(
            self._codes.alias("codes"), name.to_physical().alias("label")).collect()

    def _add(self, coded: pl.DataFrame) -> None:
        _check_labels(coded["label"], self._label, self.rows)
        self.rows += coded.height
        label = coded["label"].to_numpy().astype(np.int64)
        self._class_count = _add_at(self._class_count, label)
        lengths, flat = flat_codes(coded["codes"])
        self._words.saw(flat)
        self._labels.saw(label)
        if self._above is None and not self._counts_documents:
            self._table.add(np.repeat(label, lengths), flat)
            return
        counts = merge_tokens(lengths, flat, len(self._words))
        if self._counts_documents:
            self._frequency = _add_at(self._frequency, counts.indices)
        label = np.repeat(label, np.diff(counts.indptr))
        if self._above is None:
            self._table.add(label, counts.indices, counts.data.astype(np.int64))
        else:
            self._occurrences = _add_at(self._occurrences, flat)
            present = counts.data > self._above
            self._table.add(label[present], counts.indices[present])


def _typed(names: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Label names as what they were: booleans, integers (Int64 where they fit), or strings."""
    if dtype == pl.Boolean:
        return names == "true"
    if not dtype.is_integer():
        return names
    narrow = names.cast(pl.Int64, strict=False)
    return names.cast(dtype) if narrow.null_count() else narrow


def _check_labels(labels: pl.Series, column: str, first_row: int) -> None:
    if labels.null_count():
        row = first_row + int(labels.is_null().arg_true()[0])
        raise DataError.null_label(column, row)


def _padded(counts: Ints, length: int) -> Ints:
    return np.pad(counts, (0, length - len(counts)))


def _add_at(counts: Ints, codes: NDArray[Any]) -> Ints:
    more = np.bincount(codes, minlength=len(counts))
    more[:len(counts)] += counts
    return more


class _GrowingTable:
    """int64 counts (rows x columns) that grow in both directions."""

    def __init__(self) -> None:
        self._counts = np.zeros((2, 1024), dtype=np.int64)

    def add(self, rows: Ints, columns: NDArray[Any], amounts: Ints | None = None) -> None:
        if not len(rows):
            return
        self._grow(int(rows.max()) + 1, int(columns.max()) + 1)
        cells = rows * self._counts.shape[1] + columns
        flat = self._counts.reshape(-1)
        if amounts is None and len(cells) * 8 > len(flat):
            flat += np.bincount(cells, minlength=len(flat))
        else:
            np.add.at(flat, cells, 1 if amounts is None else amounts)

    def _grow(self, rows: int, columns: int) -> None:
        have_rows, have_columns = self._counts.shape
        if rows <= have_rows and columns <= have_columns:
            return
        larger = np.zeros((rows if rows > have_rows else have_rows,
                           max(columns * 3 // 2, have_columns) if columns > have_columns
                           else have_columns), dtype=np.int64)
        larger[:have_rows, :have_columns] = self._counts
        self._counts = larger

    def values(self, rows: int, columns: int) -> Ints:
        self._grow(rows, columns)
        return self._counts[:rows, :columns]
