"""Finds the places of terms in a text.

    text -> parts with their cleaned forms -> words, found in turn -> terms, windows of words

Words and terms are those of the expressions. This module executes no step of a plan by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import polars as pl

from textnb.text.characters import stretches
from textnb.text.expressions import cleaned_strings, tokens_expr
from textnb.text.plan import (
    WHITE,
    Characters,
    CharactersInWords,
    Escape,
    FieldPrefix,
    NGrams,
    OwnCode,
    Plan,
)
from textnb.text.tokens import Tokenizer

# (text, contribution of its terms); the contribution is None between words.
Pieces = list[tuple[str, float | None]]
Spans = list[tuple[int, int]]
# Words or terms (or the columns of a term), each with the numbers of the spans that it covers.
Covering = list[tuple[str, list[int]]]

# A text is cleaned in parts that do not affect each other: white space, a syllable of Hangul, or a
# character with its marks (Katakana has some of half a width).
_PART = (rf"(?s)[{WHITE}]+|[\x{{ac00}}-\x{{d7a3}}]?[\x{{1100}}-\x{{11ff}}]+"
         r"|.[\p{M}\x{ff9e}\x{ff9f}]*")


class _Column(NamedTuple):
    """A text as it is shown, the spans of its words, and the terms with the spans they cover."""

    shown: str
    spans: Spans
    terms: Covering


def pieces_of(
    tokenizer: Tokenizer, columns: Sequence[str], texts: Mapping[str, str | Sequence[str]],
    contributions: Mapping[str, float],
) -> tuple[dict[str, Pieces], float]:
    """Each text in pieces, with the contribution of the terms of each word.

    The contribution of a term is divided equally among its places, and at each place among the
    words (for n-grams and pairs of characters, the characters) that it covers.

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
        If expressions do not know a step of the plan; it is named.

    Examples
    --------
    >>> pieces_of(Tokenizer(ngram_range=(1, 2)), ["text"], {"text": "Free, free lunch"},
    ...           {"free": 2.0, "free lunch": 1.0})
    ({'text': [('Free', 1.0), (', ', None), ('free', 1.5), (' ', None), ('lunch', 0.5)]}, 0.0)
    """
    located = {column: _locate(tokenizer, columns, column, texts[column], contributions)
               for column in columns}
    places: dict[str, Covering] = {}
    for column, text in located.items():
        for term, spans in text.terms:
            if spans:
                places.setdefault(term, []).append((column, spans))
    sums = {column: [0.0] * len(text.spans) for column, text in located.items()}
    elsewhere = 0.0
    for term, contribution in contributions.items():
        places_of_term = places.get(term, [])
        if not places_of_term:
            elsewhere += contribution
        for column, spans in places_of_term:
            for span in spans:
                sums[column][span] += contribution / len(places_of_term) / len(spans)
    return {column: _pieces(text.shown, text.spans, sums[column])
            for column, text in located.items()}, elsewhere


def _locate(
    tokenizer: Tokenizer, columns: Sequence[str], column: str, text: str | Sequence[str],
    contributions: Mapping[str, float],
) -> _Column:
    """Find the terms of one column: those that the tokenizer makes if the others are empty."""
    plan, lists = tokenizer.plan(), tokenizer.columns_of_tokens(columns)
    types = {name: pl.List(pl.String) if name in lists else pl.String() for name in columns}
    row = pl.DataFrame({name: [text if name == column else [] if name in lists else ""]
                        for name in columns}, schema=types)

    def tokens(expr: pl.Expr) -> list[str]:
        return list(row.select(expr.alias("tokens")).item())

    terms = tokens(tokenizer.expr(columns))
    if isinstance(text, str):
        cleaned, origins = _clean_with_origins(plan, text)
        splitting = plan.after_cleaning[0]
        if isinstance(splitting, Characters | CharactersInWords):
            # Within words, n-grams have one space in place of any white space.
            spans, covering = _characters(
                cleaned if isinstance(splitting, Characters) else re.sub(r"\s", " ", cleaned),
                contributions, plan.prefixes(columns)[[*columns].index(column)])
            return _Column(text, _spans_in_original(spans, origins), covering)
        split = Plan((*plan.cleaning, splitting))
        spans, words = _find_words(tokens(tokens_expr(split, column)), cleaned,
                                   singles=1 in getattr(splitting, "sizes", ()))
        spans = _spans_in_original(spans, origins)
    else:
        ends = list(accumulate(len(token) + 1 for token in text))
        spans = [(end - len(token) - 1, end - 1) for token, end in zip(text, ends, strict=True)]
        words = [(word, [place]) for place, word in enumerate(cleaned_strings(plan, text)) if word]
        text = " ".join(text)
    # All steps that may drop words, and no step that changes them.
    dropping = Plan(tuple(step for step in plan.steps
                      if not isinstance(step, Escape | FieldPrefix | NGrams | OwnCode)))
    allowed = set(tokens(tokens_expr(dropping, columns)))
    return _Column(text, spans, _windows(plan, words, allowed, terms))


def _windows(plan: Plan, words: Covering, allowed: set[str], terms: list[str]) -> Covering:
    """The terms with the spans of their words; none if the terms are not windows of words."""
    spans_of_words = [spans for word, spans in words if word in allowed]
    ngrams = plan.find(NGrams) or NGrams(1, 1)
    windows = [sorted(set[int]().union(*spans_of_words[first:first + n]))
               for n in range(ngrams.min_n, ngrams.max_n + 1)
               for first in range(len(spans_of_words) - n + 1)]
    return list(zip(terms, windows, strict=True)) if len(windows) == len(terms) else []


def _find_words(words: Sequence[str], cleaned: str, *, singles: bool) -> tuple[Spans, Covering]:
    """The spans of words, which are found in turn, and the words with the spans they cover.

    A pair of characters of a script without spaces covers two spans, and shares the first one with
    the pair, or with ``singles`` the character, before it. That character shares its span with the
    pair before.
    """
    spans: Spans = []
    covering: Covering = []
    end = 0
    for word in words:
        is_unspaced = next(stretches(word)) == (word, True)
        is_pair = is_unspaced and len(word) == 2
        before = len(covering[-1][1]) if covering else 0
        if singles and is_unspaced and not is_pair and before == 2:
            covering.append((word, [len(spans) - 1]))
            continue
        continues = (is_pair and before == (1 if singles else 2)
                     and cleaned.startswith(word, end - 1))
        start = end - 1 if continues else cleaned.find(word, end)
        if start < 0:
            covering.append((word, []))
            continue
        end = start + len(word)
        spans_of_word = list(pairwise([start, start + 1, end] if is_pair else [start, end]))
        spans += spans_of_word[1:] if continues else spans_of_word
        covering.append((word, list(range(len(spans) - len(spans_of_word), len(spans)))))
    return spans, covering


def _characters(
    cleaned: str, contributions: Mapping[str, float], prefix: str
) -> tuple[Spans, Covering]:
    """Spans of the words, and n-grams of characters, each with the words that it touches.

    A word is listed once for each of its characters that the n-gram covers.
    """
    spans = [match.span() for match in re.finditer(r"\S+", cleaned)]
    word_at = {place: number for number, (start, end) in enumerate(spans)
               for place in range(start, end)}
    padded = f" {cleaned} "
    covering = []
    for term in contributions:
        ngram = term.removeprefix(prefix)
        if prefix and ngram == term:
            continue
        start = padded.find(ngram)
        while start >= 0 and ngram:
            places = range(start - 1, start - 1 + len(ngram))
            covering.append((term, [word_at[place] for place in places if place in word_at]))
            start = padded.find(ngram, start + 1)
    return spans, covering


def _clean_with_origins(plan: Plan, text: str) -> tuple[str, Spans]:
    """The cleaned text, and for each of its characters the span of the original it comes from."""
    parts = pl.Series([text]).str.extract_all(_PART).item().to_list()
    cleaned, *forms = cleaned_strings(plan, [text, *parts])
    if len(cleaned) != sum(map(len, forms)):
        cleaned = "".join(forms)
    return cleaned, [(end - len(part), end) for part, form, end in zip(
        parts, forms, accumulate(map(len, parts)), strict=True) for _ in form]


def _spans_in_original(spans: Spans, origins: Spans) -> Spans:
    """Spans of the cleaned text in the original, where none begins before another one ends."""
    moved: Spans = []
    for start, end in spans:
        before = moved[-1][1] if moved else 0
        moved.append((max(before, origins[start][0]), max(before, origins[end - 1][1])))
    return moved


def _pieces(shown: str, spans: Spans, sums: list[float]) -> Pieces:
    """The spans with their sums of contributions, and what is between them."""
    pieces: Pieces = []
    end_before = 0
    for (start, end), value in zip(spans, sums, strict=True):
        if start > end_before:
            pieces.append((shown[end_before:start], None))
        pieces.append((shown[start:end], value))
        end_before = end
    if end_before < len(shown):
        pieces.append((shown[end_before:], None))
    return pieces
