"""The columns of predictions where a document has any number of labels: lists, not one class."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from textnb.bayes.decision import Decision, choose_labels
from textnb.bayes.forms import Floats
from textnb.bayes.label_form import log_sigmoid
from textnb.errors import ParameterError
from textnb.scoring.columns import Answers


def label_schema(
    labels: pl.Series, answers: Answers, calibrated: bool = False
) -> dict[str, pl.DataType]:
    """Names and types of the answers' columns.

    Raises
    ------
    ParameterError
        If the answers are none that labels have.
    """
    if answers.explain:
        raise ParameterError.multilabel("explain")
    of_label = pl.List(pl.Struct({"label": labels.dtype, "probability": pl.Float64}))
    schema: dict[str, pl.DataType] = {"predicted": pl.List(labels.dtype)}
    if answers.probability:
        schema["probability"] = of_label
    if answers.top:
        schema["top"] = of_label
    if calibrated and (answers.probability or answers.top):
        schema["calibrated"] = pl.Boolean()
    if answers.scores:
        schema["scores"] = pl.Struct({str(label): pl.Float64() for label in labels})
    return schema


def label_columns(
    scores: Floats, labels: pl.Series, answers: Answers, calibrated: Floats | None = None,
    decision: Decision | None = None,
) -> dict[str, pl.Series]:
    """The columns that follow from the scores of labels: float64 (n_rows, n_labels).

    Probabilities are those of the log-odds ``calibrated``, if there are any.
    """
    schema = label_schema(labels, answers, calibrated is not None)
    odds = scores if calibrated is None else calibrated
    row, place = np.nonzero(choose_labels(scores, labels.to_list(), decision))
    columns = {"predicted": lists_of(row, labels.gather(pl.Series(place)), len(scores))}
    if answers.probability:
        columns["probability"] = lists_of(
            row, _with_probabilities(labels, place, odds[row, place]), len(scores))
    if answers.top:
        # Stable, so that of equal scores the first label comes first.
        order = np.argsort(-odds, axis=1, kind="stable")[:, :answers.top]
        row, place = np.repeat(np.arange(len(scores)), order.shape[1]), order.reshape(-1)
        columns["top"] = lists_of(
            row, _with_probabilities(labels, place, odds[row, place]), len(scores))
    if calibrated is not None and (answers.probability or answers.top):
        columns["calibrated"] = pl.repeat(True, len(scores), dtype=pl.Boolean, eager=True)
    if answers.scores:
        columns["scores"] = pl.DataFrame(
            {str(label): scores[:, k] for k, label in enumerate(labels)}).to_struct()
    return {name: column.cast(schema[name]) for name, column in columns.items()}


def _with_probabilities(labels: pl.Series, place: Any, scores: Floats) -> pl.Series:
    return pl.DataFrame({"label": labels.gather(pl.Series(place)),
                         "probability": np.exp(log_sigmoid(scores))}).to_struct()


def lists_of(row: Any, values: pl.Series, n_rows: int) -> pl.Series:
    """The values of each row as a list, in their order; rows are sorted.

    Examples
    --------
    >>> lists_of(np.array([0, 2, 2]), pl.Series(["a", "b", "c"]), 3).to_list()
    [['a'], [], ['b', 'c']]
    """
    listed = pl.DataFrame({"row": np.asarray(row, dtype=np.int64), "value": values}).group_by(
        "row", maintain_order=True).agg("value")
    every = pl.DataFrame({"row": np.arange(n_rows, dtype=np.int64)})
    joined = every.join(listed, on="row", how="left", maintain_order="left")["value"]
    return joined.fill_null(pl.Series([[]], dtype=pl.List(values.dtype)))
