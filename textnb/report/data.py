"""What a report tells: one pass over the test rows, and the tables that follow from it."""

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
from textnb.bayes.known import check_model
from textnb.errors import DataError
from textnb.estimators.table import TableClassifier
from textnb.estimators.text import TextClassifier
from textnb.evaluation.calibration import Reliability, reliability
from textnb.evaluation.held_out import UNKNOWN, HeldOut, codes_of, in_classes
from textnb.evaluation.metrics import Evaluation, evaluation, opened
from textnb.evaluation.novelty import UNVERIFIED, NoveltyCount
from textnb.evaluation.roc import Rates, roc
from textnb.frames.batches import Progress, batches
from textnb.frames.scan import reading
from textnb.frames.texts import labels_as
from textnb.runtime.threads import map_in_threads
from textnb.scoring.columns import where_possible
from textnb.scoring.scorer import Watch
from textnb.scoring.texts import coverage_of, scored_batch
from textnb.text.coverage import TermCoverage

Model = TextClassifier | TableClassifier
_LABEL = "\0label"
# Classes against the rest, those with the most rows: each takes a sort of all rows.
MOST_CURVES = 250
# Kept of each curve for the chart; the areas are those of all points.
POINTS = 400
BINS = 40
# Rows that are wrong and shown.
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
        The same with the scores that probabilities and the decision are made from.
    evaluation : Evaluation
    mistakes : DataFrame
        The columns that the model reads, of the most confident wrong rows, the worst first.
    mistaken : DataFrame
        Of the same rows ``row`` (counted from 0), ``actual``, ``predicted``, and ``log_odds`` (base
        e) of the predicted class.
    blank, missing : int
        Documents without a text (null, or white space alone), and those of them that are null.
    coverage : TermCoverage or None
        Of texts: how many hold a known term.
    """

    held: HeldOut
    posterior: HeldOut
    evaluation: Evaluation
    mistakes: pl.DataFrame
    mistaken: pl.DataFrame
    blank: int
    missing: int
    coverage: TermCoverage | None = None

    @cached_property
    def curves(self) -> list[Curve]:
        """Of each class against the rest; see `curves`."""
        return curves(self.posterior)


def score_rows(model: Model, frame: Any, progress: Progress | None = None) -> Scored:
    """Score labelled rows in one pass; of the rows themselves, the worst mistakes alone are kept.

    Raises
    ------
    DataError
        If there are no rows, a label is null, or the model knows none of the labels.
    """
    with reading(frame):
        lazy = opened(model, frame)
        columns = model.input_columns(lazy)
        classes = pl.Series(model.classes_.tolist())
        actual = labels_as(model.label_column, lazy, classes.dtype)
        rows = lazy.select(*columns, actual.alias(_LABEL))
        seen = _Seen(model, columns, classes)
        for batch, scores, lengths in _scored(
                model, rows, columns, progress, seen.watch):
            seen.add(batch, scores, lengths)
    if not seen.rows:
        raise DataError.no_rows("the test set")
    return seen.result()


class _Seen:
    """What is kept of the batches."""

    def __init__(self, model: Model, columns: list[str], classes: pl.Series):
        self.model, self.columns, self.classes = model, columns, classes
        self.rows = self.blank = self.missing = 0
        self.parts: list[HeldOut] = []
        self.labels: list[pl.Series] = []
        self.worst: list[pl.DataFrame] = []
        self.told: list[pl.DataFrame] = []
        self.novelty = NoveltyCount(model.fitted_) if isinstance(model, TextClassifier) else None
        self.coverage = coverage_of(model.fitted_) if isinstance(model, TextClassifier) else None

    def watch(self, rows: pl.DataFrame, counts: Any) -> None:
        """Look at texts as they are scored, in whatever thread."""
        if self.novelty is not None and self.coverage is not None:
            self.coverage.add(rows, counts)
            self.novelty.add(counts, codes_of(rows[_LABEL], self.classes))

    def add(self, batch: pl.DataFrame, scores: Floats, lengths: Floats) -> None:
        labels = batch[_LABEL]
        if labels.null_count():
            raise DataError.null_label(
                self.model.label_column, self.rows + int(labels.is_null().arg_true()[0]))
        held = HeldOut(self.model.classes_, scores, codes_of(labels, self.classes), lengths,
                       UNVERIFIED)
        self._keep_worst(batch, held, labels)
        if isinstance(self.model, TextClassifier):
            text = pl.col(self.columns).cast(pl.String)
            blank = text.str.strip_chars().fill_null("") == ""
            self.blank += int(batch.select(pl.all_horizontal(blank).sum()).item())
            self.missing += int(batch.select(pl.all_horizontal(text.is_null()).sum()).item())
        self.parts.append(held)
        self.labels.append(labels)
        self.rows += batch.height

    def _keep_worst(self, batch: pl.DataFrame, held: HeldOut, labels: pl.Series) -> None:
        # What the model can't know, or can't answer, is told elsewhere: this is what it got wrong.
        wrong = np.flatnonzero((held.predicted != held.actual) & (held.actual != UNKNOWN)
                               & (held.predicted != UNKNOWN))
        sure = top_log_odds(held.take(wrong).calibrated(self._calibration()).scores)
        self.told.append(pl.DataFrame({
            "row": wrong + self.rows, "actual": labels.gather(pl.Series(wrong)),
            "predicted": self.classes.gather(pl.Series(held.predicted[wrong])),
            "log_odds": sure}))
        self.worst.append(batch.select(self.columns)[wrong])
        told, worst = pl.concat(self.told), pl.concat(self.worst)
        order = np.argsort(-told["log_odds"].to_numpy(), kind="stable")[:MISTAKES]
        self.told, self.worst = [told[order]], [worst[order]]

    def _calibration(self) -> Any:
        return getattr(self.model, "calibration_", None)

    def result(self) -> Scored:
        columns = ((part.scores, part.actual, part.lengths) for part in self.parts)
        scores, actual, lengths = map(np.concatenate, zip(*columns, strict=True))
        novelty = None if self.novelty is None else self.novelty.result
        held = HeldOut(self.model.classes_, scores, actual, lengths,
                       UNVERIFIED if novelty is None else novelty.method,
                       without_class=in_classes(actual, learned_rows(self.model) == 0),
                       novelty=novelty)
        posterior = held.calibrated(self._calibration())
        return Scored(held, posterior, self._evaluation(held, posterior), self.worst[0],
                      self.told[0], self.blank, self.missing, self.coverage)

    def _evaluation(self, held: HeldOut, posterior: HeldOut) -> Evaluation:
        if (held.actual == UNKNOWN).all():
            raise DataError(f"the model knows none of the labels, such as {self.labels[0][0]!r}; "
                            f"its classes are {', '.join(map(repr, self.classes.to_list()[:10]))}")
        answers = {"actual": pl.concat(self.labels), "predicted": self._named(held.predicted)}
        told = decided(self.model, posterior)
        if told is not None:
            answers["decision"] = self._named(told.answer)
        pairs = pl.DataFrame(answers).group_by(*answers).len("n")
        result = replace(evaluation(pairs, self.classes), novelty=held.novelty)
        return result.deciding(
            pairs, getattr(self.model, "decision_", None))

    def _named(self, codes: NDArray[np.int64]) -> pl.Series:
        """Classes by their index; null where it is -1."""
        names = self.classes.gather(pl.Series(np.maximum(codes, 0)))
        return where_possible(names, pl.Series(codes >= 0))


def _scored(
    model: Model, rows: pl.LazyFrame, columns: list[str], progress: Progress | None, watch: Watch
) -> Iterator[tuple[pl.DataFrame, Floats, Floats]]:
    def one(batch: pl.DataFrame) -> tuple[pl.DataFrame, Floats, Floats]:
        if isinstance(model, TextClassifier):
            return batch, *scored_batch(model.fitted_, batch, watch)
        scores = model.predict_joint_log_proba(batch.select(columns))
        return batch, scores, np.zeros(batch.height)

    text = columns if isinstance(model, TextClassifier) else ()
    yield from map_in_threads(one, batches(rows, text, progress=progress))


def top_log_odds(scores: Floats) -> Floats:
    """Log-odds (base e) of each row's most probable class against all others together."""
    every = np.arange(len(scores))
    best = scores.argmax(axis=1) if len(scores) else every
    others = scores.copy()
    others[every, best] = -np.inf
    with np.errstate(invalid="ignore"):
        odds = scores[every, best] - np.logaddexp.reduce(others, axis=1)
    return np.where(np.isnan(odds), 0.0, odds)


