"""One message, sound or not: its fields, and notes of what was wrong. Nothing makes it fail.

The target `messages` of scripts/fuzz tries any bytes; tests/fuzz runs it too.
"""

import base64
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from textnb.errors import ParameterError
from textnb.mail.html import MAX_TARGET_LENGTH, MAX_TARGETS, read_html
from textnb.mail.message import MailMessage, parse_message
from textnb.mail.parts import MAX_DEPTH, MAX_PARTS, split_multipart

SOUND = b"""\
From: =?utf-8?q?Ren=C3=A9?= <rene@example.org>
To: a@example.org,
\tb@example.org
Subject: Hello
Date: Fri, 1 Mar 2002 10:00:00 +0200
Message-ID: <1@example.org>
Received: one
received: two

Text.
"""


def parsed(raw, *headers):
    return parse_message(raw.encode() if isinstance(raw, str) else raw, headers)


def strings(message):
    fields = [message.message_id, message.from_, message.to, message.subject, message.headers,
              message.body, *message.links, *message.images, *message.attachments,
              *message.errors, *message.requested.values()]
    return [field for field in fields if field is not None]


def multipart(kind, *parts, boundary='b'):
    inner = "".join(f"--{boundary}\n{part}\n" for part in parts)
    return f"Content-Type: multipart/{kind}; boundary={boundary}\n\n{inner}--{boundary}--\n"


def plain(text):
    return f"Content-Type: text/plain\n\n{text}"


def html(text):
    return f"Content-Type: text/html\n\n{text}"


# Fields


def test_a_sound_message():
    message = parsed(SOUND, "received", "X-None")
    assert message == MailMessage(
        message_id="<1@example.org>", date=datetime(2002, 3, 1, 8, tzinfo=UTC),
        from_="René <rene@example.org>", to="a@example.org,\tb@example.org", subject="Hello",
        headers="From: René <rene@example.org>\nTo: a@example.org,\tb@example.org\n"
                "Subject: Hello\nDate: Fri, 1 Mar 2002 10:00:00 +0200\n"
                "Message-ID: <1@example.org>\nReceived: one\nreceived: two",
        body="Text.\n", html=False, links=(), images=(), attachments=(),
        requested={"received": "one\ntwo", "X-None": None}, errors=())
    assert [message.column(name) for name in ("from", "received", "text")] == [
        "René <rene@example.org>", "one\ntwo", "Hello\nText.\n"]
    with pytest.raises(KeyError):
        message.column("x-other")


def test_line_ends_and_a_byte_order_mark():
    # The folds of a header keep their white space; of other line ends nothing is left.
    assert parsed(SOUND.replace(b"\n", b"\r\n")) == parsed(SOUND)
    assert parsed(b"\xef\xbb\xbf" + SOUND) == parsed(SOUND)
    old = parsed(SOUND.replace(b"\n", b"\r"))
    assert (old.subject, old.body) == ("Hello", "Text.\n")
    assert old.errors == ("lines that end in a bare carriage return",)


@pytest.mark.parametrize(("date", "expected", "error"), [
    ("Fri, 1 Mar 2002 10:00:00 -0000", datetime(2002, 3, 1, 10, tzinfo=UTC), ""),
    ("1 Mar 02 10:00 EST", datetime(2002, 3, 1, 15, tzinfo=UTC), ""),
    ("Mon, 4 Feb 0102 10:00:00 +0000", datetime(2002, 2, 4, 10, tzinfo=UTC),
     "year of three digits"),
    ("Mon, 4 Feb 102 10:00:00 +0000", datetime(2002, 2, 4, 10, tzinfo=UTC), "year of three digits"),
    *((date, None, "bad date") for date in (
        "Fri, 31 Feb 2002 10:00:00 +0000", "Fri, 31 Dec 9999 23:00:00 -0200",
        "Fri, 1 Mar 99999 10:00:00 +0000", "soon"))])
def test_dates(date, expected, error):
    message = parsed(f"Date: {date}\n\nx")
    assert message.date == expected
    assert message.errors == ((f"{error}: {date}",) if error else ())


@pytest.mark.parametrize("date", ["", "9" * 300])
def test_dates_that_are_not_quoted_whole(date):
    message = parsed(f"Date: {date}\n\nx")
    assert (message.date, [error.split(":")[0] for error in message.errors]) == (None, ["bad date"])


def test_what_is_no_message():
    with pytest.raises(ParameterError, match="raw must be bytes; got 'str'"):
        parse_message("Subject: x")
    for names in (["a b"], ["a:"], [""], ["é"], [3], ["a", "a"]):
        with pytest.raises(ParameterError, match=r"^headers must be"):
            parse_message(b"", names)


