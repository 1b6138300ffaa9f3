"""Whole jobs: what they write, and that they write all of it or nothing."""

import datetime
import errno
import json
import os

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import textnb
from tests.frames.writing import write_files
from tests.messages import spam_messages
from tests.workflow.conftest import JOB, Recorder, contents, run
from textnb import DataError, SchemaError, SourceError, TextClassifier, evaluate, load
from textnb.cli.main import app
from textnb.cli.summary import lines_of
from textnb.runtime.progress import Line, showing


def json_in(out, name):
    return json.loads((out / name).read_text("utf-8"))


def test_the_model_is_that_of_the_rows_that_were_not_held_out(folder):
    out = run(folder)
    assert sorted(contents(out)) == [
        "metrics.json", "model.textnb", "predictions.parquet", "run.json", "terms.csv"]
    answers = pl.read_parquet(out / "predictions.parquet")
    rows = pl.read_parquet("rows.parquet")
    learned = rows.join(answers.select("text").unique(), on="text", how="anti",
                        maintain_order="left")
    # Copies are on one side.
    assert answers.height + learned.height == rows.height
    assert 40 < answers.height < 120
    again = TextClassifier(load(out / "model.textnb").estimator).fit(learned)
    again.save("again.textnb")
    assert (folder / "again.textnb").read_bytes() == (out / "model.textnb").read_bytes()
    assert json_in(out, "metrics.json")["accuracy"] == evaluate(
        again, answers.select("text", "label")).accuracy
    assert json_in(out, "run.json")["rows"] == {
        "learned": learned.height, "tested": answers.height, "malformed": 0}


def test_it_is_safe_to_repeat(folder):
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


@pytest.mark.parametrize(("file", "separator"), [("terms.csv", ","), ("terms.TSV", "\t")])
def test_terms_can_be_opened_in_a_spreadsheet(folder, file, separator):
    tokens = ["model.tokenizer.pattern='=1.1|\\w{2,}'", f"terms.file={file}"]
    rows = pl.read_parquet("rows.parquet")
    rows.with_columns(pl.when(label="spam").then("=1+1 " + pl.col("text")).otherwise(
        "text").alias("text")).write_parquet("rows.parquet")
    for safe in ("false", "true"):
        out = run(folder, *tokens, f"terms.safe_csv={safe}", "terms.k=500")
        terms = set(pl.read_csv(out / file, separator=separator)["term"])
        assert ("'=1+1" in terms, "=1+1" in terms) == (safe == "true", safe == "false")


def test_terms_are_in_the_format_of_their_files_ending(folder):
    out = run(folder, "terms.file=terms.parquet")
    assert set(pl.read_parquet(out / "terms.parquet")["class"]) == {"ham", "spam"}


def test_the_size_of_each_step_is_known(folder):
    phases = []

    class Sizes(Line):
        def begin(self, phase, size=None, unit="rows", seconds=None):
            phases.append((phase, None if size is None else size.rows))

    with showing(Sizes()):
        out = run(folder, "validation.leave_one_out=true", "calibration={}",
                  "predictions.input=rows.parquet")
    rows = json_in(out, "run.json")["rows"]
    learned, all_rows = rows["learned"], pl.read_parquet("rows.parquet").height
    assert [size for phase, size in phases if phase == "reading"] == [
        learned, learned, learned, rows["tested"], all_rows]


def test_steps_and_their_results_are_heard(folder):
    record = Recorder()
    out = run(folder, "validation={}", "calibration={}", "decision.min_probability=0.9",
              record=record)
    # The record has the sections without keys too.
    assert json_in(out, "run.json")["job"].keys() == {
        "output", "input", "model", "validation", "calibration", "decision", "terms", "predictions"}
    assert record.steps == ["reading rows", "training", "validating", "calibrating",
                            "choosing thresholds", "testing", "listing terms", "predicting"]
    lines = [line for result in record.results for line in lines_of(result)]
    assert lines[0].endswith("to test on (held out of the same input)")
    assert any("uncalibrated), 5 folds: mean accuracy" in line for line in lines)
    assert any(line.startswith("log loss 0.") and " -> " in line for line in lines)
    assert record.rows > 400


