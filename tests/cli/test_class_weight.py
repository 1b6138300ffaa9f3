"""Weights of classes and documents, on the command line and in a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import textnb
from tests.cli.conftest import Run
from textnb import MultinomialNB, NBLogisticRegression, TextClassifier


def trained(run: Run, source: object, *options: str) -> Any:
    run("train", source, "-o", "m.textnb", *options).checked()
    return textnb.load("m.textnb")


@pytest.mark.parametrize(("options", "estimator"), [
    (["--set", "class_weight=balanced"], MultinomialNB(class_weight="balanced")),
    (["--set", "class_weight.spam=3", "--set", "class_weight.ham=0.5"],
     MultinomialNB(class_weight={"spam": 3.0, "ham": 0.5})),
    (["--set", "class_weight=balanced", "--model", "nblr"],
     NBLogisticRegression(class_weight="balanced"))], ids=str)
def test_classes(run: Run, mail: Path, options: list[str], estimator: Any) -> None:
    model = trained(run, mail, *options)
    expected = TextClassifier(estimator).fit(mail)
    assert model.get_params()["estimator__class_weight"] == estimator.class_weight
    assert (model.linear_form().weights == expected.linear_form().weights).all()


def test_documents(run: Run, mail: Path) -> None:
    rows = pl.read_parquet(mail).with_row_index("n").with_columns(w=pl.col("n") % 3 + 0.5)
    rows.write_csv("weighted.csv")
    model = trained(run, "weighted.csv", "--weight", "w")
    expected = TextClassifier().fit(rows, sample_weight="w")
    assert (model.linear_form().weights == expected.linear_form().weights).all()
    assert "sample weights" in run("forget", "m.textnb", "weighted.csv").checked(2).err


@pytest.mark.parametrize(("options", "said"), [
    (["--set", "class_weight=spam"], "--set class_weight must be None, 'balanced', or a dict"),
    (["--set", "class_weight.spam=2", "--set", "class_weight.spam=3"],
    "--set class_weight.spam is given twice"),
    (["--set", "class_weight.spma=2"], "did you mean 'spam'"),
    (["--set", "class_weight.spam=0"], "numbers above 0"),
    (["--set", "class_weight=balanced", "--l", "auto"], "--l auto leaves rows out"),
    (["--set", "class_weight=balanced", "--model", "lda"], "--set class_weight belongs to --model"),
    (["--set", "alpha=1"], "got --model multinomial, whose smoothing parameter is --l")])
def test_what_does_not_go_is_refused(
    run: Run, mail: Path, options: list[str], said: str
) -> None:
    assert said in " ".join(run("train", mail, "-o", "m.textnb", *options).checked(2).err.split())
    assert not Path("m.textnb").exists()