@pytest.mark.parametrize(("value", "text", "errors"), [
    ("=?iso-8859-1?Q?caf=E9_au?= lait", "café au lait", ()),
    ("=?utf-8?b?Y2Fmw6k=?=", "café", ()), ("=?utf-8*fr?b?Y2Fmw6k?=", "café", ()),
    ("=?utf-8?q?a?= =?utf-8?q?b?=", "ab", ()),
    ("=?utf-8?q?caf=C3?=\n =?utf-8?q?=A9?=", "café", ()),
    ("=?utf-8?q?a?= b =?utf-8?q?c?=", "a b c", ()), ("=?utf-8?q?Really??=", "Really?", ()),
    ("=?gb2312?B?1tDOxA==?=", "中文", ()),
    ("=?windows-1251?b?z/Do4uXy?= =?utf-8?b?w6k=?=", "Приветé", ()),
    ("a =? b", "a =? b", ("bad encoded word: =? b",)), ("café", "café", ()),
    ("=?none-such?q?a=E9?=", "aé", ("unknown charset: none-such",)),
    ("=?utf-8?q?a=E9?=", "aé", ("charset not as declared: utf-8, read as windows-1252",)),
    ("=?utf-8?b?abcde?=", "=?utf-8?b?abcde?=", ("bad encoded word: =?utf-8?b?abcde?=",)),
    (b"caf\xe9", "café", ("charset not declared: read as windows-1252",)),
    ("=?utf-8?q?open", "=?utf-8?q?open", ("bad encoded word: =?utf-8?q?open",))])
def test_encoded_words(value, text, errors):
    raw = value.encode() if isinstance(value, str) else value
    message = parsed(b"Subject: " + raw + b"\n\nx")
    assert (message.subject, message.errors[:1]) == (text, errors)


# Bodies

MIXED = "Content-Type: multipart/mixed"
ENCODED = "Content-Transfer-Encoding: "


@pytest.mark.parametrize(("raw", "body", "errors"), [
    (b"", "", ["empty message"]), (b"\n\0 \r\n", "\0 \n", ["empty message"]),
    (b"Subject: x", "", []), (b"\nno head", "no head", ["no headers"]),
    (b"no head at all", "no head at all", ["no headers"]),
    (b"a: b\nno empty line", "no empty line", ["no empty line after the headers"]),
    (b"From a@b Fri Mar  1 10:00:00 2002\nA: b\n\nx", "x", []),
    (b"A: b\n>From a@b Fri Mar  1 10:00:00 2002\nC: d\n\nx", "x",
     ["mailbox line among the headers"]),
    (b": nameless\nA: b\n\nx", "x", ["malformed headers: InvalidHeaderDefect"]),
    (b" begins folded\nA: b\n\nx", "x", ["malformed headers: FirstHeaderLineIsContinuationDefect"]),
    # How it is encoded.
    (ENCODED + "quoted-printable\n\ncaf=C3=A9=\n!", "café!", []),
    (f"{ENCODED}BASE64\n\n{base64.b64encode('café'.encode()).decode()}", "café", []),
    (ENCODED + "base64\n\nY2Fm\n", "caf", []),
    (ENCODED + "base64\n\nYWJj!ZGVm", "abcdef", ["bad base64: InvalidBase64CharactersDefect"]),
    (ENCODED + "base64\n\nYWJjZA", "abcd", ["bad base64: InvalidBase64PaddingDefect"]),
    (ENCODED + "x-uuencode\n\nbegin 644 a\n#86)C\n`\nend\n", "abc", []),
    (ENCODED + "rot13\n\nabc", "abc", ["unknown transfer encoding: rot13"]),
    (ENCODED + "8bit; x\n\nabc", "abc", []),
    # What it is made of.
    (MIXED + "\n\ntext", "text", ["multipart without a boundary"]),
    (MIXED + "; boundary=b\n\ntext", "text", ["boundary not found"]),
    (MIXED + "; boundary=b\n\n--b\n\ntext", "text", ["no closing boundary"]),
    ("Content-Type: text/plain charset=x\n\ntext", "text",
     ["malformed content type: text/plain charset=x"]),
    (f"Content-Type: text/plain; name*{'9' * 5000}=a\n\ntext", "text",
     ["malformed parameters: ValueError"]),
    ("Content-Type: nonsense\n\ntext", "text", [])], ids=range(24))
def test_bodies_and_what_is_wrong_with_them(raw, body, errors):
    message = parsed(raw)
    assert (message.body, message.errors) == (body, tuple(errors))


