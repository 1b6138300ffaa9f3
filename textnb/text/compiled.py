"""The compiled way: whether texts go it, and the work of several threads on it.

It serves tokenizers of runs of one class of characters, and of n-grams of characters, where Numba
is installed (the extra ``textnb[fast]``); for all others, and for little text, Polars' expressions
are run. Both find the same terms. In the environment, ``TEXTNB_KERNEL=off`` turns the compiled way
off, and ``TEXTNB_KERNEL=on`` lets it serve little text too.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import ParameterError
from textnb.text.compiled_plan import compiled_plan
from textnb.text.termtable import Codes, Ints, Loops, TermTable, drawn
from textnb.text.tokens import Tokenizer

# From so much text on it pays to load the compiled code, which takes half a second; and from a
# share of it where terms are n-grams, which expressions are slower at.
WORTH_LOADING, _SHARE = 20 << 20, 5
_LOG = logging.getLogger("textnb")


def loops_for(tokenizer: Tokenizer, size: int) -> Loops | None:
    """The compiled code, if it serves the tokenizer and is worth it for so many bytes of text.

    Raises
    ------
    ParameterError
        If ``TEXTNB_KERNEL`` is neither on, off nor auto.
    """
    if not possible(tokenizer):
        return None
    if size < _worth(tokenizer) and _asked() == "auto" and not _loops.cache_info().currsize:
        return None
    words = tokenizer.analyzer == "word"
    return _loops(words, words and tokenizer.ngram_range[1] > 1)


def _worth(tokenizer: Tokenizer) -> int:
    plain = tokenizer.analyzer == "word" and tokenizer.ngram_range[1] == 1
    return WORTH_LOADING if plain else WORTH_LOADING // _SHARE


def _asked() -> str:
    asked = os.environ.get("TEXTNB_KERNEL", "auto").lower() or "auto"
    if asked not in ("auto", "on", "off"):
        raise ParameterError.unknown_choice("TEXTNB_KERNEL", asked, ["auto", "on", "off"])
    return asked


def possible(tokenizer: Tokenizer) -> bool:
    """Whether the loops know every step of the tokenizer's plan, and Numba is there to run them."""
    if _asked() == "off" or not _installed():
        return False
    return compiled_plan(tokenizer.plan()) is not None


@cache
def _installed() -> bool:
    # Asked for every batch, and to look for what is not there takes long.
    return find_spec("numba") is not None


@lru_cache(maxsize=4)
def _loops(words: bool, pairs: bool) -> Loops | None:
    """The compiled code, once it has been seen to work; None where it does not."""
    started, folder = time.perf_counter(), Path(__file__).parent / "__pycache__"
    try:
        from numba import config

        from textnb.text import kernel, kernel_rows

        if config.DISABLE_JIT:
            raise RuntimeError("NUMBA_DISABLE_JIT is set")
        loops = Loops(_interruptible(kernel), _interruptible(kernel_rows))
        folder = Path(str(kernel.words.stats.cache_path))
        needed = [kernel.words if words else kernel.characters, *([kernel.grams] if pairs else [])]
        known = all(any(folder.glob(f"kernel.{loop.__name__}-*.nbi")) for loop in needed)
        if not known:
            _LOG.info("compiling the loops that read texts, once on this machine (5 to 20 s) ...")
        _prove(loops, words, pairs)
    except Exception as error:
        # Numba is built for another NumPy, is switched off, can't write what it compiles, can't
        # read what was written ... : whatever it is, there is another way.
        reason = (str(error).strip().splitlines() or [""])[0] or type(error).__name__
        _LOG.warning("Numba can't be used, so texts are read more slowly: %s. If its files are "
                     "damaged, delete kernel*.nb? in %s; NUMBA_CACHE_DIR names another folder",
                     reason, folder)
        return None
    _LOG.log(logging.DEBUG if known else logging.INFO,
             "the compiled loops were ready after %.1f s", time.perf_counter() - started)
    return loops


