"""Gaussian naive Bayes, and the base of all models on moments.

    rows -> MomentStatistics -> QuadraticForm, or LinearForm if classes share variances
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from textnb.bayes.class_weight import ClassWeight, check_class_weight, class_weights
from textnb.bayes.features import Center, FeatureMap
from textnb.bayes.forms import Floats, LinearForm, QuadraticForm
from textnb.bayes.known import register_estimator
from textnb.bayes.moments import MomentStatistics
from textnb.bayes.parameters import is_number
from textnb.bayes.smoothing import log_prior
from textnb.bayes.statistics import as_class_prior
from textnb.errors import DataError, ParameterError
from textnb.estimators.base import (
    DenseClassifier,
    LinearMixin,
    StatisticsClassifier,
    WeightedMixin,
)

# Larger scores are computed again, in logarithms, because parts of them may have overflowed.
_FAR = 1e300


class MomentClassifier(DenseClassifier, StatisticsClassifier):
    """Fitting for the models on moments. Priors are a parameter, or the classes' shares of rows."""

    statistics_: MomentStatistics
    diagonal = False

    @property
    def streams(self) -> bool:
        """Whether it learns from moments alone, so that rows can come in batches."""
        return True

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn the rows' moments and derive the form.

        Parameters
        ----------
        X : array (n_rows, n_features)
        y : array (n_rows,)

        Raises
        ------
        ValueError
            On NaN or infinite values, values too large to square, one class, or a covariance that
            can't be used.
        """
        return self._fit(X, y, None)

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn more rows: the model is that of one `fit` on all of them, to rounding.

        Parameters
        ----------
        X : array (n_rows, n_features)
        y : array (n_rows,)
        classes : array, optional
            Required at the first call; at a later call, announces more classes.

        Raises
        ------
        DataError
            If a label was not announced, or a class has too few rows yet for its own
            covariance; the model then stays as it was.
        """
        return self._partial_fit(X, y, classes, None)

    def fit_statistics(
        self, statistics: MomentStatistics, feature_names: Sequence[str] | None = None
    ) -> Self:
        """Derive the form from moments.

        Parameters
        ----------
        statistics : MomentStatistics
        feature_names : sequence of str, optional
            For messages that name columns.
        """
        self.check_settings(statistics.n_features, len(statistics.classes))
        statistics.check_size(feature_names if feature_names is not None else self._names)
        before = dict(vars(self))
        try:
            return self._set_fitted(statistics, feature_names)
        except BaseException:
            # After a statistic that can't be used, the model stays as it was.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _set_fitted(
        self, statistics: MomentStatistics, feature_names: Sequence[str] | None
    ) -> Self:
        if feature_names is not None:
            self.name_features(feature_names)
        if len(statistics.classes) < 2:
            raise DataError("these models separate classes; the number of classes in the data has "
                            f"to be greater than one; got one class: {statistics.classes.tolist()}")
        self.statistics_ = statistics
        self.classes_ = statistics.classes
        self.class_count_ = statistics.class_count
        self.n_features_in_ = statistics.n_features
        # A class that was announced and never seen has no mean. No row can be of it.
        weighted = self._weigh_classes(statistics)
        prior = np.where(statistics.class_count > 0, self._log_prior(weighted), -np.inf)
        self.priors_ = np.exp(prior)
        self._form = self._derive(weighted, prior)
        return self

    def _weigh_classes(self, statistics: MomentStatistics) -> MomentStatistics:
        """The moments under class weights, from which the form is derived."""
        return statistics

    def _log_prior(self, statistics: MomentStatistics) -> Floats:
        given = as_class_prior(self.priors, len(statistics.classes), "priors")
        return log_prior(statistics.class_count, given)

    def _derive(self, statistics: MomentStatistics, prior: Floats) -> LinearForm | QuadraticForm:
        raise TypeError(f"{type(self).__name__} does not say how moments become a form")

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raise ParameterError for settings that are out of range, before anything is learned."""
        check_priors(self.priors, n_classes)

    def _rows_and_labels(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        # scikit-learn's check for NaN adds values that may overflow to inf and -inf.
        with np.errstate(invalid="ignore"):
            return super()._rows_and_labels(X, y, reset)

    def _learn(
        self, X: Any, y: NDArray[Any], classes: NDArray[Any], weight: Floats | None,
        before: MomentStatistics | None,
    ) -> MomentStatistics:
        more = MomentStatistics.from_matrix(
            X, y, classes=classes, sample_weight=weight, diagonal=self.diagonal)
        learned = more if before is None else before + more
        learned.check_size(self._names)
        return learned

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log P(x, class), base e, of each row and class.

        If all of them are below the range of float64, the nearest class gets the smallest float64,
        so that it still ranks above the others.

        Parameters
        ----------
        X : array (n_rows, n_features)

        Returns
        -------
        float64 (n_rows, n_classes)
        """
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = self._rows(X)
            scores = self._form.scores(rows)
            seen = self.priors_ > 0
            far = np.flatnonzero(~(np.abs(scores[:, seen]) < _FAR).all(axis=1))
        if len(far):
            scores[far] = far_scores(self._form, np.asarray(rows)[far].astype(np.float64))
        return scores

    def learned_settings(self) -> dict[str, Any]:
        """Values that a model learns from rows in addition to their moments, to store."""
        return {}

    def restore_settings(self, learned: dict[str, Any]) -> None:
        """The inverse of `learned_settings`; call it before `fit_statistics`."""
        if learned:
            raise ParameterError(f"{type(self).__name__} learns nothing but moments; "
                                 f"got {sorted(learned)}")


