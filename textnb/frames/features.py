"""Feature tables: finds the feature columns, and makes a checked matrix of their values.

A feature is a numeric column; an Array column of numbers holds a feature for each of its elements.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError, ParameterError, SchemaError, quantity
from textnb.frames.names import check_name


def feature_columns(
    frame: pl.LazyFrame, features: Any, label: str | None = None
) -> list[str]:
    """Names of the feature columns.

    Parameters
    ----------
    frame : LazyFrame
    features : sequence of str, polars selector, or None
        None for all numeric columns (and Arrays of numbers) except the label.
    label : str, optional
        The label column.

    Raises
    ------
    SchemaError
        If a column is missing or not numeric, or there is no feature column.
    """
    schema = frame.collect_schema()
    if features is None:
        names = [name for name, dtype in schema.items() if name != label and _n_features(dtype)]
    elif isinstance(features, pl.Expr):
        if not features.meta.is_column_selection():
            raise _not_a_selection(features)
        names = [name for name in frame.select(features).collect_schema().names()
                 if name != label]
    else:
        if not isinstance(features, Iterable):
            raise _not_a_selection(features)
        names = [features] if isinstance(features, str) else list(features)
        for name in names:
            if not isinstance(name, str):
                raise _not_a_selection(name)
    for name in names:
        if name not in schema:
            raise SchemaError.missing_column(name, schema.names(), "features")
        check_name(name, "feature")
        if not _n_features(schema[name]):
            raise SchemaError.with_advice(
                f"feature column {name!r} must be numeric; it is {schema[name]}. ",
                *_advice(name, schema[name]))
    if len(set(names)) < len(names) or label in names:
        raise SchemaError(f"features {names!r} must be different columns, and not the label "
                          f"{label!r}")
    if not names:
        shown = ", ".join(f"{name!r} ({dtype})" for name, dtype in schema.items())
        raise SchemaError(f"no numeric column is left as a feature; the columns are {shown}")
    return names


def _advice(name: str, dtype: pl.DataType) -> tuple[str, str]:
    """How to make a feature of a column that is not numeric, in Python and in a file."""
    if isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)):
        return (f"If it holds numbers, cast it: pl.col({name!r}).cast(pl.Float64); encode "
                f"categories as numbers, for example with frame.to_dummies({name!r}); or leave "
                "the column out",
                "If it holds numbers, write them as numbers in the file; make a column of 0 and 1 "
                "of each category; or leave the column out of the features")
    if isinstance(dtype, (pl.Date, pl.Datetime)):
        return (f"Take a number from it, such as pl.col({name!r}).dt.epoch('s'), or leave it out",
                "Write a number in its place, such as seconds since 1970, or leave the column out "
                "of the features")
    if isinstance(dtype, (pl.Duration, pl.Time, pl.Int128, pl.UInt128)):
        target = "Float64" if isinstance(dtype, (pl.Int128, pl.UInt128)) else "Int64"
        return (f"Cast it: pl.col({name!r}).cast(pl.{target}), or leave it out",
                f"Write it as {target} in the file, or leave the column out of the features")
    if isinstance(dtype, pl.List) and _n_features(pl.Array(dtype.inner, 1)):
        return (f"If all lists have one length n, make arrays: pl.col({name!r}).list.to_array(n); "
                "or leave it out",
                "If all lists have one length, write a column for each place; or leave the "
                "column out of the features")
    return "Leave it out", "Leave the column out of the features"


def _not_a_selection(features: object) -> ParameterError:
    return ParameterError(
        f"features are names of columns, or a selector; got {features}. Compute columns first: "
        "frame.with_columns(...)")


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
            names += [f"{column}[{i}]" for i in range(_n_features(schema[column]))]
        else:
            names.append(column)
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise SchemaError("an element of an Array column and another column are both called "
                          f"{repeated[0]!r}; rename one of the columns")
    return names


def feature_matrix(
    batch: pl.DataFrame, columns: Sequence[str], first_row: int | None = None
) -> NDArray[Any]:
    """Values of the feature columns: (n_rows, n_features), in their common type.

    Parameters
    ----------
    batch : DataFrame
    columns : sequence of str
    first_row : int, optional
        Number of the batch's first row, for messages; None if it is not known.

    Raises
    ------
    DataError
        If a value is null, NaN or infinite: its column and row are named.
    """
    blocks = []
    for column in columns:
        series = batch[column]
        _check_finite(series, column, first_row)
        # NumPy has no decimals: they would become an array of objects.
        if _innermost_type(series.dtype).is_decimal():
            shape = getattr(series.dtype, "shape", None)
            series = series.cast(pl.Float64 if shape is None else pl.Array(pl.Float64, shape))
        blocks.append(series.to_numpy().reshape(len(series), _n_features(series.dtype)))
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


def _check_finite(series: pl.Series, column: str, first_row: int | None) -> None:
    """Raise DataError for a value, or an element of an Array, that is not a finite number."""
    values, values_per_row, problem = series, 1, "null"
    while not values.null_count() and isinstance(values.dtype, pl.Array):
        values_per_row *= values.dtype.size
        values = values.explode()
    if values.null_count():
        invalid = values.is_null()
    elif values.dtype.is_float() and not bool(values.is_finite().all()):
        invalid, problem = ~values.is_finite(), "NaN or infinite"
    else:
        return
    row = int(invalid.arg_true()[0]) // values_per_row
    raise _not_finite(column, problem, None if first_row is None else first_row + row)


def check_values(rows: NDArray[Any], names: Sequence[str]) -> NDArray[Any]:
    """Check that rows are finite numbers, one per feature, and return them as numbers.

    Parameters
    ----------
    rows : array (n_rows, n_features)
    names : sequence of str
        The names of the features, for errors.

    Raises
    ------
    DataError
        If they are not; the error names the column and row.
    """
    if rows.ndim != 2 or rows.shape[1] != len(names):
        raise DataError(f"expected rows of {quantity(len(names), 'feature')}; got an array of "
                        f"shape {rows.shape}")
    # NumPy's letters for kinds of types: b for Booleans, u and i for integers, f for floats.
    if rows.dtype.kind not in "buif":
        try:
            # Objects, bytes and strings may be numbers; complex numbers and dates are refused.
            numbers = rows.astype(np.float64) if rows.dtype.kind in "OSU" else None
        except (TypeError, ValueError):
            numbers = None
        if numbers is None:
            raise DataError(f"features must be numbers; the array is of type {rows.dtype}")
        rows = numbers
    if rows.dtype.kind == "f":
        invalid = ~np.isfinite(rows)
        if invalid.any():
            row, column = np.argwhere(invalid)[0].tolist()
            raise _not_finite(names[column], "NaN or infinite", row)
    return rows


def _not_finite(column: str, problem: str, row: int | None) -> DataError:
    where = "in some row" if row is None else f"in row {row} (counted from 0)"
    return DataError(f"feature column {column!r} is {problem} {where}; fill it (fill_null, "
                     "fill_nan) or drop such rows (in a CSV file, a value that is not a number is "
                     "null)")


def _n_features(dtype: pl.DataType) -> int:
    """The number of features of a column of this type; 0 if it is not numeric."""
    inner = _innermost_type(dtype)
    # NumPy has no integers of 128 bits.
    is_number = inner.is_numeric() and inner not in (pl.Int128, pl.UInt128)
    if isinstance(dtype, pl.Array):
        return math.prod(dtype.shape) * is_number
    return int(is_number or dtype == pl.Boolean)


def _innermost_type(dtype: Any) -> Any:
    return _innermost_type(dtype.inner) if isinstance(dtype, pl.Array) else dtype
