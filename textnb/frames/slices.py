"""Read files one after the other, and columnar formats one slice of rows at a time.

    file -> slices of about 64 MiB -> pieces of a few thousand rows

Polars decodes several whole row groups in advance, and some writers put all rows into one group.
For a slice, Polars decodes only the pages that hold it, so memory depends neither on how large row
groups are nor on how many files there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import polars as pl

from textnb.errors import SchemaError, SourceError, first_line, quantity
from textnb.frames.batches import MAX_ROWS as BATCH_ROWS
from textnb.frames.batches import collect_batches
from textnb.frames.names import exactly
from textnb.frames.paths import READ_ERRORS
from textnb.frames.sources import OnSkip, lazy_frame_from
from textnb.frames.stdin import shown_name
from textnb.runtime.engine import engine_failure

OpenLazily = Callable[[str], pl.LazyFrame]
# Limits of a slice. The first slice is short: it shows how many bytes a row has.
_MAX_BYTES, _FIRST_ROWS, _MAX_ROWS = 64 << 20, 1024, 1 << 20


def scan_in_turn(
    files: Sequence[str], open_lazily: OpenLazily, *, can_slice: bool,
    on_skip: OnSkip | None = None,
) -> pl.LazyFrame:
    """The rows of several files of one schema, in the order of the files.

    Parameters
    ----------
    files : sequence of str
    open_lazily : callable
        Opens a path as a LazyFrame; raises SourceError for anything that is not a file.
    can_slice : bool
        Whether rows can be read from the middle of a file without those before them.
    on_skip : callable, optional
        Without it, a file that can't be read is an error. With it, such a file is left out as a
        whole, and the errors are passed to this function. Each file is then read twice, as it must
        be read to its end before its first row is used.

    Raises
    ------
    SourceError
        If a file can't be read; it is named.
    SchemaError
        If the columns of the files differ.
    """
    reference, schema = _common_schema(files, open_lazily, on_skip)

    # The parameters are those of `textnb.frames.sources.Read`.
    def read(
        columns: list[str], predicate: pl.Expr | None, max_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        rows_left = max_rows
        skipped: list[SourceError] = []
        for path in files:
            if rows_left == 0:
                break
            try:
                frame = _open_and_check(path, open_lazily, reference, schema, on_skip is not None)
            except (SourceError, SchemaError) as error:
                if on_skip is None:
                    raise
                skipped.append(SourceError(str(error)))
                continue
            frame = frame.select(exactly(columns))
            frame = frame if rows_left is None else frame.head(rows_left)
            for piece in _pieces(path, frame, can_slice):
                rows_left = None if rows_left is None else rows_left - piece.height
                yield piece
        if on_skip is not None and skipped:
            on_skip(skipped, len(files))

    return lazy_frame_from(read, schema)


def _common_schema(
    files: Sequence[str], open_lazily: OpenLazily, on_skip: OnSkip | None
) -> tuple[str, pl.Schema]:
    """The path of a file that has the schema that all files must have, for errors; that schema.

    It is the schema of the first file, or with ``on_skip`` the most frequent one.
    """
    schemas, first_error = [], None
    for path in files if on_skip is not None else files[:1]:
        try:
            with _report_errors(path):
                schemas.append((path, open_lazily(path).collect_schema()))
        except SourceError as error:
            if on_skip is None:
                raise
            first_error = first_error or error
    if not schemas:
        raise SourceError(f"none of the {quantity(len(files), 'file')} can be read: {first_error}")
    # Columns may be in any order.
    frequencies = Counter(frozenset(schema.items()) for _, schema in schemas)
    return max(schemas, key=lambda pair: frequencies[frozenset(pair[1].items())])


def _open_and_check(
    path: str, open_lazily: OpenLazily, reference: str, schema: pl.Schema, read_all: bool
) -> pl.LazyFrame:
    """Open a file, and check its columns and, if ``read_all``, that all its rows can be read.

    ``reference`` is the path of a file that has the ``schema``, which errors name.
    """
    with _report_errors(path):
        frame = open_lazily(path)
        _check_schema(path, frame.collect_schema(), reference, schema)
        if read_all:
            # Counting nulls reads all values, and keeps none in memory.
            frame.select(pl.all().null_count()).collect()
    return frame


@contextmanager
def _report_errors(path: str) -> Iterator[None]:
    """A context in which errors of Polars name the file; errors of the system pass unchanged."""
    try:
        yield
    except READ_ERRORS as error:
        raise engine_failure(error) or SourceError.unreadable(
            shown_name(path), first_line(error)) from error


def _pieces(path: str, frame: pl.LazyFrame, can_slice: bool) -> Iterator[pl.DataFrame]:
    blocks = _slices(frame) if can_slice else collect_batches(frame, BATCH_ROWS)
    with _report_errors(path):
        for block in blocks:
            yield from block.iter_slices(BATCH_ROWS)


def _slices(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    n_rows = frame.select(pl.len()).collect().item()
    start, step = 0, _FIRST_ROWS
    while start < n_rows:
        rows = frame.slice(start, step).collect()
        if not rows.height:
            raise OSError("it has fewer rows than when it was opened: it was changed meanwhile")
        start += rows.height
        # Grow at most eightfold, as later rows may be larger.
        rows_that_fit = step * _MAX_BYTES // max(1, int(rows.estimated_size()))
        step = max(1, min(rows_that_fit, 8 * step, _MAX_ROWS))
        yield rows


def _check_schema(path: str, schema: pl.Schema, reference: str, expected: pl.Schema) -> None:
    """Raise SchemaError unless a file has the columns of the reference file, in any order."""
    for name in [*expected, *schema]:
        if schema.get(name) == expected.get(name):
            continue
        if name not in schema:
            difference = f"{path} has no column {name!r}, which {reference} has"
        elif name not in expected:
            difference = f"{path} has a column {name!r}, which {reference} lacks"
        else:
            difference = (f"column {name!r} is {schema[name]} in {path}, and {expected[name]} in "
                          f"{reference}")
        raise SchemaError(f"{difference}; files that are read together must have the same columns")
