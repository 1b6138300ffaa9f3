"""SparseRows, which score without SciPy, give the same bits as SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from textnb.bayes.features import FeatureMap, Idf, Length, Presence, Sublinear
from textnb.bayes.forms import LinearForm
from textnb.bayes.sparse_rows import SparseRows
from textnb.runtime.native import KERNEL, load_compiled

LOADED = load_compiled(KERNEL).kernel
LOOPS = [None, *([] if LOADED is None else [LOADED.rows.add_weights])]
WIDTH = 12
MAPS = [(), (Presence(),), (Presence(1.0),), (Sublinear(), Length()),
        (Idf(np.linspace(0.0, 2.0, WIDTH)), Length()), (Length(),)]


def random_rows(seed, kind=np.int32, index=np.int32):
    """Rows of small counts, some of them empty; sorted, one entry per cell."""
    draw = np.random.default_rng(seed)
    dense = draw.poisson(0.4, (draw.integers(0, 9), WIDTH)) * draw.integers(0, 2, (1, WIDTH))
    rows = sp.csr_array(dense.astype(kind))
    rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
    return rows


def without_scipy(rows, loop):
    return SparseRows(rows.data, rows.indices, rows.indptr, rows.shape[1], loop)


def same(left, right):
    left, right = np.asarray(left), np.asarray(right)
    return left.shape == right.shape and left.dtype == right.dtype and (
        left.tobytes() == right.tobytes())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("classes", [1, 2, 3, 20])
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_products(loop, classes, kind, index):
    for seed in range(20):
        rows = random_rows(seed, kind, index)
        weights = np.random.default_rng(seed).normal(scale=30, size=(WIDTH, classes))
        weights[seed % WIDTH, 0] = -np.inf
        for layout in ("C", "F"):
            product = without_scipy(rows, loop) @ np.array(weights, order=layout)
            assert same(product, rows @ weights)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("steps", MAPS)
@given(seed=st.integers(0, 1 << 30))
def test_scores_of_every_feature_map(loop, steps, seed):
    rows = random_rows(seed)
    weights = np.random.default_rng(seed).normal(size=(WIDTH, 3))
    form = LinearForm(np.arange(3), weights, np.array([0.1, -np.inf, 0.3]),
                      features=FeatureMap(steps))
    own = without_scipy(rows, loop)
    assert same(form.scores(own), form.scores(rows))
    mapped, expected = form.used(own), form.used(rows)
    assert same(mapped.data, expected.data)
    assert mapped.indices.tolist() == expected.indices.tolist()
    assert mapped.indptr.tolist() == expected.indptr.tolist()
    assert same(mapped.sum(axis=1), expected.sum(axis=1))


@given(seed=st.integers(0, 1 << 30))
def test_selecting_rows(seed):
    rows = random_rows(seed)
    own, draw = without_scipy(rows, None), np.random.default_rng(seed)
    mask = draw.integers(0, 2, rows.shape[0]) == 1
    begin, end = sorted(draw.integers(0, rows.shape[0] + 2, 2).tolist())
    for selection in (mask, np.flatnonzero(mask), slice(begin, end), slice(end, begin)):
        actual, expected = own[selection].to_csr(), rows[selection]
        actual.check_format()
        assert actual.shape == expected.shape
        assert (actual.toarray() == expected.toarray()).all()


def test_unsupported_operations_raise_errors():
    rows = without_scipy(random_rows(1), None)
    with pytest.raises(ValueError, match="axis 1, not 0"):
        rows.sum(axis=0)
    with pytest.raises(ValueError, match="without a step"):
        rows[::2]
    for loop in LOOPS[1:]:
        with pytest.raises(ValueError, match="12 columns, and weights of 11"):
            without_scipy(random_rows(1), loop) @ np.zeros((11, 2))
