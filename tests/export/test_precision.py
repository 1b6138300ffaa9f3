"""Rounded weights: smaller files, and a bound that holds for every row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.classifier.test_multilabel import NEWS, TESTED
from textnb import BernoulliNB, MultinomialNB, NBLinear, TextClassifier
from textnb.export.bundle import bundle_of
from textnb.export.reduce import round_weights, spread, token_errors
from textnb.export.verify import verify_export
from textnb.export.write import export_model

ONE = NEWS.with_columns(pl.col("label").list.first().fill_null("none"))
TWO = NEWS.with_columns(pl.when(pl.col("label").list.contains("corn")).then(
    pl.lit("corn")).otherwise(pl.lit("rest")).alias("label"))
CASES: dict[str, tuple[Any, pl.DataFrame, Any]] = {
    "classes": (MultinomialNB(l=0.1), ONE, None), "presence": (BernoulliNB(), ONE, None),
    "length": (NBLinear(), ONE, None), "lists": (NBLinear(held_out=0), NEWS, None),
    "idf": (NBLinear(unit_length=False), ONE, None), "one output": (MultinomialNB(), TWO, "corn"),
    "linear, one output": (NBLinear(), TWO, "corn")}


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("name", CASES)
def test_the_bound_holds_for_every_row(name: str, precision: Any) -> None:
    estimator, frame, positive = CASES[name]
    model = TextClassifier(estimator).fit(frame)
    whole = bundle_of(model, "terms", positive)
    rounded, report = round_weights(whole, precision)
    assert report is not None
    counts = whole.counts(TESTED)
    full, less = whole.scores(counts), rounded.scores(counts)
    changes = spread(whole, full - less)
    assert changes.max() > 0
    # Every token, or with unit length every term, moves by at most what is told.
    tokens = (counts > 0).sum(axis=1) if name == "length" else counts.sum(axis=1)
    assert (changes <= report["worst_per_token"] * np.asarray(tokens).ravel() + 1e-12).all()
    assert report["worst_per_token"] == token_errors(whole, rounded).max()


def test_int8_has_255_steps_around_the_most_frequent_weight() -> None:
    whole = bundle_of(TextClassifier(NBLinear()).fit(ONE), "terms")
    weights = round_weights(whole, "int8")[0].weights
    for before, after in zip(whole.weights.T, weights.T, strict=True):
        assert len(np.unique(after)) <= 255
        assert np.abs(before - after).max() <= np.abs(before - np.median(before)).max() / 127


@pytest.mark.parametrize("to", ["python", "json", "parquet", "onnx"])
def test_the_file_has_the_rounded_weights(to: str, tmp_path: Path) -> None:
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
