"""A search for sets that share most of their elements, without comparing all pairs.

The elements of all sets are put in one order, rarest first. Two sets with a Jaccard similarity of
at least t then share an element among the first few of each, its prefix [1]_: a sparse product of
prefixes, block by block, gives the pairs that may be similar. Each pair is then compared in full:
every reported pair is similar, and no similar set is missed.

References
----------
.. [1] R. J. Bayardo, Y. Ma, R. Srikant (2007). Scaling up all pairs similarity search. WWW:
   section 3 (prefixes of rare elements).
.. [2] C. Xiao, W. Wang, X. Lin, J. X. Yu (2008). Efficient similarity joins for near duplicate
   detection. WWW: lemma 1 (shorter prefixes for the smaller set).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

# Only the search for near-duplicates needs SciPy.
if TYPE_CHECKING:
    import scipy.sparse as sp

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# In each round, a set is compared with this many others that share an element: with 8 in the first
# round, and in each later round with four times as many, up to a maximum.
_FIRST_ROUND, _MAX_ROUND = 8, 1 << 16
# The maximum numbers of pairs, and of elements of pairs, in memory at a time.
_MAX_PAIRS, _MAX_ELEMENTS = 1 << 20, 1 << 22
# The maximum rounding error of a product.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of elements. Elements that only one set has are counted but not stored.

    Attributes
    ----------
    sizes : int64 (n_sets,)
        The number of elements of each set, stored or not.
    cells : csr_array (n_sets, n_elements)
        1 if a set has an element; the rarest element is the first column.
    """

    sizes: Ints
    cells: sp.csr_array

    def __len__(self) -> int:
        return len(self.sizes)

    def prefixes(self, share: float) -> sp.csr_array:
        """The rarest elements of each set: any ``share`` of its elements contains one of these."""
        n_stored = np.diff(self.cells.indptr)
        # The place of each element in its set, after the elements that only this set has.
        place = np.arange(self.cells.nnz) - np.repeat(
            self.cells.indptr[:-1] - (self.sizes - n_stored), n_stored)
        last = self.sizes - np.ceil(share * self.sizes - _ROUNDING)
        return _select(self.cells, place <= np.repeat(last, n_stored))


def shingles(lengths: Ints, codes: Ints, width: int) -> Sets:
    """Make a set of each sequence: of its runs of ``width`` codes. A shorter sequence is one run.

    Parameters
    ----------
    lengths : int64 (n_sequences,)
        The lengths of the sequences, 1 or more.
    codes : int64 (sum of lengths,)
        The codes of all sequences, one after the other; 0 or more.

    Examples
    --------
    >>> sets = shingles(np.array([3, 3, 1]), np.array([0, 1, 2, 0, 1, 1, 0]), 2)
    >>> sets.sizes.tolist(), sets.cells.toarray().tolist()
    ([2, 2, 1], [[1], [1], [0]])
    """
    if not len(lengths):
        return _sets(lengths, codes)
    # base - 1 pads shorter sequences.
    base = int(codes.max()) + 2
    padded_lengths = np.maximum(lengths, width)
    padded = np.full(padded_lengths.sum(), base - 1, dtype=np.int64)
    padded[_ranges(np.cumsum(padded_lengths) - padded_lengths, lengths)] = codes
    n_runs = padded_lengths - width + 1
    starts = _ranges(np.cumsum(padded_lengths) - padded_lengths, n_runs)
    # The codes of a run are the digits of its key, in this base. Keys that would be too large for
    # int64 are replaced by their ranks, from 0 to bound - 1.
    keys, bound = padded[starts], base
    for ahead in range(1, width):
        if bound > 2**62 // base:
            distinct, keys = np.unique(keys, return_inverse=True)
            bound = len(distinct)
        keys = keys * base
        keys += padded[starts + ahead]
        bound *= base
    del padded, starts
    return _sets(n_runs, keys)


def _sets(counts: Ints, keys: Ints) -> Sets:
    """Make sets of consecutive keys, ``counts`` keys each; some keys of a set may be equal."""
    import scipy.sparse as sp

    owners = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    order = np.argsort(keys)
    # Whether each of the sorted keys is the first of those equal to it.
    is_first = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[order[1:]], keys[order[:-1]], out=is_first[1:])
    # Most runs of words occur once in all texts. They are only counted.
    is_repeated = np.diff(np.flatnonzero(is_first), append=len(keys)) > 1
    is_stored = is_repeated[np.cumsum(is_first) - 1]
    owners, ids = owners[order[is_stored]], np.cumsum(is_first[is_stored]) - 1
    # The number of keys that occur once. Below, the repeated ones are added.
    sizes = counts - np.bincount(owners, minlength=len(counts))
    cells = sp.csr_array((np.ones(len(ids), dtype=np.int32), (owners, ids)),
                         shape=(len(counts), int(is_repeated.sum())))
    # Equal keys of one set were added up.
    cells.data[:] = 1
    sizes += np.diff(cells.indptr)
    # Elements are left out here if their equal keys are all of one set.
    n_holders = np.bincount(cells.indices, minlength=cells.shape[1])
    by_rarity = np.argsort(n_holders, kind="stable")
    cells = cells[:, by_rarity[np.searchsorted(n_holders[by_rarity], 2):]]
    cells.sort_indices()
    return Sets(sizes, cells)


