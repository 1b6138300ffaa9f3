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

from textnb.errors import DataError, ParameterError, SchemaError
from textnb.frames.kinds import select_columns
from textnb.frames.scan import scan
from textnb.frames.texts import is_table, table_of_texts
from textnb.frames.token_columns import ListOfTokens
from textnb.learning.documents import DocumentTermMatrix
from textnb.learning.text_settings import TextSettings
from textnb.text.matrix import choose_columns

MAX_WORDS = 20_000


def check_unlabelled(settings: TextSettings) -> None:
    """Raise ParameterError if texts without labels would change nothing."""
    parameters, model = settings.parameters, settings.model
    if not model.learns_shared:
        raise ParameterError.naming(
            "{unlabelled} is for NBLinear, whose words share weights by their parts; {model} "
            "shares none", model=model.name)
    if parameters["sharing"] == 0:
        raise ParameterError.naming("{unlabelled} needs a {sharing} above 0")
    if parameters["subwords"] is None:
        raise ParameterError.naming(
            "{unlabelled} needs {subwords}: words have no parts by default where a tokenizer is "
            "given, in lists of tokens, with lists of labels, without {idf} and with one {l} per "
            "term")
    if settings.vocabulary is not None:
        raise ParameterError.naming("{unlabelled} and {vocabulary} exclude each other: name the "
                                    "words in {vocabulary}")


def texts_of(settings: TextSettings, unlabelled: Any) -> pl.LazyFrame:
    """The text columns of a table, or of a sequence of texts.

    Raises
    ------
    ParameterError
        If they can't be read: it says that these are the unlabelled texts.
    """
    columns, tokens = settings.columns, settings.token_columns
    try:
        return (scan(select_columns(unlabelled, columns), text=columns, tokens=tokens)
                if is_table(unlabelled) else table_of_texts(unlabelled, columns, tokens).lazy())
    except ListOfTokens:
        raise
    except (DataError, ParameterError, SchemaError) as error:
        raise ParameterError(f"the unlabelled texts: {error}") from error


def with_words_of(
    rows: DocumentTermMatrix, settings: TextSettings, unlabelled: Any
) -> DocumentTermMatrix:
    """The matrix with a column for each word of unlabelled texts that shares a part.

    The limits on terms hold for these words in the unlabelled texts, and ``max_features`` for all
    terms together.

    Parameters
    ----------
    rows : DocumentTermMatrix
    settings : TextSettings
    unlabelled : table, path, or sequence of str

    Raises
    ------
    DataError
        If the texts have no word.
    ParameterError
        If they would change nothing, as the rows turned out to be lists of tokens or of labels.
    """
    check_unlabelled(settings)
    # They import SciPy.
    from textnb.bayes.sharing import without_names
    from textnb.bayes.subwords import subwords

    try:
        texts = texts_of(settings, unlabelled)
    except ListOfTokens as error:
        raise ParameterError(f"the unlabelled texts: {error}") from error
    found = _words(settings, texts)
    # Not all of many words can share a part, but memory for the parts of all would be too much.
    new = found.filter(~found.is_in(rows.terms.implode())).head(5 * MAX_WORDS)
    names = settings.tokenizer.plan().prefixes(settings.columns)
    parts = subwords(without_names([*rows.terms, *new], names), *settings.parameters["subwords"])
    is_known = np.bincount(
        parts[:len(rows.terms)].indices, minlength=parts.shape[1]) > 0
    shares = parts[len(rows.terms):] @ is_known.astype(np.float64) > 0
    most, room = settings.limits.max_features, MAX_WORDS
    if most is not None:
        room = max(0, min(room, most - len(rows.terms)))
    terms = pl.concat([rows.terms, new.filter(pl.Series(shares)).head(room)]).sort()
    place = terms.search_sorted(rows.terms).to_numpy().astype(np.int32)
    return replace(rows, terms=terms, counts=choose_columns(rows.counts, place, len(terms)))


def _words(settings: TextSettings, texts: pl.LazyFrame) -> pl.Series:
    """The words of texts that are within the limits, those in the most texts first."""
    words = settings.tokenizer.with_params(ngram_range=(1, 1)).expr(settings.columns)
    of_texts = texts.select(term=words.list.unique())
    found, n_texts = pl.collect_all([
        of_texts.explode("term").drop_nulls().group_by("term").len().sort(
            "len", "term", descending=[True, False]), of_texts.select(pl.len())],
        engine="streaming")
    if found.is_empty():
        raise DataError("the unlabelled texts have no word")
    least, most = settings.limits.bounds(n_texts.item())
    return found.filter(pl.col("len").is_between(least, most))["term"]
