"""The checked settings of a classifier of texts, as copies that its owner can't change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from textnb.bayes.counts import Counts
from textnb.errors import Mention, ParameterError, VocabularyError
from textnb.learning.memory_limit import check_memory_limit, memory_size
from textnb.learning.parameters import DEFAULTS, copied, default_terms, is_frame
from textnb.learning.settings import MAX_WORDS, UNLABELLED, LimitSettings
from textnb.models.base import Model
from textnb.runtime.settings import check_settings, check_values, is_truth
from textnb.text.counting import CountSpec
from textnb.text.tokens import Tokenizer
from textnb.text.vocabulary import Limits, vocabulary_series


@dataclass(frozen=True, eq=False)
class TextSettings:
    """The settings with which a model of texts is fitted.

    Attributes
    ----------
    parameters : dict
        The classifier's, without its estimator: what a model file keeps.
    model : Model
    columns : list of str
        The text columns.
    limits : Limits
    vocabulary : polars.Series or None
        The sorted terms, if they are not chosen from documents.
    by_default : set of str
        The parameters that were not given: "tokenizer" and "subwords", which the model chose (see
        `textnb.learning.parameters.default_terms`), "vectors", which unlabelled texts gave, and
        "vector_weight", which the rows chose.
    """

    parameters: dict[str, Any]
    model: Model
    columns: list[str]
    limits: Limits
    vocabulary: pl.Series | None
    by_default: frozenset[str] = frozenset()

    @classmethod
    def of(cls, model: Model, **parameters: Any) -> TextSettings:
        """The settings of a model and a classifier's parameters, checked.

        Parameters
        ----------
        model : Model
        **parameters
            As `TextClassifier` has them; those that are missing have its defaults.

        Raises
        ------
        ParameterError
            If one is out of its range, or two exclude each other.
        """
        for name in parameters:
            if name not in DEFAULTS:
                raise ParameterError.unknown_choice("a setting of texts", name, [*DEFAULTS])
        parameters = {name: copied(value) for name, value in {**DEFAULTS, **parameters}.items()}
        check_settings(model)
        chosen = {} if parameters["tokenizer"] is not None else {
            name: value for name, value in default_terms(model).items()
            if parameters[name] is None}
        parameters |= chosen
        parameters["memory_limit"] = memory_size(parameters["memory_limit"])
        tokenizer, binary = parameters["tokenizer"], parameters["binary"]
        if not isinstance(tokenizer, Tokenizer):
            raise ParameterError.out_of_range("tokenizer", "a Tokenizer", tokenizer)
        if not is_truth(binary):
            raise ParameterError.out_of_range("binary", "True or False", binary)
        limits = Limits(*(parameters[name] for name in ("min_df", "max_df", "max_features")))
        vocabulary = parameters["vocabulary"]
        check_memory_limit(parameters["memory_limit"], model, vocabulary is not None)
        check_sharing(parameters, model)
        if vocabulary is not None and limits != Limits():
            raise ParameterError.naming(
                "a given vocabulary is not limited: leave {min_df}, {max_df} and {max_features} at "
                "their defaults")
        columns = columns_of(parameters["text"], parameters["label"])
        # Raises an error if the tokenizer does not fit the columns.
        tokenizer.expr(columns)
        return cls(parameters, model, columns, limits,
                   None if vocabulary is None else vocabulary_series(vocabulary),
                   frozenset(chosen))

    @property
    def classifier_parameters(self) -> dict[str, Any]:
        """The parameters of a classifier with these settings: None for what its model chooses."""
        # Which columns hold tokens was chosen by the rows, and not by the model.
        chosen = () if self.token_columns else self.by_default
        return {**self.parameters, **dict.fromkeys(chosen)}

    @property
    def tokenizer(self) -> Tokenizer:
        tokenizer: Tokenizer = self.parameters["tokenizer"]
        return tokenizer

    @property
    def token_columns(self) -> list[str]:
        """The text columns that hold lists of tokens."""
        return self.tokenizer.columns_of_tokens(self.columns)

    def with_token_columns(self, columns: Sequence[str]) -> TextSettings:
        """Settings for text columns of which these hold lists of tokens.

        Lists are counted as they are, if no tokenizer was given.

        Raises
        ------
        ParameterError
            If the tokenizer can't read lists: see `Tokenizer`.
        """
        tokenizer = Tokenizer() if "tokenizer" in self.by_default else self.tokenizer
        tokenizer = tokenizer.with_params(token_columns=tuple(columns))
        settings = self.without_parts()
        # Raises an error if the tokenizer can't read lists.
        tokenizer.expr(self.columns)
        return settings.with_parameters(tokenizer=tokenizer)

    def with_parameters(self, *by_default: str, **parameters: Any) -> TextSettings:
        """Settings with other values of parameters, some of which were not given but chosen."""
        return replace(self, parameters={**self.parameters, **parameters},
                       by_default=self.by_default | {*by_default})

    def without_parts(self) -> TextSettings:
        """Settings without the parts of words that are there by default.

        Raises
        ------
        ParameterError
            If they have a weight that was given.
        """
        if "subwords" not in self.by_default:
            return self
        settings = self.with_parameters(subwords=None)
        check_sharing(settings.parameters, self.model)
        return settings

    def with_vector_weight(self, weight: float) -> TextSettings:
        """Settings with a weight of vectors that the rows chose."""
        return self.with_parameters("vector_weight", vector_weight=weight)

    def with_own_vectors(self) -> TextSettings:
        """Settings with vectors that are learned from unlabelled texts."""
        if self.parameters["vectors"] is not None:
            return self
        return self.with_parameters("vectors", vectors=UNLABELLED)

    def without_own_vectors(self) -> TextSettings:
        """Settings without vectors, for a fit that has no unlabelled texts to learn them from."""
        return self.with_parameters(vectors=None, vector_weight=None)

    def of_file(self) -> TextSettings:
        """Settings of a file, in which vectors of unlabelled texts may have been the default."""
        own = self.parameters["vectors"] == UNLABELLED
        return self.with_parameters("vectors", "vector_weight") if own else self

    @property
    def shares_weights(self) -> bool:
        """Whether words share weights, by their parts or by vectors."""
        return self.parameters["subwords"] is not None or self.parameters["vectors"] is not None

    @property
    def max_new_words(self) -> int:
        """The maximum number of words that get a weight only by what they share with others."""
        lexicon = self.parameters["lexicon"]
        return MAX_WORDS if lexicon is None else int(lexicon)

    @property
    def label(self) -> str:
        return str(self.parameters["label"])

    @property
    def binary(self) -> bool:
        return bool(self.parameters["binary"])

    @property
    def memory_limit(self) -> int | None:
        memory = self.parameters["memory_limit"]
        return None if memory is None else int(memory)

    @property
    def presence_above(self) -> float | None:
        """The count above which a term counts as present; None if occurrences count."""
        return self.model.presence_above(self.binary)

    @property
    def count_spec(self) -> CountSpec:
        """How documents are counted."""
        return CountSpec(self.tokenizer, self.columns, self.label, self.limits,
                         self.presence_above, self.binary)

    def with_column(self, statistics: Counts) -> Counts:
        """The counts of the terms that get a column."""
        if self.vocabulary is not None:
            return statistics.over(self.vocabulary)
        if not statistics.n_features:
            raise VocabularyError.no_tokens(self.tokenizer.pattern, statistics.documents)
        return statistics.select(self.limits.within(statistics))


def check_sharing(parameters: dict[str, Any], model: Model) -> None:
    """Raise ParameterError if words can't share weights by this model or tokenizer."""
    check_values(LimitSettings, {name: parameters[name] for name in (
        "subwords", "sharing", "vector_weight", "lexicon")})
    vectors = parameters["vectors"]
    if vectors is not None and not (
            isinstance(vectors, (str, os.PathLike)) or is_frame(vectors)):
        raise ParameterError.out_of_range(
            "vectors", 'a table with the columns "term" and "vector", a path, "wordllama", or '
            '"unlabelled"', vectors)
    if parameters["subwords"] is None and parameters["sharing"]:
        raise ParameterError.naming("{sharing} is the weight of {subwords}, and there are none")
    if parameters["vector_weight"] and not model.learns_shared:
        raise ParameterError.naming("{vector_weight} is for NBLinear, whose weights are learned")
    check_words(parameters, model)


