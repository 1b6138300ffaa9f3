"""The verb test: it scores labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textnb.cli import evidence, reporting
from textnb.cli.console import as_json, note, out, progress
from textnb.cli.inputs import (
    InputOptions,
    LabelOptions,
    ModelFile,
    Quiet,
    Results,
    any_model,
    check_storage,
    classes_of,
    count_malformed,
    features_of,
    for_place,
    reading,
    rows,
    text_columns,
    unit_of,
)
from textnb.cli.options import option, verb
from textnb.errors import quantity

if TYPE_CHECKING:
    from textnb.evaluation.labels import LabelEvaluation


@dataclass(kw_only=True)
class TestInput(LabelOptions, InputOptions):
    """Input."""


@dataclass(kw_only=True)
class TestOutput(Quiet, Results):
    """Output."""

    positive: str | None = option(
        "Also show the rates and the area under the ROC of this class against the rest.",
        metavar="CLASS")
    report: str | None = option(
        "HTML page to write: charts, terms, mistakes, and peculiarities of the rows.",
        metavar="FILE")
    train: str | None = option(
        "Rows that the model learned: the report names texts that are in both.", metavar="FILE")
    train_where: str | None = option(
        "Rows of --train for which this SQL condition holds.")


@verb
def run_test(file: ModelFile, source: TestInput, done: TestOutput) -> None:
    """Score labelled rows: accuracy, and precision, recall and F1 per class."""
    from textnb.cli.settings import as_label
    from textnb.cli.tables import show_evaluation, show_labels, show_rates
    from textnb.errors import ParameterError
    from textnb.evaluation.evaluate import evaluate, evaluate_roc
    from textnb.evaluation.metrics import Evaluation

    model, input, positive, report = file.model, source.input, done.positive, done.report
    check_storage(source.storage_option, input, done.train)
    reporting.check(report, done.train, done.train_where, model, input)
    classifier = any_model(model)
    frame = rows(input, for_place(input, source), text_columns(classifier), classifier.label,
                 features_of(classifier))
    frame, note_count = count_malformed(frame, text_columns(classifier))
    if getattr(classifier, "is_multilabel", False) and positive is not None:
        raise ParameterError.multilabel("--positive")
    label = None if positive is None else as_label(
        positive, classes_of(classifier), "--positive")
    learned = reporting.learned_rows(classifier, done.train, done.train_where, source)
    tested = "tested" if report is None else "tested and reported on"
    with reading(input, frame, source.where), progress(
            "testing", tested, done.quiet, unit_of(classifier)) as advance:
        result: Evaluation | LabelEvaluation
        if report is None:
            result = evaluate(classifier, frame, progress=advance)
        else:
            result = reporting.write(
                classifier, frame, report, learned, label, (model, input), advance)
    if not done.quiet:
        note_count(input)
    evidence.note_stale(classifier)
    if isinstance(result, Evaluation):
        evidence.note_unverified(result.novelty, done.quiet)
    if text_columns(classifier) is not None:
        evidence.note_textless(result.textless, classifier.model.without_terms)
    if result.unknown_labels:
        note("note: the model does not know the labels "
             f"{', '.join(map(repr, result.unknown_labels))}; their rows count as errors")
    if not isinstance(result, Evaluation):
        out(as_json(result.to_dict())) if done.results_format == "json" else show_labels(result)
        return
    if result.impossible:
        note(f"note: {quantity(result.impossible, 'row', 'is', 'are')} impossible under every "
             "class (l = 0), which counts as an error")
    answer = result.to_dict()
    if positive is not None:
        with reading(input):
            answer["roc_auc"] = evaluate_roc(classifier, frame, label).auc
        answer["rates"] = result.rates(label).to_dict()
    if done.results_format == "json":
        out(as_json(answer))
        return
    show_evaluation(result)
    if result.decided is not None:
        out("by the model's decision: " + ", ".join(
            f"{value:,} {name.replace('_', ' ')}" for name, value in result.decided.items()))
    if positive is not None:
        show_rates(positive, answer["rates"], answer["roc_auc"])
