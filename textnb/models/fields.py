"""Checks that the command line and jobs can set each field of a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field, fields
from typing import Any

from textnb.errors import ParameterError
from textnb.runtime.settings import Setting, setting_fields, type_of

# Names that a model's fields can't have: `textnb train` or jobs have another setting of that name.
RESERVED = frozenset({
    "analyzer", "binary", "checks_accuracy", "classes", "confidence", "encoding", "false_positives",
    "features", "field_prefix", "format", "help", "help_all", "input", "keep", "keep_sample",
    "kind", "label", "label_columns", "label_separator", "lexicon", "lowercase", "max_df",
    "max_features", "memory_limit", "min_df", "model", "ngram_range", "normalize", "on_unreadable",
    "output", "pattern", "query", "quiet", "read", "segmenter", "separator", "set", "sharing",
    "sklearn", "spam_class", "stop_words", "storage_options", "strip_accents", "subfolders",
    "subwords", "text", "token_columns", "tokenizer", "unlabelled", "unspaced", "vector_weight",
    "vectors", "vocabulary", "warm_start", "weight", "where"})
# Types of options, each also with "| None": the command line, jobs and model files can read them.
_TYPES = ("bool", "int", "float", "str", "Numbers", "NumberOrAuto", "Weights")


def check_fields(model: type[Any], others: Iterable[type[Any]]) -> None:
    """Check that each field of a model can be a setting; if not, raise ParameterError.

    Parameters
    ----------
    model : type
        A dataclass with a kind.
    others : iterable of type
        The other registered models.
    """
    base_names = {name for base in model.__mro__[1:] for name in vars(base)}
    # A model may declare a field of its base class again, with another default.
    base_names -= {field.name for base in model.__mro__[1:] if "__dataclass_fields__" in vars(base)
                   for field in fields(base)}
    # By name, each option of the other models: its model, and how the command line parses it.
    options = {field.name: (other, _parsing(field, setting)) for other in others if other.kind
               for field, setting in setting_fields(other) if setting.is_option}
    for field, setting in setting_fields(model):
        subject = f"the field {field.name} of the model {model.name}"
        if field.name in RESERVED:
            raise ParameterError(f"{subject} has the name of an option of textnb train, or of a "
                                 "key of jobs: give it another name")
        if field.name in base_names:
            raise ParameterError(f"{subject} replaces an attribute that every model has: write "
                                 "it without a type, or give the field another name")
        if not setting.is_option:
            continue
        if type_of(field).removesuffix(" | None") not in _TYPES:
            raise ParameterError(f"{subject} has the type {type_of(field)}, and settings are "
                                 "bool, int, float or str, or one of these | None; one that only "
                                 "Python can set is a setting(..., is_option=False)")
        parsing = _parsing(field, setting)
        other, other_parsing = options.get(field.name, (model, parsing))
        if parsing != other_parsing:
            raise ParameterError(f"{subject} has another type or other choices than that of "
                                 f"{other.name}, and both would be one option of textnb train: "
                                 "give it another name")


def _parsing(field: Field[Any], setting: Setting) -> tuple[Any, ...]:
    """The type, choices and minimum by which the command line parses a setting."""
    return type_of(field).removesuffix(" | None"), {*setting.choices}, setting.minimum
