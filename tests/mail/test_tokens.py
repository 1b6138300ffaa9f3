"""The tokens of mail: what each kind says, what is left out, and that any bytes give some."""

import time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mail.conftest import FROM
from tests.tiers import examples
from textnb.frames.mail import scan_mail
from textnb.mail.features.links import host_suffixes
from textnb.mail.features.words import MAX_WORD_LENGTH, plain_words
from textnb.mail.message import read_message
from textnb.mail.tokens import KINDS, mail_tokens

MESSAGE = (Path(__file__).parent / "offer.eml").read_bytes()


def of_kind(kind, message):
    return list(KINDS[kind](*read_message(message)))


EXPECTED = {
    "subject": {"subject:free!!", "subject:free", "subject:café", "subject:capitals:free!!"},
    "addresses": {"from:name:best", "from:address:win99@example.net", "from:user:win9",
                  "from:host:example.net", "to:count:2", "reply-to:is-not-from",
                  "return-path:host:news.example.net"},
    "mailer": {"mailer:bulk mailer 5.0", "mailer:bulk"},
    "received": {"received:own-name:host", "received:own-name-is-another", "received:unknown",
                 "received:192.0.2", "received:home.example", "received:count:1"},
    "headers": {"header:x-mailer", "x-priority:1", "x-priority:highest"},
    "id": {"message-id:form:a9.9", "message-id:host:example.net", "date:zone:-0500",
           "date:form:a, 9 a 9 9:9:9 -9"},
    "parts": {"mime:text/html", "mime:text/html:charset:windows-1252", "mime:parts:5",
              "mime:text/html:encoding:quoted-printable",
              "mime:application/octet-stream:disposition:attachment",
              "mime:tree:multipart/mixed+multipart/alternative+text/plain+text/html"},
    "attachments": {"attachment:ending:exe", "attachment:invoice", "attachment:9",
                    "attachment:doc"},
    "links": {"link:scheme:http", "link:user", "link:address", "link:port:8080",
              "link:host:192.0.2", "link:path:buy", "link:path:now9", "link:path:html",
              "link:host:plain.example", "link:count:2"},
    "style": {"run:***", "capitals:00%", "characters:32"},
    "words": {"only", "shown", "hidden", "words", "win"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind):
    assert EXPECTED[kind] <= set(of_kind(kind, MESSAGE))


def test_versions_are_no_hosts():
    found = of_kind("received", b"Received: from a.example by b.test (8.11.6/8.11.6); now\n\n")
    assert found == ["received:own-name:host", "received:example", "received:a.example",
                     "received:test", "received:b.test", "received:count:1"]


def test_missing_headers_are_named():
    found = of_kind("headers", b"Subject: x\n\nBody")
    assert [token for token in found if token.startswith("no-")] == [
        "no-header:from", "no-header:to", "no-header:date", "no-header:message-id",
        "no-header:mime-version", "no-header:content-type"]


@pytest.mark.parametrize(("added", "place"), [
    *((header + "\n", "Subject") for header in (
        "X-Spam-Status: Yes, score=99", "X-Barracuda-Spam-Flag: YES", "X-Bogosity: Spam",
        "List-Id: <verdict.example>", "X-Mailman-Version: 2", "Precedence: bulk", "X-UID: 77",
        "X-Filter-To-Come: verdict")),
    *((mark, "Minutes") for mark in (
        "[SPAM] ", "***SPAM*** ", "{Spam?} ", "[SPAM][SPAM] ", "*****SPAM***** ", "SPAM: ",
        "[Suspected Spam] "))])
def test_headers_and_marks_of_filters_and_lists_say_nothing(added, place):
    plain = "Subject: Minutes\nFrom: a@b.example\n\nBody"
    assert mail_tokens(plain.replace(place, added + place).encode()) == mail_tokens(plain.encode())


@pytest.mark.parametrize("subject", ["Spam is a food", "spamassassin: a release", "[team] Spam"])
def test_subjects_about_spam_stay(subject):
    found = of_kind("subject", f"Subject: {subject}\n\n".encode())
    assert any("spam" in token.lower() for token in found)


@pytest.mark.parametrize(("text", "words"), [
    ("f\u200br\u00adee", ["free"]), ("\uff26\uff32\uff25\uff25", ["free"]),
    ("c\u0430sin\u043e", ["casino"]), ("<FREE>!!", ["free"]), ("\u201cfree\u201d", ["free"]),
    # Words of other scripts stay.
    ("\u043c\u043e\u0441\u043a\u0432\u0430 \u03b1\u03b8\u03ae\u03bd\u03b1",
     ["\u043c\u043e\u0441\u043a\u0432\u0430", "\u03b1\u03b8\u03ae\u03bd\u03b1"])])
def test_hidden_words_are_undone(text, words):
    assert list(plain_words(text)) == words


@pytest.mark.parametrize(("host", "suffixes"), [
    ("", []), ("localhost", ["localhost"]), ("A.B.", ["b", "a.b"]),
    ("1.2.3.4", ["1.2.3.4", "1.2.3", "1.2"]), ("1.2.3.4.5", ["5", "4.5", "3.4.5", "2.3.4.5"])])
def test_suffixes_of_hosts(host, suffixes):
    assert list(host_suffixes(host)) == suffixes


# Any message


@given(st.text(), st.text(alphabet=st.characters(codec="utf-8")))
def test_no_text_passes_for_a_header(text, more):
    assert not [word for word in plain_words(f"subject:offer {text}:{more}") if ":" in word]


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=300), st.integers(0, len(MESSAGE)), st.integers(0, len(MESSAGE)))
def test_any_bytes_give_tokens(noise, start, end):
    for raw in (noise, MESSAGE[:start] + noise + MESSAGE[end:]):
        found = mail_tokens(raw)
        assert len(found) == len(set(found))
        assert found == mail_tokens(raw)
        assert all(found)
        assert found == [token.lower() for token in found]
        assert max(map(len, found)) < 8 * MAX_WORD_LENGTH
        "".join(found).encode()


@pytest.mark.sweep(8)
@pytest.mark.parametrize("piece", [
    b"a", b"1", b"1,", b"!", b".", b"a.", b"<", b"<a ", b"<a href=", b"\"'", b"http://", b"www.",
    b"a@", b"@", b"\xe4\xba\xba", b"=?", b"&#", b": ", b"x:y@", b"(", b"<a href=http://a/>", b"\n"])
def test_time_is_linear_in_a_hostile_message(piece):
    body = piece * (1_000_000 // len(piece))
    hostile = body[:100_000].replace(b"\n", b" ")
    head = b"".join(name + b": " + hostile + b"\n" for name in (
        b"Subject", b"From", b"Received", b"Date", b"Message-ID", b"X-Mailer"))
    for kind in (b"text/plain", b"text/html"):
        start = time.process_time()
        mail_tokens(head + b"Content-Type: " + kind + b"\n\n" + body)
        assert time.process_time() - start < 20


# The column


def test_a_column_of_tokens(write):
    write({"a.eml": MESSAGE, "b.mbox": FROM + MESSAGE + b"\n"})
    table = scan_mail(".", tokens=True)
    assert table.collect_schema()["tokens"] == pl.List(pl.String)
    assert table.select("tokens").collect()["tokens"].to_list() == [mail_tokens(MESSAGE)] * 2
    assert "tokens" not in scan_mail(".").collect_schema()
    # A header of that name.
    write({"c.eml": b"Tokens: 3\n\nBody"})
    assert scan_mail("c.eml", headers=["tokens"]).collect()["tokens"].to_list() == ["3"]
