"""Standard input as a file: spooled to disk, because readers seek and memory is bounded.

Polars is not imported, as a single message is read without it.
"""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys

from textnb.errors import SourceError
from textnb.files.temporary import temporary_copy

STDIN = "standard input"
# The copy that was made last, and its format.
_spooled: tuple[str, str] | None = None


def spool_stdin() -> tuple[str, str]:
    """Copy standard input to a temporary file; return its path, and the format by its content."""
    if sys.stdin is None:
        raise SourceError.unreadable(STDIN, "it is closed")
    # The engine's signal handler would let a blocked read continue after an interrupt.
    signal.siginterrupt(signal.SIGINT, True)
    path = temporary_copy(sys.stdin.buffer)
    with open(path, "rb") as copy:
        head = copy.read(1 << 16)
    if not head:
        raise SourceError.unreadable(STDIN, "it is empty")
    global _spooled
    _spooled = path, _sniff_format(head)
    return _spooled


def format_of_stdin() -> str | None:
    """The format of standard input by its first bytes, which stay unread; None if it is empty.

    It waits until there are some.
    """
    if sys.stdin is None:
        raise SourceError.unreadable(STDIN, "it is closed")
    signal.siginterrupt(signal.SIGINT, True)
    source = sys.stdin.buffer
    if isinstance(source, io.BufferedReader):
        head = source.peek(1)
    else:
        # Bytes in memory.
        head, place = source.read(1 << 16), source.tell()
        source.seek(place - len(head))
    return _sniff_format(head) if head else None


def spooled_stdin() -> tuple[str, str] | None:
    """The copy of standard input that was made last, and its format; None if there is none."""
    return _spooled


def shown_name(path: str) -> str:
    """A path for error messages: "standard input" for its copy; invalid UTF-8 as U+FFFD."""
    if _spooled is not None and path == _spooled[0]:
        return STDIN
    return os.fsencode(path).decode("utf-8", "replace")


def _sniff_format(head: bytes) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "ipc"
    if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{"):
        return "ndjson"
    header = head.split(b"\n", 1)[0]
    return "tsv" if b"\t" in header and b"," not in header else "csv"
