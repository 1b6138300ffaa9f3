"""scikit-learn's protocol, which the estimators speak without scikit-learn's base classes."""

import pickle
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import textnb
from tests.models.every_model import CLASSIFIERS
from textnb import GaussianNB, MultinomialNB, NBLinear, ParameterError, TextClassifier
from textnb.models import protocol

RANDOM = np.random.default_rng(0)
Y = np.repeat(["x", "y", "z"], 20)
X = np.minimum(RANDOM.poisson(
    np.array([[3, 1, 1, 2], [1, 3, 1, 2], [1, 1, 3, 2]])[np.repeat(np.arange(3), 20)]), 8)
WEIGHTED = [name for name, estimator in CLASSIFIERS.items()
            if "class_weight" in estimator.get_params()]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.sweep(5)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_each_works_in_what_scikit_learn_makes_of_estimators(name):
    estimator = CLASSIFIERS[name]
    alone = clone(estimator).fit(X, Y)
    assert repr(clone(estimator)) == repr(estimator)
    assert name in alone._repr_html_()
    for other in (pickle.loads(pickle.dumps(alone)), make_pipeline(
            FunctionTransformer(), clone(estimator)).fit(X, Y)):
        np.testing.assert_array_equal(other.predict(X), alone.predict(X))
    assert 0.3 < alone.score(X, Y) == float(np.mean(alone.predict(X) == Y))
    for whole in (CalibratedClassifierCV(estimator, cv=2), OneVsRestClassifier(estimator),
                  VotingClassifier([("a", estimator), ("b", MultinomialNB())]),
                  StackingClassifier([("a", estimator), ("b", MultinomialNB())], cv=2)):
        assert set(whole.fit(X, Y).predict(X)) <= {"x", "y", "z"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MultinomialNB", "NBLinear", "GaussianNB"])
def test_a_search_in_processes(name):
    estimator, grid = CLASSIFIERS[name], {"class_weight": [None, "balanced"]}
    search = GridSearchCV(estimator, grid, cv=2, n_jobs=2).fit(X, Y)
    assert search.best_params_.keys() == {"class_weight"}
    assert len(cross_val_score(estimator, X, Y, cv=2, n_jobs=2)) == 2


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_are_routed(name, routing):
    estimator, weight = CLASSIFIERS[name], np.where(Y == "x", 5.0, 1.0)
    asked = clone(estimator).set_fit_request(sample_weight=True)
    pipeline = make_pipeline(FunctionTransformer(), asked).fit(X, Y, sample_weight=weight)
    alone = clone(estimator).fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(X))
    assert clone(asked).get_metadata_routing().fit.requests == {"sample_weight": True}
    with pytest.raises(ValueError, match="sample_weight"):
        make_pipeline(FunctionTransformer(), clone(estimator)).fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize(("model", "rows"), [
    (TextClassifier(), ["xx" if label == "x" else "yy zz" for label in Y]),
    (textnb.TableClassifier(GaussianNB()), X)], ids=["texts", "table"])
def test_weights_are_routed_to_the_score_of_a_classifier(model, rows, routing):
    weight = np.where(Y == "x", 5.0, 1.0)
    # Without weights, scikit-learn routes None.
    pipeline = make_pipeline(FunctionTransformer(), clone(model)).fit(rows, Y)
    right = pipeline.predict(rows) == Y
    assert pipeline.score(rows, Y) == float(np.mean(right))
    assert np.isfinite(cross_val_score(pipeline, rows, Y, cv=3)).all()
    asked = make_pipeline(FunctionTransformer(), clone(model).set_fit_request(
        sample_weight=False).set_score_request(sample_weight=True) if isinstance(
            model, TextClassifier) else clone(model).set_score_request(sample_weight=True))
    assert asked.fit(rows, Y).score(rows, Y, sample_weight=weight) == pytest.approx(
        np.average(right, weights=weight), rel=1e-12)


