"""Linear discriminants: Gaussian classes that share a covariance.

    linear        one covariance for all classes: full, diagonal, or spherical
    centroid      a spherical covariance, with equal priors

References
----------
.. [1] T. Hastie, R. Tibshirani, J. Friedman (2009). The Elements of Statistical Learning, 2nd ed.,
   section 4.3, eq. 4.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from textnb.errors import DataError, ParameterError
from textnb.models.base import register_model
from textnb.models.dense import MomentModel
from textnb.models.prediction import LinearMixin
from textnb.models.protocol import check_fitted
from textnb.runtime.settings import NumberOrAuto, Range, between, is_whole, setting

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from textnb.bayes.forms import Floats, LinearForm
    from textnb.bayes.moments import MomentStatistics

UNIT_RANGE = between(0, 1)
_SHRINKAGE = Range("'auto' or in [0, 1]", lambda value: (
    value == "auto" if isinstance(value, str) else UNIT_RANGE.holds(value)))


@dataclass(eq=False, repr=False, kw_only=True)
class FullModel(MomentModel):
    """A model of full covariance matrices, which may be singular."""

    allow_singular: bool = setting(
        False, "Use the pseudo-inverse of a singular covariance.", is_common=False)

    @property
    def means_(self) -> Floats:
        """float64 (n_classes, n_features)"""
        means: Floats = self.statistics_.mean
        return means


@dataclass(eq=False, repr=False, kw_only=True)
class ShrunkModel(FullModel):
    """A model of covariances that are shrunk by a number, or by Ledoit and Wolf's formula.

    The formula ("auto") needs ``Σ |z|⁴`` of the standardised rows z, which moments do not hold. So
    "auto" needs all rows at once, by `fit`, and not by `partial_fit`.
    """

    shrinkage: NumberOrAuto | None = setting(
        None, "Number in [0, 1] or auto.", is_common=False, range=_SHRINKAGE)

    @property
    def from_moments(self) -> bool:
        return not isinstance(self.shrinkage, str)

    def _choose(
        self, X: Any, y: NDArray[Any], statistics: MomentStatistics, weight: Floats | None
    ) -> dict[str, Any]:
        """What moments lack for shrinkage "auto": ``Σ |z|⁴`` per class, an argument of `derive`."""
        from textnb.bayes.gaussian import fourth_moments

        return {} if self.from_moments else {"fourth": fourth_moments(X, y, statistics)}

    def _covariances(self, statistics: MomentStatistics, fourth: Any) -> list[Floats]:
        """The covariances of the classes that have rows, with divisor n_k."""
        from textnb.bayes.gaussian import class_covariance

        fourth = self._as_fourth_moments(fourth, len(statistics.classes))
        shrinkage: Any = self.shrinkage
        return [class_covariance(statistics, k, shrinkage, fourth)
                for k, n in enumerate(statistics.class_count) if n > 0]

    def _as_fourth_moments(self, fourth: Any, n_classes: int) -> Floats | None:
        """The argument ``fourth`` as float64 (n_classes,), checked; None if it is not needed."""
        import numpy as np

        if self.from_moments:
            return None
        if fourth is None:
            raise ParameterError("shrinkage='auto' needs all rows at once, not their moments "
                                 "alone: use fit, or give shrinkage as a number")
        values = np.array(fourth, dtype=np.float64)
        if values.shape != (n_classes,) or not np.isfinite(values).all():
            raise ParameterError.out_of_range("fourth", "a finite number per class", fourth)
        return values


@register_model
class LinearDiscriminantAnalysis(LinearMixin, ShrunkModel):
    """Gaussian classes that share a covariance: their discriminants are linear in x.

    ``delta_k(x) = a_k·x + b_k``, ``a_k = Σ⁻¹ μ_k``, ``b_k = log π_k - μ_kᵀ Σ⁻¹ μ_k / 2`` (Hastie,
    Tibshirani and Friedman 2009, eq. 4.10), with the classes' means μ_k and priors π_k, and their
    common covariance Σ. For two classes, ``coef_`` is ``Σ⁻¹ (μ_1 - μ_0)``.

    Parameters
    ----------
    covariance : {"full", "diagonal", "spherical"}
        Shape of the shared covariance. With "spherical" and equal priors, the class with the
        nearest mean is predicted.
    shrinkage : float in [0, 1], "auto" or None
        Share of (tr(Σ) / p) I, for p features, in the covariance; "auto" by the formula of Ledoit
        and Wolf (2004), per class.
    priors : array (n_classes,), optional
        By default the classes' shares of the rows. As in scikit-learn, the shared covariance is the
        mean of the classes' covariances, weighted by the priors.
    divisor : {"n", "n-K"}
        Divisor of the pooled scatter: maximum likelihood, or unbiased for K classes.
    allow_singular : bool
        Use the pseudo-inverse of a singular covariance, instead of an error.
    n_components : int, optional
        Number of discriminant axes for `transform`; by default, and at most, min(K-1, p).

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
        The discriminant axes, on which the covariance within classes is I.
    explained_variance_ratio_ : float64 (n_components,)

    Examples
    --------
    >>> X, y = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]], [0, 0, 0, 1, 1, 1]
    >>> LinearDiscriminantAnalysis().fit(X, y).predict([[-0.8, -1]]).tolist()
    [0]
    """

    # `MomentModel` and `FormClassifier` say what these attributes and the methods mean.
    kind = "lda"
    # The methods whose output `set_output` changes: see scikit-learn's user guide.
    _sklearn_auto_wrap_output_keys: ClassVar[set[str]] = {"transform"}

    covariance: str = setting("full", "Shape of the covariance.",
                              choices=("full", "diagonal", "spherical"), is_option=False)
    divisor: str = setting("n", "What the covariance is divided by.", choices=("n", "n-K"),
                           is_option=False)
    n_components: int | None = setting(None, "Maximum number of components of transformed rows.",
                                       is_option=False)

    def check(self, n_features: int, n_classes: int) -> None:
        super().check(n_features, n_classes)
        max_components = min(n_classes - 1, n_features)
        # A single class is an error of the data, which is raised later.
        if self.n_components is not None and not (
                is_whole(self.n_components) and 1 <= self.n_components <= max(1, max_components)):
            raise ParameterError.out_of_range(
                "n_components",
                f"None, or an int from 1 to min(classes - 1, features) = {max_components}",
                self.n_components)

    def linear_form(self) -> LinearForm:
        """Weights a_k and intercepts b_k for x itself, not for x minus the mean of the rows."""
        import numpy as np

        from textnb.bayes.forms import GaussianForm

        check_fitted(self)
        # A matrix W with W Wᵀ = Σ⁻¹.
        whiten = self._factor.whiten
        weights = (self.means_ @ whiten) @ whiten.T
        with np.errstate(divide="ignore"):
            prior = np.log(self.priors_)
        return GaussianForm(self.classes_, np.ascontiguousarray(weights.T),
                            prior - 0.5 * np.einsum("ki,ki->k", weights, self.means_),
                            # The form that was derived takes x minus the mean of the rows.
                            relative=self._form)

    # The methods of a transformer of scikit-learn.

    def transform(self, X: Any) -> Any:
        """Rows on the discriminant axes: float64 (n_rows, n_components)."""
        from sklearn.utils._set_output import _wrap_data_with_container

        check_fitted(self)
        projected = (self._rows(X) - self.xbar_) @ self.scalings_
        # An array or a frame, as `set_output` says.
        return _wrap_data_with_container("transform", projected, X, self)

    def fit_transform(self, X: Any, y: ArrayLike) -> Any:
        """`fit`, then `transform`, of the same rows."""
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the discriminant axes: object (n_components,)."""
        import numpy as np

        check_fitted(self)
        return np.array([f"{self.name.lower()}{i}" for i in range(self.scalings_.shape[1])],
                        dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` gives: "default" (an array), "pandas" or "polars"."""
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    def derive(
        self, statistics: MomentStatistics, prior: Floats, fourth: Any = None
    ) -> LinearForm:
        """As `MomentModel.derive`; ``fourth`` is ``Σ |z|⁴`` per class if shrinkage is "auto"."""
        import numpy as np

        from textnb.bayes.covariance import factorise
        from textnb.bayes.gaussian import linear_gaussian, restrict

        covariances = self._covariances(statistics, fourth)
        pooled = sum(
            (class_prior * covariance for class_prior, covariance in zip(
                self._shares[statistics.class_count > 0], covariances, strict=True)),
            np.zeros((statistics.n_features, statistics.n_features)))
        self.covariance_ = restrict(pooled * self._divisor_ratio(statistics), self.covariance)
        self._factor = factorise(self.covariance_, self._names, owner="the classes, pooled,",
                                 allow_singular=self.allow_singular)
        if not self._factor.rank:
            raise DataError("no feature varies within a class, so that there is no covariance to "
                            "measure distances by: take NearestCentroid, or give other features")
        self._set_axes(statistics.mean, self._factor.whiten)
        # `whiten` is a matrix W with W Wᵀ = Σ⁻¹.
        return linear_gaussian(statistics, self._factor.whiten, prior)

    def _divisor_ratio(self, statistics: MomentStatistics) -> float:
        """n / divisor: the classes' covariances have the divisor n."""
        if self.divisor == "n":
            return 1.0
        n_rows = float(statistics.class_count.sum())
        n_classes = int((statistics.class_count > 0).sum())
        if n_rows <= n_classes:
            raise DataError(
                f"divisor n-K needs more rows than classes; got {n_rows:g} and {n_classes}")
        return n_rows / (n_rows - n_classes)

    def _set_axes(self, means: Floats, whiten: Floats) -> None:
        """Set the axes on which the class means, weighted by the priors, differ most."""
        import numpy as np

        self.xbar_: Floats = self._shares @ means
        white_means = np.sqrt(self._shares)[:, None] * (means - self.xbar_) @ whiten
        _, singular_values, axes = np.linalg.svd(white_means, full_matrices=False)
        max_components = min(int((self.class_count_ > 0).sum()) - 1, means.shape[1])
        # Axes with a smaller singular value are rounding errors, as in scikit-learn.
        n_axes = int((singular_values > 1e-4 * singular_values[0]).sum())
        n_components = min(max_components, self.n_components or max_components, n_axes)
        variances = singular_values**2
        total = variances.sum()
        # If all classes have the same mean, the singular values are 0, and so are the ratios.
        ratios = variances / total if total > 0 else singular_values
        self.explained_variance_ratio_: Floats = ratios[:n_components]
        self.scalings_: Floats = whiten @ axes[:n_components].T


@register_model
class NearestCentroid(LinearMixin, MomentModel):
    """The class whose mean is nearest (Euclidean distance), as a linear form.

    It gives the posteriors of `LinearDiscriminantAnalysis` with a spherical covariance and equal
    priors: scores are ``(x·μ_k - |μ_k|²/2) / σ²``, with μ_k the means of the classes, and σ² the
    mean variance within classes, weighted by their priors.

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

    # `MomentModel` and `FormClassifier` say what these attributes and the methods mean.
    kind = "centroid"
    diagonal = True

    @property
    def centroids_(self) -> Floats:
        centroids: Floats = self.statistics_.mean
        return centroids

    @property
    def means_(self) -> Floats:
        return self.centroids_

    def _log_prior(self, class_count: NDArray[Any]) -> Floats:
        import numpy as np

        if self.priors is None:
            return np.full(len(class_count), -np.log(len(class_count)))
        return super()._log_prior(class_count)

    def derive(self, statistics: MomentStatistics, prior: Floats) -> LinearForm:
        import numpy as np

        from textnb.bayes.gaussian import linear_gaussian

        moments = statistics.without_covariances()
        has_rows = moments.class_count > 0
        variance = moments.scatter[has_rows] / moments.class_count[has_rows, None]
        within_variance = float((self._shares[has_rows] @ variance).mean())
        # If every row equals its class's mean, any scale gives the same predictions.
        precision = 1.0 / within_variance if within_variance > 0 else 1.0
        # Σ⁻¹ has this number on its diagonal, and 0 elsewhere.
        return linear_gaussian(moments, np.full(moments.n_features, precision), prior)
