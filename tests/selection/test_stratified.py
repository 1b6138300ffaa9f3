"""Folds are those of scikit-learn, to the row."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from tests.tiers import examples
from textnb.selection.stratified import stratified_folds, stratified_group_folds

Ints = NDArray[np.int64]


def from_zero(values: list[int]) -> Ints:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def numbered(splitter: Any, codes: Ints, groups: Ints | None = None) -> list[int]:
    assigned = np.full(len(codes), -1)
    with warnings.catch_warnings():
        # Of classes with fewer rows than folds.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        for fold, (_, test) in enumerate(splitter.split(codes, codes, groups)):
            assigned[test] = fold
    return assigned.tolist()


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=60), st.integers(2, 7),
       st.integers(0, 2**32 - 1))
def test_rows(labels: list[int], folds: int, seed: int) -> None:
    codes = from_zero(labels)
    folds = min(folds, int(np.bincount(codes).max()))
    assume(folds > 1)
    expected = numbered(StratifiedKFold(folds, shuffle=True, random_state=seed), codes)
    assert stratified_folds(codes, folds, seed).tolist() == expected


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), min_size=2, max_size=80),
       st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_groups(rows: list[tuple[int, int]], folds: int, seed: int) -> None:
    codes, groups = from_zero([row[0] for row in rows]), from_zero([row[1] for row in rows])
    folds = min(folds, int(np.bincount(codes).max()), int(groups.max()) + 1)
    assume(folds > 1)
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    assert stratified_group_folds(codes, groups, folds, seed).tolist() == numbered(
        splitter, codes, groups)
