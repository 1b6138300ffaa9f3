"""The weight of a single term, from plain numbers as a filter has them, is that of arrays."""

import numpy as np
import pytest

from tests.bayes.samples import COUNT_MODELS
from textnb import ComplementNB, MultinomialNB
from textnb.bayes.counts import Counts
from textnb.bayes.ratios import TermSums, log_prior, log_ratio

COUNTS = np.array([[5, 0, 1, 40_000_000], [0, 2, 1, 3], [7, 7, 0, 0]])
ROWS = np.array([40_000_000, 9, 7])


def sums_of(model, l):
    """The sums of a file, from the formulas on arrays."""
    # From counts: 1 - p loses its digits where p is nearly 1.
    absent = (ROWS[:, None] - COUNTS + l) / (ROWS[:, None] + 2.0 * l)
    others = COUNTS.sum(axis=0) - COUNTS + l
    found = {"counts": COUNTS.sum(axis=1), "norms": np.log(others / others.sum(
        axis=1, keepdims=True)).sum(axis=1), "absent": np.log(absent).sum(axis=1)}
    return TermSums(l, COUNTS.shape[1], ROWS.tolist(), **{
        name: found[name].tolist() for name in model.sums})


@pytest.mark.parametrize("l", [1e-6, 0.1, 1.0, 7.5, 1000.0])
@pytest.mark.parametrize("model", [
    *(kind() for kind in COUNT_MODELS if kind().sums), MultinomialNB(fit_prior=False),
    MultinomialNB(class_prior=[0.5, 0.3, 0.2]), ComplementNB(norm=True)], ids=repr)
def test_plain_numbers_and_arrays_agree(model, l):
    model = model.with_smoothing(l)
    form = model.derive(Counts.from_table(np.arange(3), ROWS, COUNTS))
    sums = sums_of(model, l)
    for term in range(COUNTS.shape[1]):
        own = {k: n for k, n in enumerate(COUNTS[:, term].tolist()) if n}
        np.testing.assert_allclose(
            model.weigh_term(own, sums), form.weights[term], rtol=1e-12, atol=1e-12)
    prior = [log_prior(n, int(ROWS.sum()), 3, given, model.fit_prior, log_ratio)
             for n, given in zip(ROWS.tolist(), model.class_prior or [None] * 3, strict=True)]
    np.testing.assert_allclose(model.intercept_of(sums, prior), form.intercept, rtol=1e-9)


def test_one_class_has_a_prior():
    sums = TermSums(1.0, 1, [3], [3])
    assert ComplementNB().intercept_of(sums, [0.0]) == [0.0]
    assert ComplementNB().intercept_of(sums, [-1.0]) == [-1.0]
    assert ComplementNB().intercept_of(sums, [-1.0, -2.0]) == [0.0, 0.0]
