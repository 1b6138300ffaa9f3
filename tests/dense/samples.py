"""What the tests of this room share: models of dense features, and small tables."""

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import textnb
from textnb import GaussianNB, PlugInBayes, RegularizedDiscriminantAnalysis
from textnb.models.histogram import HistogramDensity

LDA, QDA = textnb.LinearDiscriminantAnalysis, textnb.QuadraticDiscriminantAnalysis
RDA = RegularizedDiscriminantAnalysis
GAUSSIAN = [GaussianNB(), GaussianNB(shared_variance=True), LDA(), QDA(), RDA(),
            textnb.NearestCentroid()]
every_gaussian = pytest.mark.parametrize("model", GAUSSIAN, ids=repr)
# Those that learn in batches, and those that need all rows.
STREAMING = [*GAUSSIAN, LDA(shrinkage=0.2), LDA(covariance="diagonal"),
             QDA(reg_param=0.1, divisor="n-1")]
WHOLE = [LDA(shrinkage="auto"), QDA(shrinkage="auto"), RDA(alpha=[0.1, 0.6], gamma=[0.2, 0.9]),
         PlugInBayes(KernelDensity(bandwidth=0.5)), PlugInBayes(naive=True),
         PlugInBayes(KernelDensity(), search={"bandwidth": [0.1, 0.5]}, cv=3),
         PlugInBayes(GaussianMixture(2, random_state=0)),
         PlugInBayes(HistogramDensity(bins=4), naive=True)]


def close(actual, expected, tolerance=1e-9):
    np.testing.assert_allclose(np.asarray(actual, dtype=np.float64),
                               np.asarray(expected, dtype=np.float64),
                               rtol=tolerance, atol=tolerance)


def rows(n=60, labels=("a", "b")):
    """Two features, x and z, whose means differ by class."""
    y = np.arange(n) % len(labels)
    X = np.random.default_rng(0).normal(size=(n, 2)) + 2.0 * y[:, None]
    return pl.DataFrame(X, schema=["x", "z"]).with_columns(label=pl.Series([labels[k] for k in y]))


def matrix(frame):
    return frame.select("x", "z").to_numpy(), frame["label"].to_numpy()


def many(n=30_000):
    """Rows of several batches."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    return pl.DataFrame(rng.normal(size=(n, 2)) + y[:, None], schema=["x", "z"]).with_columns(
        label=pl.Series(np.array(["u", "vv", "www"])[y]))


COLUMNS = ["a", "b", "c", "d"]


def flowers():
    """Iris in an order of chance, and a column that is no feature."""
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    order = np.random.default_rng(0).permutation(150)
    return pl.DataFrame(X[order], schema=COLUMNS).with_columns(
        label=pl.Series(names[order]), note=pl.lit("n"))


def wine():
    """Standardised."""
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y
