"""Whether a signal has asked the program to end, and what it had written by then.

A library may lose an exception that is raised inside its callback, such as KeyboardInterrupt. So
code that has called a library asks `is_stopped` too.
"""

from __future__ import annotations

_stopped = False
# Rows that were written to standard output; None before the first.
_written: int | None = None


def stop() -> None:
    """Remember that a signal came. A handler calls it, so it takes no lock."""
    global _stopped
    _stopped = True


def is_stopped() -> bool:
    """Whether a signal came."""
    return _stopped


def count_written(rows: int) -> None:
    """Count rows that were written to standard output; 0 says that the first will be."""
    global _written
    _written = (_written or 0) + rows


def written_rows() -> int | None:
    """Rows that were written to standard output; None if nothing writes rows there."""
    return _written
