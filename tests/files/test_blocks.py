"""Files of arrays in checked blocks: what is written, what is read, and what is refused."""

import hashlib
import io
import os
import random
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest

from tests.storage.members import built, members_of, signed
from tests.tiers import examples
from textnb.errors import ModelFileError, SourceError
from textnb.files import blocks
from textnb.files.blocks import BLOCK_SIZE, Blocks, array_header

ARRAY = np.arange(50_000, dtype="<i4")
MEMBERS = {
    "model.json": b"{}",
    "a/small.npy": array_header("<f8", (2, 3)) + np.arange(6, dtype="<f8").tobytes(),
    "a/none.npy": array_header("|u1", (0,)),
    "large.npy": array_header("<i4", ARRAY.shape) + ARRAY.tobytes(),
}


SMALL = built({name: MEMBERS[name] for name in ("model.json", "a/small.npy")})


@pytest.fixture(scope="module")
def content():
    return built(MEMBERS)


@contextmanager
def opened(content, folder):
    path = folder / "file"
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield Blocks(descriptor, "given")
    finally:
        os.close(descriptor)


def read_all(content, folder):
    with opened(content, folder) as found:
        found.check_headers()
        return {name: bytes(found.read(member.start, member.end))
                for name, member in found.members.items() if member.end <= found.length}


def test_what_is_written_is_read_and_aligned(content, tmp_path):
    assert read_all(content, tmp_path) == MEMBERS
    assert built(MEMBERS) == content
    with opened(content, tmp_path) as blocks:
        assert {member.start % 64 for member in blocks.members.values()} == {0}
    assert len(array_header("<i4", ARRAY.shape)) % 64 == 0


