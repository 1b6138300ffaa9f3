"""Folds with about the same share of each class, of rows or of whole groups of rows.

They are the folds of scikit-learn's ``StratifiedKFold`` and ``StratifiedGroupKFold`` with
``shuffle=True``, to the row. They are computed here because scikit-learn warns, without a name, of
a class with fewer rows than folds: Python's warning filters belong to the whole process, so that
warning can't be suppressed safely in threads. Here the caller warns, and names the class.
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
    # Classes are numbered in order of appearance, as scikit-learn does.
    _, first = np.unique(codes, return_index=True)
    ranks = np.empty(len(first), dtype=np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    ordered = ranks[codes]
    turns = np.arange(len(codes)) % folds
    assigned = np.empty(len(codes), dtype=np.int64)
    ends = np.cumsum(np.bincount(ordered))
    rows = np.argsort(ordered, kind="stable")
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        order = np.sort(turns[start:end])
        random.shuffle(order)
        assigned[rows[start:end]] = order
    return assigned


def stratified_group_folds(codes: Ints, groups: Ints, folds: int, seed: int) -> Ints:
    """Assign a fold to each row, so that rows of a group stay together.

    The groups whose classes are most uneven come first. Each goes into the fold in which the shares
    of the classes become most even; among equally good folds, into the one with the fewest rows.

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
    classes = np.bincount(codes)
    order = np.arange(groups.max() + 1)
    random.shuffle(order)
    group_counts = np.zeros((len(order), len(classes)))
    np.add.at(group_counts, (groups, codes), 1)
    group_counts = group_counts[order]
    fold_counts = np.zeros((folds, len(classes)))
    assigned = np.empty(len(order), dtype=np.int64)
    for group in np.argsort(-np.std(group_counts, axis=1), kind="stable"):
        fold = _best_fold(fold_counts, group_counts[group], classes)
        fold_counts[fold] += group_counts[group]
        assigned[order[group]] = fold
    return assigned[groups]


def _best_fold(fold_counts: Floats, group: Floats, classes: Ints) -> int:
    best, lowest, fewest = 0, np.inf, np.inf
    for fold in range(len(fold_counts)):
        fold_counts[fold] += group
        unevenness = float(np.mean(np.std(fold_counts / classes, axis=0)))
        fold_counts[fold] -= group
        rows = float(fold_counts[fold].sum())
        if unevenness < lowest or (np.isclose(unevenness, lowest) and rows < fewest):
            best, lowest, fewest = fold, unevenness, rows
    return best
