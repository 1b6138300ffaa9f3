"""The contract of event models: a model from outside the package works, or is refused by name."""

from __future__ import annotations

import dataclasses
import inspect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import textnb
from textnb import (
    BernoulliNB,
    ComplementNB,
    DataError,
    ModelFileError,
    MultinomialNB,
    NBLogisticRegression,
    ParameterError,
    TextClassifier,
)
from textnb.bayes import known
from textnb.bayes.event_model import CountModel, EventModel
from textnb.bayes.features import presence_map
from textnb.bayes.forms import LinearForm
from textnb.bayes.known import event_model, register
from textnb.bayes.statistics import CountStatistics
from textnb.cli import settings
from textnb.estimators.discrete import DiscreteNB
from textnb.filter.mailfilter import MailFilter
from textnb.jobs.models import text_model

FRAME = pl.DataFrame({"text": ["aa bb", "aa aa", "bb cc", "cc dd"] * 6,
                      "label": ["x", "x", "y", "y"] * 6})
BUILT_IN = [MultinomialNB, BernoulliNB, ComplementNB, NBLogisticRegression]


@dataclass(frozen=True, eq=False, kw_only=True)
class ToyRoot(CountModel):
    """θ by the square roots of counts: as little as a model can say, and all of it by hand."""

    power: float = 0.5

    name = "ToyRootNB"
    kind = "toyroot"
    without_terms = "the classes' priors alone"
    scores_are_log_probabilities = True
    term_z = None

    def weigh(
        self, counted: CountStatistics, l: Any, log_prior: Any
    ) -> tuple[LinearForm, Any]:
        rooted = counted.feature_count ** self.power + l
        log_prob = np.log(rooted / rooted.sum(axis=1, keepdims=True))
        return LinearForm(counted.classes, np.ascontiguousarray(log_prob.T), log_prior), log_prob


class ToyRootNB(DiscreteNB):
    """The estimator of `ToyRoot`."""

    event_model_type = ToyRoot

    def __init__(self, *, l: Any = 1.0, class_weight: Any = None, fit_prior: bool = True,
                 class_prior: Any = None, power: float = 0.5):
        self.l, self.class_weight, self.fit_prior = l, class_weight, fit_prior
        self.class_prior, self.power = class_prior, power


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(known, "_MODELS", dict(known._MODELS))
    monkeypatch.setattr(known, "_ESTIMATORS", dict(known._ESTIMATORS))


@pytest.fixture
def model() -> TextClassifier:
    register(ToyRoot, ToyRootNB)
    return TextClassifier(ToyRootNB(l=0.5)).fit(FRAME)


def by_hand(frame: pl.DataFrame, terms: list[str], l: float) -> Any:
    """Joint log-probabilities of `FRAME`'s rows, by a model of ``frame``, from nothing but it."""
    def counts(rows: pl.DataFrame) -> Any:
        return np.array([[text.split().count(term) for term in terms] for text in rows["text"]])

    labels, scores = frame["label"].to_numpy(), []
    for label in ("x", "y"):
        own = counts(frame)[labels == label].sum(axis=0) ** 0.5 + l
        scores.append(counts(FRAME) @ np.log(own / own.sum()) + np.log((labels == label).mean()))
    return np.array(scores).T


def test_it_scores_by_its_own_mathematics(model: TextClassifier) -> None:
    expected = by_hand(FRAME, ["aa", "bb", "cc", "dd"], 0.5)
    found = model.predict(FRAME, scores=True)
    np.testing.assert_allclose(found["scores"].to_numpy(), expected, rtol=1e-12)
    rows, labels = model.transform(FRAME["text"]), np.array(FRAME["label"])
    np.testing.assert_array_equal(ToyRootNB(l=0.5).fit(rows, labels).predict_joint_log_proba(rows),
                                  model.linear_form().scores(rows))


def test_counts_add(model: TextClassifier) -> None:
    parts = TextClassifier(ToyRootNB(l=0.5)).fit(FRAME[:9])
    parts.partial_fit(FRAME[9:])
    merged = TextClassifier(ToyRootNB(l=0.5)).fit(FRAME[:9]) + TextClassifier(
        ToyRootNB(l=0.5)).fit(FRAME[9:])
    for other in (parts, merged):
        np.testing.assert_array_equal(other.linear_form().weights, model.linear_form().weights)


