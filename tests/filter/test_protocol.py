"""spamd's protocol as bytes: what is asked, what is answered, and what is refused."""

import zlib

import pytest

from textnb.filter import protocol
from textnb.filter.protocol import Refused, Request
from textnb.filter.service import message_id
from textnb.filter.spamd_verdict import THRESHOLD, in_spamd_terms
from textnb.filter.verdict import Verdict

SPAM = in_spamd_terms(Verdict("spam", 7.0, True), 2.0)
HAM = in_spamd_terms(Verdict("ham", -7.0, True), 2.0)
MESSAGE = b"Subject: a\r\n\r\nbody\r\n"


def request(command, version=(1, 5)):
    return Request(command, version)


@pytest.mark.parametrize(("line", "command", "version"), [
    (b"CHECK SPAMC/1.2\r\n", "CHECK", (1, 2)), (b"PING SPAMC/1.5\n", "PING", (1, 5)),
    (b"REPORT_IFSPAM SPAMC/1.3\r\n", "REPORT_IFSPAM", (1, 3))])
def test_commands(line, command, version):
    parsed = protocol.parse_command(line)
    assert (parsed.command, parsed.version) == (command, version)


@pytest.mark.parametrize("line", [
    b"GET / HTTP/1.1\r\n", b"", b"CHECK\r\n", b"check SPAMC/1.2\r\n", b"CHECK SPAMC/x\r\n",
    b"EVIL SPAMC/1.2\r\n", b" CHECK SPAMC/1.2\r\n", b"CHECK SPAMC/1.2 x\r\n", b"\xff\xfe"])
def test_lines_that_are_no_command(line):
    with pytest.raises(Refused, match="no command") as refused:
        protocol.parse_command(line)
    assert refused.value.answer().startswith(b"SPAMD/1.0 76 EX_PROTOCOL ")


@pytest.mark.parametrize("text", [
    b"my secret", b"my secret: x\nmy secret: y", b"Content-length: my secret",
    b"Compress: my secret", b"User: my secret\x7f"])
def test_a_message_in_place_of_a_request_is_quoted_to_its_client_alone(text):
    with pytest.raises(Refused) as refused:
        protocol.parse_headers(request("CHECK"), text.split(b"\n"))
    assert "secret" not in str(refused.value)
    assert b"secret" in refused.value.answer()
    with pytest.raises(Refused) as refused:
        protocol.parse_command(text)
    assert "secret" not in str(refused.value)
    assert b"secret" in refused.value.answer()


def test_headers():
    asked = protocol.parse_headers(request("CHECK"), [
        b"Content-length: 12", b"User: al-ice_1", b"Compress: ZLIB", b"X-Unknown: y"])
    assert (asked.length, asked.user, asked.is_compressed) == (12, "al-ice_1", True)
    assert protocol.has_headers(request("PING", (1, 5)))
    assert not protocol.has_headers(request("PING", (1, 2)))


@pytest.mark.parametrize("name", ["o'neil", "a b", "bob=x", "müller", "voilà", "../eve", "x" * 128])
def test_names_of_users(name):
    assert protocol.parse_headers(request("CHECK"), [f"User: {name}".encode()]).user == name


@pytest.mark.parametrize(("lines", "why"), [
    ([b"Content-length 5"], "Name: value"), ([b"Content-length: -1"], "not a number"),
    ([b"Content-length: 5x"], "not a number"),
    ([b"Content-length: 1", b"content-length: 2"], "two"),
    ([b"User: a\tb"], "not a name"), ([b"User: " + b"a" * 129], "not a name"),
    ([b"User: a\xc2\x85b"], "not a name"), ([b"User:"], "not a name"),
    ([b"Compress: lzma", b"Content-length: 3"], "not zlib"),
    ([b"Compress: zlib"], "needs Content-length")])
def test_headers_that_are_refused(lines, why):
    with pytest.raises(Refused, match=why):
        protocol.parse_headers(request("CHECK"), lines)


PACKED = zlib.compress(b"a" * 1000)


def test_messages():
    assert protocol.message_of(Request("CHECK", (1, 5), 4), b"abcd", 10) == b"abcd"
    asked = Request("CHECK", (1, 5), len(PACKED), None, True)
    assert protocol.message_of(asked, PACKED, 1000) == b"a" * 1000


@pytest.mark.parametrize(("message", "length", "limit", "why"), [
    (b"abc", 4, 10, "is 4, and 3 bytes came"), (PACKED, len(PACKED), 999, "longer than 999"),
    (PACKED[:-6], len(PACKED) - 6, 1000, "cut"),
    (PACKED + b"more", len(PACKED) + 4, 1000, "4 bytes follow"),
    (b"\0" + PACKED[1:], len(PACKED), 1000, "inflated")],
    ids=["short", "long", "cut", "more", "damaged"])
def test_messages_that_are_refused(message, length, limit, why):
    with pytest.raises(Refused, match=why):
        protocol.message_of(
            Request("CHECK", (1, 5), length, None, message != b"abc"), message, limit)


