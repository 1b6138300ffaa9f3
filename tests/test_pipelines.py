"""The jobs in pipelines/, from end to end on generated samples; stopped, and on a full disk."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import textnb
from corpora.samples import write_pipeline_samples
from pipelines import iris
from tests.cli.conftest import run

# A fixture of the command line.
__all__ = ["run"]

JOBS = Path(__file__).parents[1] / "pipelines"
NAMES = sorted(path.stem for path in JOBS.glob("*.toml"))
OUTPUTS = {"spam_filter": "spam-filter", "news_topics": "news-topics",
           "export_weights": "exported-weights", "feature_table": "feature-table"}
PROGRAM = [sys.executable, "-c", "from textnb.cli.entry import main; main()"]


def started(name, output, **settings):
    env = {**os.environ, "TEXTNB_OUTPUT": str(output)}
    return subprocess.Popen([*PROGRAM, "run", str(JOBS / f"{name}.toml")], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings)


@pytest.fixture(autouse=True)
def report_is_installed():
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")


def test_samples_are_those_that_are_generated(tmp_path):
    write_pipeline_samples(tmp_path)
    made = {path.relative_to(tmp_path): path.read_bytes()
            for path in tmp_path.rglob("*") if path.is_file()}
    there = {path.relative_to(JOBS / "samples"): path.read_bytes()
             for path in (JOBS / "samples").rglob("*") if path.is_file()}
    assert made == there
    assert set(OUTPUTS) == set(NAMES), "every job has a test"


every_job = pytest.mark.parametrize("name", NAMES)


@pytest.mark.sweep(1)
@every_job
def test_a_job_that_is_stopped_leaves_nothing(name, tmp_path):
    with started(name, tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("reading rows: ")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    # The engine may tell of a panic where the interrupt reached it; no traceback is ours.
    ours = [line for line in error.splitlines() if line.startswith("Traceback")]
    assert (process.returncode, ours) == (130, []), error
    assert error.splitlines()[-1] == "interrupted; no output was written or replaced"
    assert os.listdir(tmp_path) == []


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


@pytest.mark.sweep(1)
@every_job
def test_a_job_on_a_full_disk_leaves_nothing(name, tmp_path):
    with started(name, tmp_path, preexec_fn=small_files) as process:
        _, error = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in error) == (1, False), error
    assert re.search(f"error: can't write '?{re.escape(str(tmp_path))}.*File too large", error)
    assert os.listdir(tmp_path) == []


@pytest.mark.sweep(1)
@every_job
def test_a_job_writes_its_outputs(name, tmp_path, run, monkeypatch):
    # In this process, which has imported what a job needs.
    monkeypatch.setenv("TEXTNB_OUTPUT", str(tmp_path))
    out = tmp_path / OUTPUTS[name]
    assert run("run", JOBS / f"{name}.toml").checked().out == f"{out}\n"
    assert os.listdir(tmp_path) == [OUTPUTS[name]]
    metrics = json.loads((out / "metrics.json").read_text())
    # Of lists of labels, the measure is F1; every item has words of other topics.
    assert metrics.get("accuracy", 0) > 0.9 or metrics.get("micro_f1", 0) > 0.8
    CHECKS[name](out)


def spam_filter(out):
    assert sorted(os.listdir(out)) == [
        "held_out.parquet", "metrics.json", "model.textnb", "report.html", "run.json", "terms.csv",
        "validation.json"]
    model = textnb.load(out / "model.textnb")
    assert isinstance(model, textnb.TextClassifier)
    assert model.decision_ is not None
    assert model.decision_.evidence["false_positive_rate_bound"] <= 0.01
    answered = pl.read_parquet(out / "held_out.parquet")
    assert {"decision", "probability", "explanation", "subject", "errors"} <= set(answered.columns)
    spam = answered.filter(pl.col("decision") == "spam")
    assert (spam["label"] == "spam").mean() > 0.9
    assert any(term.startswith("subject:") for term in pl.read_csv(out / "terms.csv")["term"])
    message = b"Subject: You have WON a cash prize\n\nClaim code 55502, call 0900 555 0199"
    assert textnb.MailFilter.load(out / "model.textnb").judge(message).status == "spam"


def news_topics(out):
    topics = pl.read_parquet(out / "topics.parquet")
    assert topics["top"].list.len().unique().to_list() == [3]
    assert topics.schema["predicted"] == pl.List(pl.String)
    assert {0, 1, 2} <= set(topics["predicted"].list.len())
    words = pl.read_csv(out / "topic_words.csv")
    assert words["class"].n_unique() == 4
    assert any(term.startswith("title:") for term in words["term"])
    assert json.loads((out / "validation.json").read_text())["method"] == "5 folds"
    measured = json.loads((out / "metrics.json").read_text())
    assert measured["micro_f1"] > 0.8
    assert measured["calibrated"]
    assert textnb.verify_export(out / "topics.json").passed


def export_weights(out):
    assert {"weights", "classifier.py", "spam.sql"} <= set(os.listdir(out))
    for name in ("weights", "classifier.py", "spam.sql"):
        assert textnb.verify_export(out / name).passed
    weights = pl.read_parquet(out / "weights" / "weights.parquet")
    assert weights.columns == ["term", "w"]


def feature_table(out):
    answered = pl.read_parquet(out / "answers.parquet")
    assert {"predicted", "scores", "x1", "label"} <= set(answered.columns)
    assert (answered["predicted"] == answered["label"]).mean() > 0.9


CHECKS = {"spam_filter": spam_filter, "news_topics": news_topics,
          "export_weights": export_weights, "feature_table": feature_table}


def test_iris(tmp_path, capsys):
    out = f"{tmp_path}/iris"
    iris.main(["-o", out])
    told = capsys.readouterr().out
    # Estimate and published figure stand side by side.
    assert "│ versicolor ┆ sepal_length ┆ 5.936 ┆ 0.266    ┆ 5.936          ┆ 0.266 " in told
    assert "│ rest       ┆ sepal_width  ┆ 3.201 ┆ 0.175    ┆ 3.201          ┆ 0.175 " in told
    assert "Bayes, sepals: 120 of 150 flowers right" in told
    assert "naive Bayes, components: 124 of 150 flowers right" in told
    answers = pl.read_parquet(f"{out}/answers.parquet")
    fresh = answers.drop("predicted", "probability")
    again = textnb.load(f"{out}/components.textnb").predict(fresh)
    assert again["predicted"].equals(answers["predicted"])


def test_estimates_of_iris_are_the_published_ones():
    model = textnb.TableClassifier(
        textnb.GaussianNB(var_smoothing=0.0), features=iris.SEPALS, label="group"
    ).fit(iris.flowers())
    both = iris.estimates(model, iris.SEPALS, "group").join(
        iris.published_groups(), on=["group", "feature"], validate="1:1")
    assert both.height == 4
    for row in both.iter_rows(named=True):
        assert abs(row["mean"] - row["published mean"]) < 5.1e-4
        assert abs(row["variance"] - row["published variance"]) < 1e-3
