"""Manning, Raghavan, Schütze (2008), Introduction to Information Retrieval, fig. 13.3."""

from fractions import Fraction

from tests.oracles import counting
from tests.oracles.exact import log, per_feature, total


def presence(held, rows, l):
    """p_t = (rows that hold t + l_t) / (rows + 2 l_t); 0 where nothing is known of a class."""
    probabilities = []
    for n, each in zip(held, per_feature(l, len(held)), strict=True):
        whole = Fraction(rows) + 2 * each
        probabilities.append((Fraction(n) + each) / whole if whole else Fraction(0))
    return probabilities


def joint(prior, p, present):
    """log P(row, class): each feature's presence or absence, one after the other."""
    return total([log(prior), *(log(q) if x else log(1 - q)
                                for x, q in zip(present, p, strict=True))])


def scores(rows, labels, row, l, above=0, weights=None):
    """The joint log-probabilities of a row, by sorted class, learned from labelled rows."""
    return [
        joint(counting.share(labels, label, weights),
              presence(counting.holding(rows, labels, label, above, weights),
                       counting.size(labels, label, weights), l),
              counting.present(row, above))
        for label in sorted(set(labels))
    ]
