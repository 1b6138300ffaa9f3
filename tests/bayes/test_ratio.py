"""Log-count ratios by hand, and the linear model on them."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from tests.bayes.samples import X, close, with_wide_indices
from textnb import LogCountRatio, NBLogisticRegression, TextClassifier, Tokenizer
from textnb.bayes.counts import Counts
from textnb.bayes.labels import Labels
from textnb.bayes.ratio import presence_statistics

binarized = pytest.mark.parametrize("binarize", [True, False])
TWO = np.array(["neg", "neg", "pos", "pos", "pos", "neg"])
THREE = np.array(["a", "b", "c", "a", "b", "c"])


def by_hand(rows, y, label, l, binarize):
    """r = log((p / |p|₁) / (q / |q|₁)), p = l + Σ f of the class, q = l + Σ f of all others."""
    p, q = [l] * rows.shape[1], [l] * rows.shape[1]
    for row, own in zip(rows.tolist(), y, strict=True):
        for t, count in enumerate(row):
            (p if own == label else q)[t] += float(count > 0) if binarize else count
    return [math.log((a / sum(p)) / (b / sum(q))) for a, b in zip(p, q, strict=True)]


@binarized
@pytest.mark.parametrize("l", [0.5, 1.0])
@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array, sp.csc_array],
                         ids=["dense", "csr", "csc"])
@pytest.mark.parametrize(("y", "positives"), [(TWO, ["pos"]), (THREE, list("abc"))],
                         ids=["two", "three"])
def test_ratios_equal_the_formula_of_the_paper(binarize, l, matrix, y, positives):
    model = LogCountRatio(l=l, binarize=binarize).fit(matrix(X), y)
    close(model.ratio_, [by_hand(X, y, label, l, binarize) for label in positives])
    features = (X > 0) if binarize else X
    close(model.transform(matrix(X)).toarray(), np.hstack([features * r for r in model.ratio_]))


def test_a_ratio_in_numbers():
    # p = 1 + (0, 1), q = 1 + (1, 0): (1/3) / (2/3) and (2/3) / (1/3).
    assert np.exp(LogCountRatio().fit([[2, 0], [0, 1]], ["neg", "pos"]).ratio_).tolist() == [
        pytest.approx([0.5, 2.0])]


def test_ratios_are_named():
    assert LogCountRatio().fit(X, TWO).get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    three = LogCountRatio().fit(X[:, :2], THREE)
    names = three.get_feature_names_out(["u", "v"]).tolist()
    assert names == ["u_a", "v_a", "u_b", "v_b", "u_c", "v_c"]
    assert three.transform(X[:, :2]).shape[1] == len(names)


def solver_for(loss, C):
    kind, settings = (LinearSVC, {}) if loss == "hinge" else (
        LogisticRegression, {"solver": "liblinear"})
    return kind(C=C, dual=True, tol=1e-4, max_iter=1000, random_state=0, **settings)


@pytest.mark.parametrize("loss", ["log", "hinge"])
@binarized
@pytest.mark.parametrize("C", [0.1, 1.0])
@pytest.mark.parametrize(("y", "positives"), [(TWO, ["pos"]), (THREE, list("abc"))],
                         ids=["two", "three"])
def test_scores_are_the_solver_s_on_scaled_features(loss, binarize, C, y, positives):
    features = ((X > 0) if binarize else X).astype(float)
    model = NBLogisticRegression(loss=loss, C=C, binarize=binarize, tol=1e-4, max_iter=1000)
    form, scores = model.fit(X, y).linear_form(), model.predict_joint_log_proba(X)
    for label in positives:
        r = np.array(by_hand(X, y, label, 1.0, binarize))
        solver = solver_for(loss, C).fit(features * r, y == label)
        k = model.classes_.tolist().index(label)
        close(scores[:, k], solver.decision_function(features * r), 1e-9)
        # In the original terms: w∘r.
        close(form.weights[:, k], solver.coef_[0] * r, 1e-9)
        close(form.intercept[k], solver.intercept_[0], 1e-9)
    close(features @ form.weights + form.intercept, scores, 1e-9)


def many(rows=300, terms=40, classes=3, seed=0):
    """Counts with few terms that differ between classes: no model separates all rows."""
    draw = np.random.default_rng(seed)
    y = draw.integers(classes, size=rows)
    mean = np.full((classes, terms), 0.5)
    for k in range(classes):
        mean[k, 3 * k:3 * k + 3] = 1.0
    return draw.poisson(mean[y]), np.array(["a", "b", "c", "d"])[y]


def test_a_solver_that_misses_the_tolerance_warns():
    # Here every warning is an error.
    rows, y = many()
    loose = NBLogisticRegression().fit(rows, y).n_iter_
    assert loose < NBLogisticRegression(tol=0.01).fit(rows, y).n_iter_ < 1000
    with pytest.warns(ConvergenceWarning, match="failed to converge"):
        NBLogisticRegression(tol=1e-9, max_iter=5).fit(rows, y)


def test_threads_do_not_change_the_bits():
    # All threads share the solver's generator of random numbers.
    counts, y = many(1500)
    rows = sp.csr_array(counts)

    def weights(seed):
        return NBLogisticRegression(random_state=seed).fit(rows, y).coef_

    alone = [weights(seed) for seed in range(4)]
    assert not np.array_equal(alone[0], alone[1])
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(weights, [0, 1, 2, 3] * 6))
    assert all(np.array_equal(coef, alone[i % 4]) for i, coef in enumerate(together))


@pytest.mark.parametrize("labels", [TWO, THREE, np.array([3, 1, 2, 2, 1, 3]),
                                    np.array([True, False] * 3)], ids=str)
def test_presence_statistics_equal_the_counts_of_a_matrix_of_ones(labels):
    ones = sp.csr_array((X > 0).astype(np.int8))
    expected = Counts.from_matrix(ones.astype(np.int64), labels)
    assert presence_statistics(ones, Labels.of_classes(labels)).equals(expected)


def test_two_classes_have_a_logistic_posterior():
    model = NBLogisticRegression().fit(X, TWO)
    w, b = model.linear_form().binary("pos")
    close(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-((X > 0) @ w + b))), 1e-9)
    assert not model.linear_form().weights[:, 0].any()
    close(model.coef_, [w])
    close(model.intercept_, [b])


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("beta", [0.0, 0.25, 1.0])
def test_beta_shrinks_weights_towards_their_mean_magnitude(y, beta):
    plain = NBLogisticRegression(beta=1.0).fit(X, y)
    shrunk = NBLogisticRegression(beta=beta).fit(X, y)
    for r, k in zip(plain.ratio_, [1] if y is TWO else range(3), strict=True):
        w, own = (model.linear_form().weights[:, k] / r for model in (plain, shrunk))
        close(own, (1 - beta) * np.abs(w).mean() + beta * w, 1e-9)
        if beta == 0.0:
            # Naive Bayes except for the scale: weights are proportional to the ratios.
            close(own, own[0], 1e-9)


def test_indices_of_64_bits():
    rows = sp.csr_array(X)
    wide = with_wide_indices(rows)
    assert wide.indices.dtype == np.int64
    one, other = (NBLogisticRegression().fit(counts, TWO).linear_form() for counts in (rows, wide))
    assert np.array_equal(one.weights, other.weights)


@pytest.mark.parametrize(("name", "settings", "min_accuracy"), [
    ("20newsgroups", {}, 0.845),
    ("imdb", {"min_df": 2, "tokenizer": Tokenizer(ngram_range=(1, 2))}, 0.910)])
def test_accuracy_on_the_official_split(corpus, name, settings, min_accuracy):
    frame = corpus(name).collect()
    model = TextClassifier(NBLogisticRegression(), **settings).fit(frame.filter(split="train"))
    assert model.score(frame.filter(split="test")) >= min_accuracy