def _interruptible(module: Any) -> Any:
    """The module's loops, from which an interrupt comes out as what it is."""

    def guarded(loop: Any) -> Any:
        def call(*arguments: Any) -> Any:
            try:
                return loop(*arguments)
            except SystemError as error:
                # It can lie deep: each call into the interpreter wraps what it was given.
                cause: BaseException | None = error
                while cause is not None and not isinstance(cause, KeyboardInterrupt):
                    cause = cause.__cause__ or cause.__context__
                if cause is not None:
                    raise KeyboardInterrupt from error
                raise

        return call

    return SimpleNamespace(**{name: guarded(value) for name, value in vars(module).items()
                              if hasattr(value, "py_func") and not name.startswith("_")})


def _prove(loops: Loops, words: bool, pairs: bool) -> None:
    """Runs every loop that such a tokenizer needs, which loads or compiles it."""
    tokenizer = (Tokenizer(stop_words=("ab",), ngram_range=(1, 2 if pairs else 1)) if words
                 else Tokenizer(analyzer="char_wb", ngram_range=(2, 2)))
    frame = pl.DataFrame({"text": ["ab cd cd", ""]})
    tables, labels = Tables(loops, tokenizer), np.zeros(2, dtype=np.int64)
    with tables.one(), tables.one() as (_, table):
        codes, ends = table.added(frame, "text")
        table.found(frame, "text")
    of_terms, seen = np.zeros((2, 2, len(table)), dtype=np.int64)
    counts = np.zeros((1, len(table)), dtype=np.int32)
    loops.rows.add_counts(codes, ends, labels, counts)
    loops.rows.add_presence(codes, ends, labels, counts, 1, of_terms, seen, 0)
    whole, codes_of = tables.merged()
    order = whole.in_order(whole.terms())
    for sums in (counts, of_terms.copy()):
        loops.rows.add_columns(of_terms, sums, codes_of[1])
    expected = [" c", "ab", " a", "b ", "cd", "d "] if not words else (
        ["cd", "cd cd"] if pairs else ["cd"])
    if whole.strings(order).to_list() != sorted(expected):
        raise RuntimeError("its loops do not find the terms that they should")
    maker = RowMaker(loops, len(whole))
    columns = codes.copy()
    entries = maker.entries(columns, ends, np.arange(len(whole), dtype=np.int32))
    for kind in (np.int32, np.int64):
        maker.fill(columns, ends, np.zeros(3, dtype=np.int64),
                   np.empty(entries.sum(), dtype=np.int32), np.empty(entries.sum(), dtype=kind))


def peeked(frames: Iterable[pl.DataFrame], tokenizer: Tokenizer) -> tuple[
        Loops | None, Iterator[pl.DataFrame]]:
    """The compiled code if it is worth it for these frames, and the frames."""
    rest, ahead, size = iter(frames), [], 0
    loops = loops_for(tokenizer, 0)
    while loops is None and size < _worth(tokenizer) and possible(tokenizer):
        frame = next(rest, None)
        if frame is None:
            break
        ahead.append(frame)
        size += int(frame.estimated_size())
        loops = loops_for(tokenizer, size)
    return loops, chain(ahead, rest)


class RowMaker:
    """CSR rows of so many columns from codes, in any thread.

    Parameters
    ----------
    loops : Loops
    width : int
    """

    def __init__(self, loops: Loops, width: int):
        self._loops, self._bits = loops.rows, max(1, (width - 1).bit_length())

    def entries(self, codes: Codes, ends: Ints, columns: Codes) -> Ints:
        """Puts the columns, ``columns[code]`` or -1, in the codes' places, for `fill`.

        Returns how many entries each row has.
        """
        entries: Ints = self._loops.sort_rows(codes, ends, columns, self._bits)
        return entries

    def fill(
        self, columns: Codes, ends: Ints, indptr: Ints, indices: Codes, data: NDArray[Any]
    ) -> None:
        """Writes the rows, to arrays that have room for them; ``indptr`` begins with a 0."""
        self._loops.fill_rows(columns, ends, indptr, indices, data)


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
        yield number, self._tables[number]
        # A table that failed half-way (for want of memory) is used by nobody again.
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
