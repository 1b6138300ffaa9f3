"""Every side on every task, each run a process of its own, the sides in turn; medians."""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.data import Corpus, Missing, few, prepare
from benchmarks.process import Run, run
from benchmarks.sides import BASE, NEEDS, PARTS, SHORT, SIDES, WHOLE, Side, share_right

# From start to exit of what every side needs, and of what textnb does at least.
STARTS = {"python": [sys.executable, "-c", ""],
          "import polars, numpy": [sys.executable, "-c", "import polars, numpy"],
          "import sklearn (text, naive Bayes)": [
              sys.executable, "-c", "import polars, sklearn.feature_extraction.text, "
              "sklearn.naive_bayes"],
          "textnb --help": [str(Path(sys.executable).with_name("textnb")), "--help"]}
MESSAGE = """From: prizes@example.org
Subject: a free weekend
Message-ID: <1@example.org>

Congratulations! You have been chosen for a free weekend in Paris.
Text WIN to 80086 before Friday to claim your prize.
"""
TASKS = (*WHOLE, *PARTS, *SHORT)
# Instructions of a task: its runs in one process, so that the start is subtracted.
REPEATS = (1, 3)


def speed(
    names: Sequence[str], folder: Path, runs: int, sides: Sequence[str] = tuple(SIDES),
    tasks: Sequence[str] = TASKS, large_runs: int = 1,
    keep: Callable[[dict[str, Any]], None] = lambda figures: None,
) -> dict[str, Any]:
    """The rows of all figures, with what the corpora are; `keep` has them after each task."""
    chosen = present(sides)
    rows: list[dict[str, Any]] = []
    corpora: list[dict[str, Any]] = []
    figures = {"corpora": corpora, "rows": rows,
               "absent": [name for name in sides if not SIDES[name].present]}
    for name in names:
        corpus = prepare(name, folder)
        # After the corpus, as its name may be wrong.
        rows += [] if rows else starts(runs)
        work = folder / "work" / corpus.name.replace(" ", "-")
        corpora.append(corpus.as_json())
        # A corpus of more than 200 MB takes minutes for each run of the slowest sides.
        large = corpus.facts["train_bytes"] > 2e8
        for task in tasks:
            if not (large and task in ("csr 1,2", "job 1,2", *SHORT)):
                rows += compare(corpus, task, chosen, work, large_runs if large else runs)
                keep(figures)
        shutil.rmtree(work, ignore_errors=True)
    return figures


def present(names: Sequence[str]) -> list[Side]:
    for side in (SIDES[name] for name in names):
        if not side.present:
            note(f"{side.name} is absent: {side.how}")
    return [SIDES[name] for name in names if SIDES[name].present]


def starts(runs: int) -> Iterator[dict[str, Any]]:
    def start(command: Sequence[str]) -> dict[str, Any]:
        return taken(run(command), command)

    found = in_turn({name: partial(start, command) for name, command in STARTS.items()}, runs,
                    "start")
    return ({"corpus": "", "task": "start", "side": name, **medians(of_side)}
            for name, of_side in found.items())


def compare(
    corpus: Corpus, task: str, sides: Sequence[Side], work: Path, runs: int
) -> list[dict[str, Any]]:
    """A row for each side that takes part in the task."""
    here = [side for side in sides if task in side.tasks
            and (corpus.classes == 2 or not (side.two_classes or task in SHORT[1:]))]
    prepared = {side.name: Attempt(side, task, corpus, work) for side in here}
    found = in_turn(prepared, runs, f"{corpus.name}, {task}")
    rows, base = [], medians(found.get(BASE, []))
    expected: dict[str, Any] | None = None
    for side in here:
        row = {"corpus": corpus.name, "task": task, "side": side.name, **medians(found[side.name])}
        if "failed" not in row:
            if "seconds" in base and side.name != BASE:
                row["times_faster"] = _rounded(base["seconds"] / row["seconds"])
                row["memory_share"] = _rounded(row.get("peak_mib", 0) / base.get("peak_mib", 1))
            checks = [run["check"] for run in found[side.name]]
            if side.same_counts and row["check"]:
                expected = expected or checks[0]
                checks.append(expected)
            if not side.random and any(check != checks[0] for check in checks):
                row["differs"] = True
        rows.append(row)
    return rows


