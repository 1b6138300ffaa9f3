"""Counts of texts per partition, and their sums in Spark.

    partition  ->  label, term, count                       count of a term in a class
                   (null), term, count, occurrences         document frequency, if needed
                   label, (null), count                     number of documents of a class
                   (null), (null), count                    number of rows without a label
                   (null), term, count, all_documents       count of a term in all documents
                   (null), (null), count, all_documents     number of all documents
    shuffle    ->  sums of the counts of rows with the same label, term and all_documents
    driver     ->  Counts

Only lists of labels have rows in which ``all_documents`` is true; it is null in all others.
``occurrences``, how often a term occurs in all texts, is for models that count the documents with a
term; it is null in all other rows.

A task holds the terms of its partition in memory; the driver holds the terms of the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from textnb.bayes.cells import put_into_zeros
from textnb.bayes.counts import Counts
from textnb.classifiers.text import TextClassifier
from textnb.engines.spark.columns import (
    Batches,
    cast_labels,
    collect,
    column_as_code,
    has_lists,
    map_rows,
    select_with_safe_names,
    to_polars_frames,
)
from textnb.errors import DataError, VocabularyError
from textnb.frames.batches import batches as split_batches
from textnb.learning.documents import LabelledBatches, count_documents
from textnb.models.counts import CountModel
from textnb.text.counting import CountSpec
from textnb.text.vocabulary import Limits, vocabulary_series

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# `map_rows` writes the column "error".
_SCHEMA = {"label": pl.String, "term": pl.String, "count": pl.Int64, "occurrences": pl.Int64,
           "error": pl.String, "all_documents": pl.Boolean}
_GROUP_COLUMNS = ["label", "term", "error", "all_documents"]


def term_statistics(
    model: TextClassifier, frame: DataFrame, estimator: CountModel, text_columns: list[str],
    prune: bool,
) -> Counts:
    """Count the rows of a Spark frame, as `TextClassifier.count` counts local ones.

    ``estimator`` is that of ``model``, or its default. The columns were checked before. With
    ``prune``, only the terms within the model's limits, or in its vocabulary, are collected in the
    driver.

    Raises
    ------
    DataError
        If there are no rows, or a label is null.
    VocabularyError
        If no term is within the limits.
    """
    from pyspark.sql import functions as F

    columns = [*text_columns, model.label]
    vocabulary = (vocabulary_series(model.vocabulary)
                  if prune and model.vocabulary is not None else None)
    is_multilabel = has_lists(frame, model.label)

    def count(batches: Batches) -> Iterator[pl.DataFrame]:
        return count_rows(batches, model, estimator, columns, vocabulary)

    rows = map_rows(select_with_safe_names(frame, columns), count, _SCHEMA)
    sums = rows.groupBy(*_GROUP_COLUMNS).agg(
        F.sum("count").alias("count"), F.sum("occurrences").alias("occurrences"))
    if prune and vocabulary is None:
        # The sums are used twice: to choose terms, and to collect their counts.
        sums.persist()
        try:
            collected = collect(_apply_limits(sums, model, is_multilabel))
            _check_terms_remain(collected, sums, model)
        finally:
            sums.unpersist()
    else:
        collected = collect(sums)
    return _assemble(collected, model, frame, estimator, vocabulary)


def count_rows(
    batches: Batches, model: TextClassifier, estimator: CountModel, columns: list[str],
    vocabulary: pl.Series | None,
) -> Iterator[pl.DataFrame]:
    """Count one partition, and yield the counts as rows for Spark; none if it is empty.

    ``columns`` are the text columns and the label column.
    """
    *text_columns, label = columns
    n_unlabelled = 0

    def labelled_batches() -> Iterator[pl.DataFrame]:
        nonlocal n_unlabelled
        for rows in to_polars_frames(batches, columns):
            with_label = rows.filter(pl.col(label).is_not_null())
            n_unlabelled += rows.height - with_label.height
            # A missing label ends in an error, so the other rows need not be counted.
            if not n_unlabelled:
                _check_lists(with_label[label])
                yield from split_batches(with_label, text_columns)

    # All rows are counted in one pass, because adding partial counts would sort all terms each
    # time. The first batch shows whether there is anything to count.
    labelled = labelled_batches()
    first = next(labelled, None)
    counts = None if first is None else count_documents(LabelledBatches(
        chain([first], labelled), CountSpec(
            model.text_settings().tokenizer, text_columns, label, _limits(model),
            presence_above=estimator.presence_above(model.binary), binary=model.binary)))
    if n_unlabelled:
        yield pl.DataFrame({"count": [n_unlabelled]})
    elif counts is not None:
        yield from _rows_of_counts(counts if vocabulary is None else counts.over(vocabulary))


def _check_lists(labels: pl.Series) -> None:
    """Raise DataError for a list with a null or a repeated label, with advice for Spark.

    It names no row: a worker knows numbers of rows within a partition alone.
    """
    if not isinstance(labels.dtype, pl.List):
        return
    problem = ("a null" if labels.list.eval(pl.element().is_null()).list.any().any() else
               "a label twice" if (labels.list.n_unique() != labels.list.len()).any() else None)
    if problem is not None:
        name = labels.name
        raise DataError(
            f"a list of labels of the column {name!r} holds {problem}. An empty list says that "
            f"there is no label: frame.withColumn({name!r}, functions.array_distinct("
            f"functions.array_compact({column_as_code(name)})))")


def _rows_of_counts(counts: Counts) -> Iterator[pl.DataFrame]:
    """The counts of a partition as rows, of the kinds that the module's docstring lists."""
    labels = pl.Series(counts.classes.tolist()).cast(pl.String)
    yield pl.DataFrame({"label": labels, "count": counts.class_count})
    yield pl.DataFrame({"label": labels.gather(counts.codes),
                        "term": counts.terms.gather(counts.columns), "count": counts.values})
    term_columns = {name: values for name, values in (
        ("count", counts.document_frequency), ("occurrences", counts.occurrences))
        if values is not None}
    if term_columns:
        yield pl.DataFrame({"term": counts.terms, **term_columns})
    if counts.is_multilabel:
        yield pl.DataFrame({"count": [counts.rows], "all_documents": [True]})
        yield pl.DataFrame({"term": counts.terms, "count": counts.total}).with_columns(
            all_documents=True)


