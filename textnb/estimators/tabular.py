"""The rows of a feature table, and what a classifier has learned of them as one frozen value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from textnb.errors import DataError, ParameterError, SchemaError, quantity
from textnb.frames.batches import Progress, batches
from textnb.frames.features import feature_columns, feature_names, matrix
from textnb.frames.kinds import select_columns
from textnb.frames.scan import scan_table
from textnb.frames.texts import as_int64, rows_in_memory, with_labels

# Rows that are read at a time.
ROWS = 8192


@dataclass(frozen=True, eq=False)
class FittedTable:
    """What `fit` made of a feature table, and what it was fitted with: replaced whole.

    Attributes
    ----------
    parameters : dict
        The classifier's, its estimator not fitted.
    columns, names : list of str
        The feature columns, and one name per feature.
    estimator : FormClassifier
        Fitted.
    labels : polars.Series
        The classes, in the type that predictions have.
    labels_beside : bool
        Whether labels came beside a table and not in it.
    """

    parameters: dict[str, Any]
    columns: list[str]
    names: list[str]
    estimator: Any
    labels: pl.Series
    labels_beside: bool = False

    @property
    def label(self) -> str:
        return str(self.parameters["label"])

    def checked(self, X: Any) -> pl.LazyFrame:
        """The frame, once its features are seen to be those that were learned."""
        frame = scan_table(select_columns(X, self.columns), self.columns)
        columns = feature_columns(frame, self.columns, None)
        if feature_names(frame, columns) != self.names:
            raise SchemaError("Array columns have other widths than those that were learned: "
                              f"expected {quantity(len(self.names), 'feature')}, "
                              f"{self.names[:8]!r} ...")
        return frame


def opened(
    X: Any, y: ArrayLike | None, parameters: dict[str, Any]
) -> tuple[pl.LazyFrame, list[str], list[str]]:
    """The frame to learn from, its feature columns, and the features' names."""
    frame = labelled(X, y, parameters)
    columns = feature_columns(frame, parameters["features"], parameters["label"])
    return frame, columns, feature_names(frame, columns)


def labelled(X: Any, y: ArrayLike | None, parameters: dict[str, Any]) -> pl.LazyFrame:
    """The frame with its labels, which may have come beside it."""
    label = parameters["label"]
    if y is None:
        return scan_table(X, parameters["features"], label)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        names = [f"x{i}" for i in range(X.shape[1])]
        if label in names:
            raise ParameterError(f"label={label!r} is a feature: an array's columns are "
                                 "called x0, x1 ...; name the label otherwise")
        X = pl.DataFrame(X, schema=names)
    return with_labels(rows_in_memory(X, label), y, label).lazy()


def read(
    frame: pl.LazyFrame, features: list[str], label: str | None, progress: Progress | None
) -> Iterator[tuple[NDArray[Any], pl.Series]]:
    """Matrices and labels of batches of rows."""
    columns: Sequence[str] = [*features, *([] if label is None else [label])]
    first = 0
    for batch in batches(frame.select(columns), rows=ROWS, progress=progress):
        if not batch.height:
            continue
        labels = batch[columns[-1]]
        if label is not None and labels.null_count():
            raise DataError.null_label(label, first + int(labels.is_null().arg_true()[0]))
        if isinstance(labels.dtype, (pl.Categorical, pl.Enum)):
            labels = labels.cast(pl.String)
        elif label is not None:
            labels = as_int64(labels)
        yield matrix(batch, features, first), labels
        first += batch.height
