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

# If the best F1 of a label on held-out rows is lower, its threshold is so high that none of these
# rows gets the label: a lower threshold would be noise [1].
_MIN_F1 = 0.1
# The number of folds of `steady_threshold`.
_FOLDS = 5
# A limit for safety: the best micro-F1 seldom takes five steps.
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
        The weight of each row.

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
    ranked_scores, n_right, n_predicted, is_end = _rank(scores, positive, counts)
    # F1 = 2 · right / (predicted + actual). The denominator is not 0, so that F1 is 0 without rows.
    n_actual = counts[positive].sum()
    f1 = 2.0 * n_right / np.maximum(n_predicted + n_actual, np.finfo(np.float64).tiny)
    f1[~is_end] = 0.0
    last = int(f1.argmax())
    return _threshold_after(ranked_scores, -1 if f1[last] < _MIN_F1 else last)


def steady_threshold(
    scores: Floats, positive: NDArray[np.bool_], weight: Floats | None = None
) -> float:
    """The mean of five best thresholds, each of them chosen without another fifth of the rows.

    The best threshold of a rare label depends on a few rows. The mean depends less on each of these
    rows, and is better on new rows [3]_.

    Parameters
    ----------
    scores, positive, weight
        As in `best_threshold`.

    Examples
    --------
    >>> steady_threshold(np.array([3.0, 1.0, -1.0, -2.0]), np.array([True, False, True, False]))
    -0.9
    """
    folds = np.arange(len(scores)) % _FOLDS
    return float(np.mean([
        best_threshold(scores[rows], positive[rows], None if weight is None else weight[rows])
        # Without the only row there is nothing to choose from.
        for rows in (folds != fold for fold in range(_FOLDS)) if rows.any()]))


def cheapest_threshold(
    scores: Floats, positive: NDArray[np.bool_], false_positive: float, missed: float
) -> float:
    """The threshold with the lowest cost; the highest one of several.

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
    return _cheapest(_rank(scores, positive), false_positive, missed)


def micro_f1_thresholds(scores: Floats, positive: NDArray[np.bool_]) -> Floats:
    """The thresholds of all labels that have the best micro-F1 together: float64 (n_labels,).

    Micro-F1 is at least F if 2 · right - F · (predicted + actual) is at least 0. This is a sum over
    the labels, with predicted = right + wrong and right = actual - missed. So, for F, the best
    threshold of each label is the cheapest one if a wrong label costs F, and a missed one 2 - F. F
    begins at 0, and is then the micro-F1 of the step before, until it no longer rises [2]_.

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
    rankings = [_rank(scores[:, k], positive[:, k]) for k in range(scores.shape[1])]
    actual, best = int(positive.sum()), 0.0
    for _ in range(_MAX_STEPS):
        thresholds = np.array([_cheapest(ranking, best, 2.0 - best) for ranking in rankings])
        predicted = scores > thresholds
        f1 = 2.0 * int((predicted & positive).sum()) / max(1, int(predicted.sum()) + actual)
        if f1 <= best:
            break
        best = f1
    return thresholds


def f1_thresholds(by: str, scores: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Thresholds of all labels by F1: float64 (n_labels,).

    Parameters
    ----------
    by : {"f1", "micro-f1"}
        `steady_threshold` of each label, or `micro_f1_thresholds` of all together.
    scores : float64 (n_rows, n_labels)
    positive : bool (n_rows, n_labels)
    """
    if by == "micro-f1":
        return micro_f1_thresholds(scores, positive)
    return np.array([steady_threshold(scores_of_label, has_label)
                     for scores_of_label, has_label in zip(scores.T, positive.T, strict=True)])


# What `_rank` returns: ranked_scores, n_right, n_predicted, is_end.
Ranking = tuple[Floats, NDArray[Any], NDArray[Any], NDArray[np.bool_]]


def _rank(
    scores: Floats, positive: NDArray[np.bool_], counts: NDArray[Any] | None = None
) -> Ranking:
    """Scores from high to low, and for a threshold just below each: how many rows get the label
    rightly, how many rows get it, and whether there is such a threshold.

    Rows with the same score get the label together, and rows with -inf never get it. ``counts``
    says how many rows each row counts as, by default one.
    """
    counts = np.ones(len(scores), dtype=np.int64) if counts is None else counts
    order = np.argsort(-scores, kind="stable")
    ranked_scores = scores[order]
    is_end = np.append(ranked_scores[:-1] != ranked_scores[1:], True) & (ranked_scores > -np.inf)
    n_right = np.cumsum(np.where(positive, counts, 0)[order])
    return ranked_scores, n_right, np.cumsum(counts[order]), is_end


def _cheapest(ranking: Ranking, false_positive: float, missed: float) -> float:
    """`cheapest_threshold` of scores that are ranked."""
    ranked_scores, n_right, n_predicted, is_end = ranking
    n_wrong = n_predicted - n_right
    # The difference to the cost of no prediction at all.
    cost = np.where(is_end, false_positive * n_wrong - missed * n_right, np.inf)
    last = int(cost.argmin())
    return _threshold_after(ranked_scores, last if cost[last] < 0 else -1)


def _threshold_after(ranked_scores: Floats, last: int) -> float:
    """A threshold that only the ranked scores up to index ``last`` pass; none pass for -1."""
    if last < 0:
        # If no model has learned the label, all scores are -inf.
        return float(ranked_scores[0]) if ranked_scores[0] > -np.inf else np.inf
    score = float(ranked_scores[last])
    next_score = float(ranked_scores[last + 1]) if last + 1 < len(ranked_scores) else -np.inf
    if next_score == -np.inf:
        return score - 1.0 if score < np.inf else 0.0
    return next_score + 1.0 if score == np.inf else (score + next_score) / 2.0
