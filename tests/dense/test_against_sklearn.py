"""Models of dense features against scikit-learn and against densities computed plainly."""

from functools import cache

import numpy as np
import pytest
from sklearn import datasets, discriminant_analysis, naive_bayes, neighbors

from tests.dense import samples
from tests.dense.samples import LDA, QDA, RDA
from tests.oracles import gaussian
from textnb import GaussianNB, NearestCentroid

NAMES = ["iris", "wine", "breast_cancer", "digits"]
every_data = pytest.mark.parametrize("name", NAMES)
# With one Gaussian per class: digits has constant columns within classes.
full_rank = pytest.mark.parametrize("name", NAMES[:3])
shares_or_priors = pytest.mark.parametrize("given", [False, True], ids=["shares", "priors"])


@cache
def read(name):
    return getattr(datasets, f"load_{name}")(return_X_y=True)


def varying(name):
    """Without the columns that are constant, or nearly, over all rows (digits has some)."""
    X, y = read(name)
    return X[:, X.std(axis=0) > 0.1] if name == "digits" else X, y


def standardised(name):
    X, y = varying(name)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def uneven(y):
    priors = np.arange(1.0, len(np.unique(y)) + 1)
    return priors / priors.sum()


def by_class(X, y):
    return [gaussian.of_class(X, y, label) for label in gaussian.labels(y)]


def close(ours, theirs, tolerance=1e-8):
    samples.close(ours, theirs, tolerance)


def their_posterior(model, X):
    """log P(class | row) of scikit-learn's discriminants, where its probabilities would be 0."""
    scores = model.decision_function(X)
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    return gaussian.posterior(scores)


# Gaussian naive Bayes


@every_data
@shares_or_priors
@pytest.mark.parametrize("var_smoothing", [1e-9, 1e-3, 0.1])
def test_gaussian(name, given, var_smoothing):
    X, y = read(name)
    settings = {"var_smoothing": var_smoothing, "priors": uneven(y) if given else None}
    ours = GaussianNB(**settings).fit(X, y)
    theirs = naive_bayes.GaussianNB(**settings).fit(X, y)
    close(ours.predict_log_proba(X), theirs.predict_log_proba(X))
    close(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X))
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    close(ours.var_, theirs.var_, 1e-10)
    for attribute in ("theta_", "epsilon_", "class_prior_"):
        close(getattr(ours, attribute), getattr(theirs, attribute), 1e-12)
    assert np.array_equal(ours.class_count_, theirs.class_count_)


@every_data
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


# Linear discriminants


def assert_axes(ours, theirs, X):
    """The same discriminant axes, up to the sign of each."""
    close(ours.explained_variance_ratio_, theirs.explained_variance_ratio_)
    mine, other = ours.transform(X), theirs.transform(X)
    assert mine.shape == other.shape
    close(mine * np.sign((mine * other).sum(axis=0)), other)


@every_data
def test_linear_svd(name):
    X, y = varying(name)
    ours = LDA().fit(X, y)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(X, y)
    close(ours.predict_log_proba(X), their_posterior(theirs, X))
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    close(ours.xbar_, theirs.xbar_)
    assert_axes(ours, theirs, X)
    # Their weights of a class are less what all classes share.
    close(ours.coef_ - ours.coef_.mean(axis=0) * (len(ours.coef_) > 1),
          theirs.coef_ - theirs.coef_.mean(axis=0) * (len(ours.coef_) > 1), 1e-7)


@every_data
@pytest.mark.parametrize("most", [1, 2])
def test_linear_keeps_the_first_axes(name, most):
    X, y = varying(name)
    n_components = min(most, len(np.unique(y)) - 1)
    assert_axes(*(kind(n_components=n_components).fit(X, y) for kind in (
        LDA, discriminant_analysis.LinearDiscriminantAnalysis)), X)


@full_rank
@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_the_unbiased_divisor_and_restricted_covariances(name, kind):
    X, y = standardised(name)
    model = LDA(divisor="n-K", covariance=kind).fit(X, y)
    sigma = gaussian.pooled(X, y, len(X) - len(np.unique(y)))
    if kind != "full":
        own = np.diag(sigma)
        sigma = np.diag(own if kind == "diagonal" else np.full(len(own), own.mean()))
    close(model.covariance_, sigma, 1e-10)
    means = np.array([gaussian.mean(own) for own in by_class(X, y)])
    close(model.predict_log_proba(X), gaussian.posterior(
        gaussian.discriminants(X, means, sigma, gaussian.shares(y))), 1e-9)


