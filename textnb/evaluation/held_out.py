"""Scores of labelled documents by models that were trained without them.

Calibration, thresholds and the report use these scores. They come from held-out rows, from
cross-validation or from leave-one-out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.classes import known_class
from textnb.bayes.decision import Decision, choose_labels, log_odds
from textnb.bayes.forms import Floats, log_posterior
from textnb.bayes.labels import Link
from textnb.errors import DataError, ParameterError, quantity
from textnb.evaluation import indicators
from textnb.evaluation.binomial import check_share, upper_bound
from textnb.evaluation.labels import evaluate_lists, indicators_of
from textnb.evaluation.metrics import evaluate_pairs
from textnb.evaluation.novelty import UNKNOWN, Novelty
from textnb.evaluation.roc import Roc, check_positive, errors_by_threshold, roc
from textnb.models.protocol import MissingAttributeError
from textnb.runtime import notebook
from textnb.scoring.columns import best_class, lists_of_mask, null_unless
from textnb.scoring.scorer import rows_at_a_time


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores of documents by models that were trained without them.

    Below, lists mean multilabel data: a list of labels per document.

    Attributes
    ----------
    classes : (n_classes,)
    scores : float64 (n_documents, n_classes)
        As `LinearForm.scores` returns them: joint log-probabilities (base e) or margins; after
        `calibrated`, divided by temperatures. For lists, log-odds or margins, which stay
        uncalibrated. -inf for a label that was not in the training set of the document's model.
    actual : int64 (n_documents,), or bool (n_documents, n_labels)
        Index of each document's class, -1 if it is not among the classes; for lists, whether each
        document has each label.
    lengths : float64 (n_documents,)
        The sum of each document's counts.
    method : str
        "leave-one-out", "5 folds" and so on. For rows that a user passed as held out, the verdict
        of ``novelty``: "held-out rows", "rows that the model has probably learned", or "rows given
        as held out (can't be verified)".
    folds : int64 (n_documents,) or None
        The fold of each document, if each fold was scored by its own model.
    calibration : Calibration or None
        The calibration that `calibrated` has applied to the scores.
    without_class : bool (n_documents,) or None
        Documents whose class was missing from the training set of their model: the class has one
        document, or is in one fold only. None if there is no such document. They count as errors,
        and are left out of all measures of probabilities.
    novelty : Novelty or None
        For rows that a user passed as held out: whether their terms suggest that the model was
        trained on them.
    posterior : float64 (n_documents, n_classes) or None
        Scores that give the probabilities, if these differ from ``scores``: calibrated by each
        fold's own model, as `NBLinear` does in training, or, for lists, by `calibrated`.
    link : {"softmax", "sigmoid"}
        "sigmoid" for lists of labels; methods for single labels then raise a ParameterError.
    unknown : Series (n_documents,) or None
        Labels that are not among the classes: null for a document without such a label; for lists,
        a list per document. They count as errors. None if there are none, or only their number is
        known.
    answers : bool (n_documents, n_labels) or None
        For lists, the predictions by the models' own thresholds; if None, labels that score above 0
        are predicted.

    Examples
    --------
    >>> from textnb import TextClassifier, held_out
    >>> model = TextClassifier().fit(["aa", "bb"], ["x", "y"])
    >>> held = held_out(model, pl.DataFrame({"text": ["aa", "bb bb"], "label": ["x", "x"]}))
    >>> held.actual.tolist(), held.lengths.tolist(), held.predicted.tolist()
    ([0, 0], [1.0, 2.0], [0, 1])

    With lists of labels:

    >>> news = pl.DataFrame({"text": ["corn", "bank", "corn bank"] * 5,
    ...                      "label": [["grain"], ["money"], ["grain", "money"]] * 5})
    >>> held_out(TextClassifier().fit(news), news)
    HeldOut(15 documents, 2 labels, micro F1 1.0000, rows given as held out (can't be verified))
    """

    classes: NDArray[Any]
    scores: Floats
    actual: NDArray[Any]
    lengths: Floats
    method: str
    folds: NDArray[np.int64] | None = None
    calibration: Calibration | None = None
    without_class: NDArray[np.bool_] | None = None
    novelty: Novelty | None = None
    posterior: Floats | None = None
    link: Link = "softmax"
    unknown: pl.Series | None = None
    answers: NDArray[np.bool_] | None = None

    @property
    def is_multilabel(self) -> bool:
        """Whether documents have lists of labels."""
        return self.link == "sigmoid"

    def __repr__(self) -> str:
        noun, measure = "label" if self.is_multilabel else "class", ""
        if len(self):
            measure = (f"micro F1 {self.measure()['micro_f1']:.4f}, " if self.is_multilabel else
                       f"accuracy {self.accuracy:.4f}, ")
        calibrated = ", calibrated" if self.is_calibrated else ""
        return (f"HeldOut({quantity(len(self), 'document')}, {quantity(len(self.classes), noun)}, "
                f"{measure}{self.method}{calibrated})")

    def _repr_html_(self) -> str:
        if self.is_multilabel:
            return notebook.box(repr(self))
        names = self.classes.tolist()
        # Index -1, for unknown labels and impossible rows, is the last row or column.
        counts = np.zeros((len(names) + 1, len(names) + 1), dtype=np.int64)
        np.add.at(counts, (self.actual, self.predicted), 1)
        unknown = ["(unknown label)"] if counts[-1].any() else []
        impossible = ["(impossible)"] if counts[:, -1].any() else []
        return notebook.box(repr(self), notebook.matrix(
            [*names, *unknown], counts.tolist(), [*names, *impossible],
            "Documents by label (rows) and prediction (columns)"))

    def __len__(self) -> int:
        return len(self.actual)

    @property
    def predicted(self) -> NDArray[Any]:
        """Index of the most probable class, -1 for a row that every class scores -inf.

        For lists of labels, see `chosen`.
        """
        if self.is_multilabel:
            return self.chosen()
        impossible = np.isneginf(self.scores).all(axis=1)
        return np.where(impossible, UNKNOWN, best_class(self.scores)).astype(np.int64)

    def chosen(self, decision: Decision | None = None) -> NDArray[np.bool_]:
        """Predicted labels, for lists of labels: bool (n_documents, n_labels).

        Parameters
        ----------
        decision : Decision, optional
            Thresholds; without it, ``answers``, or else labels with scores above 0.

        Raises
        ------
        ParameterError
            If documents have one label each.
        """
        check_held_out(self, of_lists=True)
        if decision is None and self.answers is not None:
            return self.answers
        return choose_labels(self.scores, self.classes.tolist(), decision)

    def measure(self, decision: Decision | None = None) -> dict[str, float]:
        """The measures of `LabelEvaluation` that need no scores, by name; for lists of labels."""
        _, true, predicted = indicators_of(self.labels, pl.Series(self.classes.tolist()),
                                           indicators.of_mask(self.chosen(decision)))
        return indicators.measures(true, predicted)

    @property
    def labels(self) -> pl.Series:
        """The true labels of the documents by name, including unknown ones."""
        classes = pl.Series(self.classes.tolist())
        if self.is_multilabel:
            known = lists_of_mask(self.actual, classes)
            # No label is both known and unknown. A union of sets is not defined for Booleans.
            return known if self.unknown is None else known.list.concat(self.unknown)
        known = classes.gather(pl.Series(self.actual).replace(UNKNOWN, None))
        return known if self.unknown is None else known.fill_null(self.unknown)

    @property
    def n_unknown(self) -> int:
        """The number of true labels that are not among the classes."""
        if not self.is_multilabel:
            return int((self.actual == UNKNOWN).sum())
        return 0 if self.unknown is None else int(self.unknown.list.len().sum())

    @property
    def accuracy(self) -> float:
        """Share of documents with a correct prediction; for lists, subset accuracy."""
        return float(self.right.mean())

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether each prediction is correct; for lists, all labels: (n_documents,)."""
        right = np.asarray(self.predicted == self.actual)
        if not self.is_multilabel:
            return np.asarray(right & (self.actual != UNKNOWN))
        all_known = True if self.unknown is None else (self.unknown.list.len() == 0).to_numpy()
        return np.asarray(right.all(axis=1) & all_known)

    def calibrated(self, calibration: Calibration | None) -> HeldOut:
        """The same documents with calibrated scores; unchanged if ``calibration`` is None.

        For lists of labels only `probability_scores` change, as thresholds apply to ``scores``.

        Raises
        ------
        ParameterError
            If the scores are calibrated already.
        """
        if calibration is None:
            return self
        if self.calibration is not None:
            raise ParameterError("these scores are calibrated already, and would be "
                                 "calibrated twice: leave calibration= out, or pass uncalibrated "
                                 "scores")
        calibration.check_classes(len(self.classes), self.is_multilabel)
        scores = calibration.apply(self.scores, self.lengths)
        if self.is_multilabel:
            return replace(self, posterior=scores, calibration=calibration)
        return replace(self, scores=scores, calibration=calibration, posterior=None)

    @property
    def is_calibrated(self) -> bool:
        """Whether `probability_scores` are calibrated, all alike or fold by fold."""
        return self.calibration is not None or self.posterior is not None

    @property
    def probability_scores(self) -> Floats:
        """Scores whose softmax (lists: sigmoid) is the probability: (n_documents, n_classes)."""
        return self.scores if self.posterior is None else self.posterior

    @property
    def odds(self) -> Floats:
        """Log-odds (base e) of each class against the others: (n_documents, n_classes).

        -inf in rows that every class scores -inf.
        """
        check_held_out(self)
        odds = log_odds(self.scores)
        odds[np.isnan(odds)] = -np.inf
        return odds

    @property
    def fair_odds(self) -> Floats:
        """As `odds`, but rows that every class scores -inf have equal odds for all classes."""
        check_held_out(self)
        impossible = np.isneginf(self.scores).all(axis=1, keepdims=True)
        odds = log_odds(np.where(impossible, 0.0, self.scores))
        return np.where(np.isnan(odds), 0.0, odds)

    def log_odds(self, label: Any) -> Floats:
        """The `odds` of one class: (n_documents,)."""
        labels = self.classes.tolist()
        return self.odds[:, labels.index(known_class(labels, label, "class"))]

    def log_probability(self) -> Floats:
        """log P(true label | document), base e: (n_documents,); -inf for an unknown label."""
        check_held_out(self)
        with np.errstate(invalid="ignore"):
            posterior = log_posterior(self.probability_scores)
        # For an unknown label (-1), the value of class 0 takes its place, and is not used.
        logs = posterior[np.arange(len(self)), np.maximum(self.actual, 0)]
        return np.where((self.actual == UNKNOWN) | np.isnan(logs), -np.inf, logs)

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Whether measures of probabilities include each document: (n_documents,).

        They do if its class was in the training set of the model that scored it.
        """
        check_held_out(self)
        known: NDArray[np.bool_] = self.actual != UNKNOWN
        return known if self.without_class is None else known & ~self.without_class

    @property
    def not_judged(self) -> int:
        """The number of documents that are not `judged`."""
        return len(self) - int(self.judged.sum())

    @property
    def log_loss(self) -> float:
        """Mean of -log P(true label | document), base e, over the documents that are `judged`.

        Infinite if a true label has probability 0; NaN without documents. For lists of labels, the
        mean binary log loss over all pairs of document and label with finite scores.
        """
        if self.is_multilabel:
            finite = np.isfinite(self.scores)
            signs = np.where(self.actual, -1.0, 1.0)[finite]
            return float(np.logaddexp(0.0, signs * self.probability_scores[finite]).mean())
        logs = self.log_probability()[self.judged]
        return _mean_loss(logs) if len(logs) else math.nan

    def take(self, rows: NDArray[Any]) -> HeldOut:
        """Select documents by a mask or by indices."""
        arrays = {name: getattr(self, name)[rows] for name in (
            "scores", "actual", "lengths", "folds", "without_class", "posterior", "answers")
            if getattr(self, name) is not None}
        unknown = None if self.unknown is None else self.unknown.gather(np.arange(len(self))[rows])
        return replace(self, **arrays, unknown=unknown)

    @staticmethod
    def joined(parts: Sequence[HeldOut]) -> HeldOut:
        """Concatenate the documents of parts, which have neither ``folds`` nor ``posterior``."""
        first = parts[0]
        arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts])
                                  for name in ("scores", "actual", "lengths", "answers")
                                  if getattr(first, name) is not None}
        if any(part.without_class is not None for part in parts):
            arrays["without_class"] = np.concatenate([
                np.zeros(len(part), dtype=np.bool_) if part.without_class is None
                else part.without_class for part in parts])
        return replace(first, **arrays, unknown=None if first.unknown is None else pl.concat(
            [part.unknown for part in parts if part.unknown is not None]))

    def evaluate(self, decision: Decision | None = None) -> Any:
        """Measure accuracy, precision, recall and confusion, as `textnb.evaluate` does for rows.

        Parameters
        ----------
        decision : Decision, optional
            Its answers are measured too. For lists of labels, they are the predictions: see
            `chosen`.

        Returns
        -------
        Evaluation, or LabelEvaluation for lists of labels

        Raises
        ------
        DataError
            If there is no document, the model knows none of the labels, or the names of unknown
            labels are missing: only scores from `held_out` have them.

        Examples
        --------
        >>> held = HeldOut(np.array(["a", "b"]), np.array([[0.0, -1.0], [0.0, -2.0]]),
        ...                np.array([0, 1]), np.ones(2), "held-out rows")
        >>> held.evaluate().confusion.tolist()
        [[1, 0, 0], [1, 0, 0]]
        """
        classes, labels = pl.Series(self.classes.tolist()), self.labels
        if not len(self):
            raise DataError("no documents were scored: there is nothing to measure")
        if self.is_multilabel:
            scores, step = self.probability_scores, rows_at_a_time(len(classes))
            return evaluate_lists(
                labels, classes,
                lambda: (scores[start:start + step] for start in range(0, len(self), step)),
                indicators.of_mask(self.chosen(decision)))
        if labels.null_count():
            raise DataError(f"{quantity(labels.null_count(), 'document', 'has', 'have')} a label "
                            "that is not among the model's classes; evaluate(model, frame) counts "
                            "them and names their labels")
        return replace(evaluate_pairs(self.pairs(decision), classes, decision),
                       **probability_measures([self]))

    def pairs(self, decision: Decision | None = None) -> pl.DataFrame:
        """The number ``n`` of documents for each combination of true label and answers.

        Columns ``actual``, ``predicted`` (null if every class scores -inf) and, with a decision,
        ``decision`` (null for "unsure"). Not for lists of labels.
        """
        classes, codes = pl.Series(self.classes.tolist()), {"predicted": self.predicted}
        if decision is not None:
            codes["decision"] = decision.decide(log_odds(self.scores), classes.to_list())
        pairs = pl.DataFrame({"actual": self.labels, **{
            name: classes.gather(pl.Series(values).replace(UNKNOWN, None))
            for name, values in codes.items()}})
        return pairs.group_by(pairs.columns).len("n")

    def predictions(self) -> pl.DataFrame:
        """The prediction for each document by a model that was trained without it, in order.

        Returns
        -------
        DataFrame
            ``predicted`` (null if every class scores -inf; for lists of labels, a list), for single
            labels ``probability``, P(predicted | document), and ``fold``, if there are folds.

        Examples
        --------
        >>> held = HeldOut(np.array(["a", "b"]), np.log([[0.75, 0.25], [0.2, 0.8]]),
        ...                np.array([0, 0]), np.ones(2), "2 folds", np.array([0, 1]))
        >>> held.predictions().with_columns(pl.col("probability").round(3)).rows()
        [('a', 0.75, 0), ('b', 0.8, 1)]
        """
        classes = pl.Series(self.classes.tolist())
        if self.is_multilabel:
            columns = {"predicted": lists_of_mask(self.predicted, classes)}
        else:
            best = self.predicted
            with np.errstate(invalid="ignore"):
                probabilities = np.exp(log_posterior(self.probability_scores))
            probability = pl.Series(probabilities[np.arange(len(self)), np.maximum(best, 0)])
            columns = {"predicted": classes.gather(pl.Series(best).replace(UNKNOWN, None)),
                       "probability": null_unless(probability, pl.Series(best != UNKNOWN))}
        if self.folds is not None:
            columns["fold"] = pl.Series(self.folds)
        return pl.DataFrame(columns)

    def accuracy_by_fold(self) -> pl.DataFrame:
        """Measure the accuracy per fold: columns ``fold``, ``documents`` and ``accuracy``.

        Raises
        ------
        ParameterError
            If the scores are not from cross-validation.

        Examples
        --------
        >>> held = HeldOut(np.array(["a", "b"]), np.array([[0.0, -1.0], [0.0, -2.0]]),
        ...                np.array([0, 1]), np.ones(2), "2 folds", np.array([0, 1]))
        >>> held.accuracy_by_fold()["accuracy"].to_list()
        [1.0, 0.0]
        """
        if self.folds is None:
            raise ParameterError(
                f"these scores are not from cross-validation ({self.method}): there are no folds")
        return pl.DataFrame({"fold": self.folds, "right": self.right}).group_by("fold").agg(
            documents=pl.len().cast(pl.Int64), accuracy=pl.col("right").mean()).sort("fold")

    def roc(self, positive: Any) -> Roc:
        """Compute the ROC curve of a class by its log-odds, or of a label by its scores.

        For rows that every class scores -inf, all classes have equal odds.

        Raises
        ------
        ParameterError
            If ``positive`` is not one of the classes.
        DataError
            If all documents have that label, or none has.
        """
        classes = self.classes.tolist()
        k = classes.index(known_class(classes, positive))
        if self.is_multilabel:
            return roc(self.actual[:, k], self.scores[:, k])
        return roc(self.actual == k, self.fair_odds[:, k])

    def roca(self, positive: Any) -> float:
        """1-ROCA%, the area above the ROC curve in percent: (1 - AUC) · 100, lower is better.

        The measure of the TREC spam track: G. V. Cormack, T. R. Lynam (2005), TREC 2005 spam track
        overview. Rows that every class scores -inf rank last.

        Raises
        ------
        ParameterError, DataError
            As `operating_points`.

        Examples
        --------
        >>> import textnb
        >>> train = pl.DataFrame({"text": ["aa", "bb"], "label": ["x", "y"]})
        >>> textnb.held_out(textnb.TextClassifier().fit(train), train).roca("x")
        0.0
        """
        return roc(*self.against_rest(positive)).area_above

    def operating_points(self, positive: Any, *, confidence: float = 0.95) -> pl.DataFrame:
        """The errors and rates of every threshold on the log-odds of one class.

        For a calibrated model, use ``held.calibrated(model.calibration_)``.

        Parameters
        ----------
        positive : label
        confidence : float

        Returns
        -------
        DataFrame
            One row per distinct log-odds, descending: ``threshold`` (documents with at least these
            log-odds, base e, are classified as positive), ``false_positives``,
            ``true_positives``, ``false_positive_rate``, ``true_positive_rate`` and
            ``false_positive_rate_bound``, the Clopper-Pearson upper bound. The bound is valid for a
            threshold that was fixed beforehand; `choose_threshold` chooses one with a guarantee.

        Raises
        ------
        ParameterError
            If ``positive`` is not one of several classes.
        DataError
            If all documents are positive, or none is.

        Examples
        --------
        >>> import textnb
        >>> train = pl.DataFrame({"text": ["aa", "bb"], "label": ["x", "y"]})
        >>> held = textnb.held_out(textnb.TextClassifier().fit(train), train)
        >>> points = held.operating_points("x")
        >>> points["threshold"].round(3).to_list(), points["false_positives"].to_list()
        ([0.693, -0.693], [0, 1])
        """
        check_share("confidence", confidence)
        thresholds, wrong, hits = errors_by_threshold(*self.against_rest(positive))
        n_others = int(wrong[-1])
        return pl.DataFrame({
            "threshold": thresholds, "false_positives": wrong, "true_positives": hits,
            "false_positive_rate": wrong / n_others, "true_positive_rate": hits / hits[-1],
            "false_positive_rate_bound": [upper_bound(int(n), n_others, confidence)
                                          for n in wrong]})

    def against_rest(self, positive: Any) -> tuple[NDArray[np.bool_], Floats]:
        """Whether documents belong to a class, and the log-odds of the class: (n_documents,).

        For lists of labels, whether they have a label, and its scores.

        Raises
        ------
        ParameterError
            If ``positive`` is not one of several classes.
        DataError
            If all documents are positive, or none is.
        """
        classes, of_lists = self.classes.tolist(), self.is_multilabel
        check = known_class if of_lists else check_positive
        positive = check(classes, positive)
        if not len(self):
            raise DataError.no_rows("the held-out set", "there is nothing to measure")
        k = classes.index(positive)
        is_positive = self.actual[:, k] if of_lists else self.actual == k
        if is_positive.all() or not is_positive.any():
            raise DataError(f"documents with and without {positive!r} are needed; "
                            f"{'all have' if is_positive.any() else 'none has'} it")
        return is_positive, self.scores[:, k] if of_lists else self.odds[:, k]


