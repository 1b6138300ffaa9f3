"""Discriminants: their limits, their linear forms, what is chosen, and singular covariances."""

import numpy as np
import polars as pl
import pytest
from sklearn import discriminant_analysis
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline

import textnb
from tests.dense.samples import GAUSSIAN, LDA, QDA, RDA, close, rows, wine
from tests.oracles import gaussian
from textnb import DataError, GaussianNB, LinearForm, NearestCentroid, PlugInBayes, TableClassifier
from textnb.bayes.covariance import dependent_columns, ledoit_wolf_shrinkage
from textnb.bayes.features import IDENTITY, Center, FeatureMap

IRIS, SPECIES = load_iris(return_X_y=True)


# Limits


EQUAL, GIVEN = [1 / 3] * 3, [0.2, 0.3, 0.5]


@pytest.mark.parametrize(("one", "other"), [
    *((RDA(alpha=1.0, gamma=gamma), QDA()) for gamma in (0.0, 0.5, 1.0)),
    (RDA(alpha=0.0, gamma=1.0), LDA()), (RDA(alpha=0.0, gamma=0.0), LDA(covariance="spherical")),
    *((LDA(covariance="spherical", priors=priors), NearestCentroid(priors=priors))
      for priors in (EQUAL, GIVEN)),
    (LDA(covariance="diagonal"), GaussianNB(shared_variance=True, var_smoothing=0.0)),
    (PlugInBayes(), PlugInBayes(KernelDensity())),
    (PlugInBayes(GaussianMixture(1, reg_covar=0.0)), QDA()),
    (PlugInBayes(GaussianMixture(1, reg_covar=0.0), naive=True), GaussianNB(var_smoothing=0.0))],
    ids=repr)
def test_a_limit_of_one_model_is_another(one, other):
    X, y = wine()
    one, other = one.fit(X, y), other.fit(X, y)
    close(one.predict_log_proba(X), other.predict_log_proba(X))
    assert np.array_equal(one.predict(X), other.predict(X))


# Linear forms


# δ1 = x1 + 2 x2 + 1, δ2 = 2 x1 - x2 + 2, δ3 = -x1 + 2 x2 + 1.
THREE = LinearForm(np.array([1, 2, 3]), np.array([[1.0, 2.0, -1.0], [2.0, -1.0, 2.0]]),
                   np.array([1.0, 2.0, 1.0]), features=FeatureMap((Center(np.zeros(2)),)))


@pytest.mark.parametrize(("a", "b", "w", "c", "at_one"), [
    (1, 2, [-1.0, 3.0], -1.0, 1.0),  # 4 - 3
    (1, 3, [2.0, 0.0], 0.0, 2.0),    # 4 - 2
    (2, 3, [3.0, -3.0], 1.0, 1.0),   # 3 - 2
    (3, 1, [-2.0, 0.0], 0.0, -2.0),
])
def test_three_discriminants_by_hand(a, b, w, c, at_one):
    # At (1, 1): δ1 = 1 + 2 + 1, δ2 = 2 - 1 + 2, δ3 = -1 + 2 + 1. Published tables of this example
    # have a slip in δ3; by its definition it is 2.
    assert THREE.scores(np.array([[1.0, 1.0]])).tolist() == [[4.0, 3.0, 2.0]]
    weights, intercept = THREE.pairwise(a, b)
    assert (weights.tolist(), intercept) == (w, c)
    assert weights @ np.ones(2) + intercept == at_one


@pytest.mark.parametrize("center", [None, np.array([0.5, -2.0]), np.array([1e3, 1e3])])
def test_a_center_changes_no_score_once_it_is_folded_in(center):
    shift = np.zeros(2) if center is None else center
    moved = LinearForm(THREE.classes, THREE.weights, THREE.intercept + shift @ THREE.weights,
                       features=IDENTITY if center is None else FeatureMap((Center(center),)))
    x = np.array([[1.0, 1.0], [-3.0, 0.25]])
    close(moved.scores(x), THREE.scores(x), 1e-12)
    close(moved.uncentered().scores(x), THREE.scores(x), 1e-12)
    assert moved.pairwise(1, 2)[1] == pytest.approx(THREE.pairwise(1, 2)[1])


def spread(X, y):
    """The mean of the classes' variances."""
    return np.mean([X[y == k].var(axis=0).mean() for k in gaussian.labels(y)])


