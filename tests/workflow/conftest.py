"""Fixtures and functions that run jobs in a temporary folder."""

import pytest

from tests.messages import spam_messages
from textnb.workflow.job import read_job
from textnb.workflow.run import Silent, run_job
from textnb.workflow.split import check_job

JOB = """
output = "out"
[input]
train = "rows.parquet"
[model]
l = 0.1
[terms]
[predictions]
"""


class Recorder(Silent):
    """Remembers the steps of a job and their results."""

    def __init__(self):
        self.steps, self.results, self.rows = [], [], 0

    def step(self, name):
        self.steps.append(name)
        return self._advance

    def result(self, outcome):
        self.results.append(outcome)

    def _advance(self, rows):
        self.rows += rows


def read(folder, *settings, text=JOB):
    """Read a job; ``settings`` replace some of its keys, as --set does."""
    (folder / "job.toml").write_text(text, "utf-8")
    return read_job(folder / "job.toml", settings)


def check(folder, *settings, text=JOB):
    check_job(read(folder, *settings, text=text))


def run(folder, *settings, text=JOB, record=None):
    return run_job(read(folder, *settings, text=text), *([] if record is None else [record]))


def contents(out):
    return {str(path.relative_to(out)): path.read_bytes()
            for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with rows."""
    spam_messages(400).write_parquet(tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path