def test_a_file_gives_the_same_model_and_the_same_filter(
    model: TextClassifier, tmp_path: Path
) -> None:
    path = tmp_path / "model.textnb"
    model.save(path)
    again = textnb.load(path)
    assert type(again.estimator_) is ToyRootNB
    np.testing.assert_array_equal(again.linear_form().weights, model.linear_form().weights)
    rows = FRAME.rename({"text": "body"})
    TextClassifier(ToyRootNB(power=1.5), text="body").fit(rows).save(path)
    fitted, judge = textnb.load(path), MailFilter.load(path, spam="x", least_learned=1)
    np.testing.assert_array_equal(judge.form.weights, fitted.linear_form().weights)
    # Whoever does not know the model refuses its file.
    del known._MODELS["ToyRootNB"]
    for load in (textnb.load, MailFilter.load):
        with pytest.raises(ModelFileError, match="newer textnb: it has the model 'ToyRootNB'"):
            load(path)


@pytest.mark.parametrize(("does", "message"), [
    (lambda model, path: textnb.leave_one_out(model, FRAME), "ToyRootNB does not say how rows are"),
    (lambda model, path: textnb.calibrate(model, FRAME), "ToyRootNB does not say how rows are"),
    (lambda model, path: textnb.smoothing_path(model, FRAME),
     "ToyRootNB does not say how rows are"),
    (lambda model, path: TextClassifier(ToyRootNB(l="auto")).fit(FRAME),
     "ToyRootNB does not say how rows are"),
], ids=["leave_one_out", "calibrate", "smoothing_path", "auto"])
def test_what_it_does_not_say_is_refused(
    model: TextClassifier, does: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ParameterError, match=message):
        does(model, tmp_path)


