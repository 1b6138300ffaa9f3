"""Powers of log-count ratios, by which the linear model multiplies each class's features.

References
----------
.. [1] S. Wang, C. D. Manning (2012). Baselines and bigrams: simple, good sentiment and topic
   classification. ACL, section 2.1: the log-count ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.counts import Counts
from textnb.bayes.forms import Floats
from textnb.bayes.labels import Labels
from textnb.bayes.solver_rows import SolverRows
from textnb.bayes.statistics import as_smoothing


class RatioScales:
    """Computes |r| ** power for one class at a time; r is its log-count ratio to all others [1]_.

    For the columns of `SolverRows` only. A column that one row has gets the counts of that row.
    With ``statistics``, which may count more rows, all columns have the counts of these. The class
    weights are ``of_class``, float64 (n_classes,), or, for lists of labels, ``of_sides``, float64
    (n_labels, 2): the weights of the rows without and with each label.
    """

    def __init__(
        self, model: Any, prepared: SolverRows, rows: sp.csr_array,
        labels: Labels, weight: Floats | None, of_class: Floats | None, of_sides: Floats | None,
        counts_of: Callable[[int], NDArray[Any]] | None,
        statistics: Counts | None = None,
    ) -> None:
        self._power = float(model.power)
        if not self._power:
            self._ones = np.ones(len(prepared.columns)), np.ones(len(prepared.column))
            return
        self._l = as_smoothing(model.l, rows.shape[1])
        self._prepared, self._labels, self._weight = prepared, labels, weight
        self._of_class, self._of_sides = of_class, of_sides
        self._counts_of = counts_of or self._counter(rows)
        self._from_rows = statistics is None
        # The weight of each row.
        of_row = np.ones(len(labels)) if weight is None else weight
        self._of_row = of_row if of_class is None else of_row * of_class[labels.codes]
        smoothing = np.broadcast_to(self._l, (rows.shape[1],)).sum()
        self._smoothing = float(smoothing)
        if statistics is not None:
            of_class = np.ones(len(statistics.classes)) if of_class is None else of_class
            self._total: NDArray[Any] = of_class @ statistics.feature_count
            self._class_mass = of_class * statistics.feature_count.sum(axis=1)
            self._total_mass = self._class_mass.sum()
            return
        stored = np.diff(rows.indptr)
        weight_of_cell = np.repeat(self._of_row, stored)
        self._total = np.bincount(
            rows.indices, weights=weight_of_cell, minlength=rows.shape[1])
        masses = self._of_row * stored
        self._class_mass = labels.sums(masses)
        # A row may have several labels, so the sum over labels is not the sum over rows.
        self._total_mass = (self._class_mass if labels.link == "softmax" else masses).sum()

    def compute(self, k: int) -> tuple[Floats, Floats]:
        """The scales of the shared columns and of the own values: float64 (n_shared,), (n_own,)."""
        if not self._power:
            return self._ones
        columns, prepared = self._prepared.columns, self._prepared
        counts = self._counts_of(k)
        shared = self._of_columns(k, counts, columns)
        if not self._from_rows:
            return shared, self._of_columns(k, counts, prepared.column)
        of_row = np.where(self._labels.has(k), self._of_row, 0.0)
        if not isinstance(self._l, float):
            alone = self._scale(k, *self._weighted(
                k, of_row[prepared.row], self._of_row[prepared.row]), self._smooth(prepared.column))
        else:
            alone = self._scale(
                k, *self._weighted(k, of_row, self._of_row), self._l)[prepared.row]
        return shared, alone

    def _weighted(self, k: int, own: Any, total: Any) -> tuple[Any, Any]:
        """Multiply the sums of a label's rows and of all rows by the weights of its two sides."""
        if self._of_sides is None:
            return own, total
        without_label, with_label = self._of_sides[k]
        # Rounding may make total - own negative.
        return with_label * own, with_label * own + without_label * np.maximum(total - own, 0.0)

    def _of_columns(self, k: int, counts: NDArray[Any], columns: NDArray[np.int64]) -> Floats:
        own: Floats = counts[columns].astype(np.float64)
        if self._of_class is not None:
            own *= self._of_class[k]
        return self._scale(k, *self._weighted(k, own, self._total[columns]),
                           self._smooth(columns))

    def _scale(self, k: int, own: Floats, total: NDArray[Any], l: Any) -> Floats:
        # As `log_count_ratio`, with one logarithm per term. Rounding may make total - own negative.
        ratio = (own + l) / (np.maximum(total - own, 0.0) + l)
        np.log(ratio, out=ratio)
        mass, all_mass = self._weighted(k, self._class_mass[k], self._total_mass)
        ratio += np.log((all_mass - mass + self._smoothing)
                        / (mass + self._smoothing))
        scale: Floats = np.abs(ratio, out=ratio)
        # A square root is several times as quick as a power.
        return np.sqrt(scale) if self._power == 0.5 else scale**self._power

    def _smooth(self, columns: NDArray[np.int64]) -> Any:
        return self._l if isinstance(self._l, float) else self._l[columns]

    def _counter(self, rows: sp.csr_array) -> Callable[[int], NDArray[Any]]:
        """Make a function that counts, for each term, the rows of a class that have it."""
        def count(k: int) -> NDArray[Any]:
            own = np.flatnonzero(self._labels.has(k))
            of_class = rows[own]
            weights = (None if self._weight is None
                       else np.repeat(self._weight[own], np.diff(of_class.indptr)))
            return np.bincount(of_class.indices, weights=weights, minlength=rows.shape[1])

        return count
