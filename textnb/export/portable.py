"""The tokenizers that other engines can reproduce exactly, and the reasons why others are refused.

A tokenizer is portable if its words are runs of characters of one class, or pairs of characters
within such runs, or if it makes n-grams of characters. These need no regular expression, only
tables of characters, and every engine makes the same tokens of them.

>>> from textnb.text.tokens import Tokenizer
>>> words = words_of(Tokenizer(ngram_range=(1, 2)).plan(), ("text",))
>>> words.min_length, words.ngram_range, words.lowercase
(2, (1, 2), True)
>>> words_of(Tokenizer(pattern="a|b").plan(), ("text",))  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
textnb.errors.ExportError: pattern 'a|b' is not a run of one class of characters, and ...
"""

from __future__ import annotations

import sys
from bisect import bisect
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, cast

from textnb.errors import ExportError
from textnb.export import characters
from textnb.export.characters import (
    Decomposition,
    NormalizationForm,
    accents_to_drop,
    decomposition,
)
from textnb.text import plan as plans
from textnb.text.characters import EMOJI, KINDS, LETTER, LETTER_OR_NUMBER, TURKIC
from textnb.text.expressions import stop_tokens, unspaced_class

# The fields of `Words` that ``characters.json`` describes. Every target that splits texts executes
# them; a target that executes more fields adds them to these.
WORDS_FIELDS = (
    "member", "min_length", "lowercase", "ngram_range", "stop_words", "sizes", "replacements",
    "kinds", "analyzer", "normalize", "accents", "columns", "prefixes", "escaped")
# The values of `Words.sizes` that engines know.
_KNOWN_SIZES = (plans.PAIRS, plans.SINGLE, plans.BOTH)


