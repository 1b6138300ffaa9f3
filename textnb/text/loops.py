"""Whether texts go the compiled way: from their bytes to term codes, without strings.

It serves tokenizers of runs of one class of characters, and of n-grams of characters, where Numba
is installed (the extra ``textnb[fast]``); for all others, and for little text, Polars' expressions
are run. Both find the same terms. In the environment, ``TEXTNB_KERNEL=off`` turns the compiled way
off, and ``TEXTNB_KERNEL=on`` lets it serve little text too.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from typing import Any, NamedTuple

import polars as pl

from textnb.text.tokens import Tokenizer

# From so much text on it pays to load the compiled code.
WORTH_LOADING = 8 << 20
_LOG = logging.getLogger("textnb")


class Loops(NamedTuple):
    """The compiled modules."""

    terms: Any
    rows: Any


@lru_cache(maxsize=1)
def _loops() -> Loops | None:
    started = time.perf_counter()
    try:
        from textnb.text import kernel, kernel_rows
    except (ImportError, RuntimeError) as error:
        # Of another NumPy, or with no folder in which compiled code could be kept.
        _LOG.warning("Numba can't be used, so texts are read more slowly: %s", error)
        return None
    _LOG.info("Numba was imported in %.2f s", time.perf_counter() - started)
    return Loops(kernel, kernel_rows)


def loops_for(tokenizer: Tokenizer, size: int) -> Loops | None:
    """The compiled code, if it serves the tokenizer and is worth it for so many bytes of text."""
    if not possible(tokenizer):
        return None
    asked = os.environ.get("TEXTNB_KERNEL", "").lower() == "on"
    if size < WORTH_LOADING and not asked and not _loops.cache_info().currsize:
        return None
    return _loops()


def possible(tokenizer: Tokenizer) -> bool:
    """Whether the tokenizer is of the kind that is compiled, and Numba is there to do it."""
    if os.environ.get("TEXTNB_KERNEL", "").lower() == "off" or find_spec("numba") is None:
        return False
    if tokenizer.field_prefix:
        return False
    return tokenizer.analyzer != "word" or tokenizer.run() is not None


def peeked(frames: Iterable[pl.DataFrame], tokenizer: Tokenizer) -> tuple[
        Loops | None, Iterator[pl.DataFrame]]:
    """The compiled code if it is worth it for these frames, and the frames."""
    rest, ahead, size = iter(frames), [], 0
    loops = loops_for(tokenizer, 0)
    while loops is None and size < WORTH_LOADING and possible(tokenizer):
        frame = next(rest, None)
        if frame is None:
            break
        ahead.append(frame)
        size += int(frame.estimated_size())
        loops = loops_for(tokenizer, size)
    return loops, chain(ahead, rest)
