"""Log-count ratios by hand, and the linear model on them."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from textnb import LogCountRatio, NBLogisticRegression, TextClassifier, Tokenizer
from textnb.bayes.counts import Counts
from textnb.bayes.labels import Labels
from textnb.bayes.ratio import presence_statistics

X = np.array([[2, 0, 1, 0], [1, 0, 0, 2], [0, 1, 0, 0], [0, 3, 1, 0], [0, 2, 2, 1], [1, 1, 0, 1]])
TWO = np.array(["neg", "neg", "pos", "pos", "pos", "neg"])
THREE = np.array(["a", "b", "c", "a", "b", "c"])


def by_hand(rows, y, label, l, binarize):
    """r = log((p / |p|₁) / (q / |q|₁)), p = l + Σ f of the class, q = l + Σ f of all others."""
    p, q = [l] * rows.shape[1], [l] * rows.shape[1]
    for row, own in zip(rows.tolist(), y, strict=True):
        for t, count in enumerate(row):
            (p if own == label else q)[t] += float(count > 0) if binarize else count
    return [math.log((a / sum(p)) / (b / sum(q))) for a, b in zip(p, q, strict=True)]


@pytest.mark.parametrize("binarize", [True, False])
@pytest.mark.parametrize("l", [0.5, 1.0])
@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array, sp.csc_array],
                         ids=["dense", "csr", "csc"])
def test_ratios_are_those_of_the_paper(binarize, l, matrix):
    two = LogCountRatio(l=l, binarize=binarize).fit(matrix(X), TWO)
    np.testing.assert_allclose(two.ratio_, [by_hand(X, TWO, "pos", l, binarize)], rtol=1e-12)
    three = LogCountRatio(l=l, binarize=binarize).fit(matrix(X), THREE)
    np.testing.assert_allclose(
        three.ratio_, [by_hand(X, THREE, k, l, binarize) for k in "abc"], rtol=1e-12)
    used = (X > 0) if binarize else X
    np.testing.assert_allclose(two.transform(matrix(X)).toarray(), used * two.ratio_)
    np.testing.assert_allclose(three.transform(matrix(X)).toarray(),
                               np.concatenate([used * r for r in three.ratio_], axis=1))


def test_a_ratio_in_numbers():
    # p = 1 + (0, 1), q = 1 + (1, 0): (1/3) / (2/3) and (2/3) / (1/3).
    assert np.exp(LogCountRatio().fit([[2, 0], [0, 1]], ["neg", "pos"]).ratio_).tolist() == [
        pytest.approx([0.5, 2.0])]


def solver_for(loss, settings):
    if loss == "hinge":
        return LinearSVC(dual=True, max_iter=1000, random_state=0, **settings)
    return LogisticRegression(solver="liblinear", dual=True, max_iter=1000, random_state=0,
                              **settings)


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("binarize", [True, False])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_scores_are_the_solver_s_on_scaled_features(loss, binarize, C):
    used = ((X > 0) if binarize else X).astype(float)
    for y, positives in ((TWO, ["pos"]), (THREE, list("abc"))):
        model = NBLogisticRegression(loss=loss, C=C, binarize=binarize, tol=1e-4,
                                     max_iter=1000).fit(X, y)
        form = model.linear_form()
        for label in positives:
            r = np.array(by_hand(X, y, label, 1.0, binarize))
            solver = solver_for(loss, {"C": C, "tol": 1e-4}).fit(used * r, y == label)
            decision = solver.decision_function(used * r)
            k = model.classes_.tolist().index(label)
            np.testing.assert_allclose(
                model.predict_joint_log_proba(X)[:, k], decision, rtol=1e-9, atol=1e-12)
            # In the original terms: w∘r.
            np.testing.assert_allclose(form.weights[:, k], solver.coef_[0] * r, rtol=1e-9)
            np.testing.assert_allclose(form.intercept[k], solver.intercept_[0], rtol=1e-9)
        np.testing.assert_allclose(used @ form.weights + form.intercept,
                                   model.predict_joint_log_proba(X), rtol=1e-9, atol=1e-12)


def many(rows=300, terms=40, classes=3, seed=0):
    """Counts that classes share but for a few terms of their own: no model tells all apart."""
    draw = np.random.default_rng(seed)
    y = draw.integers(classes, size=rows)
    mean = np.full((classes, terms), 0.5)
    for k in range(classes):
        mean[k, 3 * k:3 * k + 3] = 1.0
    return draw.poisson(mean[y]), np.array(["a", "b", "c", "d"])[y]


@pytest.mark.parametrize("binarize", [True, False])
@pytest.mark.parametrize("C", [0.1, 1.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_small_tolerance_gives_the_optimum_of_logistic_regression(binarize, C, classes):
    rows, y = many(classes=classes)
    form = NBLogisticRegression(C=C, binarize=binarize, tol=1e-9, max_iter=100_000).fit(
        rows, y).linear_form()
    used = ((rows > 0) if binarize else rows).astype(float)
    for k, label in enumerate(form.classes.tolist()):
        if classes == 2 and k == 0:
            continue
        r = np.array(by_hand(rows, y, label, 1.0, binarize))
        # Newton's method on the primal. The intercept is a weight like all others, of a column of
        # ones: the solver draws it towards 0 too.
        extended = np.concatenate([used * r, np.ones((len(used), 1))], axis=1)
        optimum = LogisticRegression(C=C, solver="newton-cholesky", fit_intercept=False, tol=1e-12,
                                     max_iter=1000).fit(extended, y == label).coef_[0]
        np.testing.assert_allclose(form.weights[:, k], optimum[:-1] * r, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(form.intercept[k], optimum[-1], rtol=1e-6, atol=1e-8)


def test_a_small_tolerance_gives_the_optimum_of_the_squared_hinge():
    rows, y = many(classes=2)
    r = np.array(by_hand(rows, y, "b", 1.0, True))
    extended = np.concatenate([(rows > 0) * r, np.ones((len(rows), 1))], axis=1)
    sign = np.where(y == "b", 1.0, -1.0)

    def objective(w):
        short = np.maximum(0.0, 1.0 - sign * (extended @ w))
        return 0.5 * w @ w + short @ short, w - 2.0 * (sign * short) @ extended

    optimum = minimize(objective, np.zeros(extended.shape[1]), jac=True, method="L-BFGS-B",
                       options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000}).x
    w, b = NBLogisticRegression(loss="hinge", tol=1e-10, max_iter=100_000).fit(
        rows, y).linear_form().binary("b")
    np.testing.assert_allclose(w, optimum[:-1] * r, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(b, optimum[-1], rtol=1e-5, atol=1e-7)


def test_a_tolerance_that_was_missed_is_told():
    # Here every warning is an error.
    rows, y = many()
    loose = NBLogisticRegression().fit(rows, y).n_iter_
    assert loose < NBLogisticRegression(tol=0.01).fit(rows, y).n_iter_ < 1000
    with pytest.warns(ConvergenceWarning, match="failed to converge"):
        NBLogisticRegression(tol=1e-9, max_iter=5).fit(rows, y)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_each_tolerance_comes_nearer_to_the_optimum(loss):
    rows, y = many()
    best = NBLogisticRegression(loss=loss, tol=1e-9, max_iter=100_000).fit(rows, y).coef_
    away = [np.abs(NBLogisticRegression(loss=loss, tol=tol).fit(rows, y).coef_ - best).max()
            for tol in (2.0, 0.2, 0.02, 0.002)]
    assert away == sorted(away, reverse=True)
    assert away[-1] < 0.05 * away[0]


def test_threads_do_not_change_the_bits():
    # The solver's generator of random numbers is one for the whole process.
    counts, y = many(1500)
    rows = sp.csr_array(counts)

    def weights(seed):
        return NBLogisticRegression(random_state=seed).fit(rows, y).coef_

    alone = [weights(seed) for seed in range(4)]
    assert not np.array_equal(alone[0], alone[1])
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(weights, [0, 1, 2, 3] * 6))
    assert all(np.array_equal(found, alone[i % 4]) for i, found in enumerate(together))


@pytest.mark.parametrize("labels", [TWO, THREE, np.array([3, 1, 2, 2, 1, 3]),
                                    np.array([True, False] * 3)], ids=str)
def test_ones_are_counted_as_counts_are(labels):
    ones = sp.csr_array((X > 0).astype(np.int8))
    counted = Counts.from_matrix(ones.astype(np.int64), labels)
    assert presence_statistics(ones, Labels.of_classes(labels)).equals(counted)


def test_two_classes_have_a_logistic_posterior():
    model = NBLogisticRegression().fit(X, TWO)
    w, b = model.linear_form().binary("pos")
    np.testing.assert_allclose(model.predict_proba(X)[:, 1],
                               1 / (1 + np.exp(-((X > 0) @ w + b))), rtol=1e-9)
    assert not model.linear_form().weights[:, 0].any()
    np.testing.assert_allclose(model.coef_, [w])
    np.testing.assert_allclose(model.intercept_, [b])


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("beta", [0.0, 0.25, 1.0])
def test_weights_are_drawn_towards_their_mean_magnitude(y, beta):
    plain = NBLogisticRegression(beta=1.0).fit(X, y)
    drawn = NBLogisticRegression(beta=beta).fit(X, y)
    for i, r in enumerate(plain.ratio_):
        k = 1 if len(plain.ratio_) == 1 else i
        w = plain.linear_form().weights[:, k] / r
        expected = ((1 - beta) * np.abs(w).mean() + beta * w) * r
        np.testing.assert_allclose(drawn.linear_form().weights[:, k], expected, rtol=1e-9)
    if beta == 0.0:
        # Naive Bayes in all but scale: weights are proportional to the ratios.
        share = drawn.linear_form().weights[:, 1] / drawn.ratio_[-1 if len(plain.ratio_) == 1
                                                                 else 1]
        np.testing.assert_allclose(share, share[0], rtol=1e-9)


def test_indices_of_64_bits():
    rows = sp.csr_array(X)
    wide = sp.csr_array((rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)),
                        shape=rows.shape)
    assert wide.indices.dtype == np.int64
    one, other = (NBLogisticRegression().fit(counts, TWO).linear_form() for counts in (rows, wide))
    assert np.array_equal(one.weights, other.weights)


def test_newsgroups_by_date(corpus):
    frame = corpus("20newsgroups").collect()
    model = TextClassifier(NBLogisticRegression()).fit(frame.filter(split="train"))
    assert model.score(frame.filter(split="test")) >= 0.845


def test_reviews_by_words_and_pairs(corpus):
    frame = corpus("imdb").collect()
    model = TextClassifier(NBLogisticRegression(), min_df=2,
                           tokenizer=Tokenizer(ngram_range=(1, 2)))
    model.fit(frame.filter(split="train"))
    assert model.score(frame.filter(split="test")) >= 0.910
