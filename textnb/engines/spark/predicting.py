"""`predict` on a Spark frame: the model is broadcast, and the workers score their rows."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from sklearn.utils.validation import check_is_fitted

from textnb.classifiers.load import load
from textnb.classifiers.table import TableClassifier
from textnb.classifiers.text import TextClassifier
from textnb.engines.spark.columns import (
    Batches,
    check_columns,
    check_frame,
    check_tokenizer,
    check_unique,
    empty_polars_frame,
    to_polars_frame,
    unsupported_types_error,
    with_safe_names,
)
from textnb.errors import ParameterError, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.core.broadcast import Broadcast
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

# The model that this worker used last, with the SHA-256 of its file as the key. A worker runs many
# tasks, and loads the model for the first one.
_LOADED_MODEL: dict[str, TextClassifier | TableClassifier] = {}


def predict(
    model: TextClassifier | TableClassifier, frame: DataFrame, *, probability: bool = False,
    scores: bool = False, explain: int = 0, top: int = 0, known_terms: bool = False,
) -> DataFrame:
    """Predict the most probable class, or the labels, of each row of a Spark frame, lazily.

    The model is broadcast as the bytes of its file, and loaded once in each Python worker.

    Parameters
    ----------
    model : TextClassifier or TableClassifier
        Fitted, and of a kind that can be saved.
    frame : pyspark.sql.DataFrame
    probability, scores, explain, top, known_terms
        As in `TextClassifier.predict`; the last three are for texts.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns of the frame, ``predicted``, and the columns that were asked for, as
        `TextClassifier.predict` names them. Rows stay in their partitions, in the same order.

    Raises
    ------
    ParameterError
        If the model can't be saved, a class can't be the name of a field of ``scores``, the frame's
        session was stopped, or Spark is not installed.
    SchemaError
        If a column is missing, or has a wrong type or one that Spark does not pass to Python (an
        interval of months), or the frame has a column with the name of an answer.
    pyspark.errors.PythonException
        When the frame is computed, with the text of a DataError: a feature is null, NaN or
        infinite, or a string is not UTF-8.

    Examples
    --------
    In a session ``spark``::

        from textnb import TextClassifier
        from textnb.engines.spark import predict

        model = TextClassifier().fit(["Chinese Beijing", "Tokyo"], ["yes", "no"])
        answers = predict(model, spark.createDataFrame([(7, "Tokyo")], "id int, text string"))
        print(answers.collect())  # [Row(id=7, text='Tokyo', predicted='no')]
    """
    if not isinstance(model, (TextClassifier, TableClassifier)):
        raise ParameterError.out_of_range("model", "a TextClassifier or a TableClassifier", model)
    check_is_fitted(model)
    check_frame(frame)
    from pyspark.errors import PySparkNotImplementedError
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructField, StructType

    settings: dict[str, Any] = {"probability": probability, "scores": scores}
    if isinstance(model, TextClassifier):
        settings |= {"explain": explain, "top": top, "known_terms": known_terms}
    elif explain or top or known_terms:
        raise ParameterError("explain, top and known_terms are about texts: of a feature table ask "
                             "for probability and scores")
    input_columns = _input_columns(model, frame)
    _check_field_names(model, scores)
    answer_fields = _answer_fields(model, frame, input_columns, settings)
    answer_names = [field.name for field in answer_fields]
    # Names without dots and duplicates, as `with_safe_names` gives to the columns of the frame.
    safe_names = [f"a{i}" for i in range(len(answer_names))]
    content = _model_bytes(model)
    broadcast = BroadcastModel(hashlib.sha256(content).hexdigest(),
                               frame.sparkSession.sparkContext.broadcast(content))
    input_indices = [frame.columns.index(column) for column in input_columns]
    answer_types = to_arrow_schema(answer_fields)

    def answer(batches: Batches) -> Batches:
        worker_model = broadcast.model()
        for batch in batches:
            rows = to_polars_frame(batch.select(input_indices), input_columns)
            # Lazily, because errors about eager frames name the number of a row, and the number in
            # a batch would mislead.
            answers = worker_model.predict(rows.lazy(), **settings).select(answer_names).collect()
            yield _append_answers(batch, answers, safe_names, answer_types)

    renamed = with_safe_names(frame)
    schema = StructType([*renamed.schema.fields, *(
        StructField(name, field.dataType)
        for name, field in zip(safe_names, answer_fields, strict=True))])
    try:
        return renamed.mapInArrow(answer, schema).toDF(*frame.columns, *answer_names)
    except PySparkNotImplementedError as error:
        raise unsupported_types_error(frame) from error


@dataclass(frozen=True)
class BroadcastModel:
    """The file of a model, broadcast to the workers, and its SHA-256."""

    digest: str
    content: Broadcast[bytes]

    def model(self) -> TextClassifier | TableClassifier:
        """The model; it is loaded unless it is the last one that this worker loaded."""
        if self.digest not in _LOADED_MODEL:
            _LOADED_MODEL.clear()
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.textnb"
                path.write_bytes(self.content.value)
                # The driver has written the file, so that its size needs no limit.
                _LOADED_MODEL[self.digest] = load(path, max_bytes=sys.maxsize)
        return _LOADED_MODEL[self.digest]


def _model_bytes(model: TextClassifier | TableClassifier) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.textnb"
        model.save(path)
        return path.read_bytes()


def _input_columns(model: TextClassifier | TableClassifier, frame: DataFrame) -> list[str]:
    """The columns that the model reads; SchemaError if the frame lacks one of them."""
    if isinstance(model, TextClassifier):
        check_tokenizer(model.fitted_.settings.tokenizer, model.text_columns)
        # Declare every column a string, so that the model refuses none for its type:
        # `check_columns` does that, in words about Spark.
        columns = model.input_columns(
            pl.LazyFrame(schema=dict.fromkeys(frame.columns, pl.String)))
        check_columns(frame, columns)
        return columns
    columns = model.input_columns(empty_polars_frame(frame))
    check_unique(frame, columns)
    return columns


def _check_field_names(model: TextClassifier | TableClassifier, scores: bool) -> None:
    """Raise ParameterError if a class can't be the name of a field of ``scores``."""
    for label in model.classes_.tolist() if scores else []:
        if "\0" in str(label):
            raise ParameterError(f"scores=True makes a field for each class, and no field of Spark "
                                 f"can have the name {label!r}, for its NUL: ask for top=K, which "
                                 "gives classes as values")


