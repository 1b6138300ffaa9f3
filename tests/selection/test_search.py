"""The search for settings: its trials against cross-validation, its order, and what it promises."""

import math

import numpy as np
import polars as pl
import pytest
from sklearn import metrics

import textnb
from tests.selection.rows import LISTS, PAIRS, ROWS, THREE_IN_A_ROW
from textnb import ComplementNB, HeldOut, MultinomialNB, NBLinear, TextClassifier, load, tune
from textnb import cross_validate as validate
from textnb.bayes.label_thresholds import f1_thresholds
from textnb.learning.parameters import SHORT_WORDS
from textnb.selection.candidates import Candidate, first_candidates, is_spaceless, neighbours
from textnb.selection.metric import Metric
from textnb.selection.search import _schedule, search
from textnb.selection.splits import split
from textnb.selection.trials import TrialRunner, subtract_thresholds

BERNOULLI = textnb.BernoulliNB(l=0.03)


def trial_of(rows, estimator, time, metric, subwords=None):
    """The same settings by cross-validation, and by a trial on all rows."""
    held = validate(TextClassifier(estimator, tokenizer=PAIRS, min_df=2, subwords=subwords), rows,
                    folds=3, time=time)
    folds = split(rows.lazy(), "label", folds=3, time=time)
    trials = TrialRunner(rows, ["text"], "label", folds, Metric(metric), 0)
    return held, trials.run(
        Candidate(PAIRS, 2, estimator, subwords), len(trials.rungs) - 1)


@pytest.mark.parametrize("estimator", [
    MultinomialNB(l=0.1), ComplementNB(l=0.1), BERNOULLI, NBLinear(held_out=0.0)], ids=str)
@pytest.mark.parametrize("time", [None, "day"])
def test_a_trial_is_a_cross_validation(estimator, time):
    held, trial = trial_of(ROWS, estimator, time, "accuracy")
    temperature = 1.0 if trial.calibration is None else trial.calibration.temperature
    assert trial.value == held.accuracy
    assert np.array_equal(trial.scores, held.scores / temperature)


@pytest.mark.parametrize("held_out", [0.0, 0.2])
def test_a_trial_shares_weights_as_a_fit_does(held_out):
    metric = "log-loss" if held_out else "accuracy"
    held, trial = trial_of(ROWS, NBLinear(held_out=held_out), None, metric, (2, 3))
    plain, _ = trial_of(ROWS, NBLinear(held_out=held_out), None, metric)
    if not held_out:
        assert np.array_equal(trial.scores, held.scores)
    # Calibrated, a trial has other scores with the same signs.
    assert np.array_equal(trial.scores > 0, held.scores > 0)
    assert not np.array_equal(trial.scores > 0, plain.scores > 0)


@pytest.mark.parametrize("estimator", [
    MultinomialNB(l=0.1), ComplementNB(l=0.1), NBLinear(held_out=0.0)], ids=str)
@pytest.mark.parametrize("time", [None, "day"])
def test_a_trial_of_lists_judges_each_fold_by_thresholds_of_the_others(estimator, time):
    held, trial = trial_of(LISTS, estimator, time, "micro-f1")
    answers = np.zeros(held.actual.shape, dtype=np.bool_)
    for fold in np.unique(held.folds):
        own = held.folds == fold
        decision = textnb.choose_class_thresholds(held.take(~own), by="micro-f1")
        answers[own] = held.take(own).chosen(decision)
    assert np.array_equal(trial.scores > 0, answers)
    assert trial.value == metrics.f1_score(held.actual, answers, average="micro")
    decision = textnb.choose_class_thresholds(held, by="micro-f1")
    assert dict(zip(held.classes.tolist(), trial.thresholds.tolist(), strict=True)) == (
        decision.thresholds)


def test_margins_know_the_other_folds_alone():
    draw = np.random.default_rng(1)
    scores, actual = draw.normal(size=(30, 2)), draw.random((30, 2)) < 0.4
    folds = np.arange(30) % 3
    margins = subtract_thresholds("f1", scores, actual, folds)
    other = actual.copy()
    other[folds == 1] = ~other[folds == 1]
    other_margins = subtract_thresholds("f1", scores, other, folds)
    assert np.array_equal(other_margins[folds == 1], margins[folds == 1])
    others = folds != 2
    np.testing.assert_array_equal(
        margins[folds == 2],
        scores[folds == 2] - f1_thresholds("f1", scores[others], actual[others]))


