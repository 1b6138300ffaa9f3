"""Words of texts without labels, to which `textnb.learning.sharing` gives weights."""

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
    """Raise ParameterError if texts without labels would change nothing."""
    parameters, model = settings.parameters, settings.model
    if not model.learns_shared:
        raise ParameterError.naming(
            "{unlabelled} is for NBLinear, whose words share weights; {model} shares none",
            model=model.name)
    has_parts = parameters["subwords"] is not None and parameters["sharing"] != 0
    if parameters["vector_weight"] == 0 and not has_parts:
        raise ParameterError.naming(
            "{unlabelled} needs {vector_weight}, or {sharing} of {subwords}, above 0")
    check_words({**parameters, "vectors": UNLABELLED}, model)
    if settings.vocabulary is not None:
        raise ParameterError.naming("{unlabelled} and {vocabulary} exclude each other: name the "
                                    "words in {vocabulary}")


def check_vectors(settings: TextSettings, unlabelled: Any) -> None:
    """Raise an error if there are no vectors, or no file of them, where settings ask for some."""
    parameters = settings.parameters
    vectors = parameters["vectors"]
    if unlabelled is None and parameters["vector_weight"] and vectors is None:
        raise ParameterError.naming(
            "{vector_weight} is that of {vectors} or of {unlabelled} texts, and there are none")
    if not isinstance(vectors, (str, os.PathLike)):
        return
    if vectors == UNLABELLED and unlabelled is None:
        raise ParameterError.naming(
            "{vectors} are those of unlabelled texts: give {unlabelled}, or other {vectors}")
    path = os.fspath(vectors)
    if path not in (UNLABELLED, TABLE, WORDLLAMA) and not (
            os.path.exists(path) or is_url(path) or has_magic(path)):
        raise SourceError(f"no such file of vectors: {path!r} ({WORDLLAMA!r} names those of that "
                          "package)")


def texts_of(settings: TextSettings, unlabelled: Any) -> pl.LazyFrame:
    """The text columns of a table, or of a sequence of texts.

    Raises
    ------
    ParameterError
        If they can't be read: it says that these are the unlabelled texts.
    """
    columns, tokens = settings.columns, settings.token_columns
    if isinstance(unlabelled, str) and unlabelled == "-":
        raise ParameterError("the unlabelled texts are read several times, and standard input only "
                             "once: name a file")
    try:
        return (scan(select_columns(unlabelled, columns), text=columns, tokens=tokens)
                if is_table(unlabelled) else table_of_texts(unlabelled, columns, tokens).lazy())
    except ListOfTokens:
        raise
    except (DataError, ParameterError, SchemaError) as error:
        raise ParameterError(f"the unlabelled texts: {error}") from error


def open_unlabelled(settings: TextSettings, unlabelled: Any) -> pl.LazyFrame:
    """The texts, once the labelled rows have shown which columns hold lists of tokens.

    Raises
    ------
    ParameterError
        If they would change nothing, or are lists of tokens where the labelled rows are texts.
    """
    check_unlabelled(settings)
    try:
        return texts_of(settings, unlabelled)
    except ListOfTokens as error:
        raise ParameterError(f"the unlabelled texts: {error}") from error


def words_of(settings: TextSettings, texts: pl.LazyFrame) -> pl.Series:
    """The words of texts that are within the limits on terms, those in the most texts first.

    Raises
    ------
    DataError
        If the texts have no word.
    """
    of_texts = texts.select(term=_unique_words(settings))
    frequencies, n_texts = pl.collect_all([
        of_texts.explode("term").drop_nulls().group_by("term").len().sort(
            "len", "term", descending=[True, False]), of_texts.select(pl.len())],
        engine="streaming")
    if frequencies.is_empty():
        raise DataError("the unlabelled texts have no word")
    minimum, maximum = settings.limits.bounds(n_texts.item())
    return frequencies.filter(pl.col("len").is_between(minimum, maximum))["term"]


def as_terms(settings: TextSettings, words: pl.Series) -> pl.Series:
    """The terms that a tokenizer makes of words in each column, in their order."""
    columns = settings.columns
    lists = words.reshape((-1, 1)).cast(pl.List(pl.String))
    table = pl.DataFrame([
        (lists if name in settings.token_columns else words).alias(name) for name in columns])
    # Words that the tokenizer splits into several are left out.
    return table.select(term=_unique_words(settings)).filter(
        pl.col("term").list.len() <= len(columns))["term"].explode().drop_nulls().unique(
            maintain_order=True)


def _unique_words(settings: TextSettings) -> pl.Expr:
    words = settings.tokenizer.with_params(ngram_range=(1, 1)).expr(settings.columns)
    return words.list.unique(maintain_order=True)
