"""From labelled documents to what estimators learn from: counts per class, or a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.counts import Counts
from textnb.bayes.features import presence
from textnb.bayes.label_form import NO_LABELS
from textnb.bayes.label_lists import LabelLists
from textnb.bayes.moments import MomentStatistics
from textnb.bayes.statistics import check_int64
from textnb.errors import DataError, ParameterError
from textnb.frames.kinds import check_unicode
from textnb.frames.texts import as_int64
from textnb.frames.weights import checked_weights
from textnb.text.counting import CountSpec
from textnb.text.counts import check_labels, count_by_label, null_in_labels
from textnb.text.matrix import CountMatrix, Vocabulary, count_matrix, stack_blocks
from textnb.text.vocabulary import Limits


@dataclass(frozen=True)
class LabelledBatches:
    """Batches of labelled documents, and how they are counted.

    Attributes
    ----------
    frames : iterable of DataFrame
    spec : CountSpec
    weight : str or None
        The column of sample weights.
    """

    frames: Iterable[pl.DataFrame]
    spec: CountSpec
    weight: str | None = None


@dataclass(frozen=True, eq=False)
class DocumentTermMatrix:
    """A document-term matrix with its terms, labels and sample weights."""

    counts: CountMatrix
    terms: pl.Series
    labels: NDArray[Any] | LabelLists
    weights: NDArray[np.float64] | None = None

    @property
    def n_classes(self) -> int:
        labels = self.labels
        return len(labels.classes if isinstance(labels, LabelLists) else set(labels.tolist()))


def count_documents(documents: LabelledBatches) -> Counts:
    """Counts per class of all terms, in bounded memory; with sample weights, from the matrix."""
    if documents.weight is not None:
        return _count_with_weights(documents)
    return count_by_label(documents.frames, documents.spec)


def _count_with_weights(documents: LabelledBatches) -> Counts:
    """Weighted counts of the classes; documents and occurrences, which limit terms, are counted."""
    spec = documents.spec
    rows = document_term_matrix(
        replace(documents, spec=replace(spec, limits=Limits(), binary=False)))
    assert rows.weights is not None
    above = spec.presence_above
    present = rows.counts if above is None else presence(rows.counts, above)
    frequency = np.bincount(rows.counts.indices, minlength=len(rows.terms)).astype(np.int64)
    counts = (rows.labels.statistics(present, rows.weights)
              if isinstance(rows.labels, LabelLists)
              else Counts.from_matrix(present, rows.labels, sample_weight=rows.weights))
    return replace(
        counts, terms=rows.terms, n_weighted=len(rows.labels),
        document_frequency=frequency if spec.keeps_documents else None,
        occurrences=frequency if spec.binary else np.asarray(
            rows.counts.sum(axis=0), dtype=np.int64))


def document_term_matrix(
    documents: LabelledBatches, given: pl.Series | None = None
) -> DocumentTermMatrix:
    """The matrix of all documents over the terms that are within the limits, or given."""
    spec = documents.spec
    labels: list[pl.Series] = []
    weights: list[NDArray[np.float64]] = []
    frames = _collect_labels(documents, labels, weights)
    if given is not None:
        vocabulary = Vocabulary(spec.tokenizer, given)
        counts = stack_blocks([vocabulary.counts(frame, spec.text) for frame in frames], len(given))
        terms = given
    else:
        counts, terms = count_matrix(frames, spec.tokenizer, spec.text, spec.limits)
    if not labels:
        raise DataError.no_rows("the input")
    if spec.binary:
        counts.data[:] = 1
    of_rows = pl.concat(labels)
    known = label_lists(of_rows, spec.label) if spec.multilabel else of_rows.to_numpy()
    if documents.weight is None:
        return DocumentTermMatrix(counts, terms, known)
    weight = np.concatenate(weights)
    if not weight.any():
        raise ParameterError.naming(
            "{sample_weight} is zero for every document: nothing would be learned")
    return DocumentTermMatrix(counts, terms, known, weight)


def label_lists(lists: pl.Series, column: str) -> LabelLists:
    """Which documents have which labels; DataError for a null, or a label twice in a list."""
    lengths = lists.list.len().cast(pl.Int64).to_numpy()
    rows = np.repeat(np.arange(len(lists)), lengths)
    labels = as_int64(lists.explode(empty_as_null=False, keep_nulls=False))
    if labels.null_count():
        check_labels(labels, rows, column, 0)
    classes = labels.unique().sort()
    if not len(classes):
        raise DataError(NO_LABELS)
    codes = labels.replace_strict(classes, pl.Series(range(len(classes)), dtype=pl.Int64))
    check_labels(codes, rows, column, 0)
    return LabelLists(classes.to_numpy(), rows, codes.to_numpy(), len(lists))


def _collect_labels(
    documents: LabelledBatches, labels: list[pl.Series], weights: list[NDArray[np.float64]]
) -> Iterator[pl.DataFrame]:
    """Batches as they come; their labels and weights are checked and appended to the lists."""
    row, label = 0, documents.spec.label
    for frame in documents.frames:
        own = frame[label]
        if own.null_count():
            null = null_in_labels if documents.spec.multilabel else DataError.null_label
            raise null(label, row + int(own.is_null().arg_true()[0]))
        if documents.weight is not None:
            weights.append(checked_weights(frame[documents.weight], row))
        row += frame.height
        if isinstance(own.dtype, (pl.Categorical, pl.Enum)):
            own = own.cast(pl.String)
        elif isinstance(own.dtype, pl.List) and isinstance(
                own.dtype.inner, (pl.Categorical, pl.Enum, pl.Null)):
            own = own.cast(pl.List(pl.String))
        own = as_int64(own)
        labels.append(own)
        yield frame


def moments(read: Iterator[tuple[NDArray[Any], pl.Series]], diagonal: bool) -> MomentStatistics:
    """Moments per class of batches of rows and their labels."""
    total: MomentStatistics | None = None
    for rows, labels in read:
        # Labels are coded by the frame library: an array of strings would be one object per row.
        names = labels.unique().sort()
        codes = names.search_sorted(labels).to_numpy()
        part = MomentStatistics.from_matrix(
            rows, codes, classes=np.arange(len(names)), diagonal=diagonal)
        part = replace(part, classes=names.to_numpy())
        total = part if total is None else total + part
    if total is None:
        raise DataError.no_rows("the input")
    return total


def announced_labels(classes: Iterable[Any] | None) -> list[Any]:
    """The classes that a caller announces, as plain values."""
    if classes is None:
        return []
    expected = "labels of one type: strings, integers or booleans"
    if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
        raise ParameterError.out_of_range("classes", expected, classes)
    labels = [label.item() if isinstance(label, np.generic) else label for label in classes]
    if not all(type(label) in (str, int, bool) for label in labels):
        raise ParameterError.out_of_range("classes", expected, labels)
    check_int64(labels)
    check_unicode(labels, "class")
    return labels


def check_known(labels: list[Any], known: list[Any]) -> None:
    """DataError for labels that are not known, or of another type than those that are."""
    types = {type(label).__name__ for label in [*labels, *known]}
    if len(types) > 1:
        came, expected = (", ".join(sorted({type(label).__name__ for label in some}))
                          for some in (labels, known))
        raise DataError(f"labels are of type {came}, and the known or announced classes of type "
                        f"{expected}: cast the labels, so that all are of one type")
    unknown = sorted(set(labels) - set(known))
    if unknown:
        raise DataError.unseen_labels(unknown, known)
