"""Bounds on shares and the ROC, beside those of SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, binom
from sklearn.metrics import auc, roc_curve

from textnb.evaluation.binomial import errors_allowed, lower_bound, upper_bound
from textnb.evaluation.roc import roc


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(("events", "trials"), [(0, 1), (0, 2995), (3, 10), (59, 60), (700, 4321)])
def test_bounds_are_those_of_scipy(events: int, trials: int, confidence: float) -> None:
    assert upper_bound(events, trials, confidence) == pytest.approx(
        beta.ppf(confidence, events + 1, trials - events), rel=1e-12)
    if events:
        assert lower_bound(events, trials, confidence) == pytest.approx(
            beta.ppf(1.0 - confidence, events, trials - events + 1), rel=1e-12)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("rate", [0.001, 0.01, 0.3])
@pytest.mark.parametrize("trials", [1, 7, 300, 2995, 19_999])
def test_as_many_errors_are_allowed_as_the_distribution_says(
    trials: int, rate: float, confidence: float
) -> None:
    most = errors_allowed(trials, rate, confidence)
    assert -1 <= most < trials
    assert most == -1 or binom.cdf(most, trials, rate) <= 1.0 - confidence
    assert binom.cdf(most + 1, trials, rate) > 1.0 - confidence


@pytest.mark.parametrize("seed", range(5))
def test_a_roc_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    positive, score = rng.random(200) < 0.3, rng.integers(0, 40, 200) / 8.0
    false, true, thresholds = roc_curve(positive, score, drop_intermediate=False)
    found = roc(positive, score)
    assert found.auc == pytest.approx(auc(false, true), rel=1e-14)
    for name, expected in (("false_positive_rate", false), ("true_positive_rate", true),
                           ("threshold", thresholds)):
        assert found.points[name].to_list() == pytest.approx(expected.tolist())
