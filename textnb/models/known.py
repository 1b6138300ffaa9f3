"""The models of this package, which are registered by their import, and those of other packages.

Another package offers a model by an entry point in the group ``textnb.models``, whose name is the
model's kind. It is imported when a setting or a model file names it.
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
from textnb.models.quadratic import QuadraticDiscriminantAnalysis, RegularizedDiscriminantAnalysis
from textnb.models.tfidf_complement import TfidfComplementNB

# The models of this package, in the order in which help texts list them.
MODELS = (MultinomialNB, BernoulliNB, ComplementNB, TfidfComplementNB, NBLinear,
          NBLogisticRegression, CategoricalNB, GaussianNB, LinearDiscriminantAnalysis,
          QuadraticDiscriminantAnalysis, RegularizedDiscriminantAnalysis, NearestCentroid,
          PlugInBayes)
# Names that other libraries use for a model, with its kind here, which the error suggests.
SYNONYMS = {**dict.fromkeys((
    "svm", "svc", "linearsvc", "linear_svc", "linear", "logistic", "logreg", "logisticregression",
    "logistic_regression", "sgd"), "nblinear"), **dict.fromkeys((
        "nb", "naive_bayes", "naivebayes", "mnb", "multinomialnb"), "multinomial")}


def import_model(name: str) -> None:
    """Import a model from another package, by its kind or the name of its class.

    Nothing is imported if the model is already known, or if no package offers it.
    """
    if any(name in (model.kind, model.name) for model in registered_models()):
        return
    from importlib.metadata import entry_points

    for entry_point in entry_points(group="textnb.models"):
        if name in (entry_point.name, entry_point.attr):
            # The import registers the model.
            entry_point.load()


def registered_models() -> list[type[Any]]:
    """The registered models, those of this package first."""
    return [*MODELS, *(model for model in REGISTERED.values() if model not in MODELS)]


def all_models() -> dict[str, type[Any]]:
    """The models with a kind, which the command line and jobs know: of texts, then of tables.

    Examples
    --------
    >>> [*all_models()][-5:]
    ['gaussian', 'lda', 'qda', 'rda', 'centroid']
    """
    return {**text_models(), **table_models()}


def text_models() -> dict[str, type[Model]]:
    """The models of texts by kind, such as "multinomial": first the models of this package.

    Examples
    --------
    >>> [*text_models()][:2]
    ['multinomial', 'bernoulli']
    """
    return {model.kind: model for model in registered_models() if model.of_terms}


def table_models() -> dict[str, type[FormClassifier]]:
    """The models of feature tables that have a kind, such as "gaussian", by kind."""
    return {model.kind: model for model in registered_models()
            if model.kind and not model.of_terms}


def model_named(name: str, parameters: Any) -> Model:
    """The model of texts that a model file names.

    Parameters
    ----------
    name : str
        The name of its class.
    parameters : mapping
        The model's parameters; by default those that its class has.

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
