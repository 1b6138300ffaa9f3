r"""The plan of a tokenizer's settings.

This module imports neither Polars nor NumPy.

>>> plan_of({"pattern": r"\w+", "lowercase": True, "ngram_range": (1, 2), "analyzer": "word",
...          "normalize": None, "strip_accents": None, "stop_words": (), "field_prefix": False,
...          "unspaced": "whole", "keep": (), "token_columns": False,
...          "segmenter": None})
Plan(steps=(Lowercase(), Runs(pattern='\\w+', members='\\w', least=1), NGrams(least=1, most=2)))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from textnb.errors import Mention, ParameterError
from textnb.text.casing import LANGUAGES
from textnb.text.kept import KINDS
from textnb.text.plan import (
    Characters,
    CharactersInWords,
    Escape,
    FieldPrefix,
    Lowercase,
    Matches,
    NGrams,
    Normalize,
    Plan,
    Runs,
    Segments,
    SingleSpaces,
    Splitting,
    Step,
    StopWords,
    StripAccents,
    TokenColumns,
    TurkicLowercase,
    WordsAndKept,
    WordsAndPairs,
)

NORMALIZATIONS = ("NFC", "NFD", "NFKC", "NFKD")
ACCENTS = ("unicode", "ascii", "marks")
UNSPACED_WAYS = ("pairs", "whole")
# Values of settings that files lack because they are older than the setting.
_BEFORE: dict[str, Any] = {"unspaced": "whole", "keep": (), "token_columns": False,
                           "segmenter": None}

# A run of one class of characters, at least m long: `[...]{m,}`, `[...]+`, `\w{m,}`, `\b\w\w+\b`.
# No member of these classes is a space, a colon or a backslash.
_MEMBER = r"(?:\\p\{[LMN][a-z]?\}|\\[wd]|[A-Za-z]-[A-Za-z]|[0-9]-[0-9]|[A-Za-z0-9_'])"
_RUN = re.compile(rf"(?:\[(?P<members>{_MEMBER}+)\]|(?P<single>\\w))(?:\+|\{{(?P<least>\d+),\}})")
_SKLEARN_RUN = re.compile(r"(?:\(\?u\))?\\b\\w\\w\+\\b")


def plan_of(settings: Mapping[str, Any]) -> Plan:
    """The plan of a tokenizer's settings.

    Parameters
    ----------
    settings : mapping of str to value
        Each setting by name, as in `Tokenizer.to_dict`.

    Raises
    ------
    ParameterError
        If a setting is missing, or no step does a setting or its value; it is named.
    """
    rest = dict(settings)
    try:
        plan = _take_plan(rest)
    except KeyError as missing:
        raise ParameterError(f"the tokenizer's setting {missing} is missing; its settings must "
                             "all be there, as Tokenizer.to_dict writes them") from None
    if rest:
        name, value = next(iter(rest.items()))
        raise _no_step(name, value)
    return plan


def with_missing(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from a file, with values for those that are newer than the file.

    Examples
    --------
    >>> with_missing({"analyzer": "word"})
    {'unspaced': 'whole', 'keep': (), 'token_columns': False, 'segmenter': None, 'analyzer': 'word'}
    """
    found = {**_BEFORE, **settings}
    if "unspaced" not in settings and found.get("strip_accents") == "unicode":
        found["strip_accents"] = "marks"
    return found


