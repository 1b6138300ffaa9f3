"""The methods that scikit-learn expects of an estimator, without scikit-learn as a base.

`Parameters` has the methods that `clone`, pipelines, searches and displays call. Those that need
scikit-learn import it themselves, so that estimators can be imported without it.
"""

from __future__ import annotations

import inspect
from copy import copy
from typing import Any, Self, TypeVar

from textnb.errors import ParameterError, TextnbWarning
from textnb.runtime import __version__
from textnb.runtime.caller import warn_caller
from textnb.runtime.settings import check_parameter_names, check_smoothing_name

T = TypeVar("T")
# In characters; the middle of a longer text is left out.
_MAX_REPR_LENGTH = 700
# The key of the version in the state that `pickle` stores.
_VERSION_KEY = "_textnb_version"


class MissingAttributeError(ParameterError, AttributeError):
    """An object with these parameters has no such attribute, so that `hasattr` is False."""


class Parameters:
    """Base of the estimators: parameters are the constructor's arguments, stored unchanged."""

    @classmethod
    def _advice_on(cls, name: str) -> str:
        """A hint for errors: which other class has a parameter that this class lacks, or ""."""
        return ""

    def __init_subclass__(cls, **options: Any) -> None:
        """Let errors for unknown parameters suggest the right name."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            check_parameter_names(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name.

        Parameters
        ----------
        deep : bool
            Whether to add the parameters of parameters that are estimators, as ``outer__inner``.
        """
        parameters = {}
        for name in _parameter_names(type(self)):
            parameters[name] = value = getattr(self, name)
            if deep and _is_estimator(value):
                parameters |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters, ``outer__inner`` if nested. They take effect at the next `fit`.

        Raises
        ------
        ParameterError
            If one is called ``alpha``, which is ``l`` here, or is not known.
        """
        known = _parameter_names(type(self))
        check_smoothing_name(type(self).__name__, parameters, known)
        nested: dict[str, dict[str, Any]] = {}
        for name, value in parameters.items():
            outer, _, inner = name.partition("__")
            if outer not in known:
                raise ParameterError(f"Invalid parameter {outer!r} for estimator {self}. "
                                     f"Valid parameters are: {known}")
            if inner:
                nested.setdefault(outer, {})[inner] = value
            else:
                setattr(self, name, value)
        for outer, inner_parameters in nested.items():
            getattr(self, outer).set_params(**inner_parameters)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = ", ".join(
            f"{name}={value!r}" for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(defaults[name].default))
        text = f"{type(self).__name__}({changed})"
        half = _MAX_REPR_LENGTH // 2
        return text if len(text) <= _MAX_REPR_LENGTH else f"{text[:half]}...{text[-half:]}"

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), _VERSION_KEY: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop(_VERSION_KEY, "an earlier version")
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
        # Where scikit-learn's own estimators store it.
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
        function = getattr(self, method, None)
        return function is not None and "sample_weight" in inspect.signature(function).parameters

    def _set_request(self, method: str, sample_weight: bool | str | None) -> Self:
        """Store whether scikit-learn passes ``sample_weight`` to a method, or under which name."""
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


class ReadOnlyArrays:
    """Base of estimators whose fitted arrays, with names that end with ``_``, are read-only.

    After writing into one, predictions would not be those of any fit.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name.endswith("_"):
            from textnb.bayes.read_only import read_only

            value = read_only(value)
        super().__setattr__(name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        parent: Any = super()
        parent.__setstate__(state)
        # Arrays from pickle or deepcopy are writable: `__setattr__` makes them read-only again.
        for name, value in [*vars(self).items()]:
            setattr(self, name, value)


class read_only_property(property):
    """A property that is computed, at each access, from what `fit` has learned.

    Its arrays are read-only, as writing into one would not change any prediction.
    """

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        value = super().__get__(instance, owner)
        if instance is None:
            return value
        from textnb.bayes.read_only import read_only

        return read_only(value)


def unfitted(estimator: T) -> T:
    """An unfitted copy of an estimator, with copies of its parameters.

    As `sklearn.base.clone`, for estimators of this package.
    """
    original: Any = estimator
    fresh = type(original)(**{
        name: unfitted(value) if _is_estimator(value) else copy(value)
        for name, value in original.get_params(deep=False).items()})
    if hasattr(original, "_metadata_request"):
        fresh._metadata_request = original._metadata_request
    return fresh  # type: ignore[no-any-return]  # it has the type of ``estimator``


def _is_estimator(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def _parameter_names(estimator_type: type) -> list[str]:
    return sorted(inspect.signature(estimator_type).parameters)


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's NotFittedError for an estimator that is not fitted."""
    if not estimator.__sklearn_is_fitted__():
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)
