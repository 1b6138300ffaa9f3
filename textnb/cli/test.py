"""The verb that scores labelled rows."""

from __future__ import annotations

from typing import Annotated

import typer

from textnb.cli import evidence, reporting
from textnb.cli.console import as_json, note, out, progress, verb
from textnb.cli.inputs import (
    Encoding,
    Format,
    Input,
    InputFormat,
    Model,
    OnUnreadable,
    Query,
    Quiet,
    StorageOption,
    Subfolders,
    Where,
    check_format,
    check_storage,
    features_of,
    for_url,
    reading,
    rows,
    text_columns,
    unit_of,
    watched,
)


@verb
def run_test(
    model: Model,
    input: Input,
    positive: Annotated[str | None, typer.Option(
        help="Also show the rates and the area under the ROC of this class against the rest.",
    )] = None,
    report: Annotated[str | None, typer.Option(
        help="HTML page to write: charts, terms, mistakes, and what is odd about the rows.",
    )] = None,
    train: Annotated[str | None, typer.Option(
        help="What the model learned: the report tells which texts are in both.")] = None,
    train_where: Annotated[str | None, typer.Option(
        help="Of that, the rows for which this SQL condition holds.")] = None,
    format: Format = "text",
    where: Where = None,
    input_format: InputFormat = None,
    storage_option: StorageOption = None,
    on_unreadable: OnUnreadable = "raise",
    subfolders: Subfolders = False,
    query: Query = None,
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Score labelled rows: accuracy, and precision, recall and F1 per class."""
    from textnb.cli.settings import as_label
    from textnb.cli.tables import show_evaluation, show_rates
    from textnb.estimators.load import load
    from textnb.evaluation.metrics import evaluate, evaluate_roc

    check_format(format)
    check_storage(storage_option, input, train)
    reporting.check(report, train, train_where, model, input)
    classifier = load(model)
    frame = rows(input, where, input_format, encoding, text_columns(classifier), classifier.label,
                 features_of(classifier), storage=for_url(input, storage_option), query=query,
                 on_error=on_unreadable, subfolders=subfolders)
    frame, tell = watched(frame, text_columns(classifier))
    label = None if positive is None else as_label(positive, classifier.classes_)
    learned = reporting.learned_rows(
        classifier, train, train_where, encoding, for_url(train, storage_option))
    done = "tested" if report is None else "tested and reported on"
    with reading(input), progress("testing", done, quiet, unit_of(classifier)) as advance:
        if report is None:
            result = evaluate(classifier, frame, progress=advance)
        else:
            result = reporting.write(
                classifier, frame, report, learned, label, (model, input), advance)
    if not quiet:
        tell(input)
    evidence.note_stale(classifier)
    evidence.note_untold(result.novelty, quiet)
    if result.unknown_labels:
        note("note: the model does not know the labels "
             f"{', '.join(map(repr, result.unknown_labels))}; their rows count as errors")
    if result.impossible:
        note(f"note: {result.impossible} rows are impossible under every class (l = 0) and count "
             "as errors")
    answer = result.to_dict()
    if positive is not None:
        with reading(input):
            answer["roc_auc"] = evaluate_roc(classifier, frame, label).auc
        answer["rates"] = result.rates(label).to_dict()
    if format == "json":
        out(as_json(answer))
        return
    show_evaluation(result)
    if result.decided is not None:
        out("by the model's decision: " + ", ".join(
            f"{value:,} {name.replace('_', ' ')}" for name, value in result.decided.items()))
    if positive is not None:
        show_rates(positive, answer["rates"], answer["roc_auc"])
