"""Feature tables in, tables out, model files, and the command line."""

import logging
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import textnb
from textnb import (
    DataError,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NearestCentroid,
    ParameterError,
    PlugInBayes,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    SchemaError,
    TableClassifier,
)
from textnb.models.histogram import HistogramDensity

Array = NDArray[Any]
LDA, QDA = LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
RDA = RegularizedDiscriminantAnalysis
COLUMNS = ["a", "b", "c", "d"]
STREAMING = [GaussianNB(), GaussianNB(shared_variance=True), LDA(), LDA(shrinkage=0.2),
             LDA(covariance="diagonal"), QDA(), QDA(reg_param=0.1, divisor="n-1"), RDA(),
             NearestCentroid()]
WHOLE = [LDA(shrinkage="auto"), QDA(shrinkage="auto"), RDA(alpha=[0.1, 0.6], gamma=[0.2, 0.9]),
         PlugInBayes(KernelDensity(bandwidth=0.5)), PlugInBayes(naive=True),
         PlugInBayes(KernelDensity(), search={"bandwidth": [0.1, 0.5]}, cv=3),
         PlugInBayes(GaussianMixture(2, random_state=0)),
         PlugInBayes(HistogramDensity(bins=4), naive=True)]


def iris():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    order = np.random.default_rng(0).permutation(150)
    return pl.DataFrame(X[order], schema=COLUMNS).with_columns(
        label=pl.Series(names[order]), note=pl.lit("n"))


def many(n=30_000):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    return pl.DataFrame(rng.normal(size=(n, 2)) + y[:, None], schema=["x", "z"]).with_columns(
        label=pl.Series(np.array(["u", "vv", "www"])[y]))


FLOWERS = iris()


def arrays(frame):
    return frame.select(COLUMNS).to_numpy(), frame["label"].to_numpy()


# Frames in, frames out


@pytest.mark.parametrize("model", [*STREAMING, *WHOLE], ids=repr)
def test_a_table_is_its_matrix(model):
    X, y = arrays(FLOWERS)
    table = TableClassifier(model, features=COLUMNS).fit(FLOWERS)
    direct = type(model)(**model.get_params(deep=False)).fit(X, y)
    joint = direct.predict_joint_log_proba(X)
    np.testing.assert_allclose(table.predict_joint_log_proba(FLOWERS), joint, rtol=1e-9, atol=1e-9)
    predicted = table.predict(FLOWERS, probability=True, scores=True)
    assert predicted.columns == [*FLOWERS.columns, "predicted", "probability", "scores"]
    assert predicted["predicted"].to_list() == direct.predict(X).tolist()
    np.testing.assert_allclose(predicted["probability"], direct.predict_proba(X).max(axis=1),
                               rtol=1e-8)
    np.testing.assert_allclose(predicted["scores"].struct.unnest().to_numpy(), joint,
                               rtol=1e-9, atol=1e-9)
    assert table.score(FLOWERS) == direct.score(X, y)
    assert table.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert not hasattr(model, "classes_")


def test_nothing_runs_before_collect(tmp_path):
    model = TableClassifier().fit(FLOWERS)
    ran = []

    def seen(frame):
        ran.append(frame.height)
        return frame

    lazy = model.predict(FLOWERS.lazy().map_batches(seen, schema=FLOWERS.schema))
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema().names() == [*FLOWERS.columns, "predicted"]
    assert not ran
    assert lazy.collect().equals(model.predict(FLOWERS))
    assert ran
    FLOWERS.write_parquet(tmp_path / "f.parquet")
    from_file = model.predict(tmp_path / "f.parquet", scores=True)
    assert isinstance(from_file, pl.LazyFrame)
    assert from_file.collect().equals(model.predict(FLOWERS, scores=True))
    assert from_file.head(3).select("predicted").collect().height == 3


def test_a_fit_is_logged_and_its_columns_are_known(caplog):
    with caplog.at_level(logging.INFO, "textnb"):
        model = TableClassifier().fit(FLOWERS)
    assert "GaussianNB, 150 rows, 4 features, 3 classes" in caplog.text
    assert model.input_columns(FLOWERS.lazy()) == COLUMNS
    assert model.label_column == "label"


