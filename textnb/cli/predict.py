"""The verbs predict, mistakes and next (tables of rows), top (terms) and explain (one text)."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note, out, progress
from textnb.cli.inputs import (
    InputRows,
    LabelledInput,
    ModelFile,
    Quiet,
    Results,
    Tables,
    open_input_for,
    unit_of,
    work_on,
)
from textnb.cli.options import argument, option, verb
from textnb.errors import ParameterError, printable, quantity
from textnb.workflow.models import text_columns
from textnb.workflow.options import MistakesOptions, NextOptions, PredictOptions, TermsOptions

if TYPE_CHECKING:
    import polars as pl

    from textnb.learning.fitted import Fitted
    from textnb.workflow.models import AnyModel
    from textnb.workflow.predict import Predicted

# How terms are ranked, in words, by the value of the column "measure" of their table.
_RANKINGS = {
    "z": "z: the log-odds of a term in the class against the rest, in standard errors",
    "weight": "weight: the score of a term for the class, less the mean for the other classes",
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PredictOutput(Quiet, Tables):
    """Output."""

    output: str = option("File to write, by its ending, or - for standard output.",
                         "--output", "-o", default="-", metavar="FILE")


@verb
def predict(
    file: ModelFile, rows: InputRows, options: PredictOptions, output: PredictOutput
) -> None:
    """Write the input with a column for the predicted class, in order."""
    from textnb.workflow.models import load_model
    from textnb.workflow.predict import check_answers, predict

    input, target = rows.input, output.output
    format = output.check_table(target, file.model, input)
    options.check_format(format)
    classifier = load_model(file.model)
    check_answers(classifier, options)
    if input == "-" == target and format == "ndjson" and _streams_lines(classifier, rows):
        _predict_lines(classifier, options, output.quiet)
        return
    table = open_input_for(classifier, input, rows)
    with work_on(table, "predicting", "predicted", output.quiet, unit_of(classifier),
                 target=target) as advance:
        result = predict(classifier, table.frame, options, target, output.output_format, advance,
                         safe_csv=output.safe_csv)
    _note_answers(classifier, result)
    if not result.rows and (empty := table.no_rows_message()):
        note(f"note: {empty}")


def _note_answers(classifier: AnyModel, result: Predicted) -> None:
    """Note what is stale, and rows without text, without known terms, or that are impossible."""
    from textnb.cli import evidence
    from textnb.cli.summary import impossible_lines

    evidence.note_stale(classifier)
    if result.coverage is not None:
        result.coverage.warn()
        if result.coverage.blank_message:
            note(f"note: {result.coverage.blank_message}")
    note(*impossible_lines(result.impossible))


def _streams_lines(model: AnyModel, rows: InputRows) -> bool:
    """Whether standard input is NDJSON whose lines can be answered one by one."""
    from textnb.frames.stdin import format_of_stdin

    # With --where they can't: the types of columns are known only after the last line.
    return (rows.where is None and text_columns(model) is not None
            and (rows.format or format_of_stdin()) == "ndjson")


def _predict_lines(fitted: Fitted, options: PredictOptions, quiet: bool) -> None:
    """Answer each line of standard input when it arrives, on standard output."""
    import sys

    from textnb.errors import DataError
    from textnb.frames.stdin import STDIN, take_beginning
    from textnb.workflow.lines import answer_lines
    from textnb.workflow.predict import answers_for

    # To find out the format, some bytes were read: `take_beginning` returns them.
    with progress("predicting", "predicted", quiet, target="-") as advance:
        result = answer_lines(
            fitted, answers_for(options), sys.stdin.buffer, sys.stdout.buffer, advance,
            options.columns, beginning=take_beginning())
    _note_answers(fitted, result)
    if result.n_errors:
        raise DataError(f"{STDIN}: {quantity(result.n_errors, 'line', 'has', 'have')} no answer, "
                        f"but an error in its place; the first is {result.first_error}")


@verb
def mistakes(
    file: ModelFile, rows: LabelledInput, options: MistakesOptions, output: PredictOutput
) -> None:
    """Write the labelled rows that the model misjudges: number (from 0), answer, what misled it."""
    from textnb.cli import evidence
    from textnb.storage.textmodel import load_fitted
    from textnb.workflow.evaluate import mistakes

    input, target = rows.input, output.output
    output.check_table(target, file.model, input)
    fitted = load_fitted(file.model)
    table = open_input_for(fitted, input, rows, fitted.label)
    with work_on(table, "judging", "judged", output.quiet, target=target) as advance:
        n_written, n_wrong, novelty = mistakes(
            fitted, table.frame, options, target, output.output_format, advance,
            safe_csv=output.safe_csv)
    evidence.note_stale(fitted)
    if not fitted.is_multilabel:
        evidence.note_unverified(novelty, output.quiet)
    if not output.quiet:
        note(quantity(n_wrong, "mistake") + (
            f"; {quantity(n_written - n_wrong, 'row', 'is', 'are')} right by less than "
            f"{options.within:g}" if options.within else ""))


@verb
def next_rows(
    file: ModelFile, rows: InputRows, options: NextOptions, output: PredictOutput
) -> None:
    """Write the rows to label next, the most useful first: number (from 0), answer, and why."""
    from textnb.cli import evidence
    from textnb.evaluation.next_rows import choose_rows
    from textnb.frames import sinks
    from textnb.storage.textmodel import load_fitted
    from textnb.workflow.rows import check_storage_options, options_for

    input, source, target = rows.input, options.labelled, output.output
    output.check_table(target, file.model, input, source)
    if input == source == "-":
        raise ParameterError("standard input can be one of INPUT and --labelled only")
    check_storage_options(rows, input, source)
    fitted = load_fitted(file.model)
    table = open_input_for(fitted, input, options_for(input, rows))
    labelled = None if source is None else open_input_for(
        fitted, source, replace(options_for(source, rows), where=None))
    with work_on(table, "judging", "judged", output.quiet, target=target) as advance:
        # The labelled rows are read now, and the others when the choice is collected.
        with (labelled or table).naming_source():
            choice = choose_rows(
                fitted, table.frame, options.n, progress=advance,
                labelled=None if labelled is None else labelled.frame)
        rows_to_label = choice.collect()
        sinks.write(rows_to_label.lazy(), target, output.output_format, safe_csv=output.safe_csv)
    evidence.note_stale(fitted)
    if not output.quiet:
        note(f"{quantity(rows_to_label.height, 'row')} to label" + (
            ": no others differ from these" if rows_to_label.height < options.n else ""))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TopOptions(TermsOptions, Results):
    """Output."""

    label: str | None = option("One class only.", "--class", "-c", metavar="CLASS")


@verb
def top(file: ModelFile, options: TopOptions) -> None:
    """Show the terms that distinguish each class best."""
    from textnb.cli.tables import frame_table, note_infinite, show
    from textnb.scoring import texts
    from textnb.storage.textmodel import load_fitted
    from textnb.workflow.models import class_named

    fitted, label = load_fitted(file.model), options.label
    terms = texts.top(fitted, options.k, class_named(label, fitted.classes, setting="--class"))
    if options.write_json_if_asked(terms.to_dicts):
        return
    for (name,), group in terms.group_by("class", maintain_order=True):
        # If terms are ranked by their weights, and not by z-scores, the column z is empty.
        measure = group["measure"].first()
        hidden = ["class", "measure"] if measure == "z" else ["class", "measure", "z"]
        show(frame_table(group.drop(hidden), title=str(name)))
    note(f"ranked by {_RANKINGS[str(terms['measure'].first())]}")
    note_infinite(terms)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExplainInput(ModelFile):
    """Text."""

    text: str = argument("The text, a message file (.eml), or - for standard input.")
    column: str | None = option(
        "Text column to which the text belongs, of several.  [default: the first]")
    message: bool | None = option(
        "Explain a mail message as filter judges it, or a plain text.  [default: a message for an "
        ".eml file, and for any file or - where the model is of mail]", "--message/--no-message")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExplainOutput(Results):
    """Output."""

    k: int = option("Terms to show.", "-k", default=20)
    label: list[str] | None = option(
        "Label to explain, of a model of lists of labels; repeat it for several.  [default: those "
        "that are predicted]", "--class", "-c", metavar="CLASS")


def _list_of_tokens(text: str) -> list[str]:
    """Parse an argument that is a JSON list of tokens."""
    try:
        tokens = json.loads(text)
    except (ValueError, RecursionError):
        tokens = None
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ParameterError(f"the model reads lists of tokens: type one as JSON, such as "
                             f'\'["good", "film"]\'; got {text!r:.60}')
    return tokens


@verb
def explain(input: ExplainInput, output: ExplainOutput) -> None:
    """Show what decides one text, or one mail message, term by term."""
    from textnb.cli import messages
    from textnb.cli.tables import note_infinite
    from textnb.errors import SourceError
    from textnb.scoring import texts
    from textnb.storage.textmodel import load_fitted

    model, text, column, message = input.model, input.text, input.column, input.message
    if column is not None and message:
        raise ParameterError("--column is for a plain text: a message fills all its columns")
    fitted = load_fitted(model)
    document: Any = text
    # What is malformed in a message, and the verdict on it; None for a plain text.
    errors, verdict = None, None
    if column is None and messages.is_message(text, fitted.columns, message):
        from textnb.mail.columns import message_columns

        raw = messages.message_bytes(text)
        columns, parsed = message_columns(raw, fitted.columns, fitted.token_columns)
        document = {name: value or "" for name, value in columns.items()}
        errors = list(parsed.errors)
        if not fitted.is_multilabel:
            verdict = messages.filter_verdict(model, fitted, raw)
    elif text == "-":
        try:
            document = messages.stdin_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise SourceError.unreadable("standard input", f"it is not UTF-8: {error}") from None
    elif not text.isprintable():
        # Python decodes bytes of arguments that are not UTF-8 to surrogates.
        document = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    # Columns that hold lists of tokens, instead of texts that the model splits.
    if isinstance(document, str) and (column or fitted.columns[0]) in fitted.token_columns:
        document = _list_of_tokens(document)
    if column is not None:
        document = {column: document}
    # What JSON has about a message, beside the explanation.
    message_values: dict[str, Any] = {} if errors is None else {"errors": errors}
    if fitted.is_multilabel or output.label is not None:
        _show_labels(fitted, document, output, message_values)
        return
    explanation: Any = texts.highlight(fitted, document, output.k)
    parts = explanation.table.drop("predicted", "runner_up")
    if errors is not None:
        message_values["filter"] = verdict
    if output.write_json_if_asked(lambda: {
            **{name: getattr(explanation, name) for name in (
                "predicted", "runner_up", "score", "measure", "terms", "known")},
            "parts": parts.to_dicts(), **message_values}):
        return
    _show_parts(parts)
    against = "" if explanation.runner_up is None else (
        f", against {printable(str(explanation.runner_up))} by {explanation.score:.3f} "
        f"({explanation.measure})")
    out(f"{printable(str(explanation.predicted))}{against}")
    if verdict is not None:
        # The verdict has the log-odds of spam, and the terms above are for the predicted class: if
        # that is the other one of two classes, show its log-odds.
        shows_spam = explanation.predicted == verdict["spam"] or len(fitted.classes) != 2
        label, log_odds = (verdict["spam"], verdict["log_odds"]) if shows_spam else (
            explanation.predicted, -verdict["log_odds"])
        end = "" if not verdict["calibrated"] else (
            ", calibrated; the terms above add up to the score before it")
        out(f"filter: {verdict['status']}, log-odds of {printable(str(label))} {log_odds:.3f}{end}")
    if explanation.note:
        note(f"note: {explanation.note}")
    note_infinite(parts)
    if errors:
        note(f"note: the message is malformed: {printable('; '.join(errors))}")


def _show_parts(parts: pl.DataFrame, title: str = "") -> None:
    """Show the intercept and the strongest terms, and in one line the sum of all others."""
    from textnb.cli.tables import frame_table, show

    others = parts.filter(part="other terms")
    show(frame_table(parts.remove(part="other terms"), title=title))
    for count, contribution in others.select("count", "contribution").iter_rows():
        out(f"{quantity(count, 'other term')} add{'s' if count == 1 else ''} "
            f"{contribution:.3f} together")


def _show_labels(
    fitted: Fitted, document: Any, output: ExplainOutput, message_values: dict[str, Any]
) -> None:
    """Show which terms decide each label of a text."""
    from textnb.cli.tables import note_infinite
    from textnb.scoring import texts
    from textnb.workflow.models import class_named

    labels = None if output.label is None else [
        class_named(label, fitted.classes, setting="--class") for label in output.label]
    terms = texts.explanation(fitted, document, output.k, labels)
    groups = terms.group_by("label", "predicted", "score", "threshold", maintain_order=True)
    columns = ["part", "term", "count", "contribution"]
    explanations = [dict(zip(("label", "predicted", "score", "threshold"), key, strict=True))
                    | {"parts": parts.select(columns)} for key, parts in groups]
    if output.write_json_if_asked(lambda: {
            "labels": [row | {"parts": row["parts"].to_dicts()} for row in explanations],
            **message_values}):
        return
    for row in explanations:
        _show_parts(row["parts"], str(row["label"]))
        out(f"{printable(str(row['label']))} is {'' if row['predicted'] else 'not '}predicted: "
            f"score {row['score']:.3f}, threshold {row['threshold']:.3f}")
    if terms["term"].null_count() == terms.height:
        note(f"note: no term of the text is known: the answer rests on "
             f"{fitted.model.without_terms}")
    note_infinite(terms.select(columns))
    if errors := message_values.get("errors"):
        note(f"note: the message is malformed: {printable('; '.join(errors))}")
