"""The model in a classifier of texts: its checks, and the owners of settings."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from inspect import signature
from typing import Any

from textnb.classifiers.changes import check_unchanged
from textnb.errors import ParameterError
from textnb.learning.memory_limit import memory_size
from textnb.learning.parameters import DEFAULTS, default_terms
from textnb.learning.text_settings import TextSettings
from textnb.models.base import Model, check_registered
from textnb.models.known import SYNONYMS, import_offered, text_models
from textnb.models.multinomial import MultinomialNB
from textnb.models.protocol import unfitted
from textnb.runtime.removed import SETTINGS, removal_message
from textnb.runtime.settings import is_truth
from textnb.text.tokens import Tokenizer

# In place of a model: `fit` chooses it, and all settings, by a search.
AUTO = "auto"


def is_auto(estimator: Any) -> bool:
    """Whether `fit` is to choose the model and all settings."""
    return isinstance(estimator, str) and estimator == AUTO


def check_start_of(is_search: bool, warm_start: Any, keep_sample: Any, unlabelled: Any) -> None:
    """Raise ParameterError if a warm start is not True or False, or goes with a search.

    A search begins anew, keeps no sample of rows, and reads labelled rows alone.
    """
    if not is_truth(warm_start):
        raise ParameterError.out_of_range(
            "warm_start", "True or False; a model of a file is loaded first, "
            "textnb.load(path).fit(documents, warm_start=True)", warm_start)
    if warm_start and is_search:
        raise ParameterError("a search for settings has no warm start")
    for name, value in (("keep_sample", keep_sample), ("unlabelled", unlabelled)):
        if value is not None and is_search:
            raise ParameterError(f"{name} is for NBLinear, and not for estimator='auto'")


def check_texts_unchanged(classifier: Any, settings: TextSettings, used: Any, action: str) -> None:
    """Raise ParameterError if a classifier's parameters are no longer those of `fit`.

    Parameters
    ----------
    classifier : TextClassifier
    settings : TextSettings
        Those of `fit`.
    used : estimator or None
        The fitted estimator, if somebody has got it (``estimator_``), and may have changed it.
    action : str
        See `check_unchanged`.
    """
    parameters: dict[str, Any] = settings.parameters
    estimator: Any = settings.model
    if is_auto(classifier.estimator):
        parameters = {**DEFAULTS, "text": parameters["text"], "label": parameters["label"]}
        estimator, used = AUTO, None
    now = {**{name: getattr(classifier, name) for name in parameters},
           "estimator": named_model(classifier.estimator)}
    # Without a tokenizer, parts of words are a default too.
    by_default = settings.by_default if now["tokenizer"] is None else (
        settings.by_default - {"subwords"})
    now |= {name: parameters[name] for name in by_default if now[name] is None}
    # A fitted limit is in bytes, even if it was set as text such as "500M".
    now["memory_limit"] = memory_size(classifier.memory_limit)
    check_unchanged({**parameters, "estimator": estimator}, now,
                    estimator if used is None else used, action)


def terms_of(estimator: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the model of a classifier reads by default, before some settings of it are changed.

    A search, and another analyzer, begin from plain words.
    """
    if is_auto(estimator) or settings.get("analyzer", "word") != "word":
        return default_terms(MultinomialNB())
    return default_terms(model_of_texts(estimator))


def place_of_setting(owner: type, name: str) -> str:
    """The owner of a setting that a classifier of texts does not have; "" if nothing has it.

    Parameters
    ----------
    owner : type
        The classifier's class.
    name : str
        As it was written, or a similar name.
    """
    if name in SETTINGS:
        return removal_message("it", SETTINGS[name])
    own = list(signature(owner).parameters)
    of_tokens = Tokenizer().get_params()
    near = get_close_matches(name, [*own, *of_tokens], n=1, cutoff=0.5)
    suggested = near[0] if near else name
    if suggested in of_tokens:
        return (f"{suggested} is a setting of its tokenizer, "
                f"{owner.__name__}(tokenizer=Tokenizer({suggested}={of_tokens[suggested]!r}))")
    for model in () if near else text_models().values():
        parameters = model().get_params(deep=False)
        if name in parameters:
            return (f"{name} is a setting of its estimator, "
                    f"{owner.__name__}({model.name}({name}={parameters[name]!r}))")
    return ""


def with_parameters(estimator: Any) -> Any:
    """The estimator of a classifier, to set its parameters; ParameterError for "auto"."""
    if is_auto(estimator):
        raise ParameterError("estimator='auto' has no parameters, as fit chooses the model and its "
                             "parameters: give an estimator, such as NBLinear()")
    return named_model(estimator)


def named_model(estimator: Any) -> Any:
    """The estimator itself, or the model of its kind, such as "nblinear"; the default for None."""
    if estimator is None:
        return MultinomialNB()
    if not isinstance(estimator, str) or estimator == AUTO:
        return estimator
    import_offered(estimator)
    if estimator not in text_models():
        raise ParameterError.unknown_choice(
            "estimator", estimator, [*text_models(), AUTO], SYNONYMS)
    return text_models()[estimator]()


def model_of_texts(estimator: Any) -> Model:
    """The model of a classifier of texts, unfitted.

    Raises
    ------
    ParameterError
        If it does not learn from counts of terms, or its class is not registered.
    """
    if isinstance(estimator, type):
        raise ParameterError(
            f"estimator must be a model, and {estimator.__name__} is its class: "
            f"{estimator.__name__}()")
    if is_auto(estimator):
        raise ParameterError("estimator='auto' is chosen by fit, from all documents: call fit, or "
                             "give an estimator")
    model = named_model(estimator)
    if not isinstance(model, Model) or not model.of_terms:
        *names, last = (known.name for known in text_models().values())
        raise ParameterError(f"estimator must be {', '.join(names)}, {last} or 'auto'; got "
                             f"{type(model).__name__}")
    check_registered(model, "a classifier of texts")
    return unfitted(model)
