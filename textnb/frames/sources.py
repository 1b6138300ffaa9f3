"""A LazyFrame of rows that a Python generator reads."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator

import polars as pl
from polars.io.plugins import register_io_source

# Takes the columns, a filter and a number of rows (either may be None), and yields frames. The
# number of rows limits the rows before the filter.
Read = Callable[[list[str], pl.Expr | None, int | None], Iterator[pl.DataFrame]]
_SECONDS_TO_END = 2.0


class _Reading:
    """Counts the batches that the engine's threads are reading.

    After a query that ends early (head), the engine still reads one more batch. If the interpreter
    ended meanwhile, the engine would abort the process: so the interpreter's end waits a little.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._batches = 0
        atexit.register(self._end)

    def __enter__(self) -> None:
        with self._changed:
            self._batches += 1

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._batches -= 1
            self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._batches, _SECONDS_TO_END)


_READING = _Reading()


def lazy_frame_from(read: Read, schema: pl.Schema) -> pl.LazyFrame:
    """Make a LazyFrame whose rows a generator reads when it is collected.

    Parameters
    ----------
    read : callable
        See `Read`. Called once for each time that the frame is read.
    schema : Schema

    Examples
    --------
    >>> def numbers(columns, predicate, rows):
    ...     frame = pl.DataFrame({"n": [1, 2, 3]}).head(3 if rows is None else rows)
    ...     yield frame if predicate is None else frame.filter(predicate)
    >>> frame = lazy_frame_from(numbers, pl.Schema({"n": pl.Int64}))
    >>> frame.filter(pl.col("n") > 1).collect().height
    2
    """
    def frames(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        stream = read(schema.names() if columns is None else columns, predicate, n_rows)
        while True:
            with _READING:
                frame = next(stream, None)
            if frame is None:
                return
            yield frame

    return register_io_source(frames, schema=schema, is_pure=True)
