"""Leave-one-out: each learned row is scored by the model without it, by subtracting its counts.

Nothing is fitted again. Where the whole model has the count n_ct of a term t in class c, the model
without a row of that class, with counts x, has n_ct - x_t. It also has one row less in c's prior,
and only the features that are still within the limits on terms. Other classes keep their counts,
so that all rows share one table of logarithms. Only the row's own class, and features that become
columns or are no longer columns without the row, are computed entry by entry, in sparse products:
O(features of the row + classes) per row.

>>> import scipy.sparse as sp
>>> X, y = np.array([[2, 1], [1, 0], [0, 3]]), np.array([0, 0, 1])
>>> statistics = Counts.from_matrix(X, y)
>>> whole = MultinomialLeaveOneOut(statistics, None, True)
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

# SciPy is imported in functions that need it: a model with a number for l is fitted without it.
if TYPE_CHECKING:
    import scipy.sparse as sp

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Within:
    """Limits on terms, which say what features are still columns without a row.

    Attributes
    ----------
    total : int64 (n_features,)
        Occurrences of each feature in all rows.
    document_frequency : int64 (n_features,) or None
        Rows that hold each feature; None if no limit needs it.
    min_documents, max_documents : float
        Limits on the number of rows that hold a feature, if there is one row less.
    """

    total: Ints
    document_frequency: Ints | None = None
    min_documents: float = 0.0
    max_documents: float = np.inf

    def columns(self) -> Mask:
        """Which features are columns without a row that holds none of them: (n_features,)."""
        are_columns: Mask = self._are_within(slice(None), 0) & (self.total > 0)
        return are_columns

    def row_columns(self, columns: NDArray[Any], counts: NDArray[Any]) -> Mask:
        """Whether features are still columns without a row with these counts: (n_entries,)."""
        are_columns: Mask = self._are_within(columns, 1) & (self.total[columns] > counts)
        return are_columns

    def _are_within(self, columns: Any, n_left_out: int) -> Any:
        if self.document_frequency is None:
            return np.ones(self.total[columns].shape, dtype=np.bool_)
        documents = self.document_frequency[columns] - n_left_out
        return (documents >= self.min_documents) & (documents <= self.max_documents)


@dataclass(frozen=True, eq=False)
class LeaveOneOutRows:
    """Rows that are left out: what their scores need, for any ``l``.

    Attributes
    ----------
    codes : int64 (n_rows,)
        The class of each row.
    values : csr_array of float64 (n_rows, n_features)
        The values that are scored, of features that are still columns: counts, or 1 for presence.
    own_counts : (n_values,)
        For each stored value, the count of the feature in the row's class, with the row.
    shift : csr_array of int64 (n_rows, n_features)
        1 for a feature that becomes a column without the row, -1 for one that is no longer one.
    lengths : float64 (n_rows,)
        Sum of the values that are scored.
    pairs : tuple or None
        For complement: the different pairs of a feature and its count in a row, as features and
        counts; and the rows, with a column for each pair.
    """

    codes: Ints
    values: sp.csr_array
    own_counts: NDArray[Any]
    shift: sp.csr_array
    lengths: Floats
    pairs: tuple[NDArray[Any], NDArray[Any], sp.csr_array] | None = None

    def __len__(self) -> int:
        return len(self.codes)


Scorer = Callable[[LeaveOneOutRows], Floats]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Scores of rows, each by the model without it, for one smoothing parameter.

    Attributes
    ----------
    scores : float64 (n_rows, n_classes)
        Joint log-probabilities; if rows have any number of labels, each label's log-odds. -inf for
        a class that no other row has; inf for a label that all others have, if priors are shares
        of the rows.
    labels : Labels
    countable : bool (n_rows,), or (n_rows, n_labels) if rows have any number of labels
        Whether the row counts in a loss: False if no other row has its class; for a label, False
        if all other rows have it and this one does not, or none of them has it and this one does.
    lengths : float64 (n_rows,)
        Sum of the values that are scored.
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
    fit_prior : bool
    within : Within, optional
        Which features are columns without a row; without limits, all are.
    presence_above : float, optional
        Rows count a feature once, if its count is above this.
    """

    def __init__(
        self,
        statistics: Counts,
        class_prior: Floats | None,
        fit_prior: bool,
        within: Within | None = None,
        presence_above: float | None = None,
    ):
        self.statistics = statistics
        self._within, self._above = within, presence_above
        self.counts = np.ascontiguousarray(statistics.feature_count.T)
        # Which features are columns for a row that holds none of them.
        self._base = (np.ones(len(self.counts), dtype=np.bool_) if within is None
                      else within.columns())
        self._fit_prior = fit_prior
        self._log_prior, self._is_empty = _priors(statistics.class_count, class_prior, fit_prior)

    @abstractmethod
    def scorer(self, l: Smoothing) -> Scorer:
        """Joint log-probabilities of rows, with a smoothing parameter."""

    def rows(self, X: sp.csr_array, codes: Ints) -> LeaveOneOutRows:
        """Prepare rows that were learned for scoring.

        Parameters
        ----------
        X : csr_array (n_rows, n_features)
            Counts before any step to presence.
        codes : int64 (n_rows,)
            Index of each row's class.
        """
        X = canonical(X)
        row = _row_of(X)
        column, amount = X.indices, X.data
        if self._above is not None:
            amount = (amount > self._above).astype(np.int64)
        own_counts = self.counts[column, codes[row]]
        is_column = (np.ones(len(column), dtype=np.bool_) if self._within is None
                     else self._within.row_columns(column, X.data))
        is_scored = is_column & (amount > 0)
        change = is_column.astype(np.int64) - self._base[column]
        values = _csr_of(
            amount[is_scored].astype(np.float64), column[is_scored], row[is_scored], X.shape)
        changes = change != 0
        return LeaveOneOutRows(
            codes, values, own_counts[is_scored],
            _csr_of(change[changes], column[changes], row[changes], X.shape),
            np.asarray(values.sum(axis=1)))

    def keep_empty(self, k: int) -> None:
        """Keep a class when its last row is left out, as the rest of a label is kept."""
        remaining = self.statistics.class_count.copy()
        remaining[k] -= 1
        self._is_empty[k, k] = False
        self._log_prior[k] = log_prior(remaining, None, self._fit_prior)

    def countable(self, codes: Ints) -> Mask:
        """Which rows have a class that is possible without them: (n_rows,).

        A row that is alone in its class has not, whatever ``l``.
        """
        return ~np.isneginf(self._intercept[codes, codes])

    def _total_l(self, rows: LeaveOneOutRows, l: Smoothing) -> Any:
        """Σ l over the columns without each row: (n_rows, 1), or one number."""
        if isinstance(l, np.ndarray):
            return float(l.sum())
        return l * (int(self._base.sum()) + np.asarray(rows.shift.sum(axis=1))[:, None])

    def score(
        self, batches: Iterable[LeaveOneOutRows], smoothing: Sequence[Smoothing]
    ) -> Iterator[LeftOut]:
        """Score the rows of batches with each smoothing parameter.

        If there are several, all batches are kept in memory.
        """
        batches = list(batches) if len(smoothing) > 1 else batches
        for l in smoothing:
            scorer = self.scorer(l)
            parts = [(scorer(rows), rows.codes, rows.lengths) for rows in batches]
            scores, codes, lengths = (np.concatenate(each) for each in zip(*parts, strict=True))
            yield LeftOut(scores, Labels.of_codes(self.statistics.classes, codes),
                          self.countable(codes), lengths)

    @property
    def _intercept(self) -> Floats:
        """For each class of a row that is left out, the intercepts of all classes."""
        return self._log_prior


