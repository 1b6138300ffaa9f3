"""Warnings and notes about the rows of a report, which show how far its figures can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from textnb.classifiers.text import TextClassifier
from textnb.errors import quantity
from textnb.evaluation.duplicates import find_duplicates
from textnb.evaluation.novelty import UNKNOWN
from textnb.report.data import Model, Scored, learned_rows
from textnb.report.text import names_of, percent
from textnb.text.tokens import Tokenizer

# With fewer rows, a share of one half has a 95 % interval of more than 20 points each way.
FEW_TESTED = 20
FEW_LEARNED = 10
UNBALANCED = 10.0
# A larger share of copies in the test set gives a warning: some texts then count too often.
MANY = 0.01
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


def findings(model: Model, scored: Scored, frame: Any, train: Any = None) -> list[Finding]:
    """Check the rows, and list what was found: warnings first, then notes.

    Parameters
    ----------
    model : TextClassifier or TableClassifier
    scored : Scored
    frame : DataFrame, LazyFrame or path
        The test rows, which are read again for duplicates.
    train : DataFrame, LazyFrame or path, optional
        The rows that the model learned.
    """
    found = [*_learned(scored), *_stale(model), *_labels(model, scored), *_texts(model, scored),
             *_sizes(model, scored),
             *copies(model, scored.held.predicted == scored.held.actual, frame, train)]
    return sorted(found, key=lambda finding: finding.kind == "note")


def _learned(scored: Scored) -> list[Finding]:
    """Check whether the model has learned the rows."""
    novelty = scored.held.novelty
    if novelty is None or not novelty.message:
        return []
    kind: Literal["warning", "note"] = "warning" if novelty.verdict == "learned" else "note"
    return [Finding(kind, f"{novelty.message[0].upper()}{novelty.message[1:]}.")]


def _stale(model: Model) -> list[Finding]:
    promises = ((name, getattr(model, f"{name}_", None)) for name in ("calibration", "decision"))
    return [Finding("warning", f"The model's {name} is stale: {value.stale}. It was chosen for "
                    "the model as it was before.")
            for name, value in promises if value is not None and value.stale]


def copies(model: Model, right: NDArray[np.bool_], frame: Any, train: Any) -> list[Finding]:
    """Documents with the very words of others: of the test, and of the training rows if given.

    ``right`` tells which documents the model answers rightly.
    """
    if not isinstance(model, TextClassifier):
        return [Finding("note", "Duplicates are looked for in texts, not in feature tables.")]
    found = []
    how: dict[str, Any] = {
        "text": model.text_columns, "label": model.label_column, "near": None,
        "tokenizer": Tokenizer(token_columns=tuple(model.fitted_.token_columns))}
    repeated = find_duplicates(frame, **how)
    if repeated.exact:
        conflicts = f"; labelled otherwise: {repeated.conflicts:,}" if (
            repeated.conflicts) else ""
        is_serious = repeated.share > MANY or repeated.conflicts
        found.append(Finding("warning" if is_serious else "note", (
            f"{quantity(repeated.exact, 'test document')} ({percent(repeated.share)}) with the "
            f"very words of one before it{conflicts}.")))
    if train is None:
        return [*found, Finding("note", "Not checked: whether test documents were among those that "
                                "were learned. Give the training rows to have it checked.")]
    learned = find_duplicates(train, frame, **how)
    if not learned.exact:
        return [*found, Finding("note", "No test document has the very words of one of the "
                                f"{quantity(learned.against, 'training row')}.")]
    new = np.ones(len(right), dtype=np.bool_)
    new[learned.pairs["row"].to_numpy()] = False
    conflicts = f"; labelled otherwise there: {learned.conflicts:,}" if (
        learned.conflicts) else ""
    measure = "All labels right" if model.fitted_.is_multilabel else "Accuracy"
    rest = f" {measure} without them: {percent(right[new].mean())}." if (
        new.any()) else ""
    return [*found, Finding("warning", (
        f"{quantity(learned.exact, 'test document')} ({percent(learned.share)}) with the very "
        f"words of a training row{conflicts}: the figures tell in part what was learned by heart."
        f"{rest}"))]


def _labels(model: Model, scored: Scored) -> list[Finding]:
    found = []
    unknown = scored.evaluation.unknown_labels
    if unknown:
        rows = int((scored.held.actual == UNKNOWN).sum())
        found.append(Finding("warning", f"{quantity(rows, 'row')} with labels that the model does "
                             f"not know ({_listed(unknown)}): counted as errors, and in no figure "
                             "of probabilities."))
    absent = [label for k, label in enumerate(scored.held.classes.tolist())
              if not (scored.held.actual == k).any()]
    if absent:
        found.append(Finding("note", f"{quantity(len(absent), 'class')} of the model without a "
                             f"test row: {_listed(absent)}."))
    without = scored.held.without_class
    if without is not None:
        found.append(Finding("warning", f"{quantity(int(without.sum()), 'row')} with labels of "
                             "which the model has learned no row: counted as errors, and in no "
                             "figure of probabilities."))
    impossible = scored.evaluation.impossible
    if impossible:
        found.append(Finding("warning", f"{quantity(impossible, 'row')} impossible under every "
                             "class (l = 0): without an answer, and counted as errors."))
    return found


def _texts(model: Model, scored: Scored) -> list[Finding]:
    if not isinstance(model, TextClassifier):
        return []
    found = []
    if scored.blank:
        null = f", {scored.missing:,} of them null" if scored.missing else ""
        found.append(Finding("warning", f"{quantity(scored.blank, 'document')} without a "
                             f"text{null}: the prior alone answers."))
    unknown_only = int((scored.held.lengths == 0).sum()) - scored.blank
    if unknown_only > 0:
        found.append(Finding("warning" if unknown_only > 0.05 * len(scored.held) else "note",
                             f"{quantity(unknown_only, 'document')} "
                             f"({percent(unknown_only / len(scored.held))}) with a text but "
                             "without any term that the model knows: the prior alone answers."))
    if scored.coverage is not None and scored.coverage.message:
        found.append(Finding("warning", f"{scored.coverage.message}."))
    return found


def _sizes(model: Model, scored: Scored) -> list[Finding]:
    found = []
    classes = scored.held.classes.tolist()
    tested = np.bincount(scored.held.actual[scored.held.actual != UNKNOWN], minlength=len(classes))
    present = tested[tested > 0]
    few = [label for label, n in zip(classes, tested, strict=True) if 0 < n < FEW_TESTED]
    if few:
        found.append(Finding("warning", f"{quantity(len(few), 'class')} with fewer than "
                             f"{FEW_TESTED} test rows ({_listed(few)}): their figures are rough."))
    if len(present) == 1:
        found.append(Finding("warning", "All rows have one label: the figures do not show how well "
                             "the classes are told apart."))
    elif present.max() > UNBALANCED * present.min():
        share = present.max() / len(scored.held)
        found.append(Finding("note", f"The classes are unbalanced ({present.max():,} rows against "
                             f"{present.min():,}): always answering the largest would be right in "
                             f"{percent(share)}. Read the figures per class."))
    learned = learned_rows(model)
    rare = [label for label, n in zip(classes, learned, strict=True) if n < FEW_LEARNED]
    if rare:
        found.append(Finding("warning", f"{quantity(len(rare), 'class')} learned from fewer than "
                             f"{FEW_LEARNED} rows ({_listed(rare)})."))
    return found


def _listed(labels: list[Any]) -> str:
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return ", ".join(f"“{name}”" for name in names_of(labels[:_NAMED])) + more
