"""Models that learn from rows at once: their matrices, and complement on tf-idf.

The oracle of `TfidfComplementNB` is scikit-learn's tf-idf, and its ComplementNB on that.
"""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.naive_bayes import ComplementNB as SklearnComplementNB

import textnb
from tests.bayes.samples import some_counts
from tests.classifier.models import NEWS
from textnb import NBLinear, NBLogisticRegression, TextClassifier, TfidfComplementNB, Tokenizer

ROW_MODELS = [NBLinear(), TfidfComplementNB(norm=True), NBLogisticRegression()]


@pytest.mark.parametrize("estimator", ROW_MODELS, ids=repr)
def test_text_classifier_has_the_weights_of_a_fit_on_its_count_matrix(estimator):
    model = TextClassifier(estimator, tokenizer=Tokenizer()).fit(NEWS)
    rows = model.transform(NEWS)
    own = estimator.fit(rows, NEWS["label"].to_numpy())
    assert np.array_equal(own.linear_form().weights, model.linear_form().weights)
    assert np.array_equal(own.predict(rows), model.predict(NEWS["text"]))


# Complement on tf-idf


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("steps", [{}, {"idf": False}, {"unit_length": False}, {"tf": "count"}],
                         ids=str)
def test_scores_are_those_of_scikit_learn(steps, classes, norm):
    counts, y = some_counts(classes)
    unknown, _ = some_counts(classes, seed=1)
    model = TfidfComplementNB(l=0.3, norm=norm, **steps).fit(counts, y)
    transformer = TfidfTransformer(
        sublinear_tf=model.tf == "sublinear", use_idf=model.idf,
        norm="l2" if model.unit_length else None)
    reference = SklearnComplementNB(alpha=0.3, norm=norm).fit(transformer.fit_transform(counts), y)
    for rows in (counts, unknown):
        expected = reference.predict_joint_log_proba(transformer.transform(rows))
        assert model.predict_joint_log_proba(rows) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_a_single_term_has_weight_0_and_there_are_no_priors():
    model = TfidfComplementNB(norm=True).fit([[1], [2]], ["a", "b"])
    assert not model.linear_form().weights.any()
    assert model.class_log_prior(model.statistics_) is None


def test_calibration_makes_probabilities_of_its_margins():
    model = TextClassifier(TfidfComplementNB(norm=True)).fit(NEWS)
    before = model.predict_proba(NEWS)
    assert before.max() < 0.26, "normalised weights are small, and margins with them"
    model.set_calibration(textnb.calibrate(model, NEWS))
    assert model.predict_proba(NEWS).max() > 0.6