class MultinomialLeaveOneOut(LeaveOneOut):
    """Leave-one-out of multinomial naive Bayes: `multinomial_log_prob` of n - x."""

    def scorer(self, l: Smoothing) -> Scorer:
        table = _log(self.counts + _l_as_column(l))
        totals = self.counts[self._base].sum(axis=0)

        def scores(rows: LeaveOneOutRows) -> Floats:
            all_rows = np.arange(len(rows))
            remaining = rows.own_counts - rows.values.data
            result: Floats = rows.values @ table
            result[all_rows, rows.codes] = _row_sums(
                rows.values, _log(remaining + _l_of_entries(l, rows.values)))
            total = (totals + rows.shift @ self.counts).astype(np.float64)
            total[all_rows, rows.codes] -= rows.lengths
            total += self._total_l(rows, l)
            result -= rows.lengths[:, None] * _finite_log(total)
            result += self._intercept[rows.codes]
            return result

        return scores


class ComplementLeaveOneOut(LeaveOneOut):
    """Leave-one-out of complement naive Bayes: the complements of other classes lose the row.

    The complement of such a class k counts n_t - n_kt - x_t of a term t. This depends on the pair
    (t, x_t) alone, so that it is computed once for each pair that occurs.
    """

    def rows(self, X: sp.csr_array, codes: Ints) -> LeaveOneOutRows:
        import scipy.sparse as sp

        rows = super().rows(X, codes)
        values = rows.values
        amounts, place = np.unique(values.data, return_inverse=True)
        width = max(1, len(amounts))
        keys, pair = np.unique(values.indices.astype(np.int64) * width + place, return_inverse=True)
        column, place = np.divmod(keys, width)
        over_pairs = sp.csr_array((values.data, pair.astype(values.indices.dtype), values.indptr),
                                  shape=(len(rows), len(keys)))
        return replace(rows, pairs=(column, amounts[place], over_pairs))

    def scorer(self, l: Smoothing) -> Scorer:
        if np.min(l) == 0:
            raise ParameterError("without smoothing (l = 0) the complement's weights are infinite, "
                                 "and rows can't be left out by subtraction: use k folds, or l > 0")
        every_class = self.counts.sum(axis=1)
        totals = every_class[self._base].sum() - self.counts[self._base].sum(axis=0)

        def scores(rows: LeaveOneOutRows) -> Floats:
            assert rows.pairs is not None
            all_rows, values = np.arange(len(rows)), rows.values
            column, value, over_pairs = rows.pairs
            smoothing = l[column, None] if isinstance(l, np.ndarray) else l
            # Integers first: the digits of a small l would be lost beside them.
            remaining = (every_class[column] - value)[:, None] - self.counts[column] + smoothing
            result: Floats = -(over_pairs @ _log(remaining))
            others = every_class[values.indices] - rows.own_counts + _l_of_entries(l, values)
            result[all_rows, rows.codes] = -_row_sums(values, _log(others))
            total = (totals + (rows.shift @ every_class)[:, None] - rows.shift @ self.counts
                     - rows.lengths[:, None])
            total[all_rows, rows.codes] += rows.lengths
            total += self._total_l(rows, l)
            result += rows.lengths[:, None] * _finite_log(total)
            result += self._intercept[rows.codes]
            return result

        return scores

    @property
    def _intercept(self) -> Floats:
        # The scores hold no prior, unless there is only one class.
        is_single = (~self._is_empty).sum(axis=1, keepdims=True) == 1
        return np.where(self._is_empty, -np.inf, np.where(is_single, self._log_prior, 0.0))


