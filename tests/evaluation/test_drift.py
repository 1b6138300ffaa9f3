"""Drift is told where documents change, and not where they do not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import ks_2samp

from tests.cli.conftest import Run, folder, run
from textnb import HeldOut, LearnedRowsWarning, ParameterError, TextClassifier, drift
from textnb.evaluation.drift import (
    AGAIN,
    LEVEL,
    SAME,
    TOO_FEW,
    Drift,
    Sample,
    compare,
    stability_index,
)

__all__ = ["folder", "run"]


def documents(n: int, seed: int, power: float = 1.4) -> pl.DataFrame:
    """Texts of words whose frequencies follow Zipf; of spam, every second word is its own."""
    source = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        label = "spam" if number % 3 == 0 else "ham"
        words = source.zipf(power, 30)
        own = "s" if label == "spam" else "h"
        rows.append((" ".join(f"{own if place % 2 else 'w'}{word}" for place, word
                              in enumerate(words.tolist())), label))
    return pl.DataFrame(rows, schema=["text", "label"], orient="row")


def scored(scores: np.ndarray, actual: np.ndarray) -> HeldOut:
    return HeldOut(np.arange(2), scores, actual, np.ones(len(scores)), "by hand")


def sample(n: int, seed: int, shift: float = 0.0, share: float = 0.3) -> Sample:
    """Scores of two classes and unknown words, drawn at random."""
    source = np.random.default_rng(seed)
    spam = source.random(n) < share
    odds = np.where(spam, 1.0, -1.0) * np.abs(source.normal(8.0 - shift, 3.0, n))
    unknown = source.binomial(100, 0.05 + 0.02 * shift, n)
    return Sample.of(scored(np.stack([-odds, np.zeros(n)], axis=1), spam.astype(np.int64)),
                     np.full(n, 100), unknown)


def test_samples_of_one_distribution_rarely_differ() -> None:
    alarms = sum(compare(sample(400, seed), sample(300, 1000 + seed), ["ham", "spam"]).verdict
                 == AGAIN for seed in range(100))
    assert alarms == 0
    # Large but within chance: on few documents the index alone would alarm.
    pairs = [(sample(50, seed), sample(50, 1000 + seed)) for seed in range(100)]
    results = [compare(*pair, ["ham", "spam"]) for pair in pairs]
    assert sum(max(one.index for one in result.measures) > 0.2 for result in results) > 20
    assert sum(result.verdict == AGAIN for result in results) <= 1


def test_a_shift_is_told_by_name() -> None:
    old = sample(1000, 1)
    shifted = compare(old, sample(1000, 2, shift=2.5), ["ham", "spam"])
    assert shifted.verdict == AGAIN
    assert {"unknown words", "scores"} <= set(shifted.drifted)
    more_spam = compare(old, sample(1000, 3, share=0.8), ["ham", "spam"])
    assert set(more_spam.drifted) == {"answers", "labels"}
    # More than chance, but small.
    small = compare(sample(50_000, 4), sample(50_000, 5, share=0.32), ["ham", "spam"])
    assert {one.name: one.p_value for one in small.measures}["labels"] < 1e-6
    assert small.verdict == SAME


def test_the_test_is_that_of_scipy() -> None:
    old, new = sample(300, 1), sample(200, 2, shift=1)
    found = {one.name: one for one in compare(old, new, ["ham", "spam"]).measures}
    assert found["scores"].p_value == ks_2samp(old.scores, new.scores, method="asymp").pvalue
    # 7/12, 5/12 against 4/12, 8/12, with half a document more in each.
    p, q = np.array([7.5, 5.5]) / 13, np.array([4.5, 8.5]) / 13
    assert stability_index([7, 5], [4, 8]) == pytest.approx(((q - p) * np.log(q / p)).sum())


def test_errors_are_measured_by_their_rate() -> None:
    def with_errors(rate: float, seed: int) -> Sample:
        one = sample(3000, seed)
        wrong = np.random.default_rng(seed).random(3000) < rate
        return Sample(one.answers, one.scores, one.unknown,
                      np.where(wrong, 1 - one.answers, one.answers), wrong)

    assert compare(with_errors(.02, 1), with_errors(.06, 2), [0, 1]).drifted == ["errors"]
    assert compare(with_errors(.06, 1), with_errors(.02, 2), [0, 1]).verdict == SAME


def test_few_documents_give_no_verdict() -> None:
    assert compare(sample(49, 1), sample(900, 2, shift=5), [0, 1]).verdict == TOO_FEW
    empty = Sample.of(scored(np.zeros((0, 2)), np.zeros(0, np.int64)), [], [], labelled=False)
    assert compare(empty, sample(900, 2), [0, 1]).to_dict()["verdict"] == TOO_FEW
    result = Drift(compare(sample(60, 1), sample(60, 2), [0, 1]).measures, 60, 60)
    assert 0.3 < result.visible < 0.4
    assert Drift(result.measures, 10**6, 10**6).visible == pytest.approx(
        (np.log(2 * len(result.measures) / LEVEL) / 1e6) ** 0.5)


def test_documents_of_no_token_and_of_no_class() -> None:
    # Where every class is impossible, there is no answer; without tokens, no share.
    scores = np.array([[-np.inf, -np.inf], [0.0, -np.inf], [1.0, 2.0]] * 100)
    one = Sample.of(scored(scores, np.zeros(300, np.int64)), [0, 5, 5] * 100, [0, 0, 5] * 100,
                    labelled=False)
    assert one.answers[:3].tolist() == [-1, 0, 1]
    assert compare(one, one, [0, 1]).verdict == SAME
    assert compare(one, one, [0, 1]).measures[0].reference["(other)"] == pytest.approx(1 / 3)


def test_halves_of_a_corpus_are_alike_and_another_corpus_is_not() -> None:
    train, old, new = (documents(600, seed) for seed in range(3))
    model = TextClassifier().fit(train)
    assert drift(model, new, old).verdict == SAME
    assert drift(model, new.drop("label"), old.lazy()).verdict == SAME
    other = documents(600, 3, power=1.25)
    assert "unknown words" in drift(model, other, old).drifted
    with pytest.warns(LearnedRowsWarning):
        drift(model, new, train)
    with pytest.warns(UserWarning, match="only one class"):
        single = TextClassifier().fit(["aa bb"], ["x"])
    with pytest.raises(ParameterError, match="single class"):
        drift(single, new, old)


def test_the_command_says_what_to_do(run: Run, folder: Path) -> None:
    TextClassifier().fit(documents(600, 0)).save("m.textnb")
    documents(600, 1).with_columns(date=pl.datetime(2020, 1, 1)).write_parquet("old.parquet")
    documents(600, 2).write_parquet("new.parquet")
    documents(600, 3, power=1.25).write_parquet("other.parquet")
    same = run("drift", "m.textnb", "new.parquet", "--reference", "old.parquet").checked()
    assert "nothing drifted" in same.out
    assert "can't be seen" in same.err
    other = run("drift", "m.textnb", "other.parquet", "--reference", "old.parquet").checked(3)
    assert "choose again" in other.out
    told = run("drift", "m.textnb", "other.parquet", "--reference", "old.parquet", "--format",
               "json", "-q").checked(3)
    assert "unknown words" in json.loads(told.out)["drifted"]
    assert "--reference-where" in run(
        "drift", "m.textnb", "new.parquet", "--reference", "old.parquet", "--reference-where",
        "label = 'none'").checked(1).err
    assert "INPUT" in run("drift", "m.textnb", "--reference", "old.parquet").checked(2).err
    assert "--reference" in run("drift", "m.textnb", "new.parquet").checked(2).err
    documents(9, 5).write_parquet("few.parquet")
    assert "too few documents" in run(
        "drift", "m.textnb", "few.parquet", "--reference", "old.parquet").checked(4).out
