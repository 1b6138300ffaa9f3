"""Forms of Gaussian classes, from their moments.

References
----------
.. [1] T. Hastie, R. Tibshirani, J. Friedman (2009). The Elements of Statistical Learning, 2nd ed.,
   section 4.3: eqs. 4.10 (linear), 4.12 (quadratic), 4.13-4.14 (regularised).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.covariance import Factor, ledoit_wolf_shrinkage, shrink
from textnb.bayes.features import Center, FeatureMap
from textnb.bayes.forms import Floats, LinearForm, QuadraticForm
from textnb.bayes.moments import MomentStatistics

# If the absolute value of a score is larger, a term of its sum may have overflowed: such rows are
# scored again by `far_scores`. The maximum of float64 is 1.8e308.
_MAX_SCORE = 1e300


# Covariances


def variances(moments: MomentStatistics, epsilon: float, shared: bool) -> Floats:
    """Maximum-likelihood variances plus ``epsilon``: float64 (n_classes, n_features).

    Parameters
    ----------
    moments : MomentStatistics
        Of variances, without covariances.
    epsilon : float
        Added to each variance, so it is the variance of a class without rows.
    shared : bool
        Whether all classes have the same variances.
    """
    count = moments.class_count[:, None]
    if shared:
        variance: Floats = moments.within() / moments.class_count.sum() + epsilon
        return np.tile(variance, (len(moments.classes), 1))
    own: Floats = np.divide(moments.scatter, count, out=np.zeros_like(moments.scatter),
                            where=count > 0)
    return own + epsilon


def class_covariance(
    moments: MomentStatistics, k: int, shrinkage: float | None, fourth_moment: Floats | None
) -> Floats:
    """Covariance of class k, divided by its number of rows n_k, after shrinkage.

    Parameters
    ----------
    moments : MomentStatistics
    k : int
        The index of the class.
    shrinkage : float or None
        From 0 to 1; None for no shrinkage. Ignored with ``fourth_moment``.
    fourth_moment : float64 (n_classes,) or None
        The result of `fourth_moments`. With it, the shrinkage is Ledoit and Wolf's, of standardised
        features.
    """
    covariance: Floats = moments.scatter[k] / moments.class_count[k]
    if fourth_moment is None:
        return covariance if shrinkage is None else shrink(covariance, float(shrinkage))
    deviation = np.sqrt(np.diag(covariance))
    deviation[deviation == 0] = 1.0
    correlation = covariance / deviation / deviation[:, None]
    shrinkage = ledoit_wolf_shrinkage(
        correlation, float(moments.class_count[k]), float(fourth_moment[k]))
    return shrink(correlation, shrinkage) * deviation * deviation[:, None]


def fourth_moments(X: NDArray[Any], y: NDArray[Any], moments: MomentStatistics) -> Floats:
    """``Σ |z|⁴`` per class, where z are its rows, standardised within the class."""
    fourth_moment = np.zeros(len(moments.classes))
    for k, label in enumerate(moments.classes):
        deviation = np.sqrt(np.diag(moments.scatter[k]) / moments.class_count[k])
        deviation[deviation == 0] = 1.0
        z = (X[y == label] - moments.mean[k]) / deviation
        fourth_moment[k] = (np.einsum("ij,ij->i", z, z) ** 2).sum()
    return fourth_moment


def restrict(covariance: Floats, kind: str) -> Floats:
    """Keep a covariance ("full"), drop its correlations ("diagonal"), or also give all features the
    mean of the variances ("spherical"), as ``kind`` says."""
    if kind == "full":
        return covariance
    variance = np.diag(covariance)
    return np.diag(variance if kind == "diagonal" else np.full(len(variance), variance.mean()))


# Forms


def linear_gaussian(moments: MomentStatistics, precision: Floats, log_prior: Floats) -> LinearForm:
    """The discriminants of Gaussians that share a covariance Σ.

    ``delta_k(x) = a_k·x + b_k``, ``a_k = Σ⁻¹ μ_k``, ``b_k = log π_k - μ_kᵀ Σ⁻¹ μ_k / 2`` (Hastie,
    Tibshirani, Friedman 2009, The Elements of Statistical Learning, eq. 4.10). The overall mean is
    subtracted from x and μ_k: this changes the scores of all classes alike, and keeps precision.

    Parameters
    ----------
    moments : MomentStatistics
    precision : float64 (n_features,) or (n_features, rank)
        1 / variances; or a matrix W with W Wᵀ = Σ⁻¹.
    log_prior : float64 (n_classes,)
        log π.
    """
    center = moments.overall_mean()
    means = moments.mean - center
    weights = means * precision if precision.ndim == 1 else (means @ precision) @ precision.T
    intercept = log_prior - 0.5 * np.einsum("ki,ki->k", weights, means)
    return LinearForm(moments.classes, np.ascontiguousarray(weights.T), intercept,
                      features=FeatureMap((Center(center),)))


def independent_gaussian(
    moments: MomentStatistics, variance: Floats, log_prior: Floats
) -> QuadraticForm:
    """The form of features that are independent within a class, from their variances, float64
    (n_classes, n_features)."""
    # A class without rows has no variance, but its prior is 0, so any number will do.
    variance = np.where(moments.class_count[:, None] > 0, variance, 1.0)
    return QuadraticForm(moments.classes, moments.mean, whiten=1.0 / np.sqrt(variance),
                         log_det=np.log(variance).sum(axis=1), log_prior=log_prior)


def quadratic_gaussian(
    moments: MomentStatistics, factors: Sequence[Factor], log_prior: Floats
) -> QuadraticForm:
    """The form of Gaussians, from a factor of the covariance of each class."""
    return QuadraticForm(
        moments.classes, moments.mean, whiten=tuple(factor.whiten for factor in factors),
        log_det=np.array([factor.log_det for factor in factors]), log_prior=log_prior,
        triangular=tuple(factor.triangular for factor in factors))


# Scores


def gaussian_scores(
    form: LinearForm | QuadraticForm, rows: NDArray[Any], possible: NDArray[np.bool_]
) -> Floats:
    """Scores of rows, by `far_scores` for rows in which products or squares overflow.

    Parameters
    ----------
    form : LinearForm or QuadraticForm
    rows : array (n_rows, n_features)
    possible : bool (n_classes,)
        The classes that have a prior above 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores: Floats = form.scores(rows)
        # Not `>=`, as NaN also comes from an overflow.
        far = np.flatnonzero(~(np.abs(scores[:, possible]) < _MAX_SCORE).all(axis=1))
    if len(far):
        scores[far] = far_scores(form, np.asarray(rows)[far].astype(np.float64))
    return scores


