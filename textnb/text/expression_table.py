"""Codes of terms without the compiled tokenizer, from Polars expressions and a pool of strings.

    frame -> List(String) -> List(Categorical) -> codes
"""

from __future__ import annotations

from threading import Lock, local
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.text.expressions import separators_of, split_expr
from textnb.text.termtable import Codes, Ints
from textnb.text.tokens import TextColumns, Tokenizer
from textnb.text.utf8 import begins_of, byte_order, bytes_of

# Look-ups add unknown words to the pool of terms. After this number of bytes of text, a new pool,
# of the terms alone, replaces it.
_MAX_BYTES_LOOKED_UP = 256 << 20


class Interner:
    """A growing pool of strings, each with a code; all threads of Polars add to it.

    Parameters
    ----------
    strings : polars.Series of String, optional
        The first strings of the pool, whose codes are 0, 1, 2 and so on.
    """

    def __init__(self, strings: pl.Series | None = None) -> None:
        # Random categories share their pool with no other type.
        dtype = pl.Categorical(pl.Categories.random())
        first = pl.Series([], dtype=pl.String) if strings is None else strings
        # Polars frees the pool with the last series of its type: this empty one keeps it.
        self._empty, self._size = first.cast(dtype).clear(), len(first)

    @property
    def dtype(self) -> pl.DataType:
        return self._empty.dtype

    def note_codes(self, codes: NDArray[Any]) -> None:
        """Update the pool's size from the codes of a batch: codes from 0 to the largest exist."""
        if len(codes):
            self._size = max(self._size, int(codes.max()) + 1)

    def __len__(self) -> int:
        return self._size

    def strings(self) -> pl.Series:
        """The strings in the order of their codes."""
        codes = pl.int_range(self._size, dtype=pl.UInt32, eager=True)
        return codes.cat.to(self.dtype).cast(pl.String)


class ExpressionTable:
    """Terms and their codes, with the methods of `textnb.text.termtable.TermTable`.

    All threads share a table. The code of a term is its place in a pool of strings.

    Parameters
    ----------
    tokenizer : Tokenizer
    """

    def __init__(self, tokenizer: Tokenizer):
        # With separators, texts are split at the characters between words. Without (None), the
        # tokenizer's own expression finds the words.
        self._tokenizer, self._separators = tokenizer, separators_of(tokenizer.plan())
        self._terms = pl.Series([], dtype=pl.String)
        self._lock, self._thread_local, self._pool = Lock(), local(), Interner()
        # The bytes of text whose unknown words are in the pool.
        self._bytes_looked_up = 0
        self._all_strings: pl.Series | None = None

    def __len__(self) -> int:
        return len(self._pool)

    def add_texts(self, frame: pl.DataFrame, text: TextColumns) -> tuple[Codes, Ints]:
        """Add the terms of texts; return the codes of each row's terms, and the rows' ends.

        If texts are split at separators, some codes are of strings that are too short for a word.
        """
        codes, ends = self._encode(self._pool, frame, text)
        with self._lock:
            self._pool.note_codes(codes)
        return codes.astype(np.int32), ends

    def look_up(self, frame: pl.DataFrame, text: TextColumns) -> tuple[Codes, Ints]:
        """Codes as in `add_texts`; the codes of unknown terms start at the number of terms."""
        size = int(frame.estimated_size())
        with self._lock:
            if self._bytes_looked_up > _MAX_BYTES_LOOKED_UP:
                self._pool, self._bytes_looked_up = Interner(self._terms), 0
            self._bytes_looked_up += size
            # Another thread may replace `_pool` meanwhile.
            pool = self._pool
        self._thread_local.pool = pool
        codes, ends = self._encode(pool, frame, text)
        return codes.astype(np.int32), ends

    def has_unknown(self, codes: Codes) -> bool:
        """Whether one of the codes of this thread's last look-up belongs to an unknown term."""
        not_terms = np.unique(codes[codes >= len(self._terms)]).astype(np.uint32)
        strings = pl.Series(not_terms).cat.to(self._thread_local.pool.dtype).cast(pl.String)
        # Separators also leave strings that are too short for a word, which are no unknown terms.
        return bool(len(strings)) and (
            self._separators is None or bool(self._separators.are_words(strings).any()))

    def look_up_few(self, texts: Any) -> None:
        """Return None, which says that a frame is needed (`look_up`)."""

    def add_terms(self, terms: pl.Series) -> Codes:
        """Add terms to a new table, to look them up, and return their codes."""
        # The strings between separators may be too short for a word. If a term is as short, a
        # look-up would take such a string for it: then the tokenizer's expression finds the words.
        if self._separators is not None and not self._separators.are_words(terms).all():
            self._separators = None
        self._terms = terms
        self._pool = Interner(terms)
        return np.arange(len(terms), dtype=np.int32)

    def absorb(self, other: ExpressionTable) -> Codes:
        """From the codes of the other table to those of this one: unchanged, as all share a table.
        """
        return np.arange(len(other), dtype=np.int32)

    def terms(self) -> Codes:
        """The codes of all terms."""
        codes = np.arange(len(self), dtype=np.int32)
        if self._separators is None:
            return codes
        words: Codes = codes[self._separators.are_words(self._strings()).to_numpy()]
        return words

    def sort(self, codes: Codes) -> Codes:
        """These codes in the order of their terms."""
        text, ends = bytes_of(self.strings(codes))
        ordered: Codes = codes[byte_order(text, begins_of(ends), ends)]
        return ordered

    def strings(self, codes: Codes) -> pl.Series:
        """The terms of these codes."""
        return self._strings().gather(codes).alias("term")

    def _strings(self) -> pl.Series:
        if self._all_strings is None or len(self._all_strings) != len(self):
            self._all_strings = self._pool.strings()
        return self._all_strings

    def _encode(
        self, pool: Interner, frame: pl.DataFrame, text: TextColumns
    ) -> tuple[NDArray[Any], Ints]:
        """The codes of the tokens of all rows, one row after the other, and the end of each row."""
        tokens = (self._tokenizer.expr(text) if self._separators is None
                  else split_expr(self._tokenizer.plan(), text))
        lists = frame.select(tokens.cast(pl.List(pool.dtype)).alias("codes"))["codes"]
        codes = lists.explode(empty_as_null=False, keep_nulls=False).to_physical().to_numpy()
        return codes, np.cumsum(lists.list.len().to_numpy(), dtype=np.int64)
