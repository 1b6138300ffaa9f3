"""A step of a job is that of its verb: it has the same options, and gives the same files."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.messages import spam_messages
from tests.workflow.conftest import run
from textnb.cli.main import app, command_of
from textnb.learning.settings import ColumnSettings, LimitSettings
from textnb.runtime.settings import setting_fields
from textnb.workflow.job import SECTIONS
from textnb.workflow.options import LabelledOptions, LearnOptions

# By section of a job: its verb, and keys that say where rows come from or where results go.
VERBS = {
    "input": ("train", {"train", "train_where", "test", "test_where", "hold_out"}),
    "audit": ("audit", {"file"}),
    "validation": ("validate", set[str]()), "calibration": ("calibrate", set[str]()),
    "decision": ("threshold", set[str]()), "test": ("test", {"report"}),
    "terms": ("top", {"file", "safe_csv"}),
    "predictions": ("predict", {"input", "where", "format", "file", "safe_csv"}),
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


@pytest.mark.parametrize("section", VERBS)
def test_a_section_has_the_options_of_its_verb(section):
    name, own = VERBS[section]
    bases = SECTIONS[section].__mro__
    groups = [group for group in command_of(name).groups if issubclass(
        SECTIONS[section], group) or any(base in group.__mro__ for base in bases[:-1])]
    keys = {field.name for field, _ in setting_fields(SECTIONS[section])}
    assert keys - own <= {field.name for group in groups for field, _ in setting_fields(group)}
    assert {field.name for base in bases if base in groups
            for field, _ in setting_fields(base)} <= keys


def test_the_model_has_the_options_of_train():
    groups = command_of("train").groups
    assert {ColumnSettings, LimitSettings, LearnOptions} <= {*groups}
    assert any(issubclass(group, LabelledOptions) for group in groups)


def test_a_job_writes_what_the_verbs_write(folder):
    def verb(*words):
        done = CliRunner().invoke(app, words, catch_exceptions=False)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    spam_messages(120, seed=1).write_parquet("test.parquet")
    job = run(folder, text=JOB)
    verb("train", "rows.parquet", "--l", "0.5", "--min-df", "2", "-o", "m.textnb")
    validation = verb("validate", "m.textnb", "rows.parquet", "--folds", "3", "--positive", "spam",
                      "--format", "json")
    verb("calibrate", "m.textnb", "rows.parquet", "--no-length")
    verb("threshold", "m.textnb", "rows.parquet", "--scored", "leave-one-out", "--class", "spam",
         "--costs", "10,1")
    measures = verb("test", "m.textnb", "test.parquet", "--positive", "spam", "--format", "json")
    verb("predict", "m.textnb", "test.parquet", "--probability", "--scores", "-o",
         "predictions.parquet")
    verb("export", "m.textnb", "--positive", "spam", "--top", "50", "-o", "spam.json")
    assert Path("m.textnb").read_bytes() == (job / "model.textnb").read_bytes()
    assert json.loads((job / "validation.json").read_text("utf-8")) == json.loads(validation)
    assert json.loads((job / "metrics.json").read_text("utf-8")) == json.loads(measures)
    for name in ("predictions.parquet", "spam.json"):
        assert Path(name).read_bytes() == (job / name).read_bytes()