# Each with its covariance Σ and priors.
LINEAR = {
    "linear": (LDA(), gaussian.pooled, gaussian.shares),
    "naive": (GaussianNB(shared_variance=True, var_smoothing=0.0),
              lambda X, y: np.diag(np.diag(gaussian.pooled(X, y))), gaussian.shares),
    "centroid": (NearestCentroid(), lambda X, y: np.eye(X.shape[1]) * spread(X, y),
                 lambda y: np.full(len(set(y)), 1 / len(set(y))))}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("first", [20, 60], ids=["three classes", "two classes"])
def test_the_linear_form_is_that_of_the_textbook(name, first):
    """x·Σ⁻¹μ - μᵀΣ⁻¹μ/2 + log π, up to what all classes share; of LDA itself, without that."""
    model, covariance, priors = LINEAR[name]
    X, y = IRIS[first:], SPECIES[first:]
    form, inverse = model.fit(X, y).linear_form(), np.linalg.inv(covariance(X, y))
    means = np.array([X[y == k].mean(axis=0) for k in gaussian.labels(y)])
    weights = inverse @ means.T
    intercept = np.log(priors(y)) - (means.T * weights).sum(axis=0) / 2
    for found, expected in ((form.weights, weights), (form.intercept, intercept)):
        shared = (0, 0) if name == "linear" else (found[..., :1], expected[..., :1])
        close(found - shared[0], expected - shared[1])
    difference = form.scores(X) - model.predict_joint_log_proba(X)
    close(difference - difference[:, :1], 0.0, 1e-8)
    if first == 60:
        w, b = form.binary(2)
        close(model.coef_, w[None])
        close(model.intercept_, [b], 1e-8)
        close(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-(X @ w + b))))


@pytest.mark.parametrize("model", [*GAUSSIAN, PlugInBayes()], ids=repr)
def test_margins_are_scores_and_of_two_classes_their_difference(model):
    three = model.fit(IRIS, SPECIES)
    assert np.array_equal(three.decision_function(IRIS), three.predict_joint_log_proba(IRIS))
    two = model.fit(IRIS[SPECIES < 2], SPECIES[SPECIES < 2])
    joint = two.predict_joint_log_proba(IRIS)
    assert np.array_equal(two.decision_function(IRIS), joint[:, 1] - joint[:, 0])


def test_discriminant_axes_are_named():
    model = LDA().fit(IRIS, SPECIES)
    assert model.get_feature_names_out().tolist() == [
        "lineardiscriminantanalysis0", "lineardiscriminantanalysis1"]
    pipeline = make_pipeline(LDA(n_components=1)).set_output(transform="polars")
    out = pipeline.fit_transform(pl.DataFrame(IRIS, schema=list("abcd")), SPECIES)
    assert isinstance(out, pl.DataFrame)
    assert out.columns == ["lineardiscriminantanalysis0"]
    close(out.to_numpy()[:, 0], model.transform(IRIS)[:, 0])


@pytest.mark.parametrize("n_components", [3, 4, 100])
def test_more_axes_than_there_are_are_refused(n_components):
    for kind in (LDA, discriminant_analysis.LinearDiscriminantAnalysis):
        with pytest.raises(ValueError, match="n_components"):
            kind(n_components=n_components).fit(IRIS, SPECIES)
    with pytest.raises(textnb.ParameterError, match=r"min\(classes - 1, features\) = 1"):
        LDA(n_components=2).fit(IRIS[:, :1], SPECIES)


# The choice of (α, γ), and of shrinkage


@pytest.mark.parametrize("cv", [3, 5])
def test_alpha_and_gamma_are_those_of_refits(cv):
    X, y = wine()
    X = X[:, [0, 1, 4, 9]]
    alphas, gammas = [0.9, 0.0, 0.4], [1.0, 0.0, 0.5]
    model = RDA(alpha=alphas, gamma=gammas, cv=cv).fit(X, y)
    fold = np.empty(len(y), dtype=int)
    for k in range(3):
        fold[y == k] = np.arange((y == k).sum()) % cv
    best, expected = (-1.0, 0.0, 0.0), np.zeros((3, 3))
    for a, alpha in enumerate(sorted(alphas)):
        for g, gamma in enumerate(sorted(gammas)):
            refits = [RDA(alpha=alpha, gamma=gamma).fit(X[fold != i], y[fold != i])
                      for i in range(cv)]
            hits = sum((refit.predict(X[fold == i]) == y[fold == i]).sum()
                       for i, refit in enumerate(refits))
            expected[a, g] = hits / len(y)
            if expected[a, g] > best[0]:
                best = expected[a, g], alpha, gamma
    close(model.cv_accuracy_, expected, 1e-15)
    assert (model.alpha_, model.gamma_) == best[1:]
    chosen = RDA(alpha=best[1], gamma=best[2]).fit(X, y)
    assert chosen.cv_accuracy_ is None
    close(model.predict_joint_log_proba(X), chosen.predict_joint_log_proba(X))


