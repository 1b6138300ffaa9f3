"""How many rows a source has, without reading it: what progress is a share of.

    Parquet and IPC -> their footers; lines of CSV, NDJSON and text -> bytes of a few samples
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Sized
from typing import Any

import polars as pl

from textnb.errors import SourceError
from textnb.frames.files import Files, StandardInput, files_of
from textnb.frames.formats import format_of
from textnb.frames.paths import ENGINE, TEXT_FORMATS, escape_glob
from textnb.frames.scan import SOURCES
from textnb.frames.sources import Reading
from textnb.frames.stdin import spooled_stdin
from textnb.runtime.progress import Size

# Lines are counted in this number of samples of a file, each of so many bytes.
_SAMPLES, _BYTES = 16, 1 << 16
# Formats with a header, and fields in quotes.
_QUOTED = ("csv", "tsv")
# How files of gzip and zstd begin.
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


def rows_of(source: str, format: str | None = None) -> Size | None:
    """The number of rows in the files of a source; None if it is not known before they are read.

    Parameters
    ----------
    source : str
        A file, a glob, a folder of files, or ``-`` if standard input has been read.
    format : str, optional
        Of the rows, if the name does not show it.
    """
    kind = next(kind for kind in SOURCES if kind.knows(source, Reading(format=format)))
    if not isinstance(kind, (Files, StandardInput)):
        return None
    spooled = spooled_stdin() if source == "-" else None
    try:
        files = files_of(source) if spooled is None else [spooled[0]]
        if not files or not all(map(os.path.isfile, files)):
            return None
        format = format or (format_of(files[0]) if spooled is None else spooled[1])
        if format == "parquet":
            return Size(_rows_of(pl.scan_parquet(escape_glob(files))))
        if format == "ipc":
            return Size(_rows_of(pl.scan_ipc(escape_glob(files))))
        return _estimate(files, format) if format in TEXT_FORMATS else None
    except (*ENGINE, SourceError):
        # Whoever reads the rows says what is wrong.
        return None


def size_of(rows: Any) -> Size | None:
    """As `rows_of`, for a table or a sequence too."""
    if isinstance(rows, (str, os.PathLike)):
        return rows_of(os.fspath(rows))
    return Size(len(rows)) if isinstance(rows, Sized) and not isinstance(rows, Mapping) else None


def _rows_of(frame: pl.LazyFrame) -> int:
    return int(frame.select(pl.len()).collect().item())


def _estimate(files: Sequence[str], format: str) -> Size | None:
    """The lines of files, by those of their samples; of CSV without the lines within quotes."""
    rows = 0.0
    for path in files:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            starts = sorted({sample * size // _SAMPLES for sample in range(_SAMPLES)})
            samples = []
            for start in starts:
                file.seek(start)
                samples.append(file.read(_BYTES))
        if samples[0].startswith(_PACKED):
            return None
        lines, length = sum(each.count(b"\n") for each in samples), sum(map(len, samples))
        if not lines:
            return None
        share = _share_outside_quotes(samples[0]) if format in _QUOTED else 1.0
        rows += size * lines / length * share
    return Size(max(1, round(rows) - (len(files) if format in _QUOTED else 0)), is_exact=False)


def _share_outside_quotes(text: bytes) -> float:
    """The share of line ends that are not within a quoted field.

    Examples
    --------
    >>> round(_share_outside_quotes(b'a,"two\\nlines"\\nb,one\\n'), 2)
    0.67
    """
    return sum(part.count(b"\n") for part in text.split(b'"')[::2]) / max(1, text.count(b"\n"))
