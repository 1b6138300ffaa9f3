"""Tokens as integers, by expressions: Polars gives each string a code from a pool.

    frame -> List(String) -> List(Categorical) -> codes

Terms get codes in the order of their first use, which depends on threads. Once all are known, they
are sorted, so that no result depends on that order. No Python object is made per
document or token.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Interner:
    """A growing pool of strings, each with a code; all threads of Polars add to it."""

    def __init__(self) -> None:
        pool = pl.Categories.random()
        # The pool lives as long as a series of its type.
        self._anchor = pl.Series([], dtype=pl.Categorical(pool))
        self._size = 0

    @property
    def dtype(self) -> pl.DataType:
        return self._anchor.dtype

    def note_codes(self, codes: NDArray[Any]) -> None:
        """Note the codes of a batch, which count up from 0, to know the pool's size."""
        if len(codes):
            self._size = max(self._size, int(codes.max()) + 1)

    def __len__(self) -> int:
        return self._size

    def strings(self, first: int = 0) -> pl.Series:
        """The strings in the order of their codes, from a first code on."""
        codes = pl.int_range(first, self._size, dtype=pl.UInt32, eager=True)
        return codes.cat.to(self.dtype).cast(pl.String)


def flat_codes(codes: pl.Series) -> tuple[Ints, NDArray[Any]]:
    """Tokens per document, and the codes of all tokens one after the other."""
    lengths = codes.list.len().cast(pl.Int64).to_numpy()
    flat = codes.explode(empty_as_null=False, keep_nulls=False).to_physical()
    return lengths, flat.to_numpy()
