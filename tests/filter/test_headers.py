"""The headers of a verdict in a message: their place, and the forged ones that leave it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textnb.filter.headers import forged_header_prefixes, status_line, with_headers
from textnb.filter.verdict import Verdict
from textnb.mail.message import parse_message

SPAM = b"Subject: a\n\ncheap pills\n"


@pytest.mark.parametrize(("message", "before"), [
    (SPAM, b""), (SPAM.replace(b"\n", b"\r\n"), b""),
    (b"From a@b Mon Jan  1 00:00:00 2024\n" + SPAM, b"From a@b Mon Jan  1 00:00:00 2024\n"),
    (b"\n\ncheap pills", b""), (b"cheap pills", b""), (b"\xff\0\n\xfe cheap pills \r\r\n", b""),
    (b"From a@b Mon\r\n" + SPAM.replace(b"\n", b"\r\n"), b"From a@b Mon\r\n"),
    (b"X-Textnb-Status: ham\n" + SPAM, b""),
    # The header does not take what continues another.
    (b" folded\n\tmore\n" + SPAM, b" folded\n\tmore\n")], ids=range(9))
def test_the_status_goes_before_all_headers(message, before):
    at, line = status_line(message, Verdict("spam", 7.0, False))
    assert message[:at] == before
    ending = b"\r\n" if message.partition(b"\n")[0].endswith(b"\r") else b"\n"
    assert line == (b"X-Textnb-Status: spam; log-odds=7.000000; probability=0.999089; "
                    b"calibrated=no" + ending)


@pytest.mark.parametrize("message", [
    SPAM, SPAM.replace(b"\n", b"\r\n"), b"\n" + SPAM, b"pills\n",
    b"From a@b Mon Jan  1 00:00:00 2024\n" + SPAM])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["nothing", "a mark"])
def test_a_message_with_its_status_is_read_as_before(mark, message):
    message = mark + message
    at, line = status_line(message, Verdict("spam", 7.0, False))
    before, after = parse_message(message), parse_message(message[:at] + line + message[at:])
    assert (after.subject, after.body) == (before.subject, before.body)


def test_a_line_that_would_continue_the_status_becomes_the_body():
    at, line = status_line(b" a\n b", Verdict("spam", 7.0, False))
    assert at == 3
    assert line.endswith(b"calibrated=no\n\n")
    assert with_headers(b" b", ["X-Own: 1", "X-Two: 2"]) == b"X-Own: 1\nX-Two: 2\n\n b"
    assert with_headers(b"\tb", ["X-Own: 1"], only_headers=True) == b"X-Own: 1\n\n"


@pytest.mark.parametrize(("message", "written"), [
    (b"X-Textnb-Status: ham\nTo: b\n\nx", b"X-Original-X-Textnb-Status: ham\nTo: b\n\nx"),
    (b"\xef\xbb\xbfX-Textnb-Status: ham\n\n", b"\xef\xbb\xbfX-Original-X-Textnb-Status: ham\n\n"),
    (b"To: b\r\nx-textnb-STATUS : ham\r\n\r\nx",
     b"To: b\r\nX-Original-x-textnb-STATUS : ham\r\n\r\nx"),
    (b"From a\nX-Textnb-Status:spam\nX-Textnb-Status:ham",
     b"From a\nX-Original-X-Textnb-Status:spam\nX-Original-X-Textnb-Status:ham"),
    # Some readers find an empty line in the first line end, others do not.
    (b"To: b\r\r\nX-Textnb-Status: ham\nX: y\n\nx",
     b"To: b\r\r\nX-Original-X-Textnb-Status: ham\nX: y\n\nx"),
    (b"To: b\r\rY: z\nX-Textnb-Status: ham", b"To: b\r\rY: z\nX-Original-X-Textnb-Status: ham"),
    *((message, message) for message in (
        b"To: b\n\nX-Textnb-Status: ham\n", b"To: b\nY: X-Textnb-Status: ham\n\n", b"\n\n",
        b"To: b\r\rX-Textnb-Status: ham\r",
        b"X-Textnb-Status-Other: ham\n\n", b"To: b\n X-Textnb-Status: ham\n\n"))])
def test_a_forged_status_gets_another_name(message, written):
    pieces, begin = b"", 0
    for at, name in forged_header_prefixes(message):
        pieces, begin = pieces + message[begin:at] + name, at
    assert pieces + message[begin:] == written


def test_a_forged_status_in_a_large_message_is_found_soon():
    # A search that goes back takes hours, which the limit of a test ends.
    assert forged_header_prefixes(bytearray(b"X-Textnb-Status" * 1_000_000)) == []
    assert forged_header_prefixes(b"\n" * 10_000_000) == []
    for line in (b"X-Spam-Flag: a\r \r", b"X-Spam-Flag: a\r\r", b"X-Spam-Flag: a" + b"\r" * 5000):
        with_headers(b"\n" + line * (5_000_000 // len(line)) + b"\n", [])


def test_headers_that_the_sender_forged_are_left_out():
    message = (b"From a Thu Aug 22 13:17:22 2002\nX-Spam-Status: No,\n\tscore=-9\nSubject: a\n"
               b"x-textnb-status: ham\nno header\nX-SPAM-FLAG : NO\nTo: b\n\nX-Spam-Flag: NO\n")
    assert with_headers(message, ["X-Spam-Flag: YES"]) == (
        b"From a Thu Aug 22 13:17:22 2002\nX-Spam-Flag: YES\nSubject: a\nno header\n"
        b"To: b\n\nX-Spam-Flag: NO\n")


@pytest.mark.parametrize(("message", "written"), [
    (b"From: a\nX: y\rX-Spam-Flag: NO\nTo: b\n\nx", b"X-Own: 1\nFrom: a\nX: y\nTo: b\n\nx"),
    (b"X: y\rX-Spam-Flag: NO\r\tno\rX-Spam-Level: *\rTo: b\n\nx", b"X-Own: 1\nX: y\rTo: b\n\nx"),
    (b"X-Spam-Flag: NO\rX-Spam-Level: *\rTo: b\n\nx", b"X-Own: 1\nTo: b\n\nx"),
    (b"From a\rX-Spam-Flag: NO\nTo: b\n\nx", b"From a\nX-Own: 1\nTo: b\n\nx"),
    (b" a\rX-Spam-Flag: NO\nTo: b\n\nx", b" a\nX-Own: 1\nTo: b\n\nx"),
    (b"X: y\r\r\nX-Spam-Flag: NO\r\r\nTo: b\r\r\n\r\nx",
     b"X-Own: 1\r\nX: y\r\r\nTo: b\r\r\n\r\nx"),
    # If lines end in \r alone, the body stays as it is.
    (b"To: b\rX-Spam-Flag: NO\r\rX-Spam-Flag: NO\r", b"X-Own: 1\nTo: b\r\rX-Spam-Flag: NO\r"),
    # Here no reader finds a header, and an empty line instead would be the end of all headers.
    (b"To: b\n\rX-Spam-Flag: NO\nX: y\n\nx", b"X-Own: 1\nTo: b\n\rX-Spam-Flag: NO\nX: y\n\nx")])
def test_forged_headers_of_readers_whose_lines_end_in_a_carriage_return(message, written):
    assert with_headers(message, ["X-Own: 1"]) == written


# Hypothesis tries the constants of the package too, such as the names of forged headers.
@given(st.binary(max_size=200).map(lambda raw: raw.replace(b"q", b"\n").replace(b"s", b"\r\n"))
       .filter(lambda raw: not re.search(rb"(?i)x-(textnb|spam)-", raw)))
def test_a_message_keeps_its_other_bytes(raw):
    written = with_headers(raw, ["X-Own: 1"])
    # No header that is left out is in it, so all stays but for our line.
    before, after = re.split(rb"X-Own: 1\r?\n", written, maxsplit=1)
    # A body that begins as the continuation of a header is parted from ours by an empty line.
    body = re.sub(rb"^\r?\n(?=[ \t][^\n]*\Z)", b"", after)
    assert raw in (before + after, before + body)
    parse_message(written)
