"""Words of a text, and how often each occurs, one character at a time."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable


def words(text: str) -> list[str]:
    """Runs of two or more letters, marks, numbers (Unicode's L, M, N) and underscores."""
    found, run = [], ""
    for character in [*text.lower(), " "]:
        if unicodedata.category(character)[0] in "LMN" or character == "_":
            run += character
            continue
        if len(run) > 1:
            found.append(run)
        run = ""
    return found


def by_label(documents: Iterable[tuple[str, str]]) -> dict[str, Counter[str]]:
    """How often each word occurs in the documents (text, label) of each class."""
    counts: dict[str, Counter[str]] = {}
    for text, label in documents:
        counts.setdefault(label, Counter()).update(words(text))
    return counts
