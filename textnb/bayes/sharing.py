"""Knowledge that terms share: weights of parts and meanings, folded into one weight per term.

    row x of terms -> [x, x U] -> solver -> weights (w, u) -> w + U u, one weight per term

U has a row for each term, and a column for each part of words and each dimension of their vectors.
In the column of a part, a row's value is the sum of the values of the terms that have the part,
with the inverse document frequency of the part in place of theirs, times a factor. In the column of
a dimension, it is the sum of the terms' vectors times their values, times a factor. So terms with
the same parts, or similar vectors, get similar weights, and those that are rare in the training
rows learn from others. The score x·w + (x U)·u is x·(w + U u), so that predictions, explanations
and exports need only one weight per term.

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
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.features import FeatureMap, Idf, count_columns, row_blocks, weigh_columns
from textnb.bayes.forms import Floats
from textnb.bayes.sparse_rows import SparseRows
from textnb.bayes.subwords import subwords

# These were measured on questions, mail, news and reviews.
# The weight of vectors that are learned from texts like those of the rows.
WEIGHT_OF_OWN_VECTORS = 1.5
# With more rows of a class, vectors help less.
_FEW_ROWS = 250
# The more words texts have, the less parts help: the factor of `weight_of_words`, and its maximum.
_LENGTH_FACTOR, MAX_WEIGHT = 5.5, 1.6
# With more words and also more rows, parts only take time.
_MAX_WORDS, _MAX_ROWS = 100, 10_000


def without_names(terms: Sequence[str], prefixes: Sequence[str]) -> list[str]:
    """Terms without the names of columns before them: prefixes, each of which ends with a colon.

    >>> without_names(["title:cat", "a:b"], ["title:", ""])
    ['cat', 'a:b']
    """
    names = tuple(filter(None, prefixes))
    if not names:
        return [*terms]
    return [term.partition(":")[2] if term.startswith(names) else term for term in terms]


def weight_of_length(terms: Sequence[str], holders: NDArray[Any], rows: float) -> float:
    """The weight of parts that suits the length and the number of rows.

    It is `weight_of_words`, but 0 if more than 10,000 rows have more than 100 words each.

    >>> weight_of_length(["cat", "dog", "cat dog"], np.array([3, 3, 3]), 1)
    1.6
    >>> [weight_of_length(["cat"], np.array([121 * rows]), rows) for rows in (1, 20_000)]
    [0.5, 0.0]
    """
    words = mean_words_per_row(terms, holders, rows)
    return weight_of_words(words) if words <= _MAX_WORDS or rows <= _MAX_ROWS else 0.0


def weight_of_words(words: float) -> float:
    """5.5 / sqrt(words of a row), at most 1.6: long rows say more themselves."""
    return min(float(_LENGTH_FACTOR / words**0.5), MAX_WEIGHT)


def reduce_for_rows(weight: float, rows: float) -> float:
    """Reduce a weight of vectors by the mean number of rows of a class.

    It stays as it is up to 250 rows, then falls with the root of their number, and is 0 beyond
    2,500.

    >>> [reduce_for_rows(0.5, rows) for rows in (100, 1_000, 3_000)]
    [0.5, 0.25, 0.0]
    """
    return 0.0 if rows > 10 * _FEW_ROWS else weight * min(1.0, float(_FEW_ROWS / rows) ** 0.5)


def mean_words_per_row(terms: Sequence[str], holders: NDArray[Any], rows: float) -> float:
    """The mean number of different words of a row, from the number of rows that hold each term."""
    is_word = np.fromiter((" " not in term for term in terms), np.bool_, len(terms))
    return max(float(holders[is_word].sum()) / rows, 1.0)


@dataclass(frozen=True, eq=False)
class TermVectors:
    """Vectors of some terms.

    Attributes
    ----------
    columns : int64 (n_with_vector,)
        The terms that have one.
    values : float64 (n_with_vector, width)
    n_terms : int
    """

    columns: NDArray[np.int64]
    values: Floats
    n_terms: int

    @classmethod
    def centered(cls, columns: NDArray[np.int64], values: NDArray[Any], n_terms: int) -> Self:
        """Vectors of unit length, less their mean, which says nothing about a term."""
        values = values.astype(np.float64)
        values /= np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
        return cls(columns, values - values.mean(axis=0), n_terms)

    def of_rows(self, rows: sp.csr_array) -> sp.csr_array:
        """The sum of the vectors of each row's terms, times the values of these terms."""
        with_vector = sp.csr_array(
            (np.ones(len(self.columns)), (self.columns, np.arange(len(self.columns)))),
            shape=(self.n_terms, len(self.columns)))
        return sp.csr_array((rows @ with_vector) @ self.values)

    def fold(self, weights: Floats, shared: Floats) -> None:
        """Add the products of vectors with the weights of their dimensions to those of terms."""
        # Not by a product of matrices, whose bits would depend on the number of threads.
        weights[self.columns] += np.einsum("ij,j...->i...", self.values, shared)


