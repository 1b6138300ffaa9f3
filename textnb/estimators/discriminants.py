"""Linear discriminants: Gaussian classes that share a covariance.

    linear        one covariance for all classes: full, diagonal, or spherical
    centroid      the sphere with equal priors

References
----------
.. [1] T. Hastie, R. Tibshirani, J. Friedman (2009). The Elements of Statistical Learning, 2nd ed.,
   section 4.3, eq. 4.10.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textnb.bayes.covariance import factorise, ledoit_wolf_shrinkage, shrink
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.known import register_estimator
from textnb.bayes.moments import MomentStatistics
from textnb.bayes.parameters import is_number, is_whole
from textnb.bayes.special_forms import GaussianForm
from textnb.errors import DataError, ParameterError
from textnb.estimators.base import LinearMixin
from textnb.estimators.gaussian import MomentClassifier, linear_gaussian

Shrinkage = float | Literal["auto"] | None


class ShrunkClassifier(MomentClassifier):
    """Base of models with covariances that are shrunk by a number or Ledoit and Wolf's formula.

    The formula ("auto") needs Σ |x - mean|⁴ of standardised rows, which the moments do not hold. It
    takes all rows at once, so "auto" goes with `fit` and not with `partial_fit`.
    """

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raise ParameterError for settings that are out of range, before anything is learned."""
        super().check_settings(n_features, n_classes)
        s = self.shrinkage
        if not isinstance(getattr(self, "allow_singular", False), bool):
            raise ParameterError.out_of_range("allow_singular", "True or False",
                                              self.allow_singular)
        if not (s is None or (isinstance(s, str) and s == "auto") or in_unit(s)):
            raise ParameterError.out_of_range("shrinkage", "None, 'auto' or in [0, 1]", s)

    def _learn(
        self, X: Any, y: NDArray[Any], classes: NDArray[Any], weight: Floats | None,
        before: MomentStatistics | None,
    ) -> MomentStatistics:
        learned = super()._learn(X, y, classes, weight, before)
        self._fourth: Floats | None = None
        if self.shrinkage == "auto":
            if before is not None or weight is not None:
                raise ParameterError("shrinkage='auto' needs all rows at once, unweighted: use fit "
                                     "or give shrinkage as a number")
            self._fourth = _fourth_moments(X, y, learned)
        return learned

    @property
    def streams(self) -> bool:
        """Whether it learns from moments alone, so that rows can come in batches."""
        return not isinstance(self.shrinkage, str)

    def learned_settings(self) -> dict[str, Any]:
        """``Σ |z|⁴`` per class, if Ledoit and Wolf's formula needs it."""
        fourth = getattr(self, "_fourth", None)
        return {} if fourth is None else {"fourth": fourth.tolist()}

    def restore_settings(self, learned: dict[str, Any]) -> None:
        """The inverse of `learned_settings`; call it before `fit_statistics`."""
        self._fourth = None
        if learned:
            self._fourth = np.array(learned["fourth"], dtype=np.float64)
            if self._fourth.ndim != 1 or not np.isfinite(self._fourth).all():
                raise ParameterError.out_of_range("fourth", "finite numbers", learned["fourth"])

    def _class_covariance(self, statistics: MomentStatistics, k: int) -> Floats:
        """Covariance of a class with divisor n_k, after shrinkage."""
        covariance: Floats = statistics.scatter[k] / statistics.class_count[k]
        if self.shrinkage is None:
            return covariance
        if self.shrinkage != "auto":
            return shrink(covariance, float(self.shrinkage))
        if self._fourth is not None and len(self._fourth) != len(statistics.classes):
            raise ParameterError.out_of_range("fourth", "one number per class", self._fourth)
        if self._fourth is None:
            raise ParameterError("shrinkage='auto' needs the rows, not their moments alone; give "
                                 "shrinkage as a number")
        deviation = np.sqrt(np.diag(covariance))
        deviation[deviation == 0] = 1.0
        standard = covariance / deviation / deviation[:, None]
        share = ledoit_wolf_shrinkage(
            standard, float(statistics.class_count[k]), float(self._fourth[k]))
        result: Floats = shrink(standard, share) * deviation * deviation[:, None]
        return result


