"""Runs a whole job: audit, train, validate, calibrate, decide, test, report, predict, export.

All steps write into one folder, which becomes the output when the last step is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from textnb.errors import ExportError, SourceError
from textnb.evaluation.audit import audit_numbered
from textnb.export.verify import verify_export
from textnb.export.write import Exported
from textnb.files.replace import report_write_errors
from textnb.frames.batches import Progress
from textnb.frames.cloud import hide_secrets
from textnb.frames.conditions import rows_where
from textnb.frames.failures import naming_source
from textnb.frames.sinks import write
from textnb.learning.fitted import Fitted
from textnb.learning.parameters import to_json_value
from textnb.runtime import __version__
from textnb.runtime.progress import Size, current_progress
from textnb.scoring import texts
from textnb.workflow.decide import (
    Calibrated,
    calibrate,
    check_decision,
    choose_scoring,
    decide,
    scores_of,
)
from textnb.workflow.evaluate import Measures, evaluate_model
from textnb.workflow.job import Audit, Job, Predictions, Terms, settings_of
from textnb.workflow.models import AnyModel, save_model
from textnb.workflow.options import (
    CalibrateOptions,
    DecideOptions,
    TestOptions,
    TrainOptions,
    ValidateOptions,
)
from textnb.workflow.predict import Predicted, predict
from textnb.workflow.results import as_json
from textnb.workflow.split import (
    ROW_NUMBER,
    RowFiles,
    check_labels,
    check_report_libraries,
    naming_key_in,
    read_rows,
    rows_to_predict,
    scan_stored,
    try_export,
)
from textnb.workflow.staging import RECORD_NAME, record_text, stage_output
from textnb.workflow.train import Trained, train
from textnb.workflow.validate import validate


class Observer(Protocol):
    """Receives the progress of a job; by default it does nothing."""

    def step(self, name: str) -> Callable[[int], None]:
        """Begin a step; return a function that is called with each number of rows that was read."""
        return lambda rows: None

    def result(self, result: Any) -> None:
        """Receive the result of the current step, as the function of that step returns it."""
        return


class Silent(Observer):
    """An observer that shows nothing."""


@dataclass(frozen=True, eq=False)
class ExportResult:
    """An export, and whether it was run and its scores compared with the model's."""

    exported: Exported
    model: AnyModel
    is_verified: bool


class _Work:
    """A running job: its rows, and the model after the steps so far."""

    def __init__(self, job: Job, folder: Path, observer: Observer, rows: RowFiles) -> None:
        self.job, self.folder, self.observer, self.rows = job, folder, observer, rows
        self.model: Any = None
        self.audit: Any = None
        # For each method of scoring, scores of the training rows by models that did not learn them.
        self._scores: dict[str, Any] = {}

    @property
    def training_rows(self) -> Any:
        """The rows to learn from, as a LazyFrame."""
        return scan_stored(self.rows.train).drop(ROW_NUMBER, strict=False)

    @property
    def test_rows(self) -> Any:
        """The rows to test on, as a LazyFrame."""
        return scan_stored(self.rows.test).drop(ROW_NUMBER, strict=False)

    @contextmanager
    def naming_rows(self) -> Iterator[None]:
        """A context in which errors of rows name the input, and errors of the disk their copy."""
        with naming_source(self.job.input.train):
            try:
                yield
            except OSError as error:
                raise SourceError.unreadable(
                    str(self.rows.train.parent), error.strerror or error) from error

    def scores(self, method: str, advance: Progress) -> Any:
        """Score the training rows by models that did not learn them, once for each method."""
        if self.model.is_multilabel:
            method = "folds"
        if method not in self._scores:
            _begin_reading(Size(self.rows.n_train))
            self._scores[method] = scores_of(
                self.model, self.training_rows, method, folds=self.job.validation, progress=advance)
        return self._scores[method]

    def write(self, name: str, values: Any) -> None:
        with report_write_errors(self.folder / name):
            (self.folder / name).write_text(as_json(values, indent=1) + "\n", "utf-8")


def run_job(job: Job, observer: Observer | None = None) -> Path:
    """Run a job, and replace its output folder with the files that it wrote.

    Parameters
    ----------
    job : Job
        The result of `read_job`.
    observer : Observer, optional
        Receives steps, numbers of rows, and results.

    Returns
    -------
    Path
        The output folder: ``model.textnb``, ``metrics.json``, ``run.json`` and the files that the
        job names. The same job on the same rows gives the same bytes.

    Raises
    ------
    TextnbError
        If a step fails; the output then stays as it was.
    """
    observer = observer or Silent()
    check_report_libraries(job)
    with stage_output(job.output) as folder:
        cache = folder / ".rows"
        cache.mkdir()
        observer.step("reading rows")
        with rows_to_predict(job) as opened:
            # These rows are opened now only to find errors before hours of learning.
            to_predict = None if opened is None else opened.frame.collect_schema()
        rows = read_rows(job, cache)
        observer.result(rows)
        work = _Work(job, folder, observer, rows)
        with work.naming_rows():
            check_labels(job, rows, to_predict)
        for section, title, step in _STEPS:
            options = getattr(job, section)
            if options is None:
                continue
            advance = observer.step(title)
            with naming_key_in(section), work.naming_rows():
                result = step(work, options, advance)
            if result is not None:
                observer.result(result)
        _export(work)
        for path in cache.iterdir():
            path.unlink()
        cache.rmdir()
        (folder / RECORD_NAME).write_text(record_text({
            "files": sorted({*(path.name for path in folder.iterdir()), RECORD_NAME}),
            "textnb": __version__, "job": _record_of_job(job),
            "rows": {"learned": rows.n_train, "tested": rows.n_test,
                     "malformed": rows.n_malformed}}) + "\n", "utf-8")
    return Path(job.output)


