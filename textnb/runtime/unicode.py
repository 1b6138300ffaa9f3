"""Unicode's normal forms in a time that grows with the text.

Python sorts the marks on a letter by insertion: on a letter with 100,000 marks, as a sender of mail
may write it, that takes a minute, in which no signal is handled.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from typing import Literal

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
# Long runs that hold all marks on a letter, and other characters: nothing in \w, except for
# the two letters below, decomposes to a mark.
_MARKS = re.compile(r"[^\w\s\x00-\x7f]{32,}")
# Below this length, sorting by insertion takes less than a millisecond.
_SHORT = 1000
# The two letters, of half width, with the marks to which NFKC and NFKD decompose them.
_HALF_WIDTH = (("\uff9e", "\u3099"), ("\uff9f", "\u309a"))


def normalize(form: Form, text: str) -> str:
    """`unicodedata.normalize`.

    Examples
    --------
    >>> normalize("NFC", "e\\u0301") == "\\xe9"
    True
    """
    if len(text) <= _SHORT or text.isascii():
        return unicodedata.normalize(form, text)
    decomposed: Form = "NFD"
    if "K" in form:
        decomposed = "NFKD"
        for letter, mark in _HALF_WIDTH:
            text = text.replace(letter, mark)
    return unicodedata.normalize(
        form, _MARKS.sub(lambda match: _in_order(decomposed, match[0]), text))


def _in_order(form: Form, run: str) -> str:
    """A run of characters, decomposed, and its marks in Unicode's order."""
    if unicodedata.is_normalized(form, run):
        return run
    parts = "".join(unicodedata.normalize(form, char) for char in run)
    return "".join(
        char for _, marks in groupby(parts, lambda char: unicodedata.combining(char) > 0)
        for char in sorted(marks, key=unicodedata.combining))
