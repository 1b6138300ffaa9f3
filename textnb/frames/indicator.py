"""Labels as a matrix of 0 and 1, as scikit-learn has them: a column for each label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError, ParameterError, quantity
from textnb.frames.kinds import as_polars, kind_of


@dataclass(frozen=True)
class Indicator:
    """The columns of a matrix of labels.

    Attributes
    ----------
    labels : list
        The label of each column: the column's name in a table, otherwise its number from 0.
    is_sparse : bool
        Whether the matrix was a SciPy sparse matrix.
    """

    labels: list[Any]
    is_sparse: bool = False

    def check_same(self, other: Indicator) -> None:
        """Raise DataError unless the other matrix has the same columns."""
        if self.labels != other.labels:
            raise DataError(
                f"y has {quantity(len(other.labels), 'column')} of labels, and the model has "
                f"learned {quantity(len(self.labels), 'column')}: give the same columns, in the "
                "same order; 0 in each row for a label that no row has")

    def columns_of(self, classes: NDArray[Any]) -> NDArray[np.int64]:
        """The column of each class that a model has learned: int64 (n_classes,)."""
        column_of = {label: column for column, label in enumerate(self.labels)}
        return np.array([column_of[label] for label in classes.tolist()], dtype=np.int64)

    def widen(self, values: NDArray[Any], classes: NDArray[Any], missing: float) -> NDArray[Any]:
        """Widen values from a column per class to one per label; ``missing`` fills new columns."""
        widened = np.full((len(values), len(self.labels)), missing, dtype=values.dtype)
        widened[:, self.columns_of(classes)] = values
        return widened


def split_indicator(y: Any) -> tuple[Any, Indicator | None]:
    """Split a matrix of 0 and 1 into lists of labels and its columns; return other labels as is.

    Parameters
    ----------
    y : array or sparse matrix (n_documents, n_labels), table, or any other labels

    Returns
    -------
    (Series of lists, Indicator) or (labels, None)

    Raises
    ------
    DataError
        If a matrix holds anything but 0 and 1.

    Examples
    --------
    >>> lists, indicator = split_indicator(np.array([[1, 0, 1], [0, 0, 0]]))
    >>> lists.to_list(), indicator.labels
    ([[0, 2], []], [0, 1, 2])
    >>> split_indicator(["a", "b"])
    (['a', 'b'], None)
    """
    is_sparse = hasattr(y, "tocoo") and getattr(y, "ndim", 0) == 2
    labels: list[Any]
    if is_sparse:
        entries = y.tocoo()
        row, column, values = entries.row, entries.col, entries.data
        labels = list(range(y.shape[1]))
    elif isinstance(y, np.ndarray) and y.ndim == 2 and y.dtype.kind in "biuf" and y.shape[1] > 1:
        row, column = np.nonzero(y)
        values, labels = y[row, column], list(range(y.shape[1]))
    elif _is_table_of_labels(y):
        frame = as_polars(y).lazy().collect()
        if nulls := [name for name in frame.columns if frame[name].null_count()]:
            raise DataError.null_label(nulls[0], int(frame[nulls[0]].is_null().arg_true()[0]))
        dense, labels = frame.to_numpy(), frame.columns
        row, column = np.nonzero(dense)
        values = dense[row, column]
    else:
        return y, None
    invalid = np.flatnonzero((values != 0) & (values != 1))
    if len(invalid):
        i = invalid[0]
        raise DataError(
            f"y is a matrix of labels, of 0 and 1, and holds {values[i]} in row {row[i]}, column "
            f"{labels[column[i]]!r} (counted from 0): give y != 0 if it shall mean 1")
    # A sparse matrix may store zeros, and may store its entries in any order.
    row, column = row[values != 0], column[values != 0]
    order = np.lexsort((column, row))
    names = pl.Series(labels).gather(pl.Series(column[order].astype(np.int64)))
    pairs = pl.DataFrame({"row": row[order].astype(np.int64), "label": names})
    all_rows = pl.DataFrame({"row": np.arange(y.shape[0], dtype=np.int64)})
    lists = all_rows.join(pairs.group_by("row").agg("label"), on="row", how="left",
                          maintain_order="left")["label"]
    return lists.fill_null(pl.Series([[]], dtype=lists.dtype)), Indicator(labels, is_sparse)


def check_indicator(model_indicator: Indicator | None, y: Any) -> tuple[Any, Indicator | None]:
    """As `split_indicator`, with a check that the model has learned the same columns.

    ``model_indicator`` has the columns that the model has learned; None if it has learned other
    labels.

    Raises
    ------
    ParameterError
        If the model has learned a matrix of labels and y is not one, or the reverse.
    DataError
        If the columns differ.
    """
    lists, indicator = split_indicator(y)
    if (model_indicator is None) != (indicator is None) and y is not None:
        raise ParameterError("the model has learned " + (
            "lists of labels, and y is a matrix of them: give lists" if model_indicator is None else
            "a matrix of labels, and y is none: give a matrix with the same columns"))
    if model_indicator is not None and indicator is not None:
        model_indicator.check_same(indicator)
    return lists, indicator or model_indicator


def _is_table_of_labels(y: Any) -> bool:
    """Whether a table has several columns, all of them booleans or integers."""
    if kind_of(y) is None or not hasattr(y, "columns"):
        return False
    schema = as_polars(y).lazy().collect_schema()
    return len(schema) > 1 and all(
        dtype == pl.Boolean or dtype.is_integer() for dtype in schema.dtypes())
