"""Log-count ratios, and the linear model that learns on them.

References
----------
.. [1] S. Wang, C. D. Manning (2012). Baselines and bigrams: simple, good sentiment and topic
   classification. ACL, section 2: the ratio r (2.1), the scaled features (2.2) and the
   interpolation of weights (2.3).
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.cells import cells_of_classes
from textnb.bayes.class_weight import class_weights, with_class_weight
from textnb.bayes.counts import Counts
from textnb.bayes.features import canonical, count_by_column, presence
from textnb.bayes.forms import Floats
from textnb.bayes.formulas import Smoothing, multinomial_log_prob
from textnb.bayes.labels import Labels
from textnb.bayes.learned import Learned
from textnb.bayes.statistics import as_smoothing_above_0
from textnb.errors import DataError, ParameterError
from textnb.runtime.progress import Size, current_progress

# LIBLINEAR draws the order of rows from one generator for the whole process: of two fits at the
# same time, neither would have the order that its random state gives.
_LIBLINEAR_LOCK = Lock()
# With larger values LIBLINEAR's steps are 0, and it does not end.
_MAX_VALUE = 1e30
# For each loss, a tolerance of LIBLINEAR that is as accurate on texts as the optimum.
_TOLERANCES = {"log": 4.0, "hinge": 2.0}


def log_count_ratio(feature_count: NDArray[Any], l: Smoothing) -> Floats:
    """r_k = log((p_k / |p_k|) / (q_k / |q_k|)) [1]_.

    p_k is the counts of class k plus l, q_k the counts of all other classes plus l, and |.| the sum
    over the features.

    Parameters
    ----------
    feature_count : (n_classes, n_features)
    l : float or float64 (n_features,)
        Above 0.

    Returns
    -------
    float64 (n_classes, n_features)

    Examples
    --------
    >>> np.exp(log_count_ratio(np.array([[2, 0], [0, 2]]), 1.0)).round(6).tolist()
    [[3.0, 0.333333], [0.333333, 3.0]]
    """
    others = feature_count.sum(axis=0) - feature_count
    return multinomial_log_prob(feature_count, l) - multinomial_log_prob(others, l)


def presence_statistics(rows: sp.csr_array, labels: Labels) -> Counts:
    """`Counts.from_labels` of rows whose stored values are all 1: the stored values are counted.

    With many columns this is several times as fast as a product of matrices, which accesses memory
    at random.

    Examples
    --------
    >>> rows = sp.csr_array([[1, 0], [1, 1]])
    >>> presence_statistics(rows, Labels.of_classes(["a", "b"])).feature_count.tolist()
    [[1, 0], [1, 1]]
    """
    n_rows, total = (len(labels), count_by_column(rows)) if labels.is_multilabel else (None, None)
    by_class = (count_by_column(rows, labels.has(k)) for k in range(len(labels.classes)))
    # The counts above 0, term by term: where each term ends, class codes, counts.
    ends, codes, values = cells_of_classes(by_class, rows.shape[1])
    return Counts(labels.classes, labels.sizes, ends, codes, values, rows=n_rows, total=total)


def document_statistics(
    counts: sp.csr_array, labels: Labels, weight: Floats | None = None
) -> Counts:
    """The number of rows of each class that hold each term, or the sum of their weights.

    Parameters
    ----------
    counts : csr_array (n_rows, n_terms)
    labels : Labels
    weight : float64 (n_rows,), optional
    """
    if weight is None:
        return presence_statistics(presence(counts, above=0.0, dtype=np.int8), labels)
    return Counts.from_labels(presence(counts, above=0.0), labels, weight)


def prepare_rows(rows: sp.csr_array, binarize: bool) -> sp.csr_array:
    """Rows for LIBLINEAR: with indices of 32 bits, and presence if the model binarizes."""
    if max(rows.nnz, *rows.shape) < 2**31 and rows.indices.dtype != np.int32:
        # LIBLINEAR reads indices of 32 bits only.
        rows = sp.csr_array((rows.data, rows.indices.astype(np.int32),
                             rows.indptr.astype(np.int32)), shape=rows.shape)
    if not binarize:
        return canonical(rows)
    # One byte for each 1, because the matrix holds all documents at once.
    return presence(rows, above=0.0, dtype=np.int8)


def ratio_statistics(
    rows: sp.csr_array, labels: Labels, l: Any, binarize: bool, weight: Floats | None = None,
    class_weight: Any = None,
) -> tuple[Counts, Floats]:
    """The statistic of rows, and r, their log-count ratios: see `ratio_of`.

    Parameters
    ----------
    rows : csr_array (n_rows, n_features)
        As `prepare_rows` gives them.
    labels : Labels
    l : float or array (n_features,)
        The smoothing parameter.
    binarize : bool
        Whether all stored values are 1.
    weight : float64 (n_rows,), optional
    class_weight : optional
        As in `class_weights`.

    Raises
    ------
    ParameterError
        If ``l`` is not above 0.
    DataError
        If there is one class.
    """
    smoothing = as_smoothing_above_0(l, rows.shape[1])
    if binarize and weight is None:
        statistics = presence_statistics(rows, labels)
    else:
        statistics = Counts.from_labels(rows, labels, weight)
    if len(statistics.classes) < 2:
        raise DataError("a ratio compares classes: the number of classes in the data has to be "
                        f"greater than one; got one class: {statistics.classes.tolist()}")
    return statistics, ratio_of(statistics, smoothing, class_weight)


def ratio_of(statistics: Counts, l: Smoothing, class_weight: Any) -> Floats:
    """`log_count_ratio` of counts with class weights: one row per class; of two classes, only the
    second's row."""
    counts = with_class_weight(statistics, class_weight).feature_count
    ratio = log_count_ratio(counts, l)
    return ratio[1:] if len(ratio) == 2 else ratio


