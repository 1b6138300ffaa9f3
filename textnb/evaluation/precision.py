"""The search for a threshold at which the precision of answers can be shown.

References
----------
.. [1] P. Bauer (1991). Multiple testing in clinical trials. Statistics in Medicine 10, 871-890.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.evaluation.binomial import lower_bound, trials_needed
from textnb.evaluation.decisions import threshold_above

# Each prefix is this many times as long as the one before.
_GROWTH = 1.1


def lowest_threshold_of_precision(
    label: Any, odds: Floats, right: NDArray[np.bool_], least: float, confidence: float,
    floor: float = 0.0,
) -> dict[str, Any]:
    """Find the lowest threshold at which the precision of a class can be shown.

    Parameters
    ----------
    label : label
    odds : float64 (n_documents,)
    right : bool (n_documents,)
        Which documents have the label.
    least : float
        The precision.
    confidence : float
    floor : float
        No threshold is below this.

    Returns
    -------
    dict
        ``label``, ``threshold`` (None where it can't be shown), ``answered``, ``correct``,
        ``precision_bound``, ``candidates``, ``starts``.
    """
    own = odds >= floor
    order = np.argsort(-odds[own], kind="stable")
    scores, hits = odds[own][order], right[own][order].cumsum()
    starts, level = _start_lengths(len(scores), least, confidence)
    entry = {"label": label, "threshold": None, "answered": 0, "correct": 0,
             "precision_bound": None, "candidates": len(scores), "starts": starts}
    for start in starts:
        length = start
        while True:
            # No threshold separates equal scores, so a prefix holds all or none of them.
            n = int(np.searchsorted(-scores, -scores[length - 1], side="right"))
            bound = lower_bound(int(hits[n - 1]), n, level)
            if bound < least:
                break
            if n > int(entry["answered"]):
                left_out = float(scores[n]) if n < len(scores) else -np.inf
                entry |= {"threshold": max(floor, threshold_above(left_out, scores)), "answered": n,
                          "correct": int(hits[n - 1]), "precision_bound": bound}
            if n == len(scores):
                break
            length = min(len(scores), max(n + 1, math.ceil(length * _GROWTH)))
    return entry


def _start_lengths(n: int, least: float, confidence: float) -> tuple[list[int], float]:
    """The lengths of the first prefixes, and the confidence of each of their tests.

    >>> _start_lengths(300, 0.95, 0.95)
    ([80, 160], 0.9833333333333333)
    """
    fewest = trials_needed(1.0 - least, confidence)
    if n < fewest:
        return [], confidence
    shares = 1 + int(math.log2(n / fewest))
    level = 1.0 - (1.0 - confidence) / shares
    first = trials_needed(1.0 - least, level)
    return [length for j in range(shares) if (length := first << j) <= n], level
