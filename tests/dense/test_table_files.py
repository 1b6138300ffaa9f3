"""Model files of feature tables: what comes back, and values that were changed and signed again."""

import numpy as np
import polars as pl
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import textnb
from tests.dense.samples import COLUMNS, LDA, RDA, STREAMING, flowers
from tests.storage.members import arrays_of, with_array, with_value
from textnb import GaussianNB, ModelFileError, ParameterError, PlugInBayes, TableClassifier
from textnb.bayes.histogram import MAX_BINS
from textnb.models.histogram import HistogramDensity

MIXTURE = PlugInBayes(GaussianMixture(2, random_state=0))
SEARCH = PlugInBayes(KernelDensity(), search={"bandwidth": [0.3, 1.0]}, cv=3)
SLOW = PlugInBayes(GaussianMixture(random_state=0), search={"max_iter": [50, 60]}, cv=2)


def rows(label=("a", "b")):
    y = np.arange(60) % 2
    X = np.random.default_rng(0).normal(size=(60, 2)) + y[:, None]
    return pl.DataFrame({"x": X[:, 0], "p": X}, schema_overrides={
        "p": pl.Array(pl.Float64, 2)}).with_columns(label=pl.Series([label[k] for k in y]))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The file of a model, which is fitted and saved once."""
    path, contents = tmp_path_factory.mktemp("stored") / "m.textnb", {}

    def content_of(model, **settings):
        key = repr((model, settings))
        if key not in contents:
            TableClassifier(model, **settings).fit(rows()).save(path)
            contents[key] = path.read_bytes()
        return contents[key]

    return content_of


def refused(content, tmp_path, words=None):
    path = tmp_path / "given.textnb"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=words):
        textnb.load(path)


# What comes back


def assert_comes_back(model, frame, path):
    model.save(path)
    again = textnb.load(path)
    assert np.array_equal(again.predict_joint_log_proba(frame),
                          model.predict_joint_log_proba(frame))
    return again


def test_a_mixture_without_a_seed_is_stored_as_it_is(tmp_path):
    """Estimated again from its rows, it would be another mixture: stored whole, or not at all."""
    model = TableClassifier(PlugInBayes(GaussianMixture(4, init_params="random"))).fit(rows())
    try:
        assert_comes_back(model, rows(), tmp_path / "m.textnb")
    except ParameterError:
        return


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("model", STREAMING, ids=repr)
def test_a_stored_model_learns_on(tmp_path, model, n):
    frame = flowers()
    fitted = TableClassifier(model, features=COLUMNS[:n]).fit(frame[:100])
    again = assert_comes_back(fitted, frame, tmp_path / "m.textnb")
    assert np.array_equal(again.partial_fit(frame[100:]).predict_joint_log_proba(frame),
                          fitted.partial_fit(frame[100:]).predict_joint_log_proba(frame))


def test_a_model_with_announced_classes_comes_back(tmp_path):
    model = TableClassifier().partial_fit(rows(), classes=["a", "b", "c"])
    again = assert_comes_back(model, rows(), tmp_path / "m.textnb")
    assert again.partial_fit(rows(("c", "c"))).classes_.tolist() == ["a", "b", "c"]


class Own(KernelDensity):
    """A density that no file holds."""


@pytest.mark.parametrize(("model", "message"), [
    (PlugInBayes(Own()), "density Own can't be saved"),
    (PlugInBayes(GaussianMixture(1, n_init=3, max_iter=5000, random_state=0)), "keep n_init")],
    ids=["own density", "a slow mixture"])
def test_what_can_not_be_stored(tmp_path, model, message):
    with pytest.raises(ParameterError, match=message):
        TableClassifier(model).fit(rows()).save(tmp_path / "m.textnb")
    assert list(tmp_path.iterdir()) == []


# Values that were changed: of which model, the path to the value, the value, and what is said


DOCUMENTS, LEARNED = ("classes", "documents"), ("estimator", "learned")
CHOSEN = (*LEARNED, "chosen")
DENSITY = ("estimator", "parameters", "density", "parameters")
CHANGES = [
    (GaussianNB(), DOCUMENTS, [0, 0], "no class has documents"),
    (LDA(shrinkage=0.1), DOCUMENTS, [0, 0], "no class has documents"),
    (GaussianNB(), DOCUMENTS, [60, 0], "without documents has moments"),
    (PlugInBayes(), DOCUMENTS, [0, 0], "documents"),
    (PlugInBayes(), DOCUMENTS, [31, 30], "not those of its rows"),
    (PlugInBayes(), DOCUMENTS, [29, 31], "not those of its rows"),
    *((LDA(shrinkage="auto"), LEARNED, learned, None) for learned in (
        {}, *({"fourth": value} for value in (
            [], [1.0], [1.0] * 4, None, [[1.0] * 2], ["a", "b", "c"])))),
    *((RDA(alpha=[0.1, 0.6]), LEARNED, learned, None) for learned in (
        {}, *({"chosen": value} for value in (
            [0.1], 3, [0.1, 2.0], ["a", "b"], [0.1, 0.5, 0.9])))),
    *((GaussianNB(), ("feature_names",), names, "features") for names in (
        ["x", "p[1]", "p[0]"], ["p[0]", "p[1]", "x"], ["x", "p[0]", "p[0]"], ["x", "p[0]", "p[2]"],
        ["x", "p[0]", "q"], ["x[0]", "x[1]", ""], ["x", "x", "p"], ["p", "x", "p[0]"])),
    (GaussianNB(), ("settings", "features"), ["x", "p", "p"], "columns"),
    *((MIXTURE, DENSITY, {**MIXTURE.density.get_params(), **work}, "too long to estimate")
      for work in ({"n_init": 10_000, "max_iter": 10_000, "tol": 0.0}, {"n_init": 101},
                   {"max_iter": 10_001}, {"max_iter": 10**30}, {"n_init": 0}, {"n_init": "9"},
                   {"max_iter": 5.0})),
    *((SEARCH, CHOSEN, chosen, "sound") for chosen in (
        [{"bandwidth": 0.5}, {"bandwidth": 0.3}], [{"bandwidth": 0.3}], [{}, {}], ["x", "y"],
        [{"kernel": "tophat"}] * 2, [{"bandwidth": True}, {"bandwidth": 1.0}],
        [{"bandwidth": 0.3, "rtol": 1.0}, {"bandwidth": 0.3}], [None, None], 7, None)),
]


@pytest.mark.parametrize(("model", "path", "value", "words"), CHANGES,
                         ids=lambda value: str(value)[:40])
def test_a_value_that_was_changed_is_refused(tmp_path, stored, model, path, value, words):
    # A model that keeps something that it learned has one column alone.
    settings = {"features": ["p"]} if path == LEARNED else {}
    refused(with_value(stored(model, **settings), path, value), tmp_path, words)


@pytest.mark.parametrize("model", [GaussianNB(), LDA()], ids=repr)
def test_sums_of_squares_below_zero_are_refused(tmp_path, stored, model):
    content = stored(model, features=["p"])
    refused(with_array(content, "scatter", -arrays_of(content)["scatter"]), tmp_path)


def test_a_choice_that_would_take_hours_is_refused(tmp_path, stored):
    slow = with_value(stored(SLOW), (*DENSITY[:2], "search"), {"max_iter": [10**6, 50]})
    refused(with_value(slow, CHOSEN, [{"max_iter": 10**6}] * 2), tmp_path, "too long to estimate")


def test_bins_that_take_more_memory_than_is_allowed(tmp_path, stored):
    path = tmp_path / "given.textnb"
    path.write_bytes(with_value(stored(PlugInBayes(HistogramDensity(bins=4), naive=True)),
                                (*DENSITY, "bins"), MAX_BINS))
    with pytest.raises(ModelFileError, match="max_bytes="):
        textnb.load(path, max_bytes=100_000_000)
