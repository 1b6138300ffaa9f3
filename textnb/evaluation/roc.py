"""Error rates of one class against the rest: for its predictions, and for all thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.classes import known_class
from textnb.bayes.forms import Floats
from textnb.errors import DataError, ParameterError

# The number of points of a curve that a chart draws. Areas are computed from all points.
POINTS = 400


@dataclass(frozen=True)
class Rates:
    """Counts and rates of one class, called positive; a rate without rows is None.

    Examples
    --------
    >>> rates = Rates(true_positives=7, false_positives=7, false_negatives=3, true_negatives=13)
    >>> rates.precision, rates.accuracy, rates.sensitivity, rates.specificity
    (0.5, 0.6666666666666666, 0.7, 0.65)
    >>> rates.negative_predictive_value, rates.false_negative_rate, rates.false_positive_rate
    (0.8125, 0.3, 0.35)
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def precision(self) -> float | None:
        """Share of the predicted positives that are positive."""
        return _share(self.true_positives, self.false_positives)

    @property
    def negative_predictive_value(self) -> float | None:
        """Share of the predicted negatives that are negative."""
        return _share(self.true_negatives, self.false_negatives)

    @property
    def sensitivity(self) -> float | None:
        """Share of the positives that are predicted positive: recall, true-positive rate."""
        return _share(self.true_positives, self.false_negatives)

    @property
    def specificity(self) -> float | None:
        """Share of the negatives that are predicted negative: true-negative rate."""
        return _share(self.true_negatives, self.false_positives)

    @property
    def false_positive_rate(self) -> float | None:
        """1 - specificity."""
        return _share(self.false_positives, self.true_negatives)

    @property
    def false_negative_rate(self) -> float | None:
        """1 - sensitivity."""
        return _share(self.false_negatives, self.true_positives)

    @property
    def accuracy(self) -> float | None:
        """Share of all rows that are right."""
        return _share(self.true_positives + self.true_negatives,
                      self.false_positives + self.false_negatives)

    def to_dict(self) -> dict[str, int | float | None]:
        """JSON-ready values."""
        names = ("true_positives", "false_positives", "false_negatives", "true_negatives",
                 "precision", "negative_predictive_value", "sensitivity", "specificity",
                 "false_positive_rate", "false_negative_rate", "accuracy")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class Roc:
    """The receiver operating characteristic of a score.

    Attributes
    ----------
    points : DataFrame
        ``threshold``, ``false_positive_rate``, ``true_positive_rate``: one row per distinct score,
        after a first threshold of inf, which no score reaches.
    auc : float
        Area under the points: the probability that a positive scores above a negative, where a tie
        counts one half.
    """

    points: pl.DataFrame
    auc: float

    def __repr__(self) -> str:
        return f"Roc(area {self.auc:.4f}, {self.points.height:,} points)"

    @property
    def area_above(self) -> float:
        """1-ROCA%, the area above the curve in per cent: (1 - AUC) · 100."""
        return (1.0 - self.auc) * 100.0

    def plot(self) -> Any:
        """Draw the curve as the report does, and the diagonal of chance: an Altair chart.

        Raises
        ------
        ParameterError
            Without Altair: ``pip install 'textnb[report]'``.
        """
        from textnb.runtime.charts import curve_chart

        x, y = "false_positive_rate", "true_positive_rate"
        curve = thin_points(self.points[x].to_numpy(), self.points[y].to_numpy())
        return curve_chart({"ROC": curve}, [], x.replace("_", " "), y.replace("_", " "),
                           is_roc=True)


def roc(positive: ArrayLike, score: ArrayLike) -> Roc:
    """Compute the points of the ROC, and the area under it.

    Parameters
    ----------
    positive : bool array (n_rows,)
    score : float array (n_rows,)
        Higher for rows that are more likely positive. Infinite scores are allowed.

    Raises
    ------
    DataError
        If all rows are positive, or none is: there is nothing to tell apart; or if a score is NaN.
    ParameterError
        If the arrays are not of one dimension and one length.

    Examples
    --------
    >>> result = roc([True, True, False, True, False], [0.9, 0.8, 0.7, 0.6, 0.5])
    >>> round(result.auc, 3), result.points["true_positive_rate"].round(2).to_list()
    (0.833, [0.0, 0.33, 0.67, 0.67, 1.0, 1.0])
    """
    is_positive = np.asarray(positive, dtype=np.bool_)
    scores = np.asarray(score, dtype=np.float64)
    if is_positive.ndim != 1 or is_positive.shape != scores.shape:
        raise ParameterError("positive and score must be one value for each row; got shapes "
                             f"{is_positive.shape} and {scores.shape}")
    if np.isnan(scores).any():
        raise DataError(f"score is NaN in row {int(np.isnan(scores).argmax())} (counted from 0)")
    if is_positive.all() or not is_positive.any():
        raise DataError("ROC needs positive and negative rows; all are "
                        f"{'positive' if is_positive.any() else 'negative'}")
    thresholds, wrong, hits = errors_by_threshold(is_positive, scores)
    true_rate, false_rate = np.append(0.0, hits / hits[-1]), np.append(0.0, wrong / wrong[-1])
    points = pl.DataFrame({"threshold": np.append(np.inf, thresholds),
                           "false_positive_rate": false_rate, "true_positive_rate": true_rate})
    return Roc(points, float(np.trapezoid(true_rate, false_rate)))


def errors_by_threshold(
    positive: NDArray[np.bool_], score: Floats
) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """The distinct scores, descending, and how many negative and positive rows reach each of them.

    Examples
    --------
    >>> scores, negatives, positives = errors_by_threshold(
    ...     np.array([True, False, True]), np.array([2.0, 1.0, 1.0]))
    >>> scores.tolist(), negatives.tolist(), positives.tolist()
    ([2.0, 1.0], [0, 1], [1, 2])
    """
    # Ranks keep order and ties, and work for infinite scores.
    distinct, ranks = np.unique(score, return_inverse=True)
    negatives, positives = (np.bincount(ranks[rows], minlength=len(distinct))[::-1].cumsum()
                            for rows in (~positive, positive))
    # + 0.0 turns -0.0 into 0.0.
    return distinct[::-1] + 0.0, negatives, positives


def check_two_classes(classes: Sequence[Any]) -> None:
    """Raise ParameterError unless there are two classes or more."""
    if len(classes) < 2:
        raise ParameterError("the model has one class: there is nothing to decide")


def check_positive(classes: Sequence[Any], positive: Any) -> Any:
    """The class that ``positive`` names; ParameterError if it is none of two classes or more."""
    check_two_classes(classes)
    return known_class(classes, positive)


def _share(part: int, rest: int) -> float | None:
    return part / (part + rest) if part + rest else None


def thin_points(x: Floats, y: Floats, points: int = POINTS) -> pl.DataFrame:
    """Select points of a curve at about equal distances along it, with both ends.

    Examples
    --------
    >>> thin_points(np.linspace(0, 1, 1001), np.linspace(0, 1, 1001), 3).rows()
    [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)]
    """
    distances = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    inner = np.searchsorted(distances, np.linspace(0.0, distances[-1], points), side="left")
    indices = np.unique(np.concatenate([[0], inner, [len(x) - 1]]).clip(max=len(x) - 1))
    return pl.DataFrame({"x": x[indices], "y": y[indices]})