def check_held_out(held: Any, of_lists: bool | None = False) -> None:
    """Raise ParameterError for anything but a `HeldOut`: a common mistake is to pass rows.

    ``of_lists`` is whether its documents must have lists of labels (True), a single label each
    (False), or either (None).
    """
    if not isinstance(held, HeldOut):
        raise ParameterError(
            f"held must be scores of documents; got {type(held).__name__}: pass held_out(model, "
            "rows), leave_one_out(model, rows) or cross_validate(model, rows)")
    if of_lists is False and held.is_multilabel:
        raise MissingAttributeError.multilabel("a measure of classes that exclude each other")
    if of_lists and not held.is_multilabel:
        raise ParameterError("these documents have one label each: `predicted` is their class, "
                             "and evaluate(decision) measures a decision")


def probability_measures(parts: Iterable[HeldOut]) -> dict[str, Any]:
    """``log_loss`` and ``roc_auc`` of `Evaluation`, over all documents of all parts."""
    # The empty first entries are for the case that there are no parts.
    log_probabilities, odds, positive = [np.empty(0)], [np.empty(0)], [np.empty(0, dtype=np.bool_)]
    n_classes = 0
    for part in parts:
        is_judged, n_classes = part.judged, len(part.classes)
        log_probabilities.append(part.log_probability()[is_judged])
        if n_classes == 2:
            odds.append(part.fair_odds[is_judged, 1])
            positive.append(part.actual[is_judged] == 1)
    all_log_probabilities, is_positive = np.concatenate(log_probabilities), np.concatenate(positive)
    if not len(all_log_probabilities) or n_classes < 2:
        return {"log_loss": None, "roc_auc": None}
    has_both = 0 < is_positive.sum() < len(is_positive)
    return {"log_loss": _mean_loss(all_log_probabilities),
            "roc_auc": roc(is_positive, np.concatenate(odds)).auc if has_both else None}


def _mean_loss(log_probabilities: Floats) -> float:
    """The mean of -log P; as the sum is exact, the order of rows has no effect."""
    # Not -fsum(...), which is -0.0 if all probabilities are 1.
    return (0.0 - math.fsum(log_probabilities)) / len(log_probabilities)
