"""Strings as an array of their UTF-8 bytes, and back; compared and sorted there.

Spans of bytes are compared seven bytes at a time. NumPy alone does it: what a filter of one message
reads needs no Polars.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

Ints = NDArray[np.int64]
# The number of bytes in a key.
KEY_BYTES = 7
# Strings that agree in more bytes are compared one by one.
_MAX_SKIPPED = 112


def begins_of(ends: Ints) -> Ints:
    """The begin of each string, from the ends of strings that follow each other."""
    begins = np.zeros_like(ends)
    begins[1:] = ends[:-1]
    return begins


def eights_of(pool: NDArray[np.uint8], last: int) -> NDArray[Any]:
    """The eight bytes from each place up to ``last``, as a number; zeros follow the pool's end."""
    if len(pool) < last + 8:
        pool = np.append(pool, np.zeros(8, np.uint8))
    # A number may begin at any byte.
    return np.ndarray(len(pool) - 7, dtype=">u8", buffer=pool, strides=(1,))


def keys_of(eights: NDArray[Any], begins: Ints, ends: Ints) -> NDArray[np.uint64]:
    """A key of each span of bytes: its first seven bytes, then its length, or 8 if it is longer.

    Keys are in the order of the spans; equal keys are those of equal spans, or of longer ones that
    agree in seven bytes.
    """
    left = ends - begins
    unused = (56 - 8 * np.minimum(left, KEY_BYTES)).astype(np.uint64)
    keys: NDArray[np.uint64] = eights[begins].astype(np.uint64)
    keys >>= np.uint64(8)
    keys >>= unused
    keys <<= unused
    keys <<= np.uint64(8)
    keys |= np.minimum(left, KEY_BYTES + 1).astype(np.uint64)
    return keys


def is_ascending(pool: NDArray[np.uint8], ends: Ints) -> bool:
    """Whether each string is greater than the one before it, by its bytes.

    Examples
    --------
    >>> pool = np.frombuffer(b"abbc", np.uint8)
    >>> is_ascending(pool, np.array([1, 2, 4])), is_ascending(pool, np.array([1, 2, 3, 4]))
    (True, False)
    """
    eights = eights_of(pool, len(pool))
    first, second = begins_of(ends)[:-1], begins_of(ends)[1:]
    end, other_end = ends[:-1], ends[1:]
    while len(first):
        keys, others = keys_of(eights, first, end), keys_of(eights, second, other_end)
        if not (keys <= others).all():
            return False
        tied = keys == others
        if (end[tied] - first[tied] <= KEY_BYTES).any():
            return False
        first, second = first[tied] + KEY_BYTES, second[tied] + KEY_BYTES
        end, other_end = end[tied], other_end[tied]
    return True


def bytes_of(strings: pl.Series) -> tuple[NDArray[np.uint8], Ints]:
    """The UTF-8 bytes of strings without nulls, one after the other, and the end of each."""
    import polars as pl

    listed = strings.cast(pl.Binary).cast(pl.List(pl.UInt8))
    ends = np.cumsum(listed.list.len().to_numpy(), dtype=np.int64)
    whole = listed.explode(empty_as_null=False, keep_nulls=False)
    return whole.to_numpy(), ends


def strings_of(pool: NDArray[np.uint8], ends: Ints) -> pl.Series:
    """The inverse of `bytes_of`."""
    import polars as pl

    # A character that no string holds.
    mark = next((byte for byte in range(128) if not (pool == byte).any()), None)
    if mark is None or not len(ends):
        whole, bounds = pool.tobytes(), [0, *ends.tolist()]
        return pl.Series([whole[a:b] for a, b in pairwise(bounds)],
                         dtype=pl.Binary).cast(pl.String)
    # Splitting a single string at marks is much faster than making a Python object of each.
    joined = np.empty(len(pool) + len(ends) - 1, dtype=np.uint8)
    marks = ends[:-1] + np.arange(len(ends) - 1)
    is_content = np.ones(len(joined), dtype=np.bool_)
    is_content[marks] = False
    joined[is_content] = pool
    joined[marks] = mark
    # The cast checks that it is UTF-8.
    text = pl.Series([joined.tobytes()], dtype=pl.Binary).cast(pl.String)
    return text.str.split(chr(mark)).explode()


def byte_order(pool: NDArray[np.uint8], begins: Ints, ends: Ints) -> Ints:
    """The places of different spans of bytes, in the order of their bytes.

    They are sorted by seven bytes and the rest of the length, and those that agree in these by the
    next seven. This is many times faster than comparing strings.

    Examples
    --------
    >>> byte_order(np.frombuffer(b"bcaab", np.uint8), np.array([0, 2, 3]), np.array([2, 3, 5]))
    array([1, 2, 0])
    """
    eights = eights_of(pool, int(ends.max(initial=0)))

    def keys(chosen: Ints, skipped: int) -> NDArray[np.uint64]:
        return keys_of(eights, begins[chosen] + skipped, ends[chosen])

    key = keys(np.arange(len(begins)), 0)
    order = key.argsort()
    places, key, skipped = np.arange(len(order)), key[order], 0
    group = np.zeros(len(order), dtype=np.int64)
    while True:
        # Spans that are equal so far are a group; their places are next to each other.
        first = np.append(True, (key[1:] != key[:-1]) | (group[1:] != group[:-1]))[:len(key)]
        tied = ~first
        tied[:-1] |= ~first[1:]
        places, group, skipped = places[tied], np.cumsum(first)[tied], skipped + KEY_BYTES
        if not len(places):
            return order
        chosen = order[places]
        if skipped > _MAX_SKIPPED:
            rests = [(number, pool[begins[span] + skipped:ends[span]].tobytes())
                     for number, span in zip(group.tolist(), chosen.tolist(), strict=True)]
            order[places] = chosen[sorted(range(len(rests)), key=rests.__getitem__)]
            return order
        key = keys(chosen, skipped)
        sort = np.lexsort((key, group))
        order[places], key = chosen[sort], key[sort]
