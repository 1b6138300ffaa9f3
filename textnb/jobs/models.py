"""The models that a job can name, and their settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from textnb.bayes.event_model import EventModel
from textnb.bayes.known import text_models
from textnb.bayes.parameters import check_smoothing_name
from textnb.errors import ParameterError, suggestion
from textnb.learning.settings import TABLE_MODELS
from textnb.text.tokens import Tokenizer

# Settings of the tokenizer, in Python and on the command line.
_OF_TOKENIZER = {field.name for field in fields(Tokenizer)} | {"ngrams", "ngram", "sklearn"}


def kinds() -> list[str]:
    """The kinds of models: of texts, then of tables."""
    return [*text_models(), *TABLE_MODELS]


def table_estimators() -> dict[str, type[Any]]:
    """The estimators of feature tables by kind."""
    # Imported here: only models of feature tables need scikit-learn.
    from textnb.estimators import discriminants, gaussian, quadratic

    return {
        "gaussian": gaussian.GaussianNB, "lda": discriminants.LinearDiscriminantAnalysis,
        "qda": quadratic.QuadraticDiscriminantAnalysis,
        "rda": quadratic.RegularizedDiscriminantAnalysis,
        "centroid": discriminants.NearestCentroid}


def text_model(kind: str, parameters: Mapping[str, Any]) -> EventModel:
    """Make the event model of a kind of texts, and check its settings before rows are read.

    Raises
    ------
    ParameterError
        If a setting is not known, or out of its range.
    """
    own = text_models()[kind]
    _check_names(kind, own.name, parameters, [field.name for field in fields(own)])
    model = own(**parameters)
    model.check(1, 2)
    return model


def table_estimator(kind: str, parameters: Mapping[str, Any]) -> Any:
    """Make the estimator of a kind of tables, and check its settings before rows are read.

    Raises
    ------
    ParameterError
        If a setting is not known, or out of its range.
    """
    own = table_estimators()[kind]
    _check_names(kind, own.__name__, parameters, own().get_params())
    estimator = own(**parameters)
    estimator.check_settings(1, 2)
    return estimator


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
            *(f"{name}: no such key{suggestion(name, [*keys, 'kind'])}" for name in unknown),
            *(["n-grams, patterns and the like are keys of its tokenizer: tokenizer = "
               "{ ngram_range = [1, 2] }"] if of_tokenizer else []),
            f"the settings of the kind {kind} are {', '.join(keys)}"]))


def tokenizer_of(settings: Mapping[str, Any]) -> Tokenizer:
    """Make the tokenizer from settings that a file has."""
    plain = dict(settings)
    if plain.pop("sklearn", False):
        return Tokenizer.sklearn(**plain)
    return Tokenizer.from_dict(plain)