@pytest.mark.parametrize("output", ["mine", "rows.parquet", ".", "..", "/", "rows.parquet/out"])
def test_only_an_output_of_its_own_is_replaced(folder, output):
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("years of work")
    before = contents(folder)
    with pytest.raises(SourceError, match=r"can't write|is not a folder"):
        run(folder, f"output={output}")
    assert contents(folder) == {**before, "job.toml": (folder / "job.toml").read_bytes()}


def test_the_folders_of_an_output_are_made(folder, monkeypatch):
    (folder / "out").mkdir()
    for output in ("out", "new/deep/out", "o[2]"):
        assert run(folder, f"output={output}") == folder / output
        assert "model.textnb" in contents(folder / output)
    before = contents(folder)
    with pytest.raises(Exception, match="absent"):
        run(folder, "output=other/deep/out", "decision={positive='absent', costs=[1.0, 1.0]}")
    # Before work begins.
    monkeypatch.setattr("textnb.workflow.staging.os.access", lambda *_: False)
    with pytest.raises(SourceError, match="no folder can be made in"):
        run(folder, "output=other/out")
    assert contents(folder) == before


def test_the_lock_of_an_output_follows_no_link(folder):
    (folder / "precious").write_text("mine")
    (folder / ".out.textnb-lock").symlink_to("precious")
    with pytest.raises(SourceError, match="textnb-lock"):
        run(folder)
    assert (folder / "precious").read_text() == "mine"


def test_rows_of_their_own_to_test_on_and_to_predict(folder):
    spam_messages(60, seed=1).write_csv("test.csv")
    spam_messages(30, seed=2).drop("label").write_ndjson("new.ndjson")
    out = run(folder, "input.test=test.csv", "input.test_where=label = 'spam'",
              "predictions.input=new.ndjson", "predictions.file=new.csv", "predictions.top=0")
    assert json_in(out, "run.json")["rows"]["learned"] == 400
    assert json_in(out, "metrics.json")["documents"] == 15
    answers = pl.read_csv(out / "new.csv")
    assert answers.columns == ["text", "predicted", "probability"]
    assert answers.height == 30


def test_a_feature_table(folder):
    rows = pl.DataFrame({"x": [float(n % 7) + 5 * (n % 2) for n in range(80)],
                         "label": [n % 2 == 1 for n in range(80)]})
    rows.write_parquet("table.parquet")
    out = run(folder, text='output = "out"\n[input]\ntrain = "table.parquet"\n[model]\n'
                           'kind = "gaussian"\n[predictions]')
    columns = pl.read_parquet(out / "predictions.parquet").columns
    assert {"predicted", "probability"} <= {*columns}


TABLE_JOB = """
output = "out"
[input]
train = "table.parquet"
[model]
kind = "gaussian"
[predictions]
"""


def run_table(folder, *settings, **columns):
    """Run a job on a table of 80 rows of two classes with these columns; return its test rows."""
    pl.DataFrame({**columns, "label": ["a", "b"] * 40}).write_parquet("table.parquet")
    return pl.read_parquet(run(folder, *settings, text=TABLE_JOB) / "predictions.parquet")


@pytest.mark.parametrize("shape", [2, (2, 1)])
def test_rows_of_arrays_are_held_out_by_their_numbers(folder, shape):
    numbers = np.arange(160.0).reshape(80, *np.atleast_1d(shape)) % 53
    vectors = pl.Series(numbers, dtype=pl.Array(pl.Float64, shape))
    for others in ({}, {"same": [0.5, 1.5] * 40}):
        answers = run_table(folder, vector=vectors, **others)
        # Not all rows with the same other features are on one side.
        assert 4 < answers.height < 40
        assert answers["label"].n_unique() == 2


