"""Probabilities of labels: a sigmoid for each label, on scores of rows that were held out.

References
----------
.. [1] J. C. Platt (1999). Probabilistic outputs for support vector machines and comparisons to
   regularized likelihood methods. Advances in Large Margin Classifiers, 61-74.
.. [2] H.-T. Lin, C.-J. Lin, R. C. Weng (2007). A note on Platt's probabilistic outputs for support
   vector machines. Machine Learning 68, 267-276: Newton's method with halved steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats

# A label's slope differs from that of all labels by about half of it, and its shift by about 3.
_SLOPE_PRECISION, _SHIFT_PRECISION = 4.0, 0.1
# The precision of the sigmoid of all labels, whose slope is about 1.
_LITTLE = 1e-6
# Slopes stay above 0, so that a label keeps the order of its scores.
_MIN_SLOPE = 0.01
_MAX_STEPS, _MAX_HALVES, _ENOUGH = 100, 40, 1e-9


def label_sigmoids(
    scores: Floats, positive: NDArray[np.bool_], weight: Floats | None = None
) -> Floats:
    """Slope and shift of each label under which its rows are most likely [1]_.

    One sigmoid is fitted to all pairs of a row and a label, and then one to each label, which stays
    near the first if the label has few rows. Each label needs its own numbers: naive Bayes is the
    more certain of a label, the more its words differ from the rest.

    Parameters
    ----------
    scores : float64 (n_rows, n_labels)
        A score that is not finite is left out: a fold's model has not learned the label.
    positive : bool (n_rows, n_labels)
        Which rows have which labels.
    weight : float64 (n_rows,), optional
        For how many rows each counts.

    Returns
    -------
    float64 (n_labels, 2)
        P(label | row) = σ(slope · score + shift); slopes are above 0.

    Examples
    --------
    >>> scores = np.array([[4.0], [4.0], [-4.0], [-4.0]] * 50)
    >>> positive = np.array([[True], [False], [False], [False]] * 50)
    >>> slope, shift = label_sigmoids(scores, positive)[0]
    >>> bool(abs(slope * 4.0 + shift) < 0.05)  # half of those with the score 4 have the label
    True
    """
    finite = np.isfinite(scores)
    weight = np.ones(len(scores)) if weight is None else weight
    every, of_every = scores[finite], np.broadcast_to(weight[:, None], scores.shape)[finite]
    scale = float(np.abs(every).mean()) if len(every) else 0.0
    if not scale:
        return np.tile([1.0, 0.0], (scores.shape[1], 1))
    # Scores of about 1, so that one precision means the same for all models.
    slope, shift = _fit(every / scale, positive[finite], of_every, (1.0, 0.0), (_LITTLE, _LITTLE))
    if slope <= 0:
        slope, shift = _MIN_SLOPE, 0.0
    sigmoids = np.empty((scores.shape[1], 2))
    for k in range(len(sigmoids)):
        rows = finite[:, k]
        own = _fit(scores[rows, k] / scale, positive[rows, k], weight[rows], (slope, shift),
                   (_SLOPE_PRECISION / slope ** 2, _SHIFT_PRECISION))
        sigmoids[k] = own if own[0] > _MIN_SLOPE * slope else (_MIN_SLOPE * slope, shift)
    sigmoids[:, 0] /= scale
    return sigmoids


def _fit(
    scores: Floats, positive: NDArray[np.bool_], weight: Floats, center: tuple[float, float],
    precision: tuple[float, float],
) -> tuple[float, float]:
    """Slope and shift of the lowest loss, with a normal prior around the center [2]_."""
    start, ridge = np.array(center), np.array(precision)
    signs = np.where(positive, -1.0, 1.0)

    def loss(point: Floats) -> float:
        return float((weight * np.logaddexp(0.0, signs * (point[0] * scores + point[1]))).sum()
                     + 0.5 * ridge @ (point - start) ** 2)

    point, here = start, loss(start)
    for _ in range(_MAX_STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(point[0] * scores + point[1], -500.0, 500.0)))
        miss, curve = weight * (chance - positive), weight * chance * (1.0 - chance)
        along = curve * scores
        gradient = np.array([miss @ scores, miss.sum()]) + ridge * (point - start)
        curvature = np.diag(ridge) + np.array(
            [[along @ scores, along.sum()], [along.sum(), curve.sum()]])
        step = np.linalg.solve(curvature, gradient)
        for _ in range(_MAX_HALVES):
            ahead = point - step
            there = loss(ahead)
            if there < here:
                break
            step *= 0.5
        else:
            break
        less, point, here = here - there, ahead, there
        if less <= _ENOUGH * (1.0 + here):
            break
    return float(point[0]), float(point[1])
