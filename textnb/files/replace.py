"""Replaces a file or a folder completely or not at all: writes the new one beside it, and renames.

All contents are synced to the disk before the rename, and the rename afterwards, so that a power
failure does not undo it.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from textnb.errors import SourceError
from textnb.files.cleanup import cleanup
from textnb.files.lock import check_not_replaced, lock_file, note_replaced

# Arguments of Linux's renameat2: paths start at the current folder; the two names are exchanged.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
# The errors of file systems that can't exchange names, or sync folders.
_UNSUPPORTED_ERRORS = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
# The errors for a path at which there is nothing.
_ABSENT_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


@contextmanager
def replace_file(
    path: str | os.PathLike[str], *, private: bool = False, mode: int | None = None
) -> Iterator[IO[bytes]]:
    """Write a file that replaces ``path`` once it is complete; on any failure, nothing changes.

    Parameters
    ----------
    path : path
        If it is a link, the file that it leads to is replaced.
    private : bool
        Only the owner may read the new file. If ``path`` is a link, the link itself is replaced, as
        in a folder of another user it may lead anywhere.
    mode : int, optional
        The permissions of the new file; by default those of the file that it replaces.

    Raises
    ------
    SourceError
        If the path can't be written, or another process has replaced it while it was locked here.
    """
    target = Path(path).absolute() if private else check_target(path)
    with report_write_errors(path):
        descriptor, temporary = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        with cleanup(partial(os.unlink, temporary)):
            file = os.fdopen(descriptor, "w+b")
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                file.close()
            finally:
                # If the block failed, an error of closing the file must not hide its error.
                with suppress(OSError):
                    file.close()
            if not private:
                keep_owner(temporary, target)
            os.chmod(temporary, 0o600 if private else _mode_for(target) if mode is None else mode)
            check_not_replaced(target)
            os.replace(temporary, target)
            note_replaced(target)
    sync_rename(target)


@contextmanager
def replace_folder(
    path: str | os.PathLike[str], check: Callable[[Path], object] | None = None
) -> Iterator[Path]:
    """Write a folder that replaces ``path`` at the end; on any failure, nothing changes.

    The old folder is removed once the new one has its name. Only one process at a time replaces a
    folder; it first cleans up after a process that was killed.

    Parameters
    ----------
    path : path
        A folder that may be replaced, or a path that does not exist: the caller has checked that.
    check : callable, optional
        Called with the old folder, once no other process can replace it.

    Raises
    ------
    SourceError
        If the path can't be written, or another process writes it.
    """
    target = real_path(path)
    lock, work, old = (target.with_name(f".{target.name}.textnb-{suffix}")
                       for suffix in ("lock", "run", "old"))
    with lock_file(lock) as is_alone:
        if not is_alone:
            raise SourceError(f"another run is at work on {str(target)!r}; wait for it, or choose "
                              "another output")
        with report_write_errors(path):
            if old.exists() and not target.exists():
                # A process was killed between the two renames of `_put_in_place`.
                os.rename(old, target)
        for folder in (work, old):
            remove_folder(folder)
        if check is not None:
            check(target)
        with report_write_errors(path), cleanup(partial(remove_folder, work)):
            work.mkdir()
            yield work
            _sync_contents(work)
            _put_in_place(work, target, old)


def _sync_contents(folder: Path) -> None:
    """Sync a folder with all that is in it."""
    def fail(error: OSError) -> None:
        raise error

    # Unlike `Path.rglob`, it leaves out no folder that can't be listed.
    for parent, _, names in os.walk(folder, onerror=fail):
        for path in (Path(parent), *(Path(parent, name) for name in names)):
            sync_path(path)


def _put_in_place(work: Path, target: Path, old: Path) -> None:
    """Rename the new folder to the target; a folder that was there is renamed, then removed.

    It is removed only once the new names are on the disk: a loss of power must leave one of the
    two folders.
    """
    if not target.exists():
        os.rename(work, target)
        sync_rename(target)
        return
    # The old folder then has the name ``work``, and `replace_folder` removes that at its end.
    if _exchange(work, target):
        sync_rename(target)
        return
    try:
        os.rename(target, old)
        os.rename(work, target)
        sync_rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            os.rename(old, target)
        raise
    finally:
        if target.exists():
            remove_folder(old)


def remove_folder(folder: Path) -> None:
    """Remove a folder as far as that is possible."""
    # The second attempt removes what a failure or an interruption of the first one left.
    for _ in range(2):
        # Even with `ignore_errors`, `rmtree` raises an error of closing a folder.
        with suppress(OSError):
            shutil.rmtree(folder, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Give two folders each other's names in a single step; return whether the system can."""
    from ctypes import CDLL, get_errno

    try:
        rename = CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    if rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    error = get_errno()
    if error not in _UNSUPPORTED_ERRORS:
        raise OSError(error, os.strerror(error))
    return False


