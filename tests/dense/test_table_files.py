"""Model files of feature tables whose values were changed and signed again."""

import numpy as np
import polars as pl
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import textnb
from tests.storage.members import arrays_of, with_array, with_value
from textnb import (
    GaussianNB,
    LinearDiscriminantAnalysis,
    ModelFileError,
    ParameterError,
    PlugInBayes,
    RegularizedDiscriminantAnalysis,
    TableClassifier,
)
from textnb.bayes.histogram import MAX_BINS
from textnb.models.histogram import HistogramDensity

MIXTURE = PlugInBayes(GaussianMixture(2, random_state=0))
SEARCH = PlugInBayes(KernelDensity(), search={"bandwidth": [0.3, 1.0]}, cv=3)


def rows(label=("a", "b")):
    y = np.arange(60) % 2
    X = np.random.default_rng(0).normal(size=(60, 2)) + y[:, None]
    return pl.DataFrame({"x": X[:, 0], "p": X}, schema_overrides={
        "p": pl.Array(pl.Float64, 2)}).with_columns(label=pl.Series([label[k] for k in y]))


def stored(model, tmp_path, frame=None, **settings):
    path = tmp_path / "sound.textnb"
    TableClassifier(model, **settings).fit(rows() if frame is None else frame).save(path)
    return path.read_bytes()


def refused(content, tmp_path, words=None):
    path = tmp_path / "given.textnb"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=words):
        textnb.load(path)


@pytest.mark.parametrize(("model", "documents", "words"), [
    (GaussianNB(), [0, 0], "no class has documents"),
    (LinearDiscriminantAnalysis(shrinkage=0.1), [0, 0], "no class has documents"),
    (GaussianNB(), [60, 0], "without documents has moments"),
    (PlugInBayes(), [0, 0], "documents"), (PlugInBayes(), [31, 30], "not those of its rows"),
    (PlugInBayes(), [29, 31], "not those of its rows")], ids=str)
def test_documents_that_do_not_match(tmp_path, model, documents, words):
    content = stored(model, tmp_path)
    refused(with_value(content, ("classes", "documents"), documents), tmp_path, words)


LDA, RDA = LinearDiscriminantAnalysis, RegularizedDiscriminantAnalysis
LEARNED = {
    LDA(shrinkage="auto"): [{}, *({"fourth": value} for value in (
        [], [1.0], [1.0] * 4, None, [[1.0] * 2], ["a", "b", "c"]))],
    RDA(alpha=[0.1, 0.6]): [{}, *({"chosen": value} for value in (
        [0.1], 3, [0.1, 2.0], ["a", "b"], [0.1, 0.5, 0.9]))]}


@pytest.mark.parametrize(("model", "learned"), [
    (model, learned) for model, values in LEARNED.items() for learned in values],
    ids=lambda value: str(value)[:40])
def test_what_was_learned_that_was_changed(tmp_path, model, learned):
    content = stored(model, tmp_path, features=["p"])
    refused(with_value(content, ("estimator", "learned"), learned), tmp_path)


@pytest.mark.parametrize("model", [GaussianNB(), LDA()], ids=repr)
def test_sums_of_squares_are_not_below_zero(tmp_path, model):
    content = stored(model, tmp_path, features=["p"])
    refused(with_array(content, "scatter", -arrays_of(content)["scatter"]), tmp_path)


class Own(KernelDensity):
    """A density that no file holds."""


@pytest.mark.parametrize(("model", "message"), [
    (PlugInBayes(Own()), "density Own can't be saved"),
    (PlugInBayes(GaussianMixture(1, n_init=3, max_iter=5000, random_state=0)), "keep n_init")],
    ids=["own density", "a slow mixture"])
