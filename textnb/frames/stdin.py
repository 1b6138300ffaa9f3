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
# Spaces and line ends at the beginning of the stream, which were read to find the format.
_blanks = b""
# The maximum number of such bytes: a stream may have nothing else.
_MAX_BLANKS = 1 << 20


def spool_stdin() -> tuple[str, str]:
    """Copy standard input to a temporary file; return its path, and the format of its content."""
    if sys.stdin is None:
        raise SourceError.unreadable(STDIN, "it is closed")
    # With the engine's signal handler, a read that waits would go on after an interrupt.
    signal.siginterrupt(signal.SIGINT, True)
    path = temporary_copy(sys.stdin.buffer, beginning=take_blanks())
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

    Wait for a byte that is not blank, and leave it unread. `take_blanks` returns the blank bytes
    before it.
    """
    global _blanks
    if sys.stdin is None:
        raise SourceError.unreadable(STDIN, "it is closed")
    # As in `spool_stdin`.
    signal.siginterrupt(signal.SIGINT, True)
    source = sys.stdin.buffer
    if isinstance(source, io.BufferedReader):
        while _is_blank(head := source.peek(1)) and len(_blanks) < _MAX_BLANKS:
            _blanks += source.read(len(head))
        head = _blanks + head
    else:
        # Bytes in memory, which have no `peek`.
        head, position = source.read(1 << 16), source.tell()
        source.seek(position - len(head))
    return _sniff_format(head) if head else None


def take_blanks() -> bytes:
    """Return the blank bytes that `format_of_stdin` has read, and forget them."""
    global _blanks
    blanks, _blanks = _blanks, b""
    return blanks


def spooled_stdin() -> tuple[str, str] | None:
    """The path of the last copy of standard input, and its format; None if there is none."""
    return _spooled


def shown_name(path: str) -> str:
    """A path for error messages: "standard input" for its copy; invalid UTF-8 as U+FFFD."""
    if _spooled is not None and path == _spooled[0]:
        return STDIN
    return os.fsencode(path).decode("utf-8", "replace")


def _sniff_format(head: bytes) -> str:
    """The format of rows by their first bytes: those of Parquet and IPC are always the same."""
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
    """Whether bytes are blank, apart from a byte-order mark; False if there are none."""
    return bool(head) and not head.removeprefix(codecs.BOM_UTF8).strip()
