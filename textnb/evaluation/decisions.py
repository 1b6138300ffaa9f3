"""The choice of a threshold on log-odds, on documents that the model has not learned.

The threshold separates one class from the rest. It keeps rates of errors below a limit, or makes
the cost of errors least. The result is a `Decision`, with the evidence for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import UNSURE, Decision
from textnb.bayes.forms import Floats
from textnb.errors import DataError, Mention, ParameterError
from textnb.evaluation.binomial import (
    check_share,
    errors_allowed,
    lower_bound,
    trials_needed,
    upper_bound,
)
from textnb.evaluation.held_out import HeldOut, check_held_out
from textnb.evaluation.novelty import evidence_of
from textnb.evaluation.roc import (
    AgainstRest,
    check_positive,
    check_two_classes,
    errors_by_threshold,
)
from textnb.learning.fitted import Fitted
from textnb.learning.settings import FALSE_POSITIVES
from textnb.runtime.settings import is_number

# The relative distance of a threshold from the score below it: larger than rounding errors.
_CLEARANCE = 1e-6
# A bound that is computed and compared may differ in its last bits.
_ROUNDING = 1e-9
BY, _METHODS = ("f1", "micro-f1"), ("empirical", "theoretical")
_RATES = ("max_false_positive_rate", "max_false_negative_rate")
_OF_ONE_CLASS = "is for the threshold of one class: see choose_threshold"


@dataclass(frozen=True)
class Goal:
    """What thresholds are chosen for: a rate of errors, costs, a precision or F1.

    The attributes are parameters of `choose_threshold` and `textnb.choose_class_thresholds`. Each
    check is of the settings alone, before documents are scored, and raises ParameterError.
    """

    max_false_positive_rate: float | None = None
    max_false_negative_rate: float | None = None
    min_precision: float | None = None
    by: str | None = None
    costs: tuple[float, float] | None = None
    method: str | None = None
    confidence: float = 0.95
    at_least: int = 0
    at_most: int | None = None

    def check_for_class(self, classes: Sequence[Any], positive: Any) -> None:
        """Check that a threshold for one class can be chosen."""
        self._refuse(("min_precision", "by", "at_least", "at_most"),
                     "is for thresholds of every class: see choose_class_thresholds")
        check_share("confidence", self.confidence)
        check_positive(classes, positive)
        for name in _RATES:
            rate = getattr(self, name)
            if rate is not None and self.costs is not None:
                raise ParameterError("costs and a rate of errors exclude each other: give one")
            if rate is not None:
                check_share(name, rate)
        self._check_costs()
        if self.costs is None and self.max_false_positive_rate is None:
            raise ParameterError("nothing is asked for: give max_false_positive_rate (and "
                                 "max_false_negative_rate for an unsure band), or costs")

    def check_for_classes(self, classes: Sequence[Any]) -> None:
        """Check that thresholds by precision can be chosen for classes that exclude each other."""
        self._refuse(("by", "costs", "method", "at_least", "at_most"),
                     "is for lists of labels, and these documents have one label each")
        self._refuse(_RATES, _OF_ONE_CLASS)
        check_share("min_precision", self.min_precision)
        check_share("confidence", self.confidence)
        check_two_classes(classes)

    def check_for_labels(self) -> None:
        """Check that thresholds can be chosen where documents have lists of labels."""
        self._refuse(_RATES, _OF_ONE_CLASS)
        goals = [name for name in ("by", "min_precision", "costs")
                 if getattr(self, name) is not None]
        if len(goals) != 1:
            raise ParameterError.naming(
                "give one of {by}, {min_precision} and {costs}; got {got}",
                got=" and ".join(goals) or "none")
        check_share("confidence", self.confidence)
        self._check_costs()
        if self.min_precision is not None:
            check_share("min_precision", self.min_precision)
        elif self.by is not None and self.by not in BY:
            raise ParameterError.unknown_choice("by", self.by, BY)

    def _refuse(self, names: Sequence[str], reason: str) -> None:
        for name in names:
            if getattr(self, name) != getattr(Goal, name):
                raise ParameterError.naming("{setting} " + reason, setting=Mention(name))

    def _check_costs(self) -> None:
        if self.method is not None and self.costs is None:
            raise ParameterError(
                f"method={self.method!r} goes with costs, and none are given")
        if self.method not in (None, *_METHODS):
            raise ParameterError.unknown_choice("method", self.method, _METHODS)
        pair = (1, 1) if self.costs is None else self.costs
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(
                is_number(cost) and 0 < cost < math.inf for cost in pair):
            raise ParameterError.out_of_range(
                "costs", "two numbers above 0, of a false positive and of a false negative", pair)


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
    """Choose a threshold on the log-odds of one class, by a guarantee or by costs.

    Parameters
    ----------
    held : HeldOut
        A label that is none of the model's classes counts as negative.
    positive : label
        The class.
    max_false_positive_rate : float, optional
        The largest share of the documents of other classes that may be answered as ``positive``.
        The lowest threshold that keeps this is chosen; with two classes it is at least 0, as below
        0 the other class is more probable.
    max_false_negative_rate : float, optional
        With ``max_false_positive_rate``: the largest share of the ``positive`` documents that may
        be answered as another class; the threshold may then be below 0. Where no single threshold
        keeps both rates, there are two, and log-odds between them are answered "unsure".
    confidence : float
        Of each of the two guarantees; both hold together with at least ``2 confidence - 1``.
    costs : (float, float), optional
        Instead of a guarantee: the cost of a false positive, and of a false negative.
    method : {"empirical", "theoretical"}, optional
        With ``costs``: the threshold of least cost on these documents (the default; of several
        the highest), or log(cost of a false positive / cost of a false negative), which is the best
        one where probabilities are right [3]_.
    calibration : Calibration, optional
        The model's calibration, ``model.calibration_``, unless ``held`` is calibrated already.

    Returns
    -------
    Decision
        For `TextClassifier.set_decision`.

    Raises
    ------
    ParameterError
        If ``positive`` is no class, or neither or both of a guarantee and costs are given.
    DataError
        If there are too few documents to show the rate; the message says how many are needed.

    Notes
    -----
    The guarantee is exact, although the threshold is chosen on the same documents. The number k of
    errors that are allowed depends on the number n of negatives alone: it is the largest whose
    upper bound by Clopper and Pearson [1]_ is within the rate. The threshold is just above the
    (k+1)-th largest log-odds of a negative. For independent documents of one distribution the share
    of negatives above that order statistic is distributed as Beta(k + 1, n - k), whatever the
    distribution (Wilks [2]_), and exceeds the rate with probability P(Binomial(n, rate) <= k) <= 1
    - confidence. Equal scores are never separated, which only lowers the share. The guarantee is
    about documents like these and about the model that scored them: leave-one-out scores come from
    models that lack one document each, folds from models that lack many.

    With two classes, ``positive`` is the answer where its log-odds reach the threshold, and the
    other class elsewhere. With more classes, ``positive`` must also be the most probable class;
    otherwise the most probable of the others is the answer. With ``max_false_negative_rate``, the
    log-odds of another class must reach a threshold too, the same for all other classes;
    ``positive`` may then be the answer where a more probable class does not reach this threshold,
    and the guarantee includes these documents.

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
    Goal(max_false_positive_rate, max_false_negative_rate, costs=costs, method=method,
         confidence=confidence).check_for_class(held.classes.tolist(), positive)
    held = held.calibrated(calibration)
    sides = held.against_rest(positive)
    request: dict[str, Any]
    if costs is not None:
        costs, rule = (float(costs[0]), float(costs[1])), method or "empirical"
        least = (math.log(costs[0] / costs[1]) if rule == "theoretical"
                 else _find_cheapest(sides, *costs))
        thresholds = _class_thresholds(sides, least, -np.inf)
        request = {"costs": list(costs), "rule": rule}
    else:
        assert max_false_positive_rate is not None
        request, thresholds = _choose_by_rates(
            sides, max_false_positive_rate, max_false_negative_rate, confidence)
    decision = Decision(thresholds, positive)
    results = measure_decision(sides, decision, costs, confidence)
    return replace(decision, evidence={**request, **results, "scored": held.method,
                                       "calibrated": held.calibration is not None,
                                       **evidence_of(held.novelty)})


