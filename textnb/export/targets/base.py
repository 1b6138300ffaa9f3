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

# All steps of feature maps, which change counts or features before weights multiply them.
ALL_STEPS: tuple[type[Step], ...] = (Presence, Center, Sublinear, Idf, Length)
# Values of `Target.decides`, each with the answers of the one before. ONE_CLASS: one class per row.
# LABEL_LISTS: lists of the labels above their thresholds. RANKED_LABELS: lists with a minimum or a
# maximum number of labels, for which labels are ranked.
ONE_CLASS: tuple[str, ...] = ("class",)
LABEL_LISTS: tuple[str, ...] = (*ONE_CLASS, "labels")
RANKED_LABELS: tuple[str, ...] = (*LABEL_LISTS, "ranks")


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Rows for a target to score, as texts, as tokens and as values.

    Attributes
    ----------
    values : csr_array (n_rows, n_terms) or float64 (n_rows, n_features)
        Counts of the terms, or features.
    documents : DataFrame
        The text columns, which may hold nulls; without columns for features.
    tokens : Series of List(String)
        All tokens of each text, also repeated and unknown ones; empty for features.
    """

    values: CountMatrix | Floats
    documents: pl.DataFrame = field(default_factory=pl.DataFrame)
    tokens: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.List(pl.String)))

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def features(self) -> Floats:
        """The values, for a bundle that reads features."""
        assert isinstance(self.values, np.ndarray)
        return self.values


@dataclass(frozen=True, eq=False)
class TargetAnswers:
    """The scores and labels that an engine gives for `TargetRows`.

    Attributes
    ----------
    scores : float64 (n_rows, n_outputs)
        One output if the bundle has one w and b for two classes; else one per class.
    labels : list or None
        A label per row, or a list of labels per row; None if the target only gives scores.
    probabilities : float64 (n_rows, n_classes) or None
        None if the bundle's ``answers`` don't have probabilities.
    decisions : list of list or None
        For each row a list of one label, or an empty list if the decision is unsure. None if the
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
        """Make the answers of an engine; drop those that the bundle's ``answers`` don't have.

        Each argument has an item per row. A decision of None is unsure.
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
        The ending of its file; "" if it only needs ``form.json`` and ``weights.parquet``.
    companions : tuple of str
        The endings of other files that it writes.
    reads : tuple of {"text", "terms", "features"}
        The inputs that it can read, the default first.
    tolerance : float
        The maximum difference between its scores and the form's that is not wrong: absolute for
        scores up to 1, relative for larger ones.
    steps : tuple of type
        The steps of feature maps that it executes; a bundle with another step is refused.
    decides : tuple of str
        `ONE_CLASS`, or `LABEL_LISTS` if it can also answer with lists of labels, or `RANKED_LABELS`
        if it can also apply ``at_least`` and ``at_most`` of a decision.
    answers : tuple of {"scores", "probability", "decision"}
        Its answers in addition to labels.
    needs : str
        The engine: a program, or a package with its ``pip install``.
    """

    name: ClassVar[str]
    suffix: ClassVar[str]
    companions: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]]
    tolerance: ClassVar[float] = 1e-9
    steps: ClassVar[tuple[type[Step], ...]] = ()
    decides: ClassVar[tuple[str, ...]] = ONE_CLASS
    answers: ClassVar[tuple[str, ...]] = ("scores",)
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
        """How the file is used, in Markdown, for the README; "" to only name the engine."""
        return ""

    def splits(self, tokenizer: Tokenizer, columns: Sequence[str]) -> bool:
        """Whether to split texts by default with this tokenizer; if not, the target reads tokens.

        Asked only of targets that read texts.
        """
        return True


class Program(Target):
    """A target that splits texts, executes every step, and gives every answer."""

    reads: ClassVar[tuple[str, ...]] = ("text", "terms", "features")
    steps: ClassVar[tuple[type[Step], ...]] = ALL_STEPS
    decides: ClassVar[tuple[str, ...]] = RANKED_LABELS
    answers: ClassVar[tuple[str, ...]] = ANSWERS


class WriterMissing(ExportError):
    """The package that writes a target's file is not installed."""


class EngineMissing(Exception):
    """The engine of a target is not installed; the message says how to install it."""
