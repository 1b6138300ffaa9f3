"""Mail: messages, their parts and charsets, mailboxes, tokens, and the verdicts of two filters."""

from __future__ import annotations

import base64
import bz2
import codecs
import gzip
import io
import lzma
import os
import quopri
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import Header, decode_header, make_header
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.utils import format_datetime
from functools import cache
from html import escape
from pathlib import Path
from random import Random
from typing import Any

import textnb
from fuzzing.harness import Finding, in_memory, make_folder, one_in
from fuzzing.mutations import change
from textnb.files.require import Unsupported
from textnb.filter import headers as filter_headers
from textnb.filter.mailfilter import MailFilter
from textnb.filter.quick import QuickFilter
from textnb.filter.verdict import Verdict
from textnb.frames.mail import scan_mail
from textnb.mail import mbox
from textnb.mail.message import MAX_MESSAGE, MailMessage, read_message
from textnb.mail.tokens import tokens_of_message

WITHIN = ["textnb.mail", "textnb.filter"]
ABOUT = "mail messages, mailboxes and Maildirs, and verdicts of the two filters"
LONGEST = 300_000
# Bytes of an input but of the few that are to take long, if time is quadratic in something.
_USUAL_LENGTH = 8000
# Quotes that are not closed keep the attributes of a tag; an encoded word has an end.
_LONG_TAG = b"<p " + b" ".join(b"a%d" % number for number in range(40_000)) + b"'>"
_LONG_WORD = b"Subject: " + b"=?x?q?a" * 14_000 + b"\n\n"
_PACKED: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, bz2.compress, lzma.compress]
# Of the quick tests: each is fast.
INPUTS = 200
# The values of headers that all readers take apart alike.
_PARAMETERS = re.compile(r'[\w/-]+(?:\s*;\s*[\w*-]+=(?:[^\s;"\'()]+|"[^"\\]*"))*;?\s*')
# Charsets of composed messages.
_COMPOSED = ["utf-8", "koi8-r", "windows-1251", "iso-8859-2", "windows-1255", "gb2312", "big5",
             "shift_jis", "iso-2022-jp", "us-ascii"]
# By the Encoding Standard, these names mean charsets of Windows.
_READ_AS = {"iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874"}
_ENCODED = rb"(?i)[\x80-\xff\x1b]|charset|=\?|\*|transfer-encoding"
# A parameter of a part's header, which the library may fold.
_PARAMETER = re.compile(
    rb'(?m)^(Content-(?:Type|Disposition):(?:[^\n]|\n )*?\b(\w+)=(?:"[^"\n]*"|[^\s;"]+))$')
# The library also finds a charset for other names, as it ignores most punctuation in them.
_CHARSET = re.compile(r"[\w-]{0,60}")
# By the beginning of an error, what must be in a message that has it.
_CAUSES = {
    "charset": _ENCODED, "undecodable": _ENCODED, "unknown charset": _ENCODED,
    "bad encoded word": rb"=\?", "bad base64": rb"(?i)base64|=\?[^?]*\?b",
    "unknown transfer encoding": rb"(?i)transfer-encoding", "multipart": rb"(?i)multipart",
    "boundary": rb"(?i)multipart", "no closing boundary": rb"(?i)multipart",
    "malformed content type": rb"(?i)content-type", "bad date": rb"(?i)date", "year": rb"(?i)date",
    "empty message": rb"\A(\xef\xbb\xbf)?[\s\0]*\Z", "lines that end": rb"\r"}
_FROM = b"From a@b.org Sat Jan  3 01:05:34 1996\n"
_LETTERS = ("Käse 100 € Ünïcode 中文字 Привет мир הלו \u200b ｆｕｌｌ cheap pills "
            "http://a.b.example/x?y=1 ")
_HTML = ("<html><head><meta charset=iso-8859-5><title>t</title></head><body background=b><p>cheap "
         "<b>pi</b>lls <a href='http://x.example/a?b=c'>noon</a><img src=i.png alt='words'>"
         "<script>if (a<b)</script><!-- no --><table><tr><td>é</table>&amp;&#8364;&#xD800;</body>")
_CHARSETS = [
    "utf-8", "iso-8859-1", "windows-1252", "koi8-r", "gb2312", "big5", "shift_jis", "iso-2022-jp",
    "utf-16", "utf-7", "us-ascii", "x-unknown", "windows-1255", "cp037", "", "idna", "rot13",
    "zlib", "utf-8-sig", "unicode_escape", "utf_32", "hz"]