def _answer_fields(
    model: TextClassifier | TableClassifier, frame: DataFrame, input_columns: list[str],
    settings: dict[str, Any],
) -> StructType:
    """The names and types of the columns that are added."""
    from pyspark.sql.pandas.types import from_arrow_schema

    # The answers to a frame without rows have the names and types.
    schema = empty_polars_frame(frame).select(input_columns).collect_schema()
    answers = model.predict(pl.LazyFrame(schema=schema), **settings).drop(input_columns).collect()
    # The names of answers are in lower case.
    case_sensitive = str(frame.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"
    names = set(frame.columns) if case_sensitive else {name.lower() for name in frame.columns}
    for name in answers.columns:
        if name in names:
            raise SchemaError(f"the frame has a column {name!r} already, and the prediction adds "
                              f"one; rename or drop it first: frame.drop({name!r})")
    return from_arrow_schema(answers.to_arrow(compat_level=pl.CompatLevel.oldest()).schema)


def _append_answers(
    batch: pa.RecordBatch, answers: pl.DataFrame, names: list[str], types: pa.Schema
) -> pa.RecordBatch:
    """The batch with the answers as further columns, which get these names and types."""
    import pyarrow as pa

    table = answers.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(types).combine_chunks()
    answer_columns = [column.chunk(0) if column.num_chunks else pa.array([], type=column.type)
                      for column in table.columns]
    return pa.RecordBatch.from_arrays([*batch.columns, *answer_columns],
                                      names=[*batch.schema.names, *names])
