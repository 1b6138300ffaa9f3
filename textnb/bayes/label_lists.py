"""Which rows have which labels, where a row may have any number of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.class_weight import class_weights, weight_of_label
from textnb.bayes.counts import Counts
from textnb.bayes.forms import Floats

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

    def class_weights(self, class_weight: Any, weight: Floats | None) -> Floats | None:
        """What rows without and with each label count for: float64 (n_labels, 2), or None."""
        if class_weight is None:
            return None
        of_row = np.ones(self.n_rows) if weight is None else weight
        own, both, sides = self.sums(of_row), of_row.sum(), np.array([False, True])
        return np.array([class_weights(
            weight_of_label(class_weight, self.classes, k), sides, np.array([both - own[k], own[k]])
        ) for k in range(len(self.classes))])

    def of_rows(self, chosen: NDArray[np.bool_]) -> LabelLists:
        """The labels of some rows, among the same classes."""
        inside = chosen[self.rows]
        place = np.cumsum(chosen) - 1
        return replace(self, rows=place[self.rows[inside]], codes=self.codes[inside],
                       n_rows=int(chosen.sum()))

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which rows have which labels: bool (n_rows, n_labels)."""
        mask = np.zeros((self.n_rows, len(self.classes)), dtype=np.bool_)
        mask[self.rows, self.codes] = True
        return mask

    def statistics(self, counts: Any, weight: Floats | None = None) -> Counts:
        """Each label's counts and those of all rows, times the weights of the rows.

        Parameters
        ----------
        counts : csr_array (n_rows, n_terms)
        weight : float64 (n_rows,), optional
        """
        # SciPy is imported where rows are learned from.
        import scipy.sparse as sp

        # All rows come first, as a label of its own.
        codes = np.append(np.zeros(self.n_rows, dtype=np.int64), self.codes + 1)
        rows = np.append(np.arange(self.n_rows), self.rows)
        each = np.ones(self.n_rows, dtype=np.int64) if weight is None else weight
        membership = sp.csr_array((each[rows], (codes, rows)),
                                  shape=(len(self.classes) + 1, self.n_rows))
        # In the order of the rows, so that what all rows of a label hold has the sum of the label.
        of_rows = membership @ np.ones(self.n_rows, dtype=each.dtype)
        sums = sp.csr_array(membership @ counts)
        return Counts.from_table(self.classes, of_rows[1:], sums[1:], of_rows[0].item(),
                               sums[[0]].toarray()[0])

    def document_statistics(
        self, counts: Any, weight: Floats | None = None
    ) -> Counts:
        """How many of each label's rows hold each term: csr_array (n_rows, n_terms), no zeros."""
        if weight is not None:
            held = counts.copy()
            held.data = np.ones(len(held.data))
            return self.statistics(held, weight)
        held = np.empty((len(self.classes), counts.shape[1]), dtype=np.int64)
        for k in range(len(self.classes)):
            held[k] = np.bincount(counts[self.has(k)].indices, minlength=counts.shape[1])
        return Counts.from_table(self.classes, self.sizes, held, self.n_rows, np.bincount(
            counts.indices, minlength=counts.shape[1]))
