"""One trial of a search: a cross-validation of settings on some of the rows.

A rung is a number of rows on which settings are tried: a part of the rows, or all of them.

Terms are counted once for each tokenizer and rung, in a matrix from which each fold takes its rows.
The model of a fold has only the terms of the rows that it learns, so that its scores have the bits
of a model that is fitted on these rows.

Trials share counts of terms, and the matrices from which `NBLinear` learns in a fold, but no
weights: if a solver started from those of the last trial, it would end elsewhere within the
tolerance, and results would depend on the order of trials.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.cells import Ints
from textnb.bayes.counts import Counts
from textnb.bayes.features import canonical, presence, without_zeros
from textnb.bayes.forms import Floats
from textnb.bayes.label_thresholds import f1_thresholds
from textnb.bayes.labels import Labels
from textnb.bayes.learned import Learned
from textnb.bayes.linear import PreparedRows
from textnb.bayes.temperature import best_temperature
from textnb.errors import DataError, VocabularyError
from textnb.learning.documents import DocumentTermMatrix, document_term_matrix
from textnb.learning.fitting import labelled_batches
from textnb.learning.sharing import sharing_of
from textnb.learning.text_settings import TextSettings
from textnb.models.multinomial import MultinomialNB
from textnb.models.nblinear import NBLinear
from textnb.runtime.memory import check_fits_in_memory
from textnb.runtime.threads import map_in_threads
from textnb.selection.candidates import Candidate
from textnb.selection.metric import Metric
from textnb.selection.splits import Split
from textnb.text.matrix import CountMatrix

# The share of the rows in each rung: a small rung is fast, and most settings lose there.
_SHARES = (1 / 3, 1.0)
# On fewer rows settings can't be compared well: there is no such rung.
_MIN_RUNG_ROWS = 1_000
_MAX_CACHE_BYTES = 1 << 30
Item = TypeVar("Item")
# What a fold's model learns from, and the mask of the terms that it has: bool (n_terms,).
PreparedFold = tuple[PreparedRows, NDArray[np.bool_]]


class RecentItems(Generic[Item]):
    """A cache of limited size, which drops the least recently used items.

    Parameters
    ----------
    size_of : callable
        Returns the size of an item in bytes.
    max_bytes : int
        The maximum size of all items, once `drop_oldest` was called.
    """

    def __init__(self, size_of: Callable[[Item], int], max_bytes: int = _MAX_CACHE_BYTES) -> None:
        self._size_of, self._max_bytes = size_of, max_bytes
        self._items: OrderedDict[Hashable, Item] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Item]) -> Item:
        """Return the item of a key; make it if it is missing. Threads may call this at once."""
        item = self._items.get(key)
        if item is None:
            item = make()
        self._items[key] = item
        self._items.move_to_end(key)
        return item

    def drop_oldest(self) -> None:
        """Drop the least recently used items until the others fit, or one is left.

        Only one thread may call this.
        """
        while len(self._items) > 1 and sum(
                map(self._size_of, self._items.values())) > self._max_bytes:
            self._items.popitem(last=False)


@dataclass(frozen=True, eq=False)
class TrialResult:
    """The result of one trial: the scores of its held-out documents.

    Attributes
    ----------
    value : float
        The metric.
    scores : float64 (n_documents, n_classes)
        Calibrated if the metric needs probabilities. With lists of labels, scores minus the
        thresholds that were chosen on the other folds.
    codes : int64 (n_documents,), or bool (n_documents, n_labels)
        The class or the labels of each document.
    calibration : Calibration or None
        The temperature that was fitted to these scores; None if the model calibrates itself or
        could not be learned, and for lists of labels.
    thresholds : float64 (n_labels,) or None
        Only for lists of labels: the thresholds that were chosen on all documents.
    """

    value: float
    scores: Floats
    codes: NDArray[Any]
    calibration: Calibration | None = None
    thresholds: Floats | None = None


class TrialRunner:
    """Tries settings on the folds of a search, and caches counts of terms.

    Parameters
    ----------
    frame : DataFrame
        With the text and label columns.
    text : list of str
    label : str
    partition : Split
        The fold of each row.
    metric : Metric
    seed : int
        Seed of the choice of rows for the small rung.

    Attributes
    ----------
    failure : str
        The error of the last settings that could not be learned; "" if all could.
    """

    def __init__(
        self, frame: pl.DataFrame, text: list[str], label: str, partition: Split, metric: Metric,
        seed: int,
    ) -> None:
        self.text, self.label, self.metric = text, label, metric
        self._frame, self._partition = frame, partition
        self._classes = partition.classes.to_list()
        # Classes are named by their index, which is the column of their scores.
        self._labels = replace(partition.labels, classes=np.arange(len(self._classes)))
        # At most three arrays of scores, float64 of 8 bytes, are in memory at once.
        check_fits_in_memory(len(self._labels), len(self._classes), 3 * 8, "the scores of a trial")
        shares = [share for share in _SHARES if share * frame.height >= _MIN_RUNG_ROWS] or [1.0]
        self._rungs = _nested_rows(partition.folds, partition.strata, shares, seed)
        self._matrices: RecentItems[DocumentTermMatrix] = RecentItems(lambda matrix: (
            matrix.counts.data.nbytes + matrix.counts.indices.nbytes
            + matrix.counts.indptr.nbytes + int(matrix.terms.estimated_size())))
        self._prepared_folds: RecentItems[PreparedFold] = RecentItems(
            lambda fold: sum(part.nbytes for part in fold))
        self.failure = ""

    @property
    def of_lists(self) -> bool:
        """Whether documents have lists of labels."""
        return self._labels.is_multilabel

    @property
    def classes(self) -> pl.Series:
        """The classes of the rows, sorted."""
        return self._partition.classes

    @property
    def rungs(self) -> list[int]:
        """The number of rows of each rung, ascending; the last rung has all rows."""
        return [len(rows) for rows in self._rungs]

    def run(self, candidate: Candidate, rung: int) -> TrialResult:
        """Cross-validate settings on the rows of a rung.

        The value is NaN for settings that can't be learned from these rows.
        """
        rows, classes = self._rungs[rung], self._classes
        folds = self._partition.folds[rows]
        is_in_rung = np.zeros(len(self._partition.folds), dtype=np.bool_)
        is_in_rung[rows] = True
        labels = self._labels.of_rows(is_in_rung)
        try:
            matrix = self._matrix(candidate, rung)
            scores = self._held_out_scores(
                candidate, rung, matrix, replace(self._partition, folds=folds), labels)
        except (DataError, VocabularyError) as error:
            self.failure = str(error)
            return TrialResult(np.nan, np.empty((0, len(classes))), np.empty(0, np.int64))
        # The first part in order of time is in no fold, and has no scores.
        has_scores = folds >= 0
        scores, actual = scores[has_scores], labels.of_rows(has_scores).actual
        if self.of_lists:
            return self._with_thresholds(scores, actual, folds[has_scores])
        calibration = None
        if candidate.model.from_counts:
            calibration = _fit_temperature(scores, actual, f"{self._partition.count} folds")
            scores = scores / calibration.temperature
        return TrialResult(self.metric.value(scores, actual, classes), scores, actual, calibration)

    def _with_thresholds(
        self, scores: Floats, actual: NDArray[np.bool_], folds: Ints
    ) -> TrialResult:
        by = self.metric.label_goal
        margins = subtract_thresholds(by, scores, actual, folds)
        return TrialResult(
            self.metric.value(margins, actual, self._classes), margins, actual,
            thresholds=f1_thresholds(by, scores, actual))

    def _held_out_scores(
        self, candidate: Candidate, rung: int, matrix: DocumentTermMatrix, partition: Split,
        labels: Labels,
    ) -> Floats:
        """The scores of each row by the model of its fold; -inf for classes that it lacks."""
        scores = np.full((len(labels), len(self._classes)), -np.inf)
        model, counts = candidate.model, matrix.counts
        if isinstance(model, NBLinear) and not self.metric.needs_probabilities:
            # The temperature that held-out rows choose takes half of the time, and does not change
            # the order of scores.
            model = replace(model, held_out=0.0)
        settings = replace(candidate, model=model).settings(self.text, self.label)

        def score(fold: int) -> None:
            is_training = partition.training_rows(fold)
            test_rows = np.flatnonzero(partition.folds == fold)
            fold_labels = labels.of_rows(is_training).without_unused()
            # A subclass may learn in another way. The prepared rows don't depend on C, l and power,
            # so that these are not in the key.
            if type(model) is NBLinear and not model.held_out:
                key = (candidate.tokenizer, rung, fold, candidate.min_df, candidate.subwords,
                       model.tf, model.idf, model.unit_length, model.loss)
                prepared, mask = self._prepared_folds.get(key, lambda: _prepare(
                    settings, counts[is_training], matrix.terms, fold_labels))
                model.check(n_features=int(mask.sum()), n_classes=2)
                learned = prepared.learn(model, fold_labels)
            else:
                learned, mask = learn(settings, counts[is_training], matrix.terms, fold_labels)
            rows = counts[test_rows][:, mask]
            fold_scores = learned.form.scores(rows)
            if learned.calibration is not None:
                fold_scores = learned.calibration.apply(fold_scores, np.asarray(rows.sum(axis=1)))
            scores[test_rows[:, None], learned.form.classes] = fold_scores

        for _ in map_in_threads(score, range(partition.count)):
            pass
        self._prepared_folds.drop_oldest()
        return scores

    def _matrix(self, candidate: Candidate, rung: int) -> DocumentTermMatrix:
        """The counts of all terms of a candidate's tokenizer in the rows of a rung."""
        def count() -> DocumentTermMatrix:
            # All terms are counted: each fold drops those that are rare in its rows.
            settings = Candidate(candidate.tokenizer, min_df=1, model=MultinomialNB()).settings(
                self.text, self.label)
            batches = labelled_batches(settings, self._frame[self._rungs[rung]])
            return document_term_matrix(batches)

        matrix = self._matrices.get((candidate.tokenizer, rung), count)
        self._matrices.drop_oldest()
        return matrix


