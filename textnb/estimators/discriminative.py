"""Fitting for the linear models that learn from rows of counts: sums of counts do not suffice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.event_model import Learned
from textnb.estimators.base import CountRows, FormClassifier, LinearMixin
from textnb.estimators.event_estimator import EventEstimator


class DiscriminativeEstimator(CountRows, EventEstimator, LinearMixin, FormClassifier):
    """An estimator whose event model learns from rows: it keeps what the model has learned."""

    _accept_sparse = "csr"
    n_iter_: int

    def set_fitted(self, learned: Learned) -> Self:
        """Take what the event model has learned, with the form that these parameters give it."""
        form = learned.form
        return self._set_fitted(replace(learned, form=self._event().form_of_weights(
            learned.counts, form.weights, form.intercept)))

    @property
    def feature_count_(self) -> NDArray[Any]:
        """int64 (n_classes, n_features): counts, or rows that hold the feature."""
        return np.asarray(self.statistics_.feature_count)

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raise ParameterError for settings that are out of range, before anything is learned."""
        self._event().check(n_features, n_classes)

    def _set_fitted(self, learned: Learned) -> Self:
        self.statistics_, self.classes_ = learned.counts, learned.counts.classes
        self.n_features_in_ = learned.counts.n_features
        self._form = learned.form
        self._set_optional("n_iter_", learned.n_iter)
        return self

    def _set_optional(self, name: str, value: Any) -> None:
        """Set a fitted attribute; without a value remove it, as an earlier fit may have set it."""
        if value is not None:
            setattr(self, name, value)
        elif hasattr(self, name):
            delattr(self, name)
