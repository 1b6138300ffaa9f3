"""A file is replaced whole or not at all: written beside its final name, and renamed."""

from __future__ import annotations

import atexit
import errno
import functools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from textnb.errors import SourceError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` once it is whole; on any failure, nothing changes."""
    target = check_target(path)
    try:
        descriptor, temporary = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    except OSError as error:
        raise SourceError(f"can't write {os.fspath(path)}: {error.strerror}") from error
    # Where the process is ended from another thread, no `except` of this one runs.
    forgotten = functools.partial(_discard, temporary)
    atexit.register(forgotten)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except OSError as error:
        _discard(temporary)
        raise SourceError(f"can't write {os.fspath(path)}: {error.strerror}") from error
    except BaseException:
        _discard(temporary)
        raise
    finally:
        atexit.unregister(forgotten)


def check_target(path: str | os.PathLike[str]) -> Path:
    """Where a file will be put; SourceError if none can be put there."""
    shown, target = os.fspath(path), Path(path).resolve()
    if not shown or target.is_dir():
        raise SourceError(f"can't write {shown!r}: it is a folder, not a file")
    if target.exists() and not target.is_file():
        raise SourceError(f"can't write {shown!r}: it is a device or a pipe, and a rename would "
                          "replace it; use - for standard output")
    if not target.parent.is_dir():
        raise SourceError(f"can't write {shown!r}: {os.strerror(errno.ENOENT)}: there is no "
                          f"folder {str(target.parent)!r}")
    if not os.access(target.parent, os.W_OK):
        raise SourceError(f"can't write {shown!r}: its folder is not writable")
    return target


def _discard(temporary: str) -> None:
    if os.path.exists(temporary):
        os.unlink(temporary)


def _mode(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o777
    return 0o666 & ~creation_mask()


def creation_mask() -> int:
    """The permissions that new files are not given."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
