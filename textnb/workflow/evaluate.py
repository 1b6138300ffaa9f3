"""The steps that judge a model on rows: test, mistakes and drift."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from textnb.errors import DataError
from textnb.evaluation.evaluate import evaluate, evaluate_classes, score_labelled_rows
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.labels import LabelEvaluation
from textnb.evaluation.metrics import Evaluation
from textnb.evaluation.novelty import Novelty, NoveltyCount
from textnb.frames.batches import Progress
from textnb.learning.fitted import Fitted
from textnb.workflow.models import AnyModel, class_named, classes_of, predicts_lists, text_columns
from textnb.workflow.options import MistakesOptions, TestOptions

if TYPE_CHECKING:
    from textnb.evaluation.drift import Drift
    from textnb.workflow.rows import Rows


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures on labelled rows.

    Attributes
    ----------
    result : Evaluation or LabelEvaluation
    positive : label or None
        The class that is measured against all others.
    roc_auc : float or None
        The area under the ROC curve of that class.
    probabilities : dict
        Measures of the model's probabilities that ``result`` does not have, if requested.
    """

    result: Evaluation | LabelEvaluation
    positive: Any = None
    roc_auc: float | None = None
    probabilities: dict[str, Any] = field(default_factory=dict)

    @property
    def rates(self) -> dict[str, Any] | None:
        """Error rates of the class ``positive`` against all others."""
        return self.result.rates(self.positive).to_dict() if self.positive is not None else None

    def to_dict(self) -> dict[str, Any]:
        values = {**self.result.to_dict(), **self.probabilities}
        return values if self.positive is None else {
            **values, "roc_auc": self.roc_auc, "rates": self.rates}


def positive_class_of(model: AnyModel, options: TestOptions) -> Any:
    """The class that is measured against all others; ParameterError if the model lacks it."""
    return class_named(options.positive, classes_of(model), setting="positive")


def evaluate_model(
    model: AnyModel, frame: pl.LazyFrame, options: TestOptions, *, learned: Any = None,
    title: str | None = None, date: datetime.date | None = None,
    with_probabilities: bool = False, progress: Progress | None = None, audit: Any = None,
) -> Measures:
    """Measure a model on labelled rows, and write the report if the options name one.

    Parameters
    ----------
    learned : DataFrame or LazyFrame, optional
        The rows that the model learned, for the report.
    title, date
        The title and the date of the report.
    with_probabilities : bool
        Whether calibration errors and similar measures are computed.
    audit : Audit, optional
        The audit of the rows that the model learned, for the report.

    Notes
    -----
    To measure a class or probabilities, rows are read twice if documents have lists of labels, or
    if there is a report.
    """
    positive = positive_class_of(model, options)
    needs_scores = positive is not None or with_probabilities
    # The scores of each batch, if rows have one label and there is no report.
    scores: list[HeldOut] = []
    if options.report is None:
        result = evaluate(model, frame, progress=progress) if predicts_lists(model) else (
            evaluate_classes(model, frame, progress, scores=scores if needs_scores else None))
    else:
        from textnb.report.page import write_report

        result = write_report(
            _as_classifier(model), frame, options.report, train=learned, positive=positive,
            title=title, date=date, progress=progress, audit=audit)
    if not needs_scores:
        return Measures(result)
    all_scores = HeldOut.joined(scores) if scores else score_labelled_rows(model, frame)
    calibrated = all_scores.calibrated(model.calibration if isinstance(model, Fitted) else None)
    return Measures(result, positive, None if positive is None else calibrated.roc(positive).auc,
                    _measure_probabilities(model, calibrated) if with_probabilities else {})


def mistakes(
    model: Fitted, frame: pl.LazyFrame, options: MistakesOptions, output: str,
    format: str | None = None, progress: Progress | None = None, *, safe_csv: bool = False,
) -> tuple[int, int, Novelty]:
    """Write the rows that a model misjudges, see `textnb.mistakes`.

    Parameters
    ----------
    output, format, safe_csv
        As in `textnb.workflow.predict.predict`.

    Returns
    -------
    (int, int, Novelty)
        The number of rows that were written, the number of mistakes among them, and whether the
        model seems to have learned the input.
    """
    from textnb.evaluation.mistakes import select_mistakes
    from textnb.frames import sinks

    novelty, n_judged, n_written, n_mistakes = NoveltyCount(model), 0, 0, 0

    def count_judged(n_rows: int) -> None:
        nonlocal n_judged
        n_judged += n_rows
        if progress is not None:
            progress(n_rows)

    def check_not_empty() -> None:
        if not n_judged:
            raise DataError.no_rows("the input", "there is nothing to judge")

    def count_selected(n_rows: int, n_misjudged: int) -> None:
        nonlocal n_written, n_mistakes
        n_written, n_mistakes = n_written + n_rows, n_mistakes + n_misjudged

    rows = select_mistakes(
        model, frame, options.within, options.terms, progress=count_judged, novelty=novelty,
        on_batch=count_selected, on_end=check_not_empty)
    sinks.write(rows, output, format, safe_csv=safe_csv)
    novelty.result.warn()
    return n_written, n_mistakes, novelty.result


def drift(
    model: AnyModel, reference: Rows, recent: Rows, progress: Progress | None = None
) -> Drift:
    """Tell whether recent rows have drifted from reference rows, see `textnb.drift`."""
    from textnb.evaluation.drift import check_model, compare_samples, sample_of

    # Only a `Fitted` of texts passes the check.
    fitted, samples = check_model(model), []
    for rows in (reference, recent):
        with rows.naming_source():
            samples.append(sample_of(fitted, rows.frame, progress))
    return compare_samples(samples[0], samples[1], fitted.classes.tolist(), fitted.is_multilabel)


def _measure_probabilities(model: Any, scores: HeldOut) -> dict[str, Any]:
    """Measures of calibrated scores; empty for feature tables and for models of one class."""
    if not isinstance(model, Fitted) or len(model.classes) < 2:
        return {}
    # Imported here, as it imports SciPy.
    from textnb.evaluation.calibration import has_probabilities, reliability

    is_calibrated = model.calibration is not None
    if scores.is_multilabel:
        return {"calibrated": is_calibrated, "log_loss": scores.log_loss}
    if not has_probabilities(scores).any():
        return {"calibrated": is_calibrated, "brier": None, "expected_calibration_error": None,
                "not_judged": len(scores)}
    curve = reliability(scores)
    return {"calibrated": is_calibrated, "brier": curve.brier,
            "expected_calibration_error": curve.expected_calibration_error,
            "not_judged": curve.excluded}


def _as_classifier(model: AnyModel) -> Any:
    """The model as a `TextClassifier` or a `TableClassifier`, of which reports are written."""
    if text_columns(model) is None:
        return model
    from textnb.classifiers.text import TextClassifier

    return TextClassifier.of(model)
