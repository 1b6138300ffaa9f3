"""scikit-learn's protocol, which the estimators speak without scikit-learn's base classes."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import polars as pl
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
from textnb import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NBLinear,
    NBLogisticRegression,
    NearestCentroid,
    ParameterError,
    PlugInBayes,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    TableClassifier,
    TextClassifier,
    TextnbWarning,
    TfidfComplementNB,
)
from textnb.models import protocol

COUNTS = [MultinomialNB(), BernoulliNB(), ComplementNB(), TfidfComplementNB(), NBLinear(),
          NBLogisticRegression(), CategoricalNB(min_categories=9)]
TABLES = [GaussianNB(), LinearDiscriminantAnalysis(), NearestCentroid(),
          QuadraticDiscriminantAnalysis(reg_param=0.1), RegularizedDiscriminantAnalysis(),
          PlugInBayes()]
WEIGHTED = [*COUNTS, GaussianNB()]


@pytest.fixture
def rows() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    labels = np.repeat(["x", "y", "z"], 20)
    means = np.array([[3, 1, 1, 2], [1, 3, 1, 2], [1, 1, 3, 2]])[np.repeat(np.arange(3), 20)]
    return np.minimum(random.poisson(means), 8), labels


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("estimator", [*COUNTS, *TABLES], ids=lambda each: type(each).__name__)
def test_each_works_where_scikit_learn_puts_estimators_together(
    estimator: Any, rows: Any
) -> None:
    X, y = rows
    alone = clone(estimator).fit(X, y)
    assert repr(clone(estimator)) == repr(estimator)
    assert type(estimator).__name__ in alone._repr_html_()
    for other in (pickle.loads(pickle.dumps(alone)), make_pipeline(
            FunctionTransformer(), clone(estimator)).fit(X, y)):
        np.testing.assert_array_equal(other.predict(X), alone.predict(X))
    assert 0.3 < alone.score(X, y) == float(np.mean(alone.predict(X) == y))
    for whole in (CalibratedClassifierCV(estimator, cv=2), OneVsRestClassifier(estimator),
                  VotingClassifier([("a", estimator), ("b", MultinomialNB())]),
                  StackingClassifier([("a", estimator), ("b", MultinomialNB())], cv=2)):
        assert set(whole.fit(X, y).predict(X)) <= {"x", "y", "z"}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [MultinomialNB(), NBLinear(), GaussianNB()],
                         ids=lambda each: type(each).__name__)
def test_a_search_in_processes(estimator: Any, rows: Any) -> None:
    X, y = rows
    grid = {"class_weight": [None, "balanced"]}
    found = GridSearchCV(estimator, grid, cv=2, n_jobs=2).fit(X, y)
    assert found.best_params_.keys() == {"class_weight"}
    assert len(cross_val_score(estimator, X, y, cv=2, n_jobs=2)) == 2


@pytest.mark.parametrize("estimator", WEIGHTED, ids=lambda each: type(each).__name__)
def test_weights_are_routed(estimator: Any, rows: Any, routing: None) -> None:
    X, y = rows
    weight = np.where(y == "x", 5.0, 1.0)
    asked = clone(estimator).set_fit_request(sample_weight=True)
    pipeline = make_pipeline(FunctionTransformer(), asked).fit(X, y, sample_weight=weight)
    alone = clone(estimator).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(X))
    assert clone(asked).get_metadata_routing().fit.requests == {"sample_weight": True}
    with pytest.raises(ValueError, match="sample_weight"):
        make_pipeline(FunctionTransformer(), clone(estimator)).fit(X, y, sample_weight=weight)


def test_routing_must_be_on() -> None:
    with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
        MultinomialNB().set_score_request(sample_weight=True)


@pytest.mark.parametrize(("estimator", "method"), [
    (TextClassifier(), "score"), (TableClassifier(GaussianNB()), "fit"),
    (LinearDiscriminantAnalysis(), "fit"), (NearestCentroid(), "partial_fit")])
def test_weights_are_not_asked_for_a_method_that_takes_none(
    estimator: Any, method: str, routing: None
) -> None:
    with pytest.raises(ParameterError, match=f"has no {method} that takes sample_weight"):
        getattr(estimator, f"set_{method}_request")(sample_weight=True)


def test_a_pickle_names_its_version(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows
    now = pickle.dumps(MultinomialNB().fit(X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(now)
    monkeypatch.setattr(protocol, "__version__", "99.0")
    with pytest.warns(TextnbWarning, match=r"pickled by textnb \S+, and this is 99\.0"):
        pickle.loads(now)


def test_joblib_keeps_a_classifier_of_texts(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": ["good film", "bad film"] * 3, "label": ["p", "n"] * 3})
    model = TextClassifier(NBLinear()).fit(frame)
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    assert again.predict(frame).equals(model.predict(frame))
    assert again.get_params()["estimator__C"] == 1.0


def test_a_parameter_that_is_not_known() -> None:
    with pytest.raises(ParameterError, match="MultinomialNB has no setting 'fit_priors'"):
        MultinomialNB(fit_priors=False)  # type: ignore[call-arg]  # wrong on purpose
    with pytest.raises(ValueError, match="Invalid parameter 'power' for estimator MultinomialNB"):
        MultinomialNB().set_params(power=1)


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


def test_frames_need_no_scikit_learn(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT, str(tmp_path / "model.textnb")], check=True,
                          capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "False"
    assert not issubclass(textnb.MultinomialNB, sklearn.base.BaseEstimator)
