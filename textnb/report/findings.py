"""Warnings, next steps and notes: how far one can trust the figures of a report, and what to do.

Commands are between backticks, and the page shows them as code.
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

# With fewer test rows, the 95 % interval of a share of one half is wider than 20 points each way.
_MIN_TEST_ROWS = 20
# With fewer rows, what a model has learned of a class is mostly chance.
_MIN_LEARNED_ROWS = 10
# Classes are unbalanced if the largest has more than this many times the rows of the smallest.
_MAX_RATIO = 10.0
# A larger share of copies, or of texts without a known term, gives a warning instead of a note.
_MAX_COPY_SHARE, _MAX_NO_TERM_SHARE = 0.01, 0.05
# With a larger calibration error, calibration is a next step.
_MAX_CALIBRATION_ERROR = 0.05
# The maximum number of labels that a finding names.
_MAX_NAMED = 5

Kind = Literal["warning", "next step", "note"]
# A warning says that figures may mislead, a next step what would make the model more useful.
Finding = tuple[Kind, str]
Findings = Iterator[Finding]


def findings(scored: Scored, frame: Any, train: Any = None) -> list[Finding]:
    """Check the rows, and list the findings: warnings first, then next steps, then notes.

    ``frame`` are the test rows, which are read again for duplicates. ``train`` are the rows that
    the model learned.
    """
    all_findings = chain(
        _check_novelty(scored), _check_staleness(scored), _check_labels(scored),
        _check_answers(scored), _check_texts(scored), _check_sizes(scored),
        _check_copies(scored, frame, train), _check_calibration(scored))
    return sorted(all_findings, key=lambda finding: get_args(Kind).index(finding[0]))


def _check_novelty(scored: Scored) -> Findings:
    """Check whether the model has learned the rows."""
    novelty = scored.evaluation.novelty
    if novelty is not None and novelty.message:
        yield ("warning" if novelty.verdict == "learned" else "note",
               f"{novelty.message[0].upper()}{novelty.message[1:]}.")


def _check_staleness(scored: Scored) -> Findings:
    for name, value in (("calibration", scored.calibration), ("decision", scored.decision)):
        if value is not None and value.stale:
            yield "warning", (f"The model's {name} is stale: {value.stale}. Choose it again for "
                              "the model as it is now.")


def _check_labels(scored: Scored) -> Findings:
    unit, result, held_out = scored.unit, scored.evaluation, scored.held_out
    if result.unknown_labels:
        counted = "missed" if scored.of_lists else "errors, and in no figure of probabilities"
        yield "warning", (
            f"The model does not know {quantity(len(result.unknown_labels), 'label')} "
            f"({_enumerate(result.unknown_labels)}): counted as {counted}. Correct them, or learn "
            f"{unit}s of them.")
    absent = [label for k, label in enumerate(scored.classes) if not scored.has_label(k).any()]
    if absent:
        yield "note", (f"{quantity(len(absent), scored.noun)} of the model without a test {unit} "
                       f"({_enumerate(absent)}): the figures say nothing about them.")
    if held_out.without_class is not None:
        yield "warning", (f"{quantity(int(held_out.without_class.sum()), unit)} with labels of "
                          "which the model has learned no row: counted as errors, and in no figure "
                          "of probabilities.")
    if isinstance(result, Evaluation) and result.impossible:
        yield "warning", (f"{quantity(result.impossible, unit)} impossible under every class "
                          "(l = 0): without an answer, and counted as errors.")
    if scored.of_lists:
        sizes = held_out.actual.sum(axis=1)
        yield "note", (f"A document has {sizes.mean():.2f} labels on average, and "
                       f"{scored.answers.sum() / len(held_out):.2f} are predicted; "
                       f"{int((sizes == 0).sum()):,} have none.")


def _check_answers(scored: Scored) -> Findings:
    """Name the labels that are never answered rightly, and what may help."""
    tested = [k for k in range(len(scored.classes)) if scored.has_label(k).any()]
    never = [k for k in tested if not (scored.has_label(k) & scored.has_answer(k)).any()]
    never.sort(key=lambda k: -int(scored.has_label(k).sum()))
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
        f"{len(never)} of {quantity(len(tested), scored.noun)} {verb} never answered rightly "
        f"({_enumerate([scored.classes[k] for k in never])}): try "
        f"{' or '.join(filter(None, (', '.join(advice[:-1]), advice[-1])))}.")


def _check_texts(scored: Scored) -> Findings:
    coverage = scored.coverage
    if coverage is None:
        return
    basis = "the intercepts alone answer" if scored.of_lists else "the prior alone answers"
    if coverage.n_blank:
        yield "warning", f"{quantity(coverage.n_blank, 'document')} without a text: {basis}."
    if coverage.n_unknown:
        share = coverage.n_unknown / len(scored.held_out)
        yield ("warning" if share > _MAX_NO_TERM_SHARE else "note",
               f"{quantity(coverage.n_unknown, 'document')} ({percent(share)}) with a text but "
               f"without any term that the model knows: {basis}.")
    if coverage.message:
        yield "warning", f"{coverage.message}."


def _check_sizes(scored: Scored) -> Findings:
    noun, unit = scored.noun, scored.unit
    # The number of test rows of each class.
    sizes = np.array([int(scored.has_label(k).sum()) for k in range(len(scored.classes))])
    nonzero = sizes[sizes > 0]
    few = [label for label, n in zip(scored.classes, sizes, strict=True) if 0 < n < _MIN_TEST_ROWS]
    if few:
        yield "warning", (f"{quantity(len(few), noun)} with fewer than {_MIN_TEST_ROWS} test "
                          f"{unit}s ({_enumerate(few)}): their figures are rough. Test more of "
                          "them.")
    if len(nonzero) == 1:
        yield "warning", (f"All {unit}s have one label: the figures do not show how well the "
                          f"{scored.nouns} are told apart.")
    elif not scored.of_lists and nonzero.max() > _MAX_RATIO * nonzero.min():
        yield "note", (f"The classes are unbalanced ({nonzero.max():,} {unit}s against "
                       f"{nonzero.min():,}): always answering the largest would be right in "
                       f"{percent(nonzero.max() / len(scored.right))}. Read the figures per class.")
    rare = [label for label, n in zip(scored.classes, scored.n_learned_rows, strict=True)
            if n < _MIN_LEARNED_ROWS]
    if rare:
        yield "warning", (f"{quantity(len(rare), noun)} learned from fewer than "
                          f"{_MIN_LEARNED_ROWS} {unit}s ({_enumerate(rare)}): learn more of them.")


def _check_copies(scored: Scored, frame: Any, train: Any) -> Findings:
    """Check for copies among the test documents, and of training rows if they are given."""
    model = scored.model
    if not isinstance(model, TextClassifier):
        yield "note", "Duplicates are looked for in texts, not in feature tables."
        return
    # near=None: only texts that are the same word for word.
    find = partial(
        find_duplicates, text=model.text_columns, label=model.label_column, near=None,
        tokenizer=Tokenizer(token_columns=tuple(model.fitted_.token_columns)))
    repetitions = find(frame)
    if repetitions.exact:
        yield ("warning" if repetitions.share > _MAX_COPY_SHARE else "note",
               f"{_repeats(repetitions, 'an earlier one')}. Each copy counts again; "
               "`textnb duplicates` lists them.")
    if train is None:
        yield "note", ("Not checked: whether test documents are among those that were learned. "
                       "Give the training rows (train, or --train) to have it checked.")
        return
    copies = find(train, frame)
    if not copies.exact:
        yield "note", ("No test document repeats one of the "
                       f"{quantity(copies.against, 'training row')}.")
        return
    is_new = np.ones(len(scored.right), dtype=np.bool_)
    is_new[copies.pairs["row"].to_numpy()] = False
    measure = "all labels are right in" if scored.of_lists else "accuracy is"
    share = percent(scored.right[is_new].mean()) if is_new.any() else ""
    without_copies = f" Without them, {measure} {share}." if share else ""
    has_many = copies.share > _MAX_COPY_SHARE
    by_heart = ": the figures show in part what was learned by heart" if has_many else ""
    yield ("warning" if has_many else "note",
           f"{_repeats(copies, 'a training row')}{by_heart}.{without_copies}")


def _repeats(duplicates: Duplicates, original: str) -> str:
    conflicts = (f", {duplicates.conflicts:,} of them with another label"
                 if duplicates.conflicts else "")
    repeats = quantity(duplicates.exact, "test document", "repeats", "repeat")
    return f"{repeats} {original} word for word ({percent(duplicates.share)}){conflicts}"


def _check_calibration(scored: Scored) -> Findings:
    table = scored.reliability.get(UNCALIBRATED)
    if scored.calibration is None and table is not None and (
            table.expected_calibration_error > _MAX_CALIBRATION_ERROR):
        error = table.expected_calibration_error
        yield "next step", (f"The calibration error is {number(error)}: probabilities are off by "
                            f"{percent(error)} on average. Calibrate the model (`textnb "
                            "calibrate`) before you rely on them.")


def _enumerate(labels: Sequence[Any]) -> str:
    more = f" and {len(labels) - _MAX_NAMED} more" if len(labels) > _MAX_NAMED else ""
    return ", ".join(f"“{name}”" for name in names_of(labels[:_MAX_NAMED])) + more