@dataclass(frozen=True, eq=False)
class Sharing:
    """The parts and the vectors of terms, and how much they weigh beside the terms themselves.

    Attributes
    ----------
    parts : csr_array of numbers (n_terms, n_parts)
        What a term has of each part: see `textnb.bayes.subwords`.
    weight : float
        The factor of parts.
    vectors : TermVectors or None
    vector_weight : float
        The factor of vectors.
    """

    parts: sp.csr_array
    weight: float
    vectors: TermVectors | None = None
    vector_weight: float = 0.0

    @classmethod
    def without_parts(cls, n_terms: int) -> Sharing:
        """The sharing of terms that have no parts."""
        return cls(sp.csr_array((n_terms, 0)), 0.0)

    @property
    def has_vectors(self) -> bool:
        return self.vectors is not None and self.vector_weight > 0

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
            Names of columns before words, which do not belong to the words; each ends with a colon.
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
        if self.vectors is None or not self.has_vectors:
            return Shared(factors, holders)
        vectors = replace(self.vectors, values=self.vectors.values * self.vector_weight)
        # Nearly every row has a term with a vector.
        return Shared(factors, np.append(holders, np.full(vectors.values.shape[1], n_rows)),
                      vectors)


@dataclass(frozen=True, eq=False)
class Shared:
    """Factors that make the values of parts, and of vectors, of those of terms.

    Attributes
    ----------
    factors : csr_array of float64 (n_terms, n_parts)
    holders : int64 (n_parts + width,)
        The number of rows that have a part; for dimensions of vectors, the number of all rows.
    vectors : TermVectors or None
        Times their weight.
    """

    factors: sp.csr_array
    holders: NDArray[np.int64]
    vectors: TermVectors | None = None

    @property
    def width(self) -> int:
        """The number of dimensions of vectors, whose columns are the last ones."""
        return 0 if self.vectors is None else self.vectors.values.shape[1]

    def widen(self, rows: SparseRows) -> SparseRows:
        """Rows after the feature map, with columns for parts and vectors after those of terms."""
        terms = rows.to_csr()
        shared = [terms @ self.factors]
        if self.vectors is not None:
            shared.append(self.vectors.of_rows(terms))
        wide = sp.csr_array(sp.hstack([terms, *shared], format="csr"))
        wide.sort_indices()
        return SparseRows.of(wide)

    def fold(self, weights: Floats) -> Floats:
        """One weight per term, from those of terms, parts and vectors: float64 (n_terms, ...)."""
        n_terms, n_parts = self.factors.shape
        folded: Floats = weights[:n_terms] + self.factors @ weights[n_terms:n_terms + n_parts]
        if self.vectors is not None:
            self.vectors.fold(folded, weights[n_terms + n_parts:])
        return folded
