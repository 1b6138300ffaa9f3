"""Cells: the entries other than 0 of a table of classes and features, feature by feature.

    ends      the number of cells up to the end of each feature
    codes     the class of each cell, ascending within a feature
    values    the count of each cell

Counts have this form in memory and in a model file. While counts are added up, each cell has a key,
the number feature * n_classes + class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Cells = tuple[Ints, NDArray[np.int32], NDArray[Any]]
# Weights are sparse if a table has more than MAX_DENSE_SIZE entries (128 MiB of float64), at most
# one in MIN_ENTRIES_PER_CELL of them is not 0, and there are at least MIN_CLASSES classes: with
# fewer, dense weights score faster. Only sizes decide, so that a model scores with the same bits,
# however it was trained.
MAX_DENSE_SIZE, MIN_ENTRIES_PER_CELL, MIN_CLASSES = 1 << 24, 16, 512


def may_be_sparse(n_classes: int, n_features: int) -> bool:
    """Whether counts of these sizes have sparse weights if enough counts are 0."""
    return n_classes >= MIN_CLASSES and n_classes * n_features > MAX_DENSE_SIZE


def is_sparse(n_classes: int, n_features: int, n_cells: int) -> bool:
    """Whether counts of these sizes have sparse weights.

    Examples
    --------
    >>> is_sparse(10_000, 100_000, 10_000_000), is_sparse(20, 100_000, 100_000)
    (True, False)
    """
    return (may_be_sparse(n_classes, n_features)
            and n_cells * MIN_ENTRIES_PER_CELL <= n_classes * n_features)


def cells_of(table: NDArray[Any]) -> Cells:
    """Ends, codes and values of the cells of an array (n_classes, n_features).

    Examples
    --------
    >>> [each.tolist() for each in cells_of(np.array([[3, 0, 1], [0, 0, 2]]))]
    [[1, 1, 3], [0, 0, 1], [3, 1, 2]]
    """
    n_classes, n_features = table.shape
    by_feature = np.ascontiguousarray(table.T).reshape(-1)
    is_cell = by_feature != 0
    # A cumulative sum over features takes less memory than one over all entries.
    ends = np.cumsum(np.count_nonzero(is_cell.reshape(n_features, n_classes), axis=1))
    places = np.flatnonzero(is_cell)
    # Without classes there are no places, and `max` avoids a division by 0.
    return ends, (places % max(1, n_classes)).astype(np.int32), by_feature[places]


def cells_of_classes(counts: Iterable[Ints], n_features: int) -> Cells:
    """As `cells_of`, from the counts of each class, int64 (n_features,), without a dense table.

    Examples
    --------
    >>> [each.tolist() for each in cells_of_classes([np.array([3, 0, 1]), np.array([0, 0, 2])], 3)]
    [[1, 1, 3], [0, 0, 1], [3, 1, 2]]
    """
    index_type = np.int32 if n_features < 2**31 else np.int64
    n_cells = np.zeros(n_features, dtype=np.int64)
    # The features and the counts of the cells of each class.
    cells_per_class = deque[tuple[NDArray[Any], Ints]]()
    for class_counts in counts:
        features = np.flatnonzero(class_counts).astype(index_type)
        n_cells[features] += 1
        cells_per_class.append((features, class_counts[features]))
    # The place of the next cell of each feature; after the loop, the end of the feature.
    places = np.cumsum(n_cells) - n_cells
    codes = np.empty(int(n_cells.sum()), dtype=np.int32)
    values = np.empty(len(codes), dtype=np.int64)
    for k in range(len(cells_per_class)):
        # Each class is removed from the queue, so that its memory is free for the next one.
        features, class_values = cells_per_class.popleft()
        cells = places[features]
        codes[cells], values[cells] = k, class_values
        places[features] += 1
    return places, codes, values


def sum_by_key(keys: Ints, values: NDArray[Any]) -> tuple[Ints, NDArray[Any]]:
    """Sorted unique keys whose values have a sum that is not 0, and these sums.

    Examples
    --------
    >>> [each.tolist() for each in sum_by_key(np.array([5, 2, 5, 7]), np.array([1, 2, 3, 0]))]
    [[2, 5], [2, 4]]
    """
    if not len(keys):
        return keys, values
    # Floats are added in the order in which they come, as their sum depends on it.
    order = np.argsort(keys, kind="stable" if values.dtype.kind == "f" else None)
    keys, values = keys[order], values[order]
    del order
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    keys, values = keys[begins], np.add.reduceat(values, begins)
    return (keys, values) if values.all() else (keys[values != 0], values[values != 0])


def concatenate_ranges(begins: Ints, ends: Ints) -> Ints:
    """The indices from each begin to before its end, one range after the other.

    Examples
    --------
    >>> concatenate_ranges(np.array([2, 0, 7]), np.array([4, 1, 7])).tolist()
    [2, 3, 0]
    """
    lengths = ends - begins
    begins_in_result = np.cumsum(lengths) - lengths
    indices: Ints = np.repeat(begins - begins_in_result, lengths)
    indices += np.arange(len(indices))
    return indices


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


def find_keys(keys: Ints, wanted: Ints) -> Ints:
    """The place of each wanted key among sorted keys; -1 for one that is not there.

    Examples
    --------
    >>> find_keys(np.array([2, 5]), np.array([5, 4, 9])).tolist()
    [1, -1, -1]
    """
    if not len(keys):
        return np.full(len(wanted), -1)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, places, -1)


def sum_by_index(indices: NDArray[Any], values: NDArray[Any], size: int) -> NDArray[Any]:
    """The sum of the values of each index from 0 to size - 1, added in the order in which they
    come."""
    sums = np.zeros(size, dtype=values.dtype)
    np.add.at(sums, indices, values)
    return sums


def put_into_zeros(values: NDArray[Any], indices: NDArray[Any], size: int) -> NDArray[Any]:
    """An array of this size with the values at these indices, and 0 elsewhere."""
    larger = np.zeros(size, dtype=values.dtype)
    larger[indices] = values
    return larger
