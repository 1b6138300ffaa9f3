"""The text of a message's MIME parts, with the links, images and attachments that they hold.

    body, boundary ─> parts ─> each by its content type and transfer encoding ─> one text

The standard library parses nested parts in time that is quadratic in their depth, and by recursion
without limit. So it reads headers only; this module divides a body at its boundaries.
"""

from __future__ import annotations

import binascii
import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from email.errors import MultipartInvariantViolationDefect
from email.message import Message
from email.parser import BytesParser
from email.utils import collapse_rfc2231_value, decode_params, unquote
from typing import Any, NamedTuple

from textnb.mail.charset_guess import Guess, replace_surrogates
from textnb.mail.charset_names import python_codec
from textnb.mail.charsets import Notes, charset_of_html, decode_text, header_text, note

# The maximum depth. Mailers nest about 5 parts, and chains of forwarded messages 10 or so.
MAX_DEPTH = 20
# Digests of mailing lists hold some hundreds; each part costs as much as a small message.
MAX_PARTS = 1000
# The maximum size of all headers of a part, more than servers accept (Exchange Online: 256 KiB).
MAX_HEADERS = 512 << 10
# The maximum number of characters of a parameter's value, and of what stands before parameters.
_MAX_VALUE = 8 << 10
# The parameters that say how to read a part.
_PARAMETERS = ("charset", "boundary", "name", "filename")
# A parameter; a semicolon within quotes is part of it.
_PARAMETER = re.compile(r'(?:[^;"\\]++|\\"?|"(?:[^"\\]++|\\"?)*+(?:"|\Z))++')
# A value with a comment after it (RFC 2045, section 5.1).
_COMMENTED = re.compile(r'("[^"]*+"|[^\s"(]++(?=\s))\s*\([^()]*\)')
# A text/plain alternative of fewer words may only say that the message is in HTML.
MAX_STUB_WORDS = 20

# Header lines with their continuations, and among them the envelope lines (``From ...``) of mbox
# files, and the byte-order mark of a message above which a mail system has put its own headers.
_HEADER_LINES = re.compile(
    rb"(?:(?:(?:\xef\xbb\xbf)?(?:[!-9;-~]*+:|>?From [^\r\n]*?\d\d?:\d\d)|[ \t])"
    rb"[^\r\n]*+(?:\r?\n|\r|\Z))*")
_MARK = re.compile(rb"^\xef\xbb\xbf", re.M)
_ENVELOPE = re.compile(rb"^>?From [^\r\n]*(?:\r?\n|\r|\Z)", re.M)
_PLAIN_TYPES = ("text/plain", "text/enriched", "text/richtext")
_MIME_HEADERS = ("content-type", "content-disposition", "content-transfer-encoding")


class PartText(NamedTuple):
    """The text of a part and of those within it, and whether some of it is from HTML."""

    text: str
    html: bool


class PartHeaders(NamedTuple):
    """What the headers of a part say: in lower case except for the name, and empty if absent."""

    content_type: str
    charset: str
    encoding: str
    disposition: str
    name: str


def split_headers(raw: bytes, notes: Notes) -> tuple[list[tuple[str, str]], bytes]:
    """Split bytes into header lines, with bytes beyond ASCII as surrogates, and the body."""
    match = _HEADER_LINES.match(raw)
    end = 0 if match is None else match.end()
    head, body = raw[:end], raw[end:].removeprefix(BOM_UTF8)
    if body.startswith((b"\n", b"\r\n")):
        body = body[body.index(b"\n") + 1:]
    elif head and body:
        note(notes, "no empty line after the headers")
    if len(head) > MAX_HEADERS:
        note(notes, "headers beyond 512 KiB not read")
        head = head[:MAX_HEADERS]
        head = head[:head.rfind(b"\n") + 1] or head
    if BOM_UTF8 in head:
        head = _MARK.sub(b"", head)
    if b"From " in head and _ENVELOPE.search(head):
        note(notes, "mailbox line among the headers")
        head = _ENVELOPE.sub(b"", head)
    # Most parts have no headers, and the parser would take most of the time of a small part.
    if not head.strip():
        return [], body
    parsed = BytesParser().parsebytes(head, headersonly=True)
    for defect in parsed.defects:
        # Python before 3.11.5 reports this one for each multipart message whose body is not parsed.
        if not isinstance(defect, MultipartInvariantViolationDefect):
            note(notes, "malformed headers", type(defect).__name__)
    return [(name, str(value)) for name, value in parsed.raw_items()], body


def mime_headers(lines: Sequence[tuple[str, str]]) -> Message:
    """The headers that say how to read a body; each character stands for a byte."""
    mime = Message()
    for name, value in lines:
        if name.lower() in _MIME_HEADERS and name not in mime:
            mime[name] = value.encode("utf-8", "surrogateescape").decode("latin-1")
    return mime


