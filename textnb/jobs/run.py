"""A whole job in one go: train, validate, calibrate, decide, test, report, predict, export.

Every step writes into one folder, which becomes the output when the last step is done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from textnb.bayes.decision import Decision as Thresholds
from textnb.errors import ExportError, TextnbError, quantity
from textnb.evaluation.calibration import fit_calibration, reliability
from textnb.evaluation.class_thresholds import choose_class_thresholds
from textnb.evaluation.decisions import choose_threshold, decide_by_fit
from textnb.evaluation.evaluate import evaluate, evaluate_roc
from textnb.evaluation.folds import cross_validate
from textnb.evaluation.held_out import held_out
from textnb.evaluation.leave_one_out import leave_one_out
from textnb.evaluation.metrics import Evaluation
from textnb.export.verify import verify_export
from textnb.export.write import Exported, export_model
from textnb.frames.cloud import hide_secrets
from textnb.frames.conditions import rows_where
from textnb.frames.failures import reading
from textnb.frames.sinks import write
from textnb.jobs.configuration import (
    Calibration,
    Decision,
    Job,
    Predictions,
    Terms,
    Validation,
)
from textnb.jobs.models import model_of, tokenizer_of
from textnb.jobs.rows import (
    RowFiles,
    check_labels,
    check_predictions,
    read_rows,
    scan_source,
    scan_stored,
)
from textnb.jobs.staging import RECORD, record, stage_output
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import fit
from textnb.learning.memory_limit import byte_words
from textnb.learning.parameters import plain
from textnb.learning.settings import is_mail_recipe
from textnb.learning.text_settings import TextSettings
from textnb.scoring import texts
from textnb.scoring.columns import Answers
from textnb.storage.textmodel import save_fitted

# A step of a job: it takes the work, the section of the job that asks for it, and what counts rows.
Step = Callable[["_Work", Any, Callable[[int], None]], None]


class Observer(Protocol):
    """Receives the progress of a job."""

    def step(self, name: str) -> Callable[[int], None]:
        """Begin a step; return what is called with each number of rows that the job has read."""

    def result(self, text: str) -> None:
        """Receive a result of the current step, as a sentence."""


class Silent:
    """An observer that shows nothing."""

    def step(self, name: str) -> Callable[[int], None]:
        return lambda rows: None

    def result(self, text: str) -> None:
        pass


@dataclass
class _Work:
    job: Job
    folder: Path
    observer: Observer
    rows: RowFiles
    # A `Fitted` of texts, or a `TableClassifier`; importing that would import scikit-learn.
    model: Any = None
    left_out: Any = None

    @property
    def is_multilabel(self) -> bool:
        return isinstance(self.model, Fitted) and self.model.is_multilabel

    def run(self, section: str, title: str, step: Step) -> None:
        """Run a step if the job has the section that asks for it."""
        settings = getattr(self.job, section)
        if settings is not None:
            step(self, settings, self.observer.step(title))

    def write(self, name: str, values: Any) -> None:
        text = json.dumps(values, ensure_ascii=False, indent=1, allow_nan=False, default=str)
        (self.folder / name).write_text(text + "\n", "utf-8")


def run_job(job: Job, observer: Observer | None = None) -> Path:
    """Run a job, and replace its output folder with the files that it wrote.

    Parameters
    ----------
    job : Job
        As `read_job` gives it.
    observer : Observer, optional
        Receives steps, numbers of rows, and results.

    Returns
    -------
    Path
        The output folder: ``model.textnb``, ``metrics.json``, ``run.json`` and files the job names.
        The same job on the same rows gives the same bytes.

    Raises
    ------
    TextnbError
        The error of the step that fails; the output is then as it was.
    """
    observer = observer or Silent()
    if job.test.report is not None:
        from textnb.report.charts import check_installed

        check_installed()
    with stage_output(job.output) as folder:
        cache = folder / ".rows"
        cache.mkdir()
        observer.step("reading rows")
        check_predictions(job)
        rows = read_rows(job, cache)
        how = " (held out of the same input)" if rows.held_out else ""
        observer.result(f"{quantity(rows.learned, 'row')} to learn from, {rows.tested:,} to test "
                        f"on{how}")
        if rows.malformed:
            observer.result(f"{quantity(rows.malformed, 'message', 'is', 'are')} malformed: see "
                            "their column errors")
        check_labels(job, rows)
        work = _Work(job, folder, observer, rows)
        _train(work)
        for section, title, step in _BEFORE_TEST:
            work.run(section, title, step)
        _test(work)
        for section, title, step in _AFTER_TEST:
            work.run(section, title, step)
        _export(work)
        for path in cache.iterdir():
            path.unlink()
        cache.rmdir()
        (folder / RECORD).write_text(record({
            "files": sorted({*(path.name for path in folder.iterdir()), RECORD}),
            "textnb": version("textnb"), "job": _record_of_job(job),
            "rows": {"learned": rows.learned, "tested": rows.tested,
                     "malformed": rows.malformed}}) + "\n", "utf-8")
    return Path(job.output)


def _record_of_job(job: Job) -> Any:
    """The settings of the job, without secrets."""
    settings = plain(job.model_dump(exclude_defaults=True))
    for section, key in (("input", "train"), ("input", "test"), ("predictions", "input")):
        place = settings.get(section, {}).get(key)
        if place is not None:
            settings[section][key] = hide_secrets(place)
    options = settings["input"].get("storage_options")
    if options:
        settings["input"]["storage_options"] = dict.fromkeys(options, "***")
    return settings


def _train(work: _Work) -> None:
    advance = work.observer.step("training")
    frame, learn = scan_stored(work.rows.train), (
        _learn_texts if work.job.model.kind_of_rows == "texts" else _learn_table)
    with reading(work.job.input.train):
        learn(work, frame, advance)


def _learn_texts(work: _Work, frame: pl.LazyFrame, advance: Callable[[int], None]) -> None:
    settings = work.job.model
    columns = settings.columns
    wants_threshold = work.job.decision is None and is_mail_recipe(
        {**settings.parameters, "model": settings.kind, "text": settings.text})
    fitted = work.model = fit(TextSettings.of(
        model_of(settings.kind, settings.parameters),
        text=columns[0] if len(columns) == 1 else columns, label=settings.label,
        tokenizer=tokenizer_of(settings.tokens), min_df=settings.min_df,
        max_df=settings.max_df, max_features=settings.max_features, binary=settings.binary,
        memory_limit=settings.memory_limit), frame, left_out=wants_threshold, progress=advance)
    chosen = "" if fitted.chosen_l is None else (
        f", l = {fitted.chosen_l:g} chosen by leave-one-out")
    kind = "label" if fitted.is_multilabel else "class"
    work.observer.result(f"{quantity(len(fitted.classes), kind)}, "
                         f"{quantity(len(fitted.terms), 'term')}{chosen}")
    if fitted.pruned is not None:
        work.observer.result(fitted.pruned.describe())
    if wants_threshold:
        _decide_by_fit(work, fitted)


def _decide_by_fit(work: _Work, fitted: Fitted) -> None:
    try:
        work.model = decide_by_fit(fitted)
    except TextnbError as error:
        work.observer.result(f"no threshold was chosen: log-odds above 0 decide. {error}")
    else:
        work.observer.result(_describe_thresholds(work.model.decision.thresholds))


def _learn_table(work: _Work, frame: pl.LazyFrame, advance: Callable[[int], None]) -> None:
    from textnb.classifiers.table import TableClassifier

    settings = work.job.model
    model = work.model = TableClassifier(
        model_of(settings.kind, settings.parameters), features=settings.features,
        label=settings.label)
    model.fit(frame, progress=advance)
    work.observer.result(f"{quantity(len(model.classes_), 'class')}, "
                         f"{quantity(len(model.feature_names_), 'feature')}")


def _left_out_once(work: _Work) -> Any:
    """Score the training rows by leave-one-out, once for all steps; lists of labels by folds."""
    if work.left_out is None:
        work.left_out = _folds(work) if work.is_multilabel else leave_one_out(
            work.model, scan_stored(work.rows.train))
    return work.left_out


def _folds(work: _Work) -> Any:
    settings, model = work.job.validation or Validation(), work.model
    if work.is_multilabel:
        # The models of the folds need no thresholds.
        model = replace(model, settings=replace(
            model.settings, model=model.model.without_choices()))
    return cross_validate(
        model, scan_stored(work.rows.train), folds=settings.folds, groups=settings.groups,
        time=settings.time, seed=settings.seed)


def _validate(work: _Work, settings: Validation, advance: Callable[[int], None]) -> None:
    if work.is_multilabel:
        lists = _left_out_once(work)
        measured = lists.measure(work.model.decision)
        work.write("validation.json", {
            "method": lists.method, "documents": len(lists), **measured,
            "log_loss": _finite_or_none(lists.log_loss)})
        work.observer.result(f"{_describe_lists(measured)} by {lists.method}")
        return
    held = _left_out_once(work) if settings.method == "leave-one-out" else _folds(work)
    values: dict[str, Any] = {"method": held.method, "documents": len(held),
                            "accuracy": held.accuracy, "log_loss": _finite_or_none(held.log_loss),
                            "calibrated": held.is_calibrated,
                            "not_judged": held.not_judged}
    spread = ""
    if held.folds is not None:
        each = held.accuracy_by_fold()["accuracy"]
        values["folds"] = each.to_list()
        spread = f" ± {float(np.std(each.to_numpy(), ddof=1)):.4f}" if len(each) > 1 else ""
    work.write("validation.json", values)
    left_out = f"; {quantity(held.not_judged, 'document')} can't be judged by probabilities" if (
        held.not_judged) else ""
    work.observer.result(f"accuracy {held.accuracy:.4f}{spread} by {held.method}{left_out}")


def _calibrate(work: _Work, settings: Calibration, advance: Callable[[int], None]) -> None:
    held = _left_out_once(work)
    chosen = fit_calibration(held, length_aware=settings.length_aware)
    work.model = work.model.with_calibration(chosen)
    if work.is_multilabel:
        work.observer.result(f"log loss {held.log_loss:.3f} -> "
                             f"{held.calibrated(chosen).log_loss:.3f} by {held.method}")
        return
    before, after = reliability(held).log_loss, reliability(held.calibrated(chosen)).log_loss
    work.observer.result(f"log loss {before:.3f} -> {after:.3f} by leave-one-out")


def _decide(work: _Work, settings: Decision, advance: Callable[[int], None]) -> None:
    calibration = work.model.calibration
    if work.is_multilabel:
        _decide_lists(work, settings)
        return
    held = _left_out_once(work) if settings.scored == "leave-one-out" else _folds(work)
    if settings.min_probability is not None:
        least = float(np.log(settings.min_probability / (1.0 - settings.min_probability)))
        decision = Thresholds(dict.fromkeys(work.model.classes.tolist(), least),
                            evidence={"min_probability": settings.min_probability,
                                        "calibrated": calibration is not None})
    elif settings.min_precision is not None:
        decision = choose_class_thresholds(
            held, min_precision=settings.min_precision, confidence=settings.confidence,
            calibration=calibration)
    else:
        decision = choose_threshold(
            held, settings.positive, calibration=calibration, confidence=settings.confidence,
            max_false_positive_rate=settings.max_false_positive_rate,
            max_false_negative_rate=settings.max_false_negative_rate,
            costs=None if settings.costs is None else (settings.costs[0], settings.costs[1]))
    work.model = work.model.with_decision(decision)
    work.observer.result(_describe_thresholds(decision.thresholds))


def _decide_lists(work: _Work, settings: Decision) -> None:
    held = _left_out_once(work)
    decision = choose_class_thresholds(
        held, by=settings.by, min_precision=settings.min_precision,
        confidence=settings.confidence,
        costs=None if settings.costs is None else (settings.costs[0], settings.costs[1]),
        at_least=settings.at_least, at_most=settings.at_most)
    work.model = work.model.with_decision(decision)
    work.observer.result(f"{_describe_lists(held.measure(decision))} by {held.method}")


def _describe_lists(measured: Mapping[str, float]) -> str:
    return f"micro F1 {measured['micro_f1']:.4f}, macro F1 {measured['macro_f1']:.4f}"


def _describe_thresholds(thresholds: Any) -> str:
    shown = [f"{label}: {value:.3f}" for label, value in list(thresholds.items())[:6]]
    more = ", ..." if len(thresholds) > 6 else ""
    return f"least log-odds {', '.join(shown)}{more}"


def _test(work: _Work) -> None:
    model, path = work.model, work.folder / "model.textnb"
    if isinstance(model, Fitted):
        save_fitted(model, path)
    else:
        model.save(path)
    advance = work.observer.step("testing")
    settings, test = work.job.test, scan_stored(work.rows.test)
    positive = settings.positive
    result = evaluate(model, test, progress=advance)
    if isinstance(result, Evaluation):
        _test_classes(work, result)
    else:
        held = held_out(model, test).calibrated(model.calibration)
        values = {**result.to_dict(), "calibrated": model.calibration is not None,
                  "log_loss": _finite_or_none(held.log_loss)}
        work.write("metrics.json", values)
        work.observer.result(f"{_describe_lists(values)} on {quantity(result.documents, 'row')}")
    if settings.report is not None:
        from textnb.classifiers.text import TextClassifier
        from textnb.report.page import write_report

        work.observer.step("writing the report")
        of_texts = isinstance(model, Fitted)
        write_report(TextClassifier.of(model) if of_texts else model, test,
                     work.folder / settings.report, positive=positive,
                     train=scan_stored(work.rows.train) if of_texts and isinstance(
                         result, Evaluation) else None)


def _test_classes(work: _Work, result: Evaluation) -> None:
    model, positive, test = work.model, work.job.test.positive, scan_stored(work.rows.test)
    values = result.to_dict()
    if positive is not None:
        values["rates"] = result.rates(positive).to_dict()
        values["roc_auc"] = evaluate_roc(model, test, positive).auc
    if isinstance(model, Fitted) and len(model.classes) > 1:
        held = held_out(model, test)
        measured = reliability(held.calibrated(model.calibration))
        values["calibrated"] = model.calibration is not None
        values |= {"log_loss": _finite_or_none(measured.log_loss), "brier": measured.brier,
                 "expected_calibration_error": measured.expected_calibration_error,
                 "not_judged": measured.excluded}
    work.write("metrics.json", values)
    if result.decided is not None:
        work.observer.result(", ".join(f"{value:,} {name.replace('_', ' ')}"
                                     for name, value in result.decided.items()))
    work.observer.result(f"accuracy {result.accuracy:.4f}, macro F1 {result.macro_f1:.4f} on "
                       f"{quantity(result.documents, 'row')}")
    # Rows that the job itself held out are new.
    if result.novelty is not None and result.novelty.verdict == "unknown" and (
            not work.rows.held_out):
        work.observer.result(f"note: {result.novelty.message}")


def _list_terms(work: _Work, settings: Terms, advance: Callable[[int], None]) -> None:
    texts.top(work.model, settings.k).write_csv(work.folder / settings.file)


def _predict(work: _Work, settings: Predictions, advance: Callable[[int], None]) -> None:
    if settings.input is None:
        frame: pl.LazyFrame = scan_stored(work.rows.test)
    else:
        frame = scan_source(work.job, settings.input, settings.format, labels=False)
    answers = Answers(settings.probability, settings.scores, settings.explain, settings.top)
    with reading(settings.input or work.job.input.train):
        rows = rows_where(frame, settings.where, "predictions.where")
        predicted = (
            texts.predict(work.model, rows, answers, advance)
            if isinstance(work.model, Fitted) else work.model.predict(
                rows, probability=answers.probability, scores=answers.scores, progress=advance))
        write(predicted, str(work.folder / settings.file), None)
    work.observer.result(f"-> {settings.file}")


def _export(work: _Work) -> None:
    for export in work.job.exports:
        work.observer.step(f"exporting to {export.to or export.file}")
        exported = export_model(
            work.model, work.folder / export.file, export.to, positive=export.positive,
            reads=export.reads, top=export.top)
        if not export.verify:
            work.observer.result(f"{_describe_export(exported)}, not verified")
            continue
        try:
            passed = verify_export(exported.path).passed
        except ExportError as error:
            raise ExportError(f"exports: {error}; or set verify = false, and verify where the "
                              "engine is") from None
        if not passed:
            raise ExportError(f"exports: {export.file} does not score as the model does")
        work.observer.result(f"{_describe_export(exported)}, verified")


def _describe_export(exported: Exported) -> str:
    weights = quantity(exported.weights, "feature" if exported.reads == "features" else "term")
    return f"{weights}, {byte_words(exported.size)} -> {exported.path.name}"


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


_BEFORE_TEST: tuple[tuple[str, str, Step], ...] = (
    ("validation", "validating", _validate), ("calibration", "calibrating", _calibrate),
    ("decision", "choosing thresholds", _decide))
_AFTER_TEST: tuple[tuple[str, str, Step], ...] = (
    ("terms", "listing terms", _list_terms), ("predictions", "predicting", _predict))
