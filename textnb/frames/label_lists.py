"""Prepares labels for models: splits texts of several labels, makes lists from columns of 0 and 1
for each label, and replaces labels by the classes to which they belong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import polars as pl

from textnb.errors import DataError, ParameterError, SchemaError, listing, suggestion
from textnb.frames.names import check_name

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
_BOOLEANS = {"1": True, "true": True, "0": False, "false": False}


def split_labels(frame: pl.LazyFrame, label: str, separator: str | None) -> pl.LazyFrame:
    """Replace texts of several labels by lists of labels.

    Parameters
    ----------
    frame : LazyFrame
    label : str
        The label column.
    separator : str, optional
        The character between labels; None leaves the column as it is. Spaces around a label are
        removed, and an empty text becomes an empty list.

    Raises
    ------
    ParameterError
        If the separator is not one character, or the column holds no texts.

    Examples
    --------
    >>> rows = pl.LazyFrame({"label": ["corn, wheat", "money", ""]})
    >>> split_labels(rows, "label", ",").collect()["label"].to_list()
    [['corn', 'wheat'], ['money'], []]
    """
    if separator is None:
        return frame
    dtype = frame.collect_schema()[label]
    if len(separator) != 1:
        raise ParameterError.out_of_range("label_separator", "one character", separator)
    if dtype not in (pl.String, pl.Categorical, pl.Enum):
        raise ParameterError.naming_settings(
            "{label_separator} is for labels in a text, and the column {column!r} is {dtype}",
            column=label, dtype=dtype)
    # CSV reads an empty field as null.
    labels = pl.col(label).cast(pl.String).fill_null("").str.split(separator).list.eval(
        pl.element().str.strip_chars().filter(pl.element().str.strip_chars() != ""))
    return frame.with_columns(labels.alias(label))


def list_labels(frame: Frame, columns: Sequence[str], name: str = "label") -> Frame:
    """Add a column of lists of labels: the names of the columns that are true in a row.

    Parameters
    ----------
    frame : DataFrame or LazyFrame
    columns : sequence of str
        The columns: Booleans, integers 0 and 1, or such values as texts, as CSV has them. A
        column's name is the label.
    name : str
        The new column. If a row has null in one of the columns, its list is null, which
        `TextClassifier.fit` refuses.

    Raises
    ------
    ParameterError
        If no column is named, or one is named twice.
    SchemaError
        If a column is missing or of another type, or there is a column ``name`` already.
    DataError
        If a column holds any other value; for a LazyFrame, when it is collected.

    Examples
    --------
    >>> rows = pl.DataFrame({"text": ["wheat", "a film"], "corn": [False, False],
    ...                      "grain": [1, 0], "wheat": [True, False]})
    >>> list_labels(rows, ["corn", "grain", "wheat"], "topics")["topics"].to_list()
    [['grain', 'wheat'], []]
    """
    names = list(columns)
    if isinstance(columns, str) or not names or len(set(names)) < len(names):
        raise ParameterError.out_of_range(
            "label_columns", "one or more different names of columns", columns)
    schema = frame.lazy().collect_schema()
    if name in schema:
        raise SchemaError(f"the rows have a column {name!r} already, which is not one of the "
                          "columns of labels: drop or rename it")
    for column in names:
        if column not in schema:
            raise SchemaError.naming_settings(
                "{label_columns}: no column {column!r}{near}", column=column,
                near=suggestion(column, schema.names()) or "; the columns are "
                + listing(schema.names()))
        check_name(column, "label")
        dtype = schema[column]
        if not (dtype in (pl.Boolean, pl.String) or dtype.is_integer()):
            raise SchemaError.wrong_type(column, "label", "Boolean, or of integers 0 and 1", dtype)
    conditions = [pl.col(column) if schema[column] == pl.Boolean
                  else truth_of(pl.col(column), column) for column in names]
    lists = pl.concat_list([
        pl.when(has_label).then(pl.lit(column))
        for has_label, column in zip(conditions, names, strict=True)]).list.drop_nulls()
    is_complete = pl.all_horizontal(each.is_not_null() for each in conditions)
    return frame.with_columns(pl.when(is_complete).then(lists).alias(name))


def name_classes(
    frame: pl.LazyFrame, label: str, patterns: Mapping[str, Sequence[str]],
    note: Callable[[str], None] = lambda line: None,
) -> pl.LazyFrame:
    """Replace each label by the class that has a pattern for it.

    The labels are read once in advance, so that a label without a class is refused before any work.

    Parameters
    ----------
    frame : LazyFrame
    label : str
        The label column, of labels or of lists of them.
    patterns : dict of str to list of str
        The patterns of each class, with ``*``, ``?`` and ``[...]``.
    note : callable
        Gets a line with the patterns that match no label, if there are any.

    Raises
    ------
    DataError
        If a label matches the patterns of no class, or of several.

    Examples
    --------
    >>> rows = pl.LazyFrame({"label": ["easy-ham-1", "hard-ham-1", "spam-2", None]})
    >>> name_classes(rows, "label", {"ham": ["*-ham-*"], "spam": ["spam-*"]}).collect()[
    ...     "label"].to_list()
    ['ham', 'ham', 'spam', None]
    """
    column, of_lists = pl.col(label), isinstance(frame.collect_schema()[label], pl.List)
    unique = frame.select((column.explode() if of_lists else column).unique().drop_nulls())
    class_by_label: dict[str, str] = {}
    unknown: list[str] = []
    labels = unique.collect()[label].cast(pl.String).sort().to_list()
    for value in labels:
        matching = [name for name, patterns_of_class in patterns.items()
                    if any(fnmatchcase(value, pattern) for pattern in patterns_of_class)]
        if len(matching) > 1:
            raise DataError.naming_settings(
                "the label {value!r} matches {classes} of two classes, {one!r} and {other!r}",
                value=value, one=matching[0], other=matching[1])
        if matching:
            class_by_label[value] = matching[0]
        else:
            unknown.append(value)
    if unknown:
        raise DataError.naming_settings(
            "no pattern of {classes} matches the {labels}: add them to a class, or leave their "
            "rows out with {where}", labels=("label " if len(unknown) == 1 else "labels ")
            + listing(unknown))
    unused = [repr(f"{name}={pattern}") for name, patterns_of_class in patterns.items()
              for pattern in patterns_of_class
              if not any(fnmatchcase(value, pattern) for value in labels)]
    if unused:
        note(f"note: no label matches {', '.join(unused)}")

    def class_of(labels: pl.Expr) -> pl.Expr:
        return labels.cast(pl.String).replace_strict(class_by_label, return_dtype=pl.String)

    # Two labels of a row may belong to one class.
    return frame.with_columns(column.list.eval(class_of(pl.element())).list.unique(
        maintain_order=True) if of_lists else class_of(column))


def truth_of(values: pl.Expr, column: str) -> pl.Expr:
    """Integers 1 and 0, and such texts or true and false, as Booleans; null stays null.

    Where the rows are read, any other value of the column is a DataError that names it.
    """
    def parse(values: pl.Series) -> pl.Series:
        return values.cast(pl.String).str.strip_chars().str.to_lowercase().replace_strict(
            _BOOLEANS, default=None, return_dtype=pl.Boolean)

    return _parsed(values, column, parse, pl.Boolean, "which is neither true nor false: write true "
                   "or 1, false or 0")


def integer_of(values: pl.Expr, column: str, dtype: Any) -> pl.Expr:
    """Texts and integers as integers of a model's type, with errors as of `truth_of`."""
    def parse(values: pl.Series) -> pl.Series:
        # A category is its text, and not its code.
        numbers = values if values.dtype.is_integer() else values.cast(pl.String)
        return numbers.cast(dtype, strict=False)

    return _parsed(values, column, parse, dtype, f"and the model's labels are integers ({dtype}): "
                   "write such integers, or leave out its rows")


def _parsed(
    values: pl.Expr, column: str, parse: Callable[[pl.Series], pl.Series], dtype: Any, fault: str
) -> pl.Expr:
    """The values as ``parse`` reads them; a DataError has the first that becomes null."""
    def read(values: pl.Series) -> pl.Series:
        answers = parse(values)
        if (invalid := values.filter(answers.is_null() & values.is_not_null())).len():
            raise DataError(f"label column {column!r} holds {invalid[0]!r}, {fault}")
        return answers

    return values.map_batches(read, return_dtype=dtype, is_elementwise=True)
