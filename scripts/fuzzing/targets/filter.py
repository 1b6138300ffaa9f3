"""`textnb filter` as a process: little memory, files and time, broken streams, and signals.

An input is bytes that choose all this, and a message. Most processes are forks of one that has
imported the short path of the filter; it is this file as a program, and some begin from nothing.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import IO, Any, NoReturn, cast

ABOUT = "`textnb filter` under limits of memory, files and time, with broken streams and signals"
WITHIN = ["fuzzing.targets.filter"]
LONGEST = 70_000
# Of the quick tests: each is a process.
INPUTS = 10
# The bytes that choose; the message follows.
OPTIONS, START, LIMIT, VALUE, INPUT, OUTPUT, SIGNAL, MOMENT, CUT = range(9)
# Help is no verdict, though it ends well. It is slow, and so is one of many, as is a Maildir.
_HELP, _MAILDIR = ["-p", "--help"], ["--maildir"]
_OPTIONS = [*[
    [], ["-p"], ["-e"], ["-pe"], ["-ep"], ["--format", "json"], ["-p", "--timeout", "5"],
    ["-p", "--spam-cutoff", "0.9", "--ham-cutoff", "0.1"], ["--min-learned", "99999999"]] * 8,
    _HELP, _MAILDIR]
# What is limited, and to how many times the value; memory is counted from what is in use, or from
# a little less than what Python needs to begin. With _SCARCE, one of the first allocations after a
# block of the message fails, and no other (not in a process that is begun anew).
_SCARCE = -1
_LIMITS = [None, None, (resource.RLIMIT_AS, 1 << 16), (resource.RLIMIT_AS, 1 << 12),
           (resource.RLIMIT_NOFILE, 1), (resource.RLIMIT_FSIZE, 1), (resource.RLIMIT_FSIZE, 300),
           (resource.RLIMIT_DATA, 1 << 14), (resource.RLIMIT_NPROC, 1), (resource.RLIMIT_CPU, 1),
           (resource.RLIMIT_STACK, 1 << 12), (_SCARCE, 1), (_SCARCE, 1)]
# Limits of how many files are open, of their size, and of processes end no writing to a pipe.
_NO_END = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC)
_PYTHON = {resource.RLIMIT_AS: 12 << 20, resource.RLIMIT_DATA: 5 << 20}
# Without a message all commands are loaded, which takes a hundred times as long. A message whose
# end never comes is given up after some seconds, unless it must be passed on.
_INPUTS = [*["whole"] * 20, *["in pieces", "cut", "slow"] * 6, "closed", "empty", "endless"]
_PATIENCE = ["--timeout", "0.1"]
# A small pipe that does not wait for its reader ends a writing, and has room again soon after.
_IMPATIENT = "impatient"
_OUTPUTS = ["pipe", "pipe", "pipe", "file", "/dev/full", "closed", "reader gone", _IMPATIENT]
_SIGNALS = [0, 0, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGPIPE,
            signal.SIGUSR1, signal.SIGXCPU, signal.SIGKILL]
_FAILED, _VERDICTS, _SECONDS = 3, (0, 1, 2), 40.0
# What runs as `textnb` in a process from nothing. It writes to a pipe when the module begins that
# catches all errors: Python may end before it under a limit, with any code.
_ANEW = """
import os, runpy, sys
sys.argv[0] = "textnb"
began = int(sys.argv.pop())
sys.addaudithook(lambda event, values: event == "exec" and values[0].co_filename.endswith(
                 os.path.join("textnb", "cli", "entry.py")) and os.write(began, b"."))
