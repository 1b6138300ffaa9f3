"""The verb validate: how well a model's settings do on rows that it does not learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textnb.cli.console import note, out, progress
from textnb.cli.inputs import LabelledInput, ModelFile, Quiet, Results, reading, rows
from textnb.cli.options import verb
from textnb.errors import quantity
from textnb.workflow.options import ValidateOptions
from textnb.workflow.results import as_json


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ValidateOutput(Quiet, Results):
    """Output."""


@verb
def validate(
    file: ModelFile, source: LabelledInput, how: ValidateOptions, done: ValidateOutput
) -> None:
    """Cross-validate a model's settings: its tokenizer, limits and estimator are fitted again."""
    from textnb.evaluation.online import OnlineResult
    from textnb.evaluation.smoothing import SmoothingPath
    from textnb.storage.textmodel import load_fitted
    from textnb.workflow.validate import rate_of, validate

    how.check()
    fitted = load_fitted(file.model)
    frame = rows(source.input, source, fitted.columns, fitted.label)
    what, verbed = ("judging", "judged") if how.online else ("validating", "validated")
    with reading(source.input, frame, source.where), progress(
            what, verbed, done.quiet) as advance:
        found = validate(fitted, frame, how, advance)
    copies = getattr(found, "copies", 0)
    if copies:
        note(f"note: {copies:,} of {quantity(len(found.held), 'document')} "
             f"{'has' if copies == 1 else 'have'} exactly the words of one that its "
             "model has learned, which flatters the result; see textnb duplicates")
    if done.results_format == "json":
        out(as_json(found.to_dict()))
    elif isinstance(found, SmoothingPath):
        _show_path(found)
    elif isinstance(found, OnlineResult):
        _show_online(found, rate_of(fitted, found.positive))
    else:
        _show(found)


def _show_online(result: Any, rate: float | None) -> None:
    from textnb.cli.tables import frame_table, show
    from textnb.evaluation.online import HAM_SHARE

    positive = result.positive
    out(f"{quantity(len(result.held), 'document')}, {result.held.method}")
    out(f"1-ROCA {result.roca:.4f} % ({_interval(result.roca_interval, 4)})")
    out(f"{positive} missed at {100 * HAM_SHARE:g} % false positives: "
        f"{result.missed_at_share:.2f} % ({_interval(result.missed_interval, 2)})")
    at = "log-odds 0" if rate is None else f"thresholds for {100 * rate:g} % false positives"
    out(f"at {at}: {result.false_positives:.3f} % false positives, "
        f"{result.false_negatives:.3f} % of {positive} missed")
    show(frame_table(result.curve, title="in order, by tenths of the documents"))


def _interval(interval: tuple[float, float], digits: int) -> str:
    return f"95 % interval {interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def _show(found: Any) -> None:
    from textnb.cli.evidence import not_judged_words
    from textnb.cli.tables import show_evaluation, show_labels, show_rates

    held, answer = found.held, found.to_dict()
    if held.link == "sigmoid":
        show_labels(found.result)
        out(f"labels that the models predict, {held.method}")
        return
    show_evaluation(found.result)
    # A calibration that `calibrate` adds to a model later is not among the validated settings.
    how = "calibrated in each fold" if held.is_calibrated else "uncalibrated"
    summary = f"log loss {answer['log_loss']:.4f} ({how}), {held.method}"
    if held.folds is not None:
        summary += (f": mean accuracy {answer['accuracy_mean']:.4f}, standard deviation "
                    f"{answer['accuracy_standard_deviation']:.4f}")
    out(summary)
    for line in not_judged_words(held):
        out(line)
    if found.positive is not None:
        show_rates(str(found.positive), answer["rates"], answer["roc_auc"])
        out(f"1-ROCA {answer['roca']:.4f} %")


def _show_path(path: Any) -> None:
    import polars as pl

    from textnb.cli.tables import frame_table, show

    names = pl.Series("l", [f"{value:g}" for value in path.table["l"]])
    show(frame_table(path.table.with_columns(names)))
    left_out = f", {path.excluded:,} of them in no loss" if path.excluded else ""
    out(f"l = {path.best:g} is what --l auto would choose of these ({path.method}, "
        f"{quantity(path.documents, 'document')}{left_out})")
