"""Exit codes 0, 1 and 2 of `textnb filter` are verdicts: no failure may end with one of them.

    parent                              child
    reads the message          ──fork──>  imports, reads the model, judges
    waits for the report       <──pipe──  code, text, and where the text goes
    writes, and ends with the code

Python exits with 1 after any exception, and so do C libraries that can't get memory; the engine may
abort. So the parent, whose exit code is the answer, imports the standard library alone, and runs
nothing that can fail in such ways. A child that ends without a report, however it ends, is a
failure, and the parent, which has the bytes of the message, writes them.
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
# The bytes of a message that are judged, and those of one read.
MAX_MESSAGE, _BLOCK = 64 << 20, 1 << 16
# A message takes milliseconds, a hostile one seconds. An engine that could not start all its
# threads may wait for them without end.
TIMEOUT_SECONDS = 60.0
_GRACE_SECONDS = 10.0
# The child's own alarm comes first; the parent's is for a child that is stopped.
_LATER_SECONDS = 1.0


def _signals(*names: str) -> frozenset[int]:
    return frozenset(getattr(signal, name) for name in names if hasattr(signal, name))


_INTERRUPTING = _signals("SIGINT", "SIGTERM", "SIGHUP")
# Signals that end a process by default and that Python can catch: without those of its own faults,
# those of job control, and those that are ignored by default.
_ENDING = sorted(signal.valid_signals() - _signals(
    "SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTSTP", "SIGTTIN", "SIGTTOU",
    "SIGCONT", "SIGCHLD", "SIGURG", "SIGWINCH", "SIGINFO"))
# How the system ends a process that takes too much memory, and how libraries end without it.
_OF_MEMORY = _signals("SIGKILL", "SIGABRT", "SIGSEGV", "SIGBUS")
_END, _LIMIT = b"\0", b"limit "
# The header of a verdict; what comes before the name of one that the sender has forged.
_STATUS, _OTHER_NAME = b"X-Textnb-Status", b"X-Original-"
_TOO_LATE = "the message was not judged in time; see --timeout"


class Failure(Exception):
    """Why there is no verdict, in words for the user."""


class _Stopped(Exception):
    """A signal came before the message was read to its end."""


class Report:
    """Sends the answer of a child to its parent: once, and only when there is one."""

    def __init__(self, send: Callable[[bytes], object], message: bytearray | None) -> None:
        self._send = send
        # The message, where the parent has read it.
        self.message = message
        self.sent = False

    def answer(self, code: int, text: bytes, at: int | None) -> None:
        """Tell the parent its exit code and a text: to write alone, or within the message."""
        place = -1 if at is None else at
        self._send(b"%d %d\n" % (code, place) + text + _END)
        self.sent = True

    def limit(self, seconds: float) -> None:
        """Tell the parent within how many seconds the answer comes; 0 is no limit."""
        self._send(_LIMIT + b"%f\n" % seconds)


# The report of the process that judges; None where a command runs without a guard.
report: Report | None = None
# In the process that files many messages: a signal asked it to end after the current message.
stop_asked = False


def run(command: Callable[[], object], arguments: Sequence[str], passthrough: bool) -> NoReturn:
    """Run a command that judges, and end the process with its verdict or with `FAILED`.

    ``passthrough`` is whether to write the message, whatever happens.
    """
    code = FAILED
    try:
        code = _Guard(command, arguments, passthrough).code()
    except KeyboardInterrupt:
        # The interrupt came before `_listen`.
        tell("interrupted; no verdict was given")
        code = INTERRUPTED
    except BaseException as error:
        tell(f"error: {_describe(error)}")
    finally:
        os._exit(code)


def limit(seconds: float) -> None:
    """End this process if it takes longer; 0 is no limit."""
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
        # At a terminal, the command reports a missing argument before it waits for a message.
        # Elsewhere a message comes that must not be lost, even with options that exclude it.
        terminal, other = os.isatty(0), self.helps or many
        self.one = not (terminal and other) if self.passthrough else not (terminal or other)
        self.many = many and not self.one
        self.message, self.scratch, self.pending = bytearray(), bytearray(_BLOCK), 0
        # `more`: whether there may be more of the message to read.
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
            child_has_told = isinstance(error, Failure) and not str(error)
            why = "" if child_has_told else f"error: {_describe(error)}"
        self._end_at_once()
        if self.stopped:
            name = "" if self.number in _INTERRUPTING else f" by {_signal_name(self.number)}"
            report, why = None, f"interrupted{name}; " + (
                "what was filed stays where it was put" if self.many else "no verdict was given")
        try:
            code, at, text = (FAILED, 0, b"") if report is None else report
            if at < 0:
                _write(1, text)
            elif self.one and self.passthrough:
                self._pass_on([(at, text)] if report is not None else disarming(self.message))
        finally:
            # After the message, which does not wait for the reader of the notes.
            if why:
                tell(why)
        return INTERRUPTED if self.stopped and self.number in _INTERRUPTING else code

    # Signals

    def _listen(self) -> None:
        """Let a signal end a wait. It raises nothing: between two steps a byte would be lost."""
        self.wake, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        _handle(self._stop)

    def _stop(self, number: int, frame: object) -> None:
        self.stopped, self.number = True, self.number or number

    def _end_at_once(self) -> None:
        """Let a signal to stop end the process at once: the reader of the output may have gone.

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
                # Read into memory that exists already: if there is none for more, nothing is lost.
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
            raise Failure(f"can't read standard input: {_describe(error)}") from None
        if not self.message:
            raise Failure("can't read standard input: it is empty, and a message was expected")

    def _pass_on(self, insertions: Iterable[tuple[int, bytes]]) -> None:
        """Write the message with texts at places in it, and then the part that was not read."""
        begin = 0
        with memoryview(self.message) as message, memoryview(self.scratch) as scratch:
            for at, text in insertions:
                _write(1, message[begin:at])
                _write(1, text)
                begin = at
            _write(1, message[begin:])
            _write(1, scratch[:self.pending])
            while self.more and (count := os.readv(0, [scratch])):
                _write(1, scratch[:count])

    # The child

    def _report(self) -> tuple[int, int, bytes]:
        """The answer of a child: a code, the text's place in the message (-1: alone), the text."""
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            self._judge(writer)
        os.close(writer)
        answer = self._answer(reader, child)
        if answer is None:
            # No wait for its end: a process that hangs in a file system does not end when killed.
            raise Failure(_TOO_LATE)
        status = os.waitpid(child, 0)[1]
        return self._parse_answer(answer, os.waitstatus_to_exitcode(status))

    def _answer(self, reader: int, child: int) -> bytes | None:
        """The bytes that a child writes until it ends; None if it does not end in time."""
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
            # The child finishes its message; a second signal, or the end of the grace, kills it.
            os.read(self.wake, _BLOCK)
            os.kill(child, signal.SIGTERM)
            while select.select([reader, self.wake], [], [], _GRACE_SECONDS)[0] == [reader]:
                if not os.read(reader, _BLOCK):
                    break
        os.kill(child, signal.SIGKILL)
        return b""

    def _deadline(self, seconds: float) -> float | None:
        return time.monotonic() + seconds + _LATER_SECONDS if self.one and seconds else None

    def _parse_answer(self, answer: bytes, code: int) -> tuple[int, int, bytes]:
        head, _, text = answer.partition(b"\n")
        if text.endswith(_END):
            number, at = head.split(b" ")
            return int(number), int(at), text[:-len(_END)]
        if code == -signal.SIGALRM:
            raise Failure(_TOO_LATE)
        if code == FAILED:
            # The child has written why.
            raise Failure("")
        ended = _signal_name(-code) if code < 0 else f"code {code}"
        memory = "; is there enough memory?" if code >= 0 or -code in _OF_MEMORY else ""
        raise Failure(f"no verdict was given: the process that judges ended ({ended}){memory}")

    def _judge(self, writer: int) -> NoReturn:
        """Run the command in the child, and end it without the interpreter's clean-up."""
        code = FAILED
        try:
            code = self._run_command(writer)
        except BaseException as error:
            tell(f"error: the message could not be judged: {_describe(error)}")
        finally:
            os._exit(code)

    def _run_command(self, writer: int) -> int:
        global report
        signal.set_wakeup_fd(-1)
        report = Report(functools.partial(_write, writer), self.message if self.one else None)
        if self.one:
            # Only the parent writes to standard output: no help may get into a message.
            os.dup2(2, 1)
            # The old object keeps facts about the old file, such as whether it can seek.
            sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
            _handle(signal.SIG_DFL)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
            limit(TIMEOUT_SECONDS)
        else:
            # A flag, because an exception would be lost where a callback swallows it.
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


