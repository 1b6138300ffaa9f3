"""Measures of predictions where documents have any number of labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.decision import Decision, choose_labels
from textnb.bayes.forms import Floats
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import DataError, quantity
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.indicators import (
    confused,
    indicator,
    measures,
    measures_of_labels,
    of_mask,
    stack,
)
from textnb.evaluation.label_ranking import Blocks, rank_labels
from textnb.frames.batches import Progress, batches
from textnb.frames.failures import reading
from textnb.learning.fitted import Fitted
from textnb.runtime import notebook
from textnb.runtime.threads import map_in_threads
from textnb.scoring.labels import lists_of
from textnb.scoring.texts import coverage_of, scorer_of
from textnb.text.counts import null_in_labels

_ACTUAL = "\0actual"
# Scores that are in memory at a time: documents times labels.
_CELLS = 1 << 21
# Beyond so many scores they are computed again each time, from the counts of the documents.
_MOST_KEPT = 1 << 24


@dataclass(frozen=True, eq=False)
class LabelEvaluation:
    """How well lists of labels are predicted.

    Attributes
    ----------
    documents : int
    micro_f1 : float
        F1 of all pairs of a document and a label: large labels decide.
    macro_f1 : float
        The mean of the labels' F1: each label counts alike. A label that no document has, and that
        is never predicted, is left out.
    example_f1 : float
        The mean of the documents' F1; 1 where a document has no label, and none is predicted.
    subset_accuracy : float
        The share of documents of which all labels, and no others, are predicted.
    hamming_loss : float
        The share of wrong pairs of a document and a label.
    ranking : DataFrame
        ``k``, ``precision`` (P@k) and ``ndcg`` (nDCG@k) for the first 1, 3 and 5 labels by
        probability, whether or not they are predicted: see
        `textnb.evaluation.label_ranking.LabelRanking`. P@k is below 1 where documents have fewer
        than k labels.
    coverage_error : float
        The mean number of labels, from the most probable on, that contain all of a document's.
    label_ranking_average_precision : float
        The mean, over the labels of a document, of the share of right labels among those that are
        at least as probable.
    labels : DataFrame
        ``label``, ``documents`` that have it, ``predicted`` (how many are said to have it),
        ``precision`` (null where it is not predicted), ``recall`` (null where no document has it),
        ``f1`` (null where neither), ``average_precision`` (of the documents in the order of the
        label's probability; null where no document has it, or the model does not know it).
    confused : DataFrame
        ``label``, ``predicted``, ``documents``: of the documents that have a label without its
        prediction, how many were given which wrong label, the most frequent pairs first. Where
        ``predicted`` is null, no wrong label was given.
    unknown_labels : list
        Labels of the documents that the model does not know; they count as missed, and come last
        in the order of the probabilities.
    textless : int
        Documents without text.

    Documents without a label have no order of labels: ``ranking``, ``coverage_error`` and
    ``label_ranking_average_precision`` leave them out. A measure without a document is NaN, and
    null in `to_dict`.
    """

    documents: int
    micro_f1: float
    macro_f1: float
    example_f1: float
    subset_accuracy: float
    hamming_loss: float
    ranking: pl.DataFrame
    coverage_error: float
    label_ranking_average_precision: float
    labels: pl.DataFrame
    confused: pl.DataFrame
    unknown_labels: list[Any]
    textless: int = 0

    def __repr__(self) -> str:
        return (f"LabelEvaluation({quantity(self.documents, 'document')}, "
                f"{quantity(self.labels.height, 'label')}, micro F1 {self.micro_f1:.4f}, "
                f"macro F1 {self.macro_f1:.4f})")

    def _repr_html_(self) -> str:
        tables = {"Labels, those of most documents first": self.labels.sort(
            "documents", descending=True, maintain_order=True),
            "Missed labels, and what was predicted wrongly in their place": self.confused}
        return notebook.box(repr(self), *(
            notebook.table(table.columns, table.head(notebook.ROWS).rows(), caption, table.height)
            for caption, table in tables.items()))

    def to_dict(self) -> dict[str, Any]:
        """All measures, ready for JSON."""
        return {name: value.to_dicts() if isinstance(value, pl.DataFrame) else
                None if isinstance(value, float) and np.isnan(value) else value
                for name, value in vars(self).items()}


def evaluate_labels(
    fitted: Fitted, frame: Any, progress: Progress | None = None
) -> LabelEvaluation:
    """Score documents with lists of labels: see `textnb.evaluate`.

    Raises
    ------
    DataError
        If there are no rows, a list is null or holds a null, or the model knows none of the labels.
    """
    return score_lists(fitted, frame, progress).evaluation


class ScoredLists:
    """The counts of documents with lists of labels, from which scores are computed in blocks.

    Parameters
    ----------
    fitted : Fitted
    actual : Series of lists
    counts : list of SparseRows
    textless : int
    """

    def __init__(
        self, fitted: Fitted, actual: pl.Series, counts: list[SparseRows], textless: int
    ) -> None:
        self.fitted, self.actual, self.textless = fitted, actual, textless
        n_labels = len(fitted.labels)
        step = max(1, _CELLS // n_labels)
        self._parts = [rows[at:at + step] for rows in counts
                       for at in range(0, rows.shape[0], step)]
        self._kept = (list(map_in_threads(fitted.form.scores, self._parts))
                      if len(actual) * n_labels <= _MOST_KEPT else None)

    def scores(self) -> Iterable[Floats]:
        """The scores in blocks, not calibrated."""
        if self._kept is not None:
            return self._kept
        return map_in_threads(self.fitted.form.scores, self._parts)

    def posterior_scores(self) -> Iterable[Floats]:
        """The scores by which labels are ordered, in blocks; calibrated if the model is."""
        scorer = scorer_of(self.fitted)
        return (scorer.posterior_scores(rows, scores)
                for rows, scores in zip(self._parts, self.scores(), strict=True))

    @cached_property
    def predicted(self) -> Any:
        """Which labels are predicted: csr_array (n_documents, n_labels)."""
        labels = self.fitted.labels.to_list()
        return stack(of_mask(choose_labels(scores, labels, self.fitted.decision))
                     for scores in self.scores())

    @property
    def right(self) -> NDArray[np.bool_]:
        """The documents of which all labels, and no others, are predicted: (n_documents,)."""
        rows, places = self.predicted.nonzero()
        said = lists_of(rows, self.fitted.labels.gather(pl.Series(places)), len(self.actual))
        right: NDArray[np.bool_] = (said == self.actual.list.unique().list.sort()).to_numpy()
        return right

    @property
    def evaluation(self) -> LabelEvaluation:
        """All measures."""
        return _evaluation(self.actual, self.fitted.labels, self.posterior_scores, self.predicted,
                           textless=self.textless)


def score_lists(fitted: Fitted, frame: Any, progress: Progress | None = None) -> ScoredLists:
    """Count documents with lists of labels, to be scored: see `evaluate_labels`."""
    coverage, kind = coverage_of(fitted), pl.List(fitted.labels.dtype)
    counts: list[SparseRows] = []
    lists = [pl.Series(dtype=kind)]

    def count(batch: pl.DataFrame) -> tuple[SparseRows, pl.Series]:
        rows = fitted.vocabulary.rows(batch, fitted.columns)
        coverage.add(batch, rows)
        return rows, batch[_ACTUAL]

    with reading(frame):
        rows = fitted.scan(frame)
        asked = rows.select(*fitted.columns, pl.col(fitted.label).cast(kind).alias(_ACTUAL))
        for counted, actual in map_in_threads(
                count, batches(asked, fitted.columns, progress=progress)):
            counts.append(counted)
            lists.append(actual)
    actual = pl.concat(lists)
    if not len(actual):
        raise DataError.no_rows("the test set", "there is nothing to measure")
    faulty = actual.is_null() | actual.list.eval(pl.element().is_null()).list.any()
    if faulty.any():
        raise null_in_labels(fitted.label, int(faulty.arg_true()[0]))
    coverage.warn()
    return ScoredLists(fitted, actual, counts, coverage.textless)


def no_known_label(label: Any, known: pl.Series) -> DataError:
    """The error for rows of which the model knows no label, with one of the labels."""
    return DataError(f"the model knows none of the labels, such as {label!r}; its classes are "
                     f"{', '.join(map(repr, known.to_list()[:10]))}")


def evaluation_of_labels(held: HeldOut, decision: Decision | None = None) -> LabelEvaluation:
    """Measure held-out scores of labels; labels that are none of the classes are left out.

    Parameters
    ----------
    held : HeldOut
    decision : Decision, optional
        The thresholds of the labels; without it, a label is predicted where its score is above 0.
    """
    labels = pl.Series(held.classes.tolist())
    step = max(1, _CELLS // len(labels))
    lists = lists_of(np.nonzero(held.actual)[0], labels.gather(
        pl.Series(np.nonzero(held.actual)[1])), len(held))
    return _evaluation(
        lists, labels, lambda: (held.scores[at:at + step] for at in range(0, len(held), step)),
        of_mask(held.chosen(decision)))


def _evaluation(
    actual: pl.Series, known: pl.Series, blocks: Blocks, predicted: Any, textless: int = 0
) -> LabelEvaluation:
    """Compare lists of labels with predictions and scores of the labels that a model knows.

    Parameters
    ----------
    actual : Series of lists
    known : Series
        The model's labels.
    blocks : callable
        See `Blocks`; a column for each of the model's labels, as ``predicted`` has.
    predicted : csr_array (n_documents, n_known)
    textless : int
    """
    found = actual.explode(empty_as_null=False, keep_nulls=False)
    found = found.cast(known.dtype).alias(known.name)
    if len(found) and not found.is_in(known.implode()).any():
        raise no_known_label(found[0], known)
    labels = pl.concat([known, found]).unique().sort()
    true = indicator(*_places(actual, labels), len(labels))
    place = _place_of(known, labels)
    said = indicator(place[predicted.indices], np.diff(predicted.indptr), len(labels))

    def all_labels() -> Iterator[Floats]:
        for scores in blocks():
            # The model finds a label that it does not know less probable than all others.
            wide = np.full((len(scores), len(labels)), -np.inf)
            wide[:, place] = scores
            yield wide

    ranked = rank_labels(blocks if len(labels) == len(known) else all_labels, true)
    is_known = labels.is_in(known.implode())
    table = pl.DataFrame({
        "label": labels, **measures_of_labels(true, said),
        "average_precision": ranked.average_precision}).with_columns(
            pl.col("precision", "recall", "f1", "average_precision").fill_nan(None)).with_columns(
                pl.when(is_known).then("average_precision").alias("average_precision"))
    missed, wrong, n = confused(true, said)
    pairs = pl.DataFrame({
        "label": labels.gather(pl.Series(missed)),
        "predicted": labels.gather(pl.Series(wrong).replace(-1, None)),
        "documents": pl.Series(n, dtype=pl.Int64)})
    order = np.lexsort((wrong, missed, -n))
    return LabelEvaluation(
        documents=len(actual), labels=table, textless=textless, ranking=ranked.first,
        coverage_error=ranked.coverage_error,
        label_ranking_average_precision=ranked.label_ranking_average_precision,
        confused=pairs[order], unknown_labels=labels.filter(~is_known).to_list(),
        **measures(true, said))


def _place_of(values: pl.Series, labels: pl.Series) -> NDArray[np.int64]:
    """The places of values among sorted labels."""
    if labels.dtype == pl.Boolean:
        labels, values = labels.cast(pl.Int8), values.cast(pl.Int8)
    return labels.search_sorted(values).to_numpy().astype(np.int64)


def _places(lists: pl.Series, labels: pl.Series) -> tuple[Any, Any]:
    """The places of all documents' labels among the sorted ones, and how many each document has."""
    lists = lists.cast(pl.List(labels.dtype)).list.unique(maintain_order=True)
    flat = lists.explode(empty_as_null=False, keep_nulls=False)
    return _place_of(flat, labels), lists.list.len().cast(pl.Int64).to_numpy()
