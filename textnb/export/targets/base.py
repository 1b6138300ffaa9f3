"""The contract of targets: each writes one file, and runs it in its real engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from textnb.bayes.features import Center, Idf, Length, Presence, Step, Sublinear
from textnb.bayes.forms import Floats
from textnb.errors import ExportError
from textnb.export.bundle import ANSWERS, Bundle
from textnb.text.matrix import CountMatrix
from textnb.text.tokens import Tokenizer

# All steps of feature maps.
ALL_STEPS: tuple[type[Step], ...] = (Presence, Center, Sublinear, Idf, Length)
# What a target decides (`Target.decides`): one class; also the labels above their thresholds; also
# by the ranks of labels.
ONE: tuple[str, ...] = ("class",)
LISTS: tuple[str, ...] = (*ONE, "labels")
RANKS: tuple[str, ...] = (*LISTS, "ranks")


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Rows for a target to score, in each of the forms that a target may read.

    Attributes
    ----------
    values : csr_array (n_rows, n_terms) or float64 (n_rows, n_features)
        What the form scores: counts of the terms, or features.
    documents : DataFrame
        The text columns, which may hold nulls; none for features.
    tokens : Series of List(String)
        All tokens of each text, with repeats and unknown ones; empty for features.
    """

    values: CountMatrix | Floats
    documents: pl.DataFrame = field(default_factory=pl.DataFrame)
    tokens: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.List(pl.String)))

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def features(self) -> Floats:
        """The values of a bundle that reads features."""
        assert isinstance(self.values, np.ndarray)
        return self.values


@dataclass(frozen=True, eq=False)
class TargetAnswers:
    """The scores and labels that an engine gives for `TargetRows`.

    Attributes
    ----------
    scores : float64 (n_rows, n_outputs)
    labels : list or None
        One per row, or a list per row; None if the target gives scores only.
    probabilities : float64 (n_rows, n_classes) or None
        None if the bundle's ``answers`` don't have them.
    decisions : list of list or None
        The label that the decision gives, in a list, which is empty if it is unsure. None if the
        bundle's ``answers`` don't have decisions.
    """

    scores: Floats
    labels: list[Any] | None = None
    probabilities: Floats | None = None
    decisions: list[list[Any]] | None = None

    @classmethod
    def of(
        cls, bundle: Bundle, scores: ArrayLike, labels: Sequence[Any],
        probabilities: ArrayLike | None, decisions: Iterable[Any] | None,
    ) -> TargetAnswers:
        """Make the answers of an engine, without those that the bundle's ``answers`` don't have.

        Each has an item per row. A decision of None is unsure.
        """
        return cls(
            np.asarray(scores, np.float64).reshape(len(labels), len(bundle.intercept)),
            list(labels),
            np.asarray(probabilities, np.float64).reshape(-1, len(bundle.labels))
            if "probability" in bundle.answers else None,
            [[] if label is None else [label] for label in decisions or ()]
            if bundle.gives_decisions else None)


class Target(ABC):
    """A format of exports, and the engine that runs it.

    Attributes
    ----------
    name : str
        The name for ``--to``.
    suffix : str
        The ending of its file; "" if ``form.json`` and ``weights.parquet`` are all that it needs.
    companions : tuple of str
        The endings of the files that it writes beside that one.
    reads : tuple of {"text", "terms", "features"}
        The inputs that it can read, the default first.
    tolerance : float
        The largest difference between its scores and the form's, absolute and relative, that is no
        error.
    steps : tuple of type
        The steps of feature maps that it executes; forms with others are refused before `write`.
    decides : tuple of str
        `ONE` class; with `LISTS`, also lists of labels, of a bundle that ``is_multilabel``; with
        `RANKS`, also by ``at_least`` and ``at_most`` of a decision.
    answers : tuple of {"scores", "probability", "decision"}
        Its answers, apart from labels.
    needs : str
        The engine: a program, or a package with its ``pip install``.
    """

    name: ClassVar[str]
    suffix: ClassVar[str]
    companions: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]]
    tolerance: ClassVar[float] = 1e-9
    steps: ClassVar[tuple[type[Step], ...]] = ()
    decides: ClassVar[tuple[str, ...]] = ONE
    answers: ClassVar[tuple[str, ...]] = ANSWERS[:1]
    needs: ClassVar[str]

    @abstractmethod
    def write(self, bundle: Bundle, path: Path) -> None:
        """Write the file; ExportError if the target can't give the bundle's exact scores."""

    @abstractmethod
    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        """Score rows with the written file in the real engine.

        Raises
        ------
        EngineMissing
            If the engine is not installed.
        """

    def usage(self, bundle: Bundle) -> str:
        """How the file is used, in Markdown, for the bundle's README; "" if its engine says all."""
        return ""

    def splits(self, tokenizer: Tokenizer, columns: Sequence[str]) -> bool:
        """Whether texts are its default input for a tokenizer, if it reads any; else tokens are."""
        return True


class Program(Target):
    """A target that splits texts, executes every step, and gives every answer."""

    reads: ClassVar[tuple[str, ...]] = ("text", "terms", "features")
    steps: ClassVar[tuple[type[Step], ...]] = ALL_STEPS
    decides: ClassVar[tuple[str, ...]] = RANKS
    answers: ClassVar[tuple[str, ...]] = ANSWERS


def check_target_knows(target: Target, bundle: Bundle) -> None:
    """Raise ExportError if a target lacks a step of the feature map, or an answer."""
    if bundle.is_multilabel and "labels" not in target.decides:
        raise ExportError(f"{target.name}: it answers with one class, and the model has lists of "
                          "labels; export to another target, such as json")
    if (bundle.is_multilabel and bundle.decision is not None and bundle.decision.ranks
            and "ranks" not in target.decides):
        ranks = ", ".join(f"{name}={value}" for name, value in bundle.decision.ranks.items())
        raise ExportError(f"{target.name}: it compares each score with its threshold, and the "
                          f"decision also ranks labels ({ranks}); choose thresholds alone, or "
                          "export to python, javascript, c, polars, onnx or SQL")
    for step in bundle.form.features.steps:
        if type(step) not in target.steps:
            names = ", ".join(kind.name for kind in target.steps) or "no step at all"
            raise ExportError(f"{target.name}: the feature map's step {step.name} is not known "
                              f"there; known: {names}. Export to another target, such as json")


class WriterMissing(ExportError):
    """The package that writes a target's file is not installed."""


class EngineMissing(Exception):
    """The engine of a target is not installed; the message says how to install it."""
