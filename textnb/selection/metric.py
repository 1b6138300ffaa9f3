"""Metrics that a search for settings can optimise, computed from scores of held-out documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.classes import known_class
from textnb.bayes.decision import log_odds
from textnb.bayes.forms import Floats, log_posterior
from textnb.errors import Mention, ParameterError

NAMES = ("accuracy", "macro-f1", "log-loss", "precision@recall", "recall@fpr")
# The metrics for lists of labels.
LABEL_NAMES = ("micro-f1", "macro-f1", "example-f1", "subset-accuracy")
# The lowest probability in a log loss. One document whose label has the probability 0 would make
# the mean infinite.
_MIN_PROBABILITY = 1e-15


@dataclass(frozen=True)
class Metric:
    """A metric of the scores of held-out documents.

    Attributes
    ----------
    name : str
        One of "accuracy", "macro-f1", "log-loss", "precision@recall" and "recall@fpr"; for lists
        of labels "micro-f1", "macro-f1", "example-f1" or "subset-accuracy".
    at : float or None
        The minimum recall of "precision@recall", or the maximum false-positive rate of
        "recall@fpr"; None for the others.
    positive : label or None
        The class that "precision@recall" and "recall@fpr" measure; None for the others.
    """

    name: str
    at: float | None = None
    positive: Any = None

    @classmethod
    def of(cls, text: str | None, positive: Any = None, of_lists: bool = False) -> Metric:
        """Parse the name of a metric, such as ``"recall@fpr=0.001"``.

        Without a name, it is "accuracy", or "micro-f1" for lists of labels.

        Raises
        ------
        ParameterError
            If there is no such metric, or its number or class is missing or not wanted.

        Examples
        --------
        >>> Metric.of("recall@fpr=0.001", "spam")
        Metric(name='recall@fpr', at=0.001, positive='spam')
        """
        names = LABEL_NAMES if of_lists else NAMES
        text = names[0] if text is None else text
        if not isinstance(text, str):
            raise ParameterError.out_of_range("metric", f"one of {', '.join(names)}", text)
        name, equals, number = text.partition("=")
        if name not in names:
            raise ParameterError.unknown_choice("metric", name, names)
        if "@" not in name:
            if equals:
                raise ParameterError(f"metric {name} takes no number; got {text!r}")
            if positive is not None:
                raise ParameterError.naming_settings(
                    "{positive} is for metrics of one class, such as recall@fpr=0.001; got {got}",
                    got=Mention("metric", repr(text)))
            return cls(name)
        try:
            at = float(number)
        except ValueError:
            at = -1.0  # Refused below, as any number outside [0, 1].
        if not 0.0 <= at <= 1.0:
            raise ParameterError(f"metric {name} needs a rate in [0, 1], such as {name}=0.01; "
                                 f"got {text!r}")
        if positive is None:
            raise ParameterError.naming_settings(
                "metric {name} measures one class: name it with {positive}", name=name)
        return cls(name, at, positive)

    def __str__(self) -> str:
        return self.name if self.at is None else f"{self.name}={self.at:g}"

    @property
    def needs_probabilities(self) -> bool:
        """Whether the metric needs calibrated probabilities, and not only the order of scores."""
        return self.name == "log-loss"

    @property
    def label_goal(self) -> str:
        """What thresholds of labels are chosen for: "f1" of each label, or "micro-f1" of all."""
        return "f1" if self.name == "macro-f1" else "micro-f1"

    def gain(self, value: float) -> float:
        """The value, negated if lower values of this metric are better."""
        return -value if self.name == "log-loss" else value

    def check(self, classes: list[Any]) -> None:
        """Raise ParameterError if the positive class is not one of the classes."""
        if self.positive is not None:
            known_class(classes, self.positive)

    def value(self, scores: Floats, codes: NDArray[Any], classes: list[Any]) -> float:
        """Compute the metric.

        Parameters
        ----------
        scores : float64 (n_documents, n_classes)
            Log-probabilities up to a constant of each row; -inf for a class without a score. For
            lists of labels, a label is predicted where its score is above 0.
        codes : int64 (n_documents,), or bool (n_documents, n_labels)
            The class of each document; for lists of labels, which labels each document has.
        classes : list (n_classes,)
        """
        if codes.ndim == 2:
            return self._of_labels(codes, scores > 0.0)
        if self.name == "accuracy":
            return float((scores.argmax(axis=1) == codes).mean())
        if self.name == "macro-f1":
            predicted, n_classes = scores.argmax(axis=1), scores.shape[1]
            sizes = np.bincount(codes, minlength=n_classes)
            right = np.bincount(codes[codes == predicted], minlength=n_classes)
            f1 = _f1(right, sizes + np.bincount(predicted, minlength=n_classes))
            # The mean over the classes that occur, as a bootstrap sample may lack some.
            return float(f1[sizes > 0].mean())
        if self.name == "log-loss":
            log_probability = log_posterior(scores)[np.arange(len(codes)), codes]
            return float(-np.maximum(log_probability, np.log(_MIN_PROBABILITY)).mean())
        # Imported here, as the import takes a second, and most metrics do not need it.
        from sklearn.metrics import precision_recall_curve, roc_curve

        k = classes.index(self.positive)
        is_positive = codes == k
        if is_positive.all() or not is_positive.any():
            return float("nan")
        # A document that is impossible under every class has NaN, and comes last.
        class_scores = np.nan_to_num(log_odds(scores)[:, k], nan=-np.inf)
        # Scikit-learn refuses infinite scores. No finite score is as large as these limits.
        class_scores = np.clip(class_scores, -1e300, 1e300)
        if self.name == "recall@fpr":
            false_positive_rate, recall, _ = roc_curve(
                is_positive, class_scores, drop_intermediate=False)
            return float(recall[false_positive_rate <= self.at].max())
        precision, recall, _ = precision_recall_curve(is_positive, class_scores)
        return float(precision[recall >= self.at].max())

    def _of_labels(self, actual: NDArray[np.bool_], predictions: NDArray[np.bool_]) -> float:
        """The metric of lists of labels; both masks are (n_documents, n_labels)."""
        if self.name == "subset-accuracy":
            return float((actual == predictions).all(axis=1).mean())
        # As in `textnb.evaluate`: a label that no document has and that is never predicted is left
        # out, and a document without labels is right if none is predicted. F1 is of all pairs, of
        # each label, or of each document.
        axis, empty = {"micro-f1": (None, np.nan), "macro-f1": (0, np.nan),
                       "example-f1": (1, 1.0)}[self.name]
        f1 = _f1(np.sum(actual & predictions, axis),
                 np.sum(actual, axis) + np.sum(predictions, axis), empty)
        f1 = f1[~np.isnan(f1)]
        return float(f1.mean()) if f1.size else float("nan")


def _f1(right: ArrayLike, total: ArrayLike, empty: float = np.nan) -> Floats:
    """F1 = 2 · right / total; ``empty`` where ``total`` is 0.

    ``right`` is the number of right predictions; ``total`` is the number of all predictions plus
    the number of true labels.
    """
    right, total = np.atleast_1d(right), np.atleast_1d(total)
    f1: Floats = np.full(len(total), empty)
    np.divide(2 * right, total, out=f1, where=total > 0)
    return f1
