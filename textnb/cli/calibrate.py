"""The verb calibrate: it fits the temperature of probabilities."""

from __future__ import annotations

from dataclasses import dataclass

from textnb.cli.console import out
from textnb.cli.inputs import ChosenOutput, LabelledInput, ModelFile, rows_of, work_on
from textnb.cli.options import option, verb
from textnb.workflow.options import CalibrateOptions


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CalibrationRows(LabelledInput):
    """Input."""

    held_out: bool = option(
        "INPUT holds rows that MODEL has not learned. Without this option, INPUT is what MODEL "
        "learned, and each row is left out in turn; of lists of labels, a fifth of the rows at a "
        "time.", default=False)


@verb
def calibrate(
    file: ModelFile, source: CalibrationRows, how: CalibrateOptions, done: ChosenOutput
) -> None:
    """Fit a temperature, so that probabilities mean what they say, and keep it in the model."""
    from textnb.cli import evidence
    from textnb.cli.summary import calibration_lines
    from textnb.files.lock import lock_path
    from textnb.storage.textmodel import load_fitted, save_fitted
    from textnb.workflow.decide import calibrate, check_calibration, scored_to_calibrate, scores_of

    output = done.target(file.model, source.input)
    with lock_path(output):
        fitted = load_fitted(file.model)
        check_calibration(fitted, how)
        table = rows_of(fitted, source.input, source, fitted.label)
        scored = None if source.held_out else scored_to_calibrate(fitted)
        with work_on(table, "scoring", "scored", done.quiet) as advance:
            held = scores_of(fitted, table.frame, scored, progress=advance)
        found = calibrate(fitted, held, how)
        fitted = fitted.with_calibration(found.calibration)
        if not done.dry_run:
            save_fitted(fitted, output)
    if not done.dry_run:
        evidence.note_stale(fitted)
    if not fitted.is_multilabel:
        evidence.note_unverified(held.novelty, done.quiet)
    if done.wrote_json(found.to_dict):
        return
    for line in calibration_lines(found):
        out(line)
