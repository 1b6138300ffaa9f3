"""Plans for the compiled kernel: the steps after cleaning, if it knows all of them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from textnb.text.characters import KINDS
from textnb.text.plan import (
    WHITE,
    Characters,
    CharactersInWords,
    Escape,
    FieldPrefix,
    Matches,
    NGrams,
    Plan,
    Runs,
    StopWords,
    WordsAndKinds,
    WordsAndPairs,
)

# The steps from tokens to tokens that the kernel knows.
_ON_TOKENS = (StopWords, Escape, FieldPrefix, NGrams)


class CompiledPlan(NamedTuple):
    """How the kernel finds terms in cleaned text.

    Attributes
    ----------
    words : bool
        Terms are words and their n-grams; otherwise n-grams of characters.
    members : str
        The inside of the character class of words; for n-grams of characters, of white space.
    min_length : int
        Number of characters of the shortest word.
    ngram_range : (int, int)
        In words, or in characters.
    within_words : bool
        N-grams of characters do not cross white space.
    prefixed : bool
        Terms of some columns begin with the column's name; see `FieldPrefix.prefixes`.
    escaped : str
        Characters that get a backslash inside a term; then the backslash gets one, too.
    sizes : tuple of int
        The numbers of characters of tokens of scripts without spaces; empty if they are in words.
    kinds : int
        Other kinds of tokens: a bit for each of `characters.KINDS`, the first one lowest.
    """

    words: bool
    members: str
    min_length: int
    ngram_range: tuple[int, int]
    within_words: bool = False
    prefixed: bool = False
    escaped: str = ""
    sizes: tuple[int, ...] = ()
    kinds: int = 0


@lru_cache(maxsize=256)
def compiled_plan(plan: Plan) -> CompiledPlan | None:
    """The plan for the kernel; None if it has a step that the kernel does not know.

    `textnb.text.expressions.cleaned_exprs` cleans text, and refuses cleaning steps that it does not
    know.

    Examples
    --------
    >>> from textnb.text.plan import Lowercase
    >>> compiled_plan(Plan((Lowercase(), Runs("[a-z]+", "a-z", 1), NGrams(1, 2))))[:4]
    (True, 'a-z', 1, (1, 2))
    """
    splitting, *steps = plan.after_cleaning
    kinds_of_steps = set(map(type, steps))
    if not kinds_of_steps <= set(_ON_TOKENS):
        return None
    escaped = (plan.find(Escape) or Escape("")).characters
    words, prefixed = ngrams_of(plan), FieldPrefix in kinds_of_steps
    compiled: CompiledPlan | None = None
    # The kernel escapes only colons: spaces separate the words of its n-grams.
    match splitting:
        case Runs(members=members, min_length=min_length) if not escaped:
            compiled = CompiledPlan(True, members, min_length, words)
        case WordsAndPairs(members=members, min_length=min_length, sizes=sizes) if not escaped:
            compiled = CompiledPlan(True, members, min_length, words, sizes=sizes)
        case WordsAndKinds(members=members, min_length=min_length, sizes=sizes, kinds=kinds) if (
                not escaped and set(kinds) <= set(KINDS)):
            compiled = CompiledPlan(True, members, min_length, words, sizes=sizes, kinds=sum(
                1 << KINDS.index(kind) for kind in set(kinds)))
        case Characters(min_n=n, max_n=m) | CharactersInWords(min_n=n, max_n=m) if (
                words == (1, 1) and escaped in ("", ":")):
            compiled = CompiledPlan(False, WHITE, 1, (n, m),
                                    within_words=isinstance(splitting, CharactersInWords))
    if compiled is None or (escaped and not prefixed) or (
            StopWords in kinds_of_steps and not compiled.words):
        return None
    return compiled._replace(prefixed=prefixed, escaped=escaped)


def uncompiled_reason(plan: Plan) -> str:
    """Why the kernel does not execute a plan, in a clause; empty if it does.

    Examples
    --------
    >>> uncompiled_reason(Plan((Matches("[^,]+"),)))
    "the pattern '[^,]+' is not a run of one class of characters"
    """
    if compiled_plan(plan) is not None:
        return ""
    known = (Runs, WordsAndPairs, WordsAndKinds, Characters, CharactersInWords, *_ON_TOKENS)
    step = next((step for step in plan.after_cleaning if not isinstance(step, known)), None)
    if isinstance(step, Matches):
        return f"the pattern {step.pattern!r} is not a run of one class of characters"
    unknown = repr(plan) if step is None else step.setting
    return f"the kernel does not know {unknown}"


def ngrams_of(plan: Plan) -> tuple[int, int]:
    """The shortest and longest n-gram, if n-grams are a plan's last step; else (1, 1).

    Examples
    --------
    >>> ngrams_of(Plan((Matches("[^,]+"), NGrams(1, 2))))
    (1, 2)
    """
    # After an `OwnCode`, its expression makes them.
    last = plan.steps[-1]
    return (last.min_n, last.max_n) if isinstance(last, NGrams) else (1, 1)
