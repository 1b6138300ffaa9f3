"""Thresholds that keep what they promise, and the bounds that they stand on."""

from __future__ import annotations

import json
import math
import warnings
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import DataError, Decision, HeldOut, MultinomialNB, ParameterError, TextClassifier
from textnb.bayes.decision import UNSURE, log_odds
from textnb.bayes.forms import Floats
from textnb.bayes.labels import Link
from textnb.evaluation.binomial import errors_allowed, lower_bound, trials_needed, upper_bound
from textnb.evaluation.goal import Goal

Corpora = Callable[[str], pl.LazyFrame]


def two(spam: Any, ham: Any) -> HeldOut:
    """Documents of two classes by their log-odds of spam."""
    odds = np.concatenate([np.asarray(spam, dtype=np.float64), np.asarray(ham, dtype=np.float64)])
    actual = np.repeat([1, 0], [len(spam), len(ham)]).astype(np.int64)
    return HeldOut(np.array(["ham", "spam"], dtype=object),
                   np.column_stack([np.zeros(len(odds)), odds]), actual,
                   np.ones(len(odds)), "by hand")


def several(probabilities: Any, actual: Any) -> HeldOut:
    """Documents of several classes by their probabilities."""
    table = np.asarray(probabilities, dtype=np.float64)
    names = np.array(list("abcdefgh"[:table.shape[1]]), dtype=object)
    with np.errstate(divide="ignore"):
        scores: Floats = np.log(table)
    return HeldOut(names, scores, np.asarray(actual, dtype=np.int64), np.ones(len(table)),
                   "by hand")


def answers(decision: Decision, documents: HeldOut) -> list[Any]:
    labels = documents.classes.tolist()
    return [None if k == UNSURE else labels[k]
            for k in decision.decide(log_odds(documents.scores), labels)]


def tail(events: int, trials: int, rate: Fraction) -> Fraction:
    """P(Binomial(trials, rate) <= events), exactly."""
    return sum((math.comb(trials, k) * rate**k * (1 - rate)**(trials - k)
                for k in range(events + 1)), Fraction(0))


# Bounds


@pytest.mark.parametrize(("rate", "confidence", "expected"), [
    (0.001, 0.95, 2995),  # log 0.05 / log 0.999 = 2994.2
    (0.01, 0.95, 299), (0.05, 0.95, 59), (0.1, 0.9, 22), (0.5, 0.5, 1)])
def test_how_many_errorless_documents_a_rate_takes(
    rate: float, confidence: float, expected: int
) -> None:
    assert trials_needed(rate, confidence) == expected
    assert errors_allowed(expected, rate, confidence) == 0
    assert errors_allowed(expected - 1, rate, confidence) == -1


@pytest.mark.parametrize("trials", [1, 7, 60, 200])
@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 20), Fraction(1, 2)])
def test_errors_allowed_against_exact_fractions(trials: int, rate: Fraction) -> None:
    level = Fraction(1, 20)
    expected = max((k for k in range(trials) if tail(k, trials, rate) <= level), default=-1)
    assert errors_allowed(trials, float(rate), 0.95) == expected


def test_bounds_against_exact_fractions() -> None:
    for events, trials in ((0, 10), (3, 10), (9, 10), (17, 300)):
        high = Fraction(upper_bound(events, trials, 0.95))
        assert float(tail(events, trials, high)) == pytest.approx(0.05, abs=1e-9)
        low = Fraction(lower_bound(trials - events, trials, 0.95))
        assert float(1 - tail(trials - events - 1, trials, low)) == pytest.approx(0.05, abs=1e-9)
    assert (upper_bound(4, 4, 0.9), lower_bound(0, 4, 0.9)) == (1.0, 0.0)


# One class against the rest, with a guarantee


