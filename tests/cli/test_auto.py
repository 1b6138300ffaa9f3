"""textnb train --l auto: the smoothing parameter is chosen, told and kept."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import textnb
from tests.cli.conftest import MAIL, Run
from textnb import MailFilter, MultinomialNB, TextClassifier


def test_what_was_chosen_is_told_and_kept(run: Run, mail: Path) -> None:
    ran = run("train", mail, "-o", "auto.textnb", "--l", "auto").checked()
    chosen = TextClassifier(MultinomialNB(l="auto")).fit(MAIL).estimator_.l_
    assert ran.err.splitlines()[-1] == (
        f"2 classes, 12 terms, l = {chosen:g} (chosen by leave-one-out) -> auto.textnb")
    model = textnb.load("auto.textnb")
    assert (model.estimator_.l, model.estimator_.l_) == ("auto", chosen)
    assert f'"chosen": {{"l": {chosen}}}' in run(
        "describe", "auto.textnb", "--format", "json").checked().out
    run("update", "auto.textnb", mail, "-o", "more.textnb").checked()
    assert textnb.load("more.textnb").estimator_.l_ == chosen


def test_standard_input_is_read_twice(run: Run, mail: Path) -> None:
    run("train", mail, "-o", "file.textnb", "--l", "auto").checked()
    run("train", "-", "-o", "stdin.textnb", "--l", "auto", "--read", "format=ndjson",
        input=MAIL.write_ndjson()).checked()
    assert Path("stdin.textnb").read_bytes() == Path("file.textnb").read_bytes()


def test_documents_that_can_not_tell_are_bad_data(run: Run, mail: Path) -> None:
    MAIL.filter(pl.col("label") == "ham").write_parquet("ham.parquet")
    ran = run("train", "ham.parquet", "-o", "ham.textnb", "--l", "auto").checked(1)
    assert "there is one class: give l as a number" in ran.err
    assert not Path("ham.textnb").exists()


def test_a_filter_scores_with_what_was_chosen(run: Run, mail: Path) -> None:
    message = b"Subject: offer\n\nfree offer"
    model = TextClassifier(MultinomialNB(l="auto")).fit(MAIL)
    model.save("auto.textnb")
    TextClassifier(MultinomialNB(l=model.estimator_.l_)).fit(MAIL).save("fixed.textnb")
    auto, fixed = (MailFilter.load(name, least_learned=0).judge(message)
                   for name in ("auto.textnb", "fixed.textnb"))
    assert auto == fixed
