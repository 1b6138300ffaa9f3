"""From arrays of counts to linear forms, by the formulas of `textnb.bayes.ratios`.

Those formulas also work on single numbers, so each takes a function for the logarithm of a ratio:
here `log_ratio`, which works on arrays. A probability is one ratio of sums (count + l), and the
logarithm is taken last. So there is little rounding, and multiplying all counts and ``l`` by a
power of two changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes import ratios
from textnb.bayes.counts import CountTable
from textnb.bayes.features import presence_map
from textnb.bayes.forms import Floats, LinearForm, RequiredTermsForm
from textnb.errors import ParameterError
from textnb.runtime.threads import run_in_threads

Smoothing = float | Floats
# The numbers of terms and classes in a tile of `_compute_in_tiles`, which fits the cache.
_TILE_TERMS, _TILE_CLASSES = 1 << 12, 1 << 4


def log_ratio(numerator: Any, denominator: Any) -> Floats:
    """log(numerator / denominator), base e, of arrays or numbers; 0/0 counts as 0, with log -inf.

    Examples
    --------
    >>> log_ratio([1.0, 0.0, 0.0], [1.0, 2.0, 0.0]).tolist()
    [0.0, -inf, -inf]
    """
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    ratio = np.empty(shape, dtype=np.float64)
    # In place, because each array is as large as a model. A numerator that is a difference of
    # weighted sums may be negative by rounding.
    np.maximum(numerator, 0, out=ratio)
    positive = np.asarray(denominator) > 0
    # np.divide with a mask is slow, so there is a mask only if a denominator is 0.
    np.divide(ratio, denominator, out=ratio, where=True if positive.all() else positive)
    with np.errstate(divide="ignore"):
        np.log(ratio, out=ratio)
    return ratio


def log_prior(
    class_count: NDArray[Any], class_prior: Floats | None = None, fit_prior: bool = True
) -> Floats:
    """log π of each class, from ``class_prior``, else its share of the rows, or else 1 / n_classes.

    Examples
    --------
    >>> np.exp(log_prior(np.array([3, 1]))).tolist()
    [0.75, 0.25]
    """
    n = len(class_count)
    return np.broadcast_to(ratios.log_prior(
        class_count, class_count.sum(), n, class_prior, fit_prior, log_ratio), n).copy()


def multinomial_log_prob(feature_count: NDArray[Any], l: Smoothing) -> Floats:
    """log θ, the probability of each term in each class: see `textnb.bayes.ratios.multinomial`.

    Parameters
    ----------
    feature_count : (n_classes, n_features)
    l : float or float64 (n_features,)

    Returns
    -------
    float64 (n_classes, n_features)
        If ``l`` is 0, -inf for a term that a class never had.

    Examples
    --------
    >>> np.exp(multinomial_log_prob(np.array([[5, 1], [0, 2]]), 1.0)).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    total = feature_count.sum(axis=1, keepdims=True)
    l_of_term, total_l = _smoothing(l, feature_count.shape[1])
    return _compute_in_tiles(feature_count.shape, lambda classes, terms: ratios.multinomial(
        feature_count[classes, terms], total[classes], l_of_term[terms], total_l, log_ratio))


def _compute_in_tiles(shape: tuple[int, ...], derive: Callable[[slice, slice], Floats]) -> Floats:
    """Compute a table, float64 (n_classes, n_features).

    Its transpose is contiguous, so that it becomes `LinearForm.weights` without a copy.
    ``derive`` computes the values of some classes and terms. It is called tile by tile, because
    temporary arrays for all tiles at once would be as large as a model.
    """
    n_classes, n_features = shape
    table = np.empty((n_features, n_classes)).T

    def fill(terms: slice) -> None:
        for start in range(0, n_classes, _TILE_CLASSES):
            classes = slice(start, start + _TILE_CLASSES)
            table[classes, terms] = derive(classes, terms)

    run_in_threads(partial(fill, slice(start, start + _TILE_TERMS))
                   for start in range(0, n_features, _TILE_TERMS))
    return table


def _smoothing(l: Smoothing, n_features: int) -> tuple[Floats, float]:
    """The smoothing of each term, and its sum."""
    total_l = float(l.sum()) if isinstance(l, np.ndarray) else l * n_features
    return np.broadcast_to(np.asarray(l, dtype=np.float64), n_features), total_l


def bernoulli_log_prob(
    feature_count: NDArray[Any], class_count: NDArray[Any], l: Smoothing
) -> tuple[Floats, Floats]:
    """log p and log(1-p), p the share of each class's rows that hold a term: see
    `textnb.bayes.ratios.bernoulli`.

    Parameters
    ----------
    feature_count : (n_classes, n_features)
    class_count : (n_classes,)
    l : float or float64 (n_features,)

    Returns
    -------
    log_p, log_not_p : float64 (n_classes, n_features)
    """
    return ratios.bernoulli(feature_count, class_count[:, None], np.asarray(l), log_ratio)


