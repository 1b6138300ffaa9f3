"""Tokenizers: frozen values of settings, with a plan of the steps from text to tokens.

    settings -> plan (`textnb.text.plan`) -> expressions, compiled loops, plain Python, exports

>>> Tokenizer().tokens("The cat's 2 naïve हिन्दी cats!")
['the', 'cat', 'naïve', 'हिन्दी', 'cats']
>>> Tokenizer(ngram_range=(1, 2)).tokens("white cat sat")
['white', 'cat', 'sat', 'white cat', 'cat sat']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import polars as pl

from textnb.errors import ParameterError
from textnb.runtime.forks import check_polars_threads
from textnb.runtime.settings import check_parameter_names, check_settings
from textnb.runtime.unicode import is_unicode, unicode_errors
from textnb.text.characters import KINDS
from textnb.text.expressions import tokens_expr, words_of_terms
from textnb.text.plan import (
    Escape,
    Matches,
    NGrams,
    OwnCode,
    Plan,
    Runs,
    Segments,
    WordsAndKinds,
    add_missing_settings,
    name_of_segmenter,
    plan_of,
)
from textnb.text.token_settings import SHORT_WORD, WORD, TokenSettings

# The words of scikit-learn's `CountVectorizer`, which ends a word at a combining mark.
SKLEARN_WORD = r"[\p{L}\p{N}_]{2,}"
MAX_PATTERN_LENGTH = 10_000
# Settings of scikit-learn's `CountVectorizer` that `TextClassifier` has, not the tokenizer.
_CLASSIFIER_SETTINGS = ("min_df", "max_df", "max_features", "vocabulary", "binary")
# A pattern that can match the empty string does so in one of these texts.
_PROBE_TEXTS = ("", "a", " ", "A b-1_é. \n")

TextColumns = str | Sequence[str]


@check_parameter_names
@dataclass(frozen=True)
class Tokenizer(TokenSettings):
    r"""How text becomes tokens; hashable, comparable, serialisable, and lazily run by Polars.

    Parameters
    ----------
    pattern : str
        Regular expression (Rust syntax: no lookaround, no capturing group) whose matches are the
        words. The default keeps letters with their combining marks, so words of Indic scripts stay
        whole. Only ``analyzer="word"`` uses it.
    lowercase : bool or {"tr", "az"}
        Lower-case the text first, by Unicode's full mapping; or as Turkish or Azerbaijani does:
        İ becomes i, and I becomes ı.
    ngram_range : (int, int)
        Shortest and longest n-gram, in words (or characters). The words of an n-gram are joined by
        one space. If the pattern itself can match a space, a backslash is written before each space
        inside a word, so that no two n-grams share a string.
    analyzer : {"word", "char", "char_wb"}
        Words; n-grams of characters across the text; or n-grams of characters within words, each
        padded by a space on both sides. White space is treated as by `CountVectorizer`.
    normalize : {None, "NFC", "NFD", "NFKC", "NFKD"}
        Unicode normalisation, before all else.
    strip_accents : {None, "unicode", "ascii", "marks"}
        Decompose characters (NFKD), then drop the combining marks (in Arabic, the vowel signs) and
        Arabic's tatweel ("unicode"), everything beyond ASCII ("ascii"), or only the combining marks
        ("marks", as `CountVectorizer` does for "unicode").
    stop_words : sequence of str, or None
        Words to drop before n-grams are built. This tokenizer splits the list, too, so that
        ``"don't"`` drops the tokens that ``"don't"`` becomes in a document.
    field_prefix : bool or sequence of str
        With several text columns: write the column's name before its tokens (``subject:free``),
        for every column or for those named.
    unspaced : {"both", "pairs", "whole"}
        How to split scripts that are written without spaces between words: Han, Hiragana,
        Katakana, Thai, Lao, Khmer, Myanmar. "both": each stretch of such characters in a word
        becomes its characters and their overlapping pairs, each character before its pair with the
        next one, and the text beside it is a separate word. With another ``ngram_range`` than
        (1, 1), each character is a word, and n-grams join characters as other words. "pairs": a
        stretch becomes its pairs (a single character stays one), which n-grams join. "whole": such
        a stretch is part of one long word. A character is a code point, also if it is a mark. A
        stop word of several characters drops its pairs. The setting is for patterns that match runs
        of one class of characters, as the default does; words of other patterns are not split.
    keep : sequence of {"emoji", "symbols", "abbreviations", "punctuation"}
        Tokens other than words. "emoji": each emoji. "symbols": letters and digits with ``++`` or
        ``#`` behind them (``c++``, ``c#``), amounts of money (``$5``, ``€3.50``) and percentages
        (``10%``). "abbreviations": two or more letters with a full stop behind each (``u.s.``).
        "punctuation": each ``!`` and ``?``. The pattern must be a run of one class of characters.
    token_columns : bool or sequence of str
        Text columns that are lists of tokens, which your own program has split, and not texts: all
        text columns, or those named. `TextClassifier.fit` sets it by the columns' types. Cleaning
        (``normalize``, ``lowercase``, ``strip_accents``) applies to each token, and tokens that are
        null or empty after it are dropped. Each stop word is one token. ``pattern``, ``unspaced``
        and ``keep`` are for the other columns, and refused if there are none.
    segmenter : callable, optional
        A function of your own, such as ``jieba.lcut``, from a text to its tokens, in place of
        ``pattern``; several threads may call it. Its tokens are then treated as those of
        `token_columns`. A model file holds the function's dotted name and never imports it: `load`
        makes a model that reads lists of tokens, or texts with
        ``load(path, segmenter=jieba.lcut)``. A name (str) instead of a function means that the
        columns hold lists of its tokens.

    Raises
    ------
    ParameterError
        If a setting is out of its range or the pattern is not a valid regular expression.

    Examples
    --------
    >>> import polars as pl
    >>> mail = pl.DataFrame({"subject": ["Free!"], "body": ["free offer"]})
    >>> tokens = Tokenizer(field_prefix=["subject"]).expr(["subject", "body"])
    >>> mail.select(tokens.alias("tokens"))["tokens"].to_list()
    [['subject:free', 'free', 'offer']]
    """

    def __post_init__(self) -> None:
        # Lists become tuples, because a frozen setting must be hashable.
        if isinstance(self.ngram_range, list):
            object.__setattr__(self, "ngram_range", tuple(self.ngram_range))
        for name in ("stop_words", "field_prefix", "keep", "token_columns"):
            value = getattr(self, name)
            if value is None and name in ("stop_words", "keep"):
                value = ()
            if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
                object.__setattr__(self, name, tuple(value))
        check_settings(self)
        # In one order, so that tokenizers with the same kinds are equal.
        object.__setattr__(self, "keep", tuple(kind for kind in KINDS if kind in self.keep))
        _check_pattern(self.pattern)
        for word in self.stop_words:
            if not is_unicode(word):
                raise ParameterError.out_of_range("stop_words", "words of valid Unicode", word)
        # This raises if settings exclude each other.
        _plan(self)

    @classmethod
    def _advice_on(cls, name: str) -> str:
        """What the error for an unknown setting says of it, or ""; see `check_parameter_names`."""
        return "it is one of TextClassifier" if name in _CLASSIFIER_SETTINGS else ""

    @classmethod
    def sklearn(cls, **settings: Any) -> Tokenizer:
        """A tokenizer with the tokens of `CountVectorizer`'s defaults; other settings by keyword.

        Examples
        --------
        >>> Tokenizer.sklearn(ngram_range=(2, 2)).tokens("a white cat")
        ['white cat']
        """
        if settings.get("strip_accents") == "unicode":
            settings["strip_accents"] = "marks"
        return cls(**{"pattern": SKLEARN_WORD, "unspaced": "whole", **settings})

    def plan(self) -> Plan:
        r"""The steps from text to tokens as data, which every engine executes.

        A subclass may override this method to add steps. If it overrides `expr` instead, its `expr`
        makes the tokens, and its plan ends with a step that no engine can execute.

        Examples
        --------
        >>> Tokenizer(pattern="[^ ]+", ngram_range=(2, 2)).plan().steps
        (Lowercase(), Matches(pattern='[^ ]+'), Escape(characters=' '), NGrams(min_n=2, max_n=2))
        """
        return _plan(self)

    def expr(self, text: TextColumns) -> pl.Expr:
        """Tokens of one or several text columns, as an expression to List(String).

        Text columns are of type String, those of `token_columns` List(String). Null counts as
        empty. The tokens of several columns follow each other; no n-gram crosses from one column
        into the next. Shorter n-grams come first. Of one length, n-grams of words are in the order
        of the text; n-grams of characters are in no defined order.

        Parameters
        ----------
        text : str or sequence of str
            Name or names of the columns.

        Returns
        -------
        polars.Expr
        """
        self._check_columns([text] if isinstance(text, str) else list(text))
        return tokens_expr(self.plan(), text)

    def tokens(self, text: str | Sequence[str]) -> list[str]:
        r"""The tokens of one text, to look at; with `token_columns`, of a list of tokens.

        Examples
        --------
        >>> Tokenizer(analyzer="char_wb", ngram_range=(3, 3)).tokens("a cat")
        [' a ', ' ca', 'cat', 'at ']
        >>> Tokenizer(token_columns=True, ngram_range=(2, 2)).tokens(["New York", "City"])
        ['new\\ york city']
        """
        dtype = pl.List(pl.String) if self.columns_of_tokens(["text"]) else pl.String
        with unicode_errors([text], "text"):
            row = pl.DataFrame({"text": [text]}, schema={"text": dtype})
        tokens: list[str] = row.select(self.expr("text").alias("text")).item().to_list()
        return tokens

    def columns_of_tokens(self, columns: Sequence[str]) -> list[str]:
        """The text columns that hold lists of tokens.

        Examples
        --------
        >>> Tokenizer(token_columns=["words"]).columns_of_tokens(["subject", "words"])
        ['words']
        """
        hold_tokens = self.plan().hold_tokens(columns)
        return [name for name, holds in zip(columns, hold_tokens, strict=True) if holds]

    def _check_columns(self, columns: Sequence[str]) -> None:
        """Raise ParameterError for settings on how to split texts if no column is split by them."""
        plan = self.plan()
        if plan.find(Segments) is None and not all(plan.hold_tokens(columns)):
            return
        for name in ("pattern", "unspaced", "keep"):
            value = getattr(self, name)
            # "pairs" was the default in earlier releases.
            if value != getattr(Tokenizer, name) and (name, value) != ("unspaced", "pairs"):
                raise ParameterError(
                    f"{name}={value!r} is for texts, and the text columns {list(columns)!r} are "
                    "lists of tokens, or split by a segmenter: leave it at its default")

    @property
    def joins_words(self) -> bool:
        """Whether a term may have several words, which `split_terms` separates."""
        return self.plan().find(NGrams) is not None

    @property
    def splits_unspaced(self) -> bool:
        """Whether text in scripts without spaces is split, and whole phrases are not words."""
        if self.token_columns is True or isinstance(self.segmenter, str):
            return True
        match self.plan().after_cleaning[0]:
            case Runs() | Matches() | WordsAndKinds(sizes=()):
                return False
        return True

    def split_terms(self, term: str) -> list[str]:
        r"""The words of a stored n-gram.

        Examples
        --------
        >>> Tokenizer(ngram_range=(1, 2)).split_terms("white cat")
        ['white', 'cat']
        >>> Tokenizer(pattern=r"[^,]+", ngram_range=(1, 2)).split_terms(r"new\ york city")
        ['new york', 'city']
        """
        words: list[str] = self.split_all(pl.Series([term])).item().to_list()
        return words

    def split_all(self, terms: pl.Series) -> pl.Series:
        """`split_terms` for many terms, as a List(String) series."""
        if not self.joins_words:
            return terms.to_frame("term").select(pl.concat_list("term")).to_series()
        words = words_of_terms(self.plan(), terms)
        if self.plan().find(Escape) is None:
            return words
        return words.list.eval(pl.element().str.replace_all(r"(?s)\\(.)", "${1}"))

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON-ready values; `from_dict` is the inverse."""
        as_dict = {**self.get_params(), "segmenter": name_of_segmenter(self.segmenter)}
        return {name: list(value) if isinstance(value, tuple) else value
                for name, value in as_dict.items()}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Tokenizer:
        """A tokenizer from `to_dict`'s values, checked like any other.

        Examples
        --------
        >>> Tokenizer.from_dict(Tokenizer(lowercase=False).to_dict())
        Tokenizer(lowercase=False)
        """
        return cls(**settings)

    @classmethod
    def from_file(cls, settings: Mapping[str, Any]) -> Tokenizer:
        """`from_dict` for the settings of a file: settings that are newer than the file are off.

        Examples
        --------
        >>> Tokenizer.from_file({"lowercase": False})
        Tokenizer(lowercase=False, unspaced='whole')
        """
        return cls.from_dict(add_missing_settings(settings))

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # A pickle may be older than a setting.
        self.__dict__.update(add_missing_settings(state))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name, for scikit-learn: ``tokenizer__ngram_range`` of a classifier."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def with_params(self, **settings: Any) -> Tokenizer:
        """A tokenizer with some settings changed; this one stays as it is.

        Raises
        ------
        ParameterError
            If there is no such setting, or it is out of its range.

        Examples
        --------
        >>> Tokenizer(lowercase=False).with_params(ngram_range=(1, 2))
        Tokenizer(lowercase=False, ngram_range=(1, 2))
        """
        return replace(self, **settings)

    def __sklearn_clone__(self) -> Tokenizer:
        # A tokenizer never changes, so clones of a classifier may share it.
        return self

    def __repr__(self) -> str:
        changed = [f"{field.name}={getattr(self, field.name)!r}" for field in fields(self)
                   if getattr(self, field.name) != field.default]
        return f"{type(self).__name__}({', '.join(changed)})"


