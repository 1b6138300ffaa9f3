"""The numbers of weights: rounded for smaller files, and packed into programs bit by bit."""

import base64
import json
import zlib
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.classifier.topics import NEWS, TEST, against_rest, one_label_each
from textnb import BernoulliNB, MultinomialNB, NBLinear, TextClassifier, Tokenizer
from textnb.export.bundle import bundle_of
from textnb.export.reduce import round_weights, spread, token_errors
from textnb.export.targets.packed import pack_weights
from textnb.export.verify import verify_export
from textnb.export.write import export_model
from textnb.workflow.samples import topics

# Rounded


ONE, TWO = one_label_each(NEWS), against_rest(NEWS, "corn")
CASES: dict[str, tuple[Any, pl.DataFrame, Any]] = {
    "classes": (MultinomialNB(l=0.1), ONE, None), "presence": (BernoulliNB(), ONE, None),
    "length": (NBLinear(), ONE, None), "lists": (NBLinear(held_out=0), NEWS, None),
    "idf": (NBLinear(unit_length=False), ONE, None), "one output": (MultinomialNB(), TWO, True),
    "linear, one output": (NBLinear(), TWO, True)}


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("name", CASES)
def test_the_bound_holds_for_every_row(name, precision):
    estimator, frame, positive = CASES[name]
    model = TextClassifier(estimator).fit(frame)
    whole = bundle_of(model, "terms", positive)
    rounded, report = round_weights(whole, precision)
    assert report is not None
    counts = whole.counts(TEST)
    full, less = whole.scores(counts), rounded.scores(counts)
    changes = spread(whole, full - less)
    assert changes.max() > 0
    # Every token, or with unit length every term, moves by at most what is told.
    tokens = (counts > 0).sum(axis=1) if name == "length" else counts.sum(axis=1)
    assert (changes <= report["worst_per_token"] * np.asarray(tokens).ravel() + 1e-12).all()
    assert report["worst_per_token"] == token_errors(whole, rounded).max()


def test_int8_has_255_steps_around_the_most_frequent_weight():
    whole = bundle_of(TextClassifier(NBLinear()).fit(ONE), "terms")
    weights = round_weights(whole, "int8")[0].weights
    for before, after in zip(whole.weights.T, weights.T, strict=True):
        assert len(np.unique(after)) <= 255
        assert np.abs(before - after).max() <= np.abs(before - np.median(before)).max() / 127


@pytest.mark.parametrize("to", ["python", "json", "parquet", "onnx"])
def test_the_file_has_the_rounded_weights(to, tmp_path):
    if to == "onnx":
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")
    model = TextClassifier(NBLinear()).fit(ONE)
    found = export_model(model, tmp_path / "out", to, precision="int8")
    assert found.precision is not None
    assert found.precision["kind"] == "int8"
    form = json.loads((tmp_path / "out" / "form.json").read_text("utf-8"))
    assert form["precision"] == found.precision
    assert verify_export(tmp_path / "out").passed
    plain = export_model(model, tmp_path / "plain", to)
    assert plain.precision is None
    assert "precision" not in (tmp_path / "plain" / "form.json").read_text("utf-8")


# Packed

DRAW = np.random.default_rng(3)
TERMS = [f"t{number}" for number in range(40)]
TABLES: dict[str, Any] = {
    "few numbers": DRAW.choice([-1.5, 0.0, -0.0, 2.0], (40, 3)),
    "all different": DRAW.normal(size=(40, 3)),
    "extremes": np.array([[5e-324, 1.7e308], [-1.7e308, -5e-324]]),
    "all equal": np.full((40, 2), 0.25),
    "one output": DRAW.normal(size=(40, 1)),
    "no terms": np.zeros((0, 2)),
    "many outputs": np.where(DRAW.random((40, 300)) < 0.01, DRAW.normal(size=(40, 300)), -7.0)}


def unpack_numbers(packed, name):
    part = packed[name]
    found = np.frombuffer(zlib.decompress(base64.b64decode(part["data"])), f"<{part['type']}")
    assert len(found) == part["size"]
    return found


@pytest.mark.parametrize("name", TABLES)
def test_weights_come_back_to_the_bit(name):
    weights = TABLES[name]
    packed = json.loads(json.dumps(pack_weights(TERMS[:len(weights)], weights)))
    found = np.tile(unpack_numbers(packed, "default").astype(float), (len(weights), 1))
    rows = np.repeat(np.arange(len(weights)), unpack_numbers(packed, "cells"))
    table = unpack_numbers(packed, "table")
    values = table[unpack_numbers(packed, "places")] if "places" in packed else table
    found[rows, unpack_numbers(packed, "outputs")] = values
    # The two zeros are equal, and count the same.
    assert np.array_equal(found, weights)
    assert json.loads(zlib.decompress(base64.b64decode(packed["terms"]))) == TERMS[:len(weights)]
    assert ("places" in packed) == (name not in (
        "all different", "extremes", "one output", "many outputs"))


def test_numbers_of_terms_come_back():
    for idf in (DRAW.choice([1.5, 2.5], 40), DRAW.normal(size=40)):
        packed = pack_weights(TERMS, TABLES["few numbers"], idf=idf)
        found = unpack_numbers(packed, "idf")
        places = unpack_numbers(packed, "idf_places") if "idf_places" in packed else slice(None)
        assert np.array_equal(found[places], idf)


def test_integers_take_as_few_bytes_as_they_need():
    for most, kind in ((255, "u1"), (256, "u2"), (65_536, "u4")):
        weights = np.zeros((3, most + 1))
        weights[2, most] = 1.0
        assert pack_weights(TERMS[:3], weights)["outputs"]["type"] == kind


def test_a_program_is_smaller_than_its_model(tmp_path):
    rows = topics(600, seed=1).select("description", "topics").explode("topics").drop_nulls()
    model = TextClassifier(
        text="description", label="topics", tokenizer=Tokenizer(ngram_range=(1, 2))).fit(rows)
    model.save(tmp_path / "model.textnb")
    size = export_model(model, tmp_path / "model.py", to="python").size
    assert size < 2 * (tmp_path / "model.textnb").stat().st_size + 100_000
