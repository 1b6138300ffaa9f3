"""A file of arrays and one JSON document that is read in checked blocks, by the standard library.

    PK..  model.json             a ZIP whose members are stored, not compressed,
    PK..  NAME.npy ...           and whose contents begin at multiples of 64 bytes
    PK..  blocks.npy             the SHA-256 of each 64 KiB of the file before this member
    PK..  central directory, whose comment is "textnb-model 2 sha256:" and 64 hex digits:
          the SHA-256 of all bytes from the beginning of blocks.npy to these digits

So one digest protects all digests, and a reader of a few bytes checks the blocks that hold them.
The bytes around the contents (headers, directory) follow from the names, sizes and CRC-32 of the
members: a reader builds them again and compares. So it refuses a ZIP whose members overlap, or
whose fields are wrong.

This imports neither NumPy nor Polars: a filter that judges one message starts with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

from textnb.errors import ModelFileError
from textnb.files.require import read_document, reading_errors, require

BLOCK = 1 << 16
ALIGNMENT = 64
DOCUMENT, DIGESTS = "model.json", "blocks.npy"
FORMAT, VERSION = "textnb-model", 2
# What a file may require of a reader, in its list "requires". A reader that does not know one of
# these would misunderstand the file, so it refuses it.
FEATURES: frozenset[str] = frozenset({"multilabel"})
_DOCUMENT_LIMIT = 64 << 20
_MARK = f"{FORMAT} {VERSION} sha256:".encode()
_COMMENT_SIZE = len(_MARK) + 64
_DIGEST_SIZE = 32
# A ZIP's fields for sizes and offsets have 32 bits. This value says that another field has 64 bits.
_WIDE = 0xFFFF_FFFF
_MAX_MEMBERS, _MAX_NAME = 4096, 100
# 1 January 1980, the earliest that ZIP can name: the same content gives the same bytes.
_TIME, _DATE = 0, 0x21
# The id of the extra field whose zeros move the content to a multiple of 64 bytes.
_ALIGNING = 0xD935
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_WIDE_END = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
Content = bytes | bytearray | memoryview


class Member(NamedTuple):
    """A member of the file: where its header begins, and its content."""

    name: str
    size: int
    crc: int
    header: int
    start: int

    @property
    def end(self) -> int:
        return self.start + self.size


def array_header(kind: str, shape: Sequence[int]) -> bytes:
    """The header of a ``.npy`` member: a multiple of 64 bytes.

    Parameters
    ----------
    kind : str
        Such as ``"<i4"``, ``"<f8"`` or ``"|u1"``.
    shape : sequence of int
    """
    sizes = f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"
    description = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {sizes}, }}".encode()
    length = -(-(10 + len(description) + 1) // ALIGNMENT) * ALIGNMENT
    return b"\x93NUMPY\x01\0" + struct.pack("<H", length - 10) + description.ljust(
        length - 11) + b"\n"


def write_blocks(file: IO[bytes], members: Iterable[tuple[str, Sequence[Content]]]) -> None:
    """Write members and the digests of their blocks.

    Parameters
    ----------
    file : binary file
        Empty, and open for reading too: the digests are those of what was written.
    members : iterable of (name, parts)
        A member's content is its parts, one after the other.
    """
    stored: list[Member] = []
    for name, parts in members:
        views = [memoryview(part).cast("B") for part in parts if len(part)]
        member = _append(stored, name, sum(map(len, views)), _crc(views))
        file.write(_local_header(member))
        for view in views:
            file.write(view)
    file.seek(0)
    digests = b"".join(hashlib.sha256(block).digest()
                       for block in iter(lambda: file.read(BLOCK), b""))
    content = [array_header("|u1", (len(digests) // _DIGEST_SIZE, _DIGEST_SIZE)), digests]
    last = _append(stored, DIGESTS, sum(map(len, content)), _crc(content))
    tail = b"".join([_local_header(last), *content, _directory(stored)])
    file.write(tail)
    file.write(hashlib.sha256(tail).hexdigest().encode())


class Blocks:
    """A file that `write_blocks` wrote, read in blocks that are checked one by one.

    Files are read with `os.pread`, never mapped: truncating a mapped file ends the process.

    Parameters
    ----------
    descriptor : int
        Open for reading; the caller closes it.
    name : str
        Of the file, for errors.

    Raises
    ------
    ModelFileError
        If it is not such a file, or has a later version. When a block is read, also if its bytes
        have changed.
    SourceError
        If the operating system can't read it.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor, self._name = descriptor, name
        with reading_errors(name):
            self._open(os.fstat(descriptor).st_size)

    def read(self, start: int, end: int) -> memoryview:
        """Read the bytes from one place to another, and check the digests of their blocks."""
        if not 0 <= start <= end <= self.length:
            raise self.damaged("it names bytes that it does not have")
        first, last = start // BLOCK, -(-end // BLOCK)
        content = self._pread(first * BLOCK, min(last * BLOCK, self.length))
        view = memoryview(content)
        for block in range(first, last):
            at = (block - first) * BLOCK
            if (hashlib.sha256(view[at:at + BLOCK]).digest()
                    != self._digests[block * _DIGEST_SIZE:(block + 1) * _DIGEST_SIZE]):
                raise self.damaged(f"the checksum of block {block} differs: bytes were changed or "
                                   "lost")
        return view[start - first * BLOCK:end - first * BLOCK]

    def document(self) -> dict[str, Any]:
        """Read the JSON document, and check that this reader knows all that it requires.

        Raises
        ------
        ModelFileError
            If the document is missing, damaged, or from a later version.
        ValueError, KeyError, ...
            If it is malformed: the caller makes a ModelFileError of these (`reading_errors`).
        """
        member = self.members.get(DOCUMENT)
        if member is None or member.size > _DOCUMENT_LIMIT:
            raise self.damaged(f"it has no {DOCUMENT}, or one that is too large")
        content = bytes(self.read(member.start, member.end))
        if zlib.crc32(content) != member.crc:
            raise self.damaged(f"the CRC-32 of {DOCUMENT} differs")
        values = read_document(content, self._name, DOCUMENT, FORMAT, VERSION, VERSION)
        if b"\\ud" in content.lower():
            # Half of a pair of surrogates is not a character, and could not be written again.
            json.dumps(values, ensure_ascii=False).encode("utf-8")
        required = values["requires"]
        require(isinstance(required, list) and all(isinstance(name, str) for name in required),
                "what it requires is not a list of names")
        if unknown := sorted(set(required) - FEATURES):
            raise ModelFileError.unknown_features(
                self._name, [f"the feature {name!r}" for name in unknown])
        return values

    def check_headers(self) -> None:
        """Check the bytes between the contents, which other programs read."""
        for member in self.members.values():
            if member.header < self.length and (
                    self.read(member.header, member.start) != _local_header(member)):
                raise self.damaged(f"the header of {member.name} is not the one that textnb writes")

    def damaged(self, problem: str) -> ModelFileError:
        return ModelFileError.damaged(self._name, problem)

    def _open(self, length: int) -> None:
        at = length - _END.size - _COMMENT_SIZE
        require(at > 0, "it is too short")
        end = self._pread(at, length)
        _check_version(end[_END.size:], self._name)
        # The digest of the file, in hexadecimal.
        self.checksum = end[-64:].decode("ascii")
        members = _members_of(self._read_directory(end[:_END.size], at))
        last = members[-1]
        require(last.name == DIGESTS, f"its last member is not {DIGESTS}")
        header = array_header("|u1", (-(-last.header // BLOCK), _DIGEST_SIZE))
        tail = self._pread(last.header, length - 64)
        require(hashlib.sha256(tail).hexdigest() == self.checksum,
                "its checksum differs: bytes were changed or lost")
        content = tail[last.start - last.header:last.end - last.header]
        self._digests = content[len(header):]
        require(len(self._digests) == -(-last.header // BLOCK) * _DIGEST_SIZE,
                "it does not have one checksum per block")
        require(tail == _local_header(last) + header + self._digests + _directory(members)
                and zlib.crc32(content) == last.crc, "its directory is not the one of its members")
        # Length of the blocks: of all bytes before the digests.
        self.length = last.header
        self.members = {member.name: member for member in members}

    def _read_directory(self, end: bytes, at: int) -> bytes:
        """Read the entries of the central directory; the end record has their offset."""
        *_, count, size, start, _ = _END.unpack(end)
        if _WIDE in (size, start):
            at -= _WIDE_END.size + _LOCATOR.size
            *_, count, size, start = _WIDE_END.unpack(self._pread(at, at + _WIDE_END.size))
        require(start + size == at and 0 < count <= _MAX_MEMBERS and size <= count * (
            _CENTRAL.size + _MAX_NAME + 28), "its directory is not where it says")
        return self._pread(start, at)

    def _pread(self, start: int, end: int) -> bytes:
        parts = []
        with reading_errors(self._name):
            while start < end:
                part = _read_at(self._descriptor, end - start, start)
                require(len(part) > 0, "it ends before its contents do")
                parts.append(part)
                start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _check_version(comment: bytes, name: str) -> None:
    if comment.startswith(_MARK):
        return
    # A later version may have more digits: its comment begins before these bytes.
    match comment[:-64].split(b" "):
        case [_, version, b"sha256:"] if version.isdigit() and int(version) > VERSION:
            raise ModelFileError.from_the_future(name, int(version), VERSION)
    raise ModelFileError.damaged(name, "its end, which holds the checksum, is missing")


def _read_at(descriptor: int, length: int, at: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, at)
    # Windows has no pread; there, only one thread uses a descriptor.
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.read(descriptor, length)


def _members_of(directory: bytes) -> list[Member]:
    """The members that a directory names, at the places where a writer puts them.

    Other fields are not read: the reader builds the directory of these members and compares it.
    """
    members: list[Member] = []
    at = 0
    while at < len(directory):
        fields = _CENTRAL.unpack_from(directory, at)
        crc, size, name_length, extra = fields[7], *fields[9:12]
        at += _CENTRAL.size + name_length
        if size == _WIDE:
            size = int.from_bytes(directory[at + 4:at + 12], "little")
        _append(members, directory[at - name_length:at].decode("ascii"), size, crc)
        at += extra
    require(len({member.name for member in members}) == len(members),
            "two of its members have one name")
    return members


def _append(members: list[Member], name: str, size: int, crc: int) -> Member:
    """Append a member whose content begins at a multiple of 64 bytes."""
    header = members[-1].end if members else 0
    # Bytes of the header: its fields, the name, sizes of 64 bits, and the begin of the zeros.
    length = _LOCAL.size + len(name) + (20 if size >= _WIDE else 0) + 4
    start = -(-(header + length) // ALIGNMENT) * ALIGNMENT
    member = Member(name, size, crc, header, start)
    members.append(member)
    return member


def _crc(views: Iterable[Content]) -> int:
    crc = 0
    for view in views:
        crc = zlib.crc32(view, crc)
    return crc


def _local_header(member: Member) -> bytes:
    wide, size = member.size >= _WIDE, min(member.size, _WIDE)
    extra = struct.pack("<2H2Q", 1, 16, member.size, member.size) if wide else b""
    padding = member.start - member.header - _LOCAL.size - len(member.name) - len(extra) - 4
    extra += struct.pack("<2H", _ALIGNING, padding) + bytes(padding)
    return _LOCAL.pack(b"PK\x03\x04", 45 if wide else 20, 0, 0, _TIME, _DATE, member.crc, size,
                       size, len(member.name), len(extra)) + member.name.encode() + extra


def _directory(members: Sequence[Member]) -> bytes:
    """The central directory and its end, up to the digits of the digest."""
    entries = b"".join(_central_entries(members))
    start = members[-1].end
    count = len(members)
    wide_end = b""
    if start >= _WIDE:
        wide_end = _WIDE_END.pack(b"PK\x06\x06", _WIDE_END.size - 12, 45, 45, 0, 0, count, count,
                                  len(entries), start)
        wide_end += _LOCATOR.pack(b"PK\x06\x07", 0, start + len(entries), 1)
    return entries + wide_end + _END.pack(
        b"PK\x05\x06", 0, 0, count, count, len(entries), min(start, _WIDE),
        _COMMENT_SIZE) + _MARK


def _central_entries(members: Iterable[Member]) -> Iterator[bytes]:
    for member in members:
        size = min(member.size, _WIDE)
        header = min(member.header, _WIDE)
        # The size stands there twice: packed and unpacked.
        wide = [value for value in (member.size, member.size, member.header) if value >= _WIDE]
        extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
        version = 45 if wide else 20
        yield _CENTRAL.pack(
            b"PK\x01\x02", version, version, 0, 0, _TIME, _DATE, member.crc, size, size,
            len(member.name), len(extra), 0, 0, 0, 0, header) + member.name.encode() + extra
