"""One process at a time changes a file that is read, changed and replaced."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """The only one to change a file that is read, changed and replaced.

    Another process that asks for the same file waits, and then reads what this one has written: no
    change is lost. A file that is not there is not locked.
    """
    try:
        import fcntl
    except ImportError:  # pragma: no cover - where there are no such locks
        yield
        return
    while True:
        try:
            file = open(path, "rb")  # noqa: SIM115 - held for as long as the lock is
        except OSError:
            # Whoever reads it says why it can't be read.
            yield
            return
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                current = os.stat(path)
            except FileNotFoundError:
                continue
            # Whoever held the lock before may have put another file in its place.
            if os.path.samestat(os.fstat(file.fileno()), current):
                yield
                return
