"""textnb predict: documents in, the same documents with their classes out, in order."""

import io
import json
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, files_in
from tests.frames.writing import write_rows
from textnb import MultinomialNB, TextClassifier
from textnb.cli.inputs import OUTPUT_FORMATS

ENDINGS = {"parquet": "parquet", "pq": "parquet", "ipc": "ipc", "arrow": "ipc", "feather": "ipc",
           "csv": "csv", "tsv": "tsv", "ndjson": "ndjson", "jsonl": "ndjson"}
READERS = {
    "parquet": pl.read_parquet, "ipc": pl.read_ipc, "csv": pl.read_csv, "ndjson": pl.read_ndjson,
    "tsv": lambda source: pl.read_csv(source, separator="\t")}
STREAMING = ("ndjson", "csv", "tsv")


@pytest.fixture
def many(folder, trained):
    """More rows than fit in one batch, each with its number and its class."""
    table = pl.concat([MAIL] * 5000).with_row_index("row")
    table.write_parquet("many.parquet")
    return textnb.load(trained).predict(table).select("row", "text", "id", "predicted")


def objects(out):
    return [json.loads(line) for line in out.splitlines()]


def test_predictions_equal_those_of_python(run, mail, trained):
    ran = run("predict", trained, mail, "-o", "out.parquet").checked()
    assert ran.out == ""
    assert ran.err.startswith("predicted 6 documents in ")
    assert ran.err.endswith(" -> out.parquet\n")
    assert ran.err.count("\n") == 1
    assert pl.read_parquet("out.parquet").equals(textnb.load(trained).predict(MAIL))
    assert files_in(mail.parent) == ["mail.parquet", "out.parquet"]
    ran = run("predict", trained, mail, "-q").checked()
    # The default format of standard output is NDJSON.
    assert objects(ran.out) == textnb.load(trained).predict(MAIL).to_dicts()
    assert ran.err == ""


@pytest.mark.sweep(4)
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_ending_of_the_output_decides_its_format(run, many, trained, ending):
    run("predict", trained, "many.parquet", "-o", f"out.{ending}", "-q").checked()
    table = READERS[ENDINGS[ending]](f"out.{ending}")
    assert table.columns == ["row", *MAIL.columns, "predicted"]
    assert table.select(many.columns).cast(many.schema).equals(many)


@pytest.mark.parametrize("format", STREAMING)
def test_standard_output_is_streamed_in_order(run, many, trained, format):
    ran = run("predict", trained, "many.parquet", "--output-format", format).checked()
    table = READERS[format](io.StringIO(ran.out))
    assert table.select(many.columns).cast(many.schema).equals(many)
    assert "predicted 30,000 documents" in ran.err


@pytest.mark.parametrize("format", OUTPUT_FORMATS)
def test_output_format_and_the_formats_of_standard_input(run, folder, trained, format):
    run("predict", trained, "-", "-o", "out.data", "--output-format", format,
        input=write_rows(MAIL, folder / f"rows.{format}").read_bytes()).checked()
    table = READERS[format]("out.data")
    assert table["predicted"].to_list() == MAIL["label"].to_list()
    assert table["id"].to_list() == MAIL["id"].to_list()


@pytest.mark.parametrize("format", OUTPUT_FORMATS)
def test_an_empty_input_gives_an_empty_output(run, folder, trained, format):
    MAIL.clear().select("text", "id").write_parquet("empty.parquet")
    run("predict", trained, "empty.parquet", "-o", f"out.{format}").checked()
    if format in STREAMING:
        empty = {"ndjson": "", "csv": "text,id,predicted\n", "tsv": "text\tid\tpredicted\n"}[format]
        assert Path(f"out.{format}").read_text() == empty
        ran = run("predict", trained, "empty.parquet", "--output-format", format).checked()
        assert ran.out == empty
    else:
        table = READERS[format](f"out.{format}")
        assert (table.height, table.columns) == (0, ["text", "id", "predicted"])


def test_where_selects_rows(run, mail, trained):
    ran = run("predict", trained, mail, "--where", "split = 'test' AND id < 5",
              "--output-format", "csv").checked()
    assert ran.out == "text,label,split,id,predicted\nsee you at lunch,ham,test,2,ham\n"
    ran = run("predict", trained, mail, "--where", "id = -1").checked()
    assert (ran.out, "note: --where 'id = -1' leaves no rows" in ran.err) == ("", True)


