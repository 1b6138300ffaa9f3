"""Makes a tokenizer and a model from the options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from numpy.typing import NDArray

from textnb.errors import ParameterError
from textnb.learning.settings import (
    ColumnSettings,
    LimitSettings,
    foreign_settings,
)
from textnb.models.known import all_models, table_models, text_models
from textnb.runtime.settings import declared
from textnb.text.token_settings import TokenSettings
from textnb.text.tokens import Tokenizer


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
                raise ParameterError(f"the smoothing parameter of --model {model} is --l; --alpha "
                                     "belongs to --model rda")
            raise ParameterError(f"{_option(name, typed[name])} belongs to --model "
                                 f"{', '.join(models)}; got --model {model}")


def model_of(model: str, typed: Mapping[str, Any]) -> Any:
    """The model of a kind, its parameters checked before rows are read."""
    chosen = all_models()[model](**{
        name: value for name, value in typed.items() if model in _models_with(name)})
    chosen.check(1, 2)
    return chosen


def tokenizer(tokens: TokenSettings, typed: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of the options that were typed."""
    settings = {field.name: getattr(tokens, field.name) for field in fields(TokenSettings)
                if field.name in typed}
    if not typed.get("sklearn_tokens"):
        return Tokenizer(**settings)
    if "pattern" in typed:
        raise ParameterError("--sklearn-tokens and --pattern exclude each other")
    return Tokenizer.sklearn(**settings)


def as_label(value: str, classes: NDArray[Any], option: str) -> Any:
    """The class whose name was typed.

    Parameters
    ----------
    value : str
    classes : (n_classes,)
    option : str
        The option, for errors.

    Raises
    ------
    ParameterError
        If there is no such class.
    """
    names = {str(name): name for name in classes.tolist()}
    if value not in names:
        raise ParameterError.unknown_choice(option, value, names)
    return names[value]


def _models_with(parameter: str) -> tuple[str, ...]:
    """The models that have an option; for others it is refused, as it would have no effect."""
    return tuple(kind for kind, group in all_models().items() if any(
        field.name == parameter and facts.is_option for field, facts in declared(group)))


def _option(name: str, value: Any) -> str:
    """The option that gives a setting a value."""
    groups = (ColumnSettings, TokenSettings, LimitSettings, *all_models().values())
    names = {field.name: facts.names for group in groups for field, facts in declared(group)}
    own = names.get(name, ())
    return own[0].split("/")[0 if value else -1] if own else f"--{name.replace('_', '-')}"
