"""The verb validate: how well a model's settings do on rows that it does not learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.cli.console import as_json, note, out, progress
from textnb.cli.inputs import (
    InputRows,
    LabelOptions,
    ModelFile,
    Quiet,
    Results,
    reading,
    rows,
)
from textnb.cli.options import TypedOptions, option, verb
from textnb.errors import quantity

if TYPE_CHECKING:
    import polars as pl

    from textnb.evaluation.held_out import HeldOut
    from textnb.learning.fitted import Fitted

# Options that divide the rows into folds; leave-one-out needs none of them.
_OF_FOLDS = ("folds", "groups", "time", "seed")
_OF_BLOCKS = ("block", "delay", "feedback")


@dataclass(kw_only=True)
class ValidateInput(LabelOptions, InputRows):
    """Input."""


@dataclass(kw_only=True)
class Validation:
    """Validation."""

    folds: int = option("Divide the rows into this many parts; a model of the others scores each.",
                        default=5)
    groups: str | None = option(
        "Column whose equal values stay in one fold, such as an author.", metavar="COLUMN")
    time: str | None = option(
        "Column of times: a model of the earlier parts scores each part.", metavar="COLUMN")
    seed: int = option("Seed of the shuffle before the rows are divided.", default=0)
    leave_one_out: bool = option(
        "INPUT is what MODEL learned: each row is left out in turn.", default=False)
    online: bool = option(
        "Judge the rows in order, each block by a model of those before it, as a mail filter "
        "meets its messages: 1-ROCA, and errors of --positive.  [its default: spam]",
        default=False)
    block: int = option("With --online: rows that one model judges.", default=100, least=1,
                        is_common=False)
    delay: int = option("With --online: rows that come before a row is learned.", default=0,
                        least=0, is_common=False)
    feedback: float = option("With --online: share of the rows that are ever learned.",
                             default=1.0, is_common=False)
    smoothing: str | None = option(
        "Compare values of l, such as 1,0.1,0.01, or auto for 17 of them, by leaving out each row "
        "that MODEL learned in turn.", metavar="N,N,...", python="grid")


@dataclass(kw_only=True)
class ValidateOutput(Quiet, Results):
    """Output."""

    positive: str | None = option(
        "Also show the rates and the area under the ROC of this class against the rest.",
        metavar="CLASS")


@verb
def validate(
    typed: TypedOptions, file: ModelFile, source: ValidateInput, method: Validation,
    done: ValidateOutput,
) -> None:
    """Cross-validate a model's settings: its tokenizer, limits and estimator are fitted again."""
    from textnb.errors import ParameterError
    from textnb.storage.textmodel import load_fitted

    _check_one_method(typed)
    input, smoothing = source.input, method.smoothing
    grid = None if smoothing is None else _grid(smoothing)
    fitted = load_fitted(file.model)
    if fitted.is_multilabel:
        for name in ("smoothing", "positive"):
            if name in typed:
                raise ParameterError.multilabel(f"--{name.replace('_', '-')}")
    frame = rows(input, source, fitted.columns, fitted.label)
    if method.online:
        _validate_online(fitted, frame, source, method, done)
        return
    with reading(input, frame, source.where), progress(
            "validating", "validated", done.quiet) as advance:
        if smoothing is not None:
            from textnb.evaluation.smoothing import smoothing_path

            path = smoothing_path(fitted, frame, grid, progress=advance)
        else:
            held, copies = _validate(fitted, frame, method.leave_one_out, advance,
                                     done.positive, folds=method.folds, groups=method.groups,
                                     time=method.time, seed=method.seed)
    if smoothing is not None:
        _show_path(path, done.results_format)
        return
    if copies:
        note(f"note: {copies:,} of {quantity(len(held), 'document')} "
             f"{'has' if copies == 1 else 'have'} exactly the words of one that its "
             "model has learned, which flatters the result; see textnb duplicates")
    if held.link == "sigmoid":
        _show_labels(held, copies, done.results_format)
    else:
        _show(held, copies, done.positive, done.results_format)


def _check_one_method(typed: dict[str, Any]) -> None:
    """ParameterError for options that would have no effect."""
    from textnb.errors import ParameterError

    excluded = {"smoothing": (*_OF_FOLDS, "positive", "online"),
                "leave_one_out": (*_OF_FOLDS, "online"), "online": ("folds", "groups")}
    for method, names in excluded.items():
        for name in names:
            if method in typed and name in typed:
                raise ParameterError(f"--{name} does not go with --{method.replace('_', '-')}")
    for name in _OF_BLOCKS:
        if name in typed and "online" not in typed:
            raise ParameterError(f"--{name} belongs to --online")


