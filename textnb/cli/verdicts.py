"""Verdicts as exit codes, lines, headers and JSON. It imports the standard library alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from textnb.errors import ParameterError
from textnb.filter.verdict import Judging, Verdict, since_fit_words

STATUS = "X-Textnb-Status"
# What comes before the name of a header of a verdict that the sender has forged.
_OTHER_NAME = b"X-Original-"
# A message takes milliseconds, a hostile one seconds. An engine that could not start all its
# threads may wait for them without end.
TIMEOUT_SECONDS, LONGEST_SECONDS = 60.0, 86_400.0
# The verbs that choose what may be stale.
_CHOOSING = {"calibration": "calibrate", "decision": "threshold"}
CODES = {"spam": 0, "ham": 1, "unsure": 2}


def status_line(message: bytes, verdict: Verdict) -> tuple[int, bytes]:
    """The verdict as a header, and its place in the message: before all other headers.

    Mail systems put the headers that they add first, after an mbox's "From " line; a header of this
    name that the sender wrote stands below them.
    """
    first, found, _ = message.partition(b"\n")
    ending = b"\r\n" if found and first.endswith(b"\r") else b"\n"
    line = f"{STATUS}: {verdict.header}"
    at = len(first) + 1 if found and message.startswith(b"From ") else 0
    # A continuation line before any header would continue this one.
    while message[at:at + 1] in (b" ", b"\t") and (end := message.find(b"\n", at)) >= 0:
        at = end + 1
    return at, line.encode("ascii") + ending


def disarming(message: bytes | bytearray) -> list[tuple[int, bytes]]:
    """What to insert into a message without a verdict, so that it has no header of one.

    A sender may have forged a header of the verdict's name. The texts give such headers another
    name. All bytes of the message stay.

    Returns
    -------
    insertions : list of (int, bytes)
        Places in the message, in order, and texts.
    """
    end = re.search(rb"\n\r?\n|\r\r", message)
    return [(found.start(1), _OTHER_NAME) for found in re.finditer(
        rb"(?:^|[\r\n])(" + STATUS.encode() + rb"[ \t]*:)",
        memoryview(message)[:end.end() if end else len(message)], re.I)]


def verdict_as_dict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as an object of JSON."""
    return {"status": verdict.status, "log_odds": verdict.log_odds, "measure": verdict.measure,
            "probability": verdict.probability, "calibrated": verdict.calibrated,
            "reason": verdict.reason, "errors": list(verdict.errors),
            "since_fit": verdict.since_fit}


def notes_on(judging: Judging, reasons: Iterable[str]) -> list[str]:
    """What to note beside verdicts: why they are unsure, and what is stale in the model."""
    lines = [f"unsure, as {reason}" for reason in reasons if reason]
    for part, reason in judging.stale.items():
        # A decision that cutoffs take the place of has no part in the verdict.
        if part != "decision" or judging.cutoffs is None:
            from textnb.cli.evidence import stale_line

            lines.append(stale_line(part, _CHOOSING[part], reason))
    if judging.since_fit:
        lines.append(since_fit_words(judging.since_fit))
    return [f"note: {line}" for line in lines]


def log_odds_of(spam: float | None, ham: float | None) -> tuple[float, float] | None:
    """Cutoffs as log-odds: ham up to the first, spam from the second on; None without cutoffs.

    Parameters
    ----------
    spam, ham : float or None
        The probabilities of ``--spam-cutoff`` and ``--ham-cutoff``.

    Raises
    ------
    ParameterError
        If they are no probabilities, or the wrong way round.
    """
    if spam is None:
        if ham is None:
            return None
        raise ParameterError("--ham-cutoff goes with --spam-cutoff: the two take the place of the "
                             "model's decision")
    high, low = spam, spam if ham is None else ham
    for name, value in (("--spam-cutoff", high), ("--ham-cutoff", low)):
        if not 0.0 < value < 1.0:
            raise ParameterError.out_of_range(name, "a probability between 0 and 1", value)
    if low > high:
        raise ParameterError(f"--ham-cutoff {low} is above --spam-cutoff {high}")
    return math.log(low / (1.0 - low)), math.log(high / (1.0 - high))
