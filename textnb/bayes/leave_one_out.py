"""Leave-one-out: each learned row is scored by the model without it, by subtracting its counts.

Nothing is fitted again. If n_ct is the count of term t in class c, and a row of class c with counts
x is left out, the count becomes n_ct - x_t. Class c also has one row less in its prior, and the
columns are the features that are still within the limits on terms. Other classes keep their counts,
so that all rows share one table of logarithms. Only the row's own class, and features that become
or stop being columns without the row, are computed again: by sparse products, in O(features of the
row + classes) per row.

>>> import scipy.sparse as sp
>>> X, y = np.array([[2, 1], [1, 0], [0, 3]]), np.array([0, 0, 1])
>>> statistics = Counts.from_matrix(X, y)
>>> whole = MultinomialLeaveOneOut(statistics, class_prior=None, fit_prior=True)
>>> scores = whole.scorer(1.0)(whole.rows(sp.csr_array(X), y))
>>> np.exp(scores[0]).round(6).tolist()  # of [2, 1]: π = 1/2, θ = 2/3 and 1/3; 1/5 and 4/5
[0.074074, 0.016]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.cells import Ints
from textnb.bayes.counts import Counts
from textnb.bayes.features import canonical
from textnb.bayes.forms import Floats
from textnb.bayes.formulas import Smoothing, log_prior, log_ratio
from textnb.bayes.labels import Labels
from textnb.errors import ParameterError

# SciPy is imported in functions that need it: a model whose smoothing l is given, and not chosen by
# leaving rows out, is fitted without it.
if TYPE_CHECKING:
    import scipy.sparse as sp

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ColumnLimits:
    """Limits on terms: which features are still columns if a row is left out.

    Attributes
    ----------
    total : int64 (n_features,)
        Occurrences of each feature in all rows.
    document_frequency : int64 (n_features,) or None
        Rows that hold each feature; None if no limit needs it.
    min_documents, max_documents : float
        Limits on the number of remaining rows that hold a feature.
    """

    total: Ints
    document_frequency: Ints | None = None
    min_documents: float = 0.0
    max_documents: float = np.inf

    def columns(self) -> Mask:
        """Which features are columns if a row that has none of them is left out: (n_features,)."""
        return self._are_within(slice(None), n_left_out=0) & (self.total > 0)

    def row_columns(self, columns: NDArray[Any], counts: NDArray[Any]) -> Mask:
        """Which features of a row, with these counts, are columns if it is left out: (n_entries,).
        """
        are_columns: Mask = self._are_within(columns, n_left_out=1) & (
            self.total[columns] > counts)
        return are_columns

    def _are_within(self, columns: Any, n_left_out: int) -> Mask:
        """Whether the columns are within the limits, if this number of their rows is left out."""
        if self.document_frequency is None:
            return np.ones(self.total[columns].shape, dtype=np.bool_)
        documents: Ints = self.document_frequency[columns] - n_left_out
        return (documents >= self.min_documents) & (documents <= self.max_documents)


@dataclass(frozen=True, eq=False)
class LeaveOneOutRows:
    """Rows that are left out, prepared to be scored with any ``l``.

    Attributes
    ----------
    codes : int64 (n_rows,)
        The class of each row.
    values : csr_array of float64 (n_rows, n_features)
        The values that are scored, of features that are still columns: counts, or 1 for presence.
    own_counts : (n_values,)
        For each stored value, the count of the feature in the row's class, including the row.
    change : csr_array of int64 (n_rows, n_features)
        1 if a feature is a column only without the row, -1 if it is one only with the row.
    lengths : float64 (n_rows,)
        The sum of the values that are scored.
    pairs : tuple or None
        For complement: the features and the counts of all different pairs of a feature and its
        count in a row; and a csr_array of the rows, with a column for each pair.
    """

    codes: Ints
    values: sp.csr_array
    own_counts: NDArray[Any]
    change: sp.csr_array
    lengths: Floats
    pairs: tuple[NDArray[Any], NDArray[Any], sp.csr_array] | None = None

    def __len__(self) -> int:
        return len(self.codes)


# From prepared rows to joint log-probabilities: float64 (n_rows, n_classes).
Scorer = Callable[[LeaveOneOutRows], Floats]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Scores of rows, each by the model without it, for one smoothing parameter.

    Attributes
    ----------
    scores : float64 (n_rows, n_classes)
        Joint log-probabilities, -inf for a class that no other row has. If rows have any number of
        labels, the log-odds of each label: if priors are shares of the rows, inf for a label that
        all other rows have, and -inf for a label that none of them has.
    labels : Labels
    countable : bool (n_rows,), or (n_rows, n_labels) if rows have any number of labels
        Whether the row counts in a loss: False if no other row has its class. For a label, False if
        this row has it and no other row does, or this row lacks it and all other rows have it.
    lengths : float64 (n_rows,)
        The sum of the values that are scored.
    """

    scores: Floats
    labels: Labels
    countable: Mask
    lengths: Floats


