"""The terms of a message that decide its verdict. It imports the standard library alone."""

from __future__ import annotations

from collections.abc import Sequence

Weights = Sequence[float]


def deciding_terms(
    found: Sequence[tuple[float, tuple[str, Weights]]], intercept: Weights, spam: int,
    divisor: float, k: int,
) -> list[tuple[str, float]]:
    """The terms that move the log-odds of spam most.

    Parameters
    ----------
    found : sequence of (value, (term, weights))
        The terms of a message that the model has, with what its feature map makes of their counts.
    intercept : sequence of float
        One per class.
    spam : int
        The index of the class of spam.
    divisor : float
        What calibration divides scores by.
    k : int
        The number of terms.

    Returns
    -------
    list of (term, points)
        The contribution of each to the log-odds of spam against the most probable other class, base
        e, the largest first.

    Examples
    --------
    >>> deciding_terms([(1.0, ("a", [0.5, 0.0])), (2.0, ("b", [0.0, 1.5]))], [0.0, 0.0], 0, 1.0, 9)
    [('b', -3.0), ('a', 0.5)]
    """
    scores = [start + sum(value * weights[at] for value, (_, weights) in found)
              for at, start in enumerate(intercept)]
    others = [at for at in range(len(scores)) if at != spam]
    if not others:
        return []
    other = max(others, key=scores.__getitem__)
    points = [(term, value * (weights[spam] - weights[other]) / divisor)
              for value, (term, weights) in found]
    # Not comparable where every class finds the term impossible (l = 0).
    points = [one for one in points if one[1] == one[1]]
    return sorted(points, key=lambda one: (-abs(one[1]), one[0]))[:k]
