"""The data of a report: one pass over the test rows, and the tables that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, precision_recall_curve

from textnb.bayes.decision import UNSURE, log_odds
from textnb.bayes.forms import Floats
from textnb.classifiers.table import TableClassifier
from textnb.classifiers.text import TextClassifier
from textnb.evaluation.calibration import Reliability, reliability
from textnb.evaluation.evaluate import ScoringWatch, scan_for
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.labelled import LABEL, in_classes, labelled_batches
from textnb.evaluation.labels import no_known_label
from textnb.evaluation.metrics import Evaluation, evaluation
from textnb.evaluation.novelty import UNKNOWN, UNVERIFIED
from textnb.evaluation.roc import Rates, roc
from textnb.frames.batches import Progress
from textnb.frames.failures import reading
from textnb.frames.token_columns import as_text
from textnb.runtime.threads import map_in_threads
from textnb.scoring.columns import where_possible
from textnb.scoring.texts import score_batch
from textnb.text.coverage import TermCoverage

Model = TextClassifier | TableClassifier
# At most this many classes have curves, those with the most rows: each curve sorts all rows.
MOST_CURVES = 250
# Points of a curve that its chart draws. Areas are computed from all points.
POINTS = 400
BINS = 40
# Mistakes that a report shows.
MISTAKES = 12
UNCALIBRATED = "not calibrated"


@dataclass(frozen=True, eq=False)
class Scored:
    """The test rows, scored once.

    Attributes
    ----------
    held : HeldOut
        Not calibrated.
    posterior : HeldOut
        The same documents, calibrated if the model is; the decision compares these scores.
    evaluation : Evaluation
    mistakes : DataFrame
        The rows with the most confident wrong answers, the worst first: the columns that the model
        reads.
    mistake_answers : DataFrame
        For the same rows: ``row`` (counted from 0), ``actual``, ``predicted``, and ``log_odds``
        (base e) of the predicted class.
    blank, missing : int
        Documents without a text (null, or white space alone), and those of them that are null.
    coverage : TermCoverage or None
        For models of texts: how many rows hold a known term.
    """

    held: HeldOut
    posterior: HeldOut
    evaluation: Evaluation
    mistakes: pl.DataFrame
    mistake_answers: pl.DataFrame
    blank: int
    missing: int
    coverage: TermCoverage | None = None

    @cached_property
    def curves(self) -> list[Curve]:
        """The curves of each class against the rest; see `curves`."""
        return curves(self.posterior)


def score_rows(model: Model, frame: Any, progress: Progress | None = None) -> Scored:
    """Score labelled rows in one pass. Only the rows of the worst mistakes are kept.

    Raises
    ------
    DataError
        If there are no rows, a label is null, or the model knows none of the labels.
    """
    with reading(frame):
        rows = scan_for(model, frame)
        results = _Results(model, model.input_columns(rows))
        for batch, held in _score_batches(model, rows, results, progress):
            results.add(batch, held)
    return results.scored()


class _Results:
    """The results of the batches that were scored."""

    def __init__(self, model: Model, columns: list[str]):
        self.model, self.columns = model, columns
        self.classes = pl.Series(model.classes_.tolist())
        self.rows = self.blank = self.missing = 0
        self.parts: list[HeldOut] = []
        self.labels: list[pl.Series] = []
        self.worst: list[pl.DataFrame] = []
        self.worst_answers: list[pl.DataFrame] = []
        self.watch = (ScoringWatch(model.fitted_, self.classes, LABEL)
                      if isinstance(model, TextClassifier) else None)

    def add(self, batch: pl.DataFrame, held: HeldOut) -> None:
        labels = batch[LABEL]
        self._keep_worst(batch, held, labels)
        if isinstance(self.model, TextClassifier):
            texts = [as_text(batch.schema, name) for name in self.columns]
            blank = [text.str.strip_chars().fill_null("") == "" for text in texts]
            missing = [text.is_null() for text in texts]
            self.blank += int(batch.select(pl.all_horizontal(blank).sum()).item())
            self.missing += int(batch.select(pl.all_horizontal(missing).sum()).item())
        self.parts.append(held)
        self.labels.append(labels)
        self.rows += batch.height

    def _keep_worst(self, batch: pl.DataFrame, held: HeldOut, labels: pl.Series) -> None:
        # Other parts of the report show labels that the model does not know and impossible rows.
        wrong = np.flatnonzero((held.predicted != held.actual) & (held.actual != UNKNOWN)
                               & (held.predicted != UNKNOWN))
        sure = top_log_odds(held.take(wrong).calibrated(self._calibration()).scores)
        self.worst_answers.append(pl.DataFrame({
            "row": wrong + self.rows, "actual": labels.gather(pl.Series(wrong)),
            "predicted": self.classes.gather(pl.Series(held.predicted[wrong])),
            "log_odds": sure}))
        self.worst.append(batch.select(
            as_text(batch.schema, name) for name in self.columns)[wrong])
        answers, worst = pl.concat(self.worst_answers), pl.concat(self.worst)
        order = np.argsort(-answers["log_odds"].to_numpy(), kind="stable")[:MISTAKES]
        self.worst_answers, self.worst = [answers[order]], [worst[order]]

    def _calibration(self) -> Any:
        return getattr(self.model, "calibration_", None)

    def scored(self) -> Scored:
        """The results of all rows."""
        columns = ((part.scores, part.actual, part.lengths) for part in self.parts)
        scores, actual, lengths = map(np.concatenate, zip(*columns, strict=True))
        novelty = None if self.watch is None else self.watch.novelty.result
        held = HeldOut(self.model.classes_, scores, actual, lengths,
                       UNVERIFIED if novelty is None else novelty.method,
                       without_class=in_classes(actual, learned_rows(self.model) == 0),
                       novelty=novelty)
        posterior = held.calibrated(self._calibration())
        return Scored(held, posterior, self._evaluation(held, posterior), self.worst[0],
                      self.worst_answers[0], self.blank, self.missing,
                      None if self.watch is None else self.watch.coverage)

    def _evaluation(self, held: HeldOut, posterior: HeldOut) -> Evaluation:
        if (held.actual == UNKNOWN).all():
            raise no_known_label(self.labels[0][0], self.classes)
        answers = {"actual": pl.concat(self.labels), "predicted": self._classes(held.predicted)}
        results = decide(self.model, posterior)
        if results is not None:
            answers["decision"] = self._classes(results.answer)
        pairs = pl.DataFrame(answers).group_by(*answers).len("n")
        result = replace(evaluation(pairs, self.classes), novelty=held.novelty,
                         textless=self.blank)
        return result.with_decision(pairs, getattr(self.model, "decision_", None))

    def _classes(self, codes: NDArray[np.int64]) -> pl.Series:
        """Classes by their index; null for -1."""
        names = self.classes.gather(pl.Series(np.maximum(codes, 0)))
        return where_possible(names, pl.Series(codes >= 0))


def _score_batches(
    model: Model, rows: pl.LazyFrame, results: _Results, progress: Progress | None
) -> Iterator[tuple[pl.DataFrame, HeldOut]]:
    def score(part: tuple[pl.DataFrame, NDArray[np.int64]]) -> tuple[pl.DataFrame, HeldOut]:
        batch, actual = part
        if isinstance(model, TextClassifier):
            scores, lengths = score_batch(model.fitted_, batch, results.watch)
        else:
            scores = model.predict_joint_log_proba(batch.select(results.columns))
            lengths = np.zeros(batch.height)
        return batch, HeldOut(model.classes_, scores, actual, lengths, UNVERIFIED)

    text = results.columns if isinstance(model, TextClassifier) else ()
    yield from map_in_threads(score, labelled_batches(
        rows, results.columns, model.label_column, results.classes, progress, text))


def top_log_odds(scores: Floats) -> Floats:
    """Log-odds (base e) of each row's most probable class against all others: (n_rows,)."""
    every = np.arange(len(scores))
    best = scores.argmax(axis=1) if len(scores) else every
    others = scores.copy()
    others[every, best] = -np.inf
    with np.errstate(invalid="ignore"):
        odds = scores[every, best] - np.logaddexp.reduce(others, axis=1)
    return np.where(np.isnan(odds), 0.0, odds)


