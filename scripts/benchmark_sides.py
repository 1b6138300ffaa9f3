"""What is compared: the sides, the tasks of each, and how a process takes its own measure."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

IN_MEMORY = ("csr", "csr 1,2", "fit", "predict")
WHOLE = ("job", "job 1,2", "first", "first, empty cache")
TASKS = (*IN_MEMORY, "job", "job 1,2", "message", "first", "first, empty cache")
# What is measured where a corpus is so large that one run takes minutes.
LARGE = ("csr", "fit", "predict", "job")
BASE = "scikit-learn"
PYTHON = (*IN_MEMORY, "job", "job 1,2", "message", "first")
COMMAND = ("fit", "predict", "job", "job 1,2", "message")


@dataclass(frozen=True)
class Side:
    name: str
    tasks: tuple[str, ...]
    same_tokens: bool = False   # as the base has them: then all that is found must be equal too
    two_classes: bool = False
    kernel: bool | None = None  # must compiled loops run, or must they not
    random: bool = False        # threads or chance decide: the median accuracy is shown


SIDES = (
    Side(BASE, PYTHON, same_tokens=True),
    Side("scikit-learn, hashing", PYTHON),
    Side("textnb[fast]", (*PYTHON, "first, empty cache"), same_tokens=True, kernel=True),
    Side("textnb", PYTHON, same_tokens=True, kernel=False),
    Side("textnb, NBLogisticRegression", ("job 1,2",), two_classes=True),
    Side("fastText", COMMAND, random=True),
    Side("Vowpal Wabbit", COMMAND),
    Side("bogofilter", ("job",), two_classes=True),
)


class Clock:
    """Seconds, and the most memory that the process had taken when it stopped, in MiB."""

    def __enter__(self) -> Clock:
        self._started = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.perf_counter() - self._started
        self.peak_mib = memory("VmHWM")


def memory(what: str, process: int | str = "self") -> float:
    """MiB: VmHWM, the most that was ever resident, or VmRSS, what is now. 0 of an ended process."""
    # Of this program alone: what getrusage tells begins with the one that started it.
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(rf"^{what}:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0
