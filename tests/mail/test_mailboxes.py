"""Every way to keep messages gives the same rows, and none is lost."""

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
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.mail.conftest import FROM, MAILBOX, message, rows
from tests.tiers import examples
from textnb.frames.mail import scan_mail
from textnb.frames.scan import scan
from textnb.mail import mailboxes, mbox

X = b"Subject: x\n\nBody.\n"
THREE = [("one",), ("two",), ("three",)]


# Files


def test_the_columns(write):
    write({"a.eml": X})
    frame = scan_mail("a.eml", headers=["received", "X-Mailer"])
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
def test_one_message(write, name):
    raw = message("café", "Text.")
    write({name: gzip.compress(raw) if name.endswith("gz") else raw})
    for source in (Path(name), name, [Path(name)], "a*"):
        assert rows(source, "subject", "body", "path") == [("café", "Text.\n", name)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("content", [
    MAILBOX, MAILBOX.rstrip(b"\n") + b"\n", b"\n\n" + MAILBOX, MAILBOX.replace(b"\n", b"\r\n")],
    ids=["plain", "without the last line", "after lines", "CRLF"])
def test_an_mbox(write, pack, content):
    write({"m.mbox": pack(content)})
    assert rows("m.mbox", "subject", "body", "path") == [
        ("one", "Body.\n", "m.mbox#1"), ("two", "Body.\n", "m.mbox#2"),
        ("three", "Body.\n", "m.mbox#3")]


def test_letters_of_bzip2_begin_a_message(write):
    write({"a.eml": b"BZhello: 1\nSubject: x\n\nBody.\n", "b.eml": bz2.compress(b"")})
    assert rows("*.eml", "subject", "errors") == [("x", []), (None, ["empty message"])]


def test_many_sources(write):
    write({"a.mbox": MAILBOX, "b.eml": message("b")})
    for sources in (["a.mbox", Path("b.eml")], "*.*"):
        assert rows(sources, "subject") == [*THREE, ("b",)]


@pytest.mark.parametrize(("content", "expected"), [
    (message("one"), [("one", "-")]),
    (MAILBOX, [("one", "-#1"), ("two", "-#2"), ("three", "-#3")])], ids=["eml", "mbox"])
def test_standard_input(content, expected):
    code = ("from textnb.frames.mail import scan_mail; f = scan_mail('-');"
            "print(f.select('subject', 'path').collect().rows(),"
            " f.select('path').collect().height)")
    done = subprocess.run([sys.executable, "-c", code], input=content, timeout=60,
                          capture_output=True, check=True)
    assert done.stdout.decode() == f"{expected} {len(expected)}\n"


# What parts an mbox


def test_a_name_says_that_a_file_is_one_message_though_a_line_would_part_it(write):
    write({"a.eml": MAILBOX, "a": MAILBOX})
    assert rows("a.eml", "subject") == [("one",)]
    assert rows("a", "subject") == THREE


PARTING = ("From here on, 10:30 in 1999\n\nFrom there to 11:00 in 1999\nit went.\n\n"
           "From nowhere\n\n>From a\n>>From b\n> From c\n")


@pytest.mark.parametrize(("content", "expected"), [
    (FROM + message("one", PARTING) + b"\n" + FROM + b"\nno headers\n\n" + FROM + message("three"),
     [("one", PARTING.replace(">From", "From") + "\n"), (None, "no headers\n"),
      ("three", "Body.\n")]),
    (b"From a\n" + message("one", "x\n\nFrom here on\ny") + b"\nFrom b\n" + message("two"),
     [("one", "x\n\nFrom here on\ny\n"), ("two", "Body.\n")])], ids=["with dates", "without"])
def test_what_parts_an_mbox(write, content, expected):
    write({"m.mbox": content})
    assert rows("m.mbox", "subject", "body") == expected


@pytest.mark.parametrize("first", [
    b"", b"\n\n", b"junk\n\n", b"\xef\xbb\xbf", b"From \n\njunk\n\n"])
def test_one_rule_whatever_comes_first(write, first):
    lines = [b"From a@b.c Mon Jan  1 10:00:00 2001\n", b"From x@y.z Tue Jan 32 2001\n",
             b"From - \n", b"From \n", b"From - Sat, Jan 3 1:05 1996\n"]
    content = first + b"\n".join(line + message(str(number)) for number, line in enumerate(lines))
    # By their content alone, those are mailboxes that begin with "From ".
    for name in ["m.mbox", *(["m"] if b"junk" not in first and b"\n" not in first else [])]:
        write({name: content})
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
    (FROM + message("a") + b"\nFrom b\n" + message("b"), [("a", []), ("b", [])]),
    (FROM + message("a", "x\n\nFrom our pages\nhttp://a.b"), [
        ("a", ["line From within a message: From our pages"])]),
    (b"From a\n" + message("a") + b"\nFrom b\nno header", [
        ("a", ["line From within a message: From b"])]),
    (b"From - Sat, Jan 3 1:05 1996 +0100\n" + message("a") + b"\n"
     + b"From c@d Sat Jan  3 01:05:34 EST 1996 remote from x\r\nno header", [
        ("a", []), (None, ["no headers"])]),
    (FROM + b"From b 10:30\n" + message("a"), [
        ("a", ["line From within a message: From b 10:30", "mailbox line among the headers"])])])
