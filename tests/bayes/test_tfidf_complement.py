"""`TfidfComplementNB`: scikit-learn's tf-idf and ComplementNB as the oracle, and each service."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.naive_bayes import ComplementNB as SklearnComplementNB

import textnb
from tests.bayes.test_row_models import some_counts
from tests.classifier.models import NEWS
from textnb import TextClassifier, TfidfComplementNB, Tokenizer


def test_by_hand():
    """Presence alone: sums are documents, and weights logarithms of fractions."""
    counts = [[2, 0, 1], [1, 1, 0], [0, 3, 1]]
    model = TfidfComplementNB(tf="presence", idf=False, unit_length=False).fit(
        counts, ["a", "a", "b"])
    # Class b has the terms (0, 1, 1), and class a (2, 1, 1); 1 is added to each.
    of_a = [Fraction(1, 5), Fraction(2, 5), Fraction(2, 5)]
    of_b = [Fraction(3, 7), Fraction(2, 7), Fraction(2, 7)]
    expected = np.array([[-np.log(float(a)), -np.log(float(b))]
                         for a, b in zip(of_a, of_b, strict=True)])
    assert model.linear_form().weights == pytest.approx(expected, rel=1e-14)
    assert model.feature_count_.tolist() == [[2, 1, 1], [0, 1, 1]]


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
    theirs = SklearnComplementNB(alpha=0.3, norm=norm).fit(transformer.fit_transform(counts), y)
    for rows in (counts, unknown):
        expected = theirs.predict_joint_log_proba(transformer.transform(rows))
        assert model.predict_joint_log_proba(rows) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_class_weights_scale_the_sums_of_classes():
    counts, y = some_counts(3)
    plain = TfidfComplementNB(idf=False).fit(counts, y, sample_weight=np.array([1.0, 4, 2])[y])
    weighted = TfidfComplementNB(idf=False, class_weight={1: 4, 2: 2}).fit(counts, y)
    assert weighted.linear_form().weights == pytest.approx(plain.linear_form().weights, rel=1e-12)
    assert weighted.feature_count_.dtype == np.int64


def test_one_term_alone_tells_nothing_nor_do_priors():
    model = TfidfComplementNB(norm=True).fit([[1], [2]], ["a", "b"])
    assert not model.linear_form().weights.any()
    assert model.class_log_prior(model.statistics_) is None


def test_calibration_makes_probabilities_of_its_margins():
    model = TextClassifier(TfidfComplementNB(norm=True)).fit(NEWS)
    before = model.predict_proba(NEWS)
    assert before.max() < 0.26, "normalised weights are small, and margins with them"
    model.set_calibration(textnb.calibrate(model, NEWS))
    assert model.predict_proba(NEWS).max() > 0.6


def test_cross_validation_fits_it_anew_for_each_fold():
    model = TextClassifier(TfidfComplementNB(), tokenizer=Tokenizer(ngram_range=(1, 2)))
    assert textnb.cross_validate(model, NEWS, folds=3).accuracy > 0.4
