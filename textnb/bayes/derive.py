"""A model's form from its counts alone, by the name of its estimator.

The estimators derive the same forms by the same functions; here nothing but NumPy is imported, for
a filter that must answer as soon as it has started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from textnb.bayes.class_weight import with_class_weight
from textnb.bayes.forms import LinearForm
from textnb.bayes.smoothing import (
    bernoulli_form,
    complement_weights,
    log_prior,
    multinomial_log_prob,
)
from textnb.bayes.statistics import CountStatistics, as_class_prior, as_smoothing
from textnb.errors import ParameterError


def scores_are_log_probabilities(name: str, parameters: Mapping[str, Any]) -> bool:
    """Whether a model's scores are log-probabilities, as its estimator says of itself.

    Parameters
    ----------
    name : {"MultinomialNB", "BernoulliNB", "ComplementNB", "NBLogisticRegression"}
    parameters : mapping
        The estimator's.

    Raises
    ------
    ParameterError
        If the name is none of these.
    """
    if name == "NBLogisticRegression":
        return bool(parameters.get("loss", "log") == "log")
    known = {"MultinomialNB": True, "BernoulliNB": True, "ComplementNB": False}
    if name not in known:
        raise ParameterError.unknown_choice("estimator", name, [*known, "NBLogisticRegression"])
    return known[name]


def derived_form(
    name: str, parameters: Mapping[str, Any], statistics: CountStatistics, binary: bool = False
) -> LinearForm:
    """The linear form of a naive Bayes model.

    Parameters
    ----------
    name : {"MultinomialNB", "BernoulliNB", "ComplementNB"}
    parameters : mapping
        The estimator's: ``l``, ``fit_prior``, ``class_prior``, ``class_weight`` where there is one,
        and ``binarize`` or ``norm``.
    statistics : CountStatistics
    binary : bool
        A term counts once per document.

    Raises
    ------
    ParameterError
        If the name is none of these, or a parameter is out of its range.

    Examples
    --------
    >>> counts = CountStatistics(np.array(["a", "b"]), np.array([1, 1]), np.array([[3, 1], [0, 2]]))
    >>> form = derived_form("MultinomialNB", {"l": 1.0, "fit_prior": True, "class_prior": None},
    ...                     counts)
    >>> np.exp(form.weights).round(3).tolist()
    [[0.667, 0.25], [0.333, 0.75]]
    """
    smoothing = as_smoothing(parameters["l"], statistics.n_features)
    statistics = with_class_weight(statistics, parameters.get("class_weight"))
    classes = statistics.classes
    prior = log_prior(
        statistics.class_count, as_class_prior(parameters["class_prior"], len(classes)),
        bool(parameters["fit_prior"]))
    if name == "MultinomialNB":
        log_prob = multinomial_log_prob(statistics.feature_count, smoothing)
        form = LinearForm(classes, np.ascontiguousarray(log_prob.T), prior)
    elif name == "BernoulliNB":
        above = parameters["binarize"]
        form = bernoulli_form(statistics, smoothing, prior,
                              None if above is None else float(above))[0]
    elif name == "ComplementNB":
        weights = complement_weights(
            statistics.feature_count, smoothing, bool(parameters["norm"]))
        form = LinearForm(classes, np.ascontiguousarray(weights.T),
                          prior if len(classes) == 1 else np.zeros(len(classes)))
    else:
        raise ParameterError.unknown_choice(
            "estimator", name, ["MultinomialNB", "BernoulliNB", "ComplementNB"])
    return replace(form, presence_above=0.0) if binary else form
