"""A threshold for every class, by the precision of its answers; a document may get no class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import UNSURE, Decision, log_odds
from textnb.bayes.forms import Floats
from textnb.evaluation.against_rest import check_two_classes
from textnb.evaluation.binomial import check_share, lower_bound, trials_needed
from textnb.evaluation.decisions import threshold_above
from textnb.evaluation.held_out import UNKNOWN, HeldOut, check_held_out
from textnb.evaluation.novelty import evidence_of
from textnb.runtime.caller import warn_caller

# Each prefix is this many times as long as the one before.
_GROWTH = 1.1


def choose_class_thresholds(
    held: HeldOut,
    *,
    min_precision: float,
    confidence: float = 0.95,
    calibration: Calibration | None = None,
) -> Decision:
    """Choose a threshold for each class, so that its answers have a precision with confidence.

    Parameters
    ----------
    held : HeldOut
        Not calibrated. For a document whose label is none of the model's classes, every answer is
        wrong.
    min_precision : float
        For each class: the least share of the documents with this answer that have it as label.
    confidence : float
        With which the precision of each class holds.
    calibration : Calibration, optional
        The model's, if it has one: ``model.calibration_``.

    Returns
    -------
    Decision
        A class whose precision can't be shown has the threshold inf and is never the answer.

    Raises
    ------
    ParameterError
        If a value is out of its range, or there is one class.

    Notes
    -----
    A warning names the classes that are never the answer.

    A class is the answer only where it is more probable than all others together, so its answers
    depend on its own threshold alone. The documents for which it is are ordered by log-odds, and
    prefixes of this list are tested from short to long, until one fails: a prefix passes if Clopper
    and Pearson's lower bound on its precision [1]_ is at least ``min_precision``. Tests in an order
    that is fixed beforehand, up to the first failure, need no correction [2]_; the order here
    follows from the log-odds, which do not depend on the labels of these documents. One error in a
    short prefix would end the search, so there are several searches, each beginning with a prefix
    twice as long as the one before; they share 1 - confidence evenly [3]_. The first prefix is just
    long enough to show the precision if it holds no error. The longest prefix that passes sets the
    threshold.

    References
    ----------
    .. [1] C. J. Clopper, E. S. Pearson (1934). The use of confidence or fiducial limits illustrated
       in the case of the binomial. Biometrika 26, 404-413.
    .. [2] P. Bauer (1991). Multiple testing in clinical trials. Statistics in Medicine 10, 871-890.
    .. [3] A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan, L. Lei (2021). Learn then test:
       calibrating predictive algorithms to achieve risk control. arXiv:2110.01052, section 2.3.

    Examples
    --------
    >>> import polars as pl
    >>> import textnb
    >>> train = pl.DataFrame({"text": ["goal match", "bank rate"], "label": ["sport", "money"]})
    >>> test = pl.DataFrame({"text": ["goal"] * 30 + ["bank"] * 10,
    ...                      "label": ["sport"] * 30 + ["money"] * 5 + ["sport"] * 5})
    >>> model = textnb.TextClassifier().fit(train)
    >>> held = textnb.held_out(model, test)
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     decision = textnb.choose_class_thresholds(held, min_precision=0.9)
    >>> decision.thresholds["money"], decision.evidence["coverage"]
    (inf, 0.75)
    """
    check_held_out(held)
    check_precision_settings(held.classes.tolist(), min_precision, confidence)
    labels = held.classes.tolist()
    held = held.calibrated(calibration)
    odds = log_odds(held.scores)
    entries = [_find_threshold(label, odds[:, k], held.actual == k, min_precision, confidence)
               for k, label in enumerate(labels)]
    never = [entry["label"] for entry in entries if entry["threshold"] is None]
    if never:
        warn_caller(f"these classes are never given, as a precision of {min_precision:g} can't "
                    f"be shown: {', '.join(map(repr, never))}")
    decision = Decision({entry["label"]: math.inf if entry["threshold"] is None
                         else entry["threshold"] for entry in entries})
    answers = decision.decide(odds, labels)
    given = answers != UNSURE
    right = int((answers[given] == held.actual[given]).sum())
    evidence = {
        "min_precision": min_precision, "confidence": confidence, "documents": len(held),
        "answered": int(given.sum()), "correct": right,
        "coverage": float(given.mean()) if len(held) else None,
        "precision": right / int(given.sum()) if given.any() else None,
        "unknown_labels": int((held.actual == UNKNOWN).sum()),
        "classes": entries, "scored": held.method, "calibrated": held.calibration is not None,
        **evidence_of(held.novelty)}
    return replace(decision, evidence=evidence)


def check_precision_settings(
    classes: Sequence[Any], min_precision: Any, confidence: Any = 0.95
) -> None:
    """Check the settings of `choose_class_thresholds`, before documents are scored.

    Raises
    ------
    ParameterError
        As `choose_class_thresholds`.
    """
    check_share("min_precision", min_precision)
    check_share("confidence", confidence)
    check_two_classes(classes)


def _find_threshold(
    label: Any, odds: Floats, right: NDArray[np.bool_], least: float, confidence: float
) -> dict[str, Any]:
    """Find the lowest threshold at which the precision of a class can be shown."""
    own = odds >= 0
    order = np.argsort(-odds[own], kind="stable")
    scores, hits = odds[own][order], right[own][order].cumsum()
    starts, level = _start_lengths(len(scores), least, confidence)
    entry = {"label": label, "threshold": None, "answered": 0, "correct": 0,
             "precision_bound": None, "candidates": len(scores), "starts": starts}
    for start in starts:
        length = start
        while True:
            # No threshold separates equal scores, so a prefix holds all or none of them.
            n = int(np.searchsorted(-scores, -scores[length - 1], side="right"))
            bound = lower_bound(int(hits[n - 1]), n, level)
            if bound < least:
                break
            if n > int(entry["answered"]):
                left_out = float(scores[n]) if n < len(scores) else -np.inf
                entry |= {"threshold": max(0.0, threshold_above(left_out, scores)), "answered": n,
                          "correct": int(hits[n - 1]), "precision_bound": bound}
            if n == len(scores):
                break
            length = min(len(scores), max(n + 1, math.ceil(length * _GROWTH)))
    return entry


def _start_lengths(n: int, least: float, confidence: float) -> tuple[list[int], float]:
    """The lengths of the first prefixes, and the confidence of each of their tests.

    >>> _start_lengths(300, 0.95, 0.95)
    ([80, 160], 0.9833333333333333)
    """
    fewest = trials_needed(1.0 - least, confidence)
    if n < fewest:
        return [], confidence
    shares = 1 + int(math.log2(n / fewest))
    level = 1.0 - (1.0 - confidence) / shares
    first = trials_needed(1.0 - least, level)
    return [length for j in range(shares) if (length := first << j) <= n], level
