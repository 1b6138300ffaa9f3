"""The verb drift: whether documents have changed since the thresholds were chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from textnb.cli.console import note, out
from textnb.cli.inputs import LabelledRowOptions, ModelFile, Quiet, Results, rows_of, work_on
from textnb.cli.options import argument, option, verb
from textnb.errors import ParameterError, quantity

if TYPE_CHECKING:
    from textnb.evaluation.drift import Drift, Sample
    from textnb.learning.fitted import Fitted

AGAIN_CODE, TOO_FEW_CODE = 3, 4


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DriftInput(LabelledRowOptions):
    """Input."""

    input: str | None = argument("Recent rows, labelled or not: whatever textnb test reads.", None)
    reference: str | None = option(
        "Rows like those that the thresholds were chosen on. MODEL has learned neither.",
        metavar="FILE")
    reference_where: str | None = option(
        "Rows of --reference for which this SQL condition holds.")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DriftOutput(Quiet, Results):
    """Output."""


@verb
def drift(file: ModelFile, source: DriftInput, done: DriftOutput) -> None:
    """Tell whether mail or other documents have changed: exit code 3 for "choose again"."""
    from textnb.evaluation.drift import AGAIN, TOO_FEW, check_model, compare
    from textnb.storage.textmodel import load_fitted
    from textnb.workflow.rows import check_storage

    if source.input is None or source.reference is None:
        raise ParameterError("drift compares recent rows with rows like those that the thresholds "
                             "were chosen on: textnb drift MODEL RECENT --reference EARLIER")
    check_storage(source, source.input, source.reference)
    fitted = check_model(load_fitted(file.model))
    reference = _sample(fitted, source.reference, source, source.reference_where,
                        "--reference-where", done.quiet)
    recent = _sample(fitted, source.input, source, source.where, "--where", done.quiet)
    result = compare(reference, recent, fitted.classes.tolist(), fitted.is_multilabel)
    if not done.wrote_json(result.to_dict):
        _show(result)
    if not done.quiet and result.verdict != AGAIN and result.measures:
        note(f"note: differences of unknown words and scores below {result.visible:.2f} "
             "(Kolmogorov-Smirnov) can't be seen on so few documents")
    if result.verdict == AGAIN:
        raise click.exceptions.Exit(AGAIN_CODE)
    if result.verdict == TOO_FEW:
        raise click.exceptions.Exit(TOO_FEW_CODE)


def _sample(
    fitted: Fitted, input: str, source: DriftInput, where: str | None, option: str, quiet: bool
) -> Sample:
    from dataclasses import replace

    from textnb.evaluation.drift import sample_of
    from textnb.workflow.rows import for_place

    table = rows_of(fitted, input, replace(for_place(input, source), where=where),
                    fitted.label if source.of_lists else None, option)
    with work_on(table, "scoring", "scored", quiet) as advance:
        return sample_of(fitted, table.frame, advance)


def _show(result: Drift) -> None:
    import polars as pl

    from textnb.cli.tables import frame_table, show

    if result.measures:
        show(frame_table(pl.DataFrame([{
            "": one.name, "reference": _words(one.reference), "recent": _words(one.recent),
            "index": one.index, "p": one.p_value, "drifted": "yes" if one.drifted else "no"}
            for one in result.measures])))
    out(f"{result.verdict}: {quantity(result.recent_documents, 'recent document')} against "
        f"{result.reference_documents:,}" + (
            f"; drifted: {', '.join(result.drifted)}" if result.drifted else ""))


def _words(facts: dict[str, float]) -> str:
    strongest = sorted(facts.items(), key=lambda fact: -fact[1])[:4] if len(facts) > 4 else (
        facts.items())
    return ", ".join(f"{name} {value:.3g}" for name, value in strongest)
