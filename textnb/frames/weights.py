"""Sample weights: a column of a table, or an array for texts or a table in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.statistics import MAX_WEIGHT
from textnb.errors import (
    DataError,
    Mention,
    ParameterError,
    SchemaError,
    first_line,
    quantity,
)
from textnb.frames.kinds import in_memory, series_of
from textnb.frames.names import check_name
from textnb.frames.texts import is_table

# The name of the column for weights from an array. No table has a column with NUL in its name.
ARRAY_COLUMN = "\0weight"


def weight_column(X: Any, sample_weight: Any, columns: list[str]) -> str | None:
    """The column that will hold the weights; None without weights.

    Parameters
    ----------
    X : table, path, or sequence of str
    sample_weight : str, array (n_documents,) or None
    columns : list of str
        The text and label columns.

    Raises
    ------
    ParameterError
        If a column is named and X is not a table; or if weights are an array, and the order of the
        table's rows is known only when they are read.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, str):
        if not is_table(X):
            raise ParameterError(f"sample_weight={sample_weight!r} names a column, and a list of "
                                 "texts has none: pass one weight per text")
        if sample_weight in columns:
            raise ParameterError.naming_settings(
                "{setting} is also a text or label column",
                setting=Mention("sample_weight", repr(sample_weight)))
        return sample_weight
    if is_table(X) and not in_memory(X):
        raise ParameterError("an array of weights goes with texts or a table in memory; a "
                             "LazyFrame or a file holds them in a column: sample_weight='weight'")
    return ARRAY_COLUMN


def named_columns(sample_weight: Any) -> list[str]:
    """The column that weights name; none if they are an array, or absent."""
    return [sample_weight] if isinstance(sample_weight, str) else []


def with_weights(
    frame: pl.DataFrame | pl.LazyFrame, sample_weight: Any, column: str | None
) -> pl.DataFrame | pl.LazyFrame:
    """Add weights from an array to a table as a column; check that a named column exists.

    ``column`` is the result of `weight_column`.

    Raises
    ------
    DataError
        If there is not one weight per document.
    SchemaError
        If there is no column of that name.
    """
    if column is None:
        return frame
    if column != ARRAY_COLUMN:
        names = frame.lazy().collect_schema().names()
        if column not in names:
            raise SchemaError.missing_column(column, names, "sample_weight")
        check_name(column, "weight")
        return frame
    rows = frame.lazy().collect()
    weights = _as_series(sample_weight)
    if weights.dtype.is_nested() or len(weights) != rows.height:
        raise DataError(f"{quantity(rows.height, 'document')} and weights of shape "
                        f"{np.shape(sample_weight)}: there must be one weight per document")
    return rows.with_columns(weights)


def _as_series(sample_weight: Any) -> pl.Series:
    values = series_of(sample_weight)
    if isinstance(values, pl.Series):
        return values.alias(ARRAY_COLUMN)
    try:
        values = np.asarray(values)
        # Objects of Python, such as decimals, and numbers of more than 64 bits.
        if values.ndim and (values.dtype == object or values.dtype == np.longdouble):
            values = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"sample_weight has a value that is not a number ({first_line(error)}): "
                        "weights are numbers >= 0") from None
    if values.dtype.kind in "mM":
        raise DataError(f"sample_weight is of type {values.dtype}: weights are numbers >= 0")
    return pl.Series(ARRAY_COLUMN, values)


def read_weights(weights: pl.Series, first_row: int) -> NDArray[np.float64]:
    """Return the weights of a batch, float64 (n_rows,), if they are valid.

    ``first_row`` is the number of the batch's first row, for errors.

    Raises
    ------
    DataError
        If a weight is missing, not a number, infinite, below 0 or too large; the error names its
        row.
    """
    name = "sample_weight" if weights.name == ARRAY_COLUMN else (
        f"the weight column {weights.name!r}")
    # A CSV file has strings. Dates would become numbers, and others an error of Polars.
    if not (weights.dtype.is_numeric() or weights.dtype in (pl.String, pl.Null)):
        raise DataError(f"{name} is of type {weights.dtype}: weights are numbers >= 0")
    numbers = weights.cast(pl.Float64, strict=False)
    for is_valid, expected in ((numbers.is_finite() & (numbers >= 0.0), "finite numbers >= 0"),
                               (numbers <= MAX_WEIGHT, f"at most {MAX_WEIGHT}")):
        is_invalid = ~is_valid.fill_null(False)
        if is_invalid.any():
            row = int(is_invalid.arg_true()[0])
            raise DataError(f"{name} is {weights[row]!r} in row {first_row + row} (counted from "
                            f"0): weights are {expected}")
    return numbers.to_numpy()
