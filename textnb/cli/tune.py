"""The verb tune: it searches for settings."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note, out, progress_line, stderr
from textnb.cli.inputs import (
    LabelledInput,
    NewModel,
    Results,
    check_apart,
    describe_size,
    note_columns_without_text,
    note_malformed,
    open_input,
)
from textnb.cli.options import TypedOptions, name_of, option, verb
from textnb.cli.train import ModelOptions
from textnb.cli.words import is_repeated, toml_of
from textnb.errors import ParameterError, quantity
from textnb.learning.settings import FALSE_POSITIVES, MAIL_RECIPE, ColumnSettings, LimitSettings
from textnb.runtime.progress import crop
from textnb.runtime.settings import setting_fields, type_of
from textnb.workflow.options import TokenOptions, TuneOptions

if TYPE_CHECKING:
    from textnb.selection.search import Tuned


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TuneOutput(NewModel, Results):
    """Output."""

    table: str | None = option(
        "File to write all trials to, in the format of its ending; or else Parquet.",
        metavar="FILE")

    def check(self, *inputs: str) -> None:
        """Raise ParameterError or SourceError if a file can't be written."""
        from textnb.files.replace import check_target

        super().check(*inputs)
        if self.table is None:
            return
        check_target(self.table)
        check_apart(self.table, *inputs, option="--table")
        if os.path.realpath(self.table) == os.path.realpath(self.output):
            raise ParameterError("--output and --table must be different files; got "
                                 f"{self.output} and {self.table}")


@verb
def tune(
    typed: TypedOptions, rows: LabelledInput, columns: ColumnSettings, options: TuneOptions,
    output: TuneOutput,
) -> None:
    """Search for the settings that classify labelled rows best, and train a model with them."""
    from textnb.cli.summary import threshold_lines
    from textnb.frames import sinks
    from textnb.frames.scan import is_mail
    from textnb.selection.search import DEFAULT_TRIALS
    from textnb.storage.textmodel import save_fitted
    from textnb.workflow.tune import tune

    output.check(rows.input)
    is_for_mail = is_mail(rows.input, rows.format) and typed.get(
        "text", MAIL_RECIPE["text"]) == MAIL_RECIPE["text"]
    if is_for_mail:
        columns = ColumnSettings(label=columns.label, text=MAIL_RECIPE["text"])
        # For the command that is shown at the end.
        typed["text"] = columns.text
    elif not output.quiet and is_mail(rows.input, rows.format):
        note("note: --text is given, so that no trial is the default of mail, which train has: "
             "it reads --text tokens")
    table = open_input(rows.input, rows, columns.text, columns.label, counts_texts=True)
    # If only the time is limited, the number of trials is not known.
    n_planned = options.trials or (DEFAULT_TRIALS if options.seconds is None else None)
    with table.naming_source(), progress_line("tuning", output.quiet) as progress:
        result = tune(table.frame, columns, options, None if output.quiet else partial(
            _note_trial, n_trials=n_planned, only_best=progress is not None), of_mail=is_for_mail)
    save_fitted(result.fitted, output.output)
    if output.table is not None:
        ending = os.path.splitext(output.table)[1].lower()
        sinks.write(result.trials.lazy(), output.table, sinks.ENDINGS.get(ending, "parquet"))
    has_threshold = is_for_mail and not result.fitted.is_multilabel and (
        result.fitted.decision is not None)
    if not output.quiet:
        note_malformed(table)
        note_columns_without_text(table)
        if has_threshold:
            note(*threshold_lines(result.fitted))
        elif is_for_mail and not result.fitted.is_multilabel:
            note("note: no threshold was chosen: log-odds above 0 decide")
        note(f"{describe_size(result.fitted)} -> {output.output}")
    command = _command(result, typed, rows.input, output.output, has_threshold)
    if result.fitted.is_multilabel:
        command += _threshold_command(result, typed, options, rows.input, output.output)
    if not output.write_json_if_asked(lambda: {**result.to_dict(), "command": command}):
        _show(result, command, options.seconds, n_planned,
              "the default of mail" if is_for_mail else "nblinear with its defaults")


