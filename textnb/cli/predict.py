"""Verbs that answer: predict a table of rows, show terms, explain a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    check_apart,
    check_format,
    features_of,
    reading,
    rows,
    text_columns,
    text_model,
    unit_of,
    watched,
)

if TYPE_CHECKING:
    import polars as pl


_MEASURES = {
    "z": "z: the log-odds of a term in the class against the rest, in standard errors",
    "weight": "weight: the score of a term for the class, less the mean for the other classes",
}


@verb
def predict(
    model: Model,
    input: Input,
    output: Annotated[str, typer.Option(
        "--output", "-o", help="File to write, by its ending, or - for standard output.")] = "-",
    probability: Annotated[bool, typer.Option(
        help="Add the probability of the predicted class.")] = False,
    scores: Annotated[bool, typer.Option(
        help="Add the score of every class: log P(row, class), up to what classes share.")] = False,
    explain: Annotated[int, typer.Option(
        help="Add the N terms that decided most.")] = 0,
    top_k: Annotated[int, typer.Option(
        help="Add the N most probable classes with their probabilities.")] = 0,
    output_format: Annotated[str | None, typer.Option(
        help="parquet, ipc, csv, tsv or ndjson.  [default: by the output's ending]")] = None,
    where: Where = None,
    input_format: InputFormat = None,
    storage_option: StorageOption = None,
    on_unreadable: OnUnreadable = "raise",
    subfolders: Subfolders = False,
    query: Query = None,
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Write the input with a column for the predicted class, in order."""
    import polars as pl

    from textnb.cli import evidence
    from textnb.errors import ParameterError
    from textnb.estimators.load import load
    from textnb.estimators.text import TextClassifier
    from textnb.frames import sinks
    from textnb.scoring.columns import Answers

    sinks.output_format(output, output_format)
    check_apart(model, output)
    classifier = load(model)
    options: dict[str, Any] = {"probability": probability, "scores": scores}
    if isinstance(classifier, TextClassifier):
        options |= {"explain": explain, "top": top_k}
    elif explain or top_k:
        option = "--explain" if explain else "--top-k"
        raise ParameterError(f"{option} is for models of texts; this is one of feature tables")
    frame = rows(input, where, input_format, encoding, text_columns(classifier), None,
                 features_of(classifier), storage=storage_option, query=query,
                 on_error=on_unreadable, subfolders=subfolders)
    frame, tell = watched(frame, text_columns(classifier))
    impossible = 0
    coverage = classifier.coverage() if isinstance(classifier, TextClassifier) else None

    def count_impossible(predicted: pl.Series) -> pl.Series:
        nonlocal impossible
        impossible += predicted.null_count()
        return predicted

    with reading(input), progress(
            "predicting", "predicted", quiet, unit_of(classifier)) as advance:
        answered = (classifier.answered(frame, Answers(**options), advance, coverage.add)
                    if coverage is not None
                    else classifier.predict(frame, progress=advance, **options))
        counted = answered.with_columns(pl.col("predicted").map_batches(
            count_impossible, return_dtype=answered.collect_schema()["predicted"],
            is_elementwise=True))
        sinks.write(counted, output, output_format)
    if not quiet:
        tell(input)
    evidence.note_stale(classifier)
    if coverage is not None:
        coverage.warn()
    if impossible:
        note(f"note: {impossible} rows are impossible under every class (l = 0) and have no "
             "prediction")


@verb
def top(
    model: Model,
    label: Annotated[str | None, typer.Option(
        "--class", "-c", help="One class only.")] = None,
    k: Annotated[int, typer.Option("-k", help="Terms per class.")] = 20,
    format: Format = "text",
) -> None:
    """Show the terms that tell each class best."""
    from textnb.cli.settings import as_label
    from textnb.cli.tables import frame_table, show

    check_format(format)
    classifier = text_model(model)
    terms = classifier.top(k, None if label is None else as_label(label, classifier.classes_))
    if format == "json":
        out(as_json(terms.to_dicts()))
        return
    for (name,), group in terms.group_by("class", maintain_order=True):
        # Where weights rank the terms there is no z to show.
        measure = group["measure"].first()
        hidden = ["class", "measure"] if measure == "z" else ["class", "measure", "z"]
        show(frame_table(group.drop(hidden), title=str(name)))
    note(f"ranked by {_MEASURES[str(terms['measure'].first())]}")


@verb
def explain(
    model: Model,
    text: Annotated[str, typer.Argument(
        help="The text, a message file (.eml), or - for standard input.")],
    column: Annotated[str | None, typer.Option(
        help="Of several text columns, the one that the text is of.  [default: the first]")] = None,
    message: Annotated[bool | None, typer.Option(
        "--message/--no-message", help="Explain a mail message as filter judges it, or a plain "
        "text.  [default: a message, if it is an .eml file, or any file or - for models of mail]",
    )] = None,
    k: Annotated[int, typer.Option("-k", help="Terms to show.")] = 20,
    format: Format = "text",
) -> None:
    """Show what decides one text, or one mail message, term by term."""
    from textnb.cli import messages
    from textnb.cli.tables import frame_table, plain, show
    from textnb.errors import ParameterError, SourceError

    check_format(format)
    if column is not None and message:
        raise ParameterError("--column is for a plain text: a message has the columns of the model")
    classifier = text_model(model)
    given: Any = text
    errors, verdict = None, None
    if column is None and messages.is_message(text, classifier.text_columns, message):
        raw = messages.message_bytes(text)
        given, errors = messages.columns_of(raw, classifier.text_columns)
        verdict = messages.filter_says(model, classifier, raw)
    elif text == "-":
        try:
            given = messages.stdin_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise SourceError.unreadable("standard input", f"it is not UTF-8: {error}") from None
    elif not text.isprintable():
        given = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    told = classifier.highlight(given if column is None else {column: given}, k)
    parts = told.table.drop("predicted", "runner_up")
    if format == "json":
        mail = {} if errors is None else {"errors": errors, "filter": verdict}
        out(as_json({"predicted": told.predicted, "runner_up": told.runner_up,
                     "score": told.score, "measure": told.measure, "terms": told.terms,
                     "known": told.known, "parts": parts.to_dicts(), **mail}))
        return
    show(frame_table(parts))
    against = ("" if told.runner_up is None else
               f", against {plain(str(told.runner_up))} by {told.score:.3f} ({told.measure})")
    out(f"{plain(str(told.predicted))}{against}")
    if verdict is not None:
        scaled = "" if not verdict["calibrated"] else (
            ", calibrated; the terms above add up to the score before it")
        out(f"filter: {verdict['status']}, log-odds of {plain(str(verdict['spam']))} "
            f"{verdict['log_odds']:.3f}{scaled}")
    if told.note:
        note(f"note: {told.note}")
    if errors:
        note(f"note: the message is malformed: {plain('; '.join(errors))}")