def test_routing_must_be_on():
    with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
        MultinomialNB().set_score_request(sample_weight=True)


@pytest.mark.parametrize(("estimator", "method"), [
    (textnb.TableClassifier(GaussianNB()), "fit"),
    (textnb.LinearDiscriminantAnalysis(), "fit"), (textnb.NearestCentroid(), "partial_fit")])
def test_weights_are_not_asked_for_a_method_that_takes_none(estimator, method, routing):
    with pytest.raises(ParameterError, match=f"has no {method} that takes sample_weight"):
        getattr(estimator, f"set_{method}_request")(sample_weight=True)


def test_a_pickle_names_its_version(monkeypatch):
    now = pickle.dumps(MultinomialNB().fit(X, Y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(now)
    monkeypatch.setattr(protocol, "__version__", "99.0")
    with pytest.warns(textnb.TextnbWarning, match=r"pickled by textnb \S+, and this is 99\.0"):
        pickle.loads(now)


# Parameters


def test_a_parameter_that_is_not_known_is_named():
    with pytest.raises(ParameterError, match=(
            "MultinomialNB has no setting 'fitprior' - did you mean 'fit_prior'")):
        MultinomialNB(fitprior=False)
    for model, name in ((MultinomialNB(), "power"), (TextClassifier(), "estimator__x")):
        with pytest.raises(ValueError, match=f"Invalid parameter '{name.split('__')[-1]}' for"):
            model.set_params(**{name: 1})


@pytest.mark.parametrize(("model", "name"), [
    *((MultinomialNB(l=value), "l") for value in (2**2000, np.True_)),
    (MultinomialNB(class_prior=[2**2000, 1]), "class_prior"),
    (NBLinear(C=2**2000), "C"), (NBLinear(tol=2**2000), "tol"), (NBLinear(l=2**2000), "l"),
    (GaussianNB(var_smoothing=2**2000), "var_smoothing"),
    (GaussianNB(priors=[2**2000, 1]), "priors"),
    *((textnb.BernoulliNB(binarize=value), "binarize")
      for value in ("auto", [0.5], b"x", np.array([0.5, 1.0]), 2**2000)),
    (textnb.TfidfComplementNB(norm=np.array([True, False])), "norm")], ids=repr)
def test_a_value_that_no_parameter_takes_is_named(model, name):
    with pytest.raises(ParameterError, match=rf"^{name} must be"):
        model.fit([[1, 0], [0, 2], [1, 1]], ["a", "b", "a"])


def test_a_fraction_is_a_number():
    rows, labels = [[1, 0], [0, 2], [1, 1], [3, 1], [2, 2]], [*"aabbb"]
    one, other = (textnb.QuadraticDiscriminantAnalysis(reg_param=share).fit(rows, labels)
                  .predict_proba(rows) for share in (Fraction(1, 2), 0.5))
    np.testing.assert_array_equal(one, other)


# What is imported


LIGHT = """
import sys
import polars as pl
import textnb

texts = pl.DataFrame({"text": ["good film", "bad film"] * 3, "label": ["p", "n"] * 3})
numbers = pl.DataFrame({"a": [1.0, 2.0, 8.0, 9.5], "label": ["p", "p", "n", "n"]})
for model, rows in [
        (textnb.TextClassifier(), texts), (textnb.TextClassifier(textnb.NBLinear()), texts),
        (textnb.TableClassifier(), numbers),
        (textnb.TableClassifier(textnb.LinearDiscriminantAnalysis()), numbers)]:
    model.fit(rows).predict(rows, probability=True)
    model.save(sys.argv[1])
    textnb.load(sys.argv[1]).predict(rows)
print("sklearn" in sys.modules)
"""


def test_frames_need_no_scikit_learn(tmp_path):
    done = subprocess.run([sys.executable, "-c", LIGHT, str(tmp_path / "model.textnb")], check=True,
                          capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "False"
    assert not issubclass(MultinomialNB, sklearn.base.BaseEstimator)
