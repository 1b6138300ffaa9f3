"""The estimators' common part: rows -> statistic -> form -> predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_non_negative,
    validate_data,
)

from textnb.bayes.choice import choose_l
from textnb.bayes.class_weight import ClassWeight, class_weights
from textnb.bayes.event_model import CountModel
from textnb.bayes.features import presence
from textnb.bayes.forms import Floats, LinearForm, QuadraticForm, log_posterior
from textnb.bayes.leave_one_out import LeaveOneOut, Within
from textnb.bayes.parameters import ParameterNames
from textnb.bayes.read_only import FittedArrays
from textnb.bayes.statistics import (
    CountStatistics,
    as_counts,
    as_smoothing,
    check_int64,
    class_codes,
    is_auto,
    unite_labels,
)
from textnb.errors import DataError, ImpossibleRowError, ParameterError
from textnb.estimators.event_estimator import EventEstimator
from textnb.runtime.memory import check_room


class FormClassifier(ParameterNames, FittedArrays, ClassifierMixin, BaseEstimator):
    """Prediction for an estimator that keeps the form with which it scores in ``_form``."""

    _form: LinearForm | QuadraticForm
    _accept_sparse: str | bool = False

    @property
    def scores_are_log_probabilities(self) -> bool:
        """Whether scores are log P(x, class), up to what the classes share."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its scores are")

    @property
    def difference_name(self) -> str:
        """What the difference of two classes' scores is: "log-odds", or a mere "margin"."""
        return "log-odds" if self.scores_are_log_probabilities else "margin"

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log P(x, class), base e, of each row and class.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)

        Returns
        -------
        float64 (n_rows, n_classes)
        """
        check_is_fitted(self)
        return self._form.scores(self._rows(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """log P(class | x), base e; raises ImpossibleRowError as `predict` does.

        Returns
        -------
        float64 (n_rows, n_classes)
        """
        return log_posterior(self._possible(X))

    def predict_proba(self, X: Any) -> Floats:
        """P(class | x); raises ImpossibleRowError as `predict` does.

        Returns
        -------
        float64 (n_rows, n_classes)
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row; the first of them on a tie.

        Raises
        ------
        ImpossibleRowError
            If no class can have produced a row: ``l`` is 0, or every density underflows.
        """
        best = self._possible(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def decision_function(self, X: Any) -> Floats:
        """Scores of the classes; for two, how much the second's is above the first's.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)

        Returns
        -------
        float64 (n_rows,) for two classes, (n_rows, n_classes) for more
            Log-probabilities, base e, and log-odds, where the model's scores are such.
        """
        return margins(self._possible(X))

    def _possible(self, X: Any) -> Floats:
        scores = self.predict_joint_log_proba(X)
        impossible = np.flatnonzero(np.isneginf(scores).all(axis=1))
        if len(impossible):
            raise self._impossible(impossible[:5].tolist(), len(impossible))
        return scores

    def _impossible(self, rows: list[int], total: int) -> ImpossibleRowError:
        return ImpossibleRowError.rows(rows, total)

    def _rows(self, X: Any) -> Any:
        return validate_data(self, X, accept_sparse=self._accept_sparse, reset=False)


def margins(scores: Floats) -> Floats:
    """Scores as a decision function gives them: (n_rows,) for two classes, else all of them."""
    if scores.shape[1] != 2:
        return scores
    first, second = scores[:, 0], scores[:, 1]
    # Two infinite scores that are equal are a tie.
    with np.errstate(invalid="ignore"):
        return np.where(first == second, 0.0, second - first)


class DenseClassifier(FormClassifier):
    """What the models of dense features share: names of columns, and a message."""

    scores_are_log_probabilities = True

    def name_features(self, names: Sequence[str]) -> None:
        """Names for messages."""
        self._feature_names = list(names)

    @property
    def _names(self) -> list[str] | None:
        names = getattr(self, "_feature_names", getattr(self, "feature_names_in_", None))
        return None if names is None else [str(name) for name in names]

    def _impossible(self, rows: list[int], total: int) -> ImpossibleRowError:
        more = f" and {total - len(rows)} more" if total > len(rows) else ""
        density = "its density underflows" if total == 1 else "their densities underflow"
        return ImpossibleRowError(
            f"row {', '.join(map(str, rows))}{more} is impossible under every class: {density}, so "
            "no class can be given; predict a frame, where such rows are null")


class LinearMixin:
    """The linear form of an estimator, in this package's layout and in scikit-learn's."""

    _form: Any

    def linear_form(self) -> LinearForm:
        """The weights and intercepts that score: see `LinearForm`."""
        check_is_fitted(self)
        form: LinearForm = self._form.uncentered()
        return form

    @property
    def coef_(self) -> Floats:
        """Weights in scikit-learn's layout: (n_classes, n_features), or (1, n_features) for two."""
        form = self._form_of_attributes()
        if len(form.classes) == 2:
            return form.binary(form.classes[1])[0][None, :]
        return form.weights.T

    @property
    def intercept_(self) -> Floats:
        """Intercepts in scikit-learn's layout: (n_classes,), or (1,) for two classes."""
        form = self._form_of_attributes()
        if len(form.classes) == 2:
            return np.array([form.binary(form.classes[1])[1]])
        return form.intercept

    def _form_of_attributes(self) -> LinearForm:
        # `hasattr` and what lists attributes take no other error for "there is none".
        try:
            return self.linear_form()
        except ParameterError as error:
            raise AttributeError(str(error)) from error