def test_a_malformed_parameter_hides_no_name_of_another_header():
    message = parsed(f"Content-Type: text/plain; name*{'9' * 5000}=a\n"
                     'Content-Disposition: attachment; filename="a.exe"\n\ntext')
    assert message.attachments == ("a.exe",)
    assert message.errors == ("malformed parameters: ValueError",)


@pytest.mark.parametrize("parameters", [
    "boundary=abc (x)", 'boundary="abc" (x); y=z', 'x=";boundary=c"; boundary=abc',
    f"x={'y' * 9000}; boundary=abc", 'x="a\\";b"; boundary=abc', "boundary=abc; boundary=c",
    "boundary*0=a; boundary*1=bc", "name*=1; name*0=2; boundary=abc"])
def test_a_boundary_is_found(parameters):
    message = parsed(f"{MIXED}; {parameters}\n\n--abc\n\none\n--abc--\n")
    assert message.body == "one"


@pytest.mark.parametrize(("parameters", "name"), [
    ("filename=report (1)", "report (1)"), ('filename="a.exe" (x)', "a.exe"),
    ('filename="a;b.txt"; size=1', "a;b.txt"), ("filename*=none-such''%41", "A"),
    ("filename*=undefined''%41", "A"), ("filename*0*=utf-8''%C3; filename*1*=%A9", "é")])
def test_names_of_files(parameters, name):
    assert parsed(f"Content-Disposition: attachment; {parameters}\n\nx").attachments == (name,)


# HTML


@pytest.mark.parametrize(("markup", "text"), [
    ("<p>one<p>two", "one\ntwo"),
    ("V<!-- no -->ia<b>g</b><FONT color='red'>ra</FONT>", "Viagra"),
    ("<td>a</td><td>b</td>c<br>d", "a\nb\nc\nd"),
    ("a &lt;&#98;&gt;&nbsp;c &euro; &bogus;", "a <b> c € &bogus;"),
    ("<head><title>t</title><style>s</style></head>a<script>if (a<b) '<p>x'</script>b", "a\nb"),
    ('<a href="x>y" title="a>b">link</a>', "link"),
    ('<img src="data:' + "x" * 9000 + '">shown', "shown"),
    ("fr<sp", "fr"), ("", ""), ("a\0b", "ab"), ("<div>", "")])
def test_words_that_are_shown(markup, text):
    message = parsed(html(markup))
    assert (message.body, message.html, message.errors) == (text, True, ())


def test_html_that_is_too_large_or_too_deep_has_its_tags_cut_out():
    note = "HTML too large or too deep to build, its tags cut out"
    markup = ("<style>p {}</style><!-- <p>no --><p>one &amp; two<script>'<p>x'</script>"
              "<b>th</b>ree&#" + "9" * 5000 + ";")
    notes = []
    assert read_html(markup, notes, max_tags=3).text == "one & two\nthree\ufffd"
    assert notes == [note]
    assert read_html(markup, notes).text == "one & two\nthree\ufffd"
    assert read_html("<p><a href=1>x<img src=2 alt=y><script><a href=3>", [], max_tags=1) == (
        "x y", ["1"], ["2"])
    # As a tree: 5,000 paragraphs of 300 elements each, 200 MB.
    bomb = "".join(f'<b id=">{i}">' for i in range(300)) + "<p>x" * 5000
    assert parsed(html(bomb)).errors == (note,)


@pytest.mark.parametrize(("markup", "links", "images", "text"), [
    ('<a href="http://a.b/c?d=1&amp;e=2">x</a>', ["http://a.b/c?d=1&e=2"], [], "x"),
    ("<A title='> x' HREF = 'x y' href=z>x</A>", ["x y"], [], "x"),
    ("<a class=c href=http://a/b/>Via<a href=2>gra", ["http://a/b/", "2"], [], "Viagra"),
    ('<a href="\n http://a\n/b ">x', ["http://a/b"], [], "x"),
    ('<a href="">x<a name=y href>z', [], [], "xz"),
    ("<a href='mailto:a@b'>1<a href=#top>2<area href=3 alt=four><form action=5>",
     ["mailto:a@b", "#top", "3", "5"], [], "12\nfour"),
    ('<img src="cid:1" alt="Buy &lt;now&gt;">!', [], ["cid:1"], "Buy <now> !"),
    ("a<img alt=''>b<img alt=\"it's\">c", [], [], "ab it's c"),
    ('<img src="data:image/png;base64,AAAA">', [], ["data:image/png;base64,"], ""),
    ("<body background=1><table background=2><tr><td background=3>a<td>b<input src=4>", [],
     ["1", "2", "3", "4"], "a\nb"),
    # What the pattern of tags can't tell, the tree does.
    ('a<img src="x>y" alt="b<c">d<a href="e>f">g</a>', ["e>f"], ["x>y"], "a b<c dg"),
    # What is not shown has no targets.
    ("<!-- <a href=1> --><script>'<a href=2>'</script><head><a href=3></head>x", ["3"], [], "x"),
    ("<style><img src=1></style><!--[if mso]><img src=2 alt=two><![endif]-->x", [], [], "x"),
    # Marks of targets that a message brings itself.
    ("\ufdd00\ufdd1x&#xfdd0;0&#xfdd1;<a href=1>y", ["1"], [], "0x0y"),
    ("<a href='" + "x" * 9999 + "'>x", ["x" * MAX_TARGET_LENGTH], [], "x")])
