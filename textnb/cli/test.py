"""The verb test: it scores labelled rows."""

from __future__ import annotations

from dataclasses import dataclass

from textnb.cli import evidence, reporting
from textnb.cli.console import note, out
from textnb.cli.inputs import LabelledInput, ModelFile, Quiet, Results, rows_of, unit_of, work_on
from textnb.cli.options import option, verb
from textnb.errors import quantity
from textnb.workflow.options import TestOptions


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TestOutput(TestOptions, Quiet, Results):
    """Output."""

    train: str | None = option(
        "Rows that the model learned: the report names texts that are in both.", metavar="FILE")
    train_where: str | None = option(
        "Rows of --train for which this SQL condition holds.")


@verb
def run_test(file: ModelFile, source: LabelledInput, done: TestOutput) -> None:
    """Score labelled rows: accuracy, and precision, recall and F1 per class."""
    from textnb.cli.summary import test_lines
    from textnb.cli.tables import show_evaluation, show_rates
    from textnb.evaluation.metrics import Evaluation
    from textnb.workflow.evaluate import check_test, evaluate_model
    from textnb.workflow.models import any_model, text_columns
    from textnb.workflow.rows import check_storage, for_place

    model, input = file.model, source.input
    check_storage(source, input, done.train)
    reporting.check(done.report, done.train, done.train_where, model, input)
    classifier = any_model(model)
    table = rows_of(classifier, input, for_place(input, source), classifier.label)
    check_test(classifier, done)
    learned = reporting.learned_rows(classifier, done.train, done.train_where, source)
    tested = "tested" if done.report is None else "tested and reported on"
    with work_on(table, "testing", tested, done.quiet, unit_of(classifier)) as advance:
        found = evaluate_model(classifier, table.frame, done, learned=learned, progress=advance,
                               with_probabilities=done.results_format == "json",
                               **reporting.heading(model, input))
    result = found.result
    evidence.note_stale(classifier)
    if isinstance(result, Evaluation):
        evidence.note_unverified(result.novelty, done.quiet)
    if text_columns(classifier) is not None:
        evidence.note_textless(result.textless, classifier.model.without_terms)
    if result.unknown_labels:
        note("note: the model does not know the labels "
             f"{', '.join(map(repr, result.unknown_labels))}; their rows count as errors")
    if isinstance(result, Evaluation) and result.impossible:
        note(f"note: {quantity(result.impossible, 'row', 'is', 'are')} impossible under every "
             "class (l = 0), which counts as an error")
    if done.wrote_json(found.to_dict):
        return
    show_evaluation(result)
    for line in test_lines(found):
        out(line)
    if found.rates is not None and found.roc_auc is not None:
        show_rates(str(found.positive), found.rates, found.roc_auc)
