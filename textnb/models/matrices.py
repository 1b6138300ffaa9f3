"""Rows of a matrix, with labels and weights, checked by scikit-learn as an estimator expects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from textnb.bayes.labels import check_int64
from textnb.errors import ParameterError


def labelled_rows(
    estimator: Any, X: Any, y: Any, *, sparse: str | bool, reset: bool = True
) -> tuple[Any, NDArray[Any]]:
    """Rows to learn and their labels.

    Parameters
    ----------
    estimator : estimator
        It gets ``n_features_in_`` and the names of the features.
    X : array or sparse array (n_rows, n_features)
    y : array (n_rows,)
    sparse : str or bool
        The format of sparse rows, such as "csr", or False if they are refused.
    reset : bool
        Whether these are the first rows; if not, they must have the features of the first.

    Raises
    ------
    ValueError
        On NaN or infinite values, or rows and labels that do not match.
    """
    check_int64(y)
    # scikit-learn's check for NaN adds values, which may overflow to inf and -inf.
    with np.errstate(invalid="ignore"):
        X, y = validate_data(estimator, X, y, accept_sparse=sparse, reset=reset)
    check_classification_targets(y)
    return X, y


def unlabelled_rows(estimator: Any, X: Any, *, sparse: str | bool) -> Any:
    """Rows to score, which have the features of the first ones; else as `labelled_rows`."""
    with np.errstate(invalid="ignore", over="ignore"):
        return validate_data(estimator, X, accept_sparse=sparse, reset=False)


def sample_weights(sample_weight: ArrayLike | None, X: Any) -> NDArray[np.float64] | None:
    """Check weights of rows: float64 (n_rows,), or None."""
    if sample_weight is None:
        return None
    weight: NDArray[np.float64] = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ParameterError("sample_weight is zero for every row: nothing would be learned")
    return weight
