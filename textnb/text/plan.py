r"""The steps of a tokenizer as data: a plan is a sequence of steps, and engines execute it.

    text -> `Cleaning`: Normalize -> Lowercase -> StripAccents -> SingleSpaces
         -> `Splitting`: Runs, WordsAndPairs, WordsAndKinds, Matches, Segments, Characters or
                         CharactersInWords; columns of `TokenColumns` are not split
         -> steps from tokens to tokens: StopWords -> Escape -> FieldPrefix -> NGrams

Polars expressions, the compiled kernel, plain Python and the exports each execute plans in their
own way. Each engine knows some steps by their types and values, and raises an error that names any
other step. So no engine leaves out a step silently.

This module imports neither Polars nor NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

from textnb.errors import Mention, ParameterError
from textnb.runtime.values import Value

# For settings that older files lack: the values that mean what the tokenizers of those files do.
_VALUES_BEFORE: dict[str, Any] = {"unspaced": "whole", "keep": (), "token_columns": False,
                                  "segmenter": None}

# A run of a script without spaces becomes tokens of these numbers of characters.
PAIRS, SINGLE, BOTH = (2,), (1,), (1, 2)

# Patterns whose matches are runs of m or more characters of one class: `[...]{m,}`, `[...]+`,
# `\w{m,}`, and scikit-learn's `\b\w\w+\b`. No member of a class is a space or a colon.
_MEMBER = r"(?:\\p\{[LMN][a-z]?\}|\\[wd]|[A-Za-z]-[A-Za-z]|[0-9]-[0-9]|[A-Za-z0-9_'])"
_RUN = re.compile(rf"(?:\[(?P<members>{_MEMBER}+)\]|(?P<single>\\w))(?:\+|\{{(?P<min>\d+),\}})")
_SKLEARN_RUN = re.compile(r"(?:\(\?u\))?\\b\\w\\w\+\\b")
# White space as in Python's str.isspace, for a character class in Rust syntax, whose \s lacks the
# four ASCII separators.
WHITE = r"\s\x1c-\x1f"


class Step(Value):
    """One step of a plan: a `Value`, whose fields are the annotations of its class.

    A new kind of step may also be a frozen dataclass.
    """

    # The text of `setting`, with names of fields in braces; if empty, `setting` is the step's repr.
    _setting = ""

    @property
    def setting(self) -> str:
        """The tokenizer's setting that asks for the step, as ``name=value``, for messages."""
        return self._setting.format(**vars(self)) if self._setting else repr(self)


class Cleaning(Step):
    """A step from text to text."""


class Splitting(Step):
    """A step from text to tokens, of which a plan has one."""


class Normalize(Cleaning):
    """Unicode normalisation: NFC, NFD, NFKC or NFKD."""

    form: str

    _setting = "normalize={form!r}"


class Lowercase(Cleaning):
    """Lower case, by Unicode's full mapping."""

    _setting = "lowercase=True"


class TurkicLowercase(Cleaning):
    """Lower case of Turkish ("tr") or Azerbaijani ("az").

    The characters of `textnb.text.characters.TURKIC` are replaced before the text is lower-cased.
    """

    language: str

    _setting = "lowercase={language!r}"


class StripAccents(Cleaning):
    """Decompose characters (NFKD), then drop some of them.

    Dropped are combining marks ("marks"), combining marks and Arabic's tatweel ("unicode"), or all
    characters beyond ASCII ("ascii").
    """

    kind: str

    _setting = "strip_accents={kind!r}"


class SingleSpaces(Cleaning):
    """Two or more white-space characters become one space; a single one does not change."""

    _setting = "analyzer='char'"


class Matches(Splitting):
    """The matches of a regular expression in Rust syntax."""

    pattern: str

    _setting = "pattern={pattern!r}"


class Runs(Splitting):
    r"""Runs of characters of one class: the matches of a pattern such as ``[\p{L}_]{2,}``.

    Attributes
    ----------
    pattern : str
        The regular expression.
    members : str
        The inside of its character class. No member is a space, a colon or a backslash.
    min_length : int
        Shorter runs are not words.
    """

    pattern: str
    members: str
    min_length: int

    _setting = "pattern={pattern!r}"


