"""Leave-one-out for texts: each document that a model has learned is read again and scored."""

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
from textnb.bayes.leave_one_out import ColumnLimits, LeaveOneOut, LeftOut
from textnb.errors import DataError, ParameterError, quantity
from textnb.learning.documents import LabelledBatches, counts_of_matrix, labels_of
from textnb.models.base import Model
from textnb.runtime.memory import check_fits_in_memory
from textnb.runtime.threads import map_in_threads, run_in_threads
from textnb.text.matrix import CountMatrix, Vocabulary, choose_columns, stack_blocks
from textnb.text.vocabulary import Limits


@dataclass(frozen=True, eq=False)
class LeaveOneOutReader:
    """Reads documents that a model of texts has learned, and scores each by the model without it.

    With lists of labels, there is a leave-one-out for each label, of two classes: the documents
    with the label and the others.

    Attributes
    ----------
    model : Model
    statistics : Counts
        Counts of all terms of the documents.
    limits : Limits
        Limits on terms, which apply again without each document.
    fixed_terms : Series or None
        The terms of the model, if they stay the same when a document is left out; None if limits
        choose them each time.
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
            raise ParameterError.naming_settings(
                "{max_features} ranks terms again without each document: use k folds instead, or "
                "limit terms by {min_df} and {max_df}")
        if self.fixed_terms is None and np.ndim(self.model.l):
            raise ParameterError("l is an array of one per term, and terms leave with documents: "
                                 "give the terms with vocabulary=, or one number for l")
        # Called for its error, now and not after reading, if subtraction can't leave documents out.
        self._scorer_of_label(0) if self.statistics.is_multilabel else self._scorer(self.statistics)

    def leave_out(
        self, documents: LabelledBatches, smoothing: Sequence[Smoothing]
    ) -> Iterator[LeftOut]:
        """Score the documents with each smoothing parameter.

        They are read in batches. Their counts are kept in memory only if there are several
        parameters, or lists of labels.

        Raises
        ------
        DataError
            If they are not exactly the documents that the model has learned.
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
        blocks = [counts for counts, _ in batches]
        labels = Labels.joined([batch_labels for _, batch_labels in batches])
        rows = stack_blocks(blocks, blocks[0].shape[1])
        shape = len(labels), len(labels.classes)
        # For each document and label, a float64 for each smoothing parameter, and a bool.
        bytes_per_score = 8 * len(smoothing) + 1
        check_fits_in_memory(*shape, bytes_per_score, name="scores of documents without each")
        # An array of log-odds for each smoothing parameter.
        scores = [np.empty(shape) for _ in smoothing]
        # Which scores count in a loss; and lengths, which calibrations of labels do not use.
        countable, lengths = np.empty(shape, dtype=np.bool_), np.zeros(len(labels))

        def score_label(k: int) -> None:
            scorer, codes = self._scorer_of_label(k), labels.has(k).astype(np.int64)
            # If only one document is without the label, class 0 is empty when that one is left out:
            # keep the class, so that the document can be scored.
            if scorer.statistics.class_count[0] == 1:
                scorer.keep_empty(0)
            left_out = scorer.score([scorer.rows(rows, codes)], smoothing)
            for log_odds, label_left_out in zip(scores, left_out, strict=True):
                log_odds[:, k] = label_left_out.scores[:, 1] - label_left_out.scores[:, 0]
                countable[:, k] = label_left_out.countable

        run_in_threads(partial(score_label, k) for k in range(shape[1]))
        return (LeftOut(log_odds, labels, countable, lengths) for log_odds in scores)

    def _scorer_of_label(self, k: int) -> LeaveOneOut:
        """The leave-one-out of a label against its absence."""
        return self._scorer(self.statistics.against_rest(k))

    def _scorer(self, statistics: Counts) -> LeaveOneOut:
        presence_above = self.model.presence_above(self.binary)
        if self.fixed_terms is not None:
            return self.model.leave_out(
                statistics.over(self.fixed_terms), presence_above=presence_above)
        # One document less, as the limits apply without it.
        min_documents, max_documents = self.limits.bounds(statistics.documents - 1)
        within = ColumnLimits(statistics.total_occurrences, statistics.document_frequency,
                              min_documents=min_documents, max_documents=max_documents)
        return self.model.leave_out(statistics, within, presence_above)

    def _read(self, documents: LabelledBatches) -> Iterator[tuple[CountMatrix, Labels]]:
        """Yield the documents in batches; check at the end that they are all that were learned."""
        learned, spec, first_row = self.statistics, documents.spec, 0
        columns = (None if self.fixed_terms is None else
                   (find_columns(learned.terms, self.fixed_terms), len(self.fixed_terms)))
        vocabulary = Vocabulary(spec.tokenizer, learned.terms)
        # If a memory limit left terms out, documents may have terms that the counts lack.
        count = vocabulary.counts if learned.pruned else vocabulary.count_known_terms

        def read(frame: pl.DataFrame) -> tuple[CountMatrix, pl.Series]:
            try:
                counts = count(frame, spec.text)
            except DataError as error:
                raise mismatch_error(str(error)) from None
            if self.binary:
                counts.data[:] = 1
            return counts, frame[spec.label]

        unread = _UnreadCounts(learned)
        for counts, column in map_in_threads(read, documents.frames):
            labels = labels_of(column, first_row)
            first_row += len(labels)
            unread.subtract(counts_of_matrix(spec, counts, learned.terms, labels))
            yield (counts if columns is None else choose_columns(counts, *columns),
                   labels.among(learned.classes))
        _check_empty(unread.counts)


