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
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

FAILED, INTERRUPTED = 3, 130
# As much as is judged of a message, and what one read takes.
MAX_MESSAGE, _BLOCK = 64 << 20, 1 << 16
# A message takes milliseconds, a hostile one seconds. An engine that could not start all its
# threads may wait for them without end.
TIMEOUT_SECONDS = 60.0
_GRACE_SECONDS = 10.0
# The child's own alarm comes first. A child that is stopped does not hear it.
_LATER_SECONDS = 1.0


def _signals(*names: str) -> frozenset[int]:
    return frozenset(getattr(signal, name) for name in names if hasattr(signal, name))


_INTERRUPTING = _signals("SIGINT", "SIGTERM", "SIGHUP")
# Those that end a process by default, and that Python can catch: not those of its own faults, of
# job control, or that are ignored by default.
_ENDING = sorted(signal.valid_signals() - _signals(
    "SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTSTP", "SIGTTIN", "SIGTTOU",
    "SIGCONT", "SIGCHLD", "SIGURG", "SIGWINCH", "SIGINFO"))
# What the system does to a process that takes too much, and what libraries do without memory.
_OF_MEMORY = _signals("SIGKILL", "SIGABRT", "SIGSEGV", "SIGBUS")
_END, _LIMIT = b"\0", b"limit "
_TOO_LATE = "the message was not judged in time; see --timeout"


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

    def limit(self, seconds: float) -> None:
        """Say within how many seconds the answer comes; 0 is no limit."""
        self._send(_LIMIT + b"%f\n" % seconds)


# Of the process that judges; None where a command runs without a guard, as in another program.
report: Report | None = None
# Of the process that files many messages: a signal asks it to end after the message at hand.
stop_asked = False


def run(command: Callable[[], object], arguments: Sequence[str], passthrough: bool) -> NoReturn:
    """Run a command that judges, and end the process with its verdict or with `FAILED`.

    ``passthrough`` is whether the message is to be written, whatever happens.
    """
    code = FAILED
    try:
        code = _Guard(command, arguments, passthrough).code()
    except KeyboardInterrupt:
        # Before it listens to signals.
        tell("interrupted; no verdict was given")
        code = INTERRUPTED
    except BaseException as error:
        tell(f"error: {_shown(error)}")
    finally:
        os._exit(code)


def limit(seconds: float) -> None:
    """End this process where it takes longer; 0 is no limit."""
    if report is None or report.message is None:
        return
    report.limit(seconds)
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