class LeaveOneOut(ABC):
    """Scores each row of a statistic by the model without the row.

    Parameters
    ----------
    statistics : Counts
        Counts of all rows, over all features that may be columns.
    class_prior : float64 (n_classes,) or None
        The priors; if None, they follow from the rows.
    fit_prior : bool
        Whether these priors are shares of the rows, or the same for all classes.
    within : ColumnLimits, optional
        Which features are columns if a row is left out; by default all.
    presence_above : float, optional
        If set, a feature counts once in a row if its count is above this.
    """

    def __init__(
        self,
        statistics: Counts,
        class_prior: Floats | None,
        fit_prior: bool,
        within: ColumnLimits | None = None,
        presence_above: float | None = None,
    ):
        self.statistics = statistics
        self._within, self._presence_above = within, presence_above
        self.counts = np.ascontiguousarray(statistics.feature_count.T)
        # Which features are columns if a row that has none of them is left out.
        self._base_columns = (np.ones(len(self.counts), dtype=np.bool_) if within is None
                              else within.columns())
        self._fit_prior = fit_prior
        # Both have a row for each class that the row that is left out may have.
        self._log_prior, self._is_empty = _priors(statistics.class_count, class_prior, fit_prior)

    @abstractmethod
    def scorer(self, l: Smoothing) -> Scorer:
        """The `Scorer` for one ``l``."""

    def rows(self, X: sp.csr_array, codes: Ints) -> LeaveOneOutRows:
        """Prepare learned rows to be scored.

        Parameters
        ----------
        X : csr_array (n_rows, n_features)
            Counts, not yet presence.
        codes : int64 (n_rows,)
            The index of each row's class.
        """
        X = canonical(X)
        row = _row_of(X)
        column, value = X.indices, X.data
        if self._presence_above is not None:
            value = (value > self._presence_above).astype(np.int64)
        own_counts = self.counts[column, codes[row]]
        is_column = (np.ones(len(column), dtype=np.bool_) if self._within is None
                     else self._within.row_columns(column, X.data))
        is_scored = is_column & (value > 0)
        change = is_column.astype(np.int64) - self._base_columns[column]
        values = _csr_of(
            value[is_scored].astype(np.float64), column[is_scored], row[is_scored], X.shape)
        is_changed = change != 0
        return LeaveOneOutRows(
            codes, values, own_counts[is_scored],
            _csr_of(change[is_changed], column[is_changed], row[is_changed], X.shape),
            np.asarray(values.sum(axis=1)))

    def keep_empty(self, k: int) -> None:
        """Keep class k possible if its last row is left out.

        For a label, class k is the rows without it: a label may have no such rows.
        """
        remaining = self.statistics.class_count.copy()
        remaining[k] -= 1
        self._is_empty[k, k] = False
        self._log_prior[k] = log_prior(remaining, None, self._fit_prior)

    def countable(self, codes: Ints) -> Mask:
        """Which rows have a class that other rows have too: bool (n_rows,)."""
        return ~np.isneginf(self._intercept[codes, codes])

    def _total_l(self, rows: LeaveOneOutRows, l: Smoothing) -> Any:
        """Σ l over the columns if each row is left out: (n_rows, 1), or one number."""
        # With an ``l`` for each feature, all features are columns.
        if isinstance(l, np.ndarray):
            return float(l.sum())
        return l * (int(self._base_columns.sum()) + np.asarray(rows.change.sum(axis=1))[:, None])

    def score(
        self, batches: Iterable[LeaveOneOutRows], smoothing: Sequence[Smoothing]
    ) -> Iterator[LeftOut]:
        """Score the rows of batches with each smoothing parameter.

        If there are several, all batches are kept in memory.
        """
        batches = list(batches) if len(smoothing) > 1 else batches
        for l in smoothing:
            scorer = self.scorer(l)
            results = [(scorer(rows), rows.codes, rows.lengths) for rows in batches]
            scores, codes, lengths = (np.concatenate(each) for each in zip(*results, strict=True))
            yield LeftOut(scores, Labels.of_codes(self.statistics.classes, codes),
                          self.countable(codes), lengths)

    @property
    def _intercept(self) -> Floats:
        """For each class of the row that is left out, the intercepts of all classes."""
        return self._log_prior


