"""The estimators of texts, by their names in files and on the command line."""

from __future__ import annotations

from difflib import get_close_matches
from inspect import signature
from typing import Any

from textnb.bayes.known import registered_estimators
from textnb.errors import ParameterError
from textnb.estimators.event_estimator import check_reading, event_model_of
from textnb.estimators.linear import NBLinear
from textnb.estimators.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from textnb.estimators.ratio import NBLogisticRegression
from textnb.estimators.tfidf import TfidfComplementNB
from textnb.text.tokens import Tokenizer

# An import of their modules registers them.
BUILT_IN = (MultinomialNB, BernoulliNB, ComplementNB, TfidfComplementNB, NBLogisticRegression,
            NBLinear)


def text_estimators() -> dict[str, type]:
    """The estimators by name, those of this package first."""
    return {model.name: estimator for model, estimator in registered_estimators()}


def text_kinds() -> dict[str, type]:
    """The estimators by kind, such as "multinomial"."""
    return {model.kind: estimator for model, estimator in registered_estimators()}

def place_of_setting(owner: type, name: str) -> str:
    """The owner of a setting that a classifier of texts does not have; "" if nothing has it.

    Parameters
    ----------
    owner : type
        The classifier's class.
    name : str
        As it was written, or a similar name.
    """
    own = list(signature(owner).parameters)
    of_tokens = Tokenizer().get_params()
    near = get_close_matches(name, [*own, *of_tokens], n=1, cutoff=0.5)
    meant = near[0] if near else name
    if meant in of_tokens:
        return (f"{meant} is a setting of its tokenizer, "
                f"{owner.__name__}(tokenizer=Tokenizer({meant}={of_tokens[meant]!r}))")
    for kind in () if near else text_kinds().values():
        parameters = kind().get_params(deep=False)
        if name in parameters:
            return (f"{name} is a setting of its estimator, "
                    f"{owner.__name__}({kind.__name__}({name}={parameters[name]!r}))")
    return ""


def with_parameters(given: Any) -> Any:
    """The estimator of a classifier, to set its parameters; ParameterError for "auto"."""
    if isinstance(given, str) and given == "auto":
        raise ParameterError("estimator='auto' has no parameters, as fit chooses the model and its "
                             "parameters: give an estimator, such as NBLinear()")
    return MultinomialNB() if given is None else given


def event_model_of_texts(given: Any) -> Any:
    """The event model of the estimator of a classifier of texts.

    Raises
    ------
    ParameterError
        If it does not learn from counts of terms.
    """
    if isinstance(given, type):
        raise ParameterError(
            f"estimator must be a model, and {given.__name__} is its class: {given.__name__}()")
    if given == "auto":
        raise ParameterError("estimator='auto' is chosen by fit, from all documents: call fit, or "
                             "give an estimator")
    estimator = MultinomialNB() if given is None else given
    model = getattr(estimator, "event_model_type", None)
    if model is None or not model.of_terms:
        *names, last = text_estimators()
        got = repr(estimator) if isinstance(estimator, str) else type(estimator).__name__
        raise ParameterError(f"estimator must be {', '.join(names)}, {last} or 'auto'; got {got}")
    check_reading(estimator)
    return event_model_of(estimator)