class _UnreadCounts:
    """The counts of a model minus the counts of the documents that were read."""

    def __init__(self, learned: Counts) -> None:
        # The counts to subtract are collected in `_pending`.
        self._counts, self._pending = learned, list[Counts]()

    def subtract(self, documents: Counts) -> None:
        """Subtract documents; raise DataError if the model has not learned them."""
        unknown = np.setdiff1d(documents.classes, self._counts.classes)
        if len(unknown):
            raise mismatch_error(f"class {unknown.tolist()[0]!r} was never learned")
        self._pending.append(documents)
        # A subtraction takes time for the whole vocabulary, so that it is done for many documents.
        if sum(len(counts.values) for counts in self._pending) > len(self._counts.values):
            self._counts, self._pending = self.counts, []

    @property
    def counts(self) -> Counts:
        """The counts that are left; DataError if the model has not learned what was read."""
        if not self._pending:
            return self._counts
        difference, problem = self._counts.subtract(Counts.sum(self._pending))
        if problem is not None:
            raise mismatch_error(problem)
        return difference


def _check_empty(rest: Counts) -> None:
    """Raise DataError if documents, or counts of terms, are left."""
    if rest.class_count.any():
        k = int(rest.class_count.argmax())
        raise mismatch_error(f"class {rest.classes.tolist()[k]!r} has learned "
                             f"{quantity(rest.class_count[k], 'document')} more than are given")
    if rest.rows:
        raise mismatch_error(
            f"it has learned {quantity(rest.rows, 'document')} without labels more than are given")
    for numbers in (rest.total_counts, rest.document_frequency, rest.occurrences):
        if numbers is not None and numbers.any():
            term = rest.terms[int(np.flatnonzero(numbers)[0])]
            raise mismatch_error(f"the term {term!r} was learned more often than is given")


def find_columns(terms: pl.Series, vocabulary: pl.Series) -> Ints:
    """The index of each term in a sorted vocabulary, or -1 if it is not there."""
    columns = np.full(len(terms), -1, dtype=np.int64)
    known = terms.is_in(vocabulary.implode())
    columns[known.to_numpy()] = vocabulary.search_sorted(terms.filter(known)).to_numpy()
    return columns


def mismatch_error(difference: str) -> DataError:
    """The error if documents are not exactly those that a model has learned."""
    return DataError.with_advice(
        f"these are not the documents that the model has learned: {difference}. Leave-one-out "
        "needs exactly those, with the same labels; to score others, use ",
        "held_out(model, rows)",
        "textnb test, textnb threshold without --scored or textnb calibrate --held-out")