def test_others_read_it(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [*MEMBERS, "blocks.npy"]
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    loaded = np.load(io.BytesIO(content))
    assert np.array_equal(loaded["large"], ARRAY)
    assert loaded["a/small"].tolist() == [[0, 1, 2], [3, 4, 5]]
    digests = loaded["blocks"]
    start = content.index(b"PK\x03\x04", content.index(ARRAY[-9:].tobytes()))
    assert [row.tobytes() for row in digests] == [
        hashlib.sha256(content[at:min(start, at + BLOCK_SIZE)]).digest()
        for at in range(0, start, BLOCK_SIZE)]
    assert content.endswith(
        b"textnb-model 2 sha256:" + hashlib.sha256(content[start:-64]).hexdigest().encode())


def test_a_few_bytes_need_their_blocks_alone(content, tmp_path, monkeypatch):
    changed = bytearray(content)
    changed[BLOCK_SIZE + 5] ^= 1
    with opened(bytes(changed), tmp_path) as found:
        assert bytes(found.read(BLOCK_SIZE - 9, BLOCK_SIZE)) == content[BLOCK_SIZE - 9:BLOCK_SIZE]
        third = 2 * BLOCK_SIZE
        assert bytes(found.read(third, third + 9)) == content[third:third + 9]
        for span in ((BLOCK_SIZE, BLOCK_SIZE + 1), (BLOCK_SIZE - 1, third + 1),
                     (0, found.length)):
            with pytest.raises(ModelFileError, match="the checksum of block 1 differs"):
                found.read(*span)
        for span in ((-1, 5), (5, 4), (0, found.length + 1)):
            with pytest.raises(ModelFileError, match="bytes that it does not have"):
                found.read(*span)
        seen = []
        read = os.pread

        def recorded(descriptor, length, at):
            seen.append((length, at))
            return read(descriptor, length, at)

        monkeypatch.setattr(os, "pread", recorded)
        found.read(2 * BLOCK_SIZE + 1, 2 * BLOCK_SIZE + 2)
        assert seen == [(BLOCK_SIZE, 2 * BLOCK_SIZE)]


def test_a_file_that_is_cut_while_it_is_read_is_an_error(content, tmp_path):
    with opened(content, tmp_path) as found:
        os.truncate(tmp_path / "file", BLOCK_SIZE + 10)
        assert len(found.read(0, BLOCK_SIZE)) == BLOCK_SIZE
        with pytest.raises(ModelFileError, match="it ends before its contents do"):
            found.read(BLOCK_SIZE, BLOCK_SIZE + 20)


@pytest.mark.slow
def test_every_lost_byte_and_every_changed_one_is_seen(tmp_path):
    step = max(1, len(SMALL) // examples(len(SMALL)))
    for at in range(0, len(SMALL), step):
        for changed in (SMALL[:at], SMALL[:at] + SMALL[at + 1:],
                        SMALL[:at] + bytes([SMALL[at] ^ 0x20]) + SMALL[at + 1:]):
            with pytest.raises((ModelFileError, SourceError)):
                read_all(changed, tmp_path)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("mask", [1, 0x80, 0xFF])
def test_what_is_around_the_contents_can_not_be_another(mask, tmp_path):
    """Every byte in turn, with checksums made anew: only contents may change."""
    with opened(SMALL, tmp_path) as found:
        contents = {at for member in found.members.values() if member.end <= found.length
                    for at in range(member.start, member.end)}
    for at in range(len(SMALL)):
        changed = bytearray(SMALL)
        changed[at] ^= mask
        again = signed(bytes(changed))
        if again == SMALL:
            continue
        if at in contents:
            assert read_all(again, tmp_path) != read_all(SMALL, tmp_path)
        else:
            with pytest.raises((ModelFileError, SourceError)):
                read_all(again, tmp_path)


def test_zips_that_others_write_are_refused(content, tmp_path):
    parts = {**members_of(content), "blocks.npy": b""}
    for names in (list(parts), list(reversed(parts)), [*parts, "model.json"]):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name in dict.fromkeys(names):
                archive.writestr(name, parts[name])
            archive.comment = b"textnb-model 2 sha256:" + b"0" * 64
        with pytest.raises(ModelFileError):
            read_all(signed(buffer.getvalue()), tmp_path)


def test_members_that_overlap_are_refused(content, tmp_path):
    entry = content.index(b"PK\x01\x02")
    at = content.index(b"large.npy", entry) - 46
    for field, values in ((42, (0, 1, 64, 2**32 - 1)), (24, (0, 1, 10**6, 2**32 - 1)),
                          (20, (0, 2**31)), (30, (4, 2**16 - 1)), (28, (0, 2**16 - 1))):
        for value in values:
            changed = bytearray(content)
            size = 4 if field in (42, 24, 20) else 2
            changed[at + field:at + field + size] = value.to_bytes(size, "little")
            with pytest.raises(ModelFileError):
                read_all(signed(bytes(changed)), tmp_path)


def test_sizes_of_64_bits(tmp_path, monkeypatch):
    """What is beyond 4 GiB has other fields: here all that is beyond 1,000 bytes."""
    monkeypatch.setattr(blocks, "_MAX_32_BITS", 1000)
    content = built(MEMBERS)
    assert read_all(content, tmp_path) == MEMBERS
    # What ZIP takes for wide is 2**32 - 1: with that in the fields, others read it too.
    monkeypatch.setattr(blocks, "_MAX_32_BITS", 0xFFFF_FFFF)
    with pytest.raises(ModelFileError):
        read_all(content, tmp_path)


@pytest.mark.release
@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="it takes a sparse file")
def test_more_than_4_gib(tmp_path):
    """Of zeros, which take no place on the disk."""

    class Sparse:
        """A file that keeps zeros as holes."""

        def __init__(self, path):
            self.file = path.open("w+b")
            self.seek, self.read = self.file.seek, self.file.read

        def write(self, content):
            if len(content) > BLOCK_SIZE and not any(content[:64]):
                return self.file.seek(len(content), os.SEEK_CUR)
            return self.file.write(content)

    count = (4 << 30) + 5
    zeros = memoryview(bytes(1 << 28))
    file = Sparse(tmp_path / "file")
    parts = [zeros] * 16 + [zeros[:5]]
    blocks.write_blocks(file, [  # type: ignore[arg-type] - it writes, and no more is asked for
        ("model.json", [b"{}"]), ("large.npy", [array_header("|u1", (count,)), *parts]),
        ("small.npy", [array_header("|u1", (1,)), b"x"])])
    file.file.close()
    with zipfile.ZipFile(tmp_path / "file") as archive:
        assert archive.read("small.npy")[-1:] == b"x"
        assert archive.getinfo("large.npy").file_size == count + 128
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    found = Blocks(descriptor, "given")
    member = found.members["small.npy"]
    assert bytes(found.read(member.end - 1, member.end)) == b"x"
    os.close(descriptor)


@pytest.mark.parametrize(("mark", "words"), [
    (b"textnb-model 3 sha256:", "has format version 3; this textnb reads up to 2"),
    (b"textnb-model 37 sha256:", "has format version 37"),
    (b"textnb-model 1 sha256:", "is not a sound"), (b"textnb-model x sha256:", "is not a sound"),
    (b"textnb-model 3 md5:", "is not a sound"), (b"sha256:", "is not a sound")])
def test_the_version_is_at_the_end(mark, words, content, tmp_path):
    changed = content.replace(b"textnb-model 2 sha256:", mark)
    with pytest.raises(ModelFileError, match=words), opened(changed, tmp_path):
        pass


def test_random_bytes_are_refused(content, tmp_path):
    rng = random.Random(5)
    for length in (0, 1, 50, 107, 108, 109, 5000):
        for tail in (b"", content[-86:], content[-108:], content[-2000:]):
            with pytest.raises(ModelFileError):
                read_all(rng.randbytes(length) + tail, tmp_path)
