"""Warnings, next steps and notes: how far the figures of a report can be trusted, what to do.

Commands stand between backticks, which the page shows as code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np

from textnb.classifiers.text import TextClassifier
from textnb.errors import quantity
from textnb.evaluation.duplicates import Duplicates, find_duplicates
from textnb.evaluation.metrics import Evaluation
from textnb.models.nblinear import NBLinear
from textnb.report.data import UNCALIBRATED, Scored
from textnb.runtime.display import names_of, number, percent
from textnb.text.tokens import Tokenizer

# With fewer test rows, a share of one half has a 95 % interval of more than 20 points each way.
FEW_TESTED = 20
FEW_LEARNED = 10
# Classes are unbalanced if the largest has more than this many times the rows of the smallest.
UNBALANCED = 10.0
# A larger share of copies gives a warning: fewer hardly change a figure.
MANY = 0.01
# From this calibration error on, probabilities are said to need calibration.
MISCALIBRATED = 0.05
# The maximum number of labels that a finding names.
_NAMED = 5

Kind = Literal["warning", "next step", "note"]
# A warning says that figures may be misleading, a next step what makes the model better to use.
Finding = tuple[Kind, str]
Findings = Iterator[Finding]


def findings(scored: Scored, frame: Any, train: Any = None) -> list[Finding]:
    """Check the rows, and list what was found: warnings first, next steps, then notes.

    ``frame`` are the test rows, which are read again for duplicates, and ``train`` the rows that
    the model learned.
    """
    all_findings = chain(
        _learned(scored), _stale(scored), _labels(scored), _never(scored), _texts(scored),
        _sizes(scored), _copies(scored, frame, train), _calibration(scored))
    return sorted(all_findings, key=lambda finding: get_args(Kind).index(finding[0]))


def _learned(scored: Scored) -> Findings:
    """Check whether the model has learned the rows."""
    novelty = scored.evaluation.novelty
    if novelty is not None and novelty.message:
        yield ("warning" if novelty.verdict == "learned" else "note",
               f"{novelty.message[0].upper()}{novelty.message[1:]}.")


def _stale(scored: Scored) -> Findings:
    for name, value in (("calibration", scored.calibration), ("decision", scored.decision)):
        if value is not None and value.stale:
            yield "warning", (f"The model's {name} is stale: {value.stale}. Choose it again for "
                              "the model as it is now.")


def _labels(scored: Scored) -> Findings:
    unit, result, held = scored.unit, scored.evaluation, scored.held
    if result.unknown_labels:
        counted = "missed" if scored.of_lists else "errors, and in no figure of probabilities"
        yield "warning", (
            f"The model does not know {quantity(len(result.unknown_labels), 'label')} "
            f"({_enumerate(result.unknown_labels)}): counted as {counted}. Correct them, or learn "
            f"{unit}s of them.")
    absent = [label for k, label in enumerate(scored.classes) if not scored.has(k).any()]
    if absent:
        yield "note", (f"{quantity(len(absent), scored.noun)} of the model without a test {unit} "
                       f"({_enumerate(absent)}): the figures say nothing about them.")
    if held.without_class is not None:
        yield "warning", (f"{quantity(int(held.without_class.sum()), unit)} with labels of which "
                          "the model has learned no row: counted as errors, and in no figure of "
                          "probabilities.")
    if isinstance(result, Evaluation) and result.impossible:
        yield "warning", (f"{quantity(result.impossible, unit)} impossible under every class "
                          "(l = 0): without an answer, and counted as errors.")
    if scored.of_lists:
        sizes = held.actual.sum(axis=1)
        yield "note", (f"A document has {sizes.mean():.2f} labels on average, and "
                       f"{scored.answers.sum() / len(held):.2f} are predicted; "
                       f"{int((sizes == 0).sum()):,} have none.")


def _never(scored: Scored) -> Findings:
    """Name the labels that are never answered rightly, and what may help."""
    right = {k: bool((own & scored.has_answer(k)).any()) for k in range(len(scored.classes))
             if (own := scored.has(k)).any()}
    never = sorted((k for k in right if not right[k]), key=lambda k: -int(scored.has(k).sum()))
    if not never:
        return
    advice = [f"more {scored.unit}s of them"]
    if isinstance(scored.model, TextClassifier):
        advice = ["`textnb tune`"]
        if not isinstance(scored.estimator, NBLinear):
            advice.append("NBLinear (`--model nblinear`)")
        if scored.of_lists and scored.decision is None:
            advice.append("a threshold for each label (`textnb threshold --by f1`)")
    verb = "is" if len(never) == 1 else "are"
    yield "warning", (
        f"{len(never)} of {quantity(len(right), scored.noun)} {verb} never answered rightly "
        f"({_enumerate([scored.classes[k] for k in never])}): try "
        f"{' or '.join(filter(None, (', '.join(advice[:-1]), advice[-1])))}.")


def _texts(scored: Scored) -> Findings:
    coverage = scored.coverage
    if coverage is None:
        return
    basis = "the intercepts alone answer" if scored.of_lists else "the prior alone answers"
    if coverage.textless:
        yield "warning", f"{quantity(coverage.textless, 'document')} without a text: {basis}."
    if coverage.without:
        share = coverage.without / len(scored.held)
        yield ("warning" if share > 0.05 else "note",
               f"{quantity(coverage.without, 'document')} ({percent(share)}) with a text but "
               f"without any term that the model knows: {basis}.")
    if coverage.message:
        yield "warning", f"{coverage.message}."


def _sizes(scored: Scored) -> Findings:
    noun, unit = scored.noun, scored.unit
    tested = np.array([int(scored.has(k).sum()) for k in range(len(scored.classes))])
    present = tested[tested > 0]
    few = [label for label, n in zip(scored.classes, tested, strict=True) if 0 < n < FEW_TESTED]
    if few:
        yield "warning", (f"{quantity(len(few), noun)} with fewer than {FEW_TESTED} test {unit}s "
                          f"({_enumerate(few)}): their figures are rough. Test more of them.")
    if len(present) == 1:
        yield "warning", (f"All {unit}s have one label: the figures do not show how well the "
                          f"{scored.nouns} are told apart.")
    elif not scored.of_lists and present.max() > UNBALANCED * present.min():
        yield "note", (f"The classes are unbalanced ({present.max():,} {unit}s against "
                       f"{present.min():,}): always answering the largest would be right in "
                       f"{percent(present.max() / len(scored.held))}. Read the figures per class.")
    rare = [label for label, n in zip(scored.classes, scored.learned, strict=True)
            if n < FEW_LEARNED]
    if rare:
        yield "warning", (f"{quantity(len(rare), noun)} learned from fewer than {FEW_LEARNED} "
                          f"{unit}s ({_enumerate(rare)}): learn more of them.")


def _copies(scored: Scored, frame: Any, train: Any) -> Findings:
    """Check for copies: among the test documents, and of training rows if these are given."""
    model = scored.model
    if not isinstance(model, TextClassifier):
        yield "note", "Duplicates are looked for in texts, not in feature tables."
        return
    find = partial(
        find_duplicates, text=model.text_columns, label=model.label_column, near=None,
        tokenizer=Tokenizer(token_columns=tuple(model.fitted_.token_columns)))
    repeated = find(frame)
    if repeated.exact:
        yield ("warning" if repeated.share > MANY else "note",
               f"{_repeats(repeated, 'an earlier one')}. Each copy counts again; "
               "`textnb duplicates` lists them.")
    if train is None:
        yield "note", ("Not checked: whether test documents are among those that were learned. "
                       "Give the training rows (train, or --train) to have it checked.")
        return
    learned = find(train, frame)
    if not learned.exact:
        yield "note", ("No test document repeats one of the "
                       f"{quantity(learned.against, 'training row')}.")
        return
    new = np.ones(len(scored.right), dtype=np.bool_)
    new[learned.pairs["row"].to_numpy()] = False
    measure = "all labels are right in" if scored.of_lists else "accuracy is"
    rest = f" Without them, {measure} {percent(scored.right[new].mean())}." if new.any() else ""
    many = learned.share > MANY
    by_heart = ": the figures show in part what was learned by heart" if many else ""
    yield ("warning" if many else "note",
           f"{_repeats(learned, 'a training row')}{by_heart}.{rest}")


def _repeats(duplicates: Duplicates, row: str) -> str:
    conflicts = (f", {duplicates.conflicts:,} of them with another label"
                 if duplicates.conflicts else "")
    repeats = quantity(duplicates.exact, "test document", "repeats", "repeat")
    return f"{repeats} {row} word for word ({percent(duplicates.share)}){conflicts}"


def _calibration(scored: Scored) -> Findings:
    table = scored.reliability.get(UNCALIBRATED)
    if scored.calibration is None and table is not None and (
            table.expected_calibration_error > MISCALIBRATED):
        error = table.expected_calibration_error
        yield "next step", (f"The calibration error is {number(error)}: probabilities are off by "
                            f"{percent(error)} on average. Calibrate the model (`textnb "
                            "calibrate`) before you rely on them.")


def _enumerate(labels: Sequence[Any]) -> str:
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return ", ".join(f"“{name}”" for name in names_of(labels[:_NAMED])) + more
