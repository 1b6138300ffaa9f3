"""Thresholds, ranks and probabilities of labels, from scores of documents held out."""

import itertools

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import f1_score

import textnb
from tests.classifier.topics import NEWS, TEST, TOPICS
from textnb import Calibration, NBLinear, ParameterError, TextClassifier, TextnbWarning
from textnb.bayes import label_thresholds
from textnb.bayes.label_calibration import label_sigmoids
from textnb.cli.evidence import decision_words
from textnb.evaluation.binomial import lower_bound
from textnb.evaluation.held_out import HeldOut

MODELS = {name: TextClassifier(estimator, min_df=2) for name, estimator in {
    "multinomial": textnb.MultinomialNB(l=0.5), "bernoulli": textnb.BernoulliNB(),
    "complement": textnb.ComplementNB(), "linear": NBLinear()}.items()}
every_model = pytest.mark.parametrize("name", MODELS)


def measures(result):
    return {name: value for name, value in result.to_dict().items()
            if name not in ("textless", "novelty")}


def held_out_scores(documents=2000, seed=0):
    """Scores of three labels, of different quality and scale."""
    draw = np.random.default_rng(seed)
    odds = draw.normal(-1.0, [2.0, 1.0, 3.0], (documents, 3))
    actual = draw.random(odds.shape) < 1 / (1 + np.exp(-odds))
    return HeldOut(np.array(["a", "b", "c"]), odds * [1.0, 10.0, 3.0] + [0.0, 5.0, -2.0],
                   actual, np.ones(documents), "held_out_scores-out rows", link="sigmoid")


def chances(odds):
    return 1 / (1 + np.exp(-odds))


# Scores of documents held_out_scores out


@pytest.mark.sweep(1)
@every_model
def test_each_fold_has_the_scores_of_a_model_of_the_other_folds(name):
    scored = textnb.cross_validate(MODELS[name], NEWS, folds=3)
    assert isinstance(scored, HeldOut)
    assert scored.actual.tolist() == [[topic in row for topic in TOPICS] for row in NEWS["label"]]
    for fold in range(3):
        own = scored.folds == fold
        fitted = clone(MODELS[name]).fit(NEWS.filter(pl.Series(~own)))
        alone = textnb.held_out(fitted, NEWS.filter(pl.Series(own)))
        assert np.array_equal(alone.scores, scored.scores[own])
        assert np.array_equal(alone.predicted, scored.predicted[own])
        # Each topic is in all folds.
        assert scored.actual[own].any(axis=0).all()


def test_a_label_without_training_rows_in_a_fold_is_never_predicted():
    rows = pl.DataFrame({"text": ["aa", "bb", "aa bb", "cc"],
                         "label": [["a"], ["b"], ["a", "b"], ["rare"]]})
    scored = textnb.cross_validate(TextClassifier(), rows, folds=2)
    assert scored.scores[3, 2] == -np.inf
    assert not scored.predicted[3, 2]
    assert np.isposinf(scored.scores).any()
    for by in ("f1", "micro-f1"):
        decision = textnb.choose_class_thresholds(scored, by=by)
        assert -np.inf not in decision.thresholds.values()


def test_labels_that_the_model_does_not_know_count_as_false_negatives(listed):
    more = TEST.with_columns(label=pl.col("label").list.concat(pl.lit(["zinc"])))
    scored = textnb.held_out(listed, more)
    assert scored.unknown is not None
    assert scored.unknown.to_list() == [["zinc"]] * TEST.height
    assert scored.n_unknown == TEST.height
    assert np.array_equal(scored.actual, textnb.held_out(listed, TEST).actual)
    # `evaluate` counts them in the same way.
    ours, theirs = scored.evaluate(), textnb.evaluate(listed, more)
    assert measures(ours) == measures(theirs)
    assert ours.unknown_labels == ["zinc"]
    assert scored.measure()["micro_f1"] == theirs.micro_f1
    assert scored.accuracy == theirs.subset_accuracy == 0
    some = scored.take(np.array([2, 0]))
    assert some.evaluate().labels.filter(label="zinc")["documents"].to_list() == [2]
    alone = textnb.held_out(listed, TEST.with_columns(label=pl.lit(["zinc"])))
    assert "micro F1 0.0000" in repr(alone)
    with pytest.raises(textnb.DataError, match="knows none of the labels, such as 'zinc'"):
        alone.evaluate()
    assert repr(scored.take(np.array([], dtype=np.int64))).startswith(
        "HeldOut(0 documents, 5 labels,")


# Thresholds


