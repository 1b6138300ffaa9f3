"""A target from outside the package is exported and verified as any other, or refused by name."""

import json

import numpy as np
import pytest

import textnb
from textnb import ExportError, ModelFileError, TextClassifier, export_model, verify_export
from textnb.export.targets import known
from textnb.export.targets.base import Target, TargetAnswers
from textnb.export.targets.known import register_target


class Lines(Target):
    """A line for each term: its weights, then the term."""

    name = "lines"
    suffix = ".lines"
    reads = ("terms",)
    needs = "a reader of lines"
    scale = 1.0

    def write(self, bundle, path):
        lines = [[*bundle.intercept.tolist()]]
        lines += [[term, *weights] for term, weights
                  in zip(bundle.terms, bundle.weights.tolist(), strict=True)]
        path.write_text("\n".join(map(json.dumps, lines)), "utf-8")

    def run(self, bundle, path, rows):
        intercept, *lines = map(json.loads, path.read_text("utf-8").splitlines())
        weights = {term: np.array(own) for term, *own in lines}
        return TargetAnswers(self.scale * np.array([
            np.sum([intercept, *(weights[token] for token in tokens if token in weights)], axis=0)
            for tokens in rows.tokens.to_list()]))


class Wrong(Lines):
    scale = 1.001


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(known, "TARGETS", dict(known.TARGETS))
    monkeypatch.setattr("textnb.export.verify.TARGETS", known.TARGETS)


@pytest.fixture
def model():
    return TextClassifier().fit(["good film", "good", "bad film"], ["pos", "pos", "neg"])


def test_it_is_written_and_verified(model, tmp_path):
    register_target(Lines())
    assert export_model(model, tmp_path / "model.lines").target == "lines"
    checked = verify_export(tmp_path / "model.lines")
    assert checked.passed
    assert checked.rows > 0


def test_what_it_answers_wrongly_is_found(model, tmp_path):
    register_target(Wrong())
    checked = verify_export(export_model(model, tmp_path / "out", to="lines").path)
    assert not checked.passed


def test_what_it_refuses_is_named(tmp_path):
    register_target(Lines())
    model = TextClassifier(binary=True).fit(["good film", "bad film"], ["pos", "neg"])
    with pytest.raises(ExportError, match="lines: the feature map's step presence is not known"):
        export_model(model, tmp_path / "out", to="lines")
    assert not (tmp_path / "out").exists()


def test_a_bundle_of_an_unknown_target_is_refused(model, tmp_path):
    register_target(Lines())
    path = export_model(model, tmp_path / "out", to="lines").path
    del known.TARGETS["lines"]
    with pytest.raises(ModelFileError, match="its target 'lines' is unknown"):
        verify_export(path)


def changed(**attributes):
    return type("Changed", (Lines,), attributes)()


@pytest.mark.parametrize(("target", "reason"), [
    (changed(name="json"), "there is a target 'json' already"),
    (changed(name="My Lines"), "small letters"),
    (changed(suffix=None), "does not say its suffix"),
    (changed(steps=None), "does not say its steps"),
    ("lines", "a class derived from Target"),
    (changed(reads=("pixels",)), "some of text, terms, features"),
    (changed(reads=()), "some of text, terms, features"),
    (changed(decides=("label",)), "decides must be some of class, labels, ranks"),
    (changed(answers=("scores", "chances")), "answers must be some of scores, probability, deci"),
    (changed(answers=("probability",)), "answers must be .*, scores first"),
], ids=["name", "letters", "suffix", "steps", "class", "reads", "none", "decides",
        "answers", "first"])
def test_what_is_no_target_is_refused(target, reason):
    with pytest.raises(textnb.ParameterError, match=reason):
        register_target(target)