class WordsAndPairs(Splitting):
    r"""The runs of `Runs`, each cut where a script without spaces begins or ends.

    A part in such a script (`textnb.text.characters.UNSPACED_RANGES`) becomes its characters, its
    overlapping pairs of characters, or both: each character, then its pair with the next one. A
    single character becomes one token. Any other part is a word if it has ``min_length``
    characters.

    Attributes
    ----------
    pattern, members, min_length
        See `Runs`.
    sizes : (1, 2), (1,) or (2,)
        Numbers of characters of the tokens of a script without spaces.
    """

    pattern: str
    members: str
    min_length: int
    sizes: tuple[int, ...] = PAIRS

    _setting = "pattern={pattern!r}, with characters or pairs of scripts without spaces"


class WordsAndKinds(Splitting):
    """Other kinds of tokens, and the words of `Runs` or, if there are ``sizes``, `WordsAndPairs`.

    Wherever the pattern of a kind (`textnb.text.characters.PATTERNS`) matches, the match is a
    token, and the next token begins after it.

    Attributes
    ----------
    pattern, members, min_length
        See `Runs`.
    sizes : tuple of int
        See `WordsAndPairs`; empty if scripts without spaces are not split.
    kinds : tuple of str
        Some of `textnb.text.characters.KINDS`.
    """

    pattern: str
    members: str
    min_length: int
    sizes: tuple[int, ...]
    kinds: tuple[str, ...]

    _setting = "keep={kinds!r}"


class Segments(Splitting):
    """The tokens that a user's function makes of a text; each token is then cleaned.

    Attributes
    ----------
    name : str
    function : callable
        From a text to its tokens.
    """

    name: str
    function: Callable[[str], Iterable[str]]

    _setting = "segmenter={name}"


class Characters(Splitting):
    """N-grams of characters across the text, of ``min_n`` to ``max_n`` characters."""

    min_n: int
    max_n: int

    _setting = "analyzer='char'"


class CharactersInWords(Splitting):
    """N-grams of characters within words, each padded by a space on both sides.

    White space separates words. A padded word that is shorter than ``min_n`` is an n-gram itself.
    """

    min_n: int
    max_n: int

    _setting = "analyzer='char_wb'"


class TokenColumns(Step):
    """Columns of lists of tokens, which are not split.

    Each token is cleaned; tokens that are null, or empty after cleaning, are dropped.

    Attributes
    ----------
    columns : tuple of str, or True
        True for all text columns.
    """

    columns: tuple[str, ...] | bool

    _setting = "token_columns={columns!r}"

    def hold_tokens(self, columns: Sequence[str]) -> list[bool]:
        """Whether each text column is a column of tokens.

        Raises
        ------
        ParameterError
            If a column of the setting is not among the text columns.

        Examples
        --------
        >>> TokenColumns(("words",)).hold_tokens(["subject", "words"])
        [False, True]
        """
        named = _columns_of_setting("token_columns", self.columns, columns)
        return [name in named for name in columns]


class StopWords(Step):
    """Drop the tokens that the previous steps make of these texts.

    For a column of tokens, each of these texts is one token.
    """

    texts: tuple[str, ...]

    _setting = "stop_words={texts!r}"


class Escape(Step):
    """Write a backslash before each of these characters, and before each backslash."""

    characters: str

    _setting = "escaped characters {characters!r}"


class FieldPrefix(Step):
    """Write the column's name and a colon before each token.

    Attributes
    ----------
    columns : tuple of str, or True
        The columns whose tokens get a prefix; True for all.
    """

    columns: tuple[str, ...] | bool

    _setting = "field_prefix={columns!r}"

    def prefixes(self, columns: Sequence[str]) -> list[str]:
        """The prefix of each text column, "" for none.

        Raises
        ------
        ParameterError
            If a column of the setting is not among the text columns, or can't be a prefix.

        Examples
        --------
        >>> FieldPrefix(("subject",)).prefixes(["subject", "body"])
        ['subject:', '']
        """
        prefixed = _columns_of_setting("field_prefix", self.columns, columns)
        for name in prefixed:
            if re.search(r"[ :\\]", name):
                raise ParameterError(f"column {name!r} can't be a field prefix: rename it without "
                                     "space, colon and backslash")
        return [f"{name}:" if name in prefixed else "" for name in columns]


