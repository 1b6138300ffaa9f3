"""Opens a source of documents as a LazyFrame, and checks its columns.

    path | glob | folder | - | URL | DataFrame | LazyFrame  ->  LazyFrame, nothing read yet
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import polars as pl

from textnb.errors import ParameterError, SchemaError, SourceError
from textnb.frames.cloud import hide_secrets, is_database
from textnb.frames.failures import naming_source
from textnb.frames.faults import missing_column
from textnb.frames.features import feature_columns
from textnb.frames.files import Cloud, Files, StandardInput
from textnb.frames.folder import ClassFolder
from textnb.frames.kinds import Table, as_polars
from textnb.frames.lake import Lake
from textnb.frames.names import check_name
from textnb.frames.sources import OnSkip, RowSource, ScanOptions, no_numeric_columns
from textnb.frames.token_columns import check_texts
from textnb.runtime.forks import check_polars_threads

Source = str | os.PathLike[str] | Table

_LABEL_TYPES = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)


def scan(
    source: Any,
    *,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    format: str | None = None,
    encoding: str = "utf-8",
    storage_options: Mapping[str, Any] | None = None,
    on_error: str | OnSkip = "raise",
    subfolders: bool = False,
    separator: str | None = None,
    tokens: Collection[str] | None = (),
    query: str | None = None,
) -> pl.LazyFrame:
    """Open a table of documents lazily, and check its columns.

    Parameters
    ----------
    source : path, or table
        A table: a Polars DataFrame or LazyFrame, a pandas DataFrame, a PyArrow Table, a DuckDB
        relation, a dict of columns, a list of dicts. Or a file, a glob (``"news/*.parquet"``), a
        folder of data files (its subfolders are not read), a folder with one folder of text files
        per class, ``"-"`` for standard input, a URL that Polars reads (``s3://...``), a Delta or
        Iceberg table's folder, a database's URL.
        Parquet, IPC, CSV, TSV, NDJSON, and plain text with a document per line; gzipped where
        Polars reads that. A folder per class gives the columns ``label``, ``text`` and ``path``.
        Mail (``.eml``, ``.mbox``, a Maildir, class folders of these; all that `scan_mail` reads
        with ``format="mail"``) gives its columns.
    text : str or sequence of str, optional
        Columns that must exist and hold strings. For mail, names that are not its columns are
        headers, and ``"text"`` is the subject, a line break and the body.
    label : str, optional
        Column that must exist and hold classes (strings, integers, booleans or categories), or
        lists of them.
    format : {"parquet", "ipc", "csv", "tsv", "ndjson", "lines", "folder", "mail", "delta", \
"iceberg"}, optional
        Needed if the name does not show it.
    encoding : str
        Encoding of the text files in a folder per class; other formats are UTF-8.
    storage_options : mapping, optional
        Passed to Polars for URLs: ``aws_region``, ``aws_endpoint_url``, ... Options of S3 are
        checked; credentials that are not among them are looked for where the AWS tools look. A
        server that does not answer is asked four times in all, or as ``max_retries`` says.
    on_error : {"raise", "skip"} or callable
        What to do about a local file that can't be read to its end (truncated, corrupt, not UTF-8,
        without permission, a link that leads nowhere, a pipe): raise an error that names it; or
        leave out the whole file, and after the other files warn which were left out and why (or
        call the callable with the list of `SourceError` and the number of files). Files of rows
        are then read twice: first to their end as a check, and then for their rows. Mail differs:
        with "raise", an unreadable message is a row whose ``errors`` say why, and otherwise it is
        left out.
    subfolders : bool
        For mail only: also read the folders of each Maildir, such as ``.Spam``; see `scan_mail`.
    separator : str, optional
        For CSV only: the character between fields, such as ``";"``. The default is the comma, and
        in TSV the tab.
    tokens : collection of str, optional
        The columns of ``text`` that must hold lists of tokens, List(String): `Tokenizer`'s
        ``token_columns``. None if each column may hold texts or such lists.
    query : str, optional
        For a database's URL only: the SELECT of the rows; see `scan_database`.

    Returns
    -------
    polars.LazyFrame
        With ``text``, every column of a CSV or TSV file is read as strings, without changes;
        otherwise types are inferred from all rows.

    Raises
    ------
    SourceError
        If there is no such file, or its format is not known.
    SchemaError
        If a column is missing (the nearest name is suggested) or of another type.

    Examples
    --------
    >>> frame = pl.DataFrame({"text": ["hello"], "label": ["greeting"]})
    >>> scan(frame, text="txt")
    Traceback (most recent call last):
        ...
    textnb.errors.SchemaError: no column 'txt' (the text column) - did you mean 'text'?; the \
