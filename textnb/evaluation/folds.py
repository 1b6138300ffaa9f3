"""Cross-validation by subtraction: what a fold's model has learned is all counts less the fold's.

    total = count(fold 1) + ... + count(fold k)
    model of fold f = the model of total - count(fold f)

Counts are integers, so that model is the one that a fit on the other folds gives, to the bit: its
vocabulary and limits too, which are chosen anew from the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone

from textnb.bayes.forms import Floats
from textnb.bayes.known import known_event_model
from textnb.bayes.statistics import is_auto
from textnb.errors import DataError, ParameterError, quantity
from textnb.estimators.text import TextClassifier
from textnb.evaluation.held_out import UNKNOWN, HeldOut, codes_of
from textnb.evaluation.metrics import Evaluation, evaluation
from textnb.frames.batches import Progress, batches
from textnb.frames.scan import reading, scan
from textnb.runtime.threads import map_in_threads
from textnb.scoring.texts import scored_batch
from textnb.selection.splits import LEARNED_ONLY, Split, split, text_columns
from textnb.text.term_counts import TermCounts

# Text of all folds together that waits to be counted.
_BUFFER = 128 << 20


def cross_validate(
    model: TextClassifier, frame: Any, *, folds: int = 5, groups: str | None = None,
    time: str | None = None, seed: int = 0, progress: Progress | None = None,
) -> HeldOut:
    """Score each labelled document by a model of the other folds.

    Documents are counted once, and each fold's counts are subtracted from their sum: the scores are
    those of refitting, to the bit. Models without counts that add (`NBLogisticRegression`,
    ``l="auto"``) are refitted for each fold, on texts that are collected. A class with fewer
    documents than folds, or in a fold whose model has not learned it, gives a warning.

    Parameters
    ----------
    model : TextClassifier
        Settings; it need not be fitted, and is not changed.
    frame : DataFrame, LazyFrame or path
        With the model's text and label columns. It is read three times (labels, counts, scores) and
        must give its rows in the same order each time. The models of all folds are held at once.
    folds : int
        2 or more.
    groups : str, optional
        Column whose equal values stay in one fold, e.g. the author.
    time : str, optional
        Column of dates, datetimes or numbers (or strings that write them). Documents are divided in
        its order into ``folds + 1`` parts, and each is scored by a model of all parts before it.
        The first part is learned and not among the results. Equal times stay together.
    seed : int
        Shuffles the documents, or the groups, before they are divided; must be 0 with ``time``.
    progress : callable, optional
        Called with the number of documents of each batch that was counted (or collected).

    Returns
    -------
    HeldOut
        Rows in the frame's order; with ``time``, without those of the first part (they are where
        `textnb.selection.splits.split` gives -1). ``classes`` are those of the whole frame: the
        score of a class that a fold's model has not learned is -inf. Not calibrated.

    Raises
    ------
    ParameterError
        If a setting is out of range, or there are fewer documents of every class, fewer groups or
        fewer different times than the folds need.
    DataError
        If there are no rows, one class alone, or a label, group or time is null.

    Examples
    --------
    >>> frame = pl.DataFrame({"text": ["good film", "good", "bad film", "bad"],
    ...                       "label": ["pos", "pos", "neg", "neg"]})
    >>> held = cross_validate(TextClassifier(), frame, folds=2)
    >>> held.accuracy, sorted(held.folds.tolist())
    (1.0, [0, 0, 1, 1])
    """
    if not isinstance(model, TextClassifier):
        raise ParameterError(
            f"cross_validate is for a TextClassifier; got {type(model).__name__}. For feature "
            "tables use sklearn.model_selection.cross_val_score(model, table, labels)")
    with reading(frame):
        rows = scan(frame, text=text_columns(model.text, model.label), label=model.label)
        made = split(rows, model.label, folds=folds, groups=groups, time=time, seed=seed)
        return score_folds(model, rows, made, progress=progress)


def score_folds(
    model: TextClassifier, frame: Any, made: Split, *, progress: Progress | None = None
) -> HeldOut:
    """As `cross_validate`, on folds that were made before, by `split` or otherwise."""
    names = text_columns(model.text, model.label)
    with reading(frame):
        read = scan(frame, text=names, label=model.label).select(*names, model.label)
        if _adds(model):
            models = _by_subtraction(model, _in_folds(read, names, made, progress), made)
            scores, lengths = _scores(models, _in_folds(read, names, made), made)
        else:
            collected = read.collect()
            if progress is not None:
                progress(collected.height)
            models = [clone(model).fit(collected.filter(pl.Series(made.learned_by(fold))))
                      for fold in range(made.count)]
            scores, lengths = _scores(models, _in_folds(collected, names, made), made)
    tested = made.folds != LEARNED_ONLY
    actual = codes_of(made.labels, made.classes)
    # By fold and class: whether the fold's model has learned the class.
    learned = np.stack([np.isin(made.classes.to_numpy(), model.classes_[
        model.fitted_.counts.class_count > 0]) for model in models])
    without = ~learned[made.folds[tested], actual[tested]]
    return HeldOut(made.classes.to_numpy(), scores[tested], actual[tested], lengths[tested],
                   made.method, made.folds[tested],
                   without_class=without if without.any() else None)


def evaluation_of(held: HeldOut) -> Evaluation:
    """Accuracy, measures per class and confusion of scores that were held out.

    Parameters
    ----------
    held : HeldOut

    Raises
    ------
    DataError
        If a label is none of the classes: only `evaluate`, which reads the labels, can name it.

    Examples
    --------
    >>> held = HeldOut(np.array(["a", "b"]), np.array([[0.0, -1.0], [0.0, -2.0]]), np.array([0, 1]),
    ...                np.ones(2), "held-out rows")
    >>> evaluation_of(held).confusion.tolist()
    [[1, 0, 0], [1, 0, 0]]
    """
    strangers = int((held.actual == UNKNOWN).sum())
    if strangers:
        raise DataError(f"{quantity(strangers, 'document', 'has', 'have')} a label that is none "
                        "of the model's classes; evaluate(model, frame) counts them and names "
                        "their labels")
    if not len(held):
        raise DataError("no documents were scored: there is nothing to measure")
    classes = pl.Series(held.classes.tolist())
    predicted = pl.Series(held.predicted)
    pairs = pl.DataFrame({
        "actual": classes.gather(pl.Series(held.actual)),
        "predicted": classes.gather(predicted.replace(UNKNOWN, None)),
    }).group_by("actual", "predicted").len("n")
    return evaluation(pairs, classes)


def accuracy_by_fold(held: HeldOut) -> pl.DataFrame:
    """``fold``, ``documents`` and ``accuracy`` of each fold: a row per fold.

    Parameters
    ----------
    held : HeldOut

    Raises
    ------
    ParameterError
        If the scores come from one model.

    Examples
    --------
    >>> held = HeldOut(np.array(["a", "b"]), np.array([[0.0, -1.0], [0.0, -2.0]]), np.array([0, 1]),
    ...                np.ones(2), "2 folds", np.array([0, 1]))
    >>> accuracy_by_fold(held)["accuracy"].to_list()
    [1.0, 0.0]
    """
    if held.folds is None:
        raise ParameterError(f"these scores are of one model ({held.method}): there are no folds")
    right = pl.DataFrame({"fold": held.folds, "right": held.predicted == held.actual})
    return right.group_by("fold").agg(
        documents=pl.len().cast(pl.Int64), accuracy=pl.col("right").mean()).sort("fold")


def _adds(model: TextClassifier) -> bool:
    """Whether the model follows from counts alone: a parameter that is chosen needs the rows."""
    estimator = model.estimator
    if estimator is None:
        return True
    known = known_event_model(estimator)
    return known is not None and known.from_counts and not is_auto(estimator.l)


Part = tuple[NDArray[np.int64], pl.DataFrame]


def _in_folds(
    frame: pl.LazyFrame | pl.DataFrame, names: list[str], made: Split,
    progress: Progress | None = None,
) -> Iterator[tuple[Part, ...]]:
    """Each batch as parts of one fold: the numbers of their rows, and the rows."""
    seen, expected = 0, len(made.folds)
    for batch in batches(frame, names, progress=progress):
        if seen + batch.height <= expected:
            own = made.folds[seen:seen + batch.height]
            places = [np.flatnonzero(own == fold) for fold in np.unique(own)]
            yield tuple((place + seen, batch[place]) for place in places)
        seen += batch.height
    if seen != expected:
        raise DataError(f"the frame gave {quantity(expected, 'row')} at first and {seen} when it "
                        "was "
                        "read again; collect it before it is validated")


def _by_subtraction(
    model: TextClassifier, read: Iterator[tuple[Part, ...]], made: Split
) -> list[TextClassifier]:
    counts = _counts(model, read, made)
    models = []
    if made.in_time:
        learned = counts[LEARNED_ONLY]
        for fold in range(made.count):
            models.append(clone(model).fit_statistics(learned))
            learned = learned + counts[fold]
        return models
    total = counts[0]
    for fold in range(1, made.count):
        total = total + counts[fold]
    return [clone(model).fit_statistics(total - counts[fold]) for fold in range(made.count)]


def _counts(
    model: TextClassifier, read: Iterator[tuple[Part, ...]], made: Split
) -> dict[int, TermCounts]:
    """Counts per fold, in one pass. Few and large additions, as each costs a whole vocabulary."""
    waiting: dict[int, list[pl.DataFrame]] = {}
    sizes: dict[int, float] = {}
    counts: dict[int, TermCounts] = {}
    # Of the parameters as they are, whatever the model itself was fitted with.
    settings = clone(model)

    def add(fold: int) -> None:
        more = settings.count(pl.concat(waiting.pop(fold)))
        counts[fold] = counts[fold] + more if fold in counts else more
        sizes[fold] = 0

    for parts in read:
        for rows, part in parts:
            fold = int(made.folds[rows[0]])
            waiting.setdefault(fold, []).append(part)
            sizes[fold] = sizes.get(fold, 0) + part.estimated_size()
        while sum(sizes.values()) > _BUFFER:
            add(max(sizes, key=sizes.__getitem__))
    for fold in sorted(waiting):
        add(fold)
    return counts


def _scores(
    models: list[TextClassifier], read: Iterator[tuple[Part, ...]], made: Split
) -> tuple[Floats, Floats]:
    scores = np.full((len(made.folds), len(made.classes)), -np.inf)
    lengths = np.zeros(len(made.folds))
    columns = [codes_of(pl.Series(model.classes_.tolist()), made.classes) for model in models]

    def score(parts: tuple[Part, ...]) -> None:
        for rows, part in parts:
            fold = int(made.folds[rows[0]])
            if fold != LEARNED_ONLY:
                own, lengths[rows] = scored_batch(models[fold].fitted_, part)
                scores[rows[:, None], columns[fold]] = own

    for _ in map_in_threads(score, read):
        pass
    return scores, lengths