@pytest.mark.parametrize("model", STREAMING, ids=repr)
def test_batches_of_a_file_are_one_fit(tmp_path, model):
    frame = many()
    frame.write_parquet(tmp_path / "m.parquet", row_group_size=1000)
    X, y = frame.select("x", "z").to_numpy(), frame["label"].to_numpy()
    whole = type(model)(**model.get_params()).fit(X, y)
    batched = []
    table = TableClassifier(model).fit(tmp_path / "m.parquet", progress=batched.append)
    assert sum(batched) == 30_000
    assert len(batched) > 1
    np.testing.assert_allclose(table.estimator_.predict_joint_log_proba(X),
                               whole.predict_joint_log_proba(X), rtol=1e-9, atol=1e-9)
    thirds = TableClassifier(model)
    for part in (frame[:11_000], frame[11_000:11_001].lazy(), frame[11_001:]):
        thirds.partial_fit(part)
        assert thirds.classes_.tolist() == ["u", "vv", "www"]
    np.testing.assert_allclose(thirds.estimator_.predict_joint_log_proba(X),
                               whole.predict_joint_log_proba(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", [*WHOLE, MultinomialNB()], ids=repr)
def test_models_that_need_all_rows_say_so(model):
    numbers = FLOWERS.with_columns(pl.col(COLUMNS).round())
    for classifier in (TableClassifier(model), TableClassifier(model).fit(numbers)):
        with pytest.raises(ParameterError, match="needs all rows at once: use fit"):
            classifier.partial_fit(numbers)


# Which columns


@pytest.mark.parametrize(("features", "names"), [
    (None, COLUMNS), (["b", "a"], ["b", "a"]), ("c", ["c"]), (cs.numeric(), COLUMNS),
    (cs.by_name("a", "d"), ["a", "d"]), (cs.float() - cs.by_name("b"), ["a", "c", "d"])])
def test_feature_columns(features, names):
    model = TableClassifier(features=features).fit(FLOWERS)
    assert (model.features_, model.feature_names_) == (names, names)


def test_the_label_is_no_feature():
    numbers = FLOWERS.with_columns(label=pl.col("label").rank("dense").cast(pl.Int8))
    for features in (None, cs.numeric()):
        model = TableClassifier(features=features).fit(numbers)
        assert model.features_ == COLUMNS
        assert model.classes_.tolist() == [1, 2, 3]


@pytest.mark.parametrize(("features", "words"), [
    (["a", "z"], "'z'"), (["note"], "feature column 'note' must be numeric; it is String"),
    ([], "no numeric column"), (cs.by_dtype(pl.Date), "no numeric column"), ("A", "no column 'A'"),
    (["a", "a"], "'a'"), (["a", "label"], "label")])
def test_columns_that_are_no_features(features, words):
    numbers = FLOWERS.with_columns(label=pl.col("label").rank("dense").cast(pl.Int8))
    for frame in (FLOWERS, numbers):
        with pytest.raises(SchemaError, match=words):
            TableClassifier(features=features).fit(frame)


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("call", ["predict", "predict_joint_log_proba", "partial_fit", "score"])
def test_a_frame_without_a_feature_or_with_words_in_it(call, missing):
    model = TableClassifier(features=["a", "b"]).fit(FLOWERS)
    frame = FLOWERS.drop("b") if missing else FLOWERS.with_columns(b=pl.lit("x"))
    with pytest.raises(SchemaError, match="'b'"):
        getattr(model, call)(frame)


@pytest.mark.parametrize("dtype", [
    pl.Float32, pl.Int8, pl.UInt8, pl.UInt64, pl.Int64, pl.Boolean, pl.Decimal(10, 2)], ids=str)
def test_columns_of_any_number_type(dtype):
    frame = FLOWERS.with_columns(pl.col(COLUMNS).gt(3) if dtype == pl.Boolean
                                 else pl.col(COLUMNS).cast(dtype))
    wide = frame.with_columns(pl.col(COLUMNS).cast(pl.Float64))
    model, expected = (TableClassifier(NearestCentroid()).fit(each) for each in (frame, wide))
    np.testing.assert_allclose(model.predict_joint_log_proba(frame),
                               expected.predict_joint_log_proba(wide), rtol=1e-9, atol=1e-9)
    assert model.predict(frame)["predicted"].equals(expected.predict(wide)["predicted"])


def packed(*groups, dtype=pl.Float64):
    columns = [pl.concat_arr(group).cast(pl.Array(dtype, len(group))).alias(f"g{i}")
               for i, group in enumerate(groups)]
    return FLOWERS.select(*columns, "label")


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_an_array_column_is_one_feature_per_element(dtype):
    frame = packed(["a", "b", "c"], ["d"], dtype=dtype)
    model = TableClassifier(LDA()).fit(frame)
    assert model.features_ == ["g0", "g1"]
    assert model.feature_names_ == ["g0[0]", "g0[1]", "g0[2]", "g1[0]"]
    assert model.linear_form().terms == ("g0[0]", "g0[1]", "g0[2]", "g1[0]")
    flat = TableClassifier(LDA()).fit(FLOWERS.with_columns(
        pl.col(COLUMNS).cast(dtype).cast(pl.Float64)))
    np.testing.assert_allclose(model.linear_form().weights, flat.linear_form().weights, rtol=1e-6)
    assert model.predict(frame)["predicted"].equals(flat.predict(FLOWERS)["predicted"])


@pytest.mark.parametrize("call", ["predict", "predict_joint_log_proba", "partial_fit"])
@pytest.mark.parametrize("groups", [
    (["a", "b"], ["d"]), (["a", "b", "c", "d"], ["d"]), (["a"], ["b", "c", "d"])],
    ids=["narrower", "wider", "widths that add up"])
def test_an_array_of_another_width_is_refused(call, groups):
    model = TableClassifier().fit(packed(["a", "b", "c"], ["d"]))
    with pytest.raises(ValueError, match=r"g0|features"):
        getattr(model, call)(packed(*groups))


def test_an_array_of_arrays():
    X = FLOWERS.select(COLUMNS).to_numpy()
    frame = pl.DataFrame({"p": X.reshape(-1, 2, 2)}).with_columns(FLOWERS["label"])
    model = TableClassifier().fit(frame)
    np.testing.assert_allclose(model.estimator_.theta_, TableClassifier().fit(
        FLOWERS).estimator_.theta_, rtol=1e-12)
    X[7, 3] = np.nan
    bad = pl.DataFrame({"p": X.reshape(-1, 2, 2)}).with_columns(FLOWERS["label"])
    with pytest.raises(DataError, match="'p' is NaN or infinite in row 7"):
        TableClassifier().fit(bad)


# Values that are none


@pytest.mark.parametrize(("value", "what"), [
    (None, "null"), (float("nan"), "NaN or infinite"), (float("inf"), "NaN or infinite"),
    (float("-inf"), "NaN or infinite")], ids=str)
@pytest.mark.parametrize("rows", [[0], [20_000, 20_001, 29_999], [8192]], ids=str)
@pytest.mark.parametrize("model", [GaussianNB(), LDA(shrinkage="auto")], ids=repr)
def test_a_value_that_is_none_is_named_by_column_and_row(value, what, rows, model):
    frame = many()
    bad = frame.with_columns(z=pl.when(pl.int_range(pl.len()).is_in(rows)).then(
        pl.lit(value, dtype=pl.Float64)).otherwise("z"))
    told = rf"feature column 'z' is {what} in row {rows[0]} \(counted from 0\)"
    with pytest.raises(DataError, match=told):
        TableClassifier(model).fit(bad)
    with pytest.raises(DataError, match=told):
        TableClassifier(model).fit(bad.lazy())
    fitted = TableClassifier(model).fit(frame)
    with pytest.raises(DataError, match=told):
        fitted.predict_joint_log_proba(bad)
    # What the message advises.
    TableClassifier(model).fit(bad.filter(pl.col("z").is_finite()))
    TableClassifier(model).fit(bad.with_columns(
        pl.when(pl.col("z").is_finite()).then("z").fill_null(0.0)))


@pytest.mark.parametrize("lazy", [False, True])
def test_a_row_that_can_t_be_predicted_is_named(lazy):
    frame = many()
    bad = frame.with_columns(z=pl.when(pl.int_range(pl.len()) == 20_000).then(
        float("nan")).otherwise("z"))
    model = TableClassifier().fit(frame)
    # The engine hands a lazy frame over in pieces, and does not say which.
    where = "in some row" if lazy else "in row 20000"
    with pytest.raises(DataError, match=f"'z' is NaN or infinite {where}"):
        model.predict(bad.lazy() if lazy else bad).lazy().collect()


@pytest.mark.parametrize("value", [None, float("nan")], ids=str)
def test_a_value_of_an_array_that_is_none(value):
    rows = [[1.0, 2.0], [3.0, 1.0], [2.0, value], [5.0, 4.0]]
    frame = pl.DataFrame({"p": rows, "label": list("xyxy")},
                         schema_overrides={"p": pl.Array(pl.Float64, 2)})
    with pytest.raises(DataError, match=r"feature column 'p' is .* in row 2 "):
        TableClassifier().fit(frame)
    with pytest.raises(DataError, match="feature column 'p' is null in row 1 "):
        TableClassifier().fit(pl.DataFrame(
            {"p": [[1.0, 2.0], None, [2.0, 1.0]], "label": list("xyx")},
            schema_overrides={"p": pl.Array(pl.Float64, 2)}))


# Labels


@pytest.mark.parametrize(("labels", "classes"), [
    (pl.Series([3, -1] * 75, dtype=pl.Int16), [-1, 3]),
    (pl.Series([3, 9] * 75, dtype=pl.UInt8), [3, 9]),
    (pl.Series([True, False] * 75), [False, True]),
    (pl.Series(["p", "qqq"] * 75, dtype=pl.Categorical), ["p", "qqq"]),
    (pl.Series(["p", "b"] * 75, dtype=pl.Enum(["p", "z", "b"])), ["b", "p"])], ids=str)
@pytest.mark.parametrize("model", [GaussianNB(), LDA(shrinkage="auto"), PlugInBayes()], ids=repr)
def test_labels_of_any_type(tmp_path, labels, classes, model):
    frame = FLOWERS.with_columns(label=labels)
    fitted = TableClassifier(model).fit(frame)
    assert fitted.classes_.tolist() == classes
    predicted = fitted.predict(frame)
    assert set(predicted["predicted"].to_list()) <= set(classes)
    hits = predicted["predicted"].cast(pl.String) == labels.cast(pl.String)
    assert fitted.score(frame) == pytest.approx(hits.mean())
    outside = TableClassifier(model).fit(FLOWERS.drop("label"), labels)
    assert np.array_equal(outside.predict_joint_log_proba(frame),
                          fitted.predict_joint_log_proba(frame))
    fitted.save(tmp_path / "m.textnb")
    assert textnb.load(tmp_path / "m.textnb").classes_.tolist() == classes


def test_labels_that_are_missing():
    with pytest.raises(SchemaError, match="no column 'label'"):
        TableClassifier().fit(FLOWERS.drop("label"))
    with pytest.raises(SchemaError, match="no column 'species'"):
        TableClassifier(label="species").fit(FLOWERS)
    frame = many().with_columns(label=pl.when(pl.int_range(pl.len()) == 20_000).then(
        None).otherwise("label"))
    for model in (GaussianNB(), LDA(shrinkage="auto")):
        with pytest.raises(DataError, match="label column 'label' is null in row 20000"):
            TableClassifier(model).fit(frame)
    with pytest.raises(SchemaError, match="label"):
        TableClassifier().fit(FLOWERS.with_columns(label=pl.Series([0.5, 1.5] * 75)))


@pytest.mark.parametrize("model", [GaussianNB(), RDA(alpha=[0.1, 0.2])], ids=repr)
def test_no_rows_and_one_class(model):
    with pytest.raises(DataError, match="no rows"):
        TableClassifier(model).fit(FLOWERS.clear())
    with pytest.raises(DataError, match=r"greater than one|one class"):
        TableClassifier(model).fit(FLOWERS.filter(label="setosa"))
    fitted = TableClassifier(GaussianNB()).fit(FLOWERS)
    assert fitted.predict(FLOWERS.clear()).columns == [*FLOWERS.columns, "predicted"]
    assert fitted.predict_joint_log_proba(FLOWERS.clear()).shape == (0, 3)


# Model files


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("model", STREAMING, ids=repr)
def test_a_stored_model_learns_on(tmp_path, model, n):
    fitted = TableClassifier(model, features=COLUMNS[:n]).fit(FLOWERS[:100])
    fitted.save(tmp_path / "m.textnb")
    again = textnb.load(tmp_path / "m.textnb")
    again.partial_fit(FLOWERS[100:])
    fitted.partial_fit(FLOWERS[100:])
    assert np.array_equal(again.predict_joint_log_proba(FLOWERS),
                          fitted.predict_joint_log_proba(FLOWERS))


def test_a_mixture_without_a_seed_is_stored_as_it_is(tmp_path):
    """Estimated again from its rows, it would be another mixture: stored whole, or not at all."""
    model = TableClassifier(PlugInBayes(GaussianMixture(4, init_params="random"))).fit(FLOWERS)
    try:
        model.save(tmp_path / "m.textnb")
    except ParameterError:
        return
    again = textnb.load(tmp_path / "m.textnb")
    np.testing.assert_array_equal(again.predict_joint_log_proba(FLOWERS),
                                  model.predict_joint_log_proba(FLOWERS))


# The command line