def far_scores(form: LinearForm | QuadraticForm, rows: Floats) -> Floats:
    """Scores of rows so far from the means that products or squares overflow.

    Rows are scaled down first. If all scores of a row are below the range of float64, the best
    class gets the lowest float64, and the others get -inf. The scores of a linear form are only
    comparable within a row, so there the best class gets its intercept.

    Parameters
    ----------
    form : LinearForm or QuadraticForm
        A form on dense features.
    rows : float64 (n_rows, n_features)
    """
    exponent = np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1]
    # A power of two, which rounds nothing, and is not below 2 ** -1022, the smallest normal number:
    # values become at most 2 ** -64, and at most 4 if they were near the maximum of float64.
    scale = np.ldexp(1.0, np.clip(-64 - exponent, -1022, 0))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        if isinstance(form, LinearForm):
            form.features.check((Center,), "scores of rows far away")
            center = form.features.center
            scaled = (rows * scale - (0.0 if center is None else center) * scale) @ form.weights
            scaled[:, np.isneginf(form.intercept)] = -np.inf
            scaled -= scaled.max(axis=1, keepdims=True)
            linear: Floats = np.where(np.isneginf(scaled), -np.inf, scaled / scale)
            return linear + form.intercept
        log_distance = np.empty((len(rows), len(form.classes)))  # log |z|²
        for k, whiten in enumerate(form.whiten):
            z = rows * scale - form.mean[k] * scale
            z = z * whiten if whiten.ndim == 1 else z @ whiten
            # Divided by its largest entry, so that squares neither overflow nor vanish.
            largest = np.abs(z).max(axis=1, initial=0.0)
            z = z / np.where(largest > 0, largest, 1.0)[:, None]
            log_distance[:, k] = (2.0 * (np.log(largest) - np.log(scale[:, 0]))
                                  + np.log(np.einsum("ij,ij->i", z, z)))
        rank = np.array([whiten.shape[-1] for whiten in form.whiten])
        scores: Floats = form.log_prior - 0.5 * (
            np.exp(log_distance) + form.log_det + rank * np.log(2.0 * np.pi))
        are_below_range = np.asarray(np.isneginf(scores).all(axis=1))
        log_distance[:, np.isneginf(form.log_prior)] = np.inf
        smallest = log_distance.min(axis=1, keepdims=True)
        nearest = np.asarray(log_distance == smallest)
        return np.where(are_below_range[:, None] & nearest, np.finfo(np.float64).min, scores)
