"""Runs other programs within limits: somebody else's export may hang or write without end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import polars as pl

from textnb.errors import ExportError
from textnb.files.parquet import MalformedTable, decode

SECONDS = 600.0
MAX_BYTES = 1 << 30


def run_program(command: Sequence[str], input: bytes = b"") -> bytes:
    """Run a program and return its standard output.

    Raises
    ------
    ExportError
        If it fails (with its last lines of standard error), does not end within ``SECONDS``, or
        writes more than ``MAX_BYTES``.
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
            errors.seek(max(0, errors.seek(0, 2) - 4096))
            lines = errors.read().decode("utf-8", "replace").strip().splitlines()
            last = "; ".join(line.strip() for line in lines[-2:])
            raise ExportError(f"the engine failed: {last or process.returncode}")
        out.seek(0)
        return out.read()


def run_in_child(
    code: str, arguments: Sequence[str], tables: Mapping[str, pl.DataFrame], input: str = ""
) -> list[pl.DataFrame]:
    """Run Python code in a process of its own, on tables, and return those that it writes.

    The code's arguments are a folder, where it reads ``NAME.parquet`` of each table and writes
    ``answers0.parquet`` and so on, and then the others. ``input`` is its standard input.

    Raises
    ------
    ExportError
        As `run_program`, and if the answers can't be read.
    """
    with tempfile.TemporaryDirectory(prefix="textnb-") as name:
        folder = Path(name)
        for table, frame in tables.items():
            frame.write_parquet(folder / f"{table}.parquet")
        # -B, so that importing a file writes no bytecode next to it.
        run_program([sys.executable, "-IB", "-c", code, name, *arguments], input.encode())
        try:
            return [decode(path.read_bytes()) for path in sorted(folder.glob("answers*.parquet"))]
        except (OSError, MalformedTable) as error:
            raise ExportError(f"the engine's answers can't be read: {error}") from None


@contextmanager
def deadline(interrupt: Callable[[], None]) -> Iterator[None]:
    """Interrupt an engine in this process that does not end within ``SECONDS``."""
    timer = Timer(SECONDS, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _wait(process: subprocess.Popen[bytes], *outputs: int) -> None:
    end, pause = time.monotonic() + SECONDS, 0.002
    while process.poll() is None:
        if time.monotonic() > end:
            raise ExportError(f"the engine did not end within {SECONDS:g} s")
        if any(os.fstat(output).st_size > MAX_BYTES for output in outputs):
            raise ExportError(f"the engine wrote more than {MAX_BYTES:,} bytes")
        time.sleep(pause)
        pause = min(1.25 * pause, 0.05)