def learn(
    settings: TextSettings, counts: CountMatrix, terms: pl.Series, labels: Labels
) -> tuple[Learned, NDArray[np.bool_]]:
    """Learn from rows of counts; return the result with the mask of the terms that it has.

    ``counts`` is (n_rows, n_terms), and ``terms`` has the name of each column.
    """
    counts, mask = _frequent_columns(counts, settings.parameters["min_df"])
    model = settings.model
    if not model.from_counts:
        sharing = sharing_of(settings, terms.filter(pl.Series(mask)), counts)
        options: dict[str, Any] = {} if sharing is None else {"sharing": sharing}
        return model.learn_rows(counts, labels, **options), mask
    # A model of presence learns in which rows a term is, and not how often.
    presence_threshold = model.presence_above(binary=False)
    features = counts if presence_threshold is None else presence(counts, presence_threshold)
    model.check(n_features=features.shape[1], n_classes=2)
    return model.learn_counts(Counts.from_labels(features, labels)), mask


def subtract_thresholds(by: str, scores: Floats, actual: NDArray[np.bool_], folds: Ints) -> Floats:
    """Scores minus the labels' thresholds, which for each fold are chosen on the other folds.

    Parameters
    ----------
    by : {"f1", "micro-f1"}
    scores, actual
        As in `f1_thresholds`.
    folds : int64 (n_documents,)

    Examples
    --------
    >>> scores = np.array([[2.0], [1.0], [-1.0], [-3.0]])
    >>> actual = np.array([[True], [True], [True], [False]])
    >>> subtract_thresholds("f1", scores, actual, np.array([0, 1, 0, 1])).round(1).tolist()
    [[3.2], [2.4], [0.2], [-1.6]]
    """
    margins = np.empty(scores.shape)
    for fold in np.unique(folds):
        in_fold = folds == fold
        margins[in_fold] = scores[in_fold] - f1_thresholds(by, scores[~in_fold], actual[~in_fold])
    return margins


