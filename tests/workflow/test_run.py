"""Whole jobs: what they write, and that they write all of it or nothing."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from corpora.samples import news, spam_messages
from textnb import (
    DataError,
    ExportError,
    ParameterError,
    SchemaError,
    SourceError,
    TextClassifier,
    evaluate,
    load,
)
from textnb.cli.main import app
from textnb.cli.summary import lines_of
from textnb.workflow.job import read_job
from textnb.workflow.run import run_job

JOB = """
output = "out"
[input]
train = "rows.parquet"
[model]
l = 0.1
[terms]
[predictions]
"""


class Heard:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.results: list[Any] = []
        self.rows = 0

    def step(self, name: str) -> Callable[[int], None]:
        self.steps.append(name)
        return self._advance

    def result(self, found: Any) -> None:
        self.results.append(found)

    def _advance(self, rows: int) -> None:
        self.rows += rows


def run(folder: Path, *settings: str, text: str = JOB) -> Path:
    (folder / "job.toml").write_text(text, "utf-8")
    return run_job(read_job(folder / "job.toml", settings))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    spam_messages(400).write_parquet(tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes()
            for path in sorted(out.rglob("*")) if path.is_file()}


def test_the_model_is_that_of_the_rows_that_were_not_held_out(folder: Path) -> None:
    out = run(folder)
    assert sorted(contents(out)) == [
        "metrics.json", "model.textnb", "predictions.parquet", "run.json", "terms.csv"]
    answered = pl.read_parquet(out / "predictions.parquet")
    rows = pl.read_parquet(folder / "rows.parquet")
    learned = rows.join(answered.select("text").unique(), on="text", how="anti",
                        maintain_order="left")
    # Copies are on one side.
    assert answered.height + learned.height == rows.height
    assert 40 < answered.height < 120
    again = TextClassifier(load(out / "model.textnb").estimator).fit(learned)
    again.save(folder / "again.textnb")
    assert (folder / "again.textnb").read_bytes() == (out / "model.textnb").read_bytes()
    metrics = json.loads((out / "metrics.json").read_text())
    tested = answered.select("text", "label")
    assert metrics["accuracy"] == evaluate(again, tested).accuracy
    record = json.loads((out / "run.json").read_text())
    assert record["rows"] == {"learned": learned.height, "tested": answered.height, "malformed": 0}


def test_it_is_safe_to_repeat(folder: Path) -> None:
    settings = ("calibration={}", "validation.folds=3", "model.l=auto")
    first = contents(run(folder, *settings))
    assert contents(run(folder, *settings)) == first
    assert sorted(os.listdir(folder)) == ["job.toml", "out", "rows.parquet"]
    # What only the earlier run wrote goes; what somebody else did stays.
    assert "terms.csv" not in contents(run(folder, text=JOB.replace("[terms]", "")))
    (folder / "out" / "note.txt").write_text("mine")
    with pytest.raises(SourceError, match=r"it holds 'note\.txt', which no job wrote"):
        run(folder)
    assert (folder / "out" / "note.txt").read_text() == "mine"


def test_steps_are_told(folder: Path) -> None:
    (folder / "job.toml").write_text(JOB, "utf-8")
    heard = Heard()
    run_job(read_job("job.toml", ["validation={}", "calibration={}",
                                  "decision.min_probability=0.9"]), heard)
    assert heard.steps == ["reading rows", "training", "validating", "calibrating",
                           "choosing thresholds", "testing", "listing terms", "predicting"]
    told = [line for result in heard.results for line in lines_of(result)]
    assert told[0].endswith("to test on (held out of the same input)")
    assert any("uncalibrated), 5 folds: mean accuracy" in line for line in told)
    assert any(line.startswith("log loss 0.") and " -> " in line for line in told)
    assert heard.rows > 400


def test_a_class_of_one_row_leaves_a_log_loss(folder: Path) -> None:
    rows = pl.DataFrame({"text": ["aa", "aa bb", "bb", "bb aa", "cc aa"],
                         "label": ["x", "x", "y", "y", "z"]})
    rows.write_parquet(folder / "rows.parquet")
    rows.write_parquet(folder / "test.parquet")
    out = run(folder, "validation.leave_one_out=true", "input.test=test.parquet")
    told = json.loads((out / "validation.json").read_text())
    assert type(told["log_loss"]) is float
    assert told["not_judged"] == 1


@pytest.mark.parametrize(("settings", "error", "message"), [
    (["input.train=none.parquet"], SourceError, r"^input\.train: no such file"),
    (["input.test=none.parquet"], SourceError, r"^input\.test: no such file"),
    (["predictions.input=none.parquet"], SourceError, r"^predictions\.input: no such file"),
    (["model.text=body"], SchemaError, r"^input\.train: no column 'body'.* model\.text$"),
    (["model.label=kind"], SchemaError, r"^input\.train: no column 'kind'.* model\.label$"),
    (["input.train_where=nothing = 1"], ParameterError, "input.train_where 'nothing = 1'"),
    (["input.test_where=label = 'x'"], DataError,
     "no rows to test on: input.test_where = \"label = 'x'\" leaves none of them"),
    (["input.train_where=label = 'x'", "input.test_where=label = 'ham'"], DataError,
     "no rows to learn"),
    (["test.positive=junk"], ParameterError, "test.positive: unknown value 'junk'"),
    (["decision.positive=junk", "decision.costs=[1.0, 1.0]"], ParameterError,
     "decision.positive: unknown value 'junk'"),
    (["decision.positive=spam", "decision.max_false_positive_rate=0.0001"], DataError,
     "more are needed"),
    (["exports.0.to=liblinear", "exports.0.file=x"], ExportError, "say which class"),
    (["validation.groups=none"], SchemaError, "no column 'none'"),
    (["model.max_features=20", "calibration={}"], ParameterError, "calibration: it leaves rows"),
])
def test_a_failure_leaves_the_output_as_it_was(
    folder: Path, settings: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(folder, *settings)
    assert sorted(os.listdir(folder)) == ["job.toml", "rows.parquet"]
    before = contents(run(folder))
    with pytest.raises(error, match=message):
        run(folder, *settings)
    assert contents(folder / "out") == before
    assert sorted(os.listdir(folder)) == ["job.toml", "out", "rows.parquet"]


def test_only_an_output_of_its_own_is_replaced(folder: Path) -> None:
    (folder / "out").mkdir()
    run(folder)
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("years of work")
    for output in ("mine", "rows.parquet", ".", "..", "/"):
        with pytest.raises(SourceError, match="can't write"):
            run(folder, f"output={output}")
    assert (folder / "mine" / "thesis.txt").read_text() == "years of work"
    with pytest.raises(SourceError, match=r"rows\.parquet' is no folder"):
        run(folder, "output=rows.parquet/out")


def test_the_folders_of_an_output_are_made(folder: Path) -> None:
    run(folder, "output=new/deep/out")
    assert "model.textnb" in contents(folder / "new" / "deep" / "out")
    with pytest.raises(ParameterError):
        run(folder, "output=other/deep/out", "decision.positive=absent")
    assert sorted(os.listdir(folder)) == ["job.toml", "new", "rows.parquet"]


def test_a_folder_that_cannot_be_made_is_told_before_work_begins(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textnb.workflow.staging.os.access", lambda *_: False)
    with pytest.raises(SourceError, match="no folder can be made in"):
        run(folder, "output=new/out")
    assert sorted(os.listdir(folder)) == ["job.toml", "rows.parquet"]


def test_one_run_at_a_time(folder: Path) -> None:
    run(folder)
    with (folder / ".out.textnb-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SourceError, match="another run is at work on"):
            run(folder)
    run(folder)


def test_what_a_killed_run_left_is_thrown_away(folder: Path) -> None:
    before = contents(run(folder))
    (folder / ".out.textnb-run").mkdir()
    (folder / ".out.textnb-run" / "model.textnb").write_text("half")
    # Killed between its two renames: the old output is under another name.
    (folder / "out").rename(folder / ".out.textnb-old")
    with pytest.raises(SourceError, match="no such file"):
        run(folder, "input.train=none.parquet")
    assert contents(folder / "out") == before
    assert contents(run(folder)) == before
    assert sorted(os.listdir(folder)) == ["job.toml", "out", "rows.parquet"]


def test_rows_of_their_own_to_test_on_and_to_predict(folder: Path) -> None:
    spam_messages(60, seed=1).write_csv(folder / "test.csv")
    spam_messages(30, seed=2).drop("label").write_ndjson(folder / "new.ndjson")
    out = run(folder, "input.test=test.csv", "input.test_where=label = 'spam'",
              "predictions.input=new.ndjson", "predictions.file=new.csv", "predictions.top=0")
    assert json.loads((out / "run.json").read_text())["rows"]["learned"] == 400
    assert json.loads((out / "metrics.json").read_text())["documents"] == 15
    answered = pl.read_csv(out / "new.csv")
    assert answered.columns == ["text", "predicted", "probability"]
    assert answered.height == 30


def test_topics(folder: Path) -> None:
    news(400).write_parquet(folder / "news.parquet")
    out = run(folder, "input.train=news.parquet", 'model.text=["title", "description"]',
              'model.tokenizer.field_prefix=["title"]', "calibration={}",
              "decision.min_precision=0.9", "predictions.top=3")
    answered = pl.read_parquet(out / "predictions.parquet")
    best = answered.select(
        pl.col("top").list.first().struct.field("class").alias("first"),
        pl.col("top").list.len().alias("topics"),
        pl.col("top").list.eval(pl.element().struct.field("probability")).list.sum().alias("sum"),
        "predicted", "calibrated", "decision")
    assert (best["first"] == best["predicted"]).all()
    assert (best["topics"] == 3).all()
    assert (best["sum"] <= 1 + 1e-12).all()
    assert best["calibrated"].all()
    assert set(pl.read_csv(out / "terms.csv")["class"]) == {
        "Business", "Sci/Tech", "Sports", "World"}
    told = json.loads((out / "metrics.json").read_text())["decision"]
    assert told["unsure"] == best["decision"].null_count()


def test_tables(folder: Path) -> None:
    rows = pl.DataFrame({"x": [float(n % 7) + 5 * (n % 2) for n in range(80)],
                         "label": [n % 2 == 1 for n in range(80)]})
    rows.write_parquet(folder / "table.parquet")
    text = '[input]\ntrain = "table.parquet"\n[model]\nkind = "gaussian"\n[predictions]'
    out = run(folder, text=f'output = "out"\n{text}')
    assert {"predicted", "probability"} <= set(
        pl.read_parquet(out / "predictions.parquet").columns)


def test_an_export_that_can_not_be_verified_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEXTNB_POSTGRES", raising=False)
    settings = ["exports.0.to=sql-postgres", "exports.0.file=spam.sql"]
    with pytest.raises(ExportError, match="or set verify = false"):
        run(folder, *settings)
    assert "spam.sql" in contents(run(folder, *settings, "exports.0.verify=false"))


@pytest.fixture
def unwritable(folder: Path) -> Iterator[Path]:
    place = folder / "closed"
    place.mkdir()
    place.chmod(0o500)
    yield place
    place.chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_can_not_be_written(unwritable: Path) -> None:
    with pytest.raises(SourceError, match="Permission denied"):
        run(unwritable.parent, "output=closed/out")


def test_mail(folder: Path, tmp_path: Path) -> None:
    for label in ("ham", "spam"):
        (folder / "mail" / label).mkdir(parents=True)
        for n in range(30):
            word = "cheap pills" if label == "spam" else "noon lunch"
            (folder / "mail" / label / f"{n}.eml").write_bytes(
                f"Subject: {word} {n}\nDate: never\n\n{word} {'x' * (n % 9)}\n".encode())
    heard: Any = Heard()
    (folder / "job.toml").write_text(
        'output = "out"\n[input]\ntrain = "mail"\nformat = "mail"\n[model]\n'
        'text = ["subject", "body"]\n[predictions]\n', "utf-8")
    out = run_job(read_job(folder / "job.toml"), heard)
    assert "60 messages are malformed: see their column errors" in lines_of(heard.results[0])
    answered = pl.read_parquet(out / "predictions.parquet")
    assert answered["errors"].list.len().min() == 1
    assert (answered["predicted"] == answered["label"]).all()


def test_mail_that_can_not_be_read_is_not_learned(folder: Path) -> None:
    for label in ("ham", "spam"):
        (folder / "mail" / label).mkdir(parents=True)
        (folder / "mail" / label / "1.eml").write_bytes(b"Subject: lunch\n\nat noon\n")
    (folder / "mail" / "ham" / "2.eml").symlink_to("nowhere")
    with pytest.raises(SourceError, match=r"^input\.train: can't read .*on_unreadable=skip"):
        run(folder, "input.train=mail", "input.format=mail")
    run(folder, "input.train=mail", "input.format=mail", "input.on_unreadable=skip",
        "input.test=mail")


def test_brackets_in_a_path_are_no_glob(folder: Path) -> None:
    (folder / "a[1]*").mkdir()
    spam_messages(100).write_parquet(folder / "a[1]*" / "rows.parquet")
    out = run(folder / "a[1]*", "output=o[2]")
    assert "model.textnb" in contents(out)


def test_a_lock_is_not_taken_through_a_link(folder: Path) -> None:
    (folder / "precious").write_text("mine")
    (folder / ".out.textnb-lock").symlink_to("precious")
    with pytest.raises(SourceError, match="textnb-lock"):
        run(folder)
    assert (folder / "precious").read_text() == "mine"


def test_one_class(folder: Path) -> None:
    pl.DataFrame({"text": ["aa bb", "bb cc", "cc dd", "aa dd"], "label": ["x"] * 4}).write_parquet(
        folder / "rows.parquet")
    with pytest.warns(UserWarning, match="only one class"):
        out = run(folder, "input.hold_out=0.4")
    assert json.loads((out / "metrics.json").read_text())["accuracy"] == 1.0


def test_a_column_of_an_answers_name_is_told_before_anything_is_learned(folder: Path) -> None:
    rows = pl.read_parquet(folder / "rows.parquet").with_columns(probability=pl.lit(1))
    rows.write_parquet(folder / "rows.parquet")
    heard: Any = Heard()
    (folder / "job.toml").write_text(JOB, "utf-8")
    with pytest.raises(SchemaError, match="a column 'probability' already"):
        run_job(read_job(folder / "job.toml"), heard)
    assert heard.steps == ["reading rows"]


def test_a_decision_is_measured_on_the_test_rows(folder: Path) -> None:
    out = run(folder, "decision.positive=spam", "decision.costs=[10.0, 1.0]")
    told = json.loads((out / "metrics.json").read_text())["decision"]
    answered = pl.read_parquet(out / "predictions.parquet")
    spam, own = pl.col("decision").eq_missing(pl.lit("spam")), pl.col("label") == "spam"
    assert told["true_positives"] == answered.filter(spam & own).height
    assert told["false_positives"] == answered.filter(spam & ~own).height
    assert told["missed"] == answered.filter(own & ~spam).height


def test_rows_that_can_not_be_told_from_learned_ones_are_said_to_be(folder: Path) -> None:
    """A file of rows to test on, of which counts tell nothing."""
    rows = pl.read_parquet("rows.parquet")
    rows[:20].write_parquet("test.parquet")
    (folder / "job.toml").write_text(JOB, "utf-8")
    for settings, is_said in ((["--set", "input.test=test.parquet"], True), ([], False)):
        done = CliRunner().invoke(app, ["run", "job.toml", *settings], catch_exceptions=False)
        assert ("can't be told whether the model has learned these rows" in done.stderr) == is_said
