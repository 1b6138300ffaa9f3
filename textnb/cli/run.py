"""The verb run: a whole job from its file."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from textnb.cli.console import note, out, progress_line
from textnb.cli.inputs import Quiet
from textnb.cli.options import argument, option, verb


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class JobFile:
    """Job."""

    file: str = argument("The job: a TOML file.")
    setting: list[str] | None = option(
        "Set a key of the job, such as model.l=0.1 or input.train=mail.mbox; repeat it for "
        "several.", "--set", metavar="KEY=VALUE")
    check: bool = option(
        "Check the job's file, its output and its inputs' columns; run nothing.", default=False)


@verb
def run(job_file: JobFile, output: Quiet) -> None:
    """Run a job: train, validate, calibrate, decide, test, report, predict, export in one go."""
    from textnb.workflow.job import read_job

    job = read_job(job_file.file, job_file.setting or ())
    if job_file.check:
        from textnb.workflow.split import check_job

        check_job(job)
        note(f"{job_file.file} is sound; it would write {job.output}")
        return
    from textnb.workflow.run import run_job

    if output.quiet:
        run_job(job)
    else:
        with _StepLines() as lines:
            run_job(job, lines)
    out(job.output)


class _StepLines:
    """Writes steps and their results as lines, and shows the progress of the current step.

    `run_job` calls `step` and `result`: this is an `Observer` of `textnb.workflow.run`.
    """

    def __init__(self) -> None:
        self._progress = ExitStack()
        # The current step, its start, and whether a line reports it; True as there is no step yet.
        self._name, self._start, self._has_line = "", 0.0, True
        self._held_out = False

    def __enter__(self) -> _StepLines:
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.close()
        if error[0] is None:
            self._report_end()

    def step(self, name: str) -> Callable[[int], None]:
        """Begin a step; return the function that takes the numbers of rows that it has read."""
        self._progress.close()
        self._report_end()
        self._name, self._start, self._has_line = name, time.monotonic(), False
        line = self._progress.enter_context(progress_line(name))
        return (lambda rows: None) if line is None else line.advance

    def result(self, result: Any) -> None:
        """Write the result of the current step; each step has a type of its own."""
        from textnb.cli.evidence import note_unverified
        from textnb.cli.summary import lines_of

        for line in lines_of(result):
            note(f"{self._name}: {line}")
            self._has_line = True
        # Rows that the job itself held out are surely new to the model, and need no note. The step
        # that reads rows says so, before the one that measures the model on them.
        self._held_out = getattr(result, "held_out", self._held_out)
        if not self._held_out:
            note_unverified(getattr(getattr(result, "result", None), "novelty", None), quiet=False)

    def _report_end(self) -> None:
        if not self._has_line:
            note(f"{self._name}: done in {time.monotonic() - self._start:.1f} s")
            self._has_line = True
