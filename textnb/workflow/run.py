"""A whole job in one go: train, validate, calibrate, decide, test, report, predict, export.

Every step writes into one folder, which becomes the output when the last step is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from textnb.errors import ExportError, quantity
from textnb.evaluation.metrics import Evaluation
from textnb.export.verify import verify_export
from textnb.frames.cloud import hide_secrets
from textnb.frames.conditions import rows_where
from textnb.frames.failures import reading
from textnb.learning.fitted import Fitted
from textnb.learning.memory_limit import byte_words
from textnb.learning.parameters import plain
from textnb.runtime import __version__
from textnb.scoring import texts
from textnb.workflow.decide import (
    calibrate,
    check_decision,
    decide,
    measure_probabilities,
    scored_to_calibrate,
    scores_of,
)
from textnb.workflow.evaluate import evaluate_model
from textnb.workflow.job import Job, settings_of
from textnb.workflow.models import save_model
from textnb.workflow.predict import predict
from textnb.workflow.results import as_json
from textnb.workflow.split import (
    RowFiles,
    at_key,
    check_labels,
    read_rows,
    rows_to_predict,
    scan_stored,
    try_export,
)
from textnb.workflow.staging import RECORD, record, stage_output
from textnb.workflow.train import train
from textnb.workflow.validate import validate

# A step of a job: it takes the work, and what counts rows.
Step = Callable[["_Work", Callable[[int], None]], None]


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


class _Work:
    """A job at work: its rows, and the model as far as it is."""

    def __init__(self, job: Job, folder: Path, observer: Observer, rows: RowFiles) -> None:
        self.job, self.folder, self.observer, self.rows = job, folder, observer, rows
        self.model: Any = None
        # Scores of the training rows by other models, by the way they were made.
        self._scores: dict[str, Any] = {}

    @property
    def train(self) -> Any:
        return scan_stored(self.rows.train)

    @property
    def test(self) -> Any:
        return scan_stored(self.rows.test)

    def scores(self, scored: str, advance: Callable[[int], None]) -> Any:
        """Scores of the training rows by models that have not learned them; made once."""
        way = "folds" if self.model.is_multilabel else scored
        if way not in self._scores:
            self._scores[way] = scores_of(
                self.model, self.train, way, self.job.validation, advance)
        return self._scores[way]

    def say(self, text: str) -> None:
        self.observer.result(text)

    def write(self, name: str, values: Any) -> None:
        (self.folder / name).write_text(as_json(values, indent=1) + "\n", "utf-8")


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
        with rows_to_predict(job):
            # Before hours of learning, and not after them.
            pass
        rows = read_rows(job, cache)
        how = " (held out of the same input)" if rows.held_out else ""
        observer.result(f"{quantity(rows.learned, 'row')} to learn from, {rows.tested:,} to test "
                        f"on{how}")
        if rows.malformed:
            observer.result(f"{quantity(rows.malformed, 'message', 'is', 'are')} malformed: see "
                            "their column errors")
        check_labels(job, rows)
        work = _Work(job, folder, observer, rows)
        for section, title, step in _STEPS:
            settings = True if section is None else getattr(job, section)
            if settings is not None:
                step(work, observer.step(title))
        _export(work)
        for path in cache.iterdir():
            path.unlink()
        cache.rmdir()
        (folder / RECORD).write_text(record({
            "files": sorted({*(path.name for path in folder.iterdir()), RECORD}),
            "textnb": __version__, "job": _record_of_job(job),
            "rows": {"learned": rows.learned, "tested": rows.tested,
                     "malformed": rows.malformed}}) + "\n", "utf-8")
    return Path(job.output)


def _record_of_job(job: Job) -> Any:
    """The settings of the job, without secrets."""
    settings = plain(settings_of(job))
    for section, key in (("input", "train"), ("input", "test"), ("predictions", "input")):
        place = settings.get(section, {}).get(key)
        if place is not None:
            settings[section][key] = hide_secrets(place)
    options = settings["input"].get("storage_options")
    if options:
        settings["input"]["storage_options"] = dict.fromkeys(options, "***")
    return settings


def _train(work: _Work, advance: Callable[[int], None]) -> None:
    options = work.job.model
    if work.job.decision is not None and options.is_for_mail:
        # The threshold is chosen later.
        options = replace(options, learning=replace(options.learning, false_positives=0.0))
    with reading(work.job.input.train):
        trained = train(options, work.train, advance)
    model = work.model = trained.model
    if not isinstance(model, Fitted):
        work.say(f"{quantity(len(model.classes_), 'class')}, "
                 f"{quantity(len(model.feature_names_), 'feature')}")
        return
    chosen = "" if model.chosen_l is None else (
        f", l = {model.chosen_l:g} chosen by leave-one-out")
    work.say(f"{quantity(len(model.classes), 'label' if model.is_multilabel else 'class')}, "
             f"{quantity(len(model.terms), 'term')}{chosen}")
    if model.pruned is not None:
        work.say(model.pruned.describe())
    if trained.without_threshold is not None:
        work.say("no threshold was chosen: log-odds above 0 decide. "
                 f"{trained.without_threshold}")
    elif model.decision is not None:
        work.say(_describe_thresholds(model.decision.thresholds))


def _validate(work: _Work, advance: Callable[[int], None]) -> None:
    options = work.job.validation
    assert options is not None
    with at_key("validation", options):
        found = validate(work.model, work.train, options, advance)
    values = found.to_dict()
    work.write("validation.json", values)
    by = f" by {values['method']}" if "method" in values else ""
    if "accuracy" in values:
        spread = values.get("accuracy_standard_deviation")
        left_out = values["not_judged"]
        work.say(f"accuracy {values['accuracy']:.4f}"
                 + (f" ± {spread:.4f}" if spread else "") + by + (
                     f"; {quantity(left_out, 'document')} can't be judged by probabilities"
                     if left_out else ""))
    elif "micro_f1" in values:
        work.say(_describe_lists(values) + by)


def _calibrate(work: _Work, advance: Callable[[int], None]) -> None:
    options = work.job.calibration
    assert options is not None
    held = work.scores(scored_to_calibrate(work.model), advance)
    with at_key("calibration", options):
        found = calibrate(work.model, held, options)
    work.model = work.model.with_calibration(found.calibration)
    losses = found.figures["log_loss"]
    work.say(f"log loss {losses['before']:.3f} -> {losses['after']:.3f} by {held.method}")


def _decide(work: _Work, advance: Callable[[int], None]) -> None:
    options = work.job.decision
    assert options is not None
    with at_key("decision", options):
        check_decision(work.model, options)
        held: Any = None
        if options.needs_rows:
            held = work.scores(options.scored or "leave-one-out", advance)
        decision = decide(work.model, held, options)
    work.model = work.model.with_decision(decision)
    work.say(f"{_describe_lists(held.measure(decision))} by {held.method}"
             if work.model.is_multilabel else _describe_thresholds(decision.thresholds))


def _describe_lists(measured: Mapping[str, float]) -> str:
    return f"micro F1 {measured['micro_f1']:.4f}, macro F1 {measured['macro_f1']:.4f}"


def _describe_thresholds(thresholds: Any) -> str:
    shown = [f"{label}: {value:.3f}" for label, value in list(thresholds.items())[:6]]
    more = ", ..." if len(thresholds) > 6 else ""
    return f"least log-odds {', '.join(shown)}{more}"


def _test(work: _Work, advance: Callable[[int], None]) -> None:
    save_model(work.model, work.folder / "model.textnb")
    options = work.job.test
    report = None if options.report is None else str(work.folder / options.report)
    learned = work.train if isinstance(work.model, Fitted) and report is not None else None
    with at_key("test", options):
        tested = evaluate_model(work.model, work.test, replace(options, report=report),
                                learned=learned, progress=advance)
    work.write("metrics.json", {**tested.to_dict(),
                                **measure_probabilities(work.model, work.test)})
    result = tested.result
    if not isinstance(result, Evaluation):
        work.say(f"{_describe_lists(result.to_dict())} on {quantity(result.documents, 'row')}")
        return
    if result.decided is not None:
        work.say(", ".join(f"{value:,} {name.replace('_', ' ')}"
                           for name, value in result.decided.items()))
    work.say(f"accuracy {result.accuracy:.4f}, macro F1 {result.macro_f1:.4f} on "
             f"{quantity(result.documents, 'row')}")
    # Rows that the job itself held out are new.
    if result.novelty is not None and result.novelty.verdict == "unknown" and (
            not work.rows.held_out):
        work.say(f"note: {result.novelty.message}")


def _list_terms(work: _Work, advance: Callable[[int], None]) -> None:
    terms = work.job.terms
    assert terms is not None
    texts.top(work.model, terms.k).write_csv(work.folder / terms.file)


def _predict(work: _Work, advance: Callable[[int], None]) -> None:
    settings = work.job.predictions
    assert settings is not None
    with at_key("predictions", settings), _to_predict(work) as rows:
        predict(work.model, rows, settings, str(work.folder / settings.file), None, advance)
    work.say(f"-> {settings.file}")


@contextmanager
def _to_predict(work: _Work) -> Iterator[Any]:
    settings = work.job.predictions
    assert settings is not None
    with rows_to_predict(work.job) as rows:
        if rows is not None:
            yield rows
            return
    with reading(work.job.input.train):
        yield rows_where(work.test, settings.where, "predictions.where")


def _export(work: _Work) -> None:
    for number, settings in enumerate(work.job.exports):
        work.observer.step(f"exporting to {settings.to or settings.file}")
        exported = try_export(work.model, work.folder, settings, number)
        weights = quantity(exported.weights,
                           "feature" if exported.reads == "features" else "term")
        words = f"{weights}, {byte_words(exported.size)} -> {exported.path.name}"
        if not settings.verify:
            work.say(f"{words}, not verified")
            continue
        try:
            passed = verify_export(exported.path).passed
        except ExportError as error:
            raise ExportError(f"exports: {error}; or set verify = false, and verify where the "
                              "engine is") from None
        if not passed:
            raise ExportError(f"exports: {settings.file} does not score as the model does")
        work.say(f"{words}, verified")


# The section that asks for a step (None: every job has it), its title, and the step.
_STEPS: tuple[tuple[str | None, str, Step], ...] = (
    (None, "training", _train), ("validation", "validating", _validate),
    ("calibration", "calibrating", _calibrate), ("decision", "choosing thresholds", _decide),
    (None, "testing", _test), ("terms", "listing terms", _list_terms),
    ("predictions", "predicting", _predict))
