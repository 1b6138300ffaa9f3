"""Temporary copies of streams that a reader can't open, removed when the process ends."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from typing import IO
from uuid import uuid4


def temporary_copy(stream: IO[bytes], suffix: str = "", beginning: bytes = b"") -> str:
    """Copy a stream, of which the beginning was read already, to a file that only this user can
    read; return its path."""
    path = os.path.join(tempfile.gettempdir(), f"textnb-{uuid4().hex}{suffix}")
    # Registered before the file exists, because an interrupt may come between any two lines.
    atexit.register(_remove, path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as copy:
        copy.write(beginning)
        shutil.copyfileobj(stream, copy, 1 << 20)
    return path


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