def test_what_can_not_be_stored(tmp_path, model, message):
    with pytest.raises(ParameterError, match=message):
        stored(model, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("labels", [[1, 2**63], [-2**63 - 1, 0], [1, 2**64]], ids=str)
@pytest.mark.parametrize("model", [GaussianNB(), PlugInBayes()], ids=repr)
def test_labels_beyond_64_bits(tmp_path, model, labels):
    content = stored(model, tmp_path, rows((1, 2)))
    refused(with_value(content, ("classes", "labels"), labels), tmp_path, "beyond 64 bits")


@pytest.mark.parametrize("names", [
    ["x", "p[1]", "p[0]"], ["p[0]", "p[1]", "x"], ["x", "p[0]", "p[0]"], ["x", "p[0]", "p[2]"],
    ["x", "p[0]", "q"], ["x[0]", "x[1]", "p"[:0]], ["x", "x", "p"], ["p", "x", "p[0]"]], ids=str)
def test_features_that_are_not_those_of_the_columns(tmp_path, names):
    content = stored(GaussianNB(), tmp_path)
    refused(with_value(content, ("feature_names",), names), tmp_path, "features")
    repeated = with_value(content, ("settings", "features"), ["x", "p", "p"])
    refused(repeated, tmp_path, "columns")


def test_columns_called_as_elements_of_others_are_loaded(tmp_path):
    frame = rows().rename({"x": "p[2]"})
    for features in (["p", "p[2]"], ["p[2]", "p"]):
        path = tmp_path / "m.textnb"
        model = TableClassifier(features=features).fit(frame)
        model.save(path)
        assert textnb.load(path).predict(frame).equals(model.predict(frame))


@pytest.fixture(scope="module")
def stored_mixture(tmp_path_factory):
    return stored(MIXTURE, tmp_path_factory.mktemp("mixture"))


@pytest.mark.parametrize("work", [
    {"n_init": 10_000, "max_iter": 10_000, "tol": 0.0}, {"n_init": 101}, {"max_iter": 10_001},
    {"max_iter": 10**30}, {"n_init": 0}, {"n_init": "9"}, {"max_iter": 5.0}], ids=str)
def test_mixtures_that_would_take_hours(tmp_path, stored_mixture, work):
    path = ("estimator", "parameters", "density", "parameters")
    settings = {**MIXTURE.density.get_params(), **work}
    refused(with_value(stored_mixture, path, settings), tmp_path, "too long to estimate")


@pytest.mark.parametrize("chosen", [
    [{"bandwidth": 0.5}, {"bandwidth": 0.3}], [{"bandwidth": 0.3}], [{}, {}], ["x", "y"],
    [{"kernel": "tophat"}, {"kernel": "tophat"}], [{"bandwidth": True}, {"bandwidth": 1.0}],
    [{"bandwidth": 0.3, "rtol": 1.0}, {"bandwidth": 0.3}], [None, None], 7, None], ids=str)
def test_choices_that_were_not_open(tmp_path, chosen):
    content = stored(SEARCH, tmp_path)
    refused(with_value(content, ("estimator", "learned", "chosen"), chosen), tmp_path, "sound")


def test_a_choice_that_would_take_hours(tmp_path):
    model = PlugInBayes(GaussianMixture(random_state=0), search={"max_iter": [50, 60]}, cv=2)
    content = stored(model, tmp_path)
    slow = with_value(content, ("estimator", "parameters", "search"), {"max_iter": [10**6, 50]})
    refused(with_value(slow, ("estimator", "learned", "chosen"), [{"max_iter": 10**6}] * 2),
            tmp_path, "too long to estimate")


@pytest.mark.parametrize("bins", [MAX_BINS + 1, 10**12, 0, 2.5, "zz", [1.0, 0.0]], ids=str)
def test_bins_of_a_stored_histogram(tmp_path, bins):
    content = stored(PlugInBayes(HistogramDensity(bins=4)), tmp_path)
    path = ("estimator", "parameters", "density", "parameters", "bins")
    refused(with_value(content, path, bins), tmp_path, "bins")


def test_bins_that_take_more_memory_than_is_allowed(tmp_path):
    path = tmp_path / "given.textnb"
    content = stored(PlugInBayes(HistogramDensity(bins=4), naive=True), tmp_path)
    path.write_bytes(with_value(
        content, ("estimator", "parameters", "density", "parameters", "bins"), MAX_BINS))
    with pytest.raises(ModelFileError, match="max_bytes="):
        textnb.load(path, max_bytes=100_000_000)


@pytest.mark.parametrize("model", [SEARCH, MIXTURE, *(
    PlugInBayes(HistogramDensity(bins=bins)) for bins in (3, "fd", [-2.0, 0.0, 3.0]))], ids=repr)
def test_densities_come_back(tmp_path, model):
    fitted = TableClassifier(model).fit(rows())
    fitted.save(tmp_path / "m.textnb")
    again = textnb.load(tmp_path / "m.textnb")
    assert np.array_equal(again.predict_joint_log_proba(rows()),
                          fitted.predict_joint_log_proba(rows()))


def test_a_model_with_announced_classes_comes_back(tmp_path):
    model = TableClassifier().partial_fit(rows(), classes=["a", "b", "c"])
    model.save(tmp_path / "m.textnb")
    again = textnb.load(tmp_path / "m.textnb")
    assert again.predict(rows(), scores=True).equals(model.predict(rows(), scores=True))
    assert again.partial_fit(rows(("c", "c"))).classes_.tolist() == ["a", "b", "c"]
