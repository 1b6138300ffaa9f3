"""Estimators as scikit-learn means them, and the inputs that people really pass."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import parametrize_with_checks

import textnb
from tests.bayes.samples import COUNT_MODELS, X, Y, every_count_model, matrices
from tests.oracles.scikit_learn import expected_failures
from textnb import BernoulliNB, CategoricalNB, DataError, MultinomialNB, NBLinear, TextClassifier
from textnb.models.histogram import HistogramDensity

EVERY_ESTIMATOR = [
    *(kind() for kind in COUNT_MODELS), NBLinear(), NBLinear(loss="log", power=1.0),
    # The checks pass fractions, and below 1/e these have no sublinear tf.
    *(textnb.TfidfComplementNB(tf="count", norm=norm) for norm in (False, True)),
    textnb.NBLogisticRegression(), textnb.LogCountRatio(), textnb.GaussianNB(),
    textnb.GaussianNB(shared_variance=True), textnb.LinearDiscriminantAnalysis(),
    textnb.QuadraticDiscriminantAnalysis(), textnb.RegularizedDiscriminantAnalysis(),
    textnb.NearestCentroid(), textnb.PlugInBayes(KernelDensity(bandwidth=1.0)),
    textnb.PlugInBayes(HistogramDensity(), naive=True), HistogramDensity()]


@pytest.mark.sweep(241)
@parametrize_with_checks(EVERY_ESTIMATOR, expected_failed_checks=expected_failures)
def test_scikit_learn_takes_it_for_an_estimator(estimator, check):
    check(estimator)


# What is wrong is named, and changes nothing


PRIORS = r"priors must match|class_prior must be"
WRONG = {
    "fractions as labels": ({}, {"y": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}, "Unknown label type"),
    "a label too few": ({}, {"y": Y[:-1]}, "inconsistent numbers of samples"),
    **{f"l={l!r}": ({"l": l}, {}, r"l must be a finite number >= 0.*got") for l in (
        -1e-300, -1.0, 1e101, np.nan, np.inf, -np.inf, "1", None, True, [1.0, 1.0, -1.0, 1.0],
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


@every_count_model
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


@every_count_model
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


@every_count_model
@matrices
def test_a_batch_that_does_not_fit_is_refused_and_changes_nothing(kind, matrix):
    model = kind().fit(matrix(X), Y)
    before = pickle.dumps(model)
    for wrong in (X[:, :3], np.hstack([X, X])):
        for call in (model.predict, lambda rows: model.partial_fit(rows, Y)):
            with pytest.raises(ValueError, match=f"X has {wrong.shape[1]} features.*expecting 4"):
                call(matrix(wrong))
    # A category that was not seen either: it must not be learned from a batch that is refused.
    more = np.array([[7, 0, 0, 0], [1, 0, 5, 0]])
    with pytest.raises(DataError, match=r"labels 'tofu' were not announced.*'eggs', 'ham', 'spam'"):
        model.partial_fit(matrix(more), ["ham", "tofu"])
    assert pickle.dumps(model) == before
    assert model.predict(matrix(X)).tolist() == pickle.loads(before).predict(X).tolist()


# Labels and settings


@every_count_model
def test_an_unseen_label_is_learned_once_it_is_announced(kind):
    model = kind().fit(X[:5], Y[:5]).partial_fit(X[5:], Y[5:], classes=["eggs"])
    whole = kind().fit(X, Y)
    assert model.classes_.tolist() == ["eggs", "ham", "spam"]
    assert model.statistics_.equals(whole.statistics_)
    assert np.array_equal(model.predict_joint_log_proba(X), whole.predict_joint_log_proba(X))
    with pytest.raises(DataError, match="labels 'ham', 'spam' were not announced"):
        kind().partial_fit(X[:5], Y[:5], classes=[])


@every_count_model
@pytest.mark.parametrize("labels", [
    [3, -1, 3, 7, 7, -1], [True, False, True, True, False, False], list("abcabc"),
    np.array(list("abcabc"), dtype=object), np.array([3, 1, 3, 7, 7, 1], dtype=np.uint8)],
    ids=["int", "bool", "str", "object", "uint8"])
def test_labels_keep_their_type(kind, labels):
    model = kind().fit(X, labels)
    assert model.classes_.dtype == np.asarray(labels).dtype
    assert model.predict(X).dtype == np.asarray(labels).dtype


@every_count_model
@pytest.mark.parametrize("l", [np.float64(0.5), np.array(0.5), [0.5] * 4, (0.5,) * 4,
                               np.full(4, 0.5, dtype=np.float32)], ids=repr)
def test_smoothing_may_be_any_number_or_sequence(kind, l):
    scores = kind(l=l).fit(X, Y).predict_joint_log_proba(X)
    np.testing.assert_allclose(scores, kind(l=0.5).fit(X, Y).predict_joint_log_proba(X),
                               rtol=1e-14)


def test_decisions_and_names_of_a_text_classifier():
    texts = ["cheap pills", "lunch at noon", "cheap offer", "noon office", "pills at noon"]
    model = TextClassifier().fit(texts, ["spam", "ham", "spam", "ham", "spam"])
    odds = model.decision_function(texts)
    np.testing.assert_allclose(odds, np.diff(model.predict_log_proba(texts), axis=1)[:, 0])
    assert ((odds > 0) == (model.predict(texts) == "spam")).all()
    assert model.get_feature_names_out().dtype == object
    assert model.get_feature_names_out().tolist() == model.vocabulary_
    assert len(model.vocabulary_) == model.transform(texts).shape[1]
    three = TextClassifier().fit(["aa", "bb", "cc"], ["x", "y", "z"])
    assert three.decision_function(["aa bb"]).shape == (1, 3)


# Presence


def stored_twice(dtype, value):
    """Row 0 is (2 value, 1), its first cell stored as two entries; row 1 is (0, 1)."""
    return sp.csr_array((np.array([value, 1, value, 1], dtype=dtype), np.array([0, 1, 0, 1]),
                         np.array([0, 3, 4])), shape=(2, 2))


def test_bernoulli_without_a_threshold_needs_zeros_and_ones():
    present = (X > 0).astype(np.int64)
    model = BernoulliNB(binarize=None).fit(present, Y)
    assert model.statistics_.equals(BernoulliNB().fit(X, Y).statistics_)
    # The last is two stored ones, whose sum is 2.
    for known, labels, wrong in (*((present, Y, wrong) for wrong in (
            X, sp.csr_array(X), present * 0.5, -present)), (
            [[1, 1], [0, 1]], ["a", "b"], stored_twice(np.int64, 1))):
        model = BernoulliNB(binarize=None).fit(known, labels)
        for call in (lambda: BernoulliNB(binarize=None).fit(wrong, labels),  # noqa: B023
                     lambda: model.predict(wrong)):  # noqa: B023
            with pytest.raises(DataError, match="needs values 0 and 1"):
                call()


@matrices
def test_bernoulli_takes_what_is_not_above_the_threshold_for_absent(matrix):
    rows = np.array([[-3.0, 0.5], [1.5, 1.0], [2.0, 1.0001]])
    model = BernoulliNB(binarize=1.0).fit(matrix(rows), ["a", "a", "b"])
    assert model.feature_count_.tolist() == [[1, 0], [1, 1]]
    present = matrix(np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 9.0]]))
    assert np.array_equal(model.predict_joint_log_proba(matrix(rows)),
                          model.predict_joint_log_proba(present))


# How counts are stored


def read_only(rows):
    for array in (rows.data, rows.indices, rows.indptr) if sp.issparse(rows) else (rows,):
        array.flags.writeable = False
    return rows


@pytest.mark.parametrize("kind", [MultinomialNB, textnb.ComplementNB])
@matrices
@pytest.mark.parametrize("rows", [
    np.array([[2**62, 1], [2**62, 1], [1, 2]]), np.array([[2**63, 1], [3, 1], [1, 2]], np.uint64),
    np.array([[2**60, 1], [2**60, 1], [1, 2]])], ids=["sum", "value", "batches"])
def test_counts_beyond_64_bits_are_floats(kind, matrix, rows):
    y = ["a", "a", "b"]
    model, of_floats = (kind().fit(X, y) for X in (matrix(rows), matrix(rows.astype(float))))
    for _ in range(10):
        model.partial_fit(matrix(rows), y)
        of_floats.partial_fit(matrix(rows.astype(float)), y)
    assert model.statistics_.equals(of_floats.statistics_)
    assert (model.statistics_.values > 0).all()


# Of small integers, whose sums wrap.
LARGE = np.tile(np.array([[255, 255], [255, 0]], dtype=np.uint8), (300, 1))
STORED = {
    **{f"{matrix.__name__} of {dtype.__name__}":
       lambda matrix=matrix, dtype=dtype: matrix(X.astype(dtype))
       for dtype in (bool, np.uint8, np.int8, np.int32, np.int64, np.uint64, np.float32)
       for matrix in (np.array, sp.csr_array)},
    "csc_array": lambda: sp.csc_array(X), "csr_matrix": lambda: sp.csr_matrix(X),
    "Fortran": lambda: np.asfortranarray(X),
    **{f"array of {name}": lambda dtype=dtype: X.astype(dtype)
       for name, dtype in (("float16", np.float16), ("big-endian int32", ">i4"),
                           ("big-endian float64", ">f8"), ("little-endian float64", "<f8"))},
    "large": LARGE.copy, "large and sparse": lambda: sp.csr_array(LARGE),
    "unsorted": lambda: sp.csr_array(
        (np.array([1, 2, 3, 1]), np.array([3, 2, 0, 1]), np.array([0, 3, 4])), shape=(2, 4)),
    "a cell stored twice": lambda: stored_twice(np.int64, 1),
    "a cell stored twice, whose sum wraps": lambda: stored_twice(np.uint8, 128),
}


@every_count_model
@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("storage", STORED)
def test_counts_are_exact_however_they_are_stored_and_left_as_they_were(kind, storage, weighted):
    rows, same = read_only(STORED[storage]()), STORED[storage]()
    plain = same.astype(np.int64).toarray() if sp.issparse(same) else same.astype(np.int64)
    y = read_only(np.array([*"ab" * (len(plain) // 2)]))
    weight = read_only(np.arange(1.0, 1.0 + len(y)) / 2) if weighted else None
    model, whole = (
        kind().fit(counts, y, sample_weight=weight).partial_fit(counts, y, sample_weight=weight)
        for counts in (rows, plain))
    if not weighted:
        assert model.class_count_.dtype == model.feature_count_.dtype == np.int64
    assert model.statistics_.equals(whole.statistics_)
    np.testing.assert_allclose(model.predict_joint_log_proba(rows),
                               whole.predict_joint_log_proba(plain), rtol=1e-14)
    for name in ("data", "indices", "indptr") if sp.issparse(rows) else ():
        assert getattr(rows, name).tolist() == getattr(same, name).tolist()


@matrices
def test_totals_beyond_int32_are_exact_and_fractions_are_counted_as_they_are(matrix):
    rows = np.full((4, 2), 2**31 - 1, dtype=np.int32)
    model = MultinomialNB().fit(matrix(rows), ["a", "a", "a", "b"])
    assert model.feature_count_.tolist() == [[3 * (2**31 - 1)] * 2, [2**31 - 1] * 2]
    model = MultinomialNB().fit(matrix(np.array([[0.5, 1.0], [0.25, 0.0]])), ["a", "a"])
    assert model.feature_count_.dtype == np.float64
    assert model.feature_count_.tolist() == [[0.75, 1.0]]


@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB, CategoricalNB])
def test_a_stored_zero_is_no_occurrence(kind):
    rows = sp.csr_array((np.array([0, 1, 1, 0]), np.array([0, 1, 0, 1]), np.array([0, 2, 4])),
                        shape=(2, 2))
    model = kind(l=0).fit(rows, ["a", "b"])
    assert rows.nnz == 4
    assert model.statistics_.equals(kind(l=0).fit(rows.toarray(), ["a", "b"]).statistics_)
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
    # Far down, where rows are scored in blocks.
    wide = sp.csr_array(([2], ([550], [3])), shape=(600, 20_000))
    model = CategoricalNB().fit(sp.csr_array((2, 20_000), dtype=np.int64), ["a", "b"])
    with pytest.raises(DataError, match="row 550, feature 3: category 2 was not seen"):
        model.predict(wide)
    scores = CategoricalNB().fit(wide[[0, 550]], ["a", "b"]).predict_joint_log_proba(wide)
    assert np.flatnonzero((scores != scores[0]).any(axis=1)).tolist() == [550]


@matrices
@pytest.mark.parametrize("weighted", [False, True])
def test_categories_that_come_later_give_what_one_fit_gives(matrix, weighted):
    rng = np.random.default_rng(0)
    rows = np.sort(rng.integers(0, 6, size=(50, 5)), axis=0)
    y = rng.integers(0, 3, size=50)
    weight = np.where(np.arange(50) % 2, 0.5, 1.25) if weighted else np.ones(50, dtype=int)
    pieces = CategoricalNB(l=0.3)
    for start in range(0, 50, 9):
        piece = slice(start, start + 9)
        pieces.partial_fit(matrix(rows[piece]), y[piece], classes=[0, 1, 2],
                           sample_weight=weight[piece])
    whole = CategoricalNB(l=0.3).fit(matrix(rows), y, sample_weight=weight)
    assert pieces.n_categories_.tolist() == whole.n_categories_.tolist() == (
        rows.max(axis=0) + 1).tolist()
    assert pieces.statistics_.equals(whole.statistics_)
    assert np.array_equal(pieces.predict_joint_log_proba(rows), whole.predict_joint_log_proba(rows))
