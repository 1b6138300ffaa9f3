"""Estimators as scikit-learn means them, and the inputs that people really pass."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.oracles import categorical
from tests.oracles.scikit_learn import expected_failures
from textnb import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    DataError,
    MultinomialNB,
    ParameterError,
)
from textnb.bayes.counts import Counts

ESTIMATORS = [MultinomialNB, BernoulliNB, ComplementNB, CategoricalNB]
COUNTING = [MultinomialNB, BernoulliNB, ComplementNB]
every = pytest.mark.parametrize("kind", ESTIMATORS)
counting = pytest.mark.parametrize("kind", COUNTING)
matrices = pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array], ids=["dense", "sparse"])

X = np.array([[2, 0, 1, 0], [1, 0, 0, 2], [0, 1, 0, 0], [0, 3, 1, 0], [0, 2, 2, 1], [1, 1, 0, 1]])
Y = np.array(["ham", "ham", "ham", "spam", "spam", "eggs"])


@pytest.mark.sweep(60)
@parametrize_with_checks([kind() for kind in ESTIMATORS],
                         expected_failed_checks=expected_failures)
def test_scikit_learn_takes_it_for_an_estimator(estimator, check):
    check(estimator)


@every
def test_learned_and_scored_is_what_was_set(kind):
    model = kind(l=0.5, fit_prior=False, class_prior=[0.2, 0.3, 0.5])
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.set_params(l=2.0).l == 2.0
    assert model.l == 0.5
    model.fit(X, Y)
    assert model.get_params()["class_prior"] == [0.2, 0.3, 0.5]
    assert not hasattr(clone(model), "classes_")


@every
def test_a_pickled_model_scores_the_same_bits_and_learns_on(kind):
    model = kind(l=0.5).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    assert again.partial_fit(X, Y).statistics_.equals(model.partial_fit(X, Y).statistics_)


# Labels


@every
def test_partial_fit_needs_the_classes_first(kind):
    with pytest.raises(ParameterError, match="classes must be passed on the first call"):
        kind().partial_fit(X, Y)


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
def test_a_label_longer_than_those_before_is_learned_whole(kind):
    model = kind().partial_fit(X[:3], ["a", "a", "b"], classes=["a", "b"])
    model.partial_fit(X[3:], ["abc", "a", "abc"], classes=["abc"])
    assert model.classes_.tolist() == ["a", "abc", "b"]
    assert model.class_count_.tolist() == [3, 2, 1]


@every
@pytest.mark.parametrize("labels", [
    [3, -1, 3, 7, 7, -1], [True, False, True, True, False, False], list("abcabc"),
    np.array(list("abcabc"), dtype=object), np.array([3, 1, 3, 7, 7, 1], dtype=np.uint8)],
    ids=["int", "bool", "str", "object", "uint8"])
def test_labels_keep_their_type(kind, labels):
    model = kind().fit(X, labels)
    assert model.classes_.dtype == np.asarray(labels).dtype
    assert model.predict(X).dtype == np.asarray(labels).dtype


@every
def test_fractions_are_no_labels(kind):
    with pytest.raises(ValueError, match="Unknown label type"):
        kind().fit(X, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


# Settings


@every
@pytest.mark.parametrize("l", [-1e-300, -1.0, np.nan, np.inf, -np.inf, "1", None, True,
                               [1.0, 1.0, -1.0, 1.0], [1.0, np.nan, 1.0, 1.0]], ids=repr)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_smoothing_is_a_finite_number_of_zero_or_more(kind, l, method):
    model = kind(l=l)
    with pytest.raises(ParameterError, match=r"l must be a finite number >= 0.*got"):
        getattr(model, method)(X, Y, **({"classes": Y} if method == "partial_fit" else {}))
    assert not hasattr(model, "statistics_")


@every
@pytest.mark.parametrize("l", [[], [1.0], [1.0] * 3, [1.0] * 5, [[1.0] * 4]], ids=repr)
def test_smoothing_of_each_feature_has_one_value_per_feature(kind, l):
    with pytest.raises(ParameterError, match=r"l .*one value per feature \(4\); got shape"):
        kind(l=l).fit(X, Y)


@every
@pytest.mark.parametrize("l", [np.float64(0.5), np.array(0.5), [0.5] * 4, (0.5,) * 4,
                               np.full(4, 0.5, dtype=np.float32)], ids=repr)
def test_smoothing_may_be_any_number_or_sequence(kind, l):
    scores = kind(l=l).fit(X, Y).predict_joint_log_proba(X)
    np.testing.assert_allclose(scores, kind(l=0.5).fit(X, Y).predict_joint_log_proba(X),
                               rtol=1e-14)


@every
@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.2] * 4, [-0.1, 0.6, 0.5], [0, 0, 0],
                                   [np.nan, 0.5, 0.5], [np.inf, 0.5, 0.5]], ids=repr)
def test_given_priors_are_one_probability_per_class(kind, prior):
    model = kind(class_prior=prior)
    with pytest.raises(ParameterError, match=r"priors must match|class_prior must be"):
        model.fit(X, Y)
    assert not hasattr(model, "statistics_")


@pytest.mark.parametrize("binarize", [-0.5, np.nan, np.inf])
def test_presence_is_above_zero_or_more(binarize):
    with pytest.raises(ParameterError, match="binarize must be None or a finite number >= 0; got"):
        BernoulliNB(binarize=binarize).fit(X, Y)


@pytest.mark.parametrize("expected", [2.5, [4, 4, 4], [[4] * 4], "4"], ids=repr)
def test_categories_to_expect_are_ints_one_per_feature(expected):
    with pytest.raises(ParameterError, match="min_categories must be an int or 4 ints"):
        CategoricalNB(min_categories=expected).fit(X, Y)


# Values


@pytest.mark.parametrize("kind", [MultinomialNB, ComplementNB, CategoricalNB])
@matrices
def test_negative_counts_are_refused(kind, matrix):
    wrong = X.copy()
    wrong[2, 1] = -1
    with pytest.raises(ValueError, match=f"Negative values in data passed to {kind.__name__}"):
        kind().fit(matrix(wrong), Y)
    with pytest.raises(ValueError, match=f"Negative values in data passed to {kind.__name__}"):
        kind().fit(matrix(X), Y).predict(matrix(wrong))


@every
@matrices
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(kind, matrix, value):
    wrong = X.astype(np.float64)
    wrong[2, 1] = value
    for call in (lambda: kind().fit(matrix(wrong), Y),
                 lambda: kind().fit(matrix(X), Y).predict(matrix(wrong))):
        with pytest.raises(ValueError, match="contains NaN" if np.isnan(value) else "infinity"):
            call()


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


@every
def test_rows_and_labels_must_match(kind):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        kind().fit(X, Y[:-1])


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
def test_negative_weights_are_refused(kind, matrix):
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        kind().fit(matrix(X), Y, sample_weight=[1, 1, -1, 1, 1, 1])


@every
def test_weights_that_are_all_zero_are_refused(kind):
    model = kind()
    with pytest.raises(ValueError, match="zero"):
        model.fit(X, Y, sample_weight=np.zeros(6))
    assert not hasattr(model, "statistics_")
    model.fit(X, Y)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="zero"):
        model.partial_fit(X, Y, sample_weight=np.zeros(6))
    assert pickle.dumps(model) == before


@every
@pytest.mark.parametrize("weight", [[1, 1, np.nan, 1, 1, 1], [1, 1, np.inf, 1, 1, 1], [1.0] * 5])
def test_weights_are_finite_and_one_per_row(kind, weight):
    with pytest.raises(ValueError, match=r"sample_weight|Input"):
        kind().fit(X, Y, sample_weight=weight)


@every
@matrices
def test_a_whole_weight_is_a_repetition(kind, matrix):
    weight = np.array([1, 2, 1, 3, 1, 2])
    weighted = kind(l=0.5).fit(matrix(X), Y, sample_weight=weight)
    repeated = kind(l=0.5).fit(matrix(np.repeat(X, weight, axis=0)), np.repeat(Y, weight))
    assert np.array_equal(weighted.class_count_, repeated.class_count_)
    assert np.array_equal(weighted.feature_count_, repeated.feature_count_)
    assert weighted.feature_count_.dtype == np.float64
    assert np.array_equal(weighted.predict_joint_log_proba(X), repeated.predict_joint_log_proba(X))


@every
@matrices
def test_a_row_of_weight_zero_is_not_learned(kind, matrix):
    weighted = kind().fit(matrix(X), Y, sample_weight=[1, 1, 0, 1, 1, 1])
    kept = [0, 1, 3, 4, 5]
    without = kind().fit(matrix(X[kept]), Y[kept])
    assert np.array_equal(weighted.predict_joint_log_proba(X), without.predict_joint_log_proba(X))


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
def test_a_cell_that_is_stored_twice_is_one_cell(kind):
    rows = np.array([[2, 1], [0, 1]])
    model = kind().fit(stored_twice(np.int64, 1), ["a", "b"])
    whole = kind().fit(rows, ["a", "b"])
    assert model.statistics_.equals(whole.statistics_)
    np.testing.assert_allclose(whole.predict_joint_log_proba(stored_twice(np.int64, 1)),
                               whole.predict_joint_log_proba(rows), rtol=1e-14)


@every
def test_the_entries_of_a_cell_do_not_wrap_where_they_are_added(kind):
    rows = np.array([[256, 1], [0, 1]])
    model = kind().fit(stored_twice(np.uint8, 128), ["a", "b"])
    whole = kind().fit(rows, ["a", "b"])
    assert model.statistics_.equals(whole.statistics_)
    np.testing.assert_allclose(whole.predict_joint_log_proba(stored_twice(np.uint8, 128)),
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


@matrices
def test_an_unseen_category_is_named(matrix):
    model = CategoricalNB().fit(matrix(X), Y)
    rows = X.copy()
    rows[4, 1] = 9
    with pytest.raises(DataError, match=r"row 4, feature 1: category 9 was not seen in training, "
                                        r"which had 0 to 3; announce it with min_categories"):
        model.predict(matrix(rows))
    announced = CategoricalNB(min_categories=10).fit(matrix(X), Y)
    assert np.array_equal(
        announced.predict(matrix(rows))[:4], announced.predict(matrix(X))[:4])


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


@counting
def test_counts_made_elsewhere_give_the_same_weights(kind):
    rows = (X > 0).astype(np.int64)
    model = kind(l=0.5).fit(rows, Y)
    other = kind(l=0.5).fit_statistics(Counts.from_matrix(rows, Y))
    assert np.array_equal(other.predict_joint_log_proba(rows), model.predict_joint_log_proba(rows))
    assert other.n_features_in_ == 4
