"""A threshold for every class, by the precision of its answers; a document may get no class."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import UNSURE, Decision, log_odds
from textnb.bayes.forms import Floats
from textnb.bayes.label_thresholds import (
    cheapest_threshold,
    micro_f1_thresholds,
    steady_threshold,
)
from textnb.errors import ParameterError
from textnb.evaluation.binomial import lower_bound, trials_needed
from textnb.evaluation.decisions import Goal, threshold_above
from textnb.evaluation.held_out import UNKNOWN, HeldOut, check_held_out
from textnb.evaluation.novelty import evidence_of
from textnb.runtime.caller import warn_caller

# In the search for a precision, each prefix is this many times as long as the one before.
_GROWTH = 1.1
_LOWEST = -1e300


def choose_class_thresholds(
    held: HeldOut,
    *,
    min_precision: float | None = None,
    confidence: float = 0.95,
    calibration: Calibration | None = None,
    by: Literal["f1", "micro-f1"] | None = None,
    costs: tuple[float, float] | None = None,
    method: Literal["empirical", "theoretical"] | None = None,
    at_least: int = 0,
    at_most: int | None = None,
) -> Decision:
    """Choose a threshold for each class, so that its answers have a precision with confidence.

    Of lists of labels: a threshold for each label, by precision, by F1, or by costs.

    Parameters
    ----------
    held : HeldOut
        Not calibrated. For a document whose label is none of the model's classes, every answer is
        wrong.
    min_precision : float, optional
        For each class: the least share of the documents with this answer that have it as label.
    confidence : float
        With which the precision of each class holds.
    calibration : Calibration, optional
        The model's, if it has one: ``model.calibration_``. Thresholds of labels are on scores that
        are not calibrated, and only the method "theoretical" asks for it.
    by : {"f1", "micro-f1"}, optional
        Of lists of labels, instead of a precision: the thresholds with which each label has its
        best F1, for the mean of these (macro-F1), or those that have the best F1 of all pairs of a
        document and a label together.
    costs : (float, float), optional
        Of lists of labels, instead: what a label costs that is predicted wrongly, and one that is
        missed.
    method : {"empirical", "theoretical"}, optional
        With ``costs``: the thresholds of least cost on these documents (the default), or those that
        are best where probabilities are right.
    at_least, at_most : int
        Of lists of labels: how many labels each document gets; see `Decision`.

    Returns
    -------
    Decision
        A class whose precision can't be shown has the threshold inf and is never the answer.

    Raises
    ------
    ParameterError
        If a value is out of its range, there is one class, or ``by``, ``costs``, ``method``,
        ``at_least`` or ``at_most`` are given where documents have one label.

    Notes
    -----
    A warning names the classes that are never the answer.

    Of lists of labels, each label's documents are ordered by its score, and the guarantee is for
    each label by itself; ``at_least`` gives labels that do not pass their thresholds, and which
    have no guarantee.

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
    goal = Goal(min_precision=min_precision, confidence=confidence, by=by, costs=costs,
                method=method, at_least=at_least, at_most=at_most)
    if isinstance(held, HeldOut) and held.link == "sigmoid":
        goal.check_for_labels()
        return _choose_for_labels(held, goal, calibration)
    check_held_out(held)
    labels = held.classes.tolist()
    goal.check_for_classes(labels)
    assert min_precision is not None
    held = held.calibrated(calibration)
    odds = log_odds(held.scores)
    entries = [lowest_threshold_of_precision(
        label, odds[:, k], held.actual == k, min_precision, confidence)
        for k, label in enumerate(labels)]
    decision = Decision(_thresholds(entries, min_precision, "classes are never given"))
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


def _thresholds(
    entries: list[dict[str, Any]], least: float, what: str
) -> dict[Any, float]:
    """The threshold of each class: inf for those without one, which a warning names."""
    never = [entry["label"] for entry in entries if entry["threshold"] is None]
    if never:
        more = f" and {len(never) - 10:,} more" if len(never) > 10 else ""
        warn_caller(f"these {what}, as a precision of {least:g} can't be shown: "
                    f"{', '.join(map(repr, never[:10]))}{more}")
    return {entry["label"]: math.inf if entry["threshold"] is None else entry["threshold"]
            for entry in entries}


