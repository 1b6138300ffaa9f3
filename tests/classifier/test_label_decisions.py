"""Thresholds, ranks and probabilities of labels, from scores of documents held out."""

import itertools

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import f1_score

import textnb
from tests.classifier.test_multilabel import NEWS, TESTED, TOPICS
from textnb import (
    BernoulliNB,
    Calibration,
    ComplementNB,
    DataError,
    MultinomialNB,
    NBLinear,
    ParameterError,
    TextClassifier,
)
from textnb.bayes.label_calibration import label_sigmoids
from textnb.bayes.label_thresholds import (
    best_threshold,
    cheapest_threshold,
    micro_f1_thresholds,
    steady_threshold,
)
from textnb.evaluation.binomial import lower_bound
from textnb.evaluation.held_out import HeldOut

ESTIMATORS = {"multinomial": MultinomialNB(l=0.5), "bernoulli": BernoulliNB(),
              "complement": ComplementNB(), "linear": NBLinear()}


def model_of(name):
    from sklearn.base import clone

    return TextClassifier(clone(ESTIMATORS[name]), min_df=2)


def held(documents=2000, seed=0):
    """Scores of three labels that say more or less of them, and how sure they are differs."""
    draw = np.random.default_rng(seed)
    odds = draw.normal(-1.0, [2.0, 1.0, 3.0], (documents, 3))
    actual = draw.random(odds.shape) < 1 / (1 + np.exp(-odds))
    return HeldOut(np.array(["a", "b", "c"]), odds * [1.0, 10.0, 3.0] + [0.0, 5.0, -2.0],
                   actual, np.ones(documents), "held-out rows", link="sigmoid")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_folds_score_as_models_of_the_other_folds(name):
    found = textnb.cross_validate(model_of(name), NEWS, folds=3)
    assert isinstance(found, HeldOut)
    assert found.actual.tolist() == [[topic in row for topic in TOPICS] for row in NEWS["label"]]
    for fold in range(3):
        inside = pl.Series(found.folds == fold)
        fitted = model_of(name).fit(NEWS.filter(~inside))
        assert np.array_equal(fitted.predict_joint_log_proba(NEWS.filter(inside)),
                              found.scores[found.folds == fold])
        # Each topic is in all folds.
        assert found.actual[found.folds == fold].any(axis=0).all()


def test_a_label_that_a_fold_has_not_learned_is_missed():
    rows = pl.DataFrame({"text": ["aa", "bb", "aa bb", "cc"],
                         "label": [["a"], ["b"], ["a", "b"], ["rare"]]})
    found = textnb.cross_validate(TextClassifier(), rows, folds=2)
    assert found.scores[3, 2] == -np.inf
    assert not found.predicted[3, 2]
    assert np.isposinf(found.scores).any()
    goals = ["f1", "micro-f1"]
    for by in goals:
        decision = textnb.choose_class_thresholds(found, by=by)
        assert -np.inf not in decision.thresholds.values()


def test_held_out_rows_may_have_labels_that_are_not_known():
    model = TextClassifier().fit(NEWS)
    more = TESTED.with_columns(label=pl.col("label").list.concat(pl.lit(["zinc"])))
    found = textnb.held_out(model, more)
    assert found.unknown == TESTED.height
    assert np.array_equal(found.actual, textnb.held_out(model, TESTED).actual)
    assert found.measure()["micro_f1"] == pytest.approx(
        textnb.evaluate(model, TESTED).micro_f1)
    with pytest.raises(DataError, match="lists of labels"):
        textnb.held_out(model, TESTED.with_columns(label=pl.lit("corn")))


def test_the_thresholds_of_the_best_micro_f1():
    draw = np.random.default_rng(0)
    for _ in range(30):
        scores = draw.integers(0, 5, (12, 3)).astype(float)
        positive = draw.random(scores.shape) < 0.3
        found = micro_f1_thresholds(scores, positive)
        said = scores > np.array([*itertools.product(np.arange(-0.5, 5.0), repeat=3)])[:, None]
        right, either = (said & positive).sum((1, 2)), said.sum((1, 2)) + positive.sum()
        best = np.max(2 * right / np.maximum(either, 1))
        assert f1_score(positive, scores > found, average="micro",
                        zero_division=0.0) == pytest.approx(best)


