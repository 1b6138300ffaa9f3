"""The words of a text and what `Tokenizer(keep=...)` keeps, in plain Python.

It finds what the patterns of `textnb.text.kept` and of words match, in time that grows with the
length of the text: where no name begins at one letter, none begins at the other letters up to the
end of the run, and likewise for amounts and words.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect
from collections.abc import Callable, Sequence
from functools import lru_cache

from textnb.text.kept import CURRENCIES, EMOJI
from textnb.text.unspaced import RANGES

_MEMBER, _UNSPACED, _LETTER, _LETTER_OR_NUMBER = 1, 2, 4, 8
_AMOUNT = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_EMOJI = re.compile(re.sub(r"\\x\{(\w+)\}", lambda code: chr(int(code[1], 16)), EMOJI))
_FIRST_UNSPACED = [first for first, _ in RANGES]


class _Kinds(dict[str, int]):
    """Characters to the classes that they belong to, as bits."""

    def __init__(self, is_member: Callable[[str], bool], pairs: bool) -> None:
        super().__init__()
        self._is_member, self._pairs = is_member, pairs

    def __missing__(self, character: str) -> int:
        code, category = ord(character), unicodedata.category(character)[0]
        place = bisect(_FIRST_UNSPACED, code) - 1
        unspaced = place >= 0 and code <= RANGES[place][1]
        kind = 0
        if self._is_member(character):
            kind = _UNSPACED if unspaced and self._pairs else _MEMBER
        if not unspaced and category in "LN":
            kind |= _LETTER_OR_NUMBER | (_LETTER if category == "L" else 0)
        self[character] = kind
        return kind

    def end_of_run(self, text: str, at: int, wanted: int) -> int:
        """The end of the run of characters of a class that begins at a place."""
        while at < len(text) and self[text[at]] & wanted:
            at += 1
        return at


def kept_and_words(
    text: str, is_member: Callable[[str], bool], least: int, pairs: bool, kinds: Sequence[str]
) -> list[str]:
    """The tokens of `textnb.text.plan.WordsAndKept`.

    Parameters
    ----------
    text : str
        It is cleaned.
    is_member : callable
        Whether a character is in the class of words; it must be the same object each time.
    least : int
        Number of characters of the shortest word.
    pairs : bool
    kinds : sequence of str

    Examples
    --------
    >>> kept_and_words("c# x, u.s. 5%!", str.isalnum, 2, True, ("symbols", "abbreviations"))
    ['c#', 'u.s.', '5%']
    """
    found, classes = [], _kinds_of(is_member, pairs)
    at = no_name = no_share = no_word = 0
    while at < len(text):
        character, end = text[at], at
        kind = classes[character]
        if ("emoji" in kinds and _EMOJI.match(character)) or (
                "punctuation" in kinds and character in "!?"):
            end = at + 1
        elif "symbols" in kinds and character in CURRENCIES:
            amount = _AMOUNT.match(text, at + 1)
            end = amount.end() if amount else at
        elif "symbols" in kinds and "0" <= character <= "9" and at >= no_share:
            amount = _AMOUNT.match(text, at)
            no_share = amount.end() if amount else at
            end = no_share + 1 if text.startswith("%", no_share) else at
        if "symbols" in kinds and kind & _LETTER and at >= no_name:
            no_name = classes.end_of_run(text, at, _LETTER_OR_NUMBER)
            suffix = next((sign for sign in ("++", "#") if text.startswith(sign, no_name)), "")
            end = no_name + len(suffix) if suffix else at
        if "abbreviations" in kinds and kind & _LETTER and end == at:
            last = at
            while last + 1 < len(text) and classes[text[last]] & _LETTER and text[last + 1] == ".":
                last += 2
            end = last if last - at > 2 else at
        if end > at:
            found.append(text[at:end])
        elif kind & _UNSPACED:
            end = classes.end_of_run(text, at, _UNSPACED)
            found += [text[place:place + 2] for place in range(at, end - 1)] or [character]
        elif kind & _MEMBER and at >= no_word:
            no_word = classes.end_of_run(text, at, _MEMBER)
            if no_word - at >= least:
                end = no_word
                found.append(text[at:end])
        at = max(end, at + 1)
    return found


@lru_cache(maxsize=8)
def _kinds_of(is_member: Callable[[str], bool], pairs: bool) -> _Kinds:
    return _Kinds(is_member, pairs)
