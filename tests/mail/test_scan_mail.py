"""Mail as a lazy table: what is read when, what counts as mail, and the SpamAssassin corpus."""

import gzip
import os
import subprocess
import sys
import tarfile
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from tests.mail.conftest import FROM, MAILBOX, message, rows
from tests.oracles import mail as oracle
from textnb import TextClassifier
from textnb.errors import ParameterError, SchemaError, SourceError
from textnb.frames import mail
from textnb.frames.batches import groups
from textnb.frames.mail import mail_errors, scan_mail
from textnb.frames.scan import scan
from textnb.mail import mailboxes


def messages(folder, number):
    return {f"{folder}/{i}": message(str(i)) for i in range(number)}


# Laziness


def test_nothing_is_parsed_that_is_not_asked_for(write, monkeypatch):
    write({"r/ham/1.eml": message("x"), "r/spam/2.eml": message("spam")})
    frame, parsed, parse = scan_mail("r"), [], mail.read_message
    monkeypatch.setattr(mail, "read_message",
                        lambda raw, headers: parsed.append(raw) or parse(raw, headers))
    assert frame.select("label", "path").collect().rows() == [
        ("ham", "r/ham/1.eml"), ("spam", "r/spam/2.eml")]
    assert frame.select("flags").collect().height == 2
    assert parsed == []
    spam = frame.filter(pl.col("label") == "spam").select("subject")
    assert spam.collect().rows() == [("spam",)]
    assert parsed == [message("spam")]


def test_no_file_is_opened_before_or_beyond(write, monkeypatch):
    write(messages("m", 9))
    opened, real = [], open
    monkeypatch.setattr(mailboxes, "open", lambda path, *args: opened.append(path)
                        or real(path, *args), raising=False)
    frame = scan_mail("m")
    assert opened == []
    assert frame.head(2).select("subject").collect().rows() == [("0",), ("1",)]
    assert opened == ["m/0", "m/1"]
    assert frame.head(0).collect().height == 0


def test_batches_are_bounded(write, monkeypatch):
    monkeypatch.setattr(mail, "groups", partial(groups, max_items=3))
    write(messages("m", 8))
    expected = [(str(i),) for i in range(8)]
    assert rows("m", "subject") == expected
    frame = scan_mail("m")
    assert frame.filter(pl.col("subject") >= "3").select("subject").collect().rows() == (
        expected[3:])
    assert frame.filter(pl.col("subject") == "none").collect().height == 0
    assert frame.slice(2, 3).select("subject").collect().rows() == expected[2:5]
    assert frame.filter(pl.col("path").str.ends_with("5") & (pl.col("subject") == "5")).select(
        "body").collect().rows() == [("Body.\n",)]


