"""textnb filter: 0, 1 and 2 are verdicts, and whatever fails is 3 with the message passed on."""

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import PROGRAM, finished, send, start
from tests.filter.models import saved
from textnb.cli import entry, stream
from textnb.cli.filter import group

HAM = b"Subject: a\n\nthe noon meeting\n"
FORGED, RENAMED = b"X-Textnb-Status: ham\n" + HAM, b"X-Original-X-Textnb-Status: ham\n" + HAM
VERDICT = "X-Textnb-Status: ham;"
PIPES: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
PASSED_ON = 3, HAM.decode()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("guard") / "mail.textnb")


def started(prelude, *arguments):
    """The command, after some code that breaks it."""
    code = f"import os, signal, sys, time\nfrom textnb.cli import entry\n{prelude}\nentry.main()"
    return subprocess.Popen([sys.executable, "-c", code, "filter", *map(str, arguments)], **PIPES)


def in_shell(script, *arguments):
    """The command as a shell's arguments, so that the shell can limit and redirect it."""
    return subprocess.Popen(
        ["sh", "-c", script, "sh", *PROGRAM, "filter", *map(str, arguments)], **PIPES)


def result(process, message=HAM):
    ran = finished(process, message)
    return ran.code, ran.out, ran.err


# The command breaks


@pytest.mark.parametrize(("module", "known"), [
    (entry, {"__future__", "os", "sys"}),
    (stream, {"__future__", "_thread", "os", "sys", "typing"})])
def test_nothing_is_imported_before_a_failure_is_seen(module, known):
    imported = set()
    for node in ast.parse(Path(module.__file__).read_text()).body:
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module)
        elif isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
    assert imported == known


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("what", "told"), [
    ("sys.exit(0)", "SystemExit: 0"), ("sys.exit(1)", "SystemExit: 1"),
    ("sys.exit('text')", "SystemExit: text"), ("fail(MemoryError)", "MemoryError"),
    ("fail(KeyboardInterrupt)", "interrupted; no verdict was given"),
    ("fail(BaseException)", "BaseException"), ("0", ""), ("1", ""), ("2", ""),
    ("(stream.read_message(), fail(ValueError))", "ValueError"),
    ("(stream.read_message(), stream.limit_time(0.2), time.sleep(60))", "not judged in time"),
    ("(stream.limit_time(0.2), exec('while True: pass'))", "not judged in time"),
    ("(print('ham'), sys.exit(1))", "SystemExit")])
def test_an_end_without_a_verdict_is_a_failure(what, told):
    prelude = ("def fail(kind): raise kind()\n"
               f"entry._verdict = lambda arguments, stream: {what}")
    if what in "012":
        # What the command gives back, which has written no answer.
        prelude = f"from textnb.cli import quick\nquick.answer = lambda *_: {what}"
    code, out, err = result(started(prelude, "m", "--passthrough"))
    # Nothing that it prints comes into the message.
    assert (code, out) == PASSED_ON
    assert told in err
    assert "Traceback" not in err
    if what != "0":
        assert result(started(prelude, "m"))[0] == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGUSR1])
def test_what_is_killed_gives_no_verdict(number):
    prelude = ("import resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
               f"entry._verdict = lambda *_: os.kill(os.getpid(), {number:d})")
    assert result(started(prelude, "m", "-p"))[:2] == (-number, "")


BROKEN = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise {error}("broken")
sys.meta_path.insert(0, Finder())
for module in [name for name in sys.modules if name == {name!r}]:
    del sys.modules[module]
"""


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", [
    "textnb.cli.stream", "textnb.cli.quick", "textnb.cli.verdicts", "textnb.runtime.stderr", "gc",
    "signal", "textnb.cli.filter", "textnb.cli.console", "textnb.cli.inputs", "textnb.errors",
    "textnb.runtime.stopping", "click", "click.core", "textnb.cli.options",
    "textnb.filter.mailfilter", "textnb.storage.textmodel", "textnb.storage.version2",
    "textnb.mail.message", "textnb.mail.charsets", "textnb.text.tokens", "numpy", "polars",
    "polars.lazyframe", "polars._plr", "email.parser", "zipfile"])
def test_every_import_may_fail(model, name):
    for error in ("ImportError", "SystemExit", "MemoryError", "KeyboardInterrupt"):
        code, out, err = result(started(BROKEN.format(name=name, error=error), model, "-p"))
        # What some other module does without is no failure.
        verdict = code == 1 and out.startswith(VERDICT)
        assert verdict or (code, out) == PASSED_ON, (error, code, out, err)


def test_no_threads_for_the_engine(tmp_path):
    # A model with a given vocabulary takes the engine to read.
    model = saved(tmp_path / "given.textnb", vocabulary=["meeting", "pills"])
    process = start("filter", model, "-p", env={**os.environ, "POLARS_MAX_THREADS": "0"})
    code, out, err = result(process)
    assert (code, out) == PASSED_ON
    assert err.splitlines()[-1].startswith("error: ")


# Time, memory and size


def test_without_a_limit_it_is_waited_for(model):
    prelude = ("from textnb.cli import verdicts\nverdicts.TIMEOUT_SECONDS = 0\n"
               "from textnb.filter.quick import QuickFilter\njudge = QuickFilter.judge\n"
               "QuickFilter.judge = lambda *given: (time.sleep(1), judge(*given))[1]")
    code, out, _ = result(started(prelude, model))
    assert (code, out.split()[0]) == (1, "ham")
    code, out, err = result(started(prelude, model, "-p", "--timeout", "0.3"))
    assert (code, out) == PASSED_ON
    assert "not judged in time" in err


@pytest.mark.parametrize("interrupts", [0, 2])
def test_a_verdict_that_comes_after_the_timeout_is_not_written(interrupts):
    # The message has no end yet, so it is still being written when the verdict comes.
    prelude = """
