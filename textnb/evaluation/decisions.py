"""Thresholds, chosen on documents that the model has not learned.

A threshold separates a class from the rest. It keeps rates of errors below a limit, guarantees a
precision, has the best F1, or minimises the cost of errors. The result is a `Decision`, with the
evidence for it: of one class, of each class, or of each label where documents have lists of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import UNSURE, Decision, log_odds
from textnb.bayes.forms import Floats
from textnb.bayes.label_thresholds import cheapest_threshold, f1_thresholds
from textnb.errors import DataError, ParameterError, TextnbWarning, quantity
from textnb.evaluation.binomial import check_share, lower_bound, trials_needed, upper_bound
from textnb.evaluation.goal import Goal
from textnb.evaluation.held_out import HeldOut, check_held_out
from textnb.evaluation.novelty import evidence_of
from textnb.evaluation.roc import check_positive, errors_by_threshold
from textnb.evaluation.threshold_search import (
    lowest_threshold_of_precision,
    lowest_threshold_of_rate,
    shown_instead,
    threshold_above,
)
from textnb.learning.fitted import Fitted
from textnb.learning.settings import FALSE_POSITIVES
from textnb.runtime.caller import warn_caller

# A computed bound may differ in its last bits from the limit that it is compared with.
_ROUNDING = 1e-9
_LOWEST = -1e300
# How many classes without a threshold a warning names, and for how many the evidence says which
# precision could be shown.
_MAX_NAMED, _MAX_EXPLAINED = 5, 10


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
        A label that is not one of the model's classes counts as negative.
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
        The confidence of each of the two guarantees; both hold together with at least ``2
        confidence - 1``.
    costs : (float, float), optional
        Instead of a guarantee: the cost of a false positive, and of a false negative.
    method : {"empirical", "theoretical"}, optional
        With ``costs``: the threshold with the lowest cost on these documents (the default; of
        several the highest), or log(cost of a false positive / cost of a false negative), which is
        the best one where probabilities are right [3]_.
    calibration : Calibration, optional
        The model's calibration, ``model.calibration_``, unless ``held`` is calibrated already.

    Returns
    -------
    Decision
        For `TextClassifier.set_decision`.

    Raises
    ------
    ParameterError
        If ``positive`` is not a class, or neither or both of a guarantee and costs are given.
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
    check_positive(held.classes.tolist(), positive)
    return choose(held, Goal(max_false_positive_rate, max_false_negative_rate, costs=costs,
                             method=method, confidence=confidence), positive, calibration)


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
        Not calibrated. For a document whose label is not one of the model's classes, every answer
        is wrong.
    min_precision : float, optional
        For each class: the minimum share of right answers among the documents with this answer.
    confidence : float
        The confidence with which the precision of each class holds.
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
        With ``costs``: the thresholds with the lowest cost on these documents (the default), or
        those that are best where probabilities are right.
    at_least, at_most : int
        Of lists of labels: how many labels each document gets; see `Decision`.

    Returns
    -------
    Decision
        A class whose precision can't be shown has the threshold inf and is never the answer. What
        can be shown of it is in ``evidence`` (for the first ten such classes).

    Raises
    ------
    ParameterError
        If a value is out of its range, there is one class, or ``by``, ``costs``, ``method``,
        ``at_least`` or ``at_most`` are given where documents have one label.

    Notes
    -----
    A warning says how many classes are never the answer, and names some. A row for which such a
    class is the most probable is "unsure".

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
    check_held_out(held, of_lists=None)
    return choose(held, Goal(
        min_precision=min_precision, confidence=confidence, by=by, costs=costs, method=method,
        at_least=at_least, at_most=at_most), calibration=calibration)


def choose(
    held: HeldOut, goal: Goal, positive: Any = None, calibration: Calibration | None = None
) -> Decision:
    """Choose the thresholds of a goal: of one class against the others, or of all."""
    classes, of_lists = held.classes.tolist(), held.link == "sigmoid"
    goal.check(classes, held.link, positive)
    if calibration is not None:
        calibration.check_classes(len(classes), of_lists)
    # Thresholds of labels are on scores that are not calibrated.
    held = held if of_lists else held.calibrated(calibration)
    evidence_of_rule: dict[str, Any] = {}
    if positive is not None:
        thresholds, evidence_of_rule = _choose_for_one(held, classes.index(positive), goal)
    elif goal.min_precision is not None:
        thresholds, evidence_of_rule = _choose_precise(held, goal.min_precision, goal.confidence)
    else:
        numbers = _choose_per_label(held, goal, calibration).tolist()
        thresholds = dict(zip(classes, numbers, strict=True))
    decision = Decision(thresholds, positive, at_least=goal.at_least, at_most=goal.at_most)
    evidence = {**goal.request, **evidence_of_rule, **measure_decision(held, decision, goal),
                "scored": held.method}
    if not of_lists:
        evidence |= {"calibrated": held.calibration is not None, **evidence_of(held.novelty)}
    return replace(decision, evidence=evidence)


def _choose_for_one(
    held: HeldOut, k: int, goal: Goal
) -> tuple[dict[Any, float], dict[str, Any]]:
    """Choose the thresholds of one class and of the others, with the evidence for the rates."""
    odds, positive = held.odds, held.actual == k
    if not len(held):
        raise DataError.no_rows("the held-out set", "there is nothing to measure")
    is_binary, name = odds.shape[1] == 2, held.classes.tolist()[k]
    # With more than two classes, the answer must also be the most probable class.
    scores = odds[:, k] if is_binary else np.where(odds.argmax(axis=1) == k, odds[:, k], -np.inf)
    evidence: dict[str, Any] = {}
    lowest_other = -np.inf
    if goal.costs is not None:
        lowest = (math.log(goal.costs[0] / goal.costs[1]) if goal.method == "theoretical"
                  else _find_cheapest(held, name, scores, *goal.costs))
    else:
        assert goal.max_false_positive_rate is not None
        # If others have thresholds too, the class may be the answer without being most probable.
        others_have = goal.max_false_negative_rate is not None
        lowest, evidence = lowest_threshold_of_rate(
            odds[:, k] if others_have else scores, ~positive, goal.max_false_positive_rate,
            goal.confidence, f"documents that are not {name!r}", "false_positive")
        if goal.max_false_negative_rate is not None:
            lowest_other, evidence_of_others = lowest_threshold_of_rate(
                np.delete(odds, k, axis=1).max(axis=1), positive, goal.max_false_negative_rate,
                goal.confidence, f"documents of {name!r}", "false_negative")
            evidence |= evidence_of_others
        elif is_binary:
            # Where the classes are far apart, the rate alone would allow a negative threshold, at
            # which documents get the less probable class.
            lowest = max(lowest, 0.0)
        evidence |= {"confidence": goal.confidence, "rule": "order statistic"}
    if is_binary:
        # The other class is the answer where this one is not, unless its own threshold is higher
        # and leaves a band of unsure documents.
        beyond = -np.inf if lowest == np.inf else float(np.nextafter(-lowest, np.inf))
        lowest_other = max(lowest_other, beyond)
    return {label: float(lowest if j == k else lowest_other)
            for j, label in enumerate(held.classes.tolist())}, evidence


def _find_cheapest(
    held: HeldOut, name: Any, scores: Floats, false_positive: float, false_negative: float
) -> float:
    """Find the threshold with the lowest cost on these documents, the highest of several."""
    positive, _ = held.against_rest(name)
    # No threshold includes a score of -inf.
    possible = scores > -np.inf
    distinct, wrong, hits = errors_by_threshold(positive[possible], scores[possible])
    # Each candidate leaves out the scores up to one of the distinct scores.
    excluded, wrong, hits = np.append(distinct, -np.inf), np.append(0, wrong), np.append(0, hits)
    cost = float(false_positive) * wrong + float(false_negative) * (int(positive.sum()) - hits)
    best = float(excluded[cost.argmin()])
    return np.inf if best == np.inf else threshold_above(best, scores)


def _choose_precise(
    held: HeldOut, precision: float, confidence: float
) -> tuple[dict[Any, float], dict[str, Any]]:
    """Thresholds of all classes, or labels, that show a precision, with the evidence.

    A warning names the classes that have none.
    """
    of_lists = held.link == "sigmoid"
    entries, never = [], list[str]()
    scores = held.scores if of_lists else log_odds(held.scores)
    for k, label in enumerate(held.classes.tolist()):
        label_scores, right = scores[:, k], held.actual[:, k] if of_lists else held.actual == k
        floor = 0.0
        if of_lists:
            # Most documents hardly can have the label, and a search among all would cost
            # confidence. How many are searched must not depend on which of them have the label.
            number = max(2 * int((label_scores > 0).sum()),
                         trials_needed(1.0 - precision, confidence))
            floor = max(float(np.sort(label_scores)[-min(number, len(label_scores))]), _LOWEST)
        entry = lowest_threshold_of_precision(
            label, label_scores, right, precision, confidence, floor)
        entries.append(entry)
        if entry["threshold"] is None:
            never.append(repr(label))
            if len(never) <= _MAX_EXPLAINED:
                entry["shown"] = shown_instead(
                    label, label_scores, right, precision, confidence, floor)
    if never:
        left = len(never) - _MAX_NAMED
        names = ", ".join(never[:_MAX_NAMED]) + (
            f" and {quantity(left, 'other')}" if left > 0 else "")
        warn_caller(
            f"a precision of {precision:g} can't be shown for {len(never):,} of "
            f"{quantity(len(entries), 'label' if of_lists else 'class')}: {names}. "
            + ("These labels are never predicted" if of_lists else
               "These classes are never given: a row that would get one is \"unsure\""),
            TextnbWarning)
    return ({entry["label"]: math.inf if entry["threshold"] is None else entry["threshold"]
             for entry in entries}, {"labels" if of_lists else "classes": entries})


def _choose_per_label(held: HeldOut, goal: Goal, calibration: Calibration | None) -> Floats:
    """A threshold for each label, by F1 or costs."""
    if goal.costs is None:
        return f1_thresholds(str(goal.by), held.scores, held.actual)
    if goal.method == "theoretical":
        # The score at which P(label) · cost of missing it = (1 - P(label)) · cost of predicting it.
        slopes, shifts = (1.0, 0.0) if calibration is None else np.array(calibration.sigmoids).T
        odds = math.log(goal.costs[0] / goal.costs[1])
        return np.broadcast_to((odds - shifts) / slopes, len(held.classes))
    wrong_cost, missed_cost = map(float, goal.costs)
    return np.array([cheapest_threshold(scores, has_label, wrong_cost, missed_cost)
                     for scores, has_label in zip(held.scores.T, held.actual.T, strict=True)])


def measure_decision(held: HeldOut, decision: Decision, goal: Goal) -> dict[str, Any]:
    """Count the answers and errors of a decision on the documents that it was chosen on."""
    common: dict[str, Any] = {"documents": len(held), "unknown_labels": held.n_unknown}
    if held.link == "sigmoid":
        predictions = held.chosen(decision)
        correct = int((predictions & held.actual).sum())
        predicted, actual = int(predictions.sum()), int(held.actual.sum()) + held.n_unknown
        return {**held.measure(decision), **common, "predicted": predicted, "correct": correct,
                "actual": actual, **goal.cost(predicted - correct, actual - correct)}
    classes = held.classes.tolist()
    answers = decision.decide(log_odds(held.scores), classes)
    has_answer = answers != UNSURE
    common["coverage"] = float(has_answer.mean()) if len(held) else None
    if decision.positive is None:
        answered = int(has_answer.sum())
        right = int((has_answer & (answers == held.actual)).sum())
        return {**common, "answered": answered, "correct": right,
                "precision": right / answered if answered else None}
    k = classes.index(decision.positive)
    is_answer, positive = answers == k, held.actual == k
    positives, n_right = int(positive.sum()), int((is_answer & positive).sum())
    n_wrong = int((is_answer & ~positive).sum())
    n_missed = int((has_answer & ~is_answer & positive).sum())
    # An interval has two bounds; each may fail with a probability of (1 - confidence) / 2.
    bound_confidence = (1.0 + goal.confidence) / 2
    return {
        **common, "positives": positives, "negatives": len(held) - positives,
        "unsure": int((~has_answer).sum()),
        "false_positives": n_wrong, "true_positives": n_right, "false_negatives": n_missed,
        "share_caught": n_right / positives if positives else None,
        "share_caught_interval": [
            lower_bound(n_right, positives, bound_confidence),
            upper_bound(n_right, positives, bound_confidence)] if positives else None,
        "interval_confidence": goal.confidence, **goal.cost(n_wrong, n_missed)}


def decide_by_fit(
    fitted: Fitted, spam: Any = "spam", max_false_positive_rate: float = FALSE_POSITIVES, *,
    confidence: float = 0.95,
) -> Fitted:
    """The model with a threshold for spam, and "unsure" from log-odds 0 up to it.

    The threshold is that of `textnb.choose_threshold`. With too few messages to show the rate, it
    is just above the highest score of a message of ham, and the evidence says which rate that
    shows.

    The model has two classes and was fitted with ``left_out``. ``max_false_positive_rate`` is the
    largest share of the other class that may be answered as ``spam``.

    Raises
    ------
    ParameterError
        If there are not two classes, or none is ``spam``.
    DataError
        If the fit has kept no out-of-fold scores.
    """
    check_share("max_false_positive_rate", max_false_positive_rate)
    classes = fitted.classes.tolist()
    if len(classes) != 2:
        raise ParameterError(f"the threshold of a filter is for two classes; got {len(classes)}")
    check_positive(classes, spam)
    scores = fitted.learned.left_out
    if scores is None:
        raise DataError(
            "the fit has no out-of-fold scores: they take 20 documents or more "
            "in each of its parts, unit weights, and held_out above 0")
    held = HeldOut(fitted.classes, scores.scores, scores.actual, np.zeros(len(scores.actual)),
                   f"{scores.n_folds} folds")
    others = int((held.actual != classes.index(spam)).sum())
    rate = upper_bound(0, others, confidence) * (1.0 + _ROUNDING)
    decision = choose_threshold(
        held, spam, max_false_positive_rate=max(max_false_positive_rate, rate),
        confidence=confidence, calibration=fitted.calibration)
    # Below the threshold, the other class is the answer only where it is the more probable one.
    decision = replace(decision, thresholds={
        label: threshold if label == spam else max(threshold, 0.0)
        for label, threshold in decision.thresholds.items()})
    measures = measure_decision(
        held.calibrated(fitted.calibration), decision, Goal(confidence=confidence))
    return fitted.with_decision(replace(decision, evidence={
        **decision.evidence, **measures,
        "max_false_positive_rate": max_false_positive_rate}))


def threshold_by_fit(fitted: Fitted, spam: Any, max_false_positive_rate: float) -> Floats:
    """The scores, not calibrated, of a row at the threshold of `decide_by_fit`: (n_classes,).

    They are 0 if the fit has too few documents to choose a threshold.
    """
    if fitted.learned.left_out is None:
        return np.zeros(len(fitted.classes))
    decision = decide_by_fit(
        replace(fitted, calibration=None), spam, max_false_positive_rate).decision
    assert decision is not None
    scores = [decision.thresholds[label] if label == spam else 0.0 for label in fitted.labels]
    return np.array(scores)
