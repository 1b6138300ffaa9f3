"""Mail as a table: every way to keep messages gives the same rows, and none is lost."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import mailbox
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracles import mail as oracle
from tests.tiers import examples
from textnb import TextClassifier
from textnb.errors import ParameterError, SchemaError, SourceError
from textnb.frames import mail
from textnb.frames.batches import groups
from textnb.frames.mail import mail_errors, scan_mail
from textnb.frames.scan import scan
from textnb.mail import mailboxes, mbox

FROM = b"From a@b.org Sat Jan  3 01:05:34 1996\n"
Write = Callable[..., Path]


def message(subject: str, body: str = "Body.") -> bytes:
    return f"Subject: {subject}\nX-Mailer: none\n\n{body}\n".encode()


MAILBOX = b"".join(FROM + message(subject) + b"\n" for subject in ("one", "two", "three"))


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file into an empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, content: bytes = b"Subject: x\n\nBody.\n") -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return write


def rows(source: Any, *columns: str, **settings: Any) -> list[tuple[Any, ...]]:
    return scan_mail(source, **settings).select(columns).collect().rows()


def archive(name: str, mode: Any, *members: tuple[str, bytes, dict[str, Any]]) -> None:
    with tarfile.open(name, mode) as opened:
        for path, content, fields in members:
            member = tarfile.TarInfo(path)
            member.size = len(content)
            for field, value in fields.items():
                setattr(member, field, value)
            opened.addfile(member, io.BytesIO(content))


class TestFiles:
    def test_the_columns(self, write: Write) -> None:
        frame = scan_mail(write("a.eml"), headers=["received", "X-Mailer"])
        schema = frame.collect_schema()
        assert schema.names() == ["message_id", "date", "from", "to", "subject", "headers", "body",
                                  "links", "images", "attachments", "flags", "path", "errors",
                                  "received", "X-Mailer"]
        assert schema["date"] == pl.Datetime("us", "UTC")
        assert schema["attachments"] == schema["errors"] == pl.List(pl.String)
        collected = frame.collect()
        assert collected.schema == schema
        assert collected.row(0) == (None, None, None, None, "x", "Subject: x", "Body.\n", "", "",
                                    [], None, "a.eml", [], None, None)

    @pytest.mark.parametrize("name", ["a.eml", "a.EML", "a", "a.gz", "a.eml.gz"])
    def test_one_message(self, write: Write, name: str) -> None:
        raw = message("café", "Text.")
        path = write(name, gzip.compress(raw) if name.endswith("gz") else raw)
        for source in (path, str(path), [path], "a*"):
            assert rows(source, "subject", "body", "path") == [("café", "Text.\n", name)]

    def test_one_message_whatever_is_in_it(self, write: Write) -> None:
        # The name says that it is one, though a line in it would part an mbox.
        write("a.eml", MAILBOX)
        assert rows("a.eml", "subject") == [("one",)]
        write("a", MAILBOX)
        assert rows("a", "subject") == [("one",), ("two",), ("three",)]

    @pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
    def test_mbox(self, write: Write, pack: Callable[[bytes], bytes]) -> None:
        expected = [("one", "Body.\n", "m.mbox#1"), ("two", "Body.\n", "m.mbox#2"),
                    ("three", "Body.\n", "m.mbox#3")]
        for content in (MAILBOX, MAILBOX.rstrip(b"\n") + b"\n", b"\n\n" + MAILBOX):
            path = write("m.mbox", pack(content))
            assert rows(path, "subject", "body", "path") == expected
        path = write("m.mbox", pack(MAILBOX.replace(b"\n", b"\r\n")))
        assert rows(path, "subject", "body", "path") == expected

    def test_what_parts_an_mbox(self, write: Write) -> None:
        text = ("From here on, 10:30 in 1999\n\nFrom there to 11:00 in 1999\nit went.\n\n"
                "From nowhere\n\n>From a\n>>From b\n> From c\n")
        first = FROM + message("one", text) + b"\n"
        write("m.mbox", first + FROM + b"\nno headers\n\n" + FROM + message("three"))
        assert rows("m.mbox", "subject", "body") == [
            ("one", text.replace(">From", "From") + "\n"),
            (None, "no headers\n"), ("three", "Body.\n")]

    def test_an_mbox_without_dates(self, write: Write) -> None:
        write("m.mbox", b"From a\n" + message("one", "x\n\nFrom here on\ny") + b"\nFrom b\n"
              + message("two"))
        assert rows("m.mbox", "subject", "body") == [
            ("one", "x\n\nFrom here on\ny\n"), ("two", "Body.\n")]

    @pytest.mark.parametrize("first", [
        b"", b"\n\n", b"junk\n\n", b"\xef\xbb\xbf", b"From \n\njunk\n\n"])
    def test_one_rule_whatever_comes_first(self, write: Write, first: bytes) -> None:
        lines = [b"From a@b.c Mon Jan  1 10:00:00 2001\n", b"From x@y.z Tue Jan 32 2001\n",
                 b"From - \n", b"From \n", b"From - Sat, Jan 3 1:05 1996\n"]
        content = first + b"\n".join(
            line + message(str(number)) for number, line in enumerate(lines))
        # By their content alone, those are mailboxes that begin with "From ".
        for name in ["m.mbox", *(["m"] if b"junk" not in first and b"\n" not in first else [])]:
            write(name, content)
            assert [subject for (subject,) in rows(name, "subject") if subject] == [
                "0", "1", "2", "3", "4"]

    @pytest.mark.parametrize(("content", "found"), [
        (FROM + message("a") + b"\n" + FROM + b"no header\n\nb\n\n" + FROM + message("c"), [
            ("a", []), (None, ["no headers"]), ("c", [])]),
        (FROM + message("a") + FROM + message("b"), [
            ("a", []), ("b", ["no empty line before the line From"])]),
        (FROM + message("a") + FROM + b"no header", [
            ("a", ["line From within a message: From a@b.org Sat Jan 3 01:05:34 1996"])]),
        (FROM + message("a", "x\n\nFrom now on, 10:30 in Jan 1999\nit went."), [
            ("a", ["line From within a message: From now on, 10:30 in Jan 1999"])]),
        (FROM + message("a") + b"\nFrom b\n" + message("b"), [
            ("a", []), ("b", [])]),
        (FROM + message("a", "x\n\nFrom our pages\nhttp://a.b"), [
            ("a", ["line From within a message: From our pages"])]),
        (b"From a\n" + message("a") + b"\nFrom b\nno header", [
            ("a", ["line From within a message: From b"])]),
        (b"From - Sat, Jan 3 1:05 1996 +0100\n" + message("a") + b"\n"
         + b"From c@d Sat Jan  3 01:05:34 EST 1996 remote from x\r\nno header", [
            ("a", []), (None, ["no headers"])]),
        (FROM + b"From b 10:30\n" + message("a"), [
            ("a", ["line From within a message: From b 10:30", "mailbox line among the headers"])]),
    ])
    def test_lines_that_part_an_mbox_elsewhere(
        self, write: Write, content: bytes, found: list[tuple[str | None, list[str]]]
    ) -> None:
        write("m.mbox", content)
        assert rows("m.mbox", "subject", "errors") == found

    @settings(max_examples=examples(150), deadline=None, database=None,
              suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.sampled_from([
        FROM, b"From b\n", b"From - Sat Jan 3 1:05:34 1996 EST\n",
        b"From here, 10:30 in Jan 1999\n", b"\n", b"\n", b"Subject: x\n",
        b"text\n", b">From c\n", b" folded\n"]), max_size=12))
    def test_no_line_parts_elsewhere_unsaid(self, tmp_path: Path, lines: list[bytes]) -> None:
        path = tmp_path / "m.mbox"
        path.write_bytes(FROM + b"".join(lines))
        found = rows(path, "errors")
        with contextlib.closing(mailbox.mbox(str(path), create=False)) as box:
            elsewhere = len(box)
        said = any(error.startswith("line From within a message")
                   for (errors,) in found for error in errors)
        assert elsewhere == len(found) or (elsewhere > len(found) and said)

    def test_an_mbox_is_what_the_standard_library_wrote(self, write: Write) -> None:
        write("x")
        box = mailbox.mbox("m.mbox")
        bodies = ["one\n", "From two\n\nFrom three\n", ">From four\n", ""]
        for body in bodies:
            box.add(message("s", body))
        box.close()
        assert [body for (body,) in rows("m.mbox", "body")] == [
            body.replace(">From", "From") + "\n" for body in bodies]

    def test_lines_longer_than_a_piece(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mbox, "PIECE", 64)
        monkeypatch.setattr(mailboxes, "PIECE", 64)
        # A piece that happens to look like a separating line is none.
        body = "x" * 999 + "\n" + "x" * 999 + "From a@b.org Sat Jan  3 01:05:34 1996"
        content = FROM + message("one", body) + b"\n" + FROM + message("two")
        write("m.mbox", content)
        assert rows("m.mbox", "subject", "body") == [("one", f"{body}\n"), ("two", "Body.\n")]
        write("m.eml", message("one", body))
        assert rows("m.eml", "body") == [(f"{body}\n",)]

    def test_standard_input(self, write: Write) -> None:
        code = ("from textnb.frames.mail import scan_mail; f = scan_mail('-');"
                "print(f.select('subject', 'path').collect().rows(),"
                " f.select('path').collect().height)")
        for content, expected in ((message("one"), [("one", "-")]),
                                  (MAILBOX, [("one", "-#1"), ("two", "-#2"), ("three", "-#3")])):
            done = subprocess.run([sys.executable, "-c", code], input=content, timeout=60,
                                  capture_output=True, check=True)
            assert done.stdout.decode() == f"{expected} {len(expected)}\n"


class TestFolders:
    def test_a_folder_of_messages(self, write: Write) -> None:
        for name in ("m/2", "m/1.eml", "m/10.gz", "m/sub/3.eml", "m/.hidden", "m/box.mbox"):
            write(name, MAILBOX if name.endswith("mbox") else message(name))
        assert rows("m", "path", "subject") == [
            ("m/1.eml", "m/1.eml"), ("m/10.gz", "m/10.gz"), ("m/2", "m/2"),
            ("m/box.mbox#1", "one"), ("m/box.mbox#2", "two"), ("m/box.mbox#3", "three"),
            ("m/sub/3.eml", "m/sub/3.eml")]

    def test_a_maildir(self, write: Write) -> None:
        write("x")
        box = mailbox.Maildir("box", create=True)
        for subject, subdir, flags in (("new", "new", ""), ("seen", "cur", "SRF"),
                                       ("no flags", "cur", "")):
            made = mailbox.MaildirMessage(message(subject))
            made.set_subdir(subdir)
            made.set_flags(flags)
            box.add(made)
        folder = box.add_folder("Spam")
        folder.add(message("spam"))
        write("box/tmp/1", b"half a mess")
        write("box/dovecot.index", b"\0")
        write("box/.other/1", b"no Maildir")
        found = rows("box", "subject", "flags")
        assert sorted(found[:2]) == [("no flags", ""), ("seen", "FRS")]
        assert found[2:] == [("new", "")]
        assert rows("box", "subject", "flags", subfolders=True) == [("spam", ""), *found]
        assert scan("box", text="body").select("subject", "flags").collect().rows() == found
        assert scan("box", text="body", subfolders=True).collect().height == 4
        assert rows("box/.Spam", "subject") == [("spam",)]
        assert scan_mail("box").collect_schema().names()[0] == "message_id"

    def test_folders_of_maildirs_are_left_out_everywhere(self, write: Write) -> None:
        """Of a class's Maildir, and of one in a folder; what is named is read."""
        for box in ("classes/ham", "classes/spam"):
            for part in ("cur", "new", ".Other/cur", ".Other/new", ".Other/.Deep/cur"):
                write(f"{box}/{part}/1", message(f"{box}/{part}"))
            os.makedirs(f"{box}/.Other/.Deep/new")
        assert rows("classes", "label", "subject") == [
            (name, f"classes/{name}/{part}") for name in ("ham", "spam") for part in ("cur", "new")]
        assert len(rows("classes", "path", subfolders=True)) == 10
        write("plain/a.eml", message("a"))
        os.rename("classes/ham", "plain/ham")
        assert len(rows("plain", "path")) == 3
        assert len(rows("plain", "path", subfolders=True)) == 6

    def test_a_maildir_whose_mail_is_in_its_folders(self, write: Write) -> None:
        write("box/.Spam/cur/1", message("spam"))
        for folder in ("box/cur", "box/new", "box/.Spam/new"):
            os.makedirs(folder)
        with pytest.raises(SourceError, match=r"a folder in it does \(box/.Spam/cur/1\)"):
            scan_mail("box")
        assert rows("box", "subject", subfolders=True) == [("spam",)]

    def test_subfolders_are_for_mail(self, write: Write) -> None:
        write("a.csv", b"text\nx\n")
        with pytest.raises(ParameterError, match="subfolders is for a Maildir, and"):
            scan("a.csv", text="text", subfolders=True)

    def test_a_folder_per_class(self, write: Write) -> None:
        write("root/ham/b.eml", message("b"))
        write("root/ham/deep/a", message("a"))
        write("root/list/box.mbox", MAILBOX)
        write("root/spam/cur/1:2,S", message("c"))
        os.makedirs("root/spam/new")
        os.makedirs("root/empty")
        write("root/.git/x")
        assert rows("root", "label", "subject", "flags") == [
            ("ham", "b", None), ("ham", "a", None), ("list", "one", None), ("list", "two", None),
            ("list", "three", None), ("spam", "c", "S")]
        assert "label" not in scan_mail("root", label=False).collect_schema()
        assert len(rows("root", "path", label=False)) == 6
        for source in ("root/ham", "root/list/box.mbox"):
            assert "label" not in scan_mail(source).collect_schema()
            with pytest.raises(SourceError, match="no folder per class"):
                scan_mail(source, label=True)

    def test_many_sources(self, write: Write) -> None:
        write("a.mbox", MAILBOX)
        write("b.eml", message("b"))
        expected = [("one",), ("two",), ("three",), ("b",)]
        assert rows(["a.mbox", Path("b.eml")], "subject") == expected
        assert rows("*.*", "subject") == expected

    def test_what_is_not_there(self, write: Write) -> None:
        write("x")
        os.makedirs("empty/deeper")
        with pytest.raises(SourceError, match="no such file or folder: 'nowhere'"):
            scan_mail("nowhere")
        with pytest.raises(SourceError, match="empty: it holds no message"):
            scan_mail("empty")
        with pytest.raises(SourceError, match=r"https://example\.org/a\.mbox: mail .* download it"):
            scan_mail("https://example.org/a.mbox?key=secret")
        with pytest.raises(ParameterError, match=r"other than the columns .* got 'date'"):
            scan_mail("x", headers=["date"])
        with pytest.raises(ParameterError, match="got 'a b'"):
            scan_mail("x", headers=["a b"])