def test_the_threshold_is_above_the_last_that_is_left_out() -> None:
    # 100 of ham, 5 % at 95 %: P(Bin(100, .05) <= 1) = .037, so that one error is allowed.
    ham = np.arange(100.0) - 90  # -90 ... 9
    spam = np.array([20.0, 8.9, 8.0, 7.9])
    decision = textnb.choose_threshold(two(spam, ham), "spam", max_false_positive_rate=0.05)
    evidence = decision.evidence
    assert (evidence["false_positives_allowed"], evidence["false_positives"]) == (1, 1)
    assert 8.0 < decision.thresholds["spam"] < 8.9
    assert evidence["true_positives"] == 2
    assert evidence["false_positive_rate_bound"] == pytest.approx(upper_bound(1, 100, 0.95))
    assert evidence["share_caught_interval"] == [lower_bound(2, 4, 0.975),
                                                 upper_bound(2, 4, 0.975)]
    assert evidence["coverage"] == 1.0
    assert decision.positive == "spam"


def test_two_classes_have_one_cut() -> None:
    decision = textnb.choose_threshold(
        two([9.0, 1.0], np.linspace(-5, 5, 400)), "spam", max_false_positive_rate=0.05)
    cut = decision.thresholds["spam"]
    below, at = float(np.nextafter(cut, -np.inf)), cut
    assert answers(decision, two([below, at], [])) == ["ham", "spam"]
    # Also where spam is answered although ham is more probable.
    low = Decision({"spam": -1.0, "ham": float(np.nextafter(1.0, np.inf))})
    assert answers(low, two([-0.5, -1.0, -1.1], [])) == ["spam", "spam", "ham"]
    # A bound on errors alone does not ask for that: 0 is low enough.
    loose = textnb.choose_threshold(
        two([9.0, -0.5], np.linspace(-20, -1, 400)), "spam", max_false_positive_rate=0.05)
    assert loose.thresholds["spam"] == 0.0
    assert answers(loose, two([0.0, -0.1], [])) == ["spam", "ham"]
    # One on misses may.
    both = textnb.choose_threshold(
        two(np.linspace(-2, 9, 400), np.linspace(-20, -3, 400)), "spam",
        max_false_positive_rate=0.05, max_false_negative_rate=0.01)
    assert both.thresholds["spam"] < -3


def test_equal_scores_are_never_split() -> None:
    # Two errors are allowed, but the three highest are equal: all of them are left out.
    ham = np.concatenate([np.full(3, 4.0), np.linspace(-9, 0, 147)])
    decision = textnb.choose_threshold(two([4.0, 4.1], ham), "spam", max_false_positive_rate=0.05)
    assert decision.evidence["false_positives_allowed"] == 2
    assert decision.evidence["false_positives"] == 0
    assert 4.0 < decision.thresholds["spam"] < 4.1
    assert decision.evidence["true_positives"] == 1


def test_too_few_documents_are_refused_by_name_and_number() -> None:
    with pytest.raises(DataError, match="takes 2,995 of them, if none is; there are 1,000, so 1,995"
                                        " more are needed"):
        textnb.choose_threshold(two([1.0], np.zeros(1000)), "spam", max_false_positive_rate=0.001)
    with pytest.raises(DataError, match="of the documents of 'spam' are answered wrongly takes 59"):
        textnb.choose_threshold(two(np.ones(58), np.zeros(59)), "spam",
                                max_false_positive_rate=0.05, max_false_negative_rate=0.05)


def test_scores_without_bound() -> None:
    ham = np.concatenate([np.full(99, -np.inf), [3.0]])
    decision = textnb.choose_threshold(
        two([-np.inf, 2.0, np.inf], ham), "spam", max_false_positive_rate=0.05)
    # One error is allowed, and the second highest is -inf: whatever is finite passes.
    assert decision.thresholds["spam"] <= 2.0
    assert decision.evidence["true_positives"] == 2
    certain = np.concatenate([np.full(3, np.inf), np.zeros(97)])
    with pytest.raises(DataError, match="more than 1 of 100 documents that are not 'spam' are c"):
        textnb.choose_threshold(two([1.0], certain), "spam", max_false_positive_rate=0.05)
    nothing = textnb.choose_threshold(two([], np.full(59, -np.inf)), "spam",
                                      max_false_positive_rate=0.05)
    assert nothing.evidence["false_positives"] == 0
    assert nothing.evidence["share_caught"] is None