def test_the_thresholds_of_least_cost():
    draw = np.random.default_rng(0)
    for wrong, missed in ((1.0, 1.0), (5.0, 1.0), (1.0, 3.0)):
        scores = draw.integers(0, 12, 30).astype(float)
        positive = draw.random(30) < 0.4

        def cost(threshold, false=wrong, lost=missed, scores=scores, positive=positive):
            said = scores > threshold
            return float(false * (said & ~positive).sum() + lost * (positive & ~said).sum())

        found = cheapest_threshold(scores, positive, wrong, missed)
        assert cost(found) == min(map(cost, np.arange(-0.5, 12.5)))


def test_steady_thresholds_are_better_on_other_documents():
    better = []
    for seed in range(40):
        chosen, other = held(60, seed), held(5000, seed + 100)
        f1 = [np.mean([f1_score(other.actual[:, k], other.scores[:, k] > search(
            chosen.scores[:, k], chosen.actual[:, k])) for k in range(3)])
            for search in (best_threshold, steady_threshold)]
        better.append(f1[1] - f1[0])
    assert np.mean(better) > 2 * np.std(better) / np.sqrt(len(better))


def test_thresholds_by_each_goal():
    scored = held(20_000)
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
    said = scored.chosen(theoretical)
    chance = 1 / (1 + np.exp(-calibration.apply(scored.scores, np.zeros(len(scored)))))
    assert np.array_equal(said, chance > 0.75)


def test_a_precision_of_each_label_is_shown():
    scored = held()
    with pytest.warns(UserWarning, match=r"never predicted.*'b'"):
        decision = textnb.choose_class_thresholds(scored, min_precision=0.85)
    assert decision.thresholds["b"] == np.inf
    said = scored.chosen(decision)
    for k, entry in enumerate(decision.evidence["labels"]):
        if entry["threshold"] is not None:
            right = int((said[:, k] & scored.actual[:, k]).sum())
            assert (right, int(said[:, k].sum())) == (entry["correct"], entry["answered"])
            assert lower_bound(right, entry["answered"], 0.95) >= 0.85
    # Of other documents of the same kind the share is as shown.
    other = held(100_000, seed=1)
    said = other.chosen(decision)
    assert ((said & other.actual).sum(axis=0) >= 0.85 * said.sum(axis=0)).all()


