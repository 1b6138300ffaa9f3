"""Temperatures: fitted on what was left out, and what they do to probabilities."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import log_loss

import textnb
from tests.classifier.topics import NEWS, TEST, one_label_each
from tests.evaluation.documents import by_hand
from textnb import (
    Calibration,
    HeldOut,
    MultinomialNB,
    NBLinear,
    ParameterError,
    TextClassifier,
    reliability,
)
from textnb import fit_calibration as fit


def repeated(margin, right, wrong, length):
    """Documents of two classes with one margin for class 0: so many are of it, so many are not."""
    return [(margin, 0, length)] * right + [(margin, 1, length)] * wrong


def of_margins(rows):
    margins, actual, lengths = zip(*rows, strict=True)
    return by_hand(np.column_stack([margins, np.zeros(len(rows))]), actual, lengths)


def simulated(documents, classes, temperature, exponent):
    """Documents whose labels are drawn from softmax(scores / T), T of a known kind."""
    rng = np.random.default_rng(7)
    lengths = rng.integers(1, 400, documents).astype(np.float64)
    logits = rng.normal(0, 2, (documents, classes))
    draws = logits + rng.gumbel(size=logits.shape)
    truth = Calibration(temperature, exponent)
    return by_hand(logits * truth.temperatures(lengths)[:, None], draws.argmax(axis=1), lengths)


def loss_of(documents, calibration):
    """Mean log loss, the slow way."""
    total = 0.0
    for scores, actual, length in zip(
            documents.scores, documents.actual, documents.lengths, strict=True):
        divisor = 1 + (calibration.temperature - 1) * length ** calibration.length_exponent
        total -= log_softmax(scores / divisor)[actual]
    return float(total / len(documents))


# The temperature


def test_one_temperature_makes_the_mean_probability_the_share_that_is_right():
    # Three of four are right at a margin of 10: softmax(10 / T) = 3/4, so T = 10 / log 3.
    result = fit(of_margins(repeated(10.0, 3, 1, 0.0)), length_aware=False)
    assert result.temperature == pytest.approx(10 / np.log(3), rel=1e-9)
    assert (result.length_exponent, result.documents, result.method) == (0.0, 4, "by hand")


def test_two_lengths_give_the_exponent():
    # T = 1 + 2 at n = 4 and T = 1 + 16 at n = 256: exponent log 8 / log 64 = 1/2, so T = 1 + n^½.
    unit = np.log(3)
    result = fit(of_margins(
        repeated(3 * unit, 300, 100, 4.0) + repeated(17 * unit, 300, 100, 256.0)))
    assert result.length_exponent == pytest.approx(0.5, abs=1e-5)
    assert result.temperature == pytest.approx(2.0, rel=1e-4)


def test_an_exponent_that_does_not_earn_its_place_is_zero():
    few = repeated(10.0, 3, 1, 3.0) + repeated(20.0, 3, 1, 255.0)
    assert fit(of_margins(few)).length_exponent == 0.0
    assert fit(of_margins(few * 1000)).length_exponent > 0.1
    even = of_margins(repeated(10.0, 300, 100, 3.0) + repeated(10.0, 300, 100, 255.0))
    assert fit(even).length_exponent == 0.0
    # Short documents are all wrong and long ones all right: the steeper, the better, without end.
    assert fit(of_margins([(5.0, 1, 1.0)] * 4 + [(5.0, 0, 500.0)] * 40)).length_exponent == 0.0
    assert fit(of_margins(few * 1000), length_aware=False) == Calibration(
        fit(of_margins(few), length_aware=False).temperature, 0.0, 8000, "by hand")


def test_no_temperature_on_a_grid_is_better():
    documents = simulated(150, 3, 2.0, 0.6)
    result = fit(documents)
    assert result.length_exponent != 0
    # A text without a known term keeps the priors.
    assert result.temperatures(np.array([0.0])).tolist() == [1.0]
    least = loss_of(documents, result)
    for log_excess in np.linspace(-4, 3, 17):
        for exponent in np.linspace(0, 2, 11):
            other = Calibration(1 + float(np.exp(log_excess)), float(exponent))
            assert loss_of(documents, other) >= least - 1e-9
    one = fit(documents, length_aware=False)
    for factor in (0.5, 0.99, 1.01, 2.0):
        assert loss_of(documents, Calibration(one.temperature * factor)) > loss_of(documents, one)


def test_scores_may_share_a_constant_or_a_scale():
    documents = simulated(500, 4, 2.0, 0.0)
    plain = fit(documents, length_aware=False)
    shifted = by_hand(documents.scores - 1000.0, documents.actual)
    scaled = by_hand(documents.scores * 64.0, documents.actual)
    shuffled = documents.take(np.random.default_rng(0).permutation(500))
    for other, factor in ((shifted, 1), (scaled, 64), (shuffled, 1)):
        assert fit(other, length_aware=False).temperature == pytest.approx(
            plain.temperature * factor, rel=1e-9)
    assert fit(documents) == fit(documents)


# Bounds


@pytest.mark.parametrize("n", [1, 2, 50])
def test_where_all_are_right_probabilities_follow_the_rule_of_succession(n):
    rng = np.random.default_rng(n)
    documents = of_margins([(m, 0, 5.0) for m in rng.uniform(1, 50, n)])
    result = fit(documents)
    right = np.exp(documents.calibrated(result).log_probability())
    assert right.mean() == pytest.approx((n + 1) / (n + 2), abs=1e-9)
    assert result.length_exponent == 0.0


@pytest.mark.parametrize("more", [
    [(1e-6, 1, 0.0)], [(0.0, 1, 0.0), (0.0, 0, 0.0)]], ids=["wrong by a hair", "tied"])
def test_documents_that_ask_for_no_temperature_make_it_no_surer(more):
    rows = [(30.0, 0, 9.0)] * 99
    assert fit(of_margins([*rows, *more])).temperature == pytest.approx(
        fit(of_margins(rows)).temperature, rel=1e-6)


def test_scores_that_mislead_are_made_to_say_nothing():
    documents = of_margins([(5.0, 1, 3.0)] * 7)
    result = fit(documents)
    assert result.temperature == pytest.approx(np.exp(20))
    assert documents.calibrated(result).log_loss == pytest.approx(np.log(2), abs=1e-6)


def test_scores_that_are_all_equal_are_left_alone():
    result = fit(by_hand(np.zeros((5, 3)), [0, 1, 2, 0, 1]))
    assert (result.temperature, result.length_exponent) == (1.0, 0.0)


# Rows that can tell nothing


def test_rows_that_no_temperature_mends_are_left_out_and_said():
    documents = simulated(200, 3, 2.0, 0.3)
    bad = by_hand([[-np.inf, -1.0, -2.0],            # the label is impossible
                   [-np.inf, -np.inf, -np.inf],      # so is every class
                   [-1.0, -2.0, -3.0],               # the label is unknown
                   [np.inf, -1.0, -2.0]],            # another class is certain
                  [0, 1, -1, 1], [5, 5, 5, 5])
    both = by_hand(*(np.concatenate([getattr(documents, name), getattr(bad, name)])
                     for name in ("scores", "actual", "lengths")))
    with pytest.warns(UserWarning, match="^4 of 204 documents are left out"):
        result = fit(both)
    assert result == fit(documents)
    with pytest.raises(textnb.DataError, match="no temperature can be fitted on 4 documents"):
        fit(bad)


def test_other_classes_may_be_impossible():
    # As if there were only the other two.
    two = of_margins(repeated(8.0, 9, 1, 0.0))
    three = by_hand(np.column_stack([two.scores, np.full(10, -np.inf)]), two.actual)
    assert fit(three).temperature == pytest.approx(8 / np.log(9), rel=1e-9)
    assert fit(three).temperature == fit(by_hand(two.scores, two.actual)).temperature


# Reliability


def test_reliability_by_hand():
    # P(predicted) = 0.75, 0.75, 0.9, right, wrong, right.
    odds = np.log([3.0, 3.0, 9.0])
    result = reliability(by_hand(np.column_stack([odds, np.zeros(3)]), [0, 1, 0]), bins=5)
    assert result.table["documents"].to_list() == [0, 0, 0, 2, 1]
    assert result.table["confidence"].to_list()[3:] == pytest.approx([0.75, 0.9])
    assert result.table["accuracy"].to_list() == [None, None, None, 0.5, 1.0]
    assert result.expected_calibration_error == pytest.approx((2 * 0.25 + 1 * 0.1) / 3)
    assert result.brier == pytest.approx(2 * (0.25**2 + 0.75**2 + 0.1**2) / 3)
    assert result.log_loss == pytest.approx(-np.log([0.75, 0.25, 0.9]).mean())
    assert (result.documents, result.excluded) == (3, 0)
    # A bin holds its upper edge.
    edges = reliability(by_hand([[0.0, 0.0], [0.0, -np.inf]], [0, 0]), bins=2)
    assert edges.table.select("low", "high", "documents").rows() == [(0.0, 0.5, 1), (0.5, 1.0, 1)]


def test_reliability_agrees_with_scikit_learn():
    documents = simulated(400, 5, 1.5, 0.1)
    result = reliability(documents)
    posterior = np.exp(log_softmax(documents.scores, axis=1))
    assert result.log_loss == pytest.approx(log_loss(documents.actual, posterior), rel=1e-9)
    truth = np.eye(5)[documents.actual]
    assert result.brier == pytest.approx(((posterior - truth) ** 2).sum(axis=1).mean(), rel=1e-12)
    assert result.table["documents"].sum() == 400


def test_a_loss_is_not_cut_off_and_says_what_it_leaves_out():
    assert reliability(by_hand([[0.0, -1000.0]], [1])).log_loss == 1000.0
    assert reliability(by_hand([[0.0, -np.inf]], [1])).log_loss == np.inf
    result = reliability(by_hand([[0.0, -1.0], [-np.inf, -np.inf], [0.0, -2.0]], [0, 0, -1]))
    assert (result.documents, result.excluded, result.to_dict()["excluded"]) == (1, 2, 2)


def test_the_reliability_of_lists_is_that_of_their_most_probable_labels():
    odds = np.log([[4.0, 1.0], [1 / 3, 1.0], [9.0, 9.0]])
    documents = HeldOut(np.array(["a", "b"]), odds, np.array(
        [[True, False], [False, False], [False, True]]), np.ones(3), "", link="sigmoid")
    result = reliability(documents, bins=2)
    # 0.8 is right, 0.5 (of "b") is wrong, and of two of 0.9 the first counts, which is wrong.
    assert result.table["documents"].to_list() == [1, 2]
    assert result.table["accuracy"].to_list() == [0.0, 0.5]
    assert result.table["confidence"].to_list() == pytest.approx([0.5, 0.85])
    wrong = np.array([0.2, 0.5, 0.25, 0.5, 0.9, 0.1])
    assert result.brier == pytest.approx((wrong ** 2).sum() / 3)
    assert result.log_loss == pytest.approx(documents.log_loss)


@pytest.mark.parametrize("estimator", [NBLinear(), MultinomialNB()], ids=str)
def test_the_reliability_of_calibrated_lists_is_of_the_models_probabilities(estimator):
    model = TextClassifier(estimator).fit(NEWS)
    if model.calibration_ is None:
        model.set_calibration(textnb.calibrate(model, NEWS))
    held = textnb.held_out(model, TEST)
    result = reliability(held.calibrated(model.calibration_))
    # A document without a word is scored too.
    chances, truth = model.predict_proba(TEST["text"].fill_null("").to_list()), held.actual
    assert result.brier == pytest.approx(((chances - truth) ** 2).sum(axis=1).mean())
    best, every = chances.argmax(axis=1), np.arange(len(chances))
    bins = np.ceil(15 * chances[every, best]).astype(int)
    gaps = [abs((truth[every, best] - chances[every, best])[bins == n].sum()) for n in set(bins)]
    assert result.expected_calibration_error == pytest.approx(sum(gaps) / len(chances))
    assert result.brier < reliability(held).brier


@pytest.mark.parametrize("estimator", [NBLinear(), MultinomialNB()], ids=str)
@pytest.mark.parametrize("rows", [NEWS, one_label_each(NEWS)], ids=["lists", "a label each"])
def test_rows_that_count_more_than_1_are_not_scored_as_if_they_counted_1(estimator, rows):
    model = TextClassifier(estimator).fit(rows, sample_weight=[2.0] * rows.height)
    with pytest.raises(ParameterError, match=r"sample weights, which .* by held_out"):
        textnb.calibrate(model, rows)


# Real documents


def test_calibrating_a_model_on_what_it_learned(corpus):
    frame = corpus("sms_spam").collect().sample(fraction=1.0, shuffle=True, seed=3)
    train, test = frame.head(3900), frame.tail(1674)
    model = TextClassifier(MultinomialNB(l=1.0)).fit(train)
    raw = model.predict(test)
    calibration = textnb.calibrate(model, train)
    assert model.calibration_ is None
    assert (calibration.documents, calibration.method) == (3900, "leave-one-out")
    left_out = textnb.held_out(model, test)
    before, after = reliability(left_out), reliability(left_out.calibrated(calibration))
    assert after.log_loss < before.log_loss / 1.5
    assert after.brier < before.brier
    answered = model.set_calibration(calibration).predict(test, probability=True)
    assert answered["predicted"].equals(raw["predicted"])
    assert answered["calibrated"].all()
    # What predict gives is what was measured.
    right = left_out.predicted == left_out.actual
    np.testing.assert_allclose(answered["probability"].to_numpy()[right], np.exp(
        left_out.calibrated(calibration).log_probability())[right])


@pytest.mark.parametrize(("name", "l", "factor"), [
    # By how much the log loss falls: seen 14.1 and 18.0, and 3.96.
    ("20newsgroups", 1.0, 14), ("20newsgroups", 0.1, 17.5), ("imdb", 1.0, 3.95)])
def test_log_loss_on_official_tests_falls(corpus, name, l, factor):
    frame = corpus(name).select("text", "label", "split").collect()
    train, test = frame.filter(split="train"), frame.filter(split="test")
    model = TextClassifier(MultinomialNB(l=l)).fit(train)
    left_out = textnb.held_out(model, test)
    calibrated = left_out.calibrated(textnb.calibrate(model, train))
    before, after = reliability(left_out), reliability(calibrated)
    assert after.log_loss * factor <= before.log_loss
    assert after.brier < before.brier * 0.85
    assert after.expected_calibration_error < before.expected_calibration_error / 3
    assert (left_out.predicted == calibrated.predicted).all()