def _choose_for_labels(held: HeldOut, goal: Goal, calibration: Calibration | None) -> Decision:
    """Choose a threshold for each label, on scores that are not calibrated."""
    request: dict[str, Any]
    costs = None if goal.costs is None else (float(goal.costs[0]), float(goal.costs[1]))
    if goal.min_precision is not None:
        entries = _of_precision(held, goal.min_precision, goal.confidence)
        thresholds = _thresholds(entries, goal.min_precision, "labels are never predicted")
        request = {"min_precision": goal.min_precision, "confidence": goal.confidence,
                   "labels": entries}
    else:
        request = {"by": goal.by} if costs is None else {
            "costs": list(costs), "rule": goal.method or "empirical"}
        if costs is None:
            chosen = (micro_f1_thresholds(held.scores, held.actual) if goal.by == "micro-f1"
                      else _each(held, steady_threshold))
        else:
            chosen = (_theoretical(held, costs, calibration) if goal.method == "theoretical"
                      else _each(held, lambda scores, has: cheapest_threshold(scores, has, *costs)))
        thresholds = dict(zip(held.classes.tolist(), chosen.tolist(), strict=True))
    decision = Decision(thresholds, at_least=goal.at_least, at_most=goal.at_most)
    said = held.chosen(decision)
    measured = {**held.measure(decision), "documents": len(held), "unknown_labels": held.unknown,
                "predicted": int(said.sum()), "correct": int((said & held.actual).sum()),
                "actual": int(held.actual.sum())}
    if costs is not None:
        measured["cost"] = (costs[0] * (measured["predicted"] - measured["correct"])
                            + costs[1] * (measured["actual"] - measured["correct"]))
    return replace(decision, evidence={**request, **measured, "scored": held.method})


def _each(held: HeldOut, choose: Any) -> Floats:
    return np.array([choose(held.scores[:, k], held.actual[:, k])
                     for k in range(len(held.classes))])


def _theoretical(
    held: HeldOut, costs: tuple[float, float], calibration: Calibration | None
) -> Floats:
    """Where P(label) · cost of a missed one is that of the rest and a false one."""
    odds = math.log(costs[0] / costs[1])
    if calibration is None:
        return np.full(len(held.classes), odds)
    if len(calibration.sigmoids) != len(held.classes):
        raise ParameterError("the calibration is not of these labels: pass model.calibration_")
    slopes, shifts = np.array(calibration.sigmoids).T
    thresholds: Floats = (odds - shifts) / slopes
    return thresholds


def _of_precision(held: HeldOut, least: float, confidence: float) -> list[dict[str, Any]]:
    entries = []
    for k, label in enumerate(held.classes.tolist()):
        scores: Floats = held.scores[:, k]
        # Most documents have no chance of the label, and a search among all would cost confidence.
        # How many are searched must not depend on which of them have the label.
        number = max(2 * int((scores > 0).sum()), trials_needed(1.0 - least, confidence))
        floor = max(float(np.sort(scores)[-min(number, len(scores))]), _LOWEST)
        entries.append(lowest_threshold_of_precision(
            label, scores, held.actual[:, k], least, confidence, floor))
    return entries


def lowest_threshold_of_precision(
    label: Any, odds: Floats, right: NDArray[np.bool_], least: float, confidence: float,
    floor: float = 0.0,
) -> dict[str, Any]:
    """Find the lowest threshold at which the precision of a class can be shown.

    Parameters
    ----------
    label : label
    odds : float64 (n_documents,)
    right : bool (n_documents,)
        Which documents have the label.
    least : float
        The precision.
    confidence : float
    floor : float
        No threshold is below this.

    Returns
    -------
    dict
        ``label``, ``threshold`` (None if it can't be shown), ``answered``, ``correct``,
        ``precision_bound``, ``candidates``, ``starts``.
    """
    own = odds >= floor
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
                entry |= {"threshold": max(floor, threshold_above(left_out, scores)), "answered": n,
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
