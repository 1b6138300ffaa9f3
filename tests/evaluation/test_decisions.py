"""Thresholds that keep what they promise, and the bounds that they stand on."""

import json
import math
import warnings
import zipfile

import numpy as np
import polars as pl
import pytest
from scipy.special import logsumexp
from scipy.stats import beta, binom

import textnb
from tests.evaluation.documents import by_hand, two
from textnb import Calibration, Decision, MultinomialNB, ParameterError, TextClassifier
from textnb import choose_class_thresholds as choose_all
from textnb import choose_threshold as choose
from textnb.bayes.decision import UNSURE, log_odds
from textnb.evaluation.binomial import errors_allowed, lower_bound, trials_needed, upper_bound

ROWS = pl.DataFrame({"text": ["aa", "bb"] * 3, "label": ["x", "y"] * 3})


def of_probabilities(probabilities, actual):
    with np.errstate(divide="ignore"):
        return by_hand(np.log(np.asarray(probabilities, dtype=np.float64)), actual)


def drawn(seed, classes, concentration, documents):
    """Documents of classes that are drawn by the probabilities that their scores tell."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(classes, concentration), documents)
    return of_probabilities(table, [rng.choice(classes, p=row) for row in table])


def answers(decision, documents):
    labels = documents.classes.tolist()
    return [None if k == UNSURE else labels[k]
            for k in decision.decide(log_odds(documents.scores), labels)]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("scale", [1e-3, 1.0, 800.0])
def test_log_odds_are_of_each_class_against_all_others(scale):
    rng = np.random.default_rng(3)
    scores = scale * rng.normal(size=(60, 9)) - rng.choice([0.0, 2000.0], size=(60, 1))
    scores[:40][rng.random((40, 9)) < rng.random((40, 1))] = -np.inf
    scores[0], scores[1] = -np.inf, [-np.inf] * 8 + [-3.0]
    scores[2, :3] = scores[2].max() + 1
    expected = np.column_stack([scores[:, k] - logsumexp(np.delete(scores, k, axis=1), axis=1)
                                for k in range(9)])
    np.testing.assert_allclose(log_odds(scores), expected, rtol=1e-12, atol=1e-12 * scale)
    # A row has the same bits in every batch.
    np.testing.assert_array_equal(log_odds(scores[7:8])[0], log_odds(scores)[7])
    np.testing.assert_array_equal(log_odds(np.asfortranarray(scores)), log_odds(scores))


# Bounds


@pytest.mark.parametrize(("rate", "confidence", "expected"), [
    (0.001, 0.95, 2995),  # log 0.05 / log 0.999 = 2994.2
    (0.01, 0.95, 299), (0.05, 0.95, 59), (0.1, 0.9, 22), (0.5, 0.5, 1)])
def test_how_many_errorless_documents_a_rate_takes(rate, confidence, expected):
    assert trials_needed(rate, confidence) == expected
    assert errors_allowed(expected, rate, confidence) == 0
    assert errors_allowed(expected - 1, rate, confidence) == -1


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(("events", "trials"), [
    (0, 1), (0, 2995), (3, 10), (59, 60), (700, 4321)])
def test_bounds_are_those_of_scipy(events, trials, confidence):
    assert upper_bound(events, trials, confidence) == pytest.approx(
        beta.ppf(confidence, events + 1, trials - events), rel=1e-12)
    assert lower_bound(trials - events, trials, confidence) == pytest.approx(
        beta.ppf(1.0 - confidence, trials - events, events + 1), rel=1e-12)
    assert (upper_bound(trials, trials, confidence), lower_bound(0, trials, confidence)) == (1, 0)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("rate", [0.001, 0.01, 0.05, 0.3, 0.5])
@pytest.mark.parametrize("trials", [1, 7, 60, 300, 2995, 19_999])
def test_as_many_errors_are_allowed_as_the_distribution_says(trials, rate, confidence):
    most = errors_allowed(trials, rate, confidence)
    assert -1 <= most < trials
    assert most == -1 or binom.cdf(most, trials, rate) <= 1.0 - confidence
    assert binom.cdf(most + 1, trials, rate) > 1.0 - confidence


# One class against the rest, with a guarantee


@pytest.mark.parametrize(("spam", "ham", "between", "allowed", "wrong", "caught"), [
    # 100 of ham, 5 % at 95 %: P(Bin(100, .05) <= 1) = .037, so that one error is allowed.
    ([20.0, 8.9, 8.0, 7.9], np.arange(100.0) - 90, (8.0, 8.9), 1, 1, 2),
    # Two errors are allowed, but the three highest are equal: all of them are left out.
    ([4.0, 4.1], [4.0] * 3 + [*np.linspace(-9, 0, 147)], (4.0, 4.1), 2, 0, 1),
    # One error is allowed, and the second highest is -inf: whatever is finite passes.
    ([-np.inf, 2.0, np.inf], [-np.inf] * 99 + [3.0], (-np.inf, 2.1), 1, 1, 2),
    ([], [-np.inf] * 59, (-np.inf, np.inf), 0, 0, 0)],
    ids=["errors", "equal scores", "scores without bound", "nothing"])
def test_the_threshold_is_above_the_last_that_is_left_out(
    spam, ham, between, allowed, wrong, caught
):
    decision = choose(two(spam, ham), "spam", max_false_positive_rate=0.05)
    evidence, trials = decision.evidence, len(spam)
    assert between[0] < decision.thresholds["spam"] < between[1]
    assert (evidence["false_positives_allowed"], evidence["false_positives"]) == (allowed, wrong)
    assert evidence["true_positives"] == caught
    assert evidence["false_positive_rate_bound"] == pytest.approx(
        upper_bound(allowed, len(ham), 0.95))
    assert evidence["share_caught"] == (caught / trials if spam else None)
    assert evidence["share_caught_interval"] == ([
        lower_bound(caught, trials, 0.975), upper_bound(caught, trials, 0.975)] if spam else None)
    assert decision.positive == "spam"


def test_two_classes_have_one_cut():
    decision = choose(two([9.0, 1.0], np.linspace(-5, 5, 400)), "spam",
                      max_false_positive_rate=0.05)
    cut = decision.thresholds["spam"]
    assert answers(decision, two([np.nextafter(cut, -np.inf), cut], [])) == ["ham", "spam"]
    # Also where spam is answered although ham is more probable.
    low = Decision({"spam": -1.0, "ham": float(np.nextafter(1.0, np.inf))})
    assert answers(low, two([-0.5, -1.0, -1.1], [])) == ["spam", "spam", "ham"]
    # A bound on errors alone does not ask for that: 0 is low enough.
    loose = choose(two([9.0, -0.5], np.linspace(-20, -1, 400)), "spam",
                   max_false_positive_rate=0.05)
    assert loose.thresholds["spam"] == 0.0
    assert answers(loose, two([0.0, -0.1], [])) == ["spam", "ham"]
    # One on misses may.
    both = choose(two(np.linspace(-2, 9, 400), np.linspace(-20, -3, 400)), "spam",
                  max_false_positive_rate=0.05, max_false_negative_rate=0.01)
    assert both.thresholds["spam"] < -3


def test_impossible_rows_are_unsure_and_no_errors():
    documents = two([5.0], np.linspace(-3, 0, 100))
    more = by_hand([*documents.scores, *np.full((10, 2), -np.inf)], [*documents.actual, *[0] * 10],
                   classes=["ham", "spam"])
    evidence = choose(more, "spam", max_false_positive_rate=0.05).evidence
    assert (evidence["negatives"], evidence["unsure"]) == (110, 10)
    evidence = choose(more, "spam", costs=(1.0, 1.0)).evidence
    assert (evidence["unsure"], evidence["coverage"]) == (10, 101 / 111)


def test_unknown_labels_are_not_the_class():
    documents = two([5.0, 6.0], np.linspace(-3, 0, 100))
    documents.actual[0] = -1
    evidence = choose(documents, "spam", max_false_positive_rate=0.05).evidence
    assert (evidence["negatives"], evidence["positives"], evidence["unknown_labels"]) == (101, 1, 1)
    assert evidence["false_positives"] == 1


def test_a_band_where_both_rates_cannot_be_kept_by_one_cut():
    spam, ham = np.linspace(-2, 10, 200), np.linspace(-10, 2, 200)
    rates = {"max_false_positive_rate": 0.05, "max_false_negative_rate": 0.05}
    decision = choose(two(spam, ham), "spam", **rates)
    evidence = decision.evidence
    assert errors_allowed(200, 0.05, 0.95) == evidence["false_positives"] == 4
    assert evidence["false_negatives"] == 4
    odds = np.concatenate([spam, ham])
    unsure = odds[[answer is None for answer in answers(decision, two(spam, ham))]]
    assert len(unsure) == evidence["unsure"] > 0
    assert abs(unsure).max() < 2
    assert evidence["coverage"] == pytest.approx(1 - len(unsure) / 400)
    # No band where one cut keeps both.
    apart = choose(two(np.linspace(5, 9, 100), np.linspace(-9, -5, 100)), "spam", **rates)
    assert None not in answers(apart, two(np.linspace(-10, 10, 401), []))
    assert apart.evidence["false_positives"] <= 1


def test_one_of_several_classes_is_answered_where_it_is_most_probable_and_above_its_threshold():
    documents = drawn(5, 3, 1.0, 3000)
    decision = choose(documents, "b", max_false_positive_rate=0.02)
    assert decision.thresholds["a"] == decision.thresholds["c"] == -np.inf
    table, cut = np.exp(documents.scores), decision.thresholds["b"]
    labels = np.array(answers(decision, documents))
    odds = np.log(table[:, 1] / (1 - table[:, 1]))
    expected = np.where(odds >= cut, "b", np.where(table[:, 0] > table[:, 2], "a", "c"))
    assert cut > 0
    assert (labels == expected).all()
    wrong = int(((labels == "b") & (documents.actual != 1)).sum())
    assert wrong == decision.evidence["false_positives_allowed"]
    # A loose rate stops at the most probable class.
    documents = of_probabilities([[0.4, 0.3, 0.3]] * 5 + [[0.2, 0.45, 0.35]] * 100,
                                 [0] * 5 + [1] * 100)
    loose = choose(documents, "a", max_false_positive_rate=0.5)
    assert answers(loose, documents) == ["a"] * 5 + ["b"] * 100


@pytest.mark.parametrize(("documents", "rate", "unsure"), [
    (drawn(6, 3, 0.3, 4000), 0.05, 2000), (drawn(5, 10, 0.4, 3000), 0.1, 2500)])
def test_a_band_of_several_classes_keeps_both_rates(documents, rate, unsure):
    """The guarantee counts answers that are not the most probable class, too."""
    evidence = choose(documents, "b", max_false_positive_rate=rate,
                      max_false_negative_rate=0.05).evidence
    assert 0 < evidence["false_positives"] <= evidence["false_positives_allowed"]
    assert 0 < evidence["false_negatives"] <= evidence["false_negatives_allowed"]
    assert 0 < evidence["unsure"] < unsure


@pytest.mark.sweep(1)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n", [59, 100, 311])
def test_the_guarantee_holds_as_often_as_it_says(n, tied):
    """Scores are uniform, so that the share above a threshold is known."""
    rng = np.random.default_rng(n)
    runs, rate, failed = 1000, 0.05, 0
    for _ in range(runs):
        ham = rng.random(n)
        if tied:
            ham = np.floor(ham * 50) / 50
        cut = choose(two([2.0], ham), "spam", max_false_positive_rate=rate).thresholds["spam"]
        # Ties are at k/50: those at or above the cut are the ones with k >= 50 cut.
        share = max(0.0, 1 - (math.ceil(cut * 50) / 50 if tied else cut))
        failed += share > rate + 1e-12
    exact = binom.cdf(errors_allowed(n, rate, 0.95), n, rate)
    assert exact <= 0.05
    error = 4 * math.sqrt(exact * (1 - exact) / runs)
    assert failed / runs <= exact + error
    # Exact, and not merely safe.
    assert tied or failed / runs >= exact - error


# Costs


def test_costs_by_probabilities():
    decision = choose(two([3.0, 1.0], [-1.0, 2.0]), "spam", costs=(10, 1), method="theoretical")
    assert decision.thresholds["spam"] == math.log(10)
    assert decision.evidence["cost"] == 1.0
    assert decision.evidence["rule"] == "theoretical"


@pytest.mark.parametrize("costs", [(1, 1), (10, 1), (1, 10), (1000, 1), (1, 1000)])
def test_costs_by_what_was_seen_against_every_cut(costs):
    rng = np.random.default_rng(2)
    spam, ham = np.round(rng.normal(1, 1, 60), 1), np.round(rng.normal(-1, 1, 90), 1)
    evidence = choose(two(spam, ham), "spam", costs=costs).evidence
    every = {cut: costs[0] * int((ham >= cut).sum()) + costs[1] * int((spam < cut).sum())
             for cut in [*spam, *ham, np.inf]}
    assert evidence["cost"] == min(every.values())
    best = max(cut for cut, cost in every.items() if cost == evidence["cost"])
    assert evidence["false_positives"] == int((ham >= best).sum())


def test_a_class_that_costs_too_much_is_never_given():
    documents = two([1.0, np.inf], [np.inf, np.inf, 0.0])
    decision = choose(documents, "spam", costs=(5, 1))
    assert decision.thresholds == {"ham": -np.inf, "spam": np.inf}
    assert answers(decision, documents) == ["ham"] * 5
    assert Decision.from_dict(json.loads(json.dumps(decision.to_dict()))) == decision
    # As a file of an earlier version may have it.
    of_numbers = Decision({0: -1.0, 1: 1.0}, 1).to_dict() | {"positive": True}
    assert Decision.from_dict(of_numbers).positive is not True
    of_numbers["thresholds"][0]["log_odds"] = json.loads("1e999")
    with pytest.raises(ParameterError, match='a finite number, "always" or "never"'):
        Decision.from_dict(of_numbers)


# All classes


def test_class_thresholds_by_hand():
    # a: right wherever it is given; b: right half of the time.
    documents = of_probabilities([[0.9, 0.1]] * 100 + [[0.2, 0.8]] * 100, [0] * 100 + [1, 0] * 50)
    message = ("^a precision of 0.9 can't be shown for 1 of 2 classes: 'b'. These classes are "
               'never given: a row that would get one is "unsure"$')
    with pytest.warns(UserWarning, match=message):
        decision = choose_all(documents, min_precision=0.9)
    assert decision.thresholds["b"] == np.inf
    assert answers(decision, documents) == ["a"] * 100 + [None] * 100
    evidence = decision.evidence
    assert (evidence["coverage"], evidence["precision"]) == (0.5, 1.0)
    assert [(entry["answered"], entry["correct"]) for entry in evidence["classes"]] == [
        (100, 100), (0, 0)]
    assert evidence["classes"][0]["precision_bound"] >= 0.9


def test_a_warning_names_few_of_many_classes():
    documents = by_hand(np.zeros((3, 9)), [0, 1, 2])
    with pytest.warns(UserWarning, match="9 of 9 classes: 'a', 'b', 'c', 'd', 'e' and 4 others"):
        choose_all(documents, min_precision=0.9)


def test_what_can_be_shown_instead_is_said():
    # An error in every 20 of the surest: 0.9 can't be shown of 100 answers, and could be of more.
    documents = two(np.linspace(8, 0.5, 100), [])
    documents.actual[10::20] = 0
    with pytest.warns(UserWarning, match="'spam'"):
        decision = choose_all(documents, min_precision=0.93)
    shown = decision.evidence["classes"][1]["shown"]
    assert 0.8 <= shown["precision"] < 0.93
    assert shown["correct"] >= shown["precision"] * shown["answered"] > 0
    # It is true: as many rows of the same kind show it, and fewer do not.
    times = shown["times"]
    assert times in (2, 3, 4, 6, 8)
    more = two(np.repeat(np.linspace(8, 0.5, 100), times), [])
    more.actual[:] = np.repeat(documents.actual, times)
    with pytest.warns(UserWarning, match="'ham'"):
        assert choose_all(more, min_precision=0.93).thresholds["spam"] < np.inf
    # The lesser precision is what a choice by it shows.
    with pytest.warns(UserWarning, match="'ham'"):
        less = choose_all(documents, min_precision=shown["precision"])
    assert less.evidence["classes"][1]["answered"] == shown["answered"]


def test_a_class_is_cut_where_its_errors_begin():
    # Errors are among the lower half: only the upper half can be shown to be right.
    documents = two(np.linspace(8, 0.5, 400), [])
    documents.actual[(np.arange(400) >= 200) & (np.arange(400) % 3 == 0)] = 0
    with pytest.warns(UserWarning, match="'ham'"):
        decision = choose_all(documents, min_precision=0.95)
    entry = decision.evidence["classes"][1]
    assert entry["starts"] == [80, 160, 320]
    assert 180 <= entry["answered"] <= 210
    assert answers(decision, documents).count("spam") == entry["answered"]


def test_the_precision_holds_as_often_as_it_says():
    """The chance of being right is known for every score, hence the true precision above a cut."""
    rng = np.random.default_rng(11)
    runs, failed, answered = 300, 0, 0
    for _ in range(runs):
        p = np.where(rng.random(400) < 0.6, 0.97, 0.9) + rng.uniform(-0.02, 0.02, 400)
        odds = np.log(p / (1 - p))
        documents = two(odds, [])
        documents.actual[:] = rng.random(400) < p
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cut = choose_all(documents, min_precision=0.95).thresholds["spam"]
        if cut < np.inf:
            answered += 1
            failed += float(p[odds >= cut].mean()) < 0.95
    assert answered > runs / 10
    assert failed > 0
    assert failed / runs <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / runs)


def test_unknown_labels_are_errors_of_any_class():
    with pytest.warns(UserWarning, match="'a', 'b'"):
        decision = choose_all(of_probabilities([[0.9, 0.1]] * 100, [-1] * 100), min_precision=0.5)
    assert decision.evidence["answered"] == 0
    assert decision.evidence["unknown_labels"] == 100


# Tables


def test_held_out_scores_are_measured_with_a_decision():
    held = two([3.0, 1.0], [1.5, 0.0, -np.inf])
    assert held.evaluate().decided is None
    decided = held.evaluate(Decision({"ham": 0.0, "spam": 2.0}, positive="spam")).decided
    assert decided == {"answered": 3, "unsure": 2, "right": 3, "false_positives": 0,
                       "true_positives": 1, "missed": 1}


def test_operating_points_and_the_area_by_hand():
    points = two([3.0, 1.0], [1.0, 0.0, -np.inf]).operating_points("spam")
    assert points.drop("false_positive_rate_bound").rows() == [
        (3.0, 0, 1, 0.0, 0.5), (1.0, 1, 2, 1 / 3, 1.0), (0.0, 2, 2, 2 / 3, 1.0),
        (-np.inf, 3, 2, 1.0, 1.0)]
    assert points["false_positive_rate_bound"].to_list() == [
        upper_bound(k, 3, 0.95) for k in range(4)]
    # Of 4 pairs, one is the wrong way round and one is a tie.
    held = two([2.0, 0.5], [1.0, 0.5])
    assert held.roca("spam") == pytest.approx(37.5)
    assert held.roc("spam").auc == 1 - held.roca("spam") / 100


# Decisions and calibrations


@pytest.mark.parametrize("goal", [
    lambda documents, **how: choose(documents, "spam", max_false_positive_rate=0.05, **how),
    lambda documents, **how: choose_all(documents, min_precision=0.9, **how)],
    ids=["one class", "all classes"])
def test_scores_are_calibrated_once(goal):
    calibration = Calibration(3.0)
    documents = two(np.linspace(-1, 9, 400), np.linspace(-9, 1, 400))
    once = goal(documents, calibration=calibration)
    assert once == goal(documents.calibrated(calibration))
    assert once.evidence["calibrated"]
    assert once != goal(documents)


def chosen():
    """A model that is calibrated and decides."""
    model = TextClassifier().fit(ROWS).set_calibration(Calibration(2.0))
    return model.set_decision(Decision({"x": 0.0, "y": 1.0}, "y"))


def test_the_same_calibration_keeps_the_decision_and_a_fit_drops_it():
    model = chosen()
    assert (model.calibration_.stale, model.decision_.stale) == ("", "")
    assert model.set_calibration(Calibration(2.0)).decision_ == Decision({"x": 0.0, "y": 1.0}, "y")
    assert chosen().fit(ROWS).decision_ is None


@pytest.mark.parametrize(("change", "reason"), [
    (lambda: chosen().set_calibration(Calibration(3.0)), "calibration has changed"),
    (lambda: chosen().set_calibration(None), "calibration has changed"),
    (lambda: chosen().partial_fit(ROWS), "learned or forgotten"),
    (lambda: chosen().forget(ROWS[:2]), "learned or forgotten"),
    (lambda: chosen() + TextClassifier().fit(ROWS), "models that were added"),
    (lambda: TextClassifier().fit(ROWS) + chosen(), "models that were added")])
def test_what_no_longer_holds_says_why(change, reason):
    model = change()
    assert model.decision_.thresholds == {"x": 0.0, "y": 1.0}
    assert reason in model.decision_.stale
    if "calibration" in reason:
        assert model.calibration_ in (None, Calibration(3.0))
    else:
        assert reason in model.calibration_.stale


def test_what_is_stale_is_kept_in_files(reloaded, tmp_path):
    model = TextClassifier().fit(ROWS).set_calibration(Calibration(2.0))
    model.set_decision(Decision({"x": 0.0, "y": 1.0}, evidence={"calibrated": True}))
    model.save(tmp_path / "holds")
    document = zipfile.ZipFile(tmp_path / "holds").read("model.json").decode()
    assert "stale" not in document  # a file of before is read as it was
    back = reloaded(model.partial_fit(ROWS).set_calibration(None))
    assert (back.calibration_, back.decision_) == (None, model.decision_)


@pytest.mark.parametrize(("labels", "narrow", "others"), [
    ([0, 1], np.int32, (True, np.True_, 1.0, "1")),
    ([False, True], np.bool_, (1, np.int32(1), 1.0, "True"))], ids=["integers", "bools"])
def test_a_class_may_be_of_numpy_and_not_of_another_type(labels, narrow, others, reloaded):
    rows = pl.DataFrame({"text": ["aa", "bb"] * 20, "label": labels * 20})
    model = TextClassifier().fit(rows)
    held, second = textnb.cross_validate(model, rows), labels[1]
    online = textnb.validate_online(TextClassifier(), rows, positive=model.classes_[1], block=4)
    assert json.loads(json.dumps(online.to_dict()))["positive"] is second
    for decision in (
            choose(held, model.classes_[1], costs=(1, 1)),
            choose(held, narrow(1), max_false_positive_rate=0.2),
            Decision(dict(zip(model.classes_, [0.0, 1.0], strict=True)), model.classes_[1],
                     {"documents": np.int64(3), "rates": [np.float32(0.5), np.array([1])]})):
        assert decision.positive is second
        assert [*map(type, decision.thresholds)] == [type(second)] * 2
        assert reloaded(model.set_decision(decision)).decision_ == decision
    for other in others:
        for call in (lambda other: choose(held, other, costs=(1, 1)), held.roc, held.roca,
                     lambda other: Decision(dict.fromkeys(labels, 0.0), other)):
            with pytest.raises(ParameterError, match="positive: unknown value"):
                call(other)
    with pytest.raises(ParameterError, match="evidence is no JSON"):
        Decision({"x": 0.0}, evidence={"model": model})


# Real documents


def test_a_filter_that_spares_ham(corpus):
    frame = corpus("sms_spam").collect().sample(fraction=1.0, shuffle=True, seed=3)
    train, chosen_on = frame.head(1500), frame.slice(1500)
    model = TextClassifier(MultinomialNB(l=1.0)).fit(train)
    model.set_calibration(textnb.calibrate(model, train))
    decision = choose(textnb.held_out(model, chosen_on), "spam", max_false_positive_rate=0.001,
                      calibration=model.calibration_)
    assert decision.evidence["calibrated"] is True
    answered = model.set_decision(decision).predict(chosen_on).filter(decision="spam")
    # What predict gives is what was counted.
    assert answered.filter(label="ham").height == decision.evidence["false_positives"]
    assert answered.filter(label="spam").height == decision.evidence["true_positives"]
    assert decision.evidence["share_caught"] > 0.7
    json.dumps(decision.to_dict(), allow_nan=False)
