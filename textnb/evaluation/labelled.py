"""Labelled documents in batches: their classes, and their scores by a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.decision import choose_labels
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import DataError
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.novelty import UNKNOWN, UNVERIFIED, NoveltyCount, codes_among
from textnb.frames.batches import Progress, batches
from textnb.frames.failures import naming_source
from textnb.frames.scan import scan
from textnb.frames.texts import labels_as
from textnb.learning.documents import labels_of
from textnb.learning.fitted import Fitted, fitted_text_model
from textnb.runtime.threads import map_in_threads
from textnb.scoring.scorer import Watch, lengths

# The column of labels in batches. No column of a user has this name.
LABEL = "\0label"


def known_labels(labels: pl.Series, classes: pl.Series, first_row: int = 0) -> NDArray[Any]:
    """The index of each document's class, -1 if unknown; for lists, a mask (n_rows, n_classes).

    Raises
    ------
    DataError
        If a label is null; its row is named.
    """
    row_labels = labels_of(labels, first_row)
    names = pl.Series(row_labels.classes.tolist(), dtype=classes.dtype)
    # If no row has a label, the codes are not of an integer type.
    codes = codes_among(names, classes)[row_labels.codes.astype(np.int64)]
    if not row_labels.is_multilabel:
        return codes
    actual = np.zeros((len(labels), len(classes)), dtype=np.bool_)
    is_known = codes >= 0
    actual[row_labels.rows[is_known], codes[is_known]] = True
    return actual


def unknown_labels(labels: pl.Series, classes: pl.Series) -> pl.Series:
    """The label of each document if it is not among the classes, else null.

    For lists of labels, those of each list that are not among the classes.

    Examples
    --------
    >>> unknown_labels(pl.Series(["a", "c"]), pl.Series(["a", "b"])).to_list()
    [None, 'c']
    >>> unknown_labels(pl.Series([["a", "c"], []]), pl.Series(["a", "b"])).to_list()
    [['c'], []]
    """
    known = classes.implode()
    if isinstance(labels.dtype, pl.List):
        return labels.list.eval(pl.element().filter(~pl.element().is_in(known)))
    return labels.set(labels.is_in(known), None)


def labelled_batches(
    rows: pl.LazyFrame, columns: Sequence[str], label: str | None, classes: pl.Series,
    progress: Progress | None = None, text: Sequence[str] | None = None, of_lists: bool = False,
) -> Iterator[tuple[pl.DataFrame, NDArray[Any]]]:
    """Read batches of columns of a test set, and their `known_labels`; without labels, all unknown.

    Parameters
    ----------
    columns : sequence of str
        The columns that a model reads.
    label : str or None
        The label column; batches hold it as `LABEL`. None if there is none.
    text : sequence of str, optional
        Columns whose size determines the number of rows of a batch; by default ``columns``.
    of_lists : bool
        Whether documents have lists of labels.

    Raises
    ------
    DataError
        If there are no rows, or a label is null.
    """
    label_type = pl.List(classes.dtype) if of_lists else classes.dtype
    label_columns = [] if label is None else [labels_as(label, rows, label_type).alias(LABEL)]
    n_read = 0
    for batch in batches(rows.select(*columns, *label_columns),
                         columns if text is None else text, progress=progress):
        if label is not None:
            yield batch, known_labels(batch[LABEL].rename(label), classes, n_read)
        elif of_lists:
            yield batch, np.zeros((batch.height, len(classes)), dtype=np.bool_)
        else:
            yield batch, np.full(batch.height, UNKNOWN)
        n_read += batch.height
    if not n_read:
        raise DataError.no_rows("the test set", "there is nothing to measure")


def mask_of_classes(actual: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """The mask of the documents whose class is in a mask of classes; None if there are none."""
    is_inside: NDArray[np.bool_] = (actual != UNKNOWN) & mask[np.maximum(actual, 0)]
    return is_inside if is_inside.any() else None


def held_out(model: Any, frame: Any, *, progress: Progress | None = None) -> HeldOut:
    """Score labelled documents that the model has not learned.

    The scores are not calibrated: `held.calibrated(model.calibration_)` calibrates them.

    Parameters
    ----------
    model : TextClassifier
        Fitted.
    frame : DataFrame, LazyFrame or path
        With the model's text and label columns.
    progress : callable, optional

    Returns
    -------
    HeldOut

    Raises
    ------
    DataError
        If there are no rows, or a label is null.

    Warns
    -----
    LearnedRowsWarning
        If the model has probably learned most of the rows: they hold far fewer terms that are new
        to their classes (for a list, to its label with the fewest documents) than new rows would.
        This is visible if about 45 % of the rows or more were learned. ``method`` says so too, and
        decisions and calibrations from these scores record it. ``novelty`` has the figures. If
        there are too few rows for a verdict, there is no warning, and ``method`` is "rows given as
        held out (can't be verified)".
    """
    held = score_held_out(fitted_text_model(model), frame, progress)
    if held.novelty is not None:
        held.novelty.warn()
    return held


def score_held_out(
    fitted: Fitted, frame: Any, progress: Progress | None = None, watch: Watch | None = None,
    labelled: bool = True,
) -> HeldOut:
    """Score documents as `held_out` does, without its warning.

    ``watch`` is called with each batch and its counts. If rows are not ``labelled``, ``actual`` has
    no meaning.
    """
    novelty = NoveltyCount(fitted) if labelled else None
    parts = []
    for batch, counts, part in scored_batches(fitted, frame, progress, labelled):
        if novelty is not None:
            novelty.add(counts, part.actual)
        if watch is not None:
            watch(batch, counts)
        parts.append(part)
    held = HeldOut.joined(parts)
    if novelty is None:
        return held
    return replace(held, method=novelty.result.method, novelty=novelty.result)


def scored_batches(
    fitted: Fitted, frame: Any, progress: Progress | None = None, labelled: bool = True
) -> Iterator[tuple[pl.DataFrame, SparseRows, HeldOut]]:
    """Read batches of documents, their counts, and their scores, which are not calibrated."""
    of_lists, labels = fitted.is_multilabel, fitted.labels.to_list()
    decision, is_unlearned = fitted.decision if of_lists else None, fitted.counts.class_count == 0

    def score(
        batch_and_labels: tuple[pl.DataFrame, NDArray[Any]]
    ) -> tuple[pl.DataFrame, SparseRows, HeldOut]:
        batch, actual = batch_and_labels
        counts = fitted.vocabulary.rows(batch, fitted.columns)
        scores = fitted.form.scores(counts)
        return batch, counts, HeldOut(
            fitted.classes, scores, actual, lengths(fitted, counts), method=UNVERIFIED,
            link="sigmoid" if of_lists else "softmax",
            unknown=unknown_labels(batch[LABEL], fitted.labels) if labelled else None,
            without_class=None if of_lists else mask_of_classes(actual, is_unlearned),
            answers=None if decision is None else choose_labels(scores, labels, decision))

    with naming_source(frame):
        rows = fitted.scan(frame) if labelled else scan(
            frame, text=fitted.columns, tokens=fitted.token_columns)
        yield from map_in_threads(score, labelled_batches(
            rows, fitted.columns, fitted.label if labelled else None, fitted.labels, progress,
            of_lists=of_lists))