def test_impossible_rows_are_unsure_and_no_errors() -> None:
    documents = two([5.0], np.linspace(-3, 0, 100))
    scores = np.concatenate([documents.scores, np.full((10, 2), -np.inf)])
    more = HeldOut(documents.classes, scores, np.append(documents.actual, np.zeros(10, np.int64)),
                   np.ones(111), "by hand")
    decision = textnb.choose_threshold(more, "spam", max_false_positive_rate=0.05)
    assert (decision.evidence["negatives"], decision.evidence["unsure"]) == (110, 10)


def test_unknown_labels_are_not_the_class() -> None:
    documents = two([5.0, 6.0], np.linspace(-3, 0, 100))
    actual = documents.actual.copy()
    actual[0] = -1
    odd = HeldOut(documents.classes, documents.scores, actual, documents.lengths, "by hand")
    evidence = textnb.choose_threshold(odd, "spam", max_false_positive_rate=0.05).evidence
    assert (evidence["negatives"], evidence["positives"], evidence["unknown_labels"]) == (101, 1, 1)
    assert evidence["false_positives"] == 1


def test_a_band_where_both_rates_cannot_be_kept_by_one_cut() -> None:
    spam, ham = np.linspace(-2, 10, 200), np.linspace(-10, 2, 200)
    decision = textnb.choose_threshold(two(spam, ham), "spam", max_false_positive_rate=0.05,
                                       max_false_negative_rate=0.05)
    evidence = decision.evidence
    assert errors_allowed(200, 0.05, 0.95) == evidence["false_positives"] == 4
    assert evidence["false_negatives"] == 4
    found = answers(decision, two(spam, ham))
    odds = np.concatenate([spam, ham])
    unsure = [value for value, answer in zip(odds, found, strict=True) if answer is None]
    assert len(unsure) == evidence["unsure"] > 0
    assert max(abs(min(unsure)), max(unsure)) < 2
    assert evidence["coverage"] == pytest.approx(1 - len(unsure) / 400)


def test_no_band_where_one_cut_keeps_both() -> None:
    apart = two(np.linspace(5, 9, 100), np.linspace(-9, -5, 100))
    decision = textnb.choose_threshold(apart, "spam", max_false_positive_rate=0.05,
                                       max_false_negative_rate=0.05)
    odds = np.linspace(-10, 10, 401)
    assert None not in answers(decision, two(odds, []))
    assert decision.evidence["false_positives"] <= 1


def test_several_classes() -> None:
    # b is answered where its log-odds reach the threshold and it is the most probable.
    rng = np.random.default_rng(5)
    table = rng.dirichlet([1, 1, 1], 3000)
    documents = several(table, [rng.choice(3, p=row) for row in table])
    decision = textnb.choose_threshold(documents, "b", max_false_positive_rate=0.02)
    assert decision.thresholds["a"] == decision.thresholds["c"] == -np.inf
    found = np.array(answers(decision, documents))
    cut = decision.thresholds["b"]
    odds = np.log(table[:, 1] / (1 - table[:, 1]))
    expected = np.where(odds >= cut, "b", np.where(table[:, 0] > table[:, 2], "a", "c"))
    assert cut > 0
    assert (found == expected).all()
    wrong = int(((found == "b") & (documents.actual != 1)).sum())
    assert wrong == decision.evidence["false_positives_allowed"]


def test_a_loose_rate_of_several_classes_stops_at_the_most_probable() -> None:
    documents = several([[0.4, 0.3, 0.3]] * 5 + [[0.2, 0.45, 0.35]] * 100, [0] * 5 + [1] * 100)
    decision = textnb.choose_threshold(documents, "a", max_false_positive_rate=0.5)
    assert answers(decision, documents) == ["a"] * 5 + ["b"] * 100


