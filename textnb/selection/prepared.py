"""Keeps what the folds of `Linear` are learned from, for trials that differ in C, l or power alone.

A trial has the same bits with it as without it: nothing that was learned is kept. So a solver
begins anew in each trial, and not from the weights of the trial before. Its weights would be others
within the tolerance, and a result would depend on the trials before it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.linear import PreparedRows

# Most bytes to keep.
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class PreparedFold:
    """The rows that a fold's model is learned from, and the columns that it has.

    Attributes
    ----------
    rows : PreparedRows
    kept : bool (n_terms,)
    """

    rows: PreparedRows
    kept: NDArray[np.bool_]


class PreparedFolds:
    """The folds that were used last, as far as they fit in memory."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._folds: OrderedDict[Hashable, PreparedFold] = OrderedDict()

    def get(self, key: Hashable, prepare: Callable[[], PreparedFold]) -> PreparedFold:
        """The fold of a key; it is prepared where it is not kept. Threads may call it at once."""
        fold = self._folds.get(key)
        if fold is None:
            fold = prepare()
        self._folds[key] = fold
        self._folds.move_to_end(key)
        return fold

    def drop_oldest(self) -> None:
        """Drop what was used least recently until the rest fits; call it from one thread alone."""
        while sum(_bytes(fold) for fold in self._folds.values()) > self._most_bytes:
            self._folds.popitem(last=False)


def _bytes(fold: PreparedFold) -> int:
    return fold.rows.nbytes + fold.kept.nbytes
