"""Removal of temporary files, also if the process ends in the middle."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def cleanup(remove: Callable[[], None]) -> Iterator[None]:
    """Call a function at the end of the block, or when the process ends before that.

    A ``finally`` is not enough: it does not run if another thread ends the process.
    """
    atexit.register(remove)
    try:
        yield
    finally:
        remove()
        atexit.unregister(remove)
