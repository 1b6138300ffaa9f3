"""Strings that are valid Unicode, and Unicode's normal forms in nearly linear time.

For these forms, Python sorts the marks on a letter with an insertion sort. A sender of mail may
write a letter with 100,000 marks: sorting them would take a minute, in which no signal is handled.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Literal

from textnb.errors import DataError

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
# A long run of characters that may be marks. No character of \w is a mark or decomposes to marks
# alone, except for the two letters of `_HALF_WIDTH`.
_RUN_OF_MARKS = re.compile(r"[^\w\s\x00-\x7f]{32,}")
# Up to this length of a text, Python's sort takes less than a millisecond.
_MAX_SHORT_LENGTH = 1000
# The letters of half width that NFKC and NFKD decompose to a mark, with these marks.
_HALF_WIDTH = (("\uff9e", "\u3099"), ("\uff9f", "\u309a"))


def is_unicode(text: str) -> bool:
    """Whether a string can be encoded: it has no lone surrogate, which is half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_unicode(values: Iterable[Any], what: str) -> None:
    """Check that all strings among values, or in lists of them, are valid Unicode.

    ``what`` says what a string is, for the error, such as "label".

    Raises
    ------
    DataError
        If a string is not; the error names it and its row.
    """
    for row, value in enumerate(values):
        for text in value if isinstance(value, (list, tuple, set, frozenset)) else (value,):
            if isinstance(text, str) and not is_unicode(text):
                raise DataError(f"{what} {str(text)!r:.60} of row {row} (counted from 0) is not "
                                "valid Unicode: it has a lone surrogate, half of a character; "
                                "where it was decoded, decode it with errors='replace'")


@contextmanager
def unicode_errors(values: Iterable[Any], what: str) -> Iterator[None]:
    """Context that turns an encoding error into a DataError that names the string and its row."""
    try:
        yield
    except UnicodeEncodeError:
        check_unicode(values, what)
        raise


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
