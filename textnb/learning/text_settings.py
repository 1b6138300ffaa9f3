"""The settings of a classifier of texts, checked and copied, so that they can't change."""

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
from textnb.learning.parameters import DEFAULTS, default_term_settings, detach, is_frame
from textnb.learning.settings import MAX_LEXICON, UNLABELLED, LimitSettings
from textnb.models.base import Model
from textnb.runtime.settings import check_settings, check_values, is_truth
from textnb.runtime.unicode import is_unicode
from textnb.text.counting import CountSpec
from textnb.text.tokens import Tokenizer
from textnb.text.vocabulary import Limits, vocabulary_series


@dataclass(frozen=True, eq=False)
class TextSettings:
    """The settings with which a model of texts is fitted.

    Attributes
    ----------
    parameters : dict
        The classifier's parameters without its estimator, which a model file stores.
    model : Model
    columns : list of str
        The text columns.
    limits : Limits
    vocabulary : polars.Series or None
        The sorted terms, if they were given and are not chosen from documents.
    by_default : set of str
        The parameters that are None in the classifier, and were chosen: "tokenizer" and "subwords"
        by the model (see `textnb.learning.parameters.default_term_settings`), "vectors" because
        there are unlabelled texts, and "vector_weight" by the rows.
    """

    parameters: dict[str, Any]
    model: Model
    columns: list[str]
    limits: Limits
    vocabulary: pl.Series | None
    by_default: frozenset[str] = frozenset()

    @classmethod
    def of(cls, model: Model, **parameters: Any) -> TextSettings:
        """Check the parameters of a classifier with this model.

        Parameters
        ----------
        model : Model
        **parameters
            Parameters of `TextClassifier`, by default as there.

        Raises
        ------
        ParameterError
            If one is out of its range, or two exclude each other.
        """
        for name in parameters:
            if name not in DEFAULTS:
                raise ParameterError.unknown_choice("a setting of texts", name, [*DEFAULTS])
        parameters = {name: detach(value) for name, value in {**DEFAULTS, **parameters}.items()}
        check_settings(model)
        model_defaults = {} if parameters["tokenizer"] is not None else {
            name: value for name, value in default_term_settings(model).items()
            if parameters[name] is None}
        parameters |= model_defaults
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
            raise ParameterError.naming_settings(
                "a given vocabulary is not limited: leave {min_df}, {max_df} and {max_features} at "
                "their defaults")
        columns = text_columns_of(parameters["text"], parameters["label"])
        # Raises an error if the tokenizer does not fit the columns.
        tokenizer.expr(columns)
        return cls(parameters, model, columns, limits,
                   vocabulary=None if vocabulary is None else vocabulary_series(vocabulary),
                   by_default=frozenset(model_defaults))

    @property
    def classifier_parameters(self) -> dict[str, Any]:
        """The parameters of a classifier with these settings: None if they were chosen."""
        # A classifier without a tokenizer takes the default one, which does not read columns of
        # tokens. So with such columns, each parameter keeps its chosen value.
        unset = () if self.token_columns else self.by_default
        return {**self.parameters, **dict.fromkeys(unset)}

    @property
    def tokenizer(self) -> Tokenizer:
        tokenizer: Tokenizer = self.parameters["tokenizer"]
        return tokenizer

    @property
    def token_columns(self) -> list[str]:
        """The text columns that hold lists of tokens."""
        return self.tokenizer.columns_of_tokens(self.columns)

    def with_token_columns(self, columns: Sequence[str]) -> TextSettings:
        """The settings, for text columns of which ``columns`` hold lists of tokens.

        If no tokenizer was given, tokens in lists are counted unchanged.

        Raises
        ------
        ParameterError
            If the tokenizer can't read lists: see `Tokenizer`.
        """
        tokenizer = Tokenizer() if "tokenizer" in self.by_default else self.tokenizer
        tokenizer = tokenizer.with_params(token_columns=tuple(columns))
        settings = self.without_default_subwords()
        # Raises an error if the tokenizer can't read lists.
        tokenizer.expr(self.columns)
        return settings.with_parameters(tokenizer=tokenizer)

    def with_parameters(self, *by_default: str, **parameters: Any) -> TextSettings:
        """The settings with other values of parameters; those in ``by_default`` were chosen."""
        return replace(self, parameters={**self.parameters, **parameters},
                       by_default=self.by_default | {*by_default})

    def without_default_subwords(self) -> TextSettings:
        """The settings without subwords, if these were not given but are the default.

        Raises
        ------
        ParameterError
            If their weight, ``sharing``, was given.
        """
        if "subwords" not in self.by_default:
            return self
        settings = self.with_parameters(subwords=None)
        check_sharing(settings.parameters, self.model)
        return settings

    def with_vector_weight(self, weight: float) -> TextSettings:
        """The settings with a weight of vectors that was chosen for the rows."""
        return self.with_parameters("vector_weight", vector_weight=weight)

    def with_unlabelled_vectors(self) -> TextSettings:
        """The settings; if they have no vectors, with those of unlabelled texts by default."""
        if self.parameters["vectors"] is not None:
            return self
        return self.with_parameters("vectors", vectors=UNLABELLED)

    def without_unlabelled_vectors(self) -> TextSettings:
        """The settings without vectors, for a fit without unlabelled texts to learn them from."""
        return self.with_parameters(vectors=None, vector_weight=None)

    def restore_defaults(self) -> TextSettings:
        """The settings of a model file, with vectors of unlabelled texts marked as a default."""
        is_default = self.parameters["vectors"] == UNLABELLED
        return self.with_parameters("vectors", "vector_weight") if is_default else self

    @property
    def shares_weights(self) -> bool:
        """Whether words share weights, by subwords or by vectors."""
        return self.parameters["subwords"] is not None or self.parameters["vectors"] is not None

    @property
    def max_new_words(self) -> int:
        """The maximum number of words that no labelled row holds, and that still get a weight."""
        lexicon = self.parameters["lexicon"]
        return MAX_LEXICON if lexicon is None else int(lexicon)

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
        return CountSpec(self.tokenizer, self.columns, self.label, limits=self.limits,
                         presence_above=self.presence_above, binary=self.binary)

    def select_terms(self, statistics: Counts) -> Counts:
        """The counts of the terms that the model has, by the vocabulary or the limits."""
        if self.vocabulary is not None:
            return statistics.over(self.vocabulary)
        if not statistics.n_features:
            raise VocabularyError.no_tokens(self.tokenizer.pattern, statistics.documents)
        return statistics.select(self.limits.within(statistics))


