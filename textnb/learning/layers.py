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

from textnb.bayes.read_only import ReadOnly
from textnb.bayes.statistics import CountStatistics, class_codes, unite_labels
from textnb.errors import DataError, quantity
from textnb.runtime.memory import check_room
from textnb.text.term_counts import TermCounts

Ints = NDArray[np.int64]
# Rows of a layer after those of the classes: documents that hold a term, and its occurrences.
MORE_ROWS = 2


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
        documents that hold a term and its occurrences, where the sum has them.
    values : int64 (n_cells,)
        Above 0.
    """

    start: date
    documents: Ints
    cells: Ints
    values: Ints

    def moved(self, rows: Ints, columns: Ints, n_terms: int, width: int, n_classes: int) -> Layer:
        """The layer in other rows and columns, which ascend as the present ones do.

        Parameters
        ----------
        rows : int64 (n_classes + 2,)
            The new row of each row.
        columns : int64 (n_terms,)
            The new column of each term.
        n_terms, width : int
            Terms before and after.
        n_classes : int
            Classes after.
        """
        row, column = np.divmod(self.cells, n_terms)
        documents = np.zeros(n_classes, dtype=np.int64)
        own = rows[:-MORE_ROWS]
        documents[own[own >= 0]] = self.documents[own >= 0]
        return Layer(self.start, documents, rows[row] * width + columns[column], self.values)


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
            mine[layer.start] = _difference(mine[layer.start], layer)
        return summed(self.total, [layer for layer in mine.values() if layer.documents.any()])

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
        documents = np.array([layer.documents for layer in self.layers])
        days = np.array([layer.start.toordinal() for layer in self.layers])[:, None]
        if half_life is None:
            return np.ones(documents.shape)
        newest = np.where(documents > 0, days, 0).max(axis=0)
        weights: NDArray[np.float64] = 2.0 ** (-np.maximum(newest - days, 0) / half_life)
        return weights

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
        return replace(self.total, counts=CountStatistics(counts.classes, documents, features),
                       occurrences=self.total.total, rows=self.total.documents)


def _layer_of(start: date, part: TermCounts) -> Layer:
    n_terms = len(part.terms)
    none = np.zeros(n_terms, dtype=np.int64)
    table = np.vstack([part.counts.feature_count, *(
        none if row is None else row for row in (part.document_frequency, part.occurrences))])
    cells = np.flatnonzero(table)
    return Layer(start, part.counts.class_count, cells, table.reshape(-1)[cells])


def _combine(parts: Sequence[LayeredCounts]) -> LayeredCounts:
    first = parts[0].total
    terms, classes = first.terms, first.counts.classes
    if not all(part.total.terms.equals(terms) for part in parts):
        terms = pl.concat([part.total.terms for part in parts]).unique().sort()
    for part in parts:
        classes = unite_labels(classes, part.total.counts.classes)
    shape = replace(first, terms=terms, counts=CountStatistics.empty(classes, len(terms)))
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
    rows = np.append(class_codes(own, classes), len(classes) + np.arange(MORE_ROWS))
    return [layer.moved(rows, columns, len(columns), len(shape.terms), len(classes))
            for layer in part.layers]


def _sum_of(same: Sequence[Layer]) -> Layer:
    """The sum of layers of one period."""
    if len(same) == 1:
        return same[0]
    cells, values = _added([(layer.cells, layer.values) for layer in same])
    documents: Ints = np.sum([layer.documents for layer in same], axis=0)
    return Layer(same[0].start, documents, cells, values)


def _added(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    cells = np.concatenate([cells for cells, _ in parts])
    values = np.concatenate([values for _, values in parts])
    order = np.argsort(cells, kind="stable")
    cells, values = cells[order], values[order]
    if not len(cells):
        return cells, values
    begins = np.flatnonzero(np.diff(cells, prepend=-1))
    return cells[begins], np.add.reduceat(values, begins)


def _difference(layer: Layer, other: Layer) -> Layer:
    cells, values = _added([(layer.cells, layer.values), (other.cells, -other.values)])
    documents = layer.documents - other.documents
    if (values < 0).any() or (documents < 0).any():
        raise DataError.never_learned(
            f"the period from {layer.start} has counted less than is given")
    return Layer(layer.start, documents, cells[values > 0], values[values > 0])


def summed(shape: TermCounts, layers: Sequence[Layer]) -> LayeredCounts:
    """Layers and their sum, without the terms and classes that they no longer have.

    Parameters
    ----------
    shape : TermCounts
        Its classes and terms are those of the layers. A class without documents was announced,
        and stays.
    layers : sequence of Layer
    """
    classes, n_terms = shape.counts.classes, len(shape.terms)
    check_room(len(classes) + MORE_ROWS, n_terms, 8, "their counts")
    sums = np.zeros((len(classes) + MORE_ROWS, n_terms), dtype=np.int64)
    flat = sums.reshape(-1)
    documents = np.zeros(len(classes), dtype=np.int64)
    for layer in layers:
        # A cell is in a layer once.
        flat[layer.cells] += layer.values
        documents += layer.documents
    counts, frequency, occurrences = sums[:-MORE_ROWS], sums[-2], sums[-1]
    total = counts.sum(axis=0) if shape.occurrences is None else occurrences
    present = total > 0
    stays = (documents > 0) | (shape.counts.class_count == 0)
    if not (present.all() and stays.all()):
        rows = np.append(np.where(stays, np.cumsum(stays) - 1, -1),
                         int(stays.sum()) + np.arange(MORE_ROWS))
        columns = np.cumsum(present) - 1
        layers = [layer.moved(rows, columns, n_terms, int(present.sum()), int(stays.sum()))
                  for layer in layers]
        counts = counts[np.ix_(stays, present)]
        frequency, occurrences = frequency[present], occurrences[present]
    return LayeredCounts(TermCounts(
        shape.terms.filter(pl.Series(present)),
        CountStatistics(classes[stays], documents[stays], counts),
        None if shape.document_frequency is None else frequency,
        None if shape.occurrences is None else occurrences), tuple(layers))
