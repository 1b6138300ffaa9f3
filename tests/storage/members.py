"""Model files taken apart and put together by hand, with right checksums."""

import hashlib
import io
import json
import zipfile
import zlib

import numpy as np

from textnb.files.blocks import BLOCK_SIZE, DIGESTS, DOCUMENT, array_header, write_blocks


def members_of(content):
    """The members' contents by name, without the checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != DIGESTS}


def document_of(content):
    """What the file says of its model, as JSON."""
    return json.loads(members_of(content)[DOCUMENT])


def arrays_of(content):
    """The arrays by name."""
    with np.load(io.BytesIO(content)) as loaded:
        return {name: loaded[name] for name in document_of(content)["arrays"]}


def built(members):
    """A file of the members, whose checksums are right."""
    buffer = io.BytesIO()
    write_blocks(buffer, [(name, [content]) for name, content in members.items()])
    return buffer.getvalue()


def with_document(content, document):
    """The file with another document, as a string or as bytes."""
    raw = document.encode() if isinstance(document, str) else document
    return built({**members_of(content), DOCUMENT: raw})


def with_value(content, path, value):
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


def with_array(content, name, array):
    """The file with another array of a name, which its document declares; without it if None."""
    members, document = members_of(content), document_of(content)
    members.pop(f"{name}.npy", None)
    document["arrays"].pop(name, None)
    if array is not None:
        kind = array.dtype.str
        members[f"{name}.npy"] = array_header(kind, array.shape) + array.tobytes()
        document["arrays"][name] = {"type": kind, "shape": list(array.shape)}
    return built({**members, DOCUMENT: json.dumps(document).encode()})


def signed(content):
    """The same bytes with the checksums that they ask for, as far as there is a place for them."""
    changed = bytearray(content)
    entry = changed.rfind(DIGESTS.encode()) - 46
    start = changed.rfind(b"PK\x03\x04", 0, max(0, entry))
    content = changed.find(b"\x93NUMPY", max(start, 0))
    if start < 0 or content < 0:
        return bytes(changed)
    at = content + 10 + int.from_bytes(changed[content + 8:content + 10], "little")
    for block in range(0, start, BLOCK_SIZE):
        digest = hashlib.sha256(changed[block:min(start, block + BLOCK_SIZE)]).digest()
        changed[at:at + len(digest)] = digest
        at += len(digest)
    crc = zlib.crc32(changed[content:at]).to_bytes(4, "little")
    changed[start + 14:start + 18] = changed[entry + 16:entry + 20] = crc
    changed[-64:] = hashlib.sha256(changed[start:-64]).hexdigest().encode()
    return bytes(changed)


def mutated(content, rng):
    """The bytes with some changed, lost or added: at the end, where footers are, half of them."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        start = 0 if rng.random() < 0.5 else max(0, len(changed) - 800)
        at, kind = rng.randrange(start, len(changed)), rng.random()
        if kind < 0.4:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind < 0.7:
            changed[at] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        elif kind < 0.8:
            number = rng.choice([-1, 2**31 - 1, 0, 1])
            changed[at:at + 4] = number.to_bytes(4, "little", signed=True)
        elif kind < 0.9:
            del changed[at:at + rng.randrange(1, 9)]
        else:
            changed[at:at] = rng.randbytes(rng.randrange(1, 9))
    return bytes(changed)
