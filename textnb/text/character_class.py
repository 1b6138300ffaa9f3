"""Tables of character classes for the compiled tokenizer, from Polars' regular expressions."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.text.characters import EMOJI, LETTER, LETTER_OR_NUMBER, UNSPACED_RANGES

Ints = NDArray[np.int64]
# All assigned characters are in these ranges. Between them are surrogates and empty planes.
_ASSIGNED = ((0, 0xD800), (0xE000, 0x40000), (0xE0000, 0xE1000))
# Code points are classified in blocks of 256 when texts need them. After `_MAX_BLOCKWISE_BYTES` of
# text, all that a text may need are classified at once, which takes about 30 ms.
_MAX_BLOCKWISE_BYTES, _BLOCK_BITS = 1 << 21, 8


class CharacterClass:
    """A table with a number for each code point: 1 for members of a character class, 0 for others.

    A block of code points is classified once, when a text first holds one of them.

    Parameters
    ----------
    members : str
        The inside of the class in a regular expression, such as ``\\p{L}_``.
    pairs : bool
        Whether members in scripts without spaces have a 2, because their runs become single
        characters and pairs of characters.
    with_kinds : bool
        Whether numbers also have a bit for letters (4), for letters and digits (8), and for emoji
        (16), to find the other kinds of tokens of `textnb.text.characters.KINDS`.
    """

    def __init__(self, members: str, pairs: bool = False, with_kinds: bool = False):
        self._members, self._pairs, self._with_kinds = members, pairs, with_kinds
        self._lock = Lock()
        self._table = np.zeros(0x110000, dtype=np.uint8)
        self._is_classified = np.zeros(0x110000 >> _BLOCK_BITS, dtype=np.bool_)
        self._bytes_read = 0

    def of(self, text: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The table, complete for the code points of this text in UTF-8."""
        largest_byte = int(text.max(initial=0))
        # In UTF-8, bytes below 0x80 are ASCII, and bytes from 0xF0 on begin points above 0xFFFF.
        n_points = 0x100 if largest_byte < 0x80 else 0x10000 if largest_byte < 0xF0 else 0x110000
        if self._is_classified[:n_points >> _BLOCK_BITS].all():
            return self._table
        is_needed = np.zeros_like(self._is_classified)
        self._bytes_read += len(text)
        if self._bytes_read > _MAX_BLOCKWISE_BYTES:
            is_needed[:n_points >> _BLOCK_BITS] = True
        else:
            points = np.frombuffer(text.tobytes().decode().encode("utf-32-le"), dtype="<u4")
            is_needed[points >> _BLOCK_BITS] = True
        with self._lock:
            missing = np.flatnonzero(is_needed & ~self._is_classified)
            if len(missing):
                self._classify(missing)
                self._is_classified[missing] = True
        return self._table

    def _classify(self, blocks: Ints) -> None:
        """Fill the table for these blocks, given by their numbers."""
        width = 1 << _BLOCK_BITS
        points = (blocks[:, None] * width + np.arange(width)).reshape(-1)
        is_assigned = np.zeros(len(points), dtype=np.bool_)
        for begin, end in _ASSIGNED:
            is_assigned |= (points >= begin) & (points < end)
        points = points[is_assigned]
        bits = _are_members(points, f"[{self._members}]").astype(np.uint8)
        if self._pairs:
            for first, last in UNSPACED_RANGES:
                bits[(points >= first) & (points <= last)] *= 2
        if self._with_kinds:
            for bit, pattern in ((4, LETTER), (8, LETTER_OR_NUMBER), (16, EMOJI)):
                bits |= bit * _are_members(points, pattern).astype(np.uint8)
        self._table[points] = bits


def _are_members(points: Ints, pattern: str) -> NDArray[np.bool_]:
    """Whether each code point is in a character class; ``pattern`` is the class or its inside."""
    characters = points.astype("<u4").tobytes().decode("utf-32-le")
    # Every character that is not a member becomes NUL, which is in no class.
    replaced = pl.Series([characters]).str.replace_all(f"[^{pattern}]", "\0").item()
    members: NDArray[np.bool_] = np.frombuffer(replaced.encode("utf-32-le"), dtype="<u4") != 0
    return members


@lru_cache(maxsize=8)
def character_class(members: str, pairs: bool, with_kinds: bool) -> CharacterClass:
    """The table of a class, which all tokenizers of a process with this class share."""
    return CharacterClass(members, pairs, with_kinds)
