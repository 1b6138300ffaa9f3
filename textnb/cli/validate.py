"""The verb validate: how well a model's settings do on rows that it does not learn."""

from __future__ import annotations

from dataclasses import dataclass

from textnb.cli.console import note, out
from textnb.cli.inputs import (
    LabelledInput,
    ModelFile,
    QuietResults,
    SafeCsv,
    check_table,
    open_input_for,
    work_on,
)
from textnb.cli.options import option, verb
from textnb.errors import ParameterError, SchemaError, quantity
from textnb.workflow.options import ValidateOptions


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ValidateOutput(SafeCsv, QuietResults):
    """Output."""

    output: str | None = option(
        "File, by its ending, for the rows with answers of models that had not learned them.",
        "--output", "-o", metavar="FILE")


@verb
def validate(
    file: ModelFile, rows: LabelledInput, options: ValidateOptions, output: ValidateOutput
) -> None:
    """Cross-validate a model's settings: its tokenizer, limits and estimator are fitted again."""
    import polars as pl

    from textnb.cli.summary import evaluation_lines, online_lines, smoothing_line, validation_lines
    from textnb.cli.tables import frame_table, show, show_evaluation, show_rates
    from textnb.evaluation.online import OnlineResult
    from textnb.evaluation.smoothing import SmoothingPath
    from textnb.frames import sinks
    from textnb.storage.textmodel import load_fitted
    from textnb.workflow.validate import false_positive_rate_of, validate

    options.check()
    if output.safe_csv and output.output is None:
        raise ParameterError("--safe-csv goes with --output, which writes texts")
    if output.output is not None:
        if output.output == "-":
            raise ParameterError("--output is a file: standard output has the measures; give "
                                 "--output FILE")
        check_table(output.output, file.model, rows.input, safe_csv=output.safe_csv)
        if options.online or options.smoothing is not None or options.time is not None:
            raise ParameterError("--output is for folds and --leave-one-out, which answer each "
                                 "row: not with --online, --time or --smoothing")
    fitted = load_fitted(file.model)
    table = open_input_for(fitted, rows.input, rows, fitted.label)
    if output.output is not None:
        # The columns that are added to those of the input.
        SchemaError.check_new(("predicted", "probability", "fold"), table.frame.collect_schema())
    activity, past_tense = ("judging", "judged") if options.online else ("validating", "validated")
    with work_on(table, activity, past_tense, output.quiet,
                 phase="" if options.online else "reading") as advance:
        result = validate(fitted, table.frame, options, advance)
    # Only validation by folds counts copies.
    n_copies = getattr(result, "copies", 0)
    if n_copies:
        note(f"note: {n_copies:,} of {quantity(len(result.held_out), 'document')} "
             f"{'has' if n_copies == 1 else 'have'} exactly the words of one that its "
             "model has learned, which flatters the result; see textnb duplicates")
    if output.output is not None:
        answers = result.held_out.predictions().lazy()
        sinks.write(pl.concat([table.frame, answers], how="horizontal"), output.output,
                    safe_csv=output.safe_csv)
    if output.write_json_if_asked(result.to_dict):
        return
    if isinstance(result, SmoothingPath):
        # As text, because tables show numbers with three decimals.
        l_texts = pl.Series("l", [f"{value:g}" for value in result.table["l"]])
        show(frame_table(result.table.with_columns(l_texts)))
        out(smoothing_line(result))
        return
    if isinstance(result, OnlineResult):
        out(*online_lines(result, rate=false_positive_rate_of(fitted, result.positive)))
        show(frame_table(result.curve, title="in order, by tenths of the documents"))
        return
    show_evaluation(result.result)
    out(*evaluation_lines(result.result), *validation_lines(result))
    if result.positive is not None:
        answer = result.to_dict()
        show_rates(str(result.positive), answer["rates"], answer["roc_auc"])
        # The area above the ROC curve, by which filters of spam are compared.
        out(f"1-ROCA {answer['roca']:.4f} %")
