"""Which options of the command line belong to which models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textnb.cli.options import option_of_model
from textnb.errors import ParameterError
from textnb.learning.settings import (
    ColumnSettings,
    LimitSettings,
    foreign_settings,
)
from textnb.models.known import all_models, table_models, text_models
from textnb.runtime.settings import declared
from textnb.text.token_settings import TokenSettings


def check_options(model: str, typed: Mapping[str, Any]) -> None:
    """ParameterError for a model that is not known, or an option that it does not have."""
    kinds = tuple(all_models())
    if model not in kinds:
        raise ParameterError.unknown_choice("--model", model, kinds)
    foreign = foreign_settings(model)
    for name in typed:
        models = _models_with(name) or kinds
        if name in foreign:
            models = tuple(text_models() if model in table_models() else table_models())
        if model not in models:
            if name == "alpha" and model in _models_with("l"):
                raise ParameterError(f"the smoothing parameter of --model {model} is --l; --set "
                                     "alpha belongs to --model rda")
            raise ParameterError(f"{_option(name, typed[name])} belongs to --model "
                                 f"{', '.join(models)}; got --model {model}")


def model_settings(model: str, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a kind of model among the options that were typed."""
    return {name: value for name, value in typed.items() if model in _models_with(name)}


def _models_with(parameter: str) -> tuple[str, ...]:
    """The models that have an option; for others it is refused, as it would have no effect."""
    return tuple(kind for kind, group in all_models().items() if any(
        field.name == parameter and facts.is_option for field, facts in declared(group)))


def _option(name: str, value: Any) -> str:
    """The option that gives a setting a value."""
    groups = (ColumnSettings, TokenSettings, LimitSettings)
    facts = {field.name: facts for group in groups for field, facts in declared(group)}
    if _models_with(name) or (name in facts and facts[name].under):
        return option_of_model(name)
    own = facts[name].names if name in facts else ()
    return own[0].split("/")[0 if value else -1] if own else f"--{name.replace('_', '-')}"
