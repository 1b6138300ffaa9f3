"""The models of this package, and other registered ones: importing a model registers it.

Another package offers a model by an entry point of the group ``textnb.models``, whose name is the
model's kind. It is imported when the kind, or a file, needs it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from textnb.errors import ParameterError
from textnb.models.base import REGISTERED, Model
from textnb.models.bernoulli import BernoulliNB
from textnb.models.categorical import CategoricalNB
from textnb.models.complement import ComplementNB
from textnb.models.discriminants import LinearDiscriminantAnalysis, NearestCentroid
from textnb.models.gaussian import GaussianNB
from textnb.models.multinomial import MultinomialNB
from textnb.models.nblinear import NBLinear
from textnb.models.nblr import NBLogisticRegression
from textnb.models.plugin import PlugInBayes
from textnb.models.prediction import FormClassifier
from textnb.models.quadratic import (
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
)
from textnb.models.tfidf_complement import TfidfComplementNB

# In the order of help texts.
MODELS = (MultinomialNB, BernoulliNB, ComplementNB, TfidfComplementNB, NBLinear,
          NBLogisticRegression, CategoricalNB, GaussianNB, LinearDiscriminantAnalysis,
          QuadraticDiscriminantAnalysis, RegularizedDiscriminantAnalysis, NearestCentroid,
          PlugInBayes)


# Names that others use for a model, and its kind here.
SYNONYMS = {**dict.fromkeys((
    "svm", "svc", "linearsvc", "linear_svc", "linear", "logistic", "logreg", "logisticregression",
    "logistic_regression", "sgd"), "nblinear"), **dict.fromkeys((
        "nb", "naive_bayes", "naivebayes", "mnb", "multinomialnb"), "multinomial")}


def import_offered(name: str) -> None:
    """Import the model that has a kind, or a class of this name, if another package offers it.

    Nothing is imported if the model is known, or if nobody offers it.
    """
    if any(name in (model.kind, model.name) for model in registered_models()):
        return
    from importlib.metadata import entry_points

    for offered in entry_points(group="textnb.models"):
        if name in (offered.name, offered.attr):
            offered.load()


def registered_models() -> list[type[Any]]:
    """The registered models, those of this package first."""
    return [*MODELS, *(model for model in REGISTERED.values() if model not in MODELS)]


def all_models() -> dict[str, type[Any]]:
    """The models that have a kind, on the command line and in jobs: of texts, then of tables.

    Examples
    --------
    >>> [*all_models()][-5:]
    ['gaussian', 'lda', 'qda', 'rda', 'centroid']
    """
    return {**text_models(), **table_models()}


def text_models() -> dict[str, type[Model]]:
    """The models of texts by kind, such as "multinomial"; those of this package first.

    Examples
    --------
    >>> [*text_models()][:2]
    ['multinomial', 'bernoulli']
    """
    return {model.kind: model for model in registered_models() if model.of_terms}


def table_models() -> dict[str, type[FormClassifier]]:
    """The models of feature tables by kind, such as "gaussian"; without those that have none."""
    return {model.kind: model for model in registered_models()
            if model.kind and not model.of_terms}


def model_named(name: str, parameters: Any) -> Model:
    """The model with a name in a file, and its parameters.

    Parameters
    ----------
    name : str
    parameters : mapping
        Missing ones have their defaults.

    Raises
    ------
    ParameterError
        If the name, or a parameter, is not known.

    Examples
    --------
    >>> model_named("ComplementNB", {"l": 0.5})
    ComplementNB(l=0.5)
    """
    by_name = {model.name: model for model in text_models().values()}
    if name not in by_name:
        raise ParameterError.unknown_choice("estimator", name, [*by_name])
    known = [field.name for field in fields(by_name[name])]
    for parameter in parameters:
        if parameter not in known:
            raise ParameterError.unknown_choice(f"a parameter of {name}", parameter, known)
    return by_name[name](**parameters)
