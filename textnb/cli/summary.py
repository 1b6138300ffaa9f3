"""Makes the lines of text that report results, for the verbs and for the steps of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textnb.cli.evidence import MAX_SHOWN, calibration_words, decision_words, label_summary
from textnb.cli.inputs import describe_size
from textnb.cli.words import train_option
from textnb.errors import Mention, quantity
from textnb.workflow.models import AnyModel, predicts_lists, text_columns

if TYPE_CHECKING:
    from textnb.evaluation.audit import Audit
    from textnb.evaluation.held_out import HeldOut
    from textnb.evaluation.labels import LabelEvaluation
    from textnb.evaluation.metrics import Evaluation
    from textnb.evaluation.online import OnlineResult
    from textnb.evaluation.smoothing import SmoothingPath
    from textnb.export.write import Exported
    from textnb.learning.fitted import Fitted
    from textnb.workflow.decide import Calibrated
    from textnb.workflow.evaluate import Measures
    from textnb.workflow.train import Trained
    from textnb.workflow.validate import Validated


# The maximum number of thresholds that a job shows, among the lines of its other steps.
_MAX_SHOWN_IN_JOBS = 5


def lines_of(result: Any) -> Iterator[str]:
    """The lines that report one step of a job."""
    # Imported here: a verb needs only its own step.
    from textnb.evaluation.audit import Audit
    from textnb.evaluation.online import OnlineResult
    from textnb.evaluation.smoothing import SmoothingPath
    from textnb.learning.fitted import Fitted
    from textnb.workflow.decide import Calibrated
    from textnb.workflow.evaluate import Measures
    from textnb.workflow.job import as_key
    from textnb.workflow.predict import Predicted
    from textnb.workflow.run import ExportResult
    from textnb.workflow.split import RowFiles
    from textnb.workflow.train import Trained
    from textnb.workflow.validate import Validated

    match result:
        case RowFiles():
            origin = " (held out of the same input)" if result.test_is_held_out else ""
            yield (f"{quantity(result.n_train, 'row')} to learn from, {result.n_test:,} to test "
                   f"on{origin}")
            if result.n_malformed:
                yield (f"{quantity(result.n_malformed, 'message', 'is', 'are')} malformed: see "
                       "their column errors")
        case Audit():
            yield from audit_lines(result)
        case Trained():
            yield from training_lines(result, as_key)
        case Validated():
            yield from evaluation_lines(result.result)
            yield from validation_lines(result)
        case SmoothingPath():
            yield smoothing_line(result, 'model.l = "auto"')
        case OnlineResult():
            yield from online_lines(result)
        case Calibrated():
            yield from calibration_lines(result)
        case Fitted():
            yield from threshold_lines(result, _MAX_SHOWN_IN_JOBS)
        case Measures():
            yield from test_lines(result)
        case Predicted():
            yield from impossible_lines(result.impossible)
            yield f"{quantity(result.rows, 'row')} -> {Path(result.output).name}"
        case ExportResult():
            *lines, last = export_lines(result.exported, result.model, result.exported.path.name)
            yield from lines
            yield f"{last}, {'' if result.is_verified else 'not '}verified"


def audit_lines(result: Audit) -> Iterator[str]:
    """The number of findings of each kind, and the method that judged labels."""
    counts = ", ".join(f"{n:,} {kind}" for kind, n in result.counts.items() if n)
    yield f"{quantity(result.rows, 'row')}: {counts or 'no findings'}"
    yield f"labels judged by {result.method}" if result.method else (
        "labels were not judged: fewer than two classes have rows enough")


def training_lines(
    result: Trained, write_setting: Callable[[Mention], str] = train_option
) -> Iterator[str]:
    """The choices that training a model made; the last line is the size of the model.

    ``write_setting`` returns how the user types a setting: as an option, or as a key of a job.
    """
    model = result.model
    # A model of feature tables.
    if text_columns(model) is None:
        estimator = model.estimator_
        if (accuracy := getattr(estimator, "cv_accuracy_", None)) is not None:
            # Some pairs of alpha and gamma may have no accuracy (NaN).
            best = max(value for value in accuracy.flat if value == value)
            yield (f"chosen: alpha {estimator.alpha_:g}, gamma {estimator.gamma_:g}, "
                   f"cross-validated accuracy {best:.4f}")
        yield describe_size(model)
        return
    from textnb.learning.sharing import n_words_without_counts

    summary = describe_size(model)
    if model.chosen_l is not None:
        summary += f", l = {model.chosen_l:g} (chosen by leave-one-out)"
    if n_unlabelled := n_words_without_counts(model):
        summary += f", {n_unlabelled:,} that no labelled row holds"
    if (weight := model.settings.parameters["vector_weight"]) is not None:
        summary += f", vectors weigh {weight:.2g}"
    if model.learned.n_iter is not None:
        summary += f", {model.model.iterations}: {model.learned.n_iter}"
    if model.calibration is not None:
        summary += f", calibrated: {calibration_words(model.calibration)}"
    if result.threshold_error is not None:
        reason = result.threshold_error.message(write_setting)
        yield f"note: no threshold was chosen: log-odds above 0 decide. {reason}"
    elif model.decision is not None:
        yield from ([label_summary(model.decision)] if model.is_multilabel else
                    threshold_lines(model))
    yield summary


def threshold_lines(fitted: Fitted, max_shown: int = MAX_SHOWN) -> Iterator[str]:
    """The thresholds of a model, and the measures with them."""
    assert fitted.decision is not None
    return decision_words(
        fitted.decision, "log-odds" if fitted.calibration else fitted.model.difference_name,
        max_shown, is_multilabel=fitted.is_multilabel)


def evaluation_lines(result: Evaluation | LabelEvaluation) -> Iterator[str]:
    """The measures over all rows."""
    from textnb.evaluation.metrics import Evaluation

    if isinstance(result, Evaluation):
        n_correct = round(result.accuracy * result.documents)
        yield (f"accuracy {result.accuracy:.4f} ({n_correct:,} of {result.documents:,}), "
               f"macro F1 {result.macro_f1:.4f}")
        return

    def ranking(column: str, name: str) -> str:
        values = result.ranking.select("k", column).iter_rows()
        return ", ".join(f"{name}@{k} {value:.4f}" for k, value in values)

    n_correct = round(result.subset_accuracy * result.documents)
    yield (f"micro F1 {result.micro_f1:.4f}, macro F1 {result.macro_f1:.4f}, "
           f"F1 by document {result.example_f1:.4f}")
    yield (f"all labels right {result.subset_accuracy:.4f} ({n_correct:,} of "
           f"{result.documents:,}), Hamming loss {result.hamming_loss:.4f}")
    yield f"{ranking('precision', 'P')}, {ranking('ndcg', 'nDCG')}"
    yield (f"coverage error {result.coverage_error:.2f}, label ranking average precision "
           f"{result.label_ranking_average_precision:.4f}")


def test_lines(result: Measures) -> Iterator[str]:
    """The measures on labelled rows, and the answers by the model's decision if it has one."""
    measures = [("log loss", getattr(result.result, "log_loss", None)),
                ("ROC AUC", getattr(result.result, "roc_auc", None))]
    first, *others = evaluation_lines(result.result)
    yield ", ".join([first, *(f"{name} {value:.4f}" for name, value in measures
                              if value is not None)])
    yield from others
    decided = getattr(result.result, "decided", None)
    if decided is not None:
        yield "by the model's decision: " + ", ".join(
            f"{value:,} {name.replace('_', ' ')}" for name, value in decided.items())


