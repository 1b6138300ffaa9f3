"""Rounded weights: smaller files, and a bound that holds for every row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from tests.classifier.test_multilabel import NEWS, TESTED
from textnb import (
    BernoulliNB,
    Decision,
    ExportError,
    MultinomialNB,
    NBLinear,
    ParameterError,
    TableClassifier,
    TextClassifier,
)
from textnb.bayes.decision import log_odds
from textnb.export.answers import decided, posterior_scores
from textnb.export.bundle import bundle_of
from textnb.export.precision import margins, round_weights, row_errors, token_errors
from textnb.export.prune import spread
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
    bounds = row_errors(whole, rounded.weights, counts)
    changes = spread(whole, full - less)
    assert (changes <= bounds + 1e-12).all()
    assert changes.max() > 0
    # Every token, or with unit length every term, moves by at most what is told.
    tokens = (counts > 0).sum(axis=1) if name == "length" else counts.sum(axis=1)
    assert (bounds <= report["worst_per_token"] * np.asarray(tokens).ravel() + 1e-12).all()
    assert report["worst_per_token"] == token_errors(whole, rounded).max()
    # A decision changes only where it was no further ahead than the bound.
    before, after = whole.decide(full), rounded.decide(less)
    flipped = np.array([a != b for a, b in zip(before, after, strict=True)])
    assert (margins(whole, full)[flipped] <= bounds[flipped] + 1e-12).all()


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
    found = export_model(model, tmp_path / "out", to, precision="int8", check=TESTED)
    assert found.precision is not None
    assert found.checked is not None
    assert found.precision["kind"] == "int8"
    assert found.checked["rows"] == TESTED.height
    assert found.checked["flipped"] <= found.checked["within"]
    form = json.loads((tmp_path / "out" / "form.json").read_text("utf-8"))
    assert form["precision"] == found.precision
    assert verify_export(tmp_path / "out").passed
    plain = export_model(model, tmp_path / "plain", to)
    assert plain.precision is None
    assert "precision" not in (tmp_path / "plain" / "form.json").read_text("utf-8")


def test_a_size_chooses_terms_and_precision(tmp_path: Path) -> None:
    """The choice moves a difference of scores least, by weights alone."""
    draw = np.random.default_rng(0)
    rows = pl.DataFrame({
        "text": [" ".join(f"w{n}" for n in draw.integers(20_000, size=60)) for _ in range(600)],
        "label": [f"c{n % 3}" for n in range(600)]})
    model = TextClassifier(NBLinear(unit_length=False, held_out=0)).fit(rows)
    folder = tmp_path
    sizes = {kind: (folder / f"{kind}.py") for kind in ("float64", "float32", "int8")}
    for kind, path in sizes.items():
        export_model(model, path, "python", precision=kind)  # type: ignore[arg-type]
    size = {kind: path.stat().st_size for kind, path in sizes.items()}
    assert size["int8"] < size["float32"] < size["float64"]
    fits = export_model(model, folder / "most.py", "python", max_bytes=size["float64"])
    assert fits.precision is None
    between = export_model(model, folder / "less.py", "python", max_bytes=size["float32"])
    assert between.precision is not None
    assert between.precision["kind"] == "float32"
    assert between.pruned is not None
    assert between.pruned["dropped"] == 0
    small = export_model(model, folder / "least.py", "python", max_bytes=(size["int8"] * 4 // 5))
    assert small.precision is not None
    assert small.pruned is not None
    assert small.pruned["dropped"] > 0
    assert (folder / "least.py").stat().st_size <= (size["int8"] * 4 // 5)
    asked = export_model(model, folder / "asked.py", "python", max_bytes=(size["int8"] * 4 // 5),
                         precision="float64")
    assert asked.pruned is not None
    assert asked.pruned["worst_per_token"] >= max(
        small.pruned["worst_per_token"], small.precision["worst_per_token"])


def test_a_size_that_needs_no_fewer_terms_is_met_where_none_can_be_left_out(
    tmp_path: Path
) -> None:
    model = TextClassifier(NBLinear()).fit(ONE)
    whole = export_model(model, tmp_path / "whole.py", "python").size
    rounded = export_model(model, tmp_path / "rounded.py", "python", precision="int8").size
    found = export_model(model, tmp_path / "a.py", "python", max_bytes=whole)
    assert (found.precision, found.pruned) == (
        None, {"kept": found.weights, "dropped": 0, "worst_per_token": 0.0})
    assert export_model(model, tmp_path / "b.py", "python", top=found.weights).size == whole
    less = export_model(model, tmp_path / "c.py", "python", max_bytes=rounded)
    assert less.precision is not None
    with pytest.raises(ExportError, match=r"all terms take .* and none can be left out"):
        export_model(model, tmp_path / "d.py", "python", max_bytes=rounded // 2)


def test_changed_decisions_are_counted(tmp_path: Path) -> None:
    model = TextClassifier(NBLinear()).fit(ONE)
    assert export_model(model, tmp_path / "a", "json", precision="int8", check=TESTED
                        ).checked["decisions"] is None  # type: ignore[index]
    form, counts = bundle_of(model, "terms"), bundle_of(model, "terms").counts(TESTED)
    odds = log_odds(posterior_scores(form, form.scores(counts), counts))
    # At the log-odds of a row, the smallest change decides.
    best = odds.max(axis=1)
    model.set_decision(Decision({label: float(best[odds.argmax(axis=1) == k].min())
                                 for k, label in enumerate(form.labels)}))
    whole = bundle_of(model, "terms")
    rounded = round_weights(whole, "int8")[0]
    before, after = (decided(each, each.scores(each.counts(TESTED)), each.counts(TESTED))
                     for each in (whole, rounded))
    checked = export_model(
        model, tmp_path / "b", "json", precision="int8", check=TESTED).checked
    assert checked is not None
    assert checked["decisions"] == (before != after).sum() > 0


def test_what_has_no_precision(tmp_path: Path) -> None:
    model = TextClassifier().fit(ONE)
    with pytest.raises(ParameterError, match="precision"):
        export_model(model, tmp_path / "a", "json", precision="float16")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="precision"):
        export_model(model, tmp_path / "a", "json", check=TESTED)
    table = TableClassifier(textnb.LinearDiscriminantAnalysis()).fit(pl.DataFrame(
        {"x": [0.0, 1.0, 3.0, 4.5], "y": [1.0, 0.0, 2.5, 3.0], "label": ["a", "a", "b", "b"]}))
    with pytest.raises(ExportError, match="weights of features"):
        export_model(table, tmp_path / "a", "json", precision="int8")
    assert not list(tmp_path.iterdir())
