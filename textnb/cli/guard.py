"""Exit codes 0, 1 and 2 of `textnb filter` are verdicts: no failure may end with one of them.

    parent                              child
    reads the message          ──fork──>  imports, reads the model, judges
    waits for the report       <──pipe──  code, text, and where the text goes
    writes, and ends with the code

Python ends with 1 after any exception, and so do C libraries that can't get memory; the engine may
abort. So the process that answers runs nothing that can fail in such ways: it imports the standard
library alone. A child that ends without a report, however it ends, is a failure, and the message is
written by the parent, which holds its bytes.
"""

from __future__ import annotations

import functools
import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

FAILED, INTERRUPTED = 3, 130
# As much as is judged of a message, and what one read takes.
MAX_MESSAGE, _BLOCK = 64 << 20, 1 << 16
# A message takes milliseconds, a hostile one seconds. An engine that could not start all its
# threads may wait for them without end.
TIMEOUT_SECONDS = 60.0
_GRACE_SECONDS = 10.0
_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP")
                if hasattr(signal, name))
_END = b"\0"


class Failure(Exception):
    """Why there is no verdict, for the person."""


class _Stopped(Exception):
    """A signal came before the message was read to its end."""


class Report:
    """What a child says: once, and only when it has an answer."""

    def __init__(self, send: Callable[[bytes], object], message: bytearray | None) -> None:
        self._send = send
        # The message, where the parent has read it.
        self.message = message
        self.sent = False

    def answer(self, code: int, text: bytes, at: int | None) -> None:
        """End with a code, and write a text: into the message at a place, or alone."""
        place = -1 if at is None else at
        self._send(b"%d %d\n" % (code, place) + text + _END)
        self.sent = True


# Of the process that judges; None where a command runs without a guard, as in another program.
report: Report | None = None


def passes_through(arguments: Sequence[str]) -> bool:
    """Whether the message is to be written; short options may stand together."""
    return any(word == "--passthrough" or (word[:1] == "-" and word[1:2] != "-" and "p" in word)
               for word in arguments)


def run(command: Callable[[], object], arguments: Sequence[str]) -> NoReturn:
    """Run a command that judges, and end the process with its verdict or with `FAILED`."""
    code = FAILED
    try:
        code = _Guard(command, arguments).code()
    except KeyboardInterrupt:
        # Before it listens to signals.
        _tell("interrupted; no verdict was given")
        code = INTERRUPTED
    except BaseException as error:
        _tell(f"error: {_shown(error)}")
    finally:
        os._exit(code)


def limit(seconds: float) -> None:
    """End this process where it takes longer; 0 is no limit."""
    if report is not None and report.message is not None and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


