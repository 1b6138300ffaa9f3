"""The settings of a tokenizer. This module imports neither Polars nor NumPy, to load at once.

The type of a setting says how the command line and jobs read its value: `textnb.runtime.settings`
has these types, and says what else a setting declares. With ``key_of="set"``, the command line
takes a setting as ``--set NAME=VALUE``. The docstring of a class is the heading of its settings in
``--help``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from textnb.runtime.settings import (
    Kinds,
    LowerCase,
    Pair,
    Prefixes,
    Range,
    Segmenter,
    Words,
    setting,
)
from textnb.text.characters import KINDS

# The default pattern: runs of two or more letters, marks, numbers and underscores.
WORD = r"[\p{L}\p{M}\p{N}_]{2,}"
# The same, but a word may be a single character.
SHORT_WORD = r"[\p{L}\p{M}\p{N}_]+"
MAX_NGRAM_LENGTH = 32
# What the values of settings must be: in words for errors, and as a function of the value.
_LOWERCASE = Range("True, False, 'tr' or 'az'",
                   lambda v: isinstance(v, bool) or v in ("tr", "az"))
_NGRAMS = Range(f"(min_n, max_n) with 1 <= min_n <= max_n <= {MAX_NGRAM_LENGTH}",
                lambda v: isinstance(v, (list, tuple)) and [type(n) for n in v] == [int, int]
                and 1 <= v[0] <= v[1] <= MAX_NGRAM_LENGTH)
_KEEP = Range(f"a list of {', '.join(KINDS)}",
              lambda v: isinstance(v, (list, tuple)) and all(kind in KINDS for kind in v))
_SEGMENTER = Range("a hashable function from a text to its tokens, or its name",
                   lambda v: bool(v) and isinstance(v, Hashable)
                   and (callable(v) or isinstance(v, str)))


@dataclass(frozen=True, eq=False, repr=False)
class TokenSettings:
    """Tokens."""

    pattern: str = setting(
        WORD, "Regular expression of a token (Rust syntax).", key_of="set")
    lowercase: LowerCase = setting(
        True, "Lower-case the text first: true, false, or as Turkish (tr) or Azerbaijani (az) "
        "does: I becomes \u0131.", key_of="set", range=_LOWERCASE)
    ngram_range: Pair = setting((1, 1), "Shortest and longest n-gram, such as 1,2.",
                                names=("--ngrams",), range=_NGRAMS)
    analyzer: str = setting("word", "What tokens are.", choices=("word", "char", "char_wb"))
    normalize: str | None = setting(None, "Unicode normalisation, before all else.",
                                    choices=("NFC", "NFD", "NFKC", "NFKD"), key_of="set")
    strip_accents: str | None = setting(None, "Remove accents (marks: as scikit-learn does), or "
                                        "all that is not ASCII.",
                                        choices=("unicode", "ascii", "marks"), key_of="set")
    stop_words: Words = setting((), "UTF-8 file of stop words, one per line.", metavar="FILE")
    field_prefix: Prefixes = setting(False, "Write each column's name before its tokens.",
                                     key_of="set")
    unspaced: str = setting(
        "both", "Scripts without spaces between words: characters and their pairs (both), pairs, "
        "or whole phrases.", choices=("both", "pairs", "whole"), key_of="set")
    keep: Kinds = setting(
        (), "Tokens other than words, such as emoji,symbols: of emoji, symbols (c++ $5 10%), "
            "abbreviations (u.s.), punctuation (! ?).", key_of="set", range=_KEEP)
    # Its type is that of ``field_prefix``: a bool for all columns, or the names of some.
    token_columns: Prefixes = setting(
        False, "Text columns that hold lists of tokens, not texts. By default, those that are "
               "lists in the training data.", is_option=False)
    segmenter: Segmenter | None = setting(
        None, "In Python, a function that splits a text into tokens. Elsewhere its name, and "
              "the columns hold lists of its tokens.", is_option=False, range=_SEGMENTER)
