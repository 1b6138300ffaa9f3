"""Which rows have which labels, where a row may have any number of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.statistics import CountStatistics

Ints = NDArray[np.int64]
# A label whose best F1 on held-out rows is below this is given to no row that scores less than
# those: a low threshold would be noise (D. Lewis and others 2004, section 3.4: SCutFBR.1).
_FLOOR = 0.1


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


def best_threshold(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """The threshold above which a label is given, for the best F1 of held-out scores.

    Parameters
    ----------
    scores : float64 (n_rows,)
    positive : bool (n_rows,)
        Which rows have the label.

    Examples
    --------
    >>> best_threshold(np.array([3.0, 1.0, -1.0, -2.0]), np.array([True, False, True, False]))
    -1.5
    >>> best_threshold(np.array([1.0, -1.0]), np.array([False, False]))
    1.0
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    right = np.cumsum(positive[order])
    f1 = 2.0 * right / (np.arange(1, len(order) + 1) + max(int(positive.sum()), 1))
    # Rows of one score are given the label together.
    f1[:-1][ranked[:-1] == ranked[1:]] = 0.0
    last = int(f1.argmax())
    if f1[last] < _FLOOR:
        return float(ranked[0])
    if last + 1 == len(ranked):
        return float(ranked[last]) - 1.0
    return float(ranked[last] + ranked[last + 1]) / 2.0
