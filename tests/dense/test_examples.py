"""Worked examples, the arithmetic stated."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA

from tests.oracles import gaussian
from textnb import GaussianNB, LinearForm, QuadraticDiscriminantAnalysis
from textnb.bayes.features import IDENTITY, Center, FeatureMap


@pytest.fixture
def three():
    """δ1 = x1 + 2 x2 + 1, δ2 = 2 x1 - x2 + 2, δ3 = -x1 + 2 x2 + 1."""
    return LinearForm(np.array([1, 2, 3]), np.array([[1.0, 2.0, -1.0], [2.0, -1.0, 2.0]]),
                      np.array([1.0, 2.0, 1.0]), features=FeatureMap((Center(np.zeros(2)),)))


def test_three_discriminants_at_a_point(three):
    # δ1 = 1 + 2 + 1, δ2 = 2 - 1 + 2, δ3 = -1 + 2 + 1. Published tables of this example have a slip
    # in δ3; by its definition it is 2.
    assert three.scores(np.array([[1.0, 1.0]])).tolist() == [[4.0, 3.0, 2.0]]
    assert three.classes[three.scores(np.array([[1.0, 1.0]])).argmax()] == 1


@pytest.mark.parametrize(("a", "b", "w", "c", "at_one"), [
    (1, 2, [-1.0, 3.0], -1.0, 1.0),  # 4 - 3
    (1, 3, [2.0, 0.0], 0.0, 2.0),    # 4 - 2
    (2, 3, [3.0, -3.0], 1.0, 1.0),   # 3 - 2
    (3, 1, [-2.0, 0.0], 0.0, -2.0),
])
def test_pairwise_discriminants_have_the_signs_of_their_definition(three, a, b, w, c, at_one):
    weights, intercept = three.pairwise(a, b)
    assert (weights.tolist(), intercept) == (w, c)
    assert weights @ np.ones(2) + intercept == at_one


@pytest.mark.parametrize("center", [None, np.array([0.5, -2.0]), np.array([1e3, 1e3])])
def test_a_center_changes_no_score_once_it_is_folded_in(three, center):
    shift = np.zeros(2) if center is None else center
    moved = LinearForm(three.classes, three.weights, three.intercept + shift @ three.weights,
                       features=IDENTITY if center is None else FeatureMap((Center(center),)))
    x = np.array([[1.0, 1.0], [-3.0, 0.25]])
    assert np.allclose(moved.scores(x), three.scores(x), rtol=1e-12)
    assert np.allclose(moved.uncentered().scores(x), three.scores(x), rtol=1e-12)
    assert moved.pairwise(1, 2)[1] == pytest.approx(three.pairwise(1, 2)[1])


def test_the_bayes_classifier_of_iris_sepals():
    X, y = load_iris(return_X_y=True)
    sepals = X[:, :2]
    model = QuadraticDiscriminantAnalysis().fit(sepals, y)
    for k in range(3):
        rows = sepals[y == k]
        assert np.allclose(model.means_[k], rows.mean(axis=0), rtol=1e-12)
        assert np.allclose(model.covariance_[k], np.cov(rows.T, bias=True), rtol=1e-10)
    # The means as everyone has them.
    assert model.means_.round(3).tolist() == [[5.006, 3.428], [5.936, 2.77], [6.588, 2.974]]
    expected = gaussian.joint(sepals, model.means_, model.covariance_, [1 / 3] * 3)
    assert np.array_equal(model.predict(sepals), expected.argmax(axis=1))
    assert model.score(sepals, y) == pytest.approx((expected.argmax(axis=1) == y).mean())


def test_naive_bayes_of_two_principal_components_of_iris():
    X, y = load_iris(return_X_y=True)
    components = PCA(n_components=2).fit_transform(X)
    labels = np.where(y == 1, "versicolor", "rest")
    model = GaussianNB(var_smoothing=0.0).fit(components, labels)
    assert model.classes_.tolist() == ["rest", "versicolor"]
    assert model.class_count_.tolist() == [100, 50]
    for k, name in enumerate(model.classes_):
        rows = components[labels == name]
        assert np.allclose(model.theta_[k], rows.mean(axis=0), rtol=1e-10)
        assert np.allclose(model.var_[k], rows.var(axis=0), rtol=1e-10)
    expected = gaussian.naive_joint(components, model.theta_, model.var_, [2 / 3, 1 / 3])
    assert np.allclose(model.predict_joint_log_proba(components), expected, rtol=1e-10)
    # The components are centered: the classes' means balance.
    assert np.allclose(2 * model.theta_[0] + model.theta_[1], 0, atol=1e-12)