def _columns_of_setting(
    setting: str, names: Sequence[str] | bool, columns: Sequence[str]
) -> Sequence[str]:
    """The text columns that a setting names, or all of them; ParameterError for other columns."""
    if isinstance(names, bool):
        return columns if names else ()
    for name in names:
        if name not in columns:
            raise ParameterError(f"{setting} names {name!r}, which is not among the text columns "
                                 f"{list(columns)!r}")
    return names


class NGrams(Step):
    """N-grams of ``min_n`` to ``max_n`` tokens, joined by one space; shorter ones come first."""

    min_n: int
    max_n: int

    _setting = "ngram_range=({min_n}, {max_n})"


class OwnCode(Step):
    """Code of a subclass of `Tokenizer`, which no engine can execute."""

    name: str

    _setting = "{name}, a class of its own"


# The settings of cleaning, in the order of their steps; for each, its values and their steps.
_CLEANING_STEPS: dict[str, list[tuple[Any, tuple[Step, ...]]]] = {
    "normalize": [(None, ()), *((form, (Normalize(form),))
                                for form in ("NFC", "NFD", "NFKC", "NFKD"))],
    "lowercase": [(False, ()), (True, (Lowercase(),)),
                  *((language, (TurkicLowercase(language),)) for language in ("tr", "az"))],
    "strip_accents": [(None, ()), *((kind, (StripAccents(kind),))
                                    for kind in ("unicode", "ascii", "marks"))],
}
# A plan may have several cleaning steps, and at most one of each other type.
_STEP_ORDER = (Cleaning, Splitting, TokenColumns, StopWords, Escape, FieldPrefix, NGrams)
Kind = TypeVar("Kind", bound=Step)


class Plan(Value):
    """The steps from the text of a column to its tokens; hashable and comparable.

    Examples
    --------
    >>> plan = Plan((Lowercase(), Matches("[^,]+"), NGrams(2, 2)))
    >>> plan.cleaning, plan.after_cleaning
    ((Lowercase(),), (Matches(pattern='[^,]+'), NGrams(min_n=2, max_n=2)))
    >>> plan.find(NGrams), plan.find(Escape)
    (NGrams(min_n=2, max_n=2), None)
    """

    steps: tuple[Step, ...]

    def __init__(self, steps: tuple[Step, ...]) -> None:
        super().__init__(steps)
        # Engines rely on the order of the steps: ranks must ascend, and only 0 (cleaning) may
        # repeat; 1 (splitting) must occur.
        ranks = [rank for step in self.steps for rank, kind in enumerate(_STEP_ORDER)
                 if isinstance(step, kind)]
        if ranks.count(1) != 1 or any(a > b or a == b > 0 for a, b in pairwise(ranks)):
            raise ParameterError(f"{self!r}: steps must clean, split once, name columns of tokens, "
                                 "drop stop words, escape, prefix and make n-grams, in this order")

    @property
    def cleaning(self) -> tuple[Step, ...]:
        """The steps before the text is split."""
        return self.steps[:self._split_at]

    @property
    def after_cleaning(self) -> tuple[Step, ...]:
        """The step that splits the text, and those after it."""
        return self.steps[self._split_at:]

    @property
    def after_stop_words(self) -> tuple[Step, ...]:
        """The steps after stop words are dropped, from tokens to tokens."""
        return tuple(step for step in self.after_cleaning
                     if not isinstance(step, Splitting | TokenColumns | StopWords))

    @property
    def _split_at(self) -> int:
        """The place of the step that splits the text."""
        return next(place for place, step in enumerate(self.steps) if isinstance(step, Splitting))

    def find(self, kind: type[Kind]) -> Kind | None:
        """The step of a type, if there is one."""
        return next((step for step in self.steps if isinstance(step, kind)), None)

    def prefixes(self, columns: Sequence[str]) -> list[str]:
        """The field prefix of each text column, "" for none; see `FieldPrefix.prefixes`."""
        return (self.find(FieldPrefix) or FieldPrefix(columns=())).prefixes(columns)

    def hold_tokens(self, columns: Sequence[str]) -> list[bool]:
        """Whether each text column is a column of tokens; see `TokenColumns.hold_tokens`."""
        return (self.find(TokenColumns) or TokenColumns(columns=())).hold_tokens(columns)