def test_a_band_of_several_classes() -> None:
    rng = np.random.default_rng(6)
    table = rng.dirichlet([0.3, 0.3, 0.3], 4000)
    documents = several(table, [rng.choice(3, p=row) for row in table])
    evidence = textnb.choose_threshold(documents, "b", max_false_positive_rate=0.05,
                                       max_false_negative_rate=0.05).evidence
    assert 0 < evidence["false_positives"] <= evidence["false_positives_allowed"]
    assert 0 < evidence["false_negatives"] <= evidence["false_negatives_allowed"]
    assert 0 < evidence["unsure"] < 2000


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n", [59, 100, 311])
def test_the_guarantee_holds_as_often_as_it_says(n: int, tied: bool) -> None:
    """Scores are uniform, so that the share above a threshold is known."""
    rng = np.random.default_rng(n)
    runs, rate, failed = 1000, 0.05, 0
    for _ in range(runs):
        ham = rng.random(n)
        if tied:
            ham = np.floor(ham * 50) / 50
        decision = textnb.choose_threshold(two([2.0], ham), "spam", max_false_positive_rate=rate)
        cut = decision.thresholds["spam"]
        # Ties are at k/50: those at or above the cut are the ones with k >= 50 cut.
        share = max(0.0, 1 - (math.ceil(cut * 50) / 50 if tied else cut))
        failed += share > rate + 1e-12
    exact = float(tail(errors_allowed(n, rate, 0.95), n, Fraction(1, 20)))
    assert exact <= 0.05
    error = 4 * math.sqrt(exact * (1 - exact) / runs)
    if tied:
        assert failed / runs <= exact + error
    else:
        # Exact, and not merely safe.
        assert failed / runs == pytest.approx(exact, abs=error)


# Costs


def test_costs_by_probabilities() -> None:
    documents = two([3.0, 1.0], [-1.0, 2.0])
    decision = textnb.choose_threshold(documents, "spam", costs=(10, 1), method="theoretical")
    assert decision.thresholds["spam"] == math.log(10)
    assert decision.evidence["cost"] == 1.0
    assert decision.evidence["rule"] == "theoretical"


def test_costs_by_what_was_seen_against_every_cut() -> None:
    rng = np.random.default_rng(2)
    spam, ham = np.round(rng.normal(1, 1, 60), 1), np.round(rng.normal(-1, 1, 90), 1)
    documents = two(spam, ham)
    for costs in ((1, 1), (10, 1), (1, 10), (1000, 1), (1, 1000)):
        evidence = textnb.choose_threshold(documents, "spam", costs=costs).evidence
        cuts = np.append(np.unique(documents.scores[:, 1]), np.inf)
        every = [costs[0] * int((ham >= cut).sum()) + costs[1] * int((spam < cut).sum())
                 for cut in cuts]
        assert evidence["cost"] == min(every)
        best = max(cut for cut, cost in zip(cuts, every, strict=True) if cost == min(every))
        assert evidence["false_positives"] == int((ham >= best).sum())


def test_a_class_that_costs_too_much_is_never_given() -> None:
    documents = two([1.0, np.inf], [np.inf, np.inf, 0.0])
    decision = textnb.choose_threshold(documents, "spam", costs=(5, 1))
    assert decision.thresholds == {"ham": -np.inf, "spam": np.inf}
    assert answers(decision, documents) == ["ham"] * 5
    assert Decision.from_dict(json.loads(json.dumps(decision.to_dict()))) == decision


# All classes