class StatisticsClassifier(FormClassifier):
    """Fitting where rows become a statistic that adds, and the statistic becomes a form."""

    statistics_: Any

    def _fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        X, y = self._rows_and_labels(X, y, reset=True)
        weight = sample_weights(sample_weight, X)
        known = np.unique(y)
        self.check_settings(X.shape[1], len(known))
        return self.fit_statistics(self._learned(X, y, known, weight, None))

    def _partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> Self:
        first = not hasattr(self, "statistics_")
        if first and classes is None:
            raise ParameterError("classes must be passed on the first call to partial_fit.")
        check_int64(classes)
        X, y = self._rows_and_labels(X, y, reset=first)
        weight = sample_weights(sample_weight, X)
        known = self.statistics_.classes if not first else np.asarray(classes)
        if classes is not None:
            known = unite_labels(known, classes)
        class_codes(y, known)
        self.check_settings(X.shape[1], len(known))
        before = None if first else self.statistics_
        return self.fit_statistics(self._learned(X, y, known, weight, before))

    @abstractmethod
    def fit_statistics(self, statistics: Any) -> Self:
        """Derive the form from a statistic that was made elsewhere."""

    @abstractmethod
    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raises ParameterError before anything is learned."""

    @abstractmethod
    def _learned(
        self, X: Any, y: NDArray[Any], classes: NDArray[Any], weight: Floats | None, before: Any
    ) -> Any:
        """The statistic of what was learned before and of these rows."""

    def _rows_and_labels(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        check_int64(y)
        X, y = validate_data(self, X, y, accept_sparse=self._accept_sparse, reset=reset)
        check_classification_targets(y)
        return X, y


def sample_weights(sample_weight: ArrayLike | None, X: Any) -> Floats | None:
    """Weights of rows, checked: float64 (n_rows,), or None."""
    if sample_weight is None:
        return None
    weight: Floats = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ParameterError("sample_weight is zero for every row: nothing would be learned")
    return weight


class WeightedMixin:
    """`fit` and `partial_fit` for the models that take sample weights."""

    _fit: Callable[..., Self]
    _partial_fit: Callable[..., Self]

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows' statistic and derive the form.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
        y : array (n_rows,)
        sample_weight : array (n_rows,), optional
            Weights >= 0, not all 0. Counts are then float64: sums of real numbers, which another
            order or other batches change in their last bits (log-probabilities by less than
            1e-12). Without, they are integers, and nothing changes a bit.

        Raises
        ------
        ValueError
            On NaN or infinite values (negative ones too, for counts), or rows and labels that do
            not match.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows: the model is that of one `fit` on all of them.

        For counts it is so to the bit; for sums of real numbers, to rounding.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
        y : array (n_rows,)
        classes : array, optional
            Required at the first call; at a later call, announces more classes.
        sample_weight : array (n_rows,), optional

        Raises
        ------
        DataError
            If a label was not announced.
        """
        return self._partial_fit(X, y, classes, sample_weight)


