"""Exports answer with the model's probabilities, its decision and its best classes."""

from __future__ import annotations

import json
import math
import runpy
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from textnb import (
    Calibration,
    Decision,
    ExportError,
    MultinomialNB,
    ParameterError,
    TextClassifier,
    export_model,
    verify_export,
)
from textnb.export import archive
from textnb.export.bundle import Bundle
from textnb.export.golden import rows_of
from textnb.export.targets.base import EngineMissing, TargetRows
from textnb.export.targets.known import TARGETS
from textnb.export.targets.program import run_program
from textnb.export.write import model_file
from textnb.files.archive import write_sums

ROWS = pl.DataFrame({
    "text": ["good film", "bad film", "good good bank", "the bank is bad", "a nice bank day",
             "rain day " * 3000, "good " * 4000, "", "bad rain", "unknown"],
    "label": ["pos", "neg", "pos", "neg", "mid", "mid", "pos", "neg", "mid", "neg"]})
LISTS = [["corn"], [], ["corn", "grain"], ["wheat"], ["wheat", "corn"], ["grain"], ["corn"], [],
         ["grain"], []]
CALIBRATIONS = {
    "none": None,
    "growing": Calibration(3.0, 0.5),
    "cold": Calibration(0.01),
    "sigmoid": Calibration(3.0, link="sigmoid", shift=-0.5),
}
PROGRAMS = ["python", pytest.param("javascript", marks=pytest.mark.skipif(
    shutil.which("node") is None, reason="Node is not installed"))]
programs = pytest.mark.parametrize("to", PROGRAMS)
engines = pytest.mark.parametrize("to", [
    *PROGRAMS, "polars", pytest.param("c", marks=pytest.mark.skipif(
    shutil.which("cc") is None, reason="there is no C compiler")),
    pytest.param("onnx", marks=pytest.mark.skipif(
        find_spec("onnxruntime") is None, reason="onnxruntime is not installed"))])


def classifier(n_classes: int = 3, calibration: str = "growing") -> TextClassifier:
    rows = ROWS if n_classes == 3 else ROWS.filter(pl.col("label") != "mid")
    model = TextClassifier(MultinomialNB(l=0.1)).fit(rows)
    model.set_calibration(CALIBRATIONS[calibration])
    return model.set_decision(Decision(
        {label: 0.2 + 0.5 * k for k, label in enumerate(model.classes_.tolist())}))


def topics(decision: Decision | None = None) -> TextClassifier:
    rows = ROWS.select("text", label=pl.Series(LISTS))
    model = TextClassifier(MultinomialNB(l=0.1)).fit(rows)
    model.set_calibration(Calibration(
        link="labels", sigmoids=((2.0, -1.0), (0.5, 3.0), (900.0, 0.0))))
    return model.set_decision(decision)


@engines
@pytest.mark.parametrize(("n_classes", "calibration", "positive"), [
    (3, "growing", None), (3, "none", None), (3, "cold", None), (3, "sigmoid", None),
    (2, "growing", None), (2, "growing", "pos"), (2, "none", "neg")])
def test_probabilities_and_decisions_are_those_of_the_model(
    to: str, n_classes: int, calibration: str, positive: str | None, tmp_path: Path
) -> None:
    model = classifier(n_classes, calibration)
    path = export_model(model, tmp_path / "out", to, positive=positive, answers="decision").path
    golden, own = verify_export(path), verify_export(path, ROWS)
    for found in (golden, own):
        assert found.passed, found
        assert found.answers == ("scores", "probability", "decision")
        assert found.largest_error < 1e-9
    # The same as the answers of the model itself, which computes from its own form.
    bundle, _ = archive.read(path, "out")
    target = TARGETS[to]
    engine = target.run(bundle, path / model_file(target), _rows(bundle))
    assert engine.probabilities is not None
    np.testing.assert_allclose(
        engine.probabilities, model.predict_proba(ROWS["text"].to_list()), atol=1e-9)
    decided = model.predict(ROWS)["decision"].to_list()
    assert engine.decisions == [[] if label is None else [label] for label in decided]
    assert calibration != "growing" or None in decided


def _rows(bundle: Bundle) -> TargetRows:
    return rows_of(bundle, ROWS.select("text"))


@engines
@pytest.mark.parametrize(("at_least", "at_most"), [
    (None, None), (1, None), (0, 1), (1, 2), (3, None)])
