"""The threshold of a spam filter, from scores that its fit has made by models of others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from textnb.bayes.forms import Floats
from textnb.errors import DataError, ParameterError
from textnb.evaluation.against_rest import check_positive, set_against_rest
from textnb.evaluation.binomial import check_share, upper_bound
from textnb.evaluation.decisions import choose_threshold, measure_decision
from textnb.evaluation.held_out import HeldOut
from textnb.learning.fitted import Fitted
from textnb.learning.settings import FALSE_POSITIVES

# A bound that is computed and compared may differ in its last bits.
_ROUNDING = 1e-9


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
    sides = set_against_rest(held.calibrated(fitted.calibration), spam)
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
