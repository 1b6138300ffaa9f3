"""scikit-learn's protocol of an estimator, without scikit-learn.

`Parameters` has what `clone`, pipelines, searches and displays ask for. Whatever needs scikit-learn
imports it inside the method, so that an import of an estimator costs no more than its mathematics.
"""

from __future__ import annotations

import inspect
from copy import copy
from typing import Any, Self, TypeVar

from textnb.errors import ParameterError, TextnbWarning
from textnb.runtime import __version__
from textnb.runtime.caller import warn_caller
from textnb.runtime.settings import check_smoothing_name, with_checked_names

T = TypeVar("T")
# The largest number of characters of a `repr`.
_MAX_REPR = 700
_VERSION = "_textnb_version"


class MissingAttributeError(ParameterError, AttributeError):
    """This kind of object has no such attribute: `hasattr` is False, and `dir` works."""


class Parameters:
    """Base of the estimators: parameters are those of the constructor, kept as they are."""

    @classmethod
    def _place_of(cls, name: str) -> str:
        """Which part has a parameter that this class lacks, for errors; "" if that is not known."""
        return ""

    def __init_subclass__(cls, **options: Any) -> None:
        """Let errors for unknown parameters suggest the right name."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            with_checked_names(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name.

        Parameters
        ----------
        deep : bool
            Whether to add those of parameters that are estimators, as ``part__name``.
        """
        parameters = {}
        for name in _names(type(self)):
            parameters[name] = value = getattr(self, name)
            if deep and _is_estimator(value):
                parameters |= {f"{name}__{part}": own for part, own in value.get_params().items()}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; those of a part as ``part__name``. They hold from the next `fit` on.

        Raises
        ------
        ParameterError
            If one is called ``alpha``, which is ``l`` here, or is not known.
        """
        known = _names(type(self))
        check_smoothing_name(type(self).__name__, parameters, known)
        nested: dict[str, dict[str, Any]] = {}
        for name, value in parameters.items():
            part, _, rest = name.partition("__")
            if part not in known:
                raise ParameterError(f"Invalid parameter {part!r} for estimator {self}. "
                                     f"Valid parameters are: {known}")
            if rest:
                nested.setdefault(part, {})[rest] = value
            else:
                setattr(self, name, value)
        for part, values in nested.items():
            getattr(self, part).set_params(**values)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = ", ".join(
            f"{name}={value!r}" for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(defaults[name].default))
        text = f"{type(self).__name__}({changed})"
        half = _MAX_REPR // 2
        return text if len(text) <= _MAX_REPR else f"{text[:half]}...{text[-half:]}"

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), _VERSION: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop(_VERSION, "an earlier version")
        if version != __version__:
            warn_caller(f"this {type(self).__name__} was pickled by textnb {version}, and this is "
                        f"{__version__}: it may answer otherwise or fail. A model file (save, "
                        "load) is read by every later version", TextnbWarning)
        vars(self).update(state)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(estimator_type="classifier", target_tags=TargetTags(required=True),
                    classifier_tags=ClassifierTags())

    def get_metadata_routing(self) -> Any:
        """The metadata that scikit-learn's routing passes to methods: see its user guide."""
        request: Any = getattr(self, "_metadata_request", None)
        if request is None:
            from sklearn.utils.metadata_routing import MetadataRequest

            request = MetadataRequest(owner=self)
            for name in ("fit", "partial_fit", "score"):
                if self._takes_weights(name):
                    getattr(request, name).add_request(param="sample_weight", alias=None)
        return request

    def set_fit_request(self, *, sample_weight: bool | str | None) -> Self:
        """Whether scikit-learn's metadata routing passes ``sample_weight`` to `fit`."""
        return self._set_request("fit", sample_weight)

    def set_partial_fit_request(self, *, sample_weight: bool | str | None) -> Self:
        """Whether scikit-learn's metadata routing passes ``sample_weight`` to `partial_fit`."""
        return self._set_request("partial_fit", sample_weight)

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Whether scikit-learn's metadata routing passes ``sample_weight`` to `score`."""
        return self._set_request("score", sample_weight)

    def _takes_weights(self, method: str) -> bool:
        own = getattr(self, method, None)
        return own is not None and "sample_weight" in inspect.signature(own).parameters

    def _set_request(self, method: str, sample_weight: bool | str | None) -> Self:
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError("metadata routing is not enabled: call "
                               "sklearn.set_config(enable_metadata_routing=True) first")
        if not self._takes_weights(method):
            raise ParameterError(f"{type(self).__name__} has no {method} that takes sample_weight, "
                                 "so nothing can be passed to it")
        request = self.get_metadata_routing()
        getattr(request, method).add_request(param="sample_weight", alias=sample_weight)
        self._metadata_request = request
        return self


class FittedArrays:
    """Base of estimators whose fitted arrays, with names that end with ``_``, are read-only.

    After writing into one, predictions would not be those of any fit.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name.endswith("_"):
            from textnb.bayes.read_only import read_only

            value = read_only(value)
        super().__setattr__(name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore: Any = super()
        restore.__setstate__(state)
        # Pickle and deepcopy give arrays that can be written.
        for name, value in [*vars(self).items()]:
            setattr(self, name, value)


class derived(property):
    """A property that is derived from what `fit` has learned, each time: its arrays are read-only.

    Writing into one would not change any prediction.
    """

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        value = super().__get__(instance, owner)
        if instance is None:
            return value
        from textnb.bayes.read_only import read_only

        return read_only(value)


def unfitted(estimator: T) -> T:
    """A copy of an estimator, with copies of its parameters, that was not fitted.

    As `sklearn.base.clone`, for estimators of this package.
    """
    own: Any = estimator
    fresh = type(own)(**{
        name: unfitted(value) if _is_estimator(value) else copy(value)
        for name, value in own.get_params(deep=False).items()})
    if hasattr(own, "_metadata_request"):
        fresh._metadata_request = own._metadata_request
    return fresh  # type: ignore[no-any-return]  # of the estimator's own class


def _is_estimator(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def _names(kind: type) -> list[str]:
    """The names of a class's parameters, sorted."""
    return sorted(inspect.signature(kind).parameters)


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's NotFittedError for an estimator that is not fitted."""
    if not estimator.__sklearn_is_fitted__():
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)