def plan_of(settings: Mapping[str, Any]) -> Plan:
    r"""The plan of a tokenizer's settings.

    Parameters
    ----------
    settings : mapping of str to value
        Each setting by name, as in `Tokenizer.to_dict`.

    Raises
    ------
    ParameterError
        If a setting is missing, or no step does what a setting or its value asks for.

    Examples
    --------
    >>> plan_of({"pattern": "[a-z]+", "lowercase": True, "ngram_range": (1, 2), "analyzer": "word",
    ...          "normalize": None, "strip_accents": None, "stop_words": (), "field_prefix": False,
    ...          "unspaced": "whole", "keep": (), "token_columns": False,
    ...          "segmenter": None}).steps[1:]
    (Runs(pattern='[a-z]+', members='a-z', min_length=1), NGrams(min_n=1, max_n=2))
    """
    remaining = dict(settings)
    try:
        cleaning = [step for name in _CLEANING_STEPS
                    for step in _cleaning_steps(name, remaining.pop(name))]
        analyzer, pattern, unspaced = map(remaining.pop, ("analyzer", "pattern", "unspaced"))
        word_settings = {name: remaining.pop(name)
                         for name in ("stop_words", "keep", "token_columns", "segmenter")}
        (min_n, max_n), field_prefix = remaining.pop("ngram_range"), remaining.pop("field_prefix")
    except KeyError as missing:
        raise ParameterError(f"the tokenizer's setting {missing} is missing; its settings must "
                             "all be there, as Tokenizer.to_dict writes them") from None
    for name, value in remaining.items():
        raise _no_step(name, value)
    prefix = [FieldPrefix(_hashable(field_prefix))] if field_prefix else []
    match analyzer:
        case "word":
            stop_words, keep, token_columns, segmenter = word_settings.values()
            sizes = _sizes(unspaced, (min_n, max_n))
            splitting = [*_splitting_steps(pattern, sizes, keep, token_columns, segmenter)]
            if "emoji" in keep and StripAccents("ascii") in cleaning:
                raise ParameterError.naming_settings(
                    "{strip_accents} 'ascii' removes all characters beyond ASCII, emoji too, "
                    "before {keep} could keep them: use 'unicode'")
            # Spaces join n-grams and colons end prefixes, so both are escaped within words. Words
            # of one class of characters hold neither.
            escaped = "" if isinstance(splitting[-1], Runs | WordsAndPairs | WordsAndKinds) else (
                (" " if max_n > 1 else "") + (":" if prefix else ""))
            stops = [StopWords(_hashable(stop_words))] if stop_words else []
            escape = [Escape(escaped)] if escaped else []
            ngrams = [NGrams(min_n, max_n)] if (min_n, max_n) != (1, 1) else []
            return Plan((*cleaning, *splitting, *stops, *escape, *prefix, *ngrams))
        case "char":
            splitting = [SingleSpaces(), Characters(min_n, max_n)]
        case "char_wb":
            splitting = [CharactersInWords(min_n, max_n)]
        case _:
            raise _no_step("analyzer", analyzer)
    for name, value in word_settings.items():
        if value:
            raise ParameterError.naming_settings(
                "{setting} is for words: it needs {analyzer='word'}; got {got}",
                setting=Mention(name), got=Mention("analyzer", repr(analyzer)))
    return Plan((*cleaning, *splitting, *([Escape(":")] if prefix else []), *prefix))


def add_missing_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from a file, and values for the settings that are newer than the file.

    Examples
    --------
    >>> add_missing_settings({"analyzer": "word"})
    {'unspaced': 'whole', 'keep': (), 'token_columns': False, 'segmenter': None, 'analyzer': 'word'}
    """
    complete = {**_VALUES_BEFORE, **settings}
    # In files from before `unspaced`, "unicode" means what "marks" means now.
    if "unspaced" not in settings and complete.get("strip_accents") == "unicode":
        complete["strip_accents"] = "marks"
    return complete


def steps_of_stop_words(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps that make tokens of stop words, from the plan's steps before `StopWords`.

    They split a stop word in a script without spaces into pairs only, because its single characters
    are in other words, too.

    Examples
    --------
    >>> steps_of_stop_words((WordsAndPairs(r"\\w+", r"\\w", 1, BOTH),))[0].sizes
    (2,)
    """
    return tuple(
        type(step)(**{**vars(step), "sizes": PAIRS})
        if isinstance(step, WordsAndPairs | WordsAndKinds) and step.sizes else step
        for step in steps)


