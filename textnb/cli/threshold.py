"""The verb threshold: from which score a class is answered, and when "unsure"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.cli.console import as_json, note, out, progress
from textnb.cli.inputs import (
    ModelFile,
    ModelOutput,
    Quiet,
    Results,
    RowOptions,
    check_apart,
    reading,
    rows,
    text_model,
)
from textnb.cli.options import TypedOptions, argument, option, verb

if TYPE_CHECKING:
    from textnb.bayes.decision import Decision
    from textnb.estimators.text import TextClassifier
    from textnb.evaluation.held_out import HeldOut


@dataclass(frozen=True, kw_only=True)
class ThresholdInput(RowOptions):
    """Input."""

    input: str | None = argument(
        "Labelled rows that MODEL has not learned (except with --leave-one-out): a file, glob, "
        "folder, URL, or - for standard input.", None)
    leave_one_out: bool = option(
        "INPUT is what MODEL learned: each row is left out in turn.", default=False)


@dataclass(frozen=True, kw_only=True)
class Goal:
    """Decision."""

    label: str | None = option("Class whose errors are counted, such as spam.",
                               "--class", "-c", metavar="CLASS")
    max_false_positives: float | None = option(
        "At most this share of the other documents may be answered as --class: 0.001.")
    max_false_negatives: float | None = option(
        "And at most this share of --class may be answered as another; the answer between is "
        "\"unsure\".")
    costs: str | None = option(
        "Instead: what a false positive and a false negative cost, such as 10,1.", metavar="N,N")
    method: str | None = option(
        "With --costs: empirical (least cost on INPUT, the default) or theoretical (by the "
        "probabilities alone).")
    min_precision: float | None = option(
        "Instead: for every class, the least share of its answers that is right.")
    confidence: float = option("Confidence of the guarantees.", default=0.95)
    clear: bool = option("Remove the thresholds.", default=False)


@dataclass(frozen=True, kw_only=True)
class ThresholdOutput(Quiet, Results, ModelOutput):
    """Output."""

    dry_run: bool = option("Show the thresholds that it would choose, and write nothing.",
                           default=False)


@verb
def threshold(
    typed: TypedOptions, file: ModelFile, source: ThresholdInput, goal: Goal, done: ThresholdOutput
) -> None:
    """Choose the scores from which a class is answered, and keep them in the model."""
    from textnb.cli import evidence
    from textnb.errors import ParameterError
    from textnb.files.lock import lock_path
    from textnb.files.replace import check_target

    goals = {"--class": goal.label, "--max-false-positives": goal.max_false_positives,
             "--max-false-negatives": goal.max_false_negatives, "--costs": goal.costs,
             "--method": goal.method, "--min-precision": goal.min_precision}
    input = source.input
    if goal.clear:
        _check_alone(typed)
    else:
        _check_one_goal(input, {name for name, value in goals.items() if value is not None})
    if done.dry_run and done.output is not None:
        raise ParameterError("--dry-run writes nothing: leave out --output")
    target = done.output or file.model
    check_target(target)
    if input is not None:
        check_apart(input, target)
    with lock_path(target):
        classifier = text_model(file.model)
        decision, novelty = None, None
        if input is not None:
            frame = rows(input, source, classifier.text, classifier.label)
            with reading(input), progress("scoring", "scored", done.quiet) as advance:
                held = _score(classifier, frame, source.leave_one_out, advance)
            decision, novelty = _choose(classifier, held, goals, goal.confidence), held.novelty
        if not done.dry_run:
            classifier.set_decision(decision).save(target)
    evidence.note_stale(classifier)
    evidence.note_unverified(novelty, done.quiet)
    if decision is None:
        if not done.quiet:
            note(f"the model answers with the most probable class -> {target}")
        return
    if done.results_format == "json":
        out(as_json(decision.to_dict()))
        return
    unit = "log-odds" if classifier.calibration_ else classifier.estimator_.difference_name
    for line in evidence.decision_words(decision, unit):
        out(line)


def _check_alone(typed: dict[str, Any]) -> None:
    from textnb.errors import ParameterError

    beyond = sorted(set(typed) - {"model", "clear", "output", "quiet"})
    if beyond:
        name = "class" if beyond[0] == "label" else beyond[0].replace("_", "-")
        raise ParameterError("--clear removes thresholds: it goes with MODEL (and --output), "
                             f"not with {'INPUT' if name == 'input' else f'--{name}'}")


def _check_one_goal(input: str | None, typed: set[str]) -> None:
    """ParameterError unless the options name one goal, and only what belongs to it."""
    from textnb.errors import ParameterError

    if input is None:
        raise ParameterError("thresholds are chosen on labelled rows: name an INPUT, or --clear")
    ways = typed & {"--max-false-positives", "--costs", "--min-precision"}
    if len(ways) != 1:
        raise ParameterError("give one of --max-false-positives, --costs and --min-precision; got "
                             f"{' and '.join(sorted(ways)) or 'none'}")
    way = ways.pop()
    goes_with = {"--max-false-positives": {"--class", "--max-false-negatives"},
                 "--costs": {"--class", "--method"}, "--min-precision": set()}[way]
    beyond = sorted(typed - goes_with - {way})
    if beyond:
        raise ParameterError(f"{beyond[0]} does not go with {way}")
    if "--class" in goes_with and "--class" not in typed:
        raise ParameterError(f"{way} needs --class: the class whose errors are counted")


def _score(
    classifier: TextClassifier, frame: Any, leave_one_out: bool, advance: Any
) -> HeldOut:
    if leave_one_out:
        from textnb.evaluation.leave_one_out import leave_one_out as each_left_out

        return each_left_out(classifier, frame, progress=advance)
    from textnb.evaluation.held_out import held_out

    return held_out(classifier, frame, progress=advance)


def _choose(
    classifier: TextClassifier, held: HeldOut, goals: dict[str, Any], confidence: float
) -> Decision:
    from textnb.cli.settings import as_label
    from textnb.evaluation.class_thresholds import choose_class_thresholds
    from textnb.evaluation.decisions import choose_threshold

    if goals["--min-precision"] is not None:
        return choose_class_thresholds(held, min_precision=goals["--min-precision"],
                                       confidence=confidence, calibration=classifier.calibration_)
    costs = goals["--costs"]
    return choose_threshold(
        held, as_label(goals["--class"], classifier.classes_),
        max_false_positive_rate=goals["--max-false-positives"],
        max_false_negative_rate=goals["--max-false-negatives"], confidence=confidence,
        costs=None if costs is None else _pair(costs), method=goals["--method"],
        calibration=classifier.calibration_)


def _pair(costs: str) -> tuple[float, float]:
    from textnb.errors import ParameterError

    try:
        wrong, missed = (float(part) for part in costs.split(","))
    except ValueError:
        raise ParameterError.out_of_range("--costs", "two numbers, such as 10,1", costs) from None
    return wrong, missed
