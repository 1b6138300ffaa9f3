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
from textnb.cli.options import TypedOptions, option, option_of_model, verb
from textnb.cli.words import toml_of
from textnb.errors import ParameterError, quantity
from textnb.learning.settings import ColumnSettings, LimitSettings
from textnb.models.known import all_models
from textnb.runtime.settings import Setting, declared
from textnb.text.token_settings import TokenSettings
from textnb.workflow.options import TuneOptions

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
    changes = found.settings.changes()
    kind = found.settings.model.kind
    own = {**changes["tokenizer"], **changes["limits"], **changes["model"]}
    names = {field.name: _option_name(field.name, facts)
             for group in (TokenSettings, LimitSettings) for field, facts in declared(group)}
    names |= {field.name: option_of_model(field.name) for field, _ in declared(all_models()[kind])}
    words = ["textnb", "train", input]
    words += [*_options_of(LabelledInput, typed),
              *_options_of(ColumnSettings, typed), "--model", kind]
    for name, value in own.items():
        words += _as_typed(names[name], value)
    return shlex.join([*words, "-o", output])


def _threshold_command(
    found: Tuned, typed: TypedOptions, budget: TuneOptions, input: str, output: str
) -> str:
    """The command that chooses the labels' thresholds; "" where rows are divided otherwise."""
    if budget.groups is not None or budget.time is not None or budget.seed:
        return ""
    assert found.fitted.decision is not None
    return "\n" + shlex.join([
        "textnb", "threshold", output, input, *_options_of(LabelledInput, typed), "--leave-one-out",
        "--by", found.fitted.decision.evidence["by"]])


def _options_of(group: type, typed: Mapping[str, Any]) -> list[str]:
    """The words of a group's options that were typed."""
    return [word for field, facts in declared(group)
            if field.name in typed and not facts.is_argument
            for word in _as_typed(_option_name(field.name, facts), typed[field.name])]


def _option_name(field: str, facts: Setting) -> str:
    if facts.under:
        return f"--{facts.under} {field}"
    return facts.names[0] if facts.names else f"--{field.replace('_', '-')}"


def _as_typed(name: str, value: Any) -> list[str]:
    """The words that give an option this value."""
    option, _, key = name.partition(" ")
    if key:
        return [option, f"{key}={toml_of(value)}"]
    on, _, off = name.partition("/")
    if isinstance(value, bool):
        return [on if value else off]
    if isinstance(value, list):
        return [word for each in value for word in (on, str(each))]
    return [on, ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
