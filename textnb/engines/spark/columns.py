"""Spark's columns, checked in the driver and moved to Polars in the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl

from textnb.engines.spark.workers import check_workers
from textnb.errors import DataError, ParameterError, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

INSTALL = "pip install 'textnb[spark]'"
Batches = Iterator["pa.RecordBatch"]
# Of Arrow data that are counted or scored at a time.
_BYTES = 32 << 20

_TEXTS: dict[str, Any] = {"string": pl.String, "char": pl.String, "varchar": pl.String,
                          "void": pl.Null}
_LABELS: dict[str, Any] = {**_TEXTS, "boolean": pl.Boolean, "byte": pl.Int8, "short": pl.Int16,
           "integer": pl.Int32, "long": pl.Int64}
_TYPES: dict[str, Any] = {
    **_LABELS, "float": pl.Float32, "double": pl.Float64, "decimal": pl.Decimal(38, 18),
    "date": pl.Date, "timestamp": pl.Datetime("us", "UTC"), "timestamp_ntz": pl.Datetime("us"),
    "binary": pl.Binary, "array": pl.List(pl.Null), "struct": pl.Struct([]),
    "map": pl.List(pl.Null)}


def check_frame(frame: Any) -> None:
    """Raises ParameterError if it is no frame of a running session, or Spark is not installed."""
    missing = [name for name in ("pyspark", "pandas", "pyarrow") if find_spec(name) is None]
    if missing:
        raise ParameterError(f"Spark needs {', '.join(missing)}: {INSTALL}")
    try:
        from pyspark.sql import DataFrame
        from pyspark.sql.classic.dataframe import DataFrame as Classic
    except ImportError as error:
        raise ParameterError(f"Spark needs {error.name or 'more libraries'}: {INSTALL}"
                             ) from error
    if not isinstance(frame, DataFrame):
        raise ParameterError("frame must be a pyspark.sql.DataFrame; got "
                             f"{type(frame).__name__}. Of other tables the classifier itself "
                             "learns: model.fit(frame)")
    if not isinstance(frame, Classic):
        raise ParameterError("a frame of Spark Connect is not supported: run the job inside the "
                             "cluster, with spark-submit or SparkSession.builder.master(...)")
    context: Any = frame.sparkSession.sparkContext
    # What is left of a context that was stopped.
    if getattr(context, "_jsc", context) is None:
        raise ParameterError("the frame's Spark session was stopped: make the frame in a session "
                             "that runs")
    check_workers(frame.sparkSession)


def check_columns(frame: DataFrame, text: Sequence[str], label: str | None = None) -> None:
    """Raises SchemaError if a text or label column is missing, double, or of another type."""
    for column in text:
        _check_column(frame, column, "text", _TEXTS, "a string")
    if label is not None:
        _check_column(frame, label, "label", _LABELS, "a string, a boolean or an integer")


def _check_column(
    frame: DataFrame, column: str, role: str, types: dict[str, Any], expected: str
) -> None:
    names = frame.columns
    if column not in names:
        raise SchemaError.missing_column(column, names, role)
    check_single(frame, [column])
    own = frame.schema.fields[names.index(column)].dataType
    if _kind(own) not in types:
        raise SchemaError(f"{role} column {column!r} must be {expected}; it is "
                          f"{own.simpleString()}. Cast it: frame.withColumn({column!r}, "
                          f"{reference(column)}.cast('string'))")


def reference(column: str) -> str:
    """How Python code names a column of a Spark frame: a dot would ask for a struct's field.

    Examples
    --------
    >>> reference("label"), reference("the.label")
    ("frame['label']", "frame['`the.label`']")
    """
    plain = "." not in column and "`" not in column
    quoted = column if plain else "`" + column.replace("`", "``") + "`"
    return f"frame[{quoted!r}]"


def kept_from_python(frame: DataFrame) -> SchemaError:
    """What is raised where Spark refuses a column's type, with the columns' names."""
    from pyspark.errors import PySparkNotImplementedError

    plain, refused = positional(frame), []
    for name, field in zip(frame.columns, plain.schema.fields, strict=True):
        alone = plain.select(field.name)
        try:
            alone.mapInArrow(lambda batches: batches, alone.schema)
        except PySparkNotImplementedError:
            refused.append(f"{name!r} ({field.dataType.simpleString()})")
    return SchemaError("there are columns of a type that Spark does not pass to Python: "
                       f"{', '.join(refused)}. Cast them to strings or numbers, or drop them and "
                       "join them to the answers")


def check_single(frame: DataFrame, columns: Sequence[str]) -> None:
    """Raises SchemaError if several columns have a name that is read."""
    for column in columns:
        if frame.columns.count(column) > 1:
            raise SchemaError(f"{frame.columns.count(column)} columns are called {column!r}: "
                              "rename or drop all but one, so that it is clear which is read")


def polars_schema(frame: DataFrame) -> pl.LazyFrame:
    """A frame without rows of the same columns, in Polars' types; Object where there is none."""
    return pl.LazyFrame(schema={
        field.name: _TYPES.get(_kind(field.dataType), pl.Object)
        for field in frame.schema.fields})


