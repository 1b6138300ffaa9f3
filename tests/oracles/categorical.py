"""Categories of features: the smoothed categorical estimate, (n_c + l) / (n + l C)."""

from fractions import Fraction

from tests.oracles import counting
from tests.oracles.exact import log, per_feature, total


def theta(counts, l):
    """The probability of each category of one feature in one class."""
    whole = sum(Fraction(n) for n in counts) + Fraction(l) * len(counts)
    return [(Fraction(n) + Fraction(l)) / whole if whole else Fraction(0) for n in counts]


def scores(rows, labels, row, l, n_categories, weights=None):
    """The joint log-probabilities of a row, by sorted class, learned from labelled rows."""
    smoothing = per_feature(l, len(n_categories))
    joint = []
    for label in sorted(set(labels)):
        logs = [log(counting.share(labels, label, weights))]
        for i, category in enumerate(row):
            counts = counting.in_category(rows, labels, label, i, n_categories[i], weights)
            logs.append(log(theta(counts, smoothing[i])[int(category)]))
        joint.append(total(logs))
    return joint
