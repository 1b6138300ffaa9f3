"""A job's file: keys, their defaults, paths, and what is set from outside."""

import pytest

from tests.workflow.conftest import read
from textnb import ParameterError

SOUND = 'output = "out"\n[input]\ntrain = "rows.csv"\n'


def job(folder, *settings):
    return read(folder, *settings, text=SOUND)


def test_what_is_left_out_has_a_default(tmp_path):
    result = job(tmp_path)
    assert (result.model.kind, result.model.text_columns, result.model.columns.label) == (
        "multinomial", ["text"], "label")
    assert (result.input.hold_out, result.validation, result.decision) == (0.2, None, None)


@pytest.mark.parametrize(("written", "path"), [
    ("rows.csv", "{}/rows.csv"), ("new/*.csv", "{}/new/*.csv"), ("/data/x.csv", "/data/x.csv"),
    ("s3://bucket/rows.parquet", "s3://bucket/rows.parquet"), ("-", "-"),
    ("sqlite:///news.db", "sqlite:///{}/news.db"),
    ("sqlite+pysqlite:///news.db", "sqlite+pysqlite:///{}/news.db"),
    ("sqlite:////data/news.db", "sqlite:////data/news.db"),
    ("postgresql:///news", "postgresql:///news"),
    ("${MAIL}/spam", "/home/me/mail/spam"), ("${NOT_SET:-other}", "{}/other")])
def test_paths_are_beside_the_jobs_file(tmp_path, monkeypatch, written, path):
    monkeypatch.setenv("MAIL", "/home/me/mail")
    monkeypatch.delenv("NOT_SET", raising=False)
    result = job(tmp_path, f"input.train={written}", f"predictions.input={written}",
                f"input.test={written}", f"input.train_where=a = '{written}'")
    expected = path.replace("{}", str(tmp_path))
    assert [result.input.train, result.input.test, result.predictions.input] == [expected] * 3
    # A condition may hold such a text.
    assert result.input.train_where == f"a = '{written}'"
    assert result.output == str(tmp_path / "out")


def test_a_variable_of_the_environment_that_is_not_set_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("NOT_SET", raising=False)
    with pytest.raises(ParameterError, match=r"input\.train: the environment variable NOT_SET is "
                                             r"not set; set it, or write \$\{NOT_SET:-default\}"):
        job(tmp_path, "input.train=${NOT_SET}/x")


def test_a_byte_order_mark_is_no_key(tmp_path):
    assert read(tmp_path, text=f"\ufeff{SOUND}").output == str(tmp_path / "out")
    with pytest.raises(ParameterError, match="line 1: title: no such key"):
        read(tmp_path, text=f"\ufefftitle = 1\n{SOUND}")


@pytest.mark.parametrize(("setting", "holds"), [
    ("model.l=0.1", lambda job: job.model.parameters["l"] == 0.1),
    ("model.l=auto", lambda job: job.model.parameters["l"] == "auto"),
    ('model.text=["a", "b"]', lambda job: job.model.text_columns == ["a", "b"]),
    ("model.text=body", lambda job: job.model.text_columns == ["body"]),
    ("model.class_weight={x=2.0}", lambda job: job.model.parameters["class_weight"] == {"x": 2.0}),
    ("model.tokenizer.ngram_range=[1, 2]", lambda job: job.model.tokenizer == {
        "ngram_range": (1, 2)}),
    ("validation.folds=3", lambda job: job.validation.folds == 3),
    ("calibration={}", lambda job: job.calibration.length_aware is True),
    ("exports=[{file='w.onnx'}]", lambda job: job.exports[0].to is None),
    ("output = elsewhere", lambda job: job.output.endswith("elsewhere"))])
def test_keys_are_set_from_outside(tmp_path, setting, holds):
    assert holds(job(tmp_path, setting))