def _record_of_job(job: Job) -> Any:
    """The settings of the job for ``run.json``, without secrets."""
    settings = to_json_value(settings_of(job))
    for section, key in (("input", "train"), ("input", "test"), ("predictions", "input")):
        source = settings.get(section, {}).get(key)
        if source is not None:
            settings[section][key] = hide_secrets(source)
    options = settings["input"].get("storage_options")
    if options:
        settings["input"]["storage_options"] = dict.fromkeys(options, "***")
    return settings


def _begin_reading(size: Size | None) -> None:
    """Tell the line of progress how many rows the step reads, if that is known."""
    current_progress().begin("reading", size)


def _audit(work: _Work, options: Audit, advance: Progress) -> Any:
    _begin_reading(Size(work.rows.n_train))
    rows, columns = scan_stored(work.rows.train), work.job.model.columns
    work.audit = audit_numbered(
        rows, number_column=ROW_NUMBER, test=work.test_rows, text=columns.text,
        label=columns.label, model=options.model, near=options.near, progress=advance)
    # A finding that the job must not have raises an error.
    work.audit.check(options.fail_on or ())
    write(work.audit.findings.lazy(), str(work.folder / options.file))
    return work.audit


def _train(work: _Work, options: TrainOptions, advance: Progress) -> Trained:
    if work.job.decision is not None and options.is_for_mail:
        # 0: training chooses no threshold, because the step `_decide` does.
        options = replace(options, learning=replace(options.learning, false_positives=0.0))
    _begin_reading(Size(work.rows.n_train))
    trained = train(options, work.training_rows, advance)
    work.model = trained.model
    return trained


def _validate(work: _Work, options: ValidateOptions, advance: Progress) -> Any:
    _begin_reading(Size(work.rows.n_train))
    validation = validate(work.model, work.training_rows, options, advance)
    work.write("validation.json", validation.to_dict())
    return validation


def _calibrate(work: _Work, options: CalibrateOptions, advance: Progress) -> Calibrated:
    scores = work.scores(choose_scoring(work.model), advance)
    calibrated = calibrate(work.model, scores, options)
    work.model = work.model.with_calibration(calibrated.calibration)
    return calibrated


def _decide(work: _Work, options: DecideOptions, advance: Progress) -> Fitted:
    check_decision(work.model, options)
    scores = work.scores(options.scored or "leave-one-out", advance) if options.needs_rows else None
    fitted: Fitted = work.model.with_decision(decide(work.model, scores, options))
    work.model = fitted
    return fitted


def _test(work: _Work, options: TestOptions, advance: Progress) -> Measures:
    # Each job has this step, and no later one changes the model.
    save_model(work.model, work.folder / "model.textnb")
    report = None if options.report is None else str(work.folder / options.report)
    needs_learned_rows = isinstance(work.model, Fitted) and report is not None
    _begin_reading(Size(work.rows.n_test))
    tested = evaluate_model(work.model, work.test_rows, replace(options, report=report),
                            learned=work.training_rows if needs_learned_rows else None,
                            with_probabilities=True, progress=advance, audit=work.audit)
    work.write("metrics.json", tested.to_dict())
    return tested


def _list_terms(work: _Work, options: Terms, advance: Progress) -> None:
    write(texts.top(work.model, options.k).lazy(), str(work.folder / options.file),
          options.file_format, safe_csv=options.safe_csv)


def _predict(work: _Work, options: Predictions, advance: Progress) -> Predicted:
    def write_answers(rows: Any, size: Size | None) -> Predicted:
        _begin_reading(size)
        return predict(work.model, rows, options, str(work.folder / options.file),
                       progress=advance, safe_csv=options.safe_csv)

    with rows_to_predict(work.job) as rows:
        if rows is not None:
            return write_answers(rows.frame, rows.size())
    return write_answers(rows_where(work.test_rows, options.where, "predictions.where"),
                         Size(work.rows.n_test) if options.where is None else None)


def _export(work: _Work) -> None:
    for number, settings in enumerate(work.job.exports):
        work.observer.step(f"exporting to {settings.to or settings.file}")
        exported = try_export(work.model, work.folder, settings, number)
        if settings.verify:
            try:
                passed = verify_export(exported.path).passed
            except ExportError as error:
                raise ExportError(f"exports: {error}; or set verify = false, and verify where the "
                                  "engine is") from None
            if not passed:
                raise ExportError(f"exports: {settings.file} does not score as the model does")
        work.observer.result(ExportResult(exported, work.model, settings.verify))


# The section of each step, its title, and its function. The function takes the work, the section's
# options, and a callable that gets numbers of rows.
_STEPS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("audit", "auditing", _audit), ("model", "training", _train),
    ("validation", "validating", _validate),
    ("calibration", "calibrating", _calibrate), ("decision", "choosing thresholds", _decide),
    ("test", "testing", _test), ("terms", "listing terms", _list_terms),
    ("predictions", "predicting", _predict))
