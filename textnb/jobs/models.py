"""The models that a job can name, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from textnb.bayes.parameters import check_smoothing_name
from textnb.errors import ParameterError, suggestion
from textnb.estimators.discriminants import LinearDiscriminantAnalysis, NearestCentroid
from textnb.estimators.gaussian import GaussianNB
from textnb.estimators.quadratic import (
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
)
from textnb.estimators.texts import text_kinds
from textnb.text.tokens import Tokenizer

TABLES: dict[str, type[Any]] = {
    "gaussian": GaussianNB, "lda": LinearDiscriminantAnalysis,
    "qda": QuadraticDiscriminantAnalysis, "rda": RegularizedDiscriminantAnalysis,
    "centroid": NearestCentroid}

# Settings of the tokenizer, in Python and on the command line.
_OF_TOKENIZER = {field.name for field in fields(Tokenizer)} | {"ngrams", "ngram", "sklearn"}


def estimators() -> dict[str, type[Any]]:
    """The estimators by kind: of texts, then of tables."""
    return {**text_kinds(), **TABLES}


def estimator_of(kind: str, parameters: Mapping[str, Any]) -> Any:
    """Make the estimator of a kind, and check its settings before rows are read.

    Raises
    ------
    ParameterError
        If a setting is not known, or out of its range.
    """
    own = estimators()[kind]
    known = own().get_params()
    check_smoothing_name(own.__name__, parameters, known)
    unknown = [name for name in parameters if name not in known]
    if unknown:
        keys = sorted(known)
        of_tokenizer = [name for name in unknown if name in _OF_TOKENIZER]
        raise ParameterError("; ".join([
            *(f"{name}: no such key{suggestion(name, [*keys, 'kind'])}" for name in unknown),
            *(["n-grams, patterns and the like are keys of its tokenizer: tokenizer = "
               "{ ngram_range = [1, 2] }"] if of_tokenizer else []),
            f"the settings of the kind {kind} are {', '.join(keys)}"]))
    estimator = own(**parameters)
    estimator.check_settings(1, 2)
    return estimator


def tokenizer_of(settings: Mapping[str, Any]) -> Tokenizer:
    """Make the tokenizer from settings that a file has."""
    plain = dict(settings)
    if plain.pop("sklearn", False):
        return Tokenizer.sklearn(**plain)
    return Tokenizer.from_dict(plain)
