"""Exact leave-one-out by subtraction of counts, without fitting again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textnb.bayes.counts import weights_not_exact
from textnb.bayes.statistics import as_smoothing
from textnb.errors import DataError, ParameterError
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.labelled import mask_of_classes
from textnb.frames.batches import Progress, batches
from textnb.frames.failures import naming_source
from textnb.frames.texts import labels_as
from textnb.learning.documents import LabelledBatches
from textnb.learning.fitted import Fitted, fitted_text_model
from textnb.learning.fitting import require_counts
from textnb.learning.leave_one_out import LeaveOneOutReader
from textnb.models.base import Model

if TYPE_CHECKING:
    from textnb.classifiers.text import TextClassifier

# The maximum number of scores, of 8 bytes each, that `check_leave_one_out` allows: 256 MiB.
_MAX_SCORES = 1 << 25
# The subject of the error for a model whose parameters were changed after its fit.
LEAVING_OUT = "leaving documents out"


def leave_one_out(
    model: TextClassifier | Fitted, frame: Any, *, progress: Progress | None = None
) -> Any:
    """Score each learned document by the model fitted to all documents but it.

    The document's counts are subtracted from the model's, and priors, totals and the vocabulary are
    computed from the difference: terms that no other document holds are not scored, and ``min_df``
    and ``max_df`` are applied to the other documents. The scores are those of fitting again without
    the document, to rounding.

    Parameters
    ----------
    model : TextClassifier
        Fitted, of a model that learns by counting, such as MultinomialNB.
    frame : DataFrame, LazyFrame or path
        The documents that the model has learned, in any order. They are read in batches: the
        model's counts, one batch and the result are in memory.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Returns
    -------
    HeldOut
        With ``method`` "leave-one-out". A class whose only document is left out has the score -inf,
        and the document is ``without_class``. For lists of labels, documents are collected in
        memory, and a label that no other document has scores -inf. If no term is left, the scores
        are the priors. An ``l`` that was chosen automatically stays the same.

    Raises
    ------
    DataError
        If the documents are not those that were learned (what differs is named), or there are
        fewer than two.
    ParameterError
        If subtraction can't give the scores: ``max_features``, ``norm=True``, an array ``l``
        without a fixed vocabulary, and models that learn from all documents at once need k folds.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> from textnb import TextClassifier
    >>> train = pl.DataFrame({"text": ["aa aa", "aa bb", "bb"], "label": ["x", "x", "y"]})
    >>> left_out = leave_one_out(TextClassifier().fit(train), train)
    >>> np.exp(left_out.scores).round(4).tolist()  # P(text, class) without the text
    [[0.125, 0.0556], [0.0938, 0.1111], [0.3333, 0.0]]
    """
    fitted = fitted_text_model(model, LEAVING_OUT)
    counting_model = model_that_counts(fitted)
    reader, documents = open_leave_one_out(fitted, frame, counting_model, progress)
    with naming_source(frame):
        # The scores for each smoothing parameter, here a single one.
        left_out, = reader.leave_out(documents, [as_smoothing(counting_model.l, len(fitted.terms))])
    actual, link = left_out.labels.actual, left_out.labels.link
    # The class of a single document is not learned by the model without the document. Lists of
    # labels have no such classes.
    is_single = reader.statistics.class_count <= 1
    without_class = mask_of_classes(actual, is_single) if link == "softmax" else None
    return HeldOut(fitted.classes, left_out.scores, actual, left_out.lengths, "leave-one-out",
                   link=link, without_class=without_class)


def check_leave_one_out(fitted: Fitted) -> None:
    """Check that `leave_one_out` can measure a model, and that its scores fit in memory.

    Raises
    ------
    TextnbError
        If not; the message says why.
    """
    counting_model = model_that_counts(fitted)
    counts = require_counts(fitted)
    if counts.has_weights:
        raise weights_not_exact()
    if counts.pruned:
        raise ParameterError.naming_settings("{memory_limit} left out terms, and what they counted")
    if len(counts.classes) < 2:
        raise DataError("there is one class, so that each answer is right")
    # Raises an error if rows can't be left out by subtraction.
    _reader(fitted, counting_model)
    if counts.documents * len(counts.classes) > _MAX_SCORES:
        raise ParameterError("the scores of all rows would take more than 256 MiB: textnb validate "
                             "takes folds")


def model_that_counts(fitted: Fitted) -> Model:
    """The model with the ``l`` of its fit; ParameterError if it does not learn by counting."""
    model = fitted.model_with_chosen_l
    if not model.from_counts:
        raise ParameterError(f"{model.name} learns from all documents at once, and "
                             "none can be subtracted: use k folds")
    return model


def open_leave_one_out(
    fitted: Fitted, frame: Any, model: Model, progress: Progress | None
) -> tuple[LeaveOneOutReader, LabelledBatches]:
    """Open the documents of a model, and the reader that leaves each of them out."""
    settings, reader = fitted.settings, _reader(fitted, model)
    names, label = settings.columns, settings.label
    with naming_source(frame):
        lazy = fitted.scan(frame)
        rows = lazy.select(*names, labels_as(label, lazy, fitted.label_type))
    return reader, LabelledBatches(batches(rows, names, progress=progress), settings.count_spec)


def _reader(fitted: Fitted, model: Model) -> LeaveOneOutReader:
    settings = fitted.settings
    return LeaveOneOutReader(
        model, require_counts(fitted), settings.limits, settings.vocabulary, settings.binary)