def test_lines_that_part_an_mbox_elsewhere_are_noted(write, content, found):
    write({"m.mbox": content})
    assert rows("m.mbox", "subject", "errors") == found


@settings(max_examples=examples(150), deadline=None, database=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([
    FROM, b"From b\n", b"From - Sat Jan 3 1:05:34 1996 EST\n", b"From here, 10:30 in Jan 1999\n",
    b"\n", b"\n", b"Subject: x\n", b"text\n", b">From c\n", b" folded\n"]), max_size=12))
def test_no_line_parts_elsewhere_without_a_note(tmp_path, lines):
    path = tmp_path / "m.mbox"
    path.write_bytes(FROM + b"".join(lines))
    found = rows(path, "errors")
    with contextlib.closing(mailbox.mbox(str(path), create=False)) as box:
        elsewhere = len(box)
    is_noted = any(error.startswith("line From within a message")
                   for (errors,) in found for error in errors)
    assert elsewhere == len(found) or (elsewhere > len(found) and is_noted)


def test_an_mbox_is_what_the_standard_library_wrote(write):
    write({})
    box = mailbox.mbox("m.mbox")
    bodies = ["one\n", "From two\n\nFrom three\n", ">From four\n", ""]
    for body in bodies:
        box.add(message("s", body))
    box.close()
    assert [body for (body,) in rows("m.mbox", "body")] == [
        body.replace(">From", "From") + "\n" for body in bodies]


def test_lines_longer_than_a_piece(write, monkeypatch):
    monkeypatch.setattr(mbox, "PIECE_SIZE", 64)
    monkeypatch.setattr(mailboxes, "PIECE_SIZE", 64)
    # A piece that happens to look like a separating line is none.
    body = "x" * 999 + "\n" + "x" * 999 + "From a@b.org Sat Jan  3 01:05:34 1996"
    write({"m.mbox": FROM + message("one", body) + b"\n" + FROM + message("two"),
           "m.eml": message("one", body)})
    assert rows("m.mbox", "subject", "body") == [("one", f"{body}\n"), ("two", "Body.\n")]
    assert rows("m.eml", "body") == [(f"{body}\n",)]


# Folders


def test_a_folder_of_messages(write):
    names = ("m/1.eml", "m/10.gz", "m/2", "m/sub/3.eml")
    write({**{name: message(name) for name in names}, "m/.hidden": X, "m/box.mbox": MAILBOX})
    assert rows("m", "path", "subject") == [
        *((name, name) for name in names[:3]), ("m/box.mbox#1", "one"), ("m/box.mbox#2", "two"),
        ("m/box.mbox#3", "three"), ("m/sub/3.eml", "m/sub/3.eml")]