@register_estimator
class LinearDiscriminantAnalysis(
    ClassNamePrefixFeaturesOutMixin, LinearMixin, TransformerMixin, ShrunkClassifier
):
    """Gaussian classes that share a covariance: their discriminants are linear in x.

    ``delta_k(x) = a_k·x + b_k``, ``a_k = Σ⁻¹ μ_k``, ``b_k = log π_k - μ_kᵀ Σ⁻¹ μ_k / 2`` (Hastie,
    Tibshirani and Friedman 2009, eq. 4.10). For two classes ``w = Σ⁻¹ (μ_1 - μ_0)``.

    Parameters
    ----------
    covariance : {"full", "diagonal", "spherical"}
        Shape of the shared covariance. Spherical with equal priors is the nearest-centroid rule.
    shrinkage : float in [0, 1], "auto" or None
        Share of tr(Σ)/p I in the covariance; "auto" by Ledoit and Wolf (2004), per class.
    priors : array (n_classes,), optional
        By default the classes' shares of the rows. Priors also weigh the classes' covariances,
        as in scikit-learn.
    divisor : {"n", "n-K"}
        Divisor of the pooled scatter: maximum likelihood, or unbiased for K classes.
    allow_singular : bool
        Use the pseudo-inverse of a singular covariance, instead of an error.
    n_components : int, optional
        Number of discriminant axes that `transform` keeps, at most min(K-1, p), the default.

    Attributes
    ----------
    classes_ : (n_classes,)
    class_count_ : (n_classes,)
    priors_ : float64 (n_classes,)
    means_ : float64 (n_classes, n_features)
    covariance_ : float64 (n_features, n_features)
    xbar_ : float64 (n_features,)
        Mean of the class means, weighted by the priors.
    scalings_ : float64 (n_features, n_components)
        The discriminant axes; within classes their covariance is I.
    explained_variance_ratio_ : float64 (n_components,)

    Examples
    --------
    >>> X, y = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]], [0, 0, 0, 1, 1, 1]
    >>> LinearDiscriminantAnalysis().fit(X, y).predict([[-0.8, -1]]).tolist()
    [0]
    """

    def __init__(
        self,
        *,
        covariance: Literal["full", "diagonal", "spherical"] = "full",
        shrinkage: Shrinkage = None,
        priors: ArrayLike | None = None,
        divisor: Literal["n", "n-K"] = "n",
        allow_singular: bool = False,
        n_components: int | None = None,
    ):
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.priors = priors
        self.divisor = divisor
        self.allow_singular = allow_singular
        self.n_components = n_components

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raise ParameterError for settings that are out of range, before anything is learned."""
        super().check_settings(n_features, n_classes)
        check_choice("covariance", self.covariance, ("full", "diagonal", "spherical"))
        check_choice("divisor", self.divisor, ("n", "n-K"))
        most = min(n_classes - 1, n_features)
        # A single class is an error of the data, which is raised later.
        if self.n_components is not None and not (
                is_whole(self.n_components) and 1 <= self.n_components <= max(1, most)):
            raise ParameterError.out_of_range(
                "n_components", f"None, or an int from 1 to min(classes - 1, features) = {most}",
                self.n_components)

    def linear_form(self) -> LinearForm:
        """``a_k = Σ⁻¹ μ_k`` and ``b_k = log π_k - μ_kᵀ Σ⁻¹ μ_k / 2``, over x without a shift."""
        check_is_fitted(self)
        whiten = self._factor.whiten
        weights = (self.means_ @ whiten) @ whiten.T
        with np.errstate(divide="ignore"):
            prior = np.log(self.priors_)
        return GaussianForm(self.classes_, np.ascontiguousarray(weights.T),
                            prior - 0.5 * np.einsum("ki,ki->k", weights, self.means_),
                            relative=self._form)

    def transform(self, X: Any) -> Floats:
        """Rows on the discriminant axes: float64 (n_rows, n_components)."""
        check_is_fitted(self)
        projected: Floats = (self._rows(X) - self.xbar_) @ self.scalings_
        return projected

    def _derive(self, statistics: MomentStatistics, prior: Floats) -> LinearForm:
        self.means_ = statistics.mean
        pooled = sum((self.priors_[k] * self._class_covariance(statistics, k)
                      for k in range(len(statistics.classes)) if statistics.class_count[k] > 0),
                     np.zeros((statistics.n_features, statistics.n_features)))
        if self.divisor == "n-K":
            n, free = float(statistics.class_count.sum()), int((statistics.class_count > 0).sum())
            if n <= free:
                raise DataError(f"divisor n-K needs more rows than classes; got {n:g} and {free}")
            pooled = pooled * (n / (n - free))
        self.covariance_ = _restrict(pooled, self.covariance)
        self._factor = factorise(self.covariance_, self._names, "the classes, pooled,",
                                  self.allow_singular)
        self._set_axes(statistics)
        return linear_gaussian(statistics, self._factor.whiten, prior)

    @property
    def _n_features_out(self) -> int:
        return int(self.scalings_.shape[1])

    def _set_axes(self, statistics: MomentStatistics) -> None:
        self.xbar_ = self.priors_ @ self.means_
        spread = np.sqrt(self.priors_)[:, None] * (self.means_ - self.xbar_) @ self._factor.whiten
        _, singular, axes = np.linalg.svd(spread, full_matrices=False)
        most = min(len(self.classes_) - 1, statistics.n_features)
        kept = min(most, self.n_components or most, int((singular > 1e-4 * singular[0]).sum()))
        total = (singular**2).sum()
        ratio = singular**2 / total if total > 0 else singular
        self.explained_variance_ratio_ = ratio[:kept]
        self.scalings_ = self._factor.whiten @ axes[:kept].T


@register_estimator
class NearestCentroid(LinearMixin, MomentClassifier):
    """The class whose mean is nearest (Euclidean distance), as a linear form.

    It is `LinearDiscriminantAnalysis` with a spherical covariance and equal priors: the scores are
    ``(x·μ_k - |μ_k|²/2) / σ²``, with σ² the mean variance within classes (weighted by the priors of
    classes), so that posteriors are those of that model.

    Parameters
    ----------
    priors : array (n_classes,), optional
        Equal by default.

    Attributes
    ----------
    classes_, class_count_, priors_
        As in `LinearDiscriminantAnalysis`.
    centroids_ : float64 (n_classes, n_features)

    Examples
    --------
    >>> NearestCentroid().fit([[0.0], [2.0], [9.0]], ["a", "a", "b"]).predict([[4.0]]).tolist()
    ['a']
    """

    diagonal = True

    def __init__(self, *, priors: ArrayLike | None = None):
        self.priors = priors

    @property
    def means_(self) -> Floats:
        return self.centroids_

    def _log_prior(self, statistics: MomentStatistics) -> Floats:
        if self.priors is None:
            return np.full(len(statistics.classes), -np.log(len(statistics.classes)))
        return super()._log_prior(statistics)

    def _derive(self, statistics: MomentStatistics, prior: Floats) -> LinearForm:
        moments = statistics.without_covariances()
        self.centroids_ = moments.mean
        seen = moments.class_count > 0
        variance = moments.scatter[seen] / moments.class_count[seen, None]
        within = float((self.priors_[seen] @ variance).mean())
        # If all rows lie on their centroids there is no spread, and any scale gives the same rule.
        precision = np.full(moments.n_features, 1.0 / within if within > 0 else 1.0)
        return linear_gaussian(moments, precision, prior)


def _restrict(covariance: Floats, kind: str) -> Floats:
    if kind == "full":
        return covariance
    variance = np.diag(covariance)
    return np.diag(variance if kind == "diagonal" else np.full(len(variance), variance.mean()))


def _fourth_moments(X: NDArray[Any], y: NDArray[Any], statistics: MomentStatistics) -> Floats:
    """``Σ |z|⁴`` per class, z the rows standardised within the class."""
    fourth = np.zeros(len(statistics.classes))
    for k, label in enumerate(statistics.classes):
        deviation = np.sqrt(np.diag(statistics.scatter[k]) / statistics.class_count[k])
        deviation[deviation == 0] = 1.0
        z = (X[y == label] - statistics.mean[k]) / deviation
        fourth[k] = (np.einsum("ij,ij->i", z, z) ** 2).sum()
    return fourth


def in_unit(value: Any) -> bool:
    """Whether a setting is a number in [0, 1]."""
    return is_number(value) and 0.0 <= value <= 1.0


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise ParameterError.unknown_choice(name, value, choices)