def test_exports_and_folds_and_terms(model: TextClassifier, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    textnb.export_model(model, bundle, "python")
    assert textnb.verify_export(bundle).passed
    folds = textnb.cross_validate(model, FRAME, folds=3)
    assert len(folds.scores) == FRAME.height
    assert model.top(2)["measure"].unique().to_list() == ["weight"]
    assert model.explain("aa zz").height > 1
    path = textnb.smoothing_path(model, test=FRAME, grid=[0.1, 1.0])
    assert path.table.height == 2
    limited = TextClassifier(ToyRootNB(), memory_limit=1 << 20).fit(FRAME)
    assert limited.pruned_ is None


def test_a_report(model: TextClassifier, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    textnb.write_report(model, FRAME, tmp_path / "report.html")
    assert "ToyRootNB" in (tmp_path / "report.html").read_text("utf-8")


def test_job_files_and_the_command_line(model: TextClassifier) -> None:
    assert text_model("toyroot", {"l": 0.2, "power": 2.0}).parameters()["power"] == 2.0
    settings.check_options("toyroot", {"l": 1.0})
    assert type(settings.text_model("toyroot", {"l": 0.3})) is ToyRoot
    with pytest.raises(ParameterError, match="--norm belongs to --model complement"):
        settings.check_options("toyroot", {"norm": True})


def test_a_model_of_presence_reads_texts_and_matrices_alike() -> None:
    @dataclass(frozen=True, eq=False, kw_only=True)
    class Twice(CountModel):
        """Counts a term that occurs twice or more."""

        name, kind, term_z = "TwiceNB", "twice", None
        without_terms, scores_are_log_probabilities = "the priors", True
        above = 1.0

        def weigh(self, counted: CountStatistics, l: Any, log_prior: Any) -> Any:
            weights = np.log(counted.feature_count + l)
            form = LinearForm(counted.classes, np.ascontiguousarray(weights.T), log_prior,
                              features=presence_map(self.above))
            return form, weights

    class TwiceNB(DiscreteNB):
        event_model_type = Twice

        def __init__(self, *, l: Any = 1.0, class_weight: Any = None, fit_prior: bool = True,
                     class_prior: Any = None):
            self.l, self.class_weight = l, class_weight
            self.fit_prior, self.class_prior = fit_prior, class_prior

    register(Twice, TwiceNB)
    model = TextClassifier(TwiceNB()).fit(FRAME)
    assert model.estimator_.feature_count_.tolist() == [[6, 0, 0, 0], [0, 0, 0, 0]]
    rows, labels = model.transform(FRAME["text"]), np.array(FRAME["label"])
    for matrix in (rows, rows.toarray()):
        alone = TwiceNB().fit(matrix, labels)
        np.testing.assert_array_equal(alone.linear_form().weights, model.linear_form().weights)
        np.testing.assert_array_equal(alone.predict_joint_log_proba(sp.csr_array(matrix)),
                                      model.linear_form().scores(rows))


def variant(base: Any = CountModel, **body: Any) -> Any:
    """`ToyRoot` with other parts, as a dataclass."""
    own = {name: value for name, value in vars(ToyRoot).items() if not name.startswith("__")}
    own |= {"name": "OtherNB", "kind": "other", "__annotations__": {"power": "float"}}
    own = {name: value for name, value in {**own, **body}.items() if value is not ...}
    return dataclass(frozen=True, eq=False, kw_only=True)(type("Other", (base,), own))


@pytest.mark.parametrize(("change", "message"), [
    ({"name": "MultinomialNB"}, "Multinomial has one of them"),
    ({"kind": "bernoulli"}, "Bernoulli has one of them"),
    ({"name": ...}, "does not say its name"),
    ({"weigh": ...}, "does not say its weigh"),
    ({"term_z": ...}, "does not say its term_z"),
    ({"scores_are_log_probabilities": ...}, "does not say its scores_are_log_probabilities"),
    ({"power": 0.7}, "with the same defaults"),
    ({"base": ToyRoot}, "inherit no other model's mathematics")])
def test_half_a_model_is_not_registered(change: dict[str, Any], message: str) -> None:
    kind = variant(**change)
    estimator = type("OtherNB", (ToyRootNB,), {
        "event_model_type": kind, "__init__": ToyRootNB.__init__})
    with pytest.raises(ParameterError, match=message):
        register(kind, estimator)
    assert kind not in known._MODELS.values()
    with pytest.raises(ParameterError, match=r"OtherNB (is a class of its own|does not say how)"):
        TextClassifier(estimator()).fit(FRAME).save("never written")


def test_an_estimator_brings_its_own_event_model() -> None:
    register(ToyRoot, ToyRootNB)
    heir = type("Heir", (ToyRootNB,), {"__init__": ToyRootNB.__init__})
    for estimator in (heir, type("Heir", (ToyRootNB,), {
            "__init__": ToyRootNB.__init__, "event_model_type": ToyRoot})):
        with pytest.raises(ParameterError, match=r"event_model_type in its own|model of its own"):
            register(ToyRoot, estimator)
        with pytest.raises(ParameterError, match="Heir is a class of its own"):
            textnb.leave_one_out(TextClassifier(estimator()).fit(FRAME), FRAME)
    assert known._MODELS["ToyRootNB"] is ToyRoot


@pytest.mark.parametrize("estimator", BUILT_IN)
def test_parameters_are_the_fields(estimator: Any) -> None:
    model = estimator().event_model()
    assert model.name == estimator.__name__
    assert {field.name: field.default for field in dataclasses.fields(model)} == {
        name: each.default for name, each in inspect.signature(estimator).parameters.items()}
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.l = 2.0
    with pytest.raises(ParameterError, match=f"a parameter of {model.name}: unknown value 'k'"):
        event_model(model.name, {"k": 1})


@pytest.mark.parametrize("part", [name for name, value in vars(EventModel).items() if isinstance(
    value, property) and name not in (
        "above", "counts_beside_weights", "obstacle_to_leaving_out")])
def test_a_model_that_says_nothing_is_refused(part: str) -> None:
    with pytest.raises(ParameterError, match="this model does not say"):
        getattr(EventModel(), part)


def test_weights_that_rows_gave_follow_from_no_counts() -> None:
    counts = CountStatistics(np.array(["a", "b"]), np.array([1, 1]), np.array([[3, 1], [0, 2]]))
    with pytest.raises(ParameterError, match="NBLogisticRegression learns its weights from rows"):
        event_model("NBLogisticRegression", {}).derive(counts)


def test_tables_that_are_not_the_models_are_refused(tmp_path: Path) -> None:
    from textnb.storage.archive import read_archive, write_archive

    TextClassifier().fit(FRAME).save(tmp_path / "model.textnb")
    manifest, tables = read_archive(tmp_path / "model.textnb")
    manifest["estimator"] = json.loads('{"name": "NBLogisticRegression", "parameters": {}}')
    write_archive(tmp_path / "other.textnb", manifest, tables)
    for load in (textnb.load, MailFilter.load):
        with pytest.raises(ModelFileError, match="not those of a NBLogisticRegression"):
            load(tmp_path / "other.textnb")


def test_only_what_was_learned_is_forgotten(model: TextClassifier) -> None:
    with pytest.raises(DataError):
        model.forget(pl.DataFrame({"text": ["never seen"], "label": ["x"]}))
    rest = TextClassifier(ToyRootNB(l=0.5)).fit(FRAME[2:])
    np.testing.assert_array_equal(model.forget(FRAME[:2]).linear_form().weights,
                                  rest.linear_form().weights)
