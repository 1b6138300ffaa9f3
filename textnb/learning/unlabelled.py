"""Words of texts without labels, to which `textnb.learning.sharing` gives weights."""

from __future__ import annotations

from typing import Any

import polars as pl

from textnb.errors import DataError, ParameterError, SchemaError
from textnb.frames.failures import reading
from textnb.frames.kinds import select_columns
from textnb.frames.scan import scan
from textnb.frames.texts import is_table, table_of_texts
from textnb.frames.token_columns import ListOfTokens
from textnb.learning.parameters import UNLABELLED
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


def words_of(settings: TextSettings, unlabelled: Any) -> pl.Series:
    """The words of texts that are within the limits on terms, those in the most texts first.

    Parameters
    ----------
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
    with reading(unlabelled):
        try:
            texts = texts_of(settings, unlabelled)
        except ListOfTokens as error:
            raise ParameterError(f"the unlabelled texts: {error}") from error
        of_texts = texts.select(term=_unique_words(settings))
        found, n_texts = pl.collect_all([
            of_texts.explode("term").drop_nulls().group_by("term").len().sort(
                "len", "term", descending=[True, False]), of_texts.select(pl.len())],
            engine="streaming")
    if found.is_empty():
        raise DataError("the unlabelled texts have no word")
    least, most = settings.limits.bounds(n_texts.item())
    return found.filter(pl.col("len").is_between(least, most))["term"]


def as_terms(settings: TextSettings, words: pl.Series) -> pl.Series:
    """The terms that a tokenizer makes of words in each column, in their order."""
    tokens, columns = settings.token_columns, settings.columns
    as_text, as_tokens = words.rename("word"), words.rename("word").reshape((-1, 1)).cast(
        pl.List(pl.String))
    table = pl.DataFrame([
        (as_tokens if name in tokens else as_text).alias(name) for name in columns])
    return table.select(term=_unique_words(settings)).filter(
        pl.col("term").list.len() <= len(columns))["term"].explode().drop_nulls().unique(
            maintain_order=True)


def _unique_words(settings: TextSettings) -> pl.Expr:
    words = settings.tokenizer.with_params(ngram_range=(1, 1)).expr(settings.columns)
    return words.list.unique(maintain_order=True)
