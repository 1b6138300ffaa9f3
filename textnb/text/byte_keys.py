"""Strings of bytes in one array, compared seven bytes at a time, by NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
# The number of bytes in a key.
KEY_BYTES = 7


def begins_of(ends: Ints) -> Ints:
    """The begin of each string, from the ends of strings that follow each other."""
    begins = np.zeros_like(ends)
    begins[1:] = ends[:-1]
    return begins


def eights_of(pool: NDArray[np.uint8], last: int) -> NDArray[Any]:
    """The eight bytes from each place up to the last, as a number, with zeros after the end."""
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