class MultinomialLeaveOneOut(LeaveOneOut):
    """Leave-one-out of multinomial naive Bayes: `multinomial_log_prob` of the counts n - x."""

    def scorer(self, l: Smoothing) -> Scorer:
        table = _log(self.counts + _l_as_column(l))
        totals = self.counts[self._base_columns].sum(axis=0)

        def scores(rows: LeaveOneOutRows) -> Floats:
            all_rows = np.arange(len(rows))
            remaining = rows.own_counts - rows.values.data
            result: Floats = rows.values @ table
            # Only the row's own class loses counts.
            result[all_rows, rows.codes] = _row_sums(
                rows.values, _log(remaining + _l_of_entries(l, rows.values)))
            total = (totals + rows.change @ self.counts).astype(np.float64)
            total[all_rows, rows.codes] -= rows.lengths
            total += self._total_l(rows, l)
            result -= rows.lengths[:, None] * _finite_log(total)
            result += self._intercept[rows.codes]
            return result

        return scores


class ComplementLeaveOneOut(LeaveOneOut):
    """Leave-one-out of complement naive Bayes: the complements of other classes lose the row.

    The complement of another class k then has the count n_t - n_kt - x_t of a term t. It depends
    on the row only by the pair (t, x_t), so that it is computed once for each pair that occurs.
    """

    def rows(self, X: sp.csr_array, codes: Ints) -> LeaveOneOutRows:
        import scipy.sparse as sp

        rows = super().rows(X, codes)
        values = rows.values
        counts, count_index = np.unique(values.data, return_inverse=True)
        n_counts = max(1, len(counts))
        # The key of a pair is a number for its feature and its count.
        keys, pair = np.unique(
            values.indices.astype(np.int64) * n_counts + count_index, return_inverse=True)
        columns, count_index = np.divmod(keys, n_counts)
        over_pairs = sp.csr_array((values.data, pair.astype(values.indices.dtype), values.indptr),
                                  shape=(len(rows), len(keys)))
        return replace(rows, pairs=(columns, counts[count_index], over_pairs))

    def scorer(self, l: Smoothing) -> Scorer:
        if np.min(l) == 0:
            raise ParameterError("without smoothing (l = 0) the complement's weights are infinite, "
                                 "and rows can't be left out by subtraction: use k folds, or l > 0")
        term_counts = self.counts.sum(axis=1)
        totals = term_counts[self._base_columns].sum() - self.counts[self._base_columns].sum(axis=0)

        def scores(rows: LeaveOneOutRows) -> Floats:
            assert rows.pairs is not None
            all_rows, values = np.arange(len(rows)), rows.values
            columns, counts, over_pairs = rows.pairs
            smoothing = l[columns, None] if isinstance(l, np.ndarray) else l
            # l is added last: beside the large integers, its digits would be lost.
            remaining = (term_counts[columns] - counts)[:, None] - self.counts[columns] + smoothing
            result: Floats = -(over_pairs @ _log(remaining))
            # The complement of the row's own class does not hold the row.
            others = term_counts[values.indices] - rows.own_counts + _l_of_entries(l, values)
            result[all_rows, rows.codes] = -_row_sums(values, _log(others))
            total = (totals + (rows.change @ term_counts)[:, None] - rows.change @ self.counts
                     - rows.lengths[:, None])
            total[all_rows, rows.codes] += rows.lengths
            total += self._total_l(rows, l)
            result += rows.lengths[:, None] * _finite_log(total)
            result += self._intercept[rows.codes]
            return result

        return scores

    @property
    def _intercept(self) -> Floats:
        # The scores have no prior, unless there is only one class.
        is_single = (~self._is_empty).sum(axis=1, keepdims=True) == 1
        return np.where(self._is_empty, -np.inf, np.where(is_single, self._log_prior, 0.0))


