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
# The path of the copy that was made last, and its format.
_spooled: tuple[str, str] | None = None
# Formats whose first bytes are always the same.
_FORMATS = {b"PAR1": "parquet", b"ARROW1": "ipc"}
# What was read of the stream to find its format: blank bytes, or a part of one of the marks.
_beginning = b""
# The maximum size of the beginning: a stream may have nothing but blank bytes.
_MAX_BEGINNING = 1 << 20


def spool_stdin() -> tuple[str, str]:
    """Copy standard input to a temporary file; return its path, and the format of its content."""
    if sys.stdin is None:
        raise SourceError.unreadable(STDIN, "it is closed")
    # With the engine's signal handler, a read that waits would go on after an interrupt.
    signal.siginterrupt(signal.SIGINT, True)
    path = temporary_copy(sys.stdin.buffer, beginning=take_beginning())
    with open(path, "rb") as copy:
        # The line of a header may be long.
        head = copy.read(1 << 16)
    if not head:
        raise SourceError.unreadable(STDIN, "it is empty")
    global _spooled
    _spooled = path, _sniff_format(head)
    return _spooled


def format_of_stdin() -> str | None:
    """The format of standard input by its first bytes; None if it is empty.

    Wait for a byte that is not blank, or for the whole mark of a format, and leave it unread.
    `take_beginning` returns the bytes before it.
    """
    global _beginning
    if sys.stdin is None:
        raise SourceError.unreadable(STDIN, "it is closed")
    # As in `spool_stdin`.
    signal.siginterrupt(signal.SIGINT, True)
    source = sys.stdin.buffer
    if isinstance(source, io.BufferedReader):
        while ((head := source.peek(1)) and _says_nothing(_beginning + head)
               and len(_beginning) < _MAX_BEGINNING):
            _beginning += source.read(len(head))
        head = _beginning + head
    else:
        # Bytes in memory, which have no `peek`.
        head, position = source.read(1 << 16), source.tell()
        source.seek(position - len(head))
    return _sniff_format(head) if head else None


def take_beginning() -> bytes:
    """Return the bytes that `format_of_stdin` has read, and forget them."""
    global _beginning
    beginning, _beginning = _beginning, b""
    return beginning


def spooled_stdin() -> tuple[str, str] | None:
    """The path of the last copy of standard input, and its format; None if there is none."""
    return _spooled


def shown_name(path: str) -> str:
    """A path for error messages: "standard input" for its copy; invalid UTF-8 as U+FFFD."""
    if _spooled is not None and path == _spooled[0]:
        return STDIN
    return os.fsencode(path).decode("utf-8", "replace")


def _sniff_format(head: bytes) -> str:
    """The format of rows by their first bytes."""
    for mark, format in _FORMATS.items():
        if head.startswith(mark):
            return format
    text = head.removeprefix(codecs.BOM_UTF8).strip()
    # Blank lines alone are not CSV, which has a header.
    if not text or text.startswith(b"{"):
        return "ndjson"
    header = head.split(b"\n", 1)[0]
    return "tsv" if b"\t" in header and b"," not in header else "csv"


def _says_nothing(head: bytes) -> bool:
    """Whether bytes are blank, or a part of a mark, so that more must be seen for the format."""
    return not head.removeprefix(codecs.BOM_UTF8).strip() or any(
        len(head) < len(mark) and mark.startswith(head) for mark in (codecs.BOM_UTF8, *_FORMATS))
