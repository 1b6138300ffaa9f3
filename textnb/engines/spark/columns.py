"""Schema of Spark frames: checks in the driver, and conversion to Polars in the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl

from textnb.engines.spark.workers import check_workers
from textnb.errors import DataError, ParameterError, SchemaError
from textnb.frames.names import check_name
from textnb.text.tokens import Tokenizer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

INSTALL = "pip install 'textnb[spark]'"
Batches = Iterator["pa.RecordBatch"]
# The type in Polars of each column.
Schema = Mapping[str, Any]
_JOIN_TOKENS = 'Join the tokens with single spaces, and use Tokenizer(pattern="[^ ]+")'
# The maximum number of rows of a batch that is sent to Spark.
_MAX_ROWS_PER_BATCH = 1 << 16
# Batches from Spark are joined to frames of at least this many bytes of Arrow data.
_MIN_FRAME_BYTES = 32 << 20

# From names of Spark's types to the types of Polars. The type alone decides whether a column is a
# feature, so the parameters of decimals, and the elements of arrays and structs, are placeholders.
_TEXT_TYPES: dict[str, Any] = {
    "string": pl.String, "char": pl.String, "varchar": pl.String, "void": pl.Null}
_LABEL_TYPES: dict[str, Any] = {**_TEXT_TYPES, "boolean": pl.Boolean, "byte": pl.Int8,
                                "short": pl.Int16, "integer": pl.Int32, "long": pl.Int64}
_POLARS_TYPES: dict[str, Any] = {
    **_LABEL_TYPES, "float": pl.Float32, "double": pl.Float64, "decimal": pl.Decimal(38, 18),
    "date": pl.Date, "timestamp": pl.Datetime("us", "UTC"), "timestamp_ntz": pl.Datetime("us"),
    "binary": pl.Binary, "array": pl.List(pl.Null), "struct": pl.Struct([]),
    "map": pl.List(pl.Null)}


def check_frame(frame: Any) -> None:
    """Raise ParameterError unless the frame's session runs, and its workers have the libraries."""
    missing = [name for name in ("pyspark", "pandas", "pyarrow") if find_spec(name) is None]
    if missing:
        raise ParameterError(f"Spark needs {', '.join(missing)}: {INSTALL}")
    try:
        from pyspark.sql import DataFrame
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
    except ImportError as error:
        raise ParameterError(f"Spark needs {error.name or 'more libraries'}: {INSTALL}") from error
    if not isinstance(frame, DataFrame):
        raise ParameterError("frame must be a pyspark.sql.DataFrame; got "
                             f"{type(frame).__name__}. For other tables call "
                             "model.fit(frame)")
    if not isinstance(frame, ClassicDataFrame):
        raise ParameterError("a frame of Spark Connect is not supported: run the job inside the "
                             "cluster, with spark-submit or SparkSession.builder.master(...)")
    context: Any = frame.sparkSession.sparkContext
    # A context that was stopped has no JVM context.
    if getattr(context, "_jsc", context) is None:
        raise ParameterError("the frame's Spark session was stopped: make the frame in a session "
                             "that runs")
    check_workers(frame.sparkSession)


def check_columns(
    frame: DataFrame, text: Sequence[str], label: str | None = None,
    allow_lists: bool = False,
) -> None:
    """Raise SchemaError if a text or label column is missing, repeated, or of another type.

    With ``allow_lists``, the label column may also hold arrays of labels.
    """
    for column in text:
        _check_column(frame, column, "text", _TEXT_TYPES, "a string")
    if label is not None and not (allow_lists and label in frame.columns
                                  and has_lists(frame, label)):
        _check_column(frame, label, "label", _LABEL_TYPES, "a string, a boolean or an integer")


def has_lists(frame: DataFrame, label: str) -> bool:
    """Whether the label column holds arrays of labels."""
    return (_type_name(_column_type(frame, label)) == "array"
            and _type_name(_label_type(frame, label)) in _LABEL_TYPES)