@lru_cache(maxsize=256)
def _plan(tokenizer: Tokenizer) -> Plan:
    """The plan of a tokenizer's settings; `OwnCode` ends it if other code may make the tokens."""
    cls = type(tokenizer)
    has_own_expr, has_own_plan = cls.expr is not Tokenizer.expr, cls.plan is not Tokenizer.plan
    # A subclass with code of its own may read settings that it adds; others are refused for them.
    settings = fields(Tokenizer) if has_own_expr or has_own_plan else fields(cls)
    plan = plan_of({field.name: getattr(tokenizer, field.name) for field in settings})
    if cls is Tokenizer or (has_own_plan and not has_own_expr):
        return plan
    return Plan((*plan.steps, OwnCode(cls.__name__)))


def refuse_subclass(tokenizer: Any, purpose: str) -> None:
    """Raise ParameterError for a subclass, whose meaning only its code defines."""
    if type(tokenizer) is not Tokenizer:
        raise ParameterError(f"{purpose} needs a Tokenizer itself; got {type(tokenizer).__name__}, "
                             "a class of its own, whose code is in no file: use Tokenizer's "
                             "settings, or make the tokens' text in the frame before")


@lru_cache(maxsize=64)
def _check_pattern(pattern: str) -> None:
    """Raise ParameterError if it is too long, not valid, has a group, or matches the empty string.
    """
    if pattern in (WORD, SHORT_WORD, SKLEARN_WORD):
        # These are valid. Imports make tokenizers with them, and may not start Polars' threads.
        return
    check_polars_threads()
    if not is_unicode(pattern):
        raise ParameterError.out_of_range("pattern", "valid Unicode", pattern)
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise ParameterError(f"pattern has {len(pattern)} characters; at most {MAX_PATTERN_LENGTH}")
    try:
        matches = pl.Series(_PROBE_TEXTS).str.extract_all(pattern).explode()
    except pl.exceptions.PolarsError as error:
        lines = [line for line in str(error).splitlines() if line.startswith("error:")]
        reason = lines[0].removeprefix("error: ") if lines else str(error).splitlines()[0]
        raise ParameterError.naming_settings(
            "{pattern} {got!r} is not a valid regular expression (Rust syntax, no lookaround): "
            "{reason}", got=pattern, reason=reason) from None
    # The pattern without escapes and character classes, in which a bracket begins no group.
    outside_classes = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "", pattern)
    # A capturing group begins with "(" but not "(?", or with "(?<" or "(?P<" and a name.
    if re.search(r"\((?!\?)|\(\?P?<(?![=!])", outside_classes):
        raise ParameterError.naming_settings(
            "{pattern} {got!r} has a capturing group, but whole matches are the tokens; write "
            "(?:...) instead", got=pattern)
    if "" in matches.drop_nulls():
        raise ParameterError.naming_settings(
            "{pattern} {got!r} matches the empty string; ask for one character or more",
            got=pattern)