def test_an_early_end_does_not_abort_the_process(write):
    write(messages("m", 1500))
    code = ("import polars as pl; from textnb.frames.mail import scan_mail;"
            "f = scan_mail('m').filter(pl.col('subject').str.contains('1')).head(3);"
            "print(f.collect().height)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"3\n", b"")


# Mail among the inputs of a model


def test_kinds_of_errors_are_counted(write):
    write({"m/1.eml": b"Date: x\nContent-Type: text/plain; charset=a\n\nx",
           "m/2.eml": b"Date: y\n\nx", "m/3.eml": b"a: b\n\nx", "m/4.eml": b"Date: y\n\nx"})
    found = mail_errors(scan_mail("m"))
    assert found.schema == {"error": pl.String, "messages": pl.Int64, "paths": pl.List(pl.String)}
    assert found.rows() == [("bad date", 3, ["m/1.eml", "m/2.eml", "m/4.eml"]),
                            ("unknown charset", 1, ["m/1.eml"])]
    assert mail_errors(scan_mail("m").collect()).equals(found)
    sound = mail_errors(scan_mail("m/3.eml"))
    assert (sound.height, sound.schema) == (0, found.schema)


@pytest.fixture
def classes(write):
    for i in range(3):
        write({f"root/ham/{i}.eml": message(f"minutes {i}", "of the meeting"),
               f"root/spam/{i}.eml": message("free", "free offer")})
    return Path("root")


def test_a_classifier_reads_mail(classes):
    model = TextClassifier(text=["subject", "body", "x-mailer"], label="label").fit(classes)
    assert model.vocabulary_ == ["free", "meeting", "minutes", "none", "of", "offer", "the"]
    answers = model.predict(scan(classes, text=["subject", "body", "x-mailer"])).collect()
    assert answers["predicted"].to_list() == ["ham"] * 3 + ["spam"] * 3


def test_subject_and_body_as_one_text(classes):
    frame = scan(classes, text="text", label="label").collect()
    assert frame["text"].to_list()[0] == "minutes 0\nof the meeting\n"
    assert "text" not in scan(classes).collect_schema()


@pytest.mark.parametrize("name", ["a.eml", "a.mbox", "a.mbx", "A.EML", "a.mbox.gz", "*.eml",
                                  "folder", "maildir", "classes"])
def test_names_tell_that_it_is_mail(write, name):
    content = FROM + message("x")
    made = {"*.eml": "a.eml", "folder": "folder/a.eml", "maildir": "maildir/new/1",
            "classes": "classes/ham/1.mbox"}.get(name, name)
    write({made: gzip.compress(content) if made.endswith("gz") else content, "maildir/cur/": b""})
    frame = scan(name, text=["subject", "x-mailer"])
    assert frame.select("subject", "x-mailer").collect().rows() == [("x", "none")]
    assert ("label" in frame.collect_schema()) == (name == "classes")


def test_a_setting_tells_that_it_is_mail(write):
    write({"root/ham/00001.7c53": message("a"), "root/spam/00001.9c40": message("b")})
    assert scan("root").collect_schema().names() == ["label", "text", "path"]
    frame = scan("root", text="subject", label="label", format="mail")
    assert frame.select("label", "subject").collect().rows() == [("ham", "a"), ("spam", "b")]


ERRORS = [
    (lambda: scan_mail("nowhere"), SourceError, "no such file or folder: 'nowhere'"),
    (lambda: scan_mail("empty"), SourceError, "empty: it holds no message"),
    (lambda: scan_mail("https://example.org/a.mbox?key=secret"), SourceError,
     r"https://example\.org/a\.mbox: mail .* download it"),
    (lambda: scan_mail("root", headers=["date"]), ParameterError,
     r"other than the columns .* got 'date'"),
    (lambda: scan_mail("root", headers=["a b"]), ParameterError, "got 'a b'"),
    (lambda: scan_mail("root", headers=["tokens"], tokens=True), ParameterError,
     "other than the columns that are there anyway"),
    (lambda: scan_mail("root/ham", label=True), SourceError, "no folder per class"),
    (lambda: scan_mail("box.mbox", label=True), SourceError, "no folder per class"),
    (lambda: scan_mail("box"), SourceError, r"a folder in it does \(box/.Spam/cur/1\)"),
    (lambda: mail_errors(pl.DataFrame({"text": ["x"]})), SchemaError, "no column 'path'"),
    (lambda: scan("root", text="subject", label="lable"), SchemaError,
     r"no column 'lable' .* did you mean 'label'"),
    (lambda: scan("root", text="errors"), SchemaError, "'errors' must be String"),
    (lambda: scan("root", text="body", encoding="latin-1"), ParameterError,
     "each message of mail tells its own"),
    (lambda: scan("root/ham/0.eml", format="mial"), ParameterError, r"choose one of .*mail"),
    (lambda: scan("mixed"), SourceError, "files of several formats"),
    (lambda: scan("a.csv", text="text", subfolders=True), ParameterError,
     "subfolders is for a Maildir, and")]


@pytest.mark.parametrize(("call", "error", "match"), ERRORS, ids=range(len(ERRORS)))
def test_errors(write, classes, call, error, match):
    write({"empty/deeper/": b"", "box.mbox": MAILBOX, "a.csv": b"text\nx\n",
           "box/.Spam/cur/1": message("spam"), "box/cur/": b"", "box/new/": b"",
           "box/.Spam/new/": b"", "mixed/a.eml": message("a"), "mixed/x.csv": b"a\n1\n"})
    with pytest.raises(error, match=match):
        call()
    # The Maildir that has mail in its folders alone is read with them.
    assert rows("box", "subject", subfolders=True) == [("spam",)]


# The SpamAssassin corpus, as the standard library reads it


@pytest.fixture(scope="module")
def spamassassin():
    """The archive, its messages, and the table of them."""
    folder = os.environ.get("TEXTNB_CORPORA")
    path = Path(folder or "") / "spamassassin_raw_eml.tar.gz"
    if not folder or not path.is_file():
        pytest.skip("TEXTNB_CORPORA holds no spamassassin_raw_eml.tar.gz")
    with tarfile.open(path) as opened:
        files = ((member.name, opened.extractfile(member)) for member in opened)
        raw = {name: file.read() for name, file in files if file is not None}
    return path, raw, scan_mail(path).collect()


def test_no_message_is_lost(spamassassin):
    path, raw, table = spamassassin
    assert table.height == len(raw) == 6046
    assert table["path"].to_list() == [f"{path}:{name}" for name in raw]
    assert dict(table["label"].value_counts().iter_rows()) == {
        "easy-ham-1": 2500, "easy-ham-2": 1400, "hard-ham-1": 250, "spam-1": 500, "spam-2": 1396}
    assert table["body"].null_count() == table["headers"].null_count() == 0
    # Messages of pictures alone, mostly.
    assert table.filter(pl.col("body").str.strip_chars() == "").height < 25
    assert table["subject"].null_count() == 6


def test_what_is_malformed_is_counted(spamassassin):
    table = spamassassin[2]
    assert table.filter(pl.col("errors").list.len() > 0).height == 336
    assert dict(mail_errors(table).select("error", "messages").iter_rows()) == {
        "charset not declared": 209, "year of three digits": 62, "no closing boundary": 52,
        "unknown charset": 23, "bad base64": 6, "undecodable bytes replaced": 5,
        "bad date": 2, "boundary not found": 2, "bad encoded word": 1,
        "malformed content type": 1}


def test_headers_and_plain_bodies_are_those_of_the_standard_library(spamassassin):
    _, messages, table = spamassassin
    headers_compared = bodies_compared = 0
    sound = table.select("headers", "body", "errors").iter_rows()
    for raw, (headers, body, errors) in zip(messages.values(), sound, strict=True):
        if errors:
            continue
        head = raw.partition(b"\n\n")[0]
        if head.isascii():
            found = [line.split(": ", 1) for line in headers.split("\n")]
            assert [(name, "".join(value.split())) for name, value in found] == (
                oracle.header_lines(head))
            headers_compared += 1
        # Of other characters, some are read in a larger charset than was declared.
        if raw.isascii() and b"quoted" not in raw and b"base64" not in raw:
            expected = oracle.plain_body(raw)
            if expected is not None:
                assert body == expected
                bodies_compared += 1
    assert headers_compared > 5700
    assert bodies_compared > 4000
