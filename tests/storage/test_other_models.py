"""Models of feature tables, and of weights that are no counts: there and back, and hostile ones."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import textnb
from tests.storage.members import document_of, with_document, with_value
from textnb import (
    GaussianNB,
    LinearDiscriminantAnalysis,
    ModelFileError,
    MultinomialNB,
    NBLogisticRegression,
    NearestCentroid,
    ParameterError,
    PlugInBayes,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    SourceError,
    TableClassifier,
    TextClassifier,
    Tokenizer,
)
from textnb.models.histogram import HistogramDensity

Load = Callable[..., Any]
REFUSED = (ModelFileError, SourceError)
TEXTS = ["free money now money", "cheap free offer", "hello friend lunch", "meeting at lunch",
         "naïve हिन्दी 東京 free", "free lunch"]
LABELS = ["spam", "spam", "ham", "ham", "ham", "spam"]


def table(labels: list[Any] | None = None) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(90, 3)) + np.repeat(np.arange(3), 30)[:, None] * [1.0, -2.0, 0.5]
    names = ["a", "[b]", "日本"] if labels is None else labels
    return pl.DataFrame(rows, schema=["x", "y z", "é"], orient="row").with_columns(
        label=pl.Series([names[k] for k in np.repeat(np.arange(3), 30)]))


ESTIMATORS = [
    GaussianNB(), GaussianNB(var_smoothing=0.1), GaussianNB(shared_variance=True),
    GaussianNB(priors=[0.5, 0.25, 0.25]), LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(shrinkage=0.3, divisor="n-K"),
    LinearDiscriminantAnalysis(shrinkage="auto"), LinearDiscriminantAnalysis(covariance="diagonal"),
    QuadraticDiscriminantAnalysis(), QuadraticDiscriminantAnalysis(reg_param=0.1),
    QuadraticDiscriminantAnalysis(shrinkage="auto", divisor="n-1"),
    RegularizedDiscriminantAnalysis(alpha=0.2, gamma=0.7),
    RegularizedDiscriminantAnalysis(alpha=[0.1, 0.5, 0.9], gamma=[0.0, 0.5], cv=3),
    NearestCentroid(), NearestCentroid(priors=np.array([0.2, 0.3, 0.5])),
    PlugInBayes(), PlugInBayes(KernelDensity(bandwidth=0.7)), PlugInBayes(HistogramDensity(bins=4)),
    PlugInBayes(GaussianMixture(2, random_state=0), naive=True)]


def same(first: Any, second: Any) -> bool:
    return bool(first.dtype == second.dtype and first.shape == second.shape
                and first.tobytes() == second.tobytes())


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_every_model_of_tables_comes_back(estimator: Any, tmp_path: Path) -> None:
    frame = table()
    model = TableClassifier(estimator).fit(frame)
    model.save(tmp_path / "model.textnb")
    again = textnb.load(tmp_path / "model.textnb")
    assert isinstance(again, TableClassifier)
    assert again.features_ == model.features_ == ["x", "y z", "é"]
    assert again.feature_names_ == model.feature_names_
    assert again.classes_.tolist() == ["[b]", "a", "日本"]
    assert type(again.estimator_) is type(model.estimator_)
    assert again.predict(frame, probability=True, scores=True).equals(
        model.predict(frame, probability=True, scores=True))
    assert same(again.predict_joint_log_proba(frame), model.predict_joint_log_proba(frame))
    # And the file of the loaded model is the file.
    again.save(tmp_path / "again.textnb")
    assert (tmp_path / "again.textnb").read_bytes() == (tmp_path / "model.textnb").read_bytes()


@pytest.mark.parametrize("labels", [["", "\0", "a\nb"], [3, -1, 2**62], ["1", "2", "3"]], ids=repr)
def test_every_type_of_label_comes_back(labels: list[Any], tmp_path: Path) -> None:
    model = TableClassifier(label="label").fit(table(labels))
    model.save(tmp_path / "model.textnb")
    again = textnb.load(tmp_path / "model.textnb")
    assert again.classes_.tolist() == sorted(labels)
    assert again.predict(table()[:, :3]).equals(model.predict(table()[:, :3]))


@pytest.mark.parametrize("estimator", [GaussianNB(), LinearDiscriminantAnalysis()], ids=repr)
@pytest.mark.parametrize("features", [["x"], ["é", "x"]])
def test_features_come_back_in_their_order(
    estimator: Any, features: list[str], tmp_path: Path
) -> None:
    # One feature: the diagonal of its scatter is all of it.
    model = TableClassifier(estimator, features=features).fit(table())
    model.save(tmp_path / "model.textnb")
    again = textnb.load(tmp_path / "model.textnb")
    assert again.features_ == features
    assert same(again.predict_joint_log_proba(table()), model.predict_joint_log_proba(table()))


def test_an_array_column_comes_back(tmp_path: Path) -> None:
    frame = table().select("label", pixels=pl.concat_arr("x", "y z"))
    model = TableClassifier(GaussianNB()).fit(frame)
    model.save(tmp_path / "model.textnb")
    again = textnb.load(tmp_path / "model.textnb")
    assert again.feature_names_ == model.feature_names_
    assert again.predict(frame).equals(model.predict(frame))


def test_a_loaded_model_of_tables_learns_on(tmp_path: Path) -> None:
    frame = table().sample(fraction=1, shuffle=True, seed=3)
    model = TableClassifier(GaussianNB()).fit(frame[:50])
    model.save(tmp_path / "model.textnb")
    again = textnb.load(tmp_path / "model.textnb").partial_fit(frame[50:])
    assert same(again.predict_joint_log_proba(frame),
                model.partial_fit(frame[50:]).predict_joint_log_proba(frame))


def test_what_can_not_be_saved_is_said_and_leaves_no_file(tmp_path: Path) -> None:
    counts = pl.DataFrame({"a": [1, 0], "b": [0, 2], "label": ["x", "y"]})
    model = TableClassifier(MultinomialNB()).fit(counts)
    with pytest.raises(ParameterError, match="MultinomialNB on a feature table can't be saved"):
        model.save(tmp_path / "model.textnb")
    assert list(tmp_path.iterdir()) == []


# Weights


@pytest.mark.parametrize("estimator", [
    NBLogisticRegression(), NBLogisticRegression(l=0.5, C=0.1, beta=0.25),
    NBLogisticRegression(loss="hinge"), NBLogisticRegression(binarize=False)], ids=repr)
@pytest.mark.parametrize("limits", [
    {}, {"min_df": 2}, {"max_features": 3}, {"binary": True}, {"vocabulary": ["free", "lunch"]},
    {"tokenizer": Tokenizer(ngram_range=(1, 2))}], ids=repr)
@pytest.mark.parametrize("labels", [LABELS, [1, 2, 3, 1, 2, 3]], ids=["two", "three"])
def test_a_model_of_weights_comes_back(
    estimator: Any, limits: dict[str, Any], labels: list[Any], tmp_path: Path
) -> None:
    model = TextClassifier(estimator, **limits).fit(TEXTS, labels)
    model.save(tmp_path / "model.textnb")
    again = textnb.load(tmp_path / "model.textnb")
    assert again.vocabulary_ == model.vocabulary_
    assert again.classes_.tolist() == model.classes_.tolist()
    assert same(again.linear_form().weights, model.linear_form().weights)
    assert same(again.linear_form().intercept, model.linear_form().intercept)
    frame = pl.DataFrame({"text": TEXTS})
    assert again.predict(frame, explain=2).equals(model.predict(frame, explain=2))
    again.save(tmp_path / "again.textnb")
    assert (tmp_path / "again.textnb").read_bytes() == (tmp_path / "model.textnb").read_bytes()


# Hostile ones


def saved(model: Any, folder: Path) -> bytes:
    path = folder / "saved.textnb"
    model.save(path)
    return path.read_bytes()


@pytest.fixture
def weighed(tmp_path: Path) -> bytes:
    return saved(TextClassifier(NBLogisticRegression()).fit(TEXTS, LABELS), tmp_path)


@pytest.fixture
def moments(tmp_path: Path) -> bytes:
    return saved(TableClassifier(LinearDiscriminantAnalysis()).fit(table()), tmp_path)


@pytest.fixture
def diagonal(tmp_path: Path) -> bytes:
    return saved(TableClassifier(GaussianNB()).fit(table()), tmp_path)


@pytest.fixture
def densities(tmp_path: Path) -> bytes:
    return saved(TableClassifier(PlugInBayes(HistogramDensity(bins=4))).fit(table()), tmp_path)


def refused(load: Load, content: bytes) -> None:
    with pytest.raises(ModelFileError, match=r"given\.textnb "):
        load(content)


@pytest.mark.parametrize("value", [
    None, [], [0.0], [0.0, 0.0, 0.0], ["a", "b"], [None, 0.0], 1.0, {}, [[0.0], [0.0]],
    [10**400, 0.0], [True, "x"]], ids=lambda value: repr(value)[:20])
def test_intercepts_out_of_range_are_refused(load: Load, weighed: bytes, value: object) -> None:
    refused(load, with_value(weighed, ("intercept",), value))
    refused(load, with_value(weighed, ("intercept",), ...))


@pytest.mark.parametrize(("name", "value"), [
    ("C", 0), ("C", -1), ("C", "x"), ("C", None), ("C", [1.0]), ("beta", 2), ("beta", -1),
    ("beta", "x"), ("loss", "squared"), ("loss", None), ("l", -1), ("l", "x"), ("alpha", 1)])
def test_parameters_of_weights_out_of_range_are_refused(
    load: Load, weighed: bytes, name: str, value: object
) -> None:
    refused(load, with_value(weighed, ("estimator", "parameters", name), value))


@pytest.mark.parametrize("path", [
    ("settings", "features"), ("settings", "label"), ("feature_names",), ("estimator", "learned"),
    ("estimator", "name"), ("estimator", "parameters"), ("classes", "labels"),
    ("classes", "documents"), ("arrays", "means"), ("kind",)], ids="/".join)
@pytest.mark.parametrize("value", [None, 7, "x", [], [None], [["x"]], ["x"], {"x": 1}, -1, True],
                         ids=json.dumps)
def test_a_value_of_another_type_breaks_nothing(
    load: Load, moments: bytes, path: tuple[str, ...], value: Any
) -> None:
    content = with_value(moments, path, value)
    if (path, value) == (("settings", "label"), "x"):
        # There may be such a column.
        assert load(content).classes_.tolist() == ["[b]", "a", "日本"]
    elif path == ("estimator", "learned") and not value:
        # Nothing else was learned, however that is written.
        with contextlib.suppress(*REFUSED):
            load(content)
    else:
        refused(load, content)


@pytest.mark.parametrize(("name", "value"), [
    ("covariance", "round"), ("shrinkage", 2), ("shrinkage", -1), ("shrinkage", "some"),
    ("shrinkage", [0.1]), ("priors", [1.0]), ("priors", [0.5, 0.5, 0.5]), ("priors", "abc"),
    ("priors", [-1, 1, 1]), ("divisor", "m"), ("divisor", 0), ("n_components", "x"),
    ("allow_singular", "yes"), ("unknown", 1), ("store_covariance", True)])
def test_parameters_of_moments_out_of_range_are_refused(
    load: Load, moments: bytes, name: str, value: object
) -> None:
    refused(load, with_value(moments, ("estimator", "parameters", name), value))


@pytest.mark.parametrize("density", [
    None, "KernelDensity", {}, {"name": "KernelDensity"}, {"name": "os.system", "parameters": {}},
    {"name": "Pipeline", "parameters": {"steps": []}}, {"name": "HistogramDensity"},
    {"name": "HistogramDensity", "parameters": {"bins": 10**12}},
    {"name": "HistogramDensity", "parameters": {"bins": -1}},
    {"name": "HistogramDensity", "parameters": {"bins": "many"}},
    {"name": "HistogramDensity", "parameters": {"bins": 4, "l": -1}},
    {"name": "HistogramDensity", "parameters": {"x": 1}},
    {"name": "KernelDensity", "parameters": {"bandwidth": -1}},
    {"name": "KernelDensity", "parameters": {"kernel": "x"}},
    {"name": "KernelDensity", "parameters": {"metric": "x"}},
    {"name": "GaussianMixture", "parameters": {"n_components": 10**9}},
    {"name": "GaussianMixture", "parameters": {"covariance_type": "x"}},
    {"name": "GaussianMixture", "parameters": {"init_params": "x"}}],
    ids=lambda value: json.dumps(value)[:60])
def test_densities_out_of_range_are_refused(
    load: Load, densities: bytes, density: object
) -> None:
    refused(load, with_value(densities, ("estimator", "parameters", "density"), density))


def test_a_file_of_one_kind_is_not_read_as_another(
    load: Load, weighed: bytes, moments: bytes, diagonal: bytes, densities: bytes, sound: bytes
) -> None:
    contents = {"weighed": weighed, "moments": moments, "densities": densities, "text": sound}
    for name, content in contents.items():
        for other, donor in contents.items():
            if name == other:
                continue
            for key in ("kind", "estimator", "settings"):
                mixed = {**document_of(content), key: document_of(donor)[key]}
                if mixed[key] != document_of(content)[key]:
                    refuse_or_load_whole(load, with_document(content, json.dumps(mixed)))
            mixed = {**document_of(donor), "arrays": document_of(content)["arrays"]}
            refused(load, with_document(content, json.dumps(mixed)))


def refuse_or_load_whole(load: Load, content: bytes) -> None:
    """Settings may fit another model of the same kind: then it must be one that works."""
    try:
        model = load(content)
    except REFUSED:
        return
    assert np.isfinite(model.linear_form().weights).all()


def test_a_file_whose_solver_was_ended_by_passes_answers_with_its_weights() -> None:
    path = Path(__file__).with_name("nblr_of_passes.textnb")
    model = textnb.load(path)
    with np.load(path) as arrays:
        np.testing.assert_array_equal(model.linear_form().weights, arrays["weights"])
    assert model.estimator_.get_params() == NBLogisticRegression().get_params()
