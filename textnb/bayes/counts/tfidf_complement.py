"""Complement naive Bayes on tf-idf: weights are -log θ of all other classes, on mapped rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.class_weight import check_class_weight
from textnb.bayes.event_model import EventModel, Learned
from textnb.bayes.features import FeatureMap
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.keyness import proportion_z
from textnb.bayes.statistics import CountStatistics, as_smoothing
from textnb.bayes.tfidf import check_tfidf, tfidf_map
from textnb.errors import ParameterError

_FROM_ROWS = ("TfidfComplementNB learns from documents, whose features depend on the document "
              "frequencies of all: counts alone don't give its weights")


@dataclass(frozen=True, eq=False, kw_only=True)
class TfidfComplement(EventModel):
    """The event model of `TfidfComplementNB`.

    Each document more changes the idf of its terms, and so the features of all documents: sums of
    features don't add over sets of rows. The statistic counts documents, as that of `Linear`. It
    gives the feature map again, and a file keeps the weights beside it.
    """

    norm: bool = False
    tf: str = "sublinear"
    idf: bool = True
    unit_length: bool = True

    name = "TfidfComplementNB"
    kind = "complement-tfidf"
    from_counts = False
    without_terms = "nothing: all classes score the same, and the first of them is answered"
    # Weights of the other classes' terms, not of a model of the text.
    scores_are_log_probabilities = False
    # Its counts are documents.
    term_z = staticmethod(proportion_z)

    @property
    def above(self) -> float | None:
        return 0.0 if self.tf == "presence" else None

    def derive(self, statistics: CountStatistics, *, binary: bool = False) -> LinearForm:
        raise ParameterError(_FROM_ROWS)

    def learn_rows(
        self, rows: Any, labels: NDArray[Any], sample_weight: Floats | None = None, *,
        binary: bool = False,
    ) -> Learned:
        # SciPy is imported where rows are learned from.
        from textnb.bayes.tfidf_complement import learn_from_rows

        self.check(rows.shape[1], 2)
        return learn_from_rows(self, rows, labels, sample_weight, binary)

    def form_of_weights(
        self, statistics: CountStatistics, weights: Floats, intercept: Floats, *,
        binary: bool = False,
    ) -> LinearForm:
        return LinearForm(statistics.classes, np.ascontiguousarray(weights), intercept,
                          features=self.feature_map(statistics, binary))

    def feature_map(self, statistics: CountStatistics, binary: bool = False) -> FeatureMap:
        """What stands between counts and weights, as `tfidf_map`."""
        return tfidf_map(self, statistics, binary)

    def check(self, n_features: int, n_classes: int) -> None:
        l = as_smoothing(self.l, n_features)
        if self.norm and np.min(l) == 0:
            raise ParameterError("norm divides by the sum of the weights, which is infinite with "
                                 "l = 0; use l > 0")
        check_class_weight(self.class_weight)
        check_tfidf(self)
        if not isinstance(self.norm, (bool, np.bool_)):
            raise ParameterError.out_of_range("norm", "True or False", self.norm)
