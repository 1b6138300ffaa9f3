"""Counting labelled documents: counts per class, or a document-term matrix, to learn from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.classes import python_value
from textnb.bayes.counts import Counts
from textnb.bayes.features import presence
from textnb.bayes.labels import NO_LABELS, Labels, check_int64
from textnb.bayes.moments import MomentStatistics
from textnb.errors import DataError, ParameterError
from textnb.frames.texts import integers_as_int64
from textnb.frames.weights import read_weights
from textnb.runtime.unicode import check_unicode
from textnb.text.counting import CountSpec
from textnb.text.counts import check_labels, count_by_label, each_label
from textnb.text.matrix import CountMatrix, Vocabulary, count_matrix, stack_blocks
from textnb.text.vocabulary import Limits


@dataclass(frozen=True)
class LabelledBatches:
    """Batches of labelled documents, and how they are counted.

    Attributes
    ----------
    frames : iterable of DataFrame
        The batches.
    spec : CountSpec
        How they are counted.
    weight : str or None
        The column of sample weights.
    """

    frames: Iterable[pl.DataFrame]
    spec: CountSpec
    weight: str | None = None


@dataclass(frozen=True, eq=False)
class DocumentTermMatrix:
    """A document-term matrix with its terms, labels and sample weights.

    Attributes
    ----------
    counts : csr_array (n_documents, n_terms)
    terms : Series of String
        Sorted, one for each column.
    labels : Labels
        The labels of each document.
    weights : float64 (n_documents,), or None
    """

    counts: CountMatrix
    terms: pl.Series
    labels: Labels
    weights: NDArray[np.float64] | None = None


def count_documents(documents: LabelledBatches) -> Counts:
    """Counts per class of all terms, in bounded memory unless there are sample weights."""
    if documents.weight is None:
        return count_by_label(documents.frames, documents.spec)
    spec = documents.spec
    # All terms with their counts: `counts_of_matrix` applies presence, and limits choose among the
    # terms later.
    rows = document_term_matrix(
        replace(documents, spec=replace(spec, limits=Limits(), binary=False)))
    return counts_of_matrix(spec, rows.counts, rows.terms, rows.labels, rows.weights)


def counts_of_matrix(
    spec: CountSpec, counts: CountMatrix, terms: pl.Series, labels: Labels,
    weights: NDArray[np.float64] | None = None,
) -> Counts:
    """Counts per class of the rows of a matrix: those that `count_by_label` gives for the texts.

    Parameters
    ----------
    spec : CountSpec
    counts : csr_array (n_documents, n_terms)
    terms : Series of String
        One for each column.
    labels : Labels
        The labels of each document.
    weights : float64 (n_documents,), optional
        Sample weights. They change the counts of classes, but not the numbers of documents and
        occurrences by which terms are limited.
    """
    threshold = spec.presence_above
    document_frequency = np.bincount(counts.indices, minlength=len(terms)).astype(np.int64)
    occurrences = None
    if weights is not None or spec.keeps_occurrences:
        occurrences = document_frequency if spec.binary else np.asarray(
            counts.sum(axis=0), dtype=np.int64)
    features = counts if threshold is None else presence(counts, threshold)
    return replace(
        Counts.from_labels(features, labels, weights), terms=terms,
        n_weighted=None if weights is None else len(labels), occurrences=occurrences,
        document_frequency=document_frequency if spec.keeps_documents else None)


def document_term_matrix(
    documents: LabelledBatches, fixed_terms: pl.Series | None = None
) -> DocumentTermMatrix:
    """The matrix of all documents, with columns for the fixed terms, or for those within limits."""
    spec = documents.spec
    # Both lists are filled while ``frames`` are counted, so that batches are read only once.
    label_columns: list[pl.Series] = []
    weight_blocks: list[NDArray[np.float64]] = []
    frames = _collect_labels(documents, label_columns, weight_blocks)
    if fixed_terms is not None:
        vocabulary = Vocabulary(spec.tokenizer, fixed_terms)
        counts = stack_blocks(
            [vocabulary.counts(frame, spec.text) for frame in frames], len(fixed_terms))
        terms = fixed_terms
    else:
        counts, terms = count_matrix(frames, spec.tokenizer, spec.text, spec.limits)
    if not label_columns:
        raise DataError.no_rows("the input")
    if spec.binary:
        counts.data[:] = 1
    labels = labels_of(pl.concat(label_columns))
    if not len(labels.classes):
        raise DataError(NO_LABELS)
    if documents.weight is None:
        return DocumentTermMatrix(counts, terms, labels)
    weights = np.concatenate(weight_blocks)
    if not weights.any():
        raise DataError.naming_settings(
            "{sample_weight} is zero for every document: nothing would be learned")
    return DocumentTermMatrix(counts, terms, labels, weights)


def _collect_labels(
    documents: LabelledBatches, label_columns: list[pl.Series], weights: list[NDArray[np.float64]]
) -> Iterator[pl.DataFrame]:
    """Yield the batches, and append their labels and weights to the lists, after a check."""
    first_row = 0
    for frame in documents.frames:
        check_nulls(frame[documents.spec.label], first_row)
        label_columns.append(frame[documents.spec.label])
        if documents.weight is not None:
            weights.append(read_weights(frame[documents.weight], first_row))
        first_row += frame.height
        yield frame


def labels_of(column: pl.Series, first_row: int = 0) -> Labels:
    """The labels of documents: one for each, or lists of them, according to the column's type.

    The ``link`` of the result is "sigmoid" for lists, else "softmax".

    Parameters
    ----------
    column : Series
    first_row : int
        The number of its first row, for errors.

    Raises
    ------
    DataError
        For a null, a label that is twice in a list, or an integer beyond 64 bits.

    Examples
    --------
    >>> labels = labels_of(pl.Series([["b"], [], ["a", "b"]]))
    >>> labels.classes.tolist(), labels.rows.tolist(), labels.codes.tolist(), labels.link
    (['a', 'b'], [0, 2, 2], [1, 0, 1], 'sigmoid')
    """
    check_nulls(column, first_row)
    of_lists = isinstance(column.dtype, pl.List)
    # Single labels, and the row of each; None if each row has one.
    labels, rows = each_label(column)
    if isinstance(labels.dtype, (pl.Categorical, pl.Enum, pl.Null)):
        labels = labels.cast(pl.String)
    labels = integers_as_int64(labels)
    classes = labels.unique().sort()
    # If there is nothing to replace, Polars returns the labels' type in place of the given one.
    codes = labels.replace_strict(
        classes, pl.Series(range(len(classes)), dtype=pl.Int64), return_dtype=pl.Int64
        ).cast(pl.Int64)
    check_labels(codes, rows, column.name, first_row)
    return Labels(classes.to_numpy(), np.arange(len(column)) if rows is None else rows,
                  codes.to_numpy(), n_rows=len(column), link="sigmoid" if of_lists else "softmax")


def check_nulls(column: pl.Series, first_row: int = 0) -> None:
    """Raise DataError, with the row, for a null label, a null list, or a null in a list."""
    labels, rows = each_label(column)
    if labels.null_count():
        check_labels(labels, rows, column.name, first_row)


def sum_moments(
    batches: Iterator[tuple[NDArray[Any], pl.Series]], diagonal: bool
) -> MomentStatistics:
    """The moments of each class, from batches of rows and their labels.

    With ``diagonal``, they have the variances of features, but not their covariances.
    """
    total: MomentStatistics | None = None
    for rows, labels in batches:
        # Polars finds the codes, because an array of strings would hold an object for each row.
        classes = labels.unique().sort()
        codes = classes.search_sorted(labels).to_numpy()
        moments = MomentStatistics.from_matrix(
            rows, codes, classes=np.arange(len(classes)), diagonal=diagonal)
        moments = replace(moments, classes=classes.to_numpy())
        total = moments if total is None else total + moments
    if total is None:
        raise DataError.no_rows("the input")
    return total


def announced_labels(classes: Iterable[Any] | None) -> list[Any]:
    """The argument ``classes`` of `partial_fit`, checked, as Python's strings, ints or bools."""
    if classes is None:
        return []
    expected = "labels of one type: strings, integers or booleans"
    if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
        raise ParameterError.out_of_range("classes", expected, classes)
    labels = [python_value(label) for label in classes]
    if not all(type(label) in (str, int, bool) for label in labels):
        raise ParameterError.out_of_range("classes", expected, labels)
    check_int64(labels)
    check_unicode(labels, "class")
    return labels


def check_known(labels: list[Any], known: list[Any]) -> None:
    """Raise DataError for labels that are not among the known ones, or have another type."""
    check_type(labels, known)
    unknown = sorted(set(labels) - set(known))
    if unknown:
        raise DataError.unseen_labels(unknown, known)


def check_type(labels: list[Any], known: list[Any]) -> None:
    """Raise DataError for labels of another type than the known ones."""
    types, known_types = ({type(label).__name__ for label in values} for values in (labels, known))
    if len(types | known_types) > 1:
        raise DataError(f"labels are of type {', '.join(sorted(types))}, and the known or "
                        f"announced classes of type {', '.join(sorted(known_types))}: cast the "
                        "labels, so that all are of one type")
