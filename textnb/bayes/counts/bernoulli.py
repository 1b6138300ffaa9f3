"""Bernoulli naive Bayes: Σ_t over all terms of log p or log(1-p), present or absent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from textnb.bayes.event_model import CountModel
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.keyness import proportion_z
from textnb.bayes.smoothing import Smoothing, bernoulli_form
from textnb.bayes.sparse_forms import bernoulli_weights
from textnb.bayes.sparse_table import SparseWeights
from textnb.bayes.statistics import CountStatistics
from textnb.errors import ParameterError

if TYPE_CHECKING:
    from textnb.bayes.leave_one_out import LeaveOneOut


@dataclass(frozen=True, eq=False, kw_only=True)
class Bernoulli(CountModel):
    """The event model of `BernoulliNB`."""

    binarize: float | None = 0.0

    name = "BernoulliNB"
    kind = "bernoulli"
    learns_labels = True
    without_terms = "the classes' priors and the terms that are absent"
    # log p is kept beside the weights.
    weights_per_count = 2
    scores_are_log_probabilities = True
    term_z = staticmethod(proportion_z)

    @property
    def above(self) -> float | None:
        return None if self.binarize is None else float(self.binarize)

    def presence_above(self, binary: bool) -> float | None:
        if not binary and self.binarize is None:
            raise ParameterError.naming(
                "BernoulliNB(binarize=None) needs presence, not counts: set {binarize=0.0}, or "
                "{binary=True} in TextClassifier")
        return super().presence_above(binary)

    def check(self, n_features: int, n_classes: int) -> None:
        super().check(n_features, n_classes)
        above = self.binarize
        if above is not None and not (
                isinstance(above, (int, float)) and np.isfinite(above) and above >= 0):
            raise ParameterError.out_of_range("binarize", "None or a number >= 0", above)

    def weigh(
        self, counted: CountStatistics, l: Smoothing, log_prior: Floats
    ) -> tuple[LinearForm, Floats]:
        return bernoulli_form(counted, l, log_prior, self.above)

    def has_sparse_weights(self, statistics: CountStatistics, l: Smoothing) -> bool:
        return not statistics.is_multilabel and np.ndim(l) == 0

    def weigh_sparse(
        self, counted: CountStatistics, l: Smoothing
    ) -> tuple[SparseWeights, Floats | None]:
        return bernoulli_weights(counted.feature_count, counted.class_count, float(np.min(l)))

    def leave_one_out_type(self) -> type[LeaveOneOut]:
        # SciPy is imported where rows are left out.
        from textnb.bayes.leave_one_out import BernoulliLeaveOneOut

        return BernoulliLeaveOneOut
