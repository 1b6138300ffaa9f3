"""Failures of the engine's readers as errors that name the file, and its line where they can."""

from __future__ import annotations

import glob as globbing
import os

import polars as pl

from textnb.errors import SourceError, first_line
from textnb.frames.cloud import explain_failure, hide_secrets, is_url
from textnb.frames.faults import describe_fault
from textnb.frames.formats import Csv, escape_glob, format_of, no_numbers, reader_of
from textnb.frames.stdin import spooled_stdin
from textnb.runtime.engine import engine_failure

# The name of a frame in errors.
_FRAME = "the frame"


class reading:
    """Context in which a failure of the reader becomes an error that names the file.

    Parameters
    ----------
    source : Source
        The argument of `scan`.
    """

    def __init__(self, source: object):
        self._source = source

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        engine = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
        if (isinstance(error, SourceError) and isinstance(error.__cause__, engine)
                and error.path == _FRAME):
            # An inner context knew only the frame, and not the file from which it came.
            error = error.__cause__
        if not isinstance(error, (*engine, OSError, UnicodeError)):
            return
        if isinstance(error, BrokenPipeError):
            return
        if isinstance(error, engine) and (failure := engine_failure(error)) is not None:
            raise failure from error
        if not isinstance(self._source, (str, os.PathLike)):
            if isinstance(error, engine):
                raise SourceError.unreadable(_FRAME, first_line(error)) from error
            return
        path = os.fspath(self._source)
        if isinstance(error, FileNotFoundError) and "://" not in path:
            raise SourceError.not_found(path) from None
        name, reason = _culprit(path, error)
        raise SourceError.unreadable(name, reason) from error


def _culprit(path: str, error: BaseException) -> tuple[str, str]:
    """Read the files again one by one to find which one failed, and why."""
    if is_url(path):
        return hide_secrets(path), explain_failure(path, error)
    if path == "-":
        spooled = spooled_stdin()
        fault = None if spooled is None else describe_fault(*spooled)
        return "standard input", fault or first_line(error)
    files = [path] if os.path.isfile(path) else sorted(
        name for name in globbing.glob(
            os.path.join(globbing.escape(path), "**") if os.path.isdir(path) else path,
            recursive=True)
        if os.path.isfile(name))
    for name in files:
        try:
            if format_of(name) == "mail":
                continue
            alone = reader_of(format_of(name), Csv(no_numbers))(escape_glob([name]))
            alone.select(pl.all().null_count()).collect()
        except SourceError:
            continue
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as again:
            return name, describe_fault(name, format_of(name)) or first_line(again)
    return path, first_line(error)
