"""The best of many classes, without a sort of all."""

import numpy as np
import pytest

from textnb.scoring.columns import best_columns


@pytest.mark.parametrize("values", [2, 50, 10**9])
@pytest.mark.parametrize("k", [1, 5, 299, 300, 400])
def test_the_best_columns_are_those_of_a_stable_sort(values, k):
    rng = np.random.default_rng(values)
    scores = rng.integers(0, values, (40, 300)).astype(float)
    scores[rng.random(scores.shape) < 0.2] = -np.inf
    scores[0] = -np.inf
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(best_columns(scores, k), expected)
    assert best_columns(scores[:0], k).shape == (0, min(k, 300))
