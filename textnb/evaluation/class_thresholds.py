"""A threshold for every class, by the precision of its answers; a document may get no class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import UNSURE, Decision, log_odds
from textnb.errors import Mention, ParameterError
from textnb.evaluation.against_rest import check_two_classes
from textnb.evaluation.binomial import check_share
from textnb.evaluation.held_out import UNKNOWN, HeldOut, check_held_out
from textnb.evaluation.label_thresholds import choose_label_thresholds
from textnb.evaluation.novelty import evidence_of
from textnb.evaluation.precision import lowest_threshold_of_precision
from textnb.runtime.caller import warn_caller


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
    if isinstance(held, HeldOut) and held.link == "sigmoid":
        return choose_label_thresholds(
            held, by=by, min_precision=min_precision, confidence=confidence, costs=costs,
            method=method, calibration=calibration, at_least=at_least, at_most=at_most)
    check_held_out(held)
    check_precision_settings(
        held.classes.tolist(), min_precision, confidence, by=by, costs=costs, method=method,
        at_least=at_least or None, at_most=at_most)
    assert min_precision is not None
    labels = held.classes.tolist()
    held = held.calibrated(calibration)
    odds = log_odds(held.scores)
    entries = [lowest_threshold_of_precision(
        label, odds[:, k], held.actual == k, min_precision, confidence)
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
    classes: Sequence[Any], min_precision: Any, confidence: Any = 0.95, **of_labels: Any
) -> None:
    """Check the settings of `choose_class_thresholds`, before documents are scored.

    Those ``of_labels`` must be None: they are for lists of labels.

    Raises
    ------
    ParameterError
        As `choose_class_thresholds`.
    """
    for name, value in of_labels.items():
        if value is not None:
            raise ParameterError.naming(
                "{setting} is for lists of labels, and these documents have one label each",
                setting=Mention(name))
    check_share("min_precision", min_precision)
    check_share("confidence", confidence)
    check_two_classes(classes)