class BernoulliLeaveOneOut(LeaveOneOut):
    """Leave-one-out of Bernoulli naive Bayes: a row's class has n_c - 1 rows, n_ct - x_t of them
    with the term t.

    log(1-p) is summed over all columns once per class, with all rows of the class and with one row
    less. Each row then corrects the sums for the terms that it holds.
    """

    def scorer(self, l: Smoothing) -> Scorer:
        n_rows = self.statistics.class_count
        l_column = _l_as_column(l)
        log_p = log_ratio(self.counts + l_column, n_rows + 2.0 * l_column)
        absence = _Absence(self.counts, n_rows, l_column, self._base_columns)
        # The class without one row, for terms that this row lacks.
        n_other_rows = np.maximum(n_rows - 1, 0)
        own_absence = _Absence(
            np.minimum(self.counts, n_other_rows), n_other_rows, l_column, self._base_columns,
            self.counts < n_rows)
        weights = np.where(absence.is_certain, 0.0, log_p - absence.log)

        def scores(rows: LeaveOneOutRows) -> Floats:
            all_rows, codes, values = np.arange(len(rows)), rows.codes, rows.values
            result: Floats = self._intercept[codes] + (
                absence.total + values @ weights + rows.change @ absence.log)
            own_rows, l_of_values = n_other_rows[codes], _l_of_entries(l, values)
            own_log_p = log_ratio(rows.own_counts - 1 + l_of_values,
                                  own_rows[_row_of(values)] + 2.0 * l_of_values)
            value_cells, change_cells = _cells(values, codes), _cells(rows.change, codes)
            own = (own_absence.total[codes]
                   + _row_sums(values, own_log_p - own_absence.log[value_cells])
                   + _row_sums(rows.change, own_absence.log[change_cells]))
            result[all_rows, codes] = self._intercept[codes, codes] + own
            if absence.is_certain.any() or own_absence.is_certain.any():
                # The number of terms that a class requires and the row lacks.
                n_missing = absence.n_certain + (
                    rows.change - values) @ absence.is_certain.astype(float)
                n_missing[all_rows, codes] = (
                    own_absence.n_certain[codes]
                    + _row_sums(rows.change, own_absence.is_certain[change_cells])
                    - _row_sums(values, own_absence.is_certain[value_cells]))
                result[n_missing > 0] = -np.inf
                # As in `bernoulli_form`: without smoothing, classes without rows are impossible.
                result[:, (n_rows == 0) & absence.is_certain.any(axis=0)] = -np.inf
            return result

        return scores


