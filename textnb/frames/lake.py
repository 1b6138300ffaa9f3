"""Tables of a lake, Delta and Iceberg: the rows of their current version, as Polars scans them.

    folder with _delta_log | folder with metadata/*.metadata.json | URL  ->  LazyFrame

A table's files also hold rows that were deleted or replaced: only its log says which are valid.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import polars as pl

from textnb.errors import SourceError, first_line
from textnb.frames.cloud import explain_failure, hide_secrets, is_url

FORMATS = ("delta", "iceberg")
_METADATA = re.compile(r"v?(\d+)(?:-[0-9a-fA-F-]+)?(?:\.gz)?\.metadata\.json")


def table_format(path: str) -> str | None:
    """``"delta"`` or ``"iceberg"`` if a path shows it; no file is read."""
    if path.endswith(".metadata.json"):
        return "iceberg"
    if is_url(path) or not os.path.isdir(path):
        return None
    if os.path.isdir(os.path.join(path, "_delta_log")):
        return "delta"
    metadata = os.path.join(path, "metadata")
    if os.path.isdir(metadata) and any(
            name.endswith(".metadata.json") for name in os.listdir(metadata)):
        return "iceberg"
    return None


def scan_lake(
    path: str, format: str, options: Mapping[str, Any] | None = None
) -> pl.LazyFrame:
    """Scan the current version of a table; later changes are not seen.

    Parameters
    ----------
    path : str
        A folder or URL; for an Iceberg table, also the path of its ``metadata.json``.
    format : {"delta", "iceberg"}
    options : mapping, optional
        Storage options, for URLs.

    Raises
    ------
    SourceError
        If the library is not installed, or the table can't be read.
    """
    return _scan_delta(path, options) if format == "delta" else _scan_iceberg(path, options)


def _scan_delta(path: str, options: Mapping[str, Any] | None) -> pl.LazyFrame:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ImportError:
        raise _missing(path, "Delta", "delta") from None
    whole = path if is_url(path) else os.path.abspath(path)
    if not is_url(path) and quote(whole) != whole:
        # Both treat a path as a URL: one of them encodes it, and the other does not decode it.
        raise SourceError.unreadable(
            path, "Polars and deltalake read Delta tables where the path has only ASCII letters, "
                  f"digits and ._-~/; it is {whole!r}. Rename it")
    try:
        texts = None if options is None else {name: str(value) for name, value in options.items()}
        # Fix the version, so that two passes over the rows see the same rows.
        version = DeltaTable(path, storage_options=texts).version()
        frame = pl.scan_delta(
            path, version=version, storage_options=None if options is None else dict(options))
        frame.collect_schema()
    except TableNotFoundError:
        raise SourceError.unreadable(
            hide_secrets(path), "it holds no Delta table: there is no log of versions in "
                                "_delta_log") from None
    except (DeltaError, pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    return frame


def _scan_iceberg(path: str, options: Mapping[str, Any] | None) -> pl.LazyFrame:
    try:
        from pyiceberg.exceptions import NoSuchTableError, ValidationError
    except ImportError:
        raise _missing(path, "Iceberg", "iceberg") from None
    where = path
    if not is_url(path) and os.path.isdir(path):
        where = _current_metadata(path)
    try:
        frame = pl.scan_iceberg(where, storage_options=_iceberg_options(options))
        frame.collect_schema()
    except FileNotFoundError as error:
        if "version-hint" not in str(error):
            raise _unreadable(path, error) from error
        raise SourceError.unreadable(
            hide_secrets(path), "it does not tell which version of the Iceberg table is its "
                                "current one (no version-hint.text); name that .metadata.json"
        ) from None
    except (NoSuchTableError, ValidationError, pl.exceptions.PolarsError, OSError,
            ValueError) as error:
        raise _unreadable(path, error) from error
    return frame


def _current_metadata(path: str) -> str:
    """Path of the highest version's metadata in a table's folder, as numbered by writers without
    a catalog; raise SourceError where two writers claim that version."""
    folder = os.path.join(path, "metadata")
    versions: dict[int, list[str]] = {}
    for name in sorted(os.listdir(folder) if os.path.isdir(folder) else ()):
        found = _METADATA.fullmatch(name)
        if found:
            versions.setdefault(int(found[1]), []).append(name)
    if not versions:
        raise SourceError.unreadable(path, "it holds no Iceberg table: there is no "
                                     "metadata/*.metadata.json")
    latest = versions[max(versions)]
    if len(latest) > 1:
        raise SourceError.unreadable(
            path, f"two writers claim version {max(versions)} of the Iceberg table: "
                  f"{' and '.join(latest)}. Name the one that its catalog knows")
    return os.path.abspath(os.path.join(folder, latest[0]))


def _iceberg_options(options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The options, with those of S3 also under PyIceberg's names."""
    if options is None:
        return None
    names = {"access_key_id": "s3.access-key-id", "secret_access_key": "s3.secret-access-key",
             "session_token": "s3.session-token", "region": "s3.region",
             "endpoint_url": "s3.endpoint", "endpoint": "s3.endpoint"}
    also = {names[key.lower().removeprefix("aws_")]: value for key, value in options.items()
            if key.lower().removeprefix("aws_") in names}
    return {**options, **also}


def _missing(path: str, name: str, extra: str) -> SourceError:
    return SourceError.unreadable(
        hide_secrets(path), f"it is a table of {name}: pip install 'textnb[{extra}]'")


def _unreadable(path: str, error: BaseException) -> SourceError:
    why = explain_failure(path, error) if is_url(path) else first_line(error)
    return SourceError.unreadable(hide_secrets(path), why)
