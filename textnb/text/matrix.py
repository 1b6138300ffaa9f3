"""Tokens to integers: document-term matrices and counts per class. Polars meets SciPy here alone.

    frames -> token codes (Polars) -> rows of a CSR matrix, or counts per class (NumPy)

While the vocabulary is unknown, terms are interned in a pool in the order in which they come, and
columns are put in the order of the sorted terms once all are known: the pool's order, which depends
on threads, never shows. No Python object is made per document or token.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.errors import DataError, VocabularyError
from textnb.text.tokens import TextColumns, Tokenizer
from textnb.threads import in_threads

Ints = NDArray[np.int64]
# Text that is scored before a pool of words is made anew.
_POOL_BYTES = 256 << 20


class Interner:
    """A growing pool of strings, each with a code; Polars fills it from all its threads."""

    def __init__(self) -> None:
        pool = pl.Categories.random()
        # The pool's mapping lives as long as a series of its type does.
        self._anchor = pl.Series([], dtype=pl.Categorical(pool))
        self._size = 0

    @property
    def dtype(self) -> pl.DataType:
        return self._anchor.dtype

    def saw(self, codes: NDArray[Any]) -> None:
        """Take note of codes that were handed out: codes count up from 0."""
        if len(codes):
            self._size = max(self._size, int(codes.max()) + 1)

    def __len__(self) -> int:
        return self._size

    def strings(self) -> pl.Series:
        """The strings, in the order of their codes."""
        codes = pl.int_range(0, self._size, dtype=pl.UInt32, eager=True)
        return codes.cat.to(self.dtype).cast(pl.String)


class Vocabulary:
    """Sorted terms with their columns, for look-up.

    Parameters
    ----------
    tokenizer : Tokenizer
    terms : polars.Series of String
        Sorted and unique.
    """

    def __init__(self, tokenizer: Tokenizer, terms: pl.Series):
        self.terms = terms
        self._tokenizer = tokenizer
        separators = tokenizer.separators()
        # The cheap split leaves words in that are too short for the pattern: it serves only where
        # no term is such a word.
        self._split = separators is not None and bool(
            (terms.str.len_chars() >= separators[1]).all())
        self._refresh()

    def __len__(self) -> int:
        return len(self.terms)

    def counts(self, documents: pl.DataFrame, text: TextColumns) -> sp.csr_array:
        """Counts (int32) of each document's known terms: one row per document, sorted columns."""
        lengths, flat, _ = self._coded(documents, text)
        return merge_tokens(*_kept(lengths, flat, flat < len(self.terms)), len(self))

    def counts_of_known(self, documents: pl.DataFrame, text: TextColumns) -> sp.csr_array:
        """As `counts`, for documents that hold terms of the vocabulary alone.

        Raises
        ------
        DataError
            If a document holds another term; it is named.
        """
        lengths, flat, words = self._coded(documents, text)
        known = flat < len(self.terms)
        others = pl.Series(np.unique(flat[~known])).cast(pl.UInt32).cat.to(words.dtype)
        strangers = others.cast(pl.String)
        separators = self._tokenizer.separators()
        if self._split and separators is not None:
            strangers = strangers.filter(strangers.str.len_chars() >= separators[1])
        if len(strangers):
            raise DataError(f"term {strangers[0]!r} was never learned")
        return merge_tokens(*_kept(lengths, flat, known), len(self))

    def _coded(
        self, documents: pl.DataFrame, text: TextColumns
    ) -> tuple[Ints, NDArray[Any], Interner]:
        """Words per document, the codes of all words, and the pool that gives them."""
        tokens = (self._tokenizer.split_expr(text) if self._split
                  else self._tokenizer.expr(text))
        # Held here, as another thread may put a new pool in its place meanwhile.
        words = self._words
        codes = documents.select(tokens.cast(pl.List(words.dtype)).alias("codes"))
        self._spent += int(documents.estimated_size())
        if self._spent > _POOL_BYTES:
            self._refresh()
        return *_flat(codes["codes"]), words

    def __getstate__(self) -> dict[str, Any]:
        # The pool's codes have a meaning in this process alone.
        return {name: value for name, value in vars(self).items() if name != "_words"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._refresh()

    def _refresh(self) -> None:
        # Terms are interned first, so that their codes are their columns; words that are no terms
        # come after them. The pool is made anew before those have taken much memory.
        words = Interner()
        self.terms.cast(words.dtype)
        self._words, self._spent = words, 0


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
    words, labels = Interner(), Interner()
    codes = _interning(tokenizer, text, words)
    table = _GrowingTable()
    per_document = document_frequency or presence_above is not None
    class_count = np.zeros(0, dtype=np.int64)
    frequency, occurrences = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    label_type: pl.DataType | None = None
    rows = 0

    def encoded(frame: pl.DataFrame) -> pl.DataFrame:
        nonlocal label_type
        label_type = frame.schema[label]
        return frame.lazy().select(
            codes.alias("codes"),
            pl.col(label).cast(pl.String).cast(labels.dtype).to_physical().alias("label"),
        ).collect()

    for coded in in_threads(encoded, frames, threads=1):
        _check_labels(coded["label"], label, rows)
        rows += coded.height
        rows_label = coded["label"].to_numpy().astype(np.int64)
        class_count = _add_at(class_count, rows_label)
        lengths, flat = _flat(coded["codes"])
        words.saw(flat)
        labels.saw(rows_label)
        if not per_document:
            table.add(np.repeat(rows_label, lengths), flat)
            continue
        counts = merge_tokens(lengths, flat, len(words))
        if document_frequency:
            frequency = _add_at(frequency, counts.indices)
        row_label = np.repeat(rows_label, np.diff(counts.indptr))
        if presence_above is None:
            table.add(row_label, counts.indices, counts.data.astype(np.int64))
        else:
            occurrences = _add_at(occurrences, flat)
            present = counts.data > presence_above
            table.add(row_label[present], counts.indices[present])
    if label_type is None or rows == 0:
        raise DataError.no_rows("the input")
    kept, terms = _sorted_terms(words, tokenizer)
    counts = table.values(len(labels), len(words))
    del table
    names = _typed(labels.strings(), label_type)
    order = names.arg_sort().to_numpy()
    return LabelledCounts(
        terms=terms,
        labels=names.sort(),
        class_count=_padded(class_count, len(names))[order],
        feature_count=counts[np.ix_(order, kept)],
        document_frequency=_padded(frequency, len(words))[kept] if document_frequency else None,
        occurrences=None if presence_above is None else _padded(occurrences, len(words))[kept],
    )


def count_matrix(
    frames: Iterable[pl.DataFrame], tokenizer: Tokenizer, text: TextColumns
) -> tuple[sp.csr_array, pl.Series]:
    """Document-term counts with the vocabulary that the documents themselves make.

    Parameters
    ----------
    frames : iterable of DataFrame
        Batches with the text columns.
    tokenizer : Tokenizer
    text : str or sequence of str

    Returns
    -------
    counts : csr_array of int64 (n_documents, n_terms)
        A row per document, in order, empty ones included; indices sorted, no duplicates; int32
        indices while fewer than 2**31 entries.
    terms : polars.Series of String
        Sorted; one per column.

    Raises
    ------
    VocabularyError
        If no document has a token.

    Examples
    --------
    >>> counts, terms = count_matrix([pl.DataFrame({"text": ["b b a!", None, "aa bb"]})],
    ...                              Tokenizer(pattern=r"\\w+"), "text")
    >>> terms.to_list(), counts.toarray().tolist()
    (['a', 'aa', 'b', 'bb'], [[1, 0, 2, 0], [0, 0, 0, 0], [0, 1, 0, 1]])
    """
    words = Interner()
    codes = _interning(tokenizer, text, words)
    batches = []
    for frame in frames:
        batches.append(_flat(frame.lazy().select(codes.alias("codes")).collect()["codes"]))
        words.saw(batches[-1][1])
    kept, terms = _sorted_terms(words, tokenizer)
    if not len(terms):
        raise VocabularyError.no_tokens(tokenizer.pattern, sum(len(n) for n, _ in batches))
    column = np.full(len(words), -1, dtype=np.int32)
    column[kept] = np.arange(len(kept), dtype=np.int32)

    def merged(batch: tuple[Ints, NDArray[Any]]) -> sp.csr_array:
        lengths, columns = batch[0], column[batch[1]]
        return merge_tokens(*_kept(lengths, columns, columns >= 0), len(terms))

    return stacked(list(in_threads(merged, batches)), len(terms)), terms


def merge_tokens(lengths: Ints, codes: NDArray[Any], width: int) -> sp.csr_array:
    """CSR counts (int32) from the codes of each document's tokens, in any order and repeated.

    Examples
    --------
    >>> merge_tokens(np.array([3, 0, 1]), np.array([2, 0, 2]  + [1]), 3).toarray().tolist()
    [[1, 0, 2], [0, 0, 0], [0, 1, 0]]
    """
    index_type = np.int32 if max(len(codes), width) < 2**31 else np.int64
    indptr = np.zeros(len(lengths) + 1, dtype=index_type)
    np.cumsum(lengths, out=indptr[1:])
    # No document has 2**31 tokens: int32 while rows are sorted, int64 for those who add them up.
    counts = sp.csr_array(
        (np.ones(len(codes), dtype=np.int32), codes.astype(index_type, copy=False), indptr),
        shape=(len(lengths), width))
    if width <= 4 * len(codes):
        # Twice transposed is sorted, in linear time.
        counts = counts.tocsc().tocsr()
        counts.has_sorted_indices = True
    counts.sum_duplicates()
    return counts


def _interning(tokenizer: Tokenizer, text: TextColumns, words: Interner) -> pl.Expr:
    split = tokenizer.separators() is not None
    tokens = tokenizer.split_expr(text) if split else tokenizer.expr(text)
    return tokens.cast(pl.List(words.dtype))


def _sorted_terms(words: Interner, tokenizer: Tokenizer) -> tuple[Ints, pl.Series]:
    """The codes of the terms, in the order of the sorted terms, and the terms."""
    strings = words.strings().alias("term")
    separators = tokenizer.separators()
    kept = pl.arange(0, len(strings), eager=True)
    if separators is not None:
        kept = kept.filter(strings.str.len_chars() >= separators[1])
    found = strings.gather(kept)
    order = found.arg_sort()
    return kept.gather(order).to_numpy().astype(np.int64), found.gather(order)


def _flat(codes: pl.Series) -> tuple[Ints, NDArray[Any]]:
    """Tokens per document, and the codes of all tokens one after the other."""
    lengths = codes.list.len().cast(pl.Int64).to_numpy()
    flat = codes.explode(empty_as_null=False, keep_nulls=False).to_physical()
    return lengths, flat.to_numpy()


def _kept(
    lengths: Ints, codes: NDArray[Any], keep: NDArray[np.bool_]
) -> tuple[Ints, NDArray[Any]]:
    """Lengths and codes of the tokens that are kept."""
    if keep.all():
        return lengths, codes
    before = np.zeros(len(keep) + 1, dtype=np.int32 if len(keep) < 2**31 else np.int64)
    np.cumsum(keep, out=before[1:])
    ends = np.cumsum(lengths)
    return before[ends] - before[ends - lengths], codes[keep]


def stacked(blocks: list[sp.csr_array], width: int) -> sp.csr_array:
    """One int64 matrix of all blocks, which are taken from the list and freed one by one."""
    entries = sum(block.nnz for block in blocks)
    rows = sum(block.shape[0] for block in blocks)
    index_type = np.int32 if max(entries, width) < 2**31 else np.int64
    indices, data = np.empty(entries, dtype=index_type), np.empty(entries, dtype=np.int64)
    indptr = np.zeros(rows + 1, dtype=index_type)
    row = at = 0
    # Reversed and popped, so that each block is freed once it is copied.
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        indices[at:at + block.nnz], data[at:at + block.nnz] = block.indices, block.data
        indptr[row + 1:row + 1 + block.shape[0]] = block.indptr[1:].astype(index_type) + at
        row, at = row + block.shape[0], at + block.nnz
    whole = sp.csr_array((data, indices, indptr), shape=(rows, width))
    whole.has_canonical_format = True
    return whole


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
