"""Folds with about the same share of each class, of rows or of whole groups of rows.

Every row is in the same fold as in scikit-learn's ``StratifiedKFold`` or ``StratifiedGroupKFold``
with ``shuffle=True``. Folds are computed here because scikit-learn warns of a class with fewer rows
than folds, without naming it. Threads can't suppress that warning safely, as Python's warning
filters belong to the whole process. Callers of this module warn instead, and name the class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def stratified_folds(codes: Ints, folds: int, seed: int) -> Ints:
    """Assign a fold to each row: the rows of a class are spread over the folds, in random order.

    Parameters
    ----------
    codes : int64 (n_rows,)
        The class of each row, from 0; every class has a row.
    folds : int
    seed : int

    Returns
    -------
    int64 (n_rows,)

    Examples
    --------
    >>> stratified_folds(np.array([0, 0, 1, 1, 1]), 2, seed=0).tolist()
    [1, 0, 1, 0, 0]
    """
    random = np.random.RandomState(seed)
    # As in scikit-learn, classes are numbered in the order in which they appear.
    _, first_rows = np.unique(codes, return_index=True)
    new_codes = np.empty(len(first_rows), dtype=np.int64)
    new_codes[np.argsort(first_rows)] = np.arange(len(first_rows))
    codes = new_codes[codes]
    # The rows of the first class, then those of the second, and so on.
    rows_by_class = np.argsort(codes, kind="stable")
    # Folds take turns along the rows sorted by class. Each fold gets as many rows of a class as it
    # has turns within that class.
    turns = np.arange(len(codes)) % folds
    row_folds = np.empty(len(codes), dtype=np.int64)
    ends = np.cumsum(np.bincount(codes))
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        class_folds = np.sort(turns[start:end])
        random.shuffle(class_folds)
        row_folds[rows_by_class[start:end]] = class_folds
    return row_folds


def stratified_group_folds(codes: Ints, groups: Ints, folds: int, seed: int) -> Ints:
    """Assign a fold to each row, so that rows of a group stay together.

    Groups are assigned one by one, first those whose numbers of rows per class differ most. A group
    goes into the fold that then makes the classes' shares most even; on a tie, into the one with
    the fewest rows.

    Parameters
    ----------
    codes, groups : int64 (n_rows,)
        The class and the group of each row, from 0; every class and group has a row.
    folds, seed : int

    Returns
    -------
    int64 (n_rows,)

    Examples
    --------
    >>> stratified_group_folds(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), 2, seed=0).tolist()
    [1, 1, 0, 0]
    """
    random = np.random.RandomState(seed)
    class_sizes = np.bincount(codes)
    order = np.arange(groups.max() + 1)
    random.shuffle(order)
    group_counts = np.zeros((len(order), len(class_sizes)))
    np.add.at(group_counts, (groups, codes), 1)
    group_counts = group_counts[order]
    fold_counts = np.zeros((folds, len(class_sizes)))
    group_folds = np.empty(len(order), dtype=np.int64)
    # Groups are shuffled, so that ties are broken at random.
    for i in np.argsort(-np.std(group_counts, axis=1), kind="stable"):
        fold = _best_fold(fold_counts, group_counts[i], class_sizes)
        fold_counts[fold] += group_counts[i]
        group_folds[order[i]] = fold
    return group_folds[groups]


def _best_fold(fold_counts: Floats, group_counts: Floats, class_sizes: Ints) -> int:
    """The fold into which a group goes.

    Parameters
    ----------
    fold_counts : float64 (n_folds, n_classes)
        The numbers of rows that the folds have so far.
    group_counts : float64 (n_classes,)
        The numbers of rows of the group.
    class_sizes : int64 (n_classes,)
    """
    best, min_spread, min_rows = 0, np.inf, np.inf
    for fold in range(len(fold_counts)):
        fold_counts[fold] += group_counts
        spread = float(np.mean(np.std(fold_counts / class_sizes, axis=0)))
        fold_counts[fold] -= group_counts
        n_rows = float(fold_counts[fold].sum())
        if spread < min_spread or (np.isclose(spread, min_spread) and n_rows < min_rows):
            best, min_spread, min_rows = fold, spread, n_rows
    return best
