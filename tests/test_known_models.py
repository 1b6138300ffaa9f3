"""What is known of a model holds for its very class: a subclass is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import textnb
from textnb import (
    BernoulliNB,
    ComplementNB,
    ExportError,
    GaussianNB,
    MultinomialNB,
    NBLogisticRegression,
    ParameterError,
    TableClassifier,
    TextClassifier,
    TextnbError,
)
from textnb.bayes.forms import LinearForm
from textnb.bayes.known import check_model, event_model, is_known, known_event_model
from textnb.bayes.smoothing import multinomial_log_prob
from textnb.bayes.statistics import CountStatistics
from textnb.estimators.discrete import DiscreteNB

FRAME = pl.DataFrame({"text": ["aa bb", "aa aa", "bb cc", "cc dd"] * 6,
                      "label": ["x", "x", "y", "y"] * 6})
ROWS = pl.DataFrame({"a": [1.0, 2.0, 3.0, 7.0, 8.0, 9.0], "label": list("aaabbb")})


class Plain(ComplementNB):
    """Overrides nothing."""


class Doubled(ComplementNB):
    """Other weights from the same counts."""

    def _derive(self, statistics: CountStatistics, l: Any) -> LinearForm:
        form = super()._derive(statistics, l)
        return LinearForm(form.classes, 2 * form.weights, form.intercept)


class OwnModel(DiscreteNB):
    """A model of its own on counts, as a newcomer would write it."""

    def __init__(self, *, l: Any = 1.0, fit_prior: bool = True, class_prior: Any = None,
                 class_weight: Any = None):
        self.l, self.fit_prior, self.class_prior = l, fit_prior, class_prior
        self.class_weight = class_weight

    def _derive(self, statistics: CountStatistics, l: Any) -> LinearForm:
        log_prob = multinomial_log_prob(np.sqrt(statistics.feature_count), l)
        return LinearForm(self.classes_, np.ascontiguousarray(log_prob.T), self.class_log_prior_)


SAME_NAME = type("MultinomialNB", (MultinomialNB,), {"__init__": MultinomialNB.__init__})
SUBCLASSES = [Plain, Doubled, OwnModel, SAME_NAME]
REFUSING: dict[str, Callable[[Any, Path], object]] = {
    "save": lambda model, path: model.save(path / "model.textnb"),
    "leave_one_out": lambda model, path: textnb.leave_one_out(model, FRAME),
    "smoothing_path": lambda model, path: textnb.smoothing_path(model, FRAME),
    "smoothing_path on rows": lambda model, path: textnb.smoothing_path(model, test=FRAME),
    "calibrate": lambda model, path: textnb.calibrate(model, FRAME),
    "auto": lambda model, path: clone(model).set_params(estimator__l="auto").fit(FRAME),
    "export": lambda model, path: textnb.export_model(model, path / "bundle", "python"),
    "report": lambda model, path: textnb.write_report(model, FRAME, path / "report.html"),
    "top": lambda model, path: model.top(2),
}


@pytest.mark.parametrize("does", REFUSING)
@pytest.mark.parametrize("kind", SUBCLASSES)
def test_a_subclass_is_refused(kind: Any, does: str, tmp_path: Path) -> None:
    if does == "report":
        pytest.importorskip("jinja2")
    model = TextClassifier(kind()).fit(FRAME)
    with pytest.raises(TextnbError) as caught:
        REFUSING[does](model, tmp_path)
    assert isinstance(caught.value, (ParameterError, ExportError))
    assert kind.__name__ in str(caught.value) or does == "auto"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", SUBCLASSES)
def test_a_subclass_answers_by_its_own_form(kind: Any) -> None:
    model = TextClassifier(kind()).fit(FRAME)
    rows, terms = model.transform(FRAME["text"]), np.array(FRAME["label"])
    alone = kind().fit(rows, terms)
    np.testing.assert_array_equal(model.linear_form().weights, alone.linear_form().weights)
    # Folds are fitted one by one, not by subtraction, and are the same.
    folds = textnb.cross_validate(model, FRAME, folds=3)
    assert len(folds.scores) == FRAME.height
    with pytest.raises(ParameterError, match=r"known for|one per feature"):
        kind(l="auto").fit(rows, terms)


@pytest.mark.parametrize("method", ["predict", "predict_joint_log_proba", "_learn", "_check_rows"])
def test_a_method_that_would_not_be_called_is_refused(method: str) -> None:
    def own(self: Any, *arguments: Any) -> Any:
        raise AssertionError("called")

    kind = type("Own", (BernoulliNB,), {method: own, "__init__": BernoulliNB.__init__})
    with pytest.raises(ParameterError, match=rf"Own has a method {method} of its own"):
        TextClassifier(kind()).fit(FRAME)


def test_a_model_of_weights_may_fit_in_its_own_way() -> None:
    class Own(NBLogisticRegression):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            types.append(X.dtype)
            return super().fit(X, y, sample_weight)

    types: list[Any] = []
    model = TextClassifier(Own()).fit(FRAME)
    assert model.classes_.tolist() == ["x", "y"]
    # The matrix that is made within has int32: code of one's own might add more than these hold.
    assert types == [model.transform(FRAME).dtype] == [np.int64]
    with pytest.raises(ParameterError, match="a model file is known for"):
        model.save("never written")


def test_models_of_two_classes_of_one_name_do_not_add() -> None:
    one, other = TextClassifier(MultinomialNB()).fit(FRAME), TextClassifier(SAME_NAME()).fit(FRAME)
    with pytest.raises(ParameterError, match="models differ in the estimator's class"):
        one + other


class OwnGaussian(GaussianNB):
    """Overrides nothing."""


def test_a_subclass_on_tables_is_refused(tmp_path: Path) -> None:
    model = TableClassifier(OwnGaussian(shared_variance=True)).fit(ROWS)
    assert model.predict(ROWS)["predicted"].to_list() == list("aaabbb")
    for does in (lambda: model.save(tmp_path / "model.textnb"),
                 lambda: textnb.export_model(model, tmp_path / "bundle", "json"),
                 lambda: TableClassifier(OwnGaussian()).partial_fit(ROWS)):
        with pytest.raises(TextnbError, match="OwnGaussian"):
            does()
    assert list(tmp_path.iterdir()) == []


def test_a_subclass_reads_its_own_rows_of_a_table() -> None:
    class Scaled(GaussianNB):
        def _rows_and_labels(self, X: Any, y: Any, reset: bool) -> Any:
            X, y = super()._rows_and_labels(X, y, reset)
            return 10 * X, y

    model = TableClassifier(Scaled()).fit(ROWS)
    assert model.estimator_.statistics_.mean.ravel().tolist() == [20.0, 80.0]


def test_a_subclass_has_no_event_model_of_its_name() -> None:
    with pytest.raises(ParameterError, match="estimator: unknown value 'OwnModel'"):
        event_model("OwnModel", {"l": 1.0})


def test_every_public_model_is_known() -> None:
    tables = (GaussianNB, textnb.LinearDiscriminantAnalysis, textnb.NearestCentroid,
              textnb.QuadraticDiscriminantAnalysis, textnb.RegularizedDiscriminantAnalysis,
              textnb.PlugInBayes, textnb.CategoricalNB)
    for kind in (MultinomialNB, BernoulliNB, ComplementNB, NBLogisticRegression, *tables):
        assert is_known(kind())
        check_model(kind(), "a thing")
        known = known_event_model(kind())
        assert (known is None) == (kind in tables)
        assert known is None or known.name == kind.__name__
    with pytest.raises(ParameterError, match="a thing is known for"):
        check_model(object(), "a thing")
