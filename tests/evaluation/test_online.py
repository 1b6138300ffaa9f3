"""Documents judged in order: what refitting before each block gives, and the measures of TREC."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from textnb import (
    BernoulliNB,
    DataError,
    MultinomialNB,
    NBLinear,
    ParameterError,
    TextClassifier,
    held_out,
    validate_online,
)
from textnb.evaluation.decisions import decide_by_fit
from textnb.evaluation.online import _miss_rate
from textnb.learning.fitting import fit
from textnb.scoring.texts import predict

RNG = np.random.default_rng(7)
WORDS = np.array(["cheap", "pills", "prize", "noon", "minutes", "you", "me", "and", "lunch"])
LABELS = np.where(RNG.random(200) < 0.4, "spam", "ham")
FRAME = pl.DataFrame({
    "text": [" ".join(RNG.choice(WORDS, 6, p=[.2, .2, .1, .1, .1, .1, .1, .05, .05]
                                 if label == "spam" else
                                 [.05, .05, .1, .2, .2, .1, .1, .1, .1])) for label in LABELS],
    "label": LABELS, "day": RNG.permutation(200)})


@pytest.mark.parametrize("estimator", [
    MultinomialNB(), BernoulliNB(l=0.5), MultinomialNB(l="auto"), NBLinear()], ids=repr)
@pytest.mark.parametrize(("delay", "feedback"), [(0, 1.0), (30, 1.0), (0, 0.5)])
def test_each_block_is_judged_by_what_was_learned_before(
    estimator: Any, delay: int, feedback: float
) -> None:
    model = TextClassifier(estimator)
    result = validate_online(model, FRAME, block=40, delay=delay, feedback=feedback, seed=3)
    learned = np.random.default_rng(3).random(200) < feedback
    begin = 40 + delay
    rows = []
    for start in range(begin, 200, 40):
        known = FRAME[:start - delay].filter(pl.Series(learned[:start - delay]))
        held = held_out(TextClassifier(estimator).fit(known), FRAME[start:start + 40])
        rows.append(held.scores)
    np.testing.assert_array_equal(result.held.scores, np.concatenate(rows))
    assert len(result.held) == 200 - begin
    odds = result.held.log_odds("spam")
    spam = LABELS[begin:] == "spam"
    assert result.roca == pytest.approx(100 * (1 - roc_auc_score(spam, odds)), abs=1e-9)
    assert result.roca_interval[0] <= result.roca <= result.roca_interval[1]
    assert result.false_positives == pytest.approx(100 * (odds[~spam] > 0).mean())
    assert result.curve["documents"].to_list()[-1] == 200 - begin
    assert result.curve["learned"].is_sorted()


def test_each_model_chooses_its_threshold() -> None:
    model, frame = TextClassifier(NBLinear()), pl.concat([FRAME] * 3)
    plain = validate_online(model, frame, block=100)
    result = validate_online(model, frame, block=100, max_false_positive_rate=0.2)
    assert "own threshold" in result.held.method
    # The first models have too few documents.
    np.testing.assert_array_equal(result.held.scores[:100], plain.held.scores[:100])
    for block in (3, 4):
        fitted = fit(model.text_settings(), frame[:100 * (block + 1)], left_out=True)
        decided = decide_by_fit(replace(fitted, calibration=None), "spam", 0.2)
        assert decided.decision is not None
        here = result.held.folds == block
        np.testing.assert_allclose(
            result.held.log_odds("spam")[here],
            plain.held.log_odds("spam")[here] - decided.decision.thresholds["spam"], rtol=1e-12)
        spam = result.held.log_odds("spam")[here] >= 0
        texts = frame[100 * (block + 1):100 * (block + 2)]
        answers = predict(decide_by_fit(fitted, "spam", 0.2), texts)
        assert (answers["decision"] == "spam").to_list() == spam.tolist()


@pytest.mark.parametrize("model", [TextClassifier(), TextClassifier("auto")])
def test_a_threshold_needs_scores_by_models_of_others(model: TextClassifier) -> None:
    with pytest.raises(ParameterError, match=r"max_false_positive_rate .*choose_threshold"):
        validate_online(model, FRAME, max_false_positive_rate=0.1)


def test_rows_come_in_order_of_time() -> None:
    in_order = FRAME.sort("day")
    first = validate_online(TextClassifier(), FRAME.lazy(), time="day", block=20)
    second = validate_online(TextClassifier(), in_order, block=20)
    np.testing.assert_array_equal(first.held.scores, second.held.scores)


def test_the_share_that_is_missed() -> None:
    odds = np.array([5.0, 4.0, 3.0, 2.0, *range(-2000, 0)])
    spam = np.array([True, False, True, True, *[False] * 2000])
    # Two of 2,001 may be wrong: the threshold is the third highest of ham, -2.
    assert _miss_rate(odds, spam) == 0.0
    # With few documents none may be: spam below the highest ham is missed.
    assert _miss_rate(odds[:4], spam[:4]) == pytest.approx(200 / 3)


def test_the_first_block_has_every_class() -> None:
    ham = FRAME.filter(pl.col("label") == "ham")
    late = pl.concat([ham[:50], FRAME.filter(pl.col("label") == "spam"), ham[50:]])
    result = validate_online(TextClassifier(), late, block=10)
    assert len(result.held) == late.height - 60


@pytest.mark.parametrize(("settings", "error", "match"), [
    ({"block": 0}, ParameterError, "block"), ({"delay": -1}, ParameterError, "delay"),
    ({"feedback": 0.0}, ParameterError, "feedback"), ({"positive": "eggs"}, ParameterError, "eggs"),
    ({"block": 200}, DataError, "all 200 documents"), ({"delay": 190}, DataError, "shorter delay")])
def test_bad_settings(settings: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        validate_online(TextClassifier(), FRAME, **settings)


def test_bad_rows() -> None:
    with pytest.raises(DataError, match="null"):
        validate_online(TextClassifier(), FRAME.with_columns(
            pl.when(pl.col("day") == 3).then(None).otherwise(pl.col("label")).alias("label")))
    with pytest.raises(DataError, match="null"):
        validate_online(TextClassifier(), FRAME.with_columns(
            pl.when(pl.col("day") == 3).then(None).otherwise(pl.col("day")).alias("day")),
            time="day")
    with pytest.raises(DataError):
        validate_online(TextClassifier(), FRAME[:0])


def test_a_memory_limit_prunes_the_rows_before_a_block_once() -> None:
    rows = FRAME.with_columns(text=pl.Series([
        f"{text} " + " ".join(f"rare{row:03}{n:03}" for n in range(400))
        for row, text in enumerate(FRAME["text"])]))
    model = TextClassifier(memory_limit="1M")
    result = validate_online(model, rows, block=50)
    known = model.fit(rows[:150])
    assert known.pruned_ is not None
    np.testing.assert_array_equal(result.held.scores[-50:], held_out(known, rows[150:]).scores)
