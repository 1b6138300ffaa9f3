"""Fits the temperature, and for sigmoids also a shift, that turn scores into probabilities.

References
----------
.. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural networks.
   ICML, section 4.2: temperature scaling.
.. [2] B. Zadrozny, C. Elkan (2002). Transforming classifier scores into accurate multiclass
   probability estimates. KDD, section 5: one-vs-rest, normalised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats

# Bounds of the search: of T and 1 / T, and of the absolute value of the shift.
_MAX_FACTOR = 1e6
_MAX_SHIFT = 100.0
# Newton's method ends when the absolute value of each entry of the gradient, divided by the total
# weight, is at most this, or after this number of steps.
_GRADIENT_TOLERANCE = 1e-9
_MAX_STEPS = 100
# The line search halves a step at most this number of times.
_MAX_HALVINGS = 40
# The number of scores that are processed at a time, few enough for the processor's cache.
_BLOCK_SIZE = 1 << 15


def best_temperature(
    scores: Floats, codes: NDArray[np.int64], weight: Floats | None = None, *,
    n_bisections: int = 60,
) -> float:
    """The T that gives ``softmax(scores / T)`` the maximum likelihood [1]_.

    Labels are smoothed towards the uniform distribution, which gets about the weight of one row.
    Otherwise T would go to 0 if all rows are classified correctly.

    Parameters
    ----------
    scores : float64 (n_rows, n_classes)
        Finite.
    codes : int64 (n_rows,)
        The class of each row.
    weight : float64 (n_rows,), optional
        The weight of each row; by default 1.
    n_bisections : int
        How often the interval of log T is halved; 8 times give about one digit of T.

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
    own_scores = scores[np.arange(len(codes)), codes]
    uniform_share = 1.0 / (total + 1.0)
    # The mean score of a row under its smoothed label.
    target = (1.0 - uniform_share) * own_scores + uniform_share * scores.mean(axis=1)

    def slope(factor: float) -> float:
        """The derivative of the loss by 1 / T, where this is ``factor``."""
        powers = np.exp(factor * scores)
        mean = (powers * scores).sum(axis=1) / powers.sum(axis=1)
        return float((weight * (mean - target)).sum())

    # The loss is convex in 1 / T, so bisection of log(1 / T) finds the zero of its derivative.
    low, high = np.log(1.0 / _MAX_FACTOR), np.log(_MAX_FACTOR)
    for _ in range(n_bisections):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(float(np.exp(middle))) < 0 else (low, middle)
    return float(np.exp(-0.5 * (low + high)))


def best_sigmoids(scores: Floats, codes: NDArray[np.int64], weight: Floats) -> tuple[float, float]:
    """T and shift that give probabilities ∝ ``σ(score / T + shift)`` the maximum likelihood [2]_.

    Labels are smoothed as in `best_temperature`. The loss is not convex: where its Hessian is not
    positive definite, Newton's method uses the Fisher information instead.

    Parameters
    ----------
    scores : float64 (n_rows, n_classes)
        Finite margins of each class against the rest.
    codes : int64 (n_rows,)
        The class of each row.
    weight : float64 (n_rows,)
        The weight of each row.
    """
    total = float(weight.sum())
    if not total:
        return 1.0, 0.0
    bounds = np.array([np.log(_MAX_FACTOR), _MAX_SHIFT])
    start = best_temperature(scores, codes, weight, n_bisections=8)
    point = np.array([-np.log(start), 0.0])
    loss = _Loss.at(point, scores, codes, weight)
    for _ in range(_MAX_STEPS):
        if np.abs(loss.gradient).max() <= _GRADIENT_TOLERANCE * total:
            break
        step = -np.linalg.solve(loss.curvature, loss.gradient)
        # No step changes log T or the shift by more than 1: where the loss is nearly flat, a full
        # step could go too far.
        step /= max(1.0, float(np.abs(step).max()))
        for _ in range(_MAX_HALVINGS):
            next_point = np.clip(point + step, -bounds, bounds)
            next_loss = _Loss.at(next_point, scores, codes, weight)
            if next_loss.value < loss.value:
                break
            step *= 0.5
        else:
            # No point along the step has a lower loss, up to rounding.
            break
        point, loss = next_point, next_loss
    return float(np.exp(-point[0])), float(point[1])


