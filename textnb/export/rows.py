"""Rows of the caller's, in every form that the classifiers take."""

from __future__ import annotations

from typing import Any

import polars as pl

from textnb.errors import SchemaError
from textnb.export.bundle import Bundle
from textnb.frames.features import feature_columns
from textnb.frames.scan import scan, scan_table
from textnb.frames.texts import is_table, table_of_texts


def open_rows(bundle: Bundle, rows: Any) -> pl.LazyFrame:
    """The columns that a bundle reads, of a table, a path or a sequence of texts.

    Raises
    ------
    SchemaError, DataError, SourceError
        If a column is missing or of another type, or the rows can't be read.
    """
    columns = list(bundle.columns)
    try:
        if bundle.reads == "features":
            lazy = scan_table(rows, columns)
            feature_columns(lazy, columns, None)
        elif is_table(rows):
            lazy = scan(rows, text=columns, tokens=bundle.token_columns)
        else:
            lazy = table_of_texts(rows, columns, bundle.token_columns).lazy()
    except SchemaError as error:
        if error.missing_role is None:
            raise
        # There is no option to say another: an export knows the columns of its model alone.
        raise SchemaError(f"{error.problem}. An export reads the columns of its model: rename "
                          "yours") from None
    return lazy.select(columns)
