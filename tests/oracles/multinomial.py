"""Manning, Raghavan, Schütze (2008), Introduction to Information Retrieval, eq. 13.3 and 13.7."""

from fractions import Fraction

from tests.oracles import counting
from tests.oracles.exact import log, per_feature, total


def theta(counts, l):
    """θ_t = (n_t + l_t) / Σ_j (n_j + l_j); 0 where nothing was seen and nothing is smoothed."""
    smoothed = [Fraction(n) + each for n, each in zip(counts, per_feature(l, len(counts)),
                                                      strict=True)]
    whole = sum(smoothed)
    return [value / whole if whole else Fraction(0) for value in smoothed]


def joint(prior, theta, row):
    """log P(row, class) = log π + Σ_t x_t log θ_t, over the features that the row holds."""
    return total([log(prior), *(float(x) * log(q) for x, q in zip(row, theta, strict=True) if x)])


def scores(rows, labels, row, l, weights=None):
    """The joint log-probabilities of a row, by sorted class, learned from labelled rows."""
    return [
        joint(counting.share(labels, label, weights),
              theta(counting.of_class(rows, labels, label, weights), l), row)
        for label in sorted(set(labels))
    ]