class DiscreteNB(WeightedMixin, EventEstimator, LinearMixin, StatisticsClassifier):
    """Fitting for the discrete models: rows are counted, and the counts become a form."""

    statistics_: CountStatistics
    l_: float | Floats
    class_weight: ClassWeight
    feature_log_prob_: Any
    event_model_type: type[CountModel] = CountModel
    _form: LinearForm
    _accept_sparse = "csr"
    # What `fit` chose for l="auto", which `partial_fit` keeps.
    _chosen_l: float | None = None

    def _event(self) -> CountModel:
        return self.event_model_type(**self._event_parameters())

    def fit_statistics(self, statistics: CountStatistics, *, l: float | None = None) -> Self:
        """Derive the weights from counts that were made elsewhere.

        Parameters
        ----------
        statistics : CountStatistics
        l : float, optional
            What was chosen where the parameter ``l`` is "auto"; without, what `fit` chose before.

        Raises
        ------
        ParameterError
            If ``l`` is "auto" and nothing was chosen.
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
        return self.statistics_.feature_count

    def leaving_out(
        self, statistics: CountStatistics, within: Within | None = None,
        presence_above: float | None = None,
    ) -> LeaveOneOut:
        """What scores each of the rows of a statistic by the model without it.

        Raises
        ------
        ParameterError
            If subtraction can't tell that.
        """
        model = self.event_model("leaving rows out by subtraction")
        return model.leave_out(statistics, within, presence_above)

    def _fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        if not is_auto(self.l):
            return super()._fit(X, y, sample_weight)
        X, y = self._rows_and_labels(X, y, reset=True)
        weight = sample_weights(sample_weight, X)
        if weight is not None and (weight != 1.0).any():
            raise ParameterError("l='auto' leaves out one row at a time, and knows no weights: "
                                 "give l as a number, or no sample_weight")
        known = np.unique(y)
        self.check_settings(X.shape[1], len(known))
        if len(y) < 2:
            raise DataError("l='auto' leaves out one row at a time, and there is one sample: give "
                            "l as a number")
        statistics = self._learned(X, y, known, None, None)
        whole = self.leaving_out(statistics, None, self._above)
        rows = whole.rows(sp.csr_array(as_counts(X)), class_codes(y, known))
        return self.fit_statistics(statistics, l=choose_l(
            whole, [rows], self.scores_are_log_probabilities))

    @property
    def _above(self) -> float | None:
        """The value above which a feature counts once; None where values add."""
        return self._event().above

    def _derive(self, statistics: CountStatistics, l: float | Floats) -> LinearForm:
        """Set ``feature_log_prob_`` and return the form."""
        form, self.feature_log_prob_ = self._event().weigh(statistics, l, self.class_log_prior_)
        return form

    def _n_features_of(self, statistics: CountStatistics) -> int:
        return statistics.n_features

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raises ParameterError before anything is learned."""
        self._event().check(n_features, n_classes)

    def _learned(
        self, X: Any, y: NDArray[Any], classes: NDArray[Any], weight: Floats | None,
        before: CountStatistics | None,
    ) -> CountStatistics:
        """The statistic of what was learned before and of these rows."""
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
        return self._checked(X), y

    def _rows(self, X: Any) -> Any:
        return self._checked(super()._rows(X))

    def _checked(self, X: Any) -> Any:
        check_non_negative(X, type(self).__name__)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True
        return tags
