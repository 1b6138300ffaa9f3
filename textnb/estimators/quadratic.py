"""Quadratic discriminants: Gaussian classes with their own covariances.

    quadratic     a covariance per class
    regularised   a mixture of those covariances, the pooled one, and a sphere

References
----------
.. [1] T. Hastie, R. Tibshirani, J. Friedman (2009). The Elements of Statistical Learning, 2nd ed.,
   section 4.3: eqs. 4.12 (quadratic), 4.13-4.14 (regularised).
.. [2] J. H. Friedman (1989). Regularized discriminant analysis. JASA 84, 165-175.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.covariance import Factor, factorise, shrink
from textnb.bayes.forms import Floats, QuadraticForm
from textnb.bayes.known import register_estimator
from textnb.bayes.moments import MomentStatistics
from textnb.bayes.parameters import is_whole
from textnb.errors import DataError, Mention, ParameterError, quantity
from textnb.estimators.discriminants import Shrinkage, ShrunkClassifier, check_choice, in_unit
from textnb.estimators.gaussian import MomentClassifier


@register_estimator
class QuadraticDiscriminantAnalysis(ShrunkClassifier):
    """A normal density per class, with its own covariance.

    ``-½ log |Σ_k| - ½ (x - μ_k)ᵀ Σ_k⁻¹ (x - μ_k) + log π_k`` (less p/2 log 2π), by a factor of each
    covariance (Hastie, Tibshirani and Friedman 2009, eq. 4.12).

    Parameters
    ----------
    priors : array (n_classes,), optional
        By default the classes' shares of the rows.
    divisor : {"n", "n-1"}
        Divisor of each class's scatter.
    shrinkage : float in [0, 1], "auto" or None
        As in `LinearDiscriminantAnalysis`.
    reg_param : float in [0, 1]
        (1 - reg_param) Σ_k + reg_param I.
    allow_singular : bool
        For a singular covariance, use the pseudo-inverse and pseudo-determinant, on the support of
        the class's rows, instead of an error. Deviations outside the support are ignored.

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

    def __init__(
        self,
        *,
        priors: ArrayLike | None = None,
        divisor: Literal["n", "n-1"] = "n",
        shrinkage: Shrinkage = None,
        reg_param: float = 0.0,
        allow_singular: bool = False,
    ):
        self.priors = priors
        self.divisor = divisor
        self.shrinkage = shrinkage
        self.reg_param = reg_param
        self.allow_singular = allow_singular

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raise ParameterError for settings that are out of range, before anything is learned."""
        super().check_settings(n_features, n_classes)
        check_choice("divisor", self.divisor, ("n", "n-1"))
        if not in_unit(self.reg_param):
            raise ParameterError.out_of_range("reg_param", "a number in [0, 1]", self.reg_param)

    def _derive(self, statistics: MomentStatistics, prior: Floats) -> QuadraticForm:
        self.means_ = statistics.mean
        covariances = []
        for k, n in enumerate(statistics.class_count):
            _check_rows(statistics, k)
            covariance = self._class_covariance(statistics, k)
            if self.divisor == "n-1":
                covariance = covariance * (n / (n - 1.0))
            covariance = (1.0 - self.reg_param) * covariance
            covariance[np.diag_indices(len(covariance))] += self.reg_param
            covariances.append(covariance)
        self.covariance_ = covariances
        return quadratic_gaussian(statistics, self.covariance_, prior, self._names,
                                  self.allow_singular)


_REMEDY = "lower alpha and gamma below 1"


@register_estimator
class RegularizedDiscriminantAnalysis(MomentClassifier):
    """Covariances that are mixtures of the class's, the pooled one, and a sphere.

    ``Σ(γ) = γ Σ + (1 - γ) tr(Σ)/p I`` and ``Σ_k(α, γ) = α Σ_k + (1 - α) Σ(γ)``, after Friedman
    (1989). α = 1 is quadratic; α = 0, γ = 1 linear; α = 0, γ = 0 with equal priors the nearest
    centroid.

    Parameters
    ----------
    alpha, gamma : float in [0, 1], or a sequence of them
        If either is a sequence, the pair with the highest cross-validated accuracy is chosen (of
        equal ones the smaller α, then the smaller γ: the simpler model). The statistics of a fold
        are subtracted from the whole, so that each row is read once.
    cv : int
        Folds, stratified; row i of a class is in fold i mod cv.
    priors : array (n_classes,), optional
        By default the classes' shares of the rows.
    allow_singular : bool
        As in `QuadraticDiscriminantAnalysis`.

    Attributes
    ----------
    alpha_, gamma_ : float
        The values in use.
    cv_accuracy_ : float64 (n_alpha, n_gamma) or None
        Cross-validated accuracies; NaN for a pair with a singular covariance in a fold, which is
        not chosen.
    classes_, class_count_, priors_, means_, covariance_
        As in `QuadraticDiscriminantAnalysis`.

    Examples
    --------
    >>> X, y = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]], [0, 0, 0, 1, 1, 1]
    >>> model = RegularizedDiscriminantAnalysis(alpha=[0.0, 0.5], gamma=0.5, cv=3).fit(X, y)
    >>> model.predict([[-0.8, -1]]).tolist(), model.cv_accuracy_.shape
    ([0], (2, 1))
    """

    cv_accuracy_: Floats | None

    def __init__(
        self,
        *,
        alpha: float | ArrayLike = 0.5,
        gamma: float | ArrayLike = 0.5,
        cv: int = 5,
        priors: ArrayLike | None = None,
        allow_singular: bool = False,
    ):
        self.alpha = alpha
        self.gamma = gamma
        self.cv = cv
        self.priors = priors
        self.allow_singular = allow_singular

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raise ParameterError for settings that are out of range, before anything is learned."""
        super().check_settings(n_features, n_classes)
        for name, value in (("alpha", self.alpha), ("gamma", self.gamma)):
            items = [value] if np.ndim(value) == 0 else list(np.asarray(value, dtype=object))
            if not items or not all(in_unit(item) for item in items):
                raise ParameterError.out_of_range(name, "in [0, 1], or a list of such numbers",
                                                  value)
        if not isinstance(self.allow_singular, bool):
            raise ParameterError.out_of_range("allow_singular", "True or False",
                                              self.allow_singular)
        if not is_whole(self.cv) or self.cv < 2:
            raise ParameterError.out_of_range("cv", "an int >= 2", self.cv)

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn the rows' moments, choose α and γ if they are sequences, and derive the form.

        Parameters
        ----------
        X : array (n_rows, n_features)
        y : array (n_rows,)
        """
        self._chosen: tuple[float, float] | None = None
        if not self._has_choice:
            return super().fit(X, y)
        X, y = self._rows_and_labels(X, y, reset=True)
        classes, codes = np.unique(y, return_inverse=True)
        self.check_settings(X.shape[1], len(classes))
        fold = self._folds(codes, classes)
        parts = [MomentStatistics.from_matrix(X[fold == i], y[fold == i], classes=classes)
                 for i in range(self.cv)]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole + part
        whole.check_size(self._names)
        self._chosen = self._choose(X, codes, fold, whole, parts)
        return self.fit_statistics(whole)

    def learned_settings(self) -> dict[str, Any]:
        """The pair that was chosen, if alpha or gamma is a sequence."""
        return {"chosen": [self.alpha_, self.gamma_]} if self._has_choice else {}

    def restore_settings(self, learned: dict[str, Any]) -> None:
        """The inverse of `learned_settings`; call it before `fit_statistics`."""
        self._chosen, self.cv_accuracy_ = None, None
        if learned:
            alpha, gamma = (float(value) for value in learned["chosen"])
            if not (0.0 <= alpha <= 1.0 and 0.0 <= gamma <= 1.0):
                raise ParameterError.out_of_range("chosen", "in [0, 1]", learned["chosen"])
            self._chosen = alpha, gamma

    def _choose(
        self, X: NDArray[Any], codes: NDArray[np.int64], fold: NDArray[np.int64],
        whole: MomentStatistics, parts: list[MomentStatistics],
    ) -> tuple[float, float]:
        alphas, gammas = np.sort(self._grid(self.alpha)), np.sort(self._grid(self.gamma))
        correct = np.zeros((len(alphas), len(gammas)))
        singular: DataError | None = None
        for i, part in enumerate(parts):
            rest = whole - part
            prior = self._log_prior(rest)
            held_out, actual = X[fold == i], codes[fold == i]
            for a, alpha in enumerate(alphas):
                for g, gamma in enumerate(gammas):
                    if np.isnan(correct[a, g]):
                        continue
                    try:
                        form = self._form_of(rest, prior, alpha, gamma)
                    except DataError as error:
                        correct[a, g], singular = np.nan, singular or error
                        continue
                    correct[a, g] += (form.scores(held_out).argmax(axis=1) == actual).sum()
        if singular is not None and np.isnan(correct).all():
            raise singular
        self.cv_accuracy_ = correct / len(codes)
        a, g = divmod(int(np.nanargmax(correct)), len(gammas))
        return float(alphas[a]), float(gammas[g])

    def _derive(self, statistics: MomentStatistics, prior: Floats) -> QuadraticForm:
        chosen = getattr(self, "_chosen", None)
        if not self._has_choice:
            self.cv_accuracy_ = None
            chosen = float(self._grid(self.alpha)[0]), float(self._grid(self.gamma)[0])
        if chosen is None:
            raise ParameterError("alpha and gamma are chosen from rows, by fit; give numbers")
        self.alpha_, self.gamma_ = chosen
        self.means_ = statistics.mean
        self.covariance_ = self._covariances(statistics, self.alpha_, self.gamma_)
        return self._form_of(statistics, prior, self.alpha_, self.gamma_)

    def _form_of(
        self, statistics: MomentStatistics, prior: Floats, alpha: float, gamma: float
    ) -> QuadraticForm:
        covariances = self._covariances(statistics, alpha, gamma)
        if alpha > 0.0:
            return quadratic_gaussian(statistics, covariances, prior, self._names,
                                      self.allow_singular, _REMEDY)
        shared = factorise(covariances[0], self._names, "the classes, pooled,",
                            self.allow_singular, "lower gamma below 1")
        return _form(statistics, [shared] * len(covariances), prior)

    def _covariances(
        self, statistics: MomentStatistics, alpha: float, gamma: float
    ) -> list[Floats]:
        pooled = shrink(statistics.within() / statistics.class_count.sum(), 1.0 - gamma)
        covariances = []
        for k, n in enumerate(statistics.class_count):
            _check_rows(statistics, k, 1)
            covariances.append(alpha * statistics.scatter[k] / n + (1.0 - alpha) * pooled)
        return covariances

    def _folds(self, codes: NDArray[np.int64], classes: NDArray[Any]) -> NDArray[np.int64]:
        fold = np.empty(len(codes), dtype=np.int64)
        for k in range(len(classes)):
            rows = np.flatnonzero(codes == k)
            if len(rows) < self.cv:
                raise DataError.naming(
                    "class {label!r} has {rows}, fewer than {folds} folds; lower cv or give "
                    "{alpha} and {gamma}", label=classes.tolist()[k],
                    rows=quantity(len(rows), "row"), folds=Mention("cv", repr(self.cv)))
            fold[rows] = np.arange(len(rows)) % self.cv
        return fold

    @property
    def streams(self) -> bool:
        """Whether it learns from moments alone, so that rows can come in batches."""
        return not self._has_choice

    @property
    def _has_choice(self) -> bool:
        return np.ndim(self.alpha) > 0 or np.ndim(self.gamma) > 0

    @staticmethod
    def _grid(value: float | ArrayLike) -> Floats:
        return np.atleast_1d(np.asarray(value, dtype=np.float64))


def quadratic_gaussian(
    statistics: MomentStatistics, covariances: list[Floats], prior: Floats,
    names: list[str] | None, allow_singular: bool, remedy: str = "set a shrinkage above 0",
) -> QuadraticForm:
    """The form of a Gaussian per class."""
    factors: list[Factor] = [
        factorise(covariance, names, f"class {statistics.classes.tolist()[k]!r}", allow_singular,
                   remedy)
        for k, covariance in enumerate(covariances)]
    return _form(statistics, factors, prior)


def _form(statistics: MomentStatistics, factors: list[Factor], prior: Floats) -> QuadraticForm:
    return QuadraticForm(
        statistics.classes, statistics.mean, tuple(factor.whiten for factor in factors),
        np.array([factor.log_det for factor in factors]), prior,
        tuple(factor.triangular for factor in factors))


def _check_rows(statistics: MomentStatistics, k: int, least: int = 2) -> None:
    n = statistics.class_count[k]
    if n < least:
        rows = "one row" if n == 1 else f"{n:g} rows"
        label = statistics.classes.tolist()[k]
        raise DataError(f"class {label!r} has {rows}, and its covariance needs "
                        f"{least} or more; add rows, drop the class, or use "
                        "LinearDiscriminantAnalysis")
