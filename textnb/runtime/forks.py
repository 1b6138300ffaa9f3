"""An error in place of a hang, in a process that was forked from one in which Polars ran.

Threads do not survive a fork, and Polars would wait for its threads for ever. So each way into
Polars calls `check_polars_threads` first. The package imports this module first, because it must
look for threads in the parent just before the fork. Before `textnb filter` can catch an error, no
more than this is imported: a failure here would end it with Python's code 1, which says ham.
"""

from __future__ import annotations

import os


class _Fork:
    """Whether this process has lost Polars' threads by a fork.

    Attributes
    ----------
    has_run_polars : bool
        textnb has run Polars in this process.
    has_lost_threads : bool
        Polars ran in the process from which this one was forked.
    """

    has_run_polars = has_lost_threads = _had_lost_threads = False

    def __init__(self) -> None:
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before_fork, after_in_parent=self._after_in_parent)

    def _before_fork(self) -> None:
        """Look for threads in the parent; the child, which has none, inherits the answer."""
        self._had_lost_threads = self.has_lost_threads
        self.has_lost_threads |= self.has_run_polars or _has_polars_threads()

    def _after_in_parent(self) -> None:
        self.has_lost_threads = self._had_lost_threads


FORK = _Fork()


def check_polars_threads(will_run_polars: bool = False) -> None:
    """Raise ForkError in a process that was forked from one in which Polars ran.

    Parameters
    ----------
    will_run_polars : bool
        Whether the caller is about to run Polars, so that a later fork would lose its threads.
    """
    if FORK.has_lost_threads:
        from textnb.errors import ForkError

        raise ForkError.threads_lost()
    if will_run_polars:
        FORK.has_run_polars = True


def _has_polars_threads() -> bool:
    """Whether threads of Polars run in this process; False if the system does not say."""
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        return False
    for thread in threads:
        try:
            with open(f"/proc/self/task/{thread}/comm", "rb") as file:
                name = file.read(8)
            if name.startswith(b"polars-") and name[7:].isdigit():
                return True
        except OSError:
            # The thread has ended meanwhile.
            continue
    return False
