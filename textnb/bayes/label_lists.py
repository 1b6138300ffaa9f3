"""Which rows have which labels, where a row may have any number of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.statistics import CountStatistics

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelLists:
    """Labels of rows.

    Attributes
    ----------
    classes : (n_labels,)
        Sorted.
    rows, codes : int64 (n_pairs,)
        Pairs of a row and one of its labels.
    n_rows : int
    """

    classes: NDArray[Any]
    rows: Ints
    codes: Ints
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows

    def has(self, k: int) -> NDArray[np.bool_]:
        """Which rows have a label: bool (n_rows,)."""
        mask = np.zeros(self.n_rows, dtype=np.bool_)
        mask[self.rows[self.codes == k]] = True
        return mask

    @property
    def sizes(self) -> Ints:
        """The number of rows that have each label: int64 (n_labels,)."""
        return np.bincount(self.codes, minlength=len(self.classes))

    def sums(self, values: Floats) -> Floats:
        """The sum of the values of each label's rows: float64 (n_labels,)."""
        sums = np.bincount(self.codes, weights=values[self.rows], minlength=len(self.classes))
        return sums.astype(np.float64)

    def of_rows(self, chosen: NDArray[np.bool_]) -> LabelLists:
        """The labels of some rows, among the same classes."""
        inside = chosen[self.rows]
        place = np.cumsum(chosen) - 1
        return replace(self, rows=place[self.rows[inside]], codes=self.codes[inside],
                       n_rows=int(chosen.sum()))

    def document_statistics(self, counts: Any) -> CountStatistics:
        """How many of each label's rows hold each term: csr_array (n_rows, n_terms), no zeros."""
        held = np.empty((len(self.classes), counts.shape[1]), dtype=np.int64)
        for k in range(len(self.classes)):
            held[k] = np.bincount(counts[self.has(k)].indices, minlength=counts.shape[1])
        return CountStatistics(self.classes, self.sizes, held, self.n_rows, np.bincount(
            counts.indices, minlength=counts.shape[1]))