columns are 'text', 'label'. Say which with text=...
    """
    options = ScanOptions(
        format=format, encoding=encoding, storage_options=storage_options, on_error=on_error,
        subfolders=subfolders, separator=separator, query=query, text=_columns_of(text),
        label=label, numeric_columns=None if text is None else no_numeric_columns)
    frame = open_source(source, options)
    with naming_source(source):
        return check_columns(frame, text=text, label=label, tokens=tokens)


def scan_table(
    source: Any, features: Any, label: str | None = None, *, format: str | None = None,
    encoding: str = "utf-8", storage_options: Mapping[str, Any] | None = None,
    on_error: str | OnSkip = "raise", separator: str | None = None, query: str | None = None,
) -> pl.LazyFrame:
    """`scan` for a feature table: features of a CSV file are read as numbers.

    Its other columns are read as strings, without changes. Without ``features``, all columns that
    hold only numbers are features.
    """
    def numeric_columns(infer_schema: Callable[[], pl.Schema]) -> list[str]:
        # The types are inferred only if ``features`` does not name the columns.
        if isinstance(features, (list, tuple)):
            return list(dict.fromkeys(name for name in features if isinstance(name, str)))
        if isinstance(features, str):
            return [features]
        return feature_columns(pl.LazyFrame(schema=infer_schema()), features, label)

    options = ScanOptions(format=format, encoding=encoding, storage_options=storage_options,
                      on_error=on_error, separator=separator, query=query, label=label,
                      numeric_columns=numeric_columns)
    frame = open_source(source, options)
    with naming_source(source):
        check_columns(frame, label=label)
        return frame if label is None else check_kind_of_labels(frame, label, of_lists=False)


class TableInMemory(RowSource):
    """A table in memory, of Polars or another library, or a LazyFrame."""

    def knows(self, source: Any, options: ScanOptions) -> bool:
        return not isinstance(source, str)

    def open(self, source: Any, options: ScanOptions) -> pl.LazyFrame:
        return as_polars(source).lazy()


class Mail(RowSource):
    """Mail, as `scan_mail` reads it; ``text`` is subject and body, if that column is requested."""

    takes = frozenset({"format", "on_error", "subfolders"})

    # Imported in the methods: readers of mail are many modules, which a table does not need.
    def knows(self, source: Any, options: ScanOptions) -> bool:
        from textnb.mail.mailboxes import looks_like_mail

        return options.format == "mail" or (options.format is None and looks_like_mail(source))

    def open(self, source: Any, options: ScanOptions) -> pl.LazyFrame:
        from textnb.frames.mail import scan_with_texts

        return scan_with_texts(source, options)


class Database(RowSource):
    """A database's URL, with a query for its rows."""

    takes = frozenset({"query"})

    def knows(self, source: Any, options: ScanOptions) -> bool:
        return is_database(source)

    def open(self, source: Any, options: ScanOptions) -> pl.LazyFrame:
        from textnb.frames.database import scan_database

        if options.query is None:
            raise ParameterError.with_advice(
                f"{hide_secrets(source)} is a database: say which rows with ",
                "textnb.scan(url, query='SELECT ...')", "--read 'query=SELECT ...'")
        return scan_database(options.query, source)


# A source is read by the first of these that knows it.
SOURCES: tuple[RowSource, ...] = (
    TableInMemory(), Mail(), StandardInput(), Lake(), Database(), Cloud(), ClassFolder(), Files())


def open_source(source: Any, options: ScanOptions) -> pl.LazyFrame:
    """Open a source lazily, by the first of `SOURCES` that knows it.

    Raises
    ------
    ParameterError
        If a setting is not for such a source.
    SourceError
        If it can't be read.
    """
    check_polars_threads()
    with naming_source(source):
        path = _path_of(source)
        kind = _kind_of(path, options)
        kind.check_settings(options, hide_secrets(path) if isinstance(path, str) else "a table")
        return kind.open(path, options)


def _kind_of(source: Any, options: ScanOptions) -> RowSource:
    return next(kind for kind in SOURCES if kind.knows(source, options))


def is_mail(source: Any, format: str | None = None) -> bool:
    """Whether `scan` reads a source as mail: by ``format``, or by what the source is."""
    with naming_source(source):
        return isinstance(_kind_of(_path_of(source), ScanOptions(format=format)), Mail)


def _path_of(source: Any) -> Any:
    """A path as a string; other sources unchanged."""
    path = os.fspath(source) if isinstance(source, os.PathLike) else source
    if isinstance(path, str) and "\0" in path:
        # No system allows such a path, and most functions of Python raise a ValueError for it.
        raise SourceError.not_found(path)
    return path


def _columns_of(text: str | Sequence[str] | None) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text or ())


def check_columns(
    frame: pl.LazyFrame, *, text: str | Sequence[str] | None = None, label: str | None = None,
    tokens: Collection[str] | None = (),
) -> pl.LazyFrame:
    """Check that a frame has its text and label columns, of suitable types; return the frame.

    The parameters are those of `scan`.
    """
    check_polars_threads()
    columns = _columns_of(text)
    if not columns and label is None:
        return frame
    schema = frame.collect_schema()
    for column in columns:
        if column not in schema:
            raise missing_column(column, schema.names(), "text")
        check_name(column, "text")
    check_texts(schema, columns, tokens)
    if label is not None:
        if label not in schema:
            raise missing_column(label, schema.names(), "label")
        check_name(label, "label")
        column_type: Any = schema[label]
        is_list = isinstance(column_type, pl.List)
        dtype = column_type.inner if is_list else column_type
        if dtype == pl.Object:
            raise SchemaError.mixed_types(label, "label")
        fits_int64 = dtype.is_integer() and dtype not in (pl.UInt64, pl.Int128, pl.UInt128)
        if not (isinstance(dtype, _LABEL_TYPES) or fits_int64 or dtype == pl.Null):
            raise SchemaError.wrong_type(
                label, "label", ("a List of " if is_list else "")
                + "String, Categorical, Enum, Boolean or an integer type up to Int64", column_type)
    return frame


def check_kind_of_labels(frame: pl.LazyFrame, label: str, *, of_lists: bool) -> pl.LazyFrame:
    """Check that a column holds lists of labels, or one label per row; return the frame."""
    dtype = frame.collect_schema()[label]
    if isinstance(dtype, pl.List) == of_lists:
        return frame
    if of_lists:
        raise SchemaError.with_advice(
            f"the model predicts lists of labels, and the column {label!r} holds one label per "
            "document: ", "give lists, [label] where there is one",
            "give lists, or say --read label_separator=,")
    raise SchemaError(f"label column {label!r} holds lists of labels, and here each document must "
                      f"have one label; it is {dtype}")
