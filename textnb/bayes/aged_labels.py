"""Counts of labels that age: a label and its rest are two classes, whose ages count alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.statistics import CountStatistics, difference
from textnb.errors import DataError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class AgedLabels(CountStatistics):
    """Counts of labels, each of which ages from the newest period with documents of the label.

    Those of all rows age from the newest period of all.

    Attributes
    ----------
    share : float64 (n_labels,)
        What a label's counts have to be multiplied by to be part of those of all rows.
    rests : mapping of int to (float, float64 (n_features,))
        Rows without a label, and their counts, for the labels whose rest ages from another period
        than all rows. All rows of the newest period have such a label, so they are few.
    """

    share: Floats = field(default_factory=lambda: np.zeros(0))
    rests: Mapping[int, tuple[float, Floats]] = field(default_factory=dict)

    subtracts: ClassVar[bool] = False

    @property
    def shares(self) -> Floats:
        one = self.select(np.array([0]))
        sides = np.array([one.against_rest(k).class_count for k in range(len(self.classes))])
        shares: Floats = sides[:, 1] / sides.sum(axis=1)
        return shares

    def against_rest(self, k: int) -> CountStatistics:
        assert self.total is not None
        own, counts, share = self.class_count[k], self.feature_count[k], self.share[k]
        rows, rest = self.rests.get(k) or (
            difference(np.array([self.rows]), share * own), difference(self.total, share * counts))
        return CountStatistics(
            np.array([False, True]), np.append(rows, own), np.stack([rest, counts]))

    def select(self, features: NDArray[Any]) -> AgedLabels:
        return self._with(super().select(features), lambda values: values[features])

    def widened(self, columns: NDArray[np.int64], n_features: int) -> AgedLabels:
        def widen(values: Floats) -> Floats:
            wide = np.zeros(n_features)
            wide[columns] = values
            return wide

        return self._with(super().widened(columns, n_features), widen)

    def _with(self, counts: CountStatistics, change: Any) -> AgedLabels:
        return AgedLabels(
            counts.classes, counts.class_count, counts.feature_count, counts.rows, counts.total,
            share=self.share,
            rests={k: (rows, change(values)) for k, (rows, values) in self.rests.items()})

    def _align(self, other: CountStatistics) -> Any:
        raise DataError("counts that have aged are not added: those of their periods are")