class _Guard:
    def __init__(self, command: Callable[[], object], arguments: Sequence[str]) -> None:
        self.command, self.passthrough = command, passes_through(arguments)
        self.helps = "--help" in arguments
        self.many = any(word.split("=")[0] == "--maildir" for word in arguments)
        # At a terminal, a person is told of a missing argument before a message is asked for.
        self.one = not (self.helps or self.many) and (self.passthrough or not os.isatty(0))
        self.message, self.scratch, self.pending = bytearray(), bytearray(_BLOCK), 0
        # Whether there may be more to read.
        self.more, self.stopped = True, False
        self.wake = -1

    def code(self) -> int:
        report, why = None, ""
        try:
            closed = _fill_closed()
            self._listen()
            if 1 in closed:
                raise Failure("standard output is closed")
            if self.one:
                self._read(closed)
            report = self._report()
        except _Stopped:
            # Half a message is not written as if it were the whole.
            self.passthrough = False
        except BaseException as error:
            why = f"error: {_shown(error)}" if str(error) or not isinstance(error, Failure) else ""
        self._end_at_once()
        if self.stopped:
            report, why = None, ("interrupted; what was filed stays where it was put" if self.many
                                 else "interrupted; no verdict was given")
        try:
            code, at, text = (FAILED, 0, b"") if report is None else report
            if at < 0:
                _write(1, text)
            elif self.one and self.passthrough:
                self._pass_on(at, text)
        finally:
            # After the message: it does not wait for who reads the notes.
            if why:
                _tell(why)
        return INTERRUPTED if self.stopped else code

    # Signals

    def _listen(self) -> None:
        """A signal wakes what waits. It raises nothing: between two steps a byte would be lost."""
        self.wake, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        _handle(self._stop)

    def _stop(self, number: int, frame: object) -> None:
        self.stopped = True

    def _end_at_once(self) -> None:
        """Whether anybody reads what is written is not known: a signal ends that too."""
        _handle(lambda number, frame: os._exit(INTERRUPTED))

    def _readable(self, descriptor: int) -> bool:
        """Wait until a descriptor can be read; False where a signal came first."""
        ready = select.select([descriptor, self.wake], [], [])[0]
        return self.wake not in ready and not self.stopped

    # The message

    def _read(self, closed: Sequence[int]) -> None:
        if 0 in closed:
            self.more = False
            raise Failure("can't read standard input: it is closed")
        try:
            while len(self.message) <= MAX_MESSAGE:
                if not self._readable(0):
                    self.stopped = True
                    raise _Stopped
                # Into memory that is there: where there is none for more, nothing is lost.
                self.pending = os.readv(0, [self.scratch])
                if not self.pending:
                    self.more = False
                    break
                self.message += memoryview(self.scratch)[:self.pending]
                self.pending = 0
        except MemoryError:
            raise Failure("there is no memory for the message") from None
        except OSError as error:
            self.more = False
            raise Failure(f"can't read standard input: {_shown(error)}") from None
        if not self.message:
            raise Failure("can't read standard input: it is empty, and a message was expected")

    def _pass_on(self, at: int, text: bytes) -> None:
        """Write the message with a text in it, and what was not read of it."""
        with memoryview(self.message) as message, memoryview(self.scratch) as scratch:
            for part in (message[:at], text, message[at:], scratch[:self.pending]):
                _write(1, part)
            while self.more and (count := os.readv(0, [scratch])):
                _write(1, scratch[:count])

    # The child

    def _report(self) -> tuple[int, int, bytes]:
        """What a child answers: a code, a text, and its place in the message (-1: alone)."""
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            self._judge(writer)
        os.close(writer)
        told = self._heard(reader, child)
        status = os.waitpid(child, 0)[1]
        return self._understood(told, os.waitstatus_to_exitcode(status))

    def _heard(self, reader: int, child: int) -> bytes:
        told = b""
        while self._readable(reader):
            piece = os.read(reader, _BLOCK)
            if not piece:
                return told
            told += piece
        self.stopped = True
        if not self.one:
            # It finishes the message that it is at; a second signal, or too long a time, ends it.
            os.read(self.wake, _BLOCK)
            os.kill(child, signal.SIGTERM)
            while select.select([reader, self.wake], [], [], _GRACE_SECONDS)[0] == [reader]:
                if not os.read(reader, _BLOCK):
                    break
        os.kill(child, signal.SIGKILL)
        return b""

    def _understood(self, told: bytes, code: int) -> tuple[int, int, bytes]:
        head, _, text = told.partition(b"\n")
        if text.endswith(_END):
            number, at = head.split(b" ")
            return int(number), int(at), text[:-len(_END)]
        if code == -signal.SIGALRM:
            raise Failure("the message was not judged in time; see --timeout")
        if code == FAILED:
            # It has said why.
            raise Failure("")
        ended = f"signal {-code}" if code < 0 else f"code {code}"
        raise Failure("no verdict was given: the process that judges ended "
                      f"({ended}); is there enough memory?")

    def _judge(self, writer: int) -> NoReturn:
        """In the child. It ends here, and without the work that an interpreter's end is."""
        code = FAILED
        try:
            code = self._judged(writer)
        except BaseException as error:
            _tell(f"error: the message could not be judged: {_shown(error)}")
        finally:
            os._exit(code)

    def _judged(self, writer: int) -> int:
        global report
        signal.set_wakeup_fd(-1)
        report = Report(functools.partial(_write, writer), self.message if self.one else None)
        if self.one:
            _handle(signal.SIG_DFL)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
            limit(TIMEOUT_SECONDS)
        else:
            _handle(_interrupt_once)
        code: object = 0
        try:
            self.command()
        except SystemExit as done:
            code = done.code
        sys.stdout.flush()
        if self.helps and not code and not report.sent:
            report.answer(0, b"", None)
        return 0 if report.sent else FAILED


def _handle(handler: Callable[[int, Any], object] | signal.Handlers) -> None:
    for number in _ENDING:
        # Who starts a command with a signal ignored (nohup) means it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt_once(number: int, frame: object) -> None:
    _handle(signal.SIG_IGN)
    raise KeyboardInterrupt


def _fill_closed() -> list[int]:
    """Standard streams that are closed; a pipe that is opened must not take their numbers."""
    closed = []
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            closed.append(os.open(os.devnull, os.O_RDWR))
    return closed


def _write(descriptor: int, content: bytes | memoryview) -> None:
    with memoryview(content) as whole:
        at = 0
        while at < len(whole):
            at += os.write(descriptor, whole[at:at + (1 << 20)])


def _tell(line: str) -> None:
    """One line on standard error; what can't be written there changes no answer."""
    # contextlib would be an import more that can fail.
    try:  # noqa: SIM105
        os.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        pass


def _shown(error: BaseException) -> str:
    """An error in one line, and its type where that says more."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    name = type(error).__name__
    said = (str(error).strip() or name).splitlines()[0]
    return said if isinstance(error, Failure) or said == name else f"{name}: {said}"
