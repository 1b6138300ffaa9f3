"""The rows of a job, read once: what it learns from and what it is tested on, as two files."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from textnb.errors import DataError
from textnb.frames.conditions import rows_where
from textnb.frames.scan import reading, scan, scan_table
from textnb.pipeline.configuration import Job
from textnb.sinks import write

_PARTS = 1 << 20


@dataclass(frozen=True)
class Rows:
    """Files of rows.

    Attributes
    ----------
    train, test : Path
        Parquet.
    learned, tested : int
        How many rows.
    held_out : bool
        Whether the test rows were held out of one input.
    malformed : int
        Messages with something malformed, where the input is mail.
    """

    train: Path
    test: Path
    learned: int
    tested: int
    held_out: bool
    malformed: int


def read_rows(job: Job, folder: Path) -> Rows:
    """Read the input, once, into two Parquet files; in bounded memory.

    Raises
    ------
    DataError
        If either has no rows.
    """
    given = job.input
    learn, test = folder / "train.parquet", folder / "test.parquet"
    with reading(given.train):
        whole = opened(job, given.train, given.format, labels=True)
        rows = rows_where(whole, given.train_where, "input.train_where")
        held_out = given.test is None and given.test_where is None
        if held_out:
            apart = _held_out(job, rows, given.hold_out)
            rows, tests = rows.filter(~apart), rows.filter(apart)
            _sink(tests, test)
        _sink(rows, learn)
    if not held_out:
        source = given.test or given.train
        with reading(source):
            tests = opened(job, source, given.format, labels=True)
            _sink(rows_where(tests, given.test_where, "input.test_where"), test)
    learned, tested = (int(pl.scan_parquet(path).select(pl.len()).collect().item())
                       for path in (learn, test))
    for name, count in (("learn from", learned), ("test on", tested)):
        if not count:
            raise DataError(f"no rows to {name}: see [input] in the job's file")
    return Rows(learn, test, learned, tested, held_out, _malformed(learn) + _malformed(test))


def opened(job: Job, source: str, format: str | None, *, labels: bool) -> pl.LazyFrame:
    """The rows of a source, their columns checked."""
    model = job.model
    label = model.label if labels else None
    if model.kind_of_rows == "texts":
        return scan(source, text=model.columns, label=label, format=format,
                    encoding=job.input.encoding)
    return scan_table(source, model.features, label, format=format, encoding=job.input.encoding)


def _held_out(job: Job, rows: pl.LazyFrame, share: float) -> pl.Expr:
    """A share of the rows by a checksum of what they hold, so that copies are on one side."""
    if job.model.kind_of_rows == "texts":
        names = job.model.columns
    else:
        names = [name for name in rows.collect_schema().names() if name != job.model.label]
    least = round(share * _PARTS)

    def low(values: pl.Series) -> pl.Series:
        # A checksum of Python's own: the engine's hashes change from release to release.
        return pl.Series([zlib.crc32(value.encode()) % _PARTS < least for value in values],
                         dtype=pl.Boolean)

    texts = [pl.col(name).cast(pl.String).fill_null("") if dtype != pl.List(pl.String)
             else pl.col(name).list.join("\n") for name, dtype in rows.collect_schema().items()
             if name in names and not (dtype.is_nested() and dtype != pl.List(pl.String))]
    return pl.concat_str(texts, separator="\0").map_batches(
        low, return_dtype=pl.Boolean, is_elementwise=True)


def _sink(rows: pl.LazyFrame, path: Path) -> None:
    write(rows, str(path), None)


def _malformed(path: Path) -> int:
    frame = pl.scan_parquet(path)
    if frame.collect_schema().get("errors") != pl.List(pl.String):
        return 0
    return int(frame.select((pl.col("errors").list.len() > 0).sum()).collect().item())


