"""Moments of feature tables per partition, merged in Spark in the order of the partitions.

    partition  ->  part, label, rows, mean, scatter         one row per class
    twice      ->  32 neighbouring parts become one, per class
    driver     ->  MomentStatistics

The scatter of a class has the sums of products of two features' deviations from their means.

A part is at first one partition. Sums of real numbers depend on their order: parts are added in the
order of their numbers, so the order in which tasks end has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.moments import MomentStatistics
from textnb.engines.spark.columns import (
    Batches,
    cast_labels,
    collect,
    map_rows,
    select_with_safe_names,
    spark_schema,
    to_arrow_batches,
    to_polars_frames,
)
from textnb.engines.spark.counts import missing_labels_error
from textnb.errors import DataError
from textnb.frames.batches import batches as split_batches
from textnb.frames.features import feature_matrix
from textnb.frames.texts import integers_as_int64
from textnb.learning.documents import sum_moments

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

# `map_rows` writes the column "error".
_SCHEMA = {"part": pl.Int64, "label": pl.String, "rows": pl.Int64,
           "mean": pl.List(pl.Float64), "scatter": pl.List(pl.Float64), "error": pl.String}
# This many neighbouring parts are merged into one, and this many times: of 1,024 partitions, the
# driver gets one row per class.
_N_NEIGHBOURS, _N_MERGES = 32, 2
_MAX_ROWS_AT_A_TIME = 8192


def moment_statistics(
    frame: DataFrame, features: list[str], label: str, diagonal: bool
) -> MomentStatistics:
    """Compute the moments of each class of a Spark frame with columns that were checked.

    If ``diagonal``, the scatter has only the squares of each feature's deviations.

    Raises
    ------
    DataError
        If there are no rows, a label is null, or a feature is null, NaN or infinite.
    """
    from pyspark.sql import functions as F

    columns = [*features, label]

    def compute(batches: Batches) -> Iterator[pl.DataFrame]:
        return _moment_rows(batches, columns, diagonal)

    def merge(table: pa.Table) -> pa.Table:
        rows = _merge_neighbours(table, diagonal)
        # Spark expects the Arrow type of strings that the session chose, which `table` has.
        return rows.cast(table.select(rows.column_names).schema)

    parts = map_rows(select_with_safe_names(frame, columns), compute, _SCHEMA)
    for _ in range(_N_MERGES):
        merged_part = F.floor(F.col("part") / _N_NEIGHBOURS).cast("long")
        parts = parts.withColumn("merged_part", merged_part).groupBy(
            "merged_part", "label").applyInArrow(merge, spark_schema(_SCHEMA))
    rows = collect(parts).sort("part", "label")
    unlabelled = rows.filter(pl.col("label").is_null())
    if unlabelled.height:
        raise missing_labels_error(label, sum(unlabelled["rows"].to_list()))
    if not rows.height:
        raise DataError.no_rows("the Spark frame")
    return _sum_rows(rows.with_columns(label=cast_labels(rows["label"], frame, label)), diagonal)


def _moment_rows(batches: Batches, columns: list[str], diagonal: bool) -> Iterator[pl.DataFrame]:
    """Compute the moments of one partition as rows for Spark; none if it is empty.

    ``columns`` are the features and the label column.
    """
    from pyspark import TaskContext

    context, n_unlabelled = TaskContext.get(), 0
    *features, label = columns
    assert context is not None
    part = context.partitionId()

    def labelled_batches() -> Iterator[tuple[NDArray[Any], pl.Series]]:
        nonlocal n_unlabelled
        for rows in to_polars_frames(batches, columns):
            for batch in split_batches(rows, max_rows=_MAX_ROWS_AT_A_TIME):
                with_label = batch.filter(pl.col(label).is_not_null())
                n_unlabelled += batch.height - with_label.height
                if with_label.height:
                    # Errors can't name a row: its number in the frame is not known here.
                    yield feature_matrix(with_label, features), integers_as_int64(with_label[label])

    # The first batch shows whether there are rows, without which `sum_moments` raises an error.
    labelled = labelled_batches()
    first = next(labelled, None)
    statistics = None if first is None else sum_moments(chain([first], labelled), diagonal)
    if n_unlabelled:
        yield pl.DataFrame({"part": [part], "rows": [n_unlabelled]})
    elif statistics is not None:
        yield _rows_of_moments(statistics, part)


def _merge_neighbours(table: pa.Table, diagonal: bool) -> pa.Table:
    """Merge neighbouring parts of one class into one row, in their order.

    If a part has an ``error``, the result is the error; for rows without a label, their number.
    """
    import pyarrow as pa

    rows = pl.from_arrow(table)
    assert isinstance(rows, pl.DataFrame)
    rows = rows.sort("part")
    if rows["error"].count():
        merged = rows.filter(pl.col("error").is_not_null()).head(1)
    elif rows["label"][0] is None:
        merged = rows.select(pl.col("part").first() // _N_NEIGHBOURS, pl.col("rows").sum())
    else:
        merged = _rows_of_moments(_sum_rows(rows, diagonal), rows["part"][0] // _N_NEIGHBOURS)
    return pa.Table.from_batches(to_arrow_batches(merged, _SCHEMA))


def _rows_of_moments(statistics: MomentStatistics, part: int) -> pl.DataFrame:
    """The moments of a part as rows for Spark, one per class."""
    lower = _lower_triangle(statistics.n_features, statistics.diagonal)
    return pl.DataFrame({
        "label": pl.Series(statistics.classes.tolist()).cast(pl.String),
        "rows": statistics.class_count, "mean": statistics.mean.tolist(),
        "scatter": [scatter[lower].tolist() for scatter in statistics.scatter],
    }).with_columns(part=part)


def _sum_rows(rows: pl.DataFrame, diagonal: bool) -> MomentStatistics:
    """Add the moments of the rows, in their order."""
    n_features = len(rows["mean"][0])
    lower = _lower_triangle(n_features, diagonal)
    total: MomentStatistics | None = None
    for label, count, mean, values in rows.select("label", "rows", "mean", "scatter").iter_rows():
        scatter = np.zeros(n_features if diagonal else (n_features, n_features))
        scatter[lower] = values
        if not diagonal:
            scatter.T[lower] = values  # the upper triangle, by symmetry
        part = MomentStatistics(pl.Series([label]).to_numpy(), np.array([count]),
                                np.array([mean], dtype=float), scatter[None])
        total = part if total is None else total + part
    assert total is not None
    return total


def _lower_triangle(n_features: int, diagonal: bool) -> Any:
    """The index of the lower triangle of a symmetric scatter; of all values if it is diagonal."""
    return slice(None) if diagonal else np.tril_indices(n_features)