def learned_rows(model: Model) -> NDArray[Any]:
    """The number of rows of each class that the model has learned: (n_classes,)."""
    estimator = model.estimator_
    counts = getattr(estimator, "class_count_", None)
    return np.asarray(estimator.statistics_.class_count if counts is None else counts)


def priors(model: Model) -> Floats | None:
    """The model's P(class): float64 (n_classes,); None if it has no priors."""
    estimator = model.estimator_
    log_priors = getattr(estimator, "class_log_prior_", None)
    if log_priors is not None:
        return np.exp(np.asarray(log_priors, dtype=np.float64))
    shares = getattr(estimator, "priors_", None)
    return None if shares is None else np.asarray(shares, dtype=np.float64)


def has_probabilities(model: Model) -> bool:
    """Whether the model gives probabilities: it is calibrated, or its scores are logarithms."""
    return getattr(model, "calibration_", None) is not None or scores_are_logs(model)


def scores_are_logs(model: Model) -> bool:
    """Whether the scores are log-probabilities; those of ComplementNB, for example, are not."""
    return bool(model.estimator_.scores_are_log_probabilities)


@dataclass(frozen=True, eq=False)
class Curve:
    """One class against the rest, at every threshold on its log-odds.

    Attributes
    ----------
    label : label
    roc, precision_recall : DataFrame
        ``x``, ``y``: a selection of the points, which keeps the curve's shape.
    auc : float
        Area under the ROC.
    average_precision : float
    """

    label: Any
    roc: pl.DataFrame
    precision_recall: pl.DataFrame
    auc: float
    average_precision: float


