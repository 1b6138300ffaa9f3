"""Counts texts without a term that the model knows, and names the likely cause.

If most texts have no known term, they all get the same answer, and no other measure shows this.
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

# In scripts without spaces, a token is a phrase or a sentence, if the tokenizer does not split it.
SPACELESS = f"[{UNSPACED}]"
# In fewer texts, the share without a known term means nothing.
MIN_TEXTS = 20
# In fewer documents nearly every term occurs once, in any language.
_MIN_LEARNED = 100
# From this share of texts without a known term on, there is a warning. After `fit` on 1,000 texts
# the share is at most 5 % on nine corpora in English and Bengali, and 93 % if a tokenizer of words
# reads a language without spaces.
MANY = 0.3
# If more than this share of the tokens is of terms that occur once, the terms are examined.
_MAX_UNKNOWN = 0.5
# The number of terms that are examined, and the length from which on a term in a script without
# spaces is a phrase.
_SAMPLE, _PHRASE = 1000, 4
# The likely cause, by whether most of the texts are in scripts without spaces.
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
    """The text columns as strings; tokens of a list are joined by spaces."""
    return [pl.col(name).cast(pl.List(pl.String)).list.join(" ")
            if isinstance(schema[name], pl.List) else pl.col(name).cast(pl.String)
            for name in columns]


def blank_words(rows: int, all_rows: int, consequence: str) -> str:
    """How many rows have no text, and what follows from it; empty if all have one."""
    return "" if not rows else (
        f"{rows:,} of {quantity(all_rows, 'row')} {'holds' if rows == 1 else 'hold'} no text "
        f"(null, empty or white space alone): {consequence}")


LEARNED_BLANK = "they count only in the shares of the classes"


class BlankTexts:
    """Counts the rows to learn that have no text."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = list(columns)
        self._rows = self._blank = 0

    def of(self, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Pass all batches on, and count them from the first row on."""
        self._rows = self._blank = 0
        for rows in frames:
            self._rows += rows.height
            self._blank += int(rows.select(blank_texts(self._columns, rows.schema).sum()).item())
            yield rows

    def warn(self) -> None:
        """Give an `EmptyTextWarning` if a row has no text."""
        if message := blank_words(self._blank, self._rows, LEARNED_BLANK):
            warn_caller(message, EmptyTextWarning)


class TermCoverage:
    """Counts texts without a known term, batch by batch, from several threads too.

    Parameters
    ----------
    columns : sequence of str
        Text columns.
    words : bool
        Whether whole phrases of scripts without spaces are words for the model.
    without_terms : str
        What the answers of texts without terms are based on.

    Attributes
    ----------
    texts : int
        Rows that hold more than white space.
    textless : int
        Rows whose texts are null, empty or only white space.
    without : int
        Rows among ``texts`` without a known term.
    spaceless : int
        Rows among ``without`` in a script without spaces between words.
    """

    def __init__(
        self, columns: Sequence[str], words: bool = True, without_terms: str = "no term"
    ) -> None:
        self._columns, self._words, self._lock = list(columns), words, Lock()
        self._without_terms = without_terms
        self.texts = self.textless = self.without = self.spaceless = 0

    def add(self, documents: pl.DataFrame, counts: Any) -> None:
        """Count a batch: its text columns, and the SparseRows of its known terms."""
        rows_without_terms = np.flatnonzero(np.diff(counts.indptr) == 0)
        blank = without = spaceless = 0
        if len(rows_without_terms):
            text = pl.concat_str(_as_texts(self._columns, documents.schema), separator=" ",
                                 ignore_nulls=True)
            kinds = documents[rows_without_terms].select(
                blank=blank_texts(self._columns, documents.schema),
                spaceless=text.str.contains(SPACELESS))
            blank = int(kinds["blank"].sum())
            without, spaceless = len(rows_without_terms) - blank, int(kinds["spaceless"].sum())
        with self._lock:
            self.texts += documents.height - blank
            self.textless += blank
            self.without += without
            self.spaceless += spaceless

    @property
    def message(self) -> str:
        """A warning for the user; empty if most texts hold a known term."""
        if self.texts < MIN_TEXTS or self.without <= MANY * self.texts:
            return ""
        return (f"{self.without:,} of {quantity(self.texts, 'text')} "
                f"({self.without / self.texts:.0%}) hold "
                "no term that the model knows, and all get the same answer. "
                f"{_CAUSE[self._words and 2 * self.spaceless > self.without]}")

    @property
    def blank_message(self) -> str:
        """How many rows have no text; empty if all have one."""
        return blank_words(self.textless, self.texts + self.textless,
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

        Used in the threads of Polars, because a warning that becomes an error there would end the
        query.
        """
        for message in filter(None, (self.message, self.blank_message)):
            logging.getLogger("textnb").warning(message)
        self.texts = self.textless = self.without = self.spaceless = 0


def warn_of_lone_terms(
    terms: pl.Series, total: NDArray[Any], tokens: int, documents: int, words: bool,
) -> None:
    """Warn if most of the learned terms will not occur in new documents.

    A term that occurs twice in the learned documents is likely to occur in new ones. The share of
    all other tokens, to the power of a document's mean length, is about the share of new documents
    without a known term. (In a script without spaces a document has many phrases, and the share of
    the tokens decides.)

    Parameters
    ----------
    terms : polars.Series of String
        The terms that the model has.
    total : (n_terms,)
        Number of occurrences of each.
    tokens, documents : int
        Numbers of all tokens, those of terms that are left out too, and of documents.
    words : bool
        See `TermCoverage`.
    """
    if documents < _MIN_LEARNED or not tokens:
        return
    unknown = 1.0 - float(total[total >= 2].sum()) / tokens
    expected_share = unknown ** (tokens / documents)
    if unknown <= _MAX_UNKNOWN:
        return
    sample = terms if len(terms) <= _SAMPLE else terms.gather_every(len(terms) // _SAMPLE)
    # In scripts without spaces, single words have two or three characters.
    phrases = sample.str.contains(SPACELESS) & (sample.str.len_chars() >= _PHRASE)
    spaceless = words and float(np.mean(phrases.to_numpy())) > 0.5
    if expected_share > MANY or spaceless:
        warn_caller(f"{unknown:.0%} of the tokens are of terms that occur once, or are left out: "
                    f"new documents will have few known terms. {_CAUSE[spaceless]}",
                    UnknownTermsWarning)
