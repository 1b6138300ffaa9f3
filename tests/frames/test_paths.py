"""Paths that are no files are named with what they are; marks at the start of files are no text."""

import contextlib
import errno
import glob
import gzip
import os
import re
import socket
from functools import partial

import polars as pl
import pytest

from tests.frames.writing import write_files
from textnb.errors import SourceError
from textnb.frames.mail import scan_mail
from textnb.frames.paths import expand_glob
from textnb.frames.scan import scan

MARK = b"\xef\xbb\xbf"
TABLES = {"csv": b"text,label\none,a\n", "tsv": b"text\tlabel\none\ta\n",
          "ndjson": b'{"text":"one","label":"a"}\n', "txt": b"one\n"}


def make_socket(path):
    # The path of a socket must be short.
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


@pytest.mark.parametrize(("make", "reason"), [
    (lambda path: path.symlink_to("nowhere"), "it is a link that leads nowhere"),
    (lambda path: path.symlink_to(path.name), "Too many levels of symbolic links"),
    (os.mkfifo, "it is a pipe, not a file"), (make_socket, "it is a socket, not a file")],
    ids=["link", "loop", "pipe", "socket"])
class TestNoFile:
    @pytest.mark.parametrize("pattern", ["", "*.csv"])
    def test_among_files_of_rows(self, tmp_path, make, reason, pattern):
        (tmp_path / "a.csv").write_bytes(TABLES["csv"])
        make(tmp_path / "b.csv")
        source = str(tmp_path / pattern) if pattern else tmp_path
        with pytest.raises(SourceError) as error:
            scan(source)
        assert str(error.value) == f"can't read {tmp_path}/b.csv: {reason}"
        with pytest.warns(UserWarning, match=f"1 of 2 files could not be read.*{reason}"):
            assert scan(source, on_error="skip").collect().rows() == [("one", "a")]

    def test_of_any_name_in_a_folder(self, tmp_path, make, reason):
        pl.DataFrame({"text": ["one"]}).write_parquet(tmp_path / "a.parquet")
        make(tmp_path / "b")
        with pytest.raises(SourceError, match=reason):
            scan(tmp_path)
        make(tmp_path / ".hidden")
        (tmp_path / "b").unlink()
        assert scan(tmp_path).collect().height == 1

    @pytest.mark.parametrize("name", ["x/b", "x/deep/b", "b"])
    def test_in_a_folder_per_class(self, tmp_path, make, reason, name):
        write_files(tmp_path, {"x/a": "one", "y/a": "one", "x/deep/.hidden": ""})
        make(tmp_path / name)
        for columns in (["label", "text"], ["label"]):
            with pytest.raises(SourceError) as error:
                scan(tmp_path).select(columns).collect()
            assert str(error.value) == f"can't read {tmp_path}/{name}: {reason}"
        with pytest.warns(UserWarning, match="1 of 3 files could not be read"):
            assert scan(tmp_path, on_error="skip").collect()["label"].to_list() == ["x", "y"]


