"""Subwords of terms: the n-grams of characters within each word, with its ends marked.

>>> subword_matrix(["cat", "cats", "a cat"], 3, 3).toarray().tolist()  # of <ca and cat
[[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_START, _END = "<", ">"


def subword_matrix(terms: Sequence[str], shortest: int, longest: int) -> sp.csr_array:
    """The subwords that at least two terms have.

    Parameters
    ----------
    terms : sequence of str
        A term with a space is an n-gram of words, and has no subwords: its words have them.
    shortest, longest : int
        The number of characters of a subword, with the marks of the word's ends.

    Returns
    -------
    csr_array of float64 (n_terms, n_subwords)
        1 / sqrt(number of lengths) if a term has a subword, so that subwords of several lengths
        weigh about as much as subwords of one. They are sorted by length, then by characters.
    """
    word_terms = np.array([i for i, term in enumerate(terms) if " " not in term], np.int64)
    words = [f"{_START}{terms[i]}{_END}" for i in word_terms.tolist()]
    characters = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = np.array([len(word) for word in words], dtype=np.int64)
    # For each character, its term, and the number of characters from it to the end of the word.
    term_of_character = np.repeat(word_terms, sizes)
    remaining = np.repeat(np.cumsum(sizes), sizes) - np.arange(len(characters))
    # For each character, the rank of the subword that begins there among all subwords of that
    # length. A subword's rank follows from the rank of all its characters but the last, and from
    # the last one.
    rank = np.unique(characters, return_inverse=True)[1].astype(np.int64)
    character_rank, n_characters = rank, int(rank.max(initial=-1)) + 1
    rows: list[NDArray[np.int64]] = []
    columns: list[NDArray[np.int64]] = []
    n_subwords = 0
    for length in range(2, longest + 1):
        starts = np.flatnonzero(remaining >= length)
        longer_rank = np.zeros_like(rank)
        pairs = rank[starts] * n_characters + character_rank[starts + length - 1]
        longer_rank[starts] = np.unique(pairs, return_inverse=True)[1]
        rank = longer_rank
        if length >= shortest and len(starts):
            rows.append(term_of_character[starts])
            columns.append(rank[starts] + n_subwords)
            n_subwords += int(rank[starts].max()) + 1
    if not rows:
        return sp.csr_array((len(terms), 0))
    entries = np.concatenate(rows), np.concatenate(columns)
    counts = sp.csr_array((np.ones(len(entries[0])), entries), shape=(len(terms), n_subwords))
    # A subword that a word has twice counts once.
    counts.data[:] = (longest - shortest + 1) ** -0.5
    is_shared = np.bincount(counts.indices, minlength=n_subwords) > 1
    return sp.csr_array(counts[:, np.flatnonzero(is_shared)])
