"""The command as a program: pipes that close, disks that fill, and signals."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import MAIL, PROGRAM, Result, files_in, finished, send, start
from textnb import DataError, TextClassifier
from textnb.cli import console

INTERRUPTED = "interrupted; no output was written or replaced"
BY_INTERRUPT_OR_REQUEST = pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """Documents that take some ten seconds to explain; a small file all the same."""
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    texts = [" ".join(f"w{(7 * row + n) % 997}" for n in range(60)) for row in range(2000)]
    part = pl.DataFrame({"text": texts, "label": ["ham", "spam"] * 1000})
    pl.concat([part] * 400).write_parquet(path)
    return path


@pytest.fixture(scope="session")
def model(large):
    """A model that knows their words."""
    path = large.parent / "large.textnb"
    TextClassifier().fit(pl.scan_parquet(large).head(2000)).save(path)
    return path


def test_the_installed_command_is_the_program():
    (command,) = entry_points(group="console_scripts", name="textnb")
    assert command.value == "textnb.cli.entry:main"


def test_the_program_trains_and_predicts(folder):
    ran = finished(start("train", "-", "-o", "m.textnb"), MAIL.write_csv().encode()).checked()
    assert ran.out == ""
    assert ran.err.splitlines()[1] == "2 classes, 12 terms -> m.textnb"
    ran = finished(start("predict", "m.textnb", "-", "-q"), b'{"text": "free money"}\n').checked()
    assert (ran.out, ran.err) == ('{"text": "free money","predicted":"spam"}\n', "")
    assert files_in(folder) == ["m.textnb"]
    ran = finished(start("predict", "absent.textnb", "-"), b"").checked(1)
    assert (ran.out, ran.err) == ("", "error: no such model file: 'absent.textnb'\n")


# Lines that are answered one by one


def test_each_line_of_a_stream_is_answered_at_once_in_order(trained):
    with start("predict", trained, "-", "-q") as process:
        # The second one has a fault, and the third is empty.
        for line, answer in ((b'{"id": 1, "text": "free money"}', '"predicted":"spam"}'),
                             (b"{", '{"line": 2, "error": "the line is not JSON: '),
                             (b'\n{"text": null, "id": 12345678901234567890123}',
                              '{"text": null, "id": 12345678901234567890123,"predicted":"ham"}')):
            send(process, line + b"\n")
            # It would wait forever for a program that waits for the end of the stream.
            assert answer in process.stdout.readline().decode()
        process.stdin.write(b'{"text": "lunch"}')
        ran = finished(process).checked(1)
    assert ran.out == '{"text": "lunch","predicted":"ham"}\n'
    assert ran.err.splitlines()[-1] == (
        "error: standard input: 1 line has no answer, but an error in its place; the first is line "
        "2: the line is not JSON: Expecting property name enclosed in double quotes (column 2)")


@pytest.mark.sweep(1)
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("words", [["predict"], ["predict", "--read", "format=csv"], ["mistakes"]])
def test_no_line_of_progress_runs_into_answers_on_the_same_terminal(trained, words):
    import pty

    master, slave = pty.openpty()
    process = start(*words[:1], trained, "-", *words[1:], stdout=slave, stderr=slave,
                    env={**os.environ, "TERM": "xterm"})
    os.close(slave)
    text = "text,label\nfree money,ham\n" if words[1:] else '{"text": "free money", "label": "ham"}'
    process.stdin.write(text.encode())
    process.stdin.close()
    shown = b""
    # Reading fails on Linux once nobody writes any more.
    with suppress(OSError):
        while part := os.read(master, 4096):
            shown += part
    os.close(master)
    assert process.wait(60) == 0
    lines = shown.decode().splitlines()
    assert not re.search(r"[⠁-⣿]|\x1b\[\?25l", shown.decode())
    assert any(line.startswith("{") and line.endswith("}") for line in lines), lines


@pytest.mark.parametrize(("line", "error"), [
    ("[1]", "not a JSON object"), ('{"txt": "a"}', "no key 'text'; its keys are 'txt'"),
    ('{"text": 5}', "'text' must hold text; got 5"), ('{"text": ["a"]}', "'text' must hold text"),
    ('{"text": "a", "predicted": 1}', "a key 'predicted' already"),
    ('{"text": "free", "text": "lunch"}', "the key 'text' more than once"),
    (r'{"text": "free", "te\u0078t": "lunch"}', "the key 'text' more than once"),
    ('{}', "no key 'text'; it has none"),
    ('{"text": "a", "x": 1' + "0" * 5000 + "}", "a whole number of more than 4,300 digits"),
    ('{"text": "a", "x": NaN}', "NaN is not a number of JSON"), (b"\xff", "not UTF-8"),
    (r'{"text": "\ud800"}', "half of a character"), ("[" * 100_000, "too deeply"),
    ('{"text": "a"} {"text": "b"}', "Extra data"),
    # Together with the line behind it, it would be one of JSON.
    ('{"text": "a"}, {"text": "b", "x": [1', "Extra data"),
    ('{"text": "' + "a" * 3000 + '"}', "the line has more than")])
def test_a_line_with_a_fault_is_answered_by_its_error(run, trained, monkeypatch, line, error):
    from textnb.workflow import lines

    monkeypatch.setattr(lines, "MAX_LINE_SIZE", 2500 if "aaa" in str(line) else lines.MAX_LINE_SIZE)
    good = b'{"text": "free money"}'
    whole = b"\n".join([good, line if isinstance(line, bytes) else line.encode(), good, b"2]}"])
    ran = run("predict", trained, "-", "--probability", input=whole).checked(1)
    first, fault, second, last = map(json.loads, ran.out.splitlines())
    assert (first, "error" in last) == (second, True)
    assert first.keys() == {"text", "predicted", "probability"}
    assert (fault["line"], error in fault["error"]) == (2, True), fault
    assert "2 lines have no answer" in ran.err


def test_answers_to_lines_are_those_to_a_file(run, mail, trained):
    rows = pl.concat([MAIL] * 2000)
    rows.write_ndjson("rows.ndjson")
    for answers in ([], ["--scores", "--explain", "2", "--top-k", "2", "--known-terms"]):
        whole = run("predict", trained, "rows.ndjson", *answers).checked()
        lines = run("predict", trained, "-", *answers, input=Path("rows.ndjson").read_bytes())
        assert lines.checked().out == whole.out
        assert "predicted 12,000 documents" in lines.err


def test_empty_lines_before_the_first_wait_for_no_end(trained):
    with start("predict", trained, "-", "-q") as process:
        send(process, b"\xef\xbb\xbf \r\n")
        # Only then it has read this alone.
        time.sleep(1.5)
        send(process, b'{"text": "free money"}\n')
        # It would wait forever for a program that waits for the end of the stream.
        assert json.loads(process.stdout.readline()) == {"text": "free money", "predicted": "spam"}
        process.stdin.write(b"2\n")
        ran = finished(process).checked(1)
    assert json.loads(ran.out)["line"] == 3, "empty lines are counted"


@pytest.mark.parametrize(("parts", "format"), [
    ((b"\n", b" \n", b"text\tlabel\n"), "csv"), ((b"\xef", b"\xbb", b"\xbf{}"), "ndjson"),
    ((b"P", b"AR1..."), "parquet"), ((b"ARR", b"OW1..."), "ipc"), ((b"P",), "csv"),
    ((b"\xef\xbb\xbf", b"\n", b"{}"), "ndjson")])
def test_what_was_read_to_find_the_format_is_read_again(monkeypatch, parts, format):
    from textnb.frames import stdin

    class Pipe(io.RawIOBase):
        """A pipe into which a part is written at a time."""

        parts_left = iter(parts)

        def readable(self):
            return True

        def readinto(self, buffer):
            part = next(self.parts_left, b"")
            buffer[:len(part)] = part
            return len(part)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Pipe())))
    assert stdin.format_of_stdin() == format
    assert Path(stdin.spool_stdin()[0]).read_bytes() == b"".join(parts)
    assert stdin.take_beginning() == b""


def test_a_stream_of_empty_lines_has_no_answers(run, trained):
    assert run("predict", trained, "-", "-q", input=b"\n \n\n").checked() == Result(0, "", "")
    ran = finished(start("predict", trained, "-", "-q"), b"\n \n\n")
    assert ran.checked() == Result(0, "", "")


def test_a_first_line_that_is_not_json_has_its_error_if_the_format_is_named(run, trained):
    ran = run("predict", trained, "-", "-q", "--read", "format=ndjson",
              input=b'not json\n{"text": "free money"}\n').checked(1)
    assert [[*json.loads(line)] for line in ran.out.splitlines()] == [
        ["line", "error"], ["text", "predicted"]]


def test_keys_of_a_stream_are_chosen(run, trained):
    lines = (b'{"id": 12345678901234567890, "text": "free", "x": 1.50}\n{"text": "free", "x": 1}\n'
             b'{"x": ["\xc3\xa4"], "text": "free", "id": "\\u00e4"}\n{"text": "", "x": 1e400}\n')
    ran = run("predict", trained, "-", "--columns", "x,predicted,id", input=lines).checked(1)
    first, without_id, third, too_large = ran.out.splitlines()
    assert first == '{"x":1.5,"id":12345678901234567890,"predicted":"spam"}'
    assert "the line has no key 'id'; its keys are 'text', 'x'" in without_id
    assert json.loads(third) == {"x": ["ä"], "id": "ä", "predicted": "spam"}
    assert "1e400 is too large for a number" in too_large
    ran = run("predict", trained, "-", "--columns", "x", input=b'{"text": "free"}\n').checked(2)
    assert "--columns names no answer" in ran.err


def test_no_line_is_read_before_those_before_it_are_answered(trained):
    from textnb.scoring.columns import Answers
    from textnb.storage.textmodel import load_fitted
    from textnb.workflow.lines import answer_lines

    line, target = b'{"text": "free"}\n', io.BytesIO()

    class Source:
        """A pipe into which a part of a line is written at a time."""

        blocks, empty = 0, os.pipe()

        def fileno(self):
            # Nothing more is waiting.
            return self.empty[0]

        def read1(self, size):
            assert target.getvalue().count(b"\n") == self.blocks * 10 // len(line)
            self.blocks += 1
            return (line * 1000)[(self.blocks - 1) * 10:self.blocks * 10]

    answered = answer_lines(load_fitted(trained), Answers(), Source(), target)
    assert (answered.rows, answered.n_errors) == (1000, 0)


# Pipes that close


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_failure(large, model):
    # Threads of the engine are in the middle of their work: several times, as it is a race.
    for _ in range(3):
        with start("predict", model, large, stdin=None) as process:
            assert process.stdout.read(10) == b'{"text":"w'
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(60) == 0


@pytest.mark.sweep(1)
@pytest.mark.parametrize("args", [["predict", "{model}", "{mail}"], ["test", "{model}", "{mail}"],
                                  ["top", "{model}"], ["explain", "{model}", "free lunch"]],
                         ids=lambda args: args[0])
def test_a_reader_that_has_left_is_no_failure(args, mail, trained):
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*(arg.format(model=trained, mail=mail) for arg in args), stdout=writer)
    os.close(writer)
    ran = finished(process).checked()
    expected = ("tested 6 doc", "note: it can't be told whether the model has learned")
    assert [line for line in ran.err.splitlines() if not line.startswith(expected)] == []


# Disks that fill


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "answers"), [
    ("parquet", ["--scores", "--explain", "3"]), ("csv", [])])
def test_a_full_disk_keeps_the_old_output(folder, large, model, ending, answers):
    # Documents whose predictions no pipe holds.
    pl.read_parquet(large, n_rows=6000).write_parquet(folder / "medium.parquet")
    out = folder / f"out.{ending}"
    out.write_text("old")
    # No file may grow beyond 16 KiB.
    limited = ["bash", "-c", 'ulimit -f 16; exec "$@"', "bash", *PROGRAM, "predict", str(model),
               "medium.parquet", "-o", str(out), *answers, "-q"]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"error: can't write '?{re.escape(str(out))}'?: File too large\n",
                        done.stderr)
    assert out.read_text() == "old"
    assert files_in(folder) == ["medium.parquet", out.name]


@FULL
@pytest.mark.sweep(1)
@pytest.mark.parametrize("args", [
    "predict {trained} {mail}", "top {trained}", "describe {trained}", "--help", "--version",
    "train --help"])
def test_a_full_stdout_is_a_failure(mail, trained, args):
    args = args.format(mail=mail, trained=trained).split()
    with open("/dev/full", "wb") as full:
        ran = finished(start(*args, stdout=full)).checked(1)
    assert re.fullmatch("error: .*No space left on device.*\n", ran.err)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("arguments", [
    "top {model}", "predict {model} {mail} -o - -q", "filter {model}", "filter {model} -p",
    "filter {model} --format json"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_write_that_ends_early_is_a_failure(mail, trained, folder, arguments, unbuffered):
    """Where the disk has room for nine more bytes, the system writes these, and says so."""
    limit = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9)); "
    words = arguments.format(model=trained, mail=mail).split()
    with open(folder / "out", "wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", f"{limit}os.execv(sys.argv[1], sys.argv[1:])", *PROGRAM, *words],
            input=b"Subject: noon\n\nlunch\n", stdout=out, stderr=subprocess.DEVNULL, timeout=60,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == (3 if words[0] == "filter" else 1)
    assert len((folder / "out").read_bytes()) == 9


# Signals


def stopped(process, ready, number, said=INTERRUPTED):
    """Send a signal once it is ready for one; it must end soon, as interrupted."""
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
    ran = finished(process)
    # An interrupt may also be noted where it met the interpreter's own clean-up.
    assert re.search(f"(^|\n){said}\n$", ran.err), ran.err
    assert (ran.code, ran.out) == (130, "")


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "number"), [
    ("parquet", signal.SIGINT), ("ndjson", signal.SIGINT), ("parquet", signal.SIGTERM),
    ("parquet", signal.SIGHUP)])
def test_a_stopped_prediction_keeps_the_old_output(folder, large, model, ending, number):
    out = folder / f"out.{ending}"
    out.write_text("old")

    def is_writing():
        beside = [path for path in folder.iterdir() if path != out]
        return any(path.stat().st_size > 0 for path in beside)

    stopped(start("predict", model, large, "-o", out, "--explain", "5"), is_writing, number)
    assert out.read_text() == "old"
    assert files_in(folder) == [out.name]


@pytest.mark.slow
def test_a_stopped_stream_ends(folder, large, model):
    out = Path("out.ndjson")
    with out.open("wb") as file:
        process = start("predict", model, large, "--explain", "5", stdout=file)
    stopped(process, lambda: out.stat().st_size > 0, signal.SIGINT,
            r"interrupted; [\d,]+ rows were written")
    assert all(json.loads(line)["predicted"] in ("ham", "spam")
               for line in out.read_text().splitlines()[:-1])


@BY_INTERRUPT_OR_REQUEST
def test_a_stopped_stream_of_lines_says_how_many_have_an_answer(folder, trained, number):
    out = Path("out.ndjson")
    with out.open("wb") as file:
        process = start("predict", trained, "-", "-q", stdout=file)
    send(process, b'{"text": "free"}\n\n{}\n')
    stopped(process, lambda: out.stat().st_size > 0, number, "interrupted; 2 rows were written")


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("verb", "number"), [
    ("train", signal.SIGINT), ("train", signal.SIGTERM), ("predict", signal.SIGINT)])
def test_a_stop_while_stdin_is_read_leaves_nothing(folder, trained, verb, number):
    spool = folder / "spool"
    spool.mkdir()
    args = {"train": ["train", "-", "-o", "out.textnb"],
            "predict": ["predict", trained, "-", "-o", "out.csv"]}[verb]
    process = start(*args, env={**os.environ, "TMPDIR": str(spool)})
    send(process, b"text,label\nfree,spam\n")
    # The copy of standard input is there once it is read.
    stopped(process, lambda: any(spool.glob("textnb-*")), number)
    assert files_in(folder) == ["spool"]
    assert files_in(spool) == []


def program(code, *args):
    """Start the command in a process that runs some code before it."""
    return subprocess.Popen([sys.executable, "-c", code, *map(str, args)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def is_ready():
    return Path("ready").exists()


SCORING = """
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
LOST = """
import os, signal, weakref
from textnb.cli import entry, signals
from textnb.scoring import texts

# The thread that receives signals may run too late.
signals._watch = lambda *args: None
predict_lazily = texts.predict_lazily

def interrupted(*args, **kwargs):
    # An exception in such a callback is printed and ignored.
    reference = weakref.ref(set(), lambda _: os.kill(os.getpid(), signal.SIGINT))
    return predict_lazily(*args, **kwargs)

texts.predict_lazily = interrupted
entry.main()
"""
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


