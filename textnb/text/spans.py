"""Finds the places of terms in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import polars as pl

from textnb.errors import ParameterError
from textnb.text.expressions import (
    cleaned_exprs,
    kept_or_word,
    stop_tokens,
    stop_tokens_of_lists,
    unspaced_class,
)
from textnb.text.kept import kept_pattern
from textnb.text.plan import (
    Characters,
    CharactersInWords,
    Escape,
    FieldPrefix,
    Matches,
    NGrams,
    OwnCode,
    Plan,
    Runs,
    StopWords,
    TokenColumns,
    WordsAndKept,
    WordsAndPairs,
)
from textnb.text.tokens import Tokenizer
from textnb.text.unspaced import UNSPACED, stretches

# (text, contribution of its terms); the contribution is None between words.
Pieces = list[tuple[str, float | None]]


def pieces_of(
    tokenizer: Tokenizer, columns: Sequence[str], texts: Mapping[str, str | Sequence[str]],
    contributions: Mapping[str, float],
) -> tuple[dict[str, Pieces], float]:
    """Each text in pieces, with the contribution of the terms of each word.

    The contribution of a term is divided equally among its places, and at each place among the
    words (for n-grams and pairs of characters, the characters) that it covers. If cleaning keeps
    the length of a text, as lower-casing mostly does, the pieces are of the original text;
    otherwise of the cleaned text.

    Parameters
    ----------
    tokenizer : Tokenizer
    columns : sequence of str
    texts : mapping of column to str
        For a column of tokens a list of them, which one space separates in the pieces.
    contributions : mapping of term to float

    Returns
    -------
    pieces : dict of column to list of (str, float or None)
        Joined, they are the text. 0.0 is for a word that no known term covers.
    elsewhere : float
        The sum of contributions without a place in a text.

    Raises
    ------
    ParameterError
        If this module does not know a step of the plan after cleaning; it is named.

    Examples
    --------
    >>> pieces_of(Tokenizer(ngram_range=(1, 2)), ["text"], {"text": "Free, free lunch"},
    ...           {"free": 2.0, "free lunch": 1.0})
    ({'text': [('Free', 1.0), (', ', None), ('free', 1.5), (' ', None), ('lunch', 0.5)]}, 0.0)
    """
    spans: dict[str, list[tuple[int, int]]] = {}
    shown: dict[str, str] = {}
    places: dict[str, list[tuple[str, list[int]]]] = {}
    plan = tokenizer.plan()
    _check_known(plan)
    lists = tokenizer.columns_of_tokens(columns)
    for at, column in enumerate(columns):
        row = pl.DataFrame(
            {name: [texts[column] if name == column else [] if name in lists else ""]
             for name in columns},
            schema={name: pl.List(pl.String) if name in lists else pl.String() for name in columns})
        cleaned = row.select(cleaned_exprs(plan, columns)[at].alias("text")).item()
        if column in lists:
            cleaned = cleaned.to_list()
        shown_text = texts[column] if len(texts[column]) == len(cleaned) else cleaned
        shown[column] = " ".join(shown_text) if column in lists else str(shown_text)
        match () if column in lists else plan.after_cleaning:
            case ():
                tokens = row.select(tokenizer.expr(columns).alias("tokens")).item().to_list()
                spans[column], found = _tokens(plan, list(shown_text), cleaned, tokens)
            case (Matches() | Runs() | WordsAndPairs() | WordsAndKept(), *_):
                tokens = row.select(tokenizer.expr(columns).alias("tokens")).item().to_list()
                spans[column], found = _words(plan, cleaned, tokens)
            case (CharactersInWords(), *_):
                # These n-grams have one space in place of any white space.
                single = re.sub(r"\s", " ", cleaned)
                spans[column], found = _characters(single, contributions)
            case _:
                spans[column], found = _characters(cleaned, contributions)
        for term, covered in found:
            places.setdefault(term, []).append((column, covered))
    added = {column: [0.0] * len(spans[column]) for column in columns}
    elsewhere = 0.0
    for term, contribution in contributions.items():
        standing = places.get(term, [])
        if not standing:
            elsewhere += contribution
        for column, covered in standing:
            for place in covered:
                added[column][place] += contribution / len(standing) / len(covered)
    return {column: _pieces(shown[column], spans[column], added[column])
            for column in columns}, elsewhere


def _check_known(plan: Plan) -> None:
    """Raise ParameterError for a step after which the places of tokens can't be found."""
    for step in plan.after_cleaning:
        match step:
            case Matches() | Runs() | WordsAndPairs() | WordsAndKept():
                pass
            case Characters() | CharactersInWords():
                pass
            case TokenColumns() | StopWords() | Escape() | FieldPrefix() | NGrams() | OwnCode():
                pass
            case _:
                raise ParameterError(f"{step.setting}: the places of terms in a text are not known "
                                     "after this step of the tokenizer's plan")


