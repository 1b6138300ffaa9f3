"""Where dense models end: refits that fail, announced classes, overflow, and settings."""

import pickle
import tracemalloc

import numpy as np
import polars as pl
import pytest
from sklearn import discriminant_analysis
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline

from textnb import (
    DataError,
    GaussianNB,
    LinearDiscriminantAnalysis,
    LogCountRatio,
    NearestCentroid,
    ParameterError,
    PlugInBayes,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    SchemaError,
    TableClassifier,
)
from textnb.bayes.covariance import ledoit_wolf_shrinkage
from textnb.bayes.gaussian import far_scores
from textnb.bayes.histogram import MAX_BINS, bins_per_column
from textnb.bayes.moments import MomentStatistics
from textnb.errors import ImpossibleRowError
from textnb.models.histogram import HistogramDensity

LDA, QDA = LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
RDA = RegularizedDiscriminantAnalysis
GAUSSIAN = [GaussianNB(), GaussianNB(shared_variance=True), LDA(), QDA(), RDA(), NearestCentroid()]
gaussians = pytest.mark.parametrize("model", GAUSSIAN, ids=repr)


def rows(n=60, labels=("a", "b")):
    rng = np.random.default_rng(0)
    y = np.arange(n) % len(labels)
    return pl.DataFrame(rng.normal(size=(n, 2)) + 2.0 * y[:, None], schema=["x", "z"]).with_columns(
        label=pl.Series([labels[k] for k in y]))


def matrix(frame):
    return frame.select("x", "z").to_numpy(), frame["label"].to_numpy()


# A refit that fails


@pytest.mark.parametrize("model", [GaussianNB(), LDA(shrinkage="auto"), PlugInBayes()], ids=repr)
@pytest.mark.parametrize("failing", ["one class", "null", "interrupt"])
def test_a_refit_that_fails_changes_nothing(model, failing):
    fitted = TableClassifier(model).fit(rows())
    before, state = fitted.predict(rows(), scores=True), dict(vars(fitted))
    other = rows().rename({"x": "u"})
    if failing == "one class":
        other = other.filter(label="a")
    elif failing == "null":
        other = other.with_columns(u=pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise("u"))

    def interrupt(n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt if failing == "interrupt" else DataError):
        fitted.fit(other, progress=interrupt if failing == "interrupt" else None)
    assert vars(fitted) == state
    assert fitted.predict(rows(), scores=True).equals(before)


def test_a_plug_in_refit_that_fails_changes_nothing():
    X, y = matrix(rows())
    model = PlugInBayes(search={"bandwidth": [0.3, 1.0]}).fit(X, y)
    before = model.predict_joint_log_proba(X)
    with pytest.raises(DataError, match="fewer than cv=5 folds"):
        model.fit(X[:6], y[:6])
    assert np.array_equal(model.predict_joint_log_proba(X), before)
    assert model.class_count_.tolist() == [30, 30]


# Announced classes


@gaussians
def test_a_label_must_be_announced(model):
    fitted = TableClassifier(model).partial_fit(rows())
    state = dict(vars(fitted))
    stranger = rows(labels=("a", "c", "d"))
    with pytest.raises(DataError, match=r"'c', 'd' were not announced; known classes are 'a', 'b'"):
        fitted.partial_fit(stranger)
    assert vars(fitted) == state
    with pytest.raises(DataError, match="'d' were not announced"):
        fitted.partial_fit(stranger, classes=["c"])
    assert fitted.partial_fit(stranger, classes=["c", "d"]).classes_.tolist() == list("abcd")
    both = pl.concat([rows(), stranger])
    whole = TableClassifier(model).fit(both).predict_joint_log_proba(both)
    np.testing.assert_allclose(fitted.predict_joint_log_proba(both), whole, rtol=1e-9, atol=1e-9)
    with pytest.raises(DataError, match="'b' were not announced; known classes are 'a'"):
        TableClassifier(model).partial_fit(rows(), classes=["a"])


