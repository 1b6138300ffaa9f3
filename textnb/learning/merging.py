"""The sum of two fitted models."""

from __future__ import annotations

from typing import Any

from textnb.errors import ParameterError
from textnb.learning.fitted import Fitted, keep_choices
from textnb.learning.fitting import counts_that_add, fit_from_counts
from textnb.learning.parameters import to_json_value

MERGED_SINCE = "it was chosen for one of the models that were added"


def merge(one: Fitted, other: Fitted) -> Fitted:
    """The model of both models' documents, as one fit on all of them would give it.

    Its calibration and decision are those of the first of the two that has any, marked stale.

    Raises
    ------
    ParameterError
        If they differ in a setting, or do not add.
    """
    counts = [counts_that_add(model) for model in (one, other)]
    chosen = _check_alike(one, other)
    merged = fit_from_counts(one.settings, counts[0] + counts[1], l=chosen)
    choosing = next((model for model in (one, other)
                     if model.calibration is not None or model.decision is not None), None)
    return merged if choosing is None else keep_choices(choosing, merged, MERGED_SINCE)


def _check_alike(one: Fitted, other: Fitted) -> float | None:
    """The ``l`` that was chosen for both, or None; ParameterError if they do not add."""
    kinds = [type(model.classes.tolist()[0]).__name__ for model in (one, other)]
    if kinds[0] != kinds[1]:
        raise ParameterError(f"models differ in the type of their labels: {kinds[0]} and "
                             f"{kinds[1]}; only models of the same type add")
    mine, theirs = _settings(one), _settings(other)
    for name in mine:
        if to_json_value(mine[name]) != to_json_value(theirs.get(name)):
            raise ParameterError(f"models differ in {name}: {mine[name]!r} and "
                                 f"{theirs.get(name)!r}; only models of the same settings add")
    chosen = [one.chosen_l, other.chosen_l]
    if chosen[0] != chosen[1]:
        raise ParameterError(f"models differ in the l that was chosen for them: {chosen[0]:g} "
                             f"and {chosen[1]:g}; fit them with one number for l, and they add")
    return chosen[0]


def _settings(model: Fitted) -> dict[str, Any]:
    """All parameters, those of the model too."""
    own = model.model
    return {**model.settings.parameters, "estimator": own.name,
            # Classes of one name may do something else.
            "the estimator's class": type(own),
            "the tokenizer's class": type(model.settings.tokenizer),
            **{f"estimator__{name}": value
               for name, value in own.get_params(deep=False).items()}}
