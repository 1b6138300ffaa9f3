"""What the engine's characters are, as plain tables that any other engine can carry.

Unicode versions differ between engines, so a letter here may be none there. What leaves for
another system therefore names its characters one by one: which of them make words, and what each
becomes in lower case. The tables are asked from Polars itself, character by character.

Lower-casing has one rule that looks around: a capital sigma (Σ) becomes ς where a word ends, else
σ. It ends one if, leaving out *ignorable* characters, a *cased* one comes before it and none comes
after it (the Unicode Standard, table 3-17, Final_Sigma).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ranges = tuple[tuple[int, int], ...]
SIGMA, FINAL_SIGMA, SMALL_SIGMA = "Σ", "ς", "σ"


@dataclass(frozen=True)
class Lowercase:
    """How text is put in lower case.

    Attributes
    ----------
    mapping : dict of str to str
        Characters that change, but Σ; one of them (İ) becomes two characters.
    cased, ignorable : tuple of (int, int)
        First and last code points of the characters by which Σ is judged.

    Examples
    --------
    >>> lower = lowercase()
    >>> lower.mapping["Ä"], lower.mapping["İ"] == "i" + chr(0x307), "Σ" in lower.mapping
    ('ä', True, False)
    """

    mapping: dict[str, str]
    cased: Ranges
    ignorable: Ranges


def members(pattern: str) -> Ranges:
    """First and last code points of the characters that a pattern of one character matches.

    Examples
    --------
    >>> members("[0-9_]")
    ((48, 57), (95, 95))
    """
    codes, characters = _characters()
    return _ranges(codes[characters.str.contains(rf"^(?s:{pattern})$").to_numpy()])


@lru_cache(maxsize=1)
def lowercase() -> Lowercase:
    """The engine's lower-casing."""
    codes, characters = _characters()
    lowered = characters.str.to_lowercase()
    changed = (characters != lowered) & (characters != SIGMA)
    mapping = dict(zip(characters.filter(changed), lowered.filter(changed), strict=True))
    # After a cased character alone is Σ final; after "a" and an ignorable one it is so as well.
    cased = _final(characters + SIGMA)
    ignorable = _final("a" + characters + SIGMA) & ~cased
    return Lowercase(mapping, _ranges(codes[cased]), _ranges(codes[ignorable]))


def regex_class(ranges: Ranges, code: str = r"\x{{{:x}}}") -> str:
    r"""The inside of a character class, each code point written by ``code``.

    Examples
    --------
    >>> regex_class(((48, 57), (95, 95)))
    '\\x{30}-\\x{39}\\x{5f}'
    """
    return "".join(code.format(first) if first == last
                   else f"{code.format(first)}-{code.format(last)}" for first, last in ranges)


def _final(texts: pl.Series) -> NDArray[np.bool_]:
    return texts.str.to_lowercase().str.ends_with(FINAL_SIGMA).to_numpy()


@lru_cache(maxsize=1)
def _characters() -> tuple[NDArray[np.int64], pl.Series]:
    codes = np.concatenate([np.arange(0xD800), np.arange(0xE000, 0x110000)])
    return codes, pl.Series([chr(code) for code in codes.tolist()])


def _ranges(codes: NDArray[np.int64]) -> Ranges:
    if not len(codes):
        return ()
    breaks = np.flatnonzero(np.diff(codes) > 1) + 1
    edges = [0, *breaks.tolist(), len(codes)]
    return tuple((int(codes[a]), int(codes[b - 1])) for a, b in pairwise(edges))
