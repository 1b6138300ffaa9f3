"""What is no file of text is told, and marks at the start of files are no text."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from textnb import TextClassifier
from textnb.errors import DataError, SourceError
from textnb.frames.scan import scan

MARK = b"\xef\xbb\xbf"
TABLES = {"csv": b"text,label\none,a\n", "tsv": b"text\tlabel\none\ta\n",
          "ndjson": b'{"text":"one","label":"a"}\n', "txt": b"one\n"}


def link(path: Path) -> str:
    path.symlink_to("nowhere")
    return "it is a link that leads nowhere"


def loop(path: Path) -> str:
    path.symlink_to(path.name)
    return "Too many levels of symbolic links"


def pipe(path: Path) -> str:
    os.mkfifo(path)
    return "it is a pipe, not a file"


def socket_file(path: Path) -> str:
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)
    return "it is a socket, not a file"


Make = Callable[[Path], str]


@pytest.mark.parametrize("make", [link, loop, pipe, socket_file])
class TestNoFile:
    @pytest.mark.parametrize("pattern", ["", "*.csv"])
    def test_among_files_of_rows(self, tmp_path: Path, make: Make, pattern: str) -> None:
        (tmp_path / "a.csv").write_bytes(TABLES["csv"])
        bad = tmp_path / "b.csv"
        reason = make(bad)
        source = str(tmp_path / pattern) if pattern else tmp_path
        with pytest.raises(SourceError) as error:
            scan(source)
        assert str(error.value) == f"can't read {bad}: {reason}"
        with pytest.warns(UserWarning, match="1 of 2 files could not be read") as said:
            assert scan(source, on_error="skip").collect().rows() == [("one", "a")]
        assert reason in str(said[0].message)

    def test_of_any_name_in_a_folder(self, tmp_path: Path, make: Make) -> None:
        (tmp_path / "a.parquet").write_bytes(b"")
        pl.DataFrame({"text": ["one"]}).write_parquet(tmp_path / "a.parquet")
        reason = make(tmp_path / "b")
        with pytest.raises(SourceError, match=reason):
            scan(tmp_path)
        make(tmp_path / ".hidden")
        (tmp_path / "b").unlink()
        assert scan(tmp_path).collect().height == 1

    @pytest.mark.parametrize("name", ["x/b", "x/deep/b", "b"])
    def test_in_a_folder_per_class(self, tmp_path: Path, make: Make, name: str) -> None:
        for label in ("x", "y"):
            (tmp_path / label / "deep").mkdir(parents=True)
            (tmp_path / label / "a").write_text("one")
        bad = tmp_path / name
        reason = make(bad)
        for columns in (["label", "text"], ["label"]):
            with pytest.raises(SourceError) as error:
                scan(tmp_path).select(columns).collect()
            assert str(error.value) == f"can't read {bad}: {reason}"
        with pytest.warns(UserWarning, match="1 of 3 files could not be read"):
            assert scan(tmp_path, on_error="skip").collect()["label"].to_list() == ["x", "y"]


def test_a_link_to_a_folder_in_a_class(tmp_path: Path) -> None:
    for name in ("root/x", "root/y", "other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a").write_text("one")
    (tmp_path / "root/x/sub").symlink_to(tmp_path / "other")
    with pytest.raises(SourceError, match="sub: it is a link to a folder, which is not followed"):
        scan(tmp_path / "root").collect()
    (tmp_path / "root/x/sub").unlink()
    (tmp_path / "root/z").symlink_to(tmp_path / "other")
    assert scan(tmp_path / "root").collect()["label"].to_list() == ["x", "y", "z"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_is_closed(tmp_path: Path) -> None:
    for name in ("x", "y", "x/sub"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a").write_text("one")
    (tmp_path / "x/sub").chmod(0)
    with pytest.raises(SourceError, match="sub: it is a folder that can't be listed"):
        scan(tmp_path).collect()
    (tmp_path / "x/sub").chmod(0o700)


class TestNames:
    def test_a_file(self, tmp_path: Path) -> None:
        path = os.fsencode(tmp_path) + b"/\xff.csv"
        try:
            Path(os.fsdecode(path)).write_bytes(TABLES["csv"])
        except OSError:
            pytest.skip("this file system has names in UTF-8 alone")
        with pytest.raises(SourceError, match="its name is not UTF-8; rename it"):
            scan(tmp_path)

    def test_a_folder_that_is_a_label(self, tmp_path: Path) -> None:
        for name in (b"x", b"\xff"):
            folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
            try:
                folder.mkdir()
            except OSError:
                pytest.skip("this file system has names in UTF-8 alone")
            (folder / "a").write_text("one")
        with pytest.raises(SourceError, match=r"the folder '\\udcff' of .* can't be a label"):
            scan(tmp_path).collect()

    @pytest.mark.parametrize("labels", [["a", "\ud800"], np.array(["a", "\ud800"]),
                                        np.array(["a", "\ud800"], dtype=object)])
    def test_labels_in_python(self, labels: object) -> None:
        texts = ["one two", "three four"]
        with pytest.raises(DataError, match=r"label '\\ud800' of row 1 .* lone surrogate"):
            TextClassifier().fit(texts, labels)
        with pytest.raises(DataError, match=r"'label' '\\ud800' of row 1 .* lone surrogate"):
            TextClassifier().fit({"text": texts, "label": labels})

    def test_announced_classes_and_texts(self) -> None:
        with pytest.raises(DataError, match=r"class '\\ud800' of row 1 "):
            TextClassifier().partial_fit(["one two"], ["a"], classes=["a", "\ud800"])
        with pytest.raises(DataError, match=r"text '\\ud800' of row 1 "):
            TextClassifier().fit(["one two", "\ud800"], ["a", "b"])

    def test_lists(self) -> None:
        with pytest.raises(DataError, match=r"label '\\ud800' of row 1 "):
            TextClassifier().fit(["one two", "three"], [["a", "b"], ["\ud800"]])
        with pytest.raises(DataError, match=r"token '\\ud800' of row 1 "):
            TextClassifier().fit([["one", "two"], ["\ud800"]], ["a", "b"])


class TestMarks:
    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize("ending", TABLES)
    def test_of_utf_8(self, tmp_path: Path, ending: str, packed: bool) -> None:
        name = f"a.{ending}.gz" if packed else f"a.{ending}"
        content = MARK + TABLES[ending]
        (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
        expected = TABLES[ending]
        (tmp_path / f"plain.{ending}").write_bytes(expected)
        plain = scan(tmp_path / f"plain.{ending}").collect()
        for source in (tmp_path / name, tmp_path / f"a.*{'gz' if packed else ending}"):
            assert scan(source).collect().equals(plain)
            assert scan(source, on_error="skip").collect().equals(plain)
        both = scan(tmp_path).collect()
        assert both.equals(pl.concat([plain, plain]))

    def test_many_columns_keep_their_order(self, tmp_path: Path) -> None:
        names = [f"c{number}" for number in range(40)]
        line = "{" + ", ".join(f'"{name}": 1' for name in names) + "}\n"
        (tmp_path / "a.ndjson").write_bytes(MARK + line.encode())
        assert scan(tmp_path / "a.ndjson").collect().columns == names

    def test_a_file_that_changes_is_read_again(self, tmp_path: Path) -> None:
        path = tmp_path / "[a].ndjson"
        for text in ("one", "other"):
            path.write_bytes(MARK + f'{{"text": "{text}"}}\n'.encode())
            assert scan(path).collect().rows() == [(text,)]

    @pytest.mark.parametrize("ending", TABLES)
    @pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
    def test_of_other_encodings(self, tmp_path: Path, ending: str, encoding: str) -> None:
        path = tmp_path / f"a.{ending}"
        path.write_bytes(TABLES[ending].decode().encode(encoding))
        with pytest.raises(SourceError, match=f"it is {encoding.upper()}, .* iconv -f {encoding}"):
            scan(path, text="text")
        (tmp_path / f"b.{ending}").write_bytes(TABLES[ending])
        with pytest.warns(UserWarning, match=encoding.upper()):
            assert scan(tmp_path, on_error="skip").collect().height == 1

    def test_in_a_folder_per_class(self, tmp_path: Path) -> None:
        for label, content in (("x", MARK + b"one"), ("y", b"two")):
            (tmp_path / label).mkdir()
            (tmp_path / label / "a").write_bytes(content)
        assert scan(tmp_path).collect()["text"].to_list() == ["one", "two"]
        (tmp_path / "y/a").write_bytes("two".encode("utf-16"))
        with pytest.raises(SourceError, match="it is UTF-16"):
            scan(tmp_path).collect()

    @pytest.mark.slow
    def test_standard_input(self) -> None:
        code = ("from textnb.frames.scan import scan;"
                "print(scan('-', text='text').collect().rows())")
        for content, said in ((MARK + TABLES["ndjson"], "[('one', 'a')]"),
                              (TABLES["csv"].decode().encode("utf-16"),
                               "can't read standard input: it is UTF-16")):
            done = subprocess.run([sys.executable, "-W", "error", "-c", code], input=content,
                                  capture_output=True, timeout=60, check=False)
            assert said in (done.stdout + done.stderr).decode()