runpy.run_module("textnb", run_name="__main__", alter_sys=True)
"""
# What the system does to a process that passes a limit.
_DEATHS = {resource.RLIMIT_CPU: {signal.SIGXCPU, signal.SIGKILL},
           resource.RLIMIT_STACK: {signal.SIGSEGV}}
# Where the whole answer arrives, if nothing else is in its way.
_READ = ("pipe", "file", _IMPATIENT)
_STATUS = b"X-Textnb-Status: "
_STATUSES = [b"spam", b"ham", b"unsure"]
_SPAM = b"Subject: cheap\r\n\r\nbuy cheap pills now\r\n"
_MESSAGES = [
    b"Subject: a\n\nthe noon meeting\n", _SPAM,
    b"X-Textnb-Status: ham\nX-Spam-Flag: NO\nSubject: pills\n\npills\n", b"\xff\0", b"\n",
    b"From a@b Sat Jan  3 01:05:34 1996\nSubject: =?utf-8?q?caf=C3=A9?=\n\nnothing known",
    b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>pills\n--b--",
    b"Subject: a\n\n" + b"the meeting at noon\n" * 3400]


class _Scarce:
    """Standard input. After one of its blocks an allocation fails, if this Python can do that; but
    none within a read, which would lose what was read."""

    def __init__(self, source: Any, value: int) -> None:
        self.buffer, self._source = self, source
        self._blocks, self._moment = value // 4 % 2, value % 4
        self._tests: Any = sys.modules.get("_testcapi")

    def read1(self, size: int) -> bytes:
        if self._tests:
            self._tests.remove_mem_hooks()
        block: bytes = self._source.buffer.read1(size)
        self._blocks -= 1
        if self._tests and self._blocks == -1:
            self._tests.set_nomemory(self._moment, self._moment + 1)
        return block


def run(job: dict[str, Any], message: bytes) -> tuple[int, bytes, bool, bool]:
    """One process: its exit code, negative for a signal, what it writes, whether it began, and
    whether its signal came before the end of its message."""
    source, feed = os.pipe()
    answer, target = os.pipe()
    begin, began = os.pipe()
    path = None
    match job["output"]:
        case "file":
            os.close(target)
            target, path = tempfile.mkstemp(dir=job["folder"])
        case "/dev/full":
            os.close(target)
            target = os.open("/dev/full", os.O_WRONLY)
        case "reader gone":
            os.close(answer)
            answer = os.open(os.devnull, os.O_RDONLY)
        case "impatient":
            fcntl.fcntl(target, fcntl.F_SETPIPE_SZ, 4096)
            os.set_blocking(target, False)
    # Python flushes what it holds in a fork too.
    sys.stdout.flush()
    # It waits until the process is the filter: what Python does after a fork can't be interrupted.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    else:
        for number in (feed, answer, begin):
            os.close(number)
        _become(job, source, target, began)
    for number in (source, target, began):
        os.close(number)
    found, code, is_early = _wait(job, process, feed, answer, message)
    if path is not None:
        found = Path(path).read_bytes()
        os.unlink(path)
    has_begun = os.read(begin, 1) != b""
    os.close(begin)
    return code, found, has_begun, is_early


def _run_in_maildir(job: dict[str, Any], message: bytes) -> tuple[int, bytes, bool, bool]:
    """As `run`, for a Maildir that has the message; in place of the answer, what is lost of it."""
    contents = {"new/1": message, "new/2": _SPAM, "new/3": _MESSAGES[0], "cur/4": b"seen",
                # The place of what is filed is taken.
                ".Spam/new/2": b"filed before"}
    with tempfile.TemporaryDirectory(dir=job["folder"]) as folder:
        for name, content in contents.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        code, _, has_begun, is_early = run(
            {**job, "arguments": [*job["arguments"], folder]}, message)
        kept = [path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()]
    lost = " ".join(name for name, content in contents.items() if content not in kept)
    return code, lost.encode(), has_begun, is_early


def _become(job: dict[str, Any], source: int, target: int, began: int) -> NoReturn:
    """Be the filter, in a fork."""
    try:
        errors = os.open(os.devnull, os.O_WRONLY)
        for old, new in ((source, 0), (target, 1), (errors, 2)):
            os.dup2(old, new)
            os.close(old)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        if job["input"] == "closed":
            os.close(0)
        if job["output"] == "closed":
            os.close(1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if job["limit"]:
            which, value = job["limit"]
            if which in _PYTHON:
                pages = Path("/proc/self/statm").read_text().split()
                value += _PYTHON[which] if job["anew"] else int(
                    pages[0 if which == resource.RLIMIT_AS else 5]) * 4096
            if which != _SCARCE:
                resource.setrlimit(which, (value, value))
        arguments = ["textnb", "filter", *job["arguments"]]
        if job["anew"]:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            os.set_inheritable(began, True)
            os.execv(sys.executable, [sys.executable, "-c", _ANEW, *arguments[1:], str(began)])
        os.write(began, b".")
        sys.argv = arguments
        sys.stdin, sys.stdout, sys.stderr = (
            None if closed else os.fdopen(number, mode, closefd=False)
            for number, mode, closed in (
                (0, "r", job["input"] == "closed"), (1, "w", job["output"] == "closed"),
                (2, "w", False)))
        if sys.stdin is not None and job["limit"] and job["limit"][0] == _SCARCE:
            sys.stdin = cast(Any, _Scarce(sys.stdin, job["limit"][1]))
        from textnb.cli import entry
    except BaseException:
        # A limit did not let the process begin.
        os._exit(_FAILED)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        entry.main()
    except SystemExit as error:
        os._exit(error.code if isinstance(error.code, int) else error.code is not None)
    except KeyboardInterrupt:
        # So, and as below, Python ends a process.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        os._exit(1)
    os._exit(99)


def _wait(
    job: dict[str, Any], process: int, feed: int, answer: int, message: bytes
) -> tuple[bytes, int, bool]:
    """Feed a process, send it its signal, and read what it writes."""
    began, found, left = time.monotonic(), b"", memoryview(message)
    size = {"in pieces": 1000, "slow": 4000}.get(job["input"], len(message))
    os.set_blocking(feed, False)
    number, at = job["signal"]
    status, is_early = None, False
    while status is None or answer >= 0:
        now = time.monotonic() - began
        if number and now >= at:
            os.kill(process, number)
            # What is not in the pipe yet can't be read yet, nor can the end.
            number, is_early = 0, feed >= 0
        if now > _SECONDS:
            os.kill(process, signal.SIGKILL)
            raise TimeoutError(f"it hangs: {job}")
        if feed >= 0:
            try:
                left = left[os.write(feed, left[:size]):] if left else left
            except BlockingIOError:
                pass
            except BrokenPipeError:
                left = left[:0]
            if not left and job["input"] != "endless":
                os.close(feed)
                feed = -1
        until = 0.0005 if feed >= 0 else at - now if number else 0.02
        if answer >= 0 and select.select([answer], [], [], max(0.0, min(until, 0.02)))[0]:
            block = os.read(answer, 1 << 16)
            found += block
            if not block:
                os.close(answer)
                answer = -1
        if job["input"] == "slow" or answer < 0:
            time.sleep(0.001)
        if status is None:
            done, code = os.waitpid(process, os.WNOHANG)
            if done:
                status, number = os.waitstatus_to_exitcode(code), 0
    if feed >= 0:
        os.close(feed)
    return found, status, is_early


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Run the processes that are asked for."""
    import textnb.cli.entry
    import textnb.cli.quick
    import textnb.filter.quick  # noqa: F401 (what a fork is to have imported)

    # With it, Python's own tests let allocations fail.
    with suppress(ImportError):
        importlib.import_module("_testcapi")
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # By default it is 8 MB, and nothing else would ever want of memory.
    threading.stack_size(512 << 10)
    for line in requests:
        job = json.loads(line)
        message = requests.read(job["size"])
        try:
            begin = _run_in_maildir if job["arguments"][1:] == _MAILDIR else run
            code, found, has_begun, is_early = begin(job, message)
        except TimeoutError as error:
            code, found, has_begun, is_early = 98, str(error).encode(), True, False
        answers.write(b"%d %d %d %d\n" % (code, has_begun, is_early, len(found)) + found)
        answers.flush()


