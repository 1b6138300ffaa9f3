"""Counts of terms per class: they add and subtract, and models are derived from them.

Counts of all terms are kept, and the vocabulary is chosen from them at the end. So batches, merges
and forgetting give the same as one `fit` on the same documents, under any limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.read_only import ReadOnly
from textnb.bayes.statistics import CountStatistics
from textnb.errors import DataError, ParameterError, VocabularyError, quantity
from textnb.text.tokens import TextColumns, Tokenizer
from textnb.text.vocabulary import Limits

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CountSpec:
    """How to count documents: the columns, the tokens, and the sums to keep of each term.

    Attributes
    ----------
    tokenizer : Tokenizer
    text : str or sequence of str
        The text columns.
    label : str
        The label column.
    limits : Limits
        Limits on terms. All terms are counted, and also the sums that the limits need.
    presence_above : float or None
        Count the documents in which a term occurs more often than this, instead of occurrences.
    binary : bool
        Whether a term counts once per document, even if limits rank terms by their counts.
    multilabel : bool
        Whether the label column holds lists of labels.
    """

    tokenizer: Tokenizer
    text: TextColumns
    label: str
    limits: Limits = Limits()
    presence_above: float | None = None
    binary: bool = False
    multilabel: bool = False

    @property
    def keeps_documents(self) -> bool:
        """Whether the documents that hold each term are counted, because limits need them."""
        return self.limits.need_document_frequency

    @property
    def keeps_occurrences(self) -> bool:
        """Whether occurrences of each term are counted although the counts are of presence."""
        return self.presence_above is not None and not self.binary


@dataclass(frozen=True)
class Pruned:
    """Terms that were left out of counts to save memory.

    Attributes
    ----------
    terms : int
        How many; one that was left out of two counts that were added is counted twice.
    occurrences : int
        Their occurrences (documents, where a term counts once in each).
    at_most : int
        No term has more occurrences that are not counted.

    Examples
    --------
    >>> pruned = Pruned(terms=1000, occurrences=1200, at_most=2) + Pruned(800, 800, 1)
    >>> pruned.describe()
    'left out for the memory limit: 1,800 terms, with 2,000 occurrences, at most 3 each'
    """

    terms: int
    occurrences: int
    at_most: int

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(self.terms + other.terms, self.occurrences + other.occurrences,
                      self.at_most + other.at_most)

    def describe(self) -> str:
        """One line of text for people."""
        return (f"left out for the memory limit: {quantity(self.terms, 'term')}, with "
                f"{quantity(self.occurrences, 'occurrence')}, at most {self.at_most:,} each")

    def to_dict(self) -> dict[str, int]:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Pruned:
        """From `to_dict`; other values, such as those of older files, are ignored."""
        return cls(*(values[name] for name in cls.__annotations__))


@dataclass(frozen=True, eq=False)
class TermCounts(ReadOnly):
    """Counts per class and term, which add and subtract.

    Attributes
    ----------
    terms : polars.Series of String
        Sorted, one per feature of ``counts``.
    counts : CountStatistics
        Classes and their documents; occurrences per class and term, or documents that hold the
        term if presence was counted.
    document_frequency : int64 (n_terms,) or None
        Documents that hold the term, if limits need them.
    occurrences : int64 (n_terms,) or None
        Occurrences over all classes, if presence was counted.
    rows : int or None
        Number of documents, if counts have sample weights: limits on terms ignore weights.
    pruned : Pruned or None
        What a limit of memory left out.
    """

    terms: pl.Series
    counts: CountStatistics
    document_frequency: Ints | None = None
    occurrences: Ints | None = None
    rows: int | None = None
    pruned: Pruned | None = None

    def __repr__(self) -> str:
        return (f"TermCounts({quantity(self.documents, 'document')}, "
                f"{quantity(len(self.terms), 'term')}, "
                f"{quantity(len(self.counts.classes), 'class')})")

    @property
    def documents(self) -> int:
        return int(self.counts.n_rows) if self.rows is None else self.rows

    @property
    def has_weights(self) -> bool:
        """Whether counts are sums of sample weights, which are no integers."""
        return self.rows is not None

    @property
    def total(self) -> Ints:
        """Occurrences of each term over all classes."""
        return self.counts.all_counts if self.occurrences is None else self.occurrences

    def __add__(self, other: TermCounts) -> TermCounts:
        left, right = _align(self, other)
        weights = self.has_weights or other.has_weights
        occurrences = (left.total + right.total if weights
                       else _combine(left.occurrences, right.occurrences, 1))
        return TermCounts(
            left.terms, left.counts + right.counts,
            _combine(left.document_frequency, right.document_frequency, 1), occurrences,
            self.documents + other.documents if weights else None,
            self.pruned if other.pruned is None
            else other.pruned if self.pruned is None else self.pruned + other.pruned)

    def __sub__(self, other: TermCounts) -> TermCounts:
        """Subtract; terms without documents are removed, and so are classes without documents.

        Raises
        ------
        DataError
            If more would be subtracted than was counted. A term that is not counted may have been
            left out of counts that are `pruned`, and is ignored.
        """
        if self.has_weights or other.has_weights:
            raise ParameterError("counts with sample weights are sums of real numbers, from which "
                                 "documents can't be subtracted exactly: fit again without them")
        self.counts.check_same_kind(other.counts)
        known = other.terms.is_in(self.terms.implode())
        if not known.all() and self.pruned is None:
            unknown = other.terms.filter(~known)[0]
            raise DataError.never_learned(f"term {unknown!r} was never learned")
        left, right = _align(self, other.select(known.to_numpy()))
        rest = TermCounts(
            left.terms, left.counts - right.counts,
            _combine(left.document_frequency, right.document_frequency, -1),
            _combine(left.occurrences, right.occurrences, -1), pruned=self.pruned)
        emptied = (self.counts.class_count > 0) & (rest.counts.class_count == 0)
        rest = replace(rest, counts=rest.counts.without(self.counts.classes[emptied]))
        return rest.select(rest.total > 0)

    def select(self, keep: NDArray[np.bool_]) -> TermCounts:
        """The counts of some terms."""
        if keep.all():
            return self
        return TermCounts(
            self.terms.filter(pl.Series(keep)), self.counts.select(keep),
            None if self.document_frequency is None else self.document_frequency[keep],
            None if self.occurrences is None else self.occurrences[keep], self.rows, self.pruned)

    def with_classes(self, classes: Sequence[Any]) -> TermCounts:
        """The same counts among more classes."""
        return replace(self, counts=self.counts.with_classes(classes))

    def equals(self, other: TermCounts) -> bool:
        """Same terms and classes, and the same counts of each kind."""
        return self.terms.equals(other.terms) and self.counts.equals(other.counts) and all(
            mine is theirs if mine is None or theirs is None else np.array_equal(mine, theirs)
            for mine, theirs in ((self.document_frequency, other.document_frequency),
                                 (self.occurrences, other.occurrences)))

    def check_terms(self, pattern: str) -> None:
        """Raise VocabularyError if no document that was counted has a token."""
        if not len(self.terms):
            raise VocabularyError.no_tokens(pattern, self.documents)

    def over(self, terms: pl.Series) -> TermCounts:
        """The counts of a given vocabulary; terms that were not seen have count 0."""
        return self.select(self.terms.is_in(terms.implode()).to_numpy())._among(terms)

    def mask(self, limits: Limits) -> NDArray[np.bool_]:
        """Which terms are within limits."""
        return limits.select(
            len(self.terms), self.document_frequency, self.total, self.documents)

    def within(self, limits: Limits) -> TermCounts:
        """The counts of the terms that are within limits."""
        return self.select(self.mask(limits))

    def _among(self, terms: pl.Series) -> TermCounts:
        """The same counts among more terms."""
        columns = terms.search_sorted(self.terms).to_numpy().astype(np.int64)
        return replace(
            self, terms=terms, counts=self.counts.widened(columns, len(terms)),
            document_frequency=_spread(self.document_frequency, columns, len(terms)),
            occurrences=_spread(self.occurrences, columns, len(terms)))


def _align(
    left: TermCounts, right: TermCounts
) -> tuple[TermCounts, TermCounts]:
    if left.terms.equals(right.terms):
        return left, right
    terms = pl.concat([left.terms, right.terms]).unique().sort()
    return left._among(terms), right._among(terms)


def _combine(left: Ints | None, right: Ints | None, sign: int) -> Ints | None:
    return None if left is None or right is None else left + sign * right


def _spread(values: Ints | None, columns: Ints, length: int) -> Ints | None:
    if values is None:
        return None
    spread = np.zeros(length, dtype=np.int64)
    spread[columns] = values
    return spread


def check_complete(statistics: TermCounts, spec: CountSpec) -> None:
    """Raises DataError if counts that the settings need are not there, or contradict each other."""
    counts = statistics.counts
    if spec.keeps_documents and statistics.document_frequency is None:
        raise DataError("document frequencies are missing")
    if spec.keeps_occurrences and statistics.occurrences is None:
        raise DataError("occurrences are missing")
    # Sums of weights that were added in other orders differ in their last bits.
    most = counts.class_count * (1.0 + 1e-9) if statistics.has_weights else counts.class_count
    if spec.presence_above is not None and (
            counts.feature_count.max(axis=1, initial=0) > most).any():
        raise DataError("a term is in more documents than its class has")
    if counts.has_less_than_a_label or (counts.is_multilabel and spec.presence_above is not None
                                        and (counts.all_counts > counts.n_rows).any()):
        raise DataError("a label has more documents, or more of a term, than all labels together")
