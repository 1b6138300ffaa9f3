"""A limit of memory and files that can't be read, on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import textnb
from tests.cli.conftest import Run
from tests.text.test_limited import documents


@pytest.fixture
def news(folder: Path) -> Path:
    """Files of documents, one of which is cut short."""
    (folder / "news").mkdir()
    for i, part in enumerate(documents(rows=600).iter_slices(300)):
        part.write_parquet(folder / "news" / f"{i}.parquet")
    whole = (folder / "news" / "0.parquet").read_bytes()
    (folder / "news" / "x.parquet").write_bytes(whole[:-40])
    return folder / "news"


@pytest.mark.filterwarnings("always::textnb.errors.LearnedRowsWarning")
def test_a_file_that_can_not_be_read(run: Run, news: Path) -> None:
    ran = run("train", news, "-o", "m.textnb").checked(1)
    assert f"can't read {news / 'x.parquet'}" in ran.err
    assert not Path("m.textnb").exists()
    ran = run("train", news, "-o", "m.textnb", "--read", "on_unreadable=skip").checked()
    assert "left out 1 of 3 files:" in ran.err
    assert f"can't read {news / 'x.parquet'}" in ran.err
    assert sum(textnb.load("m.textnb").estimator_.class_count_) == 600
    for verb in (["test", "m.textnb", news], ["update", "m.textnb", news],
                 ["forget", "m.textnb", news], ["predict", "m.textnb", news, "-o", "a.parquet"]):
        run(*verb).checked(1)
        assert "left out 1 of 3 files:" in run(*verb, "--read", "on_unreadable=skip").checked().err
    assert pl.read_parquet("a.parquet").height == 600
    ran = run("train", news, "-o", "m.textnb", "--read", "on_unreadable=ignore").checked(2)
    assert "choose one of raise, skip" in ran.err


@pytest.fixture
def wide(folder: Path) -> Path:
    """More words than fit in a mebibyte."""
    words = pl.format("{} own{} its{}", "text", "i", "i").alias("text")
    documents(rows=4000).with_row_index("i").select(words, "label").write_parquet("wide.parquet")
    return Path("wide.parquet")


def test_what_was_left_out_is_told(run: Run, wide: Path) -> None:
    ran = run("train", wide, "-o", "m.textnb", "--memory-limit", "1M").checked()
    pruned = textnb.load("m.textnb").pruned_
    assert pruned is not None
    assert f"terms ({pruned.describe()}) -> m.textnb\n" in ran.err
    card = json.loads(run("describe", "m.textnb", "--format", "json").checked().out)
    assert card["pruned"] == pruned.to_dict()
    assert card["limits"]["memory_limit"] == 1 << 20
    err = run("update", "m.textnb", wide).checked().err
    assert f"terms ({textnb.load('m.textnb').pruned_.describe()}) -> m.textnb" in err


@pytest.mark.parametrize(("size", "expected"), [
    ("1048576", 1 << 20), ("2m", 2 << 20), ("1.5MiB", 3 << 19), ("3GB", 3 << 30),
    ("2048 k", 2 << 20), ("1M5", None), ("-1M", None), ("", None), ("1e9", None), ("1K", None),
    ("9" * 400 + "G", None), ("9" * 12 + "G", None)])
def test_sizes(run: Run, wide: Path, size: str, expected: Any) -> None:
    ran = run("train", wide, "-o", "m.textnb", f"--memory-limit={size}", "--min-df", "9")
    if expected is None:
        assert "bytes, such as 500M" in ran.checked(2).err
        assert not Path("m.textnb").exists()
    else:
        ran.checked()
        assert textnb.load("m.textnb").memory_limit == expected


def test_a_job_tells_it_too(run: Run, wide: Path) -> None:
    Path("job.toml").write_text(
        'output = "out"\n[input]\ntrain = "wide.parquet"\n[model]\nmemory_limit = "1M"\n')
    assert "left out for the memory limit: " in run("run", "job.toml").checked().err
    Path("job.toml").write_text(
        'output = "out"\n[input]\ntrain = "wide.parquet"\n[model]\nmemory_limit = "many"\n')
    assert "such as 500M" in run("run", "job.toml").checked(2).err
