"""The data of a report: one pass over the test rows, and the tables that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import binomtest

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision, log_odds
from textnb.bayes.forms import Floats
from textnb.classifiers.table import TableClassifier
from textnb.classifiers.text import TextClassifier
from textnb.evaluation.calibration import Reliability, has_probabilities, reliability
from textnb.evaluation.evaluate import (
    ScoringWatch,
    count_learned_rows,
    evaluate_classes,
    scan_for,
    score_lists,
)
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.labelled import known_labels
from textnb.evaluation.labels import LabelEvaluation
from textnb.evaluation.metrics import Evaluation
from textnb.evaluation.novelty import UNKNOWN
from textnb.evaluation.roc import Rates, errors_by_threshold, thin_points
from textnb.frames.batches import Progress
from textnb.frames.failures import naming_source
from textnb.learning.fitted import fitted_text_model_or_none
from textnb.text.coverage import TermCoverage

Model = TextClassifier | TableClassifier
# The maximum numbers of labels that are shown one by one, and of labels with curves, each of which
# sorts all rows. If there are more labels, those with the most documents are taken.
MAX_LABELS, _MAX_CURVES = 1000, 250
# The approximate number of bins of a histogram.
_N_BINS = 40
# The maximum number of mistakes of one kind that a report shows.
MAX_MISTAKES = 12
UNCALIBRATED = "not calibrated"
# No column of a user has this name.
_ROW = "\0row"


@dataclass(frozen=True, eq=False)
class Scored:
    """The test rows, scored once.

    Attributes
    ----------
    model : TextClassifier or TableClassifier
    evaluation : Evaluation or LabelEvaluation
    held_out : HeldOut
        The documents and their scores, not calibrated. For lists of labels, there are scores of at
        most `MAX_LABELS` known labels.
    posterior : HeldOut
        The same documents, calibrated if the model is. Decisions compare these scores; for lists of
        labels, they compare the scores of ``held_out``.
    answers : (n_documents,) or (n_documents, n_labels)
        The answers: the model's decisions (-1 for unsure) or, if it has none, its predictions, as
        in `HeldOut.predicted`.
    right : bool (n_documents,)
        Whether the prediction is right; for lists, whether exactly the document's labels are
        predicted.
    coverage : TermCoverage or None
        For models of texts: how many rows hold a known term.
    """

    model: Model
    evaluation: Evaluation | LabelEvaluation
    held_out: HeldOut
    posterior: HeldOut
    answers: NDArray[Any]
    right: NDArray[np.bool_]
    coverage: TermCoverage | None = None

    @property
    def of_lists(self) -> bool:
        """Whether documents have lists of labels."""
        return self.held_out.is_multilabel

    @property
    def noun(self) -> str:
        """What the model predicts, in words."""
        return "label" if self.of_lists else "class"

    @property
    def nouns(self) -> str:
        return "labels" if self.of_lists else "classes"

    @property
    def unit(self) -> str:
        """What a row is, in words."""
        return "document" if isinstance(self.model, TextClassifier) else "row"

    @property
    def classes(self) -> list[Any]:
        """The labels that have scores."""
        labels: list[Any] = self.held_out.classes.tolist()
        return labels

    @property
    def decision(self) -> Decision | None:
        return getattr(self.model, "decision_", None)

    @property
    def calibration(self) -> Calibration | None:
        return getattr(self.model, "calibration_", None)

    @property
    def estimator(self) -> Any:
        """The model of counts or features, which has the parameters."""
        return (self.model.fitted_.model if isinstance(self.model, TextClassifier)
                else self.model.estimator_)

    @property
    def accuracy_interval(self) -> tuple[float, float]:
        """Wilson's 95 % confidence interval of the accuracy."""
        low, high = binomtest(int(self.right.sum()), len(self.right)).proportion_ci(
            0.95, method="wilson")
        return float(low), float(high)

    @property
    def has_probabilities(self) -> bool:
        """Whether the model gives probabilities.

        It does if it is calibrated or its scores are log-probabilities, which those of
        ComplementNB, for example, are not.
        """
        return self.calibration is not None or bool(self.estimator.scores_are_log_probabilities)

    @property
    def difference_name(self) -> str:
        """The name of the values that are compared with the thresholds of classes."""
        return "log-odds" if self.has_probabilities else "margin"

    @cached_property
    def thresholds(self) -> Floats | None:
        """The minimum log-odds of each label; None if the most probable class is the answer."""
        if self.decision is not None:
            return np.array([self.decision.thresholds[label] for label in self.classes])
        return np.zeros(len(self.classes)) if self.of_lists else None

    def has_label(self, k: int) -> NDArray[np.bool_]:
        """Which documents have the label: (n_documents,)."""
        return _has_code(self.held_out.actual, k)

    def has_answer(self, k: int) -> NDArray[np.bool_]:
        """Which documents get the label as an answer: (n_documents,)."""
        return _has_code(self.answers, k)

    def rates(self, k: int) -> Rates:
        """The counts and rates of a label's answers."""
        return rates_of(self.has_label(k), self.has_answer(k))

    @cached_property
    def decision_values(self) -> Floats:
        """The values that are compared with thresholds: (n_documents, n_labels).

        Log-odds of classes, equal for all classes in impossible rows; for lists, uncalibrated
        scores of labels.
        """
        return self.held_out.scores if self.of_lists else self.posterior.fair_odds

    @cached_property
    def curves(self) -> list[Curve]:
        """The curves of each label against the rest: see `compute_curves`."""
        return compute_curves(self.classes, self.held_out.actual, self.decision_values)

    @cached_property
    def reliability(self) -> Mapping[str, Reliability]:
        """Probabilities against right answers: not calibrated, and calibrated if the model is."""
        if not has_probabilities(self.held_out).any() or (
                not self.of_lists and len(self.classes) < 2):
            return {}
        tables = {} if self.calibration is None else {"calibrated": reliability(self.posterior)}
        if self.estimator.scores_are_log_probabilities:
            tables[UNCALIBRATED] = reliability(self.held_out)
        return tables

    @cached_property
    def labels(self) -> pl.DataFrame:
        """By label: ``label``, ``documents``, ``predicted``, ``precision``, ``recall``, ``f1``."""
        if isinstance(self.evaluation, LabelEvaluation):
            return self.evaluation.labels
        # The last column of a confusion matrix counts documents without an answer.
        table = self.evaluation.per_class.rename({"class": "label"}).with_columns(
            predicted=pl.Series(self.evaluation.confusion[:, :-1].sum(axis=0)))
        # Add classes that no test row has as label or prediction.
        classes = pl.DataFrame({"label": pl.Series(self.classes, dtype=table.schema["label"])})
        return table.join(classes, on="label", how="full", coalesce=True).with_columns(
            pl.col("documents", "predicted").fill_null(0)).sort("label")

    @cached_property
    def confused(self) -> pl.DataFrame:
        """``label``, ``predicted``, ``documents``: the most frequent confusions first.

        ``predicted`` is null for documents that miss the label and have no wrong answer.
        """
        if isinstance(self.evaluation, LabelEvaluation):
            return self.evaluation.confused
        counts = self.evaluation.confusion
        i, j = np.nonzero(counts)
        i, j = i[i != j], j[i != j]
        order = np.lexsort((j, i, -counts[i, j]))
        i, j = i[order], j[order]
        names = self.evaluation.per_class["class"]
        return pl.DataFrame({
            "label": names.gather(pl.Series(i)),
            "predicted": names.gather(pl.Series(j).replace(len(names), None)),
            "documents": counts[i, j]})

    @cached_property
    def n_learned_rows(self) -> list[int]:
        """The number of rows of each label that the model has learned."""
        sizes = dict(zip(self.model.classes_.tolist(), count_learned_rows(self.model), strict=True))
        return [int(sizes[label]) for label in self.classes]


