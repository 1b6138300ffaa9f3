"""textnb run --check refuses exports that can't work, without reading the job's rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from textnb import ExportError, TextClassifier
from textnb.errors import DataError, ParameterError, SchemaError, SourceError
from textnb.workflow.job import read_job
from textnb.workflow.run import Silent, run_job
from textnb.workflow.split import check_job

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


@pytest.mark.parametrize(("setting", "message"), [
    ("input.train=none.csv", r"^input\.train: no such file or folder: '.*none\.csv'"),
    ("input.test=none.csv", r"^input\.test: no such file"),
    ("predictions.input=none.csv", r"^predictions\.input: no such file"),
    ("model.text=body", r"^input\.train: no column 'body' .* or say which with model\.text$")])
def test_a_source_at_fault_is_named_by_its_key(
    tmp_path: Path, setting: str, message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        check(tmp_path, setting)
    assert "--" not in caught.value.command_line


@pytest.mark.parametrize(("settings", "message"), [
    (["validation.groups=author"], r"^validation\.groups: no column 'author'"),
    (["validation.time=day"], r"^validation\.time: no column 'day'"),
    (["model.weight=w"], r"^model\.weight: no column 'w' .* the columns are 'text', 'label', 'x'$"),
    (["model.kind=nblinear", "model.warm_start=other.textnb"], "weights of NBLinear; got those of"),
    (["model.warm_start=other.textnb"], "a warm start is for models with a solver")])
def test_a_column_or_a_model_that_a_key_names(
    tmp_path: Path, settings: list[str], message: str
) -> None:
    TextClassifier().fit(["aa", "bb"], ["x", "y"]).save(tmp_path / "other.textnb")
    with pytest.raises((SchemaError, ParameterError), match=message):
        check(tmp_path, *settings)


@pytest.mark.parametrize(("mark", "advice"), [
    (";", 'input.separator = ";"'), ("\t", 'input.format = "tsv"')])
def test_another_separator_is_named_by_its_key(tmp_path: Path, mark: str, advice: str) -> None:
    check(tmp_path)
    (tmp_path / "other.csv").write_text(f"text{mark}label\na word{mark}x\n")
    with pytest.raises(SchemaError) as caught:
        check_job(read_job(tmp_path / "job.toml", ["input.test=other.csv"]))
    assert str(caught.value).startswith("input.test: no column 'text' (the text column): the only")
    assert str(caught.value).endswith(f". Say so with {advice}")
    assert "--" not in caught.value.command_line


def test_rows_to_predict_are_looked_for_before_anything_is_learned(tmp_path: Path) -> None:
    check(tmp_path)
    job = read_job(tmp_path / "job.toml", ["predictions.input=none.csv"])
    seen: list[str] = []

    class Steps(Silent):
        def step(self, name: str) -> Callable[[int], None]:
            seen.append(name)
            return super().step(name)

    with pytest.raises(SourceError, match=r"^predictions\.input: "):
        run_job(job, Steps())
    assert seen == ["reading rows"]


@pytest.mark.parametrize(("setting", "told"), [
    ("exports.0.to=postgres", "  exports.0.to: unknown value 'postgres' - did you mean 'sql-post"),
    ("model.memory_limit=x", "model.memory_limit: must be bytes, "),
    ("model.kind=multinomal", "model.kind: unknown value 'multinomal' - did you mean 'mult")])
def test_an_error_names_a_key_once(tmp_path: Path, setting: str, told: str) -> None:
    with pytest.raises(ParameterError) as caught:
        check(tmp_path, setting)
    assert told.strip() in str(caught.value)
    assert str(caught.value).count(setting.split("=")[0].split(".")[-1] + ":") == 1
