"""One trial of a search: settings are learned on some folds and judged on the others.

Terms are counted once for a tokenizer and a number of rows; the rows of each fold are taken from
that matrix. A fold's model has the terms of its own rows alone, so that its scores are those of a
fit on them, to the bit.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.counts.linear import Linear
from textnb.bayes.counts.multinomial import Multinomial
from textnb.bayes.event_model import EventModel, Learned
from textnb.bayes.features import presence
from textnb.bayes.forms import Floats
from textnb.bayes.linear import best_temperature
from textnb.bayes.statistics import CountStatistics
from textnb.errors import DataError, VocabularyError
from textnb.learning.documents import document_term_matrix
from textnb.learning.fitting import labelled_batches
from textnb.runtime.threads import map_in_threads
from textnb.selection.candidates import Candidate
from textnb.selection.metric import Metric
from textnb.selection.splits import Split
from textnb.text.matrix import CountMatrix

Ints = NDArray[np.int64]
# Shares of the rows that settings are judged on: most are dropped on few rows.
_SHARES = (1 / 9, 1 / 3, 1.0)
_LEAST_ROWS = 1_000
# Bytes of matrices that are kept for further trials of the same tokens.
_KEPT = 1 << 30


@dataclass(frozen=True, eq=False)
class Judged:
    """Scores of the held-out documents of one trial.

    Attributes
    ----------
    value : float
        The metric.
    scores : float64 (n_documents, n_classes)
        Calibrated where the metric needs probabilities.
    codes : int64 (n_documents,)
    calibration : Calibration or None
        The temperature that these scores want, where the model brings none of its own.
    """

    value: float
    scores: Floats
    codes: Ints
    calibration: Calibration | None


class Trials:
    """The rows of a search, and their folds.

    Parameters
    ----------
    frame : DataFrame
        With the text and label columns.
    text : list of str
    label : str
    made : Split
        The fold of each row.
    metric : Metric
    seed : int
        Which rows the smaller rungs have.
    """

    def __init__(
        self, frame: pl.DataFrame, text: list[str], label: str, made: Split, metric: Metric,
        seed: int,
    ) -> None:
        self.text, self.label, self.metric = text, label, metric
        self._frame, self._made = frame, made
        self._classes = made.classes.to_list()
        self._codes = made.classes.search_sorted(made.labels).to_numpy().astype(np.int64)
        shares = [share for share in _SHARES if share * frame.height >= _LEAST_ROWS] or [1.0]
        self._rungs = _nested_rows(made.folds, self._codes, shares, seed)
        self._matrices: OrderedDict[object, tuple[CountMatrix, int]] = OrderedDict()

    @property
    def rungs(self) -> list[int]:
        """The number of rows of each rung, ascending; the last is all."""
        return [len(rows) for rows in self._rungs]

    def judge(self, candidate: Candidate, rung: int) -> Judged:
        """Cross-validate settings on the rows of a rung.

        Settings that can't be learned from these rows have the value NaN.
        """
        rows = self._rungs[rung]
        made = replace(self._made, labels=self._made.labels.gather(rows),
                       folds=self._made.folds[rows])
        codes, classes = self._codes[rows], self._classes
        try:
            counts = self._counts(candidate, rung)
            scores = _held_out_scores(candidate, counts, made, codes, len(classes),
                                      self.metric.needs_probabilities)
        except (DataError, VocabularyError):
            return Judged(float("nan"), np.empty((0, len(classes))), np.empty(0, np.int64), None)
        tested = made.folds >= 0
        scores, codes = scores[tested], codes[tested]
        calibration = None
        if candidate.model.from_counts:
            calibration = _fitted_temperature(scores, codes, f"{made.count} folds")
            scores = scores / calibration.temperature
        return Judged(self.metric.value(scores, codes, classes), scores, codes, calibration)

    def _counts(self, candidate: Candidate, rung: int) -> CountMatrix:
        key = candidate.tokenizer, rung
        if key in self._matrices:
            self._matrices.move_to_end(key)
            return self._matrices[key][0]
        # Of all terms: which of them are kept depends on the rows of a fold.
        settings = Candidate(candidate.tokenizer, 1, Multinomial()).settings(self.text, self.label)
        batches = labelled_batches(settings, self._frame[self._rungs[rung]])
        counts = document_term_matrix(batches).counts
        size = counts.data.nbytes + counts.indices.nbytes + counts.indptr.nbytes
        while self._matrices and size + sum(own for _, own in self._matrices.values()) > _KEPT:
            self._matrices.popitem(last=False)
        self._matrices[key] = counts, size
        return counts


def learn(
    model: EventModel, counts: CountMatrix, labels: NDArray[np.int64], min_df: int
) -> tuple[Learned, NDArray[np.bool_]]:
    """What a model learns from rows of counts, and the columns that it has weights for."""
    kept = np.bincount(counts.indices, minlength=counts.shape[1]) >= max(min_df, 1)
    if not kept.any():
        raise VocabularyError("no term is left")
    own = counts if kept.all() else counts[:, kept]
    if not model.from_counts:
        return model.learn_rows(own, labels), kept
    above = model.presence_above(False)
    counted = own if above is None else presence(own, above)
    model.check(counted.shape[1], 2)
    return model.learn_counts(CountStatistics.from_matrix(counted, labels)), kept


def _held_out_scores(
    candidate: Candidate, counts: CountMatrix, made: Split, codes: Ints, classes: int,
    calibrated: bool,
) -> Floats:
    """Scores of each row by the model of other folds; -inf for classes that it has not learned."""
    scores = np.full((len(codes), classes), -np.inf)
    model = candidate.model
    if isinstance(model, Linear) and not calibrated:
        # A temperature changes no order of scores, and takes half of the time.
        model = replace(model, held_out=0.0)

    def score(fold: int) -> None:
        learned_rows, tested = made.training_rows(fold), np.flatnonzero(made.folds == fold)
        learned, kept = learn(model, counts[learned_rows], codes[learned_rows],
                              candidate.min_df)
        rows = counts[tested][:, kept]
        own = learned.form.scores(rows)
        if learned.calibration is not None:
            own = learned.calibration.apply(own, np.asarray(rows.sum(axis=1)))
        scores[tested[:, None], learned.form.classes] = own

    for _ in map_in_threads(score, range(made.count)):
        pass
    return scores


def _fitted_temperature(scores: Floats, codes: Ints, method: str) -> Calibration:
    # A class that a fold has not learned is as improbable as the least of the others.
    least = np.where(np.isneginf(scores), np.inf, scores).min(axis=1, keepdims=True)
    finite = np.where(np.isneginf(scores), np.where(np.isposinf(least), 0.0, least), scores)
    temperature = float(np.clip(best_temperature(finite, codes), 1e-9, 1e9))
    return Calibration(temperature, 0.0, len(codes), method)


def _nested_rows(folds: Ints, codes: Ints, shares: list[float], seed: int) -> list[Ints]:
    """Rows of each rung, ascending: of each class in each fold the same share, and all of the
    rung before."""
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.lexsort((codes[order], folds[order]))]
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(folds[order]) != 0)
                                            | (np.diff(codes[order]) != 0)]))
    sizes = np.diff(np.append(starts, len(order)))
    place = np.arange(len(order)) - np.repeat(starts, sizes)
    among = np.repeat(sizes, sizes)
    return [np.sort(order[place < np.ceil(share * among)]).astype(np.int64) for share in shares]
