"""Classes of characters, as the engine of regular expressions knows them, for the kernel."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.text.characters import EMOJI, LETTER, LETTER_OR_NUMBER, UNSPACED_RANGES

Ints = NDArray[np.int64]
# Ranges that hold all assigned characters. Between them are surrogates, and planes without any.
_ASSIGNED = ((0, 0xD800), (0xE000, 0x40000), (0xE0000, 0xE1000))
# The engine classifies blocks of 256 code points when texts need them. After this number of bytes,
# it classifies all code points up to the highest plane of a text, in about 30 ms.
_MUCH_TEXT, _BLOCK_BITS = 1 << 21, 8


class CharacterClass:
    """Whether each code point is a member of a class of the regular expressions.

    1 for a member, 0 for others; with ``pairs``, 2 for members that make pairs of characters. With
    ``with_kinds``, in addition the bits that `textnb.text.native.spans.words` reads for the tokens
    of `WordsAndKinds`. The engine classifies a code point once, when a text first holds it.
    """

    def __init__(self, members: str, pairs: bool = False, with_kinds: bool = False):
        self._members, self._pairs, self._with_kinds = members, pairs, with_kinds
        self._lock = Lock()
        self._table = np.zeros(0x110000, dtype=np.uint8)
        self._classified = np.zeros(0x110000 >> _BLOCK_BITS, dtype=np.bool_)
        self._bytes_read = 0

    def of(self, text: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The class's number of each code point, complete for those of this text in UTF-8."""
        largest_byte = int(text.max(initial=0))
        # A character's first byte bounds its code point.
        size = 0x100 if largest_byte < 0x80 else 0x10000 if largest_byte < 0xF0 else 0x110000
        if self._classified[:size >> _BLOCK_BITS].all():
            return self._table
        needed = np.zeros_like(self._classified)
        self._bytes_read += len(text)
        if self._bytes_read > _MUCH_TEXT:
            needed[:size >> _BLOCK_BITS] = True
        else:
            points = np.frombuffer(text.tobytes().decode().encode("utf-32-le"), dtype="<u4")
            needed[points >> _BLOCK_BITS] = True
        with self._lock:
            missing = np.flatnonzero(needed & ~self._classified)
            if len(missing):
                self._classify(missing)
                self._classified[missing] = True
        return self._table

    def _classify(self, blocks: Ints) -> None:
        width = 1 << _BLOCK_BITS
        points = (blocks[:, None] * width + np.arange(width)).reshape(-1)
        assigned = np.zeros(len(points), dtype=np.bool_)
        for begin, end in _ASSIGNED:
            assigned |= (points >= begin) & (points < end)
        points = points[assigned]
        bits = _are_members(points, f"[{self._members}]").astype(np.uint8)
        if self._pairs:
            for first, last in UNSPACED_RANGES:
                bits[(points >= first) & (points <= last)] *= 2
        if self._with_kinds:
            for bit, pattern in ((4, LETTER), (8, LETTER_OR_NUMBER), (16, EMOJI)):
                bits |= bit * _are_members(points, pattern).astype(np.uint8)
        self._table[points] = bits


def _are_members(points: Ints, pattern: str) -> NDArray[np.bool_]:
    characters = points.astype("<u4").tobytes().decode("utf-32-le")
    # Every other character becomes NUL, which is in no class. So unchanged characters are members.
    replaced = pl.Series([characters]).str.replace_all(f"[^{pattern}]", "\0").item()
    members: NDArray[np.bool_] = np.frombuffer(replaced.encode("utf-32-le"), dtype="<u4") != 0
    return members


@lru_cache(maxsize=8)
def character_class(members: str, pairs: bool, with_kinds: bool) -> CharacterClass:
    """The class of these members, which all tables of terms in a process share."""
    return CharacterClass(members, pairs, with_kinds)
