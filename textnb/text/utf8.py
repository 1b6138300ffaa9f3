"""Converts strings to an array of their UTF-8 bytes (a pool) and back, and compares and sorts them.

Strings in a pool are compared seven bytes at a time, by NumPy alone, because a filter that judges
one message does not import Polars.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

Ints = NDArray[np.int64]
# The number of a string's bytes in a key; the key's eighth byte is the length.
_KEY_BYTES = 7
# Python sorts strings whose first bytes, more than this number of them, are equal.
_MAX_EQUAL_BYTES = 112


def begins_of(ends: Ints) -> Ints:
    """The begins of strings that follow each other, from their ends."""
    begins = np.zeros_like(ends)
    begins[1:] = ends[:-1]
    return begins


def _eight_bytes_at(pool: NDArray[np.uint8], last: int) -> NDArray[Any]:
    """For each place up to ``last``, the eight bytes from there as a big-endian number.

    Behind the end of the pool there are zeros.
    """
    if len(pool) < last + 8:
        pool = np.append(pool, np.zeros(8, np.uint8))
    # A stride of one byte: the numbers overlap.
    return np.ndarray(len(pool) - 7, dtype=">u8", buffer=pool, strides=(1,))


def _keys_of(eight_bytes: NDArray[Any], begins: Ints, ends: Ints) -> NDArray[np.uint64]:
    """A key of each string: its first seven bytes, then its length, or 8 if it is longer.

    Keys have the order of the strings. Equal keys mean equal strings, or strings that are longer
    and agree in their first seven bytes.
    """
    lengths = ends - begins
    unused_bits = (56 - 8 * np.minimum(lengths, _KEY_BYTES)).astype(np.uint64)
    keys: NDArray[np.uint64] = eight_bytes[begins].astype(np.uint64)
    # Remove the eighth byte and the bytes behind a short string's end, then append the length.
    keys >>= np.uint64(8)
    keys >>= unused_bits
    keys <<= unused_bits
    keys <<= np.uint64(8)
    keys |= np.minimum(lengths, _KEY_BYTES + 1).astype(np.uint64)
    return keys


def is_ascending(pool: NDArray[np.uint8], ends: Ints) -> bool:
    """Whether each string is greater than the one before it, by its bytes.

    Examples
    --------
    >>> pool = np.frombuffer(b"abbc", np.uint8)
    >>> is_ascending(pool, np.array([1, 2, 4])), is_ascending(pool, np.array([1, 2, 3, 4]))
    (True, False)
    """
    eight_bytes = _eight_bytes_at(pool, len(pool))
    begins, next_begins = begins_of(ends)[:-1], begins_of(ends)[1:]
    ends, next_ends = ends[:-1], ends[1:]
    while len(begins):
        keys = _keys_of(eight_bytes, begins, ends)
        next_keys = _keys_of(eight_bytes, next_begins, next_ends)
        if not (keys <= next_keys).all():
            return False
        tied = keys == next_keys
        if (ends[tied] - begins[tied] <= _KEY_BYTES).any():
            return False
        begins, next_begins = begins[tied] + _KEY_BYTES, next_begins[tied] + _KEY_BYTES
        ends, next_ends = ends[tied], next_ends[tied]
    return True


def bytes_of(strings: pl.Series) -> tuple[NDArray[np.uint8], Ints]:
    """The UTF-8 bytes of strings without nulls, one after the other, and the end of each."""
    import polars as pl

    lists = strings.cast(pl.Binary).cast(pl.List(pl.UInt8))
    ends = np.cumsum(lists.list.len().to_numpy(), dtype=np.int64)
    return lists.explode(empty_as_null=False, keep_nulls=False).to_numpy(), ends


def strings_of(pool: NDArray[np.uint8], ends: Ints) -> pl.Series:
    """The inverse of `bytes_of`."""
    import polars as pl

    # An ASCII character that is in no string.
    separator = next((byte for byte in range(128) if not (pool == byte).any()), None)
    if separator is None or not len(ends):
        all_bytes, bounds = pool.tobytes(), [0, *ends.tolist()]
        return pl.Series([all_bytes[begin:end] for begin, end in pairwise(bounds)],
                         dtype=pl.Binary).cast(pl.String)
    # Splitting one string at separators is much faster than making a Python object per string.
    joined = np.empty(len(pool) + len(ends) - 1, dtype=np.uint8)
    places = ends[:-1] + np.arange(len(ends) - 1)
    is_content = np.ones(len(joined), dtype=np.bool_)
    is_content[places] = False
    joined[is_content] = pool
    joined[places] = separator
    # The cast checks that the bytes are UTF-8.
    text = pl.Series([joined.tobytes()], dtype=pl.Binary).cast(pl.String)
    return text.str.split(chr(separator)).explode()


def byte_order(pool: NDArray[np.uint8], begins: Ints, ends: Ints) -> Ints:
    """The indices of the strings of a pool, which must all differ, in the order of their bytes.

    Strings are sorted by their keys; those with equal keys, by the keys of what follows the first
    seven bytes, and so on. This is many times faster than comparing strings.

    Examples
    --------
    >>> byte_order(np.frombuffer(b"bcaab", np.uint8), np.array([0, 2, 3]), np.array([2, 3, 5]))
    array([1, 2, 0])
    """
    eight_bytes = _eight_bytes_at(pool, int(ends.max(initial=0)))
    keys = _keys_of(eight_bytes, begins, ends)
    order = keys.argsort()
    # The places in `order` of strings that may still be in the wrong order, their keys, and the
    # number of bytes that are already compared.
    places, keys, skipped = np.arange(len(order)), keys[order], 0
    groups = np.zeros(len(order), dtype=np.int64)
    while True:
        # Strings that are equal so far are a group; their places are next to each other.
        is_first = np.append(
            True, (keys[1:] != keys[:-1]) | (groups[1:] != groups[:-1]))[:len(keys)]
        tied = ~is_first
        tied[:-1] |= ~is_first[1:]
        places, groups, skipped = places[tied], np.cumsum(is_first)[tied], skipped + _KEY_BYTES
        if not len(places):
            return order
        strings = order[places]
        if skipped > _MAX_EQUAL_BYTES:
            rests = [(group, pool[begins[string] + skipped:ends[string]].tobytes())
                     for group, string in zip(groups.tolist(), strings.tolist(), strict=True)]
            order[places] = strings[sorted(range(len(rests)), key=rests.__getitem__)]
            return order
        keys = _keys_of(eight_bytes, begins[strings] + skipped, ends[strings])
        sort = np.lexsort((keys, groups))
        order[places], keys = strings[sort], keys[sort]
