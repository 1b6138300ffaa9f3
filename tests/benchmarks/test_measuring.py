"""The tool that measures: processes, turns, corpora, and sides that do the same work."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks import accuracy, data, process, sides, speed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
HOLD = "import time; held = b'x' * (60 << 20); time.sleep(0.3)"


def test_a_run_has_the_memory_of_its_whole_tree() -> None:
    child = f"import subprocess, sys; {HOLD}; subprocess.run([sys.executable, '-c', {HOLD!r}])"
    ran = process.run([sys.executable, "-c", child])
    assert ran.code == 0
    assert 120 < ran.peak_mib < 250
    assert ran.seconds >= 0.6
    assert 0 < ran.cpu_seconds < ran.seconds + 1


def test_a_process_that_ends_while_it_is_looked_at_has_no_descendants(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: Any) -> Any:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(Path, "glob", ended)
    assert process.descendants(os.getpid()) == []


def test_a_run_keeps_code_and_output(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("text")
    program = "import sys; print(sys.stdin.read()); print('no', file=sys.stderr); sys.exit(3)"
    ran = process.run([sys.executable, "-c", program], read=tmp_path / "in")
    assert (ran.code, ran.out, ran.error) == (3, "text\n", "no\n")
    assert speed.taken(ran, ["program"]) == {"failed": "program ended with 3: no"}


def test_sides_take_turns_and_a_failed_one_stops() -> None:
    order: list[str] = []

    def side(name: str, result: dict[str, Any]) -> Any:
        def measure() -> dict[str, Any]:
            order.append(name)
            return result

        return measure

    good = {"seconds": 1.0, "check": {}}
    found = speed.in_turn({"a": side("a", good), "b": side("b", {"failed": "x"})}, 3, "task")
    assert order == ["a", "b", "a", "a"]
    assert speed.medians(found["a"])["runs"] == 3
    assert speed.medians(found["b"]) == {"failed": "x"}


def test_repeated_text_has_a_vocabulary_that_grows(tmp_path: Path) -> None:
    rows = pl.DataFrame({"label": ["a", "b"] * 50, "text": [f"word{n} is new" for n in range(100)]})
    data.repeat(rows, tmp_path / "four", 4 * 1400 / 1e6)
    frames = [pl.read_parquet(file) for file in sorted((tmp_path / "four").iterdir())]
    terms = [set(frame["text"].str.split(" ").explode()) for frame in frames]
    assert len(frames) >= 3
    known = len(terms[0])
    grown = len(set.union(*terms[:3]))
    assert grown == pytest.approx(known * 3**data.HEAPS, rel=0.05)


@pytest.mark.parametrize("official", [True, False])
def test_a_corpus_is_split_by_itself_or_by_class(official: bool) -> None:
    frame = pl.DataFrame({"label": ["a", "a", "a", "b", "b", "b"], "text": ["t", None] * 3})
    if official:
        frame = frame.with_columns(split=pl.Series(["train", "test"] * 3))
    parts = data.split(frame)
    assert parts["train"].height == (3 if official else 4)
    assert set(parts["test"]["label"]) == {"a", "b"}
    assert parts["train"]["text"].null_count() == 0


def test_sides_of_equal_counts_find_the_same(tmp_path: Path) -> None:
    frame = pl.DataFrame({"label": ["a", "b"] * 20,
                          "text": [f"Ein Text {n % 7}, naïve_{n % 3} x" for n in range(40)]})
    frame.write_parquet(tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    for task in sides.PARTS:
        found = [sides.from_memory(side.kind(sides.words_of(task), tmp_path), task, path, path,
                                   path, 1)["check"]
                 for side in sides.SIDES.values() if side.same_counts and task in side.tasks]
        assert found.count(found[0]) == len(found) == 3
        assert bool(found[0]) == (task != "fit")


def test_accuracy_is_that_of_the_answers(tmp_path: Path) -> None:
    rows = pl.DataFrame({"label": ["a", "b", "a", "b"], "text": ["x"] * 4})
    rows.write_parquet(tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    np.savez(tmp_path / "answers.npz", predicted=np.array(["a", "b", "b", "b"]),
             probabilities=np.array([[0.5, 0.5], [0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]))
    found = accuracy.metrics(data.Corpus("rows", path, path, 2, {}), tmp_path / "answers.npz")
    assert found == pytest.approx({"accuracy": 3 / 4, "macro_f1": (2 / 3 + 4 / 5) / 2,
                                   "log_loss": 5 / 4 * np.log(2)})


def test_a_run_that_is_resumed_measures_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pl.DataFrame({"label": ["a", "b"] * 6, "text": ["one two"] * 12}).write_parquet(
        tmp_path / "rows.parquet")
    name, calls = str(tmp_path / "rows.parquet"), []
    one, two, three = list(accuracy.SIDES)[:3]

    def measure(corpus: data.Corpus, side: str, folder: Path) -> dict[str, Any]:
        calls.append(side)
        return {"corpus": corpus.name, "side": side, "accuracy": 1.0}

    monkeypatch.setattr(accuracy, "measure", measure)
    before: list[dict[str, Any]] = [
        {"corpus": "rows", "side": two, "accuracy": 0.5}, {"corpus": "older", "side": one},
        {"corpus": "rows", "side": one, "failed": "no memory"}]
    kept: list[Any] = []
    found = accuracy.accuracy([name], tmp_path / "first", [three, one, two], before, True,
                              kept.append)
    assert calls == [three, one], "what failed is measured again"
    assert [(row["corpus"], row["side"]) for row in found["rows"]] == [
        ("older", one), ("rows", one), ("rows", two), ("rows", three)]
    assert found["rows"][2]["accuracy"] == 0.5
    assert [len(figures["rows"]) for figures in kept] == [4, 4], "each figure is kept at once"
    accuracy.accuracy([name], tmp_path / "second", [two], before, False, kept.append)
    assert calls[2:] == [two], "without --resume all that is asked for is measured"


def test_an_unknown_section_or_corpus_is_named() -> None:
    def said(*arguments: str) -> str:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        return process.run([sys.executable, "-m", "benchmarks", *arguments], environment).error

    assert "no section 'spede': expected speed," in said("spede")
    assert "no corpus 'imbd': expected docstrings," in said("--corpora", "imbd", "--runs", "1")
    assert "no side 'textnb' of accuracy: expected" in said("accuracy", "--sides", "textnb")
    assert "no side 'fastTxt' of speed: expected" in said("speed", "--sides", "fastTxt")


def test_a_job_leaves_answers(tmp_path: Path) -> None:
    frame = pl.DataFrame({"label": ["a", "b"] * 20, "text": ["one two", "three four"] * 20})
    frame.write_parquet(tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    for name in ("scikit-learn", "textnb", "fastText", "Vowpal Wabbit", "bogofilter"):
        if sides.SIDES[name].present:
            sides.SIDES[name].kind(1, tmp_path).job(path, path)
            answers = pl.read_parquet(tmp_path / "answers.parquet")
            assert answers["predicted"].to_list() == frame["label"].to_list(), name
            (tmp_path / "answers.parquet").unlink()