class PartReader:
    """Reads the parts of one message, within limits for all of them together.

    Attributes
    ----------
    attachments, links, images : list of str
        What the parts hold, in order.
    parts : list of PartHeaders
        All parts, those that hold others too, in order.
    alternatives : list of str
        Texts of the alternatives that were not chosen.
    """

    def __init__(self, notes: Notes, guess: Guess) -> None:
        self.attachments: list[str] = []
        self.links: list[str] = []
        self.images: list[str] = []
        self.parts: list[PartHeaders] = []
        self.alternatives: list[str] = []
        self._notes = notes
        self._guess = guess
        self._n_parts = 0
        # The number of tags in all HTML parts together.
        self._n_tags = 0

    def text(self, mime: Message, body: bytes, depth: int) -> PartText:
        """Read the text of a part and of all parts within it."""
        self._n_parts += 1
        if self._n_parts > MAX_PARTS or depth > MAX_DEPTH:
            note(self._notes, f"parts beyond {MAX_PARTS} not read" if self._n_parts > MAX_PARTS else
                 f"parts nested deeper than {MAX_DEPTH} not read")
            return PartText("", html=False)
        kind, charset, boundary, name = self._read_parameters(mime)
        headers = PartHeaders(
            kind, str(charset or "").lower(), _value_of(mime, "content-transfer-encoding"),
            _value_of(mime, "content-disposition"), name)
        self.parts.append(headers)
        if kind.startswith("multipart/"):
            parts = self._split_parts(body, boundary)
            if parts is not None:
                return self._read_multipart(kind, parts, depth)
            kind = "text/plain"
        # If the outermost part is an attachment, it is read nevertheless.
        is_attachment = headers.disposition == "attachment" and depth > 0
        is_message = kind in ("message/rfc822", "message/global")
        if is_attachment or not (is_message or kind in _PLAIN_TYPES or kind == "text/html"):
            self.attachments.append(name or kind)
            return PartText("", html=False)
        if name:
            self.attachments.append(name)
        content = self._decode_transfer(headers.encoding, body)
        if is_message:
            lines, inner = split_headers(content, self._notes)
            return self.text(mime_headers(lines), inner, depth + 1)
        if kind == "text/html":
            charset = charset_of_html(charset, content, self._notes)
        text = decode_text(content, charset, self._notes, self._guess).replace("\r\n", "\n")
        return self._read_html(text) if kind == "text/html" else PartText(text, html=False)

    def _read_parameters(self, mime: Message) -> tuple[str, str | None, bytes, str]:
        """Read content type, charset, boundary and name."""
        kind = mime.get_content_type()[:_MAX_VALUE]
        if len(words := kind.split()) > 1:
            note(self._notes, "malformed content type", kind)
            kind = words[0]
        if kind == "text/plain" and not mime.keys():
            return kind, None, b"", ""
        parameters = _parameters(mime.get("content-type", ""), self._notes)
        charset = parameters.get("charset")
        boundary = _decode_value(parameters.get("boundary", "")).rstrip()
        file = _parameters(mime.get("content-disposition", ""), self._notes)
        # A parameter of RFC 2231 is a charset of its own, a language, and the value.
        return (kind, charset[2] if isinstance(charset, tuple) else charset,
                boundary.encode("latin-1", "replace"),
                self._name(file.get("filename") or parameters.get("name") or ""))

    def _name(self, name: Any) -> str:
        if isinstance(name, tuple):
            return replace_surrogates(_decode_value(name))[:255]
        # Each character stands for a byte; `header_text` expects surrogates for bytes beyond ASCII.
        raw = name.encode("latin-1", "replace").decode("ascii", "surrogateescape")
        return header_text(raw, self._notes, self._guess)[:255]

    def _split_parts(self, body: bytes, boundary: bytes) -> list[bytes] | None:
        """The parts between boundaries; None if there is no boundary."""
        if not boundary:
            note(self._notes, "multipart without a boundary")
            return None
        parts, is_closed = split_multipart(body, boundary, MAX_PARTS)
        if not parts:
            note(self._notes, "boundary not found")
            return None
        if not is_closed:
            note(self._notes, "no closing boundary")
        return parts

    def _read_multipart(self, kind: str, parts: Sequence[bytes], depth: int) -> PartText:
        texts = []
        for part in parts:
            lines, body = split_headers(part, self._notes)
            mime = mime_headers(lines)
            if kind == "multipart/digest":
                mime.set_default_type("message/rfc822")
            texts.append(self.text(mime, body, depth + 1))
            if self._n_parts > MAX_PARTS:
                break
        if kind == "multipart/alternative":
            chosen = _choose_alternative(texts)
            self.alternatives += [part.text for part in texts if part is not chosen and part.text]
            return chosen
        with_text = [part for part in texts if part.text.strip()]
        return PartText("\n".join(part.text for part in with_text),
                        any(part.html for part in with_text))

    def _decode_transfer(self, encoding: str, body: bytes) -> bytes:
        """The body without its transfer encoding."""
        if encoding in ("", "7bit", "8bit", "binary"):
            return body
        if encoding == "quoted-printable":
            return binascii.a2b_qp(body)
        if encoding not in ("base64", "x-uuencode", "uuencode", "uue", "x-uue"):
            note(self._notes, "unknown transfer encoding", encoding)
            return body
        part = Message()
        part["Content-Transfer-Encoding"] = encoding
        part.set_payload(body.decode("ascii", "surrogateescape"))
        content = part.get_payload(decode=True)
        for defect in part.defects:
            note(self._notes, "bad base64", type(defect).__name__)
        return content if isinstance(content, bytes) else body

    def _read_html(self, html: str) -> PartText:
        # Imported here: a filter is a process per message, and plain messages need no HTML parser.
        from textnb.mail.html import MAX_TAGS, MAX_TARGETS, read_html

        page = read_html(html, self._notes, max_tags=max(0, MAX_TAGS - self._n_tags),
                         max_targets=MAX_TARGETS - len(self.links) - len(self.images))
        self._n_tags += html.count("<")
        self.links += page.links
        self.images += page.images
        return PartText(page.text, html=True)


