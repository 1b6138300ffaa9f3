"""The cells of a table of classes and features that are not 0, feature by feature.

    ends      the number of cells up to the end of each feature
    codes     the class of each cell, ascending within a feature
    values    its count

Counts have this form in memory and in a model file. While they are added up, a cell has a key, one
number for its feature and class.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Cells = tuple[Ints, NDArray[np.int32], NDArray[Any]]
# Weights are sparse if a table has more cells, and at most one in MIN_RATIO of them is not 0. Only
# sizes decide, so the same counts give weights of the same bits in each way of training.
MAX_DENSE_CELLS, MIN_RATIO = 1 << 24, 16
# With fewer classes dense weights score faster.
MIN_CLASSES = 512


def may_be_sparse(n_classes: int, n_features: int) -> bool:
    """Whether counts of these sizes have sparse weights if few counts are not 0."""
    return n_classes >= MIN_CLASSES and n_classes * n_features > MAX_DENSE_CELLS


def is_sparse(n_classes: int, n_features: int, n_cells: int) -> bool:
    """Whether counts of these sizes, with ``n_cells`` that are not 0, have sparse weights.

    Examples
    --------
    >>> is_sparse(10_000, 100_000, 10_000_000), is_sparse(20, 100_000, 100_000)
    (True, False)
    """
    return may_be_sparse(n_classes, n_features) and n_cells * MIN_RATIO <= n_classes * n_features


def cells_of(table: NDArray[Any]) -> Cells:
    """Ends, codes and values of the cells of an array (n_classes, n_features) that are not 0.

    Examples
    --------
    >>> [each.tolist() for each in cells_of(np.array([[3, 0, 1], [0, 0, 2]]))]
    [[1, 1, 3], [0, 0, 1], [3, 1, 2]]
    """
    n_classes, n_features = table.shape
    by_feature = np.ascontiguousarray(table.T).reshape(-1)
    is_stored = by_feature != 0
    # Cumulative sums over features take less memory than over all cells.
    ends = np.cumsum(np.count_nonzero(is_stored.reshape(n_features, n_classes), axis=1))
    places = np.flatnonzero(is_stored)
    return ends, (places % max(1, n_classes)).astype(np.int32), by_feature[places]


def cells_by_class(counts: Iterable[Ints], n_features: int) -> Cells:
    """As `cells_of`, from the counts of one class after the other, without a table of all.

    Examples
    --------
    >>> [each.tolist() for each in cells_by_class([np.array([3, 0, 1]), np.array([0, 0, 2])], 3)]
    [[1, 1, 3], [0, 0, 1], [3, 1, 2]]
    """
    index = np.int32 if n_features < 2**31 else np.int64
    sizes, parts = np.zeros(n_features, dtype=np.int64), []
    for of_class in counts:
        features = np.flatnonzero(of_class).astype(index)
        sizes[features] += 1
        parts.append((features, of_class[features]))
    # The place of the next cell of each feature, and at last the end of the feature.
    places = np.cumsum(sizes) - sizes
    codes = np.empty(int(sizes.sum()), dtype=np.int32)
    values = np.empty(len(codes), dtype=np.int64)
    for k in range(len(parts)):
        features, counts_of_class = parts[k]
        # Memory for the cells of a class is freed as soon as they are placed.
        parts[k] = features[:0], counts_of_class[:0]
        codes[places[features]], values[places[features]] = k, counts_of_class
        places[features] += 1
    return places, codes, values


def added_up(keys: Ints, values: NDArray[Any]) -> tuple[Ints, NDArray[Any]]:
    """Sorted keys, each once, with the sum of its values in their order, if this is not 0.

    Examples
    --------
    >>> [each.tolist() for each in added_up(np.array([5, 2, 5, 7]), np.array([1, 2, 3, 0]))]
    [[2, 5], [2, 4]]
    """
    if not len(keys):
        return keys, values
    # Sums of whole numbers are the same in any order.
    order = np.argsort(keys, kind="stable" if values.dtype.kind == "f" else None)
    keys, values = keys[order], values[order]
    del order
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    keys, values = keys[first], np.add.reduceat(values, first)
    return (keys, values) if values.all() else (keys[values != 0], values[values != 0])


def places_between(begins: Ints, ends: Ints) -> Ints:
    """The places from each begin to its end, one after the other.

    Examples
    --------
    >>> places_between(np.array([2, 0, 7]), np.array([4, 1, 7])).tolist()
    [2, 3, 0]
    """
    lengths = ends - begins
    begins_in_result = np.cumsum(lengths) - lengths
    places: Ints = np.repeat(begins - begins_in_result, lengths)
    places += np.arange(len(places))
    return places


def cells_of_keys(keys: Ints, values: NDArray[Any], n_features: int, n_classes: int) -> Cells:
    """Ends, codes and values of cells with sorted keys: feature * n_classes + class.

    Examples
    --------
    >>> [each.tolist() for each in cells_of_keys(np.array([1, 4, 5]), np.array([7, 8, 9]), 3, 2)]
    [[1, 1, 3], [1, 0, 1], [7, 8, 9]]
    """
    columns, codes = np.divmod(keys, max(1, n_classes))
    ends = np.cumsum(np.bincount(columns, minlength=n_features))
    return ends, codes.astype(np.int32), values


def find(keys: Ints, numbers: Ints) -> Ints:
    """The place of each number among sorted keys; -1 for one that is not there.

    Examples
    --------
    >>> find(np.array([2, 5]), np.array([5, 4, 9])).tolist()
    [1, -1, -1]
    """
    if not len(keys):
        return np.full(len(numbers), -1)
    places = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
    return np.where(keys[places] == numbers, places, -1)


def sums_of(places: NDArray[Any], values: NDArray[Any], size: int) -> NDArray[Any]:
    """The sum of the values of each place, added in their order."""
    sums = np.zeros(size, dtype=values.dtype)
    np.add.at(sums, places, values)
    return sums


def spread(values: NDArray[Any], places: NDArray[Any], size: int) -> NDArray[Any]:
    """An array of this size with the values at these places, and else 0."""
    larger = np.zeros(size, dtype=values.dtype)
    larger[places] = values
    return larger
