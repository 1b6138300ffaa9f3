"""Folds with about the same share of each class, of rows or of whole groups of them.

They are those of scikit-learn's ``StratifiedKFold`` and ``StratifiedGroupKFold`` with
``shuffle=True``, to the row. Those warn where a class has fewer rows than there are folds, without
its name; and as Python's filters of warnings belong to the whole process, no thread can keep such a
warning to itself. Here the caller warns, and names the class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def stratified_folds(codes: Ints, folds: int, seed: int) -> Ints:
    """The fold of each row: classes are dealt out in turn, and shuffled within each class.

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
    # scikit-learn deals out the classes in order of appearance.
    _, first = np.unique(codes, return_index=True)
    ranks = np.empty(len(first), dtype=np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    ordered = ranks[codes]
    dealt = np.arange(len(codes)) % folds
    assigned = np.empty(len(codes), dtype=np.int64)
    ends = np.cumsum(np.bincount(ordered))
    rows = np.argsort(ordered, kind="stable")
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        own = np.sort(dealt[start:end])
        random.shuffle(own)
        assigned[rows[start:end]] = own
    return assigned


def stratified_group_folds(codes: Ints, groups: Ints, folds: int, seed: int) -> Ints:
    """The fold of each row, where rows of a group stay together.

    The groups whose classes are least even come first, each into the fold that makes the shares of
    the classes most even, or of equally good ones into that with the fewest rows.

    Parameters
    ----------
    codes, groups : int64 (n_rows,)
        The class and the group of each row, from 0; every class and group has a row.
    folds : int
    seed : int

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
    of_groups = np.zeros((len(order), len(classes)))
    np.add.at(of_groups, (groups, codes), 1)
    of_groups = of_groups[order]
    of_folds = np.zeros((folds, len(classes)))
    assigned = np.empty(len(order), dtype=np.int64)
    for group in np.argsort(-np.std(of_groups, axis=1), kind="stable"):
        fold = _best_fold(of_folds, of_groups[group], classes)
        of_folds[fold] += of_groups[group]
        assigned[order[group]] = fold
    return assigned[groups]


def _best_fold(of_folds: Floats, group: Floats, classes: Ints) -> int:
    best, least, fewest = 0, np.inf, np.inf
    for fold in range(len(of_folds)):
        of_folds[fold] += group
        unevenness = float(np.mean(np.std(of_folds / classes, axis=0)))
        of_folds[fold] -= group
        rows = float(of_folds[fold].sum())
        if unevenness < least or (np.isclose(unevenness, least) and rows < fewest):
            best, least, fewest = fold, unevenness, rows
    return best
