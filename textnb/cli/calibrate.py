"""The verb calibrate: it fits the temperature by which scores are divided before softmax."""

from __future__ import annotations

from dataclasses import dataclass

from textnb.cli.console import out
from textnb.cli.inputs import ChosenOutput, LabelledInput, ModelFile, open_input_for, work_on
from textnb.cli.options import option, verb
from textnb.workflow.options import CalibrateOptions


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CalibrationRows(LabelledInput):
    """Input."""

    held_out: bool = option(
        "INPUT holds rows that MODEL has not learned. Without this option, INPUT is what MODEL "
        "learned, and each row is left out in turn; for lists of labels, a fifth of the rows at a "
        "time.", default=False)


@verb
def calibrate(
    file: ModelFile, rows: CalibrationRows, options: CalibrateOptions, output: ChosenOutput
) -> None:
    """Fit a temperature, so that probabilities mean what they say, and keep it in the model."""
    from textnb.cli import evidence
    from textnb.cli.summary import calibration_lines
    from textnb.files.lock import lock_path
    from textnb.storage.textmodel import load_fitted, save_fitted
    from textnb.workflow.decide import calibrate, check_calibration, choose_scoring, scores_of

    target = output.target(file.model, rows.input)
    with lock_path(target):
        fitted = load_fitted(file.model)
        check_calibration(fitted, options)
        table = open_input_for(fitted, rows.input, rows, fitted.label)
        # Rows that the model learned are scored by models that did not learn them.
        method = None if rows.held_out else choose_scoring(fitted)
        with work_on(table, "scoring", "scored", output.quiet) as advance:
            scores = scores_of(fitted, table.frame, method=method, progress=advance)
        result = calibrate(fitted, scores, options)
        fitted = fitted.with_calibration(result.calibration)
        if not output.dry_run:
            save_fitted(fitted, target)
    if not output.dry_run:
        evidence.note_stale(fitted)
    if not fitted.is_multilabel:
        evidence.note_unverified(scores.novelty, output.quiet)
    if output.write_json_if_asked(result.to_dict):
        return
    out(*calibration_lines(result))
