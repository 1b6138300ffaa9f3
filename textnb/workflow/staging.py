"""The output folder of a job: all of it is replaced at once, or nothing changes.

A run works in a hidden folder beside the output. While it works, a second run of the same job is
refused. The hidden folder of a run that was killed is removed by the next run.
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
from textnb.files.replace import real_path, replace_folder, report_write_errors, sync_path

# The file in an output that lists the files of the run, and the format that it states.
RECORD_NAME, _FORMAT = "run.json", "textnb-run"


@contextmanager
def stage_output(output: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder to work in, which replaces the output once the block ends.

    Raises
    ------
    SourceError
        If the output exists and was not made by a job, if it can't be written, or if another run
        works on it.
    """
    target = real_path(output)
    check_output(target)
    # The output is checked again before it is replaced.
    with _make_parents(target), replace_folder(target, check_output) as work:
        yield work


def check_output(target: Path) -> None:
    """Raise SourceError if an output can't be written, or has files that no job wrote."""
    with report_write_errors(target):
        # The nearest folder above the output that exists.
        parent = next((folder for folder in target.parents if folder.exists()), target)
        if not parent.is_dir():
            raise SourceError.unwritable(
                target, f"{str(parent)!r} is not a folder; choose another output")
        if parent != target.parent and not os.access(parent, os.W_OK | os.X_OK):
            raise SourceError.unwritable(
                target, f"no folder can be made in {str(parent)!r}; make it, or choose another "
                        "output")
        if target == Path.cwd().resolve() or target in Path.cwd().resolve().parents:
            raise SourceError.unwritable(target, "it is the current folder, or one above")
        if target.is_dir():
            foreign = sorted({path.name for path in target.iterdir()} - _names_of_job(target))
            if not foreign:
                return
            raise SourceError.unwritable(
                target, f"it holds {foreign[0]!r}, which no job wrote there; move it away, or "
                        "choose another output")
        if target.exists() or target.is_symlink():
            raise SourceError.unwritable(
                target, "it exists and was not written by a job; remove it, or choose another "
                        "output")


@contextmanager
def _make_parents(target: Path) -> Iterator[None]:
    """Make the folders above an output; at the end, remove those that a failed run left empty."""
    with report_write_errors(target):
        missing = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_path(folder.parent)
    with cleanup(partial(_remove_empty, missing)):
        yield


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        # A folder with the output of a run that did not fail, or with files of other programs, is
        # not empty: this raises an OSError, which `cleanup` ignores.
        folder.rmdir()


def _names_of_job(target: Path) -> set[str]:
    """The names of the files that a job wrote into this output; empty if no job wrote it."""
    try:
        values = json.loads((target / RECORD_NAME).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return set()
    if not isinstance(values, dict) or values.get("format") != _FORMAT:
        return set()
    files = values.get("files")
    return {name for name in files if isinstance(name, str)} if isinstance(files, list) else set()


def record_text(values: dict[str, object]) -> str:
    """The text of ``run.json``, by which a job recognises the output of a job."""
    return write_document(_FORMAT, version=1, values=values, default=str)
