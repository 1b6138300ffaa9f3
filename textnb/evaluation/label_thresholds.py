"""Thresholds of labels, from scores of documents that the model has not learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.bayes.forms import Floats
from textnb.bayes.label_thresholds import (
    cheapest_threshold,
    micro_f1_thresholds,
    steady_threshold,
)
from textnb.errors import ParameterError
from textnb.evaluation.binomial import check_share, trials_needed
from textnb.evaluation.decisions import check_costs, check_method
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.precision import lowest_threshold_of_precision
from textnb.runtime.caller import warn_caller

BY = ("f1", "micro-f1")
_LOWEST = -1e300


def check_label_settings(
    *, by: Any = None, min_precision: Any = None, confidence: Any = 0.95, costs: Any = None,
    method: Any = None,
) -> None:
    """Check the settings of `choose_class_thresholds` for lists of labels.

    Raises
    ------
    ParameterError
        As `choose_class_thresholds`.
    """
    goals = [name for name, value in (
        ("by", by), ("min_precision", min_precision), ("costs", costs)) if value is not None]
    if len(goals) != 1:
        raise ParameterError.naming(
            "give one of {by}, {min_precision} and {costs}; got {got}",
            got=" and ".join(goals) or "none")
    check_share("confidence", confidence)
    check_method(method, costs)
    if costs is not None:
        check_costs(costs)
    elif min_precision is not None:
        check_share("min_precision", min_precision)
    elif by not in BY:
        raise ParameterError.unknown_choice("by", by, BY)


def choose_label_thresholds(
    held: HeldOut, *, by: str | None = None, min_precision: float | None = None,
    confidence: float = 0.95, costs: tuple[float, float] | None = None,
    method: str | None = None, calibration: Calibration | None = None, at_least: int = 0,
    at_most: int | None = None,
) -> Decision:
    """Choose a threshold for each label: see `choose_class_thresholds`.

    Parameters
    ----------
    calibration : Calibration, optional
        For the method "theoretical" alone: thresholds are on scores that are not calibrated.

    Raises
    ------
    ParameterError
        As `choose_class_thresholds`.
    """
    check_label_settings(by=by, min_precision=min_precision, confidence=confidence, costs=costs,
                         method=method)
    request: dict[str, Any] = {}
    if min_precision is not None:
        thresholds, entries = _of_precision(held, min_precision, confidence)
        request = {"min_precision": min_precision, "confidence": confidence, "labels": entries}
    elif costs is not None:
        costs = float(costs[0]), float(costs[1])
        request = {"costs": list(costs), "rule": method or "empirical"}
        thresholds = (_theoretical(held, costs, calibration) if method == "theoretical"
                      else _each(held, lambda scores, has: cheapest_threshold(scores, has, *costs)))
    else:
        request = {"by": by}
        thresholds = (micro_f1_thresholds(held.scores, held.actual) if by == "micro-f1"
                      else _each(held, steady_threshold))
    decision = Decision(dict(zip(held.classes.tolist(), thresholds.tolist(), strict=True)),
                        at_least=at_least, at_most=at_most)
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


def _of_precision(
    held: HeldOut, least: float, confidence: float
) -> tuple[Floats, list[Mapping[str, Any]]]:
    entries: list[Mapping[str, Any]] = []
    for k, label in enumerate(held.classes.tolist()):
        scores: Floats = held.scores[:, k]
        # Most documents have no chance of the label, and a search among all would cost confidence.
        # How many are searched must not depend on which of them have the label.
        number = max(2 * int((scores > 0).sum()), trials_needed(1.0 - least, confidence))
        floor = max(float(np.sort(scores)[-min(number, len(scores))]), _LOWEST)
        entries.append(lowest_threshold_of_precision(
            label, scores, held.actual[:, k], least, confidence, floor))
    never = [entry["label"] for entry in entries if entry["threshold"] is None]
    if never:
        more = f" and {len(never) - 10:,} more" if len(never) > 10 else ""
        warn_caller(f"these labels are never predicted, as a precision of {least:g} can't be "
                    f"shown: {', '.join(map(repr, never[:10]))}{more}")
    return np.array([math.inf if entry["threshold"] is None else entry["threshold"]
                     for entry in entries]), entries
