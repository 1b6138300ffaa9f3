"""Functions that run the command in this process, or as a program in a new one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from textnb import TextClassifier
from textnb.cli.main import app

# The command as a program: what the installed script does.
PROGRAM = [sys.executable, "-c", "from textnb.cli.entry import main; main()"]

MAIL = pl.DataFrame({
    "text": ["free money now", "cheap free offer", "hello friend lunch", "meeting at lunch",
             "free lunch offer", "see you at lunch"],
    "label": ["spam", "spam", "ham", "ham", "spam", "ham"],
    "split": ["train", "train", "train", "train", "test", "test"],
    "id": [3, 1, 4, 15, 9, 2],
})


@dataclass(frozen=True)
class Result:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    def checked(self, code=0):
        assert (self.code, "Traceback" in self.err) == (code, False), self.err
        return self


Run = Callable[..., Result]


def run_here(*args, input=None):
    """Run the command in this process; an exception that it lets through is raised."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        result = CliRunner().invoke(app, [str(arg) for arg in args], input=input,
                                    catch_exceptions=False)
    finally:
        signal.signal(signal.SIGTERM, handler)
    return Result(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def run(monkeypatch):
    """Run the command in this process."""
    # Tables wrap at the width of the terminal, which is 80 columns in a parallel run of the tests.
    monkeypatch.setenv("COLUMNS", "200")
    return run_here


def start(*args, **settings):
    """Start the command as a program of its own."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([*PROGRAM, *map(str, args)], **{**pipes, **settings})


def send(process, data):
    """Write to a program at once."""
    process.stdin.write(data)
    process.stdin.flush()


def finished(process, input=None):
    """Wait up to a minute for the end of a process, and return its result."""
    try:
        out, err = process.communicate(input, timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Result(process.returncode, (out or b"").decode(), (err or b"").decode())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mail(folder):
    """A table of labelled documents."""
    path = folder / "mail.parquet"
    MAIL.write_parquet(path)
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A model of the table."""
    path = tmp_path_factory.mktemp("trained") / "mail.textnb"
    TextClassifier().fit(MAIL).save(path)
    return path


def files_in(folder):
    return sorted(os.listdir(folder))


def assert_same_file(path, model):
    """Check that a command wrote the same bytes as ``model.save``."""
    model.save("python.textnb")
    assert Path(path).read_bytes() == Path("python.textnb").read_bytes()


def read_json(text):
    """Parse JSON by the standard, which has no NaN and Infinity."""

    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def json_of(run, *words):
    """What a command writes with --format json."""
    return read_json(run(*words, "--format", "json").checked().out)


def cells(out):
    """The rows of the tables in a text."""
    return [[cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")]
            for line in out.splitlines() if line.startswith(("│", "┃"))]


# Labels with markup or terminal control characters -> how a terminal must show them.
ODD_LABELS = {"[bold]red[/bold]": "[bold]red[/bold]", "[/]": "[/]", "\x1b[31mred": r"\x1b[31mred",
              "two\nlines": r"two\nlines", "bell\x07": r"bell\x07", "\x9b31m": r"\x9b31m",
              "\u202e": r"\u202e", "日本": "日本"}