@pytest.mark.parametrize("model", [GaussianNB(), LDA(), NearestCentroid(), LDA(divisor="n-K")],
                         ids=repr)
def test_a_first_batch_of_one_class(model):
    frame, fitted = rows(), TableClassifier(model)
    with pytest.raises(DataError, match="got one class"):
        fitted.partial_fit(frame.filter(label="a"))
    assert not hasattr(fitted, "features_")
    fitted.partial_fit(frame.filter(label="a"), classes=np.array(["b", "a"]))
    assert fitted.classes_.tolist() == ["a", "b"]
    assert set(fitted.predict(frame)["predicted"]) == {"a"}
    assert fitted.predict_proba(frame).tolist() == [[1.0, 0.0]] * 60
    fitted.partial_fit(frame.filter(label="b"))
    np.testing.assert_allclose(
        fitted.predict_joint_log_proba(frame),
        TableClassifier(model).fit(frame).predict_joint_log_proba(frame), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("known", "labels", "classes"), [
    (("a", "b"), (1, 2), None), ((1, 2), ("a", "b"), None), ((True, False), (1, 0), None),
    ((0, 1), (False, True), None), (("a", "b"), ("a", "b"), [3]), ((0, 1), (0, 1), ["a"]),
    ((0, 1), (0, 1), [True])], ids=str)
def test_labels_of_another_type(known, labels, classes):
    fitted = TableClassifier().fit(rows(labels=known))
    with pytest.raises(DataError, match="type"):
        fitted.partial_fit(rows(labels=labels), classes=classes)
    assert fitted.classes_.tolist() == sorted(known)
    with pytest.raises((DataError, ParameterError)):
        TableClassifier().partial_fit(rows(labels=labels), classes=[*known, *(classes or [])])


@pytest.mark.parametrize("classes", ["ab", 5, [0.5], [None], [["a"]]], ids=str)
def test_announcements_that_are_none(classes):
    with pytest.raises(ParameterError, match="classes must be labels of one type"):
        TableClassifier().partial_fit(rows(), classes=classes)
    with pytest.raises(DataError, match=r"label 9223372036854775808 is beyond 64 bits"):
        TableClassifier().partial_fit(rows(labels=(0, 1)), classes=[0, 1, 2**63])


# Overflow


@pytest.mark.parametrize("size", [1e151, 1e155, 1e200, 3e307])
@pytest.mark.parametrize("model", [
    *GAUSSIAN, LDA(shrinkage="auto"), RDA(alpha=[0.1, 0.5]), PlugInBayes(),
    PlugInBayes(GaussianMixture(), naive=True)], ids=repr)
def test_values_too_large_to_square(model, size):
    frame = rows().with_columns(z=pl.col("z") * size)
    with pytest.raises(DataError, match="values of column 'z' are too large to square; rescale it"):
        TableClassifier(model).fit(frame)
    with pytest.raises(DataError, match="column 1 are too large"):
        model.fit(*matrix(frame))
    # All alike: no variance, and means whose distances overflow.
    frame = rows().with_columns(x=pl.lit(size), z=pl.lit(-size))
    with pytest.raises(DataError, match="columns 'x', 'z' are too large"):
        TableClassifier(model).fit(frame)


@gaussians
def test_values_large_and_small_are_learned(model):
    plain = TableClassifier(model).fit(rows()).predict(rows())["predicted"]
    for size in (1e145, 1e-100):
        frame = rows().with_columns(pl.col("x", "z") * size)
        learned = TableClassifier(model).fit(frame)
        assert learned.predict(frame)["predicted"].equals(plain)


@gaussians
def test_a_batch_too_large_changes_nothing(model):
    fitted = TableClassifier(model).fit(rows())
    state = dict(vars(fitted))
    with pytest.raises(DataError, match="column 'x' are too large"):
        fitted.partial_fit(rows().with_columns(x=pl.lit(1e200)))
    assert vars(fitted) == state


