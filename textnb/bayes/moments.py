"""Statistics of dense features: count, mean and scatter per class, which can be added.

The scatter Σ (x - mean)(x - mean)ᵀ is stored instead of Σ xxᵀ, which would lose digits if means are
large. Chan's update [1]_ adds the statistics of two batches.

References
----------
.. [1] T. F. Chan, G. H. Golub, R. J. LeVeque (1983). Algorithms for computing the sample variance:
   analysis and recommendations. The American Statistician 37, eq. 2.1.

>>> X, y = np.array([[1.0, 0.0], [3.0, 2.0], [5.0, 7.0]]), np.array(["a", "a", "b"])
>>> whole = MomentStatistics.from_matrix(X, y)
>>> whole.mean.tolist(), whole.scatter[0].tolist()
([[2.0, 1.0], [5.0, 7.0]], [[2.0, 2.0], [2.0, 2.0]])
>>> halves = (MomentStatistics.from_matrix(X[:1], y[:1]) +
...           MomentStatistics.from_matrix(X[1:], y[1:]))
>>> bool(np.allclose(halves.scatter, whole.scatter))
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.labels import check_int64, class_codes, classes_and_codes, unite_labels
from textnb.bayes.read_only import ReadOnly
from textnb.errors import DataError, listing, quantity

# Squares, and their sums, must stay below the square of this: float64 ends at about 1e308.
_MAX_LENGTH = 1e150
# The relative rounding errors that a mean, and a sum of squares or weights, may have.
_MEAN_ROUNDING, _SUM_ROUNDING = 64 * np.finfo(np.float64).eps, 1e-9
# The number of values of scatter matrices that are added at a time.
_BLOCK_SIZE = 1 << 20


@dataclass(frozen=True, eq=False)
class MomentStatistics(ReadOnly):
    """Count, mean and scatter per class, the sufficient statistic of the Gaussian models.

    Its arrays are read-only.

    Attributes
    ----------
    classes : (n_classes,)
        Sorted labels.
    class_count : int64 (n_classes,)
        Rows per class; float64 sums of weights under sample weights.
    mean : float64 (n_classes, n_features)
        0 for a class without rows.
    scatter : float64 (n_classes, n_features, n_features), or (n_classes, n_features)
        Sums of products of centred features, or only sums of squares.
    """

    classes: NDArray[Any]
    class_count: NDArray[Any]
    mean: Floats
    scatter: Floats

    def __repr__(self) -> str:
        return (f"MomentStatistics({quantity(self.class_count.sum(), 'row')}, "
                f"{quantity(self.mean.shape[1], 'feature')}, "
                f"{quantity(len(self.classes), 'class')})")

    def __post_init__(self) -> None:
        check_int64(self.classes)
        super().__post_init__()

    @classmethod
    def from_matrix(
        cls,
        X: NDArray[Any],
        y: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        sample_weight: Floats | None = None,
        diagonal: bool = False,
    ) -> MomentStatistics:
        """Moments of a matrix of rows.

        Parameters
        ----------
        X : array (n_rows, n_features)
            Of any real type.
        y : array (n_rows,)
        classes : array, optional
            The classes, if ``y`` may lack some.
        sample_weight : float64 (n_rows,), optional
        diagonal : bool
            Keep variances only, without covariances.

        Raises
        ------
        DataError
            If ``y`` holds a label that is not among ``classes``.
        """
        known, codes = classes_and_codes(y, classes)
        class_count, mean, scatter = _zeros(len(known), X.shape[1], diagonal)
        if sample_weight is not None:
            class_count = class_count.astype(np.float64)
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(known) + 1))
        for k in range(len(known)):
            rows = order[ends[k]:ends[k + 1]]
            weight = None if sample_weight is None else sample_weight[rows]
            class_count[k] = len(rows) if weight is None else weight.sum()
            if class_count[k] > 0:
                mean[k], scatter[k] = _moments(X[rows], weight, diagonal)
        return cls(known, class_count, mean, scatter)

    @property
    def n_features(self) -> int:
        return int(self.mean.shape[1])

    @property
    def diagonal(self) -> bool:
        """Whether there are variances only, without covariances."""
        return self.scatter.ndim == 2

    def __add__(self, other: MomentStatistics) -> MomentStatistics:
        self._check_like(other)
        union, count, mean, scatter = self._copy_with_classes(
            unite_labels(self.classes, other.classes))
        codes = class_codes(other.classes, union)
        count_before = count[codes]
        count = count.astype(np.result_type(self.class_count, other.class_count), copy=False)
        count[codes] += other.class_count
        # Scatter matrices are large: temporary arrays are only made for some classes at a time.
        n_classes = max(1, _BLOCK_SIZE // max(1, int(np.prod(self.scatter.shape[1:]))))
        # `check_size` refuses overflow later, with the names of the columns.
        with np.errstate(over="ignore", invalid="ignore"):
            share = _ratio(other.class_count, count[codes])
            shift = other.mean - mean[codes]
            mean[codes] += share[:, None] * shift
            for start in range(0, len(codes), n_classes):
                block = slice(start, start + n_classes)
                block_scatter = scatter[codes[block]]
                block_scatter += other.scatter[block]
                block_scatter += self._products(shift[block], (count_before * share)[block])
                scatter[codes[block]] = block_scatter
        return MomentStatistics(union, count, mean, scatter)

    def __sub__(self, other: MomentStatistics) -> MomentStatistics:
        """The moments without the rows of ``other``.

        Raises
        ------
        DataError
            If some rows of ``other`` can't have been learned: a class has fewer rows, or what is
            left would have a sum of squares below zero.
        """
        self._check_like(other)
        left, right = self.with_classes(other.classes), other.with_classes(self.classes)
        count = left.class_count - right.class_count
        # Differences of integers are exact; differences of sums of weights have rounding errors.
        count_slack = 0.0 if count.dtype.kind == "i" else (
            _SUM_ROUNDING * float(left.class_count.max(initial=1)))
        if (count < -count_slack).any():
            k = int(count.argmin())
            raise DataError.never_learned(
                f"class {left.classes.tolist()[k]!r} has learned {left.class_count[k]} rows, fewer "
                f"than the {right.class_count[k]} given")
        if count_slack:
            count = np.where(np.abs(count) <= count_slack, 0.0, count)
        # Chan's update, backwards: with n the numbers of rows, m the means, and S the scatters,
        # S_left = S_rest + S_right + (n_rest n_right / n_left) d dᵀ, where d = m_right - m_rest.
        shift = right.mean - left.mean
        ratio = _ratio(right.class_count, count)[:, None]
        mean = np.where((count > 0)[:, None], left.mean - ratio * shift, 0.0)
        weight = count * _ratio(right.class_count, left.class_count)
        difference = np.where((count > 0)[:, None], right.mean - mean, 0.0)
        rest = left.scatter - right.scatter - left._products(difference, weight)
        # Rows were never learned if a scatter is below zero, or if it is not zero although no row
        # is left. The slack is for the rounding errors of squares and of means.
        squares = left._diagonal() + right._diagonal()
        error = _MEAN_ROUNDING * (1.0 + ratio) * (np.abs(left.mean) + np.abs(right.mean))
        slack = (_SUM_ROUNDING * (squares + weight[:, None] * difference**2)
                 + left.class_count[:, None] * error * (2.0 * np.abs(difference) + error))
        rest_squares = rest if self.diagonal else np.einsum("kii->ki", rest)
        is_empty = ((count == 0) & (left.class_count > 0))[:, None]
        is_impossible = (rest_squares < -slack) | (is_empty & (
            (np.abs(rest_squares) > slack)
            | (left.class_count[:, None] * shift**2 > slack)))
        if is_impossible.any():
            k, i = np.argwhere(is_impossible)[0]
            raise DataError.never_learned(
                f"the rows given are not among those of class {left.classes.tolist()[k]!r}: what "
                f"would be left has no variance that feature {i} could have")
        # This may be a view of `rest`, and then changes its diagonals.
        np.maximum(rest_squares, 0.0, out=rest_squares)
        rest[count == 0] = 0.0
        return MomentStatistics(left.classes, count, mean, rest)

    def with_classes(self, classes: ArrayLike) -> MomentStatistics:
        """The same moments among more classes."""
        union = unite_labels(self.classes, classes)
        if len(union) == len(self.classes):
            return self
        return MomentStatistics(*self._copy_with_classes(union))

    def _copy_with_classes(
        self, union: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], Floats, Floats]:
        """``union``, which has all of `classes`, and the counts, means and scatters of its classes:
        copies, which may be changed."""
        if len(union) == len(self.classes):
            return self.classes, self.class_count.copy(), self.mean.copy(), self.scatter.copy()
        rows = class_codes(self.classes, union)
        count, mean, scatter = _zeros(len(union), self.n_features, self.diagonal)
        count = count.astype(self.class_count.dtype)
        count[rows], mean[rows], scatter[rows] = self.class_count, self.mean, self.scatter
        return union, count, mean, scatter

    def scaled(self, weights: Floats) -> MomentStatistics:
        """The moments with a weight for the rows of each class; means do not change."""
        shape = (-1, *[1] * (self.scatter.ndim - 1))
        return MomentStatistics(self.classes, self.class_count * weights, self.mean,
                                self.scatter * weights.reshape(shape))

    def without_covariances(self) -> MomentStatistics:
        """The same moments, with variances only."""
        if self.diagonal:
            return self
        return MomentStatistics(self.classes, self.class_count, self.mean,
                                np.einsum("kii->ki", self.scatter).copy())

    def check_size(self, names: Sequence[str] | None = None) -> None:
        """Raise DataError, which names the columns, if squares of values overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            # Bounds of the square root of Σ x² over all rows, from deviations and means.
            deviation = np.sqrt(self._diagonal().sum(axis=0))
            mean = np.abs(self.mean).max(axis=0, initial=0.0) * np.sqrt(self.class_count.sum())
            large = np.flatnonzero(~(2.0 * mean + deviation < _MAX_LENGTH))
        if len(large):
            plural, them = ("", "it") if len(large) == 1 else ("s", "them")
            raise DataError(f"values of column{plural} {name_columns(large, names)} are too large "
                            f"to square; rescale {them}")

    def within(self) -> Floats:
        """Scatter about the class means, summed over the classes: float64 (n_features, n_features),
        or (n_features,) if there are variances only."""
        return np.asarray(self.scatter.sum(axis=0))

    def overall_mean(self) -> Floats:
        """The mean of all rows: float64 (n_features,)."""
        share = self.class_count / self.class_count.sum()
        return np.asarray(share @ self.mean)

    def variance(self) -> Floats:
        """Variance of each feature over all rows, divisor n: float64 (n_features,)."""
        within = self.without_covariances().within()
        between = self.class_count @ (self.mean - self.overall_mean()) ** 2
        return np.asarray((within + between) / self.class_count.sum())

    def _products(self, vectors: Floats, factor: Floats) -> Floats:
        """factor · vector vectorᵀ of each class, or its diagonal if there are variances only."""
        if self.diagonal:
            return factor[:, None] * vectors**2
        return factor[:, None, None] * vectors[:, :, None] * vectors[:, None, :]

    def _diagonal(self) -> Floats:
        return self.scatter if self.diagonal else np.einsum("kii->ki", self.scatter)

    def _check_like(self, other: MomentStatistics) -> None:
        if self.n_features != other.n_features or self.diagonal != other.diagonal:
            raise DataError(f"moments of {self.n_features} and {other.n_features} features, or "
                            "with and without covariances, can't be combined")


