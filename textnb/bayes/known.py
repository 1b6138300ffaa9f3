"""The models that are known by name, and the refusal of every other class.

A model file, leave-one-out scores, bounds of pruning, exports and ranked terms repeat or rely on a
model's mathematics. A subclass may change that mathematics, and nobody can see whether it does: so
what is known of a class holds for that very class.

Classes are named, not imported: to start, a command for texts needs no model of tables.
"""

from __future__ import annotations

from typing import Any

from textnb.errors import ParameterError

Kinds = tuple[str, ...]
# Of texts: those that learn from counts alone, and all.
COUNTING: Kinds = ("discrete.MultinomialNB", "discrete.BernoulliNB", "discrete.ComplementNB")
TEXTS: Kinds = (*COUNTING, "ratio.NBLogisticRegression")
# Of tables: those that learn from moments alone, and all.
MOMENTS: Kinds = (
    "gaussian.GaussianNB", "discriminants.LinearDiscriminantAnalysis",
    "quadratic.QuadraticDiscriminantAnalysis", "quadratic.RegularizedDiscriminantAnalysis",
    "discriminants.NearestCentroid")
TABLES: Kinds = (*MOMENTS, "plugin.PlugInBayes")
MODELS: Kinds = (*TEXTS, *TABLES, "discrete.CategoricalNB")


def is_known(estimator: Any, kinds: Kinds = MODELS) -> bool:
    """Whether the estimator is of one of these classes, and of no subclass."""
    own = type(estimator)
    return f"{own.__module__}.{own.__qualname__}" in {f"textnb.bayes.{kind}" for kind in kinds}


def check_model(estimator: Any, purpose: str, kinds: Kinds = MODELS) -> None:
    """Raises ParameterError for an estimator whose class is none of those that are known.

    Examples
    --------
    >>> from textnb.bayes.discrete import MultinomialNB
    >>> check_model(MultinomialNB(), "leave-one-out", COUNTING)
    >>> class Mine(MultinomialNB):
    ...     pass
    >>> check_model(Mine(), "leave-one-out", COUNTING)
    Traceback (most recent call last):
        ...
    textnb.errors.ParameterError: leave-one-out is known for MultinomialNB, BernoulliNB and \
ComplementNB; Mine is a class of its own, and what it changes is not known here
    """
    if not is_known(estimator, kinds):
        names = [kind.split(".")[1] for kind in kinds]
        raise ParameterError(
            f"{purpose} is known for {', '.join(names[:-1])} and {names[-1]}; "
            f"{type(estimator).__name__} is a class of its own, and what it changes is not known "
            "here")
