"""The verb threshold: from which score a class is answered, and when "unsure"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from textnb.cli.console import as_json, note, out, progress
from textnb.cli.inputs import (
    LabelOptions,
    ModelFile,
    ModelOutput,
    Quiet,
    Results,
    RowOptions,
    check_apart,
    reading,
    rows,
)
from textnb.cli.options import TypedOptions, argument, option, option_of, verb

if TYPE_CHECKING:
    from textnb.bayes.decision import Decision
    from textnb.evaluation.held_out import HeldOut
    from textnb.learning.fitted import Fitted

# The options that belong to one goal.
_OF_ONE_GOAL = {"positive", "max_false_positive_rate", "max_false_negative_rate", "costs", "method",
               "min_precision", "by", "at_least", "at_most"}

# What evidence says of how thresholds of labels were chosen.
_REQUEST = {"by", "costs", "rule", "min_precision", "confidence", "labels", "scored"}


@dataclass(kw_only=True)
class ThresholdInput(LabelOptions, RowOptions):
    """Input."""

    input: str | None = argument(
        "Labelled rows that MODEL has not learned (except with --leave-one-out): a file, glob, "
        "folder, URL, or - for standard input.", None)
    leave_one_out: bool = option(
        "INPUT is what MODEL learned: each row is left out in turn; of lists of labels, a fifth of "
        "the rows at a time.", default=False)


@dataclass(kw_only=True)
class Goal:
    """Decision."""

    # The fields have the names of `choose_threshold`'s parameters, so that its errors name options.
    positive: str | None = option("Class whose errors are counted, such as spam.",
                                  "--class", "-c", metavar="CLASS")
    max_false_positive_rate: float | None = option(
        "At most this share of the other documents may be answered as --class: 0.001.",
        "--max-false-positives")
    max_false_negative_rate: float | None = option(
        "And at most this share of --class may be answered as another; the answer between is "
        "\"unsure\".", "--max-false-negatives")
    costs: str | None = option(
        "Instead: what a false positive and a false negative cost, such as 10,1; of lists of "
        "labels, a label that is wrong and one that is missed.", metavar="N,N")
    method: str | None = option(
        "With --costs: empirical (least cost on INPUT, the default) or theoretical (by the "
        "probabilities alone).")
    min_precision: float | None = option(
        "Instead: for every class, the least share of its answers that is right.")
    by: str | None = option(
        "Instead, of lists of labels: the best F1 of each label (f1), or of all pairs of a row and "
        "a label (micro-f1).", choices=("f1", "micro-f1"))
    at_least: int | None = option(
        "Of lists of labels: each row gets this number of labels or more; without INPUT, the "
        "thresholds stay.", metavar="N")
    at_most: int | None = option("Of lists of labels: each row gets no more than this number.",
                                 metavar="N")
    confidence: float = option("Confidence of the guarantees.", default=0.95)
    clear: bool = option("Remove the thresholds.", default=False)


@dataclass(kw_only=True)
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
    from textnb.files.replace import check_model_target
    from textnb.storage.textmodel import load_fitted, save_fitted

    input = source.input
    if goal.clear:
        _check_alone(typed)
    else:
        _check_one_goal(source, {option_of(Goal, name) for name in _OF_ONE_GOAL & typed.keys()})
    if done.dry_run and done.output is not None:
        raise ParameterError("--dry-run writes nothing: leave out --output")
    target = done.output or file.model
    check_model_target(target)
    if input is not None:
        check_apart(input, target)
    with lock_path(target):
        fitted = load_fitted(file.model)
        decision, novelty = None, None
        if not goal.clear:
            _check_kind(fitted, typed)
        if input is not None:
            # Before the rows are read, which takes long.
            check, choose = _prepare(fitted, goal)
            check()
            frame = rows(input, source, fitted.columns, fitted.label)
            with reading(input, frame, source.where), progress(
                    "scoring", "scored", done.quiet) as advance:
                held = _score(fitted, frame, source.leave_one_out, advance)
            decision = choose(held)
            novelty = None if fitted.is_multilabel else held.novelty
        elif not goal.clear:
            decision = _with_ranks(fitted, goal)
        if not done.dry_run:
            fitted = fitted.with_decision(decision)
            save_fitted(fitted, target)
    evidence.note_stale(fitted)
    _note_filter(fitted, decision)
    evidence.note_unverified(novelty, done.quiet)
    if decision is None:
        if not done.quiet:
            note(f"the model answers with the most probable class -> {target}")
        return
    if done.results_format == "json":
        out(as_json(decision.to_dict()))
        return
    unit = "log-odds" if fitted.calibration else fitted.model.difference_name
    words = (evidence.label_words(decision) if fitted.is_multilabel
             else evidence.decision_words(decision, unit))
    for line in words:
        out(line)


def _check_kind(fitted: Fitted, typed: TypedOptions) -> None:
    """ParameterError for options that are for lists of labels, or for one label per row."""
    from textnb.errors import ParameterError

    of_one = {"--class": "positive", "--max-false-positives": "max_false_positive_rate",
              "--max-false-negatives": "max_false_negative_rate"}
    if fitted.is_multilabel:
        for name, field in of_one.items():
            if field in typed:
                raise ParameterError.multilabel(name)
        return
    for field in ("by", "at_least", "at_most", "label_separator"):
        if field in typed:
            group = ThresholdInput if field == "label_separator" else Goal
            raise ParameterError(f"{option_of(group, field)} is for lists of labels, and a row of "
                                 "this model has one label")
    if "costs" in typed and "positive" not in typed:
        raise ParameterError("--costs needs --class: the class whose errors are counted")


def _with_ranks(fitted: Fitted, goal: Goal) -> Decision:
    """The thresholds that the model has, with other numbers of labels."""
    from dataclasses import replace

    from textnb.bayes.decision import Decision

    before = fitted.decision or Decision(dict.fromkeys(fitted.classes.tolist(), 0.0))
    # What was measured was with other numbers of labels.
    request = {name: value for name, value in before.evidence.items() if name in _REQUEST}
    return replace(before, evidence=request, **_ranks(goal))


def _ranks(goal: Goal) -> dict[str, Any]:
    ranks = {"at_least": goal.at_least, "at_most": goal.at_most}
    return {name: value for name, value in ranks.items() if value is not None}


def _note_filter(fitted: Fitted, decision: Decision | None) -> None:
    """Note where `textnb filter` can't tell any more which class is spam."""
    from textnb.filter.verdict import SPAM, default_spam

    if decision is not None and default_spam(
            fitted.classes.tolist(), decision.positive) is None:
        note(f"note: this decision is for {decision.positive}, and the model has a class {SPAM}: "
             f"textnb filter now needs --spam-class {SPAM} (or thresholds for --class {SPAM})")


