"""Parameters: checks of single values, and of names that a class does not have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any, Self, TypeVar

import numpy as np

from textnb.errors import ParameterError

T = TypeVar("T")
# The largest C of a linear model, times the weight of a row. Beyond it, rounding is larger than
# what the regularisation says, and weights would be noise.
MOST_COST = 1e10


def is_number(value: object) -> bool:
    """Whether a setting is one real number, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def is_whole(value: object) -> bool:
    """Whether a setting is an integer, of NumPy or not, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


class ParameterNames:
    """Base of the estimators: the error for an unknown parameter says which name is meant.

    It is ``l`` for ``alpha``, the most similar name, or the part that has the parameter.
    """

    @classmethod
    def _place_of(cls, name: str) -> str:
        """Where a parameter belongs that this class does not have; "" where that is not known."""
        return ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls).get("__init__")
        if own is not None:
            name = "__init__"
            setattr(cls, name, _check_names_first(own))

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; those of a part as ``part__name``. They hold from the next `fit` on.

        Raises
        ------
        ParameterError
            If one is called ``alpha`` where it is ``l`` here.
        ValueError
            If one is not known.
        """
        known: Callable[..., Iterable[str]] = self.get_params  # type: ignore[attr-defined]  # of BaseEstimator
        check_smoothing_name(type(self).__name__, parameters, known(deep=False))
        setter: Any = super()
        setter.set_params(**parameters)
        return self


def check_smoothing_name(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises ParameterError for ``alpha`` where the parameter is called ``l``."""
    known = set(known)
    if "alpha" not in given or "alpha" in known:
        return
    if "l" in known:
        raise ParameterError(f"{kind} has no parameter alpha: the smoothing parameter is l here, "
                             f"as in {kind}(l=0.5)")
    if "estimator" in known:
        raise ParameterError(f"{kind} has no parameter alpha: the smoothing parameter is the "
                             f"estimator's l, as in {kind}(MultinomialNB(l=0.5))")


def with_checked_names(kind: type[T]) -> type[T]:
    """A class decorator: an unknown parameter raises the error of `ParameterNames`.

    For a class that has a `_place_of` and can't have that base, as its decorator writes `__init__`.
    """
    name = "__init__"
    setattr(kind, name, _check_names_first(vars(kind)[name]))
    return kind


def _check_names_first(init: Callable[..., None]) -> Callable[..., None]:
    known = inspect.signature(init).parameters

    takes_any = any(each.kind is each.VAR_KEYWORD for each in known.values())
    names = [name for name, each in known.items() if each.kind in (
        each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD) and name != "self"]

    @functools.wraps(init)
    def checked_init(self: Any, *values: Any, **parameters: Any) -> None:
        kind = type(self).__name__
        check_smoothing_name(kind, parameters, known)
        for name in () if takes_any else parameters:
            if name not in known:
                raise ParameterError.unknown_setting(kind, name, names, self._place_of(name))
        init(self, *values, **parameters)

    return checked_init
