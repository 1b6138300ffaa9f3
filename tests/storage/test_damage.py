"""A file that lost or changed a byte is refused, with one of two errors, whatever the byte."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textnb
from tests.storage.archives import TAIL, member_bounds, signed
from tests.tiers import examples
from textnb import ModelFileError, SourceError

REFUSED = (ModelFileError, SourceError)
Load = Callable[..., textnb.TextClassifier]


def outcome(load: Load, content: bytes) -> BaseException | None:
    """What loading raises: None if a model came out."""
    try:
        load(content)
    except BaseException as error:
        return error
    return None


def test_the_file_itself_is_sound(load: Load, sound: bytes) -> None:
    assert load(sound).classes_.tolist() == ["ham", "spam"]
    assert signed(sound) == sound


# Lost bytes


def test_a_truncated_file_is_refused(load: Load, sound: bytes) -> None:
    bounds = member_bounds(sound)
    assert list(bounds) == ["model.json", "terms.parquet", "counts.parquet"]
    directory = sound.index(b"PK\x01\x02")
    end = sound.index(b"PK\x05\x06")
    rng = random.Random(1)
    lengths = {
        0, 1, 3, 4, 5, TAIL - 1, TAIL, TAIL + 1, directory, end, end + 22, len(sound) - 64,
        *range(0, len(sound), 512), *(place for pair in bounds.values() for place in pair),
        *(rng.randrange(len(sound)) for _ in range(200)), *range(len(sound) - 100, len(sound))}
    kept = {n: outcome(load, sound[:n]) for n in sorted(lengths)}
    assert {n: error for n, error in kept.items() if not isinstance(error, REFUSED)} == {}
    assert all("is not a sound textnb model" in str(error) for error in kept.values())


def test_a_beginning_with_the_whole_ending_is_refused(load: Load, sound: bytes) -> None:
    for at in range(0, len(sound) - TAIL, 97):
        cut = sound[:at] + sound[at + 1:]
        assert isinstance(outcome(load, cut), ModelFileError), at


def test_a_truncated_file_with_a_right_checksum_is_refused(load: Load, sound: bytes) -> None:
    end = sound.index(b"PK\x05\x06")
    for at in [*range(4, end, 61), *range(end - 40, end)]:
        error = outcome(load, signed(sound[:at] + sound[-TAIL:]))
        assert isinstance(error, REFUSED), (at, error)


# Changed bytes


@pytest.mark.parametrize("mask", [0x20, 0xFF])
def test_every_changed_byte_is_seen(sound: bytes, mask: int, tmp_path: Path) -> None:
    path = tmp_path / "changed.textnb"
    path.write_bytes(sound)
    with open(path, "r+b", buffering=0) as file:
        for place, byte in enumerate(sound):
            file.seek(place)
            file.write(bytes([byte ^ mask]))
            with pytest.raises(REFUSED):
                textnb.load(path)
            file.seek(place)
            file.write(bytes([byte]))
    assert textnb.load(path).classes_.tolist() == ["ham", "spam"]


def test_bytes_before_or_after_are_seen(load: Load, sound: bytes) -> None:
    for extra in (b"\0", b"PK\x03\x04", b"#!/bin/sh\n", sound):
        assert isinstance(outcome(load, extra + sound), ModelFileError)
        assert isinstance(outcome(load, sound + extra), ModelFileError)


@pytest.mark.parametrize("seed", range(4))
def test_no_changed_byte_under_a_right_checksum_breaks_the_reader(
    load: Load, sound: bytes, seed: int
) -> None:
    # A byte that says nothing, such as a time, may change: then the model is a whole one. What
    # may never come out is an error of another kind.
    rng = random.Random(seed)
    body = len(sound) - TAIL
    for place in rng.sample(range(body), examples(400)):
        changed = bytearray(sound)
        changed[place] = rng.randrange(256)
        error = outcome(load, signed(bytes(changed)))
        assert error is None or isinstance(error, REFUSED), (place, changed[place], error)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_no_changed_header_under_a_right_checksum_breaks_the_reader(
    load: Load, sound: bytes, mask: int
) -> None:
    headers = [*range(30), *range(sound.index(b"PK\x01\x02"), len(sound) - TAIL)]
    for start, _ in member_bounds(sound).values():
        headers += range(start, start + 30)
    places = sorted(set(headers))
    for place in places[::max(1, len(places) // examples(len(places)))]:
        changed = bytearray(sound)
        changed[place] ^= mask
        error = outcome(load, signed(bytes(changed)))
        assert error is None or isinstance(error, REFUSED), (place, error)


# Other files


class Trap:
    """Pickled, it makes a folder when it is loaded."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def zip_of_text() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.txt", "hello")
    return buffer.getvalue()


@pytest.mark.parametrize("content", [
    pytest.param(content, id=name) for name, content in {
        "empty": b"", "one-byte": b"P", "magic": b"PK\x03\x04", "text": b"free money\n" * 50,
        "zip": zip_of_text(), "gzip": gzip.compress(b"x" * 100), "nul": bytes(1000),
        "parquet": b"PAR1" + bytes(100) + b"PAR1", "checksum": b"sha256:" + b"0" * 64,
        "pickle": pickle.dumps({"model": [1, 2, 3]}),
        "comment": b"PK\x03\x04sha256:" + b"0" * 64,
        "signed-comment": signed(b"PK\x03\x04sha256:" + b"0" * 64)}.items()])
def test_another_kind_of_file_is_refused(load: Load, content: bytes) -> None:
    with pytest.raises(ModelFileError, match="is not a sound textnb model"):
        load(content)


def test_a_pickle_is_not_run(load: Load, sound: bytes, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    payload = pickle.dumps(Trap(trap))
    for content in (payload, b"PK\x03\x04" + payload + sound[-TAIL:],
                    signed(b"PK\x03\x04" + payload + sound[-TAIL:])):
        with pytest.raises(ModelFileError):
            load(content)
    assert not trap.exists()
    pickle.loads(payload)
    assert trap.exists()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"can't read .*: Is a directory"):
        textnb.load(tmp_path)


def test_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no such model file: '.*absent\.textnb'"):
        textnb.load(tmp_path / "absent.textnb")
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match=r"can't read .*: Not a directory"):
        textnb.load(tmp_path / "file" / "model.textnb")
