"""Measures of lists of labels, by scikit-learn's functions.

The lists are rows of an indicator matrix, (n_documents, n_labels): 1 if the document has the label.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

# Only lists of labels need SciPy.
if TYPE_CHECKING:
    import scipy.sparse as sp

Ints = NDArray[np.int64]


def of_labels(columns: Ints, lengths: Ints, n_labels: int) -> sp.csr_array:
    """Make the indicator matrix of rows, from their labels and the number of labels of each row.

    ``columns`` are the columns of the labels of all rows, one row after the other.
    """
    import scipy.sparse as sp

    indptr = np.append(0, np.cumsum(lengths))
    return sp.csr_array((np.ones(len(columns), dtype=np.int64), columns, indptr),
                        shape=(len(lengths), n_labels))


def of_mask(mask: NDArray[np.bool_]) -> sp.csr_array:
    """Make the indicator matrix of a mask of which rows have which labels."""
    return of_labels(np.nonzero(mask)[1], mask.sum(axis=1), mask.shape[1])


def stack(parts: Iterable[sp.csr_array]) -> sp.csr_array:
    """One matrix with the rows of all parts."""
    import scipy.sparse as sp

    return sp.vstack(list(parts), format="csr")


def measures(true: sp.csr_array, predicted: sp.csr_array) -> dict[str, float]:
    """The measures of `textnb.evaluation.labels.LabelEvaluation` that need no scores."""
    from sklearn.metrics import accuracy_score, f1_score

    hamming_loss = (true != predicted).nnz / max(1, true.shape[0] * true.shape[1])
    true, predicted = _with_two_columns(true), _with_two_columns(predicted)
    # Where nothing is true or predicted, F1 is undefined: it counts as 1 for a document, and a
    # label is left out of the mean, which is NaN if no label is left.
    f1 = {average: float(f1_score(true, predicted, average=average, zero_division=undefined))
          for average, undefined in (("micro", np.nan), ("macro", np.nan), ("samples", 1.0))}
    return {"micro_f1": f1["micro"], "macro_f1": f1["macro"], "example_f1": f1["samples"],
            "subset_accuracy": float(accuracy_score(true, predicted)),
            "hamming_loss": float(hamming_loss)}


def measures_of_labels(true: sp.csr_array, predicted: sp.csr_array) -> dict[str, NDArray[Any]]:
    """The numbers of documents and predictions, precision, recall and F1 of each label, or NaN."""
    from sklearn.metrics import precision_recall_fscore_support

    columns = precision_recall_fscore_support(
        _with_two_columns(true), _with_two_columns(predicted), average=None, zero_division=np.nan)
    precision, recall, f1, support = (values[:true.shape[1]] for values in columns)
    return {"documents": support.astype(np.int64),
            "predicted": np.asarray(predicted.sum(axis=0), dtype=np.int64),
            "precision": precision, "recall": recall, "f1": f1}


def _with_two_columns(rows: sp.csr_array) -> sp.csr_array:
    """Give a matrix two columns or more, as scikit-learn takes one column for classes 0 and 1."""
    import scipy.sparse as sp

    return rows if rows.shape[1] > 1 else sp.csr_array(
        (rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], 2))


def count_confusions(true: sp.csr_array, predicted: sp.csr_array) -> tuple[Ints, Ints, Ints]:
    """Count the rows of each pair of a missed label and a label that is predicted wrongly.

    Returns the missed labels, the wrong labels and the numbers of rows. A wrong label of -1 is for
    rows that miss the label and have no wrong one.
    """
    import scipy.sparse as sp

    right = true.multiply(predicted)
    missed, wrong = (sp.csr_array(matrix - right) for matrix in (true, predicted))
    pairs = sp.coo_array(missed.T @ wrong)
    n_without_wrong = missed[np.flatnonzero(wrong.sum(axis=1) == 0)].sum(axis=0)
    nonzero, labels = np.flatnonzero(pairs.data), np.flatnonzero(n_without_wrong)
    return (np.append(pairs.row[nonzero], labels),
            np.append(pairs.col[nonzero], np.full(len(labels), -1)),
            np.append(pairs.data[nonzero], n_without_wrong[labels]))
