"""The benchmark tool: processes, their order, corpora, and the libraries that are compared."""

import importlib
import json
import os
import sys
from argparse import Namespace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks import __main__ as bench
from benchmarks import accuracy, data, process, sides

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
HOLD = "import time; held = b'x' * (60 << 20); time.sleep(0.3)"


def test_the_memory_of_a_run_includes_child_processes():
    child = f"import subprocess, sys; {HOLD}; subprocess.run([sys.executable, '-c', {HOLD!r}])"
    ran = process.run([sys.executable, "-c", child])
    assert "failed" not in ran
    assert 120 < ran["peak_mib"] < 250
    assert ran["seconds"] >= 0.6
    assert 0 < ran["cpu_seconds"] < ran["seconds"] + 1


def test_a_process_that_ends_during_the_search_has_no_descendants(monkeypatch):
    def ended(*_):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(Path, "glob", ended)
    assert process.descendants(os.getpid()) == []


def test_a_run_returns_its_output_or_its_error(tmp_path):
    (tmp_path / "in").write_text('{"seconds": 7.5, "check": {"rows": 2}}')
    copy = "import sys; print(sys.stdin.read())"
    ran = process.run([sys.executable, "-c", copy], read=tmp_path / "in")
    assert (ran["seconds"], ran["check"]) == (7.5, {"rows": 2})
    failing = "import sys; print('why', file=sys.stderr); sys.exit(3)"
    ran = process.run([sys.executable, "-c", failing], good=(0, 1))
    assert ran == {"failed": f"{sys.executable} ended with 3: why"}
    assert "check" in process.run([sys.executable, "-c", failing], good=(0, 3))


