"""Standard input as a file: spooled to disk, because readers seek and memory is bounded."""

from __future__ import annotations

import atexit
import codecs
import os
import shutil
import signal
import sys
import tempfile
from uuid import uuid4

from textnb.errors import SourceError

# The copy that was made last, and its format.
_spooled: tuple[str, str] | None = None


def spool_stdin() -> tuple[str, str]:
    """Copy standard input to a temporary file; return its path, and the format by its content."""
    if sys.stdin is None:
        raise SourceError.unreadable("standard input", "it is closed")
    # The engine's signal handler would let a blocked read continue after an interrupt.
    signal.siginterrupt(signal.SIGINT, True)
    path = os.path.join(tempfile.gettempdir(), f"textnb-stdin-{uuid4().hex}")
    # Registered before the file exists, because an interrupt may come between any two lines.
    atexit.register(_remove, path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
    with open(path, "rb") as copy:
        head = copy.read(1 << 16)
    if not head:
        raise SourceError.unreadable("standard input", "it is empty")
    global _spooled
    _spooled = path, _sniff_format(head)
    return _spooled


def spooled_stdin() -> tuple[str, str] | None:
    """The copy of standard input that was made last, and its format; None where none was."""
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


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)