def test_a_maildir(write):
    write({})
    box = mailbox.Maildir("box", create=True)
    for subject, subdir, flags in (("new", "new", ""), ("seen", "cur", "SRF"),
                                   ("no flags", "cur", "")):
        made = mailbox.MaildirMessage(message(subject))
        made.set_subdir(subdir)
        made.set_flags(flags)
        box.add(made)
    box.add_folder("Spam").add(message("spam"))
    write({"box/tmp/1": b"half a mess", "box/dovecot.index": b"\0", "box/.other/1": b"no Maildir"})
    found = rows("box", "subject", "flags")
    assert sorted(found[:2]) == [("no flags", ""), ("seen", "FRS")]
    assert found[2:] == [("new", "")]
    assert rows("box", "subject", "flags", subfolders=True) == [("spam", ""), *found]
    assert scan("box", text="body").select("subject", "flags").collect().rows() == found
    assert scan("box", text="body", subfolders=True).collect().height == 4
    assert rows("box/.Spam", "subject") == [("spam",)]
    assert scan_mail("box").collect_schema().names()[0] == "message_id"
    # Without a folder new, cur is the folder of a class.
    write({"half/cur/1:2,S": message("half")})
    assert rows("half", "label", "flags") == [("cur", None)]


def test_a_maildir_that_is_read_by_others_loses_no_message(write, monkeypatch):
    write({f"box/{name}": message(name) for name in (
        "cur/a:2,", "cur/n", "new/b", "new/c", "new/d", "new/n")})

    def move(name, target):
        os.rename(f"box/{name}", f"box/{target}")

    def moving(folder, *rest):
        names = real(folder, *rest)
        if folder == "box/new" and moves:
            move(*moves.pop())
        return names

    # One is moved between the two lists, and three after them.
    real, moves = os.listdir, [("new/b", "cur/b:2,S")]
    monkeypatch.setattr(mailboxes.os, "listdir", moving)
    files = list(mailboxes.list_mail_files("box"))
    move("new/c", "cur/c:2,RS")
    move("cur/a:2,", "cur/a:2,S")
    os.remove("box/new/d")
    found = [message for file in files for message in mailboxes.read_messages(file)]
    assert [(message.path, message.flags, message.errors) for message in found] == [
        ("box/cur/a:2,S", "S", ()), ("box/cur/b:2,S", "S", ()), ("box/cur/n", "", ()),
        ("box/cur/c:2,RS", "RS", ()),
        ("box/new/d", "", ("unreadable: No such file or directory",)), ("box/new/n", "", ())]


@pytest.mark.parametrize("links", [["cur"], ["cur", "new"], ["cur/loop", "new/loop"]])
def test_links_in_a_maildir_form_no_loop(write, links):
    write({"box/cur/": b"", "box/new/": b"", "box/a": message("a")})
    for link in links:
        if "/" not in link:
            os.rmdir(f"box/{link}")
        os.symlink("." if "/" not in link else "..", f"box/{link}")
    if "new" not in links:
        write({"box/new/b": message("b")})
    expected = [f"box/{link}/a" for link in links if "/" not in link]
    expected += ["box/new/b"] * ("new" not in links)
    assert rows("box", "path") == [(path,) for path in expected]
    assert rows("box", "path", subfolders=True) == [(path,) for path in expected]


