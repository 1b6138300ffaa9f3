"""The columns of predictions where a document has any number of labels: lists, not one class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from textnb.bayes.decision import Decision, choose_labels
from textnb.bayes.forms import Floats, log_sigmoid
from textnb.learning.fitted import Fitted
from textnb.scoring.columns import EXPLANATION, Answers, best_columns
from textnb.text.matrix import as_csr


def label_schema(
    labels: pl.Series, answers: Answers, calibrated: bool = False
) -> dict[str, pl.DataType]:
    """Names and types of the answers' columns.

    ``explanation`` is a list: of each predicted label its ``score``, ``intercept`` and terms.
    """
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
    if answers.explain:
        schema["explanation"] = pl.List(pl.Struct({
            "label": labels.dtype, "score": pl.Float64, "intercept": pl.Float64,
            "explanation": EXPLANATION}))
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
        order = best_columns(odds, answers.top)
        row, place = np.repeat(np.arange(len(scores)), order.shape[1]), order.reshape(-1)
        columns["top"] = lists_of(
            row, _with_probabilities(labels, place, odds[row, place]), len(scores))
    if calibrated is not None and (answers.probability or answers.top):
        columns["calibrated"] = pl.repeat(True, len(scores), dtype=pl.Boolean, eager=True)
    if answers.scores:
        columns["scores"] = pl.DataFrame(
            {str(label): scores[:, k] for k, label in enumerate(labels)}).to_struct()
    return {name: column.cast(schema[name]) for name, column in columns.items()}


def label_explanation(
    explained: pl.DataFrame, predicted: Any, thresholds: Floats
) -> pl.DataFrame:
    """The entries of explained labels of one text, a row each: see `TextClassifier.explain`.

    Parameters
    ----------
    explained : DataFrame
        From `Scorer.explain_labels`.
    predicted : bool (n_labels,)
    thresholds : float64 (n_labels,)
        Of the same labels.
    """
    entries = []
    for row, has, threshold in zip(
            explained.rows(), predicted.tolist(), thresholds.tolist(), strict=True):
        label, score, intercept, terms = row
        entries.append((label, has, score, threshold, "intercept", None, None, intercept))
        entries += [(label, has, score, threshold, "other terms" if entry["term"] is None
                     else "term", *entry.values()) for entry in terms]
    return pl.DataFrame(entries, orient="row", schema={
        "label": explained.schema["label"], "predicted": pl.Boolean, "score": pl.Float64,
        "threshold": pl.Float64, "part": pl.String, "term": pl.String, "count": pl.Int64,
        "contribution": pl.Float64})


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


def indicator_of(fitted: Fitted, blocks: Iterable[Floats]) -> Any:
    """The labels that are predicted as the matrix that y was: int64, dense or csr_array."""
    assert fitted.indicator is not None
    labels = fitted.labels.to_list()
    has = np.concatenate([np.zeros((0, len(labels)), dtype=np.bool_), *(
        choose_labels(scores, labels, fitted.decision) for scores in blocks)])
    found = fitted.indicator.widen(has.astype(np.int64), fitted.classes, 0)
    return as_csr(found) if fitted.indicator.is_sparse else found
