"""Terms of the compiled way: their codes, their order, and their strings.

    frame -> cleaned text (Polars) -> UTF-8 bytes -> codes of words -> codes of n-grams
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from threading import local
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError, ParameterError
from textnb.text.compiled_plan import cleaned_ascii, compiled_plan
from textnb.text.expressions import cleaned_exprs, stop_tokens
from textnb.text.tokens import TextColumns, Tokenizer
from textnb.text.utf8 import begins_of, byte_order, bytes_of, read_only, strings_of

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]

# Beyond the planes that have characters (and tags), code points are unassigned or private.
_ASSIGNED = ((0, 0xD800), (0xE000, 0x40000), (0xE0000, 0xE1000))
_MOST_CODES = 2**31 - 2**24
# Codes for which room is kept from one call to the next.
_MOST_KEPT = 1 << 22


class Loops(NamedTuple):
    """The compiled modules."""

    terms: Any
    rows: Any


class TermTable:
    """Terms with codes that count up from 0, in the order in which terms come.

    Parameters
    ----------
    loops : Loops
    tokenizer : Tokenizer
        One that is `possible`.
    secret : uint64 (4,), optional
        The keys of the hash; drawn by chance if not given. Tables that are merged share it.
    """

    def __init__(self, loops: Loops, tokenizer: Tokenizer, secret: NDArray[Any] | None = None):
        self._loops, self._rows, self._tokenizer = loops.terms, loops.rows, tokenizer
        self._plan = tokenizer.plan()
        compiled = compiled_plan(self._plan)
        if compiled is None:
            raise ParameterError(f"the compiled loops do not know all steps of {self._plan!r}; "
                                 "ask `possible` before")
        self._compiled = compiled
        self.secret = drawn() if secret is None else secret
        self._words, self._least = compiled.words, compiled.least
        self._class = _class_table(compiled.members)
        self._table, self._own = _empty_table(), local()
        # Stop words have the first codes, and so are told from others by their codes.
        stops = pl.Series(sorted(stop_tokens(self._plan)), dtype=pl.String)
        self._first = len(stops)
        self._strings(stops)

    def __len__(self) -> int:
        return int(self._table[6][0])

    def added(self, frame: pl.DataFrame, text: TextColumns) -> tuple[Codes, Ints]:
        """The codes of each row's terms, and where those of each row end; new terms are added.

        The codes stay as they are until this thread asks again.
        """
        if len(self) > _MOST_CODES:
            raise DataError(f"more than {_MOST_CODES:,} terms: raise min_df and learn from parts, "
                            "or choose shorter n-grams")
        codes, ends, self._table = self._coded(frame, text, True)
        return codes, ends

    def found(self, frame: pl.DataFrame, text: TextColumns) -> tuple[Codes, Ints]:
        """As `added`, but unknown terms have code -1; safe in many threads."""
        return self._coded(frame, text, False)[:2]

    def hold(self, terms: pl.Series) -> Codes:
        """The codes of terms, which are added."""
        if not self._words or self._compiled.ngram_range[1] == 1:
            return self._strings(terms)
        lists = self._tokenizer.split_all(terms)
        words = lists.explode(empty_as_null=False, keep_nulls=False)
        lengths = lists.list.len().cast(pl.Int64).to_numpy()
        most = int(lengths.max()) if len(lengths) else 1
        codes = self._strings(words)
        of_grams = np.empty(len(terms), dtype=np.int32)
        for length in range(1, most + 1):
            rows = np.flatnonzero(lengths == length)
            starts = np.cumsum(lengths)[rows] - length
            chosen = codes[starts[:, None] + np.arange(length)].reshape(-1)
            ends = np.arange(length, len(chosen) + 1, length, dtype=np.int64)
            of_grams[rows], _, self._table = self._loops.grams(
                chosen, ends, length, length, self._table, self.secret, True)
        return of_grams

    def absorb(self, other: TermTable) -> Codes:
        """Adds the other table's terms; the code here of each code there."""
        starts, pool, heads, tails = other._table[2:6]
        own = np.flatnonzero(heads[:len(other)] < 0)
        codes = np.empty(len(other), dtype=np.int32)
        codes[own], self._table = self._loops.strings(
            read_only(pool), starts[own], starts[own + 1], self._table,
            self.secret, True)
        depth = _depths(heads[:len(other)])
        for level in range(2, int(depth.max(initial=1)) + 1):
            of_level = np.flatnonzero(depth == level)
            codes[of_level], self._table = self._loops.pairs(
                codes[heads[of_level]], codes[tails[of_level]], self._table, self.secret, True)
        return codes

    def terms(self) -> Codes:
        """The codes that are terms; others are stop words, or what longer n-grams begin with."""
        depth = _depths(self._table[4][:len(self)])
        least = self._compiled.ngram_range[0] if self._words else 1
        codes = np.flatnonzero(depth >= least).astype(np.int32)
        return codes[codes >= self._first]

    def in_order(self, codes: Codes) -> Codes:
        """These codes, in the order of the sorted terms."""
        starts, pool, heads, tails = self._table[2:6]
        heads, tails = heads[:len(self)], tails[:len(self)]
        named = np.flatnonzero(heads < 0).astype(np.int32)
        order: Codes = named[byte_order(pool, starts[named], starts[named + 1])]
        rank = np.zeros(len(self), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        of_word, depth, wanted = rank.copy(), _depths(heads), np.zeros(len(self), dtype=np.bool_)
        wanted[codes] = True
        longest, needed = int(depth[codes].max(initial=1)), wanted.copy()
        for level in range(longest, 1, -1):
            needed[heads[np.flatnonzero(needed & (depth == level))]] = True
        for level in range(2, longest + 1):
            # What continues a term comes after it, by the order of the words that continue it. No
            # member of a class sorts before the space, so that this is the order of the strings.
            longer = depth == level
            first = np.where(longer, rank[heads], rank)
            second = np.where(longer, of_word[tails] + 1, 0).astype(np.int32)
            order = np.flatnonzero(needed & (depth <= level)).astype(np.int32)
            for keys in (second, first):
                order = self._rows.ordered(keys, order, len(self))
            rank[order] = np.arange(len(order), dtype=np.int32)
        return order[wanted[order]]

    def strings(self, codes: Codes) -> pl.Series:
        """The terms of these codes."""
        starts, pool, heads, tails = self._table[2:6]
        heads = heads[:len(self)]
        ends = starts[1:len(self) + 1][heads < 0]
        words = strings_of(pool[:ends[-1] if len(ends) else 0], ends)
        place = np.cumsum(heads < 0) - 1
        if len(ends) == len(self):
            return words.gather(pl.Series(place[codes])).alias("term")
        columns: list[pl.Series] = []
        left = np.ones(len(codes), dtype=np.bool_)
        while left.any():
            longer = left & (heads[codes] >= 0)
            word = place[np.where(longer, tails[codes], codes)]
            columns.insert(0, words.gather(_nulled(word, left)).alias(str(len(columns))))
            codes, left = np.where(longer, heads[codes], codes), longer
        joined = pl.concat_str(pl.all(), separator=" ", ignore_nulls=True)
        return pl.DataFrame(columns).select(joined.alias("term")).to_series()

    def _strings(self, strings: pl.Series) -> Codes:
        text, ends = bytes_of(strings)
        codes: Codes
        codes, self._table = self._loops.strings(
            text, begins_of(ends), ends, self._table, self.secret, True)
        return codes

    def found_in(self, texts: Sequence[str]) -> tuple[Codes, Ints] | None:
        """As `found`, of texts of ASCII characters, without a frame; None for others."""
        joined = "".join(texts)
        cleaned = cleaned_ascii(self._plan, joined) if joined.isascii() else None
        if cleaned is None:
            return None
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        source = np.frombuffer(cleaned.encode(), dtype=np.uint8)
        return self._terms_of(source, ends, False)[:2]

    def _coded(
        self, frame: pl.DataFrame, text: TextColumns, add: bool
    ) -> tuple[Codes, Ints, Any]:
        columns = cleaned_exprs(self._plan, text)
        stretches = frame.select(columns[0] if len(columns) == 1
                                 else pl.concat_list(columns).explode()).to_series()
        codes, ends, table = self._terms_of(*bytes_of(stretches), add)
        # No n-gram crosses from one text column into the next, but their terms belong together.
        return codes, ends[len(columns) - 1::len(columns)], table

    def _terms_of(
        self, source: NDArray[np.uint8], ends: Ints, add: bool
    ) -> tuple[Codes, Ints, Any]:
        """Codes of the terms of each stretch of bytes, where those of each end, and the table."""
        codes, ends, table = self._single(source, ends, add)
        if self._first:
            codes, ends = self._rows.without_first(codes, ends, self._first)
        least, most = self._compiled.ngram_range
        if self._words and most > 1:
            codes, ends, table = self._loops.grams(
                codes, ends, least, most, table, self.secret, add)
        return codes, ends, table

    def _single(self, source: NDArray[np.uint8], ends: Ints, add: bool) -> tuple[Any, ...]:
        """Codes of terms of one word, or of characters; where those of each text end; the table."""
        loops, rest = self._loops, (self._table, self.secret, add)
        if self._words:
            room = self._room((len(source) + len(ends)) // (self._least + 1))
            return tuple(loops.words(source, ends, self._class, self._least, *rest, room))
        least, most = self._compiled.ngram_range
        within_words = self._compiled.within_words
        if within_words:
            source, ends, words = loops.padded_words(source, ends, self._class)
            source = read_only(source)
        room = self._room((most - least + 1) * len(source))
        codes, counts, table = loops.characters(
            source, ends, least, most, within_words, *rest, room)
        return codes, np.append(0, counts)[words] if within_words else counts, table

    def _room(self, size: int) -> Codes:
        """An array for codes, used again by the next call of this thread."""
        room: Codes | None = getattr(self._own, "room", None)
        if room is None or len(room) < size:
            room = np.empty(size * 5 // 4, dtype=np.int32)
            if len(room) <= _MOST_KEPT:
                self._own.room = room
        return room


def drawn() -> NDArray[Any]:
    """Keys of a hash, by chance."""
    secret = np.random.default_rng().integers(0, 2**64, 4, dtype=np.uint64)
    secret[1:3] |= np.uint64(1)
    secret[3] >>= np.uint64(3)
    return secret


def _empty_table() -> tuple[NDArray[Any], ...]:
    return (np.zeros(2 << 10, np.uint64), np.zeros(2 << 10, np.uint64), np.zeros(1 << 10, np.int64),
            np.empty(1 << 12, np.uint8), np.empty(1 << 10, np.int32), np.empty(1 << 10, np.int32),
            np.zeros(2, np.int64))


def _nulled(values: Ints, valid: NDArray[np.bool_]) -> pl.Series:
    indices = pl.Series(values)
    return indices if valid.all() else pl.select(
        pl.when(pl.Series(valid)).then(indices)).to_series()


def _depths(heads: Codes) -> Codes:
    """How many words each code's n-gram has."""
    depth = np.ones(len(heads), dtype=np.int32)
    longer = np.flatnonzero(heads >= 0)
    # A head has a smaller code than what continues it; a pass for each word settles all.
    while len(longer):
        found = depth[heads[longer]] + 1
        changed = found != depth[longer]
        depth[longer] = found
        if not changed.any():
            break
    return depth


@lru_cache(maxsize=8)
def _class_table(members: str) -> NDArray[np.uint8]:
    """For each code point, whether the regular expression's class of these members holds it."""
    table = np.zeros(0x110000, dtype=np.uint8)
    for begin, end in _ASSIGNED:
        every = np.arange(begin, end, dtype="<u4").tobytes().decode("utf-32-le")
        # One character for one: what is left as it was is a member. NUL is in no class.
        kept = pl.Series([every]).str.replace_all(rf"[^{members}]", "\0").item()
        table[begin:end] = np.frombuffer(kept.encode("utf-32-le"), dtype="<u4") != 0
    return table
