"""One bundle in every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from textnb import (
    LinearDiscriminantAnalysis,
    ModelFileError,
    ParameterError,
    TableClassifier,
    TextClassifier,
    Tokenizer,
    export_model,
    verify_engines,
)
from textnb.export.targets.base import EngineMissing, TargetAnswers
from textnb.export.targets.known import TARGETS
from textnb.export.targets.python import Python

ROWS = pl.DataFrame({"text": ["good film", "so bad", "a film", None] * 200,
                     "label": ["pos", "neg"] * 400})


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return export_model(TextClassifier().fit(ROWS), tmp_path / "b", to="python").path


def test_every_engine_that_is_installed_agrees(bundle: Path) -> None:
    reports = verify_engines(bundle, ROWS)
    assert [report.target for report in reports] == list(TARGETS)
    for report in reports:
        assert not report.failed, report
        if report.verified is None:
            # LIBLINEAR keeps two classes in one column of weights, with `positive` alone.
            assert report.is_missing or report.target == "liblinear", report
        else:
            assert report.verified.rows == 800
            assert report.bytes
            assert report.load_seconds
    found = {report.target: report.verified.reads for report in reports if report.verified}
    assert (found["python"], found["json"]) == ("text", "terms")


def test_lists_of_labels_agree_too(tmp_path: Path) -> None:
    lists = ROWS.with_columns(label=pl.Series([["good", "film"], ["bad"], ["film"], []] * 200))
    model = TextClassifier().fit(lists)
    for report in verify_engines(export_model(model, tmp_path / "b", to="python").path, ROWS):
        assert not report.failed, report
        one_class = report.target in ("liblinear", "clickhouse-dictionary")
        assert report.verified or report.is_missing or one_class, report


def test_golden_rows_have_no_rate(bundle: Path) -> None:
    (report,) = verify_engines(bundle, engines=["python"])
    assert report.rows_per_second is None
    assert report.to_dict()["passed"] is True
    single = export_model(TextClassifier().fit(ROWS), bundle.parent / "m.py", to="python").path
    assert verify_engines(single, engines=["python"])[0].bytes == single.stat().st_size


def test_tokens_are_given_where_texts_can_not_be_split(tmp_path: Path) -> None:
    model = TextClassifier(tokenizer=Tokenizer(analyzer="char", ngram_range=(1, 2))).fit(ROWS)
    reports = verify_engines(export_model(model, tmp_path / "b", to="polars").path)
    found = {report.target: report.verified.reads for report in reports if report.verified}
    assert found["polars"] == "text"
    assert found["json"] == "terms"


def test_features(tmp_path: Path) -> None:
    table = pl.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), schema=["a", "b", "c"])
    model = TableClassifier(LinearDiscriminantAnalysis()).fit(
        table.with_columns(label=pl.Series(["x", "y"] * 20)))
    path = export_model(model, tmp_path / "b", to="json").path
    reports = verify_engines(path, engines=["json", "python", "sql-sqlite"])
    assert all(report.verified and report.verified.passed for report in reports)


class Wrong(Python):
    def run(self, bundle: Any, path: Any, rows: Any) -> TargetAnswers:
        answers = super().run(bundle, path, rows)
        return TargetAnswers(answers.scores + 1e-3, answers.labels)


class Missing(Python):
    def run(self, bundle: Any, path: Any, rows: Any) -> TargetAnswers:
        raise EngineMissing("pip install it")


class Failing(Python):
    def run(self, bundle: Any, path: Any, rows: Any) -> TargetAnswers:
        raise ValueError("broken")


@pytest.mark.parametrize(("target", "failed", "missing"), [
    (Wrong(), True, False), (Missing(), False, True), (Failing(), True, False)])
def test_what_is_wrong_is_told(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, target: Python, failed: bool, missing: bool,
) -> None:
    monkeypatch.setitem(TARGETS, "python", target)
    (report,) = verify_engines(bundle, engines=["python"])
    assert (report.failed, report.is_missing) == (failed, missing)


def test_what_can_not_be_verified(bundle: Path) -> None:
    with pytest.raises(ParameterError, match="sql-duckdb"):
        verify_engines(bundle, engines=["duckdb"])
    (bundle / "model.py").unlink()
    with pytest.raises(ModelFileError, match=r"model\.py"):
        verify_engines(bundle, engines=["python"])