def test_targets(markup, links, images, text):
    message = parsed(html(markup))
    assert (message.links, message.images) == (tuple(links), tuple(images))
    assert message.body == text
    assert message.column("links") == "\n".join(links)
    assert message.column("images") == "\n".join(images)


def test_targets_of_all_parts():
    message = parsed(multipart("alternative", plain("word " * 21), html("<a href=1>x")))
    assert (message.html, message.links) == (False, ("1",))
    message = parsed(multipart("mixed", html("<a href=1>x<img src=2>"), html("<a href=1>")))
    assert (message.links, message.images) == (("1", "1"), ("2",))
    message = parsed(multipart("mixed", *[html("<a href=1>x" * 1500)] * 2))
    assert len(message.links) == MAX_TARGETS
    assert message.errors == (f"targets of links and images beyond {MAX_TARGETS} not read",)


# Parts


def test_mixed_parts():
    message = parsed(multipart(
        "mixed", plain("one"), html("<p>two"), "Content-Type: image/png\n\nx",
        'Content-Type: text/plain\nContent-Disposition: attachment; filename="a b.txt"\n\nno',
        "Content-Type: text/plain; name=notes.txt\n\nthree",
        "Content-Disposition: attachment;\n filename*=utf-8''caf%C3%A9.pdf\n\nno",
        'Content-Type: application/x; name="=?utf-8?q?=C3=A9?="\n\nno',
        'Content-Type: application/x; name="ü"\n\nno'))
    assert (message.body, message.html, message.errors) == ("one\ntwo\nthree", True, ())
    assert message.attachments == ("image/png", "a b.txt", "notes.txt", "café.pdf", "é", "ü")


@pytest.mark.parametrize(("parts", "body", "from_html"), [
    ((plain("text"), html("<p>text")), "text", False),
    ((html("<p>markup"), plain("")), "markup", True),
    ((plain("Your reader shows no HTML."), html("word " * 100)), " ".join(["word"] * 100), True),
    ((plain("word " * 21), html("word " * 100)), "word " * 21, False),
    ((plain("short"), html("<p>short too")), "short", False),
    ((plain(" "), html("<p> ")), "", False),
    ((plain("a"), "Content-Type: text/calendar\n\nBEGIN"), "a", False)])
def test_alternatives(parts, body, from_html):
    message = parsed(multipart("alternative", *parts))
    assert (message.body, message.html) == (body, from_html)


def test_messages_within_a_message():
    inner = multipart("alternative", plain("deep"), html("<p>deep"), boundary="bb")
    forwarded = f"Content-Type: message/rfc822\n\nSubject: inner\n{plain('forwarded')}"
    attached = ("Content-Type: message/rfc822\nContent-Disposition: attachment\n\n"
                "Subject: x\n\nno")
    message = parsed("Subject: outer\n" + multipart("mixed", inner, forwarded, attached))
    assert (message.subject, message.body) == ("outer", "deep\nforwarded")
    assert message.attachments == ("message/rfc822",)
    digest = parsed(multipart("digest", "\nSubject: a\n\none", "\nSubject: b\n\ntwo"))
    assert digest.body == "one\ntwo"


def test_where_parts_end():
    assert split_multipart(b"--b\n1\n--b  \n2\r\n--bc\n--b--\nx\n--b\ny", b"b", 9) == (
        [b"1", b"2\r\n--bc"], True)
    assert split_multipart(b"a --b\n--b\n--b\n", b"b", 9) == ([b"", b""], False)
    assert split_multipart(b"", b"b", 9) == ([], False)
    assert split_multipart(b"--b\nx\n" * 9, b"b", 3) == ([b"x"] * 4, False)


