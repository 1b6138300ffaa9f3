"""Model files taken apart and put together by hand, with right checksums."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.files.blocks import BLOCK, DIGESTS, DOCUMENT, array_header, write_blocks

MARK = b"textnb-model 2 sha256:"


def members_of(content: bytes) -> dict[str, bytes]:
    """The members' contents, but for the checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != DIGESTS}


def document_of(content: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(members_of(content)[DOCUMENT])
    return document


def arrays_of(content: bytes) -> dict[str, NDArray[Any]]:
    with np.load(io.BytesIO(content)) as loaded:
        return {name: loaded[name] for name in document_of(content)["arrays"]}


def built(members: Mapping[str, bytes]) -> bytes:
    """A file of the members, whose checksums are right."""
    buffer = io.BytesIO()
    write_blocks(buffer, [(name, [content]) for name, content in members.items()])
    return buffer.getvalue()


def with_document(content: bytes, document: str | bytes) -> bytes:
    """The file with another document."""
    raw = document.encode() if isinstance(document, str) else document
    return built({**members_of(content), DOCUMENT: raw})


def with_value(content: bytes, path: tuple[str, ...], value: Any) -> bytes:
    """The file with one value of its document replaced; it is removed if it is `...`."""
    document = document_of(content)
    place = document
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return with_document(content, json.dumps(document))


def with_array(content: bytes, name: str, array: NDArray[Any] | None) -> bytes:
    """The file with another array of a name, which its document declares; without it if None."""
    members, document = members_of(content), document_of(content)
    members.pop(f"{name}.npy", None)
    document["arrays"].pop(name, None)
    if array is not None:
        kind = array.dtype.str
        members[f"{name}.npy"] = array_header(kind, array.shape) + array.tobytes()
        document["arrays"][name] = {"type": kind, "shape": list(array.shape)}
    return built({**members, DOCUMENT: json.dumps(document).encode()})


def signed(content: bytes) -> bytes:
    """The same bytes with the checksums that they ask for, as far as there is a place for them."""
    changed = bytearray(content)
    entry = changed.rfind(DIGESTS.encode()) - 46
    start = changed.rfind(b"PK\x03\x04", 0, max(0, entry))
    content = changed.find(b"\x93NUMPY", max(start, 0))
    if start < 0 or content < 0:
        return bytes(changed)
    at = content + 10 + int.from_bytes(changed[content + 8:content + 10], "little")
    for block in range(0, start, BLOCK):
        digest = hashlib.sha256(changed[block:min(start, block + BLOCK)]).digest()
        changed[at:at + len(digest)] = digest
        at += len(digest)
    crc = zlib.crc32(changed[content:at]).to_bytes(4, "little")
    changed[start + 14:start + 18] = changed[entry + 16:entry + 20] = crc
    changed[-64:] = hashlib.sha256(changed[start:-64]).hexdigest().encode()
    return bytes(changed)
