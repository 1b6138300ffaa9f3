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
    errors_as_rows,
    polars_rows,
    select_numbered,
    typed_labels,
)
from textnb.engines.spark.counts import missing_labels
from textnb.errors import DataError
from textnb.frames.batches import batches as bounded
from textnb.frames.features import matrix
from textnb.frames.texts import as_int64
from textnb.learning.documents import moments

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_SCHEMA = ("part long, label string, rows long, mean array<double>, scatter array<double>, "
           "error string")
# 32 neighbouring parts are merged into one, twice: 1,024 partitions become one row per class.
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

    def count(batches: Batches) -> Batches:
        return moment_rows(batches, columns, diagonal)

    def merge(table: pa.Table) -> pa.Table:
        rows = merge_parts(table, diagonal)
        # The session decides between two Arrow types of strings, and Spark expects the same one.
        return rows.cast(table.select(rows.column_names).schema)

    parts = select_numbered(frame, columns).mapInArrow(errors_as_rows(count, _error_row), _SCHEMA)
    for _ in range(_TIMES):
        group = F.floor(F.col("part") / _MERGED).cast("long")
        parts = parts.withColumn("part_group", group).groupBy("part_group", "label").applyInArrow(
            merge, _SCHEMA)
    rows = pl.from_arrow(parts.toArrow())
    assert isinstance(rows, pl.DataFrame)
    rows = rows.sort("part", "label")
    errors = rows.filter(pl.col("error").is_not_null())
    if errors.height:
        raise DataError(errors["error"][0])
    unlabelled = rows.filter(pl.col("label").is_null())
    if unlabelled.height:
        raise missing_labels(label, sum(unlabelled["rows"].to_list()))
    if not rows.height:
        raise DataError.no_rows("the Spark frame")
    labels = typed_labels(rows["label"], frame, label)
    return _add_up(rows.with_columns(labels.alias("label")), diagonal)


def moment_rows(batches: Batches, columns: list[str], diagonal: bool) -> Batches:
    """Compute the moments of one partition as rows for Spark; none if it is empty."""
    part, label = _partition(), columns[-1]
    unlabelled = 0

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
    statistics = None if first is None else moments(chain([first], rows), diagonal)
    if unlabelled:
        yield _row(part, rows=unlabelled)
    elif statistics is not None:
        yield from _class_rows(statistics, part)


def merge_parts(table: pa.Table, diagonal: bool) -> pa.Table:
    """Merge neighbouring parts of one class into one row, in their order."""
    import pyarrow as pa

    rows = pl.from_arrow(table)
    assert isinstance(rows, pl.DataFrame)
    rows = rows.sort("part")
    part = rows["part"][0] // _MERGED
    errors = rows["error"].drop_nulls()
    if len(errors):
        return pa.Table.from_batches([_row(part, error=errors[0])])
    if rows["label"][0] is None:
        return pa.Table.from_batches([_row(part, rows=int(rows["rows"].sum()))])
    return pa.Table.from_batches(list(_class_rows(_add_up(rows, diagonal), part)))


def _class_rows(statistics: MomentStatistics, part: int) -> Batches:
    lower = _lower(statistics.n_features, statistics.diagonal)
    for label, rows, mean, scatter in zip(
            pl.Series(statistics.classes.tolist()).cast(pl.String), statistics.class_count.tolist(),
            statistics.mean, statistics.scatter, strict=True):
        yield _row(part, label=label, rows=rows, mean=mean, scatter=scatter[lower])


def _add_up(rows: pl.DataFrame, diagonal: bool) -> MomentStatistics:
    """Add the moments of the rows, in their order."""
    width = len(rows["mean"][0])
    lower = _lower(width, diagonal)
    total: MomentStatistics | None = None
    for label, count, mean, values in rows.select("label", "rows", "mean", "scatter").iter_rows():
        scatter = np.zeros(width if diagonal else (width, width))
        scatter[lower] = values
        if not diagonal:
            scatter.T[lower] = values
        one = MomentStatistics(pl.Series([label]).to_numpy(), np.array([count]),
                               np.array([mean], dtype=float), scatter[None])
        total = one if total is None else total + one
    assert total is not None
    return total


def _lower(width: int, diagonal: bool) -> Any:
    """The index of the lower triangle, which determines a symmetric scatter."""
    return slice(None) if diagonal else np.tril_indices(width)


def _row(part: int, **values: Any) -> pa.RecordBatch:
    import pyarrow as pa

    types = {"part": pa.int64(), "label": pa.string(), "rows": pa.int64(),
             "mean": pa.list_(pa.float64()), "scatter": pa.list_(pa.float64()),
             "error": pa.string()}
    values["part"] = part
    return pa.RecordBatch.from_arrays(
        [pa.array([values.get(name)], type=dtype) for name, dtype in types.items()],
        names=list(types))


def _error_row(message: str) -> pa.RecordBatch:
    return _row(_partition(), error=message)


def _partition() -> int:
    """The number of the partition that this task works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())
