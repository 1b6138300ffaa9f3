"""Counts of texts per partition, and their sums in Spark.

    partition  ->  label, term, count                       one row per class and term
                   (null), term, count, occurrences         its documents, where they are kept
                   label, (null), count                     documents of the class
                   (null), (null), count                    rows without a label
    shuffle    ->  the same, once for each (label, term)
    driver     ->  TermCounts

No task needs more than the terms of its partition, and the driver no more than those that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from textnb.bayes.statistics import CountStatistics
from textnb.engines.spark.columns import (
    Batches,
    arrow_rows,
    polars_rows,
    reference,
    selected,
    told,
    typed_labels,
)
from textnb.errors import DataError, VocabularyError
from textnb.estimators.base import DiscreteNB
from textnb.estimators.text import TextClassifier
from textnb.frames.batches import batches as bounded
from textnb.learning.documents import LabelledBatches, count_documents
from textnb.text.term_counts import CountSpec, TermCounts
from textnb.text.vocabulary import Limits, given_vocabulary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SCHEMA = "label string, term string, count long, occurrences long, error string"
_ROWS = 1 << 16
_COLUMNS = {"label": pl.String, "term": pl.String, "count": pl.Int64, "occurrences": pl.Int64,
            "error": pl.String}
_KEYS = ["label", "term", "error"]


def term_statistics(
    model: TextClassifier, frame: DataFrame, estimator: DiscreteNB, text: list[str], prune: bool
) -> TermCounts:
    """What `TextClassifier.count` gives for the rows of a Spark frame.

    Parameters
    ----------
    model : TextClassifier
    frame : pyspark.sql.DataFrame
        Its columns are checked.
    estimator : DiscreteNB
        The model's.
    text : list of str
        Its text columns.
    prune : bool
        Collect the terms alone that are within the model's limits, or in its vocabulary.

    Raises
    ------
    DataError
        If there are no rows, or a label is null.
    VocabularyError
        If no term is within the limits.
    """
    from pyspark.sql import functions as F

    columns = [*text, model.label]
    given = (given_vocabulary(model.vocabulary)
             if prune and model.vocabulary is not None else None)

    def count(batches: Batches) -> Batches:
        return counted_rows(batches, model, estimator, columns, given)

    rows = selected(frame, columns).mapInArrow(told(count, _error), _SCHEMA)
    sums = rows.groupBy(*_KEYS).agg(F.sum("count").alias("count"),
                                    F.sum("occurrences").alias("occurrences"))
    if prune and given is None:
        # Read twice: for the documents and the terms that are kept, and for the counts.
        sums.persist()
        try:
            collected = _collected(_within(sums, model))
            _check_kept(collected, sums, model)
        finally:
            sums.unpersist()
    else:
        collected = _collected(sums)
    return _assembled(collected, model, frame, estimator, given)


def counted_rows(
    batches: Batches, model: TextClassifier, estimator: DiscreteNB, columns: list[str],
    given: pl.Series | None,
) -> Batches:
    """The counts of one partition as rows for Spark; none where it is empty."""
    import pyarrow as pa

    unlabelled = 0

    def labelled() -> Iterator[pl.DataFrame]:
        nonlocal unlabelled
        for rows in polars_rows(batches, columns):
            known = rows.filter(pl.col(columns[-1]).is_not_null())
            unlabelled += rows.height - known.height
            # Without a label on every row there will be no model.
            if not unlabelled:
                yield from bounded(known, columns[:-1])

    # One pass, as a local `fit` makes it: sums of parts would sort all terms for every part.
    rows = labelled()
    first = next(rows, None)
    total = None if first is None else count_documents(LabelledBatches(
        chain([first], rows), CountSpec(
            model.tokenizer, columns[:-1], columns[-1], _limits(model),
            estimator.presence_above(model.binary), model.binary)))
    schema = _arrow_schema(pa)
    if unlabelled:
        yield from arrow_rows(_rows(count=[unlabelled]), schema, _ROWS)
    elif total is not None:
        kept = total if given is None else total.over(given)
        yield from arrow_rows(_listed(kept), schema, _ROWS)


def _arrow_schema(pa: Any) -> Any:
    return pa.schema([(name, pa.string() if dtype == pl.String else pa.int64())
                      for name, dtype in _COLUMNS.items()])


def _error(message: str) -> Any:
    import pyarrow as pa

    return next(arrow_rows(_rows(error=[message]), _arrow_schema(pa), 1))


def _rows(**columns: Any) -> pl.DataFrame:
    """Rows for Spark; columns that are not given are null."""
    frame = pl.DataFrame(columns, schema={name: _COLUMNS[name] for name in columns})
    return frame.select(pl.col(name) if name in columns else pl.lit(None, dtype).alias(name)
                        for name, dtype in _COLUMNS.items())


def _listed(statistics: TermCounts) -> pl.DataFrame:
    counts = statistics.counts
    labels = pl.Series(counts.classes.tolist()).cast(pl.String)
    rows, columns = np.nonzero(counts.feature_count)
    parts = [
        _rows(label=labels, count=counts.class_count),
        _rows(label=labels.gather(pl.Series(rows)),
              term=statistics.terms.gather(pl.Series(columns)),
              count=counts.feature_count[rows, columns])]
    kept = {name: values for name, values in (
        ("count", statistics.document_frequency), ("occurrences", statistics.occurrences))
        if values is not None}
    if kept:
        parts.append(_rows(term=statistics.terms, **kept))
    return pl.concat(parts)


def _within(sums: DataFrame, model: TextClassifier) -> DataFrame:
    """The sums of the terms that are within the limits, and those that are of no term."""
    from pyspark.sql import functions as F

    limits = _limits(model)
    of_none, of_terms = sums.where("term IS NULL"), sums.where("term IS NOT NULL")
    documents = of_none.where("label IS NOT NULL").agg(F.sum("count")).collect()[0][0]
    if not documents or of_none.where("label IS NULL").count():
        # There will be no model, and what is of no term says why.
        return of_none
    per_class = F.sum(F.when(F.col("label").isNotNull(), F.col("count")))
    terms = of_terms.groupBy("term").agg(
        F.sum(F.when(F.col("label").isNull(), F.col("count"))).alias("documents"),
        F.coalesce(F.sum("occurrences"), per_class).alias("total"))
    kept = terms
    if limits.need_document_frequency:
        least, most = limits.bounds(documents)
        kept = kept.where(F.col("documents").between(least, most))
    if limits.max_features is not None:
        # Spark compares strings byte by byte, which in UTF-8 is by code point, as Polars does.
        kept = kept.orderBy(F.desc("total"), F.asc("term")).limit(int(limits.max_features))
    return of_none.unionByName(of_terms.join(kept.select("term"), "term", "left_semi"))


def _check_kept(collected: pl.DataFrame, sums: DataFrame, model: TextClassifier) -> None:
    """Raises VocabularyError if there are terms, and the limits leave none of them."""
    # A row of no label and no term says why there will be no model.
    if collected["term"].count() or collected["label"].null_count():
        return
    found = sums.where("term IS NOT NULL").select("term").distinct().count()
    if found:
        raise VocabularyError.all_pruned(
            found, f"min_df={model.min_df!r} and max_df={model.max_df!r} of "
                   f"{collected['count'].sum()} documents")


def _limits(model: TextClassifier) -> Limits:
    return Limits(model.min_df, model.max_df, model.max_features)


def _collected(sums: DataFrame) -> pl.DataFrame:
    collected = pl.from_arrow(sums.select(*_COLUMNS).toArrow())
    assert isinstance(collected, pl.DataFrame)
    return collected


def _assembled(
    collected: pl.DataFrame, model: TextClassifier, frame: DataFrame, estimator: DiscreteNB,
    given: pl.Series | None,
) -> TermCounts:
    label, term = pl.col("label"), pl.col("term")
    errors = collected["error"].drop_nulls().sort()
    if len(errors):
        raise DataError(errors[0])
    unlabelled = collected.filter(label.is_null() & term.is_null())
    if unlabelled.height:
        raise unlabelled_rows(model.label, unlabelled["count"].item())
    documents = collected.filter(label.is_not_null() & term.is_null())
    if not documents.height:
        raise DataError.no_rows("the Spark frame")
    names = typed_labels(documents["label"], frame, model.label)
    order = names.arg_sort()
    terms = collected["term"].drop_nulls().unique().sort()
    cells = collected.filter(label.is_not_null() & term.is_not_null())
    counts = np.zeros((len(names), len(terms)), dtype=np.int64)
    counts[_codes(cells["label"], documents["label"].gather(order)),
           _codes(cells["term"], terms)] = cells["count"].to_numpy()
    per_term = collected.filter(label.is_null() & term.is_not_null()).sort("term")
    limits = _limits(model)
    counts_presence = estimator.presence_above(model.binary) is not None
    statistics = TermCounts(
        terms, CountStatistics(names.gather(order).to_numpy(),
                               documents["count"].gather(order).to_numpy(), counts),
        per_term["count"].to_numpy() if limits.need_document_frequency else None,
        per_term["occurrences"].to_numpy() if counts_presence and not model.binary else None)
    return statistics if given is None else statistics.over(given)


def unlabelled_rows(column: str, rows: int) -> DataError:
    """What is raised where labels are missing."""
    return DataError(f"label column {column!r} is null in {rows} row{'s'[:rows != 1]}; label "
                     f"them, or drop them: frame.where({reference(column)}.isNotNull())")


def _codes(values: pl.Series, known: pl.Series) -> Any:
    """The place of each value among the known ones."""
    return values.cast(pl.Enum(known)).to_physical().to_numpy().astype(np.int64)
