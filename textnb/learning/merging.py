"""The sum of two fitted models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textnb.errors import ParameterError
from textnb.learning.fitted import Fitted, keep_choices
from textnb.learning.fitting import fit_from_counts, require_counts
from textnb.learning.parameters import to_json_value

MERGED_SINCE = "it was chosen for one of the models that were added"


def merge(one: Fitted, other: Fitted) -> Fitted:
    """The model that one fit on the documents of both models would give.

    Its calibration and decision are copied, marked stale, from the first model that has one of
    them.

    Raises
    ------
    ParameterError
        If the models differ in a setting, or their counts can't be added.
    """
    counts = [require_counts(model) for model in (one, other)]
    _check_same_settings(one, other)
    merged = fit_from_counts(one.settings, counts[0] + counts[1], l=one.chosen_l)
    # Answers have the form in which labels were given, if that was the same.
    merged = replace(
        merged, indicator=one.indicator if one.indicator == other.indicator else None,
        has_separate_labels=one.has_separate_labels and other.has_separate_labels)
    with_choices = next((model for model in (one, other)
                         if model.calibration is not None or model.decision is not None), None)
    return merged if with_choices is None else keep_choices(with_choices, merged, MERGED_SINCE)


def _check_same_settings(one: Fitted, other: Fitted) -> None:
    """Raise ParameterError if models differ in a setting, a chosen ``l``, or the type of labels."""
    types = [type(model.classes.tolist()[0]).__name__ for model in (one, other)]
    if types[0] != types[1]:
        raise ParameterError(f"models differ in the type of their labels: {types[0]} and "
                             f"{types[1]}; only models of the same type add")
    settings, other_settings = _all_settings(one), _all_settings(other)
    for name, value in settings.items():
        other_value = other_settings.get(name)
        if to_json_value(value) != to_json_value(other_value):
            raise ParameterError(f"models differ in {name}: {value!r} and {other_value!r}; only "
                                 "models of the same settings add")
    if one.chosen_l != other.chosen_l:
        raise ParameterError(
            f"models differ in the l that was chosen for them: {one.chosen_l:g} and "
            f"{other.chosen_l:g}; fit them with one number for l, and they add")


def _all_settings(fitted: Fitted) -> dict[str, Any]:
    """The parameters of the classifier and of its estimator, and their classes, by name."""
    estimator = fitted.model
    return {**fitted.settings.parameters, "estimator": estimator.name,
            # Another class of the same name may compute something else.
            "the estimator's class": type(estimator),
            "the tokenizer's class": type(fitted.settings.tokenizer),
            **{f"estimator__{name}": value
               for name, value in estimator.get_params(deep=False).items()}}
