"""Counts by class, one row and one cell at a time."""

from collections.abc import Hashable, Sequence
from fractions import Fraction

from tests.oracles.exact import Number

Rows = Sequence[Sequence[Number]]
Labels = Sequence[Hashable]
Weights = Sequence[Number] | None


def of_class(rows, labels, label, weights=None):
    """How often each feature occurs in the rows of a class."""
    counts = [Fraction(0)] * len(rows[0])
    for i, row in enumerate(rows):
        if labels[i] == label:
            for j, value in enumerate(row):
                counts[j] += _weight(weights, i) * Fraction(value)
    return counts


def holding(rows, labels, label, above=0, weights=None):
    """How many rows of a class hold each feature."""
    return of_class([present(row, above) for row in rows], labels, label, weights)


def in_category(rows, labels, label, feature, n_categories, weights=None):
    """How many rows of a class have each category of one feature."""
    counts = [Fraction(0)] * n_categories
    for i, row in enumerate(rows):
        if labels[i] == label:
            counts[int(row[feature])] += _weight(weights, i)
    return counts


def size(labels, label, weights=None):
    """How many rows a class has."""
    return sum((_weight(weights, i) for i, own in enumerate(labels) if own == label), Fraction(0))


def share(labels, label, weights=None):
    """The class's share of the rows: its prior."""
    return size(labels, label, weights) / sum(_weight(weights, i) for i in range(len(labels)))


def present(row, above=0):
    """1 for each value above a threshold, 0 for the others."""
    return [1 if value > above else 0 for value in row]


def _weight(weights, i):
    return Fraction(1) if weights is None else Fraction(weights[i])
