"""Words and numbers of a report as people read them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np

from textnb.errors import quantity

# Of a text that is shown; the rest is left out, and counted.
SHOWN = 600
_NAME = 28
# They join letters in many scripts, and change no order.
_JOINERS = "\u200c\u200d"
_HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}


def visible(value: Any) -> str:
    """The text on one line, with its invisible characters named, those that turn text too.

    Examples
    --------
    >>> visible("a\\u202eb\\x00\\n c")
    'a⟨U+202E⟩b⟨U+0000⟩ c'
    """
    line = " ".join(str(value).split())
    if line.isprintable():
        return line
    return "".join(f"⟨U+{ord(c):04X}⟩" if c not in _JOINERS and unicodedata.category(c) in _HIDDEN
                   else c for c in line)


def shortened(text: str, length: int = SHOWN) -> tuple[str, int]:
    """The beginning of a text, and how many characters are left out."""
    return (text, 0) if len(text) <= length else (text[:length].rstrip(), len(text) - length)


def _fitted(text: str) -> str:
    """What of a text fits into the columns of a name, no character cut in the middle."""
    line = " ".join(text.split())
    shown, columns = "", 0
    for character in line:
        piece = visible(character) or " "
        columns += sum(0 if unicodedata.combining(c) else
                       2 if unicodedata.east_asian_width(c) in "WF" or ord(c) > 0xFFFF else 1
                       for c in piece)
        if columns > _NAME or len(shown) > 4 * _NAME:
            return shown.rstrip() + "…"
        shown += piece
    return shown


def names_of(labels: Iterable[Any]) -> list[str]:
    """A short name for each label, different for different labels.

    Examples
    --------
    >>> names_of(["spam", "x" * 40 + "1", "x" * 40 + "2", ""])
    ['spam', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxx…', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxx… (2)', '(empty)']
    """
    seen: dict[str, int] = {}
    names = []
    for label in labels:
        name = _fitted(str(label)) or "(empty)"
        while name in seen:
            seen[name] += 1
            name = f"{name} ({seen[name]})"
        seen[name] = 1
        names.append(name)
    return names


def percent(value: float | None) -> str:
    """A share with as many digits as tell it from 0 and 1.

    Examples
    --------
    >>> [percent(value) for value in (0.5, 0.99987, 0.0002, 1.0, None)]
    ['50.0 %', '99.99 %', '0.02 %', '100 %', '–']
    """
    if value is None or np.isnan(value):
        return "–"
    if value in (0, 1):
        return f"{value * 100:.0f} %"
    digits = 1 if 0.001 <= value <= 0.999 else 2 if 0.0001 <= value <= 0.9999 else 4
    return f"{value * 100:.{digits}f} %"


def number(value: float | None, digits: int = 3) -> str:
    """A number with some decimals; ∞ where it is infinite."""
    if value is None or np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}f}".replace("-", "−")


def count(value: int, what: str = "") -> str:
    """A count with its noun: one document, 2 documents.

    Examples
    --------
    >>> count(1, "document"), count(1200, "class"), count(7)
    ('1 document', '1,200 classes', '7')
    """
    if not what:
        return f"{value:,}"
    return quantity(value, what)
