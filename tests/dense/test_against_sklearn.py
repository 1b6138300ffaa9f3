"""Models of dense features against scikit-learn and against densities computed plainly."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import datasets, discriminant_analysis, naive_bayes, neighbors
from sklearn.covariance import ledoit_wolf_shrinkage as their_ledoit_wolf

from tests.oracles import gaussian
from textnb import (
    GaussianNB,
    LinearDiscriminantAnalysis,
    NearestCentroid,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
)

Array = NDArray[Any]
NAMES = ["iris", "wine", "breast_cancer", "digits"]
every = pytest.mark.parametrize("name", NAMES)
# With one Gaussian per class: digits has constant columns within classes.
full_rank = pytest.mark.parametrize("name", NAMES[:3])


@cache
def read(name):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return X, y


@cache
def varying(name):
    """Without the columns that are constant, or nearly, over all rows (digits has some)."""
    X, y = read(name)
    return X[:, X.std(axis=0) > 0.1] if name == "digits" else X, y


def uneven(y):
    priors = np.arange(1.0, len(np.unique(y)) + 1)
    return np.asarray(priors / priors.sum())


def standardised(X):
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def close(ours, theirs, tolerance=1e-8):
    np.testing.assert_allclose(np.asarray(ours, dtype=np.float64),
                               np.asarray(theirs, dtype=np.float64), rtol=tolerance, atol=tolerance)


def their_posterior(model, X):
    """log P(class | row) of scikit-learn's discriminants, where its probabilities would be 0."""
    scores = model.decision_function(X)
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    return gaussian.posterior(scores)


# Gaussian naive Bayes


@every
@pytest.mark.parametrize("given", [False, True], ids=["shares", "priors"])
@pytest.mark.parametrize("var_smoothing", [1e-9, 1e-3, 0.1])
def test_gaussian(name, given, var_smoothing):
    X, y = read(name)
    settings = {"var_smoothing": var_smoothing,
                                "priors": uneven(y) if given else None}
    ours = GaussianNB(**settings).fit(X, y)
    theirs = naive_bayes.GaussianNB(**settings).fit(X, y)
    close(ours.predict_log_proba(X), theirs.predict_log_proba(X))
    close(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X))
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    close(ours.theta_, theirs.theta_, 1e-12)
    close(ours.var_, theirs.var_, 1e-10)
    close(ours.epsilon_, theirs.epsilon_, 1e-12)
    close(ours.class_prior_, theirs.class_prior_, 1e-12)
    assert np.array_equal(ours.class_count_, theirs.class_count_)


@every
@pytest.mark.parametrize("whole", [True, False], ids=["repetitions", "weights"])
def test_gaussian_with_weights(name, whole):
    X, y = read(name)
    draw = np.random.default_rng(1)
    weights = draw.integers(1, 4, len(y)) if whole else draw.gamma(2.0, size=len(y))
    ours = GaussianNB().fit(X, y, sample_weight=weights)
    theirs = naive_bayes.GaussianNB().fit(X, y, sample_weight=weights)
    # Theirs takes the largest variance over the rows unweighted; ours over the rows as weighed.
    theirs.var_ += ours.epsilon_ - theirs.epsilon_
    close(ours.predict_log_proba(X), theirs.predict_log_proba(X), 1e-7)
    close(ours.theta_, theirs.theta_, 1e-12)
    if whole:
        repeated = naive_bayes.GaussianNB().fit(
            np.repeat(X, weights, axis=0), np.repeat(y, weights))
        close(ours.predict_log_proba(X), repeated.predict_log_proba(X))


@every
@pytest.mark.parametrize("first", [1, 20])
def test_gaussian_in_batches_of_one_row(name, first):
    X, y = (each[::5] for each in read(name))
    order = np.random.default_rng(2).permutation(len(y))
    X, y = X[order], y[order]
    model = GaussianNB().partial_fit(X[:first], y[:first], classes=np.unique(y))
    for i in range(first, len(y)):
        model.partial_fit(X[i:i + 1], y[i:i + 1])
    close(model.predict_log_proba(X), GaussianNB().fit(X, y).predict_log_proba(X))