def _choose_by_rates(
    sides: AgainstRest, false_positives: float, false_negatives: float | None, confidence: float
) -> tuple[dict[str, Any], dict[Any, float]]:
    name = sides.labels[sides.k]
    # Where others have thresholds too, ``positive`` may be the answer without being most probable.
    scores = sides.scores if false_negatives is None else sides.odds[:, sides.k]
    least, request = _lowest_threshold(
        scores, ~sides.positive, false_positives, confidence, f"documents that are not {name!r}",
        "false_positive")
    least_other = -np.inf
    if false_negatives is None:
        if len(sides.labels) == 2:
            # Where the classes are far apart, the rate alone would allow a negative threshold, at
            # which documents get the less probable class.
            least = max(least, 0.0)
    else:
        least_other, more = _lowest_threshold(
            sides.highest_other, sides.positive, false_negatives, confidence,
            f"documents of {name!r}", "false_negative")
        request |= more
    request |= {"confidence": confidence, "rule": "order statistic"}
    return request, _class_thresholds(sides, least, least_other)


def _lowest_threshold(
    scores: Floats, wrong: NDArray[np.bool_], rate: float, confidence: float, what: str, error: str
) -> tuple[float, dict[str, Any]]:
    """Find the lowest threshold that keeps a rate of errors, and the evidence for it.

    Documents that are ``wrong`` are errors where their score reaches the threshold.
    """
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
    return threshold_above(excluded, scores), {
        f"max_{error}_rate": rate, f"{error}s_allowed": allowed,
        f"{error}_rate_bound": upper_bound(allowed, n, confidence)}


