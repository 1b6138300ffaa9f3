"""Puts the headers of a verdict into a message, and changes no other byte."""

from __future__ import annotations

import re
from collections.abc import Iterable

from textnb.filter.verdict import Verdict

STATUS = "X-Textnb-Status"
# The prefix that renames the header of a verdict that the sender has forged.
_OTHER_NAME = b"X-Original-"
_EMPTY_LINE = re.compile(rb"^\r?\n", re.MULTILINE)
# Headers that this program writes, or that programs that read them trust, with their continuation
# lines. A sender may have written any of them.
_OWN = re.compile(
    rb"^(?:X-Textnb-Status|X-Spam-(?:Flag|Level|Status|Score|Report|Checker-Version|Bar|"
    rb"Prev-Subject|Prev-Content-Type))[ \t]*:[^\n]*\n?(?:[ \t][^\n]*\n?)*",
    re.IGNORECASE | re.MULTILINE)


def status_line(message: bytes, verdict: Verdict) -> tuple[int, bytes]:
    """The verdict as a header, and its place in the message: before all other headers."""
    at, ending, gap = _place(message)
    return at, f"{STATUS}: {verdict.header}".encode("ascii") + ending + gap


def with_headers(message: bytes, headers: Iterable[str], *, only_headers: bool = False) -> bytes:
    """A message with the headers of its verdict before all others.

    Headers of their names that the sender wrote are left out. Nothing else changes.

    Parameters
    ----------
    message : bytes
    headers : iterable of str
        ASCII, without ends of lines.
    only_headers : bool
        Leave out the body.
    """
    at, ending, gap = _place(message)
    # A line that is not a header ends the block for some readers and not for others: a forged
    # header below it is removed too.
    empty = _EMPTY_LINE.search(message)
    end = max(at, empty.start()) if empty else len(message)
    own = b"".join(header.encode("ascii") + ending for header in headers)
    if gap:
        return message[:at] + own + gap + (b"" if only_headers else message[at:])
    return b"".join([message[:at], own, _OWN.sub(b"", message[at:end]),
                     ending if only_headers else message[end:]])


def disarming(message: bytes | bytearray) -> list[tuple[int, bytes]]:
    """What to insert into a message without a verdict, so that it seems to have none.

    A sender may have forged a header of the verdict's name. The texts give such headers another
    name. All bytes of the message stay.

    Returns
    -------
    insertions : list of (int, bytes)
        Places in the message, in order, and texts.
    """
    end = re.search(rb"\n\r?\n|\r\r", message)
    return [(match.start(1), _OTHER_NAME) for match in re.finditer(
        rb"(?:^|[\r\n])(" + STATUS.encode() + rb"[ \t]*:)",
        memoryview(message)[:end.end() if end else len(message)], re.I)]


def _place(message: bytes) -> tuple[int, bytes, bytes]:
    """Where the headers of a verdict go, how lines of the message end, and what follows them.

    That is an empty line if the message has a body without headers, and else nothing. Mail systems
    put the headers that they add first, after an mbox's "From " line; a header of this name that
    the sender wrote stands below them.
    """
    first = message.find(b"\n")
    ending = b"\r\n" if first > 0 and message[first - 1:first] == b"\r" else b"\n"
    at = first + 1 if message.startswith(b"From ") else 0
    # A continuation line before any header would continue the new one.
    while message[at:at + 1] in (b" ", b"\t"):
        if (end := message.find(b"\n", at)) < 0:
            # Nothing follows that line, so it is a body without headers.
            return at, ending, ending
        at = end + 1
    return at, ending, b""
