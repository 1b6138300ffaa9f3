"""Checks whether text columns hold texts, or lists of tokens, which are texts already split."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import polars as pl

from textnb.errors import SchemaError

_TEXT_TYPES = (pl.String, pl.Categorical, pl.Enum, pl.Null)


class ListOfTokens(SchemaError):
    """A text column holds lists of tokens where texts were expected.

    Attributes
    ----------
    columns : tuple of str
        All text columns that hold lists.
    """

    columns: tuple[str, ...] = ()


def is_list_of_tokens(dtype: Any) -> bool:
    """Whether a type is a list of strings.

    Examples
    --------
    >>> is_list_of_tokens(pl.List(pl.String)), is_list_of_tokens(pl.String())
    (True, False)
    """
    return isinstance(dtype, pl.List) and dtype.inner in _TEXT_TYPES


def as_text(schema: pl.Schema, column: str) -> pl.Expr:
    """A text column for display: lists of tokens are joined by spaces; null stays null."""
    if isinstance(schema[column], pl.List):
        return pl.col(column).list.join(" ", ignore_nulls=True)
    return pl.col(column).cast(pl.String)


def lists_of_tokens(frame: pl.LazyFrame, columns: Sequence[str]) -> list[str]:
    """The text columns that hold lists of tokens."""
    schema = frame.collect_schema()
    return [name for name in columns if is_list_of_tokens(schema[name])]


def check_texts(
    schema: pl.Schema, columns: Collection[str], tokens: Collection[str] | None
) -> None:
    """Check the types of text columns; all of them must exist.

    Parameters
    ----------
    schema : Schema
    columns : collection of str
        The text columns.
    tokens : collection of str, or None
        The columns that must hold lists of tokens; all others must hold texts. None if each column
        may hold either.

    Raises
    ------
    ListOfTokens
        If a column must hold texts and holds lists.
    SchemaError
        If a column is of any other type.
    """
    lists = tuple(name for name in columns if is_list_of_tokens(schema[name]))
    for column in columns:
        dtype = schema[column]
        if dtype == pl.Object:
            raise SchemaError.mixed_types(column, "text")
        if tokens is not None and column in tokens:
            if column not in lists:
                raise SchemaError.with_advice(
                    f"text column {column!r} must be List(String), lists of tokens; it is {dtype}"
                    ". ",
                    "Split its texts like the training texts, or load(path, segmenter=...) with "
                    "the function that split them",
                    "Split its texts like the training texts")
        elif column in lists:
            if tokens is not None:
                error = ListOfTokens.with_advice(
                    f"text column {column!r} must be String; it is {dtype}, lists of tokens. ",
                    f"To train on lists of tokens: Tokenizer(token_columns={list(lists)!r})",
                    "Only a model that was trained on lists of tokens reads them")
                error.columns = lists
                raise error
        elif not isinstance(dtype, _TEXT_TYPES):
            raise SchemaError.wrong_type(column, "text", "String", dtype)
