"""Feature tables in, tables out: their columns, labels, and learning in batches."""

import pickle

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from sklearn.base import clone

import textnb
from tests.dense import samples
from tests.dense.samples import COLUMNS, GAUSSIAN, LDA, close, every_gaussian, flowers, many, rows
from textnb import DataError, GaussianNB, NearestCentroid, PlugInBayes, TableClassifier

FLOWERS = flowers()


# Frames in, frames out


@pytest.mark.parametrize("model", [*samples.STREAMING, *samples.WHOLE], ids=repr)
def test_a_table_is_its_matrix(model):
    X, y = FLOWERS.select(COLUMNS).to_numpy(), FLOWERS["label"].to_numpy()
    model = clone(model)
    table, direct = TableClassifier(model, features=COLUMNS).fit(FLOWERS), clone(model).fit(X, y)
    joint = direct.predict_joint_log_proba(X)
    close(table.predict_joint_log_proba(FLOWERS), joint)
    predicted = table.predict(FLOWERS, probability=True, scores=True)
    assert predicted.columns == [*FLOWERS.columns, "predicted", "probability", "scores"]
    assert predicted["predicted"].to_list() == direct.predict(X).tolist()
    close(predicted["probability"], direct.predict_proba(X).max(axis=1), 1e-8)
    close(predicted["scores"].struct.unnest().to_numpy(), joint)
    assert table.score(FLOWERS) == direct.score(X, y)
    assert table.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert not hasattr(model, "classes_")


def test_nothing_runs_before_collect(tmp_path):
    model, ran = TableClassifier().fit(FLOWERS), []

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
    assert model.predict(FLOWERS.clear()).columns == [*FLOWERS.columns, "predicted"]
    assert model.predict_joint_log_proba(FLOWERS.clear()).shape == (0, 3)


# Columns


@pytest.mark.parametrize(("features", "names"), [
    (None, COLUMNS), (["b", "a"], ["b", "a"]), (cs.by_name("a", "d"), ["a", "d"])])
def test_feature_columns(features, names):
    model = TableClassifier(features=features).fit(FLOWERS)
    assert (model.features_, model.feature_names_) == (names, names)
    assert (model.input_columns(FLOWERS.lazy()), model.label_column) == (names, "label")


@pytest.mark.parametrize("dtype", [
    pl.Float32, pl.Int8, pl.UInt8, pl.UInt64, pl.Int64, pl.Boolean, pl.Decimal(10, 2)], ids=str)
def test_columns_of_any_number_type(dtype):
    frame = FLOWERS.with_columns(pl.col(COLUMNS).gt(3) if dtype == pl.Boolean
                                 else pl.col(COLUMNS).cast(dtype))
    wide = frame.with_columns(pl.col(COLUMNS).cast(pl.Float64))
    model, expected = (TableClassifier(NearestCentroid()).fit(each) for each in (frame, wide))
    close(model.predict_joint_log_proba(frame), expected.predict_joint_log_proba(wide))
    assert model.predict(frame)["predicted"].equals(expected.predict(wide)["predicted"])


def packed(*groups, dtype=pl.Float64):
    columns = [pl.concat_arr(group).cast(pl.Array(dtype, len(group))).alias(f"g{i}")
               for i, group in enumerate(groups)]
    return FLOWERS.select(*columns, "label")


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Decimal(10, 2)], ids=str)
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


@pytest.mark.parametrize("call", ["predict", "predict_joint_log_proba", "partial_fit", "score"])
@pytest.mark.parametrize("groups", [
    (["a", "b"], ["d"]), (["a", "b", "c", "d"], ["d"]), (["a", "b"], ["c", "d"])],
    ids=["narrower", "wider", "widths that add up"])
def test_an_array_of_another_width_is_refused(call, groups):
    model = TableClassifier().fit(packed(["a", "b", "c"], ["d"]))
    with pytest.raises(ValueError, match=r"g0|features"):
        getattr(model, call)(packed(*groups))


def test_an_array_of_arrays():
    X = FLOWERS.select(COLUMNS).to_numpy()
    frame = pl.DataFrame({"p": X.reshape(-1, 2, 2)}).with_columns(FLOWERS["label"])
    model = TableClassifier().fit(frame)
    close(model.estimator_.theta_, TableClassifier().fit(FLOWERS).estimator_.theta_, 1e-12)
    X[7, 3] = np.nan
    bad = pl.DataFrame({"p": X.reshape(-1, 2, 2)}).with_columns(FLOWERS["label"])
    with pytest.raises(DataError, match="'p' is NaN or infinite in row 7"):
        TableClassifier().fit(bad)


def test_features_of_an_array_are_named_by_place():
    X, y = samples.matrix(rows())
    model = TableClassifier(LDA(), label="x2").fit(X, y)
    assert model.feature_names_ == ["x0", "x1"]
    assert np.array_equal(model.predict(X.astype(object)), model.predict(X))


# Labels


@pytest.mark.parametrize(("labels", "classes"), [
    (pl.Series([3, -1] * 75, dtype=pl.Int16), [-1, 3]),
    (pl.Series([3, 9] * 75, dtype=pl.UInt8), [3, 9]),
    (pl.Series([True, False] * 75), [False, True]),
    (pl.Series(["p", "qqq"] * 75, dtype=pl.Categorical), ["p", "qqq"]),
    (pl.Series(["p", "b"] * 75, dtype=pl.Enum(["p", "z", "b"])), ["b", "p"])], ids=str)
