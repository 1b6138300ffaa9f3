"""Finds the faulty line of a text file of rows, and says what is wrong there and what to do.

Files are read a second time, after the engine has failed. Only `check_surrogates` runs before, as
the engine does not fail on half a character: it reads NUL.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence

import polars as pl

from textnb.errors import SchemaError, SourceError, quantity
from textnb.frames.paths import ENGINE, TEXT_FORMATS, escape_glob, open_text

# Separators of CSV files other than the comma.
SEPARATORS = (";", "|", "\t")
# An escape of JSON for half of a character beyond U+FFFF; the two halves of one follow each other.
_HALF = r"\\u[dD][89a-fA-F]"
# A backslash that is no escape's beginning, and both halves of a character.
_NO_HALF = r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"


def describe_fault(path: str, format: str) -> str | None:
    """The first line of a text file that can't be read, and why; None if there is none.

    Parameters
    ----------
    path : str
    format : {"csv", "tsv", "ndjson", "lines"}
    """
    if format not in TEXT_FORMATS or path.endswith(".zst"):
        return None
    try:
        fault = _undecodable(path)
        if fault is None and format != "lines":
            fault = _json_fault(path) if format == "ndjson" else _csv_fault(path)
        return fault
    except (OSError, EOFError, csv.Error, ValueError):
        return None


class WrongSeparator(SchemaError):
    """The fields of a CSV file were not divided, as it has another separator.

    Attributes
    ----------
    separator : str
        The one that it seems to have.
    """

    separator = ""


def missing_column(column: str, columns: Sequence[str], role: str) -> SchemaError:
    """The error for a column that is not there; of a file of one column, with its separator."""
    alone = columns[0] if len(columns) == 1 else ""
    mark = next((mark for mark in SEPARATORS if mark in alone), None)
    if mark is None:
        return SchemaError.missing_column(column, columns, role)
    error = WrongSeparator.with_advice(
        f"no column {column!r} (the {role} column): the only column is {alone!r}, so that the "
        f"fields seem to be separated by {mark!r}. ", f"Say so: scan(path, separator={mark!r})",
        "Say so with " + (f"--read separator='{mark}'" if mark != "\t" else "--read format=tsv"))
    error.separator = mark
    return error


def check_surrogates(path: str, name: str | None = None) -> None:
    """Check that no string of a file of NDJSON holds half a character, such as ``"\\ud800"``.

    Raises
    ------
    SourceError
        If one does; the error names ``name``, or the path without one, and the line.
    """
    halves = pl.col("line").str.replace_all(_NO_HALF, "").str.contains(_HALF)
    try:
        lines = (pl.scan_lines(escape_glob([path]), name="line").with_row_index("number", 1)
                 .filter(pl.col("line").str.contains(_HALF)).filter(halves).head(1).collect())
    except (*ENGINE, EOFError):
        # Its reader reports that too.
        return
    if lines.height:
        raise SourceError.unreadable(
            name or path, f"line {lines['number'].item()} has a lone surrogate, half of a "
            "character, in a string (an escape such as \\ud800 without its other half): write "
            "U+FFFD (\\ufffd) in its place, or correct what wrote the file")


def _undecodable(path: str) -> str | None:
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
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                reason = str(error).split(": line ")[0]
                return (f"line {number} is no JSON ({reason}, at column "
                        f"{getattr(error, 'colno', 1)}); NDJSON has one object in each line")
            if not isinstance(row, dict):
                return (f"line {number} is no JSON object but {line[:40].decode()!r}; NDJSON has "
                        "one object in each line")
    return None


def _csv_fault(path: str) -> str | None:
    """Describe the first row with more fields than the header, or the quote that nothing closes."""
    with open_text(path) as raw:
        header = raw.readline().decode("utf-8-sig")
    separator = max((",", *SEPARATORS), key=header.count)
    largest = csv.field_size_limit(sys.maxsize)
    try:
        with open_text(path) as raw:
            rows = csv.reader((line.decode("utf-8-sig") for line in raw), strict=True,
                              delimiter=separator)
            fields = len(next(rows, []))
            begin = rows.line_num + 1
            try:
                for row in rows:
                    if len(row) > fields:
                        return (f"line {begin} has {quantity(len(row), 'field')}, and the header "
                                f"has {fields}: put a text that holds {separator!r} in quotes "
                                "(\"...\")")
                    begin = rows.line_num + 1
            except csv.Error as error:
                if "unexpected end" in str(error):
                    return (f"line {begin} opens a quote (\") that nothing closes: close it, or "
                            "write a quote within a quoted text twice (\"\")")
                return (f"line {begin} has a quote (\") within a text in quotes: write it twice "
                        "(\"\")")
    finally:
        csv.field_size_limit(largest)
    return None
