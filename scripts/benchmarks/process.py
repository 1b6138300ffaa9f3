"""One process from start to exit: its seconds, its CPU seconds, and the memory of its tree."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Seconds between two looks at the memory. At 0.004 the looks took an eighth of a core.
LOOK = 0.02


@dataclass(frozen=True)
class Run:
    """What a process took.

    `peak_mib` is the resident memory of the process and of all that it started, added up.
    """

    seconds: float
    cpu_seconds: float
    peak_mib: float
    private_mib: float
    code: int
    out: str
    error: str


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None,
    read: Path | None = None, private: bool = False, watch: bool = True,
) -> Run:
    """Run a command. `private` looks at its private memory too, which slows a large process.

    Without `watch` nothing looks at the memory, so that the process has all cores to itself.
    """
    with (Path(read or os.devnull).open("rb") as source, tempfile.TemporaryFile() as out,
          tempfile.TemporaryFile() as error):
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=source, stdout=out, stderr=error,
                                   env=None if environment is None else dict(environment))
        memory = Memory(process.pid, private)
        if watch:
            memory.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        memory.ended.set()
        if watch:
            memory.join()
        # Popen would wait for a process that has been waited for.
        process.returncode = os.waitstatus_to_exitcode(status)
        written = []
        for file in (out, error):
            file.seek(0)
            written.append(file.read().decode("utf-8", "replace"))
    return Run(seconds, usage.ru_utime + usage.ru_stime, memory.peak_mib, memory.private_mib,
               process.returncode, *written)


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
                self.private_mib = max(self.private_mib, sum(map(private_mib, tree)))


def descendants(process: int) -> list[int]:
    """The processes that a process has started, and those that they have; none after its end."""
    found: list[int] = []
    try:
        tasks = list(Path(f"/proc/{process}/task").glob("*/children"))
    except OSError:
        # It ended while its tasks were listed.
        return found
    for task in tasks:
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def status(process: int | str, what: str) -> float:
    """MiB: VmHWM, the most that was ever resident, or VmRSS, what is now; 0 after its end."""
    # Of this program alone: getrusage's figure begins with that of the starting program.
    return _kilobytes(Path(f"/proc/{process}/status"), what) / 1024


def private_mib(process: int) -> float:
    path = Path(f"/proc/{process}/smaps_rollup")
    return sum(_kilobytes(path, what) for what in ("Private_Clean", "Private_Dirty")) / 1024


def _kilobytes(path: Path, what: str) -> int:
    try:
        found = re.search(rf"^{what}:\s+(\d+) kB", path.read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def forget_peak() -> None:
    """Let this process's VmHWM begin again with what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")
