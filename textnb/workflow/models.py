"""A model of either kind: a `Fitted` of texts, or a `TableClassifier` of feature tables."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from textnb.bayes.classes import find_typed_class, python_value
from textnb.errors import ParameterError
from textnb.runtime.unicode import is_unicode

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A `Fitted` or a `TableClassifier`. They are not imported, as that imports Polars, which takes
# longer than to learn a message.
AnyModel = Any


def load_model(path: str | os.PathLike[str]) -> AnyModel:
    """Load a model of either kind."""
    from textnb.storage.textmodel import is_table_model, read_model, unpack_text

    document, arrays = read_model(path)
    if not is_table_model(document):
        return unpack_text(os.fspath(path), document, arrays)
    from textnb.classifiers.load import load

    return load(path)


def save_model(model: AnyModel, path: str | os.PathLike[str]) -> None:
    """Write a model to a file."""
    from textnb.storage.textmodel import save_fitted

    if text_columns(model) is None:
        model.save(path)
    else:
        save_fitted(model, path)


def text_columns(model: AnyModel) -> Any:
    """The text columns of a model; None for a model of feature tables."""
    # A `Fitted` has settings; a `TableClassifier` has neither them nor the attribute ``text``.
    settings = getattr(model, "settings", None)
    return getattr(model, "text", None) if settings is None else settings.parameters["text"]


def features_of(model: AnyModel) -> Any:
    """The feature columns of a model; None for a model of texts."""
    return getattr(model, "features_", None)


def classes_of(model: AnyModel) -> NDArray[Any]:
    """The classes of a model."""
    classes: NDArray[Any] = model.classes if text_columns(model) is not None else model.classes_
    return classes


def predicts_lists(model: AnyModel) -> bool:
    """Whether a model predicts lists of labels."""
    return bool(getattr(model, "is_multilabel", False))


def class_named(value: Any, classes: NDArray[Any] | list[Any], setting: str) -> Any:
    """The class that a setting names, or None if it is None; a text may name a number or a bool.

    Parameters
    ----------
    value : label, str or None
        The value of the setting.
    classes : array or list (n_classes,)
    setting : str
        The name of the setting, for errors.

    Raises
    ------
    ParameterError
        If there is no such class.

    Examples
    --------
    >>> import numpy as np
    >>> class_named("12", np.array([7, 12]), "positive")
    12
    >>> class_named("true", np.array([False, True]), "positive")
    True
    """
    if value is None:
        return None
    labels = python_value(classes)
    label = find_typed_class(labels, value)
    if label is None:
        raise ParameterError.unknown_choice(setting, value, labels)
    return label


def parse_label(name: str, kind: type, what: str = "a label of this model") -> Any:
    """Convert a text to the type of a model's labels.

    Parameters
    ----------
    name : str
    kind : type
        bool, int, or str for all other types.
    what : str
        What the text is, for errors.

    Raises
    ------
    ParameterError
        If the text is not a value of the type.
    """
    if kind is bool:
        if name.lower() in ("true", "false"):
            return name.lower() == "true"
        raise ParameterError.out_of_range(what, "true or false", name)
    if kind is int:
        if not re.fullmatch(r"-?[0-9]{1,19}", name) or not -2**63 <= int(name) < 2**63:
            raise ParameterError.out_of_range(what, "an integer of 64 bits", name)
        return int(name)
    # An argument of the command line that is not UTF-8 has lone surrogates.
    if not is_unicode(name):
        raise ParameterError.out_of_range(what, "valid Unicode", name)
    return name
