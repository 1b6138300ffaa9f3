"""The output folder of a job: all of it is replaced at once, or nothing is touched.

A run works in a hidden folder beside the output, named after it. A second run of the same job waits
for none: it is refused while the first works, and what a killed one left behind is thrown away.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from textnb.errors import SourceError
from textnb.files.replace import creation_mask

RECORD = "run.json"
_FORMAT = "textnb-run"


@contextmanager
def staged(output: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to work in, which takes the place of the output once the block ends.

    Raises
    ------
    SourceError
        If the output is there and was not made by a job, can't be written, or another run is at
        work on it.
    """
    target = Path(output).resolve()
    check_output(target)
    with _parents(target), _staged(target) as work:
        yield work


@contextmanager
def _staged(target: Path) -> Iterator[Path]:
    work = target.with_name(f".{target.name}.textnb-run")
    old = target.with_name(f".{target.name}.textnb-old")
    with _alone(target):
        _recover(target, old)
        check_output(target)
        forget = functools.partial(shutil.rmtree, work, ignore_errors=True)
        # Where the process is ended from another thread, no `except` of this one runs.
        atexit.register(forget)
        try:
            forget()
            work.mkdir()
            yield work
            _published(work, target, old)
        except OSError as error:
            raise SourceError(f"can't write {str(target)!r}: {error.strerror or error}") from error
        finally:
            forget()
            atexit.unregister(forget)


def check_output(target: Path) -> None:
    """SourceError where an output can't be written, or holds what is not a job's own."""
    there = next((folder for folder in target.parents if folder.exists()), target)
    if not there.is_dir():
        raise SourceError(f"can't write {str(target)!r}: {str(there)!r} is no folder; choose "
                          "another output")
    if there != target.parent and not os.access(there, os.W_OK | os.X_OK):
        raise SourceError(f"can't write {str(target)!r}: no folder can be made in {str(there)!r}; "
                          "make it, or choose another output")
    if target == Path.cwd().resolve() or target in Path.cwd().resolve().parents:
        raise SourceError(f"can't write {str(target)!r}: it is the current folder, or one above")
    if target.is_dir():
        strangers = sorted({path.name for path in target.iterdir()} - _ours(target))
        if not strangers:
            return
        raise SourceError(f"can't write {str(target)!r}: it holds {strangers[0]!r}, which no job "
                          "wrote there; move it away, or choose another output")
    if target.exists() or target.is_symlink():
        raise SourceError(f"can't write {str(target)!r}: it is there and was not written by a "
                          "job; remove it, or choose another output")


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """The folders that an output is in are made; where the run fails, they are removed again."""
    missing = [folder for folder in target.parents if not folder.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"can't write {str(target)!r}: {error.strerror or error}") from error
    forget = functools.partial(_remove_empty, missing)
    atexit.register(forget)
    try:
        yield
    finally:
        forget()
        atexit.unregister(forget)


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            # It holds what the run has written, or what somebody else has put there.
            return


def _ours(target: Path) -> set[str]:
    """The names of what a job wrote into its output."""
    try:
        told = json.loads((target / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return set()
    if not isinstance(told, dict) or told.get("format") != _FORMAT:
        return set()
    files = told.get("files")
    return {name for name in files if isinstance(name, str)} if isinstance(files, list) else set()


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """The only run that works on an output."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - where there are no such locks
        yield
        return
    lock = target.with_name(f".{target.name}.textnb-lock")
    while True:
        try:
            # Not through a link that somebody else has put there.
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise SourceError(f"can't write {str(target)!r}: {lock.name}: {error.strerror}"
                              ) from error
        with os.fdopen(descriptor, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SourceError(f"another run is at work on {str(target)!r}; wait for it, or "
                                  "choose another output") from None
            if not _is_still(lock, descriptor):
                # Its last holder took it away between the two lines.
                continue
            remove = functools.partial(_unlink, lock)
            atexit.register(remove)
            try:
                yield
            finally:
                remove()
                atexit.unregister(remove)
            return


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _unlink(path: Path) -> None:
    path.unlink(missing_ok=True)


def _recover(target: Path, old: Path) -> None:
    """Where a run was killed between its two renames, the old output is put back."""
    if old.exists() and not target.exists():
        old.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _published(work: Path, target: Path, old: Path) -> None:
    mask = creation_mask()
    work.chmod(0o777 & ~mask)
    if target.exists():
        target.rename(old)
    try:
        work.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def record(values: dict[str, object]) -> str:
    """The text of the file by which a job knows its own output again."""
    return json.dumps({"format": _FORMAT, "version": 1, **values}, ensure_ascii=False, indent=1,
                      allow_nan=False, default=str)
