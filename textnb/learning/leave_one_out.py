"""Leave-one-out for texts: the documents that a model has learned are read once more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.counts import Counts
from textnb.bayes.leave_one_out import LeaveOneOut, LeaveOneOutRows, Within
from textnb.errors import DataError, ParameterError, quantity
from textnb.learning.documents import LabelledBatches
from textnb.models.base import Model
from textnb.runtime.threads import map_in_threads
from textnb.text.matrix import CountMatrix, Vocabulary, choose_columns
from textnb.text.vocabulary import Limits

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LeaveOneOutReader:
    """Reads the documents of a text model, so that each can be scored by the model without it.

    Attributes
    ----------
    whole : LeaveOneOut
    statistics : Counts
        Of all terms that were ever counted.
    columns : int64 (n_terms,) or None
        Of each of those terms, its column among given terms, -1 for none.
    above : float or None
        The count above which a term counts as present.
    binary : bool
    """

    whole: LeaveOneOut
    statistics: Counts
    columns: Ints | None
    above: float | None
    binary: bool

    @classmethod
    def of(
        cls, model: Model, statistics: Counts, limits: Limits,
        given: pl.Series | None, binary: bool,
    ) -> LeaveOneOutReader:
        """For a model and what it learned; ``given`` terms stay the columns.

        Raises
        ------
        DataError
            If there are fewer than two documents.
        ParameterError
            If leaving documents out can't be done by subtraction.
        """
        if statistics.documents < 2:
            raise DataError(
                "to leave a document out takes two or more; the model has learned "
                f"{statistics.documents} (n_samples = {statistics.documents})")
        above = model.presence_above(binary)
        if given is not None:
            columns = columns_among(statistics.terms, given)
            whole = model.leave_out(statistics.over(given), None, above)
            return cls(whole, statistics, columns, above, binary)
        if limits.max_features is not None:
            raise ParameterError.naming(
                "{max_features} ranks terms again without each document: use k folds instead, or "
                "limit terms by {min_df} and {max_df}")
        if np.ndim(model.l):
            raise ParameterError("l is an array of one per term, and terms leave with documents: "
                                 "give the terms with vocabulary=, or one number for l")
        least, most = limits.bounds(statistics.documents - 1)
        within = Within(statistics.all_occurrences, statistics.document_frequency, least, most)
        return cls(model.leave_out(statistics, within, above), statistics, None,
                   above, binary)

    @property
    def classes(self) -> pl.Series:
        """In the type that labels are read in."""
        return pl.Series(self.statistics.classes.tolist())

    def rows(self, documents: LabelledBatches) -> Iterator[LeaveOneOutRows]:
        """The documents in batches, checked to be those that were learned.

        Raises
        ------
        DataError
            If they are not: at once where one can't have been learned, else at the end.
        """
        rest = _Rest(self.statistics)
        vocabulary = Vocabulary(documents.spec.tokenizer, self.statistics.terms)
        classes = self.classes
        # A term that is not counted may be one that a limit of memory left out.
        count = vocabulary.counts if self.statistics.pruned else vocabulary.counts_of_known

        def read(frame: pl.DataFrame) -> tuple[CountMatrix, pl.Series]:
            try:
                counts = count(frame, documents.spec.text)
            except DataError as error:
                raise other_documents(str(error)) from None
            if self.binary:
                counts.data[:] = 1
            return counts, frame[documents.spec.label]

        for counts, labels in map_in_threads(read, documents.frames):
            codes = rest.codes(labels, classes, documents.spec.label)
            rest.take(counts, codes, self.above)
            yield self.whole.rows(self.over_columns(counts), codes)
        rest.check_empty()

    def over_columns(self, counts: CountMatrix) -> CountMatrix:
        """The counts of the columns among given terms; all where terms leave with documents."""
        if self.columns is None:
            return counts
        return choose_columns(counts, self.columns, len(self.whole.counts))


class _Rest:
    """What a model has counted, less the documents that were read."""

    def __init__(self, statistics: Counts):
        self._terms = statistics.terms
        self._classes: list[Any] = statistics.classes.tolist()
        self._documents = statistics.class_count.copy()
        self._counts = statistics.feature_count
        self._others = [values.copy() for values in (
            statistics.document_frequency, statistics.occurrences) if values is not None]
        self._has_frequency = statistics.document_frequency is not None
        self._row = 0

    def codes(self, labels: pl.Series, classes: pl.Series, column: str) -> Ints:
        """Index of each label among the classes."""
        if labels.null_count():
            raise DataError.null_label(column, self._row + int(labels.is_null().arg_true()[0]))
        codes = labels.replace_strict(
            classes, pl.Series(range(len(classes)), dtype=pl.Int64), default=-1,
            return_dtype=pl.Int64).to_numpy()
        if (codes < 0).any():
            raise other_documents(f"class {labels[int((codes < 0).argmax())]!r} was never learned")
        return codes

    def take(self, counts: CountMatrix, codes: Ints, above: float | None) -> None:
        """Less a batch; DataError as soon as a count would fall below 0."""
        self._row += len(codes)
        self._documents -= np.bincount(codes, minlength=len(self._classes))
        if (self._documents < 0).any():
            label = self._classes[int(self._documents.argmin())]
            raise other_documents(f"class {label!r} has learned fewer documents than are given")
        row = np.repeat(codes, np.diff(counts.indptr))
        column, amount = counts.indices, counts.data.astype(np.int64)
        for values, each in zip(self._others, [1, amount][not self._has_frequency:], strict=False):
            np.subtract.at(values, column, each)
        if above is not None:
            amount = (amount > above).astype(np.int64)
        cells = row * self._counts.shape[1] + column
        flat = self._counts.reshape(-1)
        np.subtract.at(flat, cells, amount)
        short = flat[cells] < 0
        if short.any():
            at = int(short.argmax())
            raise other_documents(f"class {self._classes[row[at]]!r} has counted the term "
                          f"{self._terms[int(column[at])]!r} less often than is given")

    def check_empty(self) -> None:
        """DataError if documents, or counts of terms, are left."""
        if self._documents.any():
            k = int(self._documents.argmax())
            raise other_documents(f"class {self._classes[k]!r} has learned "
                                   f"{quantity(self._documents[k], 'document')} more than are "
                                   "given")
        for left in (self._counts, *self._others):
            if left.any():
                term = self._terms[int(np.flatnonzero(left)[0]) % left.shape[-1]]
                raise other_documents(f"the term {term!r} was learned more often than is given")


def columns_among(terms: pl.Series, given: pl.Series) -> Ints:
    """Of each of some sorted terms, its place among given ones, -1 for none."""
    columns = np.full(len(terms), -1, dtype=np.int64)
    known = terms.is_in(given.implode())
    columns[known.to_numpy()] = given.search_sorted(terms.filter(known)).to_numpy()
    return columns


def other_documents(what: str) -> DataError:
    """The error for documents that are not those that a model has learned."""
    return DataError.naming(
        "these are not the documents that the model has learned: {what}. Leave-one-out needs "
        "exactly those, with the same labels; to score others, use {held_out}", what=what)


