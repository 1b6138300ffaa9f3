"""A file or a folder is replaced whole or not at all: written beside its name, and renamed."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO
from uuid import uuid4

from textnb.errors import SourceError
from textnb.files.cleanup import cleanup


@contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` once it is whole; on any failure, nothing changes.

    Parameters
    ----------
    path : path
        Where it is a link, the file that it leads to is replaced.
    private : bool
        Its owner alone may read the file, and a link is replaced itself: for a folder that belongs
        to somebody else, whose links may lead anywhere.

    Raises
    ------
    SourceError
        If it can't be written.
    """
    target = Path(path).absolute() if private else check_target(path)
    with writing(path):
        descriptor, temporary = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        with cleanup(partial(_discard, temporary)):
            with os.fdopen(descriptor, "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o600 if private else _mode(target))
            os.replace(temporary, target)


@contextmanager
def replacing_folder(path: str | os.PathLike[str], tag: str | None = None) -> Iterator[Path]:
    """A new folder that takes the place of ``path`` at the end; on any failure, nothing changes.

    What was at the path is removed once the new folder is there.

    Parameters
    ----------
    path : path
        There is a folder, which may be replaced, or nothing: the caller has checked that.
    tag : str, optional
        A part of the names beside the path, of a caller that holds a lock: see `recover_folder`.
        Without it, no other process uses the same names.

    Raises
    ------
    SourceError
        If it can't be written.
    """
    target = Path(path).resolve()
    work, old = _beside(target, tag or uuid4().hex)
    with writing(path), cleanup(partial(shutil.rmtree, work, ignore_errors=True)):
        work.mkdir()
        yield work
        _swap(work, target, old)


def recover_folder(path: str | os.PathLike[str], tag: str) -> None:
    """Tidy up what a killed process left of `replacing_folder`; the caller holds a lock.

    If it was killed between its two renames, the old folder is put back.
    """
    target = Path(path).resolve()
    work, old = _beside(target, tag)
    with writing(path):
        if old.exists() and not target.exists():
            os.rename(old, target)
    for folder in (work, old):
        shutil.rmtree(folder, ignore_errors=True)


def _beside(target: Path, tag: str) -> tuple[Path, Path]:
    """The folder that is being written, and the old one while the new one is put in its place."""
    return target.with_name(f".{target.name}.{tag}-run"), target.with_name(
        f".{target.name}.{tag}-old")


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
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the operating system refuses in the block is said of the path that is written."""
    try:
        yield
    except OSError as error:
        raise SourceError.unwritable(path, error.strerror or error) from error


def check_target(path: str | os.PathLike[str]) -> Path:
    """Where a file will be put; SourceError if none can be put there."""
    shown, target = os.fspath(path), Path(path).resolve()
    if not shown or target.is_dir():
        raise SourceError.unwritable(path, "it is a folder, not a file")
    if target.exists() and not target.is_file():
        raise SourceError.unwritable(path, "it is a device or a pipe, and a rename would replace "
                                           "it; use - for standard output")
    if not target.parent.is_dir():
        raise SourceError.unwritable(
            path, f"{os.strerror(errno.ENOENT)}: there is no folder {str(target.parent)!r}")
    if not os.access(target.parent, os.W_OK):
        raise SourceError.unwritable(path, "its folder is not writable")
    return target


def _discard(temporary: str) -> None:
    if os.path.exists(temporary):
        os.unlink(temporary)


def _mode(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
