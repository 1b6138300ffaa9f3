"""The verb validate: how well a model's settings do on rows that it does not learn."""

from __future__ import annotations

from textnb.cli.console import note, out
from textnb.cli.inputs import LabelledInput, ModelFile, QuietResults, rows_of, work_on
from textnb.cli.options import verb
from textnb.errors import quantity
from textnb.workflow.options import ValidateOptions


@verb
def validate(
    file: ModelFile, source: LabelledInput, how: ValidateOptions, done: QuietResults
) -> None:
    """Cross-validate a model's settings: its tokenizer, limits and estimator are fitted again."""
    import polars as pl

    from textnb.cli.summary import (
        evaluation_lines,
        online_lines,
        smoothing_line,
        validation_lines,
    )
    from textnb.cli.tables import frame_table, show, show_evaluation, show_rates
    from textnb.evaluation.online import OnlineResult
    from textnb.evaluation.smoothing import SmoothingPath
    from textnb.storage.textmodel import load_fitted
    from textnb.workflow.validate import rate_of, validate

    how.check()
    fitted = load_fitted(file.model)
    table = rows_of(fitted, source.input, source, fitted.label)
    what, verbed = ("judging", "judged") if how.online else ("validating", "validated")
    with work_on(table, what, verbed, done.quiet) as advance:
        found = validate(fitted, table.frame, how, advance)
    copies = getattr(found, "copies", 0)
    if copies:
        note(f"note: {copies:,} of {quantity(len(found.held), 'document')} "
             f"{'has' if copies == 1 else 'have'} exactly the words of one that its "
             "model has learned, which flatters the result; see textnb duplicates")
    if done.wrote_json(found.to_dict):
        return
    if isinstance(found, SmoothingPath):
        names = pl.Series("l", [f"{value:g}" for value in found.table["l"]])
        show(frame_table(found.table.with_columns(names)))
        out(smoothing_line(found))
        return
    if isinstance(found, OnlineResult):
        for line in online_lines(found, rate_of(fitted, found.positive)):
            out(line)
        show(frame_table(found.curve, title="in order, by tenths of the documents"))
        return
    show_evaluation(found.result)
    for line in (*evaluation_lines(found.result), *validation_lines(found)):
        out(line)
    if found.positive is not None:
        answer = found.to_dict()
        show_rates(str(found.positive), answer["rates"], answer["roc_auc"])
        out(f"1-ROCA {answer['roca']:.4f} %")
