"""What filters and lists have written is left out of the messages that filters are compared on."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from benchmarks.filters import cleaned, messages


@pytest.mark.parametrize(("raw", "kept"), [
    (b"X-Spam-Status: Yes,\n\tscore=9\nSubject: [SPAM] a\nList-Id: x\n\nX-Spam: b\n\nList-Id: c",
     b"Subject: a\n\nX-Spam: b\n\nList-Id: c"),
    (b"X-Barracuda-Score: 1\r\nTo: a\r\n\r\nb\r\n", b"To: a\n\nb\n"),
    (b"Precedence: list\nX-BeenThere: y\nX-Mailer: z\n", b"X-Mailer: z\n"),
    (b"Subject: a\nX-Spam-Flag: YES", b"Subject: a\n"),
    (b"", b"")])
def test_headers_of_filters_and_lists_are_left_out(raw: bytes, kept: bytes) -> None:
    assert cleaned(raw).rstrip(b"\n") == kept.rstrip(b"\n")


def test_folders_say_the_class(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        for name in ("./spam/1.eml", "easy-ham-1/2", "ham/3.eml", "cmds"):
            entry = tarfile.TarInfo(name)
            entry.size = 1
            archive.addfile(entry, io.BytesIO(name[-1:].encode()))
    assert [label for label, _ in messages(tmp_path / "a.tar.gz")] == ["spam", "ham", "ham"]
