"""The verb that sets when a class is answered, and when "unsure": threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from textnb.cli.console import as_json, note, out, progress, verb
from textnb.cli.inputs import (
    Encoding,
    Format,
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

if TYPE_CHECKING:
    from textnb.bayes.decision import Decision
    from textnb.estimators.text import TextClassifier
    from textnb.evaluation.held_out import HeldOut


@verb
def threshold(
    context: typer.Context,
    model: Model,
    input: Annotated[str | None, typer.Argument(
        help="Labelled rows that MODEL has not learned (but see --leave-one-out): a file, glob, "
             "folder, URL, or - for standard input.")] = None,
    label: Annotated[str | None, typer.Option(
        "--class", "-c", help="The class that errors are counted for, such as spam.")] = None,
    max_false_positives: Annotated[float | None, typer.Option(
        help="At most this share of the other documents may be answered as --class: 0.001.",
    )] = None,
    max_false_negatives: Annotated[float | None, typer.Option(
        help="And at most this share of --class as another; between is \"unsure\".")] = None,
    costs: Annotated[str | None, typer.Option(
        help="Instead: what a false positive and a false negative cost, such as 10,1.")] = None,
    method: Annotated[str | None, typer.Option(
        help="With --costs: empirical (least cost on INPUT, the default) or theoretical (by "
             "the probabilities alone).")] = None,
    min_precision: Annotated[float | None, typer.Option(
        help="Instead: for every class, the least share of its answers that must be right.",
    )] = None,
    confidence: Annotated[float, typer.Option(help="Of what is guaranteed.")] = 0.95,
    leave_one_out: Annotated[bool, typer.Option(
        "--leave-one-out", help="INPUT is what MODEL learned: each row is left out in turn.",
    )] = False,
    output: ModelOutput = None,
    dry_run: Annotated[bool, typer.Option(
        "--dry-run", help="Show what would be chosen, and write nothing.")] = False,
    clear: Annotated[bool, typer.Option(
        "--clear", help="Take the thresholds away.")] = False,
    format: Format = "text",
    where: Where = None,
    input_format: InputFormat = None,
    storage_option: StorageOption = None,
    query: Query = None,
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Choose when a class is answered, by a guarantee or costs, and keep it in the model."""
    from textnb.cli import evidence, settings
    from textnb.errors import ParameterError
    from textnb.files.lock import locked
    from textnb.files.replace import check_target

    check_format(format)
    asked = {"--class": label, "--max-false-positives": max_false_positives,
             "--max-false-negatives": max_false_negatives, "--costs": costs, "--method": method,
             "--min-precision": min_precision}
    if clear:
        _check_alone(settings.given(context))
    else:
        _check_asked(input, {name for name, value in asked.items() if value is not None})
    if dry_run and output is not None:
        raise ParameterError("--dry-run writes nothing: leave --output away")
    target = output or model
    check_target(target)
    if input is not None:
        check_apart(input, target)
    with locked(target):
        classifier = text_model(model)
        decision, novelty = None, None
        if input is not None:
            frame = rows(input, where, input_format, encoding, classifier.text, classifier.label,
                         storage=storage_option, query=query)
            with reading(input), progress("scoring", "scored", quiet) as advance:
                held = _scored(classifier, frame, leave_one_out, advance)
            decision, novelty = _chosen(classifier, held, asked, confidence), held.novelty
        if not dry_run:
            classifier.set_decision(decision).save(target)
    evidence.note_stale(classifier)
    evidence.note_untold(novelty, quiet)
    if decision is None:
        if not quiet:
            note(f"the model answers with the most probable class -> {target}")
        return
    if format == "json":
        out(as_json(decision.to_dict()))
        return
    unit = "log-odds" if classifier.calibration_ else classifier.estimator_.difference_name
    for line in evidence.decision_words(decision, unit):
        out(line)


def _check_alone(given: dict[str, Any]) -> None:
    from textnb.errors import ParameterError

    beyond = sorted(set(given) - {"model", "clear", "output", "quiet"})
    if beyond:
        name = "class" if beyond[0] == "label" else beyond[0].replace("_", "-")
        raise ParameterError("--clear takes thresholds away: it goes with MODEL (and --output), "
                             f"not with {'INPUT' if name == 'input' else f'--{name}'}")


def _check_asked(input: str | None, given: set[str]) -> None:
    """What is asked for is one thing."""
    from textnb.errors import ParameterError

    if input is None:
        raise ParameterError("thresholds are chosen on labelled rows: name an INPUT, or --clear")
    ways = given & {"--max-false-positives", "--costs", "--min-precision"}
    if len(ways) != 1:
        raise ParameterError("give one of --max-false-positives, --costs and --min-precision; got "
                             f"{' and '.join(sorted(ways)) or 'none'}")
    way = ways.pop()
    goes_with = {"--max-false-positives": {"--class", "--max-false-negatives"},
                 "--costs": {"--class", "--method"}, "--min-precision": set()}[way]
    beyond = sorted(given - goes_with - {way})
    if beyond:
        raise ParameterError(f"{beyond[0]} does not go with {way}")
    if "--class" in goes_with and "--class" not in given:
        raise ParameterError(f"{way} needs --class: the class that errors are counted for")


def _scored(
    classifier: TextClassifier, frame: Any, leave_one_out: bool, advance: Any
) -> HeldOut:
    if leave_one_out:
        from textnb.evaluation.leave_one_out import leave_one_out as each_left_out

        return each_left_out(classifier, frame, progress=advance)
    from textnb.evaluation.held_out import held_out

    return held_out(classifier, frame, progress=advance)


def _chosen(
    classifier: TextClassifier, held: HeldOut, asked: dict[str, Any], confidence: float
) -> Decision:
    from textnb.cli.settings import as_label
    from textnb.evaluation.class_thresholds import choose_class_thresholds
    from textnb.evaluation.decisions import choose_threshold

    if asked["--min-precision"] is not None:
        return choose_class_thresholds(held, min_precision=asked["--min-precision"],
                                       confidence=confidence, calibration=classifier.calibration_)
    costs = asked["--costs"]
    return choose_threshold(
        held, as_label(asked["--class"], classifier.classes_),
        max_false_positive_rate=asked["--max-false-positives"],
        max_false_negative_rate=asked["--max-false-negatives"], confidence=confidence,
        costs=None if costs is None else _pair(costs), method=asked["--method"],
        calibration=classifier.calibration_)


def _pair(costs: str) -> tuple[float, float]:
    from textnb.errors import ParameterError

    try:
        wrong, missed = (float(part) for part in costs.split(","))
    except ValueError:
        raise ParameterError.out_of_range("--costs", "two numbers, such as 10,1", costs) from None
    return wrong, missed
