"""Plug-in Bayes with any density: argmax_k log π_k + log f_k(x), f_k estimated per class.

The densities are scikit-learn's (`KernelDensity`, `GaussianMixture`, or anything with ``fit`` and
``score_samples``), and a histogram.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from textnb.bayes.base import FormClassifier
from textnb.bayes.forms import Floats
from textnb.bayes.smoothing import log_prior, log_ratio
from textnb.bayes.statistics import as_class_prior
from textnb.errors import DataError, ParameterError

MOST_BINS = 1_000_000


class HistogramDensity(DensityMixin, BaseEstimator):
    """Values quantised into bins, and the bins' probabilities estimated with smoothing.

    The density of a bin is ``(n_b + l) / (n + l B) / width``. Columns are taken as independent:
    log densities add. A value beyond the bins has the density of an empty bin at that end.

    Parameters
    ----------
    bins : int or str
        Bins per column, or a rule of `numpy.histogram_bin_edges` ("auto", "fd", ...).
    l : float
        Smoothing, added to the count of each bin.

    Attributes
    ----------
    edges_ : list of float64 (n_bins + 1,)
    log_density_ : list of float64 (n_bins,)

    Examples
    --------
    >>> density = HistogramDensity(bins=2, l=1.0).fit([[0.0], [0.2], [0.4], [1.0]])
    >>> np.exp(density.score_samples([[0.1], [0.9]])).round(3).tolist()
    [1.333, 0.667]
    """

    def __init__(self, *, bins: int | str = 10, l: float = 1.0):
        self.bins = bins
        self.l = l

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the bins and their probabilities.

        Parameters
        ----------
        X : array (n_rows, n_features)
        """
        X = validate_data(self, X, dtype=np.float64)
        if isinstance(self.bins, int) and not 1 <= self.bins <= MOST_BINS:
            raise ParameterError.out_of_range("bins", f"1 to {MOST_BINS}, or a rule", self.bins)
        if not (np.isfinite(self.l) and self.l >= 0):
            raise ParameterError.out_of_range("l", "a finite number >= 0", self.l)
        self.edges_ = [np.histogram_bin_edges(column, bins=self.bins) for column in X.T]
        self.log_density_, self.log_outside_ = [], []
        for column, edges in zip(X.T, self.edges_, strict=True):
            counts = np.histogram(column, bins=edges)[0]
            widths, total = np.diff(edges), len(X) + self.l * (len(edges) - 1)
            self.log_density_.append(log_ratio(counts + self.l, total) - np.log(widths))
            self.log_outside_.append(
                log_ratio(np.array([self.l, self.l]), total) - np.log(widths[[0, -1]]))
        return self

    def score_samples(self, X: Any) -> Floats:
        """Log density of each row, base e: float64 (n_rows,)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = np.zeros(len(X))
        for i, edges in enumerate(self.edges_):
            column = X[:, i]
            # The last bin holds its right edge, as in numpy.histogram.
            bins = np.clip(np.searchsorted(edges, column, side="right") - 1, 0, len(edges) - 2)
            density = self.log_density_[i][bins]
            density = np.where(column < edges[0], self.log_outside_[i][0], density)
            scores += np.where(column > edges[-1], self.log_outside_[i][1], density)
        return scores

    def score(self, X: Any, y: Any = None) -> float:
        """Log-likelihood of all rows, base e."""
        return float(self.score_samples(X).sum())


class PlugInBayes(FormClassifier):
    """The Bayes rule with densities plugged in.

    Parameters
    ----------
    density : estimator with ``fit`` and ``score_samples``, optional
        Cloned for each class; `KernelDensity()` if not given.
    naive : bool
        One density per class and feature: features are independent within a class.
    search : mapping of str to sequence, optional
        Settings of the density to choose among, such as ``{"bandwidth": [0.1, 0.3, 1.0]}``, by
        cross-validated log-likelihood within each class (and feature).
    cv : int
        Folds of that search.
    priors : array (n_classes,), optional
        The classes' shares of the rows if not given.

    Attributes
    ----------
    classes_ : (n_classes,)
    class_count_ : int64 (n_classes,)
    priors_ : float64 (n_classes,)
    densities_ : list of lists
        Fitted densities: per class, one, or one per feature where ``naive``.
    chosen_ : list of dict
        With ``search``: the settings that were chosen, class by class (and feature by feature).

    Examples
    --------
    >>> X, y = [[0.0], [0.3], [0.5], [4.0], [4.4], [4.6]], ["a", "a", "a", "b", "b", "b"]
    >>> PlugInBayes(KernelDensity(bandwidth=0.5)).fit(X, y).predict([[1.0], [3.8]]).tolist()
    ['a', 'b']
    """

    # Settings that an earlier search chose, in the order of chosen_: set where a model is loaded.
    choices: list[dict[str, Any]] | None = None

    def __init__(
        self,
        density: Any = None,
        *,
        naive: bool = False,
        search: Mapping[str, Sequence[Any]] | None = None,
        cv: int = 5,
        priors: ArrayLike | None = None,
    ):
        self.density = density
        self.naive = naive
        self.search = search
        self.cv = cv
        self.priors = priors

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
        if not isinstance(self.naive, bool):
            raise ParameterError.out_of_range("naive", "True or False", self.naive)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._learned_rows = X, codes
        if len(self.classes_) < 2:
            raise DataError("the rule compares classes: the number of classes in the data has to "
                            f"be greater than one; got one class: {self.classes_.tolist()}")
        self.class_count_ = np.bincount(codes)
        given = as_class_prior(self.priors, len(self.classes_), "priors")
        self._log_prior = log_prior(self.class_count_, given)
        self.priors_ = np.exp(self._log_prior)
        self.chosen_: list[dict[str, Any]] = []
        columns = [[i] for i in range(X.shape[1])] if self.naive else [list(range(X.shape[1]))]
        self.densities_ = [
            [self._estimated(X[codes == k][:, chosen], self.classes_[k]) for chosen in columns]
            for k in range(len(self.classes_))]
        return self

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log π_k + log f_k(x), base e: float64 (n_rows, n_classes)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        scores = np.tile(self._log_prior, (len(rows), 1))
        for k, densities in enumerate(self.densities_):
            for i, density in enumerate(densities):
                own = rows[:, [i]] if self.naive else rows
                scores[:, k] += density.score_samples(own)
        return scores

    def training_rows(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The rows and class numbers from which the densities were estimated, to store."""
        check_is_fitted(self)
        return self._learned_rows

    def _estimated(self, rows: NDArray[np.float64], label: Any) -> Any:
        density = KernelDensity() if self.density is None else clone(self.density)
        if self.search is None:
            return density.fit(rows)
        if self.choices is not None:
            self.chosen_.append(self.choices[len(self.chosen_)])
            return density.set_params(**self.chosen_[-1]).fit(rows)
        if len(rows) < self.cv:
            raise DataError(f"class {label!r} has {len(rows)} rows, fewer than cv={self.cv} folds; "
                            "lower cv, or give the density's settings instead of search")
        best = GridSearchCV(density, dict(self.search), cv=self.cv).fit(rows)
        self.chosen_.append(best.best_params_)
        return best.best_estimator_
