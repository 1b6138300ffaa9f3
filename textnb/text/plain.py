r"""Executes a plan in plain Python, without Polars and NumPy, for one text at a time.

Python and Polars follow different versions of Unicode. For a text with a character that the running
Python does not know, the result is None, because Polars may know it; then the caller uses Polars.
For all other texts both make the same tokens. The expressions of `textnb.text.expressions` define
the meaning of a plan, and this engine refuses every step that it can't run with the same result.

>>> from textnb.text.plan import Lowercase, Plan
>>> from textnb.text.plan import words_of
>>> plan = Plan((Lowercase(), words_of(r"[\p{L}']+")))
>>> plain_tokens(plan, {"text": "The cat's 2 naïve हिन्दी cats"})
['the', "cat's", 'naïve', 'ह', 'न', 'द', 'cats']
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce

from textnb.errors import ParameterError
from textnb.runtime.unicode import normalize
from textnb.text.characters import (
    COMBINING_RANGES,
    CURRENCIES,
    EMOJI,
    TATWEEL,
    TURKIC,
    UNSPACED_RANGES,
    split_by_script,
)
from textnb.text.plan import (
    Characters,
    CharactersInWords,
    Cleaning,
    Escape,
    FieldPrefix,
    Lowercase,
    NGrams,
    Normalize,
    Plan,
    Runs,
    SingleSpaces,
    Step,
    StopWords,
    StripAccents,
    TokenColumns,
    TurkicLowercase,
    WordsAndKinds,
    WordsAndPairs,
    steps_of_stop_words,
)

# The version of Unicode in Polars. For a newer one in Python, see `_is_supported`.
_MAX_UNICODE = (16, 0, 0)
# The general categories of Unicode that a pattern may name.
_CATEGORIES = ("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No")
# A member of a character class in a pattern: a category, a shorthand, a range or a character.
_MEMBER = re.compile(r"\\p\{(?P<category>\w+)\}|\\(?P<shorthand>[wd])|(?P<first>.)-(?P<last>.)"
                     r"|(?P<single>.)")
# Bits that say in which classes a character is.
_WORD, _UNSPACED, _LETTER, _LETTER_OR_NUMBER = 1, 2, 4, 8
_AMOUNT = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_EMOJI = re.compile(re.sub(r"\\x\{(\w+)\}", lambda code: chr(int(code[1], 16)), EMOJI))
_FIRST_OF_UNSPACED_RANGES = [first for first, _ in UNSPACED_RANGES]
# The symbols in Rust's \w: circled and squared letters (Unicode's property Other_Alphabetic).
_OTHER_ALPHABETIC = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))


def plain_tokens(
    plan: Plan, columns: Mapping[str, str | Sequence[str | None] | None]
) -> list[str] | None:
    """The tokens of one document, in the order of the text.

    Parameters
    ----------
    plan : Plan
    columns : mapping of str to str, list of str, or None
        The text columns by name; columns of tokens hold lists; None counts as empty.

    Returns
    -------
    list of str, or None
        None if a text has a character that the running Python does not know.

    Raises
    ------
    ParameterError
        If the plan has a step that plain Python does not run, which the error names, or a column
        holds a text instead of a list of tokens, or the reverse.
    """
    all_tokens: list[str] | None = []
    names = list(columns)
    for name, prefix, holds_tokens in zip(
            names, plan.prefixes(names), plan.hold_tokens(names), strict=True):
        text = columns[name] or ([] if holds_tokens else "")
        if isinstance(text, str) == holds_tokens:
            expected = "a list of tokens" if holds_tokens else "a text"
            raise ParameterError(f"column {name!r} must hold {expected}; it holds {text!r:.60}")
        is_known = _is_supported(text if isinstance(text, str) else "".join(filter(None, text)))
        # The plan runs even if the text is not known, to refuse an unknown step for every text.
        tokens = (_run(plan.steps, text if is_known else "", prefix) if isinstance(text, str)
                  else _run_on_tokens(plan, text if is_known else [], prefix))
        if tokens is None or not is_known:
            all_tokens = None
        elif all_tokens is not None:
            all_tokens += tokens
    return all_tokens


def clean(plan: Plan, text: str) -> str | None:
    """The text after the cleaning steps; None if Polars may clean it differently.

    Examples
    --------
    >>> clean(Plan((Lowercase(), Runs("[a-z]+", "a-z", 1))), "A B")
    'a b'
    """
    if not _is_supported(text):
        return None
    try:
        return _clean_all(plan, text)
    except ParameterError:
        return None


def _clean_all(plan: Plan, text: str) -> str:
    """The text after all cleaning steps."""
    return reduce(lambda text, step: _clean(step, text), plan.cleaning, text)


def _clean(step: Step, text: str) -> str:
    match step:
        case Normalize(form=("NFC" | "NFD" | "NFKC" | "NFKD") as form):
            return normalize(form, text)
        case Lowercase():
            return text.lower()
        case TurkicLowercase(language="tr" | "az"):
            for old, new in TURKIC:
                text = text.replace(old, new)
            return text.lower()
        case StripAccents(kind="ascii"):
            return "".join(c for c in normalize("NFKD", text) if c.isascii())
        case StripAccents(kind="unicode" | "marks"):
            marks = _marks_to_drop(tatweel=step.kind == "unicode")
            return normalize("NFKD", text).translate(marks)
        case SingleSpaces():
            return re.sub(r"\s\s+", " ", text)
    raise _unknown(step)


def _run(
    steps: tuple[Step, ...], text: str, prefix: str, tokens: Sequence[str] = ()
) -> list[str] | None:
    """The tokens that steps make of a text, or of other tokens; None as in `plain_tokens`.

    ``prefix`` is the column's, "" for none.
    """
    tokens = list(tokens)
    for number, step in enumerate(steps):
        match step:
            case Cleaning():
                text = _clean(step, text)
            case Runs(members=members, min_length=min_length):
                words = text.translate(_others_to_spaces(members)).split(" ")
                tokens = [word for word in words if len(word) >= min_length]
            case WordsAndPairs(members=members, min_length=min_length, sizes=sizes):
                tokens = []
                for run in text.translate(_others_to_spaces(members)).split(" "):
                    tokens += _words_and_pairs(run, min_length, sizes)
            case WordsAndKinds(members=members, min_length=min_length, sizes=sizes, kinds=kinds):
                tokens = _words_and_kinds(text, _membership(members), min_length, sizes, kinds)
            case Characters(min_n=min_n, max_n=max_n):
                tokens = _character_ngrams(text, min_n, max_n)
            case CharactersInWords(min_n=min_n, max_n=max_n):
                tokens = []
                for word in text.split():
                    short_word = [f" {word} "] if len(word) + 2 < min_n else []
                    tokens += [*short_word, *_character_ngrams(f" {word} ", min_n, max_n)]
            case TokenColumns():
                # `_run_on_tokens` reads columns of tokens.
                pass
            case StopWords(texts=texts):
                stops = _stop_tokens(steps[:number], texts)
                if stops is None:
                    return None
                tokens = [token for token in tokens if token not in stops]
            case Escape(characters=characters):
                escaped = {ord(c): f"\\{c}" for c in f"\\{characters}"}
                tokens = [token.translate(escaped) for token in tokens]
            case FieldPrefix():
                tokens = [f"{prefix}{token}" for token in tokens]
            case NGrams(min_n=min_n, max_n=max_n):
                tokens = [" ".join(tokens[start:start + n]) for n in range(min_n, max_n + 1)
                          for start in range(len(tokens) - n + 1)]
            case _:
                raise _unknown(step)
    return tokens


def _unknown(step: Step) -> ParameterError:
    return ParameterError(f"{step.setting}: plain Python does not run this step of the "
                          "tokenizer's plan; Polars' expressions may")


def _run_on_tokens(plan: Plan, column: Sequence[str | None], prefix: str) -> list[str] | None:
    """`_run` for a column of tokens: each token is cleaned, and not split."""
    tokens = [cleaned for token in column if token and (cleaned := _clean_all(plan, token))]
    step = plan.find(StopWords)
    if step is not None:
        if not all(map(_is_supported, step.texts)):
            return None
        stops = {_clean_all(plan, text) for text in step.texts}
        tokens = [token for token in tokens if token not in stops]
    return _run(plan.after_stop_words, "", prefix, tokens)


@lru_cache(maxsize=64)
def _stop_tokens(
    steps_before: tuple[Step, ...], texts: tuple[str, ...]
) -> frozenset[str] | None:
    """The tokens that the steps before `StopWords` make of the stop words; None as in `_run`."""
    if not all(map(_is_supported, texts)):
        return None
    steps = steps_of_stop_words(steps_before)
    return frozenset(token for text in texts for token in _run(steps, text, "") or ())


def _is_supported(text: str) -> bool:
    """Whether Python and Polars read every character of the text in the same way."""
    if text.isascii():
        return True
    if tuple(map(int, unicodedata.unidata_version.split("."))) > _MAX_UNICODE:
        return False
    # Cn: not assigned. Cs: half a surrogate pair, which is in no text of Polars.
    return all(unicodedata.category(c) not in ("Cn", "Cs") for c in set(text))


def _words_and_pairs(run: str, min_length: int, sizes: Sequence[int]) -> list[str]:
    """The tokens of `WordsAndPairs` in a run of characters of words."""
    if run.isascii():
        return [run] if len(run) >= min_length else []
    tokens: list[str] = []
    for part, is_unspaced in split_by_script(run):
        if is_unspaced:
            tokens += _split_unspaced(part, sizes)
        elif len(part) >= min_length:
            tokens.append(part)
    return tokens


def _split_unspaced(run: str, sizes: Sequence[int]) -> list[str]:
    """Each character, each pair of a character with the next one, or both in this order.

    ``sizes`` are the numbers of characters of a token; a single character is a token anyhow.
    """
    return [run[start:start + size] for start in range(len(run)) for size in sizes
            if start + size <= len(run)] or [run]


def _character_ngrams(text: str, min_n: int, max_n: int) -> list[str]:
    return [text[start:start + n] for n in range(min_n, max_n + 1)
            for start in range(len(text) - n + 1)]


class _CharacterClasses(dict[str, int]):
    """The bits of each character's classes, which are decided when it is first looked up.

    With ``pairs``, members of words in scripts without spaces have the bit ``_UNSPACED`` instead of
    ``_WORD``.
    """

    def __init__(self, is_member: Callable[[str], bool], pairs: bool) -> None:
        super().__init__()
        self._is_member, self._pairs = is_member, pairs

    def __missing__(self, character: str) -> int:
        code, category = ord(character), unicodedata.category(character)[0]
        number = bisect(_FIRST_OF_UNSPACED_RANGES, code) - 1
        is_unspaced = number >= 0 and code <= UNSPACED_RANGES[number][1]
        bits = 0
        if self._is_member(character):
            bits = _UNSPACED if is_unspaced and self._pairs else _WORD
        if not is_unspaced and category in "LN":
            bits |= _LETTER_OR_NUMBER | (_LETTER if category == "L" else 0)
        self[character] = bits
        return bits

    def end_of_run(self, text: str, at: int, bits: int) -> int:
        """The end of the run of characters, from ``at`` on, that have one of these bits."""
        while at < len(text) and self[text[at]] & bits:
            at += 1
        return at


def _words_and_kinds(
    text: str, is_member: Callable[[str], bool], min_length: int, sizes: Sequence[int],
    kinds: Sequence[str],
) -> list[str]:
    """The tokens of `WordsAndKinds`, in time linear in the length of the text.

    For this, each run is read once, from its first character: if no ``++`` or ``#`` follows a run
    of letters and digits, no name (``c++``) begins within it. The same holds for runs of digits
    (``10%``), and for words that are too short.

    Parameters
    ----------
    text : str
        A cleaned text.
    is_member : callable
        Whether a character is in the class of words. It is a key of a cache, so that each call for
        a class must pass the same object.
    min_length : int
        Minimum number of characters of a word.
    sizes, kinds
        See `WordsAndKinds`.

    Examples
    --------
    >>> _words_and_kinds("c# x, u.s. 5%!", str.isalnum, 2, (2,), ("symbols", "abbreviations"))
    ['c#', 'u.s.', '5%']
    """
    tokens, classes = [], _character_classes(is_member, pairs=bool(sizes))
    # The ends of the last runs that were read: of letters and digits, of an amount, of a word.
    at = name_end = amount_end = word_end = 0
    while at < len(text):
        # The end of a token that begins at `at`; `at` itself while there is none.
        character, end = text[at], at
        bits = classes[character]
        if ("emoji" in kinds and _EMOJI.match(character)) or (
                "punctuation" in kinds and character in "!?"):
            end = at + 1
        elif "symbols" in kinds and character in CURRENCIES:
            amount = _AMOUNT.match(text, at + 1)
            end = amount.end() if amount else at
        elif "symbols" in kinds and "0" <= character <= "9" and at >= amount_end:
            amount = _AMOUNT.match(text, at)
            amount_end = amount.end() if amount else at
            end = amount_end + 1 if text.startswith("%", amount_end) else at
        if "symbols" in kinds and bits & _LETTER and at >= name_end:
            name_end = classes.end_of_run(text, at, _LETTER_OR_NUMBER)
            suffix = next((sign for sign in ("++", "#") if text.startswith(sign, name_end)), "")
            end = name_end + len(suffix) if suffix else at
        if "abbreviations" in kinds and bits & _LETTER and end == at:
            after = at
            while (after + 1 < len(text) and classes[text[after]] & _LETTER
                   and text[after + 1] == "."):
                after += 2
            end = after if after - at > 2 else at
        if end > at:
            tokens.append(text[at:end])
        elif bits & _UNSPACED:
            end = classes.end_of_run(text, at, _UNSPACED)
            tokens += _split_unspaced(text[at:end], sizes)
        elif bits & _WORD and at >= word_end:
            word_end = classes.end_of_run(text, at, _WORD)
            if word_end - at >= min_length:
                end = word_end
                tokens.append(text[at:end])
        at = max(end, at + 1)
    return tokens


@lru_cache(maxsize=8)
def _character_classes(is_member: Callable[[str], bool], pairs: bool) -> _CharacterClasses:
    return _CharacterClasses(is_member, pairs)


class _OthersToSpaces(dict[int, str]):
    """Maps members of a class to themselves, and every other character to a space."""

    def __init__(self, is_member: Callable[[str], bool]) -> None:
        self._is_member = is_member

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = replacement = character if self._is_member(character) else " "
        return replacement


@lru_cache(maxsize=8)
def _others_to_spaces(members: str) -> _OthersToSpaces:
    return _OthersToSpaces(_membership(members))


@lru_cache(maxsize=8)
def _membership(members: str) -> Callable[[str], bool]:
    """A function that says whether a character is in the class with these members."""
    tests = [_member_test(member) for member in _MEMBER.finditer(members)]
    return lambda character: any(test(character) for test in tests)


def _member_test(member: re.Match[str]) -> Callable[[str], bool]:
    """The function of `_membership` for one member: a category, a shorthand, or a range."""
    category = member["category"]
    if category is not None:
        if category not in _CATEGORIES:
            raise ParameterError(f"pattern: plain Python does not know the class {member[0]!r}; "
                                 "Polars' expressions may")
        return lambda c: unicodedata.category(c).startswith(category)
    if member["shorthand"] == "d":
        return lambda c: unicodedata.category(c) == "Nd"
    if member["shorthand"] == "w":
        return _is_word_character
    first, last = member["first"] or member["single"], member["last"] or member["single"]
    return lambda c: first <= c <= last


def _is_word_character(c: str) -> bool:
    r"""Whether a character is in Rust's \w."""
    category = unicodedata.category(c)
    return (category[0] in "LM" or category in ("Nd", "Nl", "Pc") or c in "\u200c\u200d"
            or any(first <= ord(c) <= last for first, last in _OTHER_ALPHABETIC))


@lru_cache(maxsize=2)
def _marks_to_drop(*, tatweel: bool) -> dict[int, None]:
    """A table for `str.translate` that drops combining marks and, if asked, tatweel."""
    codes: dict[int, None] = {}
    for item in [*COMBINING_RANGES.split(), *([TATWEEL] if tatweel else [])]:
        first, _, last = item.partition("-")
        codes |= dict.fromkeys(range(int(first, 16), int(last or first, 16) + 1))
    return codes
