"""A search for sets that share most of their elements, without comparing all pairs.

Elements are put in one order, rarest first. Two sets of Jaccard similarity t or more then share an
element among the first few of each. Only sets that share one there are compared, and each
comparison is exact: every reported pair is similar, and no similar set is missed.

References
----------
.. [1] R. J. Bayardo, Y. Ma, R. Srikant (2007). Scaling up all pairs similarity search. WWW:
   section 3 (prefixes of rare elements).
.. [2] C. Xiao, W. Wang, X. Lin, J. X. Yu (2008). Efficient similarity joins for near duplicate
   detection. WWW: lemma 1 (shorter prefixes for the smaller set) and section 3 (positions).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# A round compares a set with this many others that hold the same element: 8 at first, and four
# times as many in each later round.
_FIRST = 8
_WIDEST = 1 << 16
# How many pairs, and elements of pairs, are in memory at a time.
_PAIRS, _ELEMENTS = 1 << 20, 1 << 22
_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of elements. Elements that only one set has are counted, and not stored.

    Attributes
    ----------
    sizes : int64 (n_sets,)
        The sizes of the whole sets.
    starts : int64 (n_sets + 1,)
        Where the elements of each set begin.
    elements : int64 (n_elements,)
        The elements set by set, rarest first: their numbers are in the order of rarity.
    """

    sizes: Ints
    starts: Ints
    elements: Ints

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def owners(self) -> Ints:
        """The set of each element."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @property
    def positions(self) -> Ints:
        """The place of each element in its set, after the elements that only this set has."""
        alone = self.sizes - np.diff(self.starts)
        return np.arange(len(self.elements)) - (self.starts[:-1] - alone)[self.owners]


def shingles(lengths: Ints, codes: Ints, width: int) -> Sets:
    """Make each sequence the set of its runs of ``width`` codes; a shorter one is one run.

    Parameters
    ----------
    lengths : int64 (n_sequences,)
        1 or more.
    codes : int64 (sum of lengths,)
        From 0.

    Examples
    --------
    >>> sets = shingles(np.array([3, 3, 1]), np.array([0, 1, 2, 0, 1, 1, 0]), 2)
    >>> sets.sizes.tolist(), np.diff(sets.starts).tolist()
    ([2, 2, 1], [1, 1, 0])
    """
    if not len(lengths):
        return Sets(lengths, np.zeros(1, dtype=np.int64), lengths)
    base = int(codes.max()) + 2
    long = np.maximum(lengths, width)
    padded = np.full(long.sum(), base - 1, dtype=np.int64)
    padded[_ranges(np.cumsum(long) - long, lengths)] = codes
    runs = long - width + 1
    at = _ranges(np.cumsum(long) - long, runs)
    keys, bound = padded[at], base
    for ahead in range(1, width):
        if bound > 2**62 // base:
            distinct, keys = np.unique(keys, return_inverse=True)
            bound = len(distinct)
        keys = keys * base
        keys += padded[at + ahead]
        bound *= base
    del padded, at
    return _sets(runs, keys)


def _sets(counts: Ints, keys: Ints) -> Sets:
    """Make sets of keys, in which a key may be repeated."""
    owners = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    order = np.argsort(keys)
    new = _changes(keys[order])
    several = np.diff(np.flatnonzero(new), append=len(keys)) > 1
    # Most runs of words occur once in all texts: these are only counted.
    kept = several[np.cumsum(new) - 1]
    order, ids = order[kept], np.cumsum(new[kept]) - 1
    owner, width = owners[order].astype(np.int64), int(several.sum())
    sizes = counts - np.bincount(owner, minlength=len(counts))
    # Each pair of a set and an element is one number; sorted and without repeats, these are the
    # sets.
    cells = np.sort(owner * width + ids)
    cells = cells[_changes(cells)]
    owner, ids = np.divmod(cells, max(width, 1))
    sizes += np.bincount(owner, minlength=len(counts))
    holders = np.bincount(ids, minlength=width)
    shared = holders[ids] > 1
    owner, ids = owner[shared], ids[shared]
    rank = np.empty(width, dtype=np.int64)
    rank[np.argsort(holders, kind="stable")] = np.arange(width)
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=len(counts)), out=starts[1:])
    return Sets(sizes, starts, np.sort(owner * width + rank[ids]) % max(width, 1))


def _changes(ordered: Ints) -> NDArray[np.bool_]:
    """Mask of the first of each run of equal values in a sorted array."""
    new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


def similar_before(sets: Sets, limits: Ints, near: float) -> tuple[Ints, Floats]:
    """Find for each set a similar one among the sets before a limit.

    Parameters
    ----------
    sets : Sets
    limits : int64 (n_sets,)
        Set i is compared with the sets before number ``limits[i]``, itself not among them.
    near : float
        Least Jaccard similarity, in (0, 1].

    Returns
    -------
    partners : int64 (n_sets,)
        The most similar of the sets that were compared, the first on a tie; -1 where none is
        similar enough. Where many sets share an element, they are compared in rounds, and a set's
        search ends with the round in which it finds a similar one.
    similarities : float64 (n_sets,)
    """
    partners, best = np.full(len(sets), -1, dtype=np.int64), np.zeros(len(sets))
    searches = [_Search.of(sets, limits, near, larger) for larger in (False, True)]
    step = _FIRST
    while any(len(search.owners) for search in searches):
        for search in searches:
            for mine, others in search.candidates(step):
                _keep_best(sets, mine, others, near, partners, best)
        searches = [search.without(partners >= 0, step) for search in searches]
        step = min(4 * step, _WIDEST)
    return partners, best


@dataclass(frozen=True, eq=False)
class _Search:
    """A search for partners of sets, by the elements of their prefixes.

    ``listed`` holds the sets by element, and ``listed_at`` the place of the element in each. Each
    of the other arrays has an entry for an element of a set that searches: the set (``owners``),
    the place of the element in it (``positions``), and the part of ``listed`` that is still to
    compare (``begin``, ``end``).
    """

    sets: Sets
    near: float
    larger: bool
    listed: Ints
    listed_at: Ints
    owners: Ints
    positions: Ints
    begin: Ints
    end: Ints

    @classmethod
    def of(cls, sets: Sets, limits: Ints, near: float, larger: bool) -> _Search:
        """Prepare a search for larger partners, or for partners of at most the set's own size."""
        owners, positions = sets.owners, sets.positions
        sizes = sets.sizes[owners]
        # Two similar sets share an element of the larger one's long prefix and the smaller one's
        # short prefix [2]_.
        long = positions <= sizes - np.ceil(near * sizes - _SLACK)
        short = positions <= sizes - np.ceil(2 * near / (1 + near) * sizes - _SLACK)
        own = np.flatnonzero(short if larger else long)
        partners = np.flatnonzero(long if larger else short)
        total = len(sets)
        keys = sets.elements[partners] * total + owners[partners]
        order = np.argsort(keys)
        keys, first = keys[order], sets.elements[own] * total
        begin = np.searchsorted(keys, first)
        end = np.searchsorted(keys, first + limits[owners[own]])
        some = end > begin
        return cls(sets, near, larger, owners[partners][order], positions[partners][order],
                   owners[own][some], positions[own][some], begin[some], end[some])

    def candidates(self, step: int) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of sets that may be similar, from the next few sets of each element."""
        take = np.minimum(self.end - self.begin, step)
        for block in _blocks(take, _PAIRS):
            places = _ranges(self.begin[block], take[block])
            entries = np.repeat(np.arange(block.start, block.stop), take[block])
            mine, others = self.owners[entries], self.listed[places]
            size, other = self.sets.sizes[mine], self.sets.sizes[others]
            fits = (other > size) if self.larger else (other <= size)
            least = np.ceil(self.near / (1 + self.near) * (size + other) - _SLACK)
            # If this is the first element that both have, they share at most what follows it.
            rest = np.minimum(size - self.positions[entries], other - self.listed_at[places])
            keep = fits & (rest >= least)
            pairs = np.sort(mine[keep] * len(self.sets) + others[keep])
            yield np.divmod(pairs[_changes(pairs)], len(self.sets))

    def without(self, found: NDArray[np.bool_], step: int) -> _Search:
        """Continue the search after a round, without the sets that have found a partner."""
        begin = self.begin + np.minimum(self.end - self.begin, step)
        rest = (begin < self.end) & ~found[self.owners]
        return _Search(self.sets, self.near, self.larger, self.listed, self.listed_at,
                       self.owners[rest], self.positions[rest], begin[rest], self.end[rest])


def _keep_best(
    sets: Sets, mine: Ints, others: Ints, near: float, partners: Ints, best: Floats
) -> None:
    similarity = _jaccard(sets, mine, others)
    keep = similarity >= near
    mine, others, similarity = mine[keep], others[keep], similarity[keep]
    order = np.lexsort((others, -similarity, mine))
    mine, others, similarity = mine[order], others[order], similarity[order]
    first = _changes(mine)
    mine, others, similarity = mine[first], others[first], similarity[first]
    better = (similarity > best[mine]) | ((similarity == best[mine]) & (others < partners[mine]))
    partners[mine[better]], best[mine[better]] = others[better], similarity[better]


def _jaccard(sets: Sets, mine: Ints, others: Ints) -> Floats:
    """The Jaccard similarity of each pair: shared elements / elements of either set."""
    stored = np.diff(sets.starts)
    common = np.zeros(len(mine), dtype=np.int64)
    width = int(sets.elements.max()) + 1 if len(sets.elements) else 1
    for block in _blocks(stored[mine] + stored[others], _ELEMENTS):
        pair = np.arange(block.stop - block.start)
        cells = [np.repeat(pair, stored[side[block]]) * width
                 + sets.elements[_ranges(sets.starts[side[block]], stored[side[block]])]
                 for side in (mine, others)]
        both = np.sort(np.concatenate(cells))
        common[block] = np.bincount(both[1:][both[1:] == both[:-1]] // width, minlength=len(pair))
    similarity: Floats = common / (sets.sizes[mine] + sets.sizes[others] - common)
    return similarity


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """The numbers start, start + 1, ... of each range, one range after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def _blocks(amounts: Ints, most: int) -> Iterator[slice]:
    """Slices whose amounts sum to at most ``most``, or that hold a single item."""
    ends = np.cumsum(amounts)
    start = 0
    while start < len(amounts):
        spent = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, spent + most, side="right")))
        yield slice(start, stop)
        start = stop
