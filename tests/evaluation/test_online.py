"""Documents judged in order: each block by a model of those before it, and the measures of TREC."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from tests.classifier.topics import NEWS as LISTS
from textnb import BernoulliNB, MultinomialNB, NBLinear, TextClassifier, held_out, validate_online
from textnb.evaluation.decisions import with_spam_threshold
from textnb.evaluation.online import _miss_rate
from textnb.learning.fitting import fit
from textnb.scoring.texts import predict

RNG = np.random.default_rng(7)
WORDS = np.array(["cheap", "pills", "prize", "noon", "minutes", "you", "me", "and", "lunch"])
LABELS = np.where(RNG.random(200) < 0.4, "spam", "ham")
SHARES = {"spam": [.2, .2, .1, .1, .1, .1, .1, .05, .05],
          "ham": [.05, .05, .1, .2, .2, .1, .1, .1, .1]}
FRAME = pl.DataFrame({"text": [" ".join(RNG.choice(WORDS, 6, p=SHARES[x])) for x in LABELS],
                      "label": LABELS, "day": RNG.permutation(200)})


def learned_and_judged(rows, block, delay, feedback, seed):
    """What each block's model has learned, and the rows of that block."""
    learned = pl.Series(np.random.default_rng(seed).random(rows.height) < feedback)
    for start in range(block + delay, rows.height, block):
        yield rows[:start - delay].filter(learned[:start - delay]), rows[start:start + block]


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("rows", "model"), [
    *((FRAME, TextClassifier(estimator)) for estimator in (
        MultinomialNB(), BernoulliNB(l=0.5), MultinomialNB(l="auto"), NBLinear())),
    (LISTS, TextClassifier(MultinomialNB(l=0.5))), (LISTS, TextClassifier(NBLinear())),
    (LISTS, TextClassifier(BernoulliNB(), min_df=2))], ids=str)
@pytest.mark.parametrize(("delay", "feedback"), [(0, 1.0), (30, 1.0), (0, 0.5)])
def test_each_block_is_judged_by_what_was_learned_before(rows, model, delay, feedback):
    result = validate_online(model, rows, block=40, delay=delay, feedback=feedback, seed=3)
    held = result if rows is LISTS else result.held
    blocks = list(learned_and_judged(rows, 40, delay, feedback, 3))
    judged = [held_out(model.fit(known), block) for known, block in blocks]
    np.testing.assert_array_equal(held.scores, np.concatenate([each.scores for each in judged]))
    np.testing.assert_array_equal(held.actual, np.concatenate([each.actual for each in judged]))
    assert np.bincount(held.folds).tolist() == [block.height for _, block in blocks]


def test_measures_are_those_of_trec():
    result = validate_online(TextClassifier(), FRAME, block=40, delay=30)
    odds, spam = result.held.log_odds("spam"), LABELS[70:] == "spam"
    assert result.roca == pytest.approx(100 * (1 - roc_auc_score(spam, odds)), abs=1e-9)
    assert result.roca_interval[0] <= result.roca <= result.roca_interval[1]
    assert result.false_positives == pytest.approx(100 * (odds[~spam] > 0).mean())
    assert result.curve["documents"].to_list()[-1] == 130
    assert result.curve["learned"].is_sorted()


def test_each_model_chooses_its_threshold():
    model, frame = TextClassifier(NBLinear()), pl.concat([FRAME] * 3)
    plain = validate_online(model, frame, block=100)
    result = validate_online(
        TextClassifier("nblinear"), frame, block=100, max_false_positive_rate=0.2)
    assert "own threshold" in result.held.method
    # The first models have too few documents.
    np.testing.assert_array_equal(result.held.scores[:100], plain.held.scores[:100])
    for block in (3, 4):
        fitted = fit(model.text_settings(), frame[:100 * (block + 1)], left_out=True)
        decided = with_spam_threshold(replace(fitted, calibration=None), "spam", 0.2)
        here = result.held.folds == block
        np.testing.assert_allclose(
            result.held.log_odds("spam")[here],
            plain.held.log_odds("spam")[here] - decided.decision.thresholds["spam"], rtol=1e-12)
        spam = result.held.log_odds("spam")[here] >= 0
        texts = frame[100 * (block + 1):100 * (block + 2)]
        answers = predict(with_spam_threshold(fitted, "spam", 0.2), texts)
        assert (answers["decision"] == "spam").to_list() == spam.tolist()


def test_rows_come_in_order_of_time():
    first = validate_online(TextClassifier(), FRAME.lazy(), time="day", block=20)
    second = validate_online(TextClassifier(), FRAME.sort("day"), block=20)
    np.testing.assert_array_equal(first.held.scores, second.held.scores)
    dated = LISTS.with_columns(date=pl.date(2024, 1, 1) + pl.duration(days=pl.int_range(pl.len())))
    first = validate_online(TextClassifier(), dated.reverse(), time="date", block=20)
    np.testing.assert_array_equal(
        first.scores, validate_online(TextClassifier(), dated, block=20).scores)


def test_the_share_that_is_missed_by_hand():
    odds = np.array([5.0, 4.0, 3.0, 2.0, *range(-2000, 0)])
    spam = np.array([True, False, True, True, *[False] * 2000])
    # Two of 2,001 may be wrong: the threshold is the third highest of ham, -2.
    assert _miss_rate(odds, spam) == 0.0
    # With few documents none may be: spam below the highest ham is missed.
    assert _miss_rate(odds[:4], spam[:4]) == pytest.approx(200 / 3)


def test_the_first_block_has_every_class():
    ham = FRAME.filter(pl.col("label") == "ham")
    late = pl.concat([ham[:50], FRAME.filter(pl.col("label") == "spam"), ham[50:]])
    assert len(validate_online(TextClassifier(), late, block=10).held) == late.height - 60


def test_a_memory_limit_prunes_the_rows_before_a_block_once():
    rows = FRAME.with_columns(text=pl.Series([
        f"{text} " + " ".join(f"rare{row:03}{n:03}" for n in range(400))
        for row, text in enumerate(FRAME["text"])]))
    model = TextClassifier(memory_limit="1M")
    result = validate_online(model, rows, block=50)
    known = model.fit(rows[:150])
    assert known.pruned_ is not None
    np.testing.assert_array_equal(result.held.scores[-50:], held_out(known, rows[150:]).scores)


# Lists of labels


def test_a_label_that_is_still_unheard_of_has_no_score():
    late = LISTS.with_columns(label=pl.when(pl.int_range(pl.len()) < 70).then(
        pl.col("label").list.set_difference(pl.lit(["wheat"]))).otherwise("label"))
    held = validate_online(TextClassifier(), late, block=50)
    assert np.isneginf(held.scores[:50, 4]).all()
    assert np.isfinite(held.scores[50:]).all()
    assert held.method == "online, blocks of 50"


def test_the_first_block_reaches_the_first_label():
    rows = LISTS.with_columns(label=pl.when(pl.int_range(pl.len()) < 30).then(
        pl.lit([], pl.List(pl.String))).otherwise("label"))
    first = 30 + int((LISTS["label"][30:].list.len() > 0).arg_max())
    assert len(validate_online(TextClassifier(), rows, block=10)) == 150 - (first // 10 + 1) * 10
