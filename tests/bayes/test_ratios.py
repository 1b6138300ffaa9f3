"""A form from counts alone is the estimator's to the bit; from plain numbers, to 1e-12."""

import numpy as np
import pytest

from textnb import BernoulliNB, ComplementNB, MultinomialNB
from textnb.bayes.counts import Counts
from textnb.bayes.forms import RequiredTermsForm
from textnb.bayes.ratios import TermSums, log_prior, log_ratio
from textnb.models.known import model_named

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
    MultinomialNB(), MultinomialNB(fit_prior=False), MultinomialNB(class_prior=[0.5, 0.3, 0.2]),
    BernoulliNB(), ComplementNB(), ComplementNB(norm=True)], ids=repr)
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


SMALL = Counts.from_table(np.array(["a", "b", "c"]), np.array([3, 1, 2]),
                         np.array([[3, 0, 1, 2], [0, 1, 0, 1], [2, 2, 0, 0]]))


@pytest.mark.parametrize("estimator", [
    MultinomialNB(), MultinomialNB(l=0.0), MultinomialNB(l=0.1, fit_prior=False),
    MultinomialNB(class_prior=[0.2, 0.3, 0.5]), MultinomialNB(l=[1.0, 0.5, 2.0, 0.1]),
    BernoulliNB(), BernoulliNB(l=0.0), BernoulliNB(binarize=1.0), BernoulliNB(binarize=None),
    ComplementNB(), ComplementNB(norm=True), ComplementNB(l=0.0),
], ids=repr)
@pytest.mark.parametrize("classes", [3, 1])
def test_it_is_the_estimators_form(estimator, classes):
    if classes == 1 and estimator.class_prior is not None:
        estimator = estimator.set_params(class_prior=[1.0])
    counts = Counts.from_table(SMALL.classes[:classes], SMALL.class_count[:classes],
                             SMALL.feature_count[:classes])
    expected = estimator.fit_statistics(counts).linear_form()
    found = model_named(type(estimator).__name__, estimator.get_params()).derive(counts)
    assert found.weights.tobytes() == expected.weights.tobytes()
    assert found.intercept.tobytes() == expected.intercept.tobytes()
    assert found.features == expected.features
    assert type(found) is type(expected)
    if isinstance(found, RequiredTermsForm):
        assert (found.required.toarray() == expected.required.toarray()).all()


def test_a_term_once_per_document():
    form = model_named("MultinomialNB", {}).derive(SMALL, binary=True)
    assert form.presence_above == 0.0
