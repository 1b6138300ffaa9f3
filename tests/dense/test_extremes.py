"""Values far from zero, too large to square, and too far away for a density."""

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture

from tests.dense.samples import GAUSSIAN, LDA, QDA, RDA, every_gaussian, matrix, rows, wine
from textnb import DataError, PlugInBayes, TableClassifier
from textnb.bayes.gaussian import far_scores


def some_digits():
    X, y = load_digits(return_X_y=True)
    return X[:, [i for i in range(64) if all(X[y == k, i].std() > 0.5 for k in range(10))]], y


@pytest.mark.parametrize("data", [wine, some_digits])
@pytest.mark.parametrize("model", [
    *GAUSSIAN[:3], LDA(shrinkage=0.1), LDA(shrinkage="auto"), QDA(shrinkage=0.05),
    QDA(reg_param=0.1), *GAUSSIAN[4:]], ids=repr)
def test_a_million_added_to_all_features_changes_no_prediction(model, data):
    X, y = data()
    near = model.fit(X, y)
    expected, joint = near.predict(X), near.predict_log_proba(X)
    far = model.fit(X + 1e6, y)
    assert np.array_equal(far.predict(X + 1e6), expected)
    # The features themselves keep about ten digits after 1e6 is added.
    np.testing.assert_allclose(far.predict_log_proba(X + 1e6), joint, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("size", [1e151, 1e155, 1e200, 3e307])
@pytest.mark.parametrize("model", [
    *GAUSSIAN, LDA(shrinkage="auto"), RDA(alpha=[0.1, 0.5]), PlugInBayes(),
    PlugInBayes(GaussianMixture(), naive=True)], ids=repr)
def test_values_too_large_to_square_are_named(model, size):
    frame = rows().with_columns(z=pl.col("z") * size)
    with pytest.raises(DataError, match="values of column 'z' are too large to square; rescale it"):
        TableClassifier(model).fit(frame)
    with pytest.raises(DataError, match="column 1 are too large"):
        model.fit(*matrix(frame))
    # Constant columns: the variance is 0, and distances between means overflow.
    frame = rows().with_columns(x=pl.lit(size), z=pl.lit(-size))
    with pytest.raises(DataError, match="columns 'x', 'z' are too large"):
        TableClassifier(model).fit(frame)


@every_gaussian
def test_large_and_small_values_are_fitted_and_a_failed_partial_fit_changes_nothing(model):
    plain = TableClassifier(model).fit(rows()).predict(rows())["predicted"]
    for size in (1e145, 1e-100):
        frame = rows().with_columns(pl.col("x", "z") * size)
        fitted = TableClassifier(model).fit(frame)
        assert fitted.predict(frame)["predicted"].equals(plain)
    state = dict(vars(fitted))
    with pytest.raises(DataError, match="column 'x' are too large"):
        fitted.partial_fit(rows().with_columns(x=pl.lit(1e200)))
    assert vars(fitted) == state


@pytest.mark.parametrize("size", [1e152, 1e155, 1e200, 1.7e308])
@every_gaussian
def test_rows_far_away_are_ranked(model, size):
    X, y = matrix(rows())
    X[y == "b"] = 3.0 * X[y == "b"] + [0.5, 0.0]
    model = model.fit(X, y)
    directions = np.array([[1.0, 0.3], [-1.0, 0.2], [0.1, -1.0], [-0.7, -0.7], [0.5, 0.8]])
    # Far enough for priors and determinants not to matter, near enough for exact squares.
    near, away = directions * 1e9, directions * size
    far = model.predict_joint_log_proba(away)
    assert not np.isnan(far).any()
    assert np.isfinite(far.max(axis=1)).all()
    assert np.array_equal(far.argmax(axis=1), model.predict_joint_log_proba(near).argmax(axis=1))
    assert np.array_equal(model.predict_proba(away), model.predict_proba(near))
    table = TableClassifier(model).fit(pl.DataFrame(X, schema=["x", "z"]), y)
    # fit had y as an argument, so predict returns an array, as in scikit-learn.
    assert np.array_equal(table.predict(pl.DataFrame(away, schema=["x", "z"])), model.predict(near))


@pytest.mark.parametrize("model", GAUSSIAN[:4], ids=repr)
def test_a_class_is_ruled_out_far_away_too(model):
    X, y = matrix(rows(labels=("a", "b", "c")))
    model = type(model)(**{**model.get_params(), "priors": [0.5, 0.5, 0.0]}).fit(X, y)
    far = model.predict_joint_log_proba(np.array([[1e200, 1e200], [-1e300, 1e10]]))
    assert np.isneginf(far[:, 2]).all()
    assert np.isfinite(far.max(axis=1)).all()


@every_gaussian
def test_far_scores_equal_joint_log_probabilities(model):
    X, y = matrix(rows())
    model = model.fit(X, y)
    points = np.array([[1.0, 2.0], [-30.0, 1e5], [0.0, 0.0], [1e60, -1e50]])
    plain, got = model.predict_joint_log_proba(points), far_scores(model._form, points)
    if type(model) in (QDA, RDA) or model == GAUSSIAN[0]:
        np.testing.assert_allclose(got, plain, rtol=1e-11)
    else:
        # The scores of a linear form lack a term that is equal for all classes.
        np.testing.assert_allclose(got[:, 1] - got[:, 0], plain[:, 1] - plain[:, 0], rtol=1e-9)


def test_a_row_that_no_density_of_a_mixture_reaches_has_no_answer():
    model, (X, y) = PlugInBayes(GaussianMixture(random_state=0)), matrix(rows())
    # The components are so narrow that the squared distances overflow to infinity.
    far = model.fit(0.01 * X, y).predict_joint_log_proba([[1e308, -1e308], [1e308, 1e308]])
    assert np.isneginf(far).all()
    frame = pl.DataFrame({"x": [0.0, 1e200], "z": [0.0, 1e300]})
    answers = TableClassifier(model).fit(rows()).predict(frame)
    assert answers["predicted"].to_list() == ["a", None]
