"""The model of a classifier of texts: what ``estimator`` stands for, and checks of settings."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from inspect import signature
from typing import Any

from textnb.classifiers.changes import check_unchanged
from textnb.errors import ParameterError
from textnb.learning.memory_limit import memory_size
from textnb.learning.parameters import DEFAULTS, default_term_settings
from textnb.learning.text_settings import TextSettings
from textnb.models.base import Model, check_registered
from textnb.models.known import SYNONYMS, import_model, text_models
from textnb.models.multinomial import MultinomialNB
from textnb.models.protocol import unfitted
from textnb.runtime.removed import SETTINGS, removal_message
from textnb.runtime.settings import is_truth
from textnb.text.tokens import Tokenizer

# The value of ``estimator`` with which `fit` searches for the model and all settings.
AUTO = "auto"


def asks_for_search(estimator: Any) -> bool:
    """Whether `fit` searches for the model and all settings."""
    return isinstance(estimator, str) and estimator == AUTO


def check_fit_options(is_search: bool, warm_start: Any, keep_sample: Any, unlabelled: Any) -> None:
    """Raise ParameterError for options of `fit` that a search does not have, or a wrong warm start.

    A search starts without earlier weights, keeps no sample of rows, and reads only labelled rows.
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


def check_parameters_unchanged(
    classifier: Any, settings: TextSettings, fitted_estimator: Any, action: str
) -> None:
    """Raise ParameterError if a classifier's parameters are no longer those of `fit`.

    Parameters
    ----------
    classifier : TextClassifier
    settings : TextSettings
        The settings at `fit`.
    fitted_estimator : estimator or None
        The fitted estimator, if somebody has read ``estimator_`` and so may have changed it.
    action : str
        What needs unchanged parameters, as the subject of the error's sentence.
    """
    parameters: dict[str, Any] = settings.parameters
    estimator: Any = settings.model
    if asks_for_search(classifier.estimator):
        # The search chose the settings of the fit; the classifier's parameters stay defaults.
        parameters = {**DEFAULTS, "text": parameters["text"], "label": parameters["label"]}
        estimator, fitted_estimator = AUTO, None
    current = {**{name: getattr(classifier, name) for name in parameters},
               "estimator": resolve_estimator(classifier.estimator)}
    # `fit` replaced some parameters that are None by defaults: that is no change. Subwords have
    # a default only together with the tokenizer.
    by_default = settings.by_default if current["tokenizer"] is None else (
        settings.by_default - {"subwords"})
    current |= {name: parameters[name] for name in by_default if current[name] is None}
    # The settings of the fit have the limit in bytes, even if it was set as text such as "500M".
    current["memory_limit"] = memory_size(classifier.memory_limit)
    check_unchanged({**parameters, "estimator": estimator}, current,
                    estimator if fitted_estimator is None else fitted_estimator, action)


def term_settings_to_change(estimator: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The default tokenizer and subwords, before ``settings`` of the tokenizer change them.

    For a search, and for another analyzer than "word", they are those of `MultinomialNB`: words
    without subwords.
    """
    if asks_for_search(estimator) or settings.get("analyzer", "word") != "word":
        return default_term_settings(MultinomialNB())
    return default_term_settings(resolve_text_model(estimator))


def advice_on_setting(classifier: type, name: str) -> str:
    """What has a setting that a classifier of texts lacks, for the error; "" if nothing has it.

    Parameters
    ----------
    classifier : type
    name : str
        The setting as the user wrote it.
    """
    # Settings of earlier releases, with what to use instead.
    if name in SETTINGS:
        return removal_message("it", SETTINGS[name])
    classifier_parameters = list(signature(classifier).parameters)
    token_settings = Tokenizer().get_params()
    similar = get_close_matches(name, [*classifier_parameters, *token_settings], n=1, cutoff=0.5)
    suggestion = similar[0] if similar else name
    if suggestion in token_settings:
        return (f"{suggestion} is a setting of its tokenizer, {classifier.__name__}"
                f"(tokenizer=Tokenizer({suggestion}={token_settings[suggestion]!r}))")
    for model in text_models().values():
        parameters = model().get_params(deep=False)
        if name in parameters and not similar:
            return (f"{name} is a setting of its estimator, "
                    f"{classifier.__name__}({model.name}({name}={parameters[name]!r}))")
    return ""


def require_estimator(estimator: Any) -> Any:
    """As `resolve_estimator`, but raises ParameterError for "auto", which has no parameters."""
    if asks_for_search(estimator):
        raise ParameterError("estimator='auto' has no parameters, as fit chooses the model and its "
                             "parameters: give an estimator, such as NBLinear()")
    return resolve_estimator(estimator)


def resolve_estimator(estimator: Any) -> Any:
    """The default model for None, a model for its kind such as "nblinear"; others unchanged."""
    if estimator is None:
        return MultinomialNB()
    if not isinstance(estimator, str) or estimator == AUTO:
        return estimator
    # The model may be one that another package offers.
    import_model(estimator)
    if estimator not in text_models():
        raise ParameterError.unknown_choice(
            "estimator", estimator, [*text_models(), AUTO], SYNONYMS)
    return text_models()[estimator]()


def resolve_text_model(estimator: Any) -> Model:
    """An unfitted copy of the model that ``estimator`` stands for, checked.

    Raises
    ------
    ParameterError
        If it is "auto" or not a model of texts, or its class is not registered.
    """
    if isinstance(estimator, type):
        raise ParameterError(
            f"estimator must be a model, and {estimator.__name__} is its class: "
            f"{estimator.__name__}()")
    if asks_for_search(estimator):
        raise ParameterError("estimator='auto' is chosen by fit, from all documents: call fit, or "
                             "give an estimator")
    model = resolve_estimator(estimator)
    if not isinstance(model, Model) or not model.of_terms:
        *names, last = (text_model.name for text_model in text_models().values())
        raise ParameterError(f"estimator must be {', '.join(names)}, {last} or 'auto'; got "
                             f"{type(model).__name__}")
    check_registered(model, "a classifier of texts")
    return unfitted(model)