class BernoulliLeaveOneOut(LeaveOneOut):
    """Leave-one-out of Bernoulli naive Bayes: a row's class has n_c - 1 rows, n_ct - x_t of them
    with the term t.

    log(1-p) is summed over all columns once per class, for the class as it is and for the class
    with one row less. Each row then corrects the sums for the terms that it holds.
    """

    def scorer(self, l: Smoothing) -> Scorer:
        size = self.statistics.class_count
        column = _l_as_column(l)
        log_p = log_ratio(self.counts + column, size + 2.0 * column)
        absent = _Absence(self.counts, size, column, self._base)
        # The class with one row less, for terms that this row lacks.
        fewer = np.maximum(size - 1, 0)
        absent_in_fewer = _Absence(np.minimum(self.counts, fewer), fewer, column, self._base,
                                   self.counts < size)
        weights = np.where(absent.never, 0.0, log_p - absent.log)

        def scores(rows: LeaveOneOutRows) -> Floats:
            all_rows, codes, values = np.arange(len(rows)), rows.codes, rows.values
            result: Floats = self._intercept[codes] + (
                absent.total + values @ weights + rows.shift @ absent.log)
            own_rows, l_of_values = fewer[codes], _l_of_entries(l, values)
            present = log_ratio(rows.own_counts - 1 + l_of_values,
                                own_rows[_row_of(values)] + 2.0 * l_of_values)
            value_at, shift_at = _cells(values, codes), _cells(rows.shift, codes)
            own = (absent_in_fewer.total[codes]
                   + _row_sums(values, present - absent_in_fewer.log[value_at])
                   + _row_sums(rows.shift, absent_in_fewer.log[shift_at]))
            result[all_rows, codes] = self._intercept[codes, codes] + own
            if absent.never.any() or absent_in_fewer.never.any():
                n_missing = absent.never_total + (rows.shift - values) @ absent.never.astype(float)
                n_missing[all_rows, codes] = (
                    absent_in_fewer.never_total[codes]
                    + _row_sums(rows.shift, absent_in_fewer.never[shift_at])
                    - _row_sums(values, absent_in_fewer.never[value_at]))
                result[n_missing > 0] = -np.inf
                # As in `bernoulli_form`: classes without rows are impossible without smoothing.
                result[:, (size == 0) & absent.never.any(axis=0)] = -np.inf
            return result

        return scores


