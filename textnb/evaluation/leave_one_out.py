"""Leave-one-out, exactly and without fitting again: counts subtract."""

from __future__ import annotations

from typing import Any

import numpy as np

from textnb.bayes.event_model import EventModel
from textnb.bayes.known import check_event_model
from textnb.bayes.statistics import as_smoothing
from textnb.errors import ParameterError
from textnb.estimators.text import TextClassifier
from textnb.evaluation.held_out import HeldOut, in_classes
from textnb.frames.batches import Progress, batches
from textnb.frames.scan import reading, scan
from textnb.frames.texts import labels_as
from textnb.learning.documents import LabelledBatches
from textnb.learning.leave_one_out import LeaveOneOutReader
from textnb.learning.memory_limit import check_unpruned


def leave_one_out(
    model: TextClassifier, frame: Any, *, progress: Progress | None = None
) -> HeldOut:
    """Score each learned document by the model fitted to all documents but it.

    The document's counts are taken from the statistic, and what follows from them is worked out
    anew: priors, totals, and the vocabulary. Terms that no other document holds are not scored, and
    ``min_df`` and ``max_df`` are applied to the other documents. The scores are those of fitting
    again without the document, to rounding.

    Parameters
    ----------
    model : TextClassifier
        Fitted, of MultinomialNB, BernoulliNB or ComplementNB(norm=False).
    frame : DataFrame, LazyFrame or path
        The documents that the model has learned, in any order. They are read in batches: memory is
        set by the statistic, one batch and the result.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Returns
    -------
    HeldOut
        With ``method`` "leave-one-out". A class whose only document is left out has score -inf,
        and the document is ``without_class``;
        where no term is left, priors are all there is to the scores. An ``l`` that was chosen
        automatically is kept.

    Raises
    ------
    DataError
        If the documents are not those that were learned (what differs is named), or there are
        fewer than two.
    ParameterError
        If subtraction can't tell: ``max_features``, ``norm=True``, an array ``l`` without a given
        vocabulary, and NBLogisticRegression need k folds.

    Examples
    --------
    >>> import polars as pl
    >>> train = pl.DataFrame({"text": ["aa aa", "aa bb", "bb"], "label": ["x", "x", "y"]})
    >>> left_out = leave_one_out(TextClassifier().fit(train), train)
    >>> np.exp(left_out.scores).round(4).tolist()  # P(text, class) without the text
    [[0.125, 0.0556], [0.0938, 0.1111], [0.3333, 0.0]]
    """
    event_model = model_of_counts(model)
    leaving, corpus = left_out_documents(model, frame, event_model, progress)
    scorer = leaving.whole.scorer(
        as_smoothing(event_model.l, len(model.fitted_.terms)))
    with reading(frame):
        parts = [(scorer(rows), rows.codes, rows.lengths) for rows in leaving.rows(corpus)]
    scores, actual, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
    alone = leaving.statistics.counts.class_count <= 1
    return HeldOut(model.classes_, scores, actual, lengths, "leave-one-out",
                   without_class=in_classes(actual, alone))


def model_of_counts(model: TextClassifier) -> EventModel:
    """The model's event model; ParameterError where it does not learn by counting."""
    if not isinstance(model, TextClassifier):
        raise ParameterError.out_of_range("model", "a TextClassifier", type(model).__name__)
    event_model = model.fitted_.solved_model
    if not event_model.from_counts:
        raise ParameterError(f"{event_model.name} learns from all documents at once, and "
                             "none can be subtracted: use k folds")
    check_event_model(event_model, "leave-one-out by subtraction")
    return event_model


def left_out_documents(
    model: TextClassifier, frame: Any, event_model: EventModel, progress: Progress | None
) -> tuple[LeaveOneOutReader, LabelledBatches]:
    """What leaves documents out of a model, and the documents as it reads them."""
    model.check_unchanged("leaving documents out")
    check_unpruned(model.pruned_, "leaving documents out")
    settings = model.fitted_.settings
    leaving = LeaveOneOutReader.of(
        event_model, model.statistics_, settings.limits, settings.vocabulary, settings.binary)
    names, label = settings.columns, settings.label
    with reading(frame):
        lazy = scan(frame, text=names, label=label)
        rows = lazy.select(*names, labels_as(label, lazy, leaving.classes.dtype))
    return leaving, LabelledBatches(
        batches(rows, names, progress=progress), settings.count_spec)
