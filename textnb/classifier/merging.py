"""Whether two text models can be added."""

from __future__ import annotations

import warnings
from typing import Any

from textnb.bayes.statistics import is_auto
from textnb.classifier.answering import MERGED_SINCE, OTHER_CLASSES
from textnb.classifier.limiting import check_unpruned
from textnb.errors import ParameterError
from textnb.manifest import plain


def check_alike(one: Any, other: Any) -> float | None:
    """The ``l`` that was chosen for both, where it was; ParameterError where they do not add."""
    for model in (one, other):
        check_unpruned(model.pruned_, "a sum")
    kinds = [type(model.classes_.tolist()[0]).__name__ for model in (one, other)]
    if kinds[0] != kinds[1]:
        raise ParameterError(f"models differ in the type of their labels: {kinds[0]} and "
                             f"{kinds[1]}; only models of the same type add")
    mine, theirs = _settings(one), _settings(other)
    for name in mine:
        if plain(mine[name]) != plain(theirs.get(name)):
            raise ParameterError(f"models differ in {name}: {mine[name]!r} and "
                                 f"{theirs.get(name)!r}; only models of the same settings add")
    chosen = [model.estimator_.l_ if is_auto(model.estimator_.l) else None
              for model in (one, other)]
    if chosen[0] != chosen[1]:
        raise ParameterError(f"models differ in the l that was chosen for them: {chosen[0]:g} "
                             f"and {chosen[1]:g}; fit them with one number for l, and they add")
    return chosen[0]


def carry_choices(one: Any, other: Any, merged: Any) -> None:
    """Keep the calibration and the decision of the first of two models that has any, as stale."""
    chosen = next((model for model in (one, other)
                   if model.calibration_ is not None or model.decision_ is not None), None)
    if chosen is None:
        return
    if chosen.calibration_ is not None:
        merged.set_calibration(chosen.calibration_.as_stale(MERGED_SINCE))
    decision = chosen.decision_
    if decision is not None and set(decision.thresholds) != set(merged.classes_.tolist()):
        warnings.warn(OTHER_CLASSES, stacklevel=3)
    elif decision is not None:
        merged.set_decision(decision.as_stale(MERGED_SINCE))


def _settings(model: Any) -> dict[str, Any]:
    """All parameters, those of the estimator that is used by default too."""
    estimator = model.estimator_
    return {**model.get_params(deep=False), "estimator": type(estimator).__name__,
            # Classes of one name, or a subclass of the same settings, may do something else.
            "the estimator's class": type(estimator),
            "the tokenizer's class": type(model.tokenizer),
            **{f"estimator__{name}": value for name, value in estimator.get_params().items()}}