def _column_type(frame: DataFrame, column: str) -> DataType:
    return frame.schema.fields[frame.columns.index(column)].dataType


def _label_type(frame: DataFrame, label: str) -> DataType:
    """The type of the labels: the elements of arrays, if the column holds arrays."""
    column_type: Any = _column_type(frame, label)
    label_type: DataType = (
        column_type.elementType if _type_name(column_type) == "array" else column_type)
    return label_type


def check_tokenizer(tokenizer: Tokenizer, text: Sequence[str]) -> None:
    """Raise ParameterError for a tokenizer that has a segmenter, or reads lists of tokens."""
    if tokenizer.segmenter is not None:
        raise ParameterError("Spark's workers read a model file, which holds no segmenter. Split "
                             f"the texts first. {_JOIN_TOKENS}")
    if tokenizer.columns_of_tokens(text):
        raise ParameterError(f"token_columns={tokenizer.token_columns!r}: Spark reads texts only. "
                             f"{_JOIN_TOKENS}")


def _check_column(
    frame: DataFrame, column: str, role: str, types: dict[str, Any], expected: str
) -> None:
    """Raise SchemaError unless a column is there once, and its type in Spark is one of ``types``.

    ``role`` ("text" or "label") and ``expected``, the types in words, are for the error.
    """
    if column not in frame.columns:
        raise SchemaError.missing_column(column, frame.columns, role)
    check_name(column, role)
    check_unique(frame, [column])
    column_type, code = _column_type(frame, column), column_as_code(column)
    if _type_name(column_type) in types:
        return
    # As a string, an array would have brackets and commas, and become other tokens.
    advice, as_string = ("Cast it", f"{code}.cast('string')") if _type_name(
        column_type) != "array" else (_JOIN_TOKENS, f"functions.concat_ws(' ', {code})")
    raise SchemaError(f"{role} column {column!r} must be {expected}; it is "
                      f"{column_type.simpleString()}. {advice}: "
                      f"frame.withColumn({column!r}, {as_string})")


def column_as_code(column: str) -> str:
    """Write a column of a Spark frame as Python code.

    A name with a dot is quoted, because Spark would read the part after the dot as a struct's
    field.

    Examples
    --------
    >>> column_as_code("label"), column_as_code("the.label")
    ("frame['label']", "frame['`the.label`']")
    """
    needs_quotes = "." in column or "`" in column
    name = "`" + column.replace("`", "``") + "`" if needs_quotes else column
    return f"frame[{name!r}]"


def unsupported_types_error(frame: DataFrame) -> SchemaError:
    """The error that names the columns whose types Spark does not pass to Python."""
    from pyspark.errors import PySparkNotImplementedError

    renamed, unsupported = with_safe_names(frame), []
    for name, field in zip(frame.columns, renamed.schema.fields, strict=True):
        column = renamed.select(field.name)
        try:
            column.mapInArrow(lambda batches: batches, column.schema)
        except PySparkNotImplementedError:
            unsupported.append(f"{name!r} ({field.dataType.simpleString()})")
    return SchemaError("there are columns of a type that Spark does not pass to Python: "
                       f"{', '.join(unsupported)}. Cast them to strings or numbers, or drop them "
                       "and join them to the answers")


def check_unique(frame: DataFrame, columns: Sequence[str]) -> None:
    """Raise SchemaError if several columns of the frame have the same name, one of ``columns``."""
    for column in columns:
        if frame.columns.count(column) > 1:
            raise SchemaError(f"{frame.columns.count(column)} columns are called {column!r}: "
                              "rename or drop all but one, so that it is clear which is read")


def empty_polars_frame(frame: DataFrame) -> pl.LazyFrame:
    """An empty Polars frame with the same columns; types that Polars lacks become Object."""
    return pl.LazyFrame(schema={
        field.name: _POLARS_TYPES.get(_type_name(field.dataType), pl.Object)
        for field in frame.schema.fields})