def _validate_online(
    fitted: Fitted, frame: pl.LazyFrame, source: ValidateInput, method: Validation,
    done: ValidateOutput,
) -> None:
    from textnb.cli.settings import as_label
    from textnb.cli.tables import frame_table, show
    from textnb.evaluation.held_out import HeldOut
    from textnb.evaluation.online import HAM_SHARE, validate_online

    positive = None if fitted.is_multilabel else as_label(
        done.positive or "spam", fitted.classes, "--positive")
    # A threshold that the model chose as it learned is one of its settings.
    decision = fitted.decision if fitted.model.scores_left_out else None
    rate = decision.evidence.get("max_false_positive_rate") if (
        decision is not None and decision.positive == positive) else None
    with reading(source.input, frame, source.where), progress(
            "judging", "judged", done.quiet) as advance:
        result = validate_online(
            fitted, frame, positive, time=method.time, block=method.block, delay=method.delay,
            feedback=method.feedback, seed=method.seed, max_false_positive_rate=rate,
            progress=advance)
    if isinstance(result, HeldOut):
        _show_labels(result, 0, done.results_format)
        return
    if done.results_format == "json":
        out(as_json(result.to_dict()))
        return
    out(f"{quantity(len(result.held), 'document')}, {result.held.method}")
    out(f"1-ROCA {result.roca:.4f} % ({_shown(result.roca_interval, 4)})")
    out(f"{positive} missed at {100 * HAM_SHARE:g} % false positives: "
        f"{result.missed_at_share:.2f} % ({_shown(result.missed_interval, 2)})")
    at = "log-odds 0" if rate is None else f"thresholds for {100 * rate:g} % false positives"
    out(f"at {at}: {result.false_positives:.3f} % false positives, "
        f"{result.false_negatives:.3f} % of {positive} missed")
    show(frame_table(result.curve, title="in order, by tenths of the documents"))


def _shown(interval: tuple[float, float], digits: int) -> str:
    return f"95 % interval {interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def _grid(smoothing: str) -> list[float] | None:
    from textnb.errors import ParameterError

    if smoothing == "auto":
        return None
    try:
        return [float(part) for part in smoothing.split(",")]
    except ValueError:
        raise ParameterError.out_of_range(
            "--smoothing", "numbers, such as 1,0.1,0.01, or auto", smoothing) from None


def _validate(
    fitted: Fitted, frame: pl.LazyFrame, leave_one_out: bool, advance: Any,
    positive: str | None, **how: Any,
) -> tuple[HeldOut, int]:
    """Scores, and how many documents have the words of one that their model has learned."""
    import numpy as np

    from textnb.cli.settings import as_label
    from textnb.evaluation.duplicates import copies_learned, same_texts
    from textnb.evaluation.folds import score_folds
    from textnb.evaluation.leave_one_out import leave_one_out as each_left_out
    from textnb.selection.splits import split
    from textnb.text.tokens import Tokenizer

    parts = None if leave_one_out else split(frame, fitted.label, **how)
    if positive is not None:
        # Before the rows are scored, which takes long.
        as_label(positive, fitted.classes if parts is None else parts.classes.to_numpy(),
                 "--positive")
    if parts is None:
        held = each_left_out(fitted, frame, progress=advance)
        folds = np.arange(len(held))
    else:
        held, folds = score_folds(fitted, frame, parts, progress=advance), parts.folds
    lists = tuple(fitted.token_columns)
    same = same_texts(frame, text=fitted.columns, tokenizer=Tokenizer(token_columns=lists))
    return held, copies_learned(same, folds)


def _show(held: HeldOut, copies: int, positive: str | None, format: str) -> None:
    from textnb.cli.evidence import not_judged_words
    from textnb.cli.settings import as_label
    from textnb.cli.tables import show_evaluation, show_rates

    result = held.evaluate()
    answer = {"method": held.method, **result.to_dict(), "log_loss": held.log_loss,
              "calibrated": held.is_calibrated,
              "not_judged": held.not_judged, "copies_learned": copies}
    if held.folds is not None:
        table = held.accuracy_by_fold()
        answer |= {"folds": table.to_dicts(), "accuracy_mean": table["accuracy"].mean(),
                   "accuracy_standard_deviation": table["accuracy"].std()}
    if positive is not None:
        label = as_label(positive, held.classes, "--positive")
        answer["rates"], answer["roca"] = result.rates(label).to_dict(), held.roca(label)
        answer["roc_auc"] = 1 - answer["roca"] / 100
    if format == "json":
        out(as_json(answer))
        return
    show_evaluation(result)
    # A calibration that `calibrate` adds to a model later is not among the validated settings.
    how = "calibrated in each fold" if held.is_calibrated else "uncalibrated"
    summary = f"log loss {answer['log_loss']:.4f} ({how}), {held.method}"
    if held.folds is not None:
        summary += (f": mean accuracy {answer['accuracy_mean']:.4f}, standard deviation "
                    f"{answer['accuracy_standard_deviation']:.4f}")
    out(summary)
    for line in not_judged_words(held):
        out(line)
    if positive is not None:
        show_rates(positive, answer["rates"], answer["roc_auc"])
        out(f"1-ROCA {answer['roca']:.4f} %")


def _show_labels(held: HeldOut, copies: int, format: str) -> None:
    from textnb.cli.tables import show_labels

    result = held.evaluate()
    if format == "json":
        out(as_json({"method": held.method, **result.to_dict(), "copies_learned": copies}))
        return
    show_labels(result)
    out(f"labels with scores above 0, {held.method}")


def _show_path(path: Any, format: str) -> None:
    import polars as pl

    from textnb.cli.tables import frame_table, show

    if format == "json":
        out(as_json(path.to_dict()))
        return
    names = pl.Series("l", [f"{value:g}" for value in path.table["l"]])
    show(frame_table(path.table.with_columns(names)))
    left_out = f", {path.excluded:,} of them in no loss" if path.excluded else ""
    out(f"l = {path.best:g} is what --l auto would choose of these ({path.method}, "
        f"{quantity(path.documents, 'document')}{left_out})")
