"""Tables of characters, for engines with another version of Unicode.

A letter of one Unicode version may not be a letter in another. Exports therefore list the
characters of words and the lower case of each character. The tables are made by running Polars on
every character of Unicode.

One rule of lower-casing depends on the neighbours: a capital sigma (Σ) becomes ς at the end of a
word, and σ elsewhere. It is at the end if, leaving out *ignorable* characters, the character before
it is *cased* and the one after it is not (the Unicode Standard, table 3-17, Final_Sigma).

Normalisation decomposes each character by itself, then puts marks that follow each other in the
order of their classes, then (NFC, NFKC) composes pairs again. The 11,172 syllables of Hangul are in
none of the tables, as arithmetic decomposes and composes them; engines without arithmetic use
`syllables`.

>>> table = decomposition("NFC")
>>> table.mapping["é"] == "e" + chr(0x301), table.pairs["e" + chr(0x301)]
(True, 'é')
>>> len(decomposition("NFKD").pairs), decomposition("NFKD").mapping["ﬁ"]
(0, 'fi')
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.text.characters import ACCENTS, COMBINING

Ranges = tuple[tuple[int, int], ...]
SIGMA, FINAL_SIGMA, SMALL_SIGMA = "Σ", "ς", "σ"
NormalizationForm = Literal["NFC", "NFD", "NFKC", "NFKD"]
# The first and the last syllable of Hangul.
_HANGUL = (pl.lit("\uac00"), pl.lit("\ud7a3"))
# A mark of the highest combining class: normalisation moves it behind every other mark.
_LAST_MARK = "\u0345"


@dataclass(frozen=True)
class Lowercase:
    """The rules of lower-casing.

    Attributes
    ----------
    mapping : dict of str to str
        The characters that change, without Σ; one of them (İ) becomes two characters.
    cased, ignorable : tuple of (int, int)
        First and last code points of the characters that decide the form of Σ.

    Examples
    --------
    >>> lower = lowercase()
    >>> lower.mapping["Ä"], lower.mapping["İ"] == "i" + chr(0x307), "Σ" in lower.mapping
    ('ä', True, False)
    """

    mapping: dict[str, str]
    cased: Ranges
    ignorable: Ranges


@lru_cache(maxsize=64)
def members(pattern: str) -> Ranges:
    """Find the characters that a pattern of one character matches: first and last code points.

    Examples
    --------
    >>> members("[0-9_]")
    ((48, 57), (95, 95))
    """
    codes, characters = _characters()
    return _ranges(codes[characters.str.contains(rf"^(?s:{pattern})$").to_numpy()])


@lru_cache(maxsize=1)
def lowercase() -> Lowercase:
    """Find Polars' rules of lower-casing."""
    codes, characters = _characters()
    lower = characters.str.to_lowercase()
    changed = (characters != lower) & (characters != SIGMA)
    mapping = dict(zip(characters.filter(changed), lower.filter(changed), strict=True))
    # Σ is final after a cased character, and after "a" and then an ignorable character.
    cased = _ends_in_final_sigma(characters + SIGMA)
    ignorable = _ends_in_final_sigma("a" + characters + SIGMA) & ~cased
    return Lowercase(mapping, _ranges(codes[cased]), _ranges(codes[ignorable]))


def regex_class(ranges: Ranges, code: str = r"\x{{{:x}}}") -> str:
    r"""Write the inside of a character class of a pattern; ``code`` is the template of a character.

    Examples
    --------
    >>> regex_class(((48, 57), (95, 95)))
    '\\x{30}-\\x{39}\\x{5f}'
    """
    return "".join(code.format(first) if first == last
                   else f"{code.format(first)}-{code.format(last)}" for first, last in ranges)


def _ends_in_final_sigma(texts: pl.Series) -> NDArray[np.bool_]:
    return texts.str.to_lowercase().str.ends_with(FINAL_SIGMA).to_numpy()


def final_sigma(lower: Lowercase, code: str, end: str) -> str:
    """Write a pattern of a final Σ between two groups; its matches do not overlap.

    The first group is a cased character and ignorable ones. The second is ignorable ones, and then
    the end or a character that is neither. So the next match begins with a later cased character.
    ``code`` is the template of a character, and ``end`` the pattern of the end of a text.
    """
    cased, ignorable = regex_class(lower.cased, code), regex_class(lower.ignorable, code)
    return f"([{cased}][{ignorable}]*){SIGMA}([{ignorable}]*(?:[^{cased}{ignorable}]|{end}))"


def ranges_of(characters: Iterable[str]) -> Ranges:
    """First and last code points of the runs that these distinct characters form, in any order."""
    return _ranges(np.array(sorted(map(ord, characters)), dtype=np.int64))


def characters_in(ranges: Ranges) -> Iterator[str]:
    """The characters in some ranges, in order."""
    return (chr(code) for first, last in ranges for code in range(first, last + 1))


