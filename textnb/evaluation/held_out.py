"""Scores of labelled documents by models that have not learned them.

It is what calibration, thresholds, the smoothing path and the report start from, however the scores
were made: on a file of their own, fold by fold, or each document left out in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import log_odds
from textnb.bayes.forms import Floats, log_posterior
from textnb.errors import DataError, ParameterError, quantity
from textnb.evaluation.novelty import UNKNOWN, Novelty, NoveltyCount, codes_of
from textnb.frames.batches import Progress, batches
from textnb.frames.scan import reading, scan
from textnb.frames.texts import labels_as
from textnb.learning.fitted import fitted_texts
from textnb.runtime import notebook
from textnb.scoring.texts import scored_batch

__all__ = ["UNKNOWN", "HeldOut", "codes_of", "held_out", "in_classes"]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores of documents that the model which scored them had not learned.

    Attributes
    ----------
    classes : (n_classes,)
    scores : float64 (n_documents, n_classes)
        Joint log-probabilities, base e, as `LinearForm.scores` gives them; divided by temperatures
        where there is a ``calibration``.
    actual : int64 (n_documents,)
        Index of each document's label among the classes; -1 for a label that is none of them.
    lengths : float64 (n_documents,)
        Sum of the counts that were scored.
    method : str
        "leave-one-out", "5 folds" ...; of rows that came as held out, what their terms tell:
        "held-out rows" (they are new), "rows that the model has probably learned", or "rows given
        as held out (can't be verified)".
    folds : int64 (n_documents,) or None
        Which model scored each document, where there were several.
    calibration : Calibration or None
        What `calibrated` has applied to the scores.
    without_class : bool (n_documents,) or None
        Documents whose own class the model that scored them had not learned: the only document of
        its class, left out, or all of a class in one fold. None where there is none. They count as
        errors, and no figure of probabilities can judge them.
    novelty : Novelty or None
        Of rows that were scored as held out: whether the model has learned them, as far as counts
        can tell.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> model = TextClassifier().fit(["aa", "bb"], ["x", "y"])
    >>> held = held_out(model, pl.DataFrame({"text": ["aa", "bb bb"], "label": ["x", "x"]}))
    >>> held.actual.tolist(), held.lengths.tolist(), held.predicted.tolist()
    ([0, 0], [1.0, 2.0], [0, 1])
    """

    classes: NDArray[Any]
    scores: Floats
    actual: NDArray[np.int64]
    lengths: Floats
    method: str
    folds: NDArray[np.int64] | None = None
    calibration: Calibration | None = None
    without_class: NDArray[np.bool_] | None = None
    novelty: Novelty | None = None

    def __repr__(self) -> str:
        accuracy = f"accuracy {self.accuracy:.4f}, " if len(self) else ""
        calibrated = "" if self.calibration is None else ", calibrated"
        return (f"HeldOut({quantity(len(self), 'document')}, "
                f"{quantity(len(self.classes), 'class')}, {accuracy}"
                f"{self.method}{calibrated})")

    def _repr_html_(self) -> str:
        names = self.classes.tolist()
        k = len(names)
        # Unknown labels, and rows that are impossible under every class, come last.
        counts = np.zeros((k + 1, k + 1), dtype=np.int64)
        np.add.at(counts, (self.actual, self.predicted), 1)
        unknown = ["(unknown label)"] if counts[k].any() else []
        impossible = ["(impossible)"] if counts[:, k].any() else []
        return notebook.box(repr(self), notebook.matrix(
            [*names, *unknown], counts.tolist(), [*names, *impossible],
            "Documents by label (rows) and prediction (columns)"))

    def __len__(self) -> int:
        return len(self.actual)

    @property
    def predicted(self) -> NDArray[np.int64]:
        """Index of the most probable class, -1 for a row that is impossible under every class."""
        best = self.scores.argmax(axis=1) if len(self) else np.zeros(0, dtype=np.int64)
        answer: NDArray[np.int64] = np.where(
            np.isneginf(self.scores).all(axis=1), UNKNOWN, best).astype(np.int64)
        return answer

    @property
    def accuracy(self) -> float:
        """Share of the documents whose most probable class is their label."""
        return float((self.predicted == self.actual).mean())

    def calibrated(self, calibration: Calibration | None) -> HeldOut:
        """The same documents with scores / T; as they are without a calibration.

        Raises
        ------
        ParameterError
            If they are calibrated already.
        """
        if calibration is None:
            return self
        if self.calibration is not None:
            raise ParameterError("these scores are calibrated already, and a second time would "
                                 "divide them twice: leave calibration= away, or pass the scores "
                                 "as they were")
        return replace(self, scores=calibration.apply(self.scores, self.lengths),
                       calibration=calibration)

    def log_odds(self, label: Any) -> Floats:
        """Log-odds (base e) of one class against the others, -inf for impossible rows."""
        k = self.classes.tolist().index(label)
        odds: Floats = np.nan_to_num(log_odds(self.scores)[:, k], nan=-np.inf,
                                     posinf=np.inf, neginf=-np.inf)
        return odds

    def log_probability(self) -> Floats:
        """log P(own label | document), base e: (n_documents,); -inf for an unknown label."""
        with np.errstate(invalid="ignore"):
            posterior = log_posterior(self.scores)
        own = posterior[np.arange(len(self)), np.maximum(self.actual, 0)]
        return np.where((self.actual == UNKNOWN) | np.isnan(own), -np.inf, own)

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Mask of the documents that probabilities can be judged by: (n_documents,).

        Their labels are classes that the model which scored them has learned.
        """
        known: NDArray[np.bool_] = self.actual != UNKNOWN
        return known if self.without_class is None else known & ~self.without_class

    @property
    def not_judged(self) -> int:
        """How many documents are not `judged`."""
        return len(self) - int(self.judged.sum())

    @property
    def log_loss(self) -> float:
        """Mean of -log P(own label | document), base e, over the documents that are `judged`.

        Infinite where one of them was given probability 0; NaN where there is none.
        """
        own = self.log_probability()[self.judged]
        return float(-own.mean()) if len(own) else float("nan")

    def take(self, rows: NDArray[Any]) -> HeldOut:
        """Some of the documents (mask or indices)."""
        return replace(self, scores=self.scores[rows], actual=self.actual[rows],
                       lengths=self.lengths[rows],
                       folds=None if self.folds is None else self.folds[rows],
                       without_class=None if self.without_class is None
                       else self.without_class[rows])


def check_held_out(held: Any) -> None:
    """Raises ParameterError for what is no `HeldOut`, such as the rows themselves."""
    if not isinstance(held, HeldOut):
        raise ParameterError(
            f"held must be scores of documents; got {type(held).__name__}: pass held_out(model, "
            "rows), leave_one_out(model, rows) or cross_validate(model, rows)")


def held_out(
    model: Any, frame: Any, *, progress: Progress | None = None
) -> HeldOut:
    """Score labelled documents that the model has not learned.

    Parameters
    ----------
    model : TextClassifier
        Fitted.
    frame : DataFrame, LazyFrame or path
        With the model's text and label columns.
    progress : callable, optional

    Raises
    ------
    DataError
        If there are no rows, or a label is null.

    Warns
    -----
    LearnedRowsWarning
        If the model has probably learned most of them: they bring far fewer terms that are new to
        their classes than new rows would: from a share of about 45 % learned rows on.
        ``method`` says so too, and what is chosen from these scores keeps it. ``novelty`` has the
        figures. Where too little can be told, there is no warning, and ``method`` is "rows given
        as held out (can't be verified)".
    """
    fitted = fitted_texts(model)
    if fitted is None:
        raise ParameterError.out_of_range("model", "a TextClassifier", type(model).__name__)
    names = fitted.columns
    classes = pl.Series(fitted.classes.tolist())
    parts: list[tuple[Floats, NDArray[np.int64], Floats]] = []
    row, novelty = 0, NoveltyCount(fitted)
    with reading(frame):
        label = fitted.label
        lazy = scan(frame, text=names, label=label)
        rows = lazy.select(*names, labels_as(label, lazy, classes.dtype).alias("\0label"))
        for batch in batches(rows, names, progress=progress):
            labels = batch["\0label"]
            if labels.null_count():
                raise DataError.null_label(label, row + int(labels.is_null().arg_true()[0]))
            row += batch.height
            codes = codes_of(labels, classes)
            scores, lengths = scored_batch(fitted, batch, partial(_count, novelty, codes))
            parts.append((scores, codes, lengths))
    if not parts or not row:
        raise DataError.no_rows("the test set")
    scores, actual, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
    found = novelty.result
    found.warn()
    return HeldOut(fitted.classes, scores, actual, lengths, found.method,
                   without_class=in_classes(actual, fitted.counts.class_count == 0),
                   novelty=found)


def _count(
    novelty: NoveltyCount, codes: NDArray[np.int64], rows: pl.DataFrame, counts: Any
) -> None:
    novelty.add(counts, codes)


def in_classes(actual: NDArray[np.int64], some: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Mask of the documents whose label is one of some classes; None where there is none."""
    inside: NDArray[np.bool_] = (actual != UNKNOWN) & some[np.maximum(actual, 0)]
    return inside if inside.any() else None