# The forms of the answers are those that spamd 4.0.1 gave to the same requests.
@pytest.mark.parametrize(("command", "version", "before"), [
    ("CHECK", (1, 2), b"SPAMD/1.1 0 EX_OK\r\nSpam: True ; 10.0 / 5.0\r\n\r\n"),
    ("SYMBOLS", (1, 2), b"SPAMD/1.1 0 EX_OK\r\nSpam: True ; 10.0 / 5.0\r\n\r\nTEXTNB_SPAM\r\n"),
    ("SYMBOLS", (1, 5), b"SPAMD/1.1 0 EX_OK\r\nContent-length: 11\r\nSpam: True ; 10.0 / 5.0\r\n"
                        b"\r\nTEXTNB_SPAM"),
    ("REPORT_IFSPAM", (1, 2), b"SPAMD/1.1 0 EX_OK\r\nSpam: Yes ; 10.0 / 5.0\r\n\r\ntextnb: spam"),
    ("PROCESS", (1, 0), b"SPAMD/1.0 0 EX_OK\r\nX-Spam-"),
    ("PROCESS", (1, 2), b"SPAMD/1.1 0 EX_OK\r\nContent-length: 310\r\n\r\nX-Spam-"),
    ("PROCESS", (1, 5), b"SPAMD/1.1 0 EX_OK\r\nContent-length: 310\r\n"
                        b"Spam: True ; 10.0 / 5.0\r\n\r\nX-Spam-")])
def test_answers(command, version, before):
    got = protocol.answer(request(command, version), SPAM, MESSAGE)
    length = len(protocol.answer(request("PROCESS", (1, 0)), SPAM, MESSAGE)) - len(
        b"SPAMD/1.0 0 EX_OK\r\n")
    assert got.startswith(before.replace(b"310", b"%d" % length))


def test_a_report_of_ham_is_empty_if_spam_is_asked_for():
    assert protocol.answer(request("REPORT_IFSPAM"), HAM, MESSAGE).endswith(
        b"Content-length: 0\r\nSpam: No ; -4.0 / 5.0\r\n\r\n")
    assert b"textnb: ham" in protocol.answer(request("REPORT"), HAM, MESSAGE)


def test_a_report_has_the_deciding_terms_as_points():
    verdict = in_spamd_terms(Verdict("spam", 7.0, True), 2.0, [
        ("free!!", 3.26), ("a\r\nX-Spam: no\u202e", -0.5)])
    assert verdict.report == """\
textnb: spam, score 10.0 of 5.0 required
log-odds 7.000000, probability 0.999089

Content analysis details:   (10.0 points, 5.0 required)

 pts rule name              description
---- ---------------------- --------------------------------------------------
 3.3 TEXTNB_TERM            free!!
-0.5 TEXTNB_TERM            a??X-Spam: no?
 7.2 TEXTNB_REST            all other terms, the prior and the threshold
"""


def test_headers_alone_end_before_the_body():
    got = protocol.answer(request("HEADERS"), SPAM, MESSAGE).partition(b"\r\n\r\n")[2]
    assert got.endswith(b"Subject: a\r\n\r\n")
    assert got.startswith(b"X-Spam-Checker-Version: ")


@pytest.mark.parametrize(("status", "odds", "least", "score"), [
    ("spam", 2.0, 2.0, 5.0), ("spam", 1.999999, 2.0, 5.0), ("ham", 1.9999999, 2.0, 4.9),
    ("unsure", 3.0, 2.0, 4.9), ("spam", 1e9, 0.0, 999.9), ("ham", -1e9, 0.0, -999.9),
    ("ham", 3.0, float("inf"), -999.9), ("spam", 3.0, float("-inf"), 999.9),
    ("unsure", float("nan"), 0.0, 0.0), ("spam", float("inf"), 0.0, 999.9)])
def test_the_score_and_the_verdict_agree(status, odds, least, score):
    verdict = in_spamd_terms(Verdict(status, odds, False), least)
    assert verdict.score == score
    assert verdict.is_spam == (status == "spam") == (verdict.score >= THRESHOLD)


@pytest.mark.parametrize(("message", "found"), [
    (b"Subject: a\nMessage-ID: <a@b>\n\n", "<a@b>"), (b"message-id:\r\n <x y>\r\n\r\n", "<x_y>"),
    (b"Subject: a\n\nMessage-ID: <a@b>\n", None), (b"", None),
    (b"Message-Id: <\xff\x1b[2J>\n\n", "<_[2J>"),
    # No other text of the message is taken for one.
    (b"Message-ID: \r\nSubject: a\r\n\r\nb", None), (b"Message-ID: \n \n Subject: a\n\n", None),
    (b"Message-ID:\rSubject: a\n\n", None), (b"Subject: a\n\r\nMessage-ID: b\n", None),
    (b"\r\nMessage-ID: b\n", None)])
def test_message_ids_in_the_log(message, found):
    assert message_id(message) == found
