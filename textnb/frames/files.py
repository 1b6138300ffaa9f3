"""Rows in files: a path, a glob, a folder of files, standard input, or a URL.

    path -> existing files of one format -> LazyFrame of their rows
"""

from __future__ import annotations

import glob as globbing
import os
from collections.abc import Sequence
from typing import Any

import polars as pl

from textnb.errors import ParameterError, SourceError
from textnb.frames.cloud import check_storage_options, is_url
from textnb.frames.formats import common_format, format_of, open_rows, schema_of_files
from textnb.frames.paths import LINE_FORMATS, check_file, check_text, expand_glob
from textnb.frames.slices import scan_in_turn
from textnb.frames.sources import RowSource, ScanOptions
from textnb.frames.stdin import spool_stdin


class Cloud(RowSource):
    """A URL that Polars reads, such as ``s3://bucket/*.parquet``."""

    takes = frozenset({"format", "separator", "storage_options"})

    def knows(self, source: Any, options: ScanOptions) -> bool:
        return is_url(source)

    def open(self, source: Any, options: ScanOptions) -> pl.LazyFrame:
        storage_options = check_storage_options(source, options.storage_options)
        return open_rows(source, options.format or format_of(source), options,
                         storage_options=storage_options)


class StandardInput(RowSource):
    """Standard input, ``-``: its first bytes show the format of the rows."""

    takes = frozenset({"format", "on_error", "separator"})

    def knows(self, source: Any, options: ScanOptions) -> bool:
        return bool(source == "-")

    def open(self, source: Any, options: ScanOptions) -> pl.LazyFrame:
        path, format = spool_stdin()
        return scan_files([path], options.format or format, options)


class Files(RowSource):
    """A file of rows, a glob, a folder of files, or a folder of partitions (``name=value``)."""

    takes = frozenset({"format", "on_error", "separator"})

    def knows(self, source: Any, options: ScanOptions) -> bool:
        return True

    def open(self, source: Any, options: ScanOptions) -> pl.LazyFrame:
        if os.path.isdir(source):
            return _scan_folder(source, options)
        files = files_of(source)
        if not files:
            raise SourceError.not_found(source)
        return scan_files(files, options.format or common_format(files), options)


def _scan_folder(folder: str, options: ScanOptions) -> pl.LazyFrame:
    """Scan the files in a folder, or the partitions below it if it holds no files."""
    files = files_inside(folder)
    if files:
        # A broken link is an error once it is opened; its name does not decide the format.
        format = options.format or common_format(list(filter(os.path.isfile, files)))
        return scan_files(files, format, options)
    if options.format not in (None, "parquet") or not partitions_inside(folder):
        raise SourceError.unreadable(folder, "it holds no files of rows")
    if options.on_skip is not None:
        raise ParameterError.naming_settings(
            "{on_error} is not for a folder of partitions (name=value): name its files: "
            "{path}/**/*.parquet", path=folder)
    return pl.scan_parquet(globbing.escape(folder), hive_partitioning=True)


def files_inside(folder: str) -> list[str]:
    """The sorted paths of a folder's files and broken links; empty if it holds no file."""
    # Hidden files, and files without rows, such as the _SUCCESS of Spark, are left out.
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))
             if not name.startswith((".", "_"))]
    files = [path for path in paths if not os.path.isdir(path)]
    return files if any(map(os.path.isfile, files)) else []


def partitions_inside(folder: str) -> list[str]:
    """The sorted paths of the Parquet files below subfolders named ``name=value``."""
    return expand_glob(os.path.join(globbing.escape(folder), "*=*", "**", "*.parquet"))


def files_of(source: str) -> list[str]:
    """The files of rows that a path, a glob or a folder names, sorted; empty if there are none."""
    if os.path.isdir(source):
        return files_inside(source) or partitions_inside(source)
    return [source] if os.path.exists(source) else _match_glob(source)


def _match_glob(pattern: str) -> list[str]:
    """Files that match a glob, and matching folders whose files do not match, sorted."""
    matches = expand_glob(pattern)
    # A match that is neither a file nor a folder, such as a pipe, is refused when it is read.
    files = [path for path in matches if not os.path.isdir(path)]
    # A folder that is named like a file, such as rows.parquet, holds files. A pattern with ** also
    # matches these files: then the folder is left out, so that they are read once.
    folders = [path for path in matches if os.path.isdir(path)
               and not any(file.startswith(os.path.join(path, "")) for file in files)]
    return sorted(files + folders)


def scan_files(files: Sequence[str], format: str, options: ScanOptions) -> pl.LazyFrame:
    """Scan existing files of one format.

    They are read one by one if they are columnar, or if unreadable ones may be left out.
    """
    is_columnar = format in ("parquet", "ipc")
    if options.on_skip is None:
        for path in files:
            _check_path(path, format)
    schema = schema_of_files(files, format, lenient=options.on_skip is not None)
    if not is_columnar and options.on_skip is None:
        return open_rows(files, format, options, schema=schema)

    def open_one(path: str) -> pl.LazyFrame:
        _check_path(path, format)
        return open_rows([path], format, options, schema=schema)

    return scan_in_turn(files, open_one, can_slice=is_columnar, on_skip=options.on_skip)


def _check_path(path: str, format: str) -> None:
    """Raise SourceError unless a path is a file; lines must not be UTF-16."""
    if os.path.isdir(path):
        # A folder that is named like a file: the engine reads the files in it.
        return
    check_file(path)
    if format in LINE_FORMATS:
        check_text(path)
