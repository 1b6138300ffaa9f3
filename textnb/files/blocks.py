"""A file of arrays and one JSON document, which is read in blocks whose checksums are compared.

    PK..  model.json             a ZIP whose members are stored, not compressed,
    PK..  NAME.npy ...           and whose contents begin at multiples of 64 bytes
    PK..  blocks.npy             the SHA-256 of each 64 KiB of the file before this member
    PK..  central directory, whose comment is "textnb-model 2 sha256:" and 64 hex digits:
          the SHA-256 of all bytes from the beginning of blocks.npy to these digits

The digest in the comment protects the digests of all blocks. A reader of a few bytes reads and
checks only the blocks that hold them. The bytes around the contents (headers and directory) follow
from the names, sizes and CRC-32 of the members. A reader builds these bytes again and compares
them, so it refuses a ZIP whose members overlap, or whose fields are wrong.

This imports neither NumPy nor Polars, so that a filter that judges one message starts quickly.
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

BLOCK_SIZE = 1 << 16
ALIGNMENT = 64
# The names of the JSON document, and of the member that holds the digests of the blocks.
DOCUMENT, DIGESTS = "model.json", "blocks.npy"
FORMAT, VERSION = "textnb-model", 2
# The features that this reader knows. A file lists in "requires" the features that a reader must
# know to understand it; a reader that does not know one of them refuses the file.
FEATURES: frozenset[str] = frozenset({"multilabel"})
_MAX_DOCUMENT_SIZE = 64 << 20
_COMMENT_START = f"{FORMAT} {VERSION} sha256:".encode()
_COMMENT_SIZE = len(_COMMENT_START) + 64
_DIGEST_SIZE = 32
# ZIP has fields of 32 bits for sizes and offsets. A field with this value, the maximum, says that
# the number is in another field, of 64 bits.
_MAX_32_BITS = 0xFFFF_FFFF
_MAX_MEMBERS, _MAX_NAME_LENGTH = 4096, 100
# All members have 1 January 1980, the earliest time of ZIP: with the current time, each run would
# give other bytes.
_TIME, _DATE = 0, 0x21
# The id of the extra field whose zeros move the content to a multiple of 64 bytes; Android's
# zipalign uses the same.
_PADDING_ID = 0xD935
# The records of ZIP: the header of a member, its entry in the central directory, the end of the
# directory with sizes of 32 and of 64 bits, and the locator of the latter.
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_CENTRAL_ENTRY = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR_64 = struct.Struct("<4sIQI")
Content = bytes | bytearray | memoryview


class Member(NamedTuple):
    """A member of the file: the size and CRC-32 of its content; where its header and content start.
    """

    name: str
    size: int
    crc: int
    header_start: int
    start: int

    @property
    def end(self) -> int:
        return self.start + self.size


def array_header(dtype: str, shape: Sequence[int]) -> bytes:
    """The header of a ``.npy`` member, whose length is a multiple of 64 bytes.

    Parameters
    ----------
    dtype : str
        The type of the values, such as ``"<i4"``, ``"<f8"`` or ``"|u1"``.
    shape : sequence of int
    """
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    # 8 bytes for NumPy's mark and version, 2 for the length of the rest; the text, padded with
    # spaces; and a newline.
    length = round_up(10 + len(text) + 1, ALIGNMENT)
    return b"\x93NUMPY\x01\0" + struct.pack("<H", length - 10) + text.ljust(length - 11) + b"\n"


def write_blocks(file: IO[bytes], members: Iterable[tuple[str, Sequence[Content]]]) -> None:
    """Write members and the digests of their blocks.

    Parameters
    ----------
    file : binary file
        Empty, and open for reading too: digests are computed from what was written.
    members : iterable of (name, parts)
        A member's content is its parts, one after the other.
    """
    written_members: list[Member] = []
    for name, parts in members:
        views = [memoryview(part).cast("B") for part in parts if len(part)]
        member = _append(written_members, name, sum(map(len, views)), _crc(views))
        file.write(_local_header(member))
        for view in views:
            file.write(view)
    file.seek(0)
    digests = b"".join(hashlib.sha256(block).digest()
                       for block in iter(lambda: file.read(BLOCK_SIZE), b""))
    content = [array_header("|u1", (len(digests) // _DIGEST_SIZE, _DIGEST_SIZE)), digests]
    last = _append(written_members, DIGESTS, sum(map(len, content)), _crc(content))
    tail = b"".join([_local_header(last), *content, _directory(written_members)])
    file.write(tail)
    file.write(hashlib.sha256(tail).hexdigest().encode())


class Blocks:
    """A file that `write_blocks` wrote, read in blocks that are checked one by one.

    Files are read with `os.pread` and not mapped into memory: if a mapped file is truncated, the
    process crashes.

    Parameters
    ----------
    descriptor : int
        Open for reading; the caller closes it.
    name : str
        Name of the file, for errors.

    Raises
    ------
    ModelFileError
        If it is not such a file, or has a later version. Reading a block also raises it, if its
        bytes have changed.
    SourceError
        If the operating system can't read it.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor, self._name = descriptor, name
        with reading_errors(name):
            self._open(os.fstat(descriptor).st_size)

    def read(self, start: int, end: int) -> memoryview:
        """Read the bytes ``start`` to ``end - 1``, and check the digests of their blocks."""
        if not 0 <= start <= end <= self.length:
            raise self.damaged("it names bytes that it does not have")
        first_block = start // BLOCK_SIZE
        view_start, view_end = first_block * BLOCK_SIZE, min(round_up(end, BLOCK_SIZE), self.length)
        view = memoryview(self._pread(view_start, view_end))
        for block, offset in enumerate(range(0, len(view), BLOCK_SIZE), start=first_block):
            if (hashlib.sha256(view[offset:offset + BLOCK_SIZE]).digest()
                    != self._digests[block * _DIGEST_SIZE:(block + 1) * _DIGEST_SIZE]):
                raise self.damaged(f"the checksum of block {block} differs: bytes were changed or "
                                   "lost")
        return view[start - view_start:end - view_start]

    def document(self) -> dict[str, Any]:
        """Read the JSON document, and check that this reader knows the features that it requires.

        Raises
        ------
        ModelFileError
            If the document is missing, damaged, or from a later version.
        ValueError, KeyError, ...
            If it is malformed. `reading_errors` makes a ModelFileError of such an error.
        """
        member = self.members.get(DOCUMENT)
        if member is None or member.size > _MAX_DOCUMENT_SIZE:
            raise self.damaged(f"it has no {DOCUMENT}, or one that is too large")
        content = bytes(self.read(member.start, member.end))
        if zlib.crc32(content) != member.crc:
            raise self.damaged(f"the CRC-32 of {DOCUMENT} differs")
        values = read_document(content, self._name, DOCUMENT, FORMAT, VERSION, oldest=VERSION)
        if b"\\ud" in content.lower():
            # Raises an error for a surrogate without its pair, which could not be written again.
            json.dumps(values, ensure_ascii=False).encode("utf-8")
        required = values["requires"]
        require(isinstance(required, list) and all(isinstance(name, str) for name in required),
                "what it requires is not a list of names")
        if unknown := sorted(set(required) - FEATURES):
            raise ModelFileError.unknown_features(
                self._name, [f"the feature {name!r}" for name in unknown])
        return values

    def check_headers(self) -> None:
        """Check the headers of the members: other programs read them."""
        for member in self.members.values():
            # The header of the last member, the digests, was checked when the file was opened.
            if member.header_start < self.length and (
                    self.read(member.header_start, member.start) != _local_header(member)):
                raise self.damaged(f"the header of {member.name} is not the one that textnb writes")

    def damaged(self, problem: str) -> ModelFileError:
        return ModelFileError.damaged(self._name, problem)

    def _open(self, length: int) -> None:
        end_start = length - _END.size - _COMMENT_SIZE
        if end_start <= 0:
            # A folder may have any size, and this raises its error.
            _read_at(self._descriptor, 1, 0)
        require(end_start > 0, "it is too short")
        end = self._pread(end_start, length)
        _check_version(end[_END.size:], self._name)
        # The SHA-256 in the comment, in hexadecimal.
        self.checksum = end[-64:].decode("ascii")
        members = _parse_directory(self._read_directory(end[:_END.size], end_start))
        last = members[-1]
        require(last.name == DIGESTS, f"its last member is not {DIGESTS}")
        n_blocks = -(-last.header_start // BLOCK_SIZE)
        header = array_header("|u1", (n_blocks, _DIGEST_SIZE))
        tail = self._pread(last.header_start, length - 64)
        require(hashlib.sha256(tail).hexdigest() == self.checksum,
                "its checksum differs: bytes were changed or lost")
        content = tail[last.start - last.header_start:last.end - last.header_start]
        self._digests = content[len(header):]
        require(len(self._digests) == n_blocks * _DIGEST_SIZE,
                "it does not have one checksum per block")
        require(tail == _local_header(last) + header + self._digests + _directory(members)
                and zlib.crc32(content) == last.crc, "its directory is not the one of its members")
        # The number of bytes that the blocks hold: all bytes before the member of digests.
        self.length = last.header_start
        self.members = {member.name: member for member in members}

    def _read_directory(self, end: bytes, end_start: int) -> bytes:
        """Read the entries of the central directory, which the end record locates."""
        *_, count, size, start, _ = _END.unpack(end)
        if _MAX_32_BITS in (size, start):
            end_start -= _END_64.size + _LOCATOR_64.size
            *_, count, size, start = _END_64.unpack(
                self._pread(end_start, end_start + _END_64.size))
        # An extra field of three numbers of 64 bits takes 28 bytes.
        max_size = count * (_CENTRAL_ENTRY.size + _MAX_NAME_LENGTH + 28)
        require(start + size == end_start and 0 < count <= _MAX_MEMBERS and size <= max_size,
                "its directory is not where it says")
        return self._pread(start, end_start)

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
    if comment.startswith(_COMMENT_START):
        return
    # The number of a later version may have more digits. These bytes, as many as this version's
    # comment has, then lack the first letters of the format's name.
    match comment[:-64].split(b" "):
        case [_, version, b"sha256:"] if version.isdigit() and int(version) > VERSION:
            raise ModelFileError.from_the_future(name, int(version), VERSION)
    raise ModelFileError.damaged(name, "its end, which holds the checksum, is missing")


def _read_at(descriptor: int, length: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    # Windows has no pread; there, only one thread uses a descriptor.
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, length)


def _parse_directory(directory: bytes) -> list[Member]:
    """The members that a directory names, with the offsets at which `write_blocks` writes them.

    Only names, sizes and CRC-32 are read. The caller checks all other fields: it builds the
    directory again from the members, and compares the bytes.
    """
    members: list[Member] = []
    offset = 0
    while offset < len(directory):
        fields = _CENTRAL_ENTRY.unpack_from(directory, offset)
        crc, size, name_length, extra_length = fields[7], *fields[9:12]
        offset += _CENTRAL_ENTRY.size + name_length
        if size == _MAX_32_BITS:
            # The extra field has an id, its length, and then the size.
            size = int.from_bytes(directory[offset + 4:offset + 12], "little")
        _append(members, directory[offset - name_length:offset].decode("ascii"), size, crc)
        offset += extra_length
    require(len({member.name for member in members}) == len(members),
            "two of its members have one name")
    return members


def _append(members: list[Member], name: str, size: int, crc: int) -> Member:
    """Append a member whose content begins at a multiple of 64 bytes."""
    header_start = members[-1].end if members else 0
    # The fields, the name, sizes of 64 bits if needed, and the id and length of the padding.
    header_size = _LOCAL_HEADER.size + len(name) + (20 if size >= _MAX_32_BITS else 0) + 4
    start = round_up(header_start + header_size, ALIGNMENT)
    member = Member(name, size, crc, header_start, start)
    members.append(member)
    return member


def round_up(number: int, step: int) -> int:
    """The smallest multiple of ``step`` that is not below the number."""
    return -(-number // step) * step


def _crc(views: Iterable[Content]) -> int:
    crc = 0
    for view in views:
        crc = zlib.crc32(view, crc)
    return crc


def _local_header(member: Member) -> bytes:
    needs_64_bits, size = member.size >= _MAX_32_BITS, min(member.size, _MAX_32_BITS)
    # The packed and the unpacked size are equal, as nothing is compressed. Their extra field has
    # the id 1 and 16 bytes.
    extra = struct.pack("<2H2Q", 1, 16, member.size, member.size) if needs_64_bits else b""
    header_size = _LOCAL_HEADER.size + len(member.name) + len(extra) + 4
    padding = member.start - member.header_start - header_size
    extra += struct.pack("<2H", _PADDING_ID, padding) + bytes(padding)
    # Version 4.5 of ZIP has fields of 64 bits; version 2.0 is enough for all others.
    return _LOCAL_HEADER.pack(
        b"PK\x03\x04", 45 if needs_64_bits else 20, 0, 0, _TIME, _DATE, member.crc, size, size,
        len(member.name), len(extra)) + member.name.encode() + extra


def _directory(members: Sequence[Member]) -> bytes:
    """The central directory and its end record, up to the digits of the SHA-256."""
    entries = b"".join(_central_entries(members))
    start, count, end_64 = members[-1].end, len(members), b""
    if start >= _MAX_32_BITS:
        # The record holds its own length, without its first 12 bytes.
        end_64 = _END_64.pack(b"PK\x06\x06", _END_64.size - 12, 45, 45, 0, 0, count, count,
                              len(entries), start)
        end_64 += _LOCATOR_64.pack(b"PK\x06\x07", 0, start + len(entries), 1)
    return entries + end_64 + _END.pack(
        b"PK\x05\x06", 0, 0, count, count, len(entries), min(start, _MAX_32_BITS),
        _COMMENT_SIZE) + _COMMENT_START


def _central_entries(members: Iterable[Member]) -> Iterator[bytes]:
    for member in members:
        size = min(member.size, _MAX_32_BITS)
        header_start = min(member.header_start, _MAX_32_BITS)
        large = [value for value in (member.size, member.size, member.header_start)
                 if value >= _MAX_32_BITS]
        extra = struct.pack(f"<2H{len(large)}Q", 1, 8 * len(large), *large) if large else b""
        version = 45 if large else 20
        yield _CENTRAL_ENTRY.pack(
            b"PK\x01\x02", version, version, 0, 0, _TIME, _DATE, member.crc, size, size,
            len(member.name), len(extra), 0, 0, 0, 0, header_start) + member.name.encode() + extra
