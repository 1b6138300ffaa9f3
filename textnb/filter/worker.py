"""One worker of a server: it takes connections, judges their messages, and answers.

    connection -> request -> message -> model of the user -> verdict -> answer

The server (`textnb.filter.server`) starts a worker with the listening sockets, and ends it by
closing its standard input, or by SIGTERM. Before it ends, the worker answers the requests on its
open connections.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from textnb.errors import ParameterError, TextnbError, first_line
from textnb.filter import protocol
from textnb.filter.ledger import Ledger, message_key
from textnb.filter.models import ServedModel
from textnb.filter.protocol import Refused, Request
from textnb.filter.service import Counters, Settings, log, message_id
from textnb.filter.spamd_verdict import SpamdVerdict, in_spamd_terms
from textnb.filter.verdict import SPAM, Verdict

READY = b"ready\n"
# The exit code of a worker whose settings don't fit a model.
BAD_SETTINGS = 2
# The process, user and group at the other end of a socket, as Linux gives them.
_PEER = struct.Struct("iII")
# The number of terms in a report.
_MAX_TERMS = 12


class Worker:
    """Answers the requests of its connections.

    Parameters
    ----------
    settings : Settings
    counters : Counters

    Raises
    ------
    TextnbError
        If a model can't be read.
    """

    def __init__(self, settings: Settings, counters: Counters) -> None:
        self._settings, self._counters = settings, counters
        models = {path: ServedModel(path, settings.judging, log) for path in settings.models}
        # A wrong class of ham is an error now, and not at the first TELL.
        for model in models.values():
            model.label_of("ham", settings.ham)
        self._default = models[settings.model]
        self._users = {user: models[path] for user, path in settings.users.items()}
        self._ledgers: dict[str, Ledger] = {}

    async def serve(self, listeners: Sequence[socket.socket], stop: asyncio.Event) -> None:
        """Accept connections until asked to stop, then close listeners and finish connections."""
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[None]] = set()

        def resume() -> None:
            if not stop.is_set() and len(tasks) < self._settings.connections:
                for listener in listeners:
                    loop.add_reader(listener, accept, listener)

        def pause() -> None:
            for listener in listeners:
                loop.remove_reader(listener)

        def accept(listener: socket.socket) -> None:
            # Each accepted connection has a task at once, so that it can't be lost in a stop.
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return  # Another worker was quicker, or the client is gone.
            except OSError as error:
                # There are too many open files, for example: other connections will be closed.
                log("not accepted", reason=error.strerror)
                # Try again in a tenth of a second.
                pause()
                loop.call_later(0.1, resume)
                return
            connection.setblocking(False)
            task = loop.create_task(self._answer(connection))
            tasks.add(task)
            task.add_done_callback(end)
            if len(tasks) >= self._settings.connections:
                pause()

        def end(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            if len(tasks) == self._settings.connections - 1:
                resume()

        resume()
        await stop.wait()
        pause()
        # While a worker holds them open, a new server can't take the place of one that was killed.
        for listener in listeners:
            listener.close()
        if tasks:
            await asyncio.wait(tasks, timeout=self._settings.grace)

    async def _answer(self, connection: socket.socket) -> None:
        self._counters.add("connections")
        writer = None
        try:
            reader, writer = await asyncio.open_connection(sock=connection, limit=protocol.MAX_LINE)
            try:
                async with asyncio.timeout(self._settings.client_timeout):
                    request, message = await self._read(reader)
                answer = self._reply(request, message, connection)
            except TimeoutError:
                answer = self._refuse(Refused("EX_TIMEOUT", "the request was not sent in time"))
            except Refused as refused:
                answer = self._refuse(refused)
            writer.write(answer)
            async with asyncio.timeout(self._settings.client_timeout):
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError):
            # The client is gone.
            pass
        finally:
            if writer is None:
                connection.close()
            elif connection.fileno() >= 0:
                # asyncio can't abort what it has closed, if some of it was written late.
                writer.transport.abort()

    async def _read(self, reader: asyncio.StreamReader) -> tuple[Request, bytes]:
        """Read a request, and its message, which is empty for commands without one."""
        command_line = await _read_line(reader)
        if not command_line:
            raise Refused("EX_PROTOCOL", "closed before a request")
        request = protocol.parse_command(command_line)
        if protocol.has_headers(request):
            lines: list[bytes] = []
            while line := (await _read_line(reader)).rstrip(b"\r\n"):
                lines.append(line)
                if len(lines) > protocol.MAX_HEADERS:
                    raise Refused("EX_PROTOCOL", "too many headers")
            request = protocol.parse_headers(request, lines)
        if request.command not in (*protocol.VERDICT_COMMANDS, "TELL"):
            return request, b""
        max_bytes = self._settings.max_bytes
        if (request.length or 0) > max_bytes:
            raise protocol.too_long(max_bytes)
        body = await _read_body(reader, request.length, max_bytes)
        return request, protocol.message_of(request, body, max_bytes)

    def _reply(self, request: Request, message: bytes, connection: socket.socket) -> bytes:
        match request.command:
            case "PING":
                return protocol.PONG
            case "SKIP":
                return b""
            case "STATUS":
                return protocol.answer_with_text(json.dumps(
                    {**self._counters.totals(), "since_fit": self._default.since_fit}) + "\n")
            case "TELL":
                return self._tell(request, message, connection)
        started = time.perf_counter()
        verdict, spamd_verdict = self._judge(request, message)
        answer = protocol.answer(request, spamd_verdict, message)
        self._counters.add(verdict.status)
        log("verdict", command=request.command, verdict=verdict.status, score=spamd_verdict.score,
            reason=verdict.reason, bytes=len(message), user=request.user,
            milliseconds=round((time.perf_counter() - started) * 1e3, 1),
            message_id=message_id(message))
        return answer

    def _tell(self, request: Request, message: bytes, connection: socket.socket) -> bytes:
        """Note durably what a message is; the model learns it a little later."""
        if not self._settings.tellers:
            raise Refused("EX_UNAVAILABLE", "this server does not learn")
        if _user_of(connection) not in self._settings.tellers:
            raise Refused("EX_NOPERM", "this user may not tell what a message is")
        name, model = protocol.parse_tell(request), self._model_of(request)
        if not message:
            raise Refused("EX_DATAERR", "the message is empty")
        with self._limited():
            label = None if name is None else model.label_of(name, self._settings.ham)
            if name is not None and label is None:
                raise Refused("EX_UNAVAILABLE", "the model has several classes that are not spam: "
                                                "start the server with --ham-class")
            key = message_key(*model.judged_texts(message))
            # A new ledger waits for others that make it.
            ledger = self._ledger_of(model)
        try:
            changed = ledger.add(key, label, message)
        except TextnbError as error:
            # If the ledger was opened while it could not be written, it stays read-only for SQLite
            # until it is closed. The next request opens it again.
            self._ledgers.pop(os.path.realpath(model.path), None)
            ledger.close()
            raise Refused("EX_TEMPFAIL", first_line(error)) from None
        self._counters.add("told")
        log("told", told=name or "forget", changed=changed, user=request.user,
            bytes=len(message), message_id=message_id(message))
        return protocol.answer_to_tell(name, changed)

    def _ledger_of(self, model: ServedModel) -> Ledger:
        # Links may lead to one file, which must be open once: SQLite's locks on it end if a process
        # opens it again and closes that.
        path = os.path.realpath(model.path)
        if path not in self._ledgers or not self._ledgers[path].is_of(path):
            models = (self._default, *self._users.values())
            in_use = {os.path.realpath(each.path) for each in models} - {path}
            for other in {*self._ledgers} - in_use:
                self._ledgers.pop(other).close()
            self._ledgers[path] = Ledger(path)
        return self._ledgers[path]

    def _model_of(self, request: Request) -> ServedModel:
        return self._users.get(request.user or "", self._default)

    def _judge(self, request: Request, message: bytes) -> tuple[Verdict, SpamdVerdict]:
        model = self._model_of(request)
        if not message:
            raise Refused("EX_DATAERR", "the message is empty")
        with self._limited():
            verdict, min_odds = model.judge(message)
            terms = model.deciding_terms(message, _MAX_TERMS) if protocol.has_report(
                request, verdict.status == SPAM) else ()
            return verdict, in_spamd_terms(verdict, min_odds, terms)

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Limit the time in which the block reads a message, and refuse it after an error."""
        self._counters.begin()
        if self._settings.timeout:
            signal.setitimer(signal.ITIMER_REAL, self._settings.timeout)
        try:
            yield
        except Refused:
            raise
        except _TooLate:
            raise Refused("EX_TIMEOUT", "the message was not judged in time") from None
        except TextnbError as error:
            raise Refused("EX_TEMPFAIL", first_line(error)) from None
        except Exception as error:
            # One message must not end the worker; the client tries again, or passes it on.
            raise Refused("EX_SOFTWARE", f"the message could not be judged: {first_line(error)}"
                          ) from error
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            self._counters.end()

    def _refuse(self, refused: Refused) -> bytes:
        failed = refused.code in ("EX_SOFTWARE", "EX_TEMPFAIL")
        self._counters.add("failed" if failed else "refused")
        log("failed" if failed else "refused", code=refused.code, reason=str(refused)[:500])
        return refused.answer()


