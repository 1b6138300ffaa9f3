"""How surely a term indicates a class: z-scores of log-odds, from counts alone.

A log-odds ratio by itself favours rare terms, and a difference of counts favours frequent ones.
Divided by its standard error, a log-odds ratio says how far it is from what chance would give.

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

Terms = NDArray[np.int64]
# A function of statistics, counts of all classes, a class and columns: z-scores of the columns.
TermZ = Callable[[Counts, NDArray[Any], int, Terms], Floats]


def dirichlet_z(statistics: Counts, total: NDArray[Any], k: int, terms: Terms) -> Floats:
    """z-scores of the log-odds of terms, class k against the rest, by an informative prior [1]_.

    With y the counts of the class, n their sum, y' and n' those of the rest, and a Dirichlet prior
    α with sum α0::

        δ = log((y + α) / (n + α0 - y - α)) - log((y' + α) / (n' + α0 - y' - α))
        z = δ / sqrt(1 / (y + α) + 1 / (y' + α))

    The prior is the corpus itself: α = y + y', so α0 = n + n'. It needs no parameter, a term that
    is as frequent in the class as elsewhere gets 0, and frequent words are shrunk most.

    The formula assumes that occurrences are independent. So a term that one document repeats a
    thousand times looks surer than it is, but not in a model that counts it once per document.

    Parameters
    ----------
    statistics : Counts
        Occurrences per class.
    total : (n_features,)
        Counts of all classes.
    k : int
        Which class.
    terms : int64 (n_terms,)
        Columns to judge; each must occur somewhere.

    Returns
    -------
    float64 (n_terms,)
        Above 0 if the class has more of the term than its share.

    Examples
    --------
    >>> counts = Counts.from_table(
    ...     np.array(["a", "b"]), np.array([1, 1]), np.array([[3, 1], [1, 3]]))
    >>> dirichlet_z(counts, np.array([4, 4]), 0, np.array([0, 1])).round(4).tolist()
    [1.1493, -1.1493]
    """
    counts = statistics.of_class(k)
    n, prior_sum = float(counts.sum()), float(total.sum())
    prior = total[terms].astype(np.float64)
    own = counts[terms] + prior
    rest = prior - counts[terms] + prior
    with np.errstate(divide="ignore", invalid="ignore"):
        delta = (np.log(own / (n + prior_sum - own))
                 - np.log(rest / (prior_sum - n + prior_sum - rest)))
    z: Floats = delta / np.sqrt(1.0 / own + 1.0 / rest)
    # If there is only one term, its odds are infinite in each class, and it distinguishes none.
    return np.nan_to_num(z, nan=0.0)


def proportion_z(statistics: Counts, total: NDArray[Any], k: int, terms: Terms) -> Floats:
    """z-scores of the log-odds ratio of two proportions, class k against the rest.

    Of the N documents of the class a hold the term, and of the N' others a'. Half a document is
    added to each of the four counts [2]_, so that none is 0::

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
    documents = float(statistics.class_count[k])
    others = float(statistics.class_count.sum()) - documents
    present = statistics.of_class(k)[terms]
    cells = [present + 0.5, documents - present + 0.5]
    present_elsewhere = total[terms] - present
    cells += [present_elsewhere + 0.5, others - present_elsewhere + 0.5]
    delta = np.log(cells[0] / cells[1]) - np.log(cells[2] / cells[3])
    z: Floats = delta / np.sqrt(np.sum([1.0 / cell for cell in cells], axis=0))
    return z
