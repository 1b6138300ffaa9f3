"""The statistics that training learns: counts, which add over disjoint sets of rows.

Every mode of training is this sum reached another way: one batch or many, `partial_fit`, a merge of
two models, a document forgotten. Integers, so the same bits in any order.

>>> import numpy as np
>>> X, y = np.array([[1, 0], [2, 1], [0, 3]]), np.array(["a", "a", "b"])
>>> whole = CountStatistics.from_matrix(X, y)
>>> halves = CountStatistics.from_matrix(X[:1], y[:1]) + CountStatistics.from_matrix(X[1:], y[1:])
>>> halves.equals(whole)
True
>>> (whole - CountStatistics.from_matrix(X[2:], y[2:])).class_count
array([2, 0])

Where a row may have several labels, or none (multi-label), it counts in each of its labels, and
once in the counts of all rows. The rest of a label needs no count of its own: rest = all - own.

>>> labels = CountStatistics(np.array(["a", "b"]), np.array([2, 1]), np.array([[3, 1], [2, 1]]),
...                          rows=3, total=np.array([3, 4]))
>>> labels.against_rest(1).feature_count.tolist()
[[1, 3], [2, 1]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.read_only import ReadOnly
from textnb.bayes.sparse_table import (
    SparseCounts,
    as_sizes_say,
    is_sparse,
    may_be_sparse,
    table_of,
)
from textnb.errors import DataError, ParameterError, quantity
from textnb.runtime.memory import check_room

# SciPy is imported where rows are counted: a filter that scores one message starts without it.

# Beyond this, neighbouring integers share a float64.
_EXACT = 2.0**53
_INT64 = 2**63
# Of sums of weights: the largest relative difference that is rounding.
_ROUNDING = 1e-12
_INTEGERS = (int, np.uint64)


@dataclass(frozen=True, eq=False)
class CountStatistics(ReadOnly):
    """Counts per class, the sufficient statistic of the discrete models, in read-only arrays.

    Attributes
    ----------
    classes : (n_classes,)
        Sorted labels.
    class_count : int64 (n_classes,)
        Rows per class; float64 under sample weights.
    feature_count : int64 (n_classes, n_features)
        Summed counts, or rows that hold the feature; float64 under sample weights or where the
        data themselves are fractions. `SparseCounts` where there are many classes and terms, and
        most counts are 0: see `textnb.bayes.sparse_table.is_sparse`.
    rows : int, float or None
        The number of rows, or the sum of their weights, if rows have any number of labels
        (multi-label): the classes are then labels, and a row counts in each of its labels. None if
        each row has one class.
    total : int64 (n_features,) or None
        The counts of all rows, if they have any number of labels; float64 under sample weights.
    """

    classes: NDArray[Any]
    class_count: NDArray[Any]
    feature_count: Any
    rows: float | None = None
    total: NDArray[Any] | None = None

    def __repr__(self) -> str:
        return (f"CountStatistics({quantity(self.n_rows, 'row')}, "
                f"{quantity(self.n_features, 'feature')}, "
                f"{quantity(len(self.classes), 'label' if self.is_multilabel else 'class')})")

    def __post_init__(self) -> None:
        check_int64(self.classes)
        object.__setattr__(self, "feature_count", as_sizes_say(self.feature_count))
        super().__post_init__()

    @classmethod
    def from_matrix(
        cls,
        X: Any,
        y: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> CountStatistics:
        """Counts of a matrix of rows.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
        y : array (n_rows,)
        classes : array, optional
            The classes, where ``y`` may lack some.
        sample_weight : float64 (n_rows,), optional

        Raises
        ------
        DataError
            If ``y`` holds a label that is not among ``classes``.
        """
        import scipy.sparse as sp

        for labels in (y, classes):
            check_int64(labels)
        y = np.asarray(y)
        known = np.unique(y) if classes is None else np.unique(np.asarray(classes))
        codes = class_codes(y, known)
        weight = np.ones(len(y), dtype=np.int64) if sample_weight is None else sample_weight
        shape = (len(known), len(y))
        membership = sp.csr_array((weight, (codes, np.arange(len(y)))), shape=shape)
        if not sp.issparse(X):
            check_room(len(known), int(np.shape(X)[1]), 8, "their counts")
        counts = membership @ as_counts(X)
        return cls(
            classes=known,
            # Added in the order of the rows, as the counts are: a feature that all rows of a class
            # hold then has exactly the sum of the class, also with weights.
            class_count=membership @ np.ones(len(y), dtype=weight.dtype),
            feature_count=counts if sp.issparse(counts) else np.asarray(counts),
        )

    @classmethod
    def empty(cls, classes: ArrayLike, n_features: int) -> CountStatistics:
        """No rows yet."""
        check_int64(classes)
        known = np.unique(np.asarray(classes))
        none = np.zeros(0, dtype=np.int64)
        return cls(known, np.zeros(len(known), dtype=np.int64),
                   table_of(none, none, none, (len(known), n_features)))

    @property
    def n_features(self) -> int:
        return int(self.feature_count.shape[1])

    @property
    def is_multilabel(self) -> bool:
        """Whether a row has any number of labels, and not one class."""
        return self.total is not None

    @property
    def n_rows(self) -> Any:
        """The number of rows, or the sum of their weights."""
        return self.class_count.sum() if self.rows is None else self.rows

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of the rows that have each class or label: (n_classes,)."""
        shares: NDArray[np.float64] = self.class_count / self.n_rows
        return shares

    @property
    def all_counts(self) -> NDArray[Any]:
        """The counts of all rows: (n_features,)."""
        total: NDArray[Any] = (
            self.feature_count.sum(axis=0) if self.total is None else self.total)
        return total

    def against_rest(self, k: int) -> CountStatistics:
        """The counts of a label's two classes: False, the rows without it, and True, its own."""
        if self.rows is None or self.total is None:
            raise ParameterError("a class has a rest of its own only where rows have any number of "
                                 "labels; here each has one class")
        own, counts = self.class_count[k], self.feature_count[k]
        return CountStatistics(
            np.array([False, True]), np.append(difference(np.array([self.rows]), own), own),
            np.stack([difference(self.total, counts), counts]))

    def __add__(self, other: CountStatistics) -> CountStatistics:
        left, right = self._align(other)
        return replace(left, class_count=left.class_count + right.class_count,
                       feature_count=left.feature_count + right.feature_count,
                       rows=None if left.rows is None else left.rows + (right.rows or 0),
                       total=None if left.total is None else left.total + right.total)

    def __sub__(self, other: CountStatistics) -> CountStatistics:
        """Raises DataError where more would be taken away than was counted."""
        unknown = np.setdiff1d(other.classes[other.class_count > 0], self.classes)
        if len(unknown):
            raise DataError.never_learned(f"class {unknown[0]!r} was never learned")
        left, right = self._align(other)
        rows = left.class_count - right.class_count
        counts = left.feature_count - right.feature_count
        # Weighted sums cancel only to rounding; integers exactly.
        slack = 0.0 if counts.dtype.kind == "i" and rows.dtype.kind == "i" else 1e-9
        if (rows < -slack).any():
            k = int(rows.argmin())
            raise DataError.never_learned(
                f"class {left.classes.tolist()[k]!r} has learned "
                f"{quantity(left.class_count[k], 'document')}, "
                f"fewer than the {right.class_count[k]} given")
        values = counts.values if isinstance(counts, SparseCounts) else counts
        if (values < -slack).any():
            k, term = _least(counts)
            raise DataError.never_learned(
                f"class {left.classes.tolist()[k]!r} has counted feature {term} "
                f"{left.feature_count[k, term]} times, fewer than the "
                f"{right.feature_count[k, term]} given")
        if slack:
            rows, counts = np.maximum(rows, 0), _without_negative(counts)
        if left.rows is None or left.total is None:
            return replace(left, class_count=rows, feature_count=counts)
        rest = replace(left, class_count=rows, feature_count=counts,
                       rows=left.rows - (right.rows or 0), total=left.total - right.total)
        if rest.has_less_than_a_label:
            raise DataError.never_learned(
                "the documents that would be left are fewer than those of a label: the documents "
                "given were not learned with these labels")
        return rest

    @property
    def has_less_than_a_label(self) -> bool:
        """Whether counts contradict each other: all rows would have less than those of a label."""
        if self.rows is None or self.total is None:
            return False
        # Sums of weights that were added in other orders differ in their last bits.
        more = 1.0 if self.total.dtype.kind == "i" else 1.0 + _ROUNDING
        return bool(self.rows < 0 or (self.total < 0).any()
                    or (self.class_count > self.rows * more).any()
                    or (self.feature_count.max(axis=0, initial=0) > self.total * more).any())

    def equals(self, other: CountStatistics) -> bool:
        """Same classes, and the same counts in the same types."""
        return self.is_multilabel == other.is_multilabel and self.rows == other.rows and all(
            mine.dtype.kind == theirs.dtype.kind and (
                mine.same(theirs) if isinstance(mine, SparseCounts)
                else np.array_equal(mine, theirs))
            for mine, theirs in (
                (self.classes, other.classes),
                (self.class_count, other.class_count),
                (self.feature_count, other.feature_count),
                (self.all_counts, other.all_counts),
            )
        )

    def with_classes(self, classes: ArrayLike) -> CountStatistics:
        """The same counts among more classes."""
        known = unite_labels(self.classes, classes)
        if len(known) == len(self.classes):
            return self
        rows = class_codes(self.classes, known)
        class_count = np.zeros(len(known), dtype=self.class_count.dtype)
        class_count[rows] = self.class_count
        return replace(self, classes=known, class_count=class_count, feature_count=_spread(
            self.feature_count, (len(known), self.n_features), rows))

    def without(self, classes: NDArray[Any]) -> CountStatistics:
        """The counts of the other classes."""
        keep = ~np.isin(self.classes, classes)
        return replace(self, classes=self.classes[keep], class_count=self.class_count[keep],
                       feature_count=self.feature_count[keep])

    def widened(self, columns: NDArray[np.int64], n_features: int) -> CountStatistics:
        """The same counts among more features: feature ``i`` moves to ``columns[i]``."""
        if len(columns) == n_features and np.array_equal(columns, np.arange(n_features)):
            return self
        wide = _spread(self.feature_count, (len(self.classes), n_features), columns=columns)
        if self.total is None:
            return replace(self, feature_count=wide)
        total = np.zeros(n_features, dtype=self.total.dtype)
        total[columns] = self.total
        return replace(self, feature_count=wide, total=total)

    def select(self, features: NDArray[Any]) -> CountStatistics:
        """The counts of some features (mask or indices)."""
        return replace(self, feature_count=self.feature_count[:, features],
                       total=None if self.total is None else self.total[features])

    def scaled(self, weights: NDArray[np.float64]) -> CountStatistics:
        """Each class's counts times a number: float64."""
        if self.is_multilabel:
            raise ParameterError("labels overlap: their counts have no weights of their own")
        counts = self.feature_count
        return CountStatistics(
            self.classes, self.class_count * weights,
            counts.scaled(weights) if isinstance(counts, SparseCounts)
            else counts * weights[:, None])

    def _align(self, other: CountStatistics) -> tuple[CountStatistics, CountStatistics]:
        if self.n_features != other.n_features:
            raise DataError(f"statistics of {self.n_features} and {other.n_features} features "
                            "can't be combined")
        self.check_same_kind(other)
        left, right = self.with_classes(other.classes), other.with_classes(self.classes)
        return left, right

    def check_same_kind(self, other: CountStatistics) -> None:
        """Raise DataError if only one of them counts rows with any number of labels."""
        if self.is_multilabel != other.is_multilabel:
            raise DataError.with_advice(
                "a model learns either one label per document or lists of labels, and these are "
                "both: ", "give lists of labels, [label] where there is one, or one label, to all "
                "of them", "give lists of labels, or one label, to all of them")