def curves(held: HeldOut) -> list[Curve]:
    """Compute the curves of the classes with the most rows, at most `MOST_CURVES`.

    A class needs rows of its own and other rows. Labels that the model does not know count as
    others.
    """
    if len(held.classes) < 2:
        return []
    odds = held.fair_odds
    rows = np.bincount(held.actual[held.actual >= 0], minlength=len(held.classes))
    possible = np.flatnonzero((rows > 0) & (rows < len(held.actual)))
    most = possible[np.argsort(-rows[possible], kind="stable")[:MOST_CURVES]]
    labels = held.classes.tolist()
    return [_curve(labels[k], held.actual == k, odds[:, k]) for k in sorted(most.tolist())]


def _curve(label: Any, truth: NDArray[np.bool_], odds: Floats) -> Curve:
    found = roc(truth, odds)
    # Ranks keep order and ties, and work for infinite log-odds.
    ranks = np.unique(odds, return_inverse=True)[1]
    precision, recall, _ = precision_recall_curve(truth, ranks)
    return Curve(
        label,
        thin(found.points["false_positive_rate"].to_numpy(),
                found.points["true_positive_rate"].to_numpy()),
        # The last point, recall 0 at precision 1, belongs to no threshold.
        thin(recall[-2::-1], precision[-2::-1]),
        found.auc, float(average_precision_score(truth, ranks)))


def thin(x: Floats, y: Floats, points: int = POINTS) -> pl.DataFrame:
    """Select points of a curve at about equal distances along it, with both ends.

    Examples
    --------
    >>> thin(np.linspace(0, 1, 1001), np.linspace(0, 1, 1001), 3).rows()
    [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)]
    """
    along = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    at = np.searchsorted(along, np.linspace(0.0, along[-1], points), side="left")
    kept = np.unique(np.concatenate([[0], at, [len(x) - 1]])).clip(max=len(x) - 1)
    return pl.DataFrame({"x": x[np.unique(kept)], "y": y[np.unique(kept)]})


