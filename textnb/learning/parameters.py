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

# The value of ``vectors`` in a model file if they were a table: the file does not hold the table.
TABLE = "a table in memory"
# The parameters of a classifier of texts apart from its estimator, with their defaults.
DEFAULTS: Mapping[str, Any] = {
    **{each.name: each.default for group in (ColumnSettings, LimitSettings)
       for each in fields(group)}, "tokenizer": None, "vocabulary": None}

# Words, also of one letter, with "!" and "?". By default, models that learn weights have these
# words, pairs of them, and subwords: on questions, mail, news and reviews, results were never worse
# than with words of two or more letters and pairs of them.
SHORT_WORDS = Tokenizer(pattern=SHORT_WORD, keep=("punctuation",))
# The tokenizer and the subwords of four characters that these models have by default.
_LINEAR_TERMS = {"tokenizer": SHORT_WORDS.with_params(ngram_range=(1, 2)), "subwords": (4, 4)}


def default_term_settings(model: Model, of_lists: bool = False) -> dict[str, Any]:
    """The tokenizer and subwords of a model for which no tokenizer is given.

    Words of a model that `learns_shared` can share weights: it has other words, and subwords.
    There are no subwords with lists of labels (``of_lists``), for which they don't help, nor for a
    model whose counts can be updated beside its weights, which subwords would prevent.

    >>> from textnb.models.multinomial import MultinomialNB
    >>> default_term_settings(MultinomialNB()) == {"tokenizer": Tokenizer(), "subwords": None}
    True
    """
    if not model.learns_shared:
        return {"tokenizer": Tokenizer(), "subwords": None}
    # An array has a smoothing for each term, but none for subwords.
    if of_lists or np.ndim(model.l) or model.can_count_without_refit:
        return {**_LINEAR_TERMS, "subwords": None}
    return dict(_LINEAR_TERMS)


def without_defaults(parameters: Mapping[str, Any], model: Model) -> dict[str, Any]:
    """Parameters, with None for a tokenizer and subwords that are `default_term_settings`."""
    defaults = default_term_settings(model)
    is_default = all(parameters[name] == value for name, value in defaults.items())
    return {**parameters, **(dict.fromkeys(defaults) if is_default else {})}


def detach(value: Any) -> Any:
    """A copy of a setting, if it is a list, array or dict, which its owner could change."""
    if isinstance(value, (list, np.ndarray)):
        return copy(value)
    return dict(value) if isinstance(value, dict) else value


def is_frame(value: Any) -> bool:
    """Whether a setting is a table such as a DataFrame, but not a dict or a list."""
    return kind_of(value) not in (None, Kind.COLUMNS, Kind.ROWS)


def to_json_value(value: Any) -> Any:
    """A setting as a value of JSON; `TABLE` for a table."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if is_frame(value):
        return TABLE
    # JSON has no tuples and arrays, which become lists.
    return archive.to_lists(
        value, lambda item: item.to_dict() if isinstance(item, Tokenizer) else item)