@pytest.mark.slow
def test_the_threshold_of_the_best_f1():
    draw = np.random.default_rng(1)
    for _ in range(50):
        scores = draw.integers(0, 12, 30).astype(float)
        positive, weight = draw.random(30) < 0.3, draw.random(30)
        chosen = label_thresholds.best_threshold(scores, positive, weight)
        f1, *others = (
            f1_score(positive, scores > threshold, sample_weight=weight, zero_division=0.0)
            for threshold in (chosen, *np.arange(-0.5, 12.0)))
        assert f1 == pytest.approx(max(others), abs=1e-12)


def test_the_thresholds_of_the_best_micro_f1():
    draw = np.random.default_rng(0)
    for _ in range(30):
        scores = draw.integers(0, 5, (12, 3)).astype(float)
        positive = draw.random(scores.shape) < 0.3
        thresholds = label_thresholds.micro_f1_thresholds(scores, positive)
        predicted = scores > np.array([*itertools.product(np.arange(-0.5, 5.0), repeat=3)])[:, None]
        right, total = (predicted & positive).sum((1, 2)), predicted.sum((1, 2)) + positive.sum()
        best = np.max(2 * right / np.maximum(total, 1))
        assert f1_score(positive, scores > thresholds, average="micro",
                        zero_division=0.0) == pytest.approx(best)


def test_the_thresholds_of_minimal_cost():
    draw = np.random.default_rng(0)
    for wrong, missed in ((1.0, 1.0), (5.0, 1.0), (1.0, 3.0)):
        scores = draw.integers(0, 12, 30).astype(float)
        positive = draw.random(30) < 0.4

        def cost(threshold, false=wrong, lost=missed, scores=scores, positive=positive):
            above = scores > threshold
            return float(false * (above & ~positive).sum() + lost * (positive & ~above).sum())

        cheapest = label_thresholds.cheapest_threshold(scores, positive, wrong, missed)
        assert cost(cheapest) == min(map(cost, np.arange(-0.5, 12.5)))


@pytest.mark.parametrize("positive", [True, False])
def test_steady_threshold_of_one_row_is_the_best_one(positive):
    rows = np.array([0.5]), np.array([positive])
    assert label_thresholds.steady_threshold(*rows) == label_thresholds.best_threshold(*rows)


def test_steady_threshold_has_a_better_f1_than_best_threshold_on_new_documents():
    better = []
    for seed in range(40):
        train, other = held_out_scores(60, seed), held_out_scores(5000, seed + 100)
        f1 = [np.mean([f1_score(other.actual[:, k], other.scores[:, k] > search(
            train.scores[:, k], train.actual[:, k])) for k in range(3)])
            for search in (label_thresholds.best_threshold, label_thresholds.steady_threshold)]
        better.append(f1[1] - f1[0])
    assert np.mean(better) > 2 * np.std(better) / np.sqrt(len(better))


def test_thresholds_by_each_goal():
    scored = held_out_scores(20_000)
    by_label = textnb.choose_class_thresholds(scored, by="f1")
    by_pair = textnb.choose_class_thresholds(scored, by="micro-f1", at_least=1)
    assert by_label.evidence["macro_f1"] > scored.measure(by_pair)["macro_f1"]
    assert by_label.evidence["macro_f1"] == scored.measure(by_label)["macro_f1"]
    assert by_pair.at_least == 1
    assert scored.chosen(by_pair).any(axis=1).all()
    costs = textnb.choose_class_thresholds(scored, costs=(3.0, 1.0))
    calibration = textnb.fit_calibration(scored)
    theoretical = textnb.choose_class_thresholds(
        scored, costs=(3.0, 1.0), method="theoretical", calibration=calibration)
    assert costs.evidence["cost"] <= theoretical.evidence["cost"] < 1.02 * costs.evidence["cost"]
    above = scored.chosen(theoretical)
    odds = calibration.apply(scored.scores, np.zeros(len(scored)))
    assert np.array_equal(above, chances(odds) > 0.75)


def test_min_precision_is_guaranteed_for_each_label():
    scored = held_out_scores()
    with pytest.warns(TextnbWarning, match=r"'b'.*never predicted"):
        decision = textnb.choose_class_thresholds(scored, min_precision=0.85)
    assert decision.thresholds["b"] == np.inf
    above = scored.chosen(decision)
    for k, entry in enumerate(decision.evidence["labels"]):
        if entry["threshold"] is not None:
            right = int((above[:, k] & scored.actual[:, k]).sum())
            assert (right, int(above[:, k].sum())) == (entry["correct"], entry["answered"])
            assert lower_bound(right, entry["answered"], 0.95) >= 0.85
    # The guarantee holds on other documents of the same distribution.
    other = held_out_scores(100_000, seed=1)
    above = other.chosen(decision)
    assert ((above & other.actual).sum(axis=0) >= 0.85 * above.sum(axis=0)).all()


