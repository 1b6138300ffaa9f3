"""The formulas of the models on counts, which are the same for single numbers and for arrays.

Each takes a function for the logarithm of a ratio: for single numbers `log_ratio` of this module,
for arrays the one of `textnb.bayes.formulas`. This module imports no NumPy, as `textnb filter`,
which judges one mail message, starts without it. A probability is a ratio of smoothed counts: the
division comes before the logarithm.

References
----------
.. [1] C. D. Manning, P. Raghavan, H. Schütze (2008). Introduction to Information Retrieval,
   Cambridge University Press, ch. 13: eq. 13.7 (multinomial, add-one), fig. 13.3 (Bernoulli).
.. [2] J. D. Rennie, L. Shih, J. Teevan, D. R. Karger (2003). Tackling the poor assumptions of
   naive Bayes text classifiers. ICML, table 4 (complement, weight normalisation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from typing import Any, NamedTuple

LogRatio = Callable[[Any, Any], Any]
# Sums of larger numbers over all terms could be infinite.
MAX_SMOOTHING = 1e100


class TermSums(NamedTuple):
    """The sums over all terms that the weight of one term needs, as Python's numbers.

    Attributes
    ----------
    l : float
        The smoothing, above 0, of every term.
    n_terms : int
    rows, counts : list of float
        For each class: the number of its rows, and the sum of its counts.
    absent, norms : sequence of float
        For each class: Σ_t log(1-p_t) for BernoulliNB, and Σ_t log θ_t for ComplementNB; empty for
        other models.
    """

    l: float
    n_terms: int
    rows: list[float]
    counts: list[float]
    absent: Sequence[float] = ()
    norms: Sequence[float] = ()


def log_ratio(numerator: float, denominator: float) -> float:
    """log(numerator / denominator), base e, of Python's numbers above 0."""
    return log(numerator / denominator)


def log_prior(
    class_rows: Any, rows: Any, n_classes: int, prior: Any, fit_prior: bool,
    log_ratio: LogRatio,
) -> Any:
    """log π of a class. If its ``prior`` is None, π is ``class_rows / rows`` with ``fit_prior``,
    and ``1 / n_classes`` without.

    Examples
    --------
    >>> log_prior(1, 4, 2, None, fit_prior=False, log_ratio=log_ratio) == -log(2)
    True
    """
    if prior is not None:
        return log_ratio(prior, 1)
    return log_ratio(class_rows, rows) if fit_prior else -log_ratio(n_classes, 1)


def multinomial(count: Any, total: Any, l: Any, total_l: Any, log_ratio: LogRatio) -> Any:
    """log θ = log((n_kt + l_t) / (Σ_t n_kt + Σ_t l_t)) [1]_: eq. 13.7 with l_t instead of 1.

    ``count`` is n_kt, how often class k has term t; ``total`` is Σ_t n_kt, ``total_l`` Σ_t l_t.

    Examples
    --------
    >>> multinomial(5, 6, 1.0, 2.0, log_ratio) == log(0.75)
    True
    """
    return log_ratio(count + l, total + total_l)


def bernoulli(present: Any, rows: Any, l: Any, log_ratio: LogRatio) -> tuple[Any, Any]:
    """log p and log(1-p), p = (n_kt + l_t) / (n_k + 2 l_t) [1]_: fig. 13.3 with l_t instead of 1.

    ``rows`` is n_k, the rows of class k, and ``present`` is n_kt, how many of them have term t.
    1-p is computed as (n_k - n_kt + l_t) / (n_k + 2 l_t), which keeps its digits where p is near 1.
    """
    denominator = rows + 2.0 * l
    return log_ratio(present + l, denominator), log_ratio(rows - present + l, denominator)


def complement(
    count: Any, term_count: Any, others: Any, l: Any, total_l: Any, log_ratio: LogRatio
) -> Any:
    """log θ of all classes but k [2]_: θ = (n_t - n_kt + l_t) / (Σ_t (n_t - n_kt) + Σ_t l_t).

    ``count`` is n_kt, ``term_count`` is n_t, the count of term t in all classes, ``others`` is
    Σ_t (n_t - n_kt), and ``total_l`` is Σ_t l_t.
    """
    return multinomial(term_count - count, others, l, total_l, log_ratio)