class _Guard:
    def __init__(
        self, command: Callable[[], object], arguments: Sequence[str], passthrough: bool
    ) -> None:
        self.command, self.passthrough = command, passthrough
        self.helps = "--help" in arguments
        many = any(word.split("=")[0] == "--maildir" for word in arguments)
        # At a terminal, a person is told of a missing argument before a message is asked for.
        # From elsewhere a message comes that must not be lost, also with options that exclude it.
        terminal, other = os.isatty(0), self.helps or many
        self.one = not (terminal and other) if self.passthrough else not (terminal or other)
        self.many = many and not self.one
        self.message, self.scratch, self.pending = bytearray(), bytearray(_BLOCK), 0
        # Whether there may be more to read.
        self.more, self.stopped, self.number = True, False, 0
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
            name = "" if self.number in _INTERRUPTING else f" by {_named(self.number)}"
            report, why = None, f"interrupted{name}; " + (
                "what was filed stays where it was put" if self.many else "no verdict was given")
        try:
            code, at, text = (FAILED, 0, b"") if report is None else report
            if at < 0:
                _write(1, text)
            elif self.one and self.passthrough:
                self._pass_on(at, text)
        finally:
            # After the message: it does not wait for who reads the notes.
            if why:
                tell(why)
        return INTERRUPTED if self.stopped and self.number in _INTERRUPTING else code

    # Signals

    def _listen(self) -> None:
        """A signal wakes what waits. It raises nothing: between two steps a byte would be lost."""
        self.wake, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        _handle(self._stop)

    def _stop(self, number: int, frame: object) -> None:
        self.stopped, self.number = True, self.number or number

    def _end_at_once(self) -> None:
        """Whether anybody reads what is written is not known: who wants an end gets it at once.

        Other signals (timers, limits) do not cut the message.
        """
        _handle(lambda number, frame: None)
        _handle(lambda number, frame: os._exit(FAILED), _signals("SIGQUIT"))
        _handle(lambda number, frame: os._exit(INTERRUPTED), _INTERRUPTING)

    def _readable(self, descriptor: int, deadline: float | None = None) -> bool:
        """Wait until a descriptor can be read; False where a signal or the deadline came first."""
        seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = select.select([descriptor, self.wake], [], [], seconds)[0]
        return ready == [descriptor] and not self.stopped

    def _was_signalled(self) -> bool:
        return self.stopped or bool(select.select([self.wake], [], [], 0)[0])

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
        answer = self._answer(reader, child)
        if answer is None:
            # Not waited for: what hangs in a file system does not end when it is killed.
            raise Failure(_TOO_LATE)
        status = os.waitpid(child, 0)[1]
        return self._understood(answer, os.waitstatus_to_exitcode(status))

    def _answer(self, reader: int, child: int) -> bytes | None:
        """What a child says until it ends; None where it neither ends nor answers in time."""
        answer, deadline = b"", self._deadline(TIMEOUT_SECONDS)
        while self._readable(reader, deadline):
            piece = os.read(reader, _BLOCK)
            if not piece:
                return answer
            answer += piece
            while answer.startswith(_LIMIT) and b"\n" in answer:
                limit, _, answer = answer.partition(b"\n")
                deadline = self._deadline(float(limit.removeprefix(_LIMIT)))
        if deadline is not None and not self._was_signalled():
            os.kill(child, signal.SIGKILL)
            return None
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

    def _deadline(self, seconds: float) -> float | None:
        return time.monotonic() + seconds + _LATER_SECONDS if self.one and seconds else None

    def _understood(self, answer: bytes, code: int) -> tuple[int, int, bytes]:
        head, _, text = answer.partition(b"\n")
        if text.endswith(_END):
            number, at = head.split(b" ")
            return int(number), int(at), text[:-len(_END)]
        if code == -signal.SIGALRM:
            raise Failure(_TOO_LATE)
        if code == FAILED:
            # It has said why.
            raise Failure("")
        ended = _named(-code) if code < 0 else f"code {code}"
        memory = "; is there enough memory?" if code >= 0 or -code in _OF_MEMORY else ""
        raise Failure(f"no verdict was given: the process that judges ended ({ended}){memory}")

    def _judge(self, writer: int) -> NoReturn:
        """In the child. It ends here, and without the work that an interpreter's end is."""
        code = FAILED
        try:
            code = self._judged(writer)
        except BaseException as error:
            tell(f"error: the message could not be judged: {_shown(error)}")
        finally:
            os._exit(code)

    def _judged(self, writer: int) -> int:
        global report
        signal.set_wakeup_fd(-1)
        report = Report(functools.partial(_write, writer), self.message if self.one else None)
        if self.one:
            # The parent writes what is written: help must not come into a message.
            os.dup2(2, 1)
            # The old object holds what it knew of the old file, such as that it can be sought in.
            sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
            _handle(signal.SIG_DFL)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
            limit(TIMEOUT_SECONDS)
        else:
            # Raised, an interrupt would be lost where a callback swallows exceptions.
            _handle(_ask_to_stop)
        code: object = 0
        try:
            self.command()
        except SystemExit as done:
            code = done.code
        sys.stdout.flush()
        if self.helps and not code and not report.sent:
            if self.one:
                raise Failure("--help was asked for, and no verdict")
            report.answer(0, b"", None)
        return 0 if report.sent else FAILED


def _handle(
    handler: Callable[[int, Any], object] | signal.Handlers, signals: Iterable[int] = _ENDING
) -> None:
    for number in signals:
        # Who starts a command with a signal ignored (nohup) means it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _named(number: int) -> str:
    try:
        return f"signal {number}, {signal.Signals(number).name}"
    except ValueError:
        # A real-time signal.
        return f"signal {number}"


def _ask_to_stop(number: int, frame: object) -> None:
    global stop_asked
    stop_asked = True


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


def tell(line: str) -> None:
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
