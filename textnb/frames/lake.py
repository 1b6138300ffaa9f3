"""Tables of a lake, Delta and Iceberg: the rows of their current version, as Polars scans them.

    folder with _delta_log | folder with metadata/*.metadata.json | URL  ->  LazyFrame

A table's files also hold rows that were deleted or replaced: only its log says which are valid.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import polars as pl

from textnb.errors import SourceError, TextnbError, first_line
from textnb.files.parquet import ENGINE_ERRORS
from textnb.frames.cloud import check_storage_options, explain_failure, hide_secrets, is_url
from textnb.frames.formats import LAKES
from textnb.frames.sources import RowSource, ScanOptions
from textnb.runtime.engine import engine_failure

# The name of a metadata file of Iceberg has the version's number: v2.metadata.json, or
# 00002-UUID.metadata.json.
_METADATA_NAME = re.compile(r"v?(\d+)(?:-[0-9a-fA-F-]+)?(?:\.gz)?\.metadata\.json")
StorageOptions = dict[str, Any] | None


class Lake(RowSource):
    """A folder or URL of a table; of an Iceberg table, also the path of its ``metadata.json``.

    Rows are those of the table's version when it is opened; later versions are not seen.
    """

    takes = frozenset({"format", "storage_options"})

    def knows(self, source: Any, options: ScanOptions) -> bool:
        return (options.format or table_format(source)) in LAKES

    def open(self, source: Any, options: ScanOptions) -> pl.LazyFrame:
        storage_options = check_storage_options(source, options.storage_options)
        name = options.format or table_format(source)
        scan: Callable[[str, StorageOptions], pl.LazyFrame] = (
            _scan_delta if name == "delta" else _scan_iceberg)
        try:
            frame = scan(source, storage_options)
            frame.collect_schema()
        except ModuleNotFoundError:
            raise SourceError.unreadable(
                hide_secrets(source), f"it is a table of {str(name).title()}: pip install "
                                      f"'textnb[{name}]'") from None
        except TextnbError:
            raise
        except (*ENGINE_ERRORS, Exception) as error:
            # Polars, deltalake and PyIceberg each have errors of their own. A panic of Polars is
            # not an Exception.
            if (failure := engine_failure(error)) is not None:
                raise failure from error
            why = explain_failure(source, error) if is_url(source) else first_line(error)
            raise SourceError.unreadable(hide_secrets(source), why) from error
        return frame


def table_format(path: str) -> str | None:
    """Return "delta" or "iceberg" if a path is that of such a table; no file is read."""
    if path.endswith(".metadata.json"):
        return "iceberg"
    if is_url(path) or not os.path.isdir(path):
        return None
    if os.path.isdir(os.path.join(path, "_delta_log")):
        return "delta"
    is_iceberg = any(name.endswith(".metadata.json") for name in _metadata_names(path))
    return "iceberg" if is_iceberg else None


def _metadata_names(path: str) -> list[str]:
    folder = os.path.join(path, "metadata")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def _scan_delta(path: str, options: StorageOptions) -> pl.LazyFrame:
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    absolute = os.path.abspath(path)
    if not is_url(path) and quote(absolute) != absolute:
        # Polars and deltalake treat a path as a URL: one of them encodes special characters, which
        # the other does not decode.
        raise SourceError.unreadable(
            path, "Polars and deltalake read Delta tables where the path has only ASCII letters, "
                  f"digits and ._-~/; it is {absolute!r}. Rename it")
    strings = {name: str(value) for name, value in (options or {}).items()}
    try:
        # Fix the version, so that two passes over the rows see the same rows.
        version = DeltaTable(path, storage_options=strings or None).version()
    except TableNotFoundError:
        raise SourceError.unreadable(
            hide_secrets(path), "it holds no Delta table: there is no log of versions in "
                                "_delta_log") from None
    return pl.scan_delta(path, version=version, storage_options=options)


def _scan_iceberg(path: str, options: StorageOptions) -> pl.LazyFrame:
    # If PyIceberg is missing, say so now: Polars would import it when rows are read.
    import pyiceberg.exceptions  # noqa: F401

    source = path if is_url(path) or not os.path.isdir(path) else _current_metadata(path)
    # PyIceberg reads the metadata. It has names of its own for options, such as s3.endpoint for
    # aws_endpoint_url.
    extra = {f"s3.{key.lower().removeprefix('aws_').removesuffix('_url').replace('_', '-')}": value
             for key, value in (options or {}).items()}
    try:
        frame = pl.scan_iceberg(source, storage_options={**options, **extra} if options else None)
        frame.collect_schema()
    except FileNotFoundError as error:
        if "version-hint" not in str(error):
            raise
        raise SourceError.unreadable(
            hide_secrets(path), "it does not tell which version of the Iceberg table is its "
                                "current one (no version-hint.text); name that .metadata.json"
        ) from None
    return frame


def _current_metadata(path: str) -> str:
    """The path of the metadata with the highest number in a table's folder; SourceError if two
    files have it, as can happen without a catalog."""
    versions: dict[int, list[str]] = defaultdict(list)
    for name in _metadata_names(path):
        if match := _METADATA_NAME.fullmatch(name):
            versions[int(match[1])].append(name)
    if not versions:
        raise SourceError.unreadable(path, "it holds no Iceberg table: there is no "
                                     "metadata/*.metadata.json")
    latest = versions[max(versions)]
    if len(latest) > 1:
        raise SourceError.unreadable(
            path, f"two writers claim version {max(versions)} of the Iceberg table: "
                  f"{' and '.join(latest)}. Name the one that its catalog knows")
    return os.path.abspath(os.path.join(path, "metadata", latest[0]))
