"""Evaluation of a model on labelled rows: its answers are compared with the labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.classes import known_class
from textnb.bayes.decision import choose_labels
from textnb.bayes.forms import Floats
from textnb.bayes.sparse_rows import SparseRows
from textnb.evaluation import indicators
from textnb.evaluation.held_out import HeldOut, probability_measures
from textnb.evaluation.labelled import (
    LABEL,
    labelled_batches,
    mask_of_classes,
    score_held_out,
    scored_batches,
    unknown_labels,
)
from textnb.evaluation.labels import LabelEvaluation, evaluate_lists
from textnb.evaluation.metrics import Evaluation, evaluate_pairs
from textnb.evaluation.novelty import UNVERIFIED, NoveltyCount
from textnb.evaluation.roc import Roc
from textnb.frames.batches import Progress
from textnb.frames.failures import naming_source
from textnb.frames.kinds import select_columns
from textnb.frames.scan import scan_table
from textnb.learning.fitted import Fitted, fitted_text_model_or_none
from textnb.runtime.threads import map_in_threads
from textnb.scoring.columns import lists_of_mask
from textnb.scoring.scorer import calibrate_scores, rows_at_a_time
from textnb.scoring.texts import coverage_of

# A `TextClassifier`, a `TableClassifier` or a `Fitted`. The type is Any, because importing the
# classifiers would import scikit-learn.
AnyModel = Any


def scan_for(model: AnyModel, rows: Any) -> pl.LazyFrame:
    """Open labelled rows as the model's own `fit` does."""
    fitted = fitted_text_model_or_none(model)
    if fitted is not None:
        return fitted.scan(rows)
    rows = select_columns(rows, [*model.features_, model.label_column])
    return scan_table(rows, model.features_, model.label_column)


def evaluate(
    model: AnyModel, frame: Any, *, progress: Progress | None = None
) -> Evaluation | LabelEvaluation:
    """Score labelled documents, and compare the predictions with the labels.

    Parameters
    ----------
    model : TextClassifier or TableClassifier
        Fitted.
    frame : DataFrame, LazyFrame or path
        With the columns that the model reads, and its label column.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Returns
    -------
    Evaluation
        For a model of lists of labels, a `LabelEvaluation`: micro-, macro- and example-F1, subset
        accuracy, Hamming loss, measures of the order of labels, a table of the labels, and which
        labels are confused.

    Raises
    ------
    DataError
        If there are no rows, a label is null, or the model knows none of the labels.

    Warns
    -----
    LearnedRowsWarning
        If the model has probably learned most of the rows: see ``novelty``.
    UnknownTermsWarning
        If many texts hold no term that the model knows.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> frame = pl.DataFrame({"text": ["aa", "bb", "bb cc"], "label": ["x", "y", "y"]})
    >>> evaluate(TextClassifier().fit(frame), frame).accuracy
    1.0
    """
    fitted = fitted_text_model_or_none(model)
    if fitted is not None and fitted.is_multilabel:
        return score_lists(fitted, frame, progress).evaluation
    return evaluate_classes(model, frame, progress)


def evaluate_classes(
    model: AnyModel, frame: Any, progress: Progress | None = None,
    scores: list[HeldOut] | None = None, watch: ScoringWatch | None = None,
) -> Evaluation:
    """As `evaluate`, for rows that have one label each.

    For callers that need them, the scores of each batch, not calibrated, are appended to
    ``scores``, and ``watch`` counts the rows of a model of texts.
    """
    classes, fitted = _classes(model), fitted_text_model_or_none(model)
    decision = None if fitted is None else fitted.decision
    if watch is None and fitted is not None:
        watch = ScoringWatch(fitted)
    pairs = list[pl.DataFrame]()

    def batches_of_scores() -> Iterator[HeldOut]:
        if fitted is None or watch is None:
            yield from _score_tables(model, frame, progress)
            return
        for batch, counts, held in scored_batches(fitted, frame, progress):
            watch.add(batch, counts, held.actual)
            yield held

    def count_pairs(held: HeldOut) -> HeldOut:
        if scores is not None:
            scores.append(held)
        calibrated = held.calibrated(None if fitted is None else fitted.calibration)
        pairs.append(calibrated.pairs(decision))
        return calibrated

    measures = probability_measures(map(count_pairs, batches_of_scores()))
    result = replace(evaluate_pairs(pl.concat(pairs), classes, decision), **measures)
    if watch is None:
        return result
    watch.warn()
    return replace(result, novelty=watch.novelty.result, textless=watch.coverage.n_blank)


def count_learned_rows(model: AnyModel) -> NDArray[Any]:
    """The number of rows of each class that the model has learned: (n_classes,)."""
    fitted = fitted_text_model_or_none(model)
    if fitted is not None:
        return fitted.counts.class_count
    counts = getattr(model.estimator_, "class_count_", None)
    return np.asarray(model.estimator_.statistics_.class_count if counts is None else counts)


class ScoringWatch:
    """Counts rows with a term that is new to their class, and rows without a known term."""

    def __init__(self, fitted: Fitted):
        self.novelty, self.coverage = NoveltyCount(fitted), coverage_of(fitted)

    def add(self, rows: pl.DataFrame, counts: SparseRows, actual: NDArray[Any]) -> None:
        """Count a batch: texts, counts of known terms, and labels as `HeldOut.actual` has them."""
        self.coverage.add(rows, counts)
        self.novelty.add(counts, actual)

    def warn(self) -> None:
        """Give a `LearnedRowsWarning` or an `UnknownTermsWarning`, or both, if there is reason."""
        self.novelty.result.warn()
        self.coverage.warn()


