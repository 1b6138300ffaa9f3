"""The model file: a ZIP of one JSON document and Parquet tables, with a checksum over every byte.

    PK...  model.json      what the model is; format version; rows and bytes of each table
           NAME.parquet    tables, zstd inside
    PK...  end record, whose comment is "sha256:" + 64 hex digits over all bytes before the comment

Nothing in it is code. Members are stored without ZIP compression, so a size on disk bounds what is
read; sizes in memory are declared, checked against a limit, and compared with each table's footer
before a table is read. A file is written beside its final name and renamed: it is whole or absent.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import polars as pl

from textnb.errors import ForkError, ModelFileError, SourceError, first_line
from textnb.files.parquet import ENGINE_ERRORS, Malformed, decode, memory_needed
from textnb.files.replace import replacing
from textnb.runtime.forks import check_fork

FORMAT, VERSION = "textnb-model", 1
MAX_BYTES = 8 << 30
_MANIFEST = "model.json"
_MANIFEST_LIMIT = 64 << 20
_MARK = b"sha256:"
_TAIL = len(_MARK) + 64
# The earliest time that ZIP can name: the same model gives the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


def write_archive(
    path: str | os.PathLike[str], manifest: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]
) -> None:
    """Write a manifest and its tables, whole or not at all.

    Parameters
    ----------
    path : path
    manifest : mapping
        JSON-ready; the format, its version and the tables' sizes are added.
    tables : mapping of str to DataFrame
    """
    check_fork(works=True)
    described = {
        "format": FORMAT,
        "version": VERSION,
        **manifest,
        "tables": {name: {"rows": table.height, "bytes": int(table.estimated_size())}
                   for name, table in tables.items()},
    }
    document = json.dumps(described, ensure_ascii=False, allow_nan=False, indent=1)
    with replacing(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo(_MANIFEST, _TIME), document.encode("utf-8"))
            for name, table in tables.items():
                buffer = io.BytesIO()
                table.write_parquet(buffer, compression="zstd")
                archive.writestr(zipfile.ZipInfo(f"{name}.parquet", _TIME), buffer.getbuffer())
            archive.comment = _MARK + b"0" * 64
        length = file.seek(0, os.SEEK_END)
        digest = _digest(file, length - _TAIL)
        file.seek(length - 64)
        file.write(digest.encode("ascii"))


def read_archive(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES
) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    """Read what `write_archive` wrote, after checking every byte.

    Parameters
    ----------
    path : path
    max_bytes : int
        Refuse a file that declares more than this in memory.

    Returns
    -------
    manifest : dict
    tables : dict of str to DataFrame

    Raises
    ------
    ModelFileError
        If the file is truncated, changed, of a later version, or declares too much.
    SourceError
        If there is no such file or it can't be opened.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            _check_digest(file, name)
            with _sound(name), zipfile.ZipFile(file) as archive:
                manifest = _manifest(archive, name)
                _check_sizes(archive, manifest, name, max_bytes)
                tables = {}
                for table, declared in manifest["tables"].items():
                    content = archive.read(f"{table}.parquet")
                    # Whatever was declared.
                    needed = memory_needed(content)
                    if needed > max_bytes:
                        raise ModelFileError.too_large(name, needed, max_bytes)
                    tables[table] = _table(content, declared, name, table)
                return manifest, tables
    except FileNotFoundError:
        raise SourceError(f"no such model file: {name!r}") from None
    except OSError as error:
        raise SourceError.unreadable(name, error.strerror or error) from error


def stated_checksum(path: str | os.PathLike[str]) -> str:
    """The checksum that a model file states at its end; `read_archive` checks it.

    Raises
    ------
    SourceError
        If there is no such file or it can't be read.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            return file.read(_TAIL).decode("ascii", "replace")
    except FileNotFoundError:
        raise SourceError(f"no such model file: {name!r}") from None
    except OSError as error:
        raise SourceError.unreadable(name, error.strerror or error) from error


def _digest(file: IO[bytes], length: int) -> str:
    file.seek(0)
    digest = hashlib.sha256()
    while length > 0:
        block = file.read(min(length, 1 << 20))
        if not block:
            break
        digest.update(block)
        length -= len(block)
    return digest.hexdigest()


def _check_digest(file: IO[bytes], name: str) -> None:
    if file.read(4) != b"PK\x03\x04":
        raise ModelFileError.damaged(name, "it does not begin as one")
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - _TAIL))
    tail = file.read(_TAIL)
    if not tail.startswith(_MARK):
        raise ModelFileError.damaged(name, "its end, which holds the checksum, is missing")
    if _digest(file, length - _TAIL).encode("ascii") != tail[len(_MARK):]:
        raise ModelFileError.damaged(name, "its checksum differs: bytes were changed or lost")
    file.seek(0)


@contextmanager
def _sound(name: str) -> Iterator[None]:
    """Whatever a reader finds wrong in a file with a right checksum is damage all the same."""
    try:
        yield
    except (zipfile.BadZipFile, KeyError, EOFError, RuntimeError, ValueError, OverflowError,
            *ENGINE_ERRORS) as error:
        if isinstance(error, (ModelFileError, ForkError)):
            raise
        raise ModelFileError.damaged(name, first_line(error)) from error


def _manifest(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    entry = archive.getinfo(_MANIFEST)
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > _MANIFEST_LIMIT:
        raise ModelFileError.damaged(name, f"{_MANIFEST} is compressed or too large")
    manifest = json.loads(archive.read(entry).decode("utf-8"), parse_constant=_no_constant)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError.damaged(name, f"{_MANIFEST} is not of format {FORMAT!r}")
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError.damaged(name, f"format version {version!r}")
    if version > VERSION:
        raise ModelFileError.from_the_future(name, version, VERSION)
    return manifest


def _no_constant(constant: str) -> float:
    raise json.JSONDecodeError(f"{constant} is not a number", constant, 0)


def _check_sizes(
    archive: zipfile.ZipFile, manifest: dict[str, Any], name: str, max_bytes: int
) -> None:
    tables = manifest.get("tables")
    if not isinstance(tables, dict):
        raise ModelFileError.damaged(name, "its tables are not declared")
    expected = [_MANIFEST, *(f"{table}.parquet" for table in tables)]
    if sorted(archive.namelist()) != sorted(expected):
        raise ModelFileError.damaged(name, "its members are not those that it declares")
    needed = 0
    for entry in archive.infolist():
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ModelFileError.damaged(name, f"{entry.filename} is compressed")
        needed += entry.file_size
    for table, declared in tables.items():
        sizes = [size for key in ("rows", "bytes") if isinstance(declared, dict)
                 and type(size := declared.get(key)) is int and size >= 0]
        if len(sizes) != 2:
            raise ModelFileError.damaged(name, f"the sizes of table {table!r} are not declared")
        needed += sum(sizes)
    if needed > max_bytes:
        raise ModelFileError.too_large(name, needed, max_bytes)


def _table(content: bytes, declared: dict[str, int], name: str, table: str) -> pl.DataFrame:
    try:
        return decode(content, declared["rows"], declared["bytes"])
    except Malformed as error:
        raise ModelFileError.damaged(name, f"table {table!r} {error}") from error
