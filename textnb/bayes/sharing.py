"""Knowledge that terms share: weights of parts of words, folded into one weight per term.

    row x of terms -> [x, x U] -> solver -> weights (w, u) -> w + U u, one weight per term

U has a row for each term and a column for each part. A row's value for a part is the sum of the
values of the terms that have it, each without its inverse document frequency, times that of the
part and a factor. So terms with the same parts get similar weights, and those that are rare in the
training rows learn from others. The sum x·w + (x U)·u is x·(w + U u): a model that has shared
answers, explains and exports as one that has not.

>>> from textnb.bayes.features import IDENTITY
>>> parts = sp.csr_array([[1, 1, 0], [0, 1, 1]])
>>> sharing = Sharing(parts, 0.5)
>>> rows = sp.csr_array([[1, 0], [1, 1], [0, 2]])
>>> shared = sharing.of_rows(rows, IDENTITY)
>>> shared.factors.toarray().tolist()
[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
>>> shared.fold(np.array([[1.0], [0.0], [0.0], [2.0], [0.0]])).tolist()
[[2.0], [1.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.features import FeatureMap, Idf, count_columns, row_blocks, weigh_columns
from textnb.bayes.forms import Floats
from textnb.bayes.sparse_rows import SparseRows
from textnb.bayes.subwords import subwords

# Measured on questions, mail, news and reviews: the more words texts have, the less parts help;
# beside many, they only take time.
_OF_LENGTH, MAX_WEIGHT, _MAX_WORDS = 5.5, 1.6, 100


def without_names(terms: Sequence[str], prefixes: Sequence[str]) -> list[str]:
    """Terms without the names of columns before them, each of which ends with a colon.

    >>> without_names(["title:cat", "a:b"], ["title:", ""])
    ['cat', 'a:b']
    """
    named = tuple(filter(None, prefixes))
    return [term.partition(":")[2] if term.startswith(named) else term for term in terms]


def weight_of_length(terms: Sequence[str], holders: NDArray[Any], rows: float) -> float:
    """The weight of parts that suits the length of rows.

    It is 5.5 / sqrt(words of a row), at most 1.6; and 0 where rows have more than 100 words. Words
    are different ones, of which a model keeps how many rows hold each.

    >>> weight_of_length(["cat", "dog", "cat dog"], np.array([3, 3, 3]), 1), weight_of_length(
    ...     ["cat"], np.array([101]), 1)
    (1.6, 0.0)
    """
    is_word = np.fromiter((" " not in term for term in terms), np.bool_, len(terms))
    words = max(float(holders[is_word].sum()) / rows, 1.0)
    return min(_OF_LENGTH / words**0.5, MAX_WEIGHT) if words <= _MAX_WORDS else 0.0


@dataclass(frozen=True, eq=False)
class Sharing:
    """The parts of terms, and how much they weigh beside the terms themselves.

    Attributes
    ----------
    parts : csr_array of numbers (n_terms, n_parts)
        What a term has of each part.
    weight : float
        Above 0.
    """

    parts: sp.csr_array
    weight: float

    @classmethod
    def of_words(
        cls, terms: Sequence[str], lengths: tuple[int, int], holders: NDArray[Any],
        rows: float, sharing: float | None = None, prefixes: Sequence[str] = (),
    ) -> Sharing | None:
        """The sharing of a classifier's settings; None if parts weigh nothing.

        Parameters
        ----------
        terms : sequence of str
        lengths : (int, int)
            Characters of the shortest and the longest parts.
        holders : (n_terms,)
            How many rows hold a term, or the sum of their weights.
        rows : float
            How many rows there are, or the sum of their weights.
        sharing : float, optional
            The weight of parts; by default, it is by the length of the rows.
        prefixes : sequence of str
            Names of columns before words, which are no parts of them; each ends with a colon.
        """
        weight = weight_of_length(terms, holders, rows) if sharing is None else sharing
        return cls(subwords(without_names(terms, prefixes), *lengths), weight) if weight else None

    def of_rows(
        self, counts: sp.csr_array, features: FeatureMap,
        chosen: NDArray[np.bool_] | None = None, weight: Floats | None = None,
    ) -> Shared:
        """The factors for rows to learn from, or for the chosen ones among them.

        The inverse document frequency of a part is that of rows which have a term with it.
        ``weight``, float64 (n_chosen,), is that of the rows, as in the frequencies of terms.
        """
        holders, n_rows = np.zeros(self.parts.shape[1], dtype=np.int64), 0
        frequency = np.zeros(self.parts.shape[1])
        for before, block in row_blocks(counts, chosen):
            has = sp.csr_array(block.to_csr() @ self.parts)
            holders += count_columns(has)
            n_rows = before + block.shape[0]
            if weight is not None:
                frequency += weigh_columns(has, weight[before:n_rows])
        factors = self.parts * self.weight
        idf = next((step.weights for step in features.steps if isinstance(step, Idf)), None)
        if idf is not None:
            of_parts = (Idf.smooth(holders, n_rows) if weight is None else
                        Idf.smooth(frequency, weight.sum())).weights
            factors = sp.csr_array(
                sp.diags_array(1.0 / idf) @ factors @ sp.diags_array(of_parts))
        return Shared(factors, holders)


@dataclass(frozen=True, eq=False)
class Shared:
    """Factors that make the values of parts of those of terms.

    Attributes
    ----------
    factors : csr_array of float64 (n_terms, n_parts)
    holders : int64 (n_parts,)
        How many of the rows have a part.
    """

    factors: sp.csr_array
    holders: NDArray[np.int64]

    def widen(self, rows: SparseRows) -> SparseRows:
        """Rows after the feature map, with the values of parts beside those of terms."""
        terms = rows.to_csr()
        wide = sp.csr_array(sp.hstack([terms, terms @ self.factors], format="csr"))
        wide.sort_indices()
        return SparseRows(wide.data, wide.indices, wide.indptr, wide.shape[1])

    def fold(self, weights: Floats) -> Floats:
        """One weight per term, of those of terms and parts: float64 (n_terms, n_classes)."""
        n_terms = self.factors.shape[0]
        folded: Floats = weights[:n_terms] + self.factors @ weights[n_terms:]
        return folded
