"""Writes to standard error where no error may arise: a signal's handler, a server, a filter."""

from __future__ import annotations

import os


def write_to_stderr(line: str) -> None:
    """Write one line to standard error; ignore a failure to write it."""
    # Not by contextlib.suppress, whose import can fail.
    try:  # noqa: SIM105
        os.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        pass