# What is found


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "trials", "seed"), [(ROWS, 12, 3), (LISTS, 2, 0)])
def test_the_same_bits_again(rows, trials, seed, tmp_path):
    first, second = (tune(each, trials=trials, seed=seed) for each in (rows, rows.lazy()))
    assert first.tuned_.trials.drop("seconds").equals(second.tuned_.trials.drop("seconds"))
    assert vars(first.tuned_.estimate) == vars(second.tuned_.estimate)
    first.save(tmp_path / "first")
    second.save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.parametrize("metric", ["accuracy", "log-loss"])
def test_the_code_makes_the_model(metric):
    model = tune(ROWS, trials=14, metric=metric)
    names = {"rows": ROWS}
    exec(model.tuned_.code, names)
    texts = ROWS["text"].to_list()
    assert np.array_equal(names["model"].predict_proba(texts), model.predict_proba(texts))
    assert names["model"].calibration_ == model.calibration_


@pytest.mark.sweep(2)
@pytest.mark.parametrize("settings", [
    {}, {"metric": "macro-f1"}, {"metric": "example-f1"}, {"groups": "author", "trials": 1},
    {"metric": "subset-accuracy"}, {"time": "day", "trials": 1}, {"seed": 3, "trials": 1}], ids=str)
def test_the_code_makes_the_model_of_lists_and_its_thresholds(settings):
    model = tune(LISTS, **{"trials": 4, **settings})
    names = {"rows": LISTS}
    exec(model.tuned_.code, names)
    assert names["model"].decision_.thresholds == model.decision_.thresholds
    texts = LISTS["text"].to_list()
    assert names["model"].predict(texts) == model.predict(texts)
    estimate = model.tuned_.estimate
    assert 0.0 < estimate.low <= estimate.value <= estimate.high < 1.0
    assert str(model.tuned_.metric) == settings.get("metric", "micro-f1")


def test_every_candidate_has_code_that_makes_it():
    candidates = first_candidates(True)
    candidates += [beside for each in candidates for beside in neighbours(each, 2)]
    names = {name: getattr(textnb, name) for name in textnb.__all__}
    for candidate in candidates:
        made = eval(candidate.code(["text"], "label"), dict(names)).text_settings()
        assert Candidate(
            made.tokenizer, made.parameters["min_df"], made.model, made.parameters["subwords"],
        ).key == candidate.key


def test_no_trial_sees_the_rows_of_the_estimate():
    """Texts tell an author, and each author has one label: only new authors tell what it is worth.
    """
    known = ROWS.with_columns(
        text=pl.format("signed{}", pl.col("author").str.replace("author ", "")),
        label=(pl.col("author").str.slice(7).cast(pl.Int64) % 2 == 0).cast(pl.String))
    assert tune(known, trials=3).tuned_.estimate.value == 1.0
    assert tune(known, trials=3, groups="author").tuned_.estimate.value < 0.8


def test_trials_and_estimate_share_the_rows():
    result = tune(ROWS, trials=3, time="day").tuned_
    assert result.estimate.documents + max(result.trials["documents"]) == ROWS.height
    assert result.estimate.low <= result.estimate.value <= result.estimate.high


def test_a_label_of_the_test_part_alone_is_missed():
    rare = LISTS.with_columns(label=pl.when(pl.int_range(400) == 399).then(
        pl.lit(["zinc"], dtype=pl.List(pl.String))).otherwise("label"))
    result = search(rare, trials=1, time="day")
    assert result.estimate.documents > 0
    assert "zinc" in result.fitted.classes.tolist()


def test_a_lead_that_chance_can_make_keeps_the_defaults():
    random = np.random.default_rng(0)
    noise = ROWS.with_columns(label=pl.Series(random.choice(["x", "y"], ROWS.height)))
    result = search(noise, trials=16)
    values = result.trials["value"].to_list()
    assert result.lead.settings == result.trials["settings"][0] != "nblinear"
    assert result.lead.value == pytest.approx(
        values[0] - result.trials.filter(pl.col("trial") == 1)["value"].item())
    assert result.lead.low <= 0 < result.lead.value < result.lead.high
    assert result.settings.describe() == "nblinear"
    assert result.estimate is result.default


