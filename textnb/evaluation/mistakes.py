"""The rows that a model answers wrongly, which "train on error" learns."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from textnb.errors import ParameterError
from textnb.frames.batches import Progress
from textnb.frames.kinds import rows_in_kind_of, select_columns
from textnb.frames.texts import labels_as
from textnb.learning.fitted import Fitted, check_one_label, check_texts
from textnb.runtime.settings import is_number
from textnb.scoring.columns import Answers
from textnb.scoring.texts import predict

_ACTUAL = "__textnb_actual"


def mistakes(
    model: Any, frame: Any, *, within: float | None = None, progress: Progress | None = None
) -> Any:
    """Select the labelled rows for which a model's answer is wrong, missing, or nearly so.

    Learning these alone (train on error) keeps a filter small and quick to correct. Its counts are
    then no sample of the mail: the shares of classes and the frequencies of words are those of the
    hard messages, so priors and probabilities are biased towards them, and a calibration or
    guarantee from before no longer holds. All rows are scored by the model as it is, so the result
    does not depend on their order.

    Parameters
    ----------
    model : TextClassifier
        Fitted. If it has a decision, the decision is the answer, and "unsure" is a mistake.
    frame : table or path
        With the model's text and label columns.
    within : float, optional
        For two classes: select the rows, too, whose answer is right by less than this log-odds
        (margin, for scores that are none) above the least that the answer needs. Training on these
        is known as a thick threshold: the bias is less than that of mistakes alone.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Returns
    -------
    table of the kind that came (see `TextClassifier.predict`)
        The model's text columns and the label, in order. A label that the model does not know is a
        mistake, and so is a list that is not predicted as a whole. A row with a null label is kept,
        so that learning the rows refuses it by name.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> model = TextClassifier().fit(["good", "bad"], ["pos", "neg"])
    >>> rows = pl.DataFrame({"text": ["good", "bad"], "label": ["pos", "pos"]})
    >>> mistakes(model, rows).rows()
    [('bad', 'pos')]
    """
    fitted = check_texts(model)
    if within is not None:
        check_one_label(fitted, "within")
        _check_within(within, len(fitted.classes))
    names, label = fitted.columns, fitted.label
    lazy = fitted.scan(select_columns(frame, [*names, label]))
    # Renamed, because a label column named "predicted" would clash with the answer's name.
    rows = lazy.select(*names, labels_as(label, lazy, fitted.label_type).alias(_ACTUAL))
    scored: pl.LazyFrame = predict(
        fitted, rows, Answers(probability=within is not None), progress)
    # Thresholds of labels are in what is predicted.
    decides = fitted.decision is not None and not fitted.is_multilabel
    answer = "decision" if decides else "predicted"
    right = pl.col(answer).eq_missing(pl.col(_ACTUAL)) & pl.col(_ACTUAL).is_not_null()
    if within is not None:
        right = right & (_surplus(fitted, answer) >= within)
    columns = {**{name: pl.col(name) for name in names}, label: pl.col(_ACTUAL)}
    return rows_in_kind_of(frame, scored, ~right, columns)


def _check_within(within: Any, n_classes: int) -> None:
    if not is_number(within) or not 0 < within < math.inf:
        raise ParameterError.out_of_range("within", "log-odds above 0", within)
    if n_classes != 2:
        raise ParameterError.naming("{within} is for models of two classes; got {n}", n=n_classes)


def _surplus(fitted: Fitted, answer: str) -> pl.Expr:
    """How far the log-odds of the answer, one of two classes, are above the least it needs."""
    p = pl.col("probability")
    odds = p.log() - (1.0 - p).log()
    # A threshold below 0 gives the class that is less probable.
    own = pl.when(pl.col(answer) == pl.col("predicted")).then(odds).otherwise(-odds)
    if fitted.decision is None:
        return own
    least = fitted.decision.thresholds
    return own - pl.col(answer).replace_strict([*least], [*least.values()], default=0.0,
                                               return_dtype=pl.Float64)
