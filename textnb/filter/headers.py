"""The headers of a verdict in a message, whose other bytes stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable

from textnb.filter.verdict import Verdict

STATUS = "X-Textnb-Status"
# This prefix renames a header of a verdict that the sender has forged.
_FORGED_PREFIX = b"X-Original-"
_EMPTY_LINE = re.compile(rb"^\r?\n", re.MULTILINE)
# A header of a verdict that this program writes or other programs trust, with its continuation
# lines. A sender may have written any of them.
_VERDICT_HEADER = (
    rb"(?:X-Textnb-Status|X-Spam-(?:Flag|Level|Status|Score|Report|Checker-Version|Bar|"
    rb"Prev-Subject|Prev-Content-Type))[ \t]*:[^\r\n]*+(?:(?:\r*\n|\r)[ \t][^\r\n]*+)*+")
# For some readers "\r" alone ends a line, for others it does not. A header after it is removed with
# it, and the end of the header's line stays: both kinds of readers then find the lines around it.
_VERDICT_HEADERS = re.compile(
    rb"^(?:%b(?:\r*\n|\r|\Z))+|(?<=[^\r\n])\r%b" % (_VERDICT_HEADER, _VERDICT_HEADER),
    re.IGNORECASE | re.MULTILINE)


def status_line(message: bytes, verdict: Verdict) -> tuple[int, bytes]:
    """The offset for the header of a verdict, before all other headers, and the header."""
    offset, line_end, gap = _find_offset(message)
    return offset, f"{STATUS}: {verdict.header}".encode("ascii") + line_end + gap


def with_headers(message: bytes, headers: Iterable[str], *, only_headers: bool = False) -> bytes:
    """A message with the headers of its verdict before all other headers.

    Headers of verdicts that the sender wrote are left out. Nothing else changes.

    Parameters
    ----------
    message : bytes
    headers : iterable of str
        The lines in ASCII, without their ends.
    only_headers : bool
        Leave out the body.
    """
    offset, line_end, gap = _find_offset(message)
    # For some readers, a line that is not a header ends the headers. Others read on, so a forged
    # header below such a line is removed too, down to the first empty line.
    end = offset if gap else _end_of_headers(message, offset)
    first, others = (_VERDICT_HEADERS.sub(b"", lines) for lines in (
        message[:offset], message[offset:end]))
    return b"".join([first, *(header.encode("ascii") + line_end for header in headers), others, gap,
                     (b"" if gap else line_end) if only_headers else message[end:]])


def forged_header_prefixes(message: bytes | bytearray) -> list[tuple[int, bytes]]:
    """Prefixes that rename the headers of a verdict which the sender has forged.

    They are for a message that is passed on without a verdict. All bytes of the message stay.

    Returns
    -------
    insertions : list of (int, bytes)
        Places in the message, in order, and prefixes.
    """
    # If the first line is empty, some readers look for headers after it.
    return [(match.start(1), _FORGED_PREFIX) for match in re.finditer(
        rb"(?:^(?:\xef\xbb\xbf)?|[\r\n])(" + STATUS.encode() + rb"[ \t]*:)",
        memoryview(message)[:_end_of_headers(message, 1)], re.I)]


def _end_of_headers(message: bytes | bytearray, start: int) -> int:
    """The offset of the first empty line from a start on, or else of the end of the message.

    Readers disagree on "\\r\\r": it is an empty line only if no line ends in "\\n".
    """
    empty_line = _EMPTY_LINE.search(message, start) if b"\n" in message else re.search(
        rb"(?<=\r)\r", message)
    return empty_line.start() if empty_line else len(message)


def _find_offset(message: bytes) -> tuple[int, bytes, bytes]:
    """Find the offset for the headers of a verdict, the bytes that end a line, and a gap.

    The gap follows the headers: an empty line if the message has a body without headers, otherwise
    nothing. Headers go to the beginning, as those that mail systems add, or after an mbox's "From "
    line. So a header of the same name that the sender wrote comes later.
    """
    first_end = message.find(b"\n")
    line_end = b"\r\n" if first_end > 0 and message[first_end - 1:first_end] == b"\r" else b"\n"
    offset = first_end + 1 if message.startswith(b"From ") else 0
    # A continuation line before any header would continue the new one.
    while message[offset:offset + 1] in (b" ", b"\t"):
        if (end := message.find(b"\n", offset)) < 0:
            # Nothing follows that line, so it is a body without headers.
            return offset, line_end, line_end
        offset = end + 1
    return offset, line_end, b""
