"""Fitting for the discrete naive Bayes models: rows are counted, and counts become a form."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_non_negative

from textnb.bayes.choice import choose_l
from textnb.bayes.class_weight import ClassWeight, class_weights
from textnb.bayes.event_model import CountModel
from textnb.bayes.features import presence
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.leave_one_out import LeaveOneOut, Within
from textnb.bayes.statistics import (
    CountStatistics,
    as_counts,
    as_smoothing,
    class_codes,
    is_auto,
)
from textnb.errors import DataError, ParameterError
from textnb.estimators.base import (
    CountRows,
    LinearMixin,
    StatisticsClassifier,
    WeightedMixin,
    sample_weights,
)
from textnb.estimators.event_estimator import EventEstimator
from textnb.runtime.memory import check_room


class DiscreteNB(CountRows, WeightedMixin, EventEstimator, LinearMixin, StatisticsClassifier):
    """Fitting for the discrete models: rows are counted, and the counts become a form."""

    statistics_: CountStatistics
    l_: float | Floats
    class_weight: ClassWeight
    feature_log_prob_: Any
    event_model_type: type[CountModel] = CountModel
    _form: LinearForm
    _accept_sparse = "csr"
    # The value that `fit` chose for l="auto"; `partial_fit` keeps it.
    _chosen_l: float | None = None

    def _event(self) -> CountModel:
        return self.event_model_type(**self._event_parameters())

    def fit_statistics(self, statistics: CountStatistics, *, l: float | None = None) -> Self:
        """Derive the weights from counts.

        Parameters
        ----------
        statistics : CountStatistics
        l : float, optional
            The value of ``l`` if the parameter is "auto"; by default the one that `fit` chose.

        Raises
        ------
        ParameterError
            If ``l`` is "auto" and no value was chosen.
        """
        smoothing: Any = self.l
        chosen = None
        if is_auto(smoothing):
            smoothing = chosen = self._chosen_l if l is None else l
            if smoothing is None:
                raise ParameterError("l='auto' is chosen by fit, from all rows, and kept by "
                                     "partial_fit: call fit first, or give l as a number")
        weights = class_weights(self.class_weight, statistics.classes, statistics.class_count)
        self.l_ = as_smoothing(smoothing, self._n_features_of(statistics))
        check_room(len(statistics.classes), statistics.n_features,
                   8 * (1 + self.event_model_type.weights_per_count + (weights is not None)),
                   "counts and weights", freed=statistics.feature_count.nbytes, log=True)
        counted = statistics if weights is None else statistics.scaled(weights)
        self._chosen_l, self.class_weight_ = chosen, weights
        self.statistics_ = statistics
        self.classes_ = statistics.classes
        self.class_count_ = statistics.class_count
        self.n_features_in_ = self._n_features_of(statistics)
        self.class_log_prior_ = self._event().log_prior(counted)
        self._form = self._derive(counted, self.l_)
        return self

    @property
    def feature_count_(self) -> NDArray[Any]:
        """int64 (n_classes, n_features); float64 under sample weights."""
        return np.asarray(self.statistics_.feature_count)

    def leaving_out(
        self, statistics: CountStatistics, within: Within | None = None,
        presence_above: float | None = None,
    ) -> LeaveOneOut:
        """Leave-one-out for the rows of a statistic: each is scored by a model without it.

        Raises
        ------
        ParameterError
            If the model does not allow leaving rows out by subtraction.
        """
        model = self.event_model("leaving rows out by subtraction")
        return model.leave_out(statistics, within, presence_above)

    def _fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        if not is_auto(self.l):
            return super()._fit(X, y, sample_weight)
        X, y = self._rows_and_labels(X, y, reset=True)
        weight = sample_weights(sample_weight, X)
        if weight is not None and (weight != 1.0).any():
            raise ParameterError.naming(
                "{l='auto'} leaves out one row at a time, and knows no weights: give {l} as a "
                "number, or no {sample_weight}")
        known = np.unique(y)
        self.check_settings(X.shape[1], len(known))
        if len(y) < 2:
            raise DataError("l='auto' leaves out one row at a time, and there is one sample: give "
                            "l as a number")
        statistics = self._learn(X, y, known, None, None)
        whole = self.leaving_out(statistics, None, self._above)
        rows = whole.rows(sp.csr_array(as_counts(X)), class_codes(y, known))
        return self.fit_statistics(statistics, l=choose_l(
            whole, [rows], self.scores_are_log_probabilities))

    @property
    def _above(self) -> float | None:
        """The value above which a feature counts once; None if values add up."""
        return self._event().above

    def _derive(self, statistics: CountStatistics, l: float | Floats) -> LinearForm:
        """Set ``feature_log_prob_`` and return the form."""
        form, self.feature_log_prob_ = self._event().weigh(statistics, l, self.class_log_prior_)
        return form

    def _n_features_of(self, statistics: CountStatistics) -> int:
        return statistics.n_features

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raise ParameterError for settings that are out of range, before anything is learned."""
        self._event().check(n_features, n_classes)

    def _learn(
        self, X: Any, y: NDArray[Any], classes: NDArray[Any], weight: Floats | None,
        before: CountStatistics | None,
    ) -> CountStatistics:
        above = self._above
        if before is not None and above != self._form.presence_above:
            raise ParameterError(f"binarize was {self._form.presence_above} for the rows that were "
                                 f"learned and is {above} now: set it back, or fit again")
        if above is not None:
            X = (presence(X, above) if sp.issparse(X) else (above < X).astype(np.int64))
        more = CountStatistics.from_matrix(X, y, classes=classes, sample_weight=weight)
        return more if before is None else before + more

    def _rows_and_labels(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        X, y = super()._rows_and_labels(X, y, reset)
        return self._check_rows(X), y

    def _rows(self, X: Any) -> Any:
        return self._check_rows(super()._rows(X))

    def _check_rows(self, X: Any) -> Any:
        check_non_negative(X, type(self).__name__)
        return X
