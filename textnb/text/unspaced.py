"""The characters of scripts that are written without spaces between words.

Han, Hiragana, Katakana, Thai, Lao, Khmer and Myanmar, by their blocks in Unicode, with the marks of
iteration and length that Japanese shares among its scripts. An engine's own table would change
with its version of Unicode; this one is fixed, so that a tokenizer means the same in every engine.
Characters of these blocks that are no letters, marks or numbers are in no word anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Thai and Lao; Myanmar; Khmer; Han radicals; iteration marks and numerals; Hiragana and Katakana;
# Han; Myanmar and Khmer again; Han and half-width Katakana; and what is beyond the first plane.
RANGES: tuple[tuple[int, int], ...] = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x19E0, 0x19FF), (0x2E80, 0x2FDF),
    (0x3005, 0x3007), (0x3021, 0x302D), (0x3031, 0x3035), (0x3038, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F), (0x116D0, 0x116FF), (0x16FE2, 0x16FE3), (0x16FF0, 0x16FFF),
    (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFF))

# The inside of a character class of the regex engine.
UNSPACED = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in RANGES)
_IN_PYTHON = "".join(f"{chr(first)}-{chr(last)}" for first, last in RANGES)
_STRETCH = re.compile(rf"(?P<unspaced>[{_IN_PYTHON}]+)|[^{_IN_PYTHON}]+")


def pairs_by_replacing(alone: str, group: str = "${1}") -> tuple[tuple[str, str], ...]:
    r"""Replacements that turn each stretch of a class into its pairs, without lookaround.

    They put a space or a colon between pairs, which no word holds.

    Parameters
    ----------
    alone : str
        The class, as the engine writes it.
    group : str
        The first group of a match, as the engine writes it.

    Returns
    -------
    tuple of (str, str)
        Patterns and the replacements of their matches, in this order.

    Examples
    --------
    >>> text = "xabcy, a"
    >>> for found, becomes in pairs_by_replacing("[abc]", r"\1"):
    ...     text = re.sub(found, becomes, text)
    >>> text
    'x ab:bc y,  a '
    """
    # abc -> " a:ab:bc:c "; then the single characters at the ends of a stretch are removed.
    return ((f"({alone}+)", f" {group} "), (f"({alone})", f"{group}:{group}"),
            (f":{alone} ", " "), (f" {alone}:", " "))


def stretches(run: str) -> Iterator[tuple[str, bool]]:
    """The stretches of a word in turn, and whether each is of such characters.

    Examples
    --------
    >>> list(stretches("USB线A"))
    [('USB', False), ('线', True), ('A', False)]
    """
    for stretch in _STRETCH.finditer(run):
        yield stretch[0], stretch["unspaced"] is not None
