"""Searches for thresholds of labels, on scores of rows that were held out.

References
----------
.. [1] D. D. Lewis, Y. Yang, T. G. Rose, F. Li (2004). RCV1: a new benchmark collection for text
   categorization research. JMLR 5, section 3.4: SCutFBR.1.
.. [2] W. Dinkelbach (1967). On nonlinear fractional programming. Management Science 13, 492-498.
.. [3] L. Breiman (1996). Bagging predictors. Machine Learning 24, 123-140.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats

# A label whose best F1 on held-out rows is lower gets a threshold that none of these rows passes: a
# low threshold would be noise [1].
_MIN_F1 = 0.1
_PARTS = 5
# F1 rises with every step, and seldom takes five steps.
_MAX_STEPS = 50


def best_threshold(
    scores: Floats, positive: NDArray[np.bool_], weight: Floats | None = None
) -> float:
    """The threshold above which a label is predicted, for the best F1 of held-out scores.

    Parameters
    ----------
    scores : float64 (n_rows,)
    positive : bool (n_rows,)
        Which rows have the label.
    weight : float64 (n_rows,), optional
        For how many rows each counts.

    Examples
    --------
    >>> best_threshold(np.array([3.0, 1.0, -1.0, -2.0]), np.array([True, False, True, False]))
    -1.5
    >>> best_threshold(np.array([1.0, -1.0]), np.array([False, False]))
    1.0
    >>> best_threshold(np.full(2, -np.inf), np.array([True, False]))
    inf
    """
    counts = np.ones(len(scores), dtype=np.int64) if weight is None else weight
    ranked, right, predicted, ends = _prefixes(scores, positive, counts)
    # F1 is 0 if no row is predicted, or no row is right.
    f1 = 2.0 * right / np.maximum(predicted + counts[positive].sum(), np.finfo(np.float64).tiny)
    f1[~ends] = 0.0
    last = int(f1.argmax())
    return _below(ranked, -1 if f1[last] < _MIN_F1 else last)


def steady_threshold(
    scores: Floats, positive: NDArray[np.bool_], weight: Floats | None = None
) -> float:
    """The mean of the best thresholds of five parts of the rows, each of which lacks a fifth.

    The best threshold of a rare label depends on a few rows. The mean depends less on each of them,
    and is better on other rows [3]_.

    Parameters
    ----------
    scores, positive, weight
        As in `best_threshold`.

    Examples
    --------
    >>> steady_threshold(np.array([3.0, 1.0, -1.0, -2.0]), np.array([True, False, True, False]))
    -0.9
    """
    part = np.arange(len(scores)) % _PARTS
    return float(np.mean([
        best_threshold(scores[rest], positive[rest], None if weight is None else weight[rest])
        for rest in (part != left_out for left_out in range(_PARTS))]))


def cheapest_threshold(
    scores: Floats, positive: NDArray[np.bool_], false_positive: float, missed: float
) -> float:
    """The threshold of the lowest cost, and of several the highest.

    Parameters
    ----------
    scores : float64 (n_rows,)
    positive : bool (n_rows,)
    false_positive, missed : float
        The costs of a label that is predicted wrongly, and of one that is missed.

    Examples
    --------
    >>> scores, positive = np.array([3.0, 1.0, -1.0, -2.0]), np.array([True, False, True, False])
    >>> cheapest_threshold(scores, positive, false_positive=1.0, missed=2.0)
    -1.5
    >>> cheapest_threshold(scores, positive, false_positive=2.0, missed=1.0)
    2.0
    """
    return _cheapest(*_prefixes(scores, positive), false_positive, missed)


def micro_f1_thresholds(scores: Floats, positive: NDArray[np.bool_]) -> Floats:
    """The thresholds of all labels that have the best micro-F1 together: float64 (n_labels,).

    With any thresholds micro-F1 is at least F exactly where 2 · right - F · (predicted + actual)
    is at least 0, and this is a sum over the labels: so each label's best threshold is the cheapest
    one, and F rises to its maximum [2]_.

    Parameters
    ----------
    scores : float64 (n_rows, n_labels)
    positive : bool (n_rows, n_labels)

    Examples
    --------
    >>> scores = np.array([[3.0, 0.0], [1.0, -1.0], [-1.0, -2.0]])
    >>> positive = np.array([[True, False], [True, False], [False, True]])
    >>> micro_f1_thresholds(scores, positive).tolist()
    [0.0, 0.0]
    """
    prefixes = [_prefixes(scores[:, k], positive[:, k]) for k in range(scores.shape[1])]
    actual, best = int(positive.sum()), 0.0
    for _ in range(_MAX_STEPS):
        thresholds = np.array([_cheapest(*of_label, best, 2.0 - best) for of_label in prefixes])
        predicted = scores > thresholds
        f1 = 2.0 * int((predicted & positive).sum()) / max(1, int(predicted.sum()) + actual)
        if f1 <= best:
            break
        best = f1
    return thresholds


def f1_thresholds(by: str, scores: Floats, positive: NDArray[np.bool_]) -> Floats:
    """The thresholds of all labels by the best F1 of each, or of all pairs: float64 (n_labels,).

    Parameters
    ----------
    by : {"f1", "micro-f1"}
    scores : float64 (n_rows, n_labels)
    positive : bool (n_rows, n_labels)
    """
    if by == "micro-f1":
        return micro_f1_thresholds(scores, positive)
    return np.array([steady_threshold(*own) for own in zip(scores.T, positive.T, strict=True)])


Prefixes = tuple[Floats, NDArray[Any], NDArray[Any], NDArray[np.bool_]]


def _prefixes(
    scores: Floats, positive: NDArray[np.bool_], counts: NDArray[Any] | None = None
) -> Prefixes:
    """Scores from high to low, and for each prefix of them how many rows have the label, how many
    rows there are, and whether a threshold can cut after it.

    Rows of one score get the label together, and rows of -inf never.
    """
    counts = np.ones(len(scores), dtype=np.int64) if counts is None else counts
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    ends = np.append(ranked[:-1] != ranked[1:], True) & (ranked > -np.inf)
    return ranked, np.cumsum(np.where(positive, counts, 0)[order]), np.cumsum(counts[order]), ends


def _cheapest(
    ranked: Floats, right: NDArray[Any], predicted: NDArray[Any], ends: NDArray[np.bool_],
    false_positive: float, missed: float,
) -> float:
    wrong = predicted - right
    # Against the cost of no prediction at all.
    cost = np.where(ends, false_positive * wrong - missed * right, np.inf)
    last = int(cost.argmin())
    return _below(ranked, last if cost[last] < 0 else -1)


def _below(ranked: Floats, last: int) -> float:
    """A threshold that the ranked scores up to ``last`` pass, and no others; none pass for -1."""
    if last < 0:
        # If no model has learned the label, all scores are -inf.
        return float(ranked[0]) if ranked[0] > -np.inf else np.inf
    if last + 1 == len(ranked) or ranked[last + 1] == -np.inf:
        return float(ranked[last]) - 1.0 if ranked[last] < np.inf else 0.0
    if ranked[last] == np.inf:
        return float(ranked[last + 1]) + 1.0
    return float(ranked[last] + ranked[last + 1]) / 2.0
