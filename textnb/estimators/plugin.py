"""Plug-in Bayes with any density: argmax_k log π_k + log f_k(x), with f_k learned per class.

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

from textnb.bayes.forms import Floats
from textnb.bayes.known import register_estimator
from textnb.bayes.moments import MomentStatistics
from textnb.bayes.parameters import ParameterNames, is_number, is_whole
from textnb.bayes.read_only import FittedArrays
from textnb.bayes.smoothing import log_prior, log_ratio
from textnb.bayes.statistics import as_class_prior, check_int64
from textnb.errors import DataError, ParameterError, TextnbError, quantity
from textnb.estimators.base import DenseClassifier
from textnb.estimators.gaussian import check_priors

MOST_BINS = 1_000_000
_RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")
_BINS = f"a number of bins from 1 to {MOST_BINS}, one of {', '.join(_RULES)}, or increasing edges"


class HistogramDensity(ParameterNames, FittedArrays, DensityMixin, BaseEstimator):
    """A density that is constant within bins, whose probabilities are smoothed counts.

    The density of a bin is ``(n_b + l) / (n + l B) / width``. Columns are assumed to be
    independent, so that log densities add. A value outside the bins has the density of an empty bin
    at that end.

    Parameters
    ----------
    bins : int, str or array (n_edges,)
        Bins per column, at most a million; or a rule of `numpy.histogram_bin_edges` ("auto",
        "fd", ...); or the edges of the bins, increasing, for every column.
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

    def __init__(self, *, bins: int | str | ArrayLike = 10, l: float = 1.0):
        self.bins = bins
        self.l = l

    def name_features(self, names: Sequence[Any]) -> None:
        """Set the names of the features for messages."""
        self._feature_names = list(names)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the bins and their probabilities.

        Parameters
        ----------
        X : array (n_rows, n_features)

        Raises
        ------
        DataError
            If a rule makes too many bins of a column, or a column can't be divided into bins.
        """
        X = validate_data(self, X, dtype=np.float64)
        if not (is_number(self.l) and np.isfinite(self.l) and self.l >= 0):
            raise ParameterError.out_of_range("l", "a finite number >= 0", self.l)
        names = getattr(self, "_feature_names", None) or list(
            getattr(self, "feature_names_in_", np.arange(X.shape[1])).tolist())
        # The bins of all columns are counted before memory is taken for any.
        counts = bins_per_column(X, self.bins, names)
        all_edges = []
        for column, name, count in zip(X.T, names, counts, strict=True):
            bins = count if isinstance(self.bins, str) and self.bins == "auto" else self.bins
            try:
                all_edges.append(np.histogram_bin_edges(
                    column, bins=np.asarray(bins, dtype=np.float64) if np.ndim(bins) else bins))
            except ValueError as error:
                raise DataError(f"feature {name!r} can't be divided into bins={self.bins!r}: "
                                f"{error}") from None
        densities, outside = [], []
        for column, edges in zip(X.T, all_edges, strict=True):
            inside = np.histogram(column, bins=edges)[0]
            widths, total = np.diff(edges), len(X) + self.l * (len(edges) - 1)
            densities.append(log_ratio(inside + self.l, total) - np.log(widths))
            outside.append(
                log_ratio(np.array([self.l, self.l]), total) - np.log(widths[[0, -1]]))
        self.edges_, self.log_density_, self.log_outside_ = all_edges, densities, outside
        return self

    def score_samples(self, X: Any) -> Floats:
        """Log density of each row, base e: float64 (n_rows,)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = np.zeros(len(X))
        for i, edges in enumerate(self.edges_):
            column = X[:, i]
            # The last bin includes its right edge, as in numpy.histogram.
            bins = np.clip(np.searchsorted(edges, column, side="right") - 1, 0, len(edges) - 2)
            density = self.log_density_[i][bins]
            density = np.where(column < edges[0], self.log_outside_[i][0], density)
            scores += np.where(column > edges[-1], self.log_outside_[i][1], density)
        return scores

    def score(self, X: Any, y: Any = None) -> float:
        """Log-likelihood of all rows, base e."""
        return float(self.score_samples(X).sum())


