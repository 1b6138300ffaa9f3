"""Translates a plan's steps after cleaning for the compiled kernel, if it knows all of them."""

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

# The steps from tokens to tokens that the kernel executes.
_STEPS_ON_TOKENS = (StopWords, Escape, FieldPrefix, NGrams)


class CompiledPlan(NamedTuple):
    """How the kernel finds terms in cleaned text.

    Attributes
    ----------
    members : str
        The inside of a character class: of words or, for n-grams of characters, of white space.
    min_length : int
        The minimum number of characters of a word.
    ngram_range : (int, int)
        Minimum and maximum number of words, or of characters, of an n-gram.
    words : bool
        Whether terms are words and their n-grams; otherwise they are n-grams of characters.
    within_words : bool
        Whether n-grams of characters stay within words.
    prefixed : bool
        Whether terms of some columns begin with the column's name; see `FieldPrefix.prefixes`.
    escaped : str
        Characters that get a backslash inside a term. If there are any, a backslash gets one, too.
    sizes : tuple of int
        The numbers of characters of tokens of scripts without spaces. If empty, words hold such
        characters as any others.
    kinds : int
        Other kinds of tokens: a bit for each of `characters.KINDS`, the lowest for the first one.
    """

    members: str
    min_length: int
    ngram_range: tuple[int, int]
    words: bool
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
    ('a-z', 1, (1, 2), True)
    """
    splitting, *steps = plan.after_cleaning
    step_types = set(map(type, steps))
    if not step_types <= set(_STEPS_ON_TOKENS):
        return None
    escaped = (plan.find(Escape) or Escape("")).characters
    ngram_range, prefixed = ngram_range_of(plan), FieldPrefix in step_types
    compiled: CompiledPlan | None = None
    # The kernel escapes nothing in words, and only the colon of a prefix in n-grams of characters.
    match splitting:
        case Runs(members=members, min_length=min_length) if not escaped:
            compiled = CompiledPlan(members, min_length, ngram_range, words=True)
        case WordsAndPairs(members=members, min_length=min_length, sizes=sizes) if not escaped:
            compiled = CompiledPlan(members, min_length, ngram_range, words=True, sizes=sizes)
        case WordsAndKinds(members=members, min_length=min_length, sizes=sizes, kinds=kinds) if (
                not escaped and set(kinds) <= set(KINDS)):
            compiled = CompiledPlan(members, min_length, ngram_range, words=True, sizes=sizes,
                                    kinds=sum(1 << KINDS.index(kind) for kind in set(kinds)))
        case Characters() | CharactersInWords() if ngram_range == (1, 1) and escaped in ("", ":"):
            compiled = CompiledPlan(WHITE, min_length=1, words=False,
                                    ngram_range=(splitting.min_n, splitting.max_n),
                                    within_words=isinstance(splitting, CharactersInWords))
    # The settings of a tokenizer ask for none of the other plans that are refused here.
    if compiled is None or (escaped and not prefixed) or (
            StopWords in step_types and not compiled.words):
        return None
    return compiled._replace(prefixed=prefixed, escaped=escaped)


def uncompiled_reason(plan: Plan) -> str:
    """A clause that says why the kernel does not execute a plan; empty if it does.

    Examples
    --------
    >>> uncompiled_reason(Plan((Matches("[^,]+"),)))
    "the pattern '[^,]+' is not a run of one class of characters"
    """
    if compiled_plan(plan) is not None:
        return ""
    known = (Runs, WordsAndPairs, WordsAndKinds, Characters, CharactersInWords, *_STEPS_ON_TOKENS)
    step = next((step for step in plan.after_cleaning if not isinstance(step, known)), None)
    if isinstance(step, Matches):
        return f"the pattern {step.pattern!r} is not a run of one class of characters"
    unknown = repr(plan) if step is None else step.setting
    return f"the kernel does not know {unknown}"


def ngram_range_of(plan: Plan) -> tuple[int, int]:
    """The numbers of words of the shortest and longest n-gram that a plan makes as its last step.

    Examples
    --------
    >>> ngram_range_of(Plan((Matches("[^,]+"), NGrams(1, 2))))
    (1, 2)
    """
    # If `OwnCode` is the last step, the expression of a subclass makes the n-grams by itself.
    last = plan.steps[-1]
    return (last.min_n, last.max_n) if isinstance(last, NGrams) else (1, 1)
