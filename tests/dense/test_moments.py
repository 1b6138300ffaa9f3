"""Moments add and subtract as the rows that they are of."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.oracles import gaussian
from tests.tiers import examples
from textnb import DataError
from textnb.bayes.moments import MomentStatistics

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
def test_all_rows_taken_out_leave_nothing(diagonal):
    whole = of(*table(), diagonal=diagonal)
    nothing = whole - whole
    assert not any(values.any() for values in (nothing.class_count, nothing.mean, nothing.scatter))
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


X, Y = table()
CALLS = [
    (lambda: of(X[:12], Y[:12]) - of(X, Y), r"class .*0.* has learned 4 rows, fewer than the 20"),
    (lambda: of(X[Y < 2], Y[Y < 2]) - of(X, Y), "fewer"),
    (lambda: of(X, Y, classes=[0, 1]), "not announced"),
    *((call, "can't be combined") for other in (of(X[:, :2], Y), of(X, Y, diagonal=True))
      for call in (lambda other=other: of(X, Y) + other, lambda other=other: of(X, Y) - other))]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_moments_that_do_not_fit_are_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()


@diagonals
def test_rows_that_were_never_learned_are_not_taken_out(diagonal):
    def of_values(x):
        values = np.array(x, dtype=np.float64)[:, None] * [1.0, 2.0]
        return of(values, ["a"] * len(values), diagonal=diagonal)

    learned = of_values([1.0, 2.0, 3.0, 4.0])
    for strange in ([0.0, 9.0], [100.0], [1.0, 2.0, 3.0, 5.0], [2.5] * 4):
        with pytest.raises(DataError, match="can't forget: the rows given are not among those of "
                                            "class 'a'"):
            learned - of_values(strange)
    for own in ([1.0], [4.0, 1.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]):
        assert ((learned - of_values(own)).without_covariances().scatter >= 0).all()


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


def test_rows_and_moments_are_left_as_they_were():
    X, y = table()
    a, b = of(X, y), of(X[:9], y[:9])
    before = [values.copy() for values in (X, a.mean, a.scatter)]
    assert (a + b).class_count.sum() == 69
    assert (a - b).class_count.sum() == 51
    for values, own in zip((X, a.mean, a.scatter), before, strict=True):
        assert np.array_equal(values, own)


def test_a_sum_of_moments_takes_no_more_than_the_moments():
    k, p = 400, 40
    X, y = np.random.default_rng(0).normal(size=(2 * k, p)), np.arange(2 * k) % k
    left, right = (of(X[part], y[part], classes=np.arange(k))
                   for part in (slice(k), slice(k, None)))
    tracemalloc.start()
    total = left + right
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * total.scatter.nbytes + 3 * 8 * (1 << 20)
