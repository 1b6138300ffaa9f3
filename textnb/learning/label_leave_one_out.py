"""Leave-one-out where documents have lists of labels: each label has two classes, own and rest.

Without a document, each of its labels has a document less, and the rest of each other label has
one less. So each label is a leave-one-out of two classes, and all share one matrix of documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.counts import Counts
from textnb.bayes.features import presence
from textnb.bayes.forms import Floats
from textnb.bayes.formulas import Smoothing
from textnb.bayes.label_lists import LabelLists
from textnb.learning.documents import LabelledBatches, document_term_matrix
from textnb.learning.leave_one_out import LeaveOneOutReader, columns_among, other_documents
from textnb.models.base import Model
from textnb.runtime.memory import check_room
from textnb.runtime.threads import run_in_threads
from textnb.text.matrix import CountMatrix, choose_columns
from textnb.text.vocabulary import Limits


@dataclass(frozen=True, eq=False)
class LabelLeaveOneOut:
    """The documents of a model of labels, each of which can be scored by the model without it.

    Attributes
    ----------
    model : Model
    statistics : Counts
    limits : Limits
    given : Series or None
        Terms that stay the columns.
    binary : bool
    counts : csr_array (n_documents, n_terms)
        Over the terms of the statistics.
    labels : LabelLists
        Among the classes of the statistics.
    """

    model: Model
    statistics: Counts
    limits: Limits
    given: pl.Series | None
    binary: bool
    counts: CountMatrix
    labels: LabelLists

    @classmethod
    def of(
        cls, model: Model, statistics: Counts, limits: Limits, given: pl.Series | None,
        binary: bool, documents: LabelledBatches,
    ) -> LabelLeaveOneOut:
        """Read the documents that were learned, into memory.

        Raises
        ------
        DataError
            If they are others than those that were learned, or fewer than two.
        ParameterError
            If leaving documents out can't be done by subtraction.
        """
        # What can't be left out is refused before the documents are read.
        _two_classes(model, statistics, limits, given, binary, 0)
        found = document_term_matrix(
            replace(documents, spec=replace(documents.spec, limits=Limits())))
        assert isinstance(found.labels, LabelLists)
        terms, classes = statistics.terms, statistics.classes
        unknown = found.terms.filter(~found.terms.is_in(terms.implode()))
        if len(unknown) and statistics.pruned is None:
            raise other_documents(f"the term {unknown[0]!r} was never learned")
        others = np.setdiff1d(found.labels.classes, classes)
        if len(others):
            raise other_documents(f"label {others.tolist()[0]!r} was never learned")
        labels = replace(found.labels, classes=classes, codes=np.searchsorted(
            classes, found.labels.classes)[found.labels.codes])
        counts = choose_columns(found.counts, columns_among(found.terms, terms), len(terms))
        _check_learned(statistics, counts, labels, model.presence_above(binary))
        return cls(model, statistics, limits, given, binary, counts, labels)

    def log_odds(self, smoothing: Sequence[Smoothing]) -> tuple[list[Floats], NDArray[np.bool_]]:
        """Scores by the models without each document, and which of them may count in a loss.

        Parameters
        ----------
        smoothing : sequence of float or float64 (n_terms,)
            Values of ``l``.

        Returns
        -------
        log_odds : list of float64 (n_documents, n_labels)
            For each ``l``. -inf for a label that no other document has; inf for one that all
            others have, where priors are shares of the documents.
        countable : bool (n_documents, n_labels)
            False where no other document has the label, or lacks it, as this one does.
        """
        size = len(self.labels), len(self.statistics.classes)
        check_room(*size, 8 * len(smoothing) + 1, "scores of documents without each")
        found = [np.empty(size) for _ in smoothing]
        countable = np.empty(size, dtype=np.bool_)

        def put(k: int) -> None:
            reader = _two_classes(
                self.model, self.statistics, self.limits, self.given, self.binary, k)
            whole, codes = reader.whole, self.labels.has(k).astype(np.int64)
            if whole.statistics.class_count[0] == 1:
                whole.keep_empty(0)
            rows = whole.rows(reader.over_columns(self.counts), codes)
            countable[:, k] = whole.countable(codes)
            for l, log_odds in zip(smoothing, found, strict=True):
                scores = whole.scorer(l)(rows)
                log_odds[:, k] = scores[:, 1] - scores[:, 0]

        run_in_threads(partial(put, k) for k in range(size[1]))
        return found, countable

    @property
    def actual(self) -> NDArray[np.bool_]:
        """Which documents have which labels: bool (n_documents, n_labels)."""
        actual = np.zeros((len(self.labels), len(self.labels.classes)), dtype=np.bool_)
        actual[self.labels.rows, self.labels.codes] = True
        return actual


def _two_classes(
    model: Model, statistics: Counts, limits: Limits, given: pl.Series | None,
    binary: bool, k: int,
) -> LeaveOneOutReader:
    """The leave-one-out of a label against its rest."""
    return LeaveOneOutReader.of(model, statistics.against_rest(k), limits, given, binary)


def _check_learned(
    learned: Counts, counts: Any, labels: LabelLists, above: float | None
) -> None:
    """DataError unless these documents with these labels are what was counted."""
    if learned.rows != len(labels) or not np.array_equal(learned.class_count, labels.sizes):
        raise other_documents("the model has learned other numbers of documents of its labels")
    found = labels.statistics(counts if above is None else presence(counts, above))
    if not found.equals(learned.as_columns()):
        raise other_documents("the documents of some label have other terms than those that were "
                              "learned")
