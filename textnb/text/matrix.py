"""Tokens to integers: document-term matrices. Polars meets SciPy here alone.

    frames -> token codes (Polars) -> rows of a CSR matrix

While the vocabulary is unknown, terms are interned in a pool in the order in which they come, and
columns are put in the order of the sorted terms once all are known: the pool's order, which depends
on threads, never shows. No Python object is made per document or token.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
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
        self._turn = Lock()
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
        size = int(documents.estimated_size())
        with self._turn:
            if self._spent > _POOL_BYTES:
                self._refresh()
            self._spent += size
            # Held here, as another thread may put a new pool in its place meanwhile.
            words = self._words
        codes = documents.select(tokens.cast(pl.List(words.dtype)).alias("codes"))
        return *flat_codes(codes["codes"]), words

    def __getstate__(self) -> dict[str, Any]:
        # The pool's codes have a meaning in this process alone.
        return {name: value for name, value in vars(self).items()
                if name not in ("_words", "_turn")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._turn = Lock()
        self._refresh()

    def _refresh(self) -> None:
        # Terms are interned first, so that their codes are their columns; words that are no terms
        # come after them. The pool is made anew before those have taken much memory.
        words = Interner()
        self.terms.cast(words.dtype)
        self._words, self._spent = words, 0


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
    codes = interning(tokenizer, text, words)
    batches = []
    for frame in frames:
        batches.append(flat_codes(frame.lazy().select(codes.alias("codes")).collect()["codes"]))
        words.saw(batches[-1][1])
    kept, terms = sorted_terms(words, tokenizer)
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


def interning(tokenizer: Tokenizer, text: TextColumns, words: Interner) -> pl.Expr:
    split = tokenizer.separators() is not None
    tokens = tokenizer.split_expr(text) if split else tokenizer.expr(text)
    return tokens.cast(pl.List(words.dtype))


def sorted_terms(words: Interner, tokenizer: Tokenizer) -> tuple[Ints, pl.Series]:
    """The codes of the terms, in the order of the sorted terms, and the terms."""
    strings = words.strings().alias("term")
    separators = tokenizer.separators()
    kept = pl.arange(0, len(strings), eager=True)
    if separators is not None:
        kept = kept.filter(strings.str.len_chars() >= separators[1])
    found = strings.gather(kept)
    order = found.arg_sort()
    return kept.gather(order).to_numpy().astype(np.int64), found.gather(order)


def flat_codes(codes: pl.Series) -> tuple[Ints, NDArray[Any]]:
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
