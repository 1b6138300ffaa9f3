"""A linear model on tf-idf times a power of the log-count ratio: its weights are learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.class_weight import check_class_weight
from textnb.bayes.event_model import EventModel, Learned
from textnb.bayes.features import FeatureMap
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.label_form import LabelForm
from textnb.bayes.label_lists import LabelLists
from textnb.bayes.parameters import MOST_COST, is_number, is_whole
from textnb.bayes.statistics import CountStatistics, as_smoothing
from textnb.bayes.tfidf import check_tfidf, tfidf_map
from textnb.bayes.warm_start import WarmStart
from textnb.errors import ParameterError


@dataclass(frozen=True, eq=False, kw_only=True)
class Linear(EventModel):
    """The event model of `NBLinear`.

    Its statistic counts documents, not occurrences: ratios and document frequencies both come from
    it, so that a file needs nothing else to have the feature map again.
    """

    l: Any = 0.3
    C: float = 1.0
    loss: str = "hinge"
    power: float = 0.5
    tf: str = "sublinear"
    idf: bool = True
    unit_length: bool = True
    tol: float = 1e-2
    max_iter: int = 100
    held_out: float = 0.2

    name = "NBLinear"
    kind = "nblinear"
    learns_labels = True
    from_counts = False
    starts_warm = True
    scores_left_out = True
    link = "sigmoid"
    iterations = "passes and Newton steps"
    without_terms = "the classes' intercepts alone"
    # Its weights are learned, not counted: they rank its terms.
    term_z = None

    @property
    def scores_are_log_probabilities(self) -> bool:
        """Whether margins are log-odds: for the logistic loss, and not for the hinge loss."""
        return self.loss == "log"

    @property
    def counts_beside_weights(self) -> bool:
        return not self.idf

    @property
    def above(self) -> float | None:
        return 0.0 if self.tf == "presence" else None

    def derive(self, statistics: CountStatistics, *, binary: bool = False) -> LinearForm:
        raise ParameterError("NBLinear learns its weights from rows: counts alone don't give them")

    def learn_rows(
        self, rows: Any, labels: NDArray[Any], sample_weight: Floats | None = None, *,
        binary: bool = False, left_out: bool = False,
    ) -> Learned:
        return self._learn(None, rows, labels, sample_weight, binary, left_out)

    def learn_rows_from(
        self, start: WarmStart, rows: Any, labels: NDArray[Any],
        sample_weight: Floats | None = None, *, binary: bool = False, left_out: bool = False,
        statistics: CountStatistics | None = None,
    ) -> Learned:
        if statistics is not None:
            from textnb.bayes.linear import refit_sample

            self.check(rows.shape[1], len(statistics.classes))
            return refit_sample(self, start, rows, labels, statistics, binary)
        return self._learn(start, rows, labels, sample_weight, binary, left_out)

    def _learn(
        self, start: WarmStart | None, rows: Any, labels: NDArray[Any],
        sample_weight: Floats | None, binary: bool, left_out: bool,
    ) -> Learned:
        # SciPy is imported where rows are learned from.
        from textnb.bayes.linear import learn_and_calibrate

        self.check(rows.shape[1], 2)
        if isinstance(labels, LabelLists) and start is not None:
            raise ParameterError.multilabel(f"warm_start of {self.name}")
        return learn_and_calibrate(self, rows, labels, sample_weight, binary, start, left_out)

    def without_choices(self) -> Linear:
        return replace(self, held_out=0.0)

    def form_of_weights(
        self, statistics: CountStatistics, weights: Floats, intercept: Floats, *,
        binary: bool = False,
    ) -> LinearForm:
        form = LabelForm if statistics.is_multilabel else LinearForm
        return form(statistics.classes, np.ascontiguousarray(weights), intercept,
                    features=self.feature_map(statistics, binary))

    def feature_map(self, statistics: CountStatistics, binary: bool = False) -> FeatureMap:
        """What stands between counts and weights.

        Parameters
        ----------
        statistics : CountStatistics
            Documents of each class that hold each term.
        binary : bool
            Whether a term counts once per document, whatever ``tf`` is.
        """
        return tfidf_map(self, statistics, binary)

    def check(self, n_features: int, n_classes: int) -> None:
        if np.min(as_smoothing(self.l, n_features)) <= 0:
            raise ParameterError.out_of_range("l", "above 0 (a count of 0 has no logarithm)",
                                              self.l)
        check_class_weight(self.class_weight)
        if self.loss not in ("hinge", "log"):
            raise ParameterError.unknown_choice("loss", self.loss, ("hinge", "log"))
        check_tfidf(self)
        if not (is_number(self.C) and 0 < self.C <= MOST_COST):
            raise ParameterError.out_of_range(
                "C", f"above 0 and at most {MOST_COST:g} (so little regularisation is none)",
                self.C)
        if not (is_number(self.tol) and np.isfinite(self.tol) and self.tol > 0):
            raise ParameterError.out_of_range("tol", "a finite number above 0", self.tol)
        if not (is_number(self.power) and 0.0 <= self.power <= 2.0):
            raise ParameterError.out_of_range("power", "in [0, 2]", self.power)
        if not (is_whole(self.max_iter) and 1 <= self.max_iter < 2**31):
            raise ParameterError.out_of_range("max_iter", "an integer above 0 and below 2**31",
                                              self.max_iter)
        if not (is_number(self.held_out) and 0.0 <= self.held_out <= 0.5):
            raise ParameterError.out_of_range("held_out", "in [0, 0.5]", self.held_out)