def test_a_function_is_called_in_a_process_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text("def double(x): return {'check': {'twice': 2 * int(x)}}")
    monkeypatch.syspath_prepend(str(tmp_path))
    command = process.calling(importlib.import_module("own").double, "21")
    result = process.run(command, {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert result["check"] == {"twice": 42}


def test_sides_run_in_turn_and_a_side_that_fails_is_not_repeated():
    order: list[str] = []

    def side(name, result):
        def measure():
            order.append(name)
            return result

        return measure

    good = {"seconds": 1.0, "check": {}}
    results = process.in_turn("task", {"a": side("a", good), "b": side("b", {"failed": "x"})}, 3)
    assert order == ["a", "b", "a", "a"]
    assert process.medians(results["a"])["runs"] == 3
    assert process.medians(results["b"]) == {"failed": "x"}


def test_repeated_text_has_a_vocabulary_that_grows(tmp_path):
    rows = pl.DataFrame({"label": ["a", "b"] * 50, "text": [f"word{n} is new" for n in range(100)]})
    (tmp_path / "four").mkdir()
    data.repeat(rows, tmp_path / "four", 4 * 1400 / 1e6)
    frames = [pl.read_parquet(file) for file in sorted((tmp_path / "four").iterdir())]
    terms = [set(frame["text"].str.split(" ").explode()) for frame in frames]
    assert len(frames) >= 3
    known = len(terms[0])
    grown = len(set.union(*terms[:3]))
    assert grown == pytest.approx(known * 3**data.HEAPS, rel=0.05)


def test_synthetic_rows_have_these_terms_and_classes(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "PIECE", 300)
    data.synthesize(tmp_path, 1000, 9000, 7)
    rows = pl.read_parquet(tmp_path)
    words = rows["text"].str.split(" ")
    assert (len(rows), rows["label"].n_unique(), set(words.list.len())) == (1000, 7, {data.WORDS})
    assert words.explode().n_unique() == 9000


@pytest.mark.parametrize("official", [True, False])
def test_a_corpus_has_its_own_split_or_is_split_by_class(official):
    frame = pl.DataFrame({"label": ["a", "a", "a", "b", "b", "b"], "text": ["t", None] * 3})
    if official:
        frame = frame.with_columns(split=pl.Series(["train", "test"] * 3))
    parts = data.split(frame)
    assert parts["train"].height == (3 if official else 4)
    assert set(parts["test"]["label"]) == {"a", "b"}
    assert parts["train"]["text"].null_count() == 0


def test_sides_with_the_same_counts_return_the_same_values(tmp_path):
    frame = pl.DataFrame({"label": ["a", "b"] * 20,
                          "text": [f"Ein Text {n % 7}, naïve_{n % 3} x" for n in range(40)]})
    frame.write_parquet(tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    for task in sides.PARTS:
        result = [sides.measure(name, task, path, path, str(tmp_path), path)["check"]
                  for name, side in sides.SIDES.items()
                  if side.same_counts and task in side.tasks]
        assert result.count(result[0]) == len(result) == 3
        assert bool(result[0]) == (task != "fit")


def test_accuracy_is_that_of_the_answers(tmp_path):
    rows = pl.DataFrame({"label": ["a", "b", "a", "b"], "text": ["x"] * 4})
    rows.write_parquet(tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    np.savez(tmp_path / "answers.npz", predicted=np.array(["a", "b", "b", "b"]),
             probabilities=np.array([[0.5, 0.5], [0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]))
    corpus = data.Corpus("rows", path, path, ["a", "b"], {})
    result = accuracy.metrics(corpus, tmp_path / "answers.npz")
    assert result == pytest.approx({"accuracy": 3 / 4, "macro_f1": (2 / 3 + 4 / 5) / 2,
                                    "log_loss": 5 / 4 * np.log(2),
                                    "calibration_error": 0.5625})


def test_a_run_that_is_resumed_measures_what_is_missing(tmp_path, monkeypatch):
    calls: list[str] = []

    def measure(side):
        calls.append(side)
        return [{"corpus": "rows", "side": side, "accuracy": 1.0}]

    def section(given):
        for side in given.sides:
            yield {"corpus": "rows", "side": side}, partial(measure, side)

    monkeypatch.setitem(bench.SECTIONS, "accuracy", section)
    file = tmp_path / "figures.json"

    def bench_of(about, *sides, resume):
        record = {"accuracy": {"about": about, "rows": [
            {"corpus": "older", "side": "one"}, {"corpus": "rows", "side": "one", "failed": "no"},
            {"corpus": "rows", "side": "two", "accuracy": 0.5}]}}
        calls.clear()
        bench.measure("accuracy", Namespace(sides=sides, resume=resume, files=[file]), record)
        assert json.loads(file.read_text()) == record, "each figure is kept at once"
        return [(row["corpus"], row["side"], row.get("accuracy"))
                for row in record["accuracy"]["rows"]]

    here = bench.machine()
    assert bench_of(here, "three", "one", "two", resume=True) == [
        ("older", "one", None), ("rows", "one", 1.0), ("rows", "two", 0.5), ("rows", "three", 1.0)]
    assert calls == ["three", "one"], "what failed is measured again"
    assert bench_of(here, "two", resume=False)[-1] == ("rows", "two", 1.0)
    assert bench_of(here | {"cpu": "another"}, "two", resume=True) == [("rows", "two", 1.0)]


def test_an_unknown_section_side_or_corpus_is_named(monkeypatch, capsys, tmp_path):
    def error_of(*arguments):
        monkeypatch.setattr("sys.argv", ["bench", *arguments])
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        with pytest.raises(SystemExit) as ended:
            bench.main()
        return f"{ended.value} {capsys.readouterr().err}"

    assert "no section 'spede': expected speed," in error_of("spede")
    assert "there is no imbd.parquet in the folder" in error_of("accuracy", "--corpora", "imbd")
    assert "invalid choice: 'fastTxt' (choose from" in error_of("speed", "--sides", "fastTxt")


def test_a_job_leaves_answers(tmp_path):
    frame = pl.DataFrame({"label": ["a", "b"] * 20, "text": ["one two", "three four"] * 20})
    frame.write_parquet(tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    for name in ("scikit-learn", "textnb", "fastText", "Vowpal Wabbit", "bogofilter"):
        if sides.SIDES[name].present:
            sides.measure(name, "job", path, path, str(tmp_path))
            answers = pl.read_parquet(tmp_path / "answers.parquet")
            assert answers["predicted"].to_list() == frame["label"].to_list(), name
            (tmp_path / "answers.parquet").unlink()