@register_estimator
class GaussianNB(WeightedMixin, LinearMixin, MomentClassifier):
    """Naive Bayes with a normal density per class and feature.

    log P(x, k) = log π_k - ½ Σ_i (log 2π σ²_ki + (x_i - μ_ki)² / σ²_ki), with maximum-likelihood
    means and variances (divisor n_k). With variances shared between classes the posterior is
    logistic in x: P(y | x) = 1 / (1 + exp(-y (w·x + b))), w_i = (μ_1i - μ_0i) / σ²_i
    (Mitchell 2017, Generative and discriminative classifiers, section 3.1).

    Parameters
    ----------
    priors : array (n_classes,), optional
        By default the classes' shares of the rows.
    var_smoothing : float
        Share of the largest variance of a feature, over all rows, that is added to all variances.
        It is computed from all rows, even after `partial_fit`.
    shared_variance : bool
        One variance per feature for all classes (divisor n), which makes the form linear.
    class_weight : mapping of label to number, "balanced" or None
        Weights of the rows of classes, as in `MultinomialNB`: in priors, the shared variance and
        ``epsilon_``. (The other models of feature tables take ``priors``.)

    Attributes
    ----------
    classes_ : (n_classes,)
    class_count_ : (n_classes,)
    class_prior_ : float64 (n_classes,)
    theta_ : float64 (n_classes, n_features)
        Means.
    var_ : float64 (n_classes, n_features)
        Variances, smoothed.
    epsilon_ : float
        The amount added to all variances.

    Examples
    --------
    >>> model = GaussianNB().fit([[1.0], [3.0], [7.0], [9.0]], ["a", "a", "b", "b"])
    >>> model.theta_.tolist(), model.predict([[4.0]]).tolist()
    ([[2.0], [8.0]], ['a'])
    """

    diagonal = True

    def __init__(
        self,
        *,
        priors: ArrayLike | None = None,
        var_smoothing: float = 1e-9,
        shared_variance: bool = False,
        class_weight: ClassWeight = None,
    ):
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.shared_variance = shared_variance
        self.class_weight = class_weight

    @property
    def class_prior_(self) -> Floats:
        return self.priors_

    def linear_form(self) -> LinearForm:
        """The linear form, if classes share variances.

        Raises
        ------
        ParameterError
            If each class has its own variances, because the form is then quadratic.
        """
        check_is_fitted(self)
        if not isinstance(self._form, LinearForm):
            raise ParameterError("GaussianNB is linear only with shared_variance=True")
        return super().linear_form()

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raise ParameterError for settings that are out of range, before anything is learned."""
        super().check_settings(n_features, n_classes)
        check_class_weight(self.class_weight)
        if not (is_number(self.var_smoothing) and np.isfinite(self.var_smoothing)
                and self.var_smoothing >= 0):
            raise ParameterError.out_of_range("var_smoothing", "a finite number >= 0",
                                              self.var_smoothing)

    def _derive(self, statistics: MomentStatistics, prior: Floats) -> LinearForm | QuadraticForm:
        moments = statistics.without_covariances()
        # If nothing varies, as in a first batch of one row, the scale is 1.
        scale = float(moments.variance().max()) or 1.0
        self.epsilon_ = float(self.var_smoothing) * scale
        self.theta_ = moments.mean
        count = moments.class_count[:, None]
        if self.shared_variance:
            variance = moments.within() / moments.class_count.sum() + self.epsilon_
            self.var_ = np.tile(variance, (len(moments.classes), 1))
        else:
            self.var_ = np.divide(moments.scatter, count, out=np.zeros_like(moments.scatter),
                                  where=count > 0) + self.epsilon_
        self._check_variance(self.var_[moments.class_count > 0])
        if self.shared_variance:
            return linear_gaussian(moments, 1.0 / variance, prior)
        # A class that was announced and never seen has no variance. Its prior is 0.
        variance = np.where(count > 0, self.var_, 1.0)
        return QuadraticForm(moments.classes, self.theta_, 1.0 / np.sqrt(variance),
                             np.log(variance).sum(axis=1), prior)

    def _weigh_classes(self, statistics: MomentStatistics) -> MomentStatistics:
        weights = class_weights(self.class_weight, statistics.classes, statistics.class_count)
        self.class_weight_ = weights
        return statistics if weights is None else statistics.scaled(weights)

    def _check_variance(self, variance: Floats) -> None:
        constant = np.flatnonzero((variance <= 0).any(axis=0))
        if len(constant):
            shown = [self._names[i] if self._names else str(i) for i in constant[:10]]
            raise DataError.naming(
                "columns {names} are constant within a class, so their variance is 0; drop them or "
                "set {var_smoothing} above 0", names=", ".join(map(repr, shown)))


def check_priors(priors: ArrayLike | None, n_classes: int) -> None:
    """Raise ParameterError unless there is one probability per class, and they sum to 1."""
    prior = as_class_prior(priors, n_classes, "priors")
    if prior is not None and not np.isclose(prior.sum(), 1.0):
        raise ParameterError(f"The sum of the priors should be 1; got {prior.sum()}")


def linear_gaussian(
    statistics: MomentStatistics, precision: Floats, prior: Floats
) -> LinearForm:
    """The discriminants of Gaussians that share a covariance, by the inverse of its factor.

    ``delta_k(x) = a_k·x + b_k``, ``a_k = Σ⁻¹ μ_k``, ``b_k = log π_k - μ_kᵀ Σ⁻¹ μ_k / 2`` (Hastie,
    Tibshirani, Friedman 2009, The Elements of Statistical Learning, eq. 4.10), over features
    less their overall mean: the shift changes all classes' scores alike, and keeps precision.

    Parameters
    ----------
    statistics : MomentStatistics
    precision : float64 (n_features,) or (n_features, rank)
        1 / variances; or a matrix W with W Wᵀ = Σ⁻¹.
    prior : float64 (n_classes,)
        log π.
    """
    center = statistics.overall_mean()
    means = statistics.mean - center
    weights = means * precision if precision.ndim == 1 else (means @ precision) @ precision.T
    intercept = prior - 0.5 * np.einsum("ki,ki->k", weights, means)
    return LinearForm(statistics.classes, np.ascontiguousarray(weights.T), intercept,
                      features=FeatureMap((Center(center),)))


def far_scores(form: LinearForm | QuadraticForm, rows: Floats) -> Floats:
    """Scores of rows so far away that products or squares overflow.

    Rows are scaled first. Scores beyond the range of float64 keep their order: the best class of a
    row gets the lowest float64 (in a linear form its intercept, as a constant per row is left out),
    and the others get -inf.

    Parameters
    ----------
    form : LinearForm or QuadraticForm
        A form on dense features.
    rows : float64 (n_rows, n_features)
    """
    exponent = np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1]
    shrink = np.ldexp(1.0, np.clip(-64 - exponent, -1022, 0))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        if isinstance(form, LinearForm):
            form.features.check((Center,), "scores of rows far away")
            center = form.features.center
            scaled = (rows * shrink - (0.0 if center is None else center) * shrink) @ form.weights
            scaled[:, np.isneginf(form.intercept)] = -np.inf
            scaled -= scaled.max(axis=1, keepdims=True)
            linear: Floats = np.where(np.isneginf(scaled), -np.inf, scaled / shrink)
            return linear + form.intercept
        # log |z|², computed from z divided by its largest part.
        distance = np.empty((len(rows), len(form.classes)))
        for k, whiten in enumerate(form.whiten):
            z = rows * shrink - form.mean[k] * shrink
            z = z * whiten if whiten.ndim == 1 else z @ whiten
            top = np.abs(z).max(axis=1, initial=0.0)
            parts = z / np.where(top > 0, top, 1.0)[:, None]
            distance[:, k] = (2.0 * (np.log(top) - np.log(shrink[:, 0]))
                              + np.log(np.einsum("ij,ij->i", parts, parts)))
        rank = np.array([whiten.shape[-1] for whiten in form.whiten])
        scores: Floats = form.log_prior - 0.5 * (
            np.exp(distance) + form.log_det + rank * np.log(2.0 * np.pi))
        lost = np.asarray(np.isneginf(scores).all(axis=1))
        distance[:, np.isneginf(form.log_prior)] = np.inf
        least = distance.min(axis=1, keepdims=True)
        nearest = np.asarray(distance == least)
        return np.where(lost[:, None] & nearest, np.finfo(np.float64).min, scores)
