"""Thresholds, chosen on documents that the model has not learned.

A threshold keeps rates of errors below a limit, guarantees a precision, has the best F1, or
minimises the cost of errors. It is chosen for one class, for each class or, if documents have lists
of labels, for each label. The result is a `Decision` with its evidence.
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
from textnb.evaluation.novelty import novelty_entry
from textnb.evaluation.roc import check_positive, errors_by_threshold
from textnb.evaluation.threshold_search import (
    find_alternatives,
    lowest_threshold_of_precision,
    lowest_threshold_of_rate,
    threshold_above,
)
from textnb.learning.fitted import Fitted
from textnb.learning.settings import FALSE_POSITIVES
from textnb.runtime.caller import warn_caller

# A computed bound may differ in its last bits from the limit that it is compared with.
_ROUNDING = 1e-9
# The lowest threshold of a label: finite, so that a score of -inf does not reach it.
_MIN_THRESHOLD = -1e300
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
        The lowest threshold that keeps this rate is chosen; with two classes it is at least 0, as
        below 0 the other class is more probable.
    max_false_negative_rate : float, optional
        With ``max_false_positive_rate``: the largest share of the ``positive`` documents that may
        be answered as another class; the threshold may then be below 0. If no single threshold
        keeps both rates, there are two, and rows with log-odds between them are "unsure".
    confidence : float
        The confidence of each of the two guarantees; both hold together with a confidence of at
        least ``2 * confidence - 1``.
    costs : (float, float), optional
        Instead of a guarantee: the cost of a false positive, and of a false negative.
    method : {"empirical", "theoretical"}, optional
        With ``costs``: the threshold with the lowest cost on these documents (the default; the
        highest of several), or log(cost of a false positive / cost of a false negative), which is
        the best one if probabilities are right [3]_.
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
    errors that are allowed depends only on the number n of negatives: it is the largest number
    whose upper bound by Clopper and Pearson [1]_ is within the rate. The threshold is just above
    the (k+1)-th largest log-odds of a negative. For independent documents of one distribution, the
    share of negatives above that order statistic is distributed as Beta(k + 1, n - k), for any
    distribution of log-odds (Wilks [2]_). It exceeds the rate with probability P(Binomial(n, rate)
    <= k) <= 1 - confidence. Equal scores are never separated, which only lowers the share. The
    guarantee is for documents like these and for the model that scored them: leave-one-out scores
    come from models that lack one document each, folds from models that lack many.

    With two classes, ``positive`` is the answer if its log-odds reach the threshold, otherwise the
    other class. With more classes, ``positive`` must also be the most probable class; otherwise the
    most probable of the others is the answer. With ``max_false_negative_rate``, the log-odds of
    another class must reach a threshold too, the same for all other classes. ``positive`` may then
    be the answer although another class is more probable, if that class does not reach its
    threshold; the guarantee includes such documents.

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
    return choose_by_goal(held, Goal(max_false_positive_rate, max_false_negative_rate, costs=costs,
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

    For lists of labels, choose a threshold for each label, by precision, by F1, or by costs.

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
        The model's calibration, if it has one: ``model.calibration_``. Thresholds of labels are on
        scores that are not calibrated; only their method "theoretical" needs it.
    by : {"f1", "micro-f1"}, optional
        For lists of labels, instead of a precision: for each label the mean of five thresholds,
        each of which has its best F1 without another fifth of the documents, for a high mean of
        them on new documents (macro-F1); or the thresholds with the best F1 of all pairs of a
        document and a label together.
    costs : (float, float), optional
        For lists of labels, instead of a precision: the cost of a label that is predicted wrongly,
        and of a label that is missed.
    method : {"empirical", "theoretical"}, optional
        With ``costs``: the thresholds with the lowest cost on these documents (the default), or
        the thresholds that are the best if probabilities are right.
    at_least, at_most : int
        For lists of labels: how many labels each document gets; see `Decision`.

    Returns
    -------
    Decision
        A class whose precision can't be shown has the threshold inf and is never the answer. What
        can be shown of it is in ``evidence`` (for the first ten such classes).

    Raises
    ------
    ParameterError
        If a value is out of its range, there is one class, or documents have one label and ``by``,
        ``costs``, ``method``, ``at_least`` or ``at_most`` is given.

    Notes
    -----
    A warning says how many classes are never the answer, and names some. A row for which such a
    class is the most probable is "unsure".

    For lists of labels, each label's documents are ordered by its score, and the guarantee is for
    each label by itself. Labels that are predicted only because of ``at_least`` do not reach their
    thresholds, and have no guarantee.

    A class is the answer only if it is more probable than all others together, so its answers
    depend only on its own threshold. Documents for which it is so probable are ordered by log-odds,
    and prefixes of this list are tested from short to long, until one fails: a prefix passes if
    Clopper and Pearson's lower bound on its precision [1]_ is at least ``min_precision``. Tests in
    an order that is fixed beforehand, up to the first failure, need no correction [2]_; here the
    order follows from the log-odds, which do not depend on the labels of these documents. One error
    in a short prefix would end the search, so there are several searches, each beginning with a
    prefix twice as long as the one before; they share 1 - confidence evenly [3]_. The first prefix
    is just long enough to show the precision if it holds no error. The longest prefix that passes
    sets the threshold.

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
    return choose_by_goal(held, Goal(
        min_precision=min_precision, confidence=confidence, by=by, costs=costs, method=method,
        at_least=at_least, at_most=at_most), calibration=calibration)


def choose_by_goal(
    held: HeldOut, goal: Goal, positive: Any = None, calibration: Calibration | None = None
) -> Decision:
    """Choose the thresholds of a goal: of the class ``positive`` against the others, or of all."""
    classes, of_lists = held.classes.tolist(), held.is_multilabel
    # The class itself, which a file keeps: the caller may name it by a value of NumPy.
    positive = goal.check(classes, held.link, positive)
    if calibration is not None:
        calibration.check_classes(len(classes), of_lists)
    # Thresholds of labels are on scores that are not calibrated.
    held = held if of_lists else held.calibrated(calibration)
    evidence_of_rule: dict[str, Any] = {}
    if positive is not None:
        thresholds, evidence_of_rule = _choose_for_one(held, classes.index(positive), goal)
    elif goal.min_precision is not None:
        thresholds, evidence_of_rule = _choose_by_precision(
            held, goal.min_precision, goal.confidence)
    else:
        label_thresholds = _choose_by_label(held, goal, calibration).tolist()
        thresholds = dict(zip(classes, label_thresholds, strict=True))
    decision = Decision(thresholds, positive, at_least=goal.at_least, at_most=goal.at_most)
    evidence = {**goal.request, **evidence_of_rule, **measure_decision(held, decision, goal),
                "scored": held.method}
    if not of_lists:
        evidence |= {"calibrated": held.calibration is not None, **novelty_entry(held.novelty)}
    return replace(decision, evidence=evidence)


def _choose_for_one(held: HeldOut, k: int, goal: Goal) -> tuple[dict[Any, float], dict[str, Any]]:
    """Choose the thresholds of class number ``k`` and of the others, with evidence for rates."""
    odds, is_positive = held.odds, held.actual == k
    if not len(held):
        raise DataError.no_rows("the held-out set", "there is nothing to measure")
    is_binary, name = odds.shape[1] == 2, held.classes.tolist()[k]
    # With more than two classes, the answer must also be the most probable class.
    scores = odds[:, k] if is_binary else np.where(odds.argmax(axis=1) == k, odds[:, k], -np.inf)
    evidence: dict[str, Any] = {}
    threshold_of_others = -np.inf
    if goal.costs is not None:
        threshold = (math.log(goal.costs[0] / goal.costs[1]) if goal.method == "theoretical"
                     else _find_cheapest(held, name, scores, *goal.costs))
    else:
        assert goal.max_false_positive_rate is not None
        if goal.max_false_negative_rate is not None:
            # Others have a threshold too, so the answer need not be the most probable class.
            scores = odds[:, k]
        threshold, evidence = lowest_threshold_of_rate(
            scores, ~is_positive, goal.max_false_positive_rate, goal.confidence,
            f"documents that are not {name!r}", "false_positive")
        if goal.max_false_negative_rate is not None:
            threshold_of_others, evidence_of_others = lowest_threshold_of_rate(
                np.delete(odds, k, axis=1).max(axis=1), is_positive, goal.max_false_negative_rate,
                goal.confidence, f"documents of {name!r}", "false_negative")
            evidence |= evidence_of_others
        elif is_binary:
            # If the classes are far apart, the rate would allow even a negative threshold, with
            # which documents get the less probable class.
            threshold = max(threshold, 0.0)
        evidence |= {"confidence": goal.confidence, "rule": "order statistic"}
    if is_binary:
        # The log-odds of the other class are the negated ones of this class. It is the answer
        # wherever this class is not: just above -threshold. If it has a higher threshold of its
        # own, documents between the two are unsure.
        complement = -np.inf if threshold == np.inf else float(np.nextafter(-threshold, np.inf))
        threshold_of_others = max(threshold_of_others, complement)
    return {label: float(threshold if j == k else threshold_of_others)
            for j, label in enumerate(held.classes.tolist())}, evidence


def _find_cheapest(
    held: HeldOut, name: Any, scores: Floats, false_positive: float, false_negative: float
) -> float:
    """Find the threshold with the lowest cost on these documents; the highest, of several."""
    is_positive, _ = held.against_rest(name)
    # A score of -inf reaches no threshold.
    is_possible = scores > -np.inf
    distinct, wrong, hits = errors_by_threshold(is_positive[is_possible], scores[is_possible])
    # A candidate threshold excludes the scores up to one of the distinct scores, or up to -inf. At
    # the first, which excludes all, nothing is wrong and nothing is a hit.
    excluded, wrong, hits = np.append(distinct, -np.inf), np.append(0, wrong), np.append(0, hits)
    cost = float(false_positive) * wrong + float(false_negative) * (int(is_positive.sum()) - hits)
    best_excluded = float(excluded[cost.argmin()])
    return np.inf if best_excluded == np.inf else threshold_above(best_excluded, scores)


def _choose_by_precision(
    held: HeldOut, precision: float, confidence: float
) -> tuple[dict[Any, float], dict[str, Any]]:
    """Choose thresholds of all classes, or labels, that show a precision, with the evidence.

    A warning names the classes for which no threshold shows it.
    """
    of_lists = held.is_multilabel
    entries, without_threshold = [], list[str]()
    scores = held.scores if of_lists else log_odds(held.scores)
    for k, label in enumerate(held.classes.tolist()):
        label_scores = scores[:, k]
        has_label = held.actual[:, k] if of_lists else held.actual == k
        # Only documents that score at least this are candidates for an answer.
        floor = 0.0
        if of_lists:
            # Most documents can hardly have the label, and a search among all would cost
            # confidence. So there are twice as many candidates as scores above 0, or as many as it
            # takes to show the precision. Their number must not depend on which have the label.
            n_candidates = max(2 * int((label_scores > 0).sum()),
                               trials_needed(1.0 - precision, confidence))
            lowest = np.sort(label_scores)[-min(n_candidates, len(label_scores))]
            floor = max(float(lowest), _MIN_THRESHOLD)
        entry = lowest_threshold_of_precision(
            label, label_scores, has_label, precision, confidence, floor)
        entries.append(entry)
        if entry["threshold"] is None:
            without_threshold.append(repr(label))
            if len(without_threshold) <= _MAX_EXPLAINED:
                entry["shown"] = find_alternatives(
                    label, label_scores, has_label, precision, confidence, floor)
    if without_threshold:
        n_unnamed = len(without_threshold) - _MAX_NAMED
        names = ", ".join(without_threshold[:_MAX_NAMED]) + (
            f" and {quantity(n_unnamed, 'other')}" if n_unnamed > 0 else "")
        warn_caller(
            f"a precision of {precision:g} can't be shown for {len(without_threshold):,} of "
            f"{quantity(len(entries), 'label' if of_lists else 'class')}: {names}. "
            + ("These labels are never predicted" if of_lists else
               "These classes are never given: a row that would get one is \"unsure\""),
            TextnbWarning)
    return ({entry["label"]: math.inf if entry["threshold"] is None else entry["threshold"]
             for entry in entries}, {"labels" if of_lists else "classes": entries})


def _choose_by_label(held: HeldOut, goal: Goal, calibration: Calibration | None) -> Floats:
    """Choose a threshold for each label, by F1 or costs."""
    if goal.costs is None:
        return f1_thresholds(str(goal.by), held.scores, held.actual)
    if goal.method == "theoretical":
        # The score at which P(label) · cost of missing it = (1 - P(label)) · cost of predicting it.
        slopes, shifts = (1.0, 0.0) if calibration is None else np.array(calibration.sigmoids).T
        best_log_odds = math.log(goal.costs[0] / goal.costs[1])
        return np.broadcast_to((best_log_odds - shifts) / slopes, len(held.classes))
    wrong_cost, missed_cost = map(float, goal.costs)
    return np.array([cheapest_threshold(scores, has_label, wrong_cost, missed_cost)
                     for scores, has_label in zip(held.scores.T, held.actual.T, strict=True)])


def measure_decision(held: HeldOut, decision: Decision, goal: Goal) -> dict[str, Any]:
    """Count the answers and errors of a decision on the documents that it was chosen on."""
    common: dict[str, Any] = {"documents": len(held), "unknown_labels": held.n_unknown}
    if held.is_multilabel:
        predictions = held.chosen(decision)
        n_right = int((predictions & held.actual).sum())
        n_predicted, n_actual = int(predictions.sum()), int(held.actual.sum()) + held.n_unknown
        return {**held.measure(decision), **common, "predicted": n_predicted, "correct": n_right,
                "actual": n_actual, **goal.cost(n_predicted - n_right, n_actual - n_right)}
    classes = held.classes.tolist()
    answers = decision.decide(log_odds(held.scores), classes)
    has_answer = answers != UNSURE
    common["coverage"] = float(has_answer.mean()) if len(held) else None
    if decision.positive is None:
        n_answered = int(has_answer.sum())
        n_right = int((has_answer & (answers == held.actual)).sum())
        return {**common, "answered": n_answered, "correct": n_right,
                "precision": n_right / n_answered if n_answered else None}
    k = classes.index(decision.positive)
    is_answer, is_positive = answers == k, held.actual == k
    n_positive, n_right = int(is_positive.sum()), int((is_answer & is_positive).sum())
    n_wrong = int((is_answer & ~is_positive).sum())
    n_missed = int((has_answer & ~is_answer & is_positive).sum())
    # An interval has two bounds, and each may fail with a probability of (1 - confidence) / 2.
    bound_confidence = (1.0 + goal.confidence) / 2
    return {
        **common, "positives": n_positive, "negatives": len(held) - n_positive,
        "unsure": int((~has_answer).sum()),
        "false_positives": n_wrong, "true_positives": n_right, "false_negatives": n_missed,
        "share_caught": n_right / n_positive if n_positive else None,
        "share_caught_interval": [
            lower_bound(n_right, n_positive, bound_confidence),
            upper_bound(n_right, n_positive, bound_confidence)] if n_positive else None,
        "interval_confidence": goal.confidence, **goal.cost(n_wrong, n_missed)}


def with_spam_threshold(
    fitted: Fitted, spam: Any = "spam", max_false_positive_rate: float = FALSE_POSITIVES, *,
    confidence: float = 0.95,
) -> Fitted:
    """The model with a threshold for spam, and "unsure" from log-odds 0 up to it.

    The threshold is chosen by `textnb.choose_threshold`, on the out-of-fold scores that a fit with
    ``left_out=True`` keeps. If there are too few messages to show the rate, the threshold is just
    above the highest score of a message of ham, and the evidence says which rate this shows.

    ``max_false_positive_rate`` is the largest share of ham, the only other class, that may be
    answered as ``spam``.

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
    spam = check_positive(classes, spam)
    left_out = fitted.learned.left_out
    if left_out is None:
        raise DataError(
            "the fit has no out-of-fold scores: they take 20 documents or more "
            "in each of its parts, unit weights, and held_out above 0")
    # Without lengths: the calibration of such a fit does not depend on them.
    held = HeldOut(fitted.classes, left_out.scores, left_out.actual,
                   lengths=np.zeros(len(left_out.actual)), method=f"{left_out.n_folds} folds")
    n_others = int((held.actual != classes.index(spam)).sum())
    # The lowest rate that so many messages can show: none of them is wrong.
    lowest_rate = upper_bound(0, n_others, confidence) * (1.0 + _ROUNDING)
    decision = choose_threshold(
        held, spam, max_false_positive_rate=max(max_false_positive_rate, lowest_rate),
        confidence=confidence, calibration=fitted.calibration)
    # Below the threshold, the other class is the answer only if it is the more probable one.
    decision = replace(decision, thresholds={
        label: threshold if label == spam else max(threshold, 0.0)
        for label, threshold in decision.thresholds.items()})
    measures = measure_decision(
        held.calibrated(fitted.calibration), decision, Goal(confidence=confidence))
    return fitted.with_decision(replace(decision, evidence={
        **decision.evidence, **measures,
        "max_false_positive_rate": max_false_positive_rate}))


def scores_at_threshold(fitted: Fitted, spam: Any, max_false_positive_rate: float) -> Floats:
    """Uncalibrated scores that just reach the threshold of `with_spam_threshold`: (n_classes,).

    The score of spam is the threshold, and that of ham is 0. Both are 0 if the fit has too few
    documents to choose a threshold.
    """
    if fitted.learned.left_out is None:
        return np.zeros(len(fitted.classes))
    decision = with_spam_threshold(
        replace(fitted, calibration=None), spam, max_false_positive_rate).decision
    assert decision is not None
    scores = [decision.thresholds[label] if label == spam else 0.0 for label in fitted.labels]
    return np.array(scores)
