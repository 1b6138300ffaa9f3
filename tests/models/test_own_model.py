"""A model of a user is one class: it works like those of the package, or is refused by name."""

import dataclasses
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import textnb
from textnb import LinearForm, ModelFileError, ParameterError, TableClassifier, TextClassifier
from textnb.bayes.features import presence_map
from textnb.cli.main import command_of
from textnb.cli.options import Command, with_model_settings
from textnb.filter.mailfilter import MailFilter
from textnb.models import MomentModel, base, between
from textnb.models.base import check_registered, register_model
from textnb.models.counts import CountModel
from textnb.models.fields import RESERVED
from textnb.models.known import all_models, model_named, registered_models
from textnb.runtime.settings import setting, setting_fields
from textnb.workflow.train import make_train_options, model_of

FRAME = pl.DataFrame({"text": ["aa bb", "aa aa", "bb cc", "cc dd"] * 6,
                      "label": ["x", "x", "y", "y"] * 6})
BUILT_IN = registered_models()
OF_TEXTS = ["MultinomialNB", "BernoulliNB", "ComplementNB", "TfidfComplementNB", "NBLinear",
            "NBLogisticRegression"]


class ToyRootNB(CountModel):
    """θ by the square roots of counts: as little as a model can say, and all of it by hand."""

    kind = "toyroot"
    without_terms = "the classes' priors alone"
    scores_are_log_probabilities = True
    term_z = None

    exponent: float = setting(0.5, "Of the counts.", range=between(0, 3))

    def weigh(self, counts, l, log_prior):
        rooted = counts.feature_count ** self.exponent + l
        log_prob = np.log(rooted / rooted.sum(axis=1, keepdims=True))
        return LinearForm(counts.classes, np.ascontiguousarray(log_prob.T), log_prior)


@pytest.fixture(autouse=True)
def own_registry():
    """What a test registers is forgotten after it."""
    before = dict(base.REGISTERED)
    yield
    base.REGISTERED.clear()
    base.REGISTERED.update(before)


@pytest.fixture
def model():
    register_model(ToyRootNB)
    return TextClassifier(ToyRootNB(l=0.5)).fit(FRAME)


def by_hand(frame, terms, l):
    """Joint log-probabilities of `FRAME`'s rows, by a model of ``frame``, from nothing but it."""
    def counts(rows):
        return np.array([[text.split().count(term) for term in terms] for text in rows["text"]])

    labels, scores = frame["label"].to_numpy(), []
    for label in ("x", "y"):
        own = counts(frame)[labels == label].sum(axis=0) ** 0.5 + l
        scores.append(counts(FRAME) @ np.log(own / own.sum()) + np.log((labels == label).mean()))
    return np.array(scores).T


def test_it_scores_by_its_own_mathematics(model):
    expected = by_hand(FRAME, ["aa", "bb", "cc", "dd"], 0.5)
    answers = model.predict(FRAME, scores=True)
    np.testing.assert_allclose(answers["scores"].to_numpy(), expected, rtol=1e-12)
    rows, labels = model.transform(FRAME["text"]), np.array(FRAME["label"])
    np.testing.assert_array_equal(ToyRootNB(l=0.5).fit(rows, labels).predict_joint_log_proba(rows),
                                  model.linear_form().scores(rows))


def test_counts_add_and_only_what_was_learned_is_forgotten(model):
    whole, rest = model.linear_form().weights, TextClassifier(ToyRootNB(l=0.5)).fit(FRAME[9:])
    parts = TextClassifier(ToyRootNB(l=0.5)).fit(FRAME[:9])
    for other in (parts + rest, parts.partial_fit(FRAME[9:])):
        np.testing.assert_array_equal(other.linear_form().weights, whole)
    with pytest.raises(textnb.DataError):
        parts.forget(pl.DataFrame({"text": ["never seen"], "label": ["x"]}))
    np.testing.assert_array_equal(parts.forget(FRAME[:9]).linear_form().weights,
                                  rest.linear_form().weights)


def test_a_file_gives_the_same_model_and_the_same_filter(model, tmp_path):
    path = tmp_path / "model.textnb"
    model.save(path)
    again = textnb.load(path)
    assert type(again.estimator_) is ToyRootNB
    np.testing.assert_array_equal(again.linear_form().weights, model.linear_form().weights)
    rows = FRAME.rename({"text": "body"})
    TextClassifier(ToyRootNB(exponent=1.5), text="body").fit(rows).save(path)
    fitted, judge = textnb.load(path), MailFilter.load(path, spam="x", min_learned=1)
    np.testing.assert_array_equal(judge.form.weights, fitted.linear_form().weights)
    # Whoever does not know the model refuses its file.
    del base.REGISTERED["ToyRootNB"]
    for load in (textnb.load, MailFilter.load):
        with pytest.raises(ModelFileError, match="'ToyRootNB', which is not one of textnb's"):
            load(path)