@pytest.mark.slow
@BY_INTERRUPT_OR_REQUEST
def test_a_stopped_test_ends(folder, large, model, number):
    # Threads of the engine are in the middle of calls into Python: several times, as it is a race.
    for _ in range(3 if number == signal.SIGINT else 1):
        stopped(program(SCORING, "test", model, large), is_ready, number)
        Path("ready").unlink()


@pytest.mark.slow
@BY_INTERRUPT_OR_REQUEST
def test_an_interrupt_that_is_swallowed_ends_it_all_the_same(folder, mail, trained, number):
    stopped(program(DEAF, "predict", trained, mail), is_ready, number)
    # What was being written elsewhere is gone too.
    assert files_in(folder) == ["mail.parquet", "ready"]


@pytest.mark.slow
def test_an_interrupt_that_a_callback_loses_keeps_the_old_output(folder, mail, trained):
    out = Path("out.csv")
    out.write_text("old")
    ran = finished(program(LOST, "predict", trained, mail, "-o", out))
    assert (ran.code, ran.out, out.read_text()) == (130, "", "old")
    assert "Exception ignored in" in ran.err
    assert re.search(f"(^|\n){INTERRUPTED}\n$", ran.err)


@pytest.mark.sweep(1)
@BY_INTERRUPT_OR_REQUEST
def test_a_stop_while_a_text_is_typed_ends(folder, trained, number):
    stopped(program(WAITING, "explain", trained, "-"), is_ready, number)


def test_an_interrupt_that_became_a_panic_is_one():
    words = "called `Result::unwrap()` on an `Err`: PyErr { type: <class 'KeyboardInterrupt'> }"
    panic = pl.exceptions.ComputeError(words)
    assert console._was_interrupted(panic)
    wrapped = DataError("can't read the frame")
    wrapped.__cause__ = panic
    assert console._was_interrupted(wrapped)
    assert not console._was_interrupted(DataError(f"a label is {words!r}"))
    assert not console._was_interrupted(pl.exceptions.ComputeError("no such file"))
