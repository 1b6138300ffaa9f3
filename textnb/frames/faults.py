"""Finds the invalid line of a CSV, NDJSON or text file, and says what is wrong and what to do.

After Polars has failed, this reads the file again. Only `check_header` and `check_strings` run
before Polars reads. They find what Polars would read wrongly without an error: faults in the header
of a CSV file; and in NDJSON a lone surrogate, which it reads as NUL, and a list in a column of
strings, which it reads as the list's JSON text.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Collection, Sequence
from typing import Any

import polars as pl

from textnb.errors import SchemaError, SourceError, quantity
from textnb.frames.batches import UnfinishedError, collect_batches
from textnb.frames.cloud import hide_secrets, is_url
from textnb.frames.paths import LINE_FORMATS, READ_ERRORS, escape_glob, open_text
from textnb.frames.stdin import shown_name
from textnb.runtime.unicode import is_unicode

# Separators of CSV files other than the comma.
SEPARATORS = (";", "|", "\t")
# The JSON escape of a surrogate. A character beyond U+FFFF needs two, one after the other.
_SURROGATE = r"\\u[dD][89a-fA-F]"
# What must not count as a lone surrogate: an escaped backslash, and a surrogate pair.
_NOT_LONE = r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_SURROGATE_FAULT = (
    "has a lone surrogate, half of a character, in a string (an escape such as \\ud800 without its "
    "other half): write U+FFFD (\\ufffd) in its place, or fix the program that wrote the file")
_LINES_PER_BATCH = 1024
# The maximum number of bytes of a CSV file's header that are checked.
_MAX_HEADER = 1 << 16


def describe_fault(path: str, format: str) -> str | None:
    """The first invalid line of a text file, and what is wrong; None if no such line is found.

    Parameters
    ----------
    path : str
    format : str
        None is returned for one that is not of `LINE_FORMATS`.
    """
    if format not in LINE_FORMATS or path.endswith(".zst"):
        return None
    try:
        if (fault := _encoding_fault(path)) is not None:
            return fault
        match format:
            case "csv" | "tsv":
                return _csv_fault(path)
            case "ndjson":
                return _json_fault(path)
    except (OSError, EOFError, csv.Error, ValueError):
        return None
    return None


class WrongSeparator(SchemaError):
    """A CSV file was read as a single column, because it has another separator.

    Attributes
    ----------
    separator : str
        The separator that the file seems to have.
    """

    separator = ""


def missing_column(column: str, columns: Sequence[str], role: str) -> SchemaError:
    """The error for a missing column; it suggests a separator that the only column's name has.

    Parameters
    ----------
    column : str
        The column that is missing.
    columns : sequence of str
        The columns that are there.
    role : str
        What the column is for: "text" or "label".
    """
    only_column = columns[0] if len(columns) == 1 else ""
    separator = next((character for character in SEPARATORS if character in only_column), None)
    if separator is None:
        return SchemaError.missing_column(column, columns, role)
    # Advice for Python, and advice for the command line.
    option = "format=tsv" if separator == "\t" else f"separator='{separator}'"
    error = WrongSeparator.with_advice(
        f"no column {column!r} (the {role} column): the only column is {only_column!r}, so the "
        f"fields seem to be separated by {separator!r}. ",
        f"Say so: scan(path, separator={separator!r})", f"Say so with --read {option}")
    error.separator = separator
    return error


def check_header(path: str, separator: str, columns: Collection[str]) -> None:
    """Check the header of a CSV file for what Polars would read wrongly without an error.

    Parameters
    ----------
    path : str
    separator : str
    columns : collection of str
        The columns that are read.

    Raises
    ------
    SourceError
        If lines end with CR alone, so that all of them are the header, or if one of the columns is
        there twice.
    """
    try:
        with open_text(path) as file:
            header = file.read(_MAX_HEADER).split(b"\n")[0].rstrip(b"\r")
        if b"\r" in header and b'"' not in header:
            raise SourceError.unreadable(
                shown_name(path), "its lines end with CR alone; convert it, e.g. tr '\\r' '\\n'")
        names = next(csv.reader([header.decode("utf-8-sig")], delimiter=separator), [])
    except (*READ_ERRORS, EOFError, UnicodeDecodeError, csv.Error):
        # Polars reports these errors itself when it reads the rows.
        return
    if twice := [name for name in columns if names.count(name) > 1]:
        raise SourceError.unreadable(
            shown_name(path), f"it has more than one column {twice[0]!r}: rename the others")


def check_strings(source: str, columns: Collection[str], **options: Any) -> None:
    """Check NDJSON for strings that Polars would read wrongly without an error.

    Parameters
    ----------
    source : str
        A URL, or the path of a file.
    columns : collection of str
        The string columns that are read.
    options
        Arguments of Polars' functions for URLs, such as ``storage_options``.

    Raises
    ------
    SourceError
        If a string holds a lone surrogate, such as ``"\\ud800"``, or if one of the columns holds
        a list or an object; the error names the line.
    """
    line = pl.col("line")
    has_lone = line.str.replace_all(_NOT_LONE, "").str.contains(_SURROGATE)
    # A name in JSON may have escapes in place of characters beyond ASCII.
    names = "|".join(re.escape(json.dumps(name, ensure_ascii=ascii))
                     for name in columns for ascii in (True, False))
    has_nested = line.str.contains(rf"(?:{names})\s*:\s*[\[{{]") if names else pl.lit(False)
    try:
        lines = pl.scan_lines(source if is_url(source) else escape_glob([source]), name="line",
                              **options).with_row_index("number", offset=1)
        # The cheap test first: it rules out nearly all lines.
        lines = lines.filter(line.str.contains(_SURROGATE) | has_nested).with_columns(lone=has_lone)
        for batch in collect_batches(lines.filter(pl.col("lone") | has_nested), _LINES_PER_BATCH):
            for number, text, is_lone in batch.rows():
                if fault := (_LONE_SURROGATE_FAULT if is_lone
                             else _nested_value_fault(text, columns)):
                    raise SourceError.unreadable(
                        hide_secrets(shown_name(source)), f"line {number} {fault}")
    except UnfinishedError:
        raise
    except (*READ_ERRORS, EOFError):
        # Polars reports these errors itself when it reads the rows.
        return


def _nested_value_fault(line: str, columns: Collection[str]) -> str | None:
    """Describe a list or an object in one of the columns of a line; None if there is none."""
    try:
        row = json.loads(line)
    except RecursionError:
        return "is nested too deeply"
    except ValueError:
        return None
    return next((f"has {json.dumps(row[column]):.60} in the column {column!r}, and other lines "
                 "have strings: write strings in all lines, or lists of them in all"
                 for column in columns if isinstance(row.get(column), (list, dict))), None)


def _encoding_fault(path: str) -> str | None:
    """Describe the first line that is not UTF-8."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return (f"line {number} is not UTF-8 (byte 0x{line[error.start]:02x} at column "
                        f"{error.start + 1}); convert it, e.g. iconv -f latin1 -t utf-8")
    return None


