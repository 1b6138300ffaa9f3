"""Gaussian classes by their definitions, row by row and class by class.

Hastie, Tibshirani, Friedman (2009), The Elements of Statistical Learning, eqs. 4.7-4.14; densities
are those of scipy.stats.multivariate_normal. Where digits matter, sums and the solution of linear
equations are in long double.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

Array = NDArray[Any]


def of_class(X, y, label):
    return np.array([row for row, own in zip(X, y, strict=True) if own == label], dtype=np.float64)


def labels(y):
    return sorted(set(y.tolist()))


def shares(y):
    return [sum(own == label for own in y.tolist()) / len(y) for label in labels(y)]


def mean(rows, weights=None):
    """Σ w x / Σ w."""
    w = [1.0] * len(rows) if weights is None else list(weights)
    wide = rows.astype(np.longdouble)
    total = sum(np.longdouble(each) for each in w)
    return np.asarray(sum(each * row for each, row in zip(w, wide, strict=True)) / total)


def scatter(rows, weights=None):
    """Σ w (x - mean)(x - mean)ᵀ."""
    w = [1.0] * len(rows) if weights is None else list(weights)
    center = mean(rows, weights)
    result = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.longdouble)
    for each, row in zip(w, rows.astype(np.longdouble), strict=True):
        result += each * np.outer(row - center, row - center)
    return result


def covariance(rows, divisor=None):
    own = scatter(rows) / (len(rows) if divisor is None else divisor)
    return own.astype(np.float64)


def pooled(X, y, divisor=None):
    """Σ_k of the classes' scatter, over n (or a divisor that is given)."""
    within = sum(scatter(of_class(X, y, label)) for label in labels(y))
    return np.asarray(within / (len(X) if divisor is None else divisor), dtype=np.float64)


def shrunk(matrix, s):
    """(1 - s) Σ + s tr(Σ)/p I."""
    p = len(matrix)
    return np.asarray((1 - s) * matrix + s * np.trace(matrix) / p * np.eye(p))


def ledoit_wolf(rows):
    """Ledoit and Wolf (2004), eqs. 11-14, on standardised rows, brought back to their scale."""
    n, p = rows.shape
    center = mean(rows).astype(np.float64)
    deviation = np.sqrt(np.diag(covariance(rows)))
    deviation[deviation == 0] = 1.0
    z = (rows - center) / deviation
    sample = z.T @ z / n
    m = np.trace(sample) / p
    distance = ((sample - m * np.eye(p)) ** 2).sum() / p
    error = sum(((np.outer(row, row) - sample) ** 2).sum() / p for row in z) / n**2
    share = min(error, distance) / distance
    return shrunk(sample, share) * np.outer(deviation, deviation)


def solved(matrix, right):
    """matrix⁻¹ right, by Gaussian elimination with pivoting in long double."""
    left = matrix.astype(np.longdouble).copy()
    answer = right.astype(np.longdouble).copy()
    n = len(left)
    for i in range(n):
        pivot = i + int(np.abs(left[i:, i]).argmax())
        left[[i, pivot]], answer[[i, pivot]] = left[[pivot, i]], answer[[pivot, i]]
        for j in range(i + 1, n):
            factor = left[j, i] / left[i, i]
            left[j] -= factor * left[i]
            answer[j] -= factor * answer[i]
    for i in reversed(range(n)):
        answer[i] = (answer[i] - left[i, i + 1:] @ answer[i + 1:]) / left[i, i]
    return answer


def joint(X, means, covariances, priors, singular=False):
    """log π_k + log N(x; μ_k, Σ_k)."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.asarray(priors, dtype=np.float64))
    return np.stack([
        log + np.atleast_1d(multivariate_normal.logpdf(
            X, np.asarray(mu, dtype=np.float64), sigma, allow_singular=singular))
        for log, mu, sigma in zip(logs, means, covariances, strict=True)], axis=1)


def discriminants(X, means, sigma, priors):
    """x·Σ⁻¹μ_k - μ_kᵀΣ⁻¹μ_k/2 + log π_k (eq. 4.10), all in long double."""
    weights = solved(sigma, np.asarray(means).T)
    wide = np.asarray(means, dtype=np.longdouble)
    b = np.array([np.log(np.longdouble(prior)) - mu @ w / 2
                  for prior, mu, w in zip(priors, wide, weights.T, strict=True)])
    return np.asarray(X.astype(np.longdouble) @ weights + b)


def posterior(scores):
    """log P(class | row) from joint scores."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))