@pytest.mark.parametrize("other", [
    pl.Series([b"\xff"] * 80), pl.Series([datetime.timedelta(days=1)] * 80),
    pl.Series([[b"\xff"]] * 80), pl.Series(range(80)).cast(pl.String)],
    ids=lambda column: str(column.dtype))
def test_a_column_that_is_no_feature_does_not_change_what_is_held_out(folder, other):
    # Each row is there twice, for both classes.
    x = [float(n // 4 * 7 % 23) for n in range(80)]
    alone = run_table(folder, x=x)
    named = run_table(folder, "model.features=['x']", x=x, other=other)
    for answers in (run_table(folder, x=x, other=other), named):
        assert answers.drop("other").equals(alone)
    assert 4 < alone.height < 40


def test_which_texts_are_held_out_stays_the_same_from_release_to_release(folder):
    rows = pl.DataFrame({"text": [f"word{n}" for n in range(20)], "label": ["a", "b"] * 10})
    tokens = rows.with_columns(pl.concat_list("text", pl.lit("more")))
    for each, held_out in ((rows, [3, 5, 8, 12, 14]), (tokens, [0, 4, 13])):
        each.write_parquet("rows.parquet")
        answers = pl.read_parquet(run(folder) / "predictions.parquet")
        assert answers["text"].to_list() == each["text"].gather(held_out).to_list()


@pytest.mark.filterwarnings("ignore::textnb.errors.EmptyTextWarning")
def test_a_null_among_lists_of_tokens_is_held_out_as_an_empty_list_is(folder):
    lists = [["free", f"word{n % 30}"] for n in range(60)]
    rows = {"label": ["a", "b"] * 30, "n": range(60)}
    held_out = []
    for empty in (None, [], [None]):
        pl.DataFrame({**rows, "text": [empty, *lists[1:]]},
                     schema_overrides={"text": pl.List(pl.String)}).write_parquet("rows.parquet")
        held_out.append(pl.read_parquet(run(folder) / "predictions.parquet")["n"].to_list())
    assert held_out == held_out[:1] * 3
    assert 0 < len(held_out[0]) < 60


def test_an_export_that_can_not_be_verified_is_said(folder, monkeypatch):
    monkeypatch.delenv("TEXTNB_POSTGRES", raising=False)
    settings = ["exports.0.to=sql-postgres", "exports.0.file=spam.sql"]
    with pytest.raises(textnb.ExportError, match="or set verify = false"):
        run(folder, *settings)
    assert "spam.sql" in contents(run(folder, *settings, "exports.0.verify=false"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_can_not_be_written(folder):
    (folder / "closed").mkdir(mode=0o500)
    with pytest.raises(SourceError, match="Permission denied"):
        run(folder, "output=closed/out")


def test_a_disk_that_does_not_tell_of_a_folder(folder, monkeypatch):
    (folder / "above").mkdir()
    stat, above = os.stat, str(folder.resolve() / "above")

    def fail(path, *args, **kwargs):
        if not isinstance(path, int) and os.fspath(path) == above:
            raise OSError(errno.EIO, "Input/output error", path)
        return stat(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", fail)
    with pytest.raises(SourceError, match=r"can't write .*above/out': Input"):
        run(folder, "output=above/out")


def test_mail(folder):
    write_files(folder / "mail", {
        f"{label}/{n}.eml": f"Subject: {word} {n}\nDate: never\n\n{word} {'x' * (n % 9)}\n"
        for label, word in (("ham", "noon lunch"), ("spam", "cheap pills")) for n in range(30)})
    settings = ("input.train=mail", "input.format=mail", 'model.text=["subject", "body"]')
    record = Recorder()
    answers = pl.read_parquet(run(folder, *settings, record=record) / "predictions.parquet")
    assert "60 messages are malformed: see their column errors" in lines_of(record.results[0])
    assert answers["errors"].list.len().min() == 1
    assert (answers["predicted"] == answers["label"]).all()
    (folder / "mail" / "ham" / "x.eml").symlink_to("nowhere")
    with pytest.raises(SourceError, match=r"^input\.train: can't read .*on_unreadable = 'skip'"):
        run(folder, *settings)
    run(folder, *settings, "input.on_unreadable=skip", "input.test=mail")


def test_brackets_in_a_path_are_no_glob(folder):
    (folder / "a[1]*").mkdir()
    spam_messages(100).write_parquet("a[1]*/rows.parquet")
    assert "model.textnb" in contents(run(folder / "a[1]*"))


def test_one_class(folder):
    pl.DataFrame({"text": ["aa bb", "bb cc", "cc dd", "aa dd"], "label": ["x"] * 4}).write_parquet(
        "rows.parquet")
    with pytest.warns(UserWarning, match="only one class"):
        out = run(folder, "input.hold_out=0.4")
    assert json_in(out, "metrics.json")["accuracy"] == 1.0


@pytest.mark.parametrize(("settings", "error", "said"), [
    ([], SchemaError, "a column 'probability' already"),
    (["predictions.input=none.csv"], SourceError, r"^predictions\.input: no such file")])
def test_predictions_that_can_not_be_are_told_before_anything_is_learned(
    folder, settings, error, said
):
    rows = pl.read_parquet("rows.parquet").with_columns(probability=pl.lit(1))
    rows.write_parquet("rows.parquet")
    record = Recorder()
    with pytest.raises(error, match=said):
        run(folder, *settings, record=record)
    assert record.steps == ["reading rows"]


def test_rows_that_can_not_be_told_from_learned_ones_are_said_to_be(folder):
    pl.read_parquet("rows.parquet")[:20].write_parquet("test.parquet")
    (folder / "job.toml").write_text(JOB, "utf-8")
    for words, is_said in ((["--set", "input.test=test.parquet"], True), ([], False)):
        done = CliRunner().invoke(app, ["run", "job.toml", *words], catch_exceptions=False)
        assert ("can't be told whether the model has learned these rows" in done.stderr) == is_said


@pytest.mark.filterwarnings("ignore::textnb.errors.LearnedRowsWarning")
def test_findings_have_the_numbers_of_the_rows_of_the_input(folder):
    rows = pl.read_parquet("rows.parquet")
    blank = {3, 8, rows.height - 1}
    rows.with_columns(text=pl.when(pl.int_range(pl.len()).is_in([*blank])).then(
        pl.lit("...")).otherwise("text")).write_parquet("blank.parquet")
    out = run(folder, "audit={}", "input.train=blank.parquet", "input.hold_out=0.5")
    found = pl.read_csv(out / "audit.csv").filter(finding="no text")["row"].to_list()
    assert found
    assert {*found} <= blank


def test_an_audit_comes_first_and_may_end_the_job(folder):
    for library in ("altair", "jinja2", "vl_convert"):
        pytest.importorskip(library, reason="needs textnb[report]")
    record = Recorder()
    out = run(folder, "audit={}", "test.report='report.html'", record=record)
    assert record.steps[:3] == ["reading rows", "auditing", "training"]
    found = record.results[1]
    assert pl.read_csv(out / "audit.csv")["finding"].to_list() == (
        found.findings["finding"].to_list())
    assert next(lines_of(found)).startswith(f"{found.rows} rows: ")
    page = (out / "report.html").read_text("utf-8")
    assert "Audit of the rows that were learned" in page
    assert found.findings["evidence"][0].split("'")[0] in page
    kind = found.findings["finding"][0]
    with pytest.raises(DataError, match=r"^the audit finds .* and audit\.fail_on asks for none"):
        run(folder, f"audit.fail_on=['{kind}']", record=record)
    assert contents(out)
    with pytest.raises(textnb.ParameterError, match=r"audit\.fail_on"):
        run(folder, "audit.fail_on=['leek']")