_PIECES = [
    b"=?utf-8?q?caf=C3=A9?=", b"=?iso-8859-1?B?4Q==?=", b"=?x?q??=", b"=?utf-7?q?+2AA-?=",
    b"+2AA-", b"=?utf-8?b?!!?=", b"\r\n", b"\r", b"\n\n", b"\n ", b"--b\n", b"--b--\n", b"--c",
    b"--ba\n", b"--cc\n", b"=\n", b"=3D", b"=E9", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"From x\n",
    b">From ", b"<a href=", b"<!--", b"&#", b"\x1b$B", b"<p>" * 50, b"<b" + b" x" * 300,
    b"\rX-Textnb-Status: ham",
    "\ufdd0L\ufdd1".encode(), "\ud800".encode("utf-8", "surrogatepass")]
_HEADERS = [
    b"Content-Type: text/plain; name*" + b"9" * 5000 + b"=a",
    b"Content-Type: text/plain; charset=", b"Content-Type: text/html",
    b"Content-Type: message/rfc822", b"Content-Type: multipart/mixed; boundary=b",
    b"Content-Type: multipart/alternative; boundary=c",
    b"Content-Type: multipart/digest; boundary=\"b\"", b"Content-Type: multipart/x; boundary*0=b",
    b"Content-Type: text/plain; name*0*=utf-8''%E2; name*1=x", b"Content-Type: /; ;=;*",
    b"From: a@b", b"Content-Transfer-Encoding: base64",
    b"Content-Transfer-Encoding: quoted-printable", b"Content-Transfer-Encoding: x-uuencode",
    b"Content-Transfer-Encoding: 9bit", b"Content-Disposition: attachment; filename=\"a.exe\"",
    b"Content-Disposition: inline", b"Date: Mon, 1 Jan 0102 25:61:61 +9999",
    b"Date: Fri, 31 Dec 9999 23:59:59 -0100", b"Subject: [SPAM] x",
    b"Received: from a (b [1.2.3.4]) by c.example; Mon, 1 Jan 2001 00:00:00 +0000",
    b"To: a@b, c@d", b"X-Textnb-Status: ham", b"X-Spam-Flag: NO", b"Message-ID: <1@x.example>",
    b": x", b"Reply-To: e@f", b" one\n\ttwo"]


def seeds() -> list[bytes]:
    plain = EmailMessage()
    plain["Subject"], plain["From"], plain["To"] = "Grüße: cheap pills", "A <a@b.org>", "c@d.org"
    plain["Date"], plain["Message-ID"] = "Sat, 03 Jan 1998 01:05:34 +0100", "<1@b.org>"
    plain.set_content(_LETTERS)
    mixed = EmailMessage()
    mixed["Subject"] = "noon"
    mixed.set_content("see you at noon\n")
    mixed.add_alternative(_HTML, subtype="html")
    mixed.add_attachment(b"\0\1\2", maintype="application", subtype="zip", filename="é.zip")
    mixed.add_attachment(plain)
    digest = (b"Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: one\n\nx\n--b\n\n"
              b"Subject: two\n\ny\n--b--\n")
    bodies = [f"Subject: x\nContent-Type: text/plain; charset={charset}\n\n".encode()
              + _LETTERS.encode(charset or "utf-8", "replace")
              for charset in ("koi8-r", "gb2312", "iso-2022-jp", "utf-16", "")]
    single = [bytes(plain), bytes(mixed), digest, *bodies, _HTML.encode()]
    return [*single, *(message.replace(b"\n", b"\r\n") for message in single),
            b"".join(_FROM + re.sub(rb"(?m)^From ", b">From ", message) + b"\n\n"
                     for message in single)]


def mutate(data: bytes, random: Random) -> bytes:
    if random.random() < 0.001:
        # So many levels that a reader that calls itself for each of them ends.
        return b"Content-Type: message/rfc822\n\n" * random.choice([20, 21, 1100]) + data[:100]
    if random.random() < 0.002:
        return random.choice([b"Content-Type: text/html\n\n" + data[:100] + _LONG_TAG,
                              _LONG_WORD + data[:100]])
    return _mutate(data[:_USUAL_LENGTH], random)[:_USUAL_LENGTH]


