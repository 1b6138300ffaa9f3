"""Opens a source of documents as a LazyFrame, and checks its columns.

    path | glob | folder | - | URL | DataFrame | LazyFrame  ->  LazyFrame, nothing read yet
"""

from __future__ import annotations

import glob as globbing
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import polars as pl

from textnb.errors import Mention, ParameterError, SchemaError, SourceError, quantity
from textnb.frames.cloud import (
    check_storage_options,
    hide_secrets,
    is_database,
    is_url,
)
from textnb.frames.failures import reading
from textnb.frames.faults import check_surrogates, missing_column
from textnb.frames.features import feature_columns
from textnb.frames.folder import scan_folder
from textnb.frames.formats import (
    Csv,
    escape_glob,
    format_of,
    ndjson_reader,
    no_numbers,
    one_format,
    reader_of,
)
from textnb.frames.kinds import Table, as_polars
from textnb.frames.lake import FORMATS as LAKES
from textnb.frames.lake import scan_lake, table_format
from textnb.frames.paths import TEXT_FORMATS, check_file, check_text
from textnb.frames.slices import OnSkip, scan_in_turn
from textnb.frames.stdin import spool_stdin
from textnb.frames.token_columns import check_texts
from textnb.runtime.caller import warn_caller
from textnb.runtime.forks import check_fork

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
) -> pl.LazyFrame:
    """Open a table of documents lazily, and check its columns.

    Parameters
    ----------
    source : path, or table
        A table: a Polars DataFrame or LazyFrame, a pandas DataFrame, a PyArrow Table, a DuckDB
        relation, a dict of columns, a list of dicts. Or a file, a glob (``"news/*.parquet"``), a
        folder of data files, a folder with one folder of text files per class, ``"-"`` for
        standard input, a URL that Polars reads (``s3://...``), a Delta or Iceberg table's folder.
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
        Needed if the name does not tell.
    encoding : str
        Encoding of the text files in a folder per class; other formats are UTF-8.
    storage_options : mapping, optional
        Passed to Polars for URLs: ``aws_region``, ``aws_endpoint_url``, ... Those of S3 are
        checked; without credentials among them, they are looked for where the AWS tools do. A
        server that does not answer is asked four times in all, or as ``max_retries`` says.
    on_error : {"raise", "skip"} or callable
        What to do about a local file that can't be read to its end (truncated, corrupt, not UTF-8,
        without permission, a link that leads nowhere, a pipe): raise an error that names it; or
        leave out the whole file, and after the other files warn which were left out and why (or
        call the callable with the list of `SourceError` and the number of files). Files of rows
        are then read twice: to their end, before a row is used, and for their rows. Of mail, where
        "raise" gives a row whose ``errors`` say what can't be read, each such message is left out.
    subfolders : bool
        For mail only: also read the folders of each Maildir, such as ``.Spam``; see `scan_mail`.
    separator : str, optional
        For CSV only: the character between fields, such as ``";"``; else it is the comma, and in
        TSV the tab.
    tokens : collection of str, optional
        Those columns of ``text`` that must hold lists of tokens, List(String), as `Tokenizer`'s
        ``token_columns`` says; None if each may hold a text or such a list.

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
    how = Csv(None if text is None else no_numbers, _check_separator(separator, source, format))
    on_skip = _on_skip(on_error, source)
    if is_mail(source, format):
        frame = _scan_mail(source, text, encoding, subfolders, on_skip)
    elif subfolders:
        raise ParameterError.naming(
            "{subfolders} is for mail, as a Maildir has folders; the source is no mail, or needs "
            "{format='mail'}")
    else:
        frame = _frame_of(source, format, encoding, how, storage_options, on_skip)
    with reading(source):
        return check_columns(frame, text=text, label=label, tokens=tokens)


def _check_separator(separator: str | None, source: Any, format: str | None) -> str | None:
    """The separator of CSV files, checked."""
    if separator is None:
        return None
    if not isinstance(separator, str) or len(separator) != 1 or not separator.isascii() or (
            separator in "\"\n\r"):
        raise ParameterError.out_of_range(
            "separator", "one ASCII character, such as ';'", separator)
    if not isinstance(source, (str, os.PathLike)) or is_mail(source, format):
        raise ParameterError.naming("{separator} is for files of CSV; the source is none")
    return separator


def is_mail(source: Any, format: str | None = None) -> bool:
    """Whether `scan` reads a source as mail: by ``format``, or by what the source is."""
    if not isinstance(source, (str, os.PathLike)) or format not in (None, "mail"):
        return False
    with reading(source):
        # Readers of mail are many modules, which a table in memory does not need.
        from textnb.frames.mailboxes import looks_like_mail

        return format == "mail" or looks_like_mail(os.fspath(source))


def _scan_mail(
    source: Any, text: str | Sequence[str] | None, encoding: str, subfolders: bool,
    on_skip: OnSkip | None,
) -> pl.LazyFrame:
    """Scan mail with the columns that are read as texts.

    Names that are not columns of mail are headers, but ``text``, which is subject and body, and
    ``tokens``.
    """
    from textnb.frames.mail import COLUMNS, scan_messages
    from textnb.mail.columns import TOKENS
    from textnb.mail.message import check_headers

    if encoding.lower().replace("-", "") != "utf8":
        raise ParameterError(f"encoding={encoding!r} is not for mail: each message tells its own")
    columns = [text] if isinstance(text, str) else list(text or [])
    headers = check_headers(
        [name for name in columns if name not in (*COLUMNS, TOKENS, "text")], "text")
    with reading(source):
        frame = scan_messages(source, headers=headers, subfolders=subfolders,
                              tokens=TOKENS in columns, on_skip=on_skip)
    if "text" not in columns:
        return frame
    return frame.with_columns(
        text=pl.concat_str(pl.col("subject").fill_null(""), "body", separator="\n"))


def scan_table(
    source: Any, features: Any, label: str | None = None, *, format: str | None = None,
    encoding: str = "utf-8", storage_options: Mapping[str, Any] | None = None,
    on_error: str | OnSkip = "raise", separator: str | None = None,
) -> pl.LazyFrame:
    """`scan` for a feature table: features of a CSV file are read as numbers.

    Its other columns are read as strings, without changes. Without ``features``, all columns that
    hold only numbers are features.
    """
    def numbers(inferred: Callable[[], pl.Schema]) -> list[str]:
        if isinstance(features, (list, tuple)):
            return [name for name in features if isinstance(name, str)]
        if isinstance(features, str):
            return [features]
        return feature_columns(pl.LazyFrame(schema=inferred()), features, label)

    how = Csv(numbers, _check_separator(separator, source, format))
    frame = _frame_of(source, format, encoding, how, storage_options, _on_skip(on_error, source))
    with reading(source):
        check_columns(frame, label=label)
        return frame if label is None else check_kind_of_labels(frame, label, lists=False)


def _frame_of(
    source: Any, format: str | None, encoding: str, how: Csv,
    storage_options: Mapping[str, Any] | None, on_skip: OnSkip | None,
) -> pl.LazyFrame:
    if isinstance(source, (str, os.PathLike)):
        with reading(source):
            return _open(os.fspath(source), format, encoding, how, storage_options,
                         on_skip)
    return as_polars(source).lazy()


def _on_skip(on_error: Any, source: Any) -> OnSkip | None:
    if on_error == "raise":
        return None
    if on_error != "skip" and not callable(on_error):
        raise ParameterError.out_of_range("on_error", "'raise', 'skip' or a callable", on_error)
    if not isinstance(source, (str, os.PathLike)):
        raise ParameterError.naming(
            "{on_error} is for files; the rows of a frame are read elsewhere")
    return _warn if on_error == "skip" else on_error


def _warn(skipped: list[SourceError], files: int) -> None:
    warn_caller(f"{len(skipped)} of {quantity(files, 'file')} could not be read and were left out: "
                + "; ".join(map(str, skipped)))


def check_columns(
    frame: pl.LazyFrame, *, text: str | Sequence[str] | None = None, label: str | None = None,
    tokens: Collection[str] | None = (),
) -> pl.LazyFrame:
    """Check that a frame has its text and label columns, of suitable types; return the frame.

    See `scan`.
    """
    check_fork()
    columns = [text] if isinstance(text, str) else list(text or [])
    if not columns and label is None:
        return frame
    schema = frame.collect_schema()
    for column in columns:
        if column not in schema:
            raise missing_column(column, schema.names(), "text")
    check_texts(schema, columns, tokens)
    if label is not None:
        if label not in schema:
            raise missing_column(label, schema.names(), "label")
        dtype: Any = schema[label]
        if isinstance(dtype, pl.List):
            dtype = dtype.inner
        if dtype == pl.Object:
            raise SchemaError.mixed_types(label, "label")
        narrow = dtype.is_integer() and dtype not in (pl.UInt64, pl.Int128, pl.UInt128)
        if not (isinstance(dtype, _LABEL_TYPES) or narrow or dtype == pl.Null):
            raise SchemaError.wrong_type(
                label, "label", ("a List of " if dtype is not schema[label] else "")
                + "String, Categorical, Enum, Boolean or an integer type up to Int64",
                schema[label])
    return frame


def check_kind_of_labels(frame: pl.LazyFrame, label: str, *, lists: bool) -> pl.LazyFrame:
    """Check that a column holds lists of labels, or one label per row; return the frame."""
    dtype = frame.collect_schema()[label]
    if isinstance(dtype, pl.List) == lists:
        return frame
    if lists:
        raise SchemaError.with_advice(
            f"the model predicts lists of labels, and the column {label!r} holds one label per "
            "document: ", "give lists, [label] where there is one",
            "give lists, or say --read label_separator=,")
    raise SchemaError(f"label column {label!r} holds lists of labels, and here each document must "
                      f"have one label; it is {dtype}")


def _open(
    path: str, format: str | None, encoding: str, how: Csv,
    storage_options: Mapping[str, Any] | None, on_skip: OnSkip | None,
) -> pl.LazyFrame:
    folder = os.path.isdir(path) or format == "folder"
    if encoding.lower().replace("-", "") != "utf8" and not folder:
        raise ParameterError.naming(
            "{given} is for a folder of text files per class; other formats are UTF-8: convert the "
            "file, e.g. iconv -f latin1 -t utf-8", given=Mention("encoding", repr(encoding)))
    if path == "-":
        path, sniffed = spool_stdin()
        if (format or sniffed) in TEXT_FORMATS:
            check_text(path, "standard input")
        if (format or sniffed) == "ndjson":
            check_surrogates(path, "standard input")
        return _scan_local([path], format or sniffed, how, on_skip)
    options = check_storage_options(path, storage_options)
    lake = format if format in LAKES else table_format(path) if format is None else None
    if on_skip is not None and (is_url(path) or lake):
        raise ParameterError.naming("{on_error} is for local files of rows; {path} is none",
                                    path=hide_secrets(path))
    if lake is not None:
        return scan_lake(path, lake, options)
    if is_url(path):
        if is_database(path):
            raise ParameterError(f"{hide_secrets(path)} is a database: say which rows with "
                                 "textnb.scan_database(query, connection)")
        return reader_of(format or format_of(path), how, storage_options=options)(path)
    if os.path.isdir(path):
        return _open_folder(path, format, encoding, how, on_skip)
    if os.path.exists(path):
        return _scan_local([path], format or format_of(path), how, on_skip)
    matches = _match_glob(path)
    if not matches:
        raise SourceError.not_found(path)
    return _scan_local(matches, format or one_format(matches), how, on_skip)


def _match_glob(pattern: str) -> list[str]:
    """Files that match a glob, and matching folders whose files do not match, sorted."""
    matches = sorted(globbing.glob(pattern, recursive=True))
    # A match that is neither file nor folder fails where it is read.
    files = [path for path in matches if not os.path.isdir(path)]
    # A folder named as a file holds parts, which a ** has already matched.
    apart = [path for path in matches if os.path.isdir(path)
             and not any(file.startswith(os.path.join(path, "")) for file in files)]
    return sorted(files + apart)


def _scan_local(
    files: list[str], format: str, how: Csv, on_skip: OnSkip | None
) -> pl.LazyFrame:
    """Scan existing files: columnar files in slices, and one by one where some may be left out."""
    if on_skip is None:
        for path in files:
            check_path(path, format)
    reader = reader_of(format, how)
    columnar = format in ("parquet", "ipc")
    if format == "ndjson" and len(files) > 1:
        reader = ndjson_reader(files, on_skip is not None)
    if columnar or on_skip is not None:
        return scan_in_turn(
            files, lambda path: reader(escape_glob([path])), sliced=columnar, on_skip=on_skip,
            check=lambda path: check_path(path, format))
    return reader(escape_glob(files))


def check_path(path: str, format: str) -> None:
    """Raise SourceError unless a path is that of a file, without a mark of UTF-16 if it is text."""
    if os.path.isdir(path):
        # A folder that is named as a file: the engine reads the parts in it.
        return
    check_file(path)
    if format in TEXT_FORMATS:
        check_text(path)
    if format == "ndjson":
        check_surrogates(path)


def _open_folder(
    path: str, format: str | None, encoding: str, how: Csv, on_skip: OnSkip | None
) -> pl.LazyFrame:
    if format == "folder":
        return scan_folder(path, encoding, on_skip)
    with os.scandir(path) as entries:
        # os.path.isdir, as an entry's is_dir raises for a link that leads to itself.
        inside = sorted((entry.name, entry.path, os.path.isdir(entry.path)) for entry in entries)
    shown_files = [where for name, where, is_folder in inside
                   if not is_folder and not name.startswith((".", "_"))]
    regular = [where for where in shown_files if os.path.isfile(where)]
    if on_skip is None:
        for where in shown_files:
            check_file(where)
    if regular:
        return _scan_local(shown_files, format or one_format(regular), how, on_skip)
    if any("=" in name for name, _, is_folder in inside if is_folder):
        partitioned = sorted(globbing.glob(os.path.join(globbing.escape(path), "**", "*.parquet"),
                                           recursive=True))
        if partitioned:
            if on_skip is not None:
                raise ParameterError.naming("{on_error} is not for a folder of partitions "
                                            "(name=value): name its files: {path}/**/*.parquet",
                                            path=path)
            return pl.scan_parquet(globbing.escape(path), hive_partitioning=True)
    return scan_folder(path, encoding, on_skip)