def test_a_link_to_a_folder_is_followed_as_a_class_and_not_within_one(tmp_path):
    write_files(tmp_path, {"root/x/a": "one", "root/y/a": "one", "other/a": "one"})
    (tmp_path / "root/x/sub").symlink_to(tmp_path / "other")
    with pytest.raises(SourceError, match="sub: it is a link to a folder, which is not followed"):
        scan(tmp_path / "root").collect()
    (tmp_path / "root/x/sub").unlink()
    (tmp_path / "root/z").symlink_to(tmp_path / "other")
    assert scan(tmp_path / "root").collect()["label"].to_list() == ["x", "y", "z"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_is_closed_is_named(tmp_path):
    write_files(tmp_path, {"x/a": "one", "y/a": "one", "x/sub/a": "one"})
    (tmp_path / "x/sub").chmod(0)
    with pytest.raises(SourceError, match="sub: it is a folder that can't be listed"):
        scan(tmp_path).collect()
    (tmp_path / "x/sub").chmod(0o700)


PATTERNS = ["*", "*/*", "**", "**/*.csv", "a/**", "*/b/../c.csv", "[[]a]/*", ".*", "?", "*/", "no",
            "no/**", "c.csv/**", "**/b/**/*.csv", "x=*/**/*.csv", "*/nowhere"]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("is_absolute", [False, True])
def test_a_glob_matches_what_the_standard_library_matches(
        tmp_path, monkeypatch, pattern, is_absolute):
    write_files(tmp_path, dict.fromkeys(
        ["a/b/c.csv", "a/c.csv", "a/b/b/d.csv", "[a]/c.csv", ".h/c.csv", "a/.h.csv", "c.csv",
         "x=1/y=2/c.csv"], ""))
    (tmp_path / "a/nowhere").symlink_to("nowhere")
    (tmp_path / "linked").symlink_to("a")
    monkeypatch.chdir(tmp_path)
    pattern = str(tmp_path / pattern) if is_absolute else pattern
    # `glob` matches the folder before "/**" even if there is none.
    matches = {path for path in glob.glob(pattern, recursive=True) if os.path.lexists(path)}
    assert expand_glob(pattern) == sorted(matches)


def test_a_glob_does_not_follow_a_loop_of_links(tmp_path):
    write_files(tmp_path, {"a/x.csv": "", "b/y.csv": ""})
    (tmp_path / "a/up").symlink_to("..")
    (tmp_path / "b/a").symlink_to("../a")
    assert [os.path.relpath(path, tmp_path) for path in expand_glob(f"{tmp_path}/**/*.csv")] == [
        "a/x.csv", "b/a/x.csv", "b/y.csv"]


def test_a_glob_leaves_out_no_folder_that_cannot_be_entered(tmp_path, monkeypatch):
    write_files(tmp_path, {"open/a.csv": "", "closed/a.csv": ""})
    call = os.lstat

    def refuse(path, *args, **kwargs):
        if "closed" in os.fspath(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return call(path, *args, **kwargs)

    monkeypatch.setattr(os, "lstat", refuse)
    with pytest.raises(SourceError, match=r"closed/a\.csv: Permission denied"):
        scan(tmp_path / "*/a.csv")


@pytest.mark.parametrize("pattern", ["*/*.csv", "**/*.csv", "**", "*/*/a.csv", "closed*/*"])
@pytest.mark.parametrize("function", ["listdir", "stat"])
def test_a_glob_leaves_out_no_folder_that_cannot_be_listed(
        tmp_path, monkeypatch, pattern, function):
    write_files(tmp_path, {"open/a.csv": TABLES["csv"], "closed=1/a.csv": TABLES["csv"],
                           "closed=1/a.parquet": ""})
    closed, call = str(tmp_path / "closed=1"), getattr(os, function)

    def fail(path, *args, **kwargs):
        if os.fspath(path) == closed:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return call(path, *args, **kwargs)

    monkeypatch.setattr(os, function, fail)
    message = re.escape(f"can't read {closed}: it can't be listed: Input/output error")
    sources = [partial(scan, tmp_path / pattern), partial(scan_mail, tmp_path / pattern)]
    for read in sources if function == "stat" else [*sources, partial(scan, tmp_path)]:
        with pytest.raises(SourceError, match=message):
            read()


@pytest.mark.parametrize("read", [scan, scan_mail])
@pytest.mark.parametrize("path", ["none.csv", "a\0b.csv"])
def test_a_path_of_nothing(read, path):
    with pytest.raises(SourceError, match="no such file or folder"):
        read(path)


def test_a_path_that_cannot_be_looked_at_is_named(tmp_path, monkeypatch):
    def fail(path, *args, **kwargs):
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    path = str(tmp_path / "a.csv")
    for function in ("stat", "lstat"):
        monkeypatch.setattr(os, function, fail)
    with pytest.raises(SourceError, match=re.escape(f"can't read {path}: Input/output error")):
        scan(path)


@pytest.mark.parametrize(("name", "message"), [
    (b"\xff.csv", "its name is not UTF-8; rename it"),
    (b"\xff/a", r"the folder '\\udcff' of .* can't be a label")])
def test_a_name_that_is_not_utf8_is_refused(name, message, tmp_path):
    try:
        write_files(tmp_path, {os.fsdecode(name): TABLES["csv"]})
    except OSError:
        pytest.skip("this file system has names in UTF-8 alone")
    with pytest.raises(SourceError, match=message):
        scan(tmp_path).collect()


class TestMarks:
    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize("ending", TABLES)
    def test_that_of_utf8_is_no_text(self, tmp_path, ending, packed):
        path, pattern = f"a.{ending}", f"a.*{ending}"
        content = MARK + TABLES[ending]
        if packed:
            path, pattern, content = f"{path}.gz", "a.*gz", gzip.compress(content)
        write_files(tmp_path, {path: content, f"plain.{ending}": TABLES[ending]})
        plain = scan(tmp_path / f"plain.{ending}").collect()
        for source in (tmp_path / path, tmp_path / pattern):
            assert scan(source).collect().equals(plain)
            assert scan(source, on_error="skip").collect().equals(plain)
        assert scan(tmp_path).collect().equals(pl.concat([plain, plain]))

    def test_a_file_that_changes_is_read_again(self, tmp_path):
        path = tmp_path / "[a].ndjson"
        for text in ("one", "other"):
            path.write_bytes(MARK + f'{{"text": "{text}"}}\n'.encode())
            assert scan(path).collect().rows() == [(text,)]

    @pytest.mark.parametrize("ending", TABLES)
    @pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
    def test_those_of_other_encodings_are_named(self, tmp_path, ending, encoding):
        write_files(tmp_path, {f"a.{ending}": TABLES[ending].decode().encode(encoding),
                               f"b.{ending}": TABLES[ending]})
        with pytest.raises(SourceError, match=f"it is {encoding.upper()}, .* iconv -f {encoding}"):
            scan(tmp_path / f"a.{ending}", text="text")
        with pytest.warns(UserWarning, match=encoding.upper()):
            assert scan(tmp_path, on_error="skip").collect().height == 1

    def test_in_a_folder_per_class(self, tmp_path):
        write_files(tmp_path, {"x/a": MARK + b"one", "y/a": b"two"})
        assert scan(tmp_path).collect()["text"].to_list() == ["one", "two"]
        (tmp_path / "y/a").write_bytes("two".encode("utf-16"))
        with pytest.raises(SourceError, match="it is UTF-16"):
            scan(tmp_path).collect()