def rates_of(positive: NDArray[np.bool_], called: NDArray[np.bool_]) -> Rates:
    """The counts and rates of rows that are called positive."""
    hits = int((positive & called).sum())
    return Rates(hits, int(called.sum()) - hits, int(positive.sum()) - hits,
                 int((~positive & ~called).sum()))


@dataclass(frozen=True, eq=False)
class DecisionResults:
    """The results of a model's decision on the test rows.

    Attributes
    ----------
    coverage : float
        Share of the rows that get a class.
    accuracy : float or None
        Share of those that are right.
    per_class : DataFrame
        ``class``, ``threshold`` (log-odds, base e), ``right``, ``wrong``, ``unsure`` of the rows
        with that label, and ``false_positives``: rows of other labels that get the class.
    answer : int64 (n_rows,)
        Index of the class, -1 for unsure.
    """

    coverage: float
    accuracy: float | None
    per_class: pl.DataFrame
    answer: NDArray[np.int64]


def decide(model: Model, posterior: HeldOut) -> DecisionResults | None:
    """Apply the model's decision to the rows; None if it has none."""
    decision = getattr(model, "decision_", None)
    if decision is None:
        return None
    classes = posterior.classes.tolist()
    answer = decision.decide(log_odds(posterior.scores), classes)
    sure, right = answer != UNSURE, answer == posterior.actual
    rows = []
    for k, label in enumerate(classes):
        own = posterior.actual == k
        rows.append((float(decision.thresholds[label]), int((own & right).sum()),
                     int((own & sure & ~right).sum()), int((own & ~sure).sum()),
                     int((~own & (answer == k)).sum())))
    table = pl.DataFrame(rows, orient="row", schema={
        "threshold": pl.Float64, "right": pl.Int64, "wrong": pl.Int64, "unsure": pl.Int64,
        "false_positives": pl.Int64})
    table.insert_column(0, pl.Series("class", classes))
    accuracy = float((sure & right).sum() / sure.sum()) if sure.any() else None
    return DecisionResults(float(sure.mean()), accuracy, table, answer)


def histogram(values: Floats, groups: dict[str, NDArray[np.bool_]]) -> pl.DataFrame:
    """Count the values of groups of rows in bins: ``low``, ``high``, ``group``, ``documents``.

    The bins reach from the 1st to the 99th percentile of every group; the outer ones also hold all
    values beyond.
    """
    finite = [values[rows & np.isfinite(values)] for rows in groups.values()]
    reach = [np.quantile(group, [0.01, 0.99]) for group in finite if len(group)]
    # The bins include -1 to 1, so that zero, where decisions change, is always shown.
    low = min([-1.0, *(float(lowest) for lowest, _ in reach)])
    high = max([1.0, *(float(highest) for _, highest in reach)])
    step = (high - low) / BINS
    edges = step * np.arange(np.floor(low / step), np.ceil(high / step) + 1)
    inside = np.clip(values, edges[0], edges[-1])
    return pl.concat([
        pl.DataFrame({"low": edges[:-1], "high": edges[1:], "group": [name] * (len(edges) - 1),
                      "documents": np.histogram(inside[rows], edges)[0]})
        for name, rows in groups.items()])


def calibration_tables(model: Model, scored: Scored) -> dict[str, Reliability]:
    """Compare probabilities with right answers: not calibrated, and calibrated if the model is."""
    held = scored.held
    calibrated = getattr(model, "calibration_", None) is not None
    if len(held.classes) < 2 or not (
            held.judged & (held.predicted != UNKNOWN)).any():
        return {}
    tables = {"calibrated": reliability(scored.posterior)} if calibrated else {}
    if scores_are_logs(model):
        tables[UNCALIBRATED] = reliability(held)
    return tables
