"""One trial of a search: a cross-validation of settings on a part of the rows.

Terms are counted once for each tokenizer and number of rows; the rows of each fold are taken from
that matrix. The model of a fold has only the terms of its own rows. So its scores are bit-identical
to those of a model that is fitted on these rows.

Trials share counts of terms, and the rows that `NBLinear` learns from in a fold, but nothing that
was learned: a solver begins anew in each trial. From the weights of the trial before it would end
elsewhere within the tolerance, and results would depend on the order of trials.
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
from textnb.runtime.memory import check_room
from textnb.runtime.threads import map_in_threads
from textnb.selection.candidates import Candidate
from textnb.selection.metric import Metric
from textnb.selection.splits import Split
from textnb.text.matrix import CountMatrix

# The share of the rows in each rung. Most settings are dropped on the small rungs, which are fast.
_SHARES = (1 / 3, 1.0)
# A rung with fewer rows than this says too little, and is left out.
_MIN_ROWS = 1_000
# The maximum number of bytes in a cache.
_MAX_BYTES = 1 << 30
Item = TypeVar("Item")
# The rows that a fold's model is learned from, and the mask of its columns: bool (n_terms,).
PreparedFold = tuple[PreparedRows, NDArray[np.bool_]]


class Recent(Generic[Item]):
    """A cache of the items that were used last, of limited size.

    Parameters
    ----------
    size : callable
        The bytes of an item.
    """

    def __init__(self, size: Callable[[Item], int], max_bytes: int = _MAX_BYTES) -> None:
        self._size, self._max_bytes = size, max_bytes
        self._items: OrderedDict[Hashable, Item] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Item]) -> Item:
        """Return the item of a key, and make it if it is missing. Threads may call it at once."""
        item = self._items.get(key)
        if item is None:
            item = make()
        self._items[key] = item
        self._items.move_to_end(key)
        return item

    def drop_oldest(self) -> None:
        """Drop the least recently used items until the others fit, or one is left.

        Call it from one thread only.
        """
        while len(self._items) > 1 and sum(
                map(self._size, self._items.values())) > self._max_bytes:
            self._items.popitem(last=False)


@dataclass(frozen=True, eq=False)
class TrialResult:
    """The result of one trial: the scores of its held-out documents.

    Attributes
    ----------
    value : float
        The metric.
    scores : float64 (n_documents, n_classes)
        Calibrated where the metric needs probabilities. Of lists of labels, less the thresholds
        that documents of the other folds chose.
    codes : int64 (n_documents,), or bool (n_documents, n_labels)
    calibration : Calibration or None
        The temperature that was fitted to these scores; None if the model calibrates itself, or
        could not be learned, or of lists of labels.
    thresholds : float64 (n_labels,) or None
        Of lists of labels: those that all documents chose.
    """

    value: float
    scores: Floats
    codes: NDArray[Any]
    calibration: Calibration | None
    thresholds: Floats | None = None


class Trials:
    """Judges settings on the rows of a search and their folds, and caches counts of terms.

    Parameters
    ----------
    frame : DataFrame
        Has the text and label columns.
    text : list of str
    label : str
    partition : Split
        The fold of each row.
    metric : Metric
    seed : int
        Chooses the rows of the smaller rungs.

    Attributes
    ----------
    failure : str
        Why settings could not be learned, of those that were judged last; "" if all could.
    """

    def __init__(
        self, frame: pl.DataFrame, text: list[str], label: str, partition: Split, metric: Metric,
        seed: int,
    ) -> None:
        self.text, self.label, self.metric = text, label, metric
        self._frame, self._partition = frame, partition
        self._classes = partition.classes.to_list()
        # By their places, which are the columns of scores.
        self._labels = replace(partition.labels, classes=np.arange(len(self._classes)))
        check_room(len(self._labels), len(self._classes), 3 * 8, "the scores of a trial")
        shares = [share for share in _SHARES if share * frame.height >= _MIN_ROWS] or [1.0]
        self._rungs = _nested_rows(partition.folds, partition.strata, shares, seed)
        self._matrices: Recent[DocumentTermMatrix] = Recent(lambda matrix: (
            matrix.counts.data.nbytes + matrix.counts.indices.nbytes
            + matrix.counts.indptr.nbytes + int(matrix.terms.estimated_size())))
        self._prepared: Recent[PreparedFold] = Recent(
            lambda fold: sum(part.nbytes for part in fold))
        self.failure = ""

    @property
    def of_lists(self) -> bool:
        """Whether documents have lists of labels."""
        return self._labels.link == "sigmoid"

    @property
    def classes(self) -> pl.Series:
        """The classes of the rows, sorted."""
        return self._partition.classes

    @property
    def rungs(self) -> list[int]:
        """The number of rows of each rung, ascending; the last rung has all rows."""
        return [len(rows) for rows in self._rungs]

    def judge(self, candidate: Candidate, rung: int) -> TrialResult:
        """Cross-validate settings on the rows of a rung.

        Settings that can't be learned from these rows have the value NaN.
        """
        rows, classes = self._rungs[rung], self._classes
        folds = self._partition.folds[rows]
        chosen = np.zeros(len(self._partition.folds), dtype=np.bool_)
        chosen[rows] = True
        labels = self._labels.of_rows(chosen)
        try:
            matrix = self._matrix(candidate, rung)
            scores = self._held_out_scores(
                candidate, rung, matrix, replace(self._partition, folds=folds), labels)
        except (DataError, VocabularyError) as error:
            self.failure = str(error)
            return TrialResult(
                float("nan"), np.empty((0, len(classes))), np.empty(0, np.int64), None)
        tested = folds >= 0
        scores, actual = scores[tested], labels.of_rows(tested).actual
        if self.of_lists:
            return self._with_thresholds(scores, actual, folds[tested])
        calibration = None
        if candidate.model.from_counts:
            calibration = _fitted_temperature(scores, actual, f"{self._partition.count} folds")
            scores = scores / calibration.temperature
        return TrialResult(self.metric.value(scores, actual, classes), scores, actual, calibration)

    def _with_thresholds(
        self, scores: Floats, actual: NDArray[np.bool_], folds: Ints
    ) -> TrialResult:
        by = self.metric.label_goal
        margins = margins_of(by, scores, actual, folds)
        return TrialResult(
            self.metric.value(margins, actual, self._classes), margins, actual, None,
            f1_thresholds(by, scores, actual))

    def _held_out_scores(
        self, candidate: Candidate, rung: int, matrix: DocumentTermMatrix, partition: Split,
        labels: Labels,
    ) -> Floats:
        """Score each row by the model of its fold; -inf for classes that this model has not
        learned."""
        scores = np.full((len(labels), len(self._classes)), -np.inf)
        model, counts = candidate.model, matrix.counts
        if isinstance(model, NBLinear) and not self.metric.needs_probabilities:
            # Fitting a temperature takes half of the time, and does not change the order of scores.
            model = replace(model, held_out=0.0)
        settings = replace(candidate, model=model).settings(self.text, self.label)

        def score(fold: int) -> None:
            training = partition.training_rows(fold)
            tested = np.flatnonzero(partition.folds == fold)
            own = labels.of_rows(training).without_unused()
            # A subclass may learn otherwise.
            if type(model) is NBLinear and not model.held_out:
                key = (candidate.tokenizer, rung, fold, candidate.min_df, candidate.subwords,
                       model.tf, model.idf, model.unit_length, model.loss)
                prepared, columns = self._prepared.get(key, lambda: _prepare(
                    settings, counts[training], matrix.terms, own))
                model.check(int(columns.sum()), 2)
                learned = prepared.learn(model, own)
            else:
                learned, columns = learn(settings, counts[training], matrix.terms, own)
            rows = counts[tested][:, columns]
            fold_scores = learned.form.scores(rows)
            if learned.calibration is not None:
                fold_scores = learned.calibration.apply(fold_scores, np.asarray(rows.sum(axis=1)))
            scores[tested[:, None], learned.form.classes] = fold_scores

        for _ in map_in_threads(score, range(partition.count)):
            pass
        self._prepared.drop_oldest()
        return scores

    def _matrix(self, candidate: Candidate, rung: int) -> DocumentTermMatrix:
        def count() -> DocumentTermMatrix:
            # All terms are counted (min_df is 1): which to keep depends on the rows of a fold.
            settings = Candidate(candidate.tokenizer, 1, MultinomialNB()).settings(
                self.text, self.label)
            batches = labelled_batches(settings, self._frame[self._rungs[rung]])
            return document_term_matrix(batches)

        matrix = self._matrices.get((candidate.tokenizer, rung), count)
        self._matrices.drop_oldest()
        return matrix


def learn(
    settings: TextSettings, counts: CountMatrix, terms: pl.Series, labels: Labels
) -> tuple[Learned, NDArray[np.bool_]]:
    """Fit a model on rows of counts; return it with the mask of the columns that it uses."""
    columns, mask = _frequent_columns(counts, settings.parameters["min_df"])
    model = settings.model
    if not model.from_counts:
        sharing = sharing_of(settings, terms.filter(pl.Series(mask)), columns)
        options: dict[str, Any] = {} if sharing is None else {"sharing": sharing}
        return model.learn_rows(columns, labels, **options), mask
    above = model.presence_above(False)
    features = columns if above is None else presence(columns, above)
    model.check(features.shape[1], 2)
    return model.learn_counts(Counts.from_labels(features, labels)), mask


def margins_of(by: str, scores: Floats, actual: NDArray[np.bool_], folds: Ints) -> Floats:
    """Scores less thresholds that the documents of the other folds chose.

    Parameters
    ----------
    by, scores, actual
        As in `f1_thresholds`.
    folds : int64 (n_documents,)

    Examples
    --------
    >>> scores = np.array([[2.0], [1.0], [-1.0], [-3.0]])
    >>> actual = np.array([[True], [True], [True], [False]])
    >>> margins_of("f1", scores, actual, np.array([0, 1, 0, 1])).round(1).tolist()
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
    mask = np.bincount(counts.indices, minlength=counts.shape[1]) >= max(min_df, 1)
    if not mask.any():
        raise VocabularyError("no term is left")
    return counts if mask.all() else counts[:, mask], mask


