"""What is temporary is removed, also where the process ends in the middle."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def cleanup(remove: Callable[[], None]) -> Iterator[None]:
    """Call a function at the end of the block, or when the process ends before.

    Where another thread ends the process, no ``finally`` of this one runs.
    """
    atexit.register(remove)
    try:
        yield
    finally:
        remove()
        atexit.unregister(remove)