class _Absence:
    """log(1-p) of each term and class, as ``log``, and its ``total`` over ``base_columns``.

    With ``l = 0``, p may be 1: then ``is_certain`` is True, and ``log`` is 0. ``n_certain`` is the
    number of such terms among ``base_columns``. ``counts``, (n_features, n_classes), are how many
    of the ``n_rows``, (n_classes,), hold a term.
    """

    def __init__(
        self, counts: NDArray[Any], n_rows: NDArray[Any], l_column: Any, base_columns: Mask,
        is_defined: Mask | None = None,
    ):
        self.log = log_ratio(n_rows - counts + l_column, n_rows + 2.0 * l_column)
        if is_defined is not None:
            # The value is not used, as every row of the class has the term.
            self.log[~is_defined] = 0.0
        self.is_certain = np.isneginf(self.log)
        self.log[self.is_certain] = 0.0
        # In the same order as in `bernoulli_form`: along each class.
        self.total = np.ascontiguousarray(self.log[base_columns].T).sum(axis=1)
        self.n_certain = self.is_certain[base_columns].sum(axis=0).astype(np.float64)


def _priors(
    class_count: NDArray[Any], class_prior: Floats | None, fit_prior: bool
) -> tuple[Floats, Mask]:
    """log π of all classes after leaving out a row, and which classes have no row left.

    Both are (n_classes, n_classes), with a row for each class that the left-out row may have. A
    class without rows has -inf.
    """
    n_classes = len(class_count)
    priors, is_empty = np.full((n_classes, n_classes), -np.inf), np.eye(n_classes, dtype=np.bool_)
    is_empty &= class_count <= 1
    for row_class in range(n_classes):
        remaining = class_count.copy()
        remaining[row_class] -= 1
        has_rows = ~is_empty[row_class]
        prior = None if class_prior is None else class_prior[has_rows]
        if has_rows.any():
            priors[row_class, has_rows] = log_prior(
                np.maximum(remaining[has_rows], 0), prior, fit_prior)
    return priors, is_empty


def _csr_of(
    data: NDArray[Any], column: NDArray[Any], row: Ints, shape: tuple[int, int]
) -> sp.csr_array:
    """A matrix from its values, and the column and row of each, row after row."""
    import scipy.sparse as sp

    indptr = np.zeros(shape[0] + 1, dtype=column.dtype)
    np.cumsum(np.bincount(row, minlength=shape[0]), out=indptr[1:])
    return sp.csr_array((data, column, indptr), shape=shape)


def _row_of(entries: sp.csr_array) -> Ints:
    """The row of each stored value."""
    return np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr))


def _cells(entries: sp.csr_array, codes: Ints) -> tuple[Any, Any]:
    """For each stored value, the index of its feature and row's class in a table (n_features,
    n_classes)."""
    return entries.indices, codes[_row_of(entries)]


def _row_sums(entries: sp.csr_array, values: Any) -> Floats:
    """For each row, the sum of its stored values times ``values``."""
    import scipy.sparse as sp

    products = sp.csr_array((entries.data * values, entries.indices, entries.indptr),
                            shape=entries.shape)
    return np.asarray(products.sum(axis=1), dtype=np.float64)


def _l_as_column(l: Smoothing) -> Any:
    """One ``l`` for all features, or a column (n_features, 1)."""
    return l[:, None] if isinstance(l, np.ndarray) else l


def _l_of_entries(l: Smoothing, entries: sp.csr_array) -> Any:
    """One ``l``, or for each stored value the ``l`` of its feature."""
    return l[entries.indices] if isinstance(l, np.ndarray) else l


def _log(values: Any) -> Floats:
    """log, base e; -inf for 0, and below 0, where rounding may bring a difference."""
    with np.errstate(divide="ignore"):
        logged: Floats = np.log(np.maximum(values, 0.0))
    return logged


def _finite_log(total: Floats) -> Floats:
    """log of totals; 0 for a total of 0, where every term is impossible anyway."""
    return np.log(total, out=np.zeros_like(total), where=total > 0)
