"""Every public estimator, rows that it learns from, and another value of each of its parameters."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KernelDensity

import textnb
from textnb import BernoulliNB, RegularizedDiscriminantAnalysis, TfidfComplementNB
from textnb.models.histogram import HistogramDensity

COUNTS = np.array([[2, 1, 0, 0], [1, 0, 1, 0], [0, 3, 0, 1], [0, 1, 1, 2], [1, 1, 1, 0],
                   [3, 0, 0, 1], [0, 0, 2, 2]])
POINTS = np.array([[0.0, 1.0, 3.0], [1.0, 0.2, 2.0], [0.5, 2.0, 2.2], [0.1, 0.3, 4.1],
                   [4.0, 5.0, 0.0], [5.0, 4.2, 1.0], [4.4, 6.0, 0.3], [6.2, 4.1, 0.4]])
KINDS = ["a", "a", "b", "b", "a", "a", "b"]
SIDES = ["a"] * 4 + ["b"] * 4
# Enough to hold some out.
MANY = np.vstack([COUNTS + np.array([k, 0, 0, k % 2]) for k in range(4)])
SPREAD = np.vstack([POINTS + np.array([0.1 * k, -0.07 * k * k, 0.0]) for k in range(2)])


class Example(NamedTuple):
    """An estimator, what it learns from, and another value of each parameter."""

    estimator: Any
    X: Any
    y: Any
    others: dict[str, Any]

    def fit(self):
        return clone(self.estimator).fit(self.X, self.y)


OF_COUNTS = {"l": 0.1, "fit_prior": False, "class_prior": [0.2, 0.8], "class_weight": {"b": 3.0}}
EXAMPLES = {type(estimator).__name__: Example(estimator, X, y, others)
            for estimator, X, y, others in [
    (textnb.MultinomialNB(), COUNTS, KINDS, OF_COUNTS),
    (BernoulliNB(), COUNTS, KINDS, {**OF_COUNTS, "binarize": 1.0, "class_weight": "balanced"}),
    (textnb.ComplementNB(), COUNTS, KINDS, {**OF_COUNTS, "norm": True}),
    (textnb.CategoricalNB(min_categories=9), COUNTS, KINDS, {**OF_COUNTS, "min_categories": 12}),
    (textnb.NBLogisticRegression(), MANY, KINDS * 4, {
        "l": 0.1, "C": 0.1, "beta": 0.25, "loss": "hinge", "binarize": False, "tol": 100.0,
        "max_iter": 50, "random_state": 7, "class_weight": "balanced"}),
    (textnb.NBLinear(), MANY, KINDS * 4, {
        "l": 0.1, "C": 0.1, "loss": "log", "power": 1.0, "tf": "presence", "idf": False,
        "unit_length": False, "tol": 1e-6, "max_iter": 50, "held_out": 0.0,
        "class_weight": "balanced"}),
    (TfidfComplementNB(), MANY, KINDS * 4, {
        "l": 0.1, "norm": True, "tf": "presence", "idf": False, "unit_length": False,
        "class_weight": "balanced"}),
    (textnb.LogCountRatio(), COUNTS, KINDS, {"l": 0.1, "binarize": False}),
    (textnb.GaussianNB(), POINTS, SIDES, {
        "priors": [0.1, 0.9], "var_smoothing": 0.1, "shared_variance": True,
        "class_weight": {"b": 3.0}}),
    (textnb.LinearDiscriminantAnalysis(), POINTS, SIDES, {
        "covariance": "diagonal", "shrinkage": 0.5, "priors": [0.1, 0.9], "divisor": "n-K",
        "allow_singular": True, "n_components": 1}),
    (textnb.QuadraticDiscriminantAnalysis(reg_param=0.1), POINTS, SIDES, {
        "priors": [0.1, 0.9], "divisor": "n-1", "shrinkage": 0.5, "reg_param": 0.2,
        "allow_singular": True}),
    (RegularizedDiscriminantAnalysis(), SPREAD, SIDES * 2, {
        "alpha": [0.1, 0.9], "gamma": 0.1, "cv": 2, "priors": [0.1, 0.9], "allow_singular": True}),
    (textnb.NearestCentroid(), POINTS, SIDES, {"priors": [0.1, 0.9]}),
    (textnb.PlugInBayes(KernelDensity()), SPREAD, SIDES * 2, {
        "density": HistogramDensity(bins=2), "naive": True, "search": {"bandwidth": [0.5, 2.0]},
        "cv": 2, "priors": [0.1, 0.9]}),
    (HistogramDensity(), POINTS, SIDES, {"bins": 3, "l": 0.1}),
]}
CLASSIFIERS = {name: example.estimator for name, example in EXAMPLES.items()
               if hasattr(example.estimator, "predict")}
