"""Decides whether the compiled kernel reads texts, and divides its work among threads.

The kernel finds words that are runs of one class of characters, and n-grams of characters. Polars
expressions find all other words, and all terms if the kernel was not compiled. Both find the same
terms. The environment variable ``TEXTNB_KERNEL=off`` turns the kernel off, to compare; with ``on``
it is an error if there is no kernel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from textnb.runtime.native import KERNEL, Kernel, load_usable
from textnb.text.compiled_plan import uncompiled_reason
from textnb.text.expression_table import ExpressionTable
from textnb.text.plan import Lowercase
from textnb.text.termtable import Codes, TermTable, random_hash_keys
from textnb.text.tokens import Tokenizer

Table = TermTable | ExpressionTable


def usable_kernel() -> Kernel | None:
    """The compiled kernel, unless there is none or ``TEXTNB_KERNEL`` turns it off."""
    return load_usable(KERNEL).kernel


def describe_engine(tokenizer: Tokenizer) -> str:
    """Name the engine that makes tokens of texts, for a model's card.

    Examples
    --------
    >>> describe_engine(Tokenizer(r"[^,]+")) in (
    ...     "expressions: the pattern '[^,]+' is not a run of one class of characters",
    ...     f"expressions: {load_usable(KERNEL).reason}")
    True
    """
    reason = reason_for_expressions(tokenizer)
    if reason:
        return f"expressions: {reason}"
    cleaning = [step.setting for step in tokenizer.plan().cleaning
                if not isinstance(step, Lowercase)]
    return f"the compiled kernel, after expressions for {', '.join(cleaning)}" if cleaning else (
        "the compiled kernel")


def reason_for_expressions(tokenizer: Tokenizer) -> str:
    """A clause that says why expressions find the words; empty if the kernel finds them."""
    return load_usable(KERNEL).reason or uncompiled_reason(tokenizer.plan())


class Tables:
    """The tables of terms of several threads; `merge` joins them in one table.

    With a kernel, each thread has its own table. Without a kernel, all threads share a table, and
    two threads are enough, because expressions use all processors by themselves.

    Parameters
    ----------
    kernel : Kernel or None
    tokenizer : Tokenizer

    Attributes
    ----------
    threads : int or None
        The maximum number of threads that should take tables; None for the number of processors.
    """

    def __init__(self, kernel: Kernel | None, tokenizer: Tokenizer):
        self.threads = 2 if kernel is None else None
        if kernel is None:
            shared = ExpressionTable(tokenizer)
            self._new_table: Callable[[], Table] = lambda: shared
        else:
            # Tables that are merged must share the keys of their hash.
            self._new_table = partial(TermTable, kernel, tokenizer, hash_keys=random_hash_keys())
        self._tables: list[Any] = []
        # The numbers of the tables that no thread uses.
        self._idle: deque[int] = deque()
        self._lock = Lock()

    def __len__(self) -> int:
        """An upper bound of the number of terms."""
        return sum(map(len, set(self._tables)))

    @contextmanager
    def take(self) -> Iterator[tuple[int, Table]]:
        """Take a table for a block, and its number.

        With a kernel, no other thread uses the table during the block.
        """
        with self._lock:
            if not self._idle:
                self._idle.append(len(self._tables))
                self._tables.append(self._new_table())
            number = self._idle.popleft()
        yield number, self._tables[number]
        # Not after an error: a table that failed half-way (out of memory) is never used again.
        self._idle.append(number)

    def merge(self) -> tuple[Table, list[Codes]]:
        """One table of all terms, and for each earlier table an array: the new code of each code.

        A shared table absorbs itself, which changes nothing.
        """
        if not self._tables:
            return self._new_table(), []
        first, *others = self._tables
        unchanged = np.arange(len(first), dtype=np.int32)
        new_codes = [unchanged, *(first.absorb(other) for other in others)]
        self._tables = []
        return first, new_codes