def threshold_above(excluded: float, scores: Floats) -> float:
    """A threshold that every score above ``excluded`` reaches, and ``excluded`` does not."""
    higher = scores[scores > excluded]
    following = float(higher.min()) if len(higher) else np.inf
    if excluded == -np.inf:
        return following - _CLEARANCE * max(1.0, abs(following)) if following < np.inf else 0.0
    step = min(_CLEARANCE * max(1.0, abs(excluded)), (following - excluded) / 2)
    return excluded + step if excluded < excluded + step else following


def _class_thresholds(sides: AgainstRest, least: float, least_other: float) -> dict[Any, float]:
    """The threshold of each class.

    Of two classes, the other is the answer where the positive one is not, unless its own threshold
    is higher and leaves a band of unsure documents.
    """
    if len(sides.labels) == 2:
        beyond = -np.inf if least == np.inf else float(np.nextafter(-least, np.inf))
        least_other = max(least_other, beyond)
    return {label: float(least if j == sides.k else least_other)
            for j, label in enumerate(sides.labels)}


def _find_cheapest(sides: AgainstRest, false_positive: float, false_negative: float) -> float:
    """Find the threshold of least cost on these documents, the highest of several."""
    sides.check_both()
    # No threshold includes a score of -inf.
    possible = sides.scores > -np.inf
    scores, wrong, hits = errors_by_threshold(sides.positive[possible], sides.scores[possible])
    # Each candidate leaves out the scores up to one of the distinct scores.
    excluded, wrong, hits = np.append(scores, -np.inf), np.append(0, wrong), np.append(0, hits)
    cost = false_positive * wrong + false_negative * (int(sides.positive.sum()) - hits)
    best = float(excluded[cost.argmin()])
    return np.inf if best == np.inf else threshold_above(best, sides.scores)


