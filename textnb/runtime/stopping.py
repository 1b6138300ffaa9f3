"""Whether a signal has asked the program to end, and how many rows it has written.

A library may lose an exception that is raised inside its callback, such as KeyboardInterrupt. So
code that has called a library calls `raise_if_stopped`, or asks `is_stop_requested`.
"""

from __future__ import annotations

_stopped = False
# The number of rows that were written to standard output; None if nothing writes rows there.
_written: int | None = None


def request_stop() -> None:
    """Remember that a signal came. A handler calls it, so it takes no lock."""
    global _stopped
    _stopped = True


def is_stop_requested() -> bool:
    """Whether a signal came."""
    return _stopped


def raise_if_stopped() -> None:
    """Raise KeyboardInterrupt, once more, if a signal came."""
    if _stopped:
        raise KeyboardInterrupt


def count_written(rows: int) -> None:
    """Count rows that were written to standard output; 0 announces that rows will be."""
    global _written
    _written = (_written or 0) + rows


def written_rows() -> int | None:
    """The number of rows written to standard output so far; None if no rows are written there."""
    return _written
