"""textnb filter: 0, 1 and 2 are verdicts, and whatever fails is 3 with the message passed on."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import PROGRAM, Ran, finished, start
from textnb import TextClassifier
from textnb.cli import entry, guard
from textnb.cli.filter import alone
from textnb.cli.verdicts import STATUS
from textnb.mail import message

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


def test_as_much_is_read_as_is_judged() -> None:
    # The guard may not import what parses messages.
    assert guard.MAX_MESSAGE == message.MAX_MESSAGE


def test_the_guard_imports_little() -> None:
    code = ("import sys\nbefore = set(sys.modules)\nfrom textnb.cli import entry, guard\n"
            "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))")
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, "
                          f"{HERE!r})\n{code}"], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) - {"textnb"} <= set(sys.stdlib_module_names)


@pytest.mark.sweep(6)
@pytest.mark.parametrize(("what", "told"), [
    ("os._exit(0)", "ended (code 0)"), ("os._exit(1)", "ended (code 1)"),
    ("os._exit(2)", "ended (code 2)"),
    ("os.abort()", "ended (signal 6, SIGABRT); is there enough memory?"),
    ("os.kill(os.getpid(), signal.SIGKILL)", "ended (signal 9, SIGKILL); is there enough memory?"),
    ("sys.exit(0)", ""), ("sys.exit(1)", ""), ("sys.exit('text')", ""),
    ("fail(MemoryError)", "MemoryError"),
    ("fail(KeyboardInterrupt)", "KeyboardInterrupt"), ("fail(BaseException)", "BaseException"),
    ("(guard.limit(0.2), time.sleep(60))", "not judged in time"),
    ("os.kill(os.getpid(), signal.SIGTERM)", "ended (signal 15, SIGTERM)\n"),
    ("(print('ham'), sys.exit(1))", "")])
def test_an_end_without_a_verdict_is_a_failure(what: str, told: str) -> None:
    prelude = ("from textnb.cli import guard\nimport resource\n"
               "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
               f"def fail(kind): raise kind()\nentry._judge = lambda: {what}")
    code, out, err = ended(started(prelude, "m", "--passthrough"))
    # Nothing that it prints comes into the message.
    assert (code, out) == (3, HAM)
    assert told in err
    assert "Traceback" not in err
    assert ended(started(prelude, "m"))[0] == 3


@pytest.mark.parametrize("why", [
    "os.kill(os.getpid(), signal.SIGSTOP)",
    "(signal.setitimer(signal.ITIMER_REAL, 0), time.sleep(60))"])
def test_a_child_that_hears_no_alarm_is_not_waited_for(why: str) -> None:
    prelude = ("from textnb.cli import guard\nguard._LATER_SECONDS = 0.3\n"
               f"entry._judge = lambda: (guard.limit(0.3), {why})")
    began = time.monotonic()
    code, out, err = ended(started(prelude, "m", "-p"))
    assert (code, out) == (3, HAM)
    assert "not judged in time" in err
    assert time.monotonic() - began < 20


def test_without_a_limit_a_child_is_waited_for(model: Path) -> None:
    prelude = ("from textnb.cli import guard\nguard._LATER_SECONDS = guard.TIMEOUT_SECONDS = 0.2\n"
               "judge = entry._judge\n"
               "entry._judge = lambda: (guard.limit(0), time.sleep(1), judge())")
    code, out, _ = ended(started(prelude, model))
    assert (code, out.split()[0]) == (1, b"ham")


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
    "textnb.cli.guard", "functools", "select", "signal", "textnb.cli.filter", "textnb.cli.console",
    "textnb.cli.inputs", "textnb.errors", "textnb.runtime.stopping", "click", "click.core",
    "textnb.cli.options",
    "textnb.filter.mailfilter", "textnb.storage.manifest", "textnb.storage.archive",
    "textnb.mail.message", "textnb.mail.charsets", "textnb.text.tokens", "numpy", "polars",
    "polars.lazyframe", "polars._plr", "email.parser", "zipfile"])
def test_every_import_may_fail(model: Path, name: str) -> None:
    for error in ("ImportError", "SystemExit", "MemoryError"):
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
    assert "no memory for the message" in err


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
    for at, name in guard.disarming(message):
        pieces, begin = pieces + message[begin:at] + name, at
    assert pieces + message[begin:] == written


def test_a_forged_header_in_a_large_message_is_found_soon() -> None:
    message = b"X-Textnb-Status" * 4_000_000
    assert STATUS.encode() == guard._STATUS
    # A search that goes back takes hours, which the limit of a test ends.
    assert guard.disarming(bytearray(message)) == []
    assert guard.disarming(b"\n" * 50_000_000) == []


def test_a_message_beyond_the_limit_is_passed_on_whole(model: Path) -> None:
    assert guard.MAX_MESSAGE == message.MAX_MESSAGE
    large = HAM + (b"x" * 999 + b"\n") * 1_100
    assert len(large) > 1 << 20
    lower = ("from textnb.cli import guard\nfrom textnb.mail import message\n"
             "guard.MAX_MESSAGE = message.MAX_MESSAGE = 1 << 20")
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

SLEEPING = "entry._judge = lambda: (os.write(2, b'ready\\n'), time.sleep(60))"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_what_hangs(number: int) -> None:
    process = started(SLEEPING, "m", "-p")
    assert process.stdin is not None
    assert process.stderr is not None
    with process:
        process.stdin.write(HAM)
        process.stdin.close()
        assert process.stderr.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(20) == 130
        assert process.stdout is not None
        assert process.stdout.read() == HAM
        assert process.stderr.read() == b"interrupted; no verdict was given\n"


@pytest.mark.parametrize("number", [
    signal.SIGQUIT, signal.SIGABRT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
    signal.SIGVTALRM, signal.SIGXCPU, max(signal.valid_signals())])
def test_no_signal_loses_the_message(number: int) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("a shell that starts it in the background lets it ignore this signal")
    process = started(SLEEPING, "m", "-p")
    assert process.stdin is not None
    assert process.stderr is not None
    with process:
        process.stdin.write(HAM)
        process.stdin.close()
        assert process.stderr.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(20) == 3
        assert process.stdout is not None
        assert process.stdout.read() == HAM
        assert process.stderr.read().startswith(b"interrupted by signal %d" % number)


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGALRM, signal.SIGXCPU])
def test_a_signal_cuts_no_message_that_is_being_written(number: int) -> None:
    large = HAM + b"x" * (1 << 20)
    process = started("entry._judge = lambda: os.abort()", "m", "-p")
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(large)
        process.stdin.close()
        first = process.stdout.read(1)
        process.send_signal(number)
        assert first + process.stdout.read() == large
        assert process.wait(20) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_half_a_message_is_not_passed_on(number: int) -> None:
    process = started("sys.stderr.write('ready\\n')", "m", "-p")
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(b"Subject: half")
    process.stdin.flush()
    assert process.stderr.readline() == b"ready\n"
    time.sleep(0.3)
    process.send_signal(number)
    assert process.wait(20) == 130
    assert process.communicate()[0] == b""


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
    """After so many imports. A filter imports what judges in a process of its own."""
    arguments = [str(model), *(["cheap pills"] if verb == "explain" else [])]
    process = subprocess.Popen(
        [sys.executable, "-c", STARTING, verb, *arguments, str(imports)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    code, out, err = ended(process)
    if imports > (50 if verb == "filter" else 400) and code != 130:
        # It had no more to import.
        assert (code, bool(out)) == (1 if verb == "filter" else 0, True)
        return
    assert (code, out) == (130, b""), err
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