def scale_columns(rows: sp.csr_array, ratio: Floats) -> sp.csr_array:
    """Multiply each stored value by the ratio of its column, float64 (n_features,)."""
    values = ratio.take(rows.indices)
    values *= rows.data
    return sp.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)


def learn_from_rows(
    model: Any, rows: sp.csr_array, labels: Labels, weight: Floats | None, binary: bool = False
) -> Learned:
    """Learn ratios from counts, and weights on the scaled features, one class against the rest.

    Parameters
    ----------
    model : NBLogisticRegression
        Not imported here, as it imports this module.
    rows : csr_array (n_rows, n_features)
        As `prepare_rows` gives them.
    labels : Labels
    weight : float64 (n_rows,) or None
    binary : bool
        Whether the classifier counts a term once per row: the form then does so too, even if the
        model does not binarize.

    Raises
    ------
    DataError
        If there is one class, or there are too many rows or too large values for LIBLINEAR.
    """
    statistics, ratio = ratio_statistics(
        rows, labels, model.l, bool(model.binarize), weight, model.class_weight)
    classes = statistics.classes
    # LIBLINEAR leaves out rows of weight 0, and takes the side that is left for the positive one.
    for label in classes[statistics.class_count == 0].tolist():
        raise DataError(f"all rows of the class {label!r} have the weight 0, and {model.name} "
                        "can't learn it from them: leave them out")
    weight_of_class = class_weights(model.class_weight, classes, statistics.class_count)
    if weight_of_class is not None:
        class_weight = weight_of_class[labels.codes]
        weight = class_weight if weight is None else class_weight * weight
    # Of two classes, the first scores 0, so that the posterior is the logistic function of the
    # score of the second.
    first_class = len(classes) - len(ratio)
    weights, intercept = np.zeros((rows.shape[1], len(classes))), np.zeros(len(classes))
    n_steps, progress = 0, current_progress()
    progress.begin("fitting", Size(len(ratio)), "class")
    for k, r in enumerate(ratio, start=first_class):
        solver = _solve(model, scale_columns(rows, r), labels.has(k), weight)
        w, intercept[k] = solver.coef_[0], solver.intercept_[0]
        if not (np.isfinite(w).all() and np.isfinite(intercept[k])):
            raise ParameterError(f"C={model.C!r} is too large for these rows: the solver found "
                                 "weights that are not finite")
        # The interpolation of [1], times the ratio by which the features were multiplied.
        weights[:, k] = ((1.0 - model.beta) * np.abs(w).mean() + model.beta * w) * r
        n_steps = max(n_steps, int(np.max(solver.n_iter_)))
        progress.advance(1)
    form = model.form_of_weights(statistics, weights, intercept, binary=binary)
    return Learned(statistics, form, n_steps)


def _solve(
    model: Any, rows: sp.csr_array, positive: NDArray[np.bool_], weight: Floats | None
) -> Any:
    """scikit-learn's estimator, fitted by LIBLINEAR's dual coordinate descent."""
    # Imported where used: scoring and the other models don't need it.
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    _check_rows(rows)
    solver = LogisticRegression(solver="liblinear") if model.loss == "log" else LinearSVC()
    tol = _TOLERANCES[model.loss] if model.tol is None else model.tol
    solver.set_params(dual=True, C=model.C, tol=tol, max_iter=model.max_iter,
                      random_state=model.random_state)
    with _LIBLINEAR_LOCK:
        return solver.fit(rows, positive, sample_weight=weight)


def _check_rows(rows: sp.csr_array) -> None:
    """Raise DataError for rows that LIBLINEAR can't read, or for which it would never end."""
    if rows.indices.dtype != np.int32 or rows.indptr.dtype != np.int32:
        raise DataError(f"the rows store {rows.nnz:,} values in {rows.shape[1]:,} columns, and "
                        "LIBLINEAR takes less than 2,147,483,648 of each: learn from fewer rows, "
                        "or from fewer terms")
    # Not `np.abs(rows.data).max()`: there may be billions of values, and a copy needs much memory.
    largest = np.maximum(rows.data.max(initial=0.0), -rows.data.min(initial=0.0))
    if not largest <= _MAX_VALUE:
        raise DataError("the rows times their log-count ratios must be finite and at most "
                        f"{_MAX_VALUE:g}; one is {largest:g}. Scale the rows "
                        "down, or take a larger l")
