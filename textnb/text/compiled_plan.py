"""What the compiled kernel executes of a plan: the steps after cleaning, if they know them all."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from textnb.text.plan import (
    WHITE,
    Characters,
    CharactersInWords,
    Lowercase,
    Matches,
    NGrams,
    Normalize,
    Plan,
    Runs,
    StopWords,
    StripAccents,
)


class CompiledPlan(NamedTuple):
    """Terms as the kernel finds them in cleaned text.

    Attributes
    ----------
    words : bool
        Terms are words and their n-grams; otherwise n-grams of characters.
    members : str
        The inside of the class of characters that words have; for n-grams of characters, white
        space.
    least : int
        Characters of the shortest word.
    ngram_range : (int, int)
        In words, or in characters.
    within_words : bool
        N-grams of characters do not cross white space.
    """

    words: bool
    members: str
    least: int
    ngram_range: tuple[int, int]
    within_words: bool = False


@lru_cache(maxsize=256)
def compiled_plan(plan: Plan) -> CompiledPlan | None:
    """The plan as the kernel executes it; None if it has a step that they do not know.

    Text is cleaned by `textnb.text.expressions.cleaned_exprs`, which refuses a cleaning step that
    it does not know.

    Examples
    --------
    >>> compiled_plan(Plan((Lowercase(), Runs("[a-z]+", "a-z", 1), NGrams(1, 2))))
    CompiledPlan(words=True, members='a-z', least=1, ngram_range=(1, 2), within_words=False)
    """
    match plan.after_cleaning:
        case (Runs(members=members, least=least), *rest):
            match rest:
                case [] | [StopWords()]:
                    return CompiledPlan(True, members, least, (1, 1))
                case [NGrams(least=n, most=m)] | [StopWords(), NGrams(least=n, most=m)]:
                    return CompiledPlan(True, members, least, (n, m))
        case (Characters(least=n, most=m),):
            return CompiledPlan(False, WHITE, 1, (n, m))
        case (CharactersInWords(least=n, most=m),):
            return CompiledPlan(False, WHITE, 1, (n, m), within_words=True)
    return None


def why_unknown(plan: Plan) -> str:
    """Why the kernel does not execute a plan, in a clause; empty if it does.

    Examples
    --------
    >>> why_unknown(Plan((Matches("[^,]+"),)))
    "the pattern '[^,]+' is no run of one class of characters"
    """
    if compiled_plan(plan) is not None:
        return ""
    known = (Runs, Characters, CharactersInWords, StopWords, NGrams)
    step = next((step for step in plan.after_cleaning if not isinstance(step, known)), None)
    if isinstance(step, Matches):
        return f"the pattern {step.pattern!r} is no run of one class of characters"
    asked = repr(plan) if step is None else step.setting
    return f"the kernel does not know {asked}"


def cleaned_ascii(plan: Plan, text: str) -> str | None:
    """Cleaned text of ASCII characters; None if a step changes them in a way not known here.

    Examples
    --------
    >>> cleaned_ascii(Plan((Normalize("NFC"), Lowercase(), Runs("[a-z]+", "a-z", 1))), "A B")
    'a b'
    """
    for step in plan.cleaning:
        match step:
            case Lowercase():
                text = text.lower()
            case Normalize(form="NFC" | "NFD" | "NFKC" | "NFKD"):
                pass
            case StripAccents(kind="unicode" | "ascii"):
                pass
            case _:
                return None
    return text
