"""Terms of the compiled kernel: their codes, their order, and their strings.

    frame -> cleaned text (Polars) -> UTF-8 bytes -> codes of words -> codes of n-grams
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from threading import Lock, local
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError, ParameterError
from textnb.runtime.forks import check_fork
from textnb.text.byte_keys import begins_of
from textnb.text.compiled_plan import clean_ascii, compiled_plan
from textnb.text.expressions import cleaned_exprs, stop_tokens
from textnb.text.native.kernel import Kernel
from textnb.text.prefixes import PrefixedTerms
from textnb.text.tokens import TextColumns, Tokenizer
from textnb.text.unspaced import RANGES
from textnb.text.utf8 import byte_order, bytes_of, strings_of

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]

# Beyond the planes that have characters (and tags), code points are unassigned or private.
_ASSIGNED = ((0, 0xD800), (0xE000, 0x40000), (0xE0000, 0xE1000))
# The class is asked for 256 code points at a time until so many bytes were read, and then for all
# up to the plane that a text reaches, which takes some 30 ms.
_MUCH_TEXT, _BLOCK_BITS = 1 << 21, 8
_MOST_CODES = 2**31 - 2**24
# Codes for which room is kept from one call to the next.
_MOST_KEPT = 1 << 22
# Spans that are found, and then looked up, at a time.
_SPANS = 1 << 14


class TermTable:
    """Terms with codes that count up from 0, in the order in which terms come.

    Parameters
    ----------
    kernel : Kernel
    tokenizer : Tokenizer
        One that the kernel runs.
    secret : uint64 (4,), optional
        The keys of the hash; random if not given. Tables that are merged share it.
    """

    def __init__(self, kernel: Kernel, tokenizer: Tokenizer, secret: NDArray[Any] | None = None):
        self._kernel, self._tokenizer, self._plan = kernel, tokenizer, tokenizer.plan()
        compiled = compiled_plan(self._plan)
        if compiled is None:
            raise ParameterError(f"the kernel does not know all steps of {self._plan!r}; ask "
                                 "`kernel_for` before")
        self._compiled = compiled
        self.secret = random_hash_keys() if secret is None else secret
        self._words, self._least = compiled.words, compiled.least
        self._table, self._own = kernel.terms.Table(self.secret), local()
        # Stop words have the first codes, and so are told from others by their codes.
        self._stops = pl.Series(sorted(stop_tokens(self._plan)), dtype=pl.String)
        self._first = 0 if compiled.prefixed else len(self._stops)
        self._strings(self._stops[:self._first])
        # What columns' prefixes make of terms, by the prefixes.
        self._prefixed: dict[tuple[str, ...], PrefixedTerms] = {}
        self._turn, self._odd_order = Lock(), False

    def __len__(self) -> int:
        return len(self._table)

    def added(self, frame: pl.DataFrame, text: TextColumns) -> tuple[Codes, Ints]:
        """The codes of each row's terms, and where those of each row end; new terms are added.

        The codes stay as they are until this thread asks again.
        """
        if len(self) > _MOST_CODES:
            raise DataError.naming(
                "more than {most:,} terms: raise {min_df} and learn from parts, or choose shorter "
                "n-grams", most=_MOST_CODES)
        return self._encode(frame, text, True)

    def found(self, frame: pl.DataFrame, text: TextColumns) -> tuple[Codes, Ints]:
        """As `added`, but unknown terms have code -1; safe in many threads."""
        return self._encode(frame, text, False)

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
            of_grams[rows] = self._grams(chosen, ends, length, length, True)[0]
        return of_grams

    def absorb(self, other: TermTable) -> Codes:
        """Adds the other table's terms; the code here of each code there."""
        self._odd_order = self._odd_order or other._odd_order
        starts, pool, heads, tails = other._arrays()
        own = np.flatnonzero(heads < 0)
        codes = np.empty(len(other), dtype=np.int32)
        codes[own] = self._spans(pool, starts[own], starts[own + 1])
        depth = _depths(heads)
        for level in range(2, int(depth.max(initial=1)) + 1):
            of_level = np.flatnonzero(depth == level)
            found = np.empty(len(of_level), dtype=np.int32)
            self._table.pairs(codes[heads[of_level]], codes[tails[of_level]], True, found)
            codes[of_level] = found
        return codes

    def terms(self) -> Codes:
        """The codes that are terms; others are stop words, or what longer n-grams begin with."""
        depth = _depths(self._arrays()[2])
        least = self._compiled.ngram_range[0] if self._words else 1
        codes = np.flatnonzero(depth >= least).astype(np.int32)
        return codes[codes >= self._first]

    def in_order(self, codes: Codes) -> Codes:
        """These codes, in the order of the sorted terms."""
        if self._odd_order:
            in_order: Codes = codes[self.strings(codes).arg_sort().to_numpy()]
            return in_order
        starts, pool, heads, tails = self._arrays()
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
                order = self._ordered(keys, order)
            rank[order] = np.arange(len(order), dtype=np.int32)
        return order[wanted[order]]

    def strings(self, codes: Codes) -> pl.Series:
        """The terms of these codes."""
        starts, pool, heads, tails = self._arrays()
        ends = starts[1:][heads < 0]
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

    def _arrays(self) -> tuple[Ints, NDArray[np.uint8], Codes, Codes]:
        """Where each code's bytes begin (and where the last end), the bytes, heads and tails."""
        _, starts, pool, heads, tails = self._table.arrays()
        return starts[:len(self) + 1], pool, heads[:len(self)], tails[:len(self)]

    def _strings(self, strings: pl.Series) -> Codes:
        text, ends = bytes_of(strings)
        return self._spans(text, begins_of(ends), ends)

    def _spans(self, text: NDArray[np.uint8], begins: Ints, ends: Ints) -> Codes:
        """The codes of spans of bytes, which are added."""
        codes = np.empty(len(begins), dtype=np.int32)
        self._table.strings(text, begins, ends, True, codes)
        return codes

    def _ordered(self, keys: Codes, order: Codes) -> Codes:
        """The places of keys in rising order; of equal ones, as they stand in ``order``."""
        other = np.empty_like(order)
        return other if self._kernel.rows.ordered(keys, order, other, len(self)) else order

    def found_in(self, texts: Sequence[str]) -> tuple[Codes, Ints] | None:
        """As `found`, of texts of ASCII characters, without a frame; None for others."""
        check_fork()
        joined = "".join(texts)
        cleaned = (clean_ascii(self._plan, joined)
                   if joined.isascii() and not self._compiled.prefixed else None)
        if cleaned is None:
            return None
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        source = np.frombuffer(cleaned.encode(), dtype=np.uint8)
        return self._terms_of(source, ends, False)

    def _encode(self, frame: pl.DataFrame, text: TextColumns, add: bool) -> tuple[Codes, Ints]:
        columns = cleaned_exprs(self._plan, text)
        stretches = frame.select(columns[0] if len(columns) == 1
                                 else pl.concat_list(columns).explode()).to_series()
        codes, ends = self._terms_of(*bytes_of(stretches), add, self._prefixed_terms(text))
        # No n-gram crosses from one text column into the next, but their terms belong together.
        return codes, ends[len(columns) - 1::len(columns)].copy()

    def _prefixed_terms(self, text: TextColumns) -> PrefixedTerms | None:
        """The terms behind the prefixes of these columns; None where none has a prefix."""
        if not self._compiled.prefixed:
            return None
        prefixes = tuple(self._plan.prefixes([text] if isinstance(text, str) else text))
        with self._turn:
            if prefixes not in self._prefixed:
                terms = PrefixedTerms(
                    self._kernel, self.secret, prefixes, self._compiled.escaped)
                terms.add(self._stops)
                words = np.flatnonzero(self._arrays()[2] < 0).astype(np.int32)
                terms.hold(self.strings(words), words)
                # What sorts before the space that joins n-grams may be in a column's name.
                self._odd_order |= any(min(prefix, default="~") < " " for prefix in prefixes)
                self._prefixed[prefixes] = terms
            return self._prefixed[prefixes]

    def _terms_of(
        self, source: NDArray[np.uint8], ends: Ints, add: bool,
        prefixed: PrefixedTerms | None = None,
    ) -> tuple[Codes, Ints]:
        """Codes of the terms of each stretch of bytes, and where those of each end."""
        table = self._table if prefixed is None else prefixed.table
        codes, ends = self._single(table, source, ends, add)
        if len(self._stops):
            codes = codes[:self._kernel.rows.without_first(codes, ends, len(self._stops))]
        if prefixed is not None:
            prefixed.put(codes, ends, self._strings if add else None)
        least, most = self._compiled.ngram_range
        if self._words and most > 1:
            return self._grams(codes, ends, least, most, add)
        return codes, ends

    def _grams(
        self, codes: Codes, ends: Ints, least: int, most: int, add: bool
    ) -> tuple[Codes, Ints]:
        """Codes of the n-grams of each stretch of words, and where those of each end."""
        lengths = np.diff(ends, prepend=0)
        grams = sum(np.maximum(0, lengths - n + 1) for n in range(least, most + 1))
        found = np.empty(int(grams.sum()), dtype=np.int32)
        bounds = np.cumsum(grams) - grams
        self._table.grams(codes, ends, least, most, add, found, bounds)
        return found, bounds

    def _single(
        self, table: Any, source: NDArray[np.uint8], ends: Ints, add: bool
    ) -> tuple[Codes, Ints]:
        """Codes of terms of one word, or of characters, and where those of each text end."""
        spans = self._kernel.spans
        members = _character_class(self._compiled.members, self._compiled.pairs).of(source)
        if self._words:
            # Nothing need stand between a word and a character of three bytes that is one too.
            shortest = 2 if self._compiled.pairs else self._least + 1
            room = self._room((len(source) + len(ends)) // shortest + 1)
            return self._look_up(table, partial(spans.words, source), (members, self._least),
                                 source, ends, room, add)
        within_words = self._compiled.within_words
        if within_words:
            source, ends, words = self._padded_words(source, ends, members)
        least, most = self._compiled.ngram_range
        room = self._room((most - least + 1) * len(source))
        settings = least, most, within_words
        codes, counts = self._look_up(
            table, partial(spans.characters, source), settings, source, ends, room, add)
        return codes, np.append(0, counts)[words] if within_words else counts

    def _look_up(
        self, table: Any, spans: Callable[..., tuple[int, int, int]], settings: tuple[Any, ...],
        source: NDArray[np.uint8], ends: Ints, room: Codes, add: bool,
    ) -> tuple[Codes, Ints]:
        """The codes of spans, some at a time: they stay in the cache, and interrupts are seen."""
        counts = np.empty(len(ends), dtype=np.int64)
        edges, begins, stops = self._scratch(_SPANS)
        place, total = (0, 0), 0
        while place[1] < len(ends):
            n, *after = spans(*place, ends, *settings, edges, begins, stops, total, counts)
            if place == tuple(after):
                # A run of characters that is longer than the room for its words.
                edges, begins, stops = self._scratch(2 * len(begins))
            table.strings(source, begins[:n], stops[:n], add, room[total:total + n])
            place, total = (after[0], after[1]), total + n
        return room[:total], counts

    def _padded_words(
        self, source: NDArray[np.uint8], ends: Ints, white: NDArray[np.uint8]
    ) -> tuple[NDArray[np.uint8], Ints, Ints]:
        """The words of all stretches, each between two spaces; their ends; how many until each."""
        padded = np.empty(2 * len(source) + len(ends) + 2, dtype=np.uint8)
        word_ends = np.empty(len(source) // 2 + len(ends) + 1, dtype=np.int64)
        counts = np.empty(len(ends), dtype=np.int64)
        filled, words = self._kernel.spans.padded_words(
            source, ends, white, padded, word_ends, counts)
        return padded[:filled], word_ends[:words], counts

    def _scratch(self, size: int) -> tuple[Ints, Ints, Ints]:
        """Arrays for so many spans, used again by the next call of this thread."""
        scratch: tuple[Ints, Ints, Ints] | None = getattr(self._own, "scratch", None)
        if scratch is None or len(scratch[1]) < size:
            scratch = (np.empty(2 * size, dtype=np.int64), np.empty(size, dtype=np.int64),
                       np.empty(size, dtype=np.int64))
            if size <= _MOST_KEPT:
                self._own.scratch = scratch
        return scratch

    def _room(self, size: int) -> Codes:
        """An array for codes, used again by the next call of this thread."""
        room: Codes | None = getattr(self._own, "room", None)
        if room is None or len(room) < size:
            room = np.empty(size * 5 // 4, dtype=np.int32)
            if len(room) <= _MOST_KEPT:
                self._own.room = room
        return room


def random_hash_keys() -> NDArray[Any]:
    """The keys of a hash that nobody can foresee."""
    # As numpy.random would, whose import takes longer than learning a small table.
    secret = np.frombuffer(bytearray(os.urandom(32)), dtype=np.uint64)
    secret[1:3] |= np.uint64(1)
    secret[3] >>= np.uint64(3)
    return secret


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


class CharacterClass:
    """For each code point, whether the regular expression's class of these members holds it.

    1 for a member, 0 for others; with ``pairs``, 2 for members that make pairs of characters. The
    engine is asked for those that texts hold, and once for each.
    """

    def __init__(self, members: str, pairs: bool = False):
        self._members, self._pairs, self._turn = members, pairs, Lock()
        self._table = np.zeros(0x110000, dtype=np.uint8)
        self._known = np.zeros(0x110000 >> _BLOCK_BITS, dtype=np.bool_)
        self._read = 0

    def of(self, text: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The class, right for the code points of a text of UTF-8."""
        highest = int(text.max(initial=0))
        # Lead bytes tell how far code points reach.
        size = 0x100 if highest < 0x80 else 0x10000 if highest < 0xF0 else 0x110000
        if self._known[:size >> _BLOCK_BITS].all():
            return self._table
        wanted = np.zeros_like(self._known)
        self._read += len(text)
        if self._read > _MUCH_TEXT:
            wanted[:size >> _BLOCK_BITS] = True
        else:
            points = np.frombuffer(text.tobytes().decode().encode("utf-32-le"), dtype="<u4")
            wanted[points >> _BLOCK_BITS] = True
        with self._turn:
            missing = np.flatnonzero(wanted & ~self._known)
            if len(missing):
                self._ask(missing)
                self._known[missing] = True
        return self._table

    def _ask(self, blocks: Ints) -> None:
        width = 1 << _BLOCK_BITS
        points = (blocks[:, None] * width + np.arange(width)).reshape(-1)
        assigned = np.zeros(len(points), dtype=np.bool_)
        for begin, end in _ASSIGNED:
            assigned |= (points >= begin) & (points < end)
        points = points[assigned]
        every = points.astype("<u4").tobytes().decode("utf-32-le")
        # One character for one: what is left as it was is a member. NUL is in no class.
        kept = pl.Series([every]).str.replace_all(rf"[^{self._members}]", "\0").item()
        self._table[points] = np.frombuffer(kept.encode("utf-32-le"), dtype="<u4") != 0
        if self._pairs:
            for first, last in RANGES:
                self._table[points[(points >= first) & (points <= last)]] *= 2


@lru_cache(maxsize=8)
def _character_class(members: str, pairs: bool) -> CharacterClass:
    return CharacterClass(members, pairs)