def _words(
    plan: Plan, cleaned: str, tokens: list[str]
) -> tuple[list[tuple[int, int]], list[tuple[str, list[int]]]]:
    """Spans of words and of the characters of pairs; and the terms with the spans they cover."""
    spans, words = _spans(plan, cleaned)
    return spans, _terms(plan, words, stop_tokens(plan), tokens)


def _tokens(
    plan: Plan, shown: list[str], cleaned: list[str], tokens: list[str]
) -> tuple[list[tuple[int, int]], list[tuple[str, list[int]]]]:
    """Spans of the tokens of a list, where one space joins those that are shown; and the terms."""
    ends = list(accumulate(len(token) + 1 for token in shown))
    spans = [(end - len(token) - 1, end - 1) for token, end in zip(shown, ends, strict=True)]
    words = [(token, [place]) for place, token in enumerate(cleaned)]
    return spans, _terms(plan, words, stop_tokens_of_lists(plan), tokens)


def _terms(
    plan: Plan, words: list[tuple[str, list[int]]], stops: frozenset[str], tokens: list[str]
) -> list[tuple[str, list[int]]]:
    """The terms with the spans that they cover; none if they are not those of the engine."""
    kept = [covered for word, covered in words if word not in stops]
    ngrams = plan.find(NGrams) or NGrams(1, 1)
    windows = [sorted({place for covered in kept[first:first + n] for place in covered})
               for n in range(ngrams.least, ngrams.most + 1)
               for first in range(len(kept) - n + 1)]
    return list(zip(tokens, windows, strict=True)) if len(windows) == len(tokens) else []


def _spans(
    plan: Plan, cleaned: str
) -> tuple[list[tuple[int, int]], list[tuple[str, list[int]]]]:
    """The spans, and the words with the spans that each covers."""
    spans: list[tuple[int, int]] = []
    words: list[tuple[str, list[int]]] = []
    match plan.after_cleaning:
        case (WordsAndPairs(members=members, least=least), *_):
            for start, run in _matches(f"[{members}]+", cleaned):
                _add_stretches(start, run, least, spans, words)
        case (WordsAndKept(members=members, least=least, pairs=True, kinds=kinds), *_):
            alone, others = unspaced_class(members), f"[{members}--[{UNSPACED}]]{{{least},}}"
            for start, run in _matches(f"{kept_pattern(kinds)}|{alone}+|{others}", cleaned):
                _add_stretches(start, run, 1, spans, words)
        case (WordsAndKept(members=members, least=least, pairs=pairs, kinds=kinds), *_):
            for start, word in _matches(kept_or_word(members, least, pairs, kinds), cleaned):
                words.append((word, [len(spans)]))
                spans.append((start, start + len(word)))
        case (Matches(pattern=pattern) | Runs(pattern=pattern), *_):
            for start, word in _matches(pattern, cleaned):
                words.append((word, [len(spans)]))
                spans.append((start, start + len(word)))
    return spans, words


def _add_stretches(
    start: int, run: str, least: int, spans: list[tuple[int, int]],
    words: list[tuple[str, list[int]]],
) -> None:
    """Add the spans and words of a run, in which scripts without spaces make pairs."""
    for piece, unspaced in stretches(run):
        places = len(spans)
        if unspaced:
            spans += [(start + at, start + at + 1) for at in range(len(piece))]
            words += [(piece[at:at + 2], [places + at, places + at + 1])
                      for at in range(len(piece) - 1)] or [(piece, [places])]
        elif len(piece) >= least:
            spans.append((start, start + len(piece)))
            words.append((piece, [places]))
        start += len(piece)


def _matches(pattern: str, cleaned: str) -> Iterator[tuple[int, str]]:
    """The begin of each match of the engine, and the match."""
    end = 0
    for match in pl.Series([cleaned]).str.extract_all(pattern).to_list()[0]:
        start = cleaned.index(match, end)
        end = start + len(match)
        yield start, match


def _characters(
    cleaned: str, contributions: Mapping[str, float]
) -> tuple[list[tuple[int, int]], list[tuple[str, list[int]]]]:
    """Spans of the words, and the n-grams with the words of the characters that each covers."""
    spans = [match.span() for match in re.finditer(r"\S+", cleaned)]
    word_at = {place: number for number, (start, end) in enumerate(spans)
               for place in range(start, end)}
    padded = f" {cleaned} "
    found = []
    for term in contributions:
        start = padded.find(term)
        while start >= 0 and term:
            covered = [word_at[place] for place in range(start - 1, start - 1 + len(term))
                       if place in word_at]
            if covered:
                found.append((term, covered))
            start = padded.find(term, start + 1)
    return spans, found


def _pieces(shown: str, spans: list[tuple[int, int]], added: list[float]) -> Pieces:
    pieces: Pieces = []
    end = 0
    for (start, stop), value in zip(spans, added, strict=True):
        if start > end:
            pieces.append((shown[end:start], None))
        pieces.append((shown[start:stop], value))
        end = stop
    if end < len(shown):
        pieces.append((shown[end:], None))
    return pieces
