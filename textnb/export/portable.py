"""Which tokenizers other engines can reproduce exactly, and the reasons where they can't.

A tokenizer is portable if its words are runs of characters of one class, or pairs of characters
within such runs: they need no regular expression, only tables of characters, and so mean the same
everywhere.

>>> from textnb.text.tokens import Tokenizer
>>> words = portable(Tokenizer(ngram_range=(1, 2)).plan(), ["text"])
>>> words.least, words.ngram_range, words.lowercase
(2, (1, 2), True)
>>> portable(Tokenizer(analyzer="char").plan(), ["text"])
Traceback (most recent call last):
    ...
textnb.errors.ExportError: analyzer='char': n-grams of characters are not portable
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from textnb.errors import ExportError
from textnb.export import characters
from textnb.text.expressions import stop_tokens, unspaced_class
from textnb.text.plan import (
    Characters,
    CharactersInWords,
    FieldPrefix,
    Lowercase,
    Matches,
    NGrams,
    Normalize,
    Plan,
    Runs,
    SingleSpaces,
    Splitting,
    StopWords,
    StripAccents,
    WordsAndPairs,
)


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
    pairs : bool
        Within runs, scripts without spaces give pairs of characters, and end other words.
    """

    member: str
    least: int
    lowercase: bool
    ngram_range: tuple[int, int]
    stop_words: tuple[str, ...]
    pairs: bool = False

    @cached_property
    def unspaced(self) -> characters.Ranges:
        """Those of ``members`` that make pairs; none without ``pairs``.

        A stretch of them becomes its overlapping pairs, or the one character that it has; a stretch
        of others is a word if it has ``least`` characters.
        """
        inside = self.member.removeprefix("[").removesuffix("]")
        return characters.members(unspaced_class(inside)) if self.pairs else ()

    @cached_property
    def members(self) -> characters.Ranges:
        """First and last code points of the characters of words."""
        return characters.members(self.member)

    @cached_property
    def lower(self) -> characters.Lowercase | None:
        """How text is put in lower case first; None where it is not."""
        return characters.lowercase() if self.lowercase else None


def portable(plan: Plan, columns: Sequence[str]) -> Words:
    """The plan as runs of characters.

    Raises
    ------
    ExportError
        If the plan makes no runs of characters; the message holds the reason, without advice.
    """
    refusal = ExportError.for_tokenizer
    if len(columns) > 1:
        raise refusal(f"several text columns ({', '.join(columns)}) are not portable")
    lower, ngrams = False, NGrams(1, 1)
    runs: Runs | WordsAndPairs | None = None
    # Check how the text is split first: where that is not portable, no other setting helps.
    for step in sorted(plan.steps, key=lambda step: not isinstance(step, Splitting)):
        match step:
            case Lowercase():
                lower = True
            case Normalize() | StripAccents():
                raise refusal(f"{step.setting}: engines have different versions of Unicode's "
                              "decompositions, or none")
            case Runs() | WordsAndPairs():
                runs = step
            case Matches(pattern=pattern):
                raise refusal(f"pattern {pattern!r} is not a run of one class of characters, "
                              "and regular expressions differ between engines")
            case SingleSpaces() | Characters() | CharactersInWords():
                raise refusal(f"{step.setting}: n-grams of characters are not portable")
            case StopWords():
                pass
            case FieldPrefix():
                raise refusal("field prefixes are not portable")
            case NGrams():
                ngrams = step
            case _:
                raise refusal(f"{step.setting}: no engine but Polars runs it")
    assert runs is not None, "a plan splits texts"
    return Words(f"[{runs.members}]", runs.least, lower, (ngrams.least, ngrams.most),
                 tuple(sorted(stop_tokens(plan))), isinstance(runs, WordsAndPairs))
