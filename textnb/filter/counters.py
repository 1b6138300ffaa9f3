"""Counters of all workers in memory that they share, and since when each has been busy."""

from __future__ import annotations

import mmap
import struct
import time

NAMES = ("connections", "spam", "ham", "unsure", "told", "refused", "failed")
_SLOT = struct.Struct(f"<d{len(NAMES)}q")


class Counters:
    """The slots of some workers in one shared file.

    Parameters
    ----------
    descriptor : int
        A file of `size` bytes.
    workers : int
    own : int
        The slot that this process writes; no other process writes it.
    """

    def __init__(self, descriptor: int, workers: int, own: int = 0) -> None:
        self._memory = mmap.mmap(descriptor, size(workers))
        self._workers, self._own = workers, own

    def begin(self) -> None:
        """This worker judges from now on."""
        struct.pack_into("<d", self._memory, self._own * _SLOT.size, time.monotonic())

    def end(self) -> None:
        """This worker waits."""
        self.free(self._own)

    def free(self, worker: int) -> None:
        """Note that a worker does not judge, as its process has ended."""
        struct.pack_into("<d", self._memory, worker * _SLOT.size, 0.0)

    def add(self, name: str) -> None:
        at = self._own * _SLOT.size + 8 * (1 + NAMES.index(name))
        number, = struct.unpack_from("<q", self._memory, at)
        struct.pack_into("<q", self._memory, at, number + 1)

    def busy_seconds(self, worker: int) -> float:
        """For how long a worker has been judging one message; 0 where it waits."""
        since, = struct.unpack_from("<d", self._memory, worker * _SLOT.size)
        return time.monotonic() - since if since else 0.0

    def totals(self) -> dict[str, int]:
        """The sums over all workers."""
        slots = [_SLOT.unpack_from(self._memory, worker * _SLOT.size)[1:]
                 for worker in range(self._workers)]
        return {name: sum(values) for name, values in zip(NAMES, zip(*slots, strict=True),
                                                          strict=True)}


def size(workers: int) -> int:
    return workers * _SLOT.size
