"""The verb that makes probabilities chances: calibrate."""

from __future__ import annotations

from typing import Annotated

import typer

from textnb.cli.console import as_json, out, progress, verb
from textnb.cli.inputs import (
    Encoding,
    Format,
    Input,
    InputFormat,
    Model,
    ModelOutput,
    Query,
    Quiet,
    StorageOption,
    Where,
    check_apart,
    check_format,
    reading,
    rows,
    text_model,
)


@verb
def calibrate(
    model: Model,
    input: Input,
    output: ModelOutput = None,
    held_out: Annotated[bool, typer.Option(
        "--held-out", help="INPUT holds rows that MODEL has not learned. Else it is what MODEL "
                           "learned, and each row is left out in turn.")] = False,
    no_length: Annotated[bool, typer.Option(
        "--no-length", help="One temperature, whatever the length of a document.")] = False,
    format: Format = "text",
    where: Where = None,
    input_format: InputFormat = None,
    storage_option: StorageOption = None,
    query: Query = None,
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Fit a temperature, so that probabilities mean what they say, and keep it in the model."""
    from textnb.cli import evidence
    from textnb.evaluation.calibration import fit_calibration
    from textnb.evaluation.held_out import held_out as scored_apart
    from textnb.evaluation.leave_one_out import leave_one_out
    from textnb.evaluation.novelty import evidence_of
    from textnb.files.lock import locked
    from textnb.files.replace import check_target

    check_format(format)
    check_target(output or model)
    check_apart(input, output or model)
    with locked(output or model):
        classifier = text_model(model)
        frame = rows(input, where, input_format, encoding, classifier.text, classifier.label,
                     storage=storage_option, query=query)
        score = scored_apart if held_out else leave_one_out
        with reading(input), progress("scoring", "scored", quiet) as advance:
            held = score(classifier, frame, progress=advance)
        calibration = fit_calibration(held, length_aware=not no_length)
        figures = evidence.reliability_table(held, calibration)
        classifier.set_calibration(calibration).save(output or model)
    evidence.note_stale(classifier)
    evidence.note_untold(held.novelty, quiet)
    if format == "json":
        out(as_json({"calibration": calibration.to_dict(), **figures,
                     "not_judged": held.not_judged, **evidence_of(held.novelty)}))
        return
    out(evidence.calibration_words(calibration))
    for name, values in figures.items():
        out(f"{name.replace('_', ' ')} {values['before']:.4f} -> {values['after']:.4f}")
    for line in evidence.not_judged_words(held):
        out(line)
