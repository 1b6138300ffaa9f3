"""Turns failures of the engine's readers into errors that name the file and, if known, the line."""

from __future__ import annotations

import glob as globbing
import os

import polars as pl

from textnb.errors import SourceError, first_line
from textnb.files.parquet import ENGINE_ERRORS
from textnb.frames.cloud import explain_failure, hide_secrets, is_url
from textnb.frames.faults import describe_fault
from textnb.frames.formats import format_of, open_rows
from textnb.frames.paths import READ_ERRORS, expand_glob
from textnb.frames.sources import ScanOptions, no_numeric_columns
from textnb.frames.stdin import STDIN, spooled_stdin
from textnb.runtime.engine import engine_failure

# The name of a frame in errors.
_FRAME = "the frame"


class naming_source:
    """Context that turns a failure to read a source into an error that names the file.

    Parameters
    ----------
    source : Source
        The argument of `scan`: a path, a URL or a table.
    """

    def __init__(self, source: object):
        self._source = source

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if (isinstance(error, SourceError) and isinstance(error.__cause__, ENGINE_ERRORS)
                and error.path == _FRAME):
            # An inner context knew only the frame, and not the file from which it was read.
            error = error.__cause__
        # A broken pipe is a failure of the output, not of the source.
        if not isinstance(error, (*READ_ERRORS, UnicodeError)) or isinstance(
                error, BrokenPipeError):
            return
        is_engine_error = isinstance(error, ENGINE_ERRORS)
        # The cause may be the system and not the file: a lack of memory, for example.
        if is_engine_error and (failure := engine_failure(error)) is not None:
            raise failure from error
        if not isinstance(self._source, (str, os.PathLike)):
            if is_engine_error:
                raise SourceError.unreadable(_FRAME, _reason(error)) from error
            return
        path = os.fspath(self._source)
        # A file that exists may name another that does not, as a log of Delta does.
        if (isinstance(error, FileNotFoundError) and not is_url(path)
                and not os.path.lexists(path)):
            raise SourceError.not_found(path) from None
        raise SourceError.unreadable(*_locate_failure(path, error)) from error


def _reason(error: BaseException) -> str:
    # Types within types are compared by recursion.
    return "it is nested too deeply" if isinstance(error, RecursionError) else first_line(error)


def _locate_failure(path: str, error: BaseException) -> tuple[str, str]:
    """Return the name of what can't be read, and why.

    Local files are read again, to find the one with the fault.
    """
    if is_url(path):
        return hide_secrets(path), explain_failure(path, error)
    if path == "-":
        copy_and_format = spooled_stdin()
        fault = None if copy_and_format is None else describe_fault(*copy_and_format)
        return STDIN, fault or first_line(error)
    pattern = os.path.join(globbing.escape(path), "**") if os.path.isdir(path) else path
    files = [path] if os.path.isfile(path) else filter(os.path.isfile, expand_glob(pattern))
    columns: dict[str, list[str]] = {}
    for name in files:
        try:
            format = format_of(name)
        except SourceError:
            # The format of this file is not known, so another file is the one that failed.
            continue
        if format == "mail":
            continue
        try:
            # Read every column as text, so that no type of values is a failure.
            options = ScanOptions(numeric_columns=no_numeric_columns)
            frame = open_rows([name], format, options)
            frame.select(pl.all().null_count()).collect()
            columns[name] = frame.collect_schema().names()
        except READ_ERRORS as error_of_file:
            return name, describe_fault(name, format) or _reason(error_of_file)
    if first_line(error).startswith(("schema names differ", "schema lengths differ")):
        first_file, expected = next(iter(columns.items()))
        for name, names in columns.items():
            if names != expected:
                return name, (f"its columns are {', '.join(names)}, and those of {first_file} are "
                              f"{', '.join(expected)}; files that are read together must have the "
                              "same columns, of CSV in the same order")
    return path, first_line(error)
