"""Columns of Spark frames: checks in the driver, and conversion to Polars in the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl

from textnb.engines.spark.workers import check_workers
from textnb.errors import DataError, ParameterError, SchemaError
from textnb.text.tokens import Tokenizer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

INSTALL = "pip install 'textnb[spark]'"
Batches = Iterator["pa.RecordBatch"]
Columns = Mapping[str, Any]
# Rows of a batch of answers.
_ROWS = 1 << 16
# Bytes of Arrow data that are counted or scored at a time.
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
    """Raise ParameterError unless it is a frame of a running session; checks the workers too."""
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
                             f"{type(frame).__name__}. For other tables call "
                             "model.fit(frame)")
    if not isinstance(frame, Classic):
        raise ParameterError("a frame of Spark Connect is not supported: run the job inside the "
                             "cluster, with spark-submit or SparkSession.builder.master(...)")
    context: Any = frame.sparkSession.sparkContext
    # A context that was stopped has no JVM context.
    if getattr(context, "_jsc", context) is None:
        raise ParameterError("the frame's Spark session was stopped: make the frame in a session "
                             "that runs")
    check_workers(frame.sparkSession)


def check_columns(
    frame: DataFrame, text: Sequence[str], label: str | None = None, lists: bool = False
) -> None:
    """Raise SchemaError if a text or label column is missing, repeated, or of another type.

    ``lists`` is whether the label column may hold arrays of labels.
    """
    for column in text:
        _check_column(frame, column, "text", _TEXTS, "a string")
    if label is not None and not (lists and label in frame.columns
                                  and has_lists(frame, label)):
        _check_column(frame, label, "label", _LABELS, "a string, a boolean or an integer")


def has_lists(frame: DataFrame, label: str) -> bool:
    """Whether the label column holds arrays of labels."""
    return _kind(_type_of(frame, label)) == "array" and _kind(_label_type(frame, label)) in _LABELS


def _type_of(frame: DataFrame, column: str) -> DataType:
    return frame.schema.fields[frame.columns.index(column)].dataType


def _label_type(frame: DataFrame, label: str) -> DataType:
    """The type of the labels, also of those in arrays."""
    column_type: Any = _type_of(frame, label)
    label_type: DataType = (
        column_type.elementType if _kind(column_type) == "array" else column_type)
    return label_type


def check_no_tokens(tokenizer: Tokenizer, text: Sequence[str]) -> None:
    """Raise ParameterError if text columns hold lists of tokens."""
    if tokenizer.segmenter is not None:
        raise ParameterError("Spark's workers read a model file, which holds no segmenter; split "
                             "the texts first, join their tokens with single spaces, and use "
                             'Tokenizer(pattern="[^ ]+")')
    if tokenizer.columns_of_tokens(text):
        raise ParameterError(f"token_columns={tokenizer.token_columns!r}: Spark reads texts only; "
                             "join the tokens with single spaces, and fit with "
                             'Tokenizer(pattern="[^ ]+")')


def _check_column(
    frame: DataFrame, column: str, role: str, types: dict[str, Any], expected: str
) -> None:
    names = frame.columns
    if column not in names:
        raise SchemaError.missing_column(column, names, role)
    check_unique(frame, [column])
    column_type = _type_of(frame, column)
    if _kind(column_type) not in types:
        raise SchemaError(f"{role} column {column!r} must be {expected}; it is "
                          f"{column_type.simpleString()}. Cast it: frame.withColumn({column!r}, "
                          f"{reference(column)}.cast('string'))")


def reference(column: str) -> str:
    """Write a column of a Spark frame as Python code; a plain dot would mean a struct's field.

    Examples
    --------
    >>> reference("label"), reference("the.label")
    ("frame['label']", "frame['`the.label`']")
    """
    plain = "." not in column and "`" not in column
    quoted = column if plain else "`" + column.replace("`", "``") + "`"
    return f"frame[{quoted!r}]"


def unsupported_types(frame: DataFrame) -> SchemaError:
    """The error for columns whose types Spark does not pass to Python, with their names."""
    from pyspark.errors import PySparkNotImplementedError

    plain, unsupported = number_columns(frame), []
    for name, field in zip(frame.columns, plain.schema.fields, strict=True):
        alone = plain.select(field.name)
        try:
            alone.mapInArrow(lambda batches: batches, alone.schema)
        except PySparkNotImplementedError:
            unsupported.append(f"{name!r} ({field.dataType.simpleString()})")
    return SchemaError("there are columns of a type that Spark does not pass to Python: "
                       f"{', '.join(unsupported)}. Cast them to strings or numbers, or drop them "
                       "and join them to the answers")


def check_unique(frame: DataFrame, columns: Sequence[str]) -> None:
    """Raise SchemaError if several columns of the frame have one of these names."""
    for column in columns:
        if frame.columns.count(column) > 1:
            raise SchemaError(f"{frame.columns.count(column)} columns are called {column!r}: "
                              "rename or drop all but one, so that it is clear which is read")


def polars_schema(frame: DataFrame) -> pl.LazyFrame:
    """An empty Polars frame with the same columns; types that Polars lacks become Object."""
    return pl.LazyFrame(schema={
        field.name: _TYPES.get(_kind(field.dataType), pl.Object)
        for field in frame.schema.fields})


def _kind(dtype: DataType) -> str:
    """The name of a type without parameters, such as (10,2) or collate UNICODE."""
    name: str = dtype.typeName()
    return name.split("(")[0].split(" ")[0]


def number_columns(frame: DataFrame) -> DataFrame:
    """Rename columns to c0, c1 ..., so that dots, upper case and duplicates in names are safe."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def select_numbered(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Select columns, with the names of `number_columns`."""
    names = frame.columns
    return number_columns(frame).select(*(f"c{names.index(column)}" for column in columns))