@dataclass(frozen=True)
class Words:
    """A portable tokenizer: its words are runs of characters of one class.

    Attributes
    ----------
    member : str
        The pattern of one character of a word, such as ``[a-z]``.
    min_length : int
        The minimum number of characters of a word.
    lowercase : bool
    ngram_range : (int, int)
        The minimum and the maximum number of words in an n-gram; spaces join its words.
    stop_words : tuple of str
        Words to drop before n-grams are built, sorted.
    sizes : tuple of int
        In scripts without spaces, how many characters a token has: see
        `textnb.text.plan.WordsAndPairs`. Empty if these scripts are split like others.
    replacements : tuple of (str, str)
        Pairs of a string and its replacement, applied in this order before lower-casing.
    kinds : tuple of str
        Kinds of tokens other than words: see `textnb.text.characters`.
    analyzer : {"word", "char", "char_wb"}
        Whether n-grams are made of words, of the characters of the whole text, or of the characters
        of one word. If they are made of characters, ``member`` is any character except white space.
    normalize : {"NFC", "NFD", "NFKC", "NFKD"} or None
        The normalisation of the text, before all other changes.
    accents : {"unicode", "ascii", "marks"} or None
        The characters to drop from the decomposed (NFKD) text, after all other changes.
    columns : tuple of str
        The text columns. The terms of one follow those of another, and no n-gram spans two columns.
    prefixes : tuple of str
        For each column, the prefix of its words, or of its n-grams of characters; "" for none.
    escaped : str
        Characters that get a backslash in n-grams of characters, before prefixes are added.
    """

    member: str
    min_length: int
    lowercase: bool
    ngram_range: tuple[int, int]
    stop_words: tuple[str, ...]
    sizes: tuple[int, ...] = ()
    replacements: tuple[tuple[str, str], ...] = ()
    kinds: tuple[str, ...] = ()
    analyzer: Literal["word", "char", "char_wb"] = "word"
    normalize: NormalizationForm | None = None
    accents: str | None = None
    columns: tuple[str, ...] = ("text",)
    prefixes: tuple[str, ...] = ("",)
    escaped: str = ""

    @cached_property
    def unspaced(self) -> characters.Ranges:
        """The ``members`` that belong to scripts without spaces; empty without ``sizes``.

        A run of them is split into its characters, its pairs, or both; a run of one is a word. A
        run of other members is a word if it has ``min_length`` characters.
        """
        member_class = self.member.removeprefix("[").removesuffix("]")
        return characters.members(unspaced_class(member_class)) if self.sizes else ()

    @cached_property
    def members(self) -> characters.Ranges:
        """The characters of words, as ranges: first and last code point."""
        return characters.members(self.member)

    def executed_by(self, names: Collection[str]) -> Words:
        """Return these words if they need no field beyond ``names``, which an engine executes.

        Raises
        ------
        ExportError
            If a field that is not in ``names`` differs from its default; the message names it.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in names and value != field.default:
                raise ExportError.for_tokenizer(f"{field.name}={value!r}: this target does not "
                                                "execute it")
        return self

    def is_member(self, character: str) -> bool:
        """Whether a character belongs to words."""
        code = ord(character)
        # The number of ranges that begin at this code or before it.
        n_ranges = bisect(self.members, (code, sys.maxunicode))
        return n_ranges > 0 and self.members[n_ranges - 1][1] >= code

    @cached_property
    def lower(self) -> characters.Lowercase | None:
        """The rules of lower-casing; None if case is kept."""
        return characters.lowercase() if self.lowercase else None

    @property
    def normalization(self) -> Decomposition | None:
        """The tables of the normalisation ``normalize``."""
        return None if self.normalize is None else decomposition(self.normalize)

    @property
    def accent_decomposition(self) -> Decomposition | None:
        """The tables that decompose a text, so that its `dropped` characters can be removed."""
        return None if self.accents is None else decomposition("NFKD")

    @property
    def dropped(self) -> characters.Ranges:
        """The characters that are removed because of ``accents``."""
        return () if self.accents is None else accents_to_drop(self.accents)

    @cached_property
    def lower_mapping(self) -> dict[str, str]:
        """The lower case of each character that has one; Σ becomes σ, as if it ended no word."""
        if self.lower is None:
            return {}
        return {**self.lower.mapping, characters.SIGMA: characters.SMALL_SIGMA}

    def to_dict(self) -> dict[str, Any]:
        """The contents of ``characters.json``: see the reference page of file formats."""
        lower, normal, decomposed = self.lower, self.normalization, self.accent_decomposition
        return {
            "members": self.members, "least": self.min_length, "stop_words": self.stop_words,
            "ngram_range": self.ngram_range, "unspaced": self.unspaced,
            "replacements": self.replacements, "lowercase": None if lower is None else {
                "mapping": lower.mapping, "cased": lower.cased, "ignorable": lower.ignorable},
            **({} if self.sizes in ((), plans.PAIRS) else {"unspaced_sizes": self.sizes}),
            **({} if normal is None else {"normalize": {
                "form": self.normalize, "mapping": normal.mapping,
                "classes": normal.combining_class_ranges, "pairs": normal.pairs}}),
            **({} if decomposed is None else {"accents": {
                "kind": self.accents, "mapping": decomposed.mapping,
                "classes": decomposed.combining_class_ranges, "dropped": self.dropped}}),
            **({} if not self.kinds else {"kept": {
                "kinds": self.kinds, "letters": characters.members(LETTER),
                "letters_or_numbers": characters.members(LETTER_OR_NUMBER),
                "emoji": characters.members(EMOJI)}}),
            **({} if self.analyzer == "word" else {"analyzer": self.analyzer}),
            **({} if len(self.columns) == 1 and not self.prefixes[0] else {
                "columns": self.columns, "prefixes": self.prefixes, "escaped": self.escaped}),
        }


@lru_cache(maxsize=8)
def words_of(plan: plans.Plan, columns: tuple[str, ...]) -> Words:
    """Convert a plan to `Words`. Results are cached, because their tables take time to compute.

    Raises
    ------
    ExportError
        If the plan's words are not runs of characters; the message gives the reason only.
    """
    refusal = ExportError.for_tokenizer
    words = Words(member="", min_length=1, lowercase=False, ngram_range=(1, 1), stop_words=(),
                  columns=tuple(columns), prefixes=tuple(plan.prefixes(columns)))
    # Splitting comes first: if it is not portable, the error must be about it.
    for step in sorted(plan.steps, key=lambda step: not isinstance(step, plans.Splitting)):
        match step:
            case plans.Lowercase():
                words = replace(words, lowercase=True)
            case plans.TurkicLowercase(language="tr" | "az"):
                words = replace(words, lowercase=True, replacements=TURKIC)
            case plans.Normalize(form="NFC" | "NFD" | "NFKC" | "NFKD"):
                words = replace(words, normalize=cast(NormalizationForm, step.form))
            case plans.StripAccents(kind="unicode" | "ascii" | "marks"):
                words = replace(words, accents=step.kind)
            case plans.Runs(members=members, min_length=min_length):
                words = replace(words, member=f"[{members}]", min_length=min_length)
            case plans.WordsAndPairs(members=members, min_length=min_length) if (
                    step.sizes in _KNOWN_SIZES):
                words = replace(words, member=f"[{members}]", min_length=min_length,
                                sizes=step.sizes)
            case plans.WordsAndKinds(members=members, min_length=min_length, kinds=kinds) if (
                    set(kinds) <= set(KINDS) and step.sizes in ((), *_KNOWN_SIZES)):
                words = replace(words, member=f"[{members}]", min_length=min_length,
                                sizes=step.sizes, kinds=kinds)
            case plans.Matches(pattern=pattern):
                raise refusal(f"pattern {pattern!r} is not a run of one class of characters, "
                              "and regular expressions differ between engines")
            case plans.Characters() | plans.CharactersInWords():
                words = replace(
                    words, member=f"[^{plans.WHITE}]", ngram_range=(step.min_n, step.max_n),
                    analyzer="char" if isinstance(step, plans.Characters) else "char_wb")
            case plans.SingleSpaces() | plans.FieldPrefix():
                # `analyzer` implies SingleSpaces, and `prefixes` has the values of FieldPrefix.
                pass
            case plans.StopWords():
                words = replace(words, stop_words=tuple(sorted(stop_tokens(plan))))
            case plans.TokenColumns():
                raise refusal(f"{step.setting}: such columns hold lists of tokens, and this target "
                              "splits texts")
            case plans.Escape(characters=escaped):
                words = replace(words, escaped=escaped)
            case plans.NGrams():
                words = replace(words, ngram_range=(step.min_n, step.max_n))
            case _:
                raise refusal(f"{step.setting}: this target does not execute it")
    assert words.member, "a plan splits texts"
    return words
