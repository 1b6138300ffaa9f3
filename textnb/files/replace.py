"""A file or a folder is replaced completely or not at all: written beside its name, and renamed."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from textnb.errors import SourceError
from textnb.files.cleanup import cleanup
from textnb.files.lock import lock_file


@contextmanager
def replace_file(
    path: str | os.PathLike[str], *, private: bool = False, mode: int | None = None
) -> Iterator[IO[bytes]]:
    """Write a file that replaces ``path`` once it is complete; on any failure, nothing changes.

    Parameters
    ----------
    path : path
        Where ``path`` is a link, the file that it leads to is replaced.
    private : bool
        Only the owner may read the file, and a link itself is replaced: for a folder of another
        user, whose links may lead anywhere.
    mode : int, optional
        The file's; by default that of the file that it replaces.

    Raises
    ------
    SourceError
        If the path can't be written.
    """
    target = Path(path).absolute() if private else check_target(path)
    with report_write_errors(path):
        descriptor, temporary = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        with cleanup(partial(_discard, temporary)):
            with os.fdopen(descriptor, "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if not private:
                _keep_owner(temporary, target)
            os.chmod(temporary, 0o600 if private else _mode(target) if mode is None else mode)
            os.replace(temporary, target)


@contextmanager
def replace_folder(
    path: str | os.PathLike[str], check: Callable[[Path], object] | None = None
) -> Iterator[Path]:
    """Write a folder that replaces ``path`` at the end; on any failure, nothing changes.

    The old folder is removed once the new one is in its place. One process at a time does so, and
    first cleans up after a process that was killed.

    Parameters
    ----------
    path : path
        A folder that may be replaced, or a path that does not exist: the caller has checked that.
    check : callable, optional
        Called with the folder when no other process can change it any more.

    Raises
    ------
    SourceError
        If the path can't be written, or another process writes it.
    """
    target = Path(path).resolve()
    lock, work, old = (target.with_name(f".{target.name}.textnb-{suffix}")
                       for suffix in ("lock", "run", "old"))
    with lock_file(lock) as is_alone:
        if not is_alone:
            raise SourceError(f"another run is at work on {str(target)!r}; wait for it, or choose "
                              "another output")
        with report_write_errors(path):
            if old.exists() and not target.exists():
                # Killed between its two renames.
                os.rename(old, target)
        for folder in (work, old):
            shutil.rmtree(folder, ignore_errors=True)
        if check is not None:
            check(target)
        with report_write_errors(path), cleanup(partial(shutil.rmtree, work, ignore_errors=True)):
            work.mkdir()
            yield work
            _swap(work, target, old)


def _swap(work: Path, target: Path, old: Path) -> None:
    try:
        if target.exists():
            os.rename(target, old)
        os.rename(work, target)
    except BaseException:
        if old.exists() and not target.exists():
            os.rename(old, target)
        raise
    finally:
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)


@contextmanager
def report_write_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise the block's OSError as a SourceError that names the path that is written."""
    try:
        yield
    except OSError as error:
        raise SourceError.unwritable(path, error.strerror or error) from error


def check_target(path: str | os.PathLike[str]) -> Path:
    """The file that a path leads to; raise SourceError if it can't be written."""
    target = Path(path).resolve()
    check_named(path)
    if target.is_dir():
        raise SourceError.unwritable(path, "it is a folder, not a file")
    if target.exists() and not target.is_file():
        raise SourceError.unwritable(path, "it is a device or a pipe, and a rename would replace "
                                           "it: name a file")
    if not target.parent.is_dir():
        raise SourceError.unwritable(
            path, f"{os.strerror(errno.ENOENT)}: there is no folder {str(target.parent)!r}")
    if not os.access(target.parent, os.W_OK):
        raise SourceError.unwritable(path, "its folder is not writable")
    return target


def check_named(path: str | os.PathLike[str]) -> None:
    """Raise SourceError for the empty path, which would be the current folder."""
    if not os.fspath(path):
        raise SourceError.unwritable(path, "the name is empty")


def check_model_target(path: str | os.PathLike[str]) -> Path:
    """As `check_target`, for a model: it is a file, which standard output is not."""
    if os.fspath(path) == "-":
        raise SourceError.unwritable(path, "a model is not written to standard output: name a file "
                                           "(./- for one of that name)")
    return check_target(path)


def _discard(temporary: str) -> None:
    if os.path.exists(temporary):
        os.unlink(temporary)


def _keep_owner(temporary: str, target: Path) -> None:
    """Give a file the owner and group of the one that it replaces, as far as that is allowed."""
    if not hasattr(os, "chown") or not target.exists():
        return
    old, new = target.stat(), os.stat(temporary)
    # One by one: who may not give a file away may often still set its group.
    for owner, group in ((old.st_uid, -1), (-1, old.st_gid)):
        if (owner, group) not in ((new.st_uid, -1), (-1, new.st_gid)):
            with suppress(OSError):
                os.chown(temporary, owner, group)


def _mode(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
