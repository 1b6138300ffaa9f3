"""Leave-one-out for texts: the documents that a model has learned are read once more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from textnb.bayes.cells import Ints
from textnb.bayes.counts import Counts
from textnb.bayes.formulas import Smoothing
from textnb.bayes.labels import Labels
from textnb.bayes.leave_one_out import LeaveOneOut, LeftOut, Within
from textnb.errors import DataError, ParameterError, quantity
from textnb.learning.documents import LabelledBatches, counts_of_matrix, labels_of
from textnb.models.base import Model
from textnb.runtime.memory import check_room
from textnb.runtime.threads import map_in_threads, run_in_threads
from textnb.text.matrix import CountMatrix, Vocabulary, choose_columns, stack_blocks
from textnb.text.vocabulary import Limits


@dataclass(frozen=True, eq=False)
class LeaveOneOutReader:
    """Reads documents that a model of texts has learned, and scores each by the model without it.

    If documents have any number of labels, each label is a leave-one-out of two classes, the
    documents with it and the rest.

    Attributes
    ----------
    model : Model
    statistics : Counts
        Counts of all terms that were seen.
    limits : Limits
    fixed_terms : Series or None
        The terms that are columns, whatever document is left out; None if limits choose them.
    binary : bool
        Whether a term counts once per document.

    Raises
    ------
    DataError
        If there are fewer than two documents.
    ParameterError
        If leaving documents out can't be done by subtraction.
    """

    model: Model
    statistics: Counts
    limits: Limits
    fixed_terms: pl.Series | None
    binary: bool

    def __post_init__(self) -> None:
        n_documents = self.statistics.documents
        if n_documents < 2:
            raise DataError("to leave a document out takes two or more; the model has learned "
                            f"{n_documents} (n_samples = {n_documents})")
        if self.fixed_terms is None and self.limits.max_features is not None:
            raise ParameterError.naming(
                "{max_features} ranks terms again without each document: use k folds instead, or "
                "limit terms by {min_df} and {max_df}")
        if self.fixed_terms is None and np.ndim(self.model.l):
            raise ParameterError("l is an array of one per term, and terms leave with documents: "
                                 "give the terms with vocabulary=, or one number for l")
        # Raises an error before documents are read, if they can't be left out by subtraction.
        self._scorer_of_label(0) if self.statistics.is_multilabel else self._scorer(self.statistics)

    def leave_out(
        self, documents: LabelledBatches, smoothing: Sequence[Smoothing]
    ) -> Iterator[LeftOut]:
        """The documents, scored with each smoothing parameter.

        They are read in batches; their counts are kept in memory if there are several parameters,
        or if documents have any number of labels.

        Raises
        ------
        DataError
            If they are not those that were learned.
        """
        batches = self._read(documents)
        if self.statistics.is_multilabel:
            return self._leave_out_labels(list(batches), smoothing)
        scorer = self._scorer(self.statistics)
        rows = (scorer.rows(counts, labels.codes) for counts, labels in batches)
        return scorer.score(rows, smoothing)

    def _leave_out_labels(
        self, batches: Sequence[tuple[CountMatrix, Labels]], smoothing: Sequence[Smoothing]
    ) -> Iterator[LeftOut]:
        counts, labels = [each for each, _ in batches], Labels.joined([each for _, each in batches])
        rows = stack_blocks(counts, counts[0].shape[1])
        size = len(labels), len(labels.classes)
        check_room(*size, 8 * len(smoothing) + 1, "scores of documents without each")
        scores = [np.empty(size) for _ in smoothing]
        countable, lengths = np.empty(size, dtype=np.bool_), np.zeros(len(labels))

        def score_label(k: int) -> None:
            scorer, codes = self._scorer_of_label(k), labels.has(k).astype(np.int64)
            if scorer.statistics.class_count[0] == 1:
                scorer.keep_empty(0)
            left_out = scorer.score([scorer.rows(rows, codes)], smoothing)
            for log_odds, of_label in zip(scores, left_out, strict=True):
                log_odds[:, k] = of_label.scores[:, 1] - of_label.scores[:, 0]
                countable[:, k] = of_label.countable

        run_in_threads(partial(score_label, k) for k in range(size[1]))
        return (LeftOut(log_odds, labels, countable, lengths) for log_odds in scores)

    def _scorer_of_label(self, k: int) -> LeaveOneOut:
        """The leave-one-out of a label against its rest."""
        return self._scorer(self.statistics.against_rest(k))

    def _scorer(self, statistics: Counts) -> LeaveOneOut:
        above = self.model.presence_above(self.binary)
        if self.fixed_terms is not None:
            return self.model.leave_out(statistics.over(self.fixed_terms), None, above)
        min_documents, max_documents = self.limits.bounds(statistics.documents - 1)
        within = Within(statistics.all_occurrences, statistics.document_frequency,
                        min_documents, max_documents)
        return self.model.leave_out(statistics, within, above)

    def _read(self, documents: LabelledBatches) -> Iterator[tuple[CountMatrix, Labels]]:
        """The documents in batches, checked at the end to be those that were learned."""
        learned, spec, row = self.statistics, documents.spec, 0
        columns = (None if self.fixed_terms is None else
                   (columns_among(learned.terms, self.fixed_terms), len(self.fixed_terms)))
        vocabulary = Vocabulary(spec.tokenizer, learned.terms)
        # A term that is not counted may be one that a limit of memory left out.
        count = vocabulary.counts if learned.pruned else vocabulary.count_known_terms

        def read(frame: pl.DataFrame) -> tuple[CountMatrix, pl.Series]:
            try:
                counts = count(frame, spec.text)
            except DataError as error:
                raise other_documents(str(error)) from None
            if self.binary:
                counts.data[:] = 1
            return counts, frame[spec.label]

        rest = _Rest(learned)
        for counts, column in map_in_threads(read, documents.frames):
            labels = labels_of(column, row)
            row += len(labels)
            rest.subtract(counts_of_matrix(spec, counts, learned.terms, labels))
            yield (counts if columns is None else choose_columns(counts, *columns),
                   labels.among(learned.classes))
        _check_empty(rest.counts)


class _Rest:
    """The counts of a model, less those of the documents that were read."""

    def __init__(self, learned: Counts) -> None:
        self._learned, self._removed = learned, list[Counts]()

    def subtract(self, documents: Counts) -> None:
        """Subtract documents; DataError if the model has not learned them."""
        unknown = np.setdiff1d(documents.classes, self._learned.classes)
        if len(unknown):
            raise other_documents(f"class {unknown.tolist()[0]!r} was never learned")
        self._removed.append(documents)
        # A difference takes the time of a whole vocabulary, so that many documents share one.
        if sum(len(each.values) for each in self._removed) > len(self._learned.values):
            self._learned, self._removed = self.counts, []

    @property
    def counts(self) -> Counts:
        if not self._removed:
            return self._learned
        rest, problem = self._learned.subtract(Counts.sum(self._removed))
        if problem is not None:
            raise other_documents(problem)
        return rest


def _check_empty(rest: Counts) -> None:
    """DataError if documents, or counts of terms, are left."""
    if rest.class_count.any():
        k = int(rest.class_count.argmax())
        raise other_documents(f"class {rest.classes.tolist()[k]!r} has learned "
                              f"{quantity(rest.class_count[k], 'document')} more than are given")
    if rest.rows:
        raise other_documents(
            f"it has learned {quantity(rest.rows, 'document')} without labels more than are given")
    for left in (rest.all_counts, rest.document_frequency, rest.occurrences):
        if left is not None and left.any():
            raise other_documents(f"the term {rest.terms[int(np.flatnonzero(left)[0])]!r} was "
                                  "learned more often than is given")


def columns_among(terms: pl.Series, vocabulary: pl.Series) -> Ints:
    """The place of each term in a vocabulary, -1 if it is not there; both are sorted."""
    columns = np.full(len(terms), -1, dtype=np.int64)
    known = terms.is_in(vocabulary.implode())
    columns[known.to_numpy()] = vocabulary.search_sorted(terms.filter(known)).to_numpy()
    return columns


def other_documents(difference: str) -> DataError:
    """The error for documents that are not those that a model has learned."""
    return DataError.naming(
        "these are not the documents that the model has learned: {difference}. Leave-one-out "
        "needs exactly those, with the same labels; to score others, use {held_out}",
        difference=difference)


