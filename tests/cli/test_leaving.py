"""The verbs export, verify and describe."""

import io
import json
import re
import time
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import textnb
from tests.cli.conftest import files_in, json_of
from textnb.cli import console


def test_export_and_verify(run, mail, trained):
    ran = run("export", trained, "--to", "csv", "-o", "out").checked()
    assert ran.out == ""
    size = re.fullmatch(r"csv, scores tokens: 12 terms, ([\d.]+) KiB -> out\n", ran.err)
    assert size[1] == f"{sum(path.stat().st_size for path in Path('out').iterdir()) / 1024:.1f}"
    ran = run("verify", "out").checked()
    assert ran.out.startswith("csv: 70 rows, largest difference of a score ")
    assert ran.out.endswith(", 0 labels differ\n")
    answer = json_of(run, "verify", "out")
    assert (answer["target"], answer["rows"], answer["passed"]) == ("csv", 70, True)
    assert run("verify", "out", mail).checked().out.startswith("csv: 6 rows, ")
    ran = run("verify", "out", mail, "--where", "split = 'test'").checked()
    assert ran.out.startswith("csv: 2 rows, ")
    run("export", trained, "--to", "parquet", "-o", "one.zip", "--positive", "spam", "-q").checked()
    run("verify", "one.zip").checked()


def test_export_top_prints_the_number_of_terms(run, folder, trained):
    ran = run("export", trained, "--to", "json", "-o", "out", "--top", "3").checked()
    assert ran.err.splitlines()[0] == "3 terms kept, 9 left out"
    assert pl.read_parquet("out/weights.parquet").height == 3
    form = json.loads(Path("out/form.json").read_text())
    assert form["pruned"] == {"kept": 3, "dropped": 9}


def test_verify_fails_for_a_file_that_was_changed(run, folder, trained):
    ran = run("export", trained, "--to", "json", "-o", "w.json").checked()
    size = Path("w.json").stat().st_size
    assert ran.err == (f"json, scores tokens: 12 terms, {size} bytes -> w.json (and "
                       "w.json.bundle.zip, which proves it)\n")
    assert files_in(folder) == ["w.json", "w.json.bundle.zip"]
    run("verify", "w.json").checked()
    Path("w.json").write_text(Path("w.json").read_text().replace("-0.69", "-0.68", 1))
    assert "not the file of its bundle" in run("verify", "w.json").checked(1).err


def test_describe(run, folder, trained):
    card = json_of(run, "describe", trained)
    assert (card["kind"], card["estimator"]) == ("TextClassifier", "MultinomialNB")
    assert card["parameters"]["l"] == 1.0
    assert card["classes"] == [{"label": "ham", "rows": 3, "prior": pytest.approx(0.5)},
                               {"label": "spam", "rows": 3, "prior": pytest.approx(0.5)}]
    assert (card["vocabulary"], card["training_rows"], card["tokens"]) == (12, 6, 19)
    assert card["tokenizer"]["lowercase"] is True
    text = run("describe", trained).checked().out
    for part in ("MultinomialNB", "vocabulary", "12", "lowercase=True", "spam", "0.500"):
        assert part in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_a_model_of_a_table_can_be_described_and_exported(run, folder):
    pl.DataFrame({"x": [1.0, 2.0, 7.0, 8.0], "label": [1, 1, 2, 2]}).write_parquet("t.parquet")
    run("train", "t.parquet", "--model", "lda", "-o", "t.textnb").checked()
    card = json_of(run, "describe", "t.textnb")
    assert card["kind"] == "TableClassifier"
    assert (card["reads"], card["features"], card["training_rows"]) == (["x"], 1, 4)
    assert "x" in run("describe", "t.textnb").checked().out
    run("export", "t.textnb", "--to", "json", "-o", "out").checked()
    run("verify", "out", "t.parquet").checked()


def test_export_and_verify_report_their_steps_to_progress(folder, trained):
    steps = []
    export = textnb.export_model(textnb.load(trained), "w.csv", progress=steps.append)
    assert (steps[0], steps[-1]) == ("collecting weights and golden rows", "sealing the bundle")
    steps.clear()
    textnb.verify_export(export.path, progress=steps.append)
    assert steps == ["reading the bundle", "scoring 70 rows by csv"]


@pytest.mark.parametrize("terminal", [True, False])
def test_steps_are_printed_only_on_a_terminal(monkeypatch, terminal):
    terminal_output = Console(file=io.StringIO(), force_terminal=terminal, width=80)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(console, "stderr", lambda: terminal_output)
    with console.steps("exporting", quiet=False) as report:
        report("writing [b]")
        time.sleep(0.2)
    assert ("exporting: writing [b]" in terminal_output.file.getvalue()) is terminal
