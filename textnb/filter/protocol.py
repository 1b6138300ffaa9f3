"""spamd's protocol: requests and answers as bytes, without sockets.

    PROCESS SPAMC/1.5\\r\\n            SPAMD/1.1 0 EX_OK\\r\\n
    Content-length: 42\\r\\n    ──>   Content-length: 211\\r\\n
    \\r\\n                            Spam: True ; 12.3 / 5.0\\r\\n
    message                         \\r\\n
                                    message with the headers of the verdict

It behaves as spamd 4.0, except where a comment says why not. It imports only the standard library.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping

from textnb.filter.headers import with_headers
from textnb.filter.spamd_verdict import THRESHOLD, SpamdVerdict, headers_of
from textnb.runtime.values import Value

# The maximum numbers of bytes of a line, and of lines before a message, as in spamd.
MAX_LINE, MAX_HEADERS = 8192, 255
# The answer to PING.
PONG = b"SPAMD/1.5 0 PONG\r\n"
# The commands that ask for a verdict.
VERDICT_COMMANDS = ("CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM", "PROCESS", "HEADERS")
COMMANDS = (*VERDICT_COMMANDS, "PING", "SKIP", "TELL", "STATUS")
_FIRST_LINE = re.compile(r"([A-Z_]{1,32}) SPAMC/([0-9]{1,3})\.([0-9]{1,3})")
# The name of a user selects a model and goes to the log: it is no path, and no part of a command.
_USER = re.compile(r"[^\0-\x1f\x7f-\x9f]{1,128}")
# The exit codes of sysexits.h; 79 is spamd's own.
EXIT_CODES = {"EX_OK": 0, "EX_DATAERR": 65, "EX_UNAVAILABLE": 69, "EX_SOFTWARE": 70,
              "EX_TEMPFAIL": 75, "EX_PROTOCOL": 76, "EX_NOPERM": 77, "EX_TIMEOUT": 79}


class Refused(Exception):
    """A request that gets no verdict.

    Parameters
    ----------
    code : str
        A name of `EXIT_CODES`.
    why : str
        The reason, one line for the client and the log.
    received : str or bytes, optional
        What the client has sent instead. It is not for the log, as it may be text of a message.
    """

    def __init__(self, code: str, why: str, received: str | bytes | None = None) -> None:
        super().__init__(why)
        self.code = code
        self._received = "" if received is None else f": {received[:60]!r}"

    def answer(self) -> bytes:
        """The answer to the client."""
        # Printable ASCII only.
        why = re.sub(r"[^ -~]+", " ", f"{self}{self._received}")[:500]
        return f"SPAMD/1.0 {EXIT_CODES[self.code]} {self.code} {why}\r\n".encode("ascii")


class Request(Value):
    """A request of a client, without its message.

    Attributes
    ----------
    command : str
        One of `COMMANDS`.
    version : (int, int)
        The version of the protocol.
    length : int or None
        The number of bytes of the message as it is sent, perhaps compressed; None if the client
        closes its side of the connection at the end.
    user : str or None
    is_compressed : bool
        Whether the message is compressed by zlib.
    headers : mapping of str to str
        All headers of the request, by their names in lower case.
    """

    command: str
    version: tuple[int, int]
    length: int | None = None
    user: str | None = None
    is_compressed: bool = False
    headers: Mapping[str, str] = {}


def parse_command(line: bytes) -> Request:
    """Parse the first line of a request.

    Raises
    ------
    Refused
        If it is not a request.

    Examples
    --------
    >>> parse_command(b"PING SPAMC/1.2\\r\\n").command
    'PING'
    """
    match = _FIRST_LINE.fullmatch(line.decode("latin-1").rstrip("\r\n"))
    if match is None or match[1] not in COMMANDS:
        raise Refused("EX_PROTOCOL", "no command of SPAMC/1.5", line)
    return Request(match[1], (int(match[2]), int(match[3])))


def has_headers(request: Request) -> bool:
    """Whether headers follow the first line; after PING, an old client waits for the answer."""
    return request.command not in ("PING", "SKIP") or request.version >= (1, 5)


def parse_headers(request: Request, lines: Iterable[bytes]) -> Request:
    """Add the headers to a request.

    Raises
    ------
    Refused
        If a header is malformed, or asks for something that this server does not do.
    """
    headers: dict[str, str] = {}
    for line in lines:
        if b":" not in line:
            raise Refused("EX_PROTOCOL", "header not in 'Name: value' format", line)
        # The names of users are decoded as those of the command line are.
        name, value = (part.strip().decode("utf-8", "surrogateescape")
                       for part in line.split(b":", 1))
        if headers.setdefault(name.lower(), value) != value:
            # If there are two lengths, for example, readers may disagree on the end of the message.
            raise Refused("EX_PROTOCOL", "two headers of one name", name)
    length, user = headers.get("content-length"), headers.get("user")
    if length is not None and not re.fullmatch("[0-9]{1,15}", length):
        raise Refused("EX_PROTOCOL", "Content-length is not a number", length)
    if user is not None and not _USER.fullmatch(user):
        raise Refused("EX_PROTOCOL", "the user is not a name of 1 to 128 characters, without "
                                     "control characters", user)
    compression = headers.get("compress")
    if compression is not None and compression.lower() != "zlib":
        raise Refused("EX_PROTOCOL", "compression is not zlib", compression)
    if compression is not None and length is None:
        raise Refused("EX_PROTOCOL", "Compress needs Content-length")
    return Request(request.command, request.version, None if length is None else int(length),
                   user, compression is not None, headers)


def message_of(request: Request, body: bytes, max_bytes: int) -> bytes:
    """The message of a request, decompressed if it is compressed.

    Parameters
    ----------
    request : Request
    body : bytes
        The message as it was sent.
    max_bytes : int
        A longer message is refused before it takes more memory.

    Raises
    ------
    Refused
        If the message is too long or damaged.
    """
    if request.length is not None and len(body) != request.length:
        raise Refused("EX_PROTOCOL", f"Content-length is {request.length}, and {len(body)} bytes "
                                     "came")
    if not request.is_compressed:
        return body
    decompressor = zlib.decompressobj()
    try:
        message = decompressor.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise Refused("EX_DATAERR", f"the message can't be inflated: {error}") from None
    if len(message) > max_bytes:
        raise too_long(max_bytes)
    if not decompressor.eof:
        raise Refused("EX_DATAERR", "the compressed message is cut")
    if decompressor.unused_data:
        raise Refused("EX_DATAERR", f"{len(decompressor.unused_data)} bytes follow the compressed "
                                    "message")
    return message


def too_long(max_bytes: int) -> Refused:
    """The refusal of a message of more bytes."""
    return Refused("EX_DATAERR", f"the message is longer than {max_bytes} bytes")


def has_report(request: Request, is_spam: bool) -> bool:
    """Whether the answer to a request has a report."""
    return request.command == "REPORT" or (request.command == "REPORT_IFSPAM" and is_spam)


def answer(request: Request, verdict: SpamdVerdict, message: bytes) -> bytes:
    """The answer to a request for a verdict.

    Parameters
    ----------
    request : Request
        A request with one of the `VERDICT_COMMANDS`.
    verdict : SpamdVerdict
        The verdict in spamd's terms.
    message : bytes
    """
    command, version = request.command, request.version
    yes, no = ("Yes", "No") if command == "REPORT_IFSPAM" else ("True", "False")
    spam = f"Spam: {yes if verdict.is_spam else no} ; {verdict.score} / {THRESHOLD}\r\n"
    if command == "CHECK":
        return f"SPAMD/1.1 0 EX_OK\r\n{spam}\r\n".encode("ascii")
    match command:
        case "PROCESS" | "HEADERS":
            body = with_headers(message, headers_of(verdict), only_headers=command == "HEADERS")
        case "SYMBOLS":
            end = b"\r\n" if version < (1, 3) else b""
            body = ",".join(verdict.symbols).encode("ascii") + end
        case "REPORT" | "REPORT_IFSPAM":
            report = verdict.report if has_report(request, verdict.is_spam) else ""
            body = report.encode("utf-8", "backslashreplace")
        case _:
            raise Refused("EX_PROTOCOL", f"{command} asks for no verdict")
    length = f"Content-length: {len(body)}\r\n"
    if command in ("PROCESS", "HEADERS"):
        if version < (1, 2):
            return b"SPAMD/1.0 0 EX_OK\r\n" + body
        headers = length + (spam if version >= (1, 3) else "")
    else:
        headers = (length if version >= (1, 3) else "") + spam
    return f"SPAMD/1.1 0 EX_OK\r\n{headers}\r\n".encode("ascii") + body


def parse_tell(request: Request) -> str | None:
    """The class that a request TELL gives to its message, "spam" or "ham"; None to forget it.

    Raises
    ------
    Refused
        If the request is not one that this server can fulfil.
    """
    headers = request.headers
    is_set, is_removed = ("local" in headers.get(name, "").lower() for name in ("set", "remove"))
    if is_set == is_removed:
        raise Refused("EX_PROTOCOL", "TELL needs either Set: local or Remove: local")
    if is_removed:
        return None
    name = headers.get("message-class", "").lower()
    if name not in ("spam", "ham"):
        raise Refused("EX_PROTOCOL", "TELL with Set needs Message-class: spam or ham")
    return name


def answer_to_tell(label: str | None, changed: bool) -> bytes:
    """The answer to a request TELL, by its `parse_tell` and whether the ledger has changed.

    The ledger is the record of what a model has learned.
    """
    done = "DidRemove" if label is None else "DidSet"
    header = f"{done}: local\r\n" if changed else ""
    return f"SPAMD/1.1 0 EX_OK\r\n{header}Content-length: 0\r\n\r\n".encode("ascii")


def answer_with_text(text: str) -> bytes:
    """An answer that is neither a verdict nor a refusal."""
    body = text.encode("utf-8")
    return f"SPAMD/1.1 0 EX_OK\r\nContent-length: {len(body)}\r\n\r\n".encode("ascii") + body
