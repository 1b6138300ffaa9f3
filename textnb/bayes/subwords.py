"""Parts of terms: the n-grams of characters within each word, with its ends marked.

>>> subwords(["cat", "cats", "a cat"], 3, 3).toarray().tolist()  # <ca, cat
[[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_START, _END = "<", ">"


def subwords(terms: Sequence[str], shortest: int, longest: int) -> sp.csr_array:
    """The parts that two terms or more have.

    Parameters
    ----------
    terms : sequence of str
        One with a space is an n-gram of words, and has no parts: its words have them.
    shortest, longest : int
        Characters of a part, with the marks of the word's ends.

    Returns
    -------
    csr_array of float64 (n_terms, n_parts)
        1 / sqrt(number of lengths) if a term has a part, so that parts of several lengths weigh
        about as much as those of one. Parts are sorted by length, then by characters.
    """
    words = np.array([place for place, term in enumerate(terms) if " " not in term], np.int64)
    padded = [f"{_START}{terms[place]}{_END}" for place in words.tolist()]
    characters = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = np.array([len(word) for word in padded], dtype=np.int64)
    word = np.repeat(words, sizes)
    remaining = np.repeat(np.cumsum(sizes), sizes) - np.arange(len(characters))
    # For each character, the rank of the part that begins there among all parts of that length. The
    # length grows by one character at a time.
    rank = np.unique(characters, return_inverse=True)[1].astype(np.int64)
    single, n_single = rank, int(rank.max(initial=-1)) + 1
    rows: list[NDArray[np.int64]] = []
    columns: list[NDArray[np.int64]] = []
    n_parts = 0
    for length in range(2, longest + 1):
        fits = np.flatnonzero(remaining >= length)
        longer_rank = np.zeros_like(rank)
        longer_rank[fits] = np.unique(
            rank[fits] * n_single + single[fits + length - 1], return_inverse=True)[1]
        rank = longer_rank
        if length >= shortest and len(fits):
            rows.append(word[fits])
            columns.append(rank[fits] + n_parts)
            n_parts += int(rank[fits].max()) + 1
    if not rows:
        return sp.csr_array((len(terms), 0))
    entries = np.concatenate(rows), np.concatenate(columns)
    counts = sp.csr_array(
        (np.ones(len(entries[0])), entries), shape=(len(terms), n_parts))
    # A part that a word has twice counts once.
    counts.data[:] = (longest - shortest + 1) ** -0.5
    shared = np.bincount(counts.indices, minlength=n_parts) > 1
    return sp.csr_array(counts[:, np.flatnonzero(shared)])
