"""The verb test: it scores labelled rows."""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.cli import evidence
from textnb.cli.console import note, out
from textnb.cli.inputs import (
    LabelledInput,
    LabelledRowOptions,
    ModelFile,
    Quiet,
    Results,
    check_apart,
    first_names,
    is_same_file,
    open_input_for,
    unit_of,
    work_on,
)
from textnb.cli.options import option, verb
from textnb.errors import DataError, ParameterError, quantity
from textnb.frames.cloud import hide_secrets
from textnb.workflow.models import AnyModel, load_model, text_columns
from textnb.workflow.options import TestOptions

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TestOutput(TestOptions, Quiet, Results):
    """Output."""

    train: str | None = option(
        "Rows that the model learned: the report names texts that are in both.", metavar="FILE")
    train_where: str | None = option("Rows of --train for which this SQL condition holds.")


@verb
def run_test(file: ModelFile, rows: LabelledInput, output: TestOutput) -> None:
    """Score labelled rows: accuracy, and precision, recall and F1 per class."""
    from textnb.cli.summary import test_lines
    from textnb.cli.tables import show_evaluation, show_rates
    from textnb.evaluation.metrics import Evaluation
    from textnb.workflow.evaluate import evaluate_model, positive_class_of
    from textnb.workflow.rows import check_storage_options, options_for

    model, input = file.model, rows.input
    check_storage_options(rows, input, output.train)
    _check_report(output.report, output.train, output.train_where, model, input)
    classifier = load_model(model)
    table = open_input_for(classifier, input, options_for(input, rows), classifier.label)
    # An error is raised before rows are read, which takes long.
    positive_class_of(classifier, output)
    learned = _learned_rows(classifier, output.train, output.train_where, rows)
    past_tense = "tested" if output.report is None else "tested and reported on"
    with work_on(table, "testing", past_tense, output.quiet, unit_of(classifier)) as advance:
        result = evaluate_model(classifier, table.frame, output, learned=learned, progress=advance,
                                with_probabilities=output.results_format == "json",
                                **_heading(model, input))
    evaluation = result.result
    evidence.note_stale(classifier)
    if isinstance(evaluation, Evaluation):
        evidence.note_unverified(evaluation.novelty, output.quiet)
    if text_columns(classifier) is not None:
        evidence.note_blank(blank=evaluation.textless, rows=evaluation.documents,
                            consequence=f"answered by {classifier.model.without_terms}")
    if evaluation.unknown_labels:
        labels = first_names(list(map(repr, evaluation.unknown_labels)))
        note(f"note: the model does not know the labels {labels}; their rows count as errors")
    if isinstance(evaluation, Evaluation) and evaluation.impossible:
        note(f"note: {quantity(evaluation.impossible, 'row', 'is', 'are')} impossible under every "
             "class (l = 0), which counts as an error")
    if output.write_json_if_asked(result.to_dict):
        return
    show_evaluation(evaluation)
    out(*test_lines(result))
    if result.rates is not None and result.roc_auc is not None:
        show_rates(str(result.positive), result.rates, result.roc_auc)


def _check_report(
    report: str | None, train: str | None, train_where: str | None, *paths: str
) -> None:
    """Raise ParameterError for options without effect, or a report that can't be written.

    Call it before rows are read, which takes long.
    """
    if train is not None and report is None:
        raise ParameterError("--train goes with --report, which shows what was found")
    if train_where is not None and train is None:
        raise ParameterError("--train-where goes with --train, whose rows it chooses")
    if train is not None and train_where is None and any(
            is_same_file(path, train) for path in paths):
        raise ParameterError(f"--train {train} is also what is tested, so every row would count as "
                             "learned: choose the rows that it learned, e.g. --train-where "
                             "\"split = 'train'\"")
    if report is None:
        return
    from textnb.files.replace import check_target
    from textnb.report.charts import check_installed

    check_installed()
    check_target(report)
    check_apart(report, *paths, train, option="--report")


def _learned_rows(
    classifier: AnyModel, train: str | None, where: str | None,
    options: LabelledRowOptions,
) -> pl.DataFrame | None:
    """The texts and labels of the training rows in the file ``train``; None if it is None."""
    from textnb.workflow.rows import options_for

    if train is None:
        return None
    if text_columns(classifier) is None:
        raise ParameterError("--train is for models of texts; this is one of feature tables")
    # Options such as --read format are for the test rows, and may not suit the training rows.
    rows = LabelledRowOptions(where=where, encoding=options.encoding,
                              storage_options=options_for(train, options).storage_options)
    table = open_input_for(classifier, train, rows, classifier.label, where_option="--train-where")
    # Read here, so that an error in this file does not name the file of the test rows.
    with table.naming_source():
        learned = table.frame.select(*classifier.columns, classifier.label).collect()
        if not learned.height:
            raise DataError.no_rows("the training set", "there is nothing to compare")
        return learned


def _heading(model: str, input: str) -> dict[str, Any]:
    """The title and the date of a report, as arguments of `evaluate_model`."""
    name = "standard input" if input == "-" else os.path.basename(
        os.path.normpath(hide_secrets(input)))
    return {"title": f"{os.path.basename(model)} on {name}", "date": datetime.date.today()}
