"""The estimators of texts, by their names in files and on the command line."""

from __future__ import annotations

from textnb.bayes.known import registered_estimators
from textnb.estimators.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from textnb.estimators.ratio import NBLogisticRegression

# Their modules register them.
BUILT_IN = (MultinomialNB, BernoulliNB, ComplementNB, NBLogisticRegression)


def text_estimators() -> dict[str, type]:
    """The estimators by name, those of this package first."""
    return {model.name: estimator for model, estimator in registered_estimators()}


def text_kinds() -> dict[str, type]:
    """The estimators by kind, such as "multinomial"."""
    return {model.kind: estimator for model, estimator in registered_estimators()}
