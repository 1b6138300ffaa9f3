"""The rows that a model answers wrongly, which "train on error" learns."""

from __future__ import annotations

from typing import Any

import polars as pl

from textnb.frames.answers import rows_in_kind_of
from textnb.frames.batches import Progress
from textnb.frames.kinds import select_columns
from textnb.frames.scan import scan
from textnb.frames.texts import labels_as
from textnb.learning.fitted import check_texts
from textnb.scoring.texts import predict

_ACTUAL = "__textnb_actual"


def mistakes(
    model: Any, frame: Any, *, progress: Progress | None = None
) -> Any:
    """Select the labelled rows for which a model's answer is wrong or missing.

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
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Returns
    -------
    table of the kind that came (see `TextClassifier.predict`)
        The model's text columns and the label, in order. A label that the model does not know is a
        mistake. A row with a null label is kept, so that learning the rows refuses it by name.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> model = TextClassifier().fit(["good", "bad"], ["pos", "neg"])
    >>> rows = pl.DataFrame({"text": ["good", "bad"], "label": ["pos", "pos"]})
    >>> mistakes(model, rows).rows()
    [('bad', 'pos')]
    """
    fitted = check_texts(model)
    names, label, dtype = fitted.columns, fitted.label, fitted.labels.dtype
    lazy = scan(select_columns(frame, [*names, label]), text=names, label=label,
                tokens=fitted.token_columns)
    # Renamed, because a label column named "predicted" would clash with the answer's name.
    rows = lazy.select(*names, labels_as(label, lazy, dtype).alias(_ACTUAL))
    scored: pl.LazyFrame = predict(fitted, rows, progress=progress)
    answer = "predicted" if fitted.decision is None else "decision"
    right = pl.col(answer).eq_missing(pl.col(_ACTUAL)) & pl.col(_ACTUAL).is_not_null()
    columns = {**{name: pl.col(name) for name in names}, label: pl.col(_ACTUAL)}
    return rows_in_kind_of(frame, scored, ~right, columns)
