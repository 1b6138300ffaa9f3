"""Jobs where documents have lists of labels."""

import json

import polars as pl
import pytest

from tests.workflow.conftest import check, contents, run
from textnb import ExportError, ParameterError, evaluate, load, verify_export
from textnb.workflow.samples import topics

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
NEWS = topics(400)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    NEWS.write_parquet(tmp_path / "news.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_steps_know_lists(folder):
    out = run(folder, text=JOB)
    assert sorted(contents(out)) == [
        "metrics.json", "model.textnb", "predictions.parquet", "run.json", "terms.csv",
        "topics.json", "topics.json.bundle.zip", "validation.json"]
    answers = pl.read_parquet(out / "predictions.parquet")
    assert answers.schema["predicted"] == pl.List(pl.String)
    assert answers["predicted"].list.len().n_unique() > 2
    model = load(out / "model.textnb")
    assert model.decision_.evidence["by"] == "f1"
    assert model.calibration_ is not None
    measures = json.loads((out / "metrics.json").read_text("utf-8"))
    expected = evaluate(model, answers.select("title", "description", "topics")).to_dict()
    assert measures["micro_f1"] == expected["micro_f1"]
    validation = json.loads((out / "validation.json").read_text("utf-8"))
    assert (validation["method"], validation["documents"]) == ("5 folds", 400 - answers.height)
    assert verify_export(out / "topics.json", answers).passed


def test_a_report_and_explanations_of_lists(folder):
    for library in ("altair", "vl_convert", "jinja2"):
        pytest.importorskip(library, reason="needs textnb[report]")
    out = run(folder, "exports=[]", "predictions.explain=2", "test.report='report.html'", text=JOB)
    assert "Labels one by one" in (out / "report.html").read_text("utf-8")
    answers = pl.read_parquet(out / "predictions.parquet")
    assert [[entry["label"] for entry in row] for row in answers["explanation"].to_list()] == (
        answers["predicted"].to_list())


def test_rows_get_the_number_of_labels_that_is_asked_for(folder):
    out = run(folder, "decision={by='f1', at_least=1, at_most=2}", "exports=[]", text=JOB)
    answers = pl.read_parquet(out / "predictions.parquet")
    assert set(answers["predicted"].list.len()) == {1, 2}


@pytest.mark.parametrize(("key", "message"), [
    *((key, r"\w+\.\w+.* is for one label per document") for key in (
        "decision={min_probability=0.5}",
        "decision={max_false_positive_rate=0.1, positive='World'}",
        "exports=[{file='w.json', positive='World'}]")),
    ("exports=[{file='t.model', to='liblinear'}]", "one class"),
    ("decision={by='f1', at_least=1}", "ranks labels")])
def test_what_lists_do_not_have_is_refused_by_name(folder, key, message):
    check(folder, text=JOB)
    for act in (check, run):
        with pytest.raises((ParameterError, ExportError), match=message):
            act(folder, key, text=JOB)
    assert not (folder / "out").exists()


@pytest.mark.parametrize(("key", "message"), [
    ("decision={by='f1'}", r"decision\.by is for lists of labels"),
    ("decision={min_precision=0.5, at_most=2}", r"decision\.at_most is for lists of labels"),
    ("decision={costs=[1.0, 2.0]}", "costs needs positive: the class")])
def test_keys_for_lists_are_refused_where_there_is_one_label(folder, key, message):
    NEWS.with_columns(pl.lit("a").alias("topics")).write_parquet("news.parquet")
    for act in (check, run):
        with pytest.raises(ParameterError, match=message):
            act(folder, key, text=JOB)
