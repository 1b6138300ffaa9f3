"""Temporary files, which are removed even if the process ends before it has used them."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO


@contextmanager
def cleanup(remove: Callable[[], None]) -> Iterator[None]:
    """Call a function at the end of the block, or at the end of the process if that comes first.

    A ``finally`` is not enough: it does not run if another thread ends the process. An OSError of
    the function is ignored, as it would hide the failure of the block.
    """
    def try_to_remove() -> None:
        with suppress(OSError):
            remove()

    atexit.register(try_to_remove)
    try:
        yield
    finally:
        try_to_remove()
        atexit.unregister(try_to_remove)


def temporary_copy(stream: IO[bytes], suffix: str = "", beginning: bytes = b"") -> str:
    """Copy a stream, whose ``beginning`` was read already, to a file; return the file's path.

    Only this user can read the file. It is removed when the process ends.
    """
    path = os.path.join(tempfile.gettempdir(), f"textnb-{os.urandom(16).hex()}{suffix}")
    # Registered before the file exists, because an interrupt may come between any two lines.
    atexit.register(_remove_if_there, path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as copy:
        copy.write(beginning)
        shutil.copyfileobj(stream, copy, 1 << 20)
    return path


def _remove_if_there(path: str) -> None:
    """Remove a file, unless it is gone already."""
    with suppress(FileNotFoundError):
        os.unlink(path)
