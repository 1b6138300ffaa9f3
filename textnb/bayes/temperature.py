"""Searches for what makes probabilities of scores: a temperature, and a shift of sigmoids.

References
----------
.. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural networks.
   ICML, section 4.2: temperature scaling.
.. [2] B. Zadrozny, C. Elkan (2002). Transforming classifier scores into accurate multiclass
   probability estimates. KDD, section 5: one against the rest, normalised.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats

# The largest 1 / T of the search, and the largest shift.
_MOST_SURE = 1e6
_LARGEST_SHIFT = 100.0
# Newton's method ends at a gradient of this length for each row, or after this number of steps.
_FLAT = 1e-9
_MOST_STEPS = 100
# The most times that a step is halved.
_MOST_HALVES = 40


def best_temperature(
    scores: Floats, codes: NDArray[np.int64], weight: Floats | None = None, *,
    halvings: int = 60,
) -> float:
    """The T that makes the labels most likely under ``softmax(scores / T)`` [1]_.

    One more label is assumed, which is any class with equal probability: without it, labels that
    are all right would give T = 0.

    Parameters
    ----------
    scores : float64 (n_rows, n_classes)
        Finite.
    codes : int64 (n_rows,)
        The class of each row.
    weight : float64 (n_rows,), optional
    halvings : int
        How often the range of T is halved; 8 are enough for one digit.

    Examples
    --------
    >>> scores = np.array([[1.0, 0.0]] * 4)
    >>> sure = best_temperature(scores, np.array([0, 0, 0, 0]))
    >>> less = best_temperature(scores, np.array([0, 0, 0, 1]))
    >>> round(sure, 3), round(less, 3)
    (0.455, 1.18)
    """
    scores = scores - scores.max(axis=1, keepdims=True)
    weight = np.ones(len(codes)) if weight is None else weight
    total = float(weight.sum())
    if not (scores < 0).any() or not total:
        return 1.0
    own = scores[np.arange(len(codes)), codes]
    share = 1.0 / (total + 1.0)
    wanted = (1.0 - share) * own + share * scores.mean(axis=1)

    def slope(inverse: float) -> float:
        powers = np.exp(inverse * scores)
        expected = (powers * scores).sum(axis=1) / powers.sum(axis=1)
        return float((weight * (expected - wanted)).sum())

    # The loss is convex in 1 / T: its slope rises.
    low, high = np.log(1.0 / _MOST_SURE), np.log(_MOST_SURE)
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(float(np.exp(middle))) < 0 else (low, middle)
    return float(np.exp(-0.5 * (low + high)))


def best_sigmoids(
    scores: Floats, codes: NDArray[np.int64], weight: Floats
) -> tuple[float, float]:
    """T and shift under which labels are most likely by normalised ``σ(score / T + shift)`` [2]_.

    One label more than there are is taken to be any class with equal chances, as in
    `best_temperature`. Newton's method, by expected second derivatives where the loss bends down.

    Parameters
    ----------
    scores : float64 (n_rows, n_classes)
        Finite: margins of each class against the rest.
    codes : int64 (n_rows,)
    weight : float64 (n_rows,)
    """
    total = float(weight.sum())
    if not total:
        return 1.0, 0.0
    share = 1.0 / (total + 1.0)
    wanted = np.full(scores.shape, share / scores.shape[1])
    wanted[np.arange(len(codes)), codes] += 1.0 - share
    bounds = np.array([np.log(_MOST_SURE), _LARGEST_SHIFT])
    start = best_temperature(scores, codes, weight, halvings=8)
    point = np.array([-np.log(start), 0.0])
    logs = _log_chances(scores, point)
    loss = _loss(logs, wanted, weight)
    for _ in range(_MOST_STEPS):
        gradient, curvature = _derivatives(scores, point, logs, wanted, weight)
        if np.abs(gradient).max() <= _FLAT * total:
            break
        step = -np.linalg.solve(curvature, gradient)
        # Far away the loss is nearly flat, and a long step would not come back.
        step /= max(1.0, float(np.abs(step).max()))
        for _ in range(_MOST_HALVES):
            ahead = np.clip(point + step, -bounds, bounds)
            logs = _log_chances(scores, ahead)
            loss_ahead = _loss(logs, wanted, weight)
            if loss_ahead < loss:
                break
            step *= 0.5
        else:
            # No point along the step is better, to rounding.
            break
        point, loss = ahead, loss_ahead
    return float(np.exp(-point[0])), float(point[1])


def _log_chances(scores: Floats, point: Floats) -> Floats:
    """log P(class | row), from the logarithm of 1 / T, and the shift."""
    inner = np.exp(point[0]) * scores
    inner += point[1]
    np.negative(inner, out=inner)
    # log σ(z) = -log(1 + exp(-z)), without overflow.
    logs: Floats = -np.logaddexp(0.0, inner)
    largest = logs.max(axis=1, keepdims=True)
    logs -= largest + np.log(np.exp(logs - largest).sum(axis=1, keepdims=True))
    return logs


def _loss(logs: Floats, wanted: Floats, weight: Floats) -> float:
    return -float(weight @ np.einsum("ij,ij->i", wanted, logs))


def _derivatives(
    scores: Floats, point: Floats, logs: Floats, wanted: Floats, weight: Floats
) -> tuple[Floats, Floats]:
    """The gradient of the loss, and second derivatives, which are positive definite."""
    along = np.exp(point[0]) * scores
    chances = np.exp(logs)
    # 1 - σ(z), the slope of log σ(z).
    rest = np.exp(-np.logaddexp(0.0, along + point[1]))
    miss = weight[:, None] * (chances - wanted) * rest
    gradient = np.array([np.einsum("ij,ij->", miss, along), miss.sum()])
    chances *= rest
    means = np.stack([np.einsum("ij,ij->i", chances, along), chances.sum(axis=1)])
    chances *= rest
    expected = np.empty((2, 2))
    first = chances * along
    expected[0, 0] = weight @ np.einsum("ij,ij->i", first, along)
    expected[0, 1] = expected[1, 0] = weight @ first.sum(axis=1)
    expected[1, 1] = weight @ chances.sum(axis=1)
    expected -= (means * weight) @ means.T
    miss *= 1.0 - rest
    bent = miss * along
    cross = float(bent.sum())
    exact = expected - np.array([[np.einsum("ij,ij->", bent, along) - gradient[0], cross],
                                 [cross, miss.sum()]])
    is_convex = exact[0, 0] > 0 and np.linalg.det(exact) > 1e-6 * exact[0, 0] * abs(exact[1, 1])
    return gradient, (exact if is_convex else expected) + 1e-9 * weight.sum() * np.eye(2)
