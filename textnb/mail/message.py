"""One mail message, whatever its bytes: fields to classify by, and notes of what was malformed.

    bytes ─> header lines ─> decoded fields
          └> MIME parts ───> text, names of attachments

The headers are parsed by the standard library. It parses nested parts in time that is quadratic in
their depth, and by recursion without limit, so a body is divided at its boundaries here.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import Message
from email.parser import BytesParser
from email.utils import collapse_rfc2231_value, parsedate_to_datetime
from typing import NamedTuple

from textnb.errors import ParameterError
from textnb.mail.charset_guess import Guess
from textnb.mail.charsets import Notes, charset_of_html, decoded, header_text, note, valid
from textnb.runtime.values import Value

# Servers let through some tens of MiB.
MAX_MESSAGE, BEYOND = 64 << 20, "message beyond 64 MiB not read"
# Mailers nest parts to about 5, chains of forwarded messages to 10 or so.
MAX_DEPTH = 20
# Digests of mailing lists hold some hundreds; each part costs as much as a small message.
MAX_PARTS = 1000
# Above what servers let through: Exchange Online 256 KiB, Postfix 100 KiB for one header.
MAX_HEADERS, MAX_HEADER = 512 << 10, 128 << 10
# What divides a parameter list in the standard library is quadratic in its length.
_MAX_PARAMETERS = 8 << 10
# A text/plain alternative of fewer words may just say that the message is in HTML.
STUB_WORDS = 20

_HEADER_LINES = re.compile(
    rb"(?:(?:[!-9;-~]*+:|[ \t]|>?From [^\r\n]*?\d\d?:\d\d)[^\r\n]*+(?:\r?\n|\r|\Z))*+")
_ENVELOPE = re.compile(rb"^>?From [^\r\n]*(?:\r?\n|\r|\Z)", re.M)
_FIRST_LINE = re.compile(rb"From [^\r\n]*+(?:\r?\n|\r|\Z)")
_HEADER_NAME = re.compile(r"[!-9;-~]+")
_PLAIN = ("text/plain", "text/enriched", "text/richtext")
_STRUCTURE = ("content-type", "content-disposition", "content-transfer-encoding")


class MailMessage(Value):
    """What `parse_message` found: see there."""

    message_id: str | None
    date: datetime | None
    from_: str | None
    to: str | None
    subject: str | None
    headers: str
    body: str
    html: bool
    links: tuple[str, ...]
    images: tuple[str, ...]
    attachments: tuple[str, ...]
    requested: dict[str, str | None]
    errors: tuple[str, ...]

    def __repr__(self) -> str:
        subject = self.subject if self.subject is None else self.subject[:60]
        return (f"MailMessage(subject={subject!r}, {len(self.body):,} characters, "
                f"{len(self.attachments)} attachments, {len(self.errors)} errors)")

    def column(self, name: str) -> str | None:
        """A column of text, as a mail table has it: of a field, or of a header asked for.

        ``text`` is the subject and the body, for models of plain texts; ``links`` and ``images``
        have a target on each line.
        """
        if name == "text":
            return f"{self.subject or ''}\n{self.body}"
        if name in ("message_id", "to", "subject", "headers", "body"):
            value: str | None = getattr(self, name)
            return value
        if name in ("links", "images"):
            return "\n".join(getattr(self, name))
        return self.from_ if name == "from" else self.requested[name]


class _Text(NamedTuple):
    text: str
    html: bool


def check_headers(headers: Sequence[str]) -> list[str]:
    """The names, once they are seen to be names of headers.

    Raises
    ------
    ParameterError
        If they are not a list of different names without spaces and colons.
    """
    names = [headers] if isinstance(headers, str) else list(headers)
    for name in names:
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ParameterError.out_of_range(
                "headers", "names of headers, such as 'received'", name)
    if len(set(names)) < len(names):
        raise ParameterError.out_of_range("headers", "different names", names)
    return names


def parse_message(raw: bytes, headers: Sequence[str] = ()) -> MailMessage:
    """Fields of one mail message (RFC 5322, MIME). No bytes make it fail.

    Parameters
    ----------
    raw : bytes
        The message; a first line ``From ...``, as in mbox files, is left out.
    headers : sequence of str
        Names of further headers that are wanted, in any case.

    Returns
    -------
    MailMessage
        ``message_id``, ``from_``, ``to``, ``subject`` (str, decoded; None if absent; several
        headers of a name, one per line); ``date`` (datetime in UTC, or None); ``headers`` (str, all
        header lines, unfolded and decoded); ``body`` (str: the text parts that are no attachments;
        of alternatives the plain one, or the HTML one where the plain one is a stub); ``html``
        (bool: whether some of the body came from HTML); ``links`` and ``images`` (targets of links
        and forms, and sources of images, of all HTML parts, as they stand there, in order, with
        those that come again; ``data:`` without its data); ``attachments`` (names, or else content
        types, of the parts that were not read, and names of those that were); ``requested`` (dict
        from the names asked for to values, like ``subject``); ``errors`` (tuple of str, each
        ``"kind"`` or ``"kind: detail"``: what was malformed, or beyond a limit and not read).

    Raises
    ------
    ParameterError
        If ``raw`` is not bytes, or a name is not one of a header.

    Examples
    --------
    >>> raw = b"Subject: =?utf-8?q?caf=C3=A9?=\\nX-Mailer: x\\n\\nHi"
    >>> message = parse_message(raw, ["x-mailer"])
    >>> message.subject, message.body, message.requested, message.errors
    ('café', 'Hi', {'x-mailer': 'x'}, ())
    >>> parse_message(b"Content-Type: text/plain; charset=x\\nDate: today\\n\\n").errors
    ('bad date: today', 'unknown charset: x')
    """
    if not isinstance(raw, (bytes, bytearray, memoryview)):
        raise ParameterError.out_of_range("raw", "bytes", type(raw).__name__)
    names, notes = check_headers(headers), Notes()
    content = bytes(raw)
    guess = Guess(content)
    if not content.strip(b"\0\t\r\n "):
        note(notes, "empty message")
    if b"\r" in content and b"\n" not in content:
        note(notes, "lines that end in a bare carriage return")
        content = content.replace(b"\r", b"\n")
    if first := _FIRST_LINE.match(content):
        content = content[first.end():]
    lines, body = _divided(content, notes)
    if not lines and not notes:
        note(notes, "no headers")
    texts: dict[str, list[str]] = {}
    shown = []
    for name, value in lines:
        text = header_text(value[:MAX_HEADER], notes, guess)
        if len(value) > MAX_HEADER:
            note(notes, "header beyond 128 KiB not read", name)
        texts.setdefault(name.lower(), []).append(text)
        shown.append(f"{name}: {text}")

    def field(name: str) -> str | None:
        return "\n".join(texts[name.lower()]) if name.lower() in texts else None

    date = _date(texts["date"][0], notes) if "date" in texts else None
    reader = _Reader(notes, guess)
    found = reader.text(_mime(lines), body, 0)
    return MailMessage(
        field("message-id"), date, field("from"), field("to"), field("subject"), "\n".join(shown),
        found.text, found.html, tuple(reader.links), tuple(reader.images),
        tuple(reader.attachments), {name: field(name) for name in names}, tuple(notes))


def _divided(raw: bytes, notes: Notes) -> tuple[list[tuple[str, str]], bytes]:
    """Header lines as the standard library reads them, bytes as surrogates; and the body."""
    block = _HEADER_LINES.match(raw)
    end = 0 if block is None else block.end()
    head, rest = raw[:end], raw[end:]
    if rest.startswith((b"\n", b"\r\n")):
        rest = rest[rest.index(b"\n") + 1:]
    elif head and rest:
        note(notes, "no empty line after the headers")
    if len(head) > MAX_HEADERS:
        note(notes, "headers beyond 512 KiB not read")
        head = head[:MAX_HEADERS]
        head = head[:head.rfind(b"\n") + 1] or head
    if b"From " in head and _ENVELOPE.search(head):
        note(notes, "mailbox line among the headers")
        head = _ENVELOPE.sub(b"", head)
    # Parts mostly have none; the parser takes longer than the rest for a small one.
    if not head.strip():
        return [], rest
    parsed = BytesParser().parsebytes(head, headersonly=True)
    for defect in parsed.defects:
        note(notes, "malformed headers", type(defect).__name__)
    return [(name, str(value)) for name, value in parsed.raw_items()], rest


def _mime(lines: Sequence[tuple[str, str]]) -> Message:
    """The headers that tell how a body is to be read, each character a byte."""
    mime = Message()
    for name, value in lines:
        if name.lower() in _STRUCTURE and name not in mime:
            raw = value[:_MAX_PARAMETERS].encode("utf-8", "surrogateescape")
            mime[name] = raw.decode("latin-1")
    return mime


def _date(text: str, notes: Notes) -> datetime | None:
    try:
        # Of a longer one, no date is meant.
        date = parsedate_to_datetime(text[:200])
        if date.year < 1000:
            # RFC 5322, section 4.3: three digits count from 1900, and mailers have written 0102.
            note(notes, "year of three digits", text)
            date = date.replace(year=date.year + 1900)
        aware = date.replace(tzinfo=UTC) if date.tzinfo is None else date
        return aware.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError, AttributeError):
        note(notes, "bad date", text)
        return None


class _Reader:
    """Reads the parts of one message, and counts what they cost."""

    def __init__(self, notes: Notes, guess: Guess) -> None:
        self.attachments: list[str] = []
        self.links: list[str] = []
        self.images: list[str] = []
        self._notes = notes
        self._guess = guess
        self._parts = 0
        # Of all parts in HTML.
        self._tags = 0

    def text(self, mime: Message, body: bytes, depth: int) -> _Text:
        """Text of a part and all within it."""
        self._parts += 1
        if self._parts > MAX_PARTS or depth > MAX_DEPTH:
            note(self._notes, f"parts beyond {MAX_PARTS} not read" if self._parts > MAX_PARTS else
                 f"parts nested deeper than {MAX_DEPTH} not read")
            return _Text("", False)
        kind, charset, boundary, name, attached = self._told(mime)
        if kind.startswith("multipart/"):
            parts = self._divided(body, boundary)
            if parts is not None:
                return self._joined(kind, parts, depth)
            kind = "text/plain"
        # A message that is one attachment as a whole is shown all the same.
        attached = attached and depth > 0
        whole = kind in ("message/rfc822", "message/global")
        if attached or not (whole or kind in _PLAIN or kind == "text/html"):
            self.attachments.append(name or kind)
            return _Text("", False)
        if name:
            self.attachments.append(name)
        content = self._content(mime, body)
        if whole:
            lines, inner = _divided(content, self._notes)
            return self.text(_mime(lines), inner, depth + 1)
        if kind == "text/html":
            charset = charset_of_html(charset, content, self._notes)
        text = decoded(content, charset, self._notes, self._guess).replace("\r\n", "\n")
        return self._html(text) if kind == "text/html" else _Text(text, False)

    def _told(self, mime: Message) -> tuple[str, str | None, bytes, str, bool]:
        """Content type, charset, boundary, name, and whether it is an attachment."""
        kind = mime.get_content_type()
        if len(words := kind.split()) > 1:
            note(self._notes, "malformed content type", kind)
            kind = words[0]
        if kind == "text/plain" and not mime.keys():
            return kind, None, b"", "", False
        try:
            charset = mime.get_param("charset")
            boundary = str(mime.get_boundary("")).encode("latin-1", "replace")
            name = self._name(mime)
            attached = mime.get_content_disposition() == "attachment"
        except Exception as error:
            # Continued parameters (RFC 2231) of hostile numbers fail in many ways there.
            note(self._notes, "malformed parameters", type(error).__name__)
            return kind, None, b"", "", False
        said = charset[2] if isinstance(charset, tuple) else charset
        return kind, said, boundary, name, attached

    def _name(self, mime: Message) -> str:
        name = (mime.get_param("filename", None, "content-disposition")
                or mime.get_param("name", None) or "")
        if isinstance(name, tuple):
            return valid(collapse_rfc2231_value(name))[:255]
        raw = name.encode("latin-1", "replace").decode("ascii", "surrogateescape")
        return header_text(raw, self._notes, self._guess)[:255]

    def _divided(self, body: bytes, boundary: bytes) -> list[bytes] | None:
        """The parts between boundaries; None where there is no boundary."""
        if not boundary:
            note(self._notes, "multipart without a boundary")
            return None
        parts, closed = divide(body, boundary, MAX_PARTS)
        if not parts:
            note(self._notes, "boundary not found")
            return None
        if not closed:
            note(self._notes, "no closing boundary")
        return parts

    def _joined(self, kind: str, parts: Sequence[bytes], depth: int) -> _Text:
        texts = []
        for part in parts:
            lines, body = _divided(part, self._notes)
            mime = _mime(lines)
            if kind == "multipart/digest":
                mime.set_default_type("message/rfc822")
            texts.append(self.text(mime, body, depth + 1))
            if self._parts > MAX_PARTS:
                break
        if kind == "multipart/alternative":
            return _chosen(texts)
        shown = [one for one in texts if one.text.strip()]
        return _Text("\n".join(one.text for one in shown), any(one.html for one in shown))

    def _content(self, mime: Message, body: bytes) -> bytes:
        """The body without its transfer encoding."""
        encoding = str(mime.get("content-transfer-encoding", "")).split(";")[0].strip().lower()
        if encoding in ("", "7bit", "8bit", "binary"):
            return body
        if encoding == "quoted-printable":
            return binascii.a2b_qp(body)
        if encoding not in ("base64", "x-uuencode", "uuencode", "uue", "x-uue"):
            note(self._notes, "unknown transfer encoding", encoding)
            return body
        whole = Message()
        whole["Content-Transfer-Encoding"] = encoding
        whole.set_payload(body.decode("ascii", "surrogateescape"))
        content = whole.get_payload(decode=True)
        for defect in whole.defects:
            note(self._notes, "bad base64", type(defect).__name__)
        return content if isinstance(content, bytes) else body

    def _html(self, html: str) -> _Text:
        # Plain messages do without it, and a filter starts for each message.
        from textnb.mail.html import MAX_TAGS, MAX_TARGETS, read_html

        found = read_html(html, self._notes, max(0, MAX_TAGS - self._tags),
                          MAX_TARGETS - len(self.links) - len(self.images))
        self._tags += html.count("<")
        self.links += found.links
        self.images += found.images
        return _Text(found.text, True)


def divide(body: bytes, boundary: bytes, limit: int) -> tuple[list[bytes], bool]:
    """The parts of a multipart body (RFC 2046, section 5.1.1), and whether its end was found.

    What comes before the first boundary and after the last is no part.

    Examples
    --------
    >>> divide(b"for old mailers\\n--b\\n\\none\\n--b\\n\\ntwo\\n--b--\\nepilogue", b"b", 9)
    ([b'\\none', b'\\ntwo'], True)
    """
    mark, data = b"\n--" + boundary, b"\n" + body
    parts: list[bytes] = []
    start, at = -1, data.find(mark)
    while at >= 0:
        after = at + len(mark)
        end = data.find(b"\n", after)
        end = len(data) if end < 0 else end
        closing = data.startswith(b"--", after)
        if data[after + 2 * closing:end].strip(b" \t\r"):
            # A longer line, perhaps an inner part's boundary that begins like this one.
            at = data.find(mark, after)
            continue
        if start >= 0:
            parts.append(data[start:at].removesuffix(b"\r"))
        if closing or len(parts) > limit:
            return parts, closing
        start = end + 1
        # The line's own end may be the one before the next boundary.
        at = data.find(mark, end)
    if start >= 0:
        parts.append(data[start:])
    return parts, False


def _chosen(texts: Sequence[_Text]) -> _Text:
    """Of alternatives, the plain one unless it is a stub of the other."""
    plain = next((one for one in texts if not one.html and one.text.strip()), _Text("", False))
    html = next((one for one in texts if one.html and one.text.strip()), None)
    words = len(plain.text.split(maxsplit=STUB_WORDS))
    if html is None or words > STUB_WORDS or len(html.text.split()) <= 2 * words:
        return plain
    return html
