"""Estimators as scikit-learn means them, and the inputs that people really pass."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.oracles import categorical
from tests.oracles.scikit_learn import expected_failures
from textnb import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    DataError,
    GaussianNB,
    LinearDiscriminantAnalysis,
    LogCountRatio,
    MultinomialNB,
    NBLinear,
    NBLogisticRegression,
    NearestCentroid,
    ParameterError,
    PlugInBayes,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    TfidfComplementNB,
)
from textnb.models.histogram import HistogramDensity

ESTIMATORS = [MultinomialNB, BernoulliNB, ComplementNB, CategoricalNB]
every = pytest.mark.parametrize("kind", ESTIMATORS)
matrices = pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array], ids=["dense", "sparse"])

X = np.array([[2, 0, 1, 0], [1, 0, 0, 2], [0, 1, 0, 0], [0, 3, 1, 0], [0, 2, 2, 1], [1, 1, 0, 1]])
Y = np.array(["ham", "ham", "ham", "spam", "spam", "eggs"])


EVERY_ESTIMATOR = [
    *(kind() for kind in ESTIMATORS), NBLinear(), NBLinear(loss="log", power=1.0),
    # The checks pass fractions, and below 1/e these have no sublinear tf.
    TfidfComplementNB(tf="count"), TfidfComplementNB(tf="count", norm=True), NBLogisticRegression(),
    LogCountRatio(), GaussianNB(), GaussianNB(shared_variance=True), LinearDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(), RegularizedDiscriminantAnalysis(), NearestCentroid(),
    PlugInBayes(KernelDensity(bandwidth=1.0)), PlugInBayes(HistogramDensity(), naive=True),
    HistogramDensity()]


@pytest.mark.sweep(241)
@parametrize_with_checks(EVERY_ESTIMATOR, expected_failed_checks=expected_failures)
def test_scikit_learn_takes_it_for_an_estimator(estimator, check):
    check(estimator)


# Refusals


PRIORS = r"priors must match|class_prior must be"
WRONG = {
    "fractions as labels": ({}, {"y": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}, "Unknown label type"),
    "a label too few": ({}, {"y": Y[:-1]}, "inconsistent numbers of samples"),
    **{f"l={l!r}": ({"l": l}, {}, r"l must be a finite number >= 0.*got") for l in (
        -1e-300, -1.0, np.nan, np.inf, -np.inf, "1", None, True, [1.0, 1.0, -1.0, 1.0],
        [1.0, np.nan, 1.0, 1.0])},
    **{f"l={l!r}": ({"l": l}, {}, r"l .*one value per feature \(4\); got shape") for l in (
        [], [1.0], [1.0] * 3, [1.0] * 5, [[1.0] * 4])},
    **{f"class_prior={prior}": ({"class_prior": prior}, {}, PRIORS) for prior in (
        [0.5, 0.5], [0.2] * 4, [-0.1, 0.6, 0.5], [0, 0, 0], [np.nan, 0.5, 0.5],
        [np.inf, 0.5, 0.5])},
    "a weight below 0": ({}, {"sample_weight": [1, 1, -1, 1, 1, 1]}, r"[Nn]egative"),
    "no weight above 0": ({}, {"sample_weight": np.zeros(6)}, "zero"),
    "a weight of NaN": ({}, {"sample_weight": [1, 1, np.nan, 1, 1, 1]}, r"sample_weight|Input"),
    "an infinite weight": ({}, {"sample_weight": [1, 1, np.inf, 1, 1, 1]}, r"sample_weight|Input"),
    "a weight too few": ({}, {"sample_weight": [1.0] * 5}, r"sample_weight|Input"),
}


@every
@matrices
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_and_nothing_is_learned(kind, matrix, method, case):
    settings, arguments, message = WRONG[case]
    arguments = {"X": matrix(X), "y": Y, **arguments}
    if method == "partial_fit":
        arguments["classes"] = arguments["y"]
    model = kind(**settings)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(**arguments)
    assert not hasattr(model, "statistics_")
    if not settings and method == "partial_fit" and "label" not in case:
        model.fit(X, Y)
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=message):
            model.partial_fit(**arguments)
        assert pickle.dumps(model) == before


@every
def test_partial_fit_needs_the_classes_first(kind):
    with pytest.raises(ParameterError, match="classes must be passed on the first call"):
        kind().partial_fit(X, Y)


@pytest.mark.parametrize(("model", "message"), [
    *((BernoulliNB(binarize=value), "binarize must be None or a finite number >= 0; got")
      for value in (-0.5, np.nan, np.inf)),
    *((CategoricalNB(min_categories=expected), "min_categories must be an int or 4 ints")
      for expected in (2.5, [4, 4, 4], [[4] * 4], "4"))], ids=repr)
def test_settings_of_one_model_are_named(model, message):
    with pytest.raises(ParameterError, match=message):
        model.fit(X, Y)


@every
@matrices
@pytest.mark.parametrize(("value", "message"), [
    (-1, "Negative values in data passed to"), (np.nan, "contains NaN"), (np.inf, "infinity"),
    (-np.inf, "infinity")])
def test_values_that_are_no_counts_are_refused(kind, matrix, value, message):
    if kind is BernoulliNB and value == -1:
        pytest.skip("what is not above its threshold is absent")
    wrong = X.astype(np.float64)
    wrong[2, 1] = value
    for call in (lambda: kind().fit(matrix(wrong), Y),
                 lambda: kind().fit(matrix(X), Y).predict(matrix(wrong))):
        with pytest.raises(ValueError, match=message):
            call()


# Labels


@every
@matrices
def test_an_unseen_label_is_refused_and_changes_nothing(kind, matrix):
    model = kind().fit(matrix(X), Y)
    before = pickle.dumps(model)
    # A category that was not seen either: it must not be learned from a batch that is refused.
    more = np.array([[7, 0, 0, 0], [1, 0, 5, 0]])
    with pytest.raises(DataError, match=r"labels 'tofu' were not announced.*'eggs', 'ham', 'spam'"):
        model.partial_fit(matrix(more), ["ham", "tofu"])
    assert pickle.dumps(model) == before
    assert model.predict(matrix(X)).tolist() == pickle.loads(before).predict(X).tolist()


@every
def test_an_unseen_label_is_learned_once_it_is_announced(kind):
    model = kind().fit(X[:5], Y[:5]).partial_fit(X[5:], Y[5:], classes=["eggs"])
    whole = kind().fit(X, Y)
    assert model.classes_.tolist() == ["eggs", "ham", "spam"]
    assert model.statistics_.equals(whole.statistics_)
    assert np.array_equal(model.predict_joint_log_proba(X), whole.predict_joint_log_proba(X))


@every
@pytest.mark.parametrize("labels", [
    [3, -1, 3, 7, 7, -1], [True, False, True, True, False, False], list("abcabc"),
    np.array(list("abcabc"), dtype=object), np.array([3, 1, 3, 7, 7, 1], dtype=np.uint8)],
    ids=["int", "bool", "str", "object", "uint8"])
def test_labels_keep_their_type(kind, labels):
    model = kind().fit(X, labels)
    assert model.classes_.dtype == np.asarray(labels).dtype
    assert model.predict(X).dtype == np.asarray(labels).dtype


# Settings


@every
@pytest.mark.parametrize("l", [np.float64(0.5), np.array(0.5), [0.5] * 4, (0.5,) * 4,
                               np.full(4, 0.5, dtype=np.float32)], ids=repr)
def test_smoothing_may_be_any_number_or_sequence(kind, l):
    scores = kind(l=l).fit(X, Y).predict_joint_log_proba(X)
    np.testing.assert_allclose(scores, kind(l=0.5).fit(X, Y).predict_joint_log_proba(X),
                               rtol=1e-14)


@pytest.mark.parametrize(("expected", "category"), [(2**40, 1), (2**62, 1), (None, 2**40)])
def test_categories_beyond_memory_are_refused_before_it_is_taken(expected, category):
    with pytest.raises(DataError, match=r"counts and weights of all categories .* MiB at least"):
        CategoricalNB(min_categories=expected).fit([[0, 1], [1, category]], ["a", "b"])


# Values


@every
@matrices
def test_other_widths_are_refused(kind, matrix):
    model = kind().fit(matrix(X), Y)
    before = pickle.dumps(model)
    for wrong in (X[:, :3], np.hstack([X, X])):
        with pytest.raises(ValueError, match=f"X has {wrong.shape[1]} features.*expecting 4"):
            model.predict(matrix(wrong))
        with pytest.raises(ValueError, match=f"X has {wrong.shape[1]} features.*expecting 4"):
            model.partial_fit(matrix(wrong), Y)
    assert pickle.dumps(model) == before


def test_bernoulli_without_a_threshold_needs_zeros_and_ones():
    present = (X > 0).astype(np.int64)
    model = BernoulliNB(binarize=None).fit(present, Y)
    assert model.statistics_.equals(BernoulliNB().fit(X, Y).statistics_)
    for wrong in (X, sp.csr_array(X), present * 0.5, -present):
        with pytest.raises(DataError, match="needs values 0 and 1"):
            BernoulliNB(binarize=None).fit(wrong, Y)
        with pytest.raises(DataError, match="needs values 0 and 1"):
            model.predict(wrong)


@matrices
def test_bernoulli_takes_what_is_not_above_the_threshold_for_absent(matrix):
    rows = np.array([[-3.0, 0.5], [1.5, 1.0], [2.0, 1.0001]])
    model = BernoulliNB(binarize=1.0).fit(matrix(rows), ["a", "a", "b"])
    assert model.feature_count_.tolist() == [[1, 0], [1, 1]]
    present = matrix(np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 9.0]]))
    assert np.array_equal(model.predict_joint_log_proba(matrix(rows)),
                          model.predict_joint_log_proba(present))


# Sample weights


@every
@matrices
def test_a_whole_weight_is_a_repetition_and_a_weight_of_zero_no_row(kind, matrix):
    weight = np.array([1, 2, 0, 3, 1, 2])
    weighted = kind(l=0.5).fit(matrix(X), Y, sample_weight=weight)
    repeated = kind(l=0.5).fit(matrix(np.repeat(X, weight, axis=0)), np.repeat(Y, weight))
    assert np.array_equal(weighted.class_count_, repeated.class_count_)
    assert np.array_equal(weighted.feature_count_, repeated.feature_count_)
    assert weighted.feature_count_.dtype == np.float64
    assert np.array_equal(weighted.predict_joint_log_proba(X), repeated.predict_joint_log_proba(X))


@pytest.mark.parametrize("parts", [1, 4, 37])
@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB, ComplementNB])
def test_weighted_parts_and_their_order_change_rounding_alone(kind, parts):
    rng = np.random.default_rng(5)
    rows = sp.csr_array(rng.poisson(0.3, size=(3000, 200)))
    y = np.array(["a", "b", "c"])[rng.choice(3, p=[0.7, 0.2, 0.1], size=3000)]
    weight = rng.lognormal(0.0, 3.0, size=3000)
    whole, model = kind(l=0.1).fit(rows, y, sample_weight=weight), kind(l=0.1)
    for part in np.array_split(np.random.default_rng(parts).permutation(3000), parts):
        model.partial_fit(rows[part], y[part], classes=["a", "b", "c"], sample_weight=weight[part])
    for name in ("feature_log_prob_", "class_log_prior_"):
        np.testing.assert_allclose(
            getattr(model, name), getattr(whole, name), rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.feature_count_, whole.feature_count_, rtol=1e-12)


# Storage


@every
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int32, np.uint64, np.float32])
@matrices
def test_counts_are_int64_whatever_held_them(kind, dtype, matrix):
    rows = X.astype(dtype)
    model = kind().fit(matrix(rows), Y)
    whole = kind().fit(rows.astype(np.int64), Y)
    assert model.class_count_.dtype == model.feature_count_.dtype == np.int64
    assert model.statistics_.equals(whole.statistics_)
    assert np.array_equal(model.predict_joint_log_proba(matrix(rows)),
                          whole.predict_joint_log_proba(rows.astype(np.int64)))


def test_fractions_are_counted_as_they_are():
    model = MultinomialNB().fit([[0.5, 1.0], [0.25, 0.0]], ["a", "a"])
    assert model.feature_count_.dtype == np.float64
    assert model.feature_count_.tolist() == [[0.75, 1.0]]


@every
@matrices
def test_small_integers_do_not_wrap(kind, matrix):
    rows = np.array([[255, 255], [255, 0]], dtype=np.uint8)
    many, labels = np.tile(rows, (300, 1)), ["a", "b"] * 300
    model = kind().fit(matrix(many), labels)
    large = kind().fit(many.astype(np.int64), labels)
    assert model.statistics_.equals(large.statistics_)
    assert np.array_equal(model.predict_joint_log_proba(matrix(rows)),
                          large.predict_joint_log_proba(rows.astype(np.int64)))


@matrices
def test_totals_beyond_int32_are_exact(matrix):
    rows = np.full((4, 2), 2**31 - 1, dtype=np.int32)
    model = MultinomialNB().fit(matrix(rows), ["a", "a", "a", "b"])
    assert model.feature_count_.tolist() == [[3 * (2**31 - 1)] * 2, [2**31 - 1] * 2]


def stored_twice(dtype, value):
    """Row 0 is (2 value, 1), its first cell stored as two entries; row 1 is (0, 1)."""
    return sp.csr_array((np.array([value, 1, value, 1], dtype=dtype), np.array([0, 1, 0, 1]),
                         np.array([0, 3, 4])), shape=(2, 2))


@every
@pytest.mark.parametrize(("dtype", "value"), [(np.int64, 1), (np.uint8, 128)])
def test_a_cell_that_is_stored_twice_is_one_cell_that_does_not_wrap(kind, dtype, value):
    stored, rows = stored_twice(dtype, value), np.array([[2 * value, 1], [0, 1]])
    model, whole = kind().fit(stored, ["a", "b"]), kind().fit(rows, ["a", "b"])
    assert model.statistics_.equals(whole.statistics_)
    np.testing.assert_allclose(whole.predict_joint_log_proba(stored_twice(dtype, value)),
                               whole.predict_joint_log_proba(rows), rtol=1e-14)


def test_two_stored_ones_are_not_zero_or_one():
    with pytest.raises(DataError, match="needs values 0 and 1"):
        BernoulliNB(binarize=None).fit(stored_twice(np.int64, 1), ["a", "b"])
    model = BernoulliNB(binarize=None).fit([[1, 1], [0, 1]], ["a", "b"])
    with pytest.raises(DataError, match="needs values 0 and 1"):
        model.predict(stored_twice(np.int64, 1))


def unsorted():
    """[[3, 0, 2, 1], [0, 1, 0, 0]], its first row stored from right to left."""
    return sp.csr_array((np.array([1, 2, 3, 1]), np.array([3, 2, 0, 1]), np.array([0, 3, 4])),
                        shape=(2, 4))


@every
@pytest.mark.parametrize("make", [unsorted, lambda: stored_twice(np.int64, 1)],
                         ids=["unsorted", "duplicates"])
@pytest.mark.parametrize("weight", [None, [0.5, 1.5]], ids=["plain", "weighted"])
def test_the_matrix_that_was_passed_is_left_as_it_was(kind, make, weight):
    rows = make()
    model = kind().fit(rows, ["a", "b"], sample_weight=weight)
    model.partial_fit(rows, ["a", "b"], sample_weight=weight)
    model.predict_proba(rows)
    untouched = make()
    assert rows.data.tolist() == untouched.data.tolist()
    assert rows.indices.tolist() == untouched.indices.tolist()
    assert rows.indptr.tolist() == untouched.indptr.tolist()


def read_only(rows):
    for array in (rows.data, rows.indices, rows.indptr) if sp.issparse(rows) else (rows,):
        array.flags.writeable = False
    return rows


@every
@pytest.mark.parametrize("make", [
    unsorted, lambda: stored_twice(np.int64, 1), lambda: sp.csr_array(X), lambda: sp.csc_array(X),
    lambda: sp.csr_matrix(X), X.copy, lambda: np.asfortranarray(X)],
    ids=["unsorted", "duplicates", "csr", "csc", "csr_matrix", "dense", "Fortran"])
def test_read_only_arrays_are_read(kind, make):
    rows, own = read_only(make()), make()
    y = read_only(np.array(["a", "b", "a", "b", "a", "b"][:rows.shape[0]]))
    weight = read_only(np.arange(1.0, 1.0 + rows.shape[0]))
    model = kind().fit(rows, y).partial_fit(rows, y, sample_weight=weight)
    whole = kind().fit(own.toarray() if sp.issparse(own) else own, y)
    whole.partial_fit(own.toarray() if sp.issparse(own) else own, y, sample_weight=weight)
    assert np.array_equal(model.predict_joint_log_proba(rows), whole.predict_joint_log_proba(own))


@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB, CategoricalNB])
def test_a_stored_zero_is_no_occurrence(kind):
    rows = sp.csr_array((np.array([0, 1, 1, 0]), np.array([0, 1, 0, 1]), np.array([0, 2, 4])),
                        shape=(2, 2))
    model = kind(l=0).fit(rows, ["a", "b"])
    dense = kind(l=0).fit(rows.toarray(), ["a", "b"])
    assert rows.nnz == 4
    assert model.statistics_.equals(dense.statistics_)
    # A term that a class never had weighs -inf there: 0 times it must still be 0.
    assert np.array_equal(model.predict_joint_log_proba(rows), [[np.log(0.5), -np.inf],
                                                                [-np.inf, np.log(0.5)]])
    assert model.predict(rows).tolist() == model.predict(rows.toarray()).tolist() == ["a", "b"]


# Categories


def test_an_unseen_category_is_named():
    model, rows = CategoricalNB().fit(X, Y), X.copy()
    rows[4, 1] = 9
    for matrix in (rows, sp.csr_array(rows)):
        with pytest.raises(DataError, match=(
                "row 4, feature 1: category 9 was not seen in training, which had 0 to 3; "
                "announce it with min_categories")):
            model.predict(matrix)
    announced = CategoricalNB(min_categories=10).fit(X, Y)
    assert np.array_equal(announced.predict(rows)[:4], announced.predict(X)[:4])


def test_a_row_far_down_is_named_by_its_own_number():
    wide = sp.csr_array((600, 20_000), dtype=np.int64).tolil()
    wide[550, 3] = 2
    model = CategoricalNB().fit(sp.csr_array((2, 20_000), dtype=np.int64), ["a", "b"])
    with pytest.raises(DataError, match="row 550, feature 3: category 2 was not seen"):
        model.predict(wide.tocsr())


@matrices
@pytest.mark.parametrize("weighted", [False, True])
def test_categories_that_come_later_give_what_one_fit_gives(matrix, weighted):
    rng = np.random.default_rng(0)
    rows = np.sort(rng.integers(0, 6, size=(50, 5)), axis=0)
    y = rng.integers(0, 3, size=50)
    weight = np.where(np.arange(50) % 2, 0.5, 1.25) if weighted else None
    pieces = CategoricalNB(l=0.3)
    for start in range(0, 50, 9):
        piece = slice(start, start + 9)
        pieces.partial_fit(matrix(rows[piece]), y[piece], classes=[0, 1, 2],
                           sample_weight=None if weight is None else weight[piece])
    whole = CategoricalNB(l=0.3).fit(matrix(rows), y, sample_weight=weight)
    assert pieces.n_categories_.tolist() == whole.n_categories_.tolist() == (
        rows.max(axis=0) + 1).tolist()
    assert pieces.statistics_.equals(whole.statistics_)
    assert np.array_equal(pieces.predict_joint_log_proba(rows), whole.predict_joint_log_proba(rows))


@pytest.mark.parametrize("l", [0.0, 1e-10, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_categories_are_dense_categories(l, weighted):
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 4, size=(80, 6))
    rows[:, 1] += 1
    y = rng.integers(0, 3, size=80)
    weight = 0.1 * (1 + np.arange(80) % 7) if weighted else None
    dense = CategoricalNB(l=l).fit(rows, y, sample_weight=weight)
    sparse = CategoricalNB(l=l).fit(sp.csr_array(rows), y, sample_weight=weight)
    np.testing.assert_allclose(sparse.feature_count_, dense.feature_count_, rtol=1e-13, atol=0)
    np.testing.assert_allclose(
        sparse.predict_joint_log_proba(sp.csr_array(rows)), dense.predict_joint_log_proba(rows),
        rtol=1e-13)
    sizes = (rows.max(axis=0) + 1).tolist()
    expected = [categorical.scores(rows.tolist(), y.tolist(), row, l, sizes,
                                   None if weight is None else weight.tolist())
                for row in rows[:10].tolist()]
    np.testing.assert_allclose(dense.predict_joint_log_proba(rows[:10]), expected, rtol=1e-12)
    if not weighted:
        assert sparse.statistics_.equals(dense.statistics_)


def test_a_sparse_category_that_a_class_never_had_counts_exactly_zero():
    rng = np.random.default_rng(0)
    rows, y, weight = rng.integers(1, 3, size=(40, 20)), np.arange(40) % 2, rng.random(40)
    model = CategoricalNB(l=0).fit(sp.csr_array(rows), y, sample_weight=weight)
    for counts in model.category_count_:
        assert counts[:, 0].tolist() == [0.0, 0.0]


# Statistics from elsewhere