@pytest.mark.parametrize(("raw", "body", "error"), [
    ("".join(f"{MIXED}; boundary=b{i}\n\n--b{i}\n" for i in range(MAX_DEPTH + 1)) + "\nlost", "",
     f"parts nested deeper than {MAX_DEPTH} not read"),
    (multipart("mixed", *[plain("x")] * (MAX_PARTS + 5)), "\n".join("x" * (MAX_PARTS - 1)),
     f"parts beyond {MAX_PARTS} not read"),
    ("a: b\n" * 200_000 + "\nbody", "body", "headers beyond 512 KiB not read"),
    ("Subject: " + "x" * 200_000 + "\n\nbody", "body",
     "header beyond 128 KiB not read: Subject")], ids=["depth", "parts", "headers", "header"])
def test_limits_are_noted(raw, body, error):
    message = parsed(raw)
    assert message.body == body
    assert error in message.errors
    if "header" in error:
        assert message.errors == (error,)
    if "Subject" in error:
        assert len(message.subject) == 128 << 10


# Hostile messages

MEGABYTE = 1 << 20
HTML = b"Content-Type: text/html\n\n"
BOUNDARY = b"Content-Type: multipart/mixed; boundary="
HOSTILE = {
    "nested": lambda: b"".join(BOUNDARY + b"b%d\n\n--b%d\n" % (i, i) for i in range(20_000)),
    "one boundary": lambda: (BOUNDARY + b"b\n\n--b\n") * 20_000,
    "rfc822": lambda: b"Content-Type: message/rfc822\n\n" * 30_000,
    "headers": lambda: b"a:b\n" * 250_000,
    "words": lambda: b"Subject: " + b"=?utf-8?q?a?= " * 70_000,
    "open words": lambda: b"Subject: =?a?q?" * 70_000,
    "divs": lambda: HTML + b"<div>" * 200_000,
    "spans": lambda: HTML + b"<span>" * 9_000 + b"</x>" * 9_000,
    "attributes": lambda: HTML + b"<p a='>' " + b"b1 c2 " * 150_000,
    "quotes": lambda: HTML + b"<a '\"" * 200_000,
    "scripts": lambda: HTML + b"<script>" * 125_000,
    "parameters": lambda: b"Content-Type: text/plain" + b';a="' * 250_000,
    "parameters of parts": lambda: BOUNDARY + b"b\n\n" + (
        b"--b\nContent-Type: text/plain; x=\"" + b";" * 8000 + b"\n\n") * 125,
    "continued": lambda: b"Content-Disposition: attachment" + b"".join(
        b";\n a*%d=b" % i for i in range(70_000)),
    "dashes": lambda: BOUNDARY + b"-\n\n" + b"\n---x" * 200_000,
    "line": lambda: b"Subject: " + b"x" * MEGABYTE + b"\n\n" + b"y" * MEGABYTE,
    "date": lambda: b"Date: " + b"1 " * 500_000,
    "base64": lambda: b"Content-Transfer-Encoding: base64\n\n" + b"A\n" * 500_000,
    "links": lambda: HTML + b"<a href=x>" * 100_000,
    "values": lambda: HTML + b"<img " + b"src =" * 200_000 + b">",
    "metas": lambda: HTML + b"<meta charset" * 80_000,
    "8-bit headers": lambda: b"a: \xd0\xcf\xe0\xa1\xb1\xd0\n" * 40_000,
    "8-bit parts": lambda: BOUNDARY + b"b\n\n" + (
        b"--b\nContent-Transfer-Encoding: quoted-printable\n\n"
        + b"=D0=CF=E0=A1=B1=D0" * 60 + b"\n") * 1000,
    "8-bit lines": lambda: b"\n" + b"\xe9\n" * 500_000,
    "8 bits": lambda: b"\n" + b"\x81" * MEGABYTE,
    "NULs": lambda: b"\0" * MEGABYTE,
}


@pytest.mark.sweep(9)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_takes_no_time(name):
    raw = HOSTILE[name]()
    started = time.process_time()
    message = parsed(raw)
    # About 0.4 s for the slowest; what is quadratic takes minutes.
    assert time.process_time() - started < 5
    assert all(string.encode() is not None for string in strings(message))


@pytest.mark.parametrize(("text", "heavy"), [
    (b"Subject: x\n\nx", ["polars", "numpy", "selectolax", "sklearn", "click"]),
    ("Subject: é\n\né".encode(), ["charset_normalizer"]),
    ("Subject: é\n\né".encode("latin-1"), ["charset_normalizer"])], ids=range(3))
def test_libraries_are_imported_only_if_a_message_needs_them(text, heavy):
    code = (f"import sys, textnb.mail.message as m; m.parse_message({text!r});"
            f"print(sorted(set({heavy!r}) & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True,
                          text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
