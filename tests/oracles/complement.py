"""Rennie, Shih, Teevan, Karger (2003), Tackling the poor assumptions of naive Bayes, table 4.

Steps 4 to 8, on counts as they are (steps 1 to 3, the transformations of counts, are left out).
"""

from fractions import Fraction

from tests.oracles import counting
from tests.oracles.exact import log, per_feature, total


def theta(counts, k, l):
    """θ_t of all classes but k: their counts of t, + l_t, over the sum of these."""
    smoothed = per_feature(l, len(counts[k]))
    for other, own in enumerate(counts):
        if other != k:
            smoothed = [sum_ + Fraction(n) for sum_, n in zip(smoothed, own, strict=True)]
    whole = sum(smoothed)
    return [value / whole if whole else Fraction(0) for value in smoothed]


def weights(theta, norm):
    """-log θ, so that the highest score wins; with norm, over the sum of absolute values."""
    logs = [log(q) for q in theta]
    whole = total(abs(value) for value in logs) if norm else 1.0
    return [-value / whole for value in logs]


def scores(rows, labels, row, l, norm=False, weighted=None):
    """The scores of a row, by sorted class, learned from labelled rows; they hold no prior."""
    classes = sorted(set(labels))
    counts = [counting.of_class(rows, labels, label, weighted) for label in classes]
    return [
        total(float(x) * w
              for x, w in zip(row, weights(theta(counts, k, l), norm), strict=True) if x)
        for k in range(len(classes))
    ]
