"""Options of the command line as a tokenizer and an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from inspect import signature
from typing import Any

from numpy.typing import NDArray

from textnb.errors import ParameterError
from textnb.estimators.texts import text_kinds
from textnb.jobs.models import TABLES, estimators, foreign_settings
from textnb.learning.settings import (
    MODELS,
    ColumnSettings,
    LimitSettings,
    TokenSettings,
    declared,
)
from textnb.text.tokens import Tokenizer


def check_options(model: str, given: Mapping[str, Any]) -> None:
    """Refuse a model that is not known, and an option that it does not have."""
    if model not in estimators():
        raise ParameterError.unknown_choice("--model", model, [*estimators()])
    foreign = foreign_settings(model)
    for name in given:
        models = _models_with(name) or tuple(estimators())
        if name in foreign:
            models = tuple(text_kinds()) if model in TABLES else tuple(TABLES)
        if model not in models:
            if name == "alpha" and model in _models_with("l"):
                raise ParameterError(f"the smoothing parameter of --model {model} is --l; --alpha "
                                     "belongs to --model rda")
            raise ParameterError(f"{_option(name)} belongs to --model {', '.join(models)}; "
                                 f"got --model {model}")


def text_estimator(model: str, given: Mapping[str, Any]) -> Any:
    """The estimator of a text model, its parameters checked before documents are read."""
    chosen = text_kinds()[model](**_parameters(model, given))
    chosen.check_settings(1, 1)
    return chosen


def table_estimator(model: str, given: Mapping[str, Any]) -> Any:
    """The estimator of a model of feature tables, its parameters checked."""
    chosen = TABLES[model](**_parameters(model, given))
    chosen.check_settings(1, 2)
    return chosen


def tokenizer(tokens: TokenSettings, given: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of the options that were typed."""
    settings = {field.name: getattr(tokens, field.name) for field in fields(TokenSettings)
                if field.name in given}
    if not given.get("sklearn_tokens"):
        return Tokenizer(**settings)
    if "pattern" in given:
        raise ParameterError("--sklearn-tokens and --pattern exclude each other")
    return Tokenizer.sklearn(**settings)


def as_label(value: str, classes: NDArray[Any]) -> Any:
    """The class whose name was typed."""
    return {str(name): name for name in classes.tolist()}.get(value, value)


def _parameters(model: str, given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if model in _models_with(name)}


def _models_with(parameter: str) -> tuple[str, ...]:
    """The models that have a parameter. To take it for others and ignore it would mislead."""
    return tuple(kind for kind, estimator in estimators().items()
                 if parameter in signature(estimator).parameters)


def _option(name: str) -> str:
    """The option by which a setting is given another value than its default."""
    groups = (ColumnSettings, TokenSettings, LimitSettings, *MODELS.values())
    names = {field.name: facts.names for group in groups for field, facts in declared(group)}
    own = names.get(name, ())
    return own[0].split("/")[-1] if own else f"--{name.replace('_', '-')}"
