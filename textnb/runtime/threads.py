"""Work in threads, in order: results do not depend on how many threads there are.

NumPy, SciPy and Polars let other threads run while they work.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

import polars as pl

from textnb.runtime.forks import FORK

T = TypeVar("T")
R = TypeVar("R")


# Pools that have nothing to do. They are kept: to drop one runs a callback of its own, in which an
# interrupt would be lost.
_IDLE: defaultdict[int, deque[ThreadPoolExecutor]] = defaultdict(deque)
FORK.after_fork(_IDLE.clear)


def _taken(threads: int) -> ThreadPoolExecutor:
    try:
        return _IDLE[threads].pop()
    except IndexError:
        return ThreadPoolExecutor(threads)


def in_threads(
    function: Callable[[T], R], items: Iterable[T], threads: int | None = None
) -> Iterator[R]:
    """The function's results in order, some items ahead of the one that is being used.

    Parameters
    ----------
    function : callable
    items : iterable
        Read as results are used, so that memory stays bounded.
    threads : int, optional
        As many as Polars has by default.

    Examples
    --------
    >>> list(in_threads(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    items = iter(items)
    ahead = list(islice(items, 2))
    if len(ahead) < 2:
        # To hand one item to a thread and wait takes longer than many an item.
        yield from map(function, ahead)
        return
    threads = pl.thread_pool_size() if threads is None else threads
    pool = _taken(threads)
    coming: deque[Future[R]] = deque()
    ended = False
    try:
        for item in chain(ahead, items):
            coming.append(pool.submit(function, item))
            if len(coming) > threads:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
        ended = True
    finally:
        if ended:
            _IDLE[threads].append(pool)
        else:
            # A generator that was given up is finished in whatever thread comes by, perhaps one of
            # the pool: that can't wait for itself, nor for another that waits for it.
            pool.shutdown(wait=False, cancel_futures=True)


def together(parts: Iterable[Callable[[], object]]) -> None:
    """Runs all parts, in threads.

    Examples
    --------
    >>> seen = []
    >>> together([lambda: seen.append("a"), lambda: seen.append("b")])
    >>> sorted(seen)
    ['a', 'b']
    """
    for _ in in_threads(lambda part: part(), parts):
        pass
