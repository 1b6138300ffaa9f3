"""Quadratic discriminants: Gaussian classes with their own covariances.

    quadratic     a covariance per class
    regularised   per class, a mixture of its covariance, the pooled one, and a spherical one

References
----------
.. [1] T. Hastie, R. Tibshirani, J. Friedman (2009). The Elements of Statistical Learning, 2nd ed.,
   section 4.3: eqs. 4.12 (quadratic), 4.13-4.14 (regularised).
.. [2] J. H. Friedman (1989). Regularized discriminant analysis. JASA 84, 165-175.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from textnb.errors import DataError, Mention, ParameterError, quantity
from textnb.models.base import register_model
from textnb.models.discriminants import UNIT_RANGE, FullModel, ShrunkModel
from textnb.runtime.settings import AT_LEAST_2, Numbers, Range, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from textnb.bayes.covariance import Factor
    from textnb.bayes.forms import Floats, QuadraticForm
    from textnb.bayes.moments import MomentStatistics


def _are_shares(value: Any) -> bool:
    import numpy as np

    items = [value] if np.ndim(value) == 0 else list(np.asarray(value, dtype=object))
    return bool(items) and all(map(UNIT_RANGE.holds, items))


_SHARES = Range("in [0, 1], or a list of such numbers", _are_shares)


@register_model
class QuadraticDiscriminantAnalysis(ShrunkModel):
    """A normal density per class, with its own covariance.

    ``-½ log |Σ_k| - ½ (x - μ_k)ᵀ Σ_k⁻¹ (x - μ_k) + log π_k`` minus the constant p/2 log 2π, with
    the covariance Σ_k, mean μ_k and prior π_k of class k, and p features (Hastie, Tibshirani and
    Friedman 2009, eq. 4.12).

    Parameters
    ----------
    priors : array (n_classes,), optional
        By default the classes' shares of the rows.
    divisor : {"n", "n-1"}
        Divisor of the covariance of a class of n rows: maximum likelihood, or unbiased.
    shrinkage : float in [0, 1], "auto" or None
        As in `LinearDiscriminantAnalysis`.
    reg_param : float in [0, 1]
        Replaces each covariance Σ_k by (1 - reg_param) Σ_k + reg_param I.
    allow_singular : bool
        For a singular covariance, use the pseudo-inverse and pseudo-determinant instead of an
        error. Directions in which the class does not vary are then ignored.

    Attributes
    ----------
    classes_ : (n_classes,)
    class_count_ : (n_classes,)
    priors_ : float64 (n_classes,)
    means_ : float64 (n_classes, n_features)
    covariance_ : list of float64 (n_features, n_features)

    Examples
    --------
    >>> X, y = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]], [0, 0, 0, 1, 1, 1]
    >>> QuadraticDiscriminantAnalysis().fit(X, y).predict([[-0.8, -1]]).tolist()
    [0]
    """

    # `MomentModel` and `FormClassifier` say what these attributes and the methods mean.
    kind = "qda"

    divisor: str = setting("n", "What each covariance is divided by.", choices=("n", "n-1"),
                           is_option=False)
    reg_param: float = setting(0.0, "Share of the identity in each covariance.", is_option=False,
                               range=UNIT_RANGE)

    def derive(
        self, statistics: MomentStatistics, prior: Floats, fourth: Any = None
    ) -> QuadraticForm:
        """As `MomentModel.derive`; if shrinkage is "auto", ``fourth`` is ``Σ |z|⁴`` per class, over
        its standardised rows z.
        """
        import numpy as np

        from textnb.bayes.gaussian import quadratic_gaussian

        _check_rows(statistics, min_rows=2)
        covariances = []
        identity_share = float(self.reg_param)
        for n, class_covariance in zip(statistics.class_count,
                                       self._covariances(statistics, fourth), strict=True):
            # Covariances of moments have the divisor n.
            scale = n / (n - 1.0) if self.divisor == "n-1" else 1.0
            covariance = (1.0 - identity_share) * (scale * class_covariance)
            covariance[np.diag_indices(len(covariance))] += identity_share
            covariances.append(covariance)
        self.covariance_ = covariances
        factors = _factors(self, statistics, covariances)
        return quadratic_gaussian(statistics, factors, prior)


@register_model
class RegularizedDiscriminantAnalysis(FullModel):
    """Covariances that are mixtures of the class's, the pooled one, and a sphere.

    ``Σ_k(α, γ) = α Σ_k + (1 - α) Σ(γ)`` and ``Σ(γ) = γ Σ + (1 - γ) (tr(Σ) / p) I``, after Friedman
    (1989), with Σ_k the covariance of class k, Σ the pooled one, and p features. α = 1 gives the
    quadratic discriminant, α = 0 and γ = 1 with the default priors the linear one, and α = γ = 0
    with equal priors the nearest centroid.

    Parameters
    ----------
    alpha, gamma : float in [0, 1], or a sequence of them
        α and γ. If either is a sequence, the pair with the highest cross-validated accuracy is
        chosen; on ties the one with the smaller α, then the smaller γ, which is simpler. Each row
        is read once, because the statistics of a fold can be subtracted from those of all rows.
    cv : int
        The number of stratified folds; row i of each class is in fold i mod cv.
    priors : array (n_classes,), optional
        By default the classes' shares of the rows.
    allow_singular : bool
        As in `QuadraticDiscriminantAnalysis`.

    Attributes
    ----------
    alpha_, gamma_ : float
        The parameters, or the pair that was chosen.
    cv_accuracy_ : float64 (n_alpha, n_gamma) or None
        Cross-validated accuracies; NaN for a pair that can't be chosen, because a covariance is
        singular in a fold.
    classes_, class_count_, priors_, means_, covariance_
        As in `QuadraticDiscriminantAnalysis`.

    Examples
    --------
    >>> X, y = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]], [0, 0, 0, 1, 1, 1]
    >>> model = RegularizedDiscriminantAnalysis(alpha=[0.0, 0.5], gamma=0.5, cv=3).fit(X, y)
    >>> model.predict([[-0.8, -1]]).tolist(), model.cv_accuracy_.shape
    ([0], (2, 1))
    """

    # `MomentModel` and `FormClassifier` say what these attributes and the methods mean.
    kind = "rda"

    alpha: Numbers = setting(
        0.5, "Share of each class's own covariance; several, such as [0.1, 0.5], are chosen among "
             "by cross-validation.", is_common=False, range=_SHARES)
    gamma: Numbers = setting(
        0.5, "Share of the covariance's shape against a sphere; several as for alpha.",
        is_common=False, range=_SHARES)
    cv: int = setting(5, "Folds by which alpha and gamma are chosen.", is_option=False,
                      range=AT_LEAST_2)

    # To choose among several pairs (α, γ), the rows themselves are needed.
    @property
    def from_moments(self) -> bool:
        import numpy as np

        return np.ndim(self.alpha) == 0 and np.ndim(self.gamma) == 0

    def fit_rows(self, X: Any, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        """As `fit`, with checked rows. If α or γ is a sequence, choose the pair."""
        import numpy as np

        from textnb.bayes.moments import MomentStatistics

        if self.from_moments:
            return super().fit_rows(X, y, sample_weight)
        classes, codes = np.unique(y, return_inverse=True)
        self.check(X.shape[1], len(classes))
        folds = self._folds(codes, classes)
        fold_moments = [MomentStatistics.from_matrix(X[folds == i], y[folds == i], classes=classes)
                        for i in range(self.cv)]
        total = sum(fold_moments[1:], start=fold_moments[0])
        # Raises an error for columns with squares that overflow.
        total.check_size(self._names)
        chosen, accuracy = self._choose_pair(X, codes, folds, total, fold_moments)
        self.fit_statistics(total, chosen=chosen)
        self.cv_accuracy_: Floats | None = accuracy
        return self

    def _choose_pair(
        self, X: NDArray[Any], codes: NDArray[np.int64], folds: NDArray[np.int64],
        total: MomentStatistics, fold_moments: list[MomentStatistics],
    ) -> tuple[list[float], Floats]:
        """The pair (α, γ) with the highest accuracy, and the accuracies of all pairs."""
        import numpy as np

        alphas, gammas = (np.sort(np.atleast_1d(np.asarray(values, dtype=np.float64)))
                          for values in (self.alpha, self.gamma))
        # The number of correct predictions; NaN for a pair with a singular covariance.
        n_correct = np.zeros((len(alphas), len(gammas)))
        first_error: DataError | None = None
        for i, moments in enumerate(fold_moments):
            training = total - moments
            prior = self._log_prior(training.class_count)
            held_out_rows, actual = X[folds == i], codes[folds == i]
            for a, g in zip(*(~np.isnan(n_correct)).nonzero(), strict=True):
                try:
                    form = self._form_of(
                        training, prior, self._mixtures(training, alphas[a], gammas[g]), alphas[a])
                except DataError as error:
                    n_correct[a, g], first_error = np.nan, first_error or error
                    continue
                n_correct[a, g] += (form.scores(held_out_rows).argmax(axis=1) == actual).sum()
        if first_error is not None and np.isnan(n_correct).all():
            raise first_error
        a, g = divmod(int(np.nanargmax(n_correct)), len(gammas))
        return [float(alphas[a]), float(gammas[g])], n_correct / len(codes)

    def derive(
        self, statistics: MomentStatistics, prior: Floats, chosen: Any = None
    ) -> QuadraticForm:
        """As `MomentModel.derive`; ``chosen`` is the pair (α, γ) if several are given."""
        self.alpha_, self.gamma_ = self._pair(chosen)
        self.cv_accuracy_ = None
        self.covariance_ = self._mixtures(statistics, self.alpha_, self.gamma_)
        return self._form_of(statistics, prior, self.covariance_, self.alpha_)

    def _pair(self, chosen: Any) -> tuple[float, float]:
        """α and γ: the parameters, or the pair that was chosen."""
        pair: Any = [self.alpha, self.gamma] if self.from_moments else chosen
        if pair is None:
            raise ParameterError("alpha and gamma are chosen from rows, by fit; give numbers")
        alpha, gamma = (float(value) for value in pair)
        if not (UNIT_RANGE.holds(alpha) and UNIT_RANGE.holds(gamma)):
            raise ParameterError.out_of_range("chosen", UNIT_RANGE.says, chosen)
        return alpha, gamma

    def _form_of(
        self, statistics: MomentStatistics, prior: Floats, covariances: list[Floats], alpha: float
    ) -> QuadraticForm:
        """The form of Gaussians with these covariances, which were mixed with ``alpha``."""
        from textnb.bayes.covariance import factorise
        from textnb.bayes.gaussian import quadratic_gaussian

        # With α = 0 all classes have the same covariance.
        if alpha > 0.0:
            factors = _factors(self, statistics, covariances, "lower alpha and gamma below 1")
        else:
            pooled = factorise(covariances[0], self._names, "the classes, pooled,",
                               self.allow_singular, remedy="lower gamma below 1")
            factors = [pooled] * len(covariances)
        return quadratic_gaussian(statistics, factors, prior)

    def _mixtures(
        self, statistics: MomentStatistics, alpha: float, gamma: float
    ) -> list[Floats]:
        """Σ_k(α, γ) of each class k."""
        from textnb.bayes.covariance import shrink

        _check_rows(statistics, min_rows=1)
        pooled = shrink(statistics.within() / statistics.class_count.sum(), shrinkage=1.0 - gamma)
        return [alpha * scatter / n + (1.0 - alpha) * pooled
                for scatter, n in zip(statistics.scatter, statistics.class_count, strict=True)]

    def _folds(self, codes: NDArray[np.int64], classes: NDArray[Any]) -> NDArray[np.int64]:
        """The index of the fold of each row."""
        import numpy as np

        folds = np.empty(len(codes), dtype=np.int64)
        for k in range(len(classes)):
            rows = np.flatnonzero(codes == k)
            if len(rows) < self.cv:
                raise DataError.naming_settings(
                    "class {label!r} has {rows}, fewer than {folds} folds; lower cv or give "
                    "{alpha} and {gamma}", label=classes.tolist()[k],
                    rows=quantity(len(rows), "row"), folds=Mention("cv", repr(self.cv)))
            folds[rows] = np.arange(len(rows)) % self.cv
        return folds


def _factors(
    model: FullModel, statistics: MomentStatistics, covariances: list[Floats], *remedy: str
) -> list[Factor]:
    """A factor of the covariance of each class.

    ``remedy``, if given, says in the error for a singular covariance what to do.
    """
    from textnb.bayes.covariance import factorise

    return [factorise(covariance, model._names, f"class {label!r}", model.allow_singular, *remedy)
            for label, covariance in zip(statistics.classes.tolist(), covariances, strict=True)]


def _check_rows(statistics: MomentStatistics, min_rows: int) -> None:
    """Raise DataError for a class with fewer rows than its covariance needs."""
    for label, n in zip(statistics.classes.tolist(), statistics.class_count, strict=True):
        if n < min_rows:
            rows = "one row" if n == 1 else f"{n:g} rows"
            raise DataError(f"class {label!r} has {rows}, and its covariance needs "
                            f"{min_rows} or more; add rows, drop the class, or use "
                            "LinearDiscriminantAnalysis")
