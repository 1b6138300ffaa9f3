"""Model files of version 1 taken apart and put together by hand, with a right checksum.

A file of version 2 is first written as version 1 wrote it: what is put together is of version 1.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from textnb.storage.archive import read_archive

MARK = b"sha256:"
TAIL = len(MARK) + 64
AMPLE = 100_000


def signed(content: bytes) -> bytes:
    """The same ZIP with the checksum that its bytes ask for."""
    assert content[-TAIL:].startswith(MARK)
    body = content[:-TAIL]
    return body + MARK + hashlib.sha256(body).hexdigest().encode()


def zipped(
    members: Iterable[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED
) -> bytes:
    """A signed ZIP of the members in their order; a name may come twice."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            archive.writestr(info, content, compress_type=compression)
        archive.comment = MARK + b"0" * 64
    return signed(buffer.getvalue())


def as_version_1(content: bytes) -> bytes:
    """A model file as textnb 0.1 wrote it."""
    if content[-TAIL:].startswith(MARK) and b"textnb-model 2 sha256:" not in content[-100:]:
        return content
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.textnb"
        path.write_bytes(content)
        manifest, tables = read_archive(path)
    for name in ("version", "layers", "requires", "arrays"):
        manifest.pop(name, None)
    document = {"format": manifest.pop("format"), "version": 1, **manifest, "tables": {
        name: {"rows": table.height, "bytes": int(table.estimated_size())}
        for name, table in tables.items()}}
    return zipped([
        ("model.json", json.dumps(document, ensure_ascii=False, indent=1).encode()),
        *((f"{name}.parquet", parquet(table)) for name, table in tables.items())])


def taken_apart(content: bytes) -> dict[str, bytes]:
    content = as_version_1(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def manifest_of(content: bytes) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(taken_apart(content)["model.json"])
    return manifest


def with_document(content: bytes, document: str | bytes) -> bytes:
    """The file with another model.json."""
    raw = document.encode() if isinstance(document, str) else document
    return zipped({**taken_apart(content), "model.json": raw}.items())


def with_value(content: bytes, path: tuple[str, ...], value: Any) -> bytes:
    """The file with one value of model.json replaced."""
    manifest = manifest_of(content)
    place = manifest
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return with_document(content, json.dumps(manifest))


def without_value(content: bytes, path: tuple[str, ...]) -> bytes:
    manifest = manifest_of(content)
    place = manifest
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return with_document(content, json.dumps(manifest))


def parquet(table: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def table_of(content: bytes, name: str) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(taken_apart(content)[f"{name}.parquet"]))


def with_table(
    content: bytes, name: str, table: pl.DataFrame | bytes, **declared: int
) -> bytes:
    """The file with another table; model.json declares its rows, and ample bytes or those given."""
    raw = parquet(table) if isinstance(table, pl.DataFrame) else table
    sizes = dict(declared)
    if isinstance(table, pl.DataFrame):
        sizes = {"rows": table.height, "bytes": int(table.estimated_size()) + AMPLE,
                 **declared}
    members = {**taken_apart(content), f"{name}.parquet": raw}
    manifest = json.loads(members["model.json"])
    manifest["tables"][name] = {**manifest["tables"].get(name, {}), **sizes}
    return zipped({**members, "model.json": json.dumps(manifest).encode()}.items())


def patched(content: bytes, offset: int, format: str, value: int) -> bytes:
    """The signed file with a number of a ZIP header replaced."""
    changed = bytearray(content)
    struct.pack_into(format, changed, offset, value)
    return signed(bytes(changed))


def central_entry(content: bytes, member: str) -> int:
    """Where the central directory's entry of a member begins."""
    name = member.encode()
    at = content.index(b"PK\x01\x02")
    while content[at + 46:at + 46 + len(name)] != name:
        at = content.index(b"PK\x01\x02", at + 1)
    return at


def member_bounds(content: bytes) -> dict[str, tuple[int, int]]:
    """Where each member's header begins and its content ends."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {
            info.filename: (info.header_offset, info.header_offset + 30 + len(info.filename)
                            + info.compress_size)
            for info in archive.infolist()}


