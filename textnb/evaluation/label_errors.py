"""Probable label errors: confident learning, from probabilities by models that lack the row.

A row is assigned to a class if its probability of the class reaches a threshold. The labels of the
assigned rows estimate how often each class is labelled as another: the confident joint [1]_. In
[1]_, the threshold is the mean probability of the class in the rows with its label; here it is the
upper quartile (for lists of labels, the median), which ranks more planted errors first. By Bayes'
rule, the probability that a label is wrong follows from the model's probabilities of the classes,
and from how often each class gets that label. In lists of labels, each label is a problem of its
own with two classes: rows that should have the label, and rows that should not.

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
# The maximum numbers of terms and of nearest rows that a reason names.
_MAX_TERMS, _MAX_NEAREST = 3, 3
# The maximum number of pairs of rows to compare at a time.
_MAX_PAIRS = 1 << 24
# Rows are compared without terms that occur in more rows than this number and also than this share
# of all rows: such terms say little, and cost much.
_MAX_ROWS, _MAX_SHARE = 1000, 0.1
# The quantile of the probabilities of a class in the rows with its label: any row whose probability
# reaches it is assigned to the class.
_QUANTILE, _QUANTILE_OF_LISTS = 0.75, 0.5
# A label can be superfluous only if its mean probability in the rows that have it is at least this.
_MIN_MEAN_PROBABILITY = 0.5
# Two classes are inseparable if more than this share of the smaller one's rows is confused, and the
# area under their ROC curve is below this.
_MIN_CONFUSED_SHARE, _MAX_AREA = 0.2, 0.75


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """A model of all rows, their counts, and their scores by models that lack them.

    Attributes
    ----------
    fitted : Fitted
    counts : csr_array (n_rows, n_terms)
    held_out : HeldOut
        The calibrated scores of each row by a model that lacks it.
    """

    fitted: Fitted
    counts: CountMatrix
    held_out: HeldOut

    @property
    def probabilities(self) -> Floats:
        """The probability of each class or label: float64 (n_rows, n_classes)."""
        to_logs = log_sigmoid if self.held_out.is_multilabel else log_posterior
        return np.nan_to_num(np.exp(to_logs(self.held_out.probability_scores)))


def leave_rows_out(
    settings: TextSettings, rows: pl.DataFrame, progress: Progress | None = None
) -> LeftOutRows:
    """Score rows by models that lack them: by exact subtraction if possible, else by folds.

    If the model has a solver, that of each fold starts at the solution of all rows.
    """
    fitted = fit(settings, rows, left_out=True, progress=progress)
    counts = fitted.vocabulary.counts(rows, fitted.columns)
    left_out = fitted.learned.left_out
    if left_out is not None:
        # Without lengths: the calibration of such a fit does not depend on them.
        held = HeldOut(fitted.classes, left_out.scores, left_out.actual, np.zeros(rows.height),
                       f"{left_out.n_folds} parts", link=fitted.counts.link)
        return LeftOutRows(fitted, counts, held.calibrated(fitted.calibration))
    # A model with an obstacle can't leave rows out by subtracting their counts.
    by_folds = fitted.is_multilabel or settings.model.obstacle_to_leaving_out is not None
    held = (scores_by_folds if by_folds else leave_one_out)(fitted, rows)
    if not held.is_calibrated:
        held = held.calibrated(fit_calibration(held, link=link_of(fitted)))
    return LeftOutRows(fitted, counts, held)


class Suspects(NamedTuple):
    """Labels that are probably wrong, the surest first.

    Attributes
    ----------
    rows, labels : int64 (n_suspects,)
        The row, and the class that it should have; for lists, the label to add or to remove.
    missing : bool (n_suspects,)
        Whether the row should have the label; always True for classes.
    confidence : float64 (n_suspects,)
        The probability that this correction is right.
    margins : float64 (n_rows,)
        For all rows: the probability that the label is wrong minus the probability that it is
        right; for lists, of the label that is most likely wrong.
    """

    rows: Ints
    labels: Ints
    missing: NDArray[np.bool_]
    confidence: Floats
    margins: Floats


def suspect_labels(probabilities: Floats, actual: NDArray[Any]) -> Suspects:
    """Find the labels that are probably wrong.

    ``probabilities`` are (n_rows, n_classes). ``actual`` is the code of each row's class; for lists
    of labels, it is a bool array of which labels each row has.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.2, 0.8]])
    >>> suspects = suspect_labels(probabilities, np.array([0, 0, 1, 1]))
    >>> suspects.rows.tolist(), suspects.labels.tolist(), suspects.confidence.round(2).tolist()
    ([2], [0], [0.79])
    """
    return _suspect_lists(probabilities, actual) if actual.dtype == np.bool_ else (
        _suspect_classes(probabilities, actual, _QUANTILE))


def _suspect_classes(probabilities: Floats, actual: Ints, quantile: float) -> Suspects:
    all_rows = np.arange(len(actual))
    posterior: Floats = probabilities * label_shares(probabilities, actual, quantile)[actual]
    total = posterior.sum(axis=1, keepdims=True)
    # Nothing is known of a row that every class finds impossible.
    posterior = np.divide(posterior, total, out=np.zeros_like(probabilities), where=total > 0)
    best = best_class(posterior)
    margins = np.where(total[:, 0] > 0, 1 - 2 * posterior[all_rows, actual], -1.0)
    rows = np.flatnonzero((best != actual) & (total[:, 0] > 0))
    rows = rows[np.argsort(-margins[rows], kind="stable")]
    return Suspects(rows, best[rows], np.ones(len(rows), dtype=np.bool_),
                    posterior[rows, best[rows]], margins)


def label_shares(probabilities: Floats, actual: Ints, quantile: float = _QUANTILE) -> Floats:
    """The share of the rows of each class that get each label, from the confident joint.

    The counts are smoothed, so that a label that no row seems to have wrongly may still be wrong:
    one row is added to each cell of the diagonal, and to each other cell the mean of these other
    cells, whose sum is taken as at least one row.

    Returns
    -------
    float64 (n_labels, n_classes)
        Its columns sum to 1.
    """
    all_rows, n = np.arange(len(actual)), probabilities.shape[1]
    of_label, sizes = probabilities[all_rows, actual], np.bincount(actual, minlength=n)
    # The threshold of a class: the quantile of its probabilities in the rows with its label, which
    # are sorted by label, then by probability.
    quantile_index = np.cumsum(sizes) - sizes + (quantile * (sizes - 1)).astype(np.int64)
    thresholds = of_label[np.lexsort((of_label, actual))[quantile_index]]
    above = np.where(probabilities >= thresholds, probabilities, -1.0)
    best = best_class(above)
    is_confident = above[all_rows, best] >= 0
    joint = np.zeros((n, n))
    np.add.at(joint, (actual[is_confident], best[is_confident]), 1)
    diagonal = np.diag(joint).copy()
    joint += max(joint.sum() - diagonal.sum(), 1) / (n * (n - 1))
    np.fill_diagonal(joint, diagonal + 1)
    shares: Floats = joint / joint.sum(axis=0)
    return shares


def _suspect_lists(probabilities: Floats, has: NDArray[np.bool_]) -> Suspects:
    margins, empty = np.full(len(has), -1.0), np.zeros(0, dtype=np.int64)
    # The first four fields of `Suspects`, label by label. The first entry is empty, with the types
    # of these arrays, for data without suspects.
    suspects = [(empty, empty, empty == 1, empty / 1.0)]
    for k in range(has.shape[1]):
        # If all rows have the label, or none has it, there is nothing to separate.
        if has[:, k].any() and not has[:, k].all():
            probability = probabilities[:, k]
            of_label = _suspect_classes(np.column_stack([1 - probability, probability]),
                                        has[:, k].astype(np.int64), _QUANTILE_OF_LISTS)
            np.maximum(margins, of_label.margins, out=margins)
            # A model that finds the label unlikely in the rows that have it has not learned it: it
            # can find rows that lack the label, but not rows that have it wrongly.
            is_credible = (of_label.labels == 1) | (
                probability[has[:, k]].mean() >= _MIN_MEAN_PROBABILITY)
            suspects.append((of_label.rows[is_credible], np.full(is_credible.sum(), k),
                             of_label.labels[is_credible] == 1,
                             of_label.confidence[is_credible]))
    rows, labels, missing, confidence = map(np.concatenate, zip(*suspects, strict=True))
    order = np.argsort(-confidence, kind="stable")
    return Suspects(rows[order], labels[order], missing[order], confidence[order], margins)


def reasons(left_out: LeftOutRows, suspects: Suspects, names: pl.Series) -> Iterator[str]:
    """For each suspect, in words: the terms that speak against its label, and the nearest rows.

    ``names`` has a name for each row of the table: its number and its label.
    """
    counts, actual = left_out.counts[suspects.rows], left_out.held_out.actual
    is_multilabel, no_class = actual.ndim > 1, np.full(len(suspects.rows), -1)
    # The label that is wrong: of a list that lacks a label, there is none.
    against = np.where(suspects.missing, no_class, suspects.labels) if is_multilabel else (
        actual[suspects.rows])
    suspect_of_term, terms = terms_between(
        left_out.fitted, SparseRows(counts.data, counts.indices, counts.indptr, counts.shape[1]),
        toward=np.where(suspects.missing, suspects.labels, no_class), against=against, k=_MAX_TERMS)
    terms_of: list[list[str]] = [[] for _ in suspects.rows]
    for suspect, term in zip(suspect_of_term.tolist(), terms, strict=True):
        terms_of[suspect].append(repr(term))
    for reason, near in zip(terms_of, nearest_rows(left_out.counts, suspects.rows), strict=True):
        yield "; ".join(filter(None, (
            f"because of {', '.join(reason)}" if reason else "",
            f"nearest rows: {', '.join(names.gather(near))}" if len(near) else "")))


def nearest_rows(counts: CountMatrix, rows: Ints, limit: int = _MAX_NEAREST) -> Iterator[Ints]:
    """For each of ``rows``, the other rows with the greatest cosine of tf-idf, the greatest first.

    Terms that occur in more than 1,000 rows and in more than a tenth of all rows are left out.
    """
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    rare = np.flatnonzero(
        (frequency > 1) & (frequency <= max(_MAX_SHARE * counts.shape[0], _MAX_ROWS)))
    cells = counts[:, rare].astype(np.float64)
    cells.data = (1 + np.log(cells.data)) * np.log(counts.shape[0] / frequency[rare])[cells.indices]
    norms = np.sqrt(np.asarray(cells.multiply(cells).sum(axis=1)).ravel())
    norms[norms == 0] = 1.0
    cells = cells.multiply(1 / norms[:, None]).tocsr()
    columns, step = cells.T.tocsr(), max(1, _MAX_PAIRS // counts.shape[0])
    for begin in range(0, len(rows), step):
        block = rows[begin:begin + step]
        products = (cells[block] @ columns).tocsr()
        for row, start, end in zip(block, products.indptr, products.indptr[1:], strict=False):
            others, cosines = products.indices[start:end], products.data[start:end].copy()
            cosines[others == row] = 0.0
            if len(cosines) > limit:
                # Rows that tie with the last of the best stay; the first of them are chosen below.
                is_near = cosines >= np.partition(cosines, -limit)[-limit]
                others, cosines = others[is_near], cosines[is_near]
            best = np.lexsort((others, -cosines))[:limit]
            yield others[best[cosines[best] > 0]].astype(np.int64)


def inseparable_classes(probabilities: Floats, actual: Ints) -> Iterator[tuple[int, int, float]]:
    """Pairs of classes whose rows a model can hardly tell apart, and the area under their ROC."""
    n = probabilities.shape[1]
    confused, sizes = np.zeros((n, n)), np.bincount(actual, minlength=n)
    np.add.at(confused, (actual, best_class(probabilities)), 1)
    is_frequent = confused + confused.T > _MIN_CONFUSED_SHARE * np.minimum(sizes, sizes[:, None])
    with np.errstate(divide="ignore"):
        logs = np.log(probabilities)
    for a, b in np.argwhere(np.triu(is_frequent, 1)).tolist():
        rows = np.flatnonzero((actual == a) | (actual == b))
        with np.errstate(invalid="ignore"):
            log_odds = np.nan_to_num(logs[rows, a] - logs[rows, b])
        area = roc(actual[rows] == a, log_odds).auc
        if area < _MAX_AREA:
            yield a, b, area
