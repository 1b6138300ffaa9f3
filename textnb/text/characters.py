r"""Fixed tables of characters, so that a tokenizer makes the same tokens in every engine.

Engines differ in their versions of Unicode, and Python's own tables change with its version.

>>> import polars as pl
>>> text = pl.Series(["C# is c++, the U.S. $5.50 (10%)!"]).str.to_lowercase()
>>> text.str.extract_all(kinds_pattern(("symbols", "abbreviations", "punctuation"))).to_list()
[['c#', 'c++', 'u.s.', '$5.50', '10%', '!']]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# Turkish and Azerbaijani have an i with a dot and an i without one. These replacements are made in
# this order, before lower-casing.
TURKIC = (("I\u0307", "i"), ("\u0130", "i"), ("I", "\u0131"))

# Stripping accents drops the characters whose canonical combining class is not 0. Regular
# expressions do not know these classes, so this lists them (Unicode 14.0.0), in hexadecimal.
COMBINING_RANGES = """
    300-34e 350-36f 483-487 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-65f 670 6d6-6dc 6df-6e4
    6e7-6e8 6ea-6ed 711 730-74a 7eb-7f3 7fd 816-819 81b-823 825-827 829-82d 859-85b 898-89f
    8ca-8e1 8e3-8ff 93c 94d 951-954 9bc 9cd 9fe a3c a4d abc acd b3c b4d bcd c3c c4d c55-c56 cbc
    ccd d3b-d3c d4d dca e38-e3a e48-e4b eb8-eba ec8-ecb f18-f19 f35 f37 f39 f71-f72 f74 f7a-f7d
    f80 f82-f84 f86-f87 fc6 1037 1039-103a 108d 135d-135f 1714-1715 1734 17d2 17dd 18a9
    1939-193b 1a17-1a18 1a60 1a75-1a7c 1a7f 1ab0-1abd 1abf-1ace 1b34 1b44 1b6b-1b73 1baa-1bab
    1be6 1bf2-1bf3 1c37 1cd0-1cd2 1cd4-1ce0 1ce2-1ce8 1ced 1cf4 1cf8-1cf9 1dc0-1dff 20d0-20dc
    20e1 20e5-20f0 2cef-2cf1 2d7f 2de0-2dff 302a-302f 3099-309a a66f a674-a67d a69e-a69f
    a6f0-a6f1 a806 a82c a8c4 a8e0-a8f1 a92b-a92d a953 a9b3 a9c0 aab0 aab2-aab4 aab7-aab8
    aabe-aabf aac1 aaf6 abed fb1e fe20-fe2f 101fd 102e0 10376-1037a 10a0d 10a0f 10a38-10a3a
    10a3f 10ae5-10ae6 10d24-10d27 10eab-10eac 10f46-10f50 10f82-10f85 11046 11070 1107f
    110b9-110ba 11100-11102 11133-11134 11173 111c0 111ca 11235-11236 112e9-112ea 1133b-1133c
    1134d 11366-1136c 11370-11374 11442 11446 1145e 114c2-114c3 115bf-115c0 1163f 116b6-116b7
    1172b 11839-1183a 1193d-1193e 11943 119e0 11a34 11a47 11a99 11c3f 11d42 11d44-11d45 11d97
    16af0-16af4 16b30-16b36 16ff0-16ff1 1bc9e 1d165-1d169 1d16d-1d172 1d17b-1d182 1d185-1d18b
    1d1aa-1d1ad 1d242-1d244 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a
    1e130-1e136 1e2ae 1e2ec-1e2ef 1e8d0-1e8d6 1e944-1e94a