def test_folders_of_maildirs_are_left_out_everywhere(write):
    """Of a class's Maildir, and of one in a folder; what is named is read."""
    for box in ("classes/ham", "classes/spam"):
        for part in ("cur", "new", ".Other/cur", ".Other/new", ".Other/.Deep/cur"):
            write({f"{box}/{part}/1": message(f"{box}/{part}"), f"{box}/.Other/.Deep/new/": b""})
    assert rows("classes", "label", "subject") == [
        (name, f"classes/{name}/{part}") for name in ("ham", "spam") for part in ("cur", "new")]
    assert len(rows("classes", "path", subfolders=True)) == 10
    write({"plain/a.eml": message("a")})
    os.rename("classes/ham", "plain/ham")
    assert len(rows("plain", "path")) == 3
    assert len(rows("plain", "path", subfolders=True)) == 6


def test_a_folder_per_class(write):
    write({"root/ham/b.eml": message("b"), "root/ham/deep/a": message("a"),
           "root/list/box.mbox": MAILBOX, "root/spam/cur/1:2,S": message("c"),
           "root/spam/new/": b"", "root/empty/": b"", "root/.git/x": X})
    assert rows("root", "label", "subject", "flags") == [
        ("ham", "b", None), ("ham", "a", None), ("list", "one", None), ("list", "two", None),
        ("list", "three", None), ("spam", "c", "S")]
    assert "label" not in scan_mail("root", label=False).collect_schema()
    assert len(rows("root", "path", label=False)) == 6
    for source in ("root/ham", "root/list/box.mbox"):
        assert "label" not in scan_mail(source).collect_schema()


# Archives


def archive(name, *members, mode="w"):
    """Each member is its path, its content and further fields."""
    with tarfile.open(name, mode) as opened:
        for path, content, fields in members:
            member = tarfile.TarInfo(path)
            member.size = len(content)
            for field, value in fields.items():
                setattr(member, field, value)
            opened.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize(("name", "mode"), [
    ("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tgz", "w:gz"), ("a.tar.bz2", "w:bz2"),
    ("a.tar.xz", "w:xz")])
def test_an_archive(write, name, mode):
    write({})
    archive(name, ("./ham/1.eml", message("one"), {}), ("ham", b"", {"type": tarfile.DIRTYPE}),
            ("ham/2", MAILBOX, {}), ("spam/" + "x" * 200, message("long"), {}),
            ("spam/z.gz", gzip.compress(message("packed")), {}), ("alone", b"", {}), mode=mode)
    assert rows(name, "label", "subject", "path") == [
        ("ham", "one", f"{name}:./ham/1.eml"), ("ham", "one", f"{name}:ham/2#1"),
        ("ham", "two", f"{name}:ham/2#2"), ("ham", "three", f"{name}:ham/2#3"),
        ("spam", "long", f"{name}:spam/" + "x" * 200), ("spam", "packed", f"{name}:spam/z.gz"),
        (None, None, f"{name}:alone")]
    assert os.listdir() == [name]


def test_archives_of_classes(write):
    for name in ("ham", "spam"):
        write({f"root/{name}/x.eml": message(name)})
        archive(f"root/{name}/a.tar", ("deep/1", message("in"), {}))
    assert rows("root", "label", "subject") == [
        ("ham", "in"), ("ham", "ham"), ("spam", "in"), ("spam", "spam")]
    archive("flat.tar", ("1", message("a"), {}))
    assert "label" not in scan_mail("flat.tar").collect_schema()


def test_hostile_members(write):
    write({"secret": message("secret")})
    archive("a.tar", ("c/1", message("one"), {}),
            ("c/l", b"", {"type": tarfile.SYMTYPE, "linkname": "../secret"}),
            ("c/h", b"", {"type": tarfile.LNKTYPE, "linkname": "c/1"}),
            ("c/d", b"", {"type": tarfile.CHRTYPE}), ("c/f", b"", {"type": tarfile.FIFOTYPE}),
            ("../../up", message("up"), {}), ("/abs", message("abs"), {}))
    refused = [["refused: a link in an archive"]] * 2 + [
        ["refused: a device or pipe in an archive"]] * 2
    assert rows("a.tar", "subject", "errors") == [
        ("one", []), *((None, errors) for errors in refused), ("up", []), ("abs", [])]
    assert os.listdir("..").count("up") == 0


