"""What commands warn of: rows that were learned, and texts of which no term is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, finished, start
from tests.evaluation.test_novelty import A, B
from tests.text.test_coverage import UNKNOWN, WORDS, phrases
from textnb import TextClassifier


@pytest.mark.filterwarnings("always")
def test_commands_say_so(run: Run, folder: Path) -> None:
    phrases(100, 1).write_parquet("rows.parquet")
    UNKNOWN.write_parquet("unknown.parquet")
    WORDS.save("words.textnb")
    whole = ["train", "rows.parquet", "-o", "m.textnb", "-q", "--set", "unspaced=whole"]
    ran = run(*whole).checked()
    assert ran.err.startswith("warning: 100% of the tokens are of terms that occur once")
    assert "--set unspaced=pairs" in ran.err
    for words in (["predict", "words.textnb", "unknown.parquet", "-o", "out.csv", "-q"],
                  ["test", "words.textnb", "unknown.parquet", "-q"]):
        ran = run(*words).checked()
        assert ran.err.count("warning: 20 of 50 texts (40%) hold no term") == 1, words
    again = ["train", "rows.parquet", "-o", "m.textnb", "-q", "--analyzer", "char",
             "--ngrams", "1,2"]
    assert run(*again).checked().err == ""


@pytest.mark.slow
def test_learned_rows_are_not_called_held_out(folder: Path) -> None:
    TextClassifier().fit(A).save("m.textnb")
    for name, rows in (("a", A), ("b", B), ("few", B[:5])):
        rows.write_parquet(f"{name}.parquet")
    threshold = ["threshold", "--class", "1", "--max-false-positives", "0.05", "--dry-run"]
    for verb in (threshold, ["calibrate", "--held-out", "-o", "c.textnb"], ["test"],
                 ["test", "--positive", "1"]):
        first, *options = verb
        ran = finished(start(first, "m.textnb", "a.parquet", *options, "-q")).checked()
        assert ran.err.count("warning: the model has probably learned these rows: 0 of") == 1, verb
        assert "or leave-one-out, or textnb validate" in ran.err
        ran = finished(start(first, "m.textnb", "b.parquet", *options, "-q")).checked()
        assert ran.err == "", verb
        if verb is not threshold:
            ran = finished(start(first, "m.textnb", "few.parquet", *options)).checked()
            assert "note: it can't be told whether the model has learned these rows" in ran.err
    told = finished(start(*threshold[:1], "m.textnb", "a.parquet", *threshold[1:])).checked().out
    assert "no guarantee: the model has probably learned the rows" in told
    assert "(rows that the model has probably learned)" in told
    answer = json.loads(finished(start(
        "test", "m.textnb", "a.parquet", "--format", "json")).checked().out)
    assert answer["novelty"]["verdict"] == "learned"
    told = finished(start("threshold", "m.textnb", "a.parquet", "--scored", "leave-one-out",
                          *threshold[1:])).checked()
    assert "probably learned" not in told.err + told.out
