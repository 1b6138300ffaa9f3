"""Reads the rows of a job once, into one file to learn from and one to test on."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from textnb.bayes.decision import Decision
from textnb.errors import (
    DataError,
    EngineError,
    ExportError,
    Mention,
    ParameterError,
    SchemaError,
    SourceError,
    quantity,
)
from textnb.files.replace import real_path
from textnb.frames.failures import naming_source
from textnb.frames.faults import WrongSeparator
from textnb.frames.features import feature_columns
from textnb.frames.names import check_name
from textnb.frames.sinks import write
from textnb.learning.fitting import check_start
from textnb.learning.settings import LimitSettings
from textnb.scoring.columns import schema_of
from textnb.storage.textmodel import load_fitted
from textnb.workflow.decide import decide
from textnb.workflow.export import export
from textnb.workflow.job import Export, Job, as_key
from textnb.workflow.models import AnyModel, class_named, predicts_lists
from textnb.workflow.options import DecideOptions, LabelledOptions, LearnOptions, ValidateOptions
from textnb.workflow.predict import answers_for, columns_to_write
from textnb.workflow.rows import Rows, open_rows, options_for
from textnb.workflow.staging import check_output
from textnb.workflow.train import text_settings, tokenizer_of, train

# A column with the number of each row in the input, which only an audit reads.
ROW_NUMBER = "__textnb_number"
# Rows are held out by a checksum of their text, modulo this number.
_MODULUS = 1 << 20
# The start value of the checksum, which is also the checksum of an empty text. It is in the middle
# of the range, so that rows with empty texts are held out only if half of all rows are.
_CHECKSUM_START = 1 << 19


@dataclass(frozen=True)
class RowFiles:
    """The rows of a job, in two files.

    Attributes
    ----------
    train, test : Path
        Parquet files of the rows to learn from, and to test on.
    n_train, n_test : int
        How many rows they have.
    test_is_held_out : bool
        Whether the test rows were held out of one input.
    n_malformed : int
        How many messages are malformed, if the input is mail.
    """

    train: Path
    test: Path
    n_train: int
    n_test: int
    test_is_held_out: bool
    n_malformed: int


def read_rows(job: Job, folder: Path) -> RowFiles:
    """Read the input, once, into two Parquet files; in bounded memory.

    Raises
    ------
    DataError
        If one of the files has no rows, or a message can't be read.
    """
    settings = job.input
    train_path, test_path = folder / "train.parquet", folder / "test.parquet"
    test_is_held_out = settings.test is None and settings.test_where is None
    with train_rows(job) as train:
        rows = train.frame
        if job.audit is not None:
            # Findings name rows by their numbers in the input.
            rows = rows.with_row_index(ROW_NUMBER)
        if test_is_held_out:
            is_test = _held_out_mask(job, rows, settings.hold_out)
            write(rows.filter(is_test), str(test_path))
            rows = rows.filter(~is_test)
        write(rows, str(train_path))
        train.refuse_unreadable()
    n_malformed = len(train.malformed)
    if not test_is_held_out:
        with test_rows(job) as test:
            write(test.frame, str(test_path))
        n_malformed += len(test.malformed)
    n_train, n_test = (int(scan_stored(path).select(pl.len()).collect().item())
                       for path in (train_path, test_path))
    for name, count in (("train", n_train), ("test", n_test)):
        if not count:
            purpose = "learn from" if name == "train" else "test on"
            key = f"{name}_where"
            if test_is_held_out:
                # If there are rows on the other side, the share is the reason.
                key = "hold_out" if n_train or n_test else "train_where"
            value = getattr(settings, key)
            raise DataError(f"no rows to {purpose}: " + (
                "see [input] in the job's file" if value is None else
                f"input.{key} = {value!r} leaves none of them"))
    return RowFiles(train_path, test_path, n_train, n_test, test_is_held_out, n_malformed)


@contextmanager
def naming_key(key: str) -> Iterator[None]:
    """A context in which errors of a source begin with the key of the job that names it."""
    try:
        yield
    except WrongSeparator as error:
        advice = ('input.format = "tsv"' if error.separator == "\t" else
                  f'input.separator = "{error.separator}"')
        raise SchemaError(f"{key}: {error.problem}. Say so with {advice}") from None
    except SchemaError as error:
        if error.missing_role not in ("text", "label", "features"):
            raise error.add_prefix(f"{key}: ") from None
        raise SchemaError(f"{key}: {error.problem}. Rename it, or say which with "
                          f"model.{error.missing_role}") from None
    except SourceError as error:
        if error.of_output:
            raise
        # In the message, settings are written as keys of the job.
        write_setting = partial(as_key, section=key.partition(".")[0])
        raise SourceError(f"{key}: {error.message(write_setting)}") from None
    except ParameterError as error:
        raise _under_key(error, "input") from None
    except DataError as error:
        raise error.for_reader(partial(as_key, section="input")) from None


@contextmanager
def naming_key_in(section: str) -> Iterator[None]:
    """A context in which an error about an option begins with its key in a section of the job."""
    try:
        yield
    except ParameterError as error:
        raise _under_key(error, section) from None
    except DataError as error:
        raise error.for_reader(partial(as_key, section=section)) from None


def _under_key(error: ParameterError, section: str) -> ParameterError:
    """The error in the words of a job, if it begins with a setting of the section."""
    key = as_key(Mention(error.setting or ""), section)
    if error.setting is None or not key.startswith(f"{section}."):
        return error
    # ``for_reader`` writes every other setting that the message names as a key.
    message = str(error.for_reader(partial(as_key, section=section)))
    return ParameterError(f"{key}: {message.removeprefix(key).lstrip(':= ')}")


def scan_stored(path: Path) -> pl.LazyFrame:
    """Scan a file that this job has written; brackets and stars in its name are not a glob."""
    return pl.scan_parquet(path, glob=False)


def train_rows(job: Job) -> AbstractContextManager[Rows]:
    """The rows to learn from; or all rows, if some of them are held out."""
    return _rows(job, "input.train", job.input.train, job.input.train_where, "input.train_where")


def test_rows(job: Job) -> AbstractContextManager[Rows]:
    """The rows to test on, if they are not held out."""
    key, source = ("input.train", job.input.train) if job.input.test is None else (
        "input.test", job.input.test)
    return _rows(job, key, source, job.input.test_where, "input.test_where")


@contextmanager
def rows_to_predict(job: Job) -> Iterator[Rows | None]:
    """The rows to predict; None if the job predicts the test rows, or nothing."""
    settings = job.predictions
    if settings is None or settings.input is None:
        yield None
        return
    # Rows to predict have no labels, so the options for labels are left out.
    options = replace(job.input, format=settings.format, label_separator=None, label_columns=None,
                      classes=None)
    with _rows(job, "predictions.input", settings.input, settings.where, "predictions.where",
               options) as rows:
        yield rows


@contextmanager
def _rows(
    job: Job, key: str, source: str, where: str | None, where_key: str,
    options: LabelledOptions | None = None,
) -> Iterator[Rows]:
    """The rows of a source; its errors name the key.

    ``options`` are those of rows to predict, which need no labels; by default, the rows have labels
    and are read with the options of the input.
    """
    model = job.model
    text, features = model.text_columns if model.is_for_texts else None, model.learning.features
    with naming_key(key), naming_source(source):
        yield open_rows(
            source, options_for(source, options or job.input), text,
            model.columns.label if options is None else None, features, where=where,
            option=where_key)


def check_labels(job: Job, rows: RowFiles, to_predict: Iterable[str] | None = None) -> None:
    """Check the labels of the training rows against the job, before anything is learned.

    ``to_predict`` has the columns of the rows to predict, if they are not the test rows.

    Raises
    ------
    ParameterError
        If a class that the job names is not among the labels, an option is not for their kind, or
        there is no such column to write.
    SchemaError
        If a column of the rows to predict has the name of an answer, or the test rows have another
        kind of labels than the training rows.
    DataError
        If labels are null.
    """
    label, training_rows = job.model.columns.label, scan_stored(rows.train)
    check_columns(job, training_rows.collect_schema())
    is_multilabel = isinstance(training_rows.collect_schema()[label], pl.List)
    _check_answers(job, scan_stored(rows.test).collect_schema() if to_predict is None
                   else to_predict, is_multilabel)
    _check_label_columns(job, rows, is_multilabel)
    _check_kind_of_labels(job, is_multilabel)
    labels = pl.col(label).explode() if is_multilabel else pl.col(label)
    classes = training_rows.select(labels.unique()).collect()[label]
    names = (classes.cast(pl.String) if classes.dtype in (pl.Categorical, pl.Enum)
             else classes).drop_nulls().sort().to_list()
    for key, positive in _classes_by_key(job).items():
        class_named(positive, names, key)
        if positive is not None and key.startswith("exports.") and len(names) != 2:
            raise ParameterError(f"{key}: one w and b is of two classes, and these are "
                                 f"{len(names):,}; leave it out, for the weights of each")


def _check_label_columns(job: Job, rows: RowFiles, is_multilabel: bool) -> None:
    """Check the labels of both files. Errors name no row, as each file has its own row numbers."""
    label, settings = job.model.columns.label, job.input
    test_key = "input.train" if settings.test is None else "input.test"
    for key, path, where in (
            ("input.train", rows.train, "train_where"),
            (test_key, rows.test, "train_where" if rows.test_is_held_out else "test_where")):
        frame = scan_stored(path)
        if isinstance(frame.collect_schema()[label], pl.List) != is_multilabel:
            raise SchemaError(
                f"{key}: the column {label!r} holds " + (
                    "one label per document, and that of input.train holds lists of labels: write "
                    "lists of labels in both, or texts in both that input.label_separator splits"
                    if is_multilabel else
                    "lists of labels, and that of input.train holds one label per document: write "
                    "both alike"))
        column = pl.col(label)
        has_null = (column.list.drop_nulls().list.len() < column.list.len() if is_multilabel
                    else pl.lit(False))
        n_nulls, n_lists_with_null = frame.select(
            nulls=column.is_null().sum(), lists=has_null.sum()).collect().row(0)
        if n_nulls:
            raise DataError(
                f"{key}: the label column {label!r} is null in {quantity(n_nulls, 'row')}; label "
                f"them, or drop them with input.{where} = \"{label} IS NOT NULL\"")
        if n_lists_with_null:
            raise DataError(
                f"{key}: lists of the label column {label!r} hold a null in "
                f"{quantity(n_lists_with_null, 'row')}; write lists without nulls. An empty list "
                "says that there is no label")


def _classes_by_key(job: Job) -> dict[str, Any]:
    """The classes that the job names, by the key that names each."""
    classes = {f"{name}.positive": getattr(section, "positive", None) for name, section in (
        ("validation", job.validation), ("decision", job.decision), ("test", job.test))}
    return classes | {f"exports.{k}.positive": each.positive for k, each in enumerate(job.exports)}


def _check_kind_of_labels(job: Job, is_multilabel: bool) -> None:
    """Raise ParameterError for keys that do not fit the kind of labels: lists, or one each."""
    try:
        (job.decision or DecideOptions()).check_labels(is_multilabel=is_multilabel)
    except ParameterError as error:
        raise ParameterError(f"decision.{error}") from None
    for k, each in enumerate(job.exports):
        if is_multilabel and each.positive is not None:
            raise ParameterError.multilabel("one w and b", f"exports.{k}.positive")


def _check_answers(job: Job, columns: Iterable[str], is_multilabel: bool) -> None:
    """Check the answers, and the columns to write, against the columns of the rows to predict."""
    settings = job.predictions
    if settings is None:
        return
    columns = [name for name in columns if name != ROW_NUMBER]

    # Training may choose a threshold too.
    may_decide = job.decision is not None or bool(job.model.false_positives)
    names = schema_of(pl.Series(["any"]), answers_for(settings),
                      Decision({"any": 0.0}) if may_decide else None,
                      calibrated=job.calibration is not None,
                      link="sigmoid" if is_multilabel else "softmax")
    SchemaError.check_new(names, columns)
    with naming_key_in("predictions"):
        columns_to_write(settings.columns, columns, names)


def check_report_libraries(job: Job) -> None:
    """Raise EngineError if libraries for the job's report are missing."""
    if job.test.report is None:
        return
    from textnb.report.charts import check_installed

    try:
        check_installed()
    except ParameterError as error:
        # Not an error of usage: the key is right, but a library is not installed.
        raise EngineError(f"test.report: {error}") from None


