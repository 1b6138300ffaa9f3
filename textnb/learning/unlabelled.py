"""Reading unlabelled texts and their words, to which `textnb.learning.sharing` gives weights."""

from __future__ import annotations

import os
from glob import has_magic
from typing import Any

import polars as pl

from textnb.errors import DataError, ParameterError, SchemaError, SourceError
from textnb.frames.cloud import is_url
from textnb.frames.kinds import select_columns
from textnb.frames.scan import scan
from textnb.frames.texts import is_table, table_of_texts
from textnb.frames.token_columns import ListOfTokens
from textnb.learning.parameters import TABLE
from textnb.learning.settings import UNLABELLED, WORDLLAMA
from textnb.learning.text_settings import TextSettings, check_words


def check_unlabelled(settings: TextSettings) -> None:
    """Raise ParameterError if these settings make no use of unlabelled texts."""
    parameters, model = settings.parameters, settings.model
    if not model.learns_shared:
        raise ParameterError.naming_settings(
            "{unlabelled} is for NBLinear, whose words share weights; {model} shares none",
            model=model.name)
    shares_subwords = parameters["subwords"] is not None and parameters["sharing"] != 0
    if parameters["vector_weight"] == 0 and not shares_subwords:
        raise ParameterError.naming_settings(
            "{unlabelled} needs {vector_weight}, or {sharing} of {subwords}, above 0")
    check_words({**parameters, "vectors": UNLABELLED}, model)
    if settings.vocabulary is not None:
        raise ParameterError.naming_settings(
            "{unlabelled} and {vocabulary} exclude each other: name the words in {vocabulary}")


def check_vectors(settings: TextSettings, unlabelled: Any) -> None:
    """Raise ParameterError or SourceError if settings need vectors, and there are none."""
    parameters = settings.parameters
    vectors = parameters["vectors"]
    if unlabelled is None and parameters["vector_weight"] and vectors is None:
        raise ParameterError.naming_settings(
            "{vector_weight} is that of {vectors} or of {unlabelled} texts, and there are none")
    if not isinstance(vectors, (str, os.PathLike)):
        return
    if vectors == UNLABELLED and unlabelled is None:
        raise ParameterError.naming_settings(
            "{vectors} are those of unlabelled texts: give {unlabelled}, or other {vectors}")
    path = os.fspath(vectors)
    # These names stand for vectors that are not in a file; a saved model has `TABLE` for a table.
    if path not in (UNLABELLED, TABLE, WORDLLAMA) and not (
            os.path.exists(path) or is_url(path) or has_magic(path)):
        raise SourceError(f"no such file of vectors: {path!r} ({WORDLLAMA!r} names those of that "
                          "package)")


def scan_unlabelled(settings: TextSettings, unlabelled: Any) -> pl.LazyFrame:
    """Scan the text columns of unlabelled texts: a table, or a sequence of texts.

    Raises
    ------
    ParameterError
        If they can't be read. The error says that these are the unlabelled texts.
    """
    columns, token_columns = settings.columns, settings.token_columns
    if isinstance(unlabelled, str) and unlabelled == "-":
        raise ParameterError("the unlabelled texts are read several times, and standard input only "
                             "once: name a file")
    try:
        if is_table(unlabelled):
            return scan(select_columns(unlabelled, columns), text=columns, tokens=token_columns)
        return table_of_texts(unlabelled, columns, token_columns).lazy()
    except ListOfTokens:
        # A column holds lists of tokens: callers know whether labelled rows have them, too.
        raise
    except (DataError, ParameterError, SchemaError) as error:
        raise ParameterError(f"the unlabelled texts: {error}") from error


def open_unlabelled(settings: TextSettings, unlabelled: Any) -> pl.LazyFrame:
    """As `scan_unlabelled`, with settings that know which columns of the rows hold lists of tokens.

    Raises
    ------
    ParameterError
        If the settings make no use of the texts, or only these are lists of tokens.
    """
    check_unlabelled(settings)
    try:
        return scan_unlabelled(settings, unlabelled)
    except ListOfTokens as error:
        raise ParameterError(f"the unlabelled texts: {error}") from error


def collect_words(settings: TextSettings, texts: pl.LazyFrame) -> pl.Series:
    """The words of texts that are within the limits on terms: first those in the most texts.

    Raises
    ------
    DataError
        If the texts have no word.
    """
    words_per_text = texts.select(term=_unique_words(settings))
    frequencies, n_texts = pl.collect_all([
        words_per_text.explode("term").drop_nulls().group_by("term").len().sort(
            "len", "term", descending=[True, False]), words_per_text.select(pl.len())],
        engine="streaming")
    if frequencies.is_empty():
        raise DataError("the unlabelled texts have no word")
    min_texts, max_texts = settings.limits.bounds(n_texts.item())
    return frequencies.filter(pl.col("len").is_between(min_texts, max_texts))["term"]


def tokenize_words(settings: TextSettings, words: pl.Series) -> pl.Series:
    """The terms of words, in their order, as if each word were the text of every column."""
    columns = settings.columns
    # Each word as a list of one token, for columns of tokens.
    lists = words.reshape((-1, 1)).cast(pl.List(pl.String))
    table = pl.DataFrame([
        (lists if name in settings.token_columns else words).alias(name) for name in columns])
    # Leave out words that the tokenizer splits: a whole word gives at most a term for each column.
    return table.select(term=_unique_words(settings)).filter(
        pl.col("term").list.len() <= len(columns))["term"].explode().drop_nulls().unique(
            maintain_order=True)


def _unique_words(settings: TextSettings) -> pl.Expr:
    """The terms of each text that are single words, not n-grams; each term once."""
    words = settings.tokenizer.with_params(ngram_range=(1, 1)).expr(settings.columns)
    return words.list.unique(maintain_order=True)
