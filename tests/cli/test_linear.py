"""``--model nblinear`` from training to a verdict and an export."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import textnb
from tests.classifier.models import NEWS
from tests.cli.conftest import Run


@pytest.fixture
def news(folder: Path) -> Path:
    NEWS.filter(pl.col("text").is_not_null()).write_parquet(folder / "news.parquet")
    return folder / "news.parquet"


def test_the_model_is_that_of_the_library(run: Run, news: Path) -> None:
    told = run("train", news, "--model", "nblinear", "--set", "C=2", "--set", "idf=false",
    "--set", "tf=presence",
               "-o", "shell.textnb").checked().err
    assert "passes and Newton steps: " in told
    assert "temperature " in told
    assert "held-out documents" in told
    own = textnb.NBLinear(C=2.0, idf=False, tf="presence")
    textnb.TextClassifier(own).fit(pl.read_parquet(news)).save("python.textnb")
    assert Path("shell.textnb").read_bytes() == Path("python.textnb").read_bytes()


def test_answers_of_the_command_are_those_of_python(run: Run, news: Path) -> None:
    run("train", news, "--model", "nblinear", "-o", "m.textnb").checked()
    run("predict", "m.textnb", news, "--probability", "-o", "answers.parquet").checked()
    answers = pl.read_parquet("answers.parquet")
    model = textnb.load("m.textnb")
    assert np.array_equal(answers["probability"], model.predict_proba(news_texts(news)).max(axis=1))
    assert answers["calibrated"].all()
    explained = run("explain", "m.textnb", answers["text"][0], "--format", "json").checked().out
    entries = json.loads(explained)
    assert entries


def news_texts(news: Path) -> pl.Series:
    return pl.read_parquet(news)["text"]


@pytest.mark.parametrize("target", ["python", "json", "sql-sqlite"])
def test_exports_with_its_feature_map_are_verified(run: Run, news: Path, target: str) -> None:
    run("train", news, "--model", "nblinear", "-o", "m.textnb").checked()
    run("export", "m.textnb", "--to", target, "-o", "out").checked()
    run("verify", "out").checked()


def test_weights_alone_do_not_hold_its_feature_map(run: Run, news: Path) -> None:
    run("train", news, "--model", "nblinear", "-o", "m.textnb").checked()
    refused = run("export", "m.textnb", "--to", "npz", "-o", "out.npz")
    assert refused.code
    assert "sublinear" in refused.err


def test_options_of_other_models_are_refused(run: Run, news: Path) -> None:
    refused = run("train", news, "--model", "nblinear", "--set", "beta=0.5", "-o", "m.textnb")
    assert refused.code == 2
    assert "--set beta belongs to --model nblr" in refused.err
    assert not Path("m.textnb").exists()


def test_learning_more_says_what_is_needed(run: Run, news: Path) -> None:
    run("train", news, "--model", "nblinear", "-o", "m.textnb").checked()
    for verb in ("update", "forget"):
        refused = run(verb, "m.textnb", news)
        assert refused.code
        assert "learns from all documents at once" in refused.err
        assert "textnb train --warm-start MODEL" in refused.err


def test_a_warm_start_begins_from_a_file(run: Run, news: Path) -> None:
    run("train", news, "--model", "nblinear", "-o", "m.textnb").checked()
    run("train", news, "--model", "nblinear", "--warm-start", "m.textnb",
        "-o", "again.textnb").checked()
    frame = pl.read_parquet(news)
    own = textnb.TextClassifier(textnb.NBLinear()).fit(frame)
    own.fit(frame, warm_start=True).save("python.textnb")
    assert Path("again.textnb").read_bytes() == Path("python.textnb").read_bytes()
    refused = run("train", news, "--warm-start", "m.textnb", "-o", "n.textnb")
    assert refused.code
    assert "textnb update" in refused.err
    refused = run("train", news, "--model", "gaussian", "--warm-start", "m.textnb", "-o",
                  "n.textnb")
    assert "--warm-start is for --model nblinear" in refused.err
