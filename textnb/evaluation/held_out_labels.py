"""Scores of documents with lists of labels, by models that have not learned them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision, choose_labels
from textnb.bayes.forms import Floats
from textnb.errors import DataError, quantity
from textnb.evaluation.indicators import measures, of_mask
from textnb.evaluation.novelty import codes_of
from textnb.frames.batches import Progress, batches
from textnb.frames.failures import reading
from textnb.learning.documents import labels_of
from textnb.learning.fitted import Fitted
from textnb.scoring.texts import score_batch

# Rows that a user passes are not judged by their terms: a term is new to some labels of a list.
_METHOD = "rows given as held out (can't be verified)"
_LABEL = "\0label"


@dataclass(frozen=True, eq=False)
class HeldOutLabels:
    """Scores of labels of documents that the model which scored them had not learned.

    Attributes
    ----------
    classes : (n_labels,)
    scores : float64 (n_documents, n_labels)
        As `LinearForm.scores` gives them, not calibrated; -inf for a label that the model which
        scored the document has not learned.
    actual : bool (n_documents, n_labels)
        Which documents have which labels.
    method : str
        "5 folds" and so on, as in `HeldOut`.
    unknown : int
        Labels of documents that are none of the classes.
    folds : int64 (n_documents,) or None
        Which model scored each document, where there were several.

    Examples
    --------
    >>> import textnb
    >>> news = pl.DataFrame({"text": ["corn", "bank", "corn bank"] * 5,
    ...                      "label": [["grain"], ["money"], ["grain", "money"]] * 5})
    >>> held = textnb.cross_validate(textnb.TextClassifier(), news)
    >>> held
    HeldOutLabels(15 documents, 2 labels, micro F1 1.0000, 5 folds)
    """

    classes: NDArray[Any]
    scores: Floats
    actual: NDArray[np.bool_]
    method: str
    unknown: int = 0
    folds: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        return (f"HeldOutLabels({quantity(len(self), 'document')}, "
                f"{quantity(len(self.classes), 'label')}, "
                f"micro F1 {self.measure()['micro_f1']:.4f}, {self.method})")

    def __len__(self) -> int:
        return len(self.scores)

    def predicted(self, decision: Decision | None = None) -> NDArray[np.bool_]:
        """Which labels are predicted: bool (n_documents, n_labels)."""
        return choose_labels(self.scores, self.classes.tolist(), decision)

    def measure(self, decision: Decision | None = None) -> dict[str, float]:
        """The measures of `LabelEvaluation`, by name; labels that are not known are left out."""
        return measures(of_mask(self.actual), of_mask(self.predicted(decision)))

    def log_loss(self, calibration: Calibration | None = None) -> float:
        """The mean of -log P(label, or not | document) of all pairs with finite scores, base e."""
        odds = self.scores if calibration is None else calibration.apply(
            self.scores, np.zeros(len(self)))
        finite = np.isfinite(odds)
        signs = np.where(self.actual, -1.0, 1.0)[finite]
        return float(np.logaddexp(0.0, signs * odds[finite]).mean())

    def take(self, rows: NDArray[Any]) -> HeldOutLabels:
        """Select some of the documents, by a mask or by indices."""
        return replace(self, scores=self.scores[rows], actual=self.actual[rows],
                       folds=None if self.folds is None else self.folds[rows])


def score_labels_apart(
    fitted: Fitted, frame: Any, progress: Progress | None = None
) -> HeldOutLabels:
    """Score documents with lists of labels that a model has not learned: see `held_out`.

    Raises
    ------
    DataError
        If there are no rows, or a list is null, holds a null, or a label twice.
    """
    with reading(frame):
        rows = fitted.scan(frame)
        scores, lists = [], []
        read = rows.select(*fitted.columns, pl.col(fitted.label).alias(_LABEL))
        for batch in batches(read, fitted.columns, progress=progress):
            scores.append(score_batch(fitted, batch)[0])
            lists.append(batch[_LABEL])
    if not scores:
        raise DataError.no_rows("the test set", "there is nothing to measure")
    actual, unknown = actual_labels(pl.concat(lists), fitted.labels, fitted.label)
    return HeldOutLabels(fitted.classes, np.concatenate(scores), actual, _METHOD, unknown)


def actual_labels(
    lists: pl.Series, classes: pl.Series, column: str
) -> tuple[NDArray[np.bool_], int]:
    """Which documents have which classes, and how many labels are none of them."""
    actual = np.zeros((len(lists), len(classes)), dtype=np.bool_)
    found = labels_of(lists.rename(column))
    place = codes_of(pl.Series(found.classes.tolist()), classes)[found.codes]
    known = place >= 0
    actual[found.rows[known], place[known]] = True
    return actual, int((~known).sum())
