"""Models of a statistic that is a sum over rows: sums of batches give the model of all rows.

    rows -> statistic (counts, or moments) -> form, which computes the scores of rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from textnb.errors import ParameterError
from textnb.models.prediction import ClassWeighted, FormClassifier
from textnb.runtime.settings import check_settings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from textnb.bayes.forms import Floats


class AdditiveModel(FormClassifier):
    """A model of a statistic: `_count` adds rows to it, and `fit_statistics` derives the form."""

    statistics_: Any

    def fit_statistics(self, statistics: Any) -> Self:
        """Derive the form from a statistic."""
        raise NotImplementedError

    def _count(
        self, X: Any, y: NDArray[Any], classes: ArrayLike, weight: Floats | None, before: Any
    ) -> Any:
        """Check the parameters, and add rows to a statistic.

        Parameters
        ----------
        X, y
            The rows and their labels, already checked.
        classes : array
            All classes, in any order, with repeats.
        weight : float64 (n_rows,) or None
            Sample weights.
        before : statistic or None
            The statistic of earlier rows, which stays as it is; None for the first rows.
        """
        raise NotImplementedError

    def _choose(
        self, X: Any, y: NDArray[Any], statistics: Any, weight: Floats | None
    ) -> dict[str, Any]:
        """Keyword arguments of `fit_statistics` that must be computed from all rows."""
        return {}

    def fit_rows(self, X: Any, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        X = self._checked(X)
        statistics = self._count(X, y, y, sample_weight, before=None)
        return self.fit_statistics(statistics, **self._choose(X, y, statistics, sample_weight))

    def _partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """What `partial_fit` does, which subclasses define with sample weights or without them."""
        from textnb.bayes.labels import check_int64, class_codes, unite_labels
        from textnb.models.matrices import labelled_rows, sample_weights

        check_settings(self)
        # The statistic of the earlier calls.
        before = self.statistics_ if self.__sklearn_is_fitted__() else None
        if before is None and classes is None:
            raise ParameterError("classes must be passed on the first call to partial_fit.")
        # Raises an error for integers beyond 64 bits, which NumPy would change to floats.
        check_int64(classes)
        X, y = labelled_rows(self, X, y, sparse=self._accept_sparse, reset=before is None)
        X, weight = self._checked(X), sample_weights(sample_weight, X)
        known: Any = classes if before is None else before.classes
        if before is not None and classes is not None:
            known = unite_labels(before.classes, classes)
        # Raises an error for a label that is not a known class.
        class_codes(y, unique(known))
        return self.fit_statistics(self._count(X, y, known, weight, before))


@dataclass(eq=False, repr=False, kw_only=True)
class WeightedAdditiveModel(ClassWeighted, AdditiveModel):
    """A model whose statistic takes sample weights."""

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows: the model is that of one `fit` on all of them.

        Counts give the same bits. Sums of real numbers, as with sample weights, differ by rounding.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
        y : array (n_rows,)
        classes : array, optional
            Required at the first call; at a later call, announces more classes.
        sample_weight : array (n_rows,), optional

        Raises
        ------
        DataError
            If a label was not announced.
        """
        return self._partial_fit(X, y, classes, sample_weight)


def unique(labels: ArrayLike) -> NDArray[Any]:
    """The sorted labels, each once."""
    import numpy as np

    return np.unique(np.asarray(labels))
