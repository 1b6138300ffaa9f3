"""Work in threads, in order: results do not depend on the number of threads.

NumPy, SciPy and Polars release the interpreter's lock while they compute.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


# Idle pools, by their numbers of threads. They are reused and never removed: when a pool is
# collected as garbage, Python runs a callback, and would ignore a KeyboardInterrupt in it.
_IDLE_POOLS: defaultdict[int, deque[ThreadPoolExecutor]] = defaultdict(deque)
if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork.
    os.register_at_fork(after_in_child=_IDLE_POOLS.clear)


def _take_pool(threads: int) -> ThreadPoolExecutor:
    """An idle pool of this number of threads, or else a new one."""
    try:
        return _IDLE_POOLS[threads].pop()
    except IndexError:
        return ThreadPoolExecutor(threads)


def map_in_threads(
    function: Callable[[T], R], items: Iterable[T], threads: int | None = None
) -> Iterator[R]:
    """Yield a function's results in order; threads compute some of them in advance.

    Parameters
    ----------
    function : callable
    items : iterable
        Items are read as results are consumed, so that memory stays bounded.
    threads : int, optional
        The default is the number of Polars' threads.

    Examples
    --------
    >>> list(map_in_threads(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    items = iter(items)
    first_two = list(islice(items, 2))
    if len(first_two) < 2:
        # A thread for a single item would cost more than it saves.
        yield from map(function, first_two)
        return
    if threads is None:
        # Imported here, because a single message can be learned without Polars.
        import polars as pl

        threads = pl.thread_pool_size()
    pool = _take_pool(threads)
    pending: deque[Future[R]] = deque()
    is_complete = False
    try:
        for item in chain(first_two, items):
            pending.append(pool.submit(function, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
        is_complete = True
    finally:
        if is_complete:
            _IDLE_POOLS[threads].append(pool)
        else:
            # The garbage collector may close an abandoned generator in a thread of the pool, which
            # must not wait for itself or for a thread that waits for it.
            pool.shutdown(wait=False, cancel_futures=True)


def run_in_threads(tasks: Iterable[Callable[[], object]]) -> None:
    """Run all tasks in threads, and wait for them.

    Examples
    --------
    >>> seen = []
    >>> run_in_threads([lambda: seen.append("a"), lambda: seen.append("b")])
    >>> sorted(seen)
    ['a', 'b']
    """
    for _ in map_in_threads(lambda task: task(), tasks):
        pass
