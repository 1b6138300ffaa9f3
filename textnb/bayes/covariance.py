"""Covariance matrices: shrinkage, and factors that take the place of inverse and determinant.

References
----------
.. [1] O. Ledoit, M. Wolf (2004). A well-conditioned estimator for large-dimensional covariance
   matrices. Journal of Multivariate Analysis 88, eqs. 11-14.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.moments import name_columns
from textnb.errors import DataError

# If the reciprocal of the condition number, divided by the number of columns, is below this, the
# matrix counts as singular: no digit of a factor would be right.
_MIN_RCOND = 10 * np.finfo(np.float64).eps
# As in scipy.stats.multivariate_normal: eigenvalues below this share of the largest count as 0.
_MIN_EIGENVALUE = 1e6 * np.finfo(np.float64).eps
# A column counts as dependent if the columns before it leave less than this share of its variance.
_MIN_PIVOT = 1e-10
# What a message advises by default.
_REMEDY = "set a shrinkage above 0"


@dataclass(frozen=True, eq=False)
class Factor:
    """The factor of a covariance Σ by which Gaussian rows become standard normal.

    z = (x - μ) whiten has the covariance I.

    Attributes
    ----------
    whiten : float64 (n_features, rank)
        whiten whitenᵀ is the (pseudo-)inverse of the covariance.
    log_det : float
        Log of the (pseudo-)determinant, base e.
    triangular : bool
        Whether ``whiten`` is upper triangular, which halves the work of using it.
    """

    whiten: Floats
    log_det: float
    triangular: bool

    @property
    def rank(self) -> int:
        return int(self.whiten.shape[1])


def shrink(covariance: Floats, shrinkage: float) -> Floats:
    """(1 - s) Σ + s (tr(Σ) / p) I, for p features and shrinkage s.

    Examples
    --------
    >>> shrink(np.array([[1.0, 0.5], [0.5, 3.0]]), 0.5).tolist()
    [[1.5, 0.25], [0.25, 2.5]]
    """
    p = len(covariance)
    result: Floats = (1.0 - shrinkage) * covariance
    result[np.diag_indices(p)] += shrinkage * np.trace(covariance) / p
    return result


def factorise(
    covariance: Floats, names: Sequence[str] | None, owner: str, allow_singular: bool,
    remedy: str = _REMEDY,
) -> Factor:
    """Factor of a covariance matrix.

    Parameters
    ----------
    covariance : float64 (n_features, n_features)
    names : sequence of str, optional
        Names of the columns, for messages.
    owner : str
        Whose covariance it is, for messages.
    allow_singular : bool
        For a singular matrix, use its pseudo-inverse and pseudo-determinant.
    remedy : str
        What to do about a singular matrix, for messages.

    Raises
    ------
    DataError
        If the matrix is singular, unless this is allowed: it names constant and collinear columns.
    """
    variance = np.diag(covariance).copy()
    if (variance > 0).all():
        deviation = np.sqrt(variance)
        correlation = covariance / deviation / deviation[:, None]
        one_norm = np.abs(correlation).sum(axis=0).max()
        # Cholesky: correlation = lower lowerᵀ.
        lower, failed = scipy.linalg.lapack.dpotrf(correlation, lower=True, clean=True)
        if not failed:
            # An estimate of the reciprocal of the condition number.
            rcond, _ = scipy.linalg.lapack.dpocon(lower, one_norm, uplo="L")
            if rcond > _MIN_RCOND * len(variance):
                # The inverse of the triangular factor.
                inverse, _ = scipy.linalg.lapack.dtrtri(lower, lower=True)
                log_det = 2.0 * float(np.log(np.diag(lower) * deviation).sum())
                return Factor(inverse.T / deviation[:, None], log_det, triangular=True)
    if not allow_singular:
        raise _singular(covariance, names, owner, remedy)
    values, vectors = scipy.linalg.eigh(covariance)
    keep = values > _MIN_EIGENVALUE * max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
    return Factor(vectors[:, keep] / np.sqrt(values[keep]), float(np.log(values[keep]).sum()),
                  triangular=False)


def dependent_columns(covariance: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns without variance, and columns that are linear combinations of those before them, by
    their indices.

    Examples
    --------
    >>> x = np.array([[1.0, 2.0, 2.0, 5.0], [3.0, 1.0, 6.0, 5.0], [4.0, 4.0, 8.0, 5.0]])
    >>> constant, collinear = dependent_columns(np.cov(x.T))
    >>> constant.tolist(), collinear.tolist()
    ([3], [2])
    """
    variance = np.diag(covariance)
    constant = np.flatnonzero(variance <= 0)
    varying = np.flatnonzero(variance > 0)
    deviation = np.sqrt(variance[varying])
    remainder = covariance[np.ix_(varying, varying)] / deviation / deviation[:, None]
    collinear = []
    # Cholesky elimination of correlations: a pivot is the share of a column's variance that the
    # columns before it do not explain.
    for i, column in enumerate(varying):
        pivot = remainder[i, i]
        if pivot < _MIN_PIVOT:
            collinear.append(column)
            continue
        remainder[i + 1:, i + 1:] -= np.outer(remainder[i + 1:, i], remainder[i, i + 1:]) / pivot
    return constant.astype(np.int64), np.array(collinear, dtype=np.int64)


def ledoit_wolf_shrinkage(covariance: Floats, n: float, fourth_moment: float) -> float:
    """Shrinkage b² / d² that minimises the expected squared error [1]_.

    With m = tr(Σ) / p and the squared Frobenius norm |.|²: d² = |Σ - m I|² / p, and b² is
    (Σ_rows |x - mean|⁴ / n - |Σ|²) / (p n), but at most d².

    Parameters
    ----------
    covariance : float64 (n_features, n_features)
        Divided by n.
    n : float
        The number of rows.
    fourth_moment : float
        The sum of |x - mean|⁴ over the rows.

    Returns
    -------
    float
        In [0, 1].
    """
    p = len(covariance)
    mean_variance = np.trace(covariance) / p
    squared_norm = float((covariance**2).sum())
    d2 = (squared_norm - p * mean_variance**2) / p
    b2 = (fourth_moment / n - squared_norm) / (p * n)
    # If d² is 0, as with one feature, shrinkage would not change the covariance.
    return 0.0 if b2 <= 0 or d2 <= 0 else float(min(b2, d2) / d2)


def _singular(
    covariance: Floats, names: Sequence[str] | None, owner: str, remedy: str
) -> DataError:
    constant, collinear = dependent_columns(covariance)
    if len(constant) == len(covariance):
        return DataError(
            f"the covariance of {owner} is 0: no column varies there, so shrinkage does not help. "
            "Give other columns, or scale them up if they vary by less than about 1e-160, whose "
            "square is 0" + ("" if remedy == _REMEDY else
                             f"; or {remedy}, which helps if a column varies in another class"))
    causes = []
    if len(constant):
        causes.append(f"constant columns {name_columns(constant, names)} (or of values whose "
                      "squares are 0: scale them up)")
    if len(collinear):
        causes.append("columns that are linear combinations of others "
                      f"{name_columns(collinear, names)}")
    why = "; ".join(causes) or "its columns are nearly collinear"
    return DataError.naming_settings(
        "the covariance of {of} is singular: {why}. Drop them, {remedy}, or {allow_singular=True} "
        "for the pseudo-inverse", of=owner, why=why, remedy=remedy)