def _value_of(mime: Message, header: str) -> str:
    """A header's value without its parameters, in lower case; empty if absent."""
    return str(mime.get(header, "")).split(";")[0].strip().lower()[:_MAX_VALUE]


def _parameters(header: str, notes: Notes) -> dict[str, Any]:
    """The values of `_PARAMETERS` in a header: a str, or as RFC 2231 a charset, language and str.

    The standard library divides a header in time that is quadratic in its length.
    """
    named = [("", "")]
    # A long header is folded, also within a value.
    for parameter in _PARAMETER.findall(re.sub(r"[\r\n]+", "", header)):
        name, _, value = (text.strip() for text in parameter.partition("="))
        name = name.lower()
        if name.partition("*")[0] in _PARAMETERS:
            match = _COMMENTED.fullmatch(value)
            # The name of a file may end like a comment: "report (1)".
            is_name = "name" in name and not value.startswith('"')
            named.append((name, value if match is None or is_name else match[1]))
    try:
        decoded = decode_params(named)
    except Exception as error:
        # Hostile numbers of continued parameters (RFC 2231) raise errors of many types.
        note(notes, "malformed parameters", type(error).__name__)
        decoded = decode_params([pair for pair in named if "*" not in pair[0]])
    # Of several values of a name, the first one counts.
    return {name: (*value[:2], unquote(value[2])[:_MAX_VALUE]) if isinstance(value, tuple)
            else unquote(value)[:_MAX_VALUE] for name, value in reversed(decoded)}


def _decode_value(value: Any) -> str:
    """The text of a parameter's value; with an unknown charset, a character for each byte."""
    is_known = not isinstance(value, tuple) or value[0] is None or python_codec(value[0].lower())
    return collapse_rfc2231_value(value if is_known else value[2])


def split_multipart(body: bytes, boundary: bytes, max_parts: int) -> tuple[list[bytes], bool]:
    """The parts of a multipart body (RFC 2046, section 5.1.1), and whether its end was found.

    Text before the first boundary and after the last one is in none of the parts. If there are more
    than ``max_parts``, one more is returned, and the rest is not read.

    Examples
    --------
    >>> split_multipart(b"for old mailers\\n--b\\n\\none\\n--b\\n\\ntwo\\n--b--\\nend", b"b", 9)
    ([b'\\none', b'\\ntwo'], True)
    """
    delimiter, data = b"\n--" + boundary, b"\n" + body
    parts: list[bytes] = []
    # The start of the current part, -1 before the first one; and the position of the next boundary.
    start, position = -1, data.find(delimiter)
    while position >= 0:
        after = position + len(delimiter)
        end = data.find(b"\n", after)
        end = len(data) if end < 0 else end
        closing = data.startswith(b"--", after)
        # The closing boundary ends in two dashes.
        if data[after + 2 * closing:end].strip(b" \t\r"):
            # A longer line, perhaps an inner part's boundary that begins like this one.
            position = data.find(delimiter, after)
            continue
        if start >= 0:
            parts.append(data[start:position].removesuffix(b"\r"))
        if closing or len(parts) > max_parts:
            return parts, closing
        start = end + 1
        # The line end of this boundary may also be the one before the next boundary.
        position = data.find(delimiter, end)
    if start >= 0:
        parts.append(data[start:])
    return parts, False


def _choose_alternative(texts: Sequence[PartText]) -> PartText:
    """Choose the plain text among alternatives, unless it is a stub of the HTML: short, and with
    less than half of its words."""
    with_text = [part for part in texts if part.text.strip()]
    plain = next((part for part in with_text if not part.html), PartText("", html=False))
    html = next((part for part in with_text if part.html), None)
    n_words = len(plain.text.split(maxsplit=MAX_STUB_WORDS))
    if html is None or n_words > MAX_STUB_WORDS or len(html.text.split()) <= 2 * n_words:
        return plain
    return html