def check_columns(job: Job, schema: Mapping[str, Any]) -> None:
    """Raise SchemaError if the rows to learn from lack a column that a key names."""
    validation = job.validation or ValidateOptions()
    for key, name, role in (("model.weight", job.model.learning.weight, "weight"),
                            ("validation.groups", validation.groups, "groups"),
                            ("validation.time", validation.time, "time")):
        if name is None:
            continue
        if name not in schema:
            problem = SchemaError.missing_column(name, [*schema], role).problem
            raise SchemaError(f"{key}: {problem}")
        check_name(name, role)


def check_job(job: Job) -> None:
    """Check all that can be checked of a job without reading its rows.

    Raises
    ------
    TextnbError
        If its output can't be written, a source is missing or lacks a column, its solver can't
        begin from a model, a library is missing, or an export is not possible.
    """
    check_output(real_path(job.output))
    check_report_libraries(job)
    with train_rows(job) as rows:
        schema = columns = rows.frame.collect_schema()
    check_columns(job, schema)
    is_multilabel = isinstance(schema[job.model.columns.label], pl.List)
    for open_source in (test_rows, rows_to_predict):
        # To open rows is to check them. Without rows to predict, the test rows are predicted.
        with open_source(job) as opened:
            columns = columns if opened is None else opened.frame.collect_schema()
    _check_answers(job, columns, is_multilabel)
    if job.model.learning.warm_start is not None:
        with naming_key_in("model"):
            check_start(text_settings(job.model), load_fitted(job.model.learning.warm_start))
    _check_kind_of_labels(job, is_multilabel)
    _check_exports(job, is_multilabel)