def check_words(parameters: dict[str, Any], model: Model) -> None:
    """Raise ParameterError if what words share does not go with the model or tokenizer."""
    for name in ("subwords", "vectors"):
        if parameters[name] is None:
            continue
        shared = Mention(name)
        if not model.learns_shared:
            raise ParameterError.naming(
                "{shared} is for NBLinear, whose weights are learned; {model} would count the "
                "evidence of a word again with each word that is like it", shared=shared,
                model=model.name)
        if parameters["tokenizer"].analyzer != "word":
            raise ParameterError.naming(
                "{shared} is for words: leave {analyzer} at 'word'", shared=shared)
        if np.ndim(model.l):
            raise ParameterError.naming(
                "with {shared}, {l} can't have one value for each term, as what words share has "
                "none: give one number for {l}", shared=shared)


def columns_of(text: Any, label: Any) -> list[str]:
    """The text columns, one or several.

    Raises
    ------
    ParameterError
        If they are not names of different columns, or the label's is among them.
    """
    columns = text_names(text)
    if not isinstance(label, str) or label in columns:
        raise ParameterError.out_of_range("label", "a column that is not a text column", label)
    return columns


def text_names(text: Any) -> list[str]:
    """The text columns, one or several; ParameterError if they are not different names."""
    columns = [text] if isinstance(text, str) else (
        list(text) if isinstance(text, (list, tuple)) else [])
    if not columns or not all(isinstance(name, str) for name in columns) or (
            len(set(columns)) < len(columns)):
        raise ParameterError.out_of_range("text", "a column, or several different ones", text)
    return columns
