"""Standard input as a file: spooled to disk, because readers seek and memory is bounded."""

from __future__ import annotations

import codecs
import os
import signal
import sys
from typing import Any

import polars as pl

from textnb.errors import SourceError
from textnb.files.temporary import temporary_copy
from textnb.frames.files import scan_files
from textnb.frames.paths import first_bytes
from textnb.frames.sources import Reading, Source

_NAME = "standard input"
# The copy that was made last, and its format.
_spooled: tuple[str, str] | None = None


class StandardInput(Source):
    """``-``: rows of a format that their first bytes tell, or ``how.format``."""

    takes = frozenset({"format", "on_error", "separator"})

    def knows(self, source: Any, how: Reading) -> bool:
        return bool(source == "-")

    def open(self, source: Any, how: Reading) -> pl.LazyFrame:
        path, sniffed = spool_stdin()
        return scan_files([path], how.format or sniffed, how, _NAME)


def spool_stdin() -> tuple[str, str]:
    """Copy standard input to a temporary file; return its path, and the format by its content."""
    if sys.stdin is None:
        raise SourceError.unreadable(_NAME, "it is closed")
    # The engine's signal handler would let a blocked read continue after an interrupt.
    signal.siginterrupt(signal.SIGINT, True)
    path = temporary_copy(sys.stdin.buffer)
    if not os.path.getsize(path):
        raise SourceError.unreadable(_NAME, "it is empty")
    global _spooled
    _spooled = path, _sniff_format(first_bytes(path, 1 << 16))
    return _spooled


def spooled_stdin() -> tuple[str, str] | None:
    """The copy of standard input that was made last, and its format; None if there is none."""
    return _spooled


def _sniff_format(head: bytes) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "ipc"
    if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{"):
        return "ndjson"
    header = head.split(b"\n", 1)[0]
    return "tsv" if b"\t" in header and b"," not in header else "csv"
