"""Checks of counts, and of the parameters of models of counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.ratios import MAX_SMOOTHING
from textnb.errors import ParameterError
from textnb.runtime.settings import is_truth

# The largest weight of a row: sums, and products with counts and squares, can't overflow.
MAX_WEIGHT = 1e100
# Above this, float64 can't represent all integers.
_MAX_EXACT = 2.0**53


def as_counts(X: Any) -> Any:
    """Convert to int64 if all values are integers and sums can't overflow, else to float64."""
    import scipy.sparse as sp

    if sp.issparse(X):
        values = as_counts(X.data)
        return X if values is X.data else sp.csr_array((values, X.indices, X.indptr), X.shape)
    # The sum is far below what 64 bits hold, so that sums of many batches fit too.
    fits = X.size * float(X.max(initial=0)) < _MAX_EXACT
    if fits and (X.dtype.kind in "bui" or np.all(np.floor(X) == X)):
        return X.astype(np.int64, copy=False)
    return X.astype(np.float64, copy=False)


def is_auto(l: Any) -> bool:
    """Whether the smoothing parameter is to be chosen by leave-one-out."""
    return isinstance(l, str) and l == "auto"


def as_smoothing(l: Any, n_features: int) -> float | NDArray[np.float64]:
    """Check the smoothing parameter: a number, or one number per feature.

    Raises
    ------
    ParameterError
        If it is negative, not finite or above `MAX_SMOOTHING`, or an array with another number of
        values.
    """
    expected = f"a finite number >= 0 (at most {MAX_SMOOTHING:g}), or an array of one per feature"
    if is_auto(l):
        raise ParameterError.naming_settings(
            "{l='auto'} is for models that leave rows out by subtraction, such as MultinomialNB; "
            "here {l} must be {expected}", expected=expected)
    try:
        values = np.asarray(l, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError.out_of_range("l", expected, l) from None
    if is_truth(l) or isinstance(l, str) or not ((values >= 0) & (values <= MAX_SMOOTHING)).all():
        raise ParameterError.out_of_range("l", expected, l)
    if values.ndim == 0:
        return float(values)
    if values.shape != (n_features,):
        raise ParameterError.naming_settings(
            "{l} as an array must have one value per feature ({n_features}); got shape {shape}",
            n_features=n_features, shape=values.shape)
    return values


def as_smoothing_above_0(l: Any, n_features: int) -> float | NDArray[np.float64]:
    """As `as_smoothing`, for models of log ratios, which need ``l > 0``."""
    smoothing = as_smoothing(l, n_features)
    if np.min(smoothing) <= 0:
        raise ParameterError.out_of_range("l", "above 0 (a count of 0 has no logarithm)", l)
    return smoothing


def as_class_prior(
    class_prior: Sequence[float] | ArrayLike | None, n_classes: int, name: str = "class_prior"
) -> NDArray[np.float64] | None:
    """Check class priors, and make an array of them.

    Raises
    ------
    ParameterError
        If there is not one prior per class, one is negative or not finite, or all are 0.
    """
    if class_prior is None:
        return None
    try:
        prior = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError.out_of_range(name, "one probability per class", class_prior) from None
    if prior.shape != (n_classes,):
        raise ParameterError(f"{name}: Number of priors must match number of classes: expected "
                             f"shape ({n_classes},), got {prior.shape}")
    if not np.isfinite(prior).all() or (prior < 0).any() or prior.sum() <= 0:
        raise ParameterError.out_of_range(name, "probabilities >= 0, not all 0", class_prior)
    return prior
