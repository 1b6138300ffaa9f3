"""Every target and every feature map: its scores are the form's, or it refuses a step by name."""

import json
import math
import operator
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from tests.export.run import checked, exported, read
from tests.export.tables import INPUTS, SPACED
from textnb import ExportError, TextClassifier, Tokenizer, export_model, verify_export
from textnb.bayes.features import Center, FeatureMap, Idf, Length, Presence, Step, Sublinear
from textnb.export import archive, reduce
from textnb.export.bundle import Bundle, bundle_of
from textnb.export.targets.known import TARGETS

FRAME = pl.DataFrame({
    "text": ["good good good film", "good plot plot", "bad film film film film", "bad bad plot",
             "so so film", "", "so bad it is good"],
    "label": ["pos", "pos", "neg", "neg", "so", "so", "so"]})
UNSEEN = pl.DataFrame({
    "text": ["good good bad unknown", "unknown", "", None, "plot", "film " * 40]})
MAPS: dict[str, tuple[type[Step], ...]] = {
    "+".join(step.name for step in steps): steps for steps in [
        (Presence,), (Sublinear,), (Idf,), (Length,), (Presence, Idf), (Presence, Length),
        (Sublinear, Idf), (Sublinear, Length), (Idf, Length), (Presence, Idf, Length),
        (Sublinear, Idf, Length)]}


@dataclass(frozen=True, eq=False)
class Squared(Step):
    """A step from outside the package."""

    name = "squared"
    place = 2


def with_map(steps, labels=("pos", "neg", "so"), tokenizer=Tokenizer()):
    """A model whose form has a feature map."""
    model = TextClassifier(textnb.MultinomialNB(l=0.5), tokenizer=tokenizer).fit(
        FRAME.filter(pl.col("label").is_in(labels)))
    fitted = model.fitted_
    # A term may weigh nothing.
    idf = np.append(0.0, 1.0 + np.arange(1, len(fitted.terms)) / 4)
    features = FeatureMap(tuple(Idf(idf) if step is Idf else step() for step in steps))
    form = replace(fitted.form, features=features)
    model._fitted = replace(fitted, learned=replace(fitted.learned, form=form))
    return model


@pytest.mark.sweep(10, 80)
@pytest.mark.parametrize("labels", [("pos", "neg"), ("pos", "neg", "so")], ids=["two", "three"])
@pytest.mark.parametrize(("to", "reads"), INPUTS)
@pytest.mark.parametrize("name", MAPS)
def test_a_target_scores_as_the_form_does_or_refuses(to, reads, name, labels, tmp_path):
    # ONNX splits at one character alone.
    model = with_map(MAPS[name], labels, SPACED if to == "onnx" else Tokenizer())
    positive = model.classes_[1] if len(labels) == 2 else None
    unknown = [step for step in MAPS[name] if step not in TARGETS[to].steps]
    path = tmp_path / "out"
    if unknown:
        with pytest.raises(ExportError, match=f"{to}: .*step {unknown[0].name} is not known"):
            export_model(model, path, to, reads=reads, positive=positive)
        assert not path.exists()
        return
    exported(model, path, to, reads=reads, positive=positive)
    assert checked(path).passed
    assert checked(path, UNSEEN).passed
    expected = model.linear_form().scores(model.transform(UNSEEN))
    with archive.open_bundle(path) as folder:
        bundle, document = archive.read(folder, "out")
        assert document["version"] == (1 if name == "presence" else 2)
        assert bundle.form.features == model.linear_form().features
        scores = bundle.scores(bundle.counts(UNSEEN))
        if bundle.positive is not None:
            k = bundle.labels.index(bundle.positive)
            expected = (expected[:, k] - expected[:, 1 - k])[:, None]
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("to", TARGETS)
def test_a_step_from_outside_is_refused_by_every_target(to, tmp_path):
    model = with_map((Squared,), ("pos", "neg"))
    with pytest.raises(ExportError, match="step squared is not known"):
        export_model(model, tmp_path / "out", to, positive="pos")
    assert not (tmp_path / "out").exists()


