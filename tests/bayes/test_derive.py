"""The form from counts alone is the estimator's form, to the bit."""


import numpy as np
import pytest

from textnb import BernoulliNB, ComplementNB, Counts, MultinomialNB
from textnb.bayes.special_forms import RequiredTermsForm
from textnb.models.known import model_named

COUNTS = Counts.from_table(np.array(["a", "b", "c"]), np.array([3, 1, 2]),
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
    counts = Counts.from_table(COUNTS.classes[:classes], COUNTS.class_count[:classes],
                             COUNTS.feature_count[:classes])
    expected = estimator.fit_statistics(counts).linear_form()
    found = model_named(type(estimator).__name__, estimator.get_params()).derive(counts)
    assert found.weights.tobytes() == expected.weights.tobytes()
    assert found.intercept.tobytes() == expected.intercept.tobytes()
    assert found.features == expected.features
    assert type(found) is type(expected)
    if isinstance(found, RequiredTermsForm):
        assert isinstance(expected, RequiredTermsForm)
        assert (found.required.toarray() == expected.required.toarray()).all()


def test_a_term_once_per_document():
    form = model_named("MultinomialNB", {}).derive(COUNTS, binary=True)
    assert form.presence_above == 0.0
