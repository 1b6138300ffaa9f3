"""textnb test: labelled documents in, measures out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, Run
from textnb import MultinomialNB, TextClassifier


def strict(text: str) -> Any:
    """JSON as the standard has it: NaN and Infinity are not in it."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def cells(out: str) -> list[list[str]]:
    """The rows of the tables in a text."""
    return [[cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")]
            for line in out.splitlines() if line.startswith(("│", "┃"))]


def test_measures_go_to_stdout_and_notes_to_stderr(run: Run, mail: Path, trained: Path) -> None:
    ran = run("test", trained, mail).checked()
    assert ran.out.splitlines()[-1] == "accuracy 1.0000 (6 of 6), macro F1 1.0000"
    assert cells(ran.out)[:3] == [["class", "precision", "recall", "f1", "documents"],
                                  ["ham", "1.000", "1.000", "1.000", "3"],
                                  ["spam", "1.000", "1.000", "1.000", "3"]]
    assert cells(ran.out)[3:] == [["", "ham", "spam"], ["ham", "3", "0"], ["spam", "0", "3"]]
    assert ran.err.startswith("tested 6 documents in ")
    assert "it can't be told whether the model has learned these rows: about 0" in ran.err
    assert ran.err.count("\n") == 2
    quiet = run("test", trained, mail, "-q").checked()
    assert (quiet.out, quiet.err) == (ran.out, "")


def test_json_is_the_evaluation(run: Run, mail: Path, trained: Path) -> None:
    ran = run("test", trained, mail, "--format", "json").checked()
    told = strict(ran.out)
    # As a job's metrics.json, which has what is known of the probabilities, too.
    assert {"log_loss", "calibrated", "brier"} <= told.keys()
    assert told.items() >= textnb.evaluate(textnb.load(trained), MAIL).to_dict().items()
    assert ran.out.count("\n") == 1


def test_a_condition_chooses_rows(run: Run, mail: Path, trained: Path) -> None:
    ran = run("test", trained, mail, "--where", "split = 'test'", "--format", "json").checked()
    assert strict(ran.out)["documents"] == 2


@pytest.mark.parametrize("format", ["text", "json"])
def test_unknown_labels_are_noted(run: Run, folder: Path, trained: Path, format: str) -> None:
    table = MAIL.with_columns(label=pl.Series(["spam", "spam", "eggs", "toast", "spam", "ham"]))
    table.write_csv("mail.csv")
    ran = run("test", trained, "mail.csv", "--format", format).checked()
    assert ("note: the model does not know the labels 'eggs', 'toast'; their rows count as errors"
            in ran.err.splitlines())
    if format == "json":
        assert strict(ran.out)["unknown_labels"] == ["eggs", "toast"]
        assert strict(ran.out)["accuracy"] == 4 / 6
    else:
        assert ran.out.splitlines()[-1].startswith("accuracy 0.6667 (4 of 6)")
        # No document was given the class, so its precision is not 0 but unknown.
        assert ["eggs", "-", "0.000", "0.000", "1"] in cells(ran.out)


def test_impossible_rows_are_noted(run: Run, folder: Path) -> None:
    TextClassifier(MultinomialNB(l=0)).fit(["aa", "bb"], ["a", "b"]).save("m.textnb")
    pl.DataFrame({"text": ["aa", "aa bb"], "label": ["a", "b"]}).write_csv("rows.csv")
    ran = run("test", "m.textnb", "rows.csv").checked()
    assert ("note: 1 row is impossible under every class (l = 0), which counts as an error"
            in ran.err)
    assert ["", "a", "b", "(impossible)"] in cells(ran.out)
    assert ["b", "0", "0", "1"] in cells(ran.out)
    told = strict(run("test", "m.textnb", "rows.csv", "--format", "json").checked().out)
    assert (told["impossible"], told["accuracy"]) == (1, 0.5)


@pytest.mark.parametrize("ending", ["parquet", "csv", "ndjson"])
@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt8, pl.String])
def test_integer_labels_compare_in_every_format(
    run: Run, folder: Path, ending: str, dtype: Any
) -> None:
    # A CSV file's labels are read as strings.
    rows = pl.DataFrame({"text": ["aa", "bb", "cc", "bb"], "label": [1, 2, 30, 7]})
    TextClassifier().fit(rows.head(3)).save("m.textnb")
    rows = rows.with_columns(pl.col("label").cast(dtype))
    getattr(rows, f"write_{ending}")(f"rows.{ending}")
    ran = run("test", "m.textnb", f"rows.{ending}", "--format", "json").checked()
    told = strict(ran.out)
    assert told["accuracy"] == 0.75
    assert [row["class"] for row in told["classes"]] == [1, 2, 7, 30]
    assert told["unknown_labels"] == [7]


