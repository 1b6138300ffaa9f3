"""Warnings and notes about the rows of a report: how far its figures can be trusted, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from textnb.classifiers.text import TextClassifier
from textnb.errors import quantity
from textnb.evaluation.duplicates import find_duplicates
from textnb.report.data import UNCALIBRATED, Scored
from textnb.report.text import names_of, percent
from textnb.text.tokens import Tokenizer

# With fewer rows, a share of one half has a 95 % interval of more than 20 points each way.
FEW_TESTED = 20
FEW_LEARNED = 10
UNBALANCED = 10.0
# A larger share of copies in the test set gives a warning: some texts then count too often.
MANY = 0.01
# From this calibration error on, probabilities are said to need calibration.
MISCALIBRATED = 0.05
# Labels that a finding names.
_NAMED = 5


@dataclass(frozen=True)
class Finding:
    """A fact about the rows.

    Attributes
    ----------
    kind : {"warning", "note"}
        A warning says that figures may be misleading.
    text : str
    """

    kind: Literal["warning", "note"]
    text: str


def findings(scored: Scored, frame: Any, train: Any = None) -> list[Finding]:
    """Check the rows, and list what was found: warnings first, then notes.

    Parameters
    ----------
    scored : Scored
    frame : DataFrame, LazyFrame or path
        The test rows, which are read again for duplicates.
    train : DataFrame, LazyFrame or path, optional
        The rows that the model learned.
    """
    found = [*_learned(scored), *_stale(scored), *_labels(scored), *_texts(scored),
             *_sizes(scored), *_copies(scored, frame, train), *_next_steps(scored)]
    return sorted(found, key=lambda finding: finding.kind == "note")


def _learned(scored: Scored) -> list[Finding]:
    """Check whether the model has learned the rows."""
    novelty = scored.held.novelty
    if novelty is None or not novelty.message:
        return []
    kind: Literal["warning", "note"] = "warning" if novelty.verdict == "learned" else "note"
    return [Finding(kind, f"{novelty.message[0].upper()}{novelty.message[1:]}.")]


def _stale(scored: Scored) -> list[Finding]:
    promises = (("calibration", scored.calibration), ("decision", scored.decision))
    return [Finding("warning", f"The model's {name} is stale: {value.stale}. Choose it again for "
                    "the model as it is now.")
            for name, value in promises if value is not None and value.stale]


def _copies(scored: Scored, frame: Any, train: Any) -> list[Finding]:
    """Documents with the very words of others: of the test, and of the training rows if given."""
    model = scored.model
    if not isinstance(model, TextClassifier):
        return [Finding("note", "Duplicates are looked for in texts, not in feature tables.")]
    found = []
    how: dict[str, Any] = {
        "text": model.text_columns, "label": model.label_column, "near": None,
        "tokenizer": Tokenizer(token_columns=tuple(model.fitted_.token_columns))}
    repeated = find_duplicates(frame, **how)
    if repeated.exact:
        conflicts = f", {repeated.conflicts:,} of them with another label" if (
            repeated.conflicts) else ""
        is_serious = repeated.share > MANY or repeated.conflicts
        repeats = quantity(repeated.exact, "test document", "repeats", "repeat")
        found.append(Finding("warning" if is_serious else "note", (
            f"{repeats} an earlier one word for word ({percent(repeated.share)}){conflicts}. Each "
            "copy counts again: textnb duplicates lists them.")))
    if train is None:
        return [*found, Finding("note", "Not checked: whether test documents are among those that "
                                "were learned. Give the training rows (train, or --train) to have "
                                "it checked.")]
    learned = find_duplicates(train, frame, **how)
    if not learned.exact:
        return [*found, Finding("note", "No test document repeats one of the "
                                f"{quantity(learned.against, 'training row')}.")]
    new = np.ones(len(scored.right), dtype=np.bool_)
    new[learned.pairs["row"].to_numpy()] = False
    conflicts = f", {learned.conflicts:,} of them with another label" if learned.conflicts else ""
    measure = "all labels are right in" if scored.of_lists else "accuracy is"
    rest = f" Without them, {measure} {percent(scored.right[new].mean())}." if new.any() else ""
    repeats = quantity(learned.exact, "test document", "repeats", "repeat")
    return [*found, Finding("warning", (
        f"{repeats} a training row word for word ({percent(learned.share)}){conflicts}: the "
        f"figures show in part what was learned by heart.{rest}"))]


def _labels(scored: Scored) -> list[Finding]:
    found = []
    noun, result, held = scored.noun, scored.evaluation, scored.held
    unknown = result.unknown_labels
    counted = ("missed" if scored.of_lists else "errors, and in no figure of probabilities")
    if unknown:
        found.append(Finding("warning", f"The model does not know {quantity(len(unknown), 'label')}"
                             f" ({_listed(unknown)}): counted as {counted}. Correct them, or learn "
                             f"{scored.unit}s of them."))
    absent = [label for k, label in enumerate(scored.classes) if not scored.has(k).any()]
    if absent:
        found.append(Finding("note", f"{quantity(len(absent), noun)} of the model without a test "
                             f"{scored.unit} ({_listed(absent)}): nothing is known of "
                             f"{'its' if len(absent) == 1 else 'their'} recall."))
    if held.without_class is not None:
        found.append(Finding("warning", f"{quantity(int(held.without_class.sum()), 'row')} with "
                             "labels of which the model has learned no row: counted as errors, and "
                             "in no figure of probabilities."))
    impossible = getattr(result, "impossible", 0)
    if impossible:
        found.append(Finding("warning", f"{quantity(impossible, 'row')} impossible under every "
                             "class (l = 0): without an answer, and counted as errors."))
    if scored.of_lists:
        sizes = held.actual.sum(axis=1)
        found.append(Finding("note", f"A document has {sizes.mean():.2f} labels on average, and "
                             f"{scored.answers.sum() / len(held):.2f} are predicted; "
                             f"{int((sizes == 0).sum()):,} have none."))
    return found


def _texts(scored: Scored) -> list[Finding]:
    if scored.coverage is None:
        return []
    found = []
    blank = scored.coverage.textless
    basis = "the intercepts alone answer" if scored.of_lists else "the prior alone answers"
    if blank:
        found.append(Finding("warning", f"{quantity(blank, 'document')} without a text: {basis}."))
    unknown_only = scored.coverage.without
    if unknown_only:
        share = unknown_only / len(scored.held)
        found.append(Finding("warning" if share > 0.05 else "note",
                             f"{quantity(unknown_only, 'document')} ({percent(share)}) with a text "
                             f"but without any term that the model knows: {basis}."))
    if scored.coverage.message:
        found.append(Finding("warning", f"{scored.coverage.message}."))
    return found


def _sizes(scored: Scored) -> list[Finding]:
    found = []
    noun, classes = scored.noun, scored.classes
    tested = np.array([int(scored.has(k).sum()) for k in range(len(classes))])
    present = tested[tested > 0]
    few = [label for label, n in zip(classes, tested, strict=True) if 0 < n < FEW_TESTED]
    if few:
        found.append(Finding("warning", f"{quantity(len(few), noun)} with fewer than "
                             f"{FEW_TESTED} test rows ({_listed(few)}): their figures are rough. "
                             "Test more rows of them."))
    if len(present) == 1:
        found.append(Finding("warning", "All rows have one label: the figures do not show how well "
                             f"the {scored.nouns} are told apart."))
    elif not scored.of_lists and present.max() > UNBALANCED * present.min():
        share = present.max() / len(scored.held)
        found.append(Finding("note", f"The classes are unbalanced ({present.max():,} rows against "
                             f"{present.min():,}): always answering the largest would be right in "
                             f"{percent(share)}. Read the figures per class."))
    rare = [label for label, n in zip(classes, scored.learned, strict=True) if n < FEW_LEARNED]
    if rare:
        found.append(Finding("warning", f"{quantity(len(rare), noun)} learned from fewer than "
                             f"{FEW_LEARNED} rows ({_listed(rare)}): learn more rows of them."))
    return found


def _next_steps(scored: Scored) -> list[Finding]:
    """What would make the answers better or easier to use."""
    found = []
    table = scored.reliability.get(UNCALIBRATED)
    if scored.calibration is None and table is not None and (
            table.expected_calibration_error > MISCALIBRATED):
        found.append(Finding("note", "Probabilities are off by "
                             f"{percent(table.expected_calibration_error)} on average: calibrate "
                             "the model (textnb calibrate) before you rely on them."))
    if scored.of_lists and scored.decision is None:
        never = [label for k, label in enumerate(scored.classes)
                 if scored.has(k).any() and not scored.gets(k).any()]
        if never:
            found.append(Finding("note", f"{quantity(len(never), 'label')} of documents are never "
                                 f"predicted ({_listed(never)}): a threshold for each label "
                                 "(textnb threshold --by f1) may find them."))
    return found


def _listed(labels: Iterable[Any]) -> str:
    labels = list(labels)
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return ", ".join(f"“{name}”" for name in names_of(labels[:_NAMED])) + more
