"""Probabilities of labels: a sigmoid for each label, fitted to scores of held-out rows.

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

# Precisions (1 / variance) of two normal priors: of a label's slope divided by the common slope,
# whose standard deviation is 1/2, and of its shift, whose standard deviation is about 3.
_SLOPE_PRECISION, _SHIFT_PRECISION = 4.0, 0.1
# The precision of both priors of the common sigmoid, which are nearly flat.
_COMMON_PRECISION = 1e-6
# Slopes stay above 0, so that a label keeps the order of its scores.
_MIN_SLOPE = 0.01
# Newton's method ends after this number of steps, if this number of halvings of a step finds no
# lower loss, or when a step lowers the loss by at most this share of it.
_MAX_STEPS, _MAX_HALVINGS, _TOLERANCE = 100, 40, 1e-9


def label_sigmoids(
    scores: Floats, positive: NDArray[np.bool_], weight: Floats | None = None
) -> Floats:
    """The slope and the shift of each label that have the maximum likelihood [1]_.

    One sigmoid is fitted to all pairs of a row and a label, and then one to each label, which stays
    near it if the label has few rows. Each label needs its own sigmoid, because naive Bayes
    is more overconfident for labels whose words differ more from the rest.

    Parameters
    ----------
    scores : float64 (n_rows, n_labels)
        A score that is not finite is left out: the model of a fold has not learned the label.
    positive : bool (n_rows, n_labels)
        Which rows have which labels.
    weight : float64 (n_rows,), optional
        The number of rows that each one stands for.

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
    is_finite = np.isfinite(scores)
    weight = np.ones(len(scores)) if weight is None else weight
    values, weights = scores[is_finite], np.broadcast_to(weight[:, None], scores.shape)[is_finite]
    scale = float(np.abs(values).mean()) if len(values) else 0.0
    if not scale:
        return np.tile([1.0, 0.0], (scores.shape[1], 1))
    # Scores are scaled to about 1, so that the priors mean the same for all models.
    slope, shift = _fit_sigmoid(
        values / scale, positive[is_finite], weights, center=(1.0, 0.0),
        precision=(_COMMON_PRECISION, _COMMON_PRECISION))
    if slope <= 0:
        slope, shift = _MIN_SLOPE, 0.0
    sigmoids = np.empty((scores.shape[1], 2))
    for k in range(len(sigmoids)):
        rows = is_finite[:, k]
        sigmoid = _fit_sigmoid(
            scores[rows, k] / scale, positive[rows, k], weight[rows], center=(slope, shift),
            precision=(_SLOPE_PRECISION / slope ** 2, _SHIFT_PRECISION))
        sigmoids[k] = sigmoid if sigmoid[0] > _MIN_SLOPE * slope else (_MIN_SLOPE * slope, shift)
    sigmoids[:, 0] /= scale
    return sigmoids


def _fit_sigmoid(
    scores: Floats, positive: NDArray[np.bool_], weight: Floats, center: tuple[float, float],
    precision: tuple[float, float],
) -> tuple[float, float]:
    """Slope and shift of the lowest loss, with a normal prior around the center [2]_.

    loss = Σ weight · log(1 + exp(± (slope · score + shift))) + Σ precision · (point - center)² / 2,
    where ± is - for rows that have the label, and point is (slope, shift). The center and the
    precision also have a number for the slope and one for the shift.
    """
    mean, precisions = np.array(center), np.array(precision)
    signs = np.where(positive, -1.0, 1.0)

    def loss(point: Floats) -> float:
        return float((weight * np.logaddexp(0.0, signs * (point[0] * scores + point[1]))).sum()
                     + 0.5 * precisions @ (point - mean) ** 2)

    point, lowest = mean, loss(mean)
    for _ in range(_MAX_STEPS):
        # Beyond ±500 the probability is practically 0 or 1, and exp could overflow.
        probability = 1.0 / (1.0 + np.exp(-np.clip(point[0] * scores + point[1], -500.0, 500.0)))
        residual = weight * (probability - positive)
        row_curvatures = weight * probability * (1.0 - probability)
        weighted_scores = row_curvatures * scores
        gradient = np.array([residual @ scores, residual.sum()]) + precisions * (point - mean)
        mixed = weighted_scores.sum()
        hessian = np.diag(precisions) + np.array(
            [[weighted_scores @ scores, mixed], [mixed, row_curvatures.sum()]])
        step = np.linalg.solve(hessian, gradient)
        for _ in range(_MAX_HALVINGS):
            candidate = point - step
            value = loss(candidate)
            if value < lowest:
                break
            step *= 0.5
        else:
            break
        decrease, point, lowest = lowest - value, candidate, value
        if decrease <= _TOLERANCE * (1.0 + lowest):
            break
    return float(point[0]), float(point[1])