class _Absence:
    """log(1-p) of each term and class; 0, and True in ``never``, if it is never absent (``l`` = 0).
    """

    def __init__(
        self, counts: NDArray[Any], size: NDArray[Any], column: Any, base: Mask,
        defined: Mask | None = None,
    ):
        self.log = log_ratio(size - counts + column, size + 2.0 * column)
        if defined is not None:
            # No row of the class lacks such a term, so the value is not used.
            self.log[~defined] = 0.0
        self.never = np.isneginf(self.log)
        self.log[self.never] = 0.0
        # Added as `bernoulli_form` adds them: along each class.
        self.total = np.ascontiguousarray(self.log[base].T).sum(axis=1)
        self.never_total = self.never[base].sum(axis=0).astype(np.float64)


def _priors(
    class_count: NDArray[Any], class_prior: Floats | None, fit_prior: bool
) -> tuple[Floats, Mask]:
    """log π of all classes without a row of each class, and which of them have no row left.

    Both are (n_classes, n_classes), with a row for each class of a row that is left out.
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
    import scipy.sparse as sp

    indptr = np.zeros(shape[0] + 1, dtype=column.dtype)
    np.cumsum(np.bincount(row, minlength=shape[0]), out=indptr[1:])
    return sp.csr_array((data, column, indptr), shape=shape)


def _row_of(entries: sp.csr_array) -> Ints:
    """The row of each stored value."""
    return np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr))


def _cells(entries: sp.csr_array, codes: Ints) -> tuple[Any, Any]:
    """Where the feature of each stored value, and the class of its row, meet in a table
    (n_features, n_classes)."""
    return entries.indices, codes[_row_of(entries)]


def _row_sums(entries: sp.csr_array, values: Any) -> Floats:
    """The sum over each row of its stored values times these values."""
    import scipy.sparse as sp

    products = sp.csr_array((entries.data * values, entries.indices, entries.indptr),
                            shape=entries.shape)
    return np.asarray(products.sum(axis=1), dtype=np.float64)


def _l_as_column(l: Smoothing) -> Any:
    return l[:, None] if isinstance(l, np.ndarray) else l


def _l_of_entries(l: Smoothing, entries: sp.csr_array) -> Any:
    return l[entries.indices] if isinstance(l, np.ndarray) else l


def _log(values: Any) -> Floats:
    """log, base e: -inf at 0, and below 0, as sums of fractions may be by rounding."""
    with np.errstate(divide="ignore"):
        logged: Floats = np.log(np.maximum(values, 0.0))
    return logged


def _finite_log(total: Floats) -> Floats:
    """log of totals; 0 for a total of 0, without counts and smoothing: every term is impossible."""
    return np.log(total, out=np.zeros_like(total), where=total > 0)
