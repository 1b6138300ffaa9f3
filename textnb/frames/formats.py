"""Formats of rows: which one a file has by its name, and how its rows are opened lazily."""

from __future__ import annotations

import glob as globbing
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from textnb.errors import ParameterError, SourceError
from textnb.frames.cloud import hide_secrets
from textnb.frames.lake import FORMATS as LAKES
from textnb.frames.paths import is_marked, without_mark

# From a file's inferred schema, if it asks for that, to the columns that are read as numbers.
Numbers = Callable[[Callable[[], pl.Schema]], Sequence[str]]
_ENDINGS = {
    ".parquet": "parquet", ".pq": "parquet",
    ".ipc": "ipc", ".arrow": "ipc", ".feather": "ipc",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
    ".ndjson": "ndjson", ".jsonl": "ndjson",
    ".txt": "lines",
    ".eml": "mail", ".mbox": "mail", ".mbx": "mail",
}
# Characters that glob.escape has escaped.
_ESCAPED = re.compile(r"\[([*?[])\]")
# The engine does not keep the order of NDJSON's columns where there are more than this.
_IN_ORDER = 32


def escape_glob(paths: Sequence[str]) -> list[str]:
    """Escape brackets and stars in the paths of existing files, which are no globs."""
    return [globbing.escape(path) for path in paths]


class Csv(NamedTuple):
    """The settings to read CSV files with.

    Attributes
    ----------
    numbers : Numbers or None
        The columns that are read as numbers, others as strings; None infers all types.
    separator : str or None
        The character between fields; None is the comma, and the tab in TSV.
    """

    numbers: Numbers | None
    separator: str | None = None


def reader_of(format: str, how: Csv, **options: Any) -> Callable[[Any], pl.LazyFrame]:
    def csv(separator: str) -> Callable[[Any], pl.LazyFrame]:
        return lambda where: _scan_typed(
            where, how.separator or separator, how.numbers, **options)

    # A key that is first seen after the rows from which a schema is inferred would be dropped.
    readers: dict[str, Callable[[Any], pl.LazyFrame]] = {
        "parquet": lambda where: pl.scan_parquet(where, **options),
        "ipc": lambda where: pl.scan_ipc(where, **options),
        "csv": csv(","),
        "tsv": csv("\t"),
        "ndjson": lambda where: _ndjson(where, **options),
        "lines": lambda where: _lines(where, **options),
    }
    if format not in readers:
        raise ParameterError.unknown_choice("format", format, [*readers, "folder", "mail", *LAKES])
    if how.separator is not None and format not in ("csv", "tsv"):
        raise ParameterError.naming("{separator} is for CSV; the rows are {format_name}",
                                    format_name=format)
    return readers[format]


def _lines(where: Any, **options: Any) -> pl.LazyFrame:
    frame = pl.scan_lines(where, name="text", **options)
    if not any(is_marked(path) for path in _local(where)):
        return frame
    return frame.with_columns(pl.col("text").str.strip_prefix("\ufeff"))


def _without_mark(where: Any) -> Any:
    """Replace files by copies without a byte-order mark, which the engine reads only in CSV."""
    marked = [path for path in _local(where) if is_marked(path)]
    if not marked:
        return where
    return escape_glob([without_mark(path) if path in marked else path for path in _local(where)])


def _local(where: Any) -> list[str]:
    """The paths that `escape_glob` has escaped; none for a URL."""
    return [] if isinstance(where, str) else [_ESCAPED.sub(r"\1", path) for path in where]


def _ndjson(where: Any, **options: Any) -> pl.LazyFrame:
    where = _without_mark(where)
    frame = pl.scan_ndjson(where, infer_schema_length=None, **options)
    names = frame.collect_schema().names()
    if len(names) <= _IN_ORDER:
        return frame
    # The engine puts many columns in an order that differs from one process to the next: that of
    # the first line is the file's own.
    first = pl.scan_lines(where, name="line", **options).head(1).collect().item()
    keys = [name for name in json.loads(first) if name in names]
    return frame.select([*keys, *sorted(set(names) - set(keys))])


def ndjson_reader(files: Sequence[str], lenient: bool) -> Callable[[Any], pl.LazyFrame]:
    """Make a reader of NDJSON files with the keys of all files, each in a type for all values.

    The engine would take keys and types from the first file.
    """
    schemas = []
    for path in escape_glob(files):
        try:
            schemas.append(_ndjson([path]).collect_schema())
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
            if not lenient:
                raise
    if not schemas:
        return _ndjson
    schema = pl.concat([pl.DataFrame(schema=each) for each in schemas],
                       how="diagonal_relaxed").schema
    return lambda where: pl.scan_ndjson(_without_mark(where), schema=schema)


def no_numbers(inferred: Callable[[], pl.Schema]) -> list[str]:
    return []


def _scan_typed(
    where: Any, separator: str, numbers: Numbers | None, **options: Any
) -> pl.LazyFrame:
    """Scan a CSV file: with types inferred from all rows, or as strings except for ``numbers``."""
    if numbers is None:
        return pl.scan_csv(where, separator=separator, infer_schema_length=None, **options)
    strings = pl.scan_csv(where, separator=separator, infer_schema=False, **options)
    if numbers is no_numbers:
        return strings

    def inferred() -> pl.Schema:
        return pl.scan_csv(
            where, separator=separator, infer_schema_length=None, **options).collect_schema()

    return strings.with_columns(
        pl.coalesce(pl.col(name).str.strip_chars().cast(pl.Float64, strict=False),
                    pl.col(name).replace_strict({"true": 1.0, "false": 0.0}, default=None,
                                                return_dtype=pl.Float64)).alias(name)
        for name in numbers(inferred) if name in strings.collect_schema())


def format_of(path: str) -> str:
    name = Path(path.split("?")[0] if "://" in path else path).name.lower()
    for packed in (".gz", ".zst"):
        name = name.removesuffix(packed)
    ending = Path(name).suffix
    if ending not in _ENDINGS:
        raise SourceError.unknown_format(hide_secrets(path), _ENDINGS)
    return _ENDINGS[ending]


def one_format(paths: Sequence[str]) -> str:
    formats = {format_of(path): path for path in paths}
    if len(formats) > 1:
        raise SourceError(f"files of several formats: {', '.join(sorted(formats.values()))}; "
                          "name those of one format")
    return next(iter(formats))