def measure_decision(
    sides: AgainstRest, decision: Decision, costs: tuple[float, float] | None, confidence: float
) -> dict[str, Any]:
    """Count the answers and errors of the decision on the documents that it was chosen on."""
    # A row that is impossible under every class is unsure, whatever the thresholds.
    answers = np.where(sides.impossible, UNSURE, decision.decide(sides.odds, sides.labels))
    called, rejected = answers == sides.k, (answers != sides.k) & (answers != UNSURE)
    positives, negatives = int(sides.positive.sum()), int((~sides.positive).sum())
    caught = int((called & sides.positive).sum())
    wrong, missed = int((called & ~sides.positive).sum()), int((rejected & sides.positive).sum())
    # An interval has two bounds, and each may fail with half of 1 - confidence.
    both = (1.0 + confidence) / 2
    results = {
        "documents": len(answers), "positives": positives, "negatives": negatives,
        "unknown_labels": sides.unknown, "unsure": int((answers == UNSURE).sum()),
        "coverage": float((answers != UNSURE).mean()),
        "false_positives": wrong, "true_positives": caught, "false_negatives": missed,
        "share_caught": caught / positives if positives else None,
        "share_caught_interval": [lower_bound(caught, positives, both),
                                  upper_bound(caught, positives, both)] if positives else None,
        "interval_confidence": confidence}
    if costs is not None:
        results["cost"] = costs[0] * wrong + costs[1] * missed
    return results


def decide_by_fit(
    fitted: Fitted, spam: Any = "spam", max_false_positive_rate: float = FALSE_POSITIVES, *,
    confidence: float = 0.95,
) -> Fitted:
    """The model with a threshold for spam, and "unsure" from log-odds 0 up to it.

    The threshold is that of `textnb.choose_threshold`. Where there are too few messages to show the
    rate, it is the lowest that no message of ham reaches, and the evidence says what rate that
    shows.

    Parameters
    ----------
    fitted : Fitted
        A model of two classes that was fitted with ``left_out``.
    spam : label
    max_false_positive_rate : float
        The largest share of the other class that may be answered as ``spam``.
    confidence : float

    Raises
    ------
    ParameterError
        If there are not two classes, or none is ``spam``.
    DataError
        If the fit has made no scores by models of others.
    """
    check_share("max_false_positive_rate", max_false_positive_rate)
    classes = fitted.classes.tolist()
    if len(classes) != 2:
        raise ParameterError(f"the threshold of a filter is for two classes; got {len(classes)}")
    check_positive(classes, spam)
    scores = fitted.learned.left_out
    if scores is None:
        raise DataError(
            "the fit has scored no documents by models of others: that takes 20 documents or more "
            "in each of its parts, unit weights, and held_out above 0")
    held = HeldOut(fitted.classes, scores.scores, scores.actual, np.zeros(len(scores.actual)),
                   f"{scores.parts} folds")
    others = int((held.actual != classes.index(spam)).sum())
    shown = upper_bound(0, others, confidence) * (1.0 + _ROUNDING)
    decision = choose_threshold(
        held, spam, max_false_positive_rate=max(max_false_positive_rate, shown),
        confidence=confidence, calibration=fitted.calibration)
    # Below the threshold, the other class is the answer only where it is the more probable one.
    decision = replace(decision, thresholds={
        label: least if label == spam else max(least, 0.0)
        for label, least in decision.thresholds.items()})
    sides = held.calibrated(fitted.calibration).against_rest(spam)
    return fitted.with_decision(replace(decision, evidence={
        **decision.evidence, **measure_decision(sides, decision, None, confidence),
        "max_false_positive_rate": max_false_positive_rate}))


def threshold_by_fit(fitted: Fitted, spam: Any, max_false_positive_rate: float) -> Floats:
    """The scores, not calibrated, of a row at the threshold of `decide_by_fit`: (n_classes,).

    They are 0 where the fit has too few documents to choose a threshold.
    """
    if fitted.learned.left_out is None:
        return np.zeros(len(fitted.classes))
    decision = decide_by_fit(
        replace(fitted, calibration=None), spam, max_false_positive_rate).decision
    assert decision is not None
    least = [decision.thresholds[label] if label == spam else 0.0 for label in fitted.labels]
    return np.array(least)
