"""Runs other programs within limits, because an export of unknown origin may never end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import polars as pl

from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.targets.base import TargetAnswers, TargetRows
from textnb.files.parquet import MalformedTable, decode

MAX_SECONDS = 600.0
MAX_OUTPUT_BYTES = 1 << 30


def run_program(command: Sequence[str], input: bytes = b"") -> bytes:
    """Run a program with ``input`` as its standard input, and return its standard output.

    Raises
    ------
    ExportError
        If it fails (with its last lines of standard error), does not end within ``MAX_SECONDS``, or
        writes more than ``MAX_OUTPUT_BYTES``.
    """
    with (tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out,
          tempfile.TemporaryFile() as errors):
        source.write(input)
        source.seek(0)
        with subprocess.Popen(command, stdin=source, stdout=out, stderr=errors) as process:
            try:
                _wait(process, out.fileno(), errors.fileno())
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            # Read the last 4096 bytes.
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4096))
            lines = errors.read().decode("utf-8", "replace").strip().splitlines()
            last_lines = "; ".join(line.strip() for line in lines[-2:])
            raise ExportError(f"the engine failed: {last_lines or process.returncode}")
        out.seek(0)
        return out.read()


def run_in_child(
    code: str, arguments: Sequence[str], tables: Mapping[str, pl.DataFrame], input: str = ""
) -> list[pl.DataFrame]:
    """Run Python code on tables in a new process, and return the tables that the code writes.

    The first argument of the code is a folder. There it reads each table from ``NAME.parquet``, and
    writes its answers to ``answers0.parquet``, ``answers1.parquet`` and so on. Its other arguments
    are ``arguments``, and ``input`` is its standard input.

    Raises
    ------
    ExportError
        As `run_program`, and if the answers can't be read.
    """
    with tempfile.TemporaryDirectory(prefix="textnb-") as folder_name:
        folder = Path(folder_name)
        for name, table in tables.items():
            table.write_parquet(folder / f"{name}.parquet")
        # -I: nothing from the environment or the current folder is imported. -B: a file that is
        # imported gets no bytecode next to it.
        run_program([sys.executable, "-IB", "-c", code, folder_name, *arguments], input.encode())
        try:
            return [decode(path.read_bytes()) for path in sorted(folder.glob("answers*.parquet"))]
        except (OSError, MalformedTable) as error:
            raise ExportError(f"the engine's answers can't be read: {error}") from None


def program_usage(command: str, bundle: Bundle) -> str:
    """Say how to use a program that reads and writes lines of JSON."""
    row = {"text": "a text", "terms": "a list of tokens", "features": "a list of numbers"}[
        bundle.reads]
    if bundle.reads == "text" and len(bundle.columns) > 1:
        row = "an object with a text for each column"
    label = "labels" if bundle.is_multilabel else "label"
    return (f"    {command} < rows.ndjson > answers.ndjson\n\n"
            f"A line of `rows.ndjson` is JSON: {row}. A line of `answers.ndjson` is an object "
            f"with `{label}` and `scores`. The file is a module too, and its first lines say what "
            "it has.")


def score_with_program(command: Sequence[str], bundle: Bundle, rows: TargetRows) -> TargetAnswers:
    """Score rows with a program that reads a JSON value per line and writes an object per line."""
    lines = "".join(json.dumps(value) + "\n" for value in _row_values(bundle, rows))
    # Without the option, the program answers only with scores and labels.
    if len(bundle.answers) > 1:
        command = [*command, "--answers", ",".join(bundle.answers)]
    output = run_program(command, lines.encode("ascii"))
    try:
        answers = [json.loads(line) for line in output.splitlines()]
        return TargetAnswers.of(
            bundle, [answer["scores"] for answer in answers],
            [answer["labels" if bundle.is_multilabel else "label"] for answer in answers],
            [answer["probabilities"] for answer in answers]
            if "probability" in bundle.answers else None,
            [answer["decision"] for answer in answers] if bundle.gives_decisions else None)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ExportError(f"the engine's answers can't be read: {error}") from None


@contextmanager
def deadline(interrupt: Callable[[], None]) -> Iterator[None]:
    """Interrupt an engine in this process that does not end within ``MAX_SECONDS``."""
    timer = Timer(MAX_SECONDS, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _wait(process: subprocess.Popen[bytes], *outputs: int) -> None:
    """Wait until a process ends; ExportError if it takes too long, or its outputs are too large.

    ``outputs`` are descriptors of the files that it writes.
    """
    last_moment, pause = time.monotonic() + MAX_SECONDS, 0.002
    while process.poll() is None:
        if time.monotonic() > last_moment:
            raise ExportError(f"the engine did not end within {MAX_SECONDS:g} s")
        if any(os.fstat(output).st_size > MAX_OUTPUT_BYTES for output in outputs):
            raise ExportError(f"the engine wrote more than {MAX_OUTPUT_BYTES:,} bytes")
        # Short pauses (in seconds) at first, so that a quick program is not waited for.
        time.sleep(pause)
        pause = min(1.25 * pause, 0.05)


def _row_values(bundle: Bundle, rows: TargetRows) -> Iterator[Any]:
    """The value of each row, which is written as a line of JSON."""
    if bundle.reads == "features":
        return iter(rows.features.tolist())
    if bundle.reads == "terms":
        return iter(rows.tokens.to_list())
    if rows.documents.width > 1:
        return rows.documents.iter_rows(named=True)
    return iter(rows.documents.to_series().to_list())