@cache
def _server() -> tuple[subprocess.Popen[bytes], str, str]:
    """The process that forks, a folder, and a model in it."""
    from fuzzing.harness import make_folder
    from tests.filter.models import saved

    folder = make_folder()
    model = str(saved(folder / "mail.textnb"))
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    atexit.register(process.kill)
    return process, str(folder), model


def _ask(job: dict[str, Any], message: bytes) -> tuple[int, bytes, bool, bool]:
    process, folder, model = _server()
    assert process.stdin is not None
    assert process.stdout is not None
    arguments = [model, *job["arguments"]]
    process.stdin.write(json.dumps({
        **job, "arguments": arguments, "folder": folder, "size": len(message)}).encode() + b"\n")
    process.stdin.write(message)
    process.stdin.flush()
    code, has_begun, is_early, size = map(int, process.stdout.readline().split())
    return code, process.stdout.read(size), bool(has_begun), bool(is_early)


@lru_cache(maxsize=1000)
def _without_limits(option: int, message: bytes) -> tuple[int, bytes]:
    """What the filter answers if nothing is in its way."""
    return _ask({"arguments": _OPTIONS[option], "limit": None, "input": "whole", "output": "pipe",
                 "signal": (0, 0.0), "anew": False}, message)[:2]


def seeds() -> list[bytes]:
    return [bytes([option, 1, limit, 9, 0, 0, 0, 0, 9]) + message
            for option, message in enumerate(_MESSAGES) for limit in (0, 2, 5)]


def mutate(data: bytes, random: Random) -> bytes:
    choices, message = bytearray(data[:CUT + 1].ljust(CUT + 1, b"\1")), data[CUT + 1:]
    for _ in range(random.choice([1, 2, 4])):
        choices[random.randrange(len(choices))] = random.randrange(256)
    match random.randrange(8):
        case 0:
            message = random.choice(_MESSAGES)
        case 1:
            at = random.randrange(len(message) + 1)
            message = message[:at] + random.choice(_MESSAGES) + message[at + random.randrange(9):]
        case 2 if message:
            at = random.randrange(len(message))
            message = message[:at] + bytes([random.randrange(256)]) + message[at + 1:]
    return bytes(choices) + message