def test_a_sure_lead_takes_the_place_of_the_defaults():
    result = search(THREE_IN_A_ROW, trials=6)
    assert result.lead.low > 0
    assert result.settings.tokenizer == SHORT_WORDS.with_params(ngram_range=(1, 3))
    assert result.to_dict()["lead"]["settings"] == result.settings.describe()


def test_settings_that_can_not_be_learned_have_no_value():
    """All words are one character long: the pattern of longer ones has no term."""
    rows = pl.DataFrame({"text": ["a b", "b a", "c d", "d c"] * 10,
                         "label": ["x", "x", "y", "y"] * 10})
    result = search(rows, trials=14)
    assert result.trials.filter(pl.col("trial") == 2)["value"].item() is None
    assert result.trials["value"][-1] is None
    assert result.settings.describe() == "nblinear"
    assert result.estimate.value == result.default.value == 1.0


def test_texts_may_be_categories():
    result = search(ROWS.with_columns(pl.col("text").cast(pl.Categorical)), trials=2)
    assert result.trials.drop("seconds").equals(search(ROWS, trials=2).trials.drop("seconds"))


# The order of trials


def test_the_order_of_trials_knows_no_budget():
    def in_order(**budget):
        return search(ROWS, **budget).trials.drop("seconds").sort("trial")

    long = in_order(trials=16)
    assert in_order(trials=5).equals(long.head(5))
    timed = in_order(seconds=1e-6)
    assert timed.equals(long.head(timed.height))


def test_the_best_trial_comes_first_also_where_less_is_better():
    trials = search(ROWS, trials=5, metric="log-loss").trials
    assert trials["value"].is_sorted()
    assert trials["trial"].to_list() != [*range(1, 6)]


def schedule_of(first, value, trials, seconds=math.inf):
    """The candidates and rungs that a schedule asks for, each of which has some value.

    Each trial takes a second.
    """
    asked = []
    order = _schedule(first, [300, 900], 1, 0, False, lambda: (
        trials - len(asked) if len(asked) < seconds else 0))
    try:
        asked.append(next(order))
        while True:
            asked.append(order.send(value(*asked[-1])))
    except StopIteration:
        return asked


def keys(asked):
    return [(candidate.key, rung) for candidate, rung in asked]


FIRST = first_candidates(False)


def later_is_better(candidate, rung):
    """Neighbours are the worst."""
    return next((n for n, each in enumerate(FIRST) if each is candidate), -1)


def test_the_best_of_each_race_goes_on_to_all_rows():
    asked = schedule_of(FIRST, later_is_better, 40)
    assert [(FIRST.index(each), rung) for each, rung in asked[:17]] == [
        (0, 1), (1, 1), *((n, 0) for n in range(2, 6)), (5, 1), *((n, 0) for n in range(6, 10)),
        (9, 1), *((n, 0) for n in range(10, 14)), (13, 1)]
    # Neighbours are compared with the best on few rows, and are worse there.
    assert {rung for _, rung in asked[17:]} == {0}
    assert len(keys(asked)) == len(set(keys(asked)))


def test_who_came_second_in_a_race_may_beat_the_first_of_the_next():
    asked = schedule_of(FIRST, lambda candidate, rung: -later_is_better(candidate, rung), 12)
    assert [FIRST.index(each) for each, rung in asked if rung == 1] == [0, 1, 2, 3]


@pytest.mark.parametrize("trials", range(2, 18))
def test_every_budget_ends_with_a_comparison_on_all_rows(trials):
    asked = schedule_of(FIRST, later_is_better, trials)
    assert len(asked) == trials
    assert asked[-1][1] == 1
    assert asked[-1][0] is not FIRST[0]
    # The best that was judged on few rows is judged on all of them.
    few = [FIRST.index(each) for each, rung in asked if rung == 0]
    assert not few or (FIRST[max(few)], 1) in asked


@pytest.mark.parametrize("seconds", range(1, 30))
def test_a_time_limit_asks_for_what_its_number_of_trials_asks_for(seconds):
    timed = schedule_of(FIRST, later_is_better, math.inf, seconds)
    assert len(timed) <= seconds + 1
    assert keys(timed) == keys(schedule_of(FIRST, later_is_better, len(timed)))