def _cleaning_steps(name: str, value: Any) -> tuple[Step, ...]:
    """The cleaning steps that the value of a setting asks for."""
    for known_value, steps in _CLEANING_STEPS[name]:
        if isinstance(value, type(known_value)) and value == known_value:
            return steps
    raise _no_step(name, value)


def _sizes(unspaced: str, ngram_range: tuple[int, int]) -> tuple[int, ...]:
    """The numbers of characters of the tokens of scripts without spaces; empty to split none."""
    match unspaced:
        case "both":
            # N-grams are made of single characters: n-grams of overlapping pairs would repeat some.
            return BOTH if tuple(ngram_range) == (1, 1) else SINGLE
        case "pairs":
            return PAIRS
        case "whole":
            return ()
    raise _no_step("unspaced", unspaced)


def _splitting_steps(
    pattern: str, sizes: tuple[int, ...], keep: Sequence[str], token_columns: Any, segmenter: Any
) -> Iterator[Step]:
    """The step that splits texts into words, and `TokenColumns` if some columns are not split."""
    words: Splitting = words_of(pattern)
    # Only a class with an escape (\p{L}, \w) has characters of scripts without spaces. The matches
    # of a pattern that is not a run of one class are never cut.
    if sizes and isinstance(words, Runs) and "\\" in words.members:
        words = WordsAndPairs(words.pattern, words.members, words.min_length, sizes)
    if keep:
        if not isinstance(words, Runs | WordsAndPairs):
            raise ParameterError(
                f"keep={keep!r} needs a pattern that is a run of one class of characters, as the "
                "default; write what to keep into your pattern")
        words = WordsAndKinds(words.pattern, words.members, words.min_length,
                             words.sizes if isinstance(words, WordsAndPairs) else (),
                             _hashable(keep))
    if segmenter is not None and token_columns:
        raise ParameterError.naming_settings(
            "{segmenter} makes words of texts: it needs no {token_columns}")
    if callable(segmenter):
        words = Segments(str(name_of_segmenter(segmenter)), segmenter)
    elif not isinstance(segmenter, str | None):
        raise _no_step("segmenter", segmenter)
    yield words
    # In a model file, a name stands for the function. Users then split texts with the function
    # themselves, so that all text columns hold lists of tokens.
    if token_columns or isinstance(segmenter, str):
        yield TokenColumns(_hashable(token_columns or True))


def name_of_segmenter(segmenter: Any) -> str | None:
    """The dotted name of a segmenter, for files: of the function, or of a callable's class."""
    if segmenter is None or isinstance(segmenter, str):
        return segmenter
    if isinstance(segmenter, partial):
        # Other objects may be written in another way by each process.
        given = [f"{name}{value!r}" if isinstance(value, str | int | float) else f"{name}..."
                 for name, value in [*(("", value) for value in segmenter.args), *(
                     (f"{name}=", value) for name, value in segmenter.keywords.items())]]
        return f"{name_of_segmenter(segmenter.func)}({', '.join(given)})"
    owner = segmenter if type(getattr(segmenter, "__qualname__", None)) is str else type(segmenter)
    # Methods of types that are not written in Python have no module.
    home = owner if type(getattr(owner, "__module__", None)) is str else (
        getattr(owner, "__objclass__", None) or type(getattr(owner, "__self__", owner)))
    return f"{home.__module__}.{owner.__qualname__}"


def words_of(pattern: str) -> Runs | Matches:
    """The step that finds the words of a pattern.

    Examples
    --------
    >>> words_of("[a-z0-9]{3,}"), words_of("a+b")
    (Runs(pattern='[a-z0-9]{3,}', members='a-z0-9', min_length=3), Matches(pattern='a+b'))
    """
    if _SKLEARN_RUN.fullmatch(pattern):
        return Runs(pattern, r"\w", 2)
    run = _RUN.fullmatch(pattern)
    if run is None or int(run["min"] or 1) < 1:
        return Matches(pattern)
    return Runs(pattern, run["members"] or run["single"], int(run["min"] or 1))


def _hashable(value: Any) -> Any:
    """The value, but a tuple in place of a list: JSON has no tuples."""
    return tuple(value) if isinstance(value, list) else value


def _no_step(name: str, value: object) -> ParameterError:
    return ParameterError(f"no step of a plan does {name}={value!r}: it needs one in "
                          "textnb/text/plan.py before any engine can run it")
