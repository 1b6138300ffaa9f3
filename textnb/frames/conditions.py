"""Rows that a condition in SQL selects."""

from __future__ import annotations

import polars as pl

from textnb.errors import ParameterError, first_line
from textnb.files.parquet import ENGINE_ERRORS
from textnb.frames.cloud import hide_secrets
from textnb.runtime.unicode import is_unicode


def check_condition(condition: str, name: str) -> None:
    """Raise ParameterError for a condition that is not valid SQL; columns are not checked yet."""
    try:
        _parse(condition)
    except ENGINE_ERRORS as error:
        raise ParameterError(f"{name} {condition!r}: {first_line(error)}") from None


def rows_where(frame: pl.LazyFrame, condition: str | None, name: str) -> pl.LazyFrame:
    """Select the rows for which a condition is true, or all rows if there is no condition.

    Parameters
    ----------
    frame : LazyFrame
    condition : str or None
        SQL, such as ``split = 'train'``.
    name : str
        Name of the parameter or option, for errors.

    Raises
    ------
    ParameterError
        If ``condition`` is not a condition on the frame's columns.

    Examples
    --------
    >>> frame = pl.LazyFrame({"n": [1, 2, 3]})
    >>> rows_where(frame, "n > 1", "--where").collect()["n"].to_list()
    [2, 3]
    """
    if condition is None:
        return frame
    schema = frame.collect_schema()
    try:
        expression = _parse(condition)
        # The engine checks some types only when it runs: here on no rows. It does not check what it
        # leaves out to simplify.
        no_rows = pl.LazyFrame(schema=schema).filter(expression)
        no_rows.collect(optimizations=pl.QueryOptFlags(simplify_expression=False))
        no_rows.collect()
    except ENGINE_ERRORS as error:
        hint = (", all with strings: CAST(name AS INT) makes numbers"
                if "string with numeric" in str(error) and set(schema.values()) == {pl.String()}
                else "")
        raise ParameterError(f"{name} {condition!r}: {first_line(error)}; the columns are "
                             f"{', '.join(schema)}{hint}") from None
    return frame.filter(expression)


def _parse(condition: str) -> pl.Expr:
    if not is_unicode(condition):
        raise pl.exceptions.SQLSyntaxError("it is not valid Unicode")
    expression = pl.sql_expr(condition)
    # Polars takes a word behind an expression as its alias.
    if not expression.meta.eq(expression.meta.undo_aliases()):
        raise pl.exceptions.SQLSyntaxError(
            f"{expression.meta.output_name()!r} follows the condition; join conditions with AND or "
            "OR")
    if expression.meta.has_multiple_outputs():
        raise pl.exceptions.SQLSyntaxError(
            "Polars takes the names '*' and '^...$' for patterns of names; rename the column")
    return expression


def no_rows_message(
    frame: pl.LazyFrame, condition: str | None, name: str, source: str
) -> str | None:
    """The error message for a condition that no row fulfils; None if a row does.

    Parameters
    ----------
    frame : LazyFrame
        The result of `rows_where`.
    condition : str or None
    name : str
        Name of the parameter or option.
    source : str
        The name of the source of the rows.

    Examples
    --------
    >>> frame = pl.LazyFrame({"n": [1, 2]})
    >>> no_rows_message(rows_where(frame, "n > 2", "--where"), "n > 2", "--where", "n.csv")
    "--where 'n > 2' leaves no rows of n.csv; its columns are n"
    """
    if condition is None:
        return None
    try:
        if frame.head(1).collect().height:
            return None
    except (*ENGINE_ERRORS, OSError):
        # The rows can't be read, which the caller has reported.
        return None
    return (f"{name} {condition!r} leaves no rows of {hide_secrets(source)}; its columns are "
            f"{', '.join(frame.collect_schema().names())}")