@pytest.mark.parametrize("use", [
    lambda model: textnb.leave_one_out(model, FRAME),
    lambda model: textnb.calibrate(model, FRAME),
    lambda model: textnb.smoothing_path(model, FRAME),
    lambda model: TextClassifier(ToyRootNB(l="auto")).fit(FRAME)],
    ids=["leave_one_out", "calibrate", "smoothing_path", "auto"])
def test_what_needs_rows_left_out_is_refused(model, use):
    with pytest.raises(ParameterError, match="ToyRootNB does not say how rows are"):
        use(model)


def test_exports_and_folds_and_terms(model, tmp_path):
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


def test_a_report(model, tmp_path):
    pytest.importorskip("jinja2")
    textnb.write_report(model, FRAME, tmp_path / "report.html")
    assert "ToyRootNB" in (tmp_path / "report.html").read_text("utf-8")


def test_job_files_and_the_command_line(model):
    assert model_of("toyroot", {"l": 0.2, "exponent": 2.0}).get_params()["exponent"] == 2.0
    assert make_train_options("toyroot", {"l": 0.3, "where": "true"}).parameters == {"l": 0.3}
    with pytest.raises(ParameterError, match="norm belongs to kind=complement"):
        make_train_options("toyroot", {"norm": True})


def test_a_model_of_presence_reads_texts_and_matrices_alike():
    @register_model
    class TwiceNB(CountModel):
        """Counts a term that occurs twice or more."""

        kind, term_z = "twice", None
        without_terms, scores_are_log_probabilities = "the priors", True
        above = 1.0

        def weigh(self, counts, l, log_prior):
            weights = np.log(counts.feature_count + l)
            return LinearForm(counts.classes, np.ascontiguousarray(weights.T), log_prior,
                              features=presence_map(self.above))

    model = TextClassifier(TwiceNB()).fit(FRAME)
    assert model.estimator_.feature_count_.tolist() == [[6, 0, 0, 0], [0, 0, 0, 0]]
    rows, labels = model.transform(FRAME["text"]), np.array(FRAME["label"])
    for matrix in (rows, rows.toarray()):
        alone = TwiceNB().fit(matrix, labels)
        np.testing.assert_array_equal(alone.linear_form().weights, model.linear_form().weights)
        np.testing.assert_array_equal(alone.predict_joint_log_proba(sp.csr_array(matrix)),
                                      model.linear_form().scores(rows))


def variant(parent=CountModel, **body):
    """`ToyRootNB` with other parts, under another name."""
    own = {name: value for name, value in vars(ToyRootNB).items()
           if not name.startswith("__") and name != "exponent"}
    own = {name: value for name, value in {**own, "kind": "other", **body}.items()
           if value is not ...}
    return type(body.get("name", "OtherNB"), (parent,), own)


def with_field(name, type_, default):
    """`ToyRootNB` with another field."""
    return variant(**{name: setting(default, "Help.")}, __annotations__={name: type_})


@pytest.mark.parametrize(("model", "message"), [
    (variant(name="MultinomialNB"), "MultinomialNB has the same name or kind"),
    (variant(kind="bernoulli"), "BernoulliNB has the same name or kind"),
    (variant(kind=...), "does not say its kind"),
    *((variant(kind=kind), "a kind is lower-case letters and digits, with single hyphens")
      for kind in ("a b", "A", "a--b", "-a", "a\n", "1", "a_b", "ä")),
    *((variant(**{part: ...}), f"does not say its {part}")
      for part in ("weigh", "term_z", "without_terms", "scores_are_log_probabilities")),
    (variant(parent=textnb.MultinomialNB), "inherit no other model's mathematics"),
    (type("HalfGaussian", (MomentModel,), {"kind": "half"}), "does not say its derive"),
    (with_field("output", str, "x"), "field output of the model OtherNB has the name of an option"),
    (with_field("min_df", int, 1), "the name of an option"),
    (with_field("weight", float, 1.0), "the name of an option"),
    (with_field("tokenizer", str, "x"), "of a key of jobs"),
    (with_field("norm", float, 1.0), "another type or other choices than that of"),
    (with_field("power", str, "x"), "other choices than that of"),
    (with_field("tf", str, "x"), "other choices than that of"),
    (with_field("derive", str, "x"), "replaces an attribute that every model has"),
    (with_field("term_z", object, None), "replaces an attribute that every model has"),
    (with_field("lam", complex, 1j), "has the type complex"),
    (with_field("lam", list[int], None), "has the type list")])
