"""Measures of the order that scores give to labels and to documents.

They are sums over blocks of documents, so that the scores of all documents and labels are never
in memory at once. On documents with a label they equal `coverage_error`,
`label_ranking_average_precision_score`, `ndcg_score` and `average_precision_score` of
`sklearn.metrics`, whose functions take all scores in one piece and loop over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.scoring.columns import best_columns

# The first k labels are measured for each of these k.
_FIRST = (1, 3, 5)

# Gives the scores of all documents in blocks, float64 (n_some, n_labels), each time it is called.
Blocks = Callable[[], Iterable[Floats]]


@dataclass(frozen=True, eq=False)
class LabelRanking:
    """How well scores order the labels of each document, and the documents of each label.

    Attributes
    ----------
    first : DataFrame
        ``k`` (1, 3 and 5, up to the number of labels), ``precision`` (P@k: the share of right
        labels among the k with the highest scores) and ``ndcg`` (nDCG@k: right labels weigh more
        at the beginning; 1 is the best possible order). Equal scores are in the labels' order.
    coverage_error : float
        The mean number of labels, from the highest score on, that contain all of a document's.
    label_ranking_average_precision : float
        The mean, over the labels of a document, of the share of right labels among those with
        the same score or a higher one.
    average_precision : float64 (n_labels,)
        The area under precision against recall of each label; NaN where no document has it.

    Documents without a label have no order: the means leave them out, and are NaN if none is left.
    """

    first: pl.DataFrame
    coverage_error: float
    label_ranking_average_precision: float
    average_precision: Floats


def rank_labels(blocks: Blocks, true: Any) -> LabelRanking:
    """Measure the order of labels.

    Parameters
    ----------
    blocks : callable
        Its columns are those of ``true``. It is called twice.
    true : csr_array (n_documents, n_labels)

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> scores = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    >>> found = rank_labels(lambda: [scores], sp.csr_array([[1, 1, 0], [1, 0, 0]]))
    >>> found.first["precision"].to_list(), found.coverage_error
    ([0.5, 0.5], 2.5)
    >>> found.average_precision.round(4).tolist()  # of the last label, nothing can be said
    [1.0, 0.5, nan]
    """
    ks = [k for k in _FIRST if k <= true.shape[1]]
    sums, own, start = np.zeros(2 + 2 * len(ks)), [], 0
    for scores in blocks():
        lengths = np.diff(true.indptr[start:start + len(scores) + 1])
        columns = true.indices[true.indptr[start]:true.indptr[start + len(scores)]]
        scores_of_own = scores[np.repeat(np.arange(len(scores)), lengths), columns]
        sums += _sums_of_rows(scores, scores_of_own, columns, lengths, ks)
        own.append(scores_of_own)
        start += len(scores)
    labelled = int((np.diff(true.indptr) > 0).sum())
    with np.errstate(invalid="ignore"):
        coverage, precision, *first = (sums / labelled if labelled else sums * np.nan).tolist()
    table = pl.DataFrame({"k": ks, "precision": first[:len(ks)], "ndcg": first[len(ks):]},
                         schema={"k": pl.Int64, "precision": pl.Float64, "ndcg": pl.Float64})
    return LabelRanking(table, coverage, precision, _average_precision(
        blocks, np.concatenate([np.empty(0), *own]), true))


def _sums_of_rows(
    scores: Floats, own: Floats, columns: NDArray[Any], lengths: NDArray[Any], ks: list[int]
) -> Floats:
    """Coverage, ranking precision, P@k and nDCG@k, each summed over the rows of a block.

    Parameters
    ----------
    scores : float64 (n_rows, n_labels)
    own, columns : (n_own,)
        The scores and the places of the labels that rows have, row after row.
    lengths : (n_rows,)
        How many labels each row has.
    ks : list of int
    """
    row = np.repeat(np.arange(len(scores)), lengths)
    has = np.zeros(scores.shape, dtype=np.bool_)
    has[row, columns] = True
    reached = scores[row] >= own[:, None]
    rank = reached.sum(axis=1)
    coverage = np.zeros(len(scores), dtype=np.int64)
    np.maximum.at(coverage, row, rank)
    precision = ((reached & has[row]).sum(axis=1) / rank / lengths[row]).sum()
    most = max(ks, default=0)
    order = best_columns(scores, most)
    hits = np.take_along_axis(has, order, axis=1)
    discount = 1 / np.log2(np.arange(most) + 2)
    ideal = np.append(0.0, np.cumsum(discount))
    some = lengths > 0
    ndcg = [((hits[some, :k] @ discount[:k]) / ideal[np.minimum(lengths[some], k)]).sum()
            for k in ks]
    return np.array([coverage.sum(), precision, *(hits[:, :k].sum() / k for k in ks), *ndcg])


def _average_precision(blocks: Blocks, own: Floats, true: Any) -> Floats:
    """The average precision of each label, from the scores of the documents that have it.

    The precision at such a score needs no more than how many documents reach it, which is counted
    block by block.
    """
    n_labels = true.shape[1]
    order = np.lexsort((own, true.indices))
    ends = np.cumsum(np.bincount(true.indices, minlength=n_labels))
    with_rows = np.flatnonzero(np.diff(ends, prepend=0))
    steps = {k: np.unique(own[order[ends[k - 1] if k else 0:ends[k]]], return_counts=True)
             for k in with_rows.tolist()}
    between = {k: np.zeros(len(values) + 1, dtype=np.int64) for k, (values, _) in steps.items()}
    for scores in blocks():
        columns = np.ascontiguousarray(scores.T)
        for k, (values, _) in steps.items():
            between[k] += np.bincount(
                np.searchsorted(values, columns[k], side="right"), minlength=len(values) + 1)
    result: Floats = np.full(n_labels, np.nan)
    for k, (_, counts) in steps.items():
        right, reach = (np.cumsum(some[::-1])[::-1] for some in (counts, between[k][1:]))
        result[k] = (counts / counts.sum() * right / reach).sum()
    return result
