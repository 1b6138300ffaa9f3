"""Exact numbers, and the only place where they are rounded: the logarithm."""

import math
from collections.abc import Sequence
from fractions import Fraction

Number = int | float | Fraction
Smoothing = Number | Sequence[Number]


def log(q):
    """log q, base e, with a relative error of a few 1e-16 also next to 1; -inf at 0."""
    if q == 0:
        return -math.inf
    if Fraction(1, 2) < q < 2:
        return math.log1p(float(q - 1))
    return math.log(float(q))


def total(terms):
    """A sum of logarithms, rounded once."""
    return math.fsum(terms)


def per_feature(l, n):
    """The smoothing of each of n features."""
    if isinstance(l, Sequence):
        assert len(l) == n
        return [Fraction(value) for value in l]
    return [Fraction(l)] * n
