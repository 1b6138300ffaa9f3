"""textnb run --check refuses exports that can't work, without reading the job's rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from textnb import ExportError
from textnb.jobs.jobfile import read_job
from textnb.jobs.rows import check_job

JOB = """
output = "out"
[input]
train = "rows.csv"
[[exports]]
file = "model.sql"
to = "sql-sqlite"
"""


def check(folder: Path, *settings: str) -> None:
    pl.DataFrame({"text": ["a word", "two words"], "label": ["x", "y"], "x": [1.0, 2.0]}).write_csv(
        folder / "rows.csv")
    (folder / "job.toml").write_text(JOB)
    check_job(read_job(folder / "job.toml", settings))


@pytest.mark.parametrize("setting", [
    "model.kind=complement", "model.kind=lda", "exports.0.positive=x", "model.binary=true",
    "model.class_weight={x=2.0}", "model.tokenizer.sklearn=true", "model.min_df=2"])
def test_an_export_that_works_passes(tmp_path: Path, setting: str) -> None:
    check(tmp_path, setting)


@pytest.mark.parametrize("settings", [
    ["model.kind=qda"], ["exports.0.to=parquet", "exports.0.file=w", "exports.0.reads=text"]])
def test_an_export_that_can_not_work_is_refused(tmp_path: Path, settings: list[str]) -> None:
    with pytest.raises(ExportError, match=r"exports\.0: "):
        check(tmp_path, *settings)
    assert not (tmp_path / "out").exists()