def _apply_limits(sums: DataFrame, model: TextClassifier, is_multilabel: bool) -> DataFrame:
    """Keep the sums of the terms that are within the limits, and the rows without a term."""
    from pyspark.sql import functions as F

    limits = _limits(model)
    other_rows, term_sums = sums.where("term IS NULL"), sums.where("term IS NOT NULL")
    # SQL that selects the rows whose sum counts each document once. The rows of classes do so
    # except for lists of labels, where a document is counted in each of its labels.
    once_per_document = "all_documents" if is_multilabel else "label IS NOT NULL"
    null_label = "label IS NULL AND all_documents IS NULL"
    n_documents = other_rows.where(once_per_document).agg(F.sum("count")).collect()[0][0]
    if not n_documents or other_rows.where(null_label).count():
        # There is nothing to fit, or a label is missing: `_assemble` raises the error.
        return other_rows
    total = F.sum(F.when(F.expr(once_per_document), F.col("count")))
    # The rows of a term without a label hold its document frequency.
    terms = term_sums.groupBy("term").agg(
        F.sum(F.when(F.expr(null_label), F.col("count"))).alias("documents"),
        F.coalesce(F.sum("occurrences"), total).alias("total"))
    if limits.need_document_frequency:
        min_documents, max_documents = limits.bounds(n_documents)
        terms = terms.where(F.col("documents").between(min_documents, max_documents))
    if limits.max_features is not None:
        # Spark compares strings byte by byte, which in UTF-8 is by code point, as Polars does.
        terms = terms.orderBy(F.desc("total"), F.asc("term")).limit(int(limits.max_features))
    return other_rows.unionByName(term_sums.join(terms.select("term"), "term", "left_semi"))


