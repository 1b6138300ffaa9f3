"""The tokenizers that other engines can reproduce exactly, and the reasons why others are refused.

A tokenizer is portable if its words are runs of characters of one class, or pairs of characters
within such runs, or if it makes n-grams of characters. These need no regular expression, only
tables of characters, and are the same in every engine.

>>> from textnb.text.tokens import Tokenizer
>>> words = portable(Tokenizer(ngram_range=(1, 2)).plan(), ("text",))
>>> words.min_length, words.ngram_range, words.lowercase
(2, (1, 2), True)
>>> portable(Tokenizer(pattern="a|b").plan(), ("text",))  # doctest: +ELLIPSIS
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
    Form,
    accents_to_drop,
    decomposition,
)
from textnb.text import plan as plans
from textnb.text.characters import EMOJI, KINDS, LETTER, LETTER_OR_NUMBER, TURKIC
from textnb.text.expressions import stop_tokens, unspaced_class

# The fields of `Words` that ``characters.json`` describes, and that all targets for texts execute.
# A target that executes another field adds it to these, and the others refuse it.
FIELDS = ("member", "min_length", "lowercase", "ngram_range", "stop_words", "sizes",
          "replacements", "kinds", "analyzer", "normalize", "accents", "columns", "prefixes",
          "escaped")
_SIZES = (plans.PAIRS, plans.SINGLE, plans.BOTH)


@dataclass(frozen=True)
class Words:
    """A portable tokenizer: words are runs of characters.

    Attributes
    ----------
    member : str
        The class of characters, as a pattern of one character.
    min_length : int
        The length of the shortest word.
    lowercase : bool
    ngram_range : (int, int)
        Numbers of words in an n-gram, which one space joins.
    stop_words : tuple of str
        Words to drop before n-grams are built, sorted.
    sizes : tuple of int
        The numbers of characters of tokens of scripts without spaces, which separate other words:
        see `textnb.text.plan.WordsAndPairs`. Empty if their characters are in words.
    replacements : tuple of (str, str)
        Strings of the text, and what replaces them before lower-casing, in this order.
    kinds : tuple of str
        Kinds of tokens other than words: see `textnb.text.characters`.
    analyzer : {"word", "char", "char_wb"}
        What n-grams are of: words, or characters of the whole text, or of one word. The ``member``
        is then any character but white space.
    normalize : {"NFC", "NFD", "NFKC", "NFKD"} or None
        The normalisation of the text, before all else.
    accents : {"unicode", "ascii", "marks"} or None
        The characters to drop from the decomposed (NFKD) text, after all else.
    columns : tuple of str
        The text columns, whose terms follow each other; no n-gram is of two of them.
    prefixes : tuple of str
        The prefix of each word of each column, or of each n-gram of characters; "" for none.
    escaped : str
        Characters of n-grams of characters that get a backslash, before prefixes.
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
    normalize: Form | None = None
    accents: str | None = None
    columns: tuple[str, ...] = ("text",)
    prefixes: tuple[str, ...] = ("",)
    escaped: str = ""

    @cached_property
    def unspaced(self) -> characters.Ranges:
        """The ``members`` of scripts without spaces; empty without ``sizes``.

        A run of them is replaced by its characters, pairs or both; a single one is a word. A run of
        other members is a word if it has ``min_length`` characters.
        """
        inside = self.member.removeprefix("[").removesuffix("]")
        return characters.members(unspaced_class(inside)) if self.sizes else ()

    @cached_property
    def members(self) -> characters.Ranges:
        """First and last code points of the characters of words."""
        return characters.members(self.member)

    def executed_by(self, names: Collection[str]) -> Words:
        """These words, for an engine that executes the fields of ``names`` alone.

        Raises
        ------
        ExportError
            If another field has a value that is not its default; the message names it.
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
        place = bisect(self.members, (code, sys.maxunicode))
        return place > 0 and self.members[place - 1][1] >= code

    @cached_property
    def lower(self) -> characters.Lowercase | None:
        """The rules of lower-casing; None if case is kept."""
        return characters.lowercase() if self.lowercase else None

    @property
    def normalizing(self) -> Decomposition | None:
        """The tables of `normalize`."""
        return None if self.normalize is None else decomposition(self.normalize)

    @property
    def stripping(self) -> Decomposition | None:
        """The tables by which a text is decomposed, before the `dropped` characters are removed."""
        return None if self.accents is None else decomposition("NFKD")

    @property
    def dropped(self) -> characters.Ranges:
        """The characters that are removed as accents."""
        return () if self.accents is None else accents_to_drop(self.accents)

    @cached_property
    def lower_mapping(self) -> dict[str, str]:
        """The characters that change in lower case, with Σ where it is not final."""
        if self.lower is None:
            return {}
        return {**self.lower.mapping, characters.SIGMA: characters.SMALL_SIGMA}

    def to_dict(self) -> dict[str, Any]:
        """The contents of ``characters.json``: see the reference page of file formats."""
        lower, normal, stripping = self.lower, self.normalizing, self.stripping
        return {
            "members": self.members, "least": self.min_length, "stop_words": self.stop_words,
            "ngram_range": self.ngram_range, "unspaced": self.unspaced,
            "replacements": self.replacements, "lowercase": None if lower is None else {
                "mapping": lower.mapping, "cased": lower.cased, "ignorable": lower.ignorable},
            **({} if self.sizes in ((), plans.PAIRS) else {"unspaced_sizes": self.sizes}),
            **({} if normal is None else {"normalize": {
                "form": self.normalize, "mapping": normal.mapping,
                "classes": normal.class_ranges, "pairs": normal.pairs}}),
            **({} if stripping is None else {"accents": {
                "kind": self.accents, "mapping": stripping.mapping,
                "classes": stripping.class_ranges, "dropped": self.dropped}}),
            **({} if not self.kinds else {"kept": {
                "kinds": self.kinds, "letters": characters.members(LETTER),
                "letters_or_numbers": characters.members(LETTER_OR_NUMBER),
                "emoji": characters.members(EMOJI)}}),
            **({} if self.analyzer == "word" else {"analyzer": self.analyzer}),
            **({} if len(self.columns) == 1 and not self.prefixes[0] else {
                "columns": self.columns, "prefixes": self.prefixes, "escaped": self.escaped}),
        }


@lru_cache(maxsize=8)
def portable(plan: plans.Plan, columns: tuple[str, ...]) -> Words:
    """Convert a plan to runs of characters: the same object for each call, as tables take time.

    Raises
    ------
    ExportError
        If the plan's words are not runs of characters; the message gives the reason only.
    """
    refusal = ExportError.for_tokenizer
    words = Words("", 1, False, (1, 1), (), columns=tuple(columns),
                  prefixes=tuple(plan.prefixes(columns)))
    # How texts are split is checked first: if that is not portable, no other setting matters.
    for step in sorted(plan.steps, key=lambda step: not isinstance(step, plans.Splitting)):
        match step:
            case plans.Lowercase():
                words = replace(words, lowercase=True)
            case plans.TurkicLowercase(language="tr" | "az"):
                words = replace(words, lowercase=True, replacements=TURKIC)
            case plans.Normalize(form="NFC" | "NFD" | "NFKC" | "NFKD"):
                words = replace(words, normalize=cast(Form, step.form))
            case plans.StripAccents(kind="unicode" | "ascii" | "marks"):
                words = replace(words, accents=step.kind)
            case plans.Runs(members=members, min_length=min_length):
                words = replace(words, member=f"[{members}]", min_length=min_length)
            case plans.WordsAndPairs(members=members, min_length=min_length) if (
                    step.sizes in _SIZES):
                words = replace(words, member=f"[{members}]", min_length=min_length,
                                sizes=step.sizes)
            case plans.WordsAndKinds(members=members, min_length=min_length, kinds=kinds) if (
                    set(kinds) <= set(KINDS) and step.sizes in ((), *_SIZES)):
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
