"""The verbs by which a model leaves: export, verify, describe."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import textnb
from tests.cli.conftest import Run, files_in
from textnb.cli import console


def test_export_and_verify(run: Run, folder: Path, trained: Path) -> None:
    ran = run("export", trained, "--to", "csv", "-o", "out").checked()
    assert ran.out == ""
    assert re.fullmatch(r"csv, scores tokens: 12 terms, [\d.]+ KiB -> out\n", ran.err)
    ran = run("verify", "out").checked()
    assert ran.out.startswith("csv: 70 rows, largest difference of a score ")
    assert ran.out.endswith(", 0 labels differ\n")
    found = json.loads(run("verify", "out", "--format", "json").checked().out)
    assert (found["target"], found["rows"], found["passed"]) == ("csv", 70, True)


def test_one_w_and_b(run: Run, folder: Path, trained: Path) -> None:
    run("export", trained, "--to", "parquet", "-o", "out.zip", "--positive", "spam").checked()
    run("verify", "out.zip").checked()
    ran = run("export", trained, "--to", "parquet", "-o", "other", "--positive", "smap").checked(2)
    assert "did you mean 'spam'" in ran.err
    assert files_in(folder) == ["out.zip"]


def test_pruning_tells_what_it_does(run: Run, folder: Path, trained: Path) -> None:
    ran = run("export", trained, "--to", "json", "-o", "out", "--top", "3")
    lines = ran.checked().err.splitlines()
    assert lines[0] == "3 terms kept, 9 left out"
    assert pl.read_parquet("out/weights.parquet").height == 3
    form = json.loads(Path("out/form.json").read_text())
    assert form["pruned"] == {"kept": 3, "dropped": 9}


def test_rows_of_ones_own(run: Run, mail: Path, trained: Path) -> None:
    run("export", trained, "--to", "npz", "-o", "out", "-q").checked()
    assert run("verify", "out", mail).checked().out.startswith("npz: 6 rows, ")
    ran = run("verify", "out", mail, "--where", "split = 'test'").checked()
    assert ran.out.startswith("npz: 2 rows, ")


def test_a_difference_fails(run: Run, folder: Path, trained: Path) -> None:
    ran = run("export", trained, "--to", "json", "-o", "w.json").checked()
    assert ran.err == ("json, scores tokens: 12 terms, 765 bytes -> w.json (and w.json.bundle.zip, "
                       "which proves it)\n")
    assert files_in(folder) == ["w.json", "w.json.bundle.zip"]
    run("verify", "w.json").checked()
    Path("w.json").write_text(Path("w.json").read_text().replace("-0.69", "-0.68", 1))
    assert "not the file of its bundle" in run("verify", "w.json").checked(1).err


@pytest.mark.parametrize(("args", "code", "said"), [
    (["export", "{model}", "--to", "jsn", "-o", "out"], 2, "did you mean 'json'"),
    (["export", "{model}", "--to", "json", "-o", "no/out"], 1, "there is no folder"),
    (["export", "{model}", "--to", "json", "-o", "out", "--input", "words"], 2, "--input"),
    (["export", "{model}", "--to", "json", "-o", "out", "--input", "text"], 1,
     "json: it is given the tokens"),
    (["export", "absent", "--to", "json", "-o", "out"], 1, "no such model file"),
    (["verify", "absent"], 1, "no such bundle"),
    (["verify", "{model}"], 1, ""),
    (["describe", "absent"], 1, "no such model file"),
])
def test_what_goes_wrong_is_one_line(
    run: Run, folder: Path, trained: Path, args: list[str], code: int, said: str
) -> None:
    ran = run(*(arg.format(model=trained) for arg in args)).checked(code)
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert said in ran.err
    assert files_in(folder) == []


def test_describe(run: Run, folder: Path, trained: Path) -> None:
    card = json.loads(run("describe", trained, "--format", "json").checked().out)
    assert card["kind"] == "TextClassifier"
    assert card["estimator"] == "MultinomialNB"
    assert card["parameters"]["l"] == 1.0
    assert card["classes"] == [{"label": "ham", "rows": 3, "prior": pytest.approx(0.5)},
                               {"label": "spam", "rows": 3, "prior": pytest.approx(0.5)}]
    assert (card["vocabulary"], card["training_rows"], card["tokens"]) == (12, 6, 19)
    assert card["tokenizer"]["lowercase"] is True
    text = run("describe", trained).checked().out
    for said in ("MultinomialNB", "vocabulary", "12", "lowercase=True", "spam", "0.500"):
        assert said in text


def test_describe_a_table(run: Run, folder: Path) -> None:
    pl.DataFrame({"x": [1.0, 2.0, 7.0, 8.0], "label": [1, 1, 2, 2]}).write_parquet("t.parquet")
    run("train", "t.parquet", "--model", "lda", "-o", "t.textnb").checked()
    card = json.loads(run("describe", "t.textnb", "--format", "json").checked().out)
    assert card["kind"] == "TableClassifier"
    assert (card["reads"], card["features"], card["training_rows"]) == (["x"], 1, 4)
    assert "x" in run("describe", "t.textnb").checked().out
    run("export", "t.textnb", "--to", "json", "-o", "out").checked()
    run("verify", "out", "t.parquet").checked()


@pytest.mark.parametrize(("file", "target"), [
    ("w.json", "json"), ("w.csv", "csv"), ("w.npz", "npz"), ("w.mjs", "javascript")])
def test_the_ending_tells_the_target(
    run: Run, folder: Path, trained: Path, file: str, target: str
) -> None:
    ran = run("export", trained, "-o", file).checked()
    assert ran.err.startswith(f"{target}, scores ")
    assert file in files_in(folder)


@pytest.mark.parametrize(("file", "message"), [
    ("v.sql", "may be for several systems: say which, --to sql-duckdb or sql-postgres or "
              "sql-sqlite"),
    ("v.py", "say which, --to python or polars"),
    ("v.zip", "does not tell for which system"), ("folder", "does not tell for which system"),
    ("v.parquet", "does not tell for which system"), ("v.SQL", "does not tell")])
def test_an_ending_that_does_not_tell_is_bad_usage(
    run: Run, folder: Path, trained: Path, file: str, message: str
) -> None:
    ran = run("export", trained, "-o", file).checked(2)
    assert message in ran.err
    assert files_in(folder) == []


def test_an_export_names_its_steps(folder: Path, trained: Path) -> None:
    model = textnb.load(trained)
    steps: list[str] = []
    made = textnb.export_model(model, "w.csv", progress=steps.append)
    assert steps[0] == "collecting weights and golden rows"
    assert steps[-1] == "sealing the bundle"
    steps.clear()
    textnb.verify_export(made.path, progress=steps.append)
    assert steps == ["reading the bundle", "scoring 70 rows by csv"]


def test_steps_are_shown_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for terminal in (True, False):
        shown = Console(file=io.StringIO(), force_terminal=terminal, width=80)
        monkeypatch.setattr(console, "stderr", lambda shown=shown: shown)
        with console.steps("exporting", quiet=False) as tell:
            tell("writing [b]")
            time.sleep(0.2)
        assert isinstance(shown.file, io.StringIO)
        assert ("exporting: writing [b]" in shown.file.getvalue()) is terminal