def test_all_columns_of_answers_equal_those_of_python(run, mail, trained):
    answers = ["--probability", "--scores", "--explain", "2"]
    run("predict", trained, mail, "-o", "out.parquet", *answers).checked()
    expected = textnb.load(trained).predict(MAIL, probability=True, scores=True, explain=2)
    assert pl.read_parquet("out.parquet").equals(expected)
    # NDJSON has nested answers; CSV can only have flat ones.
    first = objects(run("predict", trained, mail, *answers).checked().out)[0]
    assert [part["term"] for part in first["explanation"]] == (
        [part["term"] for part in expected["explanation"][0]])
    assert set(first["scores"]) == {"ham", "spam"}
    ran = run("predict", trained, mail, "--output-format", "csv", "--probability").checked()
    assert pl.read_csv(io.StringIO(ran.out))["probability"].equals(expected["probability"])


@pytest.mark.parametrize("target", [["-o", "out.csv"], ["--output-format", "tsv"]])
@pytest.mark.parametrize(("words", "column"), [
    (["--scores"], "scores"), (["--explain", "2"], "explanation"), (["--top-k", "2"], "top")])
def test_nested_answers_in_csv_raise_an_error(run, mail, trained, target, words, column):
    ran = run("predict", trained, mail, *target, *words).checked(2)
    format = target[-1][-3:].upper()
    assert ran.err == (f"error: {words[0]} gives lists, which {format} can't hold: write Parquet "
                       "or NDJSON\n")
    assert ran.out == ""
    assert files_in(mail.parent) == ["mail.parquet"]
    run("predict", trained, mail, *target, *words, "--columns", "id,predicted").checked()
    # Of the input, only its rows say what they hold.
    pl.DataFrame({"text": ["a"], "x": [{"y": 1}]}).write_parquet("mail.parquet")
    assert "column 'x' is Struct({'y': Int64}), which CSV can't hold" in run(
        "predict", trained, mail, *target).checked(1).err


@pytest.mark.parametrize(("format", "value", "dtype"), [
    ("ndjson", b"x", "Binary"), ("ndjson", [{"y": b"x"}], "List"), ("csv", b"x", "Binary"),
    ("csv", timedelta(1), "Duration")])
def test_a_column_that_a_format_cannot_hold_is_named(run, folder, trained, format, value, dtype):
    pl.DataFrame({"text": ["a"], "x": [value]}).write_parquet("x.parquet")
    ran = run("predict", trained, "x.parquet", "--output-format", format).checked(1)
    assert f"error: column 'x' is {dtype}" in ran.err
    assert f"which {format.upper()} can't hold: write Parquet" in ran.err


FORMULAS = ["=1+1", "+x", "-5", "@a", "\tx", "\rx", "\nx"]


@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_no_text_is_a_formula_of_a_spreadsheet(run, folder, trained, format):
    others = ["free - =x", "", None]
    rows = pl.DataFrame({"n": range(-1, 9), "=name": [*FORMULAS, *others], "text": "free",
                         "names": [[text] for text in [*FORMULAS, *others]],
                         "kind": pl.Series(["-a"] * 10, dtype=pl.Categorical)})
    rows.write_parquet("rows.parquet")
    for words in (["-o", "out.data"], []):
        ran = run("predict", trained, "rows.parquet", *words, "--safe-csv", "--output-format",
                  format, "-q").checked()
        written = Path("out.data").read_bytes() if words else ran.out.encode()
        read = READERS[format](io.BytesIO(written))
        safe = [f"'{text}" for text in FORMULAS]
        assert read["'=name"].to_list() == [*safe, *others]
        assert read["names"].to_list()[:8] == [*safe, others[0]]
        assert (read["n"].to_list(), read["kind"][0]) == ([*range(-1, 9)], "'-a")
    run("predict", trained, "rows.parquet", "-o", "plain.csv").checked()
    assert pl.read_csv("plain.csv")["=name"].to_list()[:7] == FORMULAS


@pytest.mark.parametrize(("words", "names"), [
    (["id,predicted"], ["id", "predicted"]), (["predicted", "a,b"], ["predicted", "a,b"]),
    (["probability,id"], ["probability", "id"])])