def _check_exports(job: Job, is_multilabel: bool) -> None:
    """Check exports by trying each with a model of a few rows that has the job's settings."""
    if not job.exports:
        return
    try:
        model = _small_model(job, is_multilabel)
    except DataError:
        # The job's tokenizer finds no token in these few words, so nothing can be checked yet.
        return
    for number, each in enumerate(job.exports):
        with tempfile.TemporaryDirectory(prefix="textnb-") as folder:
            positive = None if each.positive is None else "a"
            try_export(model, Path(folder), replace(each, positive=positive), number)


def try_export(model: AnyModel, folder: Path, settings: Export, number: int) -> Any:
    """Write an export; an error names its key."""
    try:
        return export(model, folder / settings.file, settings)
    except ExportError as error:
        raise ExportError(f"exports.{number}: {error}") from None


def _small_model(job: Job, is_multilabel: bool) -> AnyModel:
    """A model of twelve rows, with the job's settings as far as they do not depend on rows."""
    model = job.model
    labels = [["a"], ["a", "b"], []] * 4 if is_multilabel else ["a", "b"] * 6
    # Parameters with a value for each of the real classes are left out.
    parameters = {name: value for name, value in model.parameters.items()
                  if name not in ("class_weight", "class_prior", "priors")}
    options = replace(
        model, parameters=parameters, limits=LimitSettings(binary=model.limits.binary),
        is_for_mail=False, learning=LearnOptions())
    if model.is_for_texts:
        words = pl.Series([f"first words number {n}" if n % 2 else "other text" for n in range(12)])
        token_columns = tokenizer_of(model.tokenizer).columns_of_tokens(model.text_columns)
        columns = {name: words.str.split(" ") if name in token_columns else words
                   for name in model.text_columns}
    else:
        columns = {"x": pl.Series([n % 2 + n / 7 for n in range(12)]),
                   "y": pl.Series([float(n * n % 5) for n in range(12)])}
    trained = train(options, pl.LazyFrame({**columns, model.columns.label: pl.Series(labels)}))
    if job.decision is None or not predicts_lists(trained.model):
        return trained.model
    # An export can refuse a decision for lists only by its limits on the number of labels.
    label_limits = DecideOptions(at_least=job.decision.at_least, at_most=job.decision.at_most)
    return trained.model.with_decision(decide(trained.model, scores=None, options=label_limits))