@every
@pytest.mark.parametrize("size", [50, 401])
def test_gaussian_in_batches(name, size):
    X, y = (each[::1 if name == "iris" else 3] for each in read(name))
    ours, theirs = GaussianNB(), naive_bayes.GaussianNB()
    for start in range(0, len(y), size):
        batch = slice(start, start + size)
        for model in (ours, theirs):
            model.partial_fit(X[batch], y[batch], classes=np.unique(y))
    whole = GaussianNB().fit(X, y)
    close(ours.theta_, theirs.theta_, 1e-9)
    close(ours.var_, whole.var_, 1e-9)
    close(ours.predict_log_proba(X), whole.predict_log_proba(X))
    # scikit-learn's epsilon_ is the last batch's, and is taken off as if it were that of the batch
    # before; ours is that of all rows.
    assert ours.epsilon_ == pytest.approx(1e-9 * X.var(axis=0).max(), rel=1e-9)


@every
@pytest.mark.parametrize("size", [50])
def test_gaussian_in_batches_without_smoothing(name, size):
    X, y = read(name)
    if name == "digits":
        # One column that varies within every class.
        X, y = X[::5, [int(np.argmin([len(np.unique(column)) < 16 for column in X.T]))]], y[::5]
    ours, theirs = GaussianNB(var_smoothing=1e-9), naive_bayes.GaussianNB(var_smoothing=0)
    for start in range(0, len(y), size):
        batch = slice(start, start + size)
        ours.partial_fit(X[batch], y[batch], classes=np.unique(y))
        theirs.partial_fit(X[batch], y[batch], classes=np.unique(y))
    close(ours.var_ - ours.epsilon_, theirs.var_, 1e-9)
    ours.set_params(var_smoothing=0.0).fit_statistics(ours.statistics_)
    close(ours.predict_log_proba(X), theirs.predict_log_proba(X))


# Linear discriminants


@every
def test_linear_svd(name):
    X, y = varying(name)
    ours = LinearDiscriminantAnalysis().fit(X, y)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(X, y)
    close(ours.predict_log_proba(X), their_posterior(theirs, X))
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    close(ours.explained_variance_ratio_, theirs.explained_variance_ratio_)
    close(ours.xbar_, theirs.xbar_)
    mine, other = ours.transform(X), theirs.transform(X)
    assert mine.shape == other.shape
    close(mine * np.sign((mine * other).sum(axis=0)), other)
    # Their weights of a class are less what all classes share.
    close(ours.coef_ - ours.coef_.mean(axis=0) * (len(ours.coef_) > 1),
          theirs.coef_ - theirs.coef_.mean(axis=0) * (len(ours.coef_) > 1), 1e-7)


@every
@pytest.mark.parametrize("kept", [1, 2])
def test_linear_keeps_the_first_axes(name, kept):
    X, y = varying(name)
    if kept > len(np.unique(y)) - 1:
        kept = 1
    ours = LinearDiscriminantAnalysis(n_components=kept).fit(X, y)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(n_components=kept).fit(X, y)
    mine, other = ours.transform(X), theirs.transform(X)
    close(mine * np.sign((mine * other).sum(axis=0)), other)
    close(ours.explained_variance_ratio_, theirs.explained_variance_ratio_)


@pytest.mark.parametrize("given", [False, True], ids=["shares", "priors"])
@pytest.mark.parametrize(("solver", "shrinkage"), [
    *(("lsqr", shrinkage) for shrinkage in (None, 0.05, 0.5, 1.0, "auto")),
    *(("eigen", shrinkage) for shrinkage in (None, 0.05, 0.5, 1.0, "auto"))])
@every
def test_linear_shrunk(name, solver, shrinkage, given):
    # Columns are standardised: on breast_cancer as it stands (a condition number of 1e12) their
    # solvers keep no more than seven digits. A test below has those columns.
    X, y = varying(name)
    X, priors = standardised(X), uneven(y) if given else None
    ours = LinearDiscriminantAnalysis(shrinkage=shrinkage, priors=priors).fit(X, y)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(
        solver=solver, shrinkage=shrinkage, priors=priors).fit(X, y)
    close(ours.covariance_, theirs.covariance_, 1e-10)
    close(ours.predict_log_proba(X), their_posterior(theirs, X))
    # Their axes come from total less within scatter, each shrunk, with priors in one of the two:
    # they are discriminant axes where nothing is shrunk and priors are the classes' shares.
    if solver == "eigen" and shrinkage is None and not given:
        close(ours.explained_variance_ratio_, theirs.explained_variance_ratio_)
        mine, other = ours.transform(X), theirs.transform(X)
        # Their eigen solver does not subtract the mean of the means.
        mine, other = mine - mine.mean(axis=0), other - other.mean(axis=0)
        close(mine * np.sign((mine * other).sum(axis=0)), other)


