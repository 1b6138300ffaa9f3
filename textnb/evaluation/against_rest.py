"""One class against the rest, over all thresholds on its log-odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.decision import log_odds
from textnb.bayes.forms import Floats
from textnb.errors import DataError, ParameterError
from textnb.evaluation.binomial import check_share, upper_bound
from textnb.evaluation.held_out import UNKNOWN, HeldOut
from textnb.evaluation.roc import roc


@dataclass(frozen=True, eq=False)
class AgainstRest:
    """One class against the rest of them.

    Attributes
    ----------
    labels : list
        The classes.
    k : int
        Index of the positive class.
    odds : float64 (n_documents, n_classes)
        Log-odds, base e; -inf in rows that are impossible under every class.
    positive : bool (n_documents,)
        Documents labelled with the positive class.
    unknown : int
        How many documents have a label that is none of the classes.
    impossible : bool (n_documents,)
    """

    labels: list[Any]
    k: int
    odds: Floats
    positive: NDArray[np.bool_]
    unknown: int
    impossible: NDArray[np.bool_]

    @property
    def scores(self) -> Floats:
        """The scores that are compared with the threshold of the positive class: (n_documents,).

        They are its log-odds; with more than two classes, -inf where another class is more
        probable.

        >>> sides = AgainstRest(["a", "b", "c"], 0, np.array([[0.1, -2, -3], [-1, 0, -3.]]),
        ...                     np.array([True, False]), 0, np.zeros(2, dtype=bool))
        >>> sides.scores.tolist(), sides.highest_other.tolist()
        ([0.1, -inf], [-2.0, 0.0])
        """
        own = self.odds[:, self.k]
        if len(self.labels) == 2:
            return own
        return np.where(self.odds.argmax(axis=1) == self.k, own, -np.inf)

    @property
    def highest_other(self) -> Floats:
        """The highest log-odds of another class: (n_documents,)."""
        highest: Floats = np.delete(self.odds, self.k, axis=1).max(axis=1)
        return highest

    def check_both(self) -> None:
        """Raises DataError where all documents are positive, or none is."""
        if self.positive.all() or not self.positive.any():
            raise DataError(f"documents of {self.labels[self.k]!r} and others are needed; all are "
                            f"{'of it' if self.positive.any() else 'others'}")


def check_two_classes(classes: Sequence[Any]) -> None:
    """Raises ParameterError unless there are two classes or more."""
    if len(classes) < 2:
        raise ParameterError("the model has one class: there is nothing to decide")


def check_positive(classes: Sequence[Any], positive: Any) -> None:
    """Raises ParameterError unless ``positive`` is one of two classes or more."""
    check_two_classes(classes)
    if positive not in classes:
        raise ParameterError.unknown_choice("positive", positive, classes)


def set_against_rest(held: HeldOut, positive: Any) -> AgainstRest:
    """Compute the log-odds of all classes, and which documents belong to the positive one."""
    labels = held.classes.tolist()
    check_positive(labels, positive)
    if not len(held):
        raise DataError.no_rows("the held-out set", "there is nothing to measure")
    odds = log_odds(held.scores)
    impossible = np.asarray(np.isnan(odds).any(axis=1))
    odds[np.isnan(odds)] = -np.inf
    k = labels.index(positive)
    return AgainstRest(labels, k, odds, held.actual == k, int((held.actual == UNKNOWN).sum()),
                       impossible)


def operating_points(held: HeldOut, positive: Any, *, confidence: float = 0.95) -> pl.DataFrame:
    """The errors and rates of every threshold on the log-odds of one class.

    Parameters
    ----------
    held : HeldOut
        ``held.calibrated(model.calibration_)`` for the thresholds of a calibrated model.
    positive : label
    confidence : float

    Returns
    -------
    DataFrame
        One row per log-odds that occur, the highest first: ``threshold`` (a document is called
        positive where its log-odds, base e, are at least this), ``false_positives``,
        ``true_positives``, ``false_positive_rate``, ``true_positive_rate`` and
        ``false_positive_rate_bound``, the upper bound of Clopper and Pearson. The bound holds for
        a threshold that was fixed beforehand; `choose_threshold` chooses one with a guarantee.

    Raises
    ------
    ParameterError
        If ``positive`` is no class of several.
    DataError
        If all documents are positive, or none is.

    Examples
    --------
    >>> import textnb
    >>> train = pl.DataFrame({"text": ["aa", "bb"], "label": ["x", "y"]})
    >>> held = textnb.held_out(textnb.TextClassifier().fit(train), train)
    >>> points = operating_points(held, "x")
    >>> points["threshold"].round(3).to_list(), points["false_positives"].to_list()
    ([0.693, -0.693], [0, 1])
    """
    check_share("confidence", confidence)
    sides = set_against_rest(held, positive)
    sides.check_both()
    odds = sides.odds[:, sides.k]
    thresholds, places = np.unique(-odds, return_inverse=True)
    counts = [np.bincount(places[rows], minlength=len(thresholds)).cumsum()
              for rows in (~sides.positive, sides.positive)]
    negatives, positives = int((~sides.positive).sum()), int(sides.positive.sum())
    return pl.DataFrame({
        "threshold": -thresholds, "false_positives": counts[0], "true_positives": counts[1],
        "false_positive_rate": counts[0] / negatives, "true_positive_rate": counts[1] / positives,
        "false_positive_rate_bound": [upper_bound(int(n), negatives, confidence)
                                      for n in counts[0]]})


def roca(held: HeldOut, positive: Any) -> float:
    """1-ROCA%, the area above the ROC curve in percent: (1 - AUC) · 100, lower is better.

    The measure of the TREC spam track: G. V. Cormack, T. R. Lynam (2005), TREC 2005 spam track
    overview.

    Parameters
    ----------
    held : HeldOut
    positive : label

    Raises
    ------
    ParameterError, DataError
        As `operating_points`.

    Examples
    --------
    >>> import textnb
    >>> train = pl.DataFrame({"text": ["aa", "bb"], "label": ["x", "y"]})
    >>> roca(textnb.held_out(textnb.TextClassifier().fit(train), train), "x")
    0.0
    """
    sides = set_against_rest(held, positive)
    sides.check_both()
    return (1.0 - roc(sides.positive, sides.odds[:, sides.k]).auc) * 100.0
