"""Reads the rows of a job once, into one file to learn from and one to test on."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import polars as pl

from textnb.errors import DataError, ExportError, ParameterError, SchemaError, SourceError
from textnb.frames.failures import reading
from textnb.frames.faults import WrongSeparator
from textnb.frames.sinks import write
from textnb.learning.settings import LimitSettings
from textnb.workflow.decide import decide
from textnb.workflow.export import export
from textnb.workflow.job import Export, Input, Job
from textnb.workflow.models import AnyModel, holds_lists
from textnb.workflow.options import DecideOptions, LabelledOptions
from textnb.workflow.rows import for_place, open_rows
from textnb.workflow.staging import check_output
from textnb.workflow.train import tokenizer_of, train

_PARTS = 1 << 20
# The start value of the checksum, which is also the checksum of an empty text. It is in the middle
# of the range, so that rows with empty texts are learned and not held out.
_START = 1 << 19


@dataclass(frozen=True)
class RowFiles:
    """The rows of a job, in two files.

    Attributes
    ----------
    train, test : Path
        Parquet files of the rows to learn from, and to test on.
    learned, tested : int
        How many rows they have.
    held_out : bool
        Whether the test rows were held out of one input.
    malformed : int
        How many messages are malformed, where the input is mail.
    """

    train: Path
    test: Path
    learned: int
    tested: int
    held_out: bool
    malformed: int


def read_rows(job: Job, folder: Path) -> RowFiles:
    """Read the input, once, into two Parquet files; in bounded memory.

    Raises
    ------
    DataError
        If either has no rows.
    """
    settings = job.input
    learn, test = folder / "train.parquet", folder / "test.parquet"
    held_out = settings.test is None and settings.test_where is None
    with at_source("input.train"), reading(settings.train):
        rows = _train_rows(job)
        if held_out:
            is_test = _held_out_mask(job, rows, settings.hold_out)
            rows, tests = rows.filter(~is_test), rows.filter(is_test)
            write(tests, str(test), None)
        write(rows, str(learn), None)
    if not held_out:
        with _test_rows(job) as tests:
            write(tests, str(test), None)
    learned, tested = (int(scan_stored(path).select(pl.len()).collect().item())
                       for path in (learn, test))
    chosen = settings.train_where if held_out else settings.test_where
    for name, count, where in (("train", learned, settings.train_where),
                               ("test", tested, chosen)):
        if not count:
            what = "learn from" if name == "train" else "test on"
            key = f"input.{'train' if held_out else name}_where"
            raise DataError(f"no rows to {what}: " + (
                "see [input] in the job's file" if where is None else
                f"{key} = {where!r} leaves none of them"))
    malformed = _count_malformed(learn) + _count_malformed(test)
    return RowFiles(learn, test, learned, tested, held_out, malformed)


@contextmanager
def at_source(key: str) -> Iterator[None]:
    """A context in which errors of a source name the job's key that says where it is."""
    try:
        yield
    except WrongSeparator as error:
        advice = ('input.format = "tsv"' if error.separator == "\t" else
                  f'input.separator = "{error.separator}"')
        raise SchemaError(f"{key}: {error.problem}. Say so with {advice}") from None
    except SchemaError as error:
        if error.missing_role not in ("text", "label"):
            raise error.under(key) from None
        raise SchemaError(f"{key}: {error.problem}. Rename it, or say which with "
                          f"model.{error.missing_role}") from None
    except SourceError as error:
        if error.of_output:
            raise
        raise error.under(key) from None
    except ParameterError as error:
        if error.setting in {each.name for each in fields(Input)}:
            raise ParameterError(f"input.{error.setting}: {error.without_setting}") from None
        raise


@contextmanager
def at_key(section: str, options: Any) -> Iterator[None]:
    """A context in which an error that begins with an option names it as a key of a section."""
    try:
        yield
    except ParameterError as error:
        name = error.setting
        if name not in {each.name for each in fields(options)}:
            raise
        raise ParameterError(f"{section}.{name}: {error.without_setting}") from None


def scan_stored(path: Path) -> pl.LazyFrame:
    """Scan a file that this job has written; brackets and stars in its name are no glob."""
    return pl.scan_parquet(path, glob=False)


def _train_rows(job: Job) -> pl.LazyFrame:
    return _open(job, job.input.train, job.input, job.model.columns.label, job.input.train_where,
                 "input.train_where")


@contextmanager
def _test_rows(job: Job) -> Iterator[pl.LazyFrame]:
    """The rows to test on, if they are not held out."""
    settings = job.input
    place, key = (settings.train, "input.train") if settings.test is None else (
        settings.test, "input.test")
    with at_source(key), reading(place):
        yield _open(job, place, settings, job.model.columns.label, settings.test_where,
                    "input.test_where")


@contextmanager
def rows_to_predict(job: Job) -> Iterator[pl.LazyFrame | None]:
    """The rows of a place of their own; None if the test rows are predicted, or none."""
    settings = job.predictions
    if settings is None or settings.input is None:
        yield None
        return
    options = replace(job.input, format=settings.format)
    with at_source("predictions.input"), reading(settings.input):
        yield _open(job, settings.input, options, None, settings.where, "predictions.where")