def test_a_pair_that_is_singular_is_not_chosen_and_one_open_setting_is_enough():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 0] += y
    # Constant within a class, so that its own covariance is singular.
    X[y == 1, 2] = 1.0
    model = RDA(alpha=[0.5, 1.0], gamma=[0.5, 1.0]).fit(X, y)
    assert np.isnan(model.cv_accuracy_).tolist() == [[False, False], [True, True]]
    part = RDA(alpha=0.5, gamma=[0.5, 1.0]).fit(X, y)
    assert part.alpha_ == model.alpha_ == 0.5
    np.testing.assert_array_equal(part.cv_accuracy_, model.cv_accuracy_[:1])
    with pytest.raises(DataError, match="covariance of class 1 is singular: constant columns 2"):
        RDA(alpha=1.0, gamma=[0.5, 1.0]).fit(X, y)


def test_no_distance_is_no_shrinkage():
    assert ledoit_wolf_shrinkage(np.array([[2.0]]), 10, 99.0) == 0.0
    assert ledoit_wolf_shrinkage(np.eye(3), 10, 99.0) == 0.0
    square = rows().with_columns(u=pl.Series([1.0, 1.0, 1.0, 1.0, -1.0, -1.0] * 10),
                                 v=pl.Series([1.0, 1.0, -1.0, -1.0, 0.0, 0.0] * 10))
    for columns in (["x"], ["u", "v"]):
        X, y = square.select(columns).to_numpy(), square["label"].to_numpy()
        theirs = discriminant_analysis.LinearDiscriminantAnalysis(
            solver="lsqr", shrinkage="auto").fit(X, y)
        ours = LDA(shrinkage="auto").fit(X, y)
        np.testing.assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)
        assert np.isfinite(QDA(shrinkage="auto").fit(X, y).predict_proba(X)).all()


# Singular covariances, and whether the advice helps


def singular(labels=("x", "y")):
    a, b = np.random.default_rng(0).normal(size=(2, 80))
    return pl.DataFrame({"a": a, "b": b, "still": np.full(80, 0.1), "sum": a + 2 * b,
                         "label": [*labels] * 40})


def test_columns_that_depend_on_others():
    X = np.random.default_rng(0).normal(size=(50, 6))
    X[:, 2] = 7.0
    X[:, 4] = 2 * X[:, 0] - X[:, 1]
    constant, collinear = dependent_columns(np.cov(X.T))
    assert (constant.tolist(), collinear.tolist()) == ([2], [4])


@pytest.mark.parametrize("model", [
    LDA(), QDA(), QDA(shrinkage=0.0), RDA(alpha=0.5, gamma=1.0), RDA(alpha=1.0),
    RDA(alpha=1.0, gamma=0.5), RDA(alpha=0.0, gamma=1.0), RDA(alpha=[0.5, 1.0], gamma=1.0)],
    ids=repr)
def test_constant_and_collinear_columns_are_named_and_settings_that_exist_are_advised(model):
    with pytest.raises(DataError, match=(
            r"constant columns 'still'.*combinations of others 'sum'")) as caught:
        TableClassifier(model).fit(singular())
    told = str(caught.value)
    assert ("alpha" in told or "gamma" in told) == (type(model) is RDA)
    assert ("shrinkage" in told) == (type(model) is not RDA)
    with pytest.raises(DataError, match=r"constant columns 2.*combinations of others 3"):
        model.fit(singular().drop("label").to_numpy(), singular()["label"].to_numpy())
    # Classes are named as people write them.
    for labels in ((0, 1), (True, False)):
        with pytest.raises(DataError, match=r"^(?!.*np\.).*singular"):
            TableClassifier(model).fit(singular(labels))


@pytest.mark.parametrize("scale", [0.0, 1e-200])
@pytest.mark.parametrize("model", [LDA(), LDA(shrinkage=0.5), LDA(shrinkage="auto"),
                                   QDA(shrinkage=0.5)], ids=repr)