# Probabilities


def test_label_sigmoids_recovers_the_sigmoids_of_the_data():
    scored = held_out_scores(20_000)
    sigmoids = label_sigmoids(scored.scores, scored.actual)
    expected = [[1.0, 0.0], [0.1, -0.5], [1 / 3, 2 / 3]]
    np.testing.assert_allclose(sigmoids, expected, rtol=0.06, atol=0.05)


def test_sigmoids_of_misleading_or_constant_scores_are_finite():
    scores = np.array([[3.0, 1.0, -np.inf], [-3.0, -1.0, -1.0], [2.0, 1.0, -1.0]] * 20)
    actual = np.array([[True, False, True], [False, True, False], [True, False, False]] * 20)
    sigmoids = label_sigmoids(scores, actual)
    assert np.isfinite(sigmoids).all()
    # Sigmoids never reverse the order of scores, even if low scores mean the label.
    assert (sigmoids[:, 0] > 0).all()
    assert label_sigmoids(np.zeros((4, 1)), np.ones((4, 1), bool)).tolist() == [[1.0, 0.0]]


@every_model
def test_probabilities_are_calibrated_by_one_call(name, tmp_path):
    model = clone(MODELS[name]).fit(NEWS)
    before = textnb.held_out(model, TEST)
    calibration = textnb.calibrate(model, NEWS)
    assert (calibration.method, calibration.documents) == ("5 folds", 150)
    after = before.calibrated(calibration)
    assert after.log_loss < before.log_loss
    labels, decision = model.predict(TEST["text"]), model.decision_
    model.set_calibration(calibration).save(tmp_path / "news.textnb")
    # Calibration does not change labels, because thresholds apply to scores.
    assert model.predict(TEST["text"]) == labels
    assert model.decision_ == decision
    assert np.array_equal(before.predicted, after.predicted)
    assert measures(after.evaluate()) == measures(textnb.evaluate(model, TEST))
    odds = calibration.apply(before.scores, np.zeros(len(before)))
    np.testing.assert_allclose(model.predict_proba(TEST), chances(odds), rtol=1e-12)
    rows = model.predict(TEST, probability=True, top=5)
    assert rows["calibrated"].all()
    for chance, own, top in zip(
            model.predict_proba(TEST).tolist(), rows["probability"], rows["top"], strict=True):
        named = dict(zip(TOPICS, chance, strict=True))
        assert all(named[entry["label"]] == entry["probability"] for entry in [*own, *top])
    again = textnb.load(tmp_path / "news.textnb")
    assert again.calibration_ == calibration
    assert again.fitted_.counts.equals(model.fitted_.counts)
    assert again.predict(TEST, probability=True, top=5).equals(rows)
    again.save(tmp_path / "again.textnb")
    assert (tmp_path / "again.textnb").read_bytes() == (tmp_path / "news.textnb").read_bytes()


def test_a_calibration_of_labels_is_dropped_if_a_label_is_new():
    model = TextClassifier().fit(NEWS)
    model.set_calibration(textnb.calibrate(model, NEWS)).partial_fit(NEWS)
    assert model.calibration_.stale
    more = pl.DataFrame({"text": ["zinc"], "label": [["zinc"]]})
    with pytest.warns(UserWarning, match="the calibration, whose sigmoids"):
        model.partial_fit(more, classes=["zinc"])
    assert model.calibration_ is None


def test_values_of_sigmoids_are_checked():
    good = Calibration(link="labels", sigmoids=((1.0, 0.0),))
    assert Calibration.from_dict(good.to_dict()) == good
    for pairs in (5, [1.0], [[1.0]], [["1", 0.0]], [[1.0, True]]):
        with pytest.raises(ParameterError):
            Calibration.from_dict({**good.to_dict(), "sigmoids": pairs})
    for values in (
            {"sigmoids": ()}, {"sigmoids": ((0.0, 0.0),)}, {"sigmoids": ((1.0,),)},
            {"sigmoids": ((1.0, np.nan),)}, {"sigmoids": ((1.0, 0.0),), "temperature": 2.0},
            {"sigmoids": [[1.0, 0.0]]}, {"sigmoids": ((1.0, 0.0),), "link": "softmax"}):
        with pytest.raises(ParameterError):
            Calibration(**{"link": "labels", **values})


def test_words_for_a_threshold_next_to_zero():
    assert [*decision_words(textnb.Decision({"ham": 5e-324, "spam": 0.0}, "spam"))] == [
        "'spam' where its log-odds are at least 0", "'ham' where its log-odds are above 0"]