def test_a_target_is_not_asked_for_what_it_does_not_name(tmp_path, monkeypatch):
    model, path = with_map((Length,)), tmp_path / "out"
    export_model(model, path, "json")
    monkeypatch.setattr(type(TARGETS["json"]), "steps", (Presence,))
    with pytest.raises(ExportError, match="json: the feature map's step length is not known there"):
        verify_export(path)


# The sentences of a README that a reader of weights executes, on counts and their terms' places.
EXECUTED = {
    "Count each token": lambda counts, model: counts,
    "Put 1 in place of each count above 0,": lambda counts, model: dict.fromkeys(counts, 1.0),
    "Put 1 + ln(count)": lambda counts, model: {t: 1 + math.log(n) for t, n in counts.items()},
    "Multiply each by the term's inverse document frequency: `weights` of the step `idf`":
        lambda counts, model: {t: n * next(
            step["weights"][t] for step in model["features"]["steps"] if step["step"] == "idf")
            for t, n in counts.items()},
    "Divide each by the length of the document": lambda counts, model: {
        t: n / (math.hypot(*counts.values()) or 1) for t, n in counts.items()},
    "Multiply each by the weights": lambda counts, model: [
        sum(n * model["weights"][t][k] for t, n in counts.items())
        for k in range(len(model["intercept"]))],
    "Add the intercept": lambda sums, model: [*map(operator.add, sums, model["intercept"])]}


@pytest.mark.parametrize("to", ["json", "csv", "npz", "parquet", "liblinear"])
@pytest.mark.parametrize("name", ["", *MAPS])
def test_a_readme_says_the_whole_computation(name, to, tmp_path):
    """Executed sentence by sentence, it gives the scores, also of terms that are left out."""
    labels = ("pos", "neg") if to == "liblinear" else ("pos", "neg", "so")
    model, path = with_map(MAPS.get(name, ()), labels), tmp_path / "out"
    positive = "pos" if to == "liblinear" else None
    export_model(model, path, to, top=4, positive=positive)
    export_model(model, tmp_path / "model.json", "json", top=4, positive=positive)
    weights = json.loads((tmp_path / "model.json").read_text())
    usage = (path / "README.md").read_text().partition("## Use")[2].partition("## What")[0]
    steps = re.findall(r"^\d\. (.*)", usage, flags=re.M)
    if to == "liblinear":  # Its engine multiplies and adds.
        steps += ["Multiply each by the weights", "Add the intercept"]
    bundle = read(path)
    for text, expected in zip(bundle.tokens(UNSEEN), bundle.scores(bundle.counts(UNSEEN)),
                              strict=True):
        value: Any = Counter(weights["terms"].index(t) for t in text if t in weights["terms"])
        for step in steps:
            [execute] = [call for words, call in EXECUTED.items() if step.startswith(words)]
            value = execute(value, weights)
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


def test_features_are_centered_or_present_and_no_more():
    form = bundle_of(with_map((Sublinear,))).form
    with pytest.raises(ExportError, match="reads features: the feature map's step sublinear"):
        Bundle(form, "features", None, tuple(form.terms or ()))
    centered = replace(form, features=FeatureMap((Center(np.zeros(len(form.weights))),)))
    with pytest.raises(ExportError, match="reads terms: the feature map's step center"):
        Bundle(centered, "terms", Tokenizer(), ("text",))


@pytest.mark.parametrize("to", ["json", "sql-sqlite", "python"])
@pytest.mark.parametrize("name", MAPS)
def test_fewer_terms(name, to, tmp_path):
    """Those of which one token moves scores most; a length is that of the terms that are left."""
    model, path = with_map(MAPS[name]), tmp_path / "out"
    export_model(model, path, to, top=4)
    assert verify_export(path, UNSEEN).passed
    bundle = read(path)
    whole = bundle_of(model)
    idf = next((step.weights for step in whole.form.features.steps if isinstance(step, Idf)), 1.0)
    moves = reduce.spread(whole, whole.weights) * idf
    best = np.argsort(-moves, kind="stable")[:4]
    assert bundle.terms == tuple(whole.terms[at] for at in sorted(best))