def subtract_ranges(ranges: Ranges, inner: Ranges) -> Ranges:
    """Remove ``inner`` from ``ranges``, both sorted; each inner range is within one of the others.

    Examples
    --------
    >>> subtract_ranges(((1, 9), (20, 20)), ((1, 2), (5, 6)))
    ((3, 4), (7, 9), (20, 20))
    """
    remaining = []
    for first, last in ranges:
        for inner_first, inner_last in inner:
            if first <= inner_first and inner_last <= last:
                remaining.append((first, inner_first - 1))
                first = inner_last + 1
        remaining.append((first, last))
    return tuple((first, last) for first, last in remaining if first <= last)


@dataclass(frozen=True)
class Decomposition:
    """The tables of a form of normalisation.

    Attributes
    ----------
    mapping : dict of str to str
        The characters that change when they are decomposed, without Hangul.
    classes : dict of str to int
        The combining class of each mark, which is never 0.
    pairs : dict of str to str
        Two characters that become one, without Hangul; empty for NFD and NFKD.
    """

    mapping: dict[str, str]
    classes: dict[str, int]
    pairs: dict[str, str]

    @cached_property
    def combining_class_ranges(self) -> tuple[tuple[int, int, int], ...]:
        """First and last code point of marks of one class, and the class; sorted."""
        by_class: dict[int, list[str]] = {}
        for character, number in self.classes.items():
            by_class.setdefault(number, []).append(character)
        return tuple(sorted((first, last, number) for number, marks in by_class.items()
                            for first, last in ranges_of(marks)))


@lru_cache(maxsize=4)
def decomposition(form: NormalizationForm) -> Decomposition:
    """Find the tables of a form, as the installed Polars normalises."""
    characters = _characters()[1]
    decomposed_form = cast(NormalizationForm, form.replace("C", "D"))
    decomposed = characters.str.normalize(decomposed_form)
    changed = (characters != decomposed) & ~characters.is_between(*_HANGUL)
    mapping = dict(zip(characters.filter(changed), decomposed.filter(changed), strict=True))
    return Decomposition(mapping, _combining_classes(), _pairs() if form != decomposed_form else {})


@lru_cache(maxsize=1)
def syllables() -> dict[str, str]:
    """The decompositions of the syllables of Hangul."""
    characters = _characters()[1]
    hangul = characters.filter(characters.is_between(*_HANGUL))
    return dict(zip(hangul, hangul.str.normalize("NFD"), strict=True))


def accents_to_drop(kind: str) -> Ranges:
    """The characters that `textnb.text.plan.StripAccents` drops after it decomposes.

    Examples
    --------
    >>> accents_to_drop("ascii")[0][0], accents_to_drop("marks")[0]
    (128, (768, 846))
    """
    return members({"ascii": r"[^\x00-\x7F]", "unicode": ACCENTS, "marks": COMBINING}[kind])


@lru_cache(maxsize=1)
def _combining_classes() -> dict[str, int]:
    """Find the combining class of each mark, by the order in which normalisation puts marks."""
    characters = _characters()[1]
    characters = characters.filter(characters == characters.str.normalize("NFD"))
    # Normalisation moves a mark before `_LAST_MARK`, and no other character.
    is_mark = (_LAST_MARK + characters).str.normalize("NFD").str.ends_with(_LAST_MARK)
    marks = characters.filter(is_mark)
    # A mark of each class in Python's version of Unicode, whose marks are below 0x20000.
    mark_of_class = {number: chr(code) for code in range(0x20000)
                     if (number := unicodedata.combining(chr(code)))
                     and unicodedata.is_normalized("NFD", chr(code))}
    classes = np.zeros(len(marks), dtype=np.int64)
    for number, other in mark_of_class.items():
        # A mark stays behind the other one if its class is the same or higher.
        is_behind = (other + marks).str.normalize("NFD").str.starts_with(other).to_numpy()
        classes[is_behind] = np.maximum(classes[is_behind], number)
    return dict(zip(marks, classes.tolist(), strict=True))


@lru_cache(maxsize=1)
def _pairs() -> dict[str, str]:
    """Find the pairs of characters that NFC joins: see `Decomposition`."""
    characters = _characters()[1]
    composed, decomposed = pl.col("composed"), pl.col("decomposed")
    frame = pl.DataFrame(
        {"composed": characters, "decomposed": characters.str.normalize("NFD")}).filter(
        composed != decomposed, ~composed.is_between(*_HANGUL),
        composed == composed.str.normalize("NFC"))
    # The last character of a decomposition joins the composition of all before it.
    pairs = decomposed.str.head(-1).str.normalize("NFC") + decomposed.str.tail(1)
    return dict(frame.select(pairs=pairs, composed="composed").iter_rows())


@lru_cache(maxsize=1)
def _characters() -> tuple[NDArray[np.int64], pl.Series]:
    """All code points except surrogates, and their characters."""
    codes = np.concatenate([np.arange(0xD800), np.arange(0xE000, 0x110000)])
    return codes, pl.Series([chr(code) for code in codes.tolist()])


def _ranges(codes: NDArray[np.int64]) -> Ranges:
    """First and last code points of the runs of ascending code points."""
    if not len(codes):
        return ()
    breaks = np.flatnonzero(np.diff(codes) > 1) + 1
    starts = [0, *breaks.tolist(), len(codes)]
    return tuple((int(codes[start]), int(codes[end - 1])) for start, end in pairwise(starts))
