"""Parameters: checks of single values, and the name that scikit-learn gives to the smoothing."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from textnb.errors import ParameterError


def is_number(value: object) -> bool:
    """Whether a setting is one real number, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def is_whole(value: object) -> bool:
    """Whether a setting is an integer, of NumPy or not, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


class SmoothingName:
    """Base of the estimators: the error for ``alpha`` says that its name is ``l`` here."""

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


def _check_names_first(init: Callable[..., None]) -> Callable[..., None]:
    known = inspect.signature(init).parameters

    @functools.wraps(init)
    def checked_init(self: Any, *values: Any, **parameters: Any) -> None:
        check_smoothing_name(type(self).__name__, parameters, known)
        init(self, *values, **parameters)

    return checked_init