def _mutate(data: bytes, random: Random) -> bytes:
    head, gap, body = data.partition(b"\n\n")
    lines = head.split(b"\n")
    at = random.randrange(len(lines) + 1)
    match random.randrange(12):
        case 0 | 1:
            header = random.choice(_HEADERS)
            lines.insert(at, header + random.choice(_CHARSETS).encode()
                         if header.endswith(b"charset=") else header)
        case 2:
            del lines[at:at + 1]
        case 3:
            lines[at:at + 1] = [change(line, random, _PIECES) for line in lines[at:at + 1]]
        case 4:
            body = random.choice([base64.encodebytes, quopri.encodestring])(body[:20_000])
        case 5:
            charset = random.choice(_CHARSETS[:11])
            body = body.decode("utf-8", "replace").encode(charset, "replace")
        case 6:
            mark = random.choice([b"b", b"c"])
            kind = random.choice([b"mixed", b"alternative", b"digest", b"related"])
            lines = [b"Content-Type: multipart/%s; boundary=%s" % (kind, mark)]
            parts = [random.choice([data, body, head + gap])
                     for _ in range(random.choice([1, 2, 2, 9]))]
            # What only begins with a boundary is none.
            line = random.choice([b"", b"", b"--%sa\nend\n" % mark])
            body = b"".join(b"--%s\n%s\n%s" % (mark, part, line) for part in parts)
            body += b"--%s--\n" % mark
        case 7:
            line = random.choice([_FROM, b"From x\n", b"From a Mon Feb 30 1:00 GMT 2001 remote\n"])
            more = (_FROM + data) * random.choice([0, 1, 3])
            return line + data + random.choice([b"", b"\n", b"\n\n"]) + more
        case 8 if random.random() < 0.5:
            body = body[:body.rstrip(b"\r\n").rfind(b"\n") + 1]
        case 8:
            body = _HTML.encode(random.choice(["utf-8", "utf-16", "koi8-r"]), "replace")
        case 9:
            return data.replace(b"\n", b"\r\n") if b"\r" not in data else data.replace(
                *random.choice([(b"\r\n", b"\n"), (b"\n", b"")]))
        case 10:
            return change(data, random, _PIECES)
        case 11:
            body = change(body, random, _PIECES)
    return b"\n".join(lines) + (gap or b"\n\n") + body


@cache
def _filters() -> list[tuple[QuickFilter, QuickFilter, MailFilter]]:
    """Filters of several models, each in plain Python, so with a memory, and as a whole model."""
    folder = make_folder()
    rows = {"body": ["cheap pills now 100 €", "see you at noon мир"] * 6,
            "subject": ["cheap", "noon"] * 6, "label": ["spam", "ham"] * 6}
    tokens = {"label": rows["label"], "tokens": [body.split() for body in rows["body"]]}
    models = [
        textnb.TextClassifier(textnb.MultinomialNB(), text=["subject", "body"]).fit(rows),
        textnb.TextClassifier(textnb.BernoulliNB(), text="body", tokenizer=textnb.Tokenizer(
            ngram_range=(1, 2), strip_accents="unicode")).fit(rows),
        textnb.TextClassifier(textnb.ComplementNB(), text="body", tokenizer=textnb.Tokenizer(
            analyzer="char", ngram_range=(2, 3))).fit(rows),
        textnb.mail_classifier().fit(tokens)]
    found = []
    for n, model in enumerate(models):
        path = os.path.join(folder, f"{n}.textnb")
        model.save(path)
        found.append((QuickFilter(path, min_learned=0),
                      QuickFilter(path, min_learned=0, max_remembered=60),
                      MailFilter.load(path, min_learned=0)))
    return found


def check(data: bytes) -> int | None:
    random = Random(zlib.crc32(data))
    message, structure = read_message(data, ["x-mailer"])
    _check_message(data, message)
    if one_in(4, random) and not re.search(rb"(?i)\AFrom |\r|\0|utf.?(16|32)|=\n", data):
        _check_lines(data, message)
    if message.errors == ("no closing boundary",):
        _check_end(data, message)
    # The library takes quadratic time for some.
    if one_in(4, random) and len(data) <= _USUAL_LENGTH:
        _compare_with_library(data, message)
    if one_in(3, random):
        tokens = tokens_of_message(message, structure)
        if len(set(tokens)) < len(tokens) or any(token != token.lower() for token in tokens):
            raise Finding("tokens come twice, or in capitals", tokens)
        "\n".join(tokens).encode()
    if one_in(10, random):
        _check_composed(data, random)
    if one_in(3, random):
        _check_disarmed(data)
        _check_passed_on(data, message)
    if data.startswith(b"From ") or one_in(8, random):
        _check_mailbox(data, random)
    if one_in(40, random):
        for filters in _filters() if one_in(200, random) else [random.choice(_filters())]:
            _check_verdicts(data, *filters)
    if one_in(500, random):
        _check_files(data, random)
    if len(data) > _USUAL_LENGTH:
        # An attribute takes longer than a letter of the large bodies of this size.
        return 8 * len(data)
    return _read_large(data) if one_in(300, random) else None


