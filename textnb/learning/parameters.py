"""The parameters of a classifier of texts, by name: defaults, copies and JSON values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from dataclasses import fields
from typing import Any

import numpy as np

from textnb.files import archive
from textnb.frames.kinds import Kind, kind_of
from textnb.learning.settings import ColumnSettings, LimitSettings
from textnb.models.base import Model
from textnb.text.token_settings import SHORT_WORD
from textnb.text.tokens import Tokenizer

# What a file says of vectors that came as a table.
TABLE = "a table in memory"
DEFAULTS: Mapping[str, Any] = {
    **{each.name: each.default for group in (ColumnSettings, LimitSettings)
       for each in fields(group)}, "tokenizer": None, "vocabulary": None}

# What a model that learns weights reads by default: words of one letter, "!" and "?", pairs of
# these, and the parts that words share. Measured on questions, mail, news and reviews, it is above
# words and pairs alone wherever there is a difference.
SHORT_WORDS = Tokenizer(pattern=SHORT_WORD, keep=("punctuation",))
_LINEAR_TERMS = {"tokenizer": SHORT_WORDS.with_params(ngram_range=(1, 2)), "subwords": (4, 4)}


def default_terms(model: Model, of_lists: bool = False) -> dict[str, Any]:
    """The tokenizer and the parts of words of a model for which no tokenizer is given.

    ``of_lists`` is whether documents have lists of labels, which parts don't help. A model that can
    learn more, which keeps counts beside its weights, has none either.

    >>> from textnb.models.multinomial import MultinomialNB
    >>> default_terms(MultinomialNB()) == {"tokenizer": Tokenizer(), "subwords": None}
    True
    """
    if not model.learns_shared:
        return {"tokenizer": Tokenizer(), "subwords": None}
    # With a ratio of its own for each term, there is none for parts.
    if of_lists or np.ndim(model.l) or model.counts_beside_weights:
        return {**_LINEAR_TERMS, "subwords": None}
    return dict(_LINEAR_TERMS)


def without_defaults(parameters: Mapping[str, Any], model: Model) -> dict[str, Any]:
    """Parameters without a tokenizer and parts of words, if they are those of `default_terms`."""
    defaults = default_terms(model)
    is_default = all(parameters[name] == value for name, value in defaults.items())
    return {**parameters, **(dict.fromkeys(defaults) if is_default else {})}


def copied(value: Any) -> Any:
    """A value that its owner can't change any more."""
    if isinstance(value, (list, np.ndarray)):
        return copy(value)
    return dict(value) if isinstance(value, dict) else value


def is_frame(value: Any) -> bool:
    """Whether a setting is a table, of a library of dataframes."""
    return kind_of(value) not in (None, Kind.COLUMNS, Kind.ROWS)


def to_json_value(value: Any) -> Any:
    """A setting as a value of JSON: of a table, that it was one."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if is_frame(value):
        return TABLE
    return archive.to_lists(
        value, lambda other: other.to_dict() if isinstance(other, Tokenizer) else other)
