"""An event that is set when a signal asks the program to end, and what it had written by then.

A library may lose an exception that is raised inside its callback, such as KeyboardInterrupt. So
code that has called a library checks this event too.
"""

from __future__ import annotations

import threading

STOPPED = threading.Event()
# Rows that were written to standard output; None before the first.
_written: int | None = None


def count_written(rows: int) -> None:
    """Count rows that were written to standard output, 0 before the first are."""
    global _written
    _written = (_written or 0) + rows


def written() -> int | None:
    """Rows that were written to standard output; None if none were ever to be."""
    return _written
