"""A threshold on log-odds, chosen on documents that the model has not learned.

One class is set against the rest, by a rate of errors that is not to be exceeded or by what errors
cost. The answer is a `Decision`, with the evidence for it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import UNSURE, Decision
from textnb.bayes.forms import Floats
from textnb.errors import DataError, ParameterError
from textnb.evaluation.against_rest import AgainstRest, against_rest
from textnb.evaluation.binomial import (
    check_share,
    errors_allowed,
    lower_bound,
    trials_needed,
    upper_bound,
)
from textnb.evaluation.held_out import HeldOut, check_held_out
from textnb.evaluation.novelty import evidence_of

# How far a threshold stands above the score that it leaves out: beyond rounding, and no more.
_CLEARANCE = 1e-6


def choose_threshold(
    held: HeldOut,
    positive: Any,
    *,
    max_false_positive_rate: float | None = None,
    max_false_negative_rate: float | None = None,
    confidence: float = 0.95,
    costs: tuple[float, float] | None = None,
    method: Literal["empirical", "theoretical"] | None = None,
    calibration: Calibration | None = None,
) -> Decision:
    """When to answer ``positive``: a threshold on its log-odds, by a guarantee or by costs.

    Parameters
    ----------
    held : HeldOut
        A label that is none of the model's classes
        is not ``positive``, and counts as negative.
    positive : label
    max_false_positive_rate : float, optional
        Of the documents that are not ``positive``, at most so large a share may be answered as it,
        with the confidence that is asked for. The lowest threshold that keeps this is chosen, but
        of two classes none below 0, where the other is more probable.
    max_false_negative_rate : float, optional
        With ``max_false_positive_rate``: of the ``positive`` documents, at most so large a share
        may be answered as another class; the threshold may then be below 0. Where both can't be
        kept by one cut, what lies between is answered "unsure".
    confidence : float
        Of each of the two guarantees; both hold together with at least ``2 confidence - 1``.
    costs : (float, float), optional
        Instead of a guarantee: what a false positive and a false negative cost.
    method : {"empirical", "theoretical"}, optional
        With ``costs``: the threshold of least cost on these documents (the default; of several
        the highest), or log(cost of a false positive / cost of a false negative), which is right
        where probabilities are [3]_.
    calibration : Calibration, optional
        The model's, if it has one and the scores are not calibrated with it yet:
        ``model.calibration_``.

    Returns
    -------
    Decision
        For `TextClassifier.set_decision`.

    Raises
    ------
    ParameterError
        If ``positive`` is no class, or not exactly one of a guarantee and costs is asked for.
    DataError
        If there are too few documents to show the rate; the message says how many it takes.

    Notes
    -----
    The threshold is chosen on the documents that vouch for it, and yet exact. How many errors k
    are allowed depends on the number n of negatives alone: the most whose upper bound by Clopper
    and Pearson [1]_ is within the rate. The threshold then stands just above the (k+1)-th largest
    log-odds of a negative. For independent documents of one distribution the share of negatives
    above that order statistic is distributed as Beta(k + 1, n - k), whatever the distribution
    (Wilks [2]_), and exceeds the rate with probability P(Binomial(n, rate) <= k) <= 1 - confidence.
    Equal scores are never split, which only lowers the share. The guarantee is about documents
    like these and the model that scored them: leave-one-out scores come from models that lack
    one document each, folds from models that lack many.

    With two classes ``positive`` is answered where its log-odds reach the threshold, the other
    class where they do not. With more, ``positive`` must also be the most probable class, and else
    the most probable of the others is the answer. In the presence of ``max_false_negative_rate``
    another class must reach a threshold of its own log-odds, the same for all of them; ``positive``
    may then be the answer where a more probable class does not reach its own, and the guarantee
    counts that.

    References
    ----------
    .. [1] C. J. Clopper, E. S. Pearson (1934). The use of confidence or fiducial limits illustrated
       in the case of the binomial. Biometrika 26, 404-413.
    .. [2] S. S. Wilks (1941). Determination of sample sizes for setting tolerance limits. Annals of
       Mathematical Statistics 12, 91-96.
    .. [3] C. Elkan (2001). The foundations of cost-sensitive learning. IJCAI, eq. 2.

    Examples
    --------
    >>> import polars as pl
    >>> import textnb
    >>> train = pl.DataFrame({"text": ["win cash", "see you"], "label": ["spam", "ham"]})
    >>> test = pl.DataFrame({"text": ["see you"] * 59 + ["win cash"],
    ...                      "label": ["ham"] * 59 + ["spam"]})
    >>> model = textnb.TextClassifier().fit(train)
    >>> held = textnb.held_out(model, test)
    >>> decision = textnb.choose_threshold(held, "spam", max_false_positive_rate=0.05,
    ...                                    calibration=model.calibration_)
    >>> decision.evidence["false_positives"], decision.evidence["true_positives"]
    (0, 1)
    >>> model.set_decision(decision).predict(test)["decision"].value_counts(sort=True).rows()
    [('ham', 59), ('spam', 1)]
    """
    check_held_out(held)
    check_share("confidence", confidence)
    held = held.calibrated(calibration)
    sides = against_rest(held, positive)
    asked: dict[str, Any]
    if costs is not None:
        if max_false_positive_rate is not None or max_false_negative_rate is not None:
            raise ParameterError("costs and a rate of errors exclude each other: give one")
        costs, by = _checked_costs(costs), _checked_method(method)
        least = math.log(costs[0] / costs[1]) if by == "theoretical" else _cheapest(sides, *costs)
        thresholds = _thresholds(sides, least, -np.inf)
        asked = {"costs": list(costs), "rule": by}
    else:
        if method is not None:
            raise ParameterError(f"method={method!r} goes with costs, and none are given")
        if max_false_positive_rate is None:
            raise ParameterError("nothing is asked for: give max_false_positive_rate (and "
                                 "max_false_negative_rate for an unsure band), or costs")
        asked, thresholds = _guaranteed(
            sides, max_false_positive_rate, max_false_negative_rate, confidence)
    decision = Decision(thresholds, positive)
    seen = _seen(sides, decision, costs, confidence)
    return replace(decision, evidence={**asked, **seen, "scored": held.method,
                                       "calibrated": held.calibration is not None,
                                       **evidence_of(held.novelty)})


def _guaranteed(
    sides: AgainstRest, false_positives: float, false_negatives: float | None, confidence: float
) -> tuple[dict[str, Any], dict[Any, float]]:
    check_share("max_false_positive_rate", false_positives)
    name = sides.labels[sides.k]
    # Where others have thresholds too, ``positive`` may be the answer without being most probable.
    called = sides.called if false_negatives is None else sides.odds[:, sides.k]
    least, asked = _limit(called, ~sides.positive, false_positives, confidence,
                          f"documents that are not {name!r}", "false_positive")
    least_against = -np.inf
    if false_negatives is None:
        if len(sides.labels) == 2:
            # Where the two are far apart, a bound alone would call probable ham spam.
            least = max(least, 0.0)
    else:
        check_share("max_false_negative_rate", false_negatives)
        least_against, more = _limit(sides.against, sides.positive, false_negatives, confidence,
                                     f"documents of {name!r}", "false_negative")
        asked |= more
    asked |= {"confidence": confidence, "rule": "order statistic"}
    return asked, _thresholds(sides, least, least_against)


def _limit(
    scores: Floats, wrong: NDArray[np.bool_], rate: float, confidence: float, what: str, error: str
) -> tuple[float, dict[str, Any]]:
    """The lowest threshold which so few of the documents that would be errors can be shown to
    reach, and what it was asked for."""
    n = int(wrong.sum())
    allowed = errors_allowed(n, rate, confidence)
    if allowed < 0:
        needed = trials_needed(rate, confidence)
        raise DataError(
            f"to show at {confidence:g} confidence that at most {rate:g} of the {what} are "
            f"answered wrongly takes {needed:,} of them, if none is; there are {n:,}, so "
            f"{needed - n:,} more are needed. Score more, or allow a higher rate")
    excluded = float(np.sort(scores[wrong])[n - 1 - allowed])
    if excluded == np.inf:
        raise DataError(f"more than {allowed:,} of {n:,} {what} are certain to be answered wrongly "
                        "(log-odds inf, as l = 0 gives them): no threshold leaves them out")
    return above(excluded, scores), {
        f"max_{error}_rate": rate, f"{error}s_allowed": allowed,
        f"{error}_rate_bound": upper_bound(allowed, n, confidence)}


def above(excluded: float, scores: Floats) -> float:
    """A threshold that leaves out a score, and those below it, and none of the higher ones."""
    higher = scores[scores > excluded]
    following = float(higher.min()) if len(higher) else np.inf
    if excluded == -np.inf:
        return following - _CLEARANCE * max(1.0, abs(following)) if following < np.inf else 0.0
    step = min(_CLEARANCE * max(1.0, abs(excluded)), (following - excluded) / 2)
    return excluded + step if excluded < excluded + step else following


def _thresholds(sides: AgainstRest, least: float, least_against: float) -> dict[Any, float]:
    """For two classes the other is given where this one is not, unless there is a band."""
    if len(sides.labels) == 2:
        beyond = -np.inf if least == np.inf else float(np.nextafter(-least, np.inf))
        least_against = max(least_against, beyond)
    return {label: float(least if j == sides.k else least_against)
            for j, label in enumerate(sides.labels)}


def _checked_costs(costs: Any) -> tuple[float, float]:
    pair = list(costs) if isinstance(costs, (tuple, list)) else []
    if len(pair) != 2 or not all(
            isinstance(cost, (int, float)) and not isinstance(cost, bool) and 0 < cost < math.inf
            for cost in pair):
        raise ParameterError.out_of_range(
            "costs", "two numbers above 0, of a false positive and of a false negative", costs)
    return float(pair[0]), float(pair[1])


def _checked_method(method: str | None) -> str:
    if method not in (None, "empirical", "theoretical"):
        raise ParameterError.unknown_choice("method", method, ("empirical", "theoretical"))
    return method or "empirical"


def _cheapest(sides: AgainstRest, false_positive: float, false_negative: float) -> float:
    """The threshold of least cost on these documents, of several the highest."""
    sides.check_both()
    called = sides.called
    # Candidates leave out all up to one of these: the last leaves out every document.
    distinct, rank = np.unique(np.append(called, -np.inf), return_inverse=True)
    wrong, missed = (np.bincount(rank[:-1][rows], minlength=len(distinct))
                     for rows in (~sides.positive, sides.positive))
    cost = (false_positive * (wrong.sum() - wrong.cumsum()) + false_negative * missed.cumsum())
    best = len(cost) - 1 - int(cost[::-1].argmin())
    return np.inf if distinct[best] == np.inf else above(float(distinct[best]), called)


def _seen(
    sides: AgainstRest, decision: Decision, costs: tuple[float, float] | None, confidence: float
) -> dict[str, Any]:
    """What the decision does on the documents that it was chosen on."""
    # A row that no class can have produced is unsure, whatever the thresholds.
    answers = np.where(sides.impossible, UNSURE, decision.decide(sides.odds, sides.labels))
    called, left = answers == sides.k, (answers != sides.k) & (answers != UNSURE)
    positives, negatives = int(sides.positive.sum()), int((~sides.positive).sum())
    caught = int((called & sides.positive).sum())
    wrong, missed = int((called & ~sides.positive).sum()), int((left & sides.positive).sum())
    # Two sides, each with half of what may fail.
    both = (1.0 + confidence) / 2
    seen = {
        "documents": len(answers), "positives": positives, "negatives": negatives,
        "unknown_labels": sides.unknown, "unsure": int((answers == UNSURE).sum()),
        "coverage": float((answers != UNSURE).mean()),
        "false_positives": wrong, "true_positives": caught, "false_negatives": missed,
        "share_caught": caught / positives if positives else None,
        "share_caught_interval": [lower_bound(caught, positives, both),
                                  upper_bound(caught, positives, both)] if positives else None,
        "interval_confidence": confidence}
    if costs is not None:
        seen["cost"] = costs[0] * wrong + costs[1] * missed
    return seen