def _note_trial(trial: dict[str, Any], *, n_trials: int | None, only_best: bool) -> None:
    """Note a trial; beside a progress line, only the best so far, cut to the terminal's width."""
    name = f"trial {trial['trial']}{'' if n_trials is None else f' of {n_trials}'}"
    value = "can't be learned" if trial["value"] is None else f"{trial['value']:.4f}"
    if not only_best:
        note(f"{name}: {value}{' (best)' if trial['best'] else ''} on {trial['documents']:,} "
             f"documents in {trial['seconds']:.1f} s: {trial['settings']}")
    elif trial["best"]:
        note(crop(f"{name}: {value} {trial['settings']}", stderr().width))


def _show(
    result: Tuned, command: str, seconds: float | None, n_planned: int | None, baseline: str
) -> None:
    """Show the best trial, and how much better it is than ``baseline``, the defaults' model."""
    estimate, default = result.estimate, result.default
    lead, trials = result.lead, quantity(result.trials.height, "trial")
    if lead is not None and not lead.is_sure:
        out(f"best of {trials}: {lead.settings}")
        out(f"its {result.metric} is better than that of the defaults by {lead}, "
            "which chance can do: the defaults are kept")
    else:
        out(f"best of {trials}: {result.settings.describe()}")
    out(f"{result.metric} {estimate} on {estimate.documents:,} documents that no trial has seen"
        + ("" if estimate is default else f"; {baseline} {default}"))
    if lead is not None and lead.is_sure:
        out(f"cross-validated, it is better than {baseline} by {lead}")
    elif lead is None and estimate is default and result.trials.height > 1:
        out(f"none was better than {baseline}")
    out(result.comparison())
    if seconds is None and n_planned is not None and result.trials.height < n_planned:
        out(f"it ended before {quantity(n_planned, 'trial')}, as every change of one setting of "
            "the best was tried")
    if seconds is not None:
        out(f"--trials {result.trials.height} repeats this search")
    out(f"\n{result.code}\n\n{command}")


def _command(
    result: Tuned, typed: TypedOptions, input: str, output: str, has_threshold: bool
) -> str:
    """The command that trains with the settings, without a search."""
    changes, kind = result.settings.changes(), result.settings.model.kind
    return shlex.join([
        "textnb", "train", input, *_arguments(LabelledInput, typed),
        *_arguments(ColumnSettings, typed),
        "--model", kind, *_arguments(TokenOptions, changes["tokenizer"]),
        *_arguments(LimitSettings, changes["limits"]), *_arguments(ModelOptions, changes["model"]),
        *(["--false-positives", f"{FALSE_POSITIVES:g}"] if has_threshold else []),
        "-o", output])


def _threshold_command(
    result: Tuned, typed: TypedOptions, options: TuneOptions, input: str, output: str
) -> str:
    """The command that chooses the labels' thresholds as the search did, on the same folds.

    It is "" if the search divided rows by groups, time or a seed, for which there is no option.
    """
    if options.groups is not None or options.time is not None or options.seed:
        return ""
    assert result.fitted.decision is not None
    return "\n" + shlex.join([
        "textnb", "threshold", output, input, *_arguments(LabelledInput, typed),
        "--scored", "folds", "--by", result.fitted.decision.evidence["by"]])


def _toml_key(name: object) -> str:
    """A part of a key of TOML, in quotes if it needs them."""
    text = str(name)
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else json.dumps(text)


def _arguments(group: type, values: Mapping[str, Any]) -> list[str]:
    """The arguments of a command that give settings of a group their values."""
    arguments = []
    for field, setting in setting_fields(group):
        if field.name not in values or setting.is_argument:
            continue
        name, value = name_of(field, setting), values[field.name]
        # A setting such as "--read encoding" is a key of an option: --read encoding=latin-1.
        option, _, key = name.partition(" ")
        if key and isinstance(value, Mapping):
            for label, number in value.items():
                arguments += [option, f"{key}.{_toml_key(label)}={toml_of(number)}"]
        elif key:
            arguments += [option, f"{key}={toml_of(value)}"]
        elif isinstance(value, bool):
            # A flag has two names, such as "--check/--no-check".
            arguments += [name if value else setting.names[0].partition("/")[2]]
        elif not isinstance(value, (list, tuple)):
            arguments += [name, str(value)]
        elif is_repeated(type_of(field)):
            for item in value:
                arguments += [name, str(item)]
        else:
            arguments += [name, ",".join(map(str, value))]
    return arguments
