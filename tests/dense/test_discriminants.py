"""Discriminants: their limits, their linear forms, and what they refuse."""

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from tests.oracles import gaussian
from textnb import (
    DataError,
    GaussianNB,
    LinearDiscriminantAnalysis,
    NearestCentroid,
    ParameterError,
    PlugInBayes,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    TableClassifier,
)

# Some of these tests pass settings that the types rule out.
LDA = LinearDiscriminantAnalysis
QDA = QuadraticDiscriminantAnalysis
RDA = RegularizedDiscriminantAnalysis


def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def some_digits():
    X, y = load_digits(return_X_y=True)
    return X[:, [i for i in range(64) if all(X[y == k, i].std() > 0.5 for k in range(10))]], y


def close(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


# Limits


EQUAL, GIVEN = [1 / 3] * 3, [0.2, 0.3, 0.5]


@pytest.mark.parametrize(("one", "other"), [
    *((RDA(alpha=1.0, gamma=gamma), QDA()) for gamma in (0.0, 0.5, 1.0)),
    (RDA(alpha=0.0, gamma=1.0), LDA()), (RDA(alpha=0.0, gamma=0.0), LDA(covariance="spherical")),
    *((LDA(covariance="spherical", priors=priors), NearestCentroid(priors=priors))
      for priors in (EQUAL, GIVEN)),
    (LDA(covariance="diagonal"), GaussianNB(shared_variance=True, var_smoothing=0.0)),
    (PlugInBayes(), PlugInBayes(KernelDensity())),
    (PlugInBayes(GaussianMixture(1, reg_covar=0.0)), QDA()),
    (PlugInBayes(GaussianMixture(1, reg_covar=0.0), naive=True), GaussianNB(var_smoothing=0.0))],
    ids=repr)
def test_a_limit_of_one_model_is_another(one, other):
    X, y = wine()
    one, other = one.fit(X, y), other.fit(X, y)
    close(one.predict_log_proba(X), other.predict_log_proba(X))
    assert np.array_equal(one.predict(X), other.predict(X))


def test_the_nearest_centroid_is_that_of_least_distance():
    X, y = wine()
    nearest = ((X[:, None] - NearestCentroid().fit(X, y).centroids_) ** 2).sum(axis=2)
    for model in (LDA(covariance="spherical", priors=EQUAL), NearestCentroid()):
        assert np.array_equal(model.fit(X, y).predict(X), nearest.argmin(axis=1))


def test_nearest_centroid_scores_are_those_of_its_formula():
    X, y = wine()
    model = NearestCentroid().fit(X, y)
    means = np.array([gaussian.mean(X[y == k]) for k in range(3)], dtype=np.float64)
    spread = np.mean([X[y == k].var(axis=0).mean() for k in range(3)])
    form = model.linear_form()
    close(form.weights, means.T / spread)
    close(form.intercept, np.log(1 / 3) - (means**2).sum(axis=1) / 2 / spread)


# Linear forms


def test_the_linear_form_is_that_of_the_textbook():
    X, y = load_iris(return_X_y=True)
    model = LDA().fit(X, y)
    form = model.linear_form()
    inverse = np.linalg.inv(gaussian.pooled(X, y))
    for k in range(3):
        mu = X[y == k].mean(axis=0)
        close(form.weights[:, k], inverse @ mu)
        close(form.intercept[k], np.log(1 / 3) - mu @ inverse @ mu / 2)
    # The scores are those of the form, up to what all classes share.
    difference = form.scores(X) - model.predict_joint_log_proba(X)
    close(difference - difference[:, :1], 0.0, 1e-8)


def test_two_classes_are_divided_along_the_difference_of_their_means():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    model = LDA().fit(X, y)
    inverse = np.linalg.inv(gaussian.pooled(X, y))
    low, high = X[y == 1].mean(axis=0), X[y == 2].mean(axis=0)
    w, b = model.linear_form().binary(2)
    close(w, inverse @ (high - low))
    close(b, -(high + low) @ inverse @ (high - low) / 2)
    close(model.coef_, w[None])
    close(model.intercept_, [b], 1e-8)
    close(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-(X @ w + b))))


