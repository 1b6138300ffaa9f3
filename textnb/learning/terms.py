"""The statistic of labelled documents: counts per class, with the terms that name their columns.

All terms that were ever counted are kept, and the vocabulary is chosen from them at the end: so
batches, merges and forgetting give what one `fit` on the same documents gives, whatever the limits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.read_only import ReadOnly
from textnb.bayes.statistics import CountStatistics
from textnb.errors import DataError, ParameterError, VocabularyError
from textnb.text.vocabulary import Limits

if TYPE_CHECKING:
    from textnb.text.counts import LabelledCounts

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TermStatistics(ReadOnly):
    """Counts per class and term that add and subtract.

    Attributes
    ----------
    terms : polars.Series of String
        Sorted, one per feature of ``counts``.
    counts : CountStatistics
    document_frequency, occurrences : int64 (n_terms,) or None
        Documents that hold the term, and its occurrences in all, where they are kept.
    rows : int or None
        Under sample weights, how many documents there are: limits on terms do not weigh them.
    """

    terms: pl.Series
    counts: CountStatistics
    document_frequency: Ints | None = None
    occurrences: Ints | None = None
    rows: int | None = None

    def __repr__(self) -> str:
        return (f"TermStatistics({self.documents:,} documents, {len(self.terms):,} terms, "
                f"{len(self.counts.classes):,} classes)")

    @classmethod
    def of(cls, counted: LabelledCounts) -> TermStatistics:
        counts = CountStatistics(counted.labels.to_numpy(), counted.class_count,
                                 counted.feature_count)
        return cls(counted.terms, counts, counted.document_frequency, counted.occurrences)

    @property
    def documents(self) -> int:
        return int(self.counts.class_count.sum()) if self.rows is None else self.rows

    @property
    def has_weights(self) -> bool:
        """Whether counts are sums of sample weights, which are no integers."""
        return self.rows is not None

    @property
    def total(self) -> Ints:
        """Occurrences of each term over all classes."""
        if self.occurrences is not None:
            return self.occurrences
        total: Ints = self.counts.feature_count.sum(axis=0)
        return total

    def __add__(self, other: TermStatistics) -> TermStatistics:
        left, right = _aligned(self, other)
        weights = self.has_weights or other.has_weights
        return TermStatistics(
            left.terms, left.counts + right.counts,
            _both(left.document_frequency, right.document_frequency, 1),
            left.total + right.total if weights else _both(left.occurrences, right.occurrences, 1),
            self.documents + other.documents if weights else None)

    def __sub__(self, other: TermStatistics) -> TermStatistics:
        """Terms that are left in no document leave too, and so do classes that are left empty."""
        if self.has_weights or other.has_weights:
            raise ParameterError("counts with sample weights are sums of real numbers, from which "
                                 "documents can't be subtracted exactly: fit again without them")
        strangers = other.terms.filter(~other.terms.is_in(self.terms.implode()))
        if len(strangers):
            raise DataError.never_learned(f"term {strangers[0]!r} was never learned")
        left, right = _aligned(self, other)
        rest = TermStatistics(
            left.terms, left.counts - right.counts,
            _both(left.document_frequency, right.document_frequency, -1),
            _both(left.occurrences, right.occurrences, -1))
        emptied = (self.counts.class_count > 0) & (rest.counts.class_count == 0)
        rest = replace(rest, counts=rest.counts.without(self.counts.classes[emptied]))
        return rest.select(rest.total > 0)

    def select(self, keep: NDArray[np.bool_]) -> TermStatistics:
        """The statistic of some terms."""
        if keep.all():
            return self
        return TermStatistics(
            self.terms.filter(pl.Series(keep)), self.counts.select(keep),
            None if self.document_frequency is None else self.document_frequency[keep],
            None if self.occurrences is None else self.occurrences[keep], self.rows)

    def check_terms(self, pattern: str) -> None:
        """Raises VocabularyError if no document that was counted has a token."""
        if not len(self.terms):
            raise VocabularyError.no_tokens(pattern, self.documents)

    def over(self, terms: pl.Series) -> TermStatistics:
        """The statistic of a given vocabulary: terms that were not seen count 0."""
        return self.select(self.terms.is_in(terms.implode()).to_numpy())._widened(terms)

    def within(self, limits: Limits) -> TermStatistics:
        """The statistic of the terms that get a column."""
        return self.select(limits.select(
            len(self.terms), self.document_frequency, self.total, self.documents))

    def _widened(self, terms: pl.Series) -> TermStatistics:
        columns = terms.search_sorted(self.terms).to_numpy().astype(np.int64)
        return replace(
            self, terms=terms, counts=self.counts.widened(columns, len(terms)),
            document_frequency=_spread(self.document_frequency, columns, len(terms)),
            occurrences=_spread(self.occurrences, columns, len(terms)))


def _aligned(
    left: TermStatistics, right: TermStatistics
) -> tuple[TermStatistics, TermStatistics]:
    if left.terms.equals(right.terms):
        return left, right
    terms = pl.concat([left.terms, right.terms]).unique().sort()
    return left._widened(terms), right._widened(terms)


def _both(left: Ints | None, right: Ints | None, sign: int) -> Ints | None:
    return None if left is None or right is None else left + sign * right


def _spread(values: Ints | None, columns: Ints, length: int) -> Ints | None:
    if values is None:
        return None
    spread = np.zeros(length, dtype=np.int64)
    spread[columns] = values
    return spread
