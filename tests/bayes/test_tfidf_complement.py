"""`TfidfComplementNB`: scikit-learn's tf-idf and ComplementNB as the oracle, and each service."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.naive_bayes import ComplementNB as SklearnComplementNB
from sklearn.utils.estimator_checks import parametrize_with_checks

import textnb
from tests.classifier.models import NEWS, SPAM
from tests.oracles.scikit_learn import expected_failures
from textnb import MailFilter, TextClassifier, TfidfComplementNB, Tokenizer
from textnb.errors import DataError, ExportError, ParameterError
from textnb.models.known import model_named


# The checks pass fractions, and below 1/e these have no sublinear tf.
@parametrize_with_checks([TfidfComplementNB(tf="count"), TfidfComplementNB(tf="count", norm=True)],
                         expected_failed_checks=expected_failures)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def some_counts(classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, 150)
    rates = rng.gamma(0.3, 1.0, (classes, 80))
    return sp.csr_array(rng.poisson(rates[y] * 0.6)), y


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


def test_sample_weights_are_rows_that_came_more_often():
    counts, y = some_counts(3)
    weight = np.arange(len(y)) % 3 + 1.0
    weighted = TfidfComplementNB().fit(counts, y, sample_weight=weight)
    often = np.repeat(np.arange(len(y)), weight.astype(int))
    repeated = TfidfComplementNB().fit(counts[often], y[often])
    assert weighted.linear_form().weights == pytest.approx(repeated.linear_form().weights,
                                                           rel=1e-12)
    assert weighted.feature_map_.steps[1].weights == pytest.approx(
        repeated.feature_map_.steps[1].weights, rel=1e-12)


def test_class_weights_scale_the_sums_of_classes():
    counts, y = some_counts(3)
    plain = TfidfComplementNB(idf=False).fit(counts, y, sample_weight=np.array([1.0, 4, 2])[y])
    weighted = TfidfComplementNB(idf=False, class_weight={1: 4, 2: 2}).fit(counts, y)
    assert weighted.linear_form().weights == pytest.approx(plain.linear_form().weights, rel=1e-12)
    assert weighted.feature_count_.dtype == np.int64


@pytest.mark.parametrize(("settings", "message"), [
    ({"l": -1}, "l must be"), ({"l": "auto"}, "l must be .* alone choose it by 'auto'"),
    ({"norm": True, "l": 0}, "infinite with l = 0"), ({"norm": 2}, "norm must be"),
    ({"tf": "log"}, "tf"), ({"idf": 2}, "idf must be"), ({"unit_length": 0}, "unit_length must")])
def test_settings_out_of_range_are_named(settings, message):
    counts, y = some_counts(2)
    with pytest.raises(ParameterError, match=message):
        TfidfComplementNB(**settings).fit(counts, y)


def test_what_has_no_exact_way_is_refused_by_name():
    model = TextClassifier(TfidfComplementNB()).fit(SPAM)
    for change in (model.partial_fit, model.forget):
        with pytest.raises(ParameterError, match="TfidfComplementNB learns from all documents at"):
            change(SPAM)
    with pytest.raises(ParameterError, match="TfidfComplementNB"):
        textnb.leave_one_out(model, SPAM)
    with pytest.raises(ParameterError, match="keeps the matrix of all documents"):
        TextClassifier(TfidfComplementNB(), memory_limit=1 << 20).fit(SPAM)
    with pytest.raises(ParameterError, match="counts alone don't give its weights"):
        model_named("TfidfComplementNB", {}).derive(model.estimator_.statistics_)
    with pytest.raises(DataError, match="has to be greater than one"):
        TfidfComplementNB().fit([[1, 0], [0, 1]], ["a", "a"])
    with pytest.raises(DataError, match=r"below 0 for 0\.25: its sums have no logarithm"):
        TfidfComplementNB().fit([[1, 0.25], [0, 1]], ["a", "b"])


def test_one_term_alone_tells_nothing():
    model = TfidfComplementNB(norm=True).fit([[1], [2]], ["a", "b"])
    assert not model.linear_form().weights.any()


@pytest.mark.parametrize("train", [SPAM, NEWS], ids=["two classes", "four classes"])
@pytest.mark.parametrize("settings", [{}, {"binary": True}, {"min_df": 3}], ids=str)
def test_a_file_keeps_every_bit(tmp_path, train, settings):
    model = TextClassifier(TfidfComplementNB(norm=True), **settings).fit(train)
    model.save(tmp_path / "model.textnb")
    loaded = textnb.load(tmp_path / "model.textnb")
    assert loaded.estimator.get_params() == model.estimator.get_params()
    assert np.array_equal(loaded.predict_proba(train["text"]), model.predict_proba(train["text"]))
    assert loaded.linear_form().features == model.linear_form().features


def test_a_classifier_of_texts_has_the_weights_of_the_matrix():
    model = TextClassifier(TfidfComplementNB()).fit(NEWS)
    own = TfidfComplementNB().fit(model.transform(NEWS), NEWS["label"].to_numpy())
    assert np.array_equal(own.linear_form().weights, model.linear_form().weights)


@pytest.mark.parametrize("target", ["json", "parquet", "python", "javascript", "sql-sqlite",
                                    "polars"])
def test_exports_have_its_feature_map(tmp_path, target):
    model = TextClassifier(TfidfComplementNB(norm=True), text="text").fit(
        NEWS.drop_nulls("text"))
    textnb.export_model(model, tmp_path / "out", target)
    assert textnb.verify_export(tmp_path / "out").passed


def test_weights_alone_do_not_hold_its_feature_map(tmp_path):
    model = TextClassifier(TfidfComplementNB()).fit(SPAM)
    with pytest.raises(ExportError, match="sublinear is not known there"):
        textnb.export_model(model, tmp_path / "out", "npz")


def test_calibration_makes_probabilities_of_its_margins():
    model = TextClassifier(TfidfComplementNB(norm=True)).fit(NEWS)
    before = model.predict_proba(NEWS)
    assert before.max() < 0.26, "normalised weights are small, and margins with them"
    model.set_calibration(textnb.calibrate(model, NEWS))
    assert model.predict_proba(NEWS).max() > 0.6


def test_cross_validation_fits_it_anew_for_each_fold():
    model = TextClassifier(TfidfComplementNB(), tokenizer=Tokenizer(ngram_range=(1, 2)))
    assert textnb.cross_validate(model, NEWS, folds=3).accuracy > 0.4


def test_its_mail_filter_has_the_verdicts_of_the_model(tmp_path):
    rows = SPAM.drop_nulls("text").rename({"text": "body"})
    model = TextClassifier(TfidfComplementNB(), text="body").fit(rows)
    model.save(tmp_path / "m.textnb")
    judge = MailFilter.load(tmp_path / "m.textnb")
    for text in rows["body"].head(10):
        verdict = judge.judge(b"Subject: x\n\n" + text.encode())
        assert verdict.measure == "margin"
        margin = np.diff(model.predict_joint_log_proba([text])[0])[0]
        assert verdict.log_odds == pytest.approx(margin, abs=1e-12)
