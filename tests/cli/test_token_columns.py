"""The command line on tables whose text column is a list of tokens."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, Run

LISTS = MAIL.select(pl.col("text").str.split(" ").alias("tokens"), "label", "id")


@pytest.mark.parametrize("ending", ["parquet", "ndjson"])
def test_from_training_to_explanation(run: Run, tmp_path: Path, ending: str) -> None:
    table, model = tmp_path / f"rows.{ending}", tmp_path / "model.textnb"
    getattr(LISTS, f"write_{ending}")(table)
    run("train", table, "--text", "tokens", "-o", model).checked()
    assert textnb.load(model).tokenizer.token_columns == ("tokens",)
    run("update", model, table, "-o", tmp_path / "more.textnb").checked()
    answers = [json.loads(line) for line in run("predict", model, table).checked().out.splitlines()]
    assert [row["predicted"] for row in answers] == LISTS["label"].to_list()
    assert [row["tokens"] for row in answers] == LISTS["tokens"].to_list()
    assert json.loads(run("test", model, table, "--format", "json").checked().out)["accuracy"] == 1
    shown = run("explain", model, '["free", "lunch"]', "--format", "json").checked().out
    assert json.loads(shown)["terms"] == 2
    wrong = run("explain", model, "free lunch").checked(2).err
    assert "type one as JSON" in wrong
    assert run("validate", model, table, "--folds", 2, "--format", "json").checked().out
    counted = run("duplicates", table, table, "--text", "tokens", "--exact", "--show", 2).checked()
    assert "6 of 6 rows" in counted.out
    assert "free money now" in counted.out


def test_texts_in_place_of_lists(run: Run, tmp_path: Path) -> None:
    table, texts, model = (tmp_path / name for name in ("a.parquet", "b.parquet", "m.textnb"))
    LISTS.write_parquet(table)
    MAIL.rename({"text": "tokens"}).write_parquet(texts)
    run("train", table, "--text", "tokens", "-o", model).checked()
    assert "'tokens' must be List(String), lists of tokens; it is String" in run(
        "predict", model, texts).checked(1).err
    assert "pattern='[a-z]+' is for texts" in run(
        "train", table, "--text", "tokens", "--set", "pattern=[a-z]+", "-o", model).checked(2).err
