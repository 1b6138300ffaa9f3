"""Moments add and subtract as the rows that they are of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.oracles import gaussian
from tests.tiers import examples
from textnb import DataError, MomentStatistics
from textnb.bayes.covariance import dependent_columns

of = MomentStatistics.from_matrix
diagonals = pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diagonal"])


def table(n=60, p=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + y[:, None], y


def equal(a, b, tolerance=1e-9):
    assert a.classes.tolist() == b.classes.tolist()
    assert a.diagonal == b.diagonal
    np.testing.assert_allclose(a.class_count, b.class_count, rtol=tolerance)
    np.testing.assert_allclose(a.mean, b.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(a.scatter, b.scatter, rtol=tolerance,
                               atol=tolerance * max(1.0, np.abs(b.scatter).max()))


@diagonals
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_the_definition(diagonal, weighted):
    X, y = table()
    w = np.random.default_rng(1).gamma(1.0, size=60) if weighted else None
    got = of(X, y, sample_weight=w, diagonal=diagonal)
    for k in range(3):
        own = None if w is None else w[y == k]
        scatter = gaussian.scatter(X[y == k], own)
        np.testing.assert_allclose(got.mean[k], gaussian.mean(X[y == k], own), rtol=1e-12)
        np.testing.assert_allclose(
            got.scatter[k], np.diag(scatter) if diagonal else scatter, rtol=1e-10, atol=1e-12)
        assert got.class_count[k] == pytest.approx(20 if own is None else own.sum())


@diagonals
def test_halves_add_to_the_whole(diagonal):
    X, y = table()
    for cut in (1, 7, 30, 59):
        equal(of(X[:cut], y[:cut], diagonal=diagonal) + of(X[cut:], y[cut:], diagonal=diagonal),
              of(X, y, diagonal=diagonal))


@diagonals
@pytest.mark.parametrize("folds", [2, 5, 20])
def test_a_fold_taken_out_is_a_refit_on_the_rest(diagonal, folds):
    X, y = table()
    fold = np.arange(60) // 3 % folds
    parts = [of(X[fold == i], y[fold == i], diagonal=diagonal) for i in range(folds)]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    for i, part in enumerate(parts):
        equal(whole - part, of(X[fold != i], y[fold != i], diagonal=diagonal))


@diagonals
def test_all_rows_taken_out_leave_nothing(diagonal):
    X, y = table()
    whole = of(X, y, diagonal=diagonal)
    nothing = whole - whole
    assert not nothing.class_count.any()
    assert not nothing.mean.any()
    assert not nothing.scatter.any()
    equal(nothing + whole, whole, 1e-15)


@diagonals
@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_variances_keep_their_digits_far_from_zero(diagonal, offset):
    X, y = table(n=900)
    X = (X + offset).astype(np.float64)
    # The rows as they are stored, taken back near zero exactly: no rounding in the reference.
    near = X - offset
    whole = of(X, y, diagonal=diagonal)
    in_parts = of(X[:10], y[:10], diagonal=diagonal)
    for start in range(10, 900, 89):
        in_parts = in_parts + of(X[start:start + 89], y[start:start + 89], diagonal=diagonal)
    without = whole - of(X[:300], y[:300], diagonal=diagonal)
    for got, rows, labels in ((whole, near, y), (in_parts, near, y),
                              (without, near[300:], y[300:])):
        for k in range(3):
            expected = gaussian.scatter(rows[labels == k])
            variance = np.diag(expected)
            own = got.scatter[k] if diagonal else np.diag(got.scatter[k])
            np.testing.assert_allclose(own, variance.astype(np.float64), rtol=1e-9)


@given(arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(1, 3)),
              elements=st.floats(-1e3, 1e3)), st.data())
@settings(deadline=None, max_examples=examples(60))
def test_any_split_adds_and_subtracts(X, data):
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(X), max_size=len(X))))
    left = np.array(data.draw(st.lists(st.booleans(), min_size=len(X), max_size=len(X))))
    diagonal = data.draw(st.booleans())
    every = [0, 1, 2]
    whole = of(X, y, classes=every, diagonal=diagonal)
    a = of(X[left], y[left], classes=every, diagonal=diagonal)
    b = of(X[~left], y[~left], classes=every, diagonal=diagonal)
    scale = max(1.0, float((X**2).sum()))
    for got, expected in ((a + b, whole), (b + a, whole), (whole - a, b), (whole - b, a)):
        assert got.class_count.tolist() == expected.class_count.tolist()
        np.testing.assert_allclose(got.mean, expected.mean, atol=1e-9 * scale**0.5)
        np.testing.assert_allclose(got.scatter, expected.scatter, atol=1e-9 * scale)


@given(arrays(np.float64, (8, 2), elements=st.floats(-100, 100)),
       st.lists(st.integers(1, 3), min_size=8, max_size=8))
@settings(deadline=None, max_examples=examples(40))
def test_whole_weights_repeat_rows(X, times):
    y = np.arange(8) % 2
    weighed = of(X, y, sample_weight=np.array(times, dtype=np.float64))
    repeated = of(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighed.mean, repeated.mean, atol=1e-10)
    np.testing.assert_allclose(weighed.scatter, repeated.scatter, atol=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_weighted_rows_can_all_be_taken_out(seed):
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(7, 2)), np.zeros(7, dtype=int), rng.random(7)
    parts = [of(X[rows], y[rows], sample_weight=w[rows]) for rows in (slice(3), slice(3, 7))]
    # The weights' sums differ in their last bit: that is no class that has learned too little.
    nothing = (parts[0] + parts[1]) - of(X, y, sample_weight=w)
    assert nothing.class_count[0] == pytest.approx(0, abs=1e-12)
    assert np.abs(nothing.mean).max() < 10
    assert np.abs(nothing.scatter).max() < 1e-9


def test_more_taken_out_than_was_learned():
    X, y = table()
    with pytest.raises(DataError, match=r"class .*0.* has learned 4 rows, fewer than the 20"):
        of(X[:12], y[:12]) - of(X, y)


def test_a_class_that_was_never_learned_is_not_taken_out():
    X, y = table()
    with pytest.raises(DataError, match="fewer"):
        of(X[y < 2], y[y < 2]) - of(X, y)


@diagonals
def test_classes_that_differ_are_united(diagonal):
    X, y = table()
    names = np.array(["a", "bbb", "a class of a long name"])[y]
    left = of(X[y < 2], names[y < 2], diagonal=diagonal)
    right = of(X[y == 2], names[y == 2], diagonal=diagonal)
    equal(left + right, of(X, names, diagonal=diagonal), 1e-12)
    equal(right + left, of(X, names, diagonal=diagonal), 1e-12)
    united = (left + right).classes
    assert sorted(united.tolist()) == ["a", "a class of a long name", "bbb"]
    back = (left + right) - left
    assert back.class_count.tolist() == [0, 20, 0]
    np.testing.assert_allclose(back.scatter[1], right.scatter[0], rtol=1e-9, atol=1e-12)


def test_labels_as_objects_and_as_fixed_strings_are_the_same():
    X, y = table()
    names = np.array(["x", "yy", "zzz"])[y]
    equal(of(X, names) + of(X, names.astype(object)), of(np.tile(X, (2, 1)), np.tile(names, 2)))


def test_announced_classes_have_no_rows_yet():
    X, y = table()
    got = of(X, y, classes=[5, 2, 1, 0, 7])
    assert got.classes.tolist() == [0, 1, 2, 5, 7]
    assert got.class_count.tolist() == [20, 20, 20, 0, 0]
    assert not got.scatter[3:].any()
    assert got.with_classes([9]).class_count.tolist() == [20, 20, 20, 0, 0, 0]


def test_a_label_that_was_not_announced():
    X, y = table()
    with pytest.raises(DataError, match="not announced"):
        of(X, y, classes=[0, 1])


def test_moments_of_other_features_do_not_add():
    X, y = table()
    for other in (of(X[:, :2], y), of(X, y, diagonal=True)):
        with pytest.raises(DataError, match="can't be combined"):
            of(X, y) + other
        with pytest.raises(DataError, match="can't be combined"):
            of(X, y) - other


@diagonals
def test_sums_over_classes(diagonal):
    X, y = table()
    y[:9] = 0
    got = of(X, y, diagonal=diagonal)
    np.testing.assert_allclose(got.overall_mean(), X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(got.variance(), X.var(axis=0), rtol=1e-12)
    within = gaussian.pooled(X, y, 1.0)
    np.testing.assert_allclose(got.within(), np.diag(within) if diagonal else within, rtol=1e-10)
    np.testing.assert_allclose(
        got.without_covariances().scatter, of(X, y, diagonal=True).scatter, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int64", "bool"])
def test_rows_of_any_real_type_are_summed_in_float64(dtype):
    X = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 120, (300, 3)).astype(dtype)
    y = np.arange(300) % 2
    equal(of(X, y), of(X.astype(np.float64), y), 1e-15)


def test_rows_are_left_as_they_were():
    X, y = table()
    before = X.copy()
    a, b = of(X, y), of(X[:9], y[:9])
    kept = a.mean.copy(), a.scatter.copy()
    assert (a + b).class_count.sum() == 69
    assert (a - b).class_count.sum() == 51
    assert np.array_equal(X, before)
    assert np.array_equal(a.mean, kept[0])
    assert np.array_equal(a.scatter, kept[1])


def test_columns_that_depend_on_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6))
    X[:, 2] = 7.0
    X[:, 4] = 2 * X[:, 0] - X[:, 1]
    constant, collinear = dependent_columns(np.cov(X.T))
    assert (constant.tolist(), collinear.tolist()) == ([2], [4])