def learned_rows(model: Model) -> NDArray[Any]:
    """Rows of each class that the model learned: (n_classes,)."""
    estimator = model.estimator_
    counts = getattr(estimator, "class_count_", None)
    return np.asarray(estimator.statistics_.class_count if counts is None else counts)


def priors(model: Model) -> Floats | None:
    """P(class) as the model has it: float64 (n_classes,); None where it has none."""
    estimator = model.estimator_
    found = getattr(estimator, "class_log_prior_", None)
    if found is not None:
        return np.exp(np.asarray(found, dtype=np.float64))
    given = getattr(estimator, "priors_", None)
    return None if given is None else np.asarray(given, dtype=np.float64)


def has_probabilities(model: Model) -> bool:
    """Whether the model's probabilities are meant as such."""
    return getattr(model, "calibration_", None) is not None or scores_are_logs(model)


def scores_are_logs(model: Model) -> bool:
    """Whether the scores are log-probabilities: complement's weights and margins are not."""
    check_model(model.estimator_, "whether scores are log-probabilities")
    return bool(model.estimator_.scores_are_log_probabilities)


@dataclass(frozen=True, eq=False)
class Curve:
    """One class against the rest, at every threshold on its log-odds.

    Attributes
    ----------
    label : label
    roc, precision_recall : DataFrame
        ``x``, ``y``: some of the points, which keep the curve's shape.
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
    """A curve for each class that has rows of its own and others: `MOST_CURVES`, by their rows.

    Labels that the model does not know count as others.
    """
    if len(held.classes) < 2:
        return []
    odds = fair_log_odds(held)
    rows = np.bincount(held.actual[held.actual >= 0], minlength=len(held.classes))
    judged = np.flatnonzero((rows > 0) & (rows < len(held.actual)))
    most = judged[np.argsort(-rows[judged], kind="stable")[:MOST_CURVES]]
    labels = held.classes.tolist()
    return [_curve(labels[k], held.actual == k, odds[:, k]) for k in sorted(most.tolist())]


def fair_log_odds(held: HeldOut) -> Floats:
    """Log-odds of every class; a row that no class can have produced is evidence for none."""
    impossible = np.isneginf(held.scores).all(axis=1, keepdims=True)
    odds = log_odds(np.where(impossible, 0.0, held.scores))
    return np.where(np.isnan(odds), 0.0, odds)


def _curve(label: Any, truth: NDArray[np.bool_], odds: Floats) -> Curve:
    found = roc(truth, odds)
    # Ranks keep order and ties, and infinite log-odds too.
    ranks = np.unique(odds, return_inverse=True)[1]
    precision, recall, _ = precision_recall_curve(truth, ranks)
    return Curve(
        label,
        thinned(found.points["false_positive_rate"].to_numpy(),
                found.points["true_positive_rate"].to_numpy()),
        # The last point, recall 0 at precision 1, stands for no threshold.
        thinned(recall[-2::-1], precision[-2::-1]),
        found.auc, float(average_precision_score(truth, ranks)))


def thinned(x: Floats, y: Floats, points: int = POINTS) -> pl.DataFrame:
    """Points of a curve at about equal distances along it, its ends among them.

    Examples
    --------
    >>> thinned(np.linspace(0, 1, 1001), np.linspace(0, 1, 1001), 3).rows()
    [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)]
    """
    along = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    at = np.searchsorted(along, np.linspace(0.0, along[-1], points), side="left")
    kept = np.unique(np.concatenate([[0], at, [len(x) - 1]])).clip(max=len(x) - 1)
    return pl.DataFrame({"x": x[np.unique(kept)], "y": y[np.unique(kept)]})


def rates_of(positive: NDArray[np.bool_], called: NDArray[np.bool_]) -> Rates:
    """Counts and rates of rows that are called positive."""
    hits = int((positive & called).sum())
    return Rates(hits, int(called.sum()) - hits, int(positive.sum()) - hits,
                 int((~positive & ~called).sum()))


@dataclass(frozen=True, eq=False)
class Decided:
    """What a model's decision does on the test rows.

    Attributes
    ----------
    coverage : float
        Share of the rows that are given a class.
    accuracy : float or None
        Share of those that are right.
    per_class : DataFrame
        ``class``, ``threshold`` (log-odds, base e), ``right``, ``wrong``, ``unsure`` of the rows
        with that label, and ``false_positives``: other rows that are given the class.
    answer : int64 (n_rows,)
        Index of the class, -1 for unsure.
    """

    coverage: float
    accuracy: float | None
    per_class: pl.DataFrame
    answer: NDArray[np.int64]


def decided(model: Model, posterior: HeldOut) -> Decided | None:
    """The rows by the model's decision; None where it has none."""
    decision = getattr(model, "decision_", None)
    if decision is None:
        return None
    classes = posterior.classes.tolist()
    answer = decision.decide(log_odds(posterior.scores), classes)
    given, right = answer != UNSURE, answer == posterior.actual
    rows = []
    for k, label in enumerate(classes):
        own = posterior.actual == k
        rows.append((float(decision.thresholds[label]), int((own & right).sum()),
                     int((own & given & ~right).sum()), int((own & ~given).sum()),
                     int((~own & (answer == k)).sum())))
    table = pl.DataFrame(rows, orient="row", schema={
        "threshold": pl.Float64, "right": pl.Int64, "wrong": pl.Int64, "unsure": pl.Int64,
        "false_positives": pl.Int64})
    table.insert_column(0, pl.Series("class", classes))
    accuracy = float((given & right).sum() / given.sum()) if given.any() else None
    return Decided(float(given.mean()), accuracy, table, answer)


def histogram(values: Floats, groups: dict[str, NDArray[np.bool_]]) -> pl.DataFrame:
    """How the values of groups of rows are spread: ``low``, ``high``, ``group``, ``documents``.

    The bins hold the 1st to the 99th percentile of every group; the outer ones what is beyond.
    """
    finite = [values[rows & np.isfinite(values)] for rows in groups.values()]
    reach = [np.quantile(group, [0.01, 0.99]) for group in finite if len(group)]
    # Zero, where decisions change, is in sight.
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
    """Reliability of the probabilities as they are and, of a calibrated model, as it gives them."""
    held = scored.held
    calibrated = getattr(model, "calibration_", None) is not None
    if len(held.classes) < 2 or not (
            held.judged & (held.predicted != UNKNOWN)).any():
        return {}
    tables = {"calibrated": reliability(scored.posterior)} if calibrated else {}
    if scores_are_logs(model):
        tables[UNCALIBRATED] = reliability(held)
    return tables