from textnb.mail import message
message.MAX_MESSAGE = 4
def judge(arguments, stream):
    stream.read_message(0.2)
    time.sleep(1)
    os.write(2, b"judged\\n")
    stream.answer(b"X-Textnb-Status: spam\\n", 0)
    return 0
entry._verdict = judge
"""
    with started(prelude, "m", "-p") as process:
        send(process, HAM[:10])
        assert process.stderr.readline() == b"judged\n"
        for _ in range(interrupts):
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        code, out, err = result(process, HAM[10:])
        assert (code, out) == PASSED_ON
        assert "not judged in time" in err


def test_the_time_to_read_counts_unless_the_message_must_be_written(model):
    def unfinished(*options):
        process = start("filter", model, "--timeout", "0.3", *options)
        send(process, HAM[:10])
        return process

    with unfinished() as process:
        assert process.wait(30) == 3
        assert b"not judged in time" in process.stderr.read()
    with unfinished("-p") as process:
        time.sleep(1)
        assert process.poll() is None
        assert process.communicate(HAM[10:], 30)[0].endswith(HAM)


@pytest.mark.sweep(3)
@pytest.mark.skipif(sys.platform != "linux", reason="there is no limit of address space")
@pytest.mark.parametrize("kilobytes", [
    60_000, 100_000, 140_000, 200_000, 300_000, 400_000, 450_000, 550_000, 650_000, 750_000,
    900_000, 1_100_000])
def test_little_memory(model, kilobytes):
    """Where it begins to suffice depends on the machine; below, libraries end in many ways."""
    began = time.monotonic()
    script = f'ulimit -c 0; ulimit -v {kilobytes} && exec "$@"'
    code, out, err = result(in_shell(script, model, "-p"))
    if code == 1:
        assert out.startswith(VERDICT)
        assert out.endswith(HAM.decode())
    else:
        assert (code, out) == PASSED_ON, err
        assert err
    assert time.monotonic() - began < 45


@pytest.mark.skipif(sys.platform != "linux", reason="there is no limit of address space")
def test_a_message_that_memory_does_not_hold(model):
    large = HAM + b"x" * (50 << 20)
    code, out, err = result(in_shell('ulimit -c 0; ulimit -v 40000 && exec "$@"', model, "-p"),
                            large)
    assert (code, out == large.decode()) == (3, True)
    assert "MemoryError" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may start any number of processes")
def test_no_process_can_be_started(model):
    assert result(in_shell('ulimit -u 1 && exec "$@"', model, "-p"))[:2] == PASSED_ON


@pytest.mark.slow
def test_a_message_beyond_the_limit_is_passed_on_whole(model):
    large = HAM + (b"x" * 999 + b"\n") * 1_100
    assert len(large) > 1 << 20
    lower = "from textnb.mail import message\nmessage.MAX_MESSAGE = 1 << 20"
    code, out, _ = result(started(lower, model, "-p"), large)
    line, _, rest = out.partition("\n")
    assert (code, line.startswith(VERDICT), rest == large.decode()) == (1, True, True)
    code, out, _ = result(started(lower, "none.textnb", "-p"), large)
    assert (code, out == large.decode()) == (3, True)


@pytest.mark.slow
def test_no_more_is_read_than_is_judged(model):
    with open("/dev/zero", "rb") as endless:
        ran = finished(start("filter", model, stdin=endless)).checked(2)
    assert ran.out.startswith("unsure")


# Wrong usage, and streams that are not there


@pytest.mark.sweep(3)
@pytest.mark.parametrize("arguments", [
    "--nonsense filter m", "--version filter m", "filter --nonsense m", "filter", "filter m m",
    "filter none.textnb", "filter m --timeout nan", "filter m --maildir none"])
def test_wrong_usage_passes_the_message_on_and_no_forged_verdict(arguments):
    plain = finished(start(*arguments.split()), FORGED).checked(3)
    passing = finished(start(*arguments.split(), "-ep"), FORGED).checked(3)
    assert (plain.out, passing.out) == ("", RENAMED.decode())
    assert plain.err
    assert passing.err


@pytest.mark.sweep(2)
@pytest.mark.parametrize("arguments", [
    "m --passthrough=1", "--pass m", "m --pass-through", "m -passthrough", "m --maildir=none -ep",
    "-p --help", "m -p -h"])
def test_every_misspelling_of_passthrough_passes_the_message_on(arguments):
    ran = finished(start("filter", *arguments.split()), HAM).checked(3)
    assert ran.out == HAM.decode()
    assert ran.err


def test_every_option_that_asks_for_the_message_is_known():
    """No other long option may begin so, as one that is misspelt still asks for the message."""
    options = [name for parameter in group.commands["filter"].params for name in parameter.opts]
    assert [name for name in options if entry.passes_through([name])] == ["--passthrough", "-p"]


UNKNOWN = HAM.replace(b"the noon meeting", b"unheard words")


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("redirection", "arguments", "message", "code", "out", "told"), [
    ("<&-", "mail.textnb", HAM, 3, "", "it is closed"),
    ("</dev/null", "mail.textnb", HAM, 3, "", "it is empty"),
    (">&-", "mail.textnb", HAM, 3, "", "standard output is closed"),
    (">/dev/full", "mail.textnb", HAM, 3, "", "No space left"),
    (">/dev/full", "mail.textnb -p", HAM, 3, "", "No space left"),
    ("<&- 2>&-", "mail.textnb", HAM, 3, "", ""),
    ("2>&-", "mail.textnb", HAM, 1, "ham ", ""),
    ("2>/dev/full", "mail.textnb", UNKNOWN, 2, "unsure ", ""),
    ("2>/dev/full", "mail.textnb -e", UNKNOWN, 0, "unsure ", ""),
    ("2>/dev/full", "none.textnb", HAM, 3, "", ""),
    ("2>/dev/full", "none.textnb -p -e", HAM, 3, HAM.decode(), "")])
def test_streams_that_are_not_there_change_no_verdict(
    model, monkeypatch, redirection, arguments, message, code, out, told
):
    monkeypatch.chdir(model.parent)
    got, written, err = result(in_shell(f'exec "$@" {redirection}', *arguments.split()), message)
    assert (got, told in err) == (code, True)
    assert written.startswith(out)
    assert bool(written) == bool(out)


def test_a_reader_that_has_gone_is_no_spam(model):
    with start("filter", model, "-p") as process:
        process.stdout.close()
        process.stdin.write(HAM + b"x" * (1 << 20))
        process.stdin.close()
        assert process.wait(60) == 3


def test_help_reads_no_message():
    process = start("filter", "--help")
    assert process.wait(60) == 0
    process.communicate()


# Signals


def test_an_interrupt_ends_what_hangs():
    prelude = "entry._verdict = lambda *_: (os.write(2, b'ready\\n'), time.sleep(60))"
    with started(prelude, "m", "-p") as process:
        process.stdin.write(HAM)
        process.stdin.close()
        assert process.stderr.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 3
        assert process.stdout.read() == HAM
        assert process.stderr.read() == b"interrupted; no verdict was given\n"


@pytest.mark.parametrize("at", [0, 1, 20, 26])
def test_an_interrupt_loses_no_block_of_a_message(model, at):
    """It comes after one of 27 reads, the last of which finds the end, and before it is stored."""
    prelude = f"""