def evaluate_roc(model: AnyModel, frame: Any, positive: Any) -> Roc:
    """Compute the ROC of one class against the rest, by its log-odds, calibrated if the model is.

    For a model of lists of labels, the documents with a label are compared with those without it.

    Parameters
    ----------
    model : TextClassifier or TableClassifier
        Fitted.
    frame : DataFrame, LazyFrame or path
    positive : label

    Raises
    ------
    ParameterError
        If ``positive`` is not a class of the model.
    DataError
        If all rows have that label, or none has.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> frame = pl.DataFrame({"text": ["aa", "bb", "bb cc"], "label": ["x", "y", "y"]})
    >>> evaluate_roc(TextClassifier().fit(frame), frame, "y").auc
    1.0
    """
    known_class(_classes(model).to_list(), positive)
    held, fitted = score_labelled_rows(model, frame), fitted_text_model_or_none(model)
    return held.calibrated(None if fitted is None else fitted.calibration).roc(positive)


def score_labelled_rows(model: AnyModel, frame: Any) -> HeldOut:
    """Score labelled rows by any model; by a model of texts, as `score_held_out` does."""
    fitted = fitted_text_model_or_none(model)
    if fitted is not None:
        return score_held_out(fitted, frame)
    return HeldOut.joined([*_score_tables(model, frame)])


def _score_tables(
    model: AnyModel, frame: Any, progress: Progress | None = None
) -> Iterator[HeldOut]:
    """Score a labelled table of features in batches."""
    classes, is_unlearned = _classes(model), count_learned_rows(model) == 0

    def score(batch_and_classes: tuple[pl.DataFrame, NDArray[np.int64]]) -> HeldOut:
        batch, actual = batch_and_classes
        return HeldOut(
            model.classes_, model.predict_joint_log_proba(batch.select(columns)), actual,
            lengths=np.zeros(len(actual)), method=UNVERIFIED,
            unknown=unknown_labels(batch[LABEL], classes),
            # A class of which no row was learned.
            without_class=mask_of_classes(actual, is_unlearned))

    with naming_source(frame):
        rows = scan_for(model, frame)
        columns = model.input_columns(rows)
        # text=(): without text columns, batches have a fixed number of rows.
        yield from map_in_threads(score, labelled_batches(
            rows, columns, model.label_column, classes, progress, text=()))


def _classes(model: AnyModel) -> pl.Series:
    fitted = fitted_text_model_or_none(model)
    return pl.Series((model.classes_ if fitted is None else fitted.classes).tolist())


class ScoredLists:
    """Counts of documents with lists of labels, from which scores are computed in blocks.

    ``actual`` are the lists of labels, ``counts`` the documents' counts of the model's terms in
    batches. ``watch`` has counted all documents.
    """

    def __init__(
        self, fitted: Fitted, actual: pl.Series, counts: list[SparseRows], watch: ScoringWatch
    ) -> None:
        self.fitted, self.actual, self.watch = fitted, actual, watch
        step = rows_at_a_time(len(fitted.labels))
        self._blocks = [rows[start:start + step] for rows in counts
                        for start in range(0, rows.shape[0], step)]

    def scores(self) -> Iterable[Floats]:
        """The scores in blocks, not calibrated; they are computed again each time."""
        return map_in_threads(self.fitted.form.scores, self._blocks)

    def posterior_scores(self) -> Iterable[Floats]:
        """The scores that order the labels, in blocks; calibrated if the model is."""
        return (calibrate_scores(self.fitted, rows, scores)
                for rows, scores in zip(self._blocks, self.scores(), strict=True))

    @cached_property
    def predicted(self) -> Any:
        """Which labels are predicted: csr_array (n_documents, n_labels)."""
        labels = self.fitted.labels.to_list()
        masks = (choose_labels(scores, labels, self.fitted.decision) for scores in self.scores())
        return indicators.stack(map(indicators.of_mask, masks))

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether exactly the labels of each document are predicted: (n_documents,)."""
        return (lists_of_mask(self.predicted, self.fitted.labels) == self.actual).to_numpy()

    @property
    def evaluation(self) -> LabelEvaluation:
        """All measures."""
        return evaluate_lists(
            self.actual, self.fitted.labels, self.posterior_scores, self.predicted,
            self.watch.coverage.n_blank, self.watch.novelty.result)


def score_lists(fitted: Fitted, frame: Any, progress: Progress | None = None) -> ScoredLists:
    """Count the terms of documents with lists of labels, to score them later: see `evaluate`."""
    watch, counts, lists = ScoringWatch(fitted), list[SparseRows](), list[pl.Series]()

    def count(batch_and_labels: tuple[pl.DataFrame, Any]) -> tuple[SparseRows, pl.Series]:
        batch, actual = batch_and_labels
        rows = fitted.vocabulary.rows(batch, fitted.columns)
        watch.add(batch, rows, actual)
        return rows, batch[LABEL]

    with naming_source(frame):
        for rows, actual in map_in_threads(count, labelled_batches(
                fitted.scan(frame), fitted.columns, fitted.label, fitted.labels, progress,
                of_lists=True)):
            counts.append(rows)
            lists.append(actual)
    watch.warn()
    return ScoredLists(fitted, pl.concat(lists), counts, watch)
