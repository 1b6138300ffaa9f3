"""Tokens as integers, by expressions alone: a pool of strings that Polars fills.

    frame -> List(String) -> List(Categorical) -> codes

Terms are interned in the order in which they come, and put in the order of the sorted terms once
all are known: the pool's order, which depends on threads, never shows. No Python object is made per
document or token.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.text.byte_keys import begins_of
from textnb.text.expressions import separators, split_expr
from textnb.text.tokens import TextColumns, Tokenizer
from textnb.text.utf8 import byte_order, bytes_of

Ints = NDArray[np.int64]


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


def interning(tokenizer: Tokenizer, text: TextColumns, words: Interner) -> pl.Expr:
    plan = tokenizer.plan()
    tokens = tokenizer.expr(text) if separators(plan) is None else split_expr(plan, text)
    return tokens.cast(pl.List(words.dtype))


def sorted_terms(words: Interner, tokenizer: Tokenizer) -> tuple[Ints, pl.Series]:
    """The codes of the terms, in the order of the sorted terms, and the terms."""
    strings = words.strings().alias("term")
    split = separators(tokenizer.plan())
    kept = pl.arange(0, len(strings), eager=True)
    if split is not None:
        kept = kept.filter(split.are_words(strings))
    found = strings.gather(kept)
    text, ends = bytes_of(found)
    order = byte_order(text, begins_of(ends), ends)
    return kept.to_numpy()[order].astype(np.int64), found.gather(order)


def flat_codes(codes: pl.Series) -> tuple[Ints, NDArray[Any]]:
    """Tokens per document, and the codes of all tokens one after the other."""
    lengths = codes.list.len().cast(pl.Int64).to_numpy()
    flat = codes.explode(empty_as_null=False, keep_nulls=False).to_physical()
    return lengths, flat.to_numpy()
