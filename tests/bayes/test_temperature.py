"""The search for a temperature and a shift, compared with a minimizer of SciPy."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize

from textnb.bayes.temperature import best_sigmoids, best_temperature


def mean_loss(slope, shift, margins, codes, weight):
    """The log loss of normalised sigmoids; one more row has every class with equal weight."""
    inner = slope * margins + shift
    logs = -np.logaddexp(0.0, -inner)
    logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
    share = 1.0 / (weight.sum() + 1.0)
    own = (1.0 - share) * logs[np.arange(len(codes)), codes] + share * logs.mean(axis=1)
    return -float(weight @ own) / weight.sum()


@pytest.mark.slow
@pytest.mark.parametrize("start", [-1.0, 0.0])
@pytest.mark.parametrize(("rows", "classes", "gain", "noise"), [
    (2000, 4, 1.5, 1.0), (800, 20, 1.2, 0.3), (30, 3, 5.0, 0.1), (300, 5, 0.0, 1.0),
    (50, 3, 1e5, 1.0), (400, 4, 1.5, 1e-3), (400, 100, 1.0, 0.2), (20, 3, -2.0, 1.0),
    (200, 4, 1e-5, 1e-5)])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_other_sigmoids_have_a_smaller_loss(rows, classes, gain, noise, start, weighted):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, classes, rows)
    margins = rng.normal(start, noise, (rows, classes))
    margins[np.arange(rows), codes] += gain
    weight = rng.integers(0, 3, rows).astype(float) if weighted else np.ones(rows)
    temperature, shift = best_sigmoids(margins, codes, weight)
    loss = mean_loss(1.0 / temperature, shift, margins, codes, weight)

    def of_point(point):
        return mean_loss(np.exp(point[0]), point[1], margins, codes, weight)

    for begin in (best_temperature(margins, codes, weight), 1.0):
        result = minimize(of_point, [-np.log(begin), 0.0], method="L-BFGS-B",
                          bounds=[(-np.log(1e6), np.log(1e6)), (-100.0, 100.0)])
        assert loss <= result.fun + 1e-6


def test_rows_without_weight_or_information_give_the_identity():
    codes = np.array([0, 1, 2])
    assert best_sigmoids(np.eye(3), codes, np.zeros(3)) == (1.0, 0.0)
    assert best_sigmoids(np.zeros((3, 3)), codes, np.ones(3)) == (1.0, 0.0)


def test_best_temperature_minimizes_the_log_loss_and_weights_equal_repeated_rows():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 5000)
    scores = rng.normal(size=(5000, 3))
    scores[np.arange(5000), codes] += 1.0
    best = best_temperature(scores, codes)

    def loss(temperature):
        scaled = scores / temperature
        return float(np.mean(np.log(np.exp(scaled).sum(axis=1)) - scaled[np.arange(5000), codes]))

    assert loss(best) <= min(loss(0.98 * best), loss(1.02 * best))
    doubled = best_temperature(np.repeat(scores[:50], 2, axis=0), np.repeat(codes[:50], 2))
    weighted = best_temperature(scores[:50], codes[:50], np.full(50, 2.0))
    assert doubled == pytest.approx(weighted, rel=1e-9)


def test_the_search_does_not_import_scipy_optimize():
    code = ("import sys, numpy as np\n"
            "from textnb.bayes.temperature import best_sigmoids\n"
            "best_sigmoids(np.eye(3), np.array([0, 1, 2]), np.ones(3))\n"
            "assert 'scipy.optimize' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)
