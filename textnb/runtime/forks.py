"""A process that was forked from one in which Polars has worked says so, where it would hang.

Threads do not survive a fork, and Polars waits for its own for ever. So each way into Polars asks
`check_fork` first. This is imported with the package itself, before anything is used: the parent
must be looked at when it forks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from textnb.errors import ForkError


class _Fork:
    """What a fork takes from this process.

    Attributes
    ----------
    worked : bool
        textnb has run Polars here.
    lost : bool
        Polars ran in the process from which this one was forked.
    """

    worked = lost = _inherited = False

    def __init__(self) -> None:
        self._after: list[Callable[[], object]] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before, after_in_parent=self._after_in_parent,
                                after_in_child=self._after_in_child)

    def after_fork(self, run: Callable[[], object]) -> None:
        """Run something in each process that is forked from this one."""
        self._after.append(run)

    def _before(self) -> None:
        """In the parent: the child inherits the answer, and has no thread to look for."""
        self._inherited = self.lost
        self.lost = self.lost or self.worked or _polars_threads()

    def _after_in_parent(self) -> None:
        self.lost = self._inherited

    def _after_in_child(self) -> None:
        for run in self._after:
            run()


FORK = _Fork()


def check_fork(works: bool = False) -> None:
    """Raises ForkError in a process that was forked from one in which Polars ran.

    Parameters
    ----------
    works : bool
        The caller goes on to run Polars: a fork from here loses its threads.
    """
    if FORK.lost:
        raise ForkError.threads_lost()
    if works:
        FORK.worked = True


def _polars_threads() -> bool:
    """Whether Polars' threads run here, whoever used it; False where the system does not tell."""
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        return False
    for thread in threads:
        try:
            with open(f"/proc/self/task/{thread}/comm", "rb") as file:
                if re.match(rb"polars-\d", file.read()):
                    return True
        except OSError:
            # It has ended meanwhile.
            continue
    return False