@pytest.mark.parametrize("written", [["true", "false"], ["True", "FALSE"]])
def test_boolean_labels_compare_with_words(run: Run, folder: Path, written: list[str]) -> None:
    TextClassifier().fit(["yes", "no"], [True, False]).save("m.textnb")
    Path("rows.csv").write_text(f"text,label\nyes,{written[0]}\nno,{written[1]}\n")
    ran = run("test", "m.textnb", "rows.csv", "--format", "json").checked()
    assert strict(ran.out)["accuracy"] == 1.0


@pytest.mark.parametrize("known", [[1, 2], [True, False]])
def test_a_label_of_another_type_is_named(run: Run, folder: Path, known: list[Any]) -> None:
    TextClassifier().fit(["aa", "bb"], known).save("m.textnb")
    Path("rows.csv").write_text("text,label\naa,eggs\n")
    ran = run("test", "m.textnb", "rows.csv").checked(1)
    assert ran.out == ""
    assert "label" in ran.err
    assert "eggs" in ran.err


LABELS = ["[bold]red[/bold]", "[/]", "\x1b[31mred", "two\nlines", "bell\x07", "\x9b31m", "\u202e",
          "日本"]


def test_labels_are_shown_inert(run: Run, folder: Path) -> None:
    table = pl.DataFrame({"text": [f"word{n}" for n in range(len(LABELS))], "label": LABELS})
    TextClassifier().fit(table).save("m.textnb")
    strangers = table.with_columns(label=pl.col("label") + "\x1b[0m")
    pl.concat([table, strangers]).write_parquet("rows.parquet")
    ran = run("test", "m.textnb", "rows.parquet").checked()
    shown = ran.out + ran.err
    assert all(c.isprintable() or c == "\n" for c in shown)
    names = [row[0] for row in cells(ran.out)]
    for written in ("[bold]red[/bold]", "[/]", r"\x1b[31mred", r"two\nlines", r"bell\x07",
                    r"\x9b31m", r"\u202e", "日本"):
        # In the table of measures; the confusion matrix is too wide to be shown.
        assert names.count(written) == 1
    told = strict(run("test", "m.textnb", "rows.parquet", "--format", "json").checked().out)
    assert [row["class"] for row in told["classes"]] == sorted(
        [*LABELS, *(label + "\x1b[0m" for label in LABELS)])


def test_a_confusion_wider_than_a_screen_is_left_to_json(run: Run, folder: Path) -> None:
    for classes, tables in ((12, 2), (13, 1)):
        rows = pl.DataFrame({"text": [f"word{n:02}" for n in range(classes)],
                             "label": [f"c{n:02}" for n in range(classes)]})
        TextClassifier().fit(rows).save("m.textnb")
        rows.write_parquet("rows.parquet")
        ran = run("test", "m.textnb", "rows.parquet").checked()
        assert ran.out.count("┏") == tables
        told = strict(run("test", "m.textnb", "rows.parquet", "--format", "json").checked().out)
        assert len(told["confusion"]) == classes


# What can't be tested


