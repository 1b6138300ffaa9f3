"""Weights of many classes, kept sparse against each class's weight for a term that it never had.

Of a count n of K classes and V terms, with sums N_k of classes, T_t of terms and A of all, and
L = Σ_t l_t, each logarithm splits into a part per class, a part per term, and a rest that is 0
where n = 0:

    log(n + l)       = log l       + log((n + l) / l)
    log(T_t - n + l) = log(T_t + l) + log((T_t - n + l) / (T_t + l))

So scores agree with those of dense weights to rounding. Smoothing must be above 0: without it the
weight for a term that a class never had is -inf. Some settings have no such split, and stay dense:
complement with ``norm``, which multiplies the part per term by a number per class; Bernoulli with
one smoothing per term, where log(R_k - n + l_t) joins documents of a class and of a term, and of
lists of labels, where log(R - R_k - T_t + n + l) does; class weights of lists of labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.class_weight import with_class_weight
from textnb.bayes.features import presence_map
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.formulas import Smoothing, log_ratio
from textnb.bayes.label_form import LabelForm
from textnb.bayes.sparse_table import SparseCounts, SparseWeights
from textnb.bayes.statistics import CountStatistics

# SciPy is imported where a table is sparse: a filter that scores one message starts without it.
if TYPE_CHECKING:
    import scipy.sparse as sp


def multinomial_weights(counts: SparseCounts, l: Smoothing) -> SparseWeights:
    """log θ of `textnb.bayes.formulas.multinomial_log_prob`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> counts = SparseCounts(sp.csr_array(np.array([[5, 1], [0, 2]])))
    >>> np.exp(np.asarray(multinomial_weights(counts, 1.0))).round(12).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    each = _per_term(l, counts)
    found, terms = _stored(counts)
    found.data = _log_excess(found.data, each[terms])
    return SparseWeights(found, -np.log(counts.sum(axis=1) + each.sum()), np.log(each))


def complement_weights(counts: SparseCounts, l: Smoothing) -> SparseWeights:
    """-log θ of all other classes, as of `textnb.bayes.formulas.complement_weights`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> counts = SparseCounts(sp.csr_array(np.array([[5, 1], [0, 2]])))
    >>> np.exp(-np.asarray(complement_weights(counts, 1.0))).round(12).tolist()
    [[0.25, 0.75], [0.75, 0.25]]
    """
    each, total = _per_term(l, counts), counts.sum(axis=0)
    found, terms = _stored(counts)
    found.data = -log_without(found.data, total[terms], each[terms])
    others = np.maximum(total.sum() - counts.sum(axis=1), 0)
    return SparseWeights(found, np.log(others + each.sum()), -np.log(total + each))


def bernoulli_weights(
    counts: SparseCounts, documents: NDArray[Any], l: float
) -> tuple[SparseWeights, Floats]:
    """The weights and Σ log(1-p) of `textnb.bayes.formulas.bernoulli_form`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> counts = SparseCounts(sp.csr_array(np.array([[2, 0], [0, 1]])))
    >>> weights, absent = bernoulli_weights(counts, np.array([2, 2]), 1.0)
    >>> np.exp(np.asarray(weights)).round(12).tolist(), np.exp(absent).round(12).tolist()
    ([[3.0, 0.333333333333], [0.333333333333, 1.0]], [0.1875, 0.375])
    """
    found, _ = _stored(counts)
    missing = log_without(found.data, documents[found.indices], l)
    more = np.bincount(found.indices, weights=missing, minlength=len(documents))
    found.data = _log_excess(found.data, l) - missing
    default = np.log(l) - np.log(documents + l)
    absent = counts.shape[1] * log_ratio(documents + l, documents + 2.0 * l) + more
    return SparseWeights(found, default), absent


def label_weights(statistics: CountStatistics, l: Smoothing) -> SparseWeights:
    """log θ of each label less log θ of its rest: see `textnb.bayes.label_form`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> class Counts:
    ...     feature_count = SparseCounts(sp.csr_array(np.array([[3, 1], [2, 1]])))
    ...     total = np.array([3, 4])
    >>> np.exp(np.asarray(label_weights(Counts, 1.0))[:, 0]).round(6).tolist()
    [3.333333, 0.416667]
    """
    counts, total = statistics.feature_count, statistics.total
    assert total is not None
    each, own = _per_term(l, counts), counts.sum(axis=1)
    found, terms = _stored(counts)
    found.data = (_log_excess(found.data, each[terms])
                  - log_without(found.data, total[terms], each[terms]))
    default = log_ratio(total.sum() - own + each.sum(), own + each.sum())
    return SparseWeights(found, default, log_ratio(each, total + each))


def stays_sparse(model: Any, statistics: CountStatistics, l: Smoothing) -> bool:
    """Whether the weights of these counts, for this smoothing, are sparse.

    Parameters
    ----------
    model : CountModel
        Not imported here, as it imports this module.
    statistics : CountStatistics
    l : float or float64 (n_features,)
    """
    return bool(isinstance(statistics.feature_count, SparseCounts) and np.min(l) > 0
                and not (statistics.is_multilabel and model.class_weight is not None)
                and model.has_sparse_weights(statistics, l))


def derive_sparse(model: Any, statistics: CountStatistics, l: Smoothing) -> LinearForm:
    """The form of counts that `stays_sparse`."""
    counted = with_class_weight(statistics, model.class_weight)
    weights, more = model.weigh_sparse(counted, l)
    classes, intercept = counted.classes, np.zeros(len(counted.classes))
    if counted.is_multilabel:
        if more is not None and model.fit_prior:
            own, rows = counted.class_count, counted.n_rows
            intercept = log_ratio(own, rows) - log_ratio(rows - own, rows)
        return LabelForm(classes, weights, intercept, features=presence_map(model.above))
    if more is not None:
        intercept = model.log_prior(counted) + more
    return LinearForm(classes, weights, intercept, features=presence_map(model.above))


def _stored(counts: SparseCounts) -> tuple[sp.csr_array, NDArray[np.int64]]:
    """The counts (n_terms, n_classes) that are stored, and the term of each."""
    found = counts.by_term().astype(np.float64)
    return found, np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))


def _per_term(l: Smoothing, counts: SparseCounts) -> Floats:
    return np.broadcast_to(np.asarray(l, dtype=np.float64), counts.shape[1])


def _log_excess(count: NDArray[Any], l: Smoothing) -> Floats:
    """log((count + l) / l), where l may be so small that the ratio overflows."""
    excess: Floats = np.log(count + l) - np.log(l)
    return excess


def log_without(count: NDArray[Any], total: NDArray[Any], l: Smoothing) -> Floats:
    """log((total - count + l) / (total + l)), where rounding may make total - count negative."""
    return log_ratio(np.maximum(total - count, 0) + l, total + l)