def impossible_lines(rows: int) -> Iterator[str]:
    """A line that counts the rows that are impossible under every class, if any."""
    if rows:
        yield (f"note: {quantity(rows, 'row', 'is', 'are')} impossible under every class (l = 0): "
               "without a prediction")


def validation_lines(result: Validated) -> Iterator[str]:
    """The validation method, the log loss, and the accuracy over folds."""
    held_out = result.held_out
    if held_out.is_multilabel:
        yield f"labels that the models predict, {held_out.method}"
        return
    # Validation fits models of the same settings: it does not use a calibration of this model.
    calibration = "calibrated in each fold" if held_out.is_calibrated else "uncalibrated"
    summary = f"log loss {held_out.log_loss:.4f} ({calibration}), {held_out.method}"
    if held_out.folds is not None:
        answer = result.to_dict()
        summary += (f": mean accuracy {answer['accuracy_mean']:.4f}, standard deviation "
                    f"{answer['accuracy_standard_deviation']:.4f}")
    yield summary
    yield from _not_judged(held_out)


def smoothing_line(path: SmoothingPath, setting: str = "--l auto") -> str:
    """The value of l that has the lowest loss."""
    # Losses leave out documents whose class the model would not know.
    left_out = f", {path.excluded:,} of them in no loss" if path.excluded else ""
    return (f"l = {path.best:g} is what {setting} would choose of these ({path.method}, "
            f"{quantity(path.documents, 'document')}{left_out})")


