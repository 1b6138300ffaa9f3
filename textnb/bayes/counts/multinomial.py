"""Multinomial naive Bayes: log P(x, k) = log π_k + Σ_t x_t log θ_kt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from textnb.bayes.event_model import CountModel
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.keyness import dirichlet_z
from textnb.bayes.smoothing import Smoothing, multinomial_log_prob
from textnb.bayes.sparse_forms import label_weights, multinomial_weights
from textnb.bayes.sparse_table import SparseWeights
from textnb.bayes.statistics import CountStatistics

if TYPE_CHECKING:
    from textnb.bayes.leave_one_out import LeaveOneOut


@dataclass(frozen=True, eq=False, kw_only=True)
class Multinomial(CountModel):
    """The event model of `MultinomialNB`.

    Examples
    --------
    >>> counts = CountStatistics(np.array(["a", "b"]), np.array([1, 1]), np.array([[3, 1], [0, 2]]))
    >>> np.exp(Multinomial().derive(counts).weights).round(3).tolist()
    [[0.667, 0.25], [0.333, 0.75]]
    """

    name = "MultinomialNB"
    kind = "multinomial"
    learns_labels = True
    without_terms = "the classes' priors alone"
    scores_are_log_probabilities = True
    term_z = staticmethod(dirichlet_z)

    def weigh(
        self, counted: CountStatistics, l: Smoothing, log_prior: Floats
    ) -> tuple[LinearForm, Floats]:
        log_prob = multinomial_log_prob(counted.feature_count, l)
        form = LinearForm(counted.classes, np.ascontiguousarray(log_prob.T), log_prior)
        return form, form.weights.T

    def has_sparse_weights(self, statistics: CountStatistics, l: Smoothing) -> bool:
        return True

    def weigh_sparse(
        self, counted: CountStatistics, l: Smoothing
    ) -> tuple[SparseWeights, Floats | None]:
        weights = (label_weights(counted, l) if counted.is_multilabel
                   else multinomial_weights(counted.feature_count, l))
        return weights, np.zeros(len(counted.classes))

    def leave_one_out_type(self) -> type[LeaveOneOut]:
        # SciPy is imported where rows are left out.
        from textnb.bayes.leave_one_out import MultinomialLeaveOneOut

        return MultinomialLeaveOneOut
