"""Moments of feature tables per partition, put together in Spark in the order of the partitions.

    partition  ->  part, label, rows, mean, scatter         one row per class
    twice      ->  32 neighbours become one, per class
    driver     ->  MomentStatistics

Sums of real numbers depend on the order of the parts: here it is that of the partitions' numbers,
whichever task ends first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.moments import MomentStatistics
from textnb.engines.spark.columns import Batches, polars_rows, selected, told, typed_labels
from textnb.engines.spark.counts import unlabelled_rows
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
# Parts that become one, and how many times: 1,024 partitions are one row per class in the end.
_TOGETHER, _TIMES = 32, 2
_ROWS = 8192


def moment_statistics(
    frame: DataFrame, features: list[str], label: str, diagonal: bool
) -> MomentStatistics:
    """Moments per class of the rows of a Spark frame, whose columns are checked.

    Raises
    ------
    DataError
        If there are no rows, a label is null, or a feature is null, NaN or infinite.
    """
    from pyspark.sql import functions as F

    columns = [*features, label]

    def count(batches: Batches) -> Batches:
        return moment_rows(batches, columns, diagonal)

    def together(table: pa.Table) -> pa.Table:
        rows = merged(table, diagonal)
        # Strings are large or not, as the session says, and Spark takes no others back here.
        return rows.cast(table.select(rows.column_names).schema)

    parts = selected(frame, columns).mapInArrow(told(count, _error), _SCHEMA)
    for _ in range(_TIMES):
        group = F.floor(F.col("part") / _TOGETHER).cast("long")
        parts = parts.withColumn("part_group", group).groupBy("part_group", "label").applyInArrow(
            together, _SCHEMA)
    rows = pl.from_arrow(parts.toArrow())
    assert isinstance(rows, pl.DataFrame)
    rows = rows.sort("part", "label")
    errors = rows.filter(pl.col("error").is_not_null())
    if errors.height:
        raise DataError(errors["error"][0])
    unlabelled = rows.filter(pl.col("label").is_null())
    if unlabelled.height:
        raise unlabelled_rows(label, sum(unlabelled["rows"].to_list()))
    if not rows.height:
        raise DataError.no_rows("the Spark frame")
    labels = typed_labels(rows["label"], frame, label)
    return _added(rows.with_columns(labels.alias("label")), diagonal)


def moment_rows(batches: Batches, columns: list[str], diagonal: bool) -> Batches:
    """The moments of one partition as rows for Spark; none where it is empty."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    part, label = context.partitionId(), columns[-1]
    unlabelled = 0

    def read() -> Iterator[tuple[NDArray[Any], pl.Series]]:
        nonlocal unlabelled
        for rows in polars_rows(batches, columns):
            for batch in bounded(rows, rows=_ROWS):
                labelled = batch.filter(pl.col(label).is_not_null())
                unlabelled += batch.height - labelled.height
                if labelled.height:
                    # Which row of the frame it is, is not known here.
                    yield matrix(labelled, columns[:-1], None), as_int64(labelled[label])

    rows = read()
    first = next(rows, None)
    statistics = None if first is None else moments(chain([first], rows), diagonal)
    if unlabelled:
        yield _row(part, rows=unlabelled)
    elif statistics is not None:
        yield from _listed(statistics, part)


def merged(table: pa.Table, diagonal: bool) -> pa.Table:
    """Neighbouring parts of one class as one row, added in their order."""
    import pyarrow as pa

    rows = pl.from_arrow(table)
    assert isinstance(rows, pl.DataFrame)
    rows = rows.sort("part")
    part = rows["part"][0] // _TOGETHER
    errors = rows["error"].drop_nulls()
    if len(errors):
        return pa.Table.from_batches([_row(part, error=errors[0])])
    if rows["label"][0] is None:
        return pa.Table.from_batches([_row(part, rows=int(rows["rows"].sum()))])
    return pa.Table.from_batches(list(_listed(_added(rows, diagonal), part)))


def _listed(statistics: MomentStatistics, part: int) -> Batches:
    lower = _lower(statistics.n_features, statistics.diagonal)
    for label, rows, mean, scatter in zip(
            pl.Series(statistics.classes.tolist()).cast(pl.String), statistics.class_count.tolist(),
            statistics.mean, statistics.scatter, strict=True):
        yield _row(part, label=label, rows=rows, mean=mean, scatter=scatter[lower])


def _added(rows: pl.DataFrame, diagonal: bool) -> MomentStatistics:
    """The sum of the rows, in their order."""
    width = len(rows["mean"][0])
    lower = _lower(width, diagonal)
    total: MomentStatistics | None = None
    for label, count, mean, values in rows.select("label", "rows", "mean", "scatter").iter_rows():
        scatter = np.zeros(width if diagonal else (width, width))
        scatter[lower] = values
        if not diagonal:
            scatter.T[lower] = values
        one = MomentStatistics(_classes([label]), np.array([count]), np.array([mean], dtype=float),
                               scatter[None])
        total = one if total is None else total + one
    assert total is not None
    return total


def _classes(labels: list[Any]) -> NDArray[Any]:
    return pl.Series(labels).to_numpy()


def _lower(width: int, diagonal: bool) -> Any:
    """The part of a scatter that tells all of it."""
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


def _error(message: str) -> pa.RecordBatch:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return _row(context.partitionId(), error=message)