def difference(total: NDArray[Any], own: Any) -> NDArray[Any]:
    """What is left of sums; of sums of weights, a difference within rounding is 0."""
    rest: NDArray[Any] = total - own
    if rest.dtype.kind == "f":
        rest[rest <= _ROUNDING * total] = 0.0
    return rest


def _spread(
    counts: Any, shape: tuple[int, int], rows: NDArray[Any] | None = None,
    columns: NDArray[Any] | None = None,
) -> Any:
    """The counts in a larger table: row i moves to ``rows[i]``, or column i to ``columns[i]``."""
    if not isinstance(counts, SparseCounts) and may_be_sparse(*shape) and is_sparse(
            *shape, int(np.count_nonzero(counts))):
        counts = SparseCounts.of(counts)
    if isinstance(counts, SparseCounts):
        return counts.spread(shape, rows, columns)
    larger = np.zeros(shape, dtype=counts.dtype)
    if rows is None:
        larger[:, columns] = counts
    else:
        larger[rows] = counts
    return larger


def _least(counts: Any) -> tuple[int, int]:
    """The class and the term of the least count."""
    if not isinstance(counts, SparseCounts):
        return divmod(int(counts.argmin()), int(counts.shape[1]))
    place = int(counts.values.argmin())
    row, column = counts.nonzero()
    return int(row[place]), int(column[place])


