"""Words of the command line as values of the library."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import Any

import typer
from numpy.typing import NDArray

from textnb.errors import ParameterError, SourceError
from textnb.estimators.texts import text_kinds
from textnb.jobs.models import TABLES as TABLE_MODELS
from textnb.jobs.models import estimators
from textnb.text.tokens import Tokenizer

_OF_TEXT = ("text", "ngrams", "analyzer", "pattern", "sklearn_tokens", "lowercase", "normalize",
            "strip_accents", "stop_words", "field_prefix", "min_df", "max_df", "max_features",
            "binary", "memory_limit", "weight")
_OF_TABLE = ("features",)


def given(context: typer.Context) -> dict[str, Any]:
    """The options that were typed."""
    return {name: value for name, value in context.params.items()
            if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"}


def check_options(model: str, given: dict[str, Any]) -> None:
    """Refuse a model that is not known, and an option that it does not have."""
    if model not in estimators():
        raise ParameterError.unknown_choice("--model", model, [*estimators()])
    of_tables = model in TABLE_MODELS
    for name in given:
        models = _models_with(name) or tuple(estimators())
        if name in (_OF_TEXT if of_tables else _OF_TABLE):
            models = tuple(text_kinds()) if of_tables else tuple(TABLE_MODELS)
        if model not in models:
            if name == "alpha" and model in _models_with("l"):
                raise ParameterError(f"the smoothing parameter of --model {model} is --l; --alpha "
                                     "belongs to --model rda")
            option = "--uniform-prior" if name == "fit_prior" else f"--{name.replace('_', '-')}"
            raise ParameterError(f"{option} belongs to --model {', '.join(models)}; "
                                 f"got --model {model}")


def text_estimator(model: str, given: dict[str, Any]) -> Any:
    """The estimator of a text model, its parameters checked before documents are read."""
    parameters = _parameters(model, given)
    if "l" in parameters:
        parameters["l"] = _smoothing(parameters["l"])
    chosen = text_kinds()[model](**parameters)
    chosen.check_settings(1, 1)
    return chosen


def table_estimator(model: str, given: dict[str, Any]) -> Any:
    """The estimator of a model of feature tables, its parameters checked."""
    parameters = _parameters(model, given)
    if "shrinkage" in parameters and parameters["shrinkage"] != "auto":
        parameters["shrinkage"] = _numbers("--shrinkage", parameters["shrinkage"])
    for name in ("alpha", "gamma"):
        if name in parameters:
            parameters[name] = _numbers(f"--{name}", parameters[name])
    chosen = TABLE_MODELS[model](**parameters)
    chosen.check_settings(1, 2)
    return chosen


def _parameters(model: str, given: dict[str, Any]) -> dict[str, Any]:
    parameters = {name: value for name, value in given.items()
                  if model in _models_with(name)}
    if "class_weight" in parameters:
        parameters["class_weight"] = _class_weight(parameters["class_weight"])
    return parameters


def _models_with(parameter: str) -> tuple[str, ...]:
    """The models that have a parameter. To take it for others and ignore it would mislead."""
    return tuple(kind for kind, estimator in estimators().items()
                 if parameter in signature(estimator).parameters)


def _class_weight(values: Iterable[str]) -> dict[str, float] | str:
    """"balanced", or a weight for each label that is named."""
    values = list(values)
    if values == ["balanced"]:
        return "balanced"
    weights: dict[str, float] = {}
    for value in values:
        label, found, weight = value.rpartition("=")
        try:
            number = float(weight)
        except ValueError:
            found = ""
        if not found or label in weights:
            raise ParameterError.out_of_range(
                "--class-weight", "balanced, or label=weight, once for each label", value)
        weights[label] = number
    return weights


def _smoothing(value: str) -> float | str:
    try:
        return value if value == "auto" else float(value)
    except ValueError:
        raise ParameterError.out_of_range("--l", "a number, or auto", value) from None


def _numbers(option: str, value: str) -> float | list[float]:
    try:
        numbers = [float(part) for part in value.split(",")]
    except ValueError:
        raise ParameterError.out_of_range(option, "a number, or several such as 0.1,0.5",
                                          value) from None
    return numbers[0] if len(numbers) == 1 else numbers


def tokenizer(sklearn: bool, *, pattern: str | None, **others: Any) -> Tokenizer:
    if sklearn and pattern is not None:
        raise ParameterError("--sklearn-tokens and --pattern exclude each other")
    if sklearn:
        return Tokenizer.sklearn(**others)
    return Tokenizer(**others) if pattern is None else Tokenizer(pattern=pattern, **others)


def ngram_range(value: str) -> tuple[int, int]:
    try:
        numbers = [int(part) for part in value.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 2:
        raise ParameterError.out_of_range("--ngrams", "two numbers, such as 1,2", value)
    return numbers[0], numbers[1]


def limit(option: str, value: str) -> int | float:
    """A count (2) or a share (0.01)."""
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        raise ParameterError.out_of_range(
            option, "a count (2) or a share of documents (0.01)", value) from None


def stop_words(path: str | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        with open(path, encoding="utf-8") as file:
            return tuple(line.strip() for line in file if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError.unreadable(path, error) from None


def as_label(value: str, classes: NDArray[Any]) -> Any:
    """The class whose name was typed."""
    return {str(name): name for name in classes.tolist()}.get(value, value)
