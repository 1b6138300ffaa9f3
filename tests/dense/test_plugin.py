"""The Bayes rule with densities plugged in, and the histogram."""

import tracemalloc
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from tests.dense.samples import close, rows
from tests.oracles import gaussian
from textnb import DataError, PlugInBayes, TableClassifier
from textnb.bayes.histogram import MAX_BINS, bins_per_column
from textnb.models.histogram import HistogramDensity


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::3, :2], np.array(["setosa", "versicolor", "virginica"])[y[::3]]


def by_class(X, y, naive=False):
    """Of each class, its rows, or those of each column."""
    each = [gaussian.of_class(X, y, label) for label in gaussian.labels(y)]
    return [[own[:, [i]] for i in range(X.shape[1])] if naive else [own] for own in each]


def kernel(x, rows, h):
    """log of the mean over the rows of Π_i N(x_i; row_i, h²)."""
    return float(np.log(np.mean([np.prod([norm.pdf(a, b, h) for a, b in zip(x, row, strict=True)])
                                 for row in rows])))


@pytest.mark.parametrize("naive", [False, True])
@pytest.mark.parametrize("priors", [None, [0.2, 0.3, 0.5]])
def test_kernel_densities_are_sums_over_rows(iris, naive, priors):
    X, y = iris
    model = PlugInBayes(KernelDensity(bandwidth=0.4), naive=naive, priors=priors).fit(X, y)
    shares, some = gaussian.shares(y) if priors is None else priors, X[::6]
    expected = np.array([[
        np.log(share) + sum(kernel(x[[i]] if naive else x, own, 0.4) for i, own in enumerate(parts))
        for share, parts in zip(shares, by_class(X, y, naive), strict=True)] for x in some])
    close(model.predict_joint_log_proba(some), expected)
    close(model.predict_log_proba(some), gaussian.posterior(expected), 1e-8)
    assert model.predict(some).tolist() == [
        gaussian.labels(y)[k] for k in expected.argmax(axis=1)]
    assert [len(each) for each in model.densities_] == [2 if naive else 1] * 3
    close(model.priors_, shares)


@pytest.mark.parametrize("naive", [False, True])
def test_the_bandwidth_is_that_of_a_search_within_each_class(iris, naive):
    X, y = iris
    grid = {"bandwidth": [0.05, 0.2, 0.5, 2.0]}
    model = PlugInBayes(KernelDensity(), naive=naive, search=grid, cv=4).fit(X, y)
    for parts, densities in zip(by_class(X, y, naive), model.densities_, strict=True):
        for own, density in zip(parts, densities, strict=True):
            best = GridSearchCV(KernelDensity(), grid, cv=4).fit(own).best_estimator_
            assert density.bandwidth == best.bandwidth
            assert np.array_equal(density.score_samples(own), best.score_samples(own))


def test_a_search_needs_rows_for_its_folds_and_a_refit_that_fails_changes_nothing(iris):
    X, y = iris
    model = PlugInBayes(search={"bandwidth": [0.1, 1.0]}).fit(X, y)
    before, counts = model.predict_joint_log_proba(X), model.class_count_.tolist()
    more, labels = np.concatenate([X, X[:4]]), np.append(y, ["rare"] * 4)
    with pytest.raises(DataError, match=r"class .*rare.* has 4 rows, fewer than cv=5 folds"):
        model.fit(more, labels)
    assert np.array_equal(model.predict_joint_log_proba(X), before)
    assert model.class_count_.tolist() == counts
    # What the message advises.
    model.set_params(cv=4).fit(more, labels)
    model.set_params(cv=5, search=None).fit(more, labels)


def test_mixtures_are_estimated_per_class(iris):
    X, y = iris
    density = GaussianMixture(2, random_state=0)
    joint = PlugInBayes(density).fit(X, y).predict_joint_log_proba(X)
    for k, [own] in enumerate(by_class(X, y)):
        alone = GaussianMixture(2, random_state=0).fit(own)
        close(joint[:, k], np.log(len(own) / len(X)) + alone.score_samples(X), 1e-12)
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


def test_edges_may_be_given_and_a_constant_column_has_bins_too():
    model = HistogramDensity(bins=[0.0, 1.0, 3.0], l=1.0).fit([[0.5], [0.7], [2.0]])
    assert np.exp(model.score_samples([[0.1], [2.9]])).tolist() == pytest.approx([3 / 5, 2 / 10])
    model = HistogramDensity(bins=4).fit([[2.0], [2.0], [2.0]])
    assert np.isfinite(model.score_samples([[2.0], [7.0]])).all()


@pytest.mark.parametrize("rule", ["auto", "doane", "fd", "rice", "scott", "sqrt", "stone",
                                  "sturges"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:The number of bins estimated may be suboptimal")
def test_rules_are_those_of_numpy(rule, seed):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.normal(size=300), rng.standard_cauchy(300), rng.integers(0, 3, 300),
                  np.full(300, 7.0)], axis=1)
    edges = HistogramDensity(bins=rule).fit(X).edges_
    for column, own in zip(X.T, edges, strict=True):
        np.testing.assert_array_equal(own, np.histogram_bin_edges(column, rule))
    counts = bins_per_column(X, rule, "abcd")
    assert all(len(own) - 1 <= n for own, n in zip(edges, counts, strict=True))


@pytest.mark.parametrize("naive", [False, True])
def test_too_many_bins_by_a_rule(naive):
    outlier = np.append(np.random.default_rng(0).normal(size=999), 1e9)[:, None]
    frame = rows(2000).with_columns(z=pl.when(pl.int_range(pl.len()) == 7).then(1e9).otherwise("z"))
    tracemalloc.start()
    with pytest.raises(DataError, match=r"bins='fd' makes [\d,]+ bins of feature 0, more than"):
        HistogramDensity(bins="fd").fit(outlier)
    with pytest.raises(DataError, match="bins of feature 'z', more than 1,000,000"):
        TableClassifier(PlugInBayes(HistogramDensity(bins="fd"), naive=naive)).fit(frame)
    assert tracemalloc.get_traced_memory()[1] < 8 * MAX_BINS
    tracemalloc.stop()
    # What the message advises.
    HistogramDensity(bins=100).fit(outlier)
    HistogramDensity(bins=[-9.0, 0.0, 9.0]).fit(outlier)
    HistogramDensity(bins="fd").fit(outlier[:-1])
    assert len(HistogramDensity(bins="auto").fit(outlier).edges_[0]) < 100


def test_histograms_in_the_bayes_rule():
    X, y = load_iris(return_X_y=True)
    model = PlugInBayes(HistogramDensity(bins=5), naive=True).fit(X, y)
    expected = np.array([[np.log(1 / 3) + sum(
        histogram_by_hand(x[i], X[y == k, i], np.histogram_bin_edges(X[y == k, i], 5), 1.0)
        for i in range(4)) for k in range(3)] for x in X[::10]])
    np.testing.assert_allclose(model.predict_joint_log_proba(X[::10]), expected, rtol=1e-12)
    assert model.score(X, y) > 0.9