def _prepare(
    settings: TextSettings, counts: CountMatrix, terms: pl.Series, labels: Labels
) -> PreparedFold:
    columns, mask = _frequent_columns(counts, settings.parameters["min_df"])
    return PreparedRows.of(
        settings.model, without_zeros(canonical(columns)), labels,
        sharing=sharing_of(settings, terms.filter(pl.Series(mask)), columns)), mask


def _fitted_temperature(scores: Floats, codes: Ints, method: str) -> Calibration:
    # The fit needs finite scores. A class that a fold's model has not learned gets the lowest score
    # of the other classes in place of -inf.
    lowest = np.where(np.isneginf(scores), np.inf, scores).min(axis=1, keepdims=True)
    finite = np.where(np.isneginf(scores), np.where(np.isposinf(lowest), 0.0, lowest), scores)
    temperature = float(np.clip(best_temperature(finite, codes), 1e-9, 1e9))
    return Calibration(temperature, 0.0, len(codes), method)


def _nested_rows(folds: Ints, codes: Ints, shares: list[float], seed: int) -> list[Ints]:
    """The rows of each rung, sorted.

    A rung has the same share of each class in each fold, and all rows of the rung before it.
    """
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.lexsort((codes[order], folds[order]))]
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(folds[order]) != 0)
                                            | (np.diff(codes[order]) != 0)]))
    sizes = np.diff(np.append(starts, len(order)))
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    group_size = np.repeat(sizes, sizes)
    return [np.sort(order[rank < np.ceil(share * group_size)]).astype(np.int64) for share in shares]
