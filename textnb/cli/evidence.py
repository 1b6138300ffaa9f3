"""Describes a calibration and a decision, and the evidence for them, in words.

A calibration turns scores into probabilities; a decision has the thresholds of classes. The
evidence of a decision is a dictionary that the search for thresholds writes: numbers of documents,
rates and their bounds, and under ``scored`` which models scored the documents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from textnb.errors import quantity

if TYPE_CHECKING:
    from textnb.bayes.calibration import Calibration
    from textnb.bayes.decision import Decision
    from textnb.evaluation.novelty import Novelty


ONLY_IF_NEW = ("what follows holds only if the model has not learned the rows that the thresholds "
               "stand on, which can't be verified")
# The maximum number of labels that are shown, a line each.
MAX_SHOWN = 20
# The minimum share of rows that look learned for a note: of new rows, some look learned too.
_MIN_NOTED_SHARE = 0.25


def note_stale(model: Any) -> None:
    """Note a stale calibration or decision, and documents that the weights do not include yet."""
    from textnb.cli.console import note
    from textnb.filter.verdict import since_fit_words

    # A model of feature tables has none of these attributes.
    for name, verb in (("calibration", "calibrate"), ("decision", "threshold")):
        choice = getattr(model, name, None)
        if choice is not None and choice.stale:
            note(f"note: the model's {name} is stale: {choice.stale}. Choose it again with: textnb "
                 f"{verb}")
    if since_fit := getattr(model, "since_fit", None):
        note(f"note: {since_fit_words(since_fit.documents)}")


def note_blank(blank: int, rows: int, consequence: str) -> None:
    """Note how many of the rows have no text, and the consequence."""
    from textnb.cli.console import note
    from textnb.text.coverage import describe_blank

    if words := describe_blank(blank, rows, consequence):
        note(f"note: {words}")


def note_unverified(novelty: Novelty | None, quiet: bool) -> None:
    """Note doubts whether rows are new to the model; a warning has said so if they surely are not.
    """
    if novelty is None or quiet:
        return
    from textnb.cli.console import note

    share = novelty.share_learned
    if novelty.verdict == "unknown":
        note(f"note: {novelty.message}")
    elif novelty.verdict == "new" and share is not None and share >= _MIN_NOTED_SHARE:
        note(f"note: about {100 * share:.0f} % of these rows look learned; if they are, what is "
             "shown here is too good")


def calibration_words(calibration: Calibration) -> str:
    """One line: the temperature or sigmoids, and the documents on which they were fitted."""
    formula = f"temperature {calibration.temperature:.4g}"
    if calibration.sigmoids:
        formula = f"a sigmoid for each of {quantity(len(calibration.sigmoids), 'label')}"
    elif calibration.length_exponent:
        formula = (f"temperature 1 + {calibration.temperature - 1:.4g} · "
                   f"n^{calibration.length_exponent:.4g}, n the terms counted in a document")
    # The sigmoid of each class's shifted score, divided by the sum over the classes.
    if calibration.link == "sigmoid":
        formula += f", shift {calibration.shift:.4g}, normalised sigmoids"
    # A calibration that a user sets may have neither a method nor documents.
    documents = quantity(calibration.documents, "document") if calibration.documents else ""
    origin = ", ".join(filter(None, [calibration.method, documents]))
    return (formula + (f" ({origin})" if origin else "")
            + (f"; stale: {calibration.stale}" if calibration.stale else ""))


def decision_words(
    decision: Decision, unit: str = "log-odds", max_shown: int = MAX_SHOWN, *,
    is_multilabel: bool = False,
) -> Iterator[str]:
    """The thresholds and the evidence for them, as lines.

    If the evidence can't be read, as other software wrote it, only the thresholds. ``unit`` is the
    unit of the thresholds if each document has one label: "log-odds" or "margin".
    """
    if decision.stale:
        yield f"stale, so that nothing below is certain: {decision.stale}"
    if is_multilabel:
        yield from _label_words(decision, max_shown)
        return
    condition = f"its {unit} {'is' if unit == 'margin' else 'are'} at least"
    try:
        yield from list(_evidence_words(decision, condition, max_shown))
    except (LookupError, TypeError, ValueError, AttributeError):
        yield from _threshold_words(decision, condition)


def _label_words(decision: Decision, max_shown: int) -> Iterator[str]:
    """The thresholds of labels, and the measures with them; ``inf`` means never."""
    evidence = decision.evidence
    measures = {entry["label"]: entry for entry in evidence.get("labels", ())}
    thresholds = list(decision.thresholds.items())
    for label, value in thresholds[:max_shown]:
        entry = measures.get(label)
        if value == math.inf:
            yield f"{label!r} never" + (_why_never(entry, evidence) if entry else "")
        else:
            yield f"{label!r} where its score is above {_number(value)}" + (
                f": {entry['correct']:,} of {entry['answered']:,} right, precision at least "
                f"{_percent(entry['precision_bound'])}" if entry else "")
    if len(thresholds) > max_shown:
        yield (f"and {len(thresholds) - max_shown:,} more labels: textnb describe --format json "
               "has all")
    # How many labels a row has at least and at most.
    if decision.ranks:
        yield " and ".join(f"{name.replace('_', ' ')} {quantity(value, 'label')}"
                           for name, value in decision.ranks.items()) + " for each row"
    if "micro_f1" in evidence:
        cost = f", cost {evidence['cost']:g}" if "cost" in evidence else ""
        yield (f"seen on {quantity(evidence['documents'], 'document')} ({evidence['scored']}): "
               f"micro F1 {evidence['micro_f1']:.4f}, macro F1 {evidence['macro_f1']:.4f}{cost}; "
               f"{evidence['correct']:,} of {quantity(evidence['predicted'], 'predicted label')} "
               f"right, {evidence['actual'] - evidence['correct']:,} missed")


def label_summary(decision: Decision) -> str:
    """The number and the range of the thresholds of labels."""
    finite = [value for value in decision.thresholds.values() if math.isfinite(value)]
    n_never = sum(value == math.inf for value in decision.thresholds.values())
    words = [f"thresholds of {quantity(len(decision.thresholds), 'label')}"]
    if finite:
        words.append(f"scores from {_number(min(finite))} to {_number(max(finite))}")
    if n_never:
        words.append(f"{n_never:,} never predicted")
    return ", ".join(words) + " (textnb describe shows each)"


def _evidence_words(decision: Decision, condition: str, max_shown: int) -> Iterator[str]:
    """The thresholds and their evidence; ``condition`` is the words before a threshold."""
    evidence = decision.evidence
    if "classes" in evidence:
        yield from _class_words(evidence, condition, max_shown)
        return
    yield from _threshold_words(decision, condition)
    if decision.positive is None or "share_caught" not in evidence:
        return
    yield from _guarantee_words(decision.positive, evidence)
    yield (f"seen on {quantity(evidence['documents'], 'document')} ({evidence['scored']}"
           f"{', calibrated' if evidence['calibrated'] else ''}): "
           f"{evidence['false_positives']:,} of {quantity(evidence['negatives'], 'other')} "
           f"answered {decision.positive!r}, {_caught_words(evidence)}")
    if evidence["unsure"]:
        yield f"{_percent(1 - evidence['coverage'])} of the documents are answered \"unsure\""


def _threshold_words(decision: Decision, condition: str) -> Iterator[str]:
    """The thresholds alone; ``condition`` is the words before each."""
    names = sorted(decision.thresholds, key=lambda label: label != decision.positive)
    other_thresholds = {decision.thresholds[name] for name in names[1:]}
    # Usually all classes but the positive one have the same threshold: one line describes them.
    others_agree = len(names) > 2 and len(other_thresholds) == 1 and decision.positive is not None
    for name in names[:1] if others_agree else names:
        yield f"{name!r} where {_with_threshold(condition, decision.thresholds[name])}"
    if others_agree:
        threshold = other_thresholds.pop()
        yield "else the most probable other class" + (
            "" if math.isinf(threshold) else f", where {condition} {threshold:.4g}")


def _guarantee_words(positive: Any, evidence: Mapping[str, Any]) -> Iterator[str]:
    """The rates of errors that hold for new rows, or the costs that were minimised."""
    from textnb.evaluation.novelty import HELD_OUT, UNVERIFIED

    verdict = evidence.get("novelty", {}).get("verdict")
    if verdict == "unknown":
        yield ONLY_IF_NEW
    if "costs" in evidence:
        false_positive, false_negative = evidence["costs"]
        yield (f"least cost, where a false positive costs {false_positive:g} and a false negative "
               f"{false_negative:g} ({evidence['rule']}): {evidence['cost']:g} on these documents")
        return
    # With leave-one-out and folds, the scores are not of the model that will answer.
    is_exact = evidence["scored"] in (HELD_OUT, UNVERIFIED)
    level = f"at {'' if is_exact else 'about '}{_percent(evidence['confidence'])} confidence"
    if verdict == "learned":
        yield "no guarantee: the model has probably learned the rows that the thresholds stand on"
        level = "of the rows that it has learned"
    yield (f"at most {_percent(evidence['false_positive_rate_bound'])} of the others are answered "
           f"{positive!r} {level} ({_percent(evidence['max_false_positive_rate'])} was asked)")
    if "max_false_negative_rate" in evidence:
        yield (f"at most {_percent(evidence['false_negative_rate_bound'])} of {positive!r} are "
               f"answered as another class {level} "
               f"({_percent(evidence['max_false_negative_rate'])} was asked)")


def _caught_words(evidence: Mapping[str, Any]) -> str:
    if evidence["share_caught"] is None:
        return "and none is of it, so what is caught is not known"
    low, high = evidence["share_caught_interval"]
    return (f"{evidence['true_positives']:,} of {evidence['positives']:,} caught "
            f"({_percent(evidence['share_caught'])}, {_percent(low)} to {_percent(high)})")


def _class_words(evidence: Mapping[str, Any], condition: str, max_shown: int) -> Iterator[str]:
    """The thresholds of a precision for each class, and their evidence."""
    entries = evidence["classes"]
    for entry in entries[:max_shown]:
        if entry["threshold"] is None:
            yield f"{entry['label']!r} never{_why_never(entry, evidence)}"
        else:
            yield (f"{entry['label']!r} where {_with_threshold(condition, entry['threshold'])}: "
                   f"{entry['correct']:,} of {entry['answered']:,} right, "
                   f"precision at least {_percent(entry['precision_bound'])}")
    if len(entries) > max_shown:
        yield (f"and {len(entries) - max_shown:,} more classes: textnb describe --format json has "
               "all")
    if evidence.get("novelty", {}).get("verdict") == "unknown":
        yield ONLY_IF_NEW
    precision = evidence["precision"]
    yield (f"{evidence['answered']:,} of {quantity(evidence['documents'], 'document')} get a class "
           f"({_percent(evidence['coverage'])}"
           f"{'' if precision is None else f'; {_percent(precision)} of them right'}; "
           f"{evidence['scored']}{', calibrated' if evidence['calibrated'] else ''})")


def _why_never(entry: Mapping[str, Any], evidence: Mapping[str, Any]) -> str:
    """Why a class is never answered; ``entry`` has the evidence for this class."""
    from textnb.evaluation.threshold_search import describe_alternatives

    why = f": a precision of {evidence['min_precision']:g} can't be shown"
    # For some classes, a lower precision can be shown.
    return why + (f"; {describe_alternatives(entry['shown'], evidence['min_precision'])}"
                  if "shown" in entry else "")


def _with_threshold(condition: str, value: float) -> str:
    """The condition with its threshold, such as "its log-odds are at least 2.5"."""
    # A threshold that is the smallest float above 0 means "above 0".
    if 0 < value < 1e-300:
        return condition.replace("at least", "above 0")
    return f"{condition} {_number(value)}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "inf: never" if value > 0 else "-inf: always"
    return f"{value:.4g}"


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
