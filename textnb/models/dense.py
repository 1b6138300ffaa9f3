"""The bases of the models of dense features, which are columns of numbers.

Moments are the count, the mean and the scatter (the sum of products of deviations from the mean) of
each class. They add over rows.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from textnb.errors import DataError, ImpossibleRowError, ParameterError
from textnb.models.additive import AdditiveModel, unique
from textnb.models.prediction import FormClassifier
from textnb.models.protocol import ReadOnlyArrays
from textnb.runtime.settings import Priors, setting

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from textnb.bayes.forms import Floats, LinearForm, QuadraticForm
    from textnb.bayes.moments import MomentStatistics


@dataclass(eq=False, repr=False, kw_only=True)
class DenseModel(ReadOnlyArrays, FormClassifier):
    """A model of dense features, with priors and with names of features for messages."""

    scores_are_log_probabilities = True

    priors: Priors | None = setting(None, "Priors of the classes, in their order.",
                                    is_option=False)

    @property
    def chosen(self) -> dict[str, Any]:
        """What the fit has chosen from rows, by the name of the argument of `fit_statistics`.

        Moments don't give it, so a model file stores it.
        """
        raise NotImplementedError

    def check(self, n_features: int, n_classes: int) -> None:
        import numpy as np

        from textnb.bayes.statistics import as_class_prior

        super().check(n_features, n_classes)
        prior = as_class_prior(self.priors, n_classes, "priors")
        if prior is not None and not np.isclose(prior.sum(), 1.0):
            raise ParameterError(f"The sum of the priors should be 1; got {prior.sum()}")

    def _log_prior(self, class_count: NDArray[Any]) -> Floats:
        from textnb.bayes.formulas import log_prior
        from textnb.bayes.statistics import as_class_prior

        return log_prior(class_count, as_class_prior(self.priors, len(class_count), "priors"))

    @property
    def _names(self) -> list[str] | None:
        """The names of the features for messages, if they have names."""
        names = getattr(self, "_feature_names", getattr(self, "feature_names_in_", None))
        return None if names is None else [str(name) for name in names]

    def _impossible_error(self, rows: list[int], total: int) -> ImpossibleRowError:
        """The error that names the first ``rows`` of ``total`` impossible ones."""
        rest = f" and {total - len(rows)} more" if total > len(rows) else ""
        density = "its density underflows" if total == 1 else "their densities underflow"
        return ImpossibleRowError(
            f"row {', '.join(map(str, rows))}{rest} is impossible under every class: {density}, so "
            "no class can be given; predict a frame, where such rows are null")


@dataclass(eq=False, repr=False, kw_only=True)
class MomentModel(AdditiveModel, DenseModel):
    """A model of moments: its form depends on the count, mean and scatter of each class."""

    required: ClassVar[tuple[str, ...]] = ("kind", "derive")
    # Whether moments with variances suffice, without covariances.
    diagonal: ClassVar[bool] = False

    # Moments give the form, unless a subclass chooses something from all rows.
    @property
    def from_moments(self) -> bool:
        return True

    @property
    def chosen(self) -> dict[str, Any]:
        return self._chosen

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
        return self._fit(X, y)

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
            If a label was not announced, or a class still has too few rows for its own covariance;
            the model then stays as it was.
        """
        return self._partial_fit(X, y, classes)

    def fit_statistics(self, statistics: MomentStatistics, **chosen: Any) -> Self:
        """Derive the form from moments.

        Parameters
        ----------
        statistics : MomentStatistics
        **chosen
            The values of the property `chosen`, which moments alone don't give.
        """
        self.check(statistics.n_features, len(statistics.classes))
        # Raises an error for columns with squares that overflow.
        statistics.check_size(self._names)
        if len(statistics.classes) < 2:
            raise DataError("these models separate classes; the number of classes in the data has "
                            f"to be greater than one; got one class: {statistics.classes.tolist()}")
        # Fit a copy, so that an error leaves the model as it was.
        fitted = copy(self)
        fitted._set_fitted(statistics, chosen)
        vars(self).update(vars(fitted))
        return self

    def _set_fitted(self, statistics: MomentStatistics, chosen: dict[str, Any]) -> None:
        import numpy as np

        from textnb.bayes.forms import check_numbers

        self.statistics_, self._chosen = statistics, chosen
        self.classes_, self.class_count_ = statistics.classes, statistics.class_count
        self.n_features_in_ = statistics.n_features
        weighted = self._weigh_classes(statistics)
        # A class that was announced but has no rows has no mean: it can't be predicted.
        prior = np.where(
            statistics.class_count > 0, self._log_prior(weighted.class_count), -np.inf)
        self.priors_ = np.exp(prior)
        self._form = self.derive(weighted, prior, **chosen)
        # Raises an error for NaN, which can't rank classes.
        check_numbers(self._form)

    @property
    def _shares(self) -> Floats:
        """The priors of the classes that have rows, as shares of their sum."""
        # Priors that are given, or equal, add up to less than 1 if a class has no rows.
        return self.priors_ if self.class_count_.all() else self.priors_ / self.priors_.sum()

    def _weigh_classes(self, statistics: MomentStatistics) -> MomentStatistics:
        """The moments times the class weights, if the model has such weights."""
        return statistics

    def derive(
        self, statistics: MomentStatistics, prior: Floats
    ) -> LinearForm | QuadraticForm:
        """The form that the moments give. This method may also set fitted attributes.

        Parameters
        ----------
        statistics : MomentStatistics
            With variances instead of covariances if the class has ``diagonal = True``.
        prior : float64 (n_classes,)
            log π; -inf for a class without rows.

        Returns
        -------
        LinearForm or QuadraticForm
        """
        raise ParameterError(f"{self.name} does not say how moments become a form")

    def _count(
        self, X: Any, y: NDArray[Any], classes: ArrayLike, weight: Floats | None,
        before: MomentStatistics | None,
    ) -> MomentStatistics:
        from textnb.bayes.moments import MomentStatistics

        self.check(X.shape[1], len(unique(classes)))
        moments = MomentStatistics.from_matrix(
            X, y, classes=classes, sample_weight=weight, diagonal=self.diagonal)
        if before is not None:
            moments = before + moments
        moments.check_size(self._names)
        return moments

    def score_rows(self, X: Any) -> Floats:
        from textnb.bayes.gaussian import gaussian_scores

        return gaussian_scores(self._form, X, possible=self.priors_ > 0)
