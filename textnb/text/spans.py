"""Finds the places of terms in a text.

    text -> units and their cleaned forms -> words, found one after the other -> n-grams of words

Expressions make the words and terms. This module executes no step of a plan by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import polars as pl

from textnb.text.characters import split_by_script
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

# Parts of a text, each with the contribution of its terms to a score; None for text between words.
Pieces = list[tuple[str, float | None]]
Spans = list[tuple[int, int]]
# Words or terms with the numbers of the spans that they cover, or columns with those of one term.
Covering = list[tuple[str, list[int]]]

# Cleaning changes each of these units of a text by itself: white space, a syllable of Hangul, or a
# character with its marks (Katakana has half-width ones).
_CLEANING_UNIT = (rf"(?s)[{WHITE}]+|[\x{{ac00}}-\x{{d7a3}}]?[\x{{1100}}-\x{{11ff}}]+"
                  r"|.[\p{M}\x{ff9e}\x{ff9f}]*")


class _ShownText(NamedTuple):
    """A text as it is shown, the spans of its words, and its terms with the spans they cover."""

    text: str
    spans: Spans
    terms: Covering


def pieces_of(
    tokenizer: Tokenizer, columns: Sequence[str], texts: Mapping[str, str | Sequence[str]],
    contributions: Mapping[str, float],
) -> tuple[dict[str, Pieces], float]:
    """Each text in pieces, with the contribution of the terms of each word to a score.

    The contribution of a term is divided equally among its places, and there equally among the
    words that it covers. For pairs of characters it is divided among the characters. For n-grams of
    characters, a word gets a share for each of its characters in the n-gram.

    Parameters
    ----------
    tokenizer : Tokenizer
    columns : sequence of str
    texts : mapping of column to str
        For a column of tokens, a list of tokens; the pieces have a space between two tokens.
    contributions : mapping of term to float

    Returns
    -------
    pieces : dict of column to list of (str, float or None)
        Joined, they are the text. A word that no known term covers has 0.0.
    elsewhere : float
        The sum of contributions of terms without a place in a text.

    Raises
    ------
    ParameterError
        If expressions do not know a step of the plan, which the error names.

    Examples
    --------
    >>> pieces_of(Tokenizer(ngram_range=(1, 2)), ["text"], {"text": "Free, free lunch"},
    ...           {"free": 2.0, "free lunch": 1.0})
    ({'text': [('Free', 1.0), (', ', None), ('free', 1.5), (' ', None), ('lunch', 0.5)]}, 0.0)
    """
    shown = {column: _locate(tokenizer, columns, column, texts[column], contributions)
             for column in columns}
    places: dict[str, Covering] = {}
    for column, shown_text in shown.items():
        for term, spans in shown_text.terms:
            if spans:
                places.setdefault(term, []).append((column, spans))
    sums = {column: [0.0] * len(shown_text.spans) for column, shown_text in shown.items()}
    elsewhere = 0.0
    for term, contribution in contributions.items():
        places_of_term = places.get(term, [])
        if not places_of_term:
            elsewhere += contribution
        for column, spans in places_of_term:
            for span in spans:
                sums[column][span] += contribution / len(places_of_term) / len(spans)
    return {column: _cut(shown_text.text, shown_text.spans, sums[column])
            for column, shown_text in shown.items()}, elsewhere


def _locate(
    tokenizer: Tokenizer, columns: Sequence[str], column: str, text: str | Sequence[str],
    contributions: Mapping[str, float],
) -> _ShownText:
    """Find the terms of one column, which are the tokenizer's terms if other columns are empty."""
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
            # N-grams within words have a space in place of any other white space.
            if isinstance(splitting, CharactersInWords):
                cleaned = re.sub(r"\s", " ", cleaned)
            prefixes = dict(zip(columns, plan.prefixes(columns), strict=True))
            spans, covering = _find_character_ngrams(cleaned, contributions, prefixes[column])
            return _ShownText(text, _map_to_original(spans, origins), covering)
        split = Plan((*plan.cleaning, splitting))
        spans, words = _find_words(tokens(tokens_expr(split, column)), cleaned,
                                   singles=1 in getattr(splitting, "sizes", ()))
        spans = _map_to_original(spans, origins)
    else:
        # Tokens are shown with a space between them.
        ends = list(accumulate(len(token) + 1 for token in text))
        spans = [(end - len(token) - 1, end - 1) for token, end in zip(text, ends, strict=True)]
        words = [(word, [place]) for place, word in enumerate(cleaned_strings(plan, text)) if word]
        text = " ".join(text)
    # The steps up to stop words, so that words are dropped but not changed.
    until_stop_words = Plan(tuple(step for step in plan.steps if not isinstance(
        step, Escape | FieldPrefix | NGrams | OwnCode)))
    remaining = set(tokens(tokens_expr(until_stop_words, columns)))
    return _ShownText(text, spans, _ngrams_of(plan, words, remaining, terms))