class TestArchives:
    @pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.tar.bz2", "a.tar.xz"])
    def test_messages(self, write: Write, name: str) -> None:
        write("x")
        mode = {"gz": "w:gz", "tgz": "w:gz", "bz2": "w:bz2", "xz": "w:xz"}.get(
            name.split(".")[-1], "w")
        archive(name, mode, ("./ham/1.eml", message("one"), {}),
                ("ham", b"", {"type": tarfile.DIRTYPE}), ("ham/2", MAILBOX, {}),
                ("spam/" + "x" * 200, message("long"), {}),
                ("spam/z.gz", gzip.compress(message("packed")), {}), ("alone", b"", {}))
        assert rows(name, "label", "subject", "path") == [
            ("ham", "one", f"{name}:./ham/1.eml"), ("ham", "one", f"{name}:ham/2#1"),
            ("ham", "two", f"{name}:ham/2#2"), ("ham", "three", f"{name}:ham/2#3"),
            ("spam", "long", f"{name}:spam/" + "x" * 200), ("spam", "packed", f"{name}:spam/z.gz"),
            (None, None, f"{name}:alone")]
        assert not [path for path in os.listdir() if path not in ("x", name)]

    def test_archives_of_classes(self, write: Write) -> None:
        for name in ("ham", "spam"):
            write(f"root/{name}/x.eml", message(name))
            archive(f"root/{name}/a.tar", "w", ("deep/1", message("in"), {}))
        assert rows("root", "label", "subject") == [
            ("ham", "in"), ("ham", "ham"), ("spam", "in"), ("spam", "spam")]
        archive("flat.tar", "w", ("1", message("a"), {}))
        assert "label" not in scan_mail("flat.tar").collect_schema()

    def test_hostile_members(self, write: Write) -> None:
        write("secret", message("secret"))
        archive("a.tar", "w", ("c/1", message("one"), {}),
                ("c/l", b"", {"type": tarfile.SYMTYPE, "linkname": "../secret"}),
                ("c/h", b"", {"type": tarfile.LNKTYPE, "linkname": "c/1"}),
                ("c/d", b"", {"type": tarfile.CHRTYPE}), ("c/f", b"", {"type": tarfile.FIFOTYPE}),
                ("../../up", message("up"), {}), ("/abs", message("abs"), {}))
        refused = [["refused: a link in an archive"]] * 2 + [
            ["refused: a device or pipe in an archive"]] * 2
        assert rows("a.tar", "subject", "errors") == [
            ("one", []), *((None, errors) for errors in refused), ("up", []), ("abs", [])]
        assert os.listdir("..").count("up") == 0

    def test_a_description_without_end(self, write: Write) -> None:
        write("x")
        archive("a.tar.gz", "w:gz", ("c/1", message("one"), {}),
                ("c/2", message("two"), {"pax_headers": {"comment": "x" * (5 << 20)}}))
        assert rows("a.tar.gz", "subject", "path", "errors") == [
            ("one", "a.tar.gz:c/1", []),
            (None, "a.tar.gz", ["unreadable: the description of a member is beyond 4 MiB"])]

    def test_archives_that_break_off(self, write: Write) -> None:
        write("x")
        archive("whole.tar", "w", *((f"c/{i}", message(str(i), "y" * 600), {}) for i in range(9)))
        content = Path("whole.tar").read_bytes()
        assert len(rows("whole.tar", "path")) == 9
        # In a message, in a member's description, between two, and in damaged bytes.
        for end, read in ((512 * 3 * 4 + 600, 5), (512 * 3 * 4 + 100, 4), (512 * 3 * 4, 4)):
            write("a.tar", content[:end])
            *found, last = rows("a.tar", "subject", "path", "errors")
            assert [path for _, path, _ in found] == [f"a.tar:c/{i}" for i in range(read)]
            assert [subject for subject, _, _ in found[:4]] == ["0", "1", "2", "3"]
            assert [len(errors) for _, _, errors in found] == [0, 0, 0, 0, 1][:read]
            assert last[1] == "a.tar"
            assert last[2][0].startswith("unreadable: ")
        write("a.tar", content[:512 * 6] + b"\xff" * 512 + content[512 * 7:])
        assert rows("a.tar", "subject")[:2] == [("0",), ("1",)]
        assert rows("a.tar", "errors")[2][0][0].startswith("unreadable: the archive breaks off")
        write("b.tar.gz", gzip.compress(content)[:-30])
        assert "unreadable: " in rows("b.tar.gz", "errors")[-1][0][-1]
        write("c.tar", b"no archive")
        assert rows("c.tar", "path", "errors")[0][0] == "c.tar"
        assert rows("c.tar", "errors")[0][0][0].startswith("unreadable: ")


