"""Feature tables: which columns are features, and their values as a matrix, checked.

A feature is a numeric column; an Array column of numbers stands for as many features as its width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError, SchemaError


def feature_columns(frame: pl.LazyFrame, features: Any, label: str | None) -> list[str]:
    """Names of the feature columns.

    Parameters
    ----------
    frame : LazyFrame
    features : sequence of str, polars selector, or None
        None for every numeric column (and Array of numbers) but the label.
    label : str, optional

    Raises
    ------
    SchemaError
        If a column is missing or not numeric, or none is left.
    """
    schema = frame.collect_schema()
    if features is None:
        names = [name for name, dtype in schema.items() if name != label and _width(dtype)]
    elif isinstance(features, pl.Expr):
        names = [name for name in frame.select(features).collect_schema().names()
                 if name != label]
    else:
        names = [features] if isinstance(features, str) else list(features)
    for name in names:
        if name not in schema:
            raise SchemaError.missing_column(name, schema.names(), "features")
        if not _width(schema[name]):
            raise SchemaError(
                f"feature column {name!r} must be numeric; it is {schema[name]}. Cast it, leave it "
                f"out, or encode it: pl.col({name!r}).cast(pl.Categorical).to_physical()")
    if len(set(names)) < len(names) or label in names:
        raise SchemaError(f"features {names!r} must be different columns, and not the label "
                          f"{label!r}")
    if not names:
        raise SchemaError(f"no numeric column is left as a feature; the columns are "
                          f"{', '.join(map(repr, schema.names()))}")
    return names


def feature_names(frame: pl.LazyFrame, columns: Sequence[str]) -> list[str]:
    """One name per feature: an Array column's features are numbered from 0.

    Examples
    --------
    >>> frame = pl.LazyFrame({"x": [1.0], "p": [[1, 2]]}, schema_overrides={"p": pl.Array(int, 2)})
    >>> feature_names(frame, ["x", "p"])
    ['x', 'p[0]', 'p[1]']
    """
    schema = frame.collect_schema()
    names = []
    for column in columns:
        if isinstance(schema[column], pl.Array):
            names += [f"{column}[{i}]" for i in range(_width(schema[column]))]
        else:
            names.append(column)
    return names


def matrix(
    batch: pl.DataFrame, columns: Sequence[str], first_row: int | None
) -> NDArray[Any]:
    """Values of the feature columns: (n_rows, n_features), in the type they have in common.

    Parameters
    ----------
    batch : DataFrame
    columns : sequence of str
    first_row : int, optional
        Number of the batch's first row, for messages, where it is known.

    Raises
    ------
    DataError
        If a value is null, NaN or infinite: its column and row are named.
    """
    parts = []
    for column in columns:
        series = batch[column]
        _check(series, column, first_row)
        if isinstance(series.dtype, pl.Array):
            parts.append(_flat(series).to_numpy().reshape(len(series), -1)
                         if len(series) else np.empty((0, _width(series.dtype))))
        else:
            parts.append(series.to_numpy()[:, None])
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _check(series: pl.Series, column: str, first_row: int | None) -> None:
    values = _flat(series)
    per_row = max(1, len(values) // max(1, len(series)))
    if series.null_count() or values.null_count():
        bad, what = (series if series.null_count() else values).is_null(), "null"
        per_row = 1 if series.null_count() else per_row
    elif values.dtype.is_float() and not bool(values.is_finite().all()):
        bad, what = ~values.is_finite(), "NaN or infinite"
    else:
        return
    row = int(bad.arg_true()[0]) // per_row
    where = "in some row" if first_row is None else f"in row {first_row + row} (counted from 0)"
    raise DataError(f"feature column {column!r} is {what} {where}; fill it (fill_null, fill_nan) "
                    "or drop such rows")


def _flat(series: pl.Series) -> pl.Series:
    while isinstance(series.dtype, pl.Array):
        series = series.explode()
    return series


def _width(dtype: pl.DataType) -> int:
    """How many features a column of this type stands for; 0 if it is not numeric."""
    if isinstance(dtype, pl.Array):
        return int(np.prod(dtype.shape)) if dtype.shape and _numeric(dtype) else 0
    wide = dtype in (pl.Int128, pl.UInt128)
    return int((dtype.is_numeric() and not wide) or dtype == pl.Boolean)


def _numeric(dtype: pl.Array) -> bool:
    inner: Any = dtype
    while isinstance(inner, pl.Array):
        inner = inner.inner
    return bool(inner.is_numeric())