def test_shared_variances_make_the_posterior_logistic():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, :2], np.where(y[50:] == 2, 1, 0)
    y[:10] = 1
    model = GaussianNB(shared_variance=True, var_smoothing=0.0).fit(X, y)
    low, high = X[y == 0].mean(axis=0), X[y == 1].mean(axis=0)
    variance = np.diag(gaussian.pooled(X, y))
    w, b = model.linear_form().binary(1)
    close(w, (high - low) / variance)
    close(b, np.log(y.mean() / (1 - y.mean())) + ((low**2 - high**2) / (2 * variance)).sum())
    close(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-(X @ w + b))))


@pytest.mark.parametrize(("model", "message"), [
    (GaussianNB(), "shared_variance=True"), (QDA(), "not linear"), (RDA(), "not linear")])
def test_covariances_of_their_own_have_no_linear_form(model, message):
    with pytest.raises(ParameterError, match=message):
        TableClassifier(model).fit(*wine()).linear_form()


# Far from zero


@pytest.mark.parametrize("data", [wine, some_digits])
@pytest.mark.parametrize("model", [
    GaussianNB(), GaussianNB(shared_variance=True), LDA(), LDA(shrinkage=0.1),
    LDA(shrinkage="auto"), QDA(shrinkage=0.05), QDA(reg_param=0.1), RDA(), NearestCentroid()],
    ids=repr)
def test_a_million_added_to_all_features_changes_no_prediction(model, data):
    X, y = data()
    near = model.fit(X, y)
    expected, joint = near.predict(X), near.predict_log_proba(X)
    far = model.fit(X + 1e6, y)
    assert np.array_equal(far.predict(X + 1e6), expected)
    # The features themselves keep about ten digits after 1e6 is added.
    np.testing.assert_allclose(far.predict_log_proba(X + 1e6), joint, rtol=1e-6, atol=1e-5)


# The choice of (α, γ)


@pytest.mark.parametrize("cv", [3, 5])
def test_alpha_and_gamma_are_those_of_refits(cv):
    X, y = load_wine(return_X_y=True)
    X = X[:, [0, 1, 4, 9]]
    alphas, gammas = [0.9, 0.0, 0.4], [1.0, 0.0, 0.5]
    model = RDA(alpha=alphas, gamma=gammas, cv=cv).fit(X, y)
    fold = np.empty(len(y), dtype=int)
    for k in range(3):
        fold[y == k] = np.arange((y == k).sum()) % cv
    best, expected = (-1.0, 0.0, 0.0), np.zeros((3, 3))
    for a, alpha in enumerate(sorted(alphas)):
        for g, gamma in enumerate(sorted(gammas)):
            hits = 0
            for i in range(cv):
                refit = RDA(alpha=alpha, gamma=gamma).fit(X[fold != i], y[fold != i])
                hits += int((refit.predict(X[fold == i]) == y[fold == i]).sum())
            expected[a, g] = hits / len(y)
            if expected[a, g] > best[0]:
                best = expected[a, g], alpha, gamma
    close(model.cv_accuracy_, expected, 1e-15)
    assert (model.alpha_, model.gamma_) == best[1:]
    close(model.predict_joint_log_proba(X),
          RDA(alpha=best[1], gamma=best[2]).fit(X, y).predict_joint_log_proba(X))


def test_one_open_setting_is_enough():
    X, y = wine()
    model = RDA(alpha=0.25, gamma=[0.0, 1.0], cv=3).fit(X, y)
    assert model.alpha_ == 0.25
    assert model.cv_accuracy_.shape == (1, 2)
    assert RDA(alpha=0.25, gamma=1.0).fit(X, y).cv_accuracy_ is None


