"""What a target is: a writer of one file, and the real engine that runs it."""

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

# Counts or presence, and features less a center; and all that a map of counts can do.
SIMPLE: tuple[type[Step], ...] = (Presence, Center)
EVERY: tuple[type[Step], ...] = (*SIMPLE, Sublinear, Idf, Length)


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Rows that a target scores, in each of the forms that a target may read.

    Attributes
    ----------
    documents : DataFrame or None
        The text columns; None for features.
    texts : Series of String, or None
        The only text column, which may hold nulls; None for features and for several text columns.
    tokens : Series of List(String), or None
        All tokens of each text, terms or not, repeated as they occur; None for features.
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


@dataclass(frozen=True, eq=False)
class TargetAnswers:
    """The scores and labels that an engine gives for `TargetRows`.

    Attributes
    ----------
    scores : float64 (n_rows, n_outputs)
    labels : list or None
        One per row; None where the target gives scores alone.
    """

    scores: Floats
    labels: list[Any] | None = None


class Target(Protocol):
    """A format of exports, and the engine that runs it.

    Attributes
    ----------
    name : str
        As in ``--to``.
    suffix : str
        Ending of its file; "" where ``form.json`` and ``weights.parquet`` are all.
    reads : tuple of {"text", "terms", "features"}
        What it can read, the default first.
    tolerance : float
        Largest difference of a score from the form's, absolute and relative alike, that is no
        error.
    steps : tuple of type
        The steps of feature maps that it executes; it is not asked to write others.
    needs : str
        What runs it: a program, or a package with its ``pip install``.
    """

    name: ClassVar[str]
    suffix: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]
    tolerance: ClassVar[float]
    steps: ClassVar[tuple[type[Step], ...]]
    needs: ClassVar[str]

    def write(self, bundle: Bundle, path: Path) -> None:
        """Write the file; ExportError where the bundle can't be reproduced exactly."""

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        """Score rows by the written file in the real engine.

        Raises
        ------
        EngineMissing
            If the engine is not installed.
        """


def check_steps(target: Target, bundle: Bundle) -> None:
    """Raise ExportError if a target does not know a step of the form's feature map."""
    known = getattr(target, "steps", ())
    for step in bundle.form.features.steps:
        if type(step) not in known:
            names = ", ".join(kind.name for kind in known) or "no step at all"
            raise ExportError(f"{target.name}: the feature map's step {step.name} is not known "
                              f"there; known: {names}. Export to another target, such as json")


class EngineMissing(Exception):
    """The engine that runs a target is not there; the message says how to get it."""
