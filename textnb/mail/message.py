"""Reads one mail message: fields to classify by, and notes of what was malformed.

    bytes ─> header lines ─> decoded fields
          └> MIME parts ───> text, names of attachments

The standard library parses the headers; `parts` reads the body.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from textnb.errors import ParameterError, quantity
from textnb.mail.charset_guess import Guess
from textnb.mail.charsets import Notes, header_text, note
from textnb.mail.parts import PartHeaders, PartReader, mime_headers, split_headers
from textnb.runtime.values import Value

# The maximum size of a message, and the error of a larger one. Servers accept some tens of MiB.
MAX_MESSAGE, MESSAGE_TOO_LARGE = 64 << 20, "message beyond 64 MiB not read"
# The maximum size of one header, which is more than servers accept (Postfix: 100 KiB).
MAX_HEADER = 128 << 10

_ENVELOPE_LINE = re.compile(rb"From [^\r\n]*+(?:\r?\n|\r|\Z)")
_HEADER_NAME = re.compile(r"[!-9;-~]+")


class MailMessage(Value):
    """The fields of one message, as `parse_message` describes them."""

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
        return (f"MailMessage(subject={subject!r}, {quantity(len(self.body), 'character')}, "
                f"{len(self.attachments)} attachments, {len(self.errors)} errors)")

    def column(self, name: str) -> str | None:
        """A column of text, as a mail table has it: a field, or a requested header.

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


class MessageStructure(Value):
    """What the columns of a message leave out, but its tokens are derived from.

    Attributes
    ----------
    fields : tuple of (str, str)
        Names of all headers in lower case, with their decoded values. Headers of one name stand
        together.
    parts : tuple of PartHeaders
        All MIME parts, the message itself first.
    alternatives : tuple of str
        Texts that are not part of the body, because another alternative was chosen.
    """

    fields: tuple[tuple[str, str], ...]
    parts: tuple[PartHeaders, ...]
    alternatives: tuple[str, ...]


def check_headers(headers: Sequence[str], setting: str = "headers") -> list[str]:
    """Check the names of headers in a setting, and return them as a list.

    Raises
    ------
    ParameterError
        If two names are the same, or a name can't be a header's, such as one with a space.
    """
    names = [headers] if isinstance(headers, str) else list(headers)
    for name in names:
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ParameterError.out_of_range(setting, "names of headers, such as 'received'", name)
    if len(set(names)) < len(names):
        raise ParameterError.out_of_range(setting, "different names", names)
    return names


def parse_message(raw: bytes, headers: Sequence[str] = ()) -> MailMessage:
    """Fields of one mail message (RFC 5322, MIME). No bytes make it fail.

    Parameters
    ----------
    raw : bytes
        The message; a byte-order mark, and a first line ``From ...``, as in mbox files, are left
        out.
    headers : sequence of str
        Names of further headers to return, in upper or lower case.

    Returns
    -------
    MailMessage
        ``message_id``, ``from_``, ``to``, ``subject`` (str, decoded; None if absent; several
        headers of a name, one per line); ``date`` (datetime in UTC, or None); ``headers`` (str: all
        header lines, unfolded and decoded); ``body`` (str: the text parts that are not attachments;
        of alternatives the plain one, or the HTML one if the plain one is a stub); ``html`` (bool:
        whether some of the body is from HTML); ``links`` and ``images`` (targets of links and
        forms, and sources of images, in all HTML parts, as they are written, in order and with
        repetitions; ``data:`` without its data); ``attachments`` (the name of each part that
        has one, and the content type of each other part that was not read); ``requested`` (dict
        from ``headers`` to their values, like ``subject``); ``errors`` (tuple of str, each
        ``"kind"`` or ``"kind: detail"``: what was malformed, or beyond a limit and not read).

    Raises
    ------
    ParameterError
        If ``raw`` is not bytes, or a name can't be a header's.

    Examples
    --------
    >>> raw = b"Subject: =?utf-8?q?caf=C3=A9?=\\nX-Mailer: x\\n\\nHi"
    >>> message = parse_message(raw, ["x-mailer"])
    >>> message.subject, message.body, message.requested, message.errors
    ('café', 'Hi', {'x-mailer': 'x'}, ())
    >>> parse_message(b"Content-Type: text/plain; charset=x\\nDate: today\\n\\n").errors
    ('bad date: today', 'unknown charset: x')
    """
    return read_message(raw, headers)[0]


def read_message(raw: bytes, headers: Sequence[str] = ()) -> tuple[MailMessage, MessageStructure]:
    """The message as from `parse_message`, and its structure."""
    if not isinstance(raw, (bytes, bytearray, memoryview)):
        raise ParameterError.out_of_range("raw", "bytes", type(raw).__name__)
    names, notes = check_headers(headers), Notes()
    content = bytes(raw).removeprefix(BOM_UTF8)
    guess = Guess(content)
    if not content.strip(b"\0\t\r\n "):
        note(notes, "empty message")
    if b"\r" in content and b"\n" not in content:
        note(notes, "lines that end in a bare carriage return")
        content = content.replace(b"\r", b"\n")
    if envelope := _ENVELOPE_LINE.match(content):
        content = content[envelope.end():]
    raw_headers, body = split_headers(content, notes)
    if not raw_headers and not notes:
        note(notes, "no headers")
    values: dict[str, list[str]] = {}
    lines = []
    for name, raw_value in raw_headers:
        value = header_text(raw_value[:MAX_HEADER], notes, guess)
        if len(raw_value) > MAX_HEADER:
            note(notes, "header beyond 128 KiB not read", name)
        values.setdefault(name.lower(), []).append(value)
        lines.append(f"{name}: {value}")

    def header(name: str) -> str | None:
        return "\n".join(values[name.lower()]) if name.lower() in values else None

    date = _parse_date(values["date"][0], notes) if "date" in values else None
    reader = PartReader(notes, guess)
    body_text = reader.text(mime_headers(raw_headers), body, depth=0)
    message = MailMessage(
        message_id=header("message-id"), date=date, from_=header("from"), to=header("to"),
        subject=header("subject"), headers="\n".join(lines), body=body_text.text,
        html=body_text.html, links=tuple(reader.links), images=tuple(reader.images),
        attachments=tuple(reader.attachments),
        requested={name: header(name) for name in names}, errors=tuple(notes))
    return message, MessageStructure(
        fields=tuple((name, value) for name in values for value in values[name]),
        parts=tuple(reader.parts), alternatives=tuple(reader.alternatives))


def _parse_date(text: str, notes: Notes) -> datetime | None:
    """The date in UTC; without a time zone it is read as UTC. None if it is malformed."""
    try:
        # A longer value is not a date.
        date = parsedate_to_datetime(text[:200])
        if date.year < 1000:
            # Such years count from 1900 (RFC 5322, section 4.3); some mailers wrote 0102 for 2002.
            note(notes, "year of three digits", text)
            date = date.replace(year=date.year + 1900)
        with_zone = date.replace(tzinfo=UTC) if date.tzinfo is None else date
        return with_zone.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError, AttributeError):
        note(notes, "bad date", text)
        return None
