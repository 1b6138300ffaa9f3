"""`NBLinear`: scikit-learn's tf-idf and LinearSVC as the oracle, and what holds for every model."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import textnb
from tests.bayes.test_row_models import some_counts
from tests.classifier.models import NEWS, SPAM
from textnb import NBLinear, NBLogisticRegression, TextClassifier
from textnb.bayes import linear_solver
from textnb.bayes.calibration import Calibration
from textnb.bayes.temperature import best_temperature
from textnb.errors import ParameterError


def ratio_by_hand(counts, positive, l, weight=None):
    """Of documents that hold a term, in the class and in all others."""
    present = (counts.toarray() > 0) * (1.0 if weight is None else weight[:, None])
    p, q = present[positive].sum(axis=0) + l, present[~positive].sum(axis=0) + l
    return np.log(p / p.sum() / (q / q.sum()))


def svm(loss, C):
    if loss == "hinge":
        return LinearSVC(C=C, tol=1e-10, max_iter=100_000, dual=False)
    return LogisticRegression(C=C, tol=1e-10, max_iter=100_000, solver="liblinear")


@pytest.mark.parametrize("loss", ["hinge", "log"])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("classes", [2, 4])
def test_weights_are_those_of_scikit_learns_tf_idf_and_liblinear(loss, power, classes):
    counts, y = some_counts(classes)
    own = NBLinear(loss=loss, power=power, C=2.0, tol=1e-9).fit(counts, y)
    tf_idf = TfidfTransformer(sublinear_tf=True).fit(counts)
    rows = tf_idf.transform(counts)
    np.testing.assert_allclose(own.linear_form().used(counts).toarray(), rows.toarray(), atol=1e-12)
    for k in range(classes) if classes > 2 else [1]:
        scale = np.abs(ratio_by_hand(counts, y == k, 0.3)) ** power
        expected = svm(loss, 2.0).fit(sp.csr_matrix(rows @ sp.diags_array(scale)), y == k)
        mine = (own.coef_, own.intercept_) if classes > 2 else (
            np.vstack([own.coef_, own.coef_]), np.repeat(own.intercept_, 2))
        np.testing.assert_allclose(mine[0][k], scale * expected.coef_[0], atol=1e-6)
        np.testing.assert_allclose(mine[1][k], expected.intercept_[0], atol=1e-6)


def test_class_weights_are_sample_weights_of_ratio_and_loss():
    counts, y = some_counts(2)
    by_class = NBLinear(class_weight={1: 3.0}, tol=1e-9, idf=False).fit(counts, y)
    by_row = NBLinear(tol=1e-9, idf=False).fit(counts, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, atol=1e-6)


def test_the_default_tolerance_decides_as_the_optimum_does():
    counts, y = some_counts(4, seed=3)
    loose, tight = NBLinear().fit(counts, y), NBLinear(tol=1e-9).fit(counts, y)
    assert (loose.predict(counts) == tight.predict(counts)).mean() > 0.98


def test_settings_make_the_feature_map():
    counts, y = some_counts(2)
    plain = NBLinear(tf="count", idf=False, unit_length=False).fit(counts, y)
    assert plain.feature_map_.steps == ()
    present = NBLinear(tf="presence", idf=False, unit_length=False).fit(counts, y)
    assert [step.name for step in present.feature_map_.steps] == ["presence"]
    assert [step.name for step in NBLinear().fit(counts, y).feature_map_.steps] == [
        "sublinear", "idf", "length"]


def test_counts_that_leave_all_rows_empty_leave_the_intercepts():
    model = NBLinear().fit(sp.csr_array((10, 3), dtype=np.int64), [0, 1] * 5)
    assert not model.coef_.any()


def test_the_temperature_is_that_of_documents_held_out():
    model = TextClassifier(NBLinear()).fit(SPAM)
    assert model.calibration_.method == "rows held out by fit"
    assert model.calibration_.documents == 2 * (120 // 5)
    place = np.zeros(SPAM.height, dtype=int)
    labels = SPAM["label"].to_numpy()
    for label in set(labels):
        place[labels == label] = np.arange((labels == label).sum())
    judge = place % 5 == 4
    first = TextClassifier(NBLinear(held_out=0), vocabulary=model.vocabulary_).fit(
        SPAM.filter(~judge))
    held = textnb.held_out(first, SPAM.filter(judge))
    found = textnb.fit_calibration(held, length_aware=False)
    # Both are the minimum of the log loss; they differ in how they doubt few documents.
    assert model.calibration_.temperature == pytest.approx(found.temperature, rel=0.1)
    assert TextClassifier(NBLinear(held_out=0)).fit(SPAM).calibration_ is None


def test_rare_classes_leave_no_model_without_a_temperature():
    few = pl.DataFrame({"text": ["zebra good news", "zebra", "zebra stripes"], "label": "animals"})
    rare = pl.DataFrame({"text": [f"letter {i} word{i}" for i in range(40)],
                         "label": [f"writer {i // 2}" for i in range(40)]})
    news = NEWS.select("text", "label")
    frequent = TextClassifier(NBLinear()).fit(news).calibration_
    assert TextClassifier(NBLinear()).fit(pl.concat([news, few])).calibration_.documents == (
        frequent.documents)
    # All rows of rare classes but the first of each take turns: 20 of 40, of which 4 are held out.
    model = TextClassifier(NBLinear()).fit(pl.concat([news, rare]))
    assert model.calibration_.documents == frequent.documents + 4
    assert len(model.classes_) == NEWS["label"].n_unique() + 20


def test_rows_of_one_class_choose_no_temperature():
    ham = SPAM.filter(pl.col("label") == "ham")
    spam = SPAM.filter(pl.col("label") == "spam").head(3)
    assert TextClassifier(NBLinear()).fit(pl.concat([ham, spam])).calibration_ is None


def test_probabilities_of_many_classes_are_normalised_sigmoids():
    model = TextClassifier(NBLinear()).fit(NEWS)
    found = model.calibration_
    assert found.link == "sigmoid"
    margins = model.predict_joint_log_proba(NEWS["text"])
    chances = 1.0 / (1.0 + np.exp(-(margins / found.temperature + found.shift)))
    np.testing.assert_allclose(model.predict_proba(NEWS["text"]),
                               chances / chances.sum(axis=1, keepdims=True), atol=1e-12)
    plain = TextClassifier(NBLinear(held_out=0)).fit(NEWS)
    assert model.predict(NEWS["text"]).tolist() == plain.predict(NEWS["text"]).tolist()


def test_a_calibration_of_sigmoids_is_kept_whole():
    found = Calibration(0.5, 0.0, 30, "folds", link="sigmoid", shift=1.5)
    assert Calibration.from_dict(found.to_dict()) == found
    assert set(Calibration(2.0).to_dict()) == {
        "temperature", "length_exponent", "documents", "method"}
    for wrong, message in (({"link": "probit"}, "link"), ({"shift": 1.0}, "a shift belongs to"),
                           ({"link": "sigmoid", "length_exponent": 0.5, "temperature": 2.0},
                            "one temperature for all documents")):
        with pytest.raises(ParameterError, match=message):
            Calibration(**wrong)
    for values in ({**found.to_dict(), "link": "softmax"},
                   {**Calibration().to_dict(), "shift": 0.0}):
        with pytest.raises(ParameterError, match="a calibration has other values"):
            Calibration.from_dict(values)


def test_too_few_documents_choose_no_temperature():
    few = pl.DataFrame({"text": ["aa bb", "cc dd", "aa", "dd"], "label": ["x", "y", "x", "y"]})
    model = TextClassifier(NBLinear()).fit(few)
    assert model.calibration_ is None
    assert model.predict(few["text"]).tolist() == ["x", "y", "x", "y"]


def test_the_temperature_minimises_the_log_loss():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 5000)
    scores = rng.normal(size=(5000, 3))
    scores[np.arange(5000), codes] += 1.0
    best = best_temperature(scores, codes)

    def loss(temperature):
        scaled = scores / temperature
        return float(np.mean(np.log(np.exp(scaled).sum(axis=1)) - scaled[np.arange(5000), codes]))

    assert loss(best) <= min(loss(0.98 * best), loss(1.02 * best))
    doubled = best_temperature(np.repeat(scores[:50], 2, axis=0), np.repeat(codes[:50], 2))
    weighted = best_temperature(scores[:50], codes[:50], np.full(50, 2.0))
    assert doubled == pytest.approx(weighted, rel=1e-9)


@pytest.mark.parametrize("train", [SPAM, NEWS], ids=["two classes", "four classes"])
@pytest.mark.parametrize("loss", ["hinge", "log"])
@pytest.mark.parametrize("descent", [False, True])
def test_a_warm_start_reaches_the_optimum_of_a_refit(train, loss, descent, monkeypatch):
    if descent:
        monkeypatch.setattr(linear_solver, "_MIN_VALUES", 0)
    settings = NBLinear(loss=loss, tol=1e-9)
    for before, after in ((train.head(100), train), (train, train.head(100))):
        cold = TextClassifier(settings).fit(after)
        warm = TextClassifier(settings).fit(before).fit(after, warm_start=True)
        assert warm.vocabulary_ == cold.vocabulary_
        np.testing.assert_allclose(
            warm.linear_form().weights, cold.linear_form().weights, rtol=0, atol=1e-6)
        np.testing.assert_allclose(
            warm.linear_form().intercept, cold.linear_form().intercept, rtol=0, atol=1e-6)
        assert warm.calibration_.temperature == pytest.approx(cold.calibration_.temperature)


def test_a_warm_start_takes_fewer_steps():
    # Words that two rows hold are needed: those of one row cost no step.
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{t}" for t in rng.zipf(1.3, 40) if t < 5000) for _ in range(1500)]
    labels = [["x", "y", "z"][(text.count("w3 ") + text.count("w7 ")) % 3] for text in texts]
    rows = pl.DataFrame({"text": texts, "label": labels})
    for tol in (1e-2, 1e-6):
        model = TextClassifier(NBLinear(tol=tol, held_out=0)).fit(rows[:1450])
        cold = TextClassifier(NBLinear(tol=tol, held_out=0)).fit(rows).estimator_.n_iter_
        assert model.fit(rows, warm_start=True).estimator_.n_iter_ < cold


def test_classes_that_are_new_begin_anew_and_two_classes_are_one_problem():
    settings = NBLinear(tol=1e-9, held_out=0)
    two = NEWS.filter(pl.col("label").is_in(NEWS["label"].unique().sort()[:2].to_list()))
    for before, after in ((two, NEWS), (NEWS, two)):
        warm = TextClassifier(settings).fit(before).fit(after, warm_start=True)
        cold = TextClassifier(settings).fit(after)
        np.testing.assert_allclose(
            warm.linear_form().weights, cold.linear_form().weights, rtol=0, atol=1e-6)
    first = TextClassifier(settings).fit(SPAM, warm_start=True)
    assert np.array_equal(first.linear_form().weights,
                          TextClassifier(settings).fit(SPAM).linear_form().weights)


@pytest.mark.parametrize("train", [SPAM, NEWS], ids=["two classes", "four classes"])
@pytest.mark.parametrize("estimator", [NBLinear(), NBLogisticRegression()])
def test_calibrate_takes_folds_where_rows_are_learned_at_once(train, estimator):
    model = TextClassifier(estimator).fit(train)
    found = textnb.calibrate(model, train)
    assert found.method == "5 folds"
    sigmoid = isinstance(estimator, NBLinear) and train is NEWS
    assert found.link == ("sigmoid" if sigmoid else "softmax")
    held = textnb.cross_validate(model, train)
    assert found == textnb.fit_calibration(held, link=found.link)
    loss = held.calibrated(found).log_loss
    if sigmoid:
        assert loss <= held.calibrated(textnb.fit_calibration(held, length_aware=False)).log_loss
    assert model.set_calibration(found).predict_proba(train["text"]).shape[1] == len(model.classes_)