@pytest.mark.parametrize("model", [GaussianNB(), LDA(shrinkage="auto"), PlugInBayes()], ids=repr)
def test_labels_of_any_type(reloaded, labels, classes, model):
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
    assert reloaded(fitted).classes_.tolist() == classes


@pytest.mark.parametrize(("known", "labels", "classes"), [
    (("a", "b"), (1, 2), None), ((1, 2), ("a", "b"), None), ((True, False), (1, 0), None),
    ((0, 1), (False, True), None), (("a", "b"), ("a", "b"), [3]), ((0, 1), (0, 1), ["a"]),
    ((0, 1), (0, 1), [True])], ids=str)
def test_labels_of_another_type_are_refused(known, labels, classes):
    fitted = TableClassifier().fit(rows(labels=known))
    with pytest.raises(DataError, match="type"):
        fitted.partial_fit(rows(labels=labels), classes=classes)
    assert fitted.classes_.tolist() == sorted(known)
    with pytest.raises((DataError, textnb.ParameterError)):
        TableClassifier().partial_fit(rows(labels=labels), classes=[*known, *(classes or [])])


# Batches


@pytest.mark.parametrize("model", samples.STREAMING, ids=repr)
def test_batches_of_a_file_are_one_fit(tmp_path, model):
    frame, batches = many(), []
    frame.write_parquet(tmp_path / "m.parquet", row_group_size=1000)
    X, y = samples.matrix(frame)
    expected = clone(model).fit(X, y).predict_joint_log_proba(X)
    table = TableClassifier(model).fit(tmp_path / "m.parquet", progress=batches.append)
    assert sum(batches) == 30_000
    assert len(batches) > 1
    close(table.estimator_.predict_joint_log_proba(X), expected)
    thirds = TableClassifier(model)
    for part in (frame[:11_000], frame[11_000:11_001].lazy(), frame[11_001:]):
        thirds.partial_fit(part)
        assert thirds.classes_.tolist() == ["u", "vv", "www"]
    close(thirds.estimator_.predict_joint_log_proba(X), expected)


@every_gaussian
def test_a_label_must_be_announced(model):
    fitted = TableClassifier(model).partial_fit(rows())
    state = dict(vars(fitted))
    stranger = rows(labels=("a", "c", "d"))
    with pytest.raises(DataError, match=r"'c', 'd' were not announced; known classes are 'a', 'b'"):
        fitted.partial_fit(stranger)
    assert vars(fitted) == state
    with pytest.raises(DataError, match="'d' were not announced"):
        fitted.partial_fit(stranger, classes=["c"])
    with pytest.raises(DataError, match="were not announced"):
        TableClassifier(model).partial_fit(stranger, classes=[])
    assert fitted.partial_fit(stranger, classes=["c", "d"]).classes_.tolist() == list("abcd")
    both = pl.concat([rows(), stranger])
    close(fitted.predict_joint_log_proba(both),
          TableClassifier(model).fit(both).predict_joint_log_proba(both))


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
    assert pickle.loads(pickle.dumps(fitted)).predict(frame).equals(fitted.predict(frame))
    fitted.partial_fit(frame.filter(label="b"))
    close(fitted.predict_joint_log_proba(frame),
          TableClassifier(model).fit(frame).predict_joint_log_proba(frame))


@pytest.mark.parametrize("model", [
    *GAUSSIAN[:3], NearestCentroid(), GaussianNB(priors=[0.3, 0.3, 0.4]),
    LDA(priors=[0.3, 0.3, 0.4])], ids=repr)
def test_a_class_without_rows_is_never_predicted(model):
    X, y = np.random.default_rng(0).normal(size=(30, 2)) + 6, np.arange(30) % 2
    model = clone(model).partial_fit(X, y, classes=[0, 1, 2])
    # Nothing is known of class 2, not even that it lies at the origin.
    assert set(model.predict(np.array([[0.0, 0.0], [6.0, 6.0], [-5.0, 1.0]])).tolist()) <= {0, 1}
    assert np.array_equal(model.predict_proba(X)[:, 2], np.zeros(30))
    without = clone(model).set_params(priors=model.priors and [0.5, 0.5]).fit(X, y)
    close(model.predict_proba(X)[:, :2], without.predict_proba(X))


# What fails changes nothing


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


@pytest.mark.parametrize(("model", "batch", "labels", "message"), [
    *((model, np.full((1, 13), np.nan), [0], "NaN")
      for model in (GaussianNB(), LDA(), NearestCentroid())),
    (samples.QDA(), np.zeros((1, 13)), [9], r"class .*9.* has one row"),
    (samples.QDA(), np.zeros((1, 13)), [0], r"class .*9.* has 0 rows, and its covariance needs 2")],
    ids=["gaussian", "linear", "centroid", "one row", "no row"])
def test_a_batch_that_is_refused_leaves_the_model_as_it_was(model, batch, labels, message):
    X, y = samples.wine()
    before = model.fit(X, y).predict_joint_log_proba(X)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(batch, labels, classes=[9] if message[0] == "c" else None)
    assert np.array_equal(model.predict_joint_log_proba(X), before)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.class_count_.sum() == model.statistics_.class_count.sum() == 178
