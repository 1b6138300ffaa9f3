"""The Bayes rule with densities plugged in, and the histogram."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from tests.oracles import gaussian
from textnb import DataError, PlugInBayes
from textnb.models.histogram import HistogramDensity


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    keep = np.arange(150) % 5 != 0
    return X[keep][::2, :2], names[keep][::2]


def kernel(x, rows, h):
    """log of the mean over the rows of Π_i N(x_i; row_i, h²)."""
    return float(np.log(np.mean([np.prod([norm.pdf(a, b, h) for a, b in zip(x, row, strict=True)])
                                 for row in rows])))


@pytest.mark.parametrize("naive", [False, True])
@pytest.mark.parametrize("priors", [None, [0.2, 0.3, 0.5]])
def test_kernel_densities_are_sums_over_rows(iris, naive, priors):
    X, y = iris
    model = PlugInBayes(KernelDensity(bandwidth=0.4), naive=naive, priors=priors).fit(X, y)
    shares = gaussian.shares(y) if priors is None else priors
    some = X[::6]
    expected = np.empty((len(some), 3))
    for i, x in enumerate(some):
        for k, label in enumerate(gaussian.labels(y)):
            rows = gaussian.of_class(X, y, label)
            columns = [[0], [1]] if naive else [[0, 1]]
            expected[i, k] = np.log(shares[k]) + sum(
                kernel(x[own], rows[:, own], 0.4) for own in columns)
    np.testing.assert_allclose(model.predict_joint_log_proba(some), expected, rtol=1e-9)
    np.testing.assert_allclose(
        model.predict_log_proba(some), gaussian.posterior(expected), rtol=1e-8, atol=1e-12)
    assert model.predict(some).tolist() == [
        gaussian.labels(y)[k] for k in expected.argmax(axis=1)]
    assert [len(each) for each in model.densities_] == [2 if naive else 1] * 3
    np.testing.assert_allclose(model.priors_, shares)


@pytest.mark.parametrize("naive", [False, True])
def test_the_bandwidth_is_that_of_a_search_within_each_class(iris, naive):
    X, y = iris
    grid = {"bandwidth": [0.05, 0.2, 0.5, 2.0]}
    model = PlugInBayes(KernelDensity(), naive=naive, search=grid, cv=4).fit(X, y)
    for k, label in enumerate(gaussian.labels(y)):
        for i, own in enumerate([[0], [1]] if naive else [[0, 1]]):
            rows = gaussian.of_class(X, y, label)[:, own]
            best = GridSearchCV(KernelDensity(), grid, cv=4).fit(rows).best_estimator_
            assert model.densities_[k][i].bandwidth == best.bandwidth
            assert np.array_equal(model.densities_[k][i].score_samples(rows),
                                  best.score_samples(rows))


def test_a_search_needs_rows_for_its_folds(iris):
    X, y = iris
    X, y = np.concatenate([X, X[:2]]), np.append(y, ["rare", "rare"])
    model = PlugInBayes(search={"bandwidth": [0.1, 1.0]})
    with pytest.raises(DataError, match=r"class .*rare.* has 2 rows, fewer than cv=5 folds"):
        model.fit(X, y)
    # What the message advises.
    model.set_params(cv=2).fit(X, y)
    model.set_params(cv=5, search=None).fit(X, y)


def test_mixtures_are_estimated_per_class(iris):
    X, y = iris
    density = GaussianMixture(2, random_state=0)
    model = PlugInBayes(density).fit(X, y)
    for k, label in enumerate(gaussian.labels(y)):
        rows = gaussian.of_class(X, y, label)
        own = GaussianMixture(2, random_state=0).fit(rows)
        np.testing.assert_allclose(
            model.predict_joint_log_proba(X)[:, k],
            np.log(len(rows) / len(X)) + own.score_samples(X), rtol=1e-12)
    # The density that was given is cloned.
    assert not hasattr(density, "means_")


# Histograms


def histogram_by_hand(x, column, edges, l):
    """(n_b + l) / (n + l B) / width of the bin of x; that of an empty one beyond the bins."""
    bins = len(edges) - 1
    inside = [b for b in range(bins) if edges[b] <= x < edges[b + 1]
              or (b == bins - 1 and x == edges[-1])]
    b = inside[0] if inside else 0 if x < edges[0] else bins - 1
    count = sum(edges[b] <= v < edges[b + 1] or (b == bins - 1 and v == edges[-1])
                for v in column) if inside else 0
    with np.errstate(divide="ignore"):
        return float(np.log((count + l) / (len(column) + l * bins) / (edges[b + 1] - edges[b])))


@pytest.mark.parametrize("bins", [1, 3, 10, "auto", "fd"])
@pytest.mark.parametrize("l", [0.0, 0.5, 1.0])
def test_densities_of_bins_are_smoothed_shares(bins, l):
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=40), rng.gamma(2.0, size=40)], axis=1)
    model = HistogramDensity(bins=bins, l=l).fit(X)
    edges = [np.histogram_bin_edges(column, bins) for column in X.T]
    points = np.concatenate([X, [[e[0], e[-1]] for e in edges], [[-99.0, 0.5], [0.0, 99.0]]])
    for x, score in zip(points, model.score_samples(points), strict=True):
        expected = sum(histogram_by_hand(x[i], X[:, i], edges[i], l) for i in range(2))
        assert score == pytest.approx(expected, rel=1e-12)
    assert model.score(X) == pytest.approx(model.score_samples(X).sum())


@pytest.mark.parametrize("bins", [1, 4, 9])
@pytest.mark.parametrize("l", [0.0, 1.0, 10.0])
def test_a_histogram_integrates_to_one(bins, l):
    X = np.random.default_rng(0).gamma(2.0, size=(50, 1))
    model = HistogramDensity(bins=bins, l=l).fit(X)
    edges = model.edges_[0]
    area = sum(quad(lambda x: np.exp(model.score_samples([[x]])[0]), a + 1e-9, b - 1e-9)[0]
               for a, b in pairwise(edges))
    assert area == pytest.approx(1.0, abs=1e-6)


def test_values_beyond_the_bins_are_as_an_empty_bin():
    model = HistogramDensity(bins=2, l=1.0).fit([[0.0], [0.2], [0.4], [1.0]])
    # Two bins of width 0.5 with 3 and 1 rows: (n + 1) / (4 + 2) / 0.5.
    assert np.exp(model.score_samples([[0.3], [0.5], [1.0]])).tolist() == pytest.approx(
        [4 / 3, 2 / 3, 2 / 3])
    assert np.exp(model.score_samples([[-0.01], [1.01], [1e9]])).tolist() == pytest.approx(
        [1 / 3] * 3)
    rough = HistogramDensity(bins=2, l=0.0).fit([[0.0], [0.2], [0.4], [1.0]])
    assert rough.score_samples([[-0.01], [1.01]]).tolist() == [-np.inf, -np.inf]


def test_a_constant_column_has_bins_too():
    model = HistogramDensity(bins=4).fit([[2.0], [2.0], [2.0]])
    assert np.isfinite(model.score_samples([[2.0], [7.0]])).all()


def test_histograms_in_the_bayes_rule():
    X, y = load_iris(return_X_y=True)
    model = PlugInBayes(HistogramDensity(bins=5), naive=True).fit(X, y)
    expected = np.array([[np.log(1 / 3) + sum(
        histogram_by_hand(x[i], X[y == k, i], np.histogram_bin_edges(X[y == k, i], 5), 1.0)
        for i in range(4)) for k in range(3)] for x in X[::10]])
    np.testing.assert_allclose(model.predict_joint_log_proba(X[::10]), expected, rtol=1e-12)
    assert model.score(X, y) > 0.9
