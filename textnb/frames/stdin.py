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
from textnb.files.cleanup import temporary_copy

STDIN = "standard input"
# The copy that was made last, and its format.
_spooled: tuple[str, str] | None = None
# Spaces and empty lines before the first other byte, which were read to find the format, and the
# largest number of them: a stream may have nothing else.
_blanks = b""
_MAX_BLANKS = 1 << 20


def spool_stdin() -> tuple[str, str]:
    """Copy standard input to a temporary file; return its path, and the format by its content."""
    if sys.stdin is None:
        raise SourceError.unreadable(STDIN, "it is closed")
    # The engine's signal handler would let a blocked read continue after an interrupt.
    signal.siginterrupt(signal.SIGINT, True)
    path = temporary_copy(sys.stdin.buffer, beginning=take_blanks())
    with open(path, "rb") as copy:
        head = copy.read(1 << 16)
    if not head:
        raise SourceError.unreadable(STDIN, "it is empty")
    global _spooled
    _spooled = path, _sniff_format(head)
    return _spooled


def format_of_stdin() -> str | None:
    """The format of standard input by its first bytes; None if it is empty.

    Waits for a byte that is not blank, which stays unread. `take_blanks` returns those before it.
    """
    global _blanks
    if sys.stdin is None:
        raise SourceError.unreadable(STDIN, "it is closed")
    signal.siginterrupt(signal.SIGINT, True)
    source = sys.stdin.buffer
    if isinstance(source, io.BufferedReader):
        while _is_blank(head := source.peek(1)) and len(_blanks) < _MAX_BLANKS:
            _blanks += source.read(len(head))
        head = _blanks + head
    else:
        # Bytes in memory.
        head, place = source.read(1 << 16), source.tell()
        source.seek(place - len(head))
    return _sniff_format(head) if head else None


def take_blanks() -> bytes:
    """Return the blank bytes that `format_of_stdin` has read, and forget them."""
    global _blanks
    blanks, _blanks = _blanks, b""
    return blanks


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
    text = head.removeprefix(codecs.BOM_UTF8).strip()
    # Blank lines alone are not CSV, which has a header.
    if not text or text.startswith(b"{"):
        return "ndjson"
    header = head.split(b"\n", 1)[0]
    return "tsv" if b"\t" in header and b"," not in header else "csv"


def _is_blank(head: bytes) -> bool:
    """Whether there are bytes, and all are blank, after a mark of UTF-8 if it is there."""
    return bool(head) and not head.removeprefix(codecs.BOM_UTF8).strip()