def _zeros(n_classes: int, n_features: int, diagonal: bool) -> tuple[NDArray[Any], Floats, Floats]:
    """Count, mean and scatter of no rows."""
    width = (n_features,) if diagonal else (n_features, n_features)
    return (np.zeros(n_classes, dtype=np.int64), np.zeros((n_classes, n_features)),
            np.zeros((n_classes, *width)))


def name_columns(columns: NDArray[np.int64], names: Sequence[str] | None) -> str:
    """Columns for a message: their names if these are known, else their indices."""
    indices = columns.tolist()
    return listing(indices if names is None else [names[i] for i in indices], max_items=10)


@np.errstate(over="ignore", invalid="ignore")
def _moments(rows: NDArray[Any], weight: Floats | None, diagonal: bool) -> tuple[Floats, Floats]:
    """Mean and scatter of the rows of one class, in two passes, after a correction of the mean."""
    values = rows.astype(np.float64)
    total = float(len(values)) if weight is None else float(weight.sum())
    mean = values.mean(axis=0) if weight is None else weight @ values / total
    values -= mean
    # What the first mean missed by rounding.
    rounding = values.mean(axis=0) if weight is None else weight @ values / total
    values -= rounding
    if diagonal:
        squares = values**2
        return mean + rounding, squares.sum(axis=0) if weight is None else weight @ squares
    if weight is not None:
        values *= np.sqrt(weight)[:, None]
    return mean + rounding, values.T @ values


def _ratio(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """part / whole; 0 if whole is 0."""
    ratio = np.zeros(len(part))
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio
