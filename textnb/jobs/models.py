"""The models that a job can name, and their settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from textnb.errors import ParameterError, suggestion
from textnb.models.known import all_models
from textnb.runtime.gone import SETTINGS, gone
from textnb.runtime.settings import check_smoothing_name
from textnb.text.tokens import Tokenizer

# Settings of the tokenizer, in Python and on the command line.
_OF_TOKENIZER = {field.name for field in fields(Tokenizer)} | {"ngrams", "ngram", "sklearn"}


def model_of(kind: str, parameters: Mapping[str, Any]) -> Any:
    """Make the model of a kind, and check its settings before rows are read.

    Raises
    ------
    ParameterError
        If a setting is not known, or out of its range.
    """
    own = all_models()[kind]
    _check_names(kind, own.name, parameters, [field.name for field in fields(own)])
    model = own(**parameters)
    model.check(1, 2)
    return model


def _check_names(
    kind: str, name: str, parameters: Mapping[str, Any], known: Collection[str]
) -> None:
    """ParameterError for settings that a kind does not have."""
    check_smoothing_name(name, parameters, known)
    unknown = [name for name in parameters if name not in known]
    if unknown:
        keys = sorted(known)
        of_tokenizer = [name for name in unknown if name in _OF_TOKENIZER]
        raise ParameterError("; ".join([
            *(gone(name, SETTINGS[name]) if name in SETTINGS else
              f"{name}: no such key{suggestion(name, [*keys, 'kind'])}" for name in unknown),
            *(["n-grams, patterns and the like are keys of its tokenizer: tokenizer = "
               "{ ngram_range = [1, 2] }"] if of_tokenizer else []),
            f"the settings of the kind {kind} are {', '.join(keys)}"]))


def tokenizer_of(settings: Mapping[str, Any]) -> Tokenizer:
    """Make the tokenizer from settings that a file has."""
    plain = dict(settings)
    if plain.pop("sklearn", False):
        return Tokenizer.sklearn(**plain)
    return Tokenizer.from_dict(plain)
