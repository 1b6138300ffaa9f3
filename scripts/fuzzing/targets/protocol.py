"""spamd's protocol: whole, cut and split requests, and what a worker answers to them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from email.parser import BytesHeaderParser
from functools import cache, partial
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any
from unicodedata import category

import textnb
from fuzzing.harness import Finding, make_folder, one_in
from fuzzing.mutations import change
from textnb.files.replace import replace_file
from textnb.filter import protocol, worker
from textnb.filter.ledger import Ledger, message_key
from textnb.filter.mailfilter import MailFilter
from textnb.filter.models import ServedModel
from textnb.filter.protocol import VERDICT_COMMANDS, Refused, Request
from textnb.filter.service import Counters, Settings, counters_size
from textnb.mail.message import read_message

WITHIN = ["textnb.filter"]
ABOUT = "requests of spamd's protocol, cut and split anywhere, and the answers"
LONGEST = 20_000
_MAX_BYTES = 1 << 12
_MESSAGES = [b"Subject: cheap\r\n\r\ncheap pills\r\n", b"From a b\nSubject: noon\n\nsee you\n", b"",
             b"X-Spam-Flag: NO\nX-Textnb-Status: ham\n\n", b"\xff\0\n\n",
             b"X-Spam-Flag : NO\nX-Spam-Level\t: *\n\n",
             b"To: a\nX-Spam-Level: *\n one\n\ttwo\n\nx\n",
             b"To: a\nY: z\rX-Spam-Flag: NO\rX-Textnb-Status: ham\r\r\nX-Spam-Level: *\n\n\nx\n",
             b"From a\rX-Spam-Flag: NO\nTo: b\n\nx", b"To: a\rX-Spam-Flag: NO\r\rX-Spam-Flag: NO\r"]
_HEADERS = [b"Content-length: 30", b"User: alice", b"User: ../x y'\xc3\xa0", b"Compress: zlib",
            b"Set: local", b"Remove: local", b"Message-class: spam", b"Message-class: ham",
            b"Content-length: -1", b"content-LENGTH : 5", b"X: " + b"y" * 8200, b"no colon", b":",
            b"Compress: gzip", b"Content-length: 0", b"Content-length: 4096",
            b"Content-length: 4097", b"Content-length: \xc2\xbd"]
_VERDICT = re.compile(rb"^Spam: (True|False|Yes|No) ; (-?[0-9]+\.[0-9]) / 5\.0\r$", re.MULTILINE)
_STATUS = re.compile(rb"^X-Spam-Status: (Yes|No), score=(-?[0-9]+\.[0-9]) [^\r\n]*(\r?\n)", re.M)
# The first line of a header of a verdict, also of a sender's.
_OF_VERDICT = re.compile(
    rb"(?i)X-(Textnb-Status|Spam-(Flag|Level|Status|Score|Report|Checker-Version|Bar|Prev-Subject|"
    rb"Prev-Content-Type))[ \t]*:")


def seeds() -> list[bytes]:
    return [request(command, version, headers, message)
            for command in (*map(str.encode, protocol.COMMANDS), b"NONE")
            for version in (b"1.5", b"1.2") for message in _MESSAGES[:2]
            for headers in ([], [b"Set: local", b"Message-class: spam"], [b"Compress: zlib"],
                            [b"User: alice", b"Set: local", b"Message-class: ham"])]


def request(command: bytes, version: bytes, headers: list[bytes], message: bytes) -> bytes:
    """A request with a right length."""
    if b"Compress: zlib" in headers:
        message = zlib.compress(message)
    lines = [command + b" SPAMC/" + version, b"Content-length: %d" % len(message), *headers, b""]
    return b"".join(line + b"\r\n" for line in lines) + message


def mutate(data: bytes, random: Random) -> bytes:
    head, gap, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    match random.randrange(9):
        case 0:
            lines[0] = random.choice(protocol.COMMANDS).encode() + random.choice(
                [b" SPAMC/1.5", b" SPAMC/1.2", b" SPAMC/1.1", b" SPAMC/1.3", b" SPAMC/999.0", b""])
        case 1 | 2:
            lines.insert(random.randrange(1, len(lines) + 1), random.choice(_HEADERS))
        case 3:
            lines = [line for line in lines if random.random() < 0.8]
        case 4:
            body = random.choice([*_MESSAGES, zlib.compress(random.choice(_MESSAGES)),
                                  zlib.compress(random.choice(_MESSAGES)) + b"more",
                                  zlib.compress(bytes(_MAX_BYTES + random.randrange(-1, 2)))])
        case 5:
            body = change(body, random)
        case 6:
            return change(data, random)
        case 7:
            lines[1:] = (lines[1:] * random.choice([2, 90, 255]))[:300]
        case 8:
            # The largest body, whose length is not declared.
            lines = [line for line in lines if not line.lower().startswith(
                (b"content-length", b"compress"))]
            size = _MAX_BYTES + random.randrange(-1, 2)
            body = ((body or b"x") * size)[:size]
    if random.random() < 0.7:
        lines = [line if not line.lower().startswith(b"content-length")
                 else b"Content-length: %s%d" % (random.choice([b""] * 20 + [b"+", b"0"]),
                                                 len(body) + random.choice([0, 0, 0, 0, -1, 1]))
                 for line in lines]
    return b"\r\n".join(lines) + (gap or b"\r\n\r\n") + body


class _Served:
    """A worker with a model of its own, and another one of a user, without a server."""

    def __init__(self) -> None:
        folder = make_folder()
        judging: dict[str, Any] = {"min_learned": 0}
        rows = [message.decode("latin-1") for message in _MESSAGES[:2] * 3]
        # What is spam for others is ham for this user.
        labels = {None: ["spam", "ham"], "alice": ["ham", "spam"]}
        paths = {user: str(folder / f"{user}.textnb") for user in labels}
        for user, path in paths.items():
            textnb.TextClassifier(textnb.MultinomialNB(), text="body").fit(
                {"body": rows, "label": labels[user] * 3}).save(path)
        settings = partial(
            Settings, paths[None], users={"alice": paths["alice"]}, judging=judging,
            workers=1, timeout=0.0)
        with tempfile.TemporaryFile() as file:
            file.truncate(counters_size(1))
            self.counters = Counters(file.fileno(), 1)
        self.worker = worker.Worker(
            settings(client_timeout=30.0, max_bytes=_MAX_BYTES, tellers=[os.getuid()]),
            self.counters)
        self.impatient = worker.Worker(
            settings(client_timeout=0.02, max_bytes=_MAX_BYTES, tellers=[os.getuid() + 1]),
            self.counters)
        self.large = worker.Worker(
            settings(client_timeout=0.3, max_bytes=1 << 20), self.counters)
        self._models = {user: (ServedModel(path, judging, print), Ledger(path))
                        for user, path in paths.items()}
        # A file that is replaced by each of the others in turn, and what these say.
        self._others = cycle([(Path(path).read_bytes(), MailFilter.load(path, **judging))
                              for path in paths.values()])
        self._replaced = str(folder / "replaced.textnb")
        self.replace()
        self.replaced = ServedModel(self._replaced, judging, lambda *_, **__: None)
        self.ends = socket.socketpair()
        self.loop = asyncio.new_event_loop()

    def read(self, blocks: Iterable[bytes], ends: bool = True) -> tuple[Request, bytes]:
        """What the worker reads from a stream that comes in blocks, and may never end."""
        stream = asyncio.StreamReader(protocol.MAX_LINE, self.loop)
        reading = self.worker._read(stream)
        try:
            for block in blocks:
                reading.send(None)
                if block:
                    stream.feed_data(block)
            if ends:
                stream.feed_eof()
            reading.send(None)
            # It waits for more.
            raise Refused("EX_TIMEOUT", "the request was not sent in time")
        except StopIteration as done:
            read: tuple[Request, bytes] = done.value
            return read
        finally:
            reading.close()

    def replace(self) -> MailFilter:
        """Replace the model of `replaced`; what it is to say from then on."""
        content, other = next(self._others)
        with replace_file(self._replaced) as file:
            file.write(content)
        return other

    def model(self, request: Request) -> tuple[ServedModel, Ledger]:
        return self._models.get(request.user, self._models[None])

    def check_counted(self, before: dict[str, int], events: list[str | None]) -> None:
        """Each of some events was counted once, and no other."""
        counted = {name: n - before[name] for name, n in self.counters.totals().items()}
        if counted != {name: int(name in events) for name in counted}:
            raise Finding("an answer is counted as another", f"{events}: {counted}")

    def replied(self, request: Request, message: bytes) -> bytes:
        return self.worker._reply(request, message, self.ends[0])

    def answer(self, data: bytes, ends: bool) -> bytes:
        """The answer to what a client has sent, which may send more for ever."""
        try:
            return self.replied(*self.read([data], ends))
        except Refused as refused:
            return refused.answer()

    def through_a_socket(self, data: bytes, client: str) -> bytes:
        """The answer at the end of a real connection to a client that ends, closes or waits."""
        own, other = socket.socketpair()
        own.setblocking(False)
        with other:
            other.sendall(data)
            if client == "ends":
                other.shutdown(socket.SHUT_WR)
            elif client == "closes":
                other.close()
            answering = (self.impatient if client == "waits" else self.worker)._answer(own)
            self.loop.run_until_complete(answering)
            return b"" if client == "closes" else other.recv(1 << 20, socket.MSG_WAITALL)

    def check_read_late(self) -> None:
        """A client that begins to read when the server has nothing left to do gets all."""
        message, answered = b"Subject: a\n\n" + b"x\n" * 15_000, list[bytes]()

        def read_late(other: socket.socket) -> None:
            time.sleep(0.02)
            answered.append(other.recv(1 << 20, socket.MSG_WAITALL))

        self._with_client(message, read_late)
        if not answered[0].endswith(message):
            raise Finding("an answer that is read late is cut", f"{len(answered[0]):,} bytes")

    def check_unread(self) -> None:
        """A client that does not read a large answer does not keep its connection for ever."""
        try:
            self._with_client(b"Subject: a\n\n" + b"x\n" * 200_000, lambda other: None)
        except TimeoutError as error:
            raise Finding("a client that does not read keeps its connection") from error

    def _with_client(self, message: bytes, read: Callable[[socket.socket], None]) -> None:
        """Answer a client, in a thread, that reads in its own way what fits into no buffer."""
        own, other = socket.socketpair()
        own.setblocking(False)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)

        def ask() -> None:
            other.sendall(request(b"PROCESS", b"1.5", [], message))
            read(other)

        async def answer() -> None:
            await asyncio.wait_for(self.large._answer(own), 5)

        client = threading.Thread(target=ask)
        with other:
            client.start()
            try:
                self.loop.run_until_complete(answer())
            finally:
                client.join()


@cache
def _served() -> _Served:
    # What is logged is not looked at.
    setattr(worker, "log", lambda event, **facts: None)  # noqa: B010 - it is not exported
    served = _Served()
    # They depend on no input.
    served.check_unread()
    served.check_read_late()
    return served


def check(data: bytes) -> int:
    served, random = _served(), Random(zlib.crc32(data))
    whole, expected = _outcome(served, [data]), _expected(data)
    if whole[:len(expected)] != expected:
        raise Finding("a request is read otherwise", f"{whole!r} instead of {expected!r}")
    size = random.choice([1, 2, 7, 30] if len(data) < 300 else [100, 1000, 8192])
    split = _outcome(served, [data[at:at + size] for at in range(0, len(data), size)])
    if split != whole:
        raise Finding("a split request is read otherwise", f"{split!r} instead of {whole!r}")
    if isinstance(whole, str):
        return len(data)
    request, message = whole
    before, event = served.counters.totals(), None
    try:
        answer = served.replied(request, message)
        if request.command in VERDICT_COMMANDS:
            event = served.model(request)[0].judge(message)[0].status
        elif request.command == "TELL":
            event = "told"
    except Refused as refused:
        answer = refused.answer()
        if refused.code == "EX_SOFTWARE":
            raise Finding("a message can't be judged", refused) from refused
    served.check_counted(before, [event])
    _check_answer(served, request, message, answer)
    if request.command == "TELL":
        with suppress(Refused):
            answer = served.impatient._reply(request, message, served.ends[0])
            raise Finding("a user may tell who must not", answer)
    if message and one_in(50, random):
        _check_replaced(served, message)
    if one_in(64, random):
        client, sent = random.choice(["ends", "closes", "waits"]), data[:random.randrange(1 << 12)]
        before = served.counters.totals()
        other = served.through_a_socket(sent, client)
        if re.match(rb"SPAMD/1\.0 [1-9]", other):
            served.check_counted(before, ["connections", "refused"])
        answer = served.answer(sent, client != "waits")
        if client != "closes" and other != answer and request.command not in ("STATUS", "TELL"):
            raise Finding("a socket has another answer", f"{other!r} instead of {answer!r}")
    return len(data) + len(message)


def _check_replaced(served: _Served, message: bytes) -> None:
    """A model file that is replaced judges from then on, by the short way or as a whole."""
    # A character that is in no version of Unicode is not for the short way.
    messages = [message, message + "\u0378".encode()]
    for _ in range(2):
        other = served.replace()
        for each in messages:
            own, whole = served.replaced.judge(each)[0], other.judge(each)
            if own.status != whole.status or abs(own.log_odds - whole.log_odds) > 1e-9:
                raise Finding("a model that was replaced judges", f"{own} instead of {whole}")


def _outcome(served: _Served, blocks: Iterable[bytes]) -> Any:
    try:
        return served.read(blocks)
    except Refused as refused:
        if not re.fullmatch(rb"SPAMD/1\.0 [1-9][0-9] [A-Z_]+ [ -~]*\r\n", refused.answer()):
            raise Finding("a refusal is no line of ASCII", refused.answer()) from refused
        return f"{refused.code} {refused}"


def _expected(data: bytes) -> Any:
    """What a request says, read in another way; or the beginning of what a refusal says."""
    lines, rest = list[bytes](), data
    for number in range(257):
        line, end, rest = rest.partition(b"\n")
        if len(line) > protocol.MAX_LINE:
            return "EX_PROTOCOL a line is too long"
        line = (line + end).rstrip(b"\r\n")
        if number == 0:
            if not data:
                return "EX_PROTOCOL closed"
            first = re.fullmatch(rb"([A-Z_]+) SPAMC/(\d{1,3})\.(\d{1,3})", line)
            if not first or first[1].decode() not in protocol.COMMANDS:
                return "EX_PROTOCOL no command"
            command, version = first[1].decode(), (int(first[2]), int(first[3]))
            if command in ("PING", "SKIP") and version < (1, 5):
                return Request(command, version), b""
        elif not line:
            break
        else:
            lines.append(line)
    else:
        return "EX_PROTOCOL too many headers"
    headers: dict[str, str] = {}
    for line in lines:
        if b":" not in line:
            return "EX_PROTOCOL header not in"
        name, value = (part.strip(b" \t\r\n\v\f").decode(errors="surrogateescape")
                       for part in line.split(b":", 1))
        if headers.setdefault(name.lower(), value) != value:
            return "EX_PROTOCOL two headers"
    length, user, packing = map(headers.get, ("content-length", "user", "compress"))
    if length is not None and not (length.isascii() and length.isdigit() and len(length) < 16):
        return "EX_PROTOCOL Content-length is not a number"
    if user is not None and (not 1 <= len(user) <= 128 or "Cc" in map(category, user)):
        return "EX_PROTOCOL the user"
    if packing is not None and (packing.lower() != "zlib" or length is None):
        return "EX_PROTOCOL Compress needs" if packing.lower() == "zlib" else (
            "EX_PROTOCOL compression is not")
    n = None if length is None else int(length)
    request = Request(command, version, n, user, packing is not None, headers)
    if command not in (*VERDICT_COMMANDS, "TELL"):
        return request, b""
    if max(n or 0, len(rest) if n is None else 0) > _MAX_BYTES:
        return "EX_DATAERR the message is longer"
    message = rest[:n]
    if n is not None and len(message) < n:
        return "EX_PROTOCOL Content-length is"
    if packing is not None:
        unpacked = zlib.decompressobj()
        try:
            message = unpacked.decompress(message, _MAX_BYTES + 1)
        except zlib.error:
            return "EX_DATAERR the message can't be inflated"
        if len(message) > _MAX_BYTES:
            return "EX_DATAERR the message is longer"
        if not unpacked.eof:
            return "EX_DATAERR the compressed message is cut"
        if unpacked.unused_data:
            return f"EX_DATAERR {len(unpacked.unused_data)} bytes follow the compressed message"
    return request, message


def _check_answer(served: _Served, request: Request, message: bytes, answer: bytes) -> None:
    def require(is_right: bool, what: str) -> None:
        if not is_right:
            raise Finding(f"an answer {what}", f"{request.command} {request.version}: {answer!r}")

    command, version = request.command, request.version
    head, gap, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    if command in ("PING", "SKIP"):
        require(answer == (b"SPAMD/1.5 0 PONG\r\n" if command == "PING" else b""), "to a ping")
        return
    if not first.endswith(b" 0 EX_OK"):
        require(bool(re.fullmatch(rb"SPAMD/1\.0 [1-9]\d EX_[A-Z]+ [ -~]+\r\n", answer)),
                "that refuses is no line")
        told = [request.headers.get(name, "").lower() for name in ("set", "remove")]
        require(not message or (command == "TELL" and (
            ("local" in told[0]) == ("local" in told[1])
            or ("local" in told[0]
                and request.headers.get("message-class", "").lower() not in ("spam", "ham")))),
            "refuses a sound request")
        return
    require(command == "STATUS" or bool(message), "accepts an empty message")
    require(bool(re.fullmatch(rb"SPAMD/1\.[01] 0 EX_OK", first)), "has no first line")
    if command in ("PROCESS", "HEADERS") and version < (1, 2):
        head, lines, body = first, [], answer[len(first) + 2:]
    lengths = [int(line[15:]) for line in lines if line.startswith(b"Content-length:")]
    require(lengths in ([], [len(body)]) or (not gap and not body), "has another length")
    require(bool(lengths) == (command not in VERDICT_COMMANDS or (
        command != "CHECK" and version >= (1, 3))
        or (command in ("PROCESS", "HEADERS") and version == (1, 2))), "says no length, or one")
    if command == "STATUS":
        require(min(json.loads(body).values()) >= 0, "has a count below 0")
    elif command == "TELL":
        is_set = "local" in request.headers.get("set", "").lower()
        require(is_set or lines[0] != b"DidSet: local", "says that it set what was to be removed")
        again = served.replied(request, message)
        require(b"Did" not in again, "to what was told again says that it did something")
        model, ledger = served.model(request)
        key = message_key(*model.judged_texts(message))
        name = request.headers["message-class"].lower() if is_set else None
        require(ledger.label_of(key) == name, "says what the ledger does not")
        if b"Did" in answer:
            last, = ledger._database.execute(
                "SELECT message FROM pending ORDER BY number DESC LIMIT 1").fetchone()
            require(last == message, "is to another message than the ledger has")
    else:
        _check_verdict(served, request, message, head, body, require)


def _check_verdict(
    served: _Served, request: Request, message: bytes, head: bytes, body: bytes, require: Any
) -> None:
    command = request.command
    verdict, min_odds = served.model(request)[0].judge(message)
    is_spam = verdict.status == "spam"

    def require_verdict(said: re.Match[bytes] | None, yes: bytes) -> None:
        # A point is a unit of log-odds, and spam has 5 points or more.
        points = 5 + verdict.log_odds - min_odds
        points = min(max(points, 5.0), 999.9) if is_spam else max(min(points, 4.9), -999.9)
        require(said is not None and (said[1] == yes) == is_spam == (float(said[2]) >= 5)
                and abs(float(said[2]) - points) < 0.051, "has another verdict")

    if command not in ("PROCESS", "HEADERS") or request.version >= (1, 3):
        require_verdict(_VERDICT.search(head + b"\r\n"),
                        b"Yes" if command == "REPORT_IFSPAM" else b"True")
    match command:
        case "CHECK":
            require(not body, "to CHECK has a body")
        case "SYMBOLS":
            symbols = f"TEXTNB_{verdict.status.upper()}{',TEXTNB_MALFORMED' * bool(verdict.errors)}"
            end = "" if request.version >= (1, 3) else "\r\n"
            require(body == f"{symbols}{end}".encode(), "has other symbols")
        case "REPORT" | "REPORT_IFSPAM":
            require(bool(body) == (is_spam or command == "REPORT"), "has a report, or lacks one")
            require(b"\0" not in body and b"\r" not in body, "has a report with control characters")
            total = re.search(rb"\((\S+) points, ", body)
            points = re.findall(rb"(?m)^ *(-?[0-9.]+) TEXTNB_(?:TERM|REST) ", body)
            # The score has a limit, and its points have none.
            require(not total or abs(float(total[1])) == 999.9
                    or abs(float(total[1]) - sum(map(float, points)))
                    < 0.051 * (len(points) + 1), "has a report whose points are not the score")
        case _:
            block, gap, rest = _halves(message)
            if not re.sub(rb"\A(?:From [^\n]*\n)?(?:[ \t][^\n]*\n)*[ \t][^\n]*\Z", b"", message):
                # A message of continuation lines alone whose last one has no end is a body there.
                begin = message.rfind(b"\n") + 1
                block, gap, rest = message[:begin], b"", message[begin:]
            tail = gap + rest if command == "PROCESS" else b""
            own = body.removesuffix(tail)
            require(len(own) == len(body) - len(tail) and not _halves(own)[2], "changes the body")
            names = re.findall(
                rb"(?im)^(X-Textnb-Status|X-Spam-(?:Flag|Level|Status))[ \t]*:", own)
            marks = Counter(map(bytes.lower, names))
            require(marks[b"x-textnb-status"] == 1 == max(marks.values())
                    and (b"X-Spam-Flag: YES" in own) == is_spam == marks[b"x-spam-flag"],
                    "lacks the header of the verdict, or has two")
            # The standard library and the package read lines that end in "\r" alone.
            for fields in (BytesHeaderParser().parsebytes(body).keys(),
                           [name for name, _ in read_message(body)[1].fields]):
                seen = Counter(map(str.lower, fields))
                require(max(seen["x-textnb-status"], seen["x-spam-level"], seen["x-spam-status"],
                            seen["x-spam-flag"] + (not is_spam)) <= 1, "has a forged header")
            said = _STATUS.search(own)
            require_verdict(said, b"Yes")
            require(said is None or b"X-Spam-Level: %s%s" % (
                b"*" * int(max(0.0, min(50.0, float(said[2])))), said[3]) in own, "has other stars")
            require(_other_lines(own) == _other_lines(block), "changes headers")


def _other_lines(headers: bytes) -> list[bytes]:
    """The lines that belong to no header of a verdict; "\\r" alone ends a line too."""
    lines, is_left_out = [], False
    for line in re.split(rb"\r*\n|\r", headers):
        if line[:1] not in (b" ", b"\t"):
            is_left_out = _OF_VERDICT.match(line) is not None
        if line and not is_left_out:
            lines.append(line)
    return lines


def _halves(message: bytes) -> tuple[bytes, bytes, bytes]:
    """The lines of headers, the empty line, and what follows it."""
    if b"\n" not in message:
        head, gap, body = message.partition(b"\r\r")
        return head + gap[:1], gap[1:], body
    at = 0
    for line in re.findall(rb"[^\n]*\n?", message):
        if line in (b"\n", b"\r\n"):
            return message[:at], line, message[at + len(line):]
        at += len(line)
    return message, b"", b""
