"""Counts in layers of time: one per period, and their sum.

A layer holds the cells of its period that are not 0, so that it takes no memory for terms that it
lacks. The sum of the layers is that of counting their documents at once: to drop a layer is to
have counted without its documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.aged_labels import AgedLabels
from textnb.bayes.read_only import ReadOnly
from textnb.bayes.statistics import CountStatistics, class_codes, unite_labels
from textnb.errors import DataError, quantity
from textnb.runtime.memory import check_room
from textnb.text.term_counts import TermCounts

Ints = NDArray[np.int64]
# Rows of a layer after those of the classes: documents that hold a term, and its occurrences.
# Of lists of labels, the counts of all documents follow.
_MORE_ROWS = 2


def more_rows(is_multilabel: bool) -> int:
    """How many rows of a layer follow those of the classes."""
    return _MORE_ROWS + is_multilabel


@dataclass(frozen=True, eq=False)
class Layer(ReadOnly):
    """The counts of one period.

    Attributes
    ----------
    start : date
        The first day of the period.
    documents : int64 (n_classes,)
    cells : int64 (n_cells,)
        Where the values are: row · n_terms + term, ascending. The rows are the classes, then the
        documents that hold a term and its occurrences, where the sum has them; of lists of labels,
        then the counts of all documents.
    values : int64 (n_cells,)
        Above 0.
    all_documents : int or None
        The number of documents, if they have lists of labels.
    """

    start: date
    documents: Ints
    cells: Ints
    values: Ints
    all_documents: int | None = None

    @property
    def size(self) -> int:
        """The number of documents."""
        return int(self.documents.sum()) if self.all_documents is None else self.all_documents

    def row(self, number: int, n_terms: int) -> tuple[Ints, Ints]:
        """The terms and the values of a row."""
        begin, end = np.searchsorted(self.cells, [number * n_terms, (number + 1) * n_terms])
        return self.cells[begin:end] - number * n_terms, self.values[begin:end]

    def all_counts(self, n_terms: int) -> Ints:
        """The counts of all documents, if they have lists of labels: (n_terms,)."""
        return self._dense(len(self.documents) + _MORE_ROWS, n_terms)

    def rest(self, label: int, n_terms: int) -> Ints:
        """The counts of the documents without a label: (n_terms,)."""
        return self.all_counts(n_terms) - self._dense(label, n_terms)

    def has_less_than_a_label(self, n_terms: int) -> bool:
        """Whether all documents would have less than those of a label."""
        if self.all_documents is None:
            return False
        own = int(np.searchsorted(self.cells, len(self.documents) * n_terms))
        most = self.all_counts(n_terms)[self.cells[:own] % n_terms]
        return bool((self.documents > self.all_documents).any() or (self.values[:own] > most).any())

    def _dense(self, number: int, n_terms: int) -> Ints:
        row = np.zeros(n_terms, dtype=np.int64)
        columns, values = self.row(number, n_terms)
        row[columns] = values
        return row

    def moved(self, rows: Ints, columns: Ints, n_terms: int, width: int, n_classes: int) -> Layer:
        """The layer in other rows and columns, which ascend as the present ones do.

        Parameters
        ----------
        rows : int64 (n_rows,)
            The new row of each row: of the classes, and of those after them.
        columns : int64 (n_terms,)
            The new column of each term.
        n_terms, width : int
            Terms before and after.
        n_classes : int
            Classes after.
        """
        row, column = np.divmod(self.cells, n_terms)
        documents = np.zeros(n_classes, dtype=np.int64)
        own = rows[:len(self.documents)]
        documents[own[own >= 0]] = self.documents[own >= 0]
        return Layer(self.start, documents, rows[row] * width + columns[column], self.values,
                     self.all_documents)


@dataclass(frozen=True, eq=False)
class LayeredCounts:
    """Counts per class and term in layers of time, which add and subtract layer by layer.

    Attributes
    ----------
    total : TermCounts
        The sum of the layers.
    layers : tuple of Layer
        The oldest first.
    """

    total: TermCounts
    layers: tuple[Layer, ...]

    def __repr__(self) -> str:
        return f"LayeredCounts({quantity(len(self.layers), 'period')}, {self.total!r})"

    @classmethod
    def of(cls, counts: Mapping[date, TermCounts]) -> LayeredCounts:
        """The counts of periods, by their first days."""
        return _combine([cls(part, (_layer_of(start, part),))
                         for start, part in sorted(counts.items())])

    @property
    def counts(self) -> CountStatistics:
        return self.total.counts

    @property
    def documents(self) -> int:
        return self.total.documents

    @property
    def has_weights(self) -> bool:
        return False

    @property
    def starts(self) -> list[date]:
        """The first day of each period."""
        return [layer.start for layer in self.layers]

    def __add__(self, other: LayeredCounts) -> LayeredCounts:
        return _combine([self, other])

    def __sub__(self, other: LayeredCounts) -> LayeredCounts:
        """Subtract each layer from that of its period; what is left without documents is removed.

        Raises
        ------
        DataError
            If a period has not counted all of it.
        """
        # Its errors name the term or class that was never learned.
        _ = self.total - other.total
        lacking = [start for start in other.starts if start not in self.starts]
        if lacking:
            raise DataError.never_learned(f"no document of the period from {lacking[0]} is counted")
        mine = {layer.start: layer for layer in self.layers}
        for layer in _moved_to(other, self.total):
            mine[layer.start] = _difference(mine[layer.start], layer, len(self.total.terms))
        return summed(self.total, [layer for layer in mine.values() if layer.size])

    def keep(self, wanted: Callable[[date], bool]) -> LayeredCounts:
        """The layers of the periods that are wanted, by their first days.

        Raises
        ------
        DataError
            If there are none.
        """
        layers = [layer for layer in self.layers if wanted(layer.start)]
        if not layers:
            raise DataError("every period would be dropped and no model would be left; the model "
                            "is unchanged")
        return self if len(layers) == len(self.layers) else summed(self.total, layers)

    def newest(self, number: int | None) -> LayeredCounts:
        """The newest layers, at most this number of them; None for all."""
        if number is None or len(self.layers) <= number:
            return self
        first = self.layers[-number].start
        return self.keep(lambda start: start >= first)

    def with_classes(self, classes: Sequence[Any]) -> LayeredCounts:
        """The same counts among more classes."""
        total = replace(self.total, counts=self.total.counts.with_classes(classes))
        return LayeredCounts(total, tuple(_moved_to(self, total)))

    def weights(self, half_life: float | None) -> NDArray[np.float64]:
        """2^(-age / half_life) of each layer and class: (n_layers, n_classes).

        The age is that of the layer against the newest one with documents of the class, in days
        between their starts: a class without new documents keeps its weight.
        """
        return self._weights(np.array([layer.documents for layer in self.layers]), half_life)[0]

    def weights_of_all(self, half_life: float | None) -> NDArray[np.float64]:
        """The same of all documents as one class: (n_layers,)."""
        return self._weights(
            np.array([[layer.size] for layer in self.layers]), half_life)[0][:, 0]

    def _weights(
        self, documents: Ints, half_life: float | None
    ) -> tuple[NDArray[np.float64], Ints]:
        """The weights of layers, and the day from which ages count; (n_layers, n) documents."""
        days = np.array([layer.start.toordinal() for layer in self.layers])[:, None]
        newest = np.where(documents > 0, days, 0).max(axis=0)
        if half_life is None:
            return np.ones(documents.shape), newest
        return 2.0 ** (-np.maximum(newest - days, 0) / half_life), newest

    def aged(self, half_life: float | None) -> TermCounts:
        """The sum of the layers, each times its weight.

        Limits on terms ignore these weights: documents and occurrences are those of `total`. The
        sum is `total` where there is no half-life.
        """
        if half_life is None:
            return self.total
        counts = self.total.counts
        features = np.zeros(counts.feature_count.shape)
        documents = np.zeros(len(counts.classes))
        flat = features.reshape(-1)
        for layer, weight in zip(self.layers, self.weights(half_life), strict=True):
            cells = layer.cells[:int(np.searchsorted(layer.cells, len(flat)))]
            flat[cells] += weight[cells // len(self.total.terms)] * layer.values[:len(cells)]
            documents += weight * layer.documents
        # No count of presence is above its documents: rounded sums of terms that are not larger,
        # in the same order, are not larger.
        aged = (self._aged_labels(documents, features, half_life) if counts.is_multilabel
                else CountStatistics(counts.classes, documents, features))
        return replace(
            self.total, counts=aged, occurrences=self.total.total, rows=self.total.documents)

    def _aged_labels(
        self, documents: NDArray[np.float64], features: NDArray[np.float64], half_life: float
    ) -> AgedLabels:
        """The counts of labels, and of the rest of each: two classes, whose ages count alone."""
        n_terms, layers = len(self.total.terms), self.layers
        own = np.array([layer.documents for layer in layers])
        every = np.array([[layer.size] for layer in layers])
        of_all, (newest,) = self._weights(every, half_life)
        rows, total = float((of_all * every).sum()), np.zeros(n_terms)
        for layer, (weight,) in zip(layers, of_all, strict=True):
            total += weight * layer.all_counts(n_terms)
        share = 2.0 ** (-(newest - self._weights(own, half_life)[1]) / half_life)
        # Where the newest period has only documents of a label, its rest ages from an older one.
        of_rest, newest_of_rest = self._weights(every - own, half_life)
        rests = {}
        for k in np.flatnonzero(newest_of_rest < newest).tolist():
            rests[k] = float((of_rest[:, k] * (every[:, 0] - own[:, k])).sum()), np.sum(
                [weight * layer.rest(k, n_terms)
                 for weight, layer in zip(of_rest[:, k], layers, strict=True)], axis=0)
        return AgedLabels(self.total.counts.classes, documents, features, rows, total,
                          share=share, rests=rests)


def _layer_of(start: date, part: TermCounts) -> Layer:
    n_terms = len(part.terms)
    none = np.zeros(n_terms, dtype=np.int64)
    counts = part.counts
    table = np.vstack([counts.feature_count, *(
        none if row is None else row for row in (part.document_frequency, part.occurrences)),
        *([] if counts.total is None else [counts.total])])
    cells = np.flatnonzero(table)
    return Layer(start, counts.class_count, cells, table.reshape(-1)[cells],
                 None if counts.rows is None else int(counts.rows))


def _combine(parts: Sequence[LayeredCounts]) -> LayeredCounts:
    first = parts[0].total
    terms, classes = first.terms, first.counts.classes
    if not all(part.total.terms.equals(terms) for part in parts):
        terms = pl.concat([part.total.terms for part in parts]).unique().sort()
    for part in parts:
        first.counts.check_same_kind(part.total.counts)
        classes = unite_labels(classes, part.total.counts.classes)
    counts = CountStatistics.empty(classes, len(terms))
    if first.counts.is_multilabel:
        counts = replace(counts, rows=0, total=np.zeros(len(terms), dtype=np.int64))
    shape = replace(first, terms=terms, counts=counts)
    layers = sorted((layer for part in parts for layer in _moved_to(part, shape)),
                    key=lambda layer: layer.start)
    return summed(shape, [_sum_of([*same]) for _, same in groupby(
        layers, key=lambda layer: layer.start)])


def _moved_to(part: LayeredCounts, shape: TermCounts) -> list[Layer]:
    """The layers over the classes and terms of a larger sum."""
    own, classes = part.total.counts.classes, shape.counts.classes
    if part.total.terms.equals(shape.terms) and np.array_equal(own, classes):
        return [*part.layers]
    columns = shape.terms.search_sorted(part.total.terms).to_numpy().astype(np.int64)
    rows = np.append(class_codes(own, classes),
                     len(classes) + np.arange(more_rows(shape.counts.is_multilabel)))
    return [layer.moved(rows, columns, len(columns), len(shape.terms), len(classes))
            for layer in part.layers]


def _sum_of(same: Sequence[Layer]) -> Layer:
    """The sum of layers of one period."""
    if len(same) == 1:
        return same[0]
    cells, values = _added([(layer.cells, layer.values) for layer in same])
    documents: Ints = np.sum([layer.documents for layer in same], axis=0)
    every = None if same[0].all_documents is None else sum(layer.size for layer in same)
    return Layer(same[0].start, documents, cells, values, every)


def _added(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    cells = np.concatenate([cells for cells, _ in parts])
    values = np.concatenate([values for _, values in parts])
    order = np.argsort(cells, kind="stable")
    cells, values = cells[order], values[order]
    if not len(cells):
        return cells, values
    begins = np.flatnonzero(np.diff(cells, prepend=-1))
    return cells[begins], np.add.reduceat(values, begins)


def _difference(layer: Layer, other: Layer, n_terms: int) -> Layer:
    cells, values = _added([(layer.cells, layer.values), (other.cells, -other.values)])
    documents = layer.documents - other.documents
    every = None if layer.all_documents is None else layer.size - other.size
    rest = Layer(layer.start, documents, cells[values > 0], values[values > 0], every)
    if ((values < 0).any() or (documents < 0).any() or rest.size < 0
            or rest.has_less_than_a_label(n_terms)):
        raise DataError.never_learned(
            f"the period from {layer.start} has counted less than is given")
    return rest


def summed(shape: TermCounts, layers: Sequence[Layer]) -> LayeredCounts:
    """Layers and their sum, without the terms and classes that they no longer have.

    Parameters
    ----------
    shape : TermCounts
        Its classes and terms are those of the layers. A class without documents was announced,
        and stays.
    layers : sequence of Layer
    """
    classes, n_terms, is_multilabel = shape.counts.classes, len(shape.terms), (
        shape.counts.is_multilabel)
    more = more_rows(is_multilabel)
    check_room(len(classes) + more, n_terms, 8, "their counts")
    sums = np.zeros((len(classes) + more, n_terms), dtype=np.int64)
    flat = sums.reshape(-1)
    documents = np.zeros(len(classes), dtype=np.int64)
    for layer in layers:
        # A cell is in a layer once.
        flat[layer.cells] += layer.values
        documents += layer.documents
    counts, (frequency, occurrences, *every) = sums[:-more], sums[-more:]
    total = every[0] if every else counts.sum(axis=0)
    present = (total if shape.occurrences is None else occurrences) > 0
    stays = (documents > 0) | (shape.counts.class_count == 0)
    if not (present.all() and stays.all()):
        rows = np.append(np.where(stays, np.cumsum(stays) - 1, -1),
                         int(stays.sum()) + np.arange(more))
        columns = np.cumsum(present) - 1
        layers = [layer.moved(rows, columns, n_terms, int(present.sum()), int(stays.sum()))
                  for layer in layers]
        counts = counts[np.ix_(stays, present)]
        frequency, occurrences = frequency[present], occurrences[present]
    return LayeredCounts(TermCounts(
        shape.terms.filter(pl.Series(present)),
        CountStatistics(
            classes[stays], documents[stays], counts,
            *((sum(layer.size for layer in layers), total[present]) if is_multilabel else ())),
        None if shape.document_frequency is None else frequency,
        None if shape.occurrences is None else occurrences), tuple(layers))
