"""`NBLinear`: scikit-learn's tf-idf and LinearSVC as the oracle, and what holds for every model."""

import gc
import weakref

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

import textnb
from tests.bayes.samples import liblinear, some_counts
from tests.classifier.models import NEWS, SPAM
from textnb import NBLinear, NBLogisticRegression, TextClassifier, Tokenizer
from textnb.bayes import linear_solver
from textnb.bayes.calibration import Calibration
from textnb.bayes.losses import LOSSES
from textnb.bayes.solver_rows import SolverRows
from textnb.errors import ParameterError


def ratio_by_hand(counts, positive, l, weight=None):
    """Of documents that hold a term, in the class and in all others."""
    present = (counts.toarray() > 0) * (1.0 if weight is None else weight[:, None])
    p, q = present[positive].sum(axis=0) + l, present[~positive].sum(axis=0) + l
    return np.log(p / p.sum() / (q / q.sum()))


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
        expected = liblinear(loss, sp.csr_matrix(rows @ sp.diags_array(scale)), y == k, C=2.0)
        mine = (own.coef_, own.intercept_) if classes > 2 else (
            np.vstack([own.coef_, own.coef_]), np.repeat(own.intercept_, 2))
        np.testing.assert_allclose(mine[0][k], scale * expected.coef_[0], atol=1e-6)
        np.testing.assert_allclose(mine[1][k], expected.intercept_[0], atol=1e-6)


def test_the_default_tolerance_decides_as_the_optimum_does():
    counts, y = some_counts(4, seed=3)
    loose, tight = NBLinear().fit(counts, y), NBLinear(tol=1e-9).fit(counts, y)
    assert (loose.predict(counts) == tight.predict(counts)).mean() > 0.98


@pytest.mark.parametrize(("settings", "steps"), [
    ({}, ["sublinear", "idf", "length"]), ({"tf": "count", "idf": False, "unit_length": False}, []),
    ({"tf": "presence", "idf": False, "unit_length": False}, ["presence"])], ids=str)
def test_settings_make_the_feature_map(settings, steps):
    model = NBLinear(**settings).fit(*some_counts(2))
    assert [step.name for step in model.feature_map_.steps] == steps


def test_counts_that_leave_all_rows_empty_leave_the_intercepts():
    model = NBLinear().fit(sp.csr_array((10, 3), dtype=np.int64), [0, 1] * 5)
    assert not model.coef_.any()


