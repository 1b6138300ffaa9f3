"""Cross-validation by subtraction: a fold's model is derived from all counts less the fold's own.

    total = count(fold 1) + ... + count(fold k)
    model of fold f = the model of total - count(fold f)

Counts are integers, so this model equals a fit on the other folds to the bit. Its vocabulary, with
limits such as ``min_df``, is chosen from the difference too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.classes import find_typed_class
from textnb.bayes.counts import Counts
from textnb.bayes.decision import choose_labels
from textnb.bayes.forms import Floats
from textnb.bayes.labels import Labels
from textnb.bayes.statistics import is_auto
from textnb.classifiers.texts import asks_for_search
from textnb.errors import DataError, Mention, ParameterError, quantity
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.novelty import codes_among
from textnb.frames.batches import Progress, batches
from textnb.frames.failures import naming_source
from textnb.frames.kinds import select_columns
from textnb.frames.scan import scan
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import count, fit, fit_from_counts
from textnb.learning.text_settings import TextSettings
from textnb.models.multinomial import MultinomialNB
from textnb.models.protocol import unfitted
from textnb.runtime.progress import Size, current_progress, muted
from textnb.runtime.threads import map_in_threads
from textnb.scoring.texts import score_batch
from textnb.selection.splits import LEARNED_ONLY, Split, split

if TYPE_CHECKING:
    from textnb.classifiers.text import TextClassifier

# Bytes of text, of all folds together, that may wait to be counted.
_MAX_WAITING_BYTES = 128 << 20
# Rows of one fold in a batch: their numbers in the frame, and the rows.
FoldRows = tuple[NDArray[np.int64], pl.DataFrame]


@dataclass(frozen=True, eq=False)
class Recipe:
    """The settings of a model, and a function that learns rows with them.

    Attributes
    ----------
    settings : TextSettings
        For a search over models (``TextClassifier("auto")``), only its columns matter.
    from_counts : bool
        Whether sums of counts determine the model; not if a parameter must be chosen from rows.
    fit : callable
        Learns the rows of a DataFrame and returns the model.
    """

    settings: TextSettings
    from_counts: bool
    fit: Callable[[pl.DataFrame], Fitted]

    @classmethod
    def of(cls, model: Any, caller: str, with_scores_left_out: bool = False) -> Recipe:
        """Make a recipe of a classifier's settings, or of those that a model was fitted with.

        ``caller`` is the name of the function that fits them, for errors. With
        ``with_scores_left_out``, each fit also keeps out-of-fold scores of its documents.

        Raises
        ------
        ParameterError
            If it is not a model of texts, or its fit makes no such scores.
        """
        is_search = asks_for_search(getattr(model, "estimator", None))
        if isinstance(model, Fitted):
            settings = model.settings
        elif not hasattr(type(model), "text_settings"):
            raise ParameterError(
                f"{caller} is for a TextClassifier; got {type(model).__name__}. For feature "
                "tables use sklearn.model_selection.cross_val_score(model, table, labels)")
        elif is_search:
            settings = TextSettings.of(MultinomialNB(), text=model.text, label=model.label,
                                       tokenizer=model.tokenizer)
        else:
            settings = model.text_settings()
        estimator = settings.model
        if with_scores_left_out and (is_search or not estimator.scores_left_out):
            name = "a model that is searched for" if is_search else (
                estimator.name or type(estimator).__name__)
            raise ParameterError(
                "max_false_positive_rate is for models whose fit scores documents by models of "
                f"others, as NBLinear's does; got {name}. Leave it out, and choose a threshold "
                "from the result's scores with choose_threshold")
        if is_search:
            return cls(settings, from_counts=False,
                       fit=lambda rows: unfitted(model).fit(rows).fitted_)
        return cls(settings, from_counts=estimator.from_counts and not is_auto(estimator.l),
                   fit=partial(fit, settings, left_out=with_scores_left_out))

    def scan(self, frame: Any, *others: str | None) -> pl.LazyFrame:
        """The rows, with their columns checked; ``others`` are columns that are read too."""
        columns, label = self.settings.columns, self.settings.label
        # What is no name of a column is refused where it is used.
        names = [*columns, label, *(name for name in others if isinstance(name, str))]
        return scan(select_columns(frame, [*dict.fromkeys(names)]), text=columns, label=label,
                    tokens=self.settings.token_columns)


def cross_validate(
    model: TextClassifier | Fitted, frame: Any, *, folds: int = 5, groups: str | None = None,
    time: str | None = None, seed: int = 0, progress: Progress | None = None,
) -> Any:
    """Score each labelled document by a model of the other folds.

    Documents are counted once, and each fold's counts are subtracted from their sum: the scores are
    those of refitting, to the bit. Models that sums of counts don't determine
    (`NBLogisticRegression`, ``l="auto"``) are refitted for each fold, on texts that are collected
    in memory. A warning names classes with fewer documents than folds, and classes that a fold's
    model has not learned.

    Parameters
    ----------
    model : TextClassifier
        The settings. It need not be fitted, and is not changed.
    frame : DataFrame, LazyFrame or path
        With the model's text and label columns. It is read three times (labels, counts, scores) and
        must give its rows in the same order each time. The models of all folds are in memory at
        once.
    folds : int
        2 or more.
    groups : str, optional
        Column whose equal values stay in one fold, e.g. the author.
    time : str, optional
        Column of dates, datetimes or numbers, or of strings that hold them. Documents are divided
        in its order into ``folds + 1`` parts, and each is scored by a model of all parts before it.
        The first part is learned and not among the results. Equal times stay together.
    seed : int
        Shuffles the documents, or the groups, before they are divided; must be 0 with ``time``.
    progress : callable, optional
        Called with the number of documents of each batch that was counted (or collected).

    Returns
    -------
    HeldOut
        Rows in the frame's order; with ``time``, without the rows of the first part (for which
        `textnb.selection.splits.split` gives -1). ``classes`` are those of the whole frame: the
        score of a class that a fold's model has not learned is -inf. Scores are not calibrated; if
        ``fit`` chooses a calibration, each fold's model has chosen its own on the rows that it
        learned, and ``posterior``, ``log_loss`` and `reliability` use that one.

    Raises
    ------
    ParameterError
        If a setting is out of range, no class has as many documents as there are folds, or there
        are too few groups or different times.
    DataError
        If there are no rows, only one class, or a label, group or time is null.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> frame = pl.DataFrame({"text": ["good film", "good", "bad film", "bad"],
    ...                       "label": ["pos", "pos", "neg", "neg"]})
    >>> held = cross_validate(TextClassifier(), frame, folds=2)
    >>> held.accuracy, sorted(held.folds.tolist())
    (1.0, [0, 0, 1, 1])
    """
    recipe = Recipe.of(model, "cross_validate")
    with naming_source(frame):
        rows = recipe.scan(frame, groups, time)
        partition = split(rows, recipe.settings.label, folds=folds, groups=groups, time=time,
                          seed=seed)
        return score_folds(model, rows, partition, progress=progress)


def score_folds(
    model: TextClassifier | Fitted, frame: Any, partition: Split, *,
    progress: Progress | None = None,
) -> Any:
    """Score each document by a model of the other folds, as `cross_validate` does."""
    recipe = Recipe.of(model, "cross_validate")
    settings, columns = recipe.settings, recipe.settings.columns
    _check_learned(settings, partition)
    with naming_source(frame):
        lazy = recipe.scan(frame).select(*columns, settings.label)
        rows: pl.LazyFrame | pl.DataFrame = lazy
        if recipe.from_counts:
            batches_by_fold = _split_batches(lazy, columns, partition, progress)
            models = _fit_by_subtraction(
                settings, _count_folds(settings, batches_by_fold, partition), partition)
        else:
            rows = lazy.collect()
            if progress is not None:
                progress(rows.height)
            models = _fit_folds(recipe, rows, partition)
        progress_line = current_progress()
        progress_line.begin("scoring", Size(len(partition.folds)))
        batches_by_fold = _split_batches(rows, columns, partition, progress_line.advance)
        scores = ScoresByModels(
            partition.labels, calibrates=any(fitted.calibration for fitted in models),
            decides=any(fitted.decision for fitted in models))

        def score(batch_by_fold: tuple[FoldRows, ...]) -> None:
            for numbers, part in batch_by_fold:
                fold = int(partition.folds[numbers[0]])
                if fold != LEARNED_ONLY:
                    scores.score(models[fold], numbers, part)

        for _ in map_in_threads(score, batches_by_fold):
            pass
    held = scores.held_out(partition.method, partition.folds)
    if not held.is_multilabel:
        # Whether the model of each fold has learned each class: (n_folds, n_classes).
        learned = np.stack([np.isin(held.classes, fitted.classes[
            fitted.counts.class_count > 0]) for fitted in models])
        # Rows that no model scores have LEARNED_ONLY (-1), and index the last model to no effect.
        lacks_class = ~learned[partition.folds, held.actual] & (partition.folds != LEARNED_ONLY)
        held = replace(held, without_class=lacks_class if lacks_class.any() else None)
    return held.take(partition.folds != LEARNED_ONLY)


def _check_learned(settings: TextSettings, partition: Split) -> None:
    """Refuse the weight or prior of a class of which the model of a fold learns no document."""
    weights, priors = (getattr(settings.model, name, None)
                       for name in ("class_weight", "class_prior"))
    if priors is None and not isinstance(weights, Mapping):
        return
    for fold in range(partition.count):
        for label in partition.labels.classes[partition.unlearned(fold)].tolist():
            is_named = priors is not None or any(
                find_typed_class([label], key) is not None for key in weights or ())
            if is_named:
                raise ParameterError.naming_settings(
                    "{setting} names the class {label!r}, of which the model of a fold learns no "
                    "document: use fewer folds, or leave its documents out",
                    setting=Mention("class_weight" if priors is None else "class_prior"),
                    label=label)


def _fit_folds(recipe: Recipe, rows: pl.DataFrame, partition: Split) -> list[Fitted]:
    progress_line, models = current_progress(), []
    progress_line.begin("fitting", Size(partition.count), "fold")
    for fold in range(partition.count):
        with muted():
            models.append(recipe.fit(rows.filter(pl.Series(partition.training_rows(fold)))))
        progress_line.advance(1)
    return models


def _split_batches(
    frame: pl.LazyFrame | pl.DataFrame, columns: list[str], partition: Split,
    progress: Progress | None = None,
) -> Iterator[tuple[FoldRows, ...]]:
    """Divide each batch by folds, into `FoldRows` for each fold that it has."""
    n_seen, n_expected = 0, len(partition.folds)
    for batch in batches(frame, columns, progress=progress):
        if n_seen + batch.height <= n_expected:
            folds = partition.folds[n_seen:n_seen + batch.height]
            by_fold = [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
            yield tuple((rows + n_seen, batch[rows]) for rows in by_fold)
        # Rows beyond those that have folds are counted too, for the error.
        n_seen += batch.height
    if n_seen != n_expected:
        raise DataError(f"the frame gave {quantity(n_expected, 'row')} at first and {n_seen} when "
                        "it was read again; collect it before it is validated")


def _fit_by_subtraction(
    settings: TextSettings, counts: dict[int, Counts], partition: Split
) -> list[Fitted]:
    """The model of each fold, from the counts of all folds."""
    models = []
    if partition.in_time:
        learned = counts[LEARNED_ONLY]
        for fold in range(partition.count):
            models.append(fit_from_counts(settings, learned))
            learned = learned + counts[fold]
        return models
    total = counts[0]
    for fold in range(1, partition.count):
        total = total + counts[fold]
    return [fit_from_counts(settings, total - counts[fold]) for fold in range(partition.count)]


def _count_folds(
    settings: TextSettings, batches_by_fold: Iterator[tuple[FoldRows, ...]], partition: Split
) -> dict[int, Counts]:
    """Count the documents of each fold in one pass.

    Batches of a fold are collected before they are added, as each addition of counts goes through
    the whole vocabulary.
    """
    waiting: dict[int, list[pl.DataFrame]] = {}
    n_bytes: dict[int, float] = {}
    counts: dict[int, Counts] = {}

    def add(fold: int) -> None:
        new = count(settings, pl.concat(waiting.pop(fold)))
        counts[fold] = counts[fold] + new if fold in counts else new
        n_bytes[fold] = 0

    for batch_by_fold in batches_by_fold:
        for numbers, part in batch_by_fold:
            fold = int(partition.folds[numbers[0]])
            waiting.setdefault(fold, []).append(part)
            n_bytes[fold] = n_bytes.get(fold, 0) + part.estimated_size()
        while sum(n_bytes.values()) > _MAX_WAITING_BYTES:
            add(max(n_bytes, key=n_bytes.__getitem__))
    for fold in sorted(waiting):
        add(fold)
    return counts


class ScoresByModels:
    """The scores of documents by several models, each with its own classes.

    If models may have a calibration (``calibrates``) or thresholds of labels (``decides``),
    `HeldOut.posterior` and `HeldOut.answers` use those of each document's model.
    """

    def __init__(self, labels: Labels, calibrates: bool, decides: bool) -> None:
        self._labels, self._classes = labels, pl.Series(labels.classes.tolist())
        self._scores = np.full((len(labels), len(labels.classes)), -np.inf)
        self._lengths = np.zeros(len(labels))
        self._posterior = self._scores.copy() if calibrates else None
        self._answers = self._scores > 0 if decides and labels.is_multilabel else None

    def score(
        self, fitted: Fitted, rows: NDArray[np.int64], batch: pl.DataFrame,
        thresholds: Floats | None = None,
    ) -> None:
        """Score the documents of some ``rows``; subtract ``thresholds``, (n_classes,), from scores.

        ``rows`` are the documents' places among ``labels``, and ``batch`` has their texts.
        """
        scores, lengths = score_batch(fitted, batch)
        # The cells of the classes that the model has, which may be only some of them.
        cells = rows[:, None], codes_among(fitted.labels, self._classes)
        self._scores[cells] = scores if thresholds is None else scores - thresholds
        self._lengths[rows] = lengths
        if self._posterior is not None:
            self._posterior[cells] = scores if fitted.calibration is None else (
                fitted.calibration.apply(scores, lengths))
        if self._answers is not None:
            self._answers[cells] = choose_labels(scores, fitted.labels.to_list(), fitted.decision)

    def held_out(self, method: str, folds: NDArray[np.int64]) -> HeldOut:
        """The scores of all documents."""
        return HeldOut(self._labels.classes, self._scores, self._labels.actual, self._lengths,
                       method, folds, posterior=self._posterior, link=self._labels.link,
                       answers=self._answers)
