"""The verb calibrate: it fits the temperature of probabilities."""

from __future__ import annotations

from dataclasses import dataclass

from textnb.cli.console import as_json, out, progress
from textnb.cli.inputs import (
    InputRows,
    LabelOptions,
    ModelFile,
    ModelOutput,
    Quiet,
    Results,
    check_apart,
    reading,
    rows,
)
from textnb.cli.options import option, verb


@dataclass(kw_only=True)
class CalibrationRows(LabelOptions, InputRows):
    """Input."""


@dataclass(kw_only=True)
class CalibrationOptions:
    """Calibration."""

    held_out: bool = option(
        "INPUT holds rows that MODEL has not learned. Without this option, INPUT is what MODEL "
        "learned, and each row is left out in turn; of lists of labels, a fifth of the rows at a "
        "time.", default=False)
    no_length: bool = option("The same temperature for documents of every length.",
                             default=False)


@dataclass(kw_only=True)
class CalibrateOutput(Quiet, Results, ModelOutput):
    """Output."""

    dry_run: bool = option("Show the temperature that it would fit, and write nothing.",
                           default=False)


@verb
def calibrate(
    file: ModelFile, source: CalibrationRows, how: CalibrationOptions, done: CalibrateOutput
) -> None:
    """Fit a temperature, so that probabilities mean what they say, and keep it in the model."""
    from textnb.cli import evidence
    from textnb.errors import ParameterError
    from textnb.evaluation.calibration import fit_calibration, link_of, scores_of_learned
    from textnb.evaluation.held_out import held_out as scored_apart
    from textnb.evaluation.novelty import evidence_of
    from textnb.files.lock import lock_path
    from textnb.files.replace import check_model_target
    from textnb.storage.textmodel import load_fitted, save_fitted

    if done.dry_run and done.output is not None:
        raise ParameterError("--dry-run writes nothing: leave out --output")
    input, output = source.input, done.output or file.model
    check_model_target(output)
    check_apart(input, output)
    with lock_path(output):
        fitted = load_fitted(file.model)
        of_lists = fitted.is_multilabel
        if of_lists and how.no_length:
            raise ParameterError.multilabel("--no-length")
        frame = rows(input, source, fitted.columns, fitted.label)
        score = scored_apart if how.held_out else scores_of_learned
        with reading(input, frame, source.where), progress(
                "scoring", "scored", done.quiet) as advance:
            held = score(fitted, frame, progress=advance)
        calibration = fit_calibration(
            held, length_aware=not how.no_length, link=link_of(fitted))
        figures = (evidence.log_loss_table if of_lists else evidence.reliability_table)(
            held, calibration)
        fitted = fitted.with_calibration(calibration)
        if not done.dry_run:
            save_fitted(fitted, output)
    if not done.dry_run:
        evidence.note_stale(fitted)
    if not of_lists:
        evidence.note_unverified(held.novelty, done.quiet)
    if done.results_format == "json":
        judged = {} if of_lists else {
            "not_judged": held.not_judged, **evidence_of(held.novelty)}
        out(as_json({"calibration": calibration.to_dict(), **figures, **judged}))
        return
    out(evidence.calibration_words(calibration))
    for name, values in figures.items():
        out(f"{name.replace('_', ' ')} {values['before']:.4f} -> {values['after']:.4f}")
    if not of_lists:
        for line in evidence.not_judged_words(held):
            out(line)
