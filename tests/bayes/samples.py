"""Data of several tests of this folder: small counts, models on counts, and kinds of matrices."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from tests.oracles import bernoulli, categorical, complement, multinomial
from textnb import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB
from textnb.models.counts import CountModel
from textnb.models.known import MODELS

COUNT_MODELS = [kind for kind in MODELS if issubclass(kind, CountModel)]
every_count_model = pytest.mark.parametrize("kind", COUNT_MODELS)
matrices = pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array], ids=["dense", "sparse"])

# Models, and the exact scores of a row, by fractions.
ORACLES = {
    "multinomial": (MultinomialNB(), multinomial.scores),
    "bernoulli": (BernoulliNB(), bernoulli.scores),
    "complement": (ComplementNB(), complement.scores),
    "complement norm": (ComplementNB(norm=True), partial(complement.scores, norm=True)),
    "categorical": (CategoricalNB(min_categories=4), categorical.scores)}

X = np.array([[2, 0, 1, 0], [1, 0, 0, 2], [0, 1, 0, 0], [0, 3, 1, 0], [0, 2, 2, 1], [1, 1, 0, 1]])
Y = np.array(["ham", "ham", "ham", "spam", "spam", "eggs"])


def some_counts(classes, seed=0):
    """Poisson counts, with rates of each class, and labels from 0 to ``classes`` - 1."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, 150)
    rates = rng.gamma(0.3, 1.0, (classes, 80))
    return sp.csr_array(rng.poisson(rates[y] * 0.6)), y


def liblinear(loss, rows, positive, C=1.0, weight=None):
    """Its optimum, as near as it comes to it."""
    kind, settings = (LinearSVC, {"dual": False}) if loss == "hinge" else (
        LogisticRegression, {"solver": "liblinear"})
    model = kind(C=C, tol=1e-10, max_iter=100_000, **settings)
    return model.fit(rows, positive, sample_weight=weight)


def close(actual, expected, tolerance=1e-12):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tolerance,
                               atol=tolerance)


def with_wide_indices(rows):
    """The same rows, with indices of 64 bits."""
    return sp.csr_array((rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)),
                        shape=rows.shape)
