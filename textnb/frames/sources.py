"""The interface of a source of rows, and the options with which it is read.

    RowSource.knows(source) -> RowSource.open(source) -> LazyFrame, nothing read yet

`textnb.frames.scan` has the list of all sources.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl
from polars.io.plugins import register_io_source

from textnb.errors import ParameterError, SourceError, quantity
from textnb.runtime.caller import warn_caller

# Takes the columns, a filter or None, and a maximum number of rows or None, and yields frames. The
# maximum counts rows before the filter. The function may ignore the filter, which is applied to the
# frames anyway; it is passed so that rows that it rejects need not be read.
Read = Callable[[list[str], pl.Expr | None, int | None], Iterator[pl.DataFrame]]
# Returns the columns of a CSV file that are read as numbers. It may call its argument to infer the
# schema, which reads the whole file.
NumericColumns = Callable[[Callable[[], pl.Schema]], Sequence[str]]
# Called after files were read, with the errors of those left out, and the number of all files.
OnSkip = Callable[[list[SourceError], int], object]
# How long the interpreter waits at its exit for batches that are being read; and how long it waits
# for another one, where a read did not end.
_MAX_EXIT_SECONDS, _IDLE_SECONDS = 2.0, 0.2


def no_numeric_columns(infer_schema: Callable[[], pl.Schema]) -> list[str]:
    """Read all columns of a CSV file as strings."""
    return []


@dataclass(frozen=True, kw_only=True)
class ScanOptions:
    """The checked settings of `scan`, and the columns that its caller needs.

    Attributes
    ----------
    format, encoding, storage_options, on_error, subfolders, separator, query
        As in `scan`.
    text : tuple of str
        The columns that are read as texts; for mail, also names of headers.
    label : str or None
        The column of labels.
    numeric_columns : NumericColumns or None
        The columns of a CSV file that are read as numbers, and others as strings. With None, all
        types are inferred.
    """

    format: str | None = None
    encoding: str = "utf-8"
    storage_options: Mapping[str, Any] | None = None
    on_error: str | OnSkip = "raise"
    subfolders: bool = False
    separator: str | None = None
    query: str | None = None
    text: tuple[str, ...] = ()
    label: str | None = None
    numeric_columns: NumericColumns | None = None

    def __post_init__(self) -> None:
        if self.format == "":
            raise ParameterError.out_of_range("format", "the name of a format", self.format)
        separator = self.separator
        if separator is not None and not (
                isinstance(separator, str) and len(separator) == 1 and separator.isascii()
                and separator not in "\"\n\r"):
            raise ParameterError.out_of_range(
                "separator", "one ASCII character, such as ';'", separator)
        if self.on_error not in ("raise", "skip") and not callable(self.on_error):
            raise ParameterError.out_of_range(
                "on_error", "'raise', 'skip' or a callable", self.on_error)

    @property
    def text_and_label(self) -> tuple[str, ...]:
        """The columns of texts, and the column of labels if there is one."""
        return (*self.text, *(() if self.label is None else (self.label,)))

    @property
    def is_utf8(self) -> bool:
        """Whether the encoding is UTF-8, however its name is written."""
        if not isinstance(self.encoding, str):
            raise ParameterError.out_of_range(
                "encoding", "the name of an encoding, such as 'latin-1'", self.encoding)
        return self.encoding.lower().replace("-", "").replace("_", "") == "utf8"

    @property
    def on_skip(self) -> OnSkip | None:
        """The function that gets the errors of files left out; None if no file may be left out."""
        if self.on_error == "raise":
            return None
        # With "skip", a warning says which files were left out.
        return self.on_error if callable(self.on_error) else _warn_of_skipped


def _warn_of_skipped(skipped: list[SourceError], n_files: int) -> None:
    warn_caller(f"{len(skipped)} of {quantity(n_files, 'file')} could not be read and were left "
                "out: " + "; ".join(map(str, skipped)))


class RowSource(ABC):
    """A kind of source of rows.

    Attributes
    ----------
    takes : frozenset of str
        The settings of `ScanOptions` that it takes; all others are refused by name.
    """

    takes: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def knows(self, source: Any, options: ScanOptions) -> bool:
        """Whether a source is of this kind, by ``options.format`` or by what the source is."""

    @abstractmethod
    def open(self, source: Any, options: ScanOptions) -> pl.LazyFrame:
        """Open the source lazily."""

    def check_settings(self, options: ScanOptions, name: str) -> None:
        """Raise ParameterError for a setting that this kind of source does not take."""
        for setting, purpose in _PURPOSES.items():
            value, default = getattr(options, setting), getattr(ScanOptions, setting)
            is_set = value not in (default, None, {}) and not (
                setting == "encoding" and options.is_utf8)
            if setting in self.takes or not is_set:
                continue
            raise ParameterError.naming_settings(
                f"{{{setting}}} is for {purpose}, and {{source}} is not one"
                + _HINTS.get(setting, ""), source=name)


# For errors: the sources that each setting is for, and advice.
_PURPOSES = {"format": "a file or folder", "encoding": "a folder of text files per class",
             "storage_options": "a URL such as s3://bucket/key", "on_error": "local files of rows",
             "subfolders": "a Maildir", "separator": "a file of CSV",
             "query": "a database, such as postgresql://user@host/name"}
_HINTS = {"encoding": ". Other formats are UTF-8: convert the file, e.g. iconv -f latin1 -t utf-8; "
                      "each message of mail tells its own",
          "subfolders": ". If it holds mail, say {format='mail'}"}


class _Reads:
    """The reads that the engine's threads have begun, and not read to their end.

    After a query that ends early (``head``), the engine still asks for one more batch. If the
    interpreter exited meanwhile, the engine would abort the process. So the exit waits a little,
    until no batch is being read, and of a read that did not end none was for a while.
    """

    def __init__(self) -> None:
        self._forget()
        atexit.register(self._wait)
        if hasattr(os, "register_at_fork"):
            # The engine's threads are not in a child.
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        # A generator may be thrown away by a thread that holds the lock.
        self._lock = threading.RLock()
        self._n_reads, self._n_batches, self._last_batch = 0, 0, 0.0

    @contextmanager
    def read(self) -> Iterator[None]:
        """A read, which ends too where its generator is thrown away."""
        with self._lock:
            self._n_reads += 1
            self._last_batch = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                self._n_reads -= 1

    @contextmanager
    def batch(self) -> Iterator[None]:
        with self._lock:
            self._n_batches += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_batches -= 1
                self._last_batch = time.monotonic()

    def _wait(self) -> None:
        deadline = time.monotonic() + _MAX_EXIT_SECONDS
        while (now := time.monotonic()) < deadline and (
                self._n_batches or (self._n_reads and now < self._last_batch + _IDLE_SECONDS)):
            time.sleep(0.01)


_READS = _Reads()


def lazy_frame_from(read: Read, schema: pl.Schema) -> pl.LazyFrame:
    """Make a LazyFrame whose rows a generator reads when it is collected.

    Parameters
    ----------
    read : callable
        See `Read`. It is called each time that the frame is collected.
    schema : Schema

    Examples
    --------
    >>> def numbers(columns, predicate, rows):
    ...     yield pl.DataFrame({"n": [1, 2, 3]}).head(3 if rows is None else rows)
    >>> frame = lazy_frame_from(numbers, pl.Schema({"n": pl.Int64}))
    >>> frame.filter(pl.col("n") > 1).collect().height
    2
    """
    def frames(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        stream = read(schema.names() if columns is None else columns, predicate, n_rows)
        with _READS.read():
            while True:
                with _READS.batch():
                    frame = next(stream, None)
                    if frame is not None and predicate is not None:
                        frame = frame.filter(predicate)
                if frame is None:
                    return
                yield frame

    # is_pure: the rows are the same each time, so that a query may read them only once.
    return register_io_source(frames, schema=schema, is_pure=True)