def _has_code(codes: NDArray[Any], k: int) -> NDArray[np.bool_]:
    """Which documents have class ``k``, by the codes of classes or the mask of labels of lists."""
    mask: NDArray[np.bool_] = codes == k if codes.ndim == 1 else codes[:, k]
    return mask


def score_rows(model: Model, frame: Any, progress: Progress | None = None) -> Scored:
    """Score labelled rows in one pass.

    Raises
    ------
    DataError
        If there are no rows, a label is null, or the model knows none of the labels.

    Warns
    -----
    LearnedRowsWarning, UnknownTermsWarning
        As `textnb.evaluate` does.
    """
    if isinstance(model, TextClassifier) and model.fitted_.is_multilabel:
        return _score_lists(model, frame, progress)
    return _score_classes(model, frame, progress)


def _score_lists(model: TextClassifier, frame: Any, progress: Progress | None) -> Scored:
    fitted = model.fitted_
    lists = score_lists(fitted, frame, progress)
    result = lists.evaluation
    n_documents = dict(result.labels.select("label", "documents").iter_rows())
    sizes = np.array([n_documents[label] for label in fitted.labels])
    codes = np.sort(np.argsort(-sizes, kind="stable")[:MAX_LABELS])
    held_out = HeldOut(
        fitted.classes[codes], np.concatenate([block[:, codes] for block in lists.scores()]),
        known_labels(lists.actual, fitted.labels.gather(pl.Series(codes))),
        # The calibration of labels does not use the lengths of documents.
        lengths=np.zeros(len(lists.actual)), method=lists.watch.novelty.result.method,
        link="sigmoid")
    calibration = None if model.calibration_ is None else replace(
        model.calibration_, sigmoids=tuple(model.calibration_.sigmoids[k] for k in codes))
    return Scored(model, result, held_out, held_out.calibrated(calibration),
                  lists.predicted[:, codes].toarray().astype(np.bool_), lists.right,
                  coverage=lists.watch.coverage)


