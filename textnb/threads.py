"""Work in threads, in order: results do not depend on how many threads there are.

NumPy, SciPy and Polars let other threads run while they work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import polars as pl

T = TypeVar("T")
R = TypeVar("R")


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
    threads = pl.thread_pool_size() if threads is None else threads
    pool = ThreadPoolExecutor(threads)
    coming: deque[Future[R]] = deque()
    ended = False
    try:
        for item in items:
            coming.append(pool.submit(function, item))
            if len(coming) > threads:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
        ended = True
    finally:
        # A generator that was given up is finished in whatever thread comes by, perhaps one of the
        # pool: that can't wait for itself, nor for another that waits for it.
        pool.shutdown(wait=ended, cancel_futures=True)
