"""Writes predictions in batches, to standard output or to a file that is complete or absent."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any

import polars as pl
import polars.selectors as cs

from textnb.errors import ParameterError, SchemaError, SourceError, first_line
from textnb.files.replace import check_target, replace_file
from textnb.frames.batches import collect_batches
from textnb.frames.cloud import hide_secrets, is_url
from textnb.frames.formats import ENDINGS as INPUT_ENDINGS
from textnb.runtime.stopping import count_written, raise_if_stopped

FORMATS = ("parquet", "ipc", "csv", "tsv", "ndjson")
ENDINGS = {ending: format for ending, format in INPUT_ENDINGS.items() if format in FORMATS}
SEPARATORS = {"csv": ",", "tsv": "\t"}
# A spreadsheet may take a text that begins with one of these for a formula: see OWASP, "CSV
# injection".
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
_BATCH_ROWS = 8192
# Rows of a Parquet row group, which the engine holds in memory. Its default is eight times as many,
# which would be gigabytes of long texts.
_ROW_GROUP_SIZE = 1 << 15
_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# This number of bytes is written to see whether the disk is full.
_PROBE_SIZE = 1 << 16


def write(
    frame: pl.LazyFrame, path: str, format: str | None = None, *, safe_csv: bool = False
) -> None:
    """Write the rows of a lazy frame to a file, or to standard output for ``-``, in order.

    Without ``format``, the ending of the path says it. In CSV and TSV, lists of strings are joined
    by "; ". With ``safe_csv``, spreadsheets take no text in them for a formula.

    Raises
    ------
    ParameterError
        If the format is not known.
    SchemaError
        If the format can't hold a column of the frame.
    """
    format = output_format(path, format, safe_csv=safe_csv)
    if format in (*SEPARATORS, "ndjson"):
        _check_types(frame.collect_schema(), format)
    if format in SEPARATORS:
        frame = frame.with_columns(cs.by_dtype(pl.List(pl.String)).list.join("; "))
        if safe_csv:
            frame = _without_formulas(frame)
    if path == "-":
        with _report_io_errors("standard output"):
            _write_to_stdout(frame, format)
        return
    with replace_file(path) as file, _report_io_errors(path, file):
        if format == "parquet":
            frame.sink_parquet(file, row_group_size=_ROW_GROUP_SIZE)
        elif format == "ipc":
            frame.sink_ipc(file)
        elif format == "ndjson":
            frame.sink_ndjson(file)
        else:
            frame.sink_csv(file, separator=SEPARATORS[format])
        # The engine may have lost the exception of a signal, and not have written all rows.
        raise_if_stopped()


def _check_types(schema: pl.Schema, format: str) -> None:
    """Raise SchemaError for a column that a text format can't hold."""
    for name, dtype in schema.items():
        has_bytes = _holds_bytes(dtype)
        in_csv = dtype == pl.List(pl.String) or not (dtype.is_nested() or dtype == pl.Duration)
        if has_bytes or (format in SEPARATORS and not in_csv):
            raise SchemaError(
                f"column {name!r} is {dtype}, which {'NDJSON' if format == 'ndjson' else 'CSV'} "
                f"can't hold: write Parquet{'' if has_bytes else ' or NDJSON'}, or drop it")


def _holds_bytes(dtype: Any) -> bool:
    """Whether values of a type hold bytes (Binary), also in lists and structs."""
    inner = ([field.dtype for field in dtype.fields] if isinstance(dtype, pl.Struct) else
             [dtype.inner] if isinstance(dtype, (pl.List, pl.Array)) else [])
    return dtype == pl.Binary or any(map(_holds_bytes, inner))


def _without_formulas(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Put an apostrophe before each text and name that a spreadsheet could take for a formula."""
    text = (cs.string() | cs.categorical() | cs.enum()).cast(pl.String)
    names = {name: f"'{name}" for name in frame.collect_schema()
             if name.startswith(_FORMULA_STARTS)}
    return frame.with_columns(
        pl.when(text.str.contains(f"^[{re.escape(''.join(_FORMULA_STARTS))}]"))
        .then("'" + text).otherwise(text).name.keep()).rename(names)


@contextmanager
def _report_io_errors(path: str, file: IO[bytes] | None = None) -> Iterator[None]:
    """A context in which failures of a disk become errors that name the output.

    The engine reports failures of input and output alike. Only a full disk shows that the output
    failed, and not the input.
    """
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        number = next((code for code in _DISK_FULL_ERRORS if getattr(error, "errno", None) == code
                       or f"os error {code})" in str(error)), None) or _error_of_writing(file)
        if number is not None:
            raise SourceError.unwritable(path, os.strerror(number)) from error
        if file is not None and (isinstance(error, OSError) or "os error" in str(error)):
            raise SourceError(
                f"can't read the input or write {path!r}: {first_line(error)}") from error
        raise


def _error_of_writing(file: IO[bytes] | None) -> int | None:
    """The number of the error (`errno`) if the disk is full: it is found by writing more bytes.

    The engine hides that a file's footer did not fit.
    """
    try:
        if file is not None:
            end = file.seek(0, os.SEEK_END)
            if os.pwrite(file.fileno(), b"\0" * _PROBE_SIZE, end) < _PROBE_SIZE:
                return errno.ENOSPC
    except OSError as error:
        return error.errno if error.errno in _DISK_FULL_ERRORS else None
    return None


def output_format(
    path: str, format: str | None, *, safe_csv: bool = False, advice: str = "or say --output-format"
) -> str:
    """The requested format, or else that of the path's ending, or NDJSON for standard output.

    ``advice`` ends the error for an ending that is not known.

    Raises
    ------
    ParameterError
        If the format is not known, can't be written to the path, or with ``safe_csv`` is neither
        CSV nor TSV.
    """
    chosen = _output_format(path, format, advice)
    if safe_csv and chosen not in SEPARATORS:
        raise ParameterError.naming_settings(
            "{safe_csv} is for csv and tsv, whose texts spreadsheets may take for formulas; the "
            "output is {chosen}", chosen=chosen)
    return chosen


def _output_format(path: str, format: str | None, advice: str) -> str:
    if is_url(path):
        # If the input fails, the engine completes the upload with the rows so far: half a table
        # would replace the old one, and look complete.
        raise ParameterError(f"can't write {hide_secrets(path)}: an upload that fails "
                             "halfway would leave part of the rows there. Write a file, and copy "
                             "it when it is complete")
    if format is not None and format not in FORMATS:
        raise ParameterError.unknown_choice("--output-format", format, FORMATS)
    if path == "-":
        if format in ("parquet", "ipc"):
            raise ParameterError(f"{format} can't be streamed to standard output; "
                                 "choose ndjson, csv or tsv")
        return format or "ndjson"
    check_target(path)
    ending = os.path.splitext(path)[1].lower()
    if format is None and ending not in ENDINGS:
        raise ParameterError(f"can't tell the output format from {path!r}; known endings: "
                             f"{', '.join(ENDINGS)}; {advice}")
    return format or ENDINGS[ending]


def _write_to_stdout(frame: pl.LazyFrame, format: str) -> None:
    batches = collect_batches(frame, _BATCH_ROWS)
    first_batch = next(batches, None)
    if first_batch is None:
        # A header is written even if there are no rows.
        first_batch = pl.DataFrame(schema=frame.collect_schema())
    for number, batch in enumerate(chain([first_batch], batches)):
        text = batch.write_ndjson() if format == "ndjson" else batch.write_csv(
            separator=SEPARATORS[format], include_header=number == 0)
        # From here on, the message for an interrupt says how many rows were written.
        count_written(0)
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
        count_written(batch.height)
