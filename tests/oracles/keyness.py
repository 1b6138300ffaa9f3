"""Monroe, Colaresi, Quinn (2008), Fightin' Words, and the log-odds ratio of a 2 x 2 table.

Ω of eq. 15 is a ratio of odds, exact here as a fraction; ζ of eq. 22 is its logarithm over the
standard error of eq. 19, with the prior of eq. 23, of the size of the corpus.
"""

import math
from fractions import Fraction


def fightin_words(counts, k, t):
    """ζ of term t for class k, against all other classes as one."""
    own, others = counts[k], [sum(row[j] for i, row in enumerate(counts) if i != k)
                              for j in range(len(counts[k]))]
    prior = [a + b for a, b in zip(own, others, strict=True)]
    odds = []
    for y in (own, others):
        posterior = Fraction(y[t] + prior[t])
        odds.append(posterior / (sum(y) + sum(prior) - posterior))
    variance = Fraction(1, own[t] + prior[t]) + Fraction(1, others[t] + prior[t])
    return math.log(odds[0] / odds[1]) / math.sqrt(variance)


def two_proportions(counts, rows, k, t):
    """z of the log-odds ratio of holding term t, with half a row more in each cell."""
    half = Fraction(1, 2)
    held, without = counts[k][t] + half, rows[k] - counts[k][t] + half
    elsewhere = sum(row[t] for i, row in enumerate(counts) if i != k)
    held_rest, without_rest = elsewhere + half, sum(rows) - rows[k] - elsewhere + half
    ratio = (held / without) / (held_rest / without_rest)
    variance = 1 / held + 1 / without + 1 / held_rest + 1 / without_rest
    return math.log(ratio) / math.sqrt(variance)
