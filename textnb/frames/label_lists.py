"""Lists of labels, from texts that hold several."""

from __future__ import annotations

import polars as pl

from textnb.errors import ParameterError


def split_labels(frame: pl.LazyFrame, label: str, separator: str | None) -> pl.LazyFrame:
    """The rows with lists in place of texts of several labels.

    Parameters
    ----------
    frame : LazyFrame
    label : str
        The label column.
    separator : str, optional
        The character between labels; None leaves the column as it is. Space around a label is
        removed, and an empty text is an empty list.

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
        raise ParameterError.naming("{label_separator} is for labels in a text, and the column "
                                    "{column!r} is {dtype}", column=label, dtype=dtype)
    # CSV reads an empty field as null.
    labels = pl.col(label).cast(pl.String).fill_null("").str.split(separator).list.eval(
        pl.element().str.strip_chars().filter(pl.element().str.strip_chars() != ""))
    return frame.with_columns(labels.alias(label))
