"""Base classes of the estimators: rows -> statistic -> form -> predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from textnb.bayes.forms import Floats, LinearForm, QuadraticForm, log_posterior, margins
from textnb.bayes.parameters import ParameterNames
from textnb.bayes.read_only import FittedArrays
from textnb.bayes.statistics import (
    check_int64,
    class_codes,
    unite_labels,
)
from textnb.errors import ImpossibleRowError, ParameterError


class FormClassifier(ParameterNames, FittedArrays, ClassifierMixin, BaseEstimator):
    """Prediction for an estimator that keeps the form with which it scores in ``_form``."""

    _form: LinearForm | QuadraticForm
    _accept_sparse: str | bool = False

    @property
    def scores_are_log_probabilities(self) -> bool:
        """Whether scores are log P(x, class), up to a constant per row."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its scores are")

    @property
    def difference_name(self) -> str:
        """The name of a difference of two classes' scores: "log-odds", or "margin"."""
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
        return log_posterior(self._possible_scores(X))

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
        best = self._possible_scores(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def decision_function(self, X: Any) -> Floats:
        """Scores of the classes; for two classes, the second's score less the first's.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)

        Returns
        -------
        float64 (n_rows,) for two classes, (n_rows, n_classes) for more
            Log-probabilities and log-odds, base e, if the model's scores are log-probabilities.
        """
        return margins(self._possible_scores(X))

    def _possible_scores(self, X: Any) -> Floats:
        """Scores of the classes; ImpossibleRowError if no class can have produced a row."""
        scores = self.predict_joint_log_proba(X)
        impossible = np.flatnonzero(np.isneginf(scores).all(axis=1))
        if len(impossible):
            raise self._impossible(impossible[:5].tolist(), len(impossible))
        return scores

    def _impossible(self, rows: list[int], total: int) -> ImpossibleRowError:
        return ImpossibleRowError.rows(rows, total)

    def _rows(self, X: Any) -> Any:
        return validate_data(self, X, accept_sparse=self._accept_sparse, reset=False)


class DenseClassifier(FormClassifier):
    """Base of the models on dense features: they know the names of columns."""

    scores_are_log_probabilities = True

    def name_features(self, names: Sequence[str]) -> None:
        """Set the names of the features for messages."""
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
        """The weights and intercepts of the scores, see `LinearForm`."""
        check_is_fitted(self)
        form: LinearForm = self._form.uncentered()
        return form

    @property
    def coef_(self) -> Floats:
        """Weights in scikit-learn's layout: (n_classes, n_features), or (1, n_features) for two."""
        form = self._form_of_attributes()
        if len(form.classes) == 2:
            return form.binary(form.classes[1])[0][None, :]
        return np.asarray(form.weights).T

    @property
    def intercept_(self) -> Floats:
        """Intercepts in scikit-learn's layout: (n_classes,), or (1,) for two classes."""
        form = self._form_of_attributes()
        if len(form.classes) == 2:
            return np.array([form.binary(form.classes[1])[1]])
        return form.intercept

    def _form_of_attributes(self) -> LinearForm:
        # `hasattr` expects this error from an attribute that does not exist.
        try:
            return self.linear_form()
        except ParameterError as error:
            raise AttributeError(str(error)) from error


class CountRows:
    """An estimator whose rows are counts: sparse or dense, and never below 0."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of the class that it is mixed into
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True
        return tags


class StatisticsClassifier(FormClassifier):
    """Fitting by statistics: rows become a statistic that adds, and it becomes a form."""

    statistics_: Any

    def _fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        X, y = self._rows_and_labels(X, y, reset=True)
        weight = sample_weights(sample_weight, X)
        known = np.unique(y)
        self.check_settings(X.shape[1], len(known))
        return self.fit_statistics(self._learn(X, y, known, weight, None))

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
        return self.fit_statistics(self._learn(X, y, known, weight, before))

    @abstractmethod
    def fit_statistics(self, statistics: Any) -> Self:
        """Derive the form from a statistic."""

    @abstractmethod
    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raise ParameterError for settings that are out of range, before anything is learned."""

    @abstractmethod
    def _learn(
        self, X: Any, y: NDArray[Any], classes: NDArray[Any], weight: Floats | None, before: Any
    ) -> Any:
        """The sum of the statistic before and of the statistic of these rows."""

    def _rows_and_labels(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        check_int64(y)
        X, y = validate_data(self, X, y, accept_sparse=self._accept_sparse, reset=reset)
        check_classification_targets(y)
        return X, y


def sample_weights(sample_weight: ArrayLike | None, X: Any) -> Floats | None:
    """Check weights of rows: float64 (n_rows,), or None."""
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
            Weights >= 0, not all 0. Counts are then float64, and depend in their last bits on the
            order of rows and on batches (log-probabilities by less than 1e-12). Without
            weights they are integers, and depend on neither.

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