def sync_rename(target: Path) -> None:
    """Sync the rename of a file or folder to its final path, so that a power failure keeps it.

    Raises
    ------
    SourceError
        If that fails. The path has its new content even so.
    """
    try:
        sync_path(target.parent)
    except OSError as error:
        failure = SourceError(
            f"{str(target)!r} is written, but a loss of power could still take it back, as its "
            f"folder can't be synced: {error.strerror or error}")
        # It is an error of what is written, not of what is read.
        failure.of_output = True
        raise failure from error


def sync_path(path: Path) -> None:
    """Sync a file or a folder to the disk, if the system can."""
    # Windows syncs only what is open for writing.
    if sys.platform == "win32":
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        # The user may be allowed to write in a folder, but not to read it.
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED_ERRORS:
            raise
    finally:
        os.close(descriptor)


@contextmanager
def report_write_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an OSError of the block into a SourceError that names the path to be written."""
    try:
        yield
    except OSError as error:
        raise SourceError.unwritable(path, error.strerror or error) from error


def real_path(path: str | os.PathLike[str]) -> Path:
    """The path to which links lead; raise SourceError if they form a loop, or it is too long."""
    target = Path(os.path.realpath(path))
    with report_write_errors(path):
        is_loop = target.is_symlink()
    if is_loop:
        raise SourceError.unwritable(path, os.strerror(errno.ELOOP))
    return target


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a file, a folder or a link.

    Raises
    ------
    SourceError
        If the system does not tell. `os.path.exists` would then say that nothing is there.
    """
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno in _ABSENT_ERRORS:
            return False
        raise SourceError.unreadable(os.fspath(path), error.strerror or error) from error
    except ValueError:
        # The path has a NUL, which no file's name has.
        return False
    return True


def check_target(path: str | os.PathLike[str]) -> Path:
    """The file that a path leads to; raise SourceError if it can't be written."""
    check_named(path)
    with report_write_errors(path):
        target = real_path(path)
        if target.is_dir():
            raise SourceError.unwritable(path, "it is a folder, not a file")
        # /dev/stdout may lead to a file to which the shell appends.
        folder = os.path.realpath(os.path.dirname(path))
        is_stream = folder == "/dev" or folder.startswith("/proc/")
        if is_stream or (target.exists() and not target.is_file()):
            raise SourceError.unwritable(path, "it is a device or a pipe, and a rename would "
                                               "replace it: name a file")
        if not target.parent.is_dir():
            raise SourceError.unwritable(
                path, f"{os.strerror(errno.ENOENT)}: there is no folder {str(target.parent)!r}")
        if not os.access(target.parent, os.W_OK):
            raise SourceError.unwritable(path, "its folder is not writable")
    return target


def check_named(path: str | os.PathLike[str]) -> None:
    """Raise SourceError for an empty path, which would mean the current folder."""
    if not os.fspath(path):
        raise SourceError.unwritable(path, "the name is empty")


def check_model_target(path: str | os.PathLike[str]) -> Path:
    """As `check_target`, for a model, which is not written to standard output ("-")."""
    if os.fspath(path) == "-":
        raise SourceError.unwritable(path, "a model is not written to standard output: name a file "
                                           "(./- for one of that name)")
    return check_target(path)


def keep_owner(temporary: str, target: Path) -> None:
    """Give a file the owner and group of the one that it replaces, as far as that is allowed."""
    if not hasattr(os, "chown") or not is_there(target):
        return
    old, new = target.stat(), os.stat(temporary)
    # One by one, where -1 changes nothing: a user who may not change the owner may often change the
    # group.
    for owner, group in ((old.st_uid, -1), (-1, old.st_gid)):
        if (owner, group) not in ((new.st_uid, -1), (-1, new.st_gid)):
            with suppress(OSError):
                os.chown(temporary, owner, group)


def _mode_for(target: Path) -> int:
    if is_there(target):
        return target.stat().st_mode & 0o777
    # The only way to read the process's mask of permissions is to set it.
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
