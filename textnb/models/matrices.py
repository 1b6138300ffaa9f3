"""Checks of X, y and sample weights by scikit-learn's functions, as its estimators make them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from textnb.bayes.labels import check_int64
from textnb.bayes.statistics import MAX_WEIGHT
from textnb.errors import ParameterError


def labelled_rows(
    estimator: Any, X: Any, y: Any, *, sparse: str | bool, reset: bool = True
) -> tuple[Any, NDArray[Any]]:
    """Check rows to learn from, and their labels.

    Parameters
    ----------
    estimator : estimator
        Its ``n_features_in_`` and ``feature_names_in_`` are set.
    X : array or sparse array (n_rows, n_features)
    y : array (n_rows,)
    sparse : str or bool
        The format of sparse rows, such as "csr", or False if they are refused.
    reset : bool
        Whether these are the first rows; if not, they must have the same features as the first.

    Raises
    ------
    ValueError
        On NaN or infinite values, or if there is not one label per row.
    """
    # Raises an error for integers beyond 64 bits, which NumPy would change to floats.
    check_int64(y)
    # scikit-learn's check for NaN adds all values. NumPy would warn if inf and -inf are among them.
    with np.errstate(invalid="ignore"):
        X, y = validate_data(estimator, X, y, accept_sparse=sparse, reset=reset)
    check_classification_targets(y)
    return _as_type_of_sparse(X), y


def unlabelled_rows(estimator: Any, X: Any, *, sparse: str | bool) -> Any:
    """Check rows to score, which must have the same features as the rows of the fit."""
    # Values to score may also be so large that the sum of the check overflows.
    with np.errstate(invalid="ignore", over="ignore"):
        return _as_type_of_sparse(
            validate_data(estimator, X, accept_sparse=sparse, reset=False))


def _as_type_of_sparse(X: Any) -> Any:
    """Rows in a type that SciPy's sparse arrays have: not float16, nor of another byte order."""
    if not isinstance(X, np.ndarray):
        return X
    native = X.dtype.newbyteorder("=")
    return X.astype(np.float32 if native == np.float16 else native, copy=False)


def sample_weights(sample_weight: ArrayLike | None, X: Any) -> NDArray[np.float64] | None:
    """Check weights of rows, and return them as float64 (n_rows,), or None."""
    if sample_weight is None:
        return None
    weight: NDArray[np.float64] = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ParameterError("sample_weight is zero for every row: nothing would be learned")
    if weight.max() > MAX_WEIGHT:
        raise ParameterError.out_of_range(
            "sample_weight", f"at most {MAX_WEIGHT:g}", float(weight.max()))
    return weight
