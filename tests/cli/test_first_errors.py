"""What a command tells somebody who uses it for the first time, and mistypes."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, Run

EMPTY = "label = 'none such'"


@pytest.mark.parametrize("arguments", [
    ("train", "mail.csv", "-o", "n.textnb"), ("test", "m.textnb", "mail.csv"),
    ("validate", "m.textnb", "mail.csv"), ("validate", "m.textnb", "mail.csv", "--leave-one-out"),
    ("threshold", "m.textnb", "mail.csv", "--class", "spam", "--max-false-positives", "0.1"),
    ("calibrate", "m.textnb", "mail.csv"), ("update", "m.textnb", "mail.csv"),
    ("forget", "m.textnb", "mail.csv"), ("duplicates", "mail.csv")])
def test_a_condition_that_leaves_no_rows_is_named(
    run: Run, folder: Path, trained: Path, arguments: tuple[str, ...]
) -> None:
    Path("m.textnb").write_bytes(trained.read_bytes())
    MAIL.write_csv("mail.csv")
    ran = run(*arguments, "--where", EMPTY).checked(1)
    assert ran.err.splitlines()[-1] == (
        f'error: --where "{EMPTY}" leaves no rows of mail.csv; its columns are text, label, '
        "split, id")
    assert Path("m.textnb").read_bytes() == trained.read_bytes()


def test_other_conditions_are_named_too(run: Run, folder: Path, trained: Path) -> None:
    MAIL.write_csv("mail.csv")
    ran = run("duplicates", "mail.csv", "mail.csv", "--test-where", EMPTY).checked(1)
    assert f'--test-where "{EMPTY}" leaves no rows' in ran.err
    assert "--test-where" in run("duplicates", "mail.csv", "mail.csv", "--test-where", "x =").err
    ran = run("predict", trained, "mail.csv", "--where", EMPTY).checked()
    assert (ran.out, f'note: --where "{EMPTY}" leaves no rows' in ran.err) == ("", True)


def test_a_file_without_rows_blames_no_condition(run: Run, folder: Path, trained: Path) -> None:
    MAIL.head(2).write_csv("mail.csv")
    ran = run("test", trained, "mail.csv", "--where", "label IS NOT NULL").checked()
    assert "leaves no rows" not in ran.err
    MAIL.clear().write_csv("empty.csv")
    ran = run("test", trained, "empty.csv").checked(1)
    assert ran.err.splitlines()[-1] == (
        "error: the test set has no rows: there is nothing to measure")


@pytest.mark.parametrize(("settings", "told"), [
    (("--class", "spm", "--max-false-positives", "0.1"),
     "--class: unknown value 'spm' - did you mean 'spam'?; choose one of ham, spam"),
    (("--class", "spam", "--max-false-positives", "2"),
     "--max-false-positives must be a number above 0 and below 1; got 2.0"),
    (("--class", "spam", "--max-false-positives", "0.1", "--max-false-negatives", "0"),
     "--max-false-negatives must be a number above 0 and below 1; got 0.0"),
    (("--class", "spam", "--costs", "1"), "--costs must be two numbers, such as 10,1; got '1'"),
    (("--class", "spam", "--costs", "1,-1"), "--costs must be two numbers above 0"),
    (("--min-precision", "1"), "--min-precision must be a number above 0 and below 1"),
    (("--min-precision", "0.9", "--confidence", "95"), "--confidence must be a number above 0")])
def test_thresholds_are_refused_before_rows_are_scored(
    run: Run, folder: Path, trained: Path, mail: Path, settings: tuple[str, ...], told: str
) -> None:
    ran = run("threshold", trained, mail, *settings, "-o", "n.textnb").checked(2)
    assert ran.err.startswith(f"error: {told}")
    assert not Path("n.textnb").exists()


@pytest.mark.parametrize(("arguments", "option"), [
    (("test", "--positive", "spm"), "--positive"),
    (("validate", "--folds", "2", "--positive", "spm"), "--positive"),
    (("validate", "--leave-one-out", "--positive", "spm"), "--positive")])
def test_a_class_that_is_unknown_is_refused_before_rows_are_scored(
    run: Run, trained: Path, mail: Path, arguments: tuple[str, ...], option: str
) -> None:
    verb, *rest = arguments
    ran = run(verb, trained, mail, *rest).checked(2)
    assert ran.err == (f"error: {option}: unknown value 'spm' - did you mean 'spam'?; choose one "
                       "of ham, spam\n")


@pytest.mark.parametrize(("written", "meant"), [
    ("postgres", "'sql-postgres'"), ("postgresql", "'sql-postgres'"), ("js", "'javascript'"),
    ("sql", "'sql-duckdb' or 'sql-postgres' or 'sql-sqlite'"), ("jsn", "'json'"),
    ("onx", "'onnx'")])
def test_a_target_by_another_name(
    run: Run, folder: Path, trained: Path, written: str, meant: str
) -> None:
    ran = run("export", trained, "--to", written, "-o", "x").checked(2)
    assert ran.err.startswith(f"error: --to: unknown value '{written}' - did you mean {meant}?; ")


def test_an_export_tells_its_size_and_its_terms(run: Run, folder: Path, trained: Path) -> None:
    ran = run("export", trained, "-o", "m.json").checked()
    size = Path("m.json").stat().st_size
    assert f"json, scores tokens: 12 terms, {size} bytes -> m.json" in ran.err
    ran = run("export", trained, "--to", "json", "-o", "bundle", "--top", "3").checked()
    told = re.search(r"json, scores tokens: 3 terms, ([\d.]+) KiB -> bundle\n", ran.err)
    size = sum(path.stat().st_size for path in Path("bundle").iterdir())
    assert told is not None
    assert told[1] == f"{size / 1024:.1f}"


def test_a_server_that_is_missing(
    run: Run, folder: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    run("export", trained, "--to", "sql-postgres", "-o", "m.sql").checked()
    monkeypatch.delenv("TEXTNB_POSTGRES", raising=False)
    ran = run("verify", "m.sql").checked(1)
    assert "Set the environment variable TEXTNB_POSTGRES" in ran.err
    assert "pip install" not in ran.err
    monkeypatch.setenv("TEXTNB_POSTGRES", "host=127.0.0.1 port=1 dbname=none connect_timeout=2")
    ran = run("verify", "m.sql").checked(1)
    assert "that TEXTNB_POSTGRES names does not answer (" in ran.err
    assert "pip install" not in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("settings", [
    (), ("--l", "auto"), ("--model", "nblinear"), ("--memory-limit", "50M")])
def test_rows_without_a_text_are_counted_once_in_training(
    run: Run, folder: Path, settings: tuple[str, ...]
) -> None:
    rows = pl.concat([MAIL.select("text", "label"), pl.DataFrame({
        "text": [None, "", " \n"], "label": ["spam", "ham", "ham"]})])
    rows.write_parquet("rows.parquet")
    ran = run("train", "rows.parquet", *settings, "-o", "m.textnb").checked()
    assert ran.err.count("note: 3 rows hold no text (null, empty or white space alone)") == 1
    assert "no text" not in run(
        "train", "rows.parquet", *settings, "-q", "-o", "m.textnb").checked().err


def test_rows_without_a_text_are_counted_where_they_are_answered(
    run: Run, folder: Path, trained: Path
) -> None:
    rows = pl.DataFrame({"text": ["free", None, ""], "label": ["spam", "ham", "ham"]})
    rows.write_parquet("rows.parquet")
    note = ("note: 2 rows hold no text (null, empty or white space alone): answered by the "
            "classes' priors alone\n")
    assert note in run("predict", trained, "rows.parquet").checked().err
    assert note in run("test", trained, "rows.parquet").checked().err
    assert "no text" not in run(
        "predict", trained, "rows.parquet", "--where", "text = 'free'").checked().err
    assert textnb.evaluate(textnb.load(trained), rows).textless == 2


def test_a_file_with_semicolons(run: Run, folder: Path) -> None:
    Path("rows.csv").write_text("text;label\ngood, film;a\nbad;b\n")
    ran = run("train", "rows.csv", "-o", "m.textnb").checked(1)
    assert "seem to be separated by ';'. Say so with --read separator=';'" in ran.err
    run("train", "rows.csv", "--read", "separator=;", "-o", "m.textnb").checked()
    assert textnb.load("m.textnb").vocabulary_ == ["bad", "film", "good"]
    ran = run("predict", "m.textnb", "-", "--read", "separator=|",
    input="text|x\ngood|1\n").checked()
    assert '"predicted":"a"' in ran.out
