"""A histogram as a density estimator, with the methods of scikit-learn's `KernelDensity`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from textnb.models.protocol import Parameters, ReadOnlyArrays, check_fitted
from textnb.runtime.settings import AT_LEAST_0, check_parameter_names, check_settings, setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from textnb.bayes.forms import Floats


@check_parameter_names
@dataclass(eq=False, repr=False, kw_only=True)
class HistogramDensity(ReadOnlyArrays, Parameters):
    """A density that is constant within bins, whose probabilities are smoothed counts.

    In a bin that holds ``n_b`` of ``n`` rows, the density is ``(n_b + l) / (n + l B) / width``,
    for ``B`` bins of a column. Columns are assumed to be independent: log densities add. A value
    outside the bins has the density that the first or last bin would have if it were empty.

    Parameters
    ----------
    bins : int, str or array (n_edges,)
        The number of bins per column, at most a million; or a rule of `numpy.histogram_bin_edges`
        ("auto", "fd", ...); or the increasing edges of the bins, the same for all columns.
    l : float
        Smoothing, added to the count of each bin.

    Attributes
    ----------
    edges_ : list of float64 (n_bins + 1,)
    log_density_ : list of float64 (n_bins,)

    Examples
    --------
    >>> import numpy as np
    >>> density = HistogramDensity(bins=2, l=1.0).fit([[0.0], [0.2], [0.4], [1.0]])
    >>> np.exp(density.score_samples([[0.1], [0.9]])).round(3).tolist()
    [1.333, 0.667]
    """

    bins: int | str | ArrayLike = setting(10, "Bins per column, a rule, or edges.")
    l: float = setting(1.0, "Added to the count of each bin.", range=AT_LEAST_0)

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
        import numpy as np
        from sklearn.utils.validation import validate_data

        from textnb.bayes.histogram import bins_per_column, edges_of, log_densities

        X = validate_data(self, X, dtype=np.float64)
        check_settings(self)
        names = getattr(self, "_feature_names", None) or list(
            getattr(self, "feature_names_in_", np.arange(X.shape[1])).tolist())
        # This fails for too many bins, before memory is taken for those of any column.
        n_bins = bins_per_column(X, self.bins, names)
        edges = [edges_of(column, self.bins, n, name)
                 for column, n, name in zip(X.T, n_bins, names, strict=True)]
        # For each column, the log densities inside its bins, and that outside of all.
        densities = [log_densities(column, column_edges, self.l)
                     for column, column_edges in zip(X.T, edges, strict=True)]
        self.edges_ = edges
        self.log_density_ = [inside for inside, _ in densities]
        self.log_outside_ = [outside for _, outside in densities]
        return self

    def score_samples(self, X: Any) -> Floats:
        """Log density of each row, base e: float64 (n_rows,)."""
        import numpy as np
        from sklearn.utils.validation import validate_data

        from textnb.bayes.histogram import log_density_of

        check_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = np.zeros(len(X))
        for column, edges, inside, outside in zip(
                X.T, self.edges_, self.log_density_, self.log_outside_, strict=True):
            scores += log_density_of(column, edges, inside, outside)
        return scores

    def score(self, X: Any, y: Any = None) -> float:
        """Log-likelihood of all rows, base e."""
        return float(self.score_samples(X).sum())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "edges_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type="density_estimator", target_tags=TargetTags(required=False))
