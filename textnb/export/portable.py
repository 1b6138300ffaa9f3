"""Which tokenizers other engines can reproduce exactly, and the reasons where they can't.

A tokenizer is portable if its words are runs of characters of one class: such words need no
regular expression, only a table of characters, and so mean the same everywhere.

>>> from textnb.text.tokens import Tokenizer
>>> words = portable(Tokenizer(ngram_range=(1, 2)), ["text"])
>>> words.least, words.ngram_range, words.lowercase
(2, (1, 2), True)
>>> portable(Tokenizer(analyzer="char"), ["text"])
Traceback (most recent call last):
    ...
textnb.errors.ExportError: analyzer='char': n-grams of characters are not portable
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from textnb.errors import ExportError
from textnb.export.characters import Lowercase, Ranges, lowercase, members
from textnb.text.supported import ANYTHING, NO_PREFIX, Supported, any_of
from textnb.text.tokens import Tokenizer, unsupported

# What `Words` can say of a tokenizer; its pattern must be a run of one class of characters.
_PORTABLE: Supported = {
    "pattern": ANYTHING["pattern"],
    "lowercase": any_of(True, False),
    "ngram_range": ANYTHING["ngram_range"],
    "analyzer": any_of("word"),
    "normalize": any_of(None),
    "strip_accents": any_of(None),
    "stop_words": ANYTHING["stop_words"],
    "field_prefix": NO_PREFIX,
}


@dataclass(frozen=True)
class Words:
    """Words as runs of characters: all that another engine needs to know of a tokenizer.

    Attributes
    ----------
    member : str
        The class of characters, as a pattern of one character.
    least : int
        Shorter runs are no words.
    lowercase : bool
    ngram_range : (int, int)
        In words; those of an n-gram are joined by one space.
    stop_words : tuple of str
        Words to drop before n-grams are built, sorted.
    """

    member: str
    least: int
    lowercase: bool
    ngram_range: tuple[int, int]
    stop_words: tuple[str, ...]

    @cached_property
    def members(self) -> Ranges:
        """First and last code points of the characters of words."""
        return members(self.member)

    @cached_property
    def lower(self) -> Lowercase | None:
        """How text is put in lower case first; None where it is not."""
        return lowercase() if self.lowercase else None


def portable(tokenizer: Tokenizer, columns: Sequence[str]) -> Words:
    """The tokenizer as runs of characters.

    Raises
    ------
    ExportError
        If it is not of that kind; the message is the reason alone.
    """
    if len(columns) > 1:
        raise ExportError(f"several text columns ({', '.join(columns)}) are not portable")
    if tokenizer.field_prefix:
        raise ExportError("field prefixes are not portable")
    if tokenizer.analyzer != "word":
        raise ExportError(
            f"analyzer={tokenizer.analyzer!r}: n-grams of characters are not portable")
    for name in ("normalize", "strip_accents"):
        value = getattr(tokenizer, name)
        if value is not None:
            raise ExportError(f"{name}={value!r}: engines have different versions of Unicode's "
                              "decompositions, or none")
    unknown = unsupported(tokenizer, _PORTABLE)
    if unknown:
        raise ExportError(f"{unknown}: no engine but Polars runs it")
    run = tokenizer.run()
    if run is None:
        raise ExportError(f"pattern {tokenizer.pattern!r} is not a run of one class of "
                          "characters, and regular expressions differ between engines")
    member, least = run
    return Words(f"[{member}]", least, tokenizer.lowercase, tokenizer.ngram_range,
                 tuple(sorted(tokenizer.stop_tokens())))
