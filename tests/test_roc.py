"""ROC and rates: worked examples, ties, and scikit-learn."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from textnb import DataError, MultinomialNB, ParameterError, TextClassifier, evaluate, roc
from textnb.evaluation.evaluate import evaluate_roc
from textnb.evaluation.roc import Rates

MAIL = pl.DataFrame({
    "text": ["cheap pills", "cheap cheap offer", "lunch offer", "lunch today", "", "pills today"],
    "label": ["spam", "spam", "ham", "ham", "ham", "spam"]})


def test_a_worked_table_of_counts() -> None:
    rates = Rates(true_positives=7, false_positives=7, false_negatives=3, true_negatives=13)
    measured = (rates.precision, rates.negative_predictive_value, rates.sensitivity,
                rates.specificity, rates.false_negative_rate, rates.false_positive_rate)
    assert measured == (0.5, 0.8125, 0.7, 0.65, 0.3, 0.35)


def test_a_rate_without_rows_is_null() -> None:
    assert Rates(0, 0, 0, 3).precision is None
    assert Rates(0, 0, 0, 3).sensitivity is None
    assert Rates(0, 0, 0, 3).specificity == 1.0


def test_five_points_by_hand() -> None:
    """Positives at ranks 1, 2, 4 and negatives at 3, 5: five of six pairs are in order."""
    result = roc([True, True, False, True, False], [0.9, 0.8, 0.7, 0.6, 0.5])
    assert result.auc == pytest.approx(5 / 6)
    assert result.points["threshold"].to_list() == [np.inf, 0.9, 0.8, 0.7, 0.6, 0.5]
    assert result.points["false_positive_rate"].to_list() == [0, 0, 0, 0.5, 0.5, 1]


def test_tied_rows_move_together_and_count_half() -> None:
    result = roc([True, False, True, False], [1.0, 1.0, 1.0, 0.0])
    assert result.auc == pytest.approx(0.75)
    assert result.points.height == 3


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf])),
                min_size=2, max_size=40))
def test_the_area_is_the_share_of_ordered_pairs(rows: list[tuple[bool, float]]) -> None:
    truth, score = [row[0] for row in rows], [row[1] for row in rows]
    if all(truth) or not any(truth):
        with pytest.raises(DataError, match="positive and negative rows"):
            roc(truth, score)
        return
    pairs = [(a > b) + 0.5 * (a == b)
             for is_a, a in rows if is_a for is_b, b in rows if not is_b]
    assert roc(truth, score).auc == pytest.approx(sum(pairs) / len(pairs))


def test_a_saturated_model_is_ranked_by_its_log_odds() -> None:
    model = TextClassifier(MultinomialNB(l=1e-9)).fit(MAIL)
    odds = model.predict_joint_log_proba(MAIL)
    expected = roc_auc_score(MAIL["label"] == "spam", odds[:, 1] - odds[:, 0])
    assert evaluate_roc(model, MAIL, "spam").auc == pytest.approx(expected)
    assert evaluate_roc(model, MAIL.lazy(), "ham").auc == pytest.approx(expected)


def test_rates_of_a_class_are_those_of_the_confusion_matrix() -> None:
    result = evaluate(TextClassifier().fit(MAIL), MAIL)
    rates = result.rates("spam")
    predicted = TextClassifier().fit(MAIL).predict(MAIL)["predicted"]
    assert rates.true_positives == ((predicted == "spam") & (MAIL["label"] == "spam")).sum()
    assert rates.accuracy == pytest.approx(result.accuracy)
    with pytest.raises(ParameterError, match="did you mean 'spam'"):
        result.rates("spma")
    with pytest.raises(ParameterError, match="did you mean 'spam'"):
        evaluate_roc(TextClassifier().fit(MAIL), MAIL, "spma")


def test_on_the_command_line(tmp_path: Path) -> None:
    MAIL.write_parquet(tmp_path / "mail.parquet")
    TextClassifier().fit(MAIL).save(tmp_path / "mail.textnb")
    ran = subprocess.run(
        [sys.executable, "-c", "from textnb.cli.entry import main; main()", "test",
         str(tmp_path / "mail.textnb"), str(tmp_path / "mail.parquet"), "--positive", "spam",
         "--format", "json"], capture_output=True, text=True, check=True)
    answer = json.loads(ran.stdout)
    assert answer["rates"]["true_positives"] + answer["rates"]["false_negatives"] == 3
    assert 0.5 < answer["roc_auc"] <= 1
