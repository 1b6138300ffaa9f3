"""The command as a program: pipes that close, disks that fill, and signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import MAIL, PROGRAM, Ran, files_in, finished, start
from textnb import DataError, TextClassifier
from textnb.cli import console

INTERRUPTED = "interrupted; no output was written or replaced"


@pytest.fixture(autouse=True)
def _hangup_is_not_ignored() -> Iterator[None]:
    """The programs inherit what `nohup` or a runner of jobs set for the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents that take some ten seconds to explain; a small file all the same."""
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    texts = [" ".join(f"w{(7 * row + n) % 997}" for n in range(60)) for row in range(2000)]
    part = pl.DataFrame({"text": texts, "label": ["ham", "spam"] * 1000})
    pl.concat([part] * 400).write_parquet(path)
    return path


@pytest.fixture(scope="session")
def medium(large: Path) -> Path:
    """Documents whose predictions no pipe holds."""
    path = large.parent / "medium.parquet"
    pl.scan_parquet(large).head(6000).collect().write_parquet(path)
    return path


@pytest.fixture(scope="session")
def model(large: Path) -> Path:
    """A model that knows their words."""
    path = large.parent / "large.textnb"
    TextClassifier().fit(pl.scan_parquet(large).head(2000)).save(path)
    return path


def test_the_installed_command_is_the_program() -> None:
    (command,) = entry_points(group="console_scripts", name="textnb")
    assert command.value == "textnb.cli.entry:main"


def test_the_program_trains_and_predicts(folder: Path) -> None:
    MAIL.write_csv("mail.csv")
    ran = finished(start("train", "-", "-o", "m.textnb"), Path("mail.csv").read_bytes()).checked()
    assert ran.out == ""
    assert ran.err.splitlines()[-1] == "2 classes, 12 terms -> m.textnb"
    ran = finished(start("predict", "m.textnb", "-", "-q"), b'{"text": "free money"}\n').checked()
    assert (ran.out, ran.err) == ('{"text":"free money","predicted":"spam"}\n', "")
    assert files_in(folder) == ["m.textnb", "mail.csv"]


def test_a_failure_is_one_line_and_a_code(folder: Path) -> None:
    ran = finished(start("predict", "absent.textnb", "-"), b"").checked(1)
    assert (ran.out, ran.err) == ("", "error: no such model file: 'absent.textnb'\n")


# Pipes that close


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_failure(large: Path, model: Path) -> None:
    # Threads of the engine are in the middle of their work: several times, as it is a race.
    for _ in range(3):
        with start("predict", model, large, stdin=None) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.read(10) == b'{"text":"w'
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(60) == 0


@pytest.mark.sweep(1)
@pytest.mark.parametrize("args", [["predict", "{model}", "{mail}"], ["test", "{model}", "{mail}"],
                                  ["top", "{model}"], ["explain", "{model}", "free lunch"]],
                         ids=lambda args: args[0])
def test_a_reader_that_has_left_is_no_failure(args: list[str], mail: Path, trained: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*(arg.format(model=trained, mail=mail) for arg in args), stdout=writer)
    os.close(writer)
    ran = finished(process).checked()
    expected = ("tested 6 doc", "note: it can't be told whether the model has learned")
    assert [line for line in ran.err.splitlines() if not line.startswith(expected)] == []


# Disks that fill


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_full_disk_keeps_the_old_output(
    folder: Path, medium: Path, model: Path, ending: str
) -> None:
    out = folder / f"out.{ending}"
    out.write_text("old")
    args = ["predict", model, medium, "-o", out, "--scores", "--explain", "3", "-q"]
    if ending == "csv":
        args = [*args[:5], "-q"]
    # No file may grow beyond 16 KiB.
    limited = ["bash", "-c", 'ulimit -f 16; exec "$@"', "bash", *PROGRAM, *map(str, args)]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"error: can't write '?{re.escape(str(out))}'?: File too large\n",
                        done.stderr)
    assert out.read_text() == "old"
    assert files_in(folder) == [out.name]


@pytest.mark.sweep(1)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("verb", ["predict", "top"])
def test_a_full_stdout_is_a_failure(mail: Path, trained: Path, verb: str) -> None:
    args = [verb, trained, *([mail] if verb == "predict" else [])]
    with open("/dev/full", "wb") as full:
        ran = finished(start(*args, stdout=full))
    assert ran.code == 1
    assert "No space left on device" in ran.err
    assert "Traceback" not in ran.err


# Signals


def stopped(process: subprocess.Popen[bytes], ready: Callable[[], bool], number: int) -> Ran:
    """Send a signal once it is ready for one; it must end soon."""
    deadline = time.monotonic() + 30
    while not ready():
        assert process.poll() is None, "it ended before it could be interrupted"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    try:
        # Its standard input stays open, so that it is no end of the input that it sees.
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
    return finished(process)


def assert_interrupted(ran: Ran) -> None:
    # An interrupt may also be noted where it met the interpreter's own clean-up.
    assert ran.err.endswith(f"{INTERRUPTED}\n")
    assert ran.code == 130


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("ending", "number"), [
    ("parquet", signal.SIGINT), ("ndjson", signal.SIGINT), ("parquet", signal.SIGTERM),
    ("parquet", signal.SIGHUP)])
def test_a_stopped_prediction_keeps_the_old_output(
    folder: Path, large: Path, model: Path, ending: str, number: int
) -> None:
    out = folder / f"out.{ending}"
    out.write_text("old")
    process = start("predict", model, large, "-o", out, "--explain", "5")

    def writing() -> bool:
        beside = [path for path in folder.iterdir() if path != out]
        return any(path.stat().st_size > 0 for path in beside)

    assert_interrupted(stopped(process, writing, number))
    assert out.read_text() == "old"
    assert files_in(folder) == [out.name]


@pytest.mark.slow
def test_a_stopped_stream_ends(folder: Path, large: Path, model: Path) -> None:
    with open("out.ndjson", "wb") as out:
        process = start("predict", model, large, "--explain", "5", stdout=out)
    ran = stopped(process, lambda: Path("out.ndjson").stat().st_size > 0, signal.SIGINT)
    assert_interrupted(ran)
    assert all(json.loads(line)["predicted"] in ("ham", "spam")
               for line in Path("out.ndjson").read_text().splitlines()[:-1])


READY = """
import textnb.evaluation.evaluate
from textnb import LinearForm
from textnb.cli.entry import main

