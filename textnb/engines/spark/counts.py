"""Counts of texts per partition, and their sums in Spark.

    partition  ->  label, term, count                       one row per class and term
                   (null), term, count, occurrences         document frequency, if needed
                   label, (null), count                     documents of the class
                   (null), (null), count                    rows without a label
                   (null), term, count, whole               for lists: count in all documents
                   (null), (null), count, whole             for lists: the number of documents
    shuffle    ->  sums of the counts of rows with the same label, term and whole
    driver     ->  Counts

The column ``whole`` is true or null.

A task holds the terms of its partition in memory; the driver holds the terms of the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from textnb.bayes.cells import spread
from textnb.bayes.counts import Counts
from textnb.classifiers.text import TextClassifier
from textnb.engines.spark.columns import (
    Batches,
    cast_labels,
    collect,
    has_lists,
    map_rows,
    polars_rows,
    reference,
    select_numbered,
)
from textnb.errors import DataError, VocabularyError
from textnb.frames.batches import batches as split_batches
from textnb.learning.documents import LabelledBatches, count_documents
from textnb.models.counts import CountModel
from textnb.text.counting import CountSpec
from textnb.text.vocabulary import Limits, vocabulary_series

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMNS = {"label": pl.String, "term": pl.String, "count": pl.Int64, "occurrences": pl.Int64,
            "error": pl.String, "whole": pl.Boolean}
_KEYS = ["label", "term", "error", "whole"]


def term_statistics(
    model: TextClassifier, frame: DataFrame, estimator: CountModel, text: list[str], prune: bool
) -> Counts:
    """Count the rows of a Spark frame, as `TextClassifier.count` counts local ones.

    The columns were checked. With ``prune``, only terms are collected that are within the model's
    limits, or in its vocabulary.

    Raises
    ------
    DataError
        If there are no rows, or a label is null.
    VocabularyError
        If no term is within the limits.
    """
    from pyspark.sql import functions as F

    columns = [*text, model.label]
    vocabulary = (vocabulary_series(model.vocabulary)
                  if prune and model.vocabulary is not None else None)
    of_lists = has_lists(frame, model.label)

    def count(batches: Batches) -> Iterator[pl.DataFrame]:
        return count_rows(batches, model, estimator, columns, vocabulary)

    rows = map_rows(select_numbered(frame, columns), count, _COLUMNS)
    sums = rows.groupBy(*_KEYS).agg(F.sum("count").alias("count"),
                                    F.sum("occurrences").alias("occurrences"))
    if prune and vocabulary is None:
        # The sums are used twice: to choose terms, and to collect their counts.
        sums.persist()
        try:
            collected = collect(_apply_limits(sums, model, of_lists))
            _check_collected(collected, sums, model)
        finally:
            sums.unpersist()
    else:
        collected = collect(sums)
    return _assemble(collected, model, frame, estimator, vocabulary)


def count_rows(
    batches: Batches, model: TextClassifier, estimator: CountModel, columns: list[str],
    vocabulary: pl.Series | None,
) -> Iterator[pl.DataFrame]:
    """Count one partition, and yield the counts as rows for Spark; none if it is empty."""
    unlabelled = 0

    def labelled() -> Iterator[pl.DataFrame]:
        nonlocal unlabelled
        for rows in polars_rows(batches, columns):
            known = rows.filter(pl.col(columns[-1]).is_not_null())
            unlabelled += rows.height - known.height
            # A missing label ends in an error, so the other rows need not be counted.
            if not unlabelled:
                yield from split_batches(known, columns[:-1])

    # All rows are counted in one pass, as adding partial counts would sort all terms each time.
    rows = labelled()
    first = next(rows, None)
    total = None if first is None else count_documents(LabelledBatches(
        chain([first], rows), CountSpec(
            model.text_settings().tokenizer, columns[:-1], columns[-1], _limits(model),
            estimator.presence_above(model.binary), model.binary)))
    if unlabelled:
        yield pl.DataFrame({"count": [unlabelled]})
    elif total is not None:
        yield from _statistics_rows(total if vocabulary is None else total.over(vocabulary))


def _statistics_rows(counts: Counts) -> Iterator[pl.DataFrame]:
    labels = pl.Series(counts.classes.tolist()).cast(pl.String)
    yield pl.DataFrame({"label": labels, "count": counts.class_count})
    yield pl.DataFrame({"label": labels.gather(counts.codes),
                        "term": counts.terms.gather(counts.columns), "count": counts.values})
    per_term = {name: values for name, values in (
        ("count", counts.document_frequency), ("occurrences", counts.occurrences))
        if values is not None}
    if per_term:
        yield pl.DataFrame({"term": counts.terms, **per_term})
    if counts.is_multilabel:
        yield pl.DataFrame({"count": [counts.rows], "whole": [True]})
        yield pl.DataFrame({"term": counts.terms, "count": counts.total}).with_columns(whole=True)


def _apply_limits(sums: DataFrame, model: TextClassifier, of_lists: bool) -> DataFrame:
    """Keep the sums of the terms that are within the limits, and the rows without a term."""
    from pyspark.sql import functions as F

    limits = _limits(model)
    other_rows, of_terms = sums.where("term IS NULL"), sums.where("term IS NOT NULL")
    # Rows whose sum is about all documents: for lists of labels those with `whole`, else those of
    # the classes.
    of_all = "whole" if of_lists else "label IS NOT NULL"
    documents = other_rows.where(of_all).agg(F.sum("count")).collect()[0][0]
    if not documents or other_rows.where("label IS NULL AND whole IS NULL").count():
        # There is nothing to fit. `_assemble` raises the error from these rows.
        return other_rows
    in_all = F.sum(F.when(F.expr(of_all), F.col("count")))
    terms = of_terms.groupBy("term").agg(
        F.sum(F.when(F.expr("label IS NULL AND whole IS NULL"), F.col("count"))
              ).alias("documents"),
        F.coalesce(F.sum("occurrences"), in_all).alias("total"))
    selection = terms
    if limits.need_document_frequency:
        min_documents, max_documents = limits.bounds(documents)
        selection = selection.where(F.col("documents").between(min_documents, max_documents))
    if limits.max_features is not None:
        # Spark compares strings byte by byte, which in UTF-8 is by code point, as Polars does.
        selection = selection.orderBy(F.desc("total"), F.asc("term")).limit(
            int(limits.max_features))
    return other_rows.unionByName(of_terms.join(selection.select("term"), "term", "left_semi"))


def _check_collected(collected: pl.DataFrame, sums: DataFrame, model: TextClassifier) -> None:
    """Raise VocabularyError if there are terms, and the limits leave none of them."""
    # If a row has no label, `_assemble` raises an error for that.
    whole = collected.filter(pl.col("whole"))
    if collected["term"].count() or collected["label"].null_count() > whole.height:
        return
    n_terms = sums.where("term IS NOT NULL").select("term").distinct().count()
    if n_terms:
        raise VocabularyError.all_pruned(
            n_terms, model.min_df, model.max_df,
            int((whole if whole.height else collected)["count"].sum()))


def _limits(model: TextClassifier) -> Limits:
    return Limits(model.min_df, model.max_df, model.max_features)


def _assemble(
    collected: pl.DataFrame, model: TextClassifier, frame: DataFrame, estimator: CountModel,
    vocabulary: pl.Series | None,
) -> Counts:
    """Make counts of the collected sums; DataError if a row has no label, or there are no rows."""
    label, term = pl.col("label"), pl.col("term")
    whole = collected.filter(pl.col("whole"))
    collected = collected.filter(pl.col("whole").is_null())
    unlabelled = collected.filter(label.is_null() & term.is_null())
    if unlabelled.height:
        raise missing_labels(model.label, unlabelled["count"].item())
    documents = collected.filter(label.is_not_null() & term.is_null())
    if not documents.height and not whole.height:
        raise DataError.no_rows("the Spark frame")
    names = cast_labels(documents["label"], frame, model.label)
    order = names.arg_sort()
    terms = pl.concat([collected["term"], whole["term"]]).drop_nulls().unique().sort()
    cells = collected.filter(label.is_not_null() & term.is_not_null())
    rows = total = None
    if whole.height:
        rows = whole.filter(term.is_null())["count"].item()
        of_terms = whole.drop_nulls("term")
        total = spread(of_terms["count"].to_numpy(), _codes(of_terms["term"], terms), len(terms))
    per_term = collected.filter(label.is_null() & term.is_not_null()).sort("term")
    limits = _limits(model)
    counts_presence = estimator.presence_above(model.binary) is not None
    counts = Counts.from_cells(
        names.gather(order).to_numpy(), documents["count"].gather(order).to_numpy(), len(terms),
        _codes(cells["term"], terms), _codes(cells["label"], documents["label"].gather(order)),
        cells["count"].to_numpy(), rows=rows, total=total, terms=terms,
        document_frequency=(per_term["count"].to_numpy() if limits.need_document_frequency
                            else None),
        occurrences=(per_term["occurrences"].to_numpy() if counts_presence and not model.binary
                     else None))
    return counts if vocabulary is None else counts.over(vocabulary)


def missing_labels(column: str, rows: int) -> DataError:
    """The error for rows without a label."""
    return DataError(f"label column {column!r} is null in {rows} row{'s'[:rows != 1]}; label "
                     f"them, or drop them: frame.where({reference(column)}.isNotNull())")


def _codes(values: pl.Series, known: pl.Series) -> Any:
    """The index of each value among the known ones."""
    return values.cast(pl.Enum(known)).to_physical().to_numpy().astype(np.int64)