def test_lists_of_labels_are_ranked(
    to: str, at_least: int | None, at_most: int | None, tmp_path: Path
) -> None:
    thresholds = {"corn": 0.5, "grain": -math.inf, "wheat": math.inf}
    model = topics(None if at_least is None else Decision(
        thresholds, at_least=at_least, at_most=at_most))
    if at_least is not None and "ranks" not in getattr(TARGETS[to], "decides", ()):
        with pytest.raises(ExportError, match="the decision also ranks labels"):
            export_model(model, tmp_path / "out", to)
        return
    path = export_model(model, tmp_path / "out", to, answers="decision").path
    assert verify_export(path).passed
    bundle, _ = archive.read(path, "out")
    target = TARGETS[to]
    engine = target.run(bundle, path / model_file(target), _rows(bundle))
    assert engine.labels == model.predict(ROWS.select("text"))["predicted"].to_list()
    assert engine.probabilities is not None
    np.testing.assert_allclose(
        engine.probabilities, model.predict_proba(ROWS["text"].to_list()), atol=1e-9)


SQL = ["sql-duckdb", "sql-postgres", "sql-sqlite", "sql-clickhouse"]


@pytest.mark.sweep(3, 14)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("to", [*SQL, "polars", pytest.param(
    "onnx", marks=pytest.mark.skipif(
        find_spec("onnxruntime") is None, reason="onnxruntime is not installed"))])
@pytest.mark.parametrize(("at_least", "at_most"), [(1, None), (0, 1), (1, 1), (1, 2), (3, None)])
def test_labels_are_ranked(
    to: str, at_least: int, at_most: int | None, tmp_path: Path
) -> None:
    for number, thresholds in enumerate((
            {"corn": 0.5, "grain": -math.inf, "wheat": math.inf},
            {"corn": 0.5, "grain": 2.0, "wheat": 9.0},
            dict.fromkeys(["corn", "grain", "wheat"], -math.inf),
            dict.fromkeys(["corn", "grain", "wheat"], math.inf))):
        model = topics(Decision(thresholds, at_least=at_least, at_most=at_most))
        path = export_model(model, tmp_path / f"{number}", to).path
        bundle, _ = archive.read(path, "out")
        try:
            engine = TARGETS[to].run(bundle, path / model_file(TARGETS[to]), _rows(bundle))
        except EngineMissing as error:
            pytest.skip(str(error))
        assert engine.labels == model.predict(ROWS.select("text"))["predicted"].to_list()
        # An engine that starts anew takes seconds.
        assert number or verify_export(path).passed


@pytest.mark.sweep(4, 20)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("to", SQL)
@pytest.mark.parametrize("calibration", [*CALIBRATIONS, "positive", "labels", "never", "one"])
def test_sql_has_views_of_probabilities_and_decisions(
    to: str, calibration: str, tmp_path: Path
) -> None:
    positive = "pos" if calibration == "positive" else None
    if calibration == "labels":
        model = topics()
    elif calibration == "one":
        with pytest.warns(UserWarning, match="only one class"):
            model = TextClassifier(MultinomialNB()).fit(ROWS.filter(label="neg"))
        model.set_decision(Decision({"neg": 3.0}))
    else:
        model = classifier(2 if positive else 3, {"positive": "growing", "never": "none"}.get(
            calibration, calibration))
    if calibration == "never":
        model.set_decision(Decision({"mid": -math.inf, "neg": 1.0, "pos": math.inf}))
    path = export_model(model, tmp_path / "out", to, positive=positive, answers="decision").path
    bundle, _ = archive.read(path, "out")
    try:
        engine = TARGETS[to].run(bundle, path / "model.sql", _rows(bundle))
    except EngineMissing as error:
        pytest.skip(str(error))
    assert engine.probabilities is not None
    np.testing.assert_allclose(
        engine.probabilities, model.predict_proba(ROWS["text"].to_list()), atol=1e-9)
    if calibration != "labels":
        decided = model.predict(ROWS.select("text"))["decision"].to_list()
        assert engine.decisions == [[] if label is None else [label] for label in decided]
    found = verify_export(path)
    assert found.passed
    assert found.answers == ("scores", "probability", "decision")


def test_a_reader_of_parquet_ranks_labels_itself(tmp_path: Path) -> None:
    decision = Decision(dict.fromkeys(["corn", "grain", "wheat"], 0.5), at_least=1, at_most=1)
    path = export_model(topics(decision), tmp_path / "out", "parquet").path
    assert json.loads((path / archive.FORM).read_text("utf-8"))["decision"]["at_most"] == 1
    assert verify_export(path).passed


