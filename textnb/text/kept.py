r"""What `Tokenizer(keep=...)` keeps other than words, as patterns in Rust syntax.

No match holds a space, a colon or a backslash, and none begins within a word. At one place, at most
one kind matches, and its match is no shorter than a word there. So an engine may try them in any
order.

>>> import polars as pl
>>> text = pl.Series(["C# is c++, the U.S. $5.50 (10%)!"]).str.to_lowercase()
>>> text.str.extract_all(kept_pattern(("symbols", "abbreviations", "punctuation"))).to_list()
[['c#', 'c++', 'u.s.', '$5.50', '10%', '!']]
"""

from __future__ import annotations

from collections.abc import Sequence

from textnb.text.unspaced import UNSPACED

# A fixed table, as engines differ in their versions of Unicode. Circled letters and digits, which
# are in words, are left out; of sequences, each character but joiners is one by itself.
EMOJI = (r"[\x{231a}\x{231b}\x{23e9}-\x{23f3}\x{2600}-\x{2775}\x{2794}-\x{27bf}\x{2b1b}\x{2b1c}"
         r"\x{2b50}\x{2b55}\x{1f000}-\x{1f0ff}\x{1f1e6}-\x{1f1ff}\x{1f300}-\x{1faff}]")
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


def kept_pattern(kinds: Sequence[str]) -> str:
    """The matches of some kinds, as one pattern.

    Examples
    --------
    >>> kept_pattern(["punctuation"])
    '[!?]'
    """
    return "|".join(PATTERNS[kind] for kind in kinds)