def similar_before(sets: Sets, limits: Ints, near: float) -> tuple[Ints, Floats]:
    """Find for each set a similar one among the sets before a limit.

    Parameters
    ----------
    sets : Sets
    limits : int64 (n_sets,)
        Set i is compared with the sets before number ``limits[i]``, which is at most i.
    near : float
        Minimum Jaccard similarity, in (0, 1].

    Returns
    -------
    partners : int64 (n_sets,)
        The most similar of the sets that were compared, the first on a tie; -1 if none is similar
        enough. If many sets share an element, they are compared in rounds, and a set's search ends
        with the round in which it finds a similar one.
    similarities : float64 (n_sets,)
    """
    partners, similarities = np.full(len(sets), -1, dtype=np.int64), np.zeros(len(sets))
    # Two similar sets share an element in the long prefix of the larger set and the short prefix of
    # the smaller one [2]_. In the first search the other set is smaller or equal, then larger. The
    # holders of an element are the other sets that have it in their prefix.
    long, short = sets.prefixes(near), sets.prefixes(2 * near / (1 + near))
    searches = [(long, short.tocsc()), (short, long.tocsc())]
    begin, n_others = 0, _FIRST_ROUND
    while any(begin < np.diff(holders.indptr).max(initial=0) for _, holders in searches):
        unmatched = np.flatnonzero((partners < 0) & (limits > 0))
        for other_is_larger, (own, holders) in enumerate(searches):
            for left, right in _pairs(own[unmatched], _holders(holders, begin, begin + n_others)):
                left = unmatched[left]
                size, other = sets.sizes[left], sets.sizes[right]
                may_fit = (right < limits[left]) & ((other > size) == other_is_larger) & (
                    np.minimum(size, other) >= near * np.maximum(size, other) - _ROUNDING)
                _note_best(sets, left[may_fit], right[may_fit], near, partners, similarities)
        begin, n_others = begin + n_others, min(4 * n_others, _MAX_ROUND)
    return partners, similarities


def _holders(holders: sp.csc_array, begin: int, end: int) -> sp.csr_array:
    """The holders of each element, from ``begin`` to ``end``: a matrix (n_elements, n_sets)."""
    n_holders = np.diff(holders.indptr)
    place = np.arange(holders.nnz) - np.repeat(holders.indptr[:-1], n_holders)
    return _select(holders, (place >= begin) & (place < end)).T


def _pairs(own: sp.csr_array, holders: sp.csr_array) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of a row of ``own`` and a set that shares an element with it, some rows at a time."""
    for block in _blocks(own @ np.diff(holders.indptr), _MAX_PAIRS):
        shared = (own[block] @ holders).tocoo()
        yield shared.row + block.start, shared.col


def _note_best(
    sets: Sets, left: Ints, right: Ints, near: float, partners: Ints, best: Floats
) -> None:
    """Note for each set its most similar partner so far, and their similarity in ``best``."""
    similarity = _jaccard(sets, left, right)
    is_better = (similarity >= near) & ((similarity > best[left]) | (
        (similarity == best[left]) & (right < partners[left])))
    left, right, similarity = left[is_better], right[is_better], similarity[is_better]
    # NumPy keeps the last of several assignments: the most similar set, and the first on a tie.
    order = np.lexsort((-right, similarity))
    partners[left[order]], best[left[order]] = right[order], similarity[order]


def _jaccard(sets: Sets, left: Ints, right: Ints) -> Floats:
    """The Jaccard similarity of each pair: the size of the intersection / the size of the union."""
    n_stored = np.diff(sets.cells.indptr)
    n_common = np.zeros(len(left), dtype=np.int64)
    for block in _blocks(n_stored[left] + n_stored[right], _MAX_ELEMENTS):
        n_common[block] = sets.cells[left[block]].multiply(sets.cells[right[block]]).sum(axis=1)
    similarity: Floats = n_common / (sets.sizes[left] + sets.sizes[right] - n_common)
    return similarity


def _select(cells: sp.csr_array, mask: NDArray[np.bool_]) -> sp.csr_array:
    """The cells that a mask selects."""
    selected = cells.copy()
    selected.data = mask.astype(np.int32)
    selected.eliminate_zeros()
    return selected


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """The numbers start, start + 1, ... of each range, one range after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def _blocks(amounts: Ints, max_sum: int) -> Iterator[slice]:
    """Slices whose amounts sum to at most ``max_sum``, or that hold a single item."""
    sums = np.cumsum(amounts)
    start = 0
    while start < len(amounts):
        sum_before = int(sums[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(sums, sum_before + max_sum, side="right")))
        yield slice(start, stop)
        start = stop