def test_functions_of_python(tmp_path: Path) -> None:
    model = classifier()
    export_model(model, tmp_path / "model.py", "python")
    program = runpy.run_path(str(tmp_path / "model.py"))
    for text, row in zip(ROWS["text"], model.predict(ROWS, top=2).to_dicts(), strict=True):
        assert program["decide"](text) == row["decision"]
        assert program["decide_terms"](program["tokens"](text)) == row["decision"]
        best = program["top"](text, 2)
        assert best == program["top_terms"](program["tokens"](text), 2)
        assert [label for label, _ in best] == [entry["class"] for entry in row["top"]]
        np.testing.assert_allclose([chance for _, chance in best],
                                   [entry["probability"] for entry in row["top"]], atol=1e-12)
        assert max(program["probabilities"](text)) <= 1.0


@programs
def test_verify_names_probabilities_and_decisions_that_differ(to: str, tmp_path: Path) -> None:
    path = export_model(classifier(), tmp_path / "out", to).path
    file = path / f"model{TARGETS[to].suffix}"
    text = file.read_text("ascii")
    changed = text.replace(">= least]", ">= least + 1]").replace(
        ">= LEAST_ODDS[k]", ">= LEAST_ODDS[k] + 1")
    file.write_text(changed, "ascii")
    write_sums(path)
    found = verify_export(path)
    assert not found.passed
    assert found.wrong_decisions
    assert not found.wrong_probabilities
    file.write_text(text.replace('"temperature":3.0', '"temperature":3.1'), "ascii")
    write_sums(path)
    found = verify_export(path)
    assert found.wrong_probabilities
    assert not found.wrong_scores


def test_golden_answers_must_follow_from_the_form(tmp_path: Path) -> None:
    path = export_model(classifier(), tmp_path / "out", "python").path
    form = json.loads((path / archive.FORM).read_text("utf-8"))
    form["calibration"]["temperature"] = 3.1
    (path / archive.FORM).write_text(json.dumps(form), "utf-8")
    write_sums(path)
    with pytest.raises(Exception, match="gives another probability"):
        verify_export(path)


def test_a_bundle_without_these_answers_verifies(tmp_path: Path) -> None:
    path = export_model(classifier(), tmp_path / "out", "python").path
    form = json.loads((path / archive.FORM).read_text("utf-8"))
    del form["answers"]
    (path / archive.FORM).write_text(json.dumps(form), "utf-8")
    golden = pl.read_parquet(path / archive.GOLDEN)
    assert golden.columns[-2:] == ["probability", "decision"]
    golden.drop("probability", "decision").write_parquet(path / archive.GOLDEN)
    write_sums(path)
    found = verify_export(path)
    assert found.passed
    assert found.answers == ("scores",)


def test_what_can_not_be_answered_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"csv: it answers with scores, and not with prob"):
        export_model(classifier(), tmp_path / "out", "csv", answers="probability")
    plain = TextClassifier().fit(ROWS)
    with pytest.raises(ExportError, match=r"the model has no decision"):
        export_model(plain, tmp_path / "out", "python", answers="decision")
    for answers, said in (("decision", "no decision"), ("probability", "held with all terms")):
        with pytest.raises(ExportError, match=said):
            export_model(classifier(), tmp_path / "out", "python", answers=answers, top=2)
    with pytest.raises(ParameterError, match="answers"):
        export_model(plain, tmp_path / "out", "python", answers="chances")
    assert not (tmp_path / "out").exists()


@programs
def test_a_program_refuses_answers_that_it_lacks(to: str, tmp_path: Path) -> None:
    path = export_model(TextClassifier().fit(ROWS), tmp_path / "out", to).path
    assert archive.read(path, "out")[0].answers == ("scores", "probability")
    command = [{"python": sys.executable, "javascript": "node"}[to],
               str(path / f"model{TARGETS[to].suffix}")]
    for given in (["--answers", "scores,decision"], ["--top", "x"], ["--chances"]):
        with pytest.raises(ExportError, match="the engine failed"):
            run_program([*command, *given])


@engines
def test_a_model_of_one_class_answers(to: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="only one class"):
        model = TextClassifier(MultinomialNB()).fit(ROWS.filter(label="neg"))
    for least in (3.0, math.inf):
        model.set_decision(Decision({"neg": least}))
        path = export_model(model, tmp_path / f"{least}", to).path
        found = verify_export(path, ROWS)
        assert found.passed
        assert found.answers == ("scores", "probability", "decision")