def bins_per_column(X: Floats, bins: Any, names: Sequence[Any]) -> list[int]:
    """The number of bins of each column, computed before memory is taken for them.

    Parameters
    ----------
    X : float64 (n_rows, n_features)
    bins : int, str or array
        As in `HistogramDensity`.
    names : sequence
        Names of the columns, for messages.

    Raises
    ------
    ParameterError
        If ``bins`` is not one of these.
    DataError
        If a rule makes more than `MOST_BINS` of a column.
    """
    for column, name in zip(X.T, names, strict=True):
        if not np.isfinite(float(column.max()) - float(column.min())):
            raise DataError(f"values of feature {name!r} are too large for bins; rescale it")
    if isinstance(bins, str):
        if bins not in _RULES:
            raise ParameterError.unknown_choice("bins", bins, _RULES)
        return [_bins_by_rule(column, bins, name) for column, name in zip(X.T, names, strict=True)]
    if np.ndim(bins) == 0:
        if not is_whole(bins) or not 1 <= bins <= MOST_BINS:
            raise ParameterError.out_of_range("bins", _BINS, bins)
        return [int(bins)] * X.shape[1]
    try:
        edges = np.asarray(bins, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError.out_of_range("bins", _BINS, bins) from None
    if (edges.ndim != 1 or not 2 <= len(edges) <= MOST_BINS + 1
            or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all()):
        raise ParameterError.out_of_range("bins", _BINS, bins)
    return [len(edges) - 1] * X.shape[1]


def _bins_by_rule(column: Floats, rule: str, name: Any) -> int:
    n, low, high = len(column), float(column.min()), float(column.max())
    if rule == "scott":
        width = (24.0 * np.pi**0.5 / n) ** (1.0 / 3.0) * float(column.std())
    elif rule in ("auto", "fd"):
        width = 2.0 * float(np.subtract(*np.percentile(column, [75, 25]))) * n ** (-1.0 / 3.0)
        if rule == "auto":
            # Like later versions of NumPy; in earlier ones an outlier made any number of bins.
            width = min(max(width, (high - low) / float(np.sqrt(n)) / 2.0),
                        (high - low) / float(np.log2(n) + 1.0))
    else:
        # The other rules never make more bins than this.
        return 2 + max(100, 2 * int(np.sqrt(n)))
    with np.errstate(over="ignore"):
        count = float(np.ceil(np.float64(high - low) / width)) if width > 0 else 1.0
    if count > MOST_BINS:
        raise DataError(
            f"bins={rule!r} makes {count:,.0f} bins of feature {name!r}, more than {MOST_BINS:,}, "
            "because some values are far from the others: give a number of bins or their edges, or "
            "drop such rows")
    return int(count)


@register_estimator
class PlugInBayes(DenseClassifier):
    """The Bayes rule with a density per class.

    Parameters
    ----------
    density : estimator with ``fit`` and ``score_samples``, optional
        It is cloned for each class. By default `KernelDensity()`.
    naive : bool
        One density per class and feature: features are independent within a class.
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
    >>> X, y = [[0.0], [0.3], [0.5], [4.0], [4.4], [4.6]], ["a", "a", "a", "b", "b", "b"]
    >>> PlugInBayes(KernelDensity(bandwidth=0.5)).fit(X, y).predict([[1.0], [3.8]]).tolist()
    ['a', 'b']
    """

    # Settings that an earlier search chose, in the order of chosen_. They are set to load a model.
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
        check_int64(y)
        with np.errstate(invalid="ignore"):
            X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        self.check_settings(X.shape[1], len(classes))
        if len(classes) < 2:
            raise DataError("the rule compares classes: the number of classes in the data has to "
                            f"be greater than one; got one class: {classes.tolist()}")
        if not isinstance(self.density, HistogramDensity):
            MomentStatistics.from_matrix(X, codes, diagonal=True).check_size(self._names)
        columns = [[i] for i in range(X.shape[1])] if self.naive else [list(range(X.shape[1]))]
        chosen: list[dict[str, Any]] = []
        densities = [
            [self._estimate(X[codes == k][:, part], classes.tolist()[k], part, chosen)
             for part in columns]
            for k in range(len(classes))]
        # From here on nothing fails, so that the model changes as a whole or not at all.
        self.classes_, self.class_count_ = classes, np.bincount(codes)
        priors = as_class_prior(self.priors, len(classes), "priors")
        self._log_prior = log_prior(self.class_count_, priors)
        self.priors_ = np.exp(self._log_prior)
        self._learned_rows, self.chosen_, self.densities_ = (X, codes), chosen, densities
        return self

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raise ParameterError for settings that are out of range, before anything is learned."""
        if not isinstance(self.naive, bool):
            raise ParameterError.out_of_range("naive", "True or False", self.naive)
        if not is_whole(self.cv) or self.cv < 2:
            raise ParameterError.out_of_range("cv", "an int >= 2", self.cv)
        check_priors(self.priors, n_classes)
        density = KernelDensity() if self.density is None else self.density
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

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log π_k + log f_k(x), base e: float64 (n_rows, n_classes)."""
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = validate_data(self, X, dtype=np.float64, reset=False)
            scores = np.tile(self._log_prior, (len(rows), 1))
            for k, densities in enumerate(self.densities_):
                for i, density in enumerate(densities):
                    part = rows if len(densities) == 1 else rows[:, [i]]
                    scores[:, k] += density.score_samples(part)
        # NaN is the score of a row whose distance overflows.
        return np.where(np.isnan(scores), -np.inf, scores)

    def training_rows(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The rows and class numbers from which the densities were estimated, to store."""
        check_is_fitted(self)
        return self._learned_rows

    def _estimate(
        self, rows: NDArray[np.float64], label: Any, columns: list[int],
        chosen: list[dict[str, Any]],
    ) -> Any:
        density = KernelDensity() if self.density is None else clone(self.density)
        if isinstance(density, HistogramDensity):
            density.name_features([self._names[i] if self._names else i for i in columns])
        try:
            return self._fit_density(density, rows, label, chosen)
        except TextnbError:
            raise
        except ValueError as error:
            raise DataError(f"the density of class {label!r} can't be estimated: "
                            f"{str(error).strip().splitlines()[0]}") from error

    def _fit_density(
        self, density: Any, rows: NDArray[np.float64], label: Any, chosen: list[dict[str, Any]]
    ) -> Any:
        if self.search is None:
            return density.fit(rows)
        if self.choices is not None:
            chosen.append(self.choices[len(chosen)])
            return density.set_params(**chosen[-1]).fit(rows)
        if len(rows) < self.cv:
            raise DataError(f"class {label!r} has {quantity(len(rows), 'row')}, fewer than "
                            f"cv={self.cv} folds; "
                            "lower cv, or give the density's settings instead of search")
        best = GridSearchCV(density, dict(self.search), cv=self.cv).fit(rows)
        chosen.append(best.best_params_)
        return best.best_estimator_