@pytest.mark.parametrize("size", [1e152, 1e155, 1e200, 1.7e308])
@gaussians
def test_rows_far_away_are_ranked(model, size):
    X, y = matrix(rows())
    X[y == "b"] = 3.0 * X[y == "b"] + [0.5, 0.0]
    model = model.fit(X, y)
    directions = np.array([[1.0, 0.3], [-1.0, 0.2], [0.1, -1.0], [-0.7, -0.7], [0.5, 0.8]])
    # Far enough for priors and determinants not to matter, near enough for exact squares.
    near = model.predict_joint_log_proba(directions * 1e9)
    far = model.predict_joint_log_proba(directions * size)
    assert not np.isnan(far).any()
    assert np.array_equal(far.argmax(axis=1), near.argmax(axis=1))
    assert np.array_equal(model.predict_proba(directions * size), model.predict_proba(
        directions * 1e9))
    assert np.isfinite(far.max(axis=1)).all()
    table = TableClassifier(model).fit(pl.DataFrame(X, schema=["x", "z"]), y)
    frame = pl.DataFrame(directions * size, schema=["x", "z"])
    # Labels came beside the frame, so answers are an array, as in scikit-learn.
    assert np.array_equal(table.predict(frame), model.predict(directions * 1e9))


def test_a_class_is_ruled_out_far_away_too():
    X, y = matrix(rows(labels=("a", "b", "c")))
    for model in GAUSSIAN[:4]:
        model = type(model)(**{**model.get_params(), "priors": [0.5, 0.5, 0.0]}).fit(X, y)
        far = model.predict_joint_log_proba(np.array([[1e200, 1e200], [-1e300, 1e10]]))
        assert np.isneginf(far[:, 2]).all()
        assert np.isfinite(far.max(axis=1)).all()


@gaussians
def test_scores_of_far_rows_are_the_scores(model):
    X, y = matrix(rows())
    model = model.fit(X, y)
    points = np.array([[1.0, 2.0], [-30.0, 1e5], [0.0, 0.0], [1e60, -1e50]])
    plain, got = model.predict_joint_log_proba(points), far_scores(model._form, points)
    if type(model) in (QDA, RDA) or model == GAUSSIAN[0]:
        np.testing.assert_allclose(got, plain, rtol=1e-11)
    else:
        # A linear form's scores are known up to what all classes share.
        np.testing.assert_allclose(got[:, 1] - got[:, 0], plain[:, 1] - plain[:, 0], rtol=1e-9)


def test_a_row_that_no_density_reaches():
    X, y = matrix(rows())
    model = PlugInBayes(KernelDensity(kernel="tophat")).fit(X, y)
    with pytest.raises(ImpossibleRowError, match="row 1 is impossible under every class: its "
                                                 "density underflows") as caught:
        model.predict([[0.0, 0.0], [99.0, 99.0]])
    assert "l = 0" not in str(caught.value)
    mixture = PlugInBayes(GaussianMixture(random_state=0)).fit(X, y)
    assert not np.isnan(mixture.predict_joint_log_proba([[1e200, -1e200], [1e308, 1e308]])).any()
    frame = pl.DataFrame({"x": [0.0, 1e200], "z": [0.0, 1e300]})
    table = TableClassifier(PlugInBayes(GaussianMixture(random_state=0))).fit(rows())
    assert table.predict(frame)["predicted"].to_list() == ["a", None]


# Columns


def test_an_element_called_as_another_column():
    frame = rows().select(pl.concat_arr("x", "z").alias("p"), pl.col("x").alias("p[0]"), "label")
    with pytest.raises(SchemaError, match=r"both called 'p\[0\]'; rename one"):
        TableClassifier().fit(frame)