def test_class_thresholds_by_hand() -> None:
    # a: right wherever it is given; b: right half of the time.
    rows = [[0.9, 0.1]] * 100 + [[0.2, 0.8]] * 100
    documents = several(rows, [0] * 100 + [1, 0] * 50)
    with pytest.warns(UserWarning, match="never given, as a precision of 0.9 can't be shown: 'b'"):
        decision = textnb.choose_class_thresholds(documents, min_precision=0.9)
    assert decision.thresholds["b"] == np.inf
    assert answers(decision, documents) == ["a"] * 100 + [None] * 100
    evidence = decision.evidence
    assert (evidence["coverage"], evidence["precision"]) == (0.5, 1.0)
    assert [(entry["answered"], entry["correct"]) for entry in evidence["classes"]] == [
        (100, 100), (0, 0)]
    assert evidence["classes"][0]["precision_bound"] >= 0.9


def test_a_class_is_cut_where_its_errors_begin() -> None:
    # Errors are among the lower half: only the upper half can be shown to be right.
    odds = np.linspace(8, 0.5, 400)
    actual = np.where((np.arange(400) >= 200) & (np.arange(400) % 3 == 0), 0, 1)
    documents = HeldOut(np.array(["ham", "spam"], dtype=object),
                        np.column_stack([np.zeros(400), odds]), actual.astype(np.int64),
                        np.ones(400), "by hand")
    with pytest.warns(UserWarning, match="'ham'"):
        decision = textnb.choose_class_thresholds(documents, min_precision=0.95)
    entry = decision.evidence["classes"][1]
    assert entry["starts"] == [80, 160, 320]
    assert 180 <= entry["answered"] <= 210
    given = [answer == "spam" for answer in answers(decision, documents)]
    assert sum(given) == entry["answered"]


def test_the_precision_holds_as_often_as_it_says() -> None:
    """The chance of being right is known for every score, hence the true precision above a cut."""
    rng = np.random.default_rng(11)
    runs, failed, answered = 300, 0, 0
    for _ in range(runs):
        p = np.where(rng.random(400) < 0.6, 0.97, 0.9) + rng.uniform(-0.02, 0.02, 400)
        odds = np.log(p / (1 - p))
        actual = (rng.random(400) < p).astype(np.int64)
        documents = HeldOut(np.array(["ham", "spam"], dtype=object),
                            np.column_stack([np.zeros(400), odds]), actual, np.ones(400), "by hand")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decision = textnb.choose_class_thresholds(documents, min_precision=0.95)
        cut = decision.thresholds["spam"]
        if cut < np.inf:
            answered += 1
            failed += float(p[odds >= cut].mean()) < 0.95
    assert answered > runs / 10
    assert failed > 0
    assert failed / runs <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / runs)


def test_unknown_labels_are_errors_of_any_class() -> None:
    documents = several([[0.9, 0.1]] * 100, [-1] * 100)
    with pytest.warns(UserWarning, match="'a', 'b'"):
        decision = textnb.choose_class_thresholds(documents, min_precision=0.5)
    assert decision.evidence["answered"] == 0
    assert decision.evidence["unknown_labels"] == 100


# What is asked for


@pytest.mark.parametrize(("settings", "told"), [
    ({}, "give one of max_false_positive_rate and costs; got none"),
    ({"max_false_negative_rate": 0.1}, "give one of max_false_positive_rate and costs; got none"),
    ({"max_false_positive_rate": 0.1, "costs": (1, 1)}, "got max_false_positive_rate and costs"),
    ({"max_false_negative_rate": 0.1, "costs": (1, 1)}, "max_false_negative_rate goes with"),
    ({"max_false_positive_rate": 0.1, "method": "empirical"}, "goes with costs"),
    ({"max_false_positive_rate": 0.0}, "max_false_positive_rate must be a number above 0"),
    ({"max_false_positive_rate": "a"}, "max_false_positive_rate must be a number above 0"),
    ({"max_false_positive_rate": 0.5, "confidence": 1.0}, "confidence must be a number above 0"),
    ({"max_false_positive_rate": 0.5, "max_false_negative_rate": 2}, "max_false_negative_rate"),
    ({"costs": (1, 0)}, "costs must be two numbers above 0"),
    ({"costs": 3}, "costs must be two numbers above 0"),
    ({"costs": (1, 1), "confidence": 2}, "confidence must be a number above 0"),
    ({"costs": (1, 1), "method": "both"}, "method: unknown value 'both'")])