def test_columns_are_chosen(run, folder, trained, words, names):
    rows = MAIL.with_columns(pl.lit(2.5).alias("a,b"))
    rows.write_parquet("rows.parquet")
    options = [word for name in words for word in ("--columns", name)]
    ran = run("predict", trained, "rows.parquet", "--probability", *options, "-o", "out.csv")
    assert "predicted 6 documents" in ran.checked().err
    expected = textnb.load(trained).predict(rows, probability=True).select(names)
    assert pl.read_csv("out.csv").equals(expected)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_column_whose_name_is_a_pattern_of_polars_is_written(run, folder, trained, ending):
    rows = MAIL.with_columns(pl.lit(2.5).alias("^id$"), pl.lit("a").alias("*"))
    write_rows(rows, folder / f"rows.{ending}")
    run("predict", trained, f"rows.{ending}", "-o", f"out.{ending}").checked()
    assert READERS[ending](f"out.{ending}").equals(textnb.load(trained).predict(rows))


def test_impossible_rows_have_no_prediction(run, folder):
    TextClassifier(MultinomialNB(l=0)).fit(["aa", "bb"], ["a", "b"]).save("m.textnb")
    Path("rows.csv").write_text("text\naa\naa bb\nbb aa\n")
    ran = run("predict", "m.textnb", "rows.csv", "--probability").checked()
    assert [(row["predicted"], row["probability"]) for row in objects(ran.out)] == [
        ("a", 1.0), (None, None), (None, None)]
    assert ("note: 2 rows are impossible under every class (l = 0): without a prediction"
            in ran.err.splitlines())


@pytest.mark.parametrize("format", OUTPUT_FORMATS)
def test_a_failure_in_the_middle_leaves_the_old_output(run, folder, trained, format):
    out = Path(f"out.{format}")
    out.write_text("old")
    Path("rows.csv").write_bytes(b"text\n" + b"free money\n" * 50_000 + b"d\xe9jeuner\n")
    ran = run("predict", trained, "rows.csv", "-o", out).checked(1)
    assert ("error: can't read rows.csv: line 50002 is not UTF-8 (byte 0xe9 at column 2)"
            in ran.err)
    assert out.read_text() == "old"
    assert files_in(folder) == sorted([out.name, "rows.csv"])


def test_mistakes_are_the_librarys(run, mail, trained):
    wrong = MAIL.with_columns(pl.col("label").reverse())
    wrong.write_parquet("wrong.parquet")
    expected = textnb.mistakes(textnb.load(trained), wrong, within=9.0, terms=1)
    ran = run("mistakes", trained, "wrong.parquet", "--within", "9", "--terms", "1", "-o",
              "out.parquet").checked()
    assert "judged 6 documents in " in ran.err
    near = expected.filter(pl.col("answer") == pl.col("label")).height
    assert 0 < near < expected.height
    assert f"{expected.height - near} mistakes; {near} rows are right by less than 9\n" in ran.err
    assert pl.read_parquet("out.parquet").equals(expected)
    ran = run("mistakes", trained, "wrong.parquet", "-q").checked()
    assert (objects(ran.out), ran.err) == (
        textnb.mistakes(textnb.load(trained), wrong).to_dicts(), "")
    # All columns fit into CSV.
    run("mistakes", trained, "wrong.parquet", "-o", "out.csv").checked()
    assert "mistakes" in run("mistakes", trained, mail, "-o", "out.csv").checked().err
    assert pl.read_csv("out.csv").columns == [*MAIL.columns, "row", "answer", "probability",
                                              "margin", "terms"]


def test_the_rows_to_label_next_are_the_librarys(run, mail, trained):
    rows = pl.DataFrame({"text": ["lunch offer", "lunch OFFER", "cheap meeting", "free money now"],
                         "label": [None, None, None, "spam"]})
    rows.write_parquet("rows.parquet")
    expected = textnb.rows_to_label(textnb.load(trained), rows, 1, labelled=MAIL)
    ran = run("next", trained, "rows.parquet", "-n", "1", "--labelled", mail, "-o", "out.parquet")
    assert "judged 4 documents in " in ran.checked().err
    assert ran.err.endswith("1 row to label\n")
    assert pl.read_parquet("out.parquet").equals(expected)
    # One table may hold both; --where is of the rows to choose from.
    ran = run("next", trained, "rows.parquet", "--labelled", "rows.parquet", "--where",
              "text != 'cheap meeting'").checked()
    assert [row["row"] for row in objects(ran.out)] == [0]
    assert ran.err.endswith("1 row to label: no others differ from these\n")
    ran = run("next", trained, "-", "--labelled", "-").checked(2)
    assert "standard input can be one of INPUT and --labelled only" in ran.err