def test_labels_of_an_array_of_features():
    X, y = matrix(rows())
    with pytest.raises(ParameterError, match="label='x0' is a feature"):
        TableClassifier(label="x0").fit(X, y)
    assert TableClassifier(label="x2").fit(X, y).feature_names_ == ["x0", "x1"]


@pytest.mark.parametrize("call", ["predict", "predict_joint_log_proba", "predict_proba"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_of_an_array_that_are_none(call, value):
    X, y = matrix(rows())
    model = TableClassifier(LDA()).fit(X, y)
    bad = X.copy()
    bad[7, 1] = value
    with pytest.raises(DataError, match="feature column 'x1' is NaN or infinite in row 7 "):
        getattr(model, call)(bad)
    with pytest.raises(DataError, match="feature column 'x1' is NaN or infinite in row 7 "):
        TableClassifier().fit(bad, y)
    with pytest.raises(DataError, match="'x1' is NaN or infinite in row 7 "):
        model.score(bad, y)
    for wrong in (X[:, :1], X[0], X.astype(str) + "x"):
        with pytest.raises(DataError, match="feature"):
            getattr(model, call)(wrong)
    assert np.array_equal(model.predict(X.astype(object)), model.predict(X))


def test_accuracy_of_no_rows():
    X, y = matrix(rows())
    model = TableClassifier().fit(rows())
    none = rows().clear()
    for given in ((none,), (none.lazy(),), (X[:0], y[:0]), (none, [])):
        with pytest.raises(DataError, match="no rows"):
            model.score(*given)
    with pytest.raises(DataError, match="one label per row"):
        model.score(rows(), y[:7])


# Settings


@pytest.mark.parametrize(("settings", "words"), [
    ({"features": 5}, "features are names of columns"),
    ({"features": [0, 1]}, "features are names of columns"),
    ({"label": 5}, "label must be the name of a column; got 5"),
    ({"label": None}, "label must be"), ({"label": ["label"]}, "label must be"),
    ({"estimator": "lda"}, "one of textnb's; got 'lda'. Pass an instance"),
    ({"estimator": KernelDensity()}, "one of textnb's; got KernelDensity"),
    ({"estimator": LDA}, "got the class LinearDiscriminantAnalysis. Pass an instance")], ids=str)
def test_settings_of_a_table(settings, words):
    for call in ("fit", "partial_fit"):
        with pytest.raises(ParameterError, match=words):
            getattr(TableClassifier(**settings), call)(rows())


NAN, SHARES = float("nan"), [0.5, 0.1]
NO_NUMBERS = ("a", NAN, -1.0, True, {}, 2j)
TYPES = [(kind, name, value) for kind, names in {
    GaussianNB: ("var_smoothing",), QDA: ("reg_param", "shrinkage"),
    LDA: ("shrinkage", "n_components", "covariance", "divisor"), RDA: ("alpha", "gamma", "cv"),
    PlugInBayes: ("cv", "search", "naive", "density"), HistogramDensity: ("l",)}.items()
    for name in names for value in (None, [0.1], *NO_NUMBERS)
    if not ((value is None and name in ("shrinkage", "n_components", "search", "density"))
            or (name in ("alpha", "gamma") and value == [0.1]) or (name, value) == ("naive", True))]
# Each is said by its name, or in these words.
WRONG = [*((kind, {name: value}, name) for kind, name, value in TYPES), *(
    (kind, {name: value}, name) for kind, name, value in [
        (LDA, "shrinkage", 1.1), (LDA, "shrinkage", "ledoit"), (LDA, "covariance", "round"),
        (LDA, "divisor", "n-1"), (LDA, "n_components", 0), (QDA, "divisor", "n-K"),
        (QDA, "reg_param", 2.0), (QDA, "shrinkage", 2), (RDA, "alpha", 1.5), (RDA, "gamma", -0.5),
        (RDA, "alpha", []), (RDA, "alpha", [[0.1]]), (RDA, "cv", 1), (RDA, "gamma", [0.1, 2.0]),
        (LDA, "priors", SHARES), (QDA, "priors", [1.0]), (GaussianNB, "priors", [0.5, -0.5]),
        (GaussianNB, "var_smoothing", float("inf")), (NearestCentroid, "priors", [0.1] * 3),
        (HistogramDensity, "l", float("inf")), *((HistogramDensity, "bins", bins) for bins in (
            "zz", 2.5, 0, -1, True, None, MAX_BINS + 1, np.int64(MAX_BINS + 1), np.int64(0),
            10**30, [1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [0.0], [], [[0.0, 1.0]], [0.0, NAN],
            ["a", "b"]))]), *(
    (PlugInBayes, settings, words) for settings, words in [
        ({"priors": SHARES}, "sum of the priors should be 1"),
        ({"cv": 1}, "cv must be an int >= 2"),
        ({"priors": [5.0, 1.0]}, "sum of the priors should be 1"),
        ({"search": {"nothing": [1]}}, "unknown value 'nothing'"),
        ({"search": {"bandwidht": [1]}}, "did you mean 'bandwidth'"),
        *(({"search": search}, "search must be")
          for search in ({"bandwidth": []}, {"bandwidth": 3}, [{}])),
        *(({"density": density}, "density must be")
          for density in (KernelDensity, GaussianNB(), "kernel"))])]


@pytest.mark.parametrize(("kind", "settings", "words"), WRONG, ids=lambda value: str(value)[-40:])
def test_settings_out_of_range_are_named(kind, settings, words):
    model, (X, y) = kind(**settings), matrix(rows())
    if isinstance(model, HistogramDensity):
        with pytest.raises(ParameterError, match=words):
            PlugInBayes(model).fit(X, y)
    else:
        with pytest.raises(ParameterError, match=words):
            TableClassifier(model).fit(rows())
    with pytest.raises(ParameterError, match=words):
        model.fit(X, y)


def test_numbers_of_numpy_are_numbers():
    X, y = matrix(rows(labels=("a", "b", "c")))
    for model in (GaussianNB(var_smoothing=np.float32(0.5)), QDA(shrinkage=np.float32(0.5)),
                  QDA(reg_param=np.int64(1)), RDA(alpha=np.array([0.1, 0.5]), cv=np.int64(3)),
                  LDA(n_components=np.int64(1)), PlugInBayes(HistogramDensity(bins=np.int64(3)))):
        model.fit(X, y)


def test_a_density_that_can_t_be_estimated():
    X, y = matrix(rows(6))
    with pytest.raises(DataError, match=r"of class 'a' can't be estimated: .*n_samples"):
        PlugInBayes(GaussianMixture(5)).fit(X, y)


# Shrinkage


def test_no_distance_is_no_shrinkage():
    assert ledoit_wolf_shrinkage(np.array([[2.0]]), 10, 99.0) == 0.0
    assert ledoit_wolf_shrinkage(np.eye(3), 10, 99.0) == 0.0
    frame = rows()
    for columns in (["x"], ["u", "v"]):
        square = frame.with_columns(u=pl.Series([1.0, 1.0, 1.0, 1.0, -1.0, -1.0] * 10),
                                    v=pl.Series([1.0, 1.0, -1.0, -1.0, 0.0, 0.0] * 10))
        X, y = square.select(columns).to_numpy(), square["label"].to_numpy()
        theirs = discriminant_analysis.LinearDiscriminantAnalysis(
            solver="lsqr", shrinkage="auto").fit(X, y)
        ours = LDA(shrinkage="auto").fit(X, y)
        np.testing.assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)
        assert np.isfinite(QDA(shrinkage="auto").fit(X, y).predict_proba(X)).all()


# Histograms


def outlier():
    return np.append(np.random.default_rng(0).normal(size=999), 1e9)[:, None]


@pytest.mark.parametrize("naive", [False, True])
def test_too_many_bins_by_a_rule(naive):
    tracemalloc.start()
    with pytest.raises(DataError, match=r"bins='fd' makes [\d,]+ bins of feature 0, more than"):
        HistogramDensity(bins="fd").fit(outlier())
    frame = rows(2000).with_columns(z=pl.when(pl.int_range(pl.len()) == 7).then(1e9).otherwise("z"))
    with pytest.raises(DataError, match="bins of feature 'z', more than 1,000,000"):
        TableClassifier(PlugInBayes(HistogramDensity(bins="fd"), naive=naive)).fit(frame)
    assert tracemalloc.get_traced_memory()[1] < 8 * MAX_BINS
    tracemalloc.stop()
    # What the message advises.
    HistogramDensity(bins=100).fit(outlier())
    HistogramDensity(bins=[-9.0, 0.0, 9.0]).fit(outlier())
    HistogramDensity(bins="fd").fit(outlier()[:-1])
    assert len(HistogramDensity(bins="auto").fit(outlier()).edges_[0]) < 100


@pytest.mark.parametrize("rule", ["auto", "doane", "fd", "rice", "scott", "sqrt", "stone",
                                  "sturges"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:The number of bins estimated may be suboptimal")
def test_rules_are_those_of_numpy(rule, seed):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.normal(size=300), rng.standard_cauchy(300), rng.integers(0, 3, 300),
                  np.full(300, 7.0)], axis=1)
    model = HistogramDensity(bins=rule).fit(X)
    for column, edges in zip(X.T, model.edges_, strict=True):
        np.testing.assert_array_equal(edges, np.histogram_bin_edges(column, rule))
    counts = bins_per_column(X, rule, "abcd")
    assert all(len(edges) - 1 <= n for edges, n in zip(model.edges_, counts, strict=True))


def test_bins_that_a_column_does_not_have():
    for column in ([1e16, 1e16 + 2.0], [-1.7e308, 1.7e308]):
        with pytest.raises(DataError, match="feature 0"):
            HistogramDensity(bins=10).fit(np.array(column)[:, None])


def test_given_edges():
    model = HistogramDensity(bins=[0.0, 1.0, 3.0], l=1.0).fit([[0.5], [0.7], [2.0]])
    assert np.exp(model.score_samples([[0.1], [2.9]])).tolist() == pytest.approx([3 / 5, 2 / 10])


# Regularised discriminants


def test_a_pair_that_is_singular_is_not_chosen():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 0] += y
    # Constant within a class, so that its own covariance is singular.
    X[y == 1, 2] = 1.0
    model = RDA(alpha=[0.5, 1.0], gamma=[0.5, 1.0]).fit(X, y)
    assert np.isnan(model.cv_accuracy_).tolist() == [[False, False], [True, True]]
    assert model.alpha_ == 0.5
    part = RDA(alpha=0.5, gamma=[0.5, 1.0]).fit(X, y)
    np.testing.assert_array_equal(part.cv_accuracy_[0], model.cv_accuracy_[0])
    with pytest.raises(DataError, match="covariance of class 1 is singular: constant columns 2"):
        RDA(alpha=1.0, gamma=[0.5, 1.0]).fit(X, y)


@pytest.mark.parametrize("alpha", [0.0, [0.0]])
def test_the_pooled_covariance_is_to_blame(alpha):
    frame = rows().with_columns(still=pl.lit(3.0))
    with pytest.raises(DataError, match=r"covariance of the classes, pooled, is singular: "
                                        r"constant columns 'still'.*lower gamma below 1"):
        TableClassifier(RDA(alpha=alpha, gamma=1.0)).fit(frame)
    # What the message advises.
    TableClassifier(RDA(alpha=alpha, gamma=0.9)).fit(frame)


# Names that come out


def test_discriminant_axes_are_named():
    X, y = load_iris(return_X_y=True)
    model = LDA().fit(X, y)
    assert model.get_feature_names_out().tolist() == [
        "lineardiscriminantanalysis0", "lineardiscriminantanalysis1"]
    pipeline = make_pipeline(LDA(n_components=1)).set_output(transform="polars")
    out = pipeline.fit_transform(pl.DataFrame(X, schema=list("abcd")), y)
    assert isinstance(out, pl.DataFrame)
    assert out.columns == ["lineardiscriminantanalysis0"]
    np.testing.assert_allclose(out.to_numpy()[:, 0], model.transform(X)[:, 0])


@pytest.mark.parametrize("n_components", [3, 4, 100])
def test_more_axes_than_there_are(n_components):
    X, y = load_iris(return_X_y=True)
    for kind in (LDA, discriminant_analysis.LinearDiscriminantAnalysis):
        with pytest.raises(ValueError, match="n_components"):
            kind(n_components=n_components).fit(X, y)
    with pytest.raises(ParameterError, match=r"min\(classes - 1, features\) = 1"):
        LDA(n_components=2).fit(X[:, :1], y)


def test_ratios_are_named():
    X = np.array([[2, 0], [0, 1], [1, 1]])
    assert LogCountRatio().fit(X, ["a", "b", "b"]).get_feature_names_out().tolist() == ["x0", "x1"]
    three = LogCountRatio().fit(X, ["a", "b", "c"])
    names = three.get_feature_names_out(["u", "v"]).tolist()
    assert names == ["u_a", "v_a", "u_b", "v_b", "u_c", "v_c"]
    assert three.transform(X).shape[1] == len(names)


@pytest.mark.parametrize("model", [*GAUSSIAN, PlugInBayes()], ids=repr)
def test_margins(model):
    X, y = load_iris(return_X_y=True)
    three = model.fit(X, y)
    assert np.array_equal(three.decision_function(X), three.predict_joint_log_proba(X))
    two = model.fit(X[y < 2], y[y < 2])
    joint = two.predict_joint_log_proba(X)
    assert np.array_equal(two.decision_function(X), joint[:, 1] - joint[:, 0])


# Moments


@pytest.mark.parametrize("diagonal", [False, True])
def test_rows_that_were_never_learned_are_not_taken_out(diagonal):
    def of(x):
        values = np.array(x, dtype=np.float64)[:, None] * [1.0, 2.0]
        return MomentStatistics.from_matrix(values, ["a"] * len(values), diagonal=diagonal)

    learned = of([1.0, 2.0, 3.0, 4.0])
    for strange in ([0.0, 9.0], [100.0], [1.0, 2.0, 3.0, 5.0], [2.5] * 4):
        with pytest.raises(DataError, match="can't forget: the rows given are not among those of "
                                            "class 'a'"):
            learned - of(strange)
    for own in ([1.0], [4.0, 1.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]):
        rest = learned - of(own)
        assert (rest.without_covariances().scatter >= 0).all()


def test_a_sum_of_moments_takes_no_more_than_the_moments():
    k, p = 400, 40
    X, y = np.random.default_rng(0).normal(size=(2 * k, p)), np.arange(2 * k) % k
    left, right = (MomentStatistics.from_matrix(X[part], y[part], classes=np.arange(k))
                   for part in (slice(k), slice(k, None)))
    tracemalloc.start()
    total = left + right
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * total.scatter.nbytes + 3 * 8 * (1 << 20)


def test_a_fitted_table_is_pickled():
    model = TableClassifier(LDA()).partial_fit(rows(), classes=list("abc"))
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(rows()).equals(model.predict(rows()))


def test_lda_of_features_without_variance_within_classes_is_refused():
    rows, labels = [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [3.0, 4.0]], ["a", "a", "b", "b"]
    with pytest.raises(DataError, match=r"no feature varies within a class.*NearestCentroid"):
        LinearDiscriminantAnalysis(allow_singular=True).fit(rows, labels)
