"""What trials share: counts of terms, and the rows that the folds of `Linear` are learned from.

A trial has the same result, to the bit, with or without it: nothing learned is kept. So a solver
begins anew in each trial, and not from the weights of the trial before. Its weights would be others
within the tolerance, and a result would depend on the trials before it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.linear import PreparedRows

# The maximum number of bytes to keep in memory.
_MAX_BYTES = 1 << 30
Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class PreparedFold:
    """The rows that a fold's model is learned from, and the columns that it has.

    Attributes
    ----------
    rows : PreparedRows
    columns : bool (n_terms,)
    """

    rows: PreparedRows
    columns: NDArray[np.bool_]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.rows.nbytes + self.columns.nbytes


class Recent(Generic[Item]):
    """A cache of the items that were used last, of limited size.

    Parameters
    ----------
    size : callable
        The bytes of an item.
    """

    def __init__(self, size: Callable[[Item], int], max_bytes: int = _MAX_BYTES) -> None:
        self._size, self._max_bytes = size, max_bytes
        self._items: OrderedDict[Hashable, Item] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Item]) -> Item:
        """Return the item of a key, and make it if it is missing. Threads may call it at once."""
        item = self._items.get(key)
        if item is None:
            item = make()
        self._items[key] = item
        self._items.move_to_end(key)
        return item

    def drop_oldest(self) -> None:
        """Drop the least recently used items until the others fit, or one is left.

        Call it from one thread only.
        """
        while len(self._items) > 1 and sum(
                map(self._size, self._items.values())) > self._max_bytes:
            self._items.popitem(last=False)
