"""Gaussian naive Bayes: a normal density per class and feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textnb.errors import DataError, ParameterError
from textnb.models.additive import WeightedAdditiveModel
from textnb.models.base import register_model
from textnb.models.dense import MomentModel
from textnb.models.prediction import LinearMixin
from textnb.models.protocol import check_fitted
from textnb.runtime.settings import AT_LEAST_0, setting

if TYPE_CHECKING:
    from textnb.bayes.forms import Floats, LinearForm, QuadraticForm
    from textnb.bayes.moments import MomentStatistics


@register_model
class GaussianNB(WeightedAdditiveModel, LinearMixin, MomentModel):
    """Naive Bayes with a normal density per class and feature.

    log P(x, k) = log π_k - ½ Σ_i (log(2π σ²_ki) + (x_i - μ_ki)² / σ²_ki), with maximum-likelihood
    means μ_ki and variances σ²_ki (divisor n_k). If two classes, 0 (y = -1) and 1 (y = 1), share
    their variances, the posterior is logistic in x: P(y | x) = 1 / (1 + exp(-y (w·x + b))), with
    w_i = (μ_1i - μ_0i) / σ²_i (Mitchell 2017, Generative and discriminative classifiers, section
    3.1).

    Parameters
    ----------
    priors : array (n_classes,), optional
        By default the classes' shares of the rows.
    var_smoothing : float
        This share of the largest variance of a feature is added to all variances. The largest
        variance is that over the rows of all classes, and after `partial_fit` of all batches.
    shared_variance : bool
        One variance per feature for all classes (divisor n), so that scores are linear in x.
    class_weight : mapping of label to number, "balanced" or None
        Weights of classes, as in `MultinomialNB`. They change the priors, the shared variance
        and ``epsilon_``. Other models of feature tables only have ``priors``.

    Attributes
    ----------
    classes_ : (n_classes,)
    class_count_ : (n_classes,)
    class_prior_ : float64 (n_classes,)
    theta_ : float64 (n_classes, n_features)
        Means.
    var_ : float64 (n_classes, n_features)
        Variances plus ``epsilon_``.
    epsilon_ : float
        The amount added to all variances.

    Examples
    --------
    >>> model = GaussianNB().fit([[1.0], [3.0], [7.0], [9.0]], ["a", "a", "b", "b"])
    >>> model.theta_.tolist(), model.predict([[4.0]]).tolist()
    ([[2.0], [8.0]], ['a'])
    """

    # `MomentModel` and `FormClassifier` say what these attributes and the methods mean.
    kind = "gaussian"
    diagonal = True

    var_smoothing: float = setting(1e-9, "Share of the maximum variance to add to all variances.",
                                   is_common=False, range=AT_LEAST_0)
    shared_variance: bool = setting(False, "One variance per feature for all classes.",
                                    is_common=False)

    @property
    def class_prior_(self) -> Floats:
        return self.priors_

    @property
    def theta_(self) -> Floats:
        theta: Floats = self.statistics_.mean
        return theta

    def linear_form(self) -> LinearForm:
        """The linear form, if classes share variances.

        Raises
        ------
        ParameterError
            If each class has its own variances, because the form is then quadratic.
        """
        from textnb.bayes.forms import LinearForm

        check_fitted(self)
        if not isinstance(self._form, LinearForm):
            raise ParameterError("GaussianNB is linear only with shared_variance=True")
        return super().linear_form()

    def _weigh_classes(self, statistics: MomentStatistics) -> MomentStatistics:
        from textnb.bayes.class_weight import class_weights

        self.class_weight_ = weights = class_weights(
            self.class_weight, statistics.classes, statistics.class_count)
        return statistics if weights is None else statistics.scaled(weights)

    def derive(
        self, statistics: MomentStatistics, prior: Floats
    ) -> LinearForm | QuadraticForm:
        from textnb.bayes.gaussian import independent_gaussian, linear_gaussian, variances

        moments = statistics.without_covariances()
        # In a first batch of one row, say, no feature varies: the variance is then taken to be 1.
        max_variance = float(moments.variance().max()) or 1.0
        self.epsilon_ = float(self.var_smoothing) * max_variance
        self.var_ = variances(moments, self.epsilon_, self.shared_variance)
        self._check_variances(self.var_[moments.class_count > 0])
        if self.shared_variance:
            return linear_gaussian(moments, precision=1.0 / self.var_[0], log_prior=prior)
        return independent_gaussian(moments, self.var_, prior)

    def _check_variances(self, variances: Floats) -> None:
        """Raise DataError for a variance of 0; ``variances`` has a row per class with rows."""
        import numpy as np

        constant_columns = np.flatnonzero((variances <= 0).any(axis=0))
        if len(constant_columns):
            names = [self._names[i] if self._names else str(i) for i in constant_columns[:10]]
            raise DataError.naming_settings(
                "columns {names} are constant within a class, so their variance is 0; drop them or "
                "set {var_smoothing} above 0", names=", ".join(map(repr, names)))