def _held_out_mask(job: Job, rows: pl.LazyFrame, share: float) -> pl.Expr:
    """Mask of a share of the rows, by a checksum of their contents: copies stay together.

    The contents are what the model reads: the text columns, or the features.
    """
    names = job.model.text_columns if job.model.is_for_texts else feature_columns(
        rows, job.model.learning.features, job.model.columns.label)
    limit = round(share * _MODULUS)

    def is_held_out(values: pl.Series) -> pl.Series:
        # A checksum from Python, because Polars' hashes change from release to release.
        return pl.Series(
            [zlib.crc32(value.encode(), _CHECKSUM_START) % _MODULUS < limit for value in values],
            dtype=pl.Boolean)

    # The order is that of the columns in the rows, however the job names them.
    texts = [_as_string(pl.col(name), dtype).fill_null("")
             for name, dtype in rows.collect_schema().items() if name in names]
    return pl.concat_str(texts, separator="\0").map_batches(
        is_held_out, return_dtype=pl.Boolean, is_elementwise=True)


def _as_string(values: pl.Expr, dtype: Any) -> pl.Expr:
    """Values as strings: the items of lists and Arrays are joined, but for those that are null."""
    if isinstance(dtype, pl.Array):
        return _as_string(values.arr.to_list(), pl.List(dtype.inner))
    if isinstance(dtype, pl.List):
        return values.list.eval(_as_string(pl.element(), dtype.inner)).list.join("\n")
    return values.cast(pl.String)