import types
def read1(size, read=sys.stdin.buffer.read1, reads=iter(range(100))):
    block = read(100)
    if next(reads) == {at}:
        os.kill(os.getpid(), signal.SIGINT)
    return block
sys.stdin = types.SimpleNamespace(buffer=types.SimpleNamespace(read1=read1))
"""
    message = b"Subject: a\n\n" + bytes(range(256)) * 10
    process = started(prelude, model, "-p")
    assert process.communicate(message, timeout=60) == (
        message, b"interrupted; no verdict was given\n")
    assert process.returncode == 3


@pytest.mark.parametrize(("options", "out"), [([], ""), (["-p"], "Subject: half a message\n\n")])
def test_a_message_that_was_begun_is_passed_on_to_its_end(model, options, out):
    process = started("sys.stderr.write('ready\\n'); sys.stderr.flush()", model, *options)
    send(process, b"Subject: half")
    assert process.stderr.readline() == b"ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    if not options:
        # It does not wait for the rest.
        assert process.wait(20) == 3
    assert result(process, b" a message\n\n")[:2] == (3, out)


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
def test_an_interrupt_while_it_starts_is_one_line(model, verb, imports):
    """After so many imports."""
    arguments = [str(model), *(["cheap pills"] if verb == "explain" else [])]
    code, out, err = result(subprocess.Popen(
        [sys.executable, "-c", STARTING, verb, *arguments, str(imports)], **PIPES))
    interrupted = 3 if verb == "filter" else 130
    if imports > (50 if verb == "filter" else 400) and code != interrupted:
        # It had no more to import.
        assert (code, bool(out)) == (1 if verb == "filter" else 0, True)
        return
    assert (code, out) == (interrupted, ""), err
    assert err.splitlines()[-1].startswith("interrupted; no ")
    assert "Traceback" not in err


# Without a verb


def test_the_version_in_one_line():
    for option in ("--version", "-V"):
        ran = finished(start(option)).checked()
        assert ran.out.startswith("textnb ")
        assert (ran.out.count("\n"), ran.err) == (1, "")
