"""Formats of rows: finds a file's format by its name, and opens its rows lazily."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from textnb.errors import ParameterError, SourceError
from textnb.frames.cloud import hide_secrets, is_url
from textnb.frames.faults import check_header, check_strings
from textnb.frames.names import exactly
from textnb.frames.paths import LINE_FORMATS, READ_ERRORS, escape_glob, without_bom
from textnb.frames.sources import NumericColumns, ScanOptions, no_numeric_columns

LAKES = ("delta", "iceberg")
ROW_FORMATS = ("parquet", "ipc", "csv", "tsv", "ndjson", "lines")
ENDINGS = {
    ".parquet": "parquet", ".pq": "parquet",
    ".ipc": "ipc", ".arrow": "ipc", ".feather": "ipc",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
    ".ndjson": "ndjson", ".jsonl": "ndjson",
    ".txt": "lines",
    ".eml": "mail", ".mbox": "mail", ".mbx": "mail",
}
# If NDJSON has more columns than this, the engine does not keep their order.
_MAX_ORDERED_COLUMNS = 32


def format_of(path: str) -> str:
    """The format that the ending of a path or URL shows."""
    name = Path(path.split("?")[0] if "://" in path else path).name.lower()
    for compression in (".gz", ".zst"):
        name = name.removesuffix(compression)
    ending = Path(name).suffix
    if ending in (".bz2", ".xz", ".zip") and not is_url(path):
        format = ENDINGS.get(Path(name.removesuffix(ending)).suffix)
        # Mail is read from the first two; of lines, it is said when the file is opened.
        if format in LINE_FORMATS or (format == "mail" and ending != ".zip"):
            return format
    if ending not in ENDINGS:
        raise SourceError.unknown_format(hide_secrets(path), ENDINGS)
    return ENDINGS[ending]


def common_format(paths: Sequence[str]) -> str:
    """The format of all paths; SourceError if they have several."""
    examples = {format_of(path): path for path in paths}
    if len(examples) > 1:
        raise SourceError(f"files of several formats: {', '.join(sorted(examples.values()))}; "
                          "name those of one format")
    return next(iter(examples))


def open_rows(
    source: str | Sequence[str], format: str, options: ScanOptions, *,
    schema: pl.Schema | None = None, **storage_options: Any,
) -> pl.LazyFrame:
    """Open rows of a format lazily.

    Parameters
    ----------
    source : str or sequence of str
        A URL, or the paths of existing files.
    format : str
    options : ScanOptions
    schema : Schema, optional
        As `schema_of_files` returns it.
    storage_options
        For a URL: the argument ``storage_options`` of Polars' functions.
    """
    if options.separator is not None and format not in ("csv", "tsv"):
        raise ParameterError.naming_settings("{separator} is for CSV; the rows are {format_name}",
                                             format_name=format)
    files = [] if isinstance(source, str) else source
    paths: Any = source if isinstance(source, str) else escape_glob(source)
    match format:
        case "parquet":
            return pl.scan_parquet(paths, **storage_options)
        case "ipc":
            return pl.scan_ipc(paths, **storage_options)
        case "csv" | "tsv":
            separator = options.separator or ("," if format == "csv" else "\t")
            for path in files:
                check_header(path, separator, options.text_and_label)
            return _scan_csv(paths, options.numeric_columns, separator=separator, **storage_options)
        case "ndjson":
            schema = _ndjson_schema(source, **storage_options) if schema is None else schema
            strings = [name for name in options.text_and_label if schema.get(name) == pl.String]
            for path in [source] if isinstance(source, str) else source:
                check_strings(path, strings, **storage_options)
            return pl.scan_ndjson(_escape_without_boms(source), schema=schema, **storage_options)
        case "lines":
            return pl.scan_lines(_escape_without_boms(source), name="text", **storage_options)
    if format == "mail":
        raise ParameterError.naming_settings("{source} holds mail: say {format='mail'}",
                                             source=files[0])
    raise ParameterError.unknown_choice("format", format, [*ROW_FORMATS, "folder", "mail", *LAKES])


def _escape_without_boms(source: str | Sequence[str]) -> Any:
    """Escape paths; a file with a byte-order mark, which the engine would keep, is copied first."""
    return source if isinstance(source, str) else escape_glob(map(without_bom, source))


def schema_of_files(
    files: Sequence[str], format: str, *, lenient: bool = False
) -> pl.Schema | None:
    """The schema of several files, of a format whose files may have different columns; else None.

    With ``lenient``, files that can't be read are left out.
    """
    return (_ndjson_schema(files, lenient=lenient) if format == "ndjson" and len(files) > 1
            else None)


def _ndjson_schema(
    source: str | Sequence[str], *, lenient: bool = False, **options: Any
) -> pl.Schema:
    """The schema of all rows: every key, with a type that fits all its values.

    The engine would drop a key that first occurs after the rows from which it infers a schema. Of
    several files, it would take keys and types from the first alone. With ``lenient``, files that
    can't be read are left out. ``options`` are arguments of Polars' functions for URLs.
    """
    schemas = []
    sources: list[Any] = [source] if isinstance(source, str) else [[path] for path in source]
    for each in sources:
        try:
            schemas.append(_schema_of_one(_escape_without_boms(each), **options))
        except (*READ_ERRORS, ValueError):
            if not lenient:
                raise
    # "relaxed": of several types of a column, the one that holds the values of all.
    return pl.concat([pl.DataFrame(schema=schema) for schema in schemas or [pl.Schema()]],
                     how="diagonal_relaxed").schema


def _schema_of_one(source: Any, **options: Any) -> pl.Schema:
    schema = pl.scan_ndjson(source, infer_schema_length=None, **options).collect_schema()
    if len(schema) <= _MAX_ORDERED_COLUMNS:
        return schema
    # The engine's order of many columns differs from one process to the next, so they are put into
    # the order of the first line that is not blank.
    lines = pl.scan_lines(source, name="line", **options).filter(pl.col("line").str.contains(r"\S"))
    first_line = lines.head(1).collect().item()
    try:
        keys = [name for name in json.loads(first_line) if name in schema]
    except (ValueError, RecursionError):
        # The engine reads deeper lists than Python does, and some JSON that is not quite right.
        keys = []
    return pl.Schema({name: schema[name] for name in [*keys, *sorted(set(schema) - set(keys))]})


def _scan_csv(source: Any, find_numeric: NumericColumns | None, **options: Any) -> pl.LazyFrame:
    """Scan a CSV file: with inferred types, or with strings except for the numeric columns.

    ``find_numeric`` returns the names of these columns. Its argument is a function that infers the
    schema, for which the whole file is read. ``options`` are arguments of `polars.scan_csv`.
    """
    header = pl.scan_csv(source, infer_schema=False, **options).collect_schema()
    # The engine leaves the quotes in a name doubled (polars#22943).
    names = {name: name.replace('""', '"') for name in header if '""' in name}

    def read(**inference: Any) -> pl.LazyFrame:
        frame = _read_all_columns(pl.scan_csv(source, **inference, **options))
        return frame.rename(names) if names else frame

    if find_numeric is None:
        return read(infer_schema_length=None)
    strings = read(infer_schema=False)
    if find_numeric is no_numeric_columns:
        return strings

    def infer_schema() -> pl.Schema:
        return read(infer_schema_length=None).collect_schema()

    return strings.with_columns(_numbers_in(name) for name in find_numeric(infer_schema)
                                if name in strings.collect_schema())


def _numbers_in(name: str) -> pl.Expr:
    """The numbers in a column of strings; true and false are 1 and 0."""
    word = exactly([name]).str.strip_chars()
    return pl.coalesce(word.cast(pl.Float64, strict=False), word.replace_strict(
        {"true": 1.0, "false": 0.0}, default=None, return_dtype=pl.Float64))


def _read_all_columns(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Read unused columns too; otherwise the engine silently drops the extra fields of rows."""
    return frame.map_batches(lambda rows: rows, projection_pushdown=False, streamable=True)
