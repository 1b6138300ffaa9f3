"""The verb tune: it searches for settings."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note, out
from textnb.cli.inputs import (
    LabelledInput,
    NewModel,
    Results,
    check_apart,
    note_columns_without_text,
    note_malformed,
    rows,
)
from textnb.cli.options import TypedOptions, name_of, option, verb
from textnb.cli.train import ModelOptions
from textnb.cli.words import toml_of
from textnb.errors import ParameterError, quantity
from textnb.learning.settings import ColumnSettings, LimitSettings
from textnb.runtime.settings import declared
from textnb.workflow.options import TokenOptions, TuneOptions

if TYPE_CHECKING:
    from textnb.selection.search import Tuned


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TuneOutput(NewModel, Results):
    """Output."""

    table: str | None = option("Parquet file of all trials to write.", metavar="FILE")

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
    typed: TypedOptions, source: LabelledInput, columns: ColumnSettings, budget: TuneOptions,
    done: TuneOutput,
) -> None:
    """Search for the settings that classify labelled rows best, and train a model with them."""
    from textnb.files.replace import replace_file
    from textnb.storage.textmodel import save_fitted
    from textnb.workflow.tune import tune

    done.check(source.input)
    table = rows(source.input, source, columns.text, columns.label, counts_texts=True)
    with table.reading():
        found = tune(table.frame, columns, budget, None if done.quiet else _note_trial)
    save_fitted(found.fitted, done.output)
    if done.table is not None:
        with replace_file(done.table) as file:
            found.trials.write_parquet(file)
    if not done.quiet:
        note_malformed(table)
        note_columns_without_text(table)
    command = _command(found, typed, source.input, done.output)
    if found.fitted.is_multilabel:
        command += _threshold_command(found, typed, budget, source.input, done.output)
    if not done.wrote_json(lambda: {**found.to_dict(), "command": command}):
        _show(found, command, budget.seconds)


def _note_trial(trial: dict[str, Any]) -> None:
    value = "can't be learned" if trial["value"] is None else f"{trial['value']:.4f}"
    note(f"trial {trial['trial']}: {value}{' (best)' if trial['best'] else ''} on "
         f"{trial['documents']:,} documents in {trial['seconds']:.1f} s: {trial['settings']}")


def _show(found: Tuned, command: str, seconds: float | None) -> None:
    estimate, default = found.estimate, found.default
    lead, tried = found.lead, quantity(found.trials.height, "trial")
    if lead is not None and not lead.is_sure:
        out(f"best of {tried}: {lead.settings}")
        out(f"its {found.metric} is better than that of the defaults by {lead}, "
            "which chance can do: the defaults are kept")
    else:
        out(f"best of {tried}: {found.settings.describe()}")
    out(f"{found.metric} {estimate} on {estimate.documents:,} documents that no trial has seen"
        + ("" if estimate is default else f"; nblinear with its defaults {default}"))
    if seconds is not None:
        out(f"--trials {found.trials.height} repeats this search")
    out(f"\n{found.code}\n\n{command}")


def _command(found: Tuned, typed: TypedOptions, input: str, output: str) -> str:
    """The command that trains with the settings, without a search."""
    changes, kind = found.settings.changes(), found.settings.model.kind
    return shlex.join([
        "textnb", "train", input, *_words(LabelledInput, typed), *_words(ColumnSettings, typed),
        "--model", kind, *_words(TokenOptions, changes["tokenizer"]),
        *_words(LimitSettings, changes["limits"]), *_words(ModelOptions, changes["model"]),
        "-o", output])


def _threshold_command(
    found: Tuned, typed: TypedOptions, budget: TuneOptions, input: str, output: str
) -> str:
    """The command that chooses the labels' thresholds; "" where rows are divided otherwise."""
    if budget.groups is not None or budget.time is not None or budget.seed:
        return ""
    assert found.fitted.decision is not None
    return "\n" + shlex.join([
        "textnb", "threshold", output, input, *_words(LabelledInput, typed), "--scored",
        "leave-one-out", "--by", found.fitted.decision.evidence["by"]])


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
            typed = value if isinstance(value, list) else [
                ",".join(map(str, value)) if isinstance(value, tuple) else value]
            words += [word for each in typed for word in (name, str(each))]
    return words