def test_half_a_model_is_not_registered(model, message):
    with pytest.raises(ParameterError, match=message):
        register_model(model)
    assert model not in base.REGISTERED.values()


@pytest.mark.parametrize(("type_", "default", "wrong", "message"), [
    (float, 0.5, "x", "lam must be a finite number"), ("float", 0.5, None, "must be a finite"),
    (float, 0.5, np.nan, "must be a finite number"), (bool, True, "no", "must be True or False"),
    (float | None, None, "x", "must be None or a finite number"),
    (int, 1, 0.5, "must be an integer"), (str, "a", 3, "must be a string")])
def test_the_type_of_a_field_is_checked(type_, default, wrong, message):
    kind = register_model(with_field("lam", type_, default))
    for use in (lambda: kind(lam=wrong).fit([[1], [2]], ["a", "b"]),
                lambda: TextClassifier(kind(lam=wrong)).fit(FRAME),
                lambda: model_of("other", {"lam": wrong})):
        with pytest.raises(ParameterError, match=message):
            use()


@dataclasses.dataclass(frozen=True)
class Empty:
    """Model."""


def test_a_setting_of_a_model_is_typed_after_set():
    register_model(with_field("twice", bool, True))
    option = next(param for param in Command("any", [with_model_settings(Empty)], print, "").params
                  if param.name == "set")
    assert "twice" in (option.help or "").split(";")[0].split(", ")


def test_the_names_that_a_field_can_not_have_are_those_of_train_and_jobs():
    own = {field.name for group in all_models().values() for field, _ in setting_fields(group)}
    command = command_of("train")
    options = {str(param.name) for param in command.params} - own
    options |= {field.name for group in command.groups for field, _ in setting_fields(group)} - own
    keys = {"kind", "tokenizer", *TextClassifier().get_params(deep=False),
            *textnb.Tokenizer().get_params()}
    names = options | (keys - {"estimator"}) | {"help"}
    assert not names ^ RESERVED, (
        f"RESERVED in textnb/models/fields.py lacks or has {sorted(names ^ RESERVED)}")


@pytest.mark.parametrize(("weigh", "message"), [
    (lambda self, counts, l, prior: LinearForm(
        counts.classes, np.full(counts.feature_count.T.shape, np.nan), prior), "not numbers"),
    (lambda self, counts, l, prior: LinearForm(
        counts.classes, np.zeros(counts.feature_count.T.shape), prior * np.nan), "not numbers"),
    (lambda self, counts, l, prior: LinearForm(
        counts.classes, np.zeros(counts.feature_count.shape), prior), "must have the shape")])
def test_weights_that_are_none_are_refused(weigh, message):
    kind = register_model(variant(weigh=weigh))
    for use in (lambda: TextClassifier(kind()).fit(FRAME),
                lambda: kind().fit([[1, 0, 2], [2, 1, 0]], ["a", "b"])):
        with pytest.raises(ParameterError, match=message):
            use()


def test_facts_of_a_setting_that_are_not_known_are_refused():
    with pytest.raises(ParameterError, match="setting has no setting 'ge'"):
        setting(0.5, "Help.", ge=0)


OFFERED = f"""
import numpy as np
from textnb import LinearForm
from textnb.models import CountModel, between, register_model, setting

@register_model
{inspect.getsource(ToyRootNB)}"""