def test_a_description_without_end(write):
    write({})
    archive("a.tar.gz", ("c/1", message("one"), {}),
            ("c/2", message("two"), {"pax_headers": {"comment": "x" * (5 << 20)}}), mode="w:gz")
    assert rows("a.tar.gz", "subject", "path", "errors") == [
        ("one", "a.tar.gz:c/1", []),
        (None, "a.tar.gz", ["unreadable: the description of a member is beyond 4 MiB"])]


@pytest.fixture
def nine(write):
    """The bytes of an archive of nine messages, of four blocks of 512 bytes each."""
    write({})
    archive("whole.tar", *((f"c/{i}", message(str(i), "y" * 600), {}) for i in range(9)))
    assert len(rows("whole.tar", "path")) == 9
    return Path("whole.tar").read_bytes()


@pytest.mark.parametrize(("end", "read"), [
    (512 * 3 * 4 + 600, 5), (512 * 3 * 4 + 100, 4), (512 * 3 * 4, 4)],
    ids=["in a message", "in a description", "between two"])
def test_an_archive_that_breaks_off(write, nine, end, read):
    write({"a.tar": nine[:end]})
    *found, last = rows("a.tar", "subject", "path", "errors")
    assert [path for _, path, _ in found] == [f"a.tar:c/{i}" for i in range(read)]
    assert [subject for subject, _, _ in found[:4]] == ["0", "1", "2", "3"]
    assert [len(errors) for _, _, errors in found] == [0, 0, 0, 0, 1][:read]
    assert last[1] == "a.tar"
    assert last[2][0].startswith("unreadable: ")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["tar", "gzip"])
def test_what_follows_the_end_of_an_archive_is_an_error(write, nine, pack):
    write({"a.tar": pack(nine) + pack(nine), "b.tar": pack(nine + bytes(512))})
    *found, (path, errors) = rows("a.tar", "path", "errors")
    assert (len(found), path) == (9, "a.tar")
    assert errors[0].startswith("unreadable: other bytes follow the end of the archive")
    assert len(rows("b.tar", "path")) == 9


def test_damaged_archives(write, nine):
    write({"a.tar": nine[:512 * 6] + b"\xff" * 512 + nine[512 * 7:],
           "b.tar.gz": gzip.compress(nine)[:-30], "c.tar": b"no archive"})
    assert rows("a.tar", "subject")[:2] == [("0",), ("1",)]
    assert rows("a.tar", "errors")[2][0][0].startswith("unreadable: the archive breaks off")
    assert "unreadable: " in rows("b.tar.gz", "errors")[-1][0][-1]
    ((path, errors),) = rows("c.tar", "path", "errors")
    assert path == "c.tar"
    assert errors[0].startswith("unreadable: ")


# What can't be read


def test_empty_and_junk(write):
    write({"m/1.eml": b"", "m/2.mbox": b"", "m/3": bytes(range(256)),
           "m/4.eml.gz": gzip.compress(b"")})
    assert rows("m", "path", "errors") == [
        ("m/1.eml", ["empty message"]), ("m/2.mbox#1", ["empty message"]),
        ("m/3", ["no headers", "charset not declared: read as windows-1252"]),
        ("m/4.eml.gz", ["empty message"])]


def test_what_is_no_file(write):
    write({"m/a": message("a")})
    os.mkfifo("m/fifo")
    for name, target in (("loop", "loop"), ("nowhere", "gone"), ("z", "a"), ("up", "..")):
        os.symlink(target, f"m/{name}")
    assert rows("m", "path", "subject", "errors") == [
        ("m/a", "a", []), ("m/fifo", None, ["unreadable: not a file"]),
        ("m/loop", None, ["unreadable: Too many levels of symbolic links"]),
        ("m/nowhere", None, ["unreadable: No such file or directory"]),
        ("m/up", None, ["unreadable: it is a link to a folder, which is not followed"]),
        ("m/z", "a", [])]