def _read_large(data: bytes) -> int:
    """Read a message with a body of 200 kB, whose time and memory are compared; its size."""
    head, gap, body = data.partition(b"\n\n")
    large = head + gap + body * (200_000 // max(len(body), 1))
    read_message(large)
    return len(large)


def _check_message(data: bytes, message: MailMessage) -> None:
    texts = [message.headers, message.body, *message.links, *message.images, *message.attachments,
             *message.errors, *(text for text in (
                 message.message_id, message.from_, message.to, message.subject,
                 message.requested["x-mailer"]) if text is not None)]
    try:
        "\n".join(texts).encode()
    except UnicodeEncodeError as failure:
        raise Finding("a text is not Unicode", failure) from failure
    if len(message.errors) > 50 or len(message.links) + len(message.images) > 2000:
        raise Finding("a limit is passed", len(message.errors))
    for error in message.errors:
        for begin, cause in _CAUSES.items():
            if error.startswith(begin) and not re.search(cause, data):
                raise Finding("an error without a cause", error)


def _check_lines(data: bytes, message: MailMessage) -> None:
    """The ends of lines change nothing, unless a charset was guessed, or has others."""
    if any("charset" in error or "undecodable" in error for error in message.errors):
        return
    for name in re.findall(rb"(?i)charset\W*([\w-]+)", data):
        with suppress(LookupError, UnicodeError):
            if "\r\n".encode(name.decode()) != b"\r\n":
                return
    other, _ = read_message(data.replace(b"\n", b"\r\n"), ["x-mailer"])
    if _fields(other) != _fields(message):
        raise Finding("CRLF changes a message", f"{_fields(other)} instead of {_fields(message)}")


def _fields(message: MailMessage) -> list[object]:
    return [value for name, value in vars(message).items() if name not in ("headers", "errors")]


def _compare_with_library(data: bytes, message: MailMessage) -> None:
    """What the standard library reads from a message in which nothing is malformed."""
    # The library has no limit of parts and of their depth.
    if any(error.startswith("parts ") for error in message.errors):
        return
    try:
        other = message_from_bytes(re.sub(rb"\AFrom [^\r\n]*(\r\n?|\n)", b"", data))
        parts = [*_parts(other)]
        # The library takes boundaries that follow each other, also a closing one, for one.
        if re.search(rb"[\r\n](From |--[^\r\n]*[\r\n]+--)", data) or any(
                part.defects for part in parts):
            return
        decoded = [decode_header(each) for each in other.get_all("subject", [])]
        if not all(_CHARSET.fullmatch(charset or "") for each in decoded for _, charset in each):
            return
        theirs = [str(make_header(each)) for each in decoded]
        # Longer names are cut.
        names = {_letters_of(name) for part in parts
                 if len(name := part.get_filename() or "") < 256
                 and not part.is_multipart() and all(
                     _PARAMETERS.fullmatch(str(part.get(name, "a")))
                     for name in ("Content-Disposition", "Content-Type"))}
    except (LookupError, ValueError, TypeError, HeaderParseError):
        return
    own = message.subject or ""
    # The library keeps surrogates, which no UTF-8 holds, and encoded words with white space.
    text = " ".join(theirs).encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    is_read = "\ufffd" not in text and "=?" not in text
    if is_read and "".join(own.split()) != "".join(text.split()):
        raise Finding("a subject is read otherwise", f"{own!r} and {theirs!r}")
    lost = names - {*map(_letters_of, message.attachments)}
    if "\ufffd" not in "".join(message.attachments) and any(map(str.isalnum, lost)):
        raise Finding("a name of an attachment is lost", f"{names} of {message.attachments}")
    if (any("charset" in error or "undecodable" in error or "parameters" in error
            for error in message.errors)
            or (message.errors and re.search(rb"\r(?!\n)", data))) or any(
            part.get_content_type() not in ("text/plain", "multipart/mixed", "message/rfc822")
            # An encoding of parts is forbidden; readers undo it or not. The library keeps the line
            # breaks of a header, and the white space at its end.
            or (part.get_content_type() != "text/plain" and "Content-Transfer-Encoding" in part)
            or re.search(r"\n|\s\Z", str(part.get("Content-Transfer-Encoding", "")))
            for part in parts):
        return
    texts = list[str]()
    for part in parts:
        if part.get_content_maintype() == "text" and (
                part is other or part.get_content_disposition() != "attachment"):
            if not _CHARSET.fullmatch(name := part.get_content_charset("utf-8")):
                return
            try:
                charset = codecs.lookup(name).name
                texts.append(part.get_payload(decode=True).decode(_READ_AS.get(charset, charset)))
            except (LookupError, ValueError):
                return
    if "\n".join(texts).split() != message.body.split():
        raise Finding("a body is read otherwise", f"{message.body!r} and {texts}")


def _letters_of(name: str) -> str:
    return re.sub(r"[^a-z0-9é]", "", name.lower())


def _check_end(data: bytes, message: MailMessage) -> None:
    """Parts without the boundary at their end are those with it."""
    if not (found := re.search(rb"(?i)\A(?:[^\n]+\n)*?Content-Type: multipart/mixed;\s+boundary="
                               rb"\"?([^\";\s]+)", data)):
        return
    ended, _ = read_message(data + b"\n--" + found[1] + b"--\n", ["x-mailer"])
    if [*message.errors, *ended.errors] == ["no closing boundary"] and (
            ended.body.split() != message.body.split()):
        raise Finding("a part without an end is lost", f"{message.body!r} and {ended.body!r}")


def _parts(message: Any, depth: int = 0) -> Iterator[Any]:
    """A message and its parts, but none within an attachment."""
    yield message
    if message.is_multipart() and (not depth or message.get_content_disposition() != "attachment"):
        for part in message.get_payload():
            yield from _parts(part, depth + 1)


def _check_composed(data: bytes, random: Random) -> None:
    """A message that the standard library composes of an input's words says what it was given."""
    raw, body, expected = _composed(data, random)
    own, structure = read_message(random.choice([raw, raw.replace(b"\n", b"\r\n")]))
    read = {name: getattr(own, name) for name in expected}
    # Between what is encoded and what is not, the library adds a space.
    read["subject"] = " ".join((own.subject or "").split())
    if read != expected or own.body.split() != body:
        raise Finding("a composed message is read otherwise",
                      f"{read} and {own.body!r} instead of {expected} and {body}")
    tokens = {word.lower() for word in body if word.isascii()}
    tokens |= {f"subject:{word.lower()}" for word in (own.subject or "").split() if word.isascii()}
    tokens |= {f"link:host:{link.split('/')[2]}" for link in own.links}
    if lost := tokens - {*tokens_of_message(own, structure)}:
        raise Finding("tokens of a composed message are lost", lost)


def _composed(data: bytes, random: Random) -> tuple[bytes, list[str], dict[str, Any]]:
    """A message, the words of its body, and its other fields."""
    charset, encoding = random.choice(_COMPOSED), random.choice(["base64", "quoted-printable"])
    # The library writes headers of shift_jis so.
    codec = "iso-2022-jp" if charset == "shift_jis" else charset
    words = [word for word in re.findall(
        r"[^\W\d_]{1,20}", _LETTERS + data[:500].decode("utf-8", "replace"))
        if word.encode(codec, "ignore").decode(codec) == word]
    subject, sender, plain, shown, alt, hidden = (
        " ".join(random.choices(words, k=random.randrange(1, n))) for n in (20, 4, 30, 30, 4, 9))
    link, image = (f"http://{random.randrange(999)}.example/{name}?a=1&b=2" for name in "ab")
    header = Header(subject, charset)
    if charset != "us-ascii":
        header.append(f" {sender}", "utf-8")
        subject += f" {sender}"
    html = EmailMessage()
    html.set_content(
        f"<html><head><meta charset={charset}><title>{hidden}</title></head><body><!-- {hidden} -->"
        f"<p>{shown}<script>{hidden}</script><style>{hidden}</style><a href='{escape(link)}'> "
        f"{shown}</a><img alt='{alt}' src=\"{escape(image)}\"></body></html>",
        subtype="html", charset=charset, cte=encoding)
    if random.random() < 0.5:
        # The document itself declares it.
        html.del_param("charset")
    kind = random.choice(["plain", "html", "alternative"])
    message = html if kind == "html" else EmailMessage()
    if kind != "html":
        message.set_content(plain, charset=charset, cte=encoding)
    if kind == "alternative":
        message.make_alternative()
        message.attach(html)
    names = random.choice([[], [f"{sender}.zip"]])
    for name in names:
        message.add_attachment(b"\0", maintype="application", subtype="zip", filename=name)
    raw = message.as_bytes()
    if random.random() < 0.3:
        raw = b"Content-Type: multipart/digest; boundary=b\n\n--b\n\n" + raw + b"\n--b--\n"
    if random.random() < 0.2:
        # Of two values of a parameter, the first one counts.
        raw = _PARAMETER.sub(rb"\1; \2=other", raw)
    moment = datetime.fromtimestamp(random.randrange(1 << 31), timezone(timedelta(
        minutes=random.randrange(-720, 840))))
    head = (f"Subject: {header.encode()}\nTo: c@d.org\nTo: e@f.org\n"
            f"From: {Header(sender, charset).encode()} <a@b.org>\nMessage-ID: <1@b.org>\n"
            f"Date: {format_datetime(moment)}\n")
    # A short plain text with less than half of the words of the HTML is no alternative to it.
    text, n = f"{shown} {shown} {alt}".split(), len(plain.split())
    is_html = kind == "html" or (kind == "alternative" and n <= 20 and 2 * n < len(text))
    has_html = kind != "plain"
    return head.encode() + raw, text if is_html else plain.split(), {
        "subject": subject, "from_": f"{sender} <a@b.org>", "to": "c@d.org\ne@f.org",
        "message_id": "<1@b.org>", "date": moment, "html": is_html, "errors": (),
        "links": (link,) * has_html, "images": (image,) * has_html, "attachments": tuple(names)}


def _check_passed_on(data: bytes, message: MailMessage) -> None:
    """A message that is passed on with its verdict is read as before.

    (Where "\\r" alone ends lines, the "\\n" after the verdict changes what ends them.)
    """
    if b"\n" not in data or re.search(rb"\r(?!\n)", data):
        return
    verdict = Verdict("ham", -1.0, calibrated=True)
    offset, header = filter_headers.status_line(data, verdict)
    passed = data[:offset] + header + data[offset:]
    other, _ = read_message(passed, ["x-mailer"])
    if _fields(other) != _fields(message):
        raise Finding("a verdict changes a message", f"{_fields(other)} and {_fields(message)}")
    headers = BytesHeaderParser().parsebytes(passed)
    if headers[filter_headers.STATUS] != verdict.header:
        raise Finding("a verdict is read otherwise", headers[filter_headers.STATUS])


def _check_disarmed(data: bytes) -> None:
    """Nobody reads a forged verdict in a message that is passed on without one."""
    changed, last = [], 0
    for at, text in filter_headers.forged_header_prefixes(data):
        changed += [data[last:at], text]
        last = at
    disarmed = b"".join([*changed, data[last:]])
    # A reader whose lines end in "\n" alone, and one for whom "\r" alone ends a line too.
    head = re.split(rb"\n\r?\n" if b"\n" in data else rb"\r\r", disarmed)[0]
    if (re.search(rb"(?i)(?:^|[\r\n])X-Textnb-Status[ \t]*:", head)
            or "X-Textnb-Status" in BytesHeaderParser().parsebytes(disarmed)):
        raise Finding("a forged verdict stays", disarmed)


def _check_mailbox(data: bytes, random: Random) -> None:
    """A mailbox is read alike in all pieces, loses nothing, and is read as it was written."""
    whole = _split(data, 1 << 20)
    if b"\r" not in data:
        other = [raw.replace(b"\r\n", b"\n") for raw, _ in _split(
            data.replace(b"\n", b"\r\n"), 2 << 20)]
        if other != [raw for raw, _ in whole]:
            raise Finding("CRLF changes a mailbox", f"{other} instead of {whole}")
    size = random.choice([1, 2, 5, 100]) if len(data) < 3000 else 1000
    in_pieces = _split(data, 400, piece=400)
    if _split(data, size, piece=400) != in_pieces:
        raise Finding("a mailbox in pieces is read otherwise", size)
    for messages in (whole, in_pieces):
        kept = b"".join(raw for raw, _ in messages)
        if _letters(kept) != _letters(data.removeprefix(b"\xef\xbb\xbf")):
            raise Finding("a mailbox loses bytes", f"{kept!r} of {data!r}")
    limit = random.choice([10, 100, 1000])
    cut, full = ([raw[:limit].rstrip(b"\r\n") for raw, _ in each] for each in (
        _split(data, 1 << 20, largest=limit), whole))
    if cut != full:
        raise Finding("a mailbox with a limit is cut elsewhere", f"{limit}: {cut} and {full}")
    twice = [raw.rstrip(b"\r\n") for raw, _ in _split(
        (_FROM + data.rstrip(b"\r\n") + b"\n\n") * 2, 1 << 20)]
    if twice[:len(twice) // 2] != twice[len(twice) // 2:]:
        raise Finding("a message is read otherwise when it comes again", twice)
    lines = re.sub(rb"(?m)^(>*From )", rb">\1", data.replace(b"\r", b"").strip(b"\n")) + b"\n"
    if re.match(rb"[!-9;-~]+:", lines) and b"\n\n" in lines:
        again = [raw.partition(b"\n")[2] for raw, _ in _split((_FROM + lines + b"\n") * 2, 1 << 20)]
        own = re.sub(rb"(?m)^>(>*From )", rb"\1", lines)
        if again != [own] * 2:
            raise Finding("a mailbox is read otherwise than written", f"{again} instead of {own!r}")


def _letters(data: bytes) -> bytes:
    return re.sub(rb"[\r\n]|>+(?=From )", b"", data)


def _split(
    data: bytes, size: int, piece: int = mbox.PIECE_SIZE, largest: int = MAX_MESSAGE
) -> list[tuple[bytes, Any]]:
    """The messages of a mailbox of which so many bytes come at a time, with lines in pieces.

    A message is cut at the size of the ``largest``.
    """
    class Pieces(io.BytesIO):
        def read1(self, wanted: int | None = -1) -> bytes:
            return self.read(min(size, wanted or size))

    before = vars(mbox).copy()
    vars(mbox).update(PIECE_SIZE=piece, MAX_MESSAGE=largest)
    try:
        return list(mbox.split_mailbox(Pieces(data)))
    finally:
        vars(mbox).update(before)


def _check_verdicts(
    data: bytes, quick: QuickFilter, remembering: QuickFilter, whole: MailFilter
) -> None:
    try:
        verdict = quick.judge(data)
    except Unsupported:
        return
    other = whole.judge(data)
    near = abs(verdict.log_odds - other.log_odds) <= 1e-9 * max(1.0, abs(other.log_odds))
    if not near or (verdict.status, verdict.reason, verdict.errors) != (
            other.status, other.reason, other.errors):
        raise Finding("the filters differ", f"{verdict} and {other}")
    terms, others = quick.deciding_terms(data, 5), whole.deciding_terms(data, 5)
    if remembering.judge(data) != verdict or remembering.deciding_terms(data, 5) != terms:
        raise Finding("what was remembered changes a verdict", verdict)
    if any(abs(a - b) > 1e-9 for (_, a), (_, b) in zip(terms, others, strict=True)):
        raise Finding("the terms that decide differ", f"{terms} and {others}")


def _check_files(data: bytes, random: Random) -> None:
    """A table of mail has the fields of its messages, whatever the names of files are."""
    with tempfile.TemporaryDirectory(prefix="textnb-fuzz-", dir=in_memory()) as folder:
        for part in ("cur", "new", "tmp"):
            (Path(folder) / part).mkdir()
        flags = random.choice(["", ":2,", ":2,FS", ":2,?", ":1,x", ".eml", ".gz", "é"])
        # The same name in both is that of two messages.
        parts = random.choice([["cur"], ["new"], ["cur", "new"]])
        for part in parts:
            (Path(folder) / part / f"1{flags}").write_bytes(random.choice(_PACKED)(data))
        rows = scan_mail(folder, tokens=True).collect().to_dicts()
        message, structure = read_message(data)
        expected = [message.subject, message.body, tokens_of_message(message, structure),
                    "".join(re.findall(r"^:2,([A-Za-z]*)$", flags))]
        if [[row[name] for name in ("subject", "body", "tokens", "flags")] for row in rows] != (
                [expected] * len(parts)):
            raise Finding("a table of mail differs from its messages", f"{rows} and {expected}")
