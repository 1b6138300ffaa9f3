"""textnb predict: documents in, the same documents with their classes out, in order."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, Run, files_in
from textnb import MultinomialNB, TextClassifier

ENDINGS = {"parquet": "parquet", "pq": "parquet", "ipc": "ipc", "arrow": "ipc", "feather": "ipc",
           "csv": "csv", "tsv": "tsv", "ndjson": "ndjson", "jsonl": "ndjson"}
READERS: dict[str, Any] = {
    "parquet": pl.read_parquet, "ipc": pl.read_ipc, "csv": pl.read_csv, "ndjson": pl.read_ndjson,
    "tsv": lambda source: pl.read_csv(source, separator="\t")}


@pytest.fixture
def many(folder: Path) -> pl.DataFrame:
    """More rows than fit in one batch, each with its number."""
    table = pl.concat([MAIL] * 5000).with_row_index("row")
    table.write_parquet("many.parquet")
    return table


def test_predictions_are_the_librarys(run: Run, mail: Path, trained: Path) -> None:
    ran = run("predict", trained, mail, "-o", "out.parquet").checked()
    assert ran.out == ""
    assert ran.err.startswith("predicted 6 documents in ")
    assert ran.err.count("\n") == 1
    assert pl.read_parquet("out.parquet").equals(textnb.load(trained).predict(MAIL))
    assert files_in(mail.parent) == ["mail.parquet", "out.parquet"]
    quiet = run("predict", trained, mail, "-o", "again.parquet", "-q").checked()
    assert (quiet.out, quiet.err) == ("", "")


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_ending_says_the_format(
    run: Run, many: pl.DataFrame, trained: Path, ending: str
) -> None:
    run("predict", trained, "many.parquet", "-o", f"out.{ending}", "-q").checked()
    found = READERS[ENDINGS[ending]](f"out.{ending}")
    assert found["row"].to_list() == list(range(30_000))
    assert found.columns == [*many.columns, "predicted"]
    assert found.select("text", "id").equals(many.select("text", "id"))
    assert found["predicted"].to_list() == textnb.load(trained).predict(many)["predicted"].to_list()


@pytest.mark.parametrize("format", ["ndjson", "csv", "tsv"])
def test_stdout_is_streamed_in_order(
    run: Run, many: pl.DataFrame, trained: Path, format: str
) -> None:
    ran = run("predict", trained, "many.parquet", "--output-format", format).checked()
    found = READERS[format](io.StringIO(ran.out))
    assert found["row"].to_list() == list(range(30_000))
    assert found["predicted"].to_list() == textnb.load(trained).predict(many)["predicted"].to_list()
    assert "predicted 30,000 documents" in ran.err


@pytest.mark.parametrize("format", sorted(set(ENDINGS.values())))
def test_the_format_may_be_said(run: Run, mail: Path, trained: Path, format: str) -> None:
    run("predict", trained, mail, "-o", "out.data", "--output-format", format).checked()
    assert READERS[format]("out.data")["predicted"].to_list() == MAIL["label"].to_list()


def test_stdout_is_ndjson_unless_said(run: Run, mail: Path, trained: Path) -> None:
    rows = [json.loads(line) for line in run("predict", trained, mail).checked().out.splitlines()]
    assert rows == textnb.load(trained).predict(MAIL).to_dicts()


@pytest.mark.parametrize("format", ["parquet", "ipc", "csv", "tsv", "ndjson"])
def test_stdin_is_read_in_every_format(
    run: Run, folder: Path, trained: Path, format: str
) -> None:
    buffer = io.BytesIO()
    if format == "tsv":
        MAIL.write_csv(buffer, separator="\t")
    else:
        getattr(MAIL, f"write_{format}")(buffer)
    ran = run("predict", trained, "-", "-o", "-", input=buffer.getvalue()).checked()
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [row["predicted"] for row in rows] == MAIL["label"].to_list()
    assert [int(row["id"]) for row in rows] == MAIL["id"].to_list()


def test_lines_of_text_are_documents(run: Run, folder: Path, trained: Path) -> None:
    Path("mail.txt").write_text("free money\n\nlunch, friend\n")
    expected = [{"text": "free money", "predicted": "spam"}, {"text": "", "predicted": "ham"},
                {"text": "lunch, friend", "predicted": "ham"}]
    ran = run("predict", trained, "mail.txt").checked()
    assert [json.loads(line) for line in ran.out.splitlines()] == expected
    ran = run("predict", trained, "-", "--read", "format=lines",
              input="free money\n\nlunch, friend\n").checked()
    assert [json.loads(line) for line in ran.out.splitlines()] == expected


def test_no_label_is_needed_and_nulls_are_kept(run: Run, folder: Path, trained: Path) -> None:
    table = pl.DataFrame({"text": ["free", None], "note": [None, "x"], "n": [None, 2.5]})
    table.write_parquet("rows.parquet")
    run("predict", trained, "rows.parquet", "-o", "out.parquet").checked()
    assert pl.read_parquet("out.parquet").rows() == [("free", None, None, "spam"),
                                                     (None, "x", 2.5, "ham")]


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "ndjson", "ipc"])
def test_no_rows_in_no_rows_out(run: Run, folder: Path, trained: Path, ending: str) -> None:
    MAIL.clear().write_parquet("empty.parquet")
    run("predict", trained, "empty.parquet", "-o", f"out.{ending}").checked()
    if ending == "ndjson":
        assert Path("out.ndjson").read_bytes() == b""
    else:
        found = READERS[ENDINGS[ending]](f"out.{ending}")
        assert (found.height, found.columns) == (0, [*MAIL.columns, "predicted"])


@pytest.mark.parametrize(("format", "shown"), [
    ("ndjson", ""), ("csv", "text,id,predicted\n"), ("tsv", "text\tid\tpredicted\n")])
def test_no_rows_on_stdout_are_what_they_are_in_a_file(
    run: Run, folder: Path, trained: Path, format: str, shown: str
) -> None:
    MAIL.clear().select("text", "id").write_parquet("empty.parquet")
    run("predict", trained, "empty.parquet", "-o", f"out.{format}").checked()
    assert Path(f"out.{format}").read_text() == shown
    ran = run("predict", trained, "empty.parquet", "--output-format", format).checked()
    assert ran.out == shown


def test_a_condition_chooses_rows(run: Run, mail: Path, trained: Path) -> None:
    ran = run("predict", trained, mail, "--where", "split = 'test' AND id < 5",
              "--output-format", "csv").checked()
    assert ran.out == "text,label,split,id,predicted\nsee you at lunch,ham,test,2,ham\n"


# Answers


def test_every_answer_is_the_librarys(run: Run, mail: Path, trained: Path) -> None:
    run("predict", trained, mail, "-o", "out.parquet", "--probability", "--scores", "--explain",
        "2").checked()
    expected = textnb.load(trained).predict(MAIL, probability=True, scores=True, explain=2)
    found = pl.read_parquet("out.parquet")
    assert found.equals(expected)
    for row in found.iter_rows(named=True):
        contributions = sum(part["contribution"] for part in row["explanation"])
        assert row["intercept"] + contributions == pytest.approx(row["score"], abs=1e-12)
        assert len(row["explanation"]) <= 3


def test_answers_nest_in_ndjson(run: Run, mail: Path, trained: Path) -> None:
    ran = run("predict", trained, mail, "--explain", "1", "--scores").checked()
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [part["term"] for part in rows[0]["explanation"]] == ["free", None]
    assert set(rows[0]["scores"]) == {"ham", "spam"}


@pytest.mark.parametrize("target", [["-o", "out.csv"], ["-o", "out.tsv"],
                                    ["--output-format", "csv"], ["--output-format", "tsv"]])
@pytest.mark.parametrize(("wanted", "column"), [
    (["--scores"], "scores"), (["--explain", "2"], "explanation")])
def test_csv_does_not_nest(
    run: Run, mail: Path, trained: Path, target: list[str], wanted: list[str], column: str
) -> None:
    ran = run("predict", trained, mail, *target, *wanted).checked(1)
    assert f"error: column '{column}' is " in ran.err
    assert "which CSV can't hold: write Parquet or NDJSON, or drop it" in ran.err
    assert ran.out == ""
    assert files_in(mail.parent) == ["mail.parquet"]


def test_probabilities_go_into_csv(run: Run, mail: Path, trained: Path) -> None:
    ran = run("predict", trained, mail, "--output-format", "csv", "--probability").checked()
    expected = textnb.load(trained).predict(MAIL, probability=True)["probability"]
    assert pl.read_csv(io.StringIO(ran.out))["probability"].to_list() == expected.to_list()


@pytest.mark.parametrize(("column", "options"), [
    ("predicted", []), ("probability", ["--probability"]), ("scores", ["--scores"]),
    ("score", ["--explain", "2"]), ("explanation", ["--explain", "1"]),
    ("runner_up", ["--explain", "1"]), ("intercept", ["--explain", "1"])])
def test_a_column_of_an_answers_name_is_named(
    run: Run, folder: Path, trained: Path, column: str, options: list[str]
) -> None:
    MAIL.with_columns(pl.lit("mine").alias(column)).write_parquet("mail.parquet")
    ran = run("predict", trained, "mail.parquet", "-o", "out.parquet", *options).checked(1)
    assert f"error: the input has a column '{column}' already" in ran.err
    assert files_in(folder) == ["mail.parquet"]
    if column != "predicted":
        # Where the answer is not asked for, the column is one like any other.
        run("predict", trained, "mail.parquet", "-o", "out.parquet").checked()
        assert pl.read_parquet("out.parquet")[column].to_list() == ["mine"] * 6


def test_impossible_rows_have_no_prediction(run: Run, folder: Path) -> None:
    TextClassifier(MultinomialNB(l=0)).fit(["aa", "bb"], ["a", "b"]).save("m.textnb")
    Path("rows.csv").write_text("text\naa\naa bb\nbb aa\n")
    ran = run("predict", "m.textnb", "rows.csv", "--probability").checked()
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [row["predicted"] for row in rows] == ["a", None, None]
    assert [row["probability"] for row in rows] == [1.0, None, None]
    assert ("note: 2 rows are impossible under every class (l = 0): without a prediction"
            in ran.err.splitlines())


@pytest.mark.parametrize("labels", [[1, 2], [True, False], ["", "[bold]"], ["a\tb", 'say "x", y']])
@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "ndjson"])
def test_labels_of_every_type_are_written(
    run: Run, folder: Path, labels: list[Any], ending: str
) -> None:
    rows = pl.DataFrame({"text": ["aa", "bb"]})
    rows.write_parquet("rows.parquet")
    TextClassifier().fit(rows.with_columns(label=pl.Series(labels))).save("m.textnb")
    run("predict", "m.textnb", "rows.parquet", "-o", f"out.{ending}").checked()
    assert READERS[ending](f"out.{ending}")["predicted"].to_list() == labels


def test_several_text_columns_are_read(run: Run, folder: Path) -> None:
    rows = pl.DataFrame({"subject": ["aa", "bb"], "body": ["cc", "dd"], "label": ["a", "b"]})
    TextClassifier(text=["subject", "body"]).fit(rows).save("m.textnb")
    rows.drop("label").write_csv("rows.csv")
    ran = run("predict", "m.textnb", "rows.csv", "--output-format", "csv").checked()
    assert ran.out == "subject,body,predicted\naa,cc,a\nbb,dd,b\n"
    rows.drop("body").write_csv("rows.csv")
    assert "no column 'body'" in run("predict", "m.textnb", "rows.csv").checked(1).err


# Where it goes


@pytest.mark.parametrize(("options", "told"), [
    (["-o", "out"], "can't tell the output format from 'out'; known endings: .parquet"),
    (["-o", "out.xlsx"], "can't tell the output format from 'out.xlsx'"),
    (["-o", "out.csv", "--output-format", "excel"], "--output-format: unknown value 'excel'"),
    (["--output-format", "parquet"], "parquet can't be streamed to standard output; choose ndjson"),
    (["--output-format", "ipc"], "ipc can't be streamed to standard output"),
    (["--explain", "-1"], "Invalid value for '--explain': -1 is not in the range"),
    (["--explain", "few"], "'--explain'"), (["--where", "nope"], "--where 'nope'"),
    (["--where", "id"], "--where 'id'")])
def test_bad_usage_names_the_option(
    run: Run, mail: Path, trained: Path, options: list[str], told: str
) -> None:
    ran = run("predict", trained, mail, *options).checked(2)
    assert told in ran.err
    assert ran.out == ""
    assert files_in(mail.parent) == ["mail.parquet"]


def test_bad_usage_is_told_before_anything_is_read(run: Run, folder: Path) -> None:
    assert "--output-format" in run(
        "predict", "absent.textnb", "absent.csv", "-o", "out.doc").checked(2).err


def test_a_place_that_can_not_be_written_is_named(run: Run, mail: Path, trained: Path) -> None:
    ran = run("predict", trained, mail, "-o", "absent/out.csv").checked(1)
    assert re.search("error: can't write '?absent/out.csv'?: .*(folder|directory)", ran.err)
    Path("out.csv").mkdir()
    ran = run("predict", trained, mail, "-o", "out.csv").checked(1)
    assert re.search(r"error: can't write '?out\.csv'?: it is a folder", ran.err)
    assert files_in(mail.parent) == ["mail.parquet", "out.csv"]


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "ndjson", "ipc"])
def test_a_failure_in_the_middle_keeps_the_old_output(
    run: Run, folder: Path, trained: Path, ending: str
) -> None:
    out = Path(f"out.{ending}")
    out.write_text("old")
    rows = ["text"] + ["free money"] * 50_000
    Path("rows.csv").write_bytes("\n".join(rows).encode() + b"\nd\xe9jeuner\n")
    ran = run("predict", trained, "rows.csv", "-o", out).checked(1)
    assert ("error: can't read rows.csv: line 50002 is not UTF-8 (byte 0xe9 at column 2)"
            in ran.err)
    assert out.read_text() == "old"
    assert files_in(folder) == sorted([f"out.{ending}", "rows.csv"])


def test_bad_data_is_named(run: Run, mail: Path, trained: Path) -> None:
    def error(*args: object) -> str:
        ran = run("predict", *args, "-o", "out.parquet").checked(1)
        assert ran.out == ""
        assert not Path("out.parquet").exists()
        return ran.err

    assert "no such model file: 'absent.textnb'" in error("absent.textnb", mail)
    assert "mail.parquet is not a sound textnb model" in error("mail.parquet", mail)
    assert "no such file or folder: 'absent.csv'" in error(trained, "absent.csv")
    MAIL.rename({"text": "body"}).write_parquet("body.parquet")
    assert "no column 'text' (the text column)" in error(trained, "body.parquet")
    MAIL.with_columns(text="id").write_parquet("numbers.parquet")
    assert "text column 'text' must be String; it is Int64" in error(trained, "numbers.parquet")
    assert "standard input: it is empty" in error(trained, "-")