def online_lines(result: OnlineResult, rate: float | None = None) -> Iterator[str]:
    """Measures of an online validation, in which each model judges the rows that come next.

    1-ROCA is the area above the ROC curve. ``rate`` is the false positive rate for which the
    thresholds were chosen, if they were.
    """
    from textnb.evaluation.online import HAM_SHARE

    yield f"{quantity(len(result.held), 'document')}, {result.held.method}"
    yield f"1-ROCA {result.roca:.4f} % ({_interval(result.roca_interval, digits=4)})"
    yield (f"{result.positive} missed at {100 * HAM_SHARE:g} % false positives: "
           f"{result.missed_at_share:.2f} % ({_interval(result.missed_interval, digits=2)})")
    cutoff = "log-odds 0" if rate is None else f"thresholds for {100 * rate:g} % false positives"
    yield (f"at {cutoff}: {result.false_positives:.3f} % false positives, "
           f"{result.false_negatives:.3f} % of {result.positive} missed")


def _interval(interval: tuple[float, float], digits: int) -> str:
    return f"95 % interval {interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def calibration_lines(result: Calibrated) -> Iterator[str]:
    """A calibration, and the losses before and after it."""
    yield calibration_words(result.calibration)
    for name, values in result.figures.items():
        yield f"{name.replace('_', ' ')} {values['before']:.4f} -> {values['after']:.4f}"
    if not result.held_out.is_multilabel:
        yield from _not_judged(result.held_out)


def _not_judged(held_out: HeldOut) -> Iterator[str]:
    """A line that counts the documents whose true class the model had not learned, if any."""
    if held_out.not_judged:
        yield (f"{held_out.not_judged:,} of {quantity(len(held_out), 'document')} can't be judged "
               "by probabilities: the model that scored them has not learned their class")


def export_lines(
    result: Exported, model: AnyModel, output: str, positive: Any = None
) -> Iterator[str]:
    """The terms, rounding and decision of an export; the last line is its size.

    Parameters
    ----------
    result : Exported
        Its ``why_tokens`` says why the target reads tokens; it is empty for a target of texts.
    model : Fitted or TableClassifier
    output : str
        The path of the export.
    positive : label, optional
        The class whose score is the only one, if the target has one score.
    """
    from textnb.export.readme import origin_of_tokens
    from textnb.learning.fitted import fitted_text_model_or_none
    from textnb.learning.memory_limit import describe_bytes

    pruned = result.pruned
    if pruned is not None:
        yield f"{quantity(pruned['kept'], 'term')} kept, {pruned['dropped']:,} left out"
    if (rounding := result.precision) is not None:
        yield (f"weights are rounded to {rounding['kind']}: one token moves the difference of two "
               f"scores by at most {rounding['worst_per_token']:.4g}")
    choices = [name for name in ("calibration", "decision")
              if getattr(model, name, None) is not None]
    if pruned is not None and pruned["dropped"] and choices:
        yield f"note: the model's {' and '.join(choices)} need all terms: the export has none"
    elif "decision" in choices and "decision" not in result.answers and not predicts_lists(model):
        # A target predicts the class with the highest score, or by the sign of its only score; for
        # lists of labels, every target applies the thresholds.
        yield ("note: the model has a decision: its thresholds are in form.json, but the target "
               "does not apply them" + ("" if positive is None else
                                        f": {positive} wins where its score is above 0"))
    texts = fitted_text_model_or_none(model)
    token_columns = [] if texts is None else texts.token_columns
    if result.why_tokens and texts is not None and token_columns:
        # The words are for Markdown, in which code has backticks.
        origin = origin_of_tokens(texts.settings.tokenizer, token_columns).replace("`", "")
        yield (f"note: the model reads lists of tokens ({', '.join(token_columns)}), so "
               f"{result.target} reads tokens, not texts" + (f": {origin}" if origin else ""))
    elif result.why_tokens:
        # Without the advice at the end, which is for Python.
        yield f"note: it reads tokens, not texts. {result.why_tokens.partition('; export the')[0]}"
    unit = {"text": "texts", "terms": "tokens", "features": "features"}[result.reads]
    if result.reads == "text" and texts is not None and token_columns:
        unit = ("lists of tokens" if len(token_columns) == len(texts.columns)
                else "texts and lists of tokens")
    # Beside the single file of a target, the bundle has the rows that verify it.
    bundle = f" (and {output}.bundle.zip, which proves it)" if result.single else ""
    weights = quantity(result.weights, "feature" if result.reads == "features" else "term")
    yield (f"{result.target}, scores {unit}: {weights}, {describe_bytes(result.size)} -> "
           f"{output}{bundle}")
