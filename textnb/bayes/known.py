"""The registry of models: event models by name, estimators by class.

Model files, leave-one-out scores, exports and ranked terms rely on a model's mathematics. A
subclass of an estimator may change that mathematics, and code can't see whether it does. So a
registration holds for exactly one class, and not for its subclasses. A class that is not
registered is refused until it has its own event model and both are registered.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from textnb.bayes.counts.bernoulli import Bernoulli
from textnb.bayes.counts.complement import Complement
from textnb.bayes.counts.linear import Linear
from textnb.bayes.counts.multinomial import Multinomial
from textnb.bayes.counts.ratio import CountRatio
from textnb.bayes.counts.tfidf_complement import TfidfComplement
from textnb.bayes.event_model import CountModel, EventModel
from textnb.errors import ParameterError

# The registry. A built-in model is one line here, an import above, and its estimator's decorator.
_MODELS: dict[str, type[EventModel]] = {
    model.name: model for model in (
        Multinomial, Bernoulli, Complement, TfidfComplement, CountRatio, Linear)}
# The event model of each registered estimator; None for estimators of feature tables.
_ESTIMATORS: dict[type, type[EventModel] | None] = {}
# What each model must define.
_REQUIRED = ("name", "kind", "scores_are_log_probabilities", "without_terms", "term_z")

Estimator = TypeVar("Estimator", bound=type)


def event_model(name: str, parameters: Mapping[str, Any]) -> EventModel:
    """The event model of a name in a file, with its parameters.

    Parameters
    ----------
    name : str
    parameters : mapping
        Parameters of the estimator. Missing ones have their defaults.

    Raises
    ------
    ParameterError
        If the name, or a parameter, is not known.

    Examples
    --------
    >>> event_model("ComplementNB", {"l": 0.5}).scores_are_log_probabilities
    False
    """
    if name not in _MODELS:
        raise ParameterError.unknown_choice("estimator", name, [*_MODELS])
    return _MODELS[name].of(parameters)


def text_models() -> dict[str, type[EventModel]]:
    """The event models of texts by kind, such as "multinomial"; those of this package first.

    Examples
    --------
    >>> [*text_models()][:2]
    ['multinomial', 'bernoulli']
    """
    return {model.kind: model for model in _MODELS.values()}


def register(model: type[EventModel], estimator: type) -> None:
    """Make an event model known, and the estimator that fits it.

    From then on classifiers, files, leave-one-out, exports and reports take the estimator. Where
    the event model has no method of its own for one of them, it is refused there.

    Parameters
    ----------
    model : type of EventModel
        A frozen dataclass with a ``name`` and ``kind`` that no other model has.
    estimator : type
        A subclass of `textnb.estimators.discrete.DiscreteNB` with ``event_model_type = model`` in
        its own body, with the model's fields as parameters, and the same defaults.

    Raises
    ------
    ParameterError
        If one of these does not hold.
    """
    for other in _MODELS.values():
        if model is not other and (model.name == other.name or model.kind == other.kind):
            raise ParameterError(f"the event model {model.__name__} has the name {model.name!r} "
                                 f"and the kind {model.kind!r}, and {other.__name__} has one of "
                                 "them: give it others")
    _check_model(model)
    known = model.name in _MODELS
    _MODELS[model.name] = model
    try:
        register_estimator(estimator)
    except ParameterError:
        if not known:
            del _MODELS[model.name]
        raise


def register_estimator(estimator: Estimator) -> Estimator:
    """Make an estimator's class known, with the event model that its own body names."""
    model = vars(estimator).get("event_model_type")
    if model is not None:
        owner = next((other for other, used in _ESTIMATORS.items() if used is model), estimator)
        if owner is not estimator:
            raise ParameterError(f"{estimator.__name__} needs an event model of its own: "
                                 f"{model.__name__} is that of {owner.__name__}")
        if model.of_terms:
            _check_parameters(model, estimator)
    elif hasattr(estimator, "event_model_type"):
        raise ParameterError(f"{estimator.__name__} has no event_model_type in its own body: name "
                             "the event model that it fits there")
    _ESTIMATORS[estimator] = model
    return estimator


def registered_estimators() -> list[tuple[type[EventModel], type]]:
    """Event models of terms, and their estimators whose modules were imported."""
    estimators = {model: estimator for estimator, model in _ESTIMATORS.items()}
    return [(model, estimators[model]) for model in _MODELS.values() if model in estimators]


def known_event_model(estimator: Any) -> type[EventModel] | None:
    """The event model that exactly the class of this estimator fits; None for other classes."""
    model = _ESTIMATORS.get(type(estimator))
    return None if model is None or _MODELS.get(model.name) is not model else model


def is_known(estimator: Any) -> bool:
    """Whether the class of the estimator itself is registered, not only a base class of it."""
    return type(estimator) in _ESTIMATORS


def check_model(estimator: Any, purpose: str) -> None:
    """Raises ParameterError for an estimator whose class is not registered.

    Examples
    --------
    >>> from textnb.estimators.naive_bayes import MultinomialNB
    >>> check_model(MultinomialNB(), "leave-one-out")
    >>> class Mine(MultinomialNB):
    ...     pass
    >>> check_model(Mine(), "leave-one-out")
    Traceback (most recent call last):
        ...
    textnb.errors.ParameterError: leave-one-out is known for the models of this package and those \
that are registered; Mine is a class of its own, and what it changes is not known here
    """
    if not is_known(estimator):
        raise _unknown_model(type(estimator).__name__, purpose)


def is_registered(model: EventModel) -> bool:
    """Whether the model's own class is registered."""
    return _MODELS.get(model.name) is type(model)


def check_event_model(model: EventModel, purpose: str) -> None:
    """Raises ParameterError for a model whose class is not registered."""
    if not is_registered(model):
        raise _unknown_model(model.name, purpose)


def _unknown_model(name: str, purpose: str) -> ParameterError:
    return ParameterError(
        f"{purpose} is known for the models of this package and those that are registered; "
        f"{name} is a class of its own, and what it changes is not known here")


def _check_model(model: type[EventModel]) -> None:
    # A model that inherited the leave-one-out of another model would give wrong results without an
    # error.
    if model.__bases__ not in ((CountModel,), (EventModel,)):
        raise ParameterError(f"the event model {model.__name__} must derive from CountModel or "
                             "EventModel itself, and inherit no other model's mathematics")
    # A dataclass that inherits from frozen ones is frozen.
    if "__dataclass_fields__" not in vars(model):
        raise ParameterError(f"the event model {model.__name__} must be a frozen dataclass: it is "
                             "shared by threads")
    (base,) = model.__bases__
    for part in (*_REQUIRED, "weigh" if base is CountModel else "derive"):
        if getattr(model, part) is getattr(base, part):
            raise ParameterError(f"the event model {model.__name__} does not say its {part}")


def _check_parameters(model: type[EventModel], estimator: type) -> None:
    expected = {field.name: field.default for field in fields(model)}
    actual = {name: parameter.default for name, parameter
             in inspect.signature(estimator).parameters.items()}
    if expected.keys() != actual.keys() or MISSING in expected.values() or any(
            actual[name] != default for name, default in expected.items()):
        raise ParameterError(
            f"the parameters of {estimator.__name__} must be the fields of {model.__name__}, with "
            f"the same defaults: {expected}; got {actual}")