def _without_negative(counts: Any) -> Any:
    if not isinstance(counts, SparseCounts):
        return np.maximum(counts, 0)
    return SparseCounts.of_cells(*counts.nonzero(), np.maximum(counts.values, 0), counts.shape)


def unite_labels(classes: NDArray[Any], more: ArrayLike) -> NDArray[Any]:
    """Sorted union of labels; strings of several lengths, and objects, do not change."""
    check_int64(more)
    others = np.asarray(more, dtype=object if classes.dtype == object else None)
    return np.union1d(classes, others)


def check_int64(labels: Any) -> None:
    """Raises DataError for integer labels beyond 64 bits, which it names.

    Call it before NumPy makes an array of a list: from integers on both sides of 2**63 it would
    make floats, and so merge classes.
    """
    if labels is None or isinstance(labels, (str, bytes)):
        return
    if isinstance(getattr(labels, "dtype", None), np.dtype):
        labels = np.asarray(labels)
    else:
        # The values of a Polars series: it may hold integers that NumPy has no type for.
        labels = labels.to_list() if hasattr(labels, "to_list") else labels
        if not isinstance(labels, (list, tuple)):
            labels = np.asarray(labels)
    if isinstance(labels, np.ndarray):
        if labels.dtype.kind not in "uO" or not labels.size:
            return
        if labels.dtype.kind == "u":
            largest = int(labels.max())
            if largest >= _INT64:
                raise DataError.label_beyond_int64(largest)
            return
        labels = labels.reshape(-1).tolist()
    for label in labels:
        if type(label) in _INTEGERS and not -_INT64 <= label < _INT64:
            raise DataError.label_beyond_int64(label)