"""


def _run_of(ranges: str) -> str:
    """The pattern of a run of characters of these ranges, in Rust syntax."""
    def with_escapes(bounds: str) -> str:
        return "-".join(rf"\x{{{code}}}" for code in bounds.split("-"))

    return f"[{''.join(map(with_escapes, ranges.split()))}]+"


COMBINING = _run_of(COMBINING_RANGES)
# Arabic's tatweel makes a word longer on the page, and has no other meaning. It is stripped with
# the accents.
TATWEEL = "640"
ACCENTS = _run_of(f"{COMBINING_RANGES} {TATWEEL}")

# Unicode's blocks of the scripts that are written without spaces between words, with Japanese
# marks of iteration and length. Their characters that are not letters, marks or numbers are in no
# word of the default pattern anyway.
# In order: Thai and Lao; Myanmar; Khmer; Han radicals; iteration marks and numerals; Hiragana and
# Katakana; Han; Myanmar, Khmer again; Han, half-width Katakana; blocks beyond the first plane.
UNSPACED_RANGES: tuple[tuple[int, int], ...] = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x19E0, 0x19FF), (0x2E80, 0x2FDF),
    (0x3005, 0x3007), (0x3021, 0x302D), (0x3031, 0x3035), (0x3038, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F), (0x116D0, 0x116FF), (0x16FE2, 0x16FE3), (0x16FF0, 0x16FFF),
    (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFF))

# These ranges as the inside of a character class, in Rust syntax and in Python's.
UNSPACED = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in UNSPACED_RANGES)
_UNSPACED_IN_PYTHON = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED_RANGES)
_UNSPACED_OR_NOT = re.compile(rf"(?P<unspaced>[{_UNSPACED_IN_PYTHON}]+)|[^{_UNSPACED_IN_PYTHON}]+")


def token_replacements(
    unspaced: str, sizes: Sequence[int], group: str = "${1}"
) -> tuple[tuple[str, str], ...]:
    r"""Replacements that turn each run of unspaced characters into its tokens.

    They put a space or a colon between tokens, as neither is in a word. The patterns need no
    lookaround, which some engines lack.

    Parameters
    ----------
    unspaced : str
        The class of characters of scripts without spaces, in the syntax of the engine.
    sizes : sequence of int
        The numbers of characters of a token: 1 for each character, 2 for overlapping pairs.
    group : str
        A match's first group, in the syntax of the engine.

    Returns
    -------
    tuple of (str, str)
        Patterns and their replacements, in the order in which they apply.

    Examples
    --------
    >>> text = "xabcy, a"
    >>> for pattern, replacement in token_replacements("[abc]", (2,), r"\1"):
    ...     text = re.sub(pattern, replacement, text)
    >>> text
    'x ab:bc y,  a '
    """
    if 2 not in sizes:
        return ((f"({unspaced})", f" {group} "),)
    # For pairs, "abc" becomes " a:ab:bc:c "; for characters and pairs, " a:a:ab:b:bc:c:c ". Then
    # the superfluous first and last characters are removed.
    copies = ":".join([group] * (1 + len(sizes)))
    return ((f"({unspaced}+)", f" {group} "), (f"({unspaced})", copies),
            (f":{unspaced} ", " "), (f" {unspaced}:", " "))


def split_by_script(run: str) -> Iterator[tuple[str, bool]]:
    """The parts of a run of letters, and whether each is in a script without spaces.

    Examples
    --------
    >>> list(split_by_script("USB线A"))
    [('USB', False), ('线', True), ('A', False)]
    """
    for part in _UNSPACED_OR_NOT.finditer(run):
        yield part[0], part["unspaced"] is not None


# The kinds of tokens that `Tokenizer(keep=...)` adds to words, as patterns in Rust syntax. No match
# holds a space, a colon or a backslash, and none begins within a word. At one place at most one
# kind matches, and its match is at least as long as a word there. So an engine may try the kinds in
# any order.
# Circled letters and digits are not emoji here, as they are in words. If an emoji is a sequence,
# each character is a token, except joiners.
EMOJI = (r"[\x{231a}\x{231b}\x{23e9}-\x{23f3}\x{2600}-\x{2775}\x{2794}-\x{27bf}\x{2b1b}\x{2b1c}"
         r"\x{2b50}\x{2b55}\x{1f000}-\x{1f0ff}\x{1f1e6}-\x{1f1ff}\x{1f300}-\x{1faff}]")
# Letters, and letters or digits, of scripts with spaces between words.
LETTER = rf"[\p{{L}}--[{UNSPACED}]]"
LETTER_OR_NUMBER = rf"[\p{{L}}\p{{N}}--[{UNSPACED}]]"
CURRENCIES = "$€£¥"
_AMOUNT = r"[0-9]+(?:[.,][0-9]+)*"
PATTERNS = {
    "emoji": EMOJI,
    "symbols": rf"{LETTER}{LETTER_OR_NUMBER}*(?:\+\+|#)|[{CURRENCIES}]{_AMOUNT}|{_AMOUNT}%",
    "abbreviations": rf"(?:{LETTER}\.){{2,}}",
    "punctuation": "[!?]",
}
KINDS = tuple(PATTERNS)


def kinds_pattern(kinds: Sequence[str]) -> str:
    """One pattern for several kinds of tokens.

    Examples
    --------
    >>> kinds_pattern(["punctuation"])
    '[!?]'
    """
    return "|".join(PATTERNS[kind] for kind in kinds)