def test_links_to_folders_leave_nothing_out(write):
    write({"other/1": message("one"), "md/new/2": message("two"), "m/ham/3": message("three")})
    os.symlink("../other", "md/cur")
    assert rows("md", "subject", "path") == [("one", "md/cur/1"), ("two", "md/new/2")]
    os.symlink("../other", "m/spam")
    assert rows("m", "label", "subject") == [("ham", "three"), ("spam", "one")]
    os.symlink("../md", "md/.Spam")
    with_subfolders = scan_mail("md", subfolders=True).collect()
    assert with_subfolders["errors"].explode().drop_nulls().to_list() == [
        "unreadable: it is a link to a folder, which is not followed"]


@pytest.mark.parametrize("pattern", ["m/**", "m/**/*", "m*", "m/*", "m/**/*.eml"])
def test_a_glob_reads_each_message_once(write, pattern):
    write({"m/ham/1.eml": message("1"), "m/spam/deep/2.eml": message("2"), "m2/ham/3": b""})
    paths = [path for (path,) in rows(pattern, "path")]
    assert [path for path in paths if path.startswith("m/")] == [
        "m/ham/1.eml", "m/spam/deep/2.eml"]


def test_what_may_not_be_read(write, monkeypatch):
    write({"m/a": message("a"), "m/b": message("b")})

    def refusing(path, *args):
        if str(path) == "m/a":
            raise PermissionError(13, "Permission denied", path)
        return open(path, *args)

    monkeypatch.setattr(mailboxes, "open", refusing, raising=False)
    assert rows("m", "path", "subject", "body", "errors") == [
        ("m/a", None, "", ["unreadable: Permission denied"]), ("m/b", "b", "Body.\n", [])]


def test_compressed_files_that_break_off(write):
    text = os.urandom(3000).hex()
    write({"a.eml.gz": gzip.compress(message("one", text))[:-1000], "b.gz": b"\x1f\x8bjunk",
           "c.mbox.gz": gzip.compress(MAILBOX + FROM + message("four", text))[:-1000]})
    ((subject, body, errors),) = rows("a.eml.gz", "subject", "body", "errors")
    assert subject == "one"
    assert text.startswith(body)
    assert len(body) > 2000
    assert errors[0].startswith("unreadable: Compressed file ended")
    ((errors,),) = rows("b.gz", "errors")
    assert errors[0].startswith("unreadable: ")
    found = rows("c.mbox.gz", "subject", "errors")
    assert [(subject, len(errors)) for subject, errors in found] == [
        ("one", 0), ("two", 0), ("three", 0), ("four", 1)]
    assert found[3][1][0].startswith("unreadable: Compressed file ended")


def test_large_messages(write, monkeypatch):
    monkeypatch.setattr(mbox, "MAX_MESSAGE", 1000)
    monkeypatch.setattr(mailboxes, "MAX_MESSAGE", 1000)
    large = message("large", "x" * 5000)
    write({"a.eml": large, "b.eml.gz": gzip.compress(large),
           "c.mbox": FROM + large + b"\n" + FROM + message("next")})
    archive("d.tar", ("1", large, {}), ("2", message("next"), {}))
    found = rows(["a.eml", "b.eml.gz", "c.mbox", "d.tar"], "subject", "body", "errors")
    assert [subject for subject, _, _ in found] == ["large"] * 3 + ["next", "large", "next"]
    for subject, body, errors in found:
        assert errors == (["message beyond 64 MiB not read"] if subject == "large" else [])
        assert len(body) < 1000


def test_names_that_are_not_unicode(write):
    write({"r/": b""})
    Path(os.fsdecode(b"r/\xff.eml")).write_bytes(message("a"))
    assert rows("r", "path", "subject") == [("r/\ufffd.eml", "a")]
