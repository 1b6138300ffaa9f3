"""Knowledge that terms share: weights of subwords and vectors, folded into one weight per term.

    row x of terms -> [x, x U] -> solver -> weights (w, u) -> w + U u, one weight per term

U has a row for each term, and a column for each subword and each dimension of the terms' vectors.
In the column of a subword, the value of a row is the sum of the values of the terms that have the
subword, with the inverse document frequency of the subword in place of the terms', times a factor.
In the column of a dimension, it is the sum of the terms' values times this dimension of their
vectors, times a factor. So terms with the same subwords, or similar vectors, get similar weights,
and rare terms learn from others. The score x·w + (x U)·u is x·(w + U u), so that predictions,
explanations and exports need only one weight per term.

>>> from textnb.bayes.features import IDENTITY
>>> sharing = Sharing(sp.csr_array([[1, 1, 0], [0, 1, 1]]), subword_weight=0.5)
>>> rows = sp.csr_array([[1, 0], [1, 1], [0, 2]])
>>> extra = sharing.extra_columns(rows, IDENTITY)
>>> extra.factors.toarray().tolist()
[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
>>> extra.fold(np.array([[1.0], [0.0], [0.0], [2.0], [0.0]])).tolist()
[[2.0], [1.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.features import FeatureMap, Idf, count_by_column, row_blocks, weigh_by_column
from textnb.bayes.forms import Floats
from textnb.bayes.sparse_rows import SparseRows
from textnb.bayes.subwords import subword_matrix

# These numbers were measured on questions, mail, news and reviews.
# The weight of vectors that are learned from texts like those of the rows.
WEIGHT_OF_OWN_VECTORS = 1.5
# With more rows per class, vectors help less.
_FEW_ROWS = 250
# Subwords help less if texts have more words: see `weight_for_row_length`.
_LENGTH_FACTOR, MAX_SUBWORD_WEIGHT = 5.5, 1.6
# If texts have more words and there are more rows, subwords only take time.
_MAX_WORDS, _MAX_ROWS = 100, 10_000


def without_prefixes(terms: Sequence[str], prefixes: Sequence[str]) -> list[str]:
    """Terms without the prefix that says which text column they are from: its name and a colon.

    >>> without_prefixes(["title:cat", "a:b"], ["title:", ""])
    ['cat', 'a:b']
    """
    names = tuple(filter(None, prefixes))
    if not names:
        return [*terms]
    return [term.partition(":")[2] if term.startswith(names) else term for term in terms]


def default_subword_weight(
    terms: Sequence[str], rows_with_term: NDArray[Any], n_rows: float
) -> float:
    """`weight_for_row_length`, but 0 for more than 10,000 rows of more than 100 words on average.

    >>> default_subword_weight(["cat", "dog", "cat dog"], np.array([3, 3, 3]), 1)
    1.6
    >>> [default_subword_weight(["cat"], np.array([121 * rows]), rows) for rows in (1, 20_000)]
    [0.5, 0.0]
    """
    words = mean_words_per_row(terms, rows_with_term, n_rows)
    return weight_for_row_length(words) if words <= _MAX_WORDS or n_rows <= _MAX_ROWS else 0.0


def weight_for_row_length(words_per_row: float) -> float:
    """5.5 / sqrt(words per row), at most 1.6: the words of long rows say enough."""
    return min(float(_LENGTH_FACTOR / words_per_row**0.5), MAX_SUBWORD_WEIGHT)


def reduce_for_rows(weight: float, rows_per_class: float) -> float:
    """Reduce a weight of vectors by the mean number of rows per class.

    Up to 250 rows, the weight stays as it is; for more, it is divided by sqrt(rows / 250); beyond
    2,500 rows, it is 0.

    >>> [reduce_for_rows(0.5, rows) for rows in (100, 1_000, 3_000)]
    [0.5, 0.25, 0.0]
    """
    factor: float = min(1.0, float(_FEW_ROWS / rows_per_class) ** 0.5)
    return weight * factor if rows_per_class <= 10 * _FEW_ROWS else 0.0


def mean_words_per_row(terms: Sequence[str], rows_with_term: NDArray[Any], n_rows: float) -> float:
    """The mean number of different words of a row, at least 1."""
    # A term with a space is an n-gram of words.
    is_word = np.fromiter((" " not in term for term in terms), np.bool_, len(terms))
    return max(float(rows_with_term[is_word].sum()) / n_rows, 1.0)


@dataclass(frozen=True, eq=False)
class TermVectors:
    """Vectors of some terms.

    Attributes
    ----------
    columns : int64 (n_with_vector,)
        The terms that have a vector.
    values : float64 (n_with_vector, width)
    n_terms : int
    """

    columns: NDArray[np.int64]
    values: Floats
    n_terms: int

    @classmethod
    def centered(cls, columns: NDArray[np.int64], values: NDArray[Any], n_terms: int) -> Self:
        """Scale vectors to unit length, and subtract their mean, which says nothing of a term."""
        values = values.astype(np.float64)
        values /= np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
        return cls(columns, values - values.mean(axis=0), n_terms)

    def sum_in_rows(self, rows: sp.csr_array) -> sp.csr_array:
        """For each row, the sum of the vectors of its terms, times the values of the terms."""
        selection = sp.csr_array(
            (np.ones(len(self.columns)), (self.columns, np.arange(len(self.columns)))),
            shape=(self.n_terms, len(self.columns)))
        return sp.csr_array((rows @ selection) @ self.values)

    def fold(self, term_weights: Floats, dimension_weights: Floats) -> None:
        """Add the products of vectors with the weights of dimensions to the weights of terms."""
        # Not by a product of matrices, whose bits would depend on the number of threads.
        term_weights[self.columns] += np.einsum("ij,j...->i...", self.values, dimension_weights)


@dataclass(frozen=True, eq=False)
class Sharing:
    """The subwords and the vectors of terms, and their weights in comparison with the terms.

    Attributes
    ----------
    subwords : csr_array of numbers (n_terms, n_subwords)
        See `textnb.bayes.subwords.subword_matrix`.
    subword_weight : float
        The factor of subwords.
    vectors : TermVectors or None
    vector_weight : float
        The factor of vectors.
    """

    subwords: sp.csr_array
    subword_weight: float
    vectors: TermVectors | None = None
    vector_weight: float = 0.0

    @classmethod
    def without_subwords(cls, n_terms: int) -> Sharing:
        """The sharing of terms that have no subwords."""
        return cls(sp.csr_array((n_terms, 0)), 0.0)

    @property
    def has_vectors(self) -> bool:
        return self.vectors is not None and self.vector_weight > 0

    @classmethod
    def of_words(
        cls, terms: Sequence[str], lengths: tuple[int, int], rows_with_term: NDArray[Any],
        n_rows: float, weight: float | None = None, prefixes: Sequence[str] = (),
    ) -> Sharing | None:
        """The sharing that a classifier's settings ask for; None if subwords have no weight.

        Parameters
        ----------
        terms : sequence of str
        lengths : (int, int)
            The number of characters of the shortest and the longest subwords.
        rows_with_term : (n_terms,)
            The number of rows that hold each term, or the sum of their weights.
        n_rows : float
            The number of all rows, or the sum of their weights.
        weight : float, optional
            The weight of subwords; default `default_subword_weight`.
        prefixes : sequence of str
            Names of columns before words, which do not belong to the words; each ends with a colon.
        """
        if weight is None:
            weight = default_subword_weight(terms, rows_with_term, n_rows)
        words = without_prefixes(terms, prefixes)
        return cls(subword_matrix(words, *lengths), weight) if weight else None

    def extra_columns(
        self, counts: sp.csr_array, features: FeatureMap,
        chosen: NDArray[np.bool_] | None = None, weight: Floats | None = None,
    ) -> ExtraColumns:
        """The extra columns for rows to learn from: all, or the chosen ones.

        The document frequency of a subword is the number of rows with a term that has it, or with
        ``weight``, float64 (n_chosen,), the sum of their weights.
        """
        rows_with_subword, n_rows = np.zeros(self.subwords.shape[1], dtype=np.int64), 0
        weighted_frequency = np.zeros(self.subwords.shape[1])
        for before, block in row_blocks(counts, chosen):
            block_subwords = sp.csr_array(block.to_csr() @ self.subwords)
            rows_with_subword += count_by_column(block_subwords)
            n_rows = before + block.shape[0]
            if weight is not None:
                weighted_frequency += weigh_by_column(block_subwords, weight[before:n_rows])
        factors = self.subwords * self.subword_weight
        idf = next((step.weights for step in features.steps if isinstance(step, Idf)), None)
        if idf is not None:
            subword_idf = (Idf.smooth(rows_with_subword, n_rows) if weight is None else
                           Idf.smooth(weighted_frequency, weight.sum())).weights
            factors = sp.csr_array(
                sp.diags_array(1.0 / idf) @ factors @ sp.diags_array(subword_idf))
        if self.vectors is None or not self.has_vectors:
            return ExtraColumns(factors, rows_with_subword)
        vectors = replace(self.vectors, values=self.vectors.values * self.vector_weight)
        # Nearly every row has a term with a vector, so each dimension counts in all rows.
        return ExtraColumns(factors, np.append(
            rows_with_subword, np.full(vectors.values.shape[1], n_rows)), vectors)


@dataclass(frozen=True, eq=False)
class ExtraColumns:
    """The columns of subwords and of dimensions, whose values follow from the values of terms.

    Attributes
    ----------
    factors : csr_array of float64 (n_terms, n_subwords)
        The columns of subwords in U.
    rows_with_column : int64 (n_subwords + width,)
        The number of rows that have a subword; for dimensions of vectors, the number of all rows.
    vectors : TermVectors or None
        The columns of dimensions in U.
    """

    factors: sp.csr_array
    rows_with_column: NDArray[np.int64]
    vectors: TermVectors | None = None

    @property
    def width(self) -> int:
        """The number of dimensions of vectors, whose columns are the last ones."""
        return 0 if self.vectors is None else self.vectors.values.shape[1]

    def widen(self, rows: SparseRows) -> SparseRows:
        """Rows after the feature map, with the extra columns after the columns of terms."""
        terms = rows.to_csr()
        extra = [terms @ self.factors]
        if self.vectors is not None:
            extra.append(self.vectors.sum_in_rows(terms))
        wide = sp.csr_array(sp.hstack([terms, *extra], format="csr"))
        wide.sort_indices()
        return SparseRows.of(wide)

    def fold(self, weights: Floats) -> Floats:
        """One weight per term, from the weights of all columns: float64 (n_terms, ...)."""
        n_terms, n_subwords = self.factors.shape
        folded: Floats = weights[:n_terms] + self.factors @ weights[n_terms:n_terms + n_subwords]
        if self.vectors is not None:
            self.vectors.fold(folded, weights[n_terms + n_subwords:])
        return folded
