"""Reads the messages of an mbox file, one in memory at a time."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

from textnb.mail.charsets import Notes, note
from textnb.mail.message import MAX_MESSAGE, MESSAGE_TOO_LARGE

# The number of bytes that are read at a time.
PIECE_SIZE = 1 << 20
# The parts of a date, in any order: "From anyone@example.org Sat Jan  3 01:05:34 1996".
_DATE_PARTS = [re.compile(part) for part in (
    rb"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b", rb"\b\d{1,2}:\d\d\b",
    rb"\b(?:19|20)\d\d\b")]
# A complete envelope line: texts that people write do not look like this.
_ENVELOPE = re.compile(
    rb"From +\S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +"
    rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} +\d{1,2}:\d\d(?::\d\d)?"
    rb"(?: +[-+A-Z][\w+-]{0,5}){0,2} +(?:19|20)\d\d(?: +[-+A-Z][\w+-]{0,5})?"
    rb"\s*(?:remote from .*)?$")
# The beginning of a header, or of another envelope line among the headers.
_HEADER = re.compile(rb"[!-9;-~]+:|>?From ")
# The headers with which messages begin. Texts have other words before a colon: "Note:", "http:".
_MAIL_HEADER = re.compile(
    rb"(?:(?:x|list|resent|content|arc|dkim|domainkey|delivered|delivery|received|authentication|"
    rb"envelope|errors|apparently|reply|return|in-reply|message|mime|user|old)-[!-9;-~]+|"
    rb"received|subject|from|to|cc|bcc|date|sender|references|status|path|newsgroups|xref|lines|"
    rb"organi[sz]ation|approved|article|comments?|keywords|precedence|priority|importance)"
    rb"[ \t]*:", re.I)
_EMPTY_LINES = (b"\n", b"\r\n", b"")
_QUOTED_FROM = re.compile(rb">+From ")
# The beginning of the error of a message that could not be read completely.
UNREADABLE = "unreadable"


def failure_note(error: BaseException) -> str:
    """The note of a message for an error that a reader raised."""
    notes = Notes()
    reason = error.strerror if isinstance(error, OSError) else None
    note(notes, UNREADABLE, reason or str(error) or type(error).__name__)
    return notes[0]


class _Lines:
    """The lines of a file, long ones in pieces; ``next`` is the line after the current one.

    The pieces do not depend on how many bytes each read returns.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._lines = self._read_lines()
        self.failure: str | None = None
        self.next = next(self._lines, b"").removeprefix(BOM_UTF8)

    def _read_lines(self) -> Iterator[bytes]:
        rest = b""
        try:
            while piece := self._file.read1(PIECE_SIZE):
                rest += piece
                # Only the first line of the rest can be longer than a piece: it may have begun in
                # an earlier one.
                while len(rest) > PIECE_SIZE and rest.find(b"\n", 0, PIECE_SIZE) < 0:
                    yield rest[:PIECE_SIZE]
                    rest = rest[PIECE_SIZE:]
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    yield line + b"\n"
        except Exception as error:
            self.failure = failure_note(error)
        if rest:
            yield rest

    def __iter__(self) -> Iterator[bytes]:
        while line := self.next:
            self.next = next(self._lines, b"")
            yield line


def split_mailbox(file: Any) -> Iterator[tuple[bytes, Notes]]:
    """Split an mbox file into raw messages, each with its notes (RFC 4155; quoted as in mboxrd).

    The first line ``From ...`` begins a message. A later one begins the next message if

    - it is a complete envelope (sender and date, nothing else), and an empty line comes before it
      or a header after it; or
    - an empty line comes before it, it has a date, and a header or an empty line comes after it; or
    - an empty line comes before it, and one of the usual headers of mail after it.

    Every other one is text, as not all mailers quote such lines of a text. It leaves a note, since
    other readers would begin a message there. A byte-order mark at the start is skipped.
    """
    lines = _Lines(file)
    notes = Notes()
    if lines.next and not lines.next.startswith(b"From "):
        note(notes, "mbox without a line From at its start")
    pieces: list[bytes] = []
    n_messages = size = 0
    # The previous line, whether the next piece begins a line, and whether the headers have ended.
    previous, at_line_start, in_body = b"\n", True, False
    for line in lines:
        # For nearly all lines, the first byte shows that they are text.
        if at_line_start and line[0] in b"F>":
            if _QUOTED_FROM.match(line):
                line = line[1:]
            elif pieces and line.startswith(b"From "):
                if in_body and _starts_message(line, previous, lines.next):
                    n_messages += 1
                    yield _message_of(pieces), notes
                    pieces, size, notes, in_body = [], 0, Notes(), False
                    if previous not in _EMPTY_LINES:
                        note(notes, "no empty line before the line From")
                else:
                    note(notes, "line From within a message", _beginning(line))
        if pieces or line not in _EMPTY_LINES:
            size += len(line)
            if size <= MAX_MESSAGE:
                pieces.append(line)
            else:
                note(notes, MESSAGE_TOO_LARGE)
                if size - len(line) < MAX_MESSAGE:
                    pieces.append(line[:MAX_MESSAGE - size])
        in_body = in_body or (bool(pieces) and line in _EMPTY_LINES)
        # A later piece of a long line is never an empty line, even if it is b"\n".
        previous, at_line_start = (line if at_line_start else b"x"), line.endswith(b"\n")
    if lines.failure is not None:
        notes.append(lines.failure)
    # An empty file is one empty message.
    if pieces or notes or not n_messages:
        yield _message_of(pieces), notes


def _message_of(pieces: list[bytes]) -> bytes:
    raw = b"".join(pieces)
    # Remove half of the ending: the empty line before the next message is not part of this one.
    for ending in (b"\r\n\r\n", b"\n\n"):
        if raw.endswith(ending):
            raw = raw[:-len(ending) // 2]
            break
    return raw


def _has_date(line: bytes) -> bool:
    return all(part.search(line) for part in _DATE_PARTS)


def _beginning(line: bytes) -> str:
    return line[:60].decode("ascii", "replace")


def _starts_message(line: bytes, previous: bytes, following: bytes) -> bool:
    """Whether a line ``From ...`` begins a message, by the rules of `split_mailbox`."""
    envelope = _ENVELOPE.match(line[:1000])
    if previous not in _EMPTY_LINES:
        return bool(envelope and _HEADER.match(following))
    if envelope:
        return True
    if _has_date(line):
        return bool(_HEADER.match(following)) or not following.strip(b"\r\n")
    return bool(_MAIL_HEADER.match(following))
