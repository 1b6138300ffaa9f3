"""Folds are those of scikit-learn, to the row; groups stay together, and parts follow in time."""

import datetime as dt
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, TimeSeriesSplit

from tests.selection.rows import ROWS
from tests.tiers import examples
from textnb.selection.splits import split, time_order
from textnb.selection.stratified import stratified_folds, stratified_group_folds


def folds_of(splitter, *rows):
    """The number of the fold that tests each row; -1 for rows that none tests."""
    folds = np.full(len(rows[0]), -1)
    for fold, (_, test) in enumerate(splitter.split(*rows)):
        folds[test] = fold
    return folds


def from_zero(values):
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


# Of classes with fewer rows than folds.
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), min_size=2, max_size=80),
       st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_rows_and_groups_are_in_the_folds_of_scikit_learn(rows, folds, seed):
    codes, groups = (from_zero(column) for column in zip(*rows, strict=True))
    folds = min(folds, int(np.bincount(codes).max()))
    assume(folds > 1)
    expected = folds_of(StratifiedKFold(folds, shuffle=True, random_state=seed), codes, codes)
    assert stratified_folds(codes, folds, seed).tolist() == expected.tolist()
    folds = min(folds, int(groups.max()) + 1)
    assume(folds > 1)
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    expected = folds_of(splitter, codes, codes, groups)
    assert stratified_group_folds(codes, groups, folds, seed).tolist() == expected.tolist()


def test_a_split_has_the_folds_of_scikit_learn():
    labels, rows = ROWS["label"].to_numpy(), ROWS.sample(fraction=1.0, shuffle=True, seed=1)
    expected = folds_of(StratifiedKFold(4, shuffle=True, random_state=3), labels, labels)
    assert split(ROWS.lazy(), "label", folds=4, seed=3).folds.tolist() == expected.tolist()
    # Groups are numbered in the order in which they come.
    order = rows["author"].unique(maintain_order=True).to_list()
    groups = [order.index(author) for author in rows["author"]]
    splitter = StratifiedGroupKFold(3, shuffle=True, random_state=1)
    expected = folds_of(splitter, groups, rows["label"].to_numpy(), groups)
    folds = split(rows.lazy(), "label", folds=3, groups="author", seed=1).folds
    assert folds.tolist() == expected.tolist()


def test_parts_are_those_of_scikit_learn_where_all_times_differ():
    random = np.random.default_rng(0)
    times = random.permutation(23)
    frame = pl.LazyFrame({"label": ["a", "b"] * 11 + ["a"], "time": times})
    folds = split(frame, "label", folds=5, time="time").folds
    order = np.argsort(times)
    assert folds[order].tolist() == folds_of(
        TimeSeriesSplit(5), order[:, None]).tolist()
    assert (folds == -1).sum() == 23 - 5 * (23 // 6)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.integers(0, 9), min_size=3, max_size=40), st.integers(2, 5))
def test_equal_times_stay_together_and_no_part_is_empty(times, folds):
    assume(len(set(times)) > folds)
    labels = (["a", "b"] * len(times))[:len(times)]
    made = split(pl.LazyFrame({"label": labels, "time": times}), "label", folds=folds,
                 time="time").folds
    assert sorted(set(made.tolist())) == list(range(-1, folds))
    parts = [np.array(times)[made == part] for part in range(-1, folds)]
    assert all(before.max() < after.min() for before, after in pairwise(parts))


@pytest.mark.parametrize("times", [
    pl.Series(["9", "10", "11", "1", "2", "3"]), pl.Series([9.0, 10.0, 11.0, 1.0, 2.0, 3.0]),
    pl.Series([dt.datetime(2026, 1, day) for day in (9, 10, 11, 1, 2, 3)]),
    pl.Series([f"2026-01-{day:02}" for day in (9, 10, 11, 1, 2, 3)]),
    pl.Series([f"2026-01-{day:02}T12:30:00" for day in (9, 10, 11, 1, 2, 3)]),
    pl.Series([dt.timedelta(days=day) for day in (9, 10, 11, 1, 2, 3)]),
    pl.Series([dt.time(day) for day in (9, 10, 11, 1, 2, 3)])], ids=lambda times: str(times.dtype))
def test_times_of_every_type(times):
    frame = pl.LazyFrame({"label": ["a", "b"] * 3, "time": times})
    assert split(frame, "label", folds=2, time="time").folds.tolist() == [0, 1, 1, -1, -1, 0]


@pytest.mark.parametrize("groups", [
    pl.Series(["u", "u", "v", "v", "w", "w"]), pl.Series([1, 1, 2, 2, 3, 3]),
    pl.Series(["u", "u", "v", "v", "w", "w"], dtype=pl.Categorical),
    pl.Series([dt.date(2026, 1, day) for day in (1, 1, 2, 2, 3, 3)])],
    ids=lambda groups: str(groups.dtype))
def test_groups_of_every_type(groups):
    frame = pl.LazyFrame({"label": ["a", "b"] * 3, "group": groups})
    made = split(frame, "label", folds=3, groups="group").folds
    assert made[0] == made[1] != made[2] == made[3] != made[4] == made[5] != made[0]


@pytest.mark.filterwarnings("ignore:class 'b'")
@pytest.mark.parametrize("dtype", [pl.Int64, pl.Int128, pl.UInt64, pl.String])
def test_large_integers_are_times_in_order(dtype):
    # As fractions, the first two would be equal.
    times = pl.Series([2**53 + 1, 2**53, 9]).cast(dtype)
    assert time_order(times, "time").tolist() == [2, 1, 0]
    frame = pl.LazyFrame({"time": times, "label": [*"aba"]})
    assert split(frame, "label", folds=2, time="time").folds.tolist() == [1, 0, -1]
