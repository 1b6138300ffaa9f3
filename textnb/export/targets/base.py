"""The contract of targets: each writes one file, and runs it in its real engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import polars as pl

from textnb.bayes.features import Center, Idf, Length, Presence, Step, Sublinear
from textnb.bayes.forms import Floats
from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.text.matrix import CountMatrix

# SIMPLE: counts or presence, and features less a center. EVERY: all steps of feature maps.
SIMPLE: tuple[type[Step], ...] = (Presence, Center)
EVERY: tuple[type[Step], ...] = (*SIMPLE, Sublinear, Idf, Length)
# What a target may decide: one class, or the labels above their thresholds.
ONE: tuple[str, ...] = ("class",)
LISTS: tuple[str, ...] = (*ONE, "labels")
RANKS: tuple[str, ...] = (*LISTS, "ranks")


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Rows for a target to score, in each of the forms that a target may read.

    Attributes
    ----------
    documents : DataFrame or None
        The text columns; None for features.
    texts : Series of String, or None
        The only text column, which may hold nulls; None for features and for several text columns.
    tokens : Series of List(String), or None
        All tokens of each text, with repeats and unknown ones; None for features.
    counts : csr_array (n_rows, n_terms) or None
        Counts of the terms; None for features.
    features : float64 (n_rows, n_features) or None
    """

    documents: pl.DataFrame | None = None
    texts: pl.Series | None = None
    tokens: pl.Series | None = None
    counts: CountMatrix | None = None
    features: Floats | None = None

    def __len__(self) -> int:
        for rows in (self.tokens, self.texts, self.features):
            if rows is not None:
                return len(rows)
        return 0

    def head(self, n: int) -> TargetRows:
        """The first rows."""
        def cut(part: Any) -> Any:
            return None if part is None else part[:n]

        return TargetRows(cut(self.documents), cut(self.texts), cut(self.tokens),
                          cut(self.counts), cut(self.features))


@dataclass(frozen=True, eq=False)
class TargetAnswers:
    """The scores and labels that an engine gives for `TargetRows`.

    Attributes
    ----------
    scores : float64 (n_rows, n_outputs)
    labels : list or None
        One per row, or a list per row; None if the target gives scores only.
    probabilities : float64 (n_rows, n_classes) or None
        None if the bundle's ``answers`` don't have them; so for decisions.
    decisions : list of list or None
        The label that the decision gives, in a list, which is empty where it is unsure.
    """

    scores: Floats
    labels: list[Any] | None = None
    probabilities: Floats | None = None
    decisions: list[list[Any]] | None = None


class Target(Protocol):
    """A format of exports, and the engine that runs it.

    Attributes
    ----------
    name : str
        The name for ``--to``.
    suffix : str
        The ending of its file; "" if ``form.json`` and ``weights.parquet`` are all that it needs.
    reads : tuple of {"text", "terms", "features"}
        The inputs that it can read, the default first.
    tolerance : float
        The largest difference between its scores and the form's, absolute and relative, that is no
        error.
    steps : tuple of type
        The steps of feature maps that it executes; forms with others are refused before `write`.
    needs : str
        The engine: a program, or a package with its ``pip install``.
    decides : tuple of str, optional
        What it answers with: `ONE` class, which is meant if this is missing, or also `LISTS` of
        labels, of a bundle that ``is_multilabel``; with `RANKS`, also by ``at_least`` and
        ``at_most`` of a decision.
    answers : tuple of {"scores", "probability", "decision"}, optional
        What else it answers with, if this is more than scores and labels.
    """

    name: ClassVar[str]
    suffix: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]
    tolerance: ClassVar[float]
    steps: ClassVar[tuple[type[Step], ...]]
    needs: ClassVar[str]

    def write(self, bundle: Bundle, path: Path) -> None:
        """Write the file; ExportError if the target can't give the bundle's exact scores."""

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        """Score rows with the written file in the real engine.

        Raises
        ------
        EngineMissing
            If the engine is not installed.
        """


def check_target_knows(target: Target, bundle: Bundle) -> None:
    """Raises ExportError if a target knows not all steps of the feature map, or no such answers."""
    if bundle.is_multilabel and "labels" not in getattr(target, "decides", ONE):
        raise ExportError(f"{target.name}: it answers with one class, and the model has lists of "
                          "labels; export to another target, such as json")
    if (bundle.is_multilabel and bundle.decision is not None and bundle.decision.ranks
            and "ranks" not in getattr(target, "decides", ONE)):
        ranks = ", ".join(f"{name}={value}" for name, value in bundle.decision.ranks.items())
        raise ExportError(f"{target.name}: it compares each score with its threshold, and the "
                          f"decision also ranks labels ({ranks}); choose thresholds alone, or "
                          "export to python, javascript, c, polars, onnx or SQL")
    known = getattr(target, "steps", ())
    for step in bundle.form.features.steps:
        if type(step) not in known:
            names = ", ".join(kind.name for kind in known) or "no step at all"
            raise ExportError(f"{target.name}: the feature map's step {step.name} is not known "
                              f"there; known: {names}. Export to another target, such as json")


class WriterMissing(ExportError):
    """The package that writes a target's file is not installed."""


class EngineMissing(Exception):
    """The engine of a target is not installed; the message says how to install it."""
