"""Drift is reported where documents change, and not where they do not."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import ks_2samp

from textnb import HeldOut, LearnedRowsWarning, TextClassifier, drift
from textnb.evaluation.drift import (
    AGAIN,
    LEVEL,
    SAME,
    TOO_FEW,
    Drift,
    Sample,
    compare_samples,
    stability_index,
)


def documents(n, seed, power=1.4):
    """Texts of words whose frequencies follow Zipf; of spam, every second word is its own."""
    source = np.random.default_rng(seed)
    labels = ["spam" if number % 3 == 0 else "ham" for number in range(n)]
    texts = [" ".join(f"{label[0] if place % 2 else 'w'}{word}" for place, word
                      in enumerate(source.zipf(power, 30).tolist())) for label in labels]
    return pl.DataFrame({"text": texts, "label": labels})


def scored(scores, actual):
    return HeldOut(np.arange(2), scores, actual, np.ones(len(scores)), "by hand")


def sample(n, seed, shift=0.0, share=0.3):
    """Scores of two classes and unknown words, drawn at random."""
    source = np.random.default_rng(seed)
    spam = source.random(n) < share
    odds = np.where(spam, 1.0, -1.0) * np.abs(source.normal(8.0 - shift, 3.0, n))
    unknown = source.binomial(100, 0.05 + 0.02 * shift, n)
    return Sample.of(scored(np.stack([-odds, np.zeros(n)], axis=1), spam.astype(np.int64)),
                     np.full(n, 100), unknown)


def compare(old, new):
    return compare_samples(old, new, ["ham", "spam"])


@pytest.mark.slow
def test_samples_of_one_distribution_rarely_differ():
    assert [compare(sample(400, seed), sample(300, 1000 + seed)).verdict
            for seed in range(100)].count(AGAIN) == 0
    # Large but within chance: on few documents the index alone would alarm.
    results = [compare(sample(50, seed), sample(50, 1000 + seed)) for seed in range(100)]
    assert sum(max(one.index for one in result.measures) > 0.2 for result in results) > 20
    assert sum(result.verdict == AGAIN for result in results) <= 1


def test_a_shift_is_reported_by_name():
    old = sample(1000, 1)
    shifted = compare(old, sample(1000, 2, shift=2.5))
    assert shifted.verdict == AGAIN
    assert {"unknown words", "scores"} <= set(shifted.drifted)
    assert set(compare(old, sample(1000, 3, share=0.8)).drifted) == {"answers", "labels"}
    # More than chance, but small.
    small = compare(sample(50_000, 4), sample(50_000, 5, share=0.32))
    assert {one.name: one.p_value for one in small.measures}["labels"] < 1e-6
    assert small.verdict == SAME


def test_the_test_is_that_of_scipy():
    old, new = sample(300, 1), sample(200, 2, shift=1)
    measures = {one.name: one for one in compare(old, new).measures}
    assert measures["scores"].p_value == ks_2samp(old.scores, new.scores, method="asymp").pvalue
    # 7/12, 5/12 against 4/12, 8/12, with half a document more in each.
    p, q = np.array([7.5, 5.5]) / 13, np.array([4.5, 8.5]) / 13
    assert stability_index([7, 5], [4, 8]) == pytest.approx(((q - p) * np.log(q / p)).sum())


def test_errors_are_measured_by_their_rate():
    def with_errors(rate, seed):
        one = sample(3000, seed)
        wrong = np.random.default_rng(seed).random(3000) < rate
        return Sample(one.answers, one.scores, one.unknown,
                      np.where(wrong, 1 - one.answers, one.answers), wrong)

    assert compare(with_errors(.02, 1), with_errors(.06, 2)).drifted == ["errors"]
    assert compare(with_errors(.06, 1), with_errors(.02, 2)).verdict == SAME


def test_few_documents_give_no_verdict():
    assert compare(sample(49, 1), sample(900, 2, shift=5)).verdict == TOO_FEW
    empty = Sample.of(scored(np.zeros((0, 2)), np.zeros(0, np.int64)), [], [], labelled=False)
    assert compare(empty, sample(900, 2)).to_dict()["verdict"] == TOO_FEW
    measures = compare(sample(60, 1), sample(60, 2)).measures
    assert 0.3 < Drift(measures, 60, 60).visible < 0.4
    assert Drift(measures, 10**6, 10**6).visible == pytest.approx(
        (np.log(2 * len(measures) / LEVEL) / 1e6) ** 0.5)


def test_documents_of_no_token_and_of_no_class():
    # Where every class is impossible, there is no answer; without tokens, no share.
    scores = np.array([[-np.inf, -np.inf], [0.0, -np.inf], [1.0, 2.0]] * 100)
    one = Sample.of(scored(scores, np.zeros(300, np.int64)), [0, 5, 5] * 100, [0, 0, 5] * 100,
                    labelled=False)
    assert one.answers[:3].tolist() == [-1, 0, 1]
    assert compare(one, one).verdict == SAME
    assert compare(one, one).measures[0].reference["(other)"] == pytest.approx(1 / 3)


def test_halves_of_a_corpus_are_alike_and_another_corpus_is_not():
    train, old, new = (documents(600, seed) for seed in range(3))
    model = TextClassifier().fit(train)
    assert drift(model, new, old).verdict == SAME
    assert drift(model, new.drop("label"), old.lazy()).verdict == SAME
    assert "unknown words" in drift(model, documents(600, 3, power=1.25), old).drifted
    with pytest.warns(LearnedRowsWarning):
        drift(model, new, train)


def test_the_command_says_what_to_do_and_exits_by_the_verdict(run, folder):
    TextClassifier().fit(documents(600, 0)).save("m.textnb")
    documents(600, 1).with_columns(date=pl.datetime(2020, 1, 1)).write_parquet("old.parquet")
    for name, rows in (("new", documents(600, 2)), ("other", documents(600, 3, power=1.25)),
                       ("few", documents(9, 5))):
        rows.write_parquet(f"{name}.parquet")

    def answer(name, code, *options):
        return run("drift", "m.textnb", *name, *options).checked(code)

    reference = ["--reference", "old.parquet"]
    same = answer(["new.parquet"], 0, *reference)
    assert "nothing drifted" in same.out
    assert "can't be seen" in same.err
    assert "choose again" in answer(["other.parquet"], 3, *reference).out
    as_json = answer(["other.parquet"], 3, *reference, "--format", "json", "-q").out
    assert "unknown words" in json.loads(as_json)["drifted"]
    assert "too few documents" in answer(["few.parquet"], 4, *reference).out
    assert "--reference-where" in answer(
        ["new.parquet"], 1, *reference, "--reference-where", "label = 'none'").err
    assert "INPUT" in answer([], 2, *reference).err
    assert "--reference" in answer(["new.parquet"], 2).err


def test_a_class_may_have_the_name_of_unknown_labels():
    n = np.zeros(4)
    sample = Sample(answers=np.array([0, 1, 1, -1]), labels=np.array([0, 0, 1, -1]), wrong=None,
                    unknown=n, scores=n)
    shares = compare_samples(sample, sample, ["(other)", "a"]).measures[0].recent
    assert shares == {"((other))": 0.25, "(other)": 0.25, "a": 0.5}