class TestTrouble:
    def test_empty_and_junk(self, write: Write) -> None:
        write("m/1.eml", b"")
        write("m/2.mbox", b"")
        write("m/3", bytes(range(256)))
        write("m/4.eml.gz", gzip.compress(b""))
        found = rows("m", "path", "errors")
        assert found[0] == ("m/1.eml", ["empty message"])
        assert found[1] == ("m/2.mbox#1", ["empty message"])
        assert found[2][1] == ["no headers", "charset not declared: read as windows-1252"]
        assert found[3] == ("m/4.eml.gz", ["empty message"])

    def test_what_is_no_file(self, write: Write) -> None:
        write("m/a", message("a"))
        os.mkfifo("m/fifo")
        os.symlink("loop", "m/loop")
        os.symlink("gone", "m/nowhere")
        os.symlink("a", "m/z")
        os.symlink("..", "m/up")
        assert rows("m", "path", "subject", "errors") == [
            ("m/a", "a", []), ("m/fifo", None, ["unreadable: not a file"]),
            ("m/loop", None, ["unreadable: Too many levels of symbolic links"]),
            ("m/nowhere", None, ["unreadable: No such file or directory"]), ("m/z", "a", [])]

    def test_what_can_not_be_read(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        write("m/a", message("a"))
        write("m/b", message("b"))
        real = open

        def refusing(path: Any, *args: Any) -> Any:
            if str(path) == "m/a":
                raise PermissionError(13, "Permission denied", path)
            return real(path, *args)

        monkeypatch.setattr(mailboxes, "open", refusing, raising=False)
        assert rows("m", "path", "subject", "body", "errors") == [
            ("m/a", None, "", ["unreadable: Permission denied"]), ("m/b", "b", "Body.\n", [])]

    def test_compressed_files_that_break_off(self, write: Write) -> None:
        text = os.urandom(3000).hex()
        whole = gzip.compress(message("one", text))
        write("a.eml.gz", whole[:-1000])
        write("b.gz", b"\x1f\x8bjunk")
        ((subject, body, errors),) = rows("a.eml.gz", "subject", "body", "errors")
        assert subject == "one"
        assert text.startswith(body)
        assert len(body) > 2000
        assert errors[0].startswith("unreadable: Compressed file ended")
        ((errors,),) = rows("b.gz", "errors")
        assert errors[0].startswith("unreadable: ")
        box = gzip.compress(MAILBOX + FROM + message("four", text))
        write("c.mbox.gz", box[:-1000])
        found = rows("c.mbox.gz", "subject", "errors")
        assert [subject for subject, _ in found] == ["one", "two", "three", "four"]
        assert [len(errors) for _, errors in found] == [0, 0, 0, 1]
        assert found[3][1][0].startswith("unreadable: Compressed file ended")

    def test_large_messages(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mbox, "MAX_MESSAGE", 1000)
        monkeypatch.setattr(mailboxes, "MAX_MESSAGE", 1000)
        large = message("large", "x" * 5000)
        write("a.eml", large)
        write("b.eml.gz", gzip.compress(large))
        write("c.mbox", FROM + large + b"\n" + FROM + message("next"))
        archive("d.tar", "w", ("1", large, {}), ("2", message("next"), {}))
        found = rows(["a.eml", "b.eml.gz", "c.mbox", "d.tar"], "subject", "body", "errors")
        assert [subject for subject, _, _ in found] == ["large"] * 3 + ["next", "large", "next"]
        for subject, body, errors in found:
            assert errors == (["message beyond 64 MiB not read"] if subject == "large" else [])
            assert len(body) < 1000

    def test_names_that_are_not_unicode(self, write: Write) -> None:
        os.makedirs("r")
        with open(b"r/\xff.eml", "wb") as file:
            file.write(message("a"))
        assert rows("r", "path", "subject") == [("r/\ufffd.eml", "a")]


class TestLazy:
    def test_nothing_is_parsed_that_is_not_asked_for(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write("r/ham/1.eml")
        write("r/spam/2.eml", message("spam"))
        frame = scan_mail("r")
        parsed: list[bytes] = []
        parse = mail.read_message
        monkeypatch.setattr(mail, "read_message",
                            lambda raw, headers: parsed.append(raw) or parse(raw, headers))
        assert frame.select("label", "path").collect().rows() == [
            ("ham", "r/ham/1.eml"), ("spam", "r/spam/2.eml")]
        assert frame.select("flags").collect().height == 2
        assert parsed == []
        spam = frame.filter(pl.col("label") == "spam").select("subject")
        assert spam.collect().rows() == [("spam",)]
        assert parsed == [message("spam")]

    def test_no_file_is_opened_before_or_beyond(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for i in range(9):
            write(f"m/{i}", message(str(i)))
        opened: list[str] = []
        real = open
        monkeypatch.setattr(mailboxes, "open", lambda path, *args: opened.append(path)
                            or real(path, *args), raising=False)
        frame = scan_mail("m")
        assert opened == []
        assert frame.head(2).select("subject").collect().rows() == [("0",), ("1",)]
        assert opened == ["m/0", "m/1"]
        assert frame.head(0).collect().height == 0

    def test_batches_are_bounded(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mail, "groups", partial(groups, max_items=3))
        for i in range(8):
            write(f"m/{i}", message(str(i)))
        expected = [(str(i),) for i in range(8)]
        assert rows("m", "subject") == expected
        frame = scan_mail("m")
        assert frame.filter(pl.col("subject") >= "3").select("subject").collect().rows() == (
            expected[3:])
        assert frame.filter(pl.col("subject") == "none").collect().height == 0
        assert frame.slice(2, 3).select("subject").collect().rows() == expected[2:5]
        assert frame.filter(pl.col("path").str.ends_with("5") & (pl.col("subject") == "5")).select(
            "body").collect().rows() == [("Body.\n",)]

    def test_an_early_end_does_not_abort_the_process(self, write: Write) -> None:
        for i in range(1500):
            write(f"m/{i:04}", message(str(i)))
        code = ("import polars as pl; from textnb.frames.mail import scan_mail;"
                "f = scan_mail('m').filter(pl.col('subject').str.contains('1')).head(3);"
                "print(f.collect().height)")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"3\n", b"")


class TestErrors:
    def test_kinds_are_counted(self, write: Write) -> None:
        write("m/1.eml", b"Date: x\nContent-Type: text/plain; charset=a\n\nx")
        write("m/2.eml", b"Date: y\n\nx")
        write("m/3.eml")
        write("m/4.eml", b"Date: y\n\nx")
        found = mail_errors(scan_mail("m"))
        assert found.schema == {"error": pl.String, "messages": pl.Int64,
                                "paths": pl.List(pl.String)}
        assert found.rows() == [("bad date", 3, ["m/1.eml", "m/2.eml", "m/4.eml"]),
                                ("unknown charset", 1, ["m/1.eml"])]
        assert mail_errors(scan_mail("m").collect()).equals(found)
        sound = mail_errors(scan_mail("m/3.eml"))
        assert (sound.height, sound.schema) == (0, found.schema)

    def test_what_is_no_mail(self) -> None:
        with pytest.raises(SchemaError, match="no column 'path'"):
            mail_errors(pl.DataFrame({"text": ["x"]}))


class TestScan:
    @pytest.fixture
    def classes(self, write: Write) -> Path:
        for i in range(3):
            write(f"root/ham/{i}.eml", message(f"minutes {i}", "of the meeting"))
            write(f"root/spam/{i}.eml", message("free", "free offer"))
        return Path("root")

    def test_a_classifier_reads_mail(self, classes: Path) -> None:
        model = TextClassifier(text=["subject", "body", "x-mailer"], label="label").fit(classes)
        assert model.vocabulary_ == ["free", "meeting", "minutes", "none", "of", "offer", "the"]
        answers = model.predict(scan(classes, text=["subject", "body", "x-mailer"])).collect()
        assert answers["predicted"].to_list() == ["ham"] * 3 + ["spam"] * 3

    def test_subject_and_body_as_one_text(self, classes: Path) -> None:
        frame = scan(classes, text="text", label="label").collect()
        assert frame["text"].to_list()[0] == "minutes 0\nof the meeting\n"
        assert "text" not in scan(classes).collect_schema()

    @pytest.mark.parametrize("name", ["a.eml", "a.mbox", "a.mbx", "A.EML", "a.mbox.gz", "*.eml",
                                      "folder", "maildir", "classes"])
    def test_mail_is_told_by_names(self, write: Write, name: str) -> None:
        content = FROM + message("x")
        made = {"*.eml": "a.eml", "folder": "folder/a.eml", "maildir": "maildir/new/1",
                "classes": "classes/ham/1.mbox"}.get(name, name)
        write(made, gzip.compress(content) if made.endswith("gz") else content)
        os.makedirs("maildir/cur", exist_ok=True)
        frame = scan(name, text=["subject", "x-mailer"])
        assert frame.select("subject", "x-mailer").collect().rows() == [("x", "none")]
        assert ("label" in frame.collect_schema()) == (name == "classes")

    def test_or_said(self, write: Write) -> None:
        write("root/ham/00001.7c53", message("a"))
        write("root/spam/00001.9c40", message("b"))
        assert scan("root").collect_schema().names() == ["label", "text", "path"]
        frame = scan("root", text="subject", label="label", format="mail")
        assert frame.select("label", "subject").collect().rows() == [("ham", "a"), ("spam", "b")]

    def test_what_mail_has_not(self, classes: Path) -> None:
        with pytest.raises(SchemaError, match=r"no column 'lable' .* did you mean 'label'"):
            scan(classes, text="subject", label="lable")
        with pytest.raises(SchemaError, match="'errors' must be String"):
            scan(classes, text="errors")
        with pytest.raises(ParameterError, match="each message of mail tells its own"):
            scan(classes, text="body", encoding="latin-1")
        with pytest.raises(ParameterError, match=r"choose one of .*mail"):
            scan(classes / "ham" / "0.eml", format="mial")
        Path("root/ham/x.csv").write_text("a\n1\n")
        with pytest.raises(SourceError, match="files of several formats"):
            scan(classes / "ham")


@pytest.fixture(scope="module")
def spamassassin() -> tuple[Path, dict[str, bytes]]:
    """The archive of the SpamAssassin corpus and its messages, as the standard library reads it."""
    folder = os.environ.get("TEXTNB_CORPORA")
    path = Path(folder or "") / "spamassassin_raw_eml.tar.gz"
    if not folder or not path.is_file():
        pytest.skip("TEXTNB_CORPORA holds no spamassassin_raw_eml.tar.gz")
    with tarfile.open(path) as opened:
        files = ((member.name, opened.extractfile(member)) for member in opened)
        return path, {name: file.read() for name, file in files if file is not None}


@pytest.fixture(scope="module")
def table(spamassassin: tuple[Path, dict[str, bytes]]) -> pl.DataFrame:
    return scan_mail(spamassassin[0]).collect()


class TestSpamAssassin:
    def test_no_message_is_lost(
        self, spamassassin: tuple[Path, dict[str, bytes]], table: pl.DataFrame
    ) -> None:
        path, messages = spamassassin
        assert table.height == len(messages) == 6046
        assert table["path"].to_list() == [f"{path}:{name}" for name in messages]
        counts = dict(table["label"].value_counts().iter_rows())
        assert counts == {"easy-ham-1": 2500, "easy-ham-2": 1400, "hard-ham-1": 250,
                          "spam-1": 500, "spam-2": 1396}
        assert table["body"].null_count() == table["headers"].null_count() == 0
        # Messages of pictures alone, mostly.
        assert table.filter(pl.col("body").str.strip_chars() == "").height < 25
        assert table["subject"].null_count() == 6

    def test_what_is_malformed(self, table: pl.DataFrame) -> None:
        assert table.filter(pl.col("errors").list.len() > 0).height == 336
        assert dict(mail_errors(table).select("error", "messages").iter_rows()) == {
            "charset not declared": 209, "year of three digits": 62, "no closing boundary": 52,
            "unknown charset": 23, "bad base64": 6, "undecodable bytes replaced": 5,
            "bad date": 2, "boundary not found": 2, "bad encoded word": 1,
            "malformed content type": 1}

    def test_headers_are_those_of_the_standard_library(
        self, spamassassin: tuple[Path, dict[str, bytes]], table: pl.DataFrame
    ) -> None:
        compared = 0
        for raw, headers, errors in zip(spamassassin[1].values(), table["headers"],
                                        table["errors"].to_list(), strict=True):
            head = raw.partition(b"\n\n")[0]
            if head.isascii() and not errors:
                found = [line.split(": ", 1) for line in headers.split("\n")]
                assert [(name, "".join(value.split())) for name, value in found] == (
                    oracle.header_lines(head))
                compared += 1
        assert compared > 5700

    def test_plain_bodies_are_those_of_the_standard_library(
        self, spamassassin: tuple[Path, dict[str, bytes]], table: pl.DataFrame
    ) -> None:
        compared = 0
        for raw, body, errors in zip(spamassassin[1].values(), table["body"],
                                     table["errors"].to_list(), strict=True):
            # Of other characters, some are read in a larger charset than was declared.
            if not errors and raw.isascii() and b"quoted" not in raw and b"base64" not in raw:
                expected = oracle.plain_body(raw)
                if expected is not None:
                    assert body == expected
                    compared += 1
        assert compared > 4000