def polars_rows(batches: Batches, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Convert Spark's batches to frames with these column names, some megabytes at a time.

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
    """Convert one of Spark's batches to a frame with these column names."""
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


def map_rows(
    frame: DataFrame, run: Callable[[Batches], Iterator[pl.DataFrame]], columns: Columns
) -> DataFrame:
    """Run a task on each partition of a frame; it returns rows with some of the columns.

    Its DataError becomes a row with an ``error``, as Spark would retry after an exception.
    """
    def run_safely(batches: Batches) -> Batches:
        try:
            for rows in run(batches):
                yield from arrow_rows(rows, columns)
        except DataError as error:
            yield from arrow_rows(pl.DataFrame({"error": [str(error)]}), columns)

    return frame.mapInArrow(run_safely, spark_schema(columns))


def spark_schema(columns: Columns) -> str:
    """Write the types of columns for Spark."""
    names = {pl.String: "string", pl.Int64: "long", pl.Boolean: "boolean",
             pl.List(pl.Float64): "array<double>"}
    return ", ".join(f"{name} {names[dtype]}" for name, dtype in columns.items())


def arrow_rows(rows: pl.DataFrame, columns: Columns) -> Batches:
    """Convert rows to batches for Spark; columns that they lack are null."""
    import pyarrow as pa

    kinds = {pl.String: pa.string(), pl.Int64: pa.int64(), pl.Boolean: pa.bool_(),
             pl.List(pl.Float64): pa.list_(pa.float64())}
    schema = pa.schema([(name, kinds[dtype]) for name, dtype in columns.items()])
    full = rows.select(pl.col(name).cast(dtype) if name in rows.columns
                       else pl.lit(None, dtype).alias(name) for name, dtype in columns.items())
    for part in full.iter_slices(_ROWS):
        yield from part.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema).to_batches()


def collect(rows: DataFrame) -> pl.DataFrame:
    """The rows in this process; DataError if one of them is an error."""
    collected = pl.from_arrow(rows.toArrow())
    assert isinstance(collected, pl.DataFrame)
    errors = collected["error"].drop_nulls().sort()
    if len(errors):
        raise DataError(errors[0])
    return collected


def cast_labels(labels: pl.Series, frame: DataFrame, column: str) -> pl.Series:
    """Convert labels from strings to the type that a local `fit` gives them."""
    kind = _kind(_label_type(frame, column))
    if kind == "boolean":
        return labels == "true"
    if kind in ("byte", "short", "integer", "long"):
        return labels.cast(pl.Int64)
    return labels
