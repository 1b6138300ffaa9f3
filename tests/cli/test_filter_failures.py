"""textnb filter: 0, 1 and 2 are verdicts, and whatever fails is 3 with the message passed on."""

from __future__ import annotations

import ast
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from tests.cli.conftest import PROGRAM, Ran, finished, start
from textnb import TextClassifier
from textnb.cli import entry, stream
from textnb.cli.filter import alone
from textnb.filter.headers import disarming

HAM = b"Subject: a\n\nthe noon minutes\n"
VERDICT = b"X-Textnb-Status: ham;"
HERE = str(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guard") / "mail.textnb"
    TextClassifier(text="body").fit(pl.DataFrame({
        "body": ["cheap pills", "a prize for you", "see you at noon", "the minutes"] * 5,
        "label": ["spam", "spam", "ham", "ham"] * 5})).save(path)
    return path


def started(prelude: str, *arguments: object) -> subprocess.Popen[bytes]:
    """The command, after some code that breaks it."""
    code = f"import os, signal, sys, time\nfrom textnb.cli import entry\n{prelude}\nentry.main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "filter", *map(str, arguments)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": HERE})


def ended(process: subprocess.Popen[bytes], content: bytes = HAM) -> tuple[int, bytes, str]:
    try:
        out, err = process.communicate(content, timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err.decode()


def limited(kind: int, limit: int, *arguments: object, content: bytes) -> tuple[int, bytes, str]:
    # The limits of a shell are those of what it starts; a hook before exec is not safe in threads.
    letter = {resource.RLIMIT_AS: "v", resource.RLIMIT_NPROC: "u"}[kind]
    process = subprocess.Popen(
        ["sh", "-c", f'ulimit -c 0; ulimit -{letter} {limit} && exec "$@"', "sh", *PROGRAM,
         "filter", *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": HERE})
    return ended(process, content)


@pytest.mark.parametrize(("module", "known"), [
    (entry, {"__future__", "os", "sys"}), (stream, {"__future__", "os", "sys", "typing"})])
def test_nothing_is_imported_before_a_failure_is_seen(module: ModuleType, known: set[str]) -> None:
    assert module.__file__ is not None
    found = {name for node in ast.parse(Path(module.__file__).read_text()).body
             for name in ([node.module] if isinstance(node, ast.ImportFrom) else
                          [alias.name for alias in node.names] if isinstance(node, ast.Import)
                          else [])}
    assert found == known


@pytest.mark.sweep(6)
@pytest.mark.parametrize(("what", "told"), [
    ("sys.exit(0)", "SystemExit: 0"), ("sys.exit(1)", "SystemExit: 1"),
    ("sys.exit('text')", "SystemExit: text"), ("fail(MemoryError)", "MemoryError"),
    ("fail(KeyboardInterrupt)", "interrupted; no verdict was given"),
    ("fail(BaseException)", "BaseException"), ("0", ""), ("1", ""), ("2", ""),
    ("(stream.message(), fail(ValueError))", "ValueError"),
    ("(stream.message(), stream.limit(0.2), time.sleep(60))", "not judged in time"),
    ("(stream.limit(0.2), exec('while True: pass'))", "not judged in time"),
    ("(print('ham'), sys.exit(1))", "SystemExit")])
def test_an_end_without_a_verdict_is_a_failure(what: str, told: str) -> None:
    prelude = ("def fail(kind): raise kind()\n"
               f"entry._verdict = lambda arguments, stream: {what}")
    if what in "012":
        # What the command gives back, which has written no answer.
        prelude = f"from textnb.cli import quick\nquick.answer = lambda *_: {what}"
    code, out, err = ended(started(prelude, "m", "--passthrough"))
    # Nothing that it prints comes into the message.
    assert (code, out) == (3, HAM)
    assert told in err
    assert "Traceback" not in err
    if what != "0":
        assert ended(started(prelude, "m"))[0] == 3


def test_without_a_limit_it_is_waited_for(model: Path) -> None:
    prelude = ("from textnb.cli import verdicts\nverdicts.TIMEOUT_SECONDS = 0\n"
               "from textnb.filter.quick import QuickFilter\njudge = QuickFilter.judge\n"
               "QuickFilter.judge = lambda *given: (time.sleep(1), judge(*given))[1]")
    code, out, _ = ended(started(prelude, model))
    assert (code, out.split()[0]) == (1, b"ham")
    code, out, err = ended(started(prelude, model, "-p", "--timeout", "0.3"))
    assert (code, out) == (3, HAM)
    assert "not judged in time" in err


def test_the_time_to_read_counts_unless_the_message_must_be_written(model: Path) -> None:
    def unfinished(*options: str) -> subprocess.Popen[bytes]:
        process = start("filter", model, "--timeout", "0.3", *options)
        assert process.stdin is not None
        process.stdin.write(HAM[:10])
        process.stdin.flush()
        return process

    with unfinished() as process:
        assert process.wait(30) == 3
        assert process.stderr is not None
        assert b"not judged in time" in process.stderr.read()
    with unfinished("-p") as process:
        time.sleep(1)
        assert process.poll() is None
        assert process.communicate(HAM[10:], 30)[0].endswith(HAM)


@pytest.mark.parametrize("number", [
    signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGUSR1])
def test_what_is_killed_gives_no_verdict(number: int) -> None:
    prelude = ("import resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
               f"entry._verdict = lambda *_: os.kill(os.getpid(), {number:d})")
    code, out, _ = ended(started(prelude, "m", "-p"))
    assert (code, out) == (-number, b"")


BROKEN = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise {error}("broken")
sys.meta_path.insert(0, Finder())
for module in [name for name in sys.modules if name == {name!r}]:
    del sys.modules[module]
"""


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", [
    "textnb.cli.stream", "textnb.cli.quick", "textnb.cli.verdicts", "textnb.runtime.stderr", "gc",
    "signal", "textnb.cli.filter", "textnb.cli.console",
    "textnb.cli.inputs", "textnb.errors", "textnb.runtime.stopping", "click", "click.core",
    "textnb.cli.options",
    "textnb.filter.mailfilter", "textnb.storage.textmodel", "textnb.storage.version2",
    "textnb.mail.message", "textnb.mail.charsets", "textnb.text.tokens", "numpy", "polars",
    "polars.lazyframe", "polars._plr", "email.parser", "zipfile"])
def test_every_import_may_fail(model: Path, name: str) -> None:
    for error in ("ImportError", "SystemExit", "MemoryError", "KeyboardInterrupt"):
        code, out, err = ended(started(BROKEN.format(name=name, error=error), model, "-p"))
        # What some other module does without is no failure.
        verdict = code == 1 and out.startswith(VERDICT)
        assert verdict or (code, out) == (3, HAM), (error, code, out, err)


def test_no_threads_for_the_engine(tmp_path: Path) -> None:
    # A model with a given vocabulary takes the engine to read.
    model = tmp_path / "given.textnb"
    TextClassifier(text="body", vocabulary=["minutes", "pills"]).fit(pl.DataFrame({
        "body": ["cheap pills", "the minutes"], "label": ["spam", "ham"]})).save(model)
    process = start("filter", model, "-p", env={**os.environ, "POLARS_MAX_THREADS": "0"})
    code, out, err = ended(process)
    assert (code, out) == (3, HAM)
    assert err.splitlines()[-1].startswith("error: ")


@pytest.mark.sweep(3)
@pytest.mark.skipif(sys.platform != "linux", reason="there is no limit of address space")
@pytest.mark.parametrize("kilobytes", [
    60_000, 100_000, 140_000, 200_000, 300_000, 400_000, 450_000, 550_000, 650_000, 750_000,
    900_000, 1_100_000])
def test_little_memory(model: Path, kilobytes: int) -> None:
    """Where it begins to suffice depends on the machine; below, libraries end in many ways."""
    began = time.monotonic()
    code, out, err = limited(resource.RLIMIT_AS, kilobytes, model, "-p", content=HAM)
    if code == 1:
        assert out.startswith(VERDICT)
        assert out.endswith(HAM)
    else:
        assert (code, out) == (3, HAM), err
        assert err
    assert time.monotonic() - began < 45


@pytest.mark.skipif(sys.platform != "linux", reason="there is no limit of address space")
def test_a_message_that_memory_does_not_hold(model: Path) -> None:
    large = HAM + os.urandom(1 << 20) * 50
    code, out, err = limited(resource.RLIMIT_AS, 40_000, model, "-p", content=large)
    assert code == 3
    assert out == large
    assert "MemoryError" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may start any number of processes")
def test_no_process_can_be_started(model: Path) -> None:
    code, out, _ = limited(resource.RLIMIT_NPROC, 1, model, "-p", content=HAM)
    assert (code, out) == (3, HAM)


@pytest.mark.parametrize(("message", "written"), [
    (b"X-Textnb-Status: ham\nTo: b\n\nx", b"X-Original-X-Textnb-Status: ham\nTo: b\n\nx"),
    (b"To: b\r\nx-textnb-STATUS : ham\r\n\r\nx",
     b"To: b\r\nX-Original-x-textnb-STATUS : ham\r\n\r\nx"),
    (b"From a\nX-Textnb-Status:spam\nX-Textnb-Status:ham",
     b"From a\nX-Original-X-Textnb-Status:spam\nX-Original-X-Textnb-Status:ham"),
    *((message, message) for message in (
        b"To: b\n\nX-Textnb-Status: ham\n", b"To: b\nY: X-Textnb-Status: ham\n\n", b"\n\n",
        b"X-Textnb-Status-Other: ham\n\n", b"To: b\n X-Textnb-Status: ham\n\n"))])
def test_a_forged_header_is_no_verdict_where_there_is_none(message: bytes, written: bytes) -> None:
    code, out, err = ended(start("filter", "none.textnb", "-p"), message)
    assert (code, out) == (3, written)
    assert "none.textnb" in err
    pieces, begin = b"", 0
    for at, name in disarming(message):
        pieces, begin = pieces + message[begin:at] + name, at
    assert pieces + message[begin:] == written


@pytest.mark.parametrize("arguments", [["--nonsense", "m.textnb", "-p"], ["-p"]])
def test_a_forged_header_is_no_verdict_after_wrong_usage(arguments: list[str]) -> None:
    code, out, _ = ended(start("filter", *arguments), b"X-Textnb-Status: ham\n\nx")
    assert (code, out) == (3, b"X-Original-X-Textnb-Status: ham\n\nx")


def test_a_forged_header_in_a_large_message_is_found_soon() -> None:
    message = b"X-Textnb-Status" * 4_000_000
    # A search that goes back takes hours, which the limit of a test ends.
    assert disarming(bytearray(message)) == []
    assert disarming(b"\n" * 50_000_000) == []


def test_a_message_beyond_the_limit_is_passed_on_whole(model: Path) -> None:
    large = HAM + (b"x" * 999 + b"\n") * 1_100
    assert len(large) > 1 << 20
    lower = "from textnb.mail import message\nmessage.MAX_MESSAGE = 1 << 20"
    code, out, _ = ended(started(lower, model, "-p"), large)
    assert code == 1
    line, _, rest = out.partition(b"\n")
    assert line.startswith(VERDICT)
    assert rest == large
    code, out, _ = ended(started(lower, "none.textnb", "-p"), large)
    assert (code, out) == (3, large)


@pytest.mark.slow
def test_no_more_is_read_than_is_judged(model: Path) -> None:
    with open("/dev/zero", "rb") as endless:
        ran = finished(start("filter", model, stdin=endless))
    assert ran.code == 2
    assert ran.out.startswith("unsure")


@pytest.mark.parametrize(("redirection", "told"), [
    ("<&-", "it is closed"), ("</dev/null", "it is empty"), (">&-", "standard output is closed"),
    (">/dev/full", "No space left"), ("<&- 2>&-", "")])
def test_streams_that_are_not_there(model: Path, redirection: str, told: str) -> None:
    process = subprocess.Popen(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *PROGRAM, "filter", str(model)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    code, out, err = ended(process)
    assert (code, out) == (3, b"")
    assert told in err


def test_without_standard_error_there_is_a_verdict(model: Path) -> None:
    process = subprocess.Popen(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *PROGRAM, "filter", str(model)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, _ = process.communicate(HAM, timeout=60)
    assert process.returncode == 1
    assert out.startswith(b"ham ")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("arguments", [
    ["--nonsense", "filter", "m"], ["--version", "filter", "m"], ["filter", "--nonsense"],
    ["filter"], ["filter", "m", "m"], ["filter", "m", "--timeout", "-1"]])
def test_wrong_usage_is_no_verdict(arguments: list[str]) -> None:
    assert finished(start(*arguments), HAM).checked(3).err
    assert ended(start(*arguments, "-ep"))[:2] == (3, HAM)


@pytest.mark.parametrize("arguments", [
    ["m", "--passthrough=1"], ["--pass", "m"], ["m", "--pass-through"], ["m", "-passthrough"],
    ["m", "-p", "--maildir", "none"], ["m", "--maildir=none", "-ep"], ["-p", "--help"],
    ["m", "-p", "--timeout", "inf"], ["m", "-p", "--timeout", "nan"], ["m", "-p", "-h"]])
def test_wrong_options_lose_no_message(arguments: list[str]) -> None:
    ran = finished(start("filter", *arguments), HAM).checked(3)
    assert ran.out.encode() == HAM
    assert ran.err


def test_every_option_that_asks_for_the_message_is_known() -> None:
    """No other long option may begin so, as one that is misspelt still asks for the message."""
    options = [name for parameter in alone.commands["filter"].params
               for name in parameter.opts]
    assert [name for name in options if entry.passes_through([name])] == ["--passthrough", "-p"]


def test_help_reads_no_message() -> None:
    process = start("filter", "--help")
    assert process.wait(60) == 0
    process.communicate()


def test_the_codes_of_a_maildir(model: Path, tmp_path: Path) -> None:
    for part in ("cur", "new"):
        (tmp_path / "Mail" / part).mkdir(parents=True)
    (tmp_path / "Mail" / "new" / "1").write_bytes(HAM)
    arguments = ["filter", model, "--maildir", tmp_path / "Mail"]
    ran = finished(start(*arguments)).checked()
    assert ran.out.startswith("ham ")
    (tmp_path / "Mail" / ".textnb-judged").unlink()
    with open("/dev/full", "wb") as full:
        ran = finished(start(*arguments, stdout=full)).checked(3)
    assert "No space left" in ran.err
    finished(start("filter", model, "--maildir", tmp_path / "no")).checked(3)


# Signals

def test_an_interrupt_ends_what_hangs() -> None:
    process = started(
        "entry._verdict = lambda *_: (os.write(2, b'ready\\n'), time.sleep(60))", "m", "-p")
    assert process.stdin is not None
    assert process.stderr is not None
    with process:
        process.stdin.write(HAM)
        process.stdin.close()
        assert process.stderr.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 3
        assert process.stdout is not None
        assert process.stdout.read() == HAM
        assert process.stderr.read() == b"interrupted; no verdict was given\n"


def test_a_message_is_passed_on_to_its_end(model: Path) -> None:
    process = started("sys.stderr.write('ready\\n'); sys.stderr.flush()", model, "-p")
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(b"Subject: half")
    process.stdin.flush()
    assert process.stderr.readline() == b"ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert ended(process, b" a message\n\n")[:2] == (3, b"Subject: half a message\n\n")


STARTING = """
import os, signal, sys
from textnb.cli.entry import main
left, process = int(sys.argv.pop()), os.getpid()

def interrupt(event, arguments):
    global left
    if event == "import":
        left -= 1
        if not left:
            os.kill(process, signal.SIGINT)

sys.addaudithook(interrupt)
main()
"""


@pytest.mark.sweep(4)
@pytest.mark.parametrize("verb", ["filter", "explain"])
@pytest.mark.parametrize("imports", [1, 2, 3, 5, 10, 25, 50, 100, 200, 400, 700])
def test_an_interrupt_while_it_starts_is_one_line(model: Path, verb: str, imports: int) -> None:
    """After so many imports."""
    arguments = [str(model), *(["cheap pills"] if verb == "explain" else [])]
    process = subprocess.Popen(
        [sys.executable, "-c", STARTING, verb, *arguments, str(imports)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    code, out, err = ended(process)
    interrupted = 3 if verb == "filter" else 130
    if imports > (50 if verb == "filter" else 400) and code != interrupted:
        # It had no more to import.
        assert (code, bool(out)) == (1 if verb == "filter" else 0, True)
        return
    assert (code, out) == (interrupted, b""), err
    assert err.splitlines()[-1].startswith("interrupted; no ")
    assert "Traceback" not in err


def test_the_version_in_one_line() -> None:
    for option in ("--version", "-V"):
        ran: Ran = finished(start(option)).checked()
        assert ran.out.startswith("textnb ")
        assert ran.out.count("\n") == 1
        assert ran.err == ""


def test_nothing_asked_is_help() -> None:
    ran = finished(start())
    assert "[OPTIONS] COMMAND [ARGS]" in ran.out
    assert ran.err == ""
