"""Model files taken apart and put together by hand, with a right checksum."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Iterable
from typing import Any

import polars as pl

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


def taken_apart(content: bytes) -> dict[str, bytes]:
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