@pytest.mark.parametrize(("model", "message"), [
    (RDA(alpha=[0.1, 0.5]), "fit; give numbers"), (LDA(shrinkage="auto"), "shrinkage as a number")])
def test_what_is_chosen_from_all_rows_is_not_learned_in_batches(model, message):
    with pytest.raises(ParameterError, match=message):
        model.partial_fit(*wine(), classes=[0, 1, 2])


@pytest.mark.parametrize(("model", "rows", "labels", "message"), [
    *((model, np.full((1, 13), np.nan), [0], "NaN")
      for model in (GaussianNB(), LDA(), NearestCentroid())),
    (QDA(), np.zeros((1, 13)), [9], r"class .*9.* has one row"),
    (QDA(), np.zeros((1, 13)), [0], r"class .*9.* has 0 rows, and its covariance needs 2")],
    ids=["gaussian", "linear", "centroid", "one row", "no row"])
def test_a_batch_that_is_refused_leaves_the_model_as_it_was(model, rows, labels, message):
    X, y = wine()
    before = model.fit(X, y).predict_joint_log_proba(X)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(rows, labels, classes=[9] if message[0] == "c" else None)
    assert np.array_equal(model.predict_joint_log_proba(X), before)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.class_count_.sum() == model.statistics_.class_count.sum() == 178


# Announced classes without rows


@pytest.mark.parametrize("model", [
    GaussianNB(), GaussianNB(shared_variance=True), LDA(), NearestCentroid(),
    GaussianNB(priors=[0.3, 0.3, 0.4]), LDA(priors=[0.3, 0.3, 0.4])], ids=repr)
def test_a_class_without_rows_is_never_predicted(model):
    X = np.random.default_rng(0).normal(size=(30, 2)) + 6
    y = np.arange(30) % 2
    model.partial_fit(X, y, classes=[0, 1, 2])
    # Nothing is known of class 2, not even that it lies at the origin.
    assert set(model.predict(np.array([[0.0, 0.0], [6.0, 6.0], [-5.0, 1.0]])).tolist()) <= {0, 1}
    assert np.array_equal(model.predict_proba(X)[:, 2], np.zeros(30))


# What they refuse, and whether the advice helps


def singular():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 80))
    return pl.DataFrame({"a": a, "b": b, "still": np.full(80, 0.1), "sum": a + 2 * b,
                         "label": ["x", "y"] * 40})


@pytest.mark.parametrize("model", [
    LDA(), QDA(), RDA(alpha=0.5, gamma=1.0), RDA(alpha=1.0)], ids=repr)
def test_constant_and_collinear_columns_are_named(model):
    with pytest.raises(DataError, match=r"constant columns 'still'.*combinations of others 'sum'"):
        TableClassifier(model).fit(singular())
    with pytest.raises(DataError, match=r"constant columns 2.*combinations of others 3"):
        model.fit(singular().drop("label").to_numpy(), singular()["label"].to_numpy())


@pytest.mark.parametrize("shrinkage", [0.0, None])
def test_columns_are_named_where_all_rows_are_seen_at_once(shrinkage):
    model = RDA(alpha=[0.5, 1.0], gamma=1.0)
    with pytest.raises(DataError, match=r"constant columns 'still'.*combinations of others 'sum'"):
        TableClassifier(model).fit(singular())
    with pytest.raises(DataError, match="'still'"):
        TableClassifier(QDA(shrinkage=shrinkage)).fit(singular())


@pytest.mark.parametrize("kind", [LDA, QDA])
def test_the_advice_on_singular_covariances_helps(kind):
    frame = singular()
    for settings in ({"shrinkage": 0.1}, {"shrinkage": 1e-6}, {"shrinkage": "auto"},
                     {"allow_singular": True}):
        assert TableClassifier(kind(**settings)).fit(frame).score(frame) > 0.4
    TableClassifier(kind()).fit(frame.drop("still", "sum"))


