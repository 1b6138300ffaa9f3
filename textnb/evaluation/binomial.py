"""Exact bounds on a share, from counts of it: Clopper and Pearson's, and what follows from them.

References
----------
.. [1] C. J. Clopper, E. S. Pearson (1934). The use of confidence or fiducial limits illustrated in
   the case of the binomial. Biometrika 26, 404-413.
"""

from __future__ import annotations

import math
from typing import Any

from scipy.special import bdtr, betaincinv

from textnb.errors import ParameterError


def upper_bound(events: int, trials: int, confidence: float) -> float:
    """The one-sided upper bound on a share [1]_: the p at which P(so few events) = 1 - confidence.

    Examples
    --------
    >>> round(upper_bound(0, 2995, 0.95), 6)
    0.001
    """
    if events >= trials:
        return 1.0
    return float(betaincinv(events + 1, trials - events, confidence))


def lower_bound(events: int, trials: int, confidence: float) -> float:
    """The one-sided lower bound on a share [1]_: the p at which P(so many events) = 1 - confidence.

    Examples
    --------
    >>> round(lower_bound(59, 59, 0.95), 4)
    0.9505
    """
    if events <= 0:
        return 0.0
    return float(betaincinv(events, trials - events + 1, 1.0 - confidence))


def errors_allowed(trials: int, rate: float, confidence: float) -> int:
    """The most events whose `upper_bound` is at most ``rate``; -1 where even none is too many.

    Examples
    --------
    >>> errors_allowed(2994, 0.001, 0.95), errors_allowed(2995, 0.001, 0.95)
    (-1, 0)
    """
    allowed, too_many = -1, trials
    while too_many - allowed > 1:
        middle = (allowed + too_many) // 2
        if bdtr(middle, trials, rate) <= 1.0 - confidence:
            allowed = middle
        else:
            too_many = middle
    return allowed


def trials_needed(rate: float, confidence: float) -> int:
    """The fewest trials that can show a rate of events to be at most ``rate``, if none occurs.

    (1 - rate) ** trials <= 1 - confidence.

    Examples
    --------
    >>> trials_needed(0.001, 0.95)
    2995
    """
    return math.ceil(math.log1p(-confidence) / math.log1p(-rate))


def check_share(name: str, value: Any) -> float:
    """A number above 0 and below 1; ParameterError for any other."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise ParameterError.out_of_range(name, "a number above 0 and below 1", value)
    return float(value)
