"""What a search for settings maximises: one number from scores of held-out documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score, precision_recall_curve, roc_curve

from textnb.bayes.decision import log_odds
from textnb.bayes.forms import Floats, log_posterior
from textnb.errors import Mention, ParameterError

NAMES = ("accuracy", "macro-f1", "log-loss", "precision@recall", "recall@fpr")
# The least probability that a log loss counts: one impossible label must not hide all others.
_LEAST = 1e-15


@dataclass(frozen=True)
class Metric:
    """A figure of held-out scores.

    Attributes
    ----------
    name : str
        One of "accuracy", "macro-f1", "log-loss", "precision@recall" and "recall@fpr".
    at : float or None
        The recall, or the false-positive rate, that is demanded.
    positive : label or None
        The class that the last two are about.
    """

    name: str
    at: float | None = None
    positive: Any = None

    @classmethod
    def of(cls, written: str, positive: Any = None) -> Metric:
        """The metric that a text such as ``"recall@fpr=0.001"`` names.

        Raises
        ------
        ParameterError
            If it names none, or a class is missing or of no use.

        Examples
        --------
        >>> Metric.of("recall@fpr=0.001", "spam")
        Metric(name='recall@fpr', at=0.001, positive='spam')
        """
        if not isinstance(written, str):
            raise ParameterError.out_of_range("metric", f"one of {', '.join(NAMES)}", written)
        name, given, number = written.partition("=")
        if name not in NAMES:
            raise ParameterError.unknown_choice("metric", name, NAMES)
        if "@" not in name:
            if given:
                raise ParameterError(f"metric {name} takes no number; got {written!r}")
            if positive is not None:
                raise ParameterError.naming(
                    "{positive} is for metrics of one class, such as recall@fpr=0.001; got {got}",
                    got=Mention("metric", repr(written)))
            return cls(name)
        try:
            at = float(number)
        except ValueError:
            at = -1.0
        if not 0.0 <= at <= 1.0:
            raise ParameterError(f"metric {name} needs a rate in [0, 1], such as {name}=0.01; "
                                 f"got {written!r}")
        if positive is None:
            raise ParameterError(f"metric {name} is about one class: name it with positive")
        return cls(name, at, positive)

    def __str__(self) -> str:
        return self.name if self.at is None else f"{self.name}={self.at:g}"

    @property
    def needs_probabilities(self) -> bool:
        """Whether calibrated probabilities change it: else the order of scores decides."""
        return self.name == "log-loss"

    def gain(self, value: float) -> float:
        """The value so that more is better."""
        return -value if self.name == "log-loss" else value

    def check(self, classes: list[Any]) -> None:
        """Raises ParameterError if the positive class is none of the classes."""
        if self.positive is not None and self.positive not in classes:
            raise ParameterError.unknown_choice("positive", self.positive, classes)

    def value(self, scores: Floats, codes: NDArray[np.int64], classes: list[Any]) -> float:
        """The figure of scores.

        Parameters
        ----------
        scores : float64 (n_documents, n_classes)
            Log-probabilities up to a constant of each row; -inf for a class without a score.
        codes : int64 (n_documents,)
            The class of each document.
        classes : list (n_classes,)
        """
        if self.name == "accuracy":
            return float((scores.argmax(axis=1) == codes).mean())
        if self.name == "macro-f1":
            # Of the classes that are there: a bootstrap sample may lack some.
            return float(f1_score(codes, scores.argmax(axis=1), labels=np.unique(codes),
                                  average="macro", zero_division=0.0))
        if self.name == "log-loss":
            own = log_posterior(scores)[np.arange(len(codes)), codes]
            return float(-np.maximum(own, np.log(_LEAST)).mean())
        k = classes.index(self.positive)
        positive = codes == k
        if positive.all() or not positive.any():
            return float("nan")
        odds = np.nan_to_num(log_odds(scores)[:, k], nan=-np.inf)
        odds = np.clip(odds, -1e300, 1e300)
        if self.name == "recall@fpr":
            false, true, _ = roc_curve(positive, odds, drop_intermediate=False)
            return float(true[false <= self.at].max())
        precision, recall, _ = precision_recall_curve(positive, odds)
        return float(precision[recall >= self.at].max())
