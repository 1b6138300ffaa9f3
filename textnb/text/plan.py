r"""The steps of a tokenizer as data: a plan is a sequence of steps, and engines execute it.

    cleaning:  Normalize -> Lowercase -> StripAccents -> SingleSpaces    text to text
    splitting: Runs | WordsAndPairs | Matches | Characters | CharactersInWords    to tokens
               TokenColumns: columns of tokens, which are cleaned one by one and not split
    then:      StopWords -> Escape -> FieldPrefix -> NGrams              tokens to tokens

Polars' expressions, the compiled loops, plain Python and the exports each execute plans in their
own way. Each engine knows some steps by their types and values, and refuses every other step by
name. So an engine never leaves out a step in silence.

This module imports neither Polars nor NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from textnb.errors import ParameterError
from textnb.runtime.values import Value

# White space by Python's str.isspace; the regex engine's \s lacks the four separators.
WHITE = r"\s\x1c-\x1f"


class Step(Value):
    """One step of a plan. A new kind of step may be a frozen dataclass."""

    # The setting as `str.format` makes it from the step's fields; if empty, the step's repr.
    _setting = ""

    @property
    def setting(self) -> str:
        """The tokenizer's setting for the step, as ``name=value``, for messages."""
        return self._setting.format(**vars(self)) if self._setting else repr(self)


class Cleaning(Step):
    """A step from text to text."""


class Splitting(Step):
    """The step from text to tokens."""


class Normalize(Cleaning):
    """Unicode normalisation: NFC, NFD, NFKC or NFKD."""

    form: str

    _setting = "normalize={form!r}"


class Lowercase(Cleaning):
    """Lower case, by Unicode's full mapping."""

    _setting = "lowercase=True"


class TurkicLowercase(Cleaning):
    """Lower case of Turkish ("tr") or Azerbaijani ("az").

    What `textnb.text.casing.TURKIC` lists is replaced; the rest is as of `Lowercase`.
    """

    language: str

    @property
    def setting(self) -> str:
        return f"lowercase={self.language!r}"


class StripAccents(Cleaning):
    """Decompose (NFKD), then drop characters.

    Combining marks ("marks"), these and Arabic's tatweel ("unicode"), or all beyond ASCII
    ("ascii").
    """

    kind: str

    _setting = "strip_accents={kind!r}"