@every_data
@pytest.mark.parametrize("shrinkage", [None, 0.05, 0.5, 1.0, "auto"])
@shares_or_priors
def test_linear_keeps_its_digits_where_columns_differ_in_scale(name, shrinkage, given):
    """Against long double: scikit-learn's lsqr differs from it by 5e-8 on breast_cancer."""
    X, y = varying(name)
    priors, each = uneven(y).tolist() if given else gaussian.shares(y), by_class(X, y)
    covariances = [gaussian.ledoit_wolf(own) if shrinkage == "auto"
                   else gaussian.shrunk(gaussian.covariance(own), shrinkage or 0.0)
                   for own in each]
    sigma = np.sum([prior * own for prior, own in zip(priors, covariances, strict=True)], axis=0)
    means = np.array([gaussian.mean(own) for own in each])
    expected = gaussian.posterior(gaussian.discriminants(X, means, sigma, priors))
    model = LDA(shrinkage=shrinkage, priors=priors if given else None).fit(X, y)
    close(model.covariance_, sigma, 1e-10)
    close(model.predict_log_proba(X), expected)


# Quadratic discriminants


@every_data
@pytest.mark.parametrize(("settings", "solver"), [
    *(({"reg_param": value}, "svd") for value in (0.0, 0.01, 0.5, 1.0)),
    *(({"shrinkage": value}, "eigen") for value in (0.1, 0.7, "auto"))], ids=str)
@shares_or_priors
def test_quadratic(name, settings, solver, given):
    if name == "digits" and solver == "svd":
        pytest.skip("its classes have constant columns")
    X, y = standardised(name)
    priors = uneven(y) if given else None
    ours = QDA(priors=priors, **settings).fit(X, y)
    theirs = discriminant_analysis.QuadraticDiscriminantAnalysis(
        solver=solver, priors=priors, tol=1e-12, **settings).fit(X, y)
    close(ours.predict_log_proba(X), their_posterior(theirs, X))
    assert np.array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize(("ours", "theirs"), [
    (LDA(allow_singular=True), discriminant_analysis.LinearDiscriminantAnalysis(solver="svd")),
    (QDA(reg_param=0.1), discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1))],
    ids=["linear", "quadratic"])
def test_columns_that_are_constant(ours, theirs):
    X, y = read("digits")
    if isinstance(ours, LDA):
        X = X[:, (X.std(axis=0) == 0) | (X.std(axis=0) > 0.1)]
    close(ours.fit(X, y).predict_log_proba(X), their_posterior(theirs.fit(X, y), X))


# Densities


def regularised(alpha, gamma):
    """What shared and own covariances make."""
    def covariances(X, y, each):
        shared = gaussian.shrunk(gaussian.pooled(X, y), 1 - gamma)
        return [alpha * gaussian.covariance(own) + (1 - alpha) * shared for own in each]

    return RDA(alpha=alpha, gamma=gamma), covariances


DENSITIES = [
    (GaussianNB(), lambda X, y, each: [
        np.diag(np.diag(gaussian.covariance(own)) + 1e-9 * X.var(axis=0).max()) for own in each]),
    (QDA(), lambda X, y, each: list(map(gaussian.covariance, each))),
    (QDA(divisor="n-1"), lambda X, y, each: [
        gaussian.covariance(own, len(own) - 1) for own in each]),
    *(regularised(*pair) for pair in ((0.0, 0.3), (0.4, 0.6), (1.0, 0.0), (0.2, 1.0)))]


@full_rank
@pytest.mark.parametrize(("model", "covariances"), DENSITIES, ids=[
    repr(model) for model, _ in DENSITIES])
def test_scores_are_those_of_a_normal_density_per_class(name, model, covariances):
    X, y = standardised(name)
    each = by_class(X, y)
    expected = gaussian.joint(X, list(map(gaussian.mean, each)), covariances(X, y, each),
                              gaussian.shares(y))
    model = model.fit(X, y)
    close(model.predict_log_proba(X), gaussian.posterior(expected), 1e-9)
    close(model.predict_joint_log_proba(X), expected, 1e-9)


@pytest.mark.parametrize("model", [LDA(allow_singular=True), QDA(allow_singular=True)], ids=repr)
def test_a_singular_density_on_its_support(model):
    rng = np.random.default_rng(3)
    basis, y = rng.normal(size=(2, 4)), np.repeat([0, 1], 30)
    X = (rng.normal(size=(60, 2)) + 1.5 * y[:, None]) @ basis
    each = [X[:30], X[30:]]
    covariances = [gaussian.pooled(X, y)] * 2 if isinstance(model, LDA) else list(
        map(gaussian.covariance, each))
    # Points in the support: the classes' own rows, and others that the basis spans.
    points = np.concatenate([X, rng.normal(size=(10, 2)) @ basis])
    expected = gaussian.joint(points, list(map(gaussian.mean, each)), covariances, [0.5, 0.5],
                              singular=True)
    close(model.fit(X, y).predict_log_proba(points), gaussian.posterior(expected), 1e-8)


@pytest.mark.filterwarnings("ignore:self.within_class_std_dev_ has at least 1 zero")
@every_data
def test_nearest_centroid(name):
    X, y = read(name)
    ours, theirs = NearestCentroid().fit(X, y), neighbors.NearestCentroid().fit(X, y)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    close(ours.centroids_, theirs.centroids_, 1e-12)
    distance = ((X[:, None] - ours.centroids_) ** 2).sum(axis=2)
    assert np.array_equal(ours.predict(X), distance.argmin(axis=1))