def complement_weights(feature_count: NDArray[Any], l: Smoothing, norm: bool) -> Floats:
    """-log θ, or with ``norm``, log θ / Σ_t log θ, where θ is the probability of each term in all
    classes but one: see `textnb.bayes.ratios.complement`.

    Returns
    -------
    float64 (n_classes, n_features)
    """
    term_count = feature_count.sum(axis=0)
    if feature_count.dtype.kind == "i":
        others = term_count.sum() - feature_count.sum(axis=1, keepdims=True)
    else:
        # A difference of sums of floats could be off by rounding, so each complement is summed.
        others = np.array([[(term_count - counts).sum()] for counts in feature_count])
    l_of_term, total_l = _smoothing(l, feature_count.shape[1])
    log_theta = _compute_in_tiles(feature_count.shape, lambda classes, terms: ratios.complement(
        feature_count[classes, terms], term_count[terms], others[classes], l_of_term[terms],
        total_l, log_ratio))
    if norm:
        # NumPy sums contiguous rows pairwise, with less rounding error.
        sums = np.ascontiguousarray(log_theta).sum(axis=1, keepdims=True)
        # If there is only one term, θ is 1, and its weight and the sum are 0.
        np.divide(log_theta, sums, out=log_theta, where=True if sums.all() else sums != 0)
    else:
        np.negative(log_theta, out=log_theta)
    return log_theta


def multinomial_form(counts: CountTable, l: Smoothing, log_prior: Floats) -> LinearForm:
    """The linear form of multinomial: w = log θ, b = log π.

    Examples
    --------
    >>> counts = CountTable(np.array(["a", "b"]), np.array([1, 1]), np.array([[3, 1], [0, 2]]))
    >>> np.exp(multinomial_form(counts, 1.0, np.zeros(2)).weights).round(3).tolist()
    [[0.667, 0.25], [0.333, 0.75]]
    """
    log_prob = multinomial_log_prob(counts.feature_count, l)
    return LinearForm(counts.classes, np.ascontiguousarray(log_prob.T), log_prior)


def complement_form(counts: CountTable, l: Smoothing, log_prior: Floats, norm: bool) -> LinearForm:
    """The linear form of complement. It uses the prior only if there is a single class."""
    if norm and np.min(l) == 0:
        raise ParameterError("norm divides by the sum of the weights, which is infinite with "
                             "l = 0; use l > 0")
    weights = complement_weights(counts.feature_count, l, norm)
    return LinearForm(counts.classes, np.ascontiguousarray(weights.T),
                      log_prior if len(log_prior) == 1 else np.zeros(len(log_prior)))


def categorical_form(
    counts: CountTable, n_categories: NDArray[np.int64], l: Smoothing, log_prior: Floats
) -> LinearForm:
    """The linear form of categorical naive Bayes, over one indicator column per category.

    The weight of category c of feature i, in class k, is log((n_kic + l_i) / (n_ki + l_i C_i)), a
    smoothed estimate of its probability: n_kic is its count, n_ki the sum of the counts of the C_i
    categories of the feature.

    Parameters
    ----------
    counts : CountTable
        Counts of Σ n_categories columns: the categories of the features, one after the other.
    n_categories : int64 (n_features,)
        The number of categories of each feature.
    l : float or float64 (n_features,)
    log_prior : float64 (n_classes,)
    """
    starts = np.concatenate(([0], np.cumsum(n_categories)[:-1]))
    totals = np.add.reduceat(counts.feature_count, starts, axis=1)
    l_of_feature = np.broadcast_to(np.asarray(l, dtype=np.float64), n_categories.shape)
    denominator = np.repeat(totals + l_of_feature * n_categories, n_categories, axis=1)
    log_prob = log_ratio(counts.feature_count + np.repeat(l_of_feature, n_categories), denominator)
    return LinearForm(counts.classes, np.ascontiguousarray(log_prob.T), log_prior)


def bernoulli_form(
    counts: CountTable, l: Smoothing, log_prior: Floats, presence_above: float | None
) -> LinearForm:
    """The linear form of Bernoulli: w = log p - log(1-p), b = log π + Σ log(1-p).

    It scores a value above ``presence_above`` as 1, or each value as it is if that is None.
    """
    n_classes, n_features = counts.feature_count.shape
    weights = np.empty((n_features, n_classes))
    sum_log_not_p = np.empty(n_classes)
    # Pages of zeros take no memory until they are written, which happens only for l = 0.
    required = np.zeros((n_classes, n_features), dtype=bool)

    def derive(classes: slice) -> None:
        log_p, log_not_p = bernoulli_log_prob(
            counts.feature_count[classes], counts.class_count[classes], l)
        # With l = 0, a term that all documents of a class hold has p = 1. Its presence adds
        # log 1 = 0, and its absence excludes the class, which no finite weight and intercept does.
        is_certain = np.isneginf(log_not_p)
        if is_certain.any():
            required[classes] = is_certain
            log_not_p[is_certain] = 0.0
        # All terms in one sum, so that its bits do not depend on tiles.
        sum_log_not_p[classes] = log_not_p.sum(axis=1)
        differences = np.subtract(log_p, log_not_p, out=log_not_p)
        if is_certain.any():
            differences[is_certain] = 0.0
        for start in range(0, n_features, _TILE_TERMS):
            terms = slice(start, start + _TILE_TERMS)
            weights[terms, classes] = differences[:, terms].T

    # So many classes at a time that they have about a million counts.
    step = max(1, (1 << 20) // max(1, n_features))
    run_in_threads(partial(derive, slice(start, start + step))
                   for start in range(0, n_classes, step))
    intercept = log_prior + sum_log_not_p
    # Of a class without rows, with l = 0, p and 1-p are both 0/0: no row is of this class.
    intercept[(counts.class_count == 0) & required.any(axis=1)] = -np.inf
    form = LinearForm(counts.classes, weights, intercept, features=presence_map(presence_above))
    if not required.any():
        return form
    # Imported here: this is rare, and `textnb filter` starts without it.
    import scipy.sparse as sp

    return RequiredTermsForm(form.classes, form.weights, form.intercept, features=form.features,
                             required=sp.csc_array(required.T))