def _type_name(dtype: DataType) -> str:
    """The name of a type without its parameters, such as "(10,2)" or " collate UNICODE"."""
    name: str = dtype.typeName()
    return name.split("(")[0].split(" ")[0]


def with_safe_names(frame: DataFrame) -> DataFrame:
    """Rename columns to c0, c1 ...: Spark misreads names with dots, and duplicate names."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def select_with_safe_names(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Select columns, and rename them as `with_safe_names` does."""
    return with_safe_names(frame).select(*(f"c{frame.columns.index(name)}" for name in columns))


def to_polars_frames(batches: Batches, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Convert Spark's batches to larger frames, whose columns are called ``columns``.

    Raises
    ------
    DataError
        If a string is not UTF-8, which Spark does not check.
    """
    frames: list[pl.DataFrame] = []
    size = 0
    for batch in batches:
        frames.append(to_polars_frame(batch, columns))
        size += batch.nbytes
        if size >= _MIN_FRAME_BYTES:
            yield pl.concat(frames)
            frames, size = [], 0
    if frames:
        yield pl.concat(frames)


def to_polars_frame(batch: pa.RecordBatch, columns: Sequence[str]) -> pl.DataFrame:
    """Convert one of Spark's batches to a frame whose columns are called ``columns``."""
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
    frame: DataFrame, run: Callable[[Batches], Iterator[pl.DataFrame]], schema: Schema
) -> DataFrame:
    """Run a task on each partition of a frame; the columns of its rows are among ``schema``.

    If the task raises DataError, the result has a row with the message in the column ``error``,
    because Spark would run the task again after an exception.
    """
    def run_safely(batches: Batches) -> Batches:
        try:
            for rows in run(batches):
                yield from to_arrow_batches(rows, schema)
        except DataError as error:
            yield from to_arrow_batches(pl.DataFrame({"error": [str(error)]}), schema)

    return frame.mapInArrow(run_safely, spark_schema(schema))


def spark_schema(schema: Schema) -> str:
    """Write the columns of a schema and their types for Spark."""
    # All types that the schemas of counts and of moments have.
    types = {pl.String: "string", pl.Int64: "long", pl.Boolean: "boolean",
             pl.List(pl.Float64): "array<double>"}
    return ", ".join(f"{name} {types[dtype]}" for name, dtype in schema.items())


def to_arrow_batches(rows: pl.DataFrame, schema: Schema) -> Batches:
    """Convert rows to batches for Spark; columns of ``schema`` that the rows lack are null."""
    import pyarrow as pa

    types = {pl.String: pa.string(), pl.Int64: pa.int64(), pl.Boolean: pa.bool_(),
             pl.List(pl.Float64): pa.list_(pa.float64())}
    arrow_schema = pa.schema([(name, types[dtype]) for name, dtype in schema.items()])
    complete = rows.select(pl.col(name).cast(dtype) if name in rows.columns
                           else pl.lit(None, dtype).alias(name) for name, dtype in schema.items())
    for block in complete.iter_slices(_MAX_ROWS_PER_BATCH):
        # The types that every release of Arrow knows, as that of Spark may be an old one.
        table = block.to_arrow(compat_level=pl.CompatLevel.oldest())
        yield from table.cast(arrow_schema).to_batches()


def collect(rows: DataFrame) -> pl.DataFrame:
    """Bring the rows into this process; DataError if one of them has an ``error``."""
    collected = pl.from_arrow(rows.toArrow())
    assert isinstance(collected, pl.DataFrame)
    errors = collected["error"].drop_nulls().sort()
    if len(errors):
        raise DataError(errors[0])
    return collected


def cast_labels(labels: pl.Series, frame: DataFrame, column: str) -> pl.Series:
    """Convert labels from strings to the type that a local `fit` gives them."""
    label_type = _type_name(_label_type(frame, column))
    if label_type == "boolean":
        return labels == "true"
    if label_type in ("byte", "short", "integer", "long"):
        return labels.cast(pl.Int64)
    return labels
