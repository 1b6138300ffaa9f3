"""Measures of predictions where documents have any number of labels, by scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from textnb.errors import DataError
from textnb.evaluation.held_out_labels import check_lists
from textnb.evaluation.indicators import indicator, measures, measures_of_labels
from textnb.frames.batches import Progress
from textnb.frames.failures import reading
from textnb.frames.scan import scan
from textnb.learning.fitted import Fitted
from textnb.scoring.texts import coverage_of, predict_lazily

_ACTUAL = "\0actual"


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
    labels : DataFrame
        ``label``, ``documents`` that have it, ``predicted`` (how many are said to have it),
        ``precision``, ``recall``, ``f1``: null where it is not defined.
    unknown_labels : list
        Labels of the documents that the model does not know; they count as missed.
    textless : int
        Documents without text.
    """

    documents: int
    micro_f1: float
    macro_f1: float
    example_f1: float
    subset_accuracy: float
    hamming_loss: float
    labels: pl.DataFrame
    unknown_labels: list[Any]
    textless: int = 0

    def to_dict(self) -> dict[str, Any]:
        """All measures, ready for JSON."""
        return {**{name: value for name, value in vars(self).items() if name != "labels"},
                "labels": self.labels.to_dicts()}


def evaluate_labels(
    fitted: Fitted, frame: Any, progress: Progress | None = None
) -> LabelEvaluation:
    """Score documents with lists of labels: see `textnb.evaluate`.

    Raises
    ------
    DataError
        If there are no rows, or a list is null or holds a null.
    """
    coverage, kind = coverage_of(fitted), pl.List(fitted.labels.dtype)
    with reading(frame):
        rows = scan(frame, text=fitted.columns, label=fitted.label, tokens=fitted.token_columns,
                    multilabel=True)
        check_lists(rows, fitted.label)
        asked = rows.select(*fitted.columns, pl.col(fitted.label).cast(kind).alias(_ACTUAL))
        pairs = predict_lazily(fitted, asked, progress=progress, watch=coverage.add).select(
            _ACTUAL, "predicted").collect()
    if not pairs.height:
        raise DataError.no_rows("the test set", "there is nothing to measure")
    faulty = pairs[_ACTUAL].is_null() | pairs[_ACTUAL].list.eval(
        pl.element().is_null()).list.any()
    if faulty.any():
        raise DataError.null_label(fitted.label, int(faulty.arg_true()[0]))
    coverage.warn()
    return evaluation_of_lists(
        pairs[_ACTUAL], pairs["predicted"], fitted.labels, coverage.textless)


def evaluation_of_lists(
    actual: pl.Series, predicted: pl.Series, known: pl.Series, textless: int = 0
) -> LabelEvaluation:
    """Compare lists of labels with predicted ones.

    Parameters
    ----------
    actual, predicted : Series of lists
    known : Series
        The model's labels.
    textless : int
        Documents without text.

    Examples
    --------
    >>> result = evaluation_of_lists(
    ...     pl.Series([["a", "b"], ["a"], []], dtype=pl.List(pl.String)),
    ...     pl.Series([["a"], ["a"], []], dtype=pl.List(pl.String)), pl.Series(["a", "b"]))
    >>> round(result.micro_f1, 4), round(result.example_f1, 4), round(result.subset_accuracy, 4)
    (0.8, 0.8889, 0.6667)
    """
    found = actual.explode(empty_as_null=False, keep_nulls=False)
    labels = pl.concat([known, found.cast(known.dtype).alias(known.name)]).unique().sort()
    true, said = (indicator(*_places(lists, labels), len(labels)) for lists in (actual, predicted))
    table = pl.DataFrame({"label": labels, **measures_of_labels(true, said)}).with_columns(
        pl.col("precision", "recall", "f1").fill_nan(None))
    return LabelEvaluation(
        documents=len(actual), labels=table, textless=textless,
        unknown_labels=labels.filter(~labels.is_in(known.implode())).to_list(),
        **measures(true, said))


def _places(lists: pl.Series, labels: pl.Series) -> tuple[Any, Any]:
    """The places of all documents' labels among the sorted ones, and how many each document has."""
    lists = lists.cast(pl.List(labels.dtype)).list.unique(maintain_order=True)
    flat = lists.explode(empty_as_null=False, keep_nulls=False)
    if labels.dtype == pl.Boolean:
        labels, flat = labels.cast(pl.Int8), flat.cast(pl.Int8)
    return (labels.search_sorted(flat).to_numpy().astype(np.int64),
            lists.list.len().cast(pl.Int64).to_numpy())
