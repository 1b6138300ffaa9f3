"""Inputs that showed a fault once, and mutated seeds of every target that is not compiled."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fuzzing import harness, pages, planted

import textnb
from textnb import TextnbError

PYTHON = [name for name in harness.names() if not hasattr(harness.load(name), "build")]
FINDINGS = [path for name in PYTHON for path in sorted((Path(__file__).parent / name).glob("*"))]
# As a process that runs a target.
pytestmark = pytest.mark.filterwarnings("ignore")
# Inputs of a target that does not say how many.
INPUTS = 50


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_finding_stays_fixed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness.Chance, "is_sampling", False)
    problem = harness.Judge(harness.load(path.parent.name).check).problem(path.read_bytes())
    assert problem is None, problem.text


@pytest.mark.parametrize("name", PYTHON)
def test_mutated_seeds(name: str) -> None:
    target = harness.load(name)
    judge = harness.Judge(target.check)
    problems = [judge.problem(data) for data in harness.inputs(
        target, getattr(target, "INPUTS", INPUTS), seed=1)]
    assert not [problem.text for problem in problems if problem is not None]


# Checks take any refusal, so a reader that refuses everything would pass them.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["messages", "models", "protocol", "rows", pytest.param(
    "vectors", marks=pytest.mark.skipif(
        find_spec("safetensors") is None, reason="needs textnb[vectors]"))])
def test_most_seeds_are_not_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, errors = harness.load(name), list[TextnbError]()
    monkeypatch.setattr(harness.Chance, "is_sampling", False)
    monkeypatch.setattr(TextnbError, "__init__", lambda self, *words, **more: errors.append(self))
    n_refused, seeds = 0, target.seeds()
    for seed in seeds:
        errors.clear()
        target.check(seed)
        n_refused += bool(errors)
    assert n_refused < len(seeds) / 2


@pytest.mark.slow
@pytest.mark.parametrize(("begin", "read", "floor"), [
    (b"model.json", textnb.load, 37), (b"README.md", textnb.verify_export, 20)])
def test_many_changed_files_are_read(begin: bytes, read: Any, floor: int, tmp_path: Path) -> None:
    target, path, n_read = harness.load("models"), tmp_path / "m.zip", 0
    seeds = [seed for seed in target.seeds() if begin in seed[:100]]
    for data in harness.inputs(SimpleNamespace(
            seeds=lambda: seeds, mutate=target.mutate, LONGEST=target.LONGEST), 150, seed=1):
        path.write_bytes(data)
        with suppress(TextnbError):
            read(path, max_bytes=1 << 28)
            n_read += data not in seeds
    assert n_read > floor


def test_faults_that_are_planted_are_of_the_code_as_it_is() -> None:
    faults = [fault for name in planted.names() for fault in planted.faults_of(name)]
    assert len(faults) > 80
    assert not [fault["about"] for fault in faults if (harness.ROOT / fault["file"]).read_text(
        "utf-8").count(fault["old"]) != 1 or fault["old"] == fault["new"]]


def test_a_finding_that_does_not_show_again_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "FINDINGS", tmp_path)
    monkeypatch.setattr(harness.Chance, "is_sampling", True)
    target = SimpleNamespace(check=len, seeds=lambda: [b""])
    path, text = harness._keep("x", target, b"abc", "a crash", True)
    assert (path.read_bytes(), text) == (b"abc", "not reproduced when it was tried again:\na crash")


@pytest.mark.slow
def test_an_engine_that_waits_for_ever_is_ended_and_its_input_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(subprocess.Popen[str]):
        def __init__(self, command: list[str], **options: Any) -> None:
            super().__init__(command, **options)
            # It has begun with its first input.
            current = Path(command[command.index("protocol") + 1], harness.CURRENT)
            while self.poll() is None and not (
                    current.exists() and any(current.read_bytes()[:8])):
                time.sleep(0.01)
            self.send_signal(signal.SIGSTOP)

    monkeypatch.setattr(harness, "FINDINGS", tmp_path)
    monkeypatch.setattr(harness, "_STUCK", 1)
    monkeypatch.setattr(harness, "_keep", lambda name, target, data, text, small: (
        harness.ROOT / f"of {len(data)} bytes", text))
    monkeypatch.setattr(subprocess, "Popen", Stopped)
    found = harness.run("protocol", 1, seed=1).findings
    kept, ended = found
    assert kept.startswith("of ")
    assert kept != "of 0 bytes"
    assert ended == f"the engine ended with -{signal.SIGKILL:d}"


def test_the_page_shows_the_runs() -> None:
    assert pages.PAGE.read_text("utf-8") == pages.page()