def class_codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Index of each label among the sorted classes; DataError for a label that is not there."""
    codes = np.searchsorted(classes, y)
    codes[codes == len(classes)] = 0
    unknown = np.unique(y[classes[codes] != y])
    if len(unknown):
        raise DataError.unseen_labels(unknown.tolist(), classes.tolist())
    return codes.astype(np.int64)


def as_counts(X: Any) -> Any:
    """int64 where every value is whole, float64 otherwise; a small integer type would wrap."""
    import scipy.sparse as sp

    if sp.issparse(X):
        values = as_counts(X.data)
        return X if values is X.data else sp.csr_array((values, X.indices, X.indptr), X.shape)
    if X.dtype.kind in "bui":
        return X.astype(np.int64, copy=False)
    if X.size and not (np.all(np.floor(X) == X) and np.abs(X).max() < _EXACT):
        return X.astype(np.float64, copy=False)
    return X.astype(np.int64)


def is_auto(l: Any) -> bool:
    """Whether the smoothing parameter is to be chosen by leave-one-out."""
    return isinstance(l, str) and l == "auto"


def as_smoothing(l: Any, n_features: int) -> float | NDArray[np.float64]:
    """Check the smoothing parameter: a number, or one per feature.

    Raises
    ------
    ParameterError
        If it is negative, not finite, or an array of another length.
    """
    expected = "a finite number >= 0, or an array of one per feature"
    if is_auto(l):
        raise ParameterError.naming(
            "{l='auto'} belongs to MultinomialNB, BernoulliNB and ComplementNB; here {l} must be "
            "{expected}", expected=expected)
    try:
        values = np.asarray(l, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError.out_of_range("l", expected, l) from None
    if isinstance(l, (bool, str)) or not np.isfinite(values).all() or (values < 0).any():
        raise ParameterError.out_of_range("l", expected, l)
    if values.ndim == 0:
        return float(values)
    if values.shape != (n_features,):
        raise ParameterError(f"l as an array must have one value per feature ({n_features}); "
                             f"got shape {values.shape}")
    return values


def as_class_prior(
    class_prior: Sequence[float] | ArrayLike | None, n_classes: int, name: str = "class_prior"
) -> NDArray[np.float64] | None:
    """Check given class probabilities and make an array of them.

    Raises
    ------
    ParameterError
        If there is not one per class, or one is negative or not finite, or all are zero.
    """
    if class_prior is None:
        return None
    try:
        prior = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError.out_of_range(name, "one probability per class", class_prior) from None
    if prior.shape != (n_classes,):
        raise ParameterError(f"{name}: Number of priors must match number of classes: expected "
                             f"{n_classes}, got {prior.size}")
    if not np.isfinite(prior).all() or (prior < 0).any() or prior.sum() <= 0:
        raise ParameterError.out_of_range(name, "probabilities >= 0, not all 0",
                                          class_prior)
    return prior