class Attempt:
    """One side at one task: each call is one run."""

    def __init__(self, side: Side, task: str, corpus: Corpus, work: Path):
        self.side, self.task, self.corpus = side, task, corpus
        suffix = " 1,2" if task.endswith(" 1,2") else ""
        self.folder = work / f"{side.name}{suffix}".replace(" ", "-")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.few = work / "few.parquet"
        if not self.few.exists():
            (work / "message.eml").write_text(MESSAGE)
            pl.read_parquet(few(corpus, work).train).write_parquet(self.few)
        labels = pl.scan_parquet(corpus.train).select(pl.col("label").max()).collect()
        self.label = str(labels.item())

    def __call__(self) -> dict[str, Any]:
        need = NEEDS.get(self.task)
        if need and not (self.folder / "trained").exists():
            ended = self._run(need)
            if "failed" in ended:
                return ended
        found = self._run(self.task)
        if self.task == "train":
            (self.folder / "trained").touch()
        return found

    def _run(self, task: str) -> dict[str, Any]:
        if task.startswith(("train", "job")):
            shutil.rmtree(self.folder)
            self.folder.mkdir()
        command = [word.replace("{label}", self.label) for word in self.side.command(
            task, self.corpus.train, self.corpus.test, self.folder, str(self.few))]
        judged = task.startswith("filter")
        # A task from memory tells its own peak.
        ran = run(command, os.environ | self.side.environment, private=judged,
                  watch=task not in PARTS,
                  read=self.folder.parent / "message.eml" if task in SHORT else None)
        found = taken(ran, command, (0, 1, 2) if judged else (0,))
        if "failed" in found:
            return found
        if self.task in WHOLE and not task.startswith("train"):
            answered = pl.read_parquet(self.folder / "answers.parquet")
            found["check"] = {"accuracy": share_right(answered["predicted"], answered["label"])}
        if task.startswith("train"):
            found["model_mib"] = sum(path.stat().st_size for path in self.folder.glob("*")
                                     if path.name.startswith(("model", "wordlist"))) / 2**20
        return found


def taken(ran: Run, command: Sequence[str], good: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """The figures of a run; those that the process itself measured come before the others."""
    if ran.code not in good:
        last = ran.error.strip().splitlines()[-1:] or ["nothing on standard error"]
        return {"failed": f"{command[0]} ended with {ran.code}: {last[0]}"}
    own = json.loads(ran.out) if ran.out.startswith("{") else {}
    return {"seconds": ran.seconds, "cpu_seconds": ran.cpu_seconds, "peak_mib": ran.peak_mib,
            "check": {}, **({"private_mib": ran.private_mib} if ran.private_mib else {}), **own}


def in_turn(
    sides: Mapping[str, Callable[[], dict[str, Any]]], runs: int, name: str
) -> dict[str, list[dict[str, Any]]]:
    """All sides once, then all again. What fails is not tried again."""
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for _ in range(runs):
        for side, measure in sides.items():
            if not (found[side] and "failed" in found[side][-1]):
                found[side].append(measure())
                last = found[side][-1]
                note(f"{name}, {side}: {last.get('failed') or format(last['seconds'], '.4f')}")
    return found


def medians(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if not runs or "failed" in runs[-1]:
        return {"failed": runs[-1]["failed"] if runs else "not measured"}
    numbers = {name: statistics.median(run[name] for run in runs)
               for name, value in runs[0].items() if isinstance(value, float)}
    check = {name: statistics.median_low([run["check"][name] for run in runs])
             for name in runs[0]["check"]}
    return {"runs": len(runs), **{name: _rounded(value) for name, value in numbers.items()},
            "all_seconds": [_rounded(run["seconds"]) for run in runs], "check": check}


def instructions(
    names: Sequence[str], folder: Path, sides: Sequence[str], tasks: Sequence[str]
) -> dict[str, Any]:
    """Instructions for a byte of text, on one core: a figure that no neighbour changes."""
    rows, counter = [], "perf stat" if _perf("true") is not None else "callgrind"
    if counter == "callgrind" and not shutil.which("valgrind"):
        raise Missing("instructions need perf, or valgrind")
    for name in names:
        corpus = few(prepare(name, folder), folder / name)
        for task in (task for task in PARTS if task in tasks):
            for side in (SIDES[side] for side in sides if task in SIDES[side].tasks):
                counts = [_count(counter, side, task, corpus, folder, times) for times in REPEATS]
                size = corpus.facts["test_bytes" if task.startswith("predict") else "train_bytes"]
                each = (counts[1] - counts[0]) / (REPEATS[1] - REPEATS[0])
                rows.append({"corpus": name, "task": task, "side": side.name, "bytes": size,
                             "instructions": round(each), "per_byte": round(each / size, 1)})
                note(f"{name}, {task}, {side.name}: {rows[-1]['per_byte']} instructions a byte")
    return {"counter": counter, "rows": rows}


def _count(
    counter: str, side: Side, task: str, corpus: Corpus, folder: Path, times: int
) -> int:
    # NumPy and Polars use one thread, so that none spins while it waits.
    environment = os.environ | side.environment | {
        "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = side.command(task, corpus.train, corpus.test, folder, corpus.train, str(times))
    if counter == "perf stat":
        return _perf(*command, environment=environment) or 0
    out = folder / "callgrind.out"
    ran = run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command],
              environment)
    if ran.code:
        raise RuntimeError(f"{side.name} ended with {ran.code} under valgrind: {ran.error[-500:]}")
    return int(re.findall(r"Collected : (\d+)", ran.error)[-1])


def _perf(*command: str, environment: dict[str, str] | None = None) -> int | None:
    if not shutil.which("perf"):
        return None
    ran = run(["perf", "stat", "-x", ",", "-e", "instructions:u", *command], environment)
    counted = re.search(r"^(\d+),.*instructions", ran.error, re.MULTILINE)
    return int(counted[1]) if counted else None


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