@full_rank
@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_the_unbiased_divisor_and_restricted_covariances(name, kind):
    X, y = standardised(read(name)[0]), read(name)[1]
    model = LinearDiscriminantAnalysis(divisor="n-K", covariance=kind).fit(X, y)
    sigma = gaussian.pooled(X, y, len(X) - len(np.unique(y)))
    if kind != "full":
        own = np.diag(sigma)
        sigma = np.diag(own if kind == "diagonal" else np.full(len(own), own.mean()))
    close(model.covariance_, sigma, 1e-10)
    means = np.array([gaussian.mean(gaussian.of_class(X, y, k)) for k in gaussian.labels(y)])
    close(model.predict_log_proba(X), gaussian.posterior(
        gaussian.discriminants(X, means, sigma, gaussian.shares(y))), 1e-9)


@full_rank
@pytest.mark.parametrize("shrinkage", [None, 0.2, "auto"])
@pytest.mark.parametrize("given", [False, True], ids=["shares", "priors"])
def test_linear_keeps_its_digits_where_columns_differ_in_scale(name, shrinkage, given):
    """Against long double: scikit-learn's lsqr differs from it by 5e-8 on breast_cancer."""
    X, y = read(name)
    priors = uneven(y).tolist() if given else gaussian.shares(y)
    each = [gaussian.of_class(X, y, label) for label in gaussian.labels(y)]
    covariances = [gaussian.ledoit_wolf(rows) if shrinkage == "auto"
                   else gaussian.shrunk(gaussian.covariance(rows), shrinkage or 0.0)
                   for rows in each]
    sigma = np.sum([prior * own for prior, own in zip(priors, covariances, strict=True)], axis=0)
    means = np.array([gaussian.mean(rows) for rows in each])
    expected = gaussian.posterior(gaussian.discriminants(X, means, sigma, priors))
    model = LinearDiscriminantAnalysis(shrinkage=shrinkage, priors=priors if given else None)
    close(model.fit(X, y).predict_log_proba(X), expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_ledoit_wolf_shrinkage(name):
    X, y = varying(name)
    rows = X[y == 1]
    rows = rows[:, rows.std(axis=0) > 0]
    rows = standardised(rows)
    sample = rows.T @ rows / len(rows)
    share = their_ledoit_wolf(rows)
    p = len(sample)
    close(gaussian.ledoit_wolf(rows),
          (1 - share) * sample + share * np.trace(sample) / p * np.eye(p), 1e-10)


# Quadratic discriminants


@every
@pytest.mark.parametrize(("settings", "solver"), [
    *(({"reg_param": value}, "svd") for value in (0.0, 0.01, 0.5, 1.0)),
    *(({"shrinkage": value}, "eigen") for value in (0.1, 0.7, "auto"))], ids=str)
@pytest.mark.parametrize("given", [False, True], ids=["shares", "priors"])
def test_quadratic(name, settings, solver, given):
    if name == "digits" and solver == "svd":
        pytest.skip("its classes have constant columns")
    X, y = varying(name)
    X, priors = standardised(X), uneven(y) if given else None
    ours = QuadraticDiscriminantAnalysis(priors=priors, **settings).fit(X, y)
    theirs = discriminant_analysis.QuadraticDiscriminantAnalysis(
        solver=solver, priors=priors, tol=1e-12, **settings).fit(X, y)
    close(ours.predict_log_proba(X), their_posterior(theirs, X))
    assert np.array_equal(ours.predict(X), theirs.predict(X))


DIGITS = read("digits")[0]
WHERE_CONSTANT = [i for i in range(64) if DIGITS[:, i].std() == 0 or DIGITS[:, i].std() > 0.1]


@pytest.mark.parametrize(("ours", "theirs", "columns"), [
    (LinearDiscriminantAnalysis(allow_singular=True),
     discriminant_analysis.LinearDiscriminantAnalysis(solver="svd"), WHERE_CONSTANT),
    (QuadraticDiscriminantAnalysis(reg_param=0.1),
     discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1), range(64))],
    ids=["linear", "quadratic"])
