"""Work of several threads on the compiled way: a table of terms for each, rows written in place."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.text.loops import Loops
from textnb.text.termtable import Codes, Ints, TermTable, drawn
from textnb.text.tokens import Tokenizer


class RowMaker:
    """CSR rows of so many columns from codes, in any thread.

    Parameters
    ----------
    loops : Loops
    width : int
    """

    def __init__(self, loops: Loops, width: int):
        self._loops, self._width, self._idle = loops.rows, width, deque[tuple[Any, ...]]()

    def entries(self, codes: Codes, ends: Ints, columns: Codes) -> Ints:
        """Puts each code's column, ``columns[code]`` or -1, in its place; each row's entries."""
        with self._scratch() as scratch:
            entries: Ints = self._loops.entries_of(codes, ends, columns, scratch[0])
            return entries

    def fill(
        self, columns: Codes, ends: Ints, indptr: Ints, indices: Codes, data: NDArray[Any]
    ) -> None:
        """Writes the rows, to arrays that have room for them; ``indptr`` begins with a 0."""
        with self._scratch() as scratch:
            self._loops.fill_rows(columns, ends, scratch, indptr, indices, data)

    @contextmanager
    def _scratch(self) -> Iterator[tuple[Any, ...]]:
        try:
            scratch = self._idle.pop()
        except IndexError:
            scratch = (*(np.zeros((self._width >> bits) + 1, np.uint64) for bits in (6, 12, 18, 6)),
                       np.zeros(self._width, np.int32))
        yield scratch
        # What was interrupted is not used again: it may not be zeros.
        self._idle.append(scratch)


class Tables:
    """A table for each thread that counts, made one in the end.

    Parameters
    ----------
    loops : Loops
    tokenizer : Tokenizer
    """

    def __init__(self, loops: Loops, tokenizer: Tokenizer):
        self._loops, self._tokenizer, self._secret = loops, tokenizer, drawn()
        self._tables: list[TermTable] = []
        self._idle: deque[int] = deque()
        self._turn = Lock()

    def __len__(self) -> int:
        """How many terms there are at most."""
        return sum(map(len, self._tables))

    @contextmanager
    def one(self) -> Iterator[tuple[int, TermTable]]:
        """A table that no other thread has meanwhile, and its number."""
        with self._turn:
            if not self._idle:
                self._idle.append(len(self._tables))
                self._tables.append(TermTable(self._loops, self._tokenizer, self._secret))
            number = self._idle.popleft()
        try:
            yield number, self._tables[number]
        finally:
            self._idle.append(number)

    def merged(self) -> tuple[TermTable, list[Codes]]:
        """One table of all terms, and for each table the code there of each code of its own."""
        if not self._tables:
            return TermTable(self._loops, self._tokenizer), []
        first, *others = self._tables
        own = np.arange(len(first), dtype=np.int32)
        codes = [own, *(first.absorb(other) for other in others)]
        self._tables = []
        return first, codes