@pytest.mark.parametrize("model", [RDA(alpha=1.0, gamma=0.5), RDA(alpha=0.0, gamma=1.0)], ids=repr)
def test_the_advice_on_singular_covariances_is_about_settings_that_exist(model):
    with pytest.raises(DataError, match="singular") as caught:
        TableClassifier(model).fit(singular())
    assert "shrinkage" not in str(caught.value)
    assert "alpha" in str(caught.value) or "gamma" in str(caught.value)


def test_classes_are_named_as_people_write_them():
    for label in (0, True):
        frame = singular().with_columns(label=pl.Series([label, not label] * 40))
        with pytest.raises(DataError, match="singular") as caught:
            TableClassifier(QDA()).fit(frame)
        assert "np." not in str(caught.value)


def test_a_constant_column_within_a_class():
    frame = pl.DataFrame({"a": [1.0, 1.0, 2.0, 3.0], "b": [0.0, 1.0, 2.0, 3.0],
                          "label": ["x", "x", "y", "y"]})
    with pytest.raises(DataError, match="columns 'a' are constant within a class"):
        TableClassifier(GaussianNB(var_smoothing=0.0)).fit(frame)
    TableClassifier(GaussianNB(var_smoothing=1e-9)).fit(frame)
    TableClassifier(GaussianNB(var_smoothing=0.0)).fit(frame.drop("a"))


def test_where_every_column_is_constant_the_scale_of_smoothing_is_one():
    model = GaussianNB(var_smoothing=0.5).fit([[1.0], [1.0], [1.0]], [0, 1, 1])
    assert model.var_.tolist() == [[0.5], [0.5]]
    with pytest.raises(DataError, match="set var_smoothing above 0"):
        GaussianNB(var_smoothing=0.0).fit([[1.0], [1.0], [1.0]], [0, 1, 1])


def test_a_class_of_one_row():
    X, y = wine()
    X, y = np.concatenate([X, X[:1]]), np.append(y, 7)
    with pytest.raises(DataError, match=r"class .*7.* has one row"):
        QDA().fit(X, y)
    # What the message advises.
    QDA().fit(X[:-1], y[:-1])
    assert LDA().fit(X, y).classes_.tolist() == [0, 1, 2, 7]
    assert GaussianNB().fit(X, y).predict(X[-1:]).tolist() == [7]
    assert NearestCentroid().fit(X, y).classes_.tolist() == [0, 1, 2, 7]
    RDA(alpha=0.5, gamma=0.5).fit(X, y)
    with pytest.raises(DataError, match=r"class .*7.* has 1 row, fewer than cv=5 folds"):
        RDA(alpha=[0.1, 0.5]).fit(X, y)
    RDA(alpha=0.1).fit(X, y)


def test_fewer_rows_than_features():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 20)), np.arange(12) % 2
    for model in (LDA(), QDA(), RDA(alpha=1.0), RDA(alpha=0.5, gamma=1.0)):
        with pytest.raises(DataError, match="singular"):
            model.fit(X, y)
    for model in (LDA(shrinkage="auto"), LDA(shrinkage=0.5), LDA(allow_singular=True),
                  QDA(shrinkage="auto"), QDA(shrinkage=0.5), QDA(reg_param=0.1), RDA(),
                  QDA(allow_singular=True), LDA(covariance="diagonal"), GaussianNB(),
                  NearestCentroid()):
        assert np.isfinite(model.fit(X, y).predict_log_proba(X)).all()


def test_more_rows_are_needed_for_the_unbiased_divisor():
    with pytest.raises(DataError, match="needs more rows than classes; got 2 and 2"):
        LDA(divisor="n-K").fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("kind", [GaussianNB, LDA, QDA, RDA, NearestCentroid, PlugInBayes])
def test_one_class_is_refused(kind):
    with pytest.raises(DataError, match="greater than one; got one class"):
        kind().fit([[1.0], [2.0]], ["x", "x"])
