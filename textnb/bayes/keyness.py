"""How surely a term indicates a class: z-scores of log-odds ratios, from counts.

The largest log-odds ratios are of rare terms, and the largest differences of counts of frequent
ones. A log-odds ratio divided by its standard error says how far it is from what chance would give.

References
----------
.. [1] B. L. Monroe, M. P. Colaresi, K. M. Quinn (2008). Fightin' Words: Lexical Feature Selection
   and Evaluation for Identifying the Content of Political Conflict. Political Analysis 16(4):
   eq. 15 (log-odds-ratio), 19 (its variance), 22 (z-score) and 23 (the informative prior).
.. [2] J. J. Gart (1966). Alternative analyses of contingency tables. J. R. Stat. Soc. B 28(1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.counts import Counts
from textnb.bayes.forms import Floats

# Terms by their columns.
Terms = NDArray[np.int64]
# A function such as `dirichlet_z`, with its parameters: statistics, total, k, terms.
TermZ = Callable[[Counts, NDArray[Any], int, Terms], Floats]


def dirichlet_z(statistics: Counts, total: NDArray[Any], k: int, terms: Terms) -> Floats:
    """z-scores of the log-odds ratios of terms, class k against the rest, with a prior [1]_.

    With y the counts of the class, n their sum, y' the counts of the rest, n' their sum, and a
    Dirichlet prior α with the sum α0::

        δ = log((y + α) / (n + α0 - y - α)) - log((y' + α) / (n' + α0 - y' - α))
        z = δ / sqrt(1 / (y + α) + 1 / (y' + α))

    The prior is the corpus itself: α = y + y', so α0 = n + n'. It needs no parameter, and a term
    that is as frequent in the class as elsewhere has z = 0.

    The formula assumes that occurrences are independent. So z is too large for a term that one
    document repeats a thousand times, unless the model counts it once per document.

    Parameters
    ----------
    statistics : Counts
        Occurrences per class.
    total : (n_features,)
        Counts of all classes together.
    k : int
        The index of the class.
    terms : int64 (n_terms,)
        Columns to score; each must occur somewhere.

    Returns
    -------
    float64 (n_terms,)
        Above 0 if the term is more frequent in the class than elsewhere.

    Examples
    --------
    >>> counts = Counts.from_table(
    ...     np.array(["a", "b"]), np.array([1, 1]), np.array([[3, 1], [1, 3]]))
    >>> dirichlet_z(counts, np.array([4, 4]), 0, np.array([0, 1])).round(4).tolist()
    [1.1493, -1.1493]
    """
    counts = statistics.of_class(k)
    n, alpha0 = float(counts.sum()), float(total.sum())  # so n' = α0 - n
    alpha = total[terms].astype(np.float64)
    own = counts[terms] + alpha  # y + α
    rest = alpha - counts[terms] + alpha  # y' + α
    with np.errstate(divide="ignore", invalid="ignore"):
        delta = np.log(own / (n + alpha0 - own)) - np.log(rest / (alpha0 - n + alpha0 - rest))
    z: Floats = delta / np.sqrt(1.0 / own + 1.0 / rest)
    # If there is only one term, its odds are infinite in each class, and it distinguishes none.
    return np.nan_to_num(z, nan=0.0)


def proportion_z(statistics: Counts, total: NDArray[Any], k: int, terms: Terms) -> Floats:
    """z-scores of the log-odds ratio of two proportions, class k against the rest.

    The class has N documents, and a of them hold the term; the other classes have N' documents, and
    a' of them hold it. ½ is added to each of the four counts [2]_, so that none is 0::

        δ = log((a + ½) / (N - a + ½)) - log((a' + ½) / (N' - a' + ½))
        z = δ / sqrt(1/(a + ½) + 1/(N - a + ½) + 1/(a' + ½) + 1/(N' - a' + ½))

    Parameters
    ----------
    statistics : Counts
        Documents per class, and documents that hold each term.
    total, k, terms
        As in `dirichlet_z`.

    Returns
    -------
    float64 (n_terms,)

    Examples
    --------
    >>> counts = Counts.from_table(
    ...     np.array(["a", "b"]), np.array([4, 4]), np.array([[3, 2], [0, 2]]))
    >>> proportion_z(counts, np.array([3, 4]), 0, np.array([0, 1])).round(4).tolist()
    [1.7087, 0.0]
    """
    own_documents = float(statistics.class_count[k])  # N
    other_documents = float(statistics.class_count.sum()) - own_documents  # N'
    own_with_term = statistics.of_class(k)[terms]  # a
    others_with_term = total[terms] - own_with_term  # a'
    counts = [own_with_term + 0.5, own_documents - own_with_term + 0.5,
              others_with_term + 0.5, other_documents - others_with_term + 0.5]
    delta = np.log(counts[0] / counts[1]) - np.log(counts[2] / counts[3])
    z: Floats = delta / np.sqrt(np.sum([1.0 / count for count in counts], axis=0))
    return z
