"""Probable label errors: confident learning, from probabilities by models that lack the row.

A model that is surer of a class than it is of most rows that are labelled so is taken at its word.
These rows estimate how often a class is labelled as another: the confident joint [1]_, whose
threshold is the mean; the upper quartile (of lists, the median) ranks more planted errors first.
By Bayes' rule, the probability that a label is wrong follows from the model's probabilities of the
classes, and from how often each of them gets that label. Of lists of labels, each label is a
question of its own, with two answers.

References
----------
.. [1] C. G. Northcutt, L. Jiang, I. L. Chuang (2021). Confident learning: estimating uncertainty in
   dataset labels. Journal of Artificial Intelligence Research 70, section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.forms import Floats, log_posterior, log_sigmoid
from textnb.bayes.sparse_rows import SparseRows
from textnb.evaluation.calibration import fit_calibration, link_of, scores_by_folds
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.leave_one_out import leave_one_out
from textnb.evaluation.mistakes import terms_between
from textnb.evaluation.roc import roc
from textnb.frames.batches import Progress
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import fit
from textnb.learning.text_settings import TextSettings
from textnb.scoring.columns import best_class
from textnb.text.matrix import CountMatrix

Ints = NDArray[np.int64]
# Terms that name the reason, and rows that are alike.
_TERMS, _NEAREST = 3, 3
# The maximum number of pairs of rows to compare at a time; and the number and share of rows beyond
# which a term says little of them, and costs much.
_PAIRS, _MANY, _FREQUENT = 1 << 24, 1000, 0.1
# The share of the rows of a class of which the model is less sure than of one that it is taken for.
_SURE, _SURE_OF_LISTS = 0.75, 0.5
# A label is superfluous only if its mean probability in the rows that have it is at least this.
_LEARNED = 0.5
# Classes are compared if more than this share of rows is confused; and below this area under their
# ROC curve, their words alone can't tell them apart.
_CONFUSED, _MIN_AREA = 0.2, 0.75


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """A model of all rows, their counts, and their scores by models that lack them.

    Attributes
    ----------
    fitted : Fitted
    counts : csr_array (n_rows, n_terms)
    held : HeldOut
        Calibrated.
    """

    fitted: Fitted
    counts: CountMatrix
    held: HeldOut

    @property
    def probabilities(self) -> Floats:
        """Of each class or label: float64 (n_rows, n_classes)."""
        to_logs = log_sigmoid if self.held.link == "sigmoid" else log_posterior
        return np.nan_to_num(np.exp(to_logs(self.held.probability_scores)))


def leave_rows_out(
    settings: TextSettings, rows: pl.DataFrame, progress: Progress | None = None
) -> LeftOutRows:
    """Score rows by models that lack them: exactly by subtraction, or else by parts.

    The models of parts begin at the solution of all rows, if they have a solver.
    """
    fitted = fit(settings, rows, left_out=True, progress=progress)
    counts = fitted.vocabulary.counts(rows, fitted.columns)
    left_out, link = fitted.learned.left_out, fitted.counts.link
    if left_out is None:
        model = settings.model
        by_parts = (model.scores_left_out or model.obstacle_to_leaving_out is not None
                    or fitted.is_multilabel)
        return _calibrated(
            fitted, counts, (scores_by_folds if by_parts else leave_one_out)(fitted, rows))
    held = HeldOut(fitted.classes, left_out.scores, left_out.actual, np.zeros(rows.height),
                   f"{left_out.parts} parts", link=link)
    return LeftOutRows(fitted, counts, held.calibrated(fitted.calibration))


def _calibrated(fitted: Fitted, counts: CountMatrix, held: HeldOut) -> LeftOutRows:
    if not held.is_calibrated:
        held = held.calibrated(fit_calibration(held, link=link_of(fitted)))
    return LeftOutRows(fitted, counts, held)


class Suspects(NamedTuple):
    """Labels that are probably wrong, the surest first.

    Attributes
    ----------
    rows, labels : int64 (n_suspects,)
        The row, and the class that it should have. Of lists, the label that is missing, or not.
    missing : bool (n_suspects,)
        Whether the row should have the label.
    confidence : float64 (n_suspects,)
        The probability that it should, or should not.
    margins : float64 (n_rows,)
        Of all rows: the probability that the label is wrong less that it is right; of lists, of the
        label that is the likeliest to be wrong.
    """

    rows: Ints
    labels: Ints
    missing: NDArray[np.bool_]
    confidence: Floats
    margins: Floats


def suspect_labels(chances: Floats, actual: NDArray[Any]) -> Suspects:
    """Find the labels that are probably wrong.

    Parameters
    ----------
    chances : float64 (n_rows, n_classes)
        Probabilities of classes that exclude each other, or of labels of lists.
    actual : int64 (n_rows,), or bool (n_rows, n_classes)
        The code of each row's class, or which labels it has.

    Examples
    --------
    >>> chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.2, 0.8]])
    >>> suspects = suspect_labels(chances, np.array([0, 0, 1, 1]))
    >>> suspects.rows.tolist(), suspects.labels.tolist(), suspects.confidence.round(2).tolist()
    ([2], [0], [0.79])
    """
    return _suspect_lists(chances, actual) if actual.dtype == np.bool_ else (
        _suspect_classes(chances, actual, _SURE))


def _suspect_classes(chances: Floats, actual: Ints, sure: float) -> Suspects:
    all_rows = np.arange(len(actual))
    posterior: Floats = chances * share_labelled(chances, actual, sure)[actual]
    total = posterior.sum(axis=1, keepdims=True)
    # Nothing is known of a row that every class finds impossible.
    posterior = np.divide(posterior, total, out=np.zeros_like(chances), where=total > 0)
    best = best_class(posterior)
    margins = np.where(total[:, 0] > 0, 1 - 2 * posterior[all_rows, actual], -1.0)
    rows = np.flatnonzero((best != actual) & (total[:, 0] > 0))
    rows = rows[np.argsort(-margins[rows], kind="stable")]
    return Suspects(rows, best[rows], np.ones(len(rows), dtype=np.bool_),
                    posterior[rows, best[rows]], margins)


def share_labelled(chances: Floats, actual: Ints, sure: float = _SURE) -> Floats:
    """The share of the rows of each class that get each label, from the confident joint.

    The mean of all cells but those of the diagonal, where one row at least is wrong, is added to
    these, so that a label that no row seems to have wrongly may still be wrong.

    Returns
    -------
    float64 (n_labels, n_classes)
        Its columns sum to 1.
    """
    all_rows, n = np.arange(len(actual)), chances.shape[1]
    own, sizes = chances[all_rows, actual], np.bincount(actual, minlength=n)
    place = np.cumsum(sizes) - sizes + (sure * (sizes - 1)).astype(np.int64)
    thresholds = own[np.lexsort((own, actual))[place]]
    above = np.where(chances >= thresholds, chances, -1.0)
    best = best_class(above)
    is_confident = above[all_rows, best] >= 0
    joint = np.zeros((n, n))
    np.add.at(joint, (actual[is_confident], best[is_confident]), 1)
    right = np.diag(joint).copy()
    joint += max(joint.sum() - right.sum(), 1) / (n * (n - 1))
    np.fill_diagonal(joint, right + 1)
    shares: Floats = joint / joint.sum(axis=0)
    return shares


def _suspect_lists(chances: Floats, has: NDArray[np.bool_]) -> Suspects:
    margins, none = np.full(len(has), -1.0), np.zeros(0, dtype=np.int64)
    parts = [(none, none, none == 1, none / 1.0)]
    for k in range(has.shape[1]):
        # Nothing to separate: all rows have the label, or none has it.
        if has[:, k].any() and not has[:, k].all():
            chance = chances[:, k]
            part = _suspect_classes(np.column_stack([1 - chance, chance]),
                                    has[:, k].astype(np.int64), _SURE_OF_LISTS)
            np.maximum(margins, part.margins, out=margins)
            # A model to which the rows of a label are unlikely has not learned what the label is:
            # it can say where it is missing, and not where it is superfluous.
            some = (part.labels == 1) | (chance[has[:, k]].mean() >= _LEARNED)
            parts.append((part.rows[some], np.full(some.sum(), k), part.labels[some] == 1,
                          part.confidence[some]))
    rows, labels, missing, confidence = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(-confidence, kind="stable")
    return Suspects(rows[order], labels[order], missing[order], confidence[order], margins)


def reasons(left_out: LeftOutRows, suspects: Suspects, names: pl.Series) -> Iterator[str]:
    """For each suspect, the terms that say so and the nearest rows.

    Parameters
    ----------
    left_out : LeftOutRows
    suspects : Suspects
    names : Series of String (n_rows,)
        Each row as it is called: its number and its label.
    """
    counts, actual = left_out.counts[suspects.rows], left_out.held.actual
    of_lists, none = actual.ndim > 1, np.full(len(suspects.rows), -1)
    against = np.where(suspects.missing, none, suspects.labels) if of_lists else (
        actual[suspects.rows])
    row, terms = terms_between(
        left_out.fitted, SparseRows(counts.data, counts.indices, counts.indptr, counts.shape[1]),
        np.where(suspects.missing, suspects.labels, none), against, _TERMS)
    words: list[list[str]] = [[] for _ in suspects.rows]
    for place, term in zip(row.tolist(), terms, strict=True):
        words[place].append(repr(term))
    for own, near in zip(words, nearest_rows(left_out.counts, suspects.rows), strict=True):
        yield "; ".join(filter(None, (
            f"because of {', '.join(own)}" if own else "",
            f"nearest rows: {', '.join(names.gather(near))}" if len(near) else "")))


def nearest_rows(counts: CountMatrix, rows: Ints, limit: int = _NEAREST) -> Iterator[Ints]:
    """For each of some rows, the other rows of the greatest cosine of their tf-idf, in order.

    Terms of more than a tenth of the rows are left out, if that is more than 1,000.
    """
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    few = np.flatnonzero(
        (frequency > 1) & (frequency <= max(_FREQUENT * counts.shape[0], _MANY)))
    cells = counts[:, few].astype(np.float64)
    cells.data = (1 + np.log(cells.data)) * np.log(counts.shape[0] / frequency[few])[cells.indices]
    norms = np.sqrt(np.asarray(cells.multiply(cells).sum(axis=1)).ravel())
    norms[norms == 0] = 1.0
    cells = cells.multiply(1 / norms[:, None]).tocsr()
    columns, step = cells.T.tocsr(), max(1, _PAIRS // counts.shape[0])
    for begin in range(0, len(rows), step):
        block = rows[begin:begin + step]
        products = (cells[block] @ columns).tocsr()
        for row, start, end in zip(block, products.indptr, products.indptr[1:], strict=False):
            others, alike = products.indices[start:end], products.data[start:end].copy()
            alike[others == row] = 0.0
            if len(alike) > limit:
                # The first rows on a tie, whatever the order of the entries.
                some = alike >= np.partition(alike, -limit)[-limit]
                others, alike = others[some], alike[some]
            best = np.lexsort((others, -alike))[:limit]
            yield others[best[alike[best] > 0]].astype(np.int64)


def inseparable_classes(chances: Floats, actual: Ints) -> Iterator[tuple[int, int, float]]:
    """Pairs of classes whose rows a model can hardly tell apart, and the area under their ROC.

    Parameters
    ----------
    chances : float64 (n_rows, n_classes)
    actual : int64 (n_rows,)
    """
    n = chances.shape[1]
    confused, sizes = np.zeros((n, n)), np.bincount(actual, minlength=n)
    np.add.at(confused, (actual, best_class(chances)), 1)
    often = confused + confused.T > _CONFUSED * np.minimum(sizes, sizes[:, None])
    with np.errstate(divide="ignore"):
        logs = np.log(chances)
    for a, b in np.argwhere(np.triu(often, 1)).tolist():
        rows = np.flatnonzero((actual == a) | (actual == b))
        with np.errstate(invalid="ignore"):
            odds = np.nan_to_num(logs[rows, a] - logs[rows, b])
        area = roc(actual[rows] == a, odds).auc
        if area < _MIN_AREA:
            yield a, b, area
