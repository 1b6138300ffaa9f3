"""Under sample weights, parts and their order change the model by rounding, and by no more."""


import numpy as np
import pytest
import scipy.sparse as sp

from textnb import BernoulliNB, ComplementNB, MultinomialNB

RNG = np.random.default_rng(5)
X = sp.csr_array(RNG.poisson(0.3, size=(3000, 200)))
Y = np.array(["a", "b", "c"])[RNG.choice(3, p=[0.7, 0.2, 0.1], size=3000)]
WEIGHT = RNG.lognormal(0.0, 3.0, size=3000)


@pytest.mark.parametrize("parts", [1, 4, 37])
@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB, ComplementNB])
def test_within_1e_12(kind, parts):
    whole = kind(l=0.1).fit(X, Y, sample_weight=WEIGHT)
    rows = np.random.default_rng(parts).permutation(3000)
    model = kind(l=0.1)
    for part in np.array_split(rows, parts):
        model.partial_fit(X[part], Y[part], classes=["a", "b", "c"], sample_weight=WEIGHT[part])
    for name in ("feature_log_prob_", "class_log_prior_"):
        np.testing.assert_allclose(
            getattr(model, name), getattr(whole, name), rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.feature_count_, whole.feature_count_, rtol=1e-12)