def _json_fault(path: str) -> str | None:
    """Describe the first line that is not a JSON object."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                # A byte-order mark is allowed at the start of the file alone.
                row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"),
                                 parse_constant=_refuse_constant)
                written = json.dumps(row, ensure_ascii=False)
            except RecursionError:
                return f"line {number} is nested too deeply"
            except ValueError as error:
                # Without the place, which Python's message counts from the start of this line.
                reason = str(error).split(": line ")[0]
                column = getattr(error, "colno", None)
                return (f"line {number} is not JSON ({reason}"
                        + ("" if column is None else f", at column {column}")
                        + "); NDJSON has one object per line")
            if not isinstance(row, dict):
                return (f"line {number} is not a JSON object but {line[:40].decode()!r}; NDJSON "
                        "has one object per line")
            if not is_unicode(written):
                return f"line {number} {_LONE_SURROGATE_FAULT}"
    return None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def _csv_fault(path: str) -> str | None:
    """Describe the first row with more fields than the header, or with a faulty quote."""
    with open_text(path) as raw:
        header = raw.readline().decode("utf-8-sig")
    separator = max((",", *SEPARATORS), key=header.count)
    # A field may be longer than Python's default limit.
    previous_limit = csv.field_size_limit(sys.maxsize)
    try:
        with open_text(path) as raw:
            rows = csv.reader((line.decode("utf-8-sig") for line in raw), strict=True,
                              delimiter=separator)
            n_fields = len(next(rows, []))
            first_line = rows.line_num + 1
            try:
                for row in rows:
                    if len(row) > n_fields:
                        return (f"line {first_line} has {quantity(len(row), 'field')}, and the "
                                f"header has {n_fields}: put a text that holds {separator!r} in "
                                "quotes (\"...\")")
                    first_line = rows.line_num + 1
            except csv.Error as error:
                if "unexpected end" in str(error):
                    return (f"line {first_line} opens a quote (\") that is never closed: close it, "
                            "or double each quote within a quoted text (\"\")")
                return (f"line {first_line} has a quote (\") within a quoted text: double it "
                        "(\"\")")
    finally:
        csv.field_size_limit(previous_limit)
    return None