def disarming(message: bytes | bytearray) -> list[tuple[int, bytes]]:
    """What to insert into a message without a verdict, so that it has no header of one.

    A sender may have forged a header of the verdict's name. The texts give such headers another
    name. All bytes of the message stay, and whatever fails here, nothing is inserted.

    Returns
    -------
    insertions : list of (int, bytes)
        Places in the message, in order, and texts.
    """
    try:
        import re

        end = re.search(rb"\n\r?\n|\r\r", message)
        return [(found.start(1), _OTHER_NAME) for found in re.finditer(
            rb"(?:^|[\r\n])(" + _STATUS + rb"[ \t]*:)",
            memoryview(message)[:end.end() if end else len(message)], re.I)]
    except Exception:
        return []


def _handle(
    handler: Callable[[int, Any], object] | signal.Handlers, signals: Iterable[int] = _ENDING
) -> None:
    for number in signals:
        # A command that is started with a signal ignored (nohup) keeps ignoring it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _signal_name(number: int) -> str:
    try:
        return f"signal {number}, {signal.Signals(number).name}"
    except ValueError:
        # A real-time signal.
        return f"signal {number}"


def _ask_to_stop(number: int, frame: object) -> None:
    global stop_asked
    stop_asked = True


def _fill_closed() -> list[int]:
    """The standard streams that are closed; they are opened, so that no pipe gets their numbers."""
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
    """Write one line to standard error; a failure to write it changes no answer."""
    # contextlib would be one more import that can fail.
    try:  # noqa: SIM105
        os.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        pass


def _describe(error: BaseException) -> str:
    """An error in one line, with its type where the message alone says too little."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, ImportError) and error.__cause__ is not None:
        # Libraries put pages of general advice before the library that can't be loaded.
        error = error.__cause__
    name = type(error).__name__
    line = (str(error).strip() or name).splitlines()[0]
    return line if isinstance(error, Failure) or line == name else f"{name}: {line}"
