"""The verb drift: whether documents have changed since the thresholds were chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from textnb.cli.console import note, out, progress
from textnb.cli.inputs import (
    LabelledRowOptions,
    ModelFile,
    QuietResults,
    note_malformed,
    open_input_for,
    total_size,
)
from textnb.cli.options import argument, option, verb
from textnb.errors import ParameterError, quantity

if TYPE_CHECKING:
    from textnb.evaluation.drift import Drift


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DriftInput(LabelledRowOptions):
    """Input."""

    input: str | None = argument("Recent rows, labelled or not: whatever textnb test reads.", None)
    reference: str | None = option(
        "Rows like those that the thresholds were chosen on. MODEL has learned neither.",
        metavar="FILE")
    reference_where: str | None = option("Rows of --reference for which this SQL condition holds.")


@verb
def drift(file: ModelFile, rows: DriftInput, output: QuietResults) -> None:
    """Tell whether mail or other documents have changed: exit code 3 for "choose again"."""
    from textnb.evaluation.drift import AGAIN, TOO_FEW
    from textnb.storage.textmodel import load_fitted
    from textnb.workflow.evaluate import drift
    from textnb.workflow.rows import check_storage_options, options_for

    if rows.input is None or rows.reference is None:
        raise ParameterError("drift compares recent rows with rows like those that the thresholds "
                             "were chosen on: textnb drift MODEL INPUT --reference FILE")
    check_storage_options(rows, rows.input, rows.reference)
    fitted = load_fitted(file.model)
    # Only these options need the label column, which recent rows usually lack.
    label = fitted.label if rows.has_label_lists or rows.classes else None
    reference, recent = (open_input_for(
        fitted, source, replace(options_for(source, rows), where=where), label, where_option)
        for source, where, where_option in (
            (rows.reference, rows.reference_where, "--reference-where"),
            (rows.input, rows.where, "--where")))
    with progress("scoring", "scored", output.quiet,
                  size=lambda: total_size([reference, recent])) as advance:
        result = drift(fitted, reference, recent, advance)
    if not output.quiet:
        note_malformed(reference)
        note_malformed(recent)
    if not output.write_json_if_asked(result.to_dict):
        _show(result)
    if not output.quiet and result.verdict != AGAIN and result.measures:
        note(f"note: differences of unknown words and scores below {result.visible:.2f} "
             "(Kolmogorov-Smirnov) can't be seen on so few documents")
    # The exit code of a verdict; 0 if nothing has drifted.
    if code := {AGAIN: 3, TOO_FEW: 4}.get(result.verdict):
        raise click.exceptions.Exit(code)


def _show(result: Drift) -> None:
    """Show each measure in both samples: its stability index, p-value and whether it drifted."""
    import polars as pl

    from textnb.cli.tables import frame_table, show

    if result.measures:
        show(frame_table(pl.DataFrame([{
            "": measure.name, "reference": _largest_values(measure.reference),
            "recent": _largest_values(measure.recent), "index": measure.index, "p": measure.p_value,
            "drifted": "yes" if measure.drifted else "no"} for measure in result.measures])))
    out(f"{result.verdict}: {quantity(result.recent_documents, 'recent document')} against "
        f"{result.reference_documents:,}" + (
            f"; drifted: {', '.join(result.drifted)}" if result.drifted else ""))


def _largest_values(values: dict[str, float]) -> str:
    """The values with their names, in words; if there are more than four, only the largest four."""
    shown = values.items() if len(values) <= 4 else sorted(
        values.items(), key=lambda item: -item[1])[:4]
    return ", ".join(f"{name} {value:.3g}" for name, value in shown)
