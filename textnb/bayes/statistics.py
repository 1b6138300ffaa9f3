"""Checks of what counts are made of, and of the parameters of models of counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textnb.errors import DataError, ParameterError
from textnb.runtime.settings import is_truth

# Beyond this, neighbouring integers share a float64.
_EXACT = 2.0**53
_INT64 = 2**63
_INTEGERS = (int, np.uint64)


def unite_labels(classes: NDArray[Any], more: ArrayLike) -> NDArray[Any]:
    """Sorted union of labels; strings of several lengths, and objects, do not change."""
    check_int64(more)
    others = np.asarray(more, dtype=object if classes.dtype == object else None)
    return np.union1d(classes, others)


def check_int64(labels: Any) -> None:
    """Raises DataError for integer labels beyond 64 bits, which it names.

    Call it before NumPy makes an array of a list: from integers on both sides of 2**63 it would
    make floats, and so merge classes.
    """
    if labels is None or isinstance(labels, (str, bytes)):
        return
    if isinstance(getattr(labels, "dtype", None), np.dtype):
        labels = np.asarray(labels)
    else:
        # The values of a Polars series: it may hold integers that NumPy has no type for.
        labels = labels.to_list() if hasattr(labels, "to_list") else labels
        if not isinstance(labels, (list, tuple)):
            labels = np.asarray(labels)
    if isinstance(labels, np.ndarray):
        if labels.dtype.kind not in "uO" or not labels.size:
            return
        if labels.dtype.kind == "u":
            largest = int(labels.max())
            if largest >= _INT64:
                raise DataError.label_beyond_int64(largest)
            return
        labels = labels.reshape(-1).tolist()
    for label in labels:
        if type(label) in _INTEGERS and not -_INT64 <= label < _INT64:
            raise DataError.label_beyond_int64(label)


def classes_and_codes(
    y: ArrayLike, classes: ArrayLike | None = None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The sorted classes, those of ``y`` if none are given, and the index of each label in them.

    Raises
    ------
    DataError
        For a label that is not among the classes, or an integer beyond 64 bits.
    """
    for labels in (y, classes):
        check_int64(labels)
    labels = np.asarray(y)
    known = np.unique(labels if classes is None else np.asarray(classes))
    return known, class_codes(labels, known)


def class_codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Index of each label among the sorted classes; DataError for a label that is not there."""
    codes = np.searchsorted(classes, y)
    codes[codes == len(classes)] = 0
    unknown = np.unique(y[classes[codes] != y])
    if len(unknown):
        raise DataError.unseen_labels(unknown.tolist(), classes.tolist())
    return codes.astype(np.int64)


def as_counts(X: Any) -> Any:
    """int64 where every value is whole, float64 otherwise; a small integer type would wrap."""
    import scipy.sparse as sp

    if sp.issparse(X):
        values = as_counts(X.data)
        return X if values is X.data else sp.csr_array((values, X.indices, X.indptr), X.shape)
    if X.dtype.kind in "bui":
        return X.astype(np.int64, copy=False)
    if X.size and not (np.all(np.floor(X) == X) and np.abs(X).max() < _EXACT):
        return X.astype(np.float64, copy=False)
    return X.astype(np.int64)


def is_auto(l: Any) -> bool:
    """Whether the smoothing parameter is to be chosen by leave-one-out."""
    return isinstance(l, str) and l == "auto"


def as_smoothing(l: Any, n_features: int) -> float | NDArray[np.float64]:
    """Check the smoothing parameter: a number, or one per feature.

    Raises
    ------
    ParameterError
        If it is negative, not finite, or an array of another length.
    """
    expected = "a finite number >= 0, or an array of one per feature"
    if is_auto(l):
        raise ParameterError.naming(
            "{l='auto'} belongs to MultinomialNB, BernoulliNB and ComplementNB; here {l} must be "
            "{expected}", expected=expected)
    try:
        values = np.asarray(l, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError.out_of_range("l", expected, l) from None
    if is_truth(l) or isinstance(l, str) or not np.isfinite(values).all() or (values < 0).any():
        raise ParameterError.out_of_range("l", expected, l)
    if values.ndim == 0:
        return float(values)
    if values.shape != (n_features,):
        raise ParameterError(f"l as an array must have one value per feature ({n_features}); "
                             f"got shape {values.shape}")
    return values


def as_class_prior(
    class_prior: Sequence[float] | ArrayLike | None, n_classes: int, name: str = "class_prior"
) -> NDArray[np.float64] | None:
    """Check given class probabilities and make an array of them.

    Raises
    ------
    ParameterError
        If there is not one per class, or one is negative or not finite, or all are zero.
    """
    if class_prior is None:
        return None
    try:
        prior = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError.out_of_range(name, "one probability per class", class_prior) from None
    if prior.shape != (n_classes,):
        raise ParameterError(f"{name}: Number of priors must match number of classes: expected "
                             f"{n_classes}, got {prior.size}")
    if not np.isfinite(prior).all() or (prior < 0).any() or prior.sum() <= 0:
        raise ParameterError.out_of_range(name, "probabilities >= 0, not all 0",
                                          class_prior)
    return prior
