"""Clopper and Pearson's exact bounds [1]_ on a share, and the numbers of trials that they need.

References
----------
.. [1] C. J. Clopper, E. S. Pearson (1934). The use of confidence or fiducial limits illustrated in
   the case of the binomial. Biometrika 26, 404-413.
"""

from __future__ import annotations

import math
from typing import Any

from textnb.errors import ParameterError
from textnb.runtime.settings import SHARE


def upper_bound(events: int, trials: int, confidence: float) -> float:
    """The one-sided upper bound on a share: the p with P(X <= events) = 1 - confidence.

    X, the number of events, is binomial with ``trials`` trials of probability p.

    Examples
    --------
    >>> round(upper_bound(0, 2995, 0.95), 6)
    0.001
    """
    from scipy.special import betaincinv

    if events >= trials:
        return 1.0
    return float(betaincinv(events + 1, trials - events, confidence))


def lower_bound(events: int, trials: int, confidence: float) -> float:
    """The one-sided lower bound on a share: the p with P(X >= events) = 1 - confidence.

    X is as in `upper_bound`.

    Examples
    --------
    >>> round(lower_bound(59, 59, 0.95), 4)
    0.9505
    """
    from scipy.special import betaincinv

    if events <= 0:
        return 0.0
    return float(betaincinv(events, trials - events + 1, 1.0 - confidence))


def errors_allowed(trials: int, rate: float, confidence: float) -> int:
    """The largest number of events whose `upper_bound` is at most ``rate``; -1 if 0 is too many.

    Examples
    --------
    >>> errors_allowed(2994, 0.001, 0.95), errors_allowed(2995, 0.001, 0.95)
    (-1, 0)
    """
    from scipy.special import bdtr

    # bdtr(k, trials, rate) is P(X <= k), for the X of `upper_bound`. If it is at most
    # 1 - confidence, the bound is at most the rate.
    allowed, too_many = -1, trials
    while too_many - allowed > 1:
        middle = (allowed + too_many) // 2
        if bdtr(middle, trials, rate) <= 1.0 - confidence:
            allowed = middle
        else:
            too_many = middle
    return allowed


def trials_needed(rate: float, confidence: float) -> int:
    """The fewest trials without an event that show a rate to be at most ``rate``.

    It is the smallest number with (1 - rate) ** trials <= 1 - confidence.

    Examples
    --------
    >>> trials_needed(0.001, 0.95)
    2995
    """
    return math.ceil(math.log1p(-confidence) / math.log1p(-rate))


def check_share(name: str, value: Any) -> None:
    """Raise ParameterError unless the value is a number above 0 and below 1."""
    if not SHARE.holds(value):
        raise ParameterError.out_of_range(name, SHARE.says, value)