class SingleSpaces(Cleaning):
    """Two or more white characters become one space; a single one does not change."""

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
    least : int
        Shorter runs are no words.
    """

    pattern: str
    members: str
    least: int

    _setting = "pattern={pattern!r}"


class WordsAndPairs(Splitting):
    r"""The runs of `Runs`, each cut where a script without spaces begins or ends.

    A stretch of characters of `textnb.text.unspaced` becomes its overlapping pairs of characters,
    and a stretch of one character that character. Any other stretch is a word if it has ``least``
    characters.

    Attributes
    ----------
    pattern, members, least
        See `Runs`.
    """

    pattern: str
    members: str
    least: int

    _setting = "pattern={pattern!r} with unspaced='pairs'"


class WordsAndKept(Splitting):
    """Words as of `Runs`, or with ``pairs`` as of `WordsAndPairs`, and what else is kept.

    Where one of the patterns of `textnb.text.kept` begins a match, that is a token, and what
    follows it is read on from its end.

    Attributes
    ----------
    pattern, members, least
        As of `Runs`.
    pairs : bool
    kinds : tuple of str
    """

    pattern: str
    members: str
    least: int
    pairs: bool
    kinds: tuple[str, ...]

    @property
    def setting(self) -> str:
        return f"keep={self.kinds!r}"


class Segments(Splitting):
    """The tokens that a function of the user makes of a text; each is then cleaned.

    Attributes
    ----------
    name : str
    function : callable
        From a text to its tokens.
    """

    name: str
    function: Callable[[str], Iterable[str]]

    @property
    def setting(self) -> str:
        return f"segmenter={self.name}"


class Characters(Splitting):
    """N-grams of characters across the text, of ``least`` to ``most`` characters."""

    least: int
    most: int

    _setting = "analyzer='char'"


class CharactersInWords(Splitting):
    """N-grams of characters within words, each padded by a space on both sides.

    Words are what white space separates. A padded word that is shorter than ``least`` is one
    n-gram by itself.
    """

    least: int
    most: int

    _setting = "analyzer='char_wb'"


class TokenColumns(Step):
    """Columns of lists of tokens, which are not split.

    Cleaning applies to each token, and tokens that are null or empty after it are dropped.

    Attributes
    ----------
    columns : tuple of str, or None
        None for all text columns.
    """

    columns: tuple[str, ...] | None

    @property
    def setting(self) -> str:
        return f"token_columns={True if self.columns is None else self.columns!r}"

    def hold_tokens(self, columns: Sequence[str]) -> list[bool]:
        """Whether each text column is one of tokens.

        Raises
        ------
        ParameterError
            If a column of tokens is not among the text columns.

        Examples
        --------
        >>> TokenColumns(("words",)).hold_tokens(["subject", "words"])
        [False, True]
        """
        wanted = columns if self.columns is None else self.columns
        for name in wanted:
            if name not in columns:
                raise ParameterError(f"token_columns names {name!r}, which is not among the text "
                                     f"columns {list(columns)!r}")
        return [name in wanted for name in columns]


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
    columns : tuple of str, or None
        The columns whose tokens get a prefix; None for all.
    """

    columns: tuple[str, ...] | None

    @property
    def setting(self) -> str:
        return f"field_prefix={True if self.columns is None else self.columns!r}"

    def prefixes(self, columns: Sequence[str]) -> list[str]:
        """The prefix of each text column, "" for none.

        Raises
        ------
        ParameterError
            If a column is not among the text columns, or its name can't be a prefix.

        Examples
        --------
        >>> FieldPrefix(("subject",)).prefixes(["subject", "body"])
        ['subject:', '']
        """
        wanted = list(columns) if self.columns is None else list(self.columns)
        for name in wanted:
            if name not in columns:
                raise ParameterError(f"field_prefix names {name!r}, which is not among the "
                                     f"text columns {list(columns)!r}")
        for name in columns:
            if name in wanted and re.search(r"[ :\\]", name):
                raise ParameterError(f"column {name!r} can't be a field prefix: rename it without "
                                     "space, colon and backslash")
        return [f"{name}:" if name in wanted else "" for name in columns]


class NGrams(Step):
    """N-grams of ``least`` to ``most`` tokens, joined by one space; shorter ones come first."""

    least: int
    most: int

    _setting = "ngram_range=({least}, {most})"


class OwnCode(Step):
    """Code of a subclass of `Tokenizer`, which no engine can execute."""

    name: str

    _setting = "{name}, a class of its own"


# Cleaning steps may follow each other; of the others, a plan has at most one each.
_ORDER = (Cleaning, Splitting, TokenColumns, StopWords, Escape, FieldPrefix, NGrams)
Kind = TypeVar("Kind", bound=Step)


class Plan(Value):
    """The steps from the text of a column to its tokens; hashable and comparable.

    Examples
    --------
    >>> plan = Plan((Lowercase(), Matches("[^,]+"), NGrams(2, 2)))
    >>> plan.cleaning, plan.after_cleaning
    ((Lowercase(),), (Matches(pattern='[^,]+'), NGrams(least=2, most=2)))
    >>> plan.find(NGrams), plan.find(Escape)
    (NGrams(least=2, most=2), None)
    """

    steps: tuple[Step, ...]

    def __init__(self, steps: tuple[Step, ...]) -> None:
        super().__init__(steps)
        # Engines may rely on the order of the steps.
        places = [place for step in self.steps for place, kind in enumerate(_ORDER)
                  if isinstance(step, kind)]
        if places.count(1) != 1 or any(a > b or a == b > 0 for a, b in pairwise(places)):
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
    def _split_at(self) -> int:
        return next(place for place, step in enumerate(self.steps) if isinstance(step, Splitting))

    def find(self, kind: type[Kind]) -> Kind | None:
        """The step of a type, if there is one."""
        return next((step for step in self.steps if isinstance(step, kind)), None)

    def prefixes(self, columns: Sequence[str]) -> list[str]:
        """The field prefix of each text column, "" for none; see `FieldPrefix.prefixes`."""
        step = self.find(FieldPrefix)
        return [""] * len(columns) if step is None else step.prefixes(columns)

    def hold_tokens(self, columns: Sequence[str]) -> list[bool]:
        """Whether each text column is one of tokens; see `TokenColumns.hold_tokens`."""
        step = self.find(TokenColumns)
        return [False] * len(columns) if step is None else step.hold_tokens(columns)
