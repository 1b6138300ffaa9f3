"""Locks, so that only one process at a time changes a file, a folder or the output of a job.

These are locks of the operating system, by `filelock`: they end with the process that holds them,
however it ends. `lock_path` locks the file or folder itself, so nothing is left beside it, and a
user who may only read it may lock it too. `filelock.FileLock` would leave a file of its own.

The library is imported where a lock is taken: most commands take none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from textnb.errors import SourceError
from textnb.files.cleanup import cleanup

# The files that `lock_path` holds, by their real paths.
_locked: dict[str, int] = {}


@contextmanager
def lock_path(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file that is read, changed and replaced, or of a folder.

    Another process that needs the lock waits, and then reads what this one has written, so no
    change is lost; of one that needs none, see `check_not_replaced`. A path that can't be opened
    is not locked: the block gets the error when it reads the path. On Windows, where a
    locked file can't be replaced, nothing is locked.

    Raises
    ------
    SourceError
        If the file system has no locks.
    """
    descriptor, real_path = None, os.path.realpath(path)
    if sys.platform != "win32":
        with suppress(OSError):
            descriptor = _lock(path, os.O_RDONLY, wait=True)
    try:
        if descriptor is not None:
            _locked[real_path] = descriptor
        yield
    finally:
        if descriptor is not None:
            # Another thread may have locked the new file meanwhile.
            if _locked.get(real_path) == descriptor:
                del _locked[real_path]
            with suppress(OSError):
                os.close(descriptor)


def check_not_replaced(path: str | os.PathLike[str]) -> None:
    """Raise SourceError if a file that is locked here is another now.

    `textnb train`, for example, replaces a model without a lock, as it reads no old one.
    """
    descriptor = _locked.get(os.path.realpath(path))
    if descriptor is not None and os.path.exists(path) and not _is_open_at(path, descriptor):
        raise replaced_error(path)


def note_replaced(path: str | os.PathLike[str]) -> None:
    """Note that this process has replaced a file, so that `check_not_replaced` allows it again."""
    _locked.pop(os.path.realpath(path), None)


def replaced_error(path: str | os.PathLike[str]) -> SourceError:
    """The error for a file that another process has replaced while it was to be changed."""
    return SourceError(f"{os.fspath(path)} was replaced by another process, and is left as that "
                       "wrote it: repeat the change")


@contextmanager
def lock_file(path: Path) -> Iterator[bool]:
    """Hold a lock on a lock file, which guards something that may not exist yet, without waiting.

    Parameters
    ----------
    path : Path
        The lock file: it is made here, and removed at the end. A link is not followed.

    Yields
    ------
    bool
        Whether the lock is held; if not, another process holds it.

    Raises
    ------
    SourceError
        If the file can't be made, or the file system has no locks.
    """
    try:
        descriptor = _lock(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), wait=False)
    except OSError as error:
        raise SourceError.unwritable(path, error.strerror or error) from error
    if descriptor is None:
        yield False
        return
    try:
        # Removed while it is locked: a process that has opened it meanwhile sees that it is gone.
        with cleanup(path.unlink):
            yield True
    finally:
        with suppress(OSError):
            os.close(descriptor)


def _lock(path: str | os.PathLike[str], flags: int, *, wait: bool) -> int | None:
    """Lock the file at a path; return its descriptor, or None if another process has the lock."""
    from filelock import lock_descriptor

    while True:
        descriptor = os.open(path, flags, 0o600)
        try:
            if not lock_descriptor(descriptor, blocking=wait):
                os.close(descriptor)
                return None
            if _is_open_at(path, descriptor):
                return descriptor
        except OSError as error:
            os.close(descriptor)
            raise SourceError(f"can't lock {os.fspath(path)!r}: {error.strerror or error}; use a "
                              "file system that has locks") from error
        except BaseException:
            os.close(descriptor)
            raise
        # The process that held the lock before has replaced or removed the file: lock the new one.
        os.close(descriptor)


def _is_open_at(path: str | os.PathLike[str], descriptor: int) -> bool:
    """Whether the file at a path is still the one that is open."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
