"""Columns whose names Polars takes for patterns of names: ``*``, and expressions as ``^...$``.

    a setting names one  ->  an error        it is beside the others  ->  it passes with them
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl
import polars.selectors as cs

from textnb.errors import SchemaError


def is_pattern(name: str) -> bool:
    """Whether Polars takes the name of a column for a pattern of names."""
    return name == "*" or (name.startswith("^") and name.endswith("$"))


def check_name(column: str, role: str) -> None:
    """Raise SchemaError if expressions can't read a column by its name.

    ``role`` says what the column is for, such as "label".

    Examples
    --------
    >>> check_name("^text$", "text")
    Traceback (most recent call last):
        ...
    textnb.errors.SchemaError: the text column is called '^text$', which Polars takes for a \
pattern of names, as it does '*' and all names of the form '^...$': rename the column
    """
    if is_pattern(column):
        raise SchemaError(f"the {role} column is called {column!r}, which Polars takes for a "
                          "pattern of names, as it does '*' and all names of the form '^...$': "
                          "rename the column")


def exactly(names: Iterable[str]) -> pl.Expr:
    """The columns of these names, in this order; no name is a pattern.

    Examples
    --------
    >>> pl.DataFrame({"x": [1], "^x$": [2]}).select(exactly(["^x$"])).columns
    ['^x$']
    """
    return cs.by_name(list(names))
