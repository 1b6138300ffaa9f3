"""The class that a caller names: by an equal value of the same type, which may be NumPy's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from textnb.errors import ParameterError


def python_value(value: Any) -> Any:
    """A NumPy scalar or array as a value of Python, which JSON can hold; other values as they are.

    NumPy is not imported.
    """
    return value.tolist() if hasattr(value, "tolist") else value


def find_class(classes: Iterable[Any], value: Any) -> Any:
    """The class that equals a value and is of its type, because 1 == True == 1.0; None if none is.

    >>> find_class([0, 1], 1), find_class([0, 1], True), find_class([0, 1], 1.0)
    (1, None, None)
    """
    value = python_value(value)
    return next((each for each in classes if isinstance(value, type(each))
                 and isinstance(value, bool) == isinstance(each, bool) and each == value), None)


def find_typed_class(classes: Iterable[Any], value: Any) -> Any:
    """As `find_class`, but a text may name a number or a truth value, as users type it.

    >>> find_typed_class([7, 12], "12"), find_typed_class([False, True], "true")
    (12, True)
    """
    classes = list(classes)
    label = find_class(classes, value)
    if label is None and isinstance(value, str):
        label = next((each for each in classes if not isinstance(each, str)
                      and str(each).lower() == value.lower()), None)
    return label


def known_class(classes: Iterable[Any], value: Any, name: str = "positive") -> Any:
    """As `find_class`; ParameterError, which names the parameter ``name``, if none is the class."""
    classes = list(classes)
    label = find_class(classes, value)
    if label is None:
        raise ParameterError.unknown_choice(name, value, classes)
    return label
