"""Powers of log-count ratios, by which the linear model multiplies each class's features.

References
----------
.. [1] S. Wang, C. D. Manning (2012). Baselines and bigrams: simple, good sentiment and topic
   classification. ACL, section 2.1: the log-count ratio.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.counts import Counts
from textnb.bayes.features import count_by_column, weigh_by_column
from textnb.bayes.forms import Floats
from textnb.bayes.labels import Labels
from textnb.bayes.solver_rows import Scales, SolverRows
from textnb.bayes.statistics import as_smoothing


class RatioScales:
    """Computes |r| ** power for one class at a time; r is its log-count ratio to all others [1]_.

    There is one scale for each shared column of ``rows``, which two or more rows hold, and for each
    own column of a row, which no other row holds.

    The power and the smoothing are those of ``model``, an `NBLinear`. Ratios are of the counts in
    ``statistics``, which may count more rows, or else of ``rows``, with their ``weight``, float64
    (n_rows,). The class weights are ``class_weight``, float64 (n_classes,), or, for lists of
    labels, ``side_weights``, float64 (n_labels, 2): the weights of the rows without and with each
    label.
    """

    def __init__(
        self, model: Any, rows: SolverRows, labels: Labels, weight: Floats | None,
        class_weight: Floats | None, side_weights: Floats | None, statistics: Counts | None = None,
    ) -> None:
        self._power = float(model.power)
        if not self._power:
            self._ones = Scales(np.ones(len(rows.columns)), np.ones(len(labels)), by_row=True)
            return
        # The columns of vectors have no ratio, as their values are not counts.
        n_features = rows.n_features - (0 if rows.extra is None else rows.extra.width)
        self._has_no_ratio = rows.columns >= n_features
        self._l = as_smoothing(model.l, n_features)
        self._rows, self._labels, self._weight = rows, labels, weight
        self._class_weight, self._side_weights = class_weight, side_weights
        row_weight = np.ones(len(labels)) if weight is None else weight
        self._row_weight = row_weight if class_weight is None else (
            row_weight * class_weight[labels.codes])
        self._total_l = float(np.broadcast_to(self._l, (n_features,)).sum())
        # The counts of all classes, if they are given; else each class is counted when needed.
        self._class_counts: NDArray[Any] | None = None
        if statistics is not None:
            if class_weight is None:
                class_weight = np.ones(len(statistics.classes))
            self._class_counts = statistics.feature_count
            self._total: NDArray[Any] = class_weight @ self._class_counts
            self._class_mass = class_weight * self._class_counts.sum(axis=1)
            self._total_mass = self._class_mass.sum()
            return
        shared = rows.shared
        self._total = count_by_column(shared).astype(np.float64) if (
            weight is None and class_weight is None) else weigh_by_column(shared, self._row_weight)
        ends = shared.indptr
        if self._has_no_ratio.any():
            # Only values in columns that have a ratio are counted.
            ends = np.append(0, np.cumsum(~self._has_no_ratio[shared.indices]))[ends]
        # The mass of a row, class or label is the sum of its counts over all columns.
        row_mass = self._row_weight * (np.diff(ends) + np.bincount(rows.row, minlength=len(labels)))
        self._class_mass = labels.sums(row_mass)
        # A row may have several labels, so the sum over labels is not the sum over rows.
        self._total_mass = (row_mass if labels.is_multilabel else self._class_mass).sum()

    def compute(self, k: int) -> Scales:
        """The scales of all columns for the class k."""
        if not self._power:
            return self._ones
        rows = self._rows
        if self._class_counts is not None:
            counts = self._class_counts[k]
            shared, own = (self._scale_columns(k, counts[columns], self._total[columns], columns)
                           for columns in (rows.columns, rows.column))
            return Scales(shared, own)
        shared = self._scale_columns(k, self._counts_of_class(k), self._total, rows.columns)
        shared[self._has_no_ratio] = 1.0
        # If only one row holds a column, its total is the weight of this row.
        total = self._row_weight
        own = np.where(self._labels.has(k), total, 0.0)
        # With the same smoothing for all terms, all own columns of a row have the same ratio.
        if isinstance(self._l, float):
            return Scales(shared, self._scale(k, *self._weigh_sides(k, own, total), self._l),
                          by_row=True)
        return Scales(shared, self._scale(k, *self._weigh_sides(
            k, own[rows.row], total[rows.row]), self._l_of(rows.column)))

    def _weigh_sides(self, k: int, own: Any, total: Any) -> tuple[Any, Any]:
        """Sums over the rows of label k and over all rows, with the label's side weights."""
        if self._side_weights is None:
            return own, total
        without_label, with_label = self._side_weights[k]
        # Rounding may make total - own negative.
        return with_label * own, with_label * own + without_label * np.maximum(total - own, 0.0)

    def _scale_columns(
        self, k: int, counts: NDArray[Any], total: NDArray[Any], columns: NDArray[Any]
    ) -> Floats:
        """The scales of columns, from their counts in class k and in all classes."""
        own: Floats = counts.astype(np.float64)
        if self._class_weight is not None:
            own *= self._class_weight[k]
        return self._scale(k, *self._weigh_sides(k, own, total), self._l_of(columns))

    def _scale(self, k: int, own: Floats, total: NDArray[Any], l: Any) -> Floats:
        """|r| ** power of columns, from their sums over class k and over all rows."""
        # As `log_count_ratio`, with one logarithm per term. Rounding may make total - own negative.
        ratio = (own + l) / (np.maximum(total - own, 0.0) + l)
        np.log(ratio, out=ratio)
        mass, all_mass = self._weigh_sides(k, self._class_mass[k], self._total_mass)
        ratio += np.log((all_mass - mass + self._total_l) / (mass + self._total_l))
        scale: Floats = np.abs(ratio, out=ratio)
        # A square root is several times as quick as a power.
        return np.sqrt(scale) if self._power == 0.5 else scale**self._power

    def _l_of(self, columns: NDArray[Any]) -> Any:
        return self._l if isinstance(self._l, float) else self._l[columns]

    def _counts_of_class(self, k: int) -> NDArray[Any]:
        """The number of rows of a class that hold each shared column, or their sum of weights."""
        own = self._labels.has(k)
        if self._weight is None:
            return count_by_column(self._rows.shared, own)
        return weigh_by_column(self._rows.shared[own], self._weight[own])
