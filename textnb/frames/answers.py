"""Predictions in the kind of table that went in: Polars, pandas, PyArrow or DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

import numpy as np
import polars as pl

from textnb.errors import ParameterError, SchemaError
from textnb.frames.kinds import INSTALL_PYARROW, Kind, kind_of, names_of, select_columns


def to_kind_of(X: Any, predicted: pl.LazyFrame, read: Sequence[str]) -> Any:
    """Predictions in the kind of the table that went in.

    Parameters
    ----------
    X : table or path
    predicted : LazyFrame
        The rows of ``select_columns(X, read)`` in order, with predictions as further columns.
    read : sequence of str

    Returns
    -------
    LazyFrame for a LazyFrame or a path; pandas.DataFrame for a pandas one, pyarrow.Table or
    RecordBatch for these: the caller's own columns, unchanged, and the predictions;
    RecordBatchReader for one; pyarrow.Table for a DuckDB relation; polars.DataFrame for all others.

    Raises
    ------
    SchemaError
        If the table has a column with the name of a prediction's.
    """
    kind = kind_of(X)
    match kind:
        case Kind.LAZY | None:
            return predicted
        case Kind.POLARS | Kind.COLUMNS | Kind.ROWS | Kind.ARROW_STREAM:
            return predicted.collect()
        case Kind.DUCKDB:
            return _to_arrow(predicted.collect())
        case Kind.ARROW_READER:
            return _to_arrow(predicted.collect()).to_reader()
        case Kind.PANDAS | Kind.ARROW_TABLE | Kind.ARROW_BATCH:
            added = [name for name in predicted.collect_schema().names() if name not in read]
            if taken := [name for name in added if name in names_of(X)]:
                raise SchemaError.column_exists(taken[0])
            answers = predicted.select(added).collect()
            if kind is Kind.PANDAS:
                return X.assign(**{name: _pandas_values(answers[name]) for name in added})
            table = _to_arrow(answers)
            for name in added:
                column = table.column(name)
                X = X.append_column(
                    name, column if kind is Kind.ARROW_TABLE else column.combine_chunks())
            return X
        case _:
            assert_never(kind)


def rows_in_kind_of(
    X: Any, judged: pl.LazyFrame, keep: pl.Expr, columns: Mapping[str, pl.Expr]
) -> Any:
    """Some rows of a table in their order, in its own kind.

    Parameters
    ----------
    X : table or path
    judged : LazyFrame
        A row per row of X, in their order.
    keep : Expr
        True for the rows that are wanted, over ``judged``.
    columns : dict of str to Expr
        Names of columns of X, and each of them as an expression over ``judged``.

    Returns
    -------
    See `to_kind_of`.
    """
    kind = kind_of(X)
    if kind not in (Kind.PANDAS, Kind.ARROW_TABLE, Kind.ARROW_BATCH):
        wanted = judged.filter(keep).select(
            expression.alias(name) for name, expression in columns.items())
        return to_kind_of(X, wanted, [])
    mask = judged.select(keep).collect().to_series().fill_null(False)
    own = select_columns(X, list(columns))
    return own[mask.to_numpy()] if kind is Kind.PANDAS else own.filter(mask.to_arrow())


def _pandas_values(values: pl.Series) -> Any:
    """Values for a new pandas column, in the order of the rows, independent of the index.

    Integers and Booleans with nulls are objects: pandas would turn them into floats.
    """
    if values.is_empty() and not values.dtype.is_numeric() and values.dtype != pl.Boolean:
        # pandas would turn an empty list into floats.
        return np.empty(0, dtype=object)
    whole = values.dtype.is_integer() or values.dtype == pl.Boolean
    if values.dtype.is_float() or (whole and not values.null_count()):
        return values.to_numpy(writable=True)
    return np.array(values.to_list(), dtype=object) if whole else values.to_list()


def _to_arrow(frame: pl.DataFrame) -> Any:
    try:
        return frame.to_arrow()
    except ImportError as error:
        raise ParameterError("the answer is a PyArrow Table, and PyArrow is not installed; "
                             f"{INSTALL_PYARROW}") from error
