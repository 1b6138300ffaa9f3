"""Moments of feature tables per partition, merged in Spark in the order of the partitions.

    partition  ->  part, label, rows, mean, scatter         one row per class
    twice      ->  32 neighbours become one, per class
    driver     ->  MomentStatistics

Sums of real numbers depend on the order of the parts. They are added in the order of the
partitions' numbers, so the order in which tasks end has no effect.
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
    arrow_rows,
    cast_labels,
    collect,
    map_rows,
    polars_rows,
    select_numbered,
    spark_schema,
)
from textnb.engines.spark.counts import missing_labels
from textnb.errors import DataError
from textnb.frames.batches import batches as bounded
from textnb.frames.features import matrix
from textnb.frames.texts import as_int64
from textnb.learning.documents import sum_moments

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_COLUMNS = {"part": pl.Int64, "label": pl.String, "rows": pl.Int64,
            "mean": pl.List(pl.Float64), "scatter": pl.List(pl.Float64), "error": pl.String}
# So many neighbouring parts are merged into one, so many times: 1,024 become one row per class.
_MERGED, _TIMES = 32, 2
_ROWS = 8192


def moment_statistics(
    frame: DataFrame, features: list[str], label: str, diagonal: bool
) -> MomentStatistics:
    """Compute the moments of each class of a Spark frame with columns that were checked.

    Raises
    ------
    DataError
        If there are no rows, a label is null, or a feature is null, NaN or infinite.
    """
    from pyspark.sql import functions as F

    columns = [*features, label]

    def count(batches: Batches) -> Iterator[pl.DataFrame]:
        return moment_rows(batches, columns, diagonal)

    def merge(table: pa.Table) -> pa.Table:
        rows = merge_parts(table, diagonal)
        # Spark expects the Arrow type of strings that the session chose, which `table` has.
        return rows.cast(table.select(rows.column_names).schema)

    parts = map_rows(select_numbered(frame, columns), count, _COLUMNS)
    for _ in range(_TIMES):
        group = F.floor(F.col("part") / _MERGED).cast("long")
        parts = parts.withColumn("part_group", group).groupBy("part_group", "label").applyInArrow(
            merge, spark_schema(_COLUMNS))
    rows = collect(parts).sort("part", "label")
    unlabelled = rows.filter(pl.col("label").is_null())
    if unlabelled.height:
        raise missing_labels(label, sum(unlabelled["rows"].to_list()))
    if not rows.height:
        raise DataError.no_rows("the Spark frame")
    labels = cast_labels(rows["label"], frame, label)
    return _add_up(rows.with_columns(labels.alias("label")), diagonal)


def moment_rows(
    batches: Batches, columns: list[str], diagonal: bool
) -> Iterator[pl.DataFrame]:
    """Compute the moments of one partition as rows for Spark; none if it is empty."""
    from pyspark import TaskContext

    context, label, unlabelled = TaskContext.get(), columns[-1], 0
    assert context is not None
    part = context.partitionId()

    def read() -> Iterator[tuple[NDArray[Any], pl.Series]]:
        nonlocal unlabelled
        for rows in polars_rows(batches, columns):
            for batch in bounded(rows, rows=_ROWS):
                labelled = batch.filter(pl.col(label).is_not_null())
                unlabelled += batch.height - labelled.height
                if labelled.height:
                    # Errors can't name a row: its number in the frame is not known here.
                    yield matrix(labelled, columns[:-1], None), as_int64(labelled[label])

    rows = read()
    first = next(rows, None)
    statistics = None if first is None else sum_moments(chain([first], rows), diagonal)
    if unlabelled:
        yield pl.DataFrame({"part": [part], "rows": [unlabelled]})
    elif statistics is not None:
        yield _class_rows(statistics, part)


def merge_parts(table: pa.Table, diagonal: bool) -> pa.Table:
    """Merge neighbouring parts of one class into one row, in their order."""
    import pyarrow as pa

    rows = pl.from_arrow(table)
    assert isinstance(rows, pl.DataFrame)
    rows = rows.sort("part")
    if rows["error"].count():
        merged = rows.filter(pl.col("error").is_not_null()).head(1)
    elif rows["label"][0] is None:
        merged = rows.select(pl.col("part").first() // _MERGED, pl.col("rows").sum())
    else:
        merged = _class_rows(_add_up(rows, diagonal), rows["part"][0] // _MERGED)
    return pa.Table.from_batches(arrow_rows(merged, _COLUMNS))


def _class_rows(statistics: MomentStatistics, part: int) -> pl.DataFrame:
    lower = _lower_triangle(statistics.n_features, statistics.diagonal)
    return pl.DataFrame({
        "label": pl.Series(statistics.classes.tolist()).cast(pl.String),
        "rows": statistics.class_count, "mean": statistics.mean.tolist(),
        "scatter": [scatter[lower].tolist() for scatter in statistics.scatter],
    }).with_columns(part=part)


def _add_up(rows: pl.DataFrame, diagonal: bool) -> MomentStatistics:
    """Add the moments of the rows, in their order."""
    width = len(rows["mean"][0])
    lower = _lower_triangle(width, diagonal)
    total: MomentStatistics | None = None
    for label, count, mean, values in rows.select("label", "rows", "mean", "scatter").iter_rows():
        scatter = np.zeros(width if diagonal else (width, width))
        scatter[lower] = values
        if not diagonal:
            scatter.T[lower] = values
        part = MomentStatistics(pl.Series([label]).to_numpy(), np.array([count]),
                                np.array([mean], dtype=float), scatter[None])
        total = part if total is None else total + part
    assert total is not None
    return total


def _lower_triangle(width: int, diagonal: bool) -> Any:
    """The index of the lower triangle, which determines a symmetric scatter."""
    return slice(None) if diagonal else np.tril_indices(width)
