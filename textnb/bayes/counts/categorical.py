"""Categorical naive Bayes: columns are the categories of features, and no terms."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.event_model import CountModel
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.smoothing import Smoothing, categorical_log_prob
from textnb.bayes.statistics import CountStatistics


@dataclass(frozen=True, eq=False, kw_only=True)
class Categorical(CountModel):
    """The event model of `CategoricalNB`.

    Attributes
    ----------
    n_categories : int64 (n_features,)
        As many columns has each feature, one after the other.
    """

    n_categories: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    name = "CategoricalNB"
    of_terms = False
    without_terms = "the classes' priors alone"
    scores_are_log_probabilities = True
    term_z = None

    def weigh(
        self, counted: CountStatistics, l: Smoothing, log_prior: Floats
    ) -> tuple[LinearForm, Floats]:
        log_prob = categorical_log_prob(counted.feature_count, self.n_categories, l)
        return LinearForm(counted.classes, np.ascontiguousarray(log_prob.T), log_prior), log_prob