def _check_alone(typed: dict[str, Any]) -> None:
    from textnb.errors import ParameterError

    beyond = sorted(set(typed) - {"model", "clear", "output", "quiet"})
    if beyond:
        groups = (ThresholdInput, Goal, ThresholdOutput)
        group = next(group for group in groups if beyond[0] in group.__dataclass_fields__)
        raise ParameterError("--clear removes thresholds: it goes with MODEL (and --output), "
                             f"not with {option_of(group, beyond[0])}")


def _check_one_goal(source: ThresholdInput, typed: set[str]) -> None:
    """ParameterError unless the options name one goal, and only what belongs to it."""
    from textnb.errors import ParameterError

    ranks, of_ways = {"--at-least", "--at-most"}, {
        "--max-false-positives": {"--class", "--max-false-negatives"},
        "--costs": {"--class", "--method"}, "--min-precision": set[str](), "--by": set[str]()}
    if source.input is None:
        if typed and typed <= ranks:
            return
        raise ParameterError("thresholds are chosen on labelled rows: name an INPUT, or --clear")
    ways = typed & of_ways.keys()
    if len(ways) != 1:
        raise ParameterError("give one of --max-false-positives, --costs, --min-precision and "
                             f"--by; got {' and '.join(sorted(ways)) or 'none'}")
    way = ways.pop()
    goes_with = of_ways[way] | (ranks if way != "--max-false-positives" else set())
    beyond = sorted(typed - goes_with - {way})
    if beyond:
        raise ParameterError(f"{beyond[0]} does not go with {way}")
    if way == "--max-false-positives" and "--class" not in typed:
        raise ParameterError(f"{way} needs --class: the class whose errors are counted")


def _score(fitted: Fitted, frame: Any, leave_one_out: bool, advance: Any) -> Any:
    from textnb.evaluation.held_out import held_out
    from textnb.evaluation.leave_one_out import leave_one_out as each_left_out

    if fitted.is_multilabel and leave_one_out:
        from textnb.evaluation.calibration import scores_of_learned

        return scores_of_learned(fitted, frame, progress=advance)
    return (each_left_out if leave_one_out else held_out)(fitted, frame, progress=advance)


def _prepare(
    fitted: Fitted, goal: Goal
) -> tuple[Callable[[], None], Callable[[HeldOut], Decision]]:
    """Two functions: one checks the settings of a decision, one chooses it from scores."""
    from textnb.cli.settings import as_label
    from textnb.evaluation import class_thresholds, decisions

    classes, calibration = fitted.classes.tolist(), fitted.calibration
    if fitted.is_multilabel:
        of_labels: dict[str, Any] = {
            "by": goal.by, "min_precision": goal.min_precision, "confidence": goal.confidence,
            "costs": None if goal.costs is None else _pair(goal.costs), "method": goal.method}
        return (decisions.Goal(**of_labels).check_for_labels,
                partial(class_thresholds.choose_class_thresholds, calibration=calibration,
                        **of_labels, **_ranks(goal)))
    if goal.min_precision is not None:
        precision: dict[str, Any] = {
            "min_precision": goal.min_precision, "confidence": goal.confidence}
        return (partial(decisions.Goal(**precision).check_for_classes, classes),
                partial(class_thresholds.choose_class_thresholds, calibration=calibration,
                        **precision))
    positive = as_label(goal.positive or "", fitted.classes, "--class")
    asked: dict[str, Any] = {
        "max_false_positive_rate": goal.max_false_positive_rate,
        "max_false_negative_rate": goal.max_false_negative_rate, "confidence": goal.confidence,
        "costs": None if goal.costs is None else _pair(goal.costs), "method": goal.method}
    return (partial(decisions.Goal(**asked).check_for_class, classes, positive),
            partial(decisions.choose_threshold, positive=positive, calibration=calibration,
                    **asked))


def _pair(costs: str) -> tuple[float, float]:
    from textnb.errors import ParameterError

    try:
        wrong, missed = (float(part) for part in costs.split(","))
    except ValueError:
        raise ParameterError.out_of_range("--costs", "two numbers, such as 10,1", costs) from None
    return wrong, missed
