"""A bounded sample of the rows that a model has learned, from which its weights are refitted.

The margin of a row is the score of its class less the highest score of another class. A row that is
answered rightly by a large margin does not change a linear model: the optimum without it is the
same. So the sample has the rows of the lowest margins. A row whose label was corrected then stays
in the sample as long as the model is not sure of it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import LinearForm
from textnb.bayes.sparse_rows import SparseRows


@dataclass(frozen=True, eq=False)
class RowSample:
    """Learned rows, as terms and their counts, without texts.

    Attributes
    ----------
    max_rows : int
        The maximum number of rows.
    codes : int64 (n_rows,)
        The class of each row.
    rows : SparseRows (n_rows, n_terms)
        For terms that have weights, the counts that are not 0; each is 1 in a model of presence.
    """

    max_rows: int
    codes: NDArray[np.int64]
    rows: SparseRows

    @classmethod
    def of(
        cls, max_rows: int, rows: SparseRows, codes: NDArray[np.int64], form: LinearForm
    ) -> RowSample:
        """The rows of the lowest margins, by the scores of ``form``.

        Each class may fill an equal share of the sample. If a class has fewer rows, the others fill
        the rest.
        """
        if len(codes) <= max_rows:
            return cls(max_rows, codes, rows)
        scores, all_rows = form.scores(rows), np.arange(len(codes))
        own_scores = scores[all_rows, codes].copy()
        scores[all_rows, codes] = -np.inf
        # By margin, the lowest first.
        order = np.argsort(own_scores - scores.max(axis=1), kind="stable")
        rows_per_class = max_rows // len(form.classes)
        is_kept = np.zeros(len(codes), dtype=np.bool_)
        for k in range(len(form.classes)):
            is_kept[order[codes[order] == k][:rows_per_class]] = True
        # Fill the sample with the other rows of the lowest margins, of any class.
        is_kept[order[~is_kept[order]][:max_rows - int(is_kept.sum())]] = True
        return cls(max_rows, codes[is_kept], rows[is_kept])

    def without(self, rows: SparseRows, codes: NDArray[np.int64]) -> tuple[RowSample, int]:
        """The sample without ``rows``, each removed once, and how many of them it does not have."""
        positions = defaultdict(list)
        for position, key in enumerate(_row_keys(self.rows, self.codes)):
            positions[key].append(position)
        is_kept, n_missing = np.ones(len(self.codes), dtype=np.bool_), 0
        for key in _row_keys(rows, codes):
            if positions[key]:
                is_kept[positions[key].pop()] = False
            else:
                n_missing += 1
        return replace(self, codes=self.codes[is_kept], rows=self.rows[is_kept]), n_missing

    def with_columns(self, new_columns: NDArray[np.int64], n_terms: int) -> RowSample:
        """The same rows among other terms: column ``i`` becomes ``new_columns[i]``.

        ``new_columns`` must ascend, so that the terms of a row stay sorted.
        """
        rows = self.rows
        return replace(self, rows=SparseRows(
            rows.data, new_columns[rows.indices], rows.indptr, n_terms))


def _row_keys(rows: SparseRows, codes: NDArray[np.int64]) -> list[tuple[int, bytes, bytes]]:
    """A value for each row, equal for rows with the same class, terms and counts."""
    ends, columns, counts = (rows.indptr.tolist(), rows.indices.astype(np.int64),
                             rows.data.astype(np.int64))
    return [(code, columns[begin:end].tobytes(), counts[begin:end].tobytes())
            for code, (begin, end) in zip(codes.tolist(), pairwise(ends), strict=True)]
