"""The settings of a text classifier, each declared once: name, type, default and help.

Command-line options, keys of job files and reference pages are generated from these dataclasses and
from the fields of the models. A test checks that the constructors of the tokenizer and the
classifier have the same names and defaults. This module imports neither Polars nor NumPy, because
``textnb train --help`` starts without them. With ``key_of="set"``, the command line takes a setting
as ``--set NAME=VALUE``; the types are those of `textnb.runtime.settings`. The docstring of a class
is the heading of its settings in ``--help``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from textnb.runtime.settings import (
    COUNT,
    Columns,
    CountOrShare,
    Pair,
    Place,
    Range,
    Size,
    between,
    is_whole,
    setting,
    setting_fields,
)
from textnb.text.token_settings import TokenSettings

# The maximum number of characters of a subword.
_MAX_SUBWORD_LENGTH = 8
_SUBWORDS = Range(f"(min_n, max_n) with 2 <= min_n <= max_n <= {_MAX_SUBWORD_LENGTH}",
                  lambda v: isinstance(v, (list, tuple)) and [type(n) for n in v] == [int, int]
                  and 2 <= v[0] <= v[1] <= _MAX_SUBWORD_LENGTH)

# Values of ``vectors`` that are not paths: the package wordllama, and vectors that are learned from
# unlabelled texts.
WORDLLAMA, UNLABELLED = "wordllama", "unlabelled"
# The default and the maximum of ``lexicon``: the number of words that get a weight although no
# labelled row holds them.
MAX_LEXICON = 20_000
_LEXICON = Range(f"an integer from 0 to {MAX_LEXICON}",
                 lambda v: is_whole(v) and 0 <= v <= MAX_LEXICON)


@dataclass(eq=False, repr=False, kw_only=True)
class ColumnSettings:
    """Columns."""

    label: str = setting("label", "Label column.")
    text: Columns = setting(
        "text", "Text column; repeat it for several. For mail, the default is tokens.")


@dataclass(eq=False, repr=False, kw_only=True)
class LimitSettings:
    """Limits."""

    min_df: CountOrShare = setting(
        1, "Keep terms in at least N documents (2), or in this share of them (0.01).")
    max_df: CountOrShare = setting(
        1.0, "Keep terms in at most N documents, or in this share of them.", key_of="set")
    max_features: int | None = setting(None, "Keep the N most frequent terms.", range=COUNT)
    binary: bool = setting(False, "Count a term once per document.")
    memory_limit: Size | None = setting(
        None, "Bytes for the terms and their counts, such as 500M or 2G, 1M or more: the rarest "
              "terms are left out until the rest fits.", metavar="SIZE")
    subwords: Pair | None = setting(
        None, "Share weights among words with the same parts, of N to M characters, such as 4,4: "
              "the default of nblinear if no setting of tokens is given.", range=_SUBWORDS)
    sharing: float | None = setting(
        None, "How much the parts weigh beside words: 0 to 2; the default is by the length of "
              "texts.", key_of="set", range=between(0, 2))
    vectors: Place | None = setting(
        None, "Share weights among words with similar vectors (nblinear): a table of the columns "
              "term and vector, a text file of word2vec, GloVe or fastText, safetensors beside a "
              "tokenizer.json, wordllama, or unlabelled for those of --unlabelled.", metavar="FILE",
        packages=(WORDLLAMA, UNLABELLED))
    vector_weight: float | None = setting(
        None, "How much the vectors weigh beside words: 0 to 2; the default is chosen by the rows.",
        key_of="set", range=between(0, 2))
    lexicon: int | None = setting(
        None, "Maximum number of words that get a weight by vectors or parts alone: the first of "
              f"the vectors, or those of --unlabelled; by default {MAX_LEXICON:,}.", range=_LEXICON)


# The default settings for mail: with them there were the fewest errors on tokens of mail.
MAIL_RECIPE: Mapping[str, Any] = {
    "text": "tokens", "model": "nblinear", "tf": "presence", "idf": False, "power": 1.0, "C": 10.0}
# The default share of ham that a mail filter may classify as spam.
FALSE_POSITIVES = 0.001
# `MAIL_RECIPE` as command-line options. The format "g" writes False as 0.
MAIL_OPTIONS = " ".join(
    f"--{name} {value}" if name in ("text", "model") else
    f"--set {name}={value if isinstance(value, str) else format(value, 'g')}".replace(
        "=0", "=false") for name, value in MAIL_RECIPE.items())


def mail_recipe(names: Iterable[str]) -> dict[str, Any]:
    """The default settings for mail; empty if the user has set any that they would replace.

    Parameters
    ----------
    names : iterable of str
        The settings that the user gave, in a job file or on the command line.

    Examples
    --------
    >>> mail_recipe(["label"])["model"], mail_recipe(["label", "min_df"])
    ('nblinear', {})
    """
    # Imported here, because a mail filter imports this module and must start without the models.
    from textnb.models.known import all_models

    groups = (ColumnSettings, TokenSettings, LimitSettings, *all_models().values())
    conflicts = {field.name for group in groups for field, _ in setting_fields(group)} - {"label"}
    # In jobs and on the command line, these choose a model or a tokenizer, too.
    conflicts |= {"model", "kind", "tokenizer", "sklearn", "features"}
    return {} if conflicts & set(names) else dict(MAIL_RECIPE)


def is_mail_recipe(settings: Mapping[str, Any]) -> bool:
    """Whether settings, of which ``model`` is the kind of model, include `MAIL_RECIPE`."""
    return all(settings.get(name) == value for name, value in MAIL_RECIPE.items())


def foreign_settings(kind: str) -> set[str]:
    """The settings of texts for a kind of feature tables, and the reverse."""
    from textnb.models.known import table_models

    text_settings = {field.name for group in (TokenSettings, LimitSettings)
                     for field, _ in setting_fields(group)}
    # Jobs and the command line also have these settings for texts.
    text_settings |= {"text", "tokenizer", "sklearn", "weight"}
    return text_settings if kind in table_models() else {"features"}
