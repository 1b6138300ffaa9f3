"""Reading rows of feature tables, and the fitted state of a `TableClassifier`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from textnb.errors import DataError, ParameterError, SchemaError, quantity
from textnb.frames.batches import Progress, batches
from textnb.frames.features import feature_columns, feature_matrix, feature_names
from textnb.frames.kinds import select_columns
from textnb.frames.scan import check_kind_of_labels, scan_table
from textnb.frames.texts import integers_as_int64, rows_in_memory, with_labels

# The number of rows that are read at a time.
BATCH_ROWS = 8192


@dataclass(frozen=True, eq=False)
class FittedTable:
    """The result of a `fit` on a feature table, with its parameters. Each `fit` makes a new one.

    Attributes
    ----------
    parameters : dict
        Parameters of the classifier, with the unfitted estimator.
    columns, feature_names : list of str
        The feature columns, and one name per feature: an Array column has several features.
    estimator : FormClassifier
        The fitted estimator.
    labels : polars.Series
        The classes, with the data type of predictions.
    has_separate_labels : bool
        Whether labels were passed separately from the table.
    """

    parameters: dict[str, Any]
    columns: list[str]
    feature_names: list[str]
    estimator: Any
    labels: pl.Series
    has_separate_labels: bool = False

    @property
    def label(self) -> str:
        return str(self.parameters["label"])

    def predict(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The predicted class of each row of a matrix of finite numbers."""
        labels: NDArray[Any] = self.estimator.best_classes(self.estimator.score_rows(rows))
        return labels

    def scan(self, X: Any) -> pl.LazyFrame:
        """Scan a table. Raises SchemaError if its features differ from those of `fit`."""
        frame = scan_table(select_columns(X, self.columns), self.columns)
        columns = feature_columns(frame, self.columns)
        if feature_names(frame, columns) != self.feature_names:
            raise SchemaError("Array columns have other widths than those that were learned: "
                              f"expected {quantity(len(self.feature_names), 'feature')}, "
                              f"{self.feature_names[:8]!r} ...")
        return frame


def scan_to_learn(
    X: Any, y: ArrayLike | None, parameters: dict[str, Any]
) -> tuple[pl.LazyFrame, list[str], list[str]]:
    """The frame to learn from, its feature columns, and the features' names.

    ``parameters`` are those of the classifier: ``features`` and ``label``.
    """
    frame = scan_rows(X, y, parameters)
    columns = feature_columns(frame, parameters["features"], parameters["label"])
    return frame, columns, feature_names(frame, columns)


def scan_rows(X: Any, y: ArrayLike | None, parameters: dict[str, Any]) -> pl.LazyFrame:
    """The frame with its label column, to which ``y`` is added if it is given."""
    label = parameters["label"]
    if y is None:
        return scan_table(X, parameters["features"], label)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        names = [f"x{i}" for i in range(X.shape[1])]
        if label in names:
            raise ParameterError(f"label={label!r} is a feature: an array's columns are "
                                 "called x0, x1 ...; give the label another name")
        X = pl.DataFrame(X, schema=names)
    frame = with_labels(rows_in_memory(X, label), y, label).lazy()
    return check_kind_of_labels(frame, label, of_lists=False)


def read_rows(
    frame: pl.LazyFrame, features: list[str], label: str | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[NDArray[Any], pl.Series]]:
    """The feature matrix and the labels of each batch.

    Without ``label``, there are no labels: callers ignore the column that stands in their place.
    """
    columns: Sequence[str] = [*features, *([] if label is None else [label])]
    first_row = 0
    for batch in batches(frame.select(columns), max_rows=BATCH_ROWS, progress=progress):
        if not batch.height:
            continue
        labels = batch[columns[-1]]
        if label is not None and labels.null_count():
            raise DataError.null_label(label, first_row + int(labels.is_null().arg_true()[0]))
        if isinstance(labels.dtype, (pl.Categorical, pl.Enum)):
            labels = labels.cast(pl.String)
        elif label is not None:
            labels = integers_as_int64(labels)
        yield feature_matrix(batch, features, first_row), labels
        first_row += batch.height