def _open(
    job: Job, place: str, options: LabelledOptions, label: str | None, where: str | None, key: str
) -> pl.LazyFrame:
    """The rows of a place; those without a label are not of lists."""
    model = job.model
    if label is None:
        options = replace(options, label_separator=None, label_columns=None)
    text, features = model.text_columns if model.is_texts else None, model.learning.features
    return open_rows(place, for_place(place, options), text, label,
                     None if features is None else list(features), where=where, option=key)


def check_labels(job: Job, rows: RowFiles) -> None:
    """Check the labels of the training rows against the job, before anything is learned.

    Raises
    ------
    ParameterError
        If a class that the job names is not among the labels, or an option is not for them.
    """
    _check_answer_names(job, rows)
    label, learned = job.model.columns.label, scan_stored(rows.train)
    is_multilabel = isinstance(learned.collect_schema()[label], pl.List)
    _check_kind_of_labels(job, is_multilabel)
    if is_multilabel:
        return
    known = learned.select(pl.col(label).unique()).collect()[label]
    names = (known.cast(pl.String) if known.dtype in (pl.Categorical, pl.Enum)
             else known).drop_nulls().sort().to_list()
    for key, positive in _classes_named(job).items():
        if positive is not None and positive not in names:
            raise ParameterError.unknown_choice(key, positive, map(str, names))


def _classes_named(job: Job) -> dict[str, Any]:
    """The classes that the job names, by key."""
    named = {f"{name}.positive": getattr(section, "positive", None) for name, section in (
        ("validation", job.validation), ("decision", job.decision), ("test", job.test))}
    return named | {f"exports.{k}.positive": each.positive for k, each in enumerate(job.exports)}


def _check_kind_of_labels(job: Job, is_multilabel: bool) -> None:
    """Raises ParameterError for keys that are not for lists of labels, or for nothing else."""
    try:
        (job.decision or DecideOptions()).check_labels(is_multilabel=is_multilabel)
    except ParameterError as error:
        raise ParameterError(f"decision.{error}") from None
    for key, positive in _classes_named(job).items():
        if is_multilabel and positive is not None:
            raise ParameterError.multilabel(key)


def _check_answer_names(job: Job, rows: RowFiles) -> None:
    """Check that no column of the rows to predict has the name of an answer."""
    settings = job.predictions
    if settings is None or settings.input is not None:
        return
    answers = {"predicted"} | ({"decision"} if job.decision is not None else set())
    answers |= {name for name in ("probability", "scores", "top") if getattr(settings, name)}
    for name in scan_stored(rows.test).collect_schema():
        if name in answers:
            raise SchemaError.column_exists(name)


def check_job(job: Job) -> None:
    """Check all that can be checked of a job without reading its rows.

    Raises
    ------
    TextnbError
        If its output can't be written, a source is missing or lacks a column, or an export is not
        possible.
    """
    check_output(Path(job.output).resolve())
    with at_source("input.train"), reading(job.input.train):
        label = _train_rows(job).collect_schema()[job.model.columns.label]
    for check in (_test_rows, rows_to_predict):
        with check(job):
            pass
    is_multilabel = isinstance(label, pl.List)
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
    parameters = {name: value for name, value in model.parameters.items()
                  if name not in ("class_weight", "class_prior", "priors")}
    options = replace(
        model, parameters=parameters, limits=LimitSettings(binary=model.limits.binary),
        is_for_mail=False, learning=type(model.learning)())
    if model.is_texts:
        words = pl.Series([f"first words number {n}" if n % 2 else "other text"
                           for n in range(12)])
        lists = tokenizer_of(model.tokenizer).columns_of_tokens(model.text_columns)
        columns = {name: words.str.split(" ") if name in lists else words
                   for name in model.text_columns}
    else:
        columns = {"x": pl.Series([n % 2 + n / 7 for n in range(12)]),
                   "y": pl.Series([float(n * n % 5) for n in range(12)])}
    trained = train(options, pl.LazyFrame({**columns, model.columns.label: pl.Series(labels)}))
    if job.decision is None or not holds_lists(trained.model):
        return trained.model
    ranks = DecideOptions(at_least=job.decision.at_least, at_most=job.decision.at_most)
    return trained.model.with_decision(decide(trained.model, None, ranks))


def _held_out_mask(job: Job, rows: pl.LazyFrame, share: float) -> pl.Expr:
    """Mask of a share of the rows, by a checksum of their contents: copies stay together."""
    if job.model.is_texts:
        names = job.model.text_columns
    else:
        names = [name for name in rows.collect_schema().names()
                 if name != job.model.columns.label]
    limit = round(share * _PARTS)

    def select(values: pl.Series) -> pl.Series:
        # A checksum from Python, because Polars' hashes change from release to release.
        return pl.Series([zlib.crc32(value.encode(), _START) % _PARTS < limit for value in values],
                         dtype=pl.Boolean)

    texts = [pl.col(name).cast(pl.String).fill_null("") if dtype != pl.List(pl.String)
             else pl.col(name).list.join("\n") for name, dtype in rows.collect_schema().items()
             if name in names and not (dtype.is_nested() and dtype != pl.List(pl.String))]
    return pl.concat_str(texts, separator="\0").map_batches(
        select, return_dtype=pl.Boolean, is_elementwise=True)


def _count_malformed(path: Path) -> int:
    frame = scan_stored(path)
    if frame.collect_schema().get("errors") != pl.List(pl.String):
        return 0
    return int(frame.select((pl.col("errors").list.len() > 0).sum()).collect().item())
