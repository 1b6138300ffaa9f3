"""A frame of any size as batches of bounded size, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import polars as pl

from textnb.runtime.forks import check_polars_threads
from textnb.runtime.stopping import raise_if_stopped

# The default limits of a batch of rows, and of a list of items: see `groups`.
MAX_ROWS, MAX_BYTES = 4096, 2 << 20
_MAX_ITEMS, _MAX_GROUP_BYTES = 512, 8 << 20
Item = TypeVar("Item")
# Called with the number of rows that were worked on since the last call.
Progress = Callable[[int], object]


def batches(
    frame: pl.LazyFrame | pl.DataFrame,
    text: Sequence[str] = (),
    *,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
) -> Iterator[pl.DataFrame]:
    """Divide rows into batches of at most ``max_rows`` rows and about ``max_bytes`` bytes of text.

    Parameters
    ----------
    frame : LazyFrame or DataFrame
    text : sequence of str
        The columns whose bytes count: texts, or lists of tokens. A row is never divided.
    max_rows, max_bytes : int
        The limits; a single row may have more bytes.
    progress : callable, optional
        Called with a batch's number of rows when the next batch is requested.

    Examples
    --------
    >>> frame = pl.DataFrame({"text": ["aaaa", "bb", None, "cccccc"]})
    >>> [batch.height for batch in batches(frame, ["text"], max_bytes=6)]
    [3, 1]
    """
    # Polars would hang in a process that was forked from one in which it ran.
    check_polars_threads(will_run_polars=True)
    if isinstance(frame, pl.DataFrame):
        chunks: Iterator[pl.DataFrame] = frame.iter_slices(max_rows)
    else:
        chunks = collect_batches(frame, max_rows)
    for chunk in chunks:
        for batch in _split_by_bytes(chunk, text, max_bytes):
            yield batch
            if progress is not None:
                progress(batch.height)


class UnfinishedError(pl.exceptions.ComputeError):
    """Polars ended before the last row, by a panic that it told on standard error alone."""


def collect_batches(frame: pl.LazyFrame, max_rows: int) -> Iterator[pl.DataFrame]:
    """Collect a frame in batches of at most ``max_rows`` rows, in order; none is empty.

    Use it in place of `polars.LazyFrame.collect_batches`, which may lose rows without an error.

    Raises
    ------
    UnfinishedError
        If Polars ended before the last row.
    """
    schema = frame.collect_schema()
    # Polars reads in a thread of its own, and if that panics, the batches just end. So a row with
    # this mark is added as the last one, which must come; it is left out here.
    mark = "is_last"
    while mark in schema:
        mark += "_"
    last = pl.LazyFrame({mark: [True]}).select(
        *(pl.lit(None, dtype).alias(name) for name, dtype in schema.items()), mark)
    marked = pl.concat([frame.with_columns(pl.lit(False).alias(mark)), last])
    has_ended = False
    # lazy=True: the query starts when the first batch is asked for.
    for batch in marked.collect_batches(chunk_size=max_rows, maintain_order=True, lazy=True):
        if batch.height:
            has_ended = batch[mark][-1]
        rows = batch.drop(mark).head(batch.height - has_ended)
        if rows.height:
            yield rows
    if not has_ended:
        # An interrupt ends the thread, too, and KeyboardInterrupt may get lost in a callback.
        raise_if_stopped()
        raise UnfinishedError("Polars stopped before the last row; standard error says why")


def _split_by_bytes(
    chunk: pl.DataFrame, text: Sequence[str], max_bytes: int
) -> Iterator[pl.DataFrame]:
    """Divide rows by the bytes of their texts, in the columns ``text``."""
    if not text or chunk.height <= 1:
        yield chunk
        return
    texts = [pl.col(name).cast(pl.List(pl.String)).list.join("", ignore_nulls=True)
             if isinstance(chunk.schema[name], pl.List) else pl.col(name).cast(pl.String)
             for name in text]
    row_bytes = chunk.select(pl.sum_horizontal(
        each.str.len_bytes().cast(pl.Int64) for each in texts)).to_series()
    # The bytes of all rows up to each row, itself included.
    ends = np.cumsum(row_bytes.to_numpy())
    start = 0
    while start < chunk.height:
        bytes_before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, bytes_before + max_bytes, side="right")))
        yield chunk.slice(start, stop - start)
        start = stop


def groups(
    items: Iterable[Item], size_of: Callable[[Item], int], *, max_items: int = _MAX_ITEMS,
    max_bytes: int = _MAX_GROUP_BYTES,
) -> Iterator[list[Item]]:
    """Divide items into lists, each limited in items and bytes; the last list may be empty.

    A list ends with the item that reaches a limit. ``size_of`` returns the bytes of an item.

    Examples
    --------
    >>> list(groups(["aaaa", "bb", "cccccc", "d"], len, max_bytes=6))
    [['aaaa', 'bb'], ['cccccc'], ['d']]
    """
    group: list[Item] = []
    size = 0
    for item in items:
        group.append(item)
        size += size_of(item)
        if len(group) >= max_items or size >= max_bytes:
            yield group
            group, size = [], 0
    yield group
