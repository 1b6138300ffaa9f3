"""Counts texts without a known term (a term of the model), and names the likely cause.

Texts without a known term all get the same answer, and no other measure shows how many they are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import EmptyTextWarning, UnknownTermsWarning, quantity
from textnb.runtime.caller import warn_caller
from textnb.text.characters import UNSPACED

# A character of a script without spaces between words. There, a token is a phrase or a sentence if
# the tokenizer does not split it.
_UNSPACED = f"[{UNSPACED}]"
# In fewer texts, the share of those without a known term means nothing.
_MIN_TEXTS = 20
# In fewer learned documents, nearly all terms occur once, in any language.
_MIN_DOCUMENTS = 100
# Above this share of texts without a known term, there is a warning. After `fit` on 1,000 texts,
# the share is at most 5 % on nine corpora in English and Bengali, and 93 % if a tokenizer of words
# reads a language without spaces.
_MAX_SHARE_WITHOUT_TERMS = 0.3
# If terms that occur once have more than this share of all tokens, the terms are examined: they may
# be whole phrases.
_MAX_UNKNOWN_SHARE = 0.5
# The number of terms that are examined for phrases.
_SAMPLE_SIZE = 1000
# In scripts without spaces, single words have two or three characters; longer terms are phrases.
_MIN_PHRASE_LENGTH = 4
# The likely cause; the key is whether whole phrases, in scripts without spaces, are words.
_CAUSE = {
    True: "They are written without spaces between words, so that whole phrases are taken for "
          "words: learn with Tokenizer(unspaced=\"both\"), the default, which takes characters "
          "and their pairs (textnb train --set unspaced=both)",
    False: "Likely causes: another language or another column than what was learned, limits that "
           "leave few terms, or too few documents"}


def blank_texts(columns: Sequence[str], schema: pl.Schema) -> pl.Expr:
    """Whether a row has no text: null, empty or only white space in each of its columns."""
    return pl.all_horizontal((text.str.strip_chars() == "").fill_null(True)
                             for text in _as_texts(columns, schema))


def _as_texts(columns: Sequence[str], schema: pl.Schema) -> list[pl.Expr]:
    """The text columns as strings; lists of tokens are joined by spaces."""
    return [pl.col(name).cast(pl.List(pl.String)).list.join(" ")
            if isinstance(schema[name], pl.List) else pl.col(name).cast(pl.String)
            for name in columns]


def describe_blank(n_blank: int, n_rows: int, consequence: str) -> str:
    """Say how many rows have no text, and what follows from it; empty if all have a text."""
    return "" if not n_blank else (
        f"{n_blank:,} of {quantity(n_rows, 'row')} {'holds' if n_blank == 1 else 'hold'} no text "
        f"(null, empty or white space alone): {consequence}")


# For `describe_blank`: the consequence in `fit`.
CONSEQUENCE_IN_FIT = "they count only in the shares of the classes"


class BlankTexts:
    """Counts the rows to learn that have no text."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = list(columns)
        self._n_rows = self._n_blank = 0

    def count_while_reading(self, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Pass all batches on, and count their rows; each call begins at 0."""
        self._n_rows = self._n_blank = 0
        for rows in frames:
            self._n_rows += rows.height
            self._n_blank += int(rows.select(blank_texts(self._columns, rows.schema).sum()).item())
            yield rows

    def warn(self) -> None:
        """Give an `EmptyTextWarning` if a row has no text."""
        if message := describe_blank(self._n_blank, self._n_rows, CONSEQUENCE_IN_FIT):
            warn_caller(message, EmptyTextWarning)


class TermCoverage:
    """Counts texts without a known term, batch by batch; several threads may call `add`.

    Parameters
    ----------
    columns : sequence of str
        Text columns.
    phrases_are_words : bool
        Whether whole phrases of scripts without spaces are words for the model.
    without_terms : str
        What answers to texts without known terms are based on, such as "the classes' priors alone".

    Attributes
    ----------
    n_texts : int
        Rows that hold more than white space.
    n_blank : int
        Rows whose texts are null, empty or only white space.
    n_unknown : int
        Of the ``n_texts`` rows, those without a known term.
    n_unspaced : int
        Of the ``n_unknown`` rows, those in a script without spaces between words.
    """

    def __init__(
        self, columns: Sequence[str], phrases_are_words: bool = True, without_terms: str = "no term"
    ) -> None:
        self._columns, self._lock = list(columns), Lock()
        self._phrases_are_words, self._without_terms = phrases_are_words, without_terms
        self.n_texts = self.n_blank = self.n_unknown = self.n_unspaced = 0

    def add(self, documents: pl.DataFrame, counts: Any) -> None:
        """Count a batch: its text columns, and the SparseRows of its known terms."""
        rows_without_terms = np.flatnonzero(np.diff(counts.indptr) == 0)
        n_blank = n_unspaced = 0
        if len(rows_without_terms):
            text = pl.concat_str(_as_texts(self._columns, documents.schema), separator=" ",
                                 ignore_nulls=True)
            n_blank, n_unspaced = documents[rows_without_terms].select(
                blank=blank_texts(self._columns, documents.schema),
                unspaced=text.str.contains(_UNSPACED)).sum().row(0)
        with self._lock:
            self.n_texts += documents.height - n_blank
            self.n_blank += n_blank
            self.n_unknown += len(rows_without_terms) - n_blank
            self.n_unspaced += n_unspaced

    @property
    def message(self) -> str:
        """A warning for the user; empty if enough texts hold a known term, or texts are few."""
        if self.n_texts < _MIN_TEXTS or self.n_unknown <= _MAX_SHARE_WITHOUT_TERMS * self.n_texts:
            return ""
        return (f"{self.n_unknown:,} of {quantity(self.n_texts, 'text')} "
                f"({self.n_unknown / self.n_texts:.0%}) hold "
                "no term that the model knows, and all get the same answer. "
                f"{_CAUSE[self._phrases_are_words and 2 * self.n_unspaced > self.n_unknown]}")

    @property
    def blank_message(self) -> str:
        """How many rows have no text; empty if all have a text."""
        return describe_blank(self.n_blank, self.n_texts + self.n_blank,
                              f"answered by {self._without_terms}")

    def warn(self) -> None:
        """Give an `UnknownTermsWarning` if there is a message."""
        if self.message:
            warn_caller(self.message, UnknownTermsWarning)

    def warn_of_all(self) -> None:
        """As `warn`, and an `EmptyTextWarning` if rows have no text."""
        self.warn()
        if self.blank_message:
            warn_caller(self.blank_message, EmptyTextWarning)

    def log(self) -> None:
        """Log the messages, if there are any, and start again.

        Queries of Polars log instead of warning: a warning that a user turns into an error would
        end the query.
        """
        for message in filter(None, (self.message, self.blank_message)):
            logging.getLogger("textnb").warning(message)
        self.n_texts = self.n_blank = self.n_unknown = self.n_unspaced = 0


def warn_of_terms_seen_once(
    terms: pl.Series, total: NDArray[Any], tokens: int, documents: int, phrases_are_words: bool,
) -> None:
    """Warn if most of the learned terms will not occur in new documents.

    A term that occurs twice in the learned documents is likely to occur in new ones; the tokens of
    other terms count as unknown. If their share is u and a document has n tokens on average, the
    share of new documents without a known term is about u^n. If whole phrases are words, u itself
    decides: a document has so many phrases that u^n is small, and still nearly all are unknown.

    Parameters
    ----------
    terms : polars.Series of String
        The terms of the model.
    total : (n_terms,)
        Number of occurrences of each term.
    tokens, documents : int
        Number of tokens, including tokens of terms that are not in the model; number of documents.
    phrases_are_words : bool
        See `TermCoverage`.
    """
    if documents < _MIN_DOCUMENTS or not tokens:
        return
    unknown_share = 1.0 - float(total[total >= 2].sum()) / tokens
    if unknown_share <= _MAX_UNKNOWN_SHARE:
        return
    share_without_terms = unknown_share ** (tokens / documents)
    sample = terms if len(terms) <= _SAMPLE_SIZE else terms.gather_every(len(terms) // _SAMPLE_SIZE)
    is_phrase = sample.str.contains(_UNSPACED) & (sample.str.len_chars() >= _MIN_PHRASE_LENGTH)
    has_phrases = phrases_are_words and float(np.mean(is_phrase.to_numpy())) > 0.5
    if share_without_terms > _MAX_SHARE_WITHOUT_TERMS or has_phrases:
        warn_caller(f"{unknown_share:.0%} of the tokens are of terms that occur once, or are left "
                    f"out: new documents will have few known terms. {_CAUSE[has_phrases]}",
                    UnknownTermsWarning)
