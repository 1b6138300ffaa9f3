"""The verbs that hand a model to another system: export, verify, describe.

Golden rows are examples with the model's own scores, which an export must give again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from textnb.cli.console import note, out, steps
from textnb.cli.evidence import note_stale
from textnb.cli.inputs import ModelFile, Quiet, QuietResults, Results, RowOptions, open_input
from textnb.cli.options import argument, verb
from textnb.errors import ParameterError, quantity
from textnb.runtime.settings import setting
from textnb.workflow.models import load_model
from textnb.workflow.options import ExportOptions

if TYPE_CHECKING:
    from textnb.export.verify import Verified


# The docstring of a class of options is their heading in --help.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExportOutput(Quiet):
    """Output."""

    output: str = setting(
        help="Folder to make, .zip, or file of the target's own ending.",
        names=("--output", "-o"), metavar="PATH")


@verb
def export(file: ModelFile, options: ExportOptions, output: ExportOutput) -> None:
    """Write a model for another system: weights, tokenizer, and golden rows to prove it."""
    from textnb.cli.summary import export_lines
    from textnb.export.targets.known import target_of, target_of_path
    from textnb.workflow.export import export

    # For the error of an unknown target, before the model is read.
    _ = target_of_path(output.output) if options.to is None else target_of(options.to)
    classifier = load_model(file.model)
    with steps("exporting", output.quiet) as progress:
        exported = export(classifier, output.output, options, progress)
    note_stale(classifier)
    if not output.quiet:
        note(*export_lines(exported, classifier, output.output, options.positive))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class VerifyInput(RowOptions):
    """Input."""

    path: str = argument("Bundle (exported folder or .zip), or a target's file beside its bundle.")
    input: str | None = argument("File of rows to compare on, instead of the golden rows.", None)


@verb
def verify(source: VerifyInput, output: QuietResults) -> None:
    """Run golden rows through the real engine and compare; exit code 1 on any difference."""
    from textnb.export.verify import verify_export
    from textnb.frames.failures import naming_source

    path, input = source.path, source.input
    if input is None and not source.are_defaults:
        raise ParameterError("--where and --read are for the rows of INPUT: name them")
    # Without options `verify_export` reads the file, as the bundle knows which columns are texts.
    rows: Any = input if input is None or source.are_defaults else (
        open_input(input, source, text=None).frame)
    with naming_source(input or path), steps("verifying", output.quiet) as progress:
        result = verify_export(path, rows, progress=progress)
    if not output.write_json_if_asked(lambda: _as_dict(result)):
        _show(result)
    if not result.passed:
        raise click.exceptions.Exit(1)


def _as_dict(result: Verified) -> dict[str, Any]:
    """The result as an object of JSON."""
    values: dict[str, Any] = {name: getattr(result, name) for name in (
        "target", "reads", "rows", "largest_difference", "passed", "tolerance", "wrong_scores",
        "wrong_labels", "answers", "largest_error", "wrong_probabilities", "wrong_decisions")}
    for name in ("wrong_labels", "wrong_decisions"):
        values[name] = [{"row": row, "expected": expected, "got": got}
                        for row, expected, got in values[name]]
    return values


def _show(result: Verified) -> None:
    for row in result.wrong_scores:
        out(f"row {row}: a score differs by more than {result.tolerance:g}")
    for row, expected, got in result.wrong_labels:
        out(f"row {row}: label {got!r}, expected {expected!r}")
    for row in result.wrong_probabilities:
        out(f"row {row}: a probability differs")
    for row, expected, got in result.wrong_decisions:
        out(f"row {row}: decision {got!r}, expected {expected!r}")
    out(f"{result.target}: {quantity(result.rows, 'row')}, "
        f"largest difference of a score {result.largest_difference:.3g}, "
        f"{quantity(len(result.wrong_labels), 'label', 'differs', 'differ')}")
    if "probability" in result.answers:
        out(f"largest error of a probability {result.largest_error:.3g}")
    if "decision" in result.answers:
        out(quantity(len(result.wrong_decisions), "decision", "differs", "differ"))


@verb
def describe(file: ModelFile, output: Results) -> None:
    """Show a model's settings, classes and guarantees."""
    from textnb.cli.tables import show_description
    from textnb.export.describe import describe_model

    description = describe_model(load_model(file.model))
    if not output.write_json_if_asked(lambda: description):
        show_description(description)
