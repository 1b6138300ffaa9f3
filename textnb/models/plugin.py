"""Plug-in Bayes with any density: argmax_k log π_k + log f_k(x), with f_k learned per class.

The densities are scikit-learn's (`KernelDensity`, `GaussianMixture`, or anything with ``fit`` and
``score_samples``), and a histogram.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from textnb.errors import DataError, ParameterError, TextnbError, quantity
from textnb.models.base import register_model
from textnb.models.dense import DenseModel
from textnb.models.histogram import HistogramDensity
from textnb.runtime.settings import AT_LEAST_2, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from textnb.bayes.forms import Floats


@register_model
class PlugInBayes(DenseModel):
    """The Bayes rule with a density per class.

    Parameters
    ----------
    density : estimator with ``fit`` and ``score_samples``, optional
        It is cloned for each class. By default `KernelDensity()`.
    naive : bool
        One density per class and feature, as if features were independent within a class.
    search : mapping of str to sequence, optional
        Settings of the density to choose from, such as ``{"bandwidth": [0.1, 0.3, 1.0]}``, by
        cross-validated log-likelihood within each class (and feature).
    cv : int
        Number of folds of the search.
    priors : array (n_classes,), optional
        They sum to 1. By default the classes' shares of the rows.

    Attributes
    ----------
    classes_ : (n_classes,)
    class_count_ : int64 (n_classes,)
    priors_ : float64 (n_classes,)
    densities_ : list of lists
        Fitted densities: one per class, or if ``naive`` one per class and feature.
    chosen_ : list of dict
        With ``search``: the settings that were chosen, class by class (and feature by feature).

    Examples
    --------
    >>> from sklearn.neighbors import KernelDensity
    >>> X, y = [[0.0], [0.3], [0.5], [4.0], [4.4], [4.6]], ["a", "a", "a", "b", "b", "b"]
    >>> PlugInBayes(KernelDensity(bandwidth=0.5)).fit(X, y).predict([[1.0], [3.8]]).tolist()
    ['a', 'b']
    """

    # The only parameter that may be given by its position.
    density: Any = setting(None, "A density with fit and score_samples.", kw_only=False)
    naive: bool = setting(False, "One density per class and feature.")
    search: Mapping[str, Sequence[Any]] | None = setting(
        None, "Settings of the density to choose from.")
    cv: int = setting(5, "Folds of the search.", range=AT_LEAST_2)

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Estimate a density per class.

        Parameters
        ----------
        X : array (n_rows, n_features)
        y : array (n_rows,)

        Raises
        ------
        DataError
            If there is one class, or fewer rows in a class than folds to search with.
        """
        return self._fit(X, y)

    def fit_rows(
        self, X: Any, y: NDArray[Any], sample_weight: Floats | None = None, *,
        chosen: Sequence[Mapping[str, Any]] | None = None,
    ) -> Self:
        """As `fit`, with checked rows; ``chosen``, if given, replaces the search by its result."""
        import numpy as np

        from textnb.bayes.moments import MomentStatistics

        X = np.asarray(X, dtype=np.float64)
        classes, codes = np.unique(y, return_inverse=True)
        self.check(X.shape[1], len(classes))
        if len(classes) < 2:
            raise DataError("the rule compares classes: the number of classes in the data has to "
                            f"be greater than one; got one class: {classes.tolist()}")
        if not isinstance(self.density, HistogramDensity):
            # Raises an error for columns with squares that overflow, which bins do not need.
            MomentStatistics.from_matrix(X, codes, diagonal=True).check_size(self._names)
        # Each density estimates the columns of one group.
        groups = [[i] for i in range(X.shape[1])] if self.naive else [[*range(X.shape[1])]]
        # One for each density, in the order in which they are estimated.
        choices = None if chosen is None else iter(chosen)
        estimates = [
            [self._estimate(X[codes == k][:, group], label, group, choices) for group in groups]
            for k, label in enumerate(classes.tolist())]
        # Set attributes only after all that can fail, so that an error leaves the model as it was.
        self.classes_, self.class_count_ = classes, np.bincount(codes)
        self._log_priors = self._log_prior(self.class_count_)
        self.priors_, self._learned_rows = np.exp(self._log_priors), (X, codes)
        self.densities_ = [[density for density, _ in pairs] for pairs in estimates]
        self.chosen_ = [choice for pairs in estimates for _, choice in pairs if choice is not None]
        self.n_features_in_ = X.shape[1]
        return self

    @property
    def chosen(self) -> dict[str, Any]:
        return {"chosen": self.chosen_}

    def check(self, n_features: int, n_classes: int) -> None:
        import numpy as np

        super().check(n_features, n_classes)
        density = self.unfitted_density()
        if isinstance(density, type) or not all(
                callable(getattr(density, name, None))
                for name in ("fit", "score_samples", "get_params", "set_params")):
            raise ParameterError.out_of_range(
                "density", "an estimator with fit and score_samples, such as KernelDensity()",
                self.density)
        if self.search is None:
            return
        expected = "a mapping of the density's settings to the values to choose from"
        if not isinstance(self.search, Mapping) or not self.search:
            raise ParameterError.out_of_range("search", expected, self.search)
        for name, values in self.search.items():
            if name not in density.get_params():
                raise ParameterError.unknown_choice("search", name, sorted(density.get_params()))
            if np.ndim(np.asarray(values, dtype=object)) == 0 or not len(values):
                raise ParameterError.out_of_range("search", expected, self.search)

    def score_rows(self, X: Any) -> Floats:
        """log π_k + log f_k(x), base e: float64 (n_rows, n_classes)."""
        import numpy as np

        rows = np.asarray(X, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.tile(self._log_priors, (len(rows), 1))
            for k, densities in enumerate(self.densities_):
                for i, density in enumerate(densities):
                    columns = rows if len(densities) == 1 else rows[:, [i]]
                    scores[:, k] += density.score_samples(columns)
        # A score is NaN if the distance of a row overflows: so far away, the density is 0.
        return np.where(np.isnan(scores), -np.inf, scores)

    def training_rows(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The rows and class indices that `fit` learned from, which a model file stores."""
        return self._learned_rows

    def unfitted_density(self) -> Any:
        """The parameter ``density``, or the default if it is None."""
        if self.density is not None:
            return self.density
        from sklearn.neighbors import KernelDensity

        return KernelDensity()

    def _estimate(
        self, rows: Floats, label: Any, columns: list[int], choices: Any
    ) -> tuple[Any, Any]:
        """The density of a class in some columns, and the settings that were chosen for it.

        ``choices`` is None, or iterates over the settings that an earlier search chose.
        """
        from sklearn.base import clone

        density = clone(self.unfitted_density())
        if isinstance(density, HistogramDensity):
            density.name_features([self._names[i] if self._names else i for i in columns])
        try:
            return self._fit_density(density, rows, label, choices)
        except TextnbError:
            raise
        except ValueError as error:
            raise DataError(f"the density of class {label!r} can't be estimated: "
                            f"{str(error).strip().splitlines()[0]}") from error

    def _fit_density(self, density: Any, rows: Floats, label: Any, choices: Any) -> tuple[Any, Any]:
        """As `_estimate`, for an unfitted density."""
        from sklearn.model_selection import GridSearchCV

        if self.search is None:
            return density.fit(rows), None
        if choices is not None:
            choice = next(choices)
            return density.set_params(**choice).fit(rows), choice
        if len(rows) < self.cv:
            raise DataError(f"class {label!r} has {quantity(len(rows), 'row')}, fewer than "
                            f"cv={self.cv} folds; "
                            "lower cv, or give the density's settings instead of search")
        search = GridSearchCV(density, dict(self.search), cv=self.cv).fit(rows)
        return search.best_estimator_, search.best_params_
