"""Other files than models are refused. `tests/files/test_blocks.py` has lost and changed bytes."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textnb
from tests.storage.members import built, members_of
from textnb import ModelFileError, SourceError

Load = Callable[..., textnb.TextClassifier]


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
        "comment": b"PK\x03\x04textnb-model 2 sha256:" + b"0" * 64}.items()])
def test_another_kind_of_file_is_refused(load: Load, content: bytes) -> None:
    with pytest.raises(ModelFileError, match="is not a sound textnb model"):
        load(content)


def test_a_pickle_is_not_run(load: Load, sound: bytes, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    payload = pickle.dumps(Trap(trap))
    members = members_of(sound)
    for content in (payload, b"PK\x03\x04" + payload + sound[-86:],
                    built({**members, "model.pkl": payload}),
                    *(built({**members, name: payload}) for name in members)):
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
