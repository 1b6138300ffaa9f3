"""Formats texts and numbers for reports and charts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np

# The maximum number of characters of a text in a report, which says how many more there are.
MAX_LENGTH = 600
# The maximum width of a short name, in columns of a terminal.
_MAX_NAME_WIDTH = 28
# Invisible characters that are shown as they are: many scripts need them to join or part letters.
_JOINERS = "\u200c\u200d"
# Unicode's categories of characters without a shape: control, format, surrogates, unassigned,
# private, and separators of lines and paragraphs.
_HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}


def visible(value: Any) -> str:
    """Format a text on one line, with code points in place of characters that can't be seen.

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


def shorten(text: str, length: int = MAX_LENGTH) -> tuple[str, int]:
    """Return the beginning of a text, and the number of characters that are left out."""
    return (text, 0) if len(text) <= length else (text[:length].rstrip(), len(text) - length)


def _short_name(text: str) -> str:
    """The beginning of a text that fits into the width of a name."""
    line = " ".join(text.split())
    name, width = "", 0
    for character in line:
        # `visible` strips spaces.
        piece = visible(character) or " "
        # A character of East Asia, or beyond 0xFFFF such as an emoji, takes two columns.
        width += sum(0 if unicodedata.combining(c) else
                     2 if unicodedata.east_asian_width(c) in "WF" or ord(c) > 0xFFFF else 1
                     for c in piece)
        # Combining marks have no width, so the number of characters is limited too.
        if width > _MAX_NAME_WIDTH or len(name) > 4 * _MAX_NAME_WIDTH:
            return name.rstrip() + "…"
        name += piece
    return name


def names_of(labels: Iterable[Any]) -> list[str]:
    """A short name for each label, different for different labels.

    Examples
    --------
    >>> names_of(["spam", "x" * 40 + "1", "x" * 40 + "2", ""])
    ['spam', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxx…', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxx… (2)', '(empty)']
    """
    n_uses: dict[str, int] = {}
    names = []
    for label in labels:
        name = _short_name(str(label)) or "(empty)"
        while name in n_uses:
            n_uses[name] += 1
            name = f"{name} ({n_uses[name]})"
        n_uses[name] = 1
        names.append(name)
    return names


def percent(value: float | None) -> str:
    """Format a share in percent, with enough digits to differ from 0 and 1.

    Examples
    --------
    >>> [percent(value) for value in (0.5, 0.99987, 0.0002, 1 - 1e-9, 1.0, None)]
    ['50.0 %', '99.99 %', '0.02 %', '99.9999 %', '100 %', '–']
    """
    if value is None or np.isnan(value):
        return "–"
    if value in (0, 1):
        return f"{value * 100:.0f} %"
    value = min(max(value, 1e-6), 1 - 1e-6)
    digits = 1 if 0.001 <= value <= 0.999 else 2 if 0.0001 <= value <= 0.9999 else 4
    return f"{value * 100:.{digits}f} %"


def number(value: float | None, digits: int = 3) -> str:
    """Format a number with some decimals; ∞ if it is infinite."""
    if value is None or np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}f}".replace("-", "−")
