"""Decides which tokenizers the compiled kernel runs, and divides its work among threads.

The kernel runs tokenizers of runs of one class of characters, and of n-grams of characters. Polars'
expressions run all others, and all of them if the kernel was not compiled. Both find the same
terms. ``TEXTNB_KERNEL=off`` in the environment turns the kernel off, to compare; with ``on`` it is
an error if there is no kernel.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.errors import ParameterError
from textnb.text.compiled_plan import why_unknown
from textnb.text.native.kernel import Kernel, build
from textnb.text.plan import Lowercase
from textnb.text.termtable import Codes, Ints, TermTable, random_hash_keys
from textnb.text.tokens import Tokenizer


def kernel_for(tokenizer: Tokenizer) -> Kernel | None:
    """The compiled kernel, if it runs the tokenizer.

    Raises
    ------
    ParameterError
        If ``TEXTNB_KERNEL`` is neither on nor off, or is on and there is no kernel.
    """
    return None if why_expressions(tokenizer) else build().kernel


def reading(tokenizer: Tokenizer) -> str:
    """The engine that reads texts, in words for a model's card.

    Examples
    --------
    >>> reading(Tokenizer(r"[^,]+")) in (
    ...     "expressions: the pattern '[^,]+' is no run of one class of characters",
    ...     f"expressions: {why_no_kernel()}")
    True
    """
    why = why_expressions(tokenizer)
    if why:
        return f"expressions: {why}"
    cleaning = [step.setting for step in tokenizer.plan().cleaning
                if not isinstance(step, Lowercase)]
    return f"the compiled kernel, after expressions for {', '.join(cleaning)}" if cleaning else (
        "the compiled kernel")


def why_expressions(tokenizer: Tokenizer) -> str:
    """Why expressions read texts, in a clause; empty if the kernel reads them.

    Raises
    ------
    ParameterError
        See `kernel_for`.
    """
    return why_no_kernel() or why_unknown(tokenizer.plan())


def why_no_kernel() -> str:
    """Why there is no kernel to read any text, in a clause; empty if there is one.

    Raises
    ------
    ParameterError
        See `kernel_for`.
    """
    asked = os.environ.get("TEXTNB_KERNEL", "")
    if asked not in ("", "on", "off"):
        raise ParameterError.unknown_choice("TEXTNB_KERNEL", asked, ["on", "off"])
    if asked == "on" and build().kernel is None:
        raise ParameterError(f"TEXTNB_KERNEL=on, but there is no compiled kernel: "
                             f"{build().reason}; unset it to read texts by expressions")
    return "TEXTNB_KERNEL=off" if asked == "off" else build().reason


class RowMaker:
    """Makes CSR rows with a number of columns from codes, in any thread.

    Parameters
    ----------
    kernel : Kernel
    width : int
    """

    def __init__(self, kernel: Kernel, width: int):
        self._rows, self._bits = kernel.rows, max(1, (width - 1).bit_length())

    def entries(self, codes: Codes, ends: Ints, columns: Codes) -> Ints:
        """Replace codes by columns, ``columns[code]`` or -1, for `fill`.

        Returns the number of entries of each row.
        """
        entries = np.empty(len(ends), dtype=np.int64)
        self._rows.sort_rows(codes, ends, columns, self._bits, entries)
        return entries

    def fill(
        self, columns: Codes, ends: Ints, indptr: Ints, indices: Codes, data: NDArray[Any]
    ) -> None:
        """Write the rows into arrays of the right sizes; ``indptr`` begins with a 0."""
        self._rows.fill_rows(columns, ends, indptr, indices, data)


class Tables:
    """A table of terms for each thread that counts; `merge` makes one of them.

    Parameters
    ----------
    kernel : Kernel
    tokenizer : Tokenizer
    """

    def __init__(self, kernel: Kernel, tokenizer: Tokenizer):
        self._kernel, self._tokenizer, self._secret = kernel, tokenizer, random_hash_keys()
        self._tables: list[TermTable] = []
        self._idle: deque[int] = deque()
        self._turn = Lock()

    def __len__(self) -> int:
        """An upper bound of the number of terms."""
        return sum(map(len, self._tables))

    @contextmanager
    def take(self) -> Iterator[tuple[int, TermTable]]:
        """Take a table that no other thread uses during the block, and its number."""
        with self._turn:
            if not self._idle:
                self._idle.append(len(self._tables))
                self._tables.append(TermTable(self._kernel, self._tokenizer, self._secret))
            number = self._idle.popleft()
        yield number, self._tables[number]
        # A table that failed half-way (without memory) does not get here, and is never used again.
        self._idle.append(number)

    def merge(self) -> tuple[TermTable, list[Codes]]:
        """One table of all terms, and for each table the new code of each of its codes."""
        if not self._tables:
            return TermTable(self._kernel, self._tokenizer), []
        first, *others = self._tables
        own = np.arange(len(first), dtype=np.int32)
        codes = [own, *(first.absorb(other) for other in others)]
        self._tables = []
        return first, codes
