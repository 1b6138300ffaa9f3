"""Unicode's normal forms in nearly linear time.

Python sorts the marks on a letter with an insertion sort. A sender of mail may write a letter with
100,000 marks: sorting them would take a minute, in which no signal is handled.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from typing import Literal

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
# A long run of characters that may be marks. No character of \w is a mark or decomposes to marks
# alone, except for the two letters of `_HALF_WIDTH`.
_RUN_OF_MARKS = re.compile(r"[^\w\s\x00-\x7f]{32,}")
# Up to this length of a text, Python's sort takes less than a millisecond.
_MAX_SHORT_LENGTH = 1000
# The letters of half width that NFKC and NFKD decompose to a mark, with these marks.
_HALF_WIDTH = (("\uff9e", "\u3099"), ("\uff9f", "\u309a"))


def normalize(form: Form, text: str) -> str:
    """As `unicodedata.normalize`.

    Examples
    --------
    >>> normalize("NFC", "e\\u0301") == "\\xe9"
    True
    """
    if len(text) <= _MAX_SHORT_LENGTH or text.isascii():
        return unicodedata.normalize(form, text)
    decomposed: Form = "NFD"
    if "K" in form:
        decomposed = "NFKD"
        for letter, mark in _HALF_WIDTH:
            text = text.replace(letter, mark)
    return unicodedata.normalize(
        form, _RUN_OF_MARKS.sub(lambda match: _sort_marks(decomposed, match[0]), text))


def _sort_marks(form: Form, run: str) -> str:
    """Decompose a run of characters, and sort its marks in Unicode's order."""
    if unicodedata.is_normalized(form, run):
        return run
    characters = "".join(unicodedata.normalize(form, char) for char in run)
    return "".join(
        char for _, marks in groupby(characters, lambda char: unicodedata.combining(char) > 0)
        for char in sorted(marks, key=unicodedata.combining))