def test_settings_are_checked(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        textnb.choose_threshold(two(np.ones(9), np.zeros(9)), "spam", **settings)


def test_classes_are_checked() -> None:
    documents = two([1.0], [0.0])
    for method in (HeldOut.operating_points, HeldOut.roca):
        with pytest.raises(ParameterError, match="unknown value 'smap' - did you mean 'spam'"):
            method(documents, "smap")
        with pytest.raises(DataError, match="all are others"):
            method(two([], [0.0, 1.0]), "spam")
    with pytest.raises(ParameterError, match="did you mean 'spam'"):
        textnb.choose_threshold(documents, "smap", costs=(1, 1))
    alone = HeldOut(np.array(["a"], dtype=object), np.zeros((2, 1)), np.zeros(2, np.int64),
                    np.ones(2), "by hand")
    with pytest.raises(ParameterError, match="one class"):
        textnb.choose_threshold(alone, "a", costs=(1, 1))
    with pytest.raises(ParameterError, match="one class"):
        textnb.choose_class_thresholds(alone, min_precision=0.5)
    with pytest.raises(ParameterError, match="min_precision must be a number above 0"):
        textnb.choose_class_thresholds(documents, min_precision=1)


@pytest.mark.parametrize(("goal", "check", "refused"), [
    ({"costs": (1, 1), "min_precision": 0.9}, "class", "min_precision is for thresholds of every"),
    ({"costs": (1, 1), "by": "f1"}, "class", "by is for thresholds of every class"),
    ({"costs": (1, 1), "at_least": 1}, "class", "at_least is for thresholds of every class"),
    ({"min_precision": 0.9, "max_false_positive_rate": 0.1}, "classes", "is for the threshold of"),
    ({"min_precision": 0.9, "at_most": 2}, "classes", "at_most is for lists of labels"),
    ({"by": "f1", "max_false_negative_rate": 0.1}, "labels", "is for the threshold of one class"),
    ({"by": "f1", "costs": (1, 1)}, "labels", "give one of by, min_precision and costs; got by"),
    ({}, "labels", "got none")])
def test_a_goal_refuses_what_it_is_not_for(goal: dict[str, Any], check: str, refused: str) -> None:
    link: Link = "sigmoid" if check == "labels" else "softmax"
    with pytest.raises(ParameterError, match=refused):
        Goal(**goal).check(["ham", "spam"], link, "spam" if check == "class" else None)


# Tables


def test_held_out_scores_are_measured_with_a_decision() -> None:
    held = two([3.0, 1.0], [1.5, 0.0, -np.inf])
    assert held.evaluate().decided is None
    decided = held.evaluate(Decision({"ham": 0.0, "spam": 2.0}, positive="spam")).decided
    assert decided == {"answered": 3, "unsure": 2, "right": 3, "false_positives": 0,
                       "true_positives": 1, "missed": 1}


def test_the_curve_of_a_class() -> None:
    held = two([2.0, 0.5], [1.0, 0.5])
    assert held.roc("spam").auc == 1 - held.roca("spam") / 100
    with pytest.raises(ParameterError, match="did you mean 'spam'"):
        held.roc("smap")


def test_operating_points_by_hand() -> None:
    points = two([3.0, 1.0], [1.0, 0.0, -np.inf]).operating_points("spam")
    assert points.drop("false_positive_rate_bound").rows() == [
        (3.0, 0, 1, 0.0, 0.5), (1.0, 1, 2, 1 / 3, 1.0), (0.0, 2, 2, 2 / 3, 1.0),
        (-np.inf, 3, 2, 1.0, 1.0)]
    assert points["false_positive_rate_bound"].to_list() == [
        upper_bound(k, 3, 0.95) for k in range(4)]


def test_area_above_the_curve() -> None:
    # Of 4 pairs, one is the wrong way round and one is a tie.
    assert two([2.0, 0.5], [1.0, 0.5]).roca("spam") == pytest.approx(37.5)


# Real documents


def test_a_filter_that_spares_ham(corpus: Corpora) -> None:
    frame = corpus("sms_spam").collect().sample(fraction=1.0, shuffle=True, seed=3)
    train, chosen_on = frame.head(1500), frame.slice(1500)
    model = TextClassifier(MultinomialNB(l=1.0)).fit(train)
    model.set_calibration(textnb.calibrate(model, train))
    documents = textnb.held_out(model, chosen_on)
    decision = textnb.choose_threshold(documents, "spam", max_false_positive_rate=0.001,
                                       calibration=model.calibration_)
    assert decision.evidence["calibrated"] is True
    answered = model.set_decision(decision).predict(chosen_on)
    # What predict gives is what was counted.
    seen = {pair: n for *pair_, n in answered.group_by("label", "decision").len().iter_rows()
            if (pair := tuple(pair_))}
    assert seen.get(("ham", "spam"), 0) == decision.evidence["false_positives"]
    assert seen["spam", "spam"] == decision.evidence["true_positives"]
    assert decision.evidence["share_caught"] > 0.7
    json.dumps(decision.to_dict(), allow_nan=False)


def test_none_of_these(corpus: Corpora) -> None:
    frame = corpus("r8").collect()
    train, test = frame.filter(split="train"), frame.filter(split="test")
    model = TextClassifier(MultinomialNB(l=0.1)).fit(train)
    model.set_calibration(textnb.calibrate(model, train))
    left_out = textnb.held_out(model, test)
    half = np.arange(len(left_out)) % 2 == 0
    with pytest.warns(UserWarning, match="never given"):
        decision = textnb.choose_class_thresholds(
            left_out.take(half), min_precision=0.95, calibration=model.calibration_)
    assert decision.evidence["coverage"] > 0.7
    other = left_out.take(~half).calibrated(model.calibration_)
    found = decision.decide(log_odds(other.scores), other.classes.tolist())
    given = found != UNSURE
    assert (found[given] == other.actual[given]).mean() > 0.95
    answered = model.set_decision(decision).predict(test)
    assert answered["decision"].null_count() > 0
    assert answered["predicted"].null_count() == 0


def test_the_guarantee_counts_answers_that_are_not_most_probable() -> None:
    rng = np.random.default_rng(5)
    table = rng.dirichlet(np.full(10, 0.4), 3000)
    names = np.array(list("abcdefghij"))
    documents = HeldOut(names, np.log(table), np.array([rng.choice(10, p=row) for row in table]),
                        np.ones(3000), "held-out rows")
    evidence = textnb.choose_threshold(
        documents, "a", max_false_positive_rate=0.1, max_false_negative_rate=0.05).evidence
    assert evidence["false_positives"] <= evidence["false_positives_allowed"]


def test_scores_are_calibrated_once() -> None:
    calibration = textnb.Calibration(3.0)
    documents = two([9.0, 1.0], np.linspace(-5, 5, 400))
    once = textnb.choose_threshold(
        documents, "spam", max_false_positive_rate=0.05, calibration=calibration)
    already = textnb.choose_threshold(
        documents.calibrated(calibration), "spam", max_false_positive_rate=0.05)
    assert once == already
    assert once.evidence["calibrated"]
    with pytest.raises(ParameterError, match="calibrated already"):
        textnb.choose_threshold(documents.calibrated(calibration), "spam",
                                max_false_positive_rate=0.05, calibration=calibration)
    with pytest.raises(ParameterError, match="calibrated already"):
        textnb.fit_calibration(documents.calibrated(calibration))


def test_thresholds_of_other_scores_are_refused() -> None:
    model = textnb.TextClassifier().fit(["win cash", "see you"], ["spam", "ham"])
    documents = two([9.0, 1.0], np.linspace(-5, 5, 400))
    plain = textnb.choose_threshold(documents, "spam", max_false_positive_rate=0.05)
    model.set_decision(plain)
    model.set_calibration(textnb.Calibration(2.0))
    with pytest.raises(ParameterError, match="not calibrated, and the model is calibrated"):
        model.set_decision(plain)


def test_rows_that_are_impossible_are_unsure_in_the_evidence_too() -> None:
    scores = np.vstack([np.log([[0.9, 0.1]] * 5), np.full((3, 2), -np.inf)])
    documents = HeldOut(np.array(["a", "b"]), scores, np.zeros(8, dtype=np.int64), np.ones(8),
                        "held-out rows")
    with_b = documents.take(np.arange(8))
    with_b.actual[0] = 1
    evidence = textnb.choose_threshold(with_b, "a", costs=(1.0, 1.0)).evidence
    assert (evidence["unsure"], evidence["coverage"]) == (3, 5 / 8)


def test_one_rule_for_what_no_longer_holds() -> None:
    rows = pl.DataFrame({"text": ["aa", "bb"] * 3, "label": ["x", "y"] * 3})
    calibration, decision = textnb.Calibration(2.0), Decision({"x": 0.0, "y": 1.0}, "y")

    def chosen() -> textnb.TextClassifier:
        return textnb.TextClassifier().fit(rows).set_calibration(calibration).set_decision(decision)

    model = chosen()
    assert (model.calibration_, model.decision_) == (calibration, decision)
    assert (calibration.stale, decision.stale) == ("", "")
    # The same calibration again changes no probability.
    assert model.set_calibration(textnb.Calibration(2.0)).decision_ == decision
    recalibrated = chosen().set_calibration(textnb.Calibration(3.0))
    assert recalibrated.calibration_ == textnb.Calibration(3.0)
    changed = {
        "set_calibration": (recalibrated, "calibration has changed"),
        "no calibration": (chosen().set_calibration(None), "calibration has changed"),
        "partial_fit": (chosen().partial_fit(rows), "learned or forgotten"),
        "forget": (chosen().forget(rows[:2]), "learned or forgotten"),
        "+": (chosen() + textnb.TextClassifier().fit(rows), "models that were added"),
        "+ the second": (textnb.TextClassifier().fit(rows) + chosen(), "models that were added")}
    for name, (model, reason) in changed.items():
        assert model.decision_ is not None, name
        assert model.decision_.thresholds == decision.thresholds, name
        assert reason in model.decision_.stale, name
        if model.calibration_ is not None and "calibration" not in reason:
            assert reason in model.calibration_.stale, name
    assert chosen().fit(rows).decision_ is None


def test_what_is_stale_is_kept_in_files(tmp_path: Path) -> None:
    rows = pl.DataFrame({"text": ["aa", "bb"] * 3, "label": ["x", "y"] * 3})
    model = textnb.TextClassifier().fit(rows).set_calibration(textnb.Calibration(2.0))
    model.set_decision(Decision({"x": 0.0, "y": 1.0}, evidence={"calibrated": True}))
    model.save(tmp_path / "holds")
    document = zipfile.ZipFile(tmp_path / "holds").read("model.json").decode()
    assert "stale" not in document  # a file of before is read as it was
    model.partial_fit(rows).set_calibration(None).save(tmp_path / "stale")
    back = textnb.load(tmp_path / "stale")
    assert isinstance(back, textnb.TextClassifier)
    assert (back.calibration_, back.decision_) == (None, model.decision_)
    for wrong in ("two\nlines", "x" * 501, 3):
        with pytest.raises(ParameterError, match="stale"):
            textnb.Calibration(2.0, stale=wrong)  # type: ignore[arg-type] # that is the test
        with pytest.raises(ParameterError, match="stale"):
            Decision({"x": 0.0}, stale=wrong)  # type: ignore[arg-type] # that is the test