scores = LinearForm.scores
def announced(*args):
    open("ready", "w").close()
    return scores(*args)
LinearForm.scores = announced
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_a_stopped_test_ends(folder: Path, large: Path, model: Path, number: int) -> None:
    # Threads of the engine are in the middle of calls into Python: several times, as it is a race.
    for _ in range(3 if number == signal.SIGINT else 1):
        process = subprocess.Popen(
            [sys.executable, "-c", READY, "test", model, large],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ran = stopped(process, Path("ready").exists, number)
        assert_interrupted(ran)
        assert ran.out == ""
        Path("ready").unlink()


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("verb", "number"), [
    ("train", signal.SIGINT), ("train", signal.SIGTERM), ("predict", signal.SIGINT)])
def test_a_stop_while_stdin_is_read_leaves_nothing(
    folder: Path, trained: Path, verb: str, number: int
) -> None:
    spool = folder / "spool"
    spool.mkdir()
    args = {"train": ["train", "-", "-o", "out.textnb"],
            "predict": ["predict", trained, "-", "-o", "out.csv"]}[verb]
    process = start(*args, env={**os.environ, "TMPDIR": str(spool)})
    assert process.stdin is not None
    process.stdin.write(b"text,label\nfree,spam\n")
    process.stdin.flush()
    # The copy of standard input is there once it is read.
    ran = stopped(process, lambda: any(spool.glob("textnb-*")), number)
    assert_interrupted(ran)
    assert ran.out == ""
    assert files_in(folder) == ["spool"]
    assert files_in(spool) == []


DEAF = """
import signal, sys, time
from textnb.cli import entry, signals
signals.GRACE_SECONDS = 1.0

def swallowing(*args, **kwargs):
    open("ready", "w").close()
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass

from textnb.scoring import texts
from textnb.files.replace import replace_file
texts.predict_lazily = swallowing
with replace_file("unfinished.textnb") as file:
    entry.main()
"""


@pytest.mark.sweep(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_an_interrupt_that_is_swallowed_ends_it_all_the_same(
    folder: Path, mail: Path, trained: Path, number: int
) -> None:
    process = subprocess.Popen([sys.executable, "-c", DEAF, "predict", trained, mail],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ran = stopped(process, Path("ready").exists, number)
    assert_interrupted(ran)
    assert ran.out == ""
    # What was being written elsewhere is gone too.
    assert files_in(folder) == ["mail.parquet", "ready"]


WAITING = """
import io, sys
import polars

class Announced(io.FileIO):
    def readall(self):
        open("ready", "w").close()
        return super().readall()
    def readinto(self, buffer):
        open("ready", "w").close()
        return super().readinto(buffer)

sys.stdin = io.TextIOWrapper(io.BufferedReader(Announced(0)))
from textnb.cli.entry import main
main()
"""


@pytest.mark.sweep(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_a_stop_while_a_text_is_typed_ends(folder: Path, trained: Path, number: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, "explain", trained, "-"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ran = stopped(process, Path("ready").exists, number)
    assert_interrupted(ran)
    assert ran.out == ""


@pytest.mark.slow
def test_the_copy_of_stdin_is_removed(folder: Path, trained: Path) -> None:
    spool = folder / "spool"
    spool.mkdir()
    for content, code in ((b"text\nfree\n", 0), (b"body\nfree\n", 1)):
        process = start("predict", trained, "-", env={**os.environ, "TMPDIR": str(spool)})
        finished(process, content).checked(code)
        assert files_in(spool) == []


def test_an_interrupt_that_became_a_panic_is_one() -> None:
    told = "called `Result::unwrap()` on an `Err`: PyErr { type: <class 'KeyboardInterrupt'> }"
    panic = pl.exceptions.ComputeError(told)
    assert console._was_interrupted(panic)
    wrapped = DataError("can't read the frame")
    wrapped.__cause__ = panic
    assert console._was_interrupted(wrapped)
    assert not console._was_interrupted(DataError(f"a label is {told!r}"))
    assert not console._was_interrupted(pl.exceptions.ComputeError("no such file"))