def _frequent_columns(
    counts: CountMatrix, min_df: int
) -> tuple[CountMatrix, NDArray[np.bool_]]:
    """The columns of terms that are in at least ``min_df`` rows, and the mask of these columns."""
    mask = np.bincount(counts.indices, minlength=counts.shape[1]) >= max(min_df, 1)
    if not mask.any():
        raise VocabularyError("no term is left")
    return counts if mask.all() else counts[:, mask], mask


def _prepare(
    settings: TextSettings, counts: CountMatrix, terms: pl.Series, labels: Labels
) -> PreparedFold:
    """Prepare what `NBLinear` learns from; the parameters are those of `learn`."""
    counts, mask = _frequent_columns(counts, settings.parameters["min_df"])
    return PreparedRows.of(
        settings.model, without_zeros(canonical(counts)), labels,
        sharing=sharing_of(settings, terms.filter(pl.Series(mask)), counts)), mask


def _fit_temperature(scores: Floats, codes: Ints, method: str) -> Calibration:
    """The temperature by which scores become probabilities of the rows' classes."""
    # The fit needs finite scores. A class that a fold's model has not learned gets, in place of
    # -inf, the lowest score of the other classes, or 0 if no class has a finite score.
    is_missing = np.isneginf(scores)
    lowest = np.where(is_missing, np.inf, scores).min(axis=1, keepdims=True)
    finite = np.where(is_missing, np.where(np.isposinf(lowest), 0.0, lowest), scores)
    # Scores can't be divided by 0 or infinity.
    temperature = float(np.clip(best_temperature(finite, codes), 1e-9, 1e9))
    return Calibration(temperature, length_exponent=0.0, documents=len(codes), method=method)


def _nested_rows(folds: Ints, codes: Ints, shares: list[float], seed: int) -> list[Ints]:
    """The rows of each rung, sorted.

    A rung has the same share of each class in each fold, and all rows of the rung before it.
    ``codes`` are the rows' classes, and ``shares`` the share of the rows in each rung.
    """
    # In random order within each cell, that is all rows of one fold and class.
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.lexsort((codes[order], folds[order]))]
    # A cell starts where the fold or the class differs from that of the row before.
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(folds[order]) != 0)
                                            | (np.diff(codes[order]) != 0)]))
    sizes = np.diff(np.append(starts, len(order)))
    # For each row, its index in its cell, and the size of the cell.
    index = np.arange(len(order)) - np.repeat(starts, sizes)
    size = np.repeat(sizes, sizes)
    return [np.sort(order[index < np.ceil(share * size)]).astype(np.int64) for share in shares]
