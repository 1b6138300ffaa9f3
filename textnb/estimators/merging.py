"""Whether two text models can be added."""

from __future__ import annotations

from typing import Any

from textnb.errors import ParameterError
from textnb.estimators.fitted import OTHER_CLASSES, Fitted
from textnb.learning.memory_limit import check_unpruned
from textnb.runtime.caller import warn_caller
from textnb.storage.manifest import plain

MERGED_SINCE = "it was chosen for one of the models that were added"


def check_alike(one: Fitted, other: Fitted) -> float | None:
    """The ``l`` that was chosen for both, where it was; ParameterError where they do not add."""
    for model in (one, other):
        check_unpruned(model.pruned, "a sum")
    kinds = [type(model.classes.tolist()[0]).__name__ for model in (one, other)]
    if kinds[0] != kinds[1]:
        raise ParameterError(f"models differ in the type of their labels: {kinds[0]} and "
                             f"{kinds[1]}; only models of the same type add")
    mine, theirs = _settings(one), _settings(other)
    for name in mine:
        if plain(mine[name]) != plain(theirs.get(name)):
            raise ParameterError(f"models differ in {name}: {mine[name]!r} and "
                                 f"{theirs.get(name)!r}; only models of the same settings add")
    chosen = [one.chosen_l, other.chosen_l]
    if chosen[0] != chosen[1]:
        raise ParameterError(f"models differ in the l that was chosen for them: {chosen[0]:g} "
                             f"and {chosen[1]:g}; fit them with one number for l, and they add")
    return chosen[0]


def with_choices(one: Fitted, other: Fitted, merged: Fitted) -> Fitted:
    """The sum with the calibration and decision of the first of two that has any, as stale."""
    chosen = next((model for model in (one, other)
                   if model.calibration is not None or model.decision is not None), None)
    if chosen is None:
        return merged
    calibration, decision = chosen.calibration, chosen.decision
    if calibration is not None:
        calibration = calibration.as_stale(MERGED_SINCE)
    if decision is not None and set(decision.thresholds) != set(merged.classes.tolist()):
        warn_caller(OTHER_CLASSES)
        decision = None
    elif decision is not None:
        decision = decision.as_stale(MERGED_SINCE)
    return merged.answering_with(calibration, decision)


def _settings(model: Fitted) -> dict[str, Any]:
    """All parameters, those of the estimator that is used by default too."""
    estimator = model.settings.estimator
    return {**model.settings.parameters, "estimator": type(estimator).__name__,
            # Classes of one name, or a subclass of the same settings, may do something else.
            "the estimator's class": type(estimator),
            "the tokenizer's class": type(model.settings.tokenizer),
            **{f"estimator__{name}": value for name, value in estimator.get_params().items()}}
