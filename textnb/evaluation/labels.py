"""Measures of predictions where documents have any number of labels.

Measures of predicted labels are scikit-learn's. Measures that rank labels, or documents, by their
scores are sums over blocks of documents, so that the scores of all documents and labels are never
in memory at once. For documents with a label they equal `coverage_error`,
`label_ranking_average_precision_score`, `ndcg_score` and `average_precision_score` of
`sklearn.metrics`, whose functions take all scores in one piece and loop over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.classes import known_class
from textnb.bayes.forms import Floats
from textnb.errors import DataError, Mention, quantity
from textnb.evaluation import indicators
from textnb.evaluation.novelty import Novelty, novelty_entry
from textnb.evaluation.roc import Rates
from textnb.runtime import notebook
from textnb.scoring.columns import best_columns

# The values of k for which the k most probable labels are measured.
_KS = (1, 3, 5)
# Returns the scores of all documents in blocks, float64 (n_rows, n_labels), at each call.
Blocks = Callable[[], Iterable[Floats]]


@dataclass(frozen=True, eq=False)
class LabelEvaluation:
    """How well lists of labels are predicted.

    Attributes
    ----------
    documents : int
    micro_f1 : float
        F1 of all pairs of a document and a label: labels of many documents decide.
    macro_f1 : float
        The mean of the labels' F1: each label counts alike. A label that no document has, and that
        is never predicted, is left out.
    example_f1 : float
        The mean of the documents' F1; 1 if a document has no label, and none is predicted.
    subset_accuracy : float
        The share of documents of which all labels, and no others, are predicted.
    hamming_loss : float
        The share of wrong pairs of a document and a label.
    ranking : DataFrame
        ``k`` (1, 3 and 5, up to the number of labels), ``precision`` (P@k: the share of right
        labels among the k most probable, whether or not they are predicted; below 1 if documents
        have fewer than k labels) and ``ndcg`` (nDCG@k: right labels weigh more at the beginning; 1
        is the best possible order). Equal scores are in the labels' order.
    coverage_error : float
        The mean number of most probable labels that it takes to include all labels of a document.
    label_ranking_average_precision : float
        The mean, over the labels of a document, of the share of right labels among those that are
        at least as probable.
    labels : DataFrame
        ``label``, ``documents`` that have it, ``predicted`` (for how many it is predicted),
        ``precision`` (null if it is not predicted), ``recall`` (null if no document has it),
        ``f1`` (null if neither), ``average_precision`` (of the documents in the order of the
        label's probability; null if no document has it, or the model does not know it).
    confused : DataFrame
        ``label``, ``predicted``, ``documents``: how many documents have ``label``, which is not
        predicted for them, and get the wrong label ``predicted`` (null: they get no wrong label).
        The most frequent pairs are first.
    unknown_labels : list
        Labels of the documents that the model does not know; they count as missed, and come last
        in the order of the probabilities.
    textless : int
        Documents without text.
    novelty : Novelty or None
        Whether the model has learned these documents, judged by their terms.

    Documents without a label have no order of labels: ``ranking``, ``coverage_error`` and
    ``label_ranking_average_precision`` leave them out. A measure without a document is NaN, and
    null in `to_dict`.
    """

    documents: int
    micro_f1: float
    macro_f1: float
    example_f1: float
    subset_accuracy: float
    hamming_loss: float
    ranking: pl.DataFrame
    coverage_error: float
    label_ranking_average_precision: float
    labels: pl.DataFrame
    confused: pl.DataFrame
    unknown_labels: list[Any]
    textless: int = 0
    novelty: Novelty | None = None

    def __repr__(self) -> str:
        return (f"LabelEvaluation({quantity(self.documents, 'document')}, "
                f"{quantity(self.labels.height, 'label')}, micro F1 {self.micro_f1:.4f}, "
                f"macro F1 {self.macro_f1:.4f})")

    def _repr_html_(self) -> str:
        tables = {"Labels, those of most documents first": self.labels.sort(
            "documents", descending=True, maintain_order=True),
            "Missed labels, and what was predicted wrongly in their place": self.confused}
        return notebook.box(repr(self), *(
            notebook.frame_table(table, caption) for caption, table in tables.items()))

    def rates(self, positive: Any) -> Rates:
        """Counts and rates of one label: of the documents with it against those without.

        Raises
        ------
        ParameterError
            If no document has that label, and the model does not know it.
        """
        names = self.labels["label"].to_list()
        row = self.labels.row(names.index(known_class(names, positive)), named=True)
        hits = round((row["precision"] or 0.0) * row["predicted"])
        wrong, missed = row["predicted"] - hits, row["documents"] - hits
        return Rates(hits, wrong, missed, self.documents - hits - wrong - missed)

    def to_dict(self) -> dict[str, Any]:
        """All measures, ready for JSON."""
        return {name: value.to_dicts() if isinstance(value, pl.DataFrame) else
                None if isinstance(value, float) and np.isnan(value) else value
                for name, value in vars(self).items() if name != "novelty"
                } | novelty_entry(self.novelty)


def no_known_label(label: Any, known: pl.Series) -> DataError:
    """The error if the model knows none of the labels of the rows; it names one of them."""
    return DataError.with_advice(
        f"the model knows none of the labels, such as {label!r}; its classes are "
        f"{', '.join(map(repr, known.to_list()[:10]))}",
        "",  # No advice for Python, where no parameter maps names of labels to classes.
        # The advice for the command line.
        ". Where these labels have other names, say which class they are with ",
        Mention("classes", f"'{known[0]}=PATTERN,...'"))


def evaluate_lists(
    actual: pl.Series, known: pl.Series, blocks: Blocks, predicted: Any, textless: int = 0,
    novelty: Novelty | None = None,
) -> LabelEvaluation:
    """Compare lists of labels with predictions and scores of the labels that a model knows.

    The scores in ``blocks``, and ``predicted`` (a csr_array), have a column for each known label.
    """
    labels, true, predictions = indicators_of(actual, known, predicted)
    known_columns = _columns_of(known, labels)
    if true.nnz and not true[:, known_columns].nnz:
        raise no_known_label(labels[int(true.indices[0])], known)

    def blocks_of_all_labels() -> Iterator[Floats]:
        for scores in blocks():
            # A label that the model does not know is less probable than all others.
            all_scores = np.full((len(scores), len(labels)), -np.inf)
            all_scores[:, known_columns] = scores
            yield all_scores

    ranked = rank_labels(blocks if len(labels) == len(known) else blocks_of_all_labels, true)
    is_known = labels.is_in(known.implode())
    table = pl.DataFrame({
        "label": labels, **indicators.measures_of_labels(true, predictions),
        "average_precision": ranked.average_precision}).with_columns(
            pl.col("precision", "recall", "f1", "average_precision").fill_nan(None)).with_columns(
                pl.when(is_known).then("average_precision").alias("average_precision"))
    missed, wrong, counts = indicators.count_confusions(true, predictions)
    pairs = pl.DataFrame({
        "label": labels.gather(pl.Series(missed)),
        "predicted": labels.gather(pl.Series(wrong).replace(-1, None)),
        "documents": pl.Series(counts, dtype=pl.Int64)})
    order = np.lexsort((wrong, missed, -counts))
    return LabelEvaluation(
        documents=len(actual), labels=table, textless=textless, novelty=novelty,
        ranking=ranked.at_k, coverage_error=ranked.coverage_error,
        label_ranking_average_precision=ranked.label_ranking_average_precision,
        confused=pairs[order], unknown_labels=labels.filter(~is_known).to_list(),
        **indicators.measures(true, predictions))


def indicators_of(
    actual: pl.Series, known: pl.Series, predicted: Any
) -> tuple[pl.Series, Any, Any]:
    """All labels, sorted, and two indicator matrices of them: of true and of predicted labels.

    ``predicted`` is an indicator matrix too, with a column for each ``known`` label.
    """
    actual_labels = actual.explode(empty_as_null=False, keep_nulls=False)
    actual_labels = actual_labels.cast(known.dtype).alias(known.name)
    labels = pl.concat([known, actual_labels]).unique().sort()
    sizes = actual.list.len().cast(pl.Int64).to_numpy()
    true = indicators.of_labels(_columns_of(actual_labels, labels), sizes, len(labels))
    return labels, true, indicators.of_labels(
        _columns_of(known, labels)[predicted.indices], np.diff(predicted.indptr), len(labels))


def _columns_of(values: pl.Series, labels: pl.Series) -> NDArray[np.int64]:
    """The positions of values among sorted labels: the columns of indicator matrices."""
    return labels.search_sorted(values).to_numpy().astype(np.int64)


class LabelRanking(NamedTuple):
    """How well scores order the labels of each document, and the documents of each label.

    Attributes
    ----------
    at_k, coverage_error, label_ranking_average_precision
        As in `LabelEvaluation`, where ``at_k`` is called ``ranking``.
    average_precision : float64 (n_labels,)
        The area under precision against recall of each label; NaN if no document has it.
    """

    at_k: pl.DataFrame
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
    >>> ranking = rank_labels(lambda: [scores], sp.csr_array([[1, 1, 0], [1, 0, 0]]))
    >>> ranking.at_k["precision"].to_list(), ranking.coverage_error
    ([0.5, 0.5], 2.5)
    >>> ranking.average_precision.round(4).tolist()  # no document has the last label
    [1.0, 0.5, nan]
    """
    ks = [k for k in _KS if k <= true.shape[1]]
    # The sums that `_sums_of_rows` returns: two, and two for each k.
    sums, true_scores_by_block, start = np.zeros(2 + 2 * len(ks)), [np.empty(0)], 0
    for scores in blocks():
        lengths = np.diff(true.indptr[start:start + len(scores) + 1])
        columns = true.indices[true.indptr[start]:true.indptr[start + len(scores)]]
        scores_of_true = scores[np.repeat(np.arange(len(scores)), lengths), columns]
        sums += _sums_of_rows(scores, scores_of_true, columns, lengths, ks)
        true_scores_by_block.append(scores_of_true)
        start += len(scores)
    n_labelled = int((np.diff(true.indptr) > 0).sum())
    with np.errstate(invalid="ignore"):
        coverage, precision, *at_k = (sums / n_labelled if n_labelled else sums * np.nan).tolist()
    table = pl.DataFrame({"k": ks, "precision": at_k[:len(ks)], "ndcg": at_k[len(ks):]},
                         schema={"k": pl.Int64, "precision": pl.Float64, "ndcg": pl.Float64})
    return LabelRanking(table, coverage, precision, _average_precision(
        blocks, np.concatenate(true_scores_by_block), true))


def _sums_of_rows(
    scores: Floats, scores_of_true: Floats, columns: NDArray[Any], lengths: NDArray[Any],
    ks: list[int],
) -> Floats:
    """Coverage, ranking precision, P@k and nDCG@k, each summed over the rows of a block.

    ``scores_of_true`` and ``columns`` are the scores and the columns of the labels that rows have,
    row after row; ``lengths`` is the number of labels of each row.
    """
    row = np.repeat(np.arange(len(scores)), lengths)
    is_true = np.zeros(scores.shape, dtype=np.bool_)
    is_true[row, columns] = True
    is_as_probable = scores[row] >= scores_of_true[:, None]
    rank = is_as_probable.sum(axis=1)
    coverage = np.zeros(len(scores), dtype=np.int64)
    np.maximum.at(coverage, row, rank)
    precision = ((is_as_probable & is_true[row]).sum(axis=1) / rank / lengths[row]).sum()
    max_k = max(ks, default=0)
    order = best_columns(scores, max_k)
    hits = np.take_along_axis(is_true, order, axis=1)
    discount = 1 / np.log2(np.arange(max_k) + 2)
    ideal_dcg = np.append(0.0, np.cumsum(discount))
    has_labels = lengths > 0
    ndcg = [((hits[has_labels, :k] @ discount[:k])
             / ideal_dcg[np.minimum(lengths[has_labels], k)]).sum() for k in ks]
    return np.array([coverage.sum(), precision, *(hits[:, :k].sum() / k for k in ks), *ndcg])


def _average_precision(blocks: Blocks, scores_of_true: Floats, true: Any) -> Floats:
    """The average precision of each label, from the scores of the documents that have it.

    For the precision at such a score, it is enough to count the documents that reach it, block by
    block.
    """
    n_labels = true.shape[1]
    order = np.lexsort((scores_of_true, true.indices))
    ends = np.cumsum(np.bincount(true.indices, minlength=n_labels))
    labels_with_documents = np.flatnonzero(np.diff(ends, prepend=0))
    starts = np.append(0, ends)
    # For each label, the distinct scores of its documents, ascending, and how many have each.
    distinct_scores = {k: np.unique(scores_of_true[order[starts[k]:ends[k]]], return_counts=True)
                       for k in labels_with_documents.tolist()}
    # How many of all documents score from each of these to below the next. The number before the
    # first is of documents that score below all.
    n_between = {k: np.zeros(len(values) + 1, dtype=np.int64)
                 for k, (values, _) in distinct_scores.items()}
    for scores in blocks():
        columns = np.ascontiguousarray(scores.T)
        for k, (values, _) in distinct_scores.items():
            n_between[k] += np.bincount(
                np.searchsorted(values, columns[k], side="right"), minlength=len(values) + 1)
    result: Floats = np.full(n_labels, np.nan)
    for k, (_, counts) in distinct_scores.items():
        # How many documents with the label, and how many of all documents, reach each score.
        n_right, n_total = (np.cumsum(numbers[::-1])[::-1]
                            for numbers in (counts, n_between[k][1:]))
        result[k] = (counts / counts.sum() * n_right / n_total).sum()
    return result
