"""Gives one verdict, from the options of `textnb filter` to its answer; imports little."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from textnb.cli.stream import Stream
from textnb.errors import ParameterError
from textnb.filter.headers import status_line
from textnb.filter.verdict import MIN_LEARNED, Verdict

# The default timeout and the maximum. A message takes milliseconds, a hostile one seconds; but an
# engine that could not start all its threads may wait for them forever.
TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS = 60.0, 86_400.0
EXIT_CODES = {"spam": 0, "ham": 1, "unsure": 2}


def judging_settings(
    spam_class: str | None = None, spam_cutoff: float | None = None,
    ham_cutoff: float | None = None, min_learned: int = MIN_LEARNED,
) -> dict[str, Any]:
    """The arguments of `MailFilter.load`, from the options of these names.

    Raises
    ------
    ParameterError
        If the cutoffs are not probabilities, or are in the wrong order.
    """
    return {"spam": spam_class, "min_learned": min_learned,
            "cutoffs": _to_log_odds(spam_cutoff, ham_cutoff)}


def answer_one(
    stream: Stream, judge: Callable[[bytes], Verdict],
    note: Callable[[str], object], *, passthrough: bool = False, exit_zero: bool = False,
    results_format: str = "text", timeout: float | None = None,
) -> int:
    """Judge the message of a stream, answer, and return the exit code.

    Parameters
    ----------
    stream : Stream
    judge : callable
        Returns the verdict on a message.
    note : callable
        Writes a note to standard error.
    passthrough, exit_zero, results_format, timeout
        The options of these names.

    Raises
    ------
    ParameterError
        If the options can't be combined, or the timeout is out of range.
    """
    if passthrough and results_format != "text":
        raise ParameterError("--passthrough writes the message: it goes without --format")
    # A timeout of NaN is refused too, as it compares as False.
    if timeout is not None and not 0.0 <= timeout <= MAX_TIMEOUT_SECONDS:
        raise ParameterError.out_of_range(
            "--timeout", f"seconds from 0 to {MAX_TIMEOUT_SECONDS:,.0f}", timeout)
    message = stream.read_message(TIMEOUT_SECONDS if timeout is None else timeout)
    verdict = judge(message)
    for line in notes_on([verdict.reason]):
        note(line)
    if passthrough:
        # The message is written with the header inserted at this position.
        position, header = status_line(message, verdict)
        stream.answer(header, position)
    else:
        text = f"{verdict.status} {verdict.log_odds:.6f}"
        if results_format == "json":
            from textnb.workflow.results import as_json

            text = as_json(verdict_as_dict(verdict))
        stream.answer(f"{text}\n".encode("utf-8", "backslashreplace"), position=None)
    return 0 if exit_zero else EXIT_CODES[verdict.status]


def verdict_as_dict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as an object of JSON."""
    return {"status": verdict.status, "log_odds": verdict.log_odds, "measure": verdict.measure,
            "probability": verdict.probability, "calibrated": verdict.calibrated,
            "reason": verdict.reason, "errors": list(verdict.errors),
            "since_fit": verdict.since_fit}


def notes_on(reasons: Iterable[str]) -> list[str]:
    """Notes on why verdicts are unsure.

    A stale calibration or decision is not noted here, but when the model is written.
    """
    return [f"note: unsure, as {reason}" for reason in reasons if reason]


def _to_log_odds(spam: float | None, ham: float | None) -> tuple[float, float] | None:
    """The log-odds of the two cutoffs, ham's first; None without cutoffs."""
    if spam is None:
        if ham is None:
            return None
        raise ParameterError("--ham-cutoff goes with --spam-cutoff: the two take the place of the "
                             "model's decision")
    low, high = spam if ham is None else ham, spam
    for name, value in (("--spam-cutoff", high), ("--ham-cutoff", low)):
        if not 0.0 < value < 1.0:
            raise ParameterError.out_of_range(name, "a probability between 0 and 1", value)
    if low > high:
        raise ParameterError(f"--ham-cutoff {low} is above --spam-cutoff {high}")
    return math.log(low / (1.0 - low)), math.log(high / (1.0 - high))
