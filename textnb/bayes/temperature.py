"""Searches for the temperature, and the shift of sigmoids, that turn scores into probabilities.

References
----------
.. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural networks.
   ICML, section 4.2: temperature scaling.
.. [2] B. Zadrozny, C. Elkan (2002). Transforming classifier scores into accurate multiclass
   probability estimates. KDD, section 5: one against the rest, normalised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats

# The largest 1 / T of the search, and the largest shift.
_MAX_FACTOR = 1e6
_LARGEST_SHIFT = 100.0
# Newton's method ends at a gradient of this length for each row, or after this number of steps.
_FLAT = 1e-9
_MAX_STEPS = 100
# The largest number of times that a step is halved.
_MAX_HALVES = 40
# Scores that are read at a time: they stay in the processor's cache.
_BLOCK = 1 << 15


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
        The number of times that the range of T is halved; 8 are enough for one digit.

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
    target = (1.0 - share) * own + share * scores.mean(axis=1)

    def slope(inverse: float) -> float:
        powers = np.exp(inverse * scores)
        expected = (powers * scores).sum(axis=1) / powers.sum(axis=1)
        return float((weight * (expected - target)).sum())

    # The loss is convex in 1 / T: its slope rises.
    low, high = np.log(1.0 / _MAX_FACTOR), np.log(_MAX_FACTOR)
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
    bounds = np.array([np.log(_MAX_FACTOR), _LARGEST_SHIFT])
    start = best_temperature(scores, codes, weight, halvings=8)
    point = np.array([-np.log(start), 0.0])
    here = _Loss.at(point, scores, codes, weight)
    for _ in range(_MAX_STEPS):
        if np.abs(here.gradient).max() <= _FLAT * total:
            break
        step = -np.linalg.solve(here.curvature, here.gradient)
        # Far away the loss is nearly flat, and a long step would not come back.
        step /= max(1.0, float(np.abs(step).max()))
        for _ in range(_MAX_HALVES):
            ahead = np.clip(point + step, -bounds, bounds)
            there = _Loss.at(ahead, scores, codes, weight)
            if there.value < here.value:
                break
            step *= 0.5
        else:
            # No point along the step is better, to rounding.
            break
        point, here = ahead, there
    return float(np.exp(-point[0])), float(point[1])


@dataclass(frozen=True)
class _Loss:
    """Minus the log-likelihood of the labels at a point: the logarithm of 1 / T, and the shift.

    Attributes
    ----------
    value : float
    gradient : float64 (2,)
    expected : float64 (2, 2)
        Expected second derivatives, if the chances of the labels were those of the point.
    exact : float64 (2, 2)
        Second derivatives.
    weight : float
        Of all rows.
    """

    value: float
    gradient: Floats
    expected: Floats
    exact: Floats
    weight: float

    @property
    def curvature(self) -> Floats:
        """Second derivatives, if they are positive definite; else the expected ones."""
        exact = self.exact
        is_convex = exact[0, 0] > 0 and np.linalg.det(exact) > 1e-6 * exact[0, 0] * abs(exact[1, 1])
        ridge: Floats = 1e-9 * self.weight * np.eye(2)
        return ridge + (exact if is_convex else self.expected)

    @classmethod
    def at(
        cls, point: Floats, scores: Floats, codes: NDArray[np.int64], weight: Floats
    ) -> _Loss:
        share = 1.0 / (float(weight.sum()) + 1.0)
        loss = cls(0.0, np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), float(weight.sum()))
        size = max(1, _BLOCK // scores.shape[1])
        for begin in range(0, len(codes), size):
            rows = slice(begin, begin + size)
            loss = loss._with_rows(point, scores[rows], codes[rows], weight[rows], share)
        return loss

    def _with_rows(
        self, point: Floats, scores: Floats, codes: NDArray[np.int64], weight: Floats, share: float
    ) -> _Loss:
        along = np.exp(point[0]) * scores
        # log σ(z) and log(1 - σ(z)), without overflow.
        inner = along + point[1]
        logs = -np.logaddexp(0.0, -inner)
        rest = np.exp(logs - inner)
        largest = logs.max(axis=1, keepdims=True)
        logs -= largest + np.log(np.exp(logs - largest).sum(axis=1, keepdims=True))
        target = np.full(scores.shape, share / scores.shape[1])
        target[np.arange(len(codes)), codes] += 1.0 - share
        value = -float(weight @ np.einsum("ij,ij->i", target, logs))
        chances = np.exp(logs)
        miss = weight[:, None] * (chances - target) * rest
        gradient = np.array([np.einsum("ij,ij->", miss, along), miss.sum()])
        chances *= rest
        means = np.stack([np.einsum("ij,ij->i", chances, along), chances.sum(axis=1)])
        chances *= weight[:, None] * rest
        miss *= 1.0 - rest
        expected = _products(chances, along) - (means * weight) @ means.T
        exact = expected - _products(miss, along)
        exact[0, 0] += gradient[0]
        return _Loss(self.value + value, self.gradient + gradient, self.expected + expected,
                     self.exact + exact, self.weight)


def _products(weight: Floats, along: Floats) -> Floats:
    """Sums of weight times the products of (along, 1) with itself: float64 (2, 2)."""
    first = weight * along
    cross = first.sum()
    return np.array([[np.einsum("ij,ij->", first, along), cross], [cross, weight.sum()]])
