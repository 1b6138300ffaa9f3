"""Text to tokens: a Tokenizer is a frozen setting whose meaning is a Polars expression.

    text -> normalize -> lowercase -> strip accents
         -> words -> stop words -> field prefix -> n-grams

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
from typing import Any, Literal

import polars as pl

from textnb.errors import ParameterError, suggestion
from textnb.runtime.forks import check_fork
from textnb.text.marks import COMBINING
from textnb.text.supported import ANYTHING, NO_PREFIX, Supported, any_of

WORD = r"[\p{L}\p{M}\p{N}_]{2,}"
SKLEARN_WORD = r"[\p{L}\p{N}_]{2,}"
# What Python's str.isspace holds for white; the regex engine's \s lacks the four separators.
WHITE = r"\s\x1c-\x1f"
LONGEST_NGRAM = 32
LONGEST_PATTERN = 10_000
# Texts in which a pattern that can match nothing does so.
_SAMPLES = ("", "a", " ", "A b-1_é. \n")

Analyzer = Literal["word", "char", "char_wb"]
Normalization = Literal["NFC", "NFD", "NFKC", "NFKD"]
TextColumns = str | Sequence[str]

# A run of one class of characters, at least m long: `[...]{m,}`, `[...]+`, `\w{m,}`, `\b\w\w+\b`.
# No member of these classes is a space, a colon or a backslash.
_MEMBER = r"(?:\\p\{[LMN][a-z]?\}|\\[wd]|[A-Za-z]-[A-Za-z]|[0-9]-[0-9]|[A-Za-z0-9_'])"
_RUN = re.compile(rf"(?:\[(?P<members>{_MEMBER}+)\]|(?P<single>\\w))(?:\+|\{{(?P<least>\d+),\}})")
_SKLEARN_RUN = re.compile(r"(?:\(\?u\))?\\b\\w\\w\+\\b")


@dataclass(frozen=True)
class Tokenizer:
    r"""How text becomes tokens; hashable, comparable, serialisable, and lazily run by Polars.

    Parameters
    ----------
    pattern : str
        Regular expression (Rust syntax: no lookaround, no capturing group) whose matches are the
        words. The default keeps letters with their combining marks, so words of Indic scripts stay
        whole. Used by ``analyzer="word"`` alone.
    lowercase : bool
        Lower-case the text first, by Unicode's full mapping.
    ngram_range : (int, int)
        Shortest and longest n-gram, in words (or characters). The words of an n-gram are joined by
        one space. If the pattern itself can match a space, a backslash is written before each space
        inside a word, so that no two n-grams share a string.
    analyzer : {"word", "char", "char_wb"}
        Words; n-grams of characters across the text; or n-grams of characters within words, each
        padded by a space on both sides. White space is treated as `CountVectorizer` treats it.
    normalize : {None, "NFC", "NFD", "NFKC", "NFKD"}
        Unicode normalisation, before all else.
    strip_accents : {None, "unicode", "ascii"}
        Decompose (NFKD) and drop the combining marks, or everything beyond ASCII.
    stop_words : sequence of str, or None
        Words to drop, before n-grams are built. The list is tokenised by this same tokenizer, so
        ``"don't"`` drops what ``"don't"`` becomes in a document.
    field_prefix : bool or sequence of str
        With several text columns: write the column's name before its tokens (``subject:free``),
        for every column or for those named.

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

    pattern: str = WORD
    lowercase: bool = True
    ngram_range: tuple[int, int] = (1, 1)
    analyzer: Analyzer = "word"
    normalize: Normalization | None = None
    strip_accents: Literal["unicode", "ascii"] | None = None
    stop_words: tuple[str, ...] = ()
    field_prefix: bool | tuple[str, ...] = False

    def __post_init__(self) -> None:
        # Lists are welcome where tuples are kept: a frozen setting must be hashable.
        object.__setattr__(self, "ngram_range", _ngram_range(self.ngram_range))
        stop_words = () if self.stop_words is None else self.stop_words
        object.__setattr__(self, "stop_words", _strings("stop_words", stop_words))
        if not isinstance(self.field_prefix, bool):
            prefixes = _strings("field_prefix", self.field_prefix)
            object.__setattr__(self, "field_prefix", prefixes)
        _choice("analyzer", self.analyzer, ("word", "char", "char_wb"))
        _choice("normalize", self.normalize, (None, "NFC", "NFD", "NFKC", "NFKD"))
        _choice("strip_accents", self.strip_accents, (None, "unicode", "ascii"))
        if not isinstance(self.lowercase, bool):
            raise ParameterError.out_of_range("lowercase", "True or False", self.lowercase)
        if self.stop_words and self.analyzer != "word":
            raise ParameterError("stop_words are words: they need analyzer='word'; "
                                 f"got analyzer={self.analyzer!r}")
        if not isinstance(self.pattern, str):
            raise ParameterError.out_of_range("pattern", "a regular expression (str)", self.pattern)
        _check_pattern(self.pattern)

    @classmethod
    def sklearn(cls, **settings: Any) -> Tokenizer:
        """The tokens of `CountVectorizer`'s defaults; other settings by keyword.

        Examples
        --------
        >>> Tokenizer.sklearn(ngram_range=(2, 2)).tokens("a white cat")
        ['white cat']
        """
        return cls(**{"pattern": SKLEARN_WORD, **settings})

    def expr(self, text: TextColumns) -> pl.Expr:
        """Tokens of one or several text columns, as an expression String -> List(String).

        Null counts as empty. The tokens of several columns follow each other; no n-gram crosses
        from one column into the next. N-grams of one length follow in order of the text for words,
        and in no stated order for characters.

        Parameters
        ----------
        text : str or sequence of str
            Name or names of String columns.

        Returns
        -------
        polars.Expr
        """
        check_fork()
        columns = [text] if isinstance(text, str) else list(text)
        lists = [self._column_tokens(_text(name), self._prefix(name, columns))
                 for name in columns]
        return lists[0] if len(lists) == 1 else pl.concat_list(lists)

    def tokens(self, text: str) -> list[str]:
        """Tokens of one text, to look at.

        Examples
        --------
        >>> Tokenizer(analyzer="char_wb", ngram_range=(3, 3)).tokens("a cat")
        [' a ', ' ca', 'cat', 'at ']
        """
        listed: list[str] = (
            pl.DataFrame({"text": [text]}, schema={"text": pl.String})
            .select(self.expr("text").alias("text")).item().to_list()
        )
        return listed

    def split_terms(self, term: str) -> list[str]:
        r"""The words of a stored n-gram.

        Examples
        --------
        >>> Tokenizer(ngram_range=(1, 2)).split_terms("white cat")
        ['white', 'cat']
        >>> Tokenizer(pattern=r"[^,]+", ngram_range=(1, 2)).split_terms(r"new\ york city")
        ['new york', 'city']
        """
        if self.analyzer != "word" or self.ngram_range[1] == 1:
            return [term]
        if not self._escaped:
            return term.split(" ")
        # A word is never empty, so a run of other characters and escaped pairs is one word.
        return [re.sub(r"\\(.)", r"\1", word, flags=re.S)
                for word in re.findall(r"(?:[^\\ ]|\\.)+", term, flags=re.S)]

    def split_all(self, terms: pl.Series) -> pl.Series:
        """As `split_terms`, of many: a List(String) series."""
        if self._escaped or self.analyzer != "word" or self.ngram_range[1] == 1:
            return pl.Series([self.split_terms(term) for term in terms], dtype=pl.List(pl.String))
        return terms.str.split(" ")

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON-ready values; `from_dict` is the inverse."""
        as_dict = {field.name: getattr(self, field.name) for field in fields(self)}
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
        _check_names(cls, settings)
        return cls(**settings)

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
        _check_names(type(self), settings)
        return replace(self, **settings)

    def __sklearn_clone__(self) -> Tokenizer:
        # Nobody can change it, so a clone of a classifier may share it.
        return self

    def __repr__(self) -> str:
        changed = [f"{field.name}={getattr(self, field.name)!r}" for field in fields(self)
                   if getattr(self, field.name) != field.default]
        return f"{type(self).__name__}({', '.join(changed)})"

    def run(self) -> tuple[str, int] | None:
        """The character class (its members) and least length, if words are runs of one class.

        Examples
        --------
        >>> Tokenizer(pattern="[a-z0-9]+").run(), Tokenizer(pattern="a+b").run()
        (('a-z0-9', 1), None)
        """
        return _run_of_class(self.pattern)

    def stop_tokens(self) -> frozenset[str]:
        """The stop words, tokenised by this tokenizer."""
        return _stop_tokens(self) if self.stop_words else frozenset()

    def separators(self) -> tuple[str, int] | None:
        """For a tokenizer of runs of characters: what separates them, and the shortest run kept.

        Such a tokenizer equals "replace every stretch of other characters by one space, split on
        spaces, drop what is short", which costs fewer matches than finding each word. None for
        any other tokenizer.
        """
        run = _run_of_class(self.pattern)
        if run is None or unsupported(self, _SEPARATED):
            return None
        return rf"[^{run[0]} ]+", run[1]

    def split_expr(self, text: TextColumns) -> pl.Expr:
        """As `expr`, by `separators`: short runs and empty strings are still among the tokens."""
        check_fork()
        separators = self.separators()
        if separators is None:
            raise ParameterError(f"{self!r} is not a tokenizer of runs of characters")
        columns = [text] if isinstance(text, str) else list(text)
        lists = [self._cleaned(_text(name)).str.replace_all(separators[0], " ")
                 .str.split(" ") for name in columns]
        return lists[0] if len(lists) == 1 else pl.concat_list(lists)

    def cleaned_exprs(self, text: TextColumns) -> list[pl.Expr]:
        """Each text column as what words, or n-grams of characters, are cut from."""
        check_fork()
        columns = [text] if isinstance(text, str) else list(text)
        cleaned = [self._cleaned(_text(name)) for name in columns]
        return [_single_spaced(expr) if self.analyzer == "char" else expr for expr in cleaned]

    # How each step is written in Polars.

    def _cleaned(self, text: pl.Expr) -> pl.Expr:
        if self.normalize is not None:
            text = text.str.normalize(self.normalize)
        if self.lowercase:
            text = text.str.to_lowercase()
        if self.strip_accents == "ascii":
            text = text.str.normalize("NFKD").str.replace_all(r"[^\x00-\x7F]+", "")
        elif self.strip_accents == "unicode":
            text = text.str.normalize("NFKD").str.replace_all(COMBINING, "")
        return text

    def _column_tokens(self, text: pl.Expr, prefix: str) -> pl.Expr:
        text = self._cleaned(text)
        if self.analyzer == "char":
            return _prefixed(self._escape(_char_ngrams(text, self.ngram_range)), prefix)
        if self.analyzer == "char_wb":
            return _prefixed(self._escape(_char_wb_ngrams(text, self.ngram_range)), prefix)
        words = text.str.extract_all(self.pattern)
        if self.stop_words:
            stops = pl.Series(sorted(_stop_tokens(self)), dtype=pl.String).implode()
            words = words.list.eval(pl.element().filter(~pl.element().is_in(stops)))
        return _word_ngrams(_prefixed(self._escape(words), prefix), self.ngram_range)

    def _prefix(self, column: str, columns: Sequence[str]) -> str:
        if not isinstance(self.field_prefix, bool):
            strangers = [name for name in self.field_prefix if name not in columns]
            if strangers:
                raise ParameterError(f"field_prefix names {strangers[0]!r}, which is not among the "
                                     f"text columns {list(columns)!r}")
        wanted = self.field_prefix if isinstance(self.field_prefix, bool) else (
            column in self.field_prefix)
        if not wanted:
            return ""
        if re.search(r"[ :\\]", column):
            raise ParameterError(f"column {column!r} can't be a field prefix: rename it without "
                                 "space, colon and backslash")
        return f"{column}:"

    @property
    def _escaped(self) -> str:
        """The characters that must be escaped inside a token to keep terms unambiguous."""
        if self.analyzer == "word" and _run_of_class(self.pattern) is not None:
            return ""
        joined = " " if self.analyzer == "word" and self.ngram_range[1] > 1 else ""
        return joined + (":" if self.field_prefix else "")

    def _escape(self, tokens: pl.Expr) -> pl.Expr:
        if not self._escaped:
            return tokens
        return tokens.list.eval(
            pl.element().str.replace_all(rf"([\\{self._escaped}])", r"\${1}"))


def unsupported(tokenizer: Tokenizer, supported: Supported) -> str | None:
    """The first setting that an engine does not run, as ``name=value``; None if it runs them all.

    What makes tokens in another way than `Tokenizer.expr` asks this first. A setting that is not
    named is not run; and a subclass may change what settings mean, so no engine runs it.

    Examples
    --------
    >>> from textnb.text.supported import ANYTHING, any_of
    >>> upper = {**ANYTHING, "lowercase": any_of(False)}
    >>> unsupported(Tokenizer(), upper), unsupported(Tokenizer(lowercase=False), upper)
    ('lowercase=True', None)
    >>> del upper["normalize"]
    >>> unsupported(Tokenizer(lowercase=False), upper)
    'normalize=None'
    """
    if type(tokenizer) is not Tokenizer:
        return f"{type(tokenizer).__name__}, a class of its own"
    # By its names alone: this is asked for every batch.
    for name in tokenizer.__dataclass_fields__:
        runs, value = supported.get(name), getattr(tokenizer, name)
        if runs is None or not runs(value):
            return f"{name}={value!r}"
    return None


def check_exact(tokenizer: Any, purpose: str) -> None:
    """Raises ParameterError for a subclass, of which only its code says what it does."""
    if type(tokenizer) is not Tokenizer:
        raise ParameterError(f"{purpose} needs a Tokenizer itself; got {type(tokenizer).__name__}, "
                             "a class of its own, whose code is in no file: use Tokenizer's "
                             "settings, or make the tokens' text in the frame before")


_SEPARATED: Supported = {
    "pattern": lambda pattern: _run_of_class(pattern) is not None,
    "lowercase": ANYTHING["lowercase"],
    "ngram_range": any_of((1, 1)),
    "analyzer": any_of("word"),
    "normalize": ANYTHING["normalize"],
    "strip_accents": ANYTHING["strip_accents"],
    "stop_words": any_of(()),
    "field_prefix": NO_PREFIX,
}


def _check_names(kind: type[Tokenizer], settings: Iterable[str]) -> None:
    known = [field.name for field in fields(kind)]
    for name in sorted(set(settings) - set(known)):
        raise ParameterError(f"Tokenizer has no setting {name!r}{suggestion(name, known)}; its "
                             f"settings are {', '.join(known)}")


def _text(column: str) -> pl.Expr:
    """A text column: categories as strings, and null as empty."""
    return pl.col(column).cast(pl.String).fill_null("")


def _run_of_class(pattern: str) -> tuple[str, int] | None:
    """The character class (members) and least length of a pattern that is a run of one class."""
    if _SKLEARN_RUN.fullmatch(pattern):
        return r"\w", 2
    run = _RUN.fullmatch(pattern)
    if run is None or int(run["least"] or 1) < 1:
        return None
    return run["members"] or run["single"], int(run["least"] or 1)


def _prefixed(tokens: pl.Expr, prefix: str) -> pl.Expr:
    return tokens.list.eval(pl.lit(prefix) + pl.element()) if prefix else tokens


def _word_ngrams(words: pl.Expr, ngram_range: tuple[int, int]) -> pl.Expr:
    least, most = ngram_range
    lists = []
    for n in range(least, most + 1):
        joined = pl.element()
        for ahead in range(1, n):
            joined = joined + pl.lit(" ") + pl.element().shift(-ahead)
        lists.append(words if n == 1 else words.list.eval(joined).list.drop_nulls())
    return lists[0] if len(lists) == 1 else pl.concat_list(lists)


def _single_spaced(text: pl.Expr) -> pl.Expr:
    return text.str.replace_all(rf"[{WHITE}]{{2,}}", " ")


def _char_ngrams(text: pl.Expr, ngram_range: tuple[int, int]) -> pl.Expr:
    text = _single_spaced(text)
    # Matches do not overlap: the n-grams that start at offsets o, o + n, o + 2n ... need one pass
    # for each o below n.
    lists = [text.str.slice(offset).str.extract_all(rf"(?s:.{{{n}}})")
             for n in range(ngram_range[0], ngram_range[1] + 1) for offset in range(n)]
    return lists[0] if len(lists) == 1 else pl.concat_list(lists)


def _char_wb_ngrams(text: pl.Expr, ngram_range: tuple[int, int]) -> pl.Expr:
    least, most = ngram_range
    # One padded word to a line; a word has no white space, so no line feed.
    lines = text.str.extract_all(rf"[^{WHITE}]+").list.eval(
        pl.lit(" ") + pl.element() + pl.lit(" ")).list.join("\n")
    lists = []
    for n in range(least, most + 1):
        for offset in range(n):
            rest = lines.str.replace_all(rf"(?m)^[^\n]{{0,{offset}}}", "") if offset else lines
            lists.append(rest.str.extract_all(rf"[^\n]{{{n}}}"))
    # A padded word shorter than the shortest n-gram is one n-gram by itself.
    if least > 1:
        lists.append(lines.str.extract_all(rf"(?m)^[^\n]{{1,{least - 1}}}$"))
    return lists[0] if len(lists) == 1 else pl.concat_list(lists)


@lru_cache(maxsize=64)
def _stop_tokens(tokenizer: Tokenizer) -> frozenset[str]:
    plain = replace(tokenizer, stop_words=(), ngram_range=(1, 1), field_prefix=False)
    listed = pl.DataFrame({"text": list(tokenizer.stop_words)}, schema={"text": pl.String})
    tokens = listed.select(plain.expr("text").explode().alias("text"))["text"]
    return frozenset(tokens.drop_nulls().to_list())


@lru_cache(maxsize=64)
def _check_pattern(pattern: str) -> None:
    if pattern in (WORD, SKLEARN_WORD):
        # Known to be right: to ask starts the engine's threads, and no import may do that.
        return
    check_fork()
    if len(pattern) > LONGEST_PATTERN:
        raise ParameterError(f"pattern has {len(pattern)} characters; at most {LONGEST_PATTERN}")
    outside_classes = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "", pattern)
    if re.search(r"\((?!\?)|\(\?P?<(?![=!])", outside_classes):
        raise ParameterError(f"pattern {pattern!r} has a capturing group, but whole matches are "
                             "the tokens; write (?:...) instead")
    try:
        matches = pl.Series(_SAMPLES).str.extract_all(pattern).explode()
    except pl.exceptions.PolarsError as error:
        said = [line for line in str(error).splitlines() if line.startswith("error:")]
        reason = said[0].removeprefix("error: ") if said else str(error).splitlines()[0]
        raise ParameterError(f"pattern {pattern!r} is not a valid regular expression (Rust syntax, "
                             f"no lookaround): {reason}") from None
    if "" in matches.drop_nulls():
        raise ParameterError(f"pattern {pattern!r} matches the empty string; "
                             "ask for one character or more")


def _ngram_range(value: Any) -> tuple[int, int]:
    expected = f"(least, most) with 1 <= least <= most <= {LONGEST_NGRAM}"
    pair = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
    if len(pair) != 2 or not all(type(n) is int for n in pair):
        raise ParameterError.out_of_range("ngram_range", expected, value)
    if not 1 <= pair[0] <= pair[1] <= LONGEST_NGRAM:
        raise ParameterError.out_of_range("ngram_range", expected, value)
    return pair[0], pair[1]


def _strings(name: str, value: Any) -> tuple[str, ...]:
    if (isinstance(value, str) or not isinstance(value, Iterable)
            or not all(isinstance(item, str) for item in value)):
        raise ParameterError.out_of_range(name, "a list of strings", value)
    return tuple(value)


def _choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ParameterError.unknown_choice(name, value, [str(choice) for choice in choices])
