"""The formulas of the models on counts, each once: for numbers as for arrays.

They take a function for the logarithm of a ratio: `log_ratio` here for single numbers, or that of
`textnb.bayes.formulas` for arrays. This module imports no NumPy, as a filter of one message starts
without it. Probabilities are ratios of (count + l), taken before the logarithm.

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


class TermSums(NamedTuple):
    """The sums over all terms that the weight of one term needs, as Python's numbers.

    Attributes
    ----------
    l : float
        The smoothing, above 0, of every term.
    n_terms : int
    rows, counts : list of float
        Of each class: its rows, and the sum of its counts.
    absent, norms : sequence of float
        Of each class, of models that need them: Σ log(1-p), and Σ log θ.
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
    count: Any, rows: Any, n_classes: int, prior: Any, fit_prior: bool, log_ratio: LogRatio
) -> Any:
    """log π: of given priors, or of the classes' shares of the rows, or uniform.

    Examples
    --------
    >>> log_prior(1, 4, 2, None, False, log_ratio) == -log(2)
    True
    """
    if prior is not None:
        return log_ratio(prior, 1)
    return log_ratio(count, rows) if fit_prior else -log_ratio(n_classes, 1)


def multinomial(count: Any, total: Any, l: Any, all_l: Any, log_ratio: LogRatio) -> Any:
    """log θ = log((n_kt + l_t) / (Σ_t n_kt + Σ_t l_t)) [1]_, eq. 13.7 with l for 1.

    Examples
    --------
    >>> multinomial(5, 6, 1.0, 2.0, log_ratio) == log(0.75)
    True
    """
    return log_ratio(count + l, total + all_l)


def bernoulli(present: Any, rows: Any, l: Any, log_ratio: LogRatio) -> tuple[Any, Any]:
    """log p and log(1-p), p = (n_kt + l_t) / (n_k + 2 l_t) [1]_, fig. 13.3 with l for 1.

    Both come from the counts: 1-p is (n_k - n_kt + l_t) / (n_k + 2 l_t), which keeps its digits
    where p is nearly 1.
    """
    total = rows + 2.0 * l
    return log_ratio(present + l, total), log_ratio(rows - present + l, total)


def complement(
    count: Any, of_term: Any, others: Any, l: Any, all_l: Any, log_ratio: LogRatio
) -> Any:
    """log θ of all other classes [2]_: (n_t - n_kt + l_t) / (Σ_t (n_t - n_kt) + Σ_t l_t).

    ``of_term`` is n_t, over all classes; ``others`` is Σ_t (n_t - n_kt).
    """
    return multinomial(of_term - count, others, l, all_l, log_ratio)