def test_the_temperature_is_that_of_documents_held_out():
    model = TextClassifier(NBLinear()).fit(SPAM)
    assert model.calibration_.method == "rows held out by fit"
    assert model.calibration_.documents == 2 * (120 // 5)
    # Every fifth row of each class.
    judge = pl.int_range(pl.len()).over("label") % 5 == 4
    first = TextClassifier(NBLinear(held_out=0), vocabulary=model.vocabulary_).fit(
        SPAM.filter(~judge))
    found = textnb.fit_calibration(textnb.held_out(first, SPAM.filter(judge)), length_aware=False)
    # Both are the minimum of the log loss; they differ in how they doubt few documents.
    assert model.calibration_.temperature == pytest.approx(found.temperature, rel=0.1)
    assert TextClassifier(NBLinear(held_out=0)).fit(SPAM).calibration_ is None


@pytest.mark.slow
def test_a_model_of_the_others_is_found_though_rows_cost_much():
    # From the optimum of all rows Newton's method does not find it: T would be the largest.
    model = TextClassifier(NBLinear(loss="log", C=1e9), tokenizer=Tokenizer()).fit(NEWS)
    assert 100 < model.calibration_.temperature < 10_000


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


@pytest.mark.parametrize("rows", [
    pl.concat([SPAM.filter(label="ham"), SPAM.filter(label="spam").head(3)]),
    pl.DataFrame({"text": ["aa bb", "cc dd", "aa", "dd"], "label": ["x", "y", "x", "y"]})],
    ids=["rows of one class", "few documents"])
def test_what_leaves_nothing_to_hold_out_chooses_no_temperature(rows):
    model = TextClassifier(NBLinear()).fit(rows)
    assert model.calibration_ is None
    assert set(model.predict(rows["text"])) == set(rows["label"])


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
        with pytest.raises(ParameterError, match="a calibration has the values"):
            Calibration.from_dict(values)


TWO = NEWS.filter(pl.col("label").is_in(["business", "politics"]))
REFITS = {"two classes": (SPAM.head(100), SPAM), "two classes, less": (SPAM, SPAM.head(100)),
          "four classes": (NEWS.head(100), NEWS), "four classes, less": (NEWS, NEWS.head(100)),
          # New classes begin anew; two classes are one problem.
          "more classes": (TWO, NEWS), "fewer classes": (NEWS, TWO)}


@pytest.mark.parametrize("refit", REFITS)
@pytest.mark.parametrize("loss", ["hinge", "log"])
@pytest.mark.parametrize("descent", [False, True])
def test_a_warm_start_reaches_the_optimum_of_a_refit(refit, loss, descent, monkeypatch):
    if descent:
        monkeypatch.setattr(linear_solver, "_MIN_DESCENT_VALUES", 0)
    settings, (before, after) = NBLinear(loss=loss, tol=1e-9), REFITS[refit]
    cold = TextClassifier(settings).fit(after)
    warm = TextClassifier(settings).fit(before).fit(after, warm_start=True)
    assert warm.vocabulary_ == cold.vocabulary_
    for name in ("weights", "intercept"):
        np.testing.assert_allclose(getattr(warm.linear_form(), name),
                                   getattr(cold.linear_form(), name), rtol=0, atol=1e-6)
    assert warm.calibration_.temperature == pytest.approx(cold.calibration_.temperature)


def test_the_first_fit_has_nothing_to_start_from():
    first, cold = (TextClassifier(NBLinear()).fit(SPAM, warm_start=warm) for warm in (True, False))
    assert np.array_equal(first.linear_form().weights, cold.linear_form().weights)


@pytest.mark.parametrize(("loss", "slope"), [
    ("hinge", lambda margin: 2.0 * (1.0 - margin)),
    ("log", lambda margin: 1.0 / (1.0 + np.exp(margin)))])
@pytest.mark.parametrize("cost", [0.01, 1.0, 300.0, 1e12])
def test_rows_of_one_side_have_the_optimum_of_the_intercept_alone(loss, slope, cost):
    margin = float(LOSSES[loss].intercept_if_all_rows_agree(np.array([cost]))[0])
    assert margin == pytest.approx(cost * slope(margin), rel=1e-3 if cost == 1e12 else 1e-9)


@pytest.mark.parametrize(("loss", "highest"), [("hinge", -0.5), ("log", -2.0)])
def test_a_fold_without_a_label_scores_as_folds_that_know_it(loss, highest):
    # Of the label of one row, one fold in three knows nothing.
    lists = [[*(["rare"] if row == 7 else []), label] for row, label in enumerate(NEWS["label"])]
    model = TextClassifier(NBLinear(loss=loss), tokenizer=Tokenizer()).fit(NEWS["text"], lists)
    assert model.decision_.thresholds["rare"] < highest
    chance = model.predict_proba(NEWS["text"])[:, model.classes_.tolist().index("rare")]
    assert 0.2 < chance.sum() < 5.0


@pytest.mark.parametrize("train", [SPAM, NEWS], ids=["two classes", "four classes"])
@pytest.mark.parametrize("estimator", [NBLinear(), NBLogisticRegression()])
def test_calibrate_takes_folds_where_rows_are_learned_at_once(train, estimator):
    model = TextClassifier(estimator, tokenizer=Tokenizer()).fit(train)
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


def test_rows_are_freed_before_those_of_the_calibration_are_made(monkeypatch):
    """They are most of the memory; nobody looks for cycles meanwhile."""
    made, of = [], SolverRows.of

    def count(*arguments):
        assert not [rows for rows in made if rows() is not None]
        rows = of(*arguments)
        made.append(weakref.ref(rows))
        return rows

    monkeypatch.setattr(SolverRows, "of", count)
    gc.disable()
    try:
        model = TextClassifier(NBLinear()).fit(TWO)
    finally:
        gc.enable()
    assert len(made) == 2
    assert model.calibration_ is not None