def _kind(dtype: DataType) -> str:
    """A type's name without its parameters: decimal(10,2), string collate UNICODE."""
    name: str = dtype.typeName()
    return name.split("(")[0].split(" ")[0]


def positional(frame: DataFrame) -> DataFrame:
    """The same columns, called c0, c1 ...: a dot, a case or a copy of a name means nothing."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def selected(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The columns that are read, called by their positions."""
    names = frame.columns
    return positional(frame).select(*(f"c{names.index(column)}" for column in columns))


def polars_rows(batches: Batches, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Spark's batches as frames with columns of these names, some megabytes at a time.

    Raises
    ------
    DataError
        If a string is not UTF-8, which Spark does not check.
    """
    waiting: list[pl.DataFrame] = []
    size = 0
    for batch in batches:
        waiting.append(polars_frame(batch, columns))
        size += batch.nbytes
        if size >= _BYTES:
            yield pl.concat(waiting)
            waiting, size = [], 0
    if waiting:
        yield pl.concat(waiting)


def polars_frame(batch: pa.RecordBatch, columns: Sequence[str]) -> pl.DataFrame:
    """One of Spark's batches as a frame with columns of these names."""
    import pyarrow as pa

    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"a value of the columns {', '.join(map(repr, columns))} can't be read: "
                        f"{error}. Where bytes were cast to strings, decode them as UTF-8 first"
                        ) from error
    frame = pl.from_arrow(pa.Table.from_batches([batch]))
    assert isinstance(frame, pl.DataFrame)
    return frame.rename(dict(zip(frame.columns, columns, strict=True)))


def arrow_rows(frame: pl.DataFrame, schema: pa.Schema, rows: int) -> Batches:
    """A frame as batches of Spark's own Arrow types."""
    for part in frame.iter_slices(rows):
        yield from part.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema).to_batches()


def told(run: Callable[[Batches], Batches], error_of: Callable[[str], pa.RecordBatch]
         ) -> Callable[[Batches], Batches]:
    """The same work, whose DataError becomes a row: an exception would have the task retried."""
    def safe(batches: Batches) -> Batches:
        try:
            yield from run(batches)
        except DataError as error:
            yield error_of(str(error))

    return safe


def typed_labels(labels: pl.Series, frame: DataFrame, column: str) -> pl.Series:
    """Labels that were passed as strings, in the type that a local `fit` gives them."""
    kind = _kind(frame.schema.fields[frame.columns.index(column)].dataType)
    if kind == "boolean":
        return labels == "true"
    if kind in ("byte", "short", "integer", "long"):
        return labels.cast(pl.Int64)
    return labels
