"""How many rows a source has, without reading it, so that progress can be shown as a share.

    Parquet and IPC -> rows from the footers; CSV, NDJSON and text -> lines in a few samples
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Sized
from typing import Any

import polars as pl

from textnb.errors import SourceError
from textnb.frames.files import Files, StandardInput, files_of
from textnb.frames.formats import format_of
from textnb.frames.paths import LINE_FORMATS, READ_ERRORS, escape_glob
from textnb.frames.scan import SOURCES
from textnb.frames.sources import ScanOptions
from textnb.frames.stdin import spooled_stdin
from textnb.runtime.progress import Size

# Lines are counted in this number of samples of a file, each of this number of bytes.
_N_SAMPLES, _SAMPLE_BYTES = 16, 1 << 16
# Formats with a header, and fields in quotes.
_QUOTED_FORMATS = ("csv", "tsv")
# The first bytes of files that are compressed with gzip or zstd.
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


def rows_of(source: str, format: str | None = None) -> Size | None:
    """The number of rows in the files of a source; None if it is not known before they are read.

    Parameters
    ----------
    source : str
        A file, a glob, a folder of files, or ``-`` if standard input has been read.
    format : str, optional
        The format of the rows, if the name does not show it.
    """
    kind = next(kind for kind in SOURCES if kind.knows(source, ScanOptions(format=format)))
    if not isinstance(kind, (Files, StandardInput)):
        return None
    spooled = spooled_stdin() if source == "-" else None
    try:
        files = files_of(source) if spooled is None else [spooled[0]]
        if not files or not all(map(os.path.isfile, files)):
            return None
        format = format or (format_of(files[0]) if spooled is None else spooled[1])
        if format == "parquet":
            return Size(_count_rows(pl.scan_parquet(escape_glob(files))))
        if format == "ipc":
            return Size(_count_rows(pl.scan_ipc(escape_glob(files))))
        return _estimate(files, format) if format in LINE_FORMATS else None
    except (*READ_ERRORS, SourceError):
        # The error is raised when the rows are read.
        return None


def size_of(rows: Any) -> Size | None:
    """As `rows_of`, for a table or a sequence too."""
    if isinstance(rows, (str, os.PathLike)):
        return rows_of(os.fspath(rows))
    return Size(len(rows)) if isinstance(rows, Sized) and not isinstance(rows, Mapping) else None


def _count_rows(frame: pl.LazyFrame) -> int:
    return int(frame.select(pl.len()).collect().item())


def _estimate(files: Sequence[str], format: str) -> Size | None:
    """Estimate rows by the lines of samples, for CSV without the line ends in quoted fields."""
    n_rows = 0.0
    for path in files:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            starts = sorted({i * size // _N_SAMPLES for i in range(_N_SAMPLES)})
            samples = []
            for start in starts:
                file.seek(start)
                samples.append(file.read(_SAMPLE_BYTES))
        if samples[0].startswith(_COMPRESSED):
            return None
        n_lines, n_bytes = sum(sample.count(b"\n") for sample in samples), sum(map(len, samples))
        if not n_lines:
            return None
        share = _share_outside_quotes(samples[0]) if format in _QUOTED_FORMATS else 1.0
        n_rows += size * n_lines / n_bytes * share
    n_headers = len(files) if format in _QUOTED_FORMATS else 0
    return Size(max(1, round(n_rows) - n_headers), is_exact=False)


def _share_outside_quotes(text: bytes) -> float:
    """The share of line ends that are not within a quoted field.

    Examples
    --------
    >>> round(_share_outside_quotes(b'a,"two\\nlines"\\nb,one\\n'), 2)
    0.67
    """
    # Every other piece between quotes is outside a field.
    return sum(piece.count(b"\n") for piece in text.split(b'"')[::2]) / max(1, text.count(b"\n"))