def test_a_result_says_what_it_did_not_compare():
    rows = pl.concat([ROWS] * 13)
    result = search(rows, trials=5)
    assert result.untried == tuple(each.describe() for each in FIRST[4:])
    assert result.comparison() == (
        "settings compared with the defaults on all 3,120 documents: 2; on fewer alone: 1; "
        "not reached, of those that each search begins with: 10 (give more trials or seconds)")
    first, comparison, header, *table = repr(result).splitlines()
    assert first.startswith(
        f"Tuned({result.settings.describe()}: accuracy {result.estimate.value:.4f} (")
    assert comparison == result.comparison()
    assert header.split() == ["accuracy", "documents", "settings"]
    assert [line.split()[:2] for line in table[:3]] == [
        [f"{value:.4f}", "3,120"] for value in sorted(
            result.trials.filter(pl.col("documents") == 3120)["value"], reverse=True)]
    assert "(give more" not in search(ROWS, trials=40).comparison()


# Metrics


def test_metrics_are_those_of_scikit_learn():
    held = validate(TextClassifier(), ROWS, folds=3)
    scores, codes, classes = held.scores, held.actual, held.classes.tolist()
    probability = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    predicted = scores.argmax(axis=1)

    def value(name, positive=None):
        return Metric.of(name, positive).value(scores, codes, classes)

    assert value("accuracy") == metrics.accuracy_score(codes, predicted)
    assert value("macro-f1") == metrics.f1_score(codes, predicted, average="macro")
    assert value("log-loss") == pytest.approx(metrics.log_loss(codes, probability), rel=1e-12)
    recall = value("recall@fpr=0.1", "y")
    precision = value(f"precision@recall={recall}", "y")
    # By hand: every threshold.
    odds, positive = scores[:, 1] - scores[:, 0], codes == 1
    rates = [((odds >= at)[positive].mean(), (odds >= at)[~positive].mean(),
              positive[odds >= at].mean()) for at in odds]
    assert recall == max(true for true, false, _ in rates if false <= 0.1)
    assert precision == max(right for true, _, right in rates if true >= recall)


def test_metrics_of_lists_are_those_of_evaluate():
    draw = np.random.default_rng(0)
    margins, actual = draw.normal(size=(60, 4)), draw.random((60, 4)) < 0.3
    margins[:, 3], actual[:, 3] = -1.0, False
    names = ["a", "b", "c", "d"]
    held = HeldOut(np.array(names), margins, actual, np.ones(60), "by hand", link="sigmoid")
    for name, measure in held.measure().items():
        if name != "hamming_loss":
            metric = Metric.of(name.replace("_", "-"), of_lists=True)
            assert metric.value(margins, actual, names) == measure


def test_scripts_without_spaces_are_seen():
    assert is_spaceless(pl.Series(["房间很大", "room 305"]))
    assert not is_spaceless(pl.Series(["The sign says 大", "an English text"]))
    assert not is_spaceless(pl.Series(["", None, "12"]))


# A classifier that chooses its settings


def test_a_classifier_chooses_its_settings(tmp_path):
    steps = []
    model = TextClassifier("auto").fit(ROWS, progress=steps.append)
    # It ends before where no neighbour is left.
    assert 15 < len(steps) == model.tuned_.trials.height <= 40
    assert type(model.estimator_).__name__ in repr(model.tuned_.fitted)
    model.save(tmp_path / "auto.textnb")
    texts = ROWS["text"].to_list()
    assert load(tmp_path / "auto.textnb").predict(texts).tolist() == model.predict(texts).tolist()
    with pytest.raises(textnb.ParameterError, match="changed since: min_df from 1 to 2"):
        model.set_params(min_df=2).save(tmp_path / "auto.textnb")


def test_what_was_found_goes_with_its_model(monkeypatch):
    monkeypatch.setattr("textnb.selection.search.DEFAULT_TRIALS", 2)
    model = TextClassifier("auto").fit(ROWS)
    assert model.tuned_.trials.height == 2
    model.set_params(estimator=NBLinear()).fit(ROWS)
    assert not hasattr(model, "tuned_")
    beside = TextClassifier("auto").fit(ROWS.select("text"), ROWS["label"].to_numpy())
    assert isinstance(beside.predict(ROWS.select("text")), np.ndarray)


@pytest.mark.slow
def test_a_classifier_chooses_its_settings_for_lists_too():
    rows = LISTS.head(200)
    model = TextClassifier("auto").fit(rows)
    assert str(model.tuned_.metric) == "micro-f1"
    beside = TextClassifier("auto").fit(rows["text"].to_list(), rows["label"].to_list())
    assert beside.decision_ == model.decision_ is not None