@pytest.mark.parametrize(("options", "told"), [
    (["--format", "yaml"], "--format: unknown value 'yaml'; choose one of text, json"),
    (["--where", "nope = 1"], "--where 'nope = 1'"),
    (["--read", "format=doc"], "format: unknown value 'doc'")])
def test_bad_usage_names_the_option(
    run: Run, mail: Path, trained: Path, options: list[str], told: str
) -> None:
    ran = run("test", trained, mail, *options).checked(2)
    assert told in ran.err
    assert ran.out == ""


def test_bad_data_is_named(run: Run, mail: Path, trained: Path) -> None:
    def error(*args: object) -> str:
        ran = run("test", *args).checked(1)
        assert ran.out == ""
        return ran.err

    assert "no such model file: 'absent.textnb'" in error("absent.textnb", mail)
    assert "no such file or folder: 'absent.csv'" in error(trained, "absent.csv")
    Path("cut.textnb").write_bytes(trained.read_bytes()[:-9])
    assert "cut.textnb is not a sound textnb model" in error("cut.textnb", mail)
    assert "mail.parquet is not a sound textnb model" in error("mail.parquet", mail)
    MAIL.drop("label").write_csv("plain.csv")
    assert "no column 'label' (the label column)" in error(trained, "plain.csv")
    MAIL.rename({"text": "body"}).write_csv("body.csv")
    assert "no column 'text' (the text column)" in error(trained, "body.csv")
    MAIL.clear().write_csv("empty.csv")
    assert "the test set has no rows" in error(trained, "empty.csv")
    assert "--where 'id = -1' leaves no rows" in error(trained, mail, "--where", "id = -1")


@pytest.mark.parametrize("rows", [6, 30_000])
def test_a_null_label_is_named_with_its_row(
    run: Run, folder: Path, trained: Path, rows: int
) -> None:
    table = pl.concat([MAIL] * (rows // 6)).with_row_index("row")
    table = table.with_columns(label=pl.when(~pl.col("row").is_in([rows - 4, rows - 1]))
                               .then("label"))
    for name in ("rows.parquet", "rows.csv"):
        getattr(table, f"write_{name.split('.')[1]}")(name)
        ran = run("test", trained, name).checked(1)
        assert f"label column 'label' is null in row {rows - 4} (counted from 0)" in ran.err


def test_a_damaged_row_is_named(run: Run, folder: Path, trained: Path) -> None:
    Path("rows.csv").write_bytes(b"text,label\nfree,spam\nd\xe9jeuner,ham\n")
    ran = run("test", trained, "rows.csv").checked(1)
    assert "can't read rows.csv: line 3 is not UTF-8 (byte 0xe9 at column 2)" in ran.err


def test_many_classes_show_the_pairs_confused_most(run: Run, folder: Path) -> None:
    names = [f"c{k:02}" for k in range(20)]
    rows = pl.DataFrame({"text": [f"word{name}" for name in names] * 2, "label": names * 2})
    textnb.TextClassifier().fit(rows).save("m.textnb")
    wrong = pl.DataFrame({"text": ["wordc00"] * 3, "label": ["c05", "c05", "c05"]})
    pl.concat([rows, wrong]).write_parquet("rows.parquet")
    told = run("test", "m.textnb", "rows.parquet", "-q").checked().out
    assert "most frequent confusions of 20 classes" in told
    assert ["c05", "c00", "3", "60.0%"] in cells(told)


@pytest.mark.parametrize(("options", "said"), [
    (["--train", "mail.parquet"], "--train goes with --report"),
    (["--report", "r.html", "--train-where", "id = 1"], "--train-where goes with --train"),
    (["--report", "r.html", "--train", "mail.parquet"], "is also what is tested")])
def test_options_of_a_report_are_checked_before_what_it_needs(
    options: list[str], said: str, run: Run, mail: Path, trained: Path
) -> None:
    assert said in run("test", trained, mail, *options).checked(2).err
    assert not Path("r.html").exists()
