"""Model files of version 1: a ZIP of one JSON document and Parquet tables, and one checksum.

textnb 0.1 wrote them. This version reads them, and no longer writes them.

    PK...  model.json      what the model is; format version; rows and bytes of each table
           NAME.parquet    tables, zstd inside
    PK...  end record, whose comment is "sha256:" + 64 hex digits over all bytes before the comment

Nothing in it is code. Members are stored without ZIP compression, so a size on disk bounds what is
read; sizes in memory are declared, checked against a limit, and compared with each table's footer
before a table is read.
"""

from __future__ import annotations

import os
import zipfile
from typing import IO, Any

import polars as pl

from textnb.errors import ModelFileError, SourceError
from textnb.files.archive import (
    MAX_BYTES,
    check_size,
    checksum,
    read_document,
    read_table,
    reading_errors,
)
from textnb.files.parquet import MalformedTable
from textnb.files.require import require

FORMAT, VERSION = "textnb-model", 1
_MANIFEST = "model.json"
_MANIFEST_LIMIT = 64 << 20
_MARK = b"sha256:"
_TAIL = len(_MARK) + 64


def read_archive(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES
) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    """`textnb.storage.archive.read_archive` for a file of version 1."""
    name = os.fspath(path)
    with reading_errors(name), _open(name) as file:
        _check_digest(file, name)
        with zipfile.ZipFile(file) as archive:
            manifest = _manifest(archive, name)
            _check_sizes(archive, manifest, name, max_bytes)
            tables = {
                table: _table(archive.read(f"{table}.parquet"), declared, name, table, max_bytes)
                for table, declared in manifest["tables"].items()}
        # Later versions alone leave out the weights of 0.
        require("weights" not in tables or "place" not in tables["weights"].columns,
                "weights are not one per class and term")
        return manifest, tables


def stated_checksum(path: str | os.PathLike[str]) -> str:
    """The checksum that a model file states at its end; `read_archive` checks it."""
    name = os.fspath(path)
    with reading_errors(name), _open(name) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        return file.read(_TAIL).decode("ascii", "replace")


def _open(name: str) -> IO[bytes]:
    try:
        return open(name, "rb")
    except FileNotFoundError:
        raise SourceError(f"no such model file: {name!r}") from None


def _check_digest(file: IO[bytes], name: str) -> None:
    if file.read(4) != b"PK\x03\x04":
        raise ModelFileError.damaged(name, "it does not begin as one")
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - _TAIL))
    tail = file.read(_TAIL)
    if not tail.startswith(_MARK):
        raise ModelFileError.damaged(name, "its end, which holds the checksum, is missing")
    if checksum(file, length - _TAIL).encode("ascii") != tail[len(_MARK):]:
        raise ModelFileError.damaged(name, "its checksum differs: bytes were changed or lost")
    file.seek(0)


def _manifest(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    entry = archive.getinfo(_MANIFEST)
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > _MANIFEST_LIMIT:
        raise ModelFileError.damaged(name, f"{_MANIFEST} is compressed or too large")
    return read_document(archive.read(entry), name, _MANIFEST, FORMAT, VERSION)


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
    check_size(name, needed, max_bytes)


def _table(
    content: bytes, declared: dict[str, int], name: str, table: str, max_bytes: int
) -> pl.DataFrame:
    try:
        return read_table(content, name, max_bytes, declared["rows"], declared["bytes"])
    except MalformedTable as error:
        raise ModelFileError.damaged(name, f"table {table!r} {error}") from error