def _user_of(connection: socket.socket) -> int | None:
    """The id of the user at the other end of a connection; None if the system does not tell."""
    if connection.family != getattr(socket, "AF_UNIX", None) or not hasattr(socket, "SO_PEERCRED"):
        return None
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    user: int = _PEER.unpack(peer)[1]
    return user


class _TooLate(BaseException):
    """Judging takes too long. It is no Exception, so that no library catches it."""


def _raise_too_late(number: int, frame: object) -> NoReturn:
    raise _TooLate


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except ValueError:
        raise Refused("EX_PROTOCOL", "a line is too long") from None


async def _read_body(reader: asyncio.StreamReader, length: int | None, max_bytes: int) -> bytes:
    """The bytes of the message; without a length, all bytes up to the end of the stream."""
    blocks, left = [], max_bytes + 1 if length is None else length
    while left and (block := await reader.read(min(left, 1 << 16))):
        blocks.append(block)
        left -= len(block)
    if length is None and not left:
        raise protocol.too_long(max_bytes)
    return b"".join(blocks)


def _note_stray_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error outside of requests, except those of clients that close their connections."""
    error = context.get("exception")
    if not isinstance(error, OSError):
        log("error", reason=f"{context['message']}: {error}"[:500])


async def _run(worker: Worker, listeners: Sequence[socket.socket]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def stop_with_server() -> None:
        loop.remove_reader(0)
        stop.set()

    loop.set_exception_handler(_note_stray_error)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # The server never writes to the standard input (0): it can be read if the server has closed it,
    # or has ended. From the standard output (1), the server learns that the worker is ready.
    loop.add_reader(0, stop_with_server)
    os.write(1, READY)
    await worker.serve(listeners, stop)


def main(arguments: Sequence[str]) -> None:
    """Serve until asked to stop.

    Parameters
    ----------
    arguments : sequence of str
        The settings, the descriptor of the shared counters, the worker's number, and the
        descriptors of the listening sockets.
    """
    settings_text, counters_file, number, *descriptors = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, _raise_too_late)
    settings = Settings.from_text(settings_text)
    try:
        worker = Worker(settings, Counters(int(counters_file), settings.workers, int(number)))
    except TextnbError as error:
        # The message that names options as the command line has them.
        os.write(1, error.command_line.encode("utf-8", "backslashreplace"))
        sys.exit(BAD_SETTINGS if isinstance(error, ParameterError) else 1)
    listeners = [socket.socket(fileno=int(descriptor)) for descriptor in descriptors]
    for listener in listeners:
        listener.setblocking(False)
    asyncio.run(_run(worker, listeners))


if __name__ == "__main__":
    main(sys.argv[1:])
