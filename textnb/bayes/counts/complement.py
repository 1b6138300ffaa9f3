"""Complement naive Bayes: weights are -log θ of all other classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from textnb.bayes import sparse_forms
from textnb.bayes.event_model import CountModel
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.keyness import dirichlet_z
from textnb.bayes.smoothing import Smoothing, complement_weights
from textnb.bayes.sparse_forms import label_weights
from textnb.bayes.sparse_table import SparseWeights
from textnb.bayes.statistics import CountStatistics, is_auto
from textnb.errors import ParameterError

if TYPE_CHECKING:
    from textnb.bayes.leave_one_out import LeaveOneOut


@dataclass(frozen=True, eq=False, kw_only=True)
class Complement(CountModel):
    """The event model of `ComplementNB`."""

    norm: bool = False

    name = "ComplementNB"
    kind = "complement"
    learns_labels = True
    without_terms = "nothing: all classes score the same, and the first of them is answered"
    # Weights of the other classes' terms, not of a model of the text.
    scores_are_log_probabilities = False
    term_z = staticmethod(dirichlet_z)

    def check(self, n_features: int, n_classes: int) -> None:
        super().check(n_features, n_classes)
        if self.norm and is_auto(self.l):
            raise ParameterError.naming(
                "{l='auto'} leaves rows out by subtraction, which {norm=True} does not allow: give "
                "{l} as a number, or {norm=False}")

    def weigh(
        self, counted: CountStatistics, l: Smoothing, log_prior: Floats
    ) -> tuple[LinearForm, Floats]:
        if self.norm and np.min(l) == 0:
            raise ParameterError("norm divides by the sum of the weights, which is infinite with "
                                 "l = 0; use l > 0")
        weights = complement_weights(counted.feature_count, l, bool(self.norm))
        # The scores hold no prior, except where there is one class.
        alone = len(counted.classes) == 1
        form = LinearForm(counted.classes, np.ascontiguousarray(weights.T),
                          log_prior if alone else np.zeros(len(counted.classes)))
        return form, form.weights.T

    def has_sparse_weights(self, statistics: CountStatistics, l: Smoothing) -> bool:
        return not self.norm

    def weigh_sparse(
        self, counted: CountStatistics, l: Smoothing
    ) -> tuple[SparseWeights, Floats | None]:
        # Of two classes, a label and its rest, each is the complement of the other.
        if counted.is_multilabel:
            return label_weights(counted, l), None
        weights = sparse_forms.complement_weights(counted.feature_count, l)
        return weights, None if len(counted.classes) > 1 else np.zeros(1)

    @property
    def obstacle_to_leaving_out(self) -> str | None:
        return "norm" if self.norm else super().obstacle_to_leaving_out

    def leave_one_out_type(self) -> type[LeaveOneOut]:
        if self.norm:
            raise ParameterError.naming(
                "{norm=True} divides by the sum of all weights, which each row changes: to leave "
                "rows out, use k folds, or {norm=False}")
        # SciPy is imported where rows are left out.
        from textnb.bayes.leave_one_out import ComplementLeaveOneOut

        return ComplementLeaveOneOut