def _ngrams_of(plan: Plan, words: Covering, remaining: set[str], terms: list[str]) -> Covering:
    """The terms with the spans of their words; none if terms are not n-grams of these words.

    ``remaining`` are the words that are not stop words, and ``terms`` the terms of the text.
    """
    spans_of_words = [spans for word, spans in words if word in remaining]
    step = plan.find(NGrams) or NGrams(1, 1)
    ngrams = [sorted(set[int]().union(*spans_of_words[first:first + n]))
              for n in range(step.min_n, step.max_n + 1)
              for first in range(len(spans_of_words) - n + 1)]
    return list(zip(terms, ngrams, strict=True)) if len(ngrams) == len(terms) else []


def _find_words(words: Sequence[str], cleaned: str, *, singles: bool) -> tuple[Spans, Covering]:
    """The spans of words, found one after the other, and the words with the spans they cover.

    In scripts without spaces, each character is a span. A pair covers two spans, and the first of
    them is the second span of the pair before it. With ``singles``, single characters are words,
    too: each comes before the pair that begins with it, and shares a span with that pair.
    """
    spans: Spans = []
    covering: Covering = []
    end = 0
    for word in words:
        is_unspaced = next(split_by_script(word)) == (word, True)
        is_pair = is_unspaced and len(word) == 2
        n_previous_spans = len(covering[-1][1]) if covering else 0
        if singles and is_unspaced and not is_pair and n_previous_spans == 2:
            # The second character of the previous word, which is a pair.
            covering.append((word, [len(spans) - 1]))
            continue
        overlaps = (is_pair and n_previous_spans == (1 if singles else 2)
                    and cleaned.startswith(word, end - 1))
        start = end - 1 if overlaps else cleaned.find(word, end)
        if start < 0:
            covering.append((word, []))
            continue
        end = start + len(word)
        spans_of_word = list(pairwise([start, start + 1, end] if is_pair else [start, end]))
        spans += spans_of_word[1:] if overlaps else spans_of_word
        covering.append((word, list(range(len(spans) - len(spans_of_word), len(spans)))))
    return spans, covering


def _find_character_ngrams(
    cleaned: str, contributions: Mapping[str, float], prefix: str
) -> tuple[Spans, Covering]:
    """The spans of words, and the n-grams of characters with the words in which they are.

    An n-gram has the number of a word once for each of its characters that is in the word.
    """
    spans = [match.span() for match in re.finditer(r"\S+", cleaned)]
    word_at = {place: number for number, (start, end) in enumerate(spans)
               for place in range(start, end)}
    padded = f" {cleaned} "
    covering = []
    for term in contributions:
        ngram = term.removeprefix(prefix)
        if prefix and ngram == term:
            # A term of another column.
            continue
        start = padded.find(ngram)
        while start >= 0 and ngram:
            places = range(start - 1, start - 1 + len(ngram))
            covering.append((term, [word_at[place] for place in places if place in word_at]))
            start = padded.find(ngram, start + 1)
    return spans, covering


def _clean_with_origins(plan: Plan, text: str) -> tuple[str, Spans]:
    """The cleaned text, and for each of its characters the span of its unit in the original."""
    units = pl.Series([text]).str.extract_all(_CLEANING_UNIT).item().to_list()
    cleaned, *cleaned_units = cleaned_strings(plan, [text, *units])
    if len(cleaned) != sum(map(len, cleaned_units)):
        # Here cleaning depends on the characters around a unit, so the cleaned units are used.
        cleaned = "".join(cleaned_units)
    return cleaned, [(end - len(unit), end) for unit, cleaned_unit, end in zip(
        units, cleaned_units, accumulate(map(len, units)), strict=True) for _ in cleaned_unit]


def _map_to_original(spans: Spans, origins: Spans) -> Spans:
    """Map spans of the cleaned text to spans of the original, which do not overlap."""
    originals: Spans = []
    for start, end in spans:
        min_start = originals[-1][1] if originals else 0
        originals.append((max(min_start, origins[start][0]), max(min_start, origins[end - 1][1])))
    return originals


def _cut(text: str, spans: Spans, sums: list[float]) -> Pieces:
    """Cut a text into its spans, with their sums of contributions, and the text between them."""
    pieces: Pieces = []
    previous_end = 0
    for (start, end), value in zip(spans, sums, strict=True):
        if start > previous_end:
            pieces.append((text[previous_end:start], None))
        pieces.append((text[start:end], value))
        previous_end = end
    if previous_end < len(text):
        pieces.append((text[previous_end:], None))
    return pieces
