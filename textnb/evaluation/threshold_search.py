"""Searches for the lowest threshold of a class that keeps a rate of errors, or a precision.

A search for a precision tests ever longer prefixes of the documents, the highest scores first, and
stops at the first that fails, so its tests need not share the confidence. Searches that begin with
prefixes of different lengths share it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.errors import DataError, quantity
from textnb.evaluation.binomial import errors_allowed, lower_bound, trials_needed, upper_bound

# The relative distance of a threshold from the score below it: larger than rounding errors.
_RELATIVE_DISTANCE = 1e-6
# In the search for a precision, each prefix is this many times as long as the one before.
_GROWTH = 1.1
# To say how many rows would show a precision, these multiples of the number of rows are tried.
_MULTIPLES = (2, 3, 4, 6, 8, 12, 16, 24, 32)


def lowest_threshold_of_rate(
    scores: Floats, wrong: NDArray[np.bool_], rate: float, confidence: float, noun: str, error: str
) -> tuple[float, dict[str, Any]]:
    """Find the lowest threshold that keeps a rate of errors, and the evidence for it.

    ``wrong`` is which documents are errors if their score reaches the threshold; ``noun`` is what
    messages call these documents. The evidence calls the errors ``error``: "false_positive" or
    "false_negative".
    """
    n = int(wrong.sum())
    n_allowed = errors_allowed(n, rate, confidence)
    if n_allowed < 0:
        n_needed = trials_needed(rate, confidence)
        raise DataError(
            f"to show at {confidence:g} confidence that at most {rate:g} of the {noun} are "
            f"answered wrongly takes {n_needed:,} of them, if none is; there are {n:,}, so "
            f"{n_needed - n:,} more are needed. Score more, or allow a higher rate")
    excluded = float(np.sort(scores[wrong])[n - 1 - n_allowed])
    if excluded == np.inf:
        raise DataError(f"more than {n_allowed:,} of {n:,} {noun} are certain to be answered "
                        "wrongly (log-odds inf, as l = 0 gives them): no threshold leaves them out")
    return threshold_above(excluded, scores), {
        f"max_{error}_rate": rate, f"{error}s_allowed": n_allowed,
        f"{error}_rate_bound": upper_bound(n_allowed, n, confidence)}


def threshold_above(excluded: float, scores: Floats) -> float:
    """A threshold that every score above ``excluded`` reaches, and ``excluded`` does not."""
    higher = scores[scores > excluded]
    next_score = float(higher.min()) if len(higher) else np.inf
    if excluded == -np.inf:
        distance = _RELATIVE_DISTANCE * max(1.0, abs(next_score))
        return next_score - distance if next_score < np.inf else 0.0
    distance = min(_RELATIVE_DISTANCE * max(1.0, abs(excluded)), (next_score - excluded) / 2)
    # If the distance is lost in rounding, the next score is the threshold.
    return excluded + distance if excluded < excluded + distance else next_score


def lowest_threshold_of_precision(
    label: Any, scores: Floats, right: NDArray[np.bool_], min_precision: float, confidence: float,
    floor: float = 0.0,
) -> dict[str, Any]:
    """Find the lowest threshold, from ``floor`` on, at which the precision of a class can be shown.

    ``right`` is which documents have the label, and ``scores`` are the log-odds of the class, or
    the scores of the label: (n_documents,).

    Returns
    -------
    dict
        ``label``, ``threshold`` (None if the precision can't be shown), ``answered`` (documents
        that reach it), ``correct`` (documents of the label among them), ``precision_bound``,
        ``candidates`` (documents that reach ``floor``) and ``starts`` (for each search, the length
        of its first prefix: see the notes of `textnb.choose_class_thresholds`).
    """
    is_candidate = scores >= floor
    order = np.argsort(-scores[is_candidate], kind="stable")
    scores, hits = scores[is_candidate][order], right[is_candidate][order].cumsum()
    starts, test_confidence = _start_lengths(len(scores), min_precision, confidence)
    entry = {"label": label, "threshold": None, "answered": 0, "correct": 0,
             "precision_bound": None, "candidates": len(scores), "starts": starts}
    for start in starts:
        length = start
        while True:
            # No threshold separates equal scores, so a prefix holds all or none of them.
            n = int(np.searchsorted(-scores, -scores[length - 1], side="right"))
            bound = lower_bound(int(hits[n - 1]), n, test_confidence)
            if bound < min_precision:
                break
            if n > int(entry["answered"]):
                excluded = float(scores[n]) if n < len(scores) else -np.inf
                entry |= {"threshold": max(floor, threshold_above(excluded, scores)), "answered": n,
                          "correct": int(hits[n - 1]), "precision_bound": bound}
            if n == len(scores):
                break
            length = min(len(scores), max(n + 1, math.ceil(length * _GROWTH)))
    return entry


def find_alternatives(
    label: Any, scores: Floats, right: NDArray[np.bool_], min_precision: float, confidence: float,
    floor: float = 0.0,
) -> dict[str, Any]:
    """Find which precision can be shown if the minimum can't, and how many rows would show that.

    Parameters are those of `lowest_threshold_of_precision`.

    Returns
    -------
    dict
        ``precision``, the highest whole percentage that can be shown, None below 50 %;
        ``answered`` and ``correct``, as in `lowest_threshold_of_precision`; ``times``, how many
        times as many rows like these would show ``min_precision``, None if no number would.
    """
    shown: dict[str, Any] = {"precision": None, "answered": 0, "correct": 0, "times": None}
    for percent in range(math.ceil(100 * min_precision) - 1, 49, -1):
        entry = lowest_threshold_of_precision(
            label, scores, right, percent / 100, confidence, floor)
        if entry["threshold"] is not None:
            shown |= {"precision": percent / 100, "answered": entry["answered"],
                      "correct": entry["correct"]}
            break
    is_candidate = scores >= floor
    for times in _MULTIPLES if is_candidate.any() else ():
        entry = lowest_threshold_of_precision(
            label, np.repeat(scores[is_candidate], times), np.repeat(right[is_candidate], times),
            min_precision, confidence, floor)
        if entry["threshold"] is not None:
            shown["times"] = times
            break
    return shown


def describe_alternatives(shown: Mapping[str, Any], min_precision: float) -> str:
    """The result of `find_alternatives` in words, which follow "the precision can't be shown; ".

    Examples
    --------
    >>> describe_alternatives(
    ...     {"precision": 0.96, "answered": 500, "correct": 494, "times": 2}, 0.97)
    '0.96 can be (494 of its 500 answers are right); 0.97 would take 2 times as many rows'
    """
    can_be_shown = ("no lower one from 0.5 on can be either" if shown["precision"] is None
                    else f"{shown['precision']:g} can be ({shown['correct']:,} of its "
                         f"{quantity(shown['answered'], 'answer', 'is', 'are')} right)")
    would_take = ("no number of rows like these would do" if shown["times"] is None
                  else f"{min_precision:g} would take {shown['times']} times as many rows")
    return f"{can_be_shown}; {would_take}"


def _start_lengths(n: int, min_precision: float, confidence: float) -> tuple[list[int], float]:
    """The lengths of the first prefixes of searches, and the confidence of each of their tests.

    >>> _start_lengths(300, 0.95, 0.95)
    ([80, 160], 0.9833333333333333)
    """
    min_length = trials_needed(1.0 - min_precision, confidence)
    if n < min_length:
        return [], confidence
    n_searches = 1 + int(math.log2(n / min_length))
    test_confidence = 1.0 - (1.0 - confidence) / n_searches
    first_length = trials_needed(1.0 - min_precision, test_confidence)
    lengths = [first_length * 2**j for j in range(n_searches)]
    return [length for length in lengths if length <= n], test_confidence
