"""A step of a job is that of its verb: it has the same options, and gives the same files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from corpora.samples import spam_messages
from textnb.cli.main import app, command_of
from textnb.cli.options import Command
from textnb.learning.settings import ColumnSettings, LimitSettings
from textnb.runtime.settings import declared
from textnb.workflow.job import SECTIONS, read_job
from textnb.workflow.options import LabelledOptions, LearnOptions
from textnb.workflow.run import run_job

# By section of a job: its verb, and keys that say where rows come from or where results go.
VERBS = {
    "input": ("train", {"train", "train_where", "test", "test_where", "hold_out"}),
    "validation": ("validate", set[str]()), "calibration": ("calibrate", set[str]()),
    "decision": ("threshold", set[str]()), "test": ("test", {"report"}),
    "terms": ("top", {"file"}), "predictions": ("predict", {"input", "where", "format", "file"}),
    "exports": ("export", {"file", "verify"})}
JOB = """
output = "job"
[input]
train = "rows.parquet"
test = "test.parquet"
[model]
l = 0.5
min_df = 2
[validation]
folds = 3
positive = "spam"
[calibration]
length_aware = false
[decision]
positive = "spam"
costs = [10.0, 1.0]
[test]
positive = "spam"
[predictions]
scores = true
[[exports]]
file = "spam.json"
positive = "spam"
top = 50
"""


def verb(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("section", VERBS)
def test_a_section_has_the_options_of_its_verb(section: str) -> None:
    name, own = VERBS[section]
    command = command_of(name)
    assert isinstance(command, Command)
    keys = {field.name: type(field) for field, _ in declared(SECTIONS[section])}
    groups = [group for group in command.groups if issubclass(SECTIONS[section], group) or any(
        base in group.__mro__ for base in SECTIONS[section].__mro__[:-1])]
    options = {field.name for group in groups for field, _ in declared(group)}
    assert keys.keys() - own <= options
    assert {each.name for base in SECTIONS[section].__mro__ if base in groups
            for each, _ in declared(base)} <= keys.keys()


def test_the_model_has_the_options_of_train() -> None:
    command = command_of("train")
    assert isinstance(command, Command)
    assert {ColumnSettings, LimitSettings, LearnOptions} <= set(command.groups)
    assert any(issubclass(group, LabelledOptions) for group in command.groups)


def test_a_job_writes_what_the_verbs_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spam_messages(300).write_parquet("rows.parquet")
    spam_messages(120, seed=1).write_parquet("test.parquet")
    Path("job.toml").write_text(JOB, "utf-8")
    job = run_job(read_job("job.toml"))

    verb("train", "rows.parquet", "--l", "0.5", "--min-df", "2", "-o", "m.textnb")
    validated = verb("validate", "m.textnb", "rows.parquet", "--folds", "3", "--positive", "spam",
                     "--format", "json")
    verb("calibrate", "m.textnb", "rows.parquet", "--no-length")
    verb("threshold", "m.textnb", "rows.parquet", "--scored", "leave-one-out", "--class", "spam",
         "--costs", "10,1")
    tested = verb("test", "m.textnb", "test.parquet", "--positive", "spam", "--format", "json")
    verb("predict", "m.textnb", "test.parquet", "--probability", "--scores", "-o", "p.parquet")
    verb("export", "m.textnb", "--positive", "spam", "--top", "50", "-o", "spam.json")

    def written(name: str) -> Any:
        return json.loads((job / name).read_text("utf-8"))

    assert Path("m.textnb").read_bytes() == (job / "model.textnb").read_bytes()
    assert written("validation.json") == json.loads(validated)
    assert written("metrics.json") == json.loads(tested)
    assert pl.read_parquet("p.parquet").equals(pl.read_parquet(job / "predictions.parquet"))
    assert Path("spam.json").read_bytes() == (job / "spam.json").read_bytes()