def _score_classes(model: Model, frame: Any, progress: Progress | None) -> Scored:
    fitted, batches = fitted_text_model_or_none(model), list[HeldOut]()
    watch = None if fitted is None else ScoringWatch(fitted)
    result = evaluate_classes(model, frame, progress, batches, watch)
    held_out = HeldOut.joined(batches)
    posterior = held_out.calibrated(getattr(model, "calibration_", None))
    decision = getattr(model, "decision_", None)
    answers = held_out.predicted if decision is None else decision.decide(
        log_odds(posterior.scores), model.classes_.tolist())
    return Scored(model, result, held_out, posterior, answers, held_out.right,
                  coverage=None if watch is None else watch.coverage)


def rows_at(model: Model, frame: Any, rows: list[int]) -> dict[int, dict[str, Any]]:
    """Read some rows again: the columns that the model reads, by number of the row."""
    with naming_source(frame):
        scanned = scan_for(model, frame)
        selected = scanned.select(model.input_columns(scanned)).with_row_index(_ROW).filter(
            pl.col(_ROW).is_in(rows)).collect()
    return {row.pop(_ROW): row for row in selected.to_dicts()}


def wrong_answers(
    scored: Scored, missed: bool = False
) -> list[tuple[int, list[tuple[int, float]]]]:
    """The rows with the most confident wrong answers, the worst first, if the label is known.

    For lists of labels, an answer is a label that is predicted wrongly, or with ``missed`` a label
    that is not predicted.

    Returns
    -------
    list of (row, list of (k, certainty))
        The indices of the row's wrong or missed labels, the worst first, and how sure the model is
        of each: the log-odds (base e) of a wrong class; for lists, how far the score of the label
        is from its threshold.
    """
    held_out, thresholds, actual = scored.held_out, scored.thresholds, scored.held_out.actual
    if scored.of_lists and thresholds is not None:
        is_wrong = actual & ~scored.answers if missed else scored.answers & ~actual
        rows, codes = np.nonzero(is_wrong)
        with np.errstate(invalid="ignore"):
            certainty = (held_out.scores[rows, codes] - thresholds[codes]) * (-1 if missed else 1)
    else:
        rows = np.flatnonzero(~scored.right & (actual != UNKNOWN) & (held_out.predicted != UNKNOWN))
        codes = held_out.predicted[rows]
        certainty = scored.decision_values[rows, codes]
    order = np.argsort(-np.nan_to_num(certainty, nan=-np.inf, posinf=np.inf, neginf=-np.inf),
                       kind="stable")
    rows, codes, certainty = rows[order], codes[order], certainty[order]
    # The places of the worst answer of each row, which is its first; the worst rows come first.
    places = np.sort(np.unique(rows, return_index=True)[1])[:MAX_MISTAKES]
    return [(row, [*zip(codes[rows == row].tolist(), certainty[rows == row].tolist(), strict=True)])
            for row in rows[places].tolist()]


