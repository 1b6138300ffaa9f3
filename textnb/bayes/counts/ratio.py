"""A discriminative linear model on log-count ratios: its weights are learned from rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.class_weight import check_class_weight
from textnb.bayes.event_model import EventModel, Learned
from textnb.bayes.features import presence_map
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.parameters import is_number, is_whole
from textnb.bayes.statistics import CountStatistics, as_smoothing
from textnb.errors import ParameterError


@dataclass(frozen=True, eq=False, kw_only=True)
class CountRatio(EventModel):
    """The event model of `NBLogisticRegression`."""

    C: float = 1.0
    beta: float = 1.0
    loss: str = "log"
    binarize: bool = True
    tol: float | None = None
    max_iter: int = 5
    early_stopping: bool = False
    validation_fraction: float = 0.1
    random_state: int | None = 0

    name = "NBLogisticRegression"
    kind = "nblr"
    from_counts = False
    without_terms = "the classes' intercepts alone"
    # Its weights are learned, not counted: they rank its terms.
    term_z = None

    @property
    def scores_are_log_probabilities(self) -> bool:
        """Whether margins are log-odds: for the logistic loss, and not for the hinge loss."""
        return self.loss == "log"

    @property
    def above(self) -> float | None:
        return 0.0 if self.binarize else None

    def derive(self, statistics: CountStatistics, *, binary: bool = False) -> LinearForm:
        raise ParameterError("NBLogisticRegression learns its weights from rows: counts alone "
                             "don't give them")

    def learn_rows(
        self, rows: Any, labels: NDArray[Any], sample_weight: Floats | None = None, *,
        binary: bool = False,
    ) -> Learned:
        # SciPy is imported where rows are learned from.
        from textnb.bayes.ratio import learn_from_rows, rows_as_used

        self.check(rows.shape[1], 2)
        learned = learn_from_rows(
            self, rows_as_used(rows, bool(self.binarize)), labels, sample_weight)
        if not binary:
            return learned
        return replace(learned, form=learned.form.of_presence())

    def form_of_weights(
        self, statistics: CountStatistics, weights: Floats, intercept: Floats, *,
        binary: bool = False,
    ) -> LinearForm:
        return LinearForm(statistics.classes, np.ascontiguousarray(weights), intercept,
                          features=presence_map(self.presence_above(binary)))

    def check(self, n_features: int, n_classes: int) -> None:
        if np.min(as_smoothing(self.l, n_features)) <= 0:
            raise ParameterError.out_of_range("l", "above 0 (a count of 0 has no logarithm)",
                                              self.l)
        check_class_weight(self.class_weight)
        if self.loss not in ("log", "hinge"):
            raise ParameterError.unknown_choice("loss", self.loss, ("log", "hinge"))
        if not (isinstance(self.beta, (int, float)) and 0.0 <= self.beta <= 1.0):
            raise ParameterError.out_of_range("beta", "in [0, 1]", self.beta)
        for name in ("C",) if self.tol is None else ("C", "tol"):
            value = getattr(self, name)
            if not (is_number(value) and np.isfinite(value) and value > 0):
                raise ParameterError.out_of_range(name, "a finite number above 0", value)
        if not (is_whole(self.max_iter) and 1 <= self.max_iter < 2**31):
            raise ParameterError.out_of_range("max_iter", "an integer above 0 and below 2**31",
                                              self.max_iter)
        if not isinstance(self.early_stopping, (bool, np.bool_)):
            raise ParameterError.out_of_range("early_stopping", "True or False",
                                              self.early_stopping)
        if not (is_number(self.validation_fraction) and 0.0 < self.validation_fraction < 1.0):
            raise ParameterError.out_of_range("validation_fraction", "above 0 and below 1",
                                              self.validation_fraction)