def test_columns_that_are_constant(ours, theirs, columns):
    X, y = DIGITS[:, columns], read("digits")[1]
    close(ours.fit(X, y).predict_log_proba(X), their_posterior(theirs.fit(X, y), X))


def regularised(alpha, gamma):
    """What shared and own covariances make."""
    def covariances(X, y, each):
        shared = gaussian.shrunk(gaussian.pooled(X, y), 1 - gamma)
        return [alpha * gaussian.covariance(rows) + (1 - alpha) * shared for rows in each]

    return RegularizedDiscriminantAnalysis(alpha=alpha, gamma=gamma), covariances


DENSITIES = [
    (GaussianNB(), lambda X, y, each: [
        np.diag(np.diag(gaussian.covariance(rows)) + 1e-9 * X.var(axis=0).max()) for rows in each]),
    (LinearDiscriminantAnalysis(), lambda X, y, each: [gaussian.pooled(X, y)] * len(each)),
    (QuadraticDiscriminantAnalysis(), lambda X, y, each: list(map(gaussian.covariance, each))),
    (QuadraticDiscriminantAnalysis(divisor="n-1"), lambda X, y, each: [
        gaussian.covariance(rows, len(rows) - 1) for rows in each]),
    *(regularised(*pair) for pair in ((0.0, 0.3), (0.4, 0.6), (1.0, 0.0), (0.2, 1.0)))]


@full_rank
@pytest.mark.parametrize(("model", "covariances"), DENSITIES, ids=[
    repr(model) for model, _ in DENSITIES])
def test_scores_are_those_of_a_normal_density_per_class(name, model, covariances):
    X, y = standardised(read(name)[0]), read(name)[1]
    each = [gaussian.of_class(X, y, label) for label in gaussian.labels(y)]
    expected = gaussian.joint(X, list(map(gaussian.mean, each)), covariances(X, y, each),
                              gaussian.shares(y))
    model = model.fit(X, y)
    close(model.predict_log_proba(X), gaussian.posterior(expected), 1e-9)
    if not isinstance(model, LinearDiscriminantAnalysis):
        close(model.predict_joint_log_proba(X), expected, 1e-9)


@pytest.mark.parametrize("model", [
    LinearDiscriminantAnalysis(allow_singular=True),
    QuadraticDiscriminantAnalysis(allow_singular=True)], ids=repr)
def test_a_singular_density_on_its_support(model):
    rng = np.random.default_rng(3)
    basis, y = rng.normal(size=(2, 4)), np.repeat([0, 1], 30)
    X = (rng.normal(size=(60, 2)) + 1.5 * y[:, None]) @ basis
    each = [X[:30], X[30:]]
    covariances = [gaussian.pooled(X, y)] * 2 if isinstance(
        model, LinearDiscriminantAnalysis) else list(map(gaussian.covariance, each))
    # Points in the support: the classes' own rows, and others that the basis spans.
    points = np.concatenate([X, rng.normal(size=(10, 2)) @ basis])
    expected = gaussian.joint(points, list(map(gaussian.mean, each)), covariances, [0.5, 0.5],
                              singular=True)
    close(model.fit(X, y).predict_log_proba(points), gaussian.posterior(expected), 1e-8)


# Nearest centroids


@pytest.mark.filterwarnings("ignore:self.within_class_std_dev_ has at least 1 zero")
@every
def test_nearest_centroid(name):
    X, y = read(name)
    ours, theirs = NearestCentroid().fit(X, y), neighbors.NearestCentroid().fit(X, y)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    close(ours.centroids_, theirs.centroids_, 1e-12)
    distance = ((X[:, None] - ours.centroids_) ** 2).sum(axis=2)
    assert np.array_equal(ours.predict(X), distance.argmin(axis=1))
