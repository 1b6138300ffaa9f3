"""Processes that are measured: seconds, CPU seconds and the memory of a tree; turns, and medians.

    python -m benchmarks.process MODULE:FUNCTION [ARGUMENT ...]

is such a process: it calls a function, and prints what it returns as JSON.
"""

from __future__ import annotations

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

# Seconds between two looks at the memory. At 0.004 the looks took an eighth of a core.
LOOK = 0.02
Row = dict[str, Any]


class Missing(Exception):
    """A section can't be measured on this machine; the message says what it needs."""


def is_here(given: Any, name: str, here: object, how: str) -> bool:
    """Whether a side can be measured; if not, the figures say that it is absent."""
    if not here and f"{name} ({how})" not in given.about["absent"]:
        given.about["absent"].append(f"{name} ({how})")
        note(f"{name} is not installed: {how}")
    return bool(here)


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *,
    read: Path | None = None, private: bool = False, watch: bool = True, good: Sequence[int] = (0,),
) -> Row:
    """The figures of a process from start to exit, or why it failed.

    What it prints as JSON comes before what is seen from outside. `peak_mib` is the resident
    memory of the process and of all that it started, added up; `private` looks at private memory
    too, which slows a large process. Without `watch` nothing looks at the memory, so that the
    process has all cores to itself.
    """
    used, started = cpu_seconds(), time.perf_counter()
    with Path(read or os.devnull).open("rb") as source, subprocess.Popen(
            command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})}) as process:
        memory = Memory(process.pid, private)
        if watch:
            memory.start()
        written, complaint = process.communicate()
    seconds = time.perf_counter() - started
    memory.ended.set()
    if process.returncode not in good:
        last = complaint.decode("utf-8", "replace").strip().splitlines()[-1:]
        return {"failed": f"{command[0]} ended with {process.returncode}: {' '.join(last)}"}
    return {"seconds": seconds, "cpu_seconds": cpu_seconds() - used,
            "peak_mib": memory.peak_mib, "check": {},
            **({"private_mib": memory.private_mib} if private else {}),
            **(json.loads(written) if written.startswith(b"{") else {})}


def cpu_seconds() -> float:
    """Of the processes that have been waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def calling(function: Callable[..., Row], *arguments: str) -> list[str]:
    """The command that calls a function of this package in a process of its own."""
    name = f"{function.__module__}:{function.__qualname__}"
    return [sys.executable, "-m", "benchmarks.process", name, *arguments]


class Memory(threading.Thread):
    """Looks at a process and its descendants until `ended` is set."""

    def __init__(self, process: int, private: bool):
        super().__init__(daemon=True)
        self.process, self.private = process, private
        self.ended = threading.Event()
        self.peak_mib = self.private_mib = 0.0

    def run(self) -> None:
        while not self.ended.wait(LOOK):
            # A process alone is known by its own highest mark, which no look can miss.
            tree = [self.process, *descendants(self.process)]
            marks = [(status(one, "VmRSS"), status(one, "VmHWM")) for one in tree]
            self.peak_mib = max(self.peak_mib, sum(now for now, _ in marks),
                                *(mark for _, mark in marks))
            if self.private:
                self.private_mib = max(self.private_mib, sum(
                    status(one, f"Private_{kind}", "smaps_rollup")
                    for one in tree for kind in ("Clean", "Dirty")))


def descendants(process: int) -> list[int]:
    """The processes that a process has started, and those that they have; none after its end."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    except OSError:
        # It, or one of its threads, ended while it was looked at.
        pass
    return found


def status(process: int | str, what: str, file: str = "status") -> float:
    """MiB: VmHWM, the most that was ever resident, or VmRSS, what is now; 0 after its end."""
    # Of this program alone: getrusage's figure begins with that of the starting program.
    try:
        text = Path(f"/proc/{process}/{file}").read_text()
    except OSError:
        return 0.0
    found = re.search(rf"^{what}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def in_turn(
    name: str, sides: Mapping[str, Callable[[], Row]], runs: int
) -> dict[str, list[Row]]:
    """All sides once, then all again. What fails is not tried again."""
    found: dict[str, list[Row]] = {side: [] for side in sides}
    for _ in range(runs):
        for side, measure in sides.items():
            if not (found[side] and "failed" in found[side][-1]):
                last = measure()
                found[side].append(last)
                note(f"{name}, {side}: {last.get('failed') or format(last['seconds'], '.4f')}")
    return found


def rows_of(place: Row, found: Mapping[str, list[Row]], base: str = "") -> list[Row]:
    """A row of medians for each side, beside those of the side that is the base."""
    rows = [{**place, "side": side, **medians(runs)} for side, runs in found.items()]
    of_base = next((row for row in rows if row["side"] == base and "failed" not in row), None)
    if of_base is None:
        return rows
    for row in rows:
        if row is not of_base and "failed" not in row:
            row["times_faster"] = rounded(of_base["seconds"] / row["seconds"])
            if "peak_mib" in row:
                row["memory_share"] = rounded(row["peak_mib"] / of_base["peak_mib"])
    return rows


def medians(runs: Sequence[Row]) -> Row:
    if "failed" in runs[-1]:
        return {"failed": runs[-1]["failed"]}
    numbers = {name: statistics.median(run[name] for run in runs)
               for name, value in runs[0].items() if isinstance(value, float)}
    check = {name: statistics.median_low([run["check"][name] for run in runs])
             for name in runs[0]["check"]}
    return {"runs": len(runs), **{name: rounded(value) for name, value in numbers.items()},
            "all_seconds": [rounded(run["seconds"]) for run in runs], "check": check}


def rounded(value: float) -> float:
    return float(f"{value:.4g}")


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    print(json.dumps(resolve_name(sys.argv[1])(*sys.argv[2:])))
