"""Finds the faulty line of a text file of rows, and says what is wrong there and what to do.

Files are read a second time, after the engine has failed. Only `check_surrogates` runs before, as
the engine does not fail on half a character: it reads NUL.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import IO

from textnb.errors import SchemaError, SourceError, quantity
from textnb.frames.kinds import is_unicode

# Separators of CSV files other than the comma.
SEPARATORS = (";", "|", "\t")
_BLOCK = 1 << 20
# An escape of JSON for half of a character beyond U+FFFF; the two halves of one follow each other.
_ESCAPE = len("\\ud800")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]", re.ASCII)


def describe_fault(path: str, format: str) -> str | None:
    """The first line of a text file that can't be read, and why; None where none is found.

    Parameters
    ----------
    path : str
    format : {"csv", "tsv", "ndjson", "lines"}
    """
    if format not in ("csv", "tsv", "ndjson", "lines") or path.endswith(".zst"):
        return None
    try:
        fault = _undecodable(path)
        if fault is None and format in ("csv", "tsv"):
            fault = _csv_fault(path)
        if fault is None and format == "ndjson":
            fault = _json_fault(path)
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
        "Say so with " + (f"--read separator='{mark}'" if mark != "\t" else "--input-format tsv"))
    error.separator = mark
    return error


def check_surrogates(path: str, name: str | None = None) -> None:
    """Check that no string of a file of NDJSON holds half a character, such as ``"\\ud800"``.

    Raises
    ------
    SourceError
        If one does; the error names ``name``, or the path without one, and the line.
    """
    if path.endswith(".zst"):
        return
    try:
        for number, line in _lines_with_halves(path):
            try:
                whole = is_unicode(json.dumps(json.loads(line), ensure_ascii=False))
            except ValueError:
                # No JSON, which its reader reports.
                continue
            if not whole:
                raise SourceError.unreadable(
                    name or path, f"line {number} has a lone surrogate, half of a character, in a "
                    "string (an escape such as \\ud800 without its other half): write U+FFFD "
                    "(\\ufffd) in its place, or correct what wrote the file")
    except (OSError, EOFError):
        # Its reader reports that too.
        return


def _open(path: str) -> IO[bytes]:
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else open(path, "rb")  # type: ignore[return-value]  # GzipFile


def _lines_with_halves(path: str) -> Iterator[tuple[int, bytes]]:
    """The numbers, from 1, and bytes of the lines that may hold half a character."""
    if not _holds_halves(path):
        return
    with _open(path) as file:
        before, rest = 0, b""
        while block := file.read(_BLOCK):
            block = rest + block
            end = block.rfind(b"\n") + 1
            block, rest = block[:end], block[end:]
            yield from _halves(block, before)
            before += block.count(b"\n")
        yield from _halves(rest, before)


def _holds_halves(path: str) -> bool:
    """Whether a file has an escape of half a character, of a whole one too; mostly it has none."""
    end = b""
    with _open(path) as file:
        while block := file.read(_BLOCK):
            if _HALF.search(block) or _HALF.search(end + block[:_ESCAPE]):
                return True
            end = (end + block)[-_ESCAPE:] if len(block) < _ESCAPE else block[-_ESCAPE:]
    return False


def _halves(block: bytes, before: int) -> Iterator[tuple[int, bytes]]:
    start = 0
    while found := _HALF.search(block, start):
        begin = block.rfind(b"\n", 0, found.start()) + 1
        end = block.find(b"\n", found.start())
        end = len(block) if end < 0 else end
        yield before + block.count(b"\n", 0, begin) + 1, block[begin:end]
        start = end


def _undecodable(path: str) -> str | None:
    """Describe the first line that is not UTF-8."""
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return (f"line {number} is not UTF-8 (byte 0x{line[error.start]:02x} at column "
                        f"{error.start + 1}); convert it, e.g. iconv -f latin1 -t utf-8")
    return None


def _json_fault(path: str) -> str | None:
    with _open(path) as file:
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
    with _open(path) as raw:
        header = raw.readline().decode("utf-8-sig")
    separator = max((",", *SEPARATORS), key=header.count)
    largest = csv.field_size_limit(sys.maxsize)
    try:
        with _open(path) as raw:
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
