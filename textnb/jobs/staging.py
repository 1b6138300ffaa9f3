"""The output folder of a job: all of it is replaced at once, or nothing is touched.

A run works in a hidden folder beside the output, named after it. A second run of the same job waits
for none: it is refused while the first works, and what a killed one left behind is thrown away.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from textnb.errors import SourceError
from textnb.files.archive import write_document
from textnb.files.cleanup import cleanup
from textnb.files.lock import lock_file
from textnb.files.replace import recover_folder, replace_folder, report_write_errors

RECORD = "run.json"
_FORMAT = "textnb-run"
_TAG = "textnb"


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
    with lock_file(target.with_name(f".{target.name}.{_TAG}-lock")) as is_alone:
        if not is_alone:
            raise SourceError(f"another run is at work on {str(target)!r}; wait for it, or choose "
                              "another output")
        recover_folder(target, _TAG)
        check_output(target)
        with replace_folder(target, _TAG) as work:
            yield work


def check_output(target: Path) -> None:
    """SourceError where an output can't be written, or holds what is not a job's own."""
    there = next((folder for folder in target.parents if folder.exists()), target)
    if not there.is_dir():
        raise SourceError.unwritable(
            target, f"{str(there)!r} is no folder; choose another output")
    if there != target.parent and not os.access(there, os.W_OK | os.X_OK):
        raise SourceError.unwritable(
            target, f"no folder can be made in {str(there)!r}; make it, or choose another output")
    if target == Path.cwd().resolve() or target in Path.cwd().resolve().parents:
        raise SourceError.unwritable(target, "it is the current folder, or one above")
    if target.is_dir():
        others = sorted({path.name for path in target.iterdir()} - _ours(target))
        if not others:
            return
        raise SourceError.unwritable(
            target, f"it holds {others[0]!r}, which no job wrote there; move it away, or choose "
                    "another output")
    if target.exists() or target.is_symlink():
        raise SourceError.unwritable(
            target, "it is there and was not written by a job; remove it, or choose another output")


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """The folders that an output is in are made; where the run fails, they are removed again."""
    missing = [folder for folder in target.parents if not folder.exists()]
    with report_write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    with cleanup(partial(_remove_empty, missing)):
        yield


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


def record(values: dict[str, object]) -> str:
    """The text of the file by which a job knows its own output again."""
    return write_document(_FORMAT, 1, values, default=str)
