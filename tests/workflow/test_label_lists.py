"""Jobs where documents have lists of labels."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from corpora.samples import topics
from tests.workflow.test_run import contents, run
from textnb import ExportError, ParameterError, evaluate, load, verify_export
from textnb.workflow.job import read_job
from textnb.workflow.split import check_job

JOB = """
output = "out"
[input]
train = "news.parquet"
[model]
label = "topics"
text = ["title", "description"]
l = 0.1
[validation]
[calibration]
[decision]
by = "f1"
[terms]
[predictions]
top = 2
[[exports]]
file = "topics.json"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    news = topics(400)
    news.write_parquet(tmp_path / "news.parquet")
    news.with_columns(pl.col("topics").list.join(" | ")).write_csv(tmp_path / "news.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_steps_know_lists(folder: Path) -> None:
    out = run(folder, text=JOB)
    assert sorted(contents(out)) == [
        "metrics.json", "model.textnb", "predictions.parquet", "run.json", "terms.csv",
        "topics.json", "topics.json.bundle.zip", "validation.json"]
    answered = pl.read_parquet(out / "predictions.parquet")
    assert answered.schema["predicted"] == pl.List(pl.String)
    assert answered["predicted"].list.len().n_unique() > 2
    model = load(out / "model.textnb")
    assert model.decision_ is not None
    assert model.decision_.evidence["by"] == "f1"
    assert model.calibration_ is not None
    measured = json.loads((out / "metrics.json").read_text("utf-8"))
    found = evaluate(model, answered.select("title", "description", "topics"))
    assert measured["micro_f1"] == found.to_dict()["micro_f1"]
    validated = json.loads((out / "validation.json").read_text("utf-8"))
    assert (validated["method"], validated["documents"]) == ("5 folds", 400 - answered.height)
    assert verify_export(out / "topics.json", answered).passed


def test_a_report_and_explanations_of_lists(folder: Path) -> None:
    for library in ("altair", "vl_convert", "jinja2"):
        pytest.importorskip(library, reason="needs textnb[report]")
    out = run(folder, "exports=[]", "predictions.explain=2", "test.report='report.html'", text=JOB)
    assert "Labels one by one" in (out / "report.html").read_text("utf-8")
    answered = pl.read_parquet(out / "predictions.parquet")
    assert [[entry["label"] for entry in row] for row in answered["explanation"].to_list()] == (
        answered["predicted"].to_list())


def test_a_separator_gives_the_same_model_as_lists(folder: Path) -> None:
    first = contents(run(folder, text=JOB))["model.textnb"]
    again = contents(run(folder, "input.train=news.csv", "input.label_separator=|", text=JOB))
    assert again["model.textnb"] == first


def test_columns_of_labels_give_the_same_model_as_lists(folder: Path) -> None:
    first = contents(run(folder, text=JOB))["model.textnb"]
    rows = pl.read_parquet(folder / "news.parquet")
    labels = sorted(set(rows["topics"].explode().drop_nulls()))
    rows.select(pl.exclude("topics"), *(
        pl.col("topics").list.contains(label).alias(label) for label in labels)
    ).write_csv(folder / "columns.csv")
    columns = f"input.label_columns={labels!r}"
    again = contents(run(folder, "input.train=columns.csv", columns, text=JOB))
    assert again["model.textnb"] == first
    with pytest.raises(ParameterError, match="label_columns: does not go with label_separator"):
        run(folder, columns, "input.label_separator=|", text=JOB)


@pytest.mark.parametrize("key", ["input.label_separator=|", "input.label_columns=['a']"])
def test_a_table_has_no_lists_of_labels(folder: Path, key: str) -> None:
    text = "output = 'out'\n[input]\ntrain = 'news.parquet'\n[model]\nkind = 'gaussian'\n"
    with pytest.raises(ParameterError, match=r"input\.label_\w+: it is for models of texts"):
        run(folder, key, text=text)


@pytest.mark.parametrize("choice", [
    "decision={by='micro-f1'}", "decision={min_precision=0.6}", "decision={costs=[1.0, 2.0]}",
    "decision={by='f1', at_least=1, at_most=2}"])
def test_each_way_of_choosing_thresholds(folder: Path, choice: str) -> None:
    out = run(folder, choice, "exports=[]", text=JOB)
    answered = pl.read_parquet(out / "predictions.parquet")["predicted"].list.len()
    if "at_least" in choice:
        assert set(answered) == {1, 2}


@pytest.mark.parametrize("key", [
    "decision={min_probability=0.5}", "test.positive=World",
    "decision={max_false_positive_rate=0.1, positive='World'}",
    "exports=[{file='w.json', positive='World'}]"])
def test_keys_for_one_label_are_refused_by_name(folder: Path, key: str) -> None:
    (folder / "job.toml").write_text(JOB, "utf-8")
    job = read_job(folder / "job.toml", [key])
    with pytest.raises(ParameterError, match=r"\w+\.\w+.* is for one label per document"):
        check_job(job)
    with pytest.raises(ParameterError, match="is for one label per document"):
        run(folder, key, text=JOB)
    assert not (folder / "out").exists()


@pytest.mark.parametrize(("key", "message"), [
    ("decision={by='f1'}", r"decision\.by is for lists of labels"),
    ("decision={min_precision=0.5, at_most=2}", r"decision\.at_most is for lists of labels"),
    ("decision={costs=[1.0, 2.0]}", "costs needs positive: the class")])
def test_keys_for_lists_are_refused_where_there_is_one_label(
    folder: Path, key: str, message: str
) -> None:
    topics(60).with_columns(pl.lit("a").alias("topics")).write_parquet(folder / "news.parquet")
    for act in (lambda: check_job(read_job(folder / "job.toml", [key])),
                lambda: run(folder, key, text=JOB)):
        (folder / "job.toml").write_text(JOB, "utf-8")
        with pytest.raises(ParameterError, match=message):
            act()


def test_the_check_tries_exports_with_lists(folder: Path) -> None:
    (folder / "job.toml").write_text(JOB, "utf-8")
    check_job(read_job(folder / "job.toml", []))
    for setting, message in (("exports=[{file='t.model', to='liblinear'}]", "one class"),
                             ("decision={by='f1', at_least=1}", "ranks labels")):
        with pytest.raises(ExportError, match=message):
            check_job(read_job(folder / "job.toml", [setting]))
