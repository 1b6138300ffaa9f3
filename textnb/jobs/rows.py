"""Reads the rows of a job once, into one file to learn from and one to test on."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from textnb.bayes.decision import Decision as Thresholds
from textnb.errors import DataError, ExportError, ParameterError, SchemaError, SourceError
from textnb.evaluation.binomial import trials_needed
from textnb.export.write import export_model
from textnb.frames.cloud import is_url
from textnb.frames.conditions import rows_where
from textnb.frames.failures import reading
from textnb.frames.faults import WrongSeparator
from textnb.frames.label_lists import list_labels, split_labels
from textnb.frames.scan import scan, scan_table
from textnb.frames.sinks import write
from textnb.jobs.configuration import Decision, Job
from textnb.jobs.models import model_of, tokenizer_of
from textnb.jobs.staging import check_output
from textnb.learning.fitting import fit
from textnb.learning.text_settings import TextSettings

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
    with _at_key("input.train"), reading(settings.train):
        whole = scan_source(job, settings.train, settings.format, labels=True)
        rows = rows_where(whole, settings.train_where, "input.train_where")
        held_out = settings.test is None and settings.test_where is None
        if held_out:
            is_test = _held_out_mask(job, rows, settings.hold_out)
            rows, tests = rows.filter(~is_test), rows.filter(is_test)
            write(tests, str(test), None)
        write(rows, str(learn), None)
    if not held_out:
        source, key = _test_source(job)
        with _at_key(key), reading(source):
            tests = scan_source(job, source, settings.format, labels=True)
            write(rows_where(tests, settings.test_where, "input.test_where"), str(test), None)
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
def _at_key(key: str) -> Iterator[None]:
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


def _test_source(job: Job) -> tuple[str, str]:
    """The place of the test rows, and the key that names it."""
    test = job.input.test
    return (job.input.train, "input.train") if test is None else (test, "input.test")


def check_predictions(job: Job) -> None:
    """Check that the rows to predict can be read, before hours of learning and not after them.

    Raises
    ------
    SourceError, SchemaError
        If their source is missing, or lacks a column.
    ParameterError
        If their condition is not valid SQL on their columns.
    """
    settings = job.predictions
    if settings is None or settings.input is None:
        return
    with _at_key("predictions.input"), reading(settings.input):
        rows_where(scan_source(job, settings.input, settings.format, labels=False),
                   settings.where, "predictions.where")


def scan_stored(path: Path) -> pl.LazyFrame:
    """Scan a file that this job has written; brackets and stars in its name are no glob."""
    return pl.scan_parquet(path, glob=False)


def scan_source(job: Job, source: str, format: str | None, *, labels: bool) -> pl.LazyFrame:
    """Scan the rows of a source, and check their columns."""
    model = job.model
    label = model.label if labels else None
    options = job.input.storage_options if is_url(source) else None
    if model.kind_of_rows == "texts":
        # `fit` and the model's predictions check which columns hold lists of tokens.
        columns = job.input.label_columns
        rows = scan(source, text=model.columns, label=label if columns is None else None,
                    format=format, tokens=None, encoding=job.input.encoding,
                    storage_options=options, separator=job.input.separator)
        if label is None:
            return rows
        return (split_labels(rows, label, job.input.label_separator) if columns is None
                else list_labels(rows, columns, label))
    return scan_table(source, model.features, label, format=format, encoding=job.input.encoding,
                      storage_options=options, separator=job.input.separator)


def check_labels(job: Job, rows: RowFiles) -> None:
    """Check the labels of the training rows against the job, before anything is learned.

    Raises
    ------
    ParameterError
        If a class that the job names is not among the labels.
    DataError
        If there are too few rows for the guarantee that is asked for.
    """
    _check_answer_names(job, rows)
    label, learned = job.model.label, scan_stored(rows.train)
    is_multilabel = _holds_lists(job, learned)
    _check_kind_of_labels(job, is_multilabel)
    if is_multilabel:
        return
    counts = learned.group_by(label).len("n").collect()
    known = counts[label].cast(pl.String) if counts[label].dtype in (
        pl.Categorical, pl.Enum) else counts[label]
    named = {"test.positive": job.test.positive} | {
        f"exports.{k}.positive": export.positive for k, export in enumerate(job.exports)}
    decision = job.decision
    if decision is not None:
        named["decision.positive"] = decision.positive
    for key, positive in named.items():
        if positive is not None and positive not in known.to_list():
            raise ParameterError.unknown_choice(
                key, positive, [str(name) for name in sorted(known.drop_nulls().to_list())])
    if decision is None or decision.max_false_positive_rate is None:
        return
    own = pl.Series(known == decision.positive).fill_null(False)
    for rate, side, what in (
            (decision.max_false_positive_rate, ~own, f"rows that are not {decision.positive!r}"),
            (decision.max_false_negative_rate, own, f"rows of {decision.positive!r}")):
        found = int(counts.filter(side)["n"].sum())
        needed = 0 if rate is None else trials_needed(rate, decision.confidence)
        if found < needed:
            raise DataError(f"[decision]: to show a rate of {rate:g} at {decision.confidence:g} "
                            f"confidence takes {needed:,} {what} to learn from; there are "
                            f"{found:,}, so {needed - found:,} more are needed")


def _holds_lists(job: Job, rows: pl.LazyFrame) -> bool:
    return isinstance(rows.collect_schema()[job.model.label], pl.List)


def _check_kind_of_labels(job: Job, is_multilabel: bool) -> None:
    """Raises ParameterError for keys that are not for lists of labels, or for nothing else."""
    decision, validation = job.decision or Decision.model_construct(), job.validation
    if not is_multilabel:
        if decision.costs is not None and decision.positive is None:
            raise ParameterError(
                "[decision] costs is about one class: name it with decision.positive")
        for_lists = [name for name in ("by", "at_least", "at_most") if getattr(decision, name)]
        if for_lists:
            raise ParameterError(
                f"decision.{for_lists[0]} is for lists of labels, and the column "
                f"{job.model.label!r} holds one label per row: leave the key out, or say "
                "input.label_separator, or input.label_columns")
        return
    for key, is_set in {
            "validation.method = 'leave-one-out'":
                validation is not None and validation.method == "leave-one-out",
            "decision.max_false_positive_rate": decision.max_false_positive_rate,
            "decision.min_probability": decision.min_probability,
            "decision.positive": decision.positive is not None,
            "decision.scored = 'leave-one-out'":
                decision.scored == "leave-one-out" and "scored" in decision.model_fields_set,
            "test.positive": job.test.positive is not None,
            **{f"exports.{k}.positive": export.positive is not None
               for k, export in enumerate(job.exports)}}.items():
        if is_set:
            raise ParameterError.multilabel(key)


def _check_answer_names(job: Job, rows: RowFiles) -> None:
    """Check that no column of the rows to predict has the name of an answer."""
    if job.predictions is None or job.predictions.input is not None:
        return
    answers = {"predicted"} | ({"decision"} if job.decision is not None else set())
    answers |= {name for name in ("probability", "scores", "top")
                if getattr(job.predictions, name)}
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
    settings = job.input
    for (source, key), condition, name in (
            ((settings.train, "input.train"), settings.train_where, "input.train_where"),
            (_test_source(job), settings.test_where, "input.test_where")):
        with _at_key(key), reading(source):
            rows_where(scan_source(job, source, settings.format, labels=True), condition, name)
    check_predictions(job)
    rows = scan_source(job, settings.train, settings.format, labels=True)
    is_multilabel = _holds_lists(job, rows)
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
    for number, export in enumerate(job.exports):
        with tempfile.TemporaryDirectory(prefix="textnb-") as folder:
            positive = None if export.positive is None else "a"
            try:
                export_model(model, Path(folder) / export.file, export.to, positive=positive,
                             reads=export.reads)
            except ExportError as error:
                raise ExportError(f"exports.{number}: {error}") from None


def _small_model(job: Job, is_multilabel: bool) -> Any:
    """A `Fitted` of texts, or a `TableClassifier`."""
    settings, labels = job.model, [["a"], ["a", "b"], []] * 4 if is_multilabel else ["a", "b"] * 6
    parameters = {name: value for name, value in settings.parameters.items()
                  if name not in ("class_weight", "class_prior", "priors")}
    if settings.kind_of_rows == "tables":
        from textnb.classifiers.table import TableClassifier

        numbers = [[n % 2 + n / 7, n * n % 5] for n in range(12)]
        table = pl.DataFrame(numbers, schema=["x", "y"], orient="row").cast(pl.Float64)
        return TableClassifier(
            model_of(settings.kind, parameters), label="label").fit(
            table.with_columns(label=pl.Series(labels)))
    columns = settings.columns
    words = pl.Series([f"first words number {n}" if n % 2 else "other text" for n in range(12)])
    tokenizer = tokenizer_of(settings.tokens)
    small = TextSettings.of(
        model_of(settings.kind, parameters), text=columns, label=settings.label,
        tokenizer=tokenizer, binary=settings.binary)
    texts = {**dict.fromkeys(columns, words),
             **dict.fromkeys(tokenizer.columns_of_tokens(columns), words.str.split(" "))}
    fitted = fit(small, pl.DataFrame({**texts, settings.label: pl.Series(labels)}))
    if not is_multilabel or job.decision is None:
        return fitted
    return fitted.with_decision(Thresholds(
        {"a": 0.0, "b": 0.0}, at_least=job.decision.at_least, at_most=job.decision.at_most))


def _held_out_mask(job: Job, rows: pl.LazyFrame, share: float) -> pl.Expr:
    """Mask of a share of the rows, by a checksum of their contents: copies stay together."""
    if job.model.kind_of_rows == "texts":
        names = job.model.columns
    else:
        names = [name for name in rows.collect_schema().names() if name != job.model.label]
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