@dataclass(frozen=True, eq=False)
class Curve:
    """One label against the rest, at every threshold on its log-odds.

    Attributes
    ----------
    label : label
    documents : int
        The number of documents with the label.
    roc, precision_recall : DataFrame
        ``x``, ``y``: a selection of points of the curve, enough for its shape.
    auc : float
        Area under the ROC.
    average_precision : float
    """

    label: Any
    documents: int
    roc: pl.DataFrame
    precision_recall: pl.DataFrame
    auc: float
    average_precision: float


def compute_curves(classes: Sequence[Any], actual: NDArray[Any], values: Floats) -> list[Curve]:
    """The curves of the labels with the most rows, at most `_MAX_CURVES`.

    A curve needs rows with and without the label. Rows whose label the model does not know count as
    without. ``actual`` is as in `HeldOut`; ``values`` are `Scored.decision_values`.
    """
    if actual.ndim == 1 and len(classes) < 2:
        return []
    has_label = [_has_code(actual, k) for k in range(len(classes))]
    sizes = np.array([int(mask.sum()) for mask in has_label])
    with_curve = np.flatnonzero((sizes > 0) & (sizes < len(actual)))
    largest = with_curve[np.argsort(-sizes[with_curve], kind="stable")[:_MAX_CURVES]]
    return [_curve(classes[k], has_label[k], values[:, k]) for k in sorted(largest.tolist())]


def _curve(label: Any, has_label: NDArray[np.bool_], values: Floats) -> Curve:
    # For each threshold, how many rows without the label, and with it, reach it.
    _, wrong, hits = errors_by_threshold(has_label, values)
    false_rate, recall, precision = wrong / wrong[-1], hits / hits[-1], hits / (hits + wrong)
    x, y = np.append(0.0, false_rate), np.append(0.0, recall)
    return Curve(label, int(hits[-1]), thin_points(x, y), thin_points(recall, precision),
                 float(np.trapezoid(y, x)),
                 float((np.diff(recall, prepend=0.0) * precision).sum()))


def rates_of(is_positive: NDArray[np.bool_], is_called: NDArray[np.bool_]) -> Rates:
    """Counts and rates, from the rows that are positive and the rows that are called positive."""
    hits = int((is_positive & is_called).sum())
    return Rates(true_positives=hits, false_positives=int(is_called.sum()) - hits,
                 false_negatives=int(is_positive.sum()) - hits,
                 true_negatives=int((~is_positive & ~is_called).sum()))


def histogram(values: Floats, groups: dict[str, NDArray[np.bool_]]) -> pl.DataFrame:
    """Count the values of groups of rows in bins: ``low``, ``high``, ``group``, ``documents``.

    The bins reach from the lowest 1st to the highest 99th percentile of the groups. The first and
    the last bin also hold all values beyond.
    """
    finite = [values[rows & np.isfinite(values)] for rows in groups.values()]
    ranges = [np.quantile(group, [0.01, 0.99]) for group in finite if len(group)]
    # The bins include -1 to 1, so that zero, where decisions change, is always shown.
    low = min([-1.0, *(float(lowest) for lowest, _ in ranges)])
    high = max([1.0, *(float(highest) for _, highest in ranges)])
    step = (high - low) / _N_BINS
    edges = step * np.arange(np.floor(low / step), np.ceil(high / step) + 1)
    clipped = np.clip(values, edges[0], edges[-1])
    return pl.concat([
        pl.DataFrame({"low": edges[:-1], "high": edges[1:], "group": [name] * (len(edges) - 1),
                      "documents": np.histogram(clipped[rows], edges)[0]})
        for name, rows in groups.items()])
