"""Sparse weights for many classes: a number per term plus a number per class, and their exceptions.

With n the count of a term in a class, T_t the count of term t in all classes, and l its smoothing,
each logarithm is a number per term plus an excess, which is 0 if n = 0:

    log(n + l)       = log l       + log((n + l) / l)
    log(T_t - n + l) = log(T_t + l) + log((T_t - n + l) / (T_t + l))

Only the excess of cells with n > 0 is stored. Scores are those of dense weights, up to rounding.
Smoothing must be above 0: without it, the weight of a term that a class never had is -inf. Some
settings have dense weights, as they do not split in this way: complement with ``norm``, which
multiplies the number per term by a number per class; Bernoulli with one smoothing per term, as
log(R_k - n + l_t) depends on the number of rows R_k of the class and on the term; Bernoulli for
lists of labels, as log(R - R_k - T_t + n + l) does too, with R the number of all rows; and class
weights for lists of labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.class_weight import with_class_weight
from textnb.bayes.counts import Counts
from textnb.bayes.features import presence_map
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.formulas import Smoothing, log_ratio
from textnb.bayes.sparse_weights import SparseWeights


def multinomial_weights(counts: Counts, l: Smoothing) -> SparseWeights:
    """log θ of `textnb.bayes.formulas.multinomial_log_prob`.

    Examples
    --------
    >>> counts = Counts.from_table(np.arange(2), np.ones(2), np.array([[5, 1], [0, 2]]))
    >>> np.exp(np.asarray(multinomial_weights(counts, 1.0))).T.round(12).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    l_of_term = _per_term(l, counts)
    return SparseWeights(
        counts.ends, counts.codes, excess=_log_excess(counts.values, l_of_term[counts.columns]),
        default=-np.log(counts.class_totals + l_of_term.sum()), shared=np.log(l_of_term))


def complement_weights(counts: Counts, l: Smoothing) -> SparseWeights:
    """-log θ of all other classes, as in `textnb.bayes.formulas.complement_weights`.

    Examples
    --------
    >>> counts = Counts.from_table(np.arange(2), np.ones(2), np.array([[5, 1], [0, 2]]))
    >>> np.exp(-np.asarray(complement_weights(counts, 1.0))).T.round(12).tolist()
    [[0.25, 0.75], [0.75, 0.25]]
    """
    l_of_term, total, columns = _per_term(l, counts), counts.total_counts, counts.columns
    others = np.maximum(total.sum() - counts.class_totals, 0)
    return SparseWeights(
        counts.ends, counts.codes,
        excess=-log_without(counts.values, total[columns], l_of_term[columns]),
        default=np.log(others + l_of_term.sum()), shared=-np.log(total + l_of_term))


def bernoulli_weights(counts: Counts, l: float) -> tuple[SparseWeights, Floats]:
    """The weights and Σ log(1-p) of `textnb.bayes.formulas.bernoulli_form`.

    Examples
    --------
    >>> counts = Counts.from_table(np.arange(2), np.array([2, 2]), np.array([[2, 0], [0, 1]]))
    >>> weights, absent = bernoulli_weights(counts, 1.0)
    >>> np.exp(np.asarray(weights)).T.round(12).tolist(), np.exp(absent).round(12).tolist()
    ([[3.0, 0.333333333333], [0.333333333333, 1.0]], [0.1875, 0.375])
    """
    rows = counts.class_count
    # The excess of log(1-p).
    absent_excess = log_without(counts.values, rows[counts.codes], l)
    absent = counts.n_features * log_ratio(rows + l, rows + 2.0 * l) + np.bincount(
        counts.codes, weights=absent_excess, minlength=len(rows))
    return SparseWeights(
        counts.ends, counts.codes, excess=_log_excess(counts.values, l) - absent_excess,
        default=np.log(l) - np.log(rows + l)), absent


def label_weights(counts: Counts, l: Smoothing) -> SparseWeights:
    """log θ of each label minus log θ of its rest: see `textnb.bayes.label_form`.

    Examples
    --------
    >>> counts = Counts.from_table(np.arange(2), np.ones(2), np.array([[3, 1], [2, 1]]),
    ...                            rows=2, total=np.array([3, 4]))
    >>> np.exp(np.asarray(label_weights(counts, 1.0))[:, 0]).round(6).tolist()
    [3.333333, 0.416667]
    """
    l_of_term, total, columns = _per_term(l, counts), counts.total_counts, counts.columns
    own, total_l = counts.class_totals, l_of_term.sum()
    excess = (_log_excess(counts.values, l_of_term[columns])
              - log_without(counts.values, total[columns], l_of_term[columns]))
    return SparseWeights(
        counts.ends, counts.codes, excess, shared=log_ratio(l_of_term, total + l_of_term),
        default=log_ratio(total.sum() - own + total_l, own + total_l))


def stays_sparse(model: Any, statistics: Counts, l: Smoothing) -> bool:
    """Whether the model has sparse weights for these counts and this smoothing.

    Parameters
    ----------
    model : CountModel
        Not imported here, as it imports this module.
    statistics : Counts
    l : float or float64 (n_features,)
    """
    return bool(statistics.is_sparse and np.min(l) > 0
                and not (statistics.is_multilabel and model.class_weight is not None)
                and model.has_sparse_weights(statistics, l))


def derive_sparse(model: Any, statistics: Counts, l: Smoothing) -> LinearForm:
    """The form with sparse weights, of counts for which `stays_sparse` is true."""
    counts = with_class_weight(statistics, model.class_weight)
    weights, added_to_prior = model.weigh_sparse(counts, l)
    intercept = np.zeros(len(counts.classes))
    if added_to_prior is not None and not counts.is_multilabel:
        intercept = model.log_prior(counts) + added_to_prior
    elif added_to_prior is not None and model.fit_prior:
        own_rows, n_rows = counts.class_count, counts.n_rows
        intercept = log_ratio(own_rows, n_rows) - log_ratio(n_rows - own_rows, n_rows)
    return LinearForm(counts.classes, weights, intercept, features=presence_map(model.above),
                      link=counts.link)


def _per_term(l: Smoothing, counts: Counts) -> Floats:
    """The smoothing of each term."""
    return np.broadcast_to(np.asarray(l, dtype=np.float64), counts.n_features)


def _log_excess(count: NDArray[Any], l: Smoothing) -> Floats:
    """log((count + l) / l), without a ratio, which would overflow for a very small l."""
    return np.log(count + l) - np.log(l)


def log_without(count: NDArray[Any], total: NDArray[Any], l: Smoothing) -> Floats:
    """What a logarithm loses without a count: log((total - count + l) / (total + l)).

    The count may exceed the total by rounding.
    """
    return log_ratio(np.maximum(total - count, 0) + l, total + l)
