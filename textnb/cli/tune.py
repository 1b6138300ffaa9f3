"""The verb tune: it searches for settings."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from textnb.cli.console import live, note, out, stderr
from textnb.cli.inputs import (
    LabelledInput,
    NewModel,
    Results,
    check_apart,
    note_columns_without_text,
    note_malformed,
    open_input,
)
from textnb.cli.options import TypedOptions, name_of, option, verb
from textnb.cli.train import ModelOptions
from textnb.cli.words import toml_of
from textnb.errors import ParameterError, quantity
from textnb.learning.settings import ColumnSettings, LimitSettings
from textnb.runtime.progress import cropped
from textnb.runtime.settings import declared
from textnb.workflow.options import TokenOptions, TuneOptions

if TYPE_CHECKING:
    from textnb.selection.search import Tuned


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TuneOutput(NewModel, Results):
    """Output."""

    table: str | None = option(
        "File of all trials to write, by its ending; or else Parquet.", metavar="FILE")

    def check(self, *inputs: str) -> None:
        """Raise ParameterError or SourceError if a file can't be written."""
        from textnb.files.replace import check_target

        super().check(*inputs)
        if self.table is None:
            return
        check_target(self.table)
        for input in inputs:
            check_apart(input, self.table)
        if os.path.realpath(self.table) == os.path.realpath(self.output):
            raise ParameterError("--output and --table must be different files; got "
                                 f"{self.output} and {self.table}")


@verb
def tune(
    options: TypedOptions, rows: LabelledInput, columns: ColumnSettings, budget: TuneOptions,
    output: TuneOutput,
) -> None:
    """Search for the settings that classify labelled rows best, and train a model with them."""
    from textnb.frames import sinks
    from textnb.selection.search import TRIALS
    from textnb.storage.textmodel import save_fitted
    from textnb.workflow.tune import tune

    output.check(rows.input)
    table = open_input(rows.input, rows, columns.text, columns.label, counts_texts=True)
    with table.reading(), live("tuning", output.quiet) as shown:
        result = tune(table.frame, columns, budget, None if output.quiet else partial(
            _note_trial, budget.trials or (TRIALS if budget.seconds is None else None),
            shown is not None))
    save_fitted(result.fitted, output.output)
    if output.table is not None:
        ending = os.path.splitext(output.table)[1].lower()
        sinks.write(result.trials.lazy(), output.table, sinks.ENDINGS.get(ending, "parquet"))
    if not output.quiet:
        note_malformed(table)
        note_columns_without_text(table)
    command = _command(result, options, rows.input, output.output)
    if result.fitted.is_multilabel:
        command += _threshold_command(result, options, budget, rows.input, output.output)
    if not output.wrote_json(lambda: {**result.to_dict(), "command": command}):
        _show(result, command, budget.seconds)


def _note_trial(trials: int | None, only_best: bool, trial: dict[str, Any]) -> None:
    """Note a trial; if a line shows all of them, only the best so far, on one line of the terminal.
    """
    name = f"trial {trial['trial']}{'' if trials is None else f' of {trials}'}"
    value = "can't be learned" if trial["value"] is None else f"{trial['value']:.4f}"
    if not only_best:
        note(f"{name}: {value}{' (best)' if trial['best'] else ''} on {trial['documents']:,} "
             f"documents in {trial['seconds']:.1f} s: {trial['settings']}")
    elif trial["best"]:
        note(cropped(f"{name}: {value} {trial['settings']}", stderr().width))


def _show(result: Tuned, command: str, seconds: float | None) -> None:
    estimate, default = result.estimate, result.default
    lead, tried = result.lead, quantity(result.trials.height, "trial")
    if lead is not None and not lead.is_sure:
        out(f"best of {tried}: {lead.settings}")
        out(f"its {result.metric} is better than that of the defaults by {lead}, "
            "which chance can do: the defaults are kept")
    else:
        out(f"best of {tried}: {result.settings.describe()}")
    out(f"{result.metric} {estimate} on {estimate.documents:,} documents that no trial has seen"
        + ("" if estimate is default else f"; nblinear with its defaults {default}"))
    out(result.comparison())
    if seconds is not None:
        out(f"--trials {result.trials.height} repeats this search")
    out(f"\n{result.code}\n\n{command}")


def _command(result: Tuned, options: TypedOptions, input: str, output: str) -> str:
    """The command that trains with the settings, without a search."""
    changes, kind = result.settings.changes(), result.settings.model.kind
    return shlex.join([
        "textnb", "train", input, *_words(LabelledInput, options), *_words(ColumnSettings, options),
        "--model", kind, *_words(TokenOptions, changes["tokenizer"]),
        *_words(LimitSettings, changes["limits"]), *_words(ModelOptions, changes["model"]),
        "-o", output])


def _threshold_command(
    result: Tuned, options: TypedOptions, budget: TuneOptions, input: str, output: str
) -> str:
    """The command that chooses the labels' thresholds; "" if rows are divided in another way."""
    if budget.groups is not None or budget.time is not None or budget.seed:
        return ""
    assert result.fitted.decision is not None
    return "\n" + shlex.join([
        "textnb", "threshold", output, input, *_words(LabelledInput, options), "--scored", "folds",
        "--by", result.fitted.decision.evidence["by"]])


def _words(group: type, values: Mapping[str, Any]) -> list[str]:
    """The words that give settings of a group their values."""
    words = []
    for field, facts in declared(group):
        if field.name not in values or facts.is_argument:
            continue
        name, value = name_of(field, facts), values[field.name]
        option, _, key = name.partition(" ")
        if key:
            words += [option, f"{key}={toml_of(value)}"]
        elif isinstance(value, bool):
            words += [name if value else facts.names[0].partition("/")[2]]
        else:
            values_of_option = value if isinstance(value, list) else [
                ",".join(map(str, value)) if isinstance(value, tuple) else value]
            words += [word for each in values_of_option for word in (name, str(each))]
    return words