def _take_plan(rest: dict[str, Any]) -> Plan:
    """The plan of settings; each setting is removed from the dictionary."""
    cleaning = [*_normalize(rest.pop("normalize")), *_lowercase(rest.pop("lowercase")),
                *_strip_accents(rest.pop("strip_accents"))]
    least, most = rest.pop("ngram_range")
    pattern, stop_words = rest.pop("pattern"), tuple(rest.pop("stop_words") or ())
    prefix, unspaced = _field_prefix(rest.pop("field_prefix")), rest.pop("unspaced")
    kept, given = tuple(rest.pop("keep") or ()), _token_columns(rest.pop("token_columns"))
    segmenter = rest.pop("segmenter")
    if isinstance(segmenter, str):
        # Only its name is known, as of a model file: the tokens must come as lists.
        given = [TokenColumns(None)]
    elif segmenter is not None and not callable(segmenter):
        raise _no_step("segmenter", segmenter)
    for kind in kept:
        if kind not in KINDS:
            raise _no_step("keep", kept)
    if unspaced not in UNSPACED_WAYS:
        raise _no_step("unspaced", unspaced)
    analyzer = rest.pop("analyzer")
    stops = [StopWords(stop_words)] if stop_words else []
    match analyzer:
        case "word":
            words: Splitting = words_of(pattern)
            if unspaced == "pairs":
                words = _with_pairs(words)
            if kept:
                words = _with_kept(words, kept)
            if callable(segmenter):
                words = Segments(str(name_of(segmenter)), segmenter)
            ngrams = [NGrams(least, most)] if (least, most) != (1, 1) else []
            # Words of runs hold no space and no colon, so that nothing in them needs an escape.
            special = "" if not (given or isinstance(words, Matches | Segments)) else (
                (" " if most > 1 else "") + (":" if prefix else ""))
            escape = [Escape(special)] if special else []
            return Plan((*cleaning, words, *given, *stops, *escape, *prefix, *ngrams))
        case "char":
            splitting: list[Step] = [SingleSpaces(), Characters(least, most)]
        case "char_wb":
            splitting = [CharactersInWords(least, most)]
        case _:
            raise _no_step("analyzer", analyzer)
    for name, wanted in (("keep", kept), ("segmenter", segmenter), ("token_columns", given)):
        if wanted:
            raise ParameterError(f"{name} needs analyzer='word'; got analyzer={analyzer!r}")
    if stops:
        raise ParameterError.naming(
            "{stop_words} are words: they need {analyzer='word'}; got {got}",
            got=Mention("analyzer", repr(analyzer)))
    return Plan((*cleaning, *splitting, *([Escape(":")] if prefix else []), *prefix))


def name_of(segmenter: Any) -> str | None:
    """The dotted name of a function that splits texts, by which files name it."""
    if segmenter is None or isinstance(segmenter, str):
        return segmenter
    named = all(isinstance(getattr(segmenter, name, None), str)
                for name in ("__module__", "__qualname__"))
    owner = segmenter if named else type(segmenter)
    return f"{owner.__module__}.{owner.__qualname__}"


def words_of(pattern: str) -> Runs | Matches:
    """The step that finds the words of a pattern.

    Examples
    --------
    >>> words_of("[a-z0-9]{3,}"), words_of("a+b")
    (Runs(pattern='[a-z0-9]{3,}', members='a-z0-9', least=3), Matches(pattern='a+b'))
    """
    if _SKLEARN_RUN.fullmatch(pattern):
        return Runs(pattern, r"\w", 2)
    run = _RUN.fullmatch(pattern)
    if run is None or int(run["least"] or 1) < 1:
        return Matches(pattern)
    return Runs(pattern, run["members"] or run["single"], int(run["least"] or 1))


def _with_pairs(words: Splitting) -> Splitting:
    """Runs as words and pairs, if their class may have characters of scripts without spaces.

    A pattern that is no run of one class finds words by itself.
    """
    if isinstance(words, Runs) and "\\" in words.members:
        return WordsAndPairs(words.pattern, words.members, words.least)
    return words


def _with_kept(words: Splitting, kinds: tuple[str, ...]) -> Splitting:
    if isinstance(words, Runs | WordsAndPairs):
        return WordsAndKept(words.pattern, words.members, words.least,
                            isinstance(words, WordsAndPairs), kinds)
    raise ParameterError(f"keep={kinds!r} needs a pattern that is a run of one class of "
                         "characters, as the default one; write what to keep into your pattern")


def _normalize(form: Any) -> list[Step]:
    if form is None:
        return []
    if form not in NORMALIZATIONS:
        raise _no_step("normalize", form)
    return [Normalize(form)]


def _lowercase(lowercase: Any) -> list[Step]:
    if lowercase is False:
        return []
    if isinstance(lowercase, str) and lowercase in LANGUAGES:
        return [TurkicLowercase(lowercase)]
    if lowercase is not True:
        raise _no_step("lowercase", lowercase)
    return [Lowercase()]


def _strip_accents(kind: Any) -> list[Step]:
    if kind is None:
        return []
    if kind not in ACCENTS:
        raise _no_step("strip_accents", kind)
    return [StripAccents(kind)]


def _field_prefix(columns: Any) -> list[Step]:
    if columns is True:
        return [FieldPrefix(None)]
    return [FieldPrefix(tuple(columns))] if columns else []


def _token_columns(columns: Any) -> list[Step]:
    if columns is True:
        return [TokenColumns(None)]
    return [TokenColumns(tuple(columns))] if columns else []


def _no_step(name: str, value: object) -> ParameterError:
    return ParameterError(f"no step of a plan does {name}={value!r}: it needs one in "
                          "textnb/text/plan.py before any engine can run it")