def test_no_shrinkage_is_advised_where_no_column_varies(model, scale):
    X = np.random.default_rng(0).normal(size=(40, 2)) * scale
    with pytest.raises(DataError, match=r"shrinkage does not help.*scale them up"):
        model.fit(X, np.arange(40) % 2)


@pytest.mark.parametrize("alpha", [0.0, [0.0]])
def test_the_pooled_covariance_is_to_blame(alpha):
    frame = rows().with_columns(still=pl.lit(3.0))
    with pytest.raises(DataError, match=r"covariance of the classes, pooled, is singular: "
                                        r"constant columns 'still'.*lower gamma below 1"):
        TableClassifier(RDA(alpha=alpha, gamma=1.0)).fit(frame)
    # What the message advises.
    TableClassifier(RDA(alpha=alpha, gamma=0.9)).fit(frame)


@pytest.mark.parametrize("kind", [LDA, QDA])
def test_the_advice_on_singular_covariances_helps(kind):
    for settings in ({"shrinkage": 0.1}, {"shrinkage": 1e-6}, {"shrinkage": "auto"},
                     {"allow_singular": True}):
        assert TableClassifier(kind(**settings)).fit(singular()).score(singular()) > 0.4
    TableClassifier(kind()).fit(singular().drop("still", "sum"))


def test_fewer_rows_than_features():
    X, y = np.random.default_rng(0).normal(size=(12, 20)), np.arange(12) % 2
    for model in (LDA(), QDA(), RDA(alpha=1.0), RDA(alpha=0.5, gamma=1.0)):
        with pytest.raises(DataError, match="singular"):
            model.fit(X, y)
    for model in (LDA(shrinkage="auto"), LDA(shrinkage=0.5), LDA(allow_singular=True),
                  QDA(shrinkage="auto"), QDA(shrinkage=0.5), QDA(reg_param=0.1), RDA(),
                  QDA(allow_singular=True), LDA(covariance="diagonal"), GaussianNB(),
                  NearestCentroid()):
        assert np.isfinite(model.fit(X, y).predict_log_proba(X)).all()


def test_a_constant_column_within_a_class():
    frame = pl.DataFrame({"a": [1.0, 1.0, 2.0, 3.0], "b": [0.0, 1.0, 2.0, 3.0],
                          "label": ["x", "x", "y", "y"]})
    with pytest.raises(DataError, match="columns 'a' are constant within a class"):
        TableClassifier(GaussianNB(var_smoothing=0.0)).fit(frame)
    TableClassifier(GaussianNB(var_smoothing=1e-9)).fit(frame)
    TableClassifier(GaussianNB(var_smoothing=0.0)).fit(frame.drop("a"))


def test_where_every_column_is_constant_the_scale_of_smoothing_is_one():
    X, y = [[1.0], [1.0], [1.0]], [0, 1, 1]
    assert GaussianNB(var_smoothing=0.5).fit(X, y).var_.tolist() == [[0.5], [0.5]]
    with pytest.raises(DataError, match="set var_smoothing above 0"):
        GaussianNB(var_smoothing=0.0).fit(X, y)


def test_features_without_variance_within_classes_are_refused():
    with pytest.raises(DataError, match=r"no feature varies within a class.*NearestCentroid"):
        LDA(allow_singular=True).fit(
            [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [3.0, 4.0]], ["a", "a", "b", "b"])


def test_a_class_of_one_row():
    X, y = wine()
    X, y = np.concatenate([X, X[:1]]), np.append(y, 7)
    with pytest.raises(DataError, match=r"class .*7.* has one row"):
        QDA().fit(X, y)
    # What the message advises.
    QDA().fit(X[:-1], y[:-1])
    assert LDA().fit(X, y).classes_.tolist() == [0, 1, 2, 7]
    assert GaussianNB().fit(X, y).predict(X[-1:]).tolist() == [7]
    assert NearestCentroid().fit(X, y).classes_.tolist() == [0, 1, 2, 7]
    RDA(alpha=0.5, gamma=0.5).fit(X, y)
    with pytest.raises(DataError, match=r"class .*7.* has 1 row, fewer than cv=5 folds"):
        RDA(alpha=[0.1, 0.5]).fit(X, y)
    RDA(alpha=0.1).fit(X, y)
    with pytest.raises(DataError, match="needs more rows than classes; got 2 and 2"):
        LDA(divisor="n-K").fit([[1.0], [2.0]], [0, 1])
