"""Tables of Unicode's decompositions, for engines with another version of Unicode or with none.

Normalisation decomposes each character by itself, then puts marks that follow each other in the
order of their classes, then (NFC, NFKC) composes pairs again. The tables are made by running Polars
on every character. The 11,172 syllables of Hangul are in none of them, as arithmetic does them;
`syllables` is for engines without it.

>>> table = decomposition("NFC")
>>> table.mapping["é"] == "e" + chr(0x301), table.pairs["e" + chr(0x301)]
(True, 'é')
>>> len(decomposition("NFKD").pairs), decomposition("NFKD").mapping["ﬁ"]
(0, 'fi')
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, cast

import numpy as np
import polars as pl

from textnb.export.characters import Ranges, all_characters, members, ranges_of
from textnb.text.characters import ACCENTS, COMBINING

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
# The first and the last syllable.
_HANGUL = (pl.lit("\uac00"), pl.lit("\ud7a3"))
_LAST_MARK = "\u0345"


@dataclass(frozen=True)
class Decomposition:
    """The tables of a form of normalisation.

    Attributes
    ----------
    mapping : dict of str to str
        The characters that change when they are decomposed, without Hangul.
    classes : dict of str to int
        The combining classes of marks, which are not 0.
    pairs : dict of str to str
        Two characters that become one, without Hangul; empty for NFD and NFKD.
    """

    mapping: dict[str, str]
    classes: dict[str, int]
    pairs: dict[str, str]

    @cached_property
    def class_ranges(self) -> tuple[tuple[int, int, int], ...]:
        """First and last code point of marks of one class, and the class; sorted."""
        by_class: dict[int, list[str]] = {}
        for character, number in self.classes.items():
            by_class.setdefault(number, []).append(character)
        return tuple(sorted((first, last, number) for number, marks in by_class.items()
                            for first, last in ranges_of(marks)))


@lru_cache(maxsize=4)
def decomposition(form: Form) -> Decomposition:
    """Find the tables of a form, as the installed Polars normalises."""
    characters = all_characters()
    apart = cast(Form, form.replace("C", "D"))
    decomposed = characters.str.normalize(apart)
    changed = (characters != decomposed) & ~characters.is_between(*_HANGUL)
    mapping = dict(zip(characters.filter(changed), decomposed.filter(changed), strict=True))
    return Decomposition(mapping, _classes(), _pairs() if form != apart else {})


@lru_cache(maxsize=1)
def syllables() -> dict[str, str]:
    """The decompositions of the syllables of Hangul."""
    characters = all_characters()
    hangul = characters.filter(characters.is_between(*_HANGUL))
    return dict(zip(hangul, hangul.str.normalize("NFD"), strict=True))


def dropped_with_accents(kind: str) -> Ranges:
    """The characters that `textnb.text.plan.StripAccents` drops after it decomposes.

    Examples
    --------
    >>> dropped_with_accents("ascii")[0][0], dropped_with_accents("marks")[0]
    (128, (768, 846))
    """
    return members({"ascii": r"[^\x00-\x7F]", "unicode": ACCENTS, "marks": COMBINING}[kind])


@lru_cache(maxsize=1)
def _classes() -> dict[str, int]:
    characters = all_characters()
    characters = characters.filter(characters == characters.str.normalize("NFD"))
    # The mark of the highest class goes behind each other mark.
    is_mark = (_LAST_MARK + characters).str.normalize("NFD").str.ends_with(_LAST_MARK)
    marks = characters.filter(is_mark)
    known = {number: chr(code) for code in range(0x20000)
             if (number := unicodedata.combining(chr(code)))
             and unicodedata.is_normalized("NFD", chr(code))}
    classes = np.zeros(len(marks), dtype=np.int64)
    for number, other in known.items():
        # A mark stays behind those of its own class and of lower ones.
        stays = ((other + marks).str.normalize("NFD").str.starts_with(other) & (marks != other)
                 | (marks == other)).to_numpy()
        classes[stays] = np.maximum(classes[stays], number)
    return dict(zip(marks, classes.tolist(), strict=True))


@lru_cache(maxsize=1)
def _pairs() -> dict[str, str]:
    characters = all_characters()
    frame = pl.DataFrame({"whole": characters, "apart": characters.str.normalize("NFD")}).filter(
        pl.col("whole") != pl.col("apart"), ~pl.col("whole").is_between(*_HANGUL),
        pl.col("whole") == pl.col("whole").str.normalize("NFC"))
    # The last character of a decomposition is the one that joined the composition of the others.
    pairs = pl.col("apart").str.head(-1).str.normalize("NFC") + pl.col("apart").str.tail(1)
    table = frame.select(pairs=pairs, whole="whole")
    return dict(table.iter_rows())
