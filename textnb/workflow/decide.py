"""Calibrates probabilities and chooses thresholds, from scores of rows new to the model."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import polars as pl

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.evaluation.binomial import check_share
from textnb.evaluation.calibration import (
    check_unweighted,
    fit_calibration,
    link_of,
    reliability,
    scores_by_folds,
)
from textnb.evaluation.decisions import choose_by_goal
from textnb.evaluation.goal import Goal
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.labelled import held_out
from textnb.evaluation.leave_one_out import leave_one_out
from textnb.evaluation.novelty import novelty_entry
from textnb.frames.batches import Progress
from textnb.learning.fitted import Fitted, check_one_label
from textnb.workflow.models import class_named
from textnb.workflow.options import CalibrateOptions, DecideOptions, ValidateOptions
from textnb.workflow.validate import folds_of

# Keys of `Decision.evidence` that say how thresholds were chosen; all others are measurements.
_CRITERIA = {"by", "costs", "rule", "min_precision", "confidence", "labels", "scored"}


def scores_of(
    fitted: Fitted, frame: pl.LazyFrame, method: str | None,
    folds: ValidateOptions | None = None, progress: Progress | None = None,
) -> Any:
    """Score rows; training rows are scored by models that were trained without them.

    Parameters
    ----------
    method : {"leave-one-out", "folds"}, optional
        How to score training rows; multilabel models always use folds. None if the model has not
        learned the rows.
    folds : ValidateOptions, optional
        The number of folds, by default five, and how rows are divided into them.
    progress : callable, optional
        Called with numbers of rows.

    Returns
    -------
    HeldOut
    """
    if method is None:
        return held_out(fitted, frame, progress=progress)
    check_unweighted(fitted)
    if method == "leave-one-out" and not fitted.is_multilabel:
        return leave_one_out(fitted, frame, progress=progress)
    return scores_by_folds(fitted, frame, progress=progress, **folds_of(folds or ValidateOptions()))


def choose_scoring(fitted: Fitted) -> str:
    """How to score training rows: by folds if a row can't be subtracted from the model's counts."""
    return "leave-one-out" if fitted.model.from_counts else "folds"


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A calibration, and the scores of held-out rows to which it was fitted."""

    calibration: Calibration
    held_out: HeldOut

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """Measures of the held-out rows before and after the calibration, by name."""
        calibrated = self.held_out.calibrated(self.calibration)
        if self.held_out.is_multilabel:
            return {"log_loss": {"before": self.held_out.log_loss, "after": calibrated.log_loss}}
        before, after = reliability(self.held_out), reliability(calibrated)
        return {name: {"before": getattr(before, name), "after": getattr(after, name)}
                for name in ("log_loss", "brier", "expected_calibration_error")}

    def to_dict(self) -> dict[str, Any]:
        # Rows are not judged if the model that scored them had not learned their class. If the
        # rows look as if the model had learned them, the novelty says so.
        evidence = {} if self.held_out.is_multilabel else {
            "not_judged": self.held_out.not_judged, **novelty_entry(self.held_out.novelty)}
        return {"calibration": self.calibration.to_dict(), **self.figures, **evidence}


def calibrate(fitted: Fitted, scores: Any, options: CalibrateOptions) -> Calibrated:
    """Fit a calibration to scores of rows by models that were trained without them.

    ``scores`` is the result of `scores_of`; `link_of` says how they become probabilities.
    """
    check_calibration(fitted, options)
    return Calibrated(fit_calibration(scores, length_aware=options.length_aware,
                                      link=link_of(fitted)), scores)


def check_calibration(fitted: Fitted, options: CalibrateOptions) -> None:
    """Raise ParameterError for options that don't suit the kind of labels."""
    if not options.length_aware:
        check_one_label(fitted, what="a calibration without lengths", setting="length_aware")


def check_decision(fitted: Fitted, options: DecideOptions) -> None:
    """Raise ParameterError for an impossible goal, before rows are scored."""
    options.check_labels(is_multilabel=fitted.is_multilabel)
    if options.min_probability is not None:
        check_share("min_probability", options.min_probability)
    else:
        _goal(options).check(
            fitted.classes.tolist(), link="sigmoid" if fitted.is_multilabel else "softmax",
            positive=_positive(fitted, options))


def decide(fitted: Fitted, scores: Any, options: DecideOptions) -> Decision:
    """Choose thresholds.

    Parameters
    ----------
    fitted : Fitted
    scores : HeldOut or None
        Scores of rows by models that were trained without them. None if the options need no scores:
        ``min_probability``, or only ``at_least`` and ``at_most`` for the model's own thresholds.
    options : DecideOptions
    """
    calibration = fitted.calibration
    if options.min_probability is not None:
        check_decision(fitted, options)
        log_odds = float(np.log(options.min_probability / (1.0 - options.min_probability)))
        return Decision(dict.fromkeys(fitted.classes.tolist(), log_odds),
                        evidence={"min_probability": options.min_probability,
                                  "calibrated": calibration is not None})
    if scores is None:
        return _with_label_limits(fitted, options)
    return choose_by_goal(scores, _goal(options), _positive(fitted, options), calibration)


def _goal(options: DecideOptions) -> Goal:
    values: dict[str, Any] = {each.name: getattr(options, each.name) for each in fields(Goal)}
    # The option ``at_least`` is None if it is not set, and a goal has a number.
    return Goal(**values | {"at_least": options.at_least or 0})


def _positive(fitted: Fitted, options: DecideOptions) -> Any:
    """The class whose threshold is chosen; None if each class or label gets a threshold."""
    if fitted.is_multilabel or options.min_precision is not None:
        return None
    return class_named(options.positive, fitted.classes, setting="positive")


def _with_label_limits(fitted: Fitted, options: DecideOptions) -> Decision:
    """The model's own thresholds, with new ``at_least`` and ``at_most``."""
    # A label whose log-odds are above 0 is more probable than not.
    decision = fitted.decision or Decision(dict.fromkeys(fitted.classes.tolist(), 0.0))
    # Measurements were made with the old limits, and are left out.
    criteria = {name: value for name, value in decision.evidence.items() if name in _CRITERIA}
    changes: dict[str, Any] = {"evidence": criteria, **options.label_limits}
    return replace(decision, **changes)
