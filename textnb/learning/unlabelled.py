"""Words of texts without labels: parts that they share with learned words give them weights.

    unlabelled texts -> words, the most frequent first -> those with a part of a labelled word
    -> columns without counts in the matrix of the labelled rows

So a word that no labelled row holds has a weight in the form, and with it in files, explanations
and exports; counts know nothing of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from textnb.errors import ParameterError
from textnb.frames.kinds import select_columns
from textnb.frames.scan import scan
from textnb.frames.texts import is_table, table_of_texts
from textnb.learning.documents import DocumentTermMatrix
from textnb.learning.text_settings import TextSettings
from textnb.text.matrix import choose_columns

MAX_WORDS = 20_000


def check_unlabelled(settings: TextSettings) -> None:
    """Raise ParameterError if texts without labels would change nothing."""
    parameters = settings.parameters
    if parameters["subwords"] is None or parameters["sharing"] == 0:
        raise ParameterError.naming(
            "{unlabelled} texts give weights to words by their parts: set {subwords}, for a model "
            "that shares them, such as NBLinear")
    if settings.vocabulary is not None:
        raise ParameterError.naming("{unlabelled} and {vocabulary} exclude each other: name the "
                                    "words in {vocabulary}")


def with_words_of(
    rows: DocumentTermMatrix, settings: TextSettings, unlabelled: Any
) -> DocumentTermMatrix:
    """The matrix with a column for each word of unlabelled texts that shares a part.

    Parameters
    ----------
    rows : DocumentTermMatrix
    settings : TextSettings
    unlabelled : table, path, or sequence of str

    Raises
    ------
    ParameterError
        If the texts would change nothing, as the rows turned out to be lists of tokens.
    """
    check_unlabelled(settings)
    # They import SciPy.
    from textnb.bayes.sharing import without_names
    from textnb.bayes.subwords import subwords

    found = _words(settings, unlabelled)
    new = found.filter(~found.is_in(rows.terms.implode()))
    names = settings.tokenizer.plan().prefixes(settings.columns)
    parts = subwords(without_names([*rows.terms, *new], names), *settings.parameters["subwords"])
    is_known = np.bincount(
        parts[:len(rows.terms)].indices, minlength=parts.shape[1]) > 0
    shares = parts[len(rows.terms):] @ is_known.astype(np.float64) > 0
    terms = pl.concat([rows.terms, new.filter(pl.Series(shares)).head(MAX_WORDS)]).sort()
    place = terms.search_sorted(rows.terms).to_numpy().astype(np.int32)
    return replace(rows, terms=terms, counts=choose_columns(rows.counts, place, len(terms)))


def _words(settings: TextSettings, unlabelled: Any) -> pl.Series:
    """The words of texts, those in the most texts first."""
    columns, tokens = settings.columns, settings.token_columns
    frame = (scan(select_columns(unlabelled, columns), text=columns, tokens=tokens)
             if is_table(unlabelled) else table_of_texts(unlabelled, columns, tokens))
    words = settings.tokenizer.with_params(ngram_range=(1, 1)).expr(columns)
    return frame.lazy().select(term=words.list.unique()).explode("term").drop_nulls().group_by(
        "term").len().sort("len", "term", descending=[True, False]).collect(
            engine="streaming")["term"]