@dataclass(frozen=True)
class _Loss:
    """The negative log-likelihood of the labels at a point (log(1 / T), shift).

    Attributes
    ----------
    value : float
    gradient : float64 (2,)
    information : float64 (2, 2)
        The Fisher information: the expected Hessian if labels have the probabilities of the point.
    hessian : float64 (2, 2)
    weight : float
        The total weight of all rows.
    """

    value: float
    gradient: Floats
    information: Floats
    hessian: Floats
    weight: float

    @property
    def curvature(self) -> Floats:
        """The Hessian if it is positive definite, else the Fisher information."""
        h = self.hessian
        # A smaller determinant may be above 0 by rounding only.
        is_convex = h[0, 0] > 0 and np.linalg.det(h) > 1e-6 * h[0, 0] * abs(h[1, 1])
        ridge: Floats = 1e-9 * self.weight * np.eye(2)
        return ridge + (h if is_convex else self.information)

    @classmethod
    def at(cls, point: Floats, scores: Floats, codes: NDArray[np.int64], weight: Floats) -> _Loss:
        uniform_share = 1.0 / (float(weight.sum()) + 1.0)
        loss = cls(0.0, np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), float(weight.sum()))
        size = max(1, _BLOCK_SIZE // scores.shape[1])
        for begin in range(0, len(codes), size):
            rows = slice(begin, begin + size)
            loss = loss._with_rows(point, scores[rows], codes[rows], weight[rows], uniform_share)
        return loss

    def _with_rows(
        self, point: Floats, scores: Floats, codes: NDArray[np.int64], weight: Floats,
        uniform_share: float,
    ) -> _Loss:
        """This loss plus the loss of more rows; ``uniform_share`` of each label is spread over all
        classes."""
        scaled = np.exp(point[0]) * scores
        # log σ(z) and 1 - σ(z), without overflow.
        z = scaled + point[1]
        logs = -np.logaddexp(0.0, -z)
        complement = np.exp(logs - z)
        # From here on, the logarithms of the probabilities.
        largest = logs.max(axis=1, keepdims=True)
        logs -= largest + np.log(np.exp(logs - largest).sum(axis=1, keepdims=True))
        target = np.full(scores.shape, uniform_share / scores.shape[1])
        target[np.arange(len(codes)), codes] += 1.0 - uniform_share
        value = -float(weight @ np.einsum("ij,ij->i", target, logs))
        # At first the probabilities, which are then multiplied in place.
        factor = np.exp(logs)
        # The loss's derivative by z, whose derivatives by the point are (scaled, 1).
        residual = weight[:, None] * (factor - target) * complement
        gradient = np.array([np.einsum("ij,ij->", residual, scaled), residual.sum()])
        factor *= complement
        means = np.stack([np.einsum("ij,ij->i", factor, scaled), factor.sum(axis=1)])
        factor *= weight[:, None] * complement
        residual *= 1.0 - complement
        # The covariance of complement · (scaled, 1), under the probabilities of the point.
        information = _outer_sums(factor, scaled) - (means * weight) @ means.T
        hessian = information - _outer_sums(residual, scaled)
        # The second derivative of z by log(1 / T) is ``scaled``, too.
        hessian[0, 0] += gradient[0]
        return _Loss(self.value + value, self.gradient + gradient, self.information + information,
                     self.hessian + hessian, self.weight)


def _outer_sums(weight: Floats, scaled: Floats) -> Floats:
    """The weighted sum of the outer products of (scaled, 1) with itself: float64 (2, 2)."""
    weighted = weight * scaled
    mixed = weighted.sum()
    return np.array([[np.einsum("ij,ij->", weighted, scaled), mixed], [mixed, weight.sum()]])