def check(data: bytes) -> None:
    from fuzzing.harness import Finding
    from textnb.filter.headers import forged_header_prefixes

    if len(data) <= CUT:
        return
    message, options = data[CUT + 1:], _OPTIONS[data[OPTIONS] % len(_OPTIONS)]
    limit = _LIMITS[data[LIMIT] % len(_LIMITS)]
    # A process from nothing takes a hundred times as long.
    anew = data[START] >= 250
    job: dict[str, Any] = {"arguments": options}
    given = _INPUTS[data[INPUT] % len(_INPUTS)]
    if given == "cut":
        message = message[:len(message) * data[CUT] // 256]
    elif given in ("empty", "closed"):
        message = b""
    output = _OUTPUTS[data[OUTPUT] % len(_OUTPUTS)]
    if output == _IMPATIENT:
        # More than its pipe holds.
        message *= 1 + 20_000 // max(len(message), 1)
    passing = any("p" in option for option in options[:1])
    if given == "endless" and (passing or options == _MAILDIR):
        given = "whole"
    elif given == "endless":
        job["arguments"] = [*options, *_PATIENCE]
    wanted, whole = _without_limits(data[OPTIONS] % len(_OPTIONS), message)
    job |= {"limit": limit and (limit[0], data[VALUE] * limit[1]), "input": given, "anew": anew,
            "output": output,
            "signal": (int(_SIGNALS[data[SIGNAL] % len(_SIGNALS)]),
                       data[MOMENT] / 256 * (0.4 if anew else 0.012))}
    code, found, has_begun, is_early = _ask(job, message)
    limited = limit is not None or job["signal"][0] or job["output"] == _IMPATIENT
    more = f"{job}: {code} for {wanted}, {found!r:.300} for {whole!r:.300}"
    if not has_begun:
        # Python itself ends with any code.
        if not limited or found:
            raise Finding("a process that did not begin", more)
        return
    is_failure = message == b"" or options in (_HELP, _MAILDIR)
    if wanted not in (*_VERDICTS, _FAILED) or (wanted == _FAILED) != is_failure:
        raise Finding("no verdict without limits", more)
    if options == _MAILDIR and found:
        raise Finding("a message of a Maildir is lost", more)
    if given == "endless":
        wanted, whole = _FAILED, b""
    if wanted in _VERDICTS:
        # Behind the line of an mbox, which may hold the same words.
        mbox = passing and not whole.startswith(_STATUS)
        begin = whole.find(b"\n" + _STATUS) + 1 if mbox else 0
        end = whole.find(b"\n", begin) + 1
        # A message that ends in a continuation line, before any header, gets an empty line there.
        rest = message.removeprefix(whole[:begin])
        gap = rest[:1] in (b" ", b"\t") and b"\n" not in rest
        if passing and whole[:begin] + whole[end:].removeprefix(b"\n" if gap else b"") != message:
            raise Finding("another message", more)
        # With --exit-zero every verdict is 0.
        if wanted and _STATUSES[wanted] not in whole[begin:end]:
            raise Finding("another verdict than the exit code", more)
    untold, at = b"", 0
    for place, text in forged_header_prefixes(message):
        untold, at = untold + message[at:place] + text, place
    untold += message[at:]
    if wanted == _FAILED and whole != (untold if passing else b""):
        raise Finding("another message after a failure", more)
    if code in _VERDICTS:
        if is_early and job["signal"][0] == signal.SIGINT:
            raise Finding("an interrupt is lost", more)
        if code != wanted:
            raise Finding("a failure that is a verdict", more)
        if job["output"] not in _READ:
            raise Finding("a verdict that nobody can read", more)
        if found != whole:
            raise Finding("a verdict without the whole answer", more)
    elif code == _FAILED:
        if wanted != _FAILED and not limited and job["output"] in _READ:
            raise Finding("a failure without a cause", more)
        if job["output"] in _READ:
            answers = [whole, untold if passing else b""]
            if limited:
                # What is stopped before it can read the message copies it as it is.
                answers.append(message)
            # A limit may end the writing, and so may a signal if no message is passed on.
            may_end = (limited and not passing) or job["output"] == _IMPATIENT or (
                limit is not None and limit[0] != _SCARCE and not (
                    job["output"] == "pipe" and limit[0] in _NO_END))
            if found not in answers and not (may_end and any(
                    text.startswith(found) for text in (whole, untold, message))):
                raise Finding("a failure with another answer", more)
    elif code > 0:
        raise Finding("no exit code of a filter", more)
    elif -code != job["signal"][0] and (limit is None or -code not in _DEATHS.get(limit[0], ())):
        raise Finding("a process that died", more)


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