def check_sharing(parameters: dict[str, Any], model: Model) -> None:
    """Raise ParameterError for settings by which words share weights, if they can't be used."""
    check_values(LimitSettings, {name: parameters[name] for name in (
        "subwords", "sharing", "vector_weight", "lexicon")})
    vectors = parameters["vectors"]
    if vectors is not None and not (
            isinstance(vectors, (str, os.PathLike)) or is_frame(vectors)):
        raise ParameterError.out_of_range(
            "vectors", 'a table with the columns "term" and "vector", a path, "wordllama", or '
            '"unlabelled"', vectors)
    if parameters["subwords"] is None and parameters["sharing"]:
        raise ParameterError.naming_settings(
            "{sharing} is the weight of {subwords}, and there are none")
    for name in ("vector_weight", "lexicon"):
        if parameters[name] and not model.learns_shared:
            raise ParameterError.naming_settings(
                "{shared} is for NBLinear, whose weights are learned", shared=Mention(name))
    check_words(parameters, model)


def check_words(parameters: dict[str, Any], model: Model) -> None:
    """Raise ParameterError if the model or tokenizer does not allow subwords or vectors."""
    for name in ("subwords", "vectors"):
        if parameters[name] is None:
            continue
        setting = Mention(name)
        if not model.learns_shared:
            raise ParameterError.naming_settings(
                "{shared} is for NBLinear, whose weights are learned; {model} would count the "
                "evidence of a word again with each word that is like it", shared=setting,
                model=model.name)
        if parameters["tokenizer"].analyzer != "word":
            raise ParameterError.naming_settings(
                "{shared} is for words: leave {analyzer} at 'word'", shared=setting)
        if np.ndim(model.l):
            raise ParameterError.naming_settings(
                "with {shared}, {l} can't have one value for each term, as what words share has "
                "none: give one number for {l}", shared=setting)


def text_columns_of(text: Any, label: Any) -> list[str]:
    """The names of the text columns, of which ``text`` is one or a list.

    Raises
    ------
    ParameterError
        If they are not different names, or the label column is among them.
    """
    columns = text_columns_without_label(text)
    if not isinstance(label, str) or label in columns or not is_unicode(label):
        raise ParameterError.out_of_range("label", "a column that is not a text column", label)
    return columns


def text_columns_without_label(text: Any) -> list[str]:
    """As `text_columns_of`, without a label column."""
    columns = [text] if isinstance(text, str) else (
        list(text) if isinstance(text, (list, tuple)) else [])
    if not columns or not all(isinstance(name, str) for name in columns) or (
            len(set(columns)) < len(columns)):
        raise ParameterError.out_of_range("text", "a column, or several different ones", text)
    for name in columns:
        if not is_unicode(name):
            raise ParameterError.out_of_range("text", "a name of valid Unicode", name)
    return columns
