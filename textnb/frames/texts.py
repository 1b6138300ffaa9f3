"""Tables of texts and labels that come as sequences, as scikit-learn passes them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

import numpy as np
import polars as pl

from textnb.errors import DataError, ParameterError, SchemaError, quantity
from textnb.frames.kinds import LIST_TYPES, as_polars, in_memory, kind_of, series_of
from textnb.frames.label_lists import integer_of, truth_of
from textnb.frames.names import check_name
from textnb.frames.token_columns import check_texts
from textnb.runtime.forks import check_polars_threads
from textnb.runtime.unicode import unicode_errors

_EXPECTED_Y = "labels of one type: strings, integers or booleans"
# The kinds of NumPy's times, some of which `item` and `tolist` make integers of.
_TIMES = "mM"


def is_table(X: Any) -> bool:
    """Whether X is a table or the path of one, and not a sequence of texts."""
    return isinstance(X, (str, os.PathLike)) or kind_of(X) is not None


def labels_are_separate(X: Any, y: Any) -> bool:
    """Whether X is a table, and its labels were passed separately, as scikit-learn passes them."""
    return y is not None and kind_of(X) is not None


def table_of_texts(
    texts: Any, columns: Sequence[str], tokens: Collection[str] = ()
) -> pl.DataFrame:
    """A sequence of texts (None for a missing one) as a table with one text column.

    Parameters
    ----------
    texts : sequence of str, or of sequences of str
        Texts, or lists of tokens.
    columns : sequence of str
        The text columns that the classifier reads: there must be one.
    tokens : collection of str
        Columns that must hold lists of tokens; others must hold texts.

    Raises
    ------
    SchemaError
        If the classifier reads several text columns, or gets lists of tokens where it reads texts,
        or texts where it reads lists of tokens.
    DataError
        If an item is neither a string nor a list of strings; the error says which.
    """
    check_polars_threads()
    if len(columns) != 1:
        raise SchemaError(f"this classifier reads the columns {list(columns)!r}: pass a frame "
                          "that has them, not a list")
    check_name(columns[0], "text")
    texts = series_of(texts)
    if isinstance(texts, pl.Series):
        if isinstance(texts.dtype, (pl.Categorical, pl.Enum)):
            texts = texts.cast(pl.String)
        check_texts(pl.Schema({texts.name: texts.dtype}), [texts.name],
                    [texts.name] if columns[0] in tokens else ())
        column: pl.Series = texts if columns[0] in tokens else texts.cast(pl.String)
        return column.alias(columns[0]).to_frame()
    if isinstance(texts, (set, frozenset)):
        raise ParameterError("X is a set of texts, which has no order, so that it is not known "
                             "which text each answer or label belongs to: give a list")
    if isinstance(texts, (bytes, Mapping)) or not hasattr(texts, "__iter__"):
        raise ParameterError.out_of_range("X", "a table, a path, or a sequence of texts", texts)
    items = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    first_item = next((item for item in items if item is not None), None)
    # The rows of a two-dimensional array are not lists of tokens.
    if getattr(texts, "ndim", 1) == 1 and (
            columns[0] in tokens or isinstance(first_item, (list, tuple))):
        frame = _table_of_tokens(items, columns[0])
        check_texts(frame.schema, columns, tokens)
        return frame
    for number, item in enumerate(items):
        if item is not None and not isinstance(item, str):
            raise DataError(f"text {number} (counted from 0) is of type {type(item).__name__}; "
                            "texts are strings, or None")
    with unicode_errors(items, "text"):
        return pl.DataFrame({columns[0]: items}, schema={columns[0]: pl.String})


def _table_of_tokens(items: Sequence[Any], column: str) -> pl.DataFrame:
    for number, item in enumerate(items):
        if item is not None and not (isinstance(item, (list, tuple)) and all(
                token is None or isinstance(token, str) for token in item)):
            raise DataError(f"text {number} (counted from 0) must be a list of tokens, which are "
                            f"strings; got {item!r:.60}")
    with unicode_errors(items, "token"):
        return pl.DataFrame({column: items}, schema={column: pl.List(pl.String)})


def rows_in_memory(X: Any, label: str) -> pl.DataFrame:
    """A table to which labels can be added, as a Polars frame.

    Raises
    ------
    ParameterError
        If X is a LazyFrame or a path: the order of its rows is known only once they are read.
    """
    if not in_memory(X):
        raise ParameterError(
            "y goes with texts or a table in memory, such as a DataFrame; a LazyFrame or a file "
            f"holds its labels in the column {label!r}: collect it first, fit(frame.collect(), y), "
            "or read the labels with the rows")
    return as_polars(X).lazy().collect()


def with_labels(frame: pl.DataFrame, y: Any, label: str) -> pl.DataFrame:
    """Add labels that were passed separately to a table, as its label column.

    Parameters
    ----------
    frame : DataFrame
    y : sequence of labels, or of lists of labels
    label : str
        Name of the column.

    Raises
    ------
    DataError
        If there is not one label per row, or an integer is outside the range of Int64.
    ParameterError
        If labels are neither strings, integers nor booleans, or of several types.
    """
    check_polars_threads()
    check_name(label, "label")
    y = series_of(y)
    if kind_of(y) is not None:
        raise ParameterError("y must be a sequence of labels; got a table: pass one column of it, "
                             f"such as y[{label!r}]")
    values = y if isinstance(y, pl.Series) else _series_of_labels(y)
    dtype = values.dtype.inner if isinstance(values.dtype, pl.List) else values.dtype
    if not (isinstance(dtype, (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null))
            or dtype.is_integer()):
        raise ParameterError.out_of_range("y", _EXPECTED_Y, values.dtype)
    if len(values) != frame.height:
        raise DataError(f"{quantity(frame.height, 'document')} and "
                        f"{quantity(len(values), 'label')}: there must be one label per document")
    return frame.with_columns(values.alias(label))


def _series_of_labels(y: Any) -> pl.Series:
    """A series of labels, or of lists of labels: an empty list is a document without a label."""
    if isinstance(y, (str, bytes, Mapping, Set)) or not hasattr(y, "__len__"):
        raise ParameterError.out_of_range("y", "a sequence of labels", y)
    if isinstance(y, np.ndarray) and y.ndim != 1:
        raise DataError(f"labels must be one-dimensional; got shape {y.shape}")
    if isinstance(y, np.ndarray) and y.dtype.kind in _TIMES:
        raise ParameterError.out_of_range("y", _EXPECTED_Y, y.dtype)
    # Use the list's own items: NumPy would turn the integer 1 beside a string into "1".
    items = [list(map(_python_label, item)) if isinstance(item, LIST_TYPES) else _python_label(item)
             for item in (y.tolist() if hasattr(y, "tolist") else y)]
    are_lists = any(isinstance(item, list) for item in items)
    if are_lists and not all(item is None or isinstance(item, list) for item in items):
        raise ParameterError("y holds lists of labels and labels: give a list for each document, "
                             "[label] where there is one, [] where there is none")
    labels: list[Any] = [label for item in items if item is not None for label in item] if (
        are_lists) else items
    types = {str if isinstance(label, str) else type(label) for label in labels} - {type(None)}
    if len(types) > 1 or not types <= {str, int, bool}:
        raise ParameterError.out_of_range("y", _EXPECTED_Y, sorted(kind.__name__ for kind in types))
    for number in labels if types == {int} else ():
        if number is not None and not -2**63 <= number < 2**63:
            raise DataError.label_beyond_int64(number)
    dtype = {str: pl.String(), int: pl.Int64(), bool: pl.Boolean()}[types.pop()] if (
        types) else pl.Null()
    with unicode_errors(items, "label"):
        return pl.Series(items, dtype=pl.List(dtype) if are_lists else dtype)


def _python_label(label: Any) -> Any:
    """A label as an object of Python; None for NaN, which is a missing label in pandas."""
    if isinstance(label, np.generic) and label.dtype.kind not in _TIMES:
        label = label.item()
    return None if isinstance(label, float) and label != label else label


def labels_as(column: str, frame: pl.LazyFrame, dtype: pl.DataType) -> pl.Expr:
    """`cast_labels`, with lists sorted like predicted lists: equal sets are equal lists."""
    labels = cast_labels(column, frame, dtype)
    return labels.list.unique().list.sort() if isinstance(dtype, pl.List) else labels


def cast_labels(column: str, frame: pl.LazyFrame, dtype: pl.DataType) -> pl.Expr:
    """A label column, cast to the type that a model predicts: a CSV file's "1" is the integer 1.

    ``frame`` has the column, and ``dtype`` is the type of predictions. Where the rows are read, a
    label that can't be of that type is a DataError that names it; of a Boolean, only 1 and 0 are
    integers.
    """
    dtype_of_rows: Any = frame.collect_schema()[column]
    if dtype_of_rows == dtype:
        return pl.col(column)
    label_type = dtype.inner if isinstance(dtype, pl.List) else dtype
    if isinstance(dtype_of_rows, pl.List):
        return pl.col(column).list.eval(
            _cast_label(pl.element(), column, label_type)).cast(dtype)
    return _cast_label(pl.col(column), column, label_type).cast(dtype)


def _cast_label(label: pl.Expr, column: str, dtype: Any) -> pl.Expr:
    if dtype == pl.Boolean:
        return truth_of(label, column)
    return integer_of(label, column, dtype) if dtype.is_integer() else label.cast(dtype)


def integers_as_int64(labels: pl.Series) -> pl.Series:
    """Integer labels of any width as Int64; other labels unchanged.

    Raises
    ------
    DataError
        If a label is outside the range of Int64; the error names it.
    """
    if not labels.dtype.is_integer() or labels.dtype == pl.Int64:
        return labels
    cast = labels.cast(pl.Int64, strict=False)
    is_too_large = cast.is_null() & labels.is_not_null()
    if is_too_large.any():
        raise DataError.label_beyond_int64(labels.filter(is_too_large)[0])
    return cast