BAD = {
    "no goal": ({}, "give one of by, min_precision and costs; got none"),
    "two goals": ({"by": "f1", "costs": (1, 1)}, "got by and costs"),
    "another measure": ({"by": "accuracy"}, "by"),
    "a method without costs": ({"by": "f1", "method": "empirical"}, "goes with costs"),
    "another method": ({"costs": (1, 1), "method": "magic"}, "method"),
    "negative costs": ({"costs": (1, -1)}, "costs"),
    "a precision of 1": ({"min_precision": 1.0}, "min_precision"),
    "at most none": ({"by": "f1", "at_most": 0}, "at_most"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_goals_are_named(name):
    settings, message = BAD[name]
    with pytest.raises(ParameterError, match=message):
        textnb.choose_class_thresholds(held(), **settings)


def test_what_is_for_lists_or_for_one_label_says_so():
    rows = pl.DataFrame({"text": ["aa", "bb"] * 20, "label": ["a", "b"] * 20})
    single = textnb.cross_validate(TextClassifier(), rows)
    more = [
        {"by": "f1"}, {"costs": (1, 1)}, {"at_least": 1}, {"at_most": 2}]
    for settings in more:
        with pytest.raises(ParameterError, match=f"{next(iter(settings))} is for lists of labels"):
            textnb.choose_class_thresholds(single, min_precision=0.9, **settings)
    with pytest.raises(ParameterError, match="choose_class_thresholds"):
        textnb.choose_threshold(held(), "a", max_false_positive_rate=0.1)
    with pytest.raises(ParameterError, match="for lists of labels"):
        textnb.fit_calibration(single, link="labels")
    model = TextClassifier().fit(NEWS)
    for calibration in (Calibration(2.0), textnb.fit_calibration(held())):
        with pytest.raises(ParameterError, match="5 labels"):
            model.set_calibration(calibration)
    with pytest.raises(ParameterError, match="3 sigmoids of labels"):
        TextClassifier().fit(rows).set_calibration(textnb.fit_calibration(held()))


def test_sigmoids_are_those_that_the_labels_were_drawn_by():
    scored = held(20_000)
    found = label_sigmoids(scored.scores, scored.actual)
    expected = [[1.0, 0.0], [0.1, -0.5], [1 / 3, 2 / 3]]
    np.testing.assert_allclose(found, expected, rtol=0.06, atol=0.05)


def test_sigmoids_of_labels_that_say_little():
    scores = np.array([[3.0, 1.0, -np.inf], [-3.0, -1.0, -1.0], [2.0, 1.0, -1.0]] * 20)
    actual = np.array([[True, False, True], [False, True, False], [True, False, False]] * 20)
    found = label_sigmoids(scores, actual)
    assert np.isfinite(found).all()
    # The order of scores stays, even of a label whose scores mislead.
    assert (found[:, 0] > 0).all()
    assert label_sigmoids(np.zeros((4, 1)), np.ones((4, 1), bool)).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_probabilities_are_calibrated_by_one_call(name, tmp_path):
    model = model_of(name).fit(NEWS)
    before = textnb.held_out(model, TESTED)
    calibration = textnb.calibrate(model, NEWS)
    assert (calibration.method, calibration.documents) == ("5 folds", 150)
    assert before.calibrated(calibration).log_loss < before.log_loss
    said = model.predict(TESTED["text"])
    model.set_calibration(calibration).save(tmp_path / "news.textnb")
    # The labels stay, as thresholds are on scores.
    assert model.predict(TESTED["text"]) == said
    odds = calibration.apply(before.scores, np.zeros(len(before)))
    np.testing.assert_allclose(model.predict_proba(TESTED), 1 / (1 + np.exp(-odds)), rtol=1e-12)
    rows = model.predict(TESTED, probability=True, top=5)
    assert rows["calibrated"].all()
    for chances, own, top in zip(
            model.predict_proba(TESTED).tolist(), rows["probability"], rows["top"], strict=True):
        named = dict(zip(TOPICS, chances, strict=True))
        assert all(named[entry["label"]] == entry["probability"] for entry in [*own, *top])
    read = textnb.load(tmp_path / "news.textnb")
    assert read.calibration_ == calibration
    assert read.predict(TESTED, probability=True).equals(model.predict(TESTED, probability=True))


def test_a_calibration_of_labels_is_dropped_where_a_label_is_new():
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
    bad = [
        {"sigmoids": ()}, {"sigmoids": ((0.0, 0.0),)}, {"sigmoids": ((1.0,),)},
        {"sigmoids": ((1.0, np.nan),)}, {"sigmoids": ((1.0, 0.0),), "temperature": 2.0},
        {"sigmoids": [[1.0, 0.0]]}, {"sigmoids": ((1.0, 0.0),), "link": "softmax"}]
    for values in bad:
        with pytest.raises(ParameterError):
            Calibration(**{"link": "labels", **values})


def test_a_model_calibrated_and_with_thresholds_keeps_the_decision():
    model = TextClassifier().fit(NEWS)
    decision = textnb.choose_class_thresholds(
        textnb.cross_validate(model, NEWS), by="f1", at_most=2)
    model.set_decision(decision).set_calibration(textnb.calibrate(model, NEWS))
    assert model.decision_ == decision
    assert model.predict(TESTED)["predicted"].list.len().max() == 2
    assert textnb.evaluate(model, TESTED).macro_f1 > 0.3


@pytest.mark.parametrize("ask", [
    textnb.reliability, lambda scored: scored.not_judged, lambda scored: scored.odds,
    lambda scored: scored.log_odds("a"), lambda scored: scored.log_probability(),
    lambda scored: scored.calibrated(Calibration(2.0, 0.0, 10, "rows given as held out"))])
def test_what_is_of_one_label_refuses_scores_of_lists(ask):
    with pytest.raises(ParameterError):
        ask(held())


def test_what_is_of_lists_refuses_scores_of_one_label():
    one = HeldOut(np.array(["a", "b"]), np.zeros((3, 2)), np.zeros(3, dtype=np.int64), np.ones(3),
                  "by hand")
    for ask in (one.chosen, one.measure):
        with pytest.raises(ParameterError, match="one label each"):
            ask()
    with pytest.raises(ParameterError, match="unknown value 'c'"):
        one.log_odds("c")


def test_labels_that_are_left_out_are_seen():
    rows = pl.DataFrame({"text": ["aa", "bb"], "label": [["a"], ["b"]]})
    model = textnb.TextClassifier().fit(rows)
    assert "1 unknown label left out" in repr(textnb.held_out(model, rows.with_columns(
        label=pl.Series([["a", "new"], ["b"]]))))
    assert repr(textnb.held_out(model, rows).take(np.array([], dtype=np.int64))).startswith(
        "HeldOut(0 documents, 2 labels,")