def _check_terms_remain(collected: pl.DataFrame, sums: DataFrame, model: TextClassifier) -> None:
    """Raise VocabularyError if there are terms, and the limits leave none of them."""
    all_documents = collected.filter(pl.col("all_documents"))
    # A null label outside ``all_documents`` is a missing one: `_assemble` raises an error for it.
    if collected["term"].count() or collected["label"].null_count() > all_documents.height:
        return
    n_terms = sums.where("term IS NOT NULL").select("term").distinct().count()
    if n_terms:
        document_counts = all_documents if all_documents.height else collected
        raise VocabularyError.all_pruned(
            n_terms, model.min_df, model.max_df, int(document_counts["count"].sum()))


def _limits(model: TextClassifier) -> Limits:
    return Limits(model.min_df, model.max_df, model.max_features)


def _assemble(
    collected: pl.DataFrame, model: TextClassifier, frame: DataFrame, estimator: CountModel,
    vocabulary: pl.Series | None,
) -> Counts:
    """Make counts of the collected sums; DataError if a row has no label, or there are no rows."""
    label, term = pl.col("label"), pl.col("term")
    all_documents = collected.filter(pl.col("all_documents"))
    collected = collected.filter(pl.col("all_documents").is_null())
    unlabelled = collected.filter(label.is_null() & term.is_null())
    if unlabelled.height:
        raise missing_labels_error(model.label, unlabelled["count"].item())
    class_rows = collected.filter(label.is_not_null() & term.is_null())
    if not class_rows.height and not all_documents.height:
        raise DataError.no_rows("the Spark frame")
    # Sort classes as a local fit does: integers as numbers, not as strings.
    labels = cast_labels(class_rows["label"], frame, model.label)
    order = labels.arg_sort()
    labels, class_rows = labels.gather(order), class_rows[order]
    terms = pl.concat([collected["term"], all_documents["term"]]).drop_nulls().unique().sort()
    cells = collected.filter(label.is_not_null() & term.is_not_null())
    n_rows = total = None
    if all_documents.height:
        n_rows = all_documents.filter(term.is_null())["count"].item()
        term_totals = all_documents.drop_nulls("term")
        total = put_into_zeros(
            term_totals["count"].to_numpy(), _codes(term_totals["term"], terms), len(terms))
    term_rows = collected.filter(label.is_null() & term.is_not_null()).sort("term")
    # Whether a term counts once in a document, however often it occurs.
    counts_presence = estimator.presence_above(model.binary) is not None
    counts = Counts.from_cells(
        labels.to_numpy(), class_rows["count"].to_numpy(), len(terms), _codes(cells["term"], terms),
        _codes(cells["label"], class_rows["label"]), cells["count"].to_numpy(), rows=n_rows,
        total=total, terms=terms,
        document_frequency=(term_rows["count"].to_numpy()
                            if _limits(model).need_document_frequency else None),
        occurrences=(term_rows["occurrences"].to_numpy() if counts_presence and not model.binary
                     else None))
    # With a vocabulary, each of its terms has a column, even if it does not occur.
    return counts if vocabulary is None else counts.over(vocabulary)


def missing_labels_error(column: str, n_rows: int) -> DataError:
    """The error for rows without a label."""
    return DataError(f"label column {column!r} is null in {n_rows} row{'s' * (n_rows != 1)}; label "
                     f"them, or drop them: frame.where({column_as_code(column)}.isNotNull())")


def _codes(values: pl.Series, categories: pl.Series) -> Any:
    """The index of each value among the categories."""
    return values.cast(pl.Enum(categories)).to_physical().to_numpy().astype(np.int64)