@pytest.mark.slow
def test_another_package_offers_a_model(tmp_path):
    (tmp_path / "offers.py").write_text(OFFERED)
    described = tmp_path / "offers-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: offers\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[textnb.models]\ntoyroot = offers:ToyRootNB\n")
    FRAME.write_parquet(tmp_path / "rows.parquet")
    (tmp_path / "job.toml").write_text(
        'output = "out"\ninput.train = "rows.parquet"\n[model]\nkind = "toyroot"\nexponent = 0.3\n')

    def run(*arguments):
        path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
        done = subprocess.run(
            [sys.executable, "-m", "textnb", *arguments], cwd=tmp_path, text=True, check=False,
            capture_output=True, timeout=100, env={**os.environ, "PYTHONPATH": path})
        return done.stdout if done.returncode == 0 else done.stderr

    trained = run("train", "rows.parquet", "--model", "toyroot", "--set", "exponent=0.3",
                  "-o", "a.textnb")
    assert trained == ""
    described_model = run("describe", "a.textnb")
    assert "ToyRootNB" in described_model
    assert "exponent" in described_model
    assert "error: --set exponent: must be in [0, 3]; got 7" in run(
        "train", "rows.parquet", "--model=toyroot", "--set", "exponent=7", "-o", "b.textnb")
    run("run", "job.toml")
    assert json.loads((tmp_path / "out" / "run.json").read_text())
    with pytest.raises(ModelFileError, match="import the module that registers it"):
        textnb.load(tmp_path / "a.textnb")


POINTS = pl.DataFrame({"a": [1.0, 2.0, 8.0, 9.0], "label": list("aabb")})


def test_a_model_of_moments():
    @register_model
    class DoubtingGaussian(MomentModel):
        """Gaussians whose spread is that of all rows, times a factor."""

        kind = "doubting"
        diagonal = True

        factor: float = setting(1.0, "Of the variances.")

        def derive(self, statistics, prior):
            spread = (self.factor or 1.0) * statistics.variance()
            weights = statistics.mean / spread if self.factor else np.nan * statistics.mean
            half = 0.5 * (weights * statistics.mean).sum(axis=1)
            return LinearForm(statistics.classes, np.ascontiguousarray(weights.T), prior - half)

    model = TableClassifier(DoubtingGaussian(factor=2.0)).fit(POINTS)
    assert model.predict(POINTS)["predicted"].to_list() == list("aabb")
    assert model_of("doubting", {"factor": 3.0}).factor == 3.0
    with pytest.raises(ParameterError, match="are not numbers"):
        TableClassifier(DoubtingGaussian(factor=0.0)).fit(POINTS)


class Plain(textnb.ComplementNB):
    """Overrides nothing."""


class OwnGaussian(textnb.GaussianNB):
    """Overrides nothing."""


SAME_NAME = type("MultinomialNB", (textnb.MultinomialNB,), {})


@pytest.mark.parametrize("does", ["fit", "partial_fit", "count"])
@pytest.mark.parametrize("kind", [Plain, SAME_NAME, ToyRootNB, OwnGaussian])
def test_a_class_that_is_not_registered_learns_from_matrices_alone(kind, does):
    classifier, rows = (TableClassifier(kind()), POINTS) if kind is OwnGaussian else (
        TextClassifier(kind()), FRAME)
    with pytest.raises((ParameterError, AttributeError), match=(
            f"{kind.__name__} is a class of its own|no attribute 'count'")):
        getattr(classifier, does)(rows)
    if kind is not ToyRootNB:
        rows, labels = [[2, 1], [1, 0], [0, 3], [0, 4]], ["a", "a", "b", "b"]
        own, parent = (each().fit(rows, labels) for each in kind.__mro__[:2])
        np.testing.assert_array_equal(own.predict_proba(rows), parent.predict_proba(rows))


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_public_model_is_registered_and_its_parameters_are_its_fields(kind):
    model = kind()
    check_registered(model, "a thing")
    assert kind.of_terms == (kind.name in OF_TEXTS), "OF_TEXTS lists the models of texts"
    assert kind.name == kind.__name__
    assert {field.name: field.default for field in dataclasses.fields(kind)
            if field.init} == model.get_params(deep=False)
    if kind.of_terms:
        with pytest.raises(ParameterError, match=f"a parameter of {kind.name}: unknown value 'k'"):
            model_named(kind.name, {"k": 1})


def test_what_is_not_registered_is_refused():
    with pytest.raises(ParameterError, match="a thing is known for"):
        check_registered(object(), "a thing")
    with pytest.raises(ParameterError, match="estimator: unknown value 'OwnNB'"):
        model_named("OwnNB", {})


class Silent(base.Model):
    """Says nothing."""


@pytest.mark.parametrize("ask", [
    lambda model: model.term_z, lambda model: model.scores_are_log_probabilities,
    lambda model: model.derive(None), lambda model: model.learn_counts(None),
    lambda model: model.learn_rows(None, None), lambda model: model.leave_out(None),
    lambda model: model.form_of_weights(None, None, None)])
def test_what_a_model_does_not_say_is_refused(ask):
    with pytest.raises((ParameterError, NotImplementedError), match="Silent does not say"):
        ask(Silent())
